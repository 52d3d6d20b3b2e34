//! `quipu redact`

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use quipu_api::redact::{Redacted, Rule, SecretFinding};
use quipu_convert::output::NewFile;
use quipu_redact::raw::{self, Finding, RawError, Summary};
use quipu_redact::{Certainty, Engine, Key, Severity};

use crate::args::{Redact, Shape};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::json;
use crate::locate::HomePlace;
use crate::redaction::Removal;
use crate::table::Table;
use crate::terminal::{BOLD, DIM, RED, YELLOW, clean, columns, count, out, say};

/// The profile where none is named: secrets, and what tells who somebody is.
const OTHERWISE: &str = "team";

pub(crate) fn run(args: &Redact, place: &HomePlace) -> Result<Exit> {
    if args.hash {
        return hash();
    }
    let removal = Removal::of(&args.rules, place, OTHERWISE)?;
    if args.list_rules {
        return list_rules(&removal.engine, args.json);
    }
    let mut failed = None;
    let files = if args.files.is_empty() {
        vec![Input::whole(Path::new("-"))]
    } else {
        let mut files = Vec::new();
        for path in &args.files {
            if let Err(error) = Input::all(path, &mut files) {
                super::keep_first(&mut failed, error);
            }
        }
        files
    };
    check_names(args, &files)?;
    let mut work = Work {
        args,
        engine: &removal.engine,
        findings: Vec::new(),
        total: 0,
        by_rule: BTreeMap::new(),
        looked_at: 0,
        binary: 0,
    };
    for file in &files {
        if let Err(error) = work.file(file) {
            if error.is_broken_pipe() {
                return Err(error);
            }
            super::keep_first(&mut failed, error);
        }
    }
    work.tell(failed.is_none())?;
    match failed {
        Some(error) => Err(error),
        None if args.check && work.total > 0 => Ok(Exit::Found),
        None => Ok(Exit::Done),
    }
}

/// What cannot be meant.
fn check_names(args: &Redact, files: &[Input]) -> Result<()> {
    let piped = files.iter().filter(|file| is_stdin(&file.path)).count();
    if piped > 1 {
        return Err(CommandError::usage("standard input can be read only once"));
    }
    if piped > 0 && args.in_place {
        return Err(CommandError::usage("standard input has no place"));
    }
    if piped > 0 && args.output.is_some() {
        return Err(
            CommandError::usage("standard input has no name to write under")
                .hint("redirect standard output instead"),
        );
    }
    if piped > 0 && files.len() > 1 && !args.check {
        return Err(CommandError::usage(
            "name files, or read standard input, not both",
        ));
    }
    Ok(())
}

/// A file to look at.
struct Input {
    path: PathBuf,
    /// What it is called below a directory that is written to.
    below: PathBuf,
}

impl Input {
    fn whole(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            below: path.file_name().map(PathBuf::from).unwrap_or_default(),
        }
    }

    /// A file, or all files in a directory but those that were written here. Links in it are not followed, and what git keeps for itself is left alone.
    fn all(path: &Path, files: &mut Vec<Self>) -> Result<()> {
        if !path.is_dir() {
            files.push(Self::whole(path));
            return Ok(());
        }
        let mut below = vec![path.to_owned()];
        let from = files.len();
        while let Some(directory) = below.pop() {
            let about = || format!("could not read {}", directory.display());
            for entry in std::fs::read_dir(&directory).map_err(io_error(about()))? {
                let entry = entry.map_err(io_error(about()))?;
                let kind = entry.file_type().map_err(io_error(about()))?;
                if kind.is_dir() && entry.file_name() != ".git" {
                    below.push(entry.path());
                } else if kind.is_file() && !is_own(&entry.file_name()) {
                    let file = entry.path();
                    let name = file.strip_prefix(path).unwrap_or(&file).to_owned();
                    files.push(Self {
                        below: name,
                        path: file,
                    });
                }
            }
        }
        files[from..].sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }
}

