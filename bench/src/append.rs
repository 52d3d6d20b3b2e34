//! One file, one event at a time, against a bare loop of write(2).

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use quipu_record::{Durability, Recorder};

use crate::sample::{LINE, draft, options, run_id};
use crate::table::{Goal, Table, median, per_second};

const EVENTS: usize = 200_000;

pub(crate) fn measure(
    table: &mut Table,
    where_: &str,
    dir: &Path,
    rounds: usize,
    goal: f64,
) -> Result<()> {
    let dir = tempfile::tempdir_in(dir)?;
    let (mut raw, mut one, mut eight) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let limit = bare_loop(&dir.path().join(format!("raw{round}")))?;
        let single = recorded(dir.path(), round * 2, 1)?;
        let many = recorded(dir.path(), round * 2 + 1, 8)?;
        // The first round warms the page cache and the allocator.
        if round > 0 {
            raw.push(limit);
            one.push(single / limit);
            eight.push(many / limit);
        }
    }
    let limit = median(raw);
    let text = format!("write(2) {}", per_second(limit));
    for (threads, ratios, goal) in [(1, one, goal), (8, eight, 0.45)] {
        let ratio = median(ratios);
        let what = format!("record, {threads} thread(s), {LINE} B, no sync, {where_}");
        table.row(
            &what,
            &per_second(limit * ratio),
            &text,
            ratio,
            Goal::AtLeast(goal),
        );
    }
    Ok(())
}

/// Events per second of prepared lines written with `O_APPEND`, one call each.
fn bare_loop(path: &Path) -> Result<f64> {
    let line = [b'x'; LINE];
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)?;
    let began = Instant::now();
    for _ in 0..EVENTS {
        file.write_all(&line)?;
    }
    let took = began.elapsed();
    std::fs::remove_file(path)?;
    Ok(EVENTS as f64 / took.as_secs_f64())
}

fn recorded(dir: &Path, n: usize, threads: usize) -> Result<f64> {
    let path = dir.join(format!("{n}.jsonl"));
    let recorder = Recorder::open(&path, &run_id(n), options(Durability::None))?;
    let record = |events: usize| {
        let draft = draft();
        for _ in 0..events {
            recorder.record(&draft).expect("recorded");
        }
    };
    let began = Instant::now();
    if threads == 1 {
        // On this thread, like the bare loop: libc's write is dearer in a process with several.
        record(EVENTS);
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| record(EVENTS / threads));
            }
        });
    }
    let took = began.elapsed();
    recorder.close()?;
    std::fs::remove_file(path)?;
    Ok(EVENTS as f64 / took.as_secs_f64())
}
