//! What stands in a rollout, and in the stream.

use std::cell::Cell;

use quipu_model::NoteKind;
use quipu_model::json::Node;

/// The types of lines.
pub(super) const LINES: &[&str] = &[
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "token_usage_record",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "retained_context",
    "rollout_reference",
    "realtime_item",
    "security_risk_score",
    "session_state",
];

/// The fields of the envelope.
pub(super) const LINE: &[&str] = &["timestamp", "type", "payload", "ordinal", "metadata"];

pub(super) const META: &[&str] = &[
    "id",
    "session_id",
    "timestamp",
    "cwd",
    "originator",
    "cli_version",
    "instructions",
    "source",
    "thread_source",
    "forked_from_id",
    "parent_thread_id",
    "history_mode",
    "history_base",
    "subagent_history_start_ordinal",
    "memory_mode",
    "model_provider",
    "base_instructions",
    "dynamic_tools",
    "context_window",
    "git",
    "multi_agent_version",
    "agent_nickname",
    "agent_path",
    "agent_role",
    "agent_type",
    "creator_account_id",
    "converted_from",
];

pub(super) const TURN: &[&str] = &[
    "turn_id",
    "root_turn_id",
    "trace_id",
    "turn_context",
    "cwd",
    "workspace_roots",
    "environments",
    "current_date",
    "timezone",
    "approval_policy",
    "approvals_reviewer",
    "sandbox_policy",
    "file_system_sandbox_policy",
    "permission_profile",
    "active_permission_profile",
    "network",
    "model",
    "model_provider",
    "service_tier",
    "comp_hash",
    "personality",
    "collaboration_mode",
    "multi_agent_version",
    "multi_agent_mode",
    "realtime_active",
    "effort",
    "summary",
    "user_instructions",
    "developer_instructions",
    "base_instructions",
    "final_output_json_schema",
    "truncation_policy",
];

pub(super) const COMPACTED: &[&str] = &[
    "message",
    "replacement_history",
    "window_id",
    "window_number",
    "previous_window_id",
    "first_window_id",
    "latest_token_usage_record",
    "guardian_history",
    "segment_state_checkpoint",
    "compaction_response_id",
];

pub(super) const TOKEN_COUNT: &[&str] = &["type", "info", "rate_limits", "context", "thread_id"];

pub(super) const TOKENS: &[&str] = &[
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
];

/// The fields of an item of this type; `None` for a type that is not known.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn item_fields(kind: &str) -> Option<&'static [&'static str]> {
    const PASSTHROUGH: &str = "internal_chat_message_metadata_passthrough";
    Some(match kind {
        "message" => &[
            "type",
            "id",
            "role",
            "content",
            "phase",
            "end_turn",
            "status",
            "timestamp",
            "metadata",
            PASSTHROUGH,
        ],
        "reasoning" => &[
            "type",
            "id",
            "summary",
            "content",
            "encrypted_content",
            "status",
            "metadata",
            PASSTHROUGH,
        ],
        "function_call" => &[
            "type",
            "id",
            "name",
            "namespace",
            "arguments",
            "call_id",
            "status",
            "summary",
            "metadata",
            PASSTHROUGH,
        ],
        "function_call_output" | "custom_tool_call_output" | "mcp_tool_call_output" => &[
            "type",
            "id",
            "name",
            "call_id",
            "output",
            "result",
            "status",
            "metadata",
            PASSTHROUGH,
        ],
        "custom_tool_call" => &[
            "type",
            "id",
            "call_id",
            "name",
            "namespace",
            "input",
            "status",
            "metadata",
            PASSTHROUGH,
        ],
        "local_shell_call" => &[
            "type",
            "id",
            "call_id",
            "status",
            "action",
            "metadata",
            PASSTHROUGH,
        ],
        "tool_search_call" => &[
            "type",
            "id",
            "call_id",
            "status",
            "execution",
            "arguments",
            "metadata",
            PASSTHROUGH,
        ],
        "tool_search_output" => &[
            "type",
            "id",
            "call_id",
            "status",
            "execution",
            "tools",
            "metadata",
            PASSTHROUGH,
        ],
        "web_search_call" => &["type", "id", "status", "action", "metadata", PASSTHROUGH],
        "image_generation_call" => &[
            "type",
            "id",
            "status",
            "revised_prompt",
            "result",
            "metadata",
            PASSTHROUGH,
        ],
        "agent_message" => &[
            "type",
            "id",
            "author",
            "recipient",
            "content",
            "metadata",
            PASSTHROUGH,
        ],
        "compaction" | "context_compaction" | "compaction_summary" | "compaction_trigger" => &[
            "type",
            "id",
            "encrypted_content",
            "summary",
            "metadata",
            PASSTHROUGH,
        ],
        "ghost_snapshot" => &["type", "ghost_commit"],
        // Never written by Codex itself, but by what imitates it.
        "token_count" => TOKEN_COUNT_ITEM,
        "tool_call" => &["type", "function", "arguments"],
        "tool_result" => &["type", "name", "result"],
        _ => return None,
    })
}

