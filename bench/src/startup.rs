//! How long a small command takes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use quipu_record::{Durability, Recorder};

use crate::sample::{draft, options, run_id};
use crate::table::{Goal, Table, median};

pub(crate) fn measure(table: &mut Table, quipu: &Path, dir: &Path, rounds: usize) -> Result<()> {
    let dir = tempfile::tempdir_in(dir)?;
    let path = dir.path().join("ten.jsonl");
    let recorder = Recorder::open(&path, &run_id(0), options(Durability::None))?;
    for _ in 0..10 {
        recorder.record(&draft())?;
    }
    recorder.close()?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 10 {
        bare.push(wall_ms(Command::new("/bin/true"))?);
        let mut show = Command::new(quipu);
        show.arg("show").arg(&path);
        ours.push(wall_ms(show).with_context(|| format!("run {}", quipu.display()))?);
    }
    let (ours, bare) = (median(ours), median(bare));
    let limit = format!("/bin/true {bare:.1} ms");
    table.row(
        "quipu show, 10 events",
        &format!("{ours:.1} ms"),
        &limit,
        ours / 10.0,
        Goal::AtMost(1.0),
    );
    Ok(())
}

fn wall_ms(mut command: Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    let status = command.status()?;
    ensure!(status.success(), "it failed: {status}");
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
