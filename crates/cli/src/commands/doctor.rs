//! `quipu doctor`: is what is kept sound, and what is not known?

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use quipu_agents::{FAMILIES, Host};
use quipu_store::Store;
use quipu_store::archive::{ArchiveError, Usage};
use quipu_store::catalogue::DriftRow;
use quipu_store::import::Search;
use serde_json::{Value, json};

use super::import::explain;
use super::list::Census;
use crate::args::Doctor;
use crate::error::{Exit, Result};
use crate::locate::Place;
use crate::table::Table;
use crate::terminal::{DIM, GREEN, RED, YELLOW, bytes, clean, columns, count, out};

/// Damages that are shown; the rest is counted.
const SHOWN: usize = 20;

/// What was found out.
#[derive(Debug, Default)]
struct Findings {
    /// What needs attention.
    attention: Vec<String>,
    permissions: Option<u32>,
    /// Why the home cannot be used.
    unreachable: Option<String>,
    catalogue_version: Option<i64>,
    census: Census,
    usage: Usage,
    damaged: Vec<String>,
    checked: Option<u64>,
    /// Logs that are kept and not in the catalogue.
    uncatalogued: u64,
    /// Logs and directories of agents that cannot be read, and why.
    unreadable: Vec<(PathBuf, String)>,
    /// Problems by what they say: how many logs, and one of them.
    problems: BTreeMap<String, (u64, String)>,
    dropped: Vec<(String, u64)>,
    drift: Vec<DriftRow>,
}

pub(crate) fn run(args: &Doctor, place: &Place) -> Result<Exit> {
    let home = place.home()?;
    let host = Place::host()?;
    let mut found = Findings {
        unreachable: unreachable(&home, place.is_named()),
        ..Findings::default()
    };
    if let Some(why) = &found.unreachable {
        found.attention.push(why.clone());
    } else if let Ok(metadata) = home.metadata() {
        let mode = metadata.permissions().mode() & 0o777;
        found.permissions = Some(mode);
        if mode & 0o077 != 0 {
            found.attention.push(format!(
                "others can look into {} (mode {mode:o}); `chmod 700` it",
                home.display()
            ));
        }
    }
    if found.unreachable.is_none() {
        match place.store() {
            Ok(None) => {}
            Ok(Some(store)) => examine(&store, args.check, &mut found)?,
            Err(error) => found.attention.push(error.to_string()),
        }
    }
    found.unreadable = unreadable(&host);
    if let Some((path, why)) = found.unreadable.first() {
        let (n, path) = (found.unreadable.len() as u64, path.display());
        let places = match n {
            1 => "1 log or directory of an agent".to_owned(),
            n => format!("{n} logs or directories of agents"),
        };
        let one = if n == 1 { "" } else { ", for one" };
        found
            .attention
            .push(format!("{places} cannot be read: {path}: {why}{one}"));
    }
    let mut places: BTreeMap<&str, Vec<PathBuf>> = BTreeMap::new();
    for at in FAMILIES.iter().flat_map(|family| family.places(&host)) {
        let there = places.entry(at.brand).or_default();
        if at.root.exists() {
            there.push(at.root);
        }
    }
    let mut out = out();
    if args.json {
        let document = found.json(&home, &places);
        writeln!(out, "{}", crate::json::document(&document))?;
    } else if args.drift {
        found.write_drift(&mut out)?;
    } else {
        found.write(&mut out, &home, &places)?;
    }
    out.flush()?;
    Ok(if found.attention.is_empty() {
        Exit::Done
    } else {
        Exit::Found
    })
}

/// Why a home cannot be used, if it cannot. `named` is whether a person named it.
fn unreachable(home: &Path, named: bool) -> Option<String> {
    let shown = home.display();
    match home.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            let error = std::fs::read_dir(home).err()?;
            return Some(format!("the home {shown} cannot be looked into: {error}"));
        }
        Ok(_) => return Some(format!("the home {shown} is not a directory")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Some(format!("the home {shown} cannot be reached: {error}")),
    }
    let above = home.parent().filter(|it| !it.as_os_str().is_empty())?;
    match above.metadata() {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some(format!(
            "the home {shown} cannot be made: {} is not a directory",
            above.display()
        )),
        // The directory for data may not be there yet; one that was named should be.
        Err(_) if named => Some(format!(
            "the home {shown} is not there, and neither is {}",
            above.display()
        )),
        Err(_) => None,
    }
}

/// What agents have that we may not read.
fn unreadable(host: &Host) -> Vec<(PathBuf, String)> {
    let search = Search::of_places(host, &[]);
    let mut found: Vec<(PathBuf, String)> = search
        .problems
        .into_iter()
        .map(|problem| (problem.path, problem.what))
        .collect();
    for candidate in search.found {
        // Opening a pipe might wait for ever.
        if candidate.path.is_file()
            && let Err(error) = File::open(&candidate.path)
        {
            found.push((candidate.path, error.to_string()));
        }
    }
    found
}

