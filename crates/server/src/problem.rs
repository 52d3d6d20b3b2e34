//! Errors as RFC 9457 has them: `application/problem+json`, with what to do about it.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use quipu_api::serve::QueryProblem;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong with a request, and what to do about it.
// The document of `quipu doctor` has problems of another kind, which has the name already.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = HttpProblem)]
pub struct Problem {
    /// The kind of problem: a short word for programs, such as `not_found`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status of the answer.
    status: u16,
    /// The kind of problem, for people.
    title: &'static str,
    /// What is wrong with this request.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The parameter or field that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    parameter: Option<Box<str>>,
    /// The place in the parameter, in bytes: from, and up to. Both are the same where something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<[u64; 2]>)]
    at: Option<Box<[u64; 2]>>,
    #[serde(skip)]
    #[schema(ignore)]
    headers: Option<Box<HeaderMap>>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.title, self.detail)
    }
}

impl std::error::Error for Problem {}

/// The most bytes of a detail.
const LONGEST: usize = 1000;

impl Problem {
    /// A problem of this kind.
    pub fn new(status: StatusCode, kind: &'static str, title: &'static str) -> Self {
        Self {
            kind,
            status: status.as_u16(),
            title,
            detail: String::new(),
            hint: None,
            parameter: None,
            at: None,
            headers: None,
        }
    }

    /// With what is wrong.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        // It may repeat what was sent, which may be long.
        if detail.len() > LONGEST {
            let whole = (0..=LONGEST).rev().find(|at| detail.is_char_boundary(*at));
            detail.truncate(whole.unwrap_or(0));
            detail.push('…');
        }
        self.detail = detail;
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// About this parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>) -> Self {
        self.parameter = Some(name.into().into());
        self
    }

    /// At this place in the parameter, in bytes.
    #[must_use]
    pub fn at(mut self, place: std::ops::Range<usize>) -> Self {
        self.at = Some(Box::new([place.start as u64, place.end as u64]));
        self
    }

    /// What is wrong with a query, where this is about one.
    pub(crate) fn of_query(&self, parameter: &str) -> Option<QueryProblem> {
        if self.parameter.as_deref() != Some(parameter) {
            return None;
        }
        let begin = format!("{parameter}: ");
        let detail = self.detail.strip_prefix(&begin).unwrap_or(&self.detail);
        Some(QueryProblem {
            detail: detail.to_owned(),
            hint: self.hint.clone(),
            at: self.at.as_deref().copied(),
        })
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        let headers = self.headers.get_or_insert_default();
        headers.insert(name, value);
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// A parameter does not mean anything.
    pub fn bad_parameter(name: impl Into<String>, why: impl fmt::Display) -> Self {
        let name = name.into();
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad_parameter",
            "A parameter is wrong",
        )
        .detail(format!("{name}: {why}"))
        .parameter(name)
    }

    /// The request cannot be understood.
    pub fn bad_request(why: impl fmt::Display) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            "The request is wrong",
        )
        .detail(why.to_string())
    }

    /// There is no such thing.
    pub fn not_found(what: impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found").detail(what.to_string())
    }

    /// Something else is there, or is going on.
    pub fn conflict(why: impl fmt::Display) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "Conflict").detail(why.to_string())
    }

    /// Nobody said who asks.
    pub fn unauthorized(why: impl fmt::Display) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "A key or token is needed",
        )
        .detail(why.to_string())
        .header(
            http::header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer"),
        )
    }

    /// Whoever asks may not.
    pub fn forbidden(why: impl fmt::Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed").detail(why.to_string())
    }

    /// The body is larger than is taken.
    pub fn too_large(most: u64) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "Too large")
            .detail(format!("at most {most} bytes are accepted here"))
    }

    /// The server has too much to do.
    pub fn busy(why: impl fmt::Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Busy")
            .detail(why.to_string())
            .hint("try again in a moment")
            .header(http::header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The store refused: I/O, a lock, damage. `why` names files of the home, and no content.
    pub fn store(why: impl fmt::Display) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store",
            "The archive cannot be used",
        )
        .detail(why.to_string())
        .hint("`quipu doctor` says what is damaged and how to mend it")
    }

    /// A defect of the server. What happened is in its log, not in the answer.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "The server failed",
        )
        .detail("the server's log says why")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.extend(self.headers.map(|own| *own).unwrap_or_default());
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.insert(
            http::header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        );
        response
    }
}

impl From<quipu_store::catalogue::CatalogueError> for Problem {
    fn from(error: quipu_store::catalogue::CatalogueError) -> Self {
        Self::store(error)
    }
}

impl From<quipu_store::import::ImportError> for Problem {
    fn from(error: quipu_store::import::ImportError) -> Self {
        use quipu_store::import::ImportError;
        match error {
            ImportError::Busy(_) => Self::conflict("another import is at work"),
            error @ ImportError::NotKept(_) => Self::not_found(error),
            error => Self::store(error),
        }
    }
}

impl From<quipu_store::events::Fault> for Problem {
    fn from(error: quipu_store::events::Fault) -> Self {
        Self::store(error)
    }
}

impl From<quipu_store::catalogue::NotFound> for Problem {
    fn from(error: quipu_store::catalogue::NotFound) -> Self {
        use quipu_store::catalogue::NotFound;
        match error {
            NotFound::Catalogue(error) => error.into(),
            error @ NotFound::Several(..) => Self::new(
                StatusCode::BAD_REQUEST,
                "ambiguous",
                "Several transcripts are meant",
            )
            .detail(error.to_string())
            .hint("give more characters of the id"),
            error => Self::not_found(error),
        }
    }
}
