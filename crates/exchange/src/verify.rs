//! Checks a transcript against its format: order, vocabulary, pairing.
//!
//! Pure reading: what needs a directory (child files, permissions) is checked by the recorder's
//! storage. Memory is bounded: findings are capped per rule (and counted beyond), and so are the
//! calls and steps that wait for their end.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Read};

use quipu_model::{Body, Event, Place, RunId, StepEnd, Timestamp, ToolCallId};

use super::seal::Seals;
use super::{Bad, Decoded, Fault, Position, Reader, Warning};
use crate::rules;

/// Findings kept per rule; the rest are counted.
const KEPT_PER_RULE: u64 = 100;

/// Calls or steps that may wait at once. Few in tests, so that they get there.
const MAX_WAITING: usize = if cfg!(test) { 1000 } else { 1_000_000 };

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the file is as it should be.
    Note,
    /// Readable, but not as the format wants it.
    Warning,
    /// The promise of the format is broken.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

rules! {
    /// Sequence numbers leave some out.
    SeqGap = "seq-gap", Error, "events are missing from the file; look for them in a .torn file or a backup";
    /// A sequence number is not greater than the one before.
    SeqOrder = "seq-order", Error, "two writers, or a writer that restarted its numbering; order by line instead";
    /// The file ends in the middle of a line.
    TornTail = "torn-tail", Error, "`quipu repair` sets the torn bytes aside";
    /// The last event has no line end.
    Unterminated = "unterminated", Error, "`quipu repair` ends the line";
    /// A line is not an event.
    BadLine = "bad-line", Error, "the line is left as it is; events around it are not affected";
    /// A line was cut off and the next event follows on the same line.
    GluedLine = "glued-line", Error, "the event behind the cut is still read";
    /// More than one event on a line.
    SharedLine = "shared-line", Error;
    /// The event type is not in the vocabulary.
    EventType = "event-type", Error, "written by something newer, or not a transcript";
    /// A block type is not in the vocabulary.
    BlockType = "block-type", Error, "written by something newer, or not a transcript";
    /// A line is not as it was recorded.
    Checksum = "checksum", Error, "the file was damaged or changed after it was recorded; take the line from a copy";
    /// A payload or block does not fit its type.
    PayloadShape = "payload-shape", Error;
    /// Not all events name the same run.
    RunId = "run-id", Error, "each run has a file of its own";
    /// Not all events name the same parent.
    ParentRunId = "parent-run-id", Error, "every event of a child run names its parent";
    /// A required field is missing.
    MissingField = "missing-field", Warning;
    /// A field that Quipu adds holds something else.
    Annotation = "annotation", Warning;
    /// Bytes that are not UTF-8, or half of a surrogate pair.
    Utf8 = "utf-8", Warning;
    /// Raw NUL bytes.
    RawNul = "raw-nul", Warning;
    /// Lines end in CR LF, or the file begins with a byte order mark.
    LineForm = "line-form", Warning, "written or edited by something that changes line ends";
    /// Blank lines.
    BlankLine = "blank-line", Warning;
    /// A tool result without a call.
    ToolOrphan = "tool-orphan", Warning;
    /// A tool call with the id of one that still waits.
    ToolRepeat = "tool-repeat", Warning;
    /// The end of a step that did not begin.
    StepOrphan = "step-orphan", Warning;
    /// The file is not named after its run.
    FileName = "file-name", Warning, "a run is found by the name of its file";
    /// A completed call names a run that is not there.
    ChildMissing = "child-missing", Error, "its transcript was moved, deleted or never written";
    /// Parent and child do not name each other.
    LinkBroken = "link-broken", Error;
    /// Others can read or write the file or its directory.
    Permissions = "permissions", Warning, "`quipu repair` makes the file private; `chmod 700` its directory";
    /// A tool call without a result.
    ToolDangling = "tool-dangling", Note;
    /// A step that has not ended.
    StepOpen = "step-open", Note;
    /// A call in progress names a run that is not there yet.
    ChildPending = "child-pending", Note;
    /// The parent run is not beside this one.
    ParentAbsent = "parent-absent", Note;
    /// A field that the format does not have.
    UnknownField = "unknown-field", Note;
    /// A time before the time of the event before.
    TimeBackwards = "time-backwards", Note;
    /// So much waits for its end that pairing was not checked to the end.
    PairingCapped = "pairing-capped", Note;
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Where in the file.
    pub at: Option<Position>,
    /// Which event.
    pub seq: Option<u64>,
    /// What is the matter, in words.
    pub message: String,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How many events the file has.
    pub events: u64,
    /// How long it is.
    pub bytes: u64,
    /// The highest sequence number.
    pub last_seq: u64,
    /// The run, by the first event.
    pub run_id: Option<RunId>,
    /// The run that called it, by the first event.
    pub parent_run_id: Option<RunId>,
    /// The runs it called.
    pub children: Vec<ChildCall>,
    /// The findings that were kept.
    pub findings: Vec<Finding>,
    /// How often each rule was broken, kept or not.
    pub counts: BTreeMap<Rule, u64>,
}

