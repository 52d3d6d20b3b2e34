//! What a run has done already, from its own transcript.
//!
//! A resumed run goes through its workflow from the beginning. Each step that has ended answers from here, if what it
//! is given is the same; the others run. No other file says how far a run came.
//!
//! Attempts are numbered without gaps per step and pass, over all visits and executions of a run, so path, iterations
//! and attempt name one execution of a step.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Mutex;

use quipu_model::{Body, Content, Event, Json, Place, RunId, Step, StepEnd, Timestamp};
use quipu_record::RunLog;
use quipu_store::blobs::Blobs;
use serde_json::Value;

use super::state::StepState;

/// How many events are read at once.
const PAGE: usize = 1024;

/// A step that ended.
#[derive(Debug, Clone)]
struct Visit {
    attempt: u64,
    input: String,
    started: u64,
    completed: u64,
    failed: bool,
    /// The run went on as after a success.
    handled: bool,
    child: Option<RunId>,
    child_attempts: u64,
    discarded: bool,
}

/// A step that began and did not end.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) seq: u64,
    pub(super) place: Place,
    pub(super) step: Step,
    pub(super) child: Option<RunId>,
    input: String,
}

/// A step by its path and the passes it is in.
type Key = (String, Vec<u64>);

/// How the last execution of a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LastEnd {
    /// The process did not write it down.
    Interrupted,
    /// As this says: `succeeded`, `failed`, `cancelled` or `paused`.
    Said(String),
}

/// What a step answers from the transcript.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) state: StepState,
    pub(super) attempt: u64,
    pub(super) child_attempts: u64,
}

/// What there is of an earlier visit of a step.
#[derive(Debug)]
pub(super) enum Found {
    /// It ended, with the same input.
    Answer(Box<Answered>),
    /// It ended, but was given something else; the event that says so is discarded.
    Changed(u64),
    /// It did not end, or never began.
    Nothing,
}

/// What a run has done already.
pub(super) struct History {
    visits: HashMap<Key, Vec<Visit>>,
    last_attempt: HashMap<Key, u64>,
    pub(super) open: Vec<Open>,
    pub(super) started: Option<Value>,
    pub(super) first_at: Option<Timestamp>,
    pub(super) executions: u64,
    pub(super) last_end: LastEnd,
    /// The steps that asked for an approval, by the hash of their token.
    pub(super) requests: HashMap<String, String>,
    pub(super) spending: Vec<Event>,
    /// How many questions were put to agents, by the path of the step.
    pub(super) asked: BTreeMap<String, u64>,
    log: RunLog,
    blobs: Option<Blobs>,
    page: Mutex<Vec<Event>>,
}

fn key(place: &Place) -> Key {
    (place.path.clone(), place.iterations.clone())
}

fn extra(json: Option<&Json>) -> Value {
    json.and_then(|json| serde_json::from_str(json.get()).ok())
        .unwrap_or_default()
}

fn numbers(value: &Value) -> impl Iterator<Item = u64> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
}

impl History {
    /// Reads the transcript of a run.
    pub(super) fn read(path: &Path, blobs: Option<Blobs>) -> Result<Self, quipu_record::Error> {
        let log = RunLog::open(path)?;
        let mut history = Self {
            visits: HashMap::new(),
            last_attempt: HashMap::new(),
            open: Vec::new(),
            started: None,
            first_at: None,
            executions: 0,
            last_end: LastEnd::Interrupted,
            requests: HashMap::new(),
            spending: Vec::new(),
            asked: BTreeMap::new(),
            log: RunLog::open(path)?,
            blobs,
            page: Mutex::default(),
        };
        let mut open: HashMap<(Key, u64), Open> = HashMap::new();
        let mut from = Some(1);
        while let Some(seq) = from {
            let page = log.page(seq, PAGE)?;
            for event in page.events {
                history.take(event.decoded.event, &mut open);
            }
            from = page.next;
        }
        history.open = open.into_values().collect();
        history.open.sort_by_key(|open| std::cmp::Reverse(open.seq));
        Ok(history)
    }

