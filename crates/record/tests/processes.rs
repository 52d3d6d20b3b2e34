//! A run that one process records and another reads, and what a process with many runs needs.
//!
//! The writer is this test binary again, told what to do by its environment.

#![expect(clippy::unwrap_used, reason = "tests may panic")]
#![cfg(not(feature = "shuttle"))]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use quipu_exchange::Reader;
use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId};
use quipu_record::{Durability, LogFollower, News, Recorder, RecorderOptions, RunLog, Storage};

const HOME: &str = "QUIPU_TEST_WRITER_HOME";
const EVENTS: &str = "QUIPU_TEST_WRITER_EVENTS";

fn said(text: &str) -> Draft {
    let block = Block::text(Fidelity::AgentEmitted, text);
    Draft::new(Place::step("talk"), Body::AssistantMessage(vec![block]))
}

fn open(home: &Path, run: &str) -> Recorder {
    let options = RecorderOptions {
        durability: Durability::default(),
        ..RecorderOptions::default()
    };
    let run = RunId::new(run).unwrap();
    Storage::at(home).record(&run, options).unwrap()
}

/// What an event says.
fn text_in(line: &[u8]) -> String {
    let mut reader = Reader::new(line);
    let decoded = reader.next_decoded().unwrap().unwrap().unwrap();
    decoded.event.body.texts().collect()
}

