//! The transcripts and the receipts of a run, as lists. Seed 003 promises them; the original never had them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use quipu_exchange::lines::Limits;
use quipu_formats::flow::{Finding, StepRun, read_with};
use quipu_model::{Body, Event, Timestamp};
use serde_json::{Map, Value, json};

use super::Studio;
use super::facts::{Cost, Totals};
use super::fault::{Answered, Fault};
use super::folder::Folder;
use super::params::{Ids, Reading};
use super::record::iso;
use super::runs::Run;
use crate::answer::json as answer;

/// The longest line that is read.
const LINE: usize = 8 << 20;

/// What the lines of a transcript say.
#[derive(Debug, Default)]
struct Counted {
    messages: u64,
    tool_calls: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Counted {
    fn take(&mut self, event: &Event) {
        match &event.body {
            Body::UserMessage(_) | Body::AssistantMessage(_) | Body::SystemMessage(_) => {
                self.messages += 1;
            }
            Body::ToolCall(_) => self.tool_calls += 1,
            _ => {}
        }
        if !event.annotations.flags.undated {
            let at = event.timestamp;
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
    }
}

/// A run as it was read.
struct Read {
    folder: Folder,
    steps: Vec<StepRun>,
    issues: Vec<Finding>,
    counted: BTreeMap<String, Counted>,
}

fn read(studio: &Studio, run: &Run) -> Result<Read, Fault> {
    let folder = studio.folder(run)?;
    let limits = Limits {
        max_line_bytes: LINE,
        ..Limits::default()
    };
    let mut counted: BTreeMap<String, Counted> = BTreeMap::new();
    let read = read_with(folder.path(), &limits, &mut |event| {
        if let Some(source) = &event.annotations.source {
            let file = source.file.clone();
            counted.entry(file).or_default().take(&event);
        }
    });
    match read {
        Ok(read) => Ok(Read {
            folder,
            steps: read.steps,
            issues: read.issues,
            counted,
        }),
        // Nothing is in it yet.
        Err(quipu_formats::flow::FlowError::NotARun(_)) => Ok(Read {
            folder,
            steps: Vec::new(),
            issues: Vec::new(),
            counted,
        }),
        Err(error) => Err(Fault::unreadable("run", error)),
    }
}

impl Read {
    fn issues(&self, paths: &[Option<&String>]) -> Vec<Value> {
        let own = self.issues.iter().filter(|issue| {
            let mut paths = paths.iter().flatten();
            paths.any(|path| **path == issue.path)
        });
        own.map(|issue| serde_json::to_value(issue).unwrap_or_default())
            .collect()
    }

    /// What is wrong that no row tells of.
    fn others(&self, told: impl Fn(&str) -> bool) -> Vec<Value> {
        let others = self.issues.iter().filter(|issue| !told(&issue.path));
        others
            .map(|issue| serde_json::to_value(issue).unwrap_or_default())
            .collect()
    }
}

/// Which iteration each file of a run is, from 1, by its path in the run. Names of latest files do not say it.
pub(super) fn iterations(studio: &Studio, run: &Run) -> Result<BTreeMap<String, u64>, Fault> {
    let steps = read(studio, run)?.steps.into_iter();
    let files = steps.flat_map(|step| {
        let number = step.iteration + 1;
        let files = [step.transcript, step.receipt].into_iter().flatten();
        files.map(move |file| (file, number))
    });
    Ok(files.collect())
}

/// `GET /api/runs/{id}/transcripts`
pub(super) async fn transcripts(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let read = read(studio, &run)?;
        let steps = read.steps.iter().filter(|step| step.transcript.is_some());
        let rows: Vec<Value> = steps.map(|step| transcript(&read, step)).collect();
        let has = |path: &str| {
            read.steps
                .iter()
                .any(|step| step.transcript.as_deref() == Some(path))
        };
        Ok(json!({
            "run_id": ids.id,
            "total": rows.len(),
            "transcripts": rows,
            "issues": read.others(has),
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

fn transcript(read: &Read, step: &StepRun) -> Value {
    let path = step.transcript.as_deref().unwrap_or_default();
    let size = read.folder.stamp(Path::new(path)).map(|(_, size)| size);
    let counted = read.counted.get(path);
    json!({
        "flow_key": step.flow,
        "step_id": step.step,
        "agent_key": step.agent,
        "engine": step.engine,
        // From 1, as in the names of files.
        "iteration": step.iteration + 1,
        "ambiguous": step.ambiguous,
        "path": path,
        "size_bytes": size,
        "line_count": step.lines,
        "message_count": counted.map_or(0, |counted| counted.messages),
        "tool_call_count": counted.map_or(0, |counted| counted.tool_calls),
        "first_ts": counted.and_then(|counted| counted.first).map(iso),
        "last_ts": counted.and_then(|counted| counted.last).map(iso),
        "stub": step.stub,
        "receipt_path": step.receipt,
        "issues": read.issues(&[step.transcript.as_ref()]),
    })
}

/// `GET /api/runs/{id}/receipts`
pub(super) async fn receipts(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let prices = Arc::clone(ask.app.prices());
    let answered = ask.work(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let read = read(studio, &run)?;
        let mut totals = Totals::default();
        let mut rows = Vec::new();
        for key in read.folder.flow_keys() {
            let Some(flow) = read.folder.flow(&key) else {
                continue;
            };
            for named in &flow.receipts {
                let Some(receipt) = named.receipt.as_deref() else {
                    continue;
                };
                totals.add(receipt, &prices);
                let path = format!("{}/receipts/{}", flow.directory, named.file);
                let step = read
                    .steps
                    .iter()
                    .find(|step| step.receipt.as_deref() == Some(&path));
                // The fields of the receipt are the file's own; what is added stands behind them.
                let mut row = match read.folder.json(&path) {
                    Some(Value::Object(fields)) => fields,
                    _ => Map::new(),
                };
                let cost = Cost::of(receipt, &prices).json();
                for (name, value) in [
                    ("flow_key", Value::from(key.clone())),
                    ("step_id", named.name.step.clone().into()),
                    ("agent_key", named.name.agent.clone().into()),
                ] {
                    row.entry(name).or_insert(value);
                }
                let transcript = step.and_then(|step| step.transcript.clone());
                let iteration = step.map(|step| step.iteration + 1);
                let iteration = iteration.or(named.name.iteration);
                for (name, value) in [
                    ("path", Value::from(path.clone())),
                    ("transcript_present", transcript.is_some().into()),
                    ("transcript_file", transcript.into()),
                    ("iteration", iteration.into()),
                    ("simulated", receipt.is_stub().into()),
                    ("cost_usd", cost),
                    ("issues", read.issues(&[Some(&path)]).into()),
                ] {
                    row.insert(name.to_owned(), value);
                }
                rows.push(Value::Object(row));
            }
        }
        let has = |path: &str| {
            path.contains("/receipts/")
                && read
                    .steps
                    .iter()
                    .any(|step| step.receipt.as_deref() == Some(path))
        };
        Ok(json!({
            "run_id": ids.id,
            "total": rows.len(),
            "receipts": rows,
            "totals": totals.json(),
            "issues": read.others(has),
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}
