//! What the journal needs of a file, so that tests can give it one that fails.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// An append-only file. Calls may come from several threads; appends only from one at a time.
pub trait Medium: Send + Sync {
    /// Appends, once; may take less than it is given.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file off at `len`.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Brings what was appended to disk.
    fn sync(&self) -> io::Result<()>;

    /// How long the file is.
    fn size(&self) -> io::Result<u64>;

    /// Whether the file is still where it was opened.
    fn is_in_place(&self) -> io::Result<bool>;

    /// Lets another process write to the file.
    fn unlock(&self) -> io::Result<()>;

    /// Reads at an offset; gives 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

/// A file on disk.
#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    /// The same file, opened again: two threads that use one descriptor contend for it in the
    /// kernel, and readers must not slow the writer down.
    reader: File,
    path: PathBuf,
}

impl DiskFile {
    /// Opens a file for reading and appending, private to the user. `create` makes it if it is not
    /// there.
    ///
    /// A symbolic link is refused: it could lead anywhere. So is a pipe or device; opening those
    /// could also block, hence `O_NONBLOCK`, which means nothing to regular files.
    pub(crate) fn open(path: &Path, create: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(create)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        if identity(&reader.metadata()?) != identity(&file.metadata()?) {
            return Err(io::Error::other("it was replaced while it was opened"));
        }
        Ok(Self {
            file,
            reader,
            path: path.to_owned(),
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl Medium for DiskFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(there) => Ok(identity(&there) == identity(&ours)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reader.read_at(buffer, offset)
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
