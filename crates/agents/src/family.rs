//! What an adapter is.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quipu_model::json::Node;

use crate::{Framing, Head, Host, Out, Session};

/// A family of agents whose logs are alike.
///
/// A family says where logs may be ([`places`](Self::places)), whether a log is one of its own
/// ([`sniff`](Self::sniff)) and how it reads ([`open`](Self::open)). It never writes, and it opens nothing
/// itself: bytes are brought to it.
pub trait Family: Sync {
    /// The family's name, which is that of its module.
    fn name(&self) -> &'static str;

    /// The ways in which the family writes logs.
    fn dialects(&self) -> &'static [Dialect];

    /// Where the agents of this family keep logs on this machine. The places need not exist. Formats that no agent
    /// keeps logs in have none.
    fn places(&self, _host: &Host) -> Vec<LogPlace> {
        Vec::new()
    }

    /// Whether this is a log of the family. Decided from what is in it, never from its name.
    fn sniff(&self, head: &Head<'_>) -> Option<Match>;

    /// How a log at this path reads, in a place of the agent `brand`, where its content does not tell
    /// ([`crate::recognise()`]).
    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        None
    }

    /// A reader for a log of this dialect: from its beginning, or from where another reader was when it
    /// saved `state`. `None` when that state is not understood.
    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        state: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>>;

    /// Small documents beside a log that say more of the session. They need not exist.
    fn sidecars(&self, _log: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// How sessions are taken out of something that holds many: a database, a tree of small files.
    fn gather(&self) -> Option<&dyn Gather> {
        None
    }

    /// The agent's own command that continues a session, to be run in the session's directory.
    fn resume(&self, _brand: &str, _session: &str) -> Option<Vec<String>> {
        None
    }
}

/// A family's name and dialects; its module `discover` knows its logs.
macro_rules! known {
    ($name:literal, [$($dialect:expr),+ $(,)?]) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn dialects(&self) -> &'static [$crate::Dialect] {
            &[$($dialect),+]
        }

        fn sniff(&self, head: &$crate::Head<'_>) -> Option<$crate::Match> {
            discover::sniff(head)
        }
    };
}

/// A family whose module `discover` has its places.
macro_rules! placed {
    () => {
        fn places(&self, host: &$crate::Host) -> Vec<$crate::LogPlace> {
            discover::places(host)
        }
    };
}

/// A family whose module `discover` tells dialects by the paths of logs.
macro_rules! dialect_by_path {
    () => {
        fn dialect_at(&self, _brand: &str, path: &std::path::Path) -> Option<$crate::Dialect> {
            discover::dialect_at(path)
        }
    };
}

/// A family's readers: one for all dialects, or one for each. The expressions make those that begin at the beginning.
macro_rules! opened {
    ($dialect:ident, $origin:ident => match { $($pattern:pat => $new:expr),+ $(,)? }) => {
        fn open(
            &self,
            $dialect: &$crate::Dialect,
            $origin: &$crate::Origin<'_>,
            saved: Option<&[u8]>,
        ) -> Option<Box<dyn $crate::Reader>> {
            match *$dialect {
                $($pattern => $crate::state::open(saved, || $new),)+
            }
        }
    };
    ($dialect:ident, $origin:ident => $new:expr) => {
        fn open(
            &self,
            $dialect: &$crate::Dialect,
            $origin: &$crate::Origin<'_>,
            saved: Option<&[u8]>,
        ) -> Option<Box<dyn $crate::Reader>> {
            $crate::state::open(saved, || $new)
        }
    };
}

pub(crate) use {dialect_by_path, known, opened, placed};

/// Reads the records of one log, in order.
///
/// A reader holds no more than it needs to understand the next record, and what it holds can be saved.
pub trait Reader: Send {
    /// Takes the next record, or the document. Of a document, each item is handed to [`Out::record`].
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>);

    /// Which lists of a document that is read in parts ([`Framing::Parts`]) are given item by item.
    fn lists(&self) -> &'static [&'static str] {
        &[]
    }

    /// Takes the next part of a document that is read in parts: a field, or with its `index` an item of one
    /// of [`Self::lists`]. Each is a record of its own. What becomes nothing here is kept as a note, unless
    /// [`Out::skip`] says why.
    fn part(&mut self, _key: &str, _index: Option<u64>, _value: Node<'_>, _out: &mut Out<'_>) {}

    /// Takes a text that is no JSON.
    fn text(&mut self, _text: &str, _out: &mut Out<'_>) {}

    /// Takes a document from beside the log, after the log.
    fn sidecar(&mut self, _name: &str, _document: Node<'_>, _out: &mut Out<'_>) {}

    /// Nothing more is there for now: gives what was held back. When the log grows, reading goes on from
    /// the state before this.
    fn finish(&mut self, _out: &mut Out<'_>) {}

    /// Whether a line, as it stands in the log, can have no part in which calls to models are counted and
    /// where. Asked only of who wants nothing else ([`Feed::skim`](crate::Feed::skim)); to say no is always right.
    fn can_skip(&self, _line: &[u8]) -> bool {
        false
    }

    /// What the log says of the session so far.
    fn session(&self) -> &Session;

    /// All that is needed to go on later; see [`crate::state`].
    fn save(&self) -> crate::state::Saved;
}

/// One way in which a family writes logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// Its name, unique among all dialects: `claude`, `claude-stream`, ….
    pub name: &'static str,
    /// The agent it is written by, where nothing else tells.
    pub brand: &'static str,
    /// How it is divided into records.
    pub framing: Framing,
}

