//! What stands in a session, its messages and their parts, and how each is known on its own.

use quipu_model::json::{Kind, Node};

/// Every field of a session.
pub(super) const SESSION_FIELDS: &[&str] = &[
    "id",
    "slug",
    "projectID",
    "workspaceID",
    "directory",
    "path",
    "parentID",
    "title",
    "version",
    "summary",
    "share",
    "permission",
    "agent",
    "model",
    "cost",
    "tokens",
    "time",
    "revert",
    "metadata",
    "goal",
];

/// Every column of a session.
pub(super) const SESSION_COLUMNS: &[&str] = &[
    "id",
    "project_id",
    "workspace_id",
    "parent_id",
    "slug",
    "directory",
    "path",
    "title",
    "version",
    "share_url",
    "summary_additions",
    "summary_deletions",
    "summary_files",
    "summary_diffs",
    "cost",
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
    "revert",
    "permission",
    "goal",
    "agent",
    "model",
    "metadata",
    "time_created",
    "time_updated",
    "time_compacting",
    "time_archived",
    "data",
];

/// Every column of the other tables.
pub(super) const ROW_COLUMNS: &[&str] = &[
    "id",
    "session_id",
    "message_id",
    "type",
    "seq",
    "time_created",
    "time_updated",
    "data",
];

/// Every field of a user's message.
pub(super) const USER_FIELDS: &[&str] = &[
    "id",
    "sessionID",
    "role",
    "time",
    "agent",
    "model",
    "summary",
    "tools",
    "system",
    "format",
    "variant",
    "metadata",
];

/// Every field of a model's message.
pub(super) const ASSISTANT_FIELDS: &[&str] = &[
    "id",
    "sessionID",
    "role",
    "time",
    "parentID",
    "modelID",
    "providerID",
    "model",
    "mode",
    "agent",
    "path",
    "cost",
    "tokens",
    "finish",
    "error",
    "summary",
    "variant",
    "structured",
    "system",
    "metadata",
];

/// Every field of token counts.
pub(super) const TOKEN_FIELDS: &[&str] = &["total", "input", "output", "reasoning", "cache"];

/// Every kind of part: what its fields are counted under when they are not known, and its fields.
pub(super) const PARTS: &[(&str, &str, &[&str])] = &[
    (
        "text",
        "part.text",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "text",
            "synthetic",
            "ignored",
            "time",
            "metadata",
        ],
    ),
    (
        "reasoning",
        "part.reasoning",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "text",
            "time",
            "metadata",
        ],
    ),
    (
        "tool",
        "part.tool",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "callID",
            "tool",
            "state",
            "metadata",
            "time",
        ],
    ),
    (
        "step-start",
        "part.step-start",
        &["id", "sessionID", "messageID", "type", "snapshot"],
    ),
    (
        "step-finish",
        "part.step-finish",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "reason",
            "snapshot",
            "tokens",
            "cost",
        ],
    ),
    (
        "patch",
        "part.patch",
        &["id", "sessionID", "messageID", "type", "hash", "files"],
    ),
    (
        "file",
        "part.file",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "mime",
            "filename",
            "url",
            "source",
        ],
    ),
    (
        "snapshot",
        "part.snapshot",
        &["id", "sessionID", "messageID", "type", "snapshot"],
    ),
    (
        "agent",
        "part.agent",
        &["id", "sessionID", "messageID", "type", "name", "source"],
    ),
    (
        "subtask",
        "part.subtask",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "prompt",
            "description",
            "agent",
            "model",
            "command",
        ],
    ),
    (
        "retry",
        "part.retry",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "attempt",
            "error",
            "time",
        ],
    ),
    (
        "compaction",
        "part.compaction",
        &[
            "id",
            "sessionID",
            "messageID",
            "type",
            "auto",
            "overflow",
            "tail_start_id",
            "time",
            "metadata",
        ],
    ),
];

/// Every field of the state of a tool call.
pub(super) const STATE_FIELDS: &[&str] = &[
    "status",
    "input",
    "raw",
    "output",
    "error",
    "title",
    "metadata",
    "time",
    "attachments",
];

