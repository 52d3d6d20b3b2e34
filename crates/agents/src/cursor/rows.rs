//! The rows of a conversation, as [`super::gather`] writes them.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use super::normalize::{answered, asked, unpacked};
use super::wire::BUBBLE_FIELDS;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What};
use crate::{blocks, time};

/// Reads rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Rows {
    session: Session,
}

/// What a bubble says of all that is in it.
struct Common<'a> {
    at: Option<Timestamp>,
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
}

impl<'a> Common<'a> {
    fn put(&self, mut entry: Entry<'a>, out: &mut Out<'_>) {
        // A bubble has the time at which it was made. When a call in it ended is not said.
        if !matches!(entry.what, What::Result { .. }) {
            entry.at = self.at;
        }
        entry.native_id.clone_from(&self.id);
        if matches!(
            entry.what,
            What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
        ) {
            entry.model.clone_from(&self.model);
        }
        out.push(entry);
    }
}

impl Rows {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let session = Session {
            id: origin.part.map(str::to_owned),
            ..Session::default()
        };
        Self { session }
    }

    /// A key and its value: a bubble, or what is known of a conversation.
    fn pair(&mut self, key: &str, value: Node<'_>, out: &mut Out<'_>) {
        if value.is_null() {
            return out.skip(Dropped::Empty);
        }
        if let Some(ids) = key.strip_prefix("bubbleId:") {
            let (composer, id) = ids.split_once(':').unwrap_or((ids, ""));
            learn(&mut self.session.id, || Some(Cow::Borrowed(composer)));
            if id.is_empty() || out.unit(id) {
                bubble(value, Some(id), out);
            }
        } else if let Some(composer) = key.strip_prefix("composerData:") {
            learn(&mut self.session.id, || Some(Cow::Borrowed(composer)));
            self.composer(value, out);
        } else {
            out.unknown_type("key", key.split(':').next().unwrap_or_default());
        }
    }

    /// What is known of a conversation. Most of it is about the editor and changes every week, so that
    /// only the names that are wanted are looked at. Old ones have their bubbles inside.
    fn composer(&mut self, value: Node<'_>, out: &mut Out<'_>) {
        let session = &mut self.session;
        update(&mut session.title, value.text("name"));
        learn(&mut session.branch, || value.text("createdOnBranch"));
        learn(&mut session.cwd, || {
            let uri = value.path(&["workspaceIdentifier", "uri"])?;
            uri.text("fsPath").or(uri.text("path"))
        });
        learn(&mut session.parent, || {
            let named = value.path(&["subagentInfo", "parentComposerId"]);
            named.or(value.get("parentComposerId"))?.as_str()
        });
        learn(&mut session.parent_call, || {
            value.path(&["subagentInfo", "toolCallId"])?.as_str()
        });
        session.started_at = time::field(value, "createdAt")
            .map(Timestamp::as_millisecond)
            .or(session.started_at);
        out.push(Entry::new(What::Note {
            kind: NoteKind::Session,
            text: None,
            raw: Some(blocks::without(value, &["conversation"])),
        }));
        for item in value.get("conversation").into_iter().flat_map(Node::items) {
            let id = item.text("bubbleId");
            if id.as_deref().is_none_or(|id| out.ledger().unit(id)) {
                bubble(item, id.as_deref(), out);
            }
        }
    }

    /// A conversation of an old version.
    fn tab(&mut self, tab: Node<'_>, out: &mut Out<'_>) {
        learn(&mut self.session.id, || tab.text("tabId"));
        update(&mut self.session.title, tab.text("chatTitle"));
        out.push(Entry::new(What::Note {
            kind: NoteKind::Session,
            text: None,
            raw: Some(blocks::without(tab, &["bubbles"])),
        }));
        for item in tab.get("bubbles").into_iter().flat_map(Node::items) {
            let id = item.text("id");
            bubble(item, id.as_deref(), out);
        }
    }

    /// What the agent on the command line knows of a conversation.
    fn meta(&mut self, value: Node<'_>, out: &mut Out<'_>) {
        let session = &mut self.session;
        learn(&mut session.id, || value.text("agentId"));
        update(&mut session.title, value.text("name"));
        session.started_at = time::field(value, "createdAt")
            .map(Timestamp::as_millisecond)
            .or(session.started_at);
        out.push(Entry::keep(NoteKind::Session, value));
    }
}