impl Dialect {
    /// JSON lines.
    pub const fn lines(name: &'static str, brand: &'static str) -> Self {
        Self::framed(name, brand, Framing::Lines)
    }

    /// One document that is read as a whole.
    pub const fn document(name: &'static str, brand: &'static str) -> Self {
        Self::framed(name, brand, Framing::Document)
    }

    /// Framed in another way.
    pub const fn framed(name: &'static str, brand: &'static str, framing: Framing) -> Self {
        Self {
            name,
            brand,
            framing,
        }
    }
}

/// What a family says of a log that is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// How it reads.
    pub dialect: Dialect,
    /// Whether it cannot be anything else.
    pub sure: bool,
}

impl Match {
    /// It cannot be anything else.
    pub const fn sure(dialect: Dialect) -> Option<Self> {
        Some(Self {
            dialect,
            sure: true,
        })
    }

    /// It is this unless another family is sure.
    pub const fn likely(dialect: Dialect) -> Option<Self> {
        Some(Self {
            dialect,
            sure: false,
        })
    }
}

/// Where a log was found. Some logs do not name their session, and their place does.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The file.
    pub path: &'a Path,
    /// Which session of those it holds.
    pub part: Option<&'a str>,
}

impl Origin<'_> {
    /// The file's name without its ending, as text.
    pub fn stem(&self) -> Option<&str> {
        self.path.file_stem()?.to_str()
    }

    /// The names of the directories above the file, the nearest first.
    pub fn above(&self) -> impl Iterator<Item = &str> {
        self.path
            .ancestors()
            .skip(1)
            .filter_map(|path| path.file_name()?.to_str())
    }
}

/// A directory, or a file, that an agent keeps logs in.
#[derive(Debug, Clone)]
pub struct LogPlace {
    /// The agent.
    pub brand: &'static str,
    /// Where to begin.
    pub root: PathBuf,
    /// How many directories deep logs can be; 0 for files in `root` itself, or for `root` being a file.
    pub depth: usize,
    /// What a file or directory is, by its path below `root` (empty for `root` itself).
    pub pick: fn(&Path) -> Pick,
}

/// The ending of a file's name.
pub(crate) fn ending(path: &Path) -> &str {
    path.extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default()
}

/// What a file or directory is to the importer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// A log: one session, or a part of one.
    Log,
    /// Kept as it is, and not read.
    Keep,
    /// Holds many sessions; see [`Gather`].
    Gather,
    /// Nothing of ours. A directory is still looked into.
    Skip,
}

/// Takes sessions out of something that holds many.
///
/// A database also holds what is none of our business, and an agent's own files must not even be locked.
/// So it is copied, the rows of each session are written out as lines (`{"table":…,"row":…}`), and those
/// lines are what is kept and read.
pub trait Gather: Sync {
    /// The sessions that are there.
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError>;

    /// Writes one session, in an order that does not change when the session grows.
    fn write(&self, from: &Gathered<'_>, part: &str, to: &mut dyn Write)
    -> Result<(), GatherError>;

    /// How what is written reads.
    fn dialect(&self) -> Dialect;

    /// Whether a directory holds sessions of this kind, by the names in it. For directories that are
    /// named by a person; the places of agents say themselves what is what.
    fn holds(&self, _directory: &Path) -> bool {
        false
    }

    /// Whether a file that begins so holds sessions of this kind. For files that are named by a person.
    fn holds_file(&self, _begin: &[u8]) -> bool {
        false
    }
}

/// What sessions are taken out of.
pub enum Gathered<'a> {
    /// A private copy of a database.
    Database(&'a rusqlite::Connection),
    /// A directory.
    Tree(&'a Path),
    /// A file.
    File(&'a Path),
}

impl Gathered<'_> {
    /// The database, where sessions are in one.
    pub(crate) fn database(&self) -> Result<&rusqlite::Connection, GatherError> {
        match self {
            Self::Database(database) => Ok(database),
            Self::Tree(_) | Self::File(_) => Err(GatherError::Unknown(
                "sessions are in a database".to_owned(),
            )),
        }
    }
}

/// One session of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its native id.
    pub id: String,
    /// Changes whenever the session does.
    pub stamp: String,
}

/// Why sessions could not be taken out.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The database refused.
    #[error("the database cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not have the tables that are known.
    #[error("{0}")]
    Unknown(String),
}
