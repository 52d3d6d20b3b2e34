//! One log that goes on.

use std::path::PathBuf;

use quipu_agents::Host;

use super::report::Report;
use super::{ImportError, ImportOptions, Progress, Search, Store};
use crate::catalogue::TranscriptRow;
use crate::transcript::located;

impl Store {
    /// Where the log of a transcript is. The catalogue masks secrets in paths.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read.
    pub fn log_path(&self, row: &TranscriptRow) -> Result<PathBuf, ImportError> {
        Ok(located(&self.archive, row)?.path.clone())
    }

    /// Imports the log of one transcript again, as far as it has changed. Agents' files are only read.
    ///
    /// # Errors
    ///
    /// [`ImportError::Busy`] when another process is importing. What is wrong with the log is in the report.
    pub fn catch_up(
        &self,
        row: &TranscriptRow,
        host: &Host,
        options: &ImportOptions,
    ) -> Result<Report, ImportError> {
        if !row.is_archived() {
            return self.refresh_runs();
        }
        let path = self.log_path(row)?;
        let search = Search::of_paths(host, &[path], &options.agents);
        self.import_found(search, options, &Progress::default())
    }
}
