//! What the items of a conversation mean: messages, reasoning, tools.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node, RawStr, Tape};
use quipu_model::{Attachment, Json, NoteKind, Status, Timestamp};

use super::normalize::{Rollout, note};
use super::results::{self, Ending};
use super::twins::Who;
use super::wire::{self, Item};
use crate::{Dropped, Entry, Out, Text, Value, What, blocks};

impl Rollout {
    /// An item of the conversation.
    pub(super) fn item(
        &mut self,
        record: Node<'_>,
        payload: Node<'_>,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        self.twins.items = true;
        if let Some(said) = mark(item) {
            self.chain(said, out);
        }
        let kind = match item.kind.and_then(|kind| kind.as_raw_str()?.plain()) {
            Some(kind) => kind,
            None if item.role.is_some() => "message",
            None => "",
        };
        match kind {
            "message" => self.message(item, at, out),
            "reasoning" => self.reasoning(item, at, out),
            "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call"
            | "mcp_tool_call" | "tool_call" => self.call(kind, payload, item, at, out),
            "function_call_output"
            | "custom_tool_call_output"
            | "mcp_tool_call_output"
            | "tool_search_output"
            | "tool_result"
            | "function_result" => {
                self.result(item, at, out);
            }
            "web_search_call" => self.web_search(item, at, out),
            "image_generation_call" => self.image(payload, item, at, out),
            "agent_message" => self.agent_message(item, at, out),
            "compaction" | "context_compaction" | "compaction_summary" | "compaction_trigger" => {
                out.push(Entry {
                    at,
                    opaque: item.encrypted.is_some(),
                    ..Entry::keep(NoteKind::Compaction, record)
                });
            }
            "ghost_snapshot" => note(NoteKind::FileSnapshot, record, at, out),
            "token_count" => {
                let total = super::meter::usage(payload);
                self.count(total, None, None, record, at, out);
            }
            "error" => out.push(Entry {
                at,
                ..Entry::new(What::Note {
                    kind: NoteKind::Error,
                    text: item.text.and_then(Text::of),
                    raw: Some(record.into()),
                })
            }),
            _ => {
                out.unknown_type("response_item", kind);
                note(NoteKind::UnknownRecord, record, at, out);
            }
        }
        // Files without an envelope never had the same fields twice.
        if payload.offset() != record.offset()
            && let Some(known) = wire::item_fields(kind)
        {
            out.check(kind, payload, known);
        }
    }

    /// Something of the conversation comes that no event repeats.
    fn settle(&mut self, out: &mut Out<'_>) {
        let mut held = Vec::new();
        self.twins.other(|waited| held.push(waited));
        if !held.is_empty() {
            self.stand(held, out);
        }
    }

    fn message(&mut self, item: &Item<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
        let role = item.role.and_then(|role| role.as_raw_str()?.plain());
        let content = item.content.or(item.text);
        match role {
            Some("assistant") => self.assistant(item, content, at, out),
            Some("user") => self.user(item, content, at, out),
            // Instructions to the model, by whatever name.
            _ => {
                for block in texts(content) {
                    let entry = match block {
                        Part::Text(_, text) => Entry {
                            synthetic: true,
                            ..Entry::new(What::System(text))
                        },
                        Part::Other(block) => other_block(block, out),
                    };
                    put(entry, item, at, out);
                }
            }
        }
        // A message without content becomes nothing, and so does one that an event stands for.
        out.skip(Dropped::Empty);
    }

    fn assistant(
        &mut self,
        item: &Item<'_>,
        content: Option<Node<'_>>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let mut repeated = false;
        for part in texts(content) {
            let entry = match part {
                Part::Text(raw, text) => {
                    let mut held = Vec::new();
                    let new = self
                        .twins
                        .item(Who::Assistant, raw.raw().get(), |waited| held.push(waited));
                    self.stand(held, out);
                    if !new {
                        repeated = true;
                        continue;
                    }
                    Entry {
                        model: self.model.as_deref().map(Cow::Borrowed),
                        ..Entry::new(What::Assistant(text))
                    }
                }
                Part::Other(block) => other_block(block, out),
            };
            put(entry, item, at, out);
        }
        if repeated {
            out.skip(Dropped::RepeatedChannel);
        }
    }

