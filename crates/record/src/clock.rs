//! Where times come from.

use std::time::SystemTime;

use quipu_model::Timestamp;

/// A source of the current time. Need not run forwards: order is `seq`.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the system's time is asked for"
    )]
    fn now(&self) -> Timestamp {
        at(SystemTime::now())
    }
}

/// A time of the system to the microsecond: nanoseconds are noise here, and would lengthen every line. A clock that is set
/// beyond the times that can be written gives the last or first of them; order is `seq`, and recording goes on.
fn at(time: SystemTime) -> Timestamp {
    let (since, ahead) = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (since, true),
        Err(before) => (before.duration(), false),
    };
    let microseconds = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    let (signed, last) = if ahead {
        (microseconds, Timestamp::MAX)
    } else {
        (-microseconds, Timestamp::MIN)
    };
    let last = || Timestamp::from_second(last.as_second()).unwrap_or(last);
    Timestamp::from_microsecond(signed).unwrap_or_else(|_| last())
}

/// Writes times, keeping the part that changes once a second.
#[derive(Debug, Default)]
pub(crate) struct TimeWriter {
    second: Option<i64>,
    /// `2026-06-08T08:14:42`
    prefix: Vec<u8>,
}

impl TimeWriter {
    /// Replaces what `out` holds with the time in RFC 3339.
    pub(crate) fn write(&mut self, time: Timestamp, out: &mut Vec<u8>) {
        out.clear();
        let (second, nanos) = (time.as_second(), time.subsec_nanosecond());
        if nanos < 0 {
            // Before 1970 the fraction counts the other way.
            quipu_exchange::write_timestamp(time, out);
            return;
        }
        if self.second != Some(second) {
            self.prefix.clear();
            let whole = Timestamp::from_second(second).unwrap_or(time);
            quipu_exchange::write_timestamp(whole, &mut self.prefix);
            self.prefix.pop_if(|last| *last == b'Z');
            self.second = Some(second);
        }
        out.extend_from_slice(&self.prefix);
        if nanos > 0 {
            let mut digits = [b'.'; 10];
            let mut rest = nanos;
            for digit in digits[1..].iter_mut().rev() {
                *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
                rest /= 10;
            }
            let len = digits
                .iter()
                .rposition(|&d| d != b'0')
                .map_or(0, |last| last + 1);
            out.extend_from_slice(&digits[..len]);
        }
        out.push(b'Z');
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clocks_that_are_set_wrong_give_times_that_can_be_written_and_read() {
        let year = Duration::from_secs(366 * 86_400);
        let epoch = SystemTime::UNIX_EPOCH;
        let now = epoch + Duration::from_nanos(1_780_000_000_123_456_789);
        assert_eq!(at(now).to_string(), "2026-05-28T20:26:40.123456Z");
        let times = [
            (epoch, "1970-01-01T00:00:00Z"),
            (
                epoch - Duration::from_micros(1),
                "1969-12-31T23:59:59.999999Z",
            ),
            (epoch + 8_100 * year, "9999-12-30T22:00:00Z"),
            (epoch + 290_000 * year, "9999-12-30T22:00:00Z"),
        ];
        for (time, expected) in times {
            let mut written = Vec::new();
            TimeWriter::default().write(at(time), &mut written);
            let written = String::from_utf8(written).unwrap();
            assert_eq!(written, expected);
            assert_eq!(written.parse::<Timestamp>().unwrap(), at(time));
        }
    }

    proptest! {
        #[test]
        fn writes_what_the_format_writes(
            second in prop_oneof![-5_000i64..5_000, 1_700_000_000i64..1_900_000_000],
            nanos in prop_oneof![Just(0), Just(120_000_000), Just(1), 0i32..1_000_000_000],
        ) {
            let mut writer = TimeWriter::default();
            for second in [second, second, second + 1, second - 1] {
                let time = Timestamp::new(second, nanos).unwrap();
                let (mut ours, mut theirs) = (vec![b'x'], Vec::new());
                writer.write(time, &mut ours);
                quipu_exchange::write_timestamp(time, &mut theirs);
                prop_assert_eq!(String::from_utf8(ours), String::from_utf8(theirs));
            }
        }
    }
}
