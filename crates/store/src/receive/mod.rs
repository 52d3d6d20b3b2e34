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
//! Only what is of models and agents is kept: a trace counts from the first record of it that says so
//! ([`request::is_of_a_model`]). Programs send spans of databases and the web as well; those of a trace that does not count are
//! rejected, which the answer says.
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
//!     {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"chat",
//!      "attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}]}]}]}"#;
//! let received = receiver.receive(Signal::Traces, "application/json", body)?;
//! assert_eq!((received.accepted, received.rejected), (1, 0));
//! assert_eq!((received.content_type, &received.body[..]), ("application/json", &b"{}"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod spool;

#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_formats::otlp::request::{self, BadRequest, Record, Request};
use quipu_model::Json;
use quipu_record::Clock;

pub use quipu_formats::otlp::request::{Encoding, Limits, Signal, refusal};

use crate::import::{ImportError, ImportOptions, Progress, Report, Search};
use crate::{FileError, Store};
use spool::{Appended, Spool};

/// How many traces are remembered that count.
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
    /// Fields that OTLP does not have, which were passed over. The answer says how many.
    pub unknown_fields: u64,
    /// Texts that are not UTF-8, which were mended. The answer says how many.
    pub mended: u64,
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

    /// What is said to whoever sent it. It does not name files of this machine.
    pub fn message(&self) -> String {
        match self {
            Self::ContentType | Self::Bad { .. } => self.to_string(),
            Self::NotKept { .. } => "what was sent could not be kept; try again".to_owned(),
        }
    }

    /// The `Content-Type` and the body of the answer: a `google.rpc.Status`.
    pub fn answer(&self) -> (&'static str, Vec<u8>) {
        let encoding = match self {
            Self::ContentType => Encoding::Json,
            Self::Bad { encoding, .. } | Self::NotKept { encoding, .. } => *encoding,
        };
        (
            encoding.content_type(),
            request::refusal(encoding, self.status(), &self.message()),
        )
    }
}

/// The traces that count, and which conversation their spans are of that do not say so themselves.
#[derive(Debug, Default)]
struct Traces {
    known: HashMap<String, Named>,
    order: VecDeque<String>,
}

/// Which conversation a trace is of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    /// None of its spans said so.
    NotYet,
    As(String),
    /// It has several, and does not say which.
    Differently,
}

/// What a request changed in what is known, to be taken back should it not be kept.
#[derive(Debug, Default)]
struct Learned(BTreeMap<String, Option<Named>>);

impl Learned {
    /// The traces whose conversation is news.
    fn news<'t>(&self, traces: &'t Traces) -> Vec<(String, &'t str)> {
        let news = self.0.iter().filter_map(|(trace, before)| {
            let was_named = before.as_ref().is_some_and(|it| *it != Named::NotYet);
            match traces.known.get(trace) {
                Some(Named::As(conversation)) if !was_named => {
                    Some((trace.clone(), conversation.as_str()))
                }
                _ => None,
            }
        });
        news.collect()
    }
}

