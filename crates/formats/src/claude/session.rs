//! Events to lines.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use quipu_model::json::Tape;
use quipu_model::{
    Attachment, Block, Body, Content, Event, Header, Json, ModelCallId, Note, NoteKind, Notes,
    ToolCall, Usage,
};

use super::chain::{At, Chain, Lane};
use super::{CARRIES, ClaudeOptions};
use crate::ended::Ended;
use crate::handover::content::{Blobs, Output};
use crate::handover::{self, counts};
use crate::loss::Loss;
use crate::plain;
use crate::projection::Projection;

/// A call whose result is not there yet.
pub(super) struct Open {
    /// As the log names it.
    pub(super) id: String,
    /// As it is written.
    pub(super) written: String,
    /// The reply it belongs to.
    pub(super) reply: ModelCallId,
    /// Its line.
    pub(super) line: String,
    pub(super) at: At,
    /// Whether it is known that no result comes.
    pub(super) dangling: bool,
}

/// Writes a session.
pub(super) struct Session<'w> {
    pub(super) chain: Chain<'w>,
    pub(super) loss: Loss,
    pub(super) blobs: Blobs,
    /// Whether the session is one of Claude Code's own.
    native: bool,
    /// Whether what programs told the model is sent.
    instructed: bool,
    /// The model that was named last.
    model: Option<String>,
    /// The reply at hand: the call that its events name, and the id it is written with.
    pub(super) reply: Option<(Option<ModelCallId>, ModelCallId)>,
    /// What the lines of each reply have counted.
    spent: HashMap<ModelCallId, Usage>,
    /// Tokens of a reply whose first events are not sent, for the first one that is.
    owed: Option<(ModelCallId, Usage, At)>,
    pub(super) open: Vec<Open>,
    /// The ids of calls that are taken.
    pub(super) taken: HashSet<String>,
    /// The event that said that the history was condensed, when the summary has not come yet.
    boundary: Option<u64>,
    last: Option<At>,
}

impl<'w> Session<'w> {
    pub(super) fn begin(
        header: &Header,
        options: &ClaudeOptions,
        out: Box<dyn Write + 'w>,
    ) -> io::Result<Self> {
        let native = header.agent() == Some("claude-code");
        let mut session = Self {
            chain: Chain::new(header, options, out),
            loss: Loss::default(),
            blobs: Blobs::default(),
            native,
            instructed: native || options.instructions,
            model: header.totals.models.first().cloned(),
            reply: None,
            spent: HashMap::new(),
            owed: None,
            open: Vec::new(),
            taken: HashSet::new(),
            boundary: None,
            last: None,
        };
        session.loss.header(header, CARRIES);
        session.loss.wrapped("session.title", 0);
        if options.cwd.is_none() && header.environment.cwd.is_none() {
            session.loss.inferred("environment.cwd", 0);
        }
        session.chain.title(&handover::title(header))?;
        let time = header.started_at.unwrap_or_default();
        let at = At { seq: 0, time };
        session
            .chain
            .said(&handover::mark(header), Some(header), at)?;
        Ok(session)
    }

    /// Something on the user's side: what comes next from the model is another reply.
    fn turn(&mut self, lane: Lane<'_>) -> io::Result<()> {
        if lane == Lane::Live {
            self.reply = None;
            self.answer(|open| open.dangling)?;
        }
        Ok(())
    }

    /// Gives calls that get no result one: without it the provider refuses all of the session.
    fn answer(&mut self, which: impl Fn(&Open) -> bool) -> io::Result<()> {
        if !self.open.iter().any(&which) {
            return Ok(());
        }
        let (answered, open) = std::mem::take(&mut self.open).into_iter().partition(which);
        self.open = open;
        let answered: Vec<Open> = answered;
        for call in answered {
            self.loss.inferred("tool.result", call.at.seq);
            let at = self.last.unwrap_or(call.at);
            let output = Json::string("No result of this call was recorded.");
            self.result(
                &call.written,
                Some(&call.line),
                Output::Text(output.get().to_owned()),
                true,
                false,
                Lane::Live,
                at,
            )?;
        }
        Ok(())
    }

