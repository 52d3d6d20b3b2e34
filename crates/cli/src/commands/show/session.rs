//! A session as a conversation.

use std::io::{self, Write};

use anstyle::Style;
use quipu_model::{
    Block, Body, Content, Event, Money, Note, NoteKind, Notes, Status, ToolCall, ToolResult,
};
use quipu_store::catalogue::TranscriptRow;
use serde_json::Value;

use super::ahead::Ahead;
use super::{diff, tool};
use crate::args::Show;
use crate::commands::render::{Days, write_day};
use crate::commands::stats::told;
use crate::error::Result;
use crate::terminal::{
    BOLD, CYAN, DIM, Drawing, GREEN, RED, YELLOW, bytes, clean, clean_line, count, duration,
    expand, fit, fit_path, tokens, width_of, wrap,
};
use crate::when;

/// How much is shown of each, in lines, unless all of it is asked for.
const PROMPT: usize = 30;
const REPLY: usize = 60;
const THOUGHT: usize = 2;
const OUTPUT: usize = 3;
const FAILURE: usize = 6;
const CHANGE: usize = 14;

/// How a session is shown.
pub(super) struct View<'v> {
    args: &'v Show,
    columns: usize,
    drawing: Drawing,
}

/// Who speaks.
#[derive(Clone, PartialEq, Eq)]
enum Speaker {
    Nobody,
    Person,
    Program,
    Agent(Option<String>),
}

impl<'v> View<'v> {
    pub(super) fn new(args: &'v Show, columns: usize) -> Self {
        Self {
            args,
            columns,
            drawing: Drawing::for_locale(),
        }
    }

    /// So many lines, or all of them.
    fn most(&self, lines: usize) -> usize {
        if self.args.full { usize::MAX } else { lines }
    }

    /// What is known of the session as a whole.
    pub(super) fn header(
        &self,
        out: &mut impl Write,
        row: &TranscriptRow,
        children: u64,
    ) -> io::Result<()> {
        let title = row.title.as_deref().unwrap_or("a session without a title");
        writeln!(out, "{BOLD}{}{BOLD:#}", fit(title, self.columns))?;
        let mut agent = row.agent.clone();
        if let Some(version) = &row.agent_version {
            agent = format!("{agent} {version}");
        }
        let mut place = vec![agent];
        place.extend(row.cwd.clone());
        place.extend(row.branch.clone());
        self.facts(out, &place)?;

        let mut figures = Vec::new();
        let from = row.started_at.and_then(when::of_millis);
        let to = row.ended_at.and_then(when::of_millis);
        if let Some(from) = from {
            let mut time = when::local(from);
            if let Some(to) = to {
                let millis = u64::try_from(to.as_millisecond() - from.as_millisecond());
                if let Some(millis) = millis.ok().filter(|millis| *millis > 0) {
                    time = format!("{time}, {}", duration(millis));
                }
            }
            figures.push(time);
        }
        let counts = &row.figures;
        for (n, what) in [
            (counts.prompts, "prompt"),
            (counts.tool_calls, "tool call"),
            (children, "sub-agent"),
            (counts.compactions, "compaction"),
            (counts.errors, "error"),
        ] {
            if n > 0 {
                figures.push(count(n, what));
            }
        }
        for (n, what) in [(counts.failures, "failed"), (counts.denials, "denied")] {
            if n > 0 {
                figures.push(format!("{n} {what}"));
            }
        }
        self.facts(out, &figures)?;

        let mut spent = row.models.clone();
        spent.retain(|model| !model.is_empty());
        let usage = &row.usage;
        let buckets = [
            (usage.input, "in"),
            (usage.cache_read, "from cache"),
            (usage.cache_write, "to cache"),
            (usage.output, "out"),
        ];
        let buckets: Vec<String> = buckets
            .iter()
            .filter_map(|(n, what)| {
                n.filter(|n| *n > 0)
                    .map(|n| format!("{} {what}", tokens(n)))
            })
            .collect();
        if !buckets.is_empty() {
            spent.push(format!("tokens: {}", buckets.join(", ")));
        }
        if let Some(cost) = &row.vendor_cost {
            let cost = Money::parse(cost).map_or_else(|| format!("${cost}"), told);
            spent.push(format!("{cost} by the agent's own count"));
        }
        self.facts(out, &spent)?;

        let mut links = vec![format!("session {}", row.run_id)];
        links.extend(crate::commands::list::submitted(row));
        if let Some(parent) = &row.parent {
            links.push(format!("sub-agent of {parent}"));
        }
        if let Some(from) = &row.forked_from {
            links.push(format!("forked from {from}"));
        }
        if let Some(of) = &row.copy_of {
            let events = count(row.copied_events, "event");
            links.push(if row.duplicate {
                format!("all of it is a copy of {of}")
            } else {
                format!("{events} copied from {of}")
            });
        }
        if row.reconstructed {
            links.push("put together from the history of prompts; the log is gone".to_owned());
        }
        self.facts(out, &links)?;
        let part = row.part.as_ref().map(|part| format!(" ({part})"));
        let log = format!("{}{}", row.path.display(), part.unwrap_or_default());
        self.facts(out, &[log])
    }

