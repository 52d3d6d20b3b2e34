//! Rows of a database as lines.

use std::io::Write;

use base64::Engine as _;
use quipu_model::Json;
use rusqlite::ToSql;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::GatherError;

/// The longest cell that is taken, in bytes: a longer one makes a line that is too long to be read.
pub const LONGEST: usize = 32 << 20;

/// The longest cell that is even looked at, since it is held in memory for that. A session with a longer one is an
/// error.
const MOST: i32 = 256 << 20;

/// What replaces a cell that is too long, before its length.
const TOO_LONG: &str = "{\"$too_long\":";

/// Writes the rows a query gives, one a line: `{"table":"message","row":{"id":"…","data":{…}}}`. Texts in
/// the columns named in `json` are written as the JSON they are; a blob as `{"$base64":"…"}`. A cell that is too
/// long is replaced by `{"$too_long":…}` with its length.
pub fn write(
    database: &rusqlite::Connection,
    table: &str,
    query: &str,
    parameters: &[&dyn rusqlite::ToSql],
    json: &[&str],
    to: &mut dyn Write,
) -> Result<u64, GatherError> {
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST)?;
    let mut statement = database.prepare(query)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query(parameters)?;
    let mut written = 0;
    while let Some(row) = rows.next()? {
        let mut line = format!("{{\"table\":{},\"row\":{{", Json::string(table).get());
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                line.push(',');
            }
            line.push_str(Json::string(column).get());
            line.push(':');
            let value = row.get_ref(index)?;
            match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) if bytes.len() >= LONGEST => {
                    line.extend([TOO_LONG, &bytes.len().to_string(), "}"]);
                }
                value => {
                    let is_json = json.iter().any(|name| name == column);
                    line.push_str(cell(value, is_json).get());
                }
            }
        }
        line.push_str("}}\n");
        to.write_all(line.as_bytes())?;
        written += 1;
    }
    Ok(written)
}

/// Passes rows on, and counts the cells that were left out because they are too long.
#[derive(Debug)]
pub struct Counted<W> {
    to: W,
    too_long: u64,
}

impl<W: Write> Counted<W> {
    /// Passes rows on to this.
    pub fn new(to: W) -> Self {
        Self { to, too_long: 0 }
    }

    /// How many cells were left out.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        // Each row is written at once.
        self.too_long += memchr::memmem::find_iter(bytes, TOO_LONG).count() as u64;
        self.to.write_all(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Writes a JSON value as such a line. Breaks in it are between values, never inside of one.
pub fn line(table: &str, value: &str, to: &mut dyn Write) -> Result<(), GatherError> {
    let table = Json::string(table);
    let value = value.replace(['\n', '\r'], " ");
    writeln!(to, "{{\"table\":{},\"row\":{value}}}", table.get())?;
    Ok(())
}

fn cell(value: ValueRef<'_>, is_json: bool) -> Json {
    match value {
        ValueRef::Null => Json::null(),
        ValueRef::Integer(number) => Json::of(&number).unwrap_or_else(|_| Json::null()),
        ValueRef::Real(number) => Json::of(&number).unwrap_or_else(|_| Json::null()),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            match is_json.then(|| Json::parse(&text)) {
                Some(Ok(json)) => json,
                _ => Json::string(&text),
            }
        }
        ValueRef::Blob(bytes) => {
            // Some store JSON as a blob.
            if is_json
                && let Ok(text) = std::str::from_utf8(bytes)
                && let Ok(json) = Json::parse(text)
            {
                return json;
            }
            let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
            Json::parse(&format!("{{\"$base64\":\"{base64}\"}}")).unwrap_or_else(|_| Json::null())
        }
    }
}

/// What one cell of a row holds.
///
/// A column may hold anything, whatever its type says, and a text need not be one. One row that is not as
/// the others are must not keep the others from being read, so cells that decide what is read are taken as
/// they are, and are put back into queries in the same way.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// A text, which need not be UTF-8.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// The cell of a column.
    pub fn of(row: &rusqlite::Row<'_>, index: usize) -> Result<Self, rusqlite::Error> {
        Ok(match row.get_ref(index)? {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => Self::Text(bytes.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        })
    }

    /// It as a text; empty when nothing is there. Bytes that are no text are written in hexadecimal.
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Integer(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Blob(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => format!("x'{}'", quipu_model::hex::encode(bytes)),
            },
        }
    }

