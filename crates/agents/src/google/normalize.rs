//! What a body means, and how a stream becomes one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::args::Pieces;
use super::wire;
use crate::capture::{self, Pair, Requests};
use crate::common::Common;
use crate::extra::leftover;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, Tokens, Value, What, time};

/// How many calls without an id wait for their results at most.
const WAITING: usize = 256;

/// Reads bodies and streams.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Generated {
    session: Session,
    requests: Requests,
    /// The response that is being streamed.
    open: Option<Open>,
    calls: Calls,
}

/// Calls need no id here; their results then follow by name, in order.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Calls {
    made: u64,
    waiting: Vec<(String, String)>,
}

/// A response of which the end has not come.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Open {
    id: Option<String>,
    model: Option<String>,
    at: Option<i64>,
    usage: Option<Tokens>,
    candidates: BTreeMap<u64, Candidate>,
    /// What else is said of its end, as an object.
    end: Option<String>,
    /// Whether any candidate has ended, and how.
    finish: Option<String>,
    /// Fields of the response, of its candidate and of its usage that have no place of their own, as objects.
    rest: BTreeMap<String, String>,
}

/// One of the answers of a response: the part that may still grow.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Candidate {
    text: String,
    thought: bool,
    call: Option<Call>,
    /// Fields of the part that have no place of their own, as an object.
    rest: Option<String>,
}

/// A call whose arguments come in pieces.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Call {
    id: Option<String>,
    name: String,
    pieces: Pieces,
}

impl Generated {
    /// Reads one payload. When nothing comes of it, says why.
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let request = payload.get("request").unwrap_or(payload);
        if request.get("contents").is_some() {
            return self.request(request, out);
        }
        let has = |key: &str| payload.get(key).is_some();
        if has("candidates") || has("usageMetadata") || has("promptFeedback") {
            self.chunk(payload, out);
            return Some(Dropped::StreamDelta);
        }
        if has("error") {
            out.push(capture::error(payload));
        } else {
            out.unknown_type("payload", "");
        }
        None
    }

    fn chunk(&mut self, chunk: Node<'_>, out: &mut Out<'_>) {
        out.check("response", chunk, wire::RESPONSE);
        let id = capture::id(chunk, "responseId");
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.is_over(id.as_deref()))
        {
            self.close(out);
        }
        learn(&mut self.session.id, || id.clone());
        let open = self.open.get_or_insert_default();
        learn(&mut open.id, || id);
        learn(&mut open.model, || chunk.text("modelVersion"));
        open.keep("response", chunk, wire::RESPONSE_MAPPED);
        let at = time::field(chunk, "createTime").map(Timestamp::as_millisecond);
        open.at = open.at.or(at);
        if let Some(node) = chunk.get("usageMetadata") {
            out.check("usage", node, wire::USAGE);
            open.keep("usage", node, wire::USAGE_MAPPED);
            // Each is a sum that takes the place of the one before.
            open.usage = usage(node).map(Into::into).or(open.usage);
        }
        let candidates = chunk.get("candidates").into_iter().flat_map(Node::items);
        for candidate in candidates {
            out.check("candidate", candidate, wire::CANDIDATE);
            open.keep("candidate", candidate, wire::CANDIDATE_MAPPED);
            let index = candidate.get("index").and_then(|n| n.as_u64()).unwrap_or(0);
            let parts = candidate.path(&["content", "parts"]);
            for part in parts.into_iter().flat_map(Node::items) {
                open.part(index, part, &mut self.calls, out);
            }
            let more = capture::pick(&[Some(candidate), Some(chunk)], wire::END);
            open.end = more.map(|json| json.get().to_owned()).or(open.end.take());
            if let Some(finish) = candidate.text("finishReason") {
                open.finish = Some(finish.into_owned());
                open.give(index, &mut self.calls, out);
            }
        }
        if let Some(reason) = chunk.path(&["promptFeedback", "blockReason"]) {
            open.finish = reason.as_str().map(Cow::into_owned);
            open.end = capture::pick(&[Some(chunk)], wire::END).map(|json| json.get().to_owned());
        }
    }

    fn request(&mut self, request: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.requests.settings(request, wire::CONVERSATION, out);
        let system = request
            .get("systemInstruction")
            .or(request.get("system_instruction"));
        if let Some(system) = system
            && self.requests.is_new_system(system)
        {
            let parts = system.get("parts").into_iter().flat_map(Node::items);
            for text in parts.filter_map(|part| part.get("text").and_then(Text::of)) {
                out.push(Entry::new(What::System(text)));
            }
        }
        let contents = request.get("contents")?;
        let new = self.requests.advance(contents);
        for content in contents.items().skip(new) {
            let model = content.get("role").is_some_and(|role| role.is("model"));
            for part in content.get("parts").into_iter().flat_map(Node::items) {
                let entry = self.calls.entry(part, model, out);
                if !entry.what.is_blank() {
                    out.push(entry);
                }
            }
        }
        Some(Dropped::RepeatedChannel)
    }

    /// Nothing more of the response comes: what is there of it is given as it is.
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let indices: Vec<u64> = open.candidates.keys().copied().collect();
        for index in indices {
            open.give(index, &mut self.calls, out);
        }
        let kind = match open.finish.as_deref() {
            Some("STOP") => NoteKind::ModelCall,
            Some("MAX_TOKENS") | None => NoteKind::Truncated,
            Some(_) => NoteKind::Error,
        };
        let why = open.finish.clone();
        let why = why.unwrap_or_else(|| "the stream ends here".to_owned());
        let more = open.end.as_deref().and_then(|end| Json::parse(end).ok());
        let mut entry = Entry {
            usage: open.usage.map(Usage::from),
            stop_reason: open.finish.clone().map(Cow::Owned),
            ..capture::ended(kind, Some(why), more)
        };
        for (name, rest) in [
            ("response", open.rest.get("response")),
            ("candidate", open.rest.get("candidate")),
            ("usage", open.rest.get("usage")),
        ] {
            if let Some(rest) = rest.and_then(|rest| Json::parse(rest).ok()) {
                entry.extra.value(name, rest);
            }
        }
        open.common().put(entry, out);
        self.requests.answered();
    }
}

