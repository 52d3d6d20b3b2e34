//! When steps ran: told by the journal, by receipts, or by the history that Flow Studio's last flow writes.

use std::collections::{BTreeMap, HashSet};

use http::HeaderMap;
use quipu_formats::flow::time;
use quipu_model::Timestamp;
use serde_json::{Map, Value, json};

use super::Studio;
use super::events::each;
use super::fault::{Answered, Fault};
use super::folder::Folder;
use super::params::{Ids, Reading};
use super::record::{Record, iso};
use super::runs::Run;
use crate::answer::json as answer;

/// How many executions of steps are told of.
const MOST: usize = 100_000;

/// One execution of a step, or of a flow.
#[derive(Debug, Clone, Default)]
pub(super) struct Execution {
    pub(super) flow: String,
    /// Empty for the flow itself.
    pub(super) step: String,
    pub(super) agent: Option<String>,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    pub(super) duration_ms: Option<u64>,
    /// Whether it ended, and if so, whether well.
    pub(super) outcome: Option<bool>,
    pub(super) note: Option<String>,
    /// What kind of step it is, in runs of our own.
    pub(super) kind: Option<String>,
    /// Known by its timing only.
    timed: bool,
}

impl Execution {
    fn seconds(&self) -> Option<f64> {
        let told = self.duration_ms.filter(|ms| *ms > 0);
        let between = || {
            let took = self.ended?.duration_since(self.started?);
            u64::try_from(took.as_millis()).ok()
        };
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a run")]
        let seconds = told
            .or_else(between)
            .or(self.duration_ms)
            .map(|ms| ms as f64 / 1000.0);
        seconds
    }
}

/// All executions that are known of a run, in the order in which they began.
pub(super) fn executions(run: &Run, folder: &Folder) -> Result<Vec<Execution>, Fault> {
    let mut told = Vec::new();
    each(run, None, &mut |record| {
        take(&mut told, &record);
        told.len() < MOST
    })?;
    let begun: HashSet<(String, String)> = told
        .iter()
        .filter(|one: &&Execution| !one.timed)
        .map(|one| (one.flow.clone(), one.step.clone()))
        .collect();
    told.retain(|one| !one.timed || !begun.contains(&(one.flow.clone(), one.step.clone())));
    let known: HashSet<(String, String)> = told
        .iter()
        .map(|one| (one.flow.clone(), one.step.clone()))
        .collect();
    // What the journal does not tell of, or not the end of.
    for key in folder.flow_keys() {
        let receipts = folder.flow(&key).map(|flow| flow.receipts);
        for named in receipts.into_iter().flatten() {
            let Some(receipt) = named.receipt else {
                continue;
            };
            let flow = receipt.flow_key.clone().unwrap_or_else(|| key.clone());
            let outcome = receipt.succeeded();
            let (started, ended) = (receipt.started_at, receipt.completed_at);
            if known.contains(&(flow.clone(), named.name.step.clone())) {
                let open = told.iter_mut().rev().find(|one| {
                    one.flow == flow && one.step == named.name.step && one.outcome.is_none()
                });
                if let Some(open) = open {
                    open.ended = ended.map(|time| time.at);
                    open.duration_ms = receipt.duration_ms;
                    open.outcome = outcome;
                }
                continue;
            }
            told.push(Execution {
                flow,
                step: named.name.step,
                agent: Some(named.name.agent).filter(|agent| !agent.is_empty()),
                started: started.map(|time| time.at),
                ended: ended.map(|time| time.at),
                duration_ms: receipt.duration_ms,
                outcome: outcome.or(Some(true)),
                note: receipt.error.clone(),
                ..Execution::default()
            });
        }
    }
    told.sort_by_key(|one| one.started.or(one.ended));
    Ok(told)
}

