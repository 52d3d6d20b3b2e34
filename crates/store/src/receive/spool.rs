//! Files that grow by whole lines, and are on disk before anybody is told so.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};

use crate::FileError;
use crate::durable::Unsynced;

/// How many files are remembered by name. The others are looked for again.
const KNOWN: usize = 1 << 16;

/// The files.
#[derive(Debug)]
pub(super) struct Spool {
    root: PathBuf,
    writing: Mutex<Writing>,
    unsynced: Unsynced,
    syncing: Mutex<Syncing>,
    synced: Condvar,
}

#[derive(Debug, Default)]
struct Writing {
    /// Where files are, by name.
    known: HashMap<String, PathBuf>,
    /// How many requests were written.
    requests: u64,
}

/// Requests that wait are brought to disk together, by the first of them.
#[derive(Debug, Default)]
struct Syncing {
    under_way: bool,
    /// How many requests are on disk.
    requests: u64,
}

/// A request whose lines are written, and may not be on disk yet.
#[derive(Debug)]
#[must_use = "it is on disk after `Spool::sync`"]
pub(super) struct Appended {
    paths: Vec<PathBuf>,
    request: u64,
}

impl Spool {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            writing: Mutex::default(),
            unsynced: Unsynced::default(),
            syncing: Mutex::default(),
            synced: Condvar::new(),
        }
    }

    /// Whether there is a file of this name.
    pub(super) fn is_there(&self, name: &str) -> Result<bool, FileError> {
        let mut writing = self.writing.lock();
        Ok(self.find(name, &mut writing)?.is_some())
    }

    /// Puts lines behind files. A file that is new is made in the directory of the day. They are on disk after
    /// [`Self::sync`].
    pub(super) fn append(
        &self,
        files: BTreeMap<String, Vec<u8>>,
        day: &str,
    ) -> Result<Appended, FileError> {
        let mut paths = Vec::with_capacity(files.len());
        let mut writing = self.writing.lock();
        for (name, lines) in files {
            let path = match self.find(&name, &mut writing)? {
                Some(path) => path,
                None => self.make(&name, day, &mut writing)?,
            };
            append(&path, &lines).map_err(FileError::at("write", &path))?;
            self.unsynced.note(&path);
            paths.push(path);
        }
        writing.requests += 1;
        Ok(Appended {
            paths,
            request: writing.requests,
        })
    }

    /// Where a file is. It stays in the directory of the day on which it was made.
    fn find(&self, name: &str, writing: &mut Writing) -> Result<Option<PathBuf>, FileError> {
        if let Some(path) = writing.known.get(name) {
            // Somebody may have removed it.
            if path.exists() {
                return Ok(Some(path.clone()));
            }
            writing.known.remove(name);
        }
        let refused = FileError::at("read", &self.root);
        let days = match fs::read_dir(&self.root) {
            Ok(days) => days,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        let file = format!("{name}.jsonl");
        let mut found: Vec<PathBuf> = Vec::new();
        for day in days {
            let path = day
                .map_err(FileError::at("read", &self.root))?
                .path()
                .join(&file);
            if path.is_file() {
                found.push(path);
            }
        }
        // The latest, should there be several.
        let path = found.into_iter().max();
        if let Some(path) = &path {
            remember(name, path, writing);
        }
        Ok(path)
    }

    fn make(&self, name: &str, day: &str, writing: &mut Writing) -> Result<PathBuf, FileError> {
        let directory = self.root.join(day);
        quipu_files::create_directory(&directory).map_err(FileError::at("make", &directory))?;
        let path = directory.join(format!("{name}.jsonl"));
        remember(name, &path, writing);
        Ok(path)
    }

    /// Waits until a request is on disk. Gives the files that grew.
    pub(super) fn sync(&self, appended: Appended) -> Result<Vec<PathBuf>, FileError> {
        self.wait(appended.request)?;
        Ok(appended.paths)
    }

    fn wait(&self, request: u64) -> Result<(), FileError> {
        let mut syncing = self.syncing.lock();
        loop {
            if syncing.requests >= request {
                return Ok(());
            }
            if !syncing.under_way {
                break;
            }
            self.synced.wait(&mut syncing);
        }
        syncing.under_way = true;
        drop(syncing);
        let written = self.writing.lock().requests;
        let done = self.unsynced.sync(&self.root);
        let mut syncing = self.syncing.lock();
        syncing.under_way = false;
        if done.is_ok() {
            syncing.requests = syncing.requests.max(written);
        }
        drop(syncing);
        // After a failure each that waits tries for itself.
        self.synced.notify_all();
        done
    }
}

fn remember(name: &str, path: &Path, writing: &mut Writing) {
    if writing.known.len() >= KNOWN {
        writing.known.clear();
    }
    writing.known.insert(name.to_owned(), path.to_owned());
}

/// Puts lines behind a file. What could only be written in part is taken back.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = quipu_files::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    // Another process may write to it too.
    file.lock()?;
    let length = file.metadata()?.len();
    let written = if ends_torn(&mut file, length)? {
        // A process that was killed left part of a line.
        file.write_all(b"\n").and_then(|()| file.write_all(lines))
    } else {
        file.write_all(lines)
    };
    if written.is_err() {
        file.set_len(length)?;
    }
    written
}

fn ends_torn(file: &mut File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != [b'\n'])
}
