//! Claude Code, and the agents that write as it does.
//!
//! A session is a file of JSON lines in which every line carries the session's id, its own id and that of
//! the line before it. One reply of the model is spread over several lines, one per block, each with
//! the usage of the whole reply; sub-agents have files of their own beside that of their session, or in
//! old versions lines of their own in it. `claude -p --output-format stream-json` writes much the same to
//! standard output.

mod discover;
mod history;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Gather, Origin, Reader, state};

/// See the module.
pub(crate) struct Claude;

pub(crate) const SESSION: Dialect = Dialect::lines("claude", "claude-code");
pub(crate) const STREAM: Dialect = Dialect::lines("claude-stream", "claude-code");
/// The lines of a session, or of a stream, as the items of one list.
pub(crate) const DOCUMENT: Dialect = Dialect::document("claude-document", "claude-code");
pub(crate) const HISTORY: Dialect = Dialect::lines("claude-history", "claude-code");

impl Family for Claude {
    crate::family::known!("claude", [SESSION, STREAM, DOCUMENT, HISTORY]);
    crate::family::placed!();
    crate::family::dialect_by_path!();

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        if *dialect == HISTORY {
            return history::open(origin, saved);
        }
        state::open(saved, || normalize::Claude::new(origin))
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&history::History)
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = match brand {
            "claude-code" => "claude",
            "openclaude" => "openclaude",
            "qoder" => "qodercli",
            "iflow" => "iflow",
            _ => return None,
        };
        Some([command, "--resume", session].map(str::to_owned).to_vec())
    }
}
