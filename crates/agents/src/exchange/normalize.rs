//! What a line means.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use quipu_exchange::{Warning, decode_text};
use quipu_formats::exchange::{Changes, into_log};
use quipu_formats::plain;
use quipu_model::json::Node;
use quipu_model::{
    Body, Content, Event, Money, Note, NoteKind, Notes, ToolCall, ToolResult, Usage,
};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::normalized::{entry, part};
use crate::session::{Tokens, learn};
use crate::{Dropped, InRun, Out, Reader, Session, Text, Value, What, hash};

/// How many calls to models are added up at a time. Events of one call stand close together.
const CALLS: usize = 1024;

/// Reads the lines of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Run {
    session: Session,
    /// What each call to a model came to so far: tokens, and dollars as written. An event says what it adds.
    calls: HashMap<u64, (Tokens, Option<String>)>,
    /// Tool calls without a result, by their ids, and those that had one lately. The agent's stream and the router may
    /// both tell of one call; it counts once.
    open: BTreeSet<u64>,
    closed: BTreeSet<u64>,
}

/// How many ids of tool calls are remembered.
const TOOL_CALLS: usize = 4096;

impl Reader for Run {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let Ok((event, warnings)) = decode_text(record.raw().get()) else {
            // Kept as something that is not known.
            return;
        };
        out.check("event", record, wire::EVENT);
        for warning in &warnings {
            match warning {
                Warning::UnknownEventType(word) => out.unknown_type("event", word),
                Warning::UnknownBlockType { block_type, .. } => {
                    out.unknown_type("block", block_type);
                }
                _ => {}
            }
        }
        let event = into_log(event, &mut Changes::default());
        self.learn(&event);
        let mut notes = Notes::clone(&event.annotations);
        let (usage, cost) = self.add_up(&mut notes);
        let mut first = true;
        let noted = plain::plain(&event);
        for (at, what) in entries(&noted.body, record).into_iter().enumerate() {
            let what = self.once(what, record);
            let mut entry = entry(what, &event, &notes);
            entry.synthetic |= is_command(&noted.body, at);
            if matches!(noted, Cow::Owned(_)) {
                entry.in_run = Some(InRun::of(event.place.clone(), event.body.clone()));
            } else if !event.place.path.is_empty() {
                let place = event.place.clone();
                entry.in_run = Some(Box::new(InRun {
                    place,
                    ..InRun::default()
                }));
            }
            if let Some(child) = event.body.child_run_id() {
                entry.child = Some(child.to_string().into());
            }
            if first {
                entry.usage = usage;
                entry.cost = cost;
                entry.attachments = event.blobs().cloned().collect();
            }
            first = false;
            out.push(entry);
        }
        if first {
            out.skip(Dropped::Empty);
        }
    }

    crate::state::keeps_session!();
}

impl Run {
    fn learn(&mut self, event: &Event) {
        let session = &mut self.session;
        learn(&mut session.id, || Some(event.run_id.as_str().into()));
        learn(&mut session.parent, || {
            event.parent_run_id.as_ref().map(|id| id.as_str().into())
        });
        if let Body::RunStarted(Some(step)) = &event.body {
            learn(&mut session.title, || Some(step.name.as_str().into()));
        }
    }

    /// Keeps what is told of a tool call for the second time as a note.
    fn once<'a>(&mut self, what: What<'a>, record: Node<'a>) -> What<'a> {
        let is_told = match &what {
            What::Call { id, .. } if !id.is_empty() => {
                let id = hash(id.as_bytes());
                self.closed.remove(&id);
                !remember(&mut self.open, id)
            }
            What::Result { id, .. } if !id.is_empty() => {
                let id = hash(id.as_bytes());
                let is_open = self.open.remove(&id);
                !remember(&mut self.closed, id) && !is_open
            }
            _ => false,
        };
        if !is_told {
            return what;
        }
        let text = match &what {
            What::Call { name, .. } => format!("tool.call: {name}, told again"),
            _ => "tool.result, told again".to_owned(),
        };
        What::Note {
            kind: NoteKind::Turn,
            text: Some(Text::from(text)),
            raw: Some(record.into()),
        }
    }

