//! The exchange transcript: append-only JSONL, one event per line, closed vocabulary.
//!
//! ```text
//! {"seq":1,"run_id":"…","type":"run.started","path":"","iteration":0,"timestamp":"…Z","payload":null}
//!  │        │  ├ parent_run_id, child_run_id: only where there is one
//!  │        └ the run, and the file's name
//!  └ line N has seq N
//! ```
//!
//! The writer is strict: it can only express the vocabulary, keys stand in the order of the
//! specification, times are UTC, every event is one line. The reader is tolerant: blank lines, CR LF,
//! a byte order mark, two objects on a line, raw NUL bytes, invalid UTF-8, a line cut off at the end
//! or in the middle are all read through and reported.
//!
//! # Invariants
//!
//! * `decode(encode(event)) == event`, for every event, but for what [`LOSSES`] says of missing values.
//! * Every byte of an input is in an [`Item`], or is a blank line that was counted.
//! * No input makes the reader hold more than one line, recurse, or stop.
//!
//! # What it cannot carry
//!
//! See [`LOSSES`]. What other sources know of an event travels in additive fields behind `payload`:
//! `native_id`, `parent_id`, `subagent_id`, `model`, `usage` (`input`, `cache_read`, `cache_write`,
//! `cache_write_1h`, `output`, `reasoning`), `cost_usd`, `model_call`, `stop_reason`, `duration_ms`, `status`, `child`,
//! `attachments` (`mime`, `bytes`, `sha256`), `source` (`file`, `offset`, `line`), `extra` (an object of fields that
//! have no place of their own), `flags`. Kinds of events that the vocabulary has no type for are carried by lines of
//! types that it has, with `as` and `event` (`kinds.rs`); `iterations` and `attempt` say more of a place than
//! `iteration` does. A line that a recorder wrote ends with its checksum, `check` ([`Chain`]).
//!
//! `docs/formats/exchange.md` is the format for people: every event, what a reader must tolerate, versions.

mod decode;
mod draft;
mod encode;
mod kinds;
pub mod lines;
mod problem;
mod reader;
mod rules;
mod scan;
mod seal;
mod surrogate;
pub mod verify;

#[cfg(test)]
mod tests;

pub use decode::{decode_text, probe};
pub use draft::{Request, parse_draft};
pub use encode::{Escapes, Template, encode, encode_log, write_timestamp};
pub use kinds::{fields_json, from_fields, sentence};
pub use problem::{Closed, Fault, Position, Warning};
pub use reader::{Bad, Decoded, Found, Item, Reader};
pub use scan::{Scan, Shape};
pub use seal::{Chain, SealProblem};
pub use surrogate::mend_surrogates;

/// What of the model has no place in this format.
pub const LOSSES: &[&str] = &[
    "header: origin, environment and title have no line of their own",
    "timestamp: the zone a time was written in; times are UTC",
    "text: an empty text, thinking, command or chunk and a missing one are the same",
    "error: an empty one and none are the same",
    "tool.call, tool.result: an input or output of null and none are the same",
];
