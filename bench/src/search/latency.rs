//! Looking something up, in process and warm, beside FTS5.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::tz::TimeZone;
use quipu_model::Timestamp;
use quipu_prices::Prices;
use quipu_search::index::{self, Index as _, TantivyIndex, View, Wish};
use quipu_search::query::{Clock, Query};
use quipu_store::Store;
use quipu_store::search::{Ask, Known, Show, Sort, index_path};

use super::fts5::Fts5;
use super::indexing::Built;
use super::queries::{self, Class, Order, Wanted};
use super::texts::Texts;
use crate::table::{Goal, Table, median, now};

/// How many events are asked for.
const LIMIT: usize = 20;

/// How often each query is timed; the median is what it took.
const TIMES: usize = 3;

/// So long is waited for the queries of one kind, the whole way and by FTS5. Those that are not come to are not
/// counted. What the goals are for is waited for as long as it takes.
const WHOLE: Duration = Duration::from_secs(3);
const FTS5: Duration = Duration::from_secs(10);

/// Milliseconds.
#[derive(Clone, Copy)]
struct Figures {
    p50: f64,
    p99: f64,
    queries: usize,
}

/// Queries of one kind in one order.
struct Measured {
    class: &'static str,
    order: Order,
    /// The lookup in the index.
    lookup: Figures,
    /// From the query to events with snippets, as the command does it.
    whole: Figures,
    fts5: Figures,
    /// How many queries found nothing.
    in_vain: usize,
}

/// All there is to ask.
struct Engines<'e> {
    store: &'e Store,
    view: &'e dyn View,
    known: &'e Known<'e>,
    prices: &'e Prices,
    fts5: &'e Fts5,
}

pub(super) fn measure(table: &mut Table, built: &Built) -> Result<()> {
    now("choosing queries");
    let texts = Texts::open(&built.texts)?;
    let classes = queries::classes(&texts)?;
    let fts5 = Fts5::open(&built.fts5, &texts)?;
    let store = Store::open_existing(&built.store)?.context("the store is there")?;
    let index = TantivyIndex::open(&index_path(&built.store))?.context("the index is there")?;
    let (view, prices) = (index.view()?, Prices::builtin());
    let engines = Engines {
        store: &store,
        view: &*view,
        known: &Known::new(store.catalogue(), &prices),
        prices: &prices,
        fts5: &fts5,
    };
    let mut measured = Vec::new();
    for order in [Order::Relevance, Order::Newest] {
        for class in &classes {
            now(&format!("looking up: {}", class.name));
            measured.push(engines.class(class, order)?);
        }
    }
    goals(table, &measured, view.events());
    table.note(report(&measured));
    Ok(())
}

impl Engines<'_> {
    fn class(&self, class: &Class, order: Order) -> Result<Measured> {
        let clock = Clock {
            now: Timestamp::UNIX_EPOCH,
            zone: TimeZone::UTC,
        };
        let parse = |wanted: &Wanted| {
            let text = wanted.query();
            Query::parse(&text, &clock).with_context(|| format!("the query {text}"))
        };
        let parsed: Vec<Query> = class.queries.iter().map(parse).collect::<Result<_>>()?;
        let wish = Wish {
            order: match order {
                Order::Relevance => index::Order::Relevance,
                Order::Newest => index::Order::Newest,
            },
            limit: LIMIT,
            ..Wish::default()
        };
        let mut in_vain = 0;
        let lookup = timed(&parsed, TIMES, None, |query, first| {
            let found = self.view.search(query, &wish, self.known)?;
            in_vain += usize::from(first && found.is_empty());
            Ok(())
        })?;
        let whole = timed(&parsed, 1, Some(WHOLE), |query, _| {
            let ask = Ask {
                query,
                sort: match order {
                    Order::Relevance => Sort::Relevance,
                    Order::Newest => Sort::Newest,
                },
                limit: LIMIT,
                context: 0,
                copies: false,
                snippet: 200,
                guard: Show::default(),
            };
            std::hint::black_box(self.store.search(&ask, self.prices)?);
            Ok(())
        })?;
        let fts5 = timed(&class.queries, 1, Some(FTS5), |wanted, _| {
            std::hint::black_box(self.fts5.search(wanted, order, LIMIT)?);
            Ok(())
        })?;
        Ok(Measured {
            class: class.name,
            order,
            lookup,
            whole,
            fts5,
            in_vain,
        })
    }
}

