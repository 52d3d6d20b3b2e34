//! A session in figures: what a list of sessions shows.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use quipu_model::{Money, NoteKind, Service, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::session::Tokens;
use crate::{Charge, Entry, What};

/// How much of a prompt is looked at to find out what must not be in its title, in bytes.
const LOOKED_AT: usize = 16 << 10;

/// The longest title that is taken from a prompt, in characters.
const TITLE: usize = 120;

/// Names are cut to so many characters.
const LONGEST: usize = 200;

/// A log with more rows than this in one of its tables is not believed to be honest, but still counted: from
/// the first bound on by the day, and from the second on in one row.
const BY_DAY: usize = 4096;
const MOST: usize = 8192;
const OTHERS: &str = "(others)";

/// Slots in a day.
const DAY: i64 = 24 * 4;

/// What a session comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Events, notes not counted.
    pub events: u64,
    /// Notes.
    pub notes: u64,
    /// Messages from the user's side that a person wrote.
    pub prompts: u64,
    /// Messages of the agent.
    pub replies: u64,
    /// Pieces of reasoning.
    pub reasoning: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool results.
    pub tool_results: u64,
    /// Results that say something failed.
    pub failures: u64,
    /// Calls that were not allowed.
    pub denials: u64,
    /// Errors outside of tools.
    pub errors: u64,
    /// Compactions.
    pub compactions: u64,
    /// Attachments.
    pub attachments: u64,
    /// The earliest time, in milliseconds since 1970.
    pub first_at: Option<i64>,
    /// The latest time.
    pub last_at: Option<i64>,
    /// The first prompt, shortened.
    pub title: Option<String>,
    /// The models that the log names, whether it tells of their tokens or not.
    pub models: BTreeSet<String>,
    /// Calls to models and their tokens.
    pub spend: BTreeMap<SpendKey, Spend>,
    /// What was done when.
    pub activity: BTreeMap<Doer, Activity>,
    /// The sessions of sub-agents that were begun here, by the id they are known by, and the calls that began them.
    pub spawned: BTreeMap<String, String>,
    /// How each tool was used.
    pub tools: BTreeMap<ToolKey, ToolUse>,
    /// What was paid for that need not have been.
    pub waste: BTreeMap<WasteKey, Spend>,
}

/// Who did something, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Doer {
    /// The slot of time, see [`slot`](crate::slot); `None` where the log has no times.
    pub slot: Option<i64>,
    /// The sub-agent, where it shares the log with others; otherwise empty.
    pub subagent: String,
}

/// Which calls to models are counted together.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpendKey {
    /// Who made them.
    pub by: Doer,
    /// The model; empty where the log does not name it.
    pub model: String,
    /// How they were served.
    #[serde(with = "crate::calls::service")]
    pub service: Service,
    /// The class of their prompts' length.
    pub context: u8,
    /// Whether the log says what they cost.
    pub told: bool,
}

/// Calls to models and their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// How many.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// Searches of the web that they paid for.
    pub searches: u64,
    /// What they cost by the log's own word; nothing where it does not say.
    told: Cost,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Messages that a person wrote.
    pub prompts: u64,
    /// Messages of the agent.
    pub replies: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Results that say something failed.
    pub failures: u64,
    /// Calls that were not allowed.
    pub denials: u64,
    /// Time in which something went on: between events that are less than five minutes apart.
    pub active_ms: u64,
}

/// Which calls to tools are counted together.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolKey {
    /// Who made them.
    pub by: Doer,
    /// The tool.
    pub tool: String,
}

/// How a tool was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// How often it was called.
    pub calls: u64,
    /// Results that say something failed.
    pub failures: u64,
}

/// Kinds of waste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Waste {
    /// A prompt that a cache had forgotten, because nothing was asked for too long.
    Pause,
    /// A prompt that was sent before and not read from a cache, without such a pause.
    Resent,
    /// A tool call that was made before with the same input.
    Repeat,
    /// A tool call that was made before with the same input, and had failed.
    Retry,
}

