//! What a message means.
//!
//! In a journal a message comes again whenever something was added to it. So each message is taken as a
//! list of pieces that each have a name; what is given on is the pieces that are new, and those that
//! changed, in place of what they were before.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::discover::is_message_type;
use super::parts;
use super::wire::{
    CALL_FIELDS, CALL_MAPPED, MESSAGE_FIELDS, MESSAGE_MAPPED, SESSION_FIELDS, TOKEN_FIELDS,
    TOKENS_MAPPED, tokens,
};
use crate::blocks::Speaker;
use crate::session::update;
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, hash, time};

/// Reads a journal, or a document.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    session: Session,
    /// The session this is a sub-agent of, by the directory it is in.
    parent: Option<String>,
    /// The name of the file.
    stem: String,
    /// The messages that count, in order.
    live: Vec<Message>,
    #[serde(skip)]
    index: HashMap<u64, usize>,
}

/// What was made of a message so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Message {
    id: u64,
    /// The number of its first event.
    from: u64,
    tokens: u64,
    pieces: Vec<Piece>,
}

/// Something that a message holds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Piece {
    name: u64,
    content: u64,
    seq: u64,
}

/// What all events of a message have in common, and what became of it.
struct Writing<'a, 'o, 's> {
    out: &'o mut Out<'s>,
    message: &'o mut Message,
    at: Option<Timestamp>,
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    usage: Option<Usage>,
    written: usize,
    /// The message and its counts, until their fields without a place of their own were kept.
    whole: Option<Node<'a>>,
    tokens: Option<Node<'a>>,
}

impl<'a> Writing<'a, '_, '_> {
    /// Gives on a piece if it is new or has changed.
    fn piece(&mut self, name: &str, content: &str, mut entry: Entry<'a>) {
        let name = hash(name.as_bytes());
        let content = hash(content.as_bytes());
        let seq = self.out.next_seq();
        match self.message.pieces.iter_mut().find(|p| p.name == name) {
            Some(known) if known.content == content => return,
            Some(known) => {
                entry.voids = Some(known.seq..known.seq + 1);
                (known.content, known.seq) = (content, seq);
            }
            None => self.message.pieces.push(Piece { name, content, seq }),
        }
        self.put(entry);
    }

    fn put(&mut self, mut entry: Entry<'a>) {
        entry.at = entry.at.or(self.at);
        entry.native_id.clone_from(&self.id);
        if self.model.is_some() {
            entry.model.clone_from(&self.model);
            entry.model_call.clone_from(&self.id);
        }
        if let Some(usage) = self.usage.take() {
            entry.usage = Some(usage);
            entry.model_call.clone_from(&self.id);
            if let Some(tokens) = self.tokens.take() {
                entry.extra.rest("tokens", tokens, TOKENS_MAPPED);
            }
        }
        if let Some(whole) = self.whole.take() {
            entry.extra.rest("", whole, MESSAGE_MAPPED);
        }
        self.out.push(entry);
        self.written += 1;
    }
}

