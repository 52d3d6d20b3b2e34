//! Messages of the Chat Completions kind: Vibe, gptme, Hermes.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::cost::Cost;
use crate::openai_chat::message;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What, capture, time};

/// Reads the messages of a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Messages {
    agent: Agent,
    session: Session,
    model: Option<String>,
    cost: Option<Cost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Agent {
    Vibe,
    Gptme,
    Hermes,
}

impl Messages {
    /// The session has the name of its directory until a sidecar says more.
    pub(super) fn vibe(_origin: &Origin<'_>) -> Self {
        Self::new(Agent::Vibe, None)
    }

    pub(super) fn gptme(origin: &Origin<'_>) -> Self {
        let named = origin.stem() == Some("conversation");
        Self::new(Agent::Gptme, origin.above().next().filter(|_| named))
    }

    pub(super) fn hermes(origin: &Origin<'_>) -> Self {
        Self::new(Agent::Hermes, origin.part.or(origin.stem()))
    }

    fn new(agent: Agent, id: Option<&str>) -> Self {
        Self {
            agent,
            session: Session {
                id: id.map(str::to_owned),
                ..Session::default()
            },
            model: None,
            cost: None,
        }
    }

    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        match record.text("table").as_deref() {
            Some("sessions") => self.row(record, out),
            Some("messages") => {
                if let Some(row) = record.get("row") {
                    self.message(row, out);
                }
            }
            _ => self.message(record, out),
        }
    }

    fn message(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let (fields, id, at) = match self.agent {
            Agent::Vibe => (wire::VIBE, capture::id(record, "message_id"), None),
            Agent::Gptme => (wire::GPTME, None, time::field(record, "timestamp")),
            Agent::Hermes => (
                wire::HERMES,
                record.get("id").map(|id| Cow::Borrowed(id.raw().get())),
                time::field(record, "timestamp"),
            ),
        };
        let role = record.text("role").unwrap_or_default();
        if role == "session_meta" {
            learn(&mut self.model, || record.text("model"));
            out.push(Entry::keep(NoteKind::Session, record));
            return;
        }
        out.check("message", record, fields);
        if let Some(id) = &id {
            // The database numbers the messages of all sessions.
            let new = match self.agent {
                Agent::Hermes => out.unit(&format!("{:?}:{id}", self.session.id)),
                Agent::Vibe | Agent::Gptme => out.unit(id),
            };
            if !new {
                return;
            }
        }
        let cost = record.path(&["metadata", "cost"]).and_then(Cost::of);
        if let Some(cost) = cost {
            let sum = self.cost.get_or_insert_default();
            sum.add(cost);
            self.session.vendor_cost = Some(sum.to_text());
        }
        let told = record.path(&["metadata", "model"]).and_then(|n| n.as_str());
        let model = told.or(self.model.as_deref().map(Cow::Borrowed));
        let mut counted = record.path(&["metadata", "usage"]).and_then(usage);
        let mut told = Cost::of_call(record.path(&["metadata", "cost"]), model.as_deref());
        let injected = record.get("injected").and_then(|n| n.as_bool()) == Some(true);
        let failed = record
            .get("finish_reason")
            .is_some_and(|reason| reason.is("error"));
        let mut put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            entry.at = at;
            entry.native_id = id.as_deref().map(|id| Cow::Owned(id.to_owned()));
            let replied = matches!(
                entry.what,
                What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
            );
            if replied {
                entry.model = model.as_deref().map(|model| Cow::Owned(model.to_owned()));
                entry.usage = counted.take();
                entry.cost = told.take().map(Cost::money);
            }
            match &mut entry.what {
                What::User(text) if injected => {
                    entry.what = What::System(std::mem::replace(text, Text::EMPTY));
                    entry.synthetic = true;
                }
                What::Result { output, error, .. } if failed => {
                    let said = match output.take() {
                        Some(crate::Value::Text(text)) => text,
                        given => {
                            *output = given;
                            Text::from("error")
                        }
                    };
                    *error = Some(said);
                    entry.status = Some(Status::Error);
                }
                _ => {}
            }
            out.push(entry);
        };
        // A row of the database has its calls as text.
        let known = match record.get("tool_calls").and_then(|calls| calls.as_str()) {
            Some(calls) => {
                let known = message::entries(record, out, &mut put);
                let made = format!(r#"{{"role":"assistant","tool_calls":{calls}}}"#);
                let mut tape = Tape::new();
                if let Ok(made) = tape.read(&made, 128) {
                    message::entries(made, out, &mut put);
                }
                known
            }
            None => message::entries(record, out, &mut put),
        };
        if known {
            if counted.is_some() {
                let entry = Entry {
                    usage: counted,
                    ..Entry::keep(NoteKind::ModelCall, record)
                };
                out.push(entry);
            }
            out.skip(Dropped::Empty);
        } else {
            out.unknown_type("role", &role);
            out.push(Entry::keep(NoteKind::UnknownRecord, record));
        }
    }

    /// A session of Hermes, as its database has it.
    fn row(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let Some(row) = record.get("row") else {
            return;
        };
        learn(&mut self.session.id, || row.text("id"));
        update(&mut self.session.title, row.text("title"));
        learn(&mut self.session.cwd, || row.text("cwd"));
        learn(&mut self.session.parent, || row.text("parent_session_id"));
        learn(&mut self.model, || row.text("model"));
        let began = time::field(row, "started_at").map(Timestamp::as_millisecond);
        self.session.started_at = self.session.started_at.or(began);
        let count = |key: &str| row.get(key).and_then(|n| n.as_u64());
        let usage = Usage {
            input: count("input_tokens"),
            cache_read: count("cache_read_tokens"),
            cache_write: count("cache_write_tokens"),
            cache_write_1h: None,
            output: count("output_tokens"),
            reasoning: count("reasoning_tokens"),
        };
        let usage = (usage.total() > 0).then_some(usage);
        self.session.vendor_usage = usage.map(Into::into);
        let cost = ["actual_cost_usd", "estimated_cost_usd"]
            .iter()
            .find_map(|key| row.get(key).filter(|n| n.kind() == Kind::Number));
        self.session.vendor_cost = cost.map(|cost| cost.raw().get().to_owned());
        let entry = Entry {
            usage,
            model: row.text("model"),
            ..Entry::keep(NoteKind::Session, record)
        };
        out.push(entry);
    }

    /// A session of Hermes in one document.
    fn document(&mut self, document: Node<'_>, messages: Node<'_>, out: &mut Out<'_>) {
        out.check("session", document, wire::HERMES_SESSION);
        // The document names itself.
        update(&mut self.session.id, document.text("session_id"));
        learn(&mut self.session.cwd, || document.text("cwd"));
        learn(&mut self.model, || document.text("model"));
        let began = time::field(document, "session_start").map(Timestamp::as_millisecond);
        self.session.started_at = self.session.started_at.or(began);
        if let Some(prompt) = document.get("system_prompt").and_then(Text::of)
            && !prompt.is_empty()
        {
            out.push(Entry::new(What::System(prompt)));
        }
        for item in messages.items() {
            out.within(item, |out, item| self.message(item, out));
        }
    }
}

