//! One execution of a step: its transcript between its beginning and its end.

use std::borrow::Cow;

use quipu_model::json::{Node, Tape};
use quipu_model::{
    Body, Flags, Json, Money, NoteKind, Notes, Place, Source, StepEnd, Timestamp, Usage,
};
use serde::{Deserialize, Serialize};

use super::tell::{Became, Told, source_of, tell};
use super::{StepRun, emit};
use crate::flow::receipt::{Document, Receipt, ToolCalls, classify};
use crate::flow::record::{Execution, Outcome, Part};
use crate::flow::scan::DEPTH;
use crate::flow::shape::{Content, Line, Shape, Statement, Transcript, Who};
use crate::flow::time;
use crate::flow::verify::{Findings, Rule, check_line, check_time_at};

/// How much of a text that is being pieced together is held. Longer ones are given in parts.
const LONGEST: usize = 1 << 20;

/// What the receipt of a step says whose transcript is not there, as a note.
pub(in crate::flow) const NO_TRANSCRIPT: &str = "the transcript is not there";

/// What is said of an execution whose files a later one wrote over.
const OVERWRITTEN: &str = "a later execution of the step wrote over the files of this one";

type Sink<'s> = &'s mut dyn FnMut(Told);

/// A step that is being read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Reading {
    execution: Execution,
    /// Who acts, where that is not the agent that the run as a whole is of.
    agent: Option<String>,
    /// The program that the run as a whole is of.
    own: Option<String>,
    stub: bool,
    transcript: Transcript,
    /// A message that comes in pieces.
    piece: Option<Piece>,
    shapes: Vec<Shape>,
    lines: u64,
    calls: u64,
    model: Option<String>,
    #[serde(with = "kept::usage")]
    usage: Option<Usage>,
    #[serde(with = "kept::cost")]
    cost: Option<Money>,
    /// The latest time of a line.
    #[serde(with = "kept::at")]
    last: Option<Timestamp>,
    /// The receipt, as it was read.
    receipt: Option<String>,
}

/// A message of which a part was read.
#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    who: Who,
    text: String,
    #[serde(with = "kept::at")]
    at: Option<Timestamp>,
    source: (String, u64, u64),
}

impl Reading {
    pub(super) fn new(execution: Execution, own: Option<&str>) -> Self {
        let agent = Some(&execution.agent);
        let agent = agent.filter(|agent| !agent.is_empty() && own != Some(agent.as_str()));
        // Ids of calls are unique in the run, because it is one session.
        let prefix = execution.transcript.as_ref().map(|file| format!("{file}:"));
        Self {
            agent: agent.cloned(),
            own: own.map(str::to_owned),
            stub: execution.stub,
            transcript: Transcript::new(prefix.unwrap_or_default()),
            execution,
            ..Self::default()
        }
    }

    fn place(&self) -> Place {
        self.execution.place()
    }

    fn notes(&self) -> Notes {
        Notes {
            subagent_id: self.agent.clone().map(Into::into),
            flags: Flags {
                synthetic: self.stub,
                ..Flags::default()
            },
            ..Notes::default()
        }
    }

    fn put(&self, at: Option<Timestamp>, body: Body, notes: Notes, sink: Sink<'_>) {
        tell(sink, self.place(), at, body, notes);
    }

    pub(super) fn started(&self, sink: Sink<'_>) {
        let body = Body::StepStarted(self.execution.workflow_step());
        self.put(self.execution.started_at, body, self.notes(), sink);
    }

    /// Says that nothing is left of what it did.
    pub(super) fn overwritten(&self, sink: Sink<'_>) {
        let body = emit::note(NoteKind::Truncated, Some(OVERWRITTEN.to_owned()), None);
        self.put(self.execution.started_at, body, self.notes(), sink);
    }

    pub(super) fn too_long(&mut self, part: &Part<'_>, findings: &mut Findings, sink: Sink<'_>) {
        self.flush(sink);
        self.lines += u64::from(part.line > 0);
        let message = match part.line {
            0 => format!("a file of {} bytes", part.size),
            _ => format!("a line of {} bytes", part.size),
        };
        let mut notes = self.notes();
        notes.source = Some(source_of(part));
        let body = emit::note(NoteKind::MalformedLine, Some(message.clone()), None);
        self.put(None, body, notes, sink);
        findings.add(Rule::LineTooLong, &part.file, Some(part.line), || message);
    }

