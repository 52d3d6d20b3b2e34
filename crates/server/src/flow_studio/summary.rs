//! What a run has and what it lacks, flow by flow and step by step; and two runs beside each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::Studio;
use super::brief::is_over;
use super::catalog::{Expected, FLOWS, expected, in_order, title};
use super::facts::Cost;
use super::fault::{Answered, Fault};
use super::folder::{Flow, Folder};
use super::params::{Ids, Params, Reading, check};
use super::record::iso;
use super::runs::Run;
use super::timing::{self, Execution};
use crate::answer::json as answer;

/// Everything that flows are told from.
struct Inspected {
    run: Run,
    folder: Folder,
    expected: BTreeMap<String, Expected>,
    executions: Vec<Execution>,
    /// The flows, in order.
    flows: Vec<String>,
    is_over: bool,
}

impl Inspected {
    fn of(studio: &Studio, id: &str) -> Result<Self, Fault> {
        let run = studio.find(id)?;
        let folder = studio.folder(&run)?;
        let brief = studio.brief(&run);
        let expected = expected(&run);
        let executions = timing::executions(&run, &folder)?;
        let mut keys: BTreeSet<String> = folder.flow_keys().into_iter().collect();
        keys.extend(expected.keys().cloned());
        keys.extend(brief.flows.iter().cloned());
        let told = executions.iter().map(|one| &one.flow);
        keys.extend(told.filter(|flow| !flow.is_empty()).cloned());
        if studio.is_of_studio(&run) {
            keys.extend(FLOWS.iter().map(|key| (*key).to_owned()));
        }
        let flows = in_order(keys.iter()).into_iter().cloned().collect();
        let status = brief.status.as_deref();
        Ok(Self {
            is_over: status.is_none_or(is_over),
            run,
            folder,
            expected,
            executions,
            flows,
        })
    }

    fn has(&self, flow: &str) -> Result<(), Fault> {
        if self.flows.iter().any(|key| key == flow) {
            return Ok(());
        }
        Err(Fault::missing(format!("Flow '{flow}' not found"))
            .with("available_flows", self.flows.clone()))
    }

    /// A flow as it is told.
    fn flow(&self, studio: &Studio, key: &str) -> Value {
        let flow = self.folder.flow(key);
        let expected = self.expected.get(key);
        let told: Vec<&Execution> = self
            .executions
            .iter()
            .filter(|one| one.flow == key)
            .collect();
        let mut steps: BTreeMap<String, Value> = BTreeMap::new();
        let mut ids: BTreeSet<&str> = told.iter().map(|one| one.step.as_str()).collect();
        ids.extend(
            expected
                .iter()
                .flat_map(|flow| flow.steps.keys())
                .map(String::as_str),
        );
        let files = flow
            .iter()
            .flat_map(|flow| flow.transcripts.iter().chain(&flow.receipts));
        ids.extend(files.map(|named| named.name.step.as_str()));
        ids.remove("");
        for id in ids {
            let of: Vec<&Execution> = told.iter().copied().filter(|one| one.step == id).collect();
            steps.insert(
                id.to_owned(),
                self.step(studio, key, id, flow.as_ref(), &of),
            );
        }
        let decision = expected.and_then(|expected| expected.decision.as_deref());
        let directory = flow.as_ref().map_or(key, |flow| &flow.directory);
        let present =
            decision.is_some_and(|name| self.folder.has(&Path::new(directory).join(name)));
        let is_begun = flow.is_some() || !told.is_empty();
        let goes_on = told.iter().any(|one| one.outcome.is_none());
        let status = match (is_begun, decision) {
            (false, _) => "not_started",
            (true, Some(_)) if present => "done",
            // The file with the decision may be called otherwise; that the run is over is not enough then.
            (true, None)
                if !goes_on && !steps.is_empty() && (self.is_over || self.is_behind(key)) =>
            {
                "done"
            }
            (true, _) => "in_progress",
        };
        let named = expected.and_then(|expected| expected.title.clone());
        json!({
            "flow_key": key,
            "status": status,
            "title": named.unwrap_or_else(|| title(key)),
            "decision_artifact": decision,
            "decision_present": present,
            "steps": steps,
        })
    }

    /// Whether another flow began after this one.
    fn is_behind(&self, key: &str) -> bool {
        let last = self.executions.iter().rposition(|one| one.flow == key);
        last.is_some_and(|at| self.executions[at + 1..].iter().any(|one| one.flow != key))
    }

