//! Times that texts tell: dates, seconds since 1970, and ids that begin with the time they were made at.
//!
//! Where a profile moves times, one such text gives the true ones back.

use std::ops::Range;

use quipu_model::{Header, Timestamp};

/// How far from the session a date still tells when it was, in milliseconds.
const AROUND: i64 = 366 * 86_400_000;

/// The first and the last time that is looked for where nobody knows when the session was: 2010 to 2100.
const EVER: (i64, i64) = (1_262_304_000_000, 4_102_444_800_000);

/// What a part of a text tells a time by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tells {
    /// It is a date, or a count of seconds.
    Time,
    /// It is an id.
    Id,
}

/// Finds what tells the time of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    from: i64,
    to: i64,
}

impl Clock {
    /// One for the time around a session. `is_moved`: the session's own times are not the true ones.
    pub(super) fn of(header: &Header, is_moved: bool) -> Self {
        let bound = |at: Option<Timestamp>| at.filter(|at| at.as_second() > 0 && !is_moved);
        let (from, to) = match (bound(header.started_at), bound(header.ended_at)) {
            (Some(start), Some(end)) => (
                start.as_millisecond() - AROUND,
                end.as_millisecond() + AROUND,
            ),
            _ => EVER,
        };
        Self { from, to }
    }

    /// Parts of a text that tell a time, in order.
    pub(super) fn find(self, text: &str, to: &mut Vec<(Range<usize>, Tells)>) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let end = at + run(&bytes[at..], u8::is_ascii_alphanumeric);
            at = match self.word(text, at..end) {
                Some((span, tells)) => {
                    let next = span.end.max(end);
                    to.push((span, tells));
                    next
                }
                None => end,
            };
        }
    }

    /// Whether a word, or what begins with it, tells a time.
    fn word(self, text: &str, word: Range<usize>) -> Option<(Range<usize>, Tells)> {
        let (said, rest) = (&text[word.clone()], &text[word.start..]);
        if let Some(length) = uuid(rest) {
            return Some((word.start..word.start + length, Tells::Id));
        }
        let has_digit = said.bytes().any(|byte| byte.is_ascii_digit());
        if !has_digit {
            return named_month(said)
                .and_then(|_| self.written_date(text, word))
                .map(|span| (span, Tells::Time));
        }
        if let Some(length) = self.date(rest).filter(|_| !is_of_model(text, word.start)) {
            return Some((word.start..word.start + length, Tells::Time));
        }
        if said.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_time = self.number(said);
            if is_time && said.len() == 10 {
                let fraction = fraction(&rest[said.len()..]);
                return Some((word.start..word.end + fraction, Tells::Time));
            }
            if is_time {
                return Some((word, Tells::Time));
            }
            return self
                .written_date(text, word)
                .map(|span| (span, Tells::Time));
        }
        // A name that ends with a count of seconds, and one that begins with it.
        let head = run(said.as_bytes(), |byte| !byte.is_ascii_digit());
        let tail = &said[head..];
        if head > 0 && tail.bytes().all(|byte| byte.is_ascii_digit()) && self.number(tail) {
            return Some((word.start + head..word.end, Tells::Time));
        }
        let is_id = ulid(said).is_some_and(|at| self.has(at))
            || hexadecimal(said).is_some_and(|at| self.has(at))
            || is_prefixed(text, &word);
        is_id.then_some((word, Tells::Id))
    }

    fn has(self, at: i64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    /// Whether digits are a time since 1970, or an id that begins with one.
    fn number(self, digits: &str) -> bool {
        let Ok(number) = digits.parse::<i64>() else {
            return false;
        };
        let snowflake = || {
            let at = number >> 22;
            self.has(at + 1_288_834_974_657) || self.has(at + 1_420_070_400_000)
        };
        match digits.len() {
            10 => self.has(number * 1000),
            13 => self.has(number),
            // Slack writes the microseconds of a message without the point.
            16 => self.has(number / 1000),
            17 | 18 => snowflake(),
            19 => self.has(number / 1_000_000) || snowflake(),
            14 => self.date(digits).is_some(),
            _ => false,
        }
    }

    /// How long a date is that a text begins with: `2026-06-22`, `2026/06/22`, `20260622`, with a time behind it.
    fn date(self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        let year = number(bytes.get(..4)?)?;
        let separator = *bytes.get(4)?;
        let (month, day, length) = match separator {
            b'-' | b'/' | b'.' | b'_' if bytes.get(7) == Some(&separator) => {
                (number(bytes.get(5..7)?)?, number(bytes.get(8..10)?)?, 10)
            }
            b'0'..=b'9' => (number(bytes.get(4..6)?)?, number(bytes.get(6..8)?)?, 8),
            _ => return None,
        };
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let compact = length == 8;
        // Six more digits are the time; any other number of them is another number.
        let digits = run(&bytes[length..], u8::is_ascii_digit);
        if digits > 0 && !(compact && digits == 6) {
            return None;
        }
        self.has(day_of(year, month, day)?).then_some(())?;
        if digits == 6 {
            return Some(length + 6);
        }
        let mut end = length;
        if matches!(
            bytes.get(end),
            Some(b'T' | b't' | b'_' | b'-' | b' ' | b'.')
        ) && is_digit(end + 1)
        {
            end = time(bytes, end + 1).unwrap_or(end);
        }
        Some(end)
    }

    /// Where a date is in which the month is a word: `Jun 22, 2026`, `22 June 2026`, `Jun 22 10:00`.
    fn written_date(self, text: &str, word: Range<usize>) -> Option<Range<usize>> {
        let rest = &text[word.start..text.len().min(ceil(text, word.start + 40))];
        let mut words = Words(rest, 0);
        let first = words.next()?;
        let (month, day) = match named_month(first.1) {
            Some(month) => (month, words.next().and_then(|it| day(it.1))?),
            None => (named_month(words.next()?.1)?, day(first.1)?),
        };
        let year = words.next();
        let named = year
            .as_ref()
            .and_then(|(_, word)| number(word.as_bytes()).filter(|_| word.len() == 4));
        let (is_in, mut end) = match named {
            Some(year) => (self.has(day_of(year, month, day)?), words.1),
            // Without a year it is of this one, where a time is behind it, as in a list of files.
            None => (true, time(rest.as_bytes(), year?.0)?),
        };
        let tail = rest.as_bytes();
        if named.is_some() && tail.get(end) == Some(&b' ') {
            end = time(tail, end + 1).unwrap_or(end);
        }
        is_in.then_some(word.start..word.start + end)
    }
}

