//! Receipts of what had been taken out before, by an earlier redaction.

use std::ops::Range;

use quipu_formats::normalized::Redaction;
use rustc_hash::FxHashMap;

/// What had been taken out of an event before, by field.
#[derive(Debug, Default)]
pub(super) struct Old {
    lists: Vec<(String, Vec<Redaction>)>,
    places: FxHashMap<String, usize>,
}

impl Old {
    pub(super) fn new(all: Vec<Redaction>) -> Self {
        let mut old = Self::default();
        for receipt in all {
            let known = old.places.get(&receipt.field).copied();
            let place = known.unwrap_or(old.lists.len());
            if known.is_none() {
                old.places.insert(receipt.field.clone(), place);
                old.lists.push((receipt.field.clone(), Vec::new()));
            }
            old.lists[place].1.push(receipt);
        }
        old
    }

    /// What had been taken out of a field, in order.
    pub(super) fn take(&mut self, field: &str) -> Vec<Redaction> {
        let place = self.places.remove(field);
        let mut list =
            place.map_or_else(Vec::new, |place| std::mem::take(&mut self.lists[place].1));
        list.sort_by_key(|old| old.start);
        list
    }

    /// Forgets what had been taken out of what is inside of a field.
    pub(super) fn forget_inside(&mut self, of: &str) {
        for (field, list) in &mut self.lists {
            if is_inside(field, of) {
                list.clear();
            }
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What is left.
    pub(super) fn rest(&mut self) -> Vec<Redaction> {
        std::mem::take(self)
            .lists
            .into_iter()
            .flat_map(|(_, list)| list)
            .collect()
    }
}

/// Moves receipts of what had been taken out before to where it is now.
pub(super) fn moved(
    old: &mut std::iter::Peekable<std::vec::IntoIter<Redaction>>,
    to: &mut Vec<(Redaction, Option<Range<usize>>)>,
    seen: Range<u64>,
    written: u64,
) {
    while let Some(mut receipt) = old.next_if(|old| old.start.is_none_or(|start| start < seen.end))
    {
        let shifted = |place: Option<u64>| {
            place.map(|place| place.saturating_add(written).saturating_sub(seen.start))
        };
        (receipt.start, receipt.end) = (shifted(receipt.start), shifted(receipt.end));
        to.push((receipt, None));
    }
}

/// Whether a field is inside of another.
fn is_inside(field: &str, of: &str) -> bool {
    field
        .strip_prefix(of)
        .is_some_and(|rest| rest.starts_with(['.', '[', '{']))
}