    /// Takes a line of the transcript.
    pub(super) fn line(
        &mut self,
        part: &Part<'_>,
        findings: &mut Findings,
        sink: Sink<'_>,
    ) -> Became {
        self.lines += 1;
        let text = part.text();
        if text.trim().is_empty() {
            return Became::Blank;
        }
        let mut tape = Tape::new();
        let node = match tape.read(text.trim_start_matches('\u{feff}'), DEPTH) {
            Ok(node) => node,
            Err(why) => {
                let rule = if part.terminated {
                    Rule::LineNotJson
                } else {
                    Rule::TornTail
                };
                findings.add(rule, &part.file, Some(part.line), || why.to_string());
                self.flush(sink);
                let mut notes = self.notes();
                notes.source = Some(source_of(part));
                let raw = Some(Json::string(&text));
                let body = emit::note(NoteKind::MalformedLine, None, raw);
                self.put(None, body, notes, sink);
                return Became::Events;
            }
        };
        check_time_at(node, "timestamp", &part.file, part.line, findings);
        let line = self.transcript.read(node, part.line);
        match line.shape {
            None => findings.add(Rule::LineShape, &part.file, Some(part.line), || {
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
            check_line(node, &part.file, part.line, findings);
        }
        self.stub |= line.shape.is_some_and(Shape::is_stub);
        self.say(&line, node, &source_of(part), sink)
    }

    /// Hands over what a line says.
    fn say(&mut self, line: &Line<'_>, node: Node<'_>, source: &Source, sink: Sink<'_>) -> Became {
        let at = line.at.map(|time| time.at);
        let mut became = Became::Piece;
        self.last = self.last.max(at);
        if let Some(model) = &line.model {
            self.model = Some(model.to_string());
        }
        self.usage = line.usage.or(self.usage);
        self.cost = line.cost.or(self.cost);
        if line.said.is_empty() && line.keep.is_none() {
            return Became::Known;
        }
        for said in &line.said {
            if let Statement::Message {
                who,
                content: Content::Text(text),
                piece: true,
            } = said
            {
                self.piece(*who, text, at, source, sink);
                continue;
            }
            self.flush(sink);
            became = Became::Events;
            let mut notes = self.notes();
            notes.model = line.model.as_deref().map(str::to_owned);
            notes.source = Some(source.clone());
            let mut when = at;
            if let Statement::Result {
                at: own,
                status,
                duration_ms,
                ..
            } = said
            {
                when = own.or(at);
                (notes.status, notes.duration_ms) = (*status, *duration_ms);
            }
            self.calls += u64::from(matches!(said, Statement::Call { .. }));
            self.put(when, emit::body(said), notes, sink);
        }
        if let Some(kind) = line.keep {
            self.flush(sink);
            became = Became::Events;
            let mut notes = self.notes();
            notes.source = Some(source.clone());
            let body = emit::note(kind, None, Some(node.raw().into()));
            self.put(at, body, notes, sink);
        }
        became
    }

    /// Takes in a piece of a message.
    fn piece(
        &mut self,
        who: Who,
        text: &str,
        at: Option<Timestamp>,
        source: &Source,
        sink: Sink<'_>,
    ) {
        match &mut self.piece {
            Some(piece) if piece.who == who && piece.text.len() < LONGEST => {
                piece.text.push_str(text);
            }
            _ => {
                self.flush(sink);
                self.piece = Some(Piece {
                    who,
                    text: text.to_owned(),
                    at,
                    source: (source.file.clone(), source.offset, source.line),
                });
            }
        }
    }

    /// Gives a message that came in pieces.
    fn flush(&mut self, sink: Sink<'_>) {
        if let Some(piece) = self.piece.take() {
            let said = Statement::Message {
                who: piece.who,
                content: Content::Text(Cow::Owned(piece.text)),
                piece: false,
            };
            let (file, offset, line) = piece.source;
            let mut notes = self.notes();
            notes.source = Some(Source { file, offset, line });
            self.put(piece.at, emit::body(&said), notes, sink);
        }
    }

    /// Takes the receipt: gives what only it says.
    pub(super) fn receipt(&mut self, part: &Part<'_>, sink: Sink<'_>) -> Became {
        self.flush(sink);
        let text = part.text();
        let text = text.trim_start_matches('\u{feff}');
        let mut tape = Tape::new();
        let Ok(node) = tape.read(text, DEPTH) else {
            return Became::Unknown;
        };
        let Document::Step(receipt) = classify(node) else {
            return Became::Unknown;
        };
        self.receipt = Some(text.to_owned());
        if let ToolCalls::List(calls) = &receipt.tool_calls
            && self.calls == 0
        {
            for (index, call) in calls.iter().enumerate() {
                self.tool(call, &format!("{}:call-{}", part.file, index + 1), sink);
            }
        }
        let missing = self.execution.transcript.is_none();
        if !missing && receipt.is_all_told(self.own.as_deref()) {
            return Became::Known;
        }
        let mut notes = self.notes();
        notes.source = Some(source_of(part));
        // Whoever writes the run again must not make up what is not there.
        let (kind, said) = if missing {
            (NoteKind::Error, Some(NO_TRANSCRIPT.to_owned()))
        } else {
            let status = receipt.unknown_status().map(str::to_owned);
            (NoteKind::Context, status)
        };
        let at = receipt.completed_at.map(|time| time.at);
        let body = emit::note(kind, said, Some(node.raw().into()));
        self.put(at, body, notes, sink);
        Became::Events
    }

    /// A tool of a receipt's list.
    fn tool(&self, call: &Json, id: &str, sink: Sink<'_>) {
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
        let said = Statement::Call {
            name: name.clone(),
            id: Cow::Borrowed(id),
            input: node.get("tool_input").map(Into::into),
        };
        self.put(at, emit::body(&said), self.notes(), sink);
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
        let said = Statement::Result {
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
        self.put(at, emit::body(&said), notes, sink);
    }

    /// Says when a transcript goes on after its step was completed.
    fn is_late(&self, receipt: Option<&Receipt>, findings: &mut Findings) {
        let completed = receipt.and_then(|receipt| receipt.completed_at);
        if let (Some(last), Some(completed), Some(file)) =
            (self.last, completed, &self.execution.transcript)
            && last.as_millisecond() > completed.at.as_millisecond().saturating_add(1000)
        {
            findings.add(Rule::TranscriptNewer, file, None, || {
                let at = completed.at;
                format!("a line is of {last}, the step was completed at {at}")
            });
        }
    }

    /// The end of the step, with what it took.
    pub(super) fn completed(
        mut self,
        outcome: &Outcome,
        findings: &mut Findings,
        sink: Sink<'_>,
    ) -> StepRun {
        self.flush(sink);
        let text = self.receipt.take();
        let mut tape = Tape::new();
        let node = text.as_deref().and_then(|text| tape.read(text, DEPTH).ok());
        let receipt = node.and_then(|node| match classify(node) {
            Document::Step(receipt) => Some(receipt),
            _ => None,
        });
        let receipt = receipt.as_deref();
        self.is_late(receipt, findings);
        let failed = receipt.and_then(Receipt::succeeded) == Some(false);
        let error = match receipt {
            Some(receipt) => receipt.error.clone(),
            None => outcome.error.clone(),
        };
        let end = StepEnd {
            step: self.execution.workflow_step(),
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
            None => outcome.duration_ms,
        };
        let at = match receipt {
            Some(receipt) => receipt.completed_at.map(|time| time.at),
            None => outcome.at,
        };
        let body = Body::StepCompleted(end);
        self.put(at, body, notes, sink);
        let of = self.execution;
        StepRun {
            flow: of.flow,
            step: of.step,
            agent: of.agent,
            engine: of.engine,
            iteration: of.iteration,
            ambiguous: of.ambiguous,
            transcript: of.transcript,
            receipt: of.receipt,
            shapes: self.shapes,
            lines: self.lines,
            stub: self.stub,
        }
    }
}

/// How values are saved whose types know nothing of that.
mod kept {
    pub(super) mod at {
        use quipu_model::Timestamp;
        use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

        #[expect(clippy::ref_option, reason = "the signature is serde's")]
        pub(in super::super) fn serialize<S: Serializer>(
            at: &Option<Timestamp>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            at.map(|at| at.to_string()).serialize(to)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Timestamp>, D::Error> {
            let text = Option::<String>::deserialize(from)?;
            Ok(text.and_then(|text| text.parse().ok()))
        }
    }

    pub(super) mod cost {
        use quipu_model::Money;
        use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

        #[expect(clippy::ref_option, reason = "the signature is serde's")]
        pub(in super::super) fn serialize<S: Serializer>(
            cost: &Option<Money>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            cost.map(|cost| cost.to_string()).serialize(to)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Money>, D::Error> {
            let text = Option::<String>::deserialize(from)?;
            Ok(text.and_then(|text| Money::parse(&text)))
        }
    }

    pub(super) mod usage {
        use quipu_model::Usage;
        use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

        type Counts = Option<[Option<u64>; 6]>;

        #[expect(clippy::ref_option, reason = "the signature is serde's")]
        pub(in super::super) fn serialize<S: Serializer>(
            usage: &Option<Usage>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            let counts: Counts = usage.map(|usage| {
                [
                    usage.input,
                    usage.cache_read,
                    usage.cache_write,
                    usage.cache_write_1h,
                    usage.output,
                    usage.reasoning,
                ]
            });
            counts.serialize(to)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Usage>, D::Error> {
            let counts = Counts::deserialize(from)?;
            Ok(counts.map(
                |[
                    input,
                    cache_read,
                    cache_write,
                    cache_write_1h,
                    output,
                    reasoning,
                ]| Usage {
                    input,
                    cache_read,
                    cache_write,
                    cache_write_1h,
                    output,
                    reasoning,
                },
            ))
        }
    }
}
