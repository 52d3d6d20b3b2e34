//! What a record of Kimi Code means.
//!
//! A prompt is there twice, as what was typed and as what the model is given; the tokens of a step are
//! there twice, at its end and for the books. Each is taken from where it comes first.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use quipu_model::json::Node;
use quipu_model::{NoteKind, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::discover::named;
use super::wire::{Side, part, parts, record_note, result, usage};
use crate::blocks;
use crate::session::{learn, update};
use crate::{
    Dropped, Entry, Origin, Out, Reader, Session, Text, Tokens, What, capture, hash, time,
};

/// How many prompts may be waiting to be given to the model.
const WAITING: usize = 64;

/// Reads the records of one agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Records {
    session: Session,
    /// The session as its directory is named, which that of a sub-agent begins with.
    named: Option<String>,
    model: Option<String>,
    /// Prompts that were typed and have not been given to the model yet.
    typed: VecDeque<u64>,
    /// Tokens of steps that have not been seen in the books, and the other way round.
    steps: VecDeque<Tokens>,
    books: VecDeque<Tokens>,
    /// Calls that were not allowed and have no result yet.
    denied: BTreeSet<u64>,
    /// The number of the first event of each turn.
    turns: Vec<u64>,
}

struct Common<'a> {
    at: Option<Timestamp>,
    model: Option<Cow<'a, str>>,
}

impl<'a> Common<'a> {
    fn put(&self, entry: Entry<'a>, out: &mut Out<'_>) {
        out.push(Entry {
            at: self.at,
            ..entry
        });
    }
}

