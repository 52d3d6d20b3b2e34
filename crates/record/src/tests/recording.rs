//! What `record` promises when nothing fails but its callers.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quipu_model::{Body, Draft, Json, Place, Step, Timestamp};

use super::{Site, dense, events, run_id, said};
use crate::{Clock, Durability, Error, RecorderOptions};

#[test]
fn line_n_has_seq_n_however_many_threads_write() {
    let site = Site::new();
    let recorder = site.record("r");
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut before = 0;
                for n in 0..500 {
                    let seq = recorder.record(&said(&format!("{thread}/{n}"))).unwrap();
                    assert!(seq > before);
                    before = seq;
                }
            });
        }
    });
    assert_eq!(recorder.last_seq(), 8_000);
    drop(recorder);
    assert_eq!(dense(&site.path("r")).len(), 8_000);
}

#[test]
fn files_are_private() {
    let site = Site::new();
    site.record("r").record(&said("hello")).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&site.path("r")), 0o600);
    assert_eq!(mode(site.path("r").parent().unwrap()), 0o700);
}

#[test]
fn a_panic_in_a_caller_leaves_no_gap() {
    let site = Site::new();
    let masker: Arc<crate::Masker> = Arc::new(|draft: &mut Draft| {
        assert!(
            !matches!(&draft.body, Body::StepStarted(_)),
            "a masker that panics"
        );
    });
    let options = RecorderOptions {
        masker: Some(masker),
        ..RecorderOptions::default()
    };
    let recorder = site.storage.record(&run_id("r"), options).unwrap();
    recorder.record(&said("before")).unwrap();
    std::thread::scope(|scope| {
        let draft = Draft::new(Place::run(), Body::StepStarted(Step::new("x", "y")));
        let recorder = &recorder;
        assert!(scope.spawn(move || recorder.record(&draft)).join().is_err());
    });
    recorder.record(&said("after")).unwrap();
    drop(recorder);
    assert_eq!(dense(&site.path("r")), ["before", "after"]);
}

#[test]
fn the_masker_sees_each_event_before_it_is_written() {
    let site = Site::new();
    let masker: Arc<crate::Masker> = Arc::new(|draft: &mut Draft| {
        if let Body::AssistantMessage(blocks) = &mut draft.body {
            for block in blocks {
                if let quipu_model::Content::Text(text) = &mut block.content {
                    *text = text.replace("hunter2", "***");
                }
            }
        }
    });
    let options = RecorderOptions {
        masker: Some(masker),
        ..RecorderOptions::default()
    };
    let recorder = site.storage.record(&run_id("r"), options).unwrap();
    let mut live = recorder.subscribe();
    recorder.record(&said("the password is hunter2")).unwrap();
    let Some(crate::Next::Line(line)) = live.recv() else {
        panic!()
    };
    assert!(
        !String::from_utf8_lossy(line.bytes()).contains("hunter2"),
        "nor do subscribers"
    );
    drop(recorder);
    assert_eq!(dense(&site.path("r")), ["the password is ***"]);
}

#[test]
fn too_large_an_event_is_refused_and_leaves_no_gap() {
    let site = Site::new();
    let mut options = RecorderOptions::default();
    options.limits.max_line_bytes = 1_000;
    let recorder = site.storage.record(&run_id("r"), options).unwrap();
    recorder.record(&said("small")).unwrap();
    let refused = recorder.record(&said(&"x".repeat(1_000)));
    assert!(
        matches!(refused, Err(Error::TooLarge { limit: 1_000, .. })),
        "{refused:?}"
    );
    recorder.record(&said("small again")).unwrap();
    drop(recorder);
    assert_eq!(dense(&site.path("r")).len(), 2);
}

#[test]
fn an_event_of_64_mib() {
    let site = Site::new();
    let recorder = site.record("r");
    let huge = "x".repeat(64 << 20);
    let refused = recorder.record(&said(&huge));
    assert!(
        matches!(refused, Err(Error::TooLarge { .. })),
        "over the default limit"
    );
    recorder.record(&said(&huge[..(64 << 20) - 1_000])).unwrap();
    recorder.record(&said("next")).unwrap();
    drop(recorder);
    let said = dense(&site.path("r"));
    assert_eq!(
        (said[0].len(), said[1].as_str()),
        ((64 << 20) - 1_000, "next")
    );
}

#[test]
fn nul_and_half_of_unicode_survive() {
    let site = Site::new();
    let recorder = site.record("r");
    let text = "nul \0, esc \x1b, line\nend\r, \u{2028}, \u{fffd}, \u{10ffff}";
    recorder.record(&said(text)).unwrap();
    recorder
        .record(&said(&String::from_utf8_lossy(b"bad \xff utf-8")))
        .unwrap();
    drop(recorder);
    assert_eq!(dense(&site.path("r")), [text, "bad \u{fffd} utf-8"]);
    let bytes = std::fs::read(site.path("r")).unwrap();
    assert_eq!(
        memchr::memchr_iter(b'\n', &bytes).count(),
        2,
        "one line each"
    );
    assert!(!bytes.contains(&0));
}

#[test]
fn json_that_is_too_deep_cannot_be_made() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Json::parse(&deep).is_err());
}

