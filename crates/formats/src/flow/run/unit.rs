//! One execution of a step: its transcript between its beginning and its end.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};

use quipu_model::json::{Node, Tape};
use quipu_model::{
    Annotations, Body, Flags, Json, LogBody, Money, NoteKind, Notes, Place, Source, Step, StepEnd,
    Timestamp, Usage,
};
use sha2::Digest as _;

use super::StepRun;
use super::emit::{self, Emit};
use super::journal::Outcome;
use crate::flow::FlowError;
use crate::flow::receipt::{Receipt, ToolCalls};
use crate::flow::scan::{self, DEPTH, File, Unit};
use crate::flow::shape::{Content, Line, Said, Shape, Transcript, Who};
use crate::flow::time;
use crate::flow::verify::{Findings, Rule, check_line, check_time_at};
use crate::lines::{Limits, LineInfo, Lines};

/// How much of a text that is being pieced together is held. Longer ones are given in parts.
const LONGEST: usize = 1 << 20;

/// The first time that a transcript tells, in its first few lines.
pub(super) fn first_time(file: &File, limits: &Limits) -> Option<Timestamp> {
    let mut lines = Lines::new(fs::File::open(&file.path).ok()?, *limits);
    let mut tape = Tape::new();
    for _ in 0..8 {
        lines.advance().ok()??;
        let text = String::from_utf8_lossy(lines.current());
        if let Ok(node) = tape.read(&text, DEPTH)
            && let Some(text) = node.text("timestamp")
            && let Some(time) = time::parse(&text)
        {
            return Some(time.at);
        }
    }
    None
}

/// Reads one execution of a step.
pub(super) fn read(
    emit: &mut Emit<'_>,
    unit: &Unit,
    outcome: Option<&Outcome>,
    limits: &Limits,
    findings: &mut Findings,
) -> Result<StepRun, FlowError> {
    let receipt = unit.receipt.as_ref().map(|(_, receipt)| &**receipt);
    let name = &unit.name;
    let path = match unit.flow.as_str() {
        "" => name.step.clone(),
        flow => format!("{flow}.{}", name.step),
    };
    let iteration = unit.iteration.saturating_sub(1);
    let agent = Some(&name.agent).filter(|agent| !agent.is_empty() && !emit.is_own(agent));
    let mut reading = Reading {
        emit,
        findings,
        place: Place::step(path).iteration(iteration),
        agent: agent.cloned(),
        stub: receipt.is_some_and(Receipt::is_stub),
        step: step_of(unit, receipt),
        piece: None,
        shapes: Vec::new(),
        lines: 0,
        calls: 0,
        model: None,
        usage: None,
        cost: None,
        last: None,
    };
    reading.started(unit);
    if let Some(file) = &unit.transcript {
        reading.transcript(file, receipt, limits)?;
        reading.is_late(file, receipt);
    }
    reading.receipt(unit);
    reading.completed(receipt, outcome);
    Ok(StepRun {
        flow: unit.flow.clone(),
        step: name.step.clone(),
        agent: name.agent.clone(),
        engine: name.engine.clone(),
        iteration,
        ambiguous: name.ambiguous,
        transcript: unit.transcript.as_ref().map(|file| file.rel.clone()),
        receipt: unit.receipt.as_ref().map(|(file, _)| file.rel.clone()),
        shapes: reading.shapes,
        lines: reading.lines,
        stub: reading.stub,
    })
}

fn step_of(unit: &Unit, receipt: Option<&Receipt>) -> Step {
    let said = |field: fn(&Receipt) -> &Option<String>| receipt.and_then(|r| field(r).clone());
    Step {
        name: said(|r| &r.step_name).unwrap_or_else(|| unit.name.step.clone()),
        kind: said(|r| &r.step_kind).unwrap_or_else(|| "agent".to_owned()),
    }
}

/// What the receipt of a step says whose transcript is not there, as a note.
pub(in crate::flow) const NO_TRANSCRIPT: &str = "the transcript is not there";