impl Records {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let (session, agent) = named(origin);
        let id = match (&session, &agent) {
            (Some(session), Some(agent)) => Some(format!("{session}.{agent}")),
            (session, _) => session.clone(),
        };
        Self {
            session: Session {
                id,
                parent: session.clone().filter(|_| agent.is_some()),
                ..Session::default()
            },
            named: session,
            model: None,
            typed: VecDeque::new(),
            steps: VecDeque::new(),
            books: VecDeque::new(),
            denied: BTreeSet::new(),
            turns: Vec::new(),
        }
    }

    fn config<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &[
            "type",
            "time",
            "cwd",
            "modelAlias",
            "profileName",
            "systemPrompt",
            "subagentNames",
            "thinkingEffort",
            "thinkingLevel",
            "thinkingKeep",
        ];
        out.check("config.update", record, FIELDS);
        learn(&mut self.session.cwd, || record.text("cwd"));
        update(&mut self.model, record.text("modelAlias"));
        let model = record.get("modelAlias").and_then(Text::of);
        let kind = if model.is_some() {
            NoteKind::ModelChange
        } else {
            NoteKind::Context
        };
        let prompt = record.get("systemPrompt").and_then(Text::of);
        let raw = blocks::without(record, &["systemPrompt"]);
        let entry = Entry::new(What::Note {
            kind,
            text: model,
            raw: Some(raw),
        });
        common.put(entry, out);
        if let Some(prompt) = prompt {
            let entry = Entry {
                synthetic: true,
                ..Entry::new(What::System(prompt))
            };
            common.put(entry, out);
        }
    }

    /// A prompt as it was typed.
    fn prompt<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        out.check("prompt", record, &["type", "time", "input", "origin"]);
        let Some(input) = record.get("input") else {
            return;
        };
        let side = side(record.get("origin"));
        if side == Side::Prompt
            && record
                .get("type")
                .is_some_and(|kind| kind.is("turn.prompt"))
        {
            self.turns.push(out.next_seq());
        }
        if self.typed.len() == WAITING {
            self.typed.pop_front();
        }
        self.typed.push_back(content_hash(input));
        contents(input, side, common, out);
    }

    /// A message as the model is given it.
    fn message<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &[
            "role",
            "content",
            "toolCalls",
            "toolCallId",
            "origin",
            "name",
            "partial",
            "isError",
        ];
        let Some(message) = record.get("message") else {
            return;
        };
        out.check("message", message, FIELDS);
        let content = message.get("content");
        let role = message.text("role").unwrap_or_default();
        match &*role {
            "user" => {
                let Some(content) = content else {
                    return;
                };
                let known = content_hash(content);
                if let Some(at) = self.typed.iter().position(|typed| *typed == known) {
                    self.typed.remove(at);
                    return out.skip(Dropped::RepeatedChannel);
                }
                contents(content, side(message.get("origin")), common, out);
            }
            "tool" => {
                let id = message.text("toolCallId").unwrap_or_default();
                let mut entry = result(id, message, false, out);
                if let (What::Result { output, .. }, Some(content)) = (&mut entry.what, content) {
                    *output = Some(out.value(content, &mut entry.attachments));
                }
                common.put(entry, out);
            }
            "system" => {
                if let Some(content) = content {
                    contents(content, Side::Injected, common, out);
                }
            }
            "assistant" => {
                if let Some(content) = content {
                    contents(content, Side::Model, common, out);
                }
                let calls = message.get("toolCalls").into_iter().flat_map(Node::items);
                for call in calls {
                    let function = call.get("function").unwrap_or(call);
                    let mut attachments = Vec::new();
                    let input = function.get("arguments").or(function.get("args"));
                    let input = input.map(|input| match Text::of(input) {
                        Some(text) => capture::arguments(text, out, &mut attachments),
                        None => out.value(input, &mut attachments),
                    });
                    let entry = Entry {
                        attachments,
                        ..Entry::new(What::Call {
                            name: function.text("name").unwrap_or_default(),
                            id: call.text("id").unwrap_or_default(),
                            input,
                        })
                    };
                    common.put(entry, out);
                }
            }
            other => out.unknown_type("message.role", other),
        }
        out.skip(Dropped::Empty);
    }

    fn event<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let Some(event) = record.get("event") else {
            return;
        };
        let kind = event.text("type").unwrap_or_default();
        let step = event.text("stepUuid");
        let native_id = event.text("uuid");
        let of_step = |entry: Entry<'a>| Entry {
            native_id: native_id.clone(),
            model: common.model.clone(),
            model_call: step.clone(),
            ..entry
        };
        match &*kind {
            "step.begin" => {
                self.steps.clear();
                self.books.clear();
                common.put(Entry::keep(NoteKind::Turn, record), out);
            }
            "step.end" => self.step_end(event, common, out),
            "content.part" => {
                let Some(content) = event.get("part") else {
                    return;
                };
                let entry = part(content, Side::Model, out).unwrap_or_else(|| {
                    let kind = content.text("type").unwrap_or_default();
                    out.unknown_type("part", &kind);
                    Entry::keep(NoteKind::UnknownRecord, content)
                });
                common.put(of_step(entry), out);
            }
            "tool.call" => {
                let mut attachments = Vec::new();
                let input = event
                    .get("args")
                    .map(|args| out.value(args, &mut attachments));
                let entry = Entry {
                    attachments,
                    ..Entry::new(What::Call {
                        name: event.text("name").unwrap_or_default(),
                        id: event.text("toolCallId").unwrap_or_default(),
                        input,
                    })
                };
                common.put(of_step(entry), out);
            }
            "tool.result" => {
                let id = event.text("toolCallId").unwrap_or_default();
                let denied = self.denied.remove(&hash(id.as_bytes()));
                let gave = event.get("result").unwrap_or(event);
                let child = self.child(gave);
                let entry = Entry {
                    child: child.map(Cow::Owned),
                    ..result(id, gave, denied, out)
                };
                common.put(entry, out);
            }
            other => out.unknown_type("loop_event", other),
        }
    }

    /// The session of the sub-agent whose result this is. The result says so in words.
    fn child(&self, result: Node<'_>) -> Option<String> {
        let output = result.get("output").and_then(Text::of)?;
        if !output.starts_with("agent_id: ") {
            return None;
        }
        let text = output.read();
        let agent = text.strip_prefix("agent_id: ")?.lines().next()?.trim();
        let session = self.named.as_ref()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (!agent.is_empty() && agent.chars().all(plain)).then(|| format!("{session}.{agent}"))
    }

    fn step_end<'a>(&mut self, event: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let counts = event.get("usage").and_then(usage);
        let counted = counts.map(Tokens::from);
        let known = counted.and_then(|tokens| self.books.iter().position(|t| *t == tokens));
        match (known, counted) {
            (Some(at), _) => {
                self.books.remove(at);
            }
            (None, Some(tokens)) => self.steps.push_back(tokens),
            (None, None) => {}
        }
        let entry = Entry {
            native_id: event.text("messageId"),
            model: common.model.clone(),
            model_call: event.text("uuid"),
            usage: counts.filter(|_| known.is_none()),
            duration_ms: event.get("llmStreamDurationMs").and_then(|n| n.as_u64()),
            ..Entry::keep(NoteKind::ModelCall, event)
        };
        common.put(entry, out);
    }

    /// Tokens for the books: those of a step again, or those of a call that was no step.
    fn booked<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &["type", "time", "model", "usage", "usageScope", "agentId"];
        out.check("usage.record", record, FIELDS);
        let Some(counts) = record.get("usage").and_then(usage) else {
            return;
        };
        let mut sum: Usage = self.session.vendor_usage.unwrap_or_default().into();
        sum.add(&counts);
        self.session.vendor_usage = Some(sum.into());
        let tokens = Tokens::from(counts);
        if let Some(at) = self.steps.iter().position(|t| *t == tokens) {
            self.steps.remove(at);
            return out.skip(Dropped::RepeatedUsage);
        }
        self.books.push_back(tokens);
        let entry = Entry {
            usage: Some(counts),
            model: record.text("model").or_else(|| common.model.clone()),
            ..Entry::keep(NoteKind::Usage, record)
        };
        common.put(entry, out);
    }

    /// Anything that is no part of the conversation.
    fn other<'a>(&mut self, kind: &str, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let note = record_note(kind).unwrap_or_else(|| {
            out.unknown_type("", kind);
            NoteKind::UnknownRecord
        });
        let mut entry = blocks::kept(note, record, out);
        match kind {
            "metadata" => {
                let created = time::field(record, "created_at");
                if self.session.started_at.is_none() {
                    self.session.started_at = created.map(Timestamp::as_millisecond);
                }
            }
            "llm.request" => {
                if self.model.is_none() {
                    let model = record.text("modelAlias").or(record.text("model"));
                    update(&mut self.model, model);
                }
                entry.model = record.text("modelAlias").or(record.text("model"));
            }
            "permission.record_approval_result" => {
                let decision = record.path(&["result", "decision"]);
                let refused = decision.is_some_and(|decision| {
                    ["rejected", "denied", "cancelled", "reject"]
                        .iter()
                        .any(|word| decision.is(word))
                });
                if refused && let Some(id) = record.text("toolCallId") {
                    self.denied.insert(hash(id.as_bytes()));
                }
            }
            "context.apply_compaction" => {
                if let What::Note { text, .. } = &mut entry.what {
                    *text = record.get("summary").and_then(Text::of);
                }
            }
            "context.undo" => {
                let count = record.get("count").and_then(|n| n.as_u64()).unwrap_or(1);
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let keep = self.turns.len().saturating_sub(count);
                entry.voids = self.turns.get(keep).map(|from| *from..out.next_seq());
                self.turns.truncate(keep);
            }
            _ => {}
        }
        common.put(entry, out);
    }
}

