//! Records of a run as events.
//!
//! Each execution of a step is `step.started`, what its transcript says, what its receipt says beside, and
//! `step.completed`, which has what the receipt says of model, tokens, cost and duration, once. Every line of the
//! journal is a note that keeps it.

use std::collections::BTreeMap;

use quipu_model::json::Tape;
use quipu_model::{Body, Json, NoteKind, Notes, Place, Source, Step, StepEnd, Timestamp};
use serde::{Deserialize, Serialize};

use super::StepRun;
use super::emit;
use super::journal::{self, kind_of, time_of};
use super::meta;
use super::step::Reading;
use crate::flow::record::{Execution, Outcome, Part, Record, RunEnd, RunFacts};
use crate::flow::scan::DEPTH;
use crate::flow::verify::Findings;

/// Something that a run tells: an event that has no number yet.
#[derive(Debug, Clone)]
pub struct Told {
    /// Where in the run.
    pub place: Place,
    /// When, where that is told.
    pub at: Option<Timestamp>,
    /// What happened.
    pub body: Body,
    /// What else is known. Its source is a file of the run, relative to it.
    pub notes: Notes,
}

/// Why a record became no event of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It became one or more.
    Events,
    /// It is blank.
    Blank,
    /// It is a piece of a message that comes whole later.
    Piece,
    /// What it says is on the end of its step.
    Known,
    /// It is not known what it means.
    Unknown,
}

/// Takes the records of a run, in order, and tells its events. All that it holds can be saved.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Teller {
    /// Executions that have begun and whose files follow.
    open: BTreeMap<u64, Reading>,
    /// The program that the run as a whole is of.
    agent: Option<String>,
    left: Vec<(String, u64)>,
    left_more: u64,
    /// Lines of the journal that another program wrote.
    foreign: u64,
    /// Lines of the journal that are not events.
    malformed: u64,
    /// Executions in the order in which they began, by their numbers.
    #[serde(skip)]
    begun: Vec<u64>,
    #[serde(skip)]
    steps: BTreeMap<u64, StepRun>,
    #[serde(skip)]
    pub(super) findings: Findings,
}

/// How many names of files that are not part of the transcript are kept.
const LEFT: usize = 1000;

type Sink<'s> = &'s mut dyn FnMut(Told);

impl Teller {
    /// Takes a record.
    pub fn take(&mut self, record: Record<'_>, sink: &mut dyn FnMut(Told)) -> Became {
        match record {
            Record::Run(facts) => self.run(&facts, sink),
            Record::Begin(execution) => self.begin(*execution, sink),
            Record::End(execution, outcome) => self.end(*execution, &outcome, sink),
            Record::Done(end) => {
                self.finish(sink);
                done(&end, sink);
            }
            Record::Left { file, size } => {
                if self.left.len() < LEFT {
                    self.left.push((file.into_owned(), size));
                } else {
                    self.left_more += 1;
                }
                return Became::Known;
            }
            Record::Document(part) => return self.document(&part, sink),
            Record::Line(part) => {
                return match part.of.and_then(|of| self.open.get_mut(&of)) {
                    Some(reading) => reading.line(&part, &mut self.findings, sink),
                    None => self.journal(&part, sink),
                };
            }
            Record::Cut(part) => self.cut(&part, sink),
        }
        Became::Events
    }

    /// Gives what only the whole run tells. At its end; what is given is not given again.
    pub fn finish(&mut self, sink: Sink<'_>) {
        let left = std::mem::take(&mut self.left);
        if left.is_empty() {
            return;
        }
        let count = left.len() as u64 + std::mem::take(&mut self.left_more);
        let files: Vec<serde_json::Value> = left
            .iter()
            .map(|(file, size)| serde_json::json!({ "file": file, "size": size }))
            .collect();
        let raw = serde_json::json!({ "count": count, "files": files }).to_string();
        let text = format!("{count} files of the run are not part of its transcript");
        let body = emit::note(NoteKind::Session, Some(text), Json::parse(&raw).ok());
        tell(sink, Place::run(), None, body, Notes::default());
    }

    /// How many lines of the journal another program wrote, and how many are not events.
    pub fn journal_strays(&self) -> (u64, u64) {
        (self.foreign, self.malformed)
    }

    fn run(&mut self, facts: &RunFacts, sink: Sink<'_>) {
        self.agent.clone_from(&facts.agent);
        let step = facts.workflow.clone().map(step_of);
        let mut notes = Notes::default();
        notes.flags.synthetic = facts.stub;
        let body = Body::RunStarted(step);
        tell(sink, Place::run(), facts.started_at, body, notes);
    }

    fn begin(&mut self, execution: Execution, sink: Sink<'_>) {
        let number = execution.number;
        if self.begun.len() < crate::flow::scan::MAX_FILES {
            self.begun.push(number);
        }
        let has_files = execution.transcript.is_some() || execution.receipt.is_some();
        let overwritten = execution.overwritten;
        let reading = Reading::new(execution, self.agent.as_deref());
        reading.started(sink);
        if overwritten {
            reading.overwritten(sink);
        }
        if has_files {
            self.open.insert(number, reading);
        }
    }

    fn end(&mut self, execution: Execution, outcome: &Outcome, sink: Sink<'_>) {
        let number = execution.number;
        let reading = self.open.remove(&number);
        let reading = reading.unwrap_or_else(|| Reading::new(execution, self.agent.as_deref()));
        let step = reading.completed(outcome, &mut self.findings, sink);
        if self.steps.len() < crate::flow::scan::MAX_FILES {
            self.steps.insert(number, step);
        }
    }

