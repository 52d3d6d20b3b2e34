//! What `record` promises when the file fails.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use quipu_model::Timestamp;

use super::{run_id, said};
use crate::faulty::{Fault, FaultyFile};
use crate::{Clock, Durability, Error, Journal, Recorder, RecorderOptions};

/// A clock that is far ahead at each look, so that the recorder looks at its file for every event.
struct Hurried(std::sync::atomic::AtomicI64);

impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_second(1_780_000_000 + seconds).unwrap()
    }
}

fn recorder(durability: Durability) -> (Arc<FaultyFile>, Recorder) {
    let file = Arc::new(FaultyFile::default());
    let journal = Journal::over(file.clone(), Path::new("r.jsonl"), &run_id("r"));
    let clock = Arc::new(Hurried(0.into()));
    let options = RecorderOptions {
        durability,
        clock,
        ..RecorderOptions::default()
    };
    (file, Recorder::start(journal, None, options).unwrap())
}

/// The sequence numbers in the file, all lines of which are whole.
fn seqs(file: &FaultyFile) -> Vec<u64> {
    let text = file.contents();
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "a torn line: {text:?}"
    );
    text.lines()
        .map(|line| {
            let digits = line.strip_prefix("{\"seq\":").expect("a whole line");
            assert!(line.contains(r#"}]},"check":""#), "a whole line: {line}");
            assert!(line.ends_with("\"}"), "a whole line: {line}");
            digits.split(',').next().unwrap().parse().unwrap()
        })
        .collect()
}

#[test]
fn short_writes_are_completed() {
    let (file, recorder) = recorder(Durability::None);
    file.plan([
        Fault::Short(1),
        Fault::Interrupted,
        Fault::Short(50),
        Fault::Interrupted,
    ]);
    recorder.record(&said("one")).unwrap();
    recorder.record(&said("two")).unwrap();
    assert_eq!(seqs(&file), [1, 2]);
}

#[test]
fn a_full_disk_leaves_no_fragment_and_no_gap() {
    let (file, recorder) = recorder(Durability::None);
    recorder.record(&said("one")).unwrap();
    file.plan([
        Fault::Short(20),
        Fault::NoSpace,
        Fault::NoSpace,
        Fault::Short(7),
        Fault::Zero,
    ]);
    for _ in 0..3 {
        let error = recorder.record(&said("lost")).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Io {
                    action: "write to",
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(seqs(&file), [1]);
    }
    assert_eq!(recorder.record(&said("two")).unwrap(), 2);
    assert_eq!(seqs(&file), [1, 2]);
}

#[test]
fn a_fragment_that_cannot_be_undone_is_never_glued_to() {
    let (file, recorder) = recorder(Durability::None);
    recorder.record(&said("one")).unwrap();
    file.fail_truncate.store(true, Ordering::SeqCst);
    file.plan([Fault::Short(20), Fault::NoSpace]);
    recorder.record(&said("lost")).unwrap_err();
    let error = recorder.record(&said("refused")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("could not undo a partial write to r.jsonl"),
        "{error}"
    );
    assert_eq!(
        file.contents().lines().count(),
        2,
        "the fragment is still alone"
    );
    file.fail_truncate.store(false, Ordering::SeqCst);
    assert_eq!(recorder.record(&said("two")).unwrap(), 2);
    assert_eq!(seqs(&file), [1, 2]);
}

#[test]
fn a_file_changed_by_others_is_not_cut() {
    let (file, recorder) = recorder(Durability::None);
    recorder.record(&said("one")).unwrap();
    file.bytes.lock().unwrap().extend(b"someone else's\n");
    let error = recorder.record(&said("two")).unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    assert!(file.contents().ends_with("someone else's\n"));
    assert_eq!(file.contents().lines().count(), 2);
}

#[test]
fn a_file_that_was_moved_away_takes_no_more_events() {
    let (file, recorder) = recorder(Durability::None);
    recorder.record(&said("one")).unwrap();
    file.away.store(true, Ordering::SeqCst);
    assert!(matches!(
        recorder.record(&said("two")),
        Err(Error::Replaced(_))
    ));
    file.away.store(false, Ordering::SeqCst);
    assert_eq!(
        recorder.record(&said("two")).unwrap(),
        2,
        "and goes on when it is back"
    );
    assert_eq!(seqs(&file), [1, 2]);
}

#[test]
fn nothing_is_acknowledged_that_is_not_in_its_place_on_disk() {
    let (file, recorder) = recorder(Durability::Each);
    recorder.record(&said("one")).unwrap();
    file.fail_sync.store(true, Ordering::SeqCst);
    let error = recorder.record(&said("two")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not sync r.jsonl: the disk is broken"
    );
    file.fail_sync.store(false, Ordering::SeqCst);
    // A second sync would succeed and prove nothing: the system may have dropped what it could not
    // write.
    assert!(matches!(
        recorder.wait_durable(2),
        Err(Error::SyncFailed { .. })
    ));
    assert!(matches!(
        recorder.record(&said("three")),
        Err(Error::SyncFailed { .. })
    ));
    assert_eq!(recorder.durable_seq(), 1);
    assert!(recorder.close().is_err());
}

#[test]
fn a_background_sync_that_fails_is_told_to_the_next_who_records() {
    let (file, recorder) = recorder(Durability::Group(Duration::from_millis(1)));
    file.fail_sync.store(true, Ordering::SeqCst);
    recorder.record(&said("one")).unwrap();
    let began = std::time::Instant::now();
    while recorder.record(&said("more")).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn synced_means_all_bytes_up_to_it() {
    let (file, recorder) = recorder(Durability::Each);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let seq = recorder.record(&said("x")).unwrap();
                    let synced = *file.synced.lock().unwrap();
                    let text = file.contents();
                    let on_disk = text[..synced].lines().count() as u64;
                    assert!(
                        on_disk >= seq,
                        "event {seq} was acknowledged, {on_disk} are on disk"
                    );
                }
            });
        }
    });
    assert_eq!(seqs(&file).len(), 400);
}

