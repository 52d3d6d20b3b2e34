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

use crate::{Dialect, Family, Framing};

/// See the module.
pub(crate) struct OpenAiChat;

pub(crate) const BODY: Dialect = Dialect::document("openai-chat-body", "openai");
pub(crate) const SSE: Dialect = Dialect::framed("openai-chat-sse", "openai", Framing::Sse);
pub(crate) const CHUNKS: Dialect = Dialect::lines("openai-chat-chunks", "openai");

impl Family for OpenAiChat {
    crate::family::known!("openai_chat", [BODY, SSE, CHUNKS]);
    crate::family::opened!(_dialect, _origin => normalize::Completions::default());
}