/// A step that is being read.
struct Reading<'e, 's> {
    emit: &'e mut Emit<'s>,
    findings: &'e mut Findings,
    place: Place,
    agent: Option<String>,
    stub: bool,
    step: Step,
    /// A message that comes in pieces.
    piece: Option<(Who, String, Option<Timestamp>, Source)>,
    shapes: Vec<Shape>,
    lines: u64,
    calls: u64,
    model: Option<String>,
    usage: Option<Usage>,
    cost: Option<Money>,
    /// The latest time of a line.
    last: Option<Timestamp>,
}

impl Reading<'_, '_> {
    fn notes(&self) -> Notes {
        Notes {
            subagent_id: self.agent.clone(),
            flags: Flags {
                synthetic: self.stub,
                ..Flags::default()
            },
            ..Notes::default()
        }
    }

    fn put(&mut self, at: Option<Timestamp>, body: LogBody, notes: Notes) {
        self.emit
            .at(self.place.clone(), at, body, Annotations::from(notes));
    }

    fn started(&mut self, unit: &Unit) {
        let body = LogBody::Exchange(Body::StepStarted(self.step.clone()));
        self.put(unit.started, body, self.notes());
    }

    /// Reads the lines of a transcript.
    fn transcript(
        &mut self,
        file: &File,
        receipt: Option<&Receipt>,
        limits: &Limits,
    ) -> Result<(), FlowError> {
        let opened = fs::File::open(&file.path).map_err(FlowError::io(&file.path))?;
        let expected = receipt.and_then(|receipt| receipt.transcript_sha256.as_deref());
        let mut hasher = Hashing {
            inner: opened,
            hash: expected.map(|_| sha2::Sha256::new()),
        };
        // Ids of calls are unique in the run, for it is one session.
        let mut transcript = Transcript::new(format!("{}:", file.rel));
        let mut tape = Tape::new();
        let mut lines = Lines::new(&mut hasher, *limits);
        while let Some(info) = lines.advance().map_err(FlowError::io(&file.path))? {
            self.lines += 1;
            let text = String::from_utf8_lossy(lines.current());
            if info.too_long {
                self.too_long(file, info);
            } else if !text.trim().is_empty() {
                self.line(file, info, &text, &mut transcript, &mut tape);
            }
        }
        self.flush();
        let hash = hasher.hash.map(|hash| crate::flow::hex(&hash.finalize()));
        if let (Some(hash), Some(expected)) = (hash, expected)
            && !expected.eq_ignore_ascii_case(&hash)
        {
            self.findings.add(Rule::HashMismatch, &file.rel, None, || {
                format!("its SHA-256 is {hash}, its receipt has {expected}")
            });
        }
        Ok(())
    }

    fn source(file: &File, info: LineInfo) -> Source {
        Source {
            file: file.rel.clone(),
            offset: info.offset,
            line: info.number,
        }
    }

    fn too_long(&mut self, file: &File, info: LineInfo) {
        self.flush();
        let message = format!("a line of {} bytes", info.len);
        let mut notes = self.notes();
        notes.source = Some(Self::source(file, info));
        let body = emit::note(NoteKind::MalformedLine, Some(message.clone()), None);
        self.put(None, body, notes);
        let (rule, line) = (Rule::LineTooLong, Some(info.number));
        self.findings.add(rule, &file.rel, line, || message);
    }

    fn line(
        &mut self,
        file: &File,
        info: LineInfo,
        text: &str,
        transcript: &mut Transcript,
        tape: &mut Tape,
    ) {
        let node = match tape.read(text.trim_start_matches('\u{feff}'), DEPTH) {
            Ok(node) => node,
            Err(why) => {
                let torn = !info.terminated;
                let rule = if torn {
                    Rule::TornTail
                } else {
                    Rule::LineNotJson
                };
                self.findings
                    .add(rule, &file.rel, Some(info.number), || why.to_string());
                self.flush();
                let mut notes = self.notes();
                notes.source = Some(Self::source(file, info));
                let raw = Some(Json::string(text));
                self.put(None, emit::note(NoteKind::MalformedLine, None, raw), notes);
                return;
            }
        };
        let (path, number) = (&file.rel, info.number);
        check_time_at(node, "timestamp", path, number, self.findings);
        let line = transcript.read(node, number);
        match line.shape {
            None => self.findings.add(Rule::LineShape, path, Some(number), || {
                let keys: Vec<_> = node
                    .fields()
                    .take(8)
                    .map(|(key, _)| key.to_text_lossy())
                    .collect();
                format!("a line with {}", keys.join(", "))
            }),
            Some(shape) if !self.shapes.contains(&shape) => self.shapes.push(shape),
            Some(_) => {}
        }
        if line.shape == Some(Shape::Documented) {
            check_line(node, path, number, self.findings);
        }
        self.stub |= line.shape.is_some_and(Shape::is_stub);
        self.say(&line, node, &Self::source(file, info));
    }

