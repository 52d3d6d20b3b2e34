//! Transcripts: JSON lines, and the text that was before them.

use std::borrow::Cow;
use std::collections::VecDeque;

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, NoteKind};
use serde::{Deserialize, Serialize};

use super::normalize::{answered, asked};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What};

/// Reads a transcript.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Transcript {
    session: Session,
    /// The calls of the last line that made any, in order. Results do not say which call they are of.
    calls: VecDeque<String>,
}

impl Transcript {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        // Nothing in a transcript says whose it is; its place does.
        let mut above = origin.above();
        let parent = above
            .next()
            .filter(|name| *name == "subagents")
            .and_then(|_| above.next());
        Self {
            session: Session {
                id: origin.stem().map(str::to_owned),
                parent: parent.map(str::to_owned),
                ..Session::default()
            },
            calls: VecDeque::new(),
        }
    }

    fn block(&mut self, block: Node<'_>, index: usize, speaker: Speaker, out: &mut Out<'_>) {
        let Some(mut entry) = blocks::entry(block, speaker, ResultFacts::default(), out) else {
            out.unknown_type("content", &block.text("type").unwrap_or_default());
            return out.push(Entry::keep(NoteKind::UnknownRecord, block));
        };
        match &mut entry.what {
            What::User(_) | What::Assistant(_) => {
                return speak(block.text("text").unwrap_or_default(), speaker, out);
            }
            What::Call { id, .. } => {
                if id.is_empty() {
                    *id = Cow::Owned(format!("{}:{index}", out.position().line));
                }
                self.calls.push_back(id.clone().into_owned());
            }
            What::Result { id, .. } => {
                let known = self.calls.iter().position(|call| **call == **id);
                let call = match known {
                    Some(at) => self.calls.remove(at),
                    None => self.calls.pop_front(),
                };
                if let Some(call) = call {
                    *id = Cow::Owned(call);
                }
            }
            _ => {}
        }
        out.push(entry);
    }
}

fn speak(text: Cow<'_, str>, speaker: Speaker, out: &mut Out<'_>) {
    if text.is_empty() {
        return;
    }
    match speaker {
        Speaker::User => asked(text, |entry| out.push(entry)),
        Speaker::Assistant => answered(text, |entry| out.push(entry)),
    }
}

impl Reader for Transcript {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("line", record, &["role", "message"]);
        let role = record.text("role").unwrap_or_default();
        let speaker = match &*role {
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            other => return out.unknown_type("role", other),
        };
        let Some(message) = record.get("message") else {
            return;
        };
        out.check("message", message, &["content"]);
        let Some(content) = message.get("content") else {
            return;
        };
        if speaker == Speaker::Assistant {
            self.calls.clear();
        }
        if let Some(text) = content.as_str() {
            speak(text, speaker, out);
        }
        for (index, block) in content.items().enumerate() {
            self.block(block, index, speaker, out);
        }
        let nothing = content
            .items()
            .all(|block| block.get("text").is_some_and(|t| t.is("")));
        if (content.kind() == Kind::List && nothing) || content.is("") {
            out.skip(Dropped::Empty);
        }
    }

    fn text(&mut self, text: &str, out: &mut Out<'_>) {
        for section in Sections::of(text) {
            let position = out.locate(section.at);
            out.item(position, |out| self.section(&section, out));
        }
    }

    crate::state::keeps_session!();
}

/// What a part of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    User,
    Assistant,
    Thinking,
    Call,
    Result,
}

/// A part of a text.
#[derive(Debug)]
struct Section<'t> {
    what: Mark,
    /// Where it begins.
    at: usize,
    /// What stands behind its mark.
    name: &'t str,
    /// Its lines.
    body: &'t str,
}

/// The parts of a text, in order.
struct Sections<'t> {
    text: &'t str,
    at: usize,
    speaker: Mark,
}

impl<'t> Sections<'t> {
    fn of(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            speaker: Mark::Assistant,
        }
    }

    /// The line that begins at a place, and where the next one does.
    fn line(&self, at: usize) -> Option<(&'t str, usize)> {
        let rest = self.text.get(at..).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
        Some((&rest[..end], at + end))
    }
}

