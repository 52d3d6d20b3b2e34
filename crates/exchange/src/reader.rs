//! The tolerant streaming reader.

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, Read};

use quipu_model::Event;

use super::decode::Decoder;
use super::scan::Scan;
use super::{Fault, Position, Warning, mend_surrogates};
use crate::lines::{Limits, LineInfo, Lines};

/// How many places on a bad line are tried as the start of an event.
const MAX_SALVAGE: usize = 8;

/// How many lists and objects are kept apart in front of such a place.
const MAX_NESTING: usize = 1024;

/// Reads a transcript, one event at a time, from any byte stream.
///
/// Memory is bounded by the longest line allowed. Nothing stops it but the source failing or the cap
/// on the total: a line that cannot be read is handed over as [`Item::Bad`] and reading goes on.
///
/// ```
/// use quipu_exchange::{Item, Reader};
///
/// let file = br#"{"seq":1,"run_id":"r","type":"run.started","path":"","iteration":0,"timestamp":"2026-06-08T08:14:42.123Z","payload":null}
/// not json
/// {"seq":2,"run_id":"r","type":"run.paused","path":"","iteration":0,"timestamp":"2026-06-08T08:14:43Z","payload":null}
/// "#;
/// let mut reader = Reader::new(&file[..]);
/// let mut seen = Vec::new();
/// while let Some(item) = reader.next()? {
///     match item {
///         Item::Event(found) => seen.push(format!("{} {}", found.scan.seq, found.scan.event_type)),
///         Item::Bad(bad) => seen.push(format!("{}: {}", bad.at, bad.fault)),
///     }
/// }
/// assert_eq!(seen, [
///     "1 run.started",
///     "line 2 (byte 122): not a JSON object: expected a value (column 1)",
///     "2 run.paused",
/// ]);
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    limits: Limits,
    decoder: RefCell<Decoder>,
    line: LineInfo,
    /// Bytes of a byte order mark before the text of the current line.
    mark: usize,
    /// The line's text where its bytes could not be taken as they are, or where they are needed
    /// more than once: checking a long line again for every object on it would take for ever.
    mended: OnceCell<Mended>,
    /// How much of the line's text has been given. Past its end when the next line is due.
    given: Cell<usize>,
    blank: u64,
    /// The run and number of the event that was given last, by which an event behind torn bytes is known.
    last: RefCell<Option<(String, u64)>>,
}

#[derive(Debug)]
struct Mended {
    text: String,
    invalid_utf8: bool,
    raw_nul: bool,
}

/// What a reader finds.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every item is an event")]
pub enum Item<'a> {
    /// An event, scanned; decode it to own it.
    Event(Found<'a>),
    /// Bytes that are not an event.
    Bad(Bad<'a>),
}

/// An event on its line.
#[derive(Debug)]
pub struct Found<'a> {
    /// Where it stands.
    pub at: Position,
    /// Its text.
    pub text: &'a str,
    /// Its fields.
    pub scan: Scan<'a>,
    line: &'a LineInfo,
    /// What is odd about the line.
    warnings: Vec<Warning>,
}

/// Bytes that are not an event.
#[derive(Debug)]
pub struct Bad<'a> {
    /// Where they begin.
    pub at: Position,
    /// The bytes; in the middle of a line that was mended, the mended ones. Empty where the line
    /// was too long to hold.
    pub bytes: &'a [u8],
    /// What is wrong with them.
    pub fault: Fault,
    /// Whether the file goes on behind their line; if not, the rest of it may be yet to come.
    pub terminated: bool,
}

/// A decoded event.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Where it stands.
    pub at: Position,
    /// The event.
    pub event: Event,
    /// What is odd about it or its line.
    pub warnings: Vec<Warning>,
}

impl<R: Read> Reader<R> {
    /// Reads from `source` with the default limits.
    pub fn new(source: R) -> Self {
        Self::with_limits(source, Limits::default())
    }

    /// Reads from `source`.
    pub fn with_limits(source: R, limits: Limits) -> Self {
        Self::over(Lines::new(source, limits), limits)
    }

    /// Reads from the middle of a file: `source` begins at this offset, after so many lines.
    pub fn resuming(source: R, limits: Limits, offset: u64, lines_before: u64) -> Self {
        Self::over(
            Lines::new(source, limits).starting_at(offset, lines_before),
            limits,
        )
    }

