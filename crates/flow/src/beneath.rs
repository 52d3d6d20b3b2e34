//! Files beneath a directory, and no others, whatever a path says.
//!
//! Paths come from models and workflow files. They are never joined to the root and opened: each is resolved from the
//! root's own handle, by the kernel where it can keep a path beneath a directory (`openat2` with `RESOLVE_BENEATH`),
//! else component by component without following any symbolic link. What was checked is what is opened, so nothing
//! can be swapped in between. Pipes, sockets and devices are refused.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, statat};
use rustix::io::Errno;

#[cfg(test)]
mod tests;

/// How many links in the last part of a path are followed when a file is replaced.
const MAX_LINKS: usize = 16;

/// Why a path was refused, or what went wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out of the root.
    #[error("{path} leads out of {root}")]
    Outside {
        /// The path as it was given.
        path: String,
        /// The root.
        root: String,
    },
    /// It is not a regular file.
    #[error("{path} is {what}, not a regular file")]
    NotAFile {
        /// The path as it was given.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// It is larger than may be read or written.
    #[error("{path} has {size} bytes; at most {most} are read or written at once")]
    TooLarge {
        /// The path as it was given.
        path: String,
        /// Its size.
        size: u64,
        /// The limit.
        most: u64,
    },
    /// The system refused.
    #[error("{path}: {source}")]
    System {
        /// The path as it was given.
        path: String,
        /// Why.
        source: io::Error,
    },
}

impl PathError {
    /// Whether there is nothing at the path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A directory that paths begin at and cannot lead out of.
#[derive(Debug)]
pub struct Root {
    given: PathBuf,
    real: PathBuf,
    dir: OwnedFd,
    /// Whether the kernel is not asked to keep paths beneath the root: where it cannot, and in tests.
    by_steps: bool,
}

impl Root {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// When it does not exist or is not a directory.
    pub fn open(path: &Path) -> Result<Self, PathError> {
        let wrap = |source| PathError::System {
            path: path.display().to_string(),
            source,
        };
        let real = path.canonicalize().map_err(wrap)?;
        let given = std::path::absolute(path).map_err(wrap)?;
        let dir = rustix::fs::open(&real, DIRECTORY, Mode::empty()).map_err(|e| wrap(e.into()))?;
        let by_steps = !kernel_keeps_beneath(&dir);
        Ok(Self {
            given,
            real,
            dir,
            by_steps,
        })
    }

    /// The directory, without symbolic links in its path.
    pub fn path(&self) -> &Path {
        &self.real
    }

    /// A path as it is from the root. Absolute paths inside the root are fine.
    ///
    /// # Errors
    ///
    /// When an absolute path is not inside the root.
    pub fn relative(&self, path: &str) -> Result<PathBuf, PathError> {
        let asked = Path::new(path);
        let found = if asked.is_absolute() {
            let inside = asked.strip_prefix(&self.real);
            let inside = inside.or_else(|_| asked.strip_prefix(&self.given));
            inside.map_err(|_| self.outside(asked))?
        } else {
            asked
        };
        if found.as_os_str().as_bytes().contains(&0) {
            return Err(self.system(asked, io::Error::from(io::ErrorKind::InvalidInput)));
        }
        if found.as_os_str().is_empty() {
            return Ok(PathBuf::from("."));
        }
        Ok(found.to_owned())
    }

    /// Opens a regular file to read.
    ///
    /// # Errors
    ///
    /// When it leads out of the root, does not exist, or is not a regular file.
    pub fn read(&self, path: &Path) -> Result<File, PathError> {
        // Without blocking: opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.resolve(path, flags)?;
        self.check_regular(path, &file)?;
        Ok(File::from(file))
    }

    /// The whole of a regular file.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and when it has more than `most` bytes.
    pub fn read_all(&self, path: &Path, most: u64) -> Result<Vec<u8>, PathError> {
        let file = self.read(path)?;
        let mut all = Vec::new();
        // Read, not asked for: a file may grow, and some say that they are empty.
        let read = file.take(most + 1).read_to_end(&mut all);
        let size = read.map_err(|e| self.system(path, e))? as u64;
        if size > most {
            return Err(PathError::TooLarge {
                path: path.display().to_string(),
                size,
                most,
            });
        }
        Ok(all)
    }

    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// When it leads out of the root or is not a directory.
    pub fn directory(&self, path: &Path) -> Result<OwnedFd, PathError> {
        self.resolve(path, DIRECTORY)
    }

