//! Traces in the `.agentlog` format, kept by the id of their root.
//!
//! ```text
//! <root>/traces/ab/cdef….agentlog           the trace whose root record is sha256:abcdef…
//! <root>/traces/ab/cdef…~0123….agentlog     another one with the same root, by the SHA-256 of the file
//! <root>/traces/index.sqlite                what is asked of them; derived, made again when it is gone
//! <root>/traces/tmp/, .lock                 files being written; who is placing one
//! <root>/blobs/                             what they refer to
//! ```
//!
//! The id of a trace is the id of its root, and that is a hash of the root's payload: two sessions of one
//! program with the same tags have the same. So nothing is ever written over what is there, and an id that
//! names two traces is an error that names both.
//!
//! A directory of Shadow's (`.shadow`) has the same layout, but for its index, which is one level higher. It
//! is read as it is, and nothing is written to it unless that is asked for.
//!
//! ```
//! use quipu_store::traces::{Checks, How, Traces};
//!
//! # let home = tempfile::tempdir()?;
//! let traces = Traces::open(home.path())?;
//! let trace = concat!(
//!     r#"{"version":"0.1","id":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","#,
//!     r#""kind":"metadata","ts":"2026-04-24T10:00:00.000Z","parent":null,"payload":{}}"#, "\n");
//! let kept = traces.put(trace.as_bytes(), &Checks::default())?;
//! assert_eq!(kept.how, How::New);
//! let found = traces.find("44136fa3")?;
//! assert_eq!(traces.read(&found)?, trace.as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Invariant:** what was kept stays kept: a file only ever makes way for one that begins with all its bytes.
//! **Invariant:** the index can be deleted at any time.

mod blobs;
mod error;
mod health;
mod index;
mod name;
mod put;
mod survey;
mod uses;

#[cfg(test)]
pub(crate) mod tests;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::{ContentId, LIMITS};
use sha2::{Digest as _, Sha256};

pub use blobs::{BlobRow, Near};
use error::Result;
pub use error::TraceError;
use index::{Entry, Index, IndexPlace};
pub use index::{Filter, TraceRow};
use name::Asked;
pub use name::TraceName;
pub use put::{Checks, How, Kept};
pub use survey::{Replay, Root, Survey};

use crate::FileError;
use crate::address::Digest;
use crate::blobs::Blobs;
use crate::files;

/// So many traces are put into the index at once.
const BATCH: usize = 64;

/// The longest line of a trace that is read for the index. Where one is longer, it is not known what it refers
/// to, and no blob is collected.
const LONGEST_LINE: usize = 256 << 20;

