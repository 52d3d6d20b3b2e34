//! The interface of Google's Gemini, as it goes over the wire.
//!
//! A recorded body, a recorded stream of server-sent events or a streamed list, or the payloads of such a
//! stream one a line; also the bodies of requests, and pairs of a request and its response. Every chunk
//! of a stream has the shape of a whole response. Arguments of calls may come in pieces, each with the
//! path of the value it is a piece of.

mod args;
mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Google;

pub(crate) const BODY: Dialect = Dialect {
    name: "google-body",
    brand: "google",
    framing: Framing::Document,
};
pub(crate) const SSE: Dialect = Dialect {
    name: "google-sse",
    brand: "google",
    framing: Framing::Sse,
};
pub(crate) const CHUNKS: Dialect = Dialect {
    name: "google-chunks",
    brand: "google",
    framing: Framing::Lines,
};

impl Family for Google {
    fn name(&self) -> &'static str {
        "google"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[BODY, SSE, CHUNKS]
    }

    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Generated>(saved)?),
            None => Box::new(normalize::Generated::default()),
        })
    }
}
