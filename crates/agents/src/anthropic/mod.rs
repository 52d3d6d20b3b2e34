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

use crate::{Dialect, Family, Framing};

/// See the module.
pub(crate) struct Anthropic;

pub(crate) const BODY: Dialect = Dialect::document("anthropic-body", "anthropic");
pub(crate) const SSE: Dialect = Dialect::framed("anthropic-sse", "anthropic", Framing::Sse);
pub(crate) const CHUNKS: Dialect = Dialect::lines("anthropic-chunks", "anthropic");

impl Family for Anthropic {
    crate::family::known!("anthropic", [BODY, SSE, CHUNKS]);
    crate::family::opened!(_dialect, _origin => normalize::Messages::default());
}
