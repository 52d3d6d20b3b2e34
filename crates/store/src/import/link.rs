//! Telling originals from copies.
//!
//! Agents copy sessions: a fork begins with all of the session it was forked from, a resumed session may
//! be continued in another file, a backup is the same log elsewhere. Counting each copy would count the
//! same calls to a model several times. Logs are compared by the identities of their records (units); what
//! another log has as well is a copy.

use std::collections::{HashMap, HashSet};

use quipu_agents::{Entry, Feed, Position, Sink, Summary};
use quipu_model::Timestamp;

use super::report::Report;
use super::{ImportError, Store};
use crate::catalogue::Copied;

/// Settles, for transcripts that are new or have changed and for those related to them, which parts of them
/// are copies.
pub(super) fn settle(
    store: &Store,
    changed: &[i64],
    report: &mut Report,
) -> Result<(), ImportError> {
    let catalogue = store.catalogue();
    let mut groups: HashMap<i64, Vec<i64>> = HashMap::new();
    for id in catalogue.related(changed)? {
        groups.insert(id, catalogue.relatives(id)?);
    }
    let mut ids: Vec<i64> = groups.keys().copied().collect();
    ids.sort_unstable();
    catalogue.at_once(|| {
        for id in ids {
            let relatives = groups.remove(&id).unwrap_or_default();
            settle_one(store, id, &relatives, report)?;
        }
        Ok(catalogue.settle_run_ids()?)
    })
}

fn settle_one(
    store: &Store,
    id: i64,
    relatives: &[i64],
    report: &mut Report,
) -> Result<(), ImportError> {
    let catalogue = store.catalogue();
    let own = catalogue.lineage(id)?;
    let mut originals: HashSet<u64> = HashSet::new();
    let mut copy_of = None;
    for relative in relatives {
        let other = catalogue.lineage(*relative)?;
        if !other.is_before(&own) {
            continue;
        }
        let own_units: HashSet<u64> = own.units.iter().copied().collect();
        let shared = other.units.iter().filter(|unit| own_units.contains(unit));
        let before = originals.len();
        originals.extend(shared);
        if originals.len() > before && copy_of.is_none() {
            copy_of = Some(*relative);
        }
    }
    // A lesser account of a session is of no use where a better one is there.
    let mut whole = None;
    for relative in relatives {
        let other = catalogue.lineage(*relative)?;
        if other.is_before(&own) && own.retells(&other) {
            whole = Some(*relative);
        }
    }
    if whole.is_some() {
        let copied = Copied {
            copy_of: whole,
            events: 0,
            duplicate: true,
        };
        return Ok(catalogue.put_copied(id, &copied, Some(&Summary::default()))?);
    }
    if originals.is_empty() {
        catalogue.put_copied(id, &Copied::default(), None)?;
        return Ok(());
    }
    let (copied, rest) = split(store, id, &originals)?;
    let duplicate = own.units.iter().all(|unit| originals.contains(unit));
    report.copies += 1;
    catalogue.put_copied(
        id,
        &Copied {
            copy_of,
            events: copied.events + copied.notes,
            duplicate,
        },
        Some(&rest),
    )?;
    Ok(())
}

/// Reads a transcript again, and sums up what is copied apart from what is not.
fn split(
    store: &Store,
    id: i64,
    originals: &HashSet<u64>,
) -> Result<(Summary, Summary), ImportError> {
    let mut sums = Sums {
        originals,
        copied: Summary::default(),
        own: Summary::default(),
    };
    let row = store.catalogue().row(id)?;
    match crate::transcript::feed(store, &row, &mut sums) {
        Ok(Feed { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok((sums.copied, sums.own))
}

struct Sums<'o> {
    originals: &'o HashSet<u64>,
    copied: Summary,
    own: Summary,
}

impl Sink for Sums<'_> {
    fn entry(&mut self, _seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        let is_copy = entry
            .unit
            .is_some_and(|unit| self.originals.contains(&unit));
        if is_copy {
            self.copied.observe(entry);
        } else {
            self.own.observe(entry);
        }
    }
}
