//! Bringing many files to disk at once.
//!
//! An import writes thousands of small files. Syncing each would take longer than all the rest, so the
//! importer writes a batch, then asks once.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::FileError;

/// Up to so many files are synced one by one. Syncing the file system is quicker for more, but waits for
/// what everybody else has written as well.
const FEW: usize = 64;

/// What was written and may not be on disk yet.
#[derive(Debug, Default)]
pub(crate) struct Unsynced {
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    paths: BTreeSet<PathBuf>,
    /// There were more than are remembered.
    many: bool,
}

impl Unsynced {
    /// Remembers that a file was written, or put into its directory.
    pub(crate) fn note(&self, path: &Path) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.many {
            return;
        }
        // The directory holds the name, and its own name is in the one above.
        let paths = path.ancestors().take(3).map(Path::to_owned);
        written.paths.extend(paths);
        // Only where the whole can be synced instead.
        if cfg!(target_os = "linux") && written.paths.len() > FEW {
            *written = Written {
                many: true,
                ..Written::default()
            };
        }
    }

    /// Brings everything that was noted to disk. All of it is below `root`.
    pub(crate) fn sync(&self, root: &Path) -> Result<(), FileError> {
        let lock = || self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = std::mem::take(&mut *lock());
        let synced = if written.many {
            sync_all(root)
        } else {
            sync_each(&written.paths)
        };
        synced.inspect_err(|_| {
            // Another attempt has to try them all again.
            let mut again = lock();
            again.many |= written.many;
            again.paths.extend(written.paths);
        })
    }
}

/// Brings the file system to disk that this directory is on.
#[cfg(target_os = "linux")]
fn sync_all(root: &Path) -> Result<(), FileError> {
    use std::os::fd::AsRawFd as _;

    let directory = match File::open(root) {
        // Nothing was ever written.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(FileError::at("open", root))?,
    };
    #[expect(unsafe_code, reason = "std has no syncfs")]
    // SAFETY: the descriptor is open until `directory` is dropped; no memory is passed.
    let failed = unsafe { libc::syncfs(directory.as_raw_fd()) } != 0;
    if failed {
        return Err(FileError::at("sync", root)(io::Error::last_os_error()));
    }
    Ok(())
}

/// Never asked for where it cannot be done.
#[cfg(not(target_os = "linux"))]
fn sync_all(_root: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Brings these files and directories to disk. One that was removed since needs no syncing.
fn sync_each<P: AsRef<Path>>(paths: &BTreeSet<P>) -> Result<(), FileError> {
    for path in paths {
        let path = path.as_ref();
        match File::open(path).and_then(|file| file.sync_all()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            result => result.map_err(FileError::at("sync", path))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_what_is_there_and_passes_over_what_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        File::create(&file).unwrap();
        let unsynced = Unsynced::default();
        unsynced.note(&file);
        unsynced.sync(root.path()).unwrap();
        unsynced.sync(&root.path().join("never made")).unwrap();
        let gone = root.path().join("gone");
        sync_each(&BTreeSet::from([root.path(), &file, &gone])).unwrap();
    }
}
