//! What a conversation has told already.
//!
//! A request repeats the history, spans come in any order and more than once, and an answer stands in the span of its call
//! and in every later request. So messages are counted by what they say. A message is there as often as the request that has
//! it most often, or as often as models gave it as an answer, whichever is more: that number does not depend on the order in
//! which spans are read.

use std::collections::{HashMap, VecDeque};

use quipu_model::Json;
use quipu_model::json::Tape;
use serde::{Deserialize, Serialize};

use super::message::{Part, Role};
use crate::hash;
use crate::history::Turn;

/// How many different messages, calls and results are remembered. What comes after so many is told as often as it comes.
const MOST: usize = 1 << 19;

/// How many calls wait for the span of their tool.
const WAITING: usize = 1 << 14;

/// An id that is shorter is likely to be used again in another request.
const STRONG: usize = 6;

/// What was told.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Said {
    told: HashMap<u64, Count>,
    /// How often a record of its own has said something in the request of a span.
    pieces: HashMap<u64, u32>,
    /// Calls that models asked for and no span of a tool told of yet: by what they ask, their ids.
    asked: HashMap<u64, VecDeque<String>>,
    /// Spans of tools without the id of a call, that no model was seen to ask for yet.
    ahead: HashMap<u64, u32>,
}

/// How often something was told.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
struct Count {
    /// By requests, and not by the answer that it was.
    repeated: u32,
    /// By answers.
    given: u32,
}

/// What one request repeats, so far.
#[derive(Debug, Default)]
pub(super) struct Request(HashMap<u64, u32>);

impl Said {
    /// Whether what a request has is news.
    pub(super) fn asked(&mut self, request: &mut Request, key: u64) -> bool {
        let times = request.0.entry(key).or_default();
        *times += 1;
        let times = *times;
        self.repeated(key, times)
    }

    /// The same, where each message of a request is a record of its own.
    pub(super) fn asked_in_piece(&mut self, span: &str, key: u64) -> bool {
        let piece = mix(hash(span.as_bytes()), key);
        if self.pieces.len() >= MOST && !self.pieces.contains_key(&piece) {
            return true;
        }
        let times = self.pieces.entry(piece).or_default();
        *times += 1;
        let times = *times;
        self.repeated(key, times)
    }

    /// Which time it is that the records of a span give this as an answer.
    pub(super) fn piece_given(&mut self, span: &str, key: u64) -> u32 {
        let piece = mix(hash(span.as_bytes()) ^ 1, key);
        if self.pieces.len() >= MOST && !self.pieces.contains_key(&piece) {
            return 1;
        }
        let times = self.pieces.entry(piece).or_default();
        *times += 1;
        *times
    }

    fn repeated(&mut self, key: u64, times: u32) -> bool {
        let Some(count) = self.count(key) else {
            return true;
        };
        let is_new = times > count.repeated.saturating_add(count.given);
        if is_new {
            count.repeated += 1;
        }
        is_new
    }

    /// Whether what a model gave as an answer is news. The caller asks once for each answer.
    pub(super) fn given(&mut self, key: u64) -> bool {
        let Some(count) = self.count(key) else {
            return true;
        };
        count.given = count.given.saturating_add(1);
        if count.repeated > 0 {
            count.repeated -= 1;
            return false;
        }
        true
    }

    /// Whether something with an id of its own is news.
    pub(super) fn once(&mut self, key: u64) -> bool {
        let Some(count) = self.count(key) else {
            return true;
        };
        let is_new = count.given == 0;
        count.given = 1;
        is_new
    }

    /// A model asks for a call that has an id. `false` when the span of the tool, which does not have the id, was there
    /// before.
    pub(super) fn asks(&mut self, id: &str, name: &str, input: Option<&Json>) -> bool {
        let what = asking(name, input);
        if let Some(ahead) = self.ahead.get_mut(&what).filter(|ahead| **ahead > 0) {
            *ahead -= 1;
            // Its result was told as well.
            self.once(Key::result(id, None).number());
            return false;
        }
        if self.asked.len() < WAITING || self.asked.contains_key(&what) {
            let ids = self.asked.entry(what).or_default();
            if ids.len() < WAITING {
                ids.push_back(id.to_owned());
            }
        }
        true
    }

