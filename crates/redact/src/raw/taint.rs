//! Calls that show secret files, remembered until what came of them is seen.

use std::collections::VecDeque;
use std::hash::Hasher as _;

use rustc_hash::{FxHashMap, FxHasher};

use crate::sensitive::Exposes;

/// How many calls are remembered. What came of a call is rarely more than a few records away.
const MOST: usize = 100_000;

/// Ids of calls, by their hashes, and what they show. Two ids with one hash make for too much that is removed, never
/// for too little.
#[derive(Debug, Default)]
pub(super) struct Tainted {
    known: FxHashMap<u64, Exposes>,
    order: VecDeque<u64>,
}

impl Tainted {
    /// Remembers a call; the oldest is forgotten when there are too many.
    pub(super) fn add(&mut self, id: u64, exposes: Exposes) {
        match self.known.insert(id, exposes) {
            // What shows a file is not made to show less.
            Some(Exposes::File) => {
                self.known.insert(id, Exposes::File);
            }
            Some(Exposes::Environment) => {}
            None => self.order.push_back(id),
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What a call shows.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<Exposes> {
        if self.known.is_empty() {
            return None;
        }
        self.known.get(&id).copied()
    }
}

/// The hash of an id as it stands in a record.
pub(super) fn hash(id: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(id);
    hasher.write_u8(0xff);
    hasher.finish()
}

/// What stands for an object that has no id, within its record.
pub(super) fn place(depth: u8, offset: usize) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u8(depth);
    hasher.write_usize(offset);
    hasher.write_u64(0x6f62_6a65_6374);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_call_is_forgotten() {
        let mut tainted = Tainted::default();
        let most = u64::try_from(MOST).unwrap();
        for id in 0..=most {
            tainted.add(id, Exposes::File);
        }
        assert_eq!(tainted.get(0), None);
        assert_eq!(tainted.get(1), Some(Exposes::File));
        tainted.add(1, Exposes::Environment);
        assert_eq!(tainted.get(1), Some(Exposes::File));
        assert_eq!(tainted.order.len(), MOST);
    }
}
