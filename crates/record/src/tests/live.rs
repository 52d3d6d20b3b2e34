//! Subscribers of a recorder that writes to a file.

use std::time::{Duration, Instant};

use super::{Site, dense, said};
use crate::{Next, TryNextError};

fn seq_in(line: &[u8]) -> u64 {
    let text = std::str::from_utf8(line).unwrap();
    assert!(text.ends_with("}\n"), "{text}");
    text["{\"seq\":".len()..]
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn subscribers_see_what_is_in_the_file_in_its_order() {
    let site = Site::new();
    let recorder = site.record("r");
    let mut live = recorder.subscribe();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..500).for_each(|_| assert!(recorder.record(&said("x")).is_ok())));
        }
        scope.spawn(|| {
            let mut expected = 1;
            while expected <= 4_000 {
                match live.recv().expect("not closed") {
                    Next::Line(line) => {
                        assert_eq!((line.seq(), seq_in(line.bytes())), (expected, expected));
                        // Written first, then handed out.
                        assert!(recorder.last_seq() >= expected);
                        expected += 1;
                    }
                    Next::Missed(gap) => {
                        assert_eq!(*gap.start(), expected);
                        expected = gap.end() + 1;
                    }
                }
            }
        });
    });
}

/// SC-005 of the specification: a subscriber at a tenth of the rate, over 10,000 events, blocks
/// nothing, and the two always add up.
#[test]
fn a_subscriber_at_a_tenth_of_the_rate() {
    const EVENTS: u64 = 10_000;
    let site = Site::new();
    let recorder = site.record("r");
    let mut slow = recorder.subscribe();
    let took = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let began = Instant::now();
            for n in 0..EVENTS {
                recorder.record(&said(&n.to_string())).unwrap();
                // Ten events for each the subscriber takes.
                if n % 100 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            let took = began.elapsed();
            recorder.close().unwrap();
            took
        });
        let (mut received, mut missed, mut next) = (0, 0, 1);
        while let Some(item) = slow.recv() {
            match item {
                Next::Line(line) => {
                    assert_eq!(line.seq(), next);
                    received += 1;
                    next += 1;
                    if received % 10 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                Next::Missed(gap) => {
                    assert_eq!(*gap.start(), next);
                    missed += gap.end() + 1 - gap.start();
                    next = gap.end() + 1;
                }
            }
        }
        assert_eq!(received + missed, EVENTS);
        assert!(
            received >= 256 && missed > 0,
            "received {received}, missed {missed}"
        );
        let stats = slow.stats();
        assert_eq!((stats.delivered, stats.missed), (received, missed));
        writer.join().unwrap()
    });
    assert!(took < Duration::from_secs(5), "the writer waited: {took:?}");
    assert_eq!(dense(&site.path("r")).len() as u64, EVENTS);
}

#[test]
fn history_and_live_join_without_gap_or_repeat() {
    let site = Site::new();
    let recorder = site.record("r");
    (0..1_000).for_each(|n| assert!(recorder.record(&said(&n.to_string())).is_ok()));
    std::thread::scope(|scope| {
        let followers: Vec<_> = [1, 2, 500, 1_000, 1_001, 1_500]
            .into_iter()
            .map(|from| {
                let mut follower = recorder.follow(from);
                scope.spawn(move || {
                    let mut expected = from;
                    while let Some(batch) = follower.recv().unwrap() {
                        for (seq, line) in batch.lines() {
                            assert_eq!((seq, seq_in(line)), (expected, expected));
                            expected += 1;
                            // Slow enough to fall behind and have to read the file again.
                            if expected % 512 == 0 {
                                std::thread::sleep(Duration::from_millis(2));
                            }
                        }
                    }
                    expected
                })
            })
            .collect();
        for n in 0..10_000 {
            recorder.record(&said(&n.to_string())).unwrap();
        }
        recorder.close().unwrap();
        for follower in followers {
            assert_eq!(follower.join().unwrap(), 11_001, "up to the last event");
        }
    });
}

#[test]
fn a_follower_can_be_asked_without_waiting() {
    let site = Site::new();
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    let mut follower = recorder.follow(0);
    assert_eq!(follower.try_recv().unwrap().unwrap().seqs(), 1..=1);
    assert_eq!(
        follower.try_recv().unwrap().unwrap_err(),
        TryNextError::Empty
    );
    recorder.record(&said("two")).unwrap();
    assert_eq!(follower.try_recv().unwrap().unwrap().seqs(), 2..=2);
    recorder.close().unwrap();
    assert_eq!(
        follower.try_recv().unwrap().unwrap_err(),
        TryNextError::Closed
    );
}

#[test]
fn a_dead_subscriber_costs_nothing_and_is_counted() {
    let site = Site::new();
    let recorder = site.record("r");
    let dead = recorder.subscribe();
    (0..2_000).for_each(|_| assert!(recorder.record(&said("x")).is_ok()));
    let stats = recorder.stats();
    assert_eq!(stats.head, 2_000);
    assert_eq!(
        (stats.subscribers[0].missed, stats.subscribers[0].waiting),
        (2_000 - 256, 256)
    );
    drop(dead);
    let stats = recorder.stats();
    assert_eq!((stats.missed, stats.subscribers.len()), (2_000 - 256, 0));
}

