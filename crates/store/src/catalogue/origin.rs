//! Which home a transcript is of.
//!
//! A transcript's address is given once: the origin of its home and the name of its source. It never moves to another
//! log, and those of two homes never meet. The origin is a random number in `<home>/origin`; it is not derived from
//! anything, so it stays when everything else is made again.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use quipu_model::hex;
use rusqlite::Connection;

/// How many bytes an origin has.
const BYTES: usize = 4;

/// How many digits of the name of a source are in an address.
pub(super) const DIGITS: usize = 16;

/// The origin of the home that a catalogue is of. Where none can be put down, addresses hold for as long as the process.
pub(super) fn of_home(home: &Path) -> String {
    let path = home.join("origin");
    let known = || {
        let text = std::fs::read_to_string(&path).ok()?;
        let text = text.trim();
        let is_one = text.len() == 2 * BYTES && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_one.then(|| text.to_owned())
    };
    if let Some(origin) = known() {
        return origin;
    }
    let mut bytes = [0; BYTES];
    let drawn = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if drawn.is_err() {
        return "0".repeat(2 * BYTES);
    }
    let origin = hex::encode(&bytes);
    let placed = crate::files::place(&path, format!("{origin}\n").as_bytes(), &home.join("tmp"));
    match placed {
        // Another process may have been faster.
        Ok(()) => known().unwrap_or(origin),
        Err(_) => origin,
    }
}

/// Lets queries say addresses.
pub(super) fn tell(database: &Connection, home: Option<&Path>) -> rusqlite::Result<()> {
    let origin = home.map_or_else(|| "0".repeat(2 * BYTES), of_home);
    database.execute_batch(&format!(
        "create temp table home (origin text); insert into temp.home values ('{origin}')"
    ))
}
