//! Sessions on their way to files.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, IsTerminal as _, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use quipu_convert::output::{Folder, NewFile, there_already};
use quipu_convert::send::{self, Encoding, Sender, Sent};
use quipu_convert::{Account, Format, Reading, Report, Shape, Source, TargetOptions};
use quipu_files::create_directory;
use quipu_formats::html::{Passphrase, Seal};
use quipu_formats::loss::Loss;
use quipu_formats::otlp::Convention;
use quipu_formats::parquet::Tables;
use quipu_formats::projection::{Beside, Nowhere};
use quipu_formats::{claude, codex, sts};
use quipu_model::{Attachment, Header};
use quipu_store::traces::{Checks, Traces};

use super::secrets::{self, Counter};
use super::{refused, trace};
use crate::args::Target;
use crate::commands::keep_first;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::terminal::{bytes, clean, count, out, say};

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
    options: TargetOptions,
    to: To,
    /// Where bytes are kept that traces refer to, when the trace itself is no file.
    home_blobs: PathBuf,
    reports: Vec<Report>,
    /// What a dataset's card says of its files.
    entries: Vec<sts::CardEntry>,
    /// What is said at the end: how to go on with what was written.
    hints: Vec<String>,
    /// What was written here, which is not written over whatever is forced.
    taken: HashSet<PathBuf>,
    report: Option<NewFile>,
    /// Spans that an endpoint did not take.
    rejected: u64,
    /// Sessions of which nothing was written, and why.
    empty: Vec<String>,
}

