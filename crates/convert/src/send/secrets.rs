//! What opens a door, and must not be shown. An endpoint may repeat what it was sent.

use std::fmt;

/// What is shorter than this opens none, and would be found in any text.
const SHORTEST: usize = 4;

/// Texts that are never shown. It does not show them either.
#[derive(Default)]
pub(super) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// Adds a secret, and its words: of `Bearer abcd`, `abcd` is one as well.
    pub(super) fn add(&mut self, secret: &str) {
        for part in std::iter::once(secret).chain(secret.split_ascii_whitespace()) {
            let is_scheme = ["basic", "bearer", "token"]
                .iter()
                .any(|it| part.eq_ignore_ascii_case(it));
            if part.len() >= SHORTEST && !is_scheme {
                self.0.push(part.to_owned());
            }
        }
        // The longest first: what holds another is not left in part.
        self.0.sort_by_key(|it| std::cmp::Reverse(it.len()));
        self.0.dedup();
    }

    /// Adds a query, and the values in it.
    pub(super) fn add_query(&mut self, query: &str) {
        self.add(query);
        for pair in query.split('&') {
            let (_, value) = pair.split_once('=').unwrap_or(("", pair));
            self.add(value);
        }
    }

    /// A text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "…");
            }
        }
        text
    }
}
