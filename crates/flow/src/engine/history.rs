//! What a run has done already, from its own transcript.
//!
//! A resumed run goes through its workflow from the beginning. Each step that has ended answers from here, if what it
//! is given is the same; the others run. No other file says how far a run came.
//!
//! Attempts are numbered without gaps per step and pass, over all visits and executions of a run, so path, iterations
//! and attempt name one execution of a step.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use quipu_model::{Body, Content, Event, Json, Place, RunId, Step, StepEnd, Timestamp};
use quipu_record::RunLog;
use quipu_store::blobs::Blobs;
use serde_json::Value;

use super::run::MASKED;
use super::state::StepState;

/// How many events are read at once.
const PAGE: usize = 1024;

/// What a profile leaves in the place of a secret begins so.
const REDACTED: &str = "[REDACTED:";

/// A step that ended by itself.
#[derive(Debug, Clone)]
struct Visit {
    attempt: u64,
    input: String,
    started: u64,
    completed: u64,
    failed: bool,
    /// The run went on as after a success.
    handled: bool,
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
    Said {
        status: String,
        /// The end of the step whose failure ended the run.
        ended_by: Option<u64>,
    },
}

/// What a step answers from the transcript.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) state: StepState,
    pub(super) attempt: u64,
    pub(super) child_attempts: u64,
    /// What the steps inside of it left behind.
    pub(super) inside: Vec<(String, StepState)>,
}

/// What there is of an earlier visit of a step.
#[derive(Debug)]
pub(super) enum Found {
    /// It ended, with the same input.
    Answer(Box<Answered>),
    /// It ended, but was given something else, or what it left is not known any more; these ends are discarded.
    Changed(Vec<u64>),
    /// It did not end, or never began.
    Nothing,
}

/// What a run has done already.
pub(super) struct History {
    visits: HashMap<Key, Vec<Visit>>,
    last_attempt: HashMap<Key, u64>,
    pub(super) open: Vec<Open>,
    /// Calls of other runs that were cut off: by a pause, a cancel or a failure.
    calls: Vec<Open>,
    /// Called runs that go on in this execution: each does so once.
    taken: Mutex<BTreeSet<String>>,
    /// Calls from this event on do not go on: the user said so.
    floor: u64,
    /// The runs that this one called.
    pub(super) children: Vec<RunId>,
    /// The workflow, as its first execution calls it.
    pub(super) name: String,
    pub(super) started: Option<Value>,
    /// The inputs of the latest execution.
    pub(super) inputs: Value,
    pub(super) first_at: Option<Timestamp>,
    pub(super) executions: u64,
    pub(super) last_end: LastEnd,
    pub(super) start_hooks_done: bool,
    /// Open requests for an approval: the place of the step, by the hash of the token.
    pub(super) requests: HashMap<String, Key>,
    pub(super) spending: Vec<Event>,
    /// How many questions were put to agents, by the path of the step.
    pub(super) asked: BTreeMap<String, u64>,
    is_masked: bool,
    log: RunLog,
    blobs: Option<Blobs>,
    page: Mutex<Vec<Event>>,
}

