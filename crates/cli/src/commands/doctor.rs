//! `quipu doctor`: is what is kept sound, and what is not known?

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use quipu_agents::FAMILIES;
use quipu_store::Store;
use quipu_store::archive::{ArchiveError, Usage};
use quipu_store::catalogue::{DriftRow, Filter};
use serde_json::{Value, json};

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
    catalogue_version: Option<i64>,
    transcripts: u64,
    usage: Usage,
    damaged: Vec<String>,
    checked: Option<u64>,
    /// Problems by what they say: how many logs, and one of them.
    problems: BTreeMap<String, (u64, String)>,
    dropped: Vec<(String, u64)>,
    drift: Vec<DriftRow>,
}

pub(crate) fn run(args: &Doctor, place: &Place) -> Result<Exit> {
    let home = place.home()?;
    let host = Place::host()?;
    let mut found = Findings::default();
    if let Ok(metadata) = home.metadata() {
        let mode = metadata.permissions().mode() & 0o777;
        found.permissions = Some(mode);
        if mode & 0o077 != 0 {
            found.attention.push(format!(
                "others can look into {} (mode {mode:o}); `chmod 700` it",
                home.display()
            ));
        }
    }
    match place.store() {
        Ok(None) => {}
        Ok(Some(store)) => examine(&store, args.check, &mut found)?,
        Err(error) => found.attention.push(error.to_string()),
    }
    let mut places: BTreeMap<&str, Vec<std::path::PathBuf>> = BTreeMap::new();
    for at in FAMILIES.iter().flat_map(|family| family.places(&host)) {
        let there = places.entry(at.brand).or_default();
        if at.root.exists() {
            there.push(at.root);
        }
    }
    let mut out = out();
    if args.json {
        let document = found.json(&home, &places);
        writeln!(out, "{document:#}")?;
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

fn examine(store: &Store, check: bool, found: &mut Findings) -> Result<()> {
    let (catalogue, archive) = (store.catalogue(), store.archive());
    let version = catalogue
        .database()
        .query_row("pragma user_version", [], |row| row.get::<_, i64>(0));
    found.catalogue_version = version.ok();
    let all = Filter {
        subagents: true,
        duplicates: true,
        ..Filter::default()
    };
    found.transcripts = catalogue
        .by_agent(&all)?
        .iter()
        .map(|sum| sum.transcripts)
        .sum();
    found.usage = archive.usage()?;
    let mut checked = 0;
    for source in archive.sources() {
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
        places: &BTreeMap<&str, Vec<std::path::PathBuf>>,
    ) -> Result<()> {
        let ok = format!("{GREEN}ok{GREEN:#}");
        match self.permissions {
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
            let transcripts = count(self.transcripts, "transcript");
            writeln!(out, "catalogue  version {version}, {transcripts} {ok}")?;
            let usage = &self.usage;
            let ratio = match usage.original_bytes {
                0 => String::new(),
                n => format!(", {} % of it", usage.compressed_bytes * 100 / n),
            };
            let state = match (self.damaged.len(), self.checked) {
                (0, Some(n)) => format!("{ok}, {} checked", count(n, "snapshot")),
                (0, None) => format!("{ok} {DIM}(--check reads all of it){DIM:#}"),
                (n, _) => format!("{RED}{}{RED:#}", count(n as u64, "damage")),
            };
            writeln!(
                out,
                "archive    {}, {} in {}, {}{ratio} {state}",
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
        let names = if there.is_empty() {
            "none here".to_owned()
        } else {
            there.join(", ")
        };
        writeln!(
            out,
            "agents     {names} {DIM}({missing} more are known){DIM:#}"
        )?;
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
                table.row([records.to_string(), why.replace('_', " ")]);
            }
            table.write(out, columns(), None)?;
        }
        if !self.drift.is_empty() {
            let sightings: u64 = self.drift.iter().map(|row| row.sightings).sum();
            writeln!(
                out,
                "\n{} of what Quipu does not know, under {}; `quipu doctor --drift` lists them.",
                count(sightings, "sighting"),
                count(self.drift.len() as u64, "name")
            )?;
        }
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

    fn json(&self, home: &Path, places: &BTreeMap<&str, Vec<std::path::PathBuf>>) -> Value {
        let roots = |roots: &[std::path::PathBuf]| -> Vec<String> {
            roots
                .iter()
                .map(|root| root.display().to_string())
                .collect()
        };
        json!({
            "home": home.display().to_string(),
            "mode": self.permissions.map(|mode| format!("{mode:o}")),
            "catalogue_version": self.catalogue_version,
            "transcripts": self.transcripts,
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
