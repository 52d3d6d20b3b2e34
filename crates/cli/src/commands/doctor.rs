//! `quipu doctor`: is what is kept sound, and what is not known?

use std::io::Write;
use std::path::Path;

use quipu_store::catalogue::DriftRow;
use quipu_store::documents;
use quipu_store::facade::{Diagnosis, Examine};

use super::import::explain;
use crate::args::Doctor;
use crate::config::Config;
use crate::error::{Exit, Result};
use crate::json;
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{DIM, GREEN, RED, YELLOW, bytes, clean, columns, count, out};

/// Damages that are shown; the rest is counted.
const SHOWN: usize = 20;

/// Shows what was found out.
struct Shown<'d>(&'d Diagnosis);

impl std::ops::Deref for Shown<'_> {
    type Target = Diagnosis;

    fn deref(&self) -> &Diagnosis {
        self.0
    }
}

pub(crate) fn run(args: &Doctor, place: &HomePlace) -> Result<Exit> {
    let home = place.home()?;
    let host = HomePlace::host_of(&home)?;
    let config = Config::load(&home).err();
    let examine = Examine {
        all: args.check,
        named: place.is_named(),
        also: config
            .map(|error| format!("{error}; mend it, or move the file away"))
            .into_iter()
            .collect(),
    };
    let found = Diagnosis::of(&home, &host, examine, || {
        place.store().map_err(|error| error.to_string())
    });
    let mut out = out();
    let shown = Shown(&found);
    if args.json {
        writeln!(
            out,
            "{}",
            json::document(&documents::doctor(&found, &home))?
        )?;
    } else if args.drift {
        shown.write_drift(&mut out)?;
    } else {
        shown.write(&mut out, &home)?;
    }
    out.flush()?;
    Ok(if found.attention.is_empty() {
        Exit::Done
    } else {
        Exit::Found
    })
}

impl Shown<'_> {
    fn write(&self, out: &mut impl Write, home: &Path) -> Result<()> {
        let ok = format!("{GREEN}ok{GREEN:#}");
        match self.permissions {
            _ if self.unreachable.is_some() => {
                writeln!(out, "home       {} {RED}unreachable{RED:#}", home.display())?;
            }
            None => writeln!(out, "home       {}, which is not there yet", home.display())?,
            Some(mode) if mode & 0o077 != 0 => {
                writeln!(
                    out,
                    "home       {} {RED}mode {mode:o}{RED:#}",
                    home.display()
                )?;
            }
            Some(_) => writeln!(out, "home       {} {ok}", home.display())?,
        }
        if let Some(version) = self.catalogue_version {
            let health = &self.health;
            let state = match (health.catalogue.len() as u64, health.uncatalogued) {
                (0, 0) => ok.clone(),
                (0, n) => format!("{YELLOW}{} missing{YELLOW:#}", count(n, "log")),
                (n, _) => format!("{RED}{}{RED:#}", count(n, "damage")),
            };
            writeln!(out, "catalogue  version {version}, {} {state}", self.census)?;
            let usage = &health.usage;
            let ratio = match usage.original_bytes {
                0 => String::new(),
                n => format!(", compressed to {} %", usage.compressed_bytes * 100 / n),
            };
            let state = match (health.archive.len(), health.checked) {
                (0, Some(n)) => format!("{ok}, {} checked", count(n, "snapshot")),
                (0, None) => format!("{ok} {DIM}(--check reads all of it){DIM:#}"),
                (n, _) => format!("{RED}{}{RED:#}", count(n as u64, "damage")),
            };
            writeln!(
                out,
                "archive    {}, {} in {}{ratio}, {} {state}",
                count(usage.sources, "source"),
                bytes(usage.original_bytes),
                count(usage.chunks, "chunk"),
                bytes(usage.compressed_bytes),
            )?;
        }
        for damage in self.damages().take(SHOWN) {
            writeln!(out, "  {RED}{}{RED:#}", clean(damage))?;
        }
        match self.damages().count().saturating_sub(SHOWN) {
            0 => {}
            more => writeln!(out, "  and {more} more")?,
        }
        let there: Vec<&str> = self
            .places
            .iter()
            .filter(|(_, roots)| !roots.is_empty())
            .map(|(brand, _)| *brand)
            .collect();
        let missing = self.places.len() - there.len();
        let are = if missing == 1 { "is" } else { "are" };
        let names = if there.is_empty() {
            "none here".to_owned()
        } else {
            there.join(", ")
        };
        writeln!(
            out,
            "agents     {names} {DIM}({missing} more {are} known){DIM:#}"
        )?;
        self.write_read(out)?;
        writeln!(out)?;
        for attention in &self.attention {
            writeln!(
                out,
                "{YELLOW}needs attention: {}{YELLOW:#}",
                clean(attention)
            )?;
        }
        if self.attention.is_empty() {
            writeln!(out, "Nothing needs attention.")?;
        }
        Ok(())
    }

    /// What reading found.
    fn write_read(&self, out: &mut impl Write) -> Result<()> {
        if !self.problems.is_empty() {
            writeln!(
                out,
                "\nLogs that could not be read wholly (the bytes are kept):"
            )?;
            let mut table = Table::new(&[">LOGS", "WHY", "FOR ONE"]);
            for (what, (logs, path)) in &self.problems {
                table.row([logs.to_string(), what.clone(), path.clone()]);
            }
            table.write(out, columns(), Some(1))?;
        }
        if !self.dropped.is_empty() {
            writeln!(
                out,
                "\nRecords that became nothing, and why (the bytes are kept):"
            )?;
            let mut table = Table::new(&[">RECORDS", "WHY"]);
            for (why, records) in &self.dropped {
                let why = explain(why, *records);
                let why = why.split_once(' ').map_or("", |(_, why)| why);
                table.row([records.to_string(), why.to_owned()]);
            }
            table.write(out, columns(), None)?;
        }
        let left_out = |row: &&DriftRow| row.name.starts_with("left_out:");
        let sums = |rows: &[&DriftRow]| {
            let sightings: u64 = rows.iter().map(|row| row.sightings).sum();
            (
                count(sightings, "sighting"),
                count(rows.len() as u64, "name"),
            )
        };
        let (lost, unknown): (Vec<&DriftRow>, Vec<&DriftRow>) =
            self.drift.iter().partition(left_out);
        for (rows, what) in [
            (unknown, "of what Quipu does not know"),
            (lost, "of fields that reach no event"),
        ] {
            if !rows.is_empty() {
                let (sightings, names) = sums(&rows);
                writeln!(
                    out,
                    "\n{sightings} {what}, under {names}; `quipu doctor --drift` lists them."
                )?;
            }
        }
        Ok(())
    }

    fn write_drift(&self, out: &mut impl Write) -> Result<()> {
        if self.drift.is_empty() {
            writeln!(out, "Everything that was read is known.")?;
            return Ok(());
        }
        let mut table = Table::new(&[
            "AGENT",
            "VERSION",
            "UNKNOWN",
            ">SIGHTINGS",
            ">LOGS",
            "FIRST SEEN AT",
        ]);
        for row in &self.drift {
            let version = if row.version.is_empty() {
                "?"
            } else {
                &row.version
            };
            table.row([
                row.agent.clone(),
                version.to_owned(),
                row.name.replacen(':', " ", 1),
                row.sightings.to_string(),
                row.logs.to_string(),
                format!("{}:{}", row.path.display(), row.line),
            ]);
        }
        // Places are to be copied, so they are not cut.
        table.write(out, usize::MAX, None)?;
        Ok(())
    }
}
