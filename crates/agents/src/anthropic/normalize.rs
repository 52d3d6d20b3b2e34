//! What a body means, and how a stream becomes one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Json, NoteKind, Service, Status, Usage};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::blocks::{self, ResultFacts, Speaker};
use crate::capture::{self, Requests};
use crate::extra::leftover;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, Tokens, What};

/// Reads bodies and streams.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Messages {
    session: Session,
    requests: Requests,
    /// The message that is being streamed.
    open: Option<Open>,
}

/// A message of which the end has not come.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Open {
    id: Option<String>,
    model: Option<String>,
    usage: Tokens,
    #[serde(with = "crate::calls::service")]
    service: Service,
    searches: Option<u64>,
    /// The number of its first event.
    began: u64,
    /// Its blocks that are not whole yet, by their index.
    blocks: BTreeMap<u64, Partial>,
    stop: Option<String>,
    /// What else is said of its end, as an object.
    end: Option<String>,
    /// Fields of the message and of its usage that have no place of their own, as objects.
    rest: [Option<String>; 2],
}

/// A block that is being streamed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Partial {
    /// The block as it began.
    block: String,
    /// What was added to its text, or to its summary.
    text: String,
    /// What was added to its input.
    json: String,
    /// What was added to its signature.
    signature: String,
    /// Sources that were added, as the items of a list.
    citations: String,
}

/// What a message says of all its entries.
#[derive(Clone, Copy, Default)]
struct Common<'a> {
    id: Option<&'a str>,
    model: Option<&'a str>,
    service: Service,
    searches: Option<u64>,
}

impl Common<'_> {
    fn put(&self, mut entry: Entry<'_>, out: &mut Out<'_>) {
        let owned = |text: Option<&str>| text.map(|text| Cow::Owned(text.to_owned()));
        entry.native_id = owned(self.id);
        entry.model_call = owned(self.id);
        entry.model = owned(self.model);
        entry.service = self.service;
        entry.searches = self.searches.filter(|_| entry.usage.is_some());
        out.push(entry);
    }
}

