//! Qwen Code.
//!
//! A session is a file of JSON lines with the envelope of Claude Code (the session's id, the line's own and
//! that of the line before) around contents of the Gemini API. There is one line per call to the model,
//! and many lines that only the program itself has a use for. What `--output-format stream-json` writes is
//! of Claude Code's kind and is read there.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

pub(crate) use discover::is_record;

/// See the module.
pub(crate) struct Qwen;

pub(crate) const SESSION: Dialect = Dialect {
    name: "qwen",
    brand: "qwen-code",
    framing: Framing::Lines,
};

impl Family for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[SESSION]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(SESSION)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Qwen>(saved)?),
            None => Box::new(normalize::Qwen::default()),
        })
    }

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        Some(["qwen", "--resume", session].map(str::to_owned).to_vec())
    }
}
