//! A checksum on every line that a recorder writes.
//!
//! The last field of such a line is `check`: 16 lowercase hexadecimal digits, the XXH3-64 of all bytes of the line before
//! that field (from `{` up to, but without, `,"check":"`). Its seed is the checksum of the line before, or 0 for the first line;
//! where the line before has none, its seed is the XXH3-64 of that whole line with the seed 0. So a bit that
//! changes anywhere is noticed, and so is a line that was left out or put elsewhere.
//!
//! It tells damage, not malice: whoever can change a line can compute its checksum anew. The field is additive. Readers
//! that do not know it ignore it, and files without it are as good as before.

use twox_hash::XxHash3_64;

/// What precedes the digits.
const OPEN: &[u8] = br#","check":""#;
/// What follows the digits.
const CLOSE: &[u8] = b"\"}";
const DIGITS: usize = 16;

/// By how much sealing lengthens a line.
pub(super) const SEAL_LEN: usize = OPEN.len() + DIGITS + 1;

/// What the lines so far come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain(u64);

impl Chain {
    /// Where a file goes on behind this line, which is its last. Its line end is not part of it.
    pub fn after(line: &[u8]) -> Self {
        match split(line) {
            Some((_, digits)) => parse(digits),
            None => None,
        }
        .unwrap_or_else(|| Self(digest(0, line)))
    }

    /// Puts the checksum into a line that ends in `}` and a line end; gives what the lines come to with it.
    #[must_use]
    pub fn seal(self, line: &mut Vec<u8>) -> Self {
        debug_assert!(line.ends_with(b"}\n"), "a whole line");
        line.truncate(line.len() - 2);
        let sum = digest(self.0, line);
        line.extend_from_slice(OPEN);
        line.extend_from_slice(&digits(sum));
        line.extend_from_slice(CLOSE);
        line.push(b'\n');
        Self(sum)
    }
}

/// What is wrong with the checksum of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealProblem {
    /// The line is not what was written.
    #[error("the line is not as it was recorded: its checksum is another")]
    Differs,
    /// The line has no checksum, though lines before it have one.
    #[error(
        "the line has no checksum, though the file has them: it was changed, or something else wrote it"
    )]
    Missing,
}

/// Checks the lines of a file, one after the other.
#[derive(Debug)]
pub(super) struct Seals {
    /// What the lines before come to; two where one of them was changed and it is not known which part of it. None where
    /// the line before could not be read.
    before: [Option<u64>; 2],
    /// Whether any line had a checksum.
    sealed: bool,
}

impl Default for Seals {
    fn default() -> Self {
        Self {
            before: [Some(0), None],
            sealed: false,
        }
    }
}

impl Seals {
    /// Something that is not an event takes the place of a line.
    pub(super) fn lost(&mut self) {
        self.before = [None, None];
    }

    /// Takes in the next line.
    pub(super) fn line(&mut self, line: &[u8]) -> Option<SealProblem> {
        let Some((body, found)) = split(line) else {
            let expected = self.sealed || is_damaged(line);
            self.before = [Some(digest(0, line)), None];
            return expected.then_some(SealProblem::Missing);
        };
        self.sealed = true;
        let stated = parse(found).map(|chain| chain.0);
        let known = self.before.iter().flatten();
        let mut sums = known.map(|&seed| digest(seed, body)).peekable();
        let computed = sums.peek().copied();
        if computed.is_none() || sums.any(|sum| Some(sum) == stated) {
            self.before = [stated, None];
            return None;
        }
        self.before = [stated, computed];
        Some(SealProblem::Differs)
    }
}

fn digest(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// A line without its checksum, and the digits of that.
fn split(line: &[u8]) -> Option<(&[u8], &[u8; DIGITS])> {
    let rest = line.strip_suffix(CLOSE)?;
    let (rest, digits) = rest.split_last_chunk::<DIGITS>()?;
    Some((rest.strip_suffix(OPEN)?, digits))
}

/// Whether a line ends like one with a checksum, but for one letter of the field's name or one digit.
fn is_damaged(line: &[u8]) -> bool {
    // Any byte may have been mended, and then became up to six.
    let end = &line[line.len().saturating_sub(SEAL_LEN + CLOSE.len() + 5)..];
    let end = unmended(end);
    let Some((rest, digits)) = end
        .strip_suffix(CLOSE)
        .and_then(|rest| rest.split_last_chunk::<DIGITS>())
    else {
        return false;
    };
    let Some((_, open)) = rest.split_last_chunk::<{ OPEN.len() }>() else {
        return false;
    };
    let same = open.iter().zip(OPEN).filter(|(a, b)| a == b).count();
    same >= OPEN.len() - 1 && memchr::memchr(b'"', digits).is_none()
}

/// Bytes with every character that took the place of a byte as one byte again.
fn unmended(bytes: &[u8]) -> Vec<u8> {
    const MENDED: [&[u8]; 2] = ["\u{fffd}".as_bytes(), br"\u0000"];
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, others @ ..] = rest {
        let mended = MENDED.iter().find_map(|mended| rest.strip_prefix(*mended));
        out.push(if mended.is_some() { 0 } else { *first });
        rest = mended.unwrap_or(others);
    }
    out
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn parse(digits: &[u8; DIGITS]) -> Option<Chain> {
    if !digits.iter().copied().all(is_digit) {
        return None;
    }
    let text = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(text, 16).ok().map(Chain)
}

fn digits(sum: u64) -> [u8; DIGITS] {
    const WORDS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; DIGITS];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(sum.to_be_bytes()) {
        pair[0] = WORDS[usize::from(byte >> 4)];
        pair[1] = WORDS[usize::from(byte & 15)];
    }
    digits
}