    /// What is at a path, links followed as far as they stay in the root.
    ///
    /// # Errors
    ///
    /// When it leads out of the root or nothing is there.
    pub fn kind(&self, path: &Path) -> Result<FileType, PathError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.resolve(path, flags);
        let file = match opened {
            // A socket cannot be opened, but is there.
            Err(PathError::System { source, .. })
                if source.raw_os_error() == Some(Errno::NXIO.raw_os_error()) =>
            {
                return Ok(FileType::Socket);
            }
            other => other?,
        };
        let stat = fstat(&file).map_err(|e| self.system(path, e.into()))?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    /// The real path of a directory beneath the root, for programs that are started in it.
    ///
    /// # Errors
    ///
    /// As [`directory`](Self::directory).
    pub fn real_directory(&self, path: &Path) -> Result<PathBuf, PathError> {
        let dir = self.directory(path)?;
        let real = path_of(&dir).map_err(|e| self.system(path, e))?;
        if !real.starts_with(&self.real) {
            return Err(self.outside(path));
        }
        Ok(real)
    }

    /// Replaces a file, or makes a new one, at once: nobody sees half of it. The permissions of a file that is
    /// replaced are kept; directories that are missing are made.
    ///
    /// # Errors
    ///
    /// When it leads out of the root, something else than a regular file is there, or the system refuses.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), PathError> {
        let (dir, name) = self.place(path)?;
        let system = |e: Errno| self.system(path, e.into());
        let mode = match statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                self.refuse_other(path, FileType::from_raw_mode(stat.st_mode))?;
                Some(Mode::from_raw_mode(stat.st_mode))
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(system(error)),
        };
        let temporary = temporary_name();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A new file gets what the user's umask leaves; one that is replaced is private until it has its old mode.
        let first = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
        let file = openat(&dir, &temporary, flags, first).map_err(system)?;
        let mut file = File::from(file);
        let written = file.write_all(content).and_then(|()| {
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, mode)?;
            }
            rustix::fs::renameat(&dir, &temporary, &dir, &name)?;
            Ok(())
        });
        written.map_err(|source| {
            rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty()).ok();
            self.system(path, source)
        })
    }

    /// Adds to the end of a file, or makes a new one.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn append(&self, path: &Path, content: &[u8]) -> Result<(), PathError> {
        let (dir, name) = self.place(path)?;
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let opened = openat(&dir, &name, flags, Mode::from_raw_mode(0o666));
        let file = opened.map_err(|e| self.system(path, e.into()))?;
        self.check_regular(path, &file)?;
        let written = File::from(file).write_all(content);
        written.map_err(|e| self.system(path, e))
    }

    /// Removes a file or a symbolic link, not what the link leads to. Directories are refused.
    ///
    /// # Errors
    ///
    /// When it leads out of the root, does not exist or is a directory.
    pub fn remove(&self, path: &Path) -> Result<(), PathError> {
        let (dir, name) = self.parent(path, false)?;
        rustix::fs::unlinkat(&dir, &name, AtFlags::empty()).map_err(|e| self.system(path, e.into()))
    }

    /// The directory and name at which a file is written. Links in the last part are followed beneath the root, so
    /// that writing by way of a link changes the file and not the link.
    fn place(&self, path: &Path) -> Result<(OwnedFd, OsString), PathError> {
        let mut at = path.to_owned();
        for _ in 0..MAX_LINKS {
            let (dir, name) = self.parent(&at, true)?;
            let link = match rustix::fs::readlinkat(&dir, &name, Vec::new()) {
                Ok(link) => link,
                Err(Errno::INVAL | Errno::NOENT) => return Ok((dir, name)),
                Err(error) => return Err(self.system(path, error.into())),
            };
            if self.by_steps {
                return Err(self.system(path, Errno::LOOP.into()));
            }
            let link = PathBuf::from(OsStr::from_bytes(link.as_bytes()).to_owned());
            if link.is_absolute() {
                let inside = link.strip_prefix(&self.real);
                inside.map_err(|_| self.outside(path))?.clone_into(&mut at);
            } else {
                at = at.parent().unwrap_or(Path::new("")).join(link);
            }
        }
        Err(self.system(path, Errno::LOOP.into()))
    }

    /// The directory that a path is in, opened, and its last part. With `make`, missing directories are made.
    fn parent(&self, path: &Path, make: bool) -> Result<(OwnedFd, OsString), PathError> {
        let Some(name) = path.file_name().map(OsStr::to_owned) else {
            return Err(PathError::NotAFile {
                path: path.display().to_string(),
                what: "a directory",
            });
        };
        let above = path.parent().filter(|it| !it.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        match self.directory(above) {
            Err(error) if make && error.is_missing() => {}
            other => return other.map(|dir| (dir, name)),
        }
        let mut so_far = PathBuf::new();
        let mut last = self.directory(Path::new("."))?;
        for part in above.components() {
            so_far.push(part);
            last = match self.directory(&so_far) {
                Err(error) if error.is_missing() && matches!(part, Component::Normal(_)) => {
                    match mkdirat(&last, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => self.directory(&so_far)?,
                        Err(error) => return Err(self.system(path, error.into())),
                    }
                }
                other => other?,
            };
        }
        Ok((last, name))
    }

    /// Opens what is at a path beneath the root.
    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, PathError> {
        let opened = if self.by_steps {
            self.resolve_by_steps(path, flags)
        } else {
            resolve_by_kernel(&self.dir, path, flags)
        };
        opened.map_err(|error| match error {
            Errno::XDEV => self.outside(path),
            error => self.system(path, error.into()),
        })
    }

    /// Opens a path component by component. No link is followed, so `..` is the directory that was opened before.
    fn resolve_by_steps(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut opened: Vec<OwnedFd> = Vec::new();
        let parts: Vec<_> = path.components().collect();
        for (i, part) in parts.iter().enumerate() {
            let at = opened.last().map_or(self.dir.as_fd(), AsFd::as_fd);
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    if opened.pop().is_none() {
                        return Err(Errno::XDEV);
                    }
                }
                Component::Normal(name) => {
                    let flags = if i + 1 == parts.len() {
                        flags
                    } else {
                        DIRECTORY
                    };
                    let next = openat(at, *name, flags | OFlags::NOFOLLOW, Mode::empty())?;
                    opened.push(next);
                }
                Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
            }
        }
        match opened.pop() {
            Some(last) => Ok(last),
            None => openat(&self.dir, ".", flags, Mode::empty()),
        }
    }

    fn check_regular(&self, path: &Path, file: &OwnedFd) -> Result<(), PathError> {
        let stat = fstat(file).map_err(|e| self.system(path, e.into()))?;
        self.refuse_other(path, FileType::from_raw_mode(stat.st_mode))
    }

    #[expect(clippy::unused_self, reason = "one of the checks of a root")]
    fn refuse_other(&self, path: &Path, kind: FileType) -> Result<(), PathError> {
        if kind == FileType::RegularFile {
            return Ok(());
        }
        Err(PathError::NotAFile {
            path: path.display().to_string(),
            what: called(kind),
        })
    }

    fn outside(&self, path: &Path) -> PathError {
        PathError::Outside {
            path: path.display().to_string(),
            root: self.real.display().to_string(),
        }
    }

    #[expect(clippy::unused_self, reason = "beside `outside`")]
    fn system(&self, path: &Path, source: io::Error) -> PathError {
        PathError::System {
            path: path.display().to_string(),
            source,
        }
    }

    /// For tests: a root whose paths are resolved as on systems whose kernel cannot.
    #[cfg(test)]
    pub(crate) fn open_by_steps(path: &Path) -> Result<Self, PathError> {
        let mut root = Self::open(path)?;
        root.by_steps = true;
        Ok(root)
    }
}

