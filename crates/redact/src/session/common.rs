//! Names that are everybody's, and tell nothing of whose a session is.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

/// Names of branches, users and directories that are the same everywhere, so that a session's own is not known by it.
const EVERYWHERE: &str = "main master develop development trunk head root user users home admin ubuntu runner node app \
    code work workspace default guest shared public test build tests repo project projects source server client backend \
    frontend website docs tools scripts packages core data demo example examples sample temp api web src lib cli desktop \
    documents downloads github gitlab";

static WORDS: LazyLock<FxHashSet<&'static str>> =
    LazyLock::new(|| listed(include_str!("../../data/common-words.txt")));

static OWNERS: LazyLock<FxHashSet<&'static str>> =
    LazyLock::new(|| listed(include_str!("../../data/public-owners.txt")));

fn listed(text: &'static str) -> FxHashSet<&'static str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
}

/// Whether a word is everybody's, whatever its case: `main`, `Dashboard`, `src`.
pub fn is_common(word: &str) -> bool {
    word.len() <= 24 && WORDS.contains(&*word.to_ascii_lowercase())
}

/// Whether a name is the same everywhere.
pub(super) fn is_everywhere(name: &str) -> bool {
    EVERYWHERE
        .split_ascii_whitespace()
        .any(|word| word.eq_ignore_ascii_case(name))
}

/// Whether an owner of repositories is one that everybody uses.
pub(super) fn is_public_owner(owner: &str) -> bool {
    owner.len() <= 24 && OWNERS.contains(&*owner.to_ascii_lowercase())
}
