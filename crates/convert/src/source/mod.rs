//! Where sessions come from.
//!
//! A source is read twice: once for what is known of the session as a whole, which most formats want at the
//! beginning, and once for its events. Nothing is held in between but a few marks, so a session of any length is
//! converted in the same memory.

mod directory;
mod document;
mod environment;
mod exchange;
mod log;
mod part;
mod redacted;
mod sniff;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_formats::flow::Originals;
use quipu_formats::normalized::{self, Beyond};
use quipu_model::{Attachment, Event, Header, Timestamp};
use quipu_prices::Prices;

use crate::Format;

pub use directory::RunDirectory;
pub use document::Document;
pub use exchange::Transcript;
pub use log::{Bytes, Entries, Log, LogFile};
pub use redacted::{Redacted, Removal};
pub use sniff::{open, open_as, whose};

/// Something that holds one session.
pub trait Source: Send {
    /// What it is: the name of a format, or of an agent's dialect.
    fn format(&self) -> &'static str;

    /// The file or directory that it is read from.
    fn path(&self) -> &Path;

    /// Whether something is removed from it: then what it is read from is more than what it gives, and is not to be
    /// read instead.
    fn is_redacted(&self) -> bool {
        false
    }

    /// Gives the bytes it is read from, as they are, where it is one file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no single file.
    fn copy(&self, to: &mut dyn Write) -> Result<(), SourceError>;

    /// Whether it is kept as a set of files that can be had again as they were: a run directory.
    fn has_originals(&self) -> bool {
        false
    }

    /// Gives those files, by their names below the directory; `put` says whether there is a place for one.
    ///
    /// # Errors
    ///
    /// It cannot be read, is not kept as files, or whoever takes them refuses.
    fn originals(
        &self,
        _put: &mut dyn FnMut(&str, &[u8]) -> io::Result<bool>,
    ) -> Result<Originals, SourceError> {
        Err(SourceError::Broken {
            path: self.path().to_owned(),
            why: "not kept as a set of files".to_owned(),
        })
    }

    /// The bytes it is read from, where they are a document in this format already: what somebody wrote in a format is
    /// given back in that format as they wrote it. Bytes that a profile removes something from are not given.
    fn original(&self, _to: Format) -> Option<io::Result<Box<dyn Read + '_>>> {
        None
    }

    /// When the bytes were captured: when they were kept, or when the file was last written to.
    fn captured_at(&self) -> Option<Timestamp> {
        None
    }

    /// What is known of the session as a whole.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn header(&mut self) -> Result<Header, SourceError>;

    /// What a normalized transcript says beside what happened, where this is one: who shares it, what was removed.
    fn document(&self) -> Option<&normalized::NormalizedOptions> {
        None
    }

    /// Gives its events, in order. After [`Source::header`].
    ///
    /// # Errors
    ///
    /// It cannot be read, or whoever takes the events refuses.
    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError>;
}

/// What it takes to read a source.
#[derive(Clone, Default)]
pub struct Reading {
    /// What tokens cost.
    pub prices: Arc<Prices>,
    /// What opens pages that are encrypted.
    pub passphrase: Option<String>,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

/// Whoever takes the events of a source.
pub trait Receiver {
    /// Takes the bytes of an attachment that the next event refers to.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from going on. Nothing more is given.
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()>;

    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from going on. Nothing more is given.
    fn event(&mut self, event: Event) -> io::Result<()>;

    /// Takes the next event, and what a normalized transcript says of it that the model has no place for.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from going on. Nothing more is given.
    fn event_and_more(&mut self, event: Event, _more: Beyond) -> io::Result<()> {
        self.event(event)
    }
}

/// What became of the records of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// How many records there were.
    pub records: u64,
    /// Those that became no event, by the reason for it.
    pub dropped: BTreeMap<String, u64>,
    /// What was mended in order to read it.
    pub mended: BTreeMap<String, u64>,
    /// Why it could not be read wholly.
    pub problems: Vec<String>,
    /// What is not as it should be, though all of it was read.
    pub remarks: Vec<String>,
    /// Fields of records that are in no event, by their names.
    pub unkept: BTreeMap<String, u64>,
    /// What was taken for something else, and for what.
    pub read_as: BTreeMap<String, u64>,
}

impl Account {
    /// Whether something that was there is not among the events. What is only said twice is.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
            && self.unkept.is_empty()
            && self.read_as.is_empty()
            && self.lost().next().is_none()
            && self.mended().next().is_none()
    }

    /// What was there and is not among the events, by the reason for it.
    pub fn lost(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const LOST: [(&str, &str); 3] = [
            ("too_long", "too long to be read"),
            ("torn_tail", "cut off at the end"),
            ("unreadable", "that could not be read"),
        ];
        let count = |(word, why)| Some((why, *self.dropped.get(word)?));
        LOST.into_iter().filter_map(count)
    }

    /// What is among the events, but not as it was.
    pub fn mended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const CHANGED: [(&str, &str); 1] = [(
            "invalid_utf8",
            "with bytes that are no text, which became U+FFFD",
        )];
        let count = |(word, why)| Some((why, *self.mended.get(word)?));
        CHANGED.into_iter().filter_map(count)
    }
}

/// Why a source could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file could not be read.
    #[error("could not read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing knows what it is.
    #[error("{} is in no format that is known", .0.display())]
    Unknown(PathBuf),
    /// It holds several sessions, and has to be imported first.
    #[error("{} is a database of many sessions", .0.display())]
    Many(PathBuf),
    /// There is nothing in it.
    #[error("there is no event in {}", .0.display())]
    Empty(PathBuf),
    /// It is in a format that is known, but cannot be read.
    #[error("{}: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// Whoever takes the events refused.
    #[error(transparent)]
    Refused(io::Error),
}

/// When a file was last written to.
fn modified_at(path: &Path) -> Option<Timestamp> {
    let modified = path.metadata().and_then(|it| it.modified()).ok()?;
    let at = Timestamp::try_from(modified).ok()?;
    Timestamp::from_second(at.as_second()).ok()
}

pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> SourceError + '_ {
    |source| SourceError::Io {
        path: path.to_owned(),
        source,
    }
}
