//! The tables, and how older ones become them.

use super::{Catalogue, CatalogueError, Result};

/// What makes each version out of the one before it. Never changed once released: a catalogue of each
/// released version is kept as a test.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

pub(super) fn migrate(catalogue: &Catalogue) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let version = || {
        catalogue.run(|database| {
            database.query_row("pragma user_version", [], |row| row.get::<_, i64>(0))
        })
    };
    let found = version()?;
    if found > known {
        return Err(CatalogueError::Newer {
            path: catalogue.path.clone(),
            found,
            known,
        });
    }
    if found == known {
        return Ok(());
    }
    catalogue.at_once(|| {
        // Another process may have been faster.
        let found = usize::try_from(version()?).unwrap_or(0);
        for migration in &MIGRATIONS[found..] {
            catalogue.run(|database| database.execute_batch(migration))?;
        }
        catalogue.run(|database| database.pragma_update(None, "user_version", known))
    })
}
