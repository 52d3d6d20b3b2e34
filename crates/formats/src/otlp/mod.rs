//! Traces of OpenTelemetry: OTLP/JSON, with the names of the `GenAI` conventions or those of `OpenInference`.
//!
//! Each line is an `ExportTraceServiceRequest` of bounded size. A file of them is what the collector's
//! `otlpjsonfile` receiver reads, and a line is what an OTLP/HTTP endpoint takes.
//!
//! | in the session | span |
//! |---|---|
//! | the session | `invoke_agent`, or `invoke_workflow` for a run of a workflow: the root |
//! | a call to a model | `chat {model}` |
//! | a tool call with its result | `execute_tool {name}` |
//! | a step of a workflow | `invoke_workflow {name}` |
//! | a sub-agent | `invoke_agent {id}` |
//!
//! Every event has a place: it begins a span, or it is an event of one. What is known of it beside what it
//! says is in attributes of ours (`quipu.seq`, `quipu.native_id`, …). What was *said* is only written when
//! it is asked for ([`OtlpOptions::content`]), because traces go to places that transcripts do not.
//!
//! A span is written when it ends, so the root comes last. Ids follow from the run and the number of the
//! event; a second export is byte for byte the same.
//!
//! | module | what it owns |
//! |---|---|
//! | `facts` | what is known of the session as a whole |
//! | `tracer` | which event belongs to which span; `said`, `calls`, `steps`, `notes` by what the event is |
//! | `lane` | conversations: what waits for an answer, the call that is under way |
//! | `tools` | calls of tools under way |
//! | `talk` | messages, in either convention |
//! | `marks` | what is known of an event beside what it says |
//! | `span` | spans, and the lines they are written in |
//! | `protobuf` | the same in the other encoding, for endpoints that take no JSON |
//! | `request`, `unpack` | the other way: requests that were sent, in either encoding, as lines of JSON |
//! | `ids`, `json`, `provider` | ids, bytes, names of providers |

mod calls;
mod facts;
mod ids;
mod json;
mod lane;
mod marks;
mod nest;
mod notes;
mod protobuf;
mod provider;
pub mod request;
mod said;
mod span;
mod steps;
mod talk;
mod tools;
mod tracer;
mod unpack;

#[cfg(test)]
pub(crate) mod tests;

use std::io::{self, Write};

use quipu_model::Header;

pub use self::protobuf::{NotARequest, protobuf};
pub use self::unpack::Unreadable;
use crate::loss::Field;
use crate::projection::{Beside, Projection};

/// Which names attributes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Convention {
    /// Those of the `GenAI` semantic conventions of OpenTelemetry, v1.41.
    #[default]
    GenAi,
    /// Those of `OpenInference`, which Phoenix and others read.
    OpenInference,
}

/// How a session becomes spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpOptions {
    /// Which names attributes have.
    pub convention: Convention,
    /// Whether what was said is written: messages, arguments, results, errors in words, the title.
    pub content: bool,
    /// The longest attribute that holds content. What is longer is cut, with a mark, and counted.
    pub max_attribute_bytes: usize,
    /// How long a line becomes at most, unless a single span is longer. Collectors cut lines of files
    /// after a mebibyte.
    pub max_batch_bytes: usize,
    /// `service.name`; the agent's name where there is none.
    pub service_name: Option<String>,
    /// `openinference.project.name`: the project that Phoenix files the spans under.
    pub project: Option<String>,
}

impl Default for OtlpOptions {
    fn default() -> Self {
        Self {
            convention: Convention::GenAi,
            content: false,
            max_attribute_bytes: 64 << 10,
            max_batch_bytes: 512 << 10,
            service_name: None,
            project: None,
        }
    }
}

/// What has a place: everything that is known of an event beside what it says, but for fields that have no place of
/// their own, which may be as long as content.
pub const CARRIES: &[Field] = Field::NAMED;

/// How content is counted that is left out because nobody asked for it.
pub const CONTENT: &str = "content, because it was not asked for";

/// How a `finish_reason` is counted that the log does not have and that follows from what was said.
const FINISH_SAID: &str = "finish_reason, from what was said";

/// How a `finish_reason` is counted of which nothing is known.
const FINISH_UNKNOWN: &str = "finish_reason, which is not known";

/// How content is counted that is longer than an attribute may be.
const TOO_LONG: &str = "content beyond max_attribute_bytes";

/// Writes a session as spans.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &OtlpOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    Ok(Box::new(tracer::Tracer::new(header, options, out)))
}
