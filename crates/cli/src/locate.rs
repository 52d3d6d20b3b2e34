//! Which file is meant.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use etcetera::BaseStrategy as _;
use quipu_agents::Host;
use quipu_record::Storage;
use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::facade::Unresolved;
pub(crate) use quipu_store::facade::{Resolved, is_database};

use crate::commands::list::shown_id;
use crate::commands::resume::quote;
use crate::error::{CommandError, Exit, Result};
use crate::table::Table;
use crate::terminal::{columns, say};
use crate::when;

/// Where Quipu keeps its files.
#[derive(Debug)]
pub(crate) struct HomePlace {
    home: Option<PathBuf>,
    /// Opened when it is first needed.
    store: OnceLock<Store>,
}

impl HomePlace {
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

    /// The machine, and what other programs sent to this home.
    pub(crate) fn host_of(home: &Path) -> Result<Host> {
        Ok(Self::host()?.with_quipu(home))
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
    pub(crate) fn meant(&self, argument: &str) -> Result<Resolved> {
        let home = self.home()?;
        quipu_store::facade::resolve(&home, argument, || Ok(self.store()?)).map_err(
            |unresolved: Unmeant| match unresolved {
                Unmeant::Command(error) => error,
                Unmeant::Unresolved(unresolved) => self.explained(unresolved),
            },
        )
    }

    /// What can be done when nothing is meant, or several things are.
    fn explained(&self, unresolved: Unresolved) -> CommandError {
        let hint = match &unresolved {
            Unresolved::Several { rows, store, .. } => {
                let details = candidates(rows, store);
                let error = CommandError::new(Exit::Data, anyhow::Error::msg(unresolved.to_string()));
                return match details {
                    Ok(lines) => error.details(lines).hint("give more of the id"),
                    Err(error) => error,
                };
            }
            Unresolved::SeveralRuns(_) => Some("give more of the id".to_owned()),
            Unresolved::None(_) => {
                let flag = self.flag();
                Some(format!("`quipu {flag}list --all` shows what there is"))
            }
            Unresolved::NotARun(_) => Some(
                "a run has transcripts in `<flow>/llm`, receipts in `<flow>/receipts` or events.jsonl; \
                 `quipu import` looks for logs in any directory"
                    .to_owned(),
            ),
            Unresolved::NoFile(_) | Unresolved::NotALog(_) | Unresolved::Catalogue(_) => None,
        };
        let error = match unresolved {
            Unresolved::Catalogue(error) => error.into(),
            unresolved => CommandError::new(Exit::Data, anyhow::Error::new(unresolved)),
        };
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// The session or run that an argument means, as the catalogue knows it.
    pub(crate) fn session(&self, argument: &str) -> Result<(Store, TranscriptRow)> {
        if !argument.contains('/')
            && let Some(store) = self.store()?
            && let Ok(row) = store.find(argument)
        {
            return Ok((store, row));
        }
        match self.meant(argument)? {
            Resolved::Session(found) => Ok(*found),
            Resolved::Run(path) | Resolved::Log(path) => {
                let error = anyhow::anyhow!("{} is not imported", path.display());
                Err(CommandError::new(Exit::Data, error)
                    .hint("import it first, then give the id of the session"))
            }
        }
    }

    /// The file that an argument means: a path, a run id, or the beginning of one. Not that of an imported
    /// session, which is an agent's own.
    pub(crate) fn transcript(&self, argument: &str) -> Result<PathBuf> {
        let path = Resolved::path(argument).map_err(|unresolved| self.explained(unresolved))?;
        if let Some(path) = path {
            return Ok(path);
        }
        // Where it is also the beginning of a session, only a run can be meant.
        if let Ok(path) = Storage::at(&self.home()?).find_by_prefix(argument) {
            return Ok(path);
        }
        match self.meant(argument)? {
            Resolved::Run(path) | Resolved::Log(path) => Ok(path),
            Resolved::Session(found) => {
                let (store, row) = *found;
                let id = store.short_ids()?.short(&row.run_id);
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

/// Why an argument means nothing: it does not, or what is kept cannot be asked.
enum Unmeant {
    Unresolved(Unresolved),
    Command(CommandError),
}

impl From<Unresolved> for Unmeant {
    fn from(unresolved: Unresolved) -> Self {
        Self::Unresolved(unresolved)
    }
}

impl From<CommandError> for Unmeant {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

/// Several sessions or runs, of which one may be meant.
fn candidates(rows: &[TranscriptRow], store: &Store) -> Result<Vec<String>> {
    let ids = store.short_ids()?;
    let mut table = Table::new(&["ID", "WHEN", "AGENT", "TITLE"]);
    for row in rows {
        let at = row.ended_at.or(row.started_at).and_then(when::of_millis);
        table.row([
            shown_id(&ids, row),
            at.map(when::local).unwrap_or_default(),
            row.agent.clone(),
            row.title.clone().unwrap_or_default(),
        ]);
    }
    let mut text = Vec::new();
    table.write(&mut text, columns().saturating_sub(2), Some(3))?;
    let text = String::from_utf8_lossy(&text);
    let text = anstream::adapter::strip_str(&text).to_string();
    Ok(text.lines().map(str::to_owned).collect())
}

/// A file that is nothing we can show.
pub(crate) fn no_log(path: &Path) -> CommandError {
    CommandError::new(Exit::Data, Unresolved::NotALog(path.to_owned()))
}
