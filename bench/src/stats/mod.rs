//! Adding up tokens and dollars: from what is kept, and from logs beside ccusage.

mod totals;

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command::{clean, middle, output, quipu, run};
use crate::corpus::{Corpus, Truth};
use crate::files::{logs, remove};
use crate::setup::Setup;
use crate::table::{Goal, Table, median, now};

/// How often a short command is run.
const RUNS: usize = 25;

pub(crate) fn measure(table: &mut Table, setup: &Setup, ccusage: Option<&Path>) -> Result<()> {
    let corpus = setup.corpus()?;
    let (program, directory) = (setup.quipu()?, setup.place("stats")?);
    let store = directory.join("store");
    remove(&store)?;
    let mut import = quipu(&program, &store, &corpus.home);
    import.arg("import");
    now("importing");
    run(import)?;
    now("running commands");
    kept(table, &program, &corpus, &store)?;

    // Nothing is kept here.
    let nothing = directory.join("nothing");
    remove(&nothing)?;
    let claude = corpus.home.join(".claude");
    if !claude.is_dir() {
        table.note("skipped: these logs have no sessions of Claude Code, which ccusage would read");
        return Ok(());
    }
    let from_logs = |more: &[&str]| {
        let mut command = quipu(&program, &nothing, &corpus.home);
        command
            .arg("stats")
            .args(more)
            .arg("--from-logs")
            .arg(&claude);
        command
    };
    let bytes: u64 = logs(&claude)?.iter().map(|log| log.1).sum();
    let Some(ccusage) = ccusage else {
        let took = run(from_logs(&[]))?;
        table.note(format!(
            "skipped: no ccusage to compare with (npm; --ccusage PATH); quipu stats --from-logs takes {:.2} s of cpu time",
            took.cpu
        ));
        return Ok(());
    };
    let ways: [(&str, &[&str]); 2] = [
        ("quipu stats --from-logs", &[]),
        ("quipu stats --tokens-only --from-logs", &["--tokens-only"]),
    ];
    for (name, flags) in ways {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setup.rounds.max(1) {
            let took = run(from_logs(flags))?;
            let peer = run(daily(ccusage, &corpus.home))?;
            ratios.push(peer.cpu / took.cpu);
            ours.push(took);
            theirs.push(peer);
        }
        let (own, peer) = (middle(&ours), middle(&theirs));
        table.row(
            &format!("{name} by cpu time, times faster"),
            &format!("{:.2} s", own.cpu),
            &format!("ccusage {:.2} s", peer.cpu),
            median(ratios),
            Goal::AtLeast(2.0),
        );
        let rate = |cpu: f64| bytes as f64 / 1e6 / cpu;
        table.note(format!(
            "{name}: {:.2} s wall, {:.0} MB/s cpu, {:.0} MiB; ccusage: {:.2} s wall, {:.0} MB/s cpu, {:.0} MiB",
            own.wall,
            rate(own.cpu),
            own.memory,
            peer.wall,
            rate(peer.cpu),
            peer.memory
        ));
    }
    let ours = totals::ours(&output(from_logs(&["--json"]))?)?;
    let theirs = totals::ccusage(&output(daily(ccusage, &corpus.home))?)?;
    let usage = corpus.truth.as_ref().map(|truth| &truth.claude);
    totals::compare(table, &ours, &theirs, usage);
    Ok(())
}

/// Ccusage, adding up the sessions of Claude Code in a home.
fn daily(ccusage: &Path, home: &Path) -> Command {
    let mut command = Command::new(ccusage);
    command.args(["claude", "daily", "--offline", "--json"]);
    clean(&mut command, home);
    command.env("CLAUDE_CONFIG_DIR", home.join(".claude"));
    command
}

/// From what is kept.
fn kept(table: &mut Table, program: &Path, corpus: &Corpus, store: &Path) -> Result<()> {
    let stats = || {
        let mut command = quipu(program, store, &corpus.home);
        command.arg("stats");
        command
    };
    let mut took = Vec::new();
    for _ in 0..RUNS {
        took.push(run(stats())?);
    }
    let wall = middle(&took).wall * 1e3;
    table.row(
        "quipu stats from the index, wall",
        &format!("{wall:.1} ms"),
        "50 ms",
        wall / 50.0,
        Goal::AtMost(1.0),
    );
    let most = took.iter().map(|it| it.memory).fold(0.0, f64::max);
    table.row(
        "quipu stats from the index, peak memory",
        &format!("{most:.0} MiB"),
        "64 MiB",
        most / 64.0,
        Goal::AtMost(1.0),
    );
    let Some(truth) = &corpus.truth else {
        table.note(
            "skipped: nothing is known of the tokens in these logs, so that they cannot be checked",
        );
        return Ok(());
    };
    let mut command = stats();
    command.args(["--by", "agent", "--json"]);
    right(table, &output(command)?, truth)
}

/// Whether each agent's tokens are those that were written into its logs.
fn right(table: &mut Table, document: &str, truth: &Truth) -> Result<()> {
    for (agent, usage) in [("claude-code", &truth.claude), ("codex", &truth.codex)] {
        let (calls, tokens) = totals::of_agent(document, agent)?;
        let wrong = totals::difference(tokens, usage.right) + calls.abs_diff(usage.calls);
        table.row(
            &format!("calls and tokens of {agent} that are wrong"),
            &format!("{calls} calls"),
            &format!("{} written", usage.calls),
            wrong as f64,
            Goal::AtMost(0.0),
        );
    }
    Ok(())
}
