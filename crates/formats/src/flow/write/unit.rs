//! One execution of a step, as it is written.

use quipu_model::{
    Block, Body, Event, Json, Money, Step, StepEnd, Timestamp, ToolCallId, ToolResult, Usage,
};

use super::line;
use super::told::Told;
use crate::flow::time;
use crate::loss::Loss;

/// A step that has not ended.
#[derive(Debug)]
pub(super) struct Unit {
    first_seq: u64,
    /// Whole lines.
    lines: Vec<u8>,
    /// Calls in the order in which they were made, each with where in the lines it belongs.
    calls: Vec<Call>,
    tool_calls: u64,
    carried: u64,
    started: Option<Timestamp>,
    completed: Option<Timestamp>,
    first: Timestamp,
    last: Timestamp,
    /// The first and the last time that the log has.
    dated: Option<(Timestamp, Timestamp)>,
    model: Option<String>,
    tokens: Sum,
    cost: Option<Money>,
    name: Option<String>,
    kind: Option<String>,
    end: Option<StepEnd>,
    said_ms: Option<(u64, u64)>,
    /// Events that a program made: how many, and the first.
    synthetic: Option<(u64, u64)>,
    told: Option<Told>,
}

/// A tool that was called.
#[derive(Debug)]
struct Call {
    at: usize,
    id: ToolCallId,
    name: String,
    input: Option<Json>,
    text: Vec<u8>,
    is_open: bool,
}

/// A step that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) first_seq: u64,
    /// From 1.
    pub(super) iteration: u64,
    pub(super) engine: String,
    pub(super) transcript: Vec<u8>,
    pub(super) carried: u64,
    pub(super) tool_calls: u64,
    pub(super) started: Timestamp,
    pub(super) completed: Timestamp,
    pub(super) model: Option<String>,
    pub(super) tokens: Sum,
    pub(super) cost: Option<Money>,
    pub(super) spent: Option<Money>,
    pub(super) name: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) error: Option<String>,
    pub(super) result: Option<Json>,
    pub(super) told: Option<Told>,
    /// Fields of the receipt that are not documented, as JSON.
    pub(super) more: Vec<(&'static str, String)>,
}

impl Done {
    /// What the receipt said, when it said so without a transcript.
    pub(super) fn missing(&self) -> Option<&Told> {
        let told = self.told.as_ref()?;
        (told.is_without_transcript() && self.transcript.is_empty()).then_some(told)
    }
}

/// Tokens of many events. Wider than theirs, so that the sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) input: Option<u128>,
    pub(super) cache_read: Option<u128>,
    pub(super) cache_write: Option<u128>,
    pub(super) cache_write_1h: Option<u128>,
    pub(super) output: Option<u128>,
    pub(super) reasoning: Option<u128>,
}

impl Sum {
    fn add(&mut self, usage: &Usage) {
        for (sum, more) in [
            (&mut self.input, usage.input),
            (&mut self.cache_read, usage.cache_read),
            (&mut self.cache_write, usage.cache_write),
            (&mut self.cache_write_1h, usage.cache_write_1h),
            (&mut self.output, usage.output),
            (&mut self.reasoning, usage.reasoning),
        ] {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(u128::from(more)));
            }
        }
    }

    /// All of the prompt, cached or not.
    pub(super) fn prompt(&self) -> u128 {
        let parts = [self.input, self.cache_read, self.cache_write];
        parts.into_iter().flatten().fold(0, u128::saturating_add)
    }

    /// All that was produced.
    pub(super) fn completion(&self) -> u128 {
        self.output.unwrap_or(0)
    }
}

impl Unit {
    /// When it ended, as far as is known.
    pub(super) fn until(&self) -> Timestamp {
        self.completed.unwrap_or(self.last)
    }

    /// A step that begins with this event.
    pub(super) fn new(event: &Event) -> Self {
        Self {
            first_seq: event.seq,
            lines: Vec::new(),
            calls: Vec::new(),
            tool_calls: 0,
            carried: 0,
            started: None,
            completed: None,
            first: event.timestamp,
            last: event.timestamp,
            dated: None,
            model: None,
            tokens: Sum::default(),
            cost: None,
            name: None,
            kind: None,
            end: None,
            said_ms: None,
            synthetic: None,
            told: None,
        }
    }

    /// What an earlier receipt of the step said.
    pub(super) fn told(&self) -> Option<&Told> {
        self.told.as_ref()
    }

    /// Whether nothing is known of it but that it began and ended.
    pub(super) fn is_bare(&self) -> bool {
        let has_lines = !self.lines.is_empty() || !self.calls.is_empty();
        let spent = self.tokens != Sum::default() || self.cost.is_some() || self.model.is_some();
        !has_lines && !spent && self.told.is_none()
    }

