//! `quipu export`

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
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
    // What is meant is found before a file is made.
    let meant = place.meant(&args.id)?;
    let loss = if args.keep {
        keep(meant, place)?
    } else if let Some(path) = &args.output {
        let refused = || io_error(format!("could not write {}", path.display()));
        let mut file = BufWriter::new(create(path, args.force)?);
        let loss = project(meant, place, &mut file)?;
        file.flush().map_err(refused())?;
        let file = file
            .into_inner()
            .map_err(|error| refused()(error.into_error()))?;
        file.sync_all().map_err(refused())?;
        loss
    } else {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let loss = project(meant, place, &mut stdout)?;
        stdout.flush()?;
        loss
    };
    tell(&loss);
    if let Some(path) = &args.report {
        let document = serde_json::to_string_pretty(&loss).map_err(io::Error::from)?;
        let mut file = create(path, args.force)?;
        let written = writeln!(file, "{document}");
        written.map_err(io_error(format!("could not write {}", path.display())))?;
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

fn create(path: &Path, force: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.open(path).map_err(|error| {
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let error = io_error(format!("could not make {}", path.display()))(error);
        if exists {
            error.hint("--force writes over it")
        } else {
            error
        }
    })
}

/// Puts the trace among those of the home.
fn keep(meant: Meant, place: &locate::Place) -> Result<Loss> {
    let mut file = tempfile::tempfile()?;
    let mut writer = BufWriter::new(&mut file);
    let loss = project(meant, place, &mut writer)?;
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
    blobs: PathBuf,
}

impl<W: Write> Sink for Lines<'_, W> {
    fn record(&mut self, made: &Made<'_>) -> io::Result<()> {
        self.out.write_all(made.line)
    }

    fn blob(&mut self, _attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        keep_blob(&self.blobs, bytes)
    }
}

/// Keeps text that is too long for a line where blobs are.
pub(crate) fn keep_blob(directory: &Path, bytes: &[u8]) -> io::Result<()> {
    let kept = Blobs::open(directory).and_then(|blobs| blobs.put(bytes));
    kept.map(drop).map_err(io::Error::other)
}

/// Writes what is meant as a trace.
pub(crate) fn project(meant: Meant, place: &locate::Place, out: &mut impl Write) -> Result<Loss> {
    let blobs = place.home()?.join("blobs");
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