    fn take(&mut self, event: Event, open: &mut HashMap<(Key, u64), Open>) {
        let at = (key(&event.place), event.place.attempt);
        match event.body {
            Body::RunStarted(_) => {
                let extra = extra(event.annotations.extra.as_ref());
                self.discard(
                    &extra["resume"]["discards"],
                    extra["resume"]["discards_from"].as_u64(),
                );
                self.executions += 1;
                self.last_end = LastEnd::Interrupted;
                self.first_at.get_or_insert(event.timestamp);
                if self.started.is_none() {
                    self.started = Some(extra);
                }
            }
            Body::RunCompleted(end) => {
                let status = end.and_then(|end| end.result).map(|result| {
                    self::extra(Some(&result))["status"]
                        .as_str()
                        .map(str::to_owned)
                });
                self.last_end = match status.flatten() {
                    Some(status) if status == "interrupted" => LastEnd::Interrupted,
                    Some(status) => LastEnd::Said(status),
                    None => LastEnd::Interrupted,
                };
            }
            Body::StepStarted(step) => {
                self.begin(
                    event.seq,
                    &event.place,
                    step,
                    None,
                    event.annotations.extra.as_ref(),
                    open,
                );
            }
            Body::CallStarted { child_run_id, step } => {
                let child = Some(child_run_id);
                self.begin(
                    event.seq,
                    &event.place,
                    step,
                    child,
                    event.annotations.extra.as_ref(),
                    open,
                );
            }
            Body::StepCompleted(StepEnd { error, .. }) => {
                if let Some(begun) = open.remove(&at) {
                    self.end(
                        event.seq,
                        begun,
                        error.is_some(),
                        event.annotations.extra.as_ref(),
                    );
                }
            }
            Body::CallCompleted { end, .. } => {
                if let Some(begun) = open.remove(&at) {
                    self.end(
                        event.seq,
                        begun,
                        end.error.is_some(),
                        event.annotations.extra.as_ref(),
                    );
                }
            }
            Body::Harness(harness) if harness.name == "approval_requested" => {
                let facts = self::extra(harness.attributes.as_ref());
                if let Some(request) = facts["request"].as_str() {
                    self.requests.insert(request.to_owned(), event.place.path);
                }
            }
            Body::UserMessage(blocks)
                if !blocks
                    .iter()
                    .any(|block| matches!(block.content, Content::Command(_))) =>
            {
                *self.asked.entry(event.place.path).or_default() += 1;
            }
            body => {
                let notes = &event.annotations;
                if notes.usage.is_some() || notes.cost.is_some() {
                    self.spending.push(Event {
                        body: match body {
                            // What was said is not needed to know what it cost.
                            Body::AssistantMessage(_) => Body::AssistantMessage(Vec::new()),
                            body => body,
                        },
                        ..event
                    });
                }
            }
        }
    }

