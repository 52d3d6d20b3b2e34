//! A step while it is put together.

use quipu_model::{Event, ModelCallId, NativeId, ToolCallId};

use super::details::StepFacts;
use super::json::{Object, comma, string};
use super::metrics::Metrics;
use super::output::Content;

/// Whose step it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    System,
    User,
    Agent,
}

impl Source {
    const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Agent => "agent",
        }
    }
}

/// What an agent does in a step, in the order in which the format has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Reasons,
    Speaks,
    Acts,
}

/// What is true of all events of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Marks {
    pub(super) synthetic: bool,
    pub(super) superseded: bool,
}

impl Marks {
    pub(super) fn of(event: &Event) -> Self {
        let flags = event.annotations.flags;
        Self {
            synthetic: flags.synthetic,
            superseded: flags.superseded,
        }
    }
}

/// One step.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own; they combine freely"
)]
pub(super) struct Step {
    pub(super) source: Source,
    pub(super) marks: Marks,
    /// When its first event happened.
    pub(super) time: Option<String>,
    pub(super) model: Option<String>,
    /// The call to the model.
    pub(super) call: Option<ModelCallId>,
    pub(super) parts: Parts,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Call>,
    pub(super) results: Vec<Observed>,
    pub(super) metrics: Metrics,
    /// How many of its events have a usage.
    pub(super) spends: u32,
    /// It is there for results whose calls are not.
    pub(super) orphan: bool,
    /// What the message in it is known by in its log.
    pub(super) native: Option<NativeId>,
    /// It was copied from an earlier trajectory, by that one's word.
    pub(super) copied: bool,
    /// It says that the context was condensed.
    pub(super) compaction: bool,
    /// It is there because there has to be one; nobody said what is in it.
    pub(super) filler: bool,
    /// The inside of lists: what else is known of its events, and the notes beside it.
    pub(super) events: Vec<u8>,
    pub(super) notes: Vec<u8>,
    /// About how many bytes it holds.
    pub(super) size: usize,
}

/// What is said in a step: the inside of a list of parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    list: Vec<u8>,
    count: usize,
    /// Where the string of the first part is, when that is a text.
    first: Option<std::ops::Range<usize>>,
    /// Which parts stand for what is attached.
    added: Vec<usize>,
}

impl Parts {
    pub(super) fn text(&mut self, text: &str) {
        comma(&mut self.list);
        self.list.extend_from_slice(br#"{"type":"text","text":"#);
        let start = self.list.len();
        string(text, &mut self.list);
        if self.count == 0 {
            self.first = Some(start..self.list.len());
        }
        self.count += 1;
        self.list.push(b'}');
    }

    /// Where a part for something attached goes.
    pub(super) fn add(&mut self) -> &mut Vec<u8> {
        self.added.push(self.count);
        self.count += 1;
        &mut self.list
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// How many there are.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    fn write(&self, out: &mut Vec<u8>) {
        match (&self.first, self.count) {
            (_, 0) => out.extend_from_slice(b"\"\""),
            (Some(text), 1) => out.extend_from_slice(&self.list[text.clone()]),
            _ => {
                out.push(b'[');
                out.extend_from_slice(&self.list);
                out.push(b']');
            }
        }
    }
}

/// A tool that was called.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: ToolCallId,
    pub(super) name: String,
    /// A JSON object.
    pub(super) arguments: Vec<u8>,
    /// The inside of what else is known.
    pub(super) extra: Vec<u8>,
    /// It was told in a message, and by an event of its own.
    pub(super) block: bool,
    pub(super) event: bool,
    /// Its result is still to come.
    pub(super) pending: bool,
}

/// What a tool gave back.
#[derive(Debug)]
pub(super) struct Observed {
    /// The call in the same step.
    pub(super) call: Option<ToolCallId>,
    pub(super) content: Content,
    /// What names the trajectory of a sub-agent, if there is one.
    pub(super) names: Vec<String>,
    /// The inside of what else is known: for everybody, and our own.
    pub(super) extra: Vec<u8>,
    pub(super) quipu: Vec<u8>,
    pub(super) block: bool,
    pub(super) event: bool,
}

impl Step {
    /// A step that begins with this event.
    pub(super) fn new(source: Source, event: &Event) -> Self {
        let notes = &event.annotations;
        let agent = source == Source::Agent;
        Self {
            marks: Marks::of(event),
            time: super::details::stamp(event).map(|(text, _)| text),
            model: notes.model.clone().filter(|_| agent),
            call: notes.model_call.clone().filter(|_| agent),
            ..Self::empty(source)
        }
    }

    /// A step of which nothing is known.
    pub(super) fn empty(source: Source) -> Self {
        Self {
            source,
            marks: Marks::default(),
            time: None,
            model: None,
            call: None,
            parts: Parts::default(),
            reasoning: String::new(),
            calls: Vec::new(),
            results: Vec::new(),
            metrics: Metrics::default(),
            spends: 0,
            orphan: false,
            native: None,
            copied: false,
            compaction: false,
            filler: false,
            events: Vec::new(),
            notes: Vec::new(),
            size: 0,
        }
    }

