//! What a session, a message and a part mean, wherever they stand.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::tokens::{self, Counts, Sums};
use super::wire::{
    ASSISTANT_FIELDS, PART_MAPPED, PARTS, RESULT_MAPPED, SESSION_COLUMNS, SESSION_FIELDS,
    STATE_FIELDS, STATE_MAPPED, TOKEN_FIELDS, TOOL_MAPPED, USER_FIELDS,
};
use super::{is_fork, is_title};
use crate::cost::Cost;
use crate::session::{Tokens, learn, update};
use crate::{Dropped, Entry, Out, Session, Text, Value, What, data_url, time};

/// What is known of the session while it is read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Core {
    pub(super) session: Session,
    sums: Sums,
    revert: Option<Revert>,
    /// When the record at hand was written, where it says so itself.
    #[serde(skip)]
    pub(super) clock: Option<Timestamp>,
}

/// The session went back to before a message, or a part of one. What came after it is still there, until
/// the session goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Revert {
    message: String,
    part: Option<String>,
    /// The first event that no longer counts.
    from: Option<u64>,
}

/// What the parts of a message need to know of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) role: Role,
    model: Option<String>,
    /// In milliseconds since 1970.
    at: Option<i64>,
    /// Its tokens, until the step they are of is seen.
    tokens: Option<Tokens>,
    /// Whether the call to the model that it stands for is counted.
    pub(super) counted: bool,
    /// It is a summary of what was before.
    summary: bool,
    /// The session it is of, when that is another one.
    pub(super) subagent: Option<String>,
}

/// Whose message it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    /// Its beginning is not there.
    #[default]
    Unknown,
    /// The side that prompts.
    User,
    /// The model.
    Assistant,
}

impl Message {
    /// A message of which nothing but the id is known.
    pub(super) fn named(id: Option<Cow<'_, str>>) -> Self {
        Self {
            id: id.map(Cow::into_owned),
            ..Self::default()
        }
    }

    /// Sets what the message knows of an entry.
    fn dress<'e>(&'e self, mut entry: Entry<'e>, core: &Core) -> Entry<'e> {
        entry.at = entry.at.or(core.clock).or_else(|| self.time());
        entry.subagent = self.subagent.as_deref().map(Cow::Borrowed);
        entry
    }

    fn time(&self) -> Option<Timestamp> {
        Timestamp::from_millisecond(self.at?).ok()
    }
}

impl Core {
    /// A session, as a document or as a row.
    pub(super) fn session(&mut self, info: Node<'_>, out: &mut Out<'_>) {
        self.learn(info, out);
        out.push(Entry::keep(NoteKind::Session, info));
    }

    /// What a session says of itself.
    pub(super) fn learn(&mut self, info: Node<'_>, out: &mut Out<'_>) {
        let is_row = info.get("time_created").is_some();
        if is_row {
            out.check("session", info, SESSION_COLUMNS);
        } else {
            out.check("session", info, SESSION_FIELDS);
        }
        let session = &mut self.session;
        learn(&mut session.id, || info.text("id"));
        learn(&mut session.cwd, || info.text("directory"));
        update(&mut session.version, info.text("version"));
        update(
            &mut session.title,
            info.text("title").filter(|title| is_title(title)),
        );
        let parent = info.text("parentID").or(info.text("parent_id"));
        if is_fork(session) {
            update(&mut session.forked_from, parent);
        } else {
            update(&mut session.parent, parent);
        }
        let created = info.get("time_created").or(info.path(&["time", "created"]));
        session.started_at = created
            .and_then(time::of)
            .map(Timestamp::as_millisecond)
            .or(session.started_at);
        if let Some(cost) = info.get("cost").and_then(Cost::of) {
            session.vendor_cost = Some(cost.to_text());
        }
        let version = session.version.as_deref();
        self.sums.session(match info.get("tokens") {
            Some(tokens) => tokens::read(tokens, version),
            None => tokens::read_columns(info, version),
        });
        self.session.vendor_usage = self.sums.best();
        self.reverted(info.get("revert"));
    }

