//! Which directory is a run, and which run a file belongs to.
//!
//! A run has flows (directories with transcripts in `llm` or receipts in `receipts`), or a journal, or both. Any
//! directory may have one of those names, so what is in them is looked at as well.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use quipu_model::json::{Node, Tape};

use super::receipt::{Document, Receipt, classify};
use super::run::{JOURNAL, SAID_IN, kind_of};
use super::scan::{self, DEPTH};
use super::{shape, time};

/// How many entries of a directory are looked at, and how many files are looked into.
const ENTRIES: usize = 256;
const SOME: usize = 8;

/// The documents of a run.
const DOCUMENTS: &[&str] = &["meta.json", "spec.json", "run.json", "run_state.json"];

/// How much of a file is looked at.
const HEAD: u64 = 64 << 10;

/// How many directories above a file its run can be.
const ABOVE: usize = 4;

/// Whether a directory is a run.
pub fn is_run(directory: &Path) -> bool {
    is_journal(&directory.join(JOURNAL))
        || (flows(directory).next().is_some() && is_above_flows(directory))
}

/// The run that a file is part of, or that a directory is or is in. A file that merely lies in the directory of a run
/// is not part of it; see [`run_around`].
pub fn run_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() || is_named_as_part(path) {
        run_around(path)
    } else {
        None
    }
}

/// The run that a file or directory lies in: the directory itself, or one above it.
pub fn run_around(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    let named = is_named_as_part(&real);
    let is_dir = real.is_dir();
    let above = real.ancestors().skip(usize::from(!is_dir));
    // A flow that lies in no run is a run of its own.
    let mut alone = None;
    for (up, directory) in above.take(ABOVE).enumerate() {
        // Looking through a directory takes time, and most files lie in no run.
        let is_likely = (up == 0 && is_dir) || named || has_documents(directory);
        if is_likely && is_run(directory) {
            return Some(directory.to_owned());
        }
        if alone.is_none() && is_flow(directory) {
            alone = Some(directory.to_owned());
            if directory.parent().is_some_and(is_run) {
                return directory.parent().map(Path::to_owned);
            }
        }
    }
    alone
}

/// Whether a file has a name and a place that files of runs have.
fn is_named_as_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let is_one_of = |names: &[&str], it: &OsStr| names.iter().any(|name| *name == it);
    is_one_of(DOCUMENTS, name) || name == JOURNAL || is_one_of(&SAID_IN, folder)
}

fn has_documents(directory: &Path) -> bool {
    let has = |name: &&str| is_plain_file(&directory.join(name));
    DOCUMENTS.iter().any(has) || has(&JOURNAL)
}

/// Whether the flows in a directory are those of one run: its own documents say so, or a receipt is of a run of its
/// name, or there is nothing but flows.
fn is_above_flows(directory: &Path) -> bool {
    if DOCUMENTS.iter().any(|name| says_run(&directory.join(name))) {
        return true;
    }
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    if flows(directory).any(|flow| run_in(&flow).is_some_and(|run| run == name)) {
        return true;
    }
    directories(directory).all(|path| is_flow(&path))
}

/// Whether a document says that it is about a run.
fn says_run(path: &Path) -> bool {
    let of_run = |node: Node<'_>| {
        let has = |key: &str| node.get(key).is_some();
        has("flow_keys") || has("run_id") || has("spec") || (has("id") && has("status"))
    };
    is_plain_file(path) && scan::document(path, of_run).unwrap_or(false)
}

/// The flows in a directory.
fn flows(directory: &Path) -> impl Iterator<Item = PathBuf> {
    directories(directory).filter(|path| is_flow(path))
}

/// Whether a directory is a flow: it has a transcript or a receipt.
pub fn is_flow(directory: &Path) -> bool {
    let is_real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let (llm, receipts) = (directory.join("llm"), directory.join("receipts"));
    let some = |of: &Path, ending| some_files(of, ending).into_iter();
    (is_real(&receipts) && some(&receipts, "json").any(|path| receipt(&path).is_some()))
        || (is_real(&llm) && some(&llm, "jsonl").any(|path| is_transcript(&path)))
}

/// The run that a receipt of a flow names.
fn run_in(flow: &Path) -> Option<String> {
    let receipts = some_files(&flow.join("receipts"), "json");
    receipts.iter().find_map(|path| receipt(path)?.run_id)
}

/// The receipt that a file is, if it is one.
fn receipt(path: &Path) -> Option<Box<Receipt>> {
    if !is_plain_file(path) {
        return None;
    }
    let of = |node: Node<'_>| match classify(node) {
        Document::Step(receipt) => Some(receipt),
        Document::Prompt { .. } | Document::Other => None,
    };
    scan::document(path, of).ok().flatten()
}