/// A directory of traces, open.
#[derive(Debug)]
pub struct Traces {
    root: PathBuf,
    /// Where the traces are.
    directory: PathBuf,
    place: IndexPlace,
    index: Index,
    blobs: Blobs,
    access: Access,
    problems: Vec<Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// A trace that could not be read into the index, or is not what was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl Traces {
    /// Opens the traces below a home of ours, making the directory where there is none.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn open(root: &Path) -> Result<Self> {
        let directory = root.join("traces");
        files::create_directory(&directory)?;
        let place = IndexPlace::Ours(directory.join("index.sqlite"));
        Self::with(root, place, Access::Write)
    }

    /// Opens the traces below a home of ours, if there are any.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn open_existing(root: &Path) -> Result<Option<Self>> {
        if !root.join("traces").is_dir() {
            return Ok(None);
        }
        Self::open(root).map(Some)
    }

    /// Opens a directory that is not ours, a `.shadow`, to be read. Nothing is written: the index is made in
    /// memory, with the replays that the directory's own index knows of.
    ///
    /// # Errors
    ///
    /// When there are no traces in it, or the system refuses.
    pub fn open_foreign(root: &Path) -> Result<Self> {
        if !root.join("traces").is_dir() {
            return Err(TraceError::NoTraces(root.to_owned()));
        }
        let traces = Self::with(root, IndexPlace::Memory, Access::Read)?;
        let replays = index::replays(&root.join("index.sqlite"));
        traces.index.put_foreign_replays(&replays)?;
        Ok(traces)
    }

    /// Opens a `.shadow` to be written to. Its index gets tables of ours beside those of the specification.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn open_foreign_to_write(root: &Path) -> Result<Self> {
        files::create_directory(&root.join("traces"))?;
        let place = IndexPlace::Shared(root.join("index.sqlite"));
        Self::with(root, place, Access::Write)
    }

    fn with(root: &Path, place: IndexPlace, access: Access) -> Result<Self> {
        let root = std::path::absolute(root).map_err(FileError::at("find", root))?;
        let mut traces = Self {
            directory: root.join("traces"),
            index: Index::open(&place)?,
            blobs: Blobs::open(&root.join("blobs"))?,
            problems: Vec::new(),
            place,
            access,
            root,
        };
        match traces.refresh() {
            // Damage may show only when it is read.
            Err(TraceError::Index { damaged: true, .. }) => {
                Index::remake(&traces.place)?;
                traces.index = Index::open(&traces.place)?;
                traces.refresh()?;
            }
            refreshed => refreshed?,
        }
        Ok(traces)
    }

    /// The directory that traces and blobs are below.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The blobs beside the traces.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Files that could not be read, or lost something since they were read last. What the index knows of them is
    /// what was known before.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// The traces that are asked for, the newest first.
    ///
    /// # Errors
    ///
    /// When the index refuses.
    pub fn list(&self, filter: &Filter) -> Result<Vec<TraceRow>> {
        self.index.list(filter)
    }

    /// The newest traces.
    ///
    /// # Errors
    ///
    /// When the index refuses.
    pub fn recent(&self, n: usize) -> Result<Vec<TraceRow>> {
        self.list(&Filter {
            limit: Some(n),
            ..Filter::default()
        })
    }

    /// The replays of the trace with this id.
    ///
    /// # Errors
    ///
    /// When the index refuses.
    pub fn replays_of(&self, baseline: &str) -> Result<Vec<TraceRow>> {
        self.list(&Filter {
            replays_of: Some(baseline.to_owned()),
            ..Filter::default()
        })
    }

    /// The trace that is meant: the id of its root or the beginning of it, with a `~` and the beginning of
    /// the file's SHA-256 behind it where several have that root.
    ///
    /// # Errors
    ///
    /// When none is meant, or several are.
    pub fn find(&self, argument: &str) -> Result<TraceRow> {
        let none = || TraceError::None(argument.to_owned());
        let asked = Asked::read(argument).ok_or_else(none)?;
        let mut rows = self.index.named(&asked)?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            (None, _) => Err(none()),
            (Some(last), false) => {
                let mut names: Vec<String> = rows.iter().map(TraceRow::name).collect();
                names.push(last.name());
                Err(TraceError::Several {
                    argument: argument.to_owned(),
                    names,
                })
            }
        }
    }

    /// The file of a trace.
    pub fn path(&self, row: &TraceRow) -> PathBuf {
        self.directory.join(&row.path)
    }

    /// Opens a trace.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn open_file(&self, row: &TraceRow) -> Result<File> {
        let path = self.path(row);
        Ok(File::open(&path).map_err(FileError::at("read", &path))?)
    }

    /// The bytes of a trace.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn read(&self, row: &TraceRow) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.open_file(row)?.read_to_end(&mut bytes);
        read.map_err(FileError::at("read", self.path(row)))?;
        Ok(bytes)
    }

    /// Brings the index in line with the files: those that are new or look different are read, and what is
    /// gone is forgotten.
    ///
    /// # Errors
    ///
    /// When the index refuses. What is wrong with a trace is no reason: see [`Self::problems`].
    pub fn refresh(&mut self) -> Result<()> {
        self.problems.clear();
        let mut seen = self.index.seen()?;
        let mut entries = Vec::new();
        for (root, path, metadata) in self.files()? {
            let name = path.to_string_lossy().into_owned();
            let stamp = (
                i64::try_from(metadata.len()).unwrap_or(i64::MAX),
                modified(&metadata),
            );
            let before = seen.remove(&name);
            if before == Some(stamp) {
                continue;
            }
            match self.survey(&path) {
                Ok((sha256, size, survey)) => {
                    let was = before.map(|_| self.index.known_of(&name)).transpose()?;
                    if let Some(why) = was.flatten().and_then(|was| health::lost(&was, &survey)) {
                        let path = self.directory.join(&path);
                        self.problems.push(Problem { path, why });
                        continue;
                    }
                    entries.push(Entry {
                        path: name,
                        root,
                        size,
                        modified: stamp.1,
                        sha256,
                        survey,
                    });
                }
                Err(error) => self.problems.push(Problem {
                    path: self.directory.join(&path),
                    why: error.to_string(),
                }),
            }
            if entries.len() >= BATCH {
                self.index.put(&entries, &[])?;
                entries.clear();
            }
        }
        let gone: Vec<String> = seen.into_keys().collect();
        if entries.is_empty() && gone.is_empty() {
            return Ok(());
        }
        self.index.put(&entries, &gone)
    }

    /// What is read for the index. What is kept here was kept because somebody wanted it, and may be of any
    /// size; a directory that is only looked at may hold anything.
    fn limits(&self) -> Limits {
        let known = Limits {
            max_total_bytes: u64::MAX,
            ..LIMITS
        };
        match self.access {
            Access::Read => known,
            Access::Write => Limits {
                max_line_bytes: LONGEST_LINE,
                max_depth: usize::MAX,
                ..known
            },
        }
    }

    /// Reads one trace for the index.
    fn survey(&self, path: &Path) -> io::Result<(Digest, u64, Survey)> {
        let mut file = Hashed {
            file: File::open(self.directory.join(path))?,
            hash: Sha256::new(),
            size: 0,
        };
        let survey = Survey::read(&mut file, self.limits())?;
        let digest = Digest::from(<[u8; 32]>::from(file.hash.finalize()));
        Ok((digest, file.size, survey))
    }

    /// All files of traces, with the root they are named by, in order.
    fn files(&self) -> Result<Vec<(ContentId, PathBuf, Metadata)>> {
        let mut found = Vec::new();
        for fan in names(&self.directory)? {
            if fan.len() == 2 {
                found.extend(self.files_in(&fan, None)?);
            }
        }
        Ok(found)
    }

    /// The files that are named by this root, the first that was kept before those beside it.
    fn with_root(&self, root: &ContentId) -> Result<Vec<PathBuf>> {
        let files = self.files_in(&root.hex()[..2], Some(root))?;
        let plain = name::plain(root);
        let mut paths: Vec<PathBuf> = files.into_iter().map(|(_, path, _)| path).collect();
        paths.sort_by_key(|path| (*path != plain, path.clone()));
        Ok(paths)
    }

    fn files_in(
        &self,
        fan: &str,
        only: Option<&ContentId>,
    ) -> Result<Vec<(ContentId, PathBuf, Metadata)>> {
        let mut found = Vec::new();
        let directory = self.directory.join(fan);
        for file in names(&directory)? {
            let Some(root) = name::root_of(fan, &file) else {
                continue;
            };
            if only.is_some_and(|only| *only != root) {
                continue;
            }
            // No links: what they lead to is not kept here.
            match std::fs::symlink_metadata(directory.join(&file)) {
                Ok(metadata) if metadata.is_file() => {
                    found.push((root, Path::new(fan).join(file), metadata));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::at("read", directory.join(file))(error).into()),
            }
        }
        Ok(found)
    }

    /// Keeps others from placing a trace for as long as it is held.
    fn lock(&self) -> Result<File> {
        let path = self.directory.join(".lock");
        let file = quipu_files::open_lock(&path).map_err(FileError::at("create", &path))?;
        file.lock().map_err(FileError::at("lock", &path))?;
        Ok(file)
    }

    /// Removes temporary files that were left behind more than an hour ago, and says how many.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn sweep_temporary(&self, now: jiff::Timestamp) -> Result<u64> {
        Ok(files::sweep_temporary(&self.directory.join("tmp"), now, false)?.0)
    }
}

/// The directories of a home that have traces in them, below it.
pub(crate) fn directories(home: &Path) -> Vec<PathBuf> {
    let fans = names(&home.join("traces")).unwrap_or_default();
    let fans = fans.into_iter().filter(|fan| fan.len() == 2);
    fans.map(|fan| Path::new("traces").join(fan)).collect()
}

/// The names in a directory, in order; none where there is no directory.
fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        entries => entries.map_err(FileError::at("list", directory))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FileError::at("list", directory))?;
        // Our names are ASCII.
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// When a file was modified, in nanoseconds since 1970.
fn modified(metadata: &Metadata) -> i64 {
    metadata
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(metadata.mtime_nsec())
}

/// Hashes what is read.
struct Hashed {
    file: File,
    hash: Sha256,
    size: u64,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.size += read as u64;
        Ok(read)
    }
}