/// How directories are opened.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// What a file is called that is not a regular one.
pub fn called(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}

#[cfg(target_os = "linux")]
fn resolve_by_kernel(dir: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), beneath) {
            // Something was moved while `..` was resolved.
            Err(Errno::AGAIN) if tries < 100 => tries += 1,
            other => return other,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn resolve_by_kernel(_: &OwnedFd, _: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Whether the kernel can keep a path beneath a directory. Old ones cannot, and some sandboxes forbid the call.
fn kernel_keeps_beneath(dir: &OwnedFd) -> bool {
    resolve_by_kernel(dir, Path::new("."), DIRECTORY).is_ok()
}

#[cfg(target_os = "linux")]
fn path_of(dir: &OwnedFd) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn path_of(dir: &OwnedFd) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let path = rustix::fs::getpath(dir)?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".quipu-{}-{next}.tmp", std::process::id())
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is; links are not followed.
    pub kind: FileType,
}

/// The entries of a directory in order of their names, at most `most`, and whether there are more.
///
/// # Errors
///
/// When the system refuses.
pub fn entries(dir: &OwnedFd, most: usize) -> io::Result<(Vec<Entry>, bool)> {
    let mut all = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if all.len() == most {
            all.sort_by(|a: &Entry, b| a.name.cmp(&b.name));
            return Ok((all, true));
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown
            && let Ok(stat) = statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
        {
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        all.push(Entry {
            name: OsStr::from_bytes(name).to_owned(),
            kind,
        });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((all, false))
}

/// Opens a directory of a directory; a link is not followed.
///
/// # Errors
///
/// When the system refuses.
pub fn child_directory(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(
        dir,
        name,
        DIRECTORY | OFlags::NOFOLLOW,
        Mode::empty(),
    )?)
}

/// Opens a regular file of a directory to read; a link is not followed. `None` when it is something else.
///
/// # Errors
///
/// When the system refuses.
pub fn child_file(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<File>> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    Ok((kind == FileType::RegularFile).then(|| File::from(file)))
}
