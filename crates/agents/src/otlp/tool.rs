//! Uses of tools.

use std::borrow::Cow;

use quipu_model::{Json, Status};

use super::call::failure;
use super::events;
use super::message::arguments;
use super::normalize::{Batches, Span, outside};
use super::said::Key;
use crate::{Entry, Out, Text, Value, What};

impl Batches {
    /// A call and its result, as far as no answer or request told them.
    pub(super) fn tool(&mut self, span: &Span<'_>, out: &mut Out<'_>) {
        let attrs = &span.attrs;
        let mut events = events::of(span);
        let named = attrs.first_text(&["gen_ai.tool.name", "tool.name", "traceloop.entity.name"]);
        let name = named.unwrap_or_else(|| {
            let name = span.name.strip_prefix("execute_tool ");
            Cow::Owned(name.unwrap_or(&span.name).to_owned())
        });
        let ids = ["gen_ai.tool.call.id", "tool_call.id", "tool.id"];
        let told_id = attrs.first_text(&ids);
        let input = given(
            span,
            &[
                "gen_ai.tool.call.arguments",
                "input.value",
                "tool.parameters",
                "traceloop.entity.input",
            ],
        );
        let output = given(
            span,
            &[
                "gen_ai.tool.call.result",
                "output.value",
                "traceloop.entity.output",
            ],
        );
        // Without an id, the call that a model asked for is known by what it asks.
        let told_id = if let Some(id) = told_id {
            self.said.used(&id, &name, input.as_ref());
            Some(id)
        } else {
            let asked = self.said.used_without_id(&name, input.as_ref());
            asked.map(Cow::Owned)
        };
        let id = told_id.unwrap_or_else(|| span.id.clone());
        for key in ["input.mime_type", "output.mime_type"] {
            attrs.any(key);
        }
        let mut is_told = false;
        if self.is_new_call(&id, &name, input.as_ref()) {
            let mut attachments = Vec::new();
            let mut entry = Entry::new(What::Call {
                name: name.clone(),
                id: id.clone(),
                input: input
                    .as_ref()
                    .map(|json| outside(json, &mut attachments, out)),
            });
            entry.attachments = attachments;
            let mut entry = span.at(entry, span.start);
            if let Some(marks) = &span.marks {
                marks.put_on(&mut entry);
                entry.at = entry.at.or(span.start.filter(|_| marks.at.is_none()));
            }
            if attrs.peek("quipu.end").as_deref() == Some("unknown") {
                span.keep_rest(&mut entry);
            }
            out.push(entry);
            is_told = true;
        }
        // A span of ours that ends with the session is of a call that nothing came of.
        let is_open = attrs.text("quipu.end").as_deref() == Some("unknown");
        if !is_open && self.is_new_result(&id, output.as_ref()) {
            let entry = result(span, (name, id), output, &mut events, out);
            out.push(entry);
            is_told = true;
        }
        if !is_told {
            let entry = crate::blocks::kept(quipu_model::NoteKind::Progress, span.node, out);
            let mut entry = span.at(entry, span.start);
            entry.duration_ms = span.duration_ms();
            out.push(entry);
        }
        self.events(span, events, out);
    }

    fn is_new_call(&mut self, id: &str, name: &str, input: Option<&Json>) -> bool {
        self.said.once(Key::call(id, name, input).number())
    }

    fn is_new_result(&mut self, id: &str, output: Option<&Json>) -> bool {
        self.said.once(Key::result(id, output).number())
    }
}

/// Arguments or a result, under the first of these names.
fn given(span: &Span<'_>, keys: &[&str]) -> Option<Json> {
    let value = keys.iter().find_map(|key| span.attrs.any(key))?;
    let text = value.get("stringValue").and_then(|text| text.as_str());
    Some(match text {
        // Quipu writes JSON, strings among it, unless it is what went wrong in words.
        Some(text) => arguments(&text, span.ours).unwrap_or_else(|| Json::string(&text)),
        None => super::wire::parsed(&super::wire::plain_text(value)),
    })
}

fn result<'a>(
    span: &Span<'a>,
    (name, id): (Cow<'a, str>, Cow<'a, str>),
    output: Option<Json>,
    events: &mut events::Events<'a>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let attrs = &span.attrs;
    let status = match attrs.text("error.type").as_deref() {
        Some("timeout") => Status::Timeout,
        Some("denied") => Status::Denied,
        _ if span.failed => Status::Error,
        _ => Status::Ok,
    };
    let said = output.as_ref().and_then(Json::as_str).map(Cow::into_owned);
    let error = span.failed.then(|| match (&span.why, said.clone()) {
        (None, Some(said)) => said,
        _ => failure(span),
    });
    // What went wrong in words is not what the tool gave back.
    let output = output.filter(|_| error.is_none() || said != error);
    let mut attachments = Vec::new();
    let entry = Entry::new(What::Result {
        name,
        id,
        output: output.map(|json| match json.as_str() {
            Some(text) => Value::Text(Text::from(text.into_owned())),
            None => outside(&json, &mut attachments, out),
        }),
        error: error.map(Text::from),
    });
    let mut entry = span.at(entry, span.end);
    entry.attachments = attachments;
    entry.status = Some(status);
    entry.duration_ms = span.duration_ms();
    span.keep_rest(&mut entry);
    if span.ours {
        entry.duration_ms = None;
        if let Some(marks) = events.take("tool.result") {
            marks.put_on(&mut entry);
            entry.at = entry.at.or(span.end.filter(|_| marks.at.is_none()));
        }
    }
    entry
}
