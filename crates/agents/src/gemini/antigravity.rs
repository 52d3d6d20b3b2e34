//! The transcript that Antigravity keeps of a session: a step a line.
//!
//! Calls have no ids. The steps that follow an answer of the model are what its calls came to, in their
//! order. Long texts are cut off, and the step says so.

use std::borrow::Cow;
use std::collections::VecDeque;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status};
use serde::{Deserialize, Serialize};

use crate::common::Common;
use crate::{Dropped, Entry, Mended, Origin, Out, Reader, Session, Text, Value, What, time};

const FIELDS: &[&str] = &[
    "step_index",
    "source",
    "type",
    "status",
    "created_at",
    "content",
    "thinking",
    "tool_calls",
    "truncated_fields",
    "error",
];

/// Reads a transcript.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Transcript {
    session: Session,
    /// Calls of the last answer that have not come to anything yet.
    open: VecDeque<String>,
    answers: u64,
}

impl Transcript {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        // `brain/<session>/.system_generated/logs/transcript.jsonl`
        let mut above = origin.above().skip(1);
        let id = match (above.next(), above.next()) {
            (Some(".system_generated"), Some(session)) => Some(session),
            _ => origin.stem(),
        };
        Self {
            session: Session {
                id: id.map(str::to_owned),
                ..Session::default()
            },
            open: VecDeque::new(),
            answers: 0,
        }
    }

    fn answer<'a>(&mut self, step: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        self.open.clear();
        self.answers += 1;
        if let Some(text) = said(step, "thinking") {
            common.put(Entry::new(What::Reasoning(text)), out);
        }
        if let Some(text) = said(step, "content") {
            common.put(Entry::new(What::Assistant(text)), out);
        }
        let calls = step.get("tool_calls").into_iter().flat_map(Node::items);
        for (index, call) in calls.enumerate() {
            out.check("tool_call", call, &["name", "args", "id"]);
            let id = match call.text("id").filter(|id| !id.is_empty()) {
                Some(id) => id.into_owned(),
                None => format!("{}.{index}", self.answers),
            };
            self.open.push_back(id.clone());
            let mut attachments = Vec::new();
            let input = call
                .get("args")
                .map(|args| out.value(args, &mut attachments));
            let entry = Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: call.text("name").unwrap_or_default(),
                    id: Cow::Owned(id),
                    input,
                })
            };
            common.put(entry, out);
        }
        out.skip(Dropped::Empty);
    }

    /// What a call came to.
    fn outcome<'a>(&mut self, kind: &str, step: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let state = step.text("status").unwrap_or_default();
        let status = match &*state {
            "ERROR" | "FAILED" => Status::Error,
            "CANCELED" | "CANCELLED" | "REJECTED" | "DENIED" => Status::Denied,
            "TIMEOUT" | "TIMED_OUT" => Status::Timeout,
            _ => Status::Ok,
        };
        let text = said(step, "error").or(said(step, "content"));
        let failed = status != Status::Ok;
        let (output, error) = if failed {
            (None, Some(text.unwrap_or(Text::from("failed"))))
        } else {
            (text.map(Value::Text), None)
        };
        let entry = match self.open.pop_front() {
            Some(id) => What::Result {
                name: Cow::Borrowed(""),
                id: Cow::Owned(id),
                output,
                error,
            },
            None => What::Result {
                name: Cow::Owned(kind.to_ascii_lowercase()),
                id: Cow::Borrowed(""),
                output,
                error,
            },
        };
        let entry = Entry {
            status: Some(status),
            ..Entry::new(entry)
        };
        common.put(entry, out);
    }
}

/// A text of a step that says something.
fn said<'a>(step: Node<'a>, key: &str) -> Option<Text<'a>> {
    step.get(key)
        .and_then(Text::of)
        .filter(|text| !text.is_empty())
}

/// What a person asked for stands in a tag of its own, beside what the editor adds.
fn prompt<'a>(step: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    const TAGS: (&str, &str) = ("<USER_REQUEST>", "</USER_REQUEST>");
    let Some(text) = said(step, "content") else {
        return out.skip(Dropped::Empty);
    };
    let whole = text.read();
    let parts = whole.split_once(TAGS.0).and_then(|(before, rest)| {
        let (asked, after) = rest.split_once(TAGS.1)?;
        let added = format!("{before}{after}").trim().to_owned();
        Some((asked.trim().to_owned(), added))
    });
    let Some((asked, added)) = parts else {
        return common.put(Entry::new(What::User(text)), out);
    };
    common.put(Entry::new(What::User(asked.into())), out);
    if !added.is_empty() {
        let entry = Entry {
            synthetic: true,
            ..Entry::new(What::System(added.into()))
        };
        common.put(entry, out);
    }
}

impl Reader for Transcript {
    fn record(&mut self, step: Node<'_>, out: &mut Out<'_>) {
        out.check("step", step, FIELDS);
        let at = time::field(step, "created_at");
        if at.is_none() && step.get("created_at").is_some_and(|at| !at.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let index = step.get("step_index").map(|n| n.raw().get());
        let common = Common {
            at,
            id: index.map(Cow::Borrowed),
            ..Common::default()
        };
        let kind = step.text("type").unwrap_or_default();
        let note = |kind, out: &mut Out<'_>| {
            let entry = Entry::new(What::Note {
                kind,
                text: said(step, "content"),
                raw: None,
            });
            common.put(entry, out);
        };
        match &*kind {
            "USER_INPUT" => prompt(step, &common, out),
            "PLANNER_RESPONSE" => self.answer(step, &common, out),
            "SYSTEM_MESSAGE" | "EPHEMERAL_MESSAGE" => {
                let entry = Entry {
                    synthetic: true,
                    ..Entry::new(What::System(said(step, "content").unwrap_or(Text::EMPTY)))
                };
                common.put(entry, out);
            }
            "CHECKPOINT" => note(NoteKind::Compaction, out),
            "ERROR_MESSAGE" => note(NoteKind::Error, out),
            "CONVERSATION_HISTORY" | "KNOWLEDGE_ARTIFACTS" | "TASK_BOUNDARY" | "FINISH" => {
                note(NoteKind::Context, out);
            }
            "" => return,
            // Each tool has steps of its own type, and there are new ones all the time.
            kind => self.outcome(kind, step, &common, out),
        }
        let mut cut = step
            .get("truncated_fields")
            .into_iter()
            .flat_map(Node::items)
            .filter_map(|field| field.as_str())
            .peekable();
        if cut.peek().is_some() {
            let names: Vec<Cow<'_, str>> = cut.collect();
            common.put(Entry::note(NoteKind::Truncated, names.join(", ")), out);
        }
    }

    crate::state::keeps_session!();
}