impl Messages {
    /// Reads one payload. When nothing comes of it, says why.
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let kind = payload.text("type").unwrap_or_default();
        match &*kind {
            "message" => {
                self.body(payload, out);
                None
            }
            "error" => {
                out.push(capture::error(payload));
                None
            }
            "ping" => Some(Dropped::KeepAlive),
            _ if kind.starts_with("message_") || kind.starts_with("content_block_") => {
                out.check("event", payload, wire::EVENT);
                self.event(&kind, payload, out)
            }
            _ if payload.get("messages").is_some() => self.request(payload, out),
            _ => {
                out.unknown_type("event", &kind);
                None
            }
        }
    }

    fn event(&mut self, kind: &str, event: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let index = event.get("index").and_then(|n| n.as_u64()).unwrap_or(0);
        match kind {
            "message_start" => return self.start(event.get("message")?, out),
            "content_block_start" => {
                let block = event.get("content_block")?;
                self.open(out).blocks.insert(index, Partial::of(block));
            }
            "content_block_delta" => {
                let known = self.open(out).blocks.entry(index).or_default();
                if !known.add(event.get("delta")?) {
                    let delta = event.path(&["delta", "type"]).and_then(|n| n.as_str());
                    out.unknown_type("delta", &delta.unwrap_or_default());
                    return None;
                }
            }
            "content_block_stop" => {
                let open = self.open(out);
                let Some(partial) = open.blocks.remove(&index) else {
                    return Some(Dropped::Empty);
                };
                return (!open.push(&partial, out)).then_some(Dropped::Empty);
            }
            "message_delta" => {
                let delta = event.get("delta");
                let usage = event.get("usage");
                let open = self.open(out);
                open.count(usage, out);
                if let Some(stop) = delta.and_then(|delta| delta.text("stop_reason")) {
                    open.stop = Some(stop.into_owned());
                }
                let more = capture::pick(&[delta, Some(event), usage], wire::END);
                open.end = more.map(|json| json.get().to_owned()).or(open.end.take());
            }
            "message_stop" => {
                let open = self.open.take()?;
                open.end(out);
                self.requests.answered();
                return None;
            }
            _ => {
                out.unknown_type("event", kind);
                return None;
            }
        }
        Some(Dropped::StreamDelta)
    }

    fn start(&mut self, message: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        out.check("message", message, wire::MESSAGE);
        let id = capture::id(message, "id");
        if let Some(open) = &self.open {
            if id.is_none() || open.id.as_deref() == id.as_deref() {
                return Some(Dropped::DuplicateRecord);
            }
            // Another answer takes the place of the one that had begun.
            let open = self.open.take()?;
            open.discard(out);
        }
        learn(&mut self.session.id, || id.clone());
        let mut open = Open {
            id: id.map(Cow::into_owned),
            model: message.text("model").map(Cow::into_owned),
            began: out.next_seq(),
            rest: [text_of(leftover(message, wire::MESSAGE_MAPPED)), None],
            ..Open::default()
        };
        open.count(message.get("usage"), out);
        let content = message.get("content").into_iter().flat_map(Node::items);
        for (index, block) in (0..).zip(content) {
            open.blocks.insert(index, Partial::of(block));
        }
        self.open = Some(open);
        Some(Dropped::StreamDelta)
    }

    /// The message that is being streamed. A capture may begin in the middle of one.
    fn open(&mut self, out: &Out<'_>) -> &mut Open {
        self.open.get_or_insert_with(|| Open {
            began: out.next_seq(),
            ..Open::default()
        })
    }

    fn body(&mut self, message: Node<'_>, out: &mut Out<'_>) {
        out.check("message", message, wire::MESSAGE);
        let id = capture::id(message, "id");
        let model = message.text("model");
        learn(&mut self.session.id, || id.clone());
        let usage = message.get("usage");
        let common = Common {
            id: id.as_deref(),
            model: model.as_deref(),
            service: usage.map(blocks::service).unwrap_or_default(),
            searches: usage.and_then(blocks::searches),
        };
        for block in message.get("content").into_iter().flat_map(Node::items) {
            push_block(block, Speaker::Assistant, common, out);
        }
        if let Some(usage) = usage {
            out.check("usage", usage, wire::USAGE);
        }
        let stop = message.text("stop_reason");
        let more = capture::pick(&[Some(message), usage], wire::END);
        let rest = [
            leftover(message, wire::MESSAGE_MAPPED),
            usage.and_then(|usage| leftover(usage, wire::USAGE_MAPPED)),
        ];
        let counted = usage.and_then(blocks::usage);
        push_end(stop.as_deref(), more, counted, rest, common, out);
        self.requests.answered();
    }

    fn request(&mut self, request: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.requests.settings(request, wire::CONVERSATION, out);
        if let Some(system) = request.get("system")
            && self.requests.is_new_system(system)
        {
            let texts = system.items().filter_map(|block| block.get("text"));
            for text in Text::of(system)
                .into_iter()
                .chain(texts.filter_map(Text::of))
            {
                out.push(Entry::new(What::System(text)));
            }
        }
        let messages = request.get("messages")?;
        let new = self.requests.advance(messages);
        for message in messages.items().skip(new) {
            let speaker = if message.get("role").is_some_and(|role| role.is("assistant")) {
                Speaker::Assistant
            } else {
                Speaker::User
            };
            let Some(content) = message.get("content") else {
                continue;
            };
            if let Some(text) = Text::of(content) {
                out.push(said(text, speaker));
            }
            for block in content.items() {
                push_block(block, speaker, Common::default(), out);
            }
        }
        Some(Dropped::RepeatedChannel)
    }

    /// Nothing more of the message comes: what is there of it is given as it is.
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let cut = open.stop.is_none() || !open.blocks.is_empty();
        open.flush(out);
        if cut && open.stop.is_none() {
            open.stop = Some("the stream ends here".to_owned());
            open.finish(NoteKind::Truncated, out);
        } else {
            open.end(out);
        }
        self.requests.answered();
    }
}