    /// Facts, as many on a line as fit. One that does not fit at all stays whole, to be copied.
    fn facts(&self, out: &mut impl Write, facts: &[String]) -> io::Result<()> {
        let dot = self.drawing.dot;
        let mut line = String::new();
        for fact in facts {
            let fact = clean(fact).replace(['\n', '\t'], " ");
            let width = width_of(&line) + width_of(dot) + width_of(&fact);
            if !line.is_empty() && width > self.columns {
                writeln!(out, "{DIM}{line}{DIM:#}")?;
                line.clear();
            }
            if !line.is_empty() {
                line.push_str(dot);
            }
            line.push_str(&fact);
        }
        if line.is_empty() {
            return Ok(());
        }
        writeln!(out, "{DIM}{line}{DIM:#}")
    }

    /// The conversation: who said what, and what tools did.
    pub(super) fn conversation(
        &self,
        out: &mut impl Write,
        row: &TranscriptRow,
        ahead: &mut Ahead<'_>,
    ) -> Result<()> {
        let (mut speaker, mut model) = (Speaker::Nobody, None);
        let mut days = Days::since(row.started_at.and_then(when::of_millis));
        // Once in a turn is enough to know.
        let mut withheld = false;
        let (folded, instructions) = self.instructions(ahead)?;
        while ahead.advance()? {
            let event = &*quipu_formats::plain::plain(ahead.event());
            let notes: &Notes = &event.annotations;
            if step(out, event, &event.body)? {
                speaker = Speaker::Nobody;
                continue;
            }
            let now = match &event.body {
                Body::UserMessage(_) if !notes.flags.synthetic => Speaker::Person,
                Body::UserMessage(_) | Body::SystemMessage(_) => Speaker::Program,
                Body::Note(note) if !matters(note.kind) => continue,
                Body::Note(_) => speaker.clone(),
                _ => Speaker::Agent(notes.subagent_id.clone().map(Into::into)),
            };
            let is_withheld = is_withheld(event);
            if is_withheld && withheld {
                continue;
            }
            withheld = (withheld || is_withheld) && now != Speaker::Person;
            if let Some(day) = days.changed(event) {
                writeln!(out)?;
                write_day(out, day)?;
                speaker = Speaker::Nobody;
            }
            // A prompt is set off even from a prompt before it.
            let is_note = matches!(event.body, Body::Note(_));
            let is_folded = folded.is_some_and(|last| event.seq <= last);
            if (now != speaker || now == Speaker::Person) && !is_note {
                let other_model = notes.model.is_some() && notes.model != model;
                if other_model {
                    model.clone_from(&notes.model);
                }
                let shown = model.as_deref().filter(|_| other_model);
                self.speaker(out, &now, &row.agent, shown, event)?;
                if is_folded && speaker != Speaker::Program {
                    let more = self.drawing.more;
                    let lines = count(instructions, "line");
                    writeln!(out, "  {DIM}{more} {lines} of instructions{DIM:#}")?;
                }
                speaker = now;
            }
            if is_folded && !is_note {
                continue;
            }
            match &event.body {
                Body::Note(note) => self.note(out, note, notes, &mut model)?,
                Body::SystemMessage(blocks) => self.blocks(out, blocks, DIM, THOUGHT)?,
                Body::UserMessage(blocks) if notes.flags.synthetic => {
                    self.blocks(out, blocks, DIM, THOUGHT)?;
                }
                Body::UserMessage(blocks) => self.blocks(out, blocks, BOLD, PROMPT)?,
                Body::AssistantMessage(blocks) => {
                    let style = if notes.flags.superseded {
                        DIM
                    } else {
                        Style::new()
                    };
                    self.blocks(out, blocks, style, REPLY)?;
                }
                Body::ToolCall(call) => {
                    self.call(out, call, notes, ahead.result(), row.cwd.as_deref())?;
                }
                Body::ToolResult(result) => self.orphan(out, result, notes)?,
                _ => {}
            }
            for attachment in &notes.attachments {
                let mime = fit(&attachment.mime, 40);
                writeln!(out, "  {DIM}[{mime} {}]{DIM:#}", bytes(attachment.bytes))?;
            }
        }
        Ok(())
    }

