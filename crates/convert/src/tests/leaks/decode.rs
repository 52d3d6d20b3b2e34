//! Times that are hidden in ids, numbers and names, decoded as an attacker would. This knows nothing of how they are
//! found when they are removed.

use quipu_model::Timestamp;

/// A time that a word tells, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) how: &'static str,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    /// How many milliseconds it may be off.
    pub(super) within: i64,
}

const DAY: i64 = 86_400_000;

/// Every time that a text may tell.
pub(super) fn times(text: &str, to: &mut Vec<Told>) {
    let mut add = |how, at: Option<i64>, within| {
        if let Some(at) = at {
            to.push(Told { how, at, within });
        }
    };
    let bytes = text.as_bytes();
    for (at, _) in bytes.iter().enumerate().filter(|(at, byte)| {
        byte.is_ascii_alphanumeric() && (*at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
    }) {
        let rest = &text[at..];
        let run = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let word = &rest[..run.unwrap_or(rest.len())];
        add("uuid", uuid(rest), 1000);
        add("ulid", ulid(word), 1000);
        add("object id", object_id(word), 1000);
        add("hex milliseconds", hex_milliseconds(word), 1000);
        digits(word, &mut add);
        add("date", date(rest), DAY);
    }
}

fn digits(word: &str, add: &mut impl FnMut(&'static str, Option<i64>, i64)) {
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        // As in `run1772614800`.
        if let Some(from) = word.find(|c: char| c.is_ascii_digit()) {
            let tail = &word[from..];
            if tail.len() < word.len() && tail.bytes().all(|byte| byte.is_ascii_digit()) {
                digits(tail, add);
            }
        }
        return;
    }
    let number = word.parse::<i64>().ok();
    match word.len() {
        10 => add("epoch seconds", number.map(|it| it * 1000), 1000),
        13 => add("epoch milliseconds", number, 1000),
        16 => add("epoch microseconds", number.map(|it| it / 1000), 1000),
        _ => {}
    }
    if word.len() == 19 {
        add("epoch nanoseconds", number.map(|it| it / 1_000_000), 1000);
    }
    if (17..=19).contains(&word.len()) {
        let shifted = number.map(|it| it >> 22);
        add("snowflake", shifted.map(|it| it + 1_288_834_974_657), 1000);
        add("snowflake", shifted.map(|it| it + 1_420_070_400_000), 1000);
    }
}

/// The time in a UUID of version 1, 6 or 7.
fn uuid(text: &str) -> Option<i64> {
    let text = text.get(..36)?;
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    let hex = |text: &str| i64::from_str_radix(text, 16).ok();
    // 100 ns since 1582.
    let gregorian = |ticks: i64| ticks / 10_000 - 12_219_292_800_000;
    match groups[2].as_bytes()[0] {
        b'7' => Some(hex(groups[0])? << 16 | hex(groups[1])?),
        b'1' => {
            let high = hex(&groups[2][1..])?;
            Some(gregorian(
                high << 48 | hex(groups[1])? << 32 | hex(groups[0])?,
            ))
        }
        b'6' => {
            let low = hex(&groups[2][1..])?;
            Some(gregorian(
                hex(groups[0])? << 28 | hex(groups[1])? << 12 | low,
            ))
        }
        _ => None,
    }
}

fn ulid(word: &str) -> Option<i64> {
    const DIGITS: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    if word.len() != 26 {
        return None;
    }
    let mut at = 0;
    for (index, c) in word.to_ascii_uppercase().chars().enumerate() {
        let digit = i64::try_from(DIGITS.find(c)?).ok()?;
        if index < 10 {
            at = at << 5 | digit;
        }
    }
    Some(at)
}

fn object_id(word: &str) -> Option<i64> {
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    (word.len() == 24 && is_hex).then_some(())?;
    i64::from_str_radix(&word[..8], 16).ok().map(|it| it * 1000)
}

/// Twelve hexadecimal digits of milliseconds at the front of a longer id.
fn hex_milliseconds(word: &str) -> Option<i64> {
    let head = word.get(..12).filter(|_| word.len() > 16)?;
    i64::from_str_radix(head, 16).ok()
}

/// `2026-03-04`, `2026/03/04`, `20260304`, `20260304T090000`.
fn date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let part = text.get(from..to)?;
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(())?;
        part.parse::<i64>().ok()
    };
    let year = number(0, 4)?;
    let (month, day) = match bytes.get(4)? {
        b'-' | b'/' | b'_' | b'.' if bytes.get(7) == bytes.get(4) => {
            (number(5, 7)?, number(8, 10)?)
        }
        b'0'..=b'9' => (number(4, 6)?, number(6, 8)?),
        _ => return None,
    };
    let at: Timestamp = format!("{year:04}-{month:02}-{day:02}T12:00:00Z")
        .parse()
        .ok()?;
    Some(at.as_millisecond())
}

#[test]
fn times_are_decoded() {
    // 2026-03-04T09:00:00Z
    let truth = 1_772_614_800_000;
    for text in [
        "019cb813-5280-7abc-8def-0123456789ab",
        "msg_01KJW16MM0ABCDEFGHJKMNPQRS",
        "69a7f49000000000000000ff",
        "1772614800",
        "1772614800.123456",
        "at=1772614800000",
        "rollout-2026-03-04T09-00-00",
        "log_20260304_090000",
        "prt_019cb8135280abcDEF123456",
    ] {
        let mut told = Vec::new();
        times(text, &mut told);
        let near = |it: &Told| (it.at - truth).abs() <= it.within;
        assert!(told.iter().any(near), "{text}: {told:?}");
    }
}