    /// The id that a reply is written with.
    fn reply_id(&mut self, notes: &Notes, at: At) -> ModelCallId {
        let call = notes.model_call.clone().filter(|call| !call.is_empty());
        if let Some((named, id)) = &self.reply
            && (*named == call || call.is_none())
        {
            return id.clone();
        }
        let seq = at.seq.to_string();
        let made = || format!("msg_{}", handover::short(&["reply", &self.chain.run, &seq]));
        let id = match &call {
            // Lines of one id are sent as one message. Only Claude Code's own ids can be trusted with that: others may name
            // what goes on over many turns.
            Some(call) if self.native || !self.spent.contains_key(call) => call.clone(),
            _ => made().into(),
        };
        self.spent.entry(id.clone()).or_default();
        self.reply = Some((call, id.clone()));
        id
    }

    /// The id of a reply that is not sent.
    fn other_id(&self, notes: &Notes, lane: Lane<'_>, at: At) -> ModelCallId {
        let call = notes.model_call.clone().filter(|call| !call.is_empty());
        let id = call.unwrap_or_else(|| {
            let seq = at.seq.to_string();
            format!("msg_{}", handover::short(&["reply", &self.chain.run, &seq])).into()
        });
        match lane {
            Lane::Void => format!("{id}-void").into(),
            _ => id,
        }
    }