    /// Hands over what a line says.
    fn say(&mut self, line: &Line<'_>, node: Node<'_>, source: &Source) {
        let at = line.at.map(|time| time.at);
        self.last = self.last.max(at);
        if let Some(model) = &line.model {
            self.model = Some(model.to_string());
        }
        self.usage = line.usage.or(self.usage);
        self.cost = line.cost.or(self.cost);
        for said in &line.said {
            if let Said::Message {
                who,
                content: Content::Text(text),
                piece: true,
            } = said
            {
                self.piece(*who, text, at, source);
                continue;
            }
            self.flush();
            let mut notes = self.notes();
            notes.model = line.model.as_deref().map(str::to_owned);
            notes.source = Some(source.clone());
            let mut when = at;
            if let Said::Result {
                at: own,
                status,
                duration_ms,
                ..
            } = said
            {
                when = own.or(at);
                (notes.status, notes.duration_ms) = (*status, *duration_ms);
            }
            self.calls += u64::from(matches!(said, Said::Call { .. }));
            self.put(when, emit::body(said), notes);
        }
        if let Some(kind) = line.keep {
            self.flush();
            let mut notes = self.notes();
            notes.source = Some(source.clone());
            self.put(at, emit::note(kind, None, Some(node.raw().into())), notes);
        }
    }

    /// Takes in a piece of a message.
    fn piece(&mut self, who: Who, text: &str, at: Option<Timestamp>, source: &Source) {
        match &mut self.piece {
            Some((before, so_far, ..)) if *before == who && so_far.len() < LONGEST => {
                so_far.push_str(text);
            }
            _ => {
                self.flush();
                self.piece = Some((who, text.to_owned(), at, source.clone()));
            }
        }
    }

    /// Gives a message that came in pieces.
    fn flush(&mut self) {
        if let Some((who, text, at, source)) = self.piece.take() {
            let said = Said::Message {
                who,
                content: Content::Text(Cow::Owned(text)),
                piece: false,
            };
            let mut notes = self.notes();
            notes.source = Some(source);
            self.put(at, emit::body(&said), notes);
        }
    }

    /// Says when a transcript goes on after its step was completed.
    fn is_late(&mut self, file: &File, receipt: Option<&Receipt>) {
        let completed = receipt.and_then(|receipt| receipt.completed_at);
        if let (Some(last), Some(completed)) = (self.last, completed)
            && last.as_millisecond() > completed.at.as_millisecond().saturating_add(1000)
        {
            self.findings
                .add(Rule::TranscriptNewer, &file.rel, None, || {
                    format!(
                        "a line is of {last}, the step was completed at {}",
                        completed.at
                    )
                });
        }
    }

    /// Gives what only the receipt says: tools that are not in the transcript, and fields without a place.
    fn receipt(&mut self, unit: &Unit) {
        let Some((file, receipt)) = &unit.receipt else {
            return;
        };
        if let ToolCalls::List(calls) = &receipt.tool_calls
            && self.calls == 0
        {
            for (index, call) in calls.iter().enumerate() {
                self.tool(call, &format!("{}:call-{}", file.rel, index + 1));
            }
        }
        let has_list = matches!(receipt.tool_calls, ToolCalls::List(_));
        let unknown_status = receipt.unknown_status();
        let missing = unit.transcript.is_none();
        let unread = receipt.tokens.unread > 0;
        if receipt.rest.is_empty() && !has_list && unknown_status.is_none() && !missing && !unread {
            return;
        }
        if let Ok(raw) = scan::document(&file.path, |node| Json::from(node.raw())) {
            let mut notes = self.notes();
            notes.source = Some(Source {
                file: file.rel.clone(),
                offset: 0,
                line: 1,
            });
            let text = unknown_status.map(str::to_owned);
            // Whoever writes the run again must not make up what is not there.
            let (kind, text) = if missing {
                (NoteKind::Error, Some(NO_TRANSCRIPT.to_owned()))
            } else {
                (NoteKind::Context, text)
            };
            let at = receipt.completed_at.map(|time| time.at);
            self.put(at, emit::note(kind, text, Some(raw)), notes);
        }
    }