    fn reverted(&mut self, revert: Option<Node<'_>>) {
        let message = revert.and_then(|revert| revert.text("messageID"));
        let Some(message) = message else {
            return;
        };
        if self
            .revert
            .as_ref()
            .is_none_or(|known| known.message != message)
        {
            self.revert = Some(Revert {
                message: message.into_owned(),
                part: revert
                    .and_then(|revert| revert.text("partID"))
                    .map(Cow::into_owned),
                from: None,
            });
        }
    }

    /// The session is read to its end: says what no longer counts.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        let Some(from) = self.revert.take().and_then(|revert| revert.from) else {
            return;
        };
        out.push(Entry {
            voids: Some(from..out.next_seq()),
            ..Entry::note(NoteKind::Rewind, "went back to before this")
        });
    }

    /// A message, without its parts. They are read with what this gives back.
    pub(super) fn message<'a>(
        &mut self,
        info: Node<'a>,
        id: Option<Cow<'a, str>>,
        before: Message,
        out: &mut Out<'_>,
    ) -> Message {
        let mut message = self.known(info, id, before);
        if let Some(revert) = &mut self.revert
            && revert.from.is_none()
            && revert.part.is_none()
            && message.id.as_ref() == Some(&revert.message)
        {
            revert.from = Some(out.next_seq());
        }
        if message.role == Role::Assistant {
            out.check("message.assistant", info, ASSISTANT_FIELDS);
            self.assistant(info, &mut message, out);
        } else {
            out.check("message.user", info, USER_FIELDS);
            let kind = match message.role {
                Role::Unknown => {
                    let role = info.text("role").unwrap_or_default();
                    out.unknown_type("message", &role);
                    NoteKind::UnknownRecord
                }
                _ => NoteKind::Turn,
            };
            let entry = Entry {
                native_id: message.id.as_deref().map(Cow::Borrowed),
                ..Entry::keep(kind, info)
            };
            out.push(message.dress(entry, self));
        }
        message
    }

    /// What a message says to its parts.
    pub(super) fn known<'a>(
        &mut self,
        info: Node<'a>,
        id: Option<Cow<'a, str>>,
        before: Message,
    ) -> Message {
        if before.subagent.is_none() {
            learn(&mut self.session.id, || info.text("sessionID"));
            learn(&mut self.session.cwd, || {
                info.path(&["path", "cwd"])?.as_str()
            });
        }
        let role = match info.text("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => Role::Unknown,
        };
        let model = ["modelID", "id"]
            .iter()
            .find_map(|key| info.path(&["model", key])?.as_str());
        Message {
            id: id.map(Cow::into_owned).or(before.id),
            role,
            model: info.text("modelID").or(model).map(Cow::into_owned),
            at: info
                .path(&["time", "created"])
                .and_then(time::of)
                .map(Timestamp::as_millisecond),
            tokens: None,
            counted: before.counted,
            summary: info.get("summary").and_then(|n| n.as_bool()) == Some(true),
            subagent: before.subagent,
        }
    }

    /// A message of the model: its call, and what went wrong with it.
    fn assistant(&mut self, info: Node<'_>, message: &mut Message, out: &mut Out<'_>) {
        let counts = info
            .get("tokens")
            .and_then(|tokens| self.counts(tokens, out));
        // Where the steps came first, they are counted.
        let counts = counts.filter(|_| !message.counted);
        if let Some(counts) = counts {
            message.counted = true;
            message.tokens = Some(counts.usage.into());
            self.count(&counts);
        }
        let span = |key: &str| info.path(&["time", key]).and_then(|n| n.as_i64());
        let entry = Entry {
            native_id: message.id.as_deref().map(Cow::Borrowed),
            parent_id: info.text("parentID"),
            model: message.model.as_deref().map(Cow::Borrowed),
            model_call: message.id.as_deref().map(Cow::Borrowed),
            usage: counts.map(|counts| counts.usage),
            stop_reason: info.text("finish"),
            duration_ms: between(span("created"), span("completed")),
            at: message.time(),
            ..Entry::keep(NoteKind::ModelCall, info)
        };
        out.push(message.dress(entry, self));
        if let Some(error) = info.get("error").filter(|error| !error.is_null()) {
            let entry = Entry {
                parent_id: message.id.as_deref().map(Cow::Borrowed),
                ..Entry::note(NoteKind::Error, error_text(error))
            };
            out.push(message.dress(entry, self));
        }
    }

    /// Token counts in disjoint buckets.
    pub(super) fn counts(&self, tokens: Node<'_>, out: &mut Out<'_>) -> Option<Counts> {
        out.check("tokens", tokens, TOKEN_FIELDS);
        tokens::read(tokens, self.session.version.as_deref())
    }

    /// Takes in a call that is counted.
    pub(super) fn count(&mut self, counts: &Counts) {
        self.sums.add(counts);
        self.session.vendor_usage = self.sums.best();
    }

    /// A part of a message.
    pub(super) fn part<'a>(
        &mut self,
        part: Node<'a>,
        id: Option<Cow<'a, str>>,
        message: &mut Message,
        out: &mut Out<'_>,
    ) {
        if let Some(revert) = &mut self.revert
            && revert.from.is_none()
            && revert.part.is_some()
            && revert.part.as_deref() == id.as_deref()
        {
            revert.from = Some(out.next_seq());
        }
        let kind = part.text("type").unwrap_or_default();
        let Some((kind, scope, fields)) = PARTS.iter().find(|(known, _, _)| *known == kind) else {
            out.unknown_type("part", &kind);
            return self.put(Entry::keep(NoteKind::UnknownRecord, part), id, message, out);
        };
        out.check(scope, part, fields);
        let mut entry = match *kind {
            "text" => match said(part, message) {
                Some(entry) => entry,
                None => return out.skip(Dropped::Empty),
            },
            "reasoning" => reasoned(part),
            "tool" => return self.tool(part, id, message, out),
            "step-finish" => return self.step(part, id, message, out),
            "file" => file(part, out),
            "step-start" => Entry::keep(NoteKind::Progress, part),
            "snapshot" | "patch" => Entry::keep(NoteKind::FileSnapshot, part),
            "subtask" => Entry::keep(NoteKind::Subagent, part),
            "compaction" => Entry::keep(NoteKind::Compaction, part),
            "retry" => Entry::new(What::Note {
                kind: NoteKind::Retry,
                text: part.get("error").map(|error| error_text(error).into()),
                raw: Some(part.into()),
            }),
            // A person spoke to an agent by its name.
            _ => Entry::keep(NoteKind::Context, part),
        };
        if !entry.keeps(part) {
            entry.extra.rest("", part, PART_MAPPED);
        }
        self.put(entry, id, message, out);
    }

    /// Hands over what a part became.
    fn put<'e>(
        &self,
        mut entry: Entry<'e>,
        id: Option<Cow<'e, str>>,
        message: &'e Message,
        out: &mut Out<'_>,
    ) {
        entry.native_id = id;
        entry.parent_id = message.id.as_deref().map(Cow::Borrowed);
        if matches!(
            entry.what,
            What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
        ) {
            entry.model = message.model.as_deref().map(Cow::Borrowed);
            entry.model_call = message.id.as_deref().map(Cow::Borrowed);
        }
        out.push(message.dress(entry, self));
    }

    /// The end of a step. A message has the tokens of its last step; in old versions it had several.
    fn step<'a>(
        &mut self,
        part: Node<'a>,
        id: Option<Cow<'a, str>>,
        message: &mut Message,
        out: &mut Out<'_>,
    ) {
        let mut entry = Entry {
            stop_reason: part.text("reason"),
            ..Entry::keep(NoteKind::Usage, part)
        };
        let counts = part
            .get("tokens")
            .and_then(|tokens| self.counts(tokens, out));
        if let Some(counts) = counts {
            if message.tokens == Some(counts.usage.into()) {
                // The message said so already.
                message.tokens = None;
            } else {
                self.count(&counts);
                entry.usage = Some(counts.usage);
                entry.model_call = if message.counted {
                    id.clone()
                } else {
                    message.id.clone().map(Cow::Owned)
                };
                entry.model = message.model.clone().map(Cow::Owned);
                message.counted = true;
            }
        }
        self.put(entry, id, message, out);
    }

    /// A tool call, with what came of it.
    fn tool<'a>(
        &mut self,
        part: Node<'a>,
        id: Option<Cow<'a, str>>,
        message: &Message,
        out: &mut Out<'_>,
    ) {
        let name = part.text("tool").unwrap_or_default();
        let call = part.text("callID").unwrap_or_default();
        let Some(state) = part.get("state") else {
            return self.put(Entry::keep(NoteKind::UnknownRecord, part), id, message, out);
        };
        out.check("part.tool.state", state, STATE_FIELDS);
        let status = state.text("status").unwrap_or_default();
        let span = |key: &str| state.path(&["time", key]);
        let mut attachments = Vec::new();
        let child = ["sessionId", "sessionID"]
            .iter()
            .find_map(|key| state.path(&["metadata", key])?.as_str())
            .filter(|_| name == "task");
        let input = input(state).map(|input| out.value(input, &mut attachments));
        let mut entry = Entry {
            at: span("start").and_then(time::of),
            child,
            attachments,
            ..Entry::new(What::Call {
                name: name.clone(),
                id: call.clone(),
                input,
            })
        };
        entry.extra.rest("", part, TOOL_MAPPED);
        if !matches!(&*status, "completed" | "error") {
            entry.extra.rest("state", state, STATE_MAPPED);
        }
        self.put(entry, id.clone(), message, out);
        match &*status {
            "completed" | "error" => {}
            "pending" | "running" => return,
            other => {
                out.unknown_type("part.tool.state", other);
                return self.put(Entry::keep(NoteKind::UnknownRecord, part), id, message, out);
            }
        }
        let mut attachments = Vec::new();
        let (output, error, status) = outcome(state, &status, &mut attachments, out);
        for attached in state.get("attachments").into_iter().flat_map(Node::items) {
            attachments.extend(detached(attached, out));
        }
        let count = |key: &str| span(key).and_then(|n| n.as_i64());
        let said = state.get("output").map(|output| output.raw());
        let mut entry = Entry {
            at: span("end").and_then(time::of),
            duration_ms: between(count("start"), count("end")),
            status,
            attachments,
            ..Entry::new(What::Result {
                name,
                id: call,
                output,
                error,
            })
        };
        entry.extra.rest("state", state, RESULT_MAPPED);
        if let Some(metadata) = state.get("metadata") {
            entry.extra.but("metadata", metadata, said);
        }
        self.put(entry, id.clone(), message, out);
        if span("compacted").is_some_and(|at| !at.is_null()) {
            let entry = Entry {
                at: span("compacted").and_then(time::of),
                ..Entry::note(NoteKind::Truncated, "the model no longer sees this output")
            };
            self.put(entry, id, message, out);
        }
    }
}

