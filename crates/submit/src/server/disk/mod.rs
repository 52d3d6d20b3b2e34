//! Keeps everything on disk, below one directory:
//!
//! ```text
//! transcripts/<ab>/<id>/<id>.json     the document, byte for byte as it was accepted
//! transcripts/<ab>/<id>/receipt.json  what was answered, and a few facts for lists
//! deleted/<ab>/<id>.json              what was deleted: it stays
//! uploads/<upload id>.json, .part     uploads that have not ended
//! tmp/<session>/                      what is being written, of one process; its lock says whether that still lives
//! lock                                held for the one step that makes something visible or takes it away
//! ```
//!
//! `<ab>` are the first two hex digits of the SHA-256 of the id.
//!
//! A transcript is written whole into `tmp`, document and receipt, and brought to disk there; then its directory is renamed to
//! its place, which fails when there is one already, and that is brought to disk as well. So it is there whole or not at all,
//! whenever the process or the machine dies, and of several at once under one id one is. Several processes may use one
//! directory.

mod files;
mod uploads;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use quipu_model::{Timestamp, hex};
use sha2::{Digest as _, Sha256};
use tempfile::{NamedTempFile, TempDir};

use self::files::{create_below, read_json, remove_any, sync_directory, write_json};
use super::{Body, Held, OpenUpload, Scanned, Storage};
use crate::protocol::{Deletion, Listed, TranscriptId};

const TRANSCRIPTS: &str = "transcripts";
const DELETED: &str = "deleted";
const UPLOADS: &str = "uploads";
const TMP: &str = "tmp";
const RECEIPT: &str = "receipt.json";

/// Keeps everything on disk.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    /// Where this process writes what is not whole yet.
    session: PathBuf,
    /// Held while this process lives, so that others leave its session alone.
    _alive: File,
}

impl Disk {
    /// Opens the directory, or makes one, and clears away what processes left that were killed.
    ///
    /// # Errors
    ///
    /// It cannot be written to.
    pub fn open(root: &Path) -> io::Result<Self> {
        for below in ["", TRANSCRIPTS, DELETED, UPLOADS, TMP] {
            quipu_files::create_directory(&root.join(below))?;
        }
        let root = fs::canonicalize(root)?;
        let _lock = lock(&root)?;
        let alone = sweep_sessions(&root.join(TMP))?;
        let session = tempfile::Builder::new()
            .permissions(quipu_files::directory_permissions())
            .prefix("session-")
            .tempdir_in(root.join(TMP))?
            .keep();
        let alive = quipu_files::open_lock(&session.join("lock"))?;
        alive.lock()?;
        let disk = Self {
            root,
            session,
            _alive: alive,
        };
        disk.finish_deletions()?;
        disk.recover_uploads(alone)?;
        // A directory that is new is in the one above it.
        for directory in disk.root.ancestors().take(2) {
            sync_directory(directory)?;
        }
        Ok(disk)
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the document of a transcript is below such a directory, if it is kept.
    pub fn document_below(root: &Path, id: &TranscriptId) -> PathBuf {
        directory_below(root, id).join(format!("{id}.json"))
    }

    /// The transcript that a file is the document of, by the layout of such a directory: of this home, or of one that was
    /// moved.
    pub fn id_of_document(path: &Path) -> Option<TranscriptId> {
        let mut above = path.components().rev().map(|it| it.as_os_str().to_str());
        let mut next = || above.next().flatten();
        let id = TranscriptId::parse(next()?.strip_suffix(".json")?).ok()?;
        let is_ours = next()? == id.as_str()
            && next()? == shard(&id)
            && next()? == TRANSCRIPTS
            && next()? == "submissions";
        is_ours.then_some(id)
    }

    /// What is known of an id below such a directory, without opening it for writing.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn held_below(root: &Path, id: &TranscriptId) -> io::Result<Option<Held>> {
        if let Some(deletion) = deletion_below(root, id)? {
            return Ok(Some(Held::Gone(Box::new(deletion))));
        }
        let listed: Option<Listed> = read_json(&directory_below(root, id).join(RECEIPT))?;
        // Where a file system does not tell capitals, another transcript may be here.
        let listed = listed.filter(|it| it.receipt.transcript_id == *id);
        Ok(listed.map(|listed| Held::There(Box::new(listed))))
    }

