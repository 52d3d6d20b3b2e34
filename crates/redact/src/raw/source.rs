//! Bytes that were read and not yet passed on.

use std::io::{self, Read};

use super::render::{Place, advance};

/// How much is read at once.
pub(super) const CHUNK: usize = 1 << 20;

/// An input, and what of it is at hand.
pub(super) struct Source<'a> {
    input: &'a mut dyn Read,
    buffer: Vec<u8>,
    /// What of the buffer was passed on.
    done: usize,
    ended: bool,
    /// Where what is at hand begins.
    pub(super) place: Place,
}

impl<'a> Source<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Self {
        let place = Place {
            offset: 0,
            line: 1,
            column: 0,
        };
        Self {
            input,
            buffer: Vec::new(),
            done: 0,
            ended: false,
            place,
        }
    }

    /// What is at hand.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.done..]
    }

    /// Whether nothing more comes.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Reads more: once, so that what comes slowly is not waited for.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        if self.done > 0 {
            self.buffer.drain(..self.done);
            self.done = 0;
        }
        let had = self.buffer.len();
        self.buffer.resize(had + CHUNK, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[had..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(had + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
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
        let end = self.done + bytes;
        advance(&mut self.place, &self.buffer[self.done..end]);
        self.done = end;
        if self.done == self.buffer.len() && self.buffer.capacity() > 8 * CHUNK {
            self.buffer = Vec::new();
            self.done = 0;
        }
    }
}
