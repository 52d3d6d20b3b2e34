//! What is known of a run as a whole, from its own documents.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use quipu_flow::engine::{RecordedEnd, last_event};
use quipu_formats::flow::time;
use quipu_model::{Body, Event, Timestamp};
use serde_json::Value;

use super::events::LINE;
use super::folder::{Folder, Stamp, stamp};
use super::own::{INTERRUPTED, word};
use super::runs::Run;

/// What is known of a run as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Brief {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) backend: Option<String>,
    pub(super) status: Option<String>,
    pub(super) created: Option<Timestamp>,
    pub(super) started: Option<Timestamp>,
    pub(super) completed: Option<Timestamp>,
    pub(super) error: Option<String>,
    pub(super) is_exemplar: bool,
    /// The flows that were to be run.
    pub(super) flows: Vec<String>,
    /// Its `meta.json`.
    pub(super) meta: Option<Value>,
    /// What it is, if it is one of our own whose transcript does not say how it ended.
    open: Option<Open>,
    /// When it was made, as well as that is known; runs are sorted by it.
    pub(super) order: Option<Timestamp>,
}

/// What a run of our own is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// One of a workflow, which has its transcript locked while it runs.
    Workflow,
    /// What others tell now and then.
    Told,
}

/// What the documents of a run look like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Look(Vec<Option<Stamp>>);

const DOCUMENTS: [&str; 4] = ["meta.json", "spec.json", "run.json", "run_state.json"];

/// How long a run that is no workflow may say nothing before it counts as over.
const SILENT: Duration = Duration::from_secs(600);

impl Look {
    pub(super) fn of(run: &Run) -> Self {
        if let Some(path) = &run.transcript {
            let file = File::open(path).ok();
            return Self(vec![file.as_ref().and_then(stamp)]);
        }
        let folder = run.directory.as_deref().and_then(Folder::open);
        let look = |name: &&str| folder.as_ref()?.stamp(Path::new(name));
        Self(DOCUMENTS.iter().map(look).collect())
    }
}

/// Whether a word for how a run goes says that it is over.
pub(super) fn is_over(status: &str) -> bool {
    matches!(
        status,
        "succeeded" | "failed" | "canceled" | "cancelled" | "stopped" | "partial" | "completed"
    )
}

impl Brief {
    pub(super) fn of(run: &Run) -> Self {
        let mut brief = Self::default();
        if let Some(folder) = run.directory.as_deref().and_then(Folder::open) {
            brief.take_documents(&folder);
        }
        if let Some(path) = &run.transcript {
            brief.take_recorded(path);
        }
        let modified = || {
            let at = std::fs::metadata(run.path()).ok()?.modified().ok()?;
            let at = at.duration_since(UNIX_EPOCH).ok()?;
            Timestamp::from_second(i64::try_from(at.as_secs()).ok()?).ok()
        };
        let known = brief.created.or(brief.started).or_else(|| in_id(&run.id));
        brief.order = known.or(brief.completed).or_else(modified);
        brief
    }

    fn take_documents(&mut self, folder: &Folder) {
        let text = |from: Option<&Value>, key: &str| {
            let text = from?.get(key)?.as_str()?;
            Some(text.to_owned()).filter(|text| !text.is_empty())
        };
        let meta = folder.json("meta.json").filter(Value::is_object);
        let older = folder.json("run.json");
        let spec = folder.json("spec.json");
        let of_meta = meta.as_ref().and_then(|meta| meta.get("spec"));
        let state = folder.json("run_state.json");
        for document in [meta.as_ref(), older.as_ref()] {
            self.title = self.title.take().or_else(|| text(document, "title"));
            let description = self.description.take();
            self.description = description.or_else(|| text(document, "description"));
            let tags = document.and_then(|document| document.get("tags")?.as_array());
            let tags = tags.into_iter().flatten().filter_map(Value::as_str);
            for tag in tags.map(str::to_owned) {
                if !self.tags.contains(&tag) {
                    self.tags.push(tag);
                }
            }
        }
        for document in [of_meta, spec.as_ref()] {
            self.backend = self.backend.take().or_else(|| text(document, "backend"));
            let flows = document.and_then(|document| document.get("flow_keys")?.as_array());
            let flows = flows.into_iter().flatten().filter_map(Value::as_str);
            if self.flows.is_empty() {
                self.flows = flows.map(str::to_owned).collect();
            }
        }
        let at = |key: &str| text(meta.as_ref(), key).and_then(|at| time::parse(&at));
        self.created = at("created_at").map(|time| time.at);
        self.started = at("started_at").map(|time| time.at);
        self.completed = at("completed_at").map(|time| time.at);
        self.error = text(meta.as_ref(), "error");
        // One program never writes that a run is over into its state, the other has no meta.json.
        let said = text(state.as_ref(), "status");
        self.status = text(meta.as_ref(), "status").or(said);
        let exemplar = meta
            .as_ref()
            .and_then(|meta| meta.get("is_exemplar")?.as_bool());
        self.is_exemplar = exemplar.unwrap_or(false);
        self.meta = meta;
    }

