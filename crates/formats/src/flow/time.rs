//! Times: read as they were written, written as they should be.
//!
//! Nearly all times that exist in this format are malformed: `2025-12-09T10:20:43.245801+00:00Z` has an
//! offset and a `Z`. A strict parser refuses them, so the reader here is lenient and says what it met.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A time, and how it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// When.
    pub at: Timestamp,
    /// How it was written.
    pub form: Form,
}

/// How a time was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// As documented: `2025-12-09T14:30:22.123456Z`.
    Strict,
    /// With an offset in place of the `Z`. Well formed, if not what the document shows.
    Offset,
    /// With an offset and a `Z`.
    TwoZones,
    /// Without a zone; it is taken for UTC.
    NoZone,
    /// In some other way that can be understood.
    Loose,
}

impl Form {
    /// Whether a strict parser takes it.
    pub const fn is_well_formed(self) -> bool {
        matches!(self, Self::Strict | Self::Offset)
    }
}

/// Reads a time. `None` when it is none.
pub fn parse(text: &str) -> Option<Time> {
    let text = text.trim();
    let is_strict = is_strict(text.as_bytes());
    if let Ok(at) = text.parse::<Timestamp>() {
        let form = if is_strict {
            Form::Strict
        } else if has_offset(text.as_bytes()) {
            Form::Offset
        } else {
            Form::Loose
        };
        return Some(Time { at, form });
    }
    let bare = text.strip_suffix(['Z', 'z']);
    if let Some(at) = bare.and_then(|bare| bare.parse::<Timestamp>().ok()) {
        let form = Form::TwoZones;
        return Some(Time { at, form });
    }
    let civil: DateTime = bare.unwrap_or(text).parse().ok()?;
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    let form = if bare.is_none() {
        Form::NoZone
    } else {
        Form::Loose
    };
    Some(Time {
        at: zoned.timestamp(),
        form,
    })
}

/// `2025-12-09T14:30:22`, with any fraction, and `Z`.
fn is_strict(text: &[u8]) -> bool {
    let Some(rest) = date_time(text) else {
        return false;
    };
    fraction(rest) == b"Z"
}

/// The same with `+01:00` in place of the `Z`.
fn has_offset(text: &[u8]) -> bool {
    let Some(rest) = date_time(text) else {
        return false;
    };
    matches!(fraction(rest), [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|x| x.is_ascii_digit()))
}

/// What is behind the seconds.
fn date_time(text: &[u8]) -> Option<&[u8]> {
    let (head, rest) = text.split_at_checked(19)?;
    let fits = head.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        10 => *byte == b'T',
        13 | 16 => *byte == b':',
        _ => byte.is_ascii_digit(),
    });
    fits.then_some(rest)
}

/// What is behind the fraction of a second, if there is one.
fn fraction(text: &[u8]) -> &[u8] {
    let Some(digits) = text.strip_prefix(b".") else {
        return text;
    };
    let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 { text } else { &digits[count..] }
}

/// The earliest time that can be written: years have four digits.
pub const EARLIEST: Timestamp = Timestamp::constant(-62_167_219_200, 0);

/// Writes a time: RFC 3339 in UTC, with `Z` and microseconds. What is below them is cut off, and what is
/// before the year 0 becomes [`EARLIEST`].
pub fn format(at: Timestamp) -> String {
    let at = at.max(EARLIEST);
    format!("{:.6}", floor(at))
}

/// The time as it reads back: to the microsecond.
pub fn floor(at: Timestamp) -> Timestamp {
    let at = at.max(EARLIEST);
    // Below the microsecond there is nothing to overflow: it is between two times that exist.
    Timestamp::from_microsecond(at.as_nanosecond().div_euclid(1000).try_into().unwrap_or(0))
        .unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_way_in_which_times_were_written() {
        for (text, form, nanos) in [
            ("2025-12-09T14:30:22.123456Z", Form::Strict, 123_456_000),
            ("2025-12-09T14:30:22Z", Form::Strict, 0),
            (
                "2025-12-09T14:30:22.123456+00:00Z",
                Form::TwoZones,
                123_456_000,
            ),
            ("2025-12-09T14:30:22+00:00Z", Form::TwoZones, 0),
            ("2025-12-09T15:30:22+01:00Z", Form::TwoZones, 0),
            ("2025-12-09T14:30:22.5+00:00", Form::Offset, 500_000_000),
            ("2025-12-09T14:30:22.5", Form::NoZone, 500_000_000),
            ("2025-12-09 14:30:22", Form::NoZone, 0),
            ("2025-12-09 14:30:22Z", Form::Loose, 0),
        ] {
            let read = parse(text).unwrap();
            let expected = Timestamp::new(1_765_290_622, nanos).unwrap();
            assert_eq!((read.at, read.form), (expected, form), "{text}");
        }
        for text in [
            "",
            "Z",
            "yesterday",
            "2025-13-09T14:30:22Z",
            "1765290622",
            "+00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_before_the_year_0_have_no_form() {
        assert_eq!(format(Timestamp::MIN), "0000-01-01T00:00:00.000000Z");
        assert_eq!(format(EARLIEST), "0000-01-01T00:00:00.000000Z");
        assert_eq!(format(Timestamp::MAX), "9999-12-30T22:00:00.999999Z");
    }

    proptest! {
        #[test]
        fn what_is_written_is_strict_and_reads_back(
            nanos in EARLIEST.as_nanosecond()..Timestamp::MAX.as_nanosecond()
        ) {
            let at = Timestamp::from_nanosecond(nanos).unwrap();
            let text = format(at);
            let read = parse(&text).unwrap();
            prop_assert_eq!(read.form, Form::Strict);
            prop_assert_eq!(read.at, floor(at));
            prop_assert_eq!(text.len(), 27);
        }

        #[test]
        fn any_text_is_read_without_harm(text in ".{0,40}") {
            parse(&text);
        }
    }
}
