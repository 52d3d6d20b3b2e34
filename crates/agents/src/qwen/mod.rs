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

use crate::{Dialect, Family};

pub(crate) use discover::is_record;

/// See the module.
pub(crate) struct Qwen;

pub(crate) const SESSION: Dialect = Dialect::lines("qwen", "qwen-code");

impl Family for Qwen {
    crate::family::known!("qwen", [SESSION]);
    crate::family::placed!();

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(SESSION)
    }

    crate::family::opened!(_dialect, _origin => normalize::Qwen::default());

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        Some(["qwen", "--resume", session].map(str::to_owned).to_vec())
    }
}
