//! What is told while a session runs: the events of the server, and the output of `opencode run`.
//!
//! The server tells every change. A part is told when it begins, with each piece of it, and when it ends;
//! the last that is told is what it came to. What cannot change any more is handed over at once, and the
//! rest is held back until its message ends, or the log does.

use std::borrow::Cow;

use quipu_model::json::{Node, Tape};
use quipu_model::{Json, NoteKind};
use serde::{Deserialize, Serialize};

use super::normalize::{Core, Message, Role, error_text};
use super::wire;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, What, state, time};

/// How many messages are remembered after they ended. Their last parts come about then.
const REMEMBERED: usize = 64;

/// The deepest nesting of what was held back.
const DEPTH: usize = 128;

/// Reads the events of the server.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Events {
    pub(super) core: Core,
    messages: Vec<Known>,
    parts: Vec<Held>,
    /// Whether there is a note of the session.
    begun: bool,
}

/// A message that was told of.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    message: Message,
    /// As it was told last, unless it was handed over.
    last: Option<String>,
}

/// A part that can still change.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    id: String,
    of: String,
    /// As it was told last.
    last: Option<String>,
    /// What was added to its text since.
    added: String,
}

impl Events {
    fn event(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let event = wire::event(record);
        self.core.clock = record.get("timestamp").and_then(time::of);
        learn(&mut self.core.session.cwd, || {
            record.text("projectDirectory").or(record.text("directory"))
        });
        let kind = event.text("type").unwrap_or_default();
        out.leave_out("event", record, &["threadId"]);
        out.leave_out("event", event, &["id"]);
        let Some(properties) = event.get("properties") else {
            return out.unknown_type("event", &kind);
        };
        match &*kind {
            "message.updated" => self.message(properties, out),
            "message.part.updated" => {
                out.leave_out(&kind, properties, &["time"]);
                self.part(properties, out);
            }
            "message.part.delta" => self.delta(properties, out),
            "session.created" | "session.updated" | "session.deleted" => {
                self.told(&kind, properties, out);
            }
            "session.error" => {
                let error = properties.get("error");
                out.push(Entry {
                    at: self.core.clock,
                    subagent: self.other(properties.text("sessionID")).map(Cow::Owned),
                    ..Entry::new(What::Note {
                        kind: NoteKind::Error,
                        text: error.map(|error| error_text(error).into()),
                        raw: Some(properties.into()),
                    })
                });
            }
            "session.status" => {
                let status = properties.path(&["status", "type"]);
                if status.is_some_and(|status| status.is("retry")) {
                    self.note(NoteKind::Retry, properties, out);
                } else {
                    out.skip(Dropped::KeepAlive);
                }
            }
            "session.idle" | "server.connected" | "server.heartbeat" => {
                out.skip(Dropped::KeepAlive);
            }
            "session.diff" => {
                let diff = properties.get("diff");
                if diff.is_some_and(|diff| diff.items().next().is_some()) {
                    self.note(NoteKind::FileSnapshot, properties, out);
                } else {
                    out.skip(Dropped::Empty);
                }
            }
            "message.removed" | "message.part.removed" => {
                if let Some(id) = properties.text("partID") {
                    self.parts.retain(|part| part.id != id);
                }
                self.note(NoteKind::Rewind, properties, out);
            }
            other => {
                let known = note_kind(other);
                if known.is_none() {
                    out.unknown_type("event", other);
                }
                self.note(known.unwrap_or(NoteKind::UnknownRecord), event, out);
            }
        }
    }

    fn note(&self, kind: NoteKind, node: Node<'_>, out: &mut Out<'_>) {
        out.push(Entry {
            at: self.core.clock,
            subagent: self.other(node.text("sessionID")).map(Cow::Owned),
            ..Entry::keep(kind, node)
        });
    }

    /// The session, when it is not the one that the log is of. The first that is told of is.
    fn other(&self, session: Option<Cow<'_, str>>) -> Option<String> {
        let session = session?;
        let own = self.core.session.id.as_deref()?;
        (own != session).then(|| session.into_owned())
    }

    /// A session is told of.
    fn told(&mut self, kind: &str, properties: Node<'_>, out: &mut Out<'_>) {
        let Some(info) = properties.get("info") else {
            return;
        };
        if self.other(info.text("id")).is_some() {
            return self.note(NoteKind::Subagent, info, out);
        }
        let title = self.core.session.title.clone();
        self.core.learn(info, out);
        if !self.begun || kind != "session.updated" {
            self.begun = true;
            return self.note(NoteKind::Session, info, out);
        }
        if info.get("revert").is_some_and(|revert| !revert.is_null()) {
            return self.note(NoteKind::Rewind, info, out);
        }
        match &self.core.session.title {
            Some(new) if title.as_ref() != Some(new) => out.push(Entry {
                at: self.core.clock,
                ..Entry::note(NoteKind::Title, new.as_str())
            }),
            _ => out.skip(Dropped::RepeatedChannel),
        }
    }

