//! Sums by group, and the order they are shown in.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};

use quipu_agents::Activity;
use quipu_model::{Money, Service};

use super::calendar::{self, Calendar};
use super::cost::{Pricer, Spent, Unpriced};
use super::{By, MOST_GROUPS, Question};

/// Figures, grouped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Grouped by what.
    pub by: Vec<By>,
    /// The groups, in order: by time where they are times, and otherwise the dearest first.
    pub rows: Vec<Row>,
    /// All of it.
    pub total: Row,
    /// What has no price, the most tokens first.
    pub unpriced: Vec<Unpriced>,
    /// The titles of sessions, where it is grouped by them.
    pub titles: BTreeMap<String, String>,
    /// The addresses of sessions, likewise.
    pub addresses: BTreeMap<String, String>,
    /// Tokens that are left out because a time was asked for and the log gives them none.
    pub undated: u64,
    /// Logs that were read by an earlier version: their calls are all put to the beginning of the session.
    pub outdated: u64,
}

/// One group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// What it is of, in the order of [`Table::by`].
    pub key: Vec<String>,
    /// What was spent. `None` where it cannot be told: tools do not have tokens.
    pub spent: Option<Spent>,
    /// What was done. `None` where it cannot be told: turns and tool calls do not have models.
    pub did: Option<Did>,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Did {
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool calls that failed.
    pub failures: u64,
    /// What cannot be told of a single tool.
    pub session: Option<Session>,
}

/// What was done in a session as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Session {
    /// Prompts of a person.
    pub prompts: u64,
    /// Messages of the agent.
    pub replies: u64,
    /// Tool calls that were not allowed.
    pub denials: u64,
    /// Time in which something went on.
    pub active_ms: u64,
}

/// What is known of a transcript that rows belong to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject {
    pub(crate) run_id: String,
    /// `None` for a log that is not kept.
    pub(crate) address: Option<String>,
    /// The session that it is, or is a sub-agent of.
    pub(crate) session: String,
    pub(crate) title: Option<String>,
    pub(crate) agent: String,
    pub(crate) project: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) is_subagent: bool,
}

/// The place of a transcript among the groups.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GroupPlace {
    ids: Key,
    /// The name of the transcript, by which its sub-agents are told apart.
    run: u32,
}

type Key = [u32; MOST_GROUPS];

/// What a row of the catalogue says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Of<'o> {
    pub(crate) slot: Option<i64>,
    pub(crate) subagent: &'o str,
    pub(crate) model: &'o str,
    pub(crate) service: Service,
    pub(crate) context: u8,
    /// What the log says that it cost.
    pub(crate) told: Option<Money>,
    pub(crate) tool: &'o str,
}

/// Adds up.
pub(super) struct Tally<'q> {
    by: &'q [By],
    calendar: Calendar,
    pricer: Pricer<'q>,
    names: Names,
    /// The names of slots that were met, by group.
    slots: [HashMap<Option<i64>, u32>; MOST_GROUPS],
    rows: HashMap<Key, Sums>,
    total: Sums,
    titles: BTreeMap<String, String>,
    addresses: BTreeMap<String, String>,
    with_spent: bool,
    with_did: bool,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    spent: Spent,
    did: Activity,
}

#[derive(Debug, Default)]
struct Names {
    ids: HashMap<String, u32>,
    all: Vec<String>,
}

impl Names {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.ids.insert(name.to_owned(), id);
        self.all.push(name.to_owned());
        id
    }

    fn name(&self, id: u32) -> &str {
        self.all.get(id as usize).map_or("", String::as_str)
    }
}

/// What stands for what is not known or not there.
const NONE: &str = "(none)";
const UNNAMED: &str = "(unnamed)";
const MAIN: &str = "(main)";

impl<'q> Tally<'q> {
    pub(super) fn new(question: &Question<'q>) -> Self {
        let mut names = Names::default();
        names.id("");
        let by_tool = question.by.contains(&By::Tool);
        Self {
            by: &question.by[..question.by.len().min(MOST_GROUPS)],
            calendar: Calendar::new(question.zone),
            pricer: Pricer::new(question.prices),
            names,
            slots: Default::default(),
            rows: HashMap::new(),
            total: Sums::default(),
            titles: BTreeMap::new(),
            addresses: BTreeMap::new(),
            with_spent: !by_tool,
            with_did: !question.by.contains(&By::Model) && question.filter.model.is_none(),
        }
    }

    /// What was done is not wanted.
    pub(super) fn without_did(&mut self) {
        self.with_did = false;
    }

    /// The place of a transcript.
    pub(super) fn place(&mut self, subject: &Subject) -> GroupPlace {
        let mut place = GroupPlace {
            ids: [0; MOST_GROUPS],
            run: self.names.id(&subject.run_id),
        };
        for (at, by) in self.by.iter().enumerate() {
            let name = match by {
                By::Agent => &subject.agent,
                By::Project => subject.project.as_deref().unwrap_or(NONE),
                By::Branch => subject.branch.as_deref().unwrap_or(NONE),
                By::Session => &subject.session,
                By::Subagent if subject.is_subagent => &subject.run_id,
                By::Subagent => MAIN,
                _ => continue,
            };
            place.ids[at] = self.names.id(name);
            if *by == By::Session && subject.run_id == subject.session {
                let of_session = [
                    (&mut self.titles, &subject.title),
                    (&mut self.addresses, &subject.address),
                ];
                for (known, value) in of_session {
                    known.extend(value.clone().map(|value| (subject.session.clone(), value)));
                }
            }
        }
        place
    }

