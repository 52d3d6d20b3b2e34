//! What people, models and programs said in a line.

use std::borrow::Cow;
use std::cell::Cell;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status};

use super::super::wire::{
    Line, MADE_UP_MAPPED, MESSAGE_FIELDS, MESSAGE_MAPPED, USAGE_FIELDS, USAGE_MAPPED,
};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::common::Kept;
use crate::cost::Cost;
use crate::{Entry, Out, Text, Value, What};

pub(super) fn assistant<'a>(
    record: Node<'a>,
    line: &Line<'a>,
    common: &Kept<'a>,
    out: &mut Out<'_>,
) {
    let Some(message) = line.message else {
        return;
    };
    out.check("message", message, MESSAGE_FIELDS);
    let mut model = message.text("model");
    // Errors and interruptions are told as replies of a model that is none.
    let made_up = line.api_error || model.as_deref() == Some("<synthetic>");
    if made_up {
        model = None;
    }
    let mapped = if made_up {
        MADE_UP_MAPPED
    } else {
        MESSAGE_MAPPED
    };
    common.keep("message", message, mapped);
    let counts = message.get("usage").filter(|_| !made_up);
    let usage = counts.and_then(|node| {
        out.check("usage", node, USAGE_FIELDS);
        blocks::usage(node)
    });
    let cost = line.cost.filter(|_| !made_up).and_then(Cost::of);
    let cost = cost.map(Cost::money);
    let service = counts.map(blocks::service).unwrap_or_default();
    let searches = counts.and_then(blocks::searches);
    let call = call_of(message, line);
    let stop = message.text("stop_reason").filter(|_| !made_up);
    if let Some(counts) = counts {
        common.keep("usage", counts, USAGE_MAPPED);
        inner_calls(counts, call.as_deref(), model.as_deref(), common, out);
    }
    let content = message.get("content");
    let first = Cell::new(true);
    let put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
        if made_up && let What::Assistant(text) = entry.what {
            entry = Entry {
                extra: entry.extra,
                ..Entry::note(NoteKind::Error, text)
            };
        }
        entry.model.clone_from(&model);
        entry.model_call.clone_from(&call);
        if first.take() {
            entry.usage = usage;
            entry.cost = cost;
            entry.searches = searches;
            entry.service = service;
            entry.stop_reason.clone_from(&stop);
        }
        common.put(entry, out);
    };
    match content {
        Some(content) if content.kind() == Kind::String => {
            let text = Text::of(content).unwrap_or(Text::EMPTY);
            put(Entry::new(What::Assistant(text)), out);
        }
        Some(content) => {
            for block in content.items().filter(|block| line.is_new(*block)) {
                let facts = ResultFacts::default();
                if let Some(entry) = blocks::entry(block, Speaker::Assistant, facts, out) {
                    put(entry, out);
                    continue;
                }
                let kind = block.text("type").unwrap_or_default();
                if kind != "fallback" {
                    out.unknown_type("assistant.content", &kind);
                }
                put(Entry::keep(NoteKind::UnknownRecord, block), out);
            }
        }
        None => {}
    }
    if first.get() {
        put(Entry::keep(NoteKind::ModelCall, record), out);
    }
}

/// Calls to models within a call. They are told on every line of it, and taken in once.
fn inner_calls<'a>(
    usage: Node<'a>,
    call: Option<&str>,
    model: Option<&str>,
    common: &Kept<'a>,
    out: &mut Out<'_>,
) {
    for (at, part) in blocks::inner_calls(usage) {
        let known = call.map(|call| blocks::inner_name(call, at));
        if known.is_some_and(|known| out.ledger().knows_call(&known)) {
            continue;
        }
        // What is the line's is kept with what the line says.
        let extra = common.extra.take();
        common.put(blocks::inner_call((at, part), call, model), out);
        common.extra.replace(extra);
    }
}

/// What the call to a model is known by that a message is of.
pub(super) fn call_of<'a>(message: Node<'a>, line: &Line<'a>) -> Option<Cow<'a, str>> {
    let request = || line.request.and_then(|request| request.as_str());
    message.text("id").map(|id| match request() {
        // Those of the vendor are unique by themselves, and not every line names the request. Gateways
        // make up others.
        Some(request) if !id.starts_with("msg_") => Cow::Owned(format!("{id}:{request}")),
        _ => id,
    })
}

