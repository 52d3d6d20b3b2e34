//! Calls of tools and what they give back, as records.

use std::io;

use quipu_model::{Fidelity, Json, Notes, Status, ToolCall, ToolCallId, ToolResult, Usage};

use super::lane::{Answer, Call, Queued, Stop, Use, When};
use super::latency::Latency;
use super::out::Making;
use super::text::{Object, is_string};
use super::view::View;
use super::{Projector, Sink, parts};
use crate::agentlog::{ContentId, Kind};

/// The beginning of ids that are given to calls which have none.
const GIVEN: &str = "quipu-call-";

impl Projector {
    pub(super) fn called(
        &mut self,
        lane: usize,
        view: &View<'_>,
        tool: &ToolCall,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        if self.calls.is_open(&tool.call_id) {
            // The model's own word for it was written already.
            self.out
                .loss
                .wrapped("calls that two channels report, as one", view.seq);
            self.usage_aside(lane, view);
            return Ok(true);
        }
        let loss = &mut self.out.loss;
        let arguments = parts::object(tool.input.as_ref(), "input", view.seq, loss);
        let id = if tool.call_id.is_empty() {
            loss.inferred("tool_call_id", view.seq);
            given(&tool.name, view.seq)
        } else {
            tool.call_id.clone()
        };
        let used = call(view, id, &tool.name, arguments);
        let open = self.opened(lane, view, sink)?;
        if !open.called.insert(used.id.clone()) {
            return Ok(true);
        }
        let written = open.uses.iter().position(|it| it.id == used.id);
        if let Some(written) = written {
            open.uses.remove(written);
        } else {
            open.say(parts::tool_use_part(&used.id, &used.name, &used.arguments));
        }
        open.stop = Stop::ToolUse;
        open.queue(Queued::Use(used));
        if written.is_none() && tool.fidelity == Fidelity::Router {
            self.out
                .loss
                .inferred("tool_use of a call that only the router saw", view.seq);
        }
        Ok(true)
    }

    pub(super) fn result(
        &mut self,
        lane: usize,
        view: &View<'_>,
        result: &ToolResult,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        let held = self.lanes[lane].open.as_ref();
        let is_held = held.is_some_and(|call| call.called.contains(&result.call_id));
        let is_open = is_held || self.calls.is_open(&result.call_id);
        if self.calls.is_answered(&result.call_id) && !is_open {
            self.out
                .loss
                .wrapped("results that two channels report, as one", view.seq);
            return Ok(true);
        }
        let open = &self.lanes[lane].open;
        let named = open
            .as_ref()
            .is_some_and(|call| call.notes.model_call.is_some());
        if !named {
            self.close(lane, sink)?;
        }
        let mut answer = self.answer_of(view, result);
        if answer.of.id.is_empty() {
            let latest = self.calls.latest(&given_to(&result.name));
            answer.of.id = latest.unwrap_or_else(|| given(&result.name, view.seq));
        }
        match &mut self.lanes[lane].open {
            Some(open) => open.queue(Queued::Answer(answer)),
            None => self.answer(lane, &answer, sink)?,
        }
        Ok(true)
    }

    fn answer_of(&mut self, view: &View<'_>, result: &ToolResult) -> Answer {
        let loss = &mut self.out.loss;
        let error = result.error.as_deref();
        let output = parts::output(result.output.as_ref(), error, view.seq, loss);
        let said = if is_string(&output) {
            output.clone()
        } else {
            Json::string(&output).get().to_owned()
        };
        let arguments = parts::object(result.input.as_ref(), "input", view.seq, loss);
        let status = view.notes.status;
        Answer {
            of: call(view, result.call_id.clone(), &result.name, arguments),
            output,
            said,
            is_error: error.is_some() || status.is_some_and(|status| status != Status::Ok),
            duration: view.notes.duration_ms,
        }
    }

