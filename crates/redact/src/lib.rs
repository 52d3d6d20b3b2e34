//! Takes out of transcripts what should not be in them, and says what it took.
//!
//! ```text
//! rules/*.toml ──► RuleSet ──► Engine ── spans of a text that are secrets, names, addresses
//!                                │
//!            ┌───────────────────┴──────────────────┐
//!            ▼                                      ▼
//!   raw: any JSONL, JSON, text             session: headers and events of the model,
//!   bytes out = bytes in, but for          by a Profile (content policy, pseudonyms, caps)
//!   what was found                                  │
//!                                                   ▼
//!                                          receipt: per event what was removed, and a
//!                                          commitment to what stood there
//! ```
//!
//! **Invariant:** no value that was found is in an error, a finding, a receipt or a `Debug` output.
//! **Invariant:** redacting what was redacted changes nothing.
//! **Invariant:** the time it takes grows with the input and with nothing else.

pub mod engine;
mod guard;
mod key;
mod placeholder;
pub mod profile;
pub mod raw;
mod ready;
pub mod receipt;
pub mod rule;
pub mod sensitive;
pub mod session;

pub use engine::{Certainty, Context, Engine, Found, Scratch, Why};
pub use guard::Guard;
pub use key::{Key, KeyError};
pub use placeholder::{Placeholders, is_placeholder};
pub use profile::Profile;
pub use rule::{Kind, Rule, RuleError, RuleSet, Severity};
