//! What is lost between any two formats: written into `docs/formats/matrix.md`, and held to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::round_trips::READ_BACK;
use super::{convert, fixture};
use crate::{Format, Report};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/matrix.md");

#[test]
fn the_matrix_in_the_docs_is_what_happens() {
    let home = tempfile::tempdir().unwrap();
    let mut sources: Vec<(String, PathBuf)> = Vec::new();
    for &format in READ_BACK {
        let place = home.path().join(format.as_str());
        let (path, _) = convert(&fixture("claude.jsonl"), format, &place);
        sources.push((format.as_str().to_owned(), path));
    }
    for name in ["claude.jsonl", "acp.jsonl", "inspect.json"] {
        let path = fixture(name);
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        sources.push((format!("{stem} (as its program writes it)"), path));
    }
    let page = page(&sources, home.path());
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let mut file = std::fs::File::create(PAGE).unwrap();
        std::io::Write::write_all(&mut file, page.as_bytes()).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/formats/matrix.md is not what happens; QUIPU_BLESS=1 writes it anew"
    );
}

fn page(sources: &[(String, PathBuf)], home: &Path) -> String {
    let mut page = String::from(HEAD);
    let targets: Vec<Format> = Format::ALL
        .iter()
        .copied()
        .filter(|format| format.shape() != crate::Shape::Tables)
        .collect();
    page.push_str("\n| from \\ to |");
    for target in &targets {
        write!(page, " {target} |").unwrap();
    }
    page.push_str("\n|---|");
    page.push_str(&"---|".repeat(targets.len()));
    page.push('\n');
    let mut lost: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let mut wrapped = lost.clone();
    let mut inferred = lost.clone();
    for (n, (name, path)) in sources.iter().enumerate() {
        write!(page, "| {name} |").unwrap();
        for target in &targets {
            let place = home.join(format!("to-{n}-{target}"));
            let (_, report) = convert(path, *target, &place);
            write!(page, " {} |", cell(&report)).unwrap();
            for (all, of) in [
                (&mut lost, &report.loss.dropped),
                (&mut wrapped, &report.loss.wrapped),
                (&mut inferred, &report.loss.inferred),
            ] {
                let those = all.entry(target.as_str()).or_default();
                those.extend(of.keys().map(ToString::to_string));
            }
        }
        page.push('\n');
    }
    page.push_str(AGAIN);
    for (n, (name, path)) in sources.iter().take(READ_BACK.len()).enumerate() {
        let format = READ_BACK[n];
        let (again, report) = convert(path, format, &home.join(format!("again-{n}")));
        let is_file = format.shape() == crate::Shape::File;
        let is_same = is_file && std::fs::read(path).unwrap() == std::fs::read(again).unwrap();
        let cell = if is_same {
            "the same bytes".to_owned()
        } else {
            format!("written anew: {}", cell(&report))
        };
        writeln!(page, "| {name} | {cell} |").unwrap();
    }
    page.push_str(TAIL);
    for target in &targets {
        writeln!(page, "\n### {target}\n\n{}.", first_up(target.about())).unwrap();
        for (word, all) in [
            ("Not carried", &lost),
            ("In another shape", &wrapped),
            ("Filled in", &inferred),
        ] {
            let Some(those) = all.get(target.as_str()).filter(|those| !those.is_empty()) else {
                continue;
            };
            let those: Vec<String> = those.iter().map(|what| format!("`{what}`")).collect();
            writeln!(page, "\n{word}: {}.", those.join(", ")).unwrap();
        }
    }
    page
}

fn first_up(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// `all` when nothing is lost, else how many events and how many kinds of fields are.
fn cell(report: &Report) -> String {
    let loss = &report.loss;
    if report.is_complete() {
        return "all".to_owned();
    }
    let events = loss.events - loss.carried;
    let kinds = loss.dropped.len();
    match events {
        0 if kinds == 1 => "−1 kind".to_owned(),
        0 => format!("−{kinds} kinds"),
        _ => format!("{}/{}, −{kinds} kinds", loss.carried, loss.events),
    }
}

const HEAD: &str = "\
# What is lost between any two formats

A test makes this page: it converts one session of Claude Code into every format that can be read, and each of those into every
format there is. The session has reasoning, a picture, edits, a failure, a refusal, a sub-agent, a compaction, and a call without
a result, so most of what can be lost is in it.

`all`: nothing is lost. `−3 kinds`: every event is there, but three kinds of what is known of them are not (the sizes of caches, say).
`20/24, −5 kinds`: 20 of 24 events are there. `--report FILE` says which, how often and where, for any conversion.
";

const AGAIN: &str = "
## The same format again

What somebody wrote in a format, written in that format again. A transcript, a page, a trajectory, a trace and an exchange transcript come back
from the archive in the same way (`import`, then `export`), because the archive keeps the document itself. A run directory that was imported
also comes back file by file, with the same bytes; the row below is `convert`, which writes it anew.

| format | comes back as |
|---|---|
";

const TAIL: &str = "
Parquet is not in the table, because its files hold many sessions; its page says what it holds.

## What each format cannot carry

All that was counted in the conversions above, by the format that was written.
";