    fn over(lines: Lines<R>, limits: Limits) -> Self {
        let line = LineInfo {
            number: 0,
            offset: 0,
            len: 0,
            terminated: true,
            too_long: false,
        };
        Self {
            lines,
            limits,
            decoder: RefCell::default(),
            line,
            mark: 0,
            mended: OnceCell::new(),
            given: Cell::new(usize::MAX),
            blank: 0,
            last: RefCell::default(),
        }
    }

    /// How many lines were blank.
    pub fn blank_lines(&self) -> u64 {
        self.blank
    }

    /// The line that was read last.
    pub fn line(&self) -> &LineInfo {
        &self.line
    }

    /// The offset of the byte after all that was read.
    pub fn position(&self) -> u64 {
        self.lines.position()
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// When the source fails or the input is larger than allowed.
    #[expect(
        clippy::should_implement_trait,
        reason = "the items borrow from the reader"
    )]
    pub fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        if self.given.get() == usize::MAX && !self.next_line()? {
            return Ok(None);
        }
        Ok(Some(self.item()))
    }

    /// The next item, decoded.
    ///
    /// # Errors
    ///
    /// As [`Reader::next`].
    pub fn next_decoded(&mut self) -> io::Result<Option<Result<Decoded, Bad<'_>>>> {
        self.next_looked_at(|_| {})
    }

    /// As [`Reader::next_decoded`]; also shows the text of an event, even of one that cannot be decoded.
    ///
    /// # Errors
    ///
    /// As [`Reader::next`].
    pub fn next_looked_at(
        &mut self,
        look: impl FnOnce(&str),
    ) -> io::Result<Option<Result<Decoded, Bad<'_>>>> {
        if self.given.get() == usize::MAX && !self.next_line()? {
            return Ok(None);
        }
        let found = match self.item() {
            Item::Bad(bad) => return Ok(Some(Err(bad))),
            Item::Event(found) => found,
        };
        look(found.text);
        let mut warnings = found.warnings;
        let decoded = self.decode(&found.scan, found.text, &mut warnings);
        Ok(Some(match decoded {
            Ok(event) => Ok(Decoded {
                at: found.at,
                event,
                warnings,
            }),
            Err(fault) => Err(Bad {
                at: found.at,
                bytes: found.text.as_bytes(),
                fault,
                terminated: self.line.terminated,
            }),
        }))
    }

    fn decode(
        &self,
        scan: &Scan<'_>,
        text: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Event, Fault> {
        let about_line = warnings.len();
        let mut decoder = self.decoder.borrow_mut();
        let decoded = decoder.decode(scan, text, warnings);
        let misfit = |warning: &Warning| {
            matches!(
                warning,
                Warning::PayloadShape { .. }
                    | Warning::BlockShape { .. }
                    | Warning::Annotation { .. }
            )
        };
        // Half of a surrogate pair is valid JSON but not a text, so a field that holds one does not fit.
        if (decoded.is_err() || warnings[about_line..].iter().any(misfit))
            && let Some(mended) = mend_surrogates(text)
            && let Ok((scan, _)) = Scan::parse(&mended, self.limits.max_depth)
        {
            warnings.truncate(about_line);
            warnings.push(Warning::HalfSurrogate);
            return decoder.decode(&scan, &mended, warnings);
        }
        decoded
    }

    /// Goes to the next line that is not blank.
    fn next_line(&mut self) -> io::Result<bool> {
        loop {
            let Some(line) = self.lines.advance()? else {
                return Ok(false);
            };
            self.line = line;
            let bytes = self.lines.current();
            self.mark = if line.offset == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
                3
            } else {
                0
            };
            if line.too_long || !bytes[self.mark..].iter().all(u8::is_ascii_whitespace) {
                self.mended.take();
                self.given.set(0);
                return Ok(true);
            }
            self.blank += 1;
        }
    }

    /// What stands at the unread part of the current line. Moves past it.
    fn item(&self) -> Item<'_> {
        let bytes = &self.lines.current()[self.mark..];
        if self.line.too_long {
            let limit = self.limits.max_line_bytes;
            return self.bad_line(
                b"",
                Fault::TooLong {
                    len: self.line.len,
                    limit,
                },
            );
        }
        let text = if let Some(mended) = self.mended.get() {
            &mended.text
        } else if let Ok(text) = std::str::from_utf8(bytes) {
            text
        } else {
            let text = String::from_utf8_lossy(bytes).into_owned();
            &self.mended.get_or_init(|| mend(text, true)).text
        };
        let start = self.given.get();
        match Scan::parse(&text[start..], self.limits.max_depth) {
            Ok((scan, used)) => self.found(text, start, used, scan),
            Err(_) if self.mended.get().is_none() && text.contains('\0') => {
                // A raw NUL makes any string invalid; with it mended, the line may be good.
                self.mended.get_or_init(|| mend(text.to_owned(), false));
                self.item()
            }
            Err(fault) => self.salvage(text, start, bytes, fault),
        }
    }

    fn found<'a>(&'a self, text: &'a str, start: usize, used: usize, scan: Scan<'a>) -> Item<'a> {
        let end = start + used;
        let is_more = |text: &str| !text[end..].bytes().all(|b| b.is_ascii_whitespace());
        let mut more = is_more(text);
        if more && self.mended.get().is_none() {
            // There is no NUL up to `end`, so the text is the same up to there.
            let kept = self.mended.get_or_init(|| mend(text.to_owned(), false));
            more = is_more(&kept.text);
        }
        self.given.set(if more { end } else { usize::MAX });
        self.remember(&scan);
        let object = &text[start..end];
        let lead = object.len() - object.trim_ascii_start().len();
        Item::Event(Found {
            at: self.place(start + lead),
            text: object.trim_ascii(),
            scan,
            line: &self.line,
            warnings: self.line_warnings(more || start > 0, !more),
        })
    }

    /// What is odd about the line of an event: `shared` with others, and perhaps the `last` of them.
    fn line_warnings(&self, shared: bool, last: bool) -> Vec<Warning> {
        let mended = self.mended.get();
        let mut warnings = Vec::new();
        let mut warn = |applies: bool, warning: Warning| {
            if applies {
                warnings.push(warning);
            }
        };
        let carriage_return = self.lines.current().last() == Some(&b'\r');
        warn(self.mark > 0, Warning::ByteOrderMark);
        warn(mended.is_some_and(|m| m.invalid_utf8), Warning::InvalidUtf8);
        warn(mended.is_some_and(|m| m.raw_nul), Warning::RawNul);
        warn(shared, Warning::SharedLine);
        warn(carriage_return, Warning::CarriageReturn);
        warn(last && !self.line.terminated, Warning::Unterminated);
        warnings
    }

    /// Looks for an event behind the bytes that are none.
    fn salvage<'a>(
        &'a self,
        text: &'a str,
        start: usize,
        bytes: &'a [u8],
        fault: Fault,
    ) -> Item<'a> {
        let rest = &text[start..];
        if rest.bytes().all(|b| b.is_ascii_whitespace()) {
            // What is not blank was NUL.
            return self.bad_line(bytes, Fault::Zeros);
        }
        let mut outer = Nesting::default();
        let candidates = memchr::memmem::find_iter(rest.as_bytes(), br#"{"seq":"#);
        for at in candidates.filter(|&at| at > 0).take(MAX_SALVAGE) {
            let nested = outer.expects_value(rest.as_bytes(), at);
            if self.is_event_behind(&rest[at..], nested) {
                self.given.set(start + at);
                let bytes = &rest.as_bytes()[..at];
                return Item::Bad(Bad {
                    at: self.place(start),
                    bytes,
                    fault: Fault::Glued,
                    terminated: self.line.terminated,
                });
            }
            if !nested {
                // Another line that was cut off, right behind the first.
                outer = Nesting::from(at);
            }
        }
        let torn = !self.line.terminated && matches!(fault, Fault::Syntax(_));
        let fault = if torn { Fault::Torn } else { fault };
        self.given.set(usize::MAX);
        let bytes = if start == 0 { bytes } else { rest.as_bytes() };
        Item::Bad(Bad {
            at: self.place(start),
            bytes,
            fault,
            terminated: self.line.terminated,
        })
    }

    /// Whether `text` begins with an event of its own, rather than with one that is part of the value that was cut
    /// off: tools give out events as well. `nested`: the bytes before it expect a value here.
    fn is_event_behind(&self, text: &str, nested: bool) -> bool {
        let Ok((scan, used)) = Scan::parse(text, self.limits.max_depth) else {
            return false;
        };
        let behind = text[used..].trim_ascii_start().bytes().next();
        match behind {
            Some(b'}' | b']' | b',') => return false,
            // The line may have been cut off right behind the value.
            Some(_) if nested => return false,
            None if nested && !self.line.terminated => return false,
            _ => {}
        }
        match &*self.last.borrow() {
            None => true,
            // A writer that begins to count anew begins with 1.
            Some((run_id, last)) => {
                scan.run_id().unwrap_or_default() == *run_id && (scan.seq == 1 || scan.seq > *last)
            }
        }
    }

    fn remember(&self, scan: &Scan<'_>) {
        let mut last = self.last.borrow_mut();
        let run_id = scan.run_id().unwrap_or_default();
        match &mut *last {
            Some((id, seq)) if *id == run_id => *seq = scan.seq,
            last => *last = Some((run_id.into_owned(), scan.seq)),
        }
    }

    fn bad_line<'a>(&'a self, bytes: &'a [u8], fault: Fault) -> Item<'a> {
        self.given.set(usize::MAX);
        Item::Bad(Bad {
            at: self.place(0),
            bytes,
            fault,
            terminated: self.line.terminated,
        })
    }

    /// The position of a byte of the line's text. In a mended line later offsets are those of the
    /// mended text, which is the nearest there is.
    fn place(&self, start: usize) -> Position {
        Position {
            line: self.line.number,
            offset: self.line.offset + (self.mark + start) as u64,
        }
    }
}