    pub(super) fn answer_of_block(
        &mut self,
        view: &View<'_>,
        id: &str,
        content: Option<&Json>,
    ) -> Answer {
        let loss = &mut self.out.loss;
        loss.inferred("tool_result.is_error", view.seq);
        Answer {
            of: call(view, id.into(), "", "{}".to_owned()),
            output: parts::output(content, None, view.seq, loss),
            said: parts::said(content),
            is_error: false,
            duration: None,
        }
    }

    pub(super) fn begin(
        &mut self,
        used: &Use,
        parent: ContentId,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let payload = Object::new()
            .text("tool_name", &used.name)
            .text("tool_call_id", &used.id)
            .raw("arguments", &used.arguments)
            .end();
        let making = Making::of(Kind::ToolCall, used.seq, used.when.at, &used.notes, payload);
        if let Some(record) = self.out.put(making, Some(parent), sink)? {
            self.calls.begin(&used.id, record, used.when);
        }
        Ok(())
    }

    /// Writes what a tool gave back, behind its call.
    pub(super) fn answer(
        &mut self,
        lane: usize,
        answer: &Answer,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let used = &answer.of;
        if !self.calls.is_open(&used.id) {
            // The call may be held in another conversation.
            for other in 0..self.lanes.len() {
                let open = &self.lanes[other].open;
                if open
                    .as_ref()
                    .is_some_and(|call| call.called.contains(&used.id))
                {
                    self.close(other, sink)?;
                }
            }
        }
        if !self.calls.is_open(&used.id) {
            self.make_up(lane, used, sink)?;
        }
        let Some((call, began)) = self.calls.end(&used.id) else {
            self.out
                .loss
                .dropped("tool_result whose call cannot be written", used.seq);
            return Ok(());
        };
        let latency = Latency::of(answer.duration, began, used.when);
        latency.count("tool_result", used.seq, &mut self.out.loss);
        let payload = Object::new()
            .text("tool_call_id", &used.id)
            .raw("output", &answer.output)
            .flag("is_error", answer.is_error)
            .number("latency_ms", latency.millis())
            .end();
        let made = Making::of(
            Kind::ToolResult,
            used.seq,
            used.when.at,
            &used.notes,
            payload,
        );
        let making = Making {
            marks: made.marks.clone().and(&latency.mark()),
            ..made
        };
        let lane = &mut self.lanes[lane];
        if let Some(record) = self.out.put(making, Some(call), sink)? {
            lane.cursor = record;
        }
        let part = parts::tool_result_part(&used.id, &answer.said, answer.is_error);
        let message = parts::message("user", &[part], None);
        lane.history.push(message, used.notes.flags.superseded);
        lane.asked = used.when;
        Ok(())
    }

    /// A result without a call: the log begins behind it, or lacks it. That a tool was called is certain, and
    /// that a model asked for it; so a call is put in its place that says no more.
    fn make_up(&mut self, lane: usize, used: &Use, sink: &mut dyn Sink) -> io::Result<()> {
        self.out
            .loss
            .inferred("calls of which only the result is there", used.seq);
        // When it was made is not known.
        let used = Use {
            when: When::unknown(used.when.at),
            ..used.clone()
        };
        let mut call = Call::new(&used.notes, used.seq, used.when, Usage::default());
        call.made_up = true;
        call.stop = Stop::ToolUse;
        call.say(parts::tool_use_part(&used.id, &used.name, &used.arguments));
        call.called.insert(used.id.clone());
        call.queue(Queued::Use(used));
        let before = self.lanes[lane].open.replace(call);
        self.close(lane, sink)?;
        self.lanes[lane].open = before;
        Ok(())
    }
}

pub(super) fn call(view: &View<'_>, id: ToolCallId, name: &str, arguments: String) -> Use {
    Use {
        seq: view.seq,
        when: When::of(view),
        notes: Notes {
            attachments: Vec::new(),
            ..view.notes.clone()
        },
        id,
        name: name.to_owned(),
        arguments,
    }
}

/// An id for a call that has none.
fn given(name: &str, seq: u64) -> ToolCallId {
    format!("{}{seq}", given_to(name)).into()
}

fn given_to(name: &str) -> String {
    format!("{GIVEN}{name}-")
}
