//! Times of records: read without allocating, because every record has one.

use quipu_model::Timestamp;

/// A time that orders as it passes: seconds since 1970, and nanoseconds.
pub(super) type Moment = (i64, i32);

/// What a text is as the time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// To the millisecond, as it should be.
    Exact(Moment),
    /// A time in UTC, with more or fewer digits, or in letters that are not usual.
    Loose(Moment),
    /// None.
    Not,
}

/// Reads `2026-04-24T10:00:00.000Z`, and less strictly what else ends in `Z`.
#[inline]
pub(super) fn read(text: &str) -> Read {
    if let Some(moment) = exact(text.as_bytes()) {
        return Read::Exact(moment);
    }
    loose(text)
}

#[cold]
fn loose(text: &str) -> Read {
    if !text.ends_with('Z') {
        return Read::Not;
    }
    let time: Option<Timestamp> = text.parse().ok();
    time.map_or(Read::Not, |time| {
        Read::Loose((time.as_second(), time.subsec_nanosecond()))
    })
}

#[inline]
fn exact(text: &[u8]) -> Option<Moment> {
    let text: &[u8; 24] = text.try_into().ok()?;
    let marks = [
        (4, b'-'),
        (7, b'-'),
        (10, b'T'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
        (23, b'Z'),
    ];
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
    let millis = i32::try_from(number(20, 23)?).ok()?;
    // A second 60 is left to the slow way.
    if !(1..=12).contains(&month) || day < 1 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > last {
        return None;
    }
    // Years begin in March here, so that the leap day is the last of one.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
            - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some((seconds, millis * 1_000_000))
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(read(wrong), Read::Not, "{wrong}");
        }
        for loose in ["2026-04-21T10:00:00Z", "2026-04-21T10:00:00.123456Z"] {
            assert!(
                matches!(read(loose), Read::Loose((1_776_765_600, _))),
                "{loose}"
            );
        }
        assert!(matches!(read("2024-02-29T10:00:00.000Z"), Read::Exact(_)));
    }
}
