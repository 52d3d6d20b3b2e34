//! Importing what changes, as it changes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quipu_agents::{FAMILIES, Host};
use quipu_record::{Clock as _, SystemClock};
use quipu_server::App;
use quipu_store::Store;
use quipu_store::import::watch::{Changed, Watch};
use quipu_store::import::{ImportError, ImportOptions, Progress, Search};

use super::import::report_problems;
use crate::error::{CommandError, Exit, Result};
use crate::locate::HomePlace;
use crate::terminal::{count, fit, out, say};
use crate::when;

/// How long an import that failed rests before the first attempt to do it again, and at most. Each time it is twice as long.
const REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Imports what changes, as it changes, until it is ended. A server that is fed by it is told, and is worth going on for:
/// what fails is tried again.
pub(super) fn watch(
    store: &Store,
    host: &Host,
    paths: &[PathBuf],
    options: &ImportOptions,
    served: Option<&App>,
) -> Result<()> {
    let new_watch = || {
        settled(
            || places(host),
            |at| match paths {
                [] if options.agents.is_empty() => Watch::of_paths(at.keys().cloned()),
                [] => Watch::new(host, &options.agents),
                paths => Watch::of_paths(paths.iter().cloned()),
            },
        )
    };
    let everything = || match paths {
        [] => Search::of_places(host, &options.agents),
        paths => Search::of_paths(host, paths, &options.agents),
    };
    let (mut watch, mut at) = new_watch()?;
    let directories = match watch.watched().len() {
        1 => "1 directory".to_owned(),
        n => format!("{n} directories"),
    };
    if served.is_none() {
        say(&format!("watching {directories}; Ctrl-C ends it"));
    }
    let mut failing = Failing::default();
    // What was written after the last import and before the watch.
    let mut changed = Changed::Anything;
    loop {
        // A place that was made since is watched from now on.
        if places(host) != at {
            match new_watch() {
                Ok(new) => {
                    (watch, at) = new;
                    changed = Changed::Anything;
                }
                // What was watched before still is.
                Err(error) if served.is_some() => failing.say(&error),
                Err(error) => return Err(error),
            }
        }
        let search = match changed {
            Changed::Paths(mut changed) => {
                changed.retain(|path| path.is_file());
                // The directories above places are watched as well, and what lies there is nobody's log.
                if paths.is_empty() {
                    let roots = roots(host);
                    changed.retain(|path| roots.iter().any(|root| path.starts_with(root)));
                }
                Search::of_paths(host, &changed, &options.agents)
            }
            Changed::Anything => everything(),
        };
        match import_changes(store, search, options, served) {
            Ok(()) => failing.is_over(),
            Err(error) if served.is_some() => {
                std::thread::sleep(failing.rest(&error));
                changed = Changed::Anything;
                continue;
            }
            Err(error) => return Err(error),
        }
        let Some(next) = watch.wait(None) else {
            return Ok(());
        };
        changed = next;
    }
}

/// Waits until something is there that was not: an agent left a session, or something was put into a home in which nothing
/// was.
pub(super) fn until_there(
    host: &Host,
    home: &Path,
    is_there: impl Fn() -> Result<bool>,
) -> Result<()> {
    let all = || {
        let mut all = places(host);
        all.extend([home.join("transcripts"), home.join("changes.jsonl")].map(first_missing));
        all
    };
    let new_watch = || settled(all, |at| Watch::of_paths(at.keys().cloned()));
    let (mut watch, mut at) = new_watch()?;
    // Whoever looks whether something is in a home touches these files.
    let is_touched = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        path.parent() == Some(home) && (name.starts_with("index.sqlite") || name == "import.lock")
    };
    loop {
        if is_there()? {
            return Ok(());
        }
        loop {
            let Some(changed) = watch.wait(None) else {
                let error = anyhow::anyhow!("the system does not say any more what changes");
                return Err(CommandError::new(Exit::Environment, error));
            };
            match changed {
                Changed::Paths(paths) if paths.iter().all(|path| is_touched(path)) => {}
                _ => break,
            }
        }
        if all() != at {
            (watch, at) = new_watch()?;
        }
    }
}

/// Paths to watch, and whether they are there.
type Places = BTreeMap<PathBuf, bool>;

/// A watch of these places. One that is made while the watch is set up would be missed, so that is done again then.
fn settled(
    places: impl Fn() -> Places,
    watch: impl Fn(&Places) -> notify::Result<Watch>,
) -> Result<(Watch, Places)> {
    let mut at = places();
    loop {
        let watch = watch(&at).map_err(unwatchable)?;
        let now = places();
        if now == at {
            return Ok((watch, at));
        }
        at = now;
    }
}

fn unwatchable(error: notify::Error) -> CommandError {
    let limit = "the system's limit of watches may be reached (fs.inotify.max_user_watches)";
    CommandError::new(Exit::Environment, anyhow::Error::new(error)).hint(limit)
}

/// Where agents keep sessions.
fn roots(host: &Host) -> Vec<PathBuf> {
    let places = FAMILIES.iter().flat_map(|family| family.places(host));
    places.map(|place| place.root).collect()
}

