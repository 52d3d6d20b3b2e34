//! How an item reads: of a response, or of the input of a request.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{Json, NoteKind, Status, Usage};

use super::wire;
use crate::openai_chat::message;
use crate::{Entry, Out, Text, Value, What, capture};

/// Gives the entries of an item, in order. `search` is the last search for tools, which the vendor runs
/// itself and gives no id that its result would name.
pub(super) fn entries<'a>(
    item: Node<'a>,
    search: &mut Option<String>,
    out: &mut Out<'_>,
    put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>),
) {
    out.check("item", item, wire::ITEM);
    // What has no place of its own is kept with the first of what it becomes.
    let mut whole = Some(item);
    let put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>) = &mut |mut entry, out| {
        if let Some(item) = whole.take()
            && !entry.keeps(item)
        {
            entry.extra.rest("item", item, wire::ITEM_MAPPED);
        }
        put(entry, out);
    };
    let kind = item.text("type").unwrap_or_default();
    let own = capture::id(item, "id");
    let id = capture::id(item, "call_id").or_else(|| own.clone());
    match &*kind {
        "message" | "" => said(item, out, put),
        "reasoning" => put(reasoning(item), out),
        "function_call" | "custom_tool_call" => {
            put(message::call(item, id.unwrap_or_default(), out), out);
        }
        "mcp_call" => {
            put(
                message::call(item, id.clone().unwrap_or_default(), out),
                out,
            );
            let failed = item.get("error").filter(|error| !error.is_null());
            put(ended(item, "", id, item.get("output"), failed, out), out);
        }
        "local_shell_call" | "shell_call" | "apply_patch_call" | "computer_call" | "program"
        | "tool_search_call" => {
            if kind == "tool_search_call" {
                *search = id.as_deref().map(str::to_owned);
            }
            let name = kind.strip_suffix("_call").unwrap_or(&kind).to_owned();
            let keys = ["action", "actions", "operation", "code", "arguments"];
            put(begun(&name, item, id, &keys, out), out);
        }
        // Tools that the vendor runs: the call and its result are one item.
        "web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "image_generation_call" => {
            let name = kind.strip_suffix("_call").unwrap_or(&kind).to_owned();
            let keys = [
                "action",
                "queries",
                "code",
                "container_id",
                "revised_prompt",
            ];
            put(begun(&name, item, id.clone(), &keys, out), out);
            let gave = ["results", "outputs", "result"]
                .iter()
                .find_map(|key| item.get(key).filter(|value| !value.is_null()));
            let done = item.text("status").unwrap_or_default();
            if gave.is_some() || matches!(&*done, "completed" | "failed" | "incomplete") {
                put(ended(item, &name, id, gave, None, out), out);
            }
        }
        "tool_search_output" => {
            let id = capture::id(item, "call_id")
                .or_else(|| search.take().map(Cow::Owned))
                .or(own);
            put(
                ended(item, "tool_search", id, item.get("tools"), None, out),
                out,
            );
        }
        "program_output" => put(
            ended(item, "program", id, item.get("result"), None, out),
            out,
        ),
        _ if kind.ends_with("_output") => {
            put(ended(item, "", id, item.get("output"), None, out), out);
        }
        "mcp_approval_request" | "mcp_approval_response" => {
            put(Entry::keep(NoteKind::Permission, item), out);
        }
        "mcp_list_tools" | "item_reference" | "additional_tools" => {
            put(Entry::keep(NoteKind::Context, item), out);
        }
        "compaction" | "compaction_summary" | "compaction_trigger" => {
            let entry = Entry {
                opaque: true,
                ..capture::ended(NoteKind::Compaction, None::<&str>, None)
            };
            put(entry, out);
        }
        _ => {
            out.unknown_type("item", &kind);
            put(Entry::keep(NoteKind::UnknownRecord, item), out);
        }
    }
}

fn said<'a>(item: Node<'a>, out: &mut Out<'_>, put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>)) {
    let role = item.text("role").unwrap_or_default();
    let who = match &*role {
        "assistant" => What::Assistant,
        "user" => What::User,
        _ => What::System,
    };
    message::parts(item.get("content"), who, out, put);
}

