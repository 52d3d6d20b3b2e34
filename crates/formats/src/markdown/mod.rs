//! Markdown, for people: a session that can be pasted into an issue, a review or a wiki.
//!
//! The facts stand in front matter. A message of a person begins a turn, with a heading; the agent's messages have
//! smaller ones. Calls of tools, results, reasoning and notes are folded (`<details>`), which viewers that know no
//! folding show as they are. What a tool took and gave is fenced, with a fence longer than any inside.
//!
//! **Invariant:** nothing that was said ends the block it stands in: no heading, fold, tag, picture or address of
//! its own reaches the viewer but as text (`prose.rs`).
//!
//! It cannot be read back. `docs/formats/markdown.md` says what is shown.

mod prose;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, Write};

use quipu_model::{Event, Header, RunId};

use crate::loss::{Field, Loss};
use crate::plain;
use crate::projection::{Beside, Projection};
use crate::text::{
    BUFFER, Entry, Part, SHOWN, Sort, attachments, clean, clean_line, count, entry, facts,
    header_facts, speaker, time, title,
};

/// What is shown of events and of the session.
pub const CARRIES: &[Field] = SHOWN;

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownOptions {
    /// Whether the facts stand in front matter; otherwise in a list below the title.
    pub front_matter: bool,
    /// Which events are written.
    pub events: crate::text::TextOptions,
}

impl Default for MarkdownOptions {
    /// All of it.
    fn default() -> Self {
        Self {
            front_matter: true,
            events: crate::text::TextOptions::default(),
        }
    }
}

/// Writes a session as Markdown.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &MarkdownOptions,
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
    };
    writer.loss.header(header, CARRIES);
    writer.begin(header)?;
    Ok(Box::new(writer))
}

struct Writer<'w> {
    out: Box<dyn Write + 'w>,
    buffer: Vec<u8>,
    loss: Loss,
    options: MarkdownOptions,
    speaker: String,
    parent: Option<RunId>,
}

