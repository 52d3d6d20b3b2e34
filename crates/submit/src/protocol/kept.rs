//! What is said of transcripts after they were taken: lists, keys, deletions.

use quipu_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Receipt, Sha256, TranscriptId};
use crate::keys::Scope;

/// A transcript in a list: its receipt and a few facts that it states itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// What was answered when it was taken.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// The agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The title, cut after [`Listed::MAX_TITLE`] characters.
    #[serde(default)]
    pub title: Option<String>,
    /// When the session began.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
}

impl Listed {
    /// How many characters of a title a list has.
    pub const MAX_TITLE: usize = 200;
    /// How long the name of an agent may be; a longer one is not listed.
    pub const MAX_AGENT: usize = 100;
}

/// A page of a list: `GET /v1/transcripts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// The transcripts. There may be fewer than asked for, or none, while there is a `next`.
    pub transcripts: Vec<Listed>,
    /// What to ask for next (`after=`); absent at the end of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many transcripts of this page could not be listed because what is kept of them is damaged.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unreadable: u64,
}

/// What came from one submitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contribution {
    /// The submitter.
    pub pseudonym: String,
    /// The key.
    pub key_id: String,
    /// How many transcripts are kept.
    pub transcripts: u64,
    /// How many events they have.
    pub events: u64,
    /// How many bytes.
    pub bytes: u64,
    /// When the first of them was taken.
    pub first_at: Timestamp,
    /// When the last of them was taken.
    pub last_at: Timestamp,
}

/// All submitters of whom something is kept: `GET /v1/submitters`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contributions {
    /// The submitters, by pseudonym.
    pub submitters: Vec<Contribution>,
    /// How many transcripts could not be counted because what is kept of them is damaged.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unreadable: u64,
}

/// What a key may do: `GET /v1/keys/self`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyFacts {
    /// Its public id.
    pub key_id: String,
    /// What its submissions are grouped by.
    pub pseudonym: String,
    /// What it is for.
    pub label: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops being accepted; absent for a key that does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// What asks for a deletion: `DELETE /v1/transcripts/{id}`. The body may be empty as well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeletionRequest {
    /// Why, in one line of at most [`Deletion::MAX_REASON`] characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who deleted a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeletedAs {
    /// The one who submitted it.
    Submitter,
    /// A key with the scope `admin`.
    Admin,
}

/// That a transcript was deleted. It is kept for good; the document is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The transcript.
    pub transcript_id: TranscriptId,
    /// The SHA-256 of the document that was deleted.
    pub sha256: Sha256,
    /// How many bytes it had.
    pub bytes: u64,
    /// The key it came with.
    pub key_id: String,
    /// The pseudonym of its submitter.
    pub pseudonym: String,
    /// When it was taken.
    pub received_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Timestamp,
    /// The key that deleted it.
    pub deleted_by: String,
    /// In which role.
    pub deleted_as: DeletedAs,
    /// Why, in the words of whoever deleted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Deletion {
    /// How many characters a reason may have.
    pub const MAX_REASON: usize = 500;
}
