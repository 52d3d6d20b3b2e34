//! Calls to models, as records: what was asked, and what was answered.

use std::io;

use quipu_model::{Content, Json, NoteKind, Timestamp};

use super::lane::{Call, Piece, Queued, Stop, Use};
use super::out::{Making, marks};
use super::text::{Object, is_object, list};
use super::tools::{call, millis};
use super::view::{Part, View};
use super::{Projector, Sink, parts};
use crate::agentlog::Kind;
use crate::ended::Ended;

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
            self.lanes[lane].asked(json, view.notes.flags.superseded, view.seq, view.at);
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
        let json = self.message("system", view, blocks);
        let superseded = view.notes.flags.superseded;
        let (seq, at) = (view.seq, view.at);
        match &mut self.lanes[lane].open {
            Some(open) if open.notes.model_call.is_some() => {
                open.queue(Queued::Message {
                    json,
                    superseded,
                    seq,
                    at,
                });
            }
            _ => {
                self.close(lane, sink)?;
                self.lanes[lane].asked(json, superseded, seq, at);
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
            Call::new(view.notes, view.seq, view.at, std::mem::take(pending))
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
        open.bytes += pieces.iter().map(|piece| piece.delta.len()).sum::<usize>();
        open.chunks.append(&mut pieces);
        Ok(true)
    }

    /// A note that tells of a call without being a part of what was said.
    pub(super) fn model_call(
        &mut self,
        lane: usize,
        view: &View<'_>,
        kind: NoteKind,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        if kind == NoteKind::ModelCall && view.notes.model_call.is_some() {
            self.opened(lane, view, sink)?;
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
        if self.lanes[lane].unanswered > 0 {
            let seq = self.lanes[lane].asked_by;
            let marks = Object::new().flag("unanswered", true);
            self.request(lane, seq, None, marks, false, sink)?;
        }
        Ok(())
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
        let lane = &mut self.lanes[lane];
        lane.unanswered = 0;
        let asked = lane.history.ask(self.options.max_request_bytes, superseded);
        let loss = &mut self.out.loss;
        loss.inferred("chat_request.messages, from what was said before", seq);
        loss.inferred("chat_request.params, which are not known", seq);
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
        let payload = Object::new()
            .text("model", model.unwrap_or("unknown"))
            .raw("messages", &asked.messages)
            .raw("params", "{}")
            .end();
        let making = Making {
            kind: Kind::ChatRequest,
            seq,
            at: lane.asked_at,
            vague: true,
            payload,
            marks: beside,
        };
        self.out.put(making, Some(lane.cursor), sink)
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
        let begun = self.lanes[lane].asked_at;
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
        let mut latest = call.chunks.first().map_or(call.at, |piece| piece.at);
        for (n, piece) in call.chunks.iter().enumerate() {
            latest = latest.max(piece.at);
            let last = n + 1 == call.chunks.len();
            self.out
                .put(chunk(n, piece, latest, last), Some(request), sink)?;
        }
        let response = Making {
            kind: Kind::ChatResponse,
            seq: call.seq,
            at: call.at,
            vague: !call.dated,
            payload: self.response(&call, begun),
            marks: beside,
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

    fn response(&mut self, call: &Call, begun: Timestamp) -> String {
        let loss = &mut self.out.loss;
        let model = call.notes.model.as_deref();
        if call.usage.is_empty() {
            loss.inferred("chat_response.usage, which is not known", call.seq);
        }
        let latency = call.duration.unwrap_or_else(|| {
            loss.inferred("chat_response.latency_ms, from times", call.seq);
            millis(begun, call.at)
        });
        let told = call.notes.stop_reason.as_deref().and_then(Ended::of);
        let stop = told.map_or(call.stop.as_str(), |told| {
            told.in_traces(call.stop == Stop::ToolUse)
        });
        if told.is_none() {
            loss.inferred("chat_response.stop_reason, from the content", call.seq);
        }
        Object::new()
            .text("model", model.unwrap_or("unknown"))
            .raw("content", &list(call.content.iter().map(String::as_str)))
            .text("stop_reason", stop)
            .raw("usage", &parts::usage(&call.usage))
            .number("latency_ms", latency)
            .end()
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
                    at,
                } => {
                    self.lanes[lane].asked(json, superseded, seq, at);
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
    Piece {
        seq: view.seq,
        at: view.at,
        delta,
    }
}

/// A piece of an answer. `at` is its time, or that of the piece before where that is later.
fn chunk(index: usize, piece: &Piece, at: Timestamp, last: bool) -> Making {
    let payload = Object::new()
        .number("chunk_index", index)
        .number("time_unix_nano", at.as_nanosecond())
        .raw("delta", &piece.delta)
        .flag_if("is_final", last)
        .end();
    Making {
        kind: Kind::Chunk,
        seq: piece.seq,
        at: piece.at,
        vague: false,
        payload,
        marks: Object::new(),
    }
}
