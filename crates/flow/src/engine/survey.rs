//! How far a run came, from its transcript alone: for whoever did not run it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_model::{Body, Event, HarnessEvent, Json, Money, Place, RunId, StepKind, Timestamp};
use quipu_prices::Prices;
use quipu_record::{RunLog, Storage};
use serde_json::{Map, Value};

use super::approval::{hash, may_approve};
use super::spending::Spending;

/// How many events are read at once.
const PAGE: usize = 1024;

/// The longest first line that is looked at; it has the inputs of the run.
const FIRST_LINE: u64 = 8 << 20;

/// How much of a transcript's end is looked at first, and at most, for its last line. One that says how a run ended is short,
/// unless its message is long.
const LAST_BYTES: u64 = 64 << 10;
const LAST_LINE: u64 = 8 << 20;

/// How an execution ended, as its transcript says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedEnd {
    /// `succeeded`, `failed`, `cancelled`, `paused`, or `interrupted`; empty where the transcript does not say.
    pub status: String,
    /// The exit code.
    pub exit_code: Option<u8>,
    /// What the terminal step said.
    pub message: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// What the first and the last line of a transcript say. Quick, however long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glance {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// Who started it.
    pub starter: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When the last thing happened.
    pub last_at: Option<Timestamp>,
    /// How it ended; `None` while it has not, or was cut off.
    pub end: Option<RecordedEnd>,
}

impl Glance {
    /// Looks at a transcript; `None` when it is not that of a workflow that was started by itself.
    pub fn at(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let length = file
            .metadata()
            .ok()
            .filter(std::fs::Metadata::is_file)?
            .len();
        let mut first = String::new();
        BufReader::new((&file).take(FIRST_LINE))
            .read_line(&mut first)
            .ok()?;
        let (event, _) = quipu_exchange::decode_text(first.trim_end()).ok()?;
        let Body::RunStarted(Some(named)) = &event.body else {
            return None;
        };
        let facts = extra(event.annotations.extra.as_ref());
        if !facts["workflow_file"].is_string() || event.parent_run_id.is_some() {
            return None;
        }
        let last = last_event(&mut file, length);
        let end = last.as_ref().and_then(RecordedEnd::of);
        Some(Self {
            run_id: event.run_id,
            workflow: named.name.clone(),
            starter: text(&facts["user"]).unwrap_or_default(),
            started_at: event.timestamp,
            last_at: last.map(|last| last.timestamp),
            end,
        })
    }
}

/// The last event of a file of so many bytes; `None` when its last line is torn, or longer than 8 MiB.
pub fn last_event(file: &mut File, length: u64) -> Option<Event> {
    let mut wanted = LAST_BYTES;
    loop {
        file.seek(SeekFrom::Start(length.saturating_sub(wanted)))
            .ok()?;
        let mut end = Vec::new();
        (&mut *file).take(wanted).read_to_end(&mut end).ok()?;
        let end = end.strip_suffix(b"\n").unwrap_or(&end);
        let from = end.iter().rposition(|byte| *byte == b'\n');
        if from.is_some() || wanted >= length {
            let line = std::str::from_utf8(&end[from.map_or(0, |at| at + 1)..]).ok()?;
            let (event, _) = quipu_exchange::decode_text(line).ok()?;
            return Some(event);
        }
        if wanted >= LAST_LINE {
            return None;
        }
        wanted = (wanted * 8).min(LAST_LINE);
    }
}

impl RecordedEnd {
    /// What an event says of the end of a run; `None` when it is not its end.
    pub fn of(event: &Event) -> Option<Self> {
        let Body::RunCompleted(end) = &event.body else {
            return None;
        };
        let Some(end) = end else {
            return Some(Self::default());
        };
        let result = extra(end.result.as_ref());
        let code = result["exit_code"].as_u64();
        Some(Self {
            status: text(&result["status"]).unwrap_or_default(),
            exit_code: code.and_then(|code| u8::try_from(code).ok()),
            message: text(&result["message"]),
            error: end.error.clone(),
        })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn extra(json: Option<&Json>) -> Value {
    json.and_then(|json| serde_json::from_str(json.get()).ok())
        .unwrap_or_default()
}

/// A step that began and has not ended.
#[derive(Debug, Clone)]
pub struct OpenStep {
    /// Where.
    pub place: Place,
    /// What it does.
    pub kind: StepKind,
    /// Since when.
    pub started_at: Timestamp,
}

/// An approval that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// The step.
    pub path: String,
    /// What is asked.
    pub message: String,
    /// Who may consent; anybody when it is empty.
    pub approvers: Vec<String>,
    /// Whether whoever started the run may not consent.
    pub not_starter: bool,
    /// The hash of the token.
    request: String,
}

/// How far a run came.
#[derive(Debug)]
pub struct Survey {
    /// The run.
    pub run_id: RunId,
    /// The run that called it.
    pub parent: Option<RunId>,
    /// Its workflow.
    pub workflow: String,
    /// The file of that; `None` when the run was not started by Quipu.
    pub workflow_file: Option<PathBuf>,
    /// The inputs of its latest execution, as they were recorded.
    pub inputs: Map<String, Value>,
    /// Who started it.
    pub starter: String,
    /// The directory it began in.
    pub dir: Option<PathBuf>,
    /// When it began.
    pub started_at: Timestamp,
    /// When the last thing happened.
    pub last_at: Timestamp,
    /// How its latest execution ended; `None` while it has not, or was cut off.
    pub end: Option<RecordedEnd>,
    /// Steps that began in the latest execution and have not ended.
    pub open: Vec<OpenStep>,
    /// Approvals that it, or a run that it called, waits for, the oldest first.
    pub requests: Vec<OpenRequest>,
    /// What it cost with the runs that it called, as far as it is known.
    pub dollars: Money,
    /// How many calls have no known price.
    pub unpriced: u64,
    /// The tokens it used.
    pub tokens: u64,
}

impl Survey {
    /// Reads the transcript of a run and of the runs that it called; `None` when it has no beginning.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read. One of a called run that cannot is passed over.
    pub fn of(
        storage: &Storage,
        run_id: &RunId,
        prices: &Arc<Prices>,
    ) -> Result<Option<Self>, quipu_record::Error> {
        let mut reading = Reading::new(prices);
        reading.read(&storage.path_of(run_id), true)?;
        let mut seen = BTreeSet::from([run_id.clone()]);
        while let Some(child) = reading.children.pop() {
            if seen.insert(child.clone()) {
                // A child that was never begun has no file.
                reading.read(&storage.path_of(&child), false).ok();
            }
        }
        let sum = reading.spending.sum();
        Ok(reading.survey.map(|survey| Self {
            open: reading.open,
            requests: reading.requests,
            dollars: sum.dollars,
            unpriced: sum.unpriced,
            tokens: sum.tokens,
            ..survey
        }))
    }

