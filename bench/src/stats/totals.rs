//! Sums of tokens, ours and those of others.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::corpus::{Tokens, Usage};
use crate::table::{Goal, Table};

/// A sum of calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sum {
    tokens: Tokens,
    /// As the program tells them.
    dollars: String,
}

/// The sum of `quipu stats --json`.
pub(super) fn ours(document: &str) -> Result<Sum> {
    let document: Value = serde_json::from_str(document)?;
    let total = &document["total"];
    Ok(Sum {
        tokens: spent(total)?.1,
        dollars: total["spent"]["usd"].as_str().unwrap_or("-").to_owned(),
    })
}

/// Calls and tokens of one agent, of `quipu stats --by agent --json`.
pub(super) fn of_agent(document: &str, agent: &str) -> Result<(u64, Tokens)> {
    let document: Value = serde_json::from_str(document)?;
    let rows = document["rows"].as_array().context("there are no rows")?;
    let row = rows.iter().find(|row| row["agent"] == agent);
    spent(row.with_context(|| format!("there is no row of {agent}"))?)
}

fn spent(row: &Value) -> Result<(u64, Tokens)> {
    let tokens = &row["spent"]["tokens"];
    // What a log never tells of is null.
    let bucket = |name: &str| tokens[name].as_u64().unwrap_or(0);
    Ok((
        row["spent"]["calls"]
            .as_u64()
            .context("calls are not told")?,
        Tokens {
            input: bucket("input"),
            cache_read: bucket("cache_read"),
            cache_write: bucket("cache_write"),
            output: bucket("output"),
        },
    ))
}

/// The sum of `ccusage claude daily --json`.
pub(super) fn ccusage(document: &str) -> Result<Sum> {
    let document: Value = serde_json::from_str(document)?;
    let bucket = |name: &str| {
        let tokens = document["totals"][name].as_u64();
        tokens.with_context(|| format!("ccusage does not tell {name}"))
    };
    Ok(Sum {
        tokens: Tokens {
            input: bucket("inputTokens")?,
            cache_read: bucket("cacheReadTokens")?,
            cache_write: bucket("cacheCreationTokens")?,
            output: bucket("outputTokens")?,
        },
        dollars: document["totals"]["totalCost"].to_string(),
    })
}

/// By how many tokens two sums differ, bucket by bucket.
pub(super) fn difference(a: Tokens, b: Tokens) -> u64 {
    let pairs = a.buckets().into_iter().zip(b.buckets());
    pairs.map(|(a, b)| a.1.abs_diff(b.1)).sum()
}

/// Shows both sums, and says what the difference comes from where that is known.
pub(super) fn compare(table: &mut Table, ours: &Sum, theirs: &Sum, usage: Option<&Usage>) {
    if let Some(usage) = usage {
        let all: u64 = ours.tokens.buckets().iter().map(|it| it.1).sum();
        table.row(
            "tokens of claude-code from logs that are wrong",
            &format!("of {:.0} M", all as f64 / 1e6),
            &format!("ccusage: {} wrong", difference(theirs.tokens, usage.right)),
            difference(ours.tokens, usage.right) as f64,
            Goal::AtMost(0.0),
        );
    }
    let line = |cells: [&str; 5]| {
        let [name, ours, theirs, by, written] = cells;
        let line = format!("{name:<12} {ours:>20} {theirs:>20} {by:>16} {written:>16}");
        line.trim_end().to_owned()
    };
    let written = usage.map_or("", |_| "written");
    let mut lines = vec![line(["tokens", "quipu", "ccusage", "difference", written])];
    for (n, (name, own)) in ours.tokens.buckets().into_iter().enumerate() {
        let other = theirs.tokens.buckets()[n].1;
        let by = i128::from(own) - i128::from(other);
        let written = usage.map(|usage| usage.right.buckets()[n].1.to_string());
        lines.push(line([
            name,
            &own.to_string(),
            &other.to_string(),
            &by.to_string(),
            &written.unwrap_or_default(),
        ]));
    }
    lines.push(line(["dollars", &ours.dollars, &theirs.dollars, "", ""]));
    lines.push(match (ours.tokens == theirs.tokens, usage) {
        (true, _) => "Both are the same.".to_owned(),
        (false, Some(usage)) => reason(theirs.tokens, usage).to_owned(),
        (false, None) => "`quipu stats explain` lists what is behind our figures.".to_owned(),
    });
    table.note(lines.join("\n"));
}

/// Which way of counting gives these tokens.
fn reason(tokens: Tokens, usage: &Usage) -> &'static str {
    if tokens == usage.right {
        "ccusage is right."
    } else if tokens == usage.first_told {
        "ccusage counts each call as its first line tells it, while the output was still coming in; we count what was told last."
    } else if tokens == usage.unnamed_apart {
        "ccusage counts each line of calls that do not name their request, once more where a session was resumed under\nanother id; we count each call once, by the id of its message."
    } else if tokens == usage.every_line {
        "ccusage counts each line of a call; we count each call once."
    } else {
        "What ccusage counts is none of the known ways: not each call as told last or first, not every line, not every\nline of calls that do not name their request."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_found_in_the_documents() {
        let ours_document = r#"{"rows":[{"agent":"claude","spent":{"calls":3,"tokens":
            {"input":1,"cache_read":2,"cache_write":null,"output":4}}}],
            "total":{"spent":{"usd":"0.5","calls":3,"tokens":{"input":1,"cache_read":2,"cache_write":null,"output":4}}}}"#;
        let tokens = Tokens {
            input: 1,
            cache_read: 2,
            cache_write: 0,
            output: 4,
        };
        let sum = Sum {
            tokens,
            dollars: "0.5".to_owned(),
        };
        assert_eq!(ours(ours_document).unwrap(), sum);
        assert_eq!(of_agent(ours_document, "claude").unwrap(), (3, tokens));
        assert!(of_agent(ours_document, "codex").is_err());
        let theirs = r#"{"totals":{"inputTokens":1,"cacheReadTokens":9,"cacheCreationTokens":0,"outputTokens":1}}"#;
        assert_eq!(difference(tokens, ccusage(theirs).unwrap().tokens), 10);
        assert!(ccusage("{}").is_err());
    }

    #[test]
    fn a_way_of_counting_is_known_by_its_sum() {
        let tokens = |output| Tokens {
            output,
            ..Tokens::default()
        };
        let usage = Usage {
            calls: 1,
            right: tokens(9),
            first_told: tokens(1),
            every_line: tokens(10),
            unnamed_apart: tokens(13),
        };
        assert!(reason(tokens(1), &usage).contains("first line"));
        assert!(reason(tokens(10), &usage).contains("each line of a call;"));
        assert!(reason(tokens(13), &usage).contains("do not name"));
        assert!(reason(tokens(5), &usage).contains("none of the known"));
    }
}