    fn step(
        &self,
        studio: &Studio,
        key: &str,
        id: &str,
        flow: Option<&Flow>,
        told: &[&Execution],
    ) -> Value {
        let mut artifacts = Artifacts::default();
        let expected = self.expected.get(key).and_then(|flow| flow.steps.get(id));
        let mut note = expected.and_then(|step| step.note.clone());
        let directory = flow.map_or(key, |flow| &flow.directory);
        if let Some(expected) = expected {
            let at = Path::new(directory);
            for (names, required) in [(&expected.required, true), (&expected.optional, false)] {
                for name in names {
                    artifacts.add(name, self.folder.has(&at.join(name)), required);
                }
            }
        }
        // What a step leaves in any case. Where the catalogue knows the step, that does not count.
        let required = expected.is_none();
        let own = |all: &'_ [super::folder::Named], part: &str| -> Vec<String> {
            let own = all.iter().filter(|named| named.name.step == id);
            own.map(|named| format!("{part}/{}", named.file)).collect()
        };
        let transcripts = flow.map_or_else(Vec::new, |flow| own(&flow.transcripts, "llm"));
        let receipts = flow.map_or_else(Vec::new, |flow| own(&flow.receipts, "receipts"));
        let is_agent = told
            .iter()
            .all(|one| one.kind.as_deref().is_none_or(|kind| kind == "agent"));
        let has_files = !transcripts.is_empty() || !receipts.is_empty();
        let files = flow
            .into_iter()
            .flat_map(|flow| flow.transcripts.iter().chain(&flow.receipts));
        let mut by_name = files
            .filter(|named| named.name.step == id && !named.name.agent.is_empty())
            .map(|named| named.name.agent.clone());
        let told_agent = told.iter().find_map(|one| one.agent.clone());
        let agent = by_name.next().or(told_agent);
        let agent = agent.unwrap_or_else(|| "*".to_owned());
        if has_files || (required && is_agent && !told.is_empty()) {
            for (files, missing) in [
                (&transcripts, format!("llm/{id}-{agent}-*.jsonl")),
                (&receipts, format!("receipts/{id}-{agent}.json")),
            ] {
                for file in files {
                    artifacts.add(file, true, required);
                }
                if files.is_empty() && required {
                    artifacts.add(&missing, false, true);
                }
            }
        }
        if !is_agent && note.is_none() {
            note = Some("Not a step of an agent".to_owned());
        }
        let mut costs = Vec::new();
        let of_step = flow.into_iter().flat_map(|flow| &flow.receipts);
        for receipt in of_step.filter(|named| named.name.step == id) {
            let receipt = receipt.receipt.as_deref();
            costs.extend(receipt.map(|receipt| Cost::of(receipt, &studio.prices).json()));
        }
        let sum = costs.iter().map(Value::as_f64).sum::<Option<f64>>();
        let timing = told
            .iter()
            .rev()
            .find(|one| one.started.is_some())
            .map(|one| {
                json!({
                    "started_at": one.started.map(iso), "ended_at": one.ended.map(iso),
                    "duration_ms": one.duration_ms,
                })
            });
        artifacts.json(
            note.as_deref(),
            told.len(),
            timing.as_ref(),
            sum.filter(|_| !costs.is_empty()),
        )
    }
}

/// What a step has left.
#[derive(Default)]
struct Artifacts {
    list: Vec<Value>,
    required: (u64, u64),
    optional: (u64, u64),
}

impl Artifacts {
    fn add(&mut self, path: &str, is_there: bool, required: bool) {
        let counts = if required {
            &mut self.required
        } else {
            &mut self.optional
        };
        counts.0 += u64::from(is_there);
        counts.1 += 1;
        let status = if is_there { "present" } else { "missing" };
        self.list
            .push(json!({ "path": path, "status": status, "required": required }));
    }

    fn json(
        self,
        note: Option<&str>,
        executions: usize,
        timing: Option<&Value>,
        cost: Option<f64>,
    ) -> Value {
        let status = match self.required {
            (_, 0) => "n/a",
            (present, total) if present == total => "complete",
            (0, _) => "missing",
            _ => "partial",
        };
        json!({
            "status": status,
            "required_present": self.required.0,
            "required_total": self.required.1,
            "optional_present": self.optional.0,
            "optional_total": self.optional.1,
            "artifacts": self.list,
            "note": note,
            "executions": executions,
            "timing": timing,
            "cost_usd": cost,
        })
    }
}

