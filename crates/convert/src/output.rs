//! Files that are there once they are whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use quipu_formats::projection::Beside;

/// A file that is there once it is whole, private, and not over another unless that is asked for.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: tempfile::NamedTempFile,
    force: bool,
}

impl NewFile {
    /// Begins one.
    ///
    /// # Errors
    ///
    /// It is there already, or cannot be made.
    pub fn begin(path: &Path, force: bool) -> io::Result<Self> {
        if !force && path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            force,
        })
    }

    /// Where to write to.
    pub fn writer(&self) -> BufWriter<&File> {
        BufWriter::with_capacity(1 << 16, self.file.as_file())
    }

    /// The file itself, for whoever has to own it.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn file(&self) -> io::Result<File> {
        self.file.as_file().try_clone()
    }

    /// Puts it in its place.
    ///
    /// # Errors
    ///
    /// It cannot be brought to disk, or another is there meanwhile.
    pub fn finish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let placed = if self.force {
            self.file.persist(&self.path).map(drop)
        } else {
            self.file.persist_noclobber(&self.path).map(drop)
        };
        placed.map_err(|error| error.error)
    }
}

/// A directory that files are written into, by names that cannot leave it.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Whether a file that is there is left as it is. It is for names that are hashes of what they name.
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

    /// Files that are there already are left as they are.
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
}

/// Makes a private directory and those above it.
///
/// # Errors
///
/// What the system says.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
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
        if self.keep && path.is_file() {
            return Ok(true);
        }
        make_directory(path.parent().unwrap_or(&self.root))?;
        let mut file = File::create_new(&path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        self.written.push(path);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_once_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.json");
        let new = NewFile::begin(&path, false).unwrap();
        new.writer().write_all(b"{}").unwrap();
        assert!(!path.exists());
        new.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let there = NewFile::begin(&path, false).unwrap_err();
        assert_eq!(there.kind(), io::ErrorKind::AlreadyExists);
        NewFile::begin(&path, true).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(&home.path().join("in"));
        for name in ["", "/x", "../x", "a/../../x", "./../x"] {
            assert!(folder.put(name, b"").is_err(), "{name}");
        }
        assert!(folder.put("a/b", b"1").unwrap());
        assert!(folder.put("a/b", b"2").is_err());
        assert_eq!(folder.written().len(), 1);
        let mut again = Folder::sharing(&home.path().join("in"));
        assert!(again.put("a/b", b"2").unwrap());
        assert_eq!(fs::read(home.path().join("in/a/b")).unwrap(), b"1");
    }
}