impl Journal {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        // `chats/<session>/<sub-agent>.jsonl`
        let mut above = origin.above();
        let parent = match (above.next(), above.next()) {
            (Some(session), Some("chats")) => Some(session.to_owned()),
            _ => None,
        };
        Self {
            session: Session::default(),
            parent,
            stem: origin.stem().unwrap_or_default().to_owned(),
            live: Vec::new(),
            index: HashMap::new(),
        }
    }

    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if let Some(to) = record.get("$rewindTo") {
            return self.rewind(to, out);
        }
        if let Some(patch) = record.get("$set") {
            return self.patch(record, patch, out);
        }
        let kind = record.text("type").unwrap_or_default();
        if is_message_type(&kind) {
            return self.message(record, out);
        }
        if record.get("sessionId").is_some() {
            out.check("session", record, SESSION_FIELDS);
            self.learn(record);
            let known = record
                .get("messages")
                .filter(|list| list.items().next().is_some());
            if let Some(messages) = known {
                return self.replace(messages, out);
            }
            return out.push(Entry {
                at: time::field(record, "startTime"),
                ..Entry::keep(NoteKind::Session, record)
            });
        }
        out.unknown_type("", &kind);
        if record.get("id").is_some() && record.get("content").is_some() {
            self.message(record, out);
        }
    }

    /// What a document, a first line or a patch says of the session.
    fn learn(&mut self, record: Node<'_>) {
        if self.session.id.is_none()
            && let Some(id) = record.text("sessionId").filter(|id| !id.is_empty())
        {
            let id = match self.parent.take() {
                Some(parent) if *id == parent => {
                    let id = format!("{parent}.{}", self.stem);
                    self.session.parent = Some(parent);
                    id
                }
                Some(parent) => {
                    self.session.parent = Some(parent);
                    id.into_owned()
                }
                None => id.into_owned(),
            };
            self.session.id = Some(id);
        }
        if self.session.started_at.is_none() {
            let started = time::field(record, "startTime").or(time::field(record, "start_time"));
            self.session.started_at = started.map(Timestamp::as_millisecond);
        }
        update(&mut self.session.title, record.text("summary"));
    }

    fn patch(&mut self, record: Node<'_>, patch: Node<'_>, out: &mut Out<'_>) {
        out.check("session", patch, SESSION_FIELDS);
        self.learn(patch);
        if let Some(messages) = patch.get("messages") {
            return self.replace(messages, out);
        }
        if let Some(summary) = patch.get("summary").and_then(Text::of) {
            return out.push(Entry::note(NoteKind::Summary, summary));
        }
        let mut others = patch.fields().filter(|(key, _)| !key.is("lastUpdated"));
        if others.next().is_none() {
            return out.skip(Dropped::KeepAlive);
        }
        out.push(Entry::keep(NoteKind::Session, record));
    }

    /// Everything from a message on no longer counts; everything at all, when the message is not known.
    fn rewind(&mut self, to: Node<'_>, out: &mut Out<'_>) {
        let id = to.as_str().unwrap_or_default();
        let keep = self.find(hash(id.as_bytes())).unwrap_or(0);
        let voids = self.cut(keep, out);
        out.push(Entry {
            voids,
            parent_id: Some(id).filter(|id| !id.is_empty()),
            ..Entry::new(What::Note {
                kind: NoteKind::Rewind,
                text: None,
                raw: None,
            })
        });
    }

    /// Takes these messages in place of those that were there. Those that both begin with stay.
    fn replace(&mut self, messages: Node<'_>, out: &mut Out<'_>) {
        let same = messages
            .items()
            .zip(&self.live)
            .take_while(|(message, live)| message_id(*message) == live.id)
            .count();
        let before = out.next_seq();
        if let Some(voids) = self.cut(same, out) {
            out.push(Entry {
                voids: Some(voids),
                ..Entry::new(What::Note {
                    kind: NoteKind::Compaction,
                    text: None,
                    raw: None,
                })
            });
        }
        for message in messages.items() {
            self.message_within(message, out);
        }
        if out.next_seq() == before {
            out.skip(Dropped::RepeatedChannel);
        }
    }

    /// Forgets all but the first messages. The events that no longer count, if there are any.
    fn cut(&mut self, keep: usize, out: &Out<'_>) -> Option<std::ops::Range<u64>> {
        let from = self.live.get(keep)?.from;
        self.live.truncate(keep);
        self.index.clear();
        let to = out.next_seq();
        (from < to).then_some(from..to)
    }

    fn find(&mut self, id: u64) -> Option<usize> {
        if self.index.len() != self.live.len() {
            let places = self.live.iter().enumerate();
            self.index = places.map(|(at, message)| (message.id, at)).collect();
        }
        self.index.get(&id).copied()
    }

    /// A message that is a record of its own.
    fn message(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let (known, written) = self.message_within(record, out);
        if written == 0 {
            out.skip(if known {
                Dropped::DuplicateRecord
            } else {
                Dropped::Empty
            });
        }
    }

    /// Gives on what is new in a message. Whether the message was known, and how much was new.
    fn message_within(&mut self, record: Node<'_>, out: &mut Out<'_>) -> (bool, usize) {
        out.check("message", record, MESSAGE_FIELDS);
        let id = message_id(record);
        let found = self.find(id);
        let at = found.unwrap_or(self.live.len());
        if found.is_none() {
            self.live.push(Message {
                id,
                from: out.next_seq(),
                tokens: 0,
                pieces: Vec::new(),
            });
            self.index.insert(id, at);
            if let Some(id) = record.text("id") {
                // Known again in a copy of the session, such as the journal that a document became.
                out.ledger().unit(&id);
            }
        }
        let Some(message) = self.live.get_mut(at) else {
            return (false, 0);
        };
        let mut usage = None;
        if let Some(node) = record.get("tokens").filter(|n| n.kind() == Kind::Object) {
            let counts = hash(node.raw().get().as_bytes());
            if message.tokens != counts {
                message.tokens = counts;
                out.check("tokens", node, TOKEN_FIELDS);
                usage = tokens(node);
            }
        }
        let mut writing = Writing {
            out,
            message,
            at: time::field(record, "timestamp"),
            id: record.text("id"),
            model: record.text("model"),
            usage,
            written: 0,
            whole: Some(record),
            tokens: record.get("tokens"),
        };
        let kind = record.text("type").unwrap_or_default();
        match &*kind {
            "user" => user(record, &mut writing),
            "info" | "warning" => remark(NoteKind::Session, record, &mut writing),
            "error" => remark(NoteKind::Error, record, &mut writing),
            _ => reply(record, &mut writing),
        }
        if writing.usage.is_some() {
            // All that is new is what it cost.
            writing.put(Entry::new(What::Note {
                kind: NoteKind::Usage,
                text: None,
                raw: None,
            }));
        }
        (found.is_some(), writing.written)
    }

    fn document(&mut self, document: Node<'_>, out: &mut Out<'_>) {
        self.learn(document);
        let list = document.get("messages");
        if list.is_some() {
            out.check("session", document, SESSION_FIELDS);
        }
        for message in list.into_iter().flat_map(Node::items) {
            out.within(message, |out, message| self.message(message, out));
        }
        for content in document.get("history").into_iter().flat_map(Node::items) {
            out.within(content, content_entries);
        }
        if let Some(summary) = document.get("summary") {
            out.within(summary, |out, summary| {
                if let Some(text) = Text::of(summary) {
                    out.push(Entry::note(NoteKind::Summary, text));
                }
            });
        }
    }
}

