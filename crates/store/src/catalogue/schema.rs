//! The tables, and how older ones become them.

use super::{Catalogue, CatalogueError, Result, SqliteCatalogue};

/// What makes each version out of the one before it. Never changed once released: a catalogue of each
/// released version is kept as a test.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
];

fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

pub(super) fn version(catalogue: &SqliteCatalogue) -> Result<i64> {
    catalogue.run(|database| database.query_row("pragma user_version", [], |row| row.get(0)))
}

/// Refuses a catalogue of a later version; gives the version of any other.
pub(super) fn check_newer(catalogue: &SqliteCatalogue) -> Result<i64> {
    let (found, known) = (version(catalogue)?, known());
    if found > known {
        return Err(CatalogueError::Newer {
            path: catalogue.path.clone(),
            found,
            known,
        });
    }
    Ok(found)
}

/// Refuses a catalogue that would have to be brought up to date first.
pub(super) fn check(catalogue: &SqliteCatalogue) -> Result<()> {
    if check_newer(catalogue)? == known() {
        return Ok(());
    }
    Err(CatalogueError::Database {
        path: catalogue.path.clone(),
        why: "it is of an older version and may not be written to".to_owned(),
        damaged: false,
    })
}

pub(super) fn migrate(catalogue: &SqliteCatalogue) -> Result<()> {
    let known = known();
    if check_newer(catalogue)? == known {
        return Ok(());
    }
    let at_once: &dyn Catalogue = catalogue;
    at_once.at_once(|| {
        // Another process may have been faster.
        let found = usize::try_from(version(catalogue)?).unwrap_or(0);
        for migration in &MIGRATIONS[found..] {
            catalogue.run(|database| database.execute_batch(migration))?;
        }
        catalogue.run(|database| database.pragma_update(None, "user_version", known))
    })
}