fn bubble(bubble: Node<'_>, id: Option<&str>, out: &mut Out<'_>) {
    out.check("bubble", bubble, BUBBLE_FIELDS);
    let common = Common {
        at: time::field(bubble, "createdAt"),
        id: id
            .filter(|id| !id.is_empty())
            .map(|id| Cow::Owned(id.to_owned())),
        model: bubble
            .path(&["modelInfo", "modelName"])
            .or(bubble.get("modelType"))
            .and_then(|model| model.as_str()),
    };
    let before = out.next_seq();
    let by_user = bubble
        .get("type")
        .is_some_and(|kind| kind.as_u64() == Some(1) || kind.is("user"));
    let text = ["text", "rawText"]
        .iter()
        .find_map(|key| bubble.text(key).filter(|text| !text.is_empty()));
    reasoning(bubble, &common, out);
    if let Some(text) = text {
        if by_user {
            asked(text, |entry| common.put(entry, out));
        } else {
            answered(text, |entry| common.put(entry, out));
        }
    }
    if let Some(tool) = bubble
        .get("toolFormerData")
        .filter(|t| t.kind() == Kind::Object)
    {
        tool_call(tool, &common, out);
    }
    if let Some(images) = bubble
        .get("images")
        .filter(|list| list.items().next().is_some())
    {
        let mut attachments = Vec::new();
        let raw = out.value(images, &mut attachments);
        let entry = Entry {
            attachments,
            ..Entry::new(What::Note {
                kind: NoteKind::Attachment,
                text: None,
                raw: Some(raw),
            })
        };
        common.put(entry, out);
    }
    if bubble.get("capabilityType").and_then(|n| n.as_u64()) == Some(22) {
        common.put(Entry::keep(NoteKind::Compaction, bubble), out);
    }
    if let Some(error) = bubble
        .get("errorDetails")
        .filter(|e| e.kind() == Kind::Object)
    {
        let said = error
            .get("message")
            .or(error.get("error"))
            .and_then(Text::of);
        let entry = Entry::new(What::Note {
            kind: NoteKind::Error,
            text: said,
            raw: Some(error.into()),
        });
        common.put(entry, out);
    }
    tokens(bubble, &common, out);
    if out.next_seq() == before {
        out.skip(Dropped::Empty);
    }
}

/// The tokens of a bubble, which are often left at zero.
fn tokens(bubble: Node<'_>, common: &Common<'_>, out: &mut Out<'_>) {
    let Some(counts) = bubble.get("tokenCount") else {
        return;
    };
    let count = |key: &str| counts.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        ..Usage::default()
    };
    if usage.total() > 0 {
        let entry = Entry {
            usage: Some(usage),
            model: common.model.clone(),
            model_call: common.id.clone(),
            ..Entry::keep(NoteKind::Usage, counts)
        };
        common.put(entry, out);
    }
}

