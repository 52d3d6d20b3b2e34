//! From a document to its session, one part at a time.

mod event;
mod half;
mod head;
mod value;

use std::io;

use quipu_model::json::{Part, Parts, PartsError, Tape};
use quipu_model::{Event, Header, Json};

pub use self::event::{Base, EVENT_FIELDS, decode};
pub use self::head::{Head, Mismatch};
use super::{Beyond, NormalizedError, NormalizedOptions};

/// The lists of a document that are read item by item.
pub const LISTS: &[&str] = &["events"];

/// The longest event, or section, that is read.
pub const MAX_PART: usize = 64 << 20;

/// How deep values may nest.
pub(super) const MAX_DEPTH: usize = 128;

/// How many texts with half a character are named.
const HALVES: usize = 100;

/// How much is asked for at a time.
const PIECE: usize = 128 * 1024;

/// What was read, beside the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What is true of the session as a whole: what the document says, and where it says nothing, what its
    /// events come to.
    pub header: Header,
    /// What to write it with again.
    pub options: NormalizedOptions,
    /// How many events there were.
    pub events: u64,
    /// How many of them have something that the model has no place for. [`read_with`] hands it over.
    pub beyond: u64,
    /// Where the document says of itself what is not so, and the first texts that could not be read as they
    /// stand.
    pub mismatches: Vec<Mismatch>,
    /// How many events and sections have a text with half a character in it, which became U+FFFD.
    pub altered: u64,
    /// Fields outside of events that hold something else than they should.
    pub unread: Vec<(String, Json)>,
    /// The most that was held of the document at a time, in bytes.
    pub held: usize,
}

/// Reads a document. Events are handed over in order, each as soon as it is there.
///
/// ```
/// use quipu_formats::normalized;
///
/// let document = r#"{"schemaVersion": "0.1.0", "source": {"agent": "codex"}, "events": [
///     {"id": "ev_001", "seq": 1, "timestamp": "2026-06-22T10:00:03Z",
///      "type": "user_message", "role": "user", "text": "hello"}]}"#;
/// let mut events = Vec::new();
/// let read = normalized::read(document.as_bytes(), &mut |event| events.push(event))?;
/// assert_eq!(read.header.agent(), Some("codex"));
/// assert_eq!(events[0].body.type_word(), "message.user");
/// # Ok::<(), normalized::NormalizedError>(())
/// ```
///
/// # Errors
///
/// When it is no transcript, or not a whole one. Events before the place of the error have been handed over.
pub fn read(input: impl io::Read, sink: &mut dyn FnMut(Event)) -> Result<Read, NormalizedError> {
    read_with(input, &mut |event, _| sink(event))
}

/// Reads a document, and hands over what the model has no place for with each event.
///
/// # Errors
///
/// Those of [`read`].
pub fn read_with(
    mut input: impl io::Read,
    sink: &mut dyn FnMut(Event, Beyond),
) -> Result<Read, NormalizedError> {
    let mut parts = Parts::new(LISTS, MAX_PART);
    let mut reading = Reading {
        tape: Tape::new(),
        head: Head::default(),
        base: None,
        counted: None,
        beyond: 0,
        altered: 0,
        halves: Vec::new(),
        failed: None,
    };
    let mut piece = vec![0; PIECE];
    let mut held = 0;
    loop {
        let n = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let pushed = parts.push(&piece[..n], &mut |part| reading.part(part, sink));
        if let Some(failed) = reading.failed.take() {
            return Err(failed);
        }
        held = held.max(parts.capacity());
        pushed.map_err(|problem| undivided(&parts, problem))?;
    }
    parts
        .finish()
        .map_err(|problem| undivided(&parts, problem))?;
    reading.end(held)
}

fn undivided(parts: &Parts, problem: PartsError) -> NormalizedError {
    if let PartsError::TooLong { .. } = problem {
        return NormalizedError::TooLong(problem);
    }
    NormalizedError::NotADocument {
        line: parts.position().1,
        problem,
    }
}

struct Reading {
    tape: Tape,
    head: Head,
    base: Option<Base>,
    /// What the events come to.
    counted: Option<Header>,
    beyond: u64,
    altered: u64,
    /// Where the first texts with half a character are.
    halves: Vec<String>,
    failed: Option<NormalizedError>,
}

impl Reading {
    fn part(&mut self, part: Part<'_>, sink: &mut dyn FnMut(Event, Beyond)) {
        if self.failed.is_none()
            && let Err(error) = self.try_part(part, sink)
        {
            self.failed = Some(error);
        }
    }

    fn try_part(
        &mut self,
        part: Part<'_>,
        sink: &mut dyn FnMut(Event, Beyond),
    ) -> Result<(), NormalizedError> {
        let text = simdutf8::basic::from_utf8(part.value)
            .map_err(|_| not_json(part, "it is not UTF-8"))?;
        let node = self
            .tape
            .read(text, MAX_DEPTH)
            .map_err(|error| not_json(part, &error.to_string()))?;
        if let Some(place) = half::place(part.key, part.index, node) {
            self.altered += 1;
            if self.halves.len() < HALVES {
                self.halves.push(place);
            }
        }
        let Some(index) = part.index else {
            return self.head.take(part.key, node);
        };
        let base = self.base.get_or_insert_with(|| self.head.base());
        let (event, beyond) = decode(node, index, base);
        let counted = self
            .counted
            .get_or_insert_with(|| Header::new(base.run_id.clone()));
        counted.observe(&event);
        self.beyond += u64::from(!beyond.is_empty());
        sink(event, beyond);
        if text.len() > 1 << 20 {
            self.tape.shrink();
        }
        Ok(())
    }

    fn end(self, held: usize) -> Result<Read, NormalizedError> {
        let base = self.base.unwrap_or_else(|| self.head.base());
        let counted = self.counted.unwrap_or_else(|| Header::new(base.run_id));
        if !self.head.is_transcript() && counted.totals.events == 0 {
            return Err(NormalizedError::NotATranscript);
        }
        let events = counted.totals.events;
        let (header, options, mut mismatches, unread) = self.head.end(&counted);
        mismatches.extend(self.halves.into_iter().map(|place| Mismatch {
            field: place.into(),
            stated: "a text with half a character".to_owned(),
            counted: "one with U+FFFD in its place".to_owned(),
        }));
        Ok(Read {
            header,
            options,
            events,
            beyond: self.beyond,
            mismatches,
            altered: self.altered,
            unread,
            held,
        })
    }
}

fn not_json(part: Part<'_>, why: &str) -> NormalizedError {
    NormalizedError::NotJson {
        line: part.line,
        offset: part.offset,
        what: match part.index {
            Some(index) => format!("`{}[{index}]`", part.key),
            None => format!("`{}`", part.key),
        },
        why: why.to_owned(),
    }
}

/// How long a session took.
pub(super) fn duration_ms(header: &Header) -> Option<u64> {
    let (from, to) = (header.started_at?, header.ended_at?);
    u64::try_from(to.as_millisecond() - from.as_millisecond()).ok()
}
