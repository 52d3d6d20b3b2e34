//! Takes threads out of the database.

use std::io::{Read as _, Write};

use quipu_model::json::{Node, Tape};
use rusqlite::Connection;

use super::ROWS;
use super::wire::{COLUMNS, DOCUMENT, MESSAGE, THREAD};
use crate::rows::{self, Cell, columns};
use crate::{Dialect, Gather, GatherError, Gathered, Limits, Part, blocks};

/// Takes out threads.
pub(super) struct Threads;

/// What of a thread never changes.
const FIRST: [&str; 3] = ["id", "parent_id", "created_at"];

impl Gather for Threads {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let query = "select id, coalesce(updated_at, '') || '.' || length(data)
            from threads order by updated_at, id";
        let mut statement = from.database()?.prepare(query)?;
        let mut rows = statement.query([])?;
        let mut parts = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, stamp) = (Cell::of(row, 0)?.text(), Cell::of(row, 1)?.text());
            if !id.is_empty() {
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
        let key = rows::key(database, "threads", "id", part)?;
        let key = key.ok_or_else(|| GatherError::Unknown(format!("no thread {part}")))?;
        let there = columns(database, "threads")?;
        let select = |wanted: &[&str]| {
            let wanted = wanted
                .iter()
                .filter(|name| there.iter().any(|it| it == *name));
            let wanted: Vec<&str> = wanted.copied().collect();
            format!("select {} from threads where id = ?1", wanted.join(", "))
        };
        rows::write(database, THREAD, &select(&FIRST), &[&key], &[], to)?;
        let document = document(database, &key)?;
        let mut tape = Tape::new();
        let limits = Limits::default();
        let root = tape
            .read(&document, limits.depth)
            .map_err(|error| GatherError::Unknown(format!("thread {part}: {error}")))?;
        for message in root.get("messages").into_iter().flat_map(Node::items) {
            rows::line(MESSAGE, message.raw().get(), to)?;
        }
        rows::write(database, THREAD, &select(COLUMNS), &[&key], &[], to)?;
        let rest = blocks::without(root, &["messages"]).to_json();
        rows::line(DOCUMENT, rest.get(), to)
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }
}

/// The document of a thread, as text.
fn document(database: &Connection, key: &Cell) -> Result<String, GatherError> {
    let query = "select data_type, data from threads where id = ?1";
    let mut statement = database.prepare(query)?;
    let mut rows = statement.query([key])?;
    let gone = || GatherError::Unknown("the thread is gone".to_owned());
    let row = rows.next()?.ok_or_else(gone)?;
    let kind = Cell::of(row, 0)?.text();
    let (Cell::Text(bytes) | Cell::Blob(bytes)) = Cell::of(row, 1)? else {
        return Err(GatherError::Unknown("a thread without content".to_owned()));
    };
    let bytes = match kind.as_str() {
        "json" | "" => bytes,
        "zstd" => unpacked(&bytes)?,
        other => {
            let what = format!("a thread is kept as {other}, which is not known");
            return Err(GatherError::Unknown(what));
        }
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, GatherError> {
    let most = Limits::default().document as u64;
    let mut plain = Vec::new();
    let decoder = zstd::Decoder::new(bytes)?;
    decoder.take(most + 1).read_to_end(&mut plain)?;
    if plain.len() as u64 > most {
        let what = format!("a thread of more than {most} bytes is not read");
        return Err(GatherError::Unknown(what));
    }
    Ok(plain)
}
