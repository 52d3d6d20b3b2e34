//! What a body means, and how a stream becomes one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Json, NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::{items, wire};
use crate::blocks;
use crate::capture::{self, Requests};
use crate::common::Common;
use crate::cost::Cost;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, What, time};

/// Reads bodies and streams.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Responses {
    session: Session,
    requests: Requests,
    /// The response that is being streamed.
    open: Option<Open>,
    /// The last search for tools whose result has not come.
    search: Option<String>,
    cost: Option<Cost>,
}

/// A response of which the end has not come.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Open {
    id: Option<String>,
    model: Option<String>,
    created: Option<i64>,
    /// The places of the items that were given. Some vendors change an item's id with every event, so
    /// that the place is all an item is known by.
    given: BTreeSet<u64>,
    /// The items that have begun and are not whole, by their place.
    partial: BTreeMap<u64, Partial>,
}

/// An item that is being streamed: needed only if its end never comes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Partial {
    /// The item as it began.
    item: String,
    /// The text, the summary or the arguments that came since.
    text: String,
}

impl Common<'_> {
    fn item(&self, item: Node<'_>, search: &mut Option<String>, out: &mut Out<'_>) {
        let native = capture::id(item, "id");
        items::entries(item, search, out, &mut |mut entry, out| {
            entry.native_id.clone_from(&native);
            self.put(entry, out);
        });
    }

    fn end(&self, response: Node<'_>, out: &mut Out<'_>) -> Option<Cost> {
        let usage = response.get("usage").filter(|usage| !usage.is_null());
        if let Some(usage) = usage {
            out.check("usage", usage, wire::USAGE);
        }
        let status = response
            .text("status")
            .unwrap_or(Cow::Borrowed("completed"));
        let failed = response.get("error").filter(|error| !error.is_null());
        let reason = response.path(&["incomplete_details", "reason"]);
        let kind = match &*status {
            "failed" | "cancelled" => NoteKind::Error,
            "incomplete" => NoteKind::Truncated,
            _ => NoteKind::ModelCall,
        };
        let stop = reason.and_then(|reason| reason.as_str());
        let stop = stop.or_else(|| response.text("status"));
        let why = failed
            .and_then(|error| error.text("message"))
            .or(reason.and_then(|reason| reason.as_str()))
            .unwrap_or(status);
        let more = capture::pick(
            &[Some(response)],
            &["error", "incomplete_details", "tool_usage"],
        );
        let mut entry = Entry {
            usage: usage.and_then(items::usage),
            service: blocks::openai_service(&response.text("service_tier").unwrap_or_default()),
            stop_reason: stop,
            ..capture::ended(kind, Some(why), more)
        };
        entry.extra.rest("", response, wire::RESPONSE_MAPPED);
        if let Some(usage) = usage {
            entry.extra.rest("usage", usage, wire::USAGE_MAPPED);
        }
        self.put(entry, out);
        usage?.get("cost_in_usd_ticks").and_then(capture::ticks)
    }
}