    fn take_recorded(&mut self, path: &Path) {
        let Ok(mut file) = File::open(path) else {
            return;
        };
        self.status = Some("running".to_owned());
        self.open = Some(Open::Told);
        self.backend = Some("quipu".to_owned());
        self.completed = None;
        self.error = None;
        let length = file.metadata().map_or(0, |there| there.len());
        let mut head = Vec::new();
        let first = BufReader::new((&file).take(LINE as u64)).read_until(b'\n', &mut head);
        if first.is_ok()
            && let Some(first) = event(&head)
        {
            self.started = Some(first.timestamp);
            if let Body::RunStarted(Some(step)) = &first.body {
                self.title = self.title.take().or_else(|| Some(step.name.clone()));
            }
            let facts = first.annotations.extra.as_ref();
            let facts = facts.and_then(|facts| serde_json::from_str::<Value>(facts.get()).ok());
            if facts.is_some_and(|facts| facts["workflow_file"].is_string()) {
                self.open = Some(Open::Workflow);
            }
        }
        let last = last_event(&mut file, length);
        let Some((last, end)) = last.and_then(|last| {
            let end = RecordedEnd::of(&last)?;
            Some((last, end))
        }) else {
            return;
        };
        let word = word(&end);
        if word == INTERRUPTED {
            return;
        }
        self.open = None;
        self.status = Some(word.to_owned());
        if is_over(word) {
            self.completed = Some(last.timestamp);
            self.error = end.error;
        }
    }

    /// Whether its `meta.json` says how it goes.
    pub(super) fn is_said(&self) -> bool {
        let said = self.meta.as_ref().and_then(|meta| meta.get("status"));
        said.and_then(Value::as_str)
            .is_some_and(|status| !status.is_empty())
    }

    /// Whether it is one of our own whose transcript does not say how it ended.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether nobody goes on with a run that is open and that nobody writes.
    pub(super) fn is_left(&self, transcript: &Path) -> bool {
        let is_silent = || {
            let changed = std::fs::metadata(transcript).and_then(|there| there.modified());
            let since = changed.ok().and_then(|changed| changed.elapsed().ok());
            since.is_some_and(|since| since > SILENT)
        };
        match self.open {
            None => false,
            Some(Open::Workflow) => true,
            Some(Open::Told) => is_silent(),
        }
    }

    /// The same run, whose process died before it could say how the run ended.
    pub(super) fn lost(&self) -> Self {
        Self {
            status: Some("stopped".to_owned()),
            error: Some("the process of the run ended before the run did".to_owned()),
            ..self.clone()
        }
    }
}

fn event(line: &[u8]) -> Option<Event> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    quipu_exchange::decode_text(text)
        .ok()
        .map(|(event, _)| event)
}

/// When a run was made, where its id says so: `run-20251209-143022-abc123`.
fn in_id(id: &str) -> Option<Timestamp> {
    let mut parts = id.strip_prefix("run-")?.split('-');
    let (day, time) = (parts.next()?, parts.next()?);
    let text = format!("{day}T{time}");
    let at = DateTime::strptime("%Y%m%dT%H%M%S", text).ok()?;
    let zoned = at.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}
