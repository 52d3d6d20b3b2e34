//! What the lines of a conversation mean.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{self, ABOUT, CONVERSATION, ITEM, LEFT_OUT, USAGE};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What};
use crate::{capture, time};

/// Reads a conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Conversation {
    session: Session,
    /// The agent that spoke last.
    speaker: Option<String>,
    /// The conversation that this one came out of, and whether as one of a sub-agent. Which of the two is
    /// told in which row depends on the version.
    parent: Option<String>,
    is_subagent: bool,
}

impl Conversation {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: origin.part.map(str::to_owned),
                ..Session::default()
            },
            speaker: None,
            parent: None,
            is_subagent: false,
        }
    }

    /// A row of the conversation: what never changes of it, or all that is known.
    fn about(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        let session = &mut self.session;
        learn(&mut session.id, || {
            let id = row.text("id")?;
            Some(match row.get("workspace_id") {
                Some(space) => Cow::Owned(format!("{}:{id}", space.raw().get())),
                None => id,
            })
        });
        update(&mut session.title, row.text("title"));
        learn(&mut session.title, || row.text("sub_agent_name"));
        learn(&mut session.cwd, || row.text("workspace"));
        learn(&mut session.branch, || row.text("git_branch"));
        learn(&mut self.parent, || row.text("parent_conversation_id"));
        self.is_subagent |= wire::is_subagent(row);
        if let Some(parent) = self.parent.as_deref().filter(|_| self.is_subagent) {
            // Ids may be unique within a workspace only, whose number is then before them.
            let space = session.id.as_deref().and_then(|id| id.split_once(':'));
            session.parent = Some(match space {
                Some((space, _)) => format!("{space}:{parent}"),
                None => parent.to_owned(),
            });
        }
        if session.started_at.is_none() {
            let created = time::field(row, "created_at");
            session.started_at = created.map(Timestamp::as_millisecond);
        }
        out.push(Entry {
            at: time::field(row, "updated_at"),
            ..Entry::keep(NoteKind::Session, row)
        });
    }

    fn item(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        out.check("item", row, wire::ITEM_COLUMNS);
        let at = time::field(row, "created_at");
        let kind = wire::kind(row);
        let data = row.get("data").unwrap_or(row);
        if data.kind() != Kind::Object {
            return out.push(Entry {
                at,
                ..Entry::keep(NoteKind::UnknownRecord, row)
            });
        }
        // Newer versions call the agent that speaks a model.
        let agent = data.text("agent").or(data.text("model"));
        let agent = agent.filter(|_| !matches!(&*kind, "compaction" | "error"));
        if agent.is_some() && agent.as_deref() != self.speaker.as_deref() {
            update(&mut self.speaker, agent.clone());
            let says = agent.map(|agent| format!("agent {agent}"));
            out.push(Entry {
                at,
                ..Entry::note(NoteKind::Mode, says.unwrap_or_default())
            });
        }
        let text = |key: &str| data.get(key).and_then(Text::of);
        let note = |kind: NoteKind, text: Option<Text<'_>>, out: &mut Out<'_>| {
            out.push(Entry {
                at,
                ..Entry::new(What::Note {
                    kind,
                    text: text.map(|text| Text::from(text.read().into_owned())),
                    raw: Some(data.into()),
                })
            });
        };
        match &*kind {
            "message" => message(data, at, out),
            "function_call" => call(data, at, out),
            "function_call_output" => output(data, at, out),
            "reasoning" => reasoning(data, at, out),
            "error" => note(NoteKind::Error, text("message"), out),
            "compaction" => note(NoteKind::Compaction, text("summary"), out),
            "routing_decision" => note(NoteKind::ModelChange, None, out),
            "resource_event" => note(NoteKind::Context, None, out),
            "slash_command" => note(NoteKind::Context, text("name"), out),
            "terminal_command" | "native_tool" => note(NoteKind::Progress, None, out),
            other => {
                out.unknown_type("item", other);
                note(NoteKind::UnknownRecord, None, out);
            }
        }
    }

    /// What the agents that were run told of their use, which their own logs count.
    fn used(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        if let Some(usage) = blocks::usage(row) {
            self.session.vendor_usage = Some(usage.into());
        }
        if let Some(cost) = row.get("total_cost_usd").and_then(Cost::of) {
            self.session.vendor_cost = Some(cost.to_text());
        }
        out.push(Entry::keep(NoteKind::Usage, row));
    }
}

fn message(data: Node<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
    out.check("message", data, wire::MESSAGE);
    let speaker = match data.text("role").as_deref() {
        Some("user") => Speaker::User,
        _ => Speaker::Assistant,
    };
    let mut any = false;
    for block in data.get("content").into_iter().flat_map(Node::items) {
        any = true;
        let entry = blocks::entry(block, speaker, ResultFacts::default(), out);
        let entry = entry.unwrap_or_else(|| {
            out.unknown_type("block", &block.text("type").unwrap_or_default());
            Entry::keep(NoteKind::UnknownRecord, block)
        });
        out.push(Entry { at, ..entry });
    }
    if !any {
        out.skip(Dropped::Empty);
    }
}

fn call(data: Node<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
    out.check("function_call", data, wire::CALL);
    let mut attachments = Vec::new();
    let input = data
        .get("arguments")
        .map(|arguments| match Text::of(arguments) {
            Some(text) => capture::arguments(text, out, &mut attachments),
            None => out.value(arguments, &mut attachments),
        });
    out.push(Entry {
        at,
        attachments,
        ..Entry::new(What::Call {
            name: data.text("name").unwrap_or_default(),
            id: data.text("call_id").unwrap_or_default(),
            input,
        })
    });
}

fn output(data: Node<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
    out.check("function_call_output", data, wire::OUTPUT);
    let mut attachments = Vec::new();
    let given = data.get("output").filter(|given| !given.is_null());
    let output = given.map(|given| out.value(given, &mut attachments));
    out.push(Entry {
        at,
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: data.text("call_id").unwrap_or_default(),
            output,
            error: None,
        })
    });
}

fn reasoning(data: Node<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
    out.check("reasoning", data, wire::REASONING);
    let mut any = false;
    for part in data.get("summary").into_iter().flat_map(Node::items) {
        any = true;
        let text = part.get("text").and_then(Text::of).unwrap_or(Text::EMPTY);
        out.push(Entry {
            at,
            opaque: text.is_empty(),
            ..Entry::new(What::Reasoning(text))
        });
    }
    if !any {
        out.push(Entry {
            at,
            opaque: true,
            ..Entry::new(What::Reasoning(Text::EMPTY))
        });
    }
}

impl Reader for Conversation {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let table = record.text("table").unwrap_or_default();
        let row = record.get("row").filter(|row| row.kind() == Kind::Object);
        match (&*table, row) {
            (CONVERSATION | ABOUT, Some(row)) => {
                out.check("conversation", row, wire::COLUMNS);
                self.about(row, out);
            }
            (ITEM, Some(row)) => self.item(row, out),
            (USAGE, Some(row)) => self.used(row, out),
            (LEFT_OUT, Some(row)) => {
                for name in row.get("columns").into_iter().flat_map(Node::items) {
                    out.unknown_type("column", &name.as_str().unwrap_or_default());
                }
                out.push(Entry::keep(NoteKind::UnknownRecord, row));
            }
            _ => {
                out.unknown_type("table", &table);
                out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
        }
    }

    crate::state::keeps_session!();
}