/// Takes in what an event says of steps and flows.
fn take(told: &mut Vec<Execution>, record: &Record) {
    let kind = record.kind.as_str();
    let of_step = matches!(
        kind,
        "step_start" | "step_end" | "step_complete" | "step_error" | "step_timing"
    );
    let flow_begins = matches!(kind, "flow_start" | "flow_started");
    let flow_ends = matches!(
        kind,
        "flow_end" | "flow_completed" | "flow_error" | "flow_failed"
    );
    let flow = record.flow.clone().unwrap_or_default();
    let step = record.step.clone().unwrap_or_default();
    if !(of_step && !step.is_empty() || (flow_begins || flow_ends) && !flow.is_empty()) {
        return;
    }
    let step = if of_step { step } else { String::new() };
    let failed = matches!(kind, "step_error" | "flow_error" | "flow_failed")
        || record.said("status") == Some("failed");
    let agents = record
        .payload
        .get("agents")
        .and_then(|agents| agents.get(0));
    let agent = record.agent.clone();
    let agent = agent.or_else(|| agents.and_then(Value::as_str).map(str::to_owned));
    let mut one = Execution {
        flow,
        step,
        agent,
        kind: record.said("step_kind").map(str::to_owned),
        ..Execution::default()
    };
    if kind == "step_start" || flow_begins {
        one.started = record.at;
        told.push(one);
        return;
    }
    one.ended = record.at;
    one.duration_ms = record.count("duration_ms");
    one.outcome = Some(!failed);
    let note = record.said("error").or_else(|| record.said("reason"));
    one.note = note.map(str::to_owned);
    if kind == "step_timing" {
        one.timed = true;
        let started = record.said("started_at").and_then(time::parse);
        one.started = started.map(|time| time.at);
        told.push(one);
        return;
    }
    let same = |other: &&mut Execution| {
        let by = other.agent.is_none() || one.agent.is_none() || other.agent == one.agent;
        other.flow == one.flow && other.step == one.step && by && other.outcome.is_none()
    };
    // Steps that overlap are few, and the latest is nearly always meant.
    match told.iter_mut().rev().take(256).find(same) {
        Some(open) => {
            (open.ended, open.outcome) = (one.ended, one.outcome);
            open.duration_ms = one.duration_ms;
            open.note = one.note;
        }
        None => told.push(one),
    }
}

/// The history that the last flow of Flow Studio writes, as a timeline; in either of its two forms.
fn history(folder: &Folder) -> Option<Vec<Value>> {
    let history = folder.json("wisdom/flow_history.json")?;
    let text = |from: &Value, keys: &[&str]| {
        let found = keys.iter().find_map(|key| from.get(key)?.as_str());
        found.map(str::to_owned)
    };
    let at = |from: &Value, keys: &[&str]| {
        let text = text(from, keys)?;
        let read = time::parse(&text).map(|time| iso(time.at));
        Some(read.unwrap_or(text))
    };
    let mut events = Vec::new();
    if let Some(list) = history.get("events").and_then(Value::as_array) {
        for event in list {
            events.push(json!({
                "timestamp": at(event, &["ts", "timestamp"]),
                "flow": text(event, &["flow", "flow_key"]),
                "step": text(event, &["step", "step_id"]),
                "status": text(event, &["status"]),
                "duration_ms": event.get("duration_ms"),
                "note": text(event, &["note", "message"]),
            }));
        }
    } else if let Some(list) = history.get("execution_timeline").and_then(Value::as_array) {
        for flow in list {
            let name = text(flow, &["flow", "flow_key"]);
            let minutes = flow.get("duration_minutes").and_then(Value::as_f64);
            let failed = text(flow, &["status"]).as_deref() == Some("failed");
            if let Some(start) = at(flow, &["start_time"]) {
                events.push(json!({
                    "timestamp": start, "flow": name, "step": null, "status": "started",
                    "duration_ms": null, "note": null,
                }));
            }
            if let Some(end) = at(flow, &["end_time"]) {
                events.push(json!({
                    "timestamp": end, "flow": name, "step": null,
                    "status": if failed { "failed" } else { "completed" },
                    "duration_ms": minutes.map(|minutes| (minutes * 60_000.0).round()),
                    "note": text(flow, &["decision", "note"]),
                }));
            }
        }
    }
    (!events.is_empty()).then_some(events)
}

fn as_timeline(executions: &[Execution]) -> Vec<Value> {
    let mut events: Vec<(Option<Timestamp>, Value)> = Vec::new();
    for one in executions {
        let step = Some(&one.step).filter(|step| !step.is_empty());
        let event = |at: Option<Timestamp>, status: &str, ms: Option<u64>, note: Option<&str>| {
            let event = json!({
                "timestamp": at.map(iso), "flow": one.flow, "step": step, "status": status,
                "duration_ms": ms, "note": note, "agent": one.agent,
            });
            (at, event)
        };
        if one.started.is_some() {
            events.push(event(one.started, "started", None, None));
        }
        if let Some(well) = one.outcome {
            let status = if well { "completed" } else { "failed" };
            events.push(event(
                one.ended,
                status,
                one.duration_ms,
                one.note.as_deref(),
            ));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, event)| event).collect()
}