/// Whether a value is a session.
pub(super) fn is_session(info: Node<'_>) -> bool {
    let has = |key: &str| info.get(key).is_some();
    has("id")
        && has("directory")
        && has("version")
        && (has("projectID") || has("title"))
        && info.path(&["time", "created"]).is_some()
}

/// Whether a value is a message, without its parts.
pub(super) fn is_message(info: Node<'_>) -> bool {
    let has = |key: &str| info.get(key).is_some();
    let role = info
        .text("role")
        .is_some_and(|role| matches!(&*role, "user" | "assistant"));
    role && has("id")
        && has("sessionID")
        && info.path(&["time", "created"]).is_some()
        && (has("agent") || has("model") || has("modelID") || has("mode"))
}

/// Whether a value is a part: surely, perhaps, or not.
pub(super) fn is_part(part: Node<'_>) -> Option<bool> {
    let kind = part.text("type")?;
    let (_, _, fields) = PARTS.iter().find(|(known, _, _)| *known == kind)?;
    let has = |key: &str| part.get(key).is_some();
    if !has("id") {
        return None;
    }
    if has("messageID") && has("sessionID") {
        return Some(true);
    }
    // A part that does not say whose it is has nothing else that is not a part's.
    let known = part
        .fields()
        .all(|(key, _)| fields.iter().any(|field| key.is(field)));
    let timed = part.path(&["time", "start"]).is_some() || has("callID");
    (known && timed).then_some(false)
}

/// Whether a record is one of `opencode run --format json`.
pub(super) fn is_run(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("sessionID")
        && record
            .get("timestamp")
            .is_some_and(|t| t.kind() == Kind::Number)
        && record.text("type").is_some_and(|kind| match &*kind {
            "step_start" | "step_finish" | "text" | "tool_use" | "reasoning" => has("part"),
            "error" => has("error"),
            _ => false,
        })
}

/// What an event is in, when it is in anything: a recorder, or the server when it tells of several
/// projects.
pub(super) fn event(record: Node<'_>) -> Node<'_> {
    ["event", "payload"]
        .iter()
        .filter_map(|key| record.get(key))
        .find(|inner| inner.get("properties").is_some())
        .unwrap_or(record)
}

/// Whether a record is an event of the server.
pub(super) fn is_event(record: Node<'_>) -> bool {
    let event = event(record);
    let in_properties = |key: &str| event.path(&["properties", key]).is_some();
    let Some(kind) = event.text("type") else {
        return false;
    };
    if event
        .get("properties")
        .is_none_or(|p| p.kind() != Kind::Object)
    {
        return false;
    }
    match &*kind {
        "message.updated" | "session.created" | "session.updated" | "session.deleted" => {
            in_properties("info")
        }
        "message.part.updated" => in_properties("part"),
        "message.part.delta" | "message.removed" | "message.part.removed" => {
            in_properties("messageID")
        }
        "session.status" | "session.idle" | "session.diff" | "session.error" | "todo.updated" => {
            in_properties("sessionID")
        }
        "server.connected" => true,
        _ => false,
    }
}

/// Whether a value is what the server answers when something is wrong.
pub(super) fn is_error(document: Node<'_>) -> bool {
    document
        .text("name")
        .is_some_and(|name| name.ends_with("Error"))
        && document.path(&["data", "message"]).is_some()
        && document.fields().count() == 2
}

/// Fields of a part that have a place of their own.
pub(super) const PART_MAPPED: &[&str] = &["id", "sessionID", "messageID", "type", "text", "url"];

/// Fields of the part of a tool that have a place of their own.
pub(super) const TOOL_MAPPED: &[&str] = &[
    "id",
    "sessionID",
    "messageID",
    "type",
    "tool",
    "callID",
    "state",
];

/// Fields of the state of a call without a result that have a place of their own.
pub(super) const STATE_MAPPED: &[&str] = &["input", "raw", "time"];

/// Fields of the state of a call with a result that have a place of their own, or are kept by their own name.
pub(super) const RESULT_MAPPED: &[&str] = &[
    "status",
    "input",
    "raw",
    "output",
    "error",
    "time",
    "attachments",
    "metadata",
];