    /// Whether somebody may answer the request that a token belongs to, or why not. `None` when nothing waits for it.
    pub fn may_consent(&self, token: &str, user: &str) -> Option<Result<(), String>> {
        let token = hash(token);
        let asked = self.requests.iter().find(|asked| asked.request == token)?;
        Some(may_approve(
            &asked.approvers,
            asked.not_starter,
            user,
            &self.starter,
        ))
    }
}

struct Reading {
    survey: Option<Survey>,
    open: Vec<OpenStep>,
    requests: Vec<OpenRequest>,
    children: Vec<RunId>,
    spending: Spending,
}

impl Reading {
    fn new(prices: &Arc<Prices>) -> Self {
        Self {
            survey: None,
            open: Vec::new(),
            requests: Vec::new(),
            children: Vec::new(),
            spending: Spending::new(Arc::clone(prices), None),
        }
    }

    fn read(&mut self, path: &Path, is_root: bool) -> Result<(), quipu_record::Error> {
        let log = RunLog::open(path)?;
        let mut from = Some(1);
        while let Some(seq) = from {
            let page = log.page(seq, PAGE)?;
            for event in page.events {
                self.take(&event.decoded.event, is_root);
            }
            from = page.next;
        }
        Ok(())
    }

    fn take(&mut self, event: &Event, is_root: bool) {
        self.spending.add(&event.annotations, event.timestamp);
        match &event.body {
            Body::CallStarted { child_run_id, .. } => self.children.push(child_run_id.clone()),
            Body::Harness(harness) => self.harness(event, harness),
            _ => {}
        }
        if !is_root {
            return;
        }
        if let Some(survey) = &mut self.survey {
            survey.last_at = event.timestamp;
        }
        match &event.body {
            Body::RunStarted(Some(named)) => {
                self.open.clear();
                self.begin(event, &named.name);
            }
            Body::RunCompleted(_) => {
                self.open.clear();
                if let Some(survey) = &mut self.survey {
                    survey.end = RecordedEnd::of(event);
                }
            }
            Body::StepStarted(step) | Body::CallStarted { step, .. } => self.open.push(OpenStep {
                place: event.place.clone(),
                kind: step.kind.clone(),
                started_at: event.timestamp,
            }),
            Body::StepCompleted(_) | Body::CallCompleted { .. } => {
                self.open.retain(|open| open.place != event.place);
            }
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, name: &str) {
        let mut facts = extra(event.annotations.extra.as_ref());
        let inputs = match facts["inputs"].take() {
            Value::Object(inputs) => inputs,
            _ => Map::new(),
        };
        if let Some(survey) = &mut self.survey {
            (survey.inputs, survey.end) = (inputs, None);
            return;
        }
        self.survey = Some(Survey {
            run_id: event.run_id.clone(),
            parent: event.parent_run_id.clone(),
            workflow: name.to_owned(),
            workflow_file: text(&facts["workflow_file"]).map(PathBuf::from),
            inputs,
            starter: text(&facts["user"]).unwrap_or_default(),
            dir: text(&facts["dir"]).map(PathBuf::from),
            started_at: event.timestamp,
            last_at: event.timestamp,
            end: None,
            open: Vec::new(),
            requests: Vec::new(),
            dollars: Money::ZERO,
            unpriced: 0,
            tokens: 0,
        });
    }

    fn harness(&mut self, event: &Event, harness: &HarnessEvent) {
        let facts = || extra(harness.attributes.as_ref());
        match harness.name.as_str() {
            "approval_requested" => {
                let facts = facts();
                let approvers = facts["approvers"].as_array().into_iter().flatten();
                self.requests.push(OpenRequest {
                    path: event.place.label(),
                    message: text(&facts["message"]).unwrap_or_default(),
                    approvers: approvers.filter_map(text).collect(),
                    not_starter: facts["not_starter"] == Value::Bool(true),
                    request: text(&facts["request"]).unwrap_or_default(),
                });
            }
            "approval_granted" | "approval_denied" => {
                // An answer settles all requests of the step, also those that were made anew when the run was resumed.
                let path = event.place.label();
                self.requests.retain(|asked| asked.path != path);
            }
            _ => {}
        }
    }
}
