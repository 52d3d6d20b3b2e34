//! What a transcript means: its events as entries.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_formats::normalized::{Base, Beyond, EVENT_FIELDS, Head, LISTS, decode};
use quipu_formats::plain;
use quipu_model::json::{Kind, Node};
use quipu_model::{
    Block, Body, Content, Event, Json, Money, Note, NoteKind, Notes, Timestamp, ToolCall,
    ToolResult, Usage,
};

use crate::{Dropped, Entry, InRun, Out, Reader, Session, Text, Value, What, hash};

/// How many calls to models are added up at a time.
const CALLS: usize = 4096;

/// Reads one transcript.
#[derive(Default)]
pub(super) struct Transcript {
    head: Head,
    base: Option<Base>,
    session: Session,
    /// What was used by each call to a model so far. An event of a transcript says what it adds; an entry says
    /// what its call came to.
    used: HashMap<u64, Usage>,
    /// What each of them cost so far.
    costs: HashMap<u64, Money>,
}

impl Reader for Transcript {
    /// Not called: the document is given in parts.
    fn record(&mut self, _record: Node<'_>, _out: &mut Out<'_>) {}

    fn lists(&self) -> &'static [&'static str] {
        LISTS
    }

    fn part(&mut self, key: &str, index: Option<u64>, value: Node<'_>, out: &mut Out<'_>) {
        match index {
            Some(index) => self.event(index, value, out),
            None => self.section(key, value, out),
        }
    }

    fn session(&self) -> &Session {
        &self.session
    }

    /// Documents are never gone on with.
    fn save(&self) -> crate::state::Saved {
        crate::state::Saved::default()
    }
}

impl Transcript {
    /// A section is what the session is, and no event. What says who shares it, and what was removed, is kept.
    fn section(&mut self, key: &str, value: Node<'_>, out: &mut Out<'_>) {
        let is_set = |name: &str| {
            value
                .get(name)
                .is_some_and(|field| field.as_bool() == Some(true))
        };
        let says = |name: &str| {
            value
                .get(name)
                .is_some_and(|field| field.kind() == Kind::String)
        };
        match key {
            "schemaVersion" | "transcriptId" | "source" | "session" => {
                // Of a version that is not known, what is known is read.
                if self.head.take(key, value).is_ok() {
                    self.learn();
                }
                out.skip(Dropped::Empty);
            }
            "metrics" => {
                let cost = value
                    .get("costUsd")
                    .filter(|cost| cost.kind() == Kind::Number);
                self.session.vendor_cost = cost.map(|cost| cost.raw().get().to_owned());
                out.skip(Dropped::RepeatedUsage);
            }
            "submitter" if says("keyId") || says("pseudonym") => {
                out.push(Entry::keep(NoteKind::Context, value));
            }
            "privacy" if is_set("redactionApplied") || is_set("anonymizationApplied") => {
                out.push(Entry::keep(NoteKind::Context, value));
            }
            "submitter" | "privacy" => out.skip(Dropped::Empty),
            // Kept as something that is not known.
            _ => out.unknown_type("document", key),
        }
    }

    /// What the sections say of the session.
    fn learn(&mut self) {
        let session = &mut self.session;
        let base = self.head.base();
        let at = self.head.environment();
        let own = self
            .head
            .origin()
            .and_then(|origin| origin.session_id.clone());
        session.id = Some(own.map_or_else(|| base.run_id.to_string(), String::from));
        let origin = self.head.origin();
        session.agent = origin.map(|origin| origin.agent.clone());
        session.version = origin.and_then(|origin| origin.agent_version.clone());
        session.title = self.head.title().map(str::to_owned);
        session.cwd.clone_from(&at.cwd);
        session.branch.clone_from(&at.git_branch);
        session.repository.clone_from(&at.repository);
        session.commit.clone_from(&at.commit);
        session.os.clone_from(&at.os);
        session.shell.clone_from(&at.shell);
        let (parent, forked_from) = self.head.links();
        session.parent = parent.map(ToString::to_string);
        session.parent_call = self.head.parent_call().map(str::to_owned);
        session.forked_from = forked_from.map(str::to_owned);
        session.started_at = self.head.started_at().map(Timestamp::as_millisecond);
    }

    fn event(&mut self, index: u64, node: Node<'_>, out: &mut Out<'_>) {
        if node.kind() != Kind::Object {
            return;
        }
        out.check("event", node, EVENT_FIELDS);
        let base = self.base.get_or_insert_with(|| self.head.base());
        let (mut event, beyond) = decode(node, index, base);
        let mut notes = Notes::clone(&event.annotations);
        let usage = notes.usage.take().map(|usage| self.add_up(&notes, usage));
        let cost = notes.cost.map(|cost| self.add_cost(&notes, cost));
        if let Some(id) = &notes.native_id {
            // By this, a transcript of a log that is here as well is known to be a copy. Several events may be
            // of one record.
            out.ledger().unit(id);
        }
        let blobs: Vec<_> = event.blobs().cloned().collect();
        let noted = plain::note(&event);
        let body = std::mem::replace(&mut event.body, Body::SystemMessage(Vec::new()));
        let is_told = body.blocks().is_some()
            || matches!(
                body,
                Body::ToolCall(_) | Body::ToolResult(_) | Body::Note(_)
            );
        let mut in_run = (!is_told).then(|| InRun::of(event.place.clone(), body.clone()));
        let body = noted.map_or(body, Body::Note);
        let mut first = true;
        for what in entries(body, &beyond, node) {
            let mut entry = entry(what, &event, &notes);
            if first {
                entry.usage = usage;
                entry.cost = cost;
                entry.attachments.clone_from(&blobs);
                entry.in_run = in_run.take();
            }
            if notes.flags.superseded {
                let seq = out.next_seq();
                entry.voids = Some(seq..seq + 1);
            }
            first = false;
            out.push(entry);
        }
        if first {
            out.skip(Dropped::Empty);
        }
    }

