//! What every implementation of [`Bus`] has to do.

use std::time::{Duration, Instant};

use super::{Check, Outcome, Report, expect, failed};
use crate::live::{Bus, Change, Changes, Heard, What};

/// Tries an implementation that nobody else uses.
pub fn conformance(bus: &(dyn Bus + 'static)) -> Report {
    super::run(ALL, bus)
}

const ALL: &[Check<dyn Bus>] = &[
    ("what is said is heard, in order", in_order),
    ("only what is said from then on is heard", from_now_on),
    ("all who follow hear the same", all_hear),
    ("nothing is heard when nothing is said", nothing),
    (
        "whoever publishes does not wait for those who follow",
        not_waiting,
    ),
    ("a follower is told when it missed something", missed),
    ("several may publish at the same time", together),
    ("what is said wakes one who waits", wakes),
];

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// Long enough that something that was said is heard.
const SHORT: Duration = Duration::from_millis(200);

fn change(nth: usize) -> Change {
    Change {
        key: format!("{nth:064x}"),
        what: match nth % 2 {
            0 => What::Read,
            _ => What::Forgotten,
        },
    }
}

fn publish(bus: &dyn Bus, changes: impl IntoIterator<Item = usize>) -> Outcome {
    let changes: Vec<Change> = changes.into_iter().map(change).collect();
    bus.publish(&changes).map_err(failed)
}

fn follow(bus: &dyn Bus) -> Result<Box<dyn Changes>, String> {
    bus.follow().map_err(failed)
}

fn hears(follower: &mut dyn Changes, nth: usize) -> Outcome {
    let heard = follower.next(LONG).map_err(failed)?;
    expect("it heard", heard, Heard::Change(change(nth)))
}

fn silent(follower: &mut dyn Changes) -> Outcome {
    let heard = follower.next(SHORT).map_err(failed)?;
    expect("it heard", heard, Heard::Nothing)
}

fn in_order(bus: &dyn Bus) -> Outcome {
    let mut follower = follow(bus)?;
    publish(bus, [1])?;
    publish(bus, [2, 3])?;
    publish(bus, [])?;
    publish(bus, [4])?;
    for nth in 1..=4 {
        hears(&mut *follower, nth)?;
    }
    silent(&mut *follower)
}

fn from_now_on(bus: &dyn Bus) -> Outcome {
    publish(bus, [1])?;
    let mut follower = follow(bus)?;
    publish(bus, [2])?;
    hears(&mut *follower, 2)?;
    silent(&mut *follower)
}

fn all_hear(bus: &dyn Bus) -> Outcome {
    let (mut one, mut other) = (follow(bus)?, follow(bus)?);
    publish(bus, [1, 2])?;
    drop(follow(bus)?);
    publish(bus, [3])?;
    for follower in [&mut one, &mut other] {
        for nth in 1..=3 {
            hears(&mut **follower, nth)?;
        }
    }
    Ok(())
}

fn nothing(bus: &dyn Bus) -> Outcome {
    let mut follower = follow(bus)?;
    let begun = Instant::now();
    silent(&mut *follower)?;
    let waited = begun.elapsed() >= SHORT;
    expect("it waited as long as it was asked to", waited, true)?;
    let heard = follower.next(Duration::ZERO).map_err(failed)?;
    expect("it heard", heard, Heard::Nothing)
}

fn not_waiting(bus: &dyn Bus) -> Outcome {
    let _asleep = follow(bus)?;
    let begun = Instant::now();
    for nth in 0..2000 {
        publish(bus, [nth])?;
    }
    expect("it was quick", begun.elapsed() < LONG, true)
}

fn missed(bus: &dyn Bus) -> Outcome {
    let mut follower = follow(bus)?;
    for round in 0..100 {
        publish(bus, round * 1000..(round + 1) * 1000)?;
    }
    let mut heard = 0;
    let mut next = 0;
    loop {
        match follower.next(SHORT).map_err(failed)? {
            Heard::Nothing => break,
            Heard::Missed => next = usize::MAX,
            Heard::Change(_) if next == usize::MAX => heard += 1,
            Heard::Change(it) => {
                expect("without having missed any, it heard", it, change(next))?;
                next += 1;
                heard += 1;
            }
        }
    }
    let knows = heard == 100_000 || next == usize::MAX;
    expect("it heard everything, or knows that it did not", knows, true)?;
    publish(bus, [7])?;
    hears(&mut *follower, 7)
}

fn together(bus: &dyn Bus) -> Outcome {
    let mut follower = follow(bus)?;
    let published: Outcome = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| scope.spawn(move || publish_each(bus, thread)))
            .collect();
        let mut joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.try_for_each(|it| it.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    });
    published?;
    let mut next = [0; 4];
    for _ in 0..400 {
        let Heard::Change(heard) = follower.next(LONG).map_err(failed)? else {
            return Err("400 changes are too many for a follower".to_owned());
        };
        let nth = (0..400).find(|nth| change(*nth) == heard).unwrap_or(400);
        let (thread, nth) = (nth / 100, nth % 100);
        let expected = next.get_mut(thread).ok_or("it heard what nobody said")?;
        expect("of one publisher, it heard next", nth, *expected)?;
        *expected += 1;
    }
    Ok(())
}

fn publish_each(bus: &dyn Bus, thread: usize) -> Outcome {
    (thread * 100..(thread + 1) * 100).try_for_each(|nth| publish(bus, [nth]))
}

fn wakes(bus: &dyn Bus) -> Outcome {
    let mut follower = follow(bus)?;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || hears(&mut *follower, 5));
        std::thread::sleep(SHORT);
        publish(bus, [5])?;
        let heard = waiting.join();
        heard.unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    })
}
