//! Calls of tools as spans: from the call to its result.

use std::io;

use quipu_model::{Event, Json, Status, ToolCall, ToolResult};

use super::Convention;
use super::facts::Kind;
use super::ids::{Of, SpanId};
use super::marks::{self, SpanFacts};
use super::provider::OTHER;
use super::span::{Nanos, Span};
use super::talk::{self, Fit};
use super::tools::OpenTool;
use super::tracer::{Holder, Tracer, before};

/// How it is counted that an event only says again what another has said.
const TWICE: &str = "calls and results that two channels report, as one";

/// What a call asks for: its id, the tool and the arguments.
type Asked<'a> = (&'a str, &'a str, Option<&'a Json>);

/// What a tool gave back.
#[derive(Clone, Copy)]
struct Given<'a> {
    output: Option<&'a Json>,
    error: Option<&'a str>,
    status: Option<Status>,
}

impl Given<'_> {
    /// What kind of failure it was.
    fn fault(self) -> Option<&'static str> {
        match (self.status, self.error) {
            (Some(Status::Denied), _) => Some("denied"),
            (Some(Status::Timeout), _) => Some("timeout"),
            (Some(Status::Error), _) | (None | Some(Status::Ok), Some(_)) => Some(OTHER),
            (None | Some(Status::Ok), None) => None,
        }
    }
}