impl Open {
    fn common(&self) -> Common<'_> {
        Common {
            id: self.id.as_deref(),
            model: self.model.as_deref(),
            service: self.service,
            searches: self.searches,
        }
    }

    /// Takes in a usage. Later ones are sums that take the place of earlier ones.
    fn count(&mut self, usage: Option<Node<'_>>, out: &mut Out<'_>) {
        let Some(node) = usage else {
            return;
        };
        out.check("usage", node, wire::USAGE);
        if let Some(service) = Some(blocks::service(node)).filter(|it| *it != Service::Standard) {
            self.service = service;
        }
        if let Some(rest) = leftover(node, wire::USAGE_MAPPED) {
            self.rest[1] = text_of(Some(rest));
        }
        self.searches = blocks::searches(node).or(self.searches);
        let Some(now) = blocks::usage(node) else {
            return;
        };
        let Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        } = now;
        let Tokens {
            input: old_input,
            cache_read: old_cache_read,
            cache_write: old_cache_write,
            cache_write_1h: old_cache_write_1h,
            output: old_output,
            reasoning: old_reasoning,
        } = self.usage;
        self.usage = Tokens {
            input: input.or(old_input),
            cache_read: cache_read.or(old_cache_read),
            cache_write: cache_write.or(old_cache_write),
            cache_write_1h: cache_write_1h.or(old_cache_write_1h),
            output: output.or(old_output),
            reasoning: reasoning.or(old_reasoning),
        };
    }

    /// Gives a block. The answer is whether there was anything to give.
    fn push(&mut self, partial: &Partial, out: &mut Out<'_>) -> bool {
        let whole = partial.whole();
        let mut tape = Tape::new();
        let Ok(block) = tape.read(&whole, 128) else {
            return false;
        };
        // What follows comes from another model.
        if block.get("type").is_some_and(|kind| kind.is("fallback"))
            && let Some(model) = block.path(&["to", "model"]).and_then(|n| n.as_str())
        {
            self.model = Some(model.into_owned());
        }
        push_block(block, Speaker::Assistant, self.common(), out)
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        for partial in std::mem::take(&mut self.blocks).into_values() {
            self.push(&partial, out);
        }
    }

    fn end(&self, out: &mut Out<'_>) {
        let more = self.end.as_deref().and_then(|end| Json::parse(end).ok());
        let rest = self.rest.each_ref().map(|rest| {
            let rest = rest.as_deref()?;
            Json::parse(rest).ok()
        });
        let (stop, counted) = (self.stop.as_deref(), self.tokens());
        push_end(stop, more, counted, rest, self.common(), out);
    }

    fn finish(&self, kind: NoteKind, out: &mut Out<'_>) {
        let why = self.stop.clone();
        let entry = Entry {
            usage: self.tokens(),
            ..capture::ended(kind, why, None)
        };
        self.common().put(entry, out);
    }

    fn tokens(&self) -> Option<Usage> {
        let usage = Usage::from(self.usage);
        (!usage.is_empty()).then_some(usage)
    }

    /// The message was given up for another. It is kept, and no longer counts.
    fn discard(mut self, out: &mut Out<'_>) {
        self.flush(out);
        let voids = self.began..out.next_seq();
        let entry = Entry {
            voids: (!voids.is_empty()).then_some(voids),
            ..Entry::note(
                NoteKind::Rewind,
                "another message began in the middle of this one",
            )
        };
        self.common().put(entry, out);
    }
}

impl Partial {
    fn of(block: Node<'_>) -> Self {
        Self {
            block: block.raw().get().to_owned(),
            ..Self::default()
        }
    }

    /// Adds a piece. The answer is whether its kind is known.
    fn add(&mut self, delta: Node<'_>) -> bool {
        let kind = delta.text("type").unwrap_or_default();
        let (to, key) = match &*kind {
            "text_delta" => (&mut self.text, "text"),
            "thinking_delta" => (&mut self.text, "thinking"),
            "compaction_delta" => (&mut self.text, "content"),
            "input_json_delta" => (&mut self.json, "partial_json"),
            "signature_delta" => (&mut self.signature, "signature"),
            "citations_delta" => {
                if let Some(citation) = delta.get("citation") {
                    if !self.citations.is_empty() {
                        self.citations.push(',');
                    }
                    self.citations.push_str(citation.raw().get());
                }
                return true;
            }
            _ => return false,
        };
        to.push_str(&delta.text(key).unwrap_or_default());
        true
    }

    /// The block as it stands in the body of a response.
    fn whole(&self) -> String {
        let mut tape = Tape::new();
        let began = if self.block.is_empty() {
            r#"{"type":"text"}"#
        } else {
            &self.block
        };
        let Ok(block) = tape.read(began, 128) else {
            return String::new();
        };
        let kind = block.text("type").unwrap_or_default();
        let key = match &*kind {
            "thinking" => "thinking",
            "compaction" => "content",
            _ => "text",
        };
        let mut with = Vec::new();
        if !self.text.is_empty() {
            let before = block.text(key).unwrap_or_default();
            with.push((key, Json::string(&format!("{before}{}", self.text))));
        }
        if !self.json.is_empty() {
            // A message that was cut off ends in the middle of its input.
            let input = Json::parse(&self.json);
            with.push(("input", input.unwrap_or_else(|_| Json::string(&self.json))));
        }
        if !self.signature.is_empty() {
            with.push(("signature", Json::string(&self.signature)));
        }
        if !self.citations.is_empty()
            && let Ok(citations) = Json::parse(&format!("[{}]", self.citations))
        {
            with.push(("citations", citations));
        }
        capture::replaced(block, &with)
    }
}