/// Token counts of gptme, which are disjoint.
fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("input_tokens"),
        cache_read: count("cache_read_tokens"),
        cache_write: count("cache_creation_tokens"),
        cache_write_1h: None,
        output: count("output_tokens"),
        reasoning: None,
    };
    (!usage.is_empty()).then_some(usage)
}

impl Reader for Messages {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if out.in_record() {
            return self.line(record, out);
        }
        match record.get("messages") {
            Some(messages) => self.document(record, messages, out),
            None => capture::records(record, out, |record, out| self.line(record, out)),
        }
    }

    /// What Vibe keeps beside its messages: the session's facts, and its tokens as one sum.
    fn sidecar(&mut self, _name: &str, document: Node<'_>, out: &mut Out<'_>) {
        if self.agent != Agent::Vibe {
            return;
        }
        let inner = |path: &[&str]| document.path(path).and_then(|node| node.as_str());
        let session = &mut self.session;
        update(&mut session.id, inner(&["session_id"]));
        learn(&mut session.forked_from, || inner(&["parent_session_id"]));
        learn(&mut session.commit, || inner(&["git_commit"]));
        learn(&mut session.branch, || inner(&["git_branch"]));
        learn(&mut session.cwd, || {
            inner(&["environment", "working_directory"])
        });
        update(&mut session.title, inner(&["title"]));
        update(&mut session.version, inner(&["version"]));
        let began = time::field(document, "start_time").map(Timestamp::as_millisecond);
        session.started_at = session.started_at.or(began);
        let Some(stats) = document.get("stats") else {
            return;
        };
        let count = |key: &str| stats.get(key).and_then(|n| n.as_u64());
        let cached = count("session_cached_tokens");
        let prompt = count("session_prompt_tokens");
        let usage = Usage {
            input: prompt.map(|prompt| prompt.saturating_sub(cached.unwrap_or(0))),
            cache_read: cached,
            cache_write: None,
            cache_write_1h: None,
            output: count("session_completion_tokens"),
            reasoning: None,
        };
        if let Some(cost) = stats
            .get("session_cost")
            .filter(|n| n.kind() == Kind::Number)
        {
            session.vendor_cost = Some(cost.raw().get().to_owned());
        }
        if usage.total() > 0 {
            session.vendor_usage = Some(usage.into());
            out.push(Entry {
                usage: Some(usage),
                model: inner(&["model"]).or(inner(&["config", "active_model"])),
                ..Entry::keep(NoteKind::Usage, stats)
            });
        }
    }

    crate::state::keeps_session!();
}
