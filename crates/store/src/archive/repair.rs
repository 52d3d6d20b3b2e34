//! What can be done about an archive that is damaged.
//!
//! A manifest that cannot be used is copied to `damaged/` before anything is done to it, so that whoever has the
//! missing bytes elsewhere can put both back. What can still be read is kept anew.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::chunk::Loader;
use super::{Archive, ArchiveError, ChunkFault, Snapshot, Source, manifest};
use crate::address::Digest;
use crate::{FileError, files};

/// A manifest, by its name.
#[derive(Debug)]
pub struct Manifest {
    /// The name, which is the id of its source's key.
    pub id: Digest,
    /// Its file.
    pub path: PathBuf,
    /// What it says, or what is wrong with it. A manifest without a whole line is damaged, too: at best it is what
    /// a crash left.
    pub source: Result<Source, ArchiveError>,
}

/// What was saved of a source that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Where the damaged manifest is now.
    pub aside: PathBuf,
    /// Versions of which all is still there.
    pub whole: usize,
    /// Versions of which a part is still there.
    pub partial: usize,
    /// Versions of which nothing is left.
    pub lost: usize,
    /// How many bytes of the last version are lost, and how many it had.
    pub lost_bytes: u64,
    /// How many bytes the last version had.
    pub size: u64,
}

impl Archive {
    /// Every manifest there is, in the order of their names.
    ///
    /// # Errors
    ///
    /// An item is an error when a directory cannot be listed.
    pub fn manifests(&self) -> impl Iterator<Item = Result<Manifest, ArchiveError>> + use<> {
        let inner = self.inner.clone();
        self.inner.sources.digests().map(move |entry| {
            let id = entry?;
            let path = inner.sources.path_of(&id);
            let source = inner.read_manifest(&id).and_then(|source| {
                source.ok_or_else(|| ArchiveError::Manifest {
                    path: path.clone(),
                    line: 1,
                    why: "it holds no whole line".to_owned(),
                })
            });
            Ok(Manifest { id, path, source })
        })
    }

    /// How long the manifest with this name is; `None` when there is none.
    pub(crate) fn manifest_len(&self, id: &str) -> Option<u64> {
        let path = self.inner.sources.path_of(&id.parse().ok()?);
        Some(std::fs::metadata(path).ok()?.len())
    }

    /// Looks whether the chunks of a snapshot are there, without reading them.
    ///
    /// # Errors
    ///
    /// The first chunk that is missing or empty.
    pub fn glance(&self, snapshot: &Snapshot) -> Result<(), ArchiveError> {
        for chunk in &snapshot.chunks {
            let chunks = &self.inner.chunks;
            let fault = match chunks.objects().look(&chunks.name_of(&chunk.id))? {
                Some(look) if look.len > 0 => continue,
                Some(_) => ChunkFault::Zstd("its file is empty".to_owned()),
                None => ChunkFault::Missing,
            };
            return Err(ArchiveError::Chunk {
                path: chunks.path_of(&chunk.id),
                of: snapshot.key.path.clone(),
                fault,
            });
        }
        Ok(())
    }

    /// Sets a damaged manifest aside, but for the whole lines before the damage. Gives where it is now, or `None`
    /// when the manifest is sound.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn mend_manifest(&self, id: &Digest) -> Result<Option<PathBuf>, ArchiveError> {
        match self.inner.read_manifest(id) {
            Err(ArchiveError::Manifest { line, .. }) => self.set_aside(id, line - 1),
            Ok(None) => self.set_aside(id, 0),
            Ok(Some(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Copies a manifest to `damaged/`, and leaves its first lines. `None` when it is not there.
    fn set_aside(&self, id: &Digest, lines: usize) -> Result<Option<PathBuf>, ArchiveError> {
        let inner = &self.inner;
        let _lock = inner.lock_shared()?;
        let path = inner.sources.path_of(id);
        let Some(file) = manifest::open_locked(&path, false)? else {
            return Ok(None);
        };
        let bytes = std::fs::read(&path).map_err(FileError::at("read", &path))?;
        let aside = free_name(&self.damaged_directory(), id);
        files::place(&aside, &bytes, &inner.tmp)?;
        inner.unsynced.note(&aside);
        let keep: usize = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .take(lines)
            .map(<[u8]>::len)
            .sum();
        let cut = if keep == 0 {
            std::fs::remove_file(&path).map_err(FileError::at("remove", &path))
        } else {
            file.set_len(keep as u64)
                .map_err(FileError::at("cut", &path))
        };
        cut?;
        inner.unsynced.note(&path);
        Ok(Some(aside))
    }

    fn damaged_directory(&self) -> PathBuf {
        self.inner.root.join("damaged")
    }

    /// Keeps anew what can still be read of a source, and sets its manifest aside. Chunks that are damaged are left
    /// out; the versions keep their times.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn salvage(&self, source: &Source) -> Result<Option<Salvaged>, ArchiveError> {
        let Some(aside) = self.set_aside(&source.key.id(), 0)? else {
            return Ok(None);
        };
        let mut salvaged = Salvaged {
            aside,
            whole: 0,
            partial: 0,
            lost: 0,
            lost_bytes: 0,
            size: source.versions.last().map_or(0, |last| last.size),
        };
        let of = &source.key.path;
        let mut loader = Loader::new().map_err(FileError::at("set up zstd for", of))?;
        let mut before: Option<Snapshot> = None;
        for version in &source.versions {
            let mut writer = match &before {
                None => self.begin(&source.key)?,
                Some(before) => self.rewrite(before)?,
            };
            let mut lost = 0;
            for chunk in &version.chunks {
                match loader.load_chunk(&self.inner, chunk, of) {
                    Ok(bytes) => writer.write(bytes)?,
                    Err(ArchiveError::Chunk { .. }) => lost += u64::from(chunk.len),
                    Err(error) => return Err(error),
                }
            }
            salvaged.lost_bytes = lost;
            if lost == version.size && lost > 0 {
                salvaged.lost += 1;
                continue;
            }
            if lost == 0 {
                salvaged.whole += 1;
            } else {
                salvaged.partial += 1;
            }
            let meta = version.meta.clone();
            before = Some(writer.finish(version.taken, version.modified, meta)?);
        }
        Ok(Some(salvaged))
    }

    /// The chunks that manifests name which were set aside: they may be all that is left of something.
    pub(super) fn named_aside(&self) -> Result<Vec<Digest>, FileError> {
        let directory = self.damaged_directory();
        let entries = match std::fs::read_dir(&directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(FileError::at("list", &directory))?,
        };
        let mut named = Vec::new();
        for entry in entries {
            let path = entry.map_err(FileError::at("list", &directory))?.path();
            let mut bytes = Vec::new();
            std::fs::File::open(&path)
                .and_then(|mut file| file.read_to_end(&mut bytes))
                .map_err(FileError::at("read", &path))?;
            // Whatever else is wrong with a line, what looks like the name of a chunk may be one.
            named.extend(
                String::from_utf8_lossy(&bytes)
                    .split('"')
                    .filter_map(|word| word.parse::<Digest>().ok()),
            );
        }
        Ok(named)
    }
}

/// A name that nothing has yet.
fn free_name(directory: &Path, id: &Digest) -> PathBuf {
    let name = |n: u32| directory.join(format!("{id}-{n}.jsonl"));
    let free = (1..10_000).map(name).find(|path| !path.exists());
    free.unwrap_or_else(|| name(0))
}
