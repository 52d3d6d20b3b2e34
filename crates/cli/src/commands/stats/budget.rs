//! `quipu stats budget`

use std::io::Write as _;

use quipu_api::stats;
use quipu_model::Money;
use quipu_store::Store;
use quipu_store::documents;
use quipu_store::stats::{Balance, Budgets};

use super::{Asked, dollars};
use crate::args::{BudgetArgs, Which};
use crate::config;
use crate::error::{CommandError, Exit, Result};
use crate::json;
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{RED, columns, out, say};

pub(super) fn run(args: &BudgetArgs, place: &HomePlace) -> Result<Exit> {
    let which = Which {
        zone: args.zone.clone(),
        ..Which::default()
    };
    let asked = Asked::new(&which, place)?;
    let budgets = Budgets {
        day: limit("--day", args.day.as_deref(), asked.config.budgets.day)?,
        week: limit("--week", args.week.as_deref(), asked.config.budgets.week)?,
        month: limit("--month", args.month.as_deref(), asked.config.budgets.month)?,
        session: limit(
            "--session",
            args.session.as_deref(),
            asked.config.budgets.session,
        )?,
        projects: asked.config.budgets.projects.clone(),
    };
    if budgets.is_empty() {
        let path = config::path(&place.home()?);
        return Err(CommandError::usage("no budget is set").hint(format!(
            "put `[budget]` and `day = 20` into {}, or say --day 20",
            path.display()
        )));
    }
    let balances = match asked.store(place)? {
        Some(store) => balances(&store, &asked, Some(&budgets))?,
        None => Vec::new(),
    };
    let mut out = out();
    if args.json {
        let budgets = balances.iter().map(documents::balance).collect();
        writeln!(out, "{}", json::document(&stats::Budgets { budgets })?)?;
    } else if !balances.is_empty() {
        let mut table = Table::new(&["BUDGET", "OF", ">SPENT", ">LIMIT", ""]);
        for balance in &balances {
            let (what, of) = balance.of.parts();
            let style = anstyle::Style::new();
            let mark = if balance.is_exceeded() {
                "exceeded"
            } else {
                ""
            };
            table.styled([
                (what.to_owned(), style),
                (of.to_owned(), style),
                (super::cost(&balance.spent), style),
                (dollars(balance.limit), style),
                (mark.to_owned(), RED),
            ]);
        }
        table.write(&mut out, columns(), Some(1))?;
    }
    out.flush()?;
    Ok(if balances.iter().any(Balance::is_exceeded) {
        Exit::Found
    } else {
        Exit::Done
    })
}

fn limit(flag: &str, asked: Option<&str>, set: Option<Money>) -> Result<Option<Money>> {
    match asked {
        None => Ok(set),
        Some(text) => config::dollars(text)
            .map(Some)
            .ok_or_else(|| CommandError::usage(format!("{flag}: {text:?} is no sum of dollars"))),
    }
}

/// What was spent of the budgets: those given, or those of the configuration.
pub(super) fn balances(
    store: &Store,
    asked: &Asked,
    budgets: Option<&Budgets>,
) -> Result<Vec<Balance>> {
    let budgets = budgets.unwrap_or(&asked.config.budgets);
    Ok(store.balances(budgets, asked.now, &asked.zone, &asked.prices)?)
}

/// Says which are exceeded.
pub(super) fn warn(balances: &[Balance]) -> bool {
    let mut any = false;
    for balance in balances.iter().filter(|balance| balance.is_exceeded()) {
        let (what, of) = balance.of.parts();
        let (spent, limit) = (super::cost(&balance.spent), dollars(balance.limit));
        say(&format!(
            "warning: over budget: {spent} of {limit} for the {what} {of}"
        ));
        any = true;
    }
    any
}
