//! What other programs send: spans and log records of OpenTelemetry, at `/v1/traces` and `/v1/logs`.
//!
//! A request is taken apart into lines, one record each, and each line is put behind the file of its conversation:
//!
//! ```text
//! <home>/received/otlp/<day of its first record>/c-<hash>.jsonl     a conversation
//! <home>/received/otlp/<day of its first record>/t-<trace id>.jsonl a trace that names no conversation
//! <home>/received/otlp/<day>/s-<hash>.jsonl                         log records without either, by program and day
//! ```
//!
//! Such a file is a log like an agent's: import keeps its bytes in the archive and reads what was added since.
//! A request is answered when all of it is on disk. Requests that come at the same time are brought to disk together.
//!
//! Names of conversations are anything that a program likes, so no file is named by them but by their hash.
//!
//! ```
//! use std::sync::Arc;
//! use quipu_record::SystemClock;
//! use quipu_store::receive::{Receiver, Signal};
//!
//! # let home = tempfile::tempdir()?;
//! let receiver = Receiver::new(home.path(), Arc::new(SystemClock));
//! let body = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[
//!     {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"chat"}]}]}]}"#;
//! let received = receiver.receive(Signal::Traces, "application/json", body)?;
//! assert_eq!((received.accepted, received.rejected), (1, 0));
//! assert_eq!((received.content_type, &received.body[..]), ("application/json", &b"{}"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod spool;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_formats::otlp::request::{self, BadRequest, Record, Request};
use quipu_model::Json;
use quipu_record::Clock;

pub use quipu_formats::otlp::request::{Encoding, Limits, Signal};

use crate::import::{ImportError, ImportOptions, Progress, Report, Search};
use crate::{FileError, Store};
use spool::Spool;

/// How many traces are remembered whose conversation is known.
const TRACES: usize = 1 << 16;

/// Takes what programs send. Can be shared between threads.
pub struct Receiver {
    spool: Spool,
    clock: Arc<dyn Clock>,
    limits: Limits,
    traces: Mutex<Traces>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("spool", &self.spool)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What became of a request, and what is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Records that were kept.
    pub accepted: u64,
    /// Records that were not.
    pub rejected: u64,
    /// Fields that OTLP does not have, which were passed over.
    pub unknown_fields: u64,
    /// The files that grew, for [`Store::import_received`].
    pub paths: Vec<PathBuf>,
    /// The `Content-Type` of the answer: that of the request.
    pub content_type: &'static str,
    /// The body of the answer, with status 200.
    pub body: Vec<u8>,
}

/// Why nothing of a request was taken.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// It is written in a way that OTLP does not have.
    #[error("Content-Type must be application/json or application/x-protobuf")]
    ContentType,
    /// It is not a request, or too long.
    #[error("{source}")]
    Bad {
        /// How it says it is written.
        encoding: Encoding,
        /// What is wrong with it.
        #[source]
        source: BadRequest,
    },
    /// It could not be kept. The program may send it again.
    #[error("cannot keep what was sent: {source}")]
    NotKept {
        /// How it is written.
        encoding: Encoding,
        /// Why.
        #[source]
        source: FileError,
    },
}

impl ReceiveError {
    /// The status of the answer. Programs try again after 503.
    pub const fn status(&self) -> u16 {
        match self {
            Self::ContentType => 415,
            Self::Bad {
                source: BadRequest::TooLong { .. },
                ..
            } => 413,
            Self::Bad { .. } => 400,
            Self::NotKept { .. } => 503,
        }
    }

    /// The `Content-Type` and the body of the answer: a `google.rpc.Status`. It does not name files of this machine.
    pub fn answer(&self) -> (&'static str, Vec<u8>) {
        let (encoding, message) = match self {
            Self::ContentType => (Encoding::Json, self.to_string()),
            Self::Bad { encoding, source } => (*encoding, source.to_string()),
            Self::NotKept { encoding, .. } => (
                *encoding,
                "what was sent could not be kept; try again".to_owned(),
            ),
        };
        (
            encoding.content_type(),
            request::refusal(encoding, &message),
        )
    }
}

/// Which conversation the spans of a trace are of that do not say so themselves.
#[derive(Debug, Default)]
struct Traces {
    conversations: HashMap<String, Option<String>>,
    order: VecDeque<String>,
}

impl Traces {
    /// Takes in that a span of a trace names a conversation. Says whether that is news.
    fn learn(&mut self, trace: &str, conversation: &str) -> bool {
        if let Some(known) = self.conversations.get_mut(trace) {
            // A trace of several conversations does not say which.
            if known.as_deref().is_some_and(|known| known != conversation) {
                *known = None;
            }
            false
        } else {
            if self.order.len() >= TRACES
                && let Some(oldest) = self.order.pop_front()
            {
                self.conversations.remove(&oldest);
            }
            self.order.push_back(trace.to_owned());
            let named = Some(conversation.to_owned());
            self.conversations.insert(trace.to_owned(), named);
            true
        }
    }

