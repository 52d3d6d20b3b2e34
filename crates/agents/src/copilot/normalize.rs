//! What an event means.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::wire::{
    ASSISTANT_FIELDS, ASSISTANT_MAPPED, COMPLETE_FIELDS, COMPLETE_MAPPED, EVENT_MAPPED, FIELDS,
    Plain, REQUEST_FIELDS, SHUTDOWN_FIELDS, START_FIELDS, USER_FIELDS, plain, usage,
};
use crate::blocks;
use crate::common::{Common, Kept};
use crate::session::{learn, update};
use crate::{Dropped, Entry, Extra, Mended, Out, Reader, Session, Text, Tokens, Value, What, hash};
use crate::{capture, time};

/// How many pieces of reasoning back one is known again.
const RECENT: usize = 8;

/// Reads the events of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Events {
    session: Session,
    /// The model that is used where a reply does not name it.
    model: Option<String>,
    /// Calls that are known and have no result yet. A call is there twice: in the reply of the model, and when it
    /// is run. Some models give one id to several calls.
    open: BTreeMap<u64, VecDeque<Asked>>,
    /// When calls were run, in milliseconds since 1970.
    started: BTreeMap<u64, i64>,
    /// The sub-agents that called, by their calls: a result does not say whose it is.
    #[serde(default)]
    callers: BTreeMap<u64, String>,
    /// Reasoning comes with the reply and on its own.
    reasoned: VecDeque<u64>,
    /// The number of the first event of each record, by which a rewind finds it.
    marks: Vec<(u64, u64)>,
    /// The tokens and the calls that were counted for each model.
    counted: BTreeMap<String, (Tokens, u64)>,
}

/// A call without a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    name: u64,
    /// What it was given, where that is known.
    arguments: Option<u64>,
    /// Whether it was seen in a reply, and when it is run.
    replied: bool,
    ran: bool,
}

impl Asked {
    fn new(name: Option<&str>, arguments: Option<Node<'_>>) -> Self {
        Self {
            name: hash(name.unwrap_or_default().as_bytes()),
            arguments: arguments.map(|arguments| hash(arguments.raw().get().as_bytes())),
            replied: false,
            ran: false,
        }
    }

    /// Whether both may be the same call: what both say is the same.
    fn is(&self, other: &Self) -> bool {
        let arguments = self.arguments.zip(other.arguments);
        self.name == other.name && arguments.is_none_or(|(one, other)| one == other)
    }
}

