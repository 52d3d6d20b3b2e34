//! `quipu stats blocks`

use std::io::Write as _;

use quipu_api::Time;
use quipu_api::blocks::{Blocks, UsageBlock};
use quipu_model::{Money, Timestamp};

use super::{Asked, dollars};
use crate::args::{BlocksArgs, Which};
use crate::error::{Exit, Result};
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{BOLD, clean, columns, count, duration, fit, out, say, tokens};
use crate::{json as documents, when};

pub(super) fn run(args: &BlocksArgs, place: &HomePlace) -> Result<Exit> {
    let which = Which {
        agents: args.agents.clone(),
        since: args.since.clone(),
        ..Which::default()
    };
    let asked = Asked::new(&which, place)?;
    let mut all = match asked.store(place)? {
        Some(store) => store.blocks(&asked.filter, &asked.prices, asked.now)?,
        None => Blocks {
            now: Time::of(asked.now),
            agents: Vec::new(),
            blocks: Vec::new(),
            undated_tokens: 0,
            outdated_logs: 0,
        },
    };
    if args.active {
        all.blocks.retain(|block| block.active);
    }
    let mut out = out();
    if args.json {
        writeln!(out, "{}", documents::document(&all)?)?;
    } else if args.jsonl {
        for block in &all.blocks {
            writeln!(out, "{}", documents::line(block)?)?;
        }
    } else if !all.blocks.is_empty() {
        let mut table = Table::new(&["AGENT", "BLOCK", ">CALLS", ">TOKENS", ">COST", "MODELS"]);
        for block in &all.blocks {
            rows(&mut table, block);
        }
        table.write(&mut out, columns(), Some(5))?;
    }
    out.flush()?;
    drop(out);
    if !(args.json || args.jsonl) {
        remarks(&all, args);
    }
    Ok(Exit::Done)
}

fn rows(table: &mut Table, block: &UsageBlock) {
    let (spent, models) = (&block.spent, block.models.join(", "));
    let cells = [
        clean(&block.agent).into_owned(),
        format!("{} to {}", local(&block.start), hour(&block.end)),
        spent.calls.to_string(),
        tokens(spent.tokens.total),
        cost(
            spent.usd.as_ref().map(|usd| usd.0.as_str()),
            spent.unpriced_tokens,
        ),
        clean(&fit(&models, 60)).into_owned(),
    ];
    let Some(left) = block.left_ms else {
        table.row(cells);
        return;
    };
    table.styled(cells.map(|cell| (cell, BOLD)));
    let left = format!("  {} left", duration(left));
    let projected = match &block.projection {
        None => [String::new(), String::new()],
        Some(it) => {
            let usd = it.usd.as_ref().map(|usd| usd.0.as_str());
            let usd = usd.map(|usd| format!("~ {}", cost(Some(usd), 0)));
            [format!("~ {}", tokens(it.tokens)), usd.unwrap_or_default()]
        }
    };
    let what = match &block.projection {
        None => "too early for a projection".to_owned(),
        Some(it) => format!("projection, at {} a minute", tokens(it.tokens_per_minute)),
    };
    let [projected_tokens, projected_usd] = projected;
    table.row([
        String::new(),
        left,
        String::new(),
        projected_tokens,
        projected_usd,
        what,
    ]);
}

fn cost(usd: Option<&str>, unpriced: u64) -> String {
    match (usd.and_then(Money::parse), unpriced) {
        (None, _) => "no price".to_owned(),
        (Some(sum), 0) => dollars(sum),
        (Some(sum), _) => format!("{} + ?", dollars(sum)),
    }
}

fn local(time: &Time) -> String {
    let at = time.0.parse::<Timestamp>();
    at.map_or_else(|_| time.0.clone(), when::local)
}

/// The time of the day.
fn hour(time: &Time) -> String {
    let whole = local(time);
    whole
        .split_once(' ')
        .map_or(whole.clone(), |(_, hour)| hour.to_owned())
}

fn remarks(all: &Blocks, args: &BlocksArgs) {
    if all.blocks.is_empty() {
        say(match (args.active, args.agents.is_empty()) {
            (true, _) => "No block is active.",
            (false, true) => {
                "No usage of claude-code or codex is kept; --agent names another agent."
            }
            (false, false) => "No usage matches these filters.",
        });
    }
    if all.undated_tokens > 0 {
        let tokens = tokens(all.undated_tokens);
        say(&format!("{tokens} tokens have no time and are in no block"));
    }
    if all.outdated_logs > 0 {
        let logs = count(all.outdated_logs, "log");
        say(&format!(
            "{logs} were read by an earlier version; `quipu import --rebuild` reads them again"
        ));
    }
}