/// The mark that a line begins with, and what stands behind it.
fn mark(line: &str) -> Option<(Mark, &str)> {
    let line = line.trim();
    let tagged = |tag: &str, what: Mark| Some((what, line.strip_prefix(tag)?.trim()));
    match line {
        "user:" => Some((Mark::User, "")),
        "assistant:" | "A:" => Some((Mark::Assistant, "")),
        _ => tagged("[Thinking]", Mark::Thinking)
            .or_else(|| tagged("[Tool call]", Mark::Call))
            .or_else(|| tagged("[Tool result]", Mark::Result)),
    }
}

impl<'t> Iterator for Sections<'t> {
    type Item = Section<'t>;

    fn next(&mut self) -> Option<Section<'t>> {
        let at = self.at;
        let (first, mut next) = self.line(at)?;
        let (what, name) = match mark(first) {
            Some((what, name)) => (what, name),
            // Text that goes on after a call or its result.
            None => (self.speaker, ""),
        };
        let speaks = matches!(what, Mark::User | Mark::Assistant);
        if speaks {
            self.speaker = what;
        }
        let begin = if mark(first).is_some() { next } else { at };
        while let Some((line, behind)) = self.line(next) {
            let ends = match mark(line) {
                Some((Mark::User | Mark::Assistant, _)) => true,
                // Whoever prompts may quote such a mark.
                Some(_) => what != Mark::User,
                // What belongs to a mark is indented.
                None => !speaks && !line.trim().is_empty() && !line.starts_with([' ', '\t']),
            };
            if ends {
                break;
            }
            next = behind;
        }
        self.at = next;
        Some(Section {
            what,
            at,
            name,
            body: self.text.get(begin..next).unwrap_or_default(),
        })
    }
}

impl Transcript {
    fn section(&mut self, section: &Section<'_>, out: &mut Out<'_>) {
        let body = section.body.trim();
        let inner = outdented(section.body);
        match section.what {
            Mark::User | Mark::Assistant if body.is_empty() => out.skip(Dropped::Empty),
            Mark::User => asked(Cow::Borrowed(body), |entry| out.push(entry)),
            Mark::Assistant => answered(Cow::Borrowed(body), |entry| out.push(entry)),
            Mark::Thinking => {
                let text = match (section.name, inner) {
                    (name, inner) if inner.is_empty() => Text::from(name),
                    ("", inner) => Text::from(inner),
                    (name, inner) => Text::from(format!("{name}\n{inner}")),
                };
                out.push(Entry {
                    opaque: text.is_empty(),
                    ..Entry::new(What::Reasoning(text))
                });
            }
            Mark::Call => {
                let id = format!("{}:0", out.position().line);
                self.calls.push_back(id.clone());
                out.push(Entry::new(What::Call {
                    name: Cow::Borrowed(section.name),
                    id: Cow::Owned(id),
                    input: Some(Value::Owned(arguments(section.body))),
                }));
            }
            Mark::Result => {
                let id = self.calls.pop_front().unwrap_or_default();
                let output = (!inner.is_empty()).then(|| Value::Text(Text::from(inner)));
                out.push(Entry::new(What::Result {
                    name: Cow::Borrowed(section.name),
                    id: Cow::Owned(id),
                    output,
                    error: None,
                }));
            }
        }
    }
}

/// What belongs to a mark, without the two spaces before each line of it.
fn outdented(body: &str) -> String {
    let lines: Vec<&str> = body
        .lines()
        .map(|line| line.strip_prefix("  ").unwrap_or(line).trim_end())
        .collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// The arguments of a call: `name: value` or `name=value`, one a line, indented by two. Lines that are
/// indented further go on with the value before them.
fn arguments(body: &str) -> Json {
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in body.lines() {
        let inner = line.strip_prefix("  ").unwrap_or(line);
        let named = inner
            .split_once([':', '='])
            .filter(|(name, _)| !name.is_empty() && name.bytes().all(is_word));
        match (named, found.last_mut()) {
            (Some((name, value)), _) => found.push((name, value.trim().to_owned())),
            (None, Some((_, value))) if !inner.trim().is_empty() => {
                value.push('\n');
                value.push_str(inner);
            }
            _ => {}
        }
    }
    let mut object = String::from("{");
    for (index, (name, value)) in found.iter().enumerate() {
        if index > 0 {
            object.push(',');
        }
        object.push_str(Json::string(name).get());
        object.push(':');
        object.push_str(Json::string(value).get());
    }
    object.push('}');
    Json::parse(&object).unwrap_or_else(|_| Json::null())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
