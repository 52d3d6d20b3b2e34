//! Takes conversations out of the database of the command line.

use std::io::Write;

use quipu_model::Json;
use quipu_model::json::{Node, Tape};
use rusqlite::OptionalExtension as _;

use super::ROWS;
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
            let changed: Option<i64> = row.get(1)?;
            Ok(Part {
                id: row.get(0)?,
                stamp: changed.unwrap_or(0).to_string(),
            })
        })?;
        Ok(parts.collect::<Result<_, _>>()?)
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let mut statement = database(from)?.prepare(
            "select key, value, created_at from conversations_v2 where conversation_id = ?1 \
             order by updated_at desc, created_at desc, key desc limit 1",
        )?;
        let found = statement
            .query_row([part], |row| {
                let key: Option<String> = row.get(0)?;
                let value: String = row.get(1)?;
                let created: Option<i64> = row.get(2)?;
                Ok((key, value, created))
            })
            .optional()?;
        let Some((key, value, created)) = found else {
            return Err(GatherError::Unknown(format!("no conversation {part}")));
        };
        let key = key.map_or_else(Json::null, |key| Json::string(&key));
        let id = Json::string(part);
        let created = created.map_or_else(|| "null".to_owned(), |at| at.to_string());
        writeln!(
            to,
            "{{\"table\":\"kiro_conversation\",\"row\":{{\"conversation_id\":{},\"key\":{},\"created_at\":{created}}}}}",
            id.get(),
            key.get()
        )?;
        let mut tape = Tape::new();
        let conversation = tape
            .read(&value, 128)
            .map_err(|error| GatherError::Unknown(format!("conversation {part}: {error}")))?;
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
