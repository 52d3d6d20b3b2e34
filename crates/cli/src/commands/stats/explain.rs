//! `quipu stats explain`

use std::io::{self, Write};

use quipu_api::explain as api;
use quipu_store::Store;
use quipu_store::catalogue::{Filter, Order, TranscriptRow};
use quipu_store::documents;
use quipu_store::facade::Listing;
use quipu_store::stats::{Call, Explained, LeftOut, Reason, Spent, Why};

use super::rates::Rates;
use super::{Asked, searches, spent, told};
use crate::args::Explain;
use crate::error::{Exit, Result};
use crate::json;
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{BOLD, DIM, clean, columns, count, fit, out, say, tokens};

pub(super) fn run(args: &Explain, place: &HomePlace) -> Result<Exit> {
    let asked = Asked::new(&args.which, place)?;
    let (store, rows) = if let Some(id) = &args.id {
        let (store, row) = place.session(id)?;
        let rows = with_subagents(&store, row)?;
        (Some(store), rows)
    } else {
        let store = asked.store(place)?;
        let rows = match &store {
            Some(store) => meant(store, &asked)?,
            None => Vec::new(),
        };
        (store, rows)
    };
    let mut out = out();
    let mut sum = Spent::default();
    let mut explained_any = false;
    for row in rows {
        let Some(store) = &store else {
            break;
        };
        let explained = store.explain(row, &asked.filter, &asked.prices)?;
        if explained.calls.is_empty() && explained.left_out.is_empty() {
            continue;
        }
        explained_any = true;
        sum.add(&explained.spent);
        if args.jsonl {
            writeln!(out, "{}", json::line(&documents::explained(&explained))?)?;
        } else {
            write_one(&mut out, &explained, args, &asked)?;
        }
    }
    if args.jsonl {
        writeln!(
            out,
            "{}",
            json::line(&api::ExplainedSum { sum: spent(&sum) })?
        )?;
    } else if explained_any {
        writeln!(out, "{BOLD}sum{BOLD:#}  {}  {}", exact(&sum), counted(&sum))?;
    }
    out.flush()?;
    if !explained_any && !args.jsonl {
        say("nothing that is kept is like that");
    }
    Ok(Exit::Done)
}

/// A session with its sub-agents, and theirs.
fn with_subagents(store: &Store, row: TranscriptRow) -> Result<Vec<TranscriptRow>> {
    let mut rows = vec![row];
    let mut at = 0;
    while at < rows.len() {
        for child in store.children(&rows[at].native)? {
            if rows.iter().all(|row| row.id != child.id) {
                rows.push(child);
            }
        }
        at += 1;
    }
    Ok(rows)
}

/// The transcripts that a filter means; copies as well, since it is to be said that they are not counted.
fn meant(store: &Store, asked: &Asked) -> Result<Vec<TranscriptRow>> {
    let filter = Filter {
        subagents: true,
        duplicates: true,
        ..asked.filter.clone()
    };
    let mut rows = store.list(&Listing::of(filter, Order::Oldest))?;
    if let Some(project) = &asked.project {
        rows.retain(|row| row.cwd.as_deref().is_some_and(|cwd| project.has(cwd)));
    }
    Ok(rows)
}

fn exact(spent: &Spent) -> String {
    let Some(sum) = spent.dollars() else {
        return "no price".to_owned();
    };
    let lacking = match (spent.unpriced, spent.unpriced_searches) {
        (0, 0) => return format!("${sum}"),
        (0, n) => searches(n),
        (n, 0) => format!("{} tokens", tokens(n)),
        (n, times) => format!("{} tokens and {}", tokens(n), searches(times)),
    };
    format!("${sum} and {lacking} without a price")
}

fn counted(spent: &Spent) -> String {
    format!(
        "{}, {} tokens",
        count(spent.calls, "call"),
        spent.tokens.total()
    )
}