/// Reasoning: its summary and its text, or nothing that can be read.
fn reasoning(item: Node<'_>) -> Entry<'_> {
    let texts: Vec<Text<'_>> = ["summary", "content"]
        .iter()
        .filter_map(|key| item.get(key))
        .flat_map(Node::items)
        .filter_map(|part| part.get("text").and_then(Text::of))
        .filter(|text| !text.is_empty())
        .collect();
    let text = match <[Text<'_>; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) => {
            let texts: Vec<Cow<'_, str>> = texts.iter().map(Text::read).collect();
            Text::from(texts.join("\n\n"))
        }
    };
    Entry {
        opaque: text.is_empty(),
        ..Entry::new(What::Reasoning(text))
    }
}

/// The call of a tool that has a kind of item of its own.
fn begun<'a>(
    name: &str,
    item: Node<'a>,
    id: Option<Cow<'a, str>>,
    keys: &[&str],
    out: &mut Out<'_>,
) -> Entry<'a> {
    let mut attachments = Vec::new();
    let mut given = keys
        .iter()
        .filter_map(|key| Some((*key, item.get(key).filter(|value| !value.is_null())?)));
    let input = match (given.next(), given.next()) {
        (Some(("action" | "operation" | "arguments", only)), None) => {
            Some(out.value(only, &mut attachments))
        }
        _ => capture::pick(&[Some(item)], keys).map(Value::Owned),
    };
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: Cow::Owned(name.to_owned()),
            id: id.unwrap_or_default(),
            input,
        })
    }
}

fn ended<'a>(
    item: Node<'a>,
    name: &str,
    id: Option<Cow<'a, str>>,
    gave: Option<Node<'a>>,
    failed: Option<Node<'a>>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let gave = gave.filter(|gave| !gave.is_null());
    let mut entry = message::result(id, Some(Cow::Owned(name.to_owned())), None, out);
    let What::Result { output, error, .. } = &mut entry.what else {
        return entry;
    };
    *output = gave.map(|gave| {
        // An image that was made stands in a string of its own.
        let image = gave.as_str().filter(|_| name == "image_generation");
        let format = item.text("output_format").unwrap_or(Cow::Borrowed("png"));
        let kept = image.and_then(|image| out.detach(&format!("image/{format}"), &image));
        if let Some(attachment) = kept {
            let address = format!("{}{}", crate::BLOB_SCHEME, attachment.sha256);
            entry.attachments.push(attachment);
            return Value::Owned(Json::string(&address));
        }
        match message::only_text(gave) {
            Some(text) => Value::Text(text),
            None => out.value(gave, &mut entry.attachments),
        }
    });
    let outcome = gave.map(outcome).unwrap_or_default();
    let bad = matches!(
        &*item.text("status").unwrap_or_default(),
        "failed" | "incomplete"
    );
    if failed.is_some() || bad || outcome.is_some() {
        entry.status = Some(outcome.unwrap_or(Status::Error));
        *error = failed
            .and_then(|failed| {
                Text::of(failed).or_else(|| failed.get("message").and_then(Text::of))
            })
            .or_else(|| item.text("status").filter(|_| bad).map(Text::from))
            .or(Some(Text::from("failed")));
    }
    entry
}

/// How the commands of a shell ended, when one did not end well.
fn outcome(output: Node<'_>) -> Option<Status> {
    output.items().find_map(|command| {
        let outcome = command.get("outcome")?;
        if outcome.get("type").is_some_and(|kind| kind.is("timeout")) {
            return Some(Status::Timeout);
        }
        let code = outcome.get("exit_code")?.as_i64()?;
        (code != 0).then_some(Status::Error)
    })
}

/// Token counts of this kind, in disjoint buckets.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |path: &[&str]| node.path(path).and_then(|n| n.as_u64());
    let cache_read = count(&["input_tokens_details", "cached_tokens"]);
    let cache_write = count(&["input_tokens_details", "cache_write_tokens"]);
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let usage = Usage {
        input: count(&["input_tokens"]).map(|input| input.saturating_sub(cached)),
        cache_read,
        cache_write,
        cache_write_1h: None,
        output: count(&["output_tokens"]),
        reasoning: count(&["output_tokens_details", "reasoning_tokens"]),
    };
    (!usage.is_empty()).then_some(usage)
}
