//! Keeping a trace: never over another.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::LIMITS;
use sha2::{Digest as _, Sha256};

use super::error::Result;
use super::index::Entry;
use super::survey::Survey;
use super::{TraceError, TraceName, Traces, modified, name};
use crate::address::Digest;
use crate::blobs::Blobs;
use crate::files;
use crate::{FileError, files::with_directory_of};

/// What is asked of a trace before it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Checks {
    /// How large it may be.
    pub limits: Limits,
    /// Whether one is kept whose root does not have the id that its payload has. It is kept under the id
    /// that the root says.
    pub wrong_root: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            limits: LIMITS,
            wrong_root: false,
        }
    }
}

/// A trace that is kept.
#[derive(Debug)]
pub struct Kept {
    /// Its full name.
    pub name: TraceName,
    /// Its file.
    pub path: PathBuf,
    /// How it came to be there.
    pub how: How,
    /// What is in it.
    pub survey: Survey,
    /// How large it is.
    pub size: u64,
    /// Why it is not in the index. It is kept all the same, and found when the index is next opened.
    pub unindexed: Option<String>,
}

/// How a trace came to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is new.
    New,
    /// The same bytes were there.
    Already,
    /// One that begins with all of its bytes was there: it is an earlier state of that.
    AlreadyLonger,
    /// One that it begins with was there, and it took its place: the recording went on.
    Continued,
    /// Another one with the same root is there, and stays; also a beginning of it that is still written.
    Beside,
}

