//! What a notification means.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::wire::{self, Line};
use crate::capture;
use crate::cost::Cost;
use crate::session::{learn, update as renew};
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, blocks, hash, time};

/// How many calls that have ended are still known, for what comes late.
const RECENT: usize = 64;

/// Reads the notifications of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Updates {
    session: Session,
    /// What is being said.
    saying: Option<Saying>,
    /// The calls that have begun.
    calls: BTreeMap<String, Call>,
    ended: VecDeque<String>,
    model: Option<String>,
    cost: Option<Cost>,
}

/// A message that comes in pieces.
#[derive(Debug, Serialize, Deserialize)]
struct Saying {
    who: Who,
    text: String,
    at: Option<i64>,
    message: Option<String>,
    stream: Option<i64>,
    subagent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Who {
    User,
    Agent,
    Thought,
}

/// A call that has begun and not ended.
#[derive(Debug, Serialize, Deserialize)]
struct Call {
    name: String,
    /// Whether it was given. One whose input is not known yet waits.
    given: bool,
    /// What it was given with.
    input: Option<u64>,
    at: Option<i64>,
    subagent: Option<String>,
}

impl Updates {
    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let line = Line::of(record);
        if record.get("sessionUpdate").is_none() {
            out.check("line", record, wire::LINE);
        }
        let record = wire::inner(record);
        // A session that is loaded again tells again what it told before.
        if let Some(event) = &line.event
            && !out.unit(event)
        {
            return;
        }
        learn(&mut self.session.id, || line.session.clone());
        let nothing = match line.update {
            Some(update) => {
                out.check("update", update, wire::UPDATE);
                self.update(record, &line, update, out)
            }
            None => self.message(record, &line, out),
        };
        capture::skip(nothing, out);
    }

    /// Other sessions that share the log are sub-agents.
    fn subagent(&self, line: &Line<'_>) -> Option<String> {
        let session = line.session.as_deref()?;
        (Some(session) != self.session.id.as_deref()).then(|| session.to_owned())
    }

    fn put(&self, mut entry: Entry<'_>, line: &Line<'_>, out: &mut Out<'_>) {
        entry.at = entry.at.or(line.at);
        if entry.subagent.is_none() {
            entry.subagent = self.subagent(line).map(Cow::Owned);
        }
        if entry.native_id.is_none() {
            entry.native_id = line.event.clone().map(|id| Cow::Owned(id.into_owned()));
        }
        out.push(entry);
    }

    /// Reads an update. When nothing comes of it, says why.
    fn update(
        &mut self,
        record: Node<'_>,
        line: &Line<'_>,
        update: Node<'_>,
        out: &mut Out<'_>,
    ) -> Option<Dropped> {
        let kind = update.text("sessionUpdate").unwrap_or_default();
        let who = match &*kind {
            "user_message_chunk" => Some(Who::User),
            "agent_message_chunk" => Some(Who::Agent),
            "agent_thought_chunk" => Some(Who::Thought),
            _ => None,
        };
        if let Some(who) = who {
            let model = update.path(&["_meta", "modelId"]).and_then(|n| n.as_str());
            renew(&mut self.model, model);
            return self.piece(who, line, update, out);
        }
        if kind == "tool_call_delta_chunk" {
            return Some(Dropped::StreamDelta);
        }
        self.said(out);
        match &*kind {
            "tool_call" | "tool_call_update" => return self.call(line, update, out),
            "turn_completed" => {
                self.flush(out);
                self.turn(line, update, out);
                return None;
            }
            _ => {}
        }
        let note = match &*kind {
            "plan" => NoteKind::Todo,
            "usage_update" => {
                let amount = update.path(&["cost", "amount"]);
                if let Some(amount) = amount.filter(|n| n.kind() == Kind::Number) {
                    self.session.vendor_cost = Some(amount.raw().get().to_owned());
                }
                NoteKind::Usage
            }
            "current_mode_update" => NoteKind::Mode,
            "session_summary_generated" => {
                renew(&mut self.session.title, update.text("session_summary"));
                NoteKind::Title
            }
            "session_info_update" => {
                renew(&mut self.session.title, update.text("title"));
                NoteKind::Title
            }
            "pending_interaction" | "interaction_resolved" => NoteKind::Permission,
            "subagent_spawned" | "subagent_progress" | "subagent_finished" => NoteKind::Subagent,
            "available_commands_update" | "config_option_update" => NoteKind::Context,
            "retry_state" => NoteKind::Retry,
            "model_changed" | "current_model_update" => NoteKind::ModelChange,
            _ if kind.contains("compact") => NoteKind::Compaction,
            _ => {
                out.unknown_type("update", &kind);
                NoteKind::UnknownRecord
            }
        };
        let child = capture::id(update, "child_session_id")
            .or_else(|| capture::id(update, "subagentSessionId"))
            .filter(|_| note == NoteKind::Subagent);
        let entry = Entry {
            child,
            duration_ms: update.get("duration_ms").and_then(|n| n.as_u64()),
            ..Entry::keep(note, record)
        };
        self.put(entry, line, out);
        None
    }