impl Responses {
    /// Reads one payload. When nothing comes of it, says why.
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        if payload
            .get("object")
            .is_some_and(|object| object.is("response"))
        {
            self.body(payload, out);
            return None;
        }
        let kind = payload.text("type").unwrap_or_default();
        if kind == "error" || (kind.is_empty() && payload.get("error").is_some()) {
            out.push(capture::error(payload));
            return None;
        }
        if kind.is_empty() && payload.get("input").is_some() {
            return self.request(payload, out);
        }
        self.event(&kind, payload, out)
    }

    fn event(&mut self, kind: &str, event: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let place = event.get("output_index").and_then(|n| n.as_u64());
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = event.get("response") {
                    self.start(response, out);
                }
            }
            "response.output_item.added" => {
                let item = event.get("item")?;
                let partial = Partial {
                    item: item.raw().get().to_owned(),
                    text: String::new(),
                };
                let open = self.open.get_or_insert_default();
                open.partial.insert(place.unwrap_or(0), partial);
            }
            "response.output_item.done" => {
                let item = event.get("item")?;
                let open = self.open.get_or_insert_default();
                let place = place.unwrap_or_else(|| open.given.last().map_or(0, |last| last + 1));
                open.partial.remove(&place);
                if !open.given.insert(place) {
                    return Some(Dropped::DuplicateRecord);
                }
                open.common().item(item, &mut self.search, out);
                return Some(Dropped::Empty);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                let response = event.get("response")?;
                self.start(response, out);
                let open = self.open.take().unwrap_or_default();
                self.whole(response, &open, out);
                return None;
            }
            "keepalive" | "ping" => return Some(Dropped::KeepAlive),
            _ if wire::PIECES.iter().any(|end| kind.ends_with(end)) => {
                let delta = event.get("delta").and_then(|delta| delta.as_str());
                if let (Some(place), Some(delta), Some(open)) = (place, delta, &mut self.open)
                    && let Some(partial) = open.partial.get_mut(&place)
                {
                    partial.text.push_str(&delta);
                }
            }
            _ => {
                out.unknown_type("event", kind);
                return None;
            }
        }
        Some(Dropped::StreamDelta)
    }

    /// What is known of a response from its beginning.
    fn start(&mut self, response: Node<'_>, out: &mut Out<'_>) {
        let id = capture::id(response, "id");
        let other = |open: &Open| open.id.is_some() && open.id.as_deref() != id.as_deref();
        if id.is_some() && self.open.as_ref().is_some_and(other) {
            // Some vendors change the response's id, too. Only one that has items is over.
            if self.open.as_ref().is_some_and(Open::is_begun) {
                if response
                    .get("status")
                    .is_some_and(|status| status.is("in_progress"))
                {
                    self.close(out);
                }
            } else {
                self.open = None;
            }
        }
        out.check("response", response, wire::RESPONSE);
        learn(&mut self.session.id, || id.clone());
        let open = self.open.get_or_insert_default();
        learn(&mut open.id, || id);
        learn(&mut open.model, || response.text("model"));
        let created = time::field(response, "created_at").map(Timestamp::as_millisecond);
        open.created = open.created.or(created);
        self.instructions(response, out);
    }

    fn instructions(&mut self, node: Node<'_>, out: &mut Out<'_>) {
        let Some(given) = node.get("instructions").filter(|given| !given.is_null()) else {
            return;
        };
        if !self.requests.is_new_system(given) {
            return;
        }
        if let Some(text) = Text::of(given).filter(|text| !text.is_empty()) {
            out.push(Entry::new(What::System(text)));
        }
        for item in given.items() {
            Common::default().item(item, &mut self.search, out);
        }
    }

    fn body(&mut self, response: Node<'_>, out: &mut Out<'_>) {
        out.check("response", response, wire::RESPONSE);
        learn(&mut self.session.id, || capture::id(response, "id"));
        self.instructions(response, out);
        let open = Open {
            id: capture::id(response, "id").map(Cow::into_owned),
            model: response.text("model").map(Cow::into_owned),
            created: time::field(response, "created_at").map(Timestamp::as_millisecond),
            ..Open::default()
        };
        self.whole(response, &open, out);
    }

    /// The items of a response that were not given before, and its end.
    fn whole(&mut self, response: Node<'_>, open: &Open, out: &mut Out<'_>) {
        let common = open.common();
        let output = response.get("output").into_iter().flat_map(Node::items);
        let mut listed = 0;
        for (place, item) in (0..).zip(output) {
            listed = place + 1;
            if !open.given.contains(&place) {
                common.item(item, &mut self.search, out);
            }
        }
        // The end need not repeat the items. One that has begun and is not there is given as it is.
        for (_, partial) in open.partial.range(listed..) {
            partial.give(&common, &mut self.search, out);
        }
        if let Some(cost) = common.end(response, out) {
            let sum = self.cost.get_or_insert_default();
            sum.add(cost);
            self.session.vendor_cost = Some(sum.to_text());
        }
        self.requests.answered();
    }

    fn request(&mut self, request: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.requests.settings(request, wire::CONVERSATION, out);
        self.instructions(request, out);
        let input = request.get("input")?;
        if let Some(text) = Text::of(input) {
            out.push(Entry::new(What::User(text)));
            return None;
        }
        let kept = |key: &str| request.get(key).is_some_and(|id| !id.is_null());
        let new = self.requests.advance(input);
        // Where the vendor keeps the history, it is not repeated.
        let new = if kept("previous_response_id") || kept("conversation") {
            0
        } else {
            new
        };
        for item in input.items().skip(new) {
            Common::default().item(item, &mut self.search, out);
        }
        Some(Dropped::RepeatedChannel)
    }

    /// Nothing more of the response comes: what is there of it is given as it is.
    fn close(&mut self, out: &mut Out<'_>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let common = open.common();
        for partial in open.partial.values() {
            partial.give(&common, &mut self.search, out);
        }
        let why = Some("the stream ends here");
        let entry = capture::ended(NoteKind::Truncated, why, None);
        common.put(entry, out);
        self.requests.answered();
    }
}

impl Open {
    fn is_begun(&self) -> bool {
        !self.given.is_empty() || !self.partial.is_empty()
    }

    fn common(&self) -> Common<'_> {
        let created = self.created;
        Common {
            at: created.and_then(|created| Timestamp::from_millisecond(created).ok()),
            ..Common::of_call(self.id.as_deref(), self.model.as_deref())
        }
    }
}

impl Partial {
    /// Gives the item as far as it has come.
    fn give(&self, common: &Common<'_>, search: &mut Option<String>, out: &mut Out<'_>) {
        let mut tape = Tape::new();
        let Ok(item) = tape.read(&self.item, 128) else {
            return;
        };
        let text = Json::string(&self.text);
        let part = |kind: &str| {
            let part = format!(r#"[{{"type":"{kind}","text":{}}}]"#, text.get());
            Json::parse(&part).unwrap_or_else(|_| Json::null())
        };
        let kind = item.text("type").unwrap_or_default();
        let with = match &*kind {
            "message" => ("content", part("output_text")),
            "reasoning" => ("summary", part("summary_text")),
            "function_call" | "mcp_call" => ("arguments", text),
            "custom_tool_call" => ("input", text),
            "code_interpreter_call" => ("code", text),
            _ => ("status", Json::string("incomplete")),
        };
        if self.text.is_empty() && matches!(&*kind, "message" | "function_call") {
            return;
        }
        let whole = capture::replaced(item, &[with]);
        let mut tape = Tape::new();
        if let Ok(item) = tape.read(&whole, 128) {
            common.item(item, search, out);
        }
    }
}

impl capture::Wire for Responses {
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.payload(payload, out)
    }

    fn close(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }
}

impl Reader for Responses {
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
