//! FTS5, the full text of `SQLite`, given the same texts at its best: nothing but the index is kept, and events
//! are put in in the order of their time, so that the latest have the highest row numbers.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};

use super::queries::{Order, Wanted};
use super::texts::{Event, Texts};

pub(super) fn index(texts: &Path, to: &Path) -> Result<()> {
    match std::fs::remove_file(to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let texts = Texts::open(texts)?;
    let mut database = Connection::open(to)?;
    database.execute_batch(
        "pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -65536;
         create virtual table said using fts5(text, tags, content = '');",
    )?;
    let transaction = database.transaction()?;
    {
        let mut insert =
            transaction.prepare("insert into said (rowid, text, tags) values (?1, ?2, ?3)")?;
        for (row, event) in (1_i64..).zip(&texts.events) {
            insert.execute(params![row, texts.read(event)?, tags(event)])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// What an event is, each as one word.
fn tags(event: &Event) -> String {
    let Event {
        role,
        tool,
        project,
        ..
    } = event;
    format!(
        "{} {} {}",
        tag("role", role),
        tag("tool", tool),
        tag("project", project)
    )
}

fn tag(what: &str, value: &str) -> String {
    let value = value.chars().filter(char::is_ascii_alphanumeric);
    format!("{what}{}", value.collect::<String>())
}

/// The index, to look something up.
pub(super) struct Fts5 {
    database: Connection,
    /// The time of each row.
    times: Vec<i64>,
}

impl Fts5 {
    pub(super) fn open(path: &Path, texts: &Texts) -> Result<Self> {
        let database = Connection::open(path)?;
        database.execute_batch("pragma query_only = on; pragma cache_size = -65536;")?;
        Ok(Self {
            database,
            times: texts.events.iter().map(|event| event.at).collect(),
        })
    }

    /// The rows that are wanted, the first ones first.
    pub(super) fn search(&self, wanted: &Wanted, order: Order, limit: usize) -> Result<Vec<i64>> {
        let by = match order {
            Order::Relevance => "rank",
            Order::Newest => "rowid desc",
        };
        let (expression, since) = self.expression(wanted);
        let sql = format!(
            "select rowid from said where said match ?1 and rowid >= ?2 order by {by} limit ?3"
        );
        let mut statement = self.database.prepare_cached(&sql)?;
        let rows = statement
            .query_map(params![expression, since, i64::try_from(limit)?], |row| {
                row.get(0)
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What is wanted in the terms of FTS5, and the first row that can be meant.
    fn expression(&self, wanted: &Wanted) -> (String, i64) {
        let mut first = 0;
        let expression = match wanted {
            Wanted::Text(text) => format!("text : {}", quote(text)),
            Wanted::Begins(text) => format!("text : {} *", quote(text)),
            Wanted::Both(a, b) => format!("text : ({} AND {})", quote(a), quote(b)),
            Wanted::Either(a, b) => format!("text : ({} OR {})", quote(a), quote(b)),
            Wanted::Filtered(text, filter, value) => format!(
                "(text : {}) AND (tags : {})",
                quote(text),
                quote(&tag(filter, value))
            ),
            Wanted::Since(text, day) => {
                let before = self.times.partition_point(|at| *at < day.milliseconds());
                first = i64::try_from(before + 1).unwrap_or(i64::MAX);
                format!("text : {}", quote(text))
            }
        };
        (expression, first)
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
