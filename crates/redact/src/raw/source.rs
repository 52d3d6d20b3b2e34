//! Bytes that were read and not yet passed on.

use std::io::{self, Read};

use super::render::{RecordStart, advance};

/// How much is read at once.
pub(super) const CHUNK: usize = 1 << 20;

/// How much of an input is read first.
const FIRST: usize = 64 << 10;

/// An input, and what of it is at hand.
pub(super) struct Source<'a> {
    input: &'a mut dyn Read,
    /// As long as it ever was needed: what is behind `filled` is left from before.
    buffer: Vec<u8>,
    /// What of the buffer was passed on.
    done: usize,
    /// What of it was read.
    filled: usize,
    ended: bool,
    /// Where what is at hand begins.
    pub(super) place: RecordStart,
}

impl<'a> Source<'a> {
    /// Reads into a buffer that may have been used before.
    pub(super) fn new(input: &'a mut dyn Read, buffer: Vec<u8>) -> Self {
        let place = RecordStart {
            offset: 0,
            line: 1,
            column: 0,
        };
        Self {
            input,
            buffer,
            done: 0,
            filled: 0,
            ended: false,
            place,
        }
    }

    /// The buffer, to be used again.
    pub(super) fn into_buffer(mut self) -> Vec<u8> {
        if self.buffer.len() > 8 * CHUNK {
            self.buffer = Vec::new();
        }
        self.buffer
    }

    /// What is at hand.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.done..self.filled]
    }

    /// Whether nothing more comes.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Reads more: once, so that what comes slowly is not waited for.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        if self.done > 0 {
            self.buffer.copy_within(self.done..self.filled, 0);
            self.filled -= self.done;
            self.done = 0;
        }
        // Most files are small, and memory that is not needed is not asked for.
        let more = if self.place.offset == 0 && self.filled == 0 {
            FIRST
        } else {
            CHUNK
        };
        let room = self.filled + more;
        if self.buffer.len() < room {
            self.buffer.resize(room.max(self.filled * 2), 0);
        }
        let read = loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.filled += read;
        self.ended = read == 0;
        Ok(())
    }

    /// Reads until so many bytes are at hand, or nothing more comes.
    pub(super) fn fill_to(&mut self, bytes: usize) -> io::Result<()> {
        while self.bytes().len() < bytes && !self.ended {
            self.fill()?;
        }
        Ok(())
    }

    /// Passes bytes on.
    pub(super) fn pass(&mut self, bytes: usize) {
        let mut place = self.place;
        advance(&mut place, &self.bytes()[..bytes]);
        self.pass_to(bytes, place);
    }

    /// Passes bytes on, behind which a place is.
    pub(super) fn pass_to(&mut self, bytes: usize, place: RecordStart) {
        self.place = place;
        self.done += bytes;
        // A very long line is over.
        if self.done == self.filled && self.buffer.len() > 8 * CHUNK {
            self.buffer = Vec::new();
            (self.done, self.filled) = (0, 0);
        }
    }
}
