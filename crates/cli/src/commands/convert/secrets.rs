//! How many secrets are in what is written for people to read.

use std::collections::HashSet;
use std::io::{self, PipeWriter, Write};
use std::thread::{self, JoinHandle};

use quipu_convert::{Format, Report};
use quipu_redact::Key;
use quipu_redact::raw::{self, Shape};

use crate::redaction::secrets;
use crate::terminal::count;

/// Whether people read what is written in a format, and hand it on.
pub(super) fn is_for_people(format: Format) -> bool {
    matches!(format, Format::Html | Format::Markdown | Format::Text)
}

/// What is said of secrets in what was written.
pub(super) fn told(reports: &[Report]) -> impl Iterator<Item = String> {
    reports.iter().filter_map(|report| {
        let secrets = report.secrets.filter(|secrets| *secrets > 0)?;
        let (of, to, what) = (report.source.display(), report.to, count(secrets, "secret"));
        Some(format!(
            "{of}: what was written as {to} holds {what}; --profile team leaves them out"
        ))
    })
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
            let options = raw::RawOptions {
                shape: Some(Shape::Text),
                files: false,
                ..raw::RawOptions::new(Key::random().ok()?)
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

/// Markdown as it reads: a secret whose underscores are escaped is still one, and the same one.
#[derive(Default)]
struct Plain {
    /// The beginning of a line.
    pending: Vec<u8>,
    text: Vec<u8>,
}

/// A line is looked at in pieces when it is longer than this.
const LONGEST: usize = 1 << 20;

impl Plain {
    /// What whole lines say.
    fn of(&mut self, bytes: &[u8]) -> &[u8] {
        self.pending.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &self.pending).map(|at| at + 1);
        let end = match whole {
            Some(end) => end,
            None if self.pending.len() > LONGEST => self.pending.len(),
            None => 0,
        };
        self.take(end)
    }

    fn rest(&mut self) -> &[u8] {
        self.take(self.pending.len())
    }

    fn take(&mut self, end: usize) -> &[u8] {
        self.text.clear();
        let mut line = &self.pending[..end];
        while let Some((byte, behind)) = line.split_first() {
            let (said, behind) = match byte {
                b'\\' if behind.first().is_some_and(u8::is_ascii_punctuation) => {
                    (behind[0], &behind[1..])
                }
                b'&' => entity(behind).unwrap_or((*byte, behind)),
                byte => (*byte, behind),
            };
            self.text.push(said);
            line = behind;
        }
        self.pending.drain(..end);
        &self.text
    }
}

/// The character of `#95;`, and what comes behind it.
fn entity(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = text.strip_prefix(b"#")?;
    let end = digits.iter().take(4).position(|byte| *byte == b';')?;
    let number = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    u8::is_ascii(&number).then_some((number, &digits[end + 1..]))
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let shown = match &mut self.plain {
            Some(plain) => plain.of(&bytes[..written]),
            None => &bytes[..written],
        };
        show(&mut self.counter, shown);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if let Some(plain) = &mut self.plain {
            show(&mut self.counter, plain.rest());
        }
    }
}

fn show(counter: &mut Option<PipeWriter>, bytes: &[u8]) {
    if let Some(to) = counter
        && to.write_all(bytes).is_err()
    {
        *counter = None;
    }
}

#[cfg(test)]
mod tests {
    use super::Plain;

    #[test]
    fn markdown_reads_the_same_however_it_is_written() {
        let written = br"a\_b &#95; \n & &#x; &#999; end\";
        for size in [1, 2, 7, 100] {
            let mut plain = Plain::default();
            let mut read = Vec::new();
            for piece in [&written[..], b"\nrest\\"].concat().chunks(size) {
                read.extend_from_slice(plain.of(piece));
            }
            read.extend_from_slice(plain.rest());
            let read = String::from_utf8(read).unwrap();
            assert_eq!(read, "a_b _ \\n & &#x; &#999; end\\\nrest\\");
        }
    }
}