impl Open {
    fn common(&self) -> Common<'static> {
        let id = self.id.clone().map(Cow::Owned);
        Common {
            call: id.clone(),
            id,
            model: self.model.clone().map(Cow::Owned),
            at: self.at.and_then(|at| Timestamp::from_millisecond(at).ok()),
            ..Common::default()
        }
    }

    /// Keeps the fields of an object that are not mapped. Those of a later chunk take the place of earlier ones.
    fn keep(&mut self, name: &str, object: Node<'_>, mapped: &[&str]) {
        if let Some(rest) = leftover(object, mapped) {
            self.rest.insert(name.to_owned(), rest.get().to_owned());
        }
    }

    /// Whether a chunk belongs to another response.
    fn is_over(&self, id: Option<&str>) -> bool {
        match (self.id.as_deref(), id) {
            (Some(mine), Some(id)) => mine != id,
            _ => self.finish.is_some(),
        }
    }

    /// Takes in a part: it adds to the one before, or that one is whole.
    fn part(&mut self, index: u64, part: Node<'_>, calls: &mut Calls, out: &mut Out<'_>) {
        out.check("part", part, wire::PART);
        if let Some(text) = part.text("text") {
            let thought = is_thought(part);
            let candidate = self.candidates.entry(index).or_default();
            if candidate.call.is_some() || candidate.thought != thought {
                self.give(index, calls, out);
            }
            let candidate = self.candidates.entry(index).or_default();
            candidate.thought = thought;
            if let Some(rest) = leftover(part, &["text", "thought"]) {
                candidate.rest = Some(rest.get().to_owned());
            }
            return candidate.text.push_str(&text);
        }
        if let Some(call) = part.get("functionCall")
            && is_in_pieces(call, self.candidates.get(&index))
        {
            let candidate = self.candidates.entry(index).or_default();
            if candidate.call.is_none() || call.get("name").is_some() {
                self.give(index, calls, out);
            }
            let candidate = self.candidates.entry(index).or_default();
            candidate.add(call);
            if let Some(rest) = leftover(part, &["functionCall"]) {
                candidate.rest = Some(rest.get().to_owned());
            }
            let goes_on = call.get("willContinue").and_then(|n| n.as_bool()) == Some(true);
            if !goes_on {
                self.give(index, calls, out);
            }
            return;
        }
        self.give(index, calls, out);
        let entry = calls.entry(part, true, out);
        self.common().put(entry, out);
    }

    /// Gives what has come of a candidate.
    fn give(&mut self, index: u64, calls: &mut Calls, out: &mut Out<'_>) {
        let Some(candidate) = self.candidates.get_mut(&index) else {
            return;
        };
        let Candidate {
            text,
            thought,
            call,
            rest,
        } = std::mem::take(candidate);
        let common = self.common();
        let mut rest = rest.and_then(|rest| Json::parse(&rest).ok());
        let mut with_rest = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            if let Some(rest) = rest.take() {
                entry.extra.value("part", rest);
            }
            common.put(entry, out);
        };
        if !text.is_empty() {
            let text = Text::from(text);
            let what = if thought {
                What::Reasoning(text)
            } else {
                What::Assistant(text)
            };
            with_rest(Entry::new(what), out);
        }
        if let Some(Call { id, name, pieces }) = call {
            let id = calls.begin(&name, id.map(Cow::Owned));
            let entry = Entry::new(What::Call {
                name: Cow::Owned(name),
                id,
                input: Some(Value::Owned(pieces.whole())),
            });
            with_rest(entry, out);
        }
    }
}

