//! Which file is meant.

use std::fs::File;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use quipu_agents::Host;
use quipu_formats::exchange::{Item, Reader};
use quipu_record::Storage;
use quipu_store::Store;
use quipu_store::catalogue::{NotFound, TranscriptRow};

use crate::error::{CommandError, Exit, Result};
use crate::foreign;

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
}

impl Place {
    pub(crate) fn new(home: Option<PathBuf>) -> Self {
        Self { home }
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

    /// What is kept, if anything is. Nothing is made.
    pub(crate) fn store(&self) -> Result<Option<Store>> {
        Ok(Store::open_existing(&self.home()?)?)
    }

    /// What an argument means: a path, the id of a run or session, or the beginning of one.
    pub(crate) fn meant(&self, argument: &str) -> Result<Meant> {
        let path = Path::new(argument);
        let looks_like_a_path = argument.contains(['/', '\\']) || path.extension().is_some();
        if path.is_file() && (looks_like_a_path || !self.has(argument)?) {
            let is_agents = !is_exchange(path) && foreign::is_known(path);
            return Ok(if is_agents {
                Meant::Log(path.to_owned())
            } else {
                Meant::Run(path.to_owned())
            });
        }
        let run = self.transcript(argument);
        let Some(store) = self.store()? else {
            return run.map(Meant::Run);
        };
        let exact = |path: &Path| path.file_stem().is_some_and(|stem| stem == argument);
        match (run, store.catalogue().find(argument)) {
            (Ok(path), Ok(row)) if !exact(&path) && row.run_id != argument => {
                let error = anyhow::anyhow!(
                    "{argument:?} is the beginning of both run {} and session {}",
                    path.file_stem().unwrap_or_default().to_string_lossy(),
                    row.run_id
                );
                Err(CommandError::new(Exit::Environment, error))
            }
            (Ok(path), found) if exact(&path) || found.is_err() => Ok(Meant::Run(path)),
            (_, Ok(row)) => Ok(Meant::Session(Box::new((store, row)))),
            (run, Err(NotFound::None(_))) => match run {
                Ok(path) => Ok(Meant::Run(path)),
                Err(error) => Err(error.hint("`quipu list` shows what there is")),
            },
            (_, Err(error)) => Err(CommandError::new(Exit::Environment, error)),
        }
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

    /// The session that an argument means.
    pub(crate) fn session(&self, argument: &str) -> Result<(Store, TranscriptRow)> {
        match self.meant(argument)? {
            Meant::Session(found) => Ok(*found),
            Meant::Run(path) => {
                let error = anyhow::anyhow!("{} is a recorded run", path.display());
                Err(CommandError::new(Exit::Data, error)
                    .hint("give the id of an imported session; `quipu list` shows them"))
            }
            Meant::Log(path) => {
                let error = anyhow::anyhow!("{} is not imported", path.display());
                Err(CommandError::new(Exit::Data, error)
                    .hint("import it first, then give the id of the session"))
            }
        }
    }

    /// The file that an argument means: a path, a run id, or the beginning of one.
    pub(crate) fn transcript(&self, argument: &str) -> Result<PathBuf> {
        let path = Path::new(argument);
        let looks_like_a_path =
            argument.contains(['/', '\\']) || path.extension().is_some_and(|it| it == "jsonl");
        // A directory that happens to have the name of a run is not what is meant.
        if path.exists() && (looks_like_a_path || !path.is_dir()) {
            return Ok(path.to_owned());
        }
        if looks_like_a_path {
            let error = anyhow::anyhow!("there is no file {argument}");
            return Err(CommandError::new(Exit::Environment, error));
        }
        let home = self.home()?;
        Storage::at(&home)
            .find_by_prefix(argument)
            .map_err(|error| {
                CommandError::new(Exit::Environment, error)
                    .hint("give a run id, the beginning of one, or the path of a transcript")
            })
    }
}

/// Whether a file begins as a transcript does.
fn is_exchange(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    matches!(Reader::new(file).next(), Ok(Some(Item::Event(_))))
}
