//! What a line means.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{FIELDS, Line, MESSAGE_FIELDS, USAGE_FIELDS};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::{
    Dropped, Entry, Mended, Origin, Out, Reader, Session, Text, Tokens, What, state, time,
};

/// Reads a session, or a stream.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Claude {
    session: Session,
    /// The session's id by the name of its file, which is the one that `--resume` takes.
    named: Option<String>,
    /// The sub-agent whose file this is, by the name of the file.
    agent: Option<String>,
    /// Whether a line that belongs to a session was seen.
    begun: bool,
    /// How much the title is worth: a summary, one made by a model, one given by a person.
    title_rank: u8,
    /// What was counted when the last result of a stream came.
    at_result: Tokens,
}

/// What a line says of all entries it becomes.
struct Common<'a> {
    at: Option<Timestamp>,
    uuid: Option<Cow<'a, str>>,
    parent: Option<Cow<'a, str>>,
    subagent: Option<Cow<'a, str>>,
}

impl<'a> Common<'a> {
    fn put(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        entry.at = entry.at.or(self.at);
        entry.native_id.clone_from(&self.uuid);
        entry.parent_id.clone_from(&self.parent);
        if entry.subagent.is_none() {
            entry.subagent.clone_from(&self.subagent);
        }
        out.push(entry);
    }
}

