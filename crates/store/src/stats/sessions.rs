//! What single sessions came to, with their sub-agents: many at once, and each as a row of a list wants it.

use std::collections::{HashMap, HashSet};

use quipu_agents::Activity;
use quipu_prices::Prices;

use super::table::{Of, did};
use super::{Did, Pricer, Spent};
use crate::catalogue::{ActivityRow, Catalogue, Result, Slots, SpendRow, TranscriptRow};

/// What a transcript and its sub-agents came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// What was spent.
    pub spent: Spent,
    /// What was done.
    pub did: Did,
    /// How many sub-agents there are below it: transcripts of their own, and those that are told of within a log.
    pub subagents: u64,
}

/// So many transcripts are asked for at a time.
const AT_ONCE: usize = 10_000;

/// Sums of one of the transcripts that are asked for.
#[derive(Default)]
struct Sums {
    spent: Spent,
    did: Activity,
    /// Sub-agents with a transcript of their own.
    transcripts: u64,
    /// Sub-agents within a log, by the log and their name.
    within: HashSet<(i64, String)>,
}

impl dyn Catalogue + '_ {
    /// What each of these transcripts came to with its sub-agents, by its number. Copies count nowhere.
    pub fn figures(
        &self,
        rows: &[TranscriptRow],
        prices: &Prices,
    ) -> Result<HashMap<i64, Figures>> {
        let mut sums: Vec<Sums> = rows.iter().map(|_| Sums::default()).collect();
        // Who a transcript counts for: itself, and those above it that are asked for.
        let mut counts_for: HashMap<i64, Vec<usize>> = HashMap::new();
        let mut by_native: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            counts_for.entry(row.id).or_default().push(at);
            if !row.duplicate {
                by_native.entry(&row.native).or_default().push(at);
            }
        }
        let natives: Vec<&str> = by_native.keys().copied().collect();
        for some in natives.chunks(AT_ONCE) {
            for (root, id) in self.below(some)? {
                for at in by_native.get(root.as_str()).into_iter().flatten() {
                    let whose = counts_for.entry(id).or_default();
                    if !whose.contains(at) {
                        whose.push(*at);
                        sums[*at].transcripts += 1;
                    }
                }
            }
        }
        let (mut pricer, mut models) = (Pricer::new(prices), HashMap::<String, u32>::new());
        let ids: Vec<i64> = counts_for.keys().copied().collect();
        for some in ids.chunks(AT_ONCE) {
            let slots = Slots::Among(some.to_vec());
            self.each_spend(&slots, None, &mut |row| {
                let next = u32::try_from(models.len()).unwrap_or(u32::MAX);
                let model = match models.get(row.model) {
                    Some(model) => *model,
                    None => *models.entry(row.model.to_owned()).or_insert(next),
                };
                let spent = priced(&mut pricer, model, row);
                for at in counts_for.get(&row.transcript).into_iter().flatten() {
                    sums[*at].spent.add(&spent);
                    sums[*at].meets(row.transcript, row.subagent);
                }
            })?;
            self.each_activity(&slots, &mut |row: &ActivityRow<'_>| {
                for at in counts_for.get(&row.transcript).into_iter().flatten() {
                    sums[*at].did.add(&row.did);
                    sums[*at].meets(row.transcript, row.subagent);
                }
            })?;
        }
        let figures = rows.iter().zip(sums).map(|(row, sums)| {
            let figures = Figures {
                spent: sums.spent,
                did: did(&sums.did, true),
                subagents: sums.transcripts + sums.within.len() as u64,
            };
            (row.id, figures)
        });
        Ok(figures.collect())
    }
}

impl Sums {
    fn meets(&mut self, log: i64, subagent: &str) {
        if !subagent.is_empty() {
            self.within.insert((log, subagent.to_owned()));
        }
    }
}

/// What calls to a model took, with its price.
pub(super) fn priced(pricer: &mut Pricer<'_>, model: u32, row: &SpendRow<'_>) -> Spent {
    let of = Of {
        slot: row.slot,
        model: row.model,
        subagent: row.subagent,
        service: row.service,
        context: row.context,
        told: row.told,
        tool: "",
    };
    let mut spent = Spent {
        calls: row.calls,
        tokens: row.tokens,
        searches: row.searches,
        ..Spent::default()
    };
    pricer.price(model, &of, &mut spent);
    spent
}
