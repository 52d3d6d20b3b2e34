//! Takes sessions out of the database. The tree of small files that was before it is in [`tree`].
//!
//! The rows of a session are written so that a session that grows changes as little as possible of what
//! was written before. First comes what never changes of the session itself; then its messages in the
//! order in which they were made, each with its parts right behind it; then what is to be done and the
//! whole row of the session, which changes with every step. A message and its parts change until the
//! message ends. So what is new is at the end, behind the last message that had ended. What a person went
//! back from is in the first row, because that has to be known before the messages; going back is rare.

use std::io::Write;
use std::path::Path;

use rusqlite::Connection;

use super::{ROWS, tree};
use crate::rows::{self, Cell, columns, tables};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// Takes out sessions.
pub(super) struct Sessions;

/// What of a session does not change.
const FIRST: [&str; 7] = [
    "id",
    "project_id",
    "parent_id",
    "directory",
    "version",
    "time_created",
    "revert",
];

/// Columns of a session that hold JSON.
const JSON: &[&str] = &[
    "summary_diffs",
    "revert",
    "permission",
    "goal",
    "model",
    "metadata",
];

impl Gather for Sessions {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        match from {
            Gathered::Database(database) => database_parts(database),
            Gathered::Tree(root) => tree::parts(root),
            Gathered::File(_) => Err(unknown()),
        }
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        match from {
            Gathered::Database(database) => write_database(database, part, to),
            Gathered::Tree(root) => tree::write(root, part, to),
            Gathered::File(_) => Err(unknown()),
        }
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }

    fn holds(&self, directory: &Path) -> bool {
        ["session", "message", "part"]
            .iter()
            .all(|name| directory.join(name).is_dir())
    }
}

pub(super) fn unknown() -> GatherError {
    GatherError::Unknown("neither the database nor the directory of OpenCode".to_owned())
}

/// The tables that the database has.
struct Schema(Vec<String>);

impl Schema {
    fn of(database: &Connection) -> Result<Self, GatherError> {
        let schema = Self(tables(database)?);
        if schema.has("session") {
            Ok(schema)
        } else {
            Err(unknown())
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|table| table == name)
    }

    fn has_messages(&self) -> bool {
        self.has("message") && self.has("part")
    }
}

/// For so long after the newest change of anything a session may still change in its parts. In
/// milliseconds.
const RECENT: i64 = 7 * 24 * 60 * 60 * 1000;

/// So many sessions may so in any case: one whose time lies in the future must not make all others old.
const NEWEST: usize = 50;

/// A session, and when anything of it but its parts changed last.
struct Found {
    key: Cell,
    stamp: String,
    changed: i64,
}

/// Parts are changed in place, again and again until they end. Looking at every part would read most of a
/// database that can be many gigabytes, so that is done for sessions that are new; of the others, how
/// many parts there are and when a message changed is enough.
fn database_parts(database: &Connection) -> Result<Vec<Part>, GatherError> {
    let schema = Schema::of(database)?;
    let mut found = found(database, &schema, "session")?;
    if schema.has_messages() {
        // Messages of a session that is not there.
        let lone = "(select distinct session_id as id, 0 as time_updated, 0 as time_created
            from message where not exists
                (select 1 from session as known where known.id = message.session_id)) as session";
        found.append(&mut self::found(database, &schema, lone)?);
        mark_recent(database, &mut found)?;
    }
    let parts = found.into_iter().map(|found| Part {
        id: found.key.text(),
        stamp: found.stamp,
    });
    // Without an id nothing can be asked for.
    Ok(parts.filter(|part| !part.id.is_empty()).collect())
}

fn found(
    database: &Connection,
    schema: &Schema,
    sessions: &str,
) -> Result<Vec<Found>, GatherError> {
    let count = |there: bool, query: &'static str| if there { query } else { "'0'" };
    let messages = count(
        schema.has_messages(),
        "(select count(*) || '.' || coalesce(max(time_updated), 0) || '.' ||
            (select count(*) from part where part.session_id = session.id)
          from message where message.session_id = session.id)",
    );
    let second = count(
        schema.has("session_message"),
        "(select count(*) || '.' || coalesce(max(time_updated), 0)
          from session_message where session_message.session_id = session.id)",
    );
    let query = format!(
        "select id, coalesce(time_updated, 0), {messages}, {second} from {sessions}
         order by time_created, id"
    );
    let mut statement = database.prepare(&query)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let updated = Cell::of(row, 1)?;
        let (messages, second) = (Cell::of(row, 2)?.text(), Cell::of(row, 3)?.text());
        // A session in which nothing was said yet.
        let is_empty = |counts: &str| counts.split('.').all(|count| count == "0");
        if is_empty(&messages) && is_empty(&second) {
            continue;
        }
        let newest = |stamp: &str| stamp.split('.').nth(1)?.parse().ok();
        found.push(Found {
            key: Cell::of(row, 0)?,
            stamp: format!("{}.{messages}.{second}", updated.text()),
            changed: updated
                .number()
                .max(newest(&messages).unwrap_or(0))
                .max(newest(&second).unwrap_or(0)),
        });
    }
    Ok(found)
}

