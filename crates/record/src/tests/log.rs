//! Reading a run by its events.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;

use super::{Site, events, run_id, said, text_of};
use crate::{Durability, News, RecorderOptions, RunLog};

fn index_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".idx");
    name.into()
}

/// A run of `n` events that say their numbers.
fn long_run(site: &Site, n: u64) -> PathBuf {
    let recorder = site.record("r");
    for seq in 1..=n {
        recorder
            .record(&said(&format!("{seq} {}", "x".repeat(100))))
            .unwrap();
    }
    site.path("r")
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// The numbers of a page, each of which is that of its event, and where the next begins.
fn numbers(log: &RunLog, from: u64, most: usize) -> (Vec<u64>, Option<u64>) {
    let page = log.page(from, most).unwrap();
    assert_eq!(page.bad, []);
    let bytes = std::fs::read(log.path()).unwrap();
    for event in &page.events {
        let decoded = &event.decoded;
        assert_eq!(
            (event.number, event.number),
            (decoded.event.seq, decoded.at.line)
        );
        let at = usize::try_from(decoded.at.offset).unwrap();
        let line = &bytes[at..at + usize::try_from(event.len).unwrap()];
        assert!(line.starts_with(format!("{{\"seq\":{},", event.number).as_bytes()));
        assert!(line.ends_with(b"}"));
    }
    (
        page.events.iter().map(|event| event.number).collect(),
        page.next,
    )
}

#[test]
fn any_page_of_a_run_is_those_events() {
    let site = Site::new();
    let path = long_run(&site, 1_500);
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.len().unwrap(), 1_500);
    for (from, most, first, last, next) in [
        (0, 3, 1, 3, Some(4)),
        (1, 3, 1, 3, Some(4)),
        (257, 1, 257, 257, Some(258)),
        (700, 500, 700, 1_199, Some(1_200)),
        (1_500, 10, 1_500, 1_500, None),
        (1_491, 10, 1_491, 1_500, None),
    ] {
        let expected = ((first..=last).collect(), next);
        assert_eq!(numbers(&log, from, most), expected, "{most} from {from}");
    }
    assert_eq!(numbers(&log, 1_501, 10), (vec![], None));
    assert_eq!(numbers(&log, 7, 0), (vec![], Some(7)));
}

#[test]
fn a_short_run_needs_no_index_and_a_long_one_has_a_small_private_one() {
    let site = Site::new();
    let recorder = site.record("short");
    (0..255).for_each(|_| assert!(recorder.record(&said("x")).is_ok()));
    recorder.close().unwrap();
    assert!(!index_of(&site.path("short")).exists());
    let path = long_run(&site, 2_000);
    let metadata = std::fs::metadata(index_of(&path)).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let entries = (metadata.len() - 16) / 32;
    assert!((7..=14).contains(&entries), "{entries}");
}

#[test]
fn a_page_at_the_end_reads_little_more_than_the_page() {
    let site = Site::new();
    let path = long_run(&site, 5_000);
    let whole = RunLog::open(&path).unwrap();
    assert_eq!(numbers(&whole, 4_995, 10).0.len(), 6);
    // Nothing but the end can be read any more.
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![b'#'; 900_000], 0).unwrap();
    let fresh = RunLog::open(&path).unwrap();
    assert_eq!(fresh.len().unwrap(), 5_000);
    let page = fresh.page(4_995, 10).unwrap();
    let seqs: Vec<u64> = page.events.iter().map(|e| e.decoded.event.seq).collect();
    assert_eq!(seqs, (4_995..=5_000).collect::<Vec<_>>());
}

