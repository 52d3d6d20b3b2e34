//! What was said: messages, and their part in calls to models.

use std::io;

use quipu_model::{Block, Content, Event, ToolCall, ToolResult};

use super::lane::{Lane, Spent};
use super::marks::SpanFacts;
use super::span::{Nanos, Span};
use super::talk::Fit;
use super::tracer::{Holder, Tracer};
use super::{CONTENT, Convention};

impl Tracer<'_> {
    /// Counts content that nobody asked for.
    pub(super) fn unasked(&mut self, has_content: bool, seq: u64) {
        if has_content && !self.facts.content {
            self.loss.dropped(CONTENT, seq);
        }
    }

    pub(super) fn told(
        &mut self,
        event: &Event,
        role: &str,
        blocks: &[Block],
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        let lane = self.lane(event)?;
        let named = self.lanes[lane].chat.as_ref();
        let named = named.is_some_and(|chat| chat.model_call.is_some());
        // What a program puts in while an answer comes in does not end the answer.
        if role == "user" || !named {
            self.close(lane)?;
        }
        self.unasked(!blocks.is_empty(), event.seq);
        for block in blocks {
            if let Content::ToolResult { id, content } = &block.content
                && !id.is_empty()
            {
                self.result_block(event, id, content.as_ref(), at)?;
            }
        }
        if self.facts.content {
            self.first_asked(role, blocks);
            let is_system = role == "system" && self.facts.convention == Convention::GenAi;
            let lane = &mut self.lanes[lane];
            let first =
                is_system && !lane.was_called && lane.chat.is_none() && lane.input.is_empty();
            let talk = if first {
                &mut lane.system
            } else {
                &mut lane.input
            };
            talk.begin(role);
            for block in blocks {
                talk.block(&block.content);
            }
            talk.end(None);
            lane.was_told = true;
            if blocks.iter().any(is_odd) {
                self.loss.wrapped(ODD, event.seq);
            }
        }
        self.mark(event, SpanFacts::default());
        let parent = self.span_of(holder).id;
        let waiting = &mut self.lanes[lane].waiting;
        let span = waiting.get_or_insert_with(|| Span::stand_in(parent, event.seq, at));
        self.out
            .event(span, event.body.type_word(), at, &self.scratch)?;
        let lane = &mut self.lanes[lane];
        lane.asked_at = Some(at);
        lane.spent.add(Spent::of(&event.annotations));
        Ok(())
    }

    fn first_asked(&mut self, role: &str, blocks: &[Block]) {
        if role == "user" && self.first_asked.is_none() && self.is_on_root() {
            self.first_asked = first_text(blocks, self.facts.room);
        }
    }

    /// Whether the root has what was asked and answered.
    fn is_on_root(&self) -> bool {
        self.facts.content && self.facts.convention == Convention::OpenInference
    }

    pub(super) fn answered(
        &mut self,
        event: &Event,
        blocks: &[Block],
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        let lane = self.lane(event)?;
        self.opened(lane, event, holder, at)?;
        self.unasked(!blocks.is_empty(), event.seq);
        if self.is_on_root()
            && event.annotations.subagent_id.is_none()
            && let Some(text) = first_text(blocks, self.facts.room)
        {
            self.last_said = Some(text);
        }
        let wanted = self.facts.content;
        let Lane { chat, output, .. } = &mut self.lanes[lane];
        if let Some(chat) = chat {
            if wanted {
                output.begin("assistant");
            }
            for block in blocks {
                chat.said = true;
                let is_new = match &block.content {
                    Content::ToolUse { id, .. } => chat.is_new_call(id),
                    _ => true,
                };
                if wanted && is_new {
                    output.block(&block.content);
                }
            }
        }
        if wanted && blocks.iter().any(is_odd) {
            self.loss.wrapped(ODD, event.seq);
        }
        for (n, block) in blocks.iter().enumerate() {
            match &block.content {
                Content::ToolUse { name, id, input } if !id.is_empty() => {
                    self.use_block(event, n, (id, name, input.as_ref()), at)?;
                }
                Content::ToolResult { id, content } if !id.is_empty() => {
                    self.result_block(event, id, content.as_ref(), at)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A call of a tool is part of what a model says. It begins a call to one only where it is known to be
    /// of one: a router sees tools, not models.
    pub(super) fn called_by_model(
        &mut self,
        event: &Event,
        call: &ToolCall,
        holder: Holder,
        at: Nanos,
    ) -> io::Result<()> {
        let notes = &event.annotations;
        let lane = self.lane(event)?;
        let known = notes.model_call.is_some() || notes.model.is_some() || notes.usage.is_some();
        let open = self.lanes[lane].chat.as_ref();
        if !known && !open.is_some_and(|chat| chat.goes_on(notes)) {
            self.lanes[lane].spent.add(Spent::of(notes));
            return Ok(());
        }
        self.opened(lane, event, holder, at)?;
        let Lane { chat, output, .. } = &mut self.lanes[lane];
        if let Some(chat) = chat
            && chat.is_new_call(&call.call_id)
            && self.facts.content
        {
            output.begin("assistant");
            output.call(&call.call_id, &call.name, call.input.as_ref());
        }
        Ok(())
    }

    /// What a tool gave back is what the model is asked next.
    pub(super) fn asked_by_tool(
        &mut self,
        event: &Event,
        result: &ToolResult,
        at: Nanos,
    ) -> io::Result<()> {
        let lane = self.lane(event)?;
        let open = self.lanes[lane].chat.as_ref();
        if open.is_none_or(|chat| chat.model_call.is_none()) {
            self.close(lane)?;
        }
        let lane = &mut self.lanes[lane];
        if self.facts.content {
            lane.input.begin("tool");
            let (output, error) = (result.output.as_ref(), result.error.as_deref());
            lane.input.response(&result.call_id, output, error);
            lane.input.end(None);
        }
        lane.asked_at = Some(at);
        lane.spent.add(Spent::of(&event.annotations));
        Ok(())
    }
}

/// How blocks are counted that the conventions have no word for.
const ODD: &str = "commands and pieces of streams, as parts of a message";

fn is_odd(block: &Block) -> bool {
    matches!(block.content, Content::Command(_) | Content::Stream(_))
}

fn first_text(blocks: &[Block], room: usize) -> Option<String> {
    blocks.iter().find_map(|block| match &block.content {
        Content::Text(text) => Some(Fit::new(text, room).to_text()),
        _ => None,
    })
}
