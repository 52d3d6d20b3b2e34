//! Which home a transcript is of.
//!
//! A transcript's address is given once: the origin of its home and the name of its source. It never moves to another
//! log, and those of two homes never meet. The origin is a random number in `<home>/origin`; it is not derived from
//! anything, so it stays when everything else is made again. The catalogue remembers it as well, so that either of
//! the two may be lost.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use quipu_model::hex;
use rusqlite::Connection;

use super::{IndexedPasses as _, Result, SqliteCatalogue};

/// How many bytes an origin has.
const BYTES: usize = 4;

/// How many digits of the name of a source are in an address.
pub(super) const DIGITS: usize = 16;

/// What the catalogue remembers the origin under.
const NAME: &str = "origin";

/// The origin of a home in which none can be put down. An address with it means what is in the home at hand.
pub(super) fn unknown() -> String {
    "0".repeat(2 * BYTES)
}

fn is_origin(text: &str) -> bool {
    text.len() == 2 * BYTES && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// What a home says that its origin is.
fn in_file(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| is_origin(text))
}

/// The origin of a home: the one it has, `remembered`, or a new one.
fn of_home(home: &Path, remembered: Option<String>) -> String {
    let path = home.join(NAME);
    if let Some(origin) = in_file(&path) {
        return origin;
    }
    let Some(origin) = remembered.or_else(drawn) else {
        return unknown();
    };
    match put_if_absent(&path, &origin, &home.join("tmp")) {
        // Another process may have been faster.
        Ok(()) => in_file(&path).unwrap_or(origin),
        Err(_) => in_file(&path).unwrap_or_else(unknown),
    }
}

fn drawn() -> Option<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .ok()?;
    Some(hex::encode(&bytes))
}

/// Puts an origin down, unless one is there.
fn put_if_absent(path: &Path, origin: &str, tmp: &Path) -> std::io::Result<()> {
    let (mut file, written) = crate::files::create_temporary(tmp).map_err(|error| error.source)?;
    let placed = file
        .write_all(format!("{origin}\n").as_bytes())
        .and_then(|()| {
            // What is there and says nothing would be in the way for ever.
            if path.exists() && in_file(path).is_none() {
                std::fs::remove_file(path)?;
            }
            std::fs::hard_link(&written, path)
        });
    // What cannot be removed is swept later.
    drop(std::fs::remove_file(&written));
    placed
}

/// Lets queries say addresses.
pub(super) fn tell(database: &Connection, home: Option<&Path>) -> rusqlite::Result<()> {
    let remembered = || {
        let query = "select value from meta where name = ?1";
        // A new catalogue, and the first version of it, have no such table.
        let value = database.query_row(query, [NAME], |row| row.get::<_, String>(0));
        value.ok().filter(|origin| is_origin(origin))
    };
    let origin = home.map_or_else(unknown, |home| of_home(home, remembered()));
    database.execute_batch(&format!(
        "create temp table home (origin text); insert into temp.home values ('{origin}')"
    ))
}

/// Puts the origin into the catalogue, where it is another than the one that is there.
pub(super) fn remember(catalogue: &SqliteCatalogue) -> Result<()> {
    let told: String = catalogue
        .run(|database| database.query_row("select origin from temp.home", [], |row| row.get(0)))?;
    if told != unknown() && catalogue.meta(NAME)?.as_deref() != Some(&told) {
        catalogue.put_meta(NAME, &told)?;
    }
    Ok(())
}