impl Events {
    fn event(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        let data = record.get("data").unwrap_or(record);
        let id = record.text("id");
        if let Some(id) = &id {
            if !out.unit(id) {
                return;
            }
            self.marks.push((hash(id.as_bytes()), out.next_seq()));
        }
        let at = time::field(record, "timestamp");
        if at.is_none() && record.get("timestamp").is_some_and(|at| !at.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let agent = [record.text("agentId"), data.text("parentToolCallId")];
        let common = Common {
            at,
            id,
            parent: record.text("parentId"),
            subagent: agent.into_iter().flatten().find(|agent| !agent.is_empty()),
            ..Common::default()
        };
        let common = Kept::new(record, common);
        let mut extra = common.extra.borrow_mut();
        extra.rest("event", record, EVENT_MAPPED);
        drop(extra);
        if kind != "result" {
            out.check("event", record, FIELDS);
        }
        match &*kind {
            "session.start" | "session.resume" => self.start(&kind, record, data, &common, out),
            "session.shutdown" => self.shutdown(record, data, &common, out),
            "session.snapshot_rewind" => self.rewind(record, data, &common, out),
            "session.title_changed" => {
                update(&mut self.session.title, data.text("title"));
                let title = data.get("title").and_then(Text::of).unwrap_or(Text::EMPTY);
                common.keep("", data, &["title"]);
                common.put(Entry::note(NoteKind::Title, title), out);
            }
            "user.message" => user(data, &common, out),
            "assistant.message" => self.assistant(record, data, &common, out),
            "assistant.reasoning" => self.reasoning(data, &common, out),
            "assistant.usage" => self.used(record, data, &common, out),
            "tool.execution_start" | "tool.user_requested" => {
                self.call_start(record, data, &common, out);
            }
            "tool.execution_complete" => self.call_end(data, &common, out),
            "system.message" | "system.notification" => {
                let text = data
                    .get("content")
                    .and_then(Text::of)
                    .unwrap_or(Text::EMPTY);
                let entry = Entry {
                    synthetic: true,
                    ..Entry::new(What::System(text))
                };
                common.keep("", data, &["content"]);
                common.put(entry, out);
            }
            "result" => self.result(record, &common, out),
            kind => self.other(kind, record, data, &common, out),
        }
    }

    /// Gives on an entry and remembers what of its tokens was counted, by model.
    fn spend<'a>(&mut self, entry: Entry<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        if entry.usage.is_none() {
            return common.put(entry, out);
        }
        let model = entry.model.as_deref().unwrap_or_default().to_owned();
        let before = out.ledger().counted();
        let known = entry
            .model_call
            .as_deref()
            .map(|call| out.ledger().knows_call(call));
        let calls = if known == Some(true) {
            0
        } else {
            entry.calls.unwrap_or(1)
        };
        common.put(entry, out);
        let more = out.ledger().counted().beyond(&before);
        let (tokens, counted) = self.counted.entry(model).or_default();
        let mut sum = Usage::from(*tokens);
        sum.add(&more);
        *tokens = sum.into();
        *counted = counted.saturating_add(calls);
    }

    fn current_model<'a>(&self) -> Option<Cow<'a, str>> {
        self.model.clone().map(Cow::Owned)
    }

    fn start<'a>(
        &mut self,
        kind: &str,
        record: Node<'a>,
        data: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        out.check("session.start", data, START_FIELDS);
        learn(&mut self.session.id, || data.text("sessionId"));
        update(&mut self.session.version, data.text("copilotVersion"));
        update(&mut self.model, data.text("selectedModel"));
        learn(&mut self.session.parent, || data.text("parentSessionId"));
        if self.session.started_at.is_none() {
            let started = time::field(data, "startTime");
            self.session.started_at = started.map(Timestamp::as_millisecond);
        }
        if let Some(context) = data.get("context") {
            self.context(context);
        }
        let note = if kind == "session.start" {
            NoteKind::Session
        } else {
            NoteKind::Resume
        };
        common.put(Entry::keep(note, record), out);
    }

    /// Where the session is at work.
    fn context(&mut self, context: Node<'_>) {
        learn(&mut self.session.cwd, || context.text("cwd"));
        learn(&mut self.session.branch, || context.text("branch"));
        learn(&mut self.session.commit, || context.text("headCommit"));
        learn(&mut self.session.repository, || {
            let name = context.text("repository").filter(|name| !name.is_empty())?;
            Some(match context.text("repositoryHost") {
                Some(host) if !host.is_empty() => Cow::Owned(format!("{host}/{name}")),
                _ => name,
            })
        });
    }

    fn assistant<'a>(
        &mut self,
        record: Node<'a>,
        data: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        out.check("assistant.message", data, ASSISTANT_FIELDS);
        common.keep("", data, ASSISTANT_MAPPED);
        let model = data.text("model").or_else(|| self.current_model());
        let model_call = data.text("apiCallId").or(data.text("messageId"));
        let output = data.get("outputTokens").and_then(|n| n.as_u64());
        let mut usage = output.map(|output| Usage {
            output: Some(output),
            ..Usage::default()
        });
        let mut put = |events: &mut Self, mut entry: Entry<'a>, out: &mut Out<'_>| {
            entry.model.clone_from(&model);
            entry.model_call.clone_from(&model_call);
            entry.usage = usage.take();
            events.spend(entry, common, out);
        };
        let mut any = false;
        let has = |key: &str| data.text(key).is_some_and(|text| !text.is_empty());
        let reasoning = data.get("reasoningText").and_then(Text::of);
        match reasoning.filter(|text| !text.is_empty()) {
            Some(text) if self.is_new_reasoning(&text) => {
                put(self, Entry::new(What::Reasoning(text)), out);
                any = true;
            }
            None if has("reasoningOpaque") || has("encryptedContent") => {
                let entry = Entry {
                    opaque: true,
                    ..Entry::new(What::Reasoning(Text::EMPTY))
                };
                put(self, entry, out);
                any = true;
            }
            _ => {}
        }
        let content = data.get("content").and_then(Text::of);
        if let Some(text) = content.filter(|text| !text.is_empty()) {
            put(self, Entry::new(What::Assistant(text)), out);
            any = true;
        }
        let mut repeated = false;
        for request in data.get("toolRequests").into_iter().flat_map(Node::items) {
            out.check("toolRequest", request, REQUEST_FIELDS);
            let id = request.text("toolCallId").unwrap_or_default();
            let arguments = request.get("arguments");
            let mut asked = Asked::new(request.text("name").as_deref(), arguments);
            asked.replied = true;
            let same_id = self.open.entry(hash(id.as_bytes())).or_default();
            if let Some(known) = same_id.iter_mut().find(|known| known.is(&asked))
                && !id.is_empty()
            {
                known.replied = true;
                repeated = true;
                continue;
            }
            same_id.push_back(asked);
            let mut entry = call(id, request.text("name"), arguments, out);
            entry
                .extra
                .rest("toolRequest", request, &["toolCallId", "name", "arguments"]);
            put(self, entry, out);
            any = true;
        }
        if any {
            return;
        }
        if output.is_some() {
            put(self, Entry::keep(NoteKind::ModelCall, record), out);
        } else if repeated {
            out.skip(Dropped::RepeatedChannel);
        } else {
            out.skip(Dropped::Empty);
        }
    }

    fn is_new_reasoning(&mut self, text: &Text<'_>) -> bool {
        let known = hash(text.read().as_bytes());
        if let Some(at) = self.reasoned.iter().position(|recent| *recent == known) {
            self.reasoned.remove(at);
            return false;
        }
        if self.reasoned.len() == RECENT {
            self.reasoned.pop_front();
        }
        self.reasoned.push_back(known);
        true
    }

    fn reasoning<'a>(&mut self, data: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        let text = data
            .get("content")
            .and_then(Text::of)
            .unwrap_or(Text::EMPTY);
        if !text.is_empty() && !self.is_new_reasoning(&text) {
            return out.skip(Dropped::RepeatedChannel);
        }
        common.keep("", data, &["content", "parentToolCallId"]);
        let entry = Entry {
            opaque: text.is_empty(),
            model: self.current_model(),
            ..Entry::new(What::Reasoning(text))
        };
        common.put(entry, out);
    }

    /// The tokens of one call, which only standard output has.
    fn used<'a>(&mut self, record: Node<'a>, data: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        let entry = Entry {
            usage: usage(data),
            model: data.text("model").or_else(|| self.current_model()),
            model_call: data.text("apiCallId"),
            duration_ms: data.get("duration").and_then(|n| n.as_u64()),
            ..Entry::keep(NoteKind::Usage, record)
        };
        self.spend(entry, common, out);
    }

    /// A call is run. Calls that no reply of the model has are known from this alone.
    fn call_start<'a>(
        &mut self,
        record: Node<'a>,
        data: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        let id = data.text("toolCallId").unwrap_or_default();
        let key = hash(id.as_bytes());
        if let Some(at) = common.common.at {
            self.started.insert(key, at.as_millisecond());
        }
        if let Some(agent) = common.common.subagent.as_deref().filter(|_| !id.is_empty()) {
            self.callers.insert(key, agent.to_owned());
        }
        let arguments = data.get("arguments");
        let name = data.text("toolName");
        let mut asked = Asked::new(name.as_deref(), arguments);
        asked.ran = true;
        let same_id = self.open.entry(key).or_default();
        // The call of a reply that is run now. What it is given may have been put in order since, but not its name.
        let is_named = |known: &Asked| known.name == asked.name && !known.ran;
        let known = same_id.iter().position(|known| known.is(&asked));
        let known = known.or_else(|| same_id.iter().position(is_named));
        let known = known.and_then(|at| same_id.get_mut(at));
        let Some(known) = known.filter(|_| !id.is_empty()) else {
            same_id.push_back(asked);
            common.keep(
                "",
                data,
                &[
                    "toolCallId",
                    "toolName",
                    "arguments",
                    "model",
                    "parentToolCallId",
                ],
            );
            let entry = call(id, name, arguments, out);
            let entry = Entry {
                model: data.text("model").or_else(|| self.current_model()),
                ..entry
            };
            return common.put(entry, out);
        };
        known.ran = true;
        let complete = known.arguments.is_some() && known.is(&asked);
        // What the reply did not say: the arguments, or which server has the tool.
        if (!complete && arguments.is_some()) || data.get("mcpServerName").is_some() {
            return common.put(Entry::keep(NoteKind::Progress, record), out);
        }
        out.skip(Dropped::RepeatedChannel);
    }

    fn call_end<'a>(&mut self, data: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        out.check("tool.execution_complete", data, COMPLETE_FIELDS);
        common.keep("", data, COMPLETE_MAPPED);
        let id = data.text("toolCallId").unwrap_or_default();
        let key = hash(id.as_bytes());
        if let Some(same_id) = self.open.get_mut(&key) {
            same_id.pop_front();
            if same_id.is_empty() {
                self.open.remove(&key);
            }
        }
        let started = self.started.remove(&key);
        let duration = started.zip(common.common.at).and_then(|(from, to)| {
            let millis = to.as_millisecond().checked_sub(from)?;
            u64::try_from(millis).ok()
        });
        let entry = Entry {
            duration_ms: duration,
            ..result(id, data, out)
        };
        let caller = self.callers.remove(&key).map(Cow::Owned);
        let mut of_caller = common.common.clone();
        of_caller.subagent = of_caller.subagent.or(caller);
        let common = Kept {
            common: of_caller,
            record: common.record,
            extra: RefCell::new(common.extra.take()),
        };
        common.put(entry, out);
    }

    /// Events that are no longer part of the conversation: the one that is named, and all after it.
    fn rewind<'a>(
        &mut self,
        record: Node<'a>,
        data: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        let to = data.text("upToEventId").unwrap_or_default();
        let key = hash(to.as_bytes());
        let at = self.marks.iter().rposition(|(mark, _)| *mark == key);
        let voids = at.and_then(|at| {
            let (_, from) = self.marks.get(at).copied()?;
            self.marks.truncate(at);
            (from < out.next_seq()).then(|| from..out.next_seq())
        });
        let entry = Entry {
            voids,
            ..Entry::keep(NoteKind::Rewind, record)
        };
        common.put(entry, out);
    }

    /// The end of the session, with the sums of all its tokens since it first began. What the replies did
    /// not say of them is said here, for each model.
    fn shutdown<'a>(
        &mut self,
        record: Node<'a>,
        data: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        out.check("session.shutdown", data, SHUTDOWN_FIELDS);
        let models: Vec<(Cow<'a, str>, Usage, Option<u64>)> = data
            .get("modelMetrics")
            .into_iter()
            .flat_map(Node::fields)
            .filter_map(|(name, metrics)| {
                let requests = metrics.path(&["requests", "count"]);
                let requests = requests.and_then(|count| count.as_u64());
                Some((
                    name.to_text_lossy(),
                    usage(metrics.get("usage")?)?,
                    requests,
                ))
            })
            .collect();
        let mut total = Usage::default();
        for (_, usage, _) in &models {
            total.add(usage);
        }
        if !models.is_empty() {
            let mut sum: Usage = self.session.vendor_usage.unwrap_or_default().into();
            sum.raise(&total);
            self.session.vendor_usage = Some(sum.into());
        }
        // No more than what is missing in all, in case a reply was put down to the wrong model.
        let mut missing = total.beyond(&out.ledger().counted());
        let asked = models.iter().filter_map(|(_, _, requests)| *requests);
        let asked = asked.fold(0, u64::saturating_add);
        let answered = self.counted.values().map(|(_, calls)| *calls);
        let mut unseen = asked.saturating_sub(answered.fold(0, u64::saturating_add));
        let mut notes = Vec::new();
        for (model, usage, requests) in models {
            let (counted, calls) = self.counted.get(&*model).copied().unwrap_or_default();
            let more = least(&usage.beyond(&counted.into()), &missing);
            missing = missing.beyond(&more);
            if more.total() > 0 || more.reasoning.unwrap_or(0) > 0 {
                // The tokens are of calls whose replies were counted, but for those that no reply told of. Where
                // the log does not count them, there was one if none was seen.
                let calls = match requests {
                    Some(requests) => requests.saturating_sub(calls).min(unseen),
                    None => 1_u64.saturating_sub(calls),
                };
                unseen = unseen.saturating_sub(calls);
                notes.push((model, more, calls));
            }
        }
        let only = notes.len() == 1;
        let mut end = Entry::keep(NoteKind::Session, record);
        if only && let Some((model, more, calls)) = notes.pop() {
            end.usage = Some(more);
            end.model = Some(model);
            end.calls = Some(calls);
        }
        self.spend(end, common, out);
        for (model, more, calls) in notes {
            let entry = Entry {
                usage: Some(more),
                calls: Some(calls),
                model: Some(model.clone()),
                ..Entry::note(NoteKind::Usage, model)
            };
            self.spend(entry, common, out);
        }
    }

    /// The end of standard output.
    fn result<'a>(&mut self, record: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
        const FIELDS: &[&str] = &["type", "timestamp", "sessionId", "exitCode", "usage"];
        out.check("result", record, FIELDS);
        learn(&mut self.session.id, || record.text("sessionId"));
        let duration = record.path(&["usage", "sessionDurationMs"]);
        let entry = Entry {
            duration_ms: duration.and_then(|n| n.as_u64()),
            ..Entry::keep(NoteKind::Session, record)
        };
        common.put(entry, out);
    }

    fn other<'a>(
        &mut self,
        kind: &str,
        record: Node<'a>,
        data: Node<'a>,
        common: &Kept<'a>,
        out: &mut Out<'_>,
    ) {
        let note = match plain(kind) {
            Some(Plain::Delta) => return out.skip(Dropped::StreamDelta),
            Some(Plain::Alive) => return out.skip(Dropped::KeepAlive),
            Some(Plain::Note(note)) => note,
            None => {
                out.unknown_type("", kind);
                NoteKind::UnknownRecord
            }
        };
        let text = match kind {
            "session.model_change" => {
                update(&mut self.model, data.text("newModel"));
                data.get("newModel")
            }
            "session.auto_mode_resolved" => {
                update(&mut self.model, data.text("chosenModel"));
                data.get("chosenModel")
            }
            "session.context_changed" => {
                self.context(data);
                None
            }
            "session.compaction_complete" => data.get("summaryContent"),
            "session.error" | "session.info" | "session.warning" => data.get("message"),
            "model.call_failure" => data.get("errorMessage"),
            "session.task_complete" | "session.handoff" => data.get("summary"),
            "abort" => data.get("reason"),
            "assistant.intent" => data.get("intent"),
            "skill.invoked" => data.get("name"),
            "subagent.failed" => data.get("error"),
            "subagent.started" | "subagent.completed" | "subagent.selected" => {
                data.get("agentName")
            }
            _ => None,
        };
        let mut entry = blocks::kept(note, record, out);
        if let What::Note { text: said, .. } = &mut entry.what {
            *said = text.and_then(Text::of).filter(|text| !text.is_empty());
        }
        entry.duration_ms = data.get("durationMs").and_then(|n| n.as_u64());
        common.put(entry, out);
    }
}