const TOKEN_COUNT_ITEM: &[&str] = &[
    "type",
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
];

/// What an event is about that is no part of the conversation, and its fields where they are known; `None`
/// for a type that is not known.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn event(kind: &str) -> Option<(NoteKind, &'static [&'static str])> {
    use NoteKind as Note;
    const ANY: &[&str] = &[];
    Some(match kind {
        "task_started" | "turn_started" => (
            Note::Turn,
            &[
                "type",
                "turn_id",
                "trace_id",
                "started_at",
                "model_context_window",
                "collaboration_mode_kind",
            ],
        ),
        "task_complete" | "turn_complete" => (
            Note::Turn,
            &[
                "type",
                "turn_id",
                "started_at",
                "completed_at",
                "duration_ms",
                "time_to_first_token_ms",
                "last_agent_message",
                "error",
            ],
        ),
        "turn_aborted" => (
            Note::Turn,
            &[
                "type",
                "turn_id",
                "reason",
                "started_at",
                "completed_at",
                "duration_ms",
            ],
        ),
        "exec_command_end" => (
            Note::Progress,
            &[
                "type",
                "call_id",
                "process_id",
                "turn_id",
                "completed_at_ms",
                "command",
                "cwd",
                "path_convention",
                "parsed_cmd",
                "source",
                "interaction_input",
                "stdout",
                "stderr",
                "aggregated_output",
                "exit_code",
                "duration",
                "formatted_output",
                "status",
            ],
        ),
        "patch_apply_end" => (
            Note::FileSnapshot,
            &[
                "type", "call_id", "turn_id", "success", "status", "stdout", "stderr", "changes",
            ],
        ),
        "mcp_tool_call_end" => (
            Note::Progress,
            &[
                "type",
                "call_id",
                "duration",
                "invocation",
                "result",
                "plugin_id",
                "read_only_hint",
                "connector_id",
                "link_id",
                "app_name",
                "action_name",
                "mcp_app_resource_uri",
            ],
        ),
        "dynamic_tool_call_request" | "dynamic_tool_call_response" => (
            Note::Progress,
            &[
                "type",
                "callId",
                "turnId",
                "call_id",
                "turn_id",
                "namespace",
                "tool",
                "arguments",
                "content_items",
                "success",
                "error",
                "duration",
            ],
        ),
        "web_search_end" => (
            Note::Progress,
            &["type", "call_id", "query", "action", "results"],
        ),
        "view_image_tool_call" => (Note::Attachment, &["type", "call_id", "path"]),
        "sub_agent_activity" => (
            Note::Subagent,
            &[
                "type",
                "event_id",
                "occurred_at_ms",
                "agent_thread_id",
                "agent_path",
                "kind",
            ],
        ),
        "collab_agent_spawn_end"
        | "collab_agent_interaction_end"
        | "collab_waiting_end"
        | "collab_close_end"
        | "collab_resume_end" => (
            Note::Subagent,
            &[
                "type",
                "call_id",
                "sender_thread_id",
                "new_thread_id",
                "new_agent_nickname",
                "new_agent_role",
                "receiver_thread_id",
                "receiver_agent_nickname",
                "receiver_agent_role",
                "agent_statuses",
                "statuses",
                "prompt",
                "model",
                "reasoning_effort",
                "status",
                "completed_at_ms",
            ],
        ),
        "collab_agent_spawn_begin"
        | "collab_agent_interaction_begin"
        | "collab_waiting_begin"
        | "collab_close_begin"
        | "collab_resume_begin" => (Note::Subagent, ANY),
        "thread_rolled_back" => (Note::Rewind, &["type", "num_turns"]),
        "thread_name_updated" => (Note::Title, &["type", "thread_id", "thread_name"]),
        "thread_settings_applied" => (Note::Mode, &["type", "thread_settings"]),
        "entered_review_mode" | "exited_review_mode" => (
            Note::Mode,
            &[
                "type",
                "target",
                "user_facing_hint",
                "prompt",
                "review_output",
                "turn_id",
                "item_id",
            ],
        ),
        "thread_goal_updated" => (Note::Todo, &["type", "threadId", "turnId", "goal"]),
        "plan_update" => (Note::Todo, ANY),
        "error" => (Note::Error, &["type", "message", "codex_error_info"]),
        "warning" | "guardian_warning" | "deprecation_notice" => (Note::Error, ANY),
        "stream_error" => (Note::Retry, ANY),
        "guardian_assessment" => (
            Note::Permission,
            &[
                "type",
                "id",
                "target_item_id",
                "turn_id",
                "status",
                "action",
                "risk_level",
                "user_authorization",
                "rationale",
                "decision_source",
                "started_at_ms",
                "completed_at_ms",
            ],
        ),
        "exec_approval_request"
        | "apply_patch_approval_request"
        | "request_permissions"
        | "request_user_input"
        | "elicitation_request" => (Note::Permission, ANY),
        "model_reroute" | "model_verification" => (Note::ModelChange, ANY),
        "undo_completed" => (Note::FileSnapshot, &["type", "success", "message"]),
        "undo_started" | "turn_diff" | "patch_apply_begin" | "patch_apply_updated" => {
            (Note::FileSnapshot, ANY)
        }
        "hook_started" | "hook_completed" => (Note::Hook, ANY),
        "injected_message" => (Note::Context, ANY),
        "context_usage" => (Note::Usage, ANY),
        "session_configured"
        | "shutdown_complete"
        | "mcp_startup_update"
        | "mcp_startup_complete"
        | "mcp_list_tools_response"
        | "list_skills_response"
        | "skills_update_available"
        | "list_custom_prompts_response"
        | "get_history_entry_response"
        | "conversation_path"
        | "turn_moderation_metadata" => (Note::Session, ANY),
        "background_event"
        | "exec_command_begin"
        | "mcp_tool_call_begin"
        | "web_search_begin"
        | "image_generation_begin"
        | "terminal_interaction"
        | "item_started"
        | "realtime_conversation_started"
        | "realtime_conversation_sdp"
        | "realtime_conversation_realtime"
        | "realtime_conversation_closed"
        | "codex/event/raw_item" => (Note::Progress, ANY),
        _ => return None,
    })
}

