//! Objects: bytes that are kept under a name and not changed.
//!
//! Chunks of the archive and blobs lie in objects. Whoever keeps them uses [`Objects`] and nothing else, so that another
//! machine's disk or a service can take the place of a directory. An implementation is asked for what such services can
//! do: to put an object unless it is there, to put one in place of another, to read a part, to list names by how they
//! begin, to delete. Nothing is renamed, nothing is appended to. `testkit::objects` tries any implementation.

mod directory;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use quipu_model::Timestamp;

pub use directory::Directory;

use crate::FileError;
use crate::address::Digest;

/// The name of an object: a folder and a name in it, `ab/cdef.zst`.
///
/// ```
/// use quipu_store::objects::ObjectName;
///
/// assert!(ObjectName::new("ab/cdef.zst").is_ok());
/// assert!(ObjectName::new("../cdef").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

/// The text is not the name of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the name of an object: {0:?}; it has a folder, `/` and a name of letters, digits, `.`, `_` and `-`"
)]
pub struct NotAName(String);

impl ObjectName {
    /// How long each part of a name is at most.
    const LONGEST: usize = 128;

    /// Reads a name.
    ///
    /// # Errors
    ///
    /// When it is not of the form `folder/name`, or has other characters than letters, digits, `.`, `_` and `-`.
    pub fn new(text: &str) -> Result<Self, NotAName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_part = |part: &str| {
            // What begins with a dot is hidden, or a directory above.
            let len = part.len();
            (1..=Self::LONGEST).contains(&len)
                && !part.starts_with('.')
                && part.bytes().all(is_plain)
        };
        let is_name = text
            .split_once('/')
            .is_some_and(|(folder, name)| is_part(folder) && is_part(name));
        is_name
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| NotAName(text.to_owned()))
    }

    /// The name of an object that is named by its content: `ab/cdef…`, so that no folder gets too large.
    pub(crate) fn of_digest(digest: &Digest, extension: &str) -> Self {
        let digits = digest.to_string();
        let (folder, rest) = digits.split_at(2);
        Self(format!("{folder}/{rest}{extension}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder, and the name in it.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or((&self.0, ""))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an object looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// How many bytes it has.
    pub len: u64,
    /// When it was put, or last touched; `None` where nobody knows.
    pub written: Option<Timestamp>,
}

/// Where objects are kept. Every method may be called from any thread at any time.
pub trait Objects: fmt::Debug + Send + Sync {
    /// Keeps bytes under a name, unless there is an object of that name: then it stays. Says whether they were kept. Of
    /// several who put at the same time, one is told so. Whoever opens the name meanwhile finds all bytes or no object.
    ///
    /// # Errors
    ///
    /// When they cannot be kept. Then there is no object, or the one that was there.
    fn put_if_absent(&self, name: &ObjectName, bytes: &[u8]) -> Result<bool, FileError>;

    /// Keeps bytes under a name in place of what is there, which was found to be damaged.
    ///
    /// # Errors
    ///
    /// When they cannot be kept. Then what was there stays.
    fn replace(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), FileError>;

    /// Opens an object; `None` when there is none of this name.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    fn open(&self, name: &ObjectName) -> Result<Option<Box<dyn Object>>, FileError>;

    /// What an object looks like; `None` when there is none of this name.
    ///
    /// # Errors
    ///
    /// When it cannot be looked at.
    fn look(&self, name: &ObjectName) -> Result<Option<Look>, FileError>;

    /// The names that begin with this, in order. What cannot be listed is an error item, and the rest goes on. What is
    /// put or deleted meanwhile may be among them or not.
    fn list(&self, prefix: &str) -> Box<dyn Iterator<Item = Result<ObjectName, FileError>> + Send>;

    /// Deletes an object, and says whether it was there.
    ///
    /// # Errors
    ///
    /// When it cannot be deleted.
    fn delete(&self, name: &ObjectName) -> Result<bool, FileError>;

    /// Makes an object look as if it had just been put: somebody is about to use it, and whoever removes what is not
    /// used spares what is young. Where that cannot be done, nothing happens.
    fn touch(&self, name: &ObjectName);

    /// Makes everything durable that was put by this value.
    ///
    /// # Errors
    ///
    /// When that cannot be done. Then nothing that was put since the last time can be relied upon.
    fn sync(&self) -> Result<(), FileError>;

    /// Where an object is or would be, for people.
    fn place(&self, name: &ObjectName) -> PathBuf;

    /// Reads an object; `None` when there is none of this name.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or has more than `most` bytes.
    fn get(&self, name: &ObjectName, most: u64) -> Result<Option<Vec<u8>>, FileError> {
        let Some(object) = self.open(name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = match read_whole(&*object, most, &mut bytes) {
            Ok(Some(())) => Ok(Some(bytes)),
            Ok(None) => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it has more than {most} bytes"),
            )),
            Err(error) => Err(error),
        };
        read.map_err(FileError::at("read", self.place(name)))
    }

    /// Reads a part of an object; `None` when there is none of this name.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not that long.
    fn get_range(
        &self,
        name: &ObjectName,
        range: Range<u64>,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let Some(object) = self.open(name)? else {
            return Ok(None);
        };
        let wanted = range.end.saturating_sub(range.start);
        // Before memory is taken for it: a length may be made up.
        let read = object.len().and_then(|len| {
            let fits = range.end <= len;
            let wanted = usize::try_from(wanted).ok().filter(|_| fits);
            let mut bytes = vec![0; wanted.ok_or(io::ErrorKind::UnexpectedEof)?];
            object.read_at(&mut bytes, range.start)?;
            Ok(bytes)
        });
        read.map(Some)
            .map_err(FileError::at("read", self.place(name)))
    }
}

/// An object that is open. It can be read for as long as it is, where the implementation can have it so: in a directory
/// also when it is deleted meanwhile.
pub trait Object: fmt::Debug + Send + Sync {
    /// How many bytes it has.
    ///
    /// # Errors
    ///
    /// When nobody can tell.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has none.
    ///
    /// # Errors
    ///
    /// When nobody can tell.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Fills a buffer with the bytes from an offset on.
    ///
    /// # Errors
    ///
    /// When they cannot be read; [`io::ErrorKind::UnexpectedEof`] when there are not so many.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;
}

/// Reads an object as a whole into a buffer, or gives `None` when it is longer than `most`, having read nothing.
///
/// # Errors
///
/// When it cannot be read.
pub fn read_whole(object: &dyn Object, most: u64, into: &mut Vec<u8>) -> io::Result<Option<()>> {
    into.clear();
    let len = object.len()?;
    let Some(len) = usize::try_from(len).ok().filter(|_| len <= most) else {
        return Ok(None);
    };
    into.resize(len, 0);
    object.read_at(into, 0)?;
    Ok(Some(()))
}