/// The words of a text, with where they begin; the second is where the last one ended.
struct Words<'t>(&'t str, usize);

impl<'t> Iterator for Words<'t> {
    type Item = (usize, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = &self.0.as_bytes()[self.1..];
        let gap = run(bytes, |byte| matches!(byte, b' ' | b',' | b'-' | b'.'));
        let length = run(&bytes[gap..], u8::is_ascii_alphanumeric);
        let start = self.1 + gap;
        (length > 0 && gap <= 3).then(|| {
            self.1 = start + length;
            (start, &self.0[start..start + length])
        })
    }
}

/// How many bytes at the front are so.
fn run(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is(byte)).count()
}

fn ceil(text: &str, at: usize) -> usize {
    super::ceil(text, at.min(text.len()))
}

fn number(digits: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(digits).ok()?;
    digits
        .iter()
        .all(u8::is_ascii_digit)
        .then(|| text.parse().ok())?
}

/// The noon of a day, in milliseconds.
fn day_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let at: Timestamp = format!("{year:04}-{month:02}-{day:02}T12:00:00Z")
        .parse()
        .ok()?;
    Some(at.as_millisecond())
}

/// Where a time of the day ends that begins here: `10:00`, `10-00-00`, `100000.123Z`, `10:00:00+02:00`.
fn time(bytes: &[u8], from: usize) -> Option<usize> {
    let digits = run(&bytes[from..], u8::is_ascii_digit);
    let mut at = from + digits;
    match digits {
        6 => {}
        2 => {
            let separator = *bytes
                .get(at)
                .filter(|byte| matches!(byte, b':' | b'-' | b'_'))?;
            let pair = |at: usize| {
                run(bytes.get(at..)?, u8::is_ascii_digit)
                    .eq(&2)
                    .then_some(at + 2)
            };
            at = pair(at + 1)?;
            if bytes.get(at) == Some(&separator) {
                at = pair(at + 1).unwrap_or(at);
            }
        }
        _ => return None,
    }
    if let Some(mark @ (b'.' | b',' | b'-')) = bytes.get(at) {
        let digits = run(&bytes[at + 1..], u8::is_ascii_digit);
        // Behind a dash it may be anything, unless the zone is behind it.
        let is_fraction = *mark != b'-' || bytes.get(at + 1 + digits) == Some(&b'Z');
        if (3..=9).contains(&digits) && is_fraction {
            at += 1 + digits;
        }
    }
    match bytes.get(at) {
        Some(b'Z' | b'z') => Some(at + 1),
        Some(b'+') => Some(
            at + 1
                + run(&bytes[at + 1..], |byte| {
                    byte.is_ascii_digit() || *byte == b':'
                }),
        ),
        _ => Some(at),
    }
}

