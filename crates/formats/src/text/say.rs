//! What an event says, in the order in which it is read: what Markdown and plain text have in common.

use std::borrow::Cow;

use quipu_model::json::{Kind, Tape};
use quipu_model::{
    Block, Body, Content, Event, Flags, Json, Note, Status, Step, StepEnd, ToolCall, ToolResult,
    Usage,
};

use super::clean::clean_line;
use crate::loss::Field;

/// The fields that both formats for people show.
pub(crate) const SHOWN: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Place,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageReasoning,
    Field::Cost,
    Field::Duration,
    Field::Status,
    Field::Child,
    Field::Attachments,
    Field::Opaque,
    Field::Synthetic,
    Field::Superseded,
    Field::Undated,
    Field::Dangling,
    Field::Title,
    Field::ParentCall,
    Field::ForkedFrom,
    Field::Children,
    Field::Agent,
    Field::AgentVersion,
    Field::SessionId,
    Field::Cwd,
    Field::Branch,
    Field::Repository,
    Field::Commit,
    Field::Os,
    Field::Shell,
];

/// What kinds of events are left out when they are not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Message,
    Reasoning,
    Tool,
    Note,
}

/// An event, ready to be laid out.
#[derive(Debug)]
pub(crate) struct Entry<'e> {
    pub(crate) sort: Sort,
    /// Who acts, or what happens.
    pub(crate) head: Cow<'e, str>,
    /// What it is about, on the same line.
    pub(crate) about: Vec<Cow<'e, str>>,
    pub(crate) parts: Vec<Part<'e>>,
}

/// A part of what an event says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'e> {
    /// Something said.
    Said(&'e str),
    /// Something thought.
    Thought(&'e str),
    /// A value that belongs to a tool or a step.
    Value {
        label: Cow<'e, str>,
        text: Cow<'e, str>,
        is_output: bool,
    },
    /// Why something failed.
    Failure(&'e str),
}

/// The arguments that tell most, the most telling first.
const TELLING: &[&str] = &[
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "pattern",
    "query",
    "path",
    "url",
    "description",
    "prompt",
];

/// As much of an argument stands on the line of its call.
const TOLD: usize = 80;

impl Entry<'_> {
    /// What a tool was asked, in a word, where it says so in one of the usual places.
    pub(crate) fn told(&self) -> Option<String> {
        let value = |name: &&str| {
            self.parts.iter().find_map(|part| match part {
                Part::Value {
                    label,
                    text,
                    is_output: false,
                } if label == name => text.lines().find(|line| !line.trim().is_empty()),
                _ => None,
            })
        };
        let line = TELLING.iter().find_map(value)?;
        let told: String = line.trim().chars().take(TOLD).collect();
        let more = if told.len() < line.trim().len() {
            "…"
        } else {
            ""
        };
        Some(told + more)
    }
}

/// What an event says.
pub(crate) fn entry<'e>(event: &'e Event, agent: &'e str) -> Entry<'e> {
    let flags = event.annotations.flags;
    match &event.body {
        Body::SystemMessage(blocks) => message("System".into(), blocks),
        Body::Note(note) => self::note(note),
        Body::UserMessage(blocks) if flags.synthetic => message("Context".into(), blocks),
        Body::UserMessage(blocks) => message("User".into(), blocks),
        Body::AssistantMessage(blocks) => {
            let mut entry = message(agent.into(), blocks);
            if let [Part::Thought(_)] = entry.parts.as_slice() {
                entry.sort = Sort::Reasoning;
                entry.head = "Reasoning".into();
            }
            entry
        }
        Body::ToolCall(call) => self::call(call),
        Body::ToolResult(result) => self::result(result),
        Body::RunStarted(None) => happened("Run started", None),
        Body::RunCompleted(None) => happened("Run completed", None),
        Body::RunStarted(Some(step)) => happened("Run started", Some(step)),
        Body::StepStarted(step) => happened("Step started", Some(step)),
        Body::RunCompleted(Some(end)) => ended("Run completed", end),
        Body::StepCompleted(end) => ended("Step completed", end),
        Body::CallStarted { child_run_id, step } => {
            let mut entry = happened("Run called", Some(step));
            entry.about.push(child_run_id.as_str().into());
            entry
        }
        Body::CallCompleted { child_run_id, end } => {
            let mut entry = ended("Called run completed", end);
            entry.about.push(child_run_id.as_str().into());
            entry
        }
        // They are notes by now.
        Body::ModelCall(_)
        | Body::Chunk(_)
        | Body::Harness(_)
        | Body::Blob(_)
        | Body::Error(_)
        | Body::Unknown(_) => happened("Event", None),
    }
}

fn message<'e>(head: Cow<'e, str>, blocks: &'e [Block]) -> Entry<'e> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        match &block.content {
            Content::Text(text) => parts.push(Part::Said(text)),
            Content::Thinking(text) => parts.push(Part::Thought(text)),
            Content::Command(text) => parts.push(input("command", text.into())),
            Content::Stream(text) => parts.push(output("stream", text.into())),
            Content::ToolUse { name, id, input } => {
                parts.push(self::input("tool use", format!("{name} {id}").into()));
                inputs(&mut parts, input.as_ref());
            }
            Content::ToolResult { id, content } => {
                parts.push(self::input("tool result", id.as_str().into()));
                parts.extend(content.as_ref().map(|it| output("output", said(it))));
            }
            Content::Unknown(json) => parts.push(Part::Said(json.get())),
        }
    }
    Entry {
        sort: Sort::Message,
        head,
        about: Vec::new(),
        parts,
    }
}

