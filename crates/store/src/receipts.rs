//! Receipts of what was removed from a home, written before titles were masked.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use quipu_redact::Guard;
use serde_json::Value;

/// What of a receipt comes from logs.
const FROM_LOGS: [&str; 4] = ["title", "project", "path", "part"];

/// Masks secrets in the receipts of a home. Gives those that could not be masked, and why.
pub(crate) fn mask(home: &Path, guard: &Guard) -> Vec<(PathBuf, io::Error)> {
    let directory = home.join("receipts");
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![(directory, error)],
    };
    let mut refused = Vec::new();
    for entry in entries.flatten() {
        let is_receipt = entry.file_name().to_string_lossy().starts_with("prune-");
        if is_receipt && let Err(error) = mask_one(&entry.path(), guard) {
            refused.push((entry.path(), error));
        }
    }
    refused
}

fn mask_one(path: &Path, guard: &Guard) -> io::Result<()> {
    let mut receipt: Value = serde_json::from_slice(&fs::read(path)?)?;
    if !mask_value(&mut receipt, None, guard) {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer_pretty(&mut file, &receipt)?;
    writeln!(file)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Whether anything was masked. A receipt nests three deep; whatever nests deeper than the parser lets it is refused.
fn mask_value(value: &mut Value, name: Option<&str>, guard: &Guard) -> bool {
    match value {
        Value::String(text) if name.is_some_and(|name| FROM_LOGS.contains(&name)) => {
            let masked = guard.mask_path(text).into_owned();
            let changed = masked != *text;
            *text = masked;
            changed
        }
        Value::Array(items) => {
            let masked = items.iter_mut().map(|item| mask_value(item, name, guard));
            masked.filter(|masked| *masked).count() > 0
        }
        Value::Object(fields) => {
            let masked = fields
                .iter_mut()
                .map(|(name, field)| mask_value(field, Some(name), guard));
            masked.filter(|masked| *masked).count() > 0
        }
        _ => false,
    }
}
