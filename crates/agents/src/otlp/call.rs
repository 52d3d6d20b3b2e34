//! Calls to models.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_model::{Body, Json, ModelCall, NoteKind, Place, Timestamp};

use super::events::{self, Events};
use super::message::{self, Message, Part, Role, Talk};
use super::normalize::{Batches, How, Span, Told};
use super::own::Marks;
use super::said::Request;
use super::{usage, wire};
use crate::{Entry, InRun, Out, What};

impl Batches {
    /// What was put to the model, the call, and what the model said.
    pub(super) fn call(&mut self, span: &Span<'_>, out: &mut Out<'_>) {
        let mut events = events::of(span);
        let mut talks = Talk::of(&span.attrs);
        talks.extend(events.messages());
        let told = told(span);
        if talks.is_empty() {
            talks.push(Talk::of_values(&span.attrs));
        }
        for talk in &talks {
            self.asked(span, &talk.input, &mut events, out);
        }
        let outputs = || talks.iter().flat_map(|talk| &talk.output);
        let finish = outputs().find_map(|it| it.finish.clone());
        let stop = stop_reason(span, finish);
        if span.ours && outputs().any(|it| !it.parts.is_empty()) {
            let output: Vec<&Message> = outputs().collect();
            self.answered_by_us(span, &output, &told, stop, &mut events, out);
        } else {
            out.push(call(span, &told, stop));
            for talk in &talks {
                let mut times = HashMap::new();
                for message in &talk.output {
                    let how = How::Given(&mut times);
                    self.say(span, message, how, &told, (None, span.end), out);
                }
            }
        }
        self.events(span, events, out);
    }

    /// What was put to the model.
    fn asked<'a>(
        &mut self,
        span: &Span<'a>,
        input: &[Message],
        events: &mut Events<'a>,
        out: &mut Out<'_>,
    ) {
        let (mut request, mut times) = (Request::default(), HashMap::new());
        let apart = told_apart(span, input, events);
        for message in apart.as_deref().unwrap_or(input) {
            let marks = events.take_for(&message.role);
            let how = if span.ours {
                How::Fresh(&mut times)
            } else {
                How::Asked(&mut request)
            };
            let marked = (marks.as_ref(), span.start);
            self.say(span, message, how, &told(span), marked, out);
        }
    }

    /// An answer that Quipu wrote: each part was an event, the first of which the span is named by.
    fn answered_by_us<'a>(
        &mut self,
        span: &Span<'a>,
        output: &[&Message],
        told: &Told<'a>,
        stop: Option<Cow<'a, str>>,
        events: &mut Events<'a>,
        out: &mut Out<'_>,
    ) {
        let parts: Vec<(&Message, &Part)> = output
            .iter()
            .flat_map(|message| message.parts.iter().map(move |part| (*message, part)))
            .collect();
        // A note may begin a call, as where tokens are told before the answer.
        let first = span.marks.as_ref().filter(|first| !events.hold(first));
        let marks = lay_beside(span, first, &parts, events.answers());
        let mut times = HashMap::new();
        let mut carrier = Some(call(span, told, stop));
        for ((message, part), marks) in parts.into_iter().zip(marks) {
            let mut how = How::Fresh(&mut times);
            if !self.is_news(span, &message.role, part, &mut how, out) {
                continue;
            }
            let Some(entry) = super::normalize::entry(&message.role, part, out) else {
                continue;
            };
            let mut entry = span.at(entry, span.end);
            entry.model.clone_from(&told.model);
            entry.model_call.clone_from(&told.model_call);
            if let Some(marks) = &marks {
                marks.put_on(&mut entry);
                entry.at = entry.at.or(span.end.filter(|_| marks.at.is_none()));
            }
            if let Some(call) = carrier.take() {
                entry.usage = call.usage;
                entry.cost = call.cost;
                entry.stop_reason = entry.stop_reason.or(call.stop_reason);
                entry.extra.append(call.extra);
            }
            out.push(entry);
        }
        // All of it was told by the spans of tools before: the call is still to be told.
        if let Some(call) = carrier {
            out.push(call);
        }
    }
}

/// What Quipu wrote as one message though it was several: instructions are a list of parts, each of which was an event.
/// `None` where they are as they should be.
fn told_apart(span: &Span<'_>, input: &[Message], events: &Events<'_>) -> Option<Vec<Message>> {
    let is_system = |message: &&Message| message.role == Role::System;
    let parts: usize = input
        .iter()
        .filter(is_system)
        .map(|it| it.parts.len())
        .sum();
    let messages = input.iter().filter(is_system).count();
    if !span.ours || parts == messages || parts != events.count("message.system") {
        return None;
    }
    let apart = input.iter().flat_map(|message| {
        if message.role != Role::System {
            return vec![message.clone()];
        }
        let each = |part: &Part| Message::new(Role::System, vec![part.clone()]);
        message.parts.iter().map(each).collect()
    });
    Some(apart.collect())
}