    fn key(&mut self, place: &GroupPlace, of: &Of<'_>) -> Key {
        let mut key = place.ids;
        for (at, by) in self.by.iter().enumerate() {
            key[at] = match by {
                By::Day | By::Week | By::Month => self.time(at, *by, of.slot),
                By::Model if of.model.is_empty() => self.names.id(UNNAMED),
                By::Model => self.names.id(of.model),
                By::Tool if of.tool.is_empty() => self.names.id(UNNAMED),
                By::Tool => self.names.id(of.tool),
                By::Subagent if !of.subagent.is_empty() => {
                    let name = format!("{}/{}", self.names.name(place.run), of.subagent);
                    self.names.id(&name)
                }
                _ => continue,
            };
        }
        key
    }

    fn time(&mut self, at: usize, by: By, slot: Option<i64>) -> u32 {
        if let Some(id) = self.slots[at].get(&slot) {
            return *id;
        }
        let day = slot.and_then(|slot| self.calendar.day(slot));
        let id = self.names.id(&calendar::name(by, day));
        self.slots[at].insert(slot, id);
        id
    }

    /// Adds calls to a model, which are not priced yet.
    pub(super) fn spend(&mut self, place: &GroupPlace, of: &Of<'_>, mut spent: Spent) {
        if !self.with_spent {
            return;
        }
        let model = self.names.id(of.model);
        self.pricer.price(model, of, &mut spent);
        let key = self.key(place, of);
        self.total.spent.add(&spent);
        self.rows.entry(key).or_default().spent.add(&spent);
    }

    /// Adds what was done.
    pub(super) fn activity(&mut self, place: &GroupPlace, of: &Of<'_>, did: &Activity) {
        if !self.with_did {
            return;
        }
        let key = self.key(place, of);
        self.total.did.add(did);
        self.rows.entry(key).or_default().did.add(did);
    }

    /// The table, once everything is added.
    pub(super) fn finish(self) -> Table {
        let row = |sums: &Sums, key: Vec<String>| Row {
            key,
            spent: self.with_spent.then(|| sums.spent.clone()),
            did: self.with_did.then(|| did(&sums.did, self.with_spent)),
        };
        let mut rows: Vec<(Key, &Sums)> =
            self.rows.iter().map(|(key, sums)| (*key, sums)).collect();
        let ranks = self.ranks();
        rows.sort_by(|(a, _), (b, _)| self.order(a, b, &ranks));
        let names = |key: &Key| {
            let ids = key.iter().take(self.by.len());
            ids.map(|id| self.names.name(*id).to_owned()).collect()
        };
        Table {
            by: self.by.to_vec(),
            rows: rows
                .into_iter()
                .map(|(key, sums)| row(sums, names(&key)))
                .collect(),
            total: row(&self.total, Vec::new()),
            unpriced: self.pricer.unpriced(),
            titles: self.titles.clone(),
            addresses: self.addresses.clone(),
            undated: 0,
            outdated: 0,
        }
    }

    /// How much each group comes to, by the groups it is in: the first, the first two, and so on.
    fn ranks(&self) -> HashMap<(usize, Key), Rank> {
        let mut ranks: HashMap<(usize, Key), Rank> = HashMap::new();
        // In any order: sums are the same.
        self.rows.iter().for_each(|(key, sums)| {
            for depth in 1..=self.by.len() {
                let rank = ranks.entry((depth, prefix(key, depth))).or_default();
                rank.0 += sums.spent.cost;
                rank.1 = rank.1.saturating_add(sums.spent.tokens.total());
                rank.2 = rank.2.saturating_add(sums.did.tool_calls);
            }
        });
        ranks
    }

    fn order(&self, a: &Key, b: &Key, ranks: &HashMap<(usize, Key), Rank>) -> Ordering {
        for (at, by) in self.by.iter().enumerate() {
            if a[at] == b[at] {
                continue;
            }
            let names = || self.names.name(a[at]).cmp(self.names.name(b[at]));
            if by.is_time() {
                return names();
            }
            let rank = |key: &Key| Reverse(ranks.get(&(at + 1, prefix(key, at + 1))).copied());
            return rank(a).cmp(&rank(b)).then_with(names);
        }
        Ordering::Equal
    }
}

type Rank = (Money, u64, u64);

fn prefix(key: &Key, depth: usize) -> Key {
    let mut prefix = [0; MOST_GROUPS];
    prefix[..depth].copy_from_slice(&key[..depth]);
    prefix
}

pub(super) fn did(sum: &Activity, whole: bool) -> Did {
    Did {
        tool_calls: sum.tool_calls,
        failures: sum.failures,
        session: whole.then_some(Session {
            prompts: sum.prompts,
            replies: sum.replies,
            denials: sum.denials,
            active_ms: sum.active_ms,
        }),
    }
}