/// Keeps the other account of a result with it, but for what says the same. Pictures in it are kept outside.
pub(super) fn keep_account<'a>(entry: &mut Entry<'a>, account: Node<'a>, out: &mut Out<'_>) {
    let said = match &entry.what {
        What::Result {
            output: Some(Value::Text(Text::Raw(said))),
            ..
        }
        | What::Result {
            error: Some(Text::Raw(said)),
            ..
        } => Some(said.raw()),
        _ => None,
    };
    let mut attachments = Vec::new();
    match out.value(account, &mut attachments) {
        Value::Owned(made) => entry.extra.value("toolUseResult", made),
        _ => entry.extra.but("toolUseResult", account, said),
    }
    // The content of the result may have handed over the same.
    attachments.retain(|attachment| !entry.attachments.contains(attachment));
    entry.attachments.append(&mut attachments);
}

pub(super) fn attachment<'a>(record: Node<'a>, common: &Kept<'a>, out: &mut Out<'_>) {
    let Some(attachment) = record.get("attachment") else {
        return;
    };
    let kind = attachment.text("type").unwrap_or_default();
    let note = match &*kind {
        // Typed by a person while the agent was at work.
        "queued_command" => {
            let prompt = attachment.get("prompt").and_then(Text::of);
            if let Some(text) = prompt {
                common.keep("queued", attachment, &["type", "prompt"]);
                return common.put(said_to_agent(text, false), out);
            }
            NoteKind::Queue
        }
        kind if kind.starts_with("hook_") => NoteKind::Hook,
        "task_reminder" | "todo_reminder" | "todo" | "goal_status" => NoteKind::Todo,
        "edited_text_file"
        | "file"
        | "compact_file_reference"
        | "already_read_file"
        | "selected_lines_in_ide"
        | "opened_file_in_ide"
        | "directory"
        | "image"
        | "pdf_reference"
        | "new_file"
        | "edited_image_file" => NoteKind::Attachment,
        "total_tokens_reminder" | "token_usage" | "budget_usd" => NoteKind::Usage,
        "auto_mode" | "auto_mode_exit" | "output_style" => NoteKind::Mode,
        kind if kind.starts_with("plan_mode") => NoteKind::Mode,
        "command_permissions" => NoteKind::Permission,
        "agent_listing_delta"
        | "deferred_tools_delta"
        | "mcp_instructions_delta"
        | "skill_listing"
        | "nested_memory"
        | "structured_output"
        | "relevant_memories"
        | "invoked_skills"
        | "skill_discovery"
        | "diagnostics"
        | "ultrathink_effort"
        | "async_hook_response"
        | "mcp_resource"
        | "date_change"
        | "critical_system_reminder"
        | "agent_mention"
        | "task_status"
        | "team_context"
        | "dynamic_skill" => NoteKind::Context,
        other => {
            out.unknown_type("attachment", other);
            NoteKind::UnknownRecord
        }
    };
    common.put(Entry::keep(note, record), out);
}

pub(super) fn unknown_block<'a>(
    whose: &str,
    block: Node<'a>,
    common: &Kept<'a>,
    out: &mut Out<'_>,
) {
    let kind = block.text("type").unwrap_or_default();
    out.unknown_type(&format!("{whose}.content"), &kind);
    common.put(Entry::keep(NoteKind::UnknownRecord, block), out);
}

/// A text on the user's side: a person's, or one that a program put there.
pub(super) fn said_to_agent(text: Text<'_>, injected: bool) -> Entry<'_> {
    const INJECTED: [&str; 13] = [
        "<command-name>",
        "<command-message>",
        "<command-args>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<system-reminder>",
        "<task-notification>",
        "<user-prompt-submit-hook>",
        "<bash-stdout>",
        "<bash-input>",
        "Caveat: The messages below were generated by the user while running local commands",
        "[Request interrupted by user",
    ];
    if injected || INJECTED.iter().any(|mark| text.starts_with(mark)) {
        return Entry {
            synthetic: true,
            ..Entry::new(What::System(text))
        };
    }
    Entry::new(What::User(text))
}

/// What the structured twin of a result says.
pub(super) fn result_facts(result: Node<'_>) -> ResultFacts {
    let interrupted = result.get("interrupted").and_then(|n| n.as_bool()) == Some(true);
    ResultFacts {
        status: interrupted.then_some(Status::Timeout),
        duration_ms: ["durationMs", "totalDurationMs"]
            .iter()
            .find_map(|key| result.get(key)?.as_u64()),
    }
}

/// The first text of a message.
pub(super) fn first_text(message: Node<'_>) -> Text<'_> {
    let Some(content) = message.get("content") else {
        return Text::EMPTY;
    };
    Text::of(content)
        .or_else(|| {
            content
                .items()
                .find_map(|block| block.get("text").and_then(Text::of))
        })
        .unwrap_or(Text::EMPTY)
}