impl Candidate {
    fn add(&mut self, piece: Node<'_>) {
        let call = self.call.get_or_insert_default();
        if let Some(name) = piece.text("name") {
            call.name = name.into_owned();
        }
        learn(&mut call.id, || capture::id(piece, "id"));
        for piece in piece.get("partialArgs").into_iter().flat_map(Node::items) {
            call.pieces.add(piece);
        }
    }
}

/// Whether a call is a piece of one: it will go on, or goes on with one that has begun.
fn is_in_pieces(call: Node<'_>, candidate: Option<&Candidate>) -> bool {
    call.get("willContinue").is_some()
        || call.get("partialArgs").is_some()
        || (call.get("name").is_none() && candidate.is_some_and(|c| c.call.is_some()))
}

fn is_thought(part: Node<'_>) -> bool {
    part.get("thought").and_then(|n| n.as_bool()) == Some(true)
}

impl Calls {
    /// The id of a call that is made, given or not.
    fn begin<'a>(&mut self, name: &str, given: Option<Cow<'a, str>>) -> Cow<'a, str> {
        if let Some(id) = given {
            return id;
        }
        self.made += 1;
        let id = format!("call-{}", self.made);
        if self.waiting.len() == WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push((name.to_owned(), id.clone()));
        Cow::Owned(id)
    }

    /// The id of the call that a result is of.
    fn end<'a>(&mut self, name: &str, given: Option<Cow<'a, str>>) -> Cow<'a, str> {
        if let Some(id) = given {
            return id;
        }
        let at = self.waiting.iter().position(|(waiting, _)| waiting == name);
        let id = at.map(|at| self.waiting.remove(at).1);
        Cow::Owned(id.unwrap_or_default())
    }

    /// A part that is whole.
    fn entry<'a>(&mut self, part: Node<'a>, model: bool, out: &mut Out<'_>) -> Entry<'a> {
        let mut attachments = Vec::new();
        let what = if let Some(text) = part.get("text").and_then(Text::of) {
            match (model, is_thought(part)) {
                (_, true) => What::Reasoning(text),
                (true, false) => What::Assistant(text),
                (false, false) => What::User(text),
            }
        } else if let Some(call) = part.get("functionCall").or(part.get("toolCall")) {
            let name = call
                .text("name")
                .or(call.text("toolType"))
                .unwrap_or_default();
            let args = call.get("args").filter(|args| !args.is_null());
            What::Call {
                id: self.begin(&name, capture::id(call, "id")),
                name,
                input: Some(match args {
                    Some(args) => out.value(args, &mut attachments),
                    None => Value::Owned(capture::empty()),
                }),
            }
        } else if let Some(result) = part.get("functionResponse").or(part.get("toolResponse")) {
            let name = result
                .text("name")
                .or(result.text("toolType"))
                .unwrap_or_default();
            let response = result.get("response").filter(|node| !node.is_null());
            let failed = response.and_then(|response| response.get("error"));
            What::Result {
                id: self.end(&name, capture::id(result, "id")),
                name,
                output: response.map(|response| out.value(response, &mut attachments)),
                error: failed.map(|e| Text::of(e).unwrap_or(Text::from(e.raw().get()))),
            }
        } else if let Some(code) = part.get("executableCode") {
            What::Call {
                name: Cow::Borrowed("code_execution"),
                id: self.begin("code_execution", capture::id(code, "id")),
                input: Some(code.into()),
            }
        } else if let Some(result) = part.get("codeExecutionResult") {
            return self.executed(result);
        } else if let Some(data) = part.get("inlineData") {
            return crate::blocks::attachment(data, out);
        } else if part.get("fileData").is_some() {
            return Entry::keep(NoteKind::Attachment, part);
        } else if part.get("thoughtSignature").is_some() {
            let mut entry = Entry {
                opaque: true,
                ..Entry::new(What::Reasoning(Text::EMPTY))
            };
            entry.extra.rest("part", part, &["thought"]);
            return entry;
        } else {
            let kind = part.fields().next().map(|(key, _)| key.to_text_lossy());
            out.unknown_type("part", &kind.unwrap_or_default());
            return Entry::keep(NoteKind::UnknownRecord, part);
        };
        let mut entry = Entry {
            attachments,
            ..Entry::new(what)
        };
        entry.extra.rest("part", part, wire::PART_MAPPED);
        entry
    }

    fn executed<'a>(&mut self, result: Node<'a>) -> Entry<'a> {
        let outcome = result.text("outcome").unwrap_or_default();
        let output = result.get("output").and_then(Text::of);
        let status = match &*outcome {
            "OUTCOME_OK" | "" => Status::Ok,
            "OUTCOME_DEADLINE_EXCEEDED" => Status::Timeout,
            _ => Status::Error,
        };
        let (output, error) = match status {
            Status::Ok => (output, None),
            _ => (None, output.or(Some(Text::from(outcome)))),
        };
        Entry {
            status: Some(status),
            ..Entry::new(What::Result {
                name: Cow::Borrowed("code_execution"),
                id: self.end("code_execution", capture::id(result, "id")),
                output: output.map(Value::Text),
                error,
            })
        }
    }
}

