//! A transcript in the exchange format.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quipu_formats::exchange::{Changes, Decoded, Fault, Reader, Warning, into_log};
use quipu_model::Header;

use super::{Account, Receiver, Source, SourceError, unreadable};

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
        mut take: impl FnMut(Decoded, &mut Account) -> Result<(), SourceError>,
    ) -> Result<Account, SourceError> {
        let file = File::open(&self.file).map_err(unreadable(&self.path))?;
        let mut reader = Reader::new(file);
        let mut account = Account::default();
        while let Some(item) = reader.next_decoded().map_err(unreadable(&self.path))? {
            account.records += 1;
            match item {
                Ok(decoded) => take(decoded, &mut account)?,
                Err(bad) => {
                    let why = match bad.fault {
                        Fault::Torn => "torn_tail",
                        Fault::TooLong { .. } => "too_long",
                        _ => "unreadable",
                    };
                    *account.dropped.entry(why.to_owned()).or_default() += 1;
                }
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

    fn header(&mut self) -> Result<Header, SourceError> {
        let mut header = None::<Header>;
        // Of the events as they are given on: what is read by its shape counts as what it is read as.
        let mut changes = Changes::default();
        self.each(|decoded, _| {
            let event = into_log(decoded.event, &mut changes);
            header
                .get_or_insert_with(|| Header::new(event.run_id.clone()))
                .observe_log(&event);
            Ok(())
        })?;
        header.ok_or_else(|| SourceError::Empty(self.path.clone()))
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        let mut changes = Changes::default();
        let mut account = self.each(|decoded, account| {
            changes.warned(&decoded.warnings);
            let replaced = [Warning::InvalidUtf8, Warning::HalfSurrogate];
            if decoded.warnings.iter().any(|it| replaced.contains(it)) {
                *account.mended.entry("invalid_utf8".to_owned()).or_default() += 1;
            }
            to.event(into_log(decoded.event, &mut changes))
                .map_err(SourceError::Refused)
        })?;
        account.unkept = changes.unkept;
        account.read_as = changes.read_as;
        Ok(account)
    }
}
