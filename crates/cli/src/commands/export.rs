//! `quipu export`

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use quipu_formats::agentlog::project::{Facts, Made, Options, Projector, Sink};
use quipu_formats::exchange::Reader;
use quipu_formats::loss::Loss;
use quipu_model::{Attachment, Event, LogBody, RunId};
use quipu_store::blobs::Blobs;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::traces::{Checks, Traces};

use crate::args::{Export, Format};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::{self, Meant};
use crate::terminal::{bytes, count, out, say};
use crate::{foreign, when};

pub(crate) fn run(args: &Export, place: &locate::Place) -> Result<Exit> {
    let Format::Agentlog = args.to;
    if args.output.is_none() && !args.keep && io::stdout().is_terminal() {
        let error = CommandError::usage("a trace is not for a screen");
        return Err(error.hint("name a file with -o, or pipe it; `quipu log` shows a trace"));
    }
    let meant = place.meant(&args.id)?;
    refuse_to_write_over(&meant, args)?;
    let home = place.home()?.join("blobs");
    let loss = if args.keep {
        keep(meant, place)?
    } else if let Some(path) = &args.output {
        let blobs = quipu_store::blobs::beside(path);
        NewFile::make(path)?.fill(args.force, |file| project(meant, Some(blobs), file))?
    } else {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let loss = project(meant, Some(home), &mut stdout)?;
        stdout.flush()?;
        loss
    };
    tell(&loss);
    if let Some(path) = &args.report {
        let document = serde_json::to_string_pretty(&loss).map_err(io::Error::from)?;
        NewFile::make(path)?.fill(args.force, |file| Ok(writeln!(file, "{document}")?))?;
    }
    if args.strict && !loss.is_complete() {
        return Ok(Exit::Found);
    }
    Ok(Exit::Done)
}

/// Says what the format cost, in a few lines.
fn tell(loss: &Loss) {
    for line in loss.to_string().lines() {
        say(line);
    }
}

/// What is exported is never written over by what it is exported to, nor is one of these by the other.
fn refuse_to_write_over(meant: &Meant, args: &Export) -> Result<()> {
    let source = match meant {
        Meant::Run(path) | Meant::Log(path) => path,
        Meant::Session(found) => &found.1.path,
    };
    let is = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    };
    let files = [args.output.as_deref(), args.report.as_deref()];
    if let Some(file) = files.iter().flatten().find(|file| is(file, source)) {
        let error = format!("{} is what is to be exported", file.display());
        return Err(CommandError::usage(error).hint("name another file"));
    }
    if let [Some(trace), Some(report)] = files
        && is(trace, report)
    {
        return Err(CommandError::usage("-o and --report name the same file"));
    }
    Ok(())
}

/// A file that is there once it is whole, private, and not over another unless that is asked for.
struct NewFile<'p> {
    path: &'p Path,
    file: tempfile::NamedTempFile,
}

impl<'p> NewFile<'p> {
    fn make(path: &'p Path) -> Result<Self> {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")));
        let refused = io_error(format!("could not make {}", path.display()));
        Ok(Self {
            path,
            file: file.map_err(refused)?,
        })
    }

    fn fill<T>(
        self,
        force: bool,
        write: impl FnOnce(&mut BufWriter<&File>) -> Result<T>,
    ) -> Result<T> {
        if !force && self.path.exists() {
            return Err(self.is_there());
        }
        let about = format!("could not write {}", self.path.display());
        let mut writer = BufWriter::new(self.file.as_file());
        let written = write(&mut writer).map_err(|error| error.about(&about))?;
        let flushed = writer.flush();
        drop(writer);
        let synced = flushed.and_then(|()| self.file.as_file().sync_all());
        synced.map_err(io_error(about.clone()))?;
        if force {
            let placed = self.file.persist(self.path).map(drop);
            placed.map_err(|error| io_error(about)(error.error))?;
            return Ok(written);
        }
        let path = self.path;
        match self.file.persist_noclobber(path) {
            Ok(_) => Ok(written),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(Self {
                path,
                file: error.file,
            }
            .is_there()),
            Err(error) => Err(io_error(about)(error.error)),
        }
    }

