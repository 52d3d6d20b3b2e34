//! Takes conversations out of the database.

use std::io::{Read as _, Write};

use quipu_model::Json;
use rusqlite::Connection;

use super::ROWS;
use super::wire::{
    ABOUT, COLUMNS, COMPRESSED, CONVERSATION, DERIVED, ITEM, ITEM_COLUMNS, LEFT_OUT, TABLES, USAGE,
};
use crate::rows::{self, Cell, columns, tables};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// Takes out conversations.
pub(super) struct Conversations;

/// What of a conversation never changes.
const FIRST: [&str; 5] = [
    "id",
    "workspace_id",
    "created_at",
    "root_conversation_id",
    "parent_conversation_id",
];

/// The longest account of what was used.
const LONGEST: u64 = 1 << 20;

impl Gather for Conversations {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let database = from.database()?;
        let split = is_split(database)?;
        let (space, same) = if split {
            ("c.workspace_id", "and i.workspace_id = c.workspace_id")
        } else {
            ("null", "")
        };
        let query = format!(
            "select c.id, {space}, coalesce(c.updated_at, 0) || '.' ||
                (select count(*) || '.' || coalesce(max(i.position), -1)
                 from conversation_items i where i.conversation_id = c.id {same})
             from conversations c order by c.created_at, c.id"
        );
        let mut statement = database.prepare(&query)?;
        let mut rows = statement.query([])?;
        let mut parts = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, space) = (name(&Cell::of(row, 0)?), Cell::of(row, 1)?);
            let stamp = Cell::of(row, 2)?.text();
            if id.is_empty() {
                continue;
            }
            let id = match space {
                Cell::Null => id,
                space => format!("{}:{id}", space.text()),
            };
            parts.push(Part { id, stamp });
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
        let key = Key::of(database, part)?;
        key.rows(database, ("conversations", "id"), CONVERSATION, &FIRST, to)?;
        let items = ("conversation_items", "conversation_id");
        key.rows(database, items, ITEM, ITEM_COLUMNS, to)?;
        let mut missed = left_out(database, items.0, ITEM_COLUMNS)?;
        let there = tables(database)?;
        for table in TABLES {
            if !there.iter().any(|name| name == table.0) {
                continue;
            }
            key.rows(database, table, ABOUT, COLUMNS, to)?;
            key.usage(database, table, to)?;
            missed.extend(left_out(database, table.0, COLUMNS)?);
        }
        if !missed.is_empty() {
            let names: Vec<String> = missed
                .iter()
                .map(|name| Json::string(name).get().to_owned())
                .collect();
            let row = format!("{{\"columns\":[{}]}}", names.join(","));
            rows::line(LEFT_OUT, &row, to)?;
        }
        Ok(())
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }
}

/// What a conversation is known by.
struct Key {
    id: Cell,
    workspace: Option<Cell>,
}

impl Key {
    fn of(database: &Connection, part: &str) -> Result<Self, GatherError> {
        let gone = || GatherError::Unknown(format!("no conversation {part}"));
        let (workspace, id) = if is_split(database)? {
            let (space, id) = part.split_once(':').ok_or_else(gone)?;
            let number = space.parse().map(Cell::Integer);
            let space = number.unwrap_or_else(|_| Cell::Text(space.as_bytes().to_vec()));
            (Some(space), id)
        } else {
            (None, part)
        };
        // An id is a text, or the bytes that the text spells.
        let query = "select 1 from conversations where id = ?1";
        let texts = [
            Some(Cell::Text(id.as_bytes().to_vec())),
            bytes_of(id).map(Cell::Blob),
        ];
        for id in texts.into_iter().flatten() {
            if database.prepare(query)?.exists([&id])? {
                return Ok(Self { id, workspace });
            }
        }
        Err(gone())
    }

