//! What a line means.

use std::borrow::Cow;
use std::cell::Cell;

use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Json, Money, NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::tree::Tree;
use super::wire::{self, FIELDS, MESSAGE_FIELDS, USAGE_FIELDS};
use crate::common::Common;
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::{
    Dropped, Entry, Mended, Origin, Out, Reader, Session, Text, Value, What, blocks, time,
};

/// Reads a session, or what `--mode json` prints.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pi {
    session: Session,
    tree: Tree,
    cost: Cost,
    /// Whether the session is that of a sub-agent, so that its prompts are those of an agent.
    is_subagent: bool,
    /// The message that is being streamed, as far as it has come.
    partial: Option<String>,
}

impl Pi {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let parent = origin.above().find_map(wire::session_of_directory);
        let session = Session {
            parent: parent.map(str::to_owned),
            ..Session::default()
        };
        Self {
            is_subagent: session.parent.is_some(),
            session,
            tree: Tree::default(),
            cost: Cost::default(),
            partial: None,
        }
    }

    fn header(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let session = &mut self.session;
        let at = time::field(record, "timestamp");
        learn(&mut session.id, || record.text("id"));
        learn(&mut session.cwd, || record.text("cwd"));
        learn(&mut session.title, || record.text("title"));
        session.started_at = session.started_at.or(at.map(Timestamp::as_millisecond));
        // The version is that of the format; the agent does not say its own.
        let from = record.text("parentSession").or(record.text("branchedFrom"));
        if session.parent.is_none()
            && let Some(from) = from.as_deref().and_then(wire::session_of)
        {
            session.forked_from = Some(from.into());
        }
        let entry = Entry {
            at,
            native_id: record.text("id"),
            ..Entry::keep(NoteKind::Session, record)
        };
        out.push(entry);
    }

    /// The line that Oh-My-Pi writes anew whenever the title changes.
    fn title_line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let title = record.text("title").unwrap_or_default();
        if title.is_empty() {
            return out.skip(Dropped::Empty);
        }
        out.push(Entry {
            at: time::field(record, "updatedAt"),
            ..Entry::note(NoteKind::Title, title.clone())
        });
        update(&mut self.session.title, Some(title));
    }

    /// An entry of the tree.
    fn entry(&mut self, kind: &str, record: Node<'_>, out: &mut Out<'_>) {
        let message = record.get("message").filter(|_| kind == "message");
        let stamp = record.get("timestamp");
        let at = stamp
            .and_then(time::of)
            .or_else(|| time::field(message?, "timestamp"));
        let common = Common {
            at,
            id: record.text("id"),
            parent: record.text("parentId"),
            ..Common::default()
        };
        if let Some(id) = &common.id {
            // Ids are short, so that only with its time is an entry known in other files.
            let stamp = stamp.and_then(|stamp| stamp.as_str()).unwrap_or_default();
            if !out.unit(&format!("{id} {stamp}")) {
                return;
            }
        }
        if at.is_none() && stamp.is_some_and(|stamp| !stamp.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        if let Some(parent) = record.get("parentId") {
            self.branch(parent, &common, out);
        }
        let seq = out.next_seq();
        let said = matches!(
            kind,
            "message" | "custom_message" | "compaction" | "branch_summary"
        );
        match message {
            Some(message) => self.message(message, record, &common, out),
            None => self.other(kind, record, &common, out),
        }
        if let Some(id) = &common.id {
            self.tree.add(id, seq, said);
        }
    }

    /// Follows an entry to the one before it, and says so when that is not the last.
    fn branch<'a>(&mut self, parent: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let parent = parent.as_str();
        let Some(left) = self.tree.go_to(parent.as_deref(), out.next_seq()) else {
            return;
        };
        let text = if left.returned {
            "went on with a branch that had been left"
        } else {
            "went back to an earlier entry"
        };
        let entry = Entry {
            voids: Some(left.events),
            ..Entry::note(NoteKind::Rewind, text)
        };
        common.put(entry, out);
    }

    fn message<'a>(
        &mut self,
        message: Node<'a>,
        record: Node<'a>,
        common: &Common<'a>,
        out: &mut Out<'_>,
    ) {
        out.check("message", message, MESSAGE_FIELDS);
        let role = message.text("role").unwrap_or_default();
        match &*role {
            "user" => {
                let is_agent = message.get("attribution").is_some_and(|by| by.is("agent"));
                let is_made = message.get("synthetic").and_then(|n| n.as_bool()) == Some(true);
                let injected = is_made || (is_agent && !self.is_subagent);
                said(message, injected, common, out);
            }
            "developer" | "system" | "custom" | "hookMessage" => said(message, true, common, out),
            "assistant" => self.assistant(message, record, common, out),
            "toolResult" => self.result(message, common, out),
            "bashExecution" => execution("bash", "command", message, common, out),
            "pythonExecution" => execution("python", "code", message, common, out),
            "branchSummary" => common.put(summary(NoteKind::Summary, message), out),
            "compactionSummary" => common.put(summary(NoteKind::Compaction, message), out),
            "fileMention" => {
                let entry = blocks::kept(NoteKind::Attachment, message, out);
                common.put(entry, out);
            }
            _ => {
                out.unknown_type("message", &role);
                let entry = blocks::kept(NoteKind::UnknownRecord, record, out);
                common.put(entry, out);
            }
        }
    }

    /// Takes the tokens and the cost of a call.
    fn usage(&mut self, holder: Node<'_>, out: &mut Out<'_>) -> (Option<Usage>, Option<Money>) {
        let Some(node) = holder.get("usage") else {
            return (None, None);
        };
        out.check("usage", node, USAGE_FIELDS);
        let cost = node.path(&["cost", "total"]).and_then(Cost::of);
        if let Some(cost) = cost {
            self.cost.add(cost);
            self.session.vendor_cost = Some(self.cost.to_text());
        }
        let model = holder.text("model");
        let told = Cost::of_call(node.path(&["cost", "total"]), model.as_deref());
        (wire::usage(node), told.map(Cost::money))
    }

    fn assistant<'a>(
        &mut self,
        message: Node<'a>,
        record: Node<'a>,
        common: &Common<'a>,
        out: &mut Out<'_>,
    ) {
        let (usage, cost) = self.usage(message, out);
        let model = message.text("model");
        let call = message.text("responseId").or(common.id.clone());
        let duration = message.get("duration").and_then(wire::whole);
        let first = Cell::new(true);
        let put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
            entry.model.clone_from(&model);
            entry.model_call.clone_from(&call);
            if first.take() {
                entry.usage = usage;
                entry.cost = cost;
                entry.duration_ms = duration;
            }
            common.put(entry, out);
        };
        let content = message.get("content");
        if let Some(text) = content.and_then(Text::of) {
            put(Entry::new(What::Assistant(text)), out);
        }
        for block in content.into_iter().flat_map(Node::items) {
            let entry = reply(block, out).unwrap_or_else(|| {
                let kind = block.text("type").unwrap_or_default();
                out.unknown_type("assistant.content", &kind);
                blocks::kept(NoteKind::UnknownRecord, block, out)
            });
            put(entry, out);
        }
        if let Some(why) = message.get("errorMessage").and_then(Text::of) {
            put(Entry::note(NoteKind::Error, why), out);
        } else if message.get("stopReason").is_some_and(|n| n.is("aborted")) {
            put(Entry::note(NoteKind::Error, "aborted"), out);
        }
        if first.get() {
            put(Entry::keep(NoteKind::ModelCall, record), out);
        }
    }

    fn result<'a>(&mut self, message: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        // The work of models that the tool called.
        let (usage, cost) = self.usage(message, out);
        let failed = message.get("isError").and_then(|n| n.as_bool()) == Some(true);
        let content = message.get("content");
        let only = content.and_then(only_text);
        let status = failed.then(|| match &only {
            Some(text) if text.starts_with("Tool execution was blocked") => Status::Denied,
            Some(text) if text.read().contains("Command timed out after ") => Status::Timeout,
            _ => Status::Error,
        });
        let mut attachments = Vec::new();
        let (output, error) = match (only, content) {
            (Some(text), _) if failed => (None, Some(text)),
            (Some(text), _) => (Some(Value::Text(text)), None),
            (None, content) => (
                content.map(|content| out.value(content, &mut attachments)),
                failed.then(|| Text::from("failed")),
            ),
        };
        let entry = Entry {
            status,
            usage,
            cost,
            model_call: usage.and(common.id.clone()),
            attachments,
            ..Entry::new(What::Result {
                name: message.text("toolName").unwrap_or_default(),
                id: message.text("toolCallId").unwrap_or_default(),
                output,
                error,
            })
        };
        common.put(entry, out);
    }

    /// Entries that are no messages.
    fn other<'a>(&mut self, kind: &str, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let note = match kind {
            "custom_message" => return said(record, true, common, out),
            "session_init" => return self.beginning(record, common, out),
            "compaction" | "branch_summary" | "model_usage" => {
                let (note, text) = match kind {
                    "compaction" => (NoteKind::Compaction, record.get("summary")),
                    "branch_summary" => (NoteKind::Summary, record.get("summary")),
                    _ => (NoteKind::ModelCall, record.get("purpose")),
                };
                // What is kept of the conversation stands in it already.
                let raw = blocks::without(record, &["summary", "retainedTail"]);
                let (usage, cost) = self.usage(record, out);
                let entry = Entry {
                    usage,
                    cost,
                    model_call: usage.and(common.id.clone()),
                    model: record.text("model"),
                    ..Entry::new(What::Note {
                        kind: note,
                        text: text.and_then(Text::of),
                        raw: Some(raw),
                    })
                };
                return common.put(entry, out);
            }
            "model_change" => {
                let entry = Entry {
                    model: wire::model(record),
                    ..Entry::keep(NoteKind::ModelChange, record)
                };
                return common.put(entry, out);
            }
            "session_info" => {
                update(&mut self.session.title, record.text("name"));
                NoteKind::Title
            }
            "title_change" => {
                update(&mut self.session.title, record.text("title"));
                NoteKind::Title
            }
            "custom" => match record.text("customType").as_deref() {
                Some("tool_execution_start") => NoteKind::Progress,
                Some("session_exit") => NoteKind::Session,
                _ => NoteKind::Context,
            },
            "thinking_level_change"
            | "service_tier_change"
            | "mode_change"
            | "active_tools_change" => NoteKind::Mode,
            "ttsr_injection" | "context_transform" | "ephemeral" => NoteKind::Context,
            "label" | "archive" | "credential_pin" | "reset_boundary" | "leaf" => NoteKind::Session,
            _ => {
                out.unknown_type("", kind);
                NoteKind::UnknownRecord
            }
        };
        let entry = blocks::kept(note, record, out);
        common.put(entry, out);
    }

    /// The beginning of a sub-agent: what it is told to be, and what it is to do.
    fn beginning<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        self.is_subagent = true;
        let prompt = record.get("systemPrompt");
        for part in prompt
            .into_iter()
            .chain(prompt.into_iter().flat_map(Node::items))
        {
            if let Some(text) = Text::of(part) {
                common.put(injected(text), out);
            }
        }
        let entry = Entry {
            model: record.text("resolvedModel"),
            ..Entry::new(What::Note {
                kind: NoteKind::Subagent,
                text: record.get("task").and_then(Text::of),
                raw: Some(blocks::without(record, &["systemPrompt", "task"])),
            })
        };
        common.put(entry, out);
    }

    /// What `--mode json` prints beside messages. `false` when it is nothing of that kind.
    fn event(&mut self, kind: &str, record: Node<'_>, out: &mut Out<'_>) -> bool {
        let note = match kind {
            "message_start" | "message_update" => {
                self.partial = record
                    .get("message")
                    .map(|message| message.raw().get().to_owned());
                out.skip(Dropped::StreamDelta);
                return true;
            }
            "message_end" => {
                self.partial = None;
                let Some(message) = record.get("message") else {
                    return true;
                };
                let common = Common {
                    at: time::field(message, "timestamp"),
                    ..Common::default()
                };
                self.message(message, record, &common, out);
                return true;
            }
            "tool_execution_update" => {
                out.skip(Dropped::StreamDelta);
                return true;
            }
            // Calls and results are messages as well, and these repeat the messages.
            "tool_execution_start" | "tool_execution_end" | "turn_end" | "agent_end" => {
                out.skip(Dropped::RepeatedChannel);
                return true;
            }
            "agent_start" | "turn_start" => NoteKind::Turn,
            "auto_compaction_start"
            | "auto_compaction_end"
            | "compaction_start"
            | "compaction_end" => NoteKind::Compaction,
            "auto_retry_start" | "auto_retry_end" => NoteKind::Retry,
            "queue_update" => NoteKind::Queue,
            "session_info_changed" => NoteKind::Title,
            "thinking_level_changed" | "model_changed" => NoteKind::Mode,
            "extension_error" => NoteKind::Error,
            "extension_ui_request" => NoteKind::Permission,
            _ => return false,
        };
        let text = record
            .get("errorMessage")
            .or(record.path(&["result", "summary"]))
            .and_then(Text::of);
        out.push(Entry::new(What::Note {
            kind: note,
            text,
            raw: Some(record.into()),
        }));
        true
    }
}

