//! The files of a run that Quipu itself records, made while it goes on.
//!
//! Each execution of an agent step has a transcript and a receipt of its own. The format knows a file by flow, step
//! and agent only, so the step's id has in it which execution it is: `build_lint`, `build_lint__i2`,
//! `build_lint__i2__a3`. A name depends on nothing but the events before the end of its step. So a file is written
//! once, when its step has ended, and making the files again makes the same ones.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use quipu_model::json::Tape;
use quipu_model::{Block, Body, Event, Header, Json, Money, Place, RunId, StepKind, hex};
use sha2::Digest as _;

use super::meta::RunMeta;
use super::unit::Unit;
use super::{Key, document, names};
use crate::flow::scan::DEPTH;
use crate::flow::stub::Written;
use crate::loss::Loss;

/// The longest id of a step. Longer ones are cut, and end in a hash of the whole.
const LONGEST: usize = 56;

/// The flow of a run that does not say what its workflow is called.
const NAMELESS: &str = "workflow";

/// The agent of a step that ended before anybody was asked.
const NOBODY: &str = "agent";

/// Makes the files of a run out of its events.
#[derive(Debug)]
pub struct StepFiles {
    header: Header,
    flow: String,
    open: Vec<Open>,
    /// How often each step was executed at the same place: a step that was interrupted is executed again there.
    executions: HashMap<Place, u64>,
    /// The names that are taken, in small letters: some file systems do not tell them apart.
    used: HashSet<String>,
    children: Vec<RunId>,
    meta: RunMeta,
    spent: Option<Money>,
    loss: Loss,
}

/// A step that has not ended.
#[derive(Debug)]
struct Open {
    place: Place,
    unit: Unit,
    asked: Asked,
}

/// What the question to the agent says.
#[derive(Debug, Default)]
struct Asked {
    provider: Option<String>,
    role: Option<String>,
    mode: Option<&'static str>,
}

impl StepFiles {
    /// The files of a run. The header says where it runs; what it is called follows from its events.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            flow: NAMELESS.to_owned(),
            open: Vec::new(),
            executions: HashMap::new(),
            used: HashSet::new(),
            children: Vec::new(),
            meta: RunMeta::default(),
            spent: None,
            loss: Loss::default(),
        }
    }

    /// Takes the next event of the run. Gives the files of the steps that ended with it.
    pub fn take(&mut self, event: &Event) -> Vec<Written> {
        if self.header.parent_run_id.is_none() {
            self.header.parent_run_id.clone_from(&event.parent_run_id);
        }
        match &event.body {
            Body::RunStarted(step) => {
                if let Some(step) = step.as_ref().filter(|step| !step.name.is_empty()) {
                    self.flow.clone_from(&step.name);
                }
                self.meta.goes_on();
                self.meta.started(event, step.as_ref(), &mut self.loss);
                Vec::new()
            }
            Body::RunCompleted(end) => {
                self.meta.completed(event, end.as_ref(), &mut self.loss);
                Vec::new()
            }
            Body::CallStarted { child_run_id, .. } => {
                if !self.children.contains(child_run_id) {
                    self.children.push(child_run_id.clone());
                }
                Vec::new()
            }
            Body::StepStarted(step) if step.kind == StepKind::Agent => {
                let mut written = Vec::new();
                if let Some(at) = self.find(&event.place) {
                    let open = self.open.remove(at);
                    written = self.close(open);
                }
                let mut unit = Unit::new(event);
                unit.take(event, &mut self.loss);
                self.open.push(Open {
                    place: event.place.clone(),
                    unit,
                    asked: Asked::default(),
                });
                written
            }
            _ => self.in_step(event),
        }
    }

    /// The runs that this one called.
    pub fn children(&self) -> &[RunId] {
        &self.children
    }

    /// What is written when nothing follows: the steps that have no end, and what is true of the run.
    pub fn finish(mut self) -> Vec<Written> {
        let mut written = Vec::new();
        for mut open in std::mem::take(&mut self.open) {
            open.unit.has_no_end();
            written.extend(self.close(open));
        }
        written.push(Written {
            name: "meta.json".to_owned(),
            bytes: self.meta.document(&self.header),
        });
        written
    }

    fn find(&self, place: &Place) -> Option<usize> {
        self.open.iter().position(|open| open.place == *place)
    }

    fn in_step(&mut self, event: &Event) -> Vec<Written> {
        let Some(at) = self.find(&event.place) else {
            return Vec::new();
        };
        let open = &mut self.open[at];
        open.asked.learn(event);
        for event in split(event) {
            open.unit.take(&event, &mut self.loss);
        }
        if !matches!(&event.body, Body::StepCompleted(_)) {
            return Vec::new();
        }
        let open = self.open.remove(at);
        self.close(open)
    }

    fn close(&mut self, open: Open) -> Vec<Written> {
        let Open { place, unit, asked } = open;
        let result = unit.given().map(Json::get).unwrap_or_default().to_owned();
        let mut tape = Tape::new();
        let result = tape.read(&result, DEPTH).ok();
        let said = |key: &str| result.and_then(|result| result.text(key));
        let session = result
            .and_then(|result| result.get("session")?.text("id"))
            .map(|id| Json::string(&id));
        let provider = asked.provider.as_deref();
        let agent = asked.role.as_deref().or(provider).unwrap_or(NOBODY);
        let engine = names::engine(provider.unwrap_or(NOBODY));
        // What the engine worked out is what the run is said to have cost.
        let cost = said("cost_usd")
            .and_then(|usd| Money::parse(&usd))
            .or(unit.cost());
        self.spent = match (self.spent, cost) {
            (Some(spent), Some(cost)) => Some(spent + cost),
            (spent, cost) => spent.or(cost),
        };
        let key = Key {
            flow: self.flow.clone(),
            step: self.step_id(&place, agent),
            agent: agent.to_owned(),
        };
        let iteration = place.iteration().saturating_add(1);
        let mut done = unit.end(iteration, engine, self.spent, &mut self.loss);
        done.cost = cost;
        let null = || "null".to_owned();
        let text =
            |text: Option<&str>| text.map_or_else(null, |text| Json::string(text).get().to_owned());
        let iterations: Vec<String> = place.iterations.iter().map(ToString::to_string).collect();
        let at = &self.header.environment;
        done.more = vec![
            ("mode", text(asked.mode)),
            ("provider", text(provider)),
            (
                "session_id",
                session.map_or_else(null, |id| id.get().to_owned()),
            ),
            ("git_sha", text(at.commit.as_deref())),
            ("git_branch", text(at.git_branch.as_deref())),
            ("workspace_root", text(at.cwd.as_deref())),
            ("step_path", text(Some(&place.path))),
            ("iterations", format!("[{}]", iterations.join(", "))),
            ("attempt", place.attempt.to_string()),
        ];
        let (flow, stem) = (names::escape(&key.flow), stem(&key));
        let below = format!("llm/{stem}-{}.jsonl", done.engine);
        let receipt = document::receipt(&self.header, &key, &done, &below);
        let transcript = Written {
            name: format!("{flow}/{below}"),
            bytes: done.transcript,
        };
        let receipt = Written {
            name: format!("{flow}/receipts/{stem}.json"),
            bytes: receipt,
        };
        vec![transcript, receipt]
    }

    /// What the format calls an execution of a step: letters, digits and `_` only, because a hyphen begins the agent.
    fn step_id(&mut self, place: &Place, agent: &str) -> String {
        let again = self.executions.entry(place.clone()).or_default();
        *again += 1;
        let mut id: String = place
            .path
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        if id.is_empty() {
            id.push_str("main");
        }
        // Writing to a text does not fail.
        if !place.iterations.is_empty() {
            let passes: Vec<String> = place
                .iterations
                .iter()
                .map(|pass| pass.saturating_add(1).to_string())
                .collect();
            _ = write!(id, "__i{}", passes.join("_"));
        }
        if place.attempt > 1 {
            _ = write!(id, "__a{}", place.attempt);
        }
        if *again > 1 {
            _ = write!(id, "__r{again}");
        }
        let whole = format!(
            "{}\n{:?}\n{}\n{again}",
            place.path, place.iterations, place.attempt
        );
        if id.len() > LONGEST {
            // All of it is ASCII.
            id.truncate(LONGEST - 12);
            id = apart(&id, &whole);
        }
        // `a.b` and `a_b` are two steps. The first that ends has the plain name.
        for name in [id.clone(), apart(&id, &whole)] {
            if self
                .used
                .insert(format!("{name}-{agent}").to_ascii_lowercase())
            {
                return name;
            }
        }
        apart(&id, &format!("{whole}\n{}", self.used.len()))
    }
}

