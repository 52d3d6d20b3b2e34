//! Figures for people.

use std::io::{self, Write};

use quipu_model::Money;
use quipu_store::stats::{By, Row, Table as Figures};

use super::cost;
use crate::args::Stats;
use crate::table::{Give, Table};
use crate::terminal::{BOLD, CYAN, DIM, Drawing, columns, fit_path, say, tokens};

/// How many rows are shown unless more are asked for.
const DAYS: usize = 14;
const OTHERS: usize = 20;

/// How long a bar is at most.
const BAR: usize = 24;

/// How wide names become.
const NAME: usize = 40;

pub(super) fn write(out: &mut impl Write, figures: &Figures, args: &Stats) -> io::Result<()> {
    let by_time = figures.by.first().is_some_and(|by| by.is_time());
    let limit = match args.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None if by_time => DAYS,
        None => OTHERS,
    };
    let all = figures.rows.len();
    let skip = if by_time {
        all.saturating_sub(limit)
    } else {
        0
    };
    let rows: Vec<&Row> = figures.rows.iter().skip(skip).take(limit).collect();
    let bars = args.bars || (by_time && figures.by.len() == 1);
    let by_tool = figures.by.contains(&By::Tool);
    let most = rows.iter().map(|row| size(row)).max().unwrap_or_default();
    let names = figures.by.len();
    let mut heads: Vec<&'static str> = figures.by.iter().map(|by| head(*by)).collect();
    heads.extend(if by_tool {
        &[">CALLS", ">FAILED"][..]
    } else {
        &[
            ">CALLS", ">INPUT", ">CACHED", ">WRITTEN", ">OUTPUT", ">COST", ">TURNS", ">TOOLS",
            ">FAILED", ">ACTIVE",
        ]
    });
    let figures_from = names;
    if figures.total.did.is_none() && !by_tool {
        heads.truncate(figures_from + 6);
    }
    let bar_at = heads.len();
    heads.push("");
    let mut table = Table::new(&heads);
    for (row, shown) in rows.iter().zip(with_blanks(&rows)) {
        let mut cells: Vec<(String, anstyle::Style)> = Vec::new();
        for ((by, key), shown) in figures.by.iter().zip(&row.key).zip(shown) {
            let text = if shown {
                name(*by, key, figures)
            } else {
                String::new()
            };
            cells.push((text, anstyle::Style::new()));
        }
        cells.extend(
            cells_of(row, by_tool)
                .into_iter()
                .map(|cell| (cell, anstyle::Style::new())),
        );
        cells.truncate(bar_at);
        let bar = if bars {
            bar(size(row), most)
        } else {
            String::new()
        };
        cells.push((bar, CYAN));
        table.styled(cells);
    }
    if all > 1 {
        let mut cells = vec!["total".to_owned()];
        cells.extend(std::iter::repeat_n(String::new(), names.saturating_sub(1)));
        cells.extend(cells_of(&figures.total, by_tool));
        cells.truncate(bar_at);
        cells.push(String::new());
        table.styled(cells.into_iter().map(|cell| (cell, BOLD)));
    }
    let at = |n: usize| figures_from + n;
    let giving: Vec<Give> = if by_tool {
        Vec::new()
    } else {
        [
            at(9),
            at(8),
            at(0),
            at(7),
            at(6),
            at(3),
            bar_at,
            at(1),
            at(2),
            at(4),
        ]
        .into_iter()
        .filter(|column| *column <= bar_at)
        .map(Give::Drop)
        .collect()
    };
    table.write_giving(out, columns(), Some(0), &giving)?;
    if all > rows.len() {
        let (shown, which) = (rows.len(), if by_time { "last" } else { "first" });
        writeln!(
            out,
            "{DIM}the {which} {shown} of {all} rows; the total is of all; --limit 0 shows all{DIM:#}"
        )?;
    }
    if by_tool {
        say("tokens and dollars are not shown: logs do not tell which tool they were for");
    }
    Ok(())
}

