//! The index of traces: what can be asked of them without reading them.
//!
//! A `SQLite` database that is wholly derived. It is compared with the files whenever it is opened, and made
//! again when it is missing, damaged or of another version.

mod query;
mod shadow;
mod write;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

pub(super) use query::Looked;
pub use query::{Filter, TraceRow};
pub(super) use shadow::replays;
pub(super) use write::{Entry, Known};

use super::TraceError;
use super::error::Result;
use crate::catalogue::SqliteCatalogue;

/// The version of our own tables. They are made anew when it changes.
const VERSION: i64 = 2;

/// Where the index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IndexPlace {
    /// In this file, which is ours.
    Ours(PathBuf),
    /// In this file, in which others may have put down what cannot be derived.
    Shared(PathBuf),
    /// In memory, for as long as it is needed.
    Memory,
}

/// The index, open.
#[derive(Debug)]
pub(super) struct Index {
    database: Connection,
    path: PathBuf,
}

impl Index {
    /// Opens the index. A file that is damaged is made anew; where nothing may be written, it is in memory.
    pub(super) fn open(place: &IndexPlace) -> Result<Self> {
        let path = match place {
            IndexPlace::Memory => return Self::in_memory(),
            IndexPlace::Ours(path) | IndexPlace::Shared(path) => path,
        };
        let is_ours = matches!(place, IndexPlace::Ours(_));
        match Self::open_file(path, is_ours) {
            Err(TraceError::Index { damaged: true, .. }) => {
                Self::remake(place)?;
                Self::open_file(path, is_ours)
            }
            // Somebody else's, or a backup.
            Err(_) if !is_writable(path) => Self::in_memory(),
            opened => opened,
        }
    }

    /// Takes a damaged index out of the way.
    pub(super) fn remake(place: &IndexPlace) -> Result<()> {
        let (IndexPlace::Ours(path) | IndexPlace::Shared(path)) = place else {
            return Ok(());
        };
        let refuse = crate::FileError::at("set aside", path.clone());
        let aside = SqliteCatalogue::set_aside(path).map_err(refuse)?;
        if matches!(place, IndexPlace::Ours(_)) {
            std::fs::remove_file(&aside).map_err(crate::FileError::at("remove", aside))?;
        }
        Ok(())
    }

    fn open_file(path: &Path, is_ours: bool) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let database = Connection::open_with_flags(path, flags).map_err(fault(path))?;
        // Tags and names are nobody else's business.
        quipu_files::restrict(path);
        let pragmas = "pragma busy_timeout = 10000;
             pragma journal_mode = wal;
             pragma synchronous = normal;";
        database.execute_batch(pragmas).map_err(fault(path))?;
        Self::with(database, path, is_ours)
    }

    fn in_memory() -> Result<Self> {
        let path = Path::new(":memory:");
        let database = Connection::open_in_memory().map_err(fault(path))?;
        Self::with(database, path, true)
    }

    /// `is_ours`: everything in it is derived, and can be thrown away.
    fn with(database: Connection, path: &Path, is_ours: bool) -> Result<Self> {
        let index = Self {
            database,
            path: path.to_owned(),
        };
        index.run(|database| database.execute_batch("pragma foreign_keys = on"))?;
        index.at_once(|database| {
            database.execute_batch(
                "create table if not exists quipu_index (version integer not null)",
            )?;
            let version: Option<i64> =
                database.query_row("select max(version) from quipu_index", [], |row| row.get(0))?;
            if version != Some(VERSION) {
                for table in own_tables(database)? {
                    database.execute_batch(&format!("drop table if exists \"{table}\""))?;
                }
                if is_ours {
                    database.execute_batch(
                        "drop table if exists replays;
                         drop table if exists tags;
                         drop table if exists traces;",
                    )?;
                }
                database.execute_batch("create table quipu_index (version integer not null)")?;
                database.execute("insert into quipu_index values (?1)", [VERSION])?;
                database.execute_batch(include_str!("schema.sql"))?;
            }
            Ok(())
        })?;
        Ok(index)
    }

    fn run<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        run(&self.database).map_err(fault(&self.path))
    }

    /// Does several things as one.
    fn at_once<T>(&self, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        self.run(|database| {
            database.execute_batch("begin immediate")?;
            let done = act(database).and_then(|done| {
                database.execute_batch("commit")?;
                Ok(done)
            });
            if done.is_err() && !database.is_autocommit() {
                database.execute_batch("rollback")?;
            }
            done
        })
    }
}

/// Our tables, those first that refer to others.
fn own_tables(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select = database.prepare(
        "select name from sqlite_schema where type = 'table' and name like 'quipu\\_%' escape '\\'
         order by name = 'quipu_files', name",
    )?;
    select.query_map([], |row| row.get(0))?.collect()
}

/// Whether a file, or one in its directory, can be written.
fn is_writable(path: &Path) -> bool {
    let directory = path.parent().unwrap_or(path);
    let can = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|metadata| !metadata.permissions().readonly())
    };
    can(directory) && (!path.exists() || can(path)) && {
        // Permissions are not all there is: the file system may be read only.
        tempfile::Builder::new().tempfile_in(directory).is_ok()
    }
}

/// The index refused.
fn fault(path: &Path) -> impl Fn(rusqlite::Error) -> TraceError {
    move |error| TraceError::Index {
        path: path.to_owned(),
        damaged: matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
        ),
        why: error.to_string(),
    }
}