/// A text that a program put into the conversation.
fn injected(text: Text<'_>) -> Entry<'_> {
    Entry {
        synthetic: true,
        ..Entry::new(What::System(text))
    }
}

/// What is put to the model, by a person or by a program.
fn said<'a>(message: Node<'a>, is_injected: bool, common: &Common<'a>, out: &mut Out<'_>) {
    let entry = |text| {
        if is_injected {
            injected(text)
        } else {
            Entry::new(What::User(text))
        }
    };
    let Some(content) = message.get("content") else {
        return;
    };
    if let Some(text) = Text::of(content) {
        return common.put(entry(text), out);
    }
    let mut is_empty = true;
    for block in content.items() {
        is_empty = false;
        let kind = block.text("type").unwrap_or_default();
        let made = match &*kind {
            "text" => entry(block.get("text").and_then(Text::of).unwrap_or(Text::EMPTY)),
            "image" => blocks::attachment(block, out),
            _ => {
                out.unknown_type("user.content", &kind);
                blocks::kept(NoteKind::UnknownRecord, block, out)
            }
        };
        common.put(made, out);
    }
    if is_empty && content.kind() == Kind::List {
        out.skip(Dropped::Empty);
    }
}

/// A block of a reply; `None` for a kind that is not known.
fn reply<'a>(block: Node<'a>, out: &mut Out<'_>) -> Option<Entry<'a>> {
    let field = |key: &str| block.get(key).and_then(Text::of).unwrap_or(Text::EMPTY);
    Some(match &*block.text("type")? {
        "text" => Entry::new(What::Assistant(field("text"))),
        "thinking" => {
            let text = field("thinking");
            Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            }
        }
        "redactedThinking" => Entry {
            opaque: true,
            ..Entry::new(What::Reasoning(Text::EMPTY))
        },
        "toolCall" => {
            let mut attachments = Vec::new();
            let input = block
                .get("arguments")
                .map(|input| out.value(input, &mut attachments));
            Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: block.text("name").unwrap_or_default(),
                    id: block.text("id").unwrap_or_default(),
                    input,
                })
            }
        }
        "image" => blocks::attachment(block, out),
        // Says that the request went to another model.
        "fallback" => Entry::keep(NoteKind::ModelChange, block),
        "anthropicServerTool" => blocks::kept(NoteKind::ModelCall, block, out),
        _ => return None,
    })
}