/// Which waste is counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WasteKey {
    /// What it is.
    pub kind: Waste,
    /// The slot of time.
    pub slot: Option<i64>,
    /// The model that was paid; empty where it is not known.
    pub model: String,
    /// How it served.
    #[serde(with = "crate::calls::service")]
    pub service: Service,
    /// The class of the prompt's length.
    pub context: u8,
}

impl Waste {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Pause, Self::Resent, Self::Repeat, Self::Retry];

    /// Its place among all of them. Kept in files.
    pub fn number(self) -> u8 {
        let at = Self::ALL.iter().position(|it| *it == self);
        at.and_then(|at| u8::try_from(at).ok()).unwrap_or_default()
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "cache_lost",
            Self::Resent => "resent",
            Self::Repeat => "repeated",
            Self::Retry => "retried",
        }
    }
}

impl Summary {
    /// Takes in an entry.
    pub fn observe(&mut self, entry: &Entry<'_>) {
        self.observe_hiding(entry, &|text| Cow::Borrowed(text));
    }

    /// Takes in an entry. `hide` gives what is left of a prompt before it becomes a title: what has to be recognised
    /// must not be cut short before.
    pub fn observe_hiding(
        &mut self,
        entry: &Entry<'_>,
        hide: &dyn for<'t> Fn(&'t str) -> Cow<'t, str>,
    ) {
        if entry.is_note() {
            self.notes += 1;
        } else {
            self.events += 1;
        }
        if let Some(at) = entry.at.map(Timestamp::as_millisecond) {
            self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
            self.last_at = Some(self.last_at.map_or(at, |last| last.max(at)));
        }
        self.attachments += entry.attachments.len() as u64;
        match &entry.what {
            What::User(text) if !entry.synthetic => {
                self.prompts += 1;
                if self.title.is_none() {
                    self.title = title(&text.read(), hide);
                }
            }
            What::Assistant(_) => self.replies += 1,
            What::Reasoning(_) => self.reasoning += 1,
            What::Call { .. } => self.tool_calls += 1,
            What::Result { .. } => {
                self.tool_results += 1;
                match entry.status {
                    Some(Status::Denied) => self.denials += 1,
                    Some(Status::Error | Status::Timeout) => self.failures += 1,
                    Some(Status::Ok) | None => {}
                }
            }
            What::Note { kind, .. } => match kind {
                NoteKind::Error => self.errors += 1,
                NoteKind::Compaction => self.compactions += 1,
                _ => {}
            },
            What::User(_) | What::System(_) => {}
        }
        self.observe_model(entry);
        self.observe_child(entry);
        self.observe_activity(entry);
        self.observe_spend(entry);
        self.observe_waste(entry);
    }

    fn observe_model(&mut self, entry: &Entry<'_>) {
        let named = entry
            .model
            .as_deref()
            .map(cut)
            .filter(|name| !name.is_empty());
        if let Some(name) = named
            && !self.models.contains(name)
            && self.models.len() < BY_DAY
        {
            self.models.insert(name.to_owned());
        }
    }

    fn observe_child(&mut self, entry: &Entry<'_>) {
        let Some(child) = entry.child.as_deref() else {
            return;
        };
        let (What::Call { id, .. } | What::Result { id, .. }) = &entry.what else {
            return;
        };
        if !id.is_empty() && self.spawned.len() < BY_DAY {
            let child = crate::run_id(child).as_str().to_owned();
            let call = || cut(id).to_owned();
            self.spawned.entry(child).or_insert_with(call);
        }
    }

    fn observe_spend(&mut self, entry: &Entry<'_>) {
        let (Some(charge), true) = (
            &entry.charge,
            entry.usage.is_some() || entry.searches.is_some() || entry.cost.is_some(),
        ) else {
            return;
        };
        let key = SpendKey {
            by: doer(entry, charge.slot),
            model: model(entry, charge),
            service: charge.service,
            context: charge.context,
            told: charge.told,
        };
        let spend = row(&mut self.spend, key);
        spend.calls = spend.calls.saturating_add(entry.calls_begun());
        spend.add(&entry.usage.unwrap_or_default());
        spend.searches = spend.searches.saturating_add(entry.searches.unwrap_or(0));
        if let Some(cost) = entry.cost.filter(|_| charge.told) {
            spend.told.add(cost.into());
        }
    }

    fn observe_waste(&mut self, entry: &Entry<'_>) {
        if let (Some(missed), Some(charge)) = (&entry.missed, &entry.charge) {
            let key = WasteKey {
                kind: if missed.pause {
                    Waste::Pause
                } else {
                    Waste::Resent
                },
                slot: charge.slot,
                model: model(entry, charge),
                service: charge.service,
                context: charge.context,
            };
            let waste = row(&mut self.waste, key);
            waste.calls += 1;
            waste.add(&missed.tokens.into());
        }
        if let Some(repeat) = &entry.repeat {
            let (charge, tokens) = repeat.blamed.as_ref().map_or((None, None), |(at, tokens)| {
                (Some(at), Some(Usage::from(*tokens)))
            });
            let key = WasteKey {
                kind: if repeat.retry {
                    Waste::Retry
                } else {
                    Waste::Repeat
                },
                slot: entry.when.map(crate::slot),
                model: charge.map_or_else(String::new, |charge| model(entry, charge)),
                service: charge.map_or(Service::Standard, |charge| charge.service),
                context: charge.map_or(0, |charge| charge.context),
            };
            let waste = row(&mut self.waste, key);
            waste.calls += 1;
            waste.add(&tokens.unwrap_or_default());
        }
    }

    /// Counts what was done when, and with which tool.
    fn observe_activity(&mut self, entry: &Entry<'_>) {
        let mut did = Activity {
            active_ms: entry.active_ms,
            ..Activity::default()
        };
        let mut tool = None;
        match &entry.what {
            What::User(_) if !entry.synthetic => did.prompts = 1,
            What::Assistant(_) => did.replies = 1,
            What::Call { name, .. } => {
                did.tool_calls = 1;
                tool = Some(name);
            }
            What::Result { name, .. } => match entry.status {
                Some(Status::Denied) => did.denials = 1,
                Some(Status::Error | Status::Timeout) => {
                    did.failures = 1;
                    tool = Some(name);
                }
                Some(Status::Ok) | None => {}
            },
            _ => {}
        }
        if did == Activity::default() {
            return;
        }
        let by = doer(entry, entry.when.map(crate::slot));
        row(&mut self.activity, by.clone()).add(&did);
        if let Some(tool) = tool {
            let tool = cut(tool).to_owned();
            let used = row(&mut self.tools, ToolKey { by, tool });
            used.calls += did.tool_calls;
            used.failures += did.failures;
        }
    }

    /// Calls to models.
    pub fn calls(&self) -> u64 {
        let calls = self.spend.values().map(|spend| spend.calls);
        calls.fold(0, u64::saturating_add)
    }

    /// The tokens of all models.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for spend in self.spend.values() {
            sum.add(&spend.tokens.into());
        }
        sum
    }
}

