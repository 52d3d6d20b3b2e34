//! Keeps everything in memory: for tests.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_model::Timestamp;

use super::{Body, Held, OpenUpload, Scanned, Storage};
use crate::protocol::{Deletion, Listed, TranscriptId};

/// Keeps everything in memory.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    transcripts: BTreeMap<TranscriptId, (Listed, Vec<u8>)>,
    deleted: BTreeMap<TranscriptId, Deletion>,
    uploads: BTreeMap<String, (OpenUpload, Vec<u8>)>,
}

impl Kept {
    fn held(&self, id: &TranscriptId) -> Option<Held> {
        if let Some(deletion) = self.deleted.get(id) {
            return Some(Held::Gone(Box::new(deletion.clone())));
        }
        let there = self.transcripts.get(id);
        there.map(|(listed, _)| Held::There(Box::new(listed.clone())))
    }
}

impl Memory {
    /// A transcript that was kept.
    pub fn document(&self, id: &TranscriptId) -> Option<Vec<u8>> {
        let kept = self.kept();
        kept.transcripts.get(id).map(|(_, bytes)| bytes.clone())
    }

    /// How many uploads have begun and not ended.
    pub fn open(&self) -> usize {
        self.kept().uploads.len()
    }

    /// No method leaves things half done, so that what a thread left that panicked is whole.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Memory {
    type Spool = Cursor<Vec<u8>>;

    fn spool(&self) -> io::Result<Self::Spool> {
        Ok(Cursor::default())
    }

    fn held(&self, id: &TranscriptId) -> io::Result<Option<Held>> {
        Ok(self.kept().held(id))
    }

    fn keep(&self, listed: &Listed, document: &mut Self::Spool) -> io::Result<Option<Held>> {
        let mut bytes = Vec::new();
        document.seek(SeekFrom::Start(0))?;
        document.read_to_end(&mut bytes)?;
        let mut kept = self.kept();
        let id = &listed.receipt.transcript_id;
        let there = kept.held(id);
        if there.is_none() {
            kept.transcripts.insert(id.clone(), (listed.clone(), bytes));
        }
        Ok(there)
    }

    fn document(&self, id: &TranscriptId) -> io::Result<Option<Body>> {
        Ok(Memory::document(self, id).map(Body::Bytes))
    }

    fn remove(&self, deletion: &Deletion) -> io::Result<Deletion> {
        let mut kept = self.kept();
        let id = &deletion.transcript_id;
        kept.transcripts.remove(id);
        let there = kept.deleted.entry(id.clone());
        Ok(there.or_insert_with(|| deletion.clone()).clone())
    }

    fn scan(&self, after: Option<&TranscriptId>, limit: usize) -> io::Result<Scanned> {
        let kept = self.kept();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = kept
            .transcripts
            .range::<TranscriptId, _>((from, Bound::Unbounded));
        let found: Vec<Listed> = rest
            .by_ref()
            .take(limit)
            .map(|(_, (listed, _))| listed.clone())
            .collect();
        Ok(Scanned {
            last: found.last().map(|it| it.receipt.transcript_id.clone()),
            found,
            unreadable: 0,
            is_end: rest.next().is_none(),
        })
    }

    fn begin(&self, upload: &OpenUpload) -> io::Result<()> {
        let entry = (upload.clone(), Vec::new());
        self.kept().uploads.insert(upload.id.clone(), entry);
        Ok(())
    }

    fn uploads(&self, key_id: &str) -> io::Result<Vec<OpenUpload>> {
        let kept = self.kept();
        let all = kept.uploads.values().map(|(upload, _)| upload);
        Ok(all
            .filter(|upload| upload.key_id == key_id)
            .cloned()
            .collect())
    }

    fn upload(&self, id: &str) -> io::Result<Option<OpenUpload>> {
        Ok(self
            .kept()
            .uploads
            .get(id)
            .map(|(upload, _)| upload.clone()))
    }

    fn append(&self, id: &str, offset: u64, bytes: &[u8], now: Timestamp) -> io::Result<bool> {
        let mut kept = self.kept();
        let Some((upload, held)) = kept.uploads.get_mut(id) else {
            return Ok(false);
        };
        if upload.offset != offset {
            return Ok(false);
        }
        held.extend_from_slice(bytes);
        upload.offset += bytes.len() as u64;
        upload.touched_at = now;
        Ok(true)
    }

    fn uploaded(&self, id: &str) -> io::Result<Box<dyn Read + '_>> {
        let bytes = self.kept().uploads.get(id).map(|(_, bytes)| bytes.clone());
        Ok(Box::new(Cursor::new(bytes.ok_or(io::ErrorKind::NotFound)?)))
    }

    fn close(&self, id: &str) -> io::Result<()> {
        self.kept().uploads.remove(id);
        Ok(())
    }

    fn expire(&self, before: Timestamp) -> io::Result<()> {
        self.kept()
            .uploads
            .retain(|_, (upload, _)| upload.touched_at >= before);
        Ok(())
    }
}