    /// One block of a reply.
    fn assistant(
        &mut self,
        write: impl FnOnce(&mut Chain<'w>),
        id: &str,
        usage: Option<Usage>,
        notes: &Notes,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<String> {
        if let Some(model) = &notes.model {
            self.model = Some(model.clone());
        }
        let model = self.model.clone().unwrap_or_else(|| {
            self.loss.inferred("model", at.seq);
            "unknown".to_owned()
        });
        let stopped = self.stopped(notes);
        let line = self.chain.begin("assistant", lane);
        self.chain
            .lines
            .raw(r#","message":{"id":"#)
            .string(id)
            .raw(r#","type":"message","role":"assistant","model":"#)
            .string(&model)
            .raw(r#","content":["#);
        write(&mut self.chain);
        self.chain
            .lines
            .raw(r#"],"stop_reason":"#)
            .raw(&stopped)
            .raw(r#","stop_sequence":null"#);
        if let Some(usage) = usage {
            self.chain.usage(&usage);
        }
        self.chain.lines.raw("}");
        if let Some(cost) = notes.cost {
            self.chain
                .lines
                .raw(r#","costUSD":"#)
                .raw(&cost.to_string());
        }
        self.chain.end(&line, at)?;
        Ok(line)
    }

    /// Why a reply ended, in the words of its provider: JSON.
    fn stopped(&self, notes: &Notes) -> String {
        let word = notes.stop_reason.as_deref();
        let word = word.and_then(|word| match Ended::of(word) {
            _ if self.native => Some(word),
            Some(Ended::Filtered) => Some("refusal"),
            Some(Ended::Error | Ended::Whole) | None => None,
            Some(known) => Some(known.in_traces(false)),
        });
        word.map_or_else(
            || "null".to_owned(),
            |word| Json::string(word).get().to_owned(),
        )
    }

    /// One block of a reply that is sent, or of one that a sub-agent gave or that was taken back.
    pub(super) fn reply(
        &mut self,
        write: impl FnOnce(&mut Chain<'w>),
        notes: &Notes,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<(ModelCallId, String)> {
        let id = match lane {
            Lane::Live => self.reply_id(notes, at),
            // Lines of the same id would be sent along.
            _ => self.other_id(notes, lane, at),
        };
        if lane == Lane::Live {
            self.answer(|open| open.reply != id)?;
            self.settle_owed(Some(&id))?;
        }
        let sum = self.spent.entry(id.clone()).or_default();
        if let Some(usage) = &notes.usage {
            sum.add(usage);
        }
        let sum = Some(*sum).filter(|sum| !sum.is_empty());
        let line = self.assistant(write, &id, sum, notes, lane, at)?;
        Ok((id, line))
    }

    /// Pays what is owed: to the reply it is of, or else on a line of its own.
    fn settle_owed(&mut self, reply: Option<&str>) -> io::Result<()> {
        let Some((id, usage, at)) = self.owed.take() else {
            return Ok(());
        };
        if reply == Some(id.as_str()) {
            self.spent.entry(id).or_default().add(&usage);
            return Ok(());
        }
        self.spend(&id, usage, &Notes::default(), at)
    }

    /// Tokens that belong to nothing that is sent, on a line that is not.
    fn spend(&mut self, id: &str, usage: Usage, notes: &Notes, at: At) -> io::Result<()> {
        let id = format!("{id}-usage-{}", at.seq);
        let usage = Some(usage).filter(|usage| !usage.is_empty());
        self.assistant(|_| (), &id, usage, notes, Lane::Aside, at)?;
        Ok(())
    }

    /// What was thought. The provider takes thoughts back only with its own signature, of the very same text.
    fn thought(&mut self, text: &str, notes: &Notes, lane: Lane<'_>, at: At) -> io::Result<()> {
        let sealed = notes.extra.as_ref().filter(|_| self.native);
        if let Some(block) = sealed.and_then(|extra| sealed_block(text, extra)) {
            let write = |chain: &mut Chain<'w>| {
                chain.lines.raw(&block);
            };
            self.reply(write, notes, lane, at)?;
            return Ok(());
        }
        let write = |chain: &mut Chain<'w>| {
            chain
                .lines
                .raw(r#"{"type":"thinking","thinking":"#)
                .string(text)
                .raw(r#","signature":""}"#);
        };
        if lane != Lane::Live {
            self.reply(write, notes, lane, at)?;
            return Ok(());
        }
        self.loss.wrapped("message.assistant (thinking)", at.seq);
        let id = self.reply_id(notes, at);
        if let Some(usage) = notes.usage {
            if self.owed.as_ref().is_some_and(|(owed, ..)| *owed != id) {
                self.settle_owed(None)?;
            }
            let (_, owed, _) = self
                .owed
                .get_or_insert_with(|| (id.clone(), Usage::default(), at));
            owed.add(&usage);
        }
        // Lines of the same id would be sent along.
        let id = format!("{id}-thinking");
        self.assistant(write, &id, None, notes, Lane::Aside, at)?;
        Ok(())
    }

    fn said_by_agent(
        &mut self,
        text: &str,
        notes: &Notes,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<()> {
        // A text that says nothing is refused.
        let lane = if text.trim().is_empty() && lane == Lane::Live {
            self.loss.wrapped("message.assistant (blank)", at.seq);
            Lane::Aside
        } else {
            lane
        };
        let write = |chain: &mut Chain<'w>| {
            chain
                .lines
                .raw(r#"{"type":"text","text":"#)
                .string(text)
                .raw("}");
        };
        if lane == Lane::Aside {
            let id = format!("{}-aside", self.reply_id(notes, at));
            self.assistant(write, &id, notes.usage, notes, lane, at)?;
        } else {
            self.reply(write, notes, lane, at)?;
        }
        Ok(())
    }

    fn said_to_agent(&mut self, text: &str, meta: bool, lane: Lane<'_>, at: At) -> io::Result<()> {
        let lane = match lane {
            Lane::Live if text.trim().is_empty() || (meta && !self.instructed) => {
                self.loss.wrapped(
                    if meta {
                        "message.system"
                    } else {
                        "message.user (blank)"
                    },
                    at.seq,
                );
                Lane::Aside
            }
            lane => lane,
        };
        self.turn(lane)?;
        let line = self.chain.begin("user", lane);
        self.chain
            .lines
            .raw(r#","message":{"role":"user","content":"#)
            .string(text)
            .raw("}");
        if meta {
            self.chain.lines.raw(r#","isMeta":true"#);
        }
        self.chain.end(&line, at)
    }

    fn blocks(
        &mut self,
        blocks: &[Block],
        agent: bool,
        notes: &Notes,
        lane: Lane<'_>,
        at: At,
    ) -> io::Result<()> {
        // Of several blocks the first has what the event counted.
        let rest = Notes {
            usage: None,
            cost: None,
            ..notes.clone()
        };
        for (index, block) in blocks.iter().enumerate() {
            let notes = if index == 0 { notes } else { &rest };
            match &block.content {
                Content::Text(text) if agent => self.said_by_agent(text, notes, lane, at)?,
                Content::Text(text) => self.said_to_agent(text, false, lane, at)?,
                Content::Thinking(text) => self.thought(text, notes, lane, at)?,
                Content::ToolUse { name, id, input } => {
                    self.call(name, id, input.as_ref(), notes, lane, at)?;
                }
                Content::ToolResult { id, content } => {
                    let output = Output::of(content.as_ref(), &mut self.blobs);
                    self.gave_back(id, output, false, false, lane, at)?;
                }
                Content::Command(text) => {
                    self.loss.wrapped("block.command", at.seq);
                    self.said_to_agent(text, false, lane, at)?;
                }
                Content::Stream(text) => {
                    self.loss.wrapped("block.stream", at.seq);
                    self.said_to_agent(text, false, Lane::Aside, at)?;
                }
                // It is a text by now.
                Content::Unknown(_) => {}
            }
        }
        Ok(())
    }

    /// A note; `false` when there is no place for it.
    fn note(&mut self, note: &Note, notes: &Notes, lane: Lane<'_>, at: At) -> io::Result<bool> {
        if lane == Lane::Live && handover::is_summary(note) {
            self.answer(|_| true)?;
            self.reply = None;
            self.chain
                .summary(note.text.as_deref().unwrap_or_default(), at)?;
            if self.boundary.take().is_some() {
                self.loss.carried += 1;
            }
            return Ok(true);
        }
        if note.kind == NoteKind::Compaction && lane == Lane::Live && is_boundary(note) {
            self.forget_boundary();
            self.boundary = Some(at.seq);
            // Counted when the summary comes.
            return Ok(true);
        }
        if note.kind != NoteKind::Attachment || notes.attachments.is_empty() {
            return Ok(false);
        }
        let images: Vec<(String, String)> = notes
            .attachments
            .iter()
            .filter_map(|attachment| self.blobs.image(&attachment.sha256))
            .collect();
        if images.is_empty() {
            return Ok(false);
        }
        self.turn(lane)?;
        for (mime, data) in images {
            let line = self.chain.begin("user", lane);
            self.chain
                .lines
                .raw(r#","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":""#)
                .raw(&mime)
                .raw(r#"","data":"#)
                .string(&data)
                .raw("}}]}");
            self.chain.end(&line, at)?;
        }
        Ok(true)
    }

    fn forget_boundary(&mut self) {
        if let Some(seq) = self.boundary.take() {
            self.loss.dropped("note:compaction", seq);
        }
    }
}

/// Which line of thought an event belongs to. The agents of a workflow take turns; none of them is beside another.
fn lane(event: &Event) -> Lane<'_> {
    let notes = &event.annotations;
    match notes.subagent_id.as_deref() {
        Some(agent) if event.place.path.is_empty() => Lane::Sub(agent),
        _ if notes.flags.superseded => Lane::Void,
        _ => Lane::Live,
    }
}

/// Whether a note says that a summary follows.
fn is_boundary(note: &Note) -> bool {
    note.raw
        .as_ref()
        .is_some_and(|raw| raw.get().contains(r#""subtype":"compact_boundary""#))
}

impl Projection for Session<'_> {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.blobs.take(attachment, bytes);
        Ok(())
    }

    fn event(&mut self, given: &Event) -> io::Result<()> {
        let event = &*plain::plain(given);
        let notes: &Notes = &event.annotations;
        let at = At {
            seq: event.seq,
            time: event.timestamp,
        };
        self.loss.events += 1;
        self.loss.fields(event, CARRIES);
        if handover::is_finer(event.timestamp) {
            self.loss.wrapped("time (milliseconds)", event.seq);
        }
        let lane = lane(event);
        let mut is_reply = false;
        let carried = match &event.body {
            Body::UserMessage(blocks) => {
                self.blocks(blocks, false, notes, lane, at)?;
                !blocks.is_empty()
            }
            Body::AssistantMessage(blocks) => {
                is_reply = !blocks.is_empty();
                self.blocks(blocks, true, notes, lane, at)?;
                is_reply
            }
            Body::ToolCall(ToolCall {
                name,
                call_id,
                input,
                ..
            }) => {
                is_reply = true;
                self.call(name, call_id, input.as_ref(), notes, lane, at)?;
                true
            }
            Body::ToolResult(result) => {
                self.tool_result(result, notes, lane, at)?;
                true
            }
            Body::SystemMessage(blocks) => {
                for block in blocks {
                    let (Content::Text(text)
                    | Content::Thinking(text)
                    | Content::Command(text)
                    | Content::Stream(text)) = &block.content
                    else {
                        self.loss.dropped("message.system (block)", at.seq);
                        continue;
                    };
                    self.said_to_agent(text, true, lane, at)?;
                }
                !blocks.is_empty()
            }
            Body::Note(note) => self.note(note, notes, lane, at)?,
            _ => false,
        };
        let spent = notes.usage.filter(counts);
        if !is_reply && (spent.is_some() || notes.cost.is_some()) {
            let id = format!(
                "msg_{}",
                handover::short(&["spent", &self.chain.run, &at.seq.to_string()])
            );
            self.spend(&id, notes.usage.unwrap_or_default(), notes, at)?;
            self.loss.wrapped("usage (on a line of its own)", at.seq);
        }
        if carried || handover::is_counter(event) {
            self.loss.carried += u64::from(self.boundary != Some(at.seq));
            plain::count(given, &mut self.loss);
        } else {
            self.loss.dropped(plain::name(given), at.seq);
        }
        for _ in 0..self.blobs.settle(&notes.attachments) {
            self.loss.dropped("attachment bytes", at.seq);
        }
        self.last = Some(at);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.forget_boundary();
        self.answer(|_| true)?;
        self.settle_owed(None)?;
        if !self.chain.ends_live
            && let Some(at) = self.last
        {
            self.chain
                .said("The converted session ends here.", None, at)?;
        }
        self.chain.lines.finish()?;
        Ok(self.loss)
    }
}

/// A thought as the provider takes it back; `None` where its seal is not known, or broken by what was taken out.
fn sealed_block(text: &str, extra: &Json) -> Option<String> {
    let mut tape = Tape::new();
    let block = tape.read(extra.get(), Json::MAX_DEPTH).ok()?.get("block")?;
    let seal = |key: &str| {
        block
            .get(key)
            .filter(|seal| seal.as_str().is_some_and(|it| !it.is_empty()))
    };
    if let Some(signature) = seal("signature") {
        let is_whole = !text.contains("[REDACTED:");
        return is_whole.then(|| {
            format!(
                r#"{{"type":"thinking","thinking":{},"signature":{}}}"#,
                Json::string(text).get(),
                signature.raw().get()
            )
        });
    }
    let data = seal("data").filter(|_| text.is_empty())?;
    Some(format!(
        r#"{{"type":"redacted_thinking","data":{}}}"#,
        data.raw().get()
    ))
}