/// `GET /api/runs/{id}/timeline`
pub(super) async fn timeline(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let folder = studio.folder(&run)?;
        let events = match history(&folder) {
            Some(events) => events,
            None => as_timeline(&executions(&run, &folder)?),
        };
        Ok(json!({ "run_id": ids.id, "events": events }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// When a flow ran, and each of its steps.
fn of_flow(key: &str, executions: &[&Execution]) -> Value {
    let started = executions.iter().filter_map(|one| one.started).min();
    let ended = executions.iter().filter_map(|one| one.ended).max();
    let mut passes: BTreeMap<&str, u64> = BTreeMap::new();
    let steps = executions.iter().filter(|one| !one.step.is_empty());
    let steps = steps.map(|one| {
        let pass = passes.entry(&one.step).or_default();
        *pass += 1;
        json!({
            "step_id": one.step,
            "started_at": one.started.map(iso),
            "ended_at": one.ended.map(iso),
            "duration_seconds": one.seconds(),
            "iteration": *pass,
            "agent_key": one.agent,
        })
    });
    let steps: Vec<Value> = steps.collect();
    let flow = Execution {
        started,
        ended,
        ..Execution::default()
    };
    json!({
        "flow_key": key,
        "started_at": started.map(iso),
        "ended_at": ended.map(iso),
        "duration_seconds": flow.seconds(),
        "steps": steps,
    })
}

/// When a run ran; `None` where nothing says.
pub(super) fn of_run(studio: &Studio, run: &Run, folder: &Folder) -> Result<Option<Value>, Fault> {
    if let Some(timing) = folder
        .json("wisdom/run_timing.json")
        .filter(Value::is_object)
    {
        return Ok(Some(timing));
    }
    let mut all = executions(run, folder)?;
    if all.is_empty() {
        all = from_history(folder);
    }
    if all.is_empty() {
        return Ok(None);
    }
    let mut by_flow: BTreeMap<&str, Vec<&Execution>> = BTreeMap::new();
    for one in &all {
        by_flow.entry(&one.flow).or_default().push(one);
    }
    let flows: Map<String, Value> = by_flow
        .iter()
        .map(|(key, all)| ((*key).to_owned(), of_flow(key, all)))
        .collect();
    let brief = studio.brief(run);
    let first = all.iter().filter_map(|one| one.started).min();
    let last = all.iter().filter_map(|one| one.ended).max();
    let whole = Execution {
        started: brief.started.into_iter().chain(first).min(),
        ended: brief.completed.into_iter().chain(last).max(),
        ..Execution::default()
    };
    Ok(Some(json!({
        "run_id": run.id,
        "started_at": whole.started.map(iso),
        "ended_at": whole.ended.map(iso),
        "total_duration_seconds": whole.seconds(),
        "flows": flows,
    })))
}

/// Flows as the history tells of them.
fn from_history(folder: &Folder) -> Vec<Execution> {
    let mut all: Vec<Execution> = Vec::new();
    for event in history(folder).unwrap_or_default() {
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let at = text("timestamp").and_then(time::parse).map(|time| time.at);
        let (flow, step) = (text("flow").unwrap_or(""), text("step").unwrap_or(""));
        let open = all.iter_mut().rev();
        let open = open
            .take(256)
            .find(|one| one.flow == flow && one.step == step && one.outcome.is_none());
        match (text("status"), open) {
            (Some("completed" | "failed"), Some(open)) => {
                (open.ended, open.outcome) = (at, Some(text("status") == Some("completed")));
            }
            (status, _) => all.push(Execution {
                flow: flow.to_owned(),
                step: step.to_owned(),
                started: at.filter(|_| status == Some("started")),
                ended: at.filter(|_| status != Some("started")),
                outcome: (status != Some("started")).then_some(status == Some("completed")),
                ..Execution::default()
            }),
        }
    }
    all
}

const NO_TIMING: &str = "No timing data available";

/// `GET /api/runs/{id}/timing`
pub(super) async fn run(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let timing = of_run(studio, &run, &studio.folder(&run)?)?;
        let message = timing.is_none().then_some(NO_TIMING);
        Ok(json!({ "run_id": ids.id, "timing": timing, "message": message }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/{id}/flows/{flow}/timing`
pub(super) async fn flow(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let run = studio.find(&ids.id)?;
        let timing = of_run(studio, &run, &studio.folder(&run)?)?;
        let timing = timing.and_then(|timing| timing.get("flows")?.get(&ids.flow).cloned());
        let message = timing.is_none().then_some(NO_TIMING);
        Ok(json!({
            "run_id": ids.id, "flow_key": ids.flow, "timing": timing, "message": message,
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}
