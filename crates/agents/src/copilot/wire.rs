//! What stands in an event.

use quipu_model::json::Node;
use quipu_model::{NoteKind, Usage};

/// Every field of the envelope.
pub(super) const FIELDS: &[&str] = &[
    "id",
    "parentId",
    "timestamp",
    "type",
    "data",
    "agentId",
    "ephemeral",
];

/// Every field of the beginning of a session, or of its going on.
pub(super) const START_FIELDS: &[&str] = &[
    "sessionId",
    "version",
    "producer",
    "clientName",
    "copilotVersion",
    "startTime",
    "resumeTime",
    "eventCount",
    "selectedModel",
    "reasoningEffort",
    "context",
    "contextTier",
    "alreadyInUse",
    "remoteSteerable",
    "parentSessionId",
    "detachedFromSpawningParentSessionId",
    "continuePendingWork",
    "sessionWasActive",
];

/// Every field of a prompt.
pub(super) const USER_FIELDS: &[&str] = &[
    "content",
    "transformedContent",
    "attachments",
    "source",
    "agentMode",
    "delivery",
    "isAutopilotContinuation",
    "interactionId",
    "supportedNativeDocumentMimeTypes",
    "nativeDocumentPathFallbackPaths",
    "parentAgentTaskId",
    "inputIntegrity",
    "inputOrigin",
    "displayPrompt",
    "turnId",
];

/// Every field of a reply.
pub(super) const ASSISTANT_FIELDS: &[&str] = &[
    "messageId",
    "apiCallId",
    "serviceRequestId",
    "requestId",
    "content",
    "model",
    "toolRequests",
    "reasoningText",
    "reasoningOpaque",
    "encryptedContent",
    "outputTokens",
    "phase",
    "chunkIndex",
    "chunkCount",
    "interactionId",
    "parentToolCallId",
    "turnId",
    "citations",
    "anthropicAdvisorBlocks",
    "anthropicAdvisorModel",
];

/// Every field of a call in a reply.
pub(super) const REQUEST_FIELDS: &[&str] = &[
    "toolCallId",
    "name",
    "arguments",
    "type",
    "toolTitle",
    "intentionSummary",
    "mcpServerName",
    "mcpToolName",
];

/// Every field of the end of a call.
pub(super) const COMPLETE_FIELDS: &[&str] = &[
    "toolCallId",
    "toolName",
    "success",
    "result",
    "error",
    "model",
    "interactionId",
    "isUserRequested",
    "parentToolCallId",
    "toolTelemetry",
    "toolDescription",
    "sandboxed",
    "turnId",
];

/// Every field of the end of a session.
pub(super) const SHUTDOWN_FIELDS: &[&str] = &[
    "shutdownType",
    "errorReason",
    "totalPremiumRequests",
    "totalNanoAiu",
    "totalApiDurationMs",
    "sessionStartTime",
    "eventsFileSizeBytes",
    "codeChanges",
    "modelMetrics",
    "agentMetrics",
    "tokenDetails",
    "currentModel",
    "currentTokens",
    "systemTokens",
    "conversationTokens",
    "toolDefinitionsTokens",
];

/// What an event is that has no rule of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// Kept as a note of this kind.
    Note(NoteKind),
    /// A piece of something that also comes whole.
    Delta,
    /// A sign of life.
    Alive,
}

