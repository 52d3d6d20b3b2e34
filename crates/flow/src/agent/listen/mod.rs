//! What a program prints, heard as it comes.
//!
//! Standard output is divided into lines, each of which goes to the reader of the agent's dialect (quipu-agents); what
//! the reader makes of it goes to the [`Hearer`] at once. Memory does not grow with the output: a line is held, and
//! the text of the answer up to a limit.

use std::path::Path;

use quipu_agents::{Dropped, Family, Feed, Framing, Origin};
use quipu_model::{Annotations, Block, Body, Fidelity, HarnessEvent, Json, NoteKind, Severity};
use serde_json::{Value, json};

use super::command::{Stream, Which};
use super::{Hearer, SessionHandle};
use crate::process::Listener;

mod account;
mod verdict;

pub(super) use account::Account;
use account::Taking;

/// The longest line that is read.
const LONGEST_LINE: usize = 32 << 20;

/// How much of a line that is too long is kept.
const KEPT_OF_LONG_LINE: usize = 16 << 10;

/// How much plain text is one message.
const PIECE: usize = 4 << 20;

/// How much of standard error is kept for the error message.
const STDERR_TAIL: usize = 4 << 10;

/// Listens to a program.
pub(super) struct Listening<'h> {
    hearer: &'h mut dyn Hearer,
    pub(super) account: Account,
    mode: Mode,
    /// The line that has no end yet, and how long it is.
    line: Vec<u8>,
    length: u64,
    /// The end of standard error.
    stderr: Vec<u8>,
    heard_anything: bool,
}

enum Mode {
    /// No record has come yet: what came so far may be all of a plain answer, or lines before the stream.
    Waiting {
        family: &'static dyn Family,
        dialect: quipu_agents::Dialect,
        held: Vec<u8>,
    },
    /// Records of the dialect.
    Records(Box<Feed>),
    /// Plain text; what is not handed over yet.
    Text(Vec<u8>),
}

impl<'h> Listening<'h> {
    /// Listens for a stream. `prompt` is what the agent was given, `session` what it goes on with.
    pub(super) fn new(
        hearer: &'h mut dyn Hearer,
        stream: &Stream,
        prompt: &str,
        session: Option<&SessionHandle>,
    ) -> Self {
        let dialect = stream.dialect.as_deref().and_then(quipu_agents::dialect);
        let mode = match dialect {
            None => Mode::Text(Vec::new()),
            Some((family, dialect)) => match dialect.framing {
                Framing::Lines => Mode::Waiting {
                    family,
                    dialect,
                    held: Vec::new(),
                },
                _ => feed(family, dialect).map_or(Mode::Text(Vec::new()), Mode::Records),
            },
        };
        Self {
            hearer,
            account: Account::new(stream, prompt, session),
            mode,
            line: Vec::new(),
            length: 0,
            stderr: Vec::new(),
            heard_anything: false,
        }
    }

    /// A harness event of Quipu's own.
    pub(super) fn harness(
        &mut self,
        category: &str,
        name: &str,
        severity: Severity,
        about: &Value,
    ) {
        let body = harness(category, name, severity, about);
        self.hearer.event(body, Annotations::default());
    }

    /// Takes in what is left at the end. The text of an answer is whole only after this.
    pub(super) fn finish(&mut self) {
        self.end_of_output();
        let account = &mut self.account;
        if let Mode::Records(feed) = &self.mode {
            account.session = feed.session().id.clone().or(account.session.take());
            let cost = feed.session().vendor_cost.as_deref();
            account.vendor_cost = cost.and_then(quipu_model::Money::parse);
        }
        for (id, name) in account.open_calls() {
            let about = json!({"call_id": id, "tool": name});
            self.harness("tool_lifecycle", "no_result", Severity::Warning, &about);
        }
        if self.account.is_cut() {
            let about = json!({"kept_bytes": account::MOST_OUTPUT});
            self.harness("context_trim", "output_capped", Severity::Warning, &about);
        }
        if !self.heard_anything {
            self.harness(
                "stream_interrupt",
                "no_output",
                Severity::Warning,
                &json!({}),
            );
        }
    }

    /// The end of standard error, as text.
    pub(super) fn stderr_tail(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }

    fn end_of_output(&mut self) {
        let line = std::mem::take(&mut self.line);
        let length = std::mem::take(&mut self.length);
        if length > line.len() as u64 {
            self.too_long(&line, length);
        } else if !line.is_empty() {
            self.whole_line(&line, true);
        }
        match &mut self.mode {
            Mode::Waiting { held, .. } => {
                let held = std::mem::take(held);
                if let Some(lines) = self.list_of_messages(&held) {
                    for line in lines {
                        self.record(line.as_bytes(), false);
                    }
                    self.finish_records();
                } else {
                    self.begin_text(&held);
                    self.hand_over_text(true);
                }
            }
            Mode::Text(_) => self.hand_over_text(true),
            Mode::Records(_) => self.finish_records(),
        }
    }