impl Claude {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let stem = origin.stem().unwrap_or_default();
        Self {
            session: Session::default(),
            named: is_uuid(stem).then(|| stem.to_owned()),
            agent: stem.strip_prefix("agent-").map(str::to_owned),
            begun: false,
            title_rank: 0,
            at_result: Tokens::default(),
        }
    }

    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let line = Line::of(record);
        let kind = line.kind.and_then(|kind| kind.as_str()).unwrap_or_default();
        let uuid = line.uuid.and_then(|uuid| uuid.as_str());
        // A line that is there twice is a copy: kept context after a compaction, a restored file.
        if let Some(uuid) = &uuid
            && !out.unit(uuid)
        {
            return;
        }
        self.learn(&line);
        let at = line.timestamp.and_then(time::of);
        if at.is_none() && line.timestamp.is_some_and(|t| !t.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let common = Common {
            at,
            uuid,
            parent: line.parent.and_then(|parent| parent.as_str()),
            subagent: self.subagent(&line),
        };
        match &*kind {
            "user" => self.user(record, &line, &common, out),
            "assistant" => assistant(record, &line, &common, out),
            "system" => self.system(record, &common, out),
            "attachment" => attachment(record, &common, out),
            "result" => self.result(record, &common, out),
            "stream_event" => return out.skip(Dropped::StreamDelta),
            "keep_alive" => return out.skip(Dropped::KeepAlive),
            "tool_use" => common.put(
                Entry::new(What::Call {
                    name: record.text("name").unwrap_or_default(),
                    id: record.text("id").unwrap_or_default(),
                    input: record.get("input").map(Into::into),
                }),
                out,
            ),
            "tool_result" => common.put(
                Entry::new(What::Result {
                    name: record.text("name").unwrap_or_default(),
                    id: record.text("id").unwrap_or_default(),
                    output: record.get("output").map(Into::into),
                    error: None,
                }),
                out,
            ),
            _ => self.other(&kind, record, &common, out),
        }
        if line.on_disk {
            out.check("line", record, FIELDS);
        }
    }

    /// What any line says of the session.
    fn learn(&mut self, line: &Line<'_>) {
        if !self.begun
            && let Some(session) = line.session.and_then(|node| node.as_str())
        {
            self.begun = true;
            let agent = line
                .agent
                .and_then(|node| node.as_str())
                .filter(|_| line.sidechain)
                .or(self.agent.as_deref().map(|a| Cow::Owned(a.to_owned())));
            match agent {
                Some(agent) => {
                    self.session.id = Some(format!("{session}.agent-{agent}"));
                    self.session.parent = Some(session.into_owned());
                }
                None => match self.named.take() {
                    // The file was begun by `--resume`, or is a copy of another session.
                    Some(named) if named != session => {
                        self.session.forked_from = Some(session.into_owned());
                        self.session.id = Some(named);
                    }
                    _ => self.session.id = Some(session.into_owned()),
                },
            }
        }
        update(
            &mut self.session.version,
            line.version.and_then(|n| n.as_str()),
        );
        learn(&mut self.session.cwd, || line.cwd?.as_str());
        learn(&mut self.session.branch, || line.branch?.as_str());
    }

    /// The sub-agent that wrote a line, when the file is not its own.
    fn subagent<'a>(&self, line: &Line<'a>) -> Option<Cow<'a, str>> {
        if self.session.parent.is_some() {
            return None;
        }
        if let Some(call) = line.parent_call.filter(|call| !call.is_null()) {
            return call.as_str();
        }
        if !line.sidechain {
            return None;
        }
        line.agent
            .and_then(|agent| agent.as_str())
            .or(Some(Cow::Borrowed("sidechain")))
    }

    fn title(&mut self, rank: u8, title: Option<Cow<'_, str>>) {
        if rank >= self.title_rank
            && let Some(title) = title.filter(|title| !title.trim().is_empty())
        {
            self.title_rank = rank;
            self.session.title = Some(title.into_owned());
        }
    }

    fn user<'a>(
        &mut self,
        record: Node<'a>,
        line: &Line<'a>,
        common: &Common<'a>,
        out: &mut Out<'_>,
    ) {
        let Some(message) = line.message else {
            return;
        };
        out.check("message", message, MESSAGE_FIELDS);
        let origin = record.path(&["origin", "kind"]);
        let injected = line.meta
            || origin.is_some_and(|origin| origin.is("task-notification"))
            || record.get("isSynthetic").and_then(|n| n.as_bool()) == Some(true);
        if line.compact_summary {
            let text = first_text(message);
            common.put(Entry::note(NoteKind::Compaction, text), out);
            return;
        }
        let Some(content) = message.get("content") else {
            return;
        };
        if let Some(text) = Text::of(content) {
            return common.put(said_to_agent(text, injected), out);
        }
        let facts = line.result.map(result_facts).unwrap_or_default();
        let facts = ResultFacts {
            status: line.denial.map(|_| Status::Denied).or(facts.status),
            ..facts
        };
        let child = line.result.and_then(|result| self.child(result));
        for block in content.items() {
            match blocks::entry(block, Speaker::User, facts, out) {
                Some(mut entry) => {
                    if let What::User(text) = entry.what {
                        entry = said_to_agent(text, injected);
                    } else if matches!(entry.what, What::Result { .. }) {
                        entry.child = child.clone().map(Cow::Owned);
                    }
                    common.put(entry, out);
                }
                None => unknown_block("user", block, common, out),
            }
        }
        if content.kind() == Kind::List && content.items().next().is_none() {
            out.skip(Dropped::Empty);
        }
    }

    /// The session of the sub-agent whose result this is.
    fn child(&self, result: Node<'_>) -> Option<String> {
        let agent = result.text("agentId")?;
        let session = self.session.parent.as_ref().or(self.session.id.as_ref())?;
        Some(format!("{session}.agent-{agent}"))
    }

    fn system<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let subtype = record.text("subtype").unwrap_or_default();
        let kind = match &*subtype {
            "init" => {
                learn(&mut self.session.cwd, || record.text("cwd"));
                update(
                    &mut self.session.version,
                    record.text("claude_code_version"),
                );
                NoteKind::Session
            }
            "compact_boundary" | "microcompact_boundary" => NoteKind::Compaction,
            "turn_duration" => NoteKind::Turn,
            "stop_hook_summary" | "hook_started" | "hook_response" | "hook_progress" => {
                NoteKind::Hook
            }
            "api_error" | "api_retry" => NoteKind::Retry,
            "model_refusal_fallback" => NoteKind::ModelChange,
            "away_summary" => NoteKind::Summary,
            "task_started" | "task_progress" | "task_updated" | "task_notification" => {
                NoteKind::Subagent
            }
            "thinking_tokens" | "status" => NoteKind::Progress,
            "informational"
            | "local_command"
            | "scheduled_task_fire"
            | "session_start"
            | "bridge_status"
            | "memory_saved"
            | "files_persisted" => NoteKind::Session,
            _ => {
                out.unknown_type("system", &subtype);
                NoteKind::UnknownRecord
            }
        };
        let duration = record.get("durationMs").and_then(|n| n.as_u64());
        let entry = Entry {
            duration_ms: duration,
            ..Entry::new(What::Note {
                kind,
                text: record.get("content").and_then(Text::of),
                raw: Some(record.into()),
            })
        };
        common.put(entry, out);
    }

    /// The end of a stream, with the vendor's own sums.
    fn result<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let total = record.get("usage").and_then(blocks::usage);
        let before = self.at_result.into();
        // Lines of the stream carry the usage a reply began with; the result has what it came to.
        let usage = total.map(|total| {
            let counted = out.ledger().counted().beyond(&before);
            total.beyond(&counted)
        });
        if let Some(total) = total {
            let mut sum = self
                .session
                .vendor_usage
                .map(Into::into)
                .unwrap_or_default();
            quipu_model::Usage::add(&mut sum, &total);
            self.session.vendor_usage = Some(sum.into());
        }
        if let Some(cost) = record.get("total_cost_usd") {
            self.session.vendor_cost = Some(cost.raw().get().to_owned());
        }
        let failed = record.get("is_error").and_then(|n| n.as_bool()) == Some(true);
        let kind = if failed {
            NoteKind::Error
        } else {
            NoteKind::Session
        };
        let model = record.get("modelUsage").and_then(|models| {
            let mut names = models.fields().map(|(name, _)| name.to_text_lossy());
            names.next().filter(|_| names.next().is_none())
        });
        let entry = Entry {
            usage: usage.filter(|usage| usage.total() > 0),
            model,
            duration_ms: record.get("duration_ms").and_then(|n| n.as_u64()),
            ..Entry::new(What::Note {
                kind,
                text: record.get("result").and_then(Text::of),
                raw: Some(record.into()),
            })
        };
        common.put(entry, out);
        self.at_result = out.ledger().counted().into();
    }

    /// Lines that are no part of the conversation.
    fn other<'a>(&mut self, kind: &str, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let (note, text) = match kind {
            "summary" => {
                self.title(1, record.text("summary"));
                (NoteKind::Summary, record.get("summary"))
            }
            "ai-title" => {
                self.title(2, record.text("aiTitle").or(record.text("title")));
                (NoteKind::Title, record.get("aiTitle"))
            }
            "custom-title" => {
                self.title(3, record.text("customTitle"));
                (NoteKind::Title, record.get("customTitle"))
            }
            "agent-name" => (NoteKind::Title, record.get("agentName")),
            "progress" => {
                let agent = record.path(&["data", "agentId"]).and_then(|n| n.as_str());
                let entry = Entry {
                    subagent: agent,
                    ..Entry::keep(NoteKind::Progress, record)
                };
                return common.put(entry, out);
            }
            "file-history-snapshot" | "file-history-delta" => (NoteKind::FileSnapshot, None),
            "queue-operation" => (NoteKind::Queue, record.get("content")),
            "last-prompt" => (NoteKind::Session, record.get("lastPrompt")),
            "mode" | "permission-mode" => (NoteKind::Mode, None),
            "pr-link" | "worktree-state" | "relocated" | "atis-latch" | "bridge-session"
            | "frame-link" | "conversation_reset" => (NoteKind::Session, None),
            "rate_limit_event" => (NoteKind::Usage, None),
            "control_request" | "control_response" => (NoteKind::Permission, None),
            _ => {
                out.unknown_type("", kind);
                (NoteKind::UnknownRecord, None)
            }
        };
        let entry = Entry::new(What::Note {
            kind: note,
            text: text.and_then(Text::of),
            raw: Some(record.into()),
        });
        common.put(entry, out);
    }
}