    /// Takes in a piece of what is said.
    fn piece(
        &mut self,
        who: Who,
        line: &Line<'_>,
        update: Node<'_>,
        out: &mut Out<'_>,
    ) -> Option<Dropped> {
        let content = update.get("content")?;
        let message = update.text("messageId");
        let subagent = self.subagent(line);
        let same = self.saying.as_ref().is_some_and(|saying| {
            saying.who == who
                && saying.message.as_deref() == message.as_deref()
                && saying.stream == line.stream
                && saying.subagent == subagent
        });
        if !same {
            self.said(out);
        }
        let text = content.text("text").or(content.as_str());
        let Some(text) = text.filter(|_| content.get("type").is_none_or(|t| t.is("text"))) else {
            self.said(out);
            let entry = match content.text("type").as_deref() {
                Some("image" | "audio") => blocks::attachment(content, out),
                _ => Entry::keep(NoteKind::Attachment, content),
            };
            self.put(entry, line, out);
            return None;
        };
        let saying = self.saying.get_or_insert_with(|| Saying {
            who,
            text: String::new(),
            at: line.at.map(Timestamp::as_millisecond),
            message: message.map(Cow::into_owned),
            stream: line.stream,
            subagent,
        });
        saying.text.push_str(&text);
        Some(Dropped::StreamDelta)
    }

    /// Gives what was being said.
    fn said(&mut self, out: &mut Out<'_>) {
        let Some(saying) = self.saying.take().filter(|saying| !saying.text.is_empty()) else {
            return;
        };
        let text = Text::from(saying.text);
        let synthetic = saying.who == Who::User && text.starts_with("<system-reminder>");
        let what = match saying.who {
            Who::User if synthetic => What::System(text),
            Who::User => What::User(text),
            Who::Agent => What::Assistant(text),
            Who::Thought => What::Reasoning(text),
        };
        let model = self.model.clone().filter(|_| saying.who != Who::User);
        out.push(Entry {
            at: saying
                .at
                .and_then(|at| Timestamp::from_millisecond(at).ok()),
            native_id: saying.message.map(Cow::Owned),
            subagent: saying.subagent.map(Cow::Owned),
            model: model.map(Cow::Owned),
            synthetic,
            ..Entry::new(what)
        });
    }

    /// A tool call, or what became of it.
    fn call(&mut self, line: &Line<'_>, update: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let id = capture::id(update, "toolCallId")?;
        if self.ended.iter().any(|ended| *ended == *id) {
            return Some(Dropped::RepeatedChannel);
        }
        let status = line.status();
        let over = matches!(&*status, "completed" | "failed" | "cancelled");
        let input = update.get("rawInput").filter(|input| match input.kind() {
            Kind::Null => false,
            Kind::Object => input.fields().next().is_some(),
            _ => true,
        });
        let subagent = self.subagent(line);
        let name = wire::tool(update).map(Cow::into_owned);
        let said = input.map(|input| hash(input.raw().get().as_bytes()));
        // Another call under an id that is still in use: agents that number their calls in each turn do that.
        let is_call = update
            .get("sessionUpdate")
            .is_some_and(|kind| kind.is("tool_call"));
        let another = |call: &Call| {
            let renamed = name.as_ref().is_some_and(|name| *name != call.name);
            call.given && said.is_some() && (renamed || call.input != said)
        };
        let goes_on = self.calls.get(&*id).is_some_and(another);
        if goes_on && is_call {
            self.calls.remove(&*id);
        }
        let call = self.calls.entry(id.to_string()).or_insert_with(|| Call {
            name: name.unwrap_or_default(),
            input: None,
            given: false,
            at: line.at.map(Timestamp::as_millisecond),
            subagent,
        });
        if !call.given && (input.is_some() || over) {
            call.given = true;
            call.input = said;
            let mut attachments = Vec::new();
            let input = input.map(|input| out.value(input, &mut attachments));
            let entry = Entry {
                attachments,
                ..call.entry(&id, input)
            };
            out.push(entry);
        }
        if !over {
            if goes_on && !is_call {
                // What the call is given was changed.
                call.input = said;
                self.put(Entry::keep(NoteKind::Progress, update), line, out);
                return None;
            }
            return Some(Dropped::RepeatedChannel);
        }
        let entry = result(&id, &status, update, out);
        self.calls.remove(&*id);
        self.ended.push_back(id.into_owned());
        if self.ended.len() > RECENT {
            self.ended.pop_front();
        }
        self.put(entry, line, out);
        None
    }

