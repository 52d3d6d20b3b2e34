//! Files that are there once they are whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};

use quipu_files::create_directory;
use quipu_formats::projection::Beside;

/// A file that is there once it is whole, private, and not over another unless that is asked for.
///
/// Until then it has no name where the system knows files without one, so that nothing is left of it
/// however the process ends. What is no regular file, such as a pipe or a terminal, is written to as it is.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    force: bool,
    made: Made,
}

#[derive(Debug)]
enum Made {
    /// Without a name.
    Unnamed(File),
    /// Under another name, where the system knows no files without one.
    Named(tempfile::NamedTempFile),
    /// What is there already, and is no regular file.
    There(File),
}

impl NewFile {
    /// Begins one.
    ///
    /// # Errors
    ///
    /// It is there already, or cannot be made.
    pub fn begin(path: &Path, force: bool) -> io::Result<Self> {
        Self::begin_in(directory_of(path), path, force)
    }

    /// Begins one in a directory that is made when the file is whole, where it is not there.
    ///
    /// # Errors
    ///
    /// It is there already, or cannot be made.
    pub fn begin_below(path: &Path, force: bool) -> io::Result<Self> {
        Self::begin_in(there_already(directory_of(path)), path, force)
    }

    fn begin_in(directory: &Path, path: &Path, force: bool) -> io::Result<Self> {
        let made = if is_special(path) {
            Made::There(File::options().write(true).open(path)?)
        } else {
            if !force && path.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if path.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            make(directory)?
        };
        Ok(Self {
            path: path.to_owned(),
            force,
            made,
        })
    }

    fn as_file(&self) -> &File {
        match &self.made {
            Made::Unnamed(file) | Made::There(file) => file,
            Made::Named(file) => file.as_file(),
        }
    }

    /// Where to write to.
    pub fn writer(&self) -> BufWriter<&File> {
        BufWriter::with_capacity(1 << 16, self.as_file())
    }

    /// The file itself, for whoever has to own it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn file(&self) -> io::Result<File> {
        self.as_file().try_clone()
    }

    /// Puts it in its place.
    ///
    /// # Errors
    ///
    /// It cannot be brought to disk, or another is there meanwhile.
    pub fn finish(self) -> io::Result<()> {
        let Self { path, force, made } = self;
        if !matches!(made, Made::There(_)) {
            create_directory(directory_of(&path))?;
        }
        match made {
            Made::There(_) => Ok(()),
            Made::Named(file) => {
                file.as_file().sync_all()?;
                place(file, &path, force)
            }
            Made::Unnamed(file) => {
                file.sync_all()?;
                if !force {
                    return name(&file, &path);
                }
                // A name of its own first: only a rename takes the place of another in one step.
                let directory = directory_of(&path);
                let between = tempfile::Builder::new()
                    .prefix(".quipu-")
                    .make_in(directory, |between| name(&file, between))?;
                between
                    .persist(&path)
                    .map(drop)
                    .map_err(|error| error.error)
            }
        }
    }
}

fn place(file: tempfile::NamedTempFile, path: &Path, force: bool) -> io::Result<()> {
    let placed = if force {
        file.persist(path).map(drop)
    } else {
        file.persist_noclobber(path).map(drop)
    };
    placed.map_err(|error| error.error)
}

fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// The directory itself, or the nearest above it that is there.
pub fn there_already(directory: &Path) -> &Path {
    let mut above = directory.ancestors();
    let found = above.find(|it| !it.as_os_str().is_empty() && it.is_dir());
    found.unwrap_or(Path::new("."))
}

/// Whether it is there and another file cannot take its place: a pipe, a terminal, a device, or a file by the number that a
/// process has it open under. An ordinary file is not, wherever it lies.
fn is_special(path: &Path) -> bool {
    // `/dev/stdout` and the like are links to these. What they are open on is not theirs to replace.
    let is_number = ["/dev/fd", "/proc"]
        .iter()
        .any(|root| path.starts_with(root))
        || ["/dev/stdin", "/dev/stdout", "/dev/stderr"]
            .iter()
            .any(|name| path == Path::new(name));
    let there = fs::metadata(path);
    there.is_ok_and(|it| !it.is_dir() && (!it.is_file() || is_number))
}

/// A private file without a name, or under a name that nobody else has.
fn make(directory: &Path) -> io::Result<Made> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let unnamed = quipu_files::options()
            .write(true)
            .read(true)
            .custom_flags(libc::O_TMPFILE)
            .open(directory);
        match unnamed {
            Ok(file) => return Ok(Made::Unnamed(file)),
            // Not every file system has them.
            Err(error) if is_unknown(&error) => {}
            Err(error) => return Err(error),
        }
    }
    tempfile::NamedTempFile::new_in(directory).map(Made::Named)
}

#[cfg(target_os = "linux")]
fn is_unknown(error: &io::Error) -> bool {
    let unknown = [libc::EOPNOTSUPP, libc::EISDIR, libc::EINVAL];
    error
        .raw_os_error()
        .is_some_and(|code| unknown.contains(&code))
}

/// Gives a file without a name one that nobody has.
fn name(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStrExt as _;
    let c_string = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes());
    let from = c_string(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
    let to = c_string(path)?;
    #[expect(unsafe_code, reason = "std has no way to name a file that has none")]
    // SAFETY: both are strings that end, and live until the call returns.
    let named = unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    };
    match named {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A directory that files are written into, by names that cannot leave it.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Whether a file that is there and is the same is left as it is. It is for names that are hashes of what
    /// they name.
    keep: bool,
    written: Vec<PathBuf>,
}

