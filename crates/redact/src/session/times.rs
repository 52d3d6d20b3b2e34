//! Times that say how long something took, and not when it was.

use quipu_model::{Header, Timestamp};

use crate::Key;
use crate::profile::Times;

/// By how much all times of a transcript are moved, in seconds.
pub(super) fn shift(times: Times, header: &Header, key: &Key, transcript: &str) -> Option<i64> {
    match times {
        Times::Keep => None,
        Times::Shift => {
            const DAYS: u64 = 180;
            const DAY: u64 = 24 * 60 * 60;
            let hash = key.hash("time-shift", &[transcript.as_bytes()]);
            let number = |at: usize| {
                hash[at..at + 8]
                    .iter()
                    .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
            };
            let seconds = (number(0) % DAYS) * DAY + number(8) % DAY + 1;
            let seconds = i64::try_from(seconds).unwrap_or(1);
            Some(if hash[16] & 1 == 0 { seconds } else { -seconds })
        }
        Times::Relative => Some(header.started_at.map_or(0, from)),
    }
}

/// The shift by which a time becomes the epoch.
pub(super) fn from(start: Timestamp) -> i64 {
    i64::try_from(-(whole_seconds(start) / 1_000_000_000)).unwrap_or(0)
}

/// The last whole second at or before a time, in nanoseconds.
pub(crate) fn whole_seconds(at: Timestamp) -> i128 {
    at.as_nanosecond().div_euclid(1_000_000_000) * 1_000_000_000
}

/// A time, moved, in whole seconds: the parts of a second would stay what they were. At the ends of what can be said it
/// stays.
pub(super) fn moved(at: Timestamp, seconds: i64) -> Timestamp {
    let nanos = whole_seconds(at) + i128::from(seconds) * 1_000_000_000;
    let nanos = nanos.clamp(
        Timestamp::MIN.as_nanosecond(),
        Timestamp::MAX.as_nanosecond(),
    );
    Timestamp::from_nanosecond(nanos).unwrap_or(at)
}