    /// The last event of what programs say before anyone else, and how many lines that has, when it is more than is
    /// shown of one.
    fn instructions(&self, ahead: &mut Ahead<'_>) -> Result<(Option<u64>, u64)> {
        fn said(event: &Event) -> Option<&[Block]> {
            match &event.body {
                Body::SystemMessage(blocks) => Some(blocks),
                Body::UserMessage(blocks) if event.annotations.flags.synthetic => Some(blocks),
                _ => None,
            }
        }
        if self.args.full {
            return Ok((None, 0));
        }
        let is_note = |event: &Event| matches!(event.body, Body::Note(_));
        let beginning = ahead.beginning(|event| is_note(event) || said(event).is_some())?;
        let (mut last, mut lines) = (None, 0);
        for event in beginning {
            let Some(blocks) = said(event) else {
                continue;
            };
            last = Some(event.seq);
            for block in blocks {
                if let Content::Text(text) | Content::Command(text) | Content::Stream(text) =
                    &block.content
                {
                    lines += text.trim().lines().count();
                }
            }
        }
        if lines <= THOUGHT {
            return Ok((None, 0));
        }
        Ok((last, lines as u64))
    }

    /// The line before what someone says.
    fn speaker(
        &self,
        out: &mut impl Write,
        speaker: &Speaker,
        agent: &str,
        model: Option<&str>,
        event: &Event,
    ) -> io::Result<()> {
        let flags = event.annotations.flags;
        let (style, mark, name) = match speaker {
            Speaker::Person => (CYAN, self.drawing.person, "user".to_owned()),
            Speaker::Program | Speaker::Nobody => (DIM, self.drawing.person, "context".to_owned()),
            Speaker::Agent(None) => (GREEN, self.drawing.agent, agent.to_owned()),
            Speaker::Agent(Some(sub)) => (
                GREEN,
                self.drawing.agent,
                format!("sub-agent {}", fit(sub, 40)),
            ),
        };
        write!(out, "\n{style}{mark} {name}{style:#}")?;
        if let Some(model) = model {
            write!(out, " {DIM}{}{DIM:#}", fit(model, 60))?;
        }
        let time = if flags.undated {
            when::UNDATED.to_owned()
        } else {
            when::local_time(event.timestamp)
        };
        write!(out, " {DIM}{time}{DIM:#}")?;
        if flags.superseded {
            write!(out, " {YELLOW}(superseded){YELLOW:#}")?;
        }
        writeln!(out)
    }