fn note(note: &Note) -> Entry<'_> {
    let mut parts = Vec::new();
    parts.extend(note.text.as_deref().map(Part::Said));
    parts.extend(note.raw.as_ref().map(|raw| input("record", said(raw))));
    Entry {
        sort: Sort::Note,
        head: "Note".into(),
        about: vec![note.kind.as_str().into()],
        parts,
    }
}

fn call(call: &ToolCall) -> Entry<'_> {
    let mut parts = Vec::new();
    inputs(&mut parts, call.input.as_ref());
    Entry {
        sort: Sort::Tool,
        head: "Tool".into(),
        about: named(&call.name, &call.call_id),
        parts,
    }
}

fn result(result: &ToolResult) -> Entry<'_> {
    let mut parts = Vec::new();
    inputs(&mut parts, result.input.as_ref());
    parts.extend(result.output.as_ref().map(|it| output("output", said(it))));
    parts.extend(result.error.as_deref().map(Part::Failure));
    Entry {
        sort: Sort::Tool,
        head: "Result".into(),
        about: named(&result.name, &result.call_id),
        parts,
    }
}

fn named<'e>(name: &'e str, id: &'e str) -> Vec<Cow<'e, str>> {
    [name, id]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(Into::into)
        .collect()
}

fn happened<'e>(head: &'e str, step: Option<&'e Step>) -> Entry<'e> {
    let about = step.map(|step| named(&step.name, &step.kind));
    Entry {
        sort: Sort::Note,
        head: head.into(),
        about: about.unwrap_or_default(),
        parts: Vec::new(),
    }
}

fn ended<'e>(head: &'e str, end: &'e StepEnd) -> Entry<'e> {
    let mut entry = happened(head, Some(&end.step));
    entry.parts.extend(end.error.as_deref().map(Part::Failure));
    let result = end.result.as_ref().map(|it| output("result", said(it)));
    entry.parts.extend(result);
    entry
}

fn input<'e>(label: &'e str, text: Cow<'e, str>) -> Part<'e> {
    Part::Value {
        label: label.into(),
        text,
        is_output: false,
    }
}

fn output<'e>(label: &'e str, text: Cow<'e, str>) -> Part<'e> {
    Part::Value {
        label: label.into(),
        text,
        is_output: true,
    }
}

/// The arguments of a tool, one by one where they have names.
fn inputs<'e>(parts: &mut Vec<Part<'e>>, input: Option<&'e Json>) {
    let Some(input) = input else { return };
    let mut tape = Tape::new();
    let root = tape.read(input.get(), Json::MAX_DEPTH).ok();
    match root.filter(|root| root.kind() == Kind::Object) {
        Some(root) => parts.extend(root.fields().map(|(name, value)| {
            Part::Value {
                label: name.to_text_lossy().into_owned().into(),
                text: value
                    .as_str()
                    .map_or_else(|| value.raw().get().to_owned(), Cow::into_owned)
                    .into(),
                is_output: false,
            }
        })),
        None => parts.push(self::input("input", said(input))),
    }
}