pub(super) fn key(place: &Place) -> Key {
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
            calls: Vec::new(),
            taken: Mutex::default(),
            floor: u64::MAX,
            children: Vec::new(),
            name: String::new(),
            started: None,
            inputs: Value::Null,
            first_at: None,
            executions: 0,
            last_end: LastEnd::Interrupted,
            start_hooks_done: false,
            requests: HashMap::new(),
            spending: Vec::new(),
            asked: BTreeMap::new(),
            is_masked: false,
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
        let notes = event.annotations.extra.as_ref();
        match event.body {
            Body::RunStarted(step) => {
                if let Some(step) = step.filter(|_| self.started.is_none()) {
                    self.name = step.name;
                }
                self.take_start(extra(notes), event.timestamp);
            }
            Body::RunCompleted(end) => {
                let result = extra(end.and_then(|end| end.result).as_ref());
                self.last_end = match result["status"].as_str() {
                    None | Some("interrupted") => LastEnd::Interrupted,
                    Some(status) => LastEnd::Said {
                        status: status.to_owned(),
                        ended_by: result["ended_by"].as_u64(),
                    },
                };
            }
            Body::StepStarted(step) => {
                self.begin(event.seq, &event.place, step, None, notes, open);
            }
            Body::CallStarted { child_run_id, step } => {
                self.children.push(child_run_id.clone());
                let child = Some(child_run_id);
                self.begin(event.seq, &event.place, step, child, notes, open);
            }
            Body::StepCompleted(StepEnd { error, .. })
            | Body::CallCompleted {
                end: StepEnd { error, .. },
                ..
            } => {
                if let Some(begun) = open.remove(&at) {
                    self.end(event.seq, begun, error.is_some(), notes);
                }
            }
            Body::Harness(harness) => {
                let facts = extra(harness.attributes.as_ref());
                let request = facts["request"].as_str().unwrap_or_default();
                match harness.name.as_str() {
                    "approval_requested" => {
                        self.requests.insert(request.to_owned(), at.0);
                    }
                    "approval_granted" | "approval_denied" => {
                        self.requests.remove(request);
                    }
                    "start_hooks_done" => self.start_hooks_done = true,
                    _ => {}
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

    fn take_start(&mut self, extra: Value, at: Timestamp) {
        let resume = &extra["resume"];
        self.take_back(
            &numbers(&resume["discards"]).collect::<Vec<_>>(),
            resume["discards_from"].as_u64(),
        );
        self.floor = u64::MAX;
        self.executions += 1;
        self.last_end = LastEnd::Interrupted;
        self.first_at.get_or_insert(at);
        self.inputs = extra["inputs"].clone();
        self.is_masked |= extra["is_masked"] == Value::Bool(true);
        if self.started.is_none() {
            self.started = Some(extra);
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
        self.take_back(&numbers(&extra["discards"]).collect::<Vec<_>>(), None);
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
        let is = |name: &str| extra[name] == Value::Bool(true);
        // What was cut off has no end of its own: it runs again.
        let cut_off = is("interrupted") || is("stopped");
        if begun.child.is_some() && (cut_off || failed) {
            self.calls.push(begun.clone());
        }
        if cut_off || is("retrying") {
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
                handled: is("handled"),
                child_attempts: extra["child_attempts"].as_u64().unwrap_or_default(),
                discarded: false,
            });
    }

    /// The number of the next attempt at a step that is not answered from here.
    pub(super) fn next_attempt(&self, place: &Place, least: u64) -> u64 {
        let last = self.last_attempt.get(&key(place)).copied();
        least.max(last.unwrap_or_default() + 1)
    }

    /// What there is of a visit of a step whose attempts are numbered from `least`.
    pub(super) fn find(&self, place: &Place, least: u64, input: &str) -> Found {
        let visits = self.visits.get(&key(place)).into_iter().flatten();
        let mut visits: Vec<&Visit> = visits
            .filter(|visit| !visit.discarded && visit.attempt >= least)
            .collect();
        visits.sort_by_key(|visit| visit.attempt);
        let Some(visit) = visits.first() else {
            return Found::Nothing;
        };
        // Later visits came after this one: they were of another course of the run.
        let changed = || Found::Changed(visits.iter().map(|visit| visit.completed).collect());
        if visit.input != input {
            return changed();
        }
        match self.answer(visit) {
            Some(answered) => Found::Answer(Box::new(answered)),
            None => changed(),
        }
    }

    /// What a visit left behind; `None` when that is not known any more: a blob is gone, or a secret was masked.
    fn answer(&self, visit: &Visit) -> Option<Answered> {
        let (state, notes) = self.state_at(visit.completed)?;
        let inside = notes["states"].as_object().into_iter().flatten();
        let inside = inside.map(|(name, seq)| {
            let (state, _) = self.state_at(seq.as_u64()?)?;
            Some((name.clone(), state))
        });
        Some(Answered {
            state,
            attempt: visit.attempt,
            child_attempts: visit.child_attempts,
            inside: inside.collect::<Option<_>>()?,
        })
    }

    fn state_at(&self, seq: u64) -> Option<(StepState, Value)> {
        let event = self.event(seq)?;
        let (Body::StepCompleted(end) | Body::CallCompleted { end, .. }) = event.body else {
            return None;
        };
        let result = end.result.as_ref();
        let is_masked = |json: &Json| json.get().contains(MASKED) || json.get().contains(REDACTED);
        if self.is_masked && result.is_some_and(is_masked) {
            return None;
        }
        let mut state = StepState::from_result(result, end.error.as_deref(), self.blobs.as_ref())?;
        state.seq = seq;
        Some((state, extra(event.annotations.extra.as_ref())))
    }

    /// The run that a step began to call, where that call was cut off: it goes on, once.
    pub(super) fn child_of(&self, place: &Place, input: &str) -> Option<RunId> {
        let calls = self.open.iter().chain(&self.calls).filter(|call| {
            call.place.path == place.path && call.place.iterations == place.iterations
        });
        let last = calls.max_by_key(|call| call.seq)?;
        if last.input != input || last.seq >= self.floor {
            return None;
        }
        let child = last.child.clone()?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(child.to_string()).then_some(child)
    }

    fn event(&self, seq: u64) -> Option<Event> {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn standing(&self) -> impl Iterator<Item = (&str, &Visit)> {
        sorted(&self.visits)
            .into_iter()
            .flat_map(|((path, _), visits)| visits.iter().map(move |visit| (path.as_str(), visit)))
            .filter(|(_, visit)| !visit.discarded)
    }

    /// The ends that a resume after a failure takes back: that of the step that ended the run, those of the failures
    /// inside of it, and all that began after them. What succeeded beside them stays.
    pub(super) fn failed_end(&self) -> Vec<u64> {
        let LastEnd::Said {
            ended_by: Some(seq),
            ..
        } = &self.last_end
        else {
            return Vec::new();
        };
        let Some((path, ended)) = self
            .standing()
            .find(|(_, visit)| visit.completed == *seq && visit.failed)
        else {
            return Vec::new();
        };
        let inside = |(other, visit): &(&str, &Visit)| {
            is_inside(other, path)
                && visit.started > ended.started
                && visit.completed < ended.completed
        };
        // Failures inside of it, and the containers that those failures made fail.
        let failed: Vec<(&str, &Visit)> = self
            .standing()
            .filter(inside)
            .filter(|(_, visit)| visit.failed && !visit.handled)
            .collect();
        let around_a_failure = |(other, visit): &(&str, &Visit)| {
            failed.iter().any(|(inner, failure)| {
                is_inside(inner, other)
                    && visit.started < failure.started
                    && visit.completed > failure.completed
            })
        };
        let taken_back = |candidate: &(&str, &Visit)| {
            let (_, visit) = candidate;
            visit.completed == ended.completed
                || visit.started > ended.completed
                || failed
                    .iter()
                    .any(|(_, failure)| failure.completed == visit.completed)
                || (inside(candidate) && around_a_failure(candidate))
        };
        let mut discards: Vec<u64> = self
            .standing()
            .filter(taken_back)
            .map(|(_, visit)| visit.completed)
            .collect();
        discards.sort_unstable();
        discards
    }

    /// Takes ends back, as if they had not been. From `from` on, nothing that began stands.
    pub(super) fn take_back(&mut self, seqs: &[u64], from: Option<u64>) {
        if seqs.is_empty() && from.is_none() {
            return;
        }
        let from = from.unwrap_or(u64::MAX);
        self.floor = from;
        for visit in self.visits.values_mut().flatten() {
            if seqs.contains(&visit.completed) || visit.started >= from {
                visit.discarded = true;
            }
        }
    }

    /// Where a step began first, by its path; the ends of the steps around it, which do not stand without it; and the
    /// names of all that is discarded.
    pub(super) fn beginning_at(&self, path: &str) -> Option<(u64, Vec<u64>, Vec<String>)> {
        let ended = self.standing().filter(|(at, _)| *at == path);
        let open = self.open.iter().chain(&self.calls);
        let first = ended
            .map(|(_, visit)| visit.started)
            .chain(
                open.filter(|open| open.place.path == path)
                    .map(|open| open.seq),
            )
            .min()?;
        let around: Vec<u64> = self
            .standing()
            .filter(|(other, visit)| {
                is_inside(path, other) && visit.started < first && visit.completed > first
            })
            .map(|(_, visit)| visit.completed)
            .collect();
        let mut discarded: Vec<(u64, String)> = sorted(&self.visits)
            .into_iter()
            .flat_map(|((path, passes), visits)| {
                visits.iter().map(move |visit| (visit, path, passes))
            })
            .filter(|(visit, ..)| {
                !visit.discarded && (visit.started >= first || around.contains(&visit.completed))
            })
            .map(|(visit, path, passes)| {
                let mut place = Place::step(path);
                place.iterations.clone_from(passes);
                (visit.started, place.label())
            })
            .collect();
        discarded.sort();
        let names = discarded.into_iter().map(|(_, name)| name).collect();
        Some((first, around, names))
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

/// Whether a path is that of a step inside another.
fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('.'))
}
