//! What is held while a session is read: who speaks, what was said, and the answer that is coming in.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use quipu_model::{
    Chunk, Flags, Json, ModelCallId, Notes, SubagentId, Timestamp, ToolCallId, Usage,
};

use super::history::History;
use super::out::Making;
use super::settings::Settings;
use super::view::View;
use crate::agentlog::ContentId;

/// How many ids of answered calls are remembered, to know one that is reported again.
const ANSWERED: usize = 4_096;

/// One conversation: that of the agent, or of one of its sub-agents.
#[derive(Debug)]
pub(super) struct Lane {
    /// The sub-agent; `None` for the agent itself.
    pub(super) key: Option<SubagentId>,
    /// What the next request follows.
    pub(super) cursor: ContentId,
    pub(super) history: History,
    /// What requests are made with, where the log says so.
    pub(super) settings: Option<Settings>,
    pub(super) open: Option<Call>,
    /// When there was last something to answer.
    pub(super) asked: When,
    /// Tokens of a call of which nothing else came in yet.
    pub(super) usage: Usage,
    /// The call that was closed last, as the provider names it.
    pub(super) closed: Option<ModelCallId>,
    /// The last event of it.
    pub(super) used: u64,
}

impl Lane {
    /// A conversation that begins at `at`, before anything was asked in it.
    pub(super) fn new(key: Option<SubagentId>, cursor: ContentId, at: Timestamp) -> Self {
        Self {
            key,
            cursor,
            history: History::default(),
            settings: None,
            open: None,
            asked: When::unknown(at),
            usage: Usage::default(),
            closed: None,
            used: 0,
        }
    }

    /// Something was said that wants an answer.
    pub(super) fn asked(&mut self, message: String, superseded: bool, seq: u64, when: When) {
        self.history.push_asked(message, superseded, seq, when);
        self.asked = when;
    }
}

/// When something happened, and whether the log says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct When {
    pub(super) at: Timestamp,
    /// Whether `at` is a time that the log has. Otherwise it only keeps records in their order.
    pub(super) dated: bool,
}

impl When {
    pub(super) fn of(view: &View<'_>) -> Self {
        Self {
            at: view.at,
            dated: !view.notes.flags.undated,
        }
    }

    pub(super) fn unknown(at: Timestamp) -> Self {
        Self { at, dated: false }
    }

    /// The milliseconds since something before it. `None` where one of the times is missing, or they are in the
    /// wrong order.
    pub(super) fn since(self, before: Self) -> Option<u64> {
        let both = self.dated && before.dated;
        let millis = self.at.as_millisecond() - before.at.as_millisecond();
        both.then(|| u64::try_from(millis).ok())?
    }
}

/// A call to a model, as it comes in.
#[derive(Debug)]
pub(super) struct Call {
    /// What is known of it beside what it says.
    pub(super) notes: Notes,
    pub(super) seq: u64,
    pub(super) usage: Usage,
    pub(super) content: Vec<String>,
    /// What else a response has, by its key.
    pub(super) more: BTreeMap<String, String>,
    /// Its last word before anything came back from a tool.
    pub(super) when: When,
    pub(super) duration: Option<u64>,
    pub(super) stop: Stop,
    /// Only what a tool gave back tells that there was one.
    pub(super) made_up: bool,
    /// Calls of tools that the model wrote, until the call itself is seen.
    pub(super) uses: Vec<Use>,
    /// Ids of the calls that were seen.
    pub(super) called: HashSet<ToolCallId>,
    pub(super) chunks: Vec<Piece>,
    /// What happened since, to be written behind it.
    pub(super) queue: Vec<Queued>,
    pub(super) bytes: usize,
}

/// Why an answer ended, as far as what is in it tells. What is further down outweighs what is above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// All was said.
    EndTurn,
    /// Something went wrong before anything was said.
    Error,
    /// A tool was called.
    ToolUse,
}

impl Stop {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::Error => "error",
            Self::ToolUse => "tool_use",
        }
    }
}

/// A piece of a response, as it came.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) delta: String,
    pub(super) of: PieceOf,
}

/// What a piece was made of.
#[derive(Debug)]
pub(super) enum PieceOf {
    /// A block of a message.
    Block,
    /// The record of another trace, by its payload.
    Record(String),
    /// An event, with the fields of the record that it was read from.
    Event(Box<Chunk>, Option<Json>),
}

impl Piece {
    pub(super) fn new(view: &View<'_>, delta: String) -> Self {
        Self {
            seq: view.seq,
            at: view.at,
            delta,
            of: PieceOf::Block,
        }
    }

    pub(super) fn kept(view: &View<'_>, payload: String) -> Self {
        Self {
            of: PieceOf::Record(payload),
            ..Self::new(view, String::new())
        }
    }

    pub(super) fn event(view: &View<'_>, chunk: &Chunk) -> Self {
        Self {
            of: PieceOf::Event(Box::new(chunk.clone()), view.notes.extra.clone()),
            ..Self::new(view, String::new())
        }
    }

    /// When it arrived, as far as that is known.
    pub(super) fn arrived(&self) -> Timestamp {
        match &self.of {
            PieceOf::Event(chunk, _) => chunk.arrived_at.unwrap_or(self.at),
            _ => self.at,
        }
    }