/// Token counts of this kind, in disjoint buckets: the prompt includes what was cached and not what
/// tools brought, and the answer does not include the thoughts.
fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let cached = count("cachedContentTokenCount");
    let tools = count("toolUsePromptTokenCount").unwrap_or(0);
    let thoughts = count("thoughtsTokenCount");
    let output = match (count("candidatesTokenCount"), thoughts) {
        (None, None) => None,
        (said, thought) => Some(said.unwrap_or(0).saturating_add(thought.unwrap_or(0))),
    };
    let usage = Usage {
        input: count("promptTokenCount").map(|prompt| {
            prompt
                .saturating_sub(cached.unwrap_or(0))
                .saturating_add(tools)
        }),
        cache_read: cached,
        cache_write: None,
        cache_write_1h: None,
        output,
        reasoning: thoughts,
    };
    (!usage.is_empty()).then_some(usage)
}

impl capture::Wire for Generated {
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.payload(payload, out)
    }

    fn close(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }

    // A chunk may stand in an envelope of its own; the end of a pair is an end.
    fn ends_with(pair: &Pair<'_>, record: Node<'_>) -> bool {
        pair.request.is_some() || record.get("method").is_some()
    }
}

impl Reader for Generated {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if record.kind() == Kind::Null {
            return;
        }
        out.leave_out("envelope", record, &["method"]);
        capture::records(record, out, |record, out| capture::one(self, record, out));
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }

    crate::state::keeps_session!();
}