#[test]
fn an_executor_can_poll() {
    use std::task::{Context, Poll, Waker};
    let site = Site::new();
    let recorder = site.record("r");
    let mut live = recorder.subscribe();
    let mut context = Context::from_waker(Waker::noop());
    assert!(live.poll_batch(&mut context).is_pending());
    recorder.record(&said("one")).unwrap();
    recorder.record(&said("two")).unwrap();
    // Both are there; whether in one batch or in two is a matter of when the first was sealed.
    let mut seqs = Vec::new();
    while seqs.len() < 2 {
        let Poll::Ready(Some(Ok(batch))) = live.poll_batch(&mut context) else {
            panic!("after {seqs:?}")
        };
        seqs.extend(batch.lines().map(|(_, line)| seq_in(line)));
    }
    assert_eq!(seqs, [1, 2]);
    recorder.close().unwrap();
    assert!(matches!(live.poll_batch(&mut context), Poll::Ready(None)));
}

#[test]
fn a_warning_hook_that_panics_does_not_stop_the_others() {
    let site = Site::new();
    let on_lag: std::sync::Arc<crate::OnLag> = std::sync::Arc::new(|_| panic!("on purpose"));
    let options = crate::RecorderOptions {
        on_lag: Some(on_lag),
        buffer: 4,
        ..crate::RecorderOptions::default()
    };
    let recorder = site.storage.record(&super::run_id("r"), options).unwrap();
    let _stalled = recorder.subscribe();
    let mut waiting = recorder.subscribe();
    (0..2_000).for_each(|_| assert!(recorder.record(&said("x")).is_ok()));
    std::thread::scope(|scope| {
        let last = scope.spawn(move || {
            let mut last = 0;
            while let Some(next) = waiting.recv() {
                last = match next {
                    Next::Line(line) => line.seq(),
                    Next::Missed(gap) => *gap.end(),
                };
                if last >= 2_001 {
                    return last;
                }
            }
            last
        });
        std::thread::sleep(Duration::from_millis(50));
        recorder.record(&said("last")).unwrap();
        assert_eq!(last.join().unwrap(), 2_001);
    });
    assert!(recorder.subscribe().recv_timeout(Duration::ZERO).is_err());
}

#[test]
fn a_follower_begins_at_the_end_of_a_long_run_without_reading_the_rest() {
    let site = Site::new();
    let recorder = site.record("r");
    (0..5_000).for_each(|_| assert!(recorder.record(&said(&"x".repeat(200))).is_ok()));
    // Nothing but the end can be read any more.
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(site.path("r"))
        .unwrap();
    let len = file.metadata().unwrap().len();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![b'#'; 1_000_000], 0).unwrap();
    assert!(len > 1_500_000);
    let mut follower = recorder.follow(4_990);
    let mut seqs = Vec::new();
    while let Ok(batch) = follower.try_recv().unwrap() {
        for (seq, line) in batch.lines() {
            assert_eq!(seq_in(line), seq);
            seqs.push(seq);
        }
    }
    assert_eq!(seqs, (4_990..=5_000).collect::<Vec<_>>());
}

#[test]
fn followers_that_read_the_same_events_share_their_lines() {
    let site = Site::new();
    let recorder = site.record("r");
    (0..1_000).for_each(|n| assert!(recorder.record(&said(&n.to_string())).is_ok()));
    let where_it_is = |batch: &crate::Batch| {
        let (_, line) = batch.lines().next().unwrap();
        line.as_ptr()
    };
    let (mut one, mut other) = (recorder.follow(300), recorder.follow(300));
    let (first, again) = (one.recv().unwrap().unwrap(), other.recv().unwrap().unwrap());
    assert_eq!(where_it_is(&first), where_it_is(&again), "history");
    while one.try_recv().unwrap().is_ok() {}
    while other.try_recv().unwrap().is_ok() {}
    recorder.record(&said("live")).unwrap();
    let (first, again) = (one.recv().unwrap().unwrap(), other.recv().unwrap().unwrap());
    assert_eq!(first.seqs(), 1_001..=1_001);
    assert_eq!(where_it_is(&first), where_it_is(&again), "live");
}

#[test]
fn an_executor_can_follow() {
    use std::task::{Context, Poll, Wake, Waker};
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let site = Site::new();
    let recorder = site.record("r");
    (0..600).for_each(|n| assert!(recorder.record(&said(&n.to_string())).is_ok()));
    let mut follower = recorder.follow(2);
    let reader = std::thread::spawn(move || {
        let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
        let mut next = 2;
        loop {
            match follower.poll_next(&mut Context::from_waker(&waker)) {
                Poll::Pending => std::thread::park(),
                Poll::Ready(None) => return next,
                Poll::Ready(Some(batch)) => {
                    for (seq, line) in batch.unwrap().lines() {
                        assert_eq!((seq, seq_in(line)), (next, next));
                        next += 1;
                    }
                }
            }
        }
    });
    for n in 0..2_000 {
        recorder.record(&said(&n.to_string())).unwrap();
    }
    recorder.close().unwrap();
    assert_eq!(reader.join().unwrap(), 2_601);
}

#[test]
fn subscribers_that_come_and_go_on_a_quiet_run_leave_nothing_behind() {
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};
    struct Quiet;
    impl Wake for Quiet {
        fn wake(self: Arc<Self>) {}
    }
    let site = Site::new();
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    let flag = Arc::new(Quiet);
    let waker = Waker::from(flag.clone());
    for _ in 0..2_000 {
        let mut follower = recorder.follow(2);
        let polled = follower.poll_next(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert_eq!(Arc::strong_count(&flag), 2, "no waker is kept");
    assert_eq!(recorder.stats().subscribers, []);
}
