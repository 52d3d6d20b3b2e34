//! Sessions on their way to files.

use std::fs::File;
use std::io::{self, IsTerminal as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quipu_convert::output::{Folder, NewFile, make_directory};
use quipu_convert::send::{self, Encoding, Sender, Sent};
use quipu_convert::{Account, Format, Options, Reading, Report, Shape, Source};
use quipu_formats::html::{Passphrase, Seal};
use quipu_formats::loss::Loss;
use quipu_formats::otlp::Convention;
use quipu_formats::parquet::Tables;
use quipu_formats::projection::{Beside, Nowhere};
use quipu_formats::{claude, codex, sts};
use quipu_model::{Attachment, Header};
use quipu_store::traces::{Checks, Traces};

use super::{refused, trace};
use crate::args::Target;
use crate::commands::keep_first;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::Place;
use crate::terminal::{bytes, count, out, say};

/// How many sessions there can be: what they go to is the same whether many turn out to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sessions {
    One,
    Many,
}

impl Sessions {
    pub(crate) fn of(count: usize) -> Self {
        if count > 1 { Self::Many } else { Self::One }
    }
}

/// Where sessions go.
#[derive(Debug)]
enum To {
    Stdout,
    File(PathBuf),
    /// One file or directory a session.
    Directory(PathBuf),
    /// All of them in the same files.
    Tables(Box<TableFiles>),
    /// Among the traces of the home.
    Traces(PathBuf),
    /// An address that takes spans.
    Endpoint(Rc<Sender>),
}

/// Writes sessions, one after the other, and keeps the account.
pub(crate) struct Work<'a> {
    target: &'a Target,
    options: Options,
    to: To,
    /// Where bytes are kept that traces refer to, when the trace itself is no file.
    home_blobs: PathBuf,
    reports: Vec<Report>,
    /// What a dataset's card says of its files.
    entries: Vec<sts::CardEntry>,
    /// What is said at the end: how to go on with what was written.
    hints: Vec<String>,
}