    /// The end of a turn, with what it cost.
    fn turn(&mut self, line: &Line<'_>, update: Node<'_>, out: &mut Out<'_>) {
        let node = update.get("usage").filter(|usage| !usage.is_null());
        let total = node.and_then(usage);
        if let Some(cost) = node.and_then(|usage| capture::ticks(usage.get("costUsdTicks")?)) {
            let sum = self.cost.get_or_insert_default();
            sum.add(cost);
            self.session.vendor_cost = Some(sum.to_text());
        }
        let mut sum = Usage::default();
        let by_model: Vec<(Cow<'_, str>, Usage)> = node
            .and_then(|usage| usage.get("modelUsage"))
            .into_iter()
            .flat_map(Node::fields)
            .filter_map(|(model, counts)| Some((model.to_text_lossy(), usage(counts)?)))
            .inspect(|(_, usage)| sum.add(usage))
            .collect();
        // By model where that comes to the same.
        let split = total.is_some_and(|total| sum.total() == total.total());
        let duration = node.and_then(|usage| usage.get("apiDurationMs")?.as_u64());
        let (one, several) = match &*by_model {
            [(model, _)] if split => (Some(model.clone()), &[][..]),
            several if split => (None, several),
            _ => (None, &[][..]),
        };
        let entry = Entry {
            usage: total.filter(|_| several.is_empty()),
            model: one,
            duration_ms: duration,
            ..Entry::new(What::Note {
                kind: NoteKind::Turn,
                text: update.get("stop_reason").and_then(Text::of),
                raw: Some(update.into()),
            })
        };
        self.put(entry, line, out);
        for (model, usage) in several {
            let entry = Entry {
                usage: Some(*usage),
                model: Some(model.clone()),
                ..Entry::new(What::Note {
                    kind: NoteKind::Usage,
                    text: None,
                    raw: None,
                })
            };
            self.put(entry, line, out);
        }
    }

    /// A message of the protocol that is no update: a request, a reply, or another notification.
    fn message(&mut self, record: Node<'_>, line: &Line<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.said(out);
        let kind = match &*line.method {
            "session/prompt" => {
                let prompt = line.params.get("prompt")?;
                for block in prompt.items() {
                    let entry = match block.get("text").and_then(Text::of) {
                        Some(text) => Entry::new(What::User(text)),
                        None => blocks::attachment(block, out),
                    };
                    self.put(entry, line, out);
                }
                return Some(Dropped::Empty);
            }
            "session/new" | "session/load" | "session/resume" => {
                learn(&mut self.session.cwd, || line.params.text("cwd"));
                NoteKind::Session
            }
            "session/request_permission" => NoteKind::Permission,
            "session/cancel" | "_x.ai/session/prompt_complete" => NoteKind::Turn,
            "session/set_mode" => NoteKind::Mode,
            "session/set_model" => NoteKind::ModelChange,
            "initialize" | "authenticate" => NoteKind::Session,
            "_x.ai/queue/changed" => NoteKind::Queue,
            "_x.ai/models/update" => {
                renew(&mut self.model, line.params.text("currentModelId"));
                NoteKind::ModelChange
            }
            "_x.ai/task_backgrounded" | "_x.ai/task_completed" => NoteKind::Subagent,
            method
                if ["_x.ai/", "fs/", "terminal/"]
                    .iter()
                    .any(|begin| method.starts_with(begin)) =>
            {
                NoteKind::Context
            }
            "" if record
                .get("type")
                .is_some_and(|t| t.is("permission_request")) =>
            {
                NoteKind::Permission
            }
            "" if record.get("error").is_some() => {
                self.put(capture::error(record), line, out);
                return None;
            }
            // The reply to a prompt: the turn is over.
            "" if record.path(&["result", "stopReason"]).is_some() => {
                self.flush(out);
                let why = record.path(&["result", "stopReason"]);
                let entry = Entry::new(What::Note {
                    kind: NoteKind::Turn,
                    text: why.and_then(Text::of),
                    raw: Some(record.into()),
                });
                self.put(entry, line, out);
                return None;
            }
            "" if record.get("result").is_some() => {
                let given = record.path(&["result", "sessionId"]);
                learn(&mut self.session.id, || given?.as_str());
                NoteKind::Session
            }
            method => {
                out.unknown_type("method", method);
                NoteKind::UnknownRecord
            }
        };
        self.put(Entry::keep(kind, record), line, out);
        None
    }

    /// Gives what was held back.
    fn flush(&mut self, out: &mut Out<'_>) {
        self.said(out);
        for (id, call) in &mut self.calls {
            if !call.given {
                call.given = true;
                out.push(call.entry(id, None));
            }
        }
    }
}

impl Call {
    fn entry<'a>(&self, id: &str, input: Option<Value<'a>>) -> Entry<'a> {
        Entry {
            at: self.at.and_then(|at| Timestamp::from_millisecond(at).ok()),
            subagent: self.subagent.clone().map(Cow::Owned),
            ..Entry::new(What::Call {
                name: Cow::Owned(self.name.clone()),
                id: Cow::Owned(id.to_owned()),
                input,
            })
        }
    }
}

