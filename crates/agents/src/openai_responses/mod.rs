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

use crate::{Dialect, Family, Framing};

/// See the module.
pub(crate) struct OpenAiResponses;

pub(crate) const BODY: Dialect = Dialect::document("openai-responses-body", "openai");
pub(crate) const SSE: Dialect = Dialect::framed("openai-responses-sse", "openai", Framing::Sse);
pub(crate) const CHUNKS: Dialect = Dialect::lines("openai-responses-chunks", "openai");

impl Family for OpenAiResponses {
    crate::family::known!("openai_responses", [BODY, SSE, CHUNKS]);
    crate::family::opened!(_dialect, _origin => normalize::Responses::default());
}
