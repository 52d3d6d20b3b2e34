//! How a message of the Chat Completions kind reads.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Usage};

use crate::blocks::{self, ResultFacts, Speaker};
use crate::{Entry, Out, Text, Value, What, capture};

/// Everyone who speaks.
pub(crate) const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// Gives the entries of a message, in order. What they have in common the caller adds. The answer is
/// whether the message's role is known.
pub(crate) fn entries<'a>(
    message: Node<'a>,
    out: &mut Out<'_>,
    put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>),
) -> bool {
    let role = message.text("role").unwrap_or_default();
    entries_of(&role, message, out, put)
}

/// The same, where it is not the message that says whose it is.
pub(crate) fn entries_of<'a>(
    role: &str,
    message: Node<'a>,
    out: &mut Out<'_>,
    put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>),
) -> bool {
    let content = message.get("content").filter(|content| !content.is_null());
    match role {
        "system" | "developer" => parts(content, What::System, out, put),
        "user" => parts(content, What::User, out, put),
        "assistant" => reply(message, out, put),
        "tool" | "function" => {
            let id = ["tool_call_id", "call_id", "id"]
                .iter()
                .find_map(|key| capture::id(message, key));
            let name = message.text("name").or(message.text("tool_name"));
            put(result(id, name, content, out), out);
        }
        _ => return false,
    }
    true
}

/// What the model said: its reasoning, its words, its calls.
fn reply<'a>(message: Node<'a>, out: &mut Out<'_>, put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>)) {
    if let Some(reasoning) = reasoning(message) {
        put(reasoning, out);
    }
    parts(message.get("content"), What::Assistant, out, put);
    for said in [
        message.get("refusal"),
        message.path(&["audio", "transcript"]),
    ] {
        if let Some(text) = said.and_then(Text::of).filter(|text| !text.is_empty()) {
            put(Entry::new(What::Assistant(text)), out);
        }
    }
    if let Some(data) = message.path(&["audio", "data"]).and_then(|n| n.as_str()) {
        put(media("audio", Some(data), message, out), out);
    }
    for image in message.get("images").into_iter().flat_map(Node::items) {
        put(part_media(image, out), out);
    }
    for call in message.get("tool_calls").into_iter().flat_map(Node::items) {
        let function = call.get("function").or(call.get("custom")).unwrap_or(call);
        let id = capture::id(call, "id").or(capture::id(call, "tool_call_id"));
        put(self::call(function, id.unwrap_or_default(), out), out);
    }
    if let Some(function) = message.get("function_call").filter(|f| !f.is_null()) {
        put(call(function, Cow::Borrowed(""), out), out);
    }
}

/// A call: `name` with `arguments`, which are a string or an object, or with an `input` that is a text.
pub(crate) fn call<'a>(function: Node<'a>, id: Cow<'a, str>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let given = function.get("arguments").filter(|given| !given.is_null());
    let input = match given.map(|given| (Text::of(given), given)) {
        Some((Some(text), _)) => Some(capture::arguments(text, out, &mut attachments)),
        Some((None, given)) => Some(out.value(given, &mut attachments)),
        None => function
            .get("input")
            .map(|input| out.value(input, &mut attachments)),
    };
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: function.text("name").unwrap_or_default(),
            id,
            input,
        })
    }
}

/// A result. A list of one text is that text.
pub(crate) fn result<'a>(
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    content: Option<Node<'a>>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let mut attachments = Vec::new();
    let output = content.map(|content| match only_text(content) {
        Some(text) => Value::Text(text),
        None => out.value(content, &mut attachments),
    });
    Entry {
        attachments,
        ..Entry::new(What::Result {
            name: name.unwrap_or_default(),
            id: id.unwrap_or_default(),
            output,
            error: None,
        })
    }
}

