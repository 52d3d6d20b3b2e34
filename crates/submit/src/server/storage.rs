//! Where a server keeps what it is given.

use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use quipu_model::Timestamp;

use super::Body;
use crate::protocol::{Deletion, Listed, NewUpload, TranscriptId, Upload};

/// An upload that was begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenUpload {
    /// Its id: 32 hex digits, which nobody guesses.
    pub id: String,
    /// The key that began it.
    pub key_id: String,
    /// What it will be.
    pub what: NewUpload,
    /// How many bytes are there.
    pub offset: u64,
    /// When something was last added.
    pub touched_at: Timestamp,
}

impl OpenUpload {
    /// What is told of it.
    pub fn told(&self) -> Upload {
        Upload {
            upload_id: self.id.clone(),
            offset: self.offset,
            size: self.what.size,
        }
    }
}

/// What a storage knows of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// The transcript is kept.
    There(Box<Listed>),
    /// It was, and was deleted.
    Gone(Box<Deletion>),
}

/// Some of the transcripts that are kept, in the order of the storage.
#[derive(Debug, Default)]
pub struct Scanned {
    /// The transcripts.
    pub found: Vec<Listed>,
    /// The last one that was looked at; `None` when none was.
    pub last: Option<TranscriptId>,
    /// How many could not be read.
    pub unreadable: u64,
    /// Whether these were the last of all.
    pub is_end: bool,
}

/// Where a server keeps what it is given. Every method may be called from any thread at any time. Whatever says that it did
/// something says so after it is safe from a crash.
pub trait Storage: Send + Sync {
    /// Room for a document that is being checked. It is gone when it is dropped.
    type Spool: Read + Write + Seek;

    /// Makes room for a document.
    fn spool(&self) -> io::Result<Self::Spool>;

    /// What is known of an id.
    fn held(&self, id: &TranscriptId) -> io::Result<Option<Held>>;

    /// Keeps a transcript for good, from the beginning of the spool; or says what is known of its id already. Of several
    /// that are kept at once under one id, one is.
    fn keep(&self, listed: &Listed, document: &mut Self::Spool) -> io::Result<Option<Held>>;

    /// Makes sure that a transcript that somebody else is just keeping is safe from a crash, before it is said that it is
    /// there.
    fn assure(&self, _id: &TranscriptId) -> io::Result<()> {
        Ok(())
    }

    /// The document, as it was taken.
    fn document(&self, id: &TranscriptId) -> io::Result<Option<Body>>;

    /// The file that the document is in, where it is in one.
    fn path(&self, _id: &TranscriptId) -> Option<PathBuf> {
        None
    }

    /// Removes a document and keeps the deletion in its place; gives back the deletion that counts, which is an earlier
    /// one if there was one.
    fn remove(&self, deletion: &Deletion) -> io::Result<Deletion>;

    /// Looks at up to so many transcripts after this one, in an order that is the storage's own and does not change.
    fn scan(&self, after: Option<&TranscriptId>, limit: usize) -> io::Result<Scanned>;

    /// Begins an upload.
    fn begin(&self, upload: &OpenUpload) -> io::Result<()>;

    /// The uploads that a key began.
    fn uploads(&self, key_id: &str) -> io::Result<Vec<OpenUpload>>;

    /// An upload, whoever began it.
    fn upload(&self, id: &str) -> io::Result<Option<OpenUpload>>;

    /// Adds to an upload. `false`, and nothing added, when it is gone or does not stand at this offset.
    fn append(&self, id: &str, offset: u64, bytes: &[u8], now: Timestamp) -> io::Result<bool>;

    /// Makes what was added to an upload safe from a crash, so that it need not be sent again. Asked for at the end of a
    /// request, not after every piece of one.
    fn settle(&self, _id: &str) -> io::Result<()> {
        Ok(())
    }

    /// What was uploaded, to be read from its beginning.
    fn uploaded(&self, id: &str) -> io::Result<Box<dyn Read + '_>>;

    /// Throws an upload away; one that is gone already is no error.
    fn close(&self, id: &str) -> io::Result<()>;

    /// Throws away the uploads that nothing was added to since.
    fn expire(&self, before: Timestamp) -> io::Result<()>;
}