/// What a call gave back: what the tool gave, or else what a person is shown.
fn result<'a>(id: &str, status: &str, update: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let raw = update.get("rawOutput").filter(|raw| !raw.is_null());
    let shown = update.get("content").filter(|shown| !shown.is_null());
    let text = raw.and_then(Text::of).or_else(|| shown.and_then(only_text));
    let failed = status != "completed";
    let output = match (raw, &text) {
        (Some(raw), _) if raw.kind() != Kind::String => Some(out.value(raw, &mut attachments)),
        (_, Some(_)) if failed => None,
        (_, Some(text)) => Some(Value::Text(text.clone())),
        (_, None) => shown.map(|shown| out.value(shown, &mut attachments)),
    };
    let refused = |text: &Text<'_>| {
        ["User rejected", "User denied", "Permission denied by user"]
            .iter()
            .any(|mark| text.starts_with(mark))
    };
    let state = match (&text, failed) {
        (_, false) => Status::Ok,
        (Some(text), true) if refused(text) => Status::Denied,
        (_, true) => Status::Error,
    };
    Entry {
        status: Some(state),
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: Cow::Owned(id.to_owned()),
            output,
            error: failed.then(|| text.unwrap_or_else(|| Text::from(status.to_owned()))),
        })
    }
}

/// The text, when content is nothing but one.
fn only_text(content: Node<'_>) -> Option<Text<'_>> {
    let mut items = content.items();
    match (items.next(), items.next()) {
        (Some(one), None) => one.path(&["content", "text"]).and_then(Text::of),
        _ => None,
    }
}

/// Token counts of this kind, in disjoint buckets: the input includes what was cached.
fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let cache_read = count("cachedReadTokens");
    let cache_write = count("cacheCreationTokens");
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let usage = Usage {
        input: count("inputTokens").map(|input| input.saturating_sub(cached)),
        cache_read,
        cache_write,
        cache_write_1h: None,
        output: count("outputTokens"),
        reasoning: count("reasoningTokens"),
    };
    (!usage.is_empty()).then_some(usage)
}

/// What the summary beside a log says of the session.
pub(super) fn summary(session: &mut Session, document: Node<'_>) {
    let inner = |path: &[&str]| document.path(path).and_then(|node| node.as_str());
    learn(&mut session.id, || inner(&["info", "id"]));
    learn(&mut session.cwd, || inner(&["info", "cwd"]));
    renew(&mut session.title, inner(&["session_summary"]));
    renew(&mut session.title, inner(&["generated_title"]));
    learn(&mut session.branch, || inner(&["head_branch"]));
    learn(&mut session.commit, || inner(&["head_commit"]));
    learn(&mut session.parent, || inner(&["parent_session_id"]));
    let mut remotes = document
        .get("git_remotes")
        .into_iter()
        .flat_map(Node::items);
    learn(&mut session.repository, || remotes.find_map(|r| r.as_str()));
    let began = time::field(document, "created_at").map(Timestamp::as_millisecond);
    session.started_at = session.started_at.or(began);
}

impl Reader for Updates {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        capture::records(record, out, |record, out| self.line(record, out));
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        summary(&mut self.session, document);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }

    crate::state::keeps_session!();
}