/// The text, when content is nothing but one.
pub(crate) fn only_text(content: Node<'_>) -> Option<Text<'_>> {
    if content.kind() != Kind::List {
        return Text::of(content);
    }
    let mut items = content.items();
    match (items.next(), items.next()) {
        (Some(one), None) => one.get("text").and_then(Text::of),
        _ => None,
    }
}

/// The reasoning of a message, wherever its vendor puts it.
fn reasoning(message: Node<'_>) -> Option<Entry<'_>> {
    let said = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| message.get(key).and_then(Text::of))
        .filter(|text| !text.is_empty());
    let details = message.get("reasoning_details");
    let any = details.is_some_and(|details| details.items().next().is_some());
    let text = said.or_else(|| {
        let text = details.map(detailed).unwrap_or_default();
        (any || !text.is_empty()).then(|| text.into())
    })?;
    Some(Entry {
        opaque: text.is_empty(),
        ..Entry::new(What::Reasoning(text))
    })
}

/// What can be read of `reasoning_details`.
pub(super) fn detailed(details: Node<'_>) -> String {
    details
        .items()
        .filter_map(|detail| detail.text("text").or(detail.text("summary")))
        .collect()
}

/// The parts of a content: a string, or a list of texts, images and files.
pub(crate) fn parts<'a>(
    content: Option<Node<'a>>,
    who: fn(Text<'a>) -> What<'a>,
    out: &mut Out<'_>,
    put: &mut dyn FnMut(Entry<'a>, &mut Out<'_>),
) {
    let Some(content) = content else {
        return;
    };
    if let Some(text) = Text::of(content) {
        if !text.is_empty() {
            put(Entry::new(who(text)), out);
        }
        return;
    }
    for part in content.items() {
        let kind = part.text("type").unwrap_or_default();
        let text = part.get("text").or(part.get("refusal")).and_then(Text::of);
        let entry = match &*kind {
            "text" | "input_text" | "output_text" | "refusal" | "" => match text {
                Some(text) if text.is_empty() => continue,
                Some(text) => {
                    let mut entry = Entry::new(who(text));
                    entry
                        .extra
                        .rest("content", part, &["type", "text", "refusal"]);
                    entry
                }
                None => Entry::keep(NoteKind::UnknownRecord, part),
            },
            "thinking" | "reasoning" => thought(part),
            "image_url" | "input_image" | "input_audio" | "file" | "input_file" | "image"
            | "audio" | "video_url" | "document_url" => part_media(part, out),
            _ => {
                let known = blocks::entry(part, Speaker::Assistant, ResultFacts::default(), out);
                known.unwrap_or_else(|| {
                    out.unknown_type("content", &kind);
                    Entry::keep(NoteKind::UnknownRecord, part)
                })
            }
        };
        put(entry, out);
    }
}

/// Reasoning as a part of the content: a text, or a list of texts.
fn thought(part: Node<'_>) -> Entry<'_> {
    let said = part.get("thinking").or(part.get("text"));
    let text = said.map_or(Text::EMPTY, |said| {
        Text::of(said).unwrap_or_else(|| {
            let texts = said.items().filter_map(|piece| piece.text("text"));
            Text::from(texts.collect::<String>())
        })
    });
    Entry {
        opaque: text.is_empty(),
        ..Entry::new(What::Reasoning(text))
    }
}

/// A part that is an image, a sound or a file.
pub(crate) fn part_media<'a>(part: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let inner = ["image_url", "input_audio", "file", "video_url", "audio"]
        .iter()
        .find_map(|key| part.get(key))
        .unwrap_or(part);
    let data = match inner.as_str() {
        Some(text) => Some(text),
        None => ["url", "data", "file_data", "image_url"]
            .iter()
            .find_map(|key| inner.text(key)),
    };
    let format = inner.text("format").unwrap_or_default();
    let mime = match &*format {
        "" => inner.text("mime_type").unwrap_or_default().into_owned(),
        format => format!("audio/{format}"),
    };
    if part.get("type").is_some_and(|kind| kind.is("image")) && part.get("source").is_some() {
        return blocks::attachment(part, out);
    }
    media(&mime, data, part, out)
}

/// Content that is kept outside, or the part as it is when it only refers to some.
fn media<'a>(
    mime: &str,
    data: Option<Cow<'a, str>>,
    part: Node<'a>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let inside = data.and_then(|data| match crate::data_url(&data) {
        Some((mime, data)) => out.detach(mime, data),
        None if data.contains("://") => None,
        None => out.detach(mime, &data),
    });
    match inside {
        Some(attachment) => Entry {
            attachments: vec![attachment.clone()],
            ..Entry::note(NoteKind::Attachment, attachment.mime)
        },
        None => Entry::keep(NoteKind::Attachment, part),
    }
}

/// Token counts of this kind, in disjoint buckets.
pub(crate) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |path: &[&str]| node.path(path).and_then(|n| n.as_u64());
    let prompt = count(&["prompt_tokens"]);
    let cache_read = count(&["prompt_tokens_details", "cached_tokens"])
        .or(count(&["prompt_cache_hit_tokens"]))
        .or(count(&["cached_tokens"]));
    let cache_write = count(&["prompt_tokens_details", "cache_write_tokens"])
        .or(count(&["prompt_tokens_details", "cache_creation_tokens"]));
    let cached = cache_read
        .unwrap_or(0)
        .saturating_add(cache_write.unwrap_or(0));
    let completion = count(&["completion_tokens"]);
    let reasoning = count(&["completion_tokens_details", "reasoning_tokens"]);
    // One vendor counts its reasoning beside the completion; its total tells.
    let beside = match (prompt, completion, reasoning, count(&["total_tokens"])) {
        (Some(prompt), Some(completion), Some(reasoning), Some(total)) => {
            reasoning > 0
                && prompt
                    .checked_add(completion)
                    .and_then(|sum| sum.checked_add(reasoning))
                    == Some(total)
        }
        _ => false,
    };
    let usage = Usage {
        input: prompt.map(|prompt| prompt.saturating_sub(cached)),
        cache_read,
        cache_write,
        cache_write_1h: None,
        output: match (completion, reasoning) {
            (Some(completion), Some(reasoning)) if beside => {
                Some(completion.saturating_add(reasoning))
            }
            _ => completion,
        },
        reasoning,
    };
    (!usage.is_empty()).then_some(usage)
}