/// Whether a file is one that was written beside another here.
fn is_own(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let marked = |stem: &[u8]| stem.ends_with(b".redacted");
    let stem = name
        .iter()
        .rposition(|byte| *byte == b'.')
        .map(|at| &name[..at]);
    marked(name) || stem.is_some_and(marked)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

struct Work<'a> {
    args: &'a Redact,
    engine: &'a Engine,
    /// What was found, for the document: bounded, as all that is held.
    findings: Vec<(String, Finding)>,
    total: u64,
    by_rule: BTreeMap<String, (u64, u64)>,
    looked_at: u64,
    binary: u64,
}

/// How much of a file tells whether it is text.
const HEAD: usize = 8 << 10;

/// How many findings are told one by one.
const TOLD: usize = 10_000;

impl Work<'_> {
    fn file(&mut self, file: &Input) -> Result<()> {
        let path = file.path.as_path();
        let name = path.display().to_string();
        let about = || format!("could not read {name}");
        let mut input: Box<dyn Read> = if is_stdin(path) {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(path).map_err(io_error(about()))?;
            let mut file = BufReader::with_capacity(1 << 18, file);
            let head = file.fill_buf().map_err(io_error(about()))?;
            if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
                let error = anyhow::anyhow!("{name} is UTF-16, which is not looked at");
                return Err(CommandError::new(Exit::Data, error).hint("turn it into UTF-8 first"));
            }
            if head[..head.len().min(HEAD)].contains(&0) {
                self.binary += 1;
                if self.args.files.len() == 1 && self.args.files[0] == path {
                    let error = anyhow::anyhow!("{name} is no text");
                    return Err(CommandError::new(Exit::Data, error));
                }
                return Ok(());
            }
            Box::new(file)
        };
        self.looked_at += 1;
        if self.args.check {
            let (engine, options) = (self.engine, self.options(path));
            let checked = raw::check(engine, &options, &mut input, &mut |finding| {
                self.take(&name, finding);
            });
            checked.map_err(|error| refused(error, &name))?;
            return Ok(());
        }
        if is_stdin(path) {
            let mut out = io::stdout().lock();
            self.redact(path, &mut input, &mut out)?;
            return Ok(out.flush()?);
        }
        let is_file = path.metadata().is_ok_and(|it| it.is_file());
        if !is_file && self.args.output.is_none() {
            let error = CommandError::usage(format!(
                "{name} is no file that another can be written beside"
            ));
            return Err(error.hint("give it to standard input, or name a directory with -o"));
        }
        let target = self.target(file)?;
        let not_made = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let error = anyhow::anyhow!("{} is there already", target.display());
                CommandError::new(Exit::Environment, error).hint("--force writes over it")
            }
            _ => io_error(format!("could not make {}", target.display()))(error),
        };
        let force = self.args.force || self.args.in_place;
        let new = NewFile::begin(&target, force).map_err(not_made)?;
        let summary = {
            let mut out = new.writer();
            let summary = self.redact(path, &mut input, &mut out)?;
            out.flush().map_err(not_made)?;
            summary
        };
        if self.args.in_place && summary.redacted == 0 {
            // Nothing to put in its place.
            return Ok(());
        }
        if self.args.in_place {
            as_it_was(&new, path).map_err(not_made)?;
        }
        new.finish().map_err(not_made)?;
        if !self.args.in_place {
            say(&format!("{} written", clean(&target.display().to_string())));
        }
        Ok(())
    }

    fn redact(
        &mut self,
        path: &Path,
        input: &mut dyn Read,
        out: &mut dyn Write,
    ) -> Result<Summary> {
        let (engine, options) = (self.engine, self.options(path));
        let name = path.display().to_string();
        raw::redact(engine, &options, input, out, &mut |finding| {
            self.take(&name, finding);
        })
        .map_err(|error| refused(error, &name))
    }

    fn options(&self, path: &Path) -> raw::RawOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        raw::RawOptions {
            shape: self.args.shape.map(|shape| match shape {
                Shape::Jsonl => raw::Shape::Jsonl,
                Shape::Json => raw::Shape::Json,
                Shape::Text => raw::Shape::Text,
            }),
            file: (!is_stdin(path)).then(|| path.display().to_string()),
            near: self.args.near,
            threads: self.args.threads.map_or(processors.min(8), usize::from),
            // Numbers follow the order of what is found; the key only keeps values out of memory.
            ..raw::RawOptions::new(Key::random().unwrap_or(Key::from_bytes([0; 32])))
        }
    }

    fn take(&mut self, name: &str, finding: Finding) {
        let id = finding.what.id(self.engine).to_owned();
        let entry = self.by_rule.entry(id).or_default();
        match finding.certainty {
            Certainty::Sure => {
                self.total += 1;
                entry.0 += 1;
            }
            Certainty::Near(_) => entry.1 += 1,
        }
        if self.findings.len() < TOLD {
            self.findings.push((name.to_owned(), finding));
        }
    }

    /// `NAME.redacted.ext` beside it, or the same name elsewhere.
    fn target(&self, file: &Input) -> Result<PathBuf> {
        let path = file.path.as_path();
        if self.args.in_place {
            // A link stays one: what it leads to is replaced.
            return path
                .canonicalize()
                .map_err(io_error(format!("could not read {}", path.display())));
        }
        if let Some(directory) = &self.args.output {
            let target = directory.join(&file.below);
            let within = target.parent().unwrap_or(directory);
            let about = format!("could not make {}", within.display());
            quipu_files::create_directory(within).map_err(io_error(about))?;
            if target.canonicalize().ok() == path.canonicalize().ok() {
                let error = format!("{} would be written over itself", path.display());
                return Err(CommandError::usage(error).hint("--in-place does that"));
            }
            return Ok(target);
        }
        let mut new = path.file_stem().unwrap_or_default().to_owned();
        new.push(".redacted");
        if let Some(ending) = path.extension() {
            new.push(".");
            new.push(ending);
        }
        Ok(path.with_file_name(new))
    }

    /// Says what was found. That nothing was is only said when all of it was looked at.
    fn tell(&self, all: bool) -> Result<()> {
        if self.binary > 0 {
            say(&format!(
                "{} left alone: no text",
                count(self.binary, "file")
            ));
        }
        if self.args.json {
            let document = json::document(&self.document())?;
            if self.args.check {
                let mut out = out();
                writeln!(out, "{document}")?;
                return Ok(out.flush()?);
            }
            say(&document);
            return Ok(());
        }
        if self.args.check {
            return self.list(all);
        }
        if self.total > 0 {
            let rules: Vec<String> = self.counted(|counts| counts.0);
            say(&format!(
                "{} removed: {}",
                count(self.total, "value"),
                rules.join(", ")
            ));
        } else if all {
            say("nothing was found");
        }
        Ok(())
    }

    fn counted(&self, which: impl Fn(&(u64, u64)) -> u64) -> Vec<String> {
        let mut counted: Vec<(u64, &str)> = self
            .by_rule
            .iter()
            .map(|(rule, counts)| (which(counts), rule.as_str()))
            .filter(|(n, _)| *n > 0)
            .collect();
        counted.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let each = counted.iter().map(|(n, id)| format!("{id} {n}"));
        each.collect()
    }

    fn list(&self, all: bool) -> Result<()> {
        let mut out = out();
        for (name, finding) in &self.findings {
            let (id, severity) = (
                finding.what.id(self.engine),
                finding.what.severity(self.engine),
            );
            let (style, nearly) = match (finding.certainty, severity) {
                (Certainty::Near(why), _) => (DIM, format!(" (nearly: {})", why.as_str())),
                (Certainty::Sure, Severity::High) => (RED, String::new()),
                (Certainty::Sure, _) => (YELLOW, String::new()),
            };
            let field = match &*finding.field {
                "" => String::new(),
                field => format!(" {DIM}{}{DIM:#}", clean(field)),
            };
            writeln!(
                out,
                "{BOLD}{}:{}{BOLD:#} {style}{}{style:#}{nearly} {}{field}",
                clean(name),
                finding.line,
                id,
                clean(&finding.placeholder),
            )?;
        }
        out.flush()?;
        drop(out);
        let more = self.total.saturating_sub(self.findings.len() as u64);
        if more > 0 {
            say(&format!("… and {}", count(more, "more")));
        }
        let files = count(self.looked_at, "file");
        if self.total == 0 && all {
            say(&format!("nothing was found in {files}"));
        } else if self.total > 0 {
            let rules = self.counted(|counts| counts.0).join(", ");
            say(&format!(
                "{} in {files}: {rules}",
                count(self.total, "finding")
            ));
        }
        Ok(())
    }

    fn document(&self) -> Redacted {
        let findings = self.findings.iter().map(|(name, finding)| SecretFinding {
            file: name.clone(),
            line: finding.line,
            column: finding.column,
            offset: finding.offset,
            length: finding.length as u64,
            field: finding.field.clone(),
            rule: finding.what.id(self.engine).to_owned(),
            r#type: finding.what.kind(self.engine).as_str().to_owned(),
            severity: finding.what.severity(self.engine).as_str().to_owned(),
            placeholder: finding.placeholder.clone(),
            hash: finding.hash.clone(),
            nearly: match finding.certainty {
                Certainty::Sure => None,
                Certainty::Near(why) => Some(why.as_str().to_owned()),
            },
        });
        let found = self.by_rule.iter().filter(|(_, counts)| counts.0 > 0);
        Redacted {
            files: self.looked_at,
            binary: self.binary,
            total: self.total,
            told: self.findings.len() as u64,
            rules: json::counts(found.map(|(rule, counts)| (rule, counts.0))),
            rules_digest: self.engine.rules().digest(),
            findings: findings.collect(),
        }
    }
}

