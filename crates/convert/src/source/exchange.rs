//! A transcript in the exchange format.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quipu_formats::exchange::{Reader, into_log};
use quipu_model::{AnyBody, Event, Header, Timestamp};

use super::{Account, Receiver, Source, SourceError, modified_at, unreadable};

/// A recorded run.
#[derive(Debug)]
pub struct Transcript {
    /// The file itself.
    file: PathBuf,
    /// What it is called.
    path: PathBuf,
}

impl Transcript {
    /// Known by another name than the one it is opened by.
    #[must_use]
    pub fn named(mut self, name: &Path) -> Self {
        name.clone_into(&mut self.path);
        self
    }

    /// The transcript in this file.
    pub fn new(path: &Path) -> Self {
        Self {
            file: path.to_owned(),
            path: path.to_owned(),
        }
    }

    fn each(
        &self,
        mut take: impl FnMut(Event<AnyBody>) -> Result<(), SourceError>,
    ) -> Result<Account, SourceError> {
        let file = File::open(&self.file).map_err(unreadable(&self.path))?;
        let mut reader = Reader::new(file);
        let mut account = Account::default();
        while let Some(item) = reader.next_decoded().map_err(unreadable(&self.path))? {
            account.records += 1;
            match item {
                Ok(decoded) => take(decoded.event)?,
                Err(_) => *account.dropped.entry("unreadable".to_owned()).or_default() += 1,
            }
        }
        Ok(account)
    }
}

impl Source for Transcript {
    fn format(&self) -> &'static str {
        "exchange"
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn copy(&self, to: &mut dyn Write) -> Result<(), SourceError> {
        let copied = File::open(&self.file).and_then(|mut file| io::copy(&mut file, to));
        copied.map(drop).map_err(unreadable(&self.path))
    }

    fn captured_at(&self) -> Option<Timestamp> {
        modified_at(&self.file)
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        let mut header = None::<Header>;
        self.each(|event| {
            header
                .get_or_insert_with(|| Header::new(event.run_id.clone()))
                .observe(&event);
            Ok(())
        })?;
        header.ok_or_else(|| SourceError::Empty(self.path.clone()))
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        self.each(|event| to.event(into_log(event)).map_err(SourceError::Refused))
    }
}