    /// Writes some columns of the rows of a table that belong to the conversation.
    fn rows(
        &self,
        database: &Connection,
        (table, column): (&str, &str),
        under: &str,
        wanted: &[&str],
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let there = columns(database, table)?;
        let has = |name: &str| there.iter().any(|it| it == name);
        let wanted: Vec<String> = wanted
            .iter()
            .filter(|name| has(name))
            .map(|name| match *name {
                name if name == "id" || name.ends_with("_id") => {
                    format!(
                        "case typeof({name}) when 'blob' then lower(hex({name})) else {name} end as {name}"
                    )
                }
                name => name.to_owned(),
            })
            .collect();
        let (filter, parameters) = self.filter(column, has("workspace_id"));
        let order = if has("position") {
            " order by position"
        } else {
            ""
        };
        let query = format!(
            "select {} from {table} where {filter}{order}",
            wanted.join(", ")
        );
        rows::write(database, under, &query, &parameters, &["data"], to)?;
        Ok(())
    }

    fn filter(&self, column: &str, by_workspace: bool) -> (String, Vec<&dyn rusqlite::ToSql>) {
        match &self.workspace {
            Some(workspace) if by_workspace => (
                format!("{column} = ?1 and workspace_id = ?2"),
                vec![&self.id, workspace],
            ),
            _ => (format!("{column} = ?1"), vec![&self.id]),
        }
    }

    /// What the conversation used, which may be compressed.
    fn usage(
        &self,
        database: &Connection,
        (table, column): (&str, &str),
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let there = columns(database, table)?;
        let has = |name: &str| there.iter().any(|it| it == name);
        if !has(COMPRESSED) {
            return Ok(());
        }
        let (filter, parameters) = self.filter(column, has("workspace_id"));
        let query = format!("select {COMPRESSED} from {table} where {filter}");
        for cell in rows::cells(database, &query, &parameters)? {
            let (Cell::Text(bytes) | Cell::Blob(bytes)) = cell else {
                continue;
            };
            let text = plain(&bytes)?;
            if !text.trim().is_empty() {
                let value = match Json::parse(&text) {
                    Ok(json) => json,
                    Err(_) => Json::string(&text),
                };
                rows::line(USAGE, value.get(), to)?;
            }
        }
        Ok(())
    }
}

/// The columns of a table that are not taken out.
fn left_out(
    database: &Connection,
    table: &str,
    taken: &[&str],
) -> Result<Vec<String>, GatherError> {
    let mut there = columns(database, table)?;
    there.retain(|name| {
        let name = name.as_str();
        !taken.contains(&name) && !DERIVED.contains(&name) && name != COMPRESSED
    });
    let named = there.into_iter().map(|name| format!("{table}.{name}"));
    Ok(named.collect())
}

/// Whether ids are only unique within a workspace, as in newer versions.
fn is_split(database: &Connection) -> Result<bool, GatherError> {
    let there = columns(database, "conversations")?;
    Ok(there.iter().any(|name| name == "workspace_id"))
}

/// An id as a text: bytes are spelled in hexadecimal, as the program itself shows them.
fn name(id: &Cell) -> String {
    match id {
        Cell::Blob(bytes) => quipu_model::hex::encode(bytes),
        id => id.text(),
    }
}

/// The bytes that a text spells.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// A text that may be compressed: a zero byte, the number of the method, and the content.
fn plain(bytes: &[u8]) -> Result<String, GatherError> {
    let content = match bytes {
        [0, 0, rest @ ..] => rest.to_vec(),
        [0, 1, rest @ ..] => {
            let mut content = Vec::new();
            let decoder = zstd::Decoder::new(rest)?;
            decoder.take(LONGEST).read_to_end(&mut content)?;
            content
        }
        [0, method, ..] => {
            let what =
                format!("what was used is compressed by method {method}, which is not known");
            return Err(GatherError::Unknown(what));
        }
        bytes => bytes.to_vec(),
    };
    Ok(String::from_utf8_lossy(&content).into_owned())
}