    fn of(&self, trace: &str) -> Option<&str> {
        self.conversations.get(trace)?.as_deref()
    }
}

impl Receiver {
    /// Keeps what is received below this home.
    pub fn new(home: &Path, clock: Arc<dyn Clock>) -> Self {
        Self {
            spool: Spool::new(home.join("received").join("otlp")),
            clock,
            limits: Limits::default(),
            traces: Mutex::default(),
        }
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What a request may be.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a request. Its body is not compressed any more. When this returns, what was accepted is on disk.
    ///
    /// # Errors
    ///
    /// When it is not a request, or could not be kept. What is wrong with single records is in the answer.
    pub fn receive(
        &self,
        signal: Signal,
        content_type: &str,
        body: &[u8],
    ) -> Result<Received, ReceiveError> {
        let encoding = Encoding::of(content_type).ok_or(ReceiveError::ContentType)?;
        let bad = |source| ReceiveError::Bad { encoding, source };
        let mut request = request::split(signal, encoding, body, &self.limits).map_err(bad)?;
        let accepted = request.records.len() as u64;
        let records = std::mem::take(&mut request.records);
        let paths = self
            .keep(records)
            .map_err(|source| ReceiveError::NotKept { encoding, source })?;
        let why = why(&request);
        Ok(Received {
            accepted,
            rejected: request.rejected,
            unknown_fields: request.unknown_fields,
            paths,
            content_type: encoding.content_type(),
            body: request::answer(signal, encoding, request.rejected, &why),
        })
    }

    /// Puts records behind the files of their conversations.
    fn keep(&self, mut records: Vec<Record>) -> Result<Vec<PathBuf>, FileError> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let day = self.clock.now().strftime("%Y-%m-%d").to_string();
        // Programs send spans when they end. What came together is put in the order in which it began, parents first.
        let mut number = 0_u64;
        records.sort_by_cached_key(|record| {
            number += 1;
            (record.began, std::cmp::Reverse(number))
        });
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut found: Vec<(String, String)> = Vec::new();
        {
            let mut traces = self.traces.lock();
            for record in &records {
                if let (Some(trace), Some(conversation)) = (&record.trace, &record.conversation)
                    && traces.learn(trace, conversation)
                {
                    found.push((trace.clone(), conversation.clone()));
                }
            }
            for record in records {
                let file = files.entry(name(&record, &traces, &day)).or_default();
                file.extend_from_slice(record.line.as_bytes());
                file.push(b'\n');
            }
        }
        for (trace, conversation) in found {
            // Spans that came before it was known are in a file of the trace. It says where the others are.
            let name = trace_name(&trace);
            if self.spool.is_there(&name)? {
                let name_of = Json::string(&conversation);
                let line = format!(
                    "{{\"quipuReceived\":{{\"conversation\":{}}}}}\n",
                    name_of.get()
                );
                let file = files.entry(name).or_default();
                file.extend_from_slice(line.as_bytes());
            }
        }
        self.spool.append(files, &day)
    }
}

/// The file of a record, without its ending.
fn name(record: &Record, traces: &Traces, day: &str) -> String {
    let of_trace = || traces.of(record.trace.as_deref()?);
    if let Some(conversation) = record.conversation.as_deref().or_else(of_trace) {
        return format!("c-{}", hashed(conversation));
    }
    if let Some(trace) = &record.trace {
        trace_name(trace)
    } else {
        let service = record.service.as_deref().unwrap_or_default();
        format!("s-{}", hashed(&format!("{day}\n{service}")))
    }
}

/// Ids of traces are digits, which was checked when they were read.
fn trace_name(trace: &str) -> String {
    format!("t-{trace}")
}

fn hashed(name: &str) -> String {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(name.as_bytes());
    quipu_model::hex::encode(&hash[..16])
}

fn why(request: &Request) -> String {
    request.reasons.join("; ")
}

impl Store {
    /// Takes what programs send to this store.
    pub fn receiver(&self, clock: Arc<dyn Clock>) -> Receiver {
        Receiver::new(self.home(), clock)
    }

    /// Imports what was received: these files ([`Received::paths`]), or all where none are named.
    ///
    /// # Errors
    ///
    /// [`ImportError::Busy`] when another process is importing. What is wrong with a log is in the report.
    pub fn import_received(
        &self,
        paths: &[PathBuf],
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<Report, ImportError> {
        let search = Search::of_received(self.home(), paths);
        self.import_found(search, options, progress)
    }
}