fn assistant<'a>(record: Node<'a>, line: &Line<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let Some(message) = line.message else {
        return;
    };
    out.check("message", message, MESSAGE_FIELDS);
    let mut model = message.text("model");
    // Errors and interruptions are told as replies of a model that is none.
    let made_up = line.api_error || model.as_deref() == Some("<synthetic>");
    if made_up {
        model = None;
    }
    let counts = message.get("usage").filter(|_| !made_up);
    let usage = counts.and_then(|node| {
        out.check("usage", node, USAGE_FIELDS);
        blocks::usage(node)
    });
    let cost = line.cost.filter(|_| !made_up).and_then(Cost::of);
    let cost = cost.map(Cost::money);
    let service = counts.map(blocks::service).unwrap_or_default();
    let searches = counts.and_then(blocks::searches);
    let request = || line.request.and_then(|request| request.as_str());
    let call = message.text("id").map(|id| match request() {
        // Those of the vendor are unique by themselves, and not every line names the request. Gateways
        // make up others.
        Some(request) if !id.starts_with("msg_") => Cow::Owned(format!("{id}:{request}")),
        _ => id,
    });
    let content = message.get("content");
    let first = Cell::new(true);
    let put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
        if made_up && let What::Assistant(text) = entry.what {
            entry = Entry::note(NoteKind::Error, text);
        }
        entry.model.clone_from(&model);
        entry.model_call.clone_from(&call);
        if first.take() {
            entry.usage = usage;
            entry.cost = cost;
            entry.searches = searches;
            entry.service = service;
        }
        common.put(entry, out);
    };
    match content {
        Some(content) if content.kind() == Kind::String => {
            let text = Text::of(content).unwrap_or(Text::EMPTY);
            put(Entry::new(What::Assistant(text)), out);
        }
        Some(content) => {
            for block in content.items() {
                let facts = ResultFacts::default();
                if let Some(entry) = blocks::entry(block, Speaker::Assistant, facts, out) {
                    put(entry, out);
                    continue;
                }
                let kind = block.text("type").unwrap_or_default();
                if kind != "fallback" {
                    out.unknown_type("assistant.content", &kind);
                }
                put(Entry::keep(NoteKind::UnknownRecord, block), out);
            }
        }
        None => {}
    }
    if first.get() {
        put(Entry::keep(NoteKind::ModelCall, record), out);
    }
}

