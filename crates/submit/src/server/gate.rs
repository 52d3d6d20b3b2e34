//! Who has to wait: a token bucket for each key, and one for each address that guesses at keys.
//!
//! A bucket holds as many tokens as may be used at once, and fills at a steady pace. The clock may be set: when it runs
//! backwards, nothing is added until it has gone on; when it leaps, a bucket is full and no more.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_model::Timestamp;
use quipu_record::Clock;

use super::Gate;
use crate::keys::KeyEntry;

/// How many buckets are held at most, of either kind. One takes about a hundred bytes.
const MOST: usize = 16_384;

/// How fast something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How often at once; at least once.
    pub burst: u32,
    /// How long it takes until it may be done once more.
    pub every: Duration,
}

impl Pace {
    /// So often at once, and so often in a minute afterwards. Zero counts as one.
    pub const fn new(burst: u32, a_minute: u32) -> Self {
        let a_minute = if a_minute == 0 { 1 } else { a_minute };
        Self {
            burst: if burst == 0 { 1 } else { burst },
            every: Duration::from_nanos(60_000_000_000 / a_minute as u64),
        }
    }

    fn full(self) -> i128 {
        i128::from(self.burst.max(1)) * self.price()
    }

    /// What doing it once takes, in nanoseconds.
    fn price(self) -> i128 {
        i128::try_from(self.every.as_nanos())
            .unwrap_or(i128::MAX / 2)
            .max(1)
    }
}

/// What is left, as the nanoseconds it took to fill, and when that was so.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: i128,
    at: Timestamp,
}

impl Bucket {
    fn filled(self, pace: Pace, now: Timestamp) -> Self {
        let since = now.as_nanosecond().saturating_sub(self.at.as_nanosecond());
        let level = self.level.saturating_add(since.max(0)).min(pace.full());
        Self { level, at: now }
    }
}

/// Buckets by whose they are. No more than [`MOST`]: those that are fullest go first, and a full one is like none.
struct Buckets<K> {
    pace: Pace,
    all: Mutex<HashMap<K, Bucket>>,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    fn new(pace: Pace) -> Self {
        let all = Mutex::default();
        Self { pace, all }
    }

    /// No method leaves things half done, so that what a thread left that panicked is whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Bucket>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it takes until there is a token; nothing when there is one.
    fn wait(&self, of: &K, now: Timestamp) -> Option<Duration> {
        let held = self.lock().get(of).copied()?;
        let short = self.pace.price() - held.filled(self.pace, now).level;
        (short > 0).then(|| Duration::from_nanos(u64::try_from(short).unwrap_or(u64::MAX)))
    }

    /// Takes a token.
    ///
    /// # Errors
    ///
    /// There is none, and it takes so long until there is one.
    fn take(&self, of: &K, now: Timestamp) -> Result<(), Duration> {
        let mut all = self.lock();
        if all.len() >= MOST && !all.contains_key(of) {
            self.make_room(&mut all, now);
        }
        let (price, full) = (self.pace.price(), self.pace.full());
        let new = Bucket {
            level: full,
            at: now,
        };
        let bucket = all.entry(of.clone()).or_insert(new);
        *bucket = bucket.filled(self.pace, now);
        if bucket.level < price {
            let short = u64::try_from(price - bucket.level).unwrap_or(u64::MAX);
            return Err(Duration::from_nanos(short));
        }
        bucket.level -= price;
        Ok(())
    }

    /// Forgets an eighth of them, the fullest, so that this is seldom done.
    fn make_room(&self, all: &mut HashMap<K, Bucket>, now: Timestamp) {
        let mut levels: Vec<i128> = all
            .values()
            .map(|bucket| bucket.filled(self.pace, now).level)
            .collect();
        let at = levels.len() - (levels.len() / 8).max(1).min(levels.len());
        levels.select_nth_unstable(at);
        let (least, mut left) = (levels[at], (all.len() / 8).max(1));
        all.retain(|_, bucket| {
            let goes = left > 0 && bucket.filled(self.pace, now).level >= least;
            left -= usize::from(goes);
            !goes
        });
    }
}

/// Limits how fast requests come: by key ([`Gate`]), and for requests without a key that is known by address.
pub struct RateLimit {
    clock: Arc<dyn Clock>,
    keys: Buckets<String>,
    failures: Buckets<IpAddr>,
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("keys", &self.keys.pace)
            .field("failures", &self.failures.pace)
            .finish_non_exhaustive()
    }
}

impl RateLimit {
    /// What a server does unless it is told otherwise: 120 requests at once with a key, and 600 a minute.
    pub const KEYS: Pace = Pace::new(120, 600);
    /// What a server does unless it is told otherwise: ten wrong keys at once from an address, and six a minute.
    pub const FAILURES: Pace = Pace::new(10, 6);

    /// At these paces.
    pub fn new(clock: Arc<dyn Clock>, keys: Pace, failures: Pace) -> Self {
        Self {
            clock,
            keys: Buckets::new(keys),
            failures: Buckets::new(failures),
        }
    }

