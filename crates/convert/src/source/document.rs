//! A normalized transcript, by itself or in a page.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use quipu_formats::normalized::{self, NormalizedError, embedded, read_with};
use quipu_model::Header;

use super::{Account, Receiver, Source, SourceError, unreadable};

/// Which file it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// None: the file is the document.
    Plain,
    /// A page that Quipu wrote.
    Page,
}

/// A normalized transcript.
#[derive(Debug)]
pub struct Document {
    path: PathBuf,
    wrapping: Wrapping,
    options: Option<normalized::Options>,
}

impl Document {
    pub(super) fn new(path: &Path, wrapping: Wrapping) -> Self {
        Self {
            path: path.to_owned(),
            wrapping,
            options: None,
        }
    }

    fn open(&self) -> Result<Box<dyn Read>, SourceError> {
        let file = File::open(&self.path).map_err(unreadable(&self.path))?;
        Ok(match self.wrapping {
            Wrapping::Plain => Box::new(file),
            Wrapping::Page => Box::new(embedded(file)),
        })
    }

    fn broken(&self, error: NormalizedError) -> SourceError {
        match error {
            NormalizedError::Io(source) => unreadable(&self.path)(source),
            error => SourceError::Broken {
                path: self.path.clone(),
                why: error.to_string(),
            },
        }
    }
}

impl Source for Document {
    fn format(&self) -> &'static str {
        match self.wrapping {
            Wrapping::Plain => "normalized",
            Wrapping::Page => "html",
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn copy(&self, to: &mut dyn Write) -> Result<(), SourceError> {
        let copied = io::copy(&mut self.open()?, to);
        copied.map(drop).map_err(unreadable(&self.path))
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        let read = normalized::read(self.open()?, &mut |_| {});
        let read = read.map_err(|error| self.broken(error))?;
        self.options = Some(read.options);
        Ok(read.header)
    }

    fn document(&self) -> Option<&normalized::Options> {
        self.options.as_ref()
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        let mut refused = None;
        let read = read_with(self.open()?, &mut |event, beyond| {
            if refused.is_some() {
                return;
            }
            let taken = match beyond.is_empty() {
                true => to.event(event),
                false => to.event_and_more(event, Box::new(beyond)),
            };
            refused = taken.err();
        });
        if let Some(refused) = refused {
            return Err(SourceError::Refused(refused));
        }
        let read = read.map_err(|error| self.broken(error))?;
        let differs = |it: &normalized::Mismatch| {
            format!(
                "{} is said to be {}, but is {}",
                it.field, it.stated, it.counted
            )
        };
        Ok(Account {
            records: read.events,
            remarks: read.mismatches.iter().map(differs).collect(),
            ..Account::default()
        })
    }
}
