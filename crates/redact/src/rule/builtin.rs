//! The rules that come with the program.

/// The files, by name.
pub(super) const FILES: &[(&str, &str)] = &[];
