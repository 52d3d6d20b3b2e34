//! The Chat Completions interface of `OpenAI`, and of the many that copied it.
//!
//! A recorded body, a recorded stream of server-sent events, or the payloads of such a stream one a line;
//! also the bodies of requests, and pairs of a request and its response. Vendors differ in where the
//! reasoning stands, in where and how often usage comes, and in whether calls have ids.
//!
//! How a message of this kind reads ([`message`]) is also used for the logs of agents that keep their
//! conversations in it.

mod discover;
pub(crate) mod message;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct OpenAiChat;

pub(crate) const BODY: Dialect = Dialect {
    name: "openai-chat-body",
    brand: "openai",
    framing: Framing::Document,
};
pub(crate) const SSE: Dialect = Dialect {
    name: "openai-chat-sse",
    brand: "openai",
    framing: Framing::Sse,
};
pub(crate) const CHUNKS: Dialect = Dialect {
    name: "openai-chat-chunks",
    brand: "openai",
    framing: Framing::Lines,
};

impl Family for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
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
            Some(saved) => Box::new(state::load::<normalize::Completions>(saved)?),
            None => Box::new(normalize::Completions::default()),
        })
    }
}
