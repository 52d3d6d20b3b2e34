//! The server, but for the sockets: a request in, an answer out.
//!
//! ```text
//! request ─► route ─► key ─► gate ─► unpack, within limits ─► digest ─► valid? ─► whose? ─► scan ─► kept
//! ```
//!
//! Whoever mounts it brings a [`Storage`], the [`Keys`] that were given out, and what to
//! [`Scan`] with; and hands over the bodies of requests as readers that fail when a request is cut off.

mod accept;
mod answer;
mod body;
mod disk;
mod gate;
mod kept;
mod memory;
mod query;
mod storage;
mod uploads;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use quipu_record::Clock;

pub use answer::Response;
pub use body::Body;
pub use disk::Disk;
pub use gate::{Pace, RateLimit};
pub use memory::Memory;
pub use storage::{Held, OpenUpload, Scanned, Storage};

use self::answer::{Answer, Problem};
use crate::Scan;
use crate::keys::{self, KeyEntry, Keys, Scope};
use crate::protocol::{Code, Encoding, Limits, Receipt, Sha256, TranscriptId};

/// A request, as far as it matters here.
pub struct Request<'a> {
    /// `PUT`, in capitals.
    pub method: &'a str,
    /// What is asked for, from `/v1`, with its query where it has one: `/v1/transcripts?limit=20`.
    pub path: &'a str,
    /// The headers. Case does not matter in names.
    pub headers: &'a [(String, String)],
    /// The body. It fails when it ends before it should.
    pub body: &'a mut dyn Read,
}

/// Neither the headers, one of which is a key, nor the body.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl<'a> Request<'a> {
    /// The path and the query.
    fn target(&self) -> (&'a str, &'a str) {
        self.path.split_once('?').unwrap_or((self.path, ""))
    }
}

impl Request<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    fn encoding(&self) -> Result<Encoding, Problem> {
        let Some(word) = self.header("content-encoding") else {
            return Ok(Encoding::Identity);
        };
        let message = "documents are sent as they are, or packed with gzip or zstd";
        Encoding::from_word(word).ok_or_else(|| Problem::new(Code::UnsupportedEncoding, message))
    }

    fn sha256(&self) -> Result<Sha256, Problem> {
        let text = self.header(crate::protocol::SHA256);
        text.and_then(|text| Sha256::parse(text).ok())
            .ok_or_else(|| {
                let message =
                    "the header transcript-sha256 has the SHA-256 of the document, in hex";
                Problem::new(Code::BadRequest, message)
            })
    }
}

/// Says who has to wait.
pub trait Gate: Send + Sync {
    /// Lets a request with this key in.
    ///
    /// # Errors
    ///
    /// It has to wait so long.
    fn admit(&self, key: &KeyEntry) -> Result<(), Duration>;
}

/// Nobody has to wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open;

impl Gate for Open {
    fn admit(&self, _key: &KeyEntry) -> Result<(), Duration> {
        Ok(())
    }
}

/// Hears what becomes of transcripts, so that what is made of them (a catalogue, a search index) follows. It is told after
/// the storage is safe, and may be told of the same thing twice. What it could not do then, it has to catch up with at the
/// next start: a process may die in between.
pub trait Taken: Send + Sync {
    /// A transcript was kept. `document` is its file, where the storage has files.
    fn kept(&self, receipt: &Receipt, document: Option<&Path>);

    /// A transcript was deleted.
    fn removed(&self, id: &TranscriptId);
}

/// Nobody listens.
impl Taken for () {
    fn kept(&self, _receipt: &Receipt, _document: Option<&Path>) {}

    fn removed(&self, _id: &TranscriptId) {}
}

/// A server.
pub struct Service<S, C> {
    storage: S,
    clock: C,
    keys: Box<dyn Keys>,
    scan: Box<dyn Scan>,
    gate: Box<dyn Gate>,
    taken: Box<dyn Taken>,
    limits: Limits,
    /// Held while it is decided whether one more upload may begin.
    beginning: Mutex<()>,
}