    /// Whether an address may try a key. Asked for before the key is looked at; it costs nothing.
    ///
    /// # Errors
    ///
    /// Too many keys from there were wrong: it has to wait so long.
    pub fn may_try(&self, peer: IpAddr) -> Result<(), Duration> {
        match self.failures.wait(&network(peer), self.clock.now()) {
            Some(wait) => Err(wait),
            None => Ok(()),
        }
    }

    /// An address came with a wrong key, or with none where one is needed.
    pub fn failed(&self, peer: IpAddr) {
        // Whoever has no token left has to wait anyway.
        self.failures
            .take(&network(peer), self.clock.now())
            .unwrap_or_default();
    }
}

impl Gate for RateLimit {
    fn admit(&self, key: &KeyEntry) -> Result<(), Duration> {
        self.keys.take(&key.key_id().to_owned(), self.clock.now())
    }
}

/// The same, where the server asks as well.
impl Gate for Arc<RateLimit> {
    fn admit(&self, key: &KeyEntry) -> Result<(), Duration> {
        RateLimit::admit(self, key)
    }
}

/// Of IPv6, whoever has one address has the other 2⁶⁴ of its network as well.
fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(Ipv6Addr::from_bits(
                address.to_bits() & !u128::from(u64::MAX),
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn a_burst_passes_and_then_one_at_a_time() {
        let buckets = Buckets::new(Pace::new(3, 60));
        for _ in 0..3 {
            assert_eq!(buckets.take(&"a", at(0)), Ok(()));
        }
        assert_eq!(buckets.take(&"a", at(0)), Err(Duration::from_secs(1)));
        assert_eq!(buckets.take(&"b", at(0)), Ok(()), "another's is another");
        assert_eq!(buckets.take(&"a", at(1)), Ok(()));
        assert!(buckets.take(&"a", at(1)).is_err());
    }

    #[test]
    fn a_clock_that_is_set_neither_locks_out_nor_lets_more_in() {
        let buckets = Buckets::new(Pace::new(2, 60));
        assert_eq!(buckets.take(&"a", at(0)), Ok(()));
        assert_eq!(buckets.take(&"a", at(0)), Ok(()));
        // A day back: nothing is added, and a second later there is one.
        assert_eq!(buckets.take(&"a", at(-86_400)), Err(Duration::from_secs(1)));
        assert_eq!(buckets.take(&"a", at(-86_399)), Ok(()));
        // Years ahead: full, and no more than that.
        let later = at(0).checked_add(80_000.hours()).unwrap();
        assert_eq!(buckets.take(&"a", later), Ok(()));
        assert_eq!(buckets.take(&"a", later), Ok(()));
        assert!(buckets.take(&"a", later).is_err());
        for extreme in [Timestamp::MIN, Timestamp::MAX, Timestamp::MIN] {
            buckets.take(&"a", extreme).unwrap_or_default();
        }
        assert!(buckets.take(&"a", Timestamp::MAX).is_ok());
    }

    #[test]
    fn there_are_never_more_buckets_than_there_is_room_for() {
        let buckets = Buckets::new(Pace::new(1, 1));
        let guilty = usize::MAX;
        assert!(buckets.take(&guilty, at(0)).is_ok());
        for n in 0..3 * MOST {
            // The later they come, the emptier they are.
            let now = at(i64::try_from(n / 1000).unwrap());
            assert!(buckets.take(&n, now).is_ok());
            assert!(buckets.lock().len() <= MOST);
        }
        let last = 3 * MOST - 1;
        assert!(buckets.take(&last, at(48)).is_err(), "the emptiest stay");
    }

    #[test]
    fn guesses_are_counted_by_network() {
        let clock: Arc<dyn Clock> = Arc::new(Stopped);
        let limit = RateLimit::new(clock, RateLimit::KEYS, Pace::new(2, 1));
        let peer = |text: &str| text.parse::<IpAddr>().unwrap();
        for from in ["2001:db8::1", "2001:db8::ffff:2"] {
            assert_eq!(limit.may_try(peer(from)), Ok(()));
            limit.failed(peer(from));
        }
        assert_eq!(
            limit.may_try(peer("2001:db8::3")),
            Err(Duration::from_secs(60))
        );
        assert_eq!(limit.may_try(peer("2001:db8:0:1::3")), Ok(()));
        for _ in 0..5 {
            limit.failed(peer("::ffff:192.0.2.7"));
        }
        assert!(limit.may_try(peer("192.0.2.7")).is_err());
        assert!(limit.may_try(peer("192.0.2.8")).is_ok());
    }

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            at(0)
        }
    }

    proptest! {
        #[test]
        fn no_clock_lets_more_in_than_the_pace(steps in proptest::collection::vec(0_i64..5, 1..200)) {
            let buckets = Buckets::new(Pace::new(3, 60));
            let (mut now, mut let_in) = (0, 0_i64);
            for step in steps {
                now += step;
                let_in += i64::from(buckets.take(&(), at(now)).is_ok());
                prop_assert!(let_in <= 3 + now);
            }
        }
    }
}
