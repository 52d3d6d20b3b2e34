//! What a body means, and how a stream becomes one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_model::json::{Node, Tape};
use quipu_model::{Json, NoteKind, Service, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::{message, wire};
use crate::blocks;
use crate::capture::{self, Requests};
use crate::common::Common;
use crate::cost::Cost;
use crate::session::learn;
use crate::{Dropped, Entry, Extra, Out, Reader, Session, Tokens, time};

/// Reads bodies and streams.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Completions {
    session: Session,
    requests: Requests,
    /// The response that is being streamed.
    open: Option<Open>,
    /// How many responses have begun.
    begun: u64,
    cost: Option<Cost>,
}

/// A response of which the end has not come.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Open {
    id: Option<String>,
    /// Which response it is, for where there is no id.
    number: u64,
    model: Option<String>,
    created: Option<i64>,
    usage: Option<Tokens>,
    cost: Option<Cost>,
    #[serde(with = "crate::calls::service")]
    service: Service,
    choices: BTreeMap<u64, Choice>,
}

/// One of the answers of a response, as far as it has come.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Choice {
    content: String,
    reasoning: String,
    refusal: String,
    /// Reasoning that is withheld.
    opaque: bool,
    calls: BTreeMap<u64, Call>,
    /// A call as they were before there could be several.
    function: Option<Call>,
    finish: Option<String>,
}

/// A call in pieces: only the first has the name.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// How a response ends.
#[derive(Clone, Copy)]
enum End<'a> {
    /// As it says itself.
    Said(&'a str),
    /// It is whole, and does not say.
    Whole,
    /// Its stream breaks off.
    Cut,
}

/// What a response says of all its entries, and how it was served.
#[derive(Default)]
struct Response<'a> {
    common: Common<'a>,
    service: Service,
}

impl Response<'_> {
    fn message(&self, message: Node<'_>, out: &mut Out<'_>) {
        out.check("message", message, wire::MESSAGE);
        let known = message::entries(message, out, &mut |entry, out| self.common.put(entry, out));
        if !known {
            let role = message.text("role").unwrap_or_default();
            out.unknown_type("role", &role);
            self.common
                .put(Entry::keep(NoteKind::UnknownRecord, message), out);
        }
    }

    fn end(&self, end: End<'_>, usage: Option<Usage>, extra: Extra<'_>, out: &mut Out<'_>) {
        let kind = match end {
            End::Cut | End::Said("length") => NoteKind::Truncated,
            End::Said("content_filter" | "error") => NoteKind::Error,
            End::Whole | End::Said(_) => NoteKind::ModelCall,
        };
        let (why, finish) = match end {
            End::Said(finish) => (Some(finish), Some(finish)),
            End::Cut => (Some("the stream ends here"), None),
            End::Whole => (None, None),
        };
        let entry = Entry {
            usage,
            service: self.service,
            stop_reason: finish.map(Cow::Borrowed),
            extra,
            ..capture::ended(kind, why, None)
        };
        self.common.put(entry, out);
    }
}

