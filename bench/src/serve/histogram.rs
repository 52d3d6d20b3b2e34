//! How long things took, in buckets.

use std::time::Duration;

/// Buckets for each power of two: figures are off by less than one in a hundred.
const FINE: u32 = 7;

/// Durations, counted in buckets that grow with what is in them. A million of them take no more room than one.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    most: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; (65 - FINE as usize) << FINE],
            count: 0,
            most: 0,
        }
    }
}

/// The bucket of a duration. Short ones have a bucket for each nanosecond.
fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINE + 1);
    ((shift as usize) << FINE) + usize::try_from(nanos >> shift).unwrap_or(0)
}

/// The longest duration of a bucket.
fn end_of(bucket: usize) -> u64 {
    // The first two rows of buckets have steps of one.
    let shift = (bucket >> FINE).saturating_sub(1);
    let step = (bucket - (shift << FINE)) as u64;
    ((step + 1) << shift) - 1
}

impl Histogram {
    pub(super) fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Longer than a century is as long as a century.
        let nanos = nanos.min(u64::MAX >> 1);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.most = self.most.max(nanos);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += more;
        }
        self.count += other.count;
        self.most = self.most.max(other.most);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The shortest duration, in milliseconds, that so many of a hundred are not above. Not a number if nothing was recorded.
    pub(super) fn percent(&self, percent: u64) -> f64 {
        if self.count == 0 {
            return f64::NAN;
        }
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return end_of(bucket).min(self.most) as f64 / 1e6;
            }
        }
        self.most as f64 / 1e6
    }

    /// The longest, in milliseconds.
    pub(super) fn most(&self) -> f64 {
        self.most as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_near_its_end() {
        for power in 0..62 {
            for more in [0, 1, 3] {
                let nanos = (1_u64 << power) + more * (1 << power) / 4;
                let end = end_of(bucket(nanos));
                assert!(end >= nanos, "{nanos}");
                assert!(
                    (end - nanos) as f64 <= nanos as f64 / 100.0,
                    "{nanos} {end}"
                );
            }
        }
    }

    #[test]
    fn of_a_hundred_the_ninety_ninth() {
        let mut histogram = Histogram::default();
        assert!(histogram.percent(50).is_nan());
        for ms in 1..=100 {
            histogram.record(Duration::from_millis(ms));
        }
        let near = |found: f64, meant: f64| (found - meant).abs() <= meant / 100.0;
        assert!(near(histogram.percent(50), 50.0));
        assert!(near(histogram.percent(99), 99.0));
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!(twice.count(), 200);
        assert!(near(twice.percent(50), 50.0));
        assert!(near(twice.most(), 100.0));
    }
}
