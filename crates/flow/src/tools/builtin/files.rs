//! Read, Write and Edit.

use std::io::{BufRead as _, BufReader};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::MAX_FILE;
use crate::beneath::Root;

#[derive(Deserialize)]
pub(super) struct Read {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

/// A file, or some lines of it, and a note where there is more.
pub(super) fn read(
    root: &Root,
    input: &Read,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let say = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", input.path);
    let path = root.relative(&input.path).map_err(|e| say(&e))?;
    let mut file = BufReader::with_capacity(64 << 10, root.read(&path).map_err(|e| say(&e))?);
    let first = input.offset.unwrap_or(1).max(1);
    let last = input.limit.map_or(u64::MAX, |n| first.saturating_add(n));
    let mut taken = Vec::new();
    let mut line = 1;
    if file.fill_buf().map_err(|e| say(&e))?.contains(&0) {
        return Err(say(&"it is not a text file"));
    }
    // In pieces of lines: a line may be longer than the buffer.
    loop {
        if cancel.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        let piece = file.fill_buf().map_err(|e| say(&e))?;
        if piece.is_empty() {
            break;
        }
        let end = line_end(piece);
        let piece = &piece[..end.unwrap_or(piece.len())];
        if line >= last {
            let next = format!("\n[There is more: go on with offset {line}.]");
            return Ok(text(&taken) + &next);
        }
        let length = piece.len();
        if line >= first {
            if taken.len() + length > usize::try_from(MAX_FILE).unwrap_or(usize::MAX) {
                let next = format!(
                    "\n[There is more: at most {MAX_FILE} bytes are given at once; go on with offset {line}.]"
                );
                return Ok(text(&taken) + &next);
            }
            taken.extend_from_slice(piece);
        }
        file.consume(length);
        line += u64::from(end.is_some());
    }
    if line < first {
        return Err(say(&format!("it has fewer than {first} lines")));
    }
    Ok(text(&taken))
}

/// Where the first line ends, its line break included.
fn line_end(piece: &[u8]) -> Option<usize> {
    piece.iter().position(|&b| b == b'\n').map(|at| at + 1)
}

/// The text, with a note where bytes of it are not text.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            String::from_utf8_lossy(bytes).into_owned()
                + "\n[Bytes that are not UTF-8 are shown as \u{fffd}; Edit refuses this file.]"
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Write {
    path: String,
    content: String,
}

pub(super) fn write(root: &Root, input: &Write, _: &CancellationToken) -> Result<String, String> {
    let say = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", input.path);
    let bytes = input.content.as_bytes();
    if bytes.len() as u64 > MAX_FILE {
        let length = bytes.len();
        return Err(say(&format!(
            "it would have {length} bytes; at most {MAX_FILE} are written at once"
        )));
    }
    let path = root.relative(&input.path).map_err(|e| say(&e))?;
    root.write(&path, bytes).map_err(|e| say(&e))?;
    Ok(format!("wrote {} bytes to {}", bytes.len(), input.path))
}

#[derive(Deserialize)]
pub(super) struct Edit {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn edit(root: &Root, input: &Edit, _: &CancellationToken) -> Result<String, String> {
    let say = |error: &dyn std::fmt::Display| format!("cannot edit {}: {error}", input.path);
    if input.old.is_empty() {
        return Err(say(&"old is empty; use Write for a new file"));
    }
    if input.old == input.new {
        return Err(say(&"old and new are the same"));
    }
    let path = root.relative(&input.path).map_err(|e| say(&e))?;
    let bytes = root.read_all(&path, MAX_FILE).map_err(|e| say(&e))?;
    let text = String::from_utf8(bytes).map_err(|_| say(&"it is not UTF-8 text"))?;
    let found = text.matches(&input.old).count();
    let done = match found {
        0 => return Err(say(&"old does not occur in it")),
        1 => text.replacen(&input.old, &input.new, 1),
        _ if input.replace_all => {
            let grows = input.new.len().saturating_sub(input.old.len());
            if (text.len() + grows.saturating_mul(found)) as u64 > MAX_FILE {
                return Err(say(&format!("it would have more than {MAX_FILE} bytes")));
            }
            text.replace(&input.old, &input.new)
        }
        n => {
            return Err(say(&format!(
                "old occurs {n} times in it; give more of the text around it, or set replace_all"
            )));
        }
    };
    if done.len() as u64 > MAX_FILE {
        return Err(say(&format!("it would have more than {MAX_FILE} bytes")));
    }
    root.write(&path, done.as_bytes()).map_err(|e| say(&e))?;
    let times = if found == 1 { "once" } else { "everywhere" };
    Ok(format!("replaced {times} in {} ({found})", input.path))
}
