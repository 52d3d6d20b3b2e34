//! A run directory as one session.
//!
//! | module | |
//! |---|---|
//! | `walk` | a directory as records, in the order in which the run is told |
//! | `plan` | which files belong to which execution that the journal tells of |
//! | `journal` | `events.jsonl` |
//! | `meta` | `meta.json`, `spec.json`, `run.json` |
//! | `tell` | records as events |
//! | `step` | one execution of a step |
//! | `emit` | what is said, as bodies of events; numbers and times |

mod emit;
mod journal;
mod meta;
mod plan;
mod step;
mod tell;
mod walk;

use std::path::Path;

use quipu_model::{Event, Header, Origin, RunId};
use sha2::Digest as _;

use self::emit::Emit;
pub use self::journal::Counts;
pub(super) use self::journal::{NAME as JOURNAL, kind_of};
pub(super) use self::step::NO_TRANSCRIPT;
pub use self::tell::{Became, Teller, Told};
pub(super) use self::walk::SAID_IN;
pub use self::walk::{Walked, walk};
use super::FlowError;
use super::receipt::Receipt;
use super::record::RunFacts;
use super::shape::Shape;
use super::verify::Finding;
use quipu_exchange::lines::Limits;

/// What reading a run directory found, beside the events.
#[derive(Debug, Clone)]
pub struct Run {
    /// The run, as its files name it.
    pub run_id: String,
    /// What is known of it as a whole.
    pub header: Header,
    /// The executions of steps, in the order in which they were read.
    pub steps: Vec<StepRun>,
    /// Their receipts, in the same order.
    pub receipts: Vec<Receipt>,
    /// How many lines of each kind the run's journal has.
    pub journal: Counts,
    /// What is wrong with the directory.
    pub issues: Vec<Finding>,
}

/// One execution of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRun {
    /// The flow.
    pub flow: String,
    /// The step.
    pub step: String,
    /// The agent.
    pub agent: String,
    /// The engine, as the transcript's name says.
    pub engine: Option<String>,
    /// Which iteration, from 0.
    pub iteration: u64,
    /// Whether step and agent are a guess.
    pub ambiguous: bool,
    /// The transcript, relative to the run.
    pub transcript: Option<String>,
    /// The receipt, relative to the run.
    pub receipt: Option<String>,
    /// The shapes of its lines.
    pub shapes: Vec<Shape>,
    /// How many lines it has.
    pub lines: u64,
    /// Whether nothing was done, only pretended.
    pub stub: bool,
}

/// Reads a run directory. Events are handed to `sink` as they are read.
///
/// # Errors
///
/// When it cannot be read at all, or is no run. What is wrong inside of it is in [`Run::issues`].
pub fn read(dir: &Path, sink: &mut dyn FnMut(Event)) -> Result<Run, FlowError> {
    read_with(dir, &Limits::default(), sink)
}

/// Reads a run directory, within limits.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(
    dir: &Path,
    limits: &Limits,
    sink: &mut dyn FnMut(Event),
) -> Result<Run, FlowError> {
    let mut teller = Teller::default();
    // What the run is called is known with its first record.
    let mut emit = Emit::new(header(&RunFacts::default(), dir), sink);
    let walked = walk(dir, limits, &|_| false, &mut |record| {
        if let super::record::Record::Run(facts) = &record {
            emit.begin(header(facts, dir));
        }
        teller.take(record, &mut |told| emit.take(told));
        Ok(())
    })?;
    teller.finish(&mut |told| emit.take(told));
    let mut findings = walked.findings;
    findings.add_all(std::mem::take(&mut teller.findings));
    Ok(Run {
        run_id: walked.facts.run_id,
        header: emit.finish(),
        steps: teller.take_steps(),
        receipts: walked.receipts,
        journal: walked.journal,
        issues: findings.finish(),
    })
}

/// The run id of the model for an id of the run's files: the same where it can be.
fn run_id_of(id: &str) -> RunId {
    if let Ok(id) = RunId::new(id) {
        return id;
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain: String = id
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .take(80)
        .collect();
    let hash = quipu_model::hex::encode(&sha2::Sha256::digest(id.as_bytes())[..8]);
    let plain = plain.trim_start_matches(['.', '-']);
    RunId::new(&format!(
        "{plain}{}{hash}",
        if plain.is_empty() { "" } else { "-" }
    ))
    .unwrap_or_else(|_| unreachable!("made of permitted characters, at most 97 of them"))
}

/// The header of a run.
fn header(facts: &RunFacts, dir: &Path) -> Header {
    let mut header = Header::new(run_id_of(&facts.run_id));
    header.title.clone_from(&facts.title);
    let agent = facts.agent.clone();
    header.origin = Some(Origin {
        agent: agent.unwrap_or_else(|| super::PROGRAM.to_owned()),
        agent_version: facts.agent_version.clone(),
        adapter: Some("flow".to_owned()),
        session_id: Some(
            facts
                .session_id
                .clone()
                .unwrap_or_else(|| facts.run_id.clone())
                .into(),
        ),
        path: Some(dir.to_string_lossy().into_owned()),
    });
    header.parent_run_id = facts.parent_run_id.as_deref().map(run_id_of);
    header.environment.cwd.clone_from(&facts.cwd);
    header.environment.git_branch.clone_from(&facts.branch);
    header.environment.commit.clone_from(&facts.commit);
    header
}