    fn position(&mut self, id: &str, session: Option<Cow<'_, str>>) -> usize {
        let named = |known: &Known| known.message.id.as_deref() == Some(id);
        if let Some(at) = self.messages.iter().position(named) {
            return at;
        }
        if self.messages.len() >= REMEMBERED
            && let Some(ended) = self.messages.iter().position(|known| known.last.is_none())
        {
            self.messages.remove(ended);
        }
        let mut message = Message::named(Some(Cow::Borrowed(id)));
        learn(&mut self.core.session.id, || session.clone());
        message.subagent = self.other(session);
        self.messages.push(Known {
            message,
            last: None,
        });
        self.messages.len() - 1
    }

    /// A message is told of. That of a model is handed over when it has ended.
    fn message(&mut self, properties: Node<'_>, out: &mut Out<'_>) {
        let Some(info) = properties.get("info") else {
            return;
        };
        let Some(id) = info.text("id") else {
            return;
        };
        let at = self.position(&id, info.text("sessionID"));
        let Some(known) = self.messages.get_mut(at) else {
            return;
        };
        let before = known.message.clone();
        let ended = info.path(&["time", "completed"]).is_some()
            || info.get("error").is_some_and(|error| !error.is_null())
            || !info.get("role").is_some_and(|role| role.is("assistant"));
        if !ended {
            known.last = Some(Json::from(info.raw()).get().to_owned());
            known.message = self.core.known(info, Some(id), before);
            return out.skip(Dropped::StreamDelta);
        }
        known.last = None;
        known.message = self.core.known(info, Some(id.clone()), before.clone());
        self.flush(Some(&id), out);
        if out.ledger().unit(&id) {
            let message = self.core.message(info, Some(id), before, out);
            if let Some(known) = self.messages.get_mut(at) {
                known.message = message;
            }
        } else {
            out.skip(Dropped::DuplicateRecord);
        }
    }

    /// A part is told of. It is handed over when it cannot change any more.
    fn part(&mut self, properties: Node<'_>, out: &mut Out<'_>) {
        let Some(part) = properties.get("part") else {
            return;
        };
        let (Some(id), Some(of)) = (part.text("id"), part.text("messageID")) else {
            return;
        };
        let session = part.text("sessionID").or(properties.text("sessionID"));
        let at = self.position(&of, session);
        let Some(known) = self.messages.get(at) else {
            return;
        };
        if !has_ended(part, known.message.role) {
            let held = self.hold(&id, &of);
            held.last = Some(Json::from(part.raw()).get().to_owned());
            held.added.clear();
            return out.skip(Dropped::StreamDelta);
        }
        self.parts.retain(|held| held.id != id);
        if out.unit(&id) {
            self.hand_over(part, &id, at, out);
        }
    }

    fn hand_over(&mut self, part: Node<'_>, id: &str, at: usize, out: &mut Out<'_>) {
        let Some(known) = self.messages.get_mut(at) else {
            return;
        };
        let mut message = std::mem::take(&mut known.message);
        self.core
            .part(part, Some(Cow::Borrowed(id)), &mut message, out);
        if let Some(known) = self.messages.get_mut(at) {
            known.message = message;
        }
    }