    fn add_up(&mut self, notes: &Notes, usage: Usage) -> Usage {
        let Some(call) = &notes.model_call else {
            return usage;
        };
        let key = hash(call.as_bytes());
        if self.used.len() >= CALLS && !self.used.contains_key(&key) {
            // Events of one call stand close together.
            self.used.clear();
        }
        let sum = self.used.entry(key).or_default();
        sum.add(&usage);
        *sum
    }

    fn add_cost(&mut self, notes: &Notes, cost: Money) -> Money {
        let Some(call) = &notes.model_call else {
            return cost;
        };
        let key = hash(call.as_bytes());
        if self.costs.len() >= CALLS && !self.costs.contains_key(&key) {
            self.costs.clear();
        }
        let sum = self.costs.entry(key).or_insert(Money::ZERO);
        *sum = sum.saturating_add(cost);
        *sum
    }
}

pub(crate) fn entry<'a>(what: What<'a>, event: &Event, notes: &Notes) -> Entry<'a> {
    let is_tool = matches!(what, What::Call { .. } | What::Result { .. });
    Entry {
        at: Some(event.timestamp).filter(|_| !notes.flags.undated),
        native_id: notes.native_id.clone().map(Into::into),
        parent_id: notes.parent_id.clone().map(Into::into),
        subagent: notes.subagent_id.clone().map(Into::into),
        model: notes.model.clone().map(Cow::Owned),
        model_call: notes.model_call.clone().map(Into::into),
        duration_ms: notes.duration_ms,
        status: notes.status.filter(|_| is_tool),
        child: notes
            .child
            .as_ref()
            .map(|child| Cow::Owned(child.to_string())),
        opaque: notes.flags.opaque,
        synthetic: notes.flags.synthetic,
        ..Entry::new(what)
    }
}

/// The entries of an event: one, but for messages of several blocks and calls that say something.
fn entries<'a>(body: Body, beyond: &Beyond, node: Node<'a>) -> Vec<What<'a>> {
    let mut all = Vec::new();
    match body {
        Body::UserMessage(blocks) => {
            all.extend(blocks.into_iter().map(|block| part(block, What::User)));
        }
        Body::AssistantMessage(blocks) => {
            all.extend(blocks.into_iter().map(|block| part(block, What::Assistant)));
        }
        Body::SystemMessage(blocks) => {
            all.extend(blocks.into_iter().map(|block| part(block, What::System)));
        }
        Body::ToolCall(call) => {
            let said = beyond.extra.iter().find(|(key, _)| key == "text");
            if let Some(said) = said.and_then(|(_, text)| text.as_str()) {
                all.push(What::Assistant(said.into_owned().into()));
            }
            let ToolCall {
                name,
                call_id,
                input,
                ..
            } = call;
            all.push(What::Call {
                name: name.into(),
                id: call_id.into(),
                input: input.map(Value::Owned),
            });
        }
        Body::ToolResult(result) => {
            let ToolResult {
                name,
                call_id,
                output,
                error,
                ..
            } = result;
            all.push(What::Result {
                name: name.into(),
                id: call_id.into(),
                output: output.map(Value::Owned),
                error: error.map(Text::from),
            });
        }
        Body::Note(Note { kind, text, raw }) => all.push(What::Note {
            kind,
            text: text.map(Text::from),
            raw: raw.map(Value::Owned),
        }),
        // What happened to a run or a step of a workflow.
        body => all.push(What::Note {
            kind: NoteKind::Session,
            text: Some(Text::from(body.type_word().to_owned())),
            raw: node.get("meta").map(Value::from),
        }),
    }
    all
}

/// A block of a message.
pub(crate) fn part<'a>(block: Block, said: fn(Text<'a>) -> What<'a>) -> What<'a> {
    match block.content {
        Content::Text(text) | Content::Stream(text) | Content::Command(text) => said(text.into()),
        Content::Thinking(text) => What::Reasoning(text.into()),
        Content::ToolUse { name, id, input } => What::Call {
            name: name.into(),
            id: id.into(),
            input: input.map(Value::Owned),
        },
        Content::ToolResult { id, content } => What::Result {
            name: Cow::Borrowed(""),
            id: id.into(),
            output: content
                .filter(|json: &Json| !json.is_null())
                .map(Value::Owned),
            error: None,
        },
        Content::Unknown(json) => said(json.get().to_owned().into()),
    }
}