    fn blocks(
        &self,
        out: &mut impl Write,
        blocks: &[Block],
        style: Style,
        most: usize,
    ) -> io::Result<()> {
        let mut withheld = false;
        for block in blocks {
            match &block.content {
                Content::Text(text) | Content::Command(text) | Content::Stream(text) => {
                    self.prose(out, "  ", text, style, self.most(most))?;
                }
                Content::Thinking(text) if text.trim().is_empty() => {
                    if std::mem::replace(&mut withheld, true) {
                        continue;
                    }
                    let mark = self.drawing.thought;
                    writeln!(out, "  {DIM}{mark} reasoning, withheld{DIM:#}")?;
                }
                Content::Thinking(text) => {
                    let first = format!("  {} ", self.drawing.thought);
                    self.prose(out, &first, text, DIM, self.most(THOUGHT))?;
                }
                Content::ToolUse { name, .. } => self.prose(out, "  ", name, DIM, 1)?,
                Content::ToolResult { content, .. } => {
                    let text = content.as_ref().map(tool::text).unwrap_or_default();
                    self.prose(out, "  ", &text, DIM, self.most(OUTPUT))?;
                }
                Content::Unknown(json) => {
                    self.prose(out, "  ", json.get(), DIM, self.most(OUTPUT))?;
                }
            }
        }
        Ok(())
    }

    /// A text, broken into lines that fit.
    fn prose(
        &self,
        out: &mut impl Write,
        first: &str,
        text: &str,
        style: Style,
        most: usize,
    ) -> io::Result<()> {
        let indent = width_of(first);
        let room = self.columns.saturating_sub(indent);
        let (mut shown, mut left) = (0, 0_u64);
        for line in text.trim_end().lines() {
            if shown >= most {
                left += 1;
                continue;
            }
            let line = clean(line);
            let pieces = wrap(&expand(&line), room);
            for (n, piece) in pieces.iter().enumerate() {
                if shown >= most {
                    // The rest of a line that is long is a line.
                    left += u64::from(n > 0);
                    break;
                }
                if shown == 0 {
                    write!(out, "{style}{first}{style:#}")?;
                } else if !piece.is_empty() {
                    write!(out, "{:indent$}", "")?;
                }
                writeln!(out, "{style}{piece}{style:#}")?;
                shown += 1;
            }
        }
        if left > 0 {
            let more = self.drawing.more;
            let lines = count(left, "more line");
            writeln!(out, "{:indent$}{DIM}{more} {lines}{DIM:#}", "")?;
        }
        Ok(())
    }

    /// A tool call and how it ended.
    fn call(
        &self,
        out: &mut impl Write,
        call: &ToolCall,
        notes: &Notes,
        result: Option<&Event>,
        cwd: Option<&str>,
    ) -> io::Result<()> {
        let ended = result.map(|event| (tool_result(event), &*event.annotations));
        let input = tool::value(call.input.as_ref());
        let changes = diff::of(&input);
        let told = tool::telling(&input);
        let (style, word) = match &ended {
            None => (YELLOW, "no result"),
            Some((result, notes)) => status(*result, notes),
        };
        let mut end = word.to_owned();
        let millis = ended.as_ref().and_then(|(_, notes)| notes.duration_ms);
        if let Some(millis) = millis.filter(|millis| *millis > 0) {
            end = format!("{end}, {}", duration(millis));
        }
        if notes.flags.superseded {
            end.push_str(", superseded");
        }
        if let Some(changes) = &changes {
            end = format!("{}  {style}{end}{style:#}", diff::tally(changes));
        } else {
            end = format!("{style}{end}{style:#}");
        }
        let arrow = self.drawing.arrow;
        let name = fit(&call.name, (self.columns / 3).min(40));
        let plain = anstream::adapter::strip_str(&end).to_string();
        let used = 2 + width_of(arrow) + 1 + width_of(&name) + 2 + 2 + width_of(&plain);
        let room = self.columns.saturating_sub(used);
        let text = told.text.as_str();
        let text = if self.args.full {
            clean(text).replace('\n', "\n      ")
        } else if told.is_path {
            fit_path(below(text, cwd), room)
        } else {
            fit(text, room)
        };
        write!(out, "  {arrow} {BOLD}{name}{BOLD:#}")?;
        if !text.is_empty() && (room > 3 || self.args.full) {
            write!(out, "  {text}")?;
        }
        writeln!(out, "  {end}")?;
        if !told.below.is_empty() {
            let text = told.below.join("\n");
            self.prose(out, "      ", &text, Style::new(), self.most(CHANGE))?;
        }
        if let Some(changes) = &changes {
            diff::write(out, changes, 6, self.columns, self.most(CHANGE))?;
        }
        if let Some((Some(result), notes)) = ended {
            // An edit that went well has nothing to add, and neither has a list of things to do.
            let silent = (changes.is_some() || !told.below.is_empty() && text.ends_with(" done"))
                && word == "ok"
                && !self.args.full;
            self.result(out, result, notes, silent)?;
        }
        Ok(())
    }

