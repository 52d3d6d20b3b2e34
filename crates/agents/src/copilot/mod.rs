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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Copilot;

/// The events of Copilot CLI, from disk or from standard output.
pub(crate) const EVENTS: Dialect = Dialect {
    name: "copilot",
    brand: "copilot-cli",
    framing: Framing::Lines,
};
/// What the first versions of Copilot CLI kept.
pub(crate) const HISTORY: Dialect = Dialect {
    name: "copilot-history",
    brand: "copilot-cli",
    framing: Framing::Document,
};
/// A chat of Visual Studio Code as a document.
pub(crate) const CHAT: Dialect = Dialect {
    name: "copilot-chat",
    brand: "copilot-chat",
    framing: Framing::Document,
};
/// A chat of Visual Studio Code as a journal of changes to the document.
pub(crate) const CHAT_JOURNAL: Dialect = Dialect {
    name: "copilot-chat-journal",
    brand: "copilot-chat",
    framing: Framing::Lines,
};
/// The traces of Visual Studio.
pub(crate) const TRACES: Dialect = Dialect {
    name: "visualstudio-copilot",
    brand: "visualstudio-copilot",
    framing: Framing::Lines,
};

impl Family for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[EVENTS, HISTORY, CHAT, CHAT_JOURNAL, TRACES]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(brand, path)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        let name = dialect.name;
        Some(match saved {
            Some(saved) if name == TRACES.name => Box::new(state::load::<traces::Traces>(saved)?),
            Some(saved) if name == CHAT.name || name == CHAT_JOURNAL.name => {
                Box::new(state::load::<chat::Chat>(saved)?)
            }
            Some(saved) if name == HISTORY.name => {
                Box::new(state::load::<history::History>(saved)?)
            }
            Some(saved) => Box::new(state::load::<normalize::Events>(saved)?),
            None if name == TRACES.name => Box::new(traces::Traces::new(origin)),
            None if name == CHAT.name || name == CHAT_JOURNAL.name => {
                Box::new(chat::Chat::new(origin))
            }
            None if name == HISTORY.name => Box::new(history::History::default()),
            None => Box::new(normalize::Events::default()),
        })
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        (brand == "copilot-cli").then(|| vec!["copilot".to_owned(), format!("--resume={session}")])
    }
}
