//! Records to bytes.

use std::io::{self, Write};

use quipu_model::json::Tape;
use quipu_model::{Json, Timestamp};

use super::{Canon, CanonError, ContentId, Kind, LIMITS, VERSION};

/// A record before it has an id.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    /// What it is.
    pub kind: Kind,
    /// When.
    pub ts: Timestamp,
    /// What it follows; `None` for the root.
    pub parent: Option<ContentId>,
    /// Anything that is not hashed: an object.
    pub meta: Option<&'a Json>,
    /// What it says: an object.
    pub payload: &'a Json,
}

impl<'a> Draft<'a> {
    /// A record without meta.
    pub fn new(kind: Kind, ts: Timestamp, parent: Option<ContentId>, payload: &'a Json) -> Self {
        Self {
            kind,
            ts,
            parent,
            meta: None,
            payload,
        }
    }

    /// The same record, with this beside what is hashed.
    #[must_use]
    pub fn with_meta(mut self, meta: &'a Json) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// Why a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Its payload has no canonical form, and so no id.
    #[error("the payload has no id: {0}")]
    Canon(#[from] CanonError),
    /// The destination refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Adds a record to `out` as a line, and gives its id.
///
/// # Errors
///
/// When its payload has no canonical form. Then nothing was added.
#[expect(
    clippy::missing_panics_doc,
    reason = "a Json is one value, and not so deep"
)]
pub fn encode(
    draft: &Draft<'_>,
    canon: &mut Canon,
    tape: &mut Tape,
    out: &mut Vec<u8>,
) -> Result<ContentId, CanonError> {
    let payload = tape
        .read(draft.payload.get(), LIMITS.max_depth)
        .expect("a Json is one value, and not so deep");
    let id = canon.id(payload)?;
    let parent = draft.parent.map(|parent| format!("\"{parent}\""));
    // A vector takes everything.
    let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
    put("{\"version\":\"");
    put(VERSION);
    put("\",\"id\":\"");
    put(&id.to_string());
    put("\",\"kind\":\"");
    put(draft.kind.as_str());
    put("\",\"ts\":\"");
    put(&stamp(draft.ts));
    put("\",\"parent\":");
    put(parent.as_deref().unwrap_or("null"));
    if let Some(meta) = draft.meta {
        put(",\"meta\":");
        put(meta.get());
    }
    put(",\"payload\":");
    put(draft.payload.get());
    put("}\n");
    Ok(id)
}

/// A time as records have it: to the millisecond, in UTC.
pub fn stamp(ts: Timestamp) -> String {
    format!("{ts:.3}")
}

/// Writes records, each as one write.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    line: Vec<u8>,
    canon: Canon,
    tape: Tape,
}

impl<W: Write> Writer<W> {
    /// Writes to this.
    pub fn new(out: W) -> Self {
        Self {
            out,
            line: Vec::new(),
            canon: Canon::new(),
            tape: Tape::new(),
        }
    }

    /// Adds a record, and gives its id.
    ///
    /// # Errors
    ///
    /// When its payload has no canonical form; then nothing was written. When the destination refuses.
    pub fn append(&mut self, draft: &Draft<'_>) -> Result<ContentId, WriteError> {
        self.line.clear();
        let id = encode(draft, &mut self.canon, &mut self.tape, &mut self.line)?;
        self.out.write_all(&self.line)?;
        Ok(id)
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}