    /// A tool of a receipt's list.
    fn tool(&mut self, call: &Json, id: &str) {
        let mut tape = Tape::new();
        let Ok(node) = tape.read(call.get(), DEPTH) else {
            return;
        };
        let text = |key: &str| node.text(key);
        let flag = |key: &str| node.get(key).and_then(|n| n.as_bool());
        let at = text("timestamp")
            .and_then(|text| time::parse(&text))
            .map(|time| time.at);
        let name = text("tool_name").unwrap_or_default();
        let said = Said::Call {
            name: name.clone(),
            id: Cow::Borrowed(id),
            input: node.get("tool_input").map(Into::into),
        };
        self.put(at, emit::body(&said), self.notes());
        let blocked = flag("blocked") == Some(true);
        let failed = flag("success") == Some(false);
        let output = node.get("tool_output").filter(|output| !output.is_null());
        if flag("success").is_none() && !blocked && output.is_none() {
            return;
        }
        let error = if blocked {
            Some(text("blocked_reason").unwrap_or(Cow::Borrowed("blocked")))
        } else {
            failed.then_some(Cow::Borrowed("failed"))
        };
        let said = Said::Result {
            name,
            id: Cow::Borrowed(id),
            output: output.map(Into::into),
            error,
            status: None,
            at: None,
            duration_ms: None,
        };
        let mut notes = self.notes();
        notes.status = blocked.then_some(quipu_model::Status::Denied);
        notes.duration_ms = node.get("duration_ms").and_then(|n| n.as_u64());
        self.put(at, emit::body(&said), notes);
    }

    /// The end of the step, with what it took.
    fn completed(&mut self, receipt: Option<&Receipt>, outcome: Option<&Outcome>) {
        let outcome = outcome.filter(|_| receipt.is_none());
        let failed = receipt.and_then(Receipt::succeeded) == Some(false);
        let error = match receipt {
            Some(receipt) => receipt.error.clone(),
            None => outcome.and_then(|outcome| outcome.error.clone()),
        };
        let end = StepEnd {
            step: self.step.clone(),
            error: error.or_else(|| failed.then(|| "failed".to_owned())),
            result: receipt.and_then(|receipt| receipt.result.clone()),
        };
        let told = receipt.and_then(|receipt| receipt.tokens.usage());
        // Receipts of streams leave out what was cached; the stream itself does not.
        let usage = match (told, self.usage) {
            (Some(told), Some(own)) if own.total() > told.total() => Some(own),
            (told, own) => told.or(own),
        };
        let mut notes = self.notes();
        notes.usage = usage;
        notes.cost = receipt.and_then(|receipt| receipt.cost_usd).or(self.cost);
        notes.model = self.model.take().or_else(|| {
            let model = receipt?.model.clone();
            model.filter(|model| model != crate::flow::write::UNKNOWN)
        });
        notes.duration_ms = match receipt {
            Some(receipt) => receipt.duration_ms,
            None => outcome.and_then(|outcome| outcome.duration_ms),
        };
        let at = receipt
            .and_then(|receipt| receipt.completed_at)
            .map(|time| time.at);
        let at = at.or_else(|| outcome.and_then(|outcome| outcome.at));
        self.put(at, LogBody::Exchange(Body::StepCompleted(end)), notes);
    }
}

/// Hashes what is read.
struct Hashing<R> {
    inner: R,
    hash: Option<sha2::Sha256>,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if let Some(hash) = &mut self.hash {
            hash.update(&buffer[..n]);
        }
        Ok(n)
    }
}