    /// What the event's call to a model came to with it.
    fn add_up(&mut self, notes: &mut Notes) -> (Option<Usage>, Option<Money>) {
        let (usage, cost) = (notes.usage.take(), notes.cost.take());
        let Some(call) = notes
            .model_call
            .as_ref()
            .filter(|_| usage.is_some() || cost.is_some())
        else {
            return (usage, cost);
        };
        let key = hash(call.as_bytes());
        if self.calls.len() >= CALLS && !self.calls.contains_key(&key) {
            self.calls.clear();
        }
        let (tokens, dollars) = self.calls.entry(key).or_default();
        let mut sum = Usage::from(*tokens);
        if let Some(usage) = &usage {
            sum.add(usage);
            *tokens = sum.into();
        }
        let before = dollars.as_deref().and_then(Money::parse);
        let all = match (before, cost) {
            (Some(before), Some(cost)) => Some(before.saturating_add(cost)),
            (before, cost) => before.or(cost),
        };
        *dollars = all.map(|all| all.to_string());
        (usage.map(|_| sum), cost.and(all))
    }
}

/// Puts an id into a set of bounded size; whether it was not there.
fn remember(ids: &mut BTreeSet<u64>, id: u64) -> bool {
    if ids.len() >= TOOL_CALLS && !ids.contains(&id) {
        ids.pop_first();
    }
    ids.insert(id)
}

/// The entries of an event: one, but for messages of several blocks.
fn entries<'a>(body: &Body, record: Node<'a>) -> Vec<What<'a>> {
    let blocks = |blocks: &[quipu_model::Block], said: fn(Text<'a>) -> What<'a>| {
        blocks
            .iter()
            .cloned()
            .map(|block| part(block, said))
            .collect()
    };
    match body {
        Body::SystemMessage(all) => blocks(all, What::System),
        Body::Note(Note { kind, text, raw }) => vec![What::Note {
            kind: *kind,
            text: text.clone().map(Text::from),
            raw: raw.clone().map(Value::Owned),
        }],
        Body::UserMessage(all) => blocks(all, What::User),
        Body::AssistantMessage(all) => blocks(all, What::Assistant),
        Body::ToolCall(ToolCall {
            name,
            call_id,
            input,
            ..
        }) => vec![What::Call {
            name: name.clone().into(),
            id: call_id.clone().into(),
            input: input.clone().map(Value::Owned),
        }],
        Body::ToolResult(ToolResult {
            name,
            call_id,
            output,
            error,
            ..
        }) => vec![What::Result {
            name: name.clone().into(),
            id: call_id.clone().into(),
            output: output.clone().map(Value::Owned),
            error: error.clone().map(Text::from),
        }],
        // What happened to a run or a step. The line says more than a note has room for, and is kept.
        other => vec![What::Note {
            kind: match other {
                Body::RunStarted(_) | Body::RunCompleted(_) => NoteKind::Session,
                _ => NoteKind::Turn,
            },
            text: Some(Text::from(described(other))),
            raw: Some(record.into()),
        }],
    }
}

/// Whether a block of a message is a command of a step. Nobody asked anything with it.
fn is_command(body: &Body, at: usize) -> bool {
    let block = body.blocks().and_then(|blocks| blocks.get(at));
    block.is_some_and(|block| matches!(block.content, Content::Command(_)))
}

fn described(body: &Body) -> String {
    let word = body.type_word();
    let (step, error) = match body {
        Body::RunStarted(step) => (step.as_ref(), None),
        Body::StepStarted(step) | Body::CallStarted { step, .. } => (Some(step), None),
        Body::RunCompleted(end) => {
            let end = end.as_ref();
            (
                end.map(|end| &end.step),
                end.and_then(|end| end.error.as_ref()),
            )
        }
        Body::StepCompleted(end) | Body::CallCompleted { end, .. } => {
            (Some(&end.step), end.error.as_ref())
        }
        _ => (None, None),
    };
    let mut text = word.to_owned();
    for more in [step.map(|step| &step.name), error].into_iter().flatten() {
        text.push_str(": ");
        text.push_str(more);
    }
    text
}