/// Not a test: what the writer does when this binary is run again. Records event N as "N", says so, and waits to be
/// killed.
#[test]
#[ignore = "the writer that the other tests start"]
fn the_writer() {
    let home = std::env::var_os(HOME).expect("started by another test");
    let events: u64 = std::env::var(EVENTS).unwrap().parse().unwrap();
    let recorder = open(Path::new(&home), "r");
    let first = recorder.last_seq() + 1;
    for n in first..first + events {
        recorder.record(&said(&n.to_string())).unwrap();
        if n % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    recorder.wait_durable(recorder.last_seq()).unwrap();
    let mut out = std::io::stdout().lock();
    std::io::Write::write_all(&mut out, b"\nall is recorded\n").unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

struct Writer(Child);

/// This binary again, doing one thing.
fn again(what: &str, home: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", what, "--ignored", "--nocapture"])
        .env(HOME, home);
    command
}

impl Writer {
    fn start(home: &Path, events: u64) -> Self {
        let child = again("the_writer", home)
            .env(EVENTS, events.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn wait_until_recorded(&mut self) {
        let out = BufReader::new(self.0.stdout.take().unwrap());
        let said = out
            .lines()
            .map_while(Result::ok)
            .any(|line| line.contains("all is recorded"));
        assert!(said, "the writer records to its end");
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn wait_for(path: &Path) -> RunLog {
    let began = Instant::now();
    loop {
        match RunLog::open(path) {
            Ok(log) => return log,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Follows up to an event; each comes once, in order, and says its number.
fn follow_to(follower: &mut LogFollower, from: u64, last: u64) {
    let mut next = from;
    while next <= last {
        match follower.recv_timeout(Duration::from_secs(60)).unwrap() {
            Some(News::Events { batch, .. }) => {
                for (seq, line) in batch.lines() {
                    assert_eq!((seq, text_in(line)), (next, next.to_string()));
                    next += 1;
                }
            }
            other => panic!("event {next}: {other:?}"),
        }
    }
}

fn path_in(home: &Path) -> PathBuf {
    Storage::at(home).path_of(&RunId::new("r").unwrap())
}

#[test]
fn a_run_is_followed_and_paged_while_another_process_records_it() {
    const ALL: u64 = 20_000;
    let home = tempfile::tempdir().unwrap();
    let path = path_in(home.path());
    let mut writer = Writer::start(home.path(), ALL);
    let log = wait_for(&path);
    std::thread::scope(|scope| {
        for from in [1, 5_000, ALL] {
            let mut follower = log.follow(from).unwrap();
            scope.spawn(move || follow_to(&mut follower, from, ALL));
        }
        scope.spawn(|| {
            let mut len = 0;
            while len < ALL {
                let now = log.len().unwrap();
                assert!(now >= len, "a run only grows");
                len = now;
                let page = log.page(len.saturating_sub(5).max(1), 3).unwrap();
                assert_eq!(page.bad, []);
                for event in page.events {
                    assert_eq!(event.number, event.decoded.event.seq);
                }
                std::thread::sleep(Duration::from_millis(3));
            }
        });
    });
    writer.wait_until_recorded();
    // The writer is still there, and its index is used.
    assert!(path.with_extension("jsonl.idx").exists());
    let fresh = RunLog::open(&path).unwrap();
    let page = fresh.page(ALL - 9, 100).unwrap();
    assert_eq!((page.events.len(), page.next), (10, None));
}

/// The writer is killed and another goes on; a follower sees one run.
#[test]
fn a_follower_goes_on_when_the_writer_is_killed_and_the_run_is_continued() {
    let home = tempfile::tempdir().unwrap();
    let path = path_in(home.path());
    let mut writer = Writer::start(home.path(), 1_000);
    let mut follower = wait_for(&path).follow(1).unwrap();
    follow_to(&mut follower, 1, 1_000);
    writer.wait_until_recorded();
    drop(writer);
    let _second = Writer::start(home.path(), 1_000);
    follow_to(&mut follower, 1_001, 2_000);
}

/// Wakes the test's thread, as an executor would be.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// The threads of this process that are the recorder's, by name.
fn our_threads() -> BTreeMap<String, usize> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let comm = task.unwrap().path().join("comm");
        let name = std::fs::read_to_string(comm).unwrap_or_default();
        if name.starts_with("quipu-") {
            *threads.entry(name.trim().to_owned()).or_default() += 1;
        }
    }
    threads
}

/// 1,000 followers of 100 runs, on one thread of the caller's: two threads, and none when all is closed.
#[cfg(target_os = "linux")]
#[test]
fn a_thousand_followers_of_a_hundred_runs_take_two_threads() {
    let home = tempfile::tempdir().unwrap();
    let recorders: Vec<Recorder> = (0..100)
        .map(|n| open(home.path(), &format!("run-{n}")))
        .collect();
    let mut followers: Vec<_> = recorders
        .iter()
        .flat_map(|recorder| (0..10).map(|_| (recorder.follow(1), 0)))
        .collect();
    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    for round in 1..=3 {
        for (follower, _) in &mut followers {
            assert!(follower.poll_next(&mut context).is_pending(), "nothing new");
        }
        for recorder in &recorders {
            recorder.record(&said("x")).unwrap();
        }
        let began = Instant::now();
        while followers.iter().any(|(_, seen)| *seen < round) {
            for (follower, seen) in &mut followers {
                while let Poll::Ready(batch) = follower.poll_next(&mut context) {
                    *seen = *batch.unwrap().unwrap().seqs().end();
                }
            }
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
    // Another test of this process may have a hub too, which is the same one.
    let expected = BTreeMap::from([("quipu-sync".to_owned(), 1), ("quipu-wake".to_owned(), 1)]);
    assert_eq!(our_threads(), expected);
    drop(followers);
    for recorder in &recorders {
        recorder.close().unwrap();
    }
    drop(recorders);
    let began = Instant::now();
    while !our_threads().is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "they end with the last run"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Not a test: what the visitors do when this binary is run again. In a process of their own, because the memory
/// that other tests take is not theirs.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "the visitors that another test starts"]
fn the_visitors() {
    let home = std::env::var_os(HOME).expect("started by another test");
    let recorder = open(Path::new(&home), "r");
    recorder.record(&said("one")).unwrap();
    let come_and_go = |times: u32| {
        for _ in 0..times {
            let mut follower = recorder.follow(2);
            let mut context = Context::from_waker(Waker::noop());
            assert!(follower.poll_next(&mut context).is_pending());
        }
    };
    come_and_go(2_000);
    let before = resident();
    come_and_go(20_000);
    let grown = resident().saturating_sub(before);
    // A sanitizer keeps books of its own, hence not less. A cursor and its waker alone would be more.
    assert!(grown < 2 << 20, "{grown} bytes for 20,000 that left");
}

#[cfg(target_os = "linux")]
#[test]
fn twenty_thousand_subscribers_that_come_and_go_on_a_quiet_run_leave_memory_as_it_was() {
    let home = tempfile::tempdir().unwrap();
    let ran = again("the_visitors", home.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"));
}

/// How much memory this process has.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = statm.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap() * 4096
}
