//! What stands in a chat, and in the analytics log.

/// What begins a run.
pub(super) const RUN: &str = "# aider chat started at ";
/// What begins a line that a person says.
pub(super) const USER: &str = "#### ";
/// What begins a line that Aider says.
pub(super) const TOOL: &str = "> ";

/// Every field that lines of the analytics log have been seen to have.
pub(super) const FIELDS: &[&str] = &["event", "properties", "user_id", "time"];
