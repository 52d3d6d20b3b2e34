//! The Responses interface of `OpenAI`.
//!
//! A recorded body, a recorded stream of server-sent events, or the payloads of such a stream one a line;
//! also the bodies of requests, and pairs of a request and its response. A stream says everything twice:
//! in pieces, and as whole items at their end. The items are what is read.

mod discover;
mod items;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct OpenAiResponses;

pub(crate) const BODY: Dialect = Dialect {
    name: "openai-responses-body",
    brand: "openai",
    framing: Framing::Document,
};
pub(crate) const SSE: Dialect = Dialect {
    name: "openai-responses-sse",
    brand: "openai",
    framing: Framing::Sse,
};
pub(crate) const CHUNKS: Dialect = Dialect {
    name: "openai-responses-chunks",
    brand: "openai",
    framing: Framing::Lines,
};

impl Family for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai_responses"
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
            Some(saved) => Box::new(state::load::<normalize::Responses>(saved)?),
            None => Box::new(normalize::Responses::default()),
        })
    }
}
