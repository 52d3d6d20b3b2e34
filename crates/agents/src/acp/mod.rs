//! The Agent Client Protocol, and Grok Build, which keeps its sessions in it.
//!
//! A session is a file of notifications, one a line, in which what is said comes in pieces and a tool call
//! is told of several times: when it begins, when its input is known, when it ends. Beside it lie a
//! summary of the session, and the history as the model sees it, which says the same again and is read only
//! where it stands alone.

mod discover;
mod history;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Origin, Reader, state};

/// See the module.
pub(crate) struct Acp;

/// Notifications of any agent.
pub(crate) const UPDATES: Dialect = Dialect::lines("acp", "acp");
/// Notifications as Grok Build keeps them.
pub(crate) const GROK: Dialect = Dialect::lines("grok", "grok");
pub(crate) const HISTORY: Dialect = Dialect::lines("grok-chat", "grok");

impl Family for Acp {
    crate::family::known!("acp", [UPDATES, GROK, HISTORY]);
    crate::family::placed!();

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(GROK)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        if *dialect == HISTORY {
            return history::open(origin, saved);
        }
        state::open(saved, normalize::Updates::default)
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }
}