    fn user(
        &mut self,
        item: &Item<'_>,
        content: Option<Node<'_>>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        // The event of a prompt has all its texts as one.
        let mut whole: Option<Cow<'_, str>> = None;
        for part in texts(content) {
            if let Part::Text(raw, text) = part
                && !is_image_mark(&text)
                && !is_injected(&text)
            {
                let raw = raw.raw().get();
                whole = Some(match whole {
                    None => Cow::Borrowed(raw),
                    Some(before) => Cow::Owned(joined(&before, raw)),
                });
            }
        }
        if let Some(whole) = &whole {
            let mut held = Vec::new();
            let new = self
                .twins
                .item(Who::User, whole, |waited| held.push(waited));
            self.stand(held, out);
            if !new {
                return out.skip(Dropped::RepeatedChannel);
            }
        }
        let mut first = true;
        for part in texts(content) {
            let entry = match part {
                Part::Text(_, text) if is_image_mark(&text) => continue,
                Part::Text(_, text) if is_injected(&text) => Entry {
                    synthetic: true,
                    ..Entry::new(What::System(text))
                },
                Part::Text(_, text) => {
                    if std::mem::take(&mut first) {
                        self.prompts.push(out.next_seq());
                    }
                    Entry::new(What::User(text))
                }
                Part::Other(block) => other_block(block, out),
            };
            put(entry, item, at, out);
        }
    }

    fn reasoning(&mut self, item: &Item<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
        let parts = || texts(item.summary).filter_map(Part::text);
        let inner = || texts(item.content).filter_map(Part::text);
        let mut held = Vec::new();
        let raws = parts().chain(inner()).map(|(raw, _)| raw.raw().get());
        let new = self
            .twins
            .parts(Who::Reasoning, raws, |waited| held.push(waited));
        if !held.is_empty() {
            self.stand(held, out);
        }
        if !new {
            return out.skip(Dropped::RepeatedChannel);
        }
        let text = join(parts())
            .or_else(|| join(inner()))
            .unwrap_or(Text::EMPTY);
        let opaque = item.encrypted.is_some() || text.is_empty();
        let entry = Entry {
            opaque,
            model: self.model.as_deref().map(Cow::Borrowed),
            ..Entry::new(What::Reasoning(text))
        };
        put(entry, item, at, out);
    }

    fn call(
        &mut self,
        kind: &str,
        payload: Node<'_>,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        self.settle(out);
        let text = |node: Option<Node<'_>>| node.and_then(|n| n.as_str().map(Cow::into_owned));
        let name = match kind {
            "local_shell_call" => Cow::Borrowed("local_shell"),
            "tool_search_call" => Cow::Borrowed("tool_search"),
            _ => {
                let function = payload.get("function");
                let name = item
                    .name
                    .or_else(|| function.and_then(|f| f.get("name")))
                    .or(function)
                    .and_then(|name| name.as_str())
                    .unwrap_or_default();
                match item.namespace.and_then(|space| space.as_str()) {
                    Some(space) if !space.is_empty() => {
                        // Those of servers are made to be written without anything between.
                        let dot = if name.starts_with('_') { "" } else { "." };
                        Cow::Owned(format!("{space}{dot}{name}"))
                    }
                    _ => name,
                }
            }
        };
        let id = item.call.or(item.id).and_then(|id| id.as_str());
        let id = id.unwrap_or_else(|| {
            self.unnamed += 1;
            Cow::Owned(format!("call-{}", self.unnamed))
        });
        let mut attachments = Vec::new();
        let input = match (item.input, text(item.summary)) {
            (Some(input), _) if kind == "custom_tool_call" => {
                Some(plain(input, &mut attachments, out))
            }
            (Some(input), _) => Some(arguments(input, &mut attachments, out)),
            // Some only say what the call is for.
            (None, Some(summary)) => Some(Value::Text(Text::from(summary))),
            (None, None) => None,
        };
        let entry = Entry {
            attachments,
            model: self.model.as_deref().map(Cow::Borrowed),
            ..Entry::new(What::Call { name, id, input })
        };
        put(entry, item, at, out);
    }

