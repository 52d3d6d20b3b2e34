//! Which file is meant.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use quipu_record::Storage;

use crate::error::{CommandError, Exit, Result};

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
