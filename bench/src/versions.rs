//! Two builds of Quipu beside each other, in alternating rounds.
//!
//! Each job runs with the old build and then with the new one, several times over. What counts is the median
//! of the ratios of processor time, which a busy machine disturbs less than wall time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::command::{Took, clean, middle, quipu, run, run_from};
use crate::corpus::{self, Corpus};
use crate::files::{put, remove};
use crate::setup::place;
use crate::table::{Goal, Table, median, now};

/// What is measured, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The quipu binary of the build to compare with
    #[arg(long)]
    old: PathBuf,
    /// The quipu binary of the build that is judged
    #[arg(long, default_value = "target/release/quipu")]
    new: PathBuf,
    /// Where to work
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// The size of the logs that are imported
    #[arg(long, default_value_t = 200_000_000)]
    bytes: u64,
    /// The size of the session that is converted
    #[arg(long, default_value_t = 20_000_000)]
    session_bytes: usize,
    /// How many events are recorded
    #[arg(long, default_value_t = 200_000)]
    events: usize,
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only the jobs whose name holds this
    #[arg(long, default_value = "")]
    only: String,
}

/// The formats that both builds write as one file.
const FORMATS: [&str; 8] = [
    "normalized",
    "html",
    "markdown",
    "atif",
    "otlp",
    "huggingface",
    "agentlog",
    "exchange",
];

/// How much slower than the old build the new one may be.
const MOST: f64 = 1.10;

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let directory = place(&options.directory, "versions")?;
    let home = Corpus::get(None, &place(&options.directory, "corpus")?, options.bytes)?.home;
    let builds = [binary(&options.old)?, binary(&options.new)?];
    let stores = [directory.join("old"), directory.join("new")];
    let mut pair = Pair {
        table,
        rounds: options.rounds.max(1),
        only: &options.only,
    };

    let in_store = |build: usize, args: &[&str]| {
        let mut command = quipu(&builds[build], &stores[build], &home);
        command.args(args);
        command
    };
    pair.job("import, into an empty home", |build| {
        remove(&stores[build])?;
        run(in_store(build, &["import"]))
    })?;
    for build in 0..builds.len() {
        run(in_store(build, &["import"]))?;
    }
    pair.job("import, nothing changed", |build| {
        run(in_store(build, &["import"]))
    })?;
    for args in [
        &["stats"][..],
        &["stats", "--by", "model"],
        &["list", "--json"],
        &["search", "error", "--json"],
    ] {
        let name = format!("quipu {}", args.join(" "));
        pair.job(&name, |build| run(in_store(build, args)))?;
    }
    let nothing = directory.join("nothing");
    pair.job("stats, from logs", |build| {
        let mut command = quipu(&builds[build], &nothing, &home);
        command.args(["stats", "--from-logs"]).arg(&home);
        run(command)
    })?;

    let session = directory.join(format!("session-{}.jsonl", options.session_bytes));
    if !session.exists() {
        put(&session, corpus::more(options.session_bytes, 1).as_bytes())?;
    }
    for format in FORMATS {
        pair.job(&format!("convert to {format}"), |build| {
            let mut command = Command::new(&builds[build]);
            clean(&mut command, &directory);
            command.args(["convert", "--force", "--to", format, "-o"]);
            command.arg(directory.join("out")).arg(&session);
            run(command)
        })?;
    }

    let drafts = directory.join(format!("drafts-{}.jsonl", options.events));
    put(&drafts, self::drafts(options.events).as_bytes())?;
    for durability in ["none", "group"] {
        pair.job(&format!("emit, durability {durability}"), |build| {
            let store = directory.join("recorded");
            remove(&store)?;
            let mut command = quipu(&builds[build], &store, &home);
            command.args(["emit", "--run", "bench-1", "--durability", durability]);
            run_from(command, Stdio::from(fs::File::open(&drafts)?))
        })?;
    }
    let recorded = directory.join("recorded/transcripts/bench-1.jsonl");
    for (name, args) in [("show", &["show", "--jsonl"][..]), ("verify", &["verify"])] {
        pair.job(&format!("{name} of a recorded run"), |build| {
            let mut command = quipu(&builds[build], &nothing, &home);
            command.args(args).arg(&recorded);
            run(command)
        })?;
    }
    Ok(())
}

fn binary(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).with_context(|| format!("no quipu binary at {}", path.display()))
}

/// What `emit` reads: prompts, answers and tool calls, in turn.
fn drafts(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let line = match n % 3 {
            0 => format!(
                r#"{{"type":"message.user","path":"build","payload":{{"role":"user","blocks":[{{"type":"text","fidelity":"router","text":"Prompt {n}"}}]}}}}"#
            ),
            1 => format!(
                r#"{{"type":"tool.call","path":"build","payload":{{"name":"Read","call_id":"c{n}","input":{{"path":"src/file{n}.rs"}},"output":null,"fidelity":"router"}}}}"#
            ),
            _ => format!(
                r#"{{"type":"tool.result","path":"build","payload":{{"name":"Read","call_id":"c{}","input":null,"output":"line one\nline two of {n}","fidelity":"router"}}}}"#,
                n - 1
            ),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

struct Pair<'t> {
    table: &'t mut Table,
    rounds: usize,
    only: &'t str,
}

impl Pair<'_> {
    /// Runs a job with the old build (0) and the new one (1), in turn.
    fn job(&mut self, name: &str, job: impl Fn(usize) -> Result<Took>) -> Result<()> {
        if !name.contains(self.only) {
            return Ok(());
        }
        now(name);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            old.push(job(0)?);
            new.push(job(1)?);
        }
        let ratios = old.iter().zip(&new).map(|(old, new)| new.cpu / old.cpu);
        let told = |took: Took| format!("{:.3} s, {:.0} MiB", took.cpu, took.memory);
        self.table.row(
            &format!("{name}: cpu, times the old build"),
            &told(middle(&new)),
            &told(middle(&old)),
            median(ratios.collect()),
            Goal::AtMost(MOST),
        );
        Ok(())
    }
}
