//! What is in a log that its adapter does not know, or knows and gives to no event.
//!
//! Agents change their formats every week and tell no one. Each adapter lists the record types and
//! fields it has seen; whatever else turns up is counted here, with the first place it was seen at. Fields that are
//! known and reach no event are counted as well, by their name.

use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use crate::Position;

/// How many different unknown names are kept of one log. A log that has more is not drifting, it is
/// something else.
const MAX_NAMES: usize = 256;

/// The longest name that is kept, in characters. What is longer is a text that stands where a name belongs, and half of
/// a text could hold half of a secret.
const MAX_NAME: usize = 120;

/// How the names begin of fields that are known and reach no event.
const LEFT_OUT: &str = "left_out";

/// Unknown record types and fields, and known ones that reach no event.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Drift {
    /// By name: `type:assistant.foo`, `field:assistant.foo`, or `left_out:assistant.foo` for a field that is known and
    /// reaches no event.
    pub unknown: BTreeMap<String, Sighting>,
    /// Sightings beyond the number of names that are kept.
    pub more: u64,
    /// Sets of keys that hold nothing unknown.
    #[serde(skip)]
    clean: HashSet<u64>,
    /// Sets of keys that do, and what.
    #[serde(skip)]
    dirty: HashMap<u64, Vec<String>>,
}

/// How often something was seen, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// How often.
    pub count: u64,
    /// Where first.
    pub first: Position,
}

impl Drift {
    /// Whether everything was known.
    pub fn is_empty(&self) -> bool {
        self.not_known() == 0
    }

    /// That the content of a log does not say how it reads, or not clearly, and its place does.
    pub fn known_by_place(&mut self, dialect: &str) {
        let name = format!("format:{dialect}, known by its place only");
        let first = Position { offset: 0, line: 1 };
        self.count(&name, first);
    }

    pub(crate) fn count(&mut self, name: &str, at: Position) {
        if let Some(sighting) = self.unknown.get_mut(name) {
            sighting.count += 1;
        } else if self.unknown.len() < MAX_NAMES {
            let first = Sighting {
                count: 1,
                first: at,
            };
            self.unknown.insert(name.to_owned(), first);
        } else {
            self.more += 1;
        }
    }

    /// Sightings of what is not known.
    pub fn not_known(&self) -> u64 {
        self.sum(|name| !name.starts_with(LEFT_OUT)) + self.more
    }

    /// Sightings of fields that are known and reach no event.
    pub fn left_out(&self) -> u64 {
        self.sum(|name| name.starts_with(LEFT_OUT))
    }

    /// Their names, and how often each was seen.
    pub fn names_left_out(&self) -> impl Iterator<Item = (&str, u64)> {
        self.unknown.iter().filter_map(|(name, sighting)| {
            let (kind, name) = name.split_once(':')?;
            (kind == LEFT_OUT).then_some((name, sighting.count))
        })
    }

    fn sum(&self, counts: impl Fn(&str) -> bool) -> u64 {
        let named = self.unknown.iter().filter(|(name, _)| counts(name));
        named.map(|(_, sighting)| sighting.count).sum()
    }

    /// Counts fields of an object that say something and reach no event.
    pub(crate) fn leave_out(
        &mut self,
        scope: &str,
        object: Node<'_>,
        fields: &[&str],
        at: Position,
    ) {
        for field in fields {
            let says = |value: Node<'_>| !matches!(value.bytes(), b"null" | b"[]" | b"{}");
            if object.get(field).is_some_and(says) {
                self.count(&name(LEFT_OUT, scope, field), at);
            }
        }
    }

    /// Compares the keys of an object with those that are known. Most objects have the same keys as
    /// one before them, so a set of keys is looked at once.
    pub(crate) fn check(&mut self, scope: &str, object: Node<'_>, known: &[&str], at: Position) {
        let mut shape = scope_hash(scope);
        for (key, _) in object.fields() {
            shape = mix(shape, key.raw().get().as_bytes());
        }
        if self.clean.contains(&shape) {
            return;
        }
        if !self.dirty.contains_key(&shape) {
            let unknown: Vec<String> = object
                .fields()
                .filter(|(key, _)| !known.iter().any(|known| key.is(known)))
                .map(|(key, _)| name("field", scope, &key.to_text_lossy()))
                .collect();
            if unknown.is_empty() {
                if self.clean.len() < 4096 {
                    self.clean.insert(shape);
                }
                return;
            }
            if self.dirty.len() < 1024 {
                self.dirty.insert(shape, unknown);
            } else {
                self.more += 1;
                return;
            }
        }
        for name in self.dirty.get(&shape).cloned().unwrap_or_default() {
            self.count(&name, at);
        }
    }
}

/// The name of something unknown.
pub(crate) fn name(kind: &str, scope: &str, word: &str) -> String {
    let dot = if scope.is_empty() { "" } else { "." };
    match word.chars().count() {
        ..=MAX_NAME => format!("{kind}:{scope}{dot}{word}"),
        long => format!("{kind}:{scope}{dot}(a name of {long} characters)"),
    }
}

fn scope_hash(scope: &str) -> u64 {
    mix(0xcbf2_9ce4_8422_2325, scope.as_bytes())
}

/// A quick hash of a key, mixed into that of the keys before it.
fn mix(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    hash
}