    /// What it says of its events, so that they need not.
    pub(super) fn said(&self) -> StepFacts<'_> {
        StepFacts {
            time: self.time.as_deref(),
            model: self.model.as_deref(),
            call: self.call.as_deref(),
        }
    }

    /// Whether something can follow in it without a word of which call to a model it belongs to: a model
    /// reasons, speaks and then acts.
    pub(super) fn takes(&self, stage: Stage) -> bool {
        let is_open = match stage {
            Stage::Reasons => self.reasoning.is_empty() && self.parts.len() == 0,
            Stage::Speaks | Stage::Acts => true,
        };
        is_open && self.results.is_empty() && (self.calls.is_empty() || stage == Stage::Acts)
    }

    /// Whether results are still to come.
    pub(super) fn waits(&self) -> bool {
        self.calls.iter().any(|call| call.pending)
    }

    /// How many calls to a model it is, where that is known. `first` says that its call is told for the first time.
    fn llm_calls(&self, first: bool) -> Option<u32> {
        if self.source != Source::Agent {
            return None;
        }
        // Zero is for steps in which no model took part; the format refuses tokens and reasoning there.
        let may_be_none = self.metrics.is_empty() && self.reasoning.is_empty();
        match &self.call {
            Some(_) if first => Some(1),
            Some(_) => may_be_none.then_some(0),
            None if self.orphan => may_be_none.then_some(0),
            None => (self.spends == 1).then_some(1),
        }
    }

    /// Appends the step. `refs` are the trajectories of sub-agents, one list for each result.
    pub(super) fn write(
        &self,
        id: u64,
        first_of_call: bool,
        refs: &[Option<String>],
        out: &mut Vec<u8>,
    ) {
        let mut step = Object::begin(out);
        step.number("step_id", id);
        step.maybe("timestamp", self.time.as_deref());
        step.text("source", self.source.as_str());
        step.maybe("model_name", self.model.as_deref());
        self.parts.write(step.key("message"));
        if !self.reasoning.is_empty() {
            step.text("reasoning_content", &self.reasoning);
        }
        if !self.calls.is_empty() {
            let mut list = Vec::new();
            for call in &self.calls {
                comma(&mut list);
                call.write(&mut list);
            }
            step.around("tool_calls", *b"[]", &list);
        }
        if !self.results.is_empty() {
            let mut list = Vec::new();
            for (result, child) in self.results.iter().zip(refs) {
                comma(&mut list);
                result.write(child.as_deref(), &mut list);
            }
            let mut observation = Object::begin(step.key("observation"));
            observation.around("results", *b"[]", &list);
            observation.end();
        }
        step.mark("is_copied_context", self.copied);
        if !self.metrics.is_empty() {
            self.metrics.write(step.key("metrics"));
        }
        if let Some(calls) = self.llm_calls(first_of_call) {
            step.number("llm_call_count", calls);
        }
        let extra = self.extra();
        if !extra.is_empty() {
            step.around("extra", *b"{}", &extra);
        }
        step.end();
    }

    fn extra(&self) -> Vec<u8> {
        let mut own = Vec::new();
        let mut object = Object::within(&mut own);
        object.maybe("model_call", self.call.as_deref());
        object.mark("filler", self.filler);
        object.mark("synthetic", self.marks.synthetic);
        object.mark("superseded", self.marks.superseded);
        if !self.parts.added.is_empty() {
            let mut list = Vec::new();
            for at in &self.parts.added {
                comma(&mut list);
                list.extend_from_slice(itoa::Buffer::new().format(*at).as_bytes());
            }
            object.around("added", *b"[]", &list);
        }
        for (name, list) in [("events", &self.events), ("notes", &self.notes)] {
            if !list.is_empty() {
                object.around(name, *b"[]", list);
            }
        }
        let mut extra = Vec::with_capacity(own.len() + 16);
        let mut object = Object::within(&mut extra);
        if self.compaction {
            let what = br#"{"type":"compaction","boundary":"replace"}"#;
            object.raw("context_management", what);
        }
        if !own.is_empty() {
            object.around("quipu", *b"{}", &own);
        }
        extra
    }
}

impl Call {
    fn write(&self, out: &mut Vec<u8>) {
        let mut call = Object::begin(out);
        call.text("tool_call_id", &self.id);
        call.text("function_name", &self.name);
        call.raw("arguments", &self.arguments);
        if !self.extra.is_empty() {
            let mut extra = Object::begin(call.key("extra"));
            extra.around("quipu", *b"{}", &self.extra);
            extra.end();
        }
        call.end();
    }
}

impl Observed {
    fn write(&self, child: Option<&str>, out: &mut Vec<u8>) {
        let mut result = Object::begin(out);
        result.maybe("source_call_id", self.call.as_deref());
        match &self.content {
            Content::None => {}
            Content::Text(text) => result.raw("content", text),
            Content::Parts(parts) => result.around("content", *b"[]", parts),
        }
        if let Some(child) = child {
            let list = result.key("subagent_trajectory_ref");
            list.push(b'[');
            let mut item = Object::begin(list);
            item.text("trajectory_id", child);
            item.end();
            list.push(b']');
        }
        let mut extra = self.extra.clone();
        if !self.quipu.is_empty() {
            Object::within(&mut extra).around("quipu", *b"{}", &self.quipu);
        }
        if !extra.is_empty() {
            result.around("extra", *b"{}", &extra);
        }
        result.end();
    }
}
