//! Which transcript belongs to which receipt, and which iteration they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{File, Flow, Resolved, Root, Unit};
use crate::flow::names::{self, By, Name};
use crate::flow::receipt::Receipt;
use crate::flow::verify::{Findings, Rule};

/// How much newer a transcript may be: clocks of file systems are coarse.
const SLACK: Duration = Duration::from_secs(2);

/// Makes units of the files of a flow.
pub(super) fn pair(root: &Root, flow: Flow, findings: &mut Findings) -> Vec<Unit> {
    let Flow {
        key,
        dir,
        transcripts,
        receipts,
        known,
    } = flow;
    let said: Vec<Option<Name>> = transcripts
        .iter()
        .map(|(_, name)| known.transcript(name))
        .collect();
    let mut taken = BTreeSet::new();
    let mut units = Vec::new();
    for (file, file_name, receipt) in receipts {
        let Some(mut name) = known.of_receipt(&file_name) else {
            continue;
        };
        if let Some((step, agent)) = receipt.who() {
            check_name(&file, &file_name, &step, &agent, findings);
            (name.step, name.agent) = (step, agent);
            (name.ambiguous, name.by) = (false, By::Body);
        }
        let own = receipt.flow_key.clone().unwrap_or_else(|| key.clone());
        // The flow may be the whole directory, whose name is that of the run.
        let of_own = dir
            .file_name()
            .is_some_and(|name| *name == *names::escape(&own));
        if own != key && !of_own && dir != root.path() {
            findings.add(Rule::FlowMismatch, &file.rel, None, || {
                format!("flow_key is {own:?}, in the directory of {key:?}")
            });
        }
        let transcript = named(root, &dir, &file, &receipt, findings)
            .or_else(|| like(&transcripts, &said, &taken, &name, &receipt));
        match &transcript {
            Some(transcript) => {
                if let Some(at) = index(&transcripts, transcript) {
                    taken.insert(at);
                    let said = said[at].as_ref();
                    name.engine = said.and_then(|said| said.engine.clone());
                    check_transcript(&transcripts[at], said, &name, findings);
                }
                newer(transcript, &file, findings);
            }
            None => findings.add(Rule::TranscriptMissing, &file.rel, None, || {
                let path = receipt
                    .transcript_path
                    .as_deref()
                    .unwrap_or("none is named");
                format!("there is no transcript ({path})")
            }),
        }
        units.push(Unit {
            flow: own,
            iteration: name.iteration.or(receipt.iteration).unwrap_or(0),
            name,
            started: receipt.started_at.map(|time| time.at),
            transcript,
            receipt: Some((file, receipt)),
        });
    }
    for (at, (file, _)) in transcripts.into_iter().enumerate() {
        let Some(name) = said[at].clone().filter(|_| !taken.contains(&at)) else {
            continue;
        };
        findings.add(Rule::ReceiptMissing, &file.rel, None, || {
            format!("there is no receipt for {}-{}", name.step, name.agent)
        });
        if name.ambiguous {
            findings.add(Rule::NameAmbiguous, &file.rel, None, || {
                format!("taken for step {:?} and agent {:?}", name.step, name.agent)
            });
        }
        units.push(Unit {
            flow: key.clone(),
            iteration: name.iteration.unwrap_or(0),
            name,
            started: None,
            transcript: Some(file),
            receipt: None,
        });
    }
    number(units, findings)
}

/// The transcript that a receipt names, if that is inside of the run.
fn named(
    root: &Root,
    dir: &Path,
    file: &File,
    receipt: &Receipt,
    findings: &mut Findings,
) -> Option<File> {
    let path = receipt.transcript_path.as_deref()?;
    let resolved = root.resolve(dir, path);
    if Path::new(path).is_absolute() && resolved != Resolved::Outside {
        findings.add(Rule::PathAbsolute, &file.rel, None, || {
            format!("transcript_path is {path:?}")
        });
    }
    match resolved {
        Resolved::Inside(path) => Some(root.file(path)),
        Resolved::Missing => None,
        Resolved::Outside => {
            findings.add(Rule::PathEscapes, &file.rel, None, || {
                format!("transcript_path is {path:?}")
            });
            None
        }
    }
}

