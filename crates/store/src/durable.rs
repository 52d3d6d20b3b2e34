//! Bringing many files to disk at once.
//!
//! An import writes thousands of small files. Syncing each would take longer than all the rest, so the
//! importer writes a batch, then asks once.

#[cfg(any(test, not(target_os = "linux")))]
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
#[cfg(not(target_os = "linux"))]
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use crate::FileError;

/// What was written and may not be on disk yet.
///
/// Linux can sync a whole file system and tells when that failed, so nothing has to be remembered
/// there. Elsewhere it is a list of files.
#[derive(Debug, Default)]
pub(crate) struct Unsynced {
    #[cfg(not(target_os = "linux"))]
    paths: Mutex<BTreeSet<PathBuf>>,
}

#[cfg(target_os = "linux")]
impl Unsynced {
    /// Remembers that a file was written, or put into its directory.
    #[expect(clippy::unused_self, reason = "other systems need it")]
    pub(crate) fn note(&self, _path: &Path) {}

    /// Brings everything below `root` to disk.
    #[expect(clippy::unused_self, reason = "other systems need it")]
    pub(crate) fn sync(&self, root: &Path) -> Result<(), FileError> {
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
}

#[cfg(not(target_os = "linux"))]
impl Unsynced {
    /// Remembers that a file was written, or put into its directory.
    pub(crate) fn note(&self, path: &Path) {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        // The directory holds the name, and its own name is in the one above.
        paths.extend(path.ancestors().take(3).map(Path::to_owned));
    }

    /// Brings everything that was noted to disk.
    pub(crate) fn sync(&self, _root: &Path) -> Result<(), FileError> {
        let paths = std::mem::take(&mut *self.paths.lock().unwrap_or_else(PoisonError::into_inner));
        sync_each(&paths).inspect_err(|_| {
            // Another attempt has to try them all again.
            let mut again = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
            again.extend(paths.iter().cloned());
        })
    }
}

/// Brings these files and directories to disk. One that was removed since needs no syncing.
#[cfg(any(test, not(target_os = "linux")))]
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
