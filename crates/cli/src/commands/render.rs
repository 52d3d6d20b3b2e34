//! How an event looks to a person.

use std::io::{self, Write};

use quipu_formats::plain;
use quipu_model::{Block, Body, Content, Event, EventType, Json, Note, Step, StepEnd, Timestamp};

use crate::terminal::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean, clean_line, count};
use crate::when;

/// How much of a text is shown unless all of it is asked for.
const SHORT_LINES: usize = 6;
const SHORT_LINE: usize = 160;

/// Notices when the day changes from one event to the next, in the local zone.
#[derive(Debug, Default)]
pub(crate) struct Days(Option<String>);

impl Days {
    /// Begins with a day that was said already.
    pub(crate) fn since(at: Option<Timestamp>) -> Self {
        Self(at.map(when::local_day))
    }

    /// The day of an event, when it is another than that of the one before it.
    pub(crate) fn changed(&mut self, event: &Event) -> Option<&str> {
        if event.annotations.flags.undated {
            return None;
        }
        let day = when::local_day(event.timestamp);
        let is_other = self.0.as_ref().is_some_and(|before| *before != day);
        let day = self.0.insert(day);
        is_other.then_some(day)
    }
}

/// The line before what happened on another day.
pub(crate) fn write_day(out: &mut impl Write, day: &str) -> io::Result<()> {
    writeln!(out, "{DIM}== {day} =={DIM:#}")
}

/// Writes events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renderer {
    /// Whether texts are shown in full.
    pub(crate) full: bool,
}

impl Renderer {
    pub(crate) fn event(self, out: &mut impl Write, event: &Event) -> io::Result<()> {
        Self::begin(out, event)?;
        match (&event.body, plain::note(event)) {
            (Body::Unknown(unknown), _) => {
                writeln!(out)?;
                self.text(out, "payload", unknown.payload.get())?;
            }
            (_, Some(note)) => {
                writeln!(out)?;
                self.note(out, &note)?;
            }
            (body, None) => self.body(out, body)?,
        }
        write_annotations(out, event)
    }

    fn note(self, out: &mut impl Write, note: &Note) -> io::Result<()> {
        if let Some(text) = &note.text {
            self.text(out, "text", text)?;
        }
        match &note.raw {
            Some(raw) if self.full || note.text.is_none() => self.text(out, "record", raw.get()),
            _ => Ok(()),
        }
    }

    /// The number, time, type and place of an event.
    fn begin(out: &mut impl Write, event: &Event) -> io::Result<()> {
        let time = if event.annotations.flags.undated {
            format!("{:<12}", when::UNDATED)
        } else {
            when::local_millis(event.timestamp)
        };
        let style = style_of(event.body.event_type());
        let kind = clean_line(event.body.type_word(), 40);
        write!(
            out,
            "{DIM}{:>6} {time}{DIM:#}  {style}{kind:<18}{style:#}",
            event.seq
        )?;
        if !event.place.path.is_empty() {
            write!(out, "  {}", clean_line(&event.place.path, 80))?;
        }
        if event.place.iteration() > 0 {
            write!(out, "{DIM}#{}{DIM:#}", event.place.iteration())?;
        }
        Ok(())
    }

