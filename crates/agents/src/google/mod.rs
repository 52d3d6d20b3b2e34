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

use crate::{Dialect, Family, Framing};

/// See the module.
pub(crate) struct Google;

pub(crate) const BODY: Dialect = Dialect::document("google-body", "google");
pub(crate) const SSE: Dialect = Dialect::framed("google-sse", "google", Framing::Sse);
pub(crate) const CHUNKS: Dialect = Dialect::lines("google-chunks", "google");

impl Family for Google {
    crate::family::known!("google", [BODY, SSE, CHUNKS]);
    crate::family::opened!(_dialect, _origin => normalize::Generated::default());
}
