//! Times, as people write them.
//!
//! A text names a moment (`2026-11-15T08:00:00Z`, `24h`) or a day (`2026-11-15`, `yesterday`). A span that
//! is given by two texts goes from the beginning of the first to the end of the second: [`since`] and
//! [`until`] differ for days, and are the same for moments.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span};
use quipu_model::Timestamp;

/// What the time is, and where.
#[derive(Debug, Clone)]
pub struct Clock {
    /// The time that ages go back from.
    pub now: Timestamp,
    /// The zone that dates and times without one belong to.
    pub zone: TimeZone,
}

/// Why a text names no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhenError {
    /// It is not written like a time.
    #[error("{0:?} is no time")]
    NoTime(String),
    /// It is not written like an age.
    #[error("{0:?} is not an age")]
    NoAge(String),
    /// It is before or after all time that can be told.
    #[error("{0:?} is out of the range of times")]
    OutOfRange(String),
}

impl WhenError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoTime(_) | Self::OutOfRange(_) => {
                "write a date (2026-11-15), a time (2026-11-15T08:00), today, yesterday, a weekday \
                 or an age (24h, 7d, 2w, 3mo, 1y)"
            }
            Self::NoAge(_) => "write 24h, 90d, 12w, 6mo or 1y",
        }
    }

    fn of(case: fn(String) -> Self, text: &str) -> Self {
        const SHOWN: usize = 40;
        let end = text.char_indices().nth(SHOWN);
        case(match end {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        })
    }
}

/// The first moment that a text names.
pub fn since(text: &str, clock: &Clock) -> Result<Timestamp, WhenError> {
    match read(text, clock)? {
        When::Moment(at) => Ok(at),
        When::Day(date) => midnight(Ok(date), text, clock),
    }
}

/// The end of what a text names. It is no part of it any more: the end of a day is the beginning of the
/// next one.
pub fn until(text: &str, clock: &Clock) -> Result<Timestamp, WhenError> {
    match read(text, clock)? {
        When::Moment(at) => Ok(at),
        When::Day(date) => midnight(date.tomorrow(), text, clock),
    }
}

/// So long before now.
pub fn age(text: &str, clock: &Clock) -> Result<Timestamp, WhenError> {
    before(text, clock).unwrap_or_else(|| Err(WhenError::of(WhenError::NoAge, text)))
}

/// What a text names.
enum When {
    Moment(Timestamp),
    Day(Date),
}

fn read(text: &str, clock: &Clock) -> Result<When, WhenError> {
    if let Some(at) = before(text, clock) {
        return at.map(When::Moment);
    }
    if let Some(date) = day_by_name(text, clock) {
        return date.map(When::Day);
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(When::Moment(at));
    }
    let wrong = || WhenError::of(WhenError::NoTime, text);
    // The parsers pass over a zone in brackets, which would then be another than is meant.
    if text.contains('[') {
        return Err(wrong());
    }
    // The parser of dates is content with a time behind the date.
    if !text.contains(['T', 't', ' ', ':']) {
        return text.parse().map(When::Day).map_err(|_| wrong());
    }
    let local: DateTime = text.parse().map_err(|_| wrong())?;
    moment(local, text, clock).map(When::Moment)
}

