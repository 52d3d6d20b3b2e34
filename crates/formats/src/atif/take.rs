//! From events to steps.

use crate::plain;
use quipu_model::{
    Attachment, Block, Body, Content as SaidContent, Event, Json, Note, NoteKind, Step as Work,
    StepEnd, ToolCall, ToolCallId, ToolResult,
};

use super::details;
use super::json::{Object, comma, is_deep, string};
use super::metrics::Metrics;
use super::output::{self, Content};
use super::pictures;
use super::step::{Call, Observed, Source, Stage, Step};
use super::write::Writer;

/// The address of a blob in the values of imported logs, but for its hash.
const BLOB_SCHEME: &str = "agentlog-blob://quipu/";

/// As many bytes of notes stand beside one step; more get one of their own.
const MAX_NOTES: usize = if cfg!(test) { 4 << 10 } else { 1 << 20 };

/// A call of a tool, by an event or in a message.
pub(super) struct Called<'e> {
    name: &'e str,
    id: &'e str,
    input: Option<&'e Json>,
    block: bool,
}

/// What a tool gave back, by an event or in a message.
pub(super) struct Given<'e> {
    name: &'e str,
    id: &'e str,
    input: Option<&'e Json>,
    output: Option<&'e Json>,
    error: Option<&'e str>,
    block: bool,
}

impl<'e> From<&'e ToolCall> for Called<'e> {
    fn from(call: &'e ToolCall) -> Self {
        Self {
            name: &call.name,
            id: &call.call_id,
            input: call.input.as_ref(),
            block: false,
        }
    }
}

impl<'e> From<&'e ToolResult> for Given<'e> {
    fn from(result: &'e ToolResult) -> Self {
        Self {
            name: &result.name,
            id: &result.call_id,
            input: result.input.as_ref(),
            output: result.output.as_ref(),
            error: result.error.as_deref(),
            block: false,
        }
    }
}

