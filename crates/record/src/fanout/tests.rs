//! The fan-out without a file under it.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::faulty::FaultyFile;
use crate::journal::Journal;

struct Bench {
    file: Arc<FaultyFile>,
    journal: Journal,
    fanout: Arc<FanOut>,
    producer: Producer,
    seq: u64,
}

impl Bench {
    fn new() -> Self {
        Self::warning(None)
    }

    fn warning(on_lag: Option<Arc<OnLag>>) -> Self {
        let file = Arc::new(FaultyFile::default());
        let run = quipu_model::RunId::new("r").unwrap();
        let journal = Journal::over(file.clone(), Path::new("r.jsonl"), &run);
        let history = journal.history().clone();
        let fanout = Arc::new(FanOut::new(0, history, Hub::of_process(), on_lag));
        Self {
            file,
            journal,
            fanout,
            producer: Producer::default(),
            seq: 0,
        }
    }

    fn publish(&mut self, events: u64) {
        for _ in 0..events {
            let line = format!("{{\"{}\":0}}\n", self.seq + 1);
            self.publish_line(line.into_bytes());
        }
    }

    fn publish_line(&mut self, mut line: Vec<u8>) {
        self.seq = self.journal.append(&mut line).unwrap();
        self.fanout.publish(&mut self.producer, self.seq, &line);
    }

    fn subscribe(&mut self, capacity: usize) -> Subscription {
        self.fanout.subscribe(&mut self.producer, capacity)
    }
}

fn is_line_of(line: &[u8], seq: u64) -> bool {
    line.starts_with(format!("{{\"{seq}\":0,").as_bytes()) && line.ends_with(b"\n")
}

/// Everything that can be had now: events as themselves, gaps as ranges.
fn drain(subscription: &mut Subscription) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut seqs, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match subscription.try_recv() {
            Ok(Next::Line(line)) => {
                assert!(is_line_of(line.bytes(), line.seq()));
                seqs.push(line.seq());
            }
            Ok(Next::Missed(gap)) => gaps.push((*gap.start(), *gap.end())),
            Err(_) => return (seqs, gaps),
        }
    }
}

#[test]
fn sees_what_comes_after_it_joined() {
    let mut bench = Bench::new();
    bench.publish(10);
    let mut subscription = bench.subscribe(256);
    bench.publish(5);
    assert_eq!(drain(&mut subscription), ((11..=15).collect(), vec![]));
    bench.publish(300);
    assert_eq!(drain(&mut subscription).0.len(), 256);
}

#[test]
fn a_stalled_subscriber_keeps_the_oldest_and_knows_the_rest() {
    for published in [257, 512, 1000, 9_000, 100_000] {
        let mut bench = Bench::new();
        bench.publish(7);
        let mut subscription = bench.subscribe(256);
        bench.publish(published);
        let stats = subscription.stats();
        assert_eq!((stats.missed, stats.waiting), (published - 256, 256));
        let (seqs, gaps) = drain(&mut subscription);
        assert_eq!(seqs, (8..8 + 256).collect::<Vec<_>>(), "{published}");
        assert_eq!(gaps, [(8 + 256, 7 + published)]);
        bench.publish(3);
        assert_eq!(
            drain(&mut subscription).0.len(),
            3,
            "and goes on from there"
        );
    }
}

#[test]
fn nothing_is_kept_while_nobody_has_room() {
    let mut bench = Bench::new();
    let mut subscription = bench.subscribe(16);
    bench.publish(10_000);
    assert!(
        bench.fanout.lock().kept.0 <= 2 * SEGMENT_LINES,
        "little more than the buffer"
    );
    assert_eq!(
        drain(&mut subscription),
        ((1..=16).collect(), vec![(17, 10_000)])
    );
}

#[test]
fn one_that_stalls_does_not_cost_one_that_keeps_up() {
    let mut bench = Bench::new();
    let mut stalled = bench.subscribe(100);
    let mut quick = bench.subscribe(256);
    let mut seen = Vec::new();
    for _ in 0..200 {
        bench.publish(200);
        let (seqs, gaps) = drain(&mut quick);
        assert_eq!(gaps, []);
        seen.extend(seqs);
    }
    assert_eq!(seen, (1..=40_000).collect::<Vec<_>>());
    assert!(bench.fanout.lock().kept.0 <= KEPT_LINES);
    assert_eq!(
        drain(&mut stalled),
        ((1..=100).collect(), vec![(101, 40_000)])
    );
}

#[test]
fn buffers_larger_than_the_ring_are_honoured() {
    let mut bench = Bench::new();
    let mut wide = bench.subscribe(20_000);
    bench.publish(25_000);
    let (seqs, gaps) = drain(&mut wide);
    assert_eq!((seqs.len(), gaps), (20_000, vec![(20_001, 25_000)]));
}

