//! `quipu stats waste`

use std::io::Write as _;

use quipu_agents::Waste as Kind;
use quipu_api::stats as api;
use quipu_store::documents;
use quipu_store::stats::Wasted;

use super::{Asked, dollars};
use crate::args::WasteArgs;
use crate::error::{Exit, Result};
use crate::json;
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{BOLD, DIM, clean, columns, fit, out, say, tokens};

pub(super) fn run(args: &WasteArgs, place: &HomePlace) -> Result<Exit> {
    let asked = Asked::new(&args.which, place)?;
    let store = asked.store(place)?;
    let directories = asked.directories(store.as_ref())?;
    let question = asked.question(&[], directories.as_deref());
    let waste = match &store {
        Some(store) => store.waste(&question, args.worst)?,
        None => Vec::new(),
    };
    let mut out = out();
    if args.json {
        let waste = waste.iter().map(documents::waste).collect();
        writeln!(out, "{}", json::document(&api::WasteReport { waste })?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    if waste.iter().all(|it| it.all.times == 0) {
        say("nothing that is kept was wasted, as far as logs tell");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["WASTE", ">TIMES", ">TOKENS", ">COST", "WHAT IT IS"]);
    for it in waste.iter().filter(|it| it.all.times > 0) {
        let cells = cells(it.kind, &it.all);
        let mut row = vec![(it.kind.as_str().replace('_', " "), BOLD)];
        row.extend(cells.map(|cell| (cell, BOLD)));
        row.push((about(it.kind).to_owned(), DIM));
        table.styled(row);
        for (session, wasted) in &it.sessions {
            let id: String = session.run_id.chars().take(12).collect();
            let [times, tokens, cost] = self::cells(it.kind, wasted);
            let title = session.title.as_deref().unwrap_or_default();
            table.row([
                format!("  {id}"),
                times,
                tokens,
                cost,
                clean(&fit(title, 60)).into_owned(),
            ]);
        }
    }
    table.write(&mut out, columns(), Some(4))?;
    out.flush()?;
    Ok(Exit::Done)
}

fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Pause => {
            "prompts that the cache had forgotten after a pause, above the price of a cached one"
        }
        Kind::Resent => {
            "prompts that were sent before and not cached, above the price of a cached one"
        }
        Kind::Repeat => {
            "tool calls made before with the same input; at most the calls that asked for them"
        }
        Kind::Retry => "the same after a failure; at most the calls that asked for them",
    }
}

fn cells(kind: Kind, wasted: &Wasted) -> [String; 3] {
    let count = wasted.tokens.total();
    let most = matches!(kind, Kind::Repeat | Kind::Retry);
    let cost = match (count, wasted.unpriced) {
        (0, _) => String::new(),
        (all, none) if all == none => "no price".to_owned(),
        (_, none) => {
            let sum = dollars(wasted.cost);
            let sum = if most { format!("≤ {sum}") } else { sum };
            if none > 0 { format!("{sum} + ?") } else { sum }
        }
    };
    [wasted.times.to_string(), tokens(count), cost]
}