impl Writer<'_> {
    /// A message.
    pub(super) fn said(&mut self, track: usize, event: &Event, source: Source, blocks: &[Block]) {
        let notes = &event.annotations;
        let is_tool = |block: &Block| {
            matches!(
                block.content,
                SaidContent::ToolUse { .. } | SaidContent::ToolResult { .. }
            )
        };
        // A message that does nothing but bring results has no step of its own.
        let has_step = source == Source::Agent
            || !notes.attachments.is_empty()
            || blocks.is_empty()
            || !blocks.iter().all(is_tool);
        if has_step {
            self.message(track, event, source, blocks);
        }
        for block in blocks {
            match &block.content {
                SaidContent::ToolUse { name, id, input } => {
                    self.loss.wrapped("block.tool_use", event.seq);
                    let called = Called {
                        name,
                        id,
                        input: input.as_ref(),
                        block: true,
                    };
                    self.call(track, event, &called);
                }
                SaidContent::ToolResult { id, content } => {
                    self.loss.wrapped("block.tool_result", event.seq);
                    let given = Given {
                        name: "",
                        id,
                        input: None,
                        output: content.as_ref(),
                        error: None,
                        block: true,
                    };
                    self.result(track, event, &given);
                }
                _ => {}
            }
        }
        if source != Source::Agent {
            self.spend_apart(track, event);
        }
    }

    /// The step of a message, without its tools.
    fn message(&mut self, track: usize, event: &Event, source: Source, blocks: &[Block]) {
        let early = std::mem::take(&mut self.tracks[track].early);
        let step = if source == Source::Agent {
            let reasons = |block: &Block| matches!(&block.content, SaidContent::Thinking(text) if !text.is_empty());
            let stage = if blocks.iter().any(reasons) {
                Stage::Reasons
            } else {
                Stage::Speaks
            };
            self.tracks[track].agent_step(event, stage, tells_usage(event))
        } else {
            self.tracks[track].message_step(event, source)
        };
        step.native.clone_from(&event.annotations.native_id);
        for early in &early {
            pictures::show(step, early, &self.gallery, &mut self.loss);
        }
        let before = step.parts.len() + step.reasoning.len() + step.events.len();
        for block in blocks {
            let (text, wrapped) = match &block.content {
                SaidContent::Text(text) => (text, None),
                SaidContent::Thinking(text) if source == Source::Agent => {
                    if !text.is_empty() {
                        if !step.reasoning.is_empty() {
                            step.reasoning.push_str("\n\n");
                            self.loss.wrapped("reasoning in parts", event.seq);
                        }
                        step.reasoning.push_str(text);
                    }
                    continue;
                }
                SaidContent::Thinking(text) => (text, Some("block.thinking")),
                SaidContent::Command(text) => (text, Some("block.command")),
                SaidContent::Stream(text) => (text, Some("block.stream")),
                SaidContent::ToolUse { .. }
                | SaidContent::ToolResult { .. }
                | SaidContent::Unknown(_) => continue,
            };
            if let Some(what) = wrapped {
                self.loss.wrapped(what, event.seq);
            }
            step.parts.text(text);
        }
        for attachment in &event.annotations.attachments {
            if !self.gallery.part(attachment, step.parts.add()) {
                self.loss.dropped("attachment bytes", event.seq);
            }
        }
        let mut about = Vec::new();
        let mut object = Object::begin(&mut about);
        details::fields(event, step.said(), &self.gallery, &mut object);
        object.end();
        comma(&mut step.events);
        step.events.extend_from_slice(&about);
        if source == Source::Agent {
            spend(step, event);
        }
        step.size += step.parts.len() + step.reasoning.len() + step.events.len() - before;
    }

    /// A call of a tool.
    pub(super) fn call(&mut self, track: usize, event: &Event, called: &Called<'_>) {
        let mut extra = Vec::new();
        let arguments = self.arguments(event, called, &mut extra);
        if called.id.is_empty() {
            self.loss.inferred("tool_call_id", event.seq);
        } else if called.block || event.annotations.attachments.is_empty() {
            // What was told in a message is often told again by an event of its own.
            if self.told_before(track, event, called, &arguments) {
                return;
            }
        }
        if !called.block {
            self.unplaced(&event.annotations.attachments, event.seq);
        }
        let spends = !called.block && tells_usage(event);
        let step = self.tracks[track].agent_step(event, Stage::Acts, spends);
        let mut object = Object::within(&mut extra);
        object.mark("block", called.block);
        if !called.block {
            details::fields(event, step.said(), &self.gallery, &mut object);
        }
        let id = if called.id.is_empty() {
            object.mark("no_id", true);
            format!("quipu-{}-{}", event.seq, step.calls.len()).into()
        } else {
            ToolCallId::from(called.id)
        };
        step.size += arguments.len() + extra.len() + id.len() + called.name.len();
        step.calls.push(Call {
            pending: !called.id.is_empty(),
            id,
            name: called.name.to_owned(),
            arguments,
            extra,
            block: called.block,
            event: !called.block,
        });
        if !called.block {
            spend(step, event);
        }
    }

    /// Whether the same call is there, from a message where this is an event, or the other way round.
    fn told_before(
        &mut self,
        track: usize,
        event: &Event,
        called: &Called<'_>,
        arguments: &[u8],
    ) -> bool {
        let Some(step) = self.tracks[track].of_tool(called.id) else {
            return false;
        };
        let time = step.time.clone();
        let (model, of_call) = (step.model.clone(), step.call.clone());
        let same = step.calls.iter_mut().find(|call| {
            let other = if called.block {
                !call.block
            } else {
                !call.event
            };
            other && call.id == called.id && call.name == called.name && call.arguments == arguments
        });
        let Some(call) = same else {
            return false;
        };
        let before = call.extra.len();
        let mut object = Object::within(&mut call.extra);
        if called.block {
            call.block = true;
            object.mark("block", true);
        } else {
            call.event = true;
            let said = details::StepFacts {
                time: time.as_deref(),
                model: model.as_deref(),
                call: of_call.as_deref(),
            };
            details::fields(event, said, &self.gallery, &mut object);
        }
        step.size += call.extra.len() - before;
        if !called.block {
            spend(step, event);
        }
        true
    }

    /// The arguments of a call, which have to be an object.
    fn arguments(&mut self, event: &Event, called: &Called<'_>, extra: &mut Vec<u8>) -> Vec<u8> {
        let Some(input) = called.input else {
            Object::within(extra).mark("no_arguments", true);
            return b"{}".to_vec();
        };
        let text = input.get();
        let deep = is_deep(text);
        if text.starts_with('{') && !deep {
            return text.as_bytes().to_vec();
        }
        self.loss.wrapped("arguments that are no object", event.seq);
        Object::within(extra).text("raw", if deep { "text" } else { "value" });
        let mut out = br#"{"_raw":"#.to_vec();
        if deep {
            string(text, &mut out);
        } else {
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b'}');
        out
    }

    /// What a tool gave back.
    pub(super) fn result(&mut self, track: usize, event: &Event, given: &Given<'_>) {
        let mut observed = self.observed(event, given);
        let of = &mut self.tracks[track];
        let is_linked = !given.id.is_empty() && of.of_tool(given.id).is_some();
        if !is_linked {
            self.loss.wrapped("tool.result without its call", event.seq);
        }
        let step = of.result_step(event, given.id);
        if is_linked {
            observed.call = Some(given.id.into());
            let mut calls = step.calls.iter_mut();
            if let Some(call) = calls.find(|call| call.id == given.id && call.pending) {
                call.pending = false;
            }
        } else if !given.id.is_empty() {
            Object::within(&mut observed.quipu).text("call_id", given.id);
        }
        if !given.block {
            if tells_usage(event) {
                self.loss.wrapped("usage of tool.result", event.seq);
            }
            spend(step, event);
        }
        let same = step.results.iter_mut().find(|other| {
            let differs = if given.block {
                !other.block
            } else {
                !other.event
            };
            differs
                && other.call.is_some()
                && other.call == observed.call
                && other.content == observed.content
        });
        if let Some(same) = same {
            same.block = true;
            if given.block {
                Object::within(&mut same.quipu).mark("block", true);
            } else {
                same.event = true;
                same.extra = observed.extra;
                same.quipu = observed.quipu;
                Object::within(&mut same.quipu).mark("block", true);
                step.size += same.extra.len() + same.quipu.len();
            }
            return;
        }
        let content = match &observed.content {
            Content::None => 0,
            Content::Text(bytes) | Content::Parts(bytes) => bytes.len(),
        };
        step.size += content + observed.extra.len() + observed.quipu.len();
        step.results.push(observed);
    }

    fn observed(&mut self, event: &Event, given: &Given<'_>) -> Observed {
        let notes = &event.annotations;
        let attachments: &[Attachment] = if given.block { &[] } else { &notes.attachments };
        let mut shown = Vec::new();
        let mut elsewhere = 0_u32;
        let gallery = &self.gallery;
        let out = output::of(given.output, given.error, |item, out| {
            let blob = item
                .split_once(BLOB_SCHEME)
                .and_then(|(_, hash)| hash.get(..64));
            let at = attachments.iter().position(|it| {
                Some(it.sha256.as_str()) == blob && gallery.path(&it.sha256).is_some()
            });
            let Some(at) = at else {
                // A part of a trajectory that was read; its file is not here.
                let is_part = gallery.is_part(item);
                if is_part {
                    out.extend_from_slice(item.as_bytes());
                    elsewhere += 1;
                    shown.extend(attachments.iter().position(|it| item.contains(&it.sha256)));
                }
                return is_part;
            };
            shown.push(at);
            // The part brings its own comma, and one is there already.
            let mut part = Vec::new();
            gallery.part(&attachments[at], &mut part);
            out.extend_from_slice(&part);
            true
        });
        if out.form == Some("json") {
            self.loss.wrapped("output that is no text", event.seq);
        }
        let mut extra = Vec::new();
        let mut quipu = Vec::new();
        let mut own = Object::within(&mut quipu);
        own.mark("block", given.block);
        own.maybe("form", out.form);
        let mut content = out.content;
        if matches!(content, Content::Parts(_)) {
            for _ in 0..elsewhere {
                self.loss.dropped("attachment bytes", event.seq);
            }
        } else {
            shown.clear();
        }
        let rest = attachments
            .iter()
            .enumerate()
            .filter(|(at, _)| !shown.contains(at));
        let mut added = 0_usize;
        for (_, attachment) in rest {
            added += 1;
            let parts = into_parts(&mut content, &mut own);
            if !gallery.part(attachment, parts) {
                self.loss.dropped("attachment bytes", event.seq);
            }
        }
        if added > 0 {
            own.number("added", added);
        }
        if !given.block {
            own.text("name", given.name);
            if let Some(input) = given.input {
                json_field("input", input, &mut own);
            }
            details::fields(
                event,
                details::StepFacts::default(),
                &self.gallery,
                &mut own,
            );
            let mut object = Object::within(&mut extra);
            object.maybe("status", notes.status.map(quipu_model::Status::as_str));
            if let Some(duration) = notes.duration_ms {
                object.number("duration_ms", duration);
            }
            object.maybe("error", given.error);
        }
        let child = notes.child.as_ref().map(ToString::to_string);
        Observed {
            call: None,
            content,
            names: std::iter::once(given.id.to_owned())
                .filter(|id| !id.is_empty())
                .chain(child)
                .collect(),
            extra,
            quipu,
            block: given.block,
            event: !given.block,
        }
    }

    /// A note. That the context was condensed is a step; others stand beside one.
    pub(super) fn note(&mut self, track: usize, event: &Event, note: &Note) {
        if pictures::is_one(event, note, &self.gallery) && self.picture(track, event) {
            return;
        }
        self.plain_note(track, event, note);
    }

    /// A note that is no part of a message.
    pub(super) fn plain_note(&mut self, track: usize, event: &Event, note: &Note) {
        self.unplaced(&event.annotations.attachments, event.seq);
        if pictures::says_copied(note) && !self.tracks[track].copied() {
            self.loss.dropped("is_copied_context", event.seq);
        }
        let is_step = note.kind == NoteKind::Compaction;
        if is_step {
            self.loss.inferred("context_management.boundary", event.seq);
            let step = self.tracks[track].push(Step::new(Source::System, event));
            step.compaction = true;
            let text = note.text.as_deref();
            step.parts
                .text(text.unwrap_or("The context was condensed."));
            step.size += step.parts.len();
        } else {
            self.loss.wrapped(format!("note:{}", note.kind), event.seq);
        }
        self.spend_apart(track, event);
        let mut about = Vec::new();
        let mut object = Object::begin(&mut about);
        object.text("kind", note.kind.as_str());
        let text = note.text.as_deref();
        object.maybe("text", text.filter(|_| !is_step));
        object.mark("no_text", is_step && text.is_none());
        if let Some(raw) = &note.raw {
            json_field("raw", raw, &mut object);
        }
        details::fields(
            event,
            details::StepFacts::default(),
            &self.gallery,
            &mut object,
        );
        object.end();
        self.beside(track, event, &about);
    }

    /// The beginning or the end of a run or a step of a workflow.
    pub(super) fn lifecycle(&mut self, track: usize, event: &Event, body: &Body) {
        self.loss.wrapped(plain::name(event), event.seq);
        self.unplaced(&event.annotations.attachments, event.seq);
        self.spend_apart(track, event);
        let mut about = Vec::new();
        let mut object = Object::begin(&mut about);
        let (work, end): (Option<&Work>, Option<&StepEnd>) = match body {
            Body::RunStarted(work) => (work.as_ref(), None),
            Body::StepStarted(work) | Body::CallStarted { step: work, .. } => (Some(work), None),
            Body::RunCompleted(end) => (end.as_ref().map(|end| &end.step), end.as_ref()),
            Body::StepCompleted(end) | Body::CallCompleted { end, .. } => {
                (Some(&end.step), Some(end))
            }
            _ => (None, None),
        };
        if let Some(work) = work {
            let mut step = Object::begin(object.key("step"));
            step.text("name", &work.name);
            step.text("kind", &work.kind);
            step.end();
        }
        if let Some(end) = end {
            object.maybe("error", end.error.as_deref());
            if let Some(result) = &end.result {
                json_field("result", result, &mut object);
            }
        }
        let child = body.child_run_id();
        object.maybe("child_run_id", child.map(quipu_model::RunId::as_str));
        details::fields(
            event,
            details::StepFacts::default(),
            &self.gallery,
            &mut object,
        );
        object.end();
        self.beside(track, event, &about);
    }

    /// Puts something beside the last step.
    fn beside(&mut self, track: usize, event: &Event, about: &[u8]) {
        let of = &mut self.tracks[track];
        if of.notes().len() > MAX_NOTES {
            self.loss.inferred("a step for notes", event.seq);
            of.push(Step::new(Source::System, event)).filler = true;
        }
        of.notes().add(about);
    }

    /// The usage of what is no step of an agent: added to the step of its call, or a step of its own.
    pub(super) fn spend_apart(&mut self, track: usize, event: &Event) {
        if !tells_usage(event) {
            return;
        }
        self.loss
            .wrapped(format!("usage of {}", event.body.type_word()), event.seq);
        spend(self.tracks[track].call_step(event), event);
    }

    /// Counts what is attached where no part can show it, unless it lies beside.
    fn unplaced(&mut self, attachments: &[Attachment], seq: u64) {
        for attachment in attachments {
            if self.gallery.path(&attachment.sha256).is_none() {
                self.loss.dropped("attachment bytes", seq);
            }
        }
    }
}

