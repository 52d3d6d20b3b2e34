//! Errors as Flow Studio has them: `{"error": …}` with a hint, and `{"detail": …}` where `FastAPI` itself answers.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// What went wrong with a request.
#[derive(Debug)]
pub(super) struct Fault {
    status: StatusCode,
    body: Map<String, Value>,
    /// Boxed, so that what can fail stays small.
    headers: Box<HeaderMap>,
}

/// What a handler gives.
pub(super) type Answered = Result<Response, Fault>;

impl Fault {
    /// An error of a status, in words.
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let mut body = Map::new();
        body.insert("error".to_owned(), Value::String(error.into()));
        Self {
            status,
            body,
            headers: Box::default(),
        }
    }

    /// With another field.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body.insert(name.to_owned(), value.into());
        self
    }

    /// With what to do about it.
    #[must_use]
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        self.with("hint", hint.into())
    }

    /// What is asked for does not exist.
    pub(super) fn missing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// The run is not known.
    pub(super) fn no_run(id: &str) -> Self {
        Self::missing(format!("Run '{id}' not found")).hint("GET /api/runs lists the runs")
    }

    /// The request cannot be understood.
    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// A file of the run cannot be read.
    pub(super) fn unreadable(what: &str, why: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("Failed to read {what}: {why}"),
        )
    }

    /// A file is larger than this route gives.
    pub(super) fn too_large(what: &str, most: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The {what} has more than {most} bytes"),
        )
    }

    /// No route has this path.
    pub(super) fn no_route() -> Self {
        Self::detail(StatusCode::NOT_FOUND, "Not Found")
    }

    /// What `FastAPI` itself says.
    pub(super) fn detail(status: StatusCode, detail: &str) -> Self {
        let mut body = Map::new();
        body.insert("detail".to_owned(), detail.into());
        Self {
            status,
            body,
            headers: Box::default(),
        }
    }

    /// A parameter of the query has another type than it should.
    pub(super) fn invalid(kind: &str, parameter: &str, message: &str, input: &str) -> Self {
        let mut body = Map::new();
        let one = json!({
            "type": kind,
            "loc": ["query", parameter],
            "msg": message,
            "input": input,
        });
        body.insert("detail".to_owned(), Value::Array(vec![one]));
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            body,
            headers: Box::default(),
        }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let said = serde_json::to_value(&problem).unwrap_or_default();
        let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
        let error = text("detail").or_else(|| text("title"));
        let mut fault = Self::new(problem.status(), error.unwrap_or_default());
        if let Some(hint) = text("hint") {
            fault = fault.hint(hint);
        }
        // Such as when to come back.
        *fault.headers = problem.into_response().headers().clone();
        fault
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        let length = headers.get(http::header::CONTENT_LENGTH).cloned();
        headers.extend(*self.headers);
        match length {
            Some(length) => headers.insert(http::header::CONTENT_LENGTH, length),
            None => headers.remove(http::header::CONTENT_LENGTH),
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
