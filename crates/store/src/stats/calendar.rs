//! Which day, week and month a slot of time is in.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::Date};
use quipu_agents::SLOT_MS;

use super::By;

/// What stands for a time that is not known.
pub(super) const UNDATED: &str = "(undated)";

/// Days of slots in one zone. Finding them takes a while, so they are remembered.
pub(super) struct Calendar {
    zone: TimeZone,
    days: HashMap<i64, Option<Date>>,
}

impl Calendar {
    pub(super) fn new(zone: &TimeZone) -> Self {
        Self {
            zone: zone.clone(),
            days: HashMap::new(),
        }
    }

    /// The day of a slot. A slot is never in two days: zones differ from UTC by whole slots.
    pub(super) fn day(&mut self, slot: i64) -> Option<Date> {
        *self.days.entry(slot).or_insert_with(|| {
            let begin = Timestamp::from_millisecond(slot.checked_mul(SLOT_MS)?).ok()?;
            Some(begin.to_zoned(self.zone.clone()).date())
        })
    }
}

/// The name of a day, or of the week or month it is in.
pub(super) fn name(by: By, day: Option<Date>) -> String {
    let Some(day) = day else {
        return UNDATED.to_owned();
    };
    match by {
        By::Week => {
            let week = day.iso_week_date();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        By::Month => day.strftime("%Y-%m").to_string(),
        _ => day.to_string(),
    }
}

/// The slot that a time is in, for a bound: what begins in the middle of a slot begins with it.
pub(super) fn slot_of_millis(millis: i64) -> i64 {
    millis.div_euclid(SLOT_MS)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Zones by their rules, so that no database of them is needed.
    pub(crate) fn zone(name: &str) -> TimeZone {
        let rules = match name {
            "Europe/Berlin" => "CET-1CEST,M3.5.0,M10.5.0/3",
            "America/New_York" => "EST5EDT,M3.2.0,M11.1.0",
            "Asia/Kathmandu" => "<+0545>-5:45",
            _ => "UTC0",
        };
        TimeZone::posix(rules).unwrap()
    }

    fn day(name: &str, at: &str) -> String {
        let zone = zone(name);
        let at: Timestamp = at.parse().unwrap();
        let slot = quipu_agents::slot(at);
        super::name(By::Day, Calendar::new(&zone).day(slot))
    }

    #[test]
    fn midnight_is_where_it_is() {
        for (zone, at, on) in [
            ("UTC", "2026-03-29T23:59:59Z", "2026-03-29"),
            ("UTC", "2026-03-30T00:00:00Z", "2026-03-30"),
            // The night in which an hour is left out, and the one that has an hour twice.
            ("Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-28"),
            ("Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29"),
            ("Europe/Berlin", "2026-03-29T21:59:59Z", "2026-03-29"),
            ("Europe/Berlin", "2026-03-29T22:00:00Z", "2026-03-30"),
            ("Europe/Berlin", "2026-10-24T21:59:59Z", "2026-10-24"),
            ("Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-25"),
            ("America/New_York", "2026-11-01T03:59:59Z", "2026-10-31"),
            ("America/New_York", "2026-11-02T04:59:59Z", "2026-11-01"),
            ("America/New_York", "2026-11-02T05:00:00Z", "2026-11-02"),
            // A quarter of an hour beside the hour.
            ("Asia/Kathmandu", "2026-06-01T18:14:59Z", "2026-06-01"),
            ("Asia/Kathmandu", "2026-06-01T18:15:00Z", "2026-06-02"),
        ] {
            assert_eq!(day(zone, at), on, "{zone} {at}");
        }
    }

    #[test]
    fn weeks_are_those_of_iso() {
        let date = |text: &str| text.parse::<Date>().ok();
        assert_eq!(super::name(By::Week, date("2027-01-03")), "2026-W53");
        assert_eq!(super::name(By::Week, date("2027-01-04")), "2027-W01");
        assert_eq!(super::name(By::Month, date("2026-11-15")), "2026-11");
        assert_eq!(super::name(By::Day, None), UNDATED);
    }
}
