//! What parts of a text say when they are decoded: base64, percent signs, letters that only look like others, colours of a
//! terminal. One level deep.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::judge::Job;
use super::overlap::Candidate;
use super::survey::{Survey, has};
use super::{Context, Found};
use crate::Kind;

/// The shortest base64 in which something can be hidden.
pub(super) const LEAST: usize = 24;
/// How much of one run of base64 is decoded, and how much of one address.
const RUN: usize = 64 << 10;
const WORD: usize = 4096;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether there can be anything of that kind.
pub(super) fn may_be(text: &str, survey: &Survey) -> bool {
    text.len() >= LEAST / 2
        && (!survey.rows.is_empty() || survey.has(has::PERCENT | has::OTHER | has::ESCAPE))
}

/// Looks at what parts of the text say. `look` is how a text is looked at.
pub(super) fn scan(
    job: &Job<'_>,
    survey: &Survey,
    candidates: &mut Vec<Candidate>,
    mut look: impl FnMut(&str, Context<'_>, &mut Vec<Found>),
) {
    let mut found = Vec::new();
    let context = Context {
        near: false,
        name: None,
        ..job.context
    };
    for span in &survey.rows {
        let Some(decoded) = decoded(&job.text.as_bytes()[span.clone()]) else {
            continue;
        };
        found.clear();
        look(&decoded, context, &mut found);
        let secret = found
            .iter()
            .find(|found| job.engine.grade(found).0 == Kind::Secret);
        if let Some(secret) = secret {
            let padding = job.text.as_bytes()[span.end..]
                .iter()
                .take(2)
                .take_while(|byte| **byte == b'=');
            let end = span.end + padding.count();
            job.adopt(candidates, secret, span.start..end);
        }
    }
    let mut said = |said: &Decoded| {
        found.clear();
        look(&said.text, context, &mut found);
        for one in &found {
            let span = said.places[one.span.start]..said.places[one.span.end];
            job.adopt(candidates, one, span);
        }
    };
    if survey.has(has::PERCENT) {
        percent(job.text, &mut said);
    }
    if survey.has(has::OTHER) {
        alike(job.text, &mut said);
    }
    if survey.has(has::ESCAPE) {
        colours(job.text, &mut said);
    }
}

const fn table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let letter = byte as u8;
        table[byte] = letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    table
}

static LETTERS: [bool; 256] = table();

/// Whether a byte can stand in base64, in either of its alphabets.
#[inline]
pub(super) fn is_letter(byte: u8) -> bool {
    LETTERS[usize::from(byte)]
}

/// Calls `found` with each row of letters of base64 that is long enough.
///
/// What is no letter ends a row, so only every `least`th byte is looked at until one is a letter.
pub(super) fn runs(text: &[u8], least: usize, mut found: impl FnMut(Range<usize>)) {
    let letter = |byte: &u8| is_letter(*byte);
    let mut begin = 0;
    while let Some(row) = text.get(begin..begin + least) {
        // From behind: what is no letter there makes the way short.
        if let Some(at) = row.iter().rposition(|byte| !letter(byte)) {
            begin += at + 1;
            continue;
        }
        let behind = &text[begin + least..];
        let more = behind.iter().position(|byte| !letter(byte));
        let end = begin + least + more.unwrap_or(behind.len());
        found(begin..end);
        begin = end;
    }
}

/// What base64 says, if that is text.
fn decoded(run: &[u8]) -> Option<String> {
    let run = &run[..run.len().min(RUN)];
    let decode = |run: &[u8]| {
        let standard = run.iter().map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        });
        let standard: Vec<u8> = standard.collect();
        let whole = if standard.len() % 4 == 1 {
            standard.len() - 1
        } else {
            standard.len()
        };
        LENIENT.decode(&standard[..whole]).ok()
    };
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0x80..);
    // Pictures, programs and numbers are known by their first bytes.
    if !run
        .as_chunks::<4>()
        .0
        .iter()
        .take(4)
        .all(|four| says_text(*four))
    {
        return None;
    }
    let mut bytes = decode(run)?;
    if !bytes.iter().all(printable) {
        return None;
    }
    if let Err(error) = std::str::from_utf8(&bytes) {
        // A character may be cut where the decoding was.
        if bytes.len() - error.valid_up_to() > 3 {
            return None;
        }
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}

