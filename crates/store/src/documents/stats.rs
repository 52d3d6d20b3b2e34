//! What was spent and done.

use std::collections::BTreeMap;

use quipu_agents::Waste as Kind;
use quipu_api::{Usd, stats as api};
use quipu_model::{Money, Usage};

use crate::stats::{Balance, By, Did, Row, Spent, Table, Waste, Wasted};

/// Dollars for people: two places, and more where that would be nothing.
pub fn dollars(sum: Money) -> String {
    let cent = Money::from_atto(10_i128.pow(16));
    if sum == Money::ZERO || sum >= cent {
        format!("${sum:.2}")
    } else {
        format!("${sum:.4}")
    }
}

/// What was spent, for people: a sum, a sum of a part, or that there is none.
pub fn cost(spent: &Spent) -> String {
    match spent.dollars() {
        None => "no price".to_owned(),
        Some(sum) if spent.is_priced() => dollars(sum),
        Some(sum) => format!("{} + ?", dollars(sum)),
    }
}

/// Tokens, in buckets.
pub fn tokens(usage: &Usage) -> api::Tokens {
    api::Tokens {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        cache_write_1h: usage.cache_write_1h,
        output: usage.output,
        reasoning: usage.reasoning,
        total: usage.total(),
    }
}

/// What was spent.
pub fn spent(spent: &Spent) -> api::Spent {
    api::Spent {
        calls: spent.calls,
        tokens: tokens(&spent.tokens),
        searches: spent.searches,
        usd: spent.dollars().map(Usd::of),
        unpriced_tokens: spent.unpriced,
        unpriced_searches: spent.unpriced_searches,
    }
}

/// What was done.
pub fn did(did: &Did) -> api::Did {
    api::Did {
        tool_calls: did.tool_calls,
        failures: did.failures,
        turns: did.session.map(|it| it.prompts),
        replies: did.session.map(|it| it.replies),
        denials: did.session.map(|it| it.denials),
        active_ms: did.session.map(|it| it.active_ms),
    }
}

/// Figures by group.
pub fn stats(table: &Table) -> api::Stats {
    let row = |row: &Row| {
        let mut group = BTreeMap::new();
        for (by, key) in table.by.iter().zip(&row.key) {
            group.insert(by.as_str().to_owned(), Some(key.clone()));
            if *by == By::Session {
                group.insert("title".to_owned(), table.titles.get(key).cloned());
                group.insert("id".to_owned(), table.addresses.get(key).cloned());
            }
        }
        api::StatsRow {
            group,
            spent: row.spent.as_ref().map(spent),
            did: row.did.as_ref().map(did),
        }
    };
    let unpriced = table.unpriced.iter().map(|it| api::UnpricedModel {
        model: it.model.clone(),
        calls: it.calls,
        tokens: it.tokens,
        searches: it.searches,
    });
    api::Stats {
        by: table.by.iter().map(|by| by.as_str().to_owned()).collect(),
        rows: table.rows.iter().map(row).collect(),
        total: row(&table.total),
        unpriced: unpriced.collect(),
        undated_tokens: table.undated,
        outdated_logs: table.outdated,
    }
}

/// A budget, and what was spent of it.
pub fn balance(balance: &Balance) -> api::Budget {
    let (what, of) = balance.of.parts();
    api::Budget {
        budget: what.to_owned(),
        of: of.to_owned(),
        limit_usd: Usd::of(balance.limit),
        spent: spent(&balance.spent),
        exceeded: balance.is_exceeded(),
    }
}

/// What need not have been paid for, of one kind.
pub fn waste(waste: &Waste) -> api::Waste {
    let figures = |wasted: &Wasted| api::Wasted {
        times: wasted.times,
        tokens: tokens(&wasted.tokens),
        usd: Usd::of(wasted.cost),
        unpriced_tokens: wasted.unpriced,
    };
    let sessions = waste.sessions.iter();
    api::Waste {
        kind: waste.kind.as_str().to_owned(),
        at_most: matches!(waste.kind, Kind::Repeat | Kind::Retry),
        all: figures(&waste.all),
        sessions: sessions
            .map(|(session, wasted)| api::WastedSession {
                session: session.run_id.clone(),
                title: session.title.clone(),
                wasted: figures(wasted),
            })
            .collect(),
    }
}