fn head(by: By) -> &'static str {
    match by {
        By::Day => "DAY",
        By::Week => "WEEK",
        By::Month => "MONTH",
        By::Agent => "AGENT",
        By::Model => "MODEL",
        By::Project => "PROJECT",
        By::Branch => "BRANCH",
        By::Tool => "TOOL",
        By::Session => "SESSION",
        By::Subagent => "SUB-AGENT",
    }
}

/// A name as it fits. A session is known by the beginning of its id.
fn name(by: By, key: &str, figures: &Figures) -> String {
    match by {
        By::Project => fit_path(key, NAME),
        By::Session => {
            let id: String = key.chars().take(12).collect();
            match figures.titles.get(key) {
                Some(title) => format!("{id}  {}", crate::terminal::fit(title, NAME - 14)),
                None => id,
            }
        }
        _ => crate::terminal::fit(key, NAME),
    }
}

/// Which names of each row are shown: one that is the same as above is not.
fn with_blanks(rows: &[&Row]) -> Vec<Vec<bool>> {
    let mut before: Option<&Row> = None;
    let mut shown = Vec::new();
    for row in rows {
        let mut same = true;
        let names = row.key.iter().enumerate().map(|(n, key)| {
            same = same && before.is_some_and(|above| above.key.get(n) == Some(key));
            !same
        });
        shown.push(names.collect());
        before = Some(row);
    }
    shown
}

fn cells_of(row: &Row, by_tool: bool) -> Vec<String> {
    let did = row.did;
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let failed = did.map(|did| did.failures).filter(|n| *n > 0);
    if by_tool {
        return vec![number(did.map(|did| did.tool_calls)), number(failed)];
    }
    let spent = row.spent.as_ref();
    let usage = spent.map(|spent| spent.tokens).unwrap_or_default();
    let bucket = |n: Option<u64>| n.map_or_else(String::new, tokens);
    let session = did.and_then(|did| did.session);
    vec![
        number(spent.map(|spent| spent.calls)),
        bucket(usage.input),
        bucket(usage.cache_read),
        bucket(usage.cache_write),
        bucket(usage.output),
        spent
            .filter(|spent| spent.calls > 0 || spent.tokens.total() > 0)
            .map_or_else(String::new, cost),
        number(session.map(|it| it.prompts)),
        number(did.map(|did| did.tool_calls)),
        number(failed),
        session.map_or_else(String::new, |it| active(it.active_ms)),
    ]
}

/// A time for people, to the minute.
fn active(millis: u64) -> String {
    let minutes = millis / 60_000;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h{minutes:02}"),
    }
}

/// What the bar of a row shows: dollars, else tokens, else tool calls.
fn size(row: &Row) -> u128 {
    let spent = row.spent.as_ref();
    let cost = spent.map_or(Money::ZERO, |spent| spent.cost);
    if cost > Money::ZERO {
        // Above what any number of tokens comes to, so that the two are never compared as equals.
        return cost.atto().unsigned_abs();
    }
    let tokens = spent.map_or(0, |spent| spent.tokens.total());
    let calls = row.did.map_or(0, |did| did.tool_calls);
    u128::from(if spent.is_some() { tokens } else { calls })
}

fn bar(size: u128, most: u128) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most == 0 || size == 0 {
        return String::new();
    }
    let unicode = Drawing::for_locale().more == "…";
    let eighths = usize::try_from(size.saturating_mul(BAR as u128 * 8) / most).unwrap_or(BAR * 8);
    if unicode {
        let bar = format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8]);
        // What is not nothing is seen.
        return if bar.is_empty() {
            "▏".to_owned()
        } else {
            bar
        };
    }
    "#".repeat((eighths / 8).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(10, 10).chars().count(), BAR);
        assert_eq!(bar(5, 10), "█".repeat(BAR / 2));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!((bar(0, 10), bar(0, 0)), (String::new(), String::new()));
        assert!(!bar(u128::MAX, u128::MAX).is_empty());
    }

    #[test]
    fn times_are_short() {
        let shown = [0, 59_999, 60_000, 3_600_000, 90_060_000].map(active);
        assert_eq!(shown, ["0m", "0m", "1m", "1h00", "25h01"]);
    }
}
