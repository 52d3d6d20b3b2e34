//! The tools that people would use, on the same logs. Each says in its own way where something is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::corpus::{Corpus, From};
use crate::command::{Took, run_into};
use crate::files::put;
use crate::peers;

/// What a tool found: in which log, on which line from 0, and what, where it says so.
type Found = Vec<(usize, usize, Option<String>)>;

/// What a tool made of some logs.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) took: Took,
    pub(super) bytes: usize,
    pub(super) all: usize,
    pub(super) hits: usize,
    /// Which of the secrets it found, in the order of the corpus.
    pub(super) found: Vec<bool>,
    /// Findings on lines without a secret.
    pub(super) clean: usize,
    /// Those of them on lines with a decoy.
    pub(super) decoys: usize,
}

/// Some of the logs, in a directory of their own: some tools take long.
struct Slice<'a> {
    corpus: &'a Corpus,
    directory: PathBuf,
    logs: usize,
    bytes: usize,
}

impl<'a> Slice<'a> {
    fn new(corpus: &'a Corpus, directory: &Path, most: usize) -> Result<Self> {
        crate::files::remove(directory)?;
        let (mut logs, mut bytes) = (0, 0);
        for log in &corpus.logs {
            if logs > 0 && bytes + log.bytes.len() > most {
                break;
            }
            let path = directory.join(&log.name);
            fs::create_dir_all(path.parent().context("a directory")?)?;
            put(&path, &log.bytes)?;
            logs += 1;
            bytes += log.bytes.len();
        }
        Ok(Self {
            corpus,
            directory: fs::canonicalize(directory)?,
            logs,
            bytes,
        })
    }

    /// Which log a path is.
    fn log(&self, path: &str) -> Option<usize> {
        let path = Path::new(path);
        let name = path.strip_prefix(&self.directory).unwrap_or(path);
        let name = name.strip_prefix("./").unwrap_or(name);
        self.corpus
            .logs
            .iter()
            .position(|log| Path::new(&log.name) == name)
    }

    fn score(&self, name: &'static str, took: Took, found: &Found) -> Peer {
        let mut by_line: BTreeMap<(usize, usize), Vec<Option<&str>>> = BTreeMap::new();
        for (log, line, what) in found {
            by_line
                .entry((*log, *line))
                .or_default()
                .push(what.as_deref());
        }
        let (mut all, mut hits, mut taken) = (0, 0, BTreeSet::new());
        let mut each = vec![false; self.corpus.planted.len()];
        for (planted, is_found) in self.corpus.planted.iter().zip(&mut each) {
            let place = (planted.log, planted.line);
            taken.insert(place);
            let is_secret =
                !matches!(planted.from, From::Rule(kind) if kind != quipu_redact::Kind::Secret);
            if planted.log >= self.logs || !is_secret {
                continue;
            }
            all += 1;
            let found = by_line.get(&place).into_iter().flatten();
            *is_found = found
                .into_iter()
                .any(|what| overlaps(*what, planted.secret.as_deref()));
            hits += usize::from(*is_found);
        }
        let lures: BTreeSet<_> = self
            .corpus
            .decoys
            .iter()
            .map(|it| (it.log, it.line))
            .collect();
        let outside = by_line.iter().filter(|(place, _)| !taken.contains(place));
        let (mut clean, mut decoys) = (0, 0);
        for (place, what) in outside {
            clean += what.len();
            decoys += if lures.contains(place) { what.len() } else { 0 };
        }
        Peer {
            name,
            took,
            bytes: self.bytes,
            all,
            hits,
            found: each,
            clean,
            decoys,
        }
    }
}

/// Whether what was found is of a secret. A tool that names the line only is believed.
pub(super) fn overlaps(what: Option<&str>, secret: Option<&str>) -> bool {
    let (Some(what), Some(secret)) = (what, secret) else {
        return true;
    };
    let what = what.replace("\\n", "\n");
    let begin = |text: &str| text.chars().take(24).collect::<String>();
    what.contains(&begin(secret))
        || (what.len() >= 8 && secret.contains(&what))
        || (what.len() >= 8 && secret.contains(&begin(&what)))
}

