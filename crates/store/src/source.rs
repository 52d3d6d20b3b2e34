//! Kept sessions, as something that can be converted.

use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use quipu_agents::{About, Dialect, Family, Sink};
use quipu_convert::Source;
use quipu_convert::source::{Bytes, Document, Entries, Log, LogFile, Transcript};
use quipu_model::Timestamp;
use quipu_prices::Prices;

use crate::archive::{Archive, Snapshot, SourceKey};
use crate::blobs::Blobs;
use crate::catalogue::TranscriptRow;
use crate::events::{ALL, EventLog};
use crate::import::{BESIDE, ImportError, Store};
use crate::transcript::{WithBlobs, located, snapshot};

/// The bytes that were kept of a log.
struct Kept {
    archive: Archive,
    snapshot: Snapshot,
    agent: String,
}

impl Bytes for Kept {
    fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        let mut from = self.archive.read(&self.snapshot);
        loop {
            let bytes = from.fill_buf()?;
            if bytes.is_empty() || !take(bytes) {
                return Ok(());
            }
            let read = bytes.len();
            from.consume(read);
        }
    }

    fn reader(&self) -> io::Result<Box<dyn io::Read + '_>> {
        Ok(Box::new(self.archive.read(&self.snapshot)))
    }

    fn captured_at(&self) -> Option<Timestamp> {
        Some(self.snapshot.taken)
    }

    fn beside(&self, names: &[PathBuf]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        for path in names {
            let of = SourceKey::new(self.agent.clone(), path.clone()).with_part(BESIDE);
            let kept = self.archive.latest(&of)?;
            if let Some(kept) = kept {
                let mut bytes = Vec::new();
                self.archive.read(&kept).read_to_end(&mut bytes)?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                found.push((name.into_owned(), bytes));
            }
        }
        Ok(found)
    }
}

/// The events of a log, and what stood inside of it.
struct KeptEntries {
    events: EventLog,
    blobs: Arc<Blobs>,
}

impl Entries for KeptEntries {
    fn replay(&self, sink: &mut dyn Sink) -> io::Result<About> {
        let mut sink = WithBlobs {
            blobs: &self.blobs,
            sink,
        };
        self.events
            .replay(&ALL, &mut sink)
            .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))
    }
}

impl Store {
    /// A kept session, to be converted into any format.
    pub fn export(
        &self,
        row: &TranscriptRow,
        prices: &Arc<Prices>,
    ) -> Result<Box<dyn Source>, ImportError> {
        if row.recorded {
            return Ok(Box::new(Transcript::new(&row.path)));
        }
        let row = &*located(self.archive(), row)?;
        let dialect = row.dialect.as_deref().and_then(quipu_agents::dialect);
        let found = dialect.ok_or_else(|| ImportError::Unread(row.path.clone()))?;
        if row.is_trace() {
            let bytes = LogFile(row.path.clone());
            return Ok(Box::new(self.log(bytes, row, found, prices)?));
        }
        let bytes = Kept {
            archive: self.archive().clone(),
            snapshot: snapshot(self.archive(), row)?,
            agent: row.agent.clone(),
        };
        // A transcript that somebody shared says more than events: what was removed from it, who shares it, and
        // proofs of both. Its own reader keeps that.
        match found.1.name {
            // A run has steps and levels of fidelity, which sessions of agents do not. Its own reader keeps them.
            "exchange" => return Ok(Box::new(Transcript::of(Box::new(bytes), &row.path))),
            quipu_agents::NORMALIZED => {
                return Ok(Box::new(Document::of(Box::new(bytes), &row.path)));
            }
            quipu_agents::NORMALIZED_PAGE => {
                let page = Document::page_of(Box::new(bytes), &row.path, None);
                let page = page.map_err(|error| ImportError::Page {
                    path: row.path.clone(),
                    why: error.to_string(),
                })?;
                return Ok(Box::new(page));
            }
            _ => {}
        }
        Ok(Box::new(self.log(bytes, row, found, prices)?))
    }

    /// A log whose events are kept.
    fn log<B: Bytes>(
        &self,
        bytes: B,
        row: &TranscriptRow,
        found: (&'static dyn Family, Dialect),
        prices: &Arc<Prices>,
    ) -> Result<Log<B>, ImportError> {
        let mut log = Log::new(bytes, &row.path, found, prices);
        log.part.clone_from(&row.part);
        log.native = Some(row.native.clone());
        log.agent = Some(row.agent.clone());
        log.parent_call.clone_from(&row.parent_call);
        log.run_id = Some(quipu_agents::run_id(&row.run_id));
        log.entries = Some(Box::new(KeptEntries {
            events: self.kept().open(row, &ALL)?,
            blobs: Arc::clone(&self.blobs),
        }));
        Ok(log)
    }
}
