//! What the store says, as the documents of `quipu-api`: the same for the command line and for HTTP.

mod conversion;
mod doctor;
mod events;
mod expiring;
mod explain;
mod import;
mod key;
mod listed;
mod search;
mod stats;
mod transcript;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

pub use conversion::conversion;
pub use doctor::doctor;
pub use events::Normalized;
pub use expiring::expiring;
pub use explain::{explained, price};
pub use import::{import, problem};
pub use key::key;
pub use listed::{Listed, NoField};
pub use search::hit;
pub use stats::{balance, cost, did, dollars, spent, stats, tokens, waste};
pub use transcript::transcript;
pub use tree::{forest, hide_names};

/// A path as documents have it.
pub fn path(path: &Path) -> String {
    path.display().to_string()
}

/// How often each of them, by name.
pub fn counts<N: ToString>(counts: impl IntoIterator<Item = (N, u64)>) -> BTreeMap<String, u64> {
    let named = counts.into_iter().map(|(name, n)| (name.to_string(), n));
    named.collect()
}
