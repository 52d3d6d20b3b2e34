//! The values that templates and expressions see.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_model::{RunId, Timestamp};
use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::state::StepState;
use crate::template::Variables;

/// What does not change during a run.
#[derive(Debug)]
pub(super) struct RunFacts {
    pub(super) run_id: RunId,
    pub(super) name: String,
    pub(super) started: Timestamp,
    pub(super) clock: Clock,
    pub(super) inputs: IndexMap<String, Value>,
    pub(super) dir: PathBuf,
    pub(super) user: String,
    pub(super) hostname: String,
    /// `awf.prompts_dir` and the like.
    pub(super) places: BTreeMap<String, String>,
}

/// One pass through a loop.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) item: Value,
    pub(super) index: u64,
    /// How many passes there are; `None` where a condition decides.
    pub(super) length: Option<u64>,
    pub(super) parent: Option<Arc<Pass>>,
}

/// What went wrong, for hooks that run after a failure.
#[derive(Debug, Clone, Default)]
pub(super) struct ErrorFacts {
    pub(super) message: String,
    pub(super) state: String,
    pub(super) exit_code: i32,
    pub(super) kind: String,
}

/// The values at one point of a run. Each branch and each iteration has its own.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) facts: Arc<RunFacts>,
    pub(super) states: BTreeMap<String, Arc<StepState>>,
    pub(super) pass: Option<Arc<Pass>>,
    pub(super) error: Option<Arc<ErrorFacts>>,
    pub(super) current: String,
}

impl Context {
    pub(super) fn new(facts: Arc<RunFacts>) -> Self {
        Self {
            facts,
            states: BTreeMap::new(),
            pass: None,
            error: None,
            current: String::new(),
        }
    }

    fn workflow(&self, field: &str) -> Option<Value> {
        let facts = &self.facts;
        Some(match field {
            "ID" | "id" => json!(facts.run_id.as_str()),
            "Name" | "name" => json!(facts.name),
            "CurrentState" | "current_state" => json!(self.current),
            "StartedAt" | "started_at" => json!(facts.started.to_string()),
            "Duration" | "duration" => {
                let took = facts.clock.now().duration_since(facts.started);
                json!(go_duration(took.as_millis()))
            }
            _ => return None,
        })
    }

    fn machine(&self, field: &str) -> Option<Value> {
        Some(match field {
            "WorkingDir" | "working_dir" => json!(self.facts.dir.to_string_lossy()),
            "User" | "user" => json!(self.facts.user),
            "Hostname" | "hostname" => json!(self.facts.hostname),
            _ => return None,
        })
    }

    fn failure(&self, field: &str) -> Option<Value> {
        let error = self.error.as_ref()?;
        Some(match field {
            "Message" | "message" => json!(error.message),
            "State" | "state" => json!(error.state),
            "ExitCode" | "exit_code" => json!(error.exit_code),
            "Type" | "type" => json!(error.kind),
            _ => return None,
        })
    }
}

/// A duration in milliseconds as Go prints it, to the millisecond.
fn go_duration(millis: i128) -> String {
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let (seconds, fraction) = (rest / 1000, rest % 1000);
    let seconds = match fraction {
        0 => format!("{seconds}s"),
        fraction => format!("{seconds}.{fraction:03}s"),
    };
    match (minutes / 60, minutes % 60) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

impl Pass {
    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Item" | "item" => self.item.clone(),
            "Index" | "index" => json!(self.index),
            "Index1" | "index1" => json!(self.index + 1),
            "First" | "first" => json!(self.index == 0),
            "Last" | "last" => json!(self.length == Some(self.index + 1)),
            // As awf has it for loops whose end is not known.
            "Length" | "length" => self
                .length
                .map_or_else(|| json!(-1), |length| json!(length)),
            "Parent" | "parent" => self.parent.as_ref()?.all(),
            _ => return None,
        })
    }

    fn all(&self) -> Value {
        let names = [
            "Item", "Index", "Index1", "First", "Last", "Length", "Parent",
        ];
        names
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.field(name)?)))
            .collect::<Map<_, _>>()
            .into()
    }

    fn at(&self, path: &[&str]) -> Option<Value> {
        match path {
            [] => Some(self.all()),
            ["Parent" | "parent", rest @ ..] => self.parent.as_ref()?.at(rest),
            [field, rest @ ..] => walk(self.field(field)?, rest),
        }
    }
}

/// A value inside another.
fn walk(mut value: Value, path: &[&str]) -> Option<Value> {
    for key in path {
        value = match value {
            Value::Object(mut fields) => fields.remove(*key)?,
            Value::Array(mut items) => {
                let index: usize = key.parse().ok()?;
                (index < items.len()).then(|| items.swap_remove(index))?
            }
            _ => return None,
        };
    }
    Some(value)
}

fn all<const N: usize>(names: [&str; N], field: impl Fn(&str) -> Option<Value>) -> Value {
    names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), field(name)?)))
        .collect::<Map<_, _>>()
        .into()
}

impl Variables for Context {
    fn value(&self, path: &[&str]) -> Option<Value> {
        let (root, rest) = path.split_first()?;
        match (*root, rest) {
            ("inputs", []) => Some(json!(self.facts.inputs)),
            ("inputs", [name, rest @ ..]) => walk(self.facts.inputs.get(*name)?.clone(), rest),
            ("states", []) => Some(
                self.states
                    .iter()
                    .map(|(name, state)| (name.clone(), state.all_fields()))
                    .collect::<Map<_, _>>()
                    .into(),
            ),
            ("states", [step]) => Some(self.states.get(*step)?.all_fields()),
            ("states", [step, field, rest @ ..]) => {
                walk(self.states.get(*step)?.field(field)?, rest)
            }
            ("env", []) => Some(
                std::env::vars_os()
                    .filter_map(|(name, value)| {
                        Some((name.into_string().ok()?, value.into_string().ok()?.into()))
                    })
                    .collect::<Map<_, _>>()
                    .into(),
            ),
            ("env", [name]) => Some(std::env::var(name).ok()?.into()),
            ("loop", path) => self.pass.as_ref()?.at(path),
            ("workflow", []) => Some(all(
                ["ID", "Name", "CurrentState", "StartedAt", "Duration"],
                |name| self.workflow(name),
            )),
            ("workflow", [field]) => self.workflow(field),
            ("context", []) => Some(all(["WorkingDir", "User", "Hostname"], |name| {
                self.machine(name)
            })),
            ("context", [field]) => self.machine(field),
            ("error", []) => {
                self.error.as_ref()?;
                Some(all(["Message", "State", "ExitCode", "Type"], |name| {
                    self.failure(name)
                }))
            }
            ("error", [field]) => self.failure(field),
            ("awf", []) => Some(json!(self.facts.places)),
            ("awf", [name]) => Some(json!(self.facts.places.get(*name)?)),
            _ => None,
        }
    }
}