/// Events that are a part of what also comes whole.
pub(super) fn is_delta(kind: &str) -> bool {
    kind.ends_with("_delta") || kind == "agent_reasoning_section_break"
}

/// The types of messages by which the stream of the first generation is known.
pub(super) const MESSAGES: &[&str] = &[
    "session_configured",
    "task_started",
    "task_complete",
    "turn_aborted",
    "agent_message",
    "agent_message_delta",
    "agent_reasoning",
    "agent_reasoning_delta",
    "agent_reasoning_section_break",
    "exec_command_begin",
    "exec_command_end",
    "exec_command_output_delta",
    "patch_apply_begin",
    "patch_apply_end",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "web_search_begin",
    "web_search_end",
    "token_count",
    "turn_diff",
    "plan_update",
    "background_event",
    "stream_error",
    "shutdown_complete",
];

/// The fields of a line.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub(super) kind: Option<Node<'a>>,
    pub(super) timestamp: Option<Node<'a>>,
    pub(super) payload: Option<Node<'a>>,
    pub(super) ordinal: Option<Node<'a>>,
    /// Whether there is anything else.
    pub(super) odd: bool,
}

impl<'a> Line<'a> {
    pub(super) fn of(record: Node<'a>) -> Self {
        let mut line = Self::default();
        for (key, value) in record.fields() {
            match key.plain() {
                Some("type") => line.kind = Some(value),
                Some("timestamp" | "created_at") => line.timestamp = Some(value),
                Some("payload") => line.payload = Some(value),
                Some("ordinal") => line.ordinal = Some(value),
                _ => line.odd = true,
            }
        }
        line
    }
}

