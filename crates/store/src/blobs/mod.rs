//! Large things that events refer to: images, documents, whole files.
//!
//! ```text
//! <home>/blobs/ab/cdef…    the bytes as they are; the name is their SHA-256
//! <home>/blobs/tmp/        files being written
//! <file>.blobs/            the same, for a trace that is written to a file of its own
//! ```
//!
//! Not compressed: images already are, and a blob can be opened by whatever opens such files.

pub mod gc;
pub mod mime;
pub mod phash;
mod reference;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::FileError;
use crate::address::{Digest, NotADigest, Shelf};
use crate::files;
use crate::objects::{Directory, Look, Objects, read_whole};

pub use reference::BlobRef;
pub(crate) use reference::hash;

/// The name of a blob: the SHA-256 of its bytes. Shown as 64 lowercase hex digits.
///
/// ```
/// use quipu_store::blobs::BlobId;
///
/// let id = BlobId::of(b"abc");
/// assert!(id.to_string().starts_with("ba7816bf"));
/// assert!(id.prefixed().starts_with("sha256:ba7816bf"));
/// assert!(id.uri().starts_with("agentlog-blob://quipu/ba7816bf"));
/// assert_eq!(id.uri().parse(), Ok(id));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(Digest);

const SCHEME: &str = "agentlog-blob://";

impl BlobId {
    /// The store that [`BlobId::uri`] names.
    pub const STORE: &str = "quipu";

    /// The name of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Digest::of(bytes))
    }

    /// The digest itself.
    pub fn digest(&self) -> Digest {
        self.0
    }

    /// The name as `.agentlog` has it in `blob_id`: `sha256:<hex>`.
    pub fn prefixed(&self) -> String {
        format!("sha256:{self}")
    }

    /// The name as a URI: `agentlog-blob://quipu/<hex>`.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}/{self}", Self::STORE)
    }
}

impl From<Digest> for BlobId {
    fn from(digest: Digest) -> Self {
        Self(digest)
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for BlobId {
    type Err = NotADigest;

    /// Reads any of the three forms. A URI may name any store: the digest says which blob it is.
    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = match text.strip_prefix(SCHEME) {
            Some(rest) => rest.split_once('/').map_or(rest, |(_store, hex)| hex),
            None => text.strip_prefix("sha256:").unwrap_or(text),
        };
        hex.parse().map(Self)
    }
}

/// Where the blobs of a trace are that is written to a file of its own: beside it, in a directory with its name
/// and `.blobs`. In a home, nothing would refer to them.
///
/// ```
/// use std::path::Path;
///
/// let directory = quipu_store::blobs::beside(Path::new("/code/x.agentlog"));
/// assert_eq!(directory, Path::new("/code/x.agentlog.blobs"));
/// ```
pub fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".blobs");
    name.into()
}

/// Why a blob was not kept, or not given.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is none.
    #[error("blob {} is missing", .0.display())]
    Missing(PathBuf),
    /// The bytes are not those that the name stands for.
    #[error("blob {} is damaged: its content is not what its name says", .0.display())]
    Damaged(PathBuf),
    /// The operating system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Blobs. Can be shared between threads.
#[derive(Debug)]
pub struct Blobs {
    shelf: Shelf,
    /// Where files are written before they are put into place, if blobs are files.
    tmp: Option<PathBuf>,
}

impl Blobs {
    /// The blobs in this directory, which is made when the first is put.
    ///
    /// # Errors
    ///
    /// When the directory's path is empty, or relative and there is no working directory.
    pub fn open(directory: &Path) -> Result<Self, BlobError> {
        let root = std::path::absolute(directory).map_err(FileError::at("find", directory))?;
        let tmp = root.join("tmp");
        let objects = Directory::new(root, tmp.clone());
        Ok(Self {
            shelf: Shelf::new(Arc::new(objects), ""),
            tmp: Some(tmp),
        })
    }

    /// The blobs in these objects.
    pub fn in_objects(objects: Arc<dyn Objects>) -> Self {
        Self {
            shelf: Shelf::new(objects, ""),
            tmp: None,
        }
    }

