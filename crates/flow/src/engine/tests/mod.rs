//! Workflows from their text to their transcript.

mod agents;
mod bad_days;
mod cancel;
mod gaps;
mod kinds;
mod record;
mod resume;
mod survey;

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_model::{Body, Event, RunId};
use quipu_record::{RecorderOptions, RunLog, Storage};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{
    Engine, EngineError, EngineOptions, NoObserver, Observer, Outcome, Person, ResumeOptions,
};
use crate::agent::{AgentOptions, Agents, Script, Stub};
use crate::definition::load::load;
use crate::definition::places::Places;

/// A home and a directory to run in.
pub(super) struct World {
    pub(super) directory: TempDir,
    pub(super) stub: Option<Stub>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) person: Option<Arc<dyn Person>>,
    pub(super) user: String,
    pub(super) recorder: RecorderOptions,
    pub(super) unrecorded: bool,
    pub(super) max_visits: u32,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            stub: Some(Stub::Fixed),
            observer: Arc::new(NoObserver),
            person: None,
            user: "ada".to_owned(),
            recorder: RecorderOptions::default(),
            unrecorded: false,
            max_visits: 50,
        }
    }

    /// A world whose agents reply as this script says.
    pub(super) fn scripted(script: &str) -> Self {
        let script = format!("replies:\n{script}");
        let script = Script::parse("replies.yaml".as_ref(), &script).expect("replies");
        Self {
            stub: Some(Stub::Script(Arc::new(script))),
            ..Self::new()
        }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(super) fn root(&self) -> PathBuf {
        let root = self.directory.path().join("root");
        std::fs::create_dir_all(&root).expect("a directory");
        root
    }

    /// Puts a file below the root.
    pub(super) fn file(&self, name: &str, text: &str) -> PathBuf {
        use std::io::Write as _;
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        let mut file = std::fs::File::create(&path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        path
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).unwrap_or_default()
    }

    pub(super) fn engine(&self) -> Engine {
        let root = self.root();
        let home = self.home();
        let places = Places::from_lookup(&root, |_| None);
        let mut options = EngineOptions::new(&home, &root, places);
        options.recorder = self.recorder.clone();
        options.go_on_unrecorded = self.unrecorded;
        options.agents = Agents::new(AgentOptions {
            stub: self.stub.clone(),
            ..AgentOptions::default()
        });
        options.user.clone_from(&self.user);
        options.observer = Arc::clone(&self.observer);
        options.person.clone_from(&self.person);
        options.max_visits = self.max_visits;
        Engine::new(options)
    }

    /// Runs the steps of a workflow. `steps` is what is below `states:`.
    pub(super) async fn run(&self, steps: &str) -> Ran {
        self.run_with(steps, &[]).await
    }

    pub(super) async fn run_with(&self, steps: &str, inputs: &[(&str, &str)]) -> Ran {
        let outcome = self.try_run(steps, inputs, &CancellationToken::new()).await;
        self.ran(outcome.expect("it is recorded"))
    }

    pub(super) async fn try_run(
        &self,
        steps: &str,
        inputs: &[(&str, &str)],
        cancel: &CancellationToken,
    ) -> Result<Outcome, EngineError> {
        let text = if steps.contains("states:") {
            steps.to_owned()
        } else {
            format!("name: test\nstates:\n{steps}")
        };
        let file = self.file("test.yaml", &text);
        self.start(&file, inputs, cancel).await
    }

    pub(super) async fn start(
        &self,
        file: &std::path::Path,
        inputs: &[(&str, &str)],
        cancel: &CancellationToken,
    ) -> Result<Outcome, EngineError> {
        let places = Places::from_lookup(&self.root(), |_| None);
        let loaded = load(file, &places).unwrap_or_else(|wrong| panic!("{wrong}"));
        let given: IndexMap<String, String> = inputs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let inputs = crate::definition::inputs::resolve(&loaded.workflow, &given).expect("inputs");
        let workflow = Arc::new(loaded.workflow);
        self.engine().run(workflow, inputs, cancel).await
    }

    pub(super) async fn resume(
        &self,
        run: &RunId,
        how: ResumeOptions,
    ) -> Result<Outcome, EngineError> {
        self.engine()
            .resume(run, how, &CancellationToken::new())
            .await
    }

    pub(super) fn ran(&self, outcome: Outcome) -> Ran {
        Ran {
            events: self.events(&outcome.run_id),
            outcome,
        }
    }

    pub(super) fn events(&self, run: &RunId) -> Vec<Event> {
        let log = RunLog::open(&Storage::at(&self.home()).path_of(run)).expect("a transcript");
        let mut events = Vec::new();
        let mut from = Some(1);
        while let Some(seq) = from {
            let page = log.page(seq, 1000).expect("a page");
            assert!(page.bad.is_empty(), "{:?}", page.bad);
            events.extend(page.events.into_iter().map(|event| event.decoded.event));
            from = page.next;
        }
        events
    }
}

/// A run and its transcript.
pub(super) struct Ran {
    pub(super) outcome: Outcome,
    pub(super) events: Vec<Event>,
}

impl Ran {
    /// The lifecycle of the run, a word a line: what began and ended, where.
    pub(super) fn story(&self) -> Vec<String> {
        story(&self.events)
    }

    /// The result of the last end of a step.
    pub(super) fn result(&self, path: &str) -> Value {
        self.results(path).pop().unwrap_or_default()
    }

    /// The results of all ends of a step.
    pub(super) fn results(&self, path: &str) -> Vec<Value> {
        let of = |event: &&Event| event.place.path == path;
        let end = |event: &Event| match &event.body {
            Body::StepCompleted(end) | Body::CallCompleted { end, .. } => end
                .result
                .as_ref()
                .and_then(|json| serde_json::from_str(json.get()).ok()),
            _ => None,
        };
        self.events.iter().filter(of).filter_map(end).collect()
    }

    /// Why a step failed, the last time it ended.
    pub(super) fn error(&self, path: &str) -> Option<String> {
        let ends = self
            .events
            .iter()
            .rev()
            .filter(|event| event.place.path == path);
        let mut errors = ends.filter_map(|event| match &event.body {
            Body::StepCompleted(end) | Body::CallCompleted { end, .. } => Some(end.error.clone()),
            _ => None,
        });
        errors.next().flatten()
    }

    /// The harness events: category and name.
    pub(super) fn harness(&self) -> Vec<(String, String)> {
        self.events
            .iter()
            .filter_map(|event| match &event.body {
                Body::Harness(harness) => Some((harness.category.clone(), harness.name.clone())),
                _ => None,
            })
            .collect()
    }
}

/// What began and ended in a transcript, in order.
pub(super) fn story(events: &[Event]) -> Vec<String> {
    let mut story = Vec::new();
    for event in events {
        let at = match event.place.attempt {
            1 => event.place.label(),
            attempt => format!("{}#{attempt}", event.place.label()),
        };
        story.push(match &event.body {
            Body::RunStarted(_) => "run.started".to_owned(),
            Body::RunCompleted(Some(end)) => {
                let result: Value = end
                    .result
                    .as_ref()
                    .and_then(|json| serde_json::from_str(json.get()).ok())
                    .unwrap_or_default();
                format!("run.completed {}", result["status"].as_str().unwrap_or("?"))
            }
            Body::StepStarted(_) => format!("+{at}"),
            Body::CallStarted { .. } => format!("+{at} calls"),
            Body::StepCompleted(end) | Body::CallCompleted { end, .. } => match &end.error {
                None => format!("-{at}"),
                Some(_) => format!("-{at} failed"),
            },
            _ => continue,
        });
    }
    story
}