    fn result(&mut self, item: &Item<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
        self.settle(out);
        let id = match item.call.and_then(|call| call.as_str()) {
            Some(id) => id,
            None => Cow::Owned(format!("call-{}", self.unnamed)),
        };
        let call = crate::hash(id.as_bytes());
        let known = self.endings.iter().position(|(c, _)| *c == call);
        let mut ending = Ending::default();
        let mut attachments = Vec::new();
        let (mut output, mut error) = (None, None);
        match item.output.filter(|output| !output.is_null()) {
            Some(node) if node.kind() == Kind::Object => {
                // `{"content":…,"success":false}`
                match node.get("success").and_then(|n| n.as_bool()) {
                    Some(true) => ending.ended(Status::Ok),
                    Some(false) => ending.ended(Status::Error),
                    None => {}
                }
                let content = node.get("content").unwrap_or(node);
                error = Text::of(content);
                output = Some(out.value(content, &mut attachments));
            }
            Some(node) => {
                let first = first_text(node);
                if let Some(first) = first
                    && let Some(text) = Text::of(first)
                {
                    ending = results::of_text(&text, first.raw().get());
                    error = Some(text);
                }
                output = Some(match only_text(node) {
                    Some(text) => Value::Text(text),
                    None => out.value(node, &mut attachments),
                });
            }
            None => {}
        }
        if let Some(known) = known.and_then(|index| self.endings.remove(index)) {
            let mut known = known.1;
            known.merge(ending);
            ending = known;
        }
        let failed = !matches!(ending.status(), None | Some(Status::Ok));
        if !failed {
            error = None;
        } else if matches!(output, Some(Value::Text(_))) {
            // The text says why, and says nothing else.
            output = None;
        }
        if failed && error.is_none() {
            error = Some(Text::from("failed"));
        }
        let name = item.name.and_then(|name| name.as_str()).unwrap_or_default();
        let entry = Entry {
            status: ending.status(),
            duration_ms: ending.duration_ms,
            child: ending.child.map(Cow::Owned),
            attachments,
            ..Entry::new(What::Result {
                name,
                id,
                output,
                error,
            })
        };
        put(entry, item, at, out);
    }

    /// A search that the provider makes. What was found is not told here.
    fn web_search(&mut self, item: &Item<'_>, at: Option<Timestamp>, out: &mut Out<'_>) {
        self.settle(out);
        let id = item
            .id
            .and_then(|id| id.as_str().map(Cow::into_owned))
            .or_else(|| self.search.take())
            .unwrap_or_default();
        self.performed(
            "web_search",
            &id,
            item.input.map(Into::into),
            None,
            item,
            at,
            out,
        );
    }

    /// An image that the provider makes, which stands in the log itself.
    pub(super) fn image(
        &mut self,
        payload: Node<'_>,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        self.settle(out);
        let id = item
            .id
            .or(item.call)
            .and_then(|id| id.as_str())
            .unwrap_or_default();
        // It is told as an item and as an event.
        let told = Some(crate::hash(id.as_bytes())).filter(|_| !id.is_empty());
        if told.is_some() && std::mem::replace(&mut self.image, told) == told {
            return out.skip(Dropped::RepeatedChannel);
        }
        let image = item
            .output
            .and_then(|image| image.as_str())
            .filter(|image| !image.is_empty())
            .and_then(|image| match crate::data_url(&image) {
                Some((mime, data)) => out.detach(mime, data),
                None => out.detach("image/png", &image),
            });
        let prompt = payload
            .get("revised_prompt")
            .filter(|prompt| !prompt.is_null());
        let input = prompt.map(Into::into);
        self.performed("image_generation", &id, input, image, item, at, out);
    }

