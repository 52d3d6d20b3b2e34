//! What fills the window of a model, call by call.

use std::collections::{BTreeMap, HashMap};

use quipu_api::context::{
    Compaction, ContextAdded, ContextReset, ContextTurn, ContextTurns, FullestWindow, ResetKind,
    ToolBytes,
};
use quipu_model::{Body, Event, Json, NoteKind};

use super::parts::{self, Part};
use super::turns::{Chain, TurnFact, Turns};
use super::{Micros, Window, time, time_of};
use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::documents::tokens;
use crate::events::ALL;
use crate::import::ImportError;

/// So many tools are named for each call, and so many compactions and resets at all.
const TOOLS: usize = 50;
const TOLD: usize = 1_000;

/// Under these names logs say how large a window can be, and how full it was before it was compacted.
const LIMITS: [&str; 2] = ["model_context_window", "contextWindow"];
const BEFORE: [&str; 4] = ["preTokens", "pre_tokens", "tokensBefore", "tokens_before"];

/// Longer values are not looked into for these.
const LOOKED_AT: usize = 256 << 10;

impl Store {
    /// What filled the model's window at each call, from an event on.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read.
    pub fn context(
        &self,
        row: &TranscriptRow,
        wanted: &Window,
    ) -> Result<ContextTurns, ImportError> {
        let mut reading = Reading::new(row.recorded, wanted);
        for batch in self.batches(row, &ALL)? {
            for event in batch? {
                reading.observe(&event);
            }
        }
        Ok(reading.finish(super::address(row)))
    }
}

/// What was put into a window.
#[derive(Debug, Default)]
struct Added {
    sums: Sums,
    tools: BTreeMap<String, (u64, u64)>,
    other_tools: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    user: u64,
    assistant: u64,
    thinking: u64,
    calls: u64,
    results: u64,
    system: u64,
    attachments: u64,
    attachment_bytes: u64,
}

/// A compaction, before the call after it is known.
#[derive(Debug)]
struct Condensed {
    seq_from: u64,
    seq_to: u64,
    at: Option<Micros>,
    chain: u32,
    stated: Option<u64>,
    summary: Option<u64>,
    before: Option<usize>,
    after: Option<usize>,
}

/// A rewind, before the call after it is known.
#[derive(Debug)]
struct Rewound {
    seq: u64,
    at: Option<Micros>,
    chain: u32,
    before: Option<usize>,
    after: Option<usize>,
}

/// A window: what was added since the last call, and what else became of it.
#[derive(Debug, Default)]
struct Open {
    added: Added,
    last: Option<usize>,
    /// Places among compactions and rewinds that no call followed yet.
    condensed: Option<usize>,
    rewound: Option<usize>,
    limit: Option<u64>,
}

struct Reading {
    recorded: bool,
    from: u64,
    most: usize,
    turns: Turns,
    windows: Vec<Open>,
    /// What was added before the calls of the page, by their places.
    page: BTreeMap<usize, Added>,
    /// How large windows can be, where a log says so, by calls.
    limits: HashMap<usize, u64>,
    /// The tools of calls that have no result yet.
    asked: HashMap<u64, String>,
    condensed: Vec<Condensed>,
    condensed_total: u64,
    rewound: Vec<Rewound>,
    rewound_total: u64,
    /// Calls before which a window was compacted or rewound.
    explained: Vec<usize>,
    events: u64,
}

impl Reading {
    fn new(recorded: bool, wanted: &Window) -> Self {
        Self {
            recorded,
            from: wanted.from,
            most: wanted.most(),
            turns: Turns::default(),
            windows: Vec::new(),
            page: BTreeMap::new(),
            limits: HashMap::new(),
            asked: HashMap::new(),
            condensed: Vec::new(),
            condensed_total: 0,
            rewound: Vec::new(),
            rewound_total: 0,
            explained: Vec::new(),
            events: 0,
        }
    }

