//! Plain text, for people: a session as it would be read aloud.
//!
//! What was said stands as it was said, indented below who said it; nothing is wrapped and nothing is cut. What
//! a terminal would act on is made visible, so that a file of this kind can be shown with any program.
//!
//! It cannot be read back: indented text is not told from text that was indented. `docs/formats/markdown.md`
//! says what is shown.

mod clean;
mod head;
mod say;

#[cfg(test)]
mod tests;

pub(crate) use clean::{clean, clean_line};
pub(crate) use head::{facts as header_facts, speaker, time, title};
pub(crate) use say::{Entry, Part, SHOWN, Sort, attachments, entry, facts, said};

use std::io::{self, Write};

use quipu_model::{Event, Header, RunId};

use crate::loss::{Field, Loss};
use crate::plain;
use crate::projection::{Beside, Projection};

/// What is shown of events and of the session.
pub const CARRIES: &[Field] = SHOWN;

/// Bytes are handed on when there are this many.
pub(crate) const BUFFER: usize = 64 * 1024;

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether reasoning is.
    pub reasoning: bool,
    /// Whether notes are, and the beginnings and ends of steps.
    pub notes: bool,
    /// Whether calls of tools and their results are.
    pub tools: bool,
}

impl Default for TextOptions {
    /// All of it.
    fn default() -> Self {
        Self {
            reasoning: true,
            notes: true,
            tools: true,
        }
    }
}

impl TextOptions {
    /// Whether an event of this sort is written.
    pub(crate) fn wants(&self, sort: Sort) -> bool {
        match sort {
            Sort::Message => true,
            Sort::Reasoning => self.reasoning,
            Sort::Tool => self.tools,
            Sort::Note => self.notes,
        }
    }
}

/// Writes a session as plain text.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &TextOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let mut writer = Writer {
        out,
        buffer: Vec::with_capacity(2 * BUFFER),
        loss: Loss::default(),
        options: options.clone(),
        speaker: speaker(header),
        parent: header.parent_run_id.clone(),
        day: None,
    };
    writer.loss.header(header, CARRIES);
    writer.begin(header)?;
    Ok(Box::new(writer))
}

struct Writer<'w> {
    out: Box<dyn Write + 'w>,
    buffer: Vec<u8>,
    loss: Loss,
    options: TextOptions,
    speaker: String,
    parent: Option<RunId>,
    /// The day of the last event that has one; the clock alone is said of those on the same day.
    day: Option<String>,
}

impl Writer<'_> {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        writeln!(self.buffer, "{}\n", title(header))?;
        for (name, value) in header_facts(header) {
            writeln!(self.buffer, "{name:<14} {value}")?;
        }
        Ok(())
    }

    /// The line that says who and when, and what is known beside it.
    fn line(&mut self, event: &Event, entry: &Entry<'_>) -> io::Result<()> {
        let clock = if event.annotations.flags.undated {
            String::new()
        } else {
            let at = time(event.timestamp);
            let (day, clock) = at.split_once('T').unwrap_or(("", &at));
            if self.day.as_deref() != Some(day) {
                writeln!(self.buffer, "\n== {day} ==")?;
                self.day = Some(day.to_owned());
            }
            format!("{} ", clock.trim_end_matches('Z'))
        };
        write!(self.buffer, "\n[{}] {clock}{}", event.seq, entry.head)?;
        for about in &entry.about {
            write!(self.buffer, "  {}", clean_line(about))?;
        }
        let facts = facts(event);
        if !facts.is_empty() {
            write!(self.buffer, "  ({})", facts.join("; "))?;
        }
        writeln!(self.buffer)
    }

    fn part(&mut self, part: &Part<'_>, seq: u64) -> io::Result<()> {
        match part {
            Part::Said(text) => self.text("", text, seq),
            Part::Thought(text) => self.text("thought", text, seq),
            Part::Value { label, text, .. } => self.text(label, text, seq),
            Part::Failure(text) => self.text("failed", text, seq),
        }
    }

    /// A text, line by line below its label.
    fn text(&mut self, label: &str, text: &str, seq: u64) -> io::Result<()> {
        let cleaned = clean(text);
        if matches!(cleaned, std::borrow::Cow::Owned(_)) {
            self.loss.wrapped("characters that cannot be seen", seq);
        }
        let label = clean_line(label);
        let indent = if label.is_empty() { "    " } else { "      " };
        let is_short = !cleaned.contains('\n') && cleaned.len() + label.len() < 100;
        match (label.is_empty(), is_short) {
            (true, _) => {}
            (false, true) => return writeln!(self.buffer, "    {label}: {cleaned}"),
            (false, false) => writeln!(self.buffer, "    {label}:")?,
        }
        for line in cleaned.strip_suffix('\n').unwrap_or(&cleaned).split('\n') {
            if line.is_empty() {
                self.buffer.push(b'\n');
            } else {
                writeln!(self.buffer, "{indent}{line}")?;
            }
        }
        Ok(())
    }

    fn hand_on(&mut self, from: usize) -> io::Result<()> {
        if self.buffer.len() >= from {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl Projection for Writer<'_> {
    fn event(&mut self, given: &Event) -> io::Result<()> {
        self.loss.events += 1;
        let event = &*plain::plain(given);
        let speaker = std::mem::take(&mut self.speaker);
        let entry = entry(event, &speaker);
        let written = if self.options.wants(entry.sort) {
            self.loss.carried += 1;
            plain::count(given, &mut self.loss);
            count(&mut self.loss, event, CARRIES, self.parent.as_ref());
            self.line(event, &entry).and_then(|()| {
                for part in &entry.parts {
                    match part {
                        Part::Thought(text) if entry.sort == Sort::Reasoning => {
                            self.text("", text, event.seq)?;
                        }
                        part => self.part(part, event.seq)?,
                    }
                }
                for attachment in attachments(event) {
                    writeln!(self.buffer, "    attached: {attachment}")?;
                }
                self.hand_on(BUFFER)
            })
        } else {
            self.loss.dropped(plain::name(given), event.seq);
            Ok(())
        };
        drop(entry);
        self.speaker = speaker;
        written
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.hand_on(0)?;
        self.out.flush()?;
        Ok(self.loss)
    }
}

/// Counts what an event has that is not shown. `parent` is the caller of the session, which is.
pub(crate) fn count(loss: &mut Loss, event: &Event, carried: &[Field], parent: Option<&RunId>) {
    loss.fields(event, carried);
    if event.parent_run_id.as_ref() != parent {
        loss.dropped(Field::RunLinks.as_str(), event.seq);
    }
    for _ in &event.annotations.attachments {
        loss.dropped("attachment bytes", event.seq);
    }
}
