//! Lines of bytes, one at a time, in bounded memory.
//!
//! Every line-based format reads through this: bytes rather than text (invalid UTF-8 must not stop
//! a file), `\n` only (U+2028 is content), and a cap on the length of a line, past which the line
//! is skipped without being held.

use std::io::{self, Read};

/// How much to read at a time, and the buffer's size unless a line needs more.
const CHUNK: usize = 256 * 1024;

/// How much to read at first. Most transcripts are short, and clearing a large buffer for each costs
/// more than reading it.
const FIRST_CHUNK: usize = 8 * 1024;

/// What a reader may hold and take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, its end not counted. A longer one is reported and skipped.
    pub max_line_bytes: usize,
    /// The most bytes of one input. Reading stops there, with an error.
    pub max_total_bytes: u64,
    /// The deepest nesting of a line; at most 1024.
    pub max_depth: usize,
}

impl Limits {
    /// How deep a line may nest where nothing else is said: a value as deep as one may be, inside
    /// the objects and lists that make an event.
    pub const MAX_DEPTH: usize = quipu_model::Json::MAX_DEPTH + 8;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_line_bytes: 64 * 1024 * 1024,
            max_total_bytes: u64::MAX,
            max_depth: Self::MAX_DEPTH,
        }
    }
}

/// Where a line stands, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineInfo {
    /// The line's number, from 1.
    pub number: u64,
    /// The line's first byte in the input.
    pub offset: u64,
    /// How long it is, its end not counted.
    pub len: u64,
    /// Whether a line end follows. The last line of a file that is still written, or was cut off,
    /// has none.
    pub terminated: bool,
    /// Whether it is longer than allowed. Its bytes are then not there.
    pub too_long: bool,
}

/// Splits a byte stream into lines.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where the current line begins in the buffer, and where it ends.
    line: std::ops::Range<usize>,
    /// Where the unread part of the buffer begins and ends.
    unread: std::ops::Range<usize>,
    /// The offset in the input of `unread.start`.
    offset: u64,
    number: u64,
    taken: u64,
    limits: Limits,
    at_end: bool,
}

