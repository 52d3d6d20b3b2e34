//! An import with full text, beside agentsview and beside tantivy that is given the texts alone.

use std::path::{Path, PathBuf};

use anyhow::Result;
use quipu_store::search::index_path;

use super::ourselves;
use super::texts;
use crate::command::{Took, middle, quipu, run};
use crate::files::{logs, remove, size_of};
use crate::peers;
use crate::table::{Goal, Table, median, now};

/// What there is to search.
pub(super) struct Built {
    /// The home of what was imported.
    pub(super) store: PathBuf,
    pub(super) texts: PathBuf,
    pub(super) fts5: PathBuf,
}

/// What is imported, and with what.
pub(super) struct With<'w> {
    pub(super) quipu: &'w Path,
    pub(super) agentsview: Option<&'w Path>,
    pub(super) home: &'w Path,
    pub(super) directory: &'w Path,
}

pub(super) fn measure(table: &mut Table, with: &With<'_>, rounds: usize) -> Result<Built> {
    let With {
        home, directory, ..
    } = *with;
    let built = Built {
        store: directory.join("store"),
        texts: directory.join("texts"),
        fts5: directory.join("fts5.sqlite"),
    };
    let (bare, theirs) = (directory.join("bare"), directory.join("agentsview"));
    now("taking texts out of the logs");
    run(ourselves("texts", home, &built.texts)?)?;
    let (mut ours, mut bares, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    let rounds = rounds.clamp(1, 3);
    for round in 1..=rounds {
        now(&format!("indexing, round {round} of {rounds}"));
        remove(&built.store)?;
        let mut import = quipu(with.quipu, &built.store, home);
        import.arg("import");
        ours.push(run(import)?);
        bares.push(run(ourselves("bare", &built.texts, &bare)?)?);
        if let Some(program) = with.agentsview {
            remove(&theirs)?;
            peers.push(run(peers::sync(program, home, &theirs))?);
        }
    }
    now("indexing with FTS5");
    let fts5 = run(ourselves("fts5", &built.texts, &built.fts5)?)?;

    speed(table, &ours, &bares, &peers);
    let text = text_bytes(&built.texts)?;
    let index = size_of(&index_path(&built.store))?;
    table.row(
        "index / text",
        &megabytes(index),
        &format!("text {}", megabytes(text)),
        index as f64 / text as f64,
        Goal::AtMost(0.45),
    );
    let logs = logs(home)?;
    let mut report = Report {
        text,
        lines: vec![format!(
            "{} logs, {}; {} events with {} of text.",
            logs.len(),
            megabytes(logs.iter().map(|log| log.1).sum()),
            count_events(&built.texts)?,
            megabytes(text)
        )],
    };
    report.head();
    report.line("quipu import (all of it)", middle(&ours), Some(index));
    report.line(
        "bare tantivy (texts alone)",
        middle(&bares),
        Some(size_of(&bare)?),
    );
    report.line("FTS5 (texts alone)", fts5, Some(size_of(&built.fts5)?));
    if !peers.is_empty() {
        report.line("agentsview sync (all of it)", middle(&peers), None);
    }
    table.note(report.lines.join("\n"));
    remove(&bare)?;
    remove(&theirs)?;
    Ok(built)
}

/// What indexing takes, beside each other.
struct Report {
    text: u64,
    lines: Vec<String>,
}

impl Report {
    fn head(&mut self) {
        self.lines.push(format!(
            "{:<30} {:>9} {:>9} {:>9} {:>11}",
            "indexing", "wall", "cpu", "memory", "index/text"
        ));
    }

    fn line(&mut self, what: &str, took: Took, size: Option<u64>) {
        let size = match size {
            Some(size) => format!("{:.2}", size as f64 / self.text as f64),
            None => "-".to_owned(),
        };
        let Took { wall, cpu, memory } = took;
        self.lines.push(format!(
            "{what:<30} {wall:>7.2} s {cpu:>7.2} s {memory:>5.0} MiB {size:>11}"
        ));
    }
}

fn speed(table: &mut Table, ours: &[Took], bares: &[Took], peers: &[Took]) {
    let own = middle(ours);
    let ratios = |others: &[Took], figure: fn(&Took) -> f64| {
        let pairs = others.iter().zip(ours);
        median(
            pairs
                .map(|(other, own)| figure(other) / figure(own))
                .collect(),
        )
    };
    if peers.is_empty() {
        table.note(
            "skipped: no agentsview to compare with (pip install agentsview; --agentsview PATH)",
        );
    } else {
        table.row(
            "import with full text by cpu time, times faster",
            &format!("{:.2} s", own.cpu),
            &format!("agentsview {:.2} s", middle(peers).cpu),
            ratios(peers, |it| it.cpu),
            Goal::AtLeast(2.5),
        );
    }
    table.row(
        "import with full text by wall time, as fast as",
        &format!("{:.2} s", own.wall),
        &format!("bare tantivy {:.2} s", middle(bares).wall),
        ratios(bares, |it| it.wall),
        Goal::AtLeast(0.70),
    );
    let most = ours.iter().map(|it| it.memory).fold(0.0, f64::max);
    table.row(
        "import with full text, peak memory",
        &format!("{most:.0} MiB"),
        "256 MiB",
        most / 256.0,
        Goal::AtMost(1.0),
    );
}

/// How long all texts are. The list of events would tell too, but this holds nothing.
fn text_bytes(from: &Path) -> Result<u64> {
    Ok(size_of(&from.join("texts"))? - texts::LEN as u64 * count_events(from)?)
}

pub(crate) fn count_events(texts: &Path) -> Result<u64> {
    use std::io::Read as _;
    let mut list = std::fs::File::open(texts.join("events"))?;
    let (mut piece, mut lines) = (vec![0; 1 << 16], 0);
    loop {
        let read = list.read(&mut piece)?;
        if read == 0 {
            return Ok(lines);
        }
        lines += memchr::memchr_iter(b'\n', &piece[..read]).count() as u64;
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