/// The transcript that a receipt would name, by what the names say.
fn like(
    transcripts: &[(File, String)],
    said: &[Option<Name>],
    taken: &BTreeSet<usize>,
    name: &Name,
    receipt: &Receipt,
) -> Option<File> {
    let engine = receipt.engine.as_deref().map(|engine| {
        let engine = engine.strip_suffix("-step").unwrap_or(engine);
        names::engine(engine)
    });
    let fits = |at: &usize| {
        !taken.contains(at)
            && said[*at].as_ref().is_some_and(|said| {
                (&said.step, &said.agent, said.iteration)
                    == (&name.step, &name.agent, name.iteration)
            })
    };
    let by_engine = |at: &usize| {
        let said = said[*at].as_ref();
        fits(at) && said.is_some_and(|said| said.engine == engine)
    };
    let all = 0..transcripts.len();
    let at = all
        .clone()
        .find(by_engine)
        .or_else(|| all.clone().find(fits))?;
    Some(transcripts[at].0.clone())
}

/// Which of the transcripts a file is. Their paths may differ by links.
fn index(transcripts: &[(File, String)], file: &File) -> Option<usize> {
    let real = fs::canonicalize(&file.path).ok();
    let same = |other: &File| {
        other.path == file.path || (real.is_some() && fs::canonicalize(&other.path).ok() == real)
    };
    transcripts.iter().position(|(other, _)| same(other))
}

fn check_name(file: &File, name: &str, step: &str, agent: &str, findings: &mut Findings) {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    if !names::stands_for(stem, step, agent) {
        findings.add(Rule::NameMismatch, &file.rel, None, || {
            format!("it is about step {step:?} and agent {agent:?}")
        });
    }
}

fn check_transcript(
    (file, file_name): &(File, String),
    said: Option<&Name>,
    name: &Name,
    findings: &mut Findings,
) {
    let stem = file_name.strip_suffix(".jsonl").unwrap_or(file_name);
    let engine = said
        .and_then(|said| said.engine.as_deref())
        .unwrap_or_default();
    let (stem, iteration) = names::without_iteration(stem);
    let rest = stem
        .strip_suffix(engine)
        .unwrap_or(stem)
        .trim_end_matches('-');
    if !names::stands_for(rest, &name.step, &name.agent) || iteration != name.iteration {
        findings.add(Rule::NameMismatch, &file.rel, None, || {
            let (step, agent) = (&name.step, &name.agent);
            format!("its receipt is about step {step:?} and agent {agent:?}")
        });
    }
}

fn newer(transcript: &File, receipt: &File, findings: &mut Findings) {
    let modified = |file: &File| {
        fs::metadata(&file.path)
            .and_then(|meta| meta.modified())
            .ok()
    };
    if let (Some(transcript_at), Some(receipt_at)) = (modified(transcript), modified(receipt))
        && let Ok(by) = transcript_at.duration_since(receipt_at)
        && by > SLACK
    {
        findings.add(Rule::TranscriptNewer, &transcript.rel, None, || {
            format!("it was changed {} s after its receipt", by.as_secs())
        });
    }
}

/// Gives each unit its iteration. The plain name is the latest: one more than the others, unless it says.
fn number(units: Vec<Unit>, findings: &mut Findings) -> Vec<Unit> {
    let key = |unit: &Unit| {
        let name = &unit.name;
        (
            unit.flow.clone(),
            name.step.clone(),
            name.agent.clone(),
            name.engine.clone(),
        )
    };
    let mut numbered: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for unit in units.iter().filter(|unit| unit.name.iteration.is_some()) {
        numbered
            .entry(key(unit))
            .or_default()
            .insert(unit.iteration);
    }
    let mut kept = Vec::with_capacity(units.len());
    for mut unit in units {
        let others = numbered.get(&key(&unit));
        if unit.name.iteration.is_none() {
            if unit.iteration > 0 && others.is_some_and(|others| others.contains(&unit.iteration)) {
                let file = unit
                    .receipt
                    .as_ref()
                    .map(|(file, _)| file)
                    .or(unit.transcript.as_ref());
                let path = file.map_or("", |file| &file.rel);
                findings.add(Rule::IterationDuplicate, path, None, || {
                    format!(
                        "iteration {} is there under its number as well",
                        unit.iteration
                    )
                });
                continue;
            }
            if unit.iteration == 0 {
                let last = others.and_then(|others| others.last()).copied();
                unit.iteration = last.unwrap_or(0).saturating_add(1);
            }
        }
        kept.push(unit);
    }
    kept
}