/// `GET /api/runs/{id}/summary`
pub(super) async fn run(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let inspected = Inspected::of(studio, &ids.id)?;
        let flows: Map<String, Value> = inspected
            .flows
            .iter()
            .map(|key| (key.clone(), inspected.flow(studio, key)))
            .collect();
        let brief = studio.brief(&inspected.run);
        Ok(json!({
            "run_id": ids.id,
            "run_type": inspected.run.kind.word(),
            "path": inspected.run.path().to_string_lossy(),
            "flows": flows,
            "status": brief.status,
            "backend": brief.backend,
            "title": brief.title,
            "created_at": brief.created.or(brief.started).map(iso),
            "completed_at": brief.completed.map(iso),
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/{id}/sdlc`
pub(super) async fn sdlc(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let inspected = Inspected::of(studio, &ids.id)?;
        let flows = inspected.flows.iter().map(|key| {
            let flow = inspected.flow(studio, key);
            json!({ "flow": key, "flow_key": key, "status": flow["status"], "title": flow["title"] })
        });
        let flows: Vec<Value> = flows.collect();
        Ok(json!({ "run_id": ids.id, "sdlc": flows }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/{id}/flows/{flow}`
pub(super) async fn flow(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let inspected = Inspected::of(studio, &ids.id)?;
        inspected.has(&ids.flow)?;
        Ok(inspected.flow(studio, &ids.flow))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/{id}/flows/{flow}/steps/{step}`
pub(super) async fn step(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.work(move |studio, _| {
        let inspected = Inspected::of(studio, &ids.id)?;
        inspected.has(&ids.flow)?;
        let flow = inspected.flow(studio, &ids.flow);
        let step = flow["steps"].get(&ids.step).cloned();
        let Some(mut step) = step else {
            let known = flow["steps"].as_object().into_iter().flat_map(Map::keys);
            let known: Vec<&str> = known.map(String::as_str).collect();
            let error = format!("Step '{}' not found in flow '{}'", ids.step, ids.flow);
            return Err(Fault::missing(error).with("available_steps", known));
        };
        if let Value::Object(fields) = &mut step {
            fields.insert("step_id".to_owned(), ids.step.clone().into());
        }
        Ok(step)
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/runs/compare`
pub(super) async fn compare(ask: Reading, params: Params, headers: HeaderMap) -> Answered {
    let wanted = ["run_a", "run_b", "flow"];
    let given = wanted.map(|name| params.text(name).unwrap_or_default().to_owned());
    if given.iter().any(String::is_empty) {
        return Err(Fault::bad(
            "Missing required parameters: run_a, run_b, flow",
        ));
    }
    for (name, value) in wanted.iter().zip(&given) {
        check(name, value)?;
    }
    let [run_a, run_b, flow] = given;
    let answered = ask.work(move |studio, _| {
        let a = Inspected::of(studio, &run_a)?;
        let b = Inspected::of(studio, &run_b)?;
        if a.has(&flow).is_err() && b.has(&flow).is_err() {
            let known: BTreeSet<&String> = a.flows.iter().chain(&b.flows).collect();
            let known: Vec<&str> = in_order(known.into_iter())
                .into_iter()
                .map(String::as_str)
                .collect();
            return Err(
                Fault::missing(format!("Flow '{flow}' not found")).with("available_flows", known)
            );
        }
        Ok(compared(
            (&run_a, &a.flow(studio, &flow)),
            (&run_b, &b.flow(studio, &flow)),
            &flow,
        ))
    });
    Ok(answer(&answered.await?, &headers)?)
}

fn compared((run_a, a): (&str, &Value), (run_b, b): (&str, &Value), flow: &str) -> Value {
    let steps_of = |flow: &Value| {
        let steps = flow["steps"].as_object();
        steps.cloned().unwrap_or_default()
    };
    let (steps_a, steps_b) = (steps_of(a), steps_of(b));
    let ids: BTreeSet<&String> = steps_a.keys().chain(steps_b.keys()).collect();
    let (mut improved, mut regressed, mut unchanged) = (0, 0, 0);
    let side = |step: Option<&Value>| {
        let of = |key: &str| step.map(|step| step[key].clone());
        json!({
            "status": of("status").unwrap_or("missing".into()),
            "required_present": of("required_present").unwrap_or(0.into()),
            "required_total": of("required_total").unwrap_or(0.into()),
            "timing": of("timing"),
            "cost_usd": of("cost_usd"),
            "executions": of("executions"),
        })
    };
    // How far a step came: what is done counts more than what is there in part.
    let rank = |side: &Value| match side["status"].as_str() {
        Some("complete") => 3,
        Some("n/a") => 2,
        Some("partial") => 1,
        _ => 0,
    };
    let steps: Vec<Value> = ids
        .into_iter()
        .map(|id| {
            let (a, b) = (side(steps_a.get(id)), side(steps_b.get(id)));
            let change = match rank(&b).cmp(&rank(&a)) {
                std::cmp::Ordering::Greater => {
                    improved += 1;
                    "improved"
                }
                std::cmp::Ordering::Less => {
                    regressed += 1;
                    "regressed"
                }
                std::cmp::Ordering::Equal => {
                    unchanged += 1;
                    "unchanged"
                }
            };
            json!({ "step_id": id, "run_a": a, "run_b": b, "change": change })
        })
        .collect();
    json!({
        "run_a": run_a,
        "run_b": run_b,
        "flow": flow,
        "flow_status": { "run_a": a["status"], "run_b": b["status"] },
        "steps": steps,
        "summary": { "improved": improved, "regressed": regressed, "unchanged": unchanged },
    })
}
