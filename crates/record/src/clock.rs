//! Where times come from.

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
    fn now(&self) -> Timestamp {
        // Nanoseconds are noise here, and would lengthen every line.
        let now = Timestamp::now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }
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
            quipu_formats::exchange::write_timestamp(time, out);
            return;
        }
        if self.second != Some(second) {
            self.prefix.clear();
            let whole = Timestamp::from_second(second).unwrap_or(time);
            quipu_formats::exchange::write_timestamp(whole, &mut self.prefix);
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
    use super::*;
    use proptest::prelude::*;

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
                quipu_formats::exchange::write_timestamp(time, &mut theirs);
                prop_assert_eq!(String::from_utf8(ours), String::from_utf8(theirs));
            }
        }
    }
}