fn message_id(record: Node<'_>) -> u64 {
    match record.text("id") {
        Some(id) => hash(id.as_bytes()),
        None => hash(record.raw().get().as_bytes()),
    }
}

fn user<'a>(record: Node<'a>, writing: &mut Writing<'a, '_, '_>) {
    let Some(content) = record.get("content") else {
        return;
    };
    // Files that a prompt names are put behind it.
    let mut injected = false;
    for (index, part) in parts::each(content).enumerate() {
        let text = part.get("text").and_then(Text::of).or(Text::of(part));
        injected |= text
            .as_ref()
            .is_some_and(|text| text.starts_with("\n--- Content from referenced files"));
        let synthetic = injected
            || text.is_some_and(|text| {
                ["<session_context>", "<hook_context>", "<system-reminder>"]
                    .iter()
                    .any(|mark| text.starts_with(mark))
            });
        let raw = part.raw().get();
        let entry = match parts::entry(part, Speaker::User, writing.out) {
            Some(Entry {
                what: What::User(text),
                ..
            }) if synthetic => Entry {
                synthetic: true,
                ..Entry::new(What::System(text))
            },
            Some(entry) if entry.what.is_blank() => continue,
            Some(entry) => entry,
            None => unknown_part("user.content", part, writing.out),
        };
        writing.piece(&format!("content:{index}"), raw, entry);
    }
}