/// Which event each part of an answer was. Where there are more parts than events, only calls are told apart.
fn lay_beside<'a>(
    span: &Span<'a>,
    first: Option<&Marks<'a>>,
    parts: &[(&Message, &Part)],
    own: Vec<(bool, Marks<'a>)>,
) -> Vec<Option<Marks<'a>>> {
    if first.is_none() && own.len() == parts.len() {
        return own.into_iter().map(|(_, marks)| Some(marks)).collect();
    }
    let first = first.cloned().map(|mut marks| {
        if parts.len() == 1 {
            marks.at = marks.at.or(span.end);
        }
        marks
    });
    if first.is_some() && own.len() + 1 == parts.len() {
        let own = own.into_iter().map(|(_, marks)| Some(marks));
        return std::iter::once(first).chain(own).collect();
    }
    let is_call = |part: &Part| matches!(part, Part::Call { .. });
    let calls = parts.iter().filter(|(_, part)| is_call(part)).count();
    let mut own: Vec<Marks<'a>> = own
        .into_iter()
        .filter(|(is_call, _)| *is_call)
        .map(|(_, marks)| marks)
        .collect();
    if own.len() > calls {
        own.clear();
    }
    let mut skipped = calls - own.len();
    let mut own = own.into_iter();
    let mut first = first;
    parts
        .iter()
        .map(|(_, part)| {
            if is_call(part) && skipped == 0 {
                return own.next();
            }
            skipped = skipped.saturating_sub(usize::from(is_call(part)));
            first.take()
        })
        .collect()
}

/// What all parts of an answer have in common.
pub(super) fn told<'a>(span: &Span<'a>) -> Told<'a> {
    let attrs = &span.attrs;
    let names = ["gen_ai.response.model", "llm.model_name"];
    let response = attrs.first_text(&names);
    let requested = [
        "gen_ai.request.model",
        "embedding.model_name",
        "llm.request.model",
    ];
    let model = match response {
        Some(model) => {
            for key in requested {
                attrs.mark_if(key, |text| text == model);
            }
            Some(model)
        }
        None => attrs.first_text(&requested),
    };
    let response = attrs.text("gen_ai.response.id");
    let model_call = if span.ours {
        attrs.text("quipu.model_call").or(response)
    } else {
        // Programs may be instrumented twice, and then both spans of a call have the id of its response. Elsewhere that id
        // may come again: some servers count from one.
        let own = response.map(|id| Cow::Owned(format!("{id}@{}", span.trace)));
        let id = if span.id.is_empty() {
            &span.trace
        } else {
            &span.id
        };
        own.or_else(|| (!id.is_empty()).then(|| id.clone()))
    };
    Told { model, model_call }
}

/// Why an answer ended.
fn stop_reason<'a>(span: &Span<'a>, finish: Option<String>) -> Option<Cow<'a, str>> {
    let mut reasons = span
        .attrs
        .texts("gen_ai.response.finish_reasons")
        .into_iter();
    let told = reasons.next().or_else(|| {
        let names = ["llm.finish_reason", "gen_ai.response.stop_reason"];
        span.attrs.first_text(&names)
    });
    // Where the log does not say, Quipu has to write something.
    told.or_else(|| finish.filter(|_| !span.ours).map(Cow::Owned))
}

/// The call itself: tokens, time and parameters.
fn call<'a>(span: &Span<'a>, told: &Told<'a>, stop: Option<Cow<'a, str>>) -> Entry<'a> {
    let attrs = &span.attrs;
    let providers = [
        "gen_ai.provider.name",
        "gen_ai.system",
        "llm.provider",
        "llm.system",
    ];
    let provider = attrs.first_text(&providers);
    // What Quipu writes where it does not know.
    let provider = provider.filter(|name| !(span.ours && (name == "_OTHER" || name == "unknown")));
    let failed = span.failed.then(|| failure(span));
    let body = ModelCall {
        provider: provider.map(Cow::into_owned),
        params: params(span),
        request: None,
        response: None,
        first_token_ms: attrs
            .seconds("gen_ai.response.time_to_first_chunk")
            .or_else(|| attrs.seconds("gen_ai.server.time_to_first_token")),
        error: failed,
    };
    let mut entry = Entry::new(What::Note {
        kind: NoteKind::ModelCall,
        text: None,
        raw: None,
    });
    entry.model.clone_from(&told.model);
    entry.model_call.clone_from(&told.model_call);
    entry.usage = usage::usage(attrs);
    entry.cost = usage::cost(attrs);
    entry.stop_reason = stop;
    entry.duration_ms = span.duration_ms().filter(|_| !span.is_log);
    let mut entry = span.at(entry, span.start);
    if !span.is_log {
        entry.in_run = Some(InRun::of(Place::run(), Body::ModelCall(body)));
    }
    if let Some(marks) = &span.marks {
        marks.put_on(&mut entry);
        entry.at = entry.at.or(span.end.filter(|_| marks.at.is_none()));
    }
    span.keep_rest(&mut entry);
    entry
}

/// Why it failed, in the most words there are.
pub(super) fn failure(span: &Span<'_>) -> String {
    let kind = span.attrs.text("error.type");
    let why = span.why.clone().or(kind);
    why.map_or_else(|| "failed".to_owned(), Cow::into_owned)
}

/// The parameters of a request beside its messages.
fn params(span: &Span<'_>) -> Option<Json> {
    if let Some(given) = span.attrs.document("llm.invocation_parameters") {
        return Some(message::arguments(&given, true).unwrap_or_else(|| wire::parsed(&given)));
    }
    span.attrs.object_below("gen_ai.request.", &["model"])
}

/// The message of an event: whether it is an answer, and when it came.
pub(super) fn is_answer(name: &str, message: &Message) -> bool {
    name == "gen_ai.choice" && message.role == Role::Assistant
}

/// When an event of a span happened.
pub(super) fn when(span: &Span<'_>, at: Option<Timestamp>) -> Option<Timestamp> {
    at.or(span.start)
}
