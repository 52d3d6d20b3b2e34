//! What a line means.

mod said;
mod stream;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status};
use serde::{Deserialize, Serialize};

use self::said::{
    assistant, attachment, call_of, first_text, keep_account, result_facts, said_to_agent,
    unknown_block,
};
use self::stream::OfModel;
use super::wire::{
    ENVELOPE, FIELDS, Line, MAPPED, MESSAGE_FIELDS, MESSAGE_MAPPED, OF_SESSION,
    OF_SESSION_AND_RESULT, RESULT,
};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::common::{Common, Kept};
use crate::session::{learn, update};
use crate::{Dropped, Entry, Mended, Origin, Out, Reader, Session, Text, Tokens, What, time};

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
    /// What was counted of a stream, by model.
    by_model: BTreeMap<String, OfModel>,
    /// How many summaries there were, and which of them is the title.
    summaries: u64,
    summarized: u64,
    /// Summaries whose leaf was not met yet, by its hash.
    leaves: HashMap<u64, (u64, String)>,
}

/// How many summaries of other sessions are remembered at most, and how long they may be.
const MOST_LEAVES: usize = 256;
const LONGEST_TITLE: usize = 1024;

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
            by_model: BTreeMap::new(),
            summaries: 0,
            summarized: 0,
            leaves: HashMap::new(),
        }
    }

    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let mut line = Line::of(record);
        let kind = line.kind.and_then(|kind| kind.as_str()).unwrap_or_default();
        let uuid = line.uuid.and_then(|uuid| uuid.as_str());
        if let Some(uuid) = &uuid
            && is_copy(uuid, record, &mut line, out)
        {
            return;
        }
        self.learn(&line);
        if let Some(uuid) = &uuid {
            self.leaf(uuid);
        }
        let at = line.timestamp.and_then(time::of);
        if at.is_none() && line.timestamp.is_some_and(|t| !t.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let common = Common {
            at,
            id: uuid,
            parent: line.parent.and_then(|parent| parent.as_str()),
            subagent: self.subagent(&line),
            ..Common::default()
        };
        let common = Kept::new(record, common);
        self.keep_line(&line, &common);
        let counted = out.ledger().counted();
        match &*kind {
            "user" => self.user(record, &line, &common, out),
            "assistant" => {
                let id = line.message.and_then(|message| message.text("id"));
                if let Some(id) = id.filter(|_| self.session.parent.is_some()) {
                    out.ledger().also(&call_unit(&id));
                }
                assistant(record, &line, &common, out);
            }
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
        } else if kind == "assistant" {
            self.count_of_model(&line, &out.ledger().counted().beyond(&counted));
        }
    }

    /// Keeps the fields of a line that have no place of their own. What is the session's is not said again.
    fn keep_line<'a>(&self, line: &Line<'a>, common: &Kept<'a>) {
        let is = |node: Option<Node<'_>>, known: &Option<String>| {
            node.is_none_or(|node| known.as_deref().is_some_and(|known| node.is(known)))
        };
        let is_same = is(line.cwd, &self.session.cwd)
            && is(line.branch, &self.session.branch)
            && is(line.version, &self.session.version);
        let has_result = line.result.is_some() && line.has_result_block();
        let more = match (is_same, has_result) {
            (true, true) => OF_SESSION_AND_RESULT,
            (true, false) => OF_SESSION,
            (false, true) => RESULT,
            (false, false) => &[],
        };
        let mut extra = common.extra.borrow_mut();
        extra.rest_of_two("", common.record, [MAPPED, more]);
        // A copy of another session's line may say whose it was.
        let of = [
            &self.session.id,
            &self.session.parent,
            &self.session.forked_from,
        ];
        if let Some(session) = line.session
            && !of.into_iter().any(|known| is(Some(session), known))
        {
            extra.but("sessionId", session, None);
        }
    }

    /// A summary is the title of the session that its leaf is in, which need not be this one.
    fn summary(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let Some((leaf, title)) = record.text("leafUuid").zip(record.text("summary")) else {
            return;
        };
        self.summaries += 1;
        if out.ledger().knows_unit(&leaf) {
            self.summarized(self.summaries, title.into_owned());
        } else if self.leaves.len() < MOST_LEAVES && title.len() <= LONGEST_TITLE {
            let leaf = crate::hash(leaf.as_bytes());
            self.leaves
                .insert(leaf, (self.summaries, title.into_owned()));
        }
    }

    /// A record that a summary may be about was read.
    fn leaf(&mut self, uuid: &str) {
        if !self.leaves.is_empty()
            && let Some((number, title)) = self.leaves.remove(&crate::hash(uuid.as_bytes()))
        {
            self.summarized(number, title);
        }
    }

    /// The last summary of the session is its title, wherever its leaf stands.
    fn summarized(&mut self, number: u64, title: String) {
        if number >= self.summarized {
            self.summarized = number;
            self.title(1, Some(Cow::Owned(title)));
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
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        let Some(message) = line.message else {
            return;
        };
        out.check("message", message, MESSAGE_FIELDS);
        common.keep("message", message, MESSAGE_MAPPED);
        let origin = record.path(&["origin", "kind"]);
        let injected = line.meta
            || origin.is_some_and(|origin| origin.is("task-notification"))
            || record.get("isSynthetic").and_then(|n| n.as_bool()) == Some(true);
        if line.compact_summary {
            let blocks = message.get("content").into_iter().flat_map(Node::items);
            let entry = Entry::new(What::Note {
                kind: NoteKind::Compaction,
                text: Some(first_text(message)),
                raw: (blocks.count() > 1).then(|| message.into()),
            });
            common.put(entry, out);
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
        let mut other_account = line.result;
        for block in content.items().filter(|block| line.is_new(*block)) {
            match blocks::entry(block, Speaker::User, facts, out) {
                Some(mut entry) => {
                    if let What::User(text) = entry.what {
                        entry = Entry {
                            extra: entry.extra,
                            ..said_to_agent(text, injected)
                        };
                    } else if matches!(entry.what, What::Result { .. }) {
                        entry.child = child.clone().map(Cow::Owned);
                        if let Some(account) = other_account.take() {
                            keep_account(&mut entry, account, out);
                        }
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

    fn system<'a>(&mut self, record: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
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

    /// A sign of life. That of a sub-agent may hold what it said, and so a call to a model that is counted here
    /// unless the sub-agent's own log tells of it.
    fn progress<'a>(record: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        let data = record.get("data");
        let mut entry = Entry {
            subagent: data.and_then(|data| data.text("agentId")),
            ..Entry::keep(NoteKind::Progress, record)
        };
        let message = data.and_then(|data| data.path(&["message", "message"]));
        if let Some(message) = message
            && let Some(id) = message.text("id")
            && let Some(counts) = message.get("usage")
        {
            out.ledger().belongs_to(&call_unit(&id));
            entry.usage = blocks::usage(counts);
            entry.service = blocks::service(counts);
            entry.model = message.text("model");
            entry.model_call = Some(id);
        }
        common.put(entry, out);
    }

    /// Lines that are no part of the conversation.
    fn other<'a>(&mut self, kind: &str, record: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        let (note, text) = match kind {
            "summary" => {
                self.summary(record, out);
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
            "progress" => return Self::progress(record, common, out),
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

/// Whether a line repeats what one with the same id said before: kept context after a compaction, a restored file.
/// A line that says more is read for what is new in it; one that only counts more tokens is taken for its counts.
fn is_copy<'a>(uuid: &str, record: Node<'a>, line: &mut Line<'a>, out: &mut Out<'_>) -> bool {
    let again = !out.ledger().unit(uuid);
    let content = line.message.and_then(|message| message.get("content"));
    let mut is_new = false;
    match content {
        Some(content) if content.kind() == Kind::List => {
            for block in content.items() {
                let new = out.ledger().says(uuid, block.bytes());
                is_new |= new;
                if !new {
                    line.said.push(block.offset());
                }
            }
        }
        Some(content) => is_new = out.ledger().says(uuid, content.bytes()),
        None => {
            let said = record
                .fields()
                .filter(|(key, _)| !ENVELOPE.iter().any(|known| key.is(known)))
                .fold(0, |sum: u64, (key, value)| {
                    let of = crate::hash(key.raw().get().as_bytes());
                    sum.rotate_left(7) ^ of ^ crate::hash(value.bytes()).rotate_left(31)
                });
            is_new = out.ledger().says(uuid, &said.to_le_bytes());
        }
    }
    if !again {
        // Two blocks of one line may say the same.
        line.said.clear();
        return false;
    }
    if is_new {
        out.ledger().belongs_to(uuid);
        return false;
    }
    let usage = line.message.and_then(|message| {
        let usage = blocks::usage(message.get("usage")?)?;
        let (call, model) = (call_of(message, line)?, message.text("model")?);
        out.ledger()
            .would_count(&call, &usage)
            .then_some((usage, call, model))
    });
    match usage {
        None => out.repeated(),
        Some((usage, call, model)) => {
            out.ledger().belongs_to(uuid);
            out.push(Entry {
                at: line.timestamp.and_then(time::of),
                usage: Some(usage),
                model: Some(model),
                model_call: Some(call),
                ..Entry::keep(NoteKind::Usage, record)
            });
        }
    }
    true
}

/// What a call of a sub-agent is known by in its own log and in that of its parent.
fn call_unit(message: &str) -> String {
    format!("call of sub-agent {message}")
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

    crate::state::keeps_session!();
}