impl<'a> Work<'a> {
    /// For so many sessions. `traces` is the home that traces are kept in, where that is asked for.
    pub(crate) fn new(
        target: &'a Target,
        place: &HomePlace,
        sessions: Sessions,
        (traces, reading): (Option<PathBuf>, &Reading),
    ) -> Result<Self> {
        check_flags(target)?;
        let options = options(target, reading)?;
        let to = match (traces, &target.output) {
            (Some(home), _) => To::Traces(home),
            (None, Some(path)) if target.to == Format::Parquet => {
                refuse_report_below(target, path)?;
                To::Tables(Box::new(TableFiles::begin(path, target.force, &options)?))
            }
            (None, Some(path)) if path == Path::new("-") => {
                stdout(target.to, sessions)?;
                To::Stdout
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
        let begin = |path: &PathBuf| NewFile::begin(path, target.force).map_err(not_made(path));
        let report = target.report.as_ref().map(begin).transpose()?;
        Ok(Self {
            target,
            options,
            to,
            home_blobs: place.home()?.join("blobs"),
            reports: Vec::new(),
            entries: Vec::new(),
            hints: Vec::new(),
            taken: HashSet::new(),
            report,
            rejected: 0,
            empty: Vec::new(),
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
        let complete = self.rejected == 0 && self.reports.iter().all(Report::is_complete);
        match failed {
            Some(error) => Err(error),
            None if self.rejected > 0 || !self.empty.is_empty() => Ok(Exit::Found),
            None if self.target.strict && !complete => {
                say("not all of it was carried, which --strict does not allow");
                Ok(Exit::Found)
            }
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
                if !report.is_empty() {
                    self.go_on(source, None)?;
                }
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
        if report.is_empty() {
            let (source, to) = (report.source.display(), report.to);
            self.empty.push(match report.loss.events {
                0 => format!("{source}: it holds no event, so nothing was written"),
                n => format!(
                    "{source}: {to} has no place for any of its {}, so nothing was written",
                    count(n, "event")
                ),
            });
        }
        self.reports.push(report);
        Ok(())
    }

    /// Writes a session into a directory, under a name of its own.
    fn below(&mut self, source: &mut dyn Source, directory: &Path) -> Result<Report> {
        let header = source.header().map_err(refused)?;
        let name = self.name_below(&header, directory);
        match self.target.to {
            Format::Flow => self.run_directory(source, directory, &name),
            Format::HuggingFace => self.dataset(source, &header, directory, &name),
            Format::ClaudeCode | Format::Codex => {
                let place = match self.target.to {
                    Format::Codex => codex::place(&header, &self.options.codex),
                    _ => claude::place(&header, &self.options.claude),
                };
                let path = directory.join(place);
                if self.taken.contains(&path) {
                    let id = &header.run_id;
                    let error = format!("another session that is {id} was written already");
                    return Err(CommandError::usage(error).hint("convert it by itself"));
                }
                let report = self.file(source, &path)?;
                if !report.is_empty() {
                    self.go_on(source, Some(&path))?;
                }
                Ok(report)
            }
            _ => self.file(source, &directory.join(name)),
        }
    }

    fn send(&mut self, source: &mut dyn Source, sender: &Sender) -> Result<Report> {
        let mut sent = Sent::default();
        let out = Box::new(send::Lines::new(sender, &mut sent));
        let blobs = BesideTrace::new(Box::new(Nowhere), self.home_blobs.clone());
        let mut report = self.write(source, out, Box::new(blobs))?;
        sent.count(&mut report.loss);
        self.rejected += sent.rejected_spans;
        let message = sent.message.as_deref().map(|said| format!(": {said}"));
        let message = message.unwrap_or_default();
        self.hints.push(match sent.rejected_spans {
            0 => format!("sent in {}{message}", count(sent.batches, "request")),
            n => format!("{} not taken{message}", count(n, "span")),
        });
        Ok(report)
    }

    /// A name that nothing has that was written here: copies and forks share their ids.
    fn name_below(&self, header: &Header, directory: &Path) -> String {
        let (id, ending) = (&header.run_id, self.target.to.ending());
        let mut name = format!("{id}{ending}");
        for n in 2.. {
            if !self.taken.contains(&directory.join(&name)) {
                break;
            }
            name = format!("{id}-{n}{ending}");
        }
        name
    }

    /// How to go on with a session that was written for another agent.
    fn go_on(&mut self, source: &mut dyn Source, written: Option<&Path>) -> Result<()> {
        if !matches!(self.target.to, Format::ClaudeCode | Format::Codex) {
            return Ok(());
        }
        let header = source.header().map_err(refused)?;
        let TargetOptions { claude, codex, .. } = &self.options;
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
        &mut self,
        source: &mut dyn Source,
        directory: &Path,
        name: &str,
    ) -> Result<Report> {
        let path = directory.join(name);
        self.refuse_to_write_over(source, Some(&path))?;
        let is_there = path.symlink_metadata().is_ok();
        if is_there && !self.target.force {
            return Err(self::is_there(&path));
        }
        if is_there && !is_run(&path, &source.header().map_err(refused)?) {
            let error = format!("{} is there, and is not this run", path.display());
            return Err(CommandError::usage(error).hint("name another directory, or move it away"));
        }
        let made = staged(there_already(directory))?;
        let beside = BesideTrace::new(Box::new(Folder::new(made.path())), self.home_blobs.clone());
        let report = self.write(source, Box::new(io::sink()), Box::new(beside))?;
        if report.is_empty() {
            return Ok(report);
        }
        if is_there {
            // The old one goes when the new one is in its place.
            let aside = staged(directory)?;
            let old = aside.path().join("old");
            std::fs::rename(&path, &old).map_err(not_made(&path))?;
            if let Err(error) = std::fs::rename(made.path(), &path) {
                std::fs::rename(&old, &path).map_err(not_made(&path))?;
                return Err(not_made(&path)(error));
            }
        } else {
            create_directory(directory).map_err(not_made(directory))?;
            std::fs::rename(made.path(), &path).map_err(not_made(&path))?;
        }
        drop(made.keep());
        self.taken.insert(path);
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
        let as_is = self.as_is(source);
        let report = self.file(source, &path)?;
        if report.is_empty() {
            return Ok(report);
        }
        self.entries.push(sts::CardEntry {
            file: name.to_owned(),
            agent: header.agent().map(str::to_owned),
            models: header.totals.models.clone(),
            events: header.totals.events,
            usage: header.totals.usage,
            as_is,
            profile: removed(source),
        });
        Ok(report)
    }

    /// Ends what all sessions share.
    fn finish(&mut self) -> Result<()> {
        let to = std::mem::replace(&mut self.to, To::Stdout);
        match to {
            // Without a session, no table is written.
            To::Tables(files) if self.reports.is_empty() => {
                drop(files);
                Ok(())
            }
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

    fn file(&mut self, source: &mut dyn Source, path: &Path) -> Result<Report> {
        self.refuse_to_write_over(source, Some(path))?;
        if self
            .target
            .report
            .as_deref()
            .is_some_and(|report| is_same(report, path))
        {
            let error = format!("--report names {}, which is written to", path.display());
            return Err(CommandError::usage(error));
        }
        let begin = match self.to {
            // Directories are made when there is something to put into them.
            To::Directory(_) => NewFile::begin_below,
            _ => NewFile::begin,
        };
        let file = begin(path, self.target.force).map_err(not_made(path))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let blobs = BesideTrace::new(
            Box::new(Folder::sharing(directory)),
            quipu_store::blobs::beside(path),
        );
        let written = self.write(source, Box::new(file.writer()), Box::new(blobs));
        let report = written.map_err(|error| match error.exit() {
            // What was wrong with the source is no fault of the target.
            Exit::Data => error,
            _ => error.about(&format!("could not write {}", path.display())),
        })?;
        // A file that nothing is in would be taken for a session.
        if !report.is_empty() {
            file.finish().map_err(not_made(path))?;
            self.taken.insert(path.to_owned());
            if report.from == report.to && report.to == Format::Agentlog.as_str() {
                trace::copy_blobs(source.path(), path)?;
            }
        }
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
        if report.is_empty() {
            return Ok(report);
        }
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
        if self.as_is(source) {
            return quipu_convert::copy(source, self.target.to, out).map_err(refused);
        }
        // A recorded run becomes the very trace that would have been written while it was recorded.
        let is_recorded = source.format() == "exchange" && !source.is_redacted();
        if self.target.to == Format::Agentlog && is_recorded {
            return recorded(source, out, beside.blobs);
        }
        let write = |source: &mut dyn Source, out| {
            quipu_convert::write(source, self.target.to, &self.options, out, beside)
                .map_err(refused)
        };
        // What is in a sealed page cannot be seen in what is written.
        if !secrets::is_for_people(self.target.to) || self.options.html.seal.is_some() {
            return write(source, out);
        }
        let (counter, out) = Counter::begin(self.target.to, out)?;
        let mut report = write(source, out)?;
        report.secrets = counter.finish();
        Ok(report)
    }

    /// Whether a log goes to the Hub as it is.
    fn as_is(&self, source: &dyn Source) -> bool {
        self.target.native && sts::is_shown_as_is(source.format()) && !source.is_redacted()
    }

    /// What is converted is never written over by what it is converted to.
    fn refuse_to_write_over(&self, source: &dyn Source, path: Option<&Path>) -> Result<()> {
        let files = [path, self.target.report.as_deref()];
        let own = source.path();
        let is_in = |file: &Path| {
            let (file, own) = (file.canonicalize(), own.canonicalize());
            matches!((file, own), (Ok(file), Ok(own)) if file.starts_with(&own) || own.starts_with(&file))
        };
        let over = |file: &Path| is_same(file, own) || is_in(file);
        if let Some(file) = files.iter().flatten().find(|file| over(file)) {
            let error = format!("{} is what is to be exported", file.display());
            return Err(CommandError::usage(error).hint("name another file"));
        }
        Ok(())
    }

    /// Says what it cost.
    fn tell(&mut self) -> Result<()> {
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
            let reading = &report.reading;
            for (why, n) in reading.lost().chain(reading.mended()) {
                say(&format!("{} {why}", count(n, "record")));
            }
            for (what, names) in [
                ("fields that are not kept", &reading.unkept),
                ("read as something else", &reading.read_as),
            ] {
                let names: Vec<String> = names
                    .iter()
                    .map(|(name, n)| format!("{n} {name}"))
                    .collect();
                if !names.is_empty() {
                    say(&format!("{what}: {}", clean(&names.join("; "))));
                }
            }
        }
        let mut loss = Loss::default();
        for report in &self.reports {
            loss.add(&report.loss);
        }
        let written = self.reports.len() - self.empty.len();
        if self.reports.len() > 1 {
            say(&format!("{} written", count(written as u64, "session")));
        }
        for why in &self.empty {
            say(why);
        }
        if !self.reports.is_empty() {
            for line in loss.to_string().lines() {
                say(line);
            }
        }
        for line in secrets::told(&self.reports) {
            say(&line);
        }
        for hint in &self.hints {
            say(hint);
        }
        let (Some(path), Some(file)) = (&self.target.report, self.report.take()) else {
            return Ok(());
        };
        let all: Vec<_> = self
            .reports
            .iter()
            .map(quipu_store::documents::conversion)
            .collect();
        let document = match &*all {
            [one] => serde_json::to_string_pretty(one),
            many => serde_json::to_string_pretty(many),
        };
        let document = document.map_err(io::Error::from)?;
        writeln!(file.writer(), "{document}").map_err(not_made(path))?;
        file.finish().map_err(not_made(path))
    }
}

/// How much is said of what is odd about a source.
const REMARKS: usize = 5;

fn is_there(path: &Path) -> CommandError {
    let error = anyhow::anyhow!("{} is there already", path.display());
    CommandError::new(Exit::Environment, error).hint("--force writes over it")
}

/// A report is not written where tables go.
fn refuse_report_below(target: &Target, directory: &Path) -> Result<()> {
    let is_below = |report: &PathBuf| {
        let names = ["events.parquet", "calls.parquet"];
        names
            .iter()
            .any(|name| is_same(report, &directory.join(name)))
    };
    if target.report.as_ref().is_some_and(is_below) {
        return Err(CommandError::usage(
            "--report names a file that is written to",
        ));
    }
    Ok(())
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
    if target.cwd.is_some() && !is_handed_over(target.to) {
        let error = "--cwd goes with --to claude-code and --to codex";
        return Err(CommandError::usage(error));
    }
    Ok(())
}

/// Whether another agent goes on with what is written.
fn is_handed_over(format: Format) -> bool {
    matches!(format, Format::ClaudeCode | Format::Codex)
}

fn options(target: &Target, reading: &Reading) -> Result<TargetOptions> {
    let mut options = TargetOptions::default();
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        path.to_str().map(str::to_owned)
    };
    let cwd = target.cwd.as_deref().map(|path| {
        let error = || CommandError::usage(format!("{} is not a text", path.display()));
        absolute(path).ok_or_else(error)
    });
    let cwd = cwd.transpose()?;
    // Where nobody knows, the one who converts it goes on where they are.
    let here = std::env::current_dir().ok().and_then(|it| absolute(&it));
    (options.claude.cwd, options.codex.cwd) = (cwd.clone(), cwd);
    (options.claude.cwd_if_unknown, options.codex.cwd_if_unknown) = (here.clone(), here);
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
        // The directory of an agent, which need not be there yet.
        || is_handed_over(format) && path.extension().is_none() && !path.is_file()
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

/// A directory that is made ready beside the place where it is to be.
fn staged(directory: &Path) -> Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix(".quipu-")
        .permissions(quipu_files::directory_permissions())
        .tempdir_in(directory)
        .map_err(not_made(directory))
}

/// The profile by which something was removed from a session.
fn removed(source: &dyn Source) -> Option<String> {
    let privacy = source.document()?.privacy.as_ref()?;
    let is_removed = privacy.redaction_applied == Some(true);
    privacy.profile.clone().filter(|_| is_removed)
}

/// Whether a directory is the run that is to take its place.
fn is_run(path: &Path, header: &Header) -> bool {
    let read = quipu_formats::flow::read(path, &mut |_| {});
    path.is_dir() && read.is_ok_and(|run| run.header.run_id == header.run_id)
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
        secrets: None,
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
    fn begin(directory: &Path, force: bool, options: &TargetOptions) -> Result<Self> {
        let begin = |name: &str| {
            let path = directory.join(name);
            let file = NewFile::begin_below(&path, force).map_err(not_made(&path))?;
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
        if self.tables.is_open() {
            let error =
                anyhow::anyhow!("a session could not be read to its end, so no table was written");
            return Err(CommandError::new(Exit::Data, error).hint("leave that session out"));
        }
        let about = || io_error("could not write the tables");
        let (mut events, mut calls) = self.tables.close().map_err(about())?;
        events
            .flush()
            .and_then(|()| calls.flush())
            .map_err(about())?;
        self.events.finish().map_err(about())?;
        self.calls.finish().map_err(about())
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
    let options = send::SendOptions {
        encoding: if target.protobuf {
            Encoding::Protobuf
        } else {
            Encoding::Json
        },
        ..send::SendOptions::default()
    };
    Sender::new(endpoint, &headers, options).map_err(|error| CommandError::new(Exit::Usage, error))
}