    /// It as a whole number; 0 when it is none.
    pub fn number(&self) -> i64 {
        match self {
            Self::Null | Self::Blob(_) => 0,
            Self::Integer(number) => *number,
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what is too large becomes the largest"
            )]
            Self::Real(number) => *number as i64,
            Self::Text(bytes) => std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0),
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The cell of a column whose [text](Cell::text) is this. `None` when there is none.
pub fn key(
    database: &rusqlite::Connection,
    table: &str,
    column: &str,
    text: &str,
) -> Result<Option<Cell>, GatherError> {
    let query = format!("select {column} from {table} where {column} = ?1 limit 1");
    let mut statement = database.prepare(&query)?;
    if let Some(row) = statement.query([text])?.next()? {
        return Ok(Some(Cell::of(row, 0)?));
    }
    // What is no text is not found as one.
    let query = format!("select distinct {column} from {table}");
    let mut statement = database.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let cell = Cell::of(row, 0)?;
        if cell != Cell::Null && cell.text() == text {
            return Ok(Some(cell));
        }
    }
    Ok(None)
}

/// The cells that a query gives, in its first column.
pub fn cells(
    database: &rusqlite::Connection,
    query: &str,
    parameters: &[&dyn ToSql],
) -> Result<Vec<Cell>, GatherError> {
    let mut statement = database.prepare(query)?;
    let cells = statement.query_map(parameters, |row| Cell::of(row, 0))?;
    Ok(cells.collect::<Result<_, _>>()?)
}

/// The names of the tables of a database.
pub fn tables(database: &rusqlite::Connection) -> Result<Vec<String>, GatherError> {
    let query = "select name from sqlite_schema where type = 'table' order by name";
    let names = cells(database, query, &[])?;
    Ok(names.iter().map(Cell::text).collect())
}

/// The names of the columns of a table.
pub fn columns(database: &rusqlite::Connection, table: &str) -> Result<Vec<String>, GatherError> {
    let query = "select name from pragma_table_info(?1)";
    let names = cells(database, query, &[&table])?;
    Ok(names.iter().map(Cell::text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_is_too_long_is_left_out_and_counted() {
        let database = rusqlite::Connection::open_in_memory().unwrap();
        let long = LONGEST + 7;
        database
            .execute_batch(&format!(
                "create table message (id integer, data text, more);
                 insert into message values (1, '{{\"a\":1}}', 'x'), (2, cast(zeroblob({long}) as text), null),
                     (3, '{{\"a\":3}}', zeroblob({long})), (4, '{{\"a\":4}}', x'00');"
            ))
            .unwrap();
        let mut rows = Counted::new(Vec::new());
        let query = "select * from message where id > ?1 order by id desc";
        let written = write(&database, "message", query, &[&0], &["data"], &mut rows).unwrap();
        let text = String::from_utf8(rows.to.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(written, 4);
        assert_eq!(rows.too_long(), 2);
        assert_eq!(
            lines,
            [
                r#"{"table":"message","row":{"id":4,"data":{"a":4},"more":{"$base64":"AA=="}}}"#,
                &format!(
                    r#"{{"table":"message","row":{{"id":3,"data":{{"a":3}},"more":{{"$too_long":{long}}}}}}}"#
                ),
                &format!(
                    r#"{{"table":"message","row":{{"id":2,"data":{{"$too_long":{long}}},"more":null}}}}"#
                ),
                r#"{"table":"message","row":{"id":1,"data":{"a":1},"more":"x"}}"#,
            ]
        );
    }
}