/// A file that takes the place of another may be read, written and run by whoever could before.
fn as_it_was(new: &NewFile, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let (file, was) = (new.file()?, path.metadata()?);
    let is = file.metadata()?;
    if (is.uid(), is.gid()) != (was.uid(), was.gid()) {
        // Only some may give files away; then it is at least not opened to anyone else.
        if fchown(&file, Some(was.uid()), Some(was.gid())).is_err() {
            return Ok(());
        }
    }
    file.set_permissions(was.permissions())
}

fn refused(error: RawError, name: &str) -> CommandError {
    match error {
        // Who reads from us may go away; that is found by its kind.
        RawError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => error.into(),
        RawError::Io(error) => io_error(format!("could not redact {name}"))(error),
    }
}

/// The hash by which a rule file allows a value.
fn hash() -> Result<Exit> {
    const LONGEST: u64 = 1 << 20;
    let mut value = String::new();
    io::stdin()
        .lock()
        .take(LONGEST)
        .read_to_string(&mut value)
        .map_err(io_error("could not read standard input"))?;
    let value = value.strip_suffix('\n').unwrap_or(&value);
    let mut out = out();
    writeln!(out, "sha256:{}", Engine::hash(value))?;
    out.flush()?;
    Ok(Exit::Done)
}

fn list_rules(engine: &Engine, as_json: bool) -> Result<Exit> {
    let mut out = out();
    let rules = &engine.rules().rules;
    if as_json {
        let each = rules.iter().map(|rule| Rule {
            id: rule.id.clone(),
            description: rule.description.clone(),
            group: rule.group.clone(),
            r#type: rule.kind.as_str().to_owned(),
            severity: rule.severity.as_str().to_owned(),
            placeholder: format!("[REDACTED:{}]", rule.label),
        });
        let document = quipu_api::redact::Rules {
            digest: engine.rules().digest(),
            rules: each.collect(),
        };
        writeln!(out, "{}", json::document(&document)?)?;
    } else {
        let mut table = Table::new(&["RULE", "GROUP", "SEVERITY", "FINDS"]);
        for rule in rules {
            table.row([
                rule.id.clone(),
                rule.group.clone(),
                rule.severity.as_str().to_owned(),
                rule.description.clone(),
            ]);
        }
        table.write(&mut out, columns(), Some(3))?;
    }
    out.flush()?;
    drop(out);
    let digest = engine.rules().digest();
    let short = digest.get(..16).unwrap_or(&digest);
    say(&format!(
        "{}, version {short}",
        count(rules.len() as u64, "rule")
    ));
    Ok(Exit::Done)
}
