//! Numbers that cannot be.
//!
//! A log may say that a call took 9,223,372,036,854,775,807 tokens. Such a number is wrong, and whoever adds it to
//! others makes all of them wrong. So every count, duration and cost of an entry is looked at here, in the one place
//! that all of them pass, and one that cannot be is unknown from here on. It is counted, with its place in the log,
//! among what the adapter does not know: `value:usage.input`.

use quipu_model::{Money, Usage};

use crate::out::Position;
use crate::session::Tokens;
use crate::{Drift, Entry, Session};

/// No call took so many tokens, and no session a thousand times as many.
pub(crate) const MOST_TOKENS: u64 = 1_000_000_000_000;
const MOST_TOKENS_OF_SESSION: u64 = MOST_TOKENS * 1_000;

/// Nothing took so many milliseconds: it is thirty years.
pub(crate) const MOST_MS: u64 = 1_000_000_000_000;

/// No session cost so many dollars.
const MOST_DOLLARS: i128 = 1_000_000_000;

/// Makes unknown what cannot be.
pub(crate) fn of_entry(entry: &mut Entry<'_>, drift: &mut Drift, at: Position) {
    if let Some(usage) = &mut entry.usage {
        bound(usage, MOST_TOKENS, "usage", drift, at);
    }
    if entry.duration_ms.is_some_and(|ms| ms > MOST_MS) {
        entry.duration_ms = None;
        drift.count("value:duration", at);
    }
    if entry.cost.is_some_and(|cost| !is_cost(cost)) {
        entry.cost = None;
        drift.count("value:cost", at);
    }
}

/// A session without what cannot be; `None` when all of it can.
pub(crate) fn of_session(session: &Session, drift: &mut Drift, at: Position) -> Option<Session> {
    let mut usage: Usage = session.vendor_usage.unwrap_or_default().into();
    let told = usage;
    bound(
        &mut usage,
        MOST_TOKENS_OF_SESSION,
        "vendor_usage",
        drift,
        at,
    );
    let cost = session.vendor_cost.as_deref();
    let wrong_cost = cost.is_some_and(|cost| !Money::parse(cost).is_some_and(is_cost));
    if wrong_cost {
        drift.count("value:vendor_cost", at);
    }
    (usage != told || wrong_cost).then(|| Session {
        vendor_usage: Some(Tokens::from(usage)).filter(|_| !usage.is_empty()),
        vendor_cost: session.vendor_cost.clone().filter(|_| !wrong_cost),
        ..session.clone()
    })
}

fn is_cost(cost: Money) -> bool {
    (Money::ZERO..=Money::from_atto(MOST_DOLLARS * 1_000_000_000_000_000_000)).contains(&cost)
}

/// Buckets are worked out from each other: what no cache had is what is left of the prompt. So when one cannot be,
/// the others on the same side are not known either.
fn bound(usage: &mut Usage, most: u64, scope: &str, drift: &mut Drift, at: Position) {
    let Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    } = usage;
    let mut side = |buckets: &mut [(&str, &mut Option<u64>)]| {
        let mut wrong = false;
        for (name, bucket) in buckets.iter() {
            if bucket.is_some_and(|n| n > most) {
                drift.count(&format!("value:{scope}.{name}"), at);
                wrong = true;
            }
        }
        if wrong {
            for (_, bucket) in buckets {
                **bucket = None;
            }
        }
    };
    side(&mut [
        ("input", input),
        ("cache_read", cache_read),
        ("cache_write", cache_write),
        ("cache_write_1h", cache_write_1h),
    ]);
    side(&mut [("output", output), ("reasoning", reasoning)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_cannot_be_is_unknown_and_counted() {
        let at = Position { offset: 7, line: 3 };
        for (usage, left, counted) in [
            (
                Usage {
                    input: Some(5),
                    output: Some(u64::MAX),
                    reasoning: Some(3),
                    ..Usage::default()
                },
                Usage {
                    input: Some(5),
                    ..Usage::default()
                },
                "value:usage.output",
            ),
            (
                Usage {
                    input: Some(0),
                    cache_read: Some(1 << 62),
                    output: Some(4),
                    ..Usage::default()
                },
                Usage {
                    output: Some(4),
                    ..Usage::default()
                },
                "value:usage.cache_read",
            ),
        ] {
            let (mut drift, mut bounded) = (Drift::default(), usage);
            bound(&mut bounded, MOST_TOKENS, "usage", &mut drift, at);
            assert_eq!(bounded, left);
            let names: Vec<&str> = drift.unknown.keys().map(String::as_str).collect();
            assert_eq!(names, [counted]);
            assert_eq!(drift.unknown[counted].first, at);
        }
    }

    #[test]
    fn a_session_that_can_be_is_left_alone() {
        let mut drift = Drift::default();
        let mut session = Session {
            vendor_usage: Some(Tokens {
                input: Some(MOST_TOKENS),
                ..Tokens::default()
            }),
            vendor_cost: Some("0.5".to_owned()),
            ..Session::default()
        };
        assert_eq!(of_session(&session, &mut drift, Position::default()), None);
        assert!(drift.is_empty());
        for cost in ["-1", "1e308", "9223372036854775807", "much"] {
            session.vendor_cost = Some(cost.to_owned());
            let bounded = of_session(&session, &mut drift, Position::default()).unwrap();
            assert_eq!(bounded.vendor_cost, None, "{cost}");
            assert_eq!(bounded.vendor_usage, session.vendor_usage);
        }
        assert_eq!(drift.unknown["value:vendor_cost"].count, 4);
    }
}
