//! What stands in a line.

use quipu_model::json::Node;

/// Every field that lines have been seen to have.
pub(super) const FIELDS: &[&str] = &[
    "type",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "session_id",
    "timestamp",
    "cwd",
    "gitBranch",
    "version",
    "userType",
    "isSidechain",
    "entrypoint",
    "slug",
    "promptId",
    "promptSource",
    "sessionKind",
    "requestId",
    "request_id",
    "message",
    "agentId",
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "toolUseResult",
    "tool_use_result",
    "toolDenialKind",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "imagePasteIds",
    "origin",
    "permissionMode",
    "planContent",
    "thinkingMetadata",
    "todos",
    "project",
    "classifierMetaLines",
    "isApiErrorMessage",
    "apiErrorStatus",
    "apiError",
    "error",
    "errorDetails",
    "effort",
    "advisorModel",
    "attributionMcpServer",
    "attributionMcpTool",
    "attributionPlugin",
    "attributionSkill",
    "attributionAgent",
    "interruptedMessageId",
    "isAbortedMidStream",
    "costUSD",
    "durationMs",
    "subtype",
    "content",
    "level",
    "compactMetadata",
    "microcompactMetadata",
    "hookCount",
    "hookInfos",
    "hookErrors",
    "hookAdditionalContext",
    "preventedContinuation",
    "stopReason",
    "hasOutput",
    "toolUseID",
    "parentToolUseID",
    "messageCount",
    "retryAttempt",
    "maxRetries",
    "retryInMs",
    "cause",
    "direction",
    "trigger",
    "fallbackModel",
    "originalModel",
    "apiRefusalCategory",
    "apiRefusalExplanation",
    "refusedUserMessageUuid",
    "attachment",
    "data",
    "summary",
    "leafUuid",
    "messageId",
    "snapshot",
    "isSnapshotUpdate",
    "operation",
    "lastPrompt",
    "aiTitle",
    "customTitle",
    "agentName",
    "mode",
    "prNumber",
    "prRepository",
    "prUrl",
    "atis",
    "team",
    "teamName",
    "parent_tool_use_id",
    "subagent_type",
    "task_description",
    "forkedFrom",
    "teamname",
    "color",
    "isReplay",
    "isSynthetic",
    "priority",
    "convertedFrom",
];

/// Fields of a line that have a place of their own; all others are kept with its first event.
pub(super) const MAPPED: &[&str] = &[
    "type",
    "uuid",
    "parentUuid",
    "sessionId",
    "session_id",
    "timestamp",
    "message",
    "isSidechain",
    "agentId",
    "isMeta",
    "isCompactSummary",
    "isApiErrorMessage",
    "costUSD",
    "parent_tool_use_id",
];

/// Fields of a line that are those of the session, unless it says otherwise.
pub(super) const OF_SESSION: &[&str] = &["cwd", "gitBranch", "version"];

/// The other account of a result, which is kept with it.
pub(super) const RESULT: &[&str] = &["toolUseResult", "tool_use_result"];

/// The same two together.
pub(super) const OF_SESSION_AND_RESULT: &[&str] = &[
    "cwd",
    "gitBranch",
    "version",
    "toolUseResult",
    "tool_use_result",
];

/// Fields of a message that have a place of their own.
pub(super) const MESSAGE_MAPPED: &[&str] = &[
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "usage",
];

/// Fields of a message that no model wrote which have a place.
pub(super) const MADE_UP_MAPPED: &[&str] = &["type", "role", "content"];

/// Fields of a usage that have a place of their own.
pub(super) const USAGE_MAPPED: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens_details",
];

/// Fields of a line without a message by which it is told where it stands, not what it says.
pub(super) const ENVELOPE: &[&str] = &[
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "session_id",
    "timestamp",
    "cwd",
    "gitBranch",
    "version",
    "userType",
    "isSidechain",
    "agentId",
    "entrypoint",
    "slug",
    "promptId",
    "forkedFrom",
];

/// Every field that messages have been seen to have.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "usage",
    "container",
    "context_management",
    "diagnostics",
];

/// Every field of a usage.
pub(super) const USAGE_FIELDS: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "service_tier",
    "server_tool_use",
    "iterations",
    "inference_geo",
    "speed",
    "output_tokens_details",
];

/// The fields of a line that most lines have and that decide what it is.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the line")]
pub(super) struct Line<'a> {
    pub(super) kind: Option<Node<'a>>,
    pub(super) uuid: Option<Node<'a>>,
    pub(super) parent: Option<Node<'a>>,
    pub(super) session: Option<Node<'a>>,
    pub(super) timestamp: Option<Node<'a>>,
    pub(super) cwd: Option<Node<'a>>,
    pub(super) branch: Option<Node<'a>>,
    pub(super) version: Option<Node<'a>>,
    pub(super) agent: Option<Node<'a>>,
    pub(super) message: Option<Node<'a>>,
    pub(super) request: Option<Node<'a>>,
    pub(super) result: Option<Node<'a>>,
    pub(super) cost: Option<Node<'a>>,
    pub(super) denial: Option<Node<'a>>,
    pub(super) parent_call: Option<Node<'a>>,
    pub(super) sidechain: bool,
    pub(super) meta: bool,
    pub(super) compact_summary: bool,
    pub(super) api_error: bool,
    /// Where the blocks begin that a line with the same id said before.
    pub(super) said: Vec<usize>,
    /// Whether it is a line of a session's file; lines of the stream spell the session's id otherwise.
    pub(super) on_disk: bool,
}

impl<'a> Line<'a> {
    pub(super) fn of(record: Node<'a>) -> Self {
        let mut line = Self::default();
        for (key, value) in record.fields() {
            let is_true = || value.as_bool() == Some(true);
            match key.plain() {
                Some("type") => line.kind = Some(value),
                Some("uuid") => line.uuid = Some(value),
                Some("parentUuid") => line.parent = Some(value),
                Some("sessionId") => {
                    line.session = Some(value);
                    line.on_disk = true;
                }
                Some("session_id") => line.session = Some(value),
                Some("timestamp") => line.timestamp = Some(value),
                Some("cwd") => line.cwd = Some(value),
                Some("gitBranch") => line.branch = Some(value),
                Some("version" | "claude_code_version") => line.version = Some(value),
                Some("agentId") => line.agent = Some(value),
                Some("message") => line.message = Some(value),
                Some("requestId" | "request_id") => line.request = Some(value),
                Some("toolUseResult" | "tool_use_result") => line.result = Some(value),
                Some("costUSD") => line.cost = Some(value),
                Some("toolDenialKind") => line.denial = Some(value),
                Some("parent_tool_use_id") => line.parent_call = Some(value),
                Some("isSidechain") => line.sidechain = is_true(),
                Some("isMeta") => line.meta = is_true(),
                Some("isCompactSummary") => line.compact_summary = is_true(),
                Some("isApiErrorMessage") => line.api_error = is_true(),
                _ => {}
            }
        }
        line
    }

    /// Whether one of its blocks is the result of a tool.
    pub(super) fn has_result_block(&self) -> bool {
        let content = self.message.and_then(|message| message.get("content"));
        let mut blocks = content.into_iter().flat_map(Node::items);
        blocks.any(|block| {
            block
                .get("type")
                .and_then(|kind| kind.as_raw_str()?.plain())
                .is_some_and(|kind| kind.ends_with("tool_result"))
        })
    }

    /// Whether no line with the same id said this block before.
    pub(super) fn is_new(&self, block: Node<'_>) -> bool {
        self.said.is_empty() || !self.said.contains(&block.offset())
    }
}
