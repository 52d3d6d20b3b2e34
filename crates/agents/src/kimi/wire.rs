//! What stands in records, and what both kinds of log have in common.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, NoteKind, Status, Usage};

use crate::{Entry, Out, Text, Value, What, data_url};

/// The records of Kimi Code that are no part of the conversation, and what they are about.
pub(super) fn record_note(kind: &str) -> Option<NoteKind> {
    Some(match kind {
        "metadata" => NoteKind::Session,
        "forked" => NoteKind::Fork,
        "turn.cancel" => NoteKind::Turn,
        "permission.set_mode" | "permission.record_approval_result" => NoteKind::Permission,
        "full_compaction.begin"
        | "full_compaction.cancel"
        | "full_compaction.complete"
        | "micro_compaction.apply"
        | "context.apply_compaction"
        | "context.clear" => NoteKind::Compaction,
        "context.undo" => NoteKind::Rewind,
        "plan_mode.enter" | "plan_mode.cancel" | "plan_mode.exit" | "swarm_mode.enter"
        | "swarm_mode.exit" => NoteKind::Mode,
        "tools.register_user_tool"
        | "tools.unregister_user_tool"
        | "tools.set_active_tools"
        | "tools.update_store"
        | "llm.tools_snapshot"
        | "mcp.tools_discovered" => NoteKind::Context,
        "llm.request" => NoteKind::ModelCall,
        "goal.create" | "goal.update" | "goal.clear" => NoteKind::Todo,
        _ => return None,
    })
}

/// Whether only Kimi Code writes records of this type. Every log has some of them near its beginning.
pub(super) fn is_record_type(kind: &str) -> bool {
    matches!(
        kind,
        "turn.prompt"
            | "turn.steer"
            | "config.update"
            | "usage.record"
            | "context.append_message"
            | "context.append_loop_event"
            | "tools.set_active_tools"
    )
}

/// The messages of the wire of Kimi CLI.
pub(super) fn is_message_type(kind: &str) -> bool {
    const TYPES: [&str; 25] = [
        "TurnBegin",
        "SteerInput",
        "TurnEnd",
        "StepBegin",
        "StepInterrupted",
        "HookTriggered",
        "HookResolved",
        "CompactionBegin",
        "CompactionEnd",
        "MCPLoadingBegin",
        "MCPLoadingEnd",
        "StatusUpdate",
        "Notification",
        "PlanDisplay",
        "ContentPart",
        "ToolCall",
        "ToolCallPart",
        "ToolResult",
        "SubagentEvent",
        "ApprovalRequest",
        "ApprovalResponse",
        "ApprovalRequestResolved",
        "ToolCallRequest",
        "QuestionRequest",
        "QuestionResponse",
    ];
    TYPES.contains(&kind)
}

/// Token counts, which are disjoint already. Both spellings.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| node.get(key)?.as_u64());
    let usage = Usage {
        input: count(["inputOther", "input_other"]),
        cache_read: count(["inputCacheRead", "input_cache_read"]),
        cache_write: count(["inputCacheCreation", "input_cache_creation"]),
        cache_write_1h: None,
        output: count(["output", "output_tokens"]),
        reasoning: None,
    };
    (!usage.is_empty()).then_some(usage)
}

/// Whose part it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A person, or another agent.
    Prompt,
    /// A program.
    Injected,
    /// The model.
    Model,
}

/// One part of a content. `None` for a kind that is not known.
pub(super) fn part<'a>(part: Node<'a>, side: Side, out: &mut Out<'_>) -> Option<Entry<'a>> {
    if let Some(text) = Text::of(part) {
        return Some(said(text, side));
    }
    let kind = part.text("type")?;
    Some(match &*kind {
        "text" => said(part.get("text").and_then(Text::of)?, side),
        "think" => {
            let text = part.get("think").and_then(Text::of).unwrap_or(Text::EMPTY);
            Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            }
        }
        "image_url" | "audio_url" | "video_url" => match detach(part, out) {
            Some(attachment) => Entry {
                attachments: vec![attachment.clone()],
                ..Entry::note(NoteKind::Attachment, attachment.mime)
            },
            None => Entry::keep(NoteKind::Attachment, part),
        },
        _ => return None,
    })
}

pub(super) fn said(text: Text<'_>, side: Side) -> Entry<'_> {
    match side {
        Side::Prompt => Entry::new(What::User(text)),
        Side::Model => Entry::new(What::Assistant(text)),
        Side::Injected => Entry {
            synthetic: true,
            ..Entry::new(What::System(text))
        },
    }
}

/// The content of a part that holds it as an address: `{"type":"image_url","image_url":{"url":"data:…"}}`.
pub(super) fn detach(part: Node<'_>, out: &mut Out<'_>) -> Option<Attachment> {
    let url = part.fields().find_map(|(_, value)| value.text("url"))?;
    let (mime, data) = data_url(&url)?;
    out.detach(mime, data)
}

/// The parts of a content: a list of them, or a text.
pub(super) fn parts(content: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let single = (content.kind() == Kind::String).then_some(content);
    single.into_iter().chain(content.items())
}

/// A result: `output`, which is a text or parts, and whether it failed.
pub(super) fn result<'a>(
    id: Cow<'a, str>,
    result: Node<'a>,
    denied: bool,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let failed = ["isError", "is_error"]
        .iter()
        .any(|key| result.get(key).and_then(|n| n.as_bool()) == Some(true));
    let mut attachments = Vec::new();
    let content = result.get("output").filter(|output| !output.is_null());
    let only = content.and_then(|content| {
        let mut each = parts(content);
        let one = each.next().filter(|_| each.next().is_none())?;
        Text::of(one).or_else(|| one.get("text").and_then(Text::of))
    });
    let message = result.get("message").and_then(Text::of);
    let (output, error) = match (only, content) {
        (Some(text), _) if failed && !text.is_empty() => (None, Some(text)),
        (Some(text), _) => (Some(Value::Text(text)), None),
        (None, Some(content)) => (Some(out.value(content, &mut attachments)), None),
        (None, None) => (None, None),
    };
    let error = error.or_else(|| {
        let why = message.filter(|message| !message.is_empty());
        failed.then(|| why.unwrap_or(Text::from("failed")))
    });
    let status = match &error {
        _ if denied => Status::Denied,
        Some(why) if is_refusal(&why.read()) => Status::Denied,
        Some(why) if is_timeout(&why.read()) => Status::Timeout,
        Some(_) => Status::Error,
        None => Status::Ok,
    };
    let error = error.or((status == Status::Denied).then_some(Text::from("rejected")));
    Entry {
        status: Some(status),
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id,
            output,
            error,
        })
    }
}

fn is_refusal(why: &str) -> bool {
    why.starts_with("The tool call is rejected by the user")
        || why.starts_with("Rejected by user")
        || why.starts_with("Tool execution was rejected")
}

fn is_timeout(why: &str) -> bool {
    why.contains("killed by timeout") || why.contains("timed out")
}
