//! Whole lines, many at a time.
//!
//! One thread reads and cuts behind the last line end; others look into the lines. A line that is longer than
//! allowed is passed over without being held, and stands in a batch of its own as nothing but its length.

use std::io::{self, Read};

use quipu_exchange::lines::{Limits, LineInfo};

/// About how much a batch holds.
const SIZE: usize = if cfg!(test) { 2 << 10 } else { 1 << 20 };

/// A buffer that grew larger than this for one long line is not kept.
const KEEP: usize = 4 * SIZE;

/// Some lines of a file.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// The first of them.
    line: u64,
    offset: u64,
    /// The length of a line that is too long to be held, and whether it has an end. Then there is nothing else.
    too_long: Option<(u64, bool)>,
    /// The longest line that is looked into.
    max_line: usize,
}

impl Batch {
    /// The lines, each without its end.
    pub(super) fn lines(&self) -> impl Iterator<Item = (LineInfo, &[u8])> {
        let too_long = self.too_long.map(|(len, terminated)| {
            let info = LineInfo {
                number: self.line,
                offset: self.offset,
                len,
                terminated,
                too_long: true,
            };
            (info, &[][..])
        });
        let mut begin = 0;
        let mut number = self.line;
        let held = std::iter::from_fn(move || {
            let rest = self.bytes.get(begin..).filter(|rest| !rest.is_empty())?;
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            let info = LineInfo {
                number,
                offset: self.offset + begin as u64,
                len: line.len() as u64,
                terminated: end.is_some(),
                too_long: line.len() > self.max_line,
            };
            begin += line.len() + usize::from(end.is_some());
            number += 1;
            Some((info, if info.too_long { &[] } else { line }))
        });
        too_long.into_iter().chain(held)
    }

    /// The line that begins at an offset of the file, without its end.
    pub(super) fn line_at(&self, offset: u64) -> &[u8] {
        let begin = usize::try_from(offset - self.offset).unwrap_or(usize::MAX);
        let rest = self.bytes.get(begin..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        &rest[..end]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEEP);
        self.too_long = None;
    }
}

/// Cuts a file into batches.
#[derive(Debug)]
pub(super) struct Cutter<R> {
    source: R,
    limits: Limits,
    /// What was read behind the last line end that was cut at.
    rest: Vec<u8>,
    line: u64,
    offset: u64,
    taken: u64,
    at_end: bool,
}

impl<R: Read> Cutter<R> {
    pub(super) fn new(source: R, limits: Limits) -> Self {
        Self {
            source,
            limits,
            rest: Vec::new(),
            line: 1,
            offset: 0,
            taken: 0,
            at_end: false,
        }
    }

    /// How much of the file the batches so far hold.
    pub(super) fn position(&self) -> u64 {
        self.offset
    }

    /// Fills a batch, which may be one that was used before; `false` at the end of the file.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> io::Result<bool> {
        batch.clear();
        batch.line = self.line;
        batch.offset = self.offset;
        batch.max_line = self.limits.max_line_bytes;
        batch.bytes.append(&mut self.rest);
        // Of these, no byte is a line end.
        let mut looked = 0;
        loop {
            if let Some(end) = memchr::memrchr(b'\n', &batch.bytes[looked..]) {
                let end = looked + end + 1;
                self.rest.extend_from_slice(&batch.bytes[end..]);
                batch.bytes.truncate(end);
                break;
            }
            looked = batch.bytes.len();
            if looked > self.limits.max_line_bytes {
                batch.too_long = Some(self.skip(batch)?);
                return Ok(true);
            }
            if self.read(&mut batch.bytes)? == 0 {
                break;
            }
        }
        self.line += memchr::memchr_iter(b'\n', &batch.bytes).count() as u64;
        self.offset += batch.bytes.len() as u64;
        Ok(!batch.bytes.is_empty())
    }

    /// Passes over a line that a batch holds the beginning of.
    fn skip(&mut self, batch: &mut Batch) -> io::Result<(u64, bool)> {
        let mut len = batch.bytes.len() as u64;
        let terminated = loop {
            batch.bytes.clear();
            if self.read(&mut batch.bytes)? == 0 {
                break false;
            }
            if let Some(end) = memchr::memchr(b'\n', &batch.bytes) {
                len += end as u64;
                self.rest.extend_from_slice(&batch.bytes[end + 1..]);
                break true;
            }
            len += batch.bytes.len() as u64;
        };
        batch.bytes.clear();
        self.line += 1;
        self.offset += len + u64::from(terminated);
        Ok((len, terminated))
    }

    /// Reads until a batch is full or there is no more.
    fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        if self.at_end {
            return Ok(0);
        }
        let before = bytes.len();
        // A line that fills a whole batch is met with steps that grow, not with many small ones.
        let step = (SIZE - before % SIZE).max(before) as u64;
        let room = (self.limits.max_total_bytes - self.taken).saturating_add(1);
        let step = step.min(room);
        bytes.reserve(usize::try_from(step).unwrap_or(SIZE));
        let read = (&mut self.source).take(step).read_to_end(bytes)?;
        self.at_end = (read as u64) < step;
        self.taken += read as u64;
        if self.taken > self.limits.max_total_bytes {
            let limit = self.limits.max_total_bytes;
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the input is larger than {limit} bytes"),
            ));
        }
        Ok(read)
    }
}