/// The lesser of each bucket.
fn least(one: &Usage, other: &Usage) -> Usage {
    let least = |a: Option<u64>, b: Option<u64>| a.map(|a| a.min(b.unwrap_or(0)));
    Usage {
        input: least(one.input, other.input),
        cache_read: least(one.cache_read, other.cache_read),
        cache_write: least(one.cache_write, other.cache_write),
        cache_write_1h: None,
        output: least(one.output, other.output),
        reasoning: least(one.reasoning, other.reasoning),
    }
}

/// A call. Tools with a grammar of their own take a text.
fn call<'a>(
    id: Cow<'a, str>,
    name: Option<Cow<'a, str>>,
    arguments: Option<Node<'a>>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let mut attachments = Vec::new();
    let input = arguments
        .filter(|arguments| !arguments.is_null())
        .map(|arguments| match Text::of(arguments) {
            Some(text) => capture::arguments(text, out, &mut attachments),
            None => out.value(arguments, &mut attachments),
        });
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: name.unwrap_or_default(),
            id,
            input,
        })
    }
}

/// What came of a call.
fn result<'a>(id: Cow<'a, str>, data: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let failed = data.get("success").and_then(|n| n.as_bool()) == Some(false);
    let error = data.get("error").filter(|error| !error.is_null());
    let gave = data.get("result").filter(|result| !result.is_null());
    let mut attachments = Vec::new();
    let output = gave.map(|result| {
        for key in ["binaryResultsForLlm", "contents"] {
            for item in result.get(key).into_iter().flat_map(Node::items) {
                attachments.extend(binary(item, out));
            }
        }
        let content = result
            .get("content")
            .and_then(Text::of)
            .or(Text::of(result));
        match content {
            Some(text) => Value::Text(text),
            None => out.value(result, &mut attachments),
        }
    });
    let code = error
        .and_then(|error| error.text("code"))
        .unwrap_or_default();
    let why = error.map(|error| {
        let message = error.get("message").and_then(Text::of).or(Text::of(error));
        message.unwrap_or_else(|| Text::from(error.raw().get()))
    });
    let mut extra = Extra::default();
    if let Some(result) = gave.filter(|result| result.kind() == Kind::Object) {
        let said = result.get("content").map(|content| content.raw());
        match out.value(result, &mut Vec::new()) {
            Value::Owned(made) => extra.value("result", made),
            _ if matches!(output, Some(Value::Text(_))) => extra.but("result", result, said),
            _ => {}
        }
    }
    if let Some(error) = error.filter(|error| error.kind() == Kind::Object) {
        extra.rest("error", error, &["message"]);
    }
    let (output, why) = match (output, why) {
        (Some(Value::Text(text)), None) if failed => (None, Some(text)),
        (output, why) => (output, why),
    };
    let why = why.or(failed.then_some(Text::Plain(Cow::Borrowed("failed"))));
    let is = |words: &[&str]| words.iter().any(|word| code.contains(word));
    let status = match &why {
        None => Status::Ok,
        Some(_) if is(&["denied", "reject", "permission", "cancel"]) => Status::Denied,
        Some(_) if is(&["timeout", "timed_out"]) => Status::Timeout,
        Some(_) => Status::Error,
    };
    Entry {
        status: Some(status),
        model: data.text("model"),
        attachments,
        extra,
        ..Entry::new(What::Result {
            name: data.text("toolName").unwrap_or_default(),
            id,
            output,
            error: why,
        })
    }
}