    /// A call that the provider makes itself, and its end.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is known of a call and its end at once"
    )]
    fn performed(
        &mut self,
        name: &'static str,
        id: &str,
        input: Option<Value<'_>>,
        made: Option<Attachment>,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let entry = Entry {
            model: self.model.as_deref().map(Cow::Borrowed),
            ..Entry::new(What::Call {
                name: Cow::Borrowed(name),
                id: Cow::Borrowed(id),
                input,
            })
        };
        put(entry, item, at, out);
        if id.is_empty() {
            return;
        }
        let entry = Entry {
            status: Some(Status::Ok),
            attachments: made.into_iter().collect(),
            ..Entry::new(What::Result {
                name: Cow::Borrowed(name),
                id: Cow::Borrowed(id),
                output: None,
                error: None,
            })
        };
        put(entry, item, at, out);
    }

    /// What one agent says to another. Often it cannot be read.
    pub(super) fn agent_message(
        &mut self,
        item: &Item<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        self.settle(out);
        let encrypted = item.encrypted.is_some()
            || item.content.is_some_and(|content| {
                content
                    .items()
                    .any(|block| block.get("type").is_some_and(|t| t.is("encrypted_content")))
            });
        for block in item.content.into_iter().flat_map(Node::items) {
            out.leave_out("agent_message.content", block, &["encrypted_content"]);
        }
        let text = join(texts(item.content.or(item.text)).filter_map(Part::text));
        let entry = Entry {
            synthetic: true,
            opaque: encrypted,
            ..Entry::new(What::System(text.unwrap_or(Text::EMPTY)))
        };
        put(entry, item, at, out);
    }

    /// An item as it was shown when it was complete.
    pub(super) fn turn_item(
        &mut self,
        record: Node<'_>,
        payload: Node<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let Some(shown) = payload.get("item") else {
            return;
        };
        let kind = shown.text("type").unwrap_or_default();
        let (about, text) = match &*kind {
            "UserMessage" | "userMessage" | "AgentMessage" | "agentMessage" => {
                let agent = kind.starts_with(['A', 'a']);
                return self.shown_message(agent, shown, at, out);
            }
            "Reasoning" | "reasoning" => {
                let both = ["summary_text", "raw_content"];
                for key in both {
                    for (raw, text) in texts(shown.get(key)).filter_map(Part::text) {
                        self.shown(Who::Reasoning, raw.raw().get(), text, at, out);
                    }
                }
                return out.skip(Dropped::RepeatedChannel);
            }
            "ContextCompaction" | "contextCompaction" => {
                if std::mem::take(&mut self.compacted) {
                    return out.skip(Dropped::RepeatedChannel);
                }
                (NoteKind::Compaction, None)
            }
            "Plan" => (NoteKind::Todo, shown.get("text")),
            "FileChange" => (NoteKind::FileSnapshot, None),
            "SubAgentActivity" | "CollabAgentToolCall" | "CollabToolCall" => {
                (NoteKind::Subagent, None)
            }
            "EnteredReviewMode" | "ExitedReviewMode" => (NoteKind::Mode, None),
            "HookPrompt" => (NoteKind::Hook, None),
            "ImageView" => (NoteKind::Attachment, None),
            "ImageGeneration" => {
                let item = Item::of(shown);
                return self.image(shown, &item, at, out);
            }
            "CommandExecution" | "McpToolCall" | "DynamicToolCall" | "WebSearch" | "Extension"
            | "Sleep" | "Elicitation" => (NoteKind::Progress, None),
            other => {
                out.unknown_type("item_completed", other);
                (NoteKind::UnknownRecord, None)
            }
        };
        let ending = results::of_event(shown);
        let entry = Entry {
            at,
            native_id: shown.text("id"),
            status: ending.status(),
            duration_ms: ending.duration_ms,
            child: ending.child.clone().map(Cow::Owned),
            ..Entry::new(What::Note {
                kind: about,
                text: text.and_then(Text::of),
                raw: Some(record.into()),
            })
        };
        out.push(entry);
        if let Some(id) = shown.text("id") {
            self.ends(&id, ending);
        }
    }

    fn shown_message(
        &mut self,
        agent: bool,
        shown: Node<'_>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) {
        let parts = || texts(shown.get("content")).filter_map(Part::text);
        if agent {
            for (raw, text) in parts() {
                self.shown(Who::Assistant, raw.raw().get(), text, at, out);
            }
        } else if let Some((first, text)) = parts().next() {
            // An item compares as one text, whatever it consists of.
            let raw = parts()
                .skip(1)
                .fold(Cow::Borrowed(first.raw().get()), |before, (raw, _)| {
                    Cow::Owned(joined(&before, raw.raw().get()))
                });
            let text = match &raw {
                Cow::Borrowed(_) => text,
                Cow::Owned(raw) => {
                    Text::from(serde_json::from_str::<String>(raw).unwrap_or_default())
                }
            };
            self.shown(Who::User, &raw, text, at, out);
        }
        out.skip(Dropped::RepeatedChannel);
    }
}

