//! Flows, and how the server is. Flow Studio knows flows from its configuration; here they are what runs have, and what
//! the catalogue of expected artifacts beside them says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use serde_json::{Value, json};

use super::Studio;
use super::facts::Shape;
use super::fault::{Answered, Fault};
use super::folder::Folder;
use super::params::{Ids, Reading};
use super::record::iso;
use super::rows::sorted;
use super::runs::{Kind, Run};
use crate::answer::json as answer;

/// How many runs, the newest first, are looked at for their flows.
const LOOKED_AT: usize = 200;

/// How long what is known of flows holds. Pages ask for it all the time.
const HOLDS: Duration = Duration::from_secs(10);

/// The flows that Flow Studio has, in its order.
pub(super) const FLOWS: [&str; 7] = [
    "signal", "plan", "build", "review", "gate", "deploy", "wisdom",
];

/// What a flow is expected to leave: `swarm/meta/artifact_catalog.json`.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    pub(super) title: Option<String>,
    pub(super) decision: Option<String>,
    pub(super) steps: BTreeMap<String, ExpectedStep>,
}

/// What a step is expected to leave.
#[derive(Debug, Clone, Default)]
pub(super) struct ExpectedStep {
    pub(super) required: Vec<String>,
    pub(super) optional: Vec<String>,
    pub(super) note: Option<String>,
}

/// What is expected of the runs in the directory that a run is in. The catalogue lies beside that directory.
pub(super) fn expected(run: &Run) -> BTreeMap<String, Expected> {
    let above = run
        .directory
        .as_deref()
        .filter(|_| run.transcript.is_none());
    let above = above.and_then(|path| path.parent()?.parent());
    let catalogue = above
        .and_then(|above| Folder::open(&above.join("meta")))
        .and_then(|folder| folder.json("artifact_catalog.json"));
    let flows = catalogue
        .as_ref()
        .and_then(|it| it.get("flows")?.as_object());
    let flows = flows.into_iter().flatten();
    flows
        .map(|(key, flow)| {
            let text = |key: &str| flow.get(key).and_then(Value::as_str).map(str::to_owned);
            let steps = flow.get("steps").and_then(Value::as_object);
            let steps = steps.into_iter().flatten();
            let steps = steps.map(|(id, step)| (id.clone(), ExpectedStep::of(step)));
            let expected = Expected {
                title: text("title"),
                decision: text("decision_artifact").filter(|name| is_inside(name)),
                steps: steps.collect(),
            };
            (key.clone(), expected)
        })
        .collect()
}

/// Whether a path of the catalogue stays in its flow.
fn is_inside(path: &str) -> bool {
    let parts = Path::new(path).components();
    let mut parts = parts.map(|part| matches!(part, std::path::Component::Normal(_)));
    !path.is_empty() && parts.all(|is_name| is_name)
}

impl ExpectedStep {
    fn of(step: &Value) -> Self {
        let list = |key: &str| {
            let list = step.get(key).and_then(Value::as_array);
            let names = list.into_iter().flatten().filter_map(Value::as_str);
            let names = names.filter(|name| is_inside(name));
            names.map(str::to_owned).collect()
        };
        Self {
            required: list("required"),
            optional: list("optional"),
            note: step.get("note").and_then(Value::as_str).map(str::to_owned),
        }
    }
}

/// A key as a title: `build` is `Build`.
pub(super) fn title(key: &str) -> String {
    let words = key.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    let words = words.map(|word| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Studio {
    /// Flows with their steps and agents, as the newest runs have them.
    fn known(&self) -> Arc<Shape> {
        if let Some((at, known)) = &*self.known.lock()
            && at.elapsed() < HOLDS
        {
            return Arc::clone(known);
        }
        let mut shape = Shape::new();
        for (run, _) in sorted(self).into_iter().take(LOOKED_AT) {
            for (key, flow) in expected(&run) {
                let steps = shape.entry(key).or_default();
                for step in flow.steps.into_keys() {
                    steps.entry(step).or_default();
                }
            }
            let Some(folder) = run.directory.as_deref().and_then(Folder::open) else {
                continue;
            };
            for (flow, steps) in &self.facts(&folder, &run).shape {
                let known = shape.entry(flow.clone()).or_default();
                for (step, agents) in steps {
                    known
                        .entry(step.clone())
                        .or_default()
                        .extend(agents.iter().cloned());
                }
            }
        }
        let shape = Arc::new(shape);
        *self.known.lock() = Some((Instant::now(), Arc::clone(&shape)));
        shape
    }

    /// Whether runs of Flow Studio are served, so that its flows are meant even where a run lacks them.
    pub(super) fn is_of_studio(&self, run: &Run) -> bool {
        run.transcript.is_none() && (run.kind == Kind::Example || !self.places.sources.is_empty())
    }
}

/// Keys in the order of Flow Studio, others behind them by name.
pub(super) fn in_order<'k>(keys: impl Iterator<Item = &'k String>) -> Vec<&'k String> {
    let mut keys: Vec<&String> = keys.collect();
    keys.sort_by_key(|key| {
        let at = FLOWS.iter().position(|flow| flow == key);
        (at.unwrap_or(FLOWS.len()), (*key).clone())
    });
    keys
}