impl Completions {
    /// Reads one payload. When nothing comes of it, says why.
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        if payload.get("messages").is_some() {
            return self.request(payload, out);
        }
        if let Some(choices) = payload.get("choices") {
            out.check("completion", payload, wire::COMPLETION);
            let whole = choices
                .items()
                .any(|choice| choice.get("message").is_some());
            if whole {
                self.body(payload, choices, out);
                return None;
            }
            self.chunk(payload, choices, out);
            return Some(Dropped::StreamDelta);
        }
        if payload.get("error").is_some() {
            out.push(capture::error(payload));
        } else {
            let kind = payload.text("object").or(payload.text("type"));
            out.unknown_type("payload", &kind.unwrap_or_default());
        }
        None
    }

    fn body(&mut self, body: Node<'_>, choices: Node<'_>, out: &mut Out<'_>) {
        let id = capture::id(body, "id");
        let model = body.text("model");
        learn(&mut self.session.id, || id.clone());
        let response = Response {
            common: Common {
                at: time::field(body, "created"),
                ..Common::of_call(id.as_deref(), model.as_deref())
            },
            service: blocks::openai_service(&body.text("service_tier").unwrap_or_default()),
        };
        let mut finish = None;
        let mut extra = Extra::default();
        extra.rest("", body, wire::COMPLETION_MAPPED);
        if let Some(usage) = usage_of(body) {
            extra.rest("usage", usage, wire::USAGE_MAPPED);
        }
        for (index, choice) in choices.items().enumerate() {
            out.check("choice", choice, wire::CHOICE);
            if let Some(message) = choice.get("message") {
                response.message(message, out);
            }
            if index == 0 {
                extra.rest("choice", choice, wire::CHOICE_MAPPED);
            } else {
                out.leave_out("choice", choice, wire::CHOICE_REST);
            }
            finish = finish.or(choice.text("finish_reason"));
        }
        let end = finish.as_deref().map_or(End::Whole, End::Said);
        let (usage, cost) = counts(body, out);
        response.end(end, usage, extra, out);
        self.charge(cost);
        self.requests.answered();
    }

    fn chunk(&mut self, chunk: Node<'_>, choices: Node<'_>, out: &mut Out<'_>) {
        let id = capture::id(chunk, "id");
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.is_over(id.as_deref(), choices))
        {
            self.close(out);
        }
        learn(&mut self.session.id, || id.clone());
        let begun = &mut self.begun;
        let open = self.open.get_or_insert_with(|| {
            *begun += 1;
            Open {
                number: *begun,
                ..Open::default()
            }
        });
        learn(&mut open.id, || id);
        learn(&mut open.model, || chunk.text("model"));
        let created = time::field(chunk, "created").map(Timestamp::as_millisecond);
        open.created = open.created.or(created.filter(|created| *created > 0));
        out.leave_out("chunk", chunk, wire::CHUNK_REST);
        if let Some(usage) = usage_of(chunk) {
            out.leave_out("chunk.usage", usage, wire::USAGE_REST);
        }
        let (usage, cost) = counts(chunk, out);
        // Where every chunk has one, the last counts.
        open.usage = usage.map(Into::into).or(open.usage);
        open.cost = cost.or(open.cost);
        if let Some(tier) = chunk.text("service_tier") {
            open.service = blocks::openai_service(&tier);
        }
        for choice in choices.items() {
            out.check("choice", choice, wire::CHOICE);
            let index = choice.get("index").and_then(|n| n.as_u64()).unwrap_or(0);
            let known = open.choices.entry(index).or_default();
            if let Some(delta) = choice.get("delta") {
                out.check("message", delta, wire::MESSAGE);
                known.add(delta);
                // Sound comes in pieces that each stand for themselves.
                if let Some(data) = delta.path(&["audio", "data"]).and_then(|n| n.as_str())
                    && let Some(attachment) = out.detach("audio", &data)
                {
                    let entry = Entry {
                        attachments: vec![attachment],
                        ..Entry::note(NoteKind::Attachment, "audio")
                    };
                    out.push(entry);
                }
            }
            known
                .content
                .push_str(&choice.text("text").unwrap_or_default());
            if let Some(finish) = choice.text("finish_reason").filter(|f| !f.is_empty()) {
                known.finish = Some(finish.into_owned());
                open.give(index, out);
            }
        }
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            out.push(capture::error(chunk));
        }
    }

    fn request(&mut self, request: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.requests.settings(request, wire::CONVERSATION, out);
        let messages = request.get("messages")?;
        let new = self.requests.advance(messages);
        for message in messages.items().skip(new) {
            Response::default().message(message, out);
        }
        Some(Dropped::RepeatedChannel)
    }

    /// Nothing more of the response comes: what is there of it is given as it is.
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let indices: Vec<u64> = open.choices.keys().copied().collect();
        for index in indices {
            open.give(index, out);
        }
        let finish = open.choices.values().find_map(|c| c.finish.clone());
        let usage = open.usage.map(Usage::from);
        let end = finish.as_deref().map_or(End::Cut, End::Said);
        open.response().end(end, usage, Extra::default(), out);
        self.charge(open.cost);
        self.requests.answered();
    }

    fn charge(&mut self, cost: Option<Cost>) {
        if let Some(cost) = cost {
            let sum = self.cost.get_or_insert_default();
            sum.add(cost);
            self.session.vendor_cost = Some(sum.to_text());
        }
    }
}

fn usage_of(body: Node<'_>) -> Option<Node<'_>> {
    [body.get("usage"), body.path(&["x_groq", "usage"])]
        .into_iter()
        .flatten()
        .find(|usage| !usage.is_null())
}

/// The usage of a response, and its price where the vendor tells.
fn counts(body: Node<'_>, out: &mut Out<'_>) -> (Option<Usage>, Option<Cost>) {
    let Some(usage) = usage_of(body) else {
        return (None, None);
    };
    out.check("usage", usage, wire::USAGE);
    let ticks = usage.get("cost_in_usd_ticks").and_then(capture::ticks);
    let cost = ticks.or_else(|| usage.get("cost").and_then(Cost::of));
    (message::usage(usage), cost)
}

impl Open {
    fn response(&self) -> Response<'_> {
        let created = self.created;
        Response {
            common: Common {
                at: created.and_then(|created| Timestamp::from_millisecond(created).ok()),
                ..Common::of_call(self.id.as_deref(), self.model.as_deref())
            },
            service: self.service,
        }
    }

    /// Whether a chunk belongs to another response. Where there are no ids, one that begins to speak
    /// after an end does.
    fn is_over(&self, id: Option<&str>, choices: Node<'_>) -> bool {
        match (self.id.as_deref(), id) {
            (Some(mine), Some(id)) => mine != id,
            _ => {
                self.choices.values().any(|choice| choice.finish.is_some())
                    && choices
                        .items()
                        .any(|choice| choice.path(&["delta", "role"]).is_some())
            }
        }
    }

    /// Gives what has come of a choice.
    fn give(&mut self, index: u64, out: &mut Out<'_>) {
        let Some(choice) = self.choices.get_mut(&index) else {
            return;
        };
        let finish = choice.finish.clone();
        let choice = std::mem::replace(
            choice,
            Choice {
                finish,
                ..Choice::default()
            },
        );
        let response = self.id.clone();
        let response = response.unwrap_or_else(|| format!("response-{}", self.number));
        let Some(whole) = choice.whole(&response, index) else {
            return;
        };
        let mut tape = Tape::new();
        if let Ok(message) = tape.read(&whole, 128) {
            self.response().message(message, out);
        }
    }
}

