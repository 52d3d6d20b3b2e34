//! OTLP: spans and log records of OpenTelemetry, as instrumented programs send them and collectors write them.
//!
//! Each line is a batch in OTLP/JSON (`{"resourceSpans":[…]}`, `{"resourceLogs":[…]}`). A file may hold many conversations
//! and is taken apart ([`gather`]); what `quipu serve` receives lies in a file per conversation already, a record a line.
//!
//! Attributes may have the names of the `GenAI` semantic conventions (now, and as they were when messages were events), of
//! `OpenInference`, or of `OpenLLMetry` ([`message`]). Three rules make one transcript of them:
//!
//! * **A span counts once**, however often it is sent. Tokens are those of calls to models; what agents and workflows sum up
//!   again is kept and not counted.
//! * **A message is told once** ([`said`]). Requests repeat the history, so a message counts as often as the request that has
//!   it most often, or as often as models gave it as an answer.
//! * **What is not mapped is kept**: other attributes with the event they are of, other spans as notes.
//!
//! A program sends a span when it ends, so children come before their parents. Events are in the order of the log;
//! `native_id` and `parent_id` are the ids of spans. Spans that Quipu exported are read by its own attributes ([`own`]).

mod call;
mod discover;
mod events;
mod gather;
mod message;
mod normalize;
mod own;
mod said;
mod tool;
mod usage;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Otlp;

/// A batch a line.
pub(crate) const LINES: Dialect = Dialect::lines("otlp", "otlp");
/// One batch, spread over lines.
pub(crate) const DOCUMENT: Dialect = Dialect::document("otlp-document", "otlp");

impl Family for Otlp {
    crate::family::known!("otlp", [LINES, DOCUMENT]);
    crate::family::placed!();
    crate::family::opened!(_dialect, origin => normalize::Batches::new(origin));

    fn dialect_at(&self, _brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(path)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Batches)
    }
}
