//! The catalogue: what is kept, in figures.
//!
//! A `SQLite` database that is wholly derived from the archive. It answers what a list of sessions asks,
//! and remembers where reading of each log stopped. It may be deleted at any time; `quipu import
//! --rebuild` makes it again.

mod lineage;
mod query;
mod schema;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub(crate) use lineage::Copied;
pub use query::{DriftRow, Figures, Filter, NotFound, Order, Sum, TranscriptRow};
pub use write::{Reading, SourceRow, Stamp};

use rusqlite::{Connection, OpenFlags};

/// The catalogue's file.
#[derive(Debug)]
pub struct Catalogue {
    database: Connection,
    path: PathBuf,
}

/// Why the catalogue could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The database refused.
    #[error("the catalogue {path} cannot be used: {source}", path = .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// A later version of Quipu wrote it.
    #[error("the catalogue {path} has version {found}, and this Quipu knows up to {known}; use a newer Quipu, or delete the file and run `quipu import --rebuild`", path = .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The latest that is known.
        known: i64,
    },
}

pub(crate) type Result<T, E = CatalogueError> = std::result::Result<T, E>;

impl Catalogue {
    /// Opens the catalogue, or makes one. An older one is brought up to date.
    pub fn open(path: &Path) -> Result<Self> {
        let fault = fault(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let database = Connection::open_with_flags(path, flags).map_err(&fault)?;
        restrict(path);
        let catalogue = Self {
            database,
            path: path.to_owned(),
        };
        catalogue
            .database
            .execute_batch(
                "pragma journal_mode = wal;
                 pragma synchronous = normal;
                 pragma foreign_keys = on;
                 pragma busy_timeout = 10000;
                 pragma cache_size = -16000;",
            )
            .map_err(&fault)?;
        schema::migrate(&catalogue)?;
        Ok(catalogue)
    }

    /// Opens the catalogue for reading, where there is one.
    pub fn open_existing(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        Self::open(path).map(Some)
    }

    /// A catalogue that is in memory only.
    pub fn in_memory() -> Result<Self> {
        let path = Path::new(":memory:");
        let catalogue = Self {
            database: Connection::open_in_memory().map_err(fault(path))?,
            path: path.to_owned(),
        };
        schema::migrate(&catalogue)?;
        Ok(catalogue)
    }

    /// The database, for queries of one's own.
    pub fn database(&self) -> &Connection {
        &self.database
    }

    /// The catalogue's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn run<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        run(&self.database).map_err(fault(&self.path))
    }

    /// Does several things as one: all of them, or none when the process dies in between.
    pub fn at_once<T, E: From<CatalogueError>>(
        &self,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.run(|database| database.execute_batch("begin immediate"))?;
        match act() {
            Ok(done) => {
                self.run(|database| database.execute_batch("commit"))?;
                Ok(done)
            }
            Err(error) => {
                self.run(|database| database.execute_batch("rollback"))?;
                Err(error)
            }
        }
    }
}

fn fault(path: &Path) -> impl Fn(rusqlite::Error) -> CatalogueError {
    move |source| CatalogueError::Database {
        path: path.to_owned(),
        source,
    }
}

/// Titles and paths are nobody else's business.
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if let Ok(metadata) = path.metadata()
        && metadata.permissions().mode() & 0o077 != 0
    {
        // Where it is not ours to restrict, it is not ours to complain either.
        drop(std::fs::set_permissions(
            path,
            std::fs::Permissions::from_mode(0o600),
        ));
    }
}