/// How long the fraction behind a number of seconds is.
fn fraction(rest: &str) -> usize {
    let Some(behind) = rest.strip_prefix('.') else {
        return 0;
    };
    match run(behind.as_bytes(), u8::is_ascii_digit) {
        0 => 0,
        digits => digits + 1,
    }
}

fn named_month(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let lower = word.to_ascii_lowercase();
    let is = |month: &&str| {
        **month == lower
            || lower.len() == 3 && month.starts_with(&lower)
            || lower == "sept" && month.starts_with("sept")
    };
    let place = MONTHS.iter().position(is)?;
    i64::try_from(place + 1).ok()
}

fn day(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_day = ["", "st", "nd", "rd", "th"].contains(&&word[digits.len()..]);
    number(digits.as_bytes()).filter(|day| is_day && (1..=31).contains(day))
}

/// How long a UUID is that a text begins with.
fn uuid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes().get(..36)?;
    let goes_on = text
        .as_bytes()
        .get(36)
        .is_some_and(u8::is_ascii_alphanumeric);
    (is_uuid(bytes) && !goes_on).then_some(36)
}

/// Whether 36 bytes are a UUID.
pub(super) fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Ids in a text, whether they tell a time or not: UUIDs, and random parts behind a prefix.
pub(super) fn find_ids(text: &str, to: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let end = at + run(&bytes[at..], u8::is_ascii_alphanumeric);
        let span = match uuid(&text[at..]) {
            Some(length) => at..at + length,
            None if is_prefixed(text, &(at..end)) => at..end,
            None => {
                at = end;
                continue;
            }
        };
        at = span.end;
        to.push(span);
    }
}

/// When a ULID was made.
fn ulid(word: &str) -> Option<i64> {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    if word.len() != 26 {
        return None;
    }
    let mut at = 0;
    for (index, byte) in word.bytes().enumerate() {
        let digit = DIGITS
            .iter()
            .position(|it| *it == byte.to_ascii_uppercase())?;
        if index < 10 {
            at = at << 5 | i64::try_from(digit).ok()?;
        }
    }
    Some(at)
}

/// The time at the front of an id in hexadecimal digits: eight of seconds in one of 24, twelve of milliseconds in others.
fn hexadecimal(word: &str) -> Option<i64> {
    let number = |digits: usize| i64::from_str_radix(word.get(..digits)?, 16).ok();
    match word.len() {
        24 if word.bytes().all(|byte| byte.is_ascii_hexdigit()) => number(8).map(|it| it * 1000),
        17.. => number(12),
        _ => None,
    }
}

/// Whether a word is the random part of an id with a prefix: `msg_01H…`, `req-9f…`.
fn is_prefixed(text: &str, word: &Range<usize>) -> bool {
    const SHORTEST: usize = 20;
    let before = &text.as_bytes()[..word.start];
    let Some((b'_' | b'-', before)) = before.split_last() else {
        return false;
    };
    let letters = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    let said = &text.as_bytes()[word.clone()];
    let digits = said.iter().filter(|byte| byte.is_ascii_digit()).count();
    word.len() >= SHORTEST && (2..=8).contains(&letters) && digits >= 2
}

