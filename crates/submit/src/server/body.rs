//! The body of an answer: bytes, or part of a file that whoever has the socket sends.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::ops::Range;

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// JSON, or nothing.
    Bytes(Vec<u8>),
    /// Part of a file. It stays readable when the file is deleted meanwhile.
    File {
        /// The file.
        file: File,
        /// The first byte that is meant.
        from: u64,
        /// How many bytes are meant.
        length: u64,
    },
}

impl Default for Body {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl Body {
    /// A whole file.
    ///
    /// # Errors
    ///
    /// It cannot be said how long it is.
    pub fn file(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let from = 0;
        Ok(Self::File { file, from, length })
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads it, from its first byte to its last. A file that is shorter by now ends early, which whoever sends it
    /// notices by [`Body::len`].
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn into_reader(self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Self::File {
                mut file,
                from,
                length,
            } => {
                file.seek(SeekFrom::Start(from))?;
                Box::new(file.take(length))
            }
        })
    }

    /// All of it, in memory: for what is short, and for tests.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn into_bytes(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::File { .. } => {
                let mut bytes = Vec::new();
                self.into_reader()?.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// A part of it, which has to be within it.
    pub(super) fn part(self, part: &Range<u64>) -> Self {
        let length = part.end.saturating_sub(part.start);
        match self {
            Self::Bytes(bytes) => {
                let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
                Self::Bytes(bytes[at(part.start)..at(part.end)].to_vec())
            }
            Self::File { file, from, .. } => Self::File {
                file,
                from: from.saturating_add(part.start),
                length,
            },
        }
    }
}

/// What a header `Range` asks for, of so many bytes. `Ok(None)` where it is to be passed over: of another unit, of several
/// ranges, or not as it should be.
pub(super) fn range(header: &str, length: u64) -> Result<Option<Range<u64>>, Unsatisfiable> {
    let Some((first, last)) = header
        .trim()
        .strip_prefix("bytes=")
        .and_then(|rest| rest.split_once('-'))
    else {
        return Ok(None);
    };
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let asked = match (number(first), number(last)) {
        (Some(first), None) if last.is_empty() => first..length,
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (None, Some(suffix)) if first.is_empty() => {
            if suffix == 0 {
                return Err(Unsatisfiable);
            }
            length.saturating_sub(suffix)..length
        }
        _ => return Ok(None),
    };
    if asked.start >= asked.end {
        return Err(Unsatisfiable);
    }
    Ok(Some(asked))
}

/// Nothing is in a range.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unsatisfiable;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_within_or_refused_or_passed_over() {
        for (header, expected) in [
            ("bytes=0-3", Ok(Some(0..4))),
            ("bytes=5-", Ok(Some(5..10))),
            ("bytes=-4", Ok(Some(6..10))),
            ("bytes=-40", Ok(Some(0..10))),
            ("bytes=8-99999999999999999999", Ok(Some(8..10))),
            ("bytes=10-", Err(Unsatisfiable)),
            ("bytes=-0", Err(Unsatisfiable)),
            ("bytes=4-2", Ok(None)),
            ("bytes=0-1,3-4", Ok(None)),
            ("lines=1-2", Ok(None)),
            ("bytes=-", Ok(None)),
            ("bytes=+1-2", Ok(None)),
        ] {
            assert_eq!(range(header, 10), expected, "{header}");
        }
        assert_eq!(range("bytes=0-", 0), Err(Unsatisfiable));
        let body = Body::Bytes(b"0123456789".to_vec()).part(&(2..5));
        assert_eq!(
            (body.len(), body.into_bytes().unwrap()),
            (3, b"234".to_vec())
        );
    }
}
