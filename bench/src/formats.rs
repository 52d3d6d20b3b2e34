//! Converting sessions: beside reading and writing alone, and beside what people use.
//!
//! A conversion reads a log twice (once for what most formats want at the beginning) and writes on a second thread.
//! It is held against the slower of reading once and writing once, each measured alone in the same round.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use quipu_convert::source::Receiver;
use quipu_convert::{Format, Reading, Shape, TargetOptions as Choices, open, write, writer};
use quipu_formats::parquet::Tables;
use quipu_formats::projection::Nowhere;
use quipu_model::{Attachment, Event, Header};

use crate::command::{clean, middle, run};
use crate::corpus;
use crate::cpu::cpu;
use crate::files::put;
use crate::peers;
use crate::setup::place;
use crate::table::{Goal, Table, median, now};

/// What is measured, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where to work
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// A log, in place of one that is made up
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// How long the log is that is made up
    #[arg(long, default_value_t = 100_000_000)]
    bytes: usize,
    /// What it is made up from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The quipu binary
    #[arg(long, default_value = "target/release/quipu")]
    quipu: PathBuf,
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Do not measure claude-code-transcripts, which takes long
    #[arg(long)]
    no_python: bool,
}

/// The session that a person looks at.
const PAGE: usize = 10_000_000;

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let directory = place(&options.directory, "formats")?;
    let log = match &options.file {
        Some(file) => std::fs::canonicalize(file).with_context(|| file.display().to_string())?,
        None => session(&directory, options.bytes, options.seed)?,
    };
    // Before anything is held here: what a child has at most is counted from when it was forked.
    commands(table, options, &directory)?;
    now("reading and writing alone, and both");
    let bench = Bench::new(&log)?;
    for &format in Format::ALL {
        if format.shape() != Shape::Directory {
            now(&format!("measuring {format}"));
            bench.format(table, format, options.rounds.max(1))?;
        }
    }
    Ok(())
}

/// A session of about so many bytes.
fn session(directory: &Path, bytes: usize, seed: u64) -> Result<PathBuf> {
    let path = directory.join(format!("session-{bytes}-{seed}.jsonl"));
    if !path.exists() {
        put(&path, corpus::more(bytes, seed).as_bytes())?;
    }
    Ok(path)
}

struct Bench {
    log: PathBuf,
    bytes: f64,
    reading: Reading,
    header: Header,
    events: Vec<Event>,
}

/// Seconds of wall time and of processor time.
#[derive(Debug, Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

impl Bench {
    fn new(log: &Path) -> Result<Self> {
        let reading = Reading::default();
        let mut sources = open(log, &reading)?;
        let source = sources.first_mut().context("a log with a session")?;
        let header = source.header()?;
        let mut events = Keep(Vec::new());
        source.read(&mut events)?;
        Ok(Self {
            log: log.to_owned(),
            bytes: log.metadata()?.len() as f64,
            reading,
            header,
            events: events.0,
        })
    }

    fn format(&self, table: &mut Table, format: Format, rounds: usize) -> Result<()> {
        let (mut read, mut written, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            read.push(self.read()?);
            written.push(self.write(format)?);
            if format.shape() == Shape::File {
                both.push(self.convert(format)?);
            }
        }
        let rate = |took: &[Took], of: fn(&Took) -> f64| {
            self.bytes / 1e6 / median(took.iter().map(of).collect())
        };
        let told = |rate: f64| format!("{rate:.0} MB/s");
        if !both.is_empty() {
            let slower = read.iter().zip(&written).map(|(a, b)| a.wall.max(b.wall));
            let ratios = both
                .iter()
                .zip(slower)
                .map(|(both, slower)| both.wall / slower);
            table.row(
                &format!("{format}: convert, times the slower of reading and writing"),
                &told(rate(&both, |it| it.wall)),
                &format!(
                    "read {}, write {}",
                    told(rate(&read, |it| it.wall)),
                    told(rate(&written, |it| it.wall))
                ),
                median(ratios.collect()),
                Goal::AtMost(2.0),
            );
        }
        if matches!(format, Format::Otlp | Format::Parquet) {
            let speed = rate(&written, |it| it.cpu);
            table.row(
                &format!("{format}: writing, MB of log per second of one core"),
                &told(speed),
                "100 MB/s",
                speed,
                Goal::AtLeast(100.0),
            );
        }
        Ok(())
    }