impl<S, C> fmt::Debug for Service<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<S: Storage, C: Clock> Service<S, C> {
    /// A server that takes what the default limits allow, from anyone with a key, at any pace.
    pub fn new(storage: S, clock: C, keys: Box<dyn Keys>, scan: Box<dyn Scan>) -> Self {
        Self {
            storage,
            clock,
            keys,
            scan,
            gate: Box::new(Open),
            taken: Box::new(()),
            limits: Limits::default(),
            beginning: Mutex::new(()),
        }
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With someone at the door.
    #[must_use]
    pub fn with_gate(mut self, gate: Box<dyn Gate>) -> Self {
        self.gate = gate;
        self
    }

    /// With someone who hears what becomes of transcripts.
    #[must_use]
    pub fn with_taken(mut self, taken: Box<dyn Taken>) -> Self {
        self.taken = taken;
        self
    }

    /// Where things are kept.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Answers a request.
    pub fn handle(&self, mut request: Request<'_>) -> Response {
        match self.route(&mut request) {
            Ok(response) => response,
            Err(problem) => problem.into(),
        }
    }

    fn route(&self, request: &mut Request<'_>) -> Answer {
        let (path, _) = request.target();
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let method = request.method;
        match (segments.as_slice(), method) {
            (["v1", "limits"], "GET") => Ok(Response::json(200, &self.limits)),
            (["v1", "keys", "self"], "GET") => self.own_key(request),
            (["v1", "submitters"], "GET") => self.submitters(request),
            (["v1", "transcripts"], "GET") => self.list(request),
            (["v1", "transcripts", id], "PUT") => self.put(id, request),
            (["v1", "transcripts", id], "GET") => self.receipt(id, request),
            (["v1", "transcripts", id], "DELETE") => self.delete(id, request),
            (["v1", "transcripts", id, "document"], "GET") => self.document(id, request),
            (["v1", "uploads"], "POST") => self.begin(request),
            (["v1", "uploads", id], "HEAD") => self.offset(id, request),
            (["v1", "uploads", id], "PATCH") => self.append(id, request),
            (["v1", "uploads", id], "DELETE") => self.abandon(id, request),
            (
                ["v1", "limits" | "submitters" | "transcripts"]
                | ["v1", "keys", "self"]
                | ["v1", "transcripts", _, "document"],
                _,
            ) => Err(Problem::method("GET")),
            (["v1", "transcripts", _], _) => Err(Problem::method("GET, PUT, DELETE")),
            (["v1", "uploads"], _) => Err(Problem::method("POST")),
            (["v1", "uploads", _], _) => Err(Problem::method("HEAD, PATCH, DELETE")),
            _ => Err(Problem::new(
                Code::NotFound,
                "there is nothing at this address",
            )),
        }
    }

    /// Whose request it is.
    fn key(&self, request: &Request<'_>) -> Result<KeyEntry, Problem> {
        let entry = keys::authenticate(&*self.keys, request.header("authorization"))?;
        self.gate.admit(&entry).map_err(|wait| {
            let message = "too many requests with this key; Retry-After says when to try again";
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            Problem::new(Code::TooManyRequests, message).header("Retry-After", seconds.to_string())
        })?;
        Ok(entry)
    }

    /// Whose request it is, when that key may submit.
    fn submitting_key(&self, request: &Request<'_>) -> Result<KeyEntry, Problem> {
        let key = self.key(request)?;
        keys::allow(&key, Scope::Submit)?;
        Ok(key)
    }

    fn put(&self, id: &str, request: &mut Request<'_>) -> Answer {
        let key = self.submitting_key(request)?;
        let id = transcript_id(id)?;
        let kind = request.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let message = "a transcript is application/json";
            return Err(Problem::new(Code::UnsupportedEncoding, message));
        }
        let (encoding, sha256) = (request.encoding()?, request.sha256()?);
        let length: Option<u64> = request
            .header("content-length")
            .and_then(|it| it.parse().ok());
        if length.is_some_and(|length| length > self.limits.encoded_bytes) {
            return Err(Problem::too_large(
                "encodedBytes",
                self.limits.encoded_bytes,
            ));
        }
        self.accept(&key, &id, encoding, sha256, &mut *request.body)
    }
}

fn transcript_id(id: &str) -> Result<TranscriptId, Problem> {
    TranscriptId::parse(id).map_err(|error| Problem::new(Code::BadRequest, error.to_string()))
}
