//! Manifests: what was kept of a log, one line per snapshot.
//!
//! A line counts when its newline is there. What follows the last newline is what a crash left of a
//! line that nobody was told of: it is not read, and cut off before the next line is appended.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use quipu_model::hex;
use serde::{Deserialize, Serialize};

use super::{ArchiveError, CHUNK, ChunkRef, Inner, Meta, Snapshot, Source, SourceKey};
use crate::{FileError, files};

/// The format of the lines. It is kept for good: readers must know every format there ever was.
const FORMAT: u64 = 1;

/// A line as it is in the file.
#[derive(Serialize, Deserialize)]
struct Line {
    v: u64,
    agent: String,
    /// The path, with U+FFFD for what is not UTF-8; then `path_hex` has it exactly.
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    part: Option<String>,
    taken: String,
    size: u64,
    modified: Option<String>,
    grown: bool,
    keep: u64,
    chunks: Vec<LineChunk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
    /// What the line is checked by; put behind everything else by [`seal`]. Older lines have none.
    #[serde(default, skip_serializing)]
    sum: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct LineChunk {
    id: String,
    len: u32,
}

/// Writes the line of a snapshot, whose first `kept` chunks are those of the snapshot before.
pub(super) fn line_of(snapshot: &Snapshot, grown: bool, kept: usize) -> io::Result<Vec<u8>> {
    let key = &snapshot.key;
    let bytes = key.path.as_os_str().as_bytes();
    let (kept, added) = snapshot.chunks.split_at(kept);
    let line = Line {
        v: FORMAT,
        agent: key.agent.clone(),
        path: String::from_utf8_lossy(bytes).into_owned(),
        path_hex: key.path.to_str().is_none().then(|| hex::encode(bytes)),
        part: key.part.clone().filter(|part| !part.is_empty()),
        taken: snapshot.taken.to_string(),
        size: snapshot.size,
        modified: snapshot.modified.map(|at| at.to_string()),
        grown,
        keep: kept.last().map_or(0, ChunkRef::end),
        chunks: added
            .iter()
            .map(|chunk| LineChunk {
                id: chunk.id.to_string(),
                len: chunk.len,
            })
            .collect(),
        meta: snapshot.meta.clone(),
        sum: None,
    };
    Ok(seal(serde_json::to_vec(&line)?))
}

/// Ends a line with what it is checked by: the first sixteen digits of the SHA-256 of everything before it.
fn seal(mut line: Vec<u8>) -> Vec<u8> {
    line.pop();
    let sum = sum_of(&line);
    line.extend_from_slice(format!(",\"sum\":\"{sum}\"}}\n").as_bytes());
    line
}

fn sum_of(before: &[u8]) -> String {
    let mut sum = crate::address::Digest::of(before).to_string();
    sum.truncate(16);
    sum
}

/// Whether a line is what was written. One without a sum was written by an earlier version.
fn is_sealed(text: &[u8], sum: Option<&str>) -> bool {
    let Some(sum) = sum else {
        return true;
    };
    let end = format!(",\"sum\":\"{sum}\"}}\n");
    let before = text.strip_suffix(end.as_bytes());
    before.is_some_and(|before| sum_of(before) == sum)
}

/// Reads a manifest. `None` when it is not there, or holds no whole line.
pub(super) fn read(path: &Path) -> Result<Option<Source>, ArchiveError> {
    match std::fs::read(path) {
        Ok(bytes) => parse(&bytes, path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(FileError::at("read", path)(e).into()),
    }
}

fn parse(bytes: &[u8], path: &Path) -> Result<Option<Source>, ArchiveError> {
    let mut source: Option<Source> = None;
    let mut end = 0;
    for (index, text) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !text.ends_with(b"\n") {
            break;
        }
        end += text.len() as u64;
        let damaged = |why| ArchiveError::Manifest {
            path: path.to_owned(),
            line: index + 1,
            why,
        };
        let line = decode(text, path)?.map_err(damaged)?;
        let source = source.get_or_insert_with(|| Source {
            key: SourceKey::new("", ""),
            versions: Vec::new(),
        });
        apply(source, line, end).map_err(damaged)?;
    }
    Ok(source)
}

/// The line, or what is wrong with it.
fn decode(text: &[u8], path: &Path) -> Result<Result<Line, String>, ArchiveError> {
    /// A line of a later format may lack fields that this one has, so its format is looked at alone.
    #[derive(Deserialize)]
    struct Format {
        v: u64,
    }
    let newer = |format| ArchiveError::Newer {
        path: path.to_owned(),
        format,
    };
    match serde_json::from_slice::<Line>(text) {
        // Whatever its format is said to be: a flipped digit is not a later version.
        Ok(line) if !is_sealed(text, line.sum.as_deref()) => {
            Ok(Err("it is not what was written".to_owned()))
        }
        Ok(line) if line.v == FORMAT => Ok(Ok(line)),
        Ok(line) => Err(newer(line.v)),
        Err(e) => match serde_json::from_slice(text) {
            Ok(Format { v }) if v != FORMAT => Err(newer(v)),
            _ => Ok(Err(e.to_string())),
        },
    }
}

/// Adds a line, which ends at `end` in the manifest, to what the lines before it say.
fn apply(source: &mut Source, line: Line, end: u64) -> Result<(), String> {
    let key = SourceKey {
        agent: line.agent,
        path: path_of(line.path, line.path_hex)?,
        part: line.part.filter(|part| !part.is_empty()),
    };
    let time = |text: String| {
        text.parse::<Timestamp>()
            .map_err(|e| format!("{text:?} is no time: {e}"))
    };
    let mut before_size = 0;
    let mut version = 1;
    let mut chunks = Vec::new();
    if let Some(before) = source.versions.last_mut() {
        if key != source.key {
            return Err("it is about another log than the line before".to_owned());
        }
        before_size = before.size;
        version = before.version + u32::from(!line.grown);
        let kept = before
            .chunks
            .partition_point(|chunk| chunk.end() <= line.keep);
        if line.grown {
            // What a version was before it grew is its own beginning, so only its last state is kept.
            chunks = std::mem::take(&mut before.chunks);
            chunks.truncate(kept);
            source.versions.pop();
        } else {
            chunks.extend_from_slice(&before.chunks[..kept]);
        }
    }
    let mut size = chunks.last().map_or(0, ChunkRef::end);
    if size != line.keep {
        return Err(format!("no chunk ends at byte {}", line.keep));
    }
    for LineChunk { id, len } in line.chunks {
        if len == 0 || len as usize > CHUNK {
            return Err(format!("a chunk cannot be {len} bytes long"));
        }
        let id = id.parse().map_err(|e| format!("a chunk's id is {e}"))?;
        chunks.push(ChunkRef {
            id,
            len,
            offset: size,
        });
        size += u64::from(len);
    }
    if size != line.size {
        return Err(format!(
            "its chunks hold {size} bytes, not the {} it says",
            line.size
        ));
    }
    if line.grown && size < before_size {
        return Err("it says that the log has grown, and is shorter".to_owned());
    }
    source.key = key.clone();
    source.versions.push(Snapshot {
        key,
        version,
        size,
        taken: time(line.taken)?,
        modified: line.modified.map(time).transpose()?,
        chunks,
        meta: line.meta,
        manifest_end: end,
    });
    Ok(())
}

fn path_of(path: String, path_hex: Option<String>) -> Result<PathBuf, String> {
    let Some(digits) = path_hex else {
        return Ok(path.into());
    };
    let bytes = hex::decode(&digits).ok_or_else(|| format!("{digits:?} is not hex"))?;
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

/// Appends the line of a snapshot that was made knowing the first `expected_end` bytes of the manifest.
/// Gives where the line ends.
pub(super) fn append(
    archive: &Inner,
    key: &SourceKey,
    expected_end: u64,
    line: &[u8],
) -> Result<u64, ArchiveError> {
    let path = archive.sources.path_of(&key.id());
    let conflict = || ArchiveError::Conflict {
        of: key.path.clone(),
    };
    let mut file = open_locked(&path, true)?.ok_or_else(conflict)?;
    // `keep` counts on the line before, so nobody may have come between.
    let len = file
        .metadata()
        .map_err(FileError::at("look at", &path))?
        .len();
    if len < expected_end {
        return Err(conflict());
    }
    if len > expected_end {
        let mut behind = Vec::new();
        file.seek(SeekFrom::Start(expected_end))
            .and_then(|_| file.read_to_end(&mut behind))
            .map_err(FileError::at("read", &path))?;
        if behind.contains(&b'\n') {
            return Err(conflict());
        }
        file.set_len(expected_end)
            .map_err(FileError::at("cut a torn line off", &path))?;
    }
    let written = match file.write(line) {
        Ok(written) if written == line.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(e) => Err(e),
    };
    if let Err(e) = written {
        // Should this fail too, the fragment has no newline: it is not read, and cut the next time.
        drop(file.set_len(expected_end));
        return Err(FileError::at("append to", path)(e).into());
    }
    archive.unsynced.note(&path);
    Ok(expected_end + line.len() as u64)
}

/// Removes a manifest, and says whether there was one.
pub(super) fn remove(archive: &Inner, key: &SourceKey) -> Result<bool, ArchiveError> {
    let path = archive.sources.path_of(&key.id());
    // Locked, so that nobody appends to what is about to vanish.
    let Some(_locked) = open_locked(&path, false)? else {
        return Ok(false);
    };
    std::fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
    archive.unsynced.note(&path);
    Ok(true)
}

/// Opens a manifest and keeps other writers out until the file is dropped. `None` when it is not there
/// and not to be made, or when it keeps being replaced.
pub(super) fn open_locked(path: &Path, create: bool) -> Result<Option<File>, FileError> {
    let mut options = quipu_files::options();
    options.read(true).append(true).create(create);
    // A link could lead anywhere.
    options.custom_flags(libc::O_NOFOLLOW);
    // The file may be removed between opening and locking it; then the lock is on the wrong one.
    for _ in 0..8 {
        let file = if create {
            files::with_directory_of(path, "open", || options.open(path))?
        } else {
            match options.open(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => opened.map_err(FileError::at("open", path))?,
            }
        };
        file.lock().map_err(FileError::at("lock", path))?;
        let ours = file.metadata().map_err(FileError::at("look at", path))?;
        if std::fs::symlink_metadata(path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
        {
            return Ok(Some(file));
        }
    }
    Ok(None)
}
