//! A process that records a run, with the moment at which each event is recorded inside it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quipu_model::{Body, Draft, Fidelity, Json, Place, RunId, Step, ToolResult};
use quipu_record::{Clock as _, Durability, Storage, SystemClock};
use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
use crate::cpu::cpu;
use crate::sample::options;

/// What is before the moment, in the line of an event.
pub(super) const MARK: &[u8] = b"\"t=";

/// What is recorded.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Wanted {
    home: PathBuf,
    run: String,
    events: u64,
    /// Events a second; 0 is as fast as can be.
    rate: u64,
}

/// What it took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Wrote {
    pub(super) seconds: f64,
    /// Processor time, in seconds.
    pub(super) cpu: f64,
    /// What half of the calls to record an event took at most, in milliseconds.
    pub(super) call: f64,
}

/// Records, once somebody says so on standard input.
pub(super) fn write(wanted: &Wanted) -> Result<()> {
    let run = RunId::new(&wanted.run).context("an id")?;
    let recorder = Storage::at(&wanted.home).record(&run, options(Durability::default()))?;
    let step = Step::new("bench", "workflow");
    recorder.record(&Draft::new(
        Place::flat("", 0),
        Body::RunStarted(Some(step)),
    ))?;
    say("ready")?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    let (began, spent) = (Instant::now(), cpu());
    let mut calls = Histogram::default();
    for n in 0..wanted.events {
        if wanted.rate > 0 {
            let due = began + Duration::from_secs_f64(n as f64 / wanted.rate as f64);
            let early = due.saturating_duration_since(Instant::now());
            if early > Duration::from_micros(100) {
                std::thread::sleep(early);
            }
        }
        let event = event(n);
        let called = Instant::now();
        recorder.record(&event)?;
        calls.record(called.elapsed());
    }
    let wrote = Wrote {
        seconds: began.elapsed().as_secs_f64(),
        cpu: cpu() - spent,
        call: calls.percent(50),
    };
    recorder.close()?;
    say(&serde_json::to_string(&wrote)?)
}

fn say(what: &str) -> Result<()> {
    println!("{what}");
    Ok(std::io::stdout().flush()?)
}

fn event(n: u64) -> Draft {
    let moment = SystemClock.now().as_nanosecond();
    let said = format!("t={moment} ok: 12 tests passed, 0 failed, in 3.2 s");
    Draft::new(
        Place::flat("build.test", 0),
        Body::ToolResult(ToolResult {
            name: "Bash".to_owned(),
            call_id: format!("toolu_{n}").into(),
            input: None,
            output: Some(Json::string(&said)),
            error: None,
            fidelity: Fidelity::Router,
        }),
    )
}

/// The process, as seen from the one that started it. It ends when this is dropped.
pub(super) struct Writer {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Writer {
    /// Starts it. The run is there when this returns, with its first event.
    pub(super) fn start(home: &Path, run: &RunId, events: u64, rate: u64) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["alone", "writer"]).arg(home);
        command.args([run.as_str(), &events.to_string(), &rate.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("start a writer")?;
        let out = BufReader::new(child.stdout.take().context("its output")?);
        let mut writer = Self { child, out };
        let said = writer.line()?;
        ensure!(said == "ready", "the writer is not ready: {said}");
        Ok(writer)
    }

    /// Lets it record, and waits until it has.
    pub(super) fn write(mut self) -> Result<Wrote> {
        let mut input = self.child.stdin.take().context("its input")?;
        input.write_all(b"go\n")?;
        Ok(serde_json::from_str(&self.line()?)?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.out.read_line(&mut line)?;
        ensure!(read > 0, "the writer ended");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