    /// The span of a tool that has the id of its call.
    pub(super) fn used(&mut self, id: &str, name: &str, input: Option<&Json>) {
        if let Some(ids) = self.asked.get_mut(&asking(name, input)) {
            ids.retain(|it| it != id);
        }
    }

    /// The id of the call that the span of a tool without one is of.
    pub(super) fn used_without_id(&mut self, name: &str, input: Option<&Json>) -> Option<String> {
        let what = asking(name, input);
        let id = self.asked.get_mut(&what).and_then(VecDeque::pop_front);
        if id.is_none() && (self.ahead.len() < WAITING || self.ahead.contains_key(&what)) {
            *self.ahead.entry(what).or_default() += 1;
        }
        id
    }

    fn count(&mut self, key: u64) -> Option<&mut Count> {
        if self.told.len() >= MOST && !self.told.contains_key(&key) {
            return None;
        }
        Some(self.told.entry(key).or_default())
    }
}

/// What a part is known by, and whether that is an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// There is one of it.
    Id(u64),
    /// There may be several that say the same.
    Content(u64),
}

impl Key {
    pub(super) fn of(role: &Role, part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::said("text", role, text.trim()),
            Part::Reasoning(text) => Self::said("reasoning", role, text.trim()),
            Part::Call { id, name, input } => Self::call(id, name, input.as_ref()),
            Part::Response { id, output, .. } => Self::result(id, output.as_ref()),
            Part::Media { mime, data } => Self::said("media", role, &format!("{mime}\n{data}")),
            Part::Other(_, json) => Self::said("other", role, json.get()),
        }
    }

    fn said(kind: &str, role: &Role, text: &str) -> Self {
        let text = hash(text.as_bytes());
        let what = hash(format!("{kind}\n{}", role.word()).as_bytes());
        Self::Content(mix(what, text))
    }

    /// A call of a tool.
    pub(super) fn call(id: &str, name: &str, input: Option<&Json>) -> Self {
        if id.len() >= STRONG {
            return Self::Id(mix(hash(b"call"), hash(id.as_bytes())));
        }
        let key = mix(mix(hash(b"call"), hash(id.as_bytes())), asking(name, input));
        if id.is_empty() {
            Self::Content(key)
        } else {
            Self::Id(key)
        }
    }

    /// What a tool gave back.
    pub(super) fn result(id: &str, output: Option<&Json>) -> Self {
        if id.len() >= STRONG {
            return Self::Id(mix(hash(b"result"), hash(id.as_bytes())));
        }
        let key = mix(mix(hash(b"result"), hash(id.as_bytes())), content(output));
        if id.is_empty() {
            Self::Content(key)
        } else {
            Self::Id(key)
        }
    }

    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Id(key) | Self::Content(key) => key,
        }
    }
}

/// What a call is known by without its id.
fn asking(name: &str, input: Option<&Json>) -> u64 {
    mix(hash(name.as_bytes()), content(input))
}

/// What a value is known by, however it is written. Nothing is the same as an empty object.
fn content(value: Option<&Json>) -> u64 {
    let text = value.map_or("{}", Json::get);
    let mut tape = Tape::new();
    match tape.read(text, 256) {
        Ok(node) if node.is_null() => content(None),
        Ok(node) => Turn::of(node).hash,
        Err(_) => hash(text.as_bytes()),
    }
}

fn mix(a: u64, b: u64) -> u64 {
    let mut both = [0; 16];
    both[..8].copy_from_slice(&a.to_le_bytes());
    both[8..].copy_from_slice(&b.to_le_bytes());
    hash(&both)
}
