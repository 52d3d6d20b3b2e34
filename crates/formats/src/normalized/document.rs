//! What a document says beside what happened: who shares it, what was removed, and what is not known here.

use quipu_model::{Json, Timestamp};

/// What is written into a document that no session knows of itself; and what was read from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizedOptions {
    /// The document's id. Without one it is made from the run's id, so that it is always the same.
    pub transcript_id: Option<String>,
    /// The version of the program that made events of the log; this program's own without one.
    pub adapter_version: Option<String>,
    /// When the session was captured. Left out without one, so that writing again gives the same bytes.
    pub captured_at: Option<Timestamp>,
    /// Who shares it; `null` without one.
    pub submitter: Option<Submitter>,
    /// What was removed from it; `null` without one.
    pub privacy: Option<Privacy>,
    /// Fields that are not known here, written as they are.
    pub extra: Vec<Extra>,
}

impl Default for NormalizedOptions {
    /// Nobody in particular shares all of it with nobody in particular.
    fn default() -> Self {
        Self {
            transcript_id: None,
            adapter_version: None,
            captured_at: None,
            submitter: Some(Submitter::nobody()),
            privacy: Some(Privacy::local()),
            extra: Vec::new(),
        }
    }
}

/// Who shares a transcript, by names that reveal nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Submitter {
    /// The public id of the key it is submitted with.
    pub key_id: Option<String>,
    /// What groups the submissions of one person.
    pub pseudonym: Option<String>,
    /// Whether the person chose to be known, where that is said.
    pub identity_linked: Option<bool>,
}

impl Submitter {
    /// Nobody in particular.
    pub fn nobody() -> Self {
        Self {
            identity_linked: Some(false),
            ..Self::default()
        }
    }
}

/// What was removed before a transcript was shared, as far as that is said. What nobody said is not written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Privacy {
    /// The set of rules that was chosen.
    pub profile: Option<String>,
    /// Whether secrets were looked for and removed.
    pub redaction_applied: Option<bool>,
    /// Whether names, paths and addresses were replaced.
    pub anonymization_applied: Option<bool>,
    /// The rules that ran.
    pub rules_applied: Option<Vec<String>>,
    /// How much was removed.
    pub redaction_count: Option<u64>,
    /// What of the content is there at all.
    pub content_policy: Option<ContentPolicy>,
    /// Which version of the rules it was: a hash of them.
    pub rules_digest: Option<String>,
    /// How often each rule found something, where it did.
    pub rules_matched: Option<Vec<(String, u64)>>,
    /// Whether all times were moved by the same.
    pub time_shift: Option<bool>,
    /// Whether ids were replaced, each by the same wherever it was.
    pub ids_replaced: Option<bool>,
    /// Whether counts, costs, durations and sizes were rounded to two digits.
    pub numbers_rounded: Option<bool>,
    /// What was removed from the sections of the document.
    pub redactions: Option<Vec<Redaction>>,
    /// A hash tree over all that the document says.
    pub commitment: Option<Commitment>,
}

/// A hash tree over every value of a document. `docs/receipts.md` says how it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commitment {
    /// How it is made: a name.
    pub algorithm: String,
    /// The root of the tree, in lowercase hexadecimal.
    pub root: String,
    /// How many values there are.
    pub leaves: u64,
}

impl Privacy {
    /// Nothing was removed: the document is for whoever wrote it.
    pub fn local() -> Self {
        Self {
            profile: Some("local".to_owned()),
            redaction_applied: Some(false),
            anonymization_applied: Some(false),
            rules_applied: Some(Vec::new()),
            redaction_count: Some(0),
            content_policy: Some(ContentPolicy {
                include_file_contents: Some(true),
                tool_output: Some(ToolOutput::Full),
            }),
            ..Self::default()
        }
    }
}

/// What of the content is there at all, as far as that is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentPolicy {
    /// Whether the contents of files are.
    pub include_file_contents: Option<bool>,
    /// How much of what tools gave back.
    pub tool_output: Option<ToolOutput>,
}

/// How much of a tool's output a document holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutput {
    /// All of it.
    Full,
    /// The beginning.
    Truncated,
    /// That there was some.
    MetadataOnly,
    /// Nothing.
    None,
    /// A word that is not known here.
    Other(String),
}

impl ToolOutput {
    /// The word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Full => "full",
            Self::Truncated => "truncated",
            Self::MetadataOnly => "metadata-only",
            Self::None => "none",
            Self::Other(word) => word,
        }
    }

    /// What a word stands for.
    pub fn from_word(word: &str) -> Self {
        match word {
            "full" => Self::Full,
            "truncated" => Self::Truncated,
            "metadata-only" => Self::MetadataOnly,
            "none" => Self::None,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Something that was removed from an event, or from a section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redaction {
    /// The field it stood in, such as `tool.output` or `tool.input.edits[0].new_string`; see [`super::path`].
    pub field: String,
    /// The rule that found it.
    pub rule_id: String,
    /// What it was: `secret`, `pii`, ….
    pub kind: String,
    /// What stands there now.
    pub placeholder: String,
    /// Where in the field, as it is now, the placeholder begins: in characters (Unicode code points).
    pub start: Option<u64>,
    /// Where it ends.
    pub end: Option<u64>,
    /// A salted hash of what stood there, in lowercase hexadecimal.
    pub commitment: Option<String>,
}

/// What an event of a document has that the model has no place for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beyond {
    /// Its id, where that does not follow from its number.
    pub id: Option<String>,
    /// What was removed from it.
    pub redactions: Vec<Redaction>,
    /// Fields that are not known here or hold something else than they should, as they are.
    pub extra: Vec<(String, Json)>,
    /// The same in `tool`.
    pub tool: Vec<(String, Json)>,
    /// The same in `meta`.
    pub meta: Vec<(String, Json)>,
    /// What of it is not known at all, and is written again as the note keeps it.
    pub as_is: AsIs,
}

/// How much of an event is not known, so that the note that was made of it is what stood there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AsIs {
    /// Nothing.
    #[default]
    Nothing,
    /// All of it: its type is not known.
    Event,
    /// `meta`: its kind is not known.
    Meta,
}

impl Beyond {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A field of a document, outside of its events, that is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Where it stands.
    pub section: Section,
    /// Its name.
    pub key: String,
    /// Its value, as it is.
    pub value: Json,
}

/// The objects of a document that fields stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section {
    /// The document itself.
    Document,
    /// `source`
    Source,
    /// `session`
    Session,
    /// `session.environment`
    Environment,
    /// `session.environment.repo`
    Repo,
    /// `submitter`
    Submitter,
    /// `privacy`
    Privacy,
    /// `privacy.contentPolicy`
    ContentPolicy,
    /// `metrics`
    Metrics,
    /// `metrics.tokens`
    Tokens,
}
