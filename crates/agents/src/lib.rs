//! Where each agent keeps its logs, and how they read.
//!
//! An agent's log is a private format that changes without notice. This crate turns any of them into the
//! events of `quipu-model`. There is one module per *family* of agents whose logs are alike, each with
//! the same files: `mod.rs` (what it is), `discover.rs` (where it is), `wire.rs` (what stands in it),
//! `normalize.rs` (what that means), `tests.rs`.
//!
//! # What it promises
//!
//! * **The format is decided from content** ([`sniff`]). Where that leaves a doubt, the agent in whose place
//!   a log lies decides, and that is said ([`recognise()`]).
//! * **Every record is accounted for.** It becomes events, or notes, or is dropped for a reason that is
//!   counted ([`Ledger`]); what an adapter makes nothing of becomes a note that keeps the record.
//! * **Order is the order of the log.** Sequence numbers are given as records come; times are not
//!   looked at.
//! * **Reading can stop anywhere and go on.** Reading a log in pieces, with a [`Checkpoint`] between any
//!   two, gives what reading it at once gives.
//! * **Usage is counted once per call to a model**, in disjoint buckets.
//! * **What is not known is said** ([`Drift`]).
//! * **Nothing is opened here.** Bytes are brought; no file, lock or side file of an agent is touched.
//!
//! # An example
//!
//! ```
//! use quipu_agents::{Collect, Feed, Origin, sniff};
//!
//! let log = br#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"hello"}}
//! {"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s1","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":3,"output_tokens":1}}}
//! "#;
//! let (family, dialect) = quipu_agents::identify(log, true).expect("a log that is known");
//! assert_eq!(dialect.brand, "claude-code");
//!
//! let origin = Origin { path: "session.jsonl".as_ref(), part: None };
//! let reader = family.open(&dialect, &origin, None).expect("from the beginning");
//! let mut feed = Feed::new(dialect.framing, reader);
//! let mut events = Collect::default();
//! feed.push(log, &mut events);
//! feed.finish(&mut events)?;
//! assert_eq!(feed.session().id.as_deref(), Some("s1"));
//! let words: Vec<&str> = events.events.iter().map(|event| event.body.type_word()).collect();
//! assert_eq!(words, ["message.user", "message.assistant"]);
//! # Ok::<(), quipu_agents::FeedError>(())
//! ```

mod about;
mod bounds;
mod calls;
mod capture;
mod collect;
mod common;
mod cost;
mod drift;
mod entry;
mod extra;
mod family;
mod feed;
mod head;
pub mod history;
mod host;
pub mod kept;
mod ledger;
mod marks;
mod out;
mod recognise;
mod registry;
pub mod rows;
mod session;
pub mod state;
mod summary;
pub mod time;

mod blocks;

mod acp;
mod agentlog;
mod aider;
mod amp;
mod anthropic;
mod atif;
mod chat;
mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod entire;
mod exchange;
mod flow;
mod gemini;
mod google;
mod goose;
mod inspect;
mod kimi;
mod kiro;
mod normalized;
mod omnigent;
mod openai_chat;
mod openai_responses;
mod opencode;
mod otlp;
mod pi;
mod qwen;
mod sts;
mod texts;
mod zed;

#[cfg(test)]
mod corpus;
#[cfg(all(test, debug_assertions))]
mod fields;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod handover;
#[cfg(test)]
mod testkit;

pub use about::About;
pub use calls::{Charge, Missed, Repeat, SLOT_MS, service_number, service_of, slot};
pub use collect::Collect;
pub use drift::{Drift, Sighting};
pub use entry::{Entry, InRun, Text, Value, What};
pub use extra::Extra;
pub use family::{
    Dialect, Family, Gather, GatherError, Gathered, LogPlace, Match, Origin, Part, Pick, Reader,
};
pub use feed::{Checkpoint, Feed, FeedError, Framing, Limits};
pub use head::{HEAD, Head};
pub use host::{Host, is_credential};
pub use ledger::{Dropped, Ledger, Mended};
pub use marks::Marks;
pub use normalized::{NORMALIZED, NORMALIZED_PAGE};
pub use out::{BLOB_SCHEME, Out, Position, Record, Sink, data_url};
pub use recognise::{Doubt, Known, Lies, recognise};
pub use registry::{FAMILIES, claims, dialect, family, holder, identify, sniff};
pub use session::{Session, Tokens, run_id};
pub use summary::{Activity, Doer, Spend, SpendKey, Summary, ToolKey, ToolUse, Waste, WasteKey};

/// The hash by which records and calls are known again. Stable: it is kept in files.
pub fn hash(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}
