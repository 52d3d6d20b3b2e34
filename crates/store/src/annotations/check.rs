//! What may be a label, a note, a name.

use super::{AnnotationError, Result, Target};

/// How long a label is at most, in characters.
pub const LONGEST_LABEL: usize = 64;

/// How long a note is at most, in bytes.
pub const LONGEST_NOTE: usize = 16 << 10;

/// How long the name of a person is at most, in characters.
pub const LONGEST_NAME: usize = 64;

/// How many labels and notes a transcript has at most.
pub const MOST_ANNOTATIONS: usize = 10_000;

/// The longest address of a transcript. Those that homes give have 25 characters.
const LONGEST_ADDRESS: usize = 64;

pub(super) fn label(label: &str) -> Result<()> {
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/+".contains(&byte);
    let begins = label
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_alphanumeric());
    if begins && label.len() <= LONGEST_LABEL && label.bytes().all(may_be) {
        return Ok(());
    }
    Err(AnnotationError::Label)
}

pub(super) fn note(text: &str) -> Result<()> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    let says_something = !text.trim().is_empty();
    if says_something && text.len() <= LONGEST_NOTE && text.chars().all(is_plain) {
        return Ok(());
    }
    Err(AnnotationError::Note)
}

pub(super) fn name(name: &str) -> Result<()> {
    let fits = (1..=LONGEST_NAME).contains(&name.chars().count());
    if fits && !name.chars().any(char::is_control) && !name.trim().is_empty() {
        return Ok(());
    }
    Err(AnnotationError::Name)
}

pub(super) fn target(on: Target<'_>) -> Result<()> {
    let address = on.transcript;
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let fits = (1..=LONGEST_ADDRESS).contains(&address.len());
    if !fits || !address.bytes().all(may_be) {
        return Err(AnnotationError::Transcript);
    }
    match on.seq {
        Some(0) => Err(AnnotationError::Seq),
        _ => Ok(()),
    }
}
