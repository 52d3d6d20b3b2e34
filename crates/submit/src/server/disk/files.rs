//! Small files that are written whole, and directories that are brought to disk.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest file that is read: a receipt, a deletion, the state of an upload.
const MAX_FILE: u64 = 64 << 10;

/// Brings the names in a directory to disk.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a directory in another, so that it is still there after a crash.
pub(super) fn create_below(above: &Path, name: &str) -> io::Result<()> {
    let path = above.join(name);
    if !path.is_dir() {
        quipu_files::create_directory(&path)?;
    }
    // Whoever made it may not have come so far.
    sync_directory(above)
}

/// Writes a new file and brings it to disk.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    let mut file = quipu_files::options()
        .write(true)
        .create_new(true)
        .open(path)?;
    file.write_all(&text)?;
    file.sync_all()
}

/// Reads a file that was written so; `None` when there is none.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] when it is something else.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match File::open(path) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        file => file?,
    };
    let mut text = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut text)?;
    // What the parser says may repeat what is there.
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Removes a file or a directory, if it is there.
pub(super) fn remove_any(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(it) if it.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
