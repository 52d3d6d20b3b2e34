//! The file of one run, open for writing.
//!
//! Owns the promise that line N has seq N: a sequence number is used up by a line that is wholly in
//! the file, and by nothing else. A write that fails half-way is cut off again before anything else
//! is written.

use std::fs::{DirBuilder, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quipu_exchange::Chain;
use quipu_exchange::lines::Limits;
use quipu_model::RunId;

use crate::Error;
use crate::history::History;
use crate::index::{Index, Mark};
use crate::medium::{DiskFile, Medium};
use crate::recover::{Mended, mend, survey, sync_directory_of};

/// A run's file, locked, checked and ready to be appended to.
pub struct Journal {
    run_id: RunId,
    parent_run_id: Option<RunId>,
    path: PathBuf,
    history: Arc<History>,
    /// The last event whose place was noted.
    noted: Mark,
    last_seq: u64,
    /// Where the last whole line ends.
    len: u64,
    /// How many bytes of a failed write may be behind that.
    fragment: u64,
    /// What the checksums of the lines so far come to.
    chain: Chain,
    mended: Mended,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("path", &self.path)
            .field("last_seq", &self.last_seq)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// Opens the file of a run, making it and its directory if need be. An existing file is checked
    /// to its end and continued; a torn tail is set aside, which [`Journal::mended`] tells.
    ///
    /// The file stays locked until the journal is dropped, so no other process can write to it.
    ///
    /// # Errors
    ///
    /// When another process has it open, when it is a symbolic link, when it holds another run, or
    /// when its events are not numbered 1 to n.
    pub fn open(path: &Path, run_id: &RunId, limits: Limits) -> Result<Self, Error> {
        // The working directory may change while the run is recorded.
        let path = &std::path::absolute(path).map_err(Error::io("find", path))?;
        create_directory(path.parent().unwrap_or(path))?;
        let file = open_locked(path, true)?;
        let mut found = survey(&file, path, limits, true)?;
        if let Some((in_file, _)) = &found.identity
            && in_file != run_id
        {
            return Err(Error::OtherRun {
                path: path.to_owned(),
                found: in_file.to_string(),
                expected: run_id.clone(),
            });
        }
        let mended = mend(&file, path, &mut found)?;
        // The name of a new file is in its directory, which has to reach the disk as well.
        sync_directory_of(path)?;
        let mut index = Index::of(found.entries);
        index.keep_beside(path);
        Ok(Self {
            run_id: run_id.clone(),
            noted: index.last(),
            history: Arc::new(History::new(Arc::new(file), index)),
            parent_run_id: found.identity.and_then(|(_, parent)| parent),
            path: path.to_owned(),
            last_seq: found.last_seq,
            len: found.end,
            fragment: 0,
            chain: found.chain,
            mended,
        })
    }

    /// A journal over any medium that holds nothing yet. For tests of failure.
    pub fn over(medium: Arc<dyn Medium>, path: &Path, run_id: &RunId) -> Self {
        Self {
            run_id: run_id.clone(),
            parent_run_id: None,
            path: path.to_owned(),
            history: Arc::new(History::new(medium, Index::default())),
            noted: Mark::START,
            last_seq: 0,
            len: 0,
            fragment: 0,
            chain: Chain::default(),
            mended: Mended::default(),
        }
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The parent that the file's events name. `None` also for a file without events.
    pub fn parent_run_id(&self) -> Option<&RunId> {
        self.parent_run_id.as_ref()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last sequence number; 0 when there is none.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Where the last line ends.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// What opening it mended.
    pub fn mended(&self) -> &Mended {
        &self.mended
    }

    pub(crate) fn medium(&self) -> &Arc<dyn Medium> {
        self.history.medium()
    }

    pub(crate) fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Appends the line of event `last_seq + 1`, whole or not at all. Puts its checksum into it before.
    pub(crate) fn append(&mut self, line: &mut Vec<u8>) -> Result<u64, Error> {
        self.cut_fragment()?;
        let chain = self.chain.seal(line);
        let mut done = 0;
        while done < line.len() {
            match self.medium().append(&line[done..]) {
                Ok(0) => return Err(self.give_up(done, io::ErrorKind::WriteZero.into())),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.give_up(done, e)),
            }
        }
        self.note(line);
        self.len += line.len() as u64;
        self.last_seq += 1;
        self.chain = chain;
        Ok(self.last_seq)
    }

    /// Notes the place of the line that was just written, if it is far enough from the last that was.
    fn note(&mut self, line: &[u8]) {
        let next = self.last_seq + 1;
        let mark = Mark {
            event: next,
            line: next,
            offset: self.len,
        };
        if self.noted.is_far_from(&mark) {
            self.history.note(mark, line);
            self.noted = mark;
        }
    }

    /// Undoes a write that failed after `done` bytes.
    fn give_up(&mut self, done: usize, error: io::Error) -> Error {
        self.fragment = done as u64;
        // If even this fails, it is tried again before the next line is written.
        match self.cut_fragment() {
            Ok(()) | Err(_) => Error::io("write to", &self.path)(error),
        }
    }

    /// Cuts off what a failed write left behind, so that no line is ever glued to it.
    fn cut_fragment(&mut self) -> Result<(), Error> {
        if self.fragment == 0 {
            return Ok(());
        }
        self.check_length(self.fragment)?;
        self.medium()
            .truncate(self.len)
            .map_err(Error::io("undo a partial write to", &self.path))?;
        self.fragment = 0;
        Ok(())
    }

    /// Checks that nobody moved, replaced or changed the file.
    pub(crate) fn check_in_place(&self) -> Result<(), Error> {
        in_place(&**self.medium(), &self.path)?;
        self.check_length(self.fragment)
    }

    fn check_length(&self, fragment: u64) -> Result<(), Error> {
        let found = self
            .medium()
            .size()
            .map_err(Error::io("look at", &self.path))?;
        let expected = self.len + fragment;
        if found == expected {
            return Ok(());
        }
        Err(Error::Changed {
            path: self.path.clone(),
            expected,
            found,
        })
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Readers may keep the file open; the lock must not last as long. If this fails, the end of
        // the process still releases it.
        drop(self.medium().unlock());
    }
}

pub(crate) fn in_place(medium: &dyn Medium, path: &Path) -> Result<(), Error> {
    if medium.is_in_place().map_err(Error::io("look at", path))? {
        return Ok(());
    }
    Err(Error::Replaced(path.to_owned()))
}

/// Makes a directory, private to the user, and all that it is in; brings their names to disk.
pub(crate) fn create_directory(directory: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|ancestor| !ancestor.exists())
        .collect();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(Error::io("create directory", directory))?;
    missing.into_iter().try_for_each(sync_directory_of)
}

/// Mends the end of a run's file without opening it for recording.
///
/// # Errors
///
/// As [`Journal::open`], and when there is no such file.
pub fn repair(path: &Path, limits: Limits) -> Result<Mended, Error> {
    let file = open_locked(path, false)?;
    // Its numbering is not ours to judge here: only the end is mended.
    let mut found = survey(&file, path, limits, false)?;
    mend(&file, path, &mut found)
}

/// How often a file that is taken is looked at again, and how soon.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(1);

/// Takes the file of a run. Whoever asks whether a run is written has its lock for a moment, which makes nobody its writer.
fn lock(file: &DiskFile, path: &Path) -> Result<(), Error> {
    for look in 1.. {
        match file.file().try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if look < LOOKS => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => return Err(Error::Locked(path.to_owned())),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path)(e)),
        }
    }
    Ok(())
}

pub(crate) fn open_locked(path: &Path, create: bool) -> Result<DiskFile, Error> {
    // The file may be replaced between opening and locking it; then the lock is on the wrong one.
    for _ in 0..8 {
        let file = DiskFile::open(path, create).map_err(|e| match e.raw_os_error() {
            Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => Error::NotAFile(path.to_owned()),
            _ => Error::io("open", path)(e),
        })?;
        if !file
            .metadata()
            .map_err(Error::io("look at", path))?
            .is_file()
        {
            return Err(Error::NotAFile(path.to_owned()));
        }
        lock(&file, path)?;
        if file.is_in_place().map_err(Error::io("look at", path))? {
            return Ok(file);
        }
    }
    Err(Error::Replaced(path.to_owned()))
}
