//! What an import did.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::find::Search;
use super::keep::Done;
use super::plan::Job;
use crate::archive::ArchiveError;

/// What an import did.
#[derive(Debug, Default)]
pub struct Report {
    /// Logs that were looked at.
    pub files: u64,
    /// Logs that have not changed.
    pub unchanged: u64,
    /// Logs that were kept and read, or are to be.
    pub read: u64,
    /// Files that were kept only.
    pub kept: u64,
    /// Files that are no log of any agent that is known.
    pub unknown: u64,
    /// Examples of them.
    pub unknown_examples: Vec<PathBuf>,
    /// Empty files.
    pub empty: u64,
    /// Files that hold credentials, by their name, and were not opened.
    pub credentials: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that the archive did not have.
    pub new_bytes: u64,
    /// Transcripts that turned out to be copies of others, in whole or in part.
    pub copies: u64,
    /// Why the search index was made anew, if it was and had been there before.
    pub index_anew: Option<String>,
    /// By agent.
    pub agents: BTreeMap<String, AgentReport>,
    /// What went wrong: each kind once, with a count.
    pub problems: Vec<Problem>,
}

/// What an import did for one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentReport {
    /// Logs that were read.
    pub files: u64,
    /// Sessions in them.
    pub sessions: u64,
    /// Records in them.
    pub records: u64,
    /// Records that became events.
    pub mapped: u64,
    /// Records that became notes.
    pub noted: u64,
    /// Events.
    pub events: u64,
    /// Notes.
    pub notes: u64,
    /// Records that became nothing, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// What was mended, by what it was.
    pub mended: BTreeMap<&'static str, u64>,
    /// Sightings of what adapters do not know.
    pub unknown: u64,
    /// Sightings of fields that are known and reach no event.
    pub left_out: u64,
}

/// Something that went wrong with one log, or with several in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The log, or the first of them.
    pub path: PathBuf,
    /// What went wrong.
    pub what: String,
    /// With how many.
    pub count: u64,
}

/// How many examples and how many kinds of problems are kept.
const EXAMPLES: usize = 100;

impl Problem {
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            what: what.into(),
            count: 1,
        }
    }

    pub(super) fn refused(path: &Path, error: &io::Error) -> Self {
        Self::new(path, error.to_string())
    }

    pub(super) fn of_archive(error: &ArchiveError) -> Self {
        Self::new(Path::new("archive"), error.to_string())
    }
}

impl Report {
    pub(super) fn of_search(search: &Search) -> Self {
        let mut report = Self {
            files: search.found.len() as u64,
            empty: search.empty,
            credentials: search.credentials,
            ..Self::default()
        };
        for problem in &search.problems {
            report.problem(problem.clone());
        }
        report
    }

    /// Takes in a problem. The same with another log is counted, not repeated.
    pub(super) fn problem(&mut self, problem: Problem) {
        let same = self
            .problems
            .iter()
            .position(|other| other.what == problem.what);
        let full = self.problems.len() >= EXAMPLES;
        match same.or(full.then_some(EXAMPLES - 1)) {
            Some(at) => self.problems[at].count += problem.count,
            None => self.problems.push(problem),
        }
    }

    pub(super) fn dry_run(&mut self, jobs: &[Job]) {
        for job in jobs {
            self.read += 1;
            self.bytes += job.size();
            let agent = job.brand().unwrap_or("unknown").to_owned();
            self.agents.entry(agent).or_default().files += 1;
        }
    }

    pub(super) fn took(&mut self, done: &Done) {
        match done {
            Done::Kept {
                bytes, new_bytes, ..
            } => {
                self.kept += 1;
                self.bytes += bytes;
                self.new_bytes += new_bytes;
            }
            Done::Unknown { path } => {
                self.unknown += 1;
                if self.unknown_examples.len() < EXAMPLES {
                    self.unknown_examples.push(path.clone());
                }
            }
            Done::Failed(_) | Done::Looked(_) | Done::Stopped(_) | Done::Damaged { .. } => {}
            Done::Read(reading) => {
                self.read += 1;
                self.bytes += reading.read_bytes;
                self.new_bytes += reading.new_bytes;
                if let Some(problem) = &reading.problem {
                    self.problem(Problem::new(&reading.path, problem.clone()));
                }
                if reading.dialect.is_none() {
                    return;
                }
                let agent = self.agents.entry(reading.agent.clone()).or_default();
                let (ledger, before) = (&reading.ledger, &reading.before);
                agent.files += 1;
                agent.sessions += u64::from(before.records == 0 && reading.summary.events > 0);
                agent.records += ledger.records - before.records;
                agent.mapped += ledger.mapped - before.mapped;
                agent.noted += ledger.noted - before.noted;
                agent.events += reading.summary.events - before.events;
                agent.notes += reading.summary.notes - before.notes;
                for (why, n) in &ledger.dropped {
                    let new = n - before.dropped.get(why).copied().unwrap_or(0);
                    if new > 0 {
                        *agent.dropped.entry(why.as_str()).or_default() += new;
                    }
                }
                for (what, n) in &ledger.mended {
                    *agent.mended.entry(what.as_str()).or_default() += n;
                }
                agent.unknown += ledger.drift.not_known();
                agent.left_out += ledger.drift.left_out();
            }
        }
    }
}