    /// How many events it carries.
    pub(super) fn carried(&self) -> u64 {
        self.carried
    }

    pub(super) fn first_seq(&self) -> u64 {
        self.first_seq
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// What the step gave, if it has ended.
    pub(super) fn given(&self) -> Option<&Json> {
        self.end.as_ref()?.result.as_ref()
    }

    /// Says that nothing tells how it ended.
    pub(super) fn has_no_end(&mut self) {
        if self.end.is_none() {
            let step = Step::new(
                self.name.clone().unwrap_or_default(),
                self.kind.clone().unwrap_or_default(),
            );
            self.end = Some(step.failed("the run ended before the step did"));
        }
    }

    pub(super) fn cost(&self) -> Option<Money> {
        self.cost
    }

    /// Whether `step.started` was met.
    pub(super) fn has_begun(&self) -> bool {
        self.started.is_some()
    }

    /// Takes an event of the step.
    pub(super) fn take(&mut self, event: &Event, loss: &mut Loss) {
        let (at, seq) = (event.timestamp, event.seq);
        self.take_totals(event, loss);
        self.carried += 1;
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        if !event.annotations.flags.undated {
            let (from, until) = self.dated.unwrap_or((at, at));
            self.dated = Some((from.min(at), until.max(at)));
        }
        Self::check_time(event, loss);
        if event.annotations.flags.synthetic {
            let (count, _) = self.synthetic.get_or_insert((0, seq));
            *count += 1;
        }
        match &event.body {
            Body::SystemMessage(blocks) => self.message(event, "system", blocks, loss),
            Body::UserMessage(blocks) => {
                self.message(event, "user", blocks, loss);
            }
            Body::AssistantMessage(blocks) => {
                self.message(event, "assistant", blocks, loss);
            }
            Body::ToolCall(call) => {
                if !call.input.as_ref().is_some_and(line::is_object) {
                    loss.wrapped("tool_input", seq);
                }
                let mut text = Vec::new();
                line::call(&mut text, at, call);
                self.tool_calls += 1;
                self.calls.push(Call {
                    at: self.lines.len(),
                    id: call.call_id.clone(),
                    name: call.name.clone(),
                    input: call.input.clone(),
                    text,
                    is_open: true,
                });
            }
            Body::ToolResult(result) => self.result(event, result, loss),
            Body::StepStarted(step) => {
                self.started = Some(at);
                self.name = Some(step.name.clone());
                self.kind = Some(step.kind.to_string());
            }
            Body::StepCompleted(end) => {
                self.completed = Some(at);
                self.name.get_or_insert_with(|| end.step.name.clone());
                self.kind.get_or_insert_with(|| end.step.kind.to_string());
                self.end = Some(end.clone());
                self.said_ms = event.annotations.duration_ms.map(|ms| (ms, seq));
            }
            _ => self.carried -= 1,
        }
    }

    fn check_time(event: &Event, loss: &mut Loss) {
        let (at, seq) = (event.timestamp, event.seq);
        if event.annotations.flags.undated {
            loss.inferred("timestamp", seq);
        }
        if at < time::EARLIEST {
            loss.dropped("time before the year 0", seq);
        } else if time::floor(at) != at {
            loss.dropped("time below a microsecond", seq);
        }
    }

    /// Takes what an earlier receipt of the step said.
    pub(super) fn take_told(&mut self, told: Told, seq: u64, loss: &mut Loss) {
        if told.native_status().is_some() {
            loss.inferred("status", seq);
        }
        for _ in 0..told.unread_tokens() {
            loss.dropped("tokens", seq);
        }
        if told.is_without_transcript() {
            loss.dropped("transcript", seq);
        }
        self.carried += 1;
        self.told = Some(told);
    }

    /// Adds what an event took to what the step took.
    pub(super) fn take_totals(&mut self, event: &Event, loss: &mut Loss) {
        let notes = &event.annotations;
        let is_end = matches!(&event.body, Body::StepCompleted(_));
        if let Some(usage) = &notes.usage {
            self.tokens.add(usage);
        }
        if let Some(cost) = notes.cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
        if (notes.usage.is_some() || notes.cost.is_some()) && !is_end {
            // A receipt has the sum of a step, not what each call took.
            loss.wrapped("usage", event.seq);
        }
        match (&notes.model, &self.model) {
            (Some(model), None) => self.model = Some(model.clone()),
            (Some(model), Some(own)) if model != own => loss.dropped("model", event.seq),
            _ => {}
        }
    }

    fn message(&mut self, event: &Event, role: &str, blocks: &[Block], loss: &mut Loss) {
        let (at, seq) = (event.timestamp, event.seq);
        if blocks.len() != 1 {
            loss.wrapped("message of several blocks, or none", seq);
        }
        if blocks.is_empty() {
            line::message(&mut self.lines, at, role, "");
        }
        for block in blocks {
            if !matches!(block.content, quipu_model::Content::Text(_)) {
                loss.wrapped(
                    format!(
                        "block:{}",
                        block
                            .block_type()
                            .map_or("unknown", quipu_model::BlockType::as_str)
                    ),
                    seq,
                );
            }
            line::block(&mut self.lines, at, role, block);
        }
    }

    fn result(&mut self, event: &Event, result: &ToolResult, loss: &mut Loss) {
        let (at, seq, notes) = (event.timestamp, event.seq, &event.annotations);
        if result
            .output
            .as_ref()
            .is_some_and(|output| output.as_str().is_none())
        {
            loss.wrapped("tool_output", seq);
        }
        let asked = |call: &&mut Call| call.is_open && call.id == result.call_id;
        if let Some(call) = self.calls.iter_mut().rev().find(asked) {
            call.is_open = false;
            if result.input.is_some() && result.input != call.input {
                loss.dropped("tool.result input", seq);
            }
            if result.name != call.name {
                loss.dropped("tool.result name", seq);
            }
            // Not asked for again, and possibly large.
            call.input = None;
            line::result(&mut call.text, at, result, notes.status, notes.duration_ms);
            return;
        }
        if result.input.is_some() {
            loss.dropped("tool.result input", seq);
        }
        line::orphan(&mut self.lines, at, result);
        line::result(&mut self.lines, at, result, notes.status, notes.duration_ms);
        self.lines.extend_from_slice(b"}\n");
    }

    /// Ends the step.
    pub(super) fn end(
        mut self,
        iteration: u64,
        engine: String,
        spent: Option<Money>,
        loss: &mut Loss,
    ) -> Done {
        let mut started = time::floor(self.started.unwrap_or(self.first));
        let mut completed = time::floor(self.completed.unwrap_or(self.last));
        // What has no time of its own is not before or behind all that has one.
        if let Some((from, until)) = self.dated {
            let (from, until) = (time::floor(from), time::floor(until));
            started = started.clamp(from, until);
            if completed < from || completed > until {
                completed = until;
            }
        }
        if self.end.is_none() {
            loss.inferred("status", self.first_seq);
            loss.inferred("completed_at", self.first_seq);
        }
        if completed < started {
            loss.inferred("completed_at", self.first_seq);
            completed = started;
        }
        if let Some((said, seq)) = self.said_ms
            && said != elapsed_ms(started, completed)
        {
            loss.dropped("duration_ms", seq);
        }
        if self.model.is_none() {
            loss.inferred("model", self.first_seq);
        }
        if self.tokens == Sum::default() {
            loss.inferred("tokens", self.first_seq);
        }
        let is_stub = self.told.as_ref().is_some_and(Told::is_stub)
            || self
                .model
                .as_deref()
                .is_some_and(|model| model.ends_with("-stub"));
        if let Some((count, seq)) = self.synthetic.filter(|_| !is_stub) {
            for _ in 0..count {
                loss.dropped(crate::loss::Field::Synthetic.as_str(), seq);
            }
        }
        let transcript = self.transcript();
        let end = self.end;
        let (error, result) = end.map_or((None, None), |end| (end.error, end.result));
        Done {
            first_seq: self.first_seq,
            iteration,
            engine,
            transcript,
            carried: self.carried,
            tool_calls: self.tool_calls,
            started,
            completed,
            model: self.model,
            tokens: self.tokens,
            cost: self.cost,
            spent,
            name: self.name,
            kind: self.kind,
            error,
            result,
            told: self.told,
            more: Vec::new(),
        }
    }

    /// The lines, with each tool where it was called.
    fn transcript(&mut self) -> Vec<u8> {
        let more: usize = self.calls.iter().map(|call| call.text.len() + 2).sum();
        let mut whole = Vec::with_capacity(self.lines.len() + more);
        let mut from = 0;
        for call in &self.calls {
            whole.extend_from_slice(&self.lines[from..call.at]);
            whole.extend_from_slice(&call.text);
            whole.extend_from_slice(b"}\n");
            from = call.at;
        }
        whole.extend_from_slice(&self.lines[from..]);
        self.lines = Vec::new();
        whole
    }
}

/// Milliseconds between two times, cut.
pub(super) fn elapsed_ms(from: Timestamp, until: Timestamp) -> u64 {
    let nanos = until.as_nanosecond() - from.as_nanosecond();
    u64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(0)
}