/// What an item is known by in every copy of it.
fn mark(item: &Item<'_>) -> Option<u64> {
    fn block(list: Option<Node<'_>>) -> Option<Node<'_>> {
        list?.items().next()?.get("text")
    }
    let said = item
        .call
        .or(item.encrypted)
        .or_else(|| block(item.content))
        .or_else(|| block(item.summary))
        .or(item.content)?;
    Some(crate::hash(said.raw().get().as_bytes()))
}

/// One part of a message.
enum Part<'a> {
    Text(RawStr<'a>, Text<'a>),
    Other(Node<'a>),
}

impl<'a> Part<'a> {
    fn text(self) -> Option<(RawStr<'a>, Text<'a>)> {
        match self {
            Self::Text(raw, text) => Some((raw, text)),
            Self::Other(_) => None,
        }
    }
}

/// The parts of a message, which may also be one text.
fn texts(content: Option<Node<'_>>) -> impl Iterator<Item = Part<'_>> {
    let single = content.and_then(|content| content.as_raw_str());
    let single = single.map(|raw| Part::Text(raw, Text::Raw(raw)));
    let parts = content.into_iter().flat_map(Node::items).map(|block| {
        let text = match block.kind() {
            Kind::String => Some(block),
            _ => block.get("text").or_else(|| block.get("refusal")),
        };
        match text.and_then(|text| text.as_raw_str()) {
            Some(raw) => Part::Text(raw, Text::Raw(raw)),
            None => Part::Other(block),
        }
    });
    single.into_iter().chain(parts)
}

/// A part of a message that is no text.
fn other_block<'a>(block: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let kind = block
        .get("type")
        .and_then(|kind| kind.as_raw_str()?.plain());
    match kind {
        Some("input_image" | "image" | "local_image" | "input_audio" | "input_file") => {
            blocks::attachment(block, out)
        }
        Some("encrypted_content") => Entry {
            opaque: true,
            synthetic: true,
            ..Entry::new(What::System(Text::EMPTY))
        },
        _ => {
            out.unknown_type("content", kind.unwrap_or_default());
            Entry::keep(NoteKind::UnknownRecord, block)
        }
    }
}

/// Gives an entry what its item knows.
fn put<'a>(mut entry: Entry<'a>, item: &Item<'a>, at: Option<Timestamp>, out: &mut Out<'_>) {
    entry.at = at;
    entry.native_id = item.id.and_then(|id| id.as_str());
    if let Some(whole) = item.whole
        && !item.is_kept.replace(true)
    {
        entry.extra.rest("", whole, wire::MAPPED);
        if let Some(line) = item.line {
            let mapped = &["type", "timestamp", "payload", "ordinal"];
            entry.extra.rest("line", line, mapped);
        }
    }
    out.push(entry);
}

