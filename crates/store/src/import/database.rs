//! Private copies of databases.
//!
//! Opening a `SQLite` database, even to read, may lock it, write beside it and recover it. None of that is
//! ours to do to an agent's database, so it is copied together with its journal and only the copy is
//! opened. This is the only use of `SQLite` outside of the catalogue and the index of traces: it reads databases that
//! agents own, and adapters are given the copy.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::find;
use super::keep::KeepError;
use crate::catalogue::Stamp;

/// What every `SQLite` database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How often a copy is tried while the database is being written.
const TRIES: usize = 5;

/// Up to so many bytes, all of a database is checked.
const CHECKED_WHOLE: i64 = 256 << 20;

/// Files beside a database without which it is not whole.
const BESIDE: [&str; 2] = ["-wal", "-journal"];

/// Whether a file is a database.
pub(super) fn is_database(file: &mut File) -> io::Result<bool> {
    let mut begin = [0; MAGIC.len()];
    file.seek(SeekFrom::Start(0))?;
    let found = match file.read_exact(&mut begin) {
        Ok(()) => begin == *MAGIC,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(0))?;
    Ok(found)
}

/// What a database looks like, with what lies beside it.
pub(super) fn stamp(path: &Path, own: Stamp) -> Stamp {
    let mut stamp = own;
    for beside in BESIDE {
        if let Ok(metadata) = fs::metadata(with_suffix(path, beside)) {
            let other = find::stamp(&metadata);
            stamp.size += other.size;
            stamp.modified = stamp.modified.max(other.modified);
        }
    }
    stamp
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A copy, which goes when it is dropped.
pub(super) struct Copy {
    connection: Option<Connection>,
    _directory: tempfile::TempDir,
}

impl Copy {
    /// Copies a database into a directory of its own below `temporary`.
    pub(super) fn of(path: &Path, temporary: &Path) -> Result<Self, KeepError> {
        let directory = tempfile::Builder::new()
            .permissions(quipu_files::directory_permissions())
            .tempdir_in(temporary)?;
        let copy = directory.path().join("copy.db");
        let state = |path: &Path| fs::metadata(path).map(|metadata| find::stamp(&metadata));
        for attempt in 1.. {
            // What is written goes to the journal first. As long as the database itself does not change, any
            // beginning of its journal goes with it: an entry that is cut off is not played.
            let before = state(path)?;
            fs::copy(path, &copy)?;
            for beside in BESIDE {
                let to = with_suffix(&copy, beside);
                match fs::copy(with_suffix(path, beside), &to) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        if to.exists() {
                            fs::remove_file(&to)?;
                        }
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if state(path)? == before {
                break;
            }
            if attempt == TRIES {
                return Err(KeepError::BusyDatabase);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let refuse = |error: rusqlite::Error| KeepError::Database(error.to_string());
        // The copy may be written to: its journal has to be played.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&copy, flags).map_err(refuse)?;
        connection
            .execute_batch(
                "pragma trusted_schema = off; pragma cell_size_check = on; pragma mmap_size = 0;",
            )
            .map_err(refuse)?;
        Ok(Self {
            connection: Some(connection),
            _directory: directory,
        })
    }

    /// What is wrong with the database. A damaged one gives what it still has, and does not say what it has not.
    pub(super) fn damage(&self) -> Option<String> {
        let connection = self.connection();
        let pages: i64 = connection
            .query_row(
                "select page_count * page_size from pragma_page_count, pragma_page_size",
                [],
                |row| row.get(0),
            )
            .unwrap_or(0);
        // Comparing indices with their tables takes long; of a huge database only the tables are looked at.
        let check = if pages <= CHECKED_WHOLE {
            "pragma integrity_check(1)"
        } else {
            "pragma quick_check(1)"
        };
        let found = connection.query_row(check, [], |row| row.get::<_, String>(0));
        match found {
            Ok(found) if found == "ok" => None,
            Ok(found) => Some(found),
            Err(error) => Some(error.to_string()),
        }
    }

    #[expect(clippy::expect_used, reason = "it is only taken when dropped")]
    pub(super) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("there until dropped")
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Closed before its directory goes.
        drop(self.connection.take());
    }
}