/// What a value says: a text as it is, a list of texts as those texts, all else as JSON.
pub(crate) fn said(value: &Json) -> Cow<'_, str> {
    if let Some(text) = value.as_str() {
        return text;
    }
    let mut tape = Tape::new();
    let texts = tape
        .read(value.get(), Json::MAX_DEPTH)
        .ok()
        .filter(|root| root.kind() == Kind::List)
        .and_then(|root| {
            root.items()
                .map(|item| {
                    // Nothing but the text may be left out.
                    let is_text = item.get("type").is_some_and(|it| it.is("text"));
                    (is_text && item.fields().count() == 2)
                        .then(|| item.text("text").map(Cow::into_owned))?
                })
                .collect::<Option<Vec<_>>>()
        });
    match texts {
        Some(texts) if !texts.is_empty() => texts.join("\n").into(),
        _ => value.get().into(),
    }
}

/// What else is known of an event, each in a few words.
pub(crate) fn facts(event: &Event) -> Vec<String> {
    let notes = &event.annotations;
    let mut facts = Vec::new();
    if event.annotations.is_empty() && event.place.path.is_empty() && event.place.iteration() == 0 {
        return facts;
    }
    if let Some(status) = notes.status {
        facts.push(status_word(status).to_owned());
    }
    facts.extend(notes.duration_ms.map(duration));
    let line = |text: &String| clean_line(text).into_owned();
    facts.extend(notes.model.as_ref().map(line));
    let tokens = notes.usage.as_ref().map(usage).filter(|it| !it.is_empty());
    facts.extend(tokens.map(|tokens| format!("tokens: {tokens}")));
    facts.extend(notes.cost.map(|cost| format!("${cost}")));
    let sub = notes.subagent_id.as_deref();
    facts.extend(sub.map(|it| format!("sub-agent {}", clean_line(it))));
    facts.extend(notes.child.as_ref().map(|it| format!("run {it}")));
    if !event.place.path.is_empty() {
        facts.push(format!("at {}", clean_line(&event.place.path)));
    }
    if event.place.iteration() > 0 {
        facts.push(format!("iteration {}", event.place.iteration()));
    }
    facts.extend(flags(notes.flags).map(str::to_owned));
    facts
}

fn flags(flags: Flags) -> impl Iterator<Item = &'static str> {
    [
        (flags.opaque, "not readable"),
        (flags.synthetic, "by a program"),
        (flags.superseded, "superseded"),
        (flags.undated, "no time"),
        (flags.dangling, "no result"),
    ]
    .into_iter()
    .filter_map(|(is, word)| is.then_some(word))
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Error => "failed",
        Status::Denied => "denied",
        Status::Timeout => "timed out",
    }
}

/// Tokens, bucket by bucket; nothing where none are known.
pub(crate) fn usage(usage: &Usage) -> String {
    let buckets = [
        (usage.input, "in"),
        (usage.cache_read, "from cache"),
        (usage.cache_write, "to cache"),
        (usage.output, "out"),
        (usage.reasoning, "of it reasoning"),
    ];
    let words: Vec<String> = buckets
        .iter()
        .filter_map(|(n, what)| n.map(|n| format!("{n} {what}")))
        .collect();
    words.join(", ")
}

/// How long something took.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..=9 => format!("{seconds}.{} s", ms % 1000 / 100),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..=172_799 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// What is attached to an event, each in a line.
pub(crate) fn attachments(event: &Event) -> impl Iterator<Item = String> {
    event.annotations.attachments.iter().map(|it| {
        let mime = match it.mime.as_str() {
            "" => Cow::Borrowed("of no known type"),
            mime => clean_line(mime),
        };
        format!(
            "{mime}, {} bytes, sha256 {}",
            it.bytes,
            clean_line(&it.sha256)
        )
    })
}
