//! GitHub Copilot: the command line, the chat of Visual Studio Code, and the traces of Visual Studio.
//!
//! Copilot CLI writes events, a JSON line each, of which there are well over a hundred types; hooks alone are
//! half of the lines. `--output-format json` writes the same events to standard output, with those that
//! never reach the disk among them. Tokens are only summed up when the session ends. The other two have
//! formats of their own: a document, or a journal of changes to it, and spans of OpenTelemetry.

mod chat;
mod discover;
mod history;
mod normalize;
mod traces;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Copilot;

/// The events of Copilot CLI, from disk or from standard output.
pub(crate) const EVENTS: Dialect = Dialect::lines("copilot", "copilot-cli");
/// What the first versions of Copilot CLI kept.
pub(crate) const HISTORY: Dialect = Dialect::document("copilot-history", "copilot-cli");
/// A chat of Visual Studio Code as a document.
pub(crate) const CHAT: Dialect = Dialect::document("copilot-chat", "copilot-chat");
/// A chat of Visual Studio Code as a journal of changes to the document.
pub(crate) const CHAT_JOURNAL: Dialect = Dialect::lines("copilot-chat-journal", "copilot-chat");
/// The traces of Visual Studio.
pub(crate) const TRACES: Dialect = Dialect::lines("visualstudio-copilot", "visualstudio-copilot");

impl Family for Copilot {
    crate::family::known!("copilot", [EVENTS, HISTORY, CHAT, CHAT_JOURNAL, TRACES]);
    crate::family::placed!();

    fn dialect_at(&self, brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(brand, path)
    }

    crate::family::opened!(dialect, origin => match {
        TRACES => traces::Traces::new(origin),
        CHAT | CHAT_JOURNAL => chat::Chat::new(origin),
        HISTORY => history::History::default(),
        _ => normalize::Events::default(),
    });

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        (brand == "copilot-cli").then(|| vec!["copilot".to_owned(), format!("--resume={session}")])
    }
}
