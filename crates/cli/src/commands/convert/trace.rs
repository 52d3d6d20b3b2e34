//! Sessions as traces, for those that are written record by record.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_convert::Format;
use quipu_exchange::Reader;
use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::LIMITS;
use quipu_formats::agentlog::project::{Facts, Made, ProjectionOptions, Projector, Sink};
use quipu_formats::loss::Loss;
use quipu_model::{Attachment, Event, RunId};
use quipu_prices::Prices;
use quipu_store::blobs::{BlobError, Blobs, beside};
use quipu_store::catalogue::TranscriptRow;
use quipu_store::traces::Survey;
use quipu_store::transcript::Transcript;

use super::refused;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::{self, Resolved};
use crate::terminal::{count, say};
use crate::{foreign, when};

/// Writes lines to a file.
pub(super) struct Lines<'w, W> {
    pub(super) out: &'w mut W,
    /// Where blobs are kept; `None` when the lines are only looked at.
    pub(super) blobs: Option<PathBuf>,
}

impl<W: Write> Sink for Lines<'_, W> {
    fn record(&mut self, made: &Made<'_>) -> io::Result<()> {
        self.out.write_all(made.line)
    }

    fn blob(&mut self, _attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        match &self.blobs {
            Some(blobs) => keep_blob(blobs, bytes),
            None => Ok(()),
        }
    }
}

/// Keeps text that is too long for a line where blobs are.
pub(crate) fn keep_blob(directory: &Path, bytes: &[u8]) -> io::Result<()> {
    let kept = Blobs::open(directory).and_then(|blobs| blobs.put(bytes));
    match kept {
        Ok(_) => Ok(()),
        Err(BlobError::File(error)) => Err(io::Error::new(error.source.kind(), error)),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}

/// Copies the blobs that a copied trace refers to, from beside the one to beside the other.
pub(super) fn copy_blobs(from: &Path, to: &Path) -> Result<()> {
    let blobs = beside(from);
    if !blobs.is_dir() {
        return Ok(());
    }
    let about = || io_error(format!("could not read {}", to.display()));
    let limits = Limits {
        max_total_bytes: u64::MAX,
        ..LIMITS
    };
    let survey = Survey::read(File::open(to).map_err(about())?, limits).map_err(about())?;
    let (blobs, copies) = (Blobs::open(&blobs)?, Blobs::open(&beside(to))?);
    for id in survey.blobs.keys().filter(|id| blobs.path(id).exists()) {
        copies.put(&blobs.get(id)?)?;
    }
    Ok(copies.sync()?)
}

/// Writes what is meant as a trace, and what is too large for one to `blobs`.
pub(crate) fn project(
    meant: Resolved,
    blobs: Option<PathBuf>,
    out: &mut impl Write,
) -> Result<Loss> {
    let mut lines = Lines { out, blobs };
    match meant {
        Resolved::Run(path) => {
            let (_, loss, bad) = recorded(&path, &mut lines)?;
            if bad > 0 {
                say(&format!("{} could not be read", count(bad, "line")));
            }
            Ok(loss)
        }
        Resolved::Log(path) => {
            let read = foreign::read(&path);
            let log = read.map_err(io_error(format!("could not read {}", path.display())))?;
            let log = log.ok_or_else(|| locate::no_log(&path))?;
            let problem = log.problem.as_ref().map(ToString::to_string);
            imported(&log.row(&path), &log.events, problem, &mut lines)
        }
        Resolved::Session(found) => {
            let (store, row) = *found;
            // A trace that was imported is that trace.
            if row.dialect.as_deref() == Some(Format::Agentlog.as_str()) {
                let source = store.export(&row, &Arc::new(Prices::builtin()))?;
                source.copy(lines.out).map_err(refused)?;
                return Ok(Loss::default());
            }
            let Transcript {
                mut row,
                session,
                events,
                problem,
            } = store.read(row)?;
            // As the log has it: what the catalogue knows is masked.
            row.title = session.title.or(row.title);
            (row.cwd, row.branch) = (session.cwd, session.branch);
            imported(&row, &events, problem, &mut lines)
        }
    }
}

fn imported(
    row: &TranscriptRow,
    events: &[Event],
    problem: Option<String>,
    sink: &mut dyn Sink,
) -> Result<Loss> {
    let facts = Facts {
        run_id: quipu_agents::run_id(&row.run_id),
        started_at: row.started_at.and_then(when::of_millis),
        agent: Some(row.agent.clone()),
        agent_version: row.agent_version.clone(),
        title: row.title.clone(),
        cwd: row.cwd.clone(),
        branch: row.branch.clone(),
        session_id: Some(row.native.clone().into()),
        path: Some(row.path.to_string_lossy().into_owned()),
        ..Facts::recorded(quipu_agents::run_id(&row.run_id))
    };
    let mut projector = Projector::new(facts, ProjectionOptions::default());
    for event in events {
        projector.event(event, sink)?;
    }
    if let Some(problem) = problem {
        say(&format!("not all of it could be read: {problem}"));
    }
    Ok(projector.finish(sink)?)
}

/// Writes a recorded run: what it is, what the trace cannot carry, and how many lines could not be read.
pub(super) fn recorded(path: &Path, sink: &mut dyn Sink) -> Result<(RunId, Loss, u64)> {
    let about = || io_error(format!("could not read {}", path.display()));
    let mut reader = Reader::new(File::open(path).map_err(about())?);
    let mut projector: Option<(RunId, Projector)> = None;
    let mut bad = 0;
    while let Some(item) = reader.next_decoded().map_err(about())? {
        let Ok(decoded) = item else {
            bad += 1;
            continue;
        };
        let event = &decoded.event;
        let new = || {
            let facts = Facts::recorded(event.run_id.clone());
            let projector = Projector::new(facts, ProjectionOptions::default());
            (event.run_id.clone(), projector)
        };
        projector.get_or_insert_with(new).1.event(event, sink)?;
    }
    let Some((run, projector)) = projector else {
        let error = anyhow::anyhow!("there is no event in {}", path.display());
        return Err(CommandError::new(Exit::Data, error));
    };
    Ok((run, projector.finish(sink)?, bad))
}
