//! From bytes to records, and from records to an adapter.
//!
//! Bytes are pushed as they come, in pieces of any size. What is cut off at the end of a piece waits
//! for the next one. A log that is still written has an end that may change, so where reading stopped
//! is noted ([`Feed::checkpoint`]) before the end is looked at ([`Feed::finish`]).

pub(crate) mod page;

use std::borrow::Cow;

use quipu_model::NoteKind;
use quipu_model::json::{Parts, PartsError, Tape};
use serde::{Deserialize, Serialize};

use self::page::Page;
use crate::bounds;
use crate::{Dropped, Entry, Ledger, Mended, Out, Position, Reader, Record, Session, Sink};

/// How the bytes of a log are divided into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Framing {
    /// A JSON value a line.
    Lines,
    /// One JSON document, whose reader finds the records in it.
    Document,
    /// One JSON document, an object, that is read part by part: its fields, and of its long lists
    /// ([`Reader::lists`]) item by item. It may be of any length.
    Parts,
    /// Server-sent events: the payloads of `data:` lines.
    Sse,
    /// Text that is no JSON.
    Text,
    /// A page that Quipu wrote, with such a document in it. Places are counted from where that begins.
    Page,
}

/// What is held at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest line, and the longest part of a document that is read in parts. Longer ones are passed
    /// over and counted.
    pub line: usize,
    /// The longest document that is read as a whole. Longer ones are not read.
    pub document: usize,
    /// The deepest nesting.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line: 32 << 20,
            document: 64 << 20,
            depth: 128,
        }
    }
}

/// Why a log could not be read, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// The document is too long to be held.
    #[error("a document of more than {0} bytes is kept but not read")]
    DocumentTooLong(usize),
    /// It is no JSON document.
    #[error("not a JSON document: {0}")]
    NotJson(String),
}

/// Reads one log.
pub struct Feed {
    framing: Framing,
    reader: Box<dyn Reader>,
    ledger: Ledger,
    limits: Limits,
    tape: Tape,
    /// What came after the last line end, or all of a document.
    pending: Vec<u8>,
    /// Where `pending` begins.
    at: Position,
    /// Whether the line at hand is too long and is passed over.
    passing: bool,
    /// The payload of the server-sent event at hand, and where it began.
    payload: Vec<u8>,
    payload_at: Position,
    too_long: bool,
    /// What divides a document that is read in parts, and why that ended early.
    parts: Option<Parts>,
    undivided: Option<PartsError>,
    /// Where in a page the bytes at hand are.
    page: Page,
    /// Whether lines that have nothing to do with calls to models are passed over.
    skimming: bool,
    /// The session without numbers that cannot be, where the log has any.
    bounded: Option<Box<Session>>,
}

/// Where reading stopped: what [`Feed::resume`] needs to go on from `offset`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// How many bytes were read.
    pub offset: u64,
    /// How many lines.
    pub lines: u64,
    framing: Framing,
    reader: Vec<u8>,
    /// The texts in what the reader keeps.
    #[serde(skip)]
    told: Vec<String>,
    ledger: Ledger,
}

impl Checkpoint {
    /// The last event that was handed over.
    pub fn last_seq(&self) -> u64 {
        self.ledger.seq
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        crate::state::bytes(self)
    }

    /// From bytes; `None` when another version wrote them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        crate::state::load(bytes)
    }

    /// Every text in it, where it was made by [`Feed::checkpoint`] and not read back from bytes.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = crate::texts::texts(&self.ledger);
        texts.extend_from_slice(&self.told);
        texts
    }

    /// What the reader said of itself, for [`crate::Family::open`].
    pub fn reader_state(&self) -> &[u8] {
        &self.reader
    }
}

impl Feed {
    /// Reads a log from its beginning.
    pub fn new(framing: Framing, reader: Box<dyn Reader>) -> Self {
        Self {
            framing,
            reader,
            ledger: Ledger::default(),
            limits: Limits::default(),
            tape: Tape::new(),
            pending: Vec::new(),
            at: Position { offset: 0, line: 1 },
            passing: false,
            payload: Vec::new(),
            payload_at: Position::default(),
            too_long: false,
            parts: None,
            undivided: None,
            page: Page::default(),
            skimming: false,
            bounded: None,
        }
    }