/// A call of a child run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildCall {
    /// The child.
    pub run_id: RunId,
    /// The event that began or, if that is not there, ended the call.
    pub seq: u64,
    /// Whether the call has ended without an error, so that the child must be there.
    pub completed: bool,
}

impl Report {
    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.rule).or_default();
        *count += 1;
        if *count <= KEPT_PER_RULE {
            self.findings.push(finding);
        }
    }

    /// The worst severity found.
    pub fn worst(&self) -> Option<Severity> {
        self.counts.keys().map(|rule| rule.severity()).max()
    }

    /// Whether nothing was found that is more than a note.
    pub fn is_clean(&self) -> bool {
        self.worst().is_none_or(|worst| worst == Severity::Note)
    }
}

/// Checks everything a file shows by itself.
///
/// # Errors
///
/// When the source fails or is larger than allowed.
pub fn verify<R: Read>(reader: &mut Reader<R>) -> io::Result<Report> {
    let mut check = Check::default();
    let mut seals = Seals::default();
    loop {
        let mut looked = None;
        let look = |text: &str| looked = Some(seals.line(text.as_bytes()));
        let Some(item) = reader.next_looked_at(look)? else {
            break;
        };
        match item {
            Err(bad) => {
                if looked.is_none() {
                    seals.lost();
                }
                check.bad(&bad);
            }
            Ok(decoded) => {
                if let Some(Some(problem)) = looked {
                    let (at, seq) = (decoded.at, decoded.event.seq);
                    check.find(Rule::Checksum, Some(at), Some(seq), problem.to_string());
                }
                check.event(&decoded);
            }
        }
    }
    check.report.bytes = reader.position();
    if reader.blank_lines() > 0 {
        check.find(
            Rule::BlankLine,
            None,
            None,
            format!("{} blank lines", reader.blank_lines()),
        );
    }
    Ok(check.finish())
}

#[derive(Debug, Default)]
struct Check {
    report: Report,
    time: Option<Timestamp>,
    calls: HashMap<ToolCallId, (u64, String)>,
    steps: HashMap<(Place, Option<RunId>), Vec<u64>>,
    open_steps: usize,
    capped: bool,
}

impl Check {
    fn find(&mut self, rule: Rule, at: Option<Position>, seq: Option<u64>, message: String) {
        self.report.add(Finding {
            rule,
            at,
            seq,
            message,
        });
    }

    fn bad(&mut self, bad: &Bad<'_>) {
        let rule = match bad.fault {
            Fault::Torn => Rule::TornTail,
            Fault::Glued => Rule::GluedLine,
            _ => Rule::BadLine,
        };
        self.find(rule, Some(bad.at), None, bad.fault.to_string());
    }

    fn event(&mut self, decoded: &Decoded) {
        let (at, event) = (decoded.at, &decoded.event);
        self.report.events += 1;
        for warning in &decoded.warnings {
            let rule = match warning {
                Warning::UnknownEventType(_) | Warning::OpenType(_) => Rule::EventType,
                Warning::UnknownBlockType { .. } => Rule::BlockType,
                Warning::BlockShape { .. }
                | Warning::PayloadShape { .. }
                | Warning::Fidelity(_) => Rule::PayloadShape,
                Warning::UnknownField(_) => Rule::UnknownField,
                Warning::Annotation { .. } => Rule::Annotation,
                Warning::MissingField(_) => Rule::MissingField,
                Warning::InvalidUtf8 | Warning::HalfSurrogate => Rule::Utf8,
                Warning::RawNul => Rule::RawNul,
                Warning::SharedLine => Rule::SharedLine,
                Warning::Unterminated => Rule::Unterminated,
                Warning::CarriageReturn | Warning::ByteOrderMark => Rule::LineForm,
            };
            self.find(rule, Some(at), Some(event.seq), warning.to_string());
        }
        self.order(at, event);
        self.identity(at, event);
        self.pairing(at, event);
    }