#[test]
fn a_buffer_may_be_as_large_as_numbers_go() {
    let mut bench = Bench::new();
    let mut widest = bench.subscribe(usize::MAX);
    bench.publish(3);
    assert_eq!(drain(&mut widest), (vec![1, 2, 3], vec![]));
    bench.publish(1_000);
    assert_eq!(drain(&mut widest).1, []);
    assert_eq!(widest.stats().missed, 0);
}

#[test]
fn subscribers_that_left_while_they_waited_are_forgotten() {
    use std::task::{Context, Waker};
    let mut bench = Bench::new();
    let mut context = Context::from_waker(Waker::noop());
    let mut stays = bench.subscribe(4);
    assert!(stays.poll_batch(&mut context).is_pending());
    for _ in 0..100 {
        let mut leaves = bench.subscribe(4);
        assert!(leaves.poll_batch(&mut context).is_pending());
    }
    assert_eq!(bench.fanout.notifier.waiting(), 1, "nothing was published");
    bench.publish(1);
    assert_eq!(drain(&mut stays).0, [1]);
}

#[test]
fn batches_and_single_events_mix() {
    let mut bench = Bench::new();
    let mut subscription = bench.subscribe(1000);
    bench.publish(600);
    assert!(matches!(subscription.try_recv(), Ok(Next::Line(line)) if line.seq() == 1));
    let mut seen = 1;
    while let Ok(Ok(batch)) = subscription.try_batch() {
        for (seq, line) in batch.lines() {
            seen += 1;
            assert!(seq == seen && is_line_of(line, seen));
        }
    }
    assert_eq!(seen, 600);
}

#[test]
fn waiting_ends_with_an_event_or_the_end() {
    let mut bench = Bench::new();
    let mut subscription = bench.subscribe(4);
    let timed_out = subscription.recv_timeout(Duration::from_millis(5));
    assert_eq!(timed_out, Err(TryNextError::Empty));
    let waiting = std::thread::spawn(move || {
        let mut seqs = Vec::new();
        while let Some(next) = subscription.recv() {
            match next {
                Next::Line(line) => seqs.push(line.seq()),
                Next::Missed(gap) => panic!("missed {gap:?}"),
            }
        }
        seqs
    });
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(10));
        bench.publish(1);
    }
    bench.fanout.close();
    assert_eq!(waiting.join().unwrap(), [1, 2, 3]);
    bench.fanout.close();
}

#[test]
fn totals_outlive_the_subscriber() {
    let mut bench = Bench::new();
    let mut subscription = bench.subscribe(10);
    bench.publish(30);
    drain(&mut subscription);
    drop(subscription);
    let stats = bench.fanout.stats();
    assert_eq!(
        (stats.delivered, stats.missed, stats.subscribers.len()),
        (10, 20, 0)
    );
    bench.publish(1000);
    assert_eq!(bench.fanout.lock().segments.len(), 0, "nobody listens");
    let mut again = bench.subscribe(10);
    bench.publish(2);
    assert_eq!(drain(&mut again), (vec![1031, 1032], vec![]));
}

#[test]
fn warns_at_most_once_a_second() {
    let warnings = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = warnings.clone();
    let on_lag: Arc<OnLag> = Arc::new(move |warning| sink.lock().unwrap().push(warning));
    let mut bench = Bench::warning(Some(on_lag));
    let stalled = bench.subscribe(10);
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        bench.publish(256);
        std::thread::sleep(Duration::from_millis(5));
    }
    let warnings = warnings.lock().unwrap();
    assert!((1..=2).contains(&warnings.len()), "{warnings:?}");
    assert_eq!(warnings[0].subscriber, stalled.stats().id);
    assert!(warnings[0].missed > 0);
}

#[test]
fn what_is_kept_is_bounded_in_bytes() {
    let mut bench = Bench::new();
    let mut slow = bench.subscribe(256);
    let mut quick = bench.subscribe(256);
    let line = format!("{{\"{}\":0}}\n", "x".repeat(1 << 20)).into_bytes();
    for seq in 1..=40 {
        bench.publish_line(line.clone());
        assert!(matches!(quick.try_recv(), Ok(Next::Line(line)) if line.seq() == seq));
        assert!(bench.fanout.lock().kept.1 <= KEPT_BYTES + line.len());
    }
    for seq in 1..=40 {
        let Ok(Next::Line(got)) = slow.try_recv() else {
            panic!("from the file if need be")
        };
        assert_eq!(got.seq(), seq);
        assert!(got.bytes().len() > line.len(), "with its checksum");
    }
}

#[test]
fn lines_that_are_nowhere_any_more_are_missed() {
    let mut bench = Bench::new();
    let mut stalled = bench.subscribe(256);
    bench.publish(10_000);
    bench.fanout.lock().clear();
    bench.file.bytes.lock().unwrap().clear();
    assert_eq!(drain(&mut stalled), (vec![], vec![(1, 10_000)]));
    assert_eq!(stalled.stats().missed, 10_000);
}