    /// Goes on where a checkpoint was taken. `reader` is one that was opened with
    /// [`Checkpoint::reader_state`].
    pub fn resume(checkpoint: Checkpoint, reader: Box<dyn Reader>) -> Self {
        let mut feed = Self::new(checkpoint.framing, reader);
        feed.at = Position {
            offset: checkpoint.offset,
            line: checkpoint.lines + 1,
        };
        feed.ledger = checkpoint.ledger;
        feed
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the log says of the session so far. Numbers that cannot be are taken out when all is read.
    pub fn session(&self) -> &Session {
        match &self.bounded {
            Some(session) => session,
            None => self.reader.session(),
        }
    }

    /// What was counted so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Where reading stands, for when more of the log is there. `None` for documents, which are read as
    /// a whole each time, and in the middle of a server-sent event.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let resumable = match self.framing {
            Framing::Lines => !self.passing,
            Framing::Sse => !self.passing && self.payload.is_empty(),
            Framing::Document | Framing::Parts | Framing::Page | Framing::Text => false,
        };
        resumable.then(|| {
            let saved = self.reader.save();
            Checkpoint {
                offset: self.at.offset,
                lines: self.at.line - 1,
                framing: self.framing,
                reader: saved.bytes,
                told: saved.texts,
                ledger: self.ledger.clone(),
            }
        })
    }

    /// Passes over lines that have nothing to do with calls to models. What is counted of those is the same;
    /// everything else is not all there.
    #[must_use]
    pub fn skim(mut self) -> Self {
        self.skimming = true;
        self
    }

    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        match self.framing {
            Framing::Lines | Framing::Sse => self.push_lines(bytes, sink),
            Framing::Parts => self.push_parts(bytes, sink),
            Framing::Page => {
                let bytes = self.page.take(bytes);
                self.push_parts(bytes, sink);
            }
            Framing::Document | Framing::Text => {
                if self.pending.len() + bytes.len() > self.limits.document {
                    self.too_long = true;
                    self.pending = Vec::new();
                }
                if !self.too_long {
                    self.pending.extend_from_slice(bytes);
                }
            }
        }
    }

    /// Hands over a small document that lies beside the log, such as the settings of the session.
    /// After the log itself.
    pub fn sidecar(&mut self, name: &str, bytes: &[u8], sink: &mut dyn Sink) {
        let text = String::from_utf8_lossy(bytes);
        let mut out = Out::new(sink, &mut self.ledger);
        if let Ok(node) = self.tape.read(&text, self.limits.depth) {
            self.reader.sidecar(name, node, &mut out);
        }
    }

    /// Reads what is left at the end, as far as it can be read. A log that grows after this is
    /// continued from a checkpoint that was taken before.
    pub fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), FeedError> {
        let finished = self.finish_reading(sink);
        let session = self.reader.session();
        self.bounded = bounds::of_session(session, &mut self.ledger.drift, self.at).map(Box::new);
        finished
    }

    fn finish_reading(&mut self, sink: &mut dyn Sink) -> Result<(), FeedError> {
        let pending = std::mem::take(&mut self.pending);
        match self.framing {
            Framing::Lines | Framing::Sse => {
                if self.passing {
                    self.drop_record(Dropped::TooLong);
                } else if !pending.is_empty() {
                    self.line(&pending, self.at, true, sink);
                }
                if !self.payload.is_empty() {
                    self.end_of_event(sink);
                }
            }
            Framing::Document | Framing::Text if self.too_long => {
                self.drop_record(Dropped::TooLong);
                return Err(FeedError::DocumentTooLong(self.limits.document));
            }
            Framing::Document => self.document(&pending, sink)?,
            Framing::Parts | Framing::Page => {
                let whole = self.end_of_parts(sink);
                let mut out = Out::new(sink, &mut self.ledger);
                self.reader.finish(&mut out);
                return whole;
            }
            Framing::Text => {
                let text = self.text(&pending);
                let mut out = Out::new(sink, &mut self.ledger).of_document(&text);
                self.reader.text(&text, &mut out);
            }
        }
        let mut out = Out::new(sink, &mut self.ledger);
        self.reader.finish(&mut out);
        Ok(())
    }

    /// Reads a document as a whole.
    fn document(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), FeedError> {
        let read = self.text(bytes);
        let text = read.trim_start_matches('\u{feff}');
        let node = match self.tape.read(text, self.limits.depth) {
            Ok(node) => node,
            Err(error) => {
                let end = error.offset >= text.trim_end().len();
                let why = format!("not a JSON document: {error}");
                self.broken(Position { offset: 0, line: 1 }, end, why, sink);
                return Err(FeedError::NotJson(error.to_string()));
            }
        };
        sink.record(as_it_is(bytes, &read, 0));
        let mut out = Out::new(sink, &mut self.ledger).of_document(text);
        self.reader.record(node, &mut out);
        sink.record(None);
        self.tape.shrink();
        Ok(())
    }

    /// Accounts for a document, or the rest of one, that cannot be read.
    fn broken(&mut self, at: Position, cut_off: bool, why: String, sink: &mut dyn Sink) {
        let mut out = Out::new(sink, &mut self.ledger);
        out.item(at, |out| {
            if cut_off {
                out.skip(Dropped::TornTail);
            } else {
                out.push(Entry::note(NoteKind::MalformedLine, why));
            }
        });
    }

    /// Reads the parts of a document that end in these bytes.
    fn push_parts(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        if self.undivided.is_some() {
            return;
        }
        let mut parts = self
            .parts
            .take()
            .unwrap_or_else(|| Parts::new(self.reader.lists(), self.limits.line));
        let passed = parts.passed();
        let pushed = parts.push(bytes, &mut |part| {
            let at = Position {
                offset: part.offset,
                line: part.line,
            };
            self.part(part.key, part.index, part.value, at, sink);
        });
        for _ in passed..parts.passed() {
            self.drop_record(Dropped::TooLong);
        }
        match pushed {
            Ok(()) | Err(PartsError::TooLong { .. }) => {}
            Err(error) => {
                let (offset, line) = parts.position();
                let why = format!("not a JSON document: {error}");
                self.broken(Position { offset, line }, false, why, sink);
                self.undivided = Some(error);
            }
        }
        self.parts = Some(parts);
    }

    fn part(
        &mut self,
        key: &str,
        index: Option<u64>,
        value: &[u8],
        at: Position,
        sink: &mut dyn Sink,
    ) {
        let text = self.text(value);
        match self.tape.read(&text, self.limits.depth) {
            Ok(node) => {
                // Places in a page are not counted from where it begins.
                let record =
                    as_it_is(value, &text, at.offset).filter(|_| self.framing == Framing::Parts);
                sink.record(record);
                let mut out = Out::new(sink, &mut self.ledger);
                let reader = &mut self.reader;
                out.record(at, node, |out, node| reader.part(key, index, node, out));
                sink.record(None);
            }
            Err(error) => {
                let why = format!("`{key}` is not JSON: {error}");
                self.malformed(&text, at, &why, sink);
            }
        }
        if value.len() > 1 << 20 {
            self.tape.shrink();
        }
    }

    /// The end of a document that was read in parts.
    fn end_of_parts(&mut self, sink: &mut dyn Sink) -> Result<(), FeedError> {
        let ended = match (&self.undivided, &mut self.parts) {
            (Some(error), _) => return Err(FeedError::NotJson(error.to_string())),
            (None, Some(parts)) => parts.finish(),
            (None, None) => Parts::new(&[], 0).finish(),
        };
        if let Err(error) = ended {
            let began = self.parts.as_ref().map_or((0, 1), |parts| {
                let unfinished = parts.unfinished();
                unfinished.map_or(parts.position(), |part| (part.offset, part.line))
            });
            let at = Position {
                offset: began.0,
                line: began.1,
            };
            self.broken(at, true, String::new(), sink);
            return Err(FeedError::NotJson(error.to_string()));
        }
        Ok(())
    }

    fn drop_record(&mut self, why: Dropped) {
        self.ledger.records += 1;
        self.ledger.drop(why);
    }

    fn push_lines(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end + 1);
            rest = behind;
            let line = &line[..end];
            if self.passing {
                self.passing = false;
                // Its beginning is counted already.
                self.at.offset += end as u64 + 1;
                self.drop_record(Dropped::TooLong);
            } else if self.pending.is_empty() {
                self.line(line, self.at, false, sink);
                self.at.offset += end as u64 + 1;
            } else {
                let mut whole = std::mem::take(&mut self.pending);
                whole.extend_from_slice(line);
                self.line(&whole, self.at, false, sink);
                self.at.offset += whole.len() as u64 + 1;
                whole.clear();
                if whole.capacity() <= 1 << 20 {
                    self.pending = whole;
                }
            }
            self.at.line += 1;
        }
        if self.passing {
            self.at.offset += rest.len() as u64;
        } else if self.pending.len() + rest.len() > self.limits.line {
            self.passing = true;
            self.at.offset += (self.pending.len() + rest.len()) as u64;
            self.pending = Vec::new();
        } else {
            self.pending.extend_from_slice(rest);
        }
    }

    fn line(&mut self, whole: &[u8], at: Position, last: bool, sink: &mut dyn Sink) {
        let line = if at.offset == 0 {
            whole.strip_prefix(b"\xef\xbb\xbf").unwrap_or(whole)
        } else {
            whole
        };
        if line.len() > self.limits.line {
            return self.drop_record(Dropped::TooLong);
        }
        if self.skimming && self.reader.can_skip(line) {
            return;
        }
        if self.framing == Framing::Sse {
            return self.sse_line(line.strip_suffix(b"\r").unwrap_or(line), at, sink);
        }
        let from = at.offset + (whole.len() - line.len()) as u64;
        self.records(line, at, Some(from), last, sink);
    }

    /// One line of server-sent events.
    fn sse_line(&mut self, line: &[u8], at: Position, sink: &mut dyn Sink) {
        if line.is_empty() {
            self.ledger.blank += 1;
            if !self.payload.is_empty() {
                self.end_of_event(sink);
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            if self.payload.is_empty() {
                self.payload_at = at;
            } else {
                self.payload.push(b'\n');
            }
            self.payload.extend_from_slice(data);
            if self.payload.len() > self.limits.line {
                self.payload = Vec::new();
                self.drop_record(Dropped::TooLong);
            }
        }
        // `event:` repeats what the payload says, `id:` and `retry:` are for reconnecting, and lines
        // that begin with a colon are comments.
    }

    fn end_of_event(&mut self, sink: &mut dyn Sink) {
        let payload = std::mem::take(&mut self.payload);
        let at = self.payload_at;
        if payload.trim_ascii() == b"[DONE]" {
            self.drop_record(Dropped::KeepAlive);
        } else {
            self.records(&payload, at, None, false, sink);
        }
    }

    /// The records on one line: one, or several that lost the line end between them. `from` is where the line begins in
    /// the log, if the log has the same bytes there.
    fn records(
        &mut self,
        line: &[u8],
        at: Position,
        from: Option<u64>,
        last: bool,
        sink: &mut dyn Sink,
    ) {
        let from = from.map(|from| from + (line.len() - line.trim_ascii_start().len()) as u64);
        let line = line.trim_ascii();
        if line.is_empty() {
            self.ledger.blank += 1;
            return;
        }
        if line.iter().all(|b| *b == 0) {
            return self.drop_record(Dropped::Padding);
        }
        let text = self.text(line);
        sink.record(from.and_then(|from| as_it_is(line, &text, from)));
        let mut rest: &str = &text;
        let mut several = false;
        while !rest.is_empty() {
            match self.tape.read_first(rest, self.limits.depth) {
                Ok((node, end)) => {
                    let behind = rest[end..].trim_start();
                    // `12 monkeys` begins with a JSON value, too.
                    let opens = behind.is_empty() || behind.starts_with('{');
                    if opens || node.kind() == quipu_model::json::Kind::Object {
                        let mut out = Out::new(sink, &mut self.ledger);
                        out.record(at, node, |out, node| self.reader.record(node, out));
                        several |= !behind.is_empty();
                        rest = behind;
                        continue;
                    }
                    self.malformed(rest, at, "not a JSON object", sink);
                    break;
                }
                Err(error) => {
                    // A torn record may be followed by the same record, written again.
                    if let Some(behind) = self.next_record(rest) {
                        self.malformed(&rest[..rest.len() - behind.len()], at, "cut off", sink);
                        several = true;
                        rest = behind;
                    } else if last {
                        self.drop_record(Dropped::TornTail);
                        break;
                    } else {
                        self.malformed(rest, at, &error.to_string(), sink);
                        break;
                    }
                }
            }
        }
        sink.record(None);
        if several {
            self.ledger.mend(Mended::Glued);
        }
        if line.len() > 1 << 20 {
            self.tape.shrink();
        }
    }

    /// Where in a text that does not read a record begins that does.
    fn next_record<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        const TRIES: usize = 16;
        memchr::memmem::find_iter(text.as_bytes(), b"{\"")
            .filter(|at| *at > 0)
            .take(TRIES)
            .map(|at| &text[at..])
            .find(|rest| self.tape.read(rest, self.limits.depth).is_ok())
    }

    fn malformed(&mut self, text: &str, at: Position, why: &str, sink: &mut dyn Sink) {
        const SHOWN: usize = 500;
        let shown: String = text.chars().take(SHOWN).collect();
        let mut out = Out::new(sink, &mut self.ledger);
        out.item(at, |out| {
            let said = format!("{why}: {shown}");
            out.push(Entry::note(NoteKind::MalformedLine, said));
        });
    }

    /// Bytes as text, mended where they are none.
    fn text<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, str> {
        let text = if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
            Cow::Borrowed(text)
        } else {
            self.ledger.mend(Mended::InvalidUtf8);
            Cow::Owned(String::from_utf8_lossy(bytes).into_owned())
        };
        if self.framing != Framing::Text && memchr::memchr(0, text.as_bytes()).is_some() {
            self.ledger.mend(Mended::Nul);
            return Cow::Owned(text.replace('\0', "\\u0000"));
        }
        text
    }
}

/// What was made of bytes of the log, from this one on, if it is still these; `None` when it was mended.
fn as_it_is<'t>(bytes: &[u8], text: &'t str, offset: u64) -> Option<Record<'t>> {
    std::ptr::eq(bytes, text.as_bytes()).then_some(Record { offset, text })
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed")
            .field("framing", &self.framing)
            .field("at", &self.at)
            .field("session", self.session())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