    /// Up to so many transcripts after this one that are kept below such a directory.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn scan_below(
        root: &Path,
        after: Option<&TranscriptId>,
        limit: usize,
    ) -> io::Result<Scanned> {
        let mut scanned = Scanned::default();
        let first = after.map(shard);
        for shard in (0..=u8::MAX).map(|byte| hex::encode(&[byte])) {
            if first.as_ref().is_some_and(|first| shard < *first) {
                continue;
            }
            let mut ids = ids_in(&root.join(TRANSCRIPTS).join(&shard), "")?;
            if first.as_ref() == Some(&shard) {
                ids.retain(|id| Some(id) > after);
            }
            for id in ids {
                if scanned.found.len() >= limit {
                    return Ok(scanned);
                }
                match Self::held_below(root, &id) {
                    Ok(Some(Held::There(listed))) => scanned.found.push(*listed),
                    // It was deleted meanwhile.
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        scanned.unreadable += 1;
                    }
                    Err(error) => return Err(error),
                }
                scanned.last = Some(id);
            }
        }
        scanned.is_end = true;
        Ok(scanned)
    }

    fn stage(&self) -> io::Result<TempDir> {
        tempfile::Builder::new()
            .permissions(quipu_files::directory_permissions())
            .tempdir_in(&self.session)
    }

    fn temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .permissions(quipu_files::file_permissions())
            .tempfile_in(&self.session)
    }

    /// Takes away what was deleted and is still there: whoever deleted it may have been killed.
    fn finish_deletions(&self) -> io::Result<()> {
        for shard in fs::read_dir(self.root.join(DELETED))? {
            for id in ids_in(&shard?.path(), ".json")? {
                self.take_away(&id)?;
            }
        }
        Ok(())
    }

    /// Takes a transcript out of its place, and then removes it. Under the lock.
    fn take_away(&self, id: &TranscriptId) -> io::Result<()> {
        let from = directory_below(&self.root, id);
        if !from.exists() {
            return Ok(());
        }
        let to = self.stage()?;
        match fs::rename(&from, to.path().join("gone")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved?,
        }
        if let Some(shard) = from.parent() {
            sync_directory(shard)?;
        }
        to.close()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What is left is cleared away by the next who opens the directory.
        drop(fs::remove_dir_all(&self.session));
    }
}

impl Storage for Disk {
    type Spool = NamedTempFile;

    fn spool(&self) -> io::Result<NamedTempFile> {
        self.temporary()
    }

    fn held(&self, id: &TranscriptId) -> io::Result<Option<Held>> {
        Self::held_below(&self.root, id)
    }

    fn keep(&self, listed: &Listed, document: &mut NamedTempFile) -> io::Result<Option<Held>> {
        let id = &listed.receipt.transcript_id;
        let stage = self.stage()?;
        let name = format!("{id}.json");
        // The spool is in the same file system; what is dropped later finds nothing to remove.
        document.flush()?;
        fs::rename(document.path(), stage.path().join(&name))?;
        document.as_file().sync_all()?;
        write_json(&stage.path().join(RECEIPT), listed)?;
        sync_directory(stage.path())?;
        let place = directory_below(&self.root, id);
        create_below(&self.root.join(TRANSCRIPTS), &shard(id))?;
        {
            let _lock = lock(&self.root)?;
            if let Some(deletion) = deletion_below(&self.root, id)? {
                return Ok(Some(Held::Gone(Box::new(deletion))));
            }
            if place.exists() {
                return Self::held_below(&self.root, id).map(|there| {
                    // Of another id that differs by capitals, where a file system does not tell them.
                    there.or_else(|| Some(Held::There(Box::new(listed_at(&place)?))))
                });
            }
            fs::rename(stage.path(), &place)?;
        }
        self.assure(id)?;
        Ok(None)
    }

    fn assure(&self, id: &TranscriptId) -> io::Result<()> {
        sync_directory(&self.root.join(TRANSCRIPTS).join(shard(id)))
    }