    fn observe(&mut self, event: &Event) {
        self.events += 1;
        let (chain, began) = self.turns.observe(event);
        let windows = self.turns.chains.len();
        self.windows.resize_with(windows, Open::default);
        if let Some(turn) = began {
            self.begin(chain, turn, event.seq);
        }
        self.limit(chain, event);
        self.changes(chain, event);
        // What was taken back is in no later prompt.
        if !event.annotations.flags.superseded {
            self.add(chain, event);
        }
    }

    fn begin(&mut self, chain: u32, turn: usize, seq: u64) {
        let open = &mut self.windows[chain as usize];
        let added = std::mem::take(&mut open.added);
        open.last = Some(turn);
        if let Some(limit) = open.limit {
            self.limits.insert(turn, limit);
        }
        let (condensed, rewound) = (open.condensed.take(), open.rewound.take());
        if condensed.is_some() || rewound.is_some() {
            self.explained.push(turn);
        }
        if let Some(it) = condensed.and_then(|at| self.condensed.get_mut(at)) {
            it.after = Some(turn);
        }
        if let Some(it) = rewound.and_then(|at| self.rewound.get_mut(at)) {
            it.after = Some(turn);
        }
        if seq >= self.from && self.page.len() < self.most {
            self.page.insert(turn, added);
        }
    }

    /// How large the window can be, where the log says so.
    fn limit(&mut self, chain: u32, event: &Event) {
        let Body::Note(note) = &event.body else {
            return;
        };
        let Some(limit) = note.raw.as_ref().and_then(|raw| number(raw, &LIMITS)) else {
            return;
        };
        let open = &mut self.windows[chain as usize];
        open.limit = Some(limit);
        if let Some(last) = open.last {
            self.limits.insert(last, limit);
        }
    }

