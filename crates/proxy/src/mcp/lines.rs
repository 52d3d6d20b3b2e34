//! Copies of bytes, cut into lines, in bounded memory.

/// The longest line that is looked at unless something else is said.
pub(super) const MAX_LINE: usize = 16 << 20;

/// A buffer larger than this is not kept for the next line.
const KEEP: usize = 64 << 10;

/// A line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It is longer than the limit: how many bytes it has.
    TooLong(u64),
}

/// Cuts bytes that come in pieces into lines. Lines that are longer than a limit are counted, not kept.
#[derive(Debug)]
pub struct Lines {
    line: Vec<u8>,
    /// The bytes of this line, where it is longer than the limit.
    over: Option<u64>,
    most: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl Lines {
    /// Lines of at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            line: Vec::new(),
            over: None,
            most,
        }
    }

    /// Takes the next bytes and shows the lines that end in them.
    pub fn push(&mut self, mut bytes: &[u8], see: &mut dyn FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
            self.add(&bytes[..end]);
            self.end(see);
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    /// There are no more bytes: shows what is left of a line without an end.
    pub fn finish(&mut self, see: &mut dyn FnMut(Line<'_>)) {
        if self.over.is_some() || !self.line.is_empty() {
            self.end(see);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(over) = &mut self.over {
            *over += bytes.len() as u64;
        } else if self.line.len() + bytes.len() > self.most {
            self.over = Some((self.line.len() + bytes.len()) as u64);
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, see: &mut dyn FnMut(Line<'_>)) {
        match self.over.take() {
            Some(bytes) => see(Line::TooLong(bytes)),
            None => see(Line::Whole(&self.line)),
        }
        self.line.clear();
        self.line.shrink_to(KEEP);
    }
}
