//! Events to lines.

use std::collections::HashSet;
use std::io::{self, Write};

use quipu_model::json::Tape;
use quipu_model::{
    Attachment, Block, Body, Content, Event, Header, Json, Note, NoteKind, Notes, Status,
    Timestamp, ToolCall, ToolResult,
};

use super::lines::Items;
use super::{CARRIES, CodexOptions};
use crate::handover;
use crate::handover::content::{Blobs, Output, Part, whole};
use crate::loss::Loss;
use crate::plain;
use crate::projection::Projection;

/// A call whose result is not there yet.
struct Open {
    /// As the log names it.
    id: String,
    /// As it is written.
    written: String,
    /// Whether it was called with a free text, as its result then says too.
    custom: bool,
    seq: u64,
}

/// What was taken back, while it is written.
#[derive(Default)]
struct Void {
    /// How many prompts it has. What comes before the first cannot be taken back.
    turns: u64,
}

/// Writes a rollout.
pub(super) struct Rollout<'w> {
    items: Items<'w>,
    loss: Loss,
    blobs: Blobs,
    /// Whether the session is one of Codex's own.
    native: bool,
    /// Whether what programs told the model is sent.
    instructed: bool,
    /// The model that was named last.
    model: Option<String>,
    open: Vec<Open>,
    /// The ids of calls that are taken.
    taken: HashSet<String>,
    void: Option<Void>,
    last: Timestamp,
}

impl<'w> Rollout<'w> {
    pub(super) fn begin(
        header: &Header,
        options: &CodexOptions,
        out: Box<dyn Write + 'w>,
    ) -> io::Result<Self> {
        let native = header.agent() == Some("codex");
        let mut rollout = Self {
            items: Items::new(header, options, out),
            loss: Loss::default(),
            blobs: Blobs::default(),
            native,
            instructed: native || options.instructions,
            model: None,
            open: Vec::new(),
            taken: HashSet::new(),
            void: None,
            last: super::began(header),
        };
        rollout.loss.header(header, CARRIES);
        rollout.loss.wrapped("session.title", 0);
        if header
            .started_at
            .is_none_or(|at| at < Timestamp::UNIX_EPOCH)
        {
            rollout.loss.inferred("session.started_at", 0);
        }
        if options.cwd.is_none() && header.environment.cwd.is_none() {
            rollout.loss.inferred("environment.cwd", 0);
        }
        rollout.items.meta(header, options)?;
        Ok(rollout)
    }

    /// The model that what follows is from.
    fn speaks(&mut self, notes: &Notes, seq: u64, at: Timestamp) -> io::Result<()> {
        let Some(model) = notes.model.as_ref().filter(|model| !model.is_empty()) else {
            return Ok(());
        };
        if self.model.as_ref() != Some(model) {
            self.model = Some(model.clone());
            self.loss.inferred("turn_context (policies)", seq);
            self.items.context(model, at)?;
        }
        Ok(())
    }

    /// Ends what was taken back.
    fn live(&mut self) -> io::Result<()> {
        if let Some(void) = self.void.take() {
            self.answer()?;
            self.items.rolled_back(void.turns, self.last)?;
        }
        Ok(())
    }

    /// Gives calls that have no result one.
    fn answer(&mut self) -> io::Result<()> {
        for call in std::mem::take(&mut self.open) {
            self.loss.inferred("tool.result", call.seq);
            let at = self.last;
            let text = Json::string("aborted");
            self.result(
                &call.written,
                call.custom,
                Output::Text(text.get().to_owned()),
                call.seq,
                at,
            )?;
        }
        Ok(())
    }

    fn prompt(&mut self, text: &str, at: Timestamp) -> io::Result<()> {
        self.items.message("user", text, at)?;
        self.items.shown("user_message", "message", text, at)
    }

    /// What was thought is shown, and not sent.
    fn thought(&mut self, text: &str, seq: u64, at: Timestamp) -> io::Result<bool> {
        if text.is_empty() {
            self.loss
                .dropped("message.assistant (thinking withheld)", seq);
            return Ok(false);
        }
        self.loss.wrapped("message.assistant (thinking)", seq);
        self.items.shown("agent_reasoning", "text", text, at)?;
        Ok(true)
    }

