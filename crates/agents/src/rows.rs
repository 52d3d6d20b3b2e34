//! Rows of a database as lines.

use std::io::Write;

use base64::Engine as _;
use quipu_model::Json;
use rusqlite::types::ValueRef;

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

/// The names of the tables of a database.
pub fn tables(database: &rusqlite::Connection) -> Result<Vec<String>, GatherError> {
    let mut statement =
        database.prepare("select name from sqlite_schema where type = 'table' order by name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

/// The names of the columns of a table.
pub fn columns(database: &rusqlite::Connection, table: &str) -> Result<Vec<String>, GatherError> {
    let mut statement = database.prepare("select name from pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}