fn remark<'a>(kind: NoteKind, record: Node<'a>, writing: &mut Writing<'a, '_, '_>) {
    let Some(content) = record.get("content") else {
        return;
    };
    for (index, part) in parts::each(content).enumerate() {
        let raw = part.raw().get();
        let entry = match part.get("text").and_then(Text::of).or(Text::of(part)) {
            Some(text) => Entry::note(kind, text),
            None => Entry::keep(kind, part),
        };
        writing.piece(&format!("content:{index}"), raw, entry);
    }
}

fn reply<'a>(record: Node<'a>, writing: &mut Writing<'a, '_, '_>) {
    let thoughts = record.get("thoughts").into_iter().flat_map(Node::items);
    for (index, thought) in thoughts.enumerate() {
        writing
            .out
            .check("thought", thought, &["subject", "description", "timestamp"]);
        let text = thought_text(thought);
        let entry = Entry {
            at: time::field(thought, "timestamp"),
            opaque: text.is_empty(),
            ..Entry::new(What::Reasoning(text))
        };
        writing.piece(&format!("thought:{index}"), thought.raw().get(), entry);
    }
    if let Some(content) = record.get("content") {
        for (index, part) in parts::each(content).enumerate() {
            let raw = part.raw().get();
            let entry = match parts::entry(part, Speaker::Assistant, writing.out) {
                Some(entry) if entry.what.is_blank() => continue,
                Some(entry) => entry,
                None => unknown_part("gemini.content", part, writing.out),
            };
            writing.piece(&format!("content:{index}"), raw, entry);
        }
    }
    let calls = record.get("toolCalls").into_iter().flat_map(Node::items);
    for (index, call) in calls.enumerate() {
        tool_call(call, index, writing);
    }
}

fn thought_text(thought: Node<'_>) -> Text<'_> {
    let field = |key: &str| {
        thought
            .get(key)
            .and_then(Text::of)
            .filter(|t| !t.is_empty())
    };
    match (field("subject"), field("description")) {
        (Some(subject), Some(description)) => {
            format!("{}\n{}", subject.read(), description.read()).into()
        }
        (subject, description) => subject.or(description).unwrap_or(Text::EMPTY),
    }
}

fn tool_call<'a>(call: Node<'a>, index: usize, writing: &mut Writing<'a, '_, '_>) {
    writing.out.check("tool_call", call, CALL_FIELDS);
    let own = call.text("id").filter(|id| !id.is_empty());
    let id = own.unwrap_or_else(|| {
        let message = writing.id.as_deref().unwrap_or_default();
        Cow::Owned(format!("{message}.{index}"))
    });
    let name = call.text("name").unwrap_or_default();
    let args = call.get("args");
    let mut attachments = Vec::new();
    let input = args.map(|args| writing.out.value(args, &mut attachments));
    let mut entry = Entry {
        attachments,
        ..Entry::new(What::Call {
            name: name.clone(),
            id: id.clone(),
            input,
        })
    };
    entry.extra.rest("toolCall", call, CALL_MAPPED);
    let content = args.map_or("", |args| args.raw().get());
    writing.piece(&format!("call:{id}"), content, entry);

    let state = call.text("status").unwrap_or_default();
    let result = call.get("result").filter(|result| !result.is_null());
    let status = match &*state {
        "cancelled" => Some(Status::Denied),
        "error" => Some(Status::Error),
        "success" => Some(Status::Ok),
        "validating" | "scheduled" | "executing" | "awaiting_approval" | "" => None,
        other => {
            writing.out.unknown_type("tool_call.status", other);
            None
        }
    };
    if result.is_none() && status.is_none() {
        return;
    }
    let mut entry = tool_result(call, result, writing.out);
    if let What::Result {
        name: of,
        id: call_id,
        output,
        error,
    } = &mut entry.what
    {
        *of = name;
        call_id.clone_from(&id);
        if matches!(status, Some(Status::Denied | Status::Error)) && error.is_none() {
            *error = Some(match output.take() {
                Some(crate::Value::Text(text)) => text,
                _ => Text::from(state.clone()),
            });
        }
        if error.is_some() && status != Some(Status::Denied) {
            entry.status = Some(Status::Error);
        } else {
            entry.status = status;
        }
    }
    // What was shown to the person may be more than what the model was given.
    if let Some(shown) = call.get("resultDisplay").filter(|_| result.is_some()) {
        let said = match &entry.what {
            What::Result {
                output: Some(Value::Text(Text::Raw(said))),
                ..
            } => Some(said.raw()),
            _ => None,
        };
        match writing.out.value(shown, &mut Vec::new()) {
            Value::Owned(made) => entry.extra.value("resultDisplay", made),
            _ => entry.extra.but("resultDisplay", shown, said),
        }
    }
    // The time of a call is when it last changed, which is when it ended.
    entry.at = time::field(call, "timestamp");
    entry.child = call.text("agentId").filter(|agent| !agent.is_empty());
    let content = format!("{state} {}", result.map_or("", |result| result.raw().get()));
    writing.piece(&format!("result:{id}"), &content, entry);
}