/// Times each query, after it was asked once to have everything at hand. `ask` is told when it is the first time.
fn timed<Q>(
    queries: &[Q],
    times: usize,
    patience: Option<Duration>,
    mut ask: impl FnMut(&Q, bool) -> Result<()>,
) -> Result<Figures> {
    let began = Instant::now();
    let mut took = Vec::new();
    for query in queries {
        if patience.is_some_and(|patience| began.elapsed() > patience) {
            break;
        }
        ask(query, true)?;
        let mut each = Vec::new();
        for _ in 0..times {
            let began = Instant::now();
            ask(query, false)?;
            each.push(began.elapsed().as_secs_f64() * 1e3);
        }
        took.push(median(each));
    }
    Ok(Figures::of(took))
}

impl Figures {
    fn of(mut took: Vec<f64>) -> Self {
        took.sort_by(f64::total_cmp);
        // The smallest figure that so many of a hundred are not above.
        let rank = |percent: usize| took[(took.len() * percent).div_ceil(100).max(1) - 1];
        Self {
            p50: rank(50),
            p99: rank(99),
            queries: took.len(),
        }
    }
}

fn goals(table: &mut Table, measured: &[Measured], events: u64) {
    for (order, by) in [
        (Order::Relevance, "relevance"),
        (Order::Newest, "newest first"),
    ] {
        for (name, limit) in [("p50", 5.0), ("p99", 25.0)] {
            let figure = |it: &Figures| if name == "p50" { it.p50 } else { it.p99 };
            let of_order = measured.iter().filter(|it| it.order == order);
            let slowest = of_order.max_by(|a, b| figure(&a.lookup).total_cmp(&figure(&b.lookup)));
            let Some(slowest) = slowest else { continue };
            let took = figure(&slowest.lookup);
            table.row(
                &format!("lookup, {by}, {name} of the slowest ({})", slowest.class),
                &format!("{took:.2} ms"),
                &format!("{limit:.0} ms, {:.2} M events", events as f64 / 1e6),
                took / limit,
                Goal::AtMost(1.0),
            );
        }
    }
}

fn report(measured: &[Measured]) -> String {
    let mut lines = vec![
        format!(
            "Milliseconds, p50/p99 of {} queries each, the first {LIMIT} events, in process and warm. The whole way is with\nsnippets from the archive. In brackets: how many queries were asked in {} s, of FTS5 in {} s.",
            queries::EACH,
            WHOLE.as_secs(),
            FTS5.as_secs()
        ),
        format!(
            "{:<22} {:<10} {:>18} {:>24} {:>24}  {}",
            "query", "order", "lookup", "the whole way", "FTS5", "found nothing"
        ),
    ];
    for it in measured {
        let show = |Figures { p50, p99, queries }: &Figures| match *queries {
            queries::EACH => format!("{p50:.2} / {p99:.2}"),
            asked => format!("[{asked}] {p50:.2} / {p99:.2}"),
        };
        let order = match it.order {
            Order::Relevance => "relevance",
            Order::Newest => "newest",
        };
        let line = format!(
            "{:<22} {order:<10} {:>18} {:>24} {:>24}  {}",
            it.class,
            show(&it.lookup),
            show(&it.whole),
            show(&it.fts5),
            it.in_vain
        );
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_the_ninety_ninth() {
        let figures = Figures::of((1..=100).rev().map(f64::from).collect());
        assert_eq!((figures.p50, figures.p99), (50.0, 99.0));
        let figures = Figures::of((1..=200).map(f64::from).collect());
        assert_eq!((figures.p50, figures.p99), (100.0, 198.0));
        let one = Figures::of(vec![3.0]);
        assert_eq!((one.p50, one.p99, one.queries), (3.0, 3.0, 1));
    }
}
