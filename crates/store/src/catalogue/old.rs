//! What a catalogue still tells that is about to be replaced.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::SqliteCatalogue;
use super::seal::is_sealed;

/// A log that a catalogue knew.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// The name of its manifest.
    pub(crate) key: String,
    /// Where the agent keeps it.
    pub(crate) path: PathBuf,
    /// One session of several in it.
    pub(crate) part: Option<String>,
    /// The id of its session.
    pub(crate) run_id: Option<String>,
    /// Which version of it was read, and how many bytes; `None` where the catalogue cannot be trusted to know.
    pub(crate) read: Option<(u32, u64)>,
}

impl SqliteCatalogue {
    /// The logs that the catalogue in this file knows, as far as it can be read, and why it could not be read to its
    /// end.
    pub(crate) fn remembered(path: &Path) -> (Vec<Remembered>, Option<String>) {
        let mut known = Vec::new();
        if !path.exists() {
            return (known, None);
        }
        let read = read(path, &mut known);
        (known, read.err().map(|error| error.to_string()))
    }
}

fn read(path: &Path, known: &mut Vec<Remembered>) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    let mut statement = database.prepare(
        "select s.key, cast(s.path as blob), s.part,
                (select t.run_id from transcript t where t.source = s.id), s.id, s.version, s.read_to
         from source s where s.part is null or s.part <> ''",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        known.push(Remembered {
            key: row.get(0)?,
            path: PathBuf::from(std::ffi::OsString::from_vec(row.get(1)?)),
            part: row.get(2)?,
            run_id: row.get(3)?,
            read: is_sealed(&database, row.get(4)?)
                .then(|| Some((row.get(5).ok()?, row.get::<_, i64>(6).ok()?.unsigned_abs())))
                .flatten()
                .filter(|(version, _)| *version > 0),
        });
    }
    Ok(())
}
