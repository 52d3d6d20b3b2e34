//! `quipu search` as a command, beside ripgrep.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::command::{Took, middle, quipu, run};
use crate::table::{Goal, Table, median, now};

/// How often each is run.
const RUNS: usize = 25;

/// Nobody says this.
const NONSENSE: &str = "xqzvwkjpyq";

pub(super) fn measure(
    table: &mut Table,
    program: &Path,
    home: &Path,
    store: &Path,
    phrase: &str,
    rg: Option<&Path>,
) -> Result<()> {
    let search = |query: &str| {
        let mut command = quipu(program, store, home);
        command.arg("search").arg(query);
        command
    };
    let quoted = format!("\"{phrase}\"");
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    now("running commands");
    // The first of each warms the page cache.
    run(search(&quoted))?;
    if let Some(rg) = rg {
        run(ripgrep(rg, phrase, home)).context("ripgrep does not find the phrase (--phrase)")?;
    }
    for _ in 0..RUNS {
        let took = run(search(&quoted))?;
        if let Some(rg) = rg {
            let peer = run(ripgrep(rg, phrase, home))?;
            ratios.push(peer.wall / took.wall);
            theirs.push(peer);
        }
        ours.push(took);
    }
    let wall = format!("{:.1} ms", middle(&ours).wall * 1e3);
    if theirs.is_empty() {
        table.note(format!(
            "skipped: no ripgrep to compare with (--rg PATH); quipu search takes {wall}"
        ));
    } else {
        table.row(
            "quipu search of a phrase by wall time, times faster",
            &wall,
            &format!("rg -c {:.1} ms", middle(&theirs).wall * 1e3),
            median(ratios),
            Goal::AtLeast(15.0),
        );
    }
    most_memory(table, "quipu search of a phrase, peak memory", &ours);
    start(table, || search(NONSENSE))
}

fn ripgrep(rg: &Path, phrase: &str, home: &Path) -> Command {
    let mut command = Command::new(rg);
    // The logs lie in directories whose names begin with a dot, as they do in a home.
    command.args(["-c", "--hidden", "--no-ignore", "--no-config", "-F"]);
    command.arg("--regexp").arg(phrase).arg(home);
    command
}

/// What is left of a search when nothing is found.
fn start(table: &mut Table, search: impl Fn() -> Command) -> Result<()> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(run(Command::new("/bin/true"))?);
        ours.push(run(search())?);
    }
    let (own, bare) = (middle(&ours).cpu * 1e3, middle(&bare).cpu * 1e3);
    table.row(
        "quipu search of nonsense, cpu above that of /bin/true",
        &format!("{own:.1} ms"),
        &format!("5 ms + {bare:.1} ms"),
        (own - bare).max(0.0) / 5.0,
        Goal::AtMost(1.0),
    );
    most_memory(table, "quipu search of nonsense, peak memory", &ours);
    Ok(())
}

fn most_memory(table: &mut Table, what: &str, took: &[Took]) {
    let most = took.iter().map(|it| it.memory).fold(0.0, f64::max);
    table.row(
        what,
        &format!("{most:.0} MiB"),
        "64 MiB",
        most / 64.0,
        Goal::AtMost(1.0),
    );
}
