//! `quipu verify` as a command: with one thread, with all of them, and what it holds.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::trace;
use crate::command::{Took, middle, quipu, run};
use crate::files::size_of;
use crate::table::{Goal, Table, median};

/// How much more may be held for four times as much.
const FLAT: f64 = 1.25;

pub(super) fn measure(
    table: &mut Table,
    program: &Path,
    name: &str,
    trace: &Path,
    directory: &Path,
    rounds: usize,
) -> Result<()> {
    let missing = || format!("there is no quipu binary at {}", program.display());
    let program = std::fs::canonicalize(program).with_context(missing)?;
    let bytes = size_of(trace)?;
    let quarter = trace::beginning(trace, bytes / 4, directory)?;
    let threads = std::thread::available_parallelism()?.get();
    let verify = |trace: &Path, threads: usize| {
        let mut command = command(&program, directory, trace);
        command.arg("--threads").arg(threads.to_string());
        command
    };
    let (mut one, mut many, mut small) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        one.push(run(verify(trace, 1))?);
        many.push(run(verify(trace, threads))?);
        small.push(run(verify(&quarter, threads))?);
    }
    let rate = |seconds: f64| format!("{:.0} MB/s", bytes as f64 / 1e6 / seconds);
    let pairs = one.iter().zip(&many);
    table.row(
        &format!("{name}: quipu verify with {threads} threads by wall time, times faster"),
        &rate(middle(&many).wall),
        &format!("one thread {}", rate(middle(&one).wall)),
        median(pairs.map(|(one, many)| one.wall / many.wall).collect()),
        Goal::Free,
    );
    let most = |took: &[Took]| took.iter().map(|it| it.memory).fold(0.0, f64::max);
    let (whole, part) = (most(&many), most(&small));
    table.row(
        &format!("{name}: quipu verify, peak memory for 4 times as much"),
        &format!("{whole:.0} MiB"),
        &format!("{part:.0} MiB"),
        whole / part,
        Goal::AtMost(FLAT),
    );
    let (one, many) = (middle(&one), middle(&many));
    table.note(format!(
        "{name}, {:.0} MB: quipu verify with one thread {:.2} s of cpu time, {:.2} s wall, {:.0} MiB; with {threads} {:.2} s, {:.2} s, {:.0} MiB",
        bytes as f64 / 1e6,
        one.cpu,
        one.wall,
        one.memory,
        many.cpu,
        many.wall,
        many.memory,
    ));
    Ok(())
}

fn command(program: &Path, home: &Path, trace: &Path) -> Command {
    let empty: PathBuf = home.join("home");
    let mut command = quipu(program, &empty, home);
    command.arg("verify").arg(trace);
    command
}
