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
        if let Some(home) = &self.home {
            return Ok(home.clone());
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
        if path.exists() {
            return Ok(path.to_owned());
        }
        let looks_like_a_path =
            argument.contains(['/', '\\']) || path.extension().is_some_and(|it| it == "jsonl");
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
