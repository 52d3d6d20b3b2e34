//! Calls to models, as records: what was asked, and what was answered.

use std::io;

use quipu_model::{Body, Chunk, Content, Json, Note, NoteKind, Timestamp};

use super::history::Asked;
use super::lane::{Call, Piece, PieceOf, Queued, Stop, Use, When};
use super::latency::Latency;
use super::out::{Making, marks};
use super::settings::Settings;
use super::text::{Object, is_object, list};
use super::tools::call;
use super::view::{Part, View};
use super::{Projector, Sink, events, parts};
use crate::agentlog::Kind;
use crate::ended::Ended;
use crate::loss::Loss;

impl Projector {
    /// A prompt: it ends the answer before it, and is sent with the next request.
    pub(super) fn user(
        &mut self,
        lane: usize,
        view: &View<'_>,
        blocks: &[Part<'_>],
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        self.close(lane, sink)?;
        let mut rest = Vec::new();
        for block in blocks {
            match block {
                Part::Known(Content::ToolResult { id, content }) if !id.is_empty() => {
                    // Where the result was reported by itself, this is the same again.
                    if !self.calls.is_answered(id) {
                        let answer = self.answer_of_block(view, id, content.as_ref());
                        self.answer(lane, &answer, sink)?;
                    }
                }
                other => rest.push(*other),
            }
        }
        if !rest.is_empty() || !view.notes.attachments.is_empty() {
            let json = self.message("user", view, &rest);
            let superseded = view.notes.flags.superseded;
            self.lanes[lane].asked(json, superseded, view.seq, When::of(view));
        }
        Ok(true)
    }

    pub(super) fn system(
        &mut self,
        lane: usize,
        view: &View<'_>,
        blocks: &[Part<'_>],
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        // A system message of a trace is a text to whoever reads it.
        let is_text = |block: &Part<'_>| matches!(block, Part::Known(Content::Text(_)));
        if !blocks.iter().all(is_text) {
            let loss = &mut self.out.loss;
            loss.wrapped("message.system, blocks that are not text", view.seq);
        }
        let json = self.message("system", view, blocks);
        let superseded = view.notes.flags.superseded;
        let (seq, when) = (view.seq, When::of(view));
        match &mut self.lanes[lane].open {
            Some(open) if open.notes.model_call.is_some() => {
                open.queue(Queued::Message {
                    json,
                    superseded,
                    seq,
                    when,
                });
            }
            _ => {
                self.close(lane, sink)?;
                self.lanes[lane].asked(json, superseded, seq, when);
            }
        }
        Ok(true)
    }

    fn message(&mut self, role: &str, view: &View<'_>, blocks: &[Part<'_>]) -> String {
        let attachments = &view.notes.attachments;
        if let ([Part::Known(Content::Text(text))], []) = (blocks, &attachments[..]) {
            return parts::message(role, &[], Some(text));
        }
        let loss = &mut self.out.loss;
        let blocks = blocks
            .iter()
            .map(|block| parts::part(*block, view.seq, loss));
        let mut all: Vec<String> = blocks.collect();
        all.extend(attachments.iter().map(parts::attachment_part));
        parts::message(role, &all, None)
    }

    /// The answer that an event belongs to.
    pub(super) fn opened(
        &mut self,
        lane: usize,
        view: &View<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<&mut Call> {
        let open = &self.lanes[lane].open;
        if open.as_ref().is_some_and(|call| !call.goes_on(view.notes)) {
            self.close(lane, sink)?;
        }
        let lane = &mut self.lanes[lane];
        let pending = &mut lane.usage;
        let call = lane.open.get_or_insert_with(|| {
            let usage = std::mem::take(pending);
            Call::new(view.notes, view.seq, When::of(view), usage)
        });
        call.observe(view);
        Ok(call)
    }

    pub(super) fn assistant(
        &mut self,
        lane: usize,
        view: &View<'_>,
        blocks: &[Part<'_>],
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        let mut said = Vec::new();
        let (mut uses, mut pieces) = (Vec::new(), Vec::new());
        for block in blocks {
            if let Part::Known(Content::Stream(text)) = block {
                self.out
                    .loss
                    .inferred("chunk.time_unix_nano, from when it was recorded", view.seq);
                pieces.push(piece(view, text));
                continue;
            }
            if let Part::Known(Content::ToolUse { name, id, input }) = block {
                let arguments =
                    parts::object(input.as_ref(), "input", view.seq, &mut self.out.loss);
                if !id.is_empty() {
                    uses.push(call(view, id.clone(), name, arguments));
                }
            }
            said.push(parts::part(*block, view.seq, &mut self.out.loss));
        }
        let attachments = view.notes.attachments.iter();
        said.extend(attachments.map(parts::attachment_part));
        let open = self.opened(lane, view, sink)?;
        for part in said {
            open.say(part);
        }
        for used in uses {
            open.stop = Stop::ToolUse;
            if !open.called.contains(&used.id) {
                open.uses.push(used);
            }
        }
        open.bytes += pieces.iter().map(Piece::bytes).sum::<usize>();
        open.chunks.append(&mut pieces);
        Ok(true)
    }

    /// A note that tells of a call without being a part of what was said.
    pub(super) fn model_call(
        &mut self,
        lane: usize,
        view: &View<'_>,
        note: &Note,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        let kind = note.kind;
        if kind != NoteKind::Usage && view.notes.model_call.is_some() {
            let more = parts::fields_of_response(note.raw.as_ref(), view.seq, &mut self.out.loss);
            let open = self.opened(lane, view, sink)?;
            open.more.extend(more);
            return Ok(true);
        }
        if view.notes.usage.is_none() {
            self.out.loss.dropped(format!("note:{kind}"), view.seq);
            return Ok(false);
        }
        self.usage_aside(lane, view);
        Ok(true)
    }

    /// Counts tokens that are told apart from an answer: for the one that comes in, else for the next.
    pub(super) fn usage_aside(&mut self, lane: usize, view: &View<'_>) {
        let Some(usage) = &view.notes.usage else {
            return;
        };
        self.out
            .loss
            .inferred("chat_response.usage, from where it was told", view.seq);
        let lane = &mut self.lanes[lane];
        match &mut lane.open {
            Some(open) => open.usage.add(usage),
            None => lane.usage.add(usage),
        }
    }

    /// Ends a conversation: what was not answered is sent all the same.
    pub(super) fn end(&mut self, lane: usize, sink: &mut dyn Sink) -> io::Result<()> {
        self.close(lane, sink)?;
        let (seq, usage) = {
            let lane = &mut self.lanes[lane];
            (lane.used, std::mem::take(&mut lane.usage))
        };
        if !usage.is_empty() {
            self.out
                .loss
                .dropped("usage of a call that is not there", seq);
        }
        self.taken_back(lane, sink)?;
        if let Some((seq, _)) = self.lanes[lane].history.unsent() {
            let marks = Object::new().flag("unanswered", true);
            self.request(lane, seq, None, marks, false, sink)?;
        }
        Ok(())
    }

    /// Writes prompts that were taken back before they were answered: requests that go on without them do not
    /// have them.
    fn taken_back(&mut self, lane: usize, sink: &mut dyn Sink) -> io::Result<()> {
        let lane = &mut self.lanes[lane];
        let Some((seq, when)) = lane.history.taken_back() else {
            return Ok(());
        };
        let asked = lane.history.ask_taken_back(self.options.max_request_bytes);
        let cursor = lane.cursor;
        let marks = Object::new()
            .flag("unanswered", true)
            .flag("superseded", true);
        let settings = lane.settings.clone();
        let making = self.asking(seq, when, None, (asked, settings), marks);
        self.out.put(making, Some(cursor), sink).map(drop)
    }

    /// Writes a request with all that was said before it.
    fn request(
        &mut self,
        lane: usize,
        seq: u64,
        model: Option<&str>,
        marks: Object,
        superseded: bool,
        sink: &mut dyn Sink,
    ) -> io::Result<Option<crate::agentlog::ContentId>> {
        if !superseded {
            self.taken_back(lane, sink)?;
        }
        let lane = &mut self.lanes[lane];
        let asked = lane.history.ask(self.options.max_request_bytes, superseded);
        let (cursor, when, settings) = (lane.cursor, lane.asked, lane.settings.clone());
        let making = self.asking(seq, when, model, (asked, settings), marks);
        self.out.put(making, Some(cursor), sink)
    }

    /// A request with these messages.
    fn asking(
        &mut self,
        seq: u64,
        when: When,
        model: Option<&str>,
        (asked, settings): (Asked, Option<Settings>),
        marks: Object,
    ) -> Making {
        let loss = &mut self.out.loss;
        loss.inferred("chat_request.messages, from what was said before", seq);
        let settings = settings.unwrap_or_default();
        if settings.params.is_none() {
            loss.inferred("chat_request.params, which are not known", seq);
        }
        if model.is_none() {
            loss.inferred("chat_request.model, which is not known", seq);
        }
        let mut beside = marks;
        if asked.omitted > 0 {
            beside = beside
                .text("messages", asked.why.as_str())
                .number("omitted", asked.omitted);
            loss.inferred(
                "chat_request.messages, of which earlier ones are left out",
                seq,
            );
        }
        let mut payload = Object::new()
            .text("model", model.unwrap_or("unknown"))
            .raw("messages", &asked.messages)
            .raw("params", settings.params.as_deref().unwrap_or("{}"));
        if let Some(tools) = &settings.tools {
            payload = payload.raw("tools", tools);
        }
        for (key, value) in &settings.more {
            payload = payload.raw(key, value);
        }
        let payload = payload.end();
        Making {
            kind: Kind::ChatRequest,
            seq,
            at: when.at,
            vague: true,
            payload,
            marks: beside,
        }
    }

    /// Writes the answer that came in, and all that was held behind it.
    pub(super) fn close(&mut self, lane: usize, sink: &mut dyn Sink) -> io::Result<()> {
        let Some(mut call) = self.lanes[lane].open.take() else {
            return Ok(());
        };
        let name = call.notes.model_call.clone();
        let again = name.is_some() && self.lanes[lane].closed == name;
        self.lanes[lane].closed = name;
        let beside = marks(&call.notes)
            .flag_if("continued", again)
            .flag_if("inferred", call.made_up);
        let model = call.notes.model.clone();
        let superseded = call.notes.flags.superseded;
        let begun = self.lanes[lane].asked;
        let request = self.request(
            lane,
            call.seq,
            model.as_deref(),
            beside.clone(),
            superseded,
            sink,
        )?;
        let Some(request) = request else {
            self.out
                .loss
                .dropped("chat_response whose request cannot be written", call.seq);
            return self.behind(lane, call.uses, call.queue, sink);
        };
        let mut latest = call.chunks.first().map_or(call.when.at, Piece::arrived);
        for (n, piece) in call.chunks.iter().enumerate() {
            latest = latest.max(piece.arrived());
            let last = n + 1 == call.chunks.len();
            let making = chunk(n, piece, latest, last, &mut self.out.loss);
            self.out.put(making, Some(request), sink)?;
        }
        let (payload, how) = self.response(&call, begun);
        let response = Making {
            kind: Kind::ChatResponse,
            seq: call.seq,
            at: call.when.at,
            vague: !call.when.dated,
            payload,
            marks: beside.and(&how),
        };
        if let Some(response) = self.out.put(response, Some(request), sink)? {
            self.lanes[lane].cursor = response;
        }
        let said = parts::message("assistant", &call.content, None);
        self.lanes[lane].history.push(said, superseded);
        let (uses, queue) = (
            std::mem::take(&mut call.uses),
            std::mem::take(&mut call.queue),
        );
        self.behind(lane, uses, queue, sink)
    }

    /// The payload of a response, and how it came to say what the log does not.
    fn response(&mut self, call: &Call, begun: When) -> (String, Object) {
        let loss = &mut self.out.loss;
        let model = call.notes.model.as_deref();
        if call.usage.is_empty() {
            loss.inferred("chat_response.usage, which is not known", call.seq);
        }
        let latency = Latency::of(call.duration, begun, call.when);
        latency.count("chat_response", call.seq, loss);
        let told = call.notes.stop_reason.as_deref().and_then(Ended::of);
        let stop = told.map_or(call.stop.as_str(), |told| {
            told.in_traces(call.stop == Stop::ToolUse)
        });
        if told.is_none() {
            loss.inferred("chat_response.stop_reason, from the content", call.seq);
        }
        let how = latency
            .mark()
            .flag_if("stop_reason_inferred", told.is_none());
        let payload = Object::new()
            .text("model", model.unwrap_or("unknown"))
            .raw("content", &list(call.content.iter().map(String::as_str)))
            .text("stop_reason", stop)
            .raw("usage", &parts::usage(&call.usage))
            .number("latency_ms", latency.millis());
        let more = call.more.iter();
        let payload = more.fold(payload, |payload, (key, value)| payload.raw(key, value));
        (payload.end(), how)
    }

    /// Writes what was held behind an answer.
    fn behind(
        &mut self,
        lane: usize,
        uses: Vec<Use>,
        queue: Vec<Queued>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let response = self.lanes[lane].cursor;
        for used in uses {
            self.out
                .loss
                .inferred("tool_call, from what the model wrote", used.seq);
            self.begin(&used, response, sink)?;
        }
        for queued in queue {
            match queued {
                Queued::Use(used) => self.begin(&used, response, sink)?,
                Queued::Answer(answer) => self.answer(lane, &answer, sink)?,
                Queued::Leaf(making) => {
                    let cursor = self.lanes[lane].cursor;
                    self.out.put(making, Some(cursor), sink)?;
                }
                Queued::Message {
                    json,
                    superseded,
                    seq,
                    when,
                } => {
                    self.lanes[lane].asked(json, superseded, seq, when);
                }
            }
        }
        Ok(())
    }
}

fn piece(view: &View<'_>, text: &str) -> Piece {
    let delta = match Json::parse(text) {
        Ok(json) if is_object(json.get()) => json.get().to_owned(),
        _ => Object::new().text("text", text).end(),
    };
    Piece::new(view, delta)
}

/// A piece of an answer. `at` is its time, or that of the piece before where that is later.
fn chunk(index: usize, piece: &Piece, at: Timestamp, last: bool, loss: &mut Loss) -> Making {
    let (payload, marks) = match &piece.of {
        PieceOf::Record(payload) => (parts::renumbered(payload, index), Object::new()),
        PieceOf::Block => {
            let payload = Object::new()
                .number("chunk_index", index)
                .number("time_unix_nano", at.as_nanosecond().max(0))
                .raw("delta", &piece.delta)
                .flag_if("is_final", last);
            (payload.end(), Object::new())
        }
        PieceOf::Event(chunk, extra) => {
            let body = Body::Chunk(Chunk::clone(chunk));
            let payload = events::chunk(chunk, index, at);
            events::complete(Kind::Chunk, payload, &body, extra.as_ref(), |what| {
                loss.dropped(what, piece.seq);
            })
        }
    };
    Making {
        kind: Kind::Chunk,
        seq: piece.seq,
        at: piece.at,
        vague: false,
        payload,
        marks,
    }
}
