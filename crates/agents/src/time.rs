//! Times, as agents write them.

use jiff::Timestamp;
use quipu_model::json::{Kind, Node};

/// A time from a JSON value: RFC 3339, with or without the faults that are known to be made, or a count
/// of seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by its size.
pub fn of(node: Node<'_>) -> Option<Timestamp> {
    match node.kind() {
        Kind::String => parse(&node.as_str()?),
        Kind::Number => match node.as_i64() {
            Some(count) => from_count(count),
            None => from_seconds(node.as_f64()?),
        },
        _ => None,
    }
}

/// A time from the field of an object.
pub fn field(node: Node<'_>, key: &str) -> Option<Timestamp> {
    of(node.get(key)?)
}

/// A time from text.
pub fn parse(text: &str) -> Option<Timestamp> {
    if let Some(at) = usual(text.as_bytes()) {
        return Some(at);
    }
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    // `2026-01-02T03:04:05+00:00Z` has two zones, `2026-01-02 03:04:05` has none and means UTC.
    if let Some(stripped) = text.strip_suffix('Z')
        && let Ok(at) = stripped.parse()
    {
        return Some(at);
    }
    let civil: jiff::civil::DateTime = text.trim_end_matches('Z').parse().ok()?;
    civil
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp())
}

/// `2026-01-02T03:04:05.678Z`, which is what nearly every agent writes.
fn usual(text: &[u8]) -> Option<Timestamp> {
    let [
        y1,
        y2,
        y3,
        y4,
        b'-',
        m1,
        m2,
        b'-',
        d1,
        d2,
        b'T',
        h1,
        h2,
        b':',
        n1,
        n2,
        b':',
        s1,
        s2,
        rest @ ..,
    ] = text
    else {
        return None;
    };
    let millis = match rest {
        [b'Z'] => 0,
        [b'.', a, b, c, b'Z'] => i64::from(digits(&[*a, *b, *c])?),
        _ => return None,
    };
    let year = i64::from(digits(&[*y1, *y2, *y3, *y4])?);
    let month = i64::from(digits(&[*m1, *m2])?);
    let day = i64::from(digits(&[*d1, *d2])?);
    let hour = i64::from(digits(&[*h1, *h2])?);
    let minute = i64::from(digits(&[*n1, *n2])?);
    let second = i64::from(digits(&[*s1, *s2])?);
    // Days that not every month has are left to the library.
    let plain = (1..=12).contains(&month)
        && (1..=28).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && year > 0;
    if !plain {
        return None;
    }
    // Days since 1970, with years that begin in March so that the odd day is the last.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let days = shifted_year * 365 + shifted_year / 4 - shifted_year / 100
        + shifted_year / 400
        + day_of_year
        - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Timestamp::from_millisecond(seconds * 1_000 + millis).ok()
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u32::from(byte - b'0'))
    })
}

/// A time from a count since 1970.
pub fn from_count(count: i64) -> Option<Timestamp> {
    // Seconds reach 1e11 in the year 5138; milliseconds were there in 1973.
    match count.unsigned_abs() {
        0..100_000_000_000 => Timestamp::from_second(count),
        100_000_000_000..100_000_000_000_000 => Timestamp::from_millisecond(count),
        100_000_000_000_000..100_000_000_000_000_000 => Timestamp::from_microsecond(count),
        _ => Timestamp::from_nanosecond(i128::from(count)),
    }
    .ok()
}

fn from_seconds(seconds: f64) -> Option<Timestamp> {
    if !seconds.is_finite() || seconds.abs() >= 1e17 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "known to be in range")]
    if seconds.abs() < 1e11 {
        Timestamp::from_microsecond((seconds * 1e6).round() as i64).ok()
    } else {
        from_count(seconds.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_form_reads_as_the_library_reads_it() {
        for second in [
            0,
            1,
            951_782_399,
            1_709_164_799,
            1_772_419_478,
            4_102_444_799,
        ] {
            for day in 0..800 {
                let at = Timestamp::from_millisecond((second + day * 86_400) * 1000 + 7).unwrap();
                let text = at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
                assert_eq!(parse(&text), Some(at), "{text}");
            }
        }
    }

    #[test]
    fn faults_that_are_known_to_be_made() {
        let at = Timestamp::from_second(1_767_323_045).unwrap();
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05+00:00Z",
            "2026-01-02T03:04:05+00:00",
            "2026-01-02 03:04:05",
            "2026-01-02T03:04:05.000000",
            "2026-01-02T04:04:05+01:00",
        ] {
            assert_eq!(parse(text), Some(at), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2026-13-02T03:04:05Z",
            "2026-02-30T03:04:05Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn counts_are_told_apart_by_size() {
        let at = Timestamp::from_second(1_767_323_045).unwrap();
        for count in [
            1_767_323_045,
            1_767_323_045_000,
            1_767_323_045_000_000,
            1_767_323_045_000_000_000,
        ] {
            assert_eq!(from_count(count), Some(at));
        }
        assert_eq!(from_seconds(1_767_323_045.0), Some(at));
        assert_eq!(from_seconds(f64::NAN), None);
    }
}