    fn result(
        &self,
        out: &mut impl Write,
        result: &ToolResult,
        notes: &Notes,
        silent: bool,
    ) -> io::Result<()> {
        if let Some(child) = &notes.child {
            let arrow = self.drawing.arrow;
            writeln!(out, "      {DIM}{arrow} session {child}{DIM:#}")?;
        }
        let (style, word) = status(Some(result), notes);
        let failed = word != "ok";
        let error = result.error.as_deref().filter(|error| !error.is_empty());
        let output = result.output.as_ref().map(tool::text);
        if failed && let Some(error) = error {
            self.output(out, error, style, FAILURE)?;
        }
        let repeated = output.as_deref().map(str::trim) == error.map(str::trim);
        if !silent
            && !repeated
            && let Some(output) = output
        {
            let style = if failed && error.is_none() {
                style
            } else {
                DIM
            };
            let most = if failed { FAILURE } else { OUTPUT };
            self.output(out, &output, style, most)?;
        }
        Ok(())
    }

    /// What a tool said; blank lines are not worth the room.
    fn output(
        &self,
        out: &mut impl Write,
        text: &str,
        style: Style,
        most: usize,
    ) -> io::Result<()> {
        if self.args.full {
            return self.prose(out, "      ", text, style, usize::MAX);
        }
        let text = tool::without_figures(text);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        self.prose(out, "      ", &lines.join("\n"), style, most)
    }

    /// A result whose call is not shown.
    fn orphan(&self, out: &mut impl Write, result: &ToolResult, notes: &Notes) -> io::Result<()> {
        let (style, word) = status(Some(result), notes);
        let name = fit(&result.name, 40);
        let name = if name.is_empty() { "a tool" } else { &name };
        writeln!(
            out,
            "  {DIM}result of{DIM:#} {BOLD}{name}{BOLD:#}  {style}{word}{style:#}"
        )?;
        self.result(out, result, notes, false)
    }

    fn note(
        &self,
        out: &mut impl Write,
        note: &Note,
        notes: &Notes,
        model: &mut Option<String>,
    ) -> io::Result<()> {
        let style = if note.kind == NoteKind::Error {
            RED
        } else {
            DIM
        };
        let raw = tool::value(note.raw.as_ref());
        if note.kind == NoteKind::ModelChange
            && let Some(to) = notes.model.clone().or_else(|| model_in(&raw, &MODEL_TO, 0))
        {
            let from = model_in(&raw, &MODEL_FROM, 0).or_else(|| model.clone());
            let text = match from.filter(|from| *from != to) {
                Some(from) => format!("model: {from} {} {to}", self.drawing.arrow),
                None if model.as_ref() == Some(&to) => return Ok(()),
                None => format!("model {to}"),
            };
            *model = Some(to);
            return self.prose(out, "  -- ", &text, style, 1);
        }
        let first = format!("  -- {}: ", note.kind.as_str().replace('_', " "));
        let text = match (&note.text, &note.raw) {
            (Some(text), _) => text.clone(),
            (None, Some(raw)) if self.args.full => raw.get().to_owned(),
            (None, Some(_)) => tool::short(&raw),
            (None, None) => String::new(),
        };
        let text = if text.trim().is_empty() { "." } else { &text };
        self.prose(out, &first, text, style, self.most(THOUGHT))
    }
}