impl Traces {
    /// Keeps a trace. Nothing that is there is lost: what has the same root but says something else is kept
    /// beside it.
    ///
    /// The trace goes to a temporary file first, and is checked on its way. Whether it is kept or not,
    /// nothing else is left behind.
    ///
    /// # Errors
    ///
    /// When it is no trace, its root is not what it says, or the system refuses.
    pub fn put(&self, source: impl Read, checks: &Checks) -> Result<Kept> {
        if !self.is_writable() {
            return Err(TraceError::ReadOnly(self.root.clone()));
        }
        let mut temporary = Temporary::create(&self.directory.join("tmp"))?;
        let mut tee = Tee {
            source,
            to: &mut temporary.file,
            hash: Sha256::new(),
            size: 0,
            refused: None,
        };
        let read = Survey::read(&mut tee, checks.limits);
        let Tee {
            hash,
            size,
            refused,
            ..
        } = tee;
        if let Some(error) = refused {
            return Err(FileError::at("write", temporary.path.to_path_buf())(error).into());
        }
        let survey = read.map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => TraceError::TooLarge(checks.limits.max_total_bytes),
            _ => TraceError::Source(error),
        })?;
        let root = accept(&survey, checks)?;
        let content = Digest::from(<[u8; 32]>::from(hash.finalize()));
        let name = TraceName { root, content };
        let synced = temporary
            .file
            .flush()
            .and_then(|()| temporary.file.sync_all());
        synced.map_err(FileError::at("write", temporary.path.to_path_buf()))?;
        let Placed { path, how, gone } = {
            let _lock = self.lock()?;
            self.place(&name, size, &temporary)?
        };
        drop(temporary);
        let unindexed = match how {
            How::Already | How::AlreadyLonger => Ok(()),
            _ => self.index_kept(&name, &path, size, &survey, gone.as_deref()),
        };
        Ok(Kept {
            name,
            path: self.directory.join(path),
            how,
            survey,
            size,
            unindexed: unindexed.err().map(|error| error.to_string()),
        })
    }

    fn index_kept(
        &self,
        name: &TraceName,
        path: &Path,
        size: u64,
        survey: &Survey,
        gone: Option<&Path>,
    ) -> Result<()> {
        let file = self.directory.join(path);
        let metadata = std::fs::metadata(&file).map_err(FileError::at("read", &file))?;
        // What is asked of a trace before it is kept may be narrower than what the index is to know of it.
        let (sha256, size, survey) = match survey.bad_lines {
            0 => (name.content, size, survey.clone()),
            _ => self.survey(path).map_err(FileError::at("read", &file))?,
        };
        let entry = Entry {
            path: path.to_string_lossy().into_owned(),
            root: name.root,
            size,
            modified: modified(&metadata),
            sha256,
            survey,
        };
        let gone = gone.map(|gone| gone.to_string_lossy().into_owned());
        self.index.put(&[entry], gone.as_slice())
    }

    /// Takes the blobs that a trace may refer to from a directory beside it, where they are not here yet. Gives
    /// how many there were.
    ///
    /// # Errors
    ///
    /// When one of them is damaged, or the system refuses.
    pub fn take_blobs(&self, survey: &Survey, from: &Blobs) -> Result<u64> {
        let mut taken = 0;
        for id in survey.blobs.keys() {
            if !from.path(id).exists() {
                continue;
            }
            // What is there stays, unless it is damaged.
            let is_new = !self.blobs.path(id).exists();
            self.blobs.put(&from.get(id)?)?;
            taken += u64::from(is_new);
        }
        self.blobs.sync()?;
        Ok(taken)
    }

    /// Puts a file where it belongs, under the lock.
    fn place(&self, name: &TraceName, size: u64, file: &Temporary) -> Result<Placed> {
        let others = self.with_root(&name.root)?;
        let mut begun = None;
        for other in &others {
            let path = self.directory.join(other);
            match compare(&path, &file.path, size)? {
                Compared::Same => return Ok(Placed::at(other, How::Already)),
                Compared::Longer => return Ok(Placed::at(other, How::AlreadyLonger)),
                Compared::Shorter if begun.is_none() => {
                    begun = Idle::claim(&path).map(|idle| (other, idle));
                }
                Compared::Shorter | Compared::Other => {}
            }
        }
        // Held until this returns.
        let (begun, _idle) = begun.unzip();
        let plain = name::plain(&name.root);
        if begun == Some(&plain) {
            // All that is there is in what comes, so nothing is lost; and whoever looks sees one or the other.
            let to = self.directory.join(&plain);
            std::fs::rename(&file.path, &to).map_err(FileError::at("replace", &to))?;
            self.sync_directories(&to)?;
            return Ok(Placed::at(&plain, How::Continued));
        }
        if others.is_empty() && self.link(file, &plain)? {
            return Ok(Placed::at(&plain, How::New));
        }
        for beside in name::beside(name) {
            let to = self.directory.join(&beside);
            if !self.link(file, &beside)? && compare(&to, &file.path, size)? != Compared::Same {
                // Another one with the same digits.
                continue;
            }
            let Some(begun) = begun else {
                return Ok(Placed::at(&beside, How::Beside));
            };
            let old = self.directory.join(begun);
            std::fs::remove_file(&old).map_err(FileError::at("remove", &old))?;
            self.sync_directories(&to)?;
            return Ok(Placed {
                gone: Some(begun.clone()),
                ..Placed::at(&beside, How::Continued)
            });
        }
        let to = self.directory.join(plain);
        let taken = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(FileError::at("create", to)(taken).into())
    }

    /// Gives a file its name, unless something has it. Brings both to disk.
    fn link(&self, file: &Temporary, name: &Path) -> Result<bool> {
        let to = self.directory.join(name);
        let linked = with_directory_of(&to, "create", || {
            match std::fs::hard_link(&file.path, &to) {
                // A file system without links. The lock keeps other programs of ours out.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
                    ) && !to.exists() =>
                {
                    std::fs::rename(&file.path, &to)
                }
                linked => linked,
            }
        });
        match linked {
            Ok(()) => self.sync_directories(&to).map(|()| true),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the names of a file and of the directory it is in to disk.
    fn sync_directories(&self, path: &Path) -> Result<()> {
        let above = path.ancestors().skip(1);
        for directory in above.take_while(|it| it.starts_with(&self.root)) {
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(FileError::at("sync", directory))?;
        }
        Ok(())
    }
}