/// A text: a person's, a model's, or one that a program put there.
fn said<'a>(part: Node<'a>, message: &Message) -> Option<Entry<'a>> {
    let text = part.get("text").and_then(Text::of)?;
    if text.is_empty() {
        return None;
    }
    let is = |key: &str| part.get(key).and_then(|n| n.as_bool()) == Some(true);
    let began = part.path(&["time", "start"]);
    // Only what a model writes takes time.
    let by_model = match message.role {
        Role::Assistant => true,
        Role::User => false,
        Role::Unknown => began.is_some(),
    };
    let what = if is("synthetic") || is("ignored") {
        What::System(text)
    } else if message.summary {
        What::Note {
            kind: NoteKind::Summary,
            text: Some(text),
            raw: None,
        }
    } else if by_model {
        What::Assistant(text)
    } else {
        What::User(text)
    };
    Some(Entry {
        at: began.and_then(time::of),
        synthetic: matches!(what, What::System(_)),
        ..Entry::new(what)
    })
}

fn reasoned(part: Node<'_>) -> Entry<'_> {
    let text = part.get("text").and_then(Text::of).unwrap_or(Text::EMPTY);
    let span = |key: &str| part.path(&["time", key]);
    let count = |key: &str| span(key).and_then(|n| n.as_i64());
    Entry {
        at: span("start").and_then(time::of),
        duration_ms: between(count("start"), count("end")),
        opaque: text.is_empty(),
        ..Entry::new(What::Reasoning(text))
    }
}

/// A file that goes with a message.
fn file<'a>(part: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let name = part
        .text("filename")
        .or(part.text("mime"))
        .unwrap_or_default();
    match detached(part, out) {
        Some(attachment) => Entry {
            attachments: vec![attachment],
            ..Entry::note(NoteKind::Attachment, name)
        },
        None => Entry::keep(NoteKind::Attachment, part),
    }
}

