//! `file.*`: files beneath the root.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde_json::Value;

use super::builtin::{Done, failed, response};
use super::inputs::Inputs;
use super::{OperationContext, OperationError};
use crate::beneath::{PathError, Root, called};

/// The most bytes of a file that are read or written at once.
const MAX_FILE: u64 = 5 << 20;

enum Work {
    Append(String, String),
    Copy(String, String),
    Delete(String, bool),
    Exists(String),
    Read(String),
    Write(String, String),
}

pub(super) async fn run(operation: &str, inputs: Inputs<'_>, context: &OperationContext) -> Done {
    let text = |name| inputs.text(name);
    let work = match operation {
        "append" => Work::Append(text("path"), text("content")),
        "copy" => Work::Copy(text("from"), text("to")),
        "delete" => {
            let missing_ok = inputs.boolean("missing_ok").unwrap_or(false);
            Work::Delete(text("path"), missing_ok)
        }
        "exists" => Work::Exists(text("path")),
        "read" => Work::Read(text("path")),
        _ => Work::Write(text("path"), text("content")),
    };
    let root = context.root.clone();
    let done = tokio::task::spawn_blocking(move || work.run(&root)).await;
    done.unwrap_or_else(|_| Err(failed("the operation broke down")))
}

impl Work {
    fn run(self, root: &Path) -> Done {
        let root = Root::open(root).map_err(wrap)?;
        match self {
            Self::Append(path, content) => {
                let at = place(&root, &path)?;
                fits(&path, content.len())?;
                root.append(&at, content.as_bytes()).map_err(wrap)?;
                Ok(response([
                    ("path", path.into()),
                    ("bytes_written", content.len().into()),
                ]))
            }
            Self::Write(path, content) => {
                let at = place(&root, &path)?;
                fits(&path, content.len())?;
                root.write(&at, content.as_bytes()).map_err(wrap)?;
                Ok(response([
                    ("path", path.into()),
                    ("bytes_written", content.len().into()),
                ]))
            }
            Self::Copy(from, to) => {
                let (source, target) = (place(&root, &from)?, place(&root, &to)?);
                let bytes = root.read_all(&source, MAX_FILE).map_err(wrap)?;
                root.write(&target, &bytes).map_err(wrap)?;
                Ok(response([
                    ("path", to.into()),
                    ("bytes_written", bytes.len().into()),
                ]))
            }
            Self::Delete(path, missing_ok) => {
                let at = place(&root, &path)?;
                let deleted = match root.remove(&at) {
                    Ok(()) => true,
                    Err(error) if missing_ok && error.is_missing() => false,
                    Err(error) => return Err(wrap(error)),
                };
                Ok(response([
                    ("path", path.into()),
                    ("deleted", deleted.into()),
                ]))
            }
            Self::Exists(path) => {
                let at = place(&root, &path)?;
                let kind = match root.kind(&at) {
                    Ok(kind) => Some(kind),
                    Err(error) if error.is_missing() => None,
                    Err(error) => return Err(wrap(error)),
                };
                Ok(response([
                    ("exists", kind.is_some().into()),
                    ("is_file", (kind == Some(FileType::RegularFile)).into()),
                    ("kind", kind.map_or(Value::Null, |it| called(it).into())),
                ]))
            }
            Self::Read(path) => {
                let at = place(&root, &path)?;
                let bytes = root.read_all(&at, MAX_FILE).map_err(wrap)?;
                let size = bytes.len();
                let content = String::from_utf8(bytes)
                    .map_err(|_| failed(format!("{path} is not UTF-8 text")))?;
                Ok(response([
                    ("content", content.into()),
                    ("size", size.into()),
                ]))
            }
        }
    }
}

fn place(root: &Root, path: &str) -> Result<PathBuf, OperationError> {
    root.relative(path).map_err(wrap)
}

fn fits(path: &str, length: usize) -> Result<(), OperationError> {
    if length as u64 > MAX_FILE {
        return Err(failed(format!(
            "{path}: {length} bytes; at most {MAX_FILE} are written at once"
        )));
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "given to map_err")]
fn wrap(error: PathError) -> OperationError {
    failed(error.to_string())
}
