//! What another program put down in its index that no file tells: replays, with the configuration they were
//! run with.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

/// The rows of the specification's table of replays in an index that is not ours; none where there is no
/// such table. The index is copied, with what stands in its journal, and the copy is read: opening it in
/// place could write beside it.
pub(in crate::traces) fn replays(index: &Path) -> Vec<[Value; 5]> {
    read(index).unwrap_or_default()
}

fn read(index: &Path) -> Option<Vec<[Value; 5]>> {
    if !index.is_file() {
        return None;
    }
    let directory = tempfile::tempdir().ok()?;
    let copy = directory.path().join("copy.sqlite");
    std::fs::copy(index, &copy).ok()?;
    let with = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name
    };
    for journal in ["-wal", "-journal"] {
        // There is none where nobody writes.
        drop(std::fs::copy(with(index, journal), with(&copy, journal)));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let database = Connection::open_with_flags(&copy, flags).ok()?;
    let mut select = database
        .prepare(
            "select id, baseline_trace_id, config_hash, outcome_record_id, created_at from replays",
        )
        .ok()?;
    let rows = select.query_map([], |row| {
        Ok([
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
        ])
    });
    rows.ok()?.collect::<rusqlite::Result<_>>().ok()
}
