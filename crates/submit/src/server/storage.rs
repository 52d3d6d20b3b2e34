//! Where a server keeps what it is given.

use std::io::{self, Read, Seek, Write};

use quipu_model::Timestamp;

use crate::protocol::{NewUpload, Receipt, TranscriptId, Upload};

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

/// Where a server keeps what it is given. Every method may be called from any thread at any time.
pub trait Storage: Send + Sync {
    /// Room for a document that is being checked. It is gone when it is dropped.
    type Spool: Read + Write + Seek;

    /// Makes room for a document.
    fn spool(&self) -> io::Result<Self::Spool>;

    /// What was answered when a transcript was taken.
    fn receipt(&self, id: &TranscriptId) -> io::Result<Option<Receipt>>;

    /// Keeps a transcript for good, from the beginning of the spool; or gives back the receipt of the one that is there
    /// already. Of several that are kept at once under one id, one is.
    fn keep(&self, receipt: &Receipt, document: &mut Self::Spool) -> io::Result<Option<Receipt>>;

    /// Begins an upload.
    fn begin(&self, upload: &OpenUpload) -> io::Result<()>;

    /// The uploads that a key began.
    fn uploads(&self, key_id: &str) -> io::Result<Vec<OpenUpload>>;

    /// An upload, whoever began it.
    fn upload(&self, id: &str) -> io::Result<Option<OpenUpload>>;

    /// Adds to an upload. `false`, and nothing added, when it is gone or does not stand at this offset.
    fn append(&self, id: &str, offset: u64, bytes: &[u8], now: Timestamp) -> io::Result<bool>;

    /// What was uploaded, to be read from its beginning.
    fn uploaded(&self, id: &str) -> io::Result<Box<dyn Read + '_>>;

    /// Throws an upload away; one that is gone already is no error.
    fn close(&self, id: &str) -> io::Result<()>;

    /// Throws away the uploads that nothing was added to since.
    fn expire(&self, before: Timestamp) -> io::Result<()>;
}
