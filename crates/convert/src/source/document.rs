//! A normalized transcript, by itself or in a page.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use quipu_formats::html::{self, Content};
use quipu_formats::normalized::{self, Beyond, NormalizedError, embedded, read_with};
use quipu_model::{Attachment, Event, Header};

use super::{Account, Bytes, LogFile, Receiver, Source, SourceError, unreadable};
use crate::Format;

/// Where the document is.
enum Wrapping {
    /// By itself.
    Alone,
    /// In a page, which is read as it comes.
    Page,
    /// In a page that was taken apart: because it is sealed, or has pictures.
    Taken(Content),
}

/// A page that is longer is not taken apart; its pictures stay behind.
const LONGEST_PAGE: u64 = 512 << 20;

/// A normalized transcript.
pub struct Document {
    /// The file or what was kept of it.
    bytes: Box<dyn Bytes>,
    /// What it is called.
    path: PathBuf,
    place: Wrapping,
    options: Option<normalized::NormalizedOptions>,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Document {
    /// Known by another name than the one it is opened by.
    #[must_use]
    pub fn named(mut self, name: &Path) -> Self {
        name.clone_into(&mut self.path);
        self
    }

    /// A file that is one.
    pub fn file(path: &Path) -> Self {
        Self::of(Box::new(LogFile(path.to_owned())), path)
    }

    /// Bytes that are one.
    pub fn of(bytes: Box<dyn Bytes>, path: &Path) -> Self {
        Self {
            bytes,
            path: path.to_owned(),
            place: Wrapping::Alone,
            options: None,
        }
    }

    /// A page that Quipu wrote.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is sealed and the passphrase is another.
    pub fn page(path: &Path, passphrase: Option<&str>) -> Result<Self, SourceError> {
        Self::page_of(Box::new(LogFile(path.to_owned())), path, passphrase)
    }

    /// Bytes that are such a page.
    ///
    /// # Errors
    ///
    /// Those of [`Document::page`].
    pub fn page_of(
        bytes: Box<dyn Bytes>,
        path: &Path,
        passphrase: Option<&str>,
    ) -> Result<Self, SourceError> {
        let mut page = Vec::new();
        let read = bytes
            .reader()
            .and_then(|from| from.take(LONGEST_PAGE + 1).read_to_end(&mut page));
        read.map_err(unreadable(path))?;
        let place = if page.len() as u64 > LONGEST_PAGE {
            Wrapping::Page
        } else {
            let opened = match passphrase {
                Some(passphrase) if html::is_sealed(&page) => {
                    html::decrypt(&page, &html::Passphrase::new(passphrase))
                }
                _ => html::content(&page),
            };
            Wrapping::Taken(opened.map_err(|error| SourceError::Broken {
                path: path.to_owned(),
                why: error.to_string(),
            })?)
        };
        Ok(Self {
            place,
            ..Self::of(bytes, path)
        })
    }

    fn open(&self) -> Result<Box<dyn Read + '_>, SourceError> {
        let bytes = || self.bytes.reader().map_err(unreadable(&self.path));
        Ok(match &self.place {
            Wrapping::Alone => bytes()?,
            Wrapping::Page => Box::new(embedded(bytes()?)),
            Wrapping::Taken(content) => Box::new(&content.transcript[..]),
        })
    }

    fn image(&self, attachment: &Attachment) -> Option<&[u8]> {
        let Wrapping::Taken(content) = &self.place else {
            return None;
        };
        let found = content
            .images
            .iter()
            .find(|image| image.sha256 == attachment.sha256);
        found.map(|image| &image.bytes[..])
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

impl Document {
    fn give(&self, event: Event, more: Beyond, to: &mut dyn Receiver) -> io::Result<()> {
        for attachment in &event.annotations.attachments {
            if let Some(bytes) = self.image(attachment) {
                to.blob(attachment, bytes)?;
            }
        }
        if more.is_empty() {
            to.event(event)
        } else {
            to.event_and_more(event, more)
        }
    }
}

impl Source for Document {
    fn format(&self) -> &'static str {
        match self.place {
            Wrapping::Alone => "normalized",
            Wrapping::Page | Wrapping::Taken(_) => "html",
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn copy(&self, to: &mut dyn Write) -> Result<(), SourceError> {
        let copied = io::copy(&mut self.open()?, to);
        copied.map(drop).map_err(unreadable(&self.path))
    }

    fn original(&self, to: Format) -> Option<io::Result<Box<dyn Read + '_>>> {
        match (&self.place, to) {
            (Wrapping::Alone, Format::Normalized)
            | (Wrapping::Page | Wrapping::Taken(_), Format::Html) => Some(self.bytes.reader()),
            (Wrapping::Page, Format::Normalized) => {
                let inside = |page| Box::new(embedded(page)) as Box<dyn Read>;
                Some(self.bytes.reader().map(inside))
            }
            (Wrapping::Taken(content), Format::Normalized) => {
                Some(Ok(Box::new(&content.transcript[..])))
            }
            _ => None,
        }
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        let read = normalized::read(self.open()?, &mut |_| {});
        let read = read.map_err(|error| self.broken(error))?;
        self.options = Some(read.options);
        Ok(read.header)
    }

    fn document(&self) -> Option<&normalized::NormalizedOptions> {
        self.options.as_ref()
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        let mut refused = None;
        let read = read_with(self.open()?, &mut |event, beyond| {
            if refused.is_some() {
                return;
            }
            refused = self.give(event, beyond, to).err();
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
