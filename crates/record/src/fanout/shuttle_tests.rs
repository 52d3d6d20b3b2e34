//! The fan-out under thousands of interleavings of writer and subscribers.
//!
//! Each test is a small story; shuttle runs it with many schedules and prints the one that fails.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;

use shuttle::thread;

use super::*;
use crate::faulty::FaultyFile;
use crate::journal::Journal;

/// A run on a file in memory.
struct Run {
    journal: Journal,
    fanout: Arc<FanOut>,
    producer: Producer,
}

impl Run {
    fn new() -> Self {
        Self::on(&Hub::of_process())
    }

    fn on(hub: &Arc<Hub>) -> Self {
        let id = quipu_model::RunId::new("r").unwrap();
        let journal = Journal::over(Arc::new(FaultyFile::default()), Path::new("r"), &id);
        let history = journal.history().clone();
        Self {
            fanout: Arc::new(FanOut::new(0, history, hub.clone(), None)),
            journal,
            producer: Producer::default(),
        }
    }

    fn subscribe(&mut self, capacity: usize) -> Subscription {
        self.fanout.subscribe(&mut self.producer, capacity)
    }

    fn publish(&mut self) {
        let mut line = format!("{{\"{}\":0}}\n", self.journal.last_seq() + 1).into_bytes();
        let seq = self.journal.append(&mut line).unwrap();
        self.fanout.publish(&mut self.producer, seq, &line);
    }

    /// Publishes `events` lines and closes.
    fn write(mut self, events: u64) {
        (0..events).for_each(|_| self.publish());
        self.fanout.close();
    }
}

/// Receives to the end; gives what was received and missed. Both together are in order and whole.
fn read(mut subscription: Subscription, last: u64) -> (u64, u64) {
    let (mut next, mut received, mut missed) = (subscription.next_seq(), 0, 0);
    while let Some(item) = subscription.recv() {
        match item {
            Next::Line(line) => {
                assert_eq!(line.seq(), next);
                assert!(
                    line.bytes()
                        .starts_with(format!("{{\"{next}\":").as_bytes())
                );
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
        let mut run = Run::new();
        let readers: Vec<_> = [1, 2, 8]
            .into_iter()
            .map(|capacity| {
                let subscription = run.subscribe(capacity);
                thread::spawn(move || (capacity, read(subscription, 6)))
            })
            .collect();
        run.write(6);
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
        let mut run = Run::new();
        let subscription = run.subscribe(3);
        let events = 2 * SEGMENT_LINES + 5;
        let reader = thread::spawn(move || read(subscription, events));
        run.write(events);
        let (received, missed) = reader.join().unwrap();
        assert_eq!(received + missed, events);
        assert!(received >= 3);
    });
}

#[test]
fn subscribers_come_and_go_while_events_are_published() {
    check(10_000, || {
        let run = Arc::new(Mutex::new(Run::new()));
        let joining = {
            let run = run.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut subscription = run.lock().unwrap().subscribe(2);
                    let from = subscription.next_seq();
                    if let Ok(Next::Line(line)) = subscription.try_recv() {
                        assert_eq!(line.seq(), from);
                    }
                }
            })
        };
        for _ in 1..=5 {
            run.lock().unwrap().publish();
        }
        joining.join().unwrap();
        let run = run.lock().unwrap();
        assert_eq!(run.fanout.stats().subscribers.len(), 0);
        run.fanout.close();
    });
}

#[test]
fn a_waiting_subscriber_is_woken_by_an_event_and_by_the_end() {
    check(10_000, || {
        let mut run = Run::new();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let subscription = run.subscribe(4);
                thread::spawn(move || read(subscription, 1))
            })
            .collect();
        run.write(1);
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
        let mut run = Run::new();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let mut subscription = run.subscribe(8);
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
            assert_eq!(seq, run.journal.last_seq() + 1);
            run.publish();
        }
        for reader in readers {
            reader.join().unwrap();
        }
        run.fanout.close();
    });
}

/// Whether it leaves before, while or after it is woken, nothing of it stays, and the others are woken.
#[test]
fn a_subscriber_that_leaves_while_it_waits_takes_everything_with_it() {
    use std::task::{Context, Wake, Waker};
    struct Flag;
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {}
    }
    check(10_000, || {
        let mut run = Run::new();
        let mut leaves = run.subscribe(4);
        let stays = run.subscribe(4);
        let flag = Arc::new(Flag);
        let waker = Waker::from(flag.clone());
        let leaving = thread::spawn(move || {
            let polled = leaves.poll_batch(&mut Context::from_waker(&waker));
            drop((leaves, waker));
            polled.is_pending()
        });
        let reader = thread::spawn(move || read(stays, 2));
        run.publish();
        run.publish();
        leaving.join().unwrap();
        run.fanout.close();
        assert_eq!(reader.join().unwrap(), (2, 0));
        assert_eq!(run.fanout.stats().subscribers.len(), 0);
        assert_eq!(run.fanout.notifier.waiting(), 0);
        // The thread that wakes may still be about to let go of it; nobody else is.
        while Arc::strong_count(&flag) > 1 {
            thread::yield_now();
        }
    });
}

/// Two runs share the threads of one hub: neither is overlooked when the other has news or is closed.
#[test]
fn runs_that_share_a_hub_do_not_disturb_each_other() {
    check(5_000, || {
        let hub = Hub::of_process();
        let mut runs = [Run::on(&hub), Run::on(&hub)];
        drop(hub);
        let readers: Vec<_> = runs
            .iter_mut()
            .map(|run| {
                let subscription = run.subscribe(8);
                thread::spawn(move || read(subscription, 3))
            })
            .collect();
        let [first, second] = runs;
        let writer = thread::spawn(move || first.write(3));
        second.write(3);
        writer.join().unwrap();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), (3, 0));
        }
    });
}
