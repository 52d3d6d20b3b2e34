//! What it takes to begin in the middle of a run, to follow many runs, and to come and go.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quipu_convert::Reading;
use quipu_model::{Body, Draft, Place, Step};
use quipu_record::{Durability, Follower, Journal, Medium, Recorder, RunLog};

use crate::sample::{draft, options, run_id};
use crate::table::{Goal, Table, median};

const LONG: u64 = 100_000;
const RUNS: usize = 100;
const FOLLOWERS: usize = 10;
const COME_AND_GO: usize = 20_000;

pub(crate) fn measure(table: &mut Table, dir: &Path, rounds: usize) -> Result<()> {
    let dir = tempfile::tempdir_in(dir)?;
    anywhere(table, dir.path(), rounds)?;
    many_runs(table, dir.path())?;
    come_and_go(table, dir.path())?;
    header(table, dir.path(), rounds)
}

/// Group commit at a steady rate, on disk.
pub(crate) fn steady(table: &mut Table, dir: &Path) -> Result<()> {
    const RATE: u32 = 1_000;
    let dir = tempfile::tempdir_in(dir)?;
    let path = dir.path().join("steady.jsonl");
    let file = OpenFile::create(&path)?;
    let journal = Journal::over(file.clone(), &path, &run_id(1));
    let recorder = Recorder::start(journal, None, options(Durability::default()))?;
    let draft = draft();
    let events = 3 * RATE;
    let began = Instant::now();
    let (mut written, mut waits) = (Vec::new(), Vec::new());
    let mut note = |written: &[Instant]| {
        let now = Instant::now();
        let durable = usize::try_from(recorder.durable_seq()).unwrap_or(usize::MAX);
        while waits.len() < durable.min(written.len()) {
            let wait = now - written[waits.len()];
            waits.push(wait.as_secs_f64() * 1e3);
        }
        waits.len()
    };
    for n in 0..events {
        let due = began + n * Duration::from_secs(1) / RATE;
        while Instant::now() < due {
            std::thread::sleep(Duration::from_micros(100));
            note(&written);
        }
        recorder.record(&draft)?;
        written.push(Instant::now());
    }
    let took = began.elapsed().as_secs_f64();
    let syncs = file.syncs.load(Ordering::SeqCst) as f64 / took;
    while note(&written) < written.len() {
        ensure!(began.elapsed() < Duration::from_secs(60), "synced at last");
        std::thread::sleep(Duration::from_micros(100));
    }
    waits.sort_by(f64::total_cmp);
    let (middle, late) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    let what = format!("syncs a second at {RATE} events a second");
    let limit = format!("{:.1} events a sync", f64::from(RATE) / syncs);
    table.row(
        &what,
        &format!("{syncs:.1}/s"),
        &limit,
        syncs,
        Goal::AtMost(60.0),
    );
    let what = "until an event is on disk then, ms, the 99th of 100";
    let limit = format!("half within {middle:.1} ms");
    table.row(
        what,
        &format!("{late:.1} ms"),
        &limit,
        late,
        Goal::AtMost(20.0),
    );
    Ok(())
}

/// Begins at the end and in the middle of a long run.
fn anywhere(table: &mut Table, dir: &Path, rounds: usize) -> Result<()> {
    let path = dir.join("long.jsonl");
    let recorder = Recorder::open(&path, &run_id(1), options(Durability::None))?;
    let draft = draft();
    for _ in 0..LONG {
        recorder.record(&draft)?;
    }
    let (mut live, mut other, mut page) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds.max(3) as u64 {
        let began = Instant::now();
        let mut follower = recorder.follow(LONG);
        let batch = follower.recv()?.context("the last event")?;
        live.push(began.elapsed().as_secs_f64() * 1e3);
        ensure!(batch.seqs() == (LONG..=LONG), "the last event alone");
        let began = Instant::now();
        let log = RunLog::open(&path)?;
        let news = log.follow(LONG)?.try_next()?;
        other.push(began.elapsed().as_secs_f64() * 1e3);
        ensure!(news.is_some(), "the last event");
        for part in 1..20 {
            let from = LONG / 20 * part + round * 37;
            let began = Instant::now();
            let found = log.page(from, 200)?;
            page.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(found.events.len() == 200, "a whole page");
        }
    }
    let mut row = |what: &str, figures: Vec<f64>, goal: f64| {
        let ours = median(figures);
        let limit = format!("of {LONG} events");
        table.row(
            what,
            &format!("{ours:.3} ms"),
            &limit,
            ours,
            Goal::AtMost(goal),
        );
    };
    row("follow from the last event, ms", live, 5.0);
    row("the same from another process, opened anew, ms", other, 5.0);
    row("a page of 200 decoded events anywhere, ms", page, 2.0);
    recorder.close()?;
    Ok(())
}

