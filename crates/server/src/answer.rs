//! Answers: JSON with an `ETag`, and those that are kept in memory.

use std::collections::HashMap;
use std::collections::VecDeque;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use serde::Serialize;
use twox_hash::XxHash3_64;

use crate::problem::Problem;

/// What an answer is known by. Weak, since the same answer may be packed in several ways.
pub(crate) fn etag(bytes: &[u8]) -> HeaderValue {
    // Nobody gains by making two answers look the same to a client that asks for both.
    let hash = XxHash3_64::oneshot(bytes);
    let text = format!("W/\"{:x}-{hash:016x}\"", bytes.len());
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
}

/// Whether the client has this answer already.
pub(crate) fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let opaque = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    let Ok(own) = etag.to_str().map(opaque) else {
        return false;
    };
    headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        let text = value.to_str().unwrap_or_default();
        text.trim() == "*" || text.split(',').any(|one| opaque(one) == own)
    })
}

/// An answer whose bytes are known.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) body: Bytes,
    pub(crate) etag: HeaderValue,
    pub(crate) kind: HeaderValue,
}

/// The type of JSON documents.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Ready {
    /// A document.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_vec(value).map_err(|_| Problem::internal())?;
        Ok(Self::bytes(body, JSON))
    }

    /// Bytes of some type.
    pub(crate) fn bytes(body: impl Into<Bytes>, kind: HeaderValue) -> Self {
        let body = body.into();
        Self {
            etag: etag(&body),
            body,
            kind,
        }
    }

    /// The answer, or that the client has it already.
    pub(crate) fn respond(&self, headers: &HeaderMap) -> Response {
        // What is there may change at any time; asking again is cheap.
        const AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
        let mut response = if is_known(headers, &self.etag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let mut response = Response::new(self.body.clone().into());
            response
                .headers_mut()
                .insert(CONTENT_TYPE, self.kind.clone());
            response
        };
        let to = response.headers_mut();
        to.insert(ETAG, self.etag.clone());
        to.insert(CACHE_CONTROL, AGAIN);
        response
    }
}

/// A document that answers a request.
pub(crate) fn json(value: &impl Serialize, headers: &HeaderMap) -> Result<Response, Problem> {
    Ok(Ready::json(value)?.respond(headers))
}

/// Answers by what was asked for, as many as there is room for. The oldest give way.
#[derive(Debug)]
pub(crate) struct Cache {
    room: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<String, Entry, FxBuildHasher>,
    /// Keys in the order in which they came.
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    version: u64,
    ready: Ready,
}

/// What an entry takes beside its body and twice its key.
const OVERHEAD: usize = 256;

impl Cache {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            kept: Mutex::default(),
        }
    }

    /// The answer to a question, if it was kept and is of this version.
    pub(crate) fn get(&self, question: &str, version: u64) -> Option<Ready> {
        let kept = self.kept.lock();
        let entry = kept.answers.get(question)?;
        (entry.version == version).then(|| entry.ready.clone())
    }

    /// Keeps an answer, if there is room for it at all.
    pub(crate) fn put(&self, question: &str, version: u64, ready: &Ready) {
        let size = |question: &str, ready: &Ready| ready.body.len() + 2 * question.len() + OVERHEAD;
        let own = size(question, ready);
        if own > self.room / 8 {
            return;
        }
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        let ready = ready.clone();
        match kept
            .answers
            .insert(question.to_owned(), Entry { version, ready })
        {
            Some(before) => kept.bytes -= size(question, &before.ready),
            None => kept.order.push_back(question.to_owned()),
        }
        kept.bytes += own;
        while kept.bytes > self.room {
            let Some(oldest) = kept.order.pop_front() else {
                break;
            };
            if let Some(gone) = kept.answers.remove(&oldest) {
                kept.bytes -= size(&oldest, &gone.ready);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(text: &str) -> Ready {
        Ready::bytes(text.to_owned(), JSON)
    }

    #[test]
    fn answers_give_way_and_old_versions_do_not_count() {
        let cache = Cache::new(16 << 10);
        cache.put("a", 1, &ready("one"));
        assert!(cache.get("a", 1).is_some() && cache.get("a", 2).is_none());
        cache.put("a", 2, &ready("two"));
        assert_eq!(cache.get("a", 2).unwrap().body, "two");
        for n in 0..100 {
            cache.put(&format!("filler {n}"), 1, &ready(&"x".repeat(1000)));
        }
        assert!(cache.get("a", 2).is_none());
        assert!(cache.get("filler 99", 1).is_some());
        assert!(cache.kept.lock().bytes <= 16 << 10);
        cache.put("huge", 1, &ready(&"x".repeat(10_000)));
        assert!(cache.get("huge", 1).is_none());
    }

    #[test]
    fn a_client_that_has_the_answer_is_told_so() {
        let ready = ready("{}");
        let tag = ready.etag.to_str().unwrap().to_owned();
        let asked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, value.parse().unwrap());
            ready.respond(&headers).status()
        };
        for value in [
            tag.as_str(),
            "*",
            &format!("\"other\", {tag}"),
            tag.trim_start_matches("W/"),
        ] {
            assert_eq!(asked(value), StatusCode::NOT_MODIFIED, "{value}");
        }
        for value in ["\"other\"", "", "W/"] {
            assert_eq!(asked(value), StatusCode::OK, "{value}");
        }
    }
}
