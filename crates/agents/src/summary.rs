//! A session in figures: what a list of sessions shows.

use std::collections::BTreeMap;

use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use crate::session::Tokens;
use crate::{Entry, What};

/// The longest title that is taken from a prompt, in characters.
const TITLE: usize = 120;

/// A log that names more models than this is making them up. What is beyond is counted as one.
const MODELS: usize = 200;
const OTHERS: &str = "(others)";

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
    /// What each model was used for. The empty name stands for a model that the log does not name.
    pub models: BTreeMap<String, ModelUse>,
    /// How often each tool was called.
    pub tools: BTreeMap<String, u64>,
}

/// What a model was used for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    /// Calls to it.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Tokens,
}

impl Summary {
    /// Takes in an entry.
    pub fn observe(&mut self, entry: &Entry<'_>) {
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
                    self.title = title(&text.read());
                }
            }
            What::Assistant(_) => self.replies += 1,
            What::Reasoning(_) => self.reasoning += 1,
            What::Call { name, .. } => {
                self.tool_calls += 1;
                count(&mut self.tools, name);
            }
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
        if let Some(usage) = &entry.usage {
            let mut model = entry.model.as_deref().unwrap_or_default();
            if self.models.len() >= MODELS && !self.models.contains_key(model) {
                model = OTHERS;
            }
            if !self.models.contains_key(model) {
                self.models.insert(model.to_owned(), ModelUse::default());
            }
            if let Some(used) = self.models.get_mut(model) {
                used.calls += u64::from(entry.begins_call);
                let mut sum = Usage::from(used.tokens);
                sum.add(usage);
                used.tokens = sum.into();
            }
        }
    }

    /// The tokens of all models.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for used in self.models.values() {
            sum.add(&used.tokens.into());
        }
        sum
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    /// A log that names more tools than this is making them up.
    const MOST: usize = 1000;
    const LONGEST: usize = 200;
    let name = name
        .char_indices()
        .nth(LONGEST)
        .map_or(name, |(end, _)| &name[..end]);
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
    } else if counts.len() < MOST {
        counts.insert(name.to_owned(), 1);
    }
}

/// What editors put before what a person asks.
const REQUEST: &str = "## My request for Codex:";

/// The first line of a prompt that says something: no mark-up, nothing that a program wraps prompts in.
fn title(prompt: &str) -> Option<String> {
    let asked = prompt
        .split_once(REQUEST)
        .map_or(prompt, |(_, asked)| asked);
    let wraps = |line: &str| {
        let tag = line.starts_with('<') && line.ends_with('>');
        tag || line.starts_with("[[ ##") || line.starts_with("Caveat:") || line.starts_with("```")
    };
    let line = asked
        .lines()
        .map(|line| line.trim().trim_start_matches('#').trim_start())
        .find(|line| !line.is_empty() && !wraps(line))?;
    let mut title: String = line.chars().take(TITLE).collect();
    if line.chars().nth(TITLE).is_some() {
        title.push('…');
    }
    Some(title)
}
