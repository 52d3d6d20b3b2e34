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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Aider;

pub(crate) const CHAT: Dialect = Dialect {
    name: "aider",
    brand: "aider",
    framing: Framing::Text,
};
pub(crate) const ANALYTICS: Dialect = Dialect {
    name: "aider-analytics",
    brand: "aider",
    framing: Framing::Lines,
};

impl Family for Aider {
    fn name(&self) -> &'static str {
        "aider"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[CHAT, ANALYTICS]
    }

    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        let is_chat = *dialect == CHAT;
        Some(match saved {
            Some(saved) if is_chat => Box::new(state::load::<normalize::Chat>(saved)?),
            Some(saved) => Box::new(state::load::<analytics::Analytics>(saved)?),
            None if is_chat => Box::new(normalize::Chat::new(origin)),
            None => Box::<analytics::Analytics>::default(),
        })
    }
}
