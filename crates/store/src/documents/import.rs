//! What an import did.

use quipu_api::import::{Import, ImportedAgent};

use super::{counts, path};
use crate::import::{Problem, Report as ImportReport};

/// What an import did.
pub fn import(report: &ImportReport) -> Import {
    let agents = report.agents.iter().map(|(name, agent)| {
        let agent = ImportedAgent {
            files: agent.files,
            sessions: agent.sessions,
            records: agent.records,
            mapped: agent.mapped,
            noted: agent.noted,
            events: agent.events,
            notes: agent.notes,
            dropped: counts(agent.dropped.clone()),
            mended: counts(agent.mended.clone()),
            unknown: agent.unknown,
            left_out: agent.left_out,
        };
        (name.clone(), agent)
    });
    Import {
        files: report.files,
        unchanged: report.unchanged,
        read: report.read,
        kept: report.kept,
        unknown: report.unknown,
        empty: report.empty,
        credentials: report.credentials,
        bytes: report.bytes,
        new_bytes: report.new_bytes,
        copies: report.copies,
        index_anew: report.index_anew.clone(),
        kept_again: report.kept_again,
        lost: report.lost,
        agents: agents.collect(),
        problems: report.problems.iter().map(problem).collect(),
        unknown_files: report.unknown_examples.iter().map(|it| path(it)).collect(),
    }
}

/// What is wrong with a log.
pub fn problem(problem: &Problem) -> quipu_api::import::Problem {
    quipu_api::import::Problem {
        path: path(&problem.path),
        what: problem.what.clone(),
        count: problem.count,
    }
}