/// Whether a date is part of the name of a model, which says when that was made.
fn is_of_model(text: &str, at: usize) -> bool {
    const MAKERS: [&str; 14] = [
        "claude", "gpt", "o1", "o3", "o4", "gemini", "codex", "qwen", "glm", "kimi", "deepseek",
        "mistral", "grok", "chatgpt",
    ];
    let before = &text.as_bytes()[..at];
    let joined = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'@');
    let length = before.iter().rev().take_while(|byte| joined(byte)).count();
    let name = text[at - length..at].to_ascii_lowercase();
    MAKERS
        .iter()
        .any(|maker| name.starts_with(maker) || name.contains(&format!(".{maker}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_model::RunId;

    use super::*;

    fn clock() -> Clock {
        let mut header = Header::new(RunId::new("r").unwrap());
        header.started_at = "2026-03-04T09:00:00Z".parse().ok();
        header.ended_at = "2026-03-04T10:00:00Z".parse().ok();
        Clock::of(&header, false)
    }

    fn without(text: &str) -> String {
        let mut found = Vec::new();
        clock().find(text, &mut found);
        let mut out = text.to_owned();
        for (span, tells) in found.into_iter().rev() {
            let stands = if tells == Tells::Time { "T" } else { "I" };
            out.replace_range(span, stands);
        }
        out
    }

    #[test]
    fn what_tells_the_time_of_a_session_is_found() {
        for (text, expected) in [
            ("on 2026-03-04.", "on T."),
            ("at 2026-03-04T09:00:00.123Z!", "at T!"),
            ("at 2026-03-04 09:00:00+01:00 it", "at T it"),
            (
                "rollout-2026-03-04T09-00-00-019cb813-5280-7abc-8def-0123456789ab.jsonl",
                "rollout-T-I.jsonl",
            ),
            ("log_20260304_090000.txt 20260304090000", "log_T.txt T"),
            (
                "Mar 4, 2026 and 4 March 2026, March 4th 2026 09:00",
                "T and T, T",
            ),
            ("notes 4711 Mar  4 09:00 x", "notes 4711 T x"),
            (
                "1772614800 1772614800.123456 1772614800123 p1772614800123456",
                "T T T pT",
            ),
            ("run1772614800", "runT"),
            ("f47ac10b-58cc-4372-a567-0e02b2c3d479", "I"),
            (
                "msg_01KJW16MM0ABCDEFGHJKMNPQRS 69a7f490000000000000000f",
                "msg_I I",
            ),
            ("toolu_01A2b3C4d5E6f7G8h9J0k1L2", "toolu_I"),
            ("prt_019cb8135280abcDEF1234567", "prt_I"),
            ("1478678387097600000", "T"),
        ] {
            assert_eq!(without(text), expected, "{text}");
        }
    }

    proptest! {
        /// Whatever a text is, what is found are parts of it, one behind the other.
        #[test]
        fn parts_of_any_text_are_found(text in "([0-9]{1,8}|[-/.:_T Z,+]|20[12][0-9]|é|[A-Za-z]{1,4}|Mar ){0,24}") {
            let mut found = Vec::new();
            clock().find(&text, &mut found);
            let mut end = 0;
            for (span, _) in found {
                prop_assert!(span.start >= end && text.get(span.clone()).is_some_and(|it| !it.is_empty()));
                end = span.end;
            }
        }
    }

    #[test]
    fn what_tells_nothing_of_it_stays() {
        for text in [
            "since 2019-01-01 and 1999/12/31",
            "claude-sonnet-4-5-20250929 us.anthropic.claude-sonnet-4-5-20250929-v1",
            "1234567890 42 4000000000 555-1234",
            "version 2026.1 and v1.2.3, port 8080, May 5 apples",
            "id_0123456789abcdef [REDACTED:time]",
            "a_long_name_of_something_that_has_words",
        ] {
            assert_eq!(without(text), text);
        }
    }
}
