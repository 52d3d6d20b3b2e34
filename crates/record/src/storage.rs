//! The directory that transcripts live in.
//!
//! ```text
//! <root>/transcripts/<run-id>.jsonl        0600, in a directory that is 0700
//! <root>/transcripts/<run-id>.jsonl.torn   what was cut off from it, if anything ever was
//! <root>/transcripts/<run-id>.jsonl.idx    where its events begin, once it is long; can be deleted
//! ```
//!
//! One file per run; runs find each other by name. Other engines put a label before the run id
//! (`nightly__<run-id>.jsonl`); such files are found as well.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use quipu_exchange::lines::Limits;
use quipu_exchange::verify::{Finding, Report, Rule, verify};
use quipu_exchange::{Fault, Position, Reader, Warning};
use quipu_model::RunId;
use quipu_model::tree::{Forest, RunTree, TreeBuilder};

use crate::{Error, Recorder, RecorderOptions};

const EXTENSION: &str = ".jsonl";

/// A directory of transcripts.
#[derive(Debug, Clone)]
pub struct Storage {
    directory: PathBuf,
    /// Read once, when first needed.
    listing: OnceLock<HashMap<String, Vec<PathBuf>>>,
}

/// Why a run was not found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// There is none.
    #[error("no run {0:?} in {dir}", dir = .1.display())]
    None(String, PathBuf),
    /// There are several.
    #[error("{0:?} is the beginning of several runs: {names}", names = .1.join(", "))]
    Several(String, Vec<String>),
}

/// Something odd that was met while reading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub at: Position,
    /// What it is.
    pub what: RemarkKind,
}

/// What is odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemarkKind {
    /// A line that is no event.
    Bad(Fault),
    /// An event that is not quite right.
    Odd(Warning),
}

impl Storage {
    /// The storage below `root`: its transcripts are in `<root>/transcripts`.
    pub fn at(root: &Path) -> Self {
        Self::directory(root.join("transcripts"))
    }

    /// The storage whose transcripts are in this directory.
    pub fn directory(directory: PathBuf) -> Self {
        Self {
            directory,
            listing: OnceLock::new(),
        }
    }

    /// The storage that a transcript lies in.
    pub fn around(path: &Path) -> Self {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        Self::directory(parent.unwrap_or(Path::new(".")).to_owned())
    }

    /// Where the file of a run is, or would be.
    pub fn path_of(&self, run_id: &RunId) -> PathBuf {
        self.directory.join(format!("{run_id}{EXTENSION}"))
    }

    /// Opens a run for recording.
    ///
    /// # Errors
    ///
    /// As [`crate::Journal::open`].
    pub fn record(&self, run_id: &RunId, options: RecorderOptions) -> Result<Recorder, Error> {
        Recorder::open(&self.path_of(run_id), run_id, options)
    }

    /// Finds the file of a run.
    pub fn find(&self, run_id: &RunId) -> Option<PathBuf> {
        let exact = self.path_of(run_id);
        if exact.is_file() {
            return Some(exact);
        }
        match self.listing().get(run_id.as_str())?.as_slice() {
            [path] => Some(path.clone()),
            _ => None,
        }
    }

