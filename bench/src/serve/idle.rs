//! A server that nobody asks anything, and how soon it answers.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Bench, logs};
use crate::table::{Goal, Table, median, now};

/// Messages of each session, and their length.
const MESSAGES: usize = 4;
const BYTES: usize = 120;

/// How long a server may take to settle before it is watched.
const SETTLE: Duration = Duration::from_secs(3);

/// The goals: milliseconds, a share of a core, MiB.
const READY: f64 = 300.0;
const CPU: f64 = 0.001;
const MEMORY: f64 = 48.0;

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    now("idle: making up sessions");
    let root = bench.fresh("idle")?;
    let (sessions, home) = (root.path().join("logs"), root.path().join("home"));
    for n in 0..bench.sessions {
        logs::session(&sessions, n, MESSAGES, BYTES)?;
    }
    now("idle: importing");
    bench.import(&home, &sessions, None)?;
    let mut starts = Vec::new();
    for round in 0..bench.rounds.max(1) {
        now(&format!("idle: start {}", round + 1));
        let server = bench.start(&home, &sessions)?;
        starts.push(server.ready("/readyz")?.as_secs_f64() * 1e3);
    }
    let count = bench.sessions;
    let ready = median(starts);
    table.row(
        &format!("ready with {count} sessions, from its start"),
        &format!("{ready:.0} ms"),
        &format!("{READY:.0} ms"),
        ready / READY,
        Goal::AtMost(1.0),
    );
    let server = bench.serve(&home, &sessions)?;
    let lasting = bench.lasting(20);
    now(&format!("idle: watching for {} s", lasting.as_secs()));
    std::thread::sleep(SETTLE);
    let (cpu, reads) = (server.cpu()?, server.reads()?);
    std::thread::sleep(lasting);
    let share = (server.cpu()? - cpu) / lasting.as_secs_f64();
    let after = server.reads()?;
    let memory = server.memory()?;
    // It was there all the time.
    ensure!(
        server.ready("/readyz").is_ok(),
        "the server is not there any more"
    );
    table.row(
        &format!("idle with {count} sessions, of a core"),
        &format!("{:.2} %", share * 100.0),
        &format!("{:.1} %", CPU * 100.0),
        share / CPU,
        Goal::AtMost(1.0),
    );
    let (times, bytes) = (after.0 - reads.0, after.1 - reads.1);
    table.row(
        &format!("reads while idle for {} s", lasting.as_secs()),
        &format!("{times}"),
        &format!("0 ({bytes} bytes)"),
        times as f64,
        Goal::AtMost(0.0),
    );
    table.row(
        "memory while idle",
        &format!("{memory:.1} MiB"),
        &format!("{MEMORY:.0} MiB"),
        memory / MEMORY,
        Goal::AtMost(1.0),
    );
    Ok(())
}
