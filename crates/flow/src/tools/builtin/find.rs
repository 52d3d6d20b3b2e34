//! Glob and Grep: walking a directory without following links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::beneath::{Root, child_directory, child_file, entries};

/// The most names or lines that are given.
const MAX_LINES: usize = 10_000;
/// The most bytes of names and lines that are given.
const MAX_BYTES: usize = 5 << 20;
/// The most of a line that is looked at.
const MAX_LINE: usize = 1 << 20;
/// The most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 100_000;
/// The most entries that are looked at in all.
const MAX_VISITED: usize = 1_000_000;
/// How deep directories are looked into. Each level holds a file open.
const MAX_DEPTH: usize = 128;

#[derive(Deserialize)]
pub(super) struct Glob {
    pattern: String,
    cwd: Option<String>,
}

pub(super) fn glob(
    root: &Root,
    input: &Glob,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let pattern = pattern_beneath(root, &input.pattern)?;
    let matcher = matcher(&pattern)?;
    let start = root
        .relative(input.cwd.as_deref().unwrap_or("."))
        .map_err(|e| e.to_string())?;
    let dir = root.directory(&start).map_err(|e| e.to_string())?;
    let mut out = Lines::default();
    let mut walk = Walk::new(cancel);
    walk.run(dir, &mut |_, below, kind| {
        if kind != FileType::Directory && matcher.is_match(below) {
            return out.push(&shown(&start, below).display().to_string());
        }
        true
    })?;
    Ok(out.finish(&walk, "No files fit this pattern."))
}

/// A pattern from the root. It may not hold `..`; an absolute one must begin with the root.
fn pattern_beneath(root: &Root, pattern: &str) -> Result<String, String> {
    let path = Path::new(pattern);
    if path.components().any(|it| it == Component::ParentDir) {
        return Err(format!(
            "{pattern:?} has .. in it; patterns stay beneath the root"
        ));
    }
    if !path.is_absolute() {
        return Ok(pattern.trim_start_matches("./").to_owned());
    }
    let inside = root.relative(pattern).map_err(|e| e.to_string())?;
    Ok(inside.display().to_string())
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.len() > 4096 {
        return Err("the pattern is longer than 4096 bytes".to_owned());
    }
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| format!("{pattern:?} is not a pattern: {error}"))?;
    Ok(glob.compile_matcher())
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

#[derive(Deserialize)]
pub(super) struct Grep {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    output_mode: Option<Mode>,
    #[serde(default)]
    case_insensitive: bool,
}

pub(super) fn grep(
    root: &Root,
    input: &Grep,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let regex = RegexBuilder::new(&input.pattern)
        .case_insensitive(input.case_insensitive)
        .size_limit(4 << 20)
        .build()
        .map_err(|error| format!("{:?} is not a regular expression: {error}", input.pattern))?;
    let only = match &input.glob {
        // As with other programs, a pattern without a slash fits a name in any directory.
        Some(glob) if !glob.contains('/') => Some(matcher(&format!("**/{glob}"))?),
        Some(glob) => Some(matcher(&pattern_beneath(root, glob)?)?),
        None => None,
    };
    let start = root
        .relative(input.path.as_deref().unwrap_or("."))
        .map_err(|e| e.to_string())?;
    let mut search = Search {
        regex,
        mode: input.output_mode.unwrap_or_default(),
        out: Lines::default(),
        binary: 0,
        long: 0,
    };
    let mut walk = Walk::new(cancel);
    if root.kind(&start).map_err(|e| e.to_string())? == FileType::Directory {
        let dir = root.directory(&start).map_err(|e| e.to_string())?;
        walk.run(dir, &mut |dir, below, kind| {
            let wanted =
                kind == FileType::RegularFile && only.as_ref().is_none_or(|it| it.is_match(below));
            let name = below.file_name().filter(|_| wanted);
            // A file that cannot be opened is passed over, as one that was just removed.
            let file = name.and_then(|name| child_file(dir, name).ok().flatten());
            file.is_none_or(|file| search.file(&shown(&start, below), file, cancel))
        })?;
    } else {
        let file = root.read(&start).map_err(|e| e.to_string())?;
        search.file(&start, file, cancel);
    }
    if cancel.is_cancelled() {
        return Err("cancelled".to_owned());
    }
    if search.binary > 0 {
        walk.notes.push(format!(
            "{} files that are not text were left out.",
            search.binary
        ));
    }
    if search.long > 0 {
        walk.notes.push(format!(
            "{} lines are longer than {MAX_LINE} bytes; only that much of each was looked at.",
            search.long
        ));
    }
    Ok(search.out.finish(&walk, "No lines match."))
}

/// A path as it is shown: from the root.
fn shown(start: &Path, below: &Path) -> PathBuf {
    let path = start.join(below);
    path.strip_prefix(".").map_or(path.clone(), Path::to_owned)
}

struct Search {
    regex: Regex,
    mode: Mode,
    out: Lines,
    binary: usize,
    long: usize,
}