impl Item<'_> {
    /// Whether the file ends before the line does: it is cut off, or still being written.
    pub fn is_unterminated(&self) -> bool {
        match self {
            Self::Event(found) => !found.line.terminated,
            Self::Bad(bad) => !bad.terminated,
        }
    }
}

impl Found<'_> {
    /// Whether the line could not be taken as it is, so that places in it are not those of the file.
    pub fn is_mended(&self) -> bool {
        let mended = [Warning::InvalidUtf8, Warning::RawNul];
        self.warnings.iter().any(|warning| mended.contains(warning))
    }

    /// Decodes the event. A [`Reader::next_decoded`] loop is cheaper over many.
    ///
    /// # Errors
    ///
    /// When the run, the time or the place cannot be read.
    pub fn decode(&self) -> Result<Decoded, Fault> {
        let mut warnings = self.warnings.clone();
        let event = Decoder::default().decode(&self.scan, self.text, &mut warnings)?;
        Ok(Decoded {
            at: self.at,
            event,
            warnings,
        })
    }
}

/// Fields of an event that hold text or a number.
const PLAIN: [&str; 9] = [
    r#""seq":"#,
    r#""run_id":"#,
    r#""parent_run_id":"#,
    r#""child_run_id":"#,
    r#""type":"#,
    r#""path":"#,
    r#""iteration":"#,
    r#""timestamp":"#,
    r#""check":"#,
];

