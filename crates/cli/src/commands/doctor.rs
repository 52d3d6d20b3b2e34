//! `quipu doctor`: is what is kept sound, and what is not known?

mod traces;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use quipu_agents::{FAMILIES, Host};
use quipu_api::doctor as api;
use quipu_store::Store;
use quipu_store::catalogue::{CatalogueError, DriftRow};
use quipu_store::health::Health;
use quipu_store::import::Search;

use super::import::explain;
use super::list::Census;
use crate::args::Doctor;
use crate::config::Config;
use crate::error::{Exit, Result};
use crate::json;
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
    /// Whether what is kept is sound.
    health: Health,
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
    if found.unreachable.is_none() && found.permissions.is_some() {
        let store = match place.store() {
            Ok(store) => store,
            Err(error) => {
                found.attention.push(error.to_string());
                None
            }
        };
        found.health = Health::of(&home, store.as_ref(), args.check);
        found.needs();
        if let Some(store) = &store
            && let Err(error) = found.read(store)
        {
            let why = error.to_string();
            if !found.attention.contains(&why) {
                found.attention.push(why);
            }
        }
        if home.join("rebuild.pending").exists() {
            let unfinished =
                "the catalogue is not whole, because the archive was not read to its end";
            let remedy = "`quipu import` goes on with it";
            found.attention.push(format!("{unfinished}: {remedy}"));
        }
        if let Err(error) = Config::load(&home) {
            let remedy = "mend it, or move the file away";
            found.attention.push(format!("{error}; {remedy}"));
        }
    }
    if found.unreachable.is_none() {
        let told = traces::attention(&home, args.check);
        found.attention.extend(told);
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
        let document = found.document(&home, &places);
        writeln!(out, "{}", json::document(&document)?)?;
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

impl Findings {
    /// Says what of what is kept is not sound, and what can be done about it.
    fn needs(&mut self) {
        const REBUILD: &str = "`quipu import --rebuild`";
        let health = &self.health;
        let mut needs = Vec::new();
        let mut need = |found: usize, one: &str, many: &str, remedy: String| match found {
            0 => {}
            1 => needs.push(format!("1 {one}: {remedy}")),
            n => needs.push(format!("{n} {many}: {remedy}")),
        };
        let damages = health.catalogue.len();
        let remedy = format!("{REBUILD} makes the catalogue again from the archive");
        need(
            damages,
            "damage in the catalogue",
            "damages in the catalogue",
            remedy,
        );
        let remedy = format!(
            "{REBUILD} keeps the logs again that agents still have, and says what is lost of the others"
        );
        need(
            health.archive.len(),
            "damage in the archive",
            "damages in the archive",
            remedy,
        );
        let (there, gone): (Vec<&PathBuf>, Vec<&PathBuf>) =
            health.lost.iter().partition(|path| path.exists());
        let (one, many) = (
            "log is in the catalogue, but the archive has lost it or a part of it",
            "logs are in the catalogue, but the archive has lost them or parts of them",
        );
        let rebuild = format!("{REBUILD} takes off the list what is lost, and says what that is");
        for (logs, remedy) in [
            (there, "`quipu import` keeps what its agent still has again"),
            (gone, rebuild.as_str()),
        ] {
            let path = logs.first().map(|path| path.display().to_string());
            let for_one = if logs.len() > 1 { ", for one" } else { "" };
            let remedy = format!("{}{for_one}; {remedy}", path.unwrap_or_default());
            need(logs.len(), one, many, remedy);
        }
        let uncatalogued = usize::try_from(health.uncatalogued).unwrap_or(usize::MAX);
        let (one, many) = (
            "archived log is not in the catalogue",
            "archived logs are not in the catalogue",
        );
        need(uncatalogued, one, many, format!("run {REBUILD}"));
        let remedy = format!("{REBUILD} takes them out of the logs again");
        need(health.blobs.len(), "damaged blob", "damaged blobs", remedy);
        let remedy = "restore them from a copy, or delete them".to_owned();
        let (one, many) = (
            "damaged blob that no session uses",
            "damaged blobs that no session uses",
        );
        need(health.loose_blobs.len(), one, many, remedy);
        let remedy = format!("{REBUILD} makes it again");
        let (one, many) = ("damage in the search index", "damages in the search index");
        need(health.index.len(), one, many, remedy);
        let waiting = usize::try_from(health.not_indexed).unwrap_or(usize::MAX);
        let (one, many) = (
            "session cannot be searched yet",
            "sessions cannot be searched yet",
        );
        let remedy = "`quipu import` goes on with it".to_owned();
        need(waiting, one, many, remedy);
        let remedy = "`quipu import --rebuild` makes them again".to_owned();
        let (one, many) = ("session has damaged events", "sessions have damaged events");
        need(health.events.len(), one, many, remedy);
        let without = usize::try_from(health.without_events).unwrap_or(usize::MAX);
        let (one, many) = ("session has no events yet", "sessions have no events yet");
        let remedy = "`quipu import` makes them again".to_owned();
        need(without, one, many, remedy);
        let outdated = usize::try_from(health.outdated).unwrap_or(usize::MAX);
        let (one, many) = (
            "log was read by an earlier version, which masked fewer secrets",
            "logs were read by an earlier version, which masked fewer secrets",
        );
        let remedy = "`quipu import` reads them again".to_owned();
        need(outdated, one, many, remedy);
        if let Some(why) = &health.index_anew {
            needs.push(format!(
                "the search index cannot be used: {why}; `quipu import` makes it again"
            ));
        }
        self.attention.extend(needs);
    }

    /// Everything that is damaged, each with its file.
    fn damages(&self) -> impl Iterator<Item = &String> {
        let Health {
            catalogue,
            archive,
            blobs,
            loose_blobs,
            events,
            index,
            ..
        } = &self.health;
        let all = [catalogue, archive, blobs, loose_blobs, events, index];
        all.into_iter().flatten()
    }

    /// What the catalogue tells of what was read.
    fn read(&mut self, store: &Store) -> Result<()> {
        let catalogue = store.catalogue();
        self.catalogue_version = catalogue.version().ok();
        self.census = Census::of(store)?;
        for source in catalogue.sources()? {
            if let Some(problem) = source.problem {
                let path = source.path.display().to_string();
                self.problems.entry(problem).or_insert((0, path)).0 += 1;
            }
        }
        if !self.problems.is_empty() {
            let logs: u64 = self.problems.values().map(|problem| problem.0).sum();
            let logs = count(logs, "log");
            self.attention
                .push(format!("{logs} could not be read wholly"));
        }
        let told: Result<_, CatalogueError> = catalogue
            .dropped()
            .and_then(|it| Ok((it, catalogue.drift()?)));
        (self.dropped, self.drift) = told?;
        Ok(())
    }
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

    fn document(&self, home: &Path, places: &BTreeMap<&str, Vec<PathBuf>>) -> api::Doctor {
        let Self { census, health, .. } = self;
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| json::path(path)).collect();
        let unreadable = self.unreadable.iter().map(|(path, what)| api::Unreadable {
            path: json::path(path),
            what: what.clone(),
        });
        let agents = places.iter().map(|(brand, there)| api::AgentPlaces {
            agent: (*brand).to_owned(),
            places: paths(there),
        });
        let problems = self.problems.iter();
        let problems = problems.map(|(what, (logs, path))| api::LogProblem {
            what: what.clone(),
            logs: *logs,
            path: path.clone(),
        });
        let drift = self.drift.iter().map(|row| api::Drift {
            agent: row.agent.clone(),
            version: row.version.clone(),
            name: row.name.clone(),
            sightings: row.sightings,
            logs: row.logs,
            path: json::path(&row.path),
            line: row.line,
            offset: row.offset,
        });
        let index = health.index.iter().chain(&health.index_anew);
        let blobs = health.blobs.iter().chain(&health.loose_blobs);
        api::Doctor {
            home: json::path(home),
            mode: self.permissions.map(|mode| format!("{mode:o}")),
            catalogue_version: self.catalogue_version,
            unreachable: self.unreachable.clone(),
            transcripts: census.sessions + census.subagents + census.copies,
            sessions: census.sessions,
            subagents: census.subagents,
            copies: census.copies,
            uncatalogued: health.uncatalogued,
            catalogue_damaged: health.catalogue.clone(),
            lost: paths(&health.lost),
            blobs_damaged: blobs.cloned().collect(),
            outdated_logs: health.outdated,
            events_damaged: health.events.clone(),
            sessions_without_events: health.without_events,
            search_index_damaged: index.cloned().collect(),
            unreadable: unreadable.collect(),
            archive: api::ArchiveHealth {
                sources: health.usage.sources,
                versions: health.usage.versions,
                original_bytes: health.usage.original_bytes,
                chunks: health.usage.chunks,
                compressed_bytes: health.usage.compressed_bytes,
                checked: health.checked,
                damaged: health.archive.clone(),
            },
            agents: agents.collect(),
            problems: problems.collect(),
            dropped: self.dropped.iter().cloned().collect(),
            drift: drift.collect(),
            attention: self.attention.clone(),
        }
    }
}
