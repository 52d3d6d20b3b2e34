//! What a session of the newer kind means.

use std::cell::Cell;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{self, SESSION_FIELDS, SESSION_MESSAGE_FIELDS};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What, time};

/// Reads a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Messages {
    session: Session,
    /// The directory of the session, which is named like its first agent's.
    directory: Option<String>,
    /// The name of the file, which is that of the agent.
    agent: Option<String>,
    cost: Cost,
}

impl Messages {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let agent = origin
            .stem()
            .map(|stem| stem.strip_suffix(".messages").unwrap_or(stem));
        Self {
            session: Session::default(),
            directory: origin.above().next().map(str::to_owned),
            agent: agent.map(str::to_owned),
            cost: Cost::default(),
        }
    }

    /// All of a document but its messages.
    fn document(&mut self, document: Node<'_>, out: &mut Out<'_>) {
        out.check("session", document, SESSION_FIELDS);
        self.identify(document);
        self.learn(document);
        if let Some(text) = document.get("system_prompt").and_then(Text::of) {
            out.push(Entry {
                synthetic: true,
                ..Entry::new(What::System(text))
            });
        }
        out.push(Entry {
            at: time::field(document, "started_at"),
            ..Entry::new(What::Note {
                kind: NoteKind::Session,
                text: None,
                raw: Some(blocks::without(document, &["messages", "system_prompt"])),
            })
        });
    }

    fn identify(&mut self, document: Node<'_>) {
        let Some(id) = document.text("sessionId").or(document.text("session_id")) else {
            return;
        };
        let is_lead = document
            .text("agent")
            .is_none_or(|agent| matches!(&*agent, "lead" | ""));
        if is_lead {
            return update(&mut self.session.id, Some(id));
        }
        // An agent of a session names that, or itself.
        match (&self.directory, &self.agent) {
            (Some(directory), _) if *directory != *id && id.starts_with(&**directory) => {
                self.session.parent = Some(directory.clone());
                self.session.id = Some(id.into_owned());
            }
            (_, Some(agent)) if *agent != *id => {
                self.session.id = Some(format!("{id}.{agent}"));
                self.session.parent = Some(id.into_owned());
            }
            _ => self.session.id = Some(id.into_owned()),
        }
    }

    /// What a document, or the one beside it, says of the session.
    fn learn(&mut self, document: Node<'_>) {
        let session = &mut self.session;
        let meta = document.get("metadata");
        learn(&mut session.cwd, || {
            document.text("cwd").or(document.text("workspace_root"))
        });
        learn(&mut session.title, || meta?.text("title"));
        learn(&mut session.parent, || document.text("parent_session_id"));
        learn(&mut session.forked_from, || {
            meta?.get("fork")?.text("forkedFromSessionId")
        });
        let began = time::field(document, "started_at");
        session.started_at = session.started_at.or(began.map(Timestamp::as_millisecond));
    }

    fn message<'a>(&mut self, message: Node<'a>, out: &mut Out<'_>) {
        out.check("message", message, SESSION_MESSAGE_FIELDS);
        let id = message.text("id");
        if let Some(id) = &id
            && !out.unit(id)
        {
            return;
        }
        let at = time::field(message, "ts");
        let metrics = message.get("metrics").filter(|metrics| !metrics.is_null());
        let cost = metrics.and_then(|m| m.get("cost")).and_then(Cost::of);
        if let Some(cost) = cost {
            self.cost.add(cost);
            self.session.vendor_cost = Some(self.cost.to_text());
        }
        let usage = metrics.and_then(wire::metrics_usage);
        let model = message.path(&["modelInfo", "id"]).and_then(|n| n.as_str());
        let told = Cost::of_call(metrics.and_then(|m| m.get("cost")), model.as_deref());
        let role = message.text("role").unwrap_or_default();
        let meta = message.get("metadata");
        let first = Cell::new(usage.is_some());
        let put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
            entry.at = at;
            entry.native_id.clone_from(&id);
            if role == "assistant" {
                entry.model.clone_from(&model);
                entry.model_call.clone_from(&id);
            }
            if first.take() {
                entry.usage = usage;
                entry.cost = told.map(Cost::money);
            }
            out.push(entry);
        };
        let speaker = match &*role {
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            _ => {
                out.unknown_type("message", &role);
                let entry = blocks::kept(NoteKind::UnknownRecord, message, out);
                return put(entry, out);
            }
        };
        // A summary, or a notice that the model never sees.
        let kind = meta.and_then(|meta| meta.text("kind"));
        let is_notice = meta.and_then(|meta| meta.get("displayOnly")?.as_bool()) == Some(true);
        let note = match kind.as_deref() {
            Some("compaction_summary") => Some(NoteKind::Compaction),
            _ => is_notice.then_some(NoteKind::Session),
        };
        let say = |entry: Entry<'a>, out: &mut Out<'_>| match (note, entry.what) {
            (Some(note), What::User(text) | What::Assistant(text)) => {
                let raw = meta.map(|meta| blocks::without(meta, &["summary"]));
                let what = What::Note {
                    kind: note,
                    text: Some(text),
                    raw,
                };
                put(Entry::new(what), out);
            }
            (_, what) => put(Entry { what, ..entry }, out),
        };
        let Some(content) = message.get("content") else {
            return;
        };
        if let Some(text) = Text::of(content) {
            let what = match speaker {
                Speaker::User => What::User(text),
                Speaker::Assistant => What::Assistant(text),
            };
            return say(Entry::new(what), out);
        }
        for block in content.items() {
            let entry = match blocks::entry(block, speaker, facts(block), out) {
                Some(entry) => entry,
                None if block.get("type").is_some_and(|kind| kind.is("file")) => {
                    blocks::kept(NoteKind::Attachment, block, out)
                }
                None => {
                    let kind = block.text("type").unwrap_or_default();
                    out.unknown_type("content", &kind);
                    blocks::kept(NoteKind::UnknownRecord, block, out)
                }
            };
            say(failed(entry), out);
        }
        if first.get() {
            put(Entry::keep(NoteKind::ModelCall, message), out);
        }
        if content.kind() == Kind::List {
            out.skip(Dropped::Empty);
        }
    }
}

/// What the parts of a result say: each tells how it went.
fn facts(block: Node<'_>) -> ResultFacts {
    let parts = block.get("content").into_iter().flat_map(Node::items);
    let mut ends = parts.filter_map(|part| part.get("success")?.as_bool());
    let none_did = match ends.next() {
        Some(first) => !first && ends.all(|done| !done),
        None => false,
    };
    ResultFacts {
        status: none_did.then_some(Status::Error),
        duration_ms: None,
    }
}

/// A result that failed says so.
fn failed(mut entry: Entry<'_>) -> Entry<'_> {
    if entry.status == Some(Status::Error)
        && let What::Result { error, .. } = &mut entry.what
        && error.is_none()
    {
        *error = Some(Text::from("failed"));
    }
    entry
}

impl Reader for Messages {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.within(record, |out, record| self.document(record, out));
        for item in record.get("messages").into_iter().flat_map(Node::items) {
            out.within(item, |out, item| self.message(item, out));
        }
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        self.learn(document);
    }

    crate::state::keeps_session!();
}
