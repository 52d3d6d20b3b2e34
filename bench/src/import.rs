//! Importing logs: reading, keeping, and doing nothing when nothing changed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use quipu_agents::{Entry, Feed, Origin, Position, Sink, Summary};
use quipu_model::Timestamp;

use crate::command::{Took, middle, quipu, run};
use crate::corpus::{self, Corpus};
use crate::files::{logs, remove, size_of};
use crate::peers;
use crate::setup::Setup;
use crate::table::{Goal, Table, median};

pub(crate) fn measure(table: &mut Table, setup: &Setup, agentsview: Option<&Path>) -> Result<()> {
    let directory = setup.place("import")?;
    let Corpus { home, .. } = setup.corpus()?;
    let program = setup.quipu()?;
    let logs = logs(&home)?;
    let bytes: u64 = logs.iter().map(|log| log.1).sum();
    println!("{} logs, {:.0} MB", logs.len(), bytes as f64 / 1e6);

    let store = directory.join("store");
    let theirs = directory.join("agentsview");
    let import = || {
        let mut command = quipu(&program, &store, &home);
        command.arg("import");
        command
    };
    let sync = agentsview.map(|program| || peers::sync(program, &home, &theirs));
    let (mut ratios, mut ours, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.rounds.min(3) {
        remove(&store)?;
        let took = run(import())?;
        if let Some(sync) = &sync {
            remove(&theirs)?;
            let peer = run(sync())?;
            ratios.push(peer.cpu / took.cpu);
            peers.push(peer);
        }
        ours.push(took);
    }
    let Took { wall, cpu, memory } = middle(&ours);
    let rate = bytes as f64 / 1e6 / cpu;
    println!("import: {wall:.2} s wall, {cpu:.2} s cpu, {rate:.0} MB/s cpu, {memory:.0} MiB");
    if peers.is_empty() {
        println!(
            "skipped: no agentsview to compare with (pip install agentsview; --agentsview PATH)"
        );
    } else {
        let peer = middle(&peers);
        println!(
            "agentsview: {:.2} s wall, {:.2} s cpu, {:.0} MiB",
            peer.wall, peer.cpu, peer.memory
        );
        table.row(
            "import with full text by cpu time, times faster",
            &format!("{cpu:.2} s"),
            &format!("agentsview {:.2} s", peer.cpu),
            median(ratios),
            Goal::AtLeast(2.5),
        );
    }
    let memory_text = format!("{memory:.0} MiB");
    table.row(
        "import, peak memory / 256 MiB",
        &memory_text,
        "256 MiB",
        memory / 256.0,
        Goal::AtMost(1.0),
    );
    let kept = size_of(&store.join("archive"))? + size_of(&store.join("index.sqlite"))?;
    let kept_text = format!("{:.0} MB", kept as f64 / 1e6);
    let share = kept as f64 / bytes as f64;
    table.row(
        "archive + catalogue / logs",
        &kept_text,
        &format!("{:.0} MB", bytes as f64 / 1e6),
        share,
        Goal::AtMost(0.30),
    );

    unchanged(table, setup, &import, sync.as_ref())?;
    grown(table, &import, &logs, setup.rounds)?;
    bare(table, &program, &store, &home)?;
    // Last, because a command that is run from a process that has held much is said to have held it.
    parse(table, &logs, setup.rounds)
}

/// Reading alone, against a bare parse of the same lines.
fn parse(table: &mut Table, logs: &[(PathBuf, u64)], rounds: usize) -> Result<()> {
    for family in ["claude", "codex"] {
        let mut files = Vec::new();
        let mut len = 0;
        for (path, size) in logs {
            if path
                .iter()
                .any(|part| part.to_string_lossy().contains(family))
                && len < 64_000_000
            {
                files.push(fs::read(path)?);
                len += size;
            }
        }
        if files.is_empty() {
            continue;
        }
        let (mut ratios, mut speeds, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let began = Instant::now();
            tape(&files)?;
            let bare = began.elapsed().as_secs_f64();
            let began = Instant::now();
            read(&files)?;
            let ours = began.elapsed().as_secs_f64();
            ratios.push(bare / ours);
            speeds.push(len as f64 / 1e6 / ours);
            limits.push(len as f64 / 1e6 / bare);
        }
        table.row(
            &format!("parse and normalise, {family}"),
            &format!("{:.0} MB/s", median(speeds)),
            &format!("simd-json {:.0} MB/s", median(limits)),
            median(ratios),
            Goal::AtLeast(0.5),
        );
    }
    Ok(())
}

fn tape(files: &[Vec<u8>]) -> Result<()> {
    let (mut line, mut buffers) = (Vec::new(), simd_json::Buffers::default());
    for file in files {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', file) {
            line.clear();
            line.extend_from_slice(&file[from..end]);
            from = end + 1;
            let tape = simd_json::to_tape_with_buffers(&mut line, &mut buffers)?;
            std::hint::black_box(&tape);
        }
    }
    Ok(())
}