/// What is to be watched so that no session is missed, whenever an agent comes to this machine.
fn places(host: &Host) -> Places {
    roots(host).into_iter().map(first_missing).collect()
}

/// The path itself, or the first directory on the way to it that is not there: making it is noticed in the one above.
fn first_missing(mut path: PathBuf) -> (PathBuf, bool) {
    while let Some(above) = path.parent()
        && !above.as_os_str().is_empty()
        && !above.exists()
    {
        path = above.to_owned();
    }
    let is_there = path.exists();
    (path, is_there)
}

/// Imports that fail, one after another.
#[derive(Debug, Default)]
struct Failing {
    times: u32,
    said: Option<String>,
}

impl Failing {
    /// Says why, unless that was said last.
    fn say(&mut self, error: &CommandError) {
        let why = error.to_string();
        if self.said.as_ref() != Some(&why) {
            error.report();
            self.said = Some(why);
        }
    }

    /// How long to wait before it is tried again.
    fn rest(&mut self, error: &CommandError) -> Duration {
        self.say(error);
        let rest = REST.saturating_mul(1 << self.times.min(16));
        self.times += 1;
        rest.min(LONGEST_REST)
    }

    fn is_over(&mut self) {
        if self.times > 0 {
            say("new sessions are imported again");
            *self = Self::default();
        }
    }
}

/// Imports what changed, and says so: one line for each session.
fn import_changes(
    store: &Store,
    search: Search,
    options: &ImportOptions,
    served: Option<&App>,
) -> Result<()> {
    let lines = match changed_lines(store, search, options, served) {
        Ok(lines) => lines,
        Err(error) => {
            if let Some(app) = served {
                let why = error.to_string();
                app.importer().ended(SystemClock.now(), Err(why), true);
            }
            return Err(error);
        }
    };
    if lines.is_empty() {
        return Ok(());
    }
    let mut out = out();
    let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    match served {
        // It is served, whether or not somebody still reads what is said here.
        Some(_) => Ok(()),
        None => Ok(written?),
    }
}

/// Imports what changed; gives a line for each session that did.
fn changed_lines(
    store: &Store,
    mut search: Search,
    options: &ImportOptions,
    served: Option<&App>,
) -> Result<String> {
    const BUSY: Duration = Duration::from_secs(1);
    let paths: Vec<PathBuf> = search.found.iter().map(|it| it.path.clone()).collect();
    let mut lines = String::new();
    if paths.is_empty() {
        return Ok(lines);
    }
    let mut before = Vec::new();
    for path in &paths {
        for row in store.transcripts_at(path)? {
            before.push((row.address, row.figures.events));
        }
    }
    let options = ImportOptions {
        now: SystemClock.now(),
        ..options.clone()
    };
    let progress = Arc::new(Progress::default());
    if let Some(app) = served {
        app.importer().begins(Arc::clone(&progress));
    }
    let report = loop {
        match store.import_found(search, &options, &progress) {
            Err(ImportError::Busy(_)) => {
                // The other import may be past these logs already, so they are looked at again; `tail -f` imports as well.
                std::thread::sleep(BUSY);
                let host = HomePlace::host_of(store.home())?;
                search = Search::of_paths(&host, &paths, &options.agents);
            }
            done => break done?,
        }
    };
    if let Some(app) = served {
        app.importer().ended(SystemClock.now(), Ok(&report), true);
        app.freshness().bump();
    }
    report_problems(&report.problems);
    if report.read == 0 {
        return Ok(lines);
    }
    let time = when::local_time(options.now);
    for path in &paths {
        for row in store.transcripts_at(path)? {
            let known = before.iter().find(|(id, _)| *id == row.address);
            let events =
                row.figures.events - known.map_or(0, |known| known.1.min(row.figures.events));
            if events == 0 && known.is_some() {
                continue;
            }
            let title = row.title.as_deref().unwrap_or_default();
            let (agent, run_id) = (&row.agent, &row.run_id);
            let (events, title) = (count(events, "event"), fit(title, 60));
            let line = format!("{time}  {agent}  {run_id}  +{events}  {title}\n");
            lines.push_str(&line);
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again_less_and_less_often() {
        let mut failing = Failing::default();
        let error = CommandError::new(Exit::Environment, anyhow::anyhow!("the disk is full"));
        let rests: Vec<u64> = (0..40).map(|_| failing.rest(&error).as_secs()).collect();
        assert_eq!(rests[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(rests[39], 60);
        failing.is_over();
        assert_eq!(failing.rest(&error), REST);
    }

    #[test]
    fn a_place_that_is_not_there_stands_for_the_way_to_it() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("a/b/c");
        assert_eq!(first_missing(root.clone()), (home.path().join("a"), false));
        std::fs::create_dir_all(home.path().join("a/b")).unwrap();
        assert_eq!(first_missing(root.clone()), (root.clone(), false));
        std::fs::create_dir(&root).unwrap();
        assert_eq!(first_missing(root.clone()), (root, true));
    }
}