/// The events without a rule of their own. `None` for types that are not known.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn plain(kind: &str) -> Option<Plain> {
    use NoteKind as N;
    Some(match kind {
        "assistant.message_delta"
        | "assistant.reasoning_delta"
        | "assistant.tool_call_delta"
        | "assistant.streaming_delta"
        | "assistant.message_start"
        | "tool.execution_partial_result" => Plain::Delta,
        "session.idle" | "assistant.idle" | "session.usage_info" | "pending_messages.modified" => {
            Plain::Alive
        }
        "session.remote_steerable_changed"
        | "session.info"
        | "session.warning"
        | "session.handoff"
        | "session.import_legacy"
        | "session.task_complete"
        | "session.completion_receipt"
        | "session.schedule_created"
        | "session.schedule_cancelled"
        | "session.schedule_rearmed"
        | "session.session_limits_changed"
        | "session.managed_settings_resolved"
        | "session.managed_settings_enforced"
        | "session.custom_notification"
        | "session.canvas.opened"
        | "session.canvas.registry_changed"
        | "session.canvas.closed"
        | "session.canvas.unavailable"
        | "session.canvas.recorded"
        | "session.canvas.removed"
        | "factory.run_updated"
        | "factory.run_started"
        | "factory.run_settled"
        | "workflow.run_updated"
        | "workflow.run_started"
        | "workflow.run_settled"
        | "command.queued"
        | "command.execute"
        | "command.completed"
        | "ui.ephemeral_query" => Plain::Note(N::Session),
        "session.model_change"
        | "session.model_deselected"
        | "session.auto_mode_resolved"
        | "session.auto_tier_switch_failed"
        | "auto_mode_switch.requested"
        | "auto_mode_switch.completed"
        | "session.fusion_route_started"
        | "session.fusion_route_failed"
        | "session.fusion_resolved"
        | "session.fusion_completed" => Plain::Note(N::ModelChange),
        "session.mode_changed"
        | "session.mode_notice_delivered"
        | "exit_plan_mode.requested"
        | "exit_plan_mode.completed" => Plain::Note(N::Mode),
        "session.plan_changed"
        | "session.todos_changed"
        | "session.autopilot_objective_changed" => Plain::Note(N::Todo),
        "session.workspace_file_changed" => Plain::Note(N::FileSnapshot),
        "session.truncation"
        | "session.context_cleared"
        | "session.compaction_start"
        | "session.compaction_complete" => Plain::Note(N::Compaction),
        "session.usage_checkpoint"
        | "session_limits_exhausted.requested"
        | "session_limits_exhausted.completed" => Plain::Note(N::Usage),
        "session.context_changed"
        | "session.tools_updated"
        | "session.skills_loaded"
        | "session.custom_agents_updated"
        | "session.mcp_servers_loaded"
        | "session.mcp_server_status_changed"
        | "session.mcp_server_removed"
        | "session.mcp_server_needs_reconnect"
        | "session.extensions_loaded"
        | "mcp.tools.list_changed"
        | "mcp.resources.list_changed"
        | "mcp.prompts.list_changed"
        | "commands.changed"
        | "capabilities.changed"
        | "tool_search.activated"
        | "prompt_cache_break"
        | "skill.invoked"
        | "skill.invoked_ref"
        | "skill.context_delivered_ref" => Plain::Note(N::Context),
        "session.binary_asset" | "session.extensions.attachments_pushed" => {
            Plain::Note(N::Attachment)
        }
        "session.background_tasks_changed"
        | "assistant.intent"
        | "assistant.server_tool_progress"
        | "tool.execution_progress" => Plain::Note(N::Progress),
        "hook.start" | "hook.end" | "hook.progress" => Plain::Note(N::Hook),
        "assistant.turn_start"
        | "assistant.turn_end"
        | "assistant.turn_retry"
        | "assistant.fusion_phase_started"
        | "assistant.fusion_phase_activity"
        | "assistant.fusion_phase_completed"
        | "assistant.fusion_phase_failed"
        | "abort" => Plain::Note(N::Turn),
        "model.call_start" | "model.call_finished" | "model.call_final_result" => {
            Plain::Note(N::ModelCall)
        }
        "session.error" | "model.call_failure" => Plain::Note(N::Error),
        "permission.requested"
        | "permission.completed"
        | "session.permissions_changed"
        | "user_input.requested"
        | "user_input.completed"
        | "elicitation.requested"
        | "elicitation.completed"
        | "sampling.requested"
        | "sampling.completed"
        | "mcp.oauth_required"
        | "mcp.oauth_completed"
        | "mcp.headers_refresh_required"
        | "mcp.headers_refresh_completed" => Plain::Note(N::Permission),
        "subagent.started"
        | "subagent.configured"
        | "subagent.completed"
        | "subagent.failed"
        | "subagent.selected"
        | "subagent.deselected" => Plain::Note(N::Subagent),
        // What a program outside was asked to run is among the calls already.
        "external_tool.requested" | "external_tool.completed" | "mcp_app.tool_call_complete" => {
            Plain::Note(N::Progress)
        }
        _ => return None,
    })
}

/// Whether this is a type of event.
pub(super) fn is_known_type(kind: &str) -> bool {
    const RULED: [&str; 14] = [
        "session.start",
        "session.resume",
        "session.shutdown",
        "session.snapshot_rewind",
        "session.title_changed",
        "user.message",
        "assistant.message",
        "assistant.reasoning",
        "assistant.usage",
        "tool.user_requested",
        "tool.execution_start",
        "tool.execution_complete",
        "system.message",
        "system.notification",
    ];
    RULED.contains(&kind) || plain(kind).is_some()
}

/// Token counts: what the caches took or gave is part of the input, reasoning is part of the output.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let (read, write) = (count("cacheReadTokens"), count("cacheWriteTokens"));
    let usage = Usage {
        input: count("inputTokens").map(|input| {
            input
                .saturating_sub(read.unwrap_or(0))
                .saturating_sub(write.unwrap_or(0))
        }),
        cache_read: read,
        cache_write: write,
        cache_write_1h: None,
        output: count("outputTokens"),
        reasoning: count("reasoningTokens"),
    };
    (!usage.is_empty()).then_some(usage)
}

/// Fields of an event that have a place of their own; its data is kept apart.
pub(super) const EVENT_MAPPED: &[&str] =
    &["type", "data", "id", "timestamp", "parentId", "agentId"];

/// Fields of a reply that have a place of their own.
pub(super) const ASSISTANT_MAPPED: &[&str] = &[
    "messageId",
    "model",
    "content",
    "reasoningText",
    "toolRequests",
    "outputTokens",
    "parentToolCallId",
];

/// Fields of the end of a call that have a place of their own.
pub(super) const COMPLETE_MAPPED: &[&str] = &[
    "toolCallId",
    "toolName",
    "model",
    "success",
    "result",
    "error",
    "parentToolCallId",
];
