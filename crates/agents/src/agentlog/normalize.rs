//! What a record means.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use quipu_formats::agentlog::project::{event_of, mapped};
use quipu_formats::agentlog::{Kind, LIMITS};
use quipu_model::json::{Node, Tape};
use quipu_model::{Body, Json, NoteKind, Place, Service, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::said::{Conversations, Made};
use super::wire::{self, Record};
use crate::openai_chat::message;
use crate::session::learn;
use crate::{
    Dropped, Entry, InRun, Mended, Out, Reader, Session, Text, Value, What, blocks, capture, hash,
    time,
};

/// Reads a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Trace {
    session: Session,
    begun: bool,
    /// Whether Quipu wrote it.
    ours: bool,
    /// How many records there were.
    records: u64,
    said: Conversations,
    /// The settings of the last request, by their hash.
    settings: Option<u64>,
}

/// What a record says of all entries it becomes.
struct Common<'a> {
    record: Node<'a>,
    at: Option<Timestamp>,
    id: Option<Cow<'a, str>>,
    parent: Option<Cow<'a, str>>,
    /// What Quipu wrote down of the event that it made the record of.
    marks: Option<Node<'a>>,
}

impl<'a> Common<'a> {
    fn mark(&self, key: &str) -> Option<Cow<'a, str>> {
        capture::id(self.marks?, key)
    }

    fn is_marked(&self, key: &str) -> bool {
        let mark = self.marks.and_then(|marks| marks.get(key));
        mark.and_then(|mark| mark.as_bool()) == Some(true)
    }

    /// How long it took, unless that is only what Quipu made of two times, or nothing at all.
    fn latency(&self, payload: Node<'a>) -> Option<u64> {
        let is_told = self.mark("latency").is_none();
        millis(Some(payload), "latency_ms").filter(|_| is_told)
    }

    fn put(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        entry.at = self.at;
        entry.native_id.clone_from(&self.id);
        entry.parent_id.clone_from(&self.parent);
        if self.marks.is_some() {
            let own = self.marks.and_then(|marks| marks.get("ts"));
            entry.at = own.and_then(time::of).or(self.at);
            entry.at = entry.at.filter(|_| !self.is_marked("undated"));
            entry.native_id = self.mark("native_id").or(entry.native_id);
            entry.child = self.mark("child_run_id");
            entry.opaque |= self.is_marked("opaque");
            entry.synthetic |= self.is_marked("synthetic");
            entry.superseded = self.is_marked("superseded");
        }
        entry.subagent = self.mark("subagent");
        out.push(entry);
    }

    /// Whether Quipu made the record of something else than an event that is such a record.
    fn is_note(&self) -> bool {
        self.marks.is_some() && self.mark("event").is_none()
    }

    /// A note that keeps the record, and says something where it can.
    fn note(&self, kind: NoteKind, text: Option<Text<'a>>, out: &mut Out<'_>) {
        let entry = Entry {
            duration_ms: millis(self.record.get("payload"), "duration_ms"),
            ..blocks::kept(kind, self.record, out)
        };
        self.put(said(entry, text), out);
    }

    /// The event that the record is, or a note that keeps it where it does not have what such an event needs.
    fn event(&self, kind: Kind, noted: NoteKind, text: Option<Text<'a>>, out: &mut Out<'_>) {
        let entry = blocks::kept(noted, self.record, out);
        let entry = self.of_kind(kind, entry);
        self.put(said(entry, text), out);
    }

    fn of_kind(&self, kind: Kind, mut entry: Entry<'a>) -> Entry<'a> {
        let Some(payload) = self.record.get("payload") else {
            return entry;
        };
        let body = match &entry.what {
            // Files that the record holds are kept outside.
            What::Note {
                raw: Some(Value::Owned(record)),
                ..
            } => {
                let mut tape = Tape::new();
                let record = tape.read(record.get(), LIMITS.max_depth).ok();
                let payload = record.and_then(|record| record.get("payload"));
                payload.and_then(|payload| event_of(kind, payload, self.marks))
            }
            _ => event_of(kind, payload, self.marks),
        };
        let Some(body) = body else {
            return entry;
        };
        if let Body::Blob(blob) = &body {
            entry.attachments = vec![blob.clone()];
        }
        entry.in_run = Some(InRun::of(Place::run(), body));
        entry.extra.rest("", payload, mapped(kind));
        if self.marks.is_none()
            && let Some(meta) = self.record.get("meta").filter(|meta| !meta.is_null())
        {
            entry.extra.but("meta", meta, None);
        }
        entry
    }
}