#[test]
fn a_thousand_events_a_second_are_at_most_60_syncs_a_second() {
    let (file, recorder) = recorder(Durability::default());
    let began = Instant::now();
    let mut last = 0;
    while began.elapsed() < Duration::from_secs(1) {
        last = recorder.record(&said("x")).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let syncs = file.syncs.load(Ordering::SeqCst) as u128;
    let most = 60 * began.elapsed().as_millis() / 1_000;
    assert!(
        syncs <= most,
        "{syncs} syncs for {last} events, at most {most}"
    );
    // And the last events are brought to disk although nothing comes behind them.
    while recorder.durable_seq() < last {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A sync that takes a while begins before the interval is over, so that it is done by then.
#[test]
fn an_event_is_on_disk_within_the_interval() {
    let interval = Duration::from_millis(600);
    let (file, recorder) = recorder(Durability::Group(interval));
    *file.sync_takes.lock().unwrap() = Duration::from_millis(90);
    let waited = || {
        let began = Instant::now();
        let seq = recorder.record(&said("x")).unwrap();
        while recorder.durable_seq() < seq {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        began.elapsed()
    };
    // The first shows how long the disk takes.
    let first = waited();
    assert!(first >= interval, "{first:?}");
    let second = waited();
    // A machine that is busy may be late, but not by as much as the sync takes.
    assert!(
        second < first && second < interval + Duration::from_millis(60),
        "{second:?}"
    );
}

#[test]
fn a_run_whose_syncs_fail_does_not_stop_those_of_others() {
    let (file, broken_recorder) = recorder(Durability::Group(Duration::from_millis(1)));
    file.fail_sync.store(true, Ordering::SeqCst);
    let (_, other) = recorder(Durability::Group(Duration::from_millis(1)));
    let began = Instant::now();
    while broken_recorder.record(&said("x")).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    let seq = other.record(&said("x")).unwrap();
    while other.durable_seq() < seq {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_that_is_closed_lets_go_of_its_file_before_the_interval_is_over() {
    let (file, recorder) = recorder(Durability::Group(Duration::from_secs(3600)));
    recorder.record(&said("one")).unwrap();
    recorder.close().unwrap();
    drop(recorder);
    let began = Instant::now();
    while Arc::strong_count(&file) > 1 {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn closing_does_not_wait_for_the_interval() {
    let (file, recorder) = recorder(Durability::Group(Duration::from_secs(3600)));
    recorder.record(&said("one")).unwrap();
    recorder.close().unwrap();
    assert_eq!(*file.synced.lock().unwrap(), file.contents().len());
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    prop_oneof![
        3 => Just(None),
        2 => (0usize..200).prop_map(|n| Some(Fault::Short(n))),
        1 => Just(Some(Fault::NoSpace)),
        1 => Just(Some(Fault::Interrupted)),
        1 => Just(Some(Fault::Zero)),
    ]
}

proptest! {
    /// Against a model that is a list of what was acknowledged.
    #[test]
    fn whatever_fails_the_file_holds_what_was_acknowledged(
        script in proptest::collection::vec((fault(), any::<bool>()), 1..60)
    ) {
        let (file, recorder) = recorder(Durability::None);
        let mut model = Vec::new();
        for (n, (fault, truncate_fails)) in script.into_iter().enumerate() {
            file.plan(fault);
            file.fail_truncate.store(truncate_fails, Ordering::SeqCst);
            if let Ok(seq) = recorder.record(&said(&n.to_string())) {
                model.push(seq);
            }
        }
        file.plan.lock().unwrap().clear();
        file.fail_truncate.store(false, Ordering::SeqCst);
        model.push(recorder.record(&said("last")).unwrap());
        prop_assert_eq!(seqs(&file), model.clone());
        prop_assert_eq!(model.clone(), (1..=model.len() as u64).collect::<Vec<_>>());
    }
}
