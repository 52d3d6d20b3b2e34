//! Logs to measure with: sessions of Claude Code and Codex, made up, the same for the same seed.
//!
//! Shapes and sizes are like those of real logs: short lines of bookkeeping, code and command output with
//! much repetition, now and then a very long line, opaque reasoning that does not compress, sessions that go on
//! from others. What is in them is written down beside them ([`Truth`]).

mod claude;
mod codex;
pub(crate) mod dice;
pub(crate) mod planted;
mod session;
#[cfg(test)]
mod tests;
mod truth;
mod words;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use session::{Line, Pen};
pub(crate) use truth::{Tokens, Truth, Usage};

/// Changes with what is written, so that an older corpus is not taken for this one.
const EDITION: u32 = 2;

/// Logs, and what is in them where that is known.
pub(crate) struct Corpus {
    /// They lie below it as they do in somebody's home.
    pub(crate) home: PathBuf,
    pub(crate) truth: Option<Truth>,
}

impl Corpus {
    /// The logs of a home, or some that are made up and kept in a directory for the next time.
    pub(crate) fn get(home: Option<&Path>, directory: &Path, bytes: u64) -> Result<Self> {
        if let Some(home) = home {
            let home = fs::canonicalize(home).with_context(|| home.display().to_string())?;
            return Ok(Self { home, truth: None });
        }
        let place = directory.join(format!("{EDITION}-{bytes}"));
        if let Some(there) = Self::open(&place) {
            return Ok(there);
        }
        // Whole or not at all.
        let unfinished = directory.join(format!("{EDITION}-{bytes}.unfinished"));
        crate::files::remove(&unfinished)?;
        crate::files::remove(&place)?;
        crate::table::now("making up logs");
        let truth = write(&unfinished.join("home"), bytes, 1)?;
        let text = serde_json::to_string(&truth)?;
        fs::File::create(unfinished.join("truth.json"))?.write_all(text.as_bytes())?;
        fs::rename(&unfinished, &place)?;
        Self::open(&place).context("the logs are not what was written")
    }

    /// What was made up before, if it is as it was.
    fn open(place: &Path) -> Option<Self> {
        let home = place.join("home");
        let truth = fs::read_to_string(place.join("truth.json")).ok()?;
        let truth: Truth = serde_json::from_str(&truth).ok()?;
        let logs = crate::files::logs(&home).ok()?;
        let bytes: u64 = logs.iter().map(|log| log.1).sum();
        ((logs.len() as u64, bytes) == (truth.logs, truth.bytes)).then_some(Self {
            home,
            truth: Some(truth),
        })
    }
}

/// Writes about `bytes` of logs below `home`, as the two agents lay them out.
pub(crate) fn write(home: &Path, bytes: u64, seed: u64) -> Result<Truth> {
    let mut pen = Pen::new(seed);
    let mut truth = Truth::default();
    let mut before: Option<claude::Session> = None;
    while truth.bytes < bytes {
        let project = pen.dice.below(20);
        if pen.dice.chance(60) {
            let resumes = pen.dice.chance(5);
            let from = before.as_ref().filter(|_| resumes);
            let project = from.map_or(project, |from| from.project);
            let session = claude::session(&mut pen, project, from, &mut truth.claude);
            let path = format!(".claude/projects/-code-p{project}/{}.jsonl", session.id);
            truth.bytes += put(&home.join(path), &session.lines)?;
            account(&mut truth, &session.id, &session.lines);
            before = Some(session);
        } else {
            let session = codex::session(&mut pen, project, &mut truth.codex);
            let (day, moment) = (
                session.began.strftime("%Y/%m/%d"),
                session.began.strftime("%Y-%m-%dT%H-%M-%S"),
            );
            let id = &session.id;
            let path = format!(".codex/sessions/{day}/rollout-{moment}-{id}.jsonl");
            truth.bytes += put(&home.join(path), &session.lines)?;
            account(&mut truth, id, &session.lines);
        }
    }
    Ok(truth)
}

fn put(path: &Path, lines: &[Line]) -> Result<u64> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.text);
        text.push('\n');
    }
    let written = fs::File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("write {}", path.display()))?;
    Ok(text.len() as u64)
}

fn account(truth: &mut Truth, id: &str, lines: &[Line]) {
    truth.logs += 1;
    for tokens in lines.iter().filter_map(|line| line.unnamed) {
        truth.claude.unnamed_apart.add(tokens);
    }
    for planted in lines.iter().filter_map(|line| line.planted) {
        let phrase = planted::PHRASES[planted.0].text.to_owned();
        let sessions = truth.planted.entry(phrase).or_default();
        *sessions.entry(id.to_owned()).or_default() += 1;
    }
}

/// More lines of a session of Claude Code.
pub(crate) fn more(bytes: usize, seed: u64) -> String {
    let mut pen = Pen::new(seed);
    let mut text = String::new();
    loop {
        let session = claude::session(&mut pen, 1, None, &mut Usage::default());
        for line in session.lines {
            if text.len() + line.text.len() >= bytes {
                return text;
            }
            text.push_str(&line.text);
            text.push('\n');
        }
    }
}
