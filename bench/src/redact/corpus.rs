//! Logs with secrets in them, and what is where.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::settings::{SETTINGS, plain};
use super::{decoys::DECOYS, held_out::HELD_OUT};
use crate::corpus;
use crate::files::{logs, put};
use quipu_redact::rule::expand;
use quipu_redact::{Kind, RuleSet};

/// How long a log is that is made up.
const LOG: usize = 2_000_000;

/// Logs, and what is in them.
pub(super) struct Corpus {
    pub(super) logs: Vec<Log>,
    pub(super) planted: Vec<Planted>,
    pub(super) decoys: Vec<Decoy>,
    pub(super) bytes: usize,
}

/// A log, whole.
pub(super) struct Log {
    /// Below the directory.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Where a secret comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    /// The list beside a corpus that was given.
    List,
    /// An example of a rule.
    Rule(Kind),
    /// A kind that the rules were not written by.
    HeldOut,
}

/// A secret.
pub(super) struct Planted {
    pub(super) log: usize,
    /// From 0.
    pub(super) line: usize,
    pub(super) kind: String,
    pub(super) setting: String,
    /// Unknown where an example does not say which part of it is the secret.
    pub(super) secret: Option<String>,
    pub(super) from: From,
}

/// What is none.
pub(super) struct Decoy {
    pub(super) log: usize,
    pub(super) line: usize,
    pub(super) kind: String,
    pub(super) text: String,
}

#[derive(Deserialize)]
struct Truth {
    file: String,
    line: usize,
    kind: String,
    ctx: String,
    secret: String,
}

#[derive(Deserialize)]
struct Lure {
    file: String,
    line: usize,
    kind: String,
    text: String,
}

impl Corpus {
    /// A corpus that was made elsewhere: logs, `truth.jsonl` and `decoys.jsonl`.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let directory =
            fs::canonicalize(directory).with_context(|| directory.display().to_string())?;
        let mut all = Vec::new();
        for (path, _) in logs(&directory)? {
            let name = path
                .strip_prefix(&directory)?
                .to_string_lossy()
                .into_owned();
            if !matches!(name.as_str(), "truth.jsonl" | "decoys.jsonl") {
                all.push(Log {
                    name,
                    bytes: fs::read(&path)?,
                });
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let place = |file: &str| all.binary_search_by(|log| log.name.as_str().cmp(file)).ok();
        let mut corpus = Self {
            planted: Vec::new(),
            decoys: Vec::new(),
            bytes: all.iter().map(|log| log.bytes.len()).sum(),
            logs: Vec::new(),
        };
        for truth in lines::<Truth>(&directory.join("truth.jsonl"))? {
            corpus.planted.push(Planted {
                log: place(&truth.file).with_context(|| truth.file.clone())?,
                line: truth.line - 1,
                kind: truth.kind,
                setting: truth.ctx,
                secret: Some(truth.secret),
                from: From::List,
            });
        }
        for lure in lines::<Lure>(&directory.join("decoys.jsonl"))? {
            corpus.decoys.push(Decoy {
                log: place(&lure.file).with_context(|| lure.file.clone())?,
                line: lure.line - 1,
                kind: lure.kind,
                text: lure.text,
            });
        }
        corpus.logs = all;
        Ok(corpus)
    }

    /// A corpus of our own: sessions that are made up, with an example of every rule, kinds that the rules were not
    /// written by, and decoys, each in a setting of its own.
    pub(super) fn make(directory: &Path, bytes: usize, seed: u64, rules: &RuleSet) -> Result<Self> {
        let (mut inserts, mut number) = (Vec::new(), 0);
        let mut add = |what: Insert| {
            inserts.push((number, what));
            number += 1;
        };
        for rule in &rules.rules {
            if let Some(example) = rule.examples.first() {
                add(Insert::Secret(
                    rule.id.clone(),
                    example.clone(),
                    From::Rule(rule.kind),
                ));
            }
        }
        for (kind, template) in HELD_OUT {
            add(Insert::Secret(
                (*kind).to_owned(),
                (*template).to_owned(),
                From::HeldOut,
            ));
        }
        for (kind, template) in DECOYS {
            add(Insert::Decoy(kind, template));
        }
        let mut corpus = Self {
            logs: Vec::new(),
            planted: Vec::new(),
            decoys: Vec::new(),
            bytes: 0,
        };
        let count = bytes.div_ceil(LOG).max(1);
        let per_log = inserts.len().div_ceil(count);
        for (index, some) in (0..count).map(|index| {
            let from = (index * per_log).min(inserts.len());
            (index, &inserts[from..(from + per_log).min(inserts.len())])
        }) {
            let made = corpus.log(index, LOG.min(bytes), seed, some);
            put(&directory.join(&made.name), &made.bytes)?;
            corpus.bytes += made.bytes.len();
            corpus.logs.push(made);
        }
        Ok(corpus)
    }

    /// A session with something between its lines, evenly.
    fn log(&mut self, index: usize, bytes: usize, seed: u64, inserts: &[(usize, Insert)]) -> Log {
        let clean = corpus::more(bytes, seed.wrapping_mul(1000).wrapping_add(index as u64));
        let clean: Vec<&str> = clean.lines().collect();
        let mut out: Vec<u8> = Vec::with_capacity(bytes + bytes / 8);
        let (mut line, mut put) = (0, 0);
        for (n, text) in clean.iter().enumerate() {
            out.extend_from_slice(text.as_bytes());
            out.push(b'\n');
            line += 1;
            // All of them are in it at the end, however few lines there are.
            while put * clean.len() < (n + 1) * inserts.len() {
                let (number, insert) = &inserts[put];
                put += 1;
                if let Some(written) = self.insert(index, line, *number, seed, insert) {
                    out.extend_from_slice(written.as_bytes());
                    out.push(b'\n');
                    line += 1;
                }
            }
        }
        Log {
            name: format!("session-{index:03}.jsonl"),
            bytes: out,
        }
    }

    fn insert(
        &mut self,
        log: usize,
        line: usize,
        number: usize,
        seed: u64,
        insert: &Insert,
    ) -> Option<String> {
        let chance = seed.wrapping_mul(7919).wrapping_add(number as u64);
        let turn = usize::try_from(seed).unwrap_or(0).wrapping_add(number);
        let (setting, write) = SETTINGS[turn % SETTINGS.len()];
        match insert {
            Insert::Secret(kind, template, from) => {
                let sample = expand(template, chance)?;
                let secret = sample
                    .secret
                    .clone()
                    .map(|span| sample.text[span].to_owned());
                self.planted.push(Planted {
                    log,
                    line,
                    kind: kind.clone(),
                    setting: setting.to_owned(),
                    secret,
                    from: *from,
                });
                Some(write(&sample.text, number))
            }
            Insert::Decoy(kind, template) => {
                let text = expand(template, chance)?.text;
                // Where a text stands in a command or an argument, decoys of files would be what they are not.
                let written = plain(&text, number);
                self.decoys.push(Decoy {
                    log,
                    line,
                    kind: (*kind).to_owned(),
                    text,
                });
                Some(written)
            }
        }
    }
}

enum Insert {
    Secret(String, String, From),
    Decoy(&'static str, &'static str),
}

fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}
