//! Sums of tokens, ours and those of others.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::corpus::{Tokens, Usage};
use crate::table::{Goal, Table};

/// The sum of `quipu stats --json`.
pub(super) fn ours(document: &str) -> Result<Tokens> {
    let document: Value = serde_json::from_str(document)?;
    Ok(spent(&document["total"])?.1)
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
pub(super) fn ccusage(document: &str) -> Result<Tokens> {
    let document: Value = serde_json::from_str(document)?;
    let bucket = |name: &str| {
        let tokens = document["totals"][name].as_u64();
        tokens.with_context(|| format!("ccusage does not tell {name}"))
    };
    Ok(Tokens {
        input: bucket("inputTokens")?,
        cache_read: bucket("cacheReadTokens")?,
        cache_write: bucket("cacheCreationTokens")?,
        output: bucket("outputTokens")?,
    })
}

/// By how many tokens two sums differ, bucket by bucket.
pub(super) fn difference(a: Tokens, b: Tokens) -> u64 {
    let pairs = a.buckets().into_iter().zip(b.buckets());
    pairs.map(|(a, b)| a.1.abs_diff(b.1)).sum()
}

/// Shows both sums, and says what the difference comes from where that is known.
pub(super) fn compare(table: &mut Table, ours: Tokens, theirs: Tokens, usage: Option<&Usage>) {
    let differ = difference(ours, theirs);
    if let Some(usage) = usage {
        let wrong = difference(ours, usage.right);
        table.row(
            "tokens of claude from logs that are wrong",
            &format!("{}", ours.buckets().map(|it| it.1).iter().sum::<u64>()),
            &format!("ccusage: {} wrong", difference(theirs, usage.right)),
            wrong as f64,
            Goal::AtMost(0.0),
        );
    }
    let mut lines = vec![format!(
        "{:<14} {:>16} {:>16} {:>16}{}",
        "tokens",
        "quipu",
        "ccusage",
        "difference",
        if usage.is_some() {
            format!(" {:>16}", "written")
        } else {
            String::new()
        }
    )];
    for (n, (name, own)) in ours.buckets().into_iter().enumerate() {
        let other = theirs.buckets()[n].1;
        let by = i128::from(own) - i128::from(other);
        let written = usage.map(|usage| format!(" {:>16}", usage.right.buckets()[n].1));
        lines.push(format!(
            "{name:<14} {own:>16} {other:>16} {by:>16}{}",
            written.unwrap_or_default()
        ));
    }
    lines.push(match (differ, usage) {
        (0, _) => "Both are the same.".to_owned(),
        (_, Some(usage)) => reason(theirs, usage).to_owned(),
        (_, None) => "`quipu stats explain` lists what is behind our figures.".to_owned(),
    });
    table.note(lines.join("\n"));
}

/// Which way of counting gives these tokens.
fn reason(tokens: Tokens, usage: &Usage) -> &'static str {
    if tokens == usage.right {
        "ccusage is right."
    } else if tokens == usage.first_told {
        "ccusage counts each call as its first line tells it, while the output was still coming in; we count what was told last."
    } else if tokens == usage.every_line {
        "ccusage counts each line of a call; we count each call once."
    } else {
        "What ccusage counts is none of the known ways: not the right one, not the first line of each call, not every line."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_found_in_the_documents() {
        let ours_document = r#"{"rows":[{"agent":"claude","spent":{"calls":3,"tokens":
            {"input":1,"cache_read":2,"cache_write":null,"output":4}}}],
            "total":{"spent":{"calls":3,"tokens":{"input":1,"cache_read":2,"cache_write":null,"output":4}}}}"#;
        let tokens = Tokens {
            input: 1,
            cache_read: 2,
            cache_write: 0,
            output: 4,
        };
        assert_eq!(ours(ours_document).unwrap(), tokens);
        assert_eq!(of_agent(ours_document, "claude").unwrap(), (3, tokens));
        assert!(of_agent(ours_document, "codex").is_err());
        let theirs = r#"{"totals":{"inputTokens":1,"cacheReadTokens":9,"cacheCreationTokens":0,"outputTokens":1}}"#;
        assert_eq!(difference(tokens, ccusage(theirs).unwrap()), 10);
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
        };
        assert!(reason(tokens(1), &usage).contains("first line"));
        assert!(reason(tokens(10), &usage).contains("each line"));
        assert!(reason(tokens(5), &usage).contains("none of the known"));
    }
}