/// Where records of a change say which model it is now, and which it was.
const MODEL_TO: [&str; 12] = [
    "newModel",
    "new_model",
    "toModel",
    "to_model",
    "fallbackModel",
    "fallback_model",
    "modelId",
    "model_id",
    "modelID",
    "currentModelId",
    "model",
    "to",
];
const MODEL_FROM: [&str; 8] = [
    "previousModel",
    "previous_model",
    "oldModel",
    "old_model",
    "fromModel",
    "from_model",
    "originalModel",
    "from",
];

/// The name of a model in a record, under one of these names.
fn model_in(value: &Value, names: &[&str], depth: usize) -> Option<String> {
    /// Records do not nest deeper before they say what they are about.
    const DEEPEST: usize = 3;
    let fields = value.as_object()?;
    let here = names.iter().find_map(|name| match fields.get(*name)? {
        Value::String(model) if !model.is_empty() => Some(model.clone()),
        Value::Object(model) => ["id", "modelID", "model", "name"]
            .iter()
            .find_map(|name| model.get(*name)?.as_str())
            .map(str::to_owned),
        _ => None,
    });
    here.or_else(|| {
        let mut inner = fields.values().filter(|_| depth < DEEPEST);
        inner.find_map(|value| model_in(value, names, depth + 1))
    })
}

/// A path as it is seen from the session's directory, when it is below it.
fn below<'p>(path: &'p str, cwd: Option<&str>) -> &'p str {
    let cwd = cwd.unwrap_or_default().trim_end_matches('/');
    let inside = path
        .strip_prefix(cwd)
        .and_then(|rest| rest.strip_prefix('/'));
    inside
        .filter(|inside| !cwd.is_empty() && !inside.is_empty())
        .unwrap_or(path)
}

/// Notes that a reader of the conversation has to know.
/// Says that a step of a run began, or why it failed; `false` for everything else.
fn step(out: &mut impl Write, event: &Event, body: &Body) -> io::Result<bool> {
    let path = clean_line(&event.place.path, 80);
    match body {
        Body::StepStarted(_) => {
            write!(out, "\n{BOLD}step {path}{BOLD:#}")?;
            if event.place.iteration() > 0 {
                write!(out, " {DIM}#{}{DIM:#}", event.place.iteration())?;
            }
            if let Some(agent) = &event.annotations.subagent_id {
                write!(out, " {DIM}{}{DIM:#}", clean_line(agent, 60))?;
            }
            writeln!(out)?;
        }
        Body::StepCompleted(end) => {
            if let Some(error) = &end.error {
                writeln!(
                    out,
                    "  {RED}step {path} failed: {}{RED:#}",
                    clean_line(error, 200)
                )?;
            }
        }
        Body::RunStarted(_)
        | Body::RunCompleted(_)
        | Body::CallStarted { .. }
        | Body::CallCompleted { .. } => {}
        _ => return Ok(false),
    }
    Ok(true)
}

fn matters(kind: NoteKind) -> bool {
    matches!(
        kind,
        NoteKind::Compaction | NoteKind::Error | NoteKind::Rewind | NoteKind::ModelChange
    )
}

fn is_withheld(event: &Event) -> bool {
    let Body::AssistantMessage(blocks) = &event.body else {
        return false;
    };
    let empty =
        |block: &Block| matches!(&block.content, Content::Thinking(t) if t.trim().is_empty());
    !blocks.is_empty() && blocks.iter().all(empty)
}

fn tool_result(event: &Event) -> Option<&ToolResult> {
    match &event.body {
        Body::ToolResult(result) => Some(result),
        _ => None,
    }
}

/// How a call ended, in a word.
fn status(result: Option<&ToolResult>, notes: &Notes) -> (Style, &'static str) {
    match notes.status {
        Some(Status::Denied) => (YELLOW, "denied"),
        Some(Status::Timeout) => (RED, "timed out"),
        Some(Status::Error) => (RED, "failed"),
        None if result.is_some_and(|result| result.error.is_some()) => (RED, "failed"),
        Some(Status::Ok) | None => (GREEN, "ok"),
    }
}