    fn begin(
        &mut self,
        seq: u64,
        place: &Place,
        step: Step,
        child: Option<RunId>,
        notes: Option<&Json>,
        open: &mut HashMap<(Key, u64), Open>,
    ) {
        let extra = extra(notes);
        self.discard(&extra["discards"], None);
        let last = self.last_attempt.entry(key(place)).or_default();
        *last = (*last).max(place.attempt);
        let begun = Open {
            seq,
            place: place.clone(),
            step,
            child,
            input: extra["input_sha256"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        open.insert((key(place), place.attempt), begun);
    }

    fn end(&mut self, seq: u64, begun: Open, failed: bool, notes: Option<&Json>) {
        let extra = extra(notes);
        if extra["retrying"] == Value::Bool(true) || extra["interrupted"] == Value::Bool(true) {
            return;
        }
        self.visits
            .entry(key(&begun.place))
            .or_default()
            .push(Visit {
                attempt: begun.place.attempt,
                input: begun.input,
                started: begun.seq,
                completed: seq,
                failed,
                handled: extra["handled"] == Value::Bool(true),
                child: begun.child,
                child_attempts: extra["child_attempts"].as_u64().unwrap_or_default(),
                discarded: false,
            });
    }

    fn discard(&mut self, seqs: &Value, from: Option<u64>) {
        let seqs: Vec<u64> = numbers(seqs).collect();
        if seqs.is_empty() && from.is_none() {
            return;
        }
        let from = from.unwrap_or(u64::MAX);
        for visit in self.visits.values_mut().flatten() {
            if seqs.contains(&visit.completed) || visit.started >= from {
                visit.discarded = true;
            }
        }
    }

    /// The number of the next attempt at a step that is not answered from here.
    pub(super) fn next_attempt(&self, place: &Place, least: u64) -> u64 {
        let last = self.last_attempt.get(&key(place)).copied();
        least.max(last.unwrap_or_default() + 1)
    }

    /// What there is of a visit of a step whose attempts are numbered from `least`.
    pub(super) fn find(&self, place: &Place, least: u64, input: &str) -> Found {
        let visits = self.visits.get(&key(place)).into_iter().flatten();
        let visit = visits
            .filter(|visit| !visit.discarded && visit.attempt >= least)
            .min_by_key(|visit| visit.attempt);
        let Some(visit) = visit else {
            return Found::Nothing;
        };
        if visit.input != input {
            return Found::Changed(visit.completed);
        }
        let state = self
            .event(visit.completed)
            .and_then(|event| match event.body {
                Body::StepCompleted(end) | Body::CallCompleted { end, .. } => {
                    StepState::from_result(
                        end.result.as_ref(),
                        end.error.as_deref(),
                        self.blobs.as_ref(),
                    )
                }
                _ => None,
            });
        match state {
            Some(state) => Found::Answer(Box::new(Answered {
                state,
                attempt: visit.attempt,
                child_attempts: visit.child_attempts,
            })),
            // A blob is gone: the step runs again.
            None => Found::Changed(visit.completed),
        }
    }

    /// The run that a step began to call, where that call did not end: it goes on.
    pub(super) fn child_of(&self, place: &Place, input: &str) -> Option<RunId> {
        let same = |path: &str, passes: &[u64]| path == place.path && passes == place.iterations;
        let open = self
            .open
            .iter()
            .filter(|open| same(&open.place.path, &open.place.iterations) && open.input == input);
        let failed = self.visits.get(&key(place)).into_iter().flatten();
        let failed = failed.filter(|visit| visit.discarded && visit.failed && visit.input == input);
        open.map(|open| (open.seq, open.child.clone()))
            .chain(failed.map(|visit| (visit.started, visit.child.clone())))
            .max_by_key(|(seq, _)| *seq)?
            .1
    }

    fn event(&self, seq: u64) -> Option<Event> {
        let mut page = self
            .page
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Ok(at) = page.binary_search_by_key(&seq, |event| event.seq) {
            return Some(page[at].clone());
        }
        let read = self.log.page(seq, PAGE).ok()?;
        *page = read
            .events
            .into_iter()
            .map(|event| event.decoded.event)
            .collect();
        page.first().filter(|event| event.seq == seq).cloned()
    }

    /// The completions that a resume after a failure takes back: the step that failed last, the steps around it, and
    /// all that began after it. What succeeded beside it stays.
    pub(super) fn failed_end(&self) -> Vec<u64> {
        let all = || {
            // In any order: what is looked for is named by numbers of events, which differ.
            self.visits
                .iter()
                .flat_map(|((path, _), visits)| {
                    visits.iter().map(move |visit| (path.as_str(), visit))
                })
                .filter(|(_, visit)| !visit.discarded)
        };
        // The failure that ended last is that of the outermost step; the cause is inside of it.
        let mut cause: Option<(&str, &Visit)> = None;
        loop {
            let inside = all().filter(|(path, visit)| {
                visit.failed
                    && !visit.handled
                    && cause.is_none_or(|(outer, around)| {
                        is_inside(path, outer)
                            && visit.started > around.started
                            && visit.completed < around.completed
                    })
            });
            match inside.max_by_key(|(_, visit)| visit.completed) {
                Some(found) => cause = Some(found),
                None => break,
            }
        }
        let Some((path, last)) = cause else {
            return Vec::new();
        };
        let taken_back = |(other, visit): &(&str, &Visit)| {
            let around = visit.started < last.started && visit.completed > last.completed;
            // Branches beside it that failed or were cancelled because of it.
            let beside = visit.failed
                && parent(other) == parent(path)
                && !parent(path).is_empty()
                && visit.completed > last.started;
            visit.started > last.completed
                || visit.completed == last.completed
                || (around && is_inside(path, other))
                || beside
        };
        let mut discards: Vec<u64> = all()
            .filter(taken_back)
            .map(|(_, visit)| visit.completed)
            .collect();
        discards.sort_unstable();
        discards
    }

    /// Takes completions back, as if they had not been.
    pub(super) fn take_back(&mut self, seqs: &[u64], from: Option<u64>) {
        self.discard(&serde_json::json!(seqs), from);
    }

    /// The first event of a step by its path, and the steps that ended from there on.
    pub(super) fn beginning_at(&self, path: &str) -> Option<(u64, Vec<String>)> {
        let of = |(at, _): &&Key| at == path;
        let ended = self
            .visits
            .keys()
            .filter(of)
            .flat_map(|key| &self.visits[key]);
        let first = ended
            .filter(|visit| !visit.discarded)
            .map(|visit| visit.started)
            .chain(
                self.open
                    .iter()
                    .filter(|open| open.place.path == path)
                    .map(|open| open.seq),
            )
            .min()?;
        let mut discarded: Vec<(u64, String)> = sorted(&self.visits)
            .into_iter()
            .flat_map(|((path, passes), visits)| {
                visits.iter().map(move |visit| (visit, path, passes))
            })
            .filter(|(visit, ..)| !visit.discarded && visit.started >= first)
            .map(|(visit, path, passes)| {
                let mut place = Place::step(path);
                place.iterations.clone_from(passes);
                (visit.started, place.label())
            })
            .collect();
        discarded.sort();
        Some((first, discarded.into_iter().map(|(_, name)| name).collect()))
    }

    /// The paths of steps that have begun.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self
            .last_attempt
            .keys()
            .map(|(path, _)| path.clone())
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

fn sorted(visits: &HashMap<Key, Vec<Visit>>) -> BTreeMap<&Key, &Vec<Visit>> {
    visits.iter().collect()
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

/// Whether a path is that of a step inside another.
fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('.'))
}