    /// How much it holds.
    pub(super) fn bytes(&self) -> usize {
        match &self.of {
            PieceOf::Block => self.delta.len(),
            PieceOf::Record(payload) => payload.len(),
            PieceOf::Event(chunk, extra) => {
                let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.get().len());
                chunk.text.len() + json(&chunk.delta) + json(extra)
            }
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub(super) seq: u64,
    pub(super) when: When,
    pub(super) notes: Notes,
    pub(super) id: ToolCallId,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// What a tool gave back.
#[derive(Debug)]
pub(super) struct Answer {
    /// The call it answers, as far as the answer itself says.
    pub(super) of: Use,
    pub(super) output: String,
    /// The same as a model is given it.
    pub(super) said: String,
    pub(super) is_error: bool,
    pub(super) duration: Option<u64>,
}

/// What is written behind a response.
#[derive(Debug)]
pub(super) enum Queued {
    Use(Use),
    Answer(Answer),
    /// A record that nothing follows.
    Leaf(Making),
    /// A message for the next request.
    Message {
        json: String,
        superseded: bool,
        seq: u64,
        when: When,
    },
}

impl Queued {
    fn bytes(&self) -> usize {
        match self {
            Self::Use(call) => call.arguments.len(),
            Self::Answer(answer) => answer.output.len() + answer.said.len(),
            Self::Leaf(making) => making.payload.len(),
            Self::Message { json, .. } => json.len(),
        }
    }
}

impl Call {
    pub(super) fn new(notes: &Notes, seq: u64, when: When, usage: Usage) -> Self {
        Self {
            notes: Notes {
                usage: None,
                duration_ms: None,
                status: None,
                source: None,
                extra: None,
                attachments: Vec::new(),
                ..notes.clone()
            },
            seq,
            usage,
            content: Vec::new(),
            more: BTreeMap::new(),
            when,
            made_up: false,
            duration: None,
            stop: Stop::EndTurn,
            uses: Vec::new(),
            called: HashSet::new(),
            chunks: Vec::new(),
            queue: Vec::new(),
            bytes: 0,
        }
    }

    /// Whether an event goes on with it.
    pub(super) fn goes_on(&self, notes: &Notes) -> bool {
        if self.notes.flags.superseded != notes.flags.superseded {
            return false;
        }
        match (&self.notes.model_call, &notes.model_call) {
            (Some(mine), Some(other)) => mine == other,
            (None, None) => match (&self.notes.model, &notes.model) {
                (Some(mine), Some(other)) => mine == other,
                _ => true,
            },
            // Of a call that has said nothing yet, the name may come later.
            (None, Some(_)) => {
                let only_leaves = self.queue.iter().all(|it| matches!(it, Queued::Leaf(_)));
                self.content.is_empty() && only_leaves
            }
            (Some(_), None) => false,
        }
    }

    /// Takes in what an event of it knows.
    pub(super) fn observe(&mut self, view: &View<'_>) {
        let notes = view.notes;
        let mine = &mut self.notes;
        if mine.model.is_none() {
            mine.model.clone_from(&notes.model);
        }
        if mine.model_call.is_none() {
            mine.model_call.clone_from(&notes.model_call);
        }
        if notes.stop_reason.is_some() {
            mine.stop_reason.clone_from(&notes.stop_reason);
        }
        mine.flags = Flags {
            opaque: mine.flags.opaque || notes.flags.opaque,
            synthetic: mine.flags.synthetic || notes.flags.synthetic,
            ..mine.flags
        };
        if let Some(usage) = &notes.usage {
            self.usage.add(usage);
        }
        if view.seq != self.seq
            && let Some(more) = notes.cost
        {
            self.notes.cost = Some(
                self.notes
                    .cost
                    .map_or(more, |cost| cost.saturating_add(more)),
            );
        }
        if let Some(more) = notes.duration_ms {
            let mine = self.duration.get_or_insert(0);
            *mine = mine.saturating_add(more);
        }
        let answered = self.queue.iter().any(|it| matches!(it, Queued::Answer(_)));
        if !answered && !notes.flags.undated {
            let at = if self.when.dated {
                self.when.at
            } else {
                view.at
            };
            self.when = When {
                at: view.at.max(at),
                dated: true,
            };
        }
    }

    pub(super) fn say(&mut self, part: String) {
        self.bytes += part.len();
        self.content.push(part);
    }

    pub(super) fn queue(&mut self, what: Queued) {
        self.bytes += what.bytes();
        self.queue.push(what);
    }
}

/// Calls of tools that are under way, and those that ended lately.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<ToolCallId, (ContentId, When)>,
    order: VecDeque<ToolCallId>,
    answered: HashSet<ToolCallId>,
    ended: VecDeque<ToolCallId>,
}

impl Calls {
    /// How many calls may wait for their results.
    const OPEN: usize = 65_536;

    pub(super) fn begin(&mut self, id: &str, record: ContentId, when: When) {
        if self.open.insert(id.into(), (record, when)).is_none() {
            self.order.push_back(id.into());
        }
        while self.order.len() > Self::OPEN {
            if let Some(oldest) = self.order.pop_front() {
                self.open.remove(&oldest);
            }
        }
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    pub(super) fn is_answered(&self, id: &str) -> bool {
        self.answered.contains(id)
    }

    /// The latest call under way whose id begins so.
    pub(super) fn latest(&self, prefix: &str) -> Option<ToolCallId> {
        let begins = |id: &&ToolCallId| id.starts_with(prefix) && self.open.contains_key(*id);
        self.order.iter().rev().find(begins).cloned()
    }

    pub(super) fn end(&mut self, id: &str) -> Option<(ContentId, When)> {
        if self.answered.insert(id.into()) {
            self.ended.push_back(id.into());
        }
        while self.ended.len() > ANSWERED {
            if let Some(oldest) = self.ended.pop_front() {
                self.answered.remove(&oldest);
            }
        }
        let found = self.open.remove(id);
        // Ids that ended are passed over here, so that the order is not longer than what it orders.
        if found.is_some() && self.order.front().is_some_and(|front| front == id) {
            while let Some(front) = self.order.front()
                && !self.open.contains_key(front)
            {
                self.order.pop_front();
            }
        }
        found
    }
}