/// Whether a file is the transcript of a step: by its name, and by its first lines.
fn is_transcript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(stem) = name.strip_suffix(".jsonl") else {
        return false;
    };
    let is_one = |node: Node<'_>| {
        let timed = node.text("timestamp");
        shape::classify(node, None).is_some() && timed.is_some_and(|at| time::parse(&at).is_some())
    };
    stem.contains('-') && first_line(path, is_one)
}

/// Whether a file is the journal of a run.
fn is_journal(path: &Path) -> bool {
    first_line(path, |node| {
        kind_of(node).is_some()
            && node.text("run_id").is_some()
            && (node.text("ts").is_some() || node.text("timestamp").is_some())
            && (node.get("payload").is_some() || node.get("event").is_some())
    })
}

/// Whether one of the first lines of a file that are JSON at all is as it should be.
fn first_line(path: &Path, is_one: impl Fn(Node<'_>) -> bool) -> bool {
    let Some(file) = Some(path).filter(|path| is_plain_file(path)) else {
        return false;
    };
    let Ok(file) = File::open(file) else {
        return false;
    };
    let mut lines = BufReader::new(file.take(HEAD));
    let mut tape = Tape::new();
    let mut line = Vec::new();
    for _ in 0..4 {
        line.clear();
        if !matches!(lines.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            return false;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if let Ok(node) = tape.read(text, DEPTH) {
            return is_one(node);
        }
    }
    false
}

fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// What is in a directory, as far as it is looked at. Names that begin with a dot are not.
fn entries(directory: &Path) -> impl Iterator<Item = fs::DirEntry> {
    let listing = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    listing.filter(move |entry| !is_hidden(entry)).take(ENTRIES)
}

/// The directories in a directory. Links are not followed.
fn directories(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries(directory).filter(is_dir).map(|entry| entry.path())
}

/// A few files of a directory with this ending.
fn some_files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let has_ending = |path: &PathBuf| path.extension().is_some_and(|own| own == ending);
    entries(directory)
        .map(|entry| entry.path())
        .filter(has_ending)
        .take(SOME)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Dir, golden_session, write};
    use super::*;
    use crate::flow::FlowOptions;

    fn good() -> Dir {
        let (header, events) = golden_session();
        let (files, _, _) = write(&header, &events, &FlowOptions::default());
        let dir = Dir::new(header.run_id.as_str());
        for (name, bytes) in &files {
            dir.put(name, bytes);
        }
        dir
    }

    #[test]
    fn every_file_of_a_run_leads_to_it() {
        let dir = good();
        dir.put("events.jsonl", "").put("plan/notes/adr.md", "x");
        let run = fs::canonicalize(dir.path()).unwrap();
        for path in [
            "",
            "meta.json",
            "build",
            "build/llm",
            "build/receipts/impl-loop-code-implementer.json",
            "build/llm/impl-loop-code-implementer-claude.jsonl",
            "plan/notes/adr.md",
        ] {
            let path = dir.path().join(path);
            assert_eq!(
                run_around(&path).as_deref(),
                Some(&*run),
                "{}",
                path.display()
            );
        }
        // What an agent left beside the transcripts is not one of them.
        assert_eq!(run_of(&dir.path().join("plan/notes/adr.md")), None);
        // Without its documents it is known by the name that its receipts have.
        dir.remove("meta.json").remove("events.jsonl");
        assert!(is_run(&dir.path()));
        assert!(!is_run(dir.outside()));
    }

    #[test]
    fn a_journal_alone_is_a_run() {
        let dir = Dir::new("run-1");
        assert!(!is_run(&dir.path()));
        dir.put(
            "events.jsonl",
            r#"{"run_id": "run-1", "ts": "2025-12-09T14:30:22Z", "kind": "run_created", "payload": {}}"#,
        );
        assert!(is_run(&dir.path()));
        // That of another program is not.
        dir.put(
            "events.jsonl",
            r#"{"type": "session.start", "id": "1", "timestamp": "2025-12-09T14:30:22Z"}"#,
        );
        assert!(!is_run(&dir.path()));
    }

    #[test]
    fn directories_of_other_programs_are_not_runs() {
        let dir = Dir::new("work");
        dir.put("models/llm/weights.json", "{}")
            .put("shop/receipts/2025-12.json", r#"{"total": 12}"#)
            .put("chat/llm/a-b-c.jsonl", r#"{"x": 1}"#)
            .put("meta.json", "{}");
        assert!(!is_run(&dir.path()));
        assert_eq!(run_of(&dir.path().join("shop/receipts/2025-12.json")), None);
    }

    #[test]
    fn a_flow_in_a_directory_of_other_things_is_a_run_of_its_own() {
        let dir = good();
        let outside = dir.outside();
        fs::create_dir_all(outside.join("other/things")).unwrap();
        fs::rename(dir.path().join("build"), outside.join("build")).unwrap();
        fs::remove_dir_all(dir.path()).unwrap();
        let flow = fs::canonicalize(outside.join("build")).unwrap();
        assert_eq!(run_of(&flow.join("llm")).as_deref(), Some(&*flow));
    }
}
