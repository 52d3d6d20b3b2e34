//! What is wrong with a run directory, rule by rule.
//!
//! Reading finds it all on the way ([`super::read`] gives it as well); this is for who wants nothing else.

mod receipt;
mod rules;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use quipu_model::json::Node;
use serde::{Serialize, Serializer};

pub(super) use receipt::{
    check as check_receipt, costs as check_costs, line as check_line, time as check_time_of,
};
pub use rules::{Rule, Severity};

use super::FlowError;
use quipu_exchange::lines::Limits;

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    #[serde(serialize_with = "rule_name")]
    pub rule: Rule,
    /// How much it matters.
    #[serde(serialize_with = "severity_word")]
    pub severity: Severity,
    /// The file, relative to the run; empty for the run itself.
    #[serde(rename = "file")]
    pub path: String,
    /// The line, from 1, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How many times in that file. The line and the message are those of the first.
    pub count: u64,
    /// What it is.
    pub message: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn rule_name<S: Serializer>(rule: &Rule, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(rule.name())
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn severity_word<S: Serializer>(severity: &Severity, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(severity)
}

/// What a run directory is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The run, as its files name it.
    pub run_id: String,
    /// Receipts of steps that were read.
    pub receipts: u64,
    /// Transcripts that were read.
    pub transcripts: u64,
    /// Lines of transcripts.
    pub lines: u64,
    /// What breaks a rule, in the order of files.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The most that is wrong.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether nothing is wrong but for what is worth knowing.
    pub fn is_clean(&self) -> bool {
        self.worst().is_none_or(|worst| worst == Severity::Note)
    }
}

/// Checks a run directory.
///
/// # Errors
///
/// When it cannot be read at all, or is no run.
pub fn verify(dir: &Path) -> Result<Report, FlowError> {
    verify_with(dir, &Limits::default())
}

/// Checks a run directory, within limits.
///
/// # Errors
///
/// When it cannot be read at all, or is no run.
pub fn verify_with(dir: &Path, limits: &Limits) -> Result<Report, FlowError> {
    let run = super::read_with(dir, limits, &mut |_| {})?;
    Ok(Report {
        run_id: run.run_id,
        receipts: run.receipts.len() as u64,
        transcripts: run
            .steps
            .iter()
            .filter(|step| step.transcript.is_some())
            .count() as u64,
        lines: run.steps.iter().map(|step| step.lines).sum(),
        findings: run.issues,
    })
}

/// How many findings are kept. Each file has a few at most, and there may be very many files.
const MOST: usize = 100_000;

/// Findings as they are made: one of a rule for each file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: Vec<Finding>,
    known: BTreeMap<(Rule, String), usize>,
}

impl Findings {
    /// Adds one.
    pub(super) fn add(
        &mut self,
        rule: Rule,
        path: &str,
        line: Option<u64>,
        message: impl FnOnce() -> String,
    ) {
        if let Some(at) = self.known.get(&(rule, path.to_owned())) {
            self.found[*at].count += 1;
            return;
        }
        if self.found.len() == MOST {
            return;
        }
        self.known.insert((rule, path.to_owned()), self.found.len());
        self.found.push(Finding {
            rule,
            severity: rule.severity(),
            path: path.to_owned(),
            line,
            count: 1,
            message: message(),
        });
    }

    /// Adds those of another.
    pub(super) fn add_all(&mut self, others: Self) {
        for other in others.found {
            let of = (other.rule, other.path.clone());
            if let Some(at) = self.known.get(&of) {
                self.found[*at].count += other.count;
            } else if self.found.len() < MOST {
                self.known.insert(of, self.found.len());
                self.found.push(other);
            }
        }
    }

    /// All of them, in the order of files.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.found
            .sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
        self.found
    }
}

/// Checks a time of a document.
pub(super) fn check_time(node: Node<'_>, key: &str, path: &str, to: &mut Findings) {
    check_time_of(node, key, path, None, to);
}

/// Checks a time of a line.
pub(super) fn check_time_at(node: Node<'_>, key: &str, path: &str, line: u64, to: &mut Findings) {
    check_time_of(node, key, path, Some(line), to);
}
