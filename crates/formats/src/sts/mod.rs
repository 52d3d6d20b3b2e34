//! Sessions as the Hugging Face Hub shows them.
//!
//! The Hub shows the logs of some agents as they are; whoever has such a log gives it away byte for byte
//! ([`is_shown_as_is`]). Any other session is written in the Hub's own lines: the first is about the session,
//! each of the others is a message, with the tools it calls; what a tool gives back is a message too.
//!
//! The lines hold what was said and done, when and by which model. They have no place for tokens, ids and notes.
//! [`card()`] is the page that a folder of sessions is shown with.

mod card;
mod write;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use quipu_model::Header;

use crate::loss::Field;
use crate::projection::{Beside, Projection};

pub use card::{CardEntry, CardOptions, card};

/// How a session is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StsOptions {
    /// The id of the program that the session is said to be of. By default it is the agent's name, or `quipu`
    /// where that is not known.
    pub harness: Option<String>,
}

/// What the lines have a place for.
pub const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::Undated,
    Field::Model,
    Field::Agent,
    Field::SessionId,
    Field::Title,
];

/// Writes a session in the Hub's own lines. Nothing goes beside them.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &StsOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    Ok(Box::new(write::Writer::new(header, options, out)))
}

/// Whether the Hub shows logs of this dialect as they are, so that their bytes need not be changed.
///
/// ```
/// assert!(quipu_formats::sts::is_shown_as_is("claude"));
/// assert!(!quipu_formats::sts::is_shown_as_is("claude-stream"));
/// ```
pub fn is_shown_as_is(dialect: &str) -> bool {
    matches!(dialect, "claude" | "codex" | "pi")
}
