//! Content blocks of the Anthropic Messages kind, which many agents write.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, NoteKind, Service, Status, Usage};

use crate::{Entry, Extra, Out, Text, Value, What, data_url};

/// Whose message the blocks are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The side that prompts.
    User,
    /// The model.
    Assistant,
}

/// What is known of a tool result beside its block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResultFacts {
    /// How it ended, where the log says so elsewhere.
    pub(crate) status: Option<Status>,
    /// How long it took.
    pub(crate) duration_ms: Option<u64>,
}

/// Token counts of the Anthropic kind: three disjoint buckets of input, reasoning inside the output.
pub(crate) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("input_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        cache_write_1h: node
            .path(&["cache_creation", "ephemeral_1h_input_tokens"])
            .and_then(|n| n.as_u64()),
        output: count("output_tokens"),
        reasoning: node
            .path(&["output_tokens_details", "thinking_tokens"])
            .and_then(|n| n.as_u64()),
    };
    (!usage.is_empty()).then_some(usage)
}

/// Calls to models within a call, which its own counts leave out: an advisor that was asked, a compaction, a
/// model that refused before another took over. Each has its own counts, and its own model where it is another.
///
/// The counts of the whole are those of the model that answered: of all `message` parts, or of the
/// `fallback_message` that took over and what followed from the same model.
pub(crate) fn inner_calls(usage: Node<'_>) -> impl Iterator<Item = (usize, Node<'_>)> {
    let parts = usage.get("iterations");
    let items = move || parts.into_iter().flat_map(Node::items);
    let is = |part: Node<'_>, kind: &str| part.get("type").is_some_and(|it| it.is(kind));
    let answered = items()
        .find(|part| is(*part, "fallback_message"))
        .map(|part| part.text("model"));
    let is_own = move |part: Node<'_>| match &answered {
        Some(model) => {
            is(part, "fallback_message") || is(part, "message") && part.text("model") == *model
        }
        None => is(part, "message"),
    };
    // Parts without a kind are of old versions, which had no other.
    let has_kind = |part: Node<'_>| part.get("type").is_some();
    let others = items().enumerate();
    others.filter(move |(_, part)| has_kind(*part) && !is_own(*part))
}

/// The note of a call within a call. It is a call of its own, by the place it has in the other.
pub(crate) fn inner_call<'a>(
    (at, part): (usize, Node<'a>),
    call: Option<&str>,
    model: Option<&str>,
) -> Entry<'a> {
    Entry {
        usage: usage(part),
        model: part
            .text("model")
            .or_else(|| model.map(|model| Cow::Owned(model.to_owned()))),
        model_call: call.map(|call| Cow::Owned(inner_name(call, at))),
        service: service(part),
        ..Entry::new(What::Note {
            kind: NoteKind::ModelCall,
            text: part.get("type").and_then(Text::of),
            raw: Some(part.into()),
        })
    }
}

/// What a call within a call is known by.
pub(crate) fn inner_name(call: &str, at: usize) -> String {
    format!("{call}#{at}")
}

/// How a call was served, from the same counts.
pub(crate) fn service(usage: Node<'_>) -> Service {
    if usage.get("speed").is_some_and(|speed| speed.is("fast")) {
        return Service::Fast;
    }
    match usage.text("service_tier").as_deref() {
        Some("batch") => Service::Batch,
        Some("priority") => Service::Priority,
        _ => Service::Standard,
    }
}

/// How a call was served, by a word of the other vendor's. What its own agent calls fast is what its
/// interface calls priority.
pub(crate) fn openai_service(tier: &str) -> Service {
    match tier {
        "batch" => Service::Batch,
        "flex" => Service::Flex,
        "priority" | "fast" => Service::Priority,
        _ => Service::Standard,
    }
}

/// An object without some of its fields: those that are kept elsewhere.
pub(crate) fn without<'a>(object: Node<'a>, left_out: &[&str]) -> Value<'a> {
    if object
        .fields()
        .all(|(key, _)| !left_out.iter().any(|out| key.is(out)))
    {
        return object.into();
    }
    let mut text = String::from("{");
    for (key, value) in object.fields() {
        if left_out.iter().any(|out| key.is(out)) {
            continue;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(key.raw().get());
        text.push(':');
        text.push_str(value.raw().get());
    }
    text.push('}');
    Json::parse(&text).map_or_else(|_| object.into(), Value::Owned)
}

/// A note that keeps a record, with the images in it kept outside.
pub(crate) fn kept<'a>(kind: NoteKind, record: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let raw = Some(out.value(record, &mut attachments));
    Entry {
        attachments,
        ..Entry::new(What::Note {
            kind,
            text: None,
            raw,
        })
    }
}

/// The usual texts of a result that says a person refused.
fn is_refusal(text: &Text<'_>) -> bool {
    const REFUSALS: [&str; 4] = [
        "The user doesn't want to proceed with this tool use",
        "The user doesn't want to take this action",
        "Permission to use ",
        "[Request interrupted by user for tool use]",
    ];
    REFUSALS.iter().any(|refusal| text.starts_with(refusal))
}

fn is_timeout(text: &Text<'_>) -> bool {
    text.starts_with("Command timed out") || text.starts_with("Error: Command timed out")
}

