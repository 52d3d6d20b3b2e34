//! Rows of a database as lines.

use std::io::Write;

use base64::Engine as _;
use quipu_model::Json;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::GatherError;

/// Writes the rows a query gives, one a line: `{"table":"message","row":{"id":"…","data":{…}}}`. Texts in
/// the columns named in `json` are written as the JSON they are; a blob as `{"$base64":"…"}`.
pub fn write(
    database: &rusqlite::Connection,
    table: &str,
    query: &str,
    parameters: &[&dyn rusqlite::ToSql],
    json: &[&str],
    to: &mut dyn Write,
) -> Result<u64, GatherError> {
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
            line.push_str(cell(row.get_ref(index)?, json.iter().any(|name| name == column)).get());
        }
        line.push_str("}}\n");
        to.write_all(line.as_bytes())?;
        written += 1;
    }
    Ok(written)
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
                Err(_) => format!("x'{}'", crate::out::hex(bytes)),
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