/// A day that has a name: `today`, `yesterday`, or a weekday, which is the last of its name, today included.
fn day_by_name(text: &str, clock: &Clock) -> Option<Result<Date, WhenError>> {
    let today = clock.now.to_zoned(clock.zone.clone()).date();
    let name = text.to_ascii_lowercase();
    let date = match name.as_str() {
        "today" => Ok(today),
        "yesterday" => today.yesterday(),
        name => {
            let back = today.weekday().since(weekday(name)?);
            today.checked_sub(Span::new().days(back))
        }
    };
    Some(date.map_err(|_| WhenError::of(WhenError::OutOfRange, text)))
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

/// When a day begins. Where clocks leap over midnight, that is when they have leapt.
fn midnight(
    date: Result<Date, jiff::Error>,
    text: &str,
    clock: &Clock,
) -> Result<Timestamp, WhenError> {
    let date = date.map_err(|_| WhenError::of(WhenError::OutOfRange, text))?;
    moment(date.at(0, 0, 0, 0), text, clock)
}

/// When the clocks of the zone show this. Of two such moments the first; when they leap over it, as much
/// later as they leap.
fn moment(local: DateTime, text: &str, clock: &Clock) -> Result<Timestamp, WhenError> {
    clock
        .zone
        .to_timestamp(local)
        .map_err(|_| WhenError::of(WhenError::OutOfRange, text))
}

/// So long before now: `30min`, `24h`, `7d`, `2w`, `3mo`, `1y`. A day has 24 hours here; months and years
/// are those of the calendar. `None` when it is not written like that.
fn before(text: &str, clock: &Clock) -> Option<Result<Timestamp, WhenError>> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let minutes = match &text[digits.len()..] {
        "min" => Some(1),
        "h" => Some(60),
        "d" => Some(24 * 60),
        "w" => Some(7 * 24 * 60),
        "mo" | "y" => None,
        _ => return None,
    };
    let at = digits.parse::<i64>().ok().and_then(|number| {
        if let Some(minutes) = minutes {
            let seconds = number.checked_mul(minutes)?.checked_mul(60)?;
            return clock
                .now
                .checked_sub(SignedDuration::from_secs(seconds))
                .ok();
        }
        let span = if text.ends_with("mo") {
            Span::new().try_months(number)
        } else {
            Span::new().try_years(number)
        };
        let now = clock.now.to_zoned(clock.zone.clone());
        Some(now.checked_sub(span.ok()?).ok()?.timestamp())
    });
    Some(at.ok_or_else(|| WhenError::of(WhenError::OutOfRange, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(now: &str, zone: &str) -> Clock {
        Clock {
            now: now.parse().unwrap(),
            zone: TimeZone::get(zone).unwrap(),
        }
    }

    /// What a text names, from beginning to end, in UTC.
    fn span(text: &str, clock: &Clock) -> [String; 2] {
        [since(text, clock), until(text, clock)].map(|at| at.unwrap().to_string())
    }

    #[test]
    fn ages_go_back_from_now() {
        let clock = clock("2026-11-15T12:00:00Z", "Europe/Berlin");
        for (text, at) in [
            ("0h", "2026-11-15T12:00:00Z"),
            ("30min", "2026-11-15T11:30:00Z"),
            ("24h", "2026-11-14T12:00:00Z"),
            ("7d", "2026-11-08T12:00:00Z"),
            ("2w", "2026-11-01T12:00:00Z"),
            // Summer time: an hour less in UTC at the same time of day.
            ("3mo", "2026-08-15T11:00:00Z"),
            ("1y", "2025-11-15T12:00:00Z"),
        ] {
            assert_eq!(span(text, &clock), [at, at], "{text}");
            assert_eq!(age(text, &clock).unwrap().to_string(), at);
        }
        // A day is 24 hours, also when the one on the calendar had 25.
        let berlin = self::clock("2026-10-25T12:00:00Z", "Europe/Berlin");
        assert_eq!(span("1d", &berlin)[0], "2026-10-24T12:00:00Z");
    }

    #[test]
    fn moments_are_moments() {
        let berlin = clock("2026-11-15T12:00:00Z", "Europe/Berlin");
        for (text, at) in [
            ("2026-11-15T08:00:00Z", "2026-11-15T08:00:00Z"),
            ("2026-11-15T08:00:00.25+05:45", "2026-11-15T02:15:00.25Z"),
            ("2026-11-15T08:00", "2026-11-15T07:00:00Z"),
            ("2026-11-15 08:00:30", "2026-11-15T07:00:30Z"),
            // Clocks go from two to three: there is no half past two.
            ("2026-03-29T02:30", "2026-03-29T01:30:00Z"),
            // And from three to two: there are two of them.
            ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(span(text, &berlin), [at, at], "{text}");
        }
    }

    #[test]
    fn days_are_as_long_as_they_are() {
        let now = "2026-11-15T12:00:00Z";
        for (zone, text, from, to) in [
            (
                "UTC",
                "2026-11-15",
                "2026-11-15T00:00:00Z",
                "2026-11-16T00:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29",
                "2026-03-28T23:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-10-25",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (
                "America/New_York",
                "2026-03-08",
                "2026-03-08T05:00:00Z",
                "2026-03-09T04:00:00Z",
            ),
            (
                "America/New_York",
                "2026-11-01",
                "2026-11-01T04:00:00Z",
                "2026-11-02T05:00:00Z",
            ),
            (
                "Asia/Kathmandu",
                "2026-11-15",
                "2026-11-14T18:15:00Z",
                "2026-11-15T18:15:00Z",
            ),
            // Clocks leap over midnight, to one.
            (
                "Africa/Cairo",
                "2026-04-24",
                "2026-04-23T22:00:00Z",
                "2026-04-24T21:00:00Z",
            ),
            // Midnight comes twice.
            (
                "America/Havana",
                "2026-11-01",
                "2026-11-01T04:00:00Z",
                "2026-11-02T05:00:00Z",
            ),
            // The whole day was left out: it is empty, where the next one begins.
            (
                "Pacific/Apia",
                "2011-12-29",
                "2011-12-29T10:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-30",
                "2011-12-30T10:00:00Z",
                "2011-12-30T10:00:00Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-31",
                "2011-12-30T10:00:00Z",
                "2011-12-31T10:00:00Z",
            ),
        ] {
            assert_eq!(
                span(text, &clock(now, zone)),
                [from, to],
                "{text} in {zone}"
            );
        }
    }

    #[test]
    fn days_have_names() {
        // Half an hour after midnight in Berlin, still Saturday in UTC and in New York.
        let now = "2026-11-14T23:30:00Z";
        let (berlin, york) = (clock(now, "Europe/Berlin"), clock(now, "America/New_York"));
        for (text, in_berlin, in_york) in [
            ("today", "2026-11-15", "2026-11-14"),
            ("yesterday", "2026-11-14", "2026-11-13"),
            ("Sunday", "2026-11-15", "2026-11-08"),
            ("sat", "2026-11-14", "2026-11-14"),
            ("mon", "2026-11-09", "2026-11-09"),
        ] {
            assert_eq!(span(text, &berlin), span(in_berlin, &berlin), "{text}");
            assert_eq!(span(text, &york), span(in_york, &york), "{text}");
        }
        // The day before one that was left out.
        let apia = clock("2011-12-30T12:00:00Z", "Pacific/Apia");
        assert_eq!(span("today", &apia), span("2011-12-31", &apia));
        assert_eq!(span("yesterday", &apia), span("2011-12-30", &apia));
    }

    #[test]
    fn other_texts_are_no_times() {
        let clock = clock("2026-11-15T12:00:00Z", "Europe/Berlin");
        for text in [
            "",
            " ",
            "d",
            "-3d",
            "7",
            "7m",
            "soon",
            "2026",
            "2026-13-01",
            "2026-11-31",
            "12:30",
            "2026-11-15T25:00",
            "2026-11-15T08:00[Asia/Tokyo]",
            "2026-11-15[Asia/Tokyo]",
            "²d",
        ] {
            let no_time = Err(WhenError::NoTime(text.to_owned()));
            assert_eq!(since(text, &clock), no_time);
            assert_eq!(until(text, &clock), no_time);
        }
        for text in [
            "99999999999999999999y",
            "999999999999y",
            "9223372036854775807w",
            "20000y",
        ] {
            assert_eq!(
                since(text, &clock),
                Err(WhenError::OutOfRange(text.to_owned()))
            );
        }
        assert!(matches!(
            until("9999-12-31", &clock),
            Err(WhenError::OutOfRange(_))
        ));
        assert_eq!(
            age("2026-11-01", &clock),
            Err(WhenError::NoAge("2026-11-01".to_owned()))
        );
        let long = since(&"x".repeat(100_000), &clock).unwrap_err();
        assert!(long.to_string().len() < 80, "{long}");
    }
}