/// One block as an entry. What only this block knows is set; the caller sets what the message knows.
/// `None` for a kind of block that is not known.
pub(crate) fn entry<'a>(
    block: Node<'a>,
    speaker: Speaker,
    facts: ResultFacts,
    out: &mut Out<'_>,
) -> Option<Entry<'a>> {
    let kind = block.get("type")?.as_raw_str()?.plain()?;
    let field = |key: &str| block.get(key).and_then(Text::of).unwrap_or(Text::EMPTY);
    let mut entry = match kind {
        "text" | "input_text" | "output_text" => Entry::new(match speaker {
            Speaker::User => What::User(field("text")),
            Speaker::Assistant => What::Assistant(field("text")),
        }),
        "thinking" | "reasoning" => {
            let text = block
                .get("thinking")
                .or(block.get("text"))
                .and_then(Text::of)
                .unwrap_or(Text::EMPTY);
            let opaque = text.is_empty();
            Entry {
                opaque,
                ..Entry::new(What::Reasoning(text))
            }
        }
        "redacted_thinking" => Entry {
            opaque: true,
            ..Entry::new(What::Reasoning(Text::EMPTY))
        },
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let mut attachments = Vec::new();
            let input = block
                .get("input")
                .map(|input| out.value(input, &mut attachments));
            Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: block.text("name").unwrap_or_default(),
                    id: block.text("id").unwrap_or_default(),
                    input,
                })
            }
        }
        "image" | "document" => attachment(block, out),
        _ if kind == "tool_result" || kind.ends_with("_tool_result") => {
            result(block, kind, facts, out)
        }
        _ => return None,
    };
    let mapped = mapped(kind);
    // What is kept as it stands has all its fields.
    if !mapped.is_empty() && !matches!(entry.what, What::Note { raw: Some(_), .. }) {
        entry.extra.rest("block", block, mapped);
    }
    Some(entry)
}

/// The fields of a block that its entry has a place for.
fn mapped(kind: &str) -> &'static [&'static str] {
    match kind {
        "text" | "input_text" | "output_text" => &["type", "text"],
        "thinking" | "reasoning" => &["type", "thinking", "text"],
        "redacted_thinking" => &["type"],
        "tool_use" | "server_tool_use" | "mcp_tool_use" => &["type", "id", "name", "input"],
        "image" | "document" => &["type", "source", "data", "url", "image_url"],
        _ => &[
            "type",
            "tool_use_id",
            "toolUseID",
            "id",
            "is_error",
            "content",
        ],
    }
}

/// A block that holds an image or a document.
pub(crate) fn attachment<'a>(block: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let source = block.get("source").unwrap_or(block);
    let mime = ["media_type", "mimeType", "mediaType", "mime"]
        .iter()
        .find_map(|key| source.text(key))
        .unwrap_or_default();
    let data = source
        .get("data")
        .or(source.get("url"))
        .or(source.get("image_url"))
        .and_then(|data| data.as_str());
    let inside = data.as_deref().and_then(|data| match data_url(data) {
        Some((mime, data)) => out.detach(mime, data),
        None if source.get("data").is_some() => out.detach(&mime, data),
        None => None,
    });
    match inside {
        Some(attachment) => {
            let mut entry = Entry {
                attachments: vec![attachment],
                ..Entry::note(NoteKind::Attachment, mime)
            };
            let mapped = &["type", "data", "url", "image_url", "media_type", "mimeType"];
            if let Some(source) = block.get("source") {
                entry.extra.rest("source", source, mapped);
            }
            entry
        }
        None => Entry::keep(NoteKind::Attachment, block),
    }
}

fn result<'a>(block: Node<'a>, kind: &str, facts: ResultFacts, out: &mut Out<'_>) -> Entry<'a> {
    let id = block
        .text("tool_use_id")
        .or(block.text("toolUseID"))
        .or(block.text("id"))
        .unwrap_or_default();
    let failed = block.get("is_error").and_then(|n| n.as_bool()) == Some(true);
    let mut attachments = Vec::new();
    let mut extra = Extra::default();
    let content = block.get("content").filter(|content| !content.is_null());
    // A list of one text is that text.
    let only_text = content.and_then(|content| match content.kind() {
        Kind::String => Text::of(content),
        Kind::List => {
            let mut items = content.items();
            match (items.next(), items.next()) {
                (Some(one), None) if one.get("type").is_some_and(|t| t.is("text")) => {
                    extra.rest("content", one, &["type", "text"]);
                    one.get("text").and_then(Text::of)
                }
                _ => None,
            }
        }
        _ => None,
    });
    let server_error = content.and_then(|c| c.text("error_code"));
    let mut status = facts.status;
    if status.is_none() && (failed || server_error.is_some()) {
        status = Some(match &only_text {
            Some(text) if is_refusal(text) => Status::Denied,
            Some(text) if is_timeout(text) => Status::Timeout,
            _ => Status::Error,
        });
    }
    let bad = failed || server_error.is_some();
    let (output, error) = match (only_text, content) {
        (Some(text), _) if bad => (None, Some(text)),
        (Some(text), _) => (Some(Value::Text(text)), None),
        (None, Some(content)) => {
            let why = bad.then(|| Text::from(server_error.unwrap_or(Cow::Borrowed("failed"))));
            (Some(out.value(content, &mut attachments)), why)
        }
        (None, None) => (None, bad.then(|| Text::from("failed"))),
    };
    let name = kind.strip_suffix("_tool_result").unwrap_or_default();
    Entry {
        status,
        duration_ms: facts.duration_ms,
        attachments,
        extra,
        ..Entry::new(What::Result {
            name: Cow::Owned(name.to_owned()),
            id,
            output,
            error,
        })
    }
}