impl<'a> Work<'a> {
    /// For so many sessions. `traces` is the home that traces are kept in, where that is asked for.
    pub(crate) fn new(
        target: &'a Target,
        place: &Place,
        sessions: Sessions,
        (traces, reading): (Option<PathBuf>, &Reading),
    ) -> Result<Self> {
        check_flags(target)?;
        let options = options(target, reading)?;
        let to = match (traces, &target.output) {
            (Some(home), _) => To::Traces(home),
            (None, Some(path)) if target.to == Format::Parquet => {
                To::Tables(Box::new(TableFiles::begin(path, target.force, &options)?))
            }
            (None, Some(path)) => destination(target.to, path, sessions),
            (None, None) if target.endpoint.is_some() => To::Endpoint(Rc::new(sender(target)?)),
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
            options,
            to,
            home_blobs: place.home()?.join("blobs"),
            reports: Vec::new(),
            entries: Vec::new(),
            hints: Vec::new(),
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
            _ => None,
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
        let finished = self.finish();
        if let Err(error) = finished {
            keep_first(&mut failed, error);
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
        let report = match &mut self.to {
            To::Stdout => {
                let blobs = BesideTrace::new(Box::new(Nowhere), self.home_blobs.clone());
                let out = Box::new(io::stdout().lock());
                self.write(source, out, Box::new(blobs))?
            }
            To::File(path) => {
                let path = path.clone();
                let report = self.file(source, &path)?;
                self.go_on(source, None)?;
                report
            }
            To::Directory(directory) => {
                let directory = directory.clone();
                self.below(source, &directory)?
            }
            To::Tables(files) => quipu_convert::add(source, &mut files.tables).map_err(refused)?,
            To::Traces(home) => {
                let home = home.clone();
                self.keep(source, &home)?
            }
            To::Endpoint(sender) => {
                let sender = Rc::clone(sender);
                self.send(source, &sender)?
            }
        };
        self.reports.push(report);
        Ok(())
    }

    /// Writes a session into a directory, under a name of its own.
    fn below(&mut self, source: &mut dyn Source, directory: &Path) -> Result<Report> {
        let header = source.header().map_err(refused)?;
        let made = |path: &Path| {
            make_directory(path).map_err(io_error(format!("could not make {}", path.display())))
        };
        made(directory)?;
        let name = format!("{}{}", header.run_id, self.target.to.ending());
        match self.target.to {
            Format::Flow => self.run_directory(source, directory, &name),
            Format::HuggingFace => self.dataset(source, &header, directory, &name),
            Format::ClaudeCode | Format::Codex => {
                let place = match self.target.to {
                    Format::Codex => codex::place(&header, &self.options.codex),
                    _ => claude::place(&header, &self.options.claude),
                };
                let path = directory.join(place);
                made(path.parent().unwrap_or(directory))?;
                let report = self.file(source, &path)?;
                self.go_on(source, Some(&path))?;
                Ok(report)
            }
            _ => self.file(source, &directory.join(name)),
        }
    }

    fn send(&mut self, source: &mut dyn Source, sender: &Sender) -> Result<Report> {
        let mut sent = Sent::default();
        let out = Box::new(send::Lines::new(sender, &mut sent));
        let blobs = BesideTrace::new(Box::new(Nowhere), self.home_blobs.clone());
        let report = self.write(source, out, Box::new(blobs))?;
        let message = sent.message.as_deref().map(|said| format!(": {said}"));
        let message = message.unwrap_or_default();
        self.hints.push(match sent.rejected_spans {
            0 => format!("{} taken{message}", count(sent.batches, "batch")),
            n => format!("{n} of the spans were rejected{message}"),
        });
        Ok(report)
    }

    /// How to go on with a session that was written for another agent.
    fn go_on(&mut self, source: &mut dyn Source, written: Option<&Path>) -> Result<()> {
        if !matches!(self.target.to, Format::ClaudeCode | Format::Codex) {
            return Ok(());
        }
        let header = source.header().map_err(refused)?;
        let Options { claude, codex, .. } = &self.options;
        let (place, hint) = match self.target.to {
            Format::Codex => (
                Path::new("~/.codex").join(codex::place(&header, codex)),
                codex::resume_hint(&header, codex),
            ),
            _ => (
                Path::new("~/.claude").join(claude::place(&header, claude)),
                claude::resume_hint(&header, claude),
            ),
        };
        let place = written.unwrap_or(&place);
        self.hints.push(match written {
            Some(_) => format!("{}\n  goes on with: {hint}", place.display()),
            None => format!("put it to {}\n  and go on with: {hint}", place.display()),
        });
        Ok(())
    }

    /// A run directory, which is there once it is whole.
    fn run_directory(
        &self,
        source: &mut dyn Source,
        directory: &Path,
        name: &str,
    ) -> Result<Report> {
        let path = directory.join(name);
        let about = format!("could not make {}", path.display());
        if path.symlink_metadata().is_ok() && !self.target.force {
            return Err(is_there(&path));
        }
        let staged = tempfile::Builder::new()
            .prefix(".quipu-")
            .tempdir_in(directory)
            .map_err(io_error(about.clone()))?;
        let beside = BesideTrace::new(
            Box::new(Folder::new(staged.path())),
            self.home_blobs.clone(),
        );
        let report = self.write(source, Box::new(io::sink()), Box::new(beside))?;
        if self.target.force && path.is_dir() {
            std::fs::remove_dir_all(&path).map_err(io_error(about.clone()))?;
        }
        std::fs::rename(staged.keep(), &path).map_err(io_error(about))?;
        Ok(report)
    }

    /// A file of a dataset: as it is where the Hub shows it so, and that is asked for.
    fn dataset(
        &mut self,
        source: &mut dyn Source,
        header: &Header,
        directory: &Path,
        name: &str,
    ) -> Result<Report> {
        let path = directory.join(name);
        let as_is = self.target.native && sts::is_shown_as_is(source.format());
        let report = if as_is {
            self.refuse_to_write_over(source, Some(&path))?;
            let file = NewFile::begin(&path, self.target.force).map_err(not_made(&path))?;
            let mut writer = file.writer();
            source.copy(&mut writer).map_err(refused)?;
            writer.flush().map_err(not_made(&path))?;
            drop(writer);
            file.finish().map_err(not_made(&path))?;
            Report {
                source: source.path().to_owned(),
                from: source.format().to_owned(),
                to: self.target.to.as_str(),
                run_id: header.run_id.to_string(),
                reading: Account::default(),
                loss: Loss {
                    events: header.totals.events,
                    carried: header.totals.events,
                    ..Loss::default()
                },
            }
        } else {
            self.file(source, &path)?
        };
        self.entries.push(sts::CardEntry {
            file: name.to_owned(),
            agent: header.agent().map(str::to_owned),
            models: header.totals.models.clone(),
            events: header.totals.events,
            usage: header.totals.usage,
            as_is,
        });
        Ok(report)
    }

    /// Ends what all sessions share.
    fn finish(&mut self) -> Result<()> {
        let to = std::mem::replace(&mut self.to, To::Stdout);
        match to {
            To::Tables(files) => files.finish(),
            To::Directory(directory) if !self.entries.is_empty() => {
                let path = directory.join("README.md");
                let card = sts::card(&self.entries, &sts::CardOptions::default());
                if path.symlink_metadata().is_ok() && !self.target.force {
                    say(&format!(
                        "{} is there, and was left as it is",
                        path.display()
                    ));
                    return Ok(());
                }
                let file = NewFile::begin(&path, self.target.force).map_err(not_made(&path))?;
                file.writer()
                    .write_all(card.as_bytes())
                    .map_err(not_made(&path))?;
                file.finish().map_err(not_made(&path))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, source: &mut dyn Source, path: &Path) -> Result<Report> {
        self.refuse_to_write_over(source, Some(path))?;
        let file = NewFile::begin(path, self.target.force).map_err(not_made(path))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let blobs = BesideTrace::new(
            Box::new(Folder::sharing(directory)),
            quipu_store::blobs::beside(path),
        );
        let written = self.write(source, Box::new(file.writer()), Box::new(blobs));
        let about = format!("could not write {}", path.display());
        let report = written.map_err(|error| error.about(&about))?;
        file.finish().map_err(not_made(path))?;
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
            for remark in report.reading.remarks.iter().take(REMARKS) {
                say(&format!("{}: {remark}", report.source.display()));
            }
            let more = report.reading.remarks.len().saturating_sub(REMARKS);
            if more > 0 {
                say(&format!("… and {more} more; `quipu verify` tells all"));
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
        for hint in &self.hints {
            say(hint);
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

/// How much is said of what is odd about a source.
const REMARKS: usize = 5;

fn is_there(path: &Path) -> CommandError {
    let error = anyhow::anyhow!("{} is there already", path.display());
    CommandError::new(Exit::Environment, error).hint("--force writes over it")
}

fn not_made(path: &Path) -> impl Fn(io::Error) -> CommandError + '_ {
    |error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => io_error(format!("could not make {}", path.display()))(error),
    }
}

/// Flags that mean nothing with the format are a mistake.
fn check_flags(target: &Target) -> Result<()> {
    for (is_set, flag, format) in [
        (target.content, "--content", Format::Otlp),
        (target.openinference, "--openinference", Format::Otlp),
        (target.endpoint.is_some(), "--endpoint", Format::Otlp),
        (target.protobuf, "--protobuf", Format::Otlp),
        (target.native, "--native", Format::HuggingFace),
    ] {
        if is_set && target.to != format {
            let error = format!("{flag} goes with --to {format}");
            return Err(CommandError::usage(error));
        }
    }
    Ok(())
}

fn options(target: &Target, reading: &Reading) -> Result<Options> {
    let mut options = Options::default();
    options.otlp.content = target.content;
    if target.openinference {
        options.otlp.convention = Convention::OpenInference;
    }
    if let Some(passphrase) = &reading.passphrase
        && target.to == Format::Html
    {
        let (mut salt, mut nonce) = ([0; 16], [0; 12]);
        random(&mut salt)?;
        random(&mut nonce)?;
        options.html.seal = Some(Seal {
            passphrase: Passphrase::new(passphrase),
            salt,
            nonce,
        });
    }
    Ok(options)
}

fn random(bytes: &mut [u8]) -> Result<()> {
    let refused = io_error("there is no randomness to be had");
    getrandom::fill(bytes).map_err(|error| refused(io::Error::other(error)))
}

fn destination(format: Format, path: &Path, sessions: Sessions) -> To {
    let is_directory = format.shape() != Shape::File
        || sessions == Sessions::Many
        || path.is_dir()
        || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if is_directory {
        To::Directory(path.to_owned())
    } else {
        To::File(path.to_owned())
    }
}

/// Whether this can go to standard output.
fn stdout(format: Format, sessions: Sessions) -> Result<()> {
    if sessions == Sessions::Many || format.shape() != Shape::File {
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

/// Two tables that many sessions share.
struct TableFiles {
    events: NewFile,
    calls: NewFile,
    tables: Tables<io::BufWriter<File>, io::BufWriter<File>>,
}

impl std::fmt::Debug for TableFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFiles").finish_non_exhaustive()
    }
}

impl TableFiles {
    fn begin(directory: &Path, force: bool, options: &Options) -> Result<Self> {
        make_directory(directory).map_err(not_made(directory))?;
        let begin = |name: &str| {
            let path = directory.join(name);
            let file = NewFile::begin(&path, force).map_err(not_made(&path))?;
            let writer = file.file().map_err(not_made(&path))?;
            Ok::<_, CommandError>((file, io::BufWriter::with_capacity(1 << 18, writer)))
        };
        let (events, to_events) = begin("events.parquet")?;
        let (calls, to_calls) = begin("calls.parquet")?;
        Ok(Self {
            events,
            calls,
            tables: Tables::new(to_events, to_calls, &options.parquet)?,
        })
    }

    fn finish(self) -> Result<()> {
        let (mut events, mut calls) = self.tables.close()?;
        events.flush()?;
        calls.flush()?;
        self.events.finish()?;
        Ok(self.calls.finish()?)
    }
}

fn sender(target: &Target) -> Result<Sender> {
    let header = |text: &String| {
        let (name, value) = text.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let headers = target
        .headers
        .iter()
        .map(header)
        .collect::<Option<Vec<_>>>();
    let headers = headers.ok_or_else(|| CommandError::usage("a header is NAME=VALUE"))?;
    let endpoint = target.endpoint.as_deref().unwrap_or_default();
    let options = send::Options {
        encoding: if target.protobuf {
            Encoding::Protobuf
        } else {
            Encoding::Json
        },
        ..send::Options::default()
    };
    Sender::new(endpoint, &headers, options).map_err(|error| CommandError::new(Exit::Usage, error))
}