/// What the model reasoned: one text, or blocks.
fn reasoning<'a>(bubble: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let is_thought = bubble.get("capabilityType").and_then(|n| n.as_u64()) == Some(30);
    let mut any = false;
    let thinking = bubble.get("thinking").into_iter();
    let blocks = bubble
        .get("allThinkingBlocks")
        .into_iter()
        .flat_map(Node::items);
    for thought in thinking.chain(blocks) {
        let text = thought
            .get("text")
            .or(thought.get("thinking"))
            .unwrap_or(thought);
        let Some(text) = Text::of(text).filter(|text| !text.is_empty()) else {
            continue;
        };
        any = true;
        let entry = Entry {
            duration_ms: bubble.get("thinkingDurationMs").and_then(|n| n.as_u64()),
            ..Entry::new(What::Reasoning(text))
        };
        common.put(entry, out);
        // The blocks are the text in pieces.
        if bubble
            .path(&["thinking", "text"])
            .is_some_and(|text| !text.is(""))
        {
            break;
        }
    }
    if is_thought && !any {
        let entry = Entry {
            opaque: true,
            ..Entry::new(What::Reasoning(Text::EMPTY))
        };
        common.put(entry, out);
    }
}

/// A tool call with its result, each of them JSON in a string.
fn tool_call<'a>(tool: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let name = tool.text("name").unwrap_or_default();
    let status = tool.text("status").unwrap_or_default();
    if name.is_empty() && tool.get("toolCallId").is_none() {
        return;
    }
    let id = tool
        .text("toolCallId")
        .or_else(|| common.id.clone())
        .unwrap_or_default();
    let string = |key: &str| tool.text(key).filter(|text| !text.is_empty());
    let input = string("params").or(string("rawArgs")).map(unpacked);
    let input = input.or_else(|| {
        let params = tool
            .get("params")
            .filter(|params| params.kind() == Kind::Object);
        params.map(Into::into)
    });
    let call = Entry::new(What::Call {
        name: name.clone(),
        id: id.clone(),
        input,
    });
    common.put(call, out);
    let rejected = tool
        .get("userDecision")
        .is_some_and(|decision| decision.is("rejected"));
    let status = match &*status {
        _ if rejected => Status::Denied,
        "completed" => Status::Ok,
        "error" => Status::Error,
        "cancelled" => Status::Denied,
        // It has not ended.
        _ => return,
    };
    let mut attachments = Vec::new();
    let output = match string("result") {
        Some(text) => Some(held(&text, &mut attachments, out)),
        None => tool
            .get("result")
            .filter(|result| matches!(result.kind(), Kind::Object | Kind::List))
            .map(|result| out.value(result, &mut attachments)),
    };
    let told = tool.get("error").and_then(|error| {
        let inner = [
            "clientVisibleErrorMessage",
            "message",
            "modelVisibleErrorMessage",
        ]
        .iter()
        .find_map(|key| error.get(key));
        Text::of(inner.unwrap_or(error))
    });
    let error = match status {
        Status::Ok => None,
        Status::Denied => Some(told.unwrap_or(Text::from("rejected"))),
        _ => Some(told.unwrap_or(Text::from("failed"))),
    };
    let result = Entry {
        status: Some(status),
        attachments,
        ..Entry::new(What::Result {
            name,
            id,
            output,
            error,
        })
    };
    common.put(result, out);
}

/// What stands as JSON in a string, with the images in it taken out.
fn held<'a>(
    text: &str,
    attachments: &mut Vec<quipu_model::Attachment>,
    out: &mut Out<'_>,
) -> Value<'a> {
    let mut tape = quipu_model::json::Tape::new();
    if let Ok(node) = tape.read(text, quipu_model::Json::MAX_DEPTH)
        && matches!(node.kind(), Kind::Object | Kind::List)
    {
        return Value::Owned(out.value(node, attachments).to_json());
    }
    Value::Text(Text::from(text.to_owned()))
}

