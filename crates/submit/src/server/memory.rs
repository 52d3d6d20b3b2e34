//! Keeps everything in memory: for tests.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_model::Timestamp;

use super::{OpenUpload, Storage};
use crate::protocol::{Receipt, TranscriptId};

/// Keeps everything in memory.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    transcripts: BTreeMap<TranscriptId, (Receipt, Vec<u8>)>,
    uploads: BTreeMap<String, (OpenUpload, Vec<u8>)>,
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

    fn receipt(&self, id: &TranscriptId) -> io::Result<Option<Receipt>> {
        let kept = self.kept();
        Ok(kept.transcripts.get(id).map(|(receipt, _)| receipt.clone()))
    }

    fn keep(&self, receipt: &Receipt, document: &mut Self::Spool) -> io::Result<Option<Receipt>> {
        let mut bytes = Vec::new();
        document.seek(SeekFrom::Start(0))?;
        document.read_to_end(&mut bytes)?;
        let mut kept = self.kept();
        if let Some((there, _)) = kept.transcripts.get(&receipt.transcript_id) {
            return Ok(Some(there.clone()));
        }
        let id = receipt.transcript_id.clone();
        kept.transcripts.insert(id, (receipt.clone(), bytes));
        Ok(None)
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
