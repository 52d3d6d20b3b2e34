//! The session format of the Hugging Face Hub.
//!
//! The first line is about the session; each of the others is a message. Pi's own logs, which the Hub shows as
//! well, are read as Pi's.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Sts;

pub(crate) const LINES: Dialect = Dialect::lines("sts", "sts");

impl Family for Sts {
    crate::family::known!("sts", [LINES]);
    crate::family::opened!(_dialect, _origin => normalize::Lines::default());
}