/// An index is made again whatever was done to it, and what is read is right meanwhile.
#[test]
fn an_index_that_is_absent_stale_or_damaged_is_made_again() {
    let site = Site::new();
    let path = long_run(&site, 2_000);
    let index = index_of(&path);
    let good = std::fs::read(&index).unwrap();
    let mut damaged: Vec<(&str, Option<Vec<u8>>)> = vec![
        ("absent", None),
        ("empty", Some(vec![])),
        ("not an index", Some(b"hello\n".repeat(50))),
        ("half an entry", Some(good[..good.len() - 9].to_vec())),
        ("shorter", Some(good[..good.len() - 64].to_vec())),
        ("longer", Some([&good[..], &good[16..]].concat())),
        ("much longer", Some(good.repeat(500))),
        (
            "zeros at the end",
            Some([&good[..good.len() - 40], &[0; 40]].concat()),
        ),
    ];
    for at in (16..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        damaged.push(("a bit", Some(bytes)));
    }
    for (what, bytes) in damaged {
        match bytes {
            None => std::fs::remove_file(&index).unwrap(),
            Some(bytes) => std::fs::write(&index, bytes).unwrap(),
        }
        for keeps in [false, true] {
            let log = if keeps {
                RunLog::open(&path).unwrap()
            } else {
                RunLog::open_read_only(&path).unwrap()
            };
            for from in [1_900, 257, 600, 1_100, 1_600] {
                let (seqs, _) = numbers(&log, from, 20);
                assert_eq!(seqs, (from..from + 20).collect::<Vec<_>>(), "{what}");
            }
            assert_eq!(log.len().unwrap(), 2_000, "{what}");
        }
        // An entry that nobody used may still be wrong; whoever opens the run to record makes them all again.
        drop(site.record("r"));
        assert_eq!(std::fs::read(&index).unwrap(), good, "{what}");
    }
}

#[test]
fn reading_files_that_are_not_ours_writes_nothing_beside_them() {
    let site = Site::new();
    let path = long_run(&site, 1_000);
    std::fs::remove_file(index_of(&path)).unwrap();
    let log = RunLog::open_read_only(&path).unwrap();
    assert_eq!(numbers(&log, 990, 5).0.len(), 5);
    assert!(!index_of(&path).exists());
    let log = RunLog::open(&path).unwrap();
    assert_eq!(numbers(&log, 990, 5).0.len(), 5);
    assert!(index_of(&path).exists());
}

#[test]
fn an_index_that_is_a_link_is_not_followed() {
    let site = Site::new();
    let path = long_run(&site, 1_000);
    let victim = site.dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::fs::remove_file(index_of(&path)).unwrap();
    std::os::unix::fs::symlink(&victim, index_of(&path)).unwrap();
    let log = RunLog::open(&path).unwrap();
    assert_eq!(numbers(&log, 990, 5).0.len(), 5);
    drop(long_run(&site, 1_000));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.len().unwrap(), 2_000);
}

#[test]
fn a_run_that_is_being_recorded_is_read_as_far_as_it_is() {
    let site = Site::new();
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    let log = RunLog::open(&site.path("r")).unwrap();
    assert_eq!(log.len().unwrap(), 1);
    for n in 2..=1_000 {
        recorder.record(&said(&n.to_string())).unwrap();
        if n % 100 == 0 {
            assert_eq!(log.len().unwrap(), n);
            assert_eq!(numbers(&log, n - 1, 5), (vec![n - 1, n], None));
        }
    }
}

#[test]
fn a_run_that_is_cut_or_replaced_is_read_anew() {
    let site = Site::new();
    let path = long_run(&site, 1_000);
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.len().unwrap(), 1_000);
    let text = std::fs::read_to_string(&path).unwrap();
    let first: String = text.split_inclusive('\n').take(300).collect();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(first.len() as u64).unwrap();
    assert_eq!(log.len().unwrap(), 300);
    assert_eq!(numbers(&log, 299, 5), (vec![299, 300], None));
    let other = site.dir.path().join("other");
    std::fs::write(
        &other,
        text.split_inclusive('\n').take(700).collect::<String>(),
    )
    .unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(log.len().unwrap(), 700);
    assert_eq!(numbers(&log, 699, 5), (vec![699, 700], None));
}

