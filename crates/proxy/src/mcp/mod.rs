//! A tee between an agent and an MCP server on standard input and output.
//!
//! Bytes are passed on as they come, untouched, in both directions; copies of them are read. Nothing that is wrong with
//! a copy (a line that is not JSON, that is too long, that nobody asked for) changes what passes. MCP on standard input
//! and output is one JSON-RPC message a line; the framing with `Content-Length` that language servers use is not MCP
//! and is passed on as lines that are not messages.
//!
//! | module | |
//! |---|---|
//! | `tee` | the bytes |
//! | `lines` | copies of bytes, cut into lines |
//! | `conversation` | lines, understood: calls and their results by id |
//! | `record` | what was understood, in a run's transcript |
//! | `matching` | calls that an agent's own stream reports as well, counted once |

mod conversation;
mod lines;
mod matching;
mod record;
mod tee;

#[cfg(test)]
mod tests;

pub use conversation::{Call, Conversation, Seen, Side};
pub use lines::{Line, Lines};
pub use matching::Matcher;
pub use record::Recording;
pub use tee::{TeeError, tee};

/// Takes what was understood of what passes, in order.
pub trait Observer: Send {
    /// Something passed.
    fn seen(&mut self, seen: &Seen<'_>);
}

impl<F: FnMut(&Seen<'_>) + Send> Observer for F {
    fn seen(&mut self, seen: &Seen<'_>) {
        self(seen);
    }
}
