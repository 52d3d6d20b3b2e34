//! Which file is meant.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use etcetera::BaseStrategy as _;
use quipu_agents::Host;
use quipu_formats::exchange::{Item, Reader};
use quipu_formats::flow;
use quipu_record::{NotFound as RunNotFound, Storage};
use quipu_store::Store;
use quipu_store::catalogue::{NotFound as SessionNotFound, TranscriptRow};

use crate::commands::import::KNOWN_LOG;
use crate::commands::list::Ids;
use crate::commands::resume::quote;
use crate::error::{CommandError, Exit, Result};
use crate::table::Table;
use crate::terminal::{columns, say};
use crate::{foreign, when};

/// What an argument means.
#[derive(Debug)]
pub(crate) enum Meant {
    /// A transcript in the exchange format.
    Run(PathBuf),
    /// An imported session.
    Session(Box<(Store, TranscriptRow)>),
    /// The log of an agent.
    Log(PathBuf),
}

/// Where Quipu keeps its files.
#[derive(Debug)]
pub(crate) struct Place {
    home: Option<PathBuf>,
    /// Opened when it is first needed.
    store: OnceLock<Store>,
}

impl Place {
    pub(crate) fn new(home: Option<PathBuf>) -> Self {
        Self {
            home,
            store: OnceLock::new(),
        }
    }

    /// `--home`, else `$QUIPU_HOME`, else `quipu` in the platform's data directory.
    pub(crate) fn home(&self) -> Result<PathBuf> {
        let named = self
            .home
            .clone()
            .or_else(|| std::env::var_os("QUIPU_HOME").map(PathBuf::from));
        if let Some(home) = named.filter(|home| !home.as_os_str().is_empty()) {
            return Ok(home);
        }
        match etcetera::base_strategy::choose_native_strategy() {
            Ok(strategy) => Ok(strategy.data_dir().join("quipu")),
            Err(error) => Err(
                CommandError::new(Exit::Environment, anyhow::Error::new(error))
                    .hint("name a directory with --home or QUIPU_HOME"),
            ),
        }
    }

    /// The machine, as far as finding sessions is concerned.
    pub(crate) fn host() -> Result<Host> {
        match etcetera::home_dir() {
            Ok(home) => Ok(Host::new(home, |name| std::env::var_os(name))),
            Err(error) => Err(
                CommandError::new(Exit::Environment, anyhow::Error::new(error))
                    .hint("set HOME to your home directory"),
            ),
        }
    }

    /// What is kept, if anything is, with recorded runs as they are now.
    pub(crate) fn store(&self) -> Result<Option<Store>> {
        if let Some(store) = self.store.get() {
            return Ok(Some(store.clone()));
        }
        let Some(store) = Store::open_existing(&self.home()?)? else {
            return Ok(None);
        };
        for problem in store.refresh_runs()?.problems {
            say(&format!("{}: {}", problem.path.display(), problem.what));
        }
        Ok(Some(self.store.get_or_init(|| store).clone()))
    }

    /// Whether a person named it.
    pub(crate) fn is_named(&self) -> bool {
        let variable = std::env::var_os("QUIPU_HOME");
        self.home.is_some() || variable.is_some_and(|home| !home.is_empty())
    }

    /// `--home` as it is to be repeated, with a space behind it; nothing where it was not given.
    pub(crate) fn flag(&self) -> String {
        match &self.home {
            Some(home) => format!("--home {} ", quote(&home.to_string_lossy())),
            None => String::new(),
        }
    }

