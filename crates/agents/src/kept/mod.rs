//! Entries as lines: what an adapter made of a log, kept so that it need not be made again.
//!
//! A line is a JSON object that holds all of an [`Entry`](crate::Entry): what happened, what is known of it, and where its tokens
//! are counted. Texts and values are in it as the log has them, and an entry that is read back borrows from its line
//! as it once borrowed from its record. So most of a line need not be written: a [`Line`] refers to the bytes of the log
//! ([`Reference`]), and whoever reads it puts them back.
//!
//! The form of a line is nobody else's business: lines are derived, and are made again when [`FORM`] changes.

mod line;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use line::{Line, Reference};
pub use read::{Kept, read};
pub use write::write;

/// Which form lines have. Counts up when they change.
pub const FORM: u32 = 2;

/// How deep the values of a line may nest: as deep as those of any log, and the few levels of the line around them.
const DEPTH: usize = 1_000;