/// A note with a text.
fn said<'a>(mut entry: Entry<'a>, said: Option<Text<'a>>) -> Entry<'a> {
    if let What::Note { text, .. } = &mut entry.what {
        *text = said.filter(|text| !text.is_empty());
    }
    entry
}

fn millis(payload: Option<Node<'_>>, key: &str) -> Option<u64> {
    payload?.get(key).and_then(wire::count)
}

impl Trace {
    fn line(&mut self, line: Node<'_>, out: &mut Out<'_>) {
        let record = Record::of(line);
        out.check("record", line, wire::ENVELOPE);
        let at = record.ts.and_then(time::of);
        if at.is_none() && record.ts.is_some_and(|ts| !ts.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let place = self.place();
        let root = !self.begun && record.id.is_some();
        if root {
            self.begin(&record, at);
        }
        if !self.is_new(&record, &place, out) {
            return;
        }
        let common = Common {
            record: line,
            at,
            id: record.id.and_then(|id| id.as_str()),
            parent: record.parent.and_then(|parent| parent.as_str()),
            marks: record
                .meta
                .filter(|_| self.ours)
                .and_then(|meta| meta.get("quipu")),
        };
        let kind = record
            .kind
            .and_then(|kind| kind.as_str())
            .unwrap_or_default();
        let Some(payload) = record.payload else {
            out.unknown_type("", &kind);
            return common.note(NoteKind::UnknownRecord, None, out);
        };
        match &*kind {
            "metadata" => self.metadata(payload, root, &common, out),
            "chat_request" => self.request(payload, &common, out),
            "chat_response" => self.response(payload, &place, &common, out),
            "tool_call" => self.call(payload, &common, out),
            "tool_result" => self.result(payload, &common, out),
            "harness_event" if common.is_note() => ours(payload, &common, out),
            "harness_event" => harness(payload, &common, out),
            "blob_ref" => blob(payload, &common, out),
            "error" => {
                out.check("error", payload, wire::ERROR);
                if common.is_note() {
                    return note_again(
                        NoteKind::Error,
                        payload.get("message"),
                        payload,
                        &common,
                        out,
                    );
                }
                let text = payload.get("message").or(payload.get("code"));
                common.event(Kind::Error, NoteKind::Error, text.and_then(Text::of), out);
            }
            "replay_summary" => {
                out.check("replay_summary", payload, wire::REPLAY);
                common.note(NoteKind::Session, None, out);
            }
            // What was streamed is whole in the response.
            "chunk" => {
                out.check("chunk", payload, wire::CHUNK);
                common.event(Kind::Chunk, NoteKind::Progress, None, out);
            }
            _ => {
                out.unknown_type("", &kind);
                common.note(NoteKind::UnknownRecord, None, out);
            }
        }
    }

    /// Which record this is. Equal payloads have equal ids, so it takes this as well to know a record; not its
    /// line, because blank lines come and go.
    fn place(&mut self) -> String {
        self.records += 1;
        self.records.to_string()
    }

    /// Takes in whose the trace is, from its first record.
    ///
    /// The id of that record is a hash of what is in it, the same for all sessions that begin alike; the time
    /// at which it was written and the trace's own id, where there is one, tell them apart. All three are in
    /// copies of the trace as well, and none changes when it grows.
    ///
    /// A trace that Quipu made of a session is another account of that session, and has its id.
    fn begin(&mut self, root: &Record<'_>, at: Option<Timestamp>) {
        self.begun = true;
        let text = |node: Option<Node<'_>>| Some(node?.as_str()?.into_owned());
        let id = text(root.id).unwrap_or_default();
        let trace = text(root.meta.and_then(|meta| meta.get("trace_id"))).unwrap_or_default();
        let ts = text(root.ts).unwrap_or_default();
        let apart = hash(format!("{trace}\n{ts}").as_bytes());
        let id = id.strip_prefix("sha256:").unwrap_or(&id);
        self.session.id = Some(format!("{id}-{apart:016x}"));
        self.session.started_at = at.map(Timestamp::as_millisecond);
        self.ours = root.payload.is_some_and(wire::is_ours);
        if let Some(original) = root.payload.and_then(wire::original) {
            self.session.id = Some(original.into_owned());
            self.session.reconstructed = true;
        }
    }

    /// Takes in the identity of a record, by which it is known in copies of the trace. What it says counts, not
    /// the id that it says it has: a copy may be one whose ids were mended.
    fn is_new(&self, record: &Record<'_>, place: &str, out: &mut Out<'_>) -> bool {
        if !self.begun {
            return true;
        }
        let raw = |node: Option<Node<'_>>| hash(node.map_or(&[][..], |n| n.raw().get().as_bytes()));
        let session = hash(self.session.id.as_deref().unwrap_or_default().as_bytes());
        let (payload, ts) = (raw(record.payload), raw(record.ts));
        out.unit(&format!("{session:016x} {place} {payload:016x} {ts:016x}"))
    }

    fn metadata<'a>(
        &mut self,
        payload: Node<'a>,
        root: bool,
        common: &Common<'a>,
        out: &mut Out<'_>,
    ) {
        out.check("metadata", payload, wire::METADATA);
        if root {
            self.facts(payload);
        } else {
            // Where another session begins, and what was said before is not said in it.
            self.said.begin();
            self.settings = None;
        }
        let replay = payload.get("baseline_of").is_some_and(|of| !of.is_null());
        let kind = if replay {
            NoteKind::Fork
        } else {
            NoteKind::Session
        };
        let title = payload.path(&["tags", "title"]).and_then(Text::of);
        common.note(kind, title, out);
    }