struct Sums(Summary);

impl Sink for Sums {
    fn entry(&mut self, _: u64, _: Timestamp, _: Position, entry: &Entry<'_>) {
        self.0.observe(entry);
    }
}

fn read(files: &[Vec<u8>]) -> Result<()> {
    for file in files {
        let head = &file[..file.len().min(quipu_agents::HEAD)];
        let (family, dialect) =
            quipu_agents::identify(head, head.len() == file.len()).context("a known log")?;
        let origin = Origin {
            path: Path::new("log.jsonl"),
            part: None,
        };
        let reader = family.open(&dialect, &origin, None).context("a reader")?;
        let mut feed = Feed::new(dialect.framing, reader);
        let mut sums = Sums(Summary::default());
        for piece in file.chunks(1 << 20) {
            feed.push(piece, &mut sums);
        }
        feed.finish(&mut sums)?;
        std::hint::black_box(&sums.0);
    }
    Ok(())
}

fn unchanged(
    table: &mut Table,
    setup: &Setup,
    import: &dyn Fn() -> Command,
    sync: Option<&impl Fn() -> Command>,
) -> Result<()> {
    let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        let took = run(import())?.cpu;
        if let Some(sync) = sync {
            let peer = run(sync())?.cpu;
            ratios.push(took / peer);
            theirs.push(peer);
        }
        ours.push(took);
    }
    let ours = median(ours);
    if theirs.is_empty() {
        println!("nothing changed: {ours:.3} s cpu");
        return Ok(());
    }
    let limit = format!("agentsview {:.3} s", median(theirs));
    table.row(
        "nothing changed, cpu",
        &format!("{ours:.3} s"),
        &limit,
        median(ratios),
        Goal::AtMost(0.5),
    );
    Ok(())
}

fn grown(
    table: &mut Table,
    import: &dyn Fn() -> Command,
    logs: &[(PathBuf, u64)],
    rounds: usize,
) -> Result<()> {
    let claude = |log: &&(PathBuf, u64)| log.0.iter().any(|part| part == ".claude");
    let Some((path, _)) = logs.iter().find(claude) else {
        return Ok(());
    };
    let mut walls = Vec::new();
    for round in 0..rounds {
        let before = fs::metadata(path)?.len();
        let more = corpus::more(10_000_000, 1000 + round as u64);
        fs::OpenOptions::new()
            .append(true)
            .open(path)?
            .write_all(more.as_bytes())?;
        let took = run(import());
        fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .set_len(before)?;
        walls.push(took?.wall * 1e3);
        run(import())?;
    }
    let wall = median(walls);
    table.row(
        "one log grown by 10 MB, wall",
        &format!("{wall:.0} ms"),
        "100 ms",
        wall / 100.0,
        Goal::AtMost(1.0),
    );
    Ok(())
}

fn bare(table: &mut Table, program: &Path, store: &Path, home: &Path) -> Result<()> {
    let took = run(quipu(program, store, home))?;
    let text = format!("{:.0} MiB, {:.2} s", took.memory, took.wall);
    table.row(
        "bare quipu, peak memory / 60 MiB",
        &text,
        "60 MiB",
        took.memory / 60.0,
        Goal::AtMost(1.0),
    );
    Ok(())
}
