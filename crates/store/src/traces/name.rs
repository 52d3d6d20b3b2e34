//! What a trace is called.
//!
//! A trace is known by the id of its root record. Two sessions of the same program with the same tags have
//! the same root, so that is not enough: with a `~` and the beginning of the file's SHA-256 behind it, a
//! name says which.

use std::fmt;
use std::path::{Path, PathBuf};

use quipu_formats::agentlog::ContentId;
use quipu_model::hex;

use crate::address::Digest;

/// How files of traces end.
pub(super) const EXTENSION: &str = ".agentlog";

/// How many digits of the file's hash are in the name of a file that stands beside another.
const SHORT: usize = 16;

/// The full name of a trace. Shown as `<64 hex>~<16 hex>`: the root record's id, and the beginning of the
/// SHA-256 of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceName {
    /// The id of the root record.
    pub root: ContentId,
    /// The SHA-256 of the file.
    pub content: Digest,
}

impl fmt::Display for TraceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = self.content.to_string();
        write!(f, "{}~{}", self.root.hex(), &content[..SHORT])
    }
}

/// Where the trace with this root is, if it is the first with it; below the directory of traces.
pub(super) fn plain(root: &ContentId) -> PathBuf {
    let hex = root.hex();
    let (fan, rest) = hex.split_at(2);
    Path::new(fan).join(format!("{rest}{EXTENSION}"))
}

/// Where a trace is that stands beside another with the same root. The second is for when the first is
/// taken by a file that has the same digits.
pub(super) fn beside(name: &TraceName) -> [PathBuf; 2] {
    let (hex, content) = (name.root.hex(), name.content.to_string());
    let (fan, rest) = hex.split_at(2);
    [&content[..SHORT], &content]
        .map(|digits| Path::new(fan).join(format!("{rest}~{digits}{EXTENSION}")))
}

/// The root that a file of this name in this fan stands for; `None` when it is no file of ours.
pub(super) fn root_of(fan: &str, file: &str) -> Option<ContentId> {
    let stem = file.strip_suffix(EXTENSION)?;
    let (rest, content) = match stem.split_once('~') {
        Some((rest, content)) => (rest, Some(content)),
        None => (stem, None),
    };
    if content
        .is_some_and(|content| ![SHORT, 64].contains(&content.len()) || !hex::is_lowercase(content))
    {
        return None;
    }
    let digits = Some(format!("{fan}{rest}")).filter(|it| fan.len() == 2 && hex::is_lowercase(it));
    digits.and_then(hex::decode_array).map(ContentId)
}

/// The beginning of a name, as somebody asks for it: digits of the root's id, with or without `sha256:`, and
/// perhaps a `~` and digits of the file's hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) root: &'a str,
    pub(super) content: &'a str,
}

impl<'a> Asked<'a> {
    pub(super) fn read(argument: &'a str) -> Option<Self> {
        let text = argument.strip_prefix("sha256:").unwrap_or(argument);
        let (root, content) = text.split_once('~').unwrap_or((text, ""));
        let fits = |digits: &str| digits.len() <= 64 && hex::is_lowercase(digits);
        (!root.is_empty() && fits(root) && fits(content)).then_some(Self { root, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        let root = ContentId([0xab; 32]);
        let content = Digest::of(b"x");
        let [short, long] = beside(&TraceName { root, content });
        for path in [plain(&root), short, long] {
            let fan = path.parent().unwrap().to_str().unwrap();
            let file = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(root_of(fan, file), Some(root), "{file}");
            assert_eq!(root_of("a", file), None);
            assert_eq!(root_of(fan, &format!("{file}.tmp")), None);
        }
        let rest = &root.hex()[2..];
        for other in ["~.agentlog", "~xyz.agentlog", "~0123.agentlog", ".json", ""] {
            assert_eq!(root_of("ab", &format!("{rest}{other}")), None, "{other}");
        }
    }

    #[test]
    fn what_is_asked_for() {
        let asked = |text| Asked::read(text).map(|it| (it.root, it.content));
        assert_eq!(asked("sha256:ab12"), Some(("ab12", "")));
        assert_eq!(asked("ab12~9f"), Some(("ab12", "9f")));
        for wrong in ["", "~", "~ab", "AB", "xyz", "sha256:", "ab'~"] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
    }
}