    /// What the root says of the session.
    fn facts(&mut self, root: Node<'_>) {
        let tag = |keys: &[&str]| {
            let tags = root.get("tags")?;
            keys.iter().find_map(|key| capture::id(tags, key))
        };
        let session = &mut self.session;
        // What Quipu made a trace of was written by another program than itself.
        learn(&mut session.version, || {
            if wire::is_ours(root) {
                tag(&["agent_version"])
            } else {
                root.path(&["sdk", "version"])?.as_str()
            }
        });
        learn(&mut session.title, || tag(&["title"]));
        learn(&mut session.cwd, || tag(&["cwd", "project"]));
        learn(&mut session.branch, || tag(&["branch"]));
        learn(&mut session.repository, || tag(&["repository"]));
        learn(&mut session.commit, || tag(&["commit"]));
    }

    fn request<'a>(&mut self, payload: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        out.check("chat_request", payload, wire::REQUEST);
        self.settings(payload, common, out);
        let Some(messages) = payload.get("messages") else {
            return;
        };
        let compared: Vec<_> = messages
            .items()
            .map(|message| self.said.message(message))
            .collect();
        let record = common.id.as_deref().unwrap_or_default();
        let known = self.said.request(record, &compared);
        for (message, known) in messages.items().zip(known) {
            if known {
                continue;
            }
            let told = &mut self.said;
            let understood = message::entries(message, out, &mut |entry, out| {
                if let Some(entry) = news(entry, told) {
                    common.put(entry, out);
                }
            });
            if !understood {
                let role = message.text("role").unwrap_or_default();
                out.unknown_type("role", &role);
                common.put(blocks::kept(NoteKind::UnknownRecord, message, out), out);
            }
        }
        out.skip(Dropped::RepeatedChannel);
    }

    /// The settings of a request, tools among them, where they are not as they were.
    fn settings<'a>(&mut self, request: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let settings = request
            .fields()
            .filter(|(key, value)| !key.is("messages") && !value.is_null())
            .map(|(key, value)| (key.raw().get(), value.raw().get()));
        let Some(settings) = capture::object(settings) else {
            return;
        };
        let is = hash(settings.get().as_bytes());
        // What Quipu had to fill in says nothing.
        let filled_in = r#"{"model":"unknown","params":{}}"#;
        let says_nothing = common.marks.is_some() && settings.get() == filled_in;
        if self.settings.replace(is) == Some(is) || says_nothing {
            return;
        }
        let entry = Entry {
            model: self.model(request),
            ..Entry::new(What::Note {
                kind: NoteKind::Context,
                text: None,
                raw: Some(Value::Owned(settings)),
            })
        };
        common.put(entry, out);
    }

    /// The model that a payload names. Quipu writes `unknown` where a log names none.
    fn model<'a>(&self, payload: Node<'a>) -> Option<Cow<'a, str>> {
        capture::id(payload, "model").filter(|model| !self.ours || model != "unknown")
    }

    fn response<'a>(
        &mut self,
        payload: Node<'a>,
        place: &str,
        common: &Common<'a>,
        out: &mut Out<'_>,
    ) {
        out.check("chat_response", payload, wire::RESPONSE);
        self.said.answer(common.parent.as_deref(), payload);
        let model = self.model(payload);
        let counts = payload.get("usage").filter(|usage| !usage.is_null());
        if let Some(counts) = counts {
            out.check("usage", counts, wire::USAGE);
        }
        let name = model.as_deref().unwrap_or_default();
        let usage = counts.and_then(|counts| wire::usage(counts, name));
        let batch = payload.get("batch").and_then(|n| n.as_bool()) == Some(true);
        let service = match counts {
            _ if batch => Service::Batch,
            Some(counts) => blocks::service(counts),
            None => Service::Standard,
        };
        let own = || format!("{}#{place}", common.id.as_deref().unwrap_or_default());
        let call = common.mark("model_call");
        let call = call.map_or_else(own, Cow::into_owned);
        let first = Cell::new(true);
        let stop = common.mark("stop_reason").or_else(|| {
            let stop = capture::id(payload, "stop_reason");
            stop.filter(|_| !common.is_marked("stop_reason_inferred"))
        });
        let told = &mut self.said;
        let mut put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
            if let What::Call { id, input, .. } = &entry.what {
                told.asks(id, input.as_ref());
            }
            entry.model.clone_from(&model);
            entry.model_call = Some(Cow::Owned(call.clone()));
            if first.take() {
                entry.usage = usage;
                entry.service = service;
                entry.stop_reason.clone_from(&stop);
                entry.duration_ms = common.latency(payload);
            }
            common.put(entry, out);
        };
        message::entries_of("assistant", payload, out, &mut put);
        let (kind, why) = match common.marks {
            // What the log said of it is on its events, or in notes of their own.
            Some(_) => (NoteKind::ModelCall, None),
            None => self::stop(payload, out),
        };
        let more = more(payload);
        if why.is_some() || more.is_some() {
            put(capture::ended(kind, why, more), out);
        } else if first.get() {
            put(Entry::keep(NoteKind::ModelCall, common.record), out);
        }
    }

    /// A tool is called: by the response before it, or without one.
    fn call<'a>(&mut self, payload: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        out.check("tool_call", payload, wire::CALL);
        let id = payload.text("tool_call_id").unwrap_or_default();
        let mut attachments = Vec::new();
        let arguments = payload.get("arguments");
        let input = arguments.map(|given| out.value(given, &mut attachments));
        match self.said.made(&id, input.as_ref()) {
            Made::New => {
                let entry = Entry {
                    attachments,
                    ..Entry::new(What::Call {
                        name: payload.text("tool_name").unwrap_or_default(),
                        id,
                        input,
                    })
                };
                common.put(entry, out);
            }
            Made::AsAsked => out.skip(Dropped::RepeatedChannel),
            Made::Otherwise => common.note(
                NoteKind::Progress,
                Some("called with other arguments than the model asked for".into()),
                out,
            ),
        }
    }

    fn result<'a>(&mut self, payload: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        out.check("tool_result", payload, wire::RESULT);
        let id = payload.text("tool_call_id").unwrap_or_default();
        if !self.said.result_in_record(&id) {
            return out.skip(Dropped::RepeatedChannel);
        }
        let failed = payload.get("is_error").and_then(|n| n.as_bool()) == Some(true);
        let status = common
            .mark("status")
            .and_then(|status| Status::from_word(&status))
            .or(failed.then_some(Status::Error));
        let mut attachments = Vec::new();
        let given = payload.get("output").filter(|output| !output.is_null());
        let both = given.filter(|_| failed && common.marks.is_some());
        if let Some((output, error)) = both.and_then(output_and_error) {
            let output = Some(out.value(output, &mut attachments));
            let entry = Entry {
                status,
                attachments,
                duration_ms: common.latency(payload),
                ..Entry::new(What::Result {
                    name: Cow::Borrowed(""),
                    id,
                    output,
                    error: Some(error),
                })
            };
            return common.put(entry, out);
        }
        let text = given.and_then(Text::of);
        let (output, error) = match text {
            Some(text) if failed => (None, Some(text)),
            _ => (
                given.map(|given| out.value(given, &mut attachments)),
                failed.then(|| Text::from("failed")),
            ),
        };
        let entry = Entry {
            status,
            attachments,
            duration_ms: common.latency(payload),
            ..Entry::new(What::Result {
                name: payload.text("tool_name").unwrap_or_default(),
                id,
                output,
                error,
            })
        };
        common.put(entry, out);
    }
}

