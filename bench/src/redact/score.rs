//! How much was found that is there, and how much that is not.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use base64::Engine as _;
use quipu_redact::{Certainty, Engine, Kind};

use super::corpus::{Corpus, From};
use super::ours;

/// What a tool made of a corpus.
#[derive(Default)]
pub(super) struct Score {
    /// How many secrets there are and how many were found, by where they come from.
    pub(super) recall: BTreeMap<From, (usize, usize)>,
    /// The kinds and settings of what was missed.
    pub(super) missed: BTreeMap<(From, String), Vec<String>>,
    /// Secrets that are gone, but for a piece.
    pub(super) pieces: usize,
    /// The kinds of decoys that were touched.
    pub(super) decoys: BTreeMap<String, usize>,
    /// Findings on lines where nothing is planted, by rule, and where the first is.
    pub(super) clean: BTreeMap<(Kind, String), (usize, String)>,
    /// Findings by rule, everywhere.
    pub(super) by_rule: BTreeMap<String, usize>,
    /// Seconds of processor time.
    pub(super) cpu: f64,
}

/// How a secret may be written where it stands.
pub(super) fn spellings(secret: &str) -> Vec<String> {
    let escaped = |text: &str| {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let (once, base64) = (escaped(secret), base64::engine::general_purpose::STANDARD);
    let mut all = vec![
        secret.to_owned(),
        escaped(&once),
        once,
        base64.encode(secret),
    ];
    all.sort();
    all.dedup();
    all
}

/// The longest piece of a secret that is random.
fn core(secret: &str) -> &str {
    let pieces = secret.split(|c: char| !c.is_ascii_alphanumeric());
    pieces.max_by_key(|piece| piece.len()).unwrap_or(secret)
}

/// By rules alone, or with what is removed because of the file that it is of.
pub(super) fn score(corpus: &Corpus, engine: &Engine, files: bool) -> Result<Score> {
    let mut score = Score::default();
    for (index, log) in corpus.logs.iter().enumerate() {
        let redacted = ours::redact_with(engine, &log.bytes, files)?;
        score.cpu += redacted.cpu;
        let before: Vec<&[u8]> = log.bytes.split(|byte| *byte == b'\n').collect();
        let after: Vec<&[u8]> = redacted.bytes.split(|byte| *byte == b'\n').collect();
        ensure!(
            before.len() == after.len(),
            "{} has another number of lines",
            log.name
        );
        let mut taken = BTreeSet::new();
        for planted in corpus.planted.iter().filter(|planted| planted.log == index) {
            taken.insert(planted.line);
            let (before, after) = (text(before[planted.line]), text(after[planted.line]));
            let Some(secret) = &planted.secret else {
                // Something of it is what the rule is for.
                score.count(
                    planted.from,
                    &planted.kind,
                    &planted.setting,
                    before != after,
                );
                continue;
            };
            let there = spellings(secret);
            let there: Vec<&String> = there
                .iter()
                .filter(|it| before.contains(it.as_str()))
                .collect();
            ensure!(
                !there.is_empty(),
                "a {} is not where it should be",
                planted.kind
            );
            let gone = there.iter().all(|it| !after.contains(it.as_str()));
            let core = core(secret);
            score.pieces += usize::from(gone && core.len() >= 12 && after.contains(core));
            score.count(planted.from, &planted.kind, &planted.setting, gone);
        }
        for decoy in corpus.decoys.iter().filter(|decoy| decoy.log == index) {
            let after = text(after[decoy.line]);
            if !spellings(&decoy.text)
                .iter()
                .any(|it| after.contains(it.as_str()))
            {
                *score.decoys.entry(decoy.kind.clone()).or_default() += 1;
            }
        }
        for finding in redacted.findings {
            if finding.certainty != Certainty::Sure {
                continue;
            }
            let rule = finding.what.id(engine).to_owned();
            *score.by_rule.entry(rule.clone()).or_default() += 1;
            let line = usize::try_from(finding.line.saturating_sub(1))?;
            if !taken.contains(&line) {
                let key = (ours::kind(engine, &finding), rule);
                let first = || {
                    (
                        0,
                        format!("{}:{} {}", log.name, finding.line, finding.field),
                    )
                };
                score.clean.entry(key).or_insert_with(first).0 += 1;
            }
        }
    }
    Ok(score)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Score {
    pub(super) fn count(&mut self, from: From, kind: &str, setting: &str, found: bool) {
        let (all, hits) = self.recall.entry(from).or_default();
        *all += 1;
        *hits += usize::from(found);
        if !found {
            let settings = self.missed.entry((from, kind.to_owned())).or_default();
            settings.push(setting.to_owned());
        }
    }

    /// How many there are, how many were found, and the part of them.
    pub(super) fn part(&self, wanted: impl Fn(From) -> bool) -> Option<(usize, usize, f64)> {
        let some = self.recall.iter().filter(|(from, _)| wanted(**from));
        let (all, hits) = some.fold((0, 0), |sum, (_, n)| (sum.0 + n.0, sum.1 + n.1));
        (all > 0).then(|| (all, hits, hits as f64 / all as f64))
    }

    /// Findings on clean lines, of some kind.
    pub(super) fn clean_of(&self, kind: Kind) -> usize {
        let some = self.clean.iter().filter(|((of, _), _)| *of == kind);
        some.map(|(_, (n, _))| n).sum()
    }
}
