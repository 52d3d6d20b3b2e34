//! Telling originals from copies.
//!
//! Agents copy sessions: a fork begins with all of the session it was forked from, a resumed session may
//! be continued in another file, a backup is the same log elsewhere. Counting each copy would count the
//! same calls to a model several times. Logs are compared by the identities of their records (units).
//! Related logs are put into one order, and each unit belongs to the first of them that has it; in all
//! others it is a copy. So what is counted is what there is, whatever was imported first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use quipu_agents::{Entry, Position, Sink, Summary};
use quipu_model::Timestamp;

use super::report::Report;
use super::{ImportError, Store};
use crate::catalogue::{Copied, Lineage};
use crate::hide::Hide;

/// Settles, for transcripts that are new or have changed and for those related to them, which parts of them
/// are copies.
pub(super) fn settle(
    store: &Store,
    changed: &[i64],
    report: &mut Report,
) -> Result<(), ImportError> {
    let catalogue = store.catalogue();
    let mut left: BTreeSet<i64> = catalogue.related(changed)?.into_iter().collect();
    while let Some(first) = left.pop_first() {
        let group = group_of(store, first)?;
        left.retain(|id| !group.contains(id));
        catalogue.at_once(|| settle_group(store, &group, report))?;
    }
    Ok(catalogue.at_once(|| catalogue.settle_run_ids())?)
}

/// A transcript, and all that are related to it or to its relatives.
fn group_of(store: &Store, first: i64) -> Result<BTreeSet<i64>, ImportError> {
    let mut group = BTreeSet::from([first]);
    let mut unseen = vec![first];
    while let Some(id) = unseen.pop() {
        for relative in store.catalogue().relatives(id)? {
            if group.insert(relative) {
                unseen.push(relative);
            }
        }
    }
    Ok(group)
}

/// What of a transcript is another's.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Whose each unit is that is a copy.
    pub(crate) owners: HashMap<u64, i64>,
    /// The transcript that this one, or part of it, is a copy of.
    pub(crate) copy_of: Option<i64>,
    /// Whether it only tells again, in other words, what that one tells.
    pub(crate) retold: bool,
}

/// Tells what of a transcript is another's, as it was settled when it was imported.
pub(crate) fn shared(store: &Store, id: i64) -> Result<Shared, ImportError> {
    let mut members = Vec::new();
    for id in group_of(store, id)? {
        members.push(store.catalogue().lineage(id)?);
    }
    let mut found = Shared::default();
    share(members, |own, shared| {
        if own.id == id {
            found = shared;
        }
        Ok::<(), ImportError>(())
    })?;
    Ok(found)
}

/// Puts related transcripts into their order and tells of each what of it is another's.
pub(crate) fn share<E>(
    members: Vec<Lineage>,
    mut tell: impl FnMut(&Lineage, Shared) -> Result<(), E>,
) -> Result<(), E> {
    let members = in_order(members);
    let mut owners: HashMap<u64, i64> = HashMap::new();
    for (at, own) in members.iter().enumerate() {
        // What tells nothing of its records, or was made of a session, is a lesser account of a session that is
        // told better: all of it is.
        let better = members[..at].iter().find(|other| own.retells(other));
        let better = better.map(|other| other.id);
        let owner = |unit: &u64| better.or_else(|| owners.get(unit).copied());
        let copied = own.units.iter();
        let copied = copied.filter_map(|unit| Some((*unit, owner(unit)?)));
        let copied: HashMap<u64, i64> = copied.collect();
        // What a session tells of its sub-agents is theirs. That does not make it a copy of them.
        let is_own_agent = |id: &i64| {
            let of = members[..at].iter().find(|other| other.id == *id);
            of.is_some_and(|other| other.parent.as_ref() == Some(&own.native))
        };
        let mut originals = own.units.iter().filter_map(owner);
        let shared = Shared {
            copy_of: originals.find(|id| !is_own_agent(id)).or(better),
            owners: copied,
            retold: better.is_some(),
        };
        tell(own, shared)?;
        for unit in &own.units {
            owners.entry(*unit).or_insert(own.id);
        }
    }
    Ok(())
}

fn settle_group(
    store: &Store,
    group: &BTreeSet<i64>,
    report: &mut Report,
) -> Result<(), ImportError> {
    let mut members = Vec::new();
    for id in group {
        members.push(store.catalogue().lineage(*id)?);
    }
    share(members, |own, shared| {
        let copied = shared.owners.into_keys().collect();
        settle_one(store, own, &copied, shared.copy_of, report)
    })
}

