//! What stands in a notification.

use std::borrow::Cow;

use quipu_model::Timestamp;
use quipu_model::json::Node;

use crate::{capture, time};

/// Every field of a line.
pub(super) const LINE: &[&str] = &[
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "timestamp",
    "_meta",
    "kind",
    "sessionId",
    "update",
    "direction",
    "dir",
    "from",
    "to",
    "ts",
    "time",
    "at",
    "message",
    "msg",
    "payload",
    "frame",
    "v",
    "type",
    "data",
];

/// Every field of an update, whatever its kind.
pub(super) const UPDATE: &[&str] = &[
    "sessionUpdate",
    "_meta",
    "content",
    "messageId",
    "toolCallId",
    "title",
    "kind",
    "status",
    "locations",
    "rawInput",
    "rawOutput",
    "entries",
    "availableCommands",
    "currentModeId",
    "configOptions",
    "updatedAt",
    "used",
    "size",
    "cost",
    "prompt_id",
    "stop_reason",
    "usage",
    "agent_result",
    "tool_call_id",
    "tool_index",
    "name",
    "session_summary",
    "subagent_id",
    "subagent_type",
    "parent_session_id",
    "parent_prompt_id",
    "child_session_id",
    "subagentSessionId",
    "task",
    "capabilities",
    "capability_mode",
    "description",
    "model",
    "reasoning_effort",
    "duration_ms",
    "tool_calls",
    "tokens_used",
    "turns",
    "output",
    "error",
];

/// One line, taken apart.
pub(super) struct Line<'a> {
    pub(super) method: Cow<'a, str>,
    pub(super) params: Node<'a>,
    pub(super) update: Option<Node<'a>>,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) event: Option<Cow<'a, str>>,
    pub(super) at: Option<Timestamp>,
    /// When the stream that a piece belongs to began. Another is another message.
    pub(super) stream: Option<i64>,
    meta: Option<Node<'a>>,
}

impl<'a> Line<'a> {
    pub(super) fn of(record: Node<'a>) -> Self {
        // Recorders put a message into one of their own, with the time and which way it went.
        let envelope = record;
        let record = inner(record);
        let params = record.get("params").or(record.get("data"));
        let params = params.unwrap_or(record);
        // An update may stand alone.
        let alone = Some(record).filter(|record| record.get("sessionUpdate").is_some());
        let meta = params.get("_meta").or(record.get("_meta"));
        let number = |key: &str| meta?.get(key)?.as_i64();
        let precise = number("agentTimestampMs").and_then(time::from_count);
        Self {
            method: record.text("method").unwrap_or_default(),
            params,
            update: params.get("update").or(alone),
            session: capture::id(params, "sessionId"),
            event: meta.and_then(|meta| capture::id(meta, "eventId")),
            at: precise.or_else(|| sent(envelope)),
            stream: number("streamStartMs"),
            meta,
        }
    }

    /// How far a tool call is, in small letters. The envelope says it where the update does not.
    pub(super) fn status(&self) -> String {
        let own = self.update.and_then(|update| update.text("status"));
        let other = || self.meta?.path(&["updateParams", "status"])?.as_str();
        own.or_else(other).unwrap_or_default().to_ascii_lowercase()
    }
}

/// The message in what a recorder wrote, which may be the message itself.
pub(super) fn inner(record: Node<'_>) -> Node<'_> {
    if record.get("method").is_some() || record.get("jsonrpc").is_some() {
        return record;
    }
    ["message", "msg", "payload", "frame"]
        .iter()
        .find_map(|key| record.get(key))
        .filter(|inner| inner.get("jsonrpc").is_some())
        .unwrap_or(record)
}

/// When a message went by.
fn sent(envelope: Node<'_>) -> Option<Timestamp> {
    ["timestamp", "ts", "time", "at"]
        .iter()
        .find_map(|key| time::field(envelope, key))
}

/// What a tool is called: by its vendor, or else by its title.
pub(super) fn tool(update: Node<'_>) -> Option<Cow<'_, str>> {
    let meta = update.get("_meta");
    let named = meta.and_then(|meta| {
        let tool = meta.get("x.ai/tool");
        let own = tool.and_then(|tool| capture::id(tool, "name"));
        own.or_else(|| capture::id(meta, "toolName"))
    });
    named
        .or_else(|| capture::id(update, "title"))
        .or_else(|| capture::id(update, "kind"))
}
