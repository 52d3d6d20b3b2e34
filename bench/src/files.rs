//! Files and directories.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Every log below a directory, with its size.
pub(crate) fn logs(home: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let (mut logs, mut left) = (Vec::new(), vec![home.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            } else if entry
                .path()
                .extension()
                .is_some_and(|ending| ending == "jsonl")
            {
                logs.push((entry.path(), entry.metadata()?.len()));
            }
        }
    }
    logs.sort();
    Ok(logs)
}

/// What a file or a directory takes.
pub(crate) fn size_of(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path)? {
        sum += size_of(&entry?.path())?;
    }
    Ok(sum)
}

/// Removes a directory, if it is there.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a file.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = fs::File::create(path).and_then(|mut file| file.write_all(bytes));
    written.with_context(|| format!("write {}", path.display()))
}
