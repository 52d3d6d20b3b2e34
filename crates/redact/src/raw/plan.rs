//! What is the same for all records of one input.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::allow::Fields;
use super::asked;
use crate::sensitive::is_secret_throughout;
use crate::{Engine, is_placeholder};

/// How every placeholder begins.
const PLACEHOLDER: &[u8] = b"[REDACTED:";

static BEGIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PLACEHOLDER));

/// Longer than a placeholder is.
const LONGEST: usize = 80;

/// What is looked for, and how.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is asked by itself, at another place"
)]
pub(super) struct Plan<'e> {
    pub(super) engine: &'e Engine,
    pub(super) fields: &'e Fields,
    pub(super) near: bool,
    pub(super) file: Option<&'e str>,
    /// Whether what is of secret files is removed as a whole.
    pub(super) files: bool,
    /// Whether the input itself is such a file.
    pub(super) secret_file: bool,
    /// Whether no rule is about what only counts or tells records apart.
    pub(super) passes: bool,
}

impl<'e> Plan<'e> {
    pub(super) fn new(engine: &'e Engine, options: &'e super::RawOptions) -> Self {
        let file = options.file.as_deref();
        Self {
            engine,
            fields: Fields::of(engine),
            near: options.near,
            file,
            files: options.files,
            secret_file: options.files && file.is_some_and(is_secret_throughout),
            passes: asked::passes(engine, file),
        }
    }
}

/// Whether a span has bytes of a placeholder in it. What was redacted is not redacted again.
pub(super) fn touches_placeholder(text: &str, span: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let from = span.start.saturating_sub(LONGEST);
    let to = (span.end + PLACEHOLDER.len()).min(bytes.len());
    let mut at = from;
    while let Some(found) = BEGIN.find(&bytes[at..to]) {
        let begin = at + found;
        if begin >= span.end {
            return false;
        }
        if placeholder_at(bytes, begin).is_some_and(|end| end > span.start) {
            return true;
        }
        at = begin + 1;
    }
    false
}

/// The end of the placeholder that begins at a place.
fn placeholder_at(bytes: &[u8], begin: usize) -> Option<usize> {
    let window = &bytes[begin..(begin + LONGEST).min(bytes.len())];
    let end = begin + memchr::memchr(b']', window)? + 1;
    let text = std::str::from_utf8(&bytes[begin..end]).ok()?;
    is_placeholder(text).then_some(end)
}

/// The placeholders that stand in some bytes.
pub(super) fn placeholders(bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for begin in BEGIN.find_iter(bytes) {
        if let Some(end) = placeholder_at(bytes, begin) {
            all.push(String::from_utf8_lossy(&bytes[begin..end]).into_owned());
        }
    }
    all
}