fn attachment<'a>(record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let Some(attachment) = record.get("attachment") else {
        return;
    };
    let kind = attachment.text("type").unwrap_or_default();
    let note = match &*kind {
        // Typed by a person while the agent was at work.
        "queued_command" => {
            let prompt = attachment.get("prompt").and_then(Text::of);
            if let Some(text) = prompt {
                return common.put(said_to_agent(text, false), out);
            }
            NoteKind::Queue
        }
        kind if kind.starts_with("hook_") => NoteKind::Hook,
        "task_reminder" | "todo_reminder" | "todo" | "goal_status" => NoteKind::Todo,
        "edited_text_file"
        | "file"
        | "compact_file_reference"
        | "already_read_file"
        | "selected_lines_in_ide"
        | "opened_file_in_ide"
        | "directory"
        | "image"
        | "pdf_reference"
        | "new_file"
        | "edited_image_file" => NoteKind::Attachment,
        "total_tokens_reminder" | "token_usage" | "budget_usd" => NoteKind::Usage,
        "auto_mode" | "auto_mode_exit" | "output_style" => NoteKind::Mode,
        kind if kind.starts_with("plan_mode") => NoteKind::Mode,
        "command_permissions" => NoteKind::Permission,
        "agent_listing_delta"
        | "deferred_tools_delta"
        | "mcp_instructions_delta"
        | "skill_listing"
        | "nested_memory"
        | "structured_output"
        | "relevant_memories"
        | "invoked_skills"
        | "skill_discovery"
        | "diagnostics"
        | "ultrathink_effort"
        | "async_hook_response"
        | "mcp_resource"
        | "date_change"
        | "critical_system_reminder"
        | "agent_mention"
        | "task_status"
        | "team_context"
        | "dynamic_skill" => NoteKind::Context,
        other => {
            out.unknown_type("attachment", other);
            NoteKind::UnknownRecord
        }
    };
    common.put(Entry::keep(note, record), out);
}

fn unknown_block<'a>(whose: &str, block: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let kind = block.text("type").unwrap_or_default();
    out.unknown_type(&format!("{whose}.content"), &kind);
    common.put(Entry::keep(NoteKind::UnknownRecord, block), out);
}

/// A text on the user's side: a person's, or one that a program put there.
fn said_to_agent(text: Text<'_>, injected: bool) -> Entry<'_> {
    const INJECTED: [&str; 13] = [
        "<command-name>",
        "<command-message>",
        "<command-args>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<system-reminder>",
        "<task-notification>",
        "<user-prompt-submit-hook>",
        "<bash-stdout>",
        "<bash-input>",
        "Caveat: The messages below were generated by the user while running local commands",
        "[Request interrupted by user",
    ];
    if injected || INJECTED.iter().any(|mark| text.starts_with(mark)) {
        return Entry {
            synthetic: true,
            ..Entry::new(What::System(text))
        };
    }
    Entry::new(What::User(text))
}

/// What the structured twin of a result says.
fn result_facts(result: Node<'_>) -> ResultFacts {
    let interrupted = result.get("interrupted").and_then(|n| n.as_bool()) == Some(true);
    ResultFacts {
        status: interrupted.then_some(Status::Timeout),
        duration_ms: ["durationMs", "totalDurationMs"]
            .iter()
            .find_map(|key| result.get(key)?.as_u64()),
    }
}

/// The first text of a message.
fn first_text(message: Node<'_>) -> Text<'_> {
    let Some(content) = message.get("content") else {
        return Text::EMPTY;
    };
    Text::of(content)
        .or_else(|| {
            content
                .items()
                .find_map(|block| block.get("text").and_then(Text::of))
        })
        .unwrap_or(Text::EMPTY)
}

pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// The counts of a call are under this name, in every generation.
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage\""));

impl Reader for Claude {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        // A document holds lines; a line is an object that is no list of them.
        let lines = record.get("loglines").unwrap_or(record);
        if lines.kind() == Kind::List {
            for item in lines.items() {
                out.within(item, |out, item| self.line(item, out));
            }
        } else if out.in_record() {
            self.line(record, out);
        } else {
            out.within(record, |out, record| self.line(record, out));
        }
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        let title = document.text("description").or(document.text("agentType"));
        self.title(1, title);
        learn(&mut self.session.parent_call, || document.text("toolUseId"));
    }

    fn can_skip(&self, line: &[u8]) -> bool {
        // The first lines say whose they are.
        let known = self.begun && self.session.cwd.is_some();
        known && USAGE.find(line).is_none()
    }

    fn session(&self) -> &Session {
        &self.session
    }

    fn save(&self) -> Vec<u8> {
        state::save(self)
    }
}
