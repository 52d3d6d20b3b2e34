//! The transcript inside a page.
//!
//! An HTML page that Quipu writes holds the document it shows, as text that the browser does not run. This
//! finds it in a page of any length without holding the page.

use std::io::{self, Read};

use memchr::memmem;

use super::NormalizedError;

/// What stands before the transcript.
pub(super) const OPEN: &[u8] = b"<script type=\"application/json\" id=\"quipu-transcript\">";
/// What stands behind it. In the transcript every `<` is escaped.
pub(super) const CLOSE: &[u8] = b"</script";
/// What a page has that is sealed with a passphrase.
pub(super) const SEALED: &[u8] = b"id=\"quipu-sealed\"";

/// How much is asked for at a time.
const PIECE: usize = 64 * 1024;

/// Reads the transcript of a page as if it were a file: what [`super::read()`] takes.
///
/// ```
/// use quipu_formats::normalized::{embedded, read};
///
/// let page = br#"<!doctype html><title>x</title>
/// <script type="application/json" id="quipu-transcript">{"schemaVersion":"0.1.0","events":[]}</script>"#;
/// let read = read(embedded(&page[..]), &mut |_| {})?;
/// assert_eq!(read.events, 0);
/// # Ok::<(), quipu_formats::normalized::NormalizedError>(())
/// ```
pub fn embedded<R: Read>(page: R) -> Embedded<R> {
    Embedded {
        page,
        held: Vec::new(),
        at: 0,
        state: State::Before,
        is_sealed: false,
    }
}

/// See [`embedded`].
#[derive(Debug)]
pub struct Embedded<R> {
    page: R,
    /// What was read of the page and not handed on.
    held: Vec<u8>,
    at: usize,
    state: State,
    is_sealed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    Behind,
}

impl<R: Read> Embedded<R> {
    fn rest(&self) -> &[u8] {
        &self.held[self.at..]
    }

    /// Reads more of the page, with what is not done with in front. `false` at its end.
    fn more(&mut self) -> io::Result<bool> {
        self.held.drain(..self.at);
        self.at = 0;
        let had = self.held.len();
        self.held.resize(had + PIECE, 0);
        loop {
            match self.page.read(&mut self.held[had..]) {
                Ok(n) => {
                    self.held.truncate(had + n);
                    return Ok(n > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.held.truncate(had);
                    return Err(error);
                }
            }
        }
    }

    /// Goes to where the transcript begins.
    fn find(&mut self) -> io::Result<()> {
        loop {
            self.is_sealed |= memmem::find(self.rest(), SEALED).is_some();
            if let Some(found) = memmem::find(self.rest(), OPEN) {
                self.at += found + OPEN.len();
                self.state = State::Inside;
                return Ok(());
            }
            // The mark may be cut in two.
            let keep = self.rest().len().min(OPEN.len().max(SEALED.len()) - 1);
            self.at = self.held.len() - keep;
            if !self.more()? {
                let why = if self.is_sealed {
                    NormalizedError::Sealed
                } else {
                    NormalizedError::NoTranscript
                };
                return Err(io::Error::other(why));
            }
        }
    }
}

impl<R: Read> Read for Embedded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        if self.state == State::Before {
            self.find()?;
        }
        while self.state == State::Inside {
            // No `<` stands inside; what is before one is the transcript's for sure.
            let sure = memchr::memchr(b'<', self.rest()).unwrap_or(self.rest().len());
            if sure > 0 {
                let n = sure.min(to.len());
                to[..n].copy_from_slice(&self.held[self.at..self.at + n]);
                self.at += n;
                return Ok(n);
            }
            if self.rest().starts_with(CLOSE) {
                self.state = State::Behind;
            } else if self.rest().len() >= CLOSE.len() {
                // A `<` that was not escaped, by another writer than ours.
                to[0] = b'<';
                self.at += 1;
                return Ok(1);
            } else if !self.more()? {
                return Err(io::Error::other(NormalizedError::PageCut));
            }
        }
        Ok(0)
    }
}