    fn changes(&mut self, chain: u32, event: &Event) {
        let (kind, text, raw) = match &event.body {
            Body::Note(note) => (note.kind, note.text.as_deref(), note.raw.as_ref()),
            Body::Harness(it) if it.category == "context_trim" => {
                (NoteKind::Compaction, None, it.attributes.as_ref())
            }
            _ => return,
        };
        let last = self.windows[chain as usize].last;
        match kind {
            NoteKind::Compaction => {
                let summary = text.map(|text| text.len() as u64);
                let stated = [raw, event.annotations.extra.as_ref()];
                let mut stated = stated.into_iter().flatten();
                let stated = stated.find_map(|json| number(json, &BEFORE));
                self.windows[chain as usize].added.sums.system += summary.unwrap_or(0);
                let open = self.windows[chain as usize].condensed;
                if let Some(at) = open {
                    // Several records tell of one compaction.
                    if let Some(known) = self.condensed.get_mut(at) {
                        known.seq_to = event.seq;
                        known.stated = known.stated.or(stated);
                        known.summary = known.summary.max(summary);
                    }
                    return;
                }
                self.condensed_total += 1;
                self.windows[chain as usize].condensed = Some(self.condensed.len());
                if self.condensed.len() < TOLD {
                    self.condensed.push(Condensed {
                        seq_from: event.seq,
                        seq_to: event.seq,
                        at: time_of(event),
                        chain,
                        stated,
                        summary,
                        before: last,
                        after: None,
                    });
                }
            }
            NoteKind::Rewind => {
                self.rewound_total += 1;
                self.windows[chain as usize].rewound = Some(self.rewound.len());
                if self.rewound.len() < TOLD {
                    self.rewound.push(Rewound {
                        seq: event.seq,
                        at: time_of(event),
                        chain,
                        before: last,
                        after: None,
                    });
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, chain: u32, event: &Event) {
        let Self {
            windows,
            asked,
            recorded,
            ..
        } = self;
        let added = &mut windows[chain as usize].added;
        let sums = &mut added.sums;
        for file in &event.annotations.attachments {
            sums.attachments += 1;
            sums.attachment_bytes = sums.attachment_bytes.saturating_add(file.bytes);
        }
        if let Body::Note(note) = &event.body
            && note.kind == NoteKind::Attachment
            && event.annotations.attachments.is_empty()
        {
            sums.attachments += 1;
            let text = note.text.as_ref().map(|text| text.len() as u64);
            let raw = || note.raw.as_ref().map_or(0, |raw| raw.get().len() as u64);
            sums.attachment_bytes += text.unwrap_or_else(raw);
        }
        parts::each(event, *recorded, |part| {
            let sums = &mut added.sums;
            match part {
                Part::User {
                    bytes,
                    person: true,
                } => sums.user += bytes,
                Part::User { bytes, .. } | Part::System(bytes) => sums.system += bytes,
                Part::Assistant(bytes) => sums.assistant += bytes,
                Part::Thinking(bytes) => sums.thinking += bytes,
                Part::Call(call) => {
                    let key = quipu_agents::hash(call.id.as_bytes());
                    // The agent's word for a call that another event tells of as well.
                    if asked.insert(key, call.name.to_owned()).is_none() || call.id.is_empty() {
                        sums.calls += parts::input_bytes(&call);
                    }
                }
                Part::Result(outcome) => {
                    let key = quipu_agents::hash(outcome.id.as_bytes());
                    let name = asked.remove(&key);
                    if outcome.in_message && name.is_none() {
                        return;
                    }
                    let name = match outcome.name {
                        "" => name.unwrap_or_default(),
                        name => name.to_owned(),
                    };
                    sums.results += outcome.bytes;
                    added.tool(name, outcome.bytes);
                }
            }
        });
    }

    fn finish(self, transcript: Option<String>) -> ContextTurns {
        let all = &self.turns.all;
        let mut fullest: Option<FullestWindow> = None;
        let mut unstated = 0;
        for (at, turn) in all.iter().enumerate() {
            unstated += u64::from(turn.usage.is_none());
            let Some(window) = turn.window() else {
                continue;
            };
            if fullest.as_ref().is_none_or(|it| window > it.window_tokens) {
                fullest = Some(FullestWindow {
                    seq: turn.seq_from,
                    window_tokens: window,
                    limit_tokens: self.limits.get(&at).copied(),
                });
            }
        }
        let (mut resets, resets_total) = self.resets();
        resets.truncate(TOLD);
        let last = self.page.keys().next_back().map_or_else(
            || all.partition_point(|turn| turn.seq_from < self.from),
            |last| last + 1,
        );
        let turns = self.page.iter();
        let turns = turns.map(|(at, added)| self.turn(*at, added)).collect();
        let compactions = self.condensed.iter().map(|it| self.compaction(it));
        ContextTurns {
            transcript,
            events: self.events,
            turns_total: all.len() as u64,
            turns,
            next: all.get(last).map(|turn| turn.seq_from),
            compactions_total: self.condensed_total,
            compactions: compactions.collect(),
            resets_total,
            resets,
            fullest,
            unstated,
        }
    }

    fn chain(&self, chain: u32) -> Option<&Chain> {
        self.turns.chains.get(chain)
    }

    fn subagent(&self, chain: u32) -> Option<String> {
        self.chain(chain).and_then(|chain| chain.subagent.clone())
    }

    fn prompt(&self, turn: Option<usize>) -> Option<u64> {
        self.turns.all.get(turn?).and_then(TurnFact::prompt)
    }

    fn turn(&self, at: usize, added: &Added) -> ContextTurn {
        let turn = &self.turns.all[at];
        let before = turn.before.and_then(|before| self.turns.all.get(before));
        let before = before.and_then(TurnFact::window);
        let grown = turn.prompt().zip(before).and_then(|(now, before)| {
            let (now, before) = (i64::try_from(now).ok()?, i64::try_from(before).ok()?);
            now.checked_sub(before)
        });
        let name = |number: Option<u32>, names: &super::names::Names| {
            number.and_then(|number| names.get(number)).cloned()
        };
        let path = self.chain(turn.chain).map(|chain| chain.place.path.clone());
        ContextTurn {
            turn: at as u64,
            seq_from: turn.seq_from,
            seq_to: turn.seq_to,
            at: turn.first.and_then(time),
            model: name(turn.model, &self.turns.models),
            subagent: self.subagent(turn.chain),
            path: path.unwrap_or_default(),
            call_id: turn.id.as_deref().map(str::to_owned),
            tokens: turn.usage.as_ref().map(tokens),
            prompt_tokens: turn.prompt(),
            window_tokens: turn.window(),
            limit_tokens: self.limits.get(&at).copied(),
            grown_tokens: grown,
            added: added.document(),
            stop_reason: name(turn.stop_reason, &self.turns.stops),
        }
    }

    fn compaction(&self, it: &Condensed) -> Compaction {
        let before = it.before.and_then(|at| self.turns.all.get(at));
        Compaction {
            seq_from: it.seq_from,
            seq_to: it.seq_to,
            at: it.at.and_then(time),
            subagent: self.subagent(it.chain),
            stated_before_tokens: it.stated,
            before_tokens: before.and_then(TurnFact::window),
            after_tokens: self.prompt(it.after),
            summary_bytes: it.summary,
        }
    }

    /// Rewinds, and prompts that became much shorter without a word.
    fn resets(&self) -> (Vec<ContextReset>, u64) {
        let mut resets: Vec<ContextReset> = Vec::new();
        let mut total = self.rewound_total;
        for it in &self.rewound {
            resets.push(ContextReset {
                seq: it.seq,
                at: it.at.and_then(time),
                subagent: self.subagent(it.chain),
                kind: ResetKind::Rewind,
                before_tokens: self.prompt(it.before),
                after_tokens: self.prompt(it.after),
            });
        }
        for (at, turn) in self.turns.all.iter().enumerate() {
            let Some(before) = turn.before.and_then(|before| self.turns.all.get(before)) else {
                continue;
            };
            let (Some(was), Some(is)) = (before.prompt(), turn.prompt()) else {
                continue;
            };
            let shrunk = is < was / 2 && before.model == turn.model;
            if !shrunk || self.explained.binary_search(&at).is_ok() {
                continue;
            }
            total += 1;
            if resets.len() < 2 * TOLD {
                resets.push(ContextReset {
                    seq: turn.seq_from,
                    at: turn.first.and_then(time),
                    subagent: self.subagent(turn.chain),
                    kind: ResetKind::Shrunk,
                    before_tokens: Some(was),
                    after_tokens: Some(is),
                });
            }
        }
        resets.sort_by_key(|reset| reset.seq);
        (resets, total)
    }
}

impl Added {
    fn tool(&mut self, name: String, bytes: u64) {
        if self.tools.len() >= TOOLS && !self.tools.contains_key(&name) {
            self.other_tools += 1;
            return;
        }
        let (results, sum) = self.tools.entry(name).or_default();
        *results += 1;
        *sum = sum.saturating_add(bytes);
    }

    fn document(&self) -> ContextAdded {
        let sums = &self.sums;
        let mut tools: Vec<ToolBytes> = self
            .tools
            .iter()
            .map(|(tool, (results, bytes))| ToolBytes {
                tool: tool.clone(),
                results: *results,
                bytes: *bytes,
            })
            .collect();
        tools.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.tool.cmp(&b.tool)));
        ContextAdded {
            user_bytes: sums.user,
            assistant_bytes: sums.assistant,
            thinking_bytes: sums.thinking,
            tool_call_bytes: sums.calls,
            tool_result_bytes: sums.results,
            tool_results: tools,
            other_tools: self.other_tools,
            system_bytes: sums.system,
            attachments: sums.attachments,
            attachment_bytes: sums.attachment_bytes,
        }
    }
}

/// The number that stands under one of these names, wherever in the value.
fn number(json: &Json, names: &[&str]) -> Option<u64> {
    let text = json.get();
    if text.len() > LOOKED_AT || !names.iter().any(|name| text.contains(name)) {
        return None;
    }
    let mut left = vec![serde_json::from_str::<serde_json::Value>(text).ok()?];
    while let Some(value) = left.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_u64() {
                        Some(number) if names.contains(&name.as_str()) => return Some(number),
                        _ => left.push(value),
                    }
                }
            }
            serde_json::Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    None
}
