//! Transcripts that others submitted.
//!
//! They are told from one's own sessions in everything that is counted. A submitter says what a session is called, what it
//! branched off from and whose sub-agent it is, and may say anything: so these names mean something among what came from
//! the same submitter, and nothing beside it.

use rusqlite::types::Value;

use super::write::native_of;

/// Who a transcript came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedFrom {
    /// The submitter; empty where it is not known any more.
    pub pseudonym: String,
    /// The key that it came with.
    pub key_id: Option<String>,
}

/// The longest id that keeps its own letters beside the name of its submitter.
const LONGEST: usize = 90;

impl ReceivedFrom {
    /// The id of a session among those of its submitter. No session of one's own has it.
    pub(super) fn among_theirs(&self, native: &str) -> String {
        let space = match self.pseudonym.as_str() {
            "" => "received".to_owned(),
            pseudonym => native_of(pseudonym).chars().take(24).collect(),
        };
        if native.chars().count() <= LONGEST {
            return format!("{native}.{space}");
        }
        let begin: String = native.chars().take(LONGEST - 17).collect();
        let hash = quipu_agents::hash(native.as_bytes());
        format!("{begin}-{hash:016x}.{space}")
    }
}

/// Whether transcripts that others submitted are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Received {
    /// Lists have them, figures do not: what others spent is not one's own money.
    #[default]
    AsUsual,
    /// They are meant as well.
    With,
    /// They are not meant.
    Without,
    /// They alone are meant.
    Only,
    /// Those of a submitter, by pseudonym or the beginning of it.
    From(String),
}

impl Received {
    /// What is meant where figures are asked for.
    pub(crate) fn in_figures(&self) -> Self {
        match self {
            Self::AsUsual => Self::Without,
            said => said.clone(),
        }
    }

    /// The condition in SQL, and what is put into it.
    pub(super) fn sql(&self, place: usize) -> Option<(String, Option<Value>)> {
        match self {
            Self::AsUsual | Self::With => None,
            Self::Without => Some(("t.received_from is null".to_owned(), None)),
            Self::Only => Some(("t.received_from is not null".to_owned(), None)),
            Self::From(pseudonym) => Some((
                format!("substr(t.received_from, 1, length(?{place})) = ?{place}"),
                Some(Value::Text(pseudonym.clone())),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_nobody_elses() {
        let from = |pseudonym: &str| ReceivedFrom {
            pseudonym: pseudonym.to_owned(),
            key_id: None,
        };
        let one = from("anon_7c41d09e55aa0b1c").among_theirs("session-1");
        assert_eq!(one, "session-1.anon_7c41d09e55aa0b1c");
        assert_eq!(from("").among_theirs("session-1"), "session-1.received");
        let long = "x".repeat(128);
        let other = format!("{}y", "x".repeat(127));
        let [a, b] = [long, other].map(|id| from("anon_7c41d09e55aa0b1c").among_theirs(&id));
        assert_ne!(a, b);
        assert!(a.len() <= 118, "{}", a.len());
        assert!(quipu_model::RunId::new(&a).is_ok());
    }
}