    fn hold(&mut self, id: &str, of: &str) -> &mut Held {
        let at = self.parts.iter().position(|held| held.id == id);
        let at = at.unwrap_or_else(|| {
            self.parts.push(Held {
                id: id.to_owned(),
                of: of.to_owned(),
                last: None,
                added: String::new(),
            });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }

    /// A piece of a part.
    fn delta(&mut self, properties: Node<'_>, out: &mut Out<'_>) {
        let text = |key: &str| properties.text(key);
        let (Some(id), Some(of)) = (text("partID"), text("messageID")) else {
            return;
        };
        self.position(&of, text("sessionID"));
        if properties.get("field").is_none_or(|field| field.is("text")) {
            let delta = text("delta").unwrap_or_default();
            self.hold(&id, &of).added.push_str(&delta);
        }
        out.skip(Dropped::StreamDelta);
    }

    /// Hands over what was held back: of one message, or of all.
    fn flush(&mut self, of: Option<&str>, out: &mut Out<'_>) {
        let (flushed, held) = std::mem::take(&mut self.parts)
            .into_iter()
            .partition(|part: &Held| of.is_none_or(|of| part.of == of));
        self.parts = held;
        let flushed: Vec<Held> = flushed;
        for part in flushed {
            let at = self.position(&part.of, None);
            let whole = part.whole();
            let mut tape = Tape::new();
            if let Ok(node) = tape.read(&whole, DEPTH)
                && out.ledger().unit(&part.id)
            {
                out.held_back(|out| self.hand_over(node, &part.id, at, out));
            }
        }
    }
}

impl Held {
    /// The part with what was added to it.
    fn whole(&self) -> String {
        let mut tape = Tape::new();
        let last = self
            .last
            .as_deref()
            .and_then(|last| tape.read(last, DEPTH).ok());
        let Some(last) = last else {
            // Its beginning was before that of the log. Only what a model writes comes in pieces.
            let text = Json::string(&self.added);
            return format!(
                "{{\"type\":\"text\",\"time\":{{\"start\":null}},\"text\":{}}}",
                text.get()
            );
        };
        if self.added.is_empty() {
            return last.raw().get().to_owned();
        }
        let text = last.text("text").unwrap_or_default().into_owned() + &self.added;
        let mut whole = String::from("{");
        for (key, value) in last.fields().filter(|(key, _)| !key.is("text")) {
            whole.push_str(key.raw().get());
            whole.push(':');
            whole.push_str(value.raw().get());
            whole.push(',');
        }
        whole.push_str("\"text\":");
        whole.push_str(Json::string(&text).get());
        whole.push('}');
        whole
    }
}

/// Whether a part cannot change any more.
fn has_ended(part: Node<'_>, role: Role) -> bool {
    match part.text("type").as_deref() {
        Some("tool") => part
            .path(&["state", "status"])
            .is_some_and(|status| status.is("completed") || status.is("error")),
        Some("text" | "reasoning") => {
            role == Role::User
                || part.get("time").is_none()
                || part.path(&["time", "end"]).is_some()
        }
        _ => true,
    }
}

/// What an event that is kept as it is is about.
fn note_kind(event: &str) -> Option<NoteKind> {
    Some(match event {
        "session.compacted" => NoteKind::Compaction,
        "todo.updated" => NoteKind::Todo,
        "file.edited" | "file.watcher.updated" => NoteKind::FileSnapshot,
        "command.executed" | "vcs.branch.updated" => NoteKind::Context,
        _ => {
            let (area, _) = event.split_once('.')?;
            match area {
                "permission" | "question" => NoteKind::Permission,
                "server" | "global" | "installation" | "lsp" | "mcp" | "tui" | "pty" | "ide"
                | "project" | "worktree" | "plugin" | "workspace" | "catalog" => NoteKind::Context,
                _ if event.starts_with("session.next.") => NoteKind::Progress,
                _ => return None,
            }
        }
    })
}

impl Reader for Events {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.event(record, out);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.core.clock = None;
        self.flush(None, out);
        for at in 0..self.messages.len() {
            let Some(known) = self.messages.get_mut(at) else {
                return;
            };
            let Some(last) = known.last.take() else {
                continue;
            };
            let before = std::mem::take(&mut known.message);
            let mut tape = Tape::new();
            if let Ok(info) = tape.read(&last, DEPTH) {
                self.core.message(info, info.text("id"), before, out);
            }
        }
    }

    fn session(&self) -> &Session {
        &self.core.session
    }

    fn save(&self) -> state::Saved {
        state::save(self)
    }
}

/// Reads what `opencode run --format json` prints: parts that have ended, and errors.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Run {
    core: Core,
    message: Message,
}

/// Every field of a line.
const RUN_FIELDS: &[&str] = &["type", "timestamp", "sessionID", "part", "error"];

impl Reader for Run {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("run", record, RUN_FIELDS);
        self.core.clock = record.get("timestamp").and_then(time::of);
        learn(&mut self.core.session.id, || record.text("sessionID"));
        if let Some(part) = record.get("part") {
            let of = part.text("messageID");
            if self.message.id.as_deref() != of.as_deref() {
                self.message = Message::named(of);
                self.message.role = Role::Assistant;
            }
            let id = part.text("id");
            if id.as_deref().is_none_or(|id| out.unit(id)) {
                self.core.part(part, id, &mut self.message, out);
            }
        } else if let Some(error) = record.get("error") {
            out.push(Entry {
                at: self.core.clock,
                ..Entry::new(What::Note {
                    kind: NoteKind::Error,
                    text: Some(error_text(error).into()),
                    raw: Some(record.into()),
                })
            });
        } else {
            out.unknown_type("run", &record.text("type").unwrap_or_default());
        }
    }

    fn session(&self) -> &Session {
        &self.core.session
    }

    fn save(&self) -> state::Saved {
        state::save(self)
    }
}