    fn is_there(&self) -> CommandError {
        let error = anyhow::anyhow!("{} is there already", self.path.display());
        CommandError::new(Exit::Environment, error).hint("--force writes over it")
    }
}

/// Puts the trace among those of the home.
fn keep(meant: Meant, place: &locate::Place) -> Result<Loss> {
    let mut file = tempfile::tempfile()?;
    let mut writer = BufWriter::new(&mut file);
    let loss = project(meant, Some(place.home()?.join("blobs")), &mut writer)?;
    writer.flush()?;
    drop(writer);
    file.rewind()?;
    let refused = |error| CommandError::new(Exit::Environment, anyhow::Error::new(error));
    let traces = Traces::open(&place.home()?).map_err(refused)?;
    let kept = traces.put(file, &Checks::default()).map_err(refused)?;
    let mut out = out();
    writeln!(out, "{}", kept.name)?;
    out.flush()?;
    say(&format!("{} kept", bytes(kept.size)));
    Ok(loss)
}

/// Writes lines to a file.
struct Lines<'w, W> {
    out: &'w mut W,
    /// Where blobs are kept; `None` when the lines are only looked at.
    blobs: Option<PathBuf>,
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
    kept.map(drop).map_err(io::Error::other)
}

/// Writes what is meant as a trace, and what is too large for one to `blobs`.
pub(crate) fn project(meant: Meant, blobs: Option<PathBuf>, out: &mut impl Write) -> Result<Loss> {
    let mut lines = Lines { out, blobs };
    match meant {
        Meant::Run(path) => recorded(&path, &mut lines),
        Meant::Log(path) => {
            let read = foreign::read(&path);
            let log = read.map_err(io_error(format!("could not read {}", path.display())))?;
            let log = log.ok_or_else(|| locate::no_log(&path))?;
            let problem = log.problem.as_ref().map(ToString::to_string);
            imported(&log.row(&path), &log.events, problem, &mut lines)
        }
        Meant::Session(found) => {
            let (store, row) = *found;
            let transcript = store.read(row)?;
            let problem = transcript.problem.map(|problem| problem.to_string());
            imported(&transcript.row, &transcript.events, problem, &mut lines)
        }
    }
}

fn imported(
    row: &TranscriptRow,
    events: &[Event<LogBody>],
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
        session_id: Some(row.native.clone()),
        path: Some(row.path.to_string_lossy().into_owned()),
    };
    let mut projector = Projector::new(facts, Options::default());
    for event in events {
        projector.event(event, sink)?;
    }
    if let Some(problem) = problem {
        say(&format!("not all of it could be read: {problem}"));
    }
    Ok(projector.finish(sink)?)
}

fn recorded(path: &Path, sink: &mut dyn Sink) -> Result<Loss> {
    let about = || io_error(format!("could not read {}", path.display()));
    let mut reader = Reader::new(File::open(path).map_err(about())?);
    let mut projector: Option<Projector> = None;
    let mut bad = 0;
    while let Some(item) = reader.next_decoded().map_err(about())? {
        let Ok(decoded) = item else {
            bad += 1;
            continue;
        };
        let event = &decoded.event;
        let new = |run: &RunId| Projector::new(Facts::recorded(run.clone()), Options::default());
        projector
            .get_or_insert_with(|| new(&event.run_id))
            .any(event, sink)?;
    }
    if bad > 0 {
        say(&format!("{} could not be read", count(bad, "line")));
    }
    let Some(projector) = projector else {
        let error = anyhow::anyhow!("there is no event in {}", path.display());
        return Err(CommandError::new(Exit::Data, error));
    };
    Ok(projector.finish(sink)?)
}