/// The one order of related transcripts. Sessions come before those that say they were forked from them, sub-agents
/// before the session that began them, which may tell of them in part, then by age; of the same session, the log comes before what else tells of it, and the longest first.
fn in_order(members: Vec<Lineage>) -> Vec<Lineage> {
    let mut sessions: BTreeMap<String, Vec<Lineage>> = BTreeMap::new();
    for member in members {
        sessions
            .entry(member.native.clone())
            .or_default()
            .push(member);
    }
    let forked: HashMap<&str, &str> = sessions
        .iter()
        .filter_map(|(native, members)| {
            let from = members.iter().find_map(|m| m.forked_from.as_deref())?;
            (sessions.contains_key(from) && from != native).then_some((native.as_str(), from))
        })
        .collect();
    // A chain of forks that bites its own tail ends where it began.
    let depth = |native: &str| {
        std::iter::successors(forked.get(native), |from| forked.get(*from))
            .take(sessions.len())
            .count()
    };
    let age = |members: &[Lineage]| members.iter().filter_map(|m| m.first_modified).min();
    // A sub-agent of a sub-agent is further from the first session, and comes before both.
    let parents: HashMap<&str, &str> = sessions
        .iter()
        .filter_map(|(native, members)| {
            let of = members.iter().find_map(|m| m.parent.as_deref())?;
            (sessions.contains_key(of) && of != native).then_some((native.as_str(), of))
        })
        .collect();
    let below = |native: &str| {
        std::iter::successors(parents.get(native), |of| parents.get(*of))
            .take(sessions.len())
            .count()
    };
    let mut order: Vec<(usize, Reverse<usize>, Option<i64>, String)> = sessions
        .iter()
        .map(|(native, members)| {
            let place = (depth(native), Reverse(below(native)));
            (place.0, place.1, age(members), native.clone())
        })
        .collect();
    order.sort();
    let mut ordered = Vec::new();
    for (_, _, _, native) in order {
        let mut members = sessions.remove(&native).unwrap_or_default();
        members.sort_by(|a, b| a.rank().cmp(&b.rank()));
        ordered.extend(members);
    }
    ordered
}

fn settle_one(
    store: &Store,
    own: &Lineage,
    copied: &HashSet<u64>,
    copy_of: Option<i64>,
    report: &mut Report,
) -> Result<(), ImportError> {
    let catalogue = store.catalogue();
    if copy_of.is_none() && copied.is_empty() {
        // What was a copy before may be none now: then all of it counts.
        let all = if own.marked {
            Some(split(store, own.id, copied)?.1)
        } else {
            None
        };
        return Ok(catalogue.put_copied(own.id, &Copied::default(), all.as_ref())?);
    }
    report.copies += u64::from(copy_of.is_some());
    let retold = own.units.is_empty();
    let (events, rest) = if retold {
        (0, Summary::default())
    } else {
        let (copies, rest) = split(store, own.id, copied)?;
        (copies.events + copies.notes, rest)
    };
    let copied = Copied {
        copy_of,
        events,
        duplicate: retold || copied.len() == own.units.len(),
    };
    Ok(catalogue.put_copied(own.id, &copied, Some(&rest))?)
}

/// Reads a transcript again, and sums up what is copied apart from what is not.
fn split(
    store: &Store,
    id: i64,
    originals: &HashSet<u64>,
) -> Result<(Summary, Summary), ImportError> {
    let mut sums = Sums {
        originals,
        hide: Hide::new(store.guard()?),
        copied: Summary::default(),
        own: Summary::default(),
    };
    let row = store.catalogue().row(id)?;
    crate::transcript::feed(store, &row, &mut sums)?;
    Ok((sums.copied, sums.own))
}

struct Sums<'o> {
    originals: &'o HashSet<u64>,
    hide: Hide,
    copied: Summary,
    own: Summary,
}

impl Sink for Sums<'_> {
    fn entry(&mut self, _seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        let is_copy = entry
            .unit
            .is_some_and(|unit| self.originals.contains(&unit));
        let entry = self.hide.entry(entry);
        let sum = if is_copy {
            &mut self.copied
        } else {
            &mut self.own
        };
        self.hide.observe(sum, &entry);
    }
}
