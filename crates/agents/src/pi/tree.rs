//! Which entries are on the branch that counts.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::hash;

/// The way from the first entry to the last.
///
/// Entries come after the one they follow, so the order in which they came is also their order along any
/// branch: to go back to an entry is to leave everything on the way that came after it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Tree {
    way: Vec<Step>,
    /// Every entry that was seen.
    known: HashMap<u64, Known>,
    /// How many entries came.
    count: u32,
}

/// An entry on the way.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Step {
    id: u64,
    order: u32,
    /// The first event it became.
    seq: u64,
    /// Whether it is a part of the conversation.
    said: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Known {
    /// Its place in the order; of an entry that was left, that of the last one it shares with the way.
    order: u32,
    /// Whether it is no longer on the way.
    left: bool,
}

/// What following an entry means for those before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The events of the entries that were left.
    pub(super) events: Range<u64>,
    /// Whether the way goes on from an entry that had been left itself.
    pub(super) returned: bool,
}

impl Tree {
    /// Goes to the entry that the next one follows, `None` being the beginning. Says what is left by
    /// that, if anything that was said is. `seq` is the number of the next event.
    pub(super) fn go_to(&mut self, parent: Option<&str>, seq: u64) -> Option<Left> {
        let id = parent.map(|parent| hash(parent.as_bytes()));
        if self.way.last().map(|step| step.id) == id {
            return None;
        }
        let (order, returned) = match id {
            None => (0, false),
            // No entry that is there. OpenClaw names calls and the session, and leaves nothing by that.
            Some(id) => {
                let known = self.known.get(&id)?;
                (known.order, known.left)
            }
        };
        let mut said = false;
        let mut from = seq;
        while let Some(step) = self.way.pop_if(|step| step.order > order) {
            said |= step.said;
            from = step.seq;
            self.known.insert(step.id, Known { order, left: true });
        }
        said.then_some(Left {
            events: from..seq,
            returned,
        })
    }

    /// Adds an entry to the way. `seq` is the number of its first event.
    pub(super) fn add(&mut self, id: &str, seq: u64, said: bool) {
        let id = hash(id.as_bytes());
        self.count = self.count.saturating_add(1);
        let order = self.count;
        self.known.insert(id, Known { order, left: false });
        self.way.push(Step {
            id,
            order,
            seq,
            said,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Left, Tree};

    fn tree(ids: &[&str]) -> Tree {
        let mut tree = Tree::default();
        for (seq, id) in (1..).zip(ids) {
            tree.add(id, seq, true);
        }
        tree
    }

    #[test]
    fn following_the_last_leaves_nothing() {
        assert_eq!(tree(&["a", "b"]).go_to(Some("b"), 3), None);
        assert_eq!(tree(&[]).go_to(None, 1), None);
        assert_eq!(tree(&["a"]).go_to(Some("elsewhere"), 2), None);
    }

    #[test]
    fn going_back_leaves_what_came_after() {
        let mut tree = tree(&["a", "b", "c"]);
        let left = |events, returned| Some(Left { events, returned });
        assert_eq!(tree.go_to(Some("a"), 4), left(2..4, false));
        tree.add("d", 5, true);
        // Back to a branch that was left: only what came since is left.
        assert_eq!(tree.go_to(Some("c"), 6), left(5..6, true));
        tree.add("e", 7, true);
        assert_eq!(tree.go_to(None, 8), left(1..8, false));
    }

    #[test]
    fn what_is_no_part_of_the_conversation_is_left_in_silence() {
        let mut tree = tree(&["a"]);
        tree.add("model", 2, false);
        assert_eq!(tree.go_to(Some("a"), 3), None);
    }
}