/// The content of a file that stands in the log.
pub(super) fn detached(file: Node<'_>, out: &mut Out<'_>) -> Option<Attachment> {
    let url = file.text("url").or(file.text("uri"))?;
    let (mime, data) = data_url(&url)?;
    out.detach(mime, data)
}

/// What a tool was given. While it is still being written it is a text.
fn input(state: Node<'_>) -> Option<Node<'_>> {
    let input = state.get("input").filter(|input| !input.is_null());
    let empty =
        input.is_none_or(|input| input.kind() == Kind::Object && input.fields().next().is_none());
    let raw = state.get("raw").filter(|raw| !raw.is("") && !raw.is_null());
    if empty { raw.or(input) } else { input }
}

/// What came of a call: what it gave back, why it failed, and how it ended.
fn outcome<'a>(
    state: Node<'a>,
    status: &str,
    attachments: &mut Vec<Attachment>,
    out: &mut Out<'_>,
) -> (Option<Value<'a>>, Option<Text<'a>>, Option<Status>) {
    let output = state.get("output").filter(|output| !output.is_null());
    let output = output.map(|output| out.value(output, attachments));
    if status == "error" {
        let error = state.get("error");
        let error = match error.and_then(Text::of) {
            Some(error) => error,
            None => error.map_or(Text::from("failed"), |error| error_text(error).into()),
        };
        let how = how_it_failed(&error);
        return (output, Some(error), Some(how));
    }
    let metadata = |key: &str| state.path(&["metadata", key]);
    let exit = metadata("exit").and_then(|n| n.as_i64());
    let timed_out = state
        .get("output")
        .and_then(|output| output.as_str())
        .is_some_and(|output| {
            output.contains("bash tool terminated command after exceeding timeout")
        });
    if timed_out {
        return (output, Some(Text::from("timed out")), Some(Status::Timeout));
    }
    match exit {
        Some(code) if code != 0 => {
            let why = Text::from(format!("exit code {code}"));
            (output, Some(why), Some(Status::Error))
        }
        _ => (output, None, Some(Status::Ok)),
    }
}