/// Many followers of many runs: threads, and how long until all have the next event.
fn many_runs(table: &mut Table, dir: &Path) -> Result<()> {
    let before = threads();
    let open = |n: usize| {
        let path = dir.join(format!("many-{n}.jsonl"));
        Recorder::open(&path, &run_id(n), options(Durability::default()))
    };
    let recorders = (0..RUNS).map(open).collect::<Result<Vec<_>, _>>()?;
    let mut followers: Vec<Follower> = recorders
        .iter()
        .flat_map(|recorder| (0..FOLLOWERS).map(|_| recorder.follow(1)))
        .collect();
    let mut context = Context::from_waker(Waker::noop());
    for follower in &mut followers {
        ensure!(follower.poll_next(&mut context).is_pending(), "nothing yet");
    }
    let draft = draft();
    for recorder in &recorders {
        recorder.record(&draft)?;
    }
    let began = Instant::now();
    let mut left = followers.len();
    while left > 0 {
        left = 0;
        for follower in &mut followers {
            if follower.next_seq() == 1 && follower.poll_next(&mut context).is_pending() {
                left += 1;
            }
        }
        ensure!(began.elapsed() < Duration::from_secs(60), "all are served");
    }
    let took = began.elapsed().as_secs_f64() * 1e3;
    let added = threads().saturating_sub(before);
    let what = format!("threads for {} followers of {RUNS} runs", RUNS * FOLLOWERS);
    let limit = format!("all served in {took:.1} ms");
    table.row(
        &what,
        &added.to_string(),
        &limit,
        added as f64,
        Goal::AtMost(2.0),
    );
    Ok(())
}

/// Followers that come, wait and leave, while nothing is recorded.
fn come_and_go(table: &mut Table, dir: &Path) -> Result<()> {
    let path = dir.join("quiet.jsonl");
    let recorder = Recorder::open(&path, &run_id(1), options(Durability::None))?;
    recorder.record(&draft())?;
    let mut context = Context::from_waker(Waker::noop());
    let mut visit = |times: usize| {
        for _ in 0..times {
            drop(recorder.follow(2).poll_next(&mut context));
        }
    };
    visit(COME_AND_GO / 20);
    let before = resident();
    let began = Instant::now();
    visit(COME_AND_GO);
    let each = began.elapsed().as_secs_f64() * 1e6 / COME_AND_GO as f64;
    let grown = resident().saturating_sub(before) as f64 / f64::from(1 << 20);
    let what = format!("memory after {COME_AND_GO} followers came and went, MiB");
    let limit = format!("{each:.1} us each");
    table.row(
        &what,
        &format!("{grown:.2} MiB"),
        &limit,
        grown,
        Goal::AtMost(1.0),
    );
    Ok(())
}

/// The header of a run that calls very many others. Twice as many calls should take twice as long, not four times.
fn header(table: &mut Table, dir: &Path, rounds: usize) -> Result<()> {
    let mut times = [Vec::new(), Vec::new()];
    for (calls, times) in [40_000, 80_000].into_iter().zip(&mut times) {
        let path = dir.join(format!("calls-{calls}.jsonl"));
        let recorder = Recorder::open(&path, &run_id(calls), options(Durability::None))?;
        for n in 0..calls {
            let child_run_id = run_id(n);
            let step = Step::new("call", "call_workflow");
            let body = Body::CallStarted { child_run_id, step };
            recorder.record(&Draft::new(Place::step("call"), body))?;
        }
        recorder.close()?;
        for _ in 0..rounds.max(3) {
            let began = Instant::now();
            let mut sources = quipu_convert::open(&path, &Reading::default())?;
            let header = sources.first_mut().context("a run")?.header()?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(
                header.children.len() == calls,
                "every call is in the header"
            );
        }
    }
    let [half, whole] = times.map(median);
    let what = "a header over 80,000 calls, beside one over 40,000";
    let limit = format!("40,000 {half:.0} ms");
    table.row(
        what,
        &format!("{whole:.0} ms"),
        &limit,
        whole / half,
        Goal::AtMost(2.5),
    );
    Ok(())
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// A file that counts how often it is brought to disk.
struct OpenFile {
    file: File,
    syncs: AtomicU64,
}

impl OpenFile {
    fn create(path: &Path) -> Result<Arc<Self>> {
        let file = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)?;
        let syncs = AtomicU64::new(0);
        Ok(Arc::new(Self { file, syncs }))
    }
}

impl Medium for OpenFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        self.file.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
}
