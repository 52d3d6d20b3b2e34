//! Events of spans, and log records.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{Json, NoteKind, Timestamp};

use super::call::{is_answer, told, when};
use super::message::{self, Role, Talk, arguments};
use super::normalize::{Batches, How, Span, Told};
use super::own::Marks;
use super::said::Request;
use super::wire::{self, Attrs};
use crate::{Entry, Out, Text, Value, What};

/// The events of a span that nothing was made of yet.
#[derive(Debug, Default)]
pub(super) struct Events<'a>(Vec<Happened<'a>>);

#[derive(Debug)]
struct Happened<'a> {
    node: Node<'a>,
    attrs: Attrs<'a>,
    name: Cow<'a, str>,
    at: Option<Timestamp>,
    /// What Quipu wrote of the event that it is.
    marks: Option<Marks<'a>>,
}

/// Those of a span.
pub(super) fn of<'a>(span: &Span<'a>) -> Events<'a> {
    let events = span.node.get("events").into_iter().flat_map(Node::items);
    let events = events.map(|node| {
        let attrs = Attrs::of(node);
        let at = wire::moment(node, "timeUnixNano");
        Happened {
            marks: if span.ours {
                Marks::of(&attrs, at)
            } else {
                None
            },
            node,
            name: node.text("name").unwrap_or_default(),
            at,
            attrs,
        }
    });
    Events(events.collect())
}

impl<'a> Events<'a> {
    /// Takes out the messages that are events of their own.
    pub(super) fn messages(&mut self) -> Vec<Talk> {
        let (mut talk, mut more) = (Talk::default(), Vec::new());
        self.0.retain(|event| {
            if let Some(one) = message::of_event(&event.name, &event.attrs, None) {
                if is_answer(&event.name, &one) {
                    talk.output.push(one);
                } else {
                    talk.input.push(one);
                }
                // The name of the provider is that of the call.
                event.attrs.any("gen_ai.system");
                return event.attrs.rest().is_some();
            }
            let is_content = matches!(
                &*event.name,
                "gen_ai.content.prompt"
                    | "gen_ai.content.completion"
                    | "gen_ai.client.inference.operation.details"
            );
            if !is_content {
                return true;
            }
            more.extend(Talk::of(&event.attrs));
            event.attrs.rest().is_some()
        });
        if !talk.is_empty() {
            more.push(talk);
        }
        more
    }

    /// Takes out the first event of ours that has this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Marks<'a>> {
        let is = |event: &Happened<'_>| event.name == name && event.marks.is_some();
        let at = self.0.iter().position(is)?;
        self.0.remove(at).marks
    }

    /// The event of ours that a message was.
    pub(super) fn take_for(&mut self, role: &Role) -> Option<Marks<'a>> {
        match role {
            Role::User => self.take("message.user"),
            Role::System => self.take("message.system"),
            _ => None,
        }
    }

    /// How many events of ours have this name.
    pub(super) fn count(&self, name: &str) -> usize {
        let is = |event: &&Happened<'_>| event.name == name && event.marks.is_some();
        self.0.iter().filter(is).count()
    }

    /// Whether the event that a span of ours was made of stands in it as well. Only what is no part of an answer does.
    pub(super) fn hold(&self, marks: &Marks<'_>) -> bool {
        let mut own = self.0.iter().filter_map(|event| event.marks.as_ref());
        own.any(|own| own.are_of(marks))
    }

    /// The events of ours that are parts of an answer, and whether they are calls.
    pub(super) fn answers(&mut self) -> Vec<(bool, Marks<'a>)> {
        let mut answers = Vec::new();
        let mut others = Vec::new();
        for mut event in std::mem::take(&mut self.0) {
            let is_call = event.name == "tool.call";
            let is_answer = is_call || event.name == "message.assistant";
            match event.marks.take() {
                Some(marks) if is_answer => answers.push((is_call, marks)),
                marks => {
                    event.marks = marks;
                    others.push(event);
                }
            }
        }
        self.0 = others;
        answers
    }
}

