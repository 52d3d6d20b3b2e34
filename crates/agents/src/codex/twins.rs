//! What is told twice: once as an item of the conversation, once as an event for the screen.
//!
//! The item is what counts. But the event often comes first, and there are rollouts in which the item
//! never comes: then the event is all there is. So an event waits for its item until something else of the
//! conversation comes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How many texts are remembered.
const RECENT: usize = 8;

/// How many events wait at most.
const WAITING: usize = 32;

/// What was said so far on either channel, as far as the other may still repeat it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Twins {
    /// Whether the rollout has items at all.
    pub(super) items: bool,
    held: Vec<Held>,
    /// Texts of items whose events may follow.
    from_items: VecDeque<u64>,
    /// Texts of events that stand for their items.
    from_events: VecDeque<u64>,
}

/// An event that waits for its item.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Held {
    /// Whose words they are.
    pub(super) who: Who,
    /// The words, as a JSON string.
    pub(super) raw: String,
    /// When they were said.
    pub(super) at: Option<i128>,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Who {
    /// A person's.
    User,
    /// The agent's.
    Assistant,
    /// The model's, to itself.
    Reasoning,
}

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its item was there.
    Repeated,
    /// It waits for its item.
    Waits,
    /// It stands for itself.
    Stands,
}

impl Twins {
    /// Takes an event.
    pub(super) fn event(&mut self, who: Who, raw: &str, at: Option<i128>) -> Fate {
        let text = crate::hash(raw.as_bytes());
        if let Some(index) = self.from_items.iter().position(|t| *t == text) {
            self.from_items.remove(index);
            return Fate::Repeated;
        }
        if !self.items || self.held.len() >= WAITING {
            remember(&mut self.from_events, text);
            return Fate::Stands;
        }
        self.held.push(Held {
            who,
            raw: raw.to_owned(),
            at,
        });
        Fate::Waits
    }

    /// Takes the text of an item. `false` when an event already stands for it. Events that waited
    /// before its own have no item, and are handed to `stand`.
    pub(super) fn item(&mut self, who: Who, raw: &str, stand: impl FnMut(Held)) -> bool {
        if let Some(index) = self.waiting(who, raw) {
            self.held.remove(index);
            self.release(index, stand);
            return true;
        }
        if !self.from_events.is_empty() {
            let text = crate::hash(raw.as_bytes());
            if let Some(index) = self.from_events.iter().position(|t| *t == text) {
                self.from_events.remove(index);
                return false;
            }
        }
        self.release(self.held.len(), stand);
        remember(&mut self.from_items, crate::hash(raw.as_bytes()));
        true
    }

    /// Takes an item of several texts, each of which has an event.
    pub(super) fn parts<'t>(
        &mut self,
        who: Who,
        raws: impl Iterator<Item = &'t str>,
        stand: impl FnMut(Held),
    ) -> bool {
        let (mut first, mut any, mut all_stand) = (None, false, true);
        for raw in raws {
            any = true;
            if let Some(index) = self.waiting(who, raw) {
                self.held.remove(index);
                first.get_or_insert(index);
                all_stand = false;
                continue;
            }
            let text = crate::hash(raw.as_bytes());
            if let Some(index) = self.from_events.iter().position(|t| *t == text) {
                self.from_events.remove(index);
            } else {
                remember(&mut self.from_items, text);
                all_stand = false;
            }
        }
        if any && all_stand {
            return false;
        }
        self.release(first.unwrap_or(self.held.len()), stand);
        true
    }

    /// Something else of the conversation comes: nothing that waits will find its item.
    pub(super) fn other(&mut self, stand: impl FnMut(Held)) {
        if !self.held.is_empty() {
            self.release(self.held.len(), stand);
        }
    }

    fn waiting(&self, who: Who, raw: &str) -> Option<usize> {
        self.held
            .iter()
            .position(|held| held.who == who && held.raw == raw)
    }

    /// Lets the first events that wait stand for themselves.
    fn release(&mut self, count: usize, mut stand: impl FnMut(Held)) {
        for held in self.held.drain(..count.min(self.held.len())) {
            let text = crate::hash(held.raw.as_bytes());
            if self.from_events.len() == RECENT {
                self.from_events.pop_front();
            }
            self.from_events.push_back(text);
            stand(held);
        }
    }
}

fn remember(texts: &mut VecDeque<u64>, text: u64) {
    if texts.len() == RECENT {
        texts.pop_front();
    }
    texts.push_back(text);
}
