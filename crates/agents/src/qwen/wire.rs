//! What stands in a line.

use quipu_model::json::Node;
use quipu_model::{NoteKind, Usage};

/// Every field that lines have.
pub(super) const FIELDS: &[&str] = &[
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "type",
    "subtype",
    "cwd",
    "version",
    "gitBranch",
    "message",
    "usageMetadata",
    "model",
    "contextWindowSize",
    "toolCallResult",
    "systemPayload",
    "agentId",
    "agentName",
    "agentColor",
    "isSidechain",
    "agentRunId",
    "agentRound",
    "externalInputKind",
    "forkedFrom",
    "daemonPromptId",
    "provenance",
    "goalContext",
    "backgroundTurn",
    "deliveredTurn",
    "promptId",
];

/// Every field of token counts.
pub(super) const USAGE_FIELDS: &[&str] = &[
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
    "cachedContentTokenCount",
    "toolUsePromptTokenCount",
    "promptTokensDetails",
    "candidatesTokensDetails",
    "cacheTokensDetails",
    "trafficType",
];

/// Every field of what is known of a result beside its content.
pub(super) const RESULT_FIELDS: &[&str] = &[
    "callId",
    "status",
    "resultDisplay",
    "error",
    "errorType",
    "responseParts",
    "contentLength",
    "outputFile",
    "durationMs",
    "displayName",
    "name",
];

/// What a line of the program itself is about. `None` when its subtype is not known.
pub(super) fn system_note(subtype: &str) -> Option<NoteKind> {
    Some(match subtype {
        "chat_compression" => NoteKind::Compaction,
        "rewind" => NoteKind::Rewind,
        "custom_title" => NoteKind::Title,
        "session_model" => NoteKind::ModelChange,
        "session_approval_mode" => NoteKind::Mode,
        "file_history_snapshot" | "attribution_snapshot" => NoteKind::FileSnapshot,
        "goal_state" | "goal_runtime" => NoteKind::Todo,
        "goal_turn_end" | "turn_result" => NoteKind::Turn,
        "agent_bootstrap" | "agent_launch_prompt" | "agent_session_ready" => NoteKind::Subagent,
        "agent_retry" => NoteKind::Retry,
        "branch_checkpoint" => NoteKind::Fork,
        "slash_command" | "at_command" | "user_text_elements" | "session_notes" | "omni_recall"
        | "realtime_message" => NoteKind::Context,
        "notification" | "background_task_completed" | "cron" => NoteKind::Progress,
        "ui_telemetry" => NoteKind::Usage,
        "parent_session"
        | "session_source"
        | "session_execution_engine"
        | "session_artifact_event"
        | "session_artifact_snapshot"
        | "session_sources_snapshot"
        | "managed_session_header_v1"
        | "managed_session_event_v1"
        | "managed_session_commit_v1" => NoteKind::Session,
        "mid_turn_user_message" => NoteKind::Queue,
        _ => return None,
    })
}

/// Token counts of a call: what was cached is part of the prompt. Whether thoughts are part of the
/// candidates depends on whose model it was; the total tells.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let prompt = count("promptTokenCount");
    let cached = count("cachedContentTokenCount");
    let candidates = count("candidatesTokenCount");
    let thoughts = count("thoughtsTokenCount");
    let tool = count("toolUsePromptTokenCount").unwrap_or(0);
    let summed = match (candidates, thoughts) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    let by_total = match (count("totalTokenCount"), prompt) {
        (Some(total), Some(prompt)) => total
            .checked_sub(prompt)
            .and_then(|rest| rest.checked_sub(tool)),
        _ => None,
    };
    // A total that is less than what the model said is no total.
    let output = match (by_total, summed) {
        (Some(rest), Some(summed)) if rest >= candidates.unwrap_or(0) => Some(rest.min(summed)),
        (_, summed) => summed,
    };
    let input = prompt.map(|prompt| {
        prompt
            .saturating_sub(cached.unwrap_or(0))
            .saturating_add(tool)
    });
    let usage = Usage {
        input,
        cache_read: cached,
        cache_write: None,
        cache_write_1h: None,
        output,
        reasoning: thoughts,
    };
    (!usage.is_empty()).then_some(usage)
}