    fn finish_records(&mut self) {
        if let Mode::Records(feed) = &mut self.mode {
            let mut taking = Taking::new(self.hearer, &mut self.account);
            // Lines are records or notes; only documents can fail.
            if let Err(error) = feed.finish(&mut taking) {
                taking.note(NoteKind::MalformedLine, error.to_string(), None);
            }
        }
        // One line that looks like a record of the dialect, and is the answer itself.
        if let Some(text) = self.account.only_unread() {
            self.say(&text);
        }
    }

    /// Some agents print all messages at the end, as one list. Each becomes a line.
    fn list_of_messages(&mut self, held: &[u8]) -> Option<Vec<String>> {
        let Mode::Waiting {
            family, dialect, ..
        } = &self.mode
        else {
            return None;
        };
        if !is_list(dialect, held) {
            return None;
        }
        let messages: Vec<Value> = serde_json::from_slice(held).ok()?;
        if messages.is_empty() || !messages.iter().all(|message| message["role"].is_string()) {
            return None;
        }
        self.mode = Mode::Records(feed(*family, *dialect)?);
        Some(messages.iter().map(Value::to_string).collect())
    }

    /// Takes a line, without its end.
    fn whole_line(&mut self, line: &[u8], is_last: bool) {
        match &mut self.mode {
            Mode::Text(_) => {
                self.more_text(line);
                if !is_last {
                    self.more_text(b"\n");
                }
            }
            Mode::Waiting { held, dialect, .. } => {
                let in_list = is_list(dialect, held);
                if in_list || !looks_like_record(line) {
                    held.extend_from_slice(line);
                    if !is_last {
                        held.push(b'\n');
                    }
                    if held.len() > PIECE {
                        let held = std::mem::take(held);
                        self.begin_text(&held);
                    }
                    return;
                }
                self.begin_records();
                self.record(line, is_last);
            }
            Mode::Records(_) => self.record(line, is_last),
        }
    }

    /// The stream has begun: what came before it is not part of it.
    fn begin_records(&mut self) {
        let Mode::Waiting {
            family,
            dialect,
            held,
        } = &mut self.mode
        else {
            return;
        };
        let (held, feed) = (std::mem::take(held), feed(*family, *dialect));
        self.mode = feed.map_or(Mode::Text(Vec::new()), Mode::Records);
        for line in held.split(|byte| *byte == b'\n') {
            if !line.trim_ascii().is_empty() {
                self.record(line, false);
            }
        }
    }

    /// What was printed is plain text.
    fn begin_text(&mut self, begin: &[u8]) {
        self.mode = Mode::Text(Vec::new());
        self.more_text(begin);
    }

    fn more_text(&mut self, bytes: &[u8]) {
        if let Mode::Text(text) = &mut self.mode {
            self.hearer.text(&String::from_utf8_lossy(bytes));
            text.extend_from_slice(bytes);
            self.hand_over_text(false);
        }
    }

    fn record(&mut self, line: &[u8], is_last: bool) {
        let Mode::Records(feed) = &mut self.mode else {
            return;
        };
        let torn = |feed: &Feed| feed.ledger().dropped.get(&Dropped::TornTail).copied();
        let before = torn(feed);
        let mut taking = Taking::new(self.hearer, &mut self.account);
        taking.line = line;
        feed.push(line, &mut taking);
        if is_last {
            // Failures are of documents, not of lines.
            feed.finish(&mut taking).ok();
            if torn(feed) != before {
                taking.note(
                    NoteKind::MalformedLine,
                    "the last line is cut off".to_owned(),
                    Some(line),
                );
            }
        } else {
            feed.push(b"\n", &mut taking);
        }
    }

    fn too_long(&mut self, begin: &[u8], length: u64) {
        let begin = begin.get(..KEPT_OF_LONG_LINE).unwrap_or(begin);
        let text = format!(
            "a line of {length} bytes is longer than is read; its first {} bytes are kept",
            begin.len()
        );
        let mut taking = Taking::new(self.hearer, &mut self.account);
        taking.note(NoteKind::Truncated, text, Some(begin));
    }

