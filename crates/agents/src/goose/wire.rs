//! What stands in a session.

use quipu_model::Usage;
use quipu_model::json::Node;

/// Every column of a session, and every field of the line, or the document, that stands for it.
pub(super) const SESSION_FIELDS: &[&str] = &[
    "id",
    "name",
    "description",
    "user_set_name",
    "session_type",
    "working_dir",
    "created_at",
    "updated_at",
    "extension_data",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "accumulated_total_tokens",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_cache_read_tokens",
    "accumulated_cache_write_tokens",
    "accumulated_cost",
    "schedule_id",
    "recipe",
    "recipe_json",
    "user_recipe_values",
    "user_recipe_values_json",
    "provider_name",
    "model_config",
    "model_config_json",
    "goose_mode",
    "archived_at",
    "project_id",
    "parent_session_id",
    "message_count",
    "conversation",
    "last_message_at",
    "thread_id",
];

/// Every column of a message, and every field.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "id",
    "message_id",
    "session_id",
    "role",
    "content",
    "content_json",
    "created",
    "created_timestamp",
    "timestamp",
    "tokens",
    "metadata",
    "metadata_json",
];

/// Every column of a call to a model.
pub(super) const LEDGER_FIELDS: &[&str] = &[
    "id",
    "session_id",
    "message_id",
    "created_timestamp",
    "provider",
    "provider_name",
    "model",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost",
    "cost_source",
    "is_compaction",
    "usage_type",
];

/// Token counts. What came from a cache is inside the input with most providers and beside it with
/// others; the total tells, or else whether it fits.
pub(super) fn usage(node: Node<'_>, prefix: &str) -> Option<Usage> {
    let count = |key: &str| node.get(&format!("{prefix}{key}")).and_then(|n| n.as_u64());
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    let (cache_read, cache_write) = (count("cache_read_tokens"), count("cache_write_tokens"));
    let said = Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h: None,
        output,
        reasoning: None,
    };
    if said.total() == 0 {
        return None;
    }
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let beside = count("total_tokens").is_some_and(|total| total == said.total());
    let inside = !beside && input.is_some_and(|input| input >= cached);
    Some(Usage {
        input: if inside {
            input.map(|input| input.saturating_sub(cached))
        } else {
            input
        },
        ..said
    })
}