/// A command that a person ran in the session.
fn execution<'a>(
    tool: &'static str,
    key: &str,
    message: Node<'a>,
    common: &Common<'a>,
    out: &mut Out<'_>,
) {
    let id = common.id.clone().unwrap_or_default();
    let input = message.get(key).and_then(|command| {
        let input = format!("{{\"{key}\":{}}}", command.raw().get());
        Json::parse(&input).ok().map(Value::Owned)
    });
    let call = What::Call {
        name: Cow::Borrowed(tool),
        id: id.clone(),
        input,
    };
    // When it was run is not known, only when it ended.
    let undated = Common {
        at: None,
        ..common.clone()
    };
    undated.put(Entry::new(call), out);
    let cancelled = message.get("cancelled").and_then(|n| n.as_bool()) == Some(true);
    let code = message.get("exitCode").and_then(|n| n.as_i64());
    let error = match code {
        _ if cancelled => Some(Text::from("cancelled")),
        Some(code) if code != 0 => Some(Text::from(format!("exit code {code}"))),
        _ => None,
    };
    let mut attachments = Vec::new();
    let output = message
        .get("output")
        .map(|output| out.value(output, &mut attachments));
    let result = What::Result {
        name: Cow::Borrowed(tool),
        id,
        output,
        error,
    };
    let entry = Entry {
        attachments,
        ..Entry::new(result)
    };
    common.put(entry, out);
    for image in message.get("images").into_iter().flat_map(Node::items) {
        let entry = blocks::attachment(image, out);
        common.put(entry, out);
    }
}

