//! What needs attention.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use quipu_agents::{FAMILIES, Host};

use super::Census;
use crate::Store;
use crate::catalogue::{CatalogueError, DriftRow};
use crate::health::Health;
use crate::import::Search;
use crate::traces::{Problem, TraceError, Traces};

/// How a home is looked at.
#[derive(Debug, Clone, Default)]
pub struct Examine {
    /// Read everything that is kept, not only look whether it is there.
    pub all: bool,
    /// A person named the home, so that it should be there.
    pub named: bool,
    /// What else needs attention in a home that is there: what only the program knows.
    pub also: Vec<String>,
}

/// What was found out about a home, and about what agents have on this machine.
#[derive(Debug, Default)]
pub struct Diagnosis {
    /// What needs attention, with what can be done about it.
    pub attention: Vec<String>,
    /// The permissions of the home; `None` when it is not there.
    pub permissions: Option<u32>,
    /// Why the home cannot be used.
    pub unreachable: Option<String>,
    /// The version of the catalogue.
    pub catalogue_version: Option<i64>,
    /// How many sessions are imported.
    pub census: Census,
    /// Whether what is kept is sound.
    pub health: Health,
    /// Logs and directories of agents that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Problems by what they say: how many logs, and one of them.
    pub problems: BTreeMap<String, (u64, String)>,
    /// Records that became nothing: why, and how many.
    pub dropped: Vec<(String, u64)>,
    /// What adapters do not know.
    pub drift: Vec<DriftRow>,
    /// Where each agent keeps its logs, as far as it is there.
    pub places: BTreeMap<&'static str, Vec<PathBuf>>,
}

impl Store {
    /// What needs attention in this store, and in what agents have. With `all`, everything is read.
    pub fn doctor(&self, host: &Host, all: bool) -> Diagnosis {
        let examine = Examine {
            all,
            named: true,
            also: Vec::new(),
        };
        Diagnosis::of(self.home(), host, examine, || Ok(Some(self.clone())))
    }
}

impl Diagnosis {
    /// Looks at a home that may not be there, or that no store can be opened in: `store` says why not.
    pub fn of(
        home: &Path,
        host: &Host,
        examine: Examine,
        store: impl FnOnce() -> Result<Option<Store>, String>,
    ) -> Self {
        let mut found = Self {
            unreachable: unreachable(home, examine.named),
            ..Self::default()
        };
        if let Some(why) = &found.unreachable {
            found.attention.push(why.clone());
        } else {
            found.look_at_home(home, examine.all, store);
            if found.permissions.is_some() {
                found.attention.extend(examine.also);
            }
            found.attention.extend(traces(home, examine.all));
        }
        found.unreadable = unreadable(host);
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
        for at in FAMILIES.iter().flat_map(|family| family.places(host)) {
            let there = found.places.entry(at.brand).or_default();
            if at.root.exists() {
                there.push(at.root);
            }
        }
        found
    }

    fn look_at_home(
        &mut self,
        home: &Path,
        all: bool,
        store: impl FnOnce() -> Result<Option<Store>, String>,
    ) {
        let Ok(metadata) = home.metadata() else {
            return;
        };
        let mode = metadata.permissions().mode() & 0o777;
        self.permissions = Some(mode);
        if mode & 0o077 != 0 {
            self.attention.push(format!(
                "others can look into {} (mode {mode:o}); `chmod 700` it",
                home.display()
            ));
        }
        let store = store().unwrap_or_else(|why| {
            self.attention.push(why);
            None
        });
        self.health = Health::of(home, store.as_ref(), all);
        self.needs();
        if let Some(store) = &store
            && let Err(error) = self.read(store)
        {
            let why = error.to_string();
            if !self.attention.contains(&why) {
                self.attention.push(why);
            }
        }
        if home.join("rebuild.pending").exists() {
            let unfinished =
                "the catalogue is not whole, because the archive was not read to its end";
            let remedy = "`quipu import` goes on with it";
            self.attention.push(format!("{unfinished}: {remedy}"));
        }
    }
}

/// What needs attention of the traces that are kept. With `all`, every file is read.
fn traces(home: &Path, all: bool) -> Vec<String> {
    let told = |error: TraceError| vec![format!("the traces that are kept: {error}")];
    let traces = match Traces::open_existing(home) {
        Ok(None) => return Vec::new(),
        Ok(Some(traces)) => traces,
        Err(error) => return told(error),
    };
    let problems = if all {
        match traces.check() {
            Ok(problems) => problems,
            Err(error) => return told(error),
        }
    } else {
        traces.problems().to_vec()
    };
    let line = |problem: Problem| format!("the trace {}: {}", problem.path.display(), problem.why);
    problems.into_iter().map(line).collect()
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

impl Diagnosis {
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
    pub fn damages(&self) -> impl Iterator<Item = &String> {
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
    fn read(&mut self, store: &Store) -> Result<(), CatalogueError> {
        let catalogue = store.catalogue();
        self.catalogue_version = catalogue.version().ok();
        self.census = store.census()?;
        for source in catalogue.sources()? {
            if let Some(problem) = source.problem {
                let path = source.path.display().to_string();
                self.problems.entry(problem).or_insert((0, path)).0 += 1;
            }
        }
        if !self.problems.is_empty() {
            let logs = match self.problems.values().map(|problem| problem.0).sum() {
                1_u64 => "1 log".to_owned(),
                n => format!("{n} logs"),
            };
            self.attention
                .push(format!("{logs} could not be read wholly"));
        }
        let (dropped, drift) = (catalogue.dropped()?, catalogue.drift()?);
        (self.dropped, self.drift) = (dropped, drift);
        Ok(())
    }
}
