//! Sessions on their way to files.

use std::io::{self, IsTerminal as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use quipu_convert::output::{Folder, NewFile, make_directory};
use quipu_convert::{Account, Format, Options, Report, Shape, Source};
use quipu_formats::loss::Loss;
use quipu_formats::projection::{Beside, Nowhere};
use quipu_model::Attachment;
use quipu_store::traces::{Checks, Traces};

use super::{refused, trace};
use crate::args::Target;
use crate::commands::keep_first;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::Place;
use crate::terminal::{bytes, count, out, say};

/// Where sessions go.
#[derive(Debug)]
enum To {
    Stdout,
    File(PathBuf),
    /// One file or directory a session.
    Directory(PathBuf),
    /// Among the traces of the home.
    Traces(PathBuf),
}

/// Writes sessions, one after the other, and keeps the account.
pub(crate) struct Work<'a> {
    target: &'a Target,
    options: Options,
    to: To,
    /// Where bytes are kept that traces refer to, when the trace itself is no file.
    home_blobs: PathBuf,
    reports: Vec<Report>,
}

impl<'a> Work<'a> {
    /// For so many sessions. `traces` is the home that traces are kept in, where that is asked for.
    pub(crate) fn new(
        target: &'a Target,
        place: &Place,
        sessions: usize,
        traces: Option<PathBuf>,
    ) -> Result<Self> {
        let to = match (traces, &target.output) {
            (Some(home), _) => To::Traces(home),
            (None, Some(path)) => destination(target.to, path, sessions),
            (None, None) => {
                stdout(target.to, sessions)?;
                To::Stdout
            }
        };
        if let (To::File(file), Some(report)) = (&to, &target.report)
            && is_same(file, report)
        {
            return Err(CommandError::usage("-o and --report name the same file"));
        }
        Ok(Self {
            target,
            options: Options::default(),
            to,
            home_blobs: place.home()?.join("blobs"),
            reports: Vec::new(),
        })
    }

    /// Writes all of them. One that cannot be does not keep the others from it.
    pub(crate) fn all(
        mut self,
        sources: Vec<Box<dyn Source>>,
        mut failed: Option<CommandError>,
    ) -> Result<Exit> {
        // Before anything is written: what is written first may be what is read next.
        let own = match &self.to {
            To::File(path) => Some(path.as_path()),
            To::Stdout | To::Directory(_) | To::Traces(_) => None,
        };
        for source in &sources {
            self.refuse_to_write_over(&**source, own)?;
        }
        for mut source in sources {
            if let Err(error) = self.one(&mut *source) {
                if error.is_broken_pipe() {
                    return Err(error);
                }
                keep_first(&mut failed, error);
            }
        }
        self.tell()?;
        let complete = self.reports.iter().all(Report::is_complete);
        match failed {
            Some(error) => Err(error),
            None if self.target.strict && !complete => Ok(Exit::Found),
            None => Ok(Exit::Done),
        }
    }

    fn one(&mut self, source: &mut dyn Source) -> Result<()> {
        let report = match &self.to {
            To::Stdout => {
                let blobs = BesideTrace::new(Box::new(Nowhere), self.home_blobs.clone());
                let out = Box::new(io::stdout().lock());
                self.write(source, out, Box::new(blobs))?
            }
            To::File(path) => self.file(source, path)?,
            To::Directory(directory) => {
                let name = source.header().map_err(refused)?.run_id;
                let path = directory.join(format!("{name}{}", self.target.to.ending()));
                make_directory(directory)
                    .map_err(io_error(format!("could not make {}", directory.display())))?;
                self.file(source, &path)?
            }
            To::Traces(home) => self.keep(source, home)?,
        };
        self.reports.push(report);
        Ok(())
    }