#[test]
fn what_is_not_an_event_is_told_once_and_on_one_page() {
    let site = Site::new();
    let path = long_run(&site, 5);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(0, "before all");
    lines.insert(3, "in the middle");
    lines.push("behind all");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.len().unwrap(), 5);
    for most in 1..=6 {
        let (mut from, mut bad, mut seqs) = (Some(1), Vec::new(), Vec::new());
        while let Some(start) = from {
            let page = log.page(start, most).unwrap();
            bad.extend(page.bad.iter().map(|bad| bad.at.line));
            seqs.extend(page.events.iter().map(|event| event.decoded.event.seq));
            from = page.next;
        }
        assert_eq!(
            (bad, seqs),
            (vec![1, 4, 8], vec![1, 2, 3, 4, 5]),
            "{most} a page"
        );
    }
}

#[test]
fn long_lines_fill_a_page() {
    let site = Site::new();
    let recorder = site.record("r");
    for _ in 0..6 {
        recorder.record(&said(&"x".repeat(3 << 20))).unwrap();
    }
    let log = RunLog::open(&site.path("r")).unwrap();
    assert_eq!(numbers(&log, 1, 200), (vec![1, 2, 3], Some(4)));
    assert_eq!(numbers(&log, 4, 200), (vec![4, 5, 6], None));
}

#[test]
fn what_is_not_a_file_is_refused() {
    let site = Site::new();
    let error = RunLog::open(site.dir.path()).unwrap_err();
    assert!(
        error.to_string().ends_with("is not a regular file"),
        "{error}"
    );
    let error = RunLog::open(&site.dir.path().join("nothing.jsonl")).unwrap_err();
    assert!(error.to_string().starts_with("could not open "), "{error}");
}

/// What is there: events as their numbers, the rest as words.
fn drain(follower: &mut crate::LogFollower) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(news) = follower.try_next().unwrap() {
        seen.extend(told(&news));
    }
    seen
}

fn told(news: &News) -> Vec<String> {
    match news {
        News::Events { batch, .. } => batch.seqs().map(|n| n.to_string()).collect(),
        News::Bad(bad) => vec![format!("bad {}", bad.at.line)],
        other => vec![format!("{other:?}").to_lowercase()],
    }
}

#[test]
fn a_follower_sees_what_is_appended_once_its_line_has_ended() {
    let site = Site::new();
    let path = long_run(&site, 3);
    let line = std::fs::read_to_string(&path).unwrap();
    let line = line.lines().next().unwrap();
    let log = RunLog::open(&path).unwrap();
    let mut follower = log.follow(2).unwrap();
    assert_eq!(drain(&mut follower), ["2", "3"]);
    for byte in line.bytes() {
        append(&path, &[byte]);
        assert_eq!(drain(&mut follower), [""; 0]);
    }
    append(&path, b"\nnonsense\n");
    assert_eq!(drain(&mut follower), ["4", "bad 5"]);
}

#[test]
fn a_follower_goes_on_when_the_file_is_cut_gone_or_replaced() {
    let site = Site::new();
    let path = long_run(&site, 3);
    let text = std::fs::read_to_string(&path).unwrap();
    let log = RunLog::open(&path).unwrap();
    let mut follower = log.follow(1).unwrap();
    assert_eq!(drain(&mut follower), ["1", "2", "3"]);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(drain(&mut follower), ["cut"]);
    append(&path, text.as_bytes());
    assert_eq!(drain(&mut follower), ["1", "2", "3"]);
    append(&path, text.lines().next().unwrap().as_bytes());
    append(&path, b"\n");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        drain(&mut follower),
        ["4", "gone"],
        "what was added before is not lost"
    );
    std::fs::write(&path, &text).unwrap();
    assert_eq!(drain(&mut follower), ["replaced", "1", "2", "3"]);
}

#[test]
fn a_follower_may_wait_for_an_event_that_is_far_off() {
    let site = Site::new();
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    let log = RunLog::open(&site.path("r")).unwrap();
    let mut follower = log.follow(700).unwrap();
    (0..800).for_each(|_| assert!(recorder.record(&said("x")).is_ok()));
    let expected: Vec<String> = (700..=801).map(|n| n.to_string()).collect();
    assert_eq!(drain(&mut follower), expected);
}