/// Adds to the stamps of new sessions what tells of a change in their parts.
fn mark_recent(database: &Connection, found: &mut [Found]) -> Result<(), GatherError> {
    let mut order: Vec<&mut Found> = found.iter_mut().collect();
    order.sort_by_key(|found| std::cmp::Reverse(found.changed));
    let newest = order.first().map_or(0, |found| found.changed);
    // The remainder keeps hostile numbers from overflowing the sum.
    let mut statement = database.prepare(
        "select coalesce(sum(time_updated % 1000000007), 0) || '.' ||
            coalesce(sum(octet_length(data)), 0)
         from part where session_id = ?1",
    )?;
    for (index, found) in order.into_iter().enumerate() {
        if index < NEWEST || found.changed >= newest.saturating_sub(RECENT) {
            let parts = statement.query_row([&found.key], |row| Cell::of(row, 0))?;
            found.stamp = format!("{}.{}", found.stamp, parts.text());
        }
    }
    Ok(())
}

fn write_database(
    database: &Connection,
    session: &str,
    to: &mut dyn Write,
) -> Result<(), GatherError> {
    let schema = Schema::of(database)?;
    let mut key = rows::key(database, "session", "id", session)?;
    if key.is_none() && schema.has_messages() {
        key = rows::key(database, "message", "session_id", session)?;
    }
    let key = key.ok_or_else(|| GatherError::Unknown(format!("no session {session}")))?;
    let there = columns(database, "session")?;
    let first: Vec<&str> = FIRST
        .into_iter()
        .filter(|column| there.iter().any(|there| there == column))
        .collect();
    let query = format!("select {} from session where id = ?1", first.join(", "));
    rows::write(database, "session", &query, &[&key], JSON, to)?;
    if schema.has("project") {
        let query = "select id, worktree from project
            where id = (select project_id from session where id = ?1)";
        rows::write(database, "project", query, &[&key], &[], to)?;
    }
    let mut written = 0;
    if schema.has_messages() {
        written = write_messages(database, &key, to)?;
    }
    // Both kinds are there while one takes the place of the other, and say the same.
    if schema.has("session_message") && written == 0 {
        let columns = columns(database, "session_message")?;
        let order = if columns.iter().any(|column| column == "seq") {
            "seq"
        } else {
            "time_created, id"
        };
        let query = format!("select * from session_message where session_id = ?1 order by {order}");
        rows::write(database, "session_message", &query, &[&key], &["data"], to)?;
    }
    if schema.has("todo") {
        let query = "select * from todo where session_id = ?1 order by position";
        rows::write(database, "todo", query, &[&key], &[], to)?;
    }
    let query = "select * from session where id = ?1";
    rows::write(database, "session", query, &[&key], JSON, to)?;
    Ok(())
}

/// Writes the messages of a session, each with its parts, and gives back how many there were.
fn write_messages(
    database: &Connection,
    session: &Cell,
    to: &mut dyn Write,
) -> Result<u64, GatherError> {
    let query = "select id from message where session_id = ?1 order by time_created, id";
    let mut ids = rows::cells(database, query, &[session])?;
    // All that have no id are found at once.
    let mut without = false;
    ids.retain(|id| *id != Cell::Null || !std::mem::replace(&mut without, true));
    let mut written = 0;
    for id in ids {
        let query = "select id, session_id, time_created, time_updated, data
            from message where id is ?1 and session_id = ?2";
        written += rows::write(database, "message", query, &[&id, session], &["data"], to)?;
        let query = "select id, message_id, session_id, time_created, time_updated, data
            from part where message_id = ?1 order by time_created, id";
        rows::write(database, "part", query, &[&id], &["data"], to)?;
    }
    // Parts of a message that is not there.
    let query = "select id, message_id, session_id, time_created, time_updated, data
        from part where session_id = ?1 and not exists
            (select 1 from message
             where message.id = part.message_id and message.session_id = part.session_id)
        order by time_created, id";
    rows::write(database, "part", query, &[session], &["data"], to)?;
    Ok(written)
}