    fn document(&self, id: &TranscriptId) -> io::Result<Option<Body>> {
        match File::open(Self::document_below(&self.root, id)) {
            Ok(file) => Body::file(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn path(&self, id: &TranscriptId) -> Option<PathBuf> {
        Some(Self::document_below(&self.root, id))
    }

    fn remove(&self, deletion: &Deletion) -> io::Result<Deletion> {
        let id = &deletion.transcript_id;
        let directory = self.root.join(DELETED).join(shard(id));
        create_below(&self.root.join(DELETED), &shard(id))?;
        let _lock = lock(&self.root)?;
        let deletion = if let Some(earlier) = deletion_below(&self.root, id)? {
            earlier
        } else {
            let temporary = self.stage()?;
            let from = temporary.path().join("deletion.json");
            write_json(&from, deletion)?;
            fs::rename(&from, directory.join(format!("{id}.json")))?;
            deletion.clone()
        };
        // That it is gone is safe before the document goes, so that it does not come back by a crash.
        sync_directory(&directory)?;
        self.take_away(id)?;
        Ok(deletion)
    }

    fn scan(&self, after: Option<&TranscriptId>, limit: usize) -> io::Result<Scanned> {
        Self::scan_below(&self.root, after, limit)
    }

    fn begin(&self, upload: &OpenUpload) -> io::Result<()> {
        self.begin_upload(upload)
    }

    fn uploads(&self, key_id: &str) -> io::Result<Vec<OpenUpload>> {
        let mut all = self.all_uploads()?;
        all.retain(|upload| upload.key_id == key_id);
        Ok(all)
    }

    fn upload(&self, id: &str) -> io::Result<Option<OpenUpload>> {
        self.one_upload(id)
    }

    fn append(&self, id: &str, offset: u64, bytes: &[u8], now: Timestamp) -> io::Result<bool> {
        self.append_upload(id, offset, bytes, now)
    }

    fn settle(&self, id: &str) -> io::Result<()> {
        self.settle_upload(id)
    }

    fn uploaded(&self, id: &str) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(File::open(self.part_path(id)?)?))
    }

    fn close(&self, id: &str) -> io::Result<()> {
        self.close_upload(id)
    }

    fn expire(&self, before: Timestamp) -> io::Result<()> {
        for upload in self.all_uploads()? {
            if upload.touched_at < before {
                self.close_upload(&upload.id)?;
            }
        }
        Ok(())
    }
}

/// The first two hex digits of the SHA-256 of an id: directories stay short, whatever ids begin with.
fn shard(id: &TranscriptId) -> String {
    hex::encode(&Sha256::digest(id.as_str().as_bytes())[..1])
}

fn directory_below(root: &Path, id: &TranscriptId) -> PathBuf {
    root.join(TRANSCRIPTS).join(shard(id)).join(id.as_str())
}

fn deletion_below(root: &Path, id: &TranscriptId) -> io::Result<Option<Deletion>> {
    let path = root
        .join(DELETED)
        .join(shard(id))
        .join(format!("{id}.json"));
    let deletion: Option<Deletion> = read_json(&path)?;
    Ok(deletion.filter(|deletion| deletion.transcript_id == *id))
}

fn listed_at(directory: &Path) -> Option<Listed> {
    read_json(&directory.join(RECEIPT)).ok().flatten()
}

/// The ids that files of a directory are named by, in order. Other files are not ours.
fn ids_in(directory: &Path, ending: &str) -> io::Result<Vec<TranscriptId>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(ending));
        ids.extend(id.and_then(|id| TranscriptId::parse(id).ok()));
    }
    ids.sort_unstable();
    Ok(ids)
}

/// Keeps all others out, in this process and in others, as long as what it gives is held.
fn lock(root: &Path) -> io::Result<File> {
    let file = quipu_files::open_lock(&root.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Removes what processes left that no longer live. Says whether no other lives.
fn sweep_sessions(tmp: &Path) -> io::Result<bool> {
    let mut alone = true;
    for entry in fs::read_dir(tmp)? {
        let path = entry?.path();
        // A directory without a lock was left by one that was killed while it made it: others are kept out meanwhile.
        let lives = File::open(path.join("lock")).is_ok_and(|file| file.try_lock().is_err());
        if lives {
            alone = false;
        } else {
            remove_any(&path)?;
        }
    }
    Ok(alone)
}

#[cfg(test)]
mod tests;