/// Every tool that is there or can be installed; the names of those that cannot.
pub(super) fn measure(
    corpus: &Corpus,
    work: &Path,
    peers: &Path,
    slow: usize,
) -> Result<(Vec<Peer>, Vec<&'static str>)> {
    let (mut all, mut absent) = (Vec::new(), Vec::new());
    let whole = Slice::new(corpus, &work.join("whole"), usize::MAX)?;
    let part = Slice::new(corpus, &work.join("part"), slow)?;
    match peers::kingfisher(peers) {
        Some(program) => all.push(kingfisher(&whole, &program, work)?),
        None => absent.push("kingfisher"),
    }
    match peers::secretlint(peers) {
        Some(program) => all.push(secretlint(&whole, &program, work)?),
        None => absent.push("secretlint"),
    }
    match peers::detect_secrets(peers) {
        Some(program) => all.push(detect_secrets(&part, &program, work)?),
        None => absent.push("detect-secrets"),
    }
    Ok((all, absent))
}

fn kingfisher(slice: &Slice<'_>, program: &Path, work: &Path) -> Result<Peer> {
    #[derive(Deserialize)]
    struct Line {
        finding: Option<Place>,
    }
    #[derive(Deserialize)]
    struct Place {
        path: String,
        line: usize,
        snippet: String,
    }
    let out = work.join("kingfisher.jsonl");
    let scan = || -> Result<Took> {
        let mut command = Command::new(program);
        command.args([
            "scan",
            "--no-validate",
            "--no-update-check",
            "--no-dedup",
            "--jobs",
            "1",
        ]);
        command
            .args(["--format", "jsonl", "--output"])
            .arg(&out)
            .arg(&slice.directory);
        command.env("HOME", work);
        // It says by its status that something was found.
        run_into(command, None, &|_| true)
    };
    // The first time it prepares its rules, and keeps them.
    scan()?;
    let took = scan()?;
    let mut found = Found::new();
    for line in fs::read_to_string(&out)?.lines() {
        let line: Line = serde_json::from_str(line)?;
        if let Some(place) = line.finding
            && let Some(log) = slice.log(&place.path)
        {
            found.push((log, place.line.saturating_sub(1), Some(place.snippet)));
        }
    }
    Ok(slice.score("kingfisher", took, &found))
}

fn secretlint(slice: &Slice<'_>, program: &Path, work: &Path) -> Result<Peer> {
    #[derive(Deserialize)]
    struct Of {
        #[serde(rename = "filePath")]
        path: String,
        messages: Vec<Message>,
    }
    #[derive(Deserialize)]
    struct Message {
        range: [usize; 2],
    }
    let rules = work.join("secretlintrc.json");
    put(
        &rules,
        br#"{"rules":[{"id":"@secretlint/secretlint-rule-preset-recommend"}]}"#,
    )?;
    let out = work.join("secretlint.json");
    let mut command = Command::new(program);
    command
        .arg("--secretlintrc")
        .arg(&rules)
        .args(["--format", "json", "--no-maskSecrets"]);
    command.arg("**/*.jsonl").current_dir(&slice.directory);
    let took = run_into(command, Some(&out), &|code| code <= 1)?;
    let mut found = Found::new();
    let all: Vec<Of> = serde_json::from_reader(std::io::BufReader::new(File::open(&out)?))?;
    for of in all {
        let Some(log) = slice.log(&of.path) else {
            continue;
        };
        let text = String::from_utf8_lossy(&slice.corpus.logs[log].bytes);
        for message in of.messages {
            let (line, what) = by_utf16(&text, message.range);
            found.push((log, line, Some(what)));
        }
    }
    Ok(slice.score("secretlint", took, &found))
}

/// The line and the text of a range that is counted in units of UTF-16.
pub(super) fn by_utf16(text: &str, range: [usize; 2]) -> (usize, String) {
    let (mut at, mut line, mut what) = (0, 0, String::new());
    for c in text.chars() {
        if at >= range[1] {
            break;
        }
        if at >= range[0] {
            what.push(c);
        } else if c == '\n' {
            line += 1;
        }
        at += c.len_utf16();
    }
    (line, what)
}

fn detect_secrets(slice: &Slice<'_>, program: &Path, work: &Path) -> Result<Peer> {
    #[derive(Deserialize)]
    struct Report {
        results: BTreeMap<String, Vec<Place>>,
    }
    #[derive(Deserialize)]
    struct Place {
        line_number: usize,
    }
    let out = work.join("detect-secrets.json");
    let mut command = Command::new(program);
    command
        .args(["-c", "1", "scan", "--all-files", "."])
        .current_dir(&slice.directory);
    let took = run_into(command, Some(&out), &|code| code == 0)?;
    let report: Report = serde_json::from_str(&fs::read_to_string(&out)?)?;
    let mut found = Found::new();
    for (path, places) in report.results {
        if let Some(log) = slice.log(&path) {
            found.extend(
                places
                    .iter()
                    .map(|place| (log, place.line_number.saturating_sub(1), None)),
            );
        }
    }
    Ok(slice.score("detect-secrets", took, &found))
}