/// Who put something into the conversation. A sub-agent is prompted by the agent that called it.
fn side(origin: Option<Node<'_>>) -> Side {
    let Some(origin) = origin.filter(|origin| !origin.is_null()) else {
        return Side::Prompt;
    };
    let kind = origin.text("kind").unwrap_or_default();
    let name = origin.text("name").unwrap_or_default();
    match (&*kind, &*name) {
        ("user" | "", _) | ("system_trigger", "subagent") => Side::Prompt,
        _ => Side::Injected,
    }
}

fn contents<'a>(content: Node<'a>, side: Side, common: &Common<'a>, out: &mut Out<'_>) {
    for item in parts(content) {
        let entry = part(item, side, out).unwrap_or_else(|| {
            let kind = item.text("type").unwrap_or_default();
            out.unknown_type("part", &kind);
            Entry::keep(NoteKind::UnknownRecord, item)
        });
        common.put(entry, out);
    }
    out.skip(Dropped::Empty);
}

fn content_hash(content: Node<'_>) -> u64 {
    hash(content.raw().get().as_bytes())
}

impl Reader for Records {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        let model = self.model.clone();
        let common = Common {
            at: time::field(record, "time").or(time::field(record, "created_at")),
            model: model.as_deref().map(Cow::Borrowed),
        };
        match &*kind {
            "config.update" => self.config(record, &common, out),
            "turn.prompt" | "turn.steer" => self.prompt(record, &common, out),
            "context.append_message" => self.message(record, &common, out),
            "context.append_loop_event" => self.event(record, &common, out),
            "usage.record" => self.booked(record, &common, out),
            kind => self.other(kind, record, &common, out),
        }
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        if self.session.parent.is_none() {
            let title = document.text("title").or(document.text("custom_title"));
            update(&mut self.session.title, title);
        }
        learn(&mut self.session.cwd, || document.text("workDir"));
    }

    crate::state::keeps_session!();
}
