//! Brings the documents of a task together, line by line.
//!
//! What was shown and what was said to the model go in step: each of the former names the last of the latter
//! before it, or both have times. Written in that order, a task that grows grows at its end.

use std::fs::{self, File};
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use quipu_model::json::{Node, Tape};

use super::TASK;
use super::wire::{HISTORY_FILE, ITEM_FILE, META_FILE, OLD_SHOWN_FILE, SHOWN_FILE, TASK_FILE};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// A document that is longer is no task's.
const LONGEST: u64 = 256 << 20;

/// Takes tasks out of a directory: that of a task, or that of all tasks.
pub(super) struct Tasks;

impl Gather for Tasks {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let root = root(from)?;
        let mut tasks = Vec::new();
        if is_task(root) {
            tasks.push(root.to_path_buf());
        } else {
            for entry in fs::read_dir(root)? {
                let path = entry?.path();
                if is_task(&path) {
                    tasks.push(path);
                }
            }
            tasks.sort();
        }
        let mut parts = Vec::new();
        for task in tasks {
            // A name that is no text could not be asked for again.
            if let Some(id) = task.file_name().and_then(|name| name.to_str()) {
                parts.push(Part {
                    id: id.to_owned(),
                    stamp: stamp(&task)?,
                });
            }
        }
        Ok(parts)
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let root = root(from)?;
        let task = if is_task(root) {
            root.to_path_buf()
        } else {
            root.join(part)
        };
        write_task(&task, part, to)
    }

    fn dialect(&self) -> Dialect {
        TASK
    }

    fn holds(&self, directory: &Path) -> bool {
        is_task(directory)
    }
}

fn root<'a>(from: &Gathered<'a>) -> Result<&'a Path, GatherError> {
    match from {
        Gathered::Tree(root) => Ok(root),
        _ => Err(GatherError::Unknown("a task is a directory".to_owned())),
    }
}

fn is_task(path: &Path) -> bool {
    [HISTORY_FILE, SHOWN_FILE, OLD_SHOWN_FILE]
        .iter()
        .any(|name| path.join(name).is_file())
}

/// Sizes and times of the documents.
fn stamp(task: &Path) -> Result<String, GatherError> {
    let mut stamp = String::new();
    for name in [HISTORY_FILE, SHOWN_FILE, OLD_SHOWN_FILE, META_FILE] {
        let Ok(data) = fs::metadata(task.join(name)) else {
            continue;
        };
        let changed = data
            .modified()?
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        for number in [u128::from(data.len()), changed] {
            stamp.push_str(&number.to_string());
            stamp.push(':');
        }
    }
    Ok(stamp)
}

fn write_task(task: &Path, id: &str, to: &mut dyn Write) -> Result<(), GatherError> {
    let history = read(task.join(HISTORY_FILE))?;
    let shown = match read(task.join(SHOWN_FILE))? {
        Some(shown) => Some(shown),
        None => read(task.join(OLD_SHOWN_FILE))?,
    };
    let meta = read(task.join(META_FILE))?;
    let item = read(task.join(ITEM_FILE))?;
    let (mut tapes, empty) = ([const { None }; 4], String::new());
    let documents =
        [&history, &shown, &meta, &item].map(|document| document.as_ref().unwrap_or(&empty));
    for (tape, document) in tapes.iter_mut().zip(documents) {
        let mut read = Tape::new();
        if read.read(document, 128).is_ok() {
            *tape = Some(read);
        }
    }
    let root = |index: usize| -> Option<Node<'_>> {
        let tape: &Tape = tapes.get(index)?.as_ref()?;
        Some(tape.root(documents.get(index)?))
    };
    let list = |index: usize| root(index).into_iter().flat_map(Node::items);

    let has_history = list(0).next().is_some();
    let facts = Facts {
        id,
        history: has_history,
        item: root(3),
    };
    line(TASK_FILE, 0, &facts.to_text(), to)?;
    let mut said = list(0).enumerate().peekable();
    let used = root(2).and_then(|meta| meta.get("model_usage"));
    let mut used = used
        .into_iter()
        .flat_map(Node::items)
        .enumerate()
        .peekable();
    for (index, row) in list(1).enumerate() {
        let ts = row.get("ts").and_then(|n| n.as_i64());
        let before = row.get("conversationHistoryIndex").and_then(|n| n.as_i64());
        while let Some((index, message)) = said.next_if(|(index, message)| match (before, ts) {
            (Some(before), _) => i64::try_from(*index).is_ok_and(|index| index <= before),
            (None, Some(ts)) => message
                .get("ts")
                .and_then(|n| n.as_i64())
                .is_some_and(|at| at <= ts),
            (None, None) => false,
        }) {
            line(HISTORY_FILE, index, message.raw().get(), to)?;
        }
        while let Some((index, model)) = used.next_if(|(_, model)| {
            let at = model.get("ts").and_then(|n| n.as_i64());
            at.zip(ts).is_some_and(|(at, ts)| at <= ts)
        }) {
            line(META_FILE, index, model.raw().get(), to)?;
        }
        line(SHOWN_FILE, index, row.raw().get(), to)?;
    }
    for (index, message) in said {
        line(HISTORY_FILE, index, message.raw().get(), to)?;
    }
    for (index, model) in used {
        line(META_FILE, index, model.raw().get(), to)?;
    }
    Ok(())
}

/// What is said of a task before its lines: only what does not change while it grows.
struct Facts<'a> {
    id: &'a str,
    history: bool,
    item: Option<Node<'a>>,
}

impl Facts<'_> {
    fn to_text(&self) -> String {
        const LASTING: [&str; 6] = [
            "number",
            "ts",
            "task",
            "workspace",
            "parentTaskId",
            "rootTaskId",
        ];
        let id = quipu_model::Json::string(self.id);
        let mut text = format!("{{\"id\":{},\"history\":{}", id.get(), self.history);
        for key in LASTING {
            if let Some(value) = self.item.and_then(|item| item.get(key)) {
                for part in [",\"", key, "\":", value.raw().get()] {
                    text.push_str(part);
                }
            }
        }
        text.push('}');
        text
    }
}

fn line(file: &str, index: usize, row: &str, to: &mut dyn Write) -> Result<(), GatherError> {
    // Line ends in JSON are never inside of its strings.
    let row = row.replace(['\n', '\r'], " ");
    writeln!(
        to,
        "{{\"file\":\"{file}\",\"index\":{index},\"row\":{row}}}"
    )?;
    Ok(())
}

/// A document as text; `None` when it is not there.
fn read(path: PathBuf) -> Result<Option<String>, GatherError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(GatherError::Unknown(format!(
            "a document of more than {LONGEST} bytes"
        )));
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_start_matches('\u{feff}').to_owned()))
}
