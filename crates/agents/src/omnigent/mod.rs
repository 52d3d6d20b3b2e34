//! Omnigent: a program that has other agents do the work.
//!
//! Conversations are rows of a database, and each item of one is a row as well. The database also holds what
//! is none of our business, so only the columns that are known are taken out; the others are named, and count
//! as unknown. What it tells of tokens is not counted: the agents it runs count them in logs of their own.

mod discover;
mod gather;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Omnigent;

/// The lines of a conversation.
pub(crate) const ROWS: Dialect = Dialect::lines("omnigent", "omnigent");

impl Family for Omnigent {
    crate::family::known!("omnigent", [ROWS]);
    crate::family::placed!();
    crate::family::opened!(_dialect, origin => normalize::Conversation::new(origin));

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Conversations)
    }
}
