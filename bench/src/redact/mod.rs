//! Finding secrets: how many, how many that are none, how fast, and beside whom.
//!
//! A secret counts as found when it is gone from the line it stood on. Speed is of logs as they are, in processor time of
//! one thread, with every rule there is; quality is of secrets and of what tells who somebody is, since absolute paths and
//! names are everywhere in a log and are removed on purpose. So is what a tool read from a secret file, as a whole: what the
//! rules find is measured without, and how much that adds is said beside it.

mod beside;
mod corpus;
mod decoys;
mod held_out;
mod hostile;
mod ours;
mod score;
mod settings;
mod shadow;
#[cfg(test)]
mod tests;
mod trees;
mod unseen;
mod whole;
mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use quipu_redact::{Engine, Kind, RuleSet};

use self::corpus::{Corpus, From};
use self::score::{Score, score};
use crate::setup::place;
use crate::table::{Goal, Table, median, now};

/// What the corpus is called that is not given.
const OWN: &str = "made up";

/// What is measured, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where to work
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// Logs with `truth.jsonl` and `decoys.jsonl` beside them; may be given several times
    #[arg(long, value_name = "DIR")]
    corpus: Vec<PathBuf>,
    /// How much is made up, beside what is given
    #[arg(long, default_value_t = 20_000_000)]
    bytes: usize,
    /// What it is made up from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often speed is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long a hostile input is
    #[arg(long, default_value_t = 4_000_000)]
    hostile_bytes: usize,
    /// How much the engine is given that tries every rule on every text
    #[arg(long, default_value_t = 40_000_000)]
    whole_bytes: usize,
    /// How much of a corpus slow tools are given
    #[arg(long, default_value_t = 5_000_000)]
    slow_bytes: usize,
    /// Where other tools are, or are installed to: `python` and `node` below it
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Do not measure other tools
    #[arg(long)]
    no_peers: bool,
    /// Directories of sources to look for false findings in (`cargo xtask trees` fetches some), and nothing else is
    /// measured; may be given several times
    #[arg(long, value_name = "DIR")]
    trees: Vec<PathBuf>,
    /// Only the parts whose name holds this: quality, unseen, speed, words, whole, hostile, shadow
    #[arg(long, default_value = "")]
    only: String,
}

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let work = place(&options.directory, "redact")?;
    let rules = RuleSet::builtin();
    let full = Engine::new(&rules, |_| true)?;
    let precise = Engine::new(&rules, |rule| matches!(rule.kind, Kind::Secret | Kind::Pii))?;
    table.note(format!("{} rules: {}", rules.rules.len(), groups(&rules)));
    if !options.trees.is_empty() {
        return trees::measure(table, &precise, &options.trees, &work, options.seed);
    }
    let mut corpora = Vec::new();
    for directory in &options.corpus {
        corpora.push((directory.display().to_string(), Corpus::open(directory)?));
    }
    now("making up logs");
    let own = place(&work, &format!("own-{}-{}", options.bytes, options.seed))?;
    let own = Corpus::make(&own, options.bytes, options.seed, &rules)?;
    corpora.push((OWN.to_owned(), own));
    let wanted = |part: &str| part.contains(options.only.as_str());
    for (name, corpus) in &corpora {
        if wanted("quality") {
            now(&format!("looking for what is planted: {name}"));
            let found = score(corpus, &precise, false)?;
            quality(table, name, corpus, &found)?;
            with_files(table, name, corpus, &score(corpus, &precise, true)?);
            if name == OWN {
                people(table, &score(corpus, &full, false)?);
            }
            peers(table, options, name, corpus, &found)?;
        }
    }
    if wanted("unseen") {
        let others = if options.no_peers {
            None
        } else {
            Some(place_of_peers(options)?)
        };
        let others = others.as_ref();
        let others = others.map(|(work, peers)| (work.as_path(), peers.as_path()));
        unseen::measure(table, &precise, options.seed, others)?;
    }
    let (name, largest) = &corpora[0];
    let mut normal = 0.0;
    if wanted("speed") || wanted("hostile") {
        normal = speed(table, name, largest, &full, options.rounds)?;
    }
    if wanted("words") {
        words::measure(table, largest, &full, options.rounds)?;
    }
    if wanted("whole") {
        whole::measure(table, largest, &full, options.whole_bytes);
    }
    if wanted("hostile") {
        hostile::measure(table, &full, options.hostile_bytes, normal)?;
    }
    if wanted("shadow") {
        shadow::measure(table, &precise)?;
    }
    Ok(())
}