/// What is open at a place of a text that may be cut off or not JSON at all.
#[derive(Debug, Default)]
struct Nesting {
    /// How far it has looked.
    at: usize,
    /// Lists and objects that are open, the innermost last; whether it is a list.
    open: Vec<bool>,
    /// How many more are open inside of those. Nothing that deep is an event.
    deeper: usize,
    in_string: bool,
    /// The last byte outside of strings that is not blank.
    last: u8,
}

impl Nesting {
    /// Looks from this place on.
    fn from(at: usize) -> Self {
        Self {
            at,
            ..Self::default()
        }
    }

    /// Whether a value is to come at `to`, inside of a list or an object. Places are asked about in order.
    fn expects_value(&mut self, bytes: &[u8], to: usize) -> bool {
        while self.at < to {
            if self.in_string {
                let end = memchr::memchr2(b'"', b'\\', &bytes[self.at..to]);
                self.at = end.map_or(to, |end| self.at + end);
                if end.is_none() {
                    break;
                }
            }
            let byte = bytes[self.at];
            self.at += 1;
            match byte {
                b'\\' if self.in_string => self.at += 1,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if self.open.len() == MAX_NESTING => self.deeper += 1,
                b'{' | b'[' => self.open.push(byte == b'['),
                b'}' | b']' if self.deeper > 0 => self.deeper -= 1,
                b'}' | b']' => drop(self.open.pop()),
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.last = byte;
            }
        }
        let in_list = self.open.last() == Some(&true);
        let in_object = self.open.last() == Some(&false);
        !self.in_string
            && self.deeper == 0
            && match self.last {
                // What an event says of itself is never an object.
                b':' if self.open.len() == 1 => {
                    let before = bytes[..to].trim_ascii_end();
                    in_object && !PLAIN.iter().any(|key| before.ends_with(key.as_bytes()))
                }
                b':' => in_object,
                b'[' | b',' => in_list,
                _ => false,
            }
    }
}

/// Raw NUL bytes in a string become their escape; around the text they are dropped.
fn mend(text: String, invalid_utf8: bool) -> Mended {
    let raw_nul = text.contains('\0');
    let text = if raw_nul {
        text.trim_matches('\0').replace('\0', "\\u0000")
    } else {
        text
    };
    Mended {
        text,
        invalid_utf8,
        raw_nul,
    }
}