/// A message of the agent on the command line.
fn blob(id: Option<Cow<'_, str>>, data: Node<'_>, out: &mut Out<'_>) {
    if let Some(base64) = data.text("$base64") {
        let attachment = out.detach("application/octet-stream", &base64);
        return out.push(Entry {
            native_id: id,
            attachments: attachment.into_iter().collect(),
            ..Entry::note(NoteKind::UnknownRecord, "not JSON")
        });
    }
    out.check(
        "message",
        data,
        &["id", "role", "content", "providerOptions"],
    );
    let common = Common {
        at: None,
        id,
        model: None,
    };
    let Some(content) = data.get("content") else {
        return;
    };
    let role = data.text("role").unwrap_or_default();
    if let Some(text) = content.as_str() {
        return speak(&role, text, &common, out);
    }
    for item in content.items() {
        let kind = item.text("type").unwrap_or_default();
        match &*kind {
            "text" => speak(&role, item.text("text").unwrap_or_default(), &common, out),
            "reasoning" => {
                let text = item.get("text").and_then(Text::of).unwrap_or(Text::EMPTY);
                let entry = Entry {
                    opaque: text.is_empty(),
                    ..Entry::new(What::Reasoning(text))
                };
                common.put(entry, out);
            }
            "redacted-reasoning" => {
                let entry = Entry {
                    opaque: true,
                    ..Entry::new(What::Reasoning(Text::EMPTY))
                };
                common.put(entry, out);
            }
            "tool-call" => {
                let mut attachments = Vec::new();
                let input = item.get("args").or(item.get("input"));
                let input = input.map(|input| out.value(input, &mut attachments));
                let entry = Entry {
                    attachments,
                    ..Entry::new(What::Call {
                        name: item.text("toolName").unwrap_or_default(),
                        id: item.text("toolCallId").unwrap_or_default(),
                        input,
                    })
                };
                common.put(entry, out);
            }
            "tool-result" => common.put(tool_result(item, out), out),
            "image" | "file" => common.put(blocks::attachment(item, out), out),
            other => {
                out.unknown_type("message.content", other);
                common.put(Entry::keep(NoteKind::UnknownRecord, item), out);
            }
        }
    }
    if content.kind() == Kind::List && content.items().next().is_none() {
        out.skip(Dropped::Empty);
    }
}

fn tool_result<'a>(item: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let failed = item.get("isError").and_then(|n| n.as_bool()) == Some(true);
    let result = item
        .get("result")
        .or(item.get("output"))
        .filter(|r| !r.is_null());
    let text = result.and_then(Text::of);
    let (output, error) = match (text, result) {
        (Some(text), _) if failed => (None, Some(text)),
        (_, Some(result)) => {
            let output = out.value(result, &mut attachments);
            (Some(output), failed.then(|| Text::from("failed")))
        }
        (_, None) => (None, failed.then(|| Text::from("failed"))),
    };
    Entry {
        attachments,
        ..Entry::new(What::Result {
            name: item.text("toolName").unwrap_or_default(),
            id: item.text("toolCallId").unwrap_or_default(),
            output,
            error,
        })
    }
}

fn speak<'a>(role: &str, text: Cow<'a, str>, common: &Common<'a>, out: &mut Out<'_>) {
    match role {
        "user" => asked(text, |entry| common.put(entry, out)),
        "assistant" => answered(text, |entry| common.put(entry, out)),
        _ => {
            let entry = Entry {
                synthetic: true,
                ..Entry::new(What::System(text.into()))
            };
            common.put(entry, out);
        }
    }
}

impl Reader for Rows {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let table = record.text("table").unwrap_or_default();
        let Some(row) = record.get("row") else {
            return out.unknown_type("row", &table);
        };
        match (&*table, row.get("value").or(row.get("data"))) {
            ("cursorDiskKV", Some(value)) => {
                let key = row.text("key").unwrap_or_default();
                self.pair(&key, value, out);
            }
            ("ItemTable", Some(value)) => self.tab(value, out),
            ("blobs", Some(data)) => {
                let id = row.text("id");
                if id.as_deref().is_none_or(|id| out.unit(id)) {
                    blob(id, data, out);
                }
            }
            ("meta", Some(value)) => self.meta(value, out),
            _ => out.unknown_type("table", &table),
        }
    }

    crate::state::keeps_session!();
}
