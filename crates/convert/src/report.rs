//! What a conversion came to.

use std::path::PathBuf;

use quipu_formats::loss::Loss;

use crate::source::Account;

/// What became of a session on its way to another format.
#[derive(Debug, Clone)]
pub struct Report {
    /// What it was read from.
    pub source: PathBuf,
    /// The format of that: its name, or that of an agent's dialect.
    pub from: String,
    /// The format it was written in.
    pub to: &'static str,
    /// The run.
    pub run_id: String,
    /// What could not be read.
    pub reading: Account,
    /// How many different secrets are in what was written, where it is for people to read and that was counted.
    pub secrets: Option<u64>,
    /// What could not be written.
    pub loss: Loss,
}

impl Report {
    /// Whether nothing of the session is in what was written, so that it is not worth a file.
    pub fn is_empty(&self) -> bool {
        self.loss.carried == 0
    }

    /// Whether all that was there is in what was written.
    pub fn is_complete(&self) -> bool {
        self.loss.is_complete() && self.reading.is_whole()
    }
}
