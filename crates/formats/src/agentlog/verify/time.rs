//! Times of records: read without allocating, because every record has one.

/// A time that orders as it passes: seconds since 1970, and nanoseconds. A leap second is the second before it
/// with more nanoseconds than a second has.
pub(super) type Moment = (i64, i32);

/// What a text is as the time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// To the millisecond, as it should be.
    Exact(Moment),
    /// A time in UTC, with more or fewer digits behind the second.
    Loose(Moment),
    /// None.
    Not,
}

/// Reads `2026-04-24T10:00:00.000Z`, with any number of digits behind the second. RFC 3339 also has lowercase
/// letters and offsets, the format has not.
#[inline]
pub(super) fn read(text: &str) -> Read {
    let Some((second, rest)) = text.as_bytes().split_first_chunk() else {
        return Read::Not;
    };
    match (parts(second), fraction(rest)) {
        (Some(moment), Some((nanos, digits))) => {
            let moment = (moment.0, moment.1 + nanos);
            if digits == 3 {
                Read::Exact(moment)
            } else {
                Read::Loose(moment)
            }
        }
        _ => Read::Not,
    }
}

/// Reads `.000Z` or `Z`: nanoseconds, and how many digits there are.
#[inline]
fn fraction(text: &[u8]) -> Option<(i32, usize)> {
    let before = text.strip_suffix(b"Z")?;
    if before.is_empty() {
        return Some((0, 0));
    }
    let digits = before.strip_prefix(b".")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Finer than that, two times are the same.
    let places = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    let nanos = places.fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0'));
    Some((nanos, digits.len()))
}

/// Reads `2026-04-24T10:00:00`.
#[inline]
fn parts(text: &[u8; 19]) -> Option<Moment> {
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0i64, |sum, digit| {
            digit
                .is_ascii_digit()
                .then(|| sum * 10 + i64::from(digit - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || day < 1 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // Leap seconds end a month. Which months had one is not known for times to come.
    let is_leap_second = second == 60;
    if day > last || (is_leap_second && (day, hour, minute) != (last, 23, 59)) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last of one.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
            - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(if is_leap_second {
        (seconds - 1, 1_000_000_000)
    } else {
        (seconds, 0)
    })
}

#[cfg(test)]
mod tests {
    use quipu_model::Timestamp;

    use super::*;

    #[test]
    fn agrees_with_a_calendar() {
        for day in (-700_000..2_900_000).step_by(997) {
            let time = Timestamp::from_millisecond(day * 86_400_000 + day % 86_400_000);
            let Ok(time) = time else { continue };
            let text = format!("{time:.3}");
            let moment = (time.as_second(), time.subsec_nanosecond());
            if text.len() == 24 && time.subsec_nanosecond() >= 0 {
                assert_eq!(read(&text), Read::Exact(moment), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_day_is_no_time() {
        for wrong in [
            "",
            "yesterday",
            "2026-02-30T10:00:00.000Z",
            "2026-02-29T10:00:00.000Z",
            "2026-13-01T10:00:00.000Z",
            "2026-00-01T10:00:00.000Z",
            "2026-04-31T10:00:00.000Z",
            "2026-04-00T10:00:00.000Z",
            "2026-04-21T24:00:00.000Z",
            "2026-04-21T10:60:00.000Z",
            "2026-04-21T10:00:00.000+00:00",
            "2026-04-21T10:00:00.00xZ",
            // ISO 8601 has these, RFC 3339 has not.
            "20260424T100000Z",
            "2026-04-24T10Z",
            "2026-04-24T10:00Z",
            "2026-04-24T10:00:00,000Z",
            "+002026-04-24T10:00:00.000Z",
            "2026-04-24T10:00:00.Z",
            "2026-04-24 10:00:00.000Z",
            // RFC 3339 has these, the format has not.
            "2026-04-24t10:00:00.000Z",
            "2026-04-24T10:00:00.000z",
            // No leap second is there.
            "2026-04-24T10:00:60.000Z",
            "2026-04-24T23:59:60.000Z",
            "2026-06-30T23:59:61.000Z",
            "2026-04-24T10:00:00.000é",
        ] {
            assert_eq!(read(wrong), Read::Not, "{wrong}");
        }
        for loose in [
            "2026-04-21T10:00:00Z",
            "2026-04-21T10:00:00.1Z",
            "2026-04-21T10:00:00.123456Z",
            "2026-04-21T10:00:00.1234567891234Z",
        ] {
            assert!(
                matches!(read(loose), Read::Loose((1_776_765_600, _))),
                "{loose}"
            );
        }
        assert!(matches!(read("2024-02-29T10:00:00.000Z"), Read::Exact(_)));
    }

    #[test]
    fn a_leap_second_is_in_its_place() {
        let times = [
            "2016-12-31T23:59:59.999Z",
            "2016-12-31T23:59:60.000Z",
            "2016-12-31T23:59:60.999Z",
            "2017-01-01T00:00:00.000Z",
        ];
        let moments = times.map(|time| match read(time) {
            Read::Exact(moment) => moment,
            other => panic!("{time}: {other:?}"),
        });
        assert!(moments.is_sorted_by(|a, b| a < b), "{moments:?}");
    }
}
