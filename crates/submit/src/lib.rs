//! Handing a transcript to a server.
//!
//! ```text
//!  document ──► Packed ──► Client ── PUT /v1/transcripts/{id} ─────────────► Service ──► Storage
//!               digest,      │        POST, PATCH, HEAD /v1/uploads/{id}       │
//!               gzip, zstd   └─ again after a cut, from where it stopped       ├─ Keys: whose it is
//!                                                                              ├─ verify: what it is
//!                                                                              └─ Scan: what must not be in it
//! ```
//!
//! `docs/submission.md` is the protocol. [`server::Service`] is the whole of a server but for the sockets: a request in, an
//! answer out. [`client::Client`] is what sends. `testkit::conformance` holds any server to the protocol.
//!
//! **Invariant:** a transcript is kept whole and checked, or not at all.
//! **Invariant:** the secret of a key is in no file, no error, no answer and no `Debug` output; nor is a value that a scan
//! found.
//! **Invariant:** memory does not grow with the document, but for the part at hand.

#[cfg(feature = "http")]
pub mod client;
pub mod keys;
pub mod protocol;
pub mod scan;
pub mod server;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

mod bytes;

pub use keys::{KeyStore, Scope, SecretKey};
pub use protocol::{Deletion, Encoding, Finding, Listed, Receipt, Refusal, TranscriptId};
pub use scan::{EngineScan, Leak, Scan, ScanError};