/// What a call gave back: the response of the function, and what came with it.
fn tool_result<'a>(call: Node<'a>, result: Option<Node<'a>>, out: &mut Out<'_>) -> Entry<'a> {
    let empty = || {
        Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: Cow::Borrowed(""),
            output: None,
            error: None,
        })
    };
    let Some(result) = result else {
        // Only what was shown to the person is there.
        let shown = call.get("resultDisplay").filter(|shown| !shown.is_null());
        let mut entry = empty();
        if let (Some(shown), What::Result { output, .. }) = (shown, &mut entry.what) {
            *output = Some(parts::value(shown, &mut entry.attachments, out));
        }
        return entry;
    };
    let mut made: Option<Entry<'a>> = None;
    let mut others = Vec::new();
    for part in parts::each(result) {
        match part.get("functionResponse") {
            Some(response) if made.is_none() => {
                made = Some(parts::function_response(response, out));
            }
            _ => others.extend(parts::detach(part, out)),
        }
    }
    let mut entry = made.unwrap_or_else(|| {
        let mut entry = empty();
        if let What::Result { output, .. } = &mut entry.what {
            let only = Text::of(result).or_else(|| result.get("text").and_then(Text::of));
            *output = Some(match only {
                Some(text) => crate::Value::Text(text),
                None => out.value(result, &mut entry.attachments),
            });
        }
        entry
    });
    for attachment in others {
        if !entry.attachments.contains(&attachment) {
            entry.attachments.push(attachment);
        }
    }
    entry
}

fn unknown_part<'a>(scope: &str, part: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let key = part.fields().next().map(|(key, _)| key.to_text_lossy());
    out.unknown_type(scope, &key.unwrap_or_default());
    Entry::keep(NoteKind::UnknownRecord, part)
}

/// A content of the API as it is: what `/chat save` keeps.
fn content_entries(out: &mut Out<'_>, content: Node<'_>) {
    let speaker = match content.get("role") {
        Some(role) if role.is("user") || role.is("function") => Speaker::User,
        _ => Speaker::Assistant,
    };
    let at = time::field(content, "ts").or(time::field(content, "timestamp"));
    for part in content.get("parts").into_iter().flat_map(Node::items) {
        let entry =
            parts::entry(part, speaker, out).unwrap_or_else(|| unknown_part("content", part, out));
        out.push(Entry { at, ..entry });
    }
}

impl Reader for Journal {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if out.in_record() {
            self.line(record, out);
        } else {
            self.document(record, out);
        }
    }

    crate::state::keeps_session!();
}