/// A text, as an entry. Agents put texts of their own on the user's side.
fn said(text: Text<'_>, speaker: Speaker) -> Entry<'_> {
    match speaker {
        Speaker::Assistant => Entry::new(What::Assistant(text)),
        Speaker::User if text.starts_with("<system-reminder>") => Entry {
            synthetic: true,
            ..Entry::new(What::System(text))
        },
        Speaker::User => Entry::new(What::User(text)),
    }
}

/// Gives a block. The answer is whether there is anything in it.
fn push_block(block: Node<'_>, speaker: Speaker, common: Common<'_>, out: &mut Out<'_>) -> bool {
    out.check("block", block, wire::BLOCK);
    let kind = block.text("type").unwrap_or_default();
    let entry = match &*kind {
        "compaction" => {
            let text = block.get("content").and_then(Text::of);
            let mut entry = Entry {
                opaque: text.is_none(),
                ..capture::ended(NoteKind::Compaction, text, None)
            };
            entry.extra.rest("block", block, &["type", "content"]);
            entry
        }
        "fallback" => Entry::keep(NoteKind::ModelChange, block),
        "container_upload" => Entry::keep(NoteKind::Attachment, block),
        _ => {
            let known = blocks::entry(block, speaker, ResultFacts::default(), out);
            known.unwrap_or_else(|| {
                out.unknown_type("block", &kind);
                Entry::keep(NoteKind::UnknownRecord, block)
            })
        }
    };
    let entry = match entry.what {
        What::User(text) => Entry {
            extra: entry.extra,
            ..said(text, speaker)
        },
        What::Result { .. } => result(block, entry),
        _ => entry,
    };
    if entry.what.is_blank() {
        return false;
    }
    common.put(entry, out);
    true
}

/// What a result of a tool of the vendor says beside what every result says.
fn result<'a>(block: Node<'a>, mut entry: Entry<'a>) -> Entry<'a> {
    let What::Result { name, error, .. } = &mut entry.what else {
        return entry;
    };
    // The kind of the block is not always the name of the tool; its call has that.
    *name = Cow::Borrowed("");
    let content = block.get("content");
    let code = content
        .and_then(|content| content.get("return_code"))
        .and_then(|n| n.as_i64());
    if code.is_some_and(|code| code != 0) && error.is_none() {
        let said = content.and_then(|content| content.get("stderr"));
        *error = Some(said.and_then(Text::of).unwrap_or(Text::EMPTY));
        entry.status = Some(Status::Error);
    }
    entry
}

fn push_end(
    stop: Option<&str>,
    more: Option<Json>,
    usage: Option<Usage>,
    rest: [Option<Json>; 2],
    common: Common<'_>,
    out: &mut Out<'_>,
) {
    let within = more.clone();
    let kind = match stop {
        Some("refusal") => NoteKind::Error,
        Some("max_tokens" | "model_context_window_exceeded") => NoteKind::Truncated,
        _ => NoteKind::ModelCall,
    };
    let mut entry = Entry {
        usage,
        stop_reason: stop.map(Cow::Borrowed),
        ..capture::ended(kind, stop, more)
    };
    for (name, rest) in ["message", "usage"].into_iter().zip(rest) {
        if let Some(rest) = rest {
            entry.extra.value(name, rest);
        }
    }
    common.put(entry, out);
    // Calls to models within the call are calls of their own.
    let mut tape = Tape::new();
    if let Some(within) = &within
        && let Ok(within) = tape.read(within.get(), 128)
    {
        for inner in blocks::inner_calls(within) {
            let entry = blocks::inner_call(inner, common.id, common.model);
            let native_id = common.id.map(|id| Cow::Owned(id.to_owned()));
            out.push(Entry { native_id, ..entry });
        }
    }
}

fn text_of(json: Option<Json>) -> Option<String> {
    json.map(|json| json.get().to_owned())
}

impl capture::Wire for Messages {
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.payload(payload, out)
    }

    fn close(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader for Messages {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if record.kind() == Kind::Null {
            return;
        }
        capture::records(record, out, |record, out| capture::one(self, record, out));
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }

    crate::state::keeps_session!();
}