    /// What an argument means: a path, the id of a run or session, or the beginning of one.
    pub(crate) fn meant(&self, argument: &str) -> Result<Meant> {
        let path = Path::new(argument);
        let looks_like_a_path = argument.contains(['/', '\\']) || path.extension().is_some();
        let is_meant = |is_there: bool| -> Result<bool> {
            Ok(is_there && (looks_like_a_path || !self.has(argument)?))
        };
        if is_meant(path.is_dir())? {
            match flow::run_around(path) {
                Some(run) => return Ok(Meant::Log(run)),
                None if looks_like_a_path => return Err(no_run(path)),
                // The beginning of an id, more likely.
                None => {}
            }
        }
        if is_meant(path.is_file())? {
            // A file of a run stands for the whole of it.
            if let Some(run) = flow::run_of(path) {
                return Ok(Meant::Log(run));
            }
            let is_agents = !is_exchange(path) && foreign::is_known(path);
            return match is_agents {
                true => Ok(Meant::Log(path.to_owned())),
                false if may_be_transcript(path) => Ok(Meant::Run(path.to_owned())),
                false => match flow::run_around(path) {
                    Some(run) => Ok(Meant::Log(run)),
                    None => Err(no_log(path)),
                },
            };
        }
        if let Some(path) = given_path(argument)? {
            return Ok(Meant::Run(path));
        }
        let store = self.store()?;
        let found = match &store {
            Some(store) => store.catalogue().find(argument),
            None => Err(SessionNotFound::None(argument.to_owned())),
        };
        match (found, store) {
            (Ok(row), Some(_)) if row.recorded => Ok(Meant::Run(row.path)),
            (Ok(row), Some(store)) => Ok(Meant::Session(Box::new((store, row)))),
            (Err(SessionNotFound::Several(_, ids)), Some(store)) => {
                Self::ambiguous(argument, &ids, &store)
            }
            (Err(SessionNotFound::Catalogue(error)), _) => Err(error.into()),
            _ => match Storage::at(&self.home()?).find_by_prefix(argument) {
                // Known by a label before its id, or not an event in it yet.
                Ok(path) => Ok(Meant::Run(path)),
                Err(error @ RunNotFound::Several(..)) => {
                    Err(CommandError::new(Exit::Data, anyhow::Error::new(error))
                        .hint("give more of the id"))
                }
                Err(RunNotFound::None(..)) => {
                    let error = anyhow::anyhow!("no session or run begins with {argument:?}");
                    let flag = self.flag();
                    Err(CommandError::new(Exit::Data, error)
                        .hint(format!("`quipu {flag}list --all` shows what there is")))
                }
            },
        }
    }

    /// Several begin so: which?
    fn ambiguous<T>(argument: &str, ids: &[String], store: &Store) -> Result<T> {
        let found = |id: &String| store.catalogue().find(id).ok();
        let rows: Vec<TranscriptRow> = ids.iter().filter_map(found).collect();
        let ids = Ids::of(Some(store))?;
        let mut table = Table::new(&["ID", "WHEN", "AGENT", "TITLE"]);
        for row in &rows {
            let at = row.ended_at.or(row.started_at).and_then(when::of_millis);
            table.row([
                ids.shown(row),
                at.map(when::local).unwrap_or_default(),
                row.agent.clone(),
                row.title.clone().unwrap_or_default(),
            ]);
        }
        let mut text = Vec::new();
        table.write(&mut text, columns().saturating_sub(2), Some(3))?;
        let text = String::from_utf8_lossy(&text);
        let text = anstream::adapter::strip_str(&text).to_string();
        let error = anyhow::anyhow!("{argument:?} is the beginning of several sessions or runs");
        Err(CommandError::new(Exit::Data, error)
            .details(text.lines().map(str::to_owned))
            .hint("give more of the id"))
    }

    /// Whether there is a run or session of exactly this id.
    fn has(&self, id: &str) -> Result<bool> {
        let home = self.home()?;
        let run = quipu_model::RunId::new(id)
            .ok()
            .and_then(|id| Storage::at(&home).find(&id));
        if run.is_some() {
            return Ok(true);
        }
        let Some(store) = self.store()? else {
            return Ok(false);
        };
        Ok(store.catalogue().find(id).is_ok_and(|row| row.run_id == id))
    }

    /// The session or run that an argument means, as the catalogue knows it.
    pub(crate) fn session(&self, argument: &str) -> Result<(Store, TranscriptRow)> {
        if !argument.contains('/')
            && let Some(store) = self.store()?
            && let Ok(row) = store.catalogue().find(argument)
        {
            return Ok((store, row));
        }
        match self.meant(argument)? {
            Meant::Session(found) => Ok(*found),
            Meant::Run(path) | Meant::Log(path) => {
                let error = anyhow::anyhow!("{} is not imported", path.display());
                Err(CommandError::new(Exit::Data, error)
                    .hint("import it first, then give the id of the session"))
            }
        }
    }