    /// Hands over plain text: pieces of it while it grows, all of it at the end.
    fn hand_over_text(&mut self, is_end: bool) {
        let Mode::Text(text) = &mut self.mode else {
            return;
        };
        while text.len() >= PIECE || (is_end && !text.is_empty()) {
            let at = if text.len() <= PIECE && is_end {
                text.len()
            } else {
                piece(text)
            };
            let rest = text.split_off(at);
            let said = String::from_utf8_lossy(text).into_owned();
            *text = rest;
            let is_last = is_end && text.is_empty();
            let said = if is_last {
                said.trim_end_matches(['\n', '\r'])
            } else {
                &said
            };
            if !said.is_empty() {
                self.account.say(said, true);
                message(self.hearer, said);
            }
        }
    }

    /// A message of which only the text is known.
    fn say(&mut self, text: &str) {
        self.account.say(text, false);
        message(self.hearer, text);
        self.hearer.text(text);
    }
}

impl Listener for Listening<'_> {
    fn stdout(&mut self, bytes: &[u8]) {
        self.heard_anything |= !bytes.trim_ascii().is_empty();
        if matches!(self.mode, Mode::Text(_)) {
            return self.more_text(bytes);
        }
        if let Mode::Records(feed) = &mut self.mode
            && self.account.is_whole
        {
            // Not divided into lines here: events of a server, or a document.
            let mut taking = Taking::new(self.hearer, &mut self.account);
            return feed.push(bytes, &mut taking);
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at(end);
            rest = &behind[1..];
            if self.length == 0 {
                self.whole_line(line, false);
                continue;
            }
            self.grow(line);
            let line = std::mem::take(&mut self.line);
            let length = std::mem::take(&mut self.length);
            if length > line.len() as u64 {
                self.too_long(&line, length);
            } else {
                self.whole_line(&line, false);
            }
        }
        if matches!(self.mode, Mode::Text(_)) {
            self.more_text(rest);
        } else {
            self.grow(rest);
        }
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.hearer.stderr(bytes);
        self.stderr.extend_from_slice(bytes);
        let extra = self.stderr.len().saturating_sub(STDERR_TAIL);
        self.stderr.drain(..extra);
    }
}

impl Listening<'_> {
    /// Adds to the line that has no end yet. A line that is too long keeps its beginning only.
    fn grow(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        let is_whole = self.line.len() as u64 + part.len() as u64 == self.length;
        if is_whole && self.line.len() + part.len() <= LONGEST_LINE {
            self.line.extend_from_slice(part);
            let is_text = !self.line.trim_ascii_start().starts_with(b"{");
            if let Mode::Waiting { held, .. } = &mut self.mode
                && is_text
                && held.len() + self.line.len() > PIECE
            {
                let mut begin = std::mem::take(held);
                begin.append(&mut self.line);
                self.length = 0;
                self.begin_text(&begin);
            }
        } else {
            self.line.truncate(KEPT_OF_LONG_LINE);
            self.line.shrink_to_fit();
        }
    }
}

fn feed(family: &dyn Family, dialect: quipu_agents::Dialect) -> Option<Box<Feed>> {
    let origin = Origin {
        // Some logs are named by their file; what a program prints is not.
        path: Path::new(""),
        part: None,
    };
    let reader = family.open(&dialect, &origin, None)?;
    Some(Box::new(Feed::new(dialect.framing, reader)))
}

/// Whether what came so far is a list of messages, of an agent that can print one.
fn is_list(dialect: &quipu_agents::Dialect, held: &[u8]) -> bool {
    dialect.name == "vibe" && held.trim_ascii_start().starts_with(b"[")
}

/// Whether a line is a record of a stream, not a line of plain text. Zeros in it do not matter.
fn looks_like_record(line: &[u8]) -> bool {
    let line = line
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii();
    let names = |key: &[u8]| line.windows(key.len()).any(|part| part == key);
    line.starts_with(b"{") && line.ends_with(b"}") && (names(b"\"type\"") || names(b"\"role\""))
}

/// Where a text is divided: after the last line that is whole, or between two characters.
fn piece(text: &[u8]) -> usize {
    let most = text.len().min(PIECE);
    let line = text[..most].iter().rposition(|byte| *byte == b'\n');
    if let Some(line) = line {
        return line + 1;
    }
    let is_boundary = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (most.saturating_sub(3)..=most)
        .rev()
        .find(is_boundary)
        .unwrap_or(most)
}

/// One assistant message with one text.
fn message(hearer: &mut dyn Hearer, text: &str) {
    let block = Block::text(Fidelity::AgentEmitted, text);
    hearer.event(Body::AssistantMessage(vec![block]), Annotations::default());
}

/// A harness event.
pub(super) fn harness(category: &str, name: &str, severity: Severity, about: &Value) -> Body {
    let attributes = about.as_object().is_some_and(|about| !about.is_empty());
    Body::Harness(HarnessEvent {
        category: category.to_owned(),
        name: name.to_owned(),
        severity: Some(severity),
        attributes: attributes.then(|| Json::of(about).ok()).flatten(),
    })
}