#[test]
fn a_clock_that_runs_backwards_changes_no_order() {
    struct Backwards(AtomicI64);
    impl Clock for Backwards {
        fn now(&self) -> Timestamp {
            Timestamp::from_millisecond(self.0.fetch_sub(3_600_000, Ordering::SeqCst)).unwrap()
        }
    }
    let site = Site::new();
    let clock = Arc::new(Backwards(AtomicI64::new(1_780_000_000_000)));
    let options = RecorderOptions {
        clock,
        ..RecorderOptions::default()
    };
    let recorder = site.storage.record(&run_id("r"), options).unwrap();
    for n in 0..5 {
        recorder.record(&said(&n.to_string())).unwrap();
    }
    drop(recorder);
    assert_eq!(dense(&site.path("r")), ["0", "1", "2", "3", "4"]);
    let events = events(&site.path("r"));
    assert!(events.is_sorted_by(|a, b| a.timestamp > b.timestamp));
}

#[test]
fn closing_is_idempotent_and_dropping_is_closing() {
    let site = Site::new();
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    let mut live = recorder.subscribe();
    recorder.close().unwrap();
    recorder.close().unwrap();
    assert!(matches!(
        recorder.record(&said("two")),
        Err(Error::Closed(_))
    ));
    assert!(matches!(
        recorder.child(&run_id("c")),
        Err(Error::Closed(_))
    ));
    assert_eq!(live.recv(), None);
    // The lock is gone though the recorder is still there.
    let again = site.record("r");
    assert_eq!(again.record(&said("two")).unwrap(), 2);
    drop(again);
    drop(recorder);
    assert_eq!(dense(&site.path("r")), ["one", "two"]);
}

#[test]
fn a_second_writer_is_refused() {
    let site = Site::new();
    let recorder = site.record("r");
    let refused = site
        .storage
        .record(&run_id("r"), RecorderOptions::default())
        .unwrap_err();
    assert!(matches!(refused, Error::Locked(_)), "{refused}");
    assert!(
        refused
            .to_string()
            .starts_with("another process is recording to ")
    );
    assert!(matches!(
        crate::repair(&site.path("r"), Default::default()),
        Err(Error::Locked(_))
    ));
    drop(recorder);
    site.record("r");
}

#[test]
fn who_only_asks_whether_a_run_is_written_turns_no_writer_away() {
    let site = Site::new();
    drop(site.record("r"));
    let looks = std::fs::File::open(site.path("r")).unwrap();
    looks.lock_shared().unwrap();
    let ends = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        drop(looks);
    });
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    ends.join().unwrap();
}

#[test]
fn child_runs_name_their_parent_on_every_event() {
    let site = Site::new();
    let parent = site.record("p");
    let child = parent.child(&run_id("c")).unwrap();
    let grandchild = child.child(&run_id("g")).unwrap();
    for recorder in [&parent, &child, &grandchild] {
        recorder.record(&said("one")).unwrap();
        recorder.record(&said("two")).unwrap();
    }
    drop((parent, child, grandchild));
    for (id, parent) in [("p", None), ("c", Some("p")), ("g", Some("c"))] {
        for event in events(&site.path(id)) {
            assert_eq!(
                event.parent_run_id.as_ref().map(quipu_model::RunId::as_str),
                parent
            );
        }
    }
    // A child that is continued keeps its parent, and takes no other.
    assert_eq!(site.record("c").parent_run_id(), Some(&run_id("p")));
    let refused = site.record("other").child(&run_id("c")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "run c was recorded with parent p, not with parent other"
    );
}

#[test]
fn durability_is_what_was_asked() {
    for durability in [
        Durability::None,
        Durability::Group(Duration::from_millis(1)),
        Durability::Each,
    ] {
        let site = Site::new();
        let options = RecorderOptions {
            durability,
            ..RecorderOptions::default()
        };
        let recorder = site.storage.record(&run_id("r"), options).unwrap();
        let seq = recorder.record(&said("one")).unwrap();
        match durability {
            Durability::None => assert_eq!(recorder.durable_seq(), 0),
            Durability::Each => assert_eq!(recorder.durable_seq(), 1),
            Durability::Group(_) => {
                let began = std::time::Instant::now();
                while recorder.durable_seq() < seq {
                    assert!(
                        began.elapsed() < Duration::from_secs(10),
                        "synced by itself"
                    );
                    std::thread::yield_now();
                }
            }
        }
        recorder.wait_durable(seq).unwrap();
        assert_eq!(recorder.durable_seq(), 1);
        assert!(
            recorder.wait_durable(1_000).is_err(),
            "there is no such event"
        );
    }
}

/// A thread that starts to sync when the recorder is already closed has to end.
#[test]
fn closing_while_others_record_leaves_no_thread_behind() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    for _ in 0..50 {
        let site = Site::new();
        let durability = Durability::Group(Duration::from_millis(1));
        let options = RecorderOptions {
            durability,
            ..RecorderOptions::default()
        };
        let recorder = site.storage.record(&run_id("r"), options).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| while recorder.record(&said("x")).is_ok() {});
            scope.spawn(|| recorder.close().unwrap());
        });
    }
    let began = std::time::Instant::now();
    while threads() > before + 8 {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{} threads are left",
            threads()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_not_recorded_is_not_called_durable() {
    let site = Site::new();
    let recorder = site.record("r");
    for text in ["one", "two", "three"] {
        recorder.record(&said(text)).unwrap();
    }
    recorder.wait_durable(3).unwrap();
    let error = recorder.wait_durable(999).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run r has no event 999 yet; its last is 3"
    );
}
