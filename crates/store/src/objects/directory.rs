//! Objects as files of a directory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_model::Timestamp;

use super::{Look, Object, ObjectName, Objects};
use crate::durable::Unsynced;
use crate::{FileError, files};

/// A directory of objects: each is a file, in the folder that its name says. Files are 0600 and folders 0700.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    /// Where files are written before they are put into place.
    tmp: PathBuf,
    unsynced: Arc<Unsynced>,
}

impl Directory {
    /// The objects in this directory, which is made when the first is put. Files are written in `tmp` first, which is
    /// on the same file system.
    pub fn new(root: PathBuf, tmp: PathBuf) -> Self {
        Self::noting(root, tmp, Arc::default())
    }

    /// As [`Directory::new`], for one who keeps other files beside it, and brings all of them to disk as one.
    pub(crate) fn noting(root: PathBuf, tmp: PathBuf, unsynced: Arc<Unsynced>) -> Self {
        Self {
            root,
            tmp,
            unsynced,
        }
    }

    fn path(&self, name: &ObjectName) -> PathBuf {
        let (folder, name) = name.parts();
        self.root.join(folder).join(name)
    }
}

impl Objects for Directory {
    fn put_if_absent(&self, name: &ObjectName, bytes: &[u8]) -> Result<bool, FileError> {
        let path = self.path(name);
        let is_new = files::place_if_absent(&path, bytes, &self.tmp)?;
        if is_new {
            self.unsynced.note(&path);
        }
        Ok(is_new)
    }

    fn replace(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.path(name);
        files::place(&path, bytes, &self.tmp)?;
        self.unsynced.note(&path);
        Ok(())
    }

    fn open(&self, name: &ObjectName) -> Result<Option<Box<dyn Object>>, FileError> {
        let path = self.path(name);
        match File::open(&path) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::at("read", path)(error)),
        }
    }

    fn look(&self, name: &ObjectName) -> Result<Option<Look>, FileError> {
        let path = self.path(name);
        match std::fs::metadata(&path) {
            Ok(metadata) => Ok(Some(Look {
                len: metadata.len(),
                written: metadata
                    .modified()
                    .ok()
                    .and_then(|at| Timestamp::try_from(at).ok()),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::at("look at", path)(error)),
        }
    }

    fn list(&self, prefix: &str) -> Box<dyn Iterator<Item = Result<ObjectName, FileError>> + Send> {
        let (in_folder, rest) = prefix.split_once('/').unwrap_or((prefix, ""));
        let is_whole = prefix.contains('/');
        let is_meant =
            |folder: &str| folder == in_folder || !is_whole && folder.starts_with(in_folder);
        let (folders, failed) = match names(&self.root) {
            Ok(folders) => (folders, None),
            Err(error) => (Vec::new(), Some(Err(error))),
        };
        let folders: Vec<(String, PathBuf)> = folders
            .into_iter()
            .filter(|(folder, path)| is_meant(folder) && *path != self.tmp)
            .collect();
        let rest = rest.to_owned();
        let objects = folders.into_iter().flat_map(move |(folder, path)| {
            // A file that lies beside the folders was put there by nobody of us.
            if path.is_file() {
                return Vec::new();
            }
            match names(&path) {
                Err(error) => vec![Err(error)],
                Ok(names) => names
                    .into_iter()
                    .filter(|(name, _)| name.starts_with(&rest))
                    .filter_map(|(name, _)| ObjectName::new(&format!("{folder}/{name}")).ok())
                    .map(Ok)
                    .collect(),
            }
        });
        Box::new(failed.into_iter().chain(objects))
    }

    fn delete(&self, name: &ObjectName) -> Result<bool, FileError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FileError::at("remove", path)(error)),
        }
    }

    fn touch(&self, name: &ObjectName) {
        let touched =
            File::open(self.path(name)).and_then(|file| file.set_modified(Timestamp::now().into()));
        // Where it is not ours to change, nobody of us removes it either.
        drop(touched);
    }

    fn sync(&self) -> Result<(), FileError> {
        self.unsynced.sync(&self.root)
    }

    fn place(&self, name: &ObjectName) -> PathBuf {
        self.path(name)
    }
}

impl Object for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }
}

/// The names in a directory, sorted. A directory that is not there is empty.
fn names(directory: &Path) -> Result<Vec<(String, PathBuf)>, FileError> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(FileError::at("list", directory))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FileError::at("list", directory))?;
        // A name that is not UTF-8 is not one of ours.
        if let Ok(name) = entry.file_name().into_string() {
            names.push((name, entry.path()));
        }
    }
    names.sort();
    Ok(names)
}