impl Spend {
    /// What the calls cost by the log's own word.
    pub fn told(&self) -> Money {
        self.told.money()
    }

    /// Adds tokens.
    pub fn add(&mut self, tokens: &Usage) {
        let mut sum = Usage::from(self.tokens);
        sum.add(tokens);
        self.tokens = sum.into();
    }
}

impl Activity {
    /// Adds what else was done.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.prompts, other.prompts),
            (&mut self.replies, other.replies),
            (&mut self.tool_calls, other.tool_calls),
            (&mut self.failures, other.failures),
            (&mut self.denials, other.denials),
            (&mut self.active_ms, other.active_ms),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// What a row is found by, and what becomes of it where a log has too many.
trait Key: Ord + Clone {
    /// The same, by the day.
    fn by_day(self) -> Self;
    /// What stands for all that cannot be told apart any more.
    fn others(self) -> Self;
}

impl Key for Doer {
    fn by_day(mut self) -> Self {
        self.slot = self.slot.map(|slot| slot - slot.rem_euclid(DAY));
        self
    }

    fn others(self) -> Self {
        Self {
            slot: None,
            subagent: if self.subagent.is_empty() {
                String::new()
            } else {
                OTHERS.to_owned()
            },
        }
    }
}

impl Key for SpendKey {
    fn by_day(mut self) -> Self {
        self.by = self.by.by_day();
        self
    }