impl Traces {
    /// Takes in that a trace counts, and which conversation a span of it names.
    fn learn(&mut self, trace: &str, conversation: Option<&str>, learned: &mut Learned) {
        let known = match self.known.entry(trace.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                self.order.push_back(trace.to_owned());
                learned.0.insert(trace.to_owned(), None);
                place.insert(Named::NotYet)
            }
        };
        let now = match (&*known, conversation) {
            (Named::NotYet, Some(name)) => Named::As(name.to_owned()),
            (Named::As(before), Some(name)) if before != name => Named::Differently,
            _ => return,
        };
        let before = std::mem::replace(known, now);
        learned.0.entry(trace.to_owned()).or_insert(Some(before));
    }

    /// Takes back what a request said that was not kept.
    fn unlearn(&mut self, learned: Learned) {
        let is_new = |trace: &String| matches!(learned.0.get(trace), Some(None));
        self.order.retain(|trace| !is_new(trace));
        for (trace, before) in learned.0 {
            match before {
                Some(before) => self.known.insert(trace, before),
                None => self.known.remove(&trace),
            };
        }
    }

    /// Forgets the oldest, if there are too many.
    fn shrink(&mut self) {
        while self.order.len() > TRACES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn counts(&self, trace: Option<&str>) -> bool {
        trace.is_some_and(|trace| self.known.contains_key(trace))
    }

    fn of(&self, trace: &str) -> Option<&str> {
        match self.known.get(trace)? {
            Named::As(conversation) => Some(conversation),
            Named::NotYet | Named::Differently => None,
        }
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
        let records = std::mem::take(&mut request.records);
        let (accepted, paths) = self
            .keep(signal, records, &mut request)
            .map_err(|source| ReceiveError::NotKept { encoding, source })?;
        let why = why(&request);
        Ok(Received {
            accepted,
            rejected: request.rejected,
            unknown_fields: request.unknown_fields,
            mended: request.mended,
            paths,
            content_type: encoding.content_type(),
            body: request::answer(signal, encoding, request.rejected, &why),
        })
    }

    /// Puts the records that count behind the files of their conversations. Gives how many there are, and the files.
    fn keep(
        &self,
        signal: Signal,
        mut records: Vec<Record>,
        request: &mut Request,
    ) -> Result<(u64, Vec<PathBuf>), FileError> {
        let day = self.clock.now().strftime("%Y-%m-%d").to_string();
        // Programs send spans when they end. What came together is put in the order in which it began, parents first.
        let mut number = 0_u64;
        records.sort_by_cached_key(|record| {
            number += 1;
            (record.began, std::cmp::Reverse(number))
        });
        // Until the lines are in their files: another request may name the conversation, and has to see the file that
        // this one makes.
        let mut traces = self.traces.lock();
        let mut learned = Learned::default();
        for record in records.iter().filter(|record| record.of_a_model) {
            if let Some(trace) = &record.trace {
                traces.learn(trace, record.conversation.as_deref(), &mut learned);
            }
        }
        let sent = records.len();
        records.retain(|record| record.of_a_model || traces.counts(record.trace.as_deref()));
        let accepted = records.len();
        request.reject_many((sent - accepted) as u64, || not_of_a_model(signal));
        if records.is_empty() {
            return Ok((0, Vec::new()));
        }
        match self.append(records, &traces, &learned, &day) {
            Ok(appended) => {
                traces.shrink();
                drop(traces);
                Ok((accepted as u64, self.spool.sync(appended)?))
            }
            Err(error) => {
                traces.unlearn(learned);
                Err(error)
            }
        }
    }

    fn append(
        &self,
        records: Vec<Record>,
        traces: &Traces,
        learned: &Learned,
        day: &str,
    ) -> Result<Appended, FileError> {
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for record in records {
            let file = files.entry(name(&record, traces, day)).or_default();
            file.extend_from_slice(record.line.as_bytes());
            file.push(b'\n');
        }
        for (trace, conversation) in learned.news(traces) {
            // Spans that came before it was known are in a file of the trace. It says where the others are.
            let name = trace_name(&trace);
            if self.spool.is_there(&name)? {
                let name_of = Json::string(conversation);
                let line = format!(
                    "{{\"quipuReceived\":{{\"conversation\":{}}}}}\n",
                    name_of.get()
                );
                let file = files.entry(name).or_default();
                file.extend_from_slice(line.as_bytes());
            }
        }
        self.spool.append(files, day)
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

/// What the answer says of a request: why records were rejected, and what was passed over or mended in those that were
/// not.
fn why(request: &Request) -> String {
    let mut all = request.reasons.clone();
    let counted = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    all.extend(counted(
        request.unknown_fields,
        "field that OTLP does not have, or has once, was passed over",
        "fields that OTLP does not have, or has once, were passed over",
    ));
    all.extend(counted(
        request.mended,
        "text that is not UTF-8 was mended",
        "texts that are not UTF-8 were mended",
    ));
    all.join("; ")
}

fn not_of_a_model(signal: Signal) -> String {
    let what = signal.record();
    format!(
        "{what}: neither it nor its trace so far is of a model or an agent (attributes gen_ai.*, llm.*, openinference.*, traceloop.*, or the id of a conversation)"
    )
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
