//! Private directories, and files that appear whole or not at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// How old a temporary file is when nobody can be writing it any more.
const STALE: SignedDuration = SignedDuration::from_hours(1);

/// The operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried.
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn at(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self {
            action,
            path,
            source,
        }
    }
}

/// Makes a directory, private to the user, and all that it is in.
pub(crate) fn create_directory(directory: &Path) -> Result<(), FileError> {
    quipu_files::create_directory(directory).map_err(FileError::at("create directory", directory))
}

/// Tries something that needs the directory of `path`, making the directory if that was missing.
pub(crate) fn with_directory_of<T>(
    path: &Path,
    action: &'static str,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Result<T, FileError> {
    match attempt() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            create_directory(path.parent().unwrap_or(path))?;
            attempt()
        }
        other => other,
    }
    .map_err(FileError::at(action, path))
}

/// Puts a file into place: written beside, under a name of its own in `tmp`, then renamed. What was at
/// `path` is replaced.
pub(crate) fn place(path: &Path, bytes: &[u8], tmp: &Path) -> Result<(), FileError> {
    let (mut file, written) = create_temporary(tmp)?;
    let result = file
        .write_all(bytes)
        .map_err(FileError::at("write", &written))
        .and_then(|()| with_directory_of(path, "create", || std::fs::rename(&written, path)));
    if result.is_err() {
        // The first error is the one to tell. What cannot be removed is swept later.
        drop(std::fs::remove_file(&written));
    }
    result
}

/// Puts a file into place, unless there is one: then that stays. Says whether it was put.
pub(crate) fn place_if_absent(path: &Path, bytes: &[u8], tmp: &Path) -> Result<bool, FileError> {
    let (mut file, written) = create_temporary(tmp)?;
    let result = file
        .write_all(bytes)
        .map_err(FileError::at("write", &written))
        .and_then(|()| {
            with_directory_of(path, "create", || {
                match std::fs::hard_link(&written, path) {
                    Ok(()) => Ok(true),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    // The directory is missing.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Err(e),
                    // Not every file system can give a file two names.
                    Err(_) if path.exists() => Ok(false),
                    Err(_) => std::fs::rename(&written, path).map(|()| true),
                }
            })
        });
    // The other name of the file, or what was not put. What cannot be removed is swept later.
    drop(std::fs::remove_file(&written));
    result
}

/// A file of its own in `tmp`, and where it is.
pub(crate) fn create_temporary(tmp: &Path) -> Result<(File, PathBuf), FileError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = tmp.join(format!("{}-{number}", std::process::id()));
        let mut options = quipu_files::options();
        options.write(true).create_new(true);
        match with_directory_of(&path, "create", || options.open(&path)) {
            // Left by a process that had our id, or made by one that has it in another container.
            Err(e) if e.source.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((created?, path)),
        }
    }
}

/// Removes temporary files that were last written more than an hour before `now`, or only counts them.
/// Gives how many and how large.
pub(crate) fn sweep_temporary(
    tmp: &Path,
    now: Timestamp,
    dry_run: bool,
) -> Result<(u64, u64), FileError> {
    let entries = match std::fs::read_dir(tmp) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
        entries => entries.map_err(FileError::at("list", tmp))?,
    };
    let (mut files, mut bytes) = (0, 0);
    for entry in entries {
        let path = entry.map_err(FileError::at("list", tmp))?.path();
        let swept = match sweep_one(&path, now, dry_run) {
            // Its writer was quicker, and put it into place.
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            swept => swept.map_err(FileError::at("sweep", &path))?,
        };
        files += u64::from(swept.is_some());
        bytes += swept.unwrap_or(0);
    }
    Ok((files, bytes))
}

/// Removes a temporary file if it is stale, and gives its size then.
fn sweep_one(path: &Path, now: Timestamp, dry_run: bool) -> io::Result<Option<u64>> {
    let metadata = std::fs::symlink_metadata(path)?;
    // A time that no clock shows says nothing.
    let written = Timestamp::try_from(metadata.modified()?).ok();
    let is_stale = written.is_some_and(|written| now.duration_since(written) >= STALE);
    if !metadata.is_file() || !is_stale {
        return Ok(None);
    }
    if !dry_run {
        std::fs::remove_file(path)?;
    }
    Ok(Some(metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_put_into_place_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (tmp, file) = (root.path().join("tmp"), root.path().join("file"));
        place(&file, b"one", &tmp).unwrap();
        let error = place(&file.join("below"), b"two", &tmp).unwrap_err();
        assert!(error.to_string().contains("file/below"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
    }

    #[test]
    fn a_temporary_name_that_is_taken_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let (_file, taken) = create_temporary(root.path()).unwrap();
        let name = taken.file_name().unwrap().to_str().unwrap();
        let (pid, number) = name.split_once('-').unwrap();
        let number: u64 = number.parse().unwrap();
        // Other tests count on at the same time, so a few are taken ahead.
        for ahead in 1..100 {
            File::create(root.path().join(format!("{pid}-{}", number + ahead))).unwrap();
        }
        let (_file, free) = create_temporary(root.path()).unwrap();
        assert_ne!(free, taken);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 101);
    }
}