    fn file(&self, source: &mut dyn Source, path: &Path) -> Result<Report> {
        self.refuse_to_write_over(source, Some(path))?;
        let refuse = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let error = anyhow::anyhow!("{} is there already", path.display());
                CommandError::new(Exit::Environment, error).hint("--force writes over it")
            }
            _ => io_error(format!("could not make {}", path.display()))(error),
        };
        let file = NewFile::begin(path, self.target.force).map_err(refuse)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let blobs = BesideTrace::new(
            Box::new(Folder::sharing(directory)),
            quipu_store::blobs::beside(path),
        );
        let written = self.write(source, Box::new(file.writer()), Box::new(blobs));
        let about = format!("could not write {}", path.display());
        let report = written.map_err(|error| error.about(&about))?;
        file.finish().map_err(refuse)?;
        Ok(report)
    }

    /// Puts a trace among those of the home.
    fn keep(&self, source: &mut dyn Source, home: &Path) -> Result<Report> {
        let mut file = tempfile::tempfile()?;
        let blobs = BesideTrace::new(Box::new(Nowhere), self.home_blobs.clone());
        let report = self.write(
            source,
            Box::new(io::BufWriter::new(&mut file)),
            Box::new(blobs),
        )?;
        file.rewind()?;
        let refused = |error| CommandError::new(Exit::Environment, anyhow::Error::new(error));
        let traces = Traces::open(home).map_err(refused)?;
        let kept = traces.put(file, &Checks::default()).map_err(refused)?;
        let mut out = out();
        writeln!(out, "{}", kept.name)?;
        out.flush()?;
        say(&format!("{} kept", bytes(kept.size)));
        Ok(report)
    }

    fn write<'w>(
        &self,
        source: &mut dyn Source,
        out: Box<dyn Write + 'w>,
        beside: Box<BesideTrace<'w>>,
    ) -> Result<Report> {
        // A recorded run becomes the very trace that would have been written while it was recorded.
        if self.target.to == Format::Agentlog && source.format() == "exchange" {
            return recorded(source, out, beside.blobs);
        }
        quipu_convert::write(source, self.target.to, &self.options, out, beside).map_err(refused)
    }

    /// What is converted is never written over by what it is converted to.
    fn refuse_to_write_over(&self, source: &dyn Source, path: Option<&Path>) -> Result<()> {
        let files = [path, self.target.report.as_deref()];
        let own = source.path();
        if let Some(file) = files.iter().flatten().find(|file| is_same(file, own)) {
            let error = format!("{} is what is to be exported", file.display());
            return Err(CommandError::usage(error).hint("name another file"));
        }
        Ok(())
    }

    /// Says what it cost.
    fn tell(&self) -> Result<()> {
        for report in &self.reports {
            for problem in &report.reading.problems {
                say(&format!("not all of it could be read: {problem}"));
            }
            if let Some(n) = report.reading.dropped.get("unreadable") {
                say(&format!("{} could not be read", count(*n, "line")));
            }
        }
        let mut loss = Loss::default();
        for report in &self.reports {
            loss.add(&report.loss);
        }
        if self.reports.len() > 1 {
            say(&format!(
                "{} written",
                count(self.reports.len() as u64, "session")
            ));
        }
        if !self.reports.is_empty() {
            for line in loss.to_string().lines() {
                say(line);
            }
        }
        let Some(path) = &self.target.report else {
            return Ok(());
        };
        let document = match &*self.reports {
            [one] => serde_json::to_string_pretty(one),
            many => serde_json::to_string_pretty(many),
        };
        let document = document.map_err(io::Error::from)?;
        let about = format!("could not write {}", path.display());
        let file = NewFile::begin(path, self.target.force);
        let file = file.map_err(io_error(about.clone()))?;
        writeln!(file.writer(), "{document}").map_err(io_error(about.clone()))?;
        file.finish().map_err(io_error(about))
    }
}

fn destination(format: Format, path: &Path, sessions: usize) -> To {
    let is_directory = format.shape() != Shape::File
        || sessions > 1
        || path.is_dir()
        || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if is_directory {
        To::Directory(path.to_owned())
    } else {
        To::File(path.to_owned())
    }
}

/// Whether this can go to standard output.
fn stdout(format: Format, sessions: usize) -> Result<()> {
    if sessions > 1 || format.shape() != Shape::File {
        let error = CommandError::usage("several files do not go to standard output");
        return Err(error.hint("name a directory with -o"));
    }
    let for_people = matches!(format, Format::Text | Format::Markdown);
    if io::stdout().is_terminal() && !for_people {
        let error = CommandError::usage(format!("{format} is not for a screen"));
        return Err(error.hint("name a file with -o, or pipe it; `quipu show` shows a session"));
    }
    Ok(())
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    }
}

fn recorded(
    source: &mut dyn Source,
    mut out: Box<dyn Write + '_>,
    blobs: PathBuf,
) -> Result<Report> {
    let mut lines = trace::Lines {
        out: &mut out,
        blobs: Some(blobs),
    };
    let (run, loss, bad) = trace::recorded(source.path(), &mut lines)?;
    out.flush()?;
    let mut reading = Account::default();
    if bad > 0 {
        reading.dropped.insert("unreadable".to_owned(), bad);
    }
    Ok(Report {
        source: source.path().to_owned(),
        from: source.format().to_owned(),
        to: Format::Agentlog.as_str(),
        run_id: run.to_string(),
        reading,
        loss,
    })
}

/// Files beside what is written, and blobs where traces look for them.
struct BesideTrace<'w> {
    files: Box<dyn Beside + 'w>,
    blobs: PathBuf,
}

impl<'w> BesideTrace<'w> {
    fn new(files: Box<dyn Beside + 'w>, blobs: PathBuf) -> Self {
        Self { files, blobs }
    }
}

impl Beside for BesideTrace<'_> {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.files.put(name, bytes)
    }

    fn blob(&mut self, _attachment: &Attachment, bytes: &[u8]) -> io::Result<bool> {
        trace::keep_blob(&self.blobs, bytes).map(|()| true)
    }
}