    /// The file that an argument means: a path, a run id, or the beginning of one. Not that of an imported
    /// session, which is an agent's own.
    pub(crate) fn transcript(&self, argument: &str) -> Result<PathBuf> {
        if let Some(path) = given_path(argument)? {
            return Ok(path);
        }
        // Where it is also the beginning of a session, only a run can be meant.
        if let Ok(path) = Storage::at(&self.home()?).find_by_prefix(argument) {
            return Ok(path);
        }
        match self.meant(argument)? {
            Meant::Run(path) | Meant::Log(path) => Ok(path),
            Meant::Session(found) => {
                let (store, row) = *found;
                let id = Ids::of(Some(&store))?.short(&row.run_id);
                let (run_id, flag) = (&row.run_id, self.flag());
                let error = anyhow::anyhow!("{run_id} is an imported session, not a recorded run");
                Err(CommandError::new(Exit::Data, error).hint(format!(
                    "`quipu {flag}show {id}` shows it, `quipu {flag}import --watch` follows the agents, \
                     `quipu {flag}doctor --check` checks what is kept"
                )))
            }
        }
    }
}

/// The path that an argument is, if it is one.
fn given_path(argument: &str) -> Result<Option<PathBuf>> {
    let path = Path::new(argument);
    let looks_like_a_path =
        argument.contains(['/', '\\']) || path.extension().is_some_and(|it| it == "jsonl");
    // A directory that happens to have the name of a run is not what is meant.
    if path.exists() && (looks_like_a_path || !path.is_dir()) {
        return Ok(Some(path.to_owned()));
    }
    if looks_like_a_path {
        let error = anyhow::anyhow!("there is no file {argument}");
        return Err(CommandError::new(Exit::Data, error));
    }
    Ok(None)
}

/// A directory that is nothing we can show.
fn no_run(path: &Path) -> CommandError {
    let error = anyhow::anyhow!("{} is a directory, and not a run", path.display());
    CommandError::new(Exit::Data, error).hint(
        "a run has transcripts in `<flow>/llm`, receipts in `<flow>/receipts` or events.jsonl; \
         `quipu import` looks for logs in any directory",
    )
}

/// A file that is nothing we can show.
pub(crate) fn no_log(path: &Path) -> CommandError {
    let error = anyhow::anyhow!("{} is no transcript, nor {KNOWN_LOG}", path.display());
    CommandError::new(Exit::Data, error)
}

/// Whether something in a file is an event, or there is nothing in it at all.
fn may_be_transcript(path: &Path) -> bool {
    /// An event is looked for in so many lines.
    const LOOKED_AT: usize = 1_000;
    /// How a line begins that the recorder wrote, whatever became of the rest of it.
    const BEGIN: &[u8] = b"{\"seq\":";
    let mut begin = Vec::new();
    let Ok(file) = File::open(path) else {
        // Whoever reads it says why it cannot be read.
        return true;
    };
    if file
        .take(BEGIN.len() as u64)
        .read_to_end(&mut begin)
        .is_err()
        || BEGIN.starts_with(&begin)
        || is_database(path)
    {
        return true;
    }
    let Ok(file) = File::open(path) else {
        return true;
    };
    let mut reader = Reader::new(file);
    for _ in 0..LOOKED_AT {
        match reader.next() {
            Ok(Some(Item::Event(_))) | Err(_) => return true,
            Ok(Some(Item::Bad(_))) => {}
            Ok(None) => return false,
        }
    }
    false
}

/// Whether a file is a database, which has many sessions in it.
pub(crate) fn is_database(path: &Path) -> bool {
    let mut magic = [0; 16];
    // What is read from a pipe is gone.
    path.is_file()
        && File::open(path)
            .and_then(|mut file| file.read_exact(&mut magic))
            .is_ok()
        && magic == *b"SQLite format 3\0"
}

/// Whether a file begins as a transcript does.
fn is_exchange(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    matches!(Reader::new(file).next(), Ok(Some(Item::Event(_))))
}