/// Whether four letters stand for three bytes of plain text.
fn says_text(four: [u8; 4]) -> bool {
    let value = |letter: u8| {
        u32::from(match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        })
    };
    let bits = four
        .iter()
        .fold(0, |bits, letter| bits << 6 | value(*letter));
    let [_, bytes @ ..] = bits.to_be_bytes();
    let text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    bytes.iter().all(text)
}

/// What a part of a text says, and where in the text each byte of it is from; one place more for its end.
struct Decoded {
    text: String,
    places: Vec<usize>,
}

/// The word around a place: up to blanks or quotes, and not endless.
fn word(text: &str, at: usize, floor: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let ends =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>');
    let low = at.saturating_sub(WORD).max(floor);
    let mut begin = at
        - bytes[low..at]
            .iter()
            .rev()
            .take_while(|byte| !ends(byte))
            .count();
    let high = bytes.len().min(at + WORD);
    let mut end = at
        + bytes[at..high]
            .iter()
            .take_while(|byte| !ends(byte))
            .count();
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    begin..end.max(begin)
}

/// What stands at a place and is something else than it says: how many bytes it takes, and the letter, if it is one at all.
type Disguise = (usize, Option<char>);

/// Words with something disguised at one of the places, as they are without it.
fn undisguised(
    text: &str,
    places: impl Iterator<Item = usize>,
    disguise: impl Fn(usize) -> Option<Disguise>,
    said: &mut impl FnMut(&Decoded),
) {
    let mut floor = 0;
    for at in places {
        if at < floor || disguise(at).is_none() {
            continue;
        }
        let word = word(text, at, floor);
        floor = word.end.max(at + 1);
        if word.len() < LEAST / 2 {
            continue;
        }
        let mut this = Decoded {
            text: String::with_capacity(word.len()),
            places: Vec::with_capacity(word.len() + 1),
        };
        let mut place = word.start;
        while let Some(letter) = text[place..word.end].chars().next() {
            let disguised = disguise(place).filter(|(length, _)| place + length <= word.end);
            if let Some((length, letter)) = disguised {
                let bytes = letter.map_or(0, char::len_utf8);
                this.text.extend(letter);
                this.places.extend(std::iter::repeat_n(place, bytes));
                place += length;
            } else {
                this.text.push(letter);
                let end = place + letter.len_utf8();
                this.places.extend(place..end);
                place = end;
            }
        }
        this.places.push(word.end);
        said(&this);
    }
}

/// Words with percent signs, as they were before they were put into an address.
fn percent(text: &str, said: &mut impl FnMut(&Decoded)) {
    let bytes = text.as_bytes();
    let letter = |at: usize| Some((3, Some(escape(bytes, at)?)));
    undisguised(text, memchr::memchr_iter(b'%', bytes), letter, said);
}

/// The printable letter that `%2F` stands for.
fn escape(bytes: &[u8], at: usize) -> Option<char> {
    let [b'%', high, low] = *bytes.get(at..at + 3)? else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let letter = digit(high)? * 16 + digit(low)?;
    char::from_u32(letter).filter(|letter| letter.is_ascii_graphic() || *letter == ' ')
}

/// How the escape of a terminal is written, before its bracket.
const ESCAPES: [&[u8]; 7] = [
    b"\x1b", b"\\u001b", b"\\u001B", b"\\x1b", b"\\x1B", b"\\033", b"\\e",
];

/// How long the colour is that begins at a place.
fn colour(bytes: &[u8], at: usize) -> Option<usize> {
    let escape = ESCAPES
        .iter()
        .find(|escape| bytes[at..].starts_with(escape))?;
    let code = bytes[at + escape.len()..].strip_prefix(b"[")?;
    let numbers = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    let numbers = code.iter().take(24).take_while(numbers).count();
    (code.get(numbers) == Some(&b'm')).then_some(escape.len() + 1 + numbers + 1)
}

