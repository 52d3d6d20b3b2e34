//! How many secrets are in what is written for people to read.

use std::collections::HashSet;
use std::io::{self, PipeWriter, Write};
use std::thread::{self, JoinHandle};

use quipu_convert::Format;
use quipu_redact::Key;
use quipu_redact::raw::{self, Shape};

use crate::redaction::secrets;

/// Whether people read what is written in a format, and hand it on.
pub(super) fn is_for_people(format: Format) -> bool {
    matches!(format, Format::Html | Format::Markdown | Format::Text)
}

/// Looks at what is written while it is written.
pub(super) struct Counter(JoinHandle<Option<u64>>);

impl Counter {
    /// A counter, and a writer that shows it what it writes.
    pub(super) fn begin<'w>(
        format: Format,
        out: Box<dyn Write + 'w>,
    ) -> io::Result<(Self, Box<dyn Write + 'w>)> {
        let (mut reader, writer) = io::pipe()?;
        let counting = thread::spawn(move || {
            let options = raw::Options {
                shape: Some(Shape::Text),
                files: false,
                ..raw::Options::new(Key::random().ok()?)
            };
            // The same secret has the same placeholder wherever it stands.
            let mut found = HashSet::new();
            let counted = raw::check(secrets().engine(), &options, &mut reader, &mut |finding| {
                found.insert(finding.placeholder);
            });
            counted.ok().map(|_| found.len() as u64)
        });
        let shown = Shown {
            out,
            counter: Some(writer),
            plain: (format == Format::Markdown).then(Plain::default),
        };
        Ok((Self(counting), Box::new(shown)))
    }

    /// How many different secrets there are, once all is written; `None` where that could not be found out.
    pub(super) fn finish(self) -> Option<u64> {
        self.0.join().unwrap_or_default()
    }
}

struct Shown<'w> {
    out: Box<dyn Write + 'w>,
    /// Goes when nobody reads any more: what is written matters more than what is counted.
    counter: Option<PipeWriter>,
    plain: Option<Plain>,
}

/// Markdown as it reads: a secret with a backslash before each of its underscores is still one, and the same one.
#[derive(Default)]
struct Plain {
    text: Vec<u8>,
    /// What was written last is a backslash, of which it is not known yet what it stands before.
    escaping: bool,
}

impl Plain {
    fn of(&mut self, bytes: &[u8]) -> &[u8] {
        self.text.clear();
        for byte in bytes {
            if self.escaping && !byte.is_ascii_punctuation() {
                self.text.push(b'\\');
            }
            let escapes = !self.escaping && *byte == b'\\';
            if !escapes {
                self.text.push(*byte);
            }
            self.escaping = escapes;
        }
        &self.text
    }
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let shown = match &mut self.plain {
            Some(plain) => plain.of(&bytes[..written]),
            None => &bytes[..written],
        };
        if let Some(counter) = &mut self.counter
            && counter.write_all(shown).is_err()
        {
            self.counter = None;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