fn examine(store: &Store, check: bool, found: &mut Findings) -> Result<()> {
    let (catalogue, archive) = (store.catalogue(), store.archive());
    let version = catalogue
        .database()
        .query_row("pragma user_version", [], |row| row.get::<_, i64>(0));
    found.catalogue_version = version.ok();
    found.census = Census::of(store)?;
    // By name, not by agent: what once seemed to be another agent's log is still kept as that.
    let known: HashSet<(PathBuf, Option<String>)> = catalogue
        .sources()?
        .into_iter()
        .map(|source| (source.path, source.part))
        .collect();
    found.usage = archive.usage()?;
    let mut checked = 0;
    for source in archive.sources() {
        if let Ok(source) = &source {
            let of = (source.key.path.clone(), source.key.part.clone());
            let is_log = source.key.part.as_deref() != Some(quipu_store::import::BESIDE);
            found.uncatalogued += u64::from(is_log && !known.contains(&of));
        }
        match source {
            Ok(source) if check => {
                for version in &source.versions {
                    checked += 1;
                    if let Err(error) = archive.check(version) {
                        found.damaged.push(error.to_string());
                    }
                }
            }
            Ok(_) => {}
            Err(error @ ArchiveError::File(_)) => return Err(error.into()),
            Err(error) => found.damaged.push(error.to_string()),
        }
    }
    found.checked = check.then_some(checked);
    if found.uncatalogued > 0 {
        let (logs, are) = match found.uncatalogued {
            1 => ("1 archived log".to_owned(), "is"),
            n => (format!("{n} archived logs"), "are"),
        };
        found.attention.push(format!(
            "{logs} {are} not in the catalogue: run `quipu import --rebuild`"
        ));
    }
    if !found.damaged.is_empty() {
        let damages = count(found.damaged.len() as u64, "damage");
        found.attention.push(format!("{damages} in the archive"));
    }
    for source in catalogue.sources()? {
        if let Some(problem) = source.problem {
            let path = source.path.display().to_string();
            found.problems.entry(problem).or_insert((0, path)).0 += 1;
        }
    }
    if !found.problems.is_empty() {
        let logs: u64 = found.problems.values().map(|problem| problem.0).sum();
        let logs = count(logs, "log");
        found
            .attention
            .push(format!("{logs} could not be read wholly"));
    }
    found.dropped = catalogue.dropped()?;
    found.drift = catalogue.drift()?;
    Ok(())
}

impl Findings {
    fn write(
        &self,
        out: &mut impl Write,
        home: &Path,
        places: &BTreeMap<&str, Vec<PathBuf>>,
    ) -> Result<()> {
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
            let state = match self.uncatalogued {
                0 => ok.clone(),
                n => format!("{YELLOW}{} missing{YELLOW:#}", count(n, "log")),
            };
            writeln!(out, "catalogue  version {version}, {} {state}", self.census)?;
            let usage = &self.usage;
            let ratio = match usage.original_bytes {
                0 => String::new(),
                n => format!(", compressed to {} %", usage.compressed_bytes * 100 / n),
            };
            let state = match (self.damaged.len(), self.checked) {
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
        for damage in self.damaged.iter().take(SHOWN) {
            writeln!(out, "  {RED}{}{RED:#}", clean(damage))?;
        }
        if self.damaged.len() > SHOWN {
            writeln!(out, "  and {} more", self.damaged.len() - SHOWN)?;
        }
        let there: Vec<&str> = places
            .iter()
            .filter(|(_, roots)| !roots.is_empty())
            .map(|(brand, _)| *brand)
            .collect();
        let missing = places.len() - there.len();
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

    fn json(&self, home: &Path, places: &BTreeMap<&str, Vec<PathBuf>>) -> Value {
        let roots = |roots: &[PathBuf]| -> Vec<String> {
            roots
                .iter()
                .map(|root| root.display().to_string())
                .collect()
        };
        json!({
            "home": home.display().to_string(),
            "mode": self.permissions.map(|mode| format!("{mode:o}")),
            "catalogue_version": self.catalogue_version,
            "unreachable": self.unreachable,
            "transcripts": self.census.sessions + self.census.subagents + self.census.copies,
            "sessions": self.census.sessions,
            "subagents": self.census.subagents,
            "copies": self.census.copies,
            "uncatalogued": self.uncatalogued,
            "unreadable": self.unreadable.iter().map(|(path, what)| json!({
                "path": path.display().to_string(),
                "what": what,
            })).collect::<Vec<_>>(),
            "archive": {
                "sources": self.usage.sources,
                "versions": self.usage.versions,
                "original_bytes": self.usage.original_bytes,
                "chunks": self.usage.chunks,
                "compressed_bytes": self.usage.compressed_bytes,
                "checked": self.checked,
                "damaged": self.damaged,
            },
            "agents": places.iter().map(|(brand, there)| json!({
                "agent": brand,
                "places": roots(there),
            })).collect::<Vec<_>>(),
            "problems": self.problems.iter().map(|(what, (logs, path))| json!({
                "what": what,
                "logs": logs,
                "path": path,
            })).collect::<Vec<_>>(),
            "dropped": self.dropped.iter().cloned().collect::<BTreeMap<String, u64>>(),
            "drift": self.drift.iter().map(|row| json!({
                "agent": row.agent,
                "version": row.version,
                "name": row.name,
                "sightings": row.sightings,
                "logs": row.logs,
                "path": row.path.display().to_string(),
                "line": row.line,
                "offset": row.offset,
            })).collect::<Vec<_>>(),
            "attention": self.attention,
        })
    }
}
