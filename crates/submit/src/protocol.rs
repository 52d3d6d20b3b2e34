//! What is said between client and server. `docs/submission.md` has it for people.

mod kept;

use std::fmt;

use quipu_model::Timestamp;
use quipu_model::hex;
use serde::{Deserialize, Serialize};

pub use kept::{
    Contribution, Contributions, DeletedAs, Deletion, DeletionRequest, KeyFacts, Listed, Page,
};

/// The header that has the SHA-256 of the document, in hex. `Digest` and `Repr-Digest` are of the encoded bytes, so
/// that neither says it.
pub const SHA256: &str = "transcript-sha256";
/// The header that says how much of an upload is there, and where a piece belongs.
pub const UPLOAD_OFFSET: &str = "upload-offset";
/// The header that says how much of an upload there will be.
pub const UPLOAD_LENGTH: &str = "upload-length";

/// The id of a transcript, as far as it can be part of an address and of a file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TranscriptId(String);

/// A text is no id of a transcript that can be submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a transcript is 8 to 64 letters, digits, `-` and `_`")]
pub struct NotAnId;

impl TranscriptId {
    /// Takes a text that is one.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, NotAnId> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let begins = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins && (8..=64).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnId)
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TranscriptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TranscriptId {
    type Error = NotAnId;

    fn try_from(text: String) -> Result<Self, NotAnId> {
        Self::parse(&text)
    }
}

impl From<TranscriptId> for String {
    fn from(id: TranscriptId) -> Self {
        id.0
    }
}

/// The SHA-256 of a document.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256([u8; 32]);

/// A text is no SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 is 64 hex digits")]
pub struct NotADigest;

impl Sha256 {
    /// Reads 64 hex digits.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        hex::decode_array(text).map(Self).ok_or(NotADigest)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

impl TryFrom<String> for Sha256 {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        Self::parse(&text)
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> Self {
        digest.to_string()
    }
}

/// How a document is packed on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As it is.
    Identity,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Self; 3] = [Self::Identity, Self::Gzip, Self::Zstd];

    /// The word of the header `Content-Encoding`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// What a word of that header stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim();
        let mut all = Self::ALL.into_iter();
        all.find(|encoding| word.eq_ignore_ascii_case(encoding.as_str()))
    }
}

/// What a server takes: `GET /v1/limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// The most bytes of a document as it is sent.
    pub encoded_bytes: u64,
    /// The most bytes of a document as it is.
    pub document_bytes: u64,
    /// The most uploads that a key may have begun and not ended.
    pub open_uploads: u32,
    /// After how many seconds an upload that nothing was added to is thrown away.
    pub upload_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            encoded_bytes: 64 << 20,
            document_bytes: 256 << 20,
            open_uploads: 8,
            upload_seconds: 24 * 60 * 60,
        }
    }
}

/// What begins an upload in pieces: `POST /v1/uploads`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewUpload {
    /// What is uploaded.
    pub transcript_id: TranscriptId,
    /// The SHA-256 of the document as it is.
    pub sha256: Sha256,
    /// How many bytes there are as it is sent.
    pub size: u64,
    /// How it is packed.
    pub encoding: Encoding,
}

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    /// What pieces are sent to: `/v1/uploads/{uploadId}`.
    pub upload_id: String,
    /// How many bytes are there.
    pub offset: u64,
    /// How many there will be.
    pub size: u64,
}

/// That a transcript was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The transcript.
    pub transcript_id: TranscriptId,
    /// The key it came with.
    pub key_id: String,
    /// What the submissions of that key are grouped by.
    pub pseudonym: String,
    /// Whether the submitter chose to be known, as the transcript says.
    pub identity_linked: bool,
    /// The SHA-256 of the document.
    pub sha256: Sha256,
    /// How many bytes it has.
    pub bytes: u64,
    /// How many events.
    pub events: u64,
    /// When it was taken, the first time.
    pub received_at: Timestamp,
    /// Whether the same was taken before.
    pub duplicate: bool,
}