/// Content that stands in a result or beside a prompt as base64.
fn binary(item: Node<'_>, out: &mut Out<'_>) -> Option<Attachment> {
    let data = item.text("data")?;
    let mime = ["mimeType", "mime"].iter().find_map(|key| item.text(key))?;
    out.detach(&mime, &data)
}

fn user<'a>(data: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
    out.check("user.message", data, USER_FIELDS);
    common.keep("", data, &["content", "attachments", "parentToolCallId"]);
    let source = data.text("source").unwrap_or_default();
    let continued = data
        .get("isAutopilotContinuation")
        .and_then(|n| n.as_bool())
        == Some(true);
    let by_person = matches!(&*source, "" | "user" | "human") && !continued;
    let text = data
        .get("content")
        .and_then(Text::of)
        .unwrap_or(Text::EMPTY);
    let entry = if by_person {
        Entry::new(What::User(text))
    } else {
        Entry {
            synthetic: true,
            ..Entry::new(What::System(text))
        }
    };
    common.put(entry, out);
    for item in data.get("attachments").into_iter().flat_map(Node::items) {
        if item.kind() != Kind::Object {
            continue;
        }
        let entry = match binary(item, out) {
            Some(attachment) => Entry {
                attachments: vec![attachment],
                ..Entry::note(
                    NoteKind::Attachment,
                    item.text("displayName").unwrap_or_default(),
                )
            },
            None => blocks::kept(NoteKind::Attachment, item, out),
        };
        common.put(entry, out);
    }
}

impl Reader for Events {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.event(record, out);
    }

    crate::state::keeps_session!();
}
