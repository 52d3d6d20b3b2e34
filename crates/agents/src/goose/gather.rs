//! Takes sessions out of the database.
//!
//! First comes what never changes of the session, then its messages in the order in which they were written,
//! with the calls to the model between them, then the whole row of the session, which changes each time.

use std::io::Write;

use rusqlite::Connection;

use super::ROWS;
use crate::rows::{self, Cell, columns, tables};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// Takes out sessions.
pub(super) struct Sessions;

/// What of a session does not change, or hardly ever.
const FIRST: [&str; 8] = [
    "id",
    "session_type",
    "working_dir",
    "created_at",
    "parent_session_id",
    "schedule_id",
    "provider_name",
    "model_config_json",
];

/// Columns that hold JSON.
const JSON: &[&str] = &[
    "content_json",
    "metadata_json",
    "extension_data",
    "recipe_json",
    "user_recipe_values_json",
    "model_config_json",
];

impl Gather for Sessions {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let database = from.database()?;
        let query = format!(
            "select id, coalesce(updated_at, '') || '.' ||
                (select count(*) || '.' || coalesce(max(id), 0) from messages
                 where session_id = sessions.id) || '.' || {},
                exists (select 1 from messages where session_id = sessions.id)
             from sessions order by created_at, id",
            if has_calls(database)? {
                "(select count(*) from usage_ledger where session_id = sessions.id)"
            } else {
                "'0'"
            }
        );
        let mut statement = database.prepare(&query)?;
        let mut rows = statement.query([])?;
        let mut parts = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, stamp) = (Cell::of(row, 0)?.text(), Cell::of(row, 1)?.text());
            // A session in which nothing was said yet is none.
            if Cell::of(row, 2)?.number() != 0 && !id.is_empty() {
                parts.push(Part { id, stamp });
            }
        }
        Ok(parts)
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let database = from.database()?;
        let key = rows::key(database, "sessions", "id", part)?;
        let key = key.ok_or_else(|| GatherError::Unknown(format!("no session {part}")))?;
        let there = columns(database, "sessions")?;
        let first: Vec<&str> = FIRST
            .into_iter()
            .filter(|column| there.iter().any(|there| there == column))
            .collect();
        let query = format!("select {} from sessions where id = ?1", first.join(", "));
        rows::write(database, "sessions", &query, &[&key], JSON, to)?;
        write_messages(database, &key, to)?;
        let query = "select * from sessions where id = ?1";
        rows::write(database, "sessions", query, &[&key], JSON, to)?;
        Ok(())
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }
}

fn has_calls(database: &Connection) -> Result<bool, GatherError> {
    Ok(tables(database)?
        .iter()
        .any(|table| table == "usage_ledger"))
}

/// Each message, and before it the calls that were made before it.
fn write_messages(
    database: &Connection,
    session: &Cell,
    to: &mut dyn Write,
) -> Result<(), GatherError> {
    let when = |query: &str| -> Result<Vec<(Cell, i64)>, GatherError> {
        let mut statement = database.prepare(query)?;
        let found = statement.query_map([session], |row| {
            Ok((Cell::of(row, 0)?, Cell::of(row, 1)?.number()))
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    };
    let messages = when(
        "select id, coalesce(created_timestamp, 0) from messages where session_id = ?1 order by id",
    )?;
    let calls = if has_calls(database)? {
        when(
            "select id, coalesce(created_timestamp, 0) from usage_ledger
             where session_id = ?1 order by id",
        )?
    } else {
        Vec::new()
    };
    let mut calls = calls.into_iter().peekable();
    let call = |id: Cell, to: &mut dyn Write| {
        let query = "select * from usage_ledger where id = ?1";
        rows::write(database, "usage_ledger", query, &[&id], JSON, to)
    };
    for (id, at) in messages {
        while let Some((call_id, _)) = calls.next_if(|(_, made)| *made < at) {
            call(call_id, to)?;
        }
        let query = "select * from messages where id = ?1";
        rows::write(database, "messages", query, &[&id], JSON, to)?;
    }
    for (call_id, _) in calls {
        call(call_id, to)?;
    }
    Ok(())
}