    fn call(
        &mut self,
        name: &str,
        id: &str,
        input: Option<&Json>,
        dangling: bool,
        seq: u64,
        at: Timestamp,
    ) -> io::Result<()> {
        let number = seq.to_string();
        let run = &self.items.run;
        let mut written = handover::call_id(id, run, &number).unwrap_or_else(|| id.to_owned());
        if self.taken.contains(&written) {
            // Agents may count their calls anew in each turn.
            written = format!("call_{}", handover::short(&["again", run, &number, id]));
        }
        if written != id {
            self.loss.wrapped("tool.call (id)", seq);
        }
        // Those of servers have the name of the server before theirs.
        let (space, own) = match name.rsplit_once('.') {
            Some((space, own)) if self.native && !space.is_empty() => (Some(space), own),
            _ => (None, name),
        };
        let plain = handover::tool_name(own);
        if plain.is_some() {
            self.loss.wrapped("tool.call (name)", seq);
        }
        let own = plain.as_deref().unwrap_or(own);
        let input = input.map_or("null", Json::get);
        let custom = input.starts_with('"');
        let lines = self.items.begin("response_item", at);
        lines
            .raw(if custom {
                r#""type":"custom_tool_call","status":"completed","call_id":"#
            } else {
                r#""type":"function_call","call_id":"#
            })
            .string(&written)
            .field("namespace", space)
            .field("name", Some(own));
        match input {
            "null" => {
                self.loss.inferred("tool.call (input)", seq);
                lines.raw(r#","arguments":"{}""#);
            }
            text if custom => {
                lines.raw(r#","input":"#).raw(&whole(text));
            }
            value => {
                lines.field("arguments", Some(value));
            }
        }
        self.items.end()?;
        self.taken.insert(written.clone());
        let call = Open {
            id: id.to_owned(),
            written,
            custom,
            seq,
        };
        if dangling {
            let before = std::mem::replace(&mut self.open, vec![call]);
            self.last = at;
            self.answer()?;
            self.open = before;
        } else {
            self.open.push(call);
        }
        Ok(())
    }

    /// What a call gave back; `false` when the call is not there.
    fn gave_back(&mut self, id: &str, output: Output, seq: u64, at: Timestamp) -> io::Result<bool> {
        let Some(index) = self.open.iter().position(|open| open.id == id) else {
            return Ok(false);
        };
        let call = self.open.remove(index);
        self.result(&call.written, call.custom, output, seq, at)?;
        Ok(true)
    }

    fn result(
        &mut self,
        id: &str,
        custom: bool,
        output: Output,
        seq: u64,
        at: Timestamp,
    ) -> io::Result<()> {
        let lines = self.items.begin("response_item", at);
        lines
            .raw(if custom {
                r#""type":"custom_tool_call_output","call_id":"#
            } else {
                r#""type":"function_call_output","call_id":"#
            })
            .string(id)
            .raw(r#","output":"#);
        match output {
            Output::Nothing => {
                lines.raw(r#""""#);
            }
            Output::Text(text) => {
                lines.raw(&text);
            }
            Output::Value(value) => {
                self.loss.wrapped("tool.result (output)", seq);
                lines.string(&value);
            }
            Output::Parts(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    lines.raw(if index == 0 { "[" } else { "," });
                    match part {
                        Part::Text(text) => lines
                            .raw(r#"{"type":"input_text","text":"#)
                            .raw(text)
                            .raw("}"),
                        Part::Image { mime, data } => {
                            let url = format!("data:{mime};base64,{data}");
                            lines
                                .raw(r#"{"type":"input_image","image_url":"#)
                                .string(&url)
                                .raw("}")
                        }
                    };
                }
                lines.raw("]");
            }
        }
        self.items.end()
    }

    fn tool_result(
        &mut self,
        result: &ToolResult,
        notes: &Notes,
        seq: u64,
        at: Timestamp,
    ) -> io::Result<bool> {
        let mut output = Output::of(result.output.as_ref(), &mut self.blobs);
        if result.input.is_some() {
            self.loss.dropped("tool.result (input)", seq);
        }
        if let Some(error) = &result.error {
            output = output.with_error(error);
        }
        // A result is a text; that it failed is said in it or nowhere.
        if !matches!(notes.status, None | Some(Status::Ok)) || result.error.is_some() {
            self.loss.wrapped("tool.result (error)", seq);
        }
        self.gave_back(&result.call_id, output, seq, at)
    }

    fn block(
        &mut self,
        block: &Block,
        agent: bool,
        notes: &Notes,
        seq: u64,
        at: Timestamp,
    ) -> io::Result<bool> {
        match &block.content {
            Content::Text(text) if agent => {
                self.items.message("assistant", text, at)?;
                self.items.shown("agent_message", "message", text, at)?;
            }
            Content::Text(text) => self.prompt(text, at)?,
            Content::Thinking(text) => return self.thought(text, seq, at),
            Content::ToolUse { name, id, input } => {
                self.call(name, id, input.as_ref(), notes.flags.dangling, seq, at)?;
            }
            Content::ToolResult { id, content } => {
                let output = Output::of(content.as_ref(), &mut self.blobs);
                if !self.gave_back(id, output, seq, at)? {
                    self.loss.dropped("tool.result (without its call)", seq);
                    return Ok(false);
                }
            }
            Content::Command(text) => {
                self.loss.wrapped("block.command", seq);
                self.prompt(text, at)?;
            }
            Content::Stream(_) => {
                self.loss.dropped("block.stream", seq);
                return Ok(false);
            }
            // It is a text by now.
            Content::Unknown(_) => return Ok(false),
        }
        Ok(true)
    }

    fn blocks(&mut self, blocks: &[Block], agent: bool, event: &Event) -> io::Result<bool> {
        let mut any = false;
        for block in blocks {
            any |= self.block(block, agent, &event.annotations, event.seq, event.timestamp)?;
        }
        Ok(any)
    }

    /// What a program told the model.
    fn instructions(&mut self, blocks: &[Block], seq: u64, at: Timestamp) -> io::Result<bool> {
        let mut any = false;
        for block in blocks {
            let text = match &block.content {
                Content::Text(text) | Content::Command(text) if self.instructed => text,
                _ => continue,
            };
            if text.is_empty() {
                self.loss.dropped("message.system (withheld)", seq);
                continue;
            }
            // What Codex tells the model on the user's side is known by how it begins, so it may stay there.
            self.items.message("developer", text, at)?;
            any = true;
        }
        Ok(any)
    }

    fn note(&mut self, note: &Note, notes: &Notes, seq: u64, at: Timestamp) -> io::Result<bool> {
        if note.kind == NoteKind::Compaction {
            return self.compacted(note, seq, at);
        }
        if note.kind != NoteKind::Attachment {
            return Ok(false);
        }
        let mut any = false;
        for attachment in &notes.attachments {
            if let Some((mime, data)) = self.blobs.image(&attachment.sha256) {
                self.items.image(&mime, &data, at)?;
                any = true;
            }
        }
        Ok(any)
    }

    fn compacted(&mut self, note: &Note, _seq: u64, at: Timestamp) -> io::Result<bool> {
        // Codex's own line says what takes the place of what; images that were taken out of it would be missing.
        if let Some(raw) = note.raw.as_ref().map(Json::get)
            && raw.contains("\"type\":\"compacted\"")
            && !raw.contains("agentlog-blob://")
        {
            let mut tape = Tape::new();
            let payload = tape.read(raw, Json::MAX_DEPTH).ok();
            let payload = payload.and_then(|record| record.get("payload"));
            if let Some(payload) = payload.map(|payload| payload.raw().get())
                && payload.starts_with('{')
            {
                let lines = &mut self.items.lines;
                lines.raw(r#"{"timestamp":"#).time(at);
                lines.raw(r#","type":"compacted","payload":"#).raw(payload);
                lines.raw("}").end()?;
                return Ok(true);
            }
        }
        if !handover::is_summary(note) {
            return Ok(false);
        }
        self.answer()?;
        self.items
            .begin("compacted", at)
            .raw(r#""message":"#)
            .string(note.text.as_deref().unwrap_or_default());
        self.items.end()?;
        Ok(true)
    }

    /// Writes an event; `false` when there is no place for it.
    fn write(&mut self, event: &Event) -> io::Result<bool> {
        let notes: &Notes = &event.annotations;
        let (seq, at) = (event.seq, event.timestamp);
        let is_prompt = matches!(&event.body, Body::UserMessage(blocks)
            if blocks.iter().any(|block| matches!(block.content, Content::Text(_))));
        // The agents of a workflow take turns; none of them is beside another.
        if notes.subagent_id.is_some() && event.place.path.is_empty() {
            // A sub-agent has a file of its own; here it would speak as the agent.
            return Ok(false);
        }
        if notes.flags.superseded {
            match &mut self.void {
                Some(void) => void.turns += u64::from(is_prompt),
                None if is_prompt => {
                    self.answer()?;
                    self.void = Some(Void { turns: 1 });
                }
                // Only whole turns can be taken back.
                None => return Ok(false),
            }
        } else if !matches!(event.body, Body::Note(_)) {
            self.live()?;
        }
        match &event.body {
            Body::UserMessage(blocks) => self.blocks(blocks, false, event),
            Body::AssistantMessage(blocks) => {
                self.speaks(notes, seq, at)?;
                self.blocks(blocks, true, event)
            }
            Body::ToolCall(ToolCall {
                name,
                call_id,
                input,
                ..
            }) => {
                self.speaks(notes, seq, at)?;
                self.call(name, call_id, input.as_ref(), notes.flags.dangling, seq, at)?;
                Ok(true)
            }
            Body::ToolResult(result) => self.tool_result(result, notes, seq, at),
            Body::SystemMessage(blocks) => self.instructions(blocks, seq, at),
            Body::Note(note) => self.note(note, notes, seq, at),
            _ => Ok(false),
        }
    }
}

impl Projection for Rollout<'_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.blobs.take(attachment, bytes);
        Ok(())
    }

    fn event(&mut self, given: &Event) -> io::Result<()> {
        let event = &*plain::plain(given);
        let notes: &Notes = &event.annotations;
        let seq = event.seq;
        self.loss.events += 1;
        self.loss.fields(event, CARRIES);
        if handover::is_finer(event.timestamp) {
            self.loss.wrapped("time (milliseconds)", seq);
        }
        let carried = self.write(event)?;
        if let Some(usage) = notes.usage.filter(handover::counts) {
            self.speaks(notes, seq, event.timestamp)?;
            self.items.tokens(&usage, event.timestamp)?;
        }
        if carried || handover::is_counter(event) {
            self.loss.carried += 1;
            plain::count(given, &mut self.loss);
        } else {
            self.loss.dropped(plain::name(given), seq);
        }
        for _ in 0..self.blobs.settle(&notes.attachments) {
            self.loss.dropped("attachment bytes", seq);
        }
        self.last = event.timestamp;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.answer()?;
        self.live()?;
        self.items.lines.finish()?;
        Ok(self.loss)
    }
}