/// Several texts as one. `None` when there are none.
fn join<'a>(mut parts: impl Iterator<Item = (RawStr<'a>, Text<'a>)>) -> Option<Text<'a>> {
    let (_, first) = parts.next()?;
    let Some((_, second)) = parts.next() else {
        return Some(first);
    };
    let mut joined = first.read().into_owned();
    for text in std::iter::once(second).chain(parts.map(|(_, text)| text)) {
        joined.push_str("\n\n");
        joined.push_str(&text.read());
    }
    Some(Text::from(joined))
}

/// Two JSON strings as one.
fn joined(one: &str, other: &str) -> String {
    let inner = one.strip_suffix('"').unwrap_or(one);
    let rest = other.strip_prefix('"').unwrap_or(other);
    format!("{inner}{rest}")
}

/// The first text of what a tool gave back.
fn first_text(output: Node<'_>) -> Option<Node<'_>> {
    match output.kind() {
        Kind::String => Some(output),
        _ => output.items().next()?.get("text"),
    }
}

/// What a tool gave back, when it is only a text.
fn only_text(output: Node<'_>) -> Option<Text<'_>> {
    if output.kind() == Kind::String {
        return Text::of(output);
    }
    let mut items = output.items();
    match (items.next(), items.next()) {
        (Some(one), None) => one.get("text").and_then(Text::of),
        _ => None,
    }
}

/// A free text that a tool is called with.
fn plain<'a>(input: Node<'a>, attachments: &mut Vec<Attachment>, out: &mut Out<'_>) -> Value<'a> {
    match Text::of(input) {
        Some(text) => Value::Text(text),
        None => out.value(input, attachments),
    }
}

/// What a tool is called with, which is JSON in a string.
fn arguments<'a>(
    input: Node<'a>,
    attachments: &mut Vec<Attachment>,
    out: &mut Out<'_>,
) -> Value<'a> {
    let Some(raw) = input.as_raw_str() else {
        return out.value(input, attachments);
    };
    let inner = raw.raw().get();
    if !inner.starts_with("\"{") && !inner.starts_with("\"[") {
        return Value::Text(Text::Raw(raw));
    }
    let text = raw.to_text_lossy();
    if memchr::memmem::find(text.as_bytes(), b";base64,").is_some() {
        let mut tape = Tape::new();
        if let Ok(node) = tape.read(&text, Json::MAX_DEPTH) {
            return Value::Owned(out.value(node, attachments).to_json());
        }
    }
    match Json::parse(&text) {
        Ok(json) => Value::Owned(json),
        Err(_) => Value::Text(Text::Raw(raw)),
    }
}

/// The marks that stand around an image.
fn is_image_mark(text: &Text<'_>) -> bool {
    ["<image>", "<image name=", "</image>"]
        .iter()
        .any(|mark| text.starts_with(mark))
}

/// Whether a text on the user's side was put there by the program.
pub(super) fn is_injected(text: &Text<'_>) -> bool {
    const MARKS: [&str; 10] = [
        "# AGENTS.md instructions",
        "<permissions instructions>",
        "<app-context>",
        "<skill>",
        "<skill ",
        "<skills>",
        "<INSTRUCTIONS>",
        "<turn_aborted>",
        "<user_instructions>",
        "Warning: The maximum number of unified exec processes",
    ];
    if MARKS.iter().any(|mark| text.starts_with(mark)) {
        return true;
    }
    // Its own tags have names of several words: `<environment_context>`.
    if !text.starts_with("<") {
        return false;
    }
    let head = match text {
        Text::Raw(raw) => raw.raw().get().trim_start_matches('"'),
        Text::Plain(text) => text,
    };
    let Some(tag) = head.strip_prefix('<') else {
        return false;
    };
    let end = tag
        .bytes()
        .position(|b| !b.is_ascii_lowercase() && b != b'_')
        .unwrap_or(tag.len());
    let (name, behind) = tag.split_at(end);
    name.trim_matches('_').contains('_') && behind.starts_with(['>', ' '])
}