/// What of an entry of a request was not told yet.
fn news<'a>(entry: Entry<'a>, told: &mut Conversations) -> Option<Entry<'a>> {
    match &entry.what {
        What::Call { id, input, .. } => {
            if told.knows_call(id) {
                return None;
            }
            told.asks(id, input.as_ref());
        }
        What::Result { id, .. } if !id.is_empty() && !told.result_in_request(id) => return None,
        // Agents put texts of their own on the user's side.
        What::User(text) if text.starts_with("<system-reminder>") => {
            let What::User(text) = entry.what else {
                return None;
            };
            return Some(Entry {
                synthetic: true,
                ..Entry::new(What::System(text))
            });
        }
        _ => {}
    }
    Some(entry)
}

/// Why a response ended, where that is worth a word.
fn stop<'a>(payload: Node<'a>, out: &mut Out<'_>) -> (NoteKind, Option<Text<'a>>) {
    let stop = payload.get("stop_reason").filter(|stop| !stop.is_null());
    let word = stop.and_then(|stop| stop.as_str()).unwrap_or_default();
    let text = stop.and_then(Text::of);
    match &*word {
        "" | "end_turn" | "tool_use" | "stop_sequence" => (NoteKind::ModelCall, None),
        "max_tokens" => (NoteKind::Truncated, text),
        "content_filter" | "error" | "policy_blocked" => (NoteKind::Error, text),
        other => {
            out.unknown_type("stop_reason", other);
            (NoteKind::ModelCall, text)
        }
    }
}