    /// The executions that ended, in the order in which they began.
    pub(super) fn take_steps(&mut self) -> Vec<StepRun> {
        let mut steps = std::mem::take(&mut self.steps);
        let begun = std::mem::take(&mut self.begun);
        begun.iter().filter_map(|at| steps.remove(at)).collect()
    }

    /// A file that was kept as a whole: a receipt, or something that is said beside the transcripts.
    fn document(&mut self, part: &Part<'_>, sink: Sink<'_>) -> Became {
        if let Some(reading) = part.of.and_then(|of| self.open.get_mut(&of)) {
            return reading.receipt(part, sink);
        }
        let text = part.text();
        let text = text.trim_start_matches('\u{feff}');
        let mut tape = Tape::new();
        let Ok(node) = tape.read(text, DEPTH) else {
            let body = emit::note(
                NoteKind::UnknownRecord,
                Some(format!("{}, which is not JSON", part.file)),
                Some(Json::string(text)),
            );
            tell(sink, place_of(part), None, body, sourced(part));
            return Became::Events;
        };
        if matches!(&*part.file, "meta.json" | "run.json") && !meta::says_more(node) {
            return Became::Known;
        }
        let at = ["timestamp", "compiled_at"]
            .iter()
            .find_map(|key| node.text(key))
            .and_then(|text| crate::flow::time::parse(&text))
            .map(|time| time.at);
        let (kind, text) = document_note(&part.file, node);
        let body = emit::note(kind, text, Some(node.raw().into()));
        tell(sink, place_of(part), at, body, sourced(part));
        Became::Events
    }

    fn cut(&mut self, part: &Part<'_>, sink: Sink<'_>) {
        if let Some(reading) = part.of.and_then(|of| self.open.get_mut(&of)) {
            reading.too_long(part, &mut self.findings, sink);
            return;
        }
        let text = match part.line {
            0 => format!("{} has {} bytes, which is too long", part.file, part.size),
            _ => format!("a line of {} bytes", part.size),
        };
        self.malformed += u64::from(part.line > 0);
        let body = emit::note(NoteKind::MalformedLine, Some(text), None);
        tell(sink, place_of(part), None, body, sourced(part));
    }

    /// A line of the journal.
    fn journal(&mut self, part: &Part<'_>, sink: Sink<'_>) -> Became {
        let text = part.text();
        if text.trim().is_empty() {
            return Became::Blank;
        }
        let mut tape = Tape::new();
        let read = tape.read(text.trim_start_matches('\u{feff}'), DEPTH).ok();
        let Some((node, (kind, foreign))) = read.and_then(|node| Some((node, kind_of(node)?)))
        else {
            self.malformed += 1;
            let raw = read.map_or_else(|| Json::string(&text), |node| node.raw().into());
            let body = emit::note(NoteKind::MalformedLine, None, Some(raw));
            tell(sink, place_of(part), None, body, sourced(part));
            return Became::Events;
        };
        self.foreign += u64::from(foreign);
        let (note, said) = journal::note(&kind, foreign, node);
        let at = time_of(node);
        let mut notes = sourced(part);
        notes.native_id = node.text("event_id").map(Into::into);
        let body = emit::note(note, Some(said), Some(node.raw().into()));
        tell(sink, place_of(part), at, body, notes);
        if note == NoteKind::UnknownRecord {
            return Became::Unknown;
        }
        Became::Events
    }
}

pub(super) fn tell(sink: Sink<'_>, place: Place, at: Option<Timestamp>, body: Body, notes: Notes) {
    sink(Told {
        place,
        at,
        body,
        notes,
    });
}

fn place_of(part: &Part<'_>) -> Place {
    part.place.clone().unwrap_or_default()
}

fn sourced(part: &Part<'_>) -> Notes {
    Notes {
        source: Some(source_of(part)),
        ..Notes::default()
    }
}

pub(super) fn source_of(part: &Part<'_>) -> Source {
    Source {
        file: part.file.clone().into_owned(),
        offset: part.offset,
        line: part.line.max(1),
    }
}

fn step_of((name, kind): (String, String)) -> Step {
    Step::new(name, kind)
}

fn done(end: &RunEnd, sink: Sink<'_>) {
    let result = end.result.as_deref();
    let result = result.and_then(|text| Json::parse(text).ok());
    let step = end.workflow.clone().map(step_of);
    let is_told = step.is_some() || end.error.is_some() || result.is_some();
    let body = Body::RunCompleted(is_told.then(|| StepEnd {
        step: step.unwrap_or_else(|| Step::new("", "workflow")),
        error: end.error.clone(),
        result,
    }));
    tell(sink, Place::run(), end.at, body, Notes::default());
}

/// What kind of note a document is, and what it says to a person.
fn document_note(file: &str, node: quipu_model::json::Node<'_>) -> (NoteKind, Option<String>) {
    let folder = file.rsplit('/').nth(1).unwrap_or_default();
    match folder {
        "handoff" => {
            let summary = node.text("summary").unwrap_or_default();
            (NoteKind::Context, Some(format!("handoff: {summary}")))
        }
        "" => (NoteKind::Session, None),
        _ => (NoteKind::Context, None),
    }
}
