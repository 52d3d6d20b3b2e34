//! The catalogue: what is kept, in figures.
//!
//! A `SQLite` database that is wholly derived from the archive. It answers what a list of sessions asks,
//! and remembers where reading of each log stopped. It may be deleted at any time; `quipu import
//! --rebuild` makes it again.

mod advances;
mod lineage;
mod old;
mod origin;
mod passes;
mod query;
mod received;
mod schema;
mod seal;
mod spend;
mod traits;
mod uses;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use advances::{Advance, AdvanceKind, Span};
pub use lineage::{Copied, Lineage};
pub(crate) use old::Remembered;
pub use passes::{Pass, Passed};
pub use query::{After, DriftRow, Figures, Filter, NotFound, Order, Sum, TranscriptRow};
pub use received::{Received, ReceivedFrom};
pub use spend::{ActivityRow, Roots, Slots, SpendRow, SubjectRow, WasteRow};
pub use traits::{
    Advances, Catalogue, IndexedPasses, Lineages, Sources, Spending, Transcripts, Upkeep,
};
pub(crate) use write::native_id;
pub use write::{ADAPTERS, Reading, SourceRow, Stamp};

use parking_lot::ReentrantMutex;
use rusqlite::{Connection, OpenFlags};

/// The catalogue in a file of `SQLite`. Cheap to clone and to share between threads: what one of them does at once, no other comes
/// between.
#[derive(Debug, Clone)]
pub struct SqliteCatalogue {
    database: Arc<ReentrantMutex<Connection>>,
    path: PathBuf,
}

/// Why the catalogue could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The database refused.
    #[error("the catalogue {path} cannot be used: {why}; `quipu import --rebuild` makes it again from the archive", path = .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
        /// Whether the file itself is damaged, or no catalogue at all.
        damaged: bool,
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

impl SqliteCatalogue {
    fn new(database: Connection, path: &Path) -> Self {
        Self {
            database: Arc::new(ReentrantMutex::new(database)),
            path: path.to_owned(),
        }
    }

    /// Opens the catalogue, or makes one. An older one is brought up to date.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let opened = Connection::open_with_flags(path, flags).and_then(|database| {
            // Titles and paths are nobody else's business.
            quipu_files::restrict(path);
            database.execute_batch(
                "pragma busy_timeout = 10000;
                 pragma journal_mode = wal;
                 pragma synchronous = normal;
                 pragma foreign_keys = on;
                 pragma cache_size = -16000;",
            )?;
            Ok(database)
        });
        let catalogue = match opened {
            Ok(database) => {
                origin::tell(&database, path.parent()).map_err(fault(path))?;
                Self::new(database, path)
            }
            Err(error) if path.exists() && is_refusal(&error) => return Self::open_read_only(path),
            Err(error) => return Err(fault(path)(error)),
        };
        schema::migrate(&catalogue)?;
        // A catalogue that cannot be written to now can be read all the same.
        drop(origin::remember(&catalogue));
        Ok(catalogue)
    }

    /// Opens a catalogue that may not be written to: a backup, somebody else's.
    fn open_read_only(path: &Path) -> Result<Self> {
        // Nobody writes to it, so nothing has to be locked either; what is written in a journal beside it is
        // not seen.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte);
        let name: Vec<String> = path
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .map(|byte| match byte {
                byte if plain(*byte) => char::from(*byte).to_string(),
                byte => format!("%{byte:02X}"),
            })
            .collect();
        let address = format!("file:{}?immutable=1", name.concat());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let database = Connection::open_with_flags(address, flags).map_err(fault(path))?;
        origin::tell(&database, path.parent()).map_err(fault(path))?;
        let catalogue = Self::new(database, path);
        schema::check(&catalogue)?;
        Ok(catalogue)
    }

    /// Sets a damaged catalogue aside, so that another can take its place. Gives where it is now.
    pub fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
        let aside = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let free = (1..).map(|n| aside(&format!(".damaged-{n}")));
        let to = free
            .take(1000)
            .find(|to| !to.exists())
            .unwrap_or_else(|| aside(".damaged"));
        std::fs::rename(path, &to)?;
        // Of no use without the file it belongs to.
        Self::remove_journal(path)?;
        Ok(to)
    }

    /// Refuses to go on when a later version of Quipu wrote a catalogue. One that cannot be read is not refused.
    pub(crate) fn refuse_newer(path: &Path) -> Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let Ok(database) = Connection::open_with_flags(path, flags) else {
            return Ok(());
        };
        let catalogue = Self::new(database, path);
        match schema::check_newer(&catalogue) {
            Err(error @ CatalogueError::Newer { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes a catalogue, with what lies beside it.
    pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
        Self::remove_journal(path)?;
        remove_file(path)
    }

    /// Removes what lies beside a catalogue: it must not be taken for what belongs to another one.
    fn remove_journal(path: &Path) -> std::io::Result<()> {
        for suffix in ["-wal", "-shm", "-journal"] {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            remove_file(Path::new(&name))?;
        }
        Ok(())
    }

    /// Puts this catalogue in the place of another one, whatever that is like. Both are in the same directory.
    pub(crate) fn take_place_of(self, other: &Path) -> Result<()> {
        // All of it has to be in the one file that is renamed.
        self.run(|database| {
            database.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
            database.query_row("pragma journal_mode = delete", [], |_| Ok(()))
        })?;
        let Self { database, path } = self;
        if let Some(database) = Arc::into_inner(database) {
            let closed = database.into_inner().close();
            closed.map_err(|(_, error)| fault(&path)(error))?;
        }
        let refused = |error: std::io::Error| CatalogueError::Database {
            path: other.to_owned(),
            why: format!("it cannot be replaced: {error}"),
            damaged: false,
        };
        std::fs::File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(refused)?;
        if other.is_dir() {
            std::fs::remove_dir_all(other).map_err(refused)?;
        }
        Self::remove_journal(other).map_err(refused)?;
        std::fs::rename(&path, other).map_err(refused)
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
        let database = Connection::open_in_memory().map_err(fault(path))?;
        origin::tell(&database, None).map_err(fault(path))?;
        let catalogue = Self::new(database, path);
        schema::migrate(&catalogue)?;
        Ok(catalogue)
    }

    /// Runs statements of one's own, as tests do.
    pub fn execute(&self, statements: &str) -> Result<()> {
        self.run(|database| database.execute_batch(statements))
    }

    fn run<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        run(&self.database.lock()).map_err(fault(&self.path))
    }
}

/// Removes a file, if it is there.
fn remove_file(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn fault(path: &Path) -> impl Fn(rusqlite::Error) -> CatalogueError {
    move |error| CatalogueError::Database {
        path: path.to_owned(),
        damaged: matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
        ),
        why: error.to_string(),
    }
}

/// Whether the file is all right but may not be written to.
fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            rusqlite::ErrorCode::ReadOnly
                | rusqlite::ErrorCode::CannotOpen
                | rusqlite::ErrorCode::PermissionDenied
        )
    )
}