    fn read(&self) -> Result<Took> {
        let mut sources = open(&self.log, &self.reading)?;
        let source = sources.first_mut().context("a log with a session")?;
        source.header()?;
        timed(|| Ok(source.read(&mut Forget).map(drop)?))
    }

    fn write(&self, format: Format) -> Result<Took> {
        timed(|| {
            if format.shape() == Shape::Tables {
                return self.tables();
            }
            let choices = choices();
            let out: Box<dyn Write> = Box::new(io::sink());
            let mut to = writer(format, &self.header, &choices, out, Box::new(Nowhere))?;
            for event in &self.events {
                to.event(event)?;
            }
            to.finish()?;
            Ok(())
        })
    }

    fn tables(&self) -> Result<()> {
        let mut tables = Tables::new(
            io::sink(),
            io::sink(),
            &quipu_formats::parquet::ParquetOptions::default(),
        )?;
        tables.begin(&self.header);
        for event in &self.events {
            tables.event(event)?;
        }
        tables.end()?;
        tables.close()?;
        Ok(())
    }

    fn convert(&self, format: Format) -> Result<Took> {
        timed(|| {
            let mut sources = open(&self.log, &self.reading)?;
            let source = sources.first_mut().context("a log with a session")?;
            let out: Box<dyn Write> = Box::new(io::sink());
            write(&mut **source, format, &choices(), out, Box::new(Nowhere))?;
            Ok(())
        })
    }
}

/// With all that was said, which is more work.
fn choices() -> Choices {
    let mut choices = Choices::default();
    choices.otlp.content = true;
    choices
}

fn timed(what: impl FnOnce() -> Result<()>) -> Result<Took> {
    let (began, before) = (Instant::now(), cpu());
    what()?;
    Ok(Took {
        wall: began.elapsed().as_secs_f64(),
        cpu: cpu() - before,
    })
}

struct Forget;

impl Receiver for Forget {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        drop(event);
        Ok(())
    }
}

struct Keep(Vec<Event>);

impl Receiver for Keep {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        self.0.push(event);
        Ok(())
    }
}

/// The command itself: how long a page takes, and whether memory grows with the session.
fn commands(table: &mut Table, options: &Options, directory: &Path) -> Result<()> {
    let quipu = std::fs::canonicalize(&options.quipu)
        .with_context(|| format!("there is no quipu binary at {}", options.quipu.display()))?;
    let convert = |log: &Path, format: Format| {
        let mut command = Command::new(&quipu);
        clean(&mut command, directory);
        command.args(["convert", "--force", "--to", format.as_str(), "-o"]);
        command
            .arg(directory.join(format!("out{}", format.ending())))
            .arg(log);
        command
    };
    now("a page of 10 MB");
    let page = session(directory, PAGE, options.seed)?;
    let peer = if options.no_python {
        None
    } else {
        peers::claude_code_transcripts(&place(&options.directory, "peers")?)
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds.max(1) {
        ours.push(run(convert(&page, Format::Html))?);
        if let Some(peer) = &peer {
            let mut command = Command::new(peer);
            clean(&mut command, directory);
            command
                .arg("json")
                .arg(&page)
                .arg("-o")
                .arg(directory.join("theirs"));
            theirs.push(run(command)?);
        }
    }
    let mine = middle(&ours).wall;
    let beside = if theirs.is_empty() {
        "claude-code-transcripts was not measured".to_owned()
    } else {
        format!(
            "claude-code-transcripts {:.0} ms",
            middle(&theirs).wall * 1e3
        )
    };
    table.row(
        "html: a session of 10 MB, milliseconds",
        &format!("{:.0} ms", mine * 1e3),
        &beside,
        mine * 1e3,
        Goal::AtMost(300.0),
    );
    if !theirs.is_empty() {
        table.row(
            "html: a session of 10 MB, times faster",
            &format!("{:.0} ms", mine * 1e3),
            &beside,
            middle(&theirs).wall / mine,
            Goal::Free,
        );
    }
    now("memory");
    let four = session(directory, PAGE * 4, options.seed)?;
    for &format in Format::ALL {
        if format.shape() != Shape::File {
            continue;
        }
        let (one, more) = (run(convert(&page, format))?, run(convert(&four, format))?);
        table.row(
            &format!("{format}: memory for a session four times as long, times"),
            &format!("{:.0} MiB", more.memory),
            &format!("{:.0} MiB", one.memory),
            more.memory / one.memory,
            Goal::AtMost(1.25),
        );
    }
    Ok(())
}