/// What a response says beyond what its events tell: log probabilities, times of tokens.
fn more(payload: Node<'_>) -> Option<Json> {
    capture::object(
        payload
            .fields()
            .filter(|(key, value)| !value.is_null() && !wire::TOLD.iter().any(|told| key.is(told)))
            .map(|(key, value)| (key.raw().get(), value.raw().get())),
    )
}

/// What Quipu made of a result that has an output and an error.
fn output_and_error(given: Node<'_>) -> Option<(Node<'_>, Text<'_>)> {
    let both = (given.get("output")?, Text::of(given.get("error")?)?);
    (given.fields().count() == 2).then_some(both)
}

/// A note that Quipu made a record of, as it was before that; what was no note stays the record.
fn ours<'a>(payload: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let name = payload.text("name").unwrap_or_default();
    match NoteKind::from_word(&name) {
        Some(kind) => {
            let attributes = payload.get("attributes").unwrap_or(payload);
            note_again(kind, attributes.get("text"), attributes, common, out);
        }
        None => harness(payload, common, out),
    }
}

/// A note with its text, and the record that it kept under `raw`.
fn note_again<'a>(
    kind: NoteKind,
    text: Option<Node<'a>>,
    within: Node<'a>,
    common: &Common<'a>,
    out: &mut Out<'_>,
) {
    let entry = match within.get("raw") {
        Some(raw) => blocks::kept(kind, raw, out),
        None => Entry::new(What::Note {
            kind,
            text: None,
            raw: None,
        }),
    };
    common.put(said(entry, text.and_then(Text::of)), out);
}

/// Something that the program around the model did.
fn harness<'a>(payload: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    out.check("harness_event", payload, wire::HARNESS);
    let category = payload.text("category").unwrap_or_default();
    let severity = payload.text("severity").unwrap_or_default();
    let kind = match &*category {
        // A limit that was hit for good is an error; otherwise the call waits and is made again.
        "rate_limit" if matches!(&*severity, "error" | "fatal") => NoteKind::Error,
        "retry" | "rate_limit" => NoteKind::Retry,
        "model_switch" => NoteKind::ModelChange,
        "context_trim" => NoteKind::Compaction,
        "cache" => NoteKind::Context,
        "guardrail" => NoteKind::Permission,
        "budget" => NoteKind::Usage,
        "stream_interrupt" => NoteKind::Truncated,
        "tool_lifecycle" => NoteKind::Progress,
        other => {
            out.unknown_type("harness_event", other);
            NoteKind::UnknownRecord
        }
    };
    let name = payload.get("name").and_then(Text::of);
    common.event(Kind::HarnessEvent, kind, name, out);
}

/// Bytes that are kept beside the trace. They are named, and not claimed to be here.
fn blob<'a>(payload: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    out.check("blob_ref", payload, wire::BLOB);
    let mime = payload.text("mime").unwrap_or_default();
    let mut entry = Entry::keep(NoteKind::Attachment, common.record);
    if common.is_note() {
        // It belongs to the event before it.
        if let Some(Body::Blob(blob)) = event_of(Kind::BlobRef, payload, None) {
            entry.attachments.push(blob);
        }
    } else {
        entry = common.of_kind(Kind::BlobRef, entry);
    }
    common.put(said(entry, Some(mime.into())), out);
}

/// The counts of a call are under this name.
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage\""));

impl Reader for Trace {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.line(record, out);
    }

    fn can_skip(&self, line: &[u8]) -> bool {
        self.begun && USAGE.find(line).is_none()
    }

    crate::state::keeps_session!();
}
