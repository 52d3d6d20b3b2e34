//! What a server answers.

use std::fmt;
use std::io;

use serde::Serialize;

use super::Body;
use crate::protocol::{Code, Deletion, Finding, Limit, Refusal};

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// `200`
    pub status: u16,
    /// Headers, beside the length of the body.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, a document, or nothing.
    pub body: Body,
}

impl Response {
    pub(super) fn json(status: u16, value: &impl Serialize) -> Self {
        let headers = vec![("Content-Type", "application/json".to_owned())];
        // What is serialised here are structs of texts and numbers, which cannot fail.
        let body = serde_json::to_vec(value).unwrap_or_default();
        Self {
            status,
            headers,
            body: Body::Bytes(body),
        }
    }

    pub(super) fn with_body(status: u16, body: Body) -> Self {
        Self {
            body,
            ..Self::empty(status)
        }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::default(),
        }
    }

    #[must_use]
    pub(super) fn header(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

/// What becomes of a request: an answer, either way.
pub(super) type Answer = Result<Response, Problem>;

/// A refusal and the headers that go with it.
#[derive(Debug)]
pub(super) struct Problem(Box<(Refusal, Vec<(&'static str, String)>)>);

impl Problem {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new((Refusal::new(code, message), Vec::new())))
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.1.push((name, value.into()));
        self
    }

    pub(super) fn with(mut self, findings: impl IntoIterator<Item = Finding>, more: u64) -> Self {
        self.0.0 = self.0.0.with(findings);
        self.0.0.more += more;
        self
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let message = format!("only {allowed} can be asked for here");
        Self::new(Code::MethodNotAllowed, message).header("Allow", allowed)
    }

    pub(super) fn too_large(name: &str, bytes: u64) -> Self {
        let message = format!("at most {bytes} bytes are taken ({name})");
        let mut problem = Self::new(Code::TooLarge, message);
        let name = name.to_owned();
        problem.0.0.limit = Some(Limit { name, bytes });
        problem
    }

    /// The server failed. Why is its own affair.
    pub(super) fn internal() -> Self {
        Self::new(Code::Internal, "the server failed; try again later")
    }

    /// It was deleted, which is told to whoever may know.
    pub(super) fn gone(deletion: Deletion) -> Self {
        let mut problem = Self::new(Code::Gone, "this transcript was deleted");
        problem.0.0.deletion = Some(Box::new(deletion));
        problem
    }

    pub(super) fn code(&self) -> Code {
        self.0.0.code
    }
}

/// Of the storage: what comes of the request is told apart before.
impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                let message = "the server has no room left; nothing was kept";
                Self::new(Code::InsufficientStorage, message)
            }
            _ => Self::internal(),
        }
    }
}

/// The header belongs to every answer that asks for a key.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let mut headers = Vec::new();
        if refusal.code == Code::Unauthorized {
            headers.push(("WWW-Authenticate", "Bearer".to_owned()));
        }
        Self(Box::new((refusal, headers)))
    }
}

impl From<Problem> for Response {
    fn from(problem: Problem) -> Self {
        let (refusal, headers) = *problem.0;
        let mut response = Self::json(refusal.code.status(), &refusal);
        response.headers.extend(headers);
        response
    }
}