fn write_one(
    out: &mut impl Write,
    explained: &Explained,
    args: &Explain,
    asked: &Asked,
) -> io::Result<()> {
    let row = &explained.row;
    let title = row.title.as_deref().unwrap_or_default();
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {}  {}",
        clean(&row.run_id),
        clean(&row.agent),
        fit(title, 60)
    )?;
    let rates = Rates::of(&explained.calls);
    if !args.brief && !explained.calls.is_empty() {
        let heads = [
            "WHEN",
            ">LINE",
            "MODEL",
            ">INPUT",
            ">CACHED",
            ">WRITTEN",
            ">1H",
            ">OUTPUT",
            ">SEARCHES",
            ">COST",
            "PRICE",
        ];
        let mut table = Table::new(&heads);
        for call in &explained.calls {
            table.row(cells(call, asked, &rates));
        }
        table.write(out, columns().max(140), None)?;
    }
    if !explained.calls.is_empty() {
        writeln!(out, "  {DIM}prices, in dollars per million tokens{DIM:#}")?;
        for line in rates.lines() {
            writeln!(out, "  {}", clean(&line))?;
        }
    }
    for left in &explained.left_out {
        writeln!(
            out,
            "  {DIM}not counted: {}{DIM:#}",
            clean(&not_counted(left))
        )?;
    }
    writeln!(
        out,
        "  {}  {}",
        exact(&explained.spent),
        counted(&explained.spent)
    )?;
    for line in vendor(explained) {
        writeln!(out, "  {}", clean(&line))?;
    }
    writeln!(out)
}

fn cells(call: &Call, asked: &Asked, rates: &Rates<'_>) -> [String; 11] {
    let at = call.at.map(|at| {
        let at = at.to_zoned(asked.zone.clone());
        at.strftime("%Y-%m-%d %H:%M:%S").to_string()
    });
    let bucket = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let usage = &call.tokens;
    [
        at.unwrap_or_default(),
        call.line.to_string(),
        call.model.clone(),
        bucket(usage.input),
        bucket(usage.cache_read),
        bucket(usage.cache_write),
        bucket(usage.cache_write_1h.filter(|n| *n > 0)),
        bucket(usage.output),
        bucket(Some(call.searches).filter(|n| *n > 0)),
        call.cost()
            .map_or_else(|| "no price".to_owned(), |sum| format!("${sum}")),
        rates.name(call),
    ]
}

fn not_counted(left: &LeftOut) -> String {
    let n = left.tokens.total();
    let (times, tokens) = (left.times, tokens(n));
    match &left.why {
        Why::Repeated => format!("{times} times the same call said it again ({tokens} tokens)"),
        Why::Copied(of) => format!(
            "{} copied from {of} ({tokens} tokens)",
            count(times, "call")
        ),
        Why::Retold(of) => format!(
            "{} that {of} tells as well ({tokens} tokens)",
            count(times, "call")
        ),
        Why::NotAsked => format!(
            "{} of another time or model ({tokens} tokens)",
            count(times, "call")
        ),
        Why::Total => format!("{} that say nothing new", count(times, "running total")),
        Why::NoUsage => format!(
            "{} of the agent, without any tokens in the log",
            count(times, "message")
        ),
    }
}

/// How the log's own sums compare with ours, and why they differ.
fn vendor(explained: &Explained) -> Vec<String> {
    let because = |why: &[Reason]| {
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        why.join("; ")
    };
    let mut lines = Vec::new();
    if let Some(compared) = explained.compared_tokens() {
        let (ours, theirs) = (compared.ours.total(), compared.theirs.total());
        lines.push(if ours == theirs {
            format!("the vendor's own sum is the same: {theirs} tokens")
        } else {
            let more = i128::from(ours) - i128::from(theirs);
            let why = because(&compared.why);
            format!(
                "the vendor's own sum is {theirs} tokens; the log's calls differ by {more:+}: {why}"
            )
        });
    }
    if let Some(compared) = explained.compared_cost() {
        let sum = told(compared.theirs);
        lines.push(if compared.why.is_empty() {
            format!("the vendor's own cost is the same: {sum}")
        } else {
            let more = told(compared.ours - compared.theirs);
            let why = because(&compared.why);
            format!("the vendor's own cost is {sum}; what is counted differs by {more}: {why}")
        });
    } else if let Some(cost) = &explained.row.vendor_cost {
        lines.push(format!("the vendor's own cost is written as {cost:?}"));
    }
    lines
}
