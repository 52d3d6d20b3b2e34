//! Receipts: what was removed, and a commitment to what stood there.
//!
//! `docs/receipts.md` says how anyone checks a shared transcript by hand, what that proves and what it does not.
//!
//! ```text
//! span       commitment = SHA-256("quipu-span-1" ‖ salt ‖ what stood there)
//!            salt       = HMAC(key of the transcript, event, field, n-th span of the field)
//! document   root       = hash tree over every value of every event, receipts included, and of every section
//! ```
//!
//! [`verify()`] needs the shared copy alone. [`Against`] holds it against the original: without the key, whether the
//! original is the shared copy with something at each span; with it, whether what stood there is what was committed to.
//! [`Opening`] is how the owner shows one span to somebody.

mod against;
mod tree;
mod verify;

use std::io;

use quipu_formats::normalized::{Commitment, NormalizedOptions, Writer};
use quipu_model::Header;
use quipu_model::hex;
use quipu_model::json::{Parts, Tape};
use sha2::{Digest as _, Sha256};

pub use against::Against;
pub use tree::ALGORITHM;
pub(crate) use tree::Leaves;
pub use verify::{Problem, Report, What, verify};

use crate::Key;

/// What one span is shown by: the value, and what its commitment is salted with. Nothing of other spans follows from it.
#[derive(Clone, PartialEq, Eq)]
pub struct Opening {
    /// What stood there.
    pub value: String,
    /// In lowercase hexadecimal.
    pub salt: String,
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opening(…)")
    }
}

impl Opening {
    /// Whether this is what a commitment is of.
    pub fn opens(&self, commitment: &str) -> bool {
        hex::decode_array(&self.salt)
            .is_some_and(|salt| hex::encode(&committed(&salt, &self.value)) == commitment)
    }
}

/// What the owner shows of one span. `transcript` is the document's id, `field` and `n` name the span: the n-th of its
/// field, from 0. `None` when that is not what was committed to.
pub fn open(
    key: &Key,
    transcript: &str,
    seq: u64,
    field: &str,
    n: u64,
    value: &str,
    commitment: &str,
) -> Option<Opening> {
    let salt = salt(&salts(key, transcript), seq, field, n);
    let opening = Opening {
        value: value.to_owned(),
        salt: hex::encode(&salt),
    };
    opening.opens(commitment).then_some(opening)
}

/// The key that the spans of a transcript are salted with.
pub(crate) fn salts(key: &Key, transcript: &str) -> Key {
    key.derive("receipt", transcript)
}

fn salt(salts: &Key, seq: u64, field: &str, n: u64) -> [u8; 32] {
    salts.hash(
        "salt",
        &[&seq.to_be_bytes(), field.as_bytes(), &n.to_be_bytes()],
    )
}

/// The beginning of what is hashed for a span.
fn begun(salt: &[u8; 32]) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(b"quipu-span-1");
    hash.update(salt);
    hash
}

fn committed(salt: &[u8; 32], value: &str) -> [u8; 32] {
    begun(salt).chain_update(value).finalize().into()
}

/// Commits to what stood at a span.
pub(crate) fn commit(salts: &Key, seq: u64, field: &str, n: u64, value: &str) -> String {
    hex::encode(&committed(&salt(salts, seq, field, n), value))
}

/// Takes in the sections that a document will have, and gives what it commits to.
pub(crate) fn sections(
    mut leaves: Leaves,
    header: &Header,
    options: &NormalizedOptions,
) -> io::Result<Commitment> {
    let (_, document) = Writer::new(header, options, Vec::new())?.end()?;
    let mut parts = Parts::new(&["events"], usize::MAX);
    let mut tape = Tape::new();
    let mut failed = None;
    let mut take = |part: quipu_model::json::Part<'_>| {
        if part.index.is_some() {
            return;
        }
        let text = String::from_utf8_lossy(part.value);
        match tape.read(&text, tree::DEEPEST) {
            Ok(node) => leaves.section(part.key, node),
            Err(error) => failed = Some(error),
        }
    };
    parts.push(&document, &mut take).map_err(io::Error::other)?;
    if let Some(error) = failed {
        return Err(io::Error::other(error));
    }
    Ok(commitment(leaves))
}

fn commitment(leaves: Leaves) -> Commitment {
    let (root, leaves) = leaves.end().root();
    Commitment {
        algorithm: ALGORITHM.to_owned(),
        root: hex::encode(&root),
        leaves,
    }
}
