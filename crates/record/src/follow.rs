//! History and live events as one stream.

use std::io;
use std::sync::Arc;

use crate::fanout::{Next, Subscription, TryNextError};
use crate::medium::Medium;

/// How much of the file is read at a time.
const CHUNK: usize = 64 * 1024;

/// Every event of a run from one on, each once, in order.
///
/// Reads what is past from the file and what is new from the recorder. If it falls further behind
/// than its buffer, it reads the file again instead of missing anything; the writer does not wait for
/// it either way.
pub struct Follower {
    live: Subscription,
    medium: Arc<dyn Medium>,
    /// The event to give next.
    next: u64,
    /// The first event that was asked for; those before are passed over.
    from: u64,
    /// Up to which event the file is to be read.
    in_file: u64,
    /// Where the line of `next` begins.
    offset: u64,
    buffer: Vec<u8>,
    /// How much of the buffer is before `offset`.
    used: usize,
}

/// An event as it is in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// Its sequence number.
    pub seq: u64,
    /// Its line, the line end included.
    pub line: Vec<u8>,
}

impl Follower {
    pub(crate) fn new(live: Subscription, medium: Arc<dyn Medium>, from: u64) -> Self {
        let in_file = live.next_seq() - 1;
        let from = from.max(1);
        // Where the file need not be read, there is no need to find the line in it either.
        let (next, offset) = if from > in_file {
            (in_file + 1, live.offset())
        } else {
            (1, 0)
        };
        Self {
            live,
            medium,
            next,
            from,
            in_file,
            offset,
            buffer: Vec::new(),
            used: 0,
        }
    }

    /// Waits for the next event; `None` once the recorder is closed and everything was given.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn recv(&mut self) -> io::Result<Option<Followed>> {
        self.pull(Subscription::recv)
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read. No event yet is not an error.
    pub fn try_recv(&mut self) -> io::Result<Result<Followed, TryNextError>> {
        let mut why = TryNextError::Closed;
        let found = self.pull(|live| live.try_recv().map_err(|e| why = e).ok())?;
        Ok(found.ok_or(why))
    }

    fn pull(
        &mut self,
        mut live: impl FnMut(&mut Subscription) -> Option<Next>,
    ) -> io::Result<Option<Followed>> {
        loop {
            while self.next <= self.in_file {
                let line = self.read_line()?;
                let seq = self.passed(line.len());
                if seq >= self.from {
                    return Ok(Some(Followed { seq, line }));
                }
            }
            match live(&mut self.live) {
                None => return Ok(None),
                Some(Next::Missed(gap)) => self.in_file = *gap.end(),
                Some(Next::Line(line)) => {
                    // What was read ahead of here is no longer at the offset.
                    self.buffer.clear();
                    self.used = 0;
                    let line = line.bytes().to_vec();
                    let seq = self.passed(line.len());
                    if seq >= self.from {
                        return Ok(Some(Followed { seq, line }));
                    }
                }
            }
        }
    }

    fn passed(&mut self, len: usize) -> u64 {
        self.offset += len as u64;
        self.next += 1;
        self.next - 1
    }

    /// The line at the offset, which is wholly in the file.
    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut scanned = self.used;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[scanned..]) {
                let line = self.buffer[self.used..=scanned + at].to_vec();
                self.used = scanned + at + 1;
                return Ok(line);
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            scanned = self.buffer.len();
            self.buffer.resize(scanned + CHUNK, 0);
            let at = self.offset + scanned as u64;
            let n = self.medium.read_at(&mut self.buffer[scanned..], at)?;
            self.buffer.truncate(scanned + n);
            if n == 0 {
                let message = format!("event {} is no longer in the file", self.next);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
        }
    }
}
