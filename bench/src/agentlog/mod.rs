//! `.agentlog` traces: reading, checking, writing, beside shadow-diff.
//!
//! | module | what it owns |
//! |---|---|
//! | `trace`, `payload` | traces to measure with |
//! | `way` | what is done to a trace, each in a process of its own |
//! | `peer` | shadow-diff, doing the same |
//! | `command` | `quipu verify` as a command: threads and memory |
//!
//! Shadow-diff is there twice: as its core, a library in Rust, which does the same as ours does, and as the
//! Python package, which is what people install. The core is the harder one to beat.

mod command;
mod payload;
mod peer;
mod trace;
mod way;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::setup::place;
use crate::table::{Goal, Table, median, now};
use peer::Peer;
use trace::Profile;
use way::Took;
pub(crate) use way::{Way, measure_here};

/// What is measured, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where to work
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// A trace, in place of those that are made up (can be repeated)
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// How long each trace is that is made up
    #[arg(long, default_value_t = 100_000_000)]
    bytes: u64,
    /// What traces are made up from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The quipu binary
    #[arg(long, default_value = "target/release/quipu")]
    quipu: PathBuf,
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Do not measure the Python package, which takes long
    #[arg(long)]
    no_python: bool,
}

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let directory = place(&options.directory, "agentlog")?;
    let traces = options.traces(&directory)?;
    now("installing what is measured beside ours");
    let peers = peer::all(&place(&options.directory, "peers")?, options.no_python)?;
    for peer in &peers.missing {
        table.note(format!("skipped: {peer} could not be installed"));
    }
    for (name, trace) in &traces {
        now(&format!("measuring {name}"));
        let rounds = Rounds::measure(trace, &peers.found, options.rounds.max(1))?;
        rounds.report(table, name);
    }
    for (name, trace) in &traces {
        now(&format!("running commands on {name}"));
        command::measure(
            table,
            &options.quipu,
            name,
            trace,
            &directory,
            options.rounds.max(1),
        )?;
    }
    Ok(())
}

impl Options {
    /// Each trace with its name.
    fn traces(&self, directory: &Path) -> Result<Vec<(String, PathBuf)>> {
        if self.file.is_empty() {
            let profiles = [("mixed", Profile::Mixed), ("small", Profile::Small)];
            let made = profiles.into_iter().map(|(name, profile)| {
                let trace = trace::get(directory, profile, self.bytes, self.seed)?;
                Ok((name.to_owned(), trace))
            });
            return made.collect();
        }
        let given = self.file.iter().map(|file| {
            let path = std::fs::canonicalize(file).with_context(|| file.display().to_string())?;
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            Ok((name, path))
        });
        given.collect()
    }
}

/// What is measured beside others, and beside what.
const WAYS: [Way; 6] = [
    Way::Verify,
    Way::Check,
    Way::Parse,
    Way::Write,
    Way::Append,
    Way::Canon,
];
/// What canonical forms are held against.
const LIMITS: [Way; 2] = [Way::Hash, Way::Copy];

/// What somebody did in each round, by way.
type ByWay = Vec<(Way, Vec<Took>)>;

/// What everybody did.
struct Rounds {
    bytes: u64,
    ours: ByWay,
    theirs: Vec<(&'static str, ByWay)>,
}

impl Rounds {
    fn measure(trace: &Path, peers: &[Peer], rounds: usize) -> Result<Self> {
        let empty = |ways: &[Way]| {
            ways.iter()
                .map(|way| (*way, Vec::new()))
                .collect::<Vec<_>>()
        };
        let mut all = Self {
            bytes: trace.metadata()?.len(),
            ours: empty(&[&WAYS[..], &LIMITS[..]].concat()),
            theirs: peers.iter().map(|peer| (peer.name, empty(&WAYS))).collect(),
        };
        for _ in 0..rounds {
            for (n, (way, took)) in all.ours.iter_mut().enumerate() {
                let mine = peer::ours(*way, trace)?;
                took.push(mine);
                if LIMITS.contains(way) {
                    continue;
                }
                for (peer, (name, theirs)) in peers.iter().zip(&mut all.theirs) {
                    let took = peer.take(*way, trace)?;
                    // Shadow-diff writes times as they were given, and we to the millisecond.
                    let same = took.made == mine.made || *way == Way::Append;
                    ensure!(
                        same,
                        "{way:?}: {} from ours, {} from {name}",
                        mine.made,
                        took.made
                    );
                    theirs[n].1.push(took);
                }
            }
        }
        Ok(all)
    }

    fn report(&self, table: &mut Table, name: &str) {
        for (peer, theirs) in &self.theirs {
            for ((way, ours), (_, theirs)) in self.ours.iter().zip(theirs) {
                let (what, goal) = match way {
                    Way::Verify => ("parse and check ids", Goal::AtLeast(8.0)),
                    Way::Check => ("check every rule (they: ids)", Goal::AtLeast(8.0)),
                    Way::Parse => ("parse", Goal::Free),
                    Way::Write => ("write records that were read", Goal::AtLeast(1.0)),
                    Way::Append => ("write records without ids", Goal::Free),
                    Way::Canon => ("canonical form", Goal::Free),
                    Way::Hash | Way::Copy => continue,
                };
                table.row(
                    &format!("{name}: {what}, cpu, times faster"),
                    &self.rate(*way, ours),
                    &format!("{peer} {}", self.rate(*way, theirs)),
                    ratio(theirs, ours),
                    goal,
                );
            }
        }
        let of = |wanted: Way| {
            self.ours
                .iter()
                .find(|(way, _)| *way == wanted)
                .map(|it| &it.1[..])
        };
        let (Some(verify), Some(canon)) = (of(Way::Verify), of(Way::Canon)) else {
            return;
        };
        for (way, limit) in [(Way::Hash, "sha256"), (Way::Copy, "memcpy")] {
            let Some(took) = of(way) else { continue };
            let limit = format!("{limit} {}", self.rate(way, took));
            table.row(
                &format!("{name}: canonical form, of the speed of the limit"),
                &self.rate(Way::Canon, canon),
                &limit,
                ratio(took, canon),
                Goal::Free,
            );
            if way == Way::Hash {
                let what = format!("{name}: parse and check ids, of the speed of the limit");
                let rate = self.rate(Way::Verify, verify);
                table.row(&what, &rate, &limit, ratio(took, verify), Goal::Free);
            }
        }
    }

    /// Canonical forms by their own length, everything else by that of the file.
    fn rate(&self, way: Way, took: &[Took]) -> String {
        let bytes = match way {
            Way::Canon | Way::Hash | Way::Copy => took.first().map_or(0, |took| took.made),
            _ => self.bytes,
        };
        let cpu = median(took.iter().map(|took| took.cpu).collect());
        format!("{:.0} MB/s", bytes as f64 / 1e6 / cpu)
    }
}

/// How many times faster the second is than the first: the median over rounds.
fn ratio(slow: &[Took], fast: &[Took]) -> f64 {
    let pairs = slow.iter().zip(fast);
    median(pairs.map(|(slow, fast)| slow.cpu / fast.cpu).collect())
}