impl Choice {
    fn add(&mut self, delta: Node<'_>) {
        if let Some(content) = delta.get("content") {
            self.add_content(content);
        }
        let said = delta.text("reasoning_content").or(delta.text("reasoning"));
        let details = delta.get("reasoning_details");
        match (said, details) {
            (Some(said), _) => self.reasoning.push_str(&said),
            (None, Some(details)) => {
                self.opaque |= details.items().next().is_some();
                self.reasoning.push_str(&message::detailed(details));
            }
            (None, None) => {}
        }
        self.refusal
            .push_str(&delta.text("refusal").unwrap_or_default());
        let transcript = delta
            .path(&["audio", "transcript"])
            .and_then(|n| n.as_str());
        self.content.push_str(&transcript.unwrap_or_default());
        for piece in delta.get("tool_calls").into_iter().flat_map(Node::items) {
            let index = self.index_of(piece);
            let call = self.calls.entry(index).or_default();
            call.add(piece.get("function").unwrap_or(piece));
            if call.id.is_empty() {
                call.id.push_str(&piece.text("id").unwrap_or_default());
            }
        }
        if let Some(piece) = delta.get("function_call").filter(|f| !f.is_null()) {
            self.function.get_or_insert_default().add(piece);
        }
    }

    /// A text, or a list of texts and thoughts.
    fn add_content(&mut self, content: Node<'_>) {
        if let Some(text) = content.as_str() {
            return self.content.push_str(&text);
        }
        for part in content.items() {
            self.content
                .push_str(&part.text("text").unwrap_or_default());
            for thought in part.get("thinking").into_iter().flat_map(Node::items) {
                let text = thought.text("text").unwrap_or_default();
                self.reasoning.push_str(&text);
            }
        }
    }

    /// Which call a piece belongs to. A vendor that does not number them gives each call an id.
    fn index_of(&self, piece: Node<'_>) -> u64 {
        if let Some(index) = piece.get("index").and_then(|n| n.as_u64()) {
            return index;
        }
        let id = capture::id(piece, "id");
        let same = self
            .calls
            .iter()
            .find(|(_, call)| Some(&*call.id) == id.as_deref());
        let last = self.calls.keys().next_back().copied();
        match (same, id, last) {
            (Some((index, _)), _, _) => *index,
            (None, Some(_), Some(last)) => last.saturating_add(1),
            (None, _, last) => last.unwrap_or(0),
        }
    }

    /// The message as it stands in the body of a response; `None` when there is nothing in it.
    fn whole(&self, response: &str, choice: u64) -> Option<String> {
        let mut made = String::from(r#"{"role":"assistant""#);
        let before = made.len();
        let mut put = |key: &str, value: &str| {
            made.push_str(",\"");
            made.push_str(key);
            made.push_str("\":");
            made.push_str(value);
        };
        if !self.reasoning.is_empty() {
            put("reasoning_content", Json::string(&self.reasoning).get());
        } else if self.opaque {
            put("reasoning_details", "[{}]");
        }
        for (key, text) in [("content", &self.content), ("refusal", &self.refusal)] {
            if !text.is_empty() {
                put(key, Json::string(text).get());
            }
        }
        if !self.calls.is_empty() {
            let calls: Vec<String> = self
                .calls
                .iter()
                .map(|(index, call)| {
                    let id = match &*call.id {
                        // Where the vendor gives none, one is made that no other call has.
                        "" => format!("{response}:{choice}:{index}"),
                        given => given.to_owned(),
                    };
                    format!(
                        r#"{{"id":{},"function":{}}}"#,
                        Json::string(&id).get(),
                        call.whole()
                    )
                })
                .collect();
            put("tool_calls", &format!("[{}]", calls.join(",")));
        }
        if let Some(function) = &self.function {
            put("function_call", &function.whole());
        }
        let any = made.len() > before;
        made.push('}');
        any.then_some(made)
    }
}

impl Call {
    fn add(&mut self, function: Node<'_>) {
        if self.name.is_empty() {
            self.name
                .push_str(&function.text("name").unwrap_or_default());
        }
        let given = function.get("arguments").or(function.get("input"));
        if let Some(given) = given.filter(|given| !given.is_null()) {
            match given.as_str() {
                Some(text) => self.arguments.push_str(&text),
                None => given.raw().get().clone_into(&mut self.arguments),
            }
        }
    }

    fn whole(&self) -> String {
        format!(
            r#"{{"name":{},"arguments":{}}}"#,
            Json::string(&self.name).get(),
            Json::string(&self.arguments).get()
        )
    }
}

impl capture::Wire for Completions {
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.payload(payload, out)
    }

    fn close(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader for Completions {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        capture::records(record, out, |record, out| capture::one(self, record, out));
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }

    crate::state::keeps_session!();
}