    fn others(self) -> Self {
        Self {
            by: self.by.others(),
            model: OTHERS.to_owned(),
            ..Self::default()
        }
    }
}

impl Key for ToolKey {
    fn by_day(mut self) -> Self {
        self.by = self.by.by_day();
        self
    }

    fn others(self) -> Self {
        Self {
            by: self.by.others(),
            tool: OTHERS.to_owned(),
        }
    }
}

impl Key for WasteKey {
    fn by_day(mut self) -> Self {
        self.slot = self.slot.map(|slot| slot - slot.rem_euclid(DAY));
        self
    }

    fn others(self) -> Self {
        Self {
            kind: self.kind,
            slot: None,
            model: OTHERS.to_owned(),
            service: Service::Standard,
            context: 0,
        }
    }
}

fn row<K: Key, V: Default>(rows: &mut BTreeMap<K, V>, key: K) -> &mut V {
    let room = |key: &K| rows.len() < BY_DAY || rows.contains_key(key);
    if room(&key) {
        return rows.entry(key).or_default();
    }
    let key = key.by_day();
    let room = rows.len() < MOST || rows.contains_key(&key);
    let key = if room { key } else { key.others() };
    rows.entry(key).or_default()
}

fn doer(entry: &Entry<'_>, slot: Option<i64>) -> Doer {
    Doer {
        slot,
        subagent: cut(entry.subagent.as_deref().unwrap_or_default()).to_owned(),
    }
}

fn model(entry: &Entry<'_>, charge: &Charge) -> String {
    let own = entry.model.as_deref().unwrap_or_default();
    cut(charge.model.as_deref().unwrap_or(own)).to_owned()
}

fn cut(name: &str) -> &str {
    // Most names are so short that their characters need not be counted.
    if name.len() <= LONGEST {
        return name;
    }
    name.char_indices()
        .nth(LONGEST)
        .map_or(name, |(end, _)| &name[..end])
}

/// What editors put before what a person asks.
const REQUEST: &str = "## My request for Codex:";

/// The first line of a prompt that says something: no mark-up, nothing that a program wraps prompts in.
fn title(prompt: &str, hide: &dyn for<'t> Fn(&'t str) -> Cow<'t, str>) -> Option<String> {
    let asked = prompt
        .split_once(REQUEST)
        .map_or(prompt, |(_, asked)| asked);
    let wraps = |line: &str| {
        let tag = line.starts_with('<') && line.ends_with('>');
        tag || line.starts_with("[[ ##") || line.starts_with("Caveat:") || line.starts_with("```")
    };
    let mut lines = asked.lines();
    let line = lines.find_map(|line| {
        let line = line.trim().trim_start_matches('#').trim_start();
        (!line.is_empty() && !wraps(line)).then_some(line)
    })?;
    // From where the title begins: a secret may go over several lines.
    let begin = line.as_ptr() as usize - asked.as_ptr() as usize;
    let mut end = (begin + LOOKED_AT).min(asked.len());
    while !asked.is_char_boundary(end) {
        end -= 1;
    }
    let hidden = hide(&asked[begin..end]);
    let line = hidden.lines().next()?.trim_end();
    let mut title: String = line.chars().take(TITLE).collect();
    if line.chars().nth(TITLE).is_some() {
        title.push('…');
    }
    Some(title)
}
