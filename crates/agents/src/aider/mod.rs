//! Aider.
//!
//! What is said is appended to a file of Markdown in the repository: a heading for each run, headings of the
//! fourth level for what a person says, quotations for what Aider itself says, and the rest is the model's.
//! There are no ids and no times but that of each run. Because the file lies in repositories, it is only
//! read where it is named. `--analytics-log` writes a line of JSON for each call, with its tokens.

mod analytics;
mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing};

/// See the module.
pub(crate) struct Aider;

pub(crate) const CHAT: Dialect = Dialect::framed("aider", "aider", Framing::Text);
pub(crate) const ANALYTICS: Dialect = Dialect::lines("aider-analytics", "aider");

impl Family for Aider {
    crate::family::known!("aider", [CHAT, ANALYTICS]);
    crate::family::opened!(dialect, origin => match {
        CHAT => normalize::Chat::new(origin),
        _ => analytics::Analytics::default(),
    });
}
