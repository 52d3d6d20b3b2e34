//! What a log says of the session as a whole.

use quipu_model::{RunId, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// A session, as far as its log has told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id in the agent's own terms. Unique within the agent: that of a sub-agent has its
    /// parent's before it where it would not be unique otherwise.
    pub id: Option<String>,
    /// The agent, where the log says so: formats that several agents write name theirs.
    pub agent: Option<String>,
    /// The agent's version, as last seen.
    pub version: Option<String>,
    /// A name given to the session. Where there is none, the first prompt serves.
    pub title: Option<String>,
    /// The working directory, as first seen.
    pub cwd: Option<String>,
    /// The branch, as first seen.
    pub branch: Option<String>,
    /// The repository's address.
    pub repository: Option<String>,
    /// The commit at the beginning.
    pub commit: Option<String>,
    /// The operating system, where the log has a field for it.
    #[serde(default)]
    pub os: Option<String>,
    /// The shell, where the log has a field for it.
    #[serde(default)]
    pub shell: Option<String>,
    /// The session this is a sub-agent of, by its native id.
    pub parent: Option<String>,
    /// The call in the parent that began it.
    pub parent_call: Option<String>,
    /// The session this was branched or copied from, by its native id, where the log says.
    pub forked_from: Option<String>,
    /// When it began, where the log says so apart from its events.
    pub started_at: Option<i64>,
    /// Put together from traces, because the log itself is gone.
    pub reconstructed: bool,
    /// The vendor's own sum of tokens, in disjoint buckets, where the log has one.
    pub vendor_usage: Option<Tokens>,
    /// The vendor's own cost in dollars, as written, where the log has one.
    pub vendor_cost: Option<String>,
}

/// [`Usage`], as it is kept with a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// See [`Usage::input`].
    pub input: Option<u64>,
    /// See [`Usage::cache_read`].
    pub cache_read: Option<u64>,
    /// See [`Usage::cache_write`].
    pub cache_write: Option<u64>,
    /// See [`Usage::cache_write_1h`].
    pub cache_write_1h: Option<u64>,
    /// See [`Usage::output`].
    pub output: Option<u64>,
    /// See [`Usage::reasoning`].
    pub reasoning: Option<u64>,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        } = usage;
        Self {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        }
    }
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        let Tokens {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        } = tokens;
        Self {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        }
    }
}

impl Session {
    /// When it began, apart from its events.
    pub fn started(&self) -> Option<Timestamp> {
        Timestamp::from_millisecond(self.started_at?).ok()
    }
}

/// Sets a fact that is not known yet. Empty texts say nothing.
pub(crate) fn learn<'a>(
    fact: &mut Option<String>,
    text: impl FnOnce() -> Option<std::borrow::Cow<'a, str>>,
) {
    if fact.is_none()
        && let Some(text) = text()
        && !text.is_empty()
    {
        *fact = Some(text.into_owned());
    }
}

/// Sets a fact to what was said last. Allocates only when it changes.
pub(crate) fn update(fact: &mut Option<String>, text: Option<std::borrow::Cow<'_, str>>) {
    if let Some(text) = text
        && !text.is_empty()
        && fact.as_deref() != Some(&*text)
    {
        *fact = Some(text.into_owned());
    }
}

/// The run id that stands for a native id: the same where it can be, and otherwise one that is made of
/// it and a hash of it, so that two native ids never meet.
pub fn run_id(native: &str) -> RunId {
    if let Ok(id) = RunId::new(native) {
        return id;
    }
    let plain: String = native
        .chars()
        .map(|c| {
            let fits = c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if fits { c } else { '-' }
        })
        .take(100)
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let hash = crate::hash(native.as_bytes());
    let name = if plain.is_empty() { "session" } else { plain };
    RunId::new(&format!("{name}-{hash:016x}")).unwrap_or_else(|_| {
        unreachable!("made of permitted characters, at most 117 of them, none of them first")
    })
}

#[cfg(test)]
mod tests {
    use super::run_id;

    #[test]
    fn native_ids_become_run_ids() {
        for (native, id) in [
            ("ses_0a1B", "ses_0a1B"),
            ("a/b", "a-b-"),
            ("", "session-"),
            ("../..", "session-"),
            ("é", "session-"),
        ] {
            assert!(run_id(native).as_str().starts_with(id), "{native:?}");
        }
        assert_ne!(run_id("a/b"), run_id("a b"));
        assert!(run_id(&"x/".repeat(500)).as_str().len() <= 128);
    }
}