/// How a tool call failed, by what it says.
pub(super) fn how_it_failed(error: &Text<'_>) -> Status {
    const REFUSALS: [&str; 5] = [
        "The user rejected permission to use this specific tool call",
        "The user has specified a rule which prevents you from using this specific tool call",
        "The user dismissed this question",
        "Permission denied by user",
        "Error: The user rejected permission",
    ];
    if REFUSALS.iter().any(|refusal| error.starts_with(refusal)) {
        return Status::Denied;
    }
    let text = error.read();
    if text.contains("timed out") || text.contains("exceeding timeout") {
        Status::Timeout
    } else {
        Status::Error
    }
}

/// What an error says: `{"name":…,"data":{"message":…}}`.
pub(super) fn error_text(error: Node<'_>) -> String {
    if let Some(text) = error.as_str() {
        return text.into_owned();
    }
    let name = error.text("name").or(error.text("type"));
    let message = error
        .path(&["data", "message"])
        .and_then(|message| message.as_str())
        .or(error.text("message"));
    match (name, message) {
        (Some(name), Some(message)) => format!("{name}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.into_owned(),
        (None, None) => "error".to_owned(),
    }
}

/// How long something took.
pub(super) fn between(start: Option<i64>, end: Option<i64>) -> Option<u64> {
    u64::try_from(end?.checked_sub(start?)?).ok()
}
