//! Whether everything is found that was put into the logs, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use jiff::tz::TimeZone;
use quipu_model::Timestamp;
use quipu_prices::Prices;
use quipu_search::query::{Clock, Query};
use quipu_store::Store;
use quipu_store::search::{Ask, Show, Sort};

use crate::corpus::Corpus;
use crate::table::{Goal, Table, now};

/// More than are put into any corpus.
const LIMIT: usize = 20_000;

pub(super) fn measure(table: &mut Table, corpus: &Corpus, store: &Path) -> Result<()> {
    let Some(truth) = &corpus.truth else {
        table.note(
            "skipped: nothing is known of what these logs say, so that it cannot be looked for",
        );
        return Ok(());
    };
    let store = Store::open_existing(store)?.context("the store is there")?;
    let prices = Prices::builtin();
    let clock = Clock {
        now: Timestamp::UNIX_EPOCH,
        zone: TimeZone::UTC,
    };
    for (phrase, sessions) in &truth.planted {
        now("looking for what was planted");
        let query = Query::parse(&format!("\"{phrase}\""), &clock)?;
        let there: u64 = sessions.values().sum();
        let counted = store.count_matches(&query, &prices)?;
        let answer = store.search(
            &Ask {
                query: &query,
                sort: Sort::Newest,
                limit: LIMIT,
                context: 0,
                copies: true,
                snippet: 200,
                guard: Show::default(),
            },
            &prices,
        )?;
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for it in &answer.found {
            *found.entry(&it.row.native).or_default() += 1;
        }
        let wrong = differences(sessions, &found) + counted.abs_diff(there);
        table.row(
            &format!("events with \"{phrase}\": wrong or missing"),
            &format!("{counted} found"),
            &format!("{there} in {} sessions", sessions.len()),
            wrong as f64,
            Goal::AtMost(0.0),
        );
    }
    Ok(())
}

/// By how much the events of each session are too many or too few, in all.
fn differences(there: &BTreeMap<String, u64>, found: &BTreeMap<&str, u64>) -> u64 {
    let missing = there
        .iter()
        .map(|(session, count)| count.abs_diff(found.get(session.as_str()).copied().unwrap_or(0)));
    let others = found
        .iter()
        .filter(|(session, _)| !there.contains_key(**session));
    missing.sum::<u64>() + others.map(|(_, count)| count).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_counts() {
        let there = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(
            differences(&there, &BTreeMap::from([("a", 2), ("b", 1)])),
            0
        );
        // The sum is right, the places are not.
        assert_eq!(
            differences(&there, &BTreeMap::from([("a", 1), ("b", 2)])),
            2
        );
        assert_eq!(
            differences(&there, &BTreeMap::from([("a", 2), ("c", 4)])),
            5
        );
    }
}