fn summary(kind: NoteKind, message: Node<'_>) -> Entry<'_> {
    Entry::new(What::Note {
        kind,
        text: message.get("summary").and_then(Text::of),
        raw: Some(blocks::without(message, &["summary"])),
    })
}

/// The text of content that is nothing else.
fn only_text(content: Node<'_>) -> Option<Text<'_>> {
    if content.kind() == Kind::String {
        return Text::of(content);
    }
    let mut items = content.items();
    match (items.next(), items.next()) {
        (Some(one), None) if one.get("type").is_some_and(|kind| kind.is("text")) => {
            Text::of(one.get("text")?)
        }
        _ => None,
    }
}

impl Reader for Pi {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        match &*kind {
            "session" => self.header(record, out),
            "title" => self.title_line(record, out),
            _ if self.event(&kind, record, out) => return,
            _ => self.entry(&kind, record, out),
        }
        out.check("line", record, FIELDS);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        // The stream ended in the middle of a message.
        let Some(partial) = self.partial.take() else {
            return;
        };
        let mut tape = Tape::new();
        let Ok(message) = tape.read(&partial, 128) else {
            return;
        };
        let common = Common {
            at: time::field(message, "timestamp"),
            ..Common::default()
        };
        self.message(message, message, &common, out);
    }

    crate::state::keeps_session!();
}
