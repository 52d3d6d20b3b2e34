//! A transcript in the exchange format.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quipu_exchange::{Decoded, Fault, Reader, Warning};
use quipu_formats::exchange::{Changes, into_log};
use quipu_model::{Header, Timestamp};

use super::{Account, Bytes, LogFile, Receiver, Source, SourceError, unreadable};

/// A recorded run.
pub struct Transcript {
    /// The file itself, or what was kept of it.
    bytes: Box<dyn Bytes>,
    /// What it is called.
    path: PathBuf,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
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
        Self::of(Box::new(LogFile(path.to_owned())), path)
    }

    /// The transcript in these bytes.
    pub fn of(bytes: Box<dyn Bytes>, path: &Path) -> Self {
        Self {
            bytes,
            path: path.to_owned(),
        }
    }

    fn each(
        &self,
        mut take: impl FnMut(Decoded, &mut Account) -> Result<(), SourceError>,
    ) -> Result<Account, SourceError> {
        let bytes = self.bytes.reader().map_err(unreadable(&self.path))?;
        let mut reader = Reader::new(bytes);
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
        let copied = self
            .bytes
            .reader()
            .and_then(|mut from| io::copy(&mut from, to));
        copied.map(drop).map_err(unreadable(&self.path))
    }

    fn captured_at(&self) -> Option<Timestamp> {
        self.bytes.captured_at()
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        let mut header = None::<Header>;
        // Counted after they are mapped, as whoever receives the events would count them.
        let mut changes = Changes::default();
        self.each(|decoded, _| {
            let event = into_log(decoded.event, &mut changes);
            header
                .get_or_insert_with(|| Header::new(event.run_id.clone()))
                .observe(&event);
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