fn apart(id: &str, whole: &str) -> String {
    let hash = sha2::Sha256::digest(whole.as_bytes());
    format!("{id}__x{}", hex::encode(&hash[..4]))
}

fn stem(key: &Key) -> String {
    format!("{}-{}", key.step, names::escape(&key.agent))
}

impl Asked {
    fn learn(&mut self, event: &Event) {
        let said = match &event.body {
            Body::UserMessage(_) => event.annotations.extra.as_ref(),
            // A question that could not be asked leaves nothing else.
            Body::Harness(harness) => harness.attributes.as_ref(),
            _ => None,
        };
        let mut tape = Tape::new();
        let Some(said) = said.and_then(|said| tape.read(said.get(), DEPTH).ok()) else {
            return;
        };
        for (key, to) in [("provider", &mut self.provider), ("role", &mut self.role)] {
            if let Some(text) = said.text(key).filter(|text| !text.is_empty()) {
                to.get_or_insert_with(|| text.into_owned());
            }
        }
        for (key, mode) in [("simulated", "stub"), ("argv", "cli"), ("url", "http")] {
            if said.get(key).is_some() {
                self.mode.get_or_insert(mode);
            }
        }
    }
}

/// The system prompt of a question is a block of the user's message, because that is what is sent. Here it has a
/// line of its own.
fn split(event: &Event) -> Vec<Event> {
    let Body::UserMessage(blocks) = &event.body else {
        return vec![event.clone()];
    };
    let mut tape = Tape::new();
    let extra = event.annotations.extra.as_ref();
    let at = extra
        .and_then(|extra| tape.read(extra.get(), DEPTH).ok())
        .and_then(|extra| extra.get("system_block")?.as_u64())
        .and_then(|at| usize::try_from(at).ok())
        .filter(|at| *at < blocks.len());
    let Some(at) = at else {
        return vec![event.clone()];
    };
    let mut system = event.clone();
    system.body = Body::SystemMessage(vec![blocks[at].clone()]);
    // What the question took is counted once.
    (system.annotations.usage, system.annotations.cost) = (None, None);
    let rest: Vec<Block> = blocks
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != at)
        .map(|(_, block)| block.clone())
        .collect();
    let mut user = event.clone();
    user.body = Body::UserMessage(rest);
    vec![system, user]
}