impl<R: Read> Lines<R> {
    /// Reads lines from `source`.
    pub fn new(source: R, limits: Limits) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            line: 0..0,
            unread: 0..0,
            offset: 0,
            number: 0,
            taken: 0,
            limits,
            at_end: false,
        }
    }

    /// Says that the source begins at this offset and line of a larger input, so that positions are
    /// reported in terms of that.
    #[must_use]
    pub fn starting_at(mut self, offset: u64, lines_before: u64) -> Self {
        self.offset = offset;
        self.number = lines_before;
        self
    }

    /// The current line, without its end.
    pub fn current(&self) -> &[u8] {
        &self.buffer[self.line.clone()]
    }

    /// The number of the current line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The offset of the byte after all lines given so far.
    pub fn position(&self) -> u64 {
        self.offset
    }

    /// Goes to the next line; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// When the source fails, or gives more than [`Limits::max_total_bytes`]
    /// ([`io::ErrorKind::FileTooLarge`]).
    pub fn advance(&mut self) -> io::Result<Option<LineInfo>> {
        self.line = 0..0;
        let mut scanned = 0;
        loop {
            let unread = &self.buffer[self.unread.clone()];
            if let Some(at) = memchr::memchr(b'\n', &unread[scanned..]) {
                let len = scanned + at;
                return Ok(Some(self.take_line(len, true)));
            }
            scanned = unread.len();
            if scanned > self.limits.max_line_bytes {
                return self.skip_line().map(Some);
            }
            if self.fill()? == 0 {
                return Ok((scanned > 0).then(|| self.take_line(scanned, false)));
            }
        }
    }

    fn take_line(&mut self, len: usize, terminated: bool) -> LineInfo {
        let too_long = len > self.limits.max_line_bytes;
        let start = self.unread.start;
        if !too_long {
            self.line = start..start + len;
        }
        self.unread.start += len + usize::from(terminated);
        self.pass(len as u64, terminated, too_long)
    }

    /// Accounts for a line of `len` bytes.
    fn pass(&mut self, len: u64, terminated: bool, too_long: bool) -> LineInfo {
        let offset = self.offset;
        self.offset += len + u64::from(terminated);
        self.number += 1;
        LineInfo {
            number: self.number,
            offset,
            len,
            terminated,
            too_long,
        }
    }

    /// Passes over a line that is too long to hold.
    fn skip_line(&mut self) -> io::Result<LineInfo> {
        let mut len = 0u64;
        loop {
            let unread = &self.buffer[self.unread.clone()];
            if let Some(at) = memchr::memchr(b'\n', unread) {
                self.unread.start += at + 1;
                return Ok(self.pass(len + at as u64, true, true));
            }
            len += unread.len() as u64;
            self.unread = 0..0;
            if self.fill()? == 0 {
                return Ok(self.pass(len, false, true));
            }
        }
    }

    /// Reads more into the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        if self.at_end {
            return Ok(0);
        }
        if self.unread.end == self.buffer.len() || self.unread.is_empty() {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            let half_full = self.unread.len() * 2 > self.buffer.len();
            if half_full || self.buffer.len() < CHUNK {
                self.buffer
                    .resize((self.buffer.len() * 2).max(FIRST_CHUNK), 0);
            } else if self.unread.len() < CHUNK / 2 && self.buffer.len() > 4 * CHUNK {
                // One huge line should not be paid for until the end.
                self.buffer.truncate(CHUNK);
                self.buffer.shrink_to_fit();
            }
        }
        loop {
            match self.source.read(&mut self.buffer[self.unread.end..]) {
                Ok(n) => {
                    self.at_end = n == 0;
                    self.unread.end += n;
                    self.taken += n as u64;
                    if self.taken > self.limits.max_total_bytes {
                        let limit = self.limits.max_total_bytes;
                        return Err(io::Error::new(
                            io::ErrorKind::FileTooLarge,
                            format!("the input is larger than {limit} bytes"),
                        ));
                    }
                    return Ok(n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives at most `step` bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buf.len());
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn all(input: &[u8], step: usize, max: usize) -> Vec<(Vec<u8>, LineInfo)> {
        let limits = Limits {
            max_line_bytes: max,
            ..Limits::default()
        };
        let mut lines = Lines::new(Drip(input, step), limits);
        let mut found = Vec::new();
        while let Some(info) = lines.advance().unwrap() {
            found.push((lines.current().to_vec(), info));
        }
        assert_eq!(lines.position(), input.len() as u64);
        found
    }

    #[test]
    fn long_lines_are_skipped_and_counted() {
        let found = all(b"ab\nabcdefghij\ncd\nlongtail", 3, 4);
        let seen: Vec<_> = found
            .iter()
            .map(|(bytes, i)| (bytes.as_slice(), i.number, i.offset, i.len, i.too_long))
            .collect();
        assert_eq!(
            seen,
            [
                (&b"ab"[..], 1, 0, 2, false),
                (b"", 2, 3, 10, true),
                (b"cd", 3, 14, 2, false),
                (b"", 4, 17, 8, true),
            ]
        );
    }

    #[test]
    fn the_total_is_capped() {
        let limits = Limits {
            max_total_bytes: 5,
            ..Limits::default()
        };
        let mut lines = Lines::new(&b"abc\ndef\n"[..], limits);
        assert_eq!(
            lines.advance().unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn the_buffer_grows_with_the_input() {
        // Lines of all lengths, some longer than the buffer at that time, one longer than any.
        let mut input = Vec::new();
        for len in (0..300).map(|n| n * 37).chain([2_000_000]).chain(0..300) {
            input.resize(input.len() + len, b'x');
            input.push(b'\n');
        }
        for step in [1000, usize::MAX] {
            let found = all(&input, step, usize::MAX);
            let joined: Vec<u8> = found
                .iter()
                .flat_map(|(b, _)| [b, &b"\n"[..]].concat())
                .collect();
            assert!(joined == input);
        }
    }

    #[test]
    fn an_interrupted_read_is_tried_again() {
        struct Interrupted(bool);
        impl Read for Interrupted {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return Ok(0);
                }
                Err(io::ErrorKind::Interrupted.into())
            }
        }
        let mut lines = Lines::new(Interrupted(false), Limits::default());
        assert_eq!(lines.advance().unwrap(), None);
    }

    proptest! {
        #[test]
        fn lines_join_to_the_input(
            input in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'x'), any::<u8>()], 0..300),
            step in 1usize..50,
        ) {
            let mut joined = Vec::new();
            for (n, (bytes, info)) in all(&input, step, usize::MAX).into_iter().enumerate() {
                prop_assert_eq!(info.offset, joined.len() as u64);
                prop_assert_eq!(info.number, n as u64 + 1);
                joined.extend(bytes);
                if info.terminated { joined.push(b'\n') }
            }
            prop_assert_eq!(joined, input);
        }
    }
}
