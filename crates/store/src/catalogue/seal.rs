//! Noticing damage to the catalogue.
//!
//! `SQLite` notices when its own structure is damaged, but not when a title or a count of tokens is. So there is a
//! sum over everything that is known of each log. It is made when an import ends; whatever changes what is known
//! removes it (see `schema-3.sql`).

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::{Catalogue, Result, SqliteCatalogue, Upkeep, schema};

/// Everything that is known of a log, each in an order that does not change.
const KNOWN: [&str; 12] = [
    "select * from source where id = ?1",
    "select * from transcript where source = ?1",
    "select u.* from transcript t join spend u on u.transcript = t.id where t.source = ?1 order by u.rowid",
    "select u.* from transcript t join activity u on u.transcript = t.id where t.source = ?1 order by u.rowid",
    "select u.* from transcript t join tool_use u on u.transcript = t.id where t.source = ?1 order by u.rowid",
    "select u.* from transcript t join waste u on u.transcript = t.id where t.source = ?1 order by u.rowid",
    "select u.* from transcript t join blob_use u on u.transcript = t.id where t.source = ?1 order by u.blob",
    "select u.* from transcript t join model_named u on u.transcript = t.id where t.source = ?1 order by u.model",
    "select u.* from transcript t join spawned u on u.transcript = t.id where t.source = ?1 order by u.child",
    "select * from dropped where source = ?1 order by reason",
    "select * from mended where source = ?1 order by what",
    "select * from drift where source = ?1 order by name",
];

/// How many faults of its structure `SQLite` is asked for.
const FAULTS: usize = 20;

impl Upkeep for SqliteCatalogue {
    fn transaction(&self, act: &mut dyn FnMut() -> bool) -> Result<()> {
        let _alone = self.database.lock();
        self.run(|database| database.execute_batch("begin immediate"))?;
        let end = if act() { "commit" } else { "rollback" };
        self.run(|database| database.execute_batch(end))
    }

    fn another(&self) -> Result<Arc<dyn Catalogue>> {
        Ok(Arc::new(Self::open(&self.path)?))
    }

    fn version(&self) -> Result<i64> {
        schema::version(self)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn seal(&self) -> Result<()> {
        let open: Vec<i64> = self.run(|database| {
            let mut open = database.prepare_cached(
                "select id from source where id not in (select source from seal)",
            )?;
            open.query_map([], |row| row.get(0))?.collect()
        })?;
        if open.is_empty() {
            return Ok(());
        }
        let catalogue: &dyn Catalogue = self;
        catalogue.at_once(|| {
            self.run(|database| {
                for id in open {
                    let sum = sum_of(database, id)?;
                    database
                        .prepare_cached("insert or replace into seal values (?1, ?2)")?
                        .execute(params![id, sum])?;
                }
                Ok(())
            })
        })
    }

    fn damages(&self, all: bool) -> Vec<String> {
        let mut damages = Vec::new();
        let check = if all {
            "integrity_check"
        } else {
            "quick_check"
        };
        let faults = self.run(|database| {
            let mut statement = database.prepare(&format!("pragma {check}({FAULTS})"))?;
            let faults = statement.query_map([], |row| row.get::<_, String>(0))?;
            faults.collect::<rusqlite::Result<Vec<_>>>()
        });
        match faults {
            Ok(faults) => damages.extend(faults.into_iter().filter(|fault| fault != "ok")),
            Err(error) => damages.push(error.to_string()),
        }
        match self.unsound() {
            Ok(logs) => damages.extend(logs.into_iter().map(|path| {
                let path = path.display();
                format!("what is known of {path} is not what was put down")
            })),
            Err(error) => damages.push(error.to_string()),
        }
        damages
    }
}

impl SqliteCatalogue {
    /// The logs of which something else is known than was put down.
    fn unsound(&self) -> Result<Vec<PathBuf>> {
        self.run(|database| {
            let mut unsound = Vec::new();
            let mut sealed = database.prepare(
                "select s.id, cast(s.path as blob), l.sum from seal l join source s on s.id = l.source",
            )?;
            let mut rows = sealed.query([])?;
            while let Some(row) = rows.next()? {
                if sum_of(database, row.get(0)?)? != row.get::<_, i64>(2)? {
                    let path = std::ffi::OsString::from_vec(row.get(1)?);
                    unsound.push(path.into());
                }
            }
            Ok(unsound)
        })
    }
}

/// Whether what is known of a log is what was put down. Nobody knows that of a catalogue of an earlier version.
pub(super) fn is_sealed(database: &Connection, source: i64) -> bool {
    let sealed = database
        .prepare_cached("select sum from seal where source = ?1")
        .and_then(|mut seal| seal.query_row([source], |row| row.get::<_, i64>(0)));
    matches!((sealed, sum_of(database, source)), (Ok(sealed), Ok(sum)) if sealed == sum)
}

/// The sum over everything that is known of a log.
fn sum_of(database: &Connection, source: i64) -> rusqlite::Result<i64> {
    let mut bytes = Vec::new();
    for query in KNOWN {
        let mut statement = database.prepare_cached(query)?;
        let columns = statement.column_count();
        let mut rows = statement.query([source])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                put(row.get_ref(column)?, &mut bytes);
            }
        }
        // What ends one table does not begin the next.
        bytes.push(b'|');
    }
    Ok(quipu_agents::hash(&bytes).cast_signed())
}

/// A value as bytes that no other value has.
fn put(value: ValueRef<'_>, bytes: &mut Vec<u8>) {
    let (kind, content): (u8, &[u8]) = match value {
        ValueRef::Null => (0, &[]),
        ValueRef::Integer(number) => {
            bytes.push(1);
            bytes.extend_from_slice(&number.to_le_bytes());
            return;
        }
        ValueRef::Real(number) => {
            bytes.push(2);
            bytes.extend_from_slice(&number.to_le_bytes());
            return;
        }
        ValueRef::Text(text) => (3, text),
        ValueRef::Blob(blob) => (4, blob),
    };
    bytes.push(kind);
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    bytes.extend_from_slice(content);
}