impl Tracer<'_> {
    pub(super) fn tool_called(
        &mut self,
        event: &Event,
        call: &ToolCall,
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        self.unasked(call.input.is_some(), event.seq);
        self.called_by_model(event, call, holder, at)?;
        let asked = (
            call.call_id.as_str(),
            call.name.as_str(),
            call.input.as_ref(),
        );
        if !self.is_open_again(event, asked, at)? {
            self.begin_call(event, 0, asked, holder, at)?;
        }
        Ok(())
    }

    /// A call as a model wrote it, in a message.
    pub(super) fn use_block(
        &mut self,
        event: &Event,
        block: usize,
        asked: Asked<'_>,
        at: Nanos,
    ) -> io::Result<()> {
        if self.tools.get(asked.0).is_some() {
            return Ok(());
        }
        let holder = self.holder(event, at)?;
        let part = u64::try_from(block).unwrap_or(0) + 1;
        self.begin_call(event, part, asked, holder, at)
    }

    /// Whether a call is under way already, because another channel told of it. Then this is an event of it.
    fn is_open_again(
        &mut self,
        event: &Event,
        (id, name, _): Asked<'_>,
        at: Nanos,
    ) -> io::Result<bool> {
        if id.is_empty() || self.tools.get(id).is_none() {
            return Ok(false);
        }
        self.loss.wrapped(TWICE, event.seq);
        self.mark(event, SpanFacts::default());
        let (out, scratch) = (&mut self.out, &self.scratch);
        let added = self.tools.change(id, |open| {
            if open.name.is_empty() {
                name.clone_into(&mut open.name);
            }
            open.span.touch(at);
            out.event(&mut open.span, event.body.type_word(), at, scratch)
        });
        added.transpose().map(|_| true)
    }

    fn begin_call(
        &mut self,
        event: &Event,
        part: u64,
        (id, name, input): Asked<'_>,
        holder: Holder,
        at: Nanos,
    ) -> io::Result<()> {
        let mut span = self.call_span(event, part, id, holder, at);
        if let Some(input) = input
            && self.facts.content
        {
            let key = match self.facts.convention {
                Convention::GenAi => "gen_ai.tool.call.arguments",
                Convention::OpenInference => "input.value",
            };
            let cut = talk::json_document(&mut span.attrs, key, input.get(), self.facts.room);
            if self.facts.convention == Convention::OpenInference {
                span.attrs.text("input.mime_type", "application/json");
            }
            self.too_long(cut, event.seq);
        }
        self.tools.begin(OpenTool {
            span,
            id: id.to_owned(),
            name: name.to_owned(),
        });
        while let Some(excess) = self.tools.excess() {
            self.abandon(excess, at)?;
        }
        Ok(())
    }

    fn call_span(&mut self, event: &Event, part: u64, id: &str, holder: Holder, at: Nanos) -> Span {
        let parent = self.span_of(holder).id;
        let span_id = SpanId::of(&self.facts.run, Of::Tool, event.seq, part);
        let mut span = Span::new(span_id, Some(parent), event.seq, at);
        self.facts.begin(Kind::Tool, &mut span.attrs);
        if !id.is_empty() {
            let key = match self.facts.convention {
                Convention::GenAi => "gen_ai.tool.call.id",
                Convention::OpenInference => "tool.id",
            };
            span.attrs.text(key, id);
        }
        marks::write(event, &self.facts, SpanFacts::default(), &mut span.attrs);
        if let Some(child) = &event.annotations.child {
            span.link(child, "child");
        }
        span
    }

    pub(super) fn tool_answered(
        &mut self,
        event: &Event,
        result: &ToolResult,
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        let has_content =
            result.output.is_some() || result.error.is_some() || result.input.is_some();
        self.unasked(has_content, event.seq);
        let id = result.call_id.as_str();
        if self.tools.get(id).is_none() && self.tools.is_ended(id) {
            self.loss.wrapped(TWICE, event.seq);
            self.spent_aside(event)?;
            return self.aside(event, holder, at);
        }
        self.asked_by_tool(event, result, at)?;
        let open = if let Some(mut open) = self.tools.end(id, &result.name) {
            self.mark(event, SpanFacts::default());
            open.span.event(event.body.type_word(), at, &self.scratch);
            if let Some(child) = &event.annotations.child {
                open.span.link(child, "child");
            }
            open
        } else {
            self.only_result(event, result, holder, at)
        };
        let given = Given {
            output: result.output.as_ref(),
            error: result.error.as_deref(),
            status: event.annotations.status,
        };
        self.end_call(open, &result.name, given, event.seq, at)
    }

    /// A result without a call: the log begins behind it, or lacks it.
    fn only_result(
        &mut self,
        event: &Event,
        result: &ToolResult,
        holder: Holder,
        at: Nanos,
    ) -> OpenTool {
        self.loss
            .inferred("calls of which only the result is there", event.seq);
        let begun = before(at, event.annotations.duration_ms);
        let mut span = self.call_span(event, 0, &result.call_id, holder, begun);
        if let Some(input) = &result.input
            && self.facts.content
        {
            let key = match self.facts.convention {
                Convention::GenAi => "gen_ai.tool.call.arguments",
                Convention::OpenInference => "input.value",
            };
            let cut = talk::json_document(&mut span.attrs, key, input.get(), self.facts.room);
            self.too_long(cut, event.seq);
        }
        OpenTool {
            span,
            id: result.call_id.to_string(),
            name: result.name.clone(),
        }
    }

    /// A result as a model was given it, in a message. It ends the call, if nothing else did.
    pub(super) fn result_block(
        &mut self,
        event: &Event,
        id: &str,
        output: Option<&Json>,
        at: Nanos,
    ) -> io::Result<()> {
        let Some(open) = self.tools.end(id, "") else {
            return Ok(());
        };
        let given = Given {
            output,
            error: None,
            status: None,
        };
        self.end_call(open, "", given, event.seq, at)
    }

    fn end_call(
        &mut self,
        open: OpenTool,
        name: &str,
        given: Given<'_>,
        seq: u64,
        at: Nanos,
    ) -> io::Result<()> {
        let OpenTool {
            mut span,
            id,
            name: called,
        } = open;
        self.tools.ended(&id);
        span.touch(at);
        self.name_call(&mut span, if called.is_empty() { name } else { &called });
        if self.facts.content {
            let room = self.facts.room;
            let key = match self.facts.convention {
                Convention::GenAi => "gen_ai.tool.call.result",
                Convention::OpenInference => "output.value",
            };
            let attrs = &mut span.attrs;
            let cut = match (given.output, given.error, self.facts.convention) {
                (None, Some(error), _) => {
                    let fit = Fit::new(error, room);
                    attrs.text_with(key, |out| fit.escape(out));
                    fit.cut
                }
                (None, None, _) => false,
                (Some(json), _, Convention::GenAi) => {
                    talk::json_document(attrs, key, json.get(), room)
                }
                (Some(json), _, Convention::OpenInference) => {
                    let mime = if talk::is_string(json.get()) {
                        "text/plain"
                    } else {
                        "application/json"
                    };
                    attrs.text("output.mime_type", mime);
                    talk::json_text(attrs, key, Some(json), room)
                }
            };
            self.too_long(cut, seq);
        }
        if let Some(kind) = given.fault() {
            span.attrs.text("error.type", kind);
            span.fault = Some(self.fault(kind, given.error.unwrap_or(kind)));
        }
        self.write_call(span)
    }

    fn name_call(&mut self, span: &mut Span, name: &str) {
        span.name = Kind::Tool.name(Some(name));
        match self.facts.convention {
            Convention::GenAi => span.attrs.text("gen_ai.tool.name", name),
            Convention::OpenInference => span.attrs.text("tool.name", name),
        }
    }

    /// Writes a call whose result is not there.
    pub(super) fn abandon(&mut self, open: OpenTool, at: Nanos) -> io::Result<()> {
        let OpenTool { mut span, name, .. } = open;
        self.loss
            .inferred("end of a call that has no result", span.seq);
        span.touch(at.max(span.start));
        self.name_call(&mut span, &name);
        span.attrs.text("quipu.end", "unknown");
        self.write_call(span)
    }

    /// Writes a call. A sub-agent that it began may go on.
    fn write_call(&mut self, span: Span) -> io::Result<()> {
        if self.has_agent(span.id) {
            self.write_outer(span)
        } else {
            self.write(span)
        }
    }
}