/// Whether an event tells what a call to a model took.
pub(super) fn tells_usage(event: &Event) -> bool {
    let notes = &event.annotations;
    !Metrics::of(notes.usage, notes.cost).is_empty()
}

/// Adds the usage of an event to its step.
fn spend(step: &mut Step, event: &Event) {
    let notes = &event.annotations;
    let more = Metrics::of(notes.usage, notes.cost);
    if !more.is_empty() {
        step.spends += 1;
        step.metrics.add(&more);
    }
}

/// A value in a field of our own; as text where it is too deep.
pub(super) fn json_field(key: &'static str, value: &Json, object: &mut Object<'_>) {
    if is_deep(value.get()) {
        object.text(key, value.get());
        object.mark("deep", true);
    } else {
        object.raw(key, value.get().as_bytes());
    }
}

/// Makes parts of a content, so that more can be added.
fn into_parts<'c>(content: &'c mut Content, own: &mut Object<'_>) -> &'c mut Vec<u8> {
    let text = match std::mem::take(content) {
        Content::None => Vec::new(),
        Content::Parts(parts) => parts,
        Content::Text(text) => {
            own.mark("text", true);
            let mut list = br#"{"type":"text","text":"#.to_vec();
            list.extend_from_slice(&text);
            list.push(b'}');
            list
        }
    };
    *content = Content::Parts(text);
    let Content::Parts(parts) = content else {
        unreachable!("it was just made parts")
    };
    parts
}