/// The fields of a payload that most payloads have.
#[derive(Default)]
pub(super) struct Item<'a> {
    pub(super) kind: Option<Node<'a>>,
    pub(super) id: Option<Node<'a>>,
    pub(super) role: Option<Node<'a>>,
    pub(super) content: Option<Node<'a>>,
    pub(super) summary: Option<Node<'a>>,
    pub(super) encrypted: Option<Node<'a>>,
    pub(super) name: Option<Node<'a>>,
    pub(super) namespace: Option<Node<'a>>,
    pub(super) call: Option<Node<'a>>,
    /// What a tool is called with.
    pub(super) input: Option<Node<'a>>,
    /// What a tool gave back.
    pub(super) output: Option<Node<'a>>,
    /// What an event says.
    pub(super) text: Option<Node<'a>>,
    pub(super) info: Option<Node<'a>>,
    pub(super) turn: Option<Node<'a>>,
    pub(super) timestamp: Option<Node<'a>>,
    /// All of it, and whether its fields without a place of their own were kept.
    pub(super) whole: Option<Node<'a>>,
    pub(super) is_kept: Cell<bool>,
    /// The line, where it has fields that are not known.
    pub(super) line: Option<Node<'a>>,
}

/// Fields of items that have a place of their own, whatever their kind.
pub(super) const MAPPED: &[&str] = &[
    "type",
    "id",
    "role",
    "content",
    "summary",
    "name",
    "namespace",
    "call_id",
    "arguments",
    "input",
    "action",
    "output",
    "result",
    "tools",
    "message",
    "text",
    "timestamp",
    "function",
];

impl<'a> Item<'a> {
    pub(super) fn of(payload: Node<'a>) -> Self {
        let mut item = Self {
            whole: Some(payload),
            ..Self::default()
        };
        for (key, value) in payload.fields() {
            match key.plain() {
                Some("type") => item.kind = Some(value),
                Some("id") => item.id = Some(value),
                Some("role") => item.role = Some(value),
                Some("content") => item.content = Some(value),
                Some("summary") => item.summary = Some(value),
                Some("encrypted_content") => {
                    item.encrypted = Some(value).filter(|value| !value.is_null());
                }
                Some("name") => item.name = Some(value),
                Some("namespace") => item.namespace = Some(value),
                Some("call_id") => item.call = Some(value),
                Some("arguments" | "input" | "action") => item.input = Some(value),
                Some("output" | "result" | "tools") => item.output = Some(value),
                Some("message" | "text") => item.text = Some(value),
                Some("info") => item.info = Some(value),
                Some("turn_id") => item.turn = Some(value),
                Some("timestamp") => item.timestamp = Some(value),
                _ => {}
            }
        }
        item
    }
}