/// Why something was not taken. Its words are for programs; those of the message for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Code {
    /// A header, an address or a request is not as it should be.
    BadRequest,
    /// The document does not unpack.
    BadEncoding,
    /// The document has another SHA-256 than was said.
    DigestMismatch,
    /// The document is no normalized transcript, or not a valid one.
    NotATranscript,
    /// The document says it is another transcript, or of another key.
    SubmitterMismatch,
    /// There is no key, or none that is known.
    Unauthorized,
    /// The key was revoked.
    Revoked,
    /// The key has expired.
    Expired,
    /// The key may not do this; the message names the scope it lacks.
    Forbidden,
    /// There is nothing at this address, or nothing of this key.
    NotFound,
    /// There is, but it cannot be asked that.
    MethodNotAllowed,
    /// Another document has this id.
    Conflict,
    /// A piece does not belong where the upload stands.
    OffsetMismatch,
    /// It was deleted; `deletion` says when and by whom.
    Gone,
    /// No part of the document is in the range that was asked for.
    BadRange,
    /// It is larger than is taken; `limit` says how large it may be.
    TooLarge,
    /// It is packed or written in a way that is not known.
    UnsupportedEncoding,
    /// There is a secret in it; `findings` says where.
    SecretsFound,
    /// Too much at once.
    TooManyRequests,
    /// The server failed.
    Internal,
    /// The server cannot use its storage just now. Nothing was kept.
    Unavailable,
    /// The server has no room left. Nothing was kept.
    InsufficientStorage,
    /// A code that is not known here.
    #[serde(other)]
    Unknown,
}

impl Code {
    /// The status of an answer that says it.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest
            | Self::BadEncoding
            | Self::DigestMismatch
            | Self::NotATranscript
            | Self::SubmitterMismatch => 400,
            Self::Unauthorized => 401,
            Self::Revoked | Self::Expired | Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict | Self::OffsetMismatch => 409,
            Self::Gone => 410,
            Self::TooLarge => 413,
            Self::UnsupportedEncoding => 415,
            Self::BadRange => 416,
            Self::SecretsFound => 422,
            Self::TooManyRequests => 429,
            Self::Internal | Self::Unknown => 500,
            Self::Unavailable => 503,
            Self::InsufficientStorage => 507,
        }
    }
}

/// A place in a document that is not as it should be. What stands there is not said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule: of redaction, or of the format.
    pub rule: String,
    /// The field, such as `tool.output`; of an event when `seq` says which.
    pub field: String,
    /// The event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// A limit that was passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// Its name in [`Limits`].
    pub name: String,
    /// How many bytes are taken.
    pub bytes: u64,
}

/// That something was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Why, for programs.
    pub code: Code,
    /// Why, for people.
    pub message: String,
    /// Where, as far as that is known: at most a hundred places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How many more places there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// The limit that was passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The deletion of what was asked for, told to whoever may know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Box<Deletion>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Refusal {
    /// The most findings that an answer holds.
    pub const MAX_FINDINGS: usize = 100;

    /// A refusal without findings.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            findings: Vec::new(),
            more: 0,
            limit: None,
            deletion: None,
        }
    }

    /// With places.
    #[must_use]
    pub fn with(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        for finding in findings {
            if self.findings.len() < Self::MAX_FINDINGS {
                self.findings.push(finding);
            } else {
                self.more += 1;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_in_addresses_and_file_names() {
        for id in [
            "9f1c3a52-0000-4000-8000-000000000001",
            "abcdefgh",
            "a_b-c_d-e",
        ] {
            assert_eq!(TranscriptId::parse(id).unwrap().as_str(), id);
        }
        for id in [
            "",
            "short",
            "../../etc/passwd",
            "-abcdefgh",
            "_abcdefgh",
            "abc defgh",
            "ä2345678",
        ] {
            assert_eq!(TranscriptId::parse(id), Err(NotAnId), "{id}");
        }
        assert!(TranscriptId::parse(&"a".repeat(65)).is_err());
        assert!(serde_json::from_str::<TranscriptId>("\"../x\"").is_err());
    }

    #[test]
    fn answers_read_back_and_new_codes_are_read_as_unknown() {
        let finding = |n| Finding {
            rule: "aws".into(),
            field: "tool.output".into(),
            seq: Some(n),
        };
        let refusal = Refusal::new(Code::SecretsFound, "no").with((0..102).map(finding));
        assert_eq!((refusal.findings.len(), refusal.more), (100, 2));
        let text = serde_json::to_string(&refusal).unwrap();
        assert_eq!(serde_json::from_str::<Refusal>(&text).unwrap(), refusal);
        let text = r#"{"code":"tooPolite","message":"please"}"#;
        let refusal: Refusal = serde_json::from_str(text).unwrap();
        assert_eq!(refusal.code, Code::Unknown);
    }
}
