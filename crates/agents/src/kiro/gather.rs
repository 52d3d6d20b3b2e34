//! Takes conversations out of the database of the command line.

use std::io::Write;

use quipu_model::Json;
use quipu_model::json::{Node, Tape};
use rusqlite::OptionalExtension as _;

use super::ROWS;
use crate::rows::{self, Cell};
use crate::{Dialect, Gather, GatherError, Gathered, Part};

/// The conversations of a database. One that was continued elsewhere is there once for each directory; the
/// newest counts.
pub(super) struct Conversations;

impl Gather for Conversations {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let mut statement = database(from)?.prepare(
            "select conversation_id, max(updated_at) from conversations_v2 \
             where conversation_id is not null group by conversation_id order by conversation_id",
        )?;
        let parts = statement.query_map([], |row| {
            let (id, changed) = (Cell::of(row, 0)?, Cell::of(row, 1)?);
            let stamp = match changed {
                Cell::Null => "0".to_owned(),
                changed => changed.text(),
            };
            Ok(Part {
                id: id.text(),
                stamp,
            })
        })?;
        let mut parts = parts.collect::<Result<Vec<Part>, _>>()?;
        parts.retain(|part| !part.id.is_empty());
        Ok(parts)
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let database = database(from)?;
        let id = rows::key(database, "conversations_v2", "conversation_id", part)?;
        let mut statement = database.prepare(
            "select key, value, created_at from conversations_v2 where conversation_id = ?1 \
             order by updated_at desc, created_at desc, key desc limit 1",
        )?;
        let found = statement
            .query_row([id.unwrap_or(Cell::Null)], |row| {
                Ok((Cell::of(row, 0)?, Cell::of(row, 1)?, Cell::of(row, 2)?))
            })
            .optional()?;
        let Some((key, value, created)) = found else {
            return Err(GatherError::Unknown(format!("no conversation {part}")));
        };
        let key = match key {
            Cell::Null => Json::null(),
            key => Json::string(&key.text()),
        };
        let id = Json::string(part);
        let created = match created {
            Cell::Null => "null".to_owned(),
            created => created.number().to_string(),
        };
        writeln!(
            to,
            "{{\"table\":\"kiro_conversation\",\"row\":{{\"conversation_id\":{},\"key\":{},\"created_at\":{created}}}}}",
            id.get(),
            key.get()
        )?;
        let value = value.text();
        let mut tape = Tape::new();
        let Ok(conversation) = tape.read(&value, 128) else {
            // It is no conversation, and still all that there is.
            let value = Json::string(&value);
            writeln!(
                to,
                "{{\"table\":\"kiro_value\",\"row\":{{\"value\":{}}}}}",
                value.get()
            )?;
            return Ok(());
        };
        let turns = conversation.get("history").into_iter();
        for (index, turn) in turns.flat_map(Node::items).enumerate() {
            // Line ends in JSON are never inside of its strings.
            let turn = turn.raw().get().replace(['\n', '\r'], " ");
            writeln!(
                to,
                "{{\"table\":\"kiro_turn\",\"index\":{index},\"row\":{turn}}}"
            )?;
        }
        Ok(())
    }

    fn dialect(&self) -> Dialect {
        ROWS
    }
}

fn database<'a>(from: &Gathered<'a>) -> Result<&'a rusqlite::Connection, GatherError> {
    match from {
        Gathered::Database(database) => Ok(database),
        _ => Err(GatherError::Unknown(
            "conversations are in a database".to_owned(),
        )),
    }
}