impl Batches {
    /// What is left of the events of a span.
    pub(super) fn events<'a>(&mut self, span: &Span<'a>, events: Events<'a>, out: &mut Out<'_>) {
        let mut request = Request::default();
        for event in events.0 {
            if let Some(marks) = &event.marks {
                if let Some(mut entry) = of_ours(&event, out) {
                    marks.put_on(&mut entry);
                    if let Some(rest) = event.attrs.rest() {
                        entry.extra.value("attributes", rest);
                    }
                    out.push(entry);
                }
                continue;
            }
            if let Some(one) = message::of_event(&event.name, &event.attrs, None)
                && !one.parts.is_empty()
                && event.attrs.rest().is_none()
            {
                let at = when(span, event.at);
                let how = How::Asked(&mut request);
                self.say(span, &one, how, &Told::default(), (None, at), out);
                continue;
            }
            let is_error = event.name == "exception";
            let kind = if is_error {
                NoteKind::Error
            } else {
                NoteKind::Progress
            };
            let said = event.attrs.text("exception.message");
            let said = said.or(event.attrs.text("exception.type"));
            let text = said.filter(|_| is_error).unwrap_or(event.name);
            let mut entry = crate::blocks::kept(kind, event.node, out);
            if let What::Note { text: to, .. } = &mut entry.what {
                *to = Some(Text::Plain(text));
            }
            out.push(span.at(entry, event.at));
        }
    }

    /// A log record.
    pub(super) fn log(&mut self, span: &Span<'_>, out: &mut Out<'_>) {
        let body = span.node.get("body").filter(|body| !body.is_null());
        let at = span.start;
        if span.name == "gen_ai.client.inference.operation.details" {
            return self.call(span, out);
        }
        if let Some(one) = message::of_event(&span.name, &span.attrs, body)
            && !one.parts.is_empty()
        {
            let is_answer = is_answer(&span.name, &one);
            let how = if is_answer {
                How::GivenInPiece
            } else {
                How::AskedInPiece
            };
            let told = if is_answer {
                told(span)
            } else {
                Told::default()
            };
            self.say(span, &one, how, &told, (None, at), out);
            return;
        }
        let is_error = wire::small(span.node, &["severityNumber"]).is_some_and(|it| it >= 17);
        let kind = if is_error {
            NoteKind::Error
        } else {
            NoteKind::Progress
        };
        let text = body.and_then(|body| body.get("stringValue")?.as_str());
        let text = text.filter(|text| !text.is_empty());
        let mut entry = crate::blocks::kept(kind, span.node, out);
        if let What::Note { text: to, .. } = &mut entry.what {
            let name = Some(span.name.clone()).filter(|name| !name.is_empty());
            *to = text.or(name).map(Text::Plain);
        }
        out.push(span.at(entry, at));
    }
}

/// What an event of ours was. Calls and results are told by the spans of tools.
fn of_ours<'a>(event: &Happened<'a>, out: &mut Out<'_>) -> Option<Entry<'a>> {
    let opaque = |what| Entry {
        opaque: true,
        ..Entry::new(what)
    };
    let attrs = &event.attrs;
    Some(match &*event.name {
        // Its content was not exported.
        "message.user" => opaque(What::User(Text::EMPTY)),
        "message.system" => opaque(What::System(Text::EMPTY)),
        "message.assistant" => opaque(What::Assistant(Text::EMPTY)),
        "tool.call" | "tool.result" => return None,
        name => {
            let kind = attrs.text("quipu.note.kind");
            let kind = kind.and_then(|word| NoteKind::from_word(&word));
            let Some(kind) = kind else {
                let mut entry = crate::blocks::kept(NoteKind::Turn, event.node, out);
                if let What::Note { text, .. } = &mut entry.what {
                    *text = Some(Text::from(name.to_owned()));
                }
                return Some(entry);
            };
            let text = attrs.first_text(&["quipu.text", "exception.message"]);
            attrs.any("exception.type");
            let raw = attrs.text("quipu.raw");
            let raw = raw.map(|raw| arguments(&raw, true).unwrap_or_else(|| Json::string(&raw)));
            Entry::new(What::Note {
                kind,
                text: text.map(Text::Plain),
                raw: raw.map(Value::Owned),
            })
        }
    })
}
