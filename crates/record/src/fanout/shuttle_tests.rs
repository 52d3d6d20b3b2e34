//! The fan-out under thousands of interleavings of writer and subscribers.
//!
//! Each test is a small story; shuttle runs it with many schedules and prints the one that fails.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use shuttle::sync::Arc;
use shuttle::thread;

use super::*;
use crate::faulty::FaultyFile;

fn new() -> Arc<FanOut> {
    Arc::new(FanOut::new(
        0,
        std::sync::Arc::new(FaultyFile::default()),
        None,
    ))
}

/// Puts a line into the file; gives where it ends.
fn append(fanout: &FanOut, line: &str) -> u64 {
    fanout.medium.append(line.as_bytes()).unwrap();
    fanout.medium.size().unwrap()
}

/// Publishes `events` lines and closes.
fn write(fanout: &Arc<FanOut>, mut producer: Producer, events: u64) {
    for seq in 1..=events {
        let line = format!("{seq}\n");
        let end = append(fanout, &line);
        fanout.publish(&mut producer, seq, end, line.as_bytes());
    }
    fanout.close();
}

/// Receives to the end; gives what was received and missed. Both together are in order and whole.
fn read(mut subscription: Subscription, last: u64) -> (u64, u64) {
    let (mut next, mut received, mut missed) = (subscription.next_seq(), 0, 0);
    while let Some(item) = subscription.recv() {
        match item {
            Next::Line(line) => {
                assert_eq!(line.seq(), next);
                assert_eq!(line.bytes(), format!("{next}\n").as_bytes());
                received += 1;
                next += 1;
            }
            Next::Missed(gap) => {
                assert_eq!(*gap.start(), next);
                missed += gap.end() + 1 - gap.start();
                next = gap.end() + 1;
            }
        }
    }
    assert_eq!(next, last + 1, "nothing is left when it ends");
    let stats = subscription.stats();
    assert_eq!((stats.delivered, stats.missed), (received, missed));
    (received, missed)
}

fn check(iterations: usize, story: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(story, iterations);
}

#[test]
fn every_event_is_received_or_known_to_be_missed() {
    check(10_000, || {
        let fanout = new();
        let mut producer = Producer::default();
        let readers: Vec<_> = [1, 2, 8]
            .into_iter()
            .map(|capacity| {
                let subscription = fanout.subscribe(&mut producer, 0, capacity);
                thread::spawn(move || (capacity, read(subscription, 6)))
            })
            .collect();
        write(&fanout, producer, 6);
        for reader in readers {
            let (capacity, (received, missed)) = reader.join().unwrap();
            assert_eq!(received + missed, 6);
            assert!(
                capacity < 6 || missed == 0,
                "a buffer that holds all loses none"
            );
        }
    });
}

/// With more events than a segment holds, the writer stops keeping lines while nobody has room, and
/// takes it up again.
#[test]
fn room_that_is_made_is_noticed() {
    check(1_000, || {
        let fanout = new();
        let mut producer = Producer::default();
        let subscription = fanout.subscribe(&mut producer, 0, 3);
        let events = 2 * SEGMENT_LINES + 5;
        let reader = thread::spawn(move || read(subscription, events));
        write(&fanout, producer, events);
        let (received, missed) = reader.join().unwrap();
        assert_eq!(received + missed, events);
        assert!(received >= 3);
    });
}

#[test]
fn subscribers_come_and_go_while_events_are_published() {
    check(10_000, || {
        let fanout = new();
        let producer = Arc::new(Mutex::new(Producer::default()));
        let joining = {
            let (fanout, producer) = (fanout.clone(), producer.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let subscription = {
                        let mut producer = producer.lock().unwrap();
                        fanout.subscribe(&mut producer, fanout.medium.size().unwrap(), 2)
                    };
                    let from = subscription.next_seq();
                    let mut subscription = subscription;
                    if let Ok(Next::Line(line)) = subscription.try_recv() {
                        assert_eq!(line.seq(), from);
                    }
                }
            })
        };
        for seq in 1..=5 {
            let mut producer = producer.lock().unwrap();
            let end = append(&fanout, "x\n");
            fanout.publish(&mut producer, seq, end, b"x\n");
        }
        joining.join().unwrap();
        assert_eq!(fanout.stats().subscribers.len(), 0);
        fanout.close();
    });
}

#[test]
fn a_waiting_subscriber_is_woken_by_an_event_and_by_the_end() {
    check(10_000, || {
        let fanout = new();
        let mut producer = Producer::default();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let subscription = fanout.subscribe(&mut producer, 0, 4);
                thread::spawn(move || read(subscription, 1))
            })
            .collect();
        write(&fanout, producer, 1);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), (1, 0));
        }
    });
}

/// Closing wakes everybody, so it would hide a wake-up that is lost: here nothing is closed until all
/// was received.
#[test]
fn no_wake_up_is_lost() {
    check(10_000, || {
        let fanout = new();
        let mut producer = Producer::default();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let mut subscription = fanout.subscribe(&mut producer, 0, 8);
                thread::spawn(move || {
                    for seq in 1..=5 {
                        let Some(Next::Line(line)) = subscription.recv() else {
                            panic!("event {seq}")
                        };
                        assert_eq!(line.seq(), seq);
                    }
                })
            })
            .collect();
        for seq in 1..=5 {
            let end = append(&fanout, "x\n");
            fanout.publish(&mut producer, seq, end, b"x\n");
        }
        for reader in readers {
            reader.join().unwrap();
        }
        fanout.close();
    });
}
