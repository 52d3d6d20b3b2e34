//! Figures as comma-separated values.
//!
//! As RFC 4180 has them: lines end with CRLF, and what has commas, quotes or line ends in it is quoted. Numbers are plain,
//! dollars exact; what is not known is empty. Names come from logs, and a spreadsheet takes a name that begins with `=`,
//! `+`, `-` or `@` for a formula and would run it. Such names get a `'` in front, which spreadsheets do not show.

use std::borrow::Cow;
use std::io::{self, Write};

use quipu_store::stats::{Row, Spent, Table};

const FIGURES: [&str; 15] = [
    "calls",
    "input",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "output",
    "reasoning",
    "total",
    "usd",
    "unpriced_tokens",
    "turns",
    "replies",
    "tool_calls",
    "failures",
    "active_ms",
];

pub(super) fn write(out: &mut impl Write, table: &Table) -> io::Result<()> {
    let mut head: Vec<Cow<'_, str>> = table.by.iter().map(|by| by.as_str().into()).collect();
    head.extend(FIGURES.map(Cow::Borrowed));
    line(out, &head)?;
    for row in &table.rows {
        let mut cells: Vec<Cow<'_, str>> = row.key.iter().map(|key| name(key)).collect();
        cells.extend(figures(row).into_iter().map(Cow::Owned));
        line(out, &cells)?;
    }
    Ok(())
}

fn figures(row: &Row) -> [String; 15] {
    let spent = row.spent.as_ref();
    let tokens = spent.map(|spent| spent.tokens);
    let session = row.did.and_then(|did| did.session);
    let text = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let bucket = |of: fn(&quipu_model::Usage) -> Option<u64>| text(tokens.as_ref().and_then(of));
    [
        text(spent.map(|spent| spent.calls)),
        bucket(|usage| usage.input),
        bucket(|usage| usage.cache_read),
        bucket(|usage| usage.cache_write),
        bucket(|usage| usage.cache_write_1h),
        bucket(|usage| usage.output),
        bucket(|usage| usage.reasoning),
        bucket(|usage| Some(usage.total())),
        spent
            .and_then(Spent::dollars)
            .map_or_else(String::new, |sum| sum.to_string()),
        text(spent.map(|spent| spent.unpriced)),
        text(session.map(|it| it.prompts)),
        text(session.map(|it| it.replies)),
        text(row.did.map(|did| did.tool_calls)),
        text(row.did.map(|did| did.failures)),
        text(session.map(|it| it.active_ms)),
    ]
}

/// A name that no spreadsheet takes for a formula.
fn name(text: &str) -> Cow<'_, str> {
    match text.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r') => Cow::Owned(format!("'{text}")),
        _ => Cow::Borrowed(text),
    }
}

fn line(out: &mut impl Write, cells: &[Cow<'_, str>]) -> io::Result<()> {
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 {
            write!(out, ",")?;
        }
        // What a terminal might act on is made visible, also here: people look at files with `cat`.
        let cell = crate::terminal::clean(cell);
        if cell.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            write!(out, "{cell}")?;
        }
    }
    write!(out, "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names() {
        let cells = [
            "=1+1",
            "a,b",
            "say \"hi\"",
            "two\nlines",
            "plain",
            "\x1b[31m",
        ];
        let mut out = Vec::new();
        let cells: Vec<Cow<'_, str>> = cells.iter().map(|cell| name(cell)).collect();
        line(&mut out, &cells).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert_eq!(
            said,
            "'=1+1,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",plain,␛[31m\r\n"
        );
    }
}
