//! The lines of a conversation, and their fields.

use std::borrow::Cow;

use quipu_model::json::Node;

/// What the lines are filed under: what never changes of a conversation, an item of it, all that is known of
/// it, what it used, and the columns that were not taken out.
pub(super) const CONVERSATION: &str = "omnigent_conversation";
pub(super) const ITEM: &str = "omnigent_item";
pub(super) const ABOUT: &str = "omnigent_about";
pub(super) const USAGE: &str = "omnigent_usage";
pub(super) const LEFT_OUT: &str = "omnigent_left_out";

/// Where a conversation is kept: one table, or three of them in newer versions.
pub(super) const TABLES: [(&str, &str); 3] = [
    ("conversations", "id"),
    ("omnigent_conversation_metadata", "id"),
    ("agent_configuration", "conversation_id"),
];

/// The columns of those that are taken out.
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "conversation_id",
    "workspace_id",
    "root_conversation_id",
    "parent_conversation_id",
    "created_at",
    "updated_at",
    "title",
    "kind",
    "model_override",
    "sub_agent_name",
    "workspace",
    "git_branch",
];

/// The column that is compressed, and has a line of its own.
pub(super) const COMPRESSED: &str = "session_usage";

/// The columns of an item.
pub(super) const ITEM_COLUMNS: &[&str] = &["id", "position", "type", "data", "created_at"];

/// Columns that hold what others hold as well.
pub(super) const DERIVED: &[&str] = &["search_text", "conversation_id", "workspace_id"];

/// The kinds of items. Newer versions write their numbers, beginning with 1.
const KINDS: [&str; 11] = [
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "error",
    "compaction",
    "native_tool",
    "resource_event",
    "routing_decision",
    "slash_command",
    "terminal_command",
];

/// The kind of an item.
pub(super) fn kind(row: Node<'_>) -> Cow<'_, str> {
    let Some(kind) = row.get("type") else {
        return Cow::Borrowed("");
    };
    let number = kind.as_u64().and_then(|n| usize::try_from(n).ok());
    let named = number.and_then(|n| KINDS.get(n.checked_sub(1)?).copied());
    match named {
        Some(name) => Cow::Borrowed(name),
        None => kind.as_str().unwrap_or(Cow::Borrowed(kind.raw().get())),
    }
}

/// Whether a conversation is one of a sub-agent.
pub(super) fn is_subagent(row: Node<'_>) -> bool {
    row.get("kind")
        .is_some_and(|kind| kind.is("sub_agent") || kind.is("2") || kind.as_u64() == Some(2))
}

/// Every field of each kind of item.
pub(super) const MESSAGE: &[&str] = &["role", "agent", "model", "content"];
pub(super) const CALL: &[&str] = &["agent", "model", "name", "arguments", "call_id"];
pub(super) const OUTPUT: &[&str] = &["agent", "model", "call_id", "output"];
pub(super) const REASONING: &[&str] = &["agent", "model", "summary"];
