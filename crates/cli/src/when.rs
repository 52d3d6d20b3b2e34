//! Times and sizes, as people write and read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_search::when::{self, Clock, WhenError};

use crate::error::{CommandError, Result};

/// A point in time: RFC 3339, a date or a time of the local zone, `today`, a weekday, or an age (`7d`). A day is
/// its first moment.
pub(crate) fn point(text: &str, now: Timestamp) -> Result<Timestamp> {
    point_in(text, now, TimeZone::system())
}

/// The same, with days of another zone.
pub(crate) fn point_in(text: &str, now: Timestamp, zone: TimeZone) -> Result<Timestamp> {
    when::since(text, &Clock { now, zone }).map_err(|error| wrong(&error))
}

/// The first moment after what a text names: a day ends with its last moment, as with `until:` in a search.
pub(crate) fn end(text: &str, now: Timestamp) -> Result<Timestamp> {
    end_in(text, now, TimeZone::system())
}

/// The same, with days of another zone.
pub(crate) fn end_in(text: &str, now: Timestamp, zone: TimeZone) -> Result<Timestamp> {
    when::until(text, &Clock { now, zone }).map_err(|error| wrong(&error))
}

/// An age before now.
pub(crate) fn age(text: &str, now: Timestamp) -> Result<Timestamp> {
    let zone = TimeZone::system();
    when::age(text, &Clock { now, zone }).map_err(|error| wrong(&error))
}

fn wrong(error: &WhenError) -> CommandError {
    CommandError::usage(error.to_string()).hint(error.hint())
}

/// `500`, `20kB`, `500MB`, `2GB`, `1.5G`: decimal, as disks are sold.
pub(crate) fn size(text: &str) -> Result<u64> {
    let wrong =
        || CommandError::usage(format!("{text:?} is no size")).hint("write 500MB, 2GB or 1.5GB");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let factor: u64 = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let mut part = 0;
    if !fraction.is_empty() {
        let digits: u64 = fraction.parse().map_err(|_| wrong())?;
        let scale = u32::try_from(fraction.len())
            .ok()
            .and_then(|n| 10_u64.checked_pow(n))
            .ok_or_else(wrong)?;
        part = u64::try_from(u128::from(digits) * u128::from(factor) / u128::from(scale))
            .map_err(|_| wrong())?;
    }
    whole
        .checked_mul(factor)
        .and_then(|bytes| bytes.checked_add(part))
        .ok_or_else(wrong)
}

/// A time in the local zone, to the minute.
pub(crate) fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}

/// Stands for a time that is not known.
pub(crate) const UNDATED: &str = "--:--:--";

/// The time of day in the local zone, to the second.
pub(crate) fn local_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%H:%M:%S")
        .to_string()
}

/// The time of day in the local zone, to the millisecond.
pub(crate) fn local_millis(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%H:%M:%S%.3f")
        .to_string()
}

/// The day in the local zone.
pub(crate) fn local_day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d")
        .to_string()
}

/// What a text says, if there is one, as the catalogue has it.
pub(crate) fn millis(
    text: Option<&str>,
    read: impl Fn(&str) -> Result<Timestamp>,
) -> Result<Option<i64>> {
    Ok(text.map(read).transpose()?.map(Timestamp::as_millisecond))
}

/// A time as the catalogue has it.
pub(crate) fn of_millis(millis: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis).ok()
}

/// A time as the file system has it.
pub(crate) fn of_nanos(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(nanos)).ok()
}

/// How long ago, roughly.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(at.as_second()).max(0);
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => {
            let days = seconds / 86_400;
            format!("{days} day{} ago", if days == 1 { "" } else { "s" })
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn times_are_read() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let day = |text: &str| local_day(point(text, now).unwrap());
        assert_eq!(day("today"), local_day(now));
        assert_eq!(day("yesterday"), local_day(now - 24.hours()));
        // Calendars are those of the zone that was asked for, also of months.
        let kiritimati = TimeZone::fixed(jiff::tz::offset(14));
        let month = point_in("1mo", "2026-03-30T12:00:00Z".parse().unwrap(), kiritimati);
        assert_eq!(month.unwrap().to_string(), "2026-02-27T12:00:00Z");
        for (wrong, age) in [(point("soon", now), false), (age("2026-11-01", now), true)] {
            let told = wrong.unwrap_err();
            assert_eq!(told.to_string().contains("is not an age"), age, "{told}");
        }
    }

    #[test]
    fn sizes_are_read() {
        let read = ["7", "20kB", "500 MB", "1.5GB", "2t"].map(|text| size(text).unwrap());
        assert_eq!(
            read,
            [7, 20_000, 500_000_000, 1_500_000_000, 2_000_000_000_000]
        );
        for wrong in [
            "",
            "GB",
            "2XB",
            "-1",
            "1.x",
            "99999999999999999999",
            "1.5.2G",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ages_are_told() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let told = ["11:59:30", "11:00:00", "10:00:00"]
            .map(|time| ago(format!("2026-11-15T{time}Z").parse().unwrap(), now));
        assert_eq!(told, ["just now", "1 h ago", "2 h ago"]);
        assert_eq!(ago(now - (7 * 24).hours(), now), "7 days ago");
    }
}