    fn body(self, out: &mut impl Write, body: &Body) -> io::Result<()> {
        match body {
            Body::RunStarted(Some(step)) | Body::StepStarted(step) => {
                writeln!(out, "  {}", step_name(step))
            }
            Body::CallStarted { child_run_id, step } => {
                writeln!(out, "  {} {BOLD}→ {child_run_id}{BOLD:#}", step_name(step))
            }
            Body::RunCompleted(Some(end)) | Body::StepCompleted(end) => self.end(out, end),
            Body::CallCompleted { child_run_id, end } => {
                write!(out, " {BOLD}→ {child_run_id}{BOLD:#}")?;
                self.end(out, end)
            }
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                writeln!(out)?;
                blocks.iter().try_for_each(|block| self.block(out, block))
            }
            Body::ToolCall(call) => {
                let id = clean_line(&call.call_id, 40);
                writeln!(
                    out,
                    "  {BOLD}{}{BOLD:#} {DIM}{id}{DIM:#}",
                    clean_line(&call.name, 60)
                )?;
                self.value(out, "in", call.input.as_ref())
            }
            Body::ToolResult(result) => {
                let id = clean_line(&result.call_id, 40);
                writeln!(
                    out,
                    "  {BOLD}{}{BOLD:#} {DIM}{id}{DIM:#}",
                    clean_line(&result.name, 60)
                )?;
                self.value(out, "out", result.output.as_ref())?;
                match &result.error {
                    Some(error) => self.text(out, "error", error),
                    None => Ok(()),
                }
            }
            Body::Note(note) => {
                writeln!(out, "  {}", note.kind.as_str())?;
                self.note(out, note)
            }
            // Nothing more is said, or it is said by the note that stands for the event.
            Body::RunStarted(None)
            | Body::RunCompleted(None)
            | Body::ModelCall(_)
            | Body::Chunk(_)
            | Body::Harness(_)
            | Body::Blob(_)
            | Body::Error(_)
            | Body::Unknown(_) => writeln!(out),
        }
    }

    fn end(self, out: &mut impl Write, end: &StepEnd) -> io::Result<()> {
        let name = step_name(&end.step);
        match &end.error {
            None => writeln!(out, "  {name} {GREEN}ok{GREEN:#}")?,
            Some(error) => {
                writeln!(out, "  {name} {RED}failed{RED:#}")?;
                self.text(out, "error", error)?;
            }
        }
        self.value(out, "result", end.result.as_ref())
    }

    fn block(self, out: &mut impl Write, block: &Block) -> io::Result<()> {
        match &block.content {
            Content::Text(text) => self.text(out, "text", text),
            Content::Thinking(text) => self.text(out, "thinking", text),
            Content::Command(text) => self.text(out, "command", text),
            Content::Stream(text) => self.text(out, "stream", text),
            Content::ToolUse { name, id, input } => {
                self.text(out, "tool_use", &format!("{name} {id}"))?;
                self.value(out, "in", input.as_ref())
            }
            Content::ToolResult { id, content } => {
                self.text(out, "tool_result", id)?;
                self.value(out, "out", content.as_ref())
            }
            Content::Unknown(json) => self.text(out, "unknown block", json.get()),
        }
    }

    fn value(self, out: &mut impl Write, label: &str, value: Option<&Json>) -> io::Result<()> {
        match value {
            None => Ok(()),
            Some(value) => match value.as_str() {
                Some(text) => self.text(out, label, &text),
                None => self.text(out, label, value.get()),
            },
        }
    }

    /// A text under a label, indented, shortened unless asked for in full.
    fn text(self, out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
        let (lines, width) = if self.full {
            (usize::MAX, usize::MAX)
        } else {
            (SHORT_LINES, SHORT_LINE)
        };
        let mut rest = text.lines();
        let first = rest.next().unwrap_or_default();
        writeln!(
            out,
            "         {DIM}{label:>12}{DIM:#} {}",
            self.line(first, width)
        )?;
        for line in rest.by_ref().take(lines - 1) {
            writeln!(out, "         {:>12} {}", "", self.line(line, width))?;
        }
        match rest.count() {
            0 => Ok(()),
            more => {
                let more = count(more as u64, "more line");
                writeln!(out, "         {:>12} {DIM}… {more}{DIM:#}", "")
            }
        }
    }

    fn line(self, line: &str, width: usize) -> String {
        if self.full {
            clean(line).into_owned()
        } else {
            clean_line(line, width)
        }
    }
}

fn step_name(step: &Step) -> String {
    format!(
        "{} {DIM}{}{DIM:#}",
        clean_line(&step.name, 60),
        clean_line(&step.kind, 30)
    )
}

fn style_of(event_type: Option<EventType>) -> anstyle::Style {
    match event_type {
        None => RED,
        Some(EventType::UserMessage | EventType::AssistantMessage | EventType::SystemMessage) => {
            CYAN
        }
        Some(EventType::ToolCall | EventType::ToolResult) => YELLOW,
        Some(_) => BOLD,
    }
}

fn write_annotations(out: &mut impl Write, event: &Event) -> io::Result<()> {
    let notes = &event.annotations;
    if notes.is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    let texts = [
        ("model", notes.model.as_deref()),
        ("id", notes.native_id.as_deref()),
        ("after", notes.parent_id.as_deref()),
        ("subagent", notes.subagent_id.as_deref()),
    ];
    parts.extend(
        texts
            .iter()
            .filter_map(|(name, text)| text.map(|text| format!("{name} {}", clean_line(text, 60)))),
    );
    if let Some(usage) = &notes.usage {
        let buckets = [
            ("in", usage.input),
            ("cache read", usage.cache_read),
            ("cache write", usage.cache_write),
            ("out", usage.output),
            ("reasoning", usage.reasoning),
        ];
        parts.extend(
            buckets
                .iter()
                .filter_map(|(name, n)| n.map(|n| format!("{n} {name}"))),
        );
    }
    let millis = notes.duration_ms.filter(|millis| *millis > 0);
    parts.extend(millis.map(crate::terminal::duration));
    parts.extend(notes.status.map(|status| status.as_str().to_owned()));
    parts.extend(notes.child.as_ref().map(|child| format!("run {child}")));
    parts.extend(notes.attachments.iter().map(|it| {
        let mime = clean_line(&it.mime, 40);
        format!("{mime} {}", crate::terminal::bytes(it.bytes))
    }));
    parts.extend(
        notes
            .source
            .as_ref()
            .map(|source| format!("from {}:{}", clean_line(&source.file, 80), source.line)),
    );
    let flags = [
        ("opaque", notes.flags.opaque),
        ("synthetic", notes.flags.synthetic),
        ("superseded", notes.flags.superseded),
        ("undated", notes.flags.undated),
        ("without a result", notes.flags.dangling),
    ];
    parts.extend(
        flags
            .iter()
            .filter(|flag| flag.1)
            .map(|flag| flag.0.to_owned()),
    );
    writeln!(out, "         {:>12} {DIM}{}{DIM:#}", "", parts.join(", "))
}
