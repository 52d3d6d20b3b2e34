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
mod memory;
mod storage;
mod uploads;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Read;
use std::time::Duration;

use quipu_record::Clock;

pub use answer::Response;
pub use memory::Memory;
pub use storage::{OpenUpload, Storage};

use self::answer::{Answer, Problem};
use crate::Scan;
use crate::keys::{KeyEntry, Keys, Refused, SecretKey};
use crate::protocol::{Code, Encoding, Limits, Sha256, TranscriptId};

/// A request, as far as it matters here.
pub struct Request<'a> {
    /// `PUT`, in capitals.
    pub method: &'a str,
    /// What is asked for, from `/v1`, without a query.
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

/// A server.
pub struct Service<S, C> {
    storage: S,
    clock: C,
    keys: Box<dyn Keys>,
    scan: Box<dyn Scan>,
    gate: Box<dyn Gate>,
    limits: Limits,
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
            limits: Limits::default(),
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
        let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        let method = request.method;
        match (segments.as_slice(), method) {
            (["v1", "limits"], "GET") => Ok(Response::json(200, &self.limits)),
            (["v1", "transcripts", id], "PUT") => self.put(id, request),
            (["v1", "transcripts", id], "GET") => self.receipt(id, request),
            (["v1", "uploads"], "POST") => self.begin(request),
            (["v1", "uploads", id], "HEAD") => self.offset(id, request),
            (["v1", "uploads", id], "PATCH") => self.append(id, request),
            (["v1", "uploads", id], "DELETE") => self.abandon(id, request),
            (["v1", "limits"], _) => Err(Problem::method("GET")),
            (["v1", "transcripts", _], _) => Err(Problem::method("GET, PUT")),
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
        let presented = request.header("authorization").and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            let is_bearer = scheme.eq_ignore_ascii_case("bearer");
            SecretKey::parse(key).ok().filter(|_| is_bearer)
        });
        let unknown = || {
            let message = "a submission key is needed: Authorization: Bearer qk_…";
            let problem = Problem::new(Code::Unauthorized, message);
            problem.header("WWW-Authenticate", "Bearer")
        };
        let entry = match self.keys.check(&presented.ok_or_else(unknown)?) {
            Ok(entry) => entry,
            Err(Refused::Unknown) => return Err(unknown()),
            Err(refused @ Refused::Revoked(_)) => {
                return Err(Problem::new(Code::Revoked, refused.to_string()));
            }
            Err(Refused::Unavailable) => return Err(Problem::internal()),
        };
        self.gate.admit(&entry).map_err(|wait| {
            let message = "too many requests with this key; it is said when to try again";
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            Problem::new(Code::TooManyRequests, message).header("Retry-After", seconds.to_string())
        })?;
        Ok(entry)
    }

    fn receipt(&self, id: &str, request: &Request<'_>) -> Answer {
        let key = self.key(request)?;
        let id = transcript_id(id)?;
        let receipt = self.storage.receipt(&id)?;
        // What is another's is not there.
        match receipt.filter(|receipt| receipt.key_id == key.key_id()) {
            Some(receipt) => Ok(Response::json(200, &receipt)),
            None => Err(Problem::new(
                Code::NotFound,
                "no such transcript came with this key",
            )),
        }
    }

    fn put(&self, id: &str, request: &mut Request<'_>) -> Answer {
        let key = self.key(request)?;
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
