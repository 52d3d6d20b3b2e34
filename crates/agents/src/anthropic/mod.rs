//! The Messages interface of Anthropic, as it goes over the wire.
//!
//! A recorded body, a recorded stream of server-sent events, or the payloads of such a stream one a line;
//! also the bodies of requests, and pairs of a request and its response. There is no session here: the
//! first message's id stands for it.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Anthropic;

pub(crate) const BODY: Dialect = Dialect {
    name: "anthropic-body",
    brand: "anthropic",
    framing: Framing::Document,
};
pub(crate) const SSE: Dialect = Dialect {
    name: "anthropic-sse",
    brand: "anthropic",
    framing: Framing::Sse,
};
pub(crate) const CHUNKS: Dialect = Dialect {
    name: "anthropic-chunks",
    brand: "anthropic",
    framing: Framing::Lines,
};

impl Family for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
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
            Some(saved) => Box::new(state::load::<normalize::Messages>(saved)?),
            None => Box::new(normalize::Messages::default()),
        })
    }
}
