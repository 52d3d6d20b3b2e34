//! `quipu stats`

mod blocks;
mod budget;
mod csv;
mod explain;
mod rates;
mod show;
mod waste;

use std::io::Write as _;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use quipu_agents::Host;
use quipu_model::{Money, Timestamp};
use quipu_prices::Prices;
use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::catalogue::{Filter, Received};
pub(crate) use quipu_store::documents::{cost, dollars};
use quipu_store::documents::{spent, stats};
use quipu_store::facade::Project;
use quipu_store::stats::{By, Question, Table, Ungroupable, from_logs};

use crate::args::{Stats, StatsCommand, Which};
use crate::commands::import::report_problems;
use crate::config::Config;
use crate::error::{CommandError, Exit, Result};
use crate::filter::{self, Naming, check_agents};
use crate::locate::HomePlace;
use crate::terminal::{count, out, say, tokens};
use crate::{json as documents, when};

pub(crate) fn run(args: &Stats, place: &HomePlace) -> Result<Exit> {
    match &args.command {
        Some(StatsCommand::Explain(args)) => return explain::run(args, place),
        Some(StatsCommand::Waste(args)) => return waste::run(args, place),
        Some(StatsCommand::Blocks(args)) => return blocks::run(args, place),
        Some(StatsCommand::Budget(args)) => return budget::run(args, place),
        None => {}
    }
    let asked = Asked::new(&args.which, place)?;
    let by: Vec<By> = match args.by.as_slice() {
        [] => vec![By::Day],
        by => by.iter().map(|group| By::from(*group)).collect(),
    };
    let (table, balances) = if let Some(paths) = &args.from_logs {
        let host = HomePlace::host_of(&place.home()?)?;
        let table = logs(&host, &asked, &by, paths, args.tokens_only)?;
        (table, Vec::new())
    } else {
        let store = asked.store(place)?;
        let directories = asked.directories(store.as_ref())?;
        let question = asked.question(&by, directories.as_deref());
        question.check().map_err(ungroupable)?;
        let Some(store) = &store else {
            return nothing(args, place);
        };
        let table = store.stats(&question)?;
        (table, budget::balances(store, &asked, None)?)
    };
    let mut out = out();
    if args.json {
        let document = stats(&table);
        writeln!(out, "{}", documents::document(&document)?)?;
    } else if args.csv {
        csv::write(&mut out, &table)?;
    } else if !table.rows.is_empty() {
        show::write(&mut out, &table, args)?;
    }
    out.flush()?;
    drop(out);
    if !(args.json || args.csv) {
        remarks(&table, args, place);
    }
    let exceeded = budget::warn(&balances);
    Ok(if args.check && exceeded {
        Exit::Found
    } else {
        Exit::Done
    })
}

