//! What a line means.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::blocks::{self, ResultFacts, Speaker};
use crate::session::{learn, update};
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, time};

/// Reads a transcript.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Transcript {
    session: Session,
}

/// What a line says of all that is in it.
struct Common<'a> {
    at: Option<Timestamp>,
    id: Option<Cow<'a, str>>,
    speaker: Speaker,
    usage: Option<Usage>,
}

impl<'a> Common<'a> {
    fn put(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        entry.at = self.at;
        entry.native_id.clone_from(&self.id);
        if self.speaker == Speaker::Assistant && !matches!(entry.what, What::Result { .. }) {
            entry.model_call.clone_from(&self.id);
            entry.usage = self.usage;
        }
        out.push(entry);
    }
}

impl Transcript {
    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        let speaker = match &*kind {
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            other => {
                out.unknown_type("", other);
                return out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
        };
        out.check(&kind, record, wire::LINE);
        learn(&mut self.session.agent, || record.text("agent"));
        // The agent's own log tells it better, where that is kept as well.
        self.session.reconstructed = true;
        let id = record.text("id").filter(|id| !id.is_empty());
        let known = id.clone().or_else(|| prompt_id(record).map(Cow::Owned));
        if let Some(known) = &known
            && !out.unit(known)
        {
            return;
        }
        let count = |key: &str| record.get(key).and_then(|n| n.as_u64());
        let usage = Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            ..Usage::default()
        };
        let common = Common {
            at: time::field(record, "ts"),
            id,
            speaker,
            usage: (!usage.is_empty()).then_some(usage),
        };
        let content = record.get("content");
        if let Some(text) = content.and_then(Text::of) {
            return common.put(said(speaker, text), out);
        }
        let blocks = content.filter(|content| content.kind() == Kind::List);
        let mut any = false;
        for block in blocks.into_iter().flat_map(Node::items) {
            put_block(block, &common, out);
            any = true;
        }
        if !any && common.usage.is_some() {
            common.put(Entry::keep(NoteKind::ModelCall, record), out);
        } else if !any {
            out.skip(Dropped::Empty);
        }
    }
}

/// What a prompt is known by in the transcripts of later checkpoints, which tell the same again. It has no id,
/// but a time.
fn prompt_id(record: Node<'_>) -> Option<String> {
    let at = record.text("ts").filter(|at| !at.is_empty())?;
    let content = record.get("content")?.raw().get();
    Some(format!("{at} {:016x}", crate::hash(content.as_bytes())))
}

fn said(speaker: Speaker, text: Text<'_>) -> Entry<'_> {
    Entry::new(match speaker {
        Speaker::User => What::User(text),
        Speaker::Assistant => What::Assistant(text),
    })
}

fn put_block<'a>(block: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let kind = block.text("type").unwrap_or_default();
    // What a person says has no type.
    if kind.is_empty()
        && let Some(text) = block.get("text").and_then(Text::of)
    {
        return common.put(said(common.speaker, text), out);
    }
    let Some(entry) = blocks::entry(block, common.speaker, ResultFacts::default(), out) else {
        out.unknown_type("block", &kind);
        return common.put(Entry::keep(NoteKind::UnknownRecord, block), out);
    };
    common.put(entry, out);
    if kind == "tool_use" {
        out.check("tool_use", block, wire::CALL);
        if let Some(result) = block.get("result").filter(|result| !result.is_null()) {
            let entry = result_of(block, result, out);
            common.put(entry, out);
        }
    }
}

/// The result inside of a call.
fn result_of<'a>(block: Node<'a>, result: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    out.check("result", result, wire::RESULT);
    let text = result.get("output").and_then(Text::of);
    let status = match result.text("status").as_deref() {
        Some("success") => Some(Status::Ok),
        Some("error") => Some(Status::Error),
        _ => None,
    };
    let more = result
        .fields()
        .any(|(key, _)| !key.is("output") && !key.is("status"));
    let mut attachments = Vec::new();
    let whole = more.then(|| out.value(result, &mut attachments));
    let (output, error) = match (status, text) {
        (Some(Status::Error), text) => (whole, Some(text.unwrap_or(Text::from("failed")))),
        (_, text) => (whole.or(text.map(Value::Text)), None),
    };
    Entry {
        status,
        attachments,
        ..Entry::new(What::Result {
            name: block.text("name").unwrap_or_default(),
            id: block.text("id").unwrap_or_default(),
            output,
            error,
        })
    }
}

impl Reader for Transcript {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.line(record, out);
    }

    /// The checkpoint says whose session it is.
    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        update(&mut self.session.id, document.text("session_id"));
        learn(&mut self.session.branch, || document.text("branch"));
    }

    crate::state::keeps_session!();
}