impl Writer<'_> {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        let title = title(header);
        if self.options.front_matter {
            writeln!(self.buffer, "---\ntitle: {}", yaml(&title)?)?;
            for (name, value) in header_facts(header) {
                let name = name.replace(' ', "_");
                writeln!(self.buffer, "{name}: {}", yaml(&value)?)?;
            }
            self.buffer.extend_from_slice(b"---\n\n");
        }
        writeln!(self.buffer, "# {}\n", inline(&title))?;
        if !self.options.front_matter {
            for (name, value) in header_facts(header) {
                writeln!(self.buffer, "- {name}: {}", inline(&value))?;
            }
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    fn entry(&mut self, event: &Event, entry: &Entry<'_>) -> io::Result<()> {
        let mut about: Vec<String> = Vec::new();
        if !event.annotations.flags.undated {
            about.push(time(event.timestamp));
        }
        about.extend(facts(event));
        let is_turn = entry.head == "User";
        if entry.sort == Sort::Message {
            let level = if is_turn { "##" } else { "###" };
            writeln!(self.buffer, "{level} {}\n", inline(&entry.head))?;
            writeln!(
                self.buffer,
                "<sub>{} · {}</sub>\n",
                event.seq,
                html(&about.join(" · "))
            )?;
        } else {
            let mut named = vec![entry.head.clone()];
            named.extend(entry.about.first().cloned());
            named.extend(entry.told().map(Cow::Owned));
            named.extend(entry.about.iter().skip(1).cloned());
            writeln!(
                self.buffer,
                "<details>\n<summary>{} <sub>{} · {}</sub></summary>\n",
                html(&named.join(" · ")),
                event.seq,
                html(&about.join(" · ")),
            )?;
        }
        for part in &entry.parts {
            match part {
                Part::Thought(text) if entry.sort == Sort::Reasoning => self.quote(text, event.seq),
                part => self.part(part, event.seq)?,
            }
        }
        for attachment in attachments(event) {
            writeln!(self.buffer, "Attached: {}\n", inline(&attachment))?;
        }
        if entry.sort != Sort::Message {
            self.buffer.extend_from_slice(b"</details>\n\n");
        }
        Ok(())
    }

    fn part(&mut self, part: &Part<'_>, seq: u64) -> io::Result<()> {
        match part {
            Part::Said(text) => self.quote(text, seq),
            Part::Thought(text) => {
                self.buffer.extend_from_slice(b"Thought:\n\n");
                self.quote(text, seq);
            }
            Part::Value {
                label,
                text,
                is_output,
            } => self.fenced(label, text, *is_output, seq)?,
            Part::Failure(text) => self.fenced("failed", text, true, seq)?,
        }
        Ok(())
    }

    fn cleaned<'t>(&mut self, text: &'t str, seq: u64) -> Cow<'t, str> {
        let cleaned = clean(text);
        if matches!(cleaned, Cow::Owned(_)) {
            self.loss.wrapped("characters that cannot be seen", seq);
        }
        cleaned
    }

    fn quote(&mut self, text: &str, seq: u64) {
        let text = self.cleaned(text, seq);
        prose::quote(&mut self.buffer, text.trim_end_matches('\n'));
        self.buffer.push(b'\n');
    }

    fn fenced(&mut self, label: &str, text: &str, is_output: bool, seq: u64) -> io::Result<()> {
        let text = self.cleaned(text, seq);
        let label = clean_line(label);
        let is_short = !is_output && text.len() < 100 && !text.contains(['\n', '`']);
        if is_short && !text.trim().is_empty() {
            let label = inline(&label);
            return if prose::has_tags(&text) {
                writeln!(self.buffer, "{label}: <code>{}</code>\n", entities(&text))
            } else {
                writeln!(self.buffer, "{label}: `` {text} ``\n")
            };
        }
        if prose::has_tags(&text) {
            // Not every viewer knows fences, or looks for them inside of what is folded.
            let (label, text) = (inline(&label), tagless(text.trim_end_matches('\n')));
            return writeln!(
                self.buffer,
                "{label}:\n\n<pre><code>{text}\n</code></pre>\n"
            );
        }
        let mark = fence(text.split('\n'));
        let end = if text.ends_with('\n') { "" } else { "\n" };
        writeln!(
            self.buffer,
            "{}:\n\n{mark}text\n{text}{end}{mark}\n",
            inline(&label)
        )
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
        let written = if self.options.events.wants(entry.sort) {
            self.loss.carried += 1;
            plain::count(given, &mut self.loss);
            count(&mut self.loss, event, CARRIES, self.parent.as_ref());
            self.entry(event, &entry)
        } else {
            self.loss.dropped(plain::name(given), event.seq);
            Ok(())
        };
        drop(entry);
        self.speaker = speaker;
        written?;
        self.hand_on(BUFFER)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.hand_on(0)?;
        self.out.flush()?;
        Ok(self.loss)
    }
}

/// A fence longer than any inside.
fn fence<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    let longest = lines
        .map(|line| {
            let inner = line.trim_start_matches([' ', '>', '\t']);
            inner.len() - inner.trim_start_matches('`').len()
        })
        .max()
        .unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

/// Text as a string of YAML, in which nothing is HTML, a link or code to a viewer that takes front matter for text.
fn yaml(text: &str) -> io::Result<String> {
    // JSON strings are strings of YAML as well, and both may spell any character by its number.
    let quoted = serde_json::to_string(text)?;
    let mut escaped = String::with_capacity(quoted.len() + 8);
    for c in quoted.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '[' => escaped.push_str("\\u005b"),
            ']' => escaped.push_str("\\u005d"),
            '!' => escaped.push_str("\\u0021"),
            '`' => escaped.push_str("\\u0060"),
            c => escaped.push(c),
        }
    }
    Ok(escaped)
}

/// Text on one line in which no character means anything to Markdown or HTML.
fn inline(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for (n, c) in clean_line(text).chars().enumerate() {
        let is_harmless = matches!(c, ',' | '.' | '\'' | '/' | ';' | '?' | '%');
        match c {
            // What begins a tag or an entity is not escaped by a backslash for every viewer.
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_ascii_punctuation() && !is_harmless && (c != '-' || n == 0) => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text inside a tag, on one line.
fn html(text: &str) -> String {
    entities(&clean_line(text))
}

/// Text inside a tag that keeps its lines, where only what would be HTML means anything.
fn tagless(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text inside a tag, where Markdown means something as well.
fn entities(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // Inside of a paragraph a tag is followed by Markdown again.
            '*' | '_' | '`' | '[' | ']' | '!' | '\\' | '~' | '|' => {
                escaped.push_str("&#");
                escaped.push_str(itoa::Buffer::new().format(u32::from(c)));
                escaped.push(';');
            }
            c => escaped.push(c),
        }
    }
    escaped
}
