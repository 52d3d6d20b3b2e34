//! Markdown, for people.