impl Search {
    /// Looks through a file; whether there is room for more.
    fn file(&mut self, path: &Path, file: File, cancel: &CancellationToken) -> bool {
        let mut file = BufReader::with_capacity(64 << 10, file);
        if file.fill_buf().is_ok_and(|start| start.contains(&0)) {
            self.binary += 1;
            return true;
        }
        let path = path.display().to_string();
        let (mut number, mut found, mut line) = (0_u64, 0_u64, Vec::new());
        loop {
            line.clear();
            let mut limited = file.by_ref().take(MAX_LINE as u64);
            match limited.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if cancel.is_cancelled() {
                return false;
            }
            number += 1;
            let whole = line.last() == Some(&b'\n');
            if !whole && line.len() == MAX_LINE {
                self.long += 1;
                if skip_line(&mut file).is_err() {
                    break;
                }
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if !self.regex.is_match(text) {
                continue;
            }
            found += 1;
            match self.mode {
                Mode::Content => {
                    let text = String::from_utf8_lossy(text);
                    if !self.out.push(&format!("{path}:{number}:{text}")) {
                        return false;
                    }
                }
                Mode::FilesWithMatches => return self.out.push(&path),
                Mode::Count => {}
            }
        }
        if self.mode == Mode::Count && found > 0 {
            return self.out.push(&format!("{path}:{found}"));
        }
        true
    }
}

/// Reads to the end of a line without keeping it.
fn skip_line(file: &mut BufReader<File>) -> std::io::Result<()> {
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        let end = piece.iter().position(|&b| b == b'\n');
        let used = end.map_or(piece.len(), |at| at + 1);
        file.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Lines of output, up to a limit.
#[derive(Default)]
struct Lines {
    text: String,
    count: usize,
    full: bool,
}

impl Lines {
    /// Adds a line; whether there is room for more.
    fn push(&mut self, line: &str) -> bool {
        if self.count == MAX_LINES || self.text.len() + line.len() + 1 > MAX_BYTES {
            self.full = true;
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
        true
    }

    fn finish(mut self, walk: &Walk<'_>, none: &str) -> String {
        if self.count == 0 {
            self.text.push_str(none);
            self.text.push('\n');
        }
        if self.full {
            let note = format!("[There is more than {} lines can show.]\n", self.count);
            self.text.push_str(&note);
        }
        for note in &walk.notes {
            for part in ["[", note, "]\n"] {
                self.text.push_str(part);
            }
        }
        self.text
    }
}

/// A walk through directories, in order of names.
struct Walk<'a> {
    cancel: &'a CancellationToken,
    visited: usize,
    notes: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(cancel: &'a CancellationToken) -> Self {
        Self {
            cancel,
            visited: 0,
            notes: Vec::new(),
        }
    }

    /// Shows every entry below `dir` with its path, until `see` says that it has enough. What belongs to Git itself
    /// is left out.
    fn run(
        &mut self,
        dir: OwnedFd,
        see: &mut dyn FnMut(&OwnedFd, &Path, FileType) -> bool,
    ) -> Result<(), String> {
        struct Level {
            dir: OwnedFd,
            path: PathBuf,
            left: std::vec::IntoIter<crate::beneath::Entry>,
        }
        let list = |notes: &mut Vec<String>, dir: &OwnedFd, path: &Path| {
            match entries(dir, MAX_ENTRIES) {
                Ok((all, more)) => {
                    if more {
                        notes.push(format!(
                            "{} has more than {MAX_ENTRIES} entries; the others were left out.",
                            path.display()
                        ));
                    }
                    all
                }
                Err(error) => {
                    notes.push(format!("{} was left out: {error}.", path.display()));
                    Vec::new()
                }
            }
            .into_iter()
        };
        let left = list(&mut self.notes, &dir, Path::new("."));
        let mut levels = vec![Level {
            dir,
            path: PathBuf::new(),
            left,
        }];
        while let Some(level) = levels.last_mut() {
            if self.cancel.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            let Some(entry) = level.left.next() else {
                levels.pop();
                continue;
            };
            self.visited += 1;
            if self.visited > MAX_VISITED {
                self.notes.push(format!(
                    "More than {MAX_VISITED} files; the others were left out."
                ));
                return Ok(());
            }
            let path = level.path.join(&entry.name);
            if !see(&level.dir, &path, entry.kind) {
                return Ok(());
            }
            if entry.kind != FileType::Directory || entry.name == OsStr::new(".git") {
                continue;
            }
            if levels.len() == MAX_DEPTH {
                self.notes.push(format!("{} is too deep.", path.display()));
                continue;
            }
            let Some(level) = levels.last() else { break };
            match child_directory(&level.dir, &entry.name) {
                Ok(dir) => {
                    let left = list(&mut self.notes, &dir, &path);
                    levels.push(Level { dir, path, left });
                }
                Err(error) => self
                    .notes
                    .push(format!("{} was left out: {error}.", path.display())),
            }
        }
        Ok(())
    }
}