#[test]
fn a_follower_of_a_file_is_woken() {
    let site = Site::new();
    let recorder = site.record("r");
    recorder.record(&said("one")).unwrap();
    let log = RunLog::open(&site.path("r")).unwrap();
    let mut follower = log.follow(2).unwrap();
    assert!(
        follower
            .recv_timeout(Duration::from_millis(20))
            .unwrap()
            .is_none()
    );
    let mut context = Context::from_waker(Waker::noop());
    assert!(follower.poll_next(&mut context).is_pending());
    let waiting = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.extend(told(&follower.recv().unwrap()));
        }
        seen
    });
    for n in 0..3 {
        std::thread::sleep(Duration::from_millis(15));
        recorder.record(&said(&n.to_string())).unwrap();
    }
    assert_eq!(waiting.join().unwrap(), ["2", "3", "4"]);
    let mut follower = log.follow(4).unwrap();
    assert!(matches!(
        follower.poll_next(&mut context),
        Poll::Ready(Ok(_))
    ));
}

#[test]
fn followers_of_a_file_that_come_and_go_leave_nothing_behind() {
    use std::sync::Arc;
    struct Quiet;
    impl std::task::Wake for Quiet {
        fn wake(self: Arc<Self>) {}
    }
    let site = Site::new();
    let log = RunLog::open(&long_run(&site, 2)).unwrap();
    let flag = Arc::new(Quiet);
    let waker = Waker::from(flag.clone());
    for _ in 0..2_000 {
        let mut follower = log.follow(3).unwrap();
        assert!(
            follower
                .poll_next(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    // The thread that looks at files may hold the last of them for a moment.
    let began = std::time::Instant::now();
    while Arc::strong_count(&flag) > 2 {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn several_events_on_a_line_are_all_given() {
    let site = Site::new();
    let path = long_run(&site, 600);
    let text = std::fs::read_to_string(&path).unwrap();
    // Every third line is glued to the one before.
    let glued: String = text
        .lines()
        .enumerate()
        .map(|(n, line)| {
            if n % 3 == 1 {
                line.to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    std::fs::write(&path, glued).unwrap();
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.len().unwrap(), 600);
    let mut follower = log.follow(250).unwrap();
    let expected: Vec<String> = (250..=600).map(|n| n.to_string()).collect();
    assert_eq!(drain(&mut follower), expected);
    let page = log.page(400, 100).unwrap();
    let seqs: Vec<u64> = page.events.iter().map(|e| e.decoded.event.seq).collect();
    assert_eq!(seqs, (400..500).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// By page, by following from anywhere and in one go, the events are the same.
    #[test]
    fn however_a_run_is_read_its_events_are_the_same(
        lengths in proptest::collection::vec(prop_oneof![9 => 0usize..300, 1 => 20_000usize..90_000], 1..700),
        from in 1u64..750,
        most in 1usize..400,
    ) {
        let site = Site::new();
        let options = RecorderOptions { durability: Durability::None, ..RecorderOptions::default() };
        let recorder = site.storage.record(&run_id("r"), options).unwrap();
        for len in &lengths {
            recorder.record(&said(&"y".repeat(*len))).unwrap();
        }
        let path = site.path("r");
        let whole: Vec<(u64, String)> = events(&path).iter().map(|e| (e.seq, text_of(e))).collect();
        let log = RunLog::open(&path).unwrap();
        prop_assert_eq!(log.len().unwrap(), whole.len() as u64);
        let (mut next, mut paged) = (Some(from), Vec::new());
        while let Some(start) = next {
            let page = log.page(start, most).unwrap();
            paged.extend(page.events.iter().map(|e| (e.decoded.event.seq, text_of(&e.decoded.event))));
            next = page.next;
        }
        let expected: Vec<_> = whole.iter().filter(|(seq, _)| *seq >= from).cloned().collect();
        prop_assert_eq!(&paged, &expected);
        let seqs: Vec<String> = expected.iter().map(|(seq, _)| seq.to_string()).collect();
        prop_assert_eq!(drain(&mut log.follow(from).unwrap()), seqs.clone());
        let mut live = recorder.follow(from);
        let mut followed = Vec::new();
        while let Ok(batch) = live.try_recv().unwrap() {
            followed.extend(batch.seqs().map(|seq| seq.to_string()));
        }
        prop_assert_eq!(followed, seqs);
    }
}
