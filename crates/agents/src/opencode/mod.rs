//! `OpenCode`, and the agents that are built on it.
//!
//! A session is messages, and a message is parts, each with an id of its own: text, reasoning, a tool call
//! together with its result, the beginning and the end of a step. They are kept in a database; before that,
//! each was a small JSON file in a tree. `opencode export` prints a session as one document, `opencode run
//! --format json` prints parts as they end, and the server tells every change of anything.
//!
//! However a part is stored it reads the same, so there is one place that knows what it means
//! ([`normalize`]) and one for each way in which it comes.

mod discover;
mod document;
mod events;
mod gather;
mod normalize;
mod rows;
mod tokens;
mod tree;
mod v2;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Gather, Session};

/// See the module.
pub(crate) struct OpenCode;

/// What `opencode export` prints, and other documents: what the server answers, a file of the old tree.
pub(crate) const EXPORT: Dialect = Dialect::document("opencode-export", "opencode");
/// The rows of a session, from the database or the old tree.
pub(crate) const ROWS: Dialect = Dialect::lines("opencode-rows", "opencode");
/// What `opencode run --format json` prints.
pub(crate) const RUN: Dialect = Dialect::lines("opencode-run", "opencode");
/// The events of the server, one a line.
pub(crate) const EVENTS: Dialect = Dialect::lines("opencode-events", "opencode");
/// The events of the server, as it sends them.
pub(crate) const SSE: Dialect = Dialect::framed("opencode-sse", "opencode", Framing::Sse);

impl Family for OpenCode {
    crate::family::known!("opencode", [EXPORT, ROWS, RUN, EVENTS, SSE]);
    crate::family::placed!();
    crate::family::opened!(dialect, origin => match {
        EXPORT => document::Document::default(),
        ROWS => rows::Rows::new(origin),
        RUN => events::Run::default(),
        _ => events::Events::default(),
    });

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Sessions)
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = match brand {
            "opencode" => "opencode",
            "kilo" => "kilo",
            _ => return None,
        };
        Some([command, "--session", session].map(str::to_owned).to_vec())
    }
}

/// Whether a session is known as anything but a name that every session begins with.
fn is_title(title: &str) -> bool {
    !title.is_empty()
        && !title.starts_with("New session - ")
        && !title.starts_with("Child session - ")
}

/// Whether the title says that the session is a copy of another.
fn is_fork(session: &Session) -> bool {
    let title = session.title.as_deref().unwrap_or_default();
    let number = title
        .strip_suffix(')')
        .and_then(|title| Some(title.rsplit_once(" (fork #")?.1));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