/// `GET /api/flows`
pub(super) async fn flows(ask: Reading, headers: HeaderMap) -> Answered {
    let answered = ask.read(|studio, _| {
        let known = studio.known();
        let flows = in_order(known.keys()).into_iter().map(|key| {
            json!({
                "key": key,
                "title": title(key),
                "description": "",
                "step_count": known[key].len(),
            })
        });
        let flows: Vec<Value> = flows.collect();
        Ok(json!({ "flows": flows }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

fn no_flow(flow: &str, known: &Shape) -> Fault {
    let available: Vec<&String> = in_order(known.keys());
    let names: Vec<&str> = available.iter().map(|key| key.as_str()).collect();
    let hint = if names.is_empty() {
        "No run has a flow".to_owned()
    } else {
        format!("Available flows: {}", names.join(", "))
    };
    Fault::missing(format!("Flow '{flow}' not found"))
        .with("available_flows", names)
        .hint(hint)
}

/// `GET /api/flows/{flow}`
pub(super) async fn flow(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.read(move |studio, _| {
        let known = studio.known();
        let steps = known
            .get(&ids.flow)
            .ok_or_else(|| no_flow(&ids.flow, &known))?;
        let mut agents = serde_json::Map::new();
        for agent in steps.values().flatten() {
            agents.insert(
                agent.clone(),
                json!({ "key": agent, "category": "unknown" }),
            );
        }
        let steps: Vec<Value> = steps
            .iter()
            .map(|(step, agents)| {
                json!({ "id": step, "title": title(step), "role": "", "agents": agents })
            })
            .collect();
        Ok(json!({
            "flow": { "key": ids.flow, "title": title(&ids.flow), "description": "" },
            "steps": steps,
            "agents": agents,
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/graph/{flow}`: steps and who is assigned to them. The order of steps is not known, so it has no edges
/// between them.
pub(super) async fn graph(ask: Reading, ids: Ids, headers: HeaderMap) -> Answered {
    let answered = ask.read(move |studio, _| {
        let known = studio.known();
        let steps = known
            .get(&ids.flow)
            .ok_or_else(|| no_flow(&ids.flow, &known))?;
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        let mut agents = std::collections::BTreeSet::new();
        for (step, own) in steps {
            let id = format!("step:{}:{step}", ids.flow);
            nodes.push(json!({ "data": {
                "id": id, "type": "step", "label": title(step), "flow": ids.flow, "step_id": step,
            }}));
            for agent in own {
                edges.push(json!({ "data": {
                    "id": format!("edge:{id}:{agent}"), "type": "step-agent",
                    "source": id, "target": format!("agent:{agent}"),
                }}));
                agents.insert(agent);
            }
        }
        for agent in agents {
            nodes.push(json!({ "data": {
                "id": format!("agent:{agent}"), "type": "agent", "label": agent,
                "agent_key": agent,
            }}));
        }
        Ok(json!({ "nodes": nodes, "edges": edges }))
    });
    Ok(answer(&answered.await?, &headers)?)
}

/// `GET /api/health`
pub(super) async fn health(ask: Reading, headers: HeaderMap) -> Answered {
    let now = ask.app.clock().now();
    let answered = ask.read(move |studio, _| {
        let known = studio.known();
        let agents: std::collections::BTreeSet<&String> = known
            .values()
            .flat_map(BTreeMap::values)
            .flatten()
            .collect();
        Ok(json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "service": "quipu",
            "timestamp": iso(now),
            "flows": known.len(),
            "agents": agents.len(),
            "selftest_status": null,
            "capabilities": {
                "runs": true, "timeline": true, "governance": false, "validation": false,
            },
        }))
    });
    Ok(answer(&answered.await?, &headers)?)
}