    /// Keeps these bytes. What is there already is not written again, unless it is damaged.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobId, BlobError> {
        let id = BlobId::of(bytes);
        let (objects, name) = (self.shelf.objects(), self.shelf.name_of(&id.0));
        let Some(object) = objects.open(&name)? else {
            if !objects.put_if_absent(&name, bytes)? {
                objects.touch(&name);
            }
            return Ok(id);
        };
        let mut there = Vec::new();
        let whole = read_whole(&*object, bytes.len() as u64, &mut there)
            .map_err(FileError::at("read", objects.place(&name)))?;
        if whole.is_some() && there == bytes {
            // Whoever collects what is not used spares what is young, and somebody is about to use this.
            objects.touch(&name);
        } else {
            objects.replace(&name, bytes)?;
        }
        Ok(id)
    }

    /// The bytes of a blob, checked against its name.
    ///
    /// # Errors
    ///
    /// When it is missing or damaged.
    pub fn get(&self, id: &BlobId) -> Result<Vec<u8>, BlobError> {
        let name = self.shelf.name_of(&id.0);
        match self.shelf.objects().get(&name, u64::MAX)? {
            Some(bytes) if BlobId::of(&bytes) == *id => Ok(bytes),
            Some(_) => Err(BlobError::Damaged(self.path(id))),
            None => Err(BlobError::Missing(self.path(id))),
        }
    }

    /// Where a blob is, or would be.
    pub fn path(&self, id: &BlobId) -> PathBuf {
        self.shelf.path_of(&id.0)
    }

    /// Removes a blob that nothing refers to any more.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn remove(&self, id: &BlobId) -> Result<(), BlobError> {
        self.shelf.objects().delete(&self.shelf.name_of(&id.0))?;
        Ok(())
    }

    /// What a blob looks like from outside; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn look(&self, id: &BlobId) -> Result<Option<Look>, BlobError> {
        Ok(self.shelf.objects().look(&self.shelf.name_of(&id.0))?)
    }

    /// All blobs, in the order of their names. A directory that cannot be listed is an error item; the
    /// rest goes on.
    pub fn iter(&self) -> impl Iterator<Item = Result<BlobId, BlobError>> + use<> {
        self.shelf.digests().map(|digest| Ok(BlobId(digest?)))
    }

    /// Brings everything that was put to disk.
    ///
    /// # Errors
    ///
    /// When the system refuses; then nothing since the last sync can be relied upon.
    pub fn sync(&self) -> Result<(), BlobError> {
        Ok(self.shelf.objects().sync()?)
    }

    /// Removes temporary files that were left behind more than an hour ago, and says how many.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn sweep_temporary(&self, now: Timestamp) -> Result<u64, BlobError> {
        let Some(tmp) = &self.tmp else {
            return Ok(0);
        };
        Ok(files::sweep_temporary(tmp, now, false)?.0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn open() -> (tempfile::TempDir, Blobs) {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&home.path().join("blobs")).unwrap();
        (home, blobs)
    }

    #[test]
    fn gives_back_what_was_put() {
        let (_home, blobs) = open();
        assert_eq!(blobs.iter().count(), 0);
        let mut ids = [&b""[..], b"png", &[0xff; 9000]].map(|bytes| {
            let id = blobs.put(bytes).unwrap();
            assert_eq!(blobs.get(&id).unwrap(), bytes);
            id
        });
        ids.sort_unstable();
        let listed: Result<Vec<_>, _> = blobs.iter().collect();
        assert_eq!(listed.unwrap(), ids);
        blobs.sync().unwrap();
    }

    #[test]
    fn private_and_written_once() {
        let (home, blobs) = open();
        let path = blobs.path(&blobs.put(b"png").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"png");
        let before = std::fs::metadata(&path).unwrap();
        assert_eq!(before.permissions().mode() & 0o777, 0o600);
        for directory in path.ancestors().skip(1).take(2) {
            let mode = std::fs::metadata(directory).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
        }
        blobs.put(b"png").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), before.ino());
        let tmp = home.path().join("blobs/tmp");
        assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
    }

    #[test]
    fn damage_is_told_and_mended_by_putting_again() {
        let (_home, blobs) = open();
        let id = blobs.put(b"png").unwrap();
        for damage in [&b"pmg"[..], b"pn", b"pngg", b""] {
            std::fs::remove_file(blobs.path(&id)).unwrap();
            assert!(matches!(blobs.get(&id), Err(BlobError::Missing(_))));
            files::place(&blobs.path(&id), damage, blobs.tmp.as_deref().unwrap()).unwrap();
            let error = blobs.get(&id).unwrap_err().to_string();
            assert!(error.contains(&id.to_string()[2..]), "{error}");
            blobs.put(b"png").unwrap();
            assert_eq!(blobs.get(&id).unwrap(), b"png");
        }
    }

    #[test]
    fn only_old_temporary_files_are_swept() {
        let (_home, blobs) = open();
        blobs.put(b"png").unwrap();
        std::fs::File::create(blobs.tmp.as_ref().unwrap().join("1-1")).unwrap();
        let now = Timestamp::now();
        assert_eq!(blobs.sweep_temporary(now).unwrap(), 0);
        let later = now + jiff::SignedDuration::from_mins(61);
        assert_eq!(blobs.sweep_temporary(later).unwrap(), 1);
    }

    #[test]
    fn every_form_of_a_name_is_read() {
        let id = BlobId::of(b"x");
        for form in [id.to_string(), id.prefixed(), id.uri()] {
            assert_eq!(form.parse(), Ok(id), "{form}");
        }
        assert_eq!(format!("agentlog-blob://other/{id}").parse(), Ok(id));
        for wrong in [
            "",
            "sha256:",
            "agentlog-blob://",
            "agentlog-blob://quipu/../x",
        ] {
            assert!(wrong.parse::<BlobId>().is_err(), "{wrong}");
        }
    }
}