/// There is no store.
fn nothing(args: &Stats, place: &HomePlace) -> Result<Exit> {
    let mut out = out();
    if args.json {
        let document = stats(&Table::default());
        writeln!(out, "{}", documents::document(&document)?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let flag = place.flag();
    say(&format!(
        "nothing is kept yet; `quipu {flag}up --once` imports what is on this machine, `quipu stats --from-logs` only reads it"
    ));
    Ok(Exit::Done)
}

/// The figures of logs.
fn logs(
    host: &Host,
    asked: &Asked,
    by: &[By],
    paths: &[PathBuf],
    only_spent: bool,
) -> Result<Table> {
    for path in paths {
        if let Err(error) = path.metadata() {
            let error = anyhow::anyhow!("{}: {error}", path.display());
            return Err(CommandError::new(Exit::Data, error));
        }
    }
    let question = asked.question(by, None);
    question.check().map_err(ungroupable)?;
    let is_meant = |directory: Option<&str>| match &asked.project {
        Some(project) => directory.is_some_and(|it| project.has(it)),
        None => true,
    };
    let (table, read) = from_logs(host, paths, &question, &is_meant, only_spent)?;
    report_problems(&read.problems);
    if read.logs == 0 && !paths.is_empty() {
        let error = anyhow::anyhow!("no log that is known is there");
        return Err(CommandError::new(Exit::Data, error));
    }
    Ok(table)
}

fn ungroupable(error: Ungroupable) -> CommandError {
    CommandError::new(Exit::Usage, error)
}

/// What is said beside the figures.
fn remarks(table: &Table, args: &Stats, place: &HomePlace) {
    if table.rows.is_empty() {
        let restricted = args.which.is_restricted();
        say(if restricted {
            "nothing that is kept is like that"
        } else {
            "nothing that is kept tells of calls to a model or a tool"
        });
    }
    for it in &table.unpriced {
        let model = match it.model.as_str() {
            "" => "a model that is not named",
            model => model,
        };
        let (tokens, calls) = (tokens(it.tokens), count(it.calls, "call"));
        let searches = match it.searches {
            0 => String::new(),
            n => format!(" and {}", searches(n)),
        };
        say(&format!(
            "no price: {tokens} tokens{searches} of {model} ({calls})"
        ));
    }
    let named = table.unpriced.iter().find(|it| !it.model.is_empty());
    if let Some(it) = named {
        let name = it.model.replace(['\\', '"'], "");
        say(&format!(
            "a price of your own goes to config.toml: [[prices.model]] name = \"{name}\" with input and output, in dollars per million tokens, or free = true (docs/prices.md)"
        ));
    }
    if table.undated > 0 {
        let tokens = tokens(table.undated);
        say(&format!(
            "left out: {tokens} tokens whose logs give no time"
        ));
    }
    if table.outdated > 0 {
        let (logs, flag) = (count(table.outdated, "log"), place.flag());
        say(&format!(
            "{logs} read by an earlier version may count differently now; `quipu {flag}import` reads them again"
        ));
    }
}

/// What is asked for, and in which terms.
pub(super) struct Asked {
    filter: Filter,
    project: Option<Project>,
    zone: TimeZone,
    prices: Prices,
    config: Config,
    now: Timestamp,
}

impl Asked {
    fn new(which: &Which, place: &HomePlace) -> Result<Self> {
        let now = SystemClock.now();
        let config = Config::load(&place.home()?)?;
        let zone = config.zone(which.zone.as_deref())?;
        let since = |text: &str| when::point_in(text, now, zone.clone());
        let until = |text: &str| when::end_in(text, now, zone.clone());
        Ok(Self {
            filter: Filter {
                agents: which.agents.clone(),
                branch: which.branch.clone(),
                model: which.model.clone(),
                title: which.title.clone(),
                since: when::millis(which.since.as_deref(), since)?,
                until: when::millis(which.until.as_deref(), until)?,
                subagents: true,
                received: if which.received {
                    Received::With
                } else {
                    Received::Without
                },
                ..Filter::default()
            },
            project: which.project.as_deref().map(filter::project).transpose()?,
            prices: config.prices(),
            zone,
            config,
            now,
        })
    }

    /// The store, if there is one. Agents that nobody knows are refused.
    fn store(&self, place: &HomePlace) -> Result<Option<Store>> {
        let store = place.store()?;
        let known = super::list::agents_of(store.as_ref())?;
        check_agents(
            &self.filter.agents,
            &HomePlace::host()?,
            &known,
            Naming::Beginning,
        )?;
        Ok(store)
    }

    /// The directories of the project that is asked for.
    fn directories(&self, store: Option<&Store>) -> Result<Option<Vec<String>>> {
        let (Some(project), Some(store)) = (&self.project, store) else {
            return Ok(None);
        };
        let mut directories = store.directories()?;
        directories.retain(|directory| project.has(directory));
        Ok(Some(directories))
    }

    fn question<'q>(&'q self, by: &'q [By], directories: Option<&'q [String]>) -> Question<'q> {
        Question {
            filter: &self.filter,
            directories,
            by,
            zone: &self.zone,
            prices: &self.prices,
        }
    }
}

impl Which {
    /// Whether anything is left out.
    fn is_restricted(&self) -> bool {
        let texts = [
            &self.project,
            &self.branch,
            &self.model,
            &self.title,
            &self.since,
            &self.until,
        ];
        !self.agents.is_empty() || texts.iter().any(|text| text.is_some())
    }
}

/// A sum that a log tells, for people: binary fractions leave digits behind that mean nothing.
pub(crate) fn told(sum: Money) -> String {
    let text = format!("{sum:.10}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.strip_prefix('-') {
        Some(less) => format!("-${less}"),
        None => format!("${text}"),
    }
}

/// So many searches of the web, for people.
pub(super) fn searches(n: u64) -> String {
    if n == 1 {
        "1 web search".to_owned()
    } else {
        format!("{n} web searches")
    }
}