/// How many rules there are of each kind.
fn groups(rules: &RuleSet) -> String {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for rule in &rules.rules {
        *kinds.entry(rule.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {}", kind.as_str()))
        .collect();
    kinds.join(", ")
}

fn speed(
    table: &mut Table,
    name: &str,
    corpus: &Corpus,
    engine: &Engine,
    rounds: usize,
) -> Result<f64> {
    let mut speeds = Vec::new();
    for round in 0..rounds.max(1) {
        now(&format!("speed, round {}", round + 1));
        let mut cpu = 0.0;
        for log in &corpus.logs {
            cpu += ours::redact(engine, &log.bytes)?.cpu;
        }
        speeds.push(corpus.bytes as f64 / 1e6 / cpu);
    }
    let speed = median(speeds);
    table.row(
        &format!("{name}: MB/s of logs, one core, every rule"),
        &format!("{speed:.0} MB/s"),
        &format!("{:.0} MB of logs", corpus.bytes as f64 / 1e6),
        speed,
        Goal::AtLeast(300.0),
    );
    Ok(speed)
}

fn quality(table: &mut Table, name: &str, corpus: &Corpus, found: &Score) -> Result<()> {
    for (what, goal, wanted) in [
        ("planted, by its list", 0.99, From::List),
        (
            "an example of every rule for secrets",
            0.99,
            From::Rule(Kind::Secret),
        ),
        (
            "kinds that the rules were not written by",
            0.95,
            From::HeldOut,
        ),
    ] {
        if let Some((all, hits, part)) = found.part(|from| from == wanted) {
            table.row(
                &format!("{name}: {what}, found"),
                &hits.to_string(),
                &format!("of {all}"),
                part,
                Goal::AtLeast(goal),
            );
        }
    }
    let touched: usize = found.decoys.values().sum();
    table.row(
        &format!("{name}: decoys touched"),
        &touched.to_string(),
        &format!("of {}", corpus.decoys.len()),
        touched as f64,
        Goal::AtMost(0.0),
    );
    let per = 100e6 / corpus.bytes as f64;
    for (kind, goal) in [(Kind::Secret, Goal::AtMost(10.0)), (Kind::Pii, Goal::Free)] {
        let clean = found.clean_of(kind);
        table.row(
            &format!(
                "{name}: findings ({}) on clean lines, per 100 MB",
                kind.as_str()
            ),
            &clean.to_string(),
            &format!("in {:.0} MB", corpus.bytes as f64 / 1e6),
            clean as f64 * per,
            goal,
        );
    }
    table.note(details(name, found)?);
    Ok(())
}

/// What a tool read from a secret file is removed as a whole, whatever stands in it: decoys as well.
fn with_files(table: &mut Table, name: &str, corpus: &Corpus, found: &Score) {
    let (all, _, part) = found
        .part(|from| !is_of_people(from))
        .unwrap_or((0, 0, 1.0));
    let touched: usize = found.decoys.values().sum();
    for (what, ours, of, figure) in [
        ("found", part * all as f64, all, part),
        (
            "decoys touched",
            touched as f64,
            corpus.decoys.len(),
            touched as f64,
        ),
        (
            "findings on clean lines",
            found.clean_of(Kind::Secret) as f64,
            0,
            found.clean_of(Kind::Secret) as f64,
        ),
    ] {
        table.row(
            &format!("{name}: and secret files as a whole, {what}"),
            &format!("{ours:.0}"),
            &format!("of {of}"),
            figure,
            Goal::Free,
        );
    }
}

/// Everything else that there are rules for.
fn people(table: &mut Table, found: &Score) {
    for kind in [Kind::Pii, Kind::Path, Kind::Identity] {
        if let Some((all, hits, part)) = found.part(|from| from == From::Rule(kind)) {
            table.row(
                &format!(
                    "{OWN}: an example of every rule for {}, found",
                    kind.as_str()
                ),
                &hits.to_string(),
                &format!("of {all}"),
                part,
                Goal::AtLeast(0.99),
            );
        }
    }
    let missed = found
        .missed
        .iter()
        .filter(|((from, _), _)| is_of_people(*from));
    let missed: Vec<String> = missed
        .map(|((_, rule), settings)| format!("{rule} ({})", settings.join(", ")))
        .collect();
    if !missed.is_empty() {
        table.note(format!(
            "{OWN}, with every rule, missed: {}",
            missed.join(", ")
        ));
    }
}

fn is_of_people(from: From) -> bool {
    matches!(from, From::Rule(kind) if kind != Kind::Secret)
}

/// Rule by rule: what was missed, what was found where nothing is, how often each found something.
fn details(name: &str, found: &Score) -> Result<String> {
    let mut text = format!("{name}:\n");
    for ((from, kind), settings) in &found.missed {
        if is_of_people(*from) {
            continue;
        }
        let from = match from {
            From::HeldOut => " (held out)",
            _ => "",
        };
        writeln!(
            text,
            "  missed {kind}{from}: {} ({})",
            settings.len(),
            settings.join(", ")
        )?;
    }
    writeln!(text, "  of which a piece was left: {}", found.pieces)?;
    for (kind, n) in &found.decoys {
        writeln!(text, "  decoy touched {kind}: {n}")?;
    }
    for ((kind, rule), (n, first)) in &found.clean {
        writeln!(
            text,
            "  on clean lines {} {rule}: {n}, first {first}",
            kind.as_str()
        )?;
    }
    let rules: Vec<String> = found
        .by_rule
        .iter()
        .map(|(rule, n)| format!("{rule} {n}"))
        .collect();
    write!(text, "  findings by rule: {}", rules.join(", "))?;
    Ok(text)
}

/// Where other tools work, and where they are.
fn place_of_peers(options: &Options) -> Result<(PathBuf, PathBuf)> {
    let peers = match &options.peers {
        Some(peers) => std::fs::canonicalize(peers)?,
        None => place(&options.directory, "peers")?,
    };
    Ok((place(&options.directory, "redact/peers")?, peers))
}

fn peers(
    table: &mut Table,
    options: &Options,
    name: &str,
    corpus: &Corpus,
    found: &Score,
) -> Result<()> {
    if options.no_peers {
        return Ok(());
    }
    now(&format!("other tools: {name}"));
    let (work, peers) = place_of_peers(options)?;
    let (all, absent) = beside::measure(corpus, &work, &peers, options.slow_bytes)?;
    let (_, _, ours) = found
        .part(|from| !is_of_people(from))
        .unwrap_or((0, 0, 0.0));
    let mut text = format!("{name}, beside other tools:\n");
    for peer in &all {
        let part = peer.hits as f64 / peer.all.max(1) as f64;
        table.row(
            &format!("{name}: found, beside {} (times)", peer.name),
            &format!("{ours:.3}"),
            &format!("{part:.3}"),
            ours / part.max(1e-9),
            Goal::AtLeast(1.0),
        );
        writeln!(
            text,
            "  {:<16} found {}/{} = {part:.3}, on clean lines {} (with a decoy {}), {:.1} MB/s of processor time, {:.0} MB",
            peer.name,
            peer.hits,
            peer.all,
            peer.clean,
            peer.decoys,
            peer.bytes as f64 / 1e6 / peer.took.cpu,
            peer.bytes as f64 / 1e6,
        )?;
    }
    for name in absent {
        writeln!(
            text,
            "  {name} is not there and could not be installed: not measured"
        )?;
    }
    write!(
        text,
        "  ours             found {ours:.3}, on clean lines {}, {:.0} MB/s",
        found.clean_of(Kind::Secret),
        corpus.bytes as f64 / 1e6 / found.cpu
    )?;
    table.note(text);
    Ok(())
}