/// Lines with a colour inside a word, as they look on a terminal. A colour that begins or ends a word hides nothing.
fn colours(text: &str, said: &mut impl FnMut(&Decoded)) {
    let bytes = text.as_bytes();
    let mut floor = 0;
    for at in memchr::memchr2_iter(0x1b, b'\\', bytes) {
        if at < floor {
            continue;
        }
        let Some(length) = colour(bytes, at) else {
            continue;
        };
        let letter = |at: usize| {
            bytes
                .get(at)
                .is_some_and(|byte| !byte.is_ascii_whitespace())
        };
        if at == 0 || !letter(at - 1) || !letter(at + length) {
            continue;
        }
        let line = line(text, at, floor);
        floor = line.end.max(at + length);
        let mut this = Decoded {
            text: String::with_capacity(line.len()),
            places: Vec::with_capacity(line.len() + 1),
        };
        let mut place = line.start;
        while let Some(letter) = text[place..line.end].chars().next() {
            if let Some(length) = colour(bytes, place).filter(|length| place + length <= line.end) {
                place += length;
                continue;
            }
            let end = place + letter.len_utf8();
            this.text.push(letter);
            this.places.extend(place..end);
            place = end;
        }
        this.places.push(line.end);
        said(&this);
    }
}

/// The line around a place, and not endless.
fn line(text: &str, at: usize, floor: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let low = at.saturating_sub(WORD).max(floor);
    let high = bytes.len().min(at + WORD);
    let mut begin = memchr::memrchr(b'\n', &bytes[low..at]).map_or(low, |found| low + found + 1);
    let mut end = memchr::memchr(b'\n', &bytes[at..high]).map_or(high, |found| at + found);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    begin..end.max(begin)
}

/// Words with letters that look like others or like nothing, as they look.
fn alike(text: &str, said: &mut impl FnMut(&Decoded)) {
    let bytes = text.as_bytes();
    let first = memchr::memchr3_iter(0xC2, 0xE2, 0xEF, bytes);
    let mut places: Vec<usize> = first
        .chain(memchr::memchr2_iter(0xCE, 0xCF, bytes))
        .chain(memchr::memchr2_iter(0xD0, 0xD1, bytes))
        .chain(memchr::memchr3_iter(0xD2, 0xD4, 0xD8, bytes))
        .chain(memchr::memchr_iter(0xF3, bytes))
        .collect();
    places.sort_unstable();
    let disguise = |at: usize| {
        let letter = text.get(at..)?.chars().next()?;
        let looks = match plain(letter) {
            Plain::Itself => return None,
            Plain::Nothing => None,
            Plain::Looks(other) => Some(other),
        };
        Some((letter.len_utf8(), looks))
    };
    undisguised(text, places.into_iter(), disguise, said);
}

/// What a letter looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    Itself,
    Nothing,
    Looks(char),
}

fn plain(letter: char) -> Plain {
    /// Letters of other scripts, each before the one it looks like.
    const ALIKE: &str = "АAВBЕEКKМMНHОOРPСCТTУYХXаaеeоoрpсcуyхxіiІIјjЈJѕsЅSԁdһhԛqԝwΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoνvαaιi";
    match letter {
        '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{AD}'
        | '\u{61C}'
        | '\u{E0000}'..='\u{E007F}' => Plain::Nothing,
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(letter) - 0xFEE0).map_or(Plain::Itself, Plain::Looks)
        }
        '\u{370}'..='\u{52F}' => {
            let mut pairs = ALIKE.chars();
            while let (Some(one), Some(other)) = (pairs.next(), pairs.next()) {
                if one == letter {
                    return Plain::Looks(other);
                }
            }
            Plain::Itself
        }
        _ => Plain::Itself,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_all_there_are(
            text in "(?:[ab/]{0,40}[= ]){0,6}",
            least in prop::sample::select(vec![16, 24, 32]),
        ) {
            let mut found = Vec::new();
            runs(text.as_bytes(), least, |span| found.push(span));
            let mut slow = Vec::new();
            let mut begin = 0;
            for (at, byte) in text.bytes().chain([b' ']).enumerate() {
                if !LETTERS[usize::from(byte)] {
                    if at - begin >= least {
                        slow.push(begin..at);
                    }
                    begin = at + 1;
                }
            }
            prop_assert_eq!(found, slow);
        }
    }

    #[test]
    fn only_text_is_decoded() {
        let text = "a line that says something, twice";
        let run = LENIENT.encode(text);
        assert_eq!(
            decoded(run.trim_end_matches('=').as_bytes()).as_deref(),
            Some(text)
        );
        assert_eq!(
            decoded(
                LENIENT
                    .encode([
                        0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 1, 2, 3, 4, 5, 6
                    ])
                    .as_bytes()
            ),
            None
        );
        assert_eq!(decoded(b"src/components/atoms/button"), None);
    }
}