    /// Finds a run by the beginning of its id.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn find_by_prefix(&self, prefix: &str) -> Result<PathBuf, NotFound> {
        let listing = self.listing();
        let several = |paths: Vec<&PathBuf>| {
            let names = paths.iter().take(5).map(|path| name_of(path)).collect();
            NotFound::Several(prefix.to_owned(), names)
        };
        let mut matching: Vec<&PathBuf> = if let Some(paths) = listing.get(prefix) {
            paths.iter().collect()
        } else {
            let starting = listing.iter().filter(|(id, _)| id.starts_with(prefix));
            starting.flat_map(|(_, paths)| paths).collect()
        };
        matching.sort();
        matching.dedup();
        match matching[..] {
            [] => Err(NotFound::None(prefix.to_owned(), self.directory.clone())),
            [path] => Ok(path.clone()),
            _ => Err(several(matching)),
        }
    }

    /// The transcripts that are there, by their run id and, where there is a label, by their whole name.
    fn listing(&self) -> &HashMap<String, Vec<PathBuf>> {
        self.listing.get_or_init(|| {
            let mut found: HashMap<String, Vec<PathBuf>> = HashMap::new();
            for entry in std::fs::read_dir(&self.directory)
                .into_iter()
                .flatten()
                .flatten()
            {
                let path = entry.path();
                // Opening anything else might wait for ever.
                if path.extension().is_none_or(|it| it != "jsonl") || !path.is_file() {
                    continue;
                }
                let stem = name_of(&path);
                let id = unlabelled(&stem).to_owned();
                if id != stem {
                    found.entry(stem).or_default().push(path.clone());
                }
                found.entry(id).or_default().push(path);
            }
            found
        })
    }

    /// Checks a transcript: what it shows by itself, its links to the runs beside it, and who can
    /// read it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn verify(&self, path: &Path, limits: Limits) -> io::Result<Report> {
        let mut report = verify(&mut Reader::with_limits(File::open(path)?, limits))?;
        check_permissions(path, &mut report)?;
        check_name(path, &mut report);
        self.check_children(&mut report);
        self.check_parent(&mut report);
        Ok(report)
    }

    fn check_children(&self, report: &mut Report) {
        let Some(run_id) = report.run_id.clone() else {
            return;
        };
        for call in report.children.clone() {
            let child = &call.run_id;
            let (rule, message) = match self.find(child).map(|path| first_identity(&path)) {
                None if call.completed => (Rule::ChildMissing, format!("run {child} is not there")),
                None => (Rule::ChildPending, format!("run {child} is not there yet")),
                Some(Some((_, parent))) if parent.as_ref() != Some(&run_id) => {
                    let named = parent.map_or("no parent".to_owned(), |p| format!("parent {p}"));
                    (
                        Rule::LinkBroken,
                        format!("run {child} names {named}, not {run_id}"),
                    )
                }
                Some(_) => continue,
            };
            report.add(Finding {
                rule,
                at: None,
                seq: Some(call.seq),
                message,
            });
        }
    }

    fn check_parent(&self, report: &mut Report) {
        let (Some(run_id), Some(parent)) = (report.run_id.clone(), report.parent_run_id.clone())
        else {
            return;
        };
        let message = match self.find(&parent) {
            None => format!("parent run {parent} is not beside it"),
            Some(path) if names_child(&path, &run_id) => return,
            Some(_) => format!("parent run {parent} does not name it"),
        };
        report.add(Finding {
            rule: Rule::ParentAbsent,
            at: None,
            seq: None,
            message,
        });
    }

    /// The tree of a transcript and of all the runs it called. What is odd about the files goes to
    /// `remark`.
    ///
    /// # Errors
    ///
    /// When the transcript itself cannot be read. A child that cannot is shown as missing.
    pub fn forest(
        &self,
        path: &Path,
        limits: Limits,
        mut remark: impl FnMut(Remark),
    ) -> io::Result<Forest> {
        let root = read_tree(path, limits, &mut remark)?;
        Ok(Forest::grow(root, |child| {
            let path = self.find(child).ok_or("no transcript")?;
            read_tree(&path, limits, &mut remark).map_err(|e| e.to_string())
        }))
    }
}

fn read_tree(path: &Path, limits: Limits, remark: &mut impl FnMut(Remark)) -> io::Result<RunTree> {
    let mut reader = Reader::with_limits(File::open(path)?, limits);
    let mut builder = TreeBuilder::default();
    while let Some(item) = reader.next_decoded()? {
        let odd = |at, what| Remark {
            path: path.to_owned(),
            at,
            what,
        };
        match item {
            Err(bad) => remark(odd(bad.at, RemarkKind::Bad(bad.fault))),
            Ok(decoded) => {
                builder.observe(&decoded.event);
                for warning in decoded.warnings {
                    remark(odd(decoded.at, RemarkKind::Odd(warning)));
                }
            }
        }
    }
    Ok(builder.finish())
}

fn check_name(path: &Path, report: &mut Report) {
    let Some(run_id) = &report.run_id else { return };
    let stem = name_of(path);
    if unlabelled(&stem) != run_id.as_str() && stem != run_id.as_str() {
        let message = format!("the file is named {stem:?}, but holds run {run_id}");
        report.add(Finding {
            rule: Rule::FileName,
            at: None,
            seq: None,
            message,
        });
    }
}

/// The name of a file without its extension.
fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The part of a file's stem behind the label that other engines put before the run id.
fn unlabelled(stem: &str) -> &str {
    stem.rsplit_once("__").map_or(stem, |(_, id)| id)
}

fn check_permissions(path: &Path, report: &mut Report) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!("the file's mode is {mode:o}, so others can use it");
        report.add(Finding {
            rule: Rule::Permissions,
            at: None,
            seq: None,
            message,
        });
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let metadata = std::fs::metadata(parent.unwrap_or(Path::new(".")))?;
    let mode = metadata.permissions().mode() & 0o7777;
    // With the sticky bit, others cannot replace the file.
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let message = format!("its directory's mode is {mode:o}, so others can replace it");
        report.add(Finding {
            rule: Rule::Permissions,
            at: None,
            seq: None,
            message,
        });
    }
    Ok(())
}

/// The run and parent that the first readable event of a file names.
fn first_identity(path: &Path) -> Option<(RunId, Option<RunId>)> {
    let mut reader = Reader::new(File::open(path).ok()?);
    while let Some(item) = reader.next_decoded().ok()? {
        if let Ok(decoded) = item {
            return Some((decoded.event.run_id, decoded.event.parent_run_id));
        }
    }
    None
}

/// Whether any event of a file calls a run.
fn names_child(path: &Path, child: &RunId) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut reader = Reader::new(file);
    while let Ok(Some(item)) = reader.next_decoded() {
        if let Ok(decoded) = item
            && decoded.event.body.child_run_id() == Some(child)
        {
            return true;
        }
    }
    false
}
