//! What a server answers.

use quipu_http::{Answer, one_line};
use serde::de::DeserializeOwned;

use crate::protocol::{Code, Refusal};

/// How much of an answer is read.
pub(super) const MAX_ANSWER: u64 = 256 << 10;

/// Why an answer is not a success, where the server says it.
pub(super) fn code(answer: &Answer) -> Option<Code> {
    json::<Refusal>(answer).map(|refusal| refusal.code)
}

/// What an answer says, when it is that.
pub(super) fn json<T: DeserializeOwned>(answer: &Answer) -> Option<T> {
    serde_json::from_slice(&answer.body).ok()
}

/// A text of another program, for a line of a terminal, without a key.
pub(super) fn clean(text: &str, key: &str) -> String {
    // The secret is the part behind the id.
    let secret = key.splitn(3, '_').nth(2).unwrap_or(key);
    one_line(&text.replace(key, "…").replace(secret, "…"))
}