impl Folder {
    /// Files that are there already are an error.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            keep: false,
            written: Vec::new(),
        }
    }

    /// Files that are there already and are the same are left as they are.
    pub fn sharing(root: &Path) -> Self {
        Self {
            keep: true,
            ..Self::new(root)
        }
    }

    /// What was written, in order.
    pub fn written(&self) -> &[PathBuf] {
        &self.written
    }

    /// Makes the directories of a name, none of which may be a link to somewhere else.
    fn directories(&self, name: &Path) -> io::Result<()> {
        create_directory(&self.root)?;
        let mut path = self.root.clone();
        for part in name.parent().into_iter().flat_map(Path::components) {
            path.push(part);
            match path.symlink_metadata() {
                Ok(there) if there.is_dir() => {}
                Ok(_) => {
                    let why = format!("{} is no directory of ours", path.display());
                    return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
                }
                Err(_) => create_directory(&path)?,
            }
        }
        Ok(())
    }
}

impl Beside for Folder {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let name = Path::new(name);
        let plain = |part| matches!(part, Component::Normal(_));
        if name.as_os_str().is_empty() || !name.components().all(plain) {
            let why = format!("{} is no name for a file", name.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let path = self.root.join(name);
        self.directories(name)?;
        let is_same = |there: &fs::Metadata| {
            there.is_file()
                && there.len() == bytes.len() as u64
                && fs::read(&path).is_ok_and(|there| there == bytes)
        };
        if self.keep && path.symlink_metadata().is_ok_and(|there| is_same(&there)) {
            return Ok(true);
        }
        // What is there under the hash of something else was not written to its end.
        let file = NewFile::begin(&path, self.keep)?;
        file.as_file()
            .set_permissions(quipu_files::file_permissions())?;
        file.writer().write_all(bytes)?;
        file.finish()?;
        self.written.push(path);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let listing = fs::read_dir(directory).unwrap();
        let name =
            |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        listing.map(name).collect()
    }

    #[test]
    fn a_file_is_there_once_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.json");
        let new = NewFile::begin(&path, false).unwrap();
        new.writer().write_all(b"{}").unwrap();
        // Nothing at all is there, so nothing is left when the process is killed.
        #[cfg(target_os = "linux")]
        assert_eq!(names(home.path()), [""; 0]);
        new.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let there = NewFile::begin(&path, false).unwrap_err();
        assert_eq!(there.kind(), io::ErrorKind::AlreadyExists);
        // One that came meanwhile is not written over either.
        let other = home.path().join("b.json");
        let late = NewFile::begin(&other, false).unwrap();
        File::create(&other).unwrap();
        let error = late.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        NewFile::begin(&path, true).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(names(home.path()).len(), 2);
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays() {
        let new = NewFile::begin(Path::new("/dev/null"), true).unwrap();
        new.writer().write_all(b"{}").unwrap();
        new.finish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn no_directory_is_made_before_there_is_something_to_put_into_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/c.json");
        let missing = NewFile::begin(&path, false).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let given_up = NewFile::begin_below(&path, false).unwrap();
        given_up.writer().write_all(b"{}").unwrap();
        drop(given_up);
        assert_eq!(names(home.path()), [""; 0]);
        let new = NewFile::begin_below(&path, false).unwrap();
        new.writer().write_all(b"{}").unwrap();
        new.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}");
        let mode = fs::metadata(home.path().join("a")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
    }

    /// Where files are kept in memory is below `/dev` as well.
    #[test]
    fn an_ordinary_file_is_one_wherever_it_lies() {
        let Ok(home) = tempfile::tempdir_in("/dev/shm") else {
            crate::tests::tell(format_args!("skipped: there is no /dev/shm to write to"));
            return;
        };
        let path = home.path().join("a.json");
        File::create(&path)
            .unwrap()
            .write_all(b"something longer")
            .unwrap();
        let there = NewFile::begin(&path, false).unwrap_err();
        assert_eq!(there.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"something longer");
        let new = NewFile::begin(&path, true).unwrap();
        new.writer().write_all(b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"something longer", "until then");
        new.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("in");
        let mut folder = Folder::new(&root);
        for name in ["", "/x", "../x", "a/../../x", "./../x"] {
            assert!(folder.put(name, b"").is_err(), "{name}");
        }
        assert!(folder.put("a/b", b"1").unwrap());
        assert!(folder.put("a/b", b"2").is_err());
        assert_eq!(folder.written().len(), 1);
        std::os::unix::fs::symlink(home.path(), root.join("out")).unwrap();
        assert!(folder.put("out/c", b"3").is_err());
        assert!(!home.path().join("c").exists());
    }

    #[test]
    fn a_file_that_was_cut_off_is_written_again() {
        let home = tempfile::tempdir().unwrap();
        let mut folder = Folder::sharing(home.path());
        assert!(folder.put("images/ab.png", b"whole").unwrap());
        assert!(folder.put("images/ab.png", b"whole").unwrap());
        assert_eq!(folder.written().len(), 1);
        let path = home.path().join("images/ab.png");
        File::create(&path).unwrap().write_all(b"who").unwrap();
        assert!(folder.put("images/ab.png", b"whole").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }
}
