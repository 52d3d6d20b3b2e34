//! The whole recorder under thousands of interleavings: those who record, the thread that syncs, the thread that wakes,
//! followers, and whoever closes it.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId};
use shuttle::thread;

use crate::faulty::FaultyFile;
use crate::sync::Arc;
use crate::{Durability, Error, Journal, Recorder, RecorderOptions};

fn said(text: &str) -> Draft {
    let block = Block::text(Fidelity::AgentEmitted, text);
    Draft::new(Place::step("talk"), Body::AssistantMessage(vec![block]))
}

/// A recorder that syncs in the background, on a file in memory.
fn recorder() -> (Arc<FaultyFile>, Arc<Recorder>) {
    let file = Arc::new(FaultyFile::default());
    let run = RunId::new("r").unwrap();
    let journal = Journal::over(file.clone(), Path::new("r"), &run);
    let options = RecorderOptions {
        durability: Durability::Group(Duration::from_millis(20)),
        ..RecorderOptions::default()
    };
    let recorder = Recorder::start(journal, None, options).unwrap();
    (file, Arc::new(recorder))
}

#[test]
fn what_was_recorded_is_on_disk_once_it_is_closed() {
    shuttle::check_random(
        || {
            let (file, recorder) = recorder();
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let recorder = recorder.clone();
                    thread::spawn(move || {
                        let recorded = |_: &i32| match recorder.record(&said("x")) {
                            Ok(_) => true,
                            Err(Error::Closed(_)) => false,
                            Err(other) => panic!("{other}"),
                        };
                        (0..3).take_while(recorded).count()
                    })
                })
                .collect();
            recorder.close().unwrap();
            let synced = *file.synced.lock().unwrap();
            assert_eq!(synced, file.bytes.lock().unwrap().len());
            let recorded: usize = writers.into_iter().map(|w| w.join().unwrap()).sum();
            assert_eq!(file.contents().lines().count(), recorded);
        },
        3_000,
    );
}

#[test]
fn what_is_written_is_brought_to_disk_though_nobody_waits_for_it() {
    shuttle::check_random(
        || {
            let (_, recorder) = recorder();
            for seq in 1..=3 {
                assert_eq!(recorder.record(&said("x")).unwrap(), seq);
            }
            while recorder.durable_seq() < 3 {
                thread::yield_now();
            }
        },
        3_000,
    );
}

#[test]
fn a_sync_that_fails_is_told_to_all_and_ends_nothing_else() {
    shuttle::check_random(
        || {
            let (file, recorder) = recorder();
            file.fail_sync.store(true, Ordering::SeqCst);
            let waiting = {
                let recorder = recorder.clone();
                thread::spawn(move || {
                    let seq = recorder.record(&said("x"));
                    seq.and_then(|seq| recorder.wait_durable(seq))
                })
            };
            drop(recorder.record(&said("x")));
            assert!(matches!(
                waiting.join().unwrap(),
                Err(Error::SyncFailed { .. })
            ));
            assert_eq!(recorder.durable_seq(), 0);
            assert!(recorder.close().is_err());
        },
        3_000,
    );
}

#[test]
fn followers_are_given_every_event_once_whenever_they_come() {
    shuttle::check_random(
        || {
            let (_, recorder) = recorder();
            let followers: Vec<_> = [1, 3]
                .into_iter()
                .map(|from| {
                    let recorder = recorder.clone();
                    thread::spawn(move || {
                        let mut follower = recorder.follow(from);
                        drop(recorder);
                        let mut seqs = Vec::new();
                        while let Some(batch) = follower.recv().unwrap() {
                            seqs.extend(batch.seqs());
                        }
                        assert_eq!(seqs, (from..=4).collect::<Vec<_>>());
                    })
                })
                .collect();
            for _ in 1..=4 {
                recorder.record(&said("x")).unwrap();
            }
            recorder.close().unwrap();
            for follower in followers {
                follower.join().unwrap();
            }
        },
        3_000,
    );
}