/// A trace that nobody is writing to, and nobody begins to while this is held.
struct Idle {
    _locked: File,
}

impl Idle {
    /// `None` when somebody is writing to it, or that cannot be told: a recorder holds a lock on its trace. If
    /// that made way for another file, the rest of the recording would go to one without a name.
    fn claim(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        file.try_lock().ok()?;
        Some(Self { _locked: file })
    }
}

/// Where a trace was put, below the directory of traces.
struct Placed {
    path: PathBuf,
    how: How,
    /// The file that made way for it under another name.
    gone: Option<PathBuf>,
}

impl Placed {
    fn at(path: &Path, how: How) -> Self {
        Self {
            path: path.to_owned(),
            how,
            gone: None,
        }
    }
}

/// Refuses what is no trace. Gives the id that it is kept under.
fn accept(survey: &Survey, checks: &Checks) -> Result<quipu_formats::agentlog::ContentId> {
    let no = |why: &str| TraceError::NotATrace(why.to_owned());
    let root = match &survey.root {
        None if survey.records + survey.bad_lines == 0 => return Err(no("there is nothing in it")),
        None => return Err(no("the first line is no record")),
        Some(root) => root,
    };
    if !root.is_root {
        return Err(no("the first record is not metadata that follows nothing"));
    }
    match (root.said, root.is) {
        (Some(said), Some(is)) if said == is => Ok(said),
        (Some(said), Some(is)) if !checks.wrong_root => Err(TraceError::WrongRoot { said, is }),
        (Some(said), Some(_)) => Ok(said),
        (Some(said), None) if checks.wrong_root => Ok(said),
        (Some(_), None) => Err(no("the payload of the first record has no canonical form")),
        (None, _) => Err(no("the first record has no id")),
    }
}

/// A file that goes when it is dropped.
struct Temporary {
    path: tempfile::TempPath,
    file: File,
}

impl Temporary {
    fn create(directory: &Path) -> Result<Self> {
        files::create_directory(directory)?;
        let mut builder = tempfile::Builder::new();
        // Private, as everything is that is kept.
        let made = builder
            .permissions(quipu_files::file_permissions())
            .tempfile_in(directory)
            .map_err(FileError::at("create a file in", directory))?;
        let (file, path) = made.into_parts();
        Ok(Self { path, file })
    }
}

/// Hands on what it reads, and writes it to a file at the same time.
struct Tee<'t, R> {
    source: R,
    to: &'t mut File,
    hash: Sha256,
    size: u64,
    /// Why the file did not take it.
    refused: Option<io::Error>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.size += read as u64;
        if let Err(error) = self.to.write_all(&buffer[..read]) {
            self.refused = Some(error);
            return Err(io::Error::other("the copy could not be written"));
        }
        Ok(read)
    }
}

/// How what is there compares with what comes.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    Same,
    /// It begins with all that comes.
    Longer,
    /// What comes begins with all of it.
    Shorter,
    Other,
}

fn compare(there: &Path, comes: &Path, size: u64) -> Result<Compared> {
    let open = |path: &Path| {
        let file = File::open(path).map_err(FileError::at("read", path))?;
        Ok::<_, FileError>(io::BufReader::with_capacity(64 * 1024, file))
    };
    let metadata = std::fs::metadata(there).map_err(FileError::at("read", there))?;
    let both = metadata.len().min(size);
    let (mut a, mut b) = (open(there)?.take(both), open(comes)?.take(both));
    let (mut left, mut right) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        let n = a.read(&mut left).map_err(FileError::at("read", there))?;
        if n == 0 {
            break;
        }
        let same = b.read_exact(&mut right[..n]);
        same.map_err(FileError::at("read", comes))?;
        if left[..n] != right[..n] {
            return Ok(Compared::Other);
        }
    }
    Ok(match metadata.len().cmp(&size) {
        std::cmp::Ordering::Equal => Compared::Same,
        std::cmp::Ordering::Greater => Compared::Longer,
        std::cmp::Ordering::Less => Compared::Shorter,
    })
}