    fn order(&mut self, at: Position, event: &Event) {
        let (seq, last) = (event.seq, self.report.last_seq);
        if seq <= last {
            let message = format!("seq {seq} comes after {last}");
            self.find(Rule::SeqOrder, Some(at), Some(seq), message);
        } else if seq > last + 1 {
            let message = match (last + 1, seq - 1) {
                (one, same) if one == same => format!("seq {one} is missing"),
                (from, to) => format!("seq {from} to {to} are missing"),
            };
            self.find(Rule::SeqGap, Some(at), Some(seq), message);
        }
        self.report.last_seq = last.max(seq);
        if self.time.is_some_and(|before| event.timestamp < before) {
            let message = format!("{} is before the event before it", event.timestamp);
            self.find(Rule::TimeBackwards, Some(at), Some(seq), message);
        }
        self.time = Some(event.timestamp);
    }

    fn identity(&mut self, at: Position, event: &Event) {
        let first = self.report.events == 1;
        if first {
            self.report.run_id = Some(event.run_id.clone());
            self.report.parent_run_id.clone_from(&event.parent_run_id);
            return;
        }
        if self.report.run_id.as_ref() != Some(&event.run_id) {
            let message = format!("names run {}", event.run_id);
            self.find(Rule::RunId, Some(at), Some(event.seq), message);
        } else if self.report.parent_run_id != event.parent_run_id {
            let message = match &event.parent_run_id {
                Some(parent) => format!("names parent {parent}"),
                None => "names no parent".to_owned(),
            };
            self.find(Rule::ParentRunId, Some(at), Some(event.seq), message);
        }
    }

    fn pairing(&mut self, at: Position, event: &Event) {
        match &event.body {
            Body::StepStarted(_) => self.step_begins(event, None),
            Body::CallStarted { child_run_id, .. } => {
                self.step_begins(event, Some(child_run_id));
                self.child(child_run_id, event.seq, false);
            }
            Body::StepCompleted(end) => self.step_ends(at, event, end, None),
            Body::CallCompleted { child_run_id, end } => {
                self.step_ends(at, event, end, Some(child_run_id));
                self.child(child_run_id, event.seq, end.error.is_none());
            }
            Body::ToolCall(call) => {
                if self.calls.len() >= MAX_WAITING {
                    self.capped = true;
                    return;
                }
                let waiting = (event.seq, call.name.clone());
                if self.calls.insert(call.call_id.clone(), waiting).is_some() {
                    let message = format!("call {:?} waits already", call.call_id);
                    self.find(Rule::ToolRepeat, Some(at), Some(event.seq), message);
                }
            }
            Body::ToolResult(result)
                if self.calls.remove(&result.call_id).is_none() && !self.capped =>
            {
                let message = format!("no call {:?} waits for a result", result.call_id);
                self.find(Rule::ToolOrphan, Some(at), Some(event.seq), message);
            }
            // The others pair with nothing.
            _ => {}
        }
    }

    fn step_begins(&mut self, event: &Event, child: Option<&RunId>) {
        if self.open_steps >= MAX_WAITING {
            self.capped = true;
            return;
        }
        self.open_steps += 1;
        self.steps
            .entry((event.place.clone(), child.cloned()))
            .or_default()
            .push(event.seq);
    }

    fn step_ends(&mut self, at: Position, event: &Event, end: &StepEnd, child: Option<&RunId>) {
        let key = (event.place.clone(), child.cloned());
        let Some(begun) = self.steps.get_mut(&key) else {
            if !self.capped {
                let message = format!("step {:?} ends but did not begin", end.step.name);
                self.find(Rule::StepOrphan, Some(at), Some(event.seq), message);
            }
            return;
        };
        begun.pop();
        if begun.is_empty() {
            self.steps.remove(&key);
        }
        self.open_steps -= 1;
    }

    fn child(&mut self, run_id: &RunId, seq: u64, completed: bool) {
        // A call ends soon after the calls that began last; looking back is short in practice.
        let recent = self.report.children.iter_mut().rev().take(64);
        match recent.into_iter().find(|child| child.run_id == *run_id) {
            Some(child) => child.completed |= completed,
            None => {
                self.report.children.push(ChildCall {
                    run_id: run_id.clone(),
                    seq,
                    completed,
                });
            }
        }
    }

    fn finish(mut self) -> Report {
        let calls = self.calls.drain().map(|(id, (seq, name))| {
            let message = format!("call {id:?} of {name} has no result");
            (seq, Rule::ToolDangling, message)
        });
        let steps = self.steps.drain().flat_map(|((place, _), seqs)| {
            let message = format!("step {:?} has not ended", place.path);
            seqs.into_iter()
                .map(move |seq| (seq, Rule::StepOpen, message.clone()))
        });
        let mut open: Vec<(u64, Rule, String)> = calls.chain(steps).collect();
        open.sort();
        for (seq, rule, message) in open {
            self.find(rule, None, Some(seq), message);
        }
        if self.capped {
            let message = format!("more than {MAX_WAITING} calls or steps wait at once");
            self.find(Rule::PairingCapped, None, None, message);
        }
        self.report
    }
}
