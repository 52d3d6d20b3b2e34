//! Chats of Visual Studio Code.
//!
//! A chat is a document with the requests that were made and, in each, the parts of the response. Newer
//! versions keep a journal instead: the document at first, and then what is set, added or taken away
//! where. Text comes in pieces between which files are named; a tool call is written again, under its id,
//! as it proceeds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use crate::blocks;
use crate::gemini::parts;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, hash, time};

/// Reads a chat.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Chat {
    session: Session,
    requests: Vec<Request>,
    /// A piece of a text that goes on.
    text: Option<Pending>,
}

/// What is known of a request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Request {
    id: Option<String>,
    model: Option<String>,
    /// In milliseconds since 1970.
    at: Option<i64>,
    /// Calls, and whether their results were given on.
    calls: BTreeMap<u64, bool>,
}

/// Where among the requests a change is.
struct ChangePath<'a> {
    index: Option<usize>,
    field: Option<&'a str>,
    depth: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pending {
    request: usize,
    text: String,
}

impl Chat {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let stem = origin.stem().filter(|stem| stem.len() >= 32);
        Self {
            session: Session {
                id: stem.map(str::to_owned),
                ..Session::default()
            },
            ..Self::default()
        }
    }

    fn facts(&mut self, document: Node<'_>) {
        update(&mut self.session.id, document.text("sessionId"));
        update(&mut self.session.title, document.text("customTitle"));
        if self.session.started_at.is_none() {
            let created = time::field(document, "creationDate");
            self.session.started_at = created.map(Timestamp::as_millisecond);
        }
    }

    fn put(&self, request: usize, entry: Entry<'_>, out: &mut Out<'_>) {
        let known = self.requests.get(request);
        let at = known.and_then(|known| Timestamp::from_millisecond(known.at?).ok());
        let of_model = !matches!(entry.what, What::User(_) | What::System(_));
        out.push(Entry {
            at: entry.at.or(at),
            native_id: known.and_then(|known| known.id.as_deref().map(Cow::Borrowed)),
            model: known
                .filter(|_| of_model)
                .and_then(|known| known.model.as_deref().map(Cow::Borrowed)),
            ..entry
        });
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        if let Some(Pending { request, text }) = self.text.take()
            && !text.trim().is_empty()
        {
            self.put(request, Entry::new(What::Assistant(text.into())), out);
        }
    }

    /// A request, with what there is of its response.
    fn request(&mut self, node: Node<'_>, out: &mut Out<'_>) {
        self.flush(out);
        let index = self.requests.len();
        self.requests.push(Request {
            id: node.text("requestId").map(Cow::into_owned),
            model: node.text("modelId").map(Cow::into_owned),
            at: time::field(node, "timestamp").map(Timestamp::as_millisecond),
            calls: BTreeMap::new(),
        });
        if let Some(id) = node.text("requestId") {
            out.ledger().unit(&id);
        }
        let message = node.get("message");
        let text = message.and_then(|m| m.get("text").and_then(Text::of).or(Text::of(m)));
        if let Some(text) = text {
            self.put(index, Entry::new(What::User(text)), out);
        }
        let variables = node.path(&["variableData", "variables"]);
        for variable in variables.into_iter().flat_map(Node::items) {
            let entry = blocks::kept(NoteKind::Attachment, variable, out);
            self.put(index, entry, out);
        }
        for part in node.get("response").into_iter().flat_map(Node::items) {
            self.part(index, part, out);
        }
        if let Some(result) = node.get("result") {
            self.result(index, result, out);
        }
    }

    /// A part of a response.
    fn part(&mut self, request: usize, part: Node<'_>, out: &mut Out<'_>) {
        let kind = part.text("kind").unwrap_or_default();
        match &*kind {
            "" | "markdownContent" => {
                let value = part.get("value").or(part.get("content")).unwrap_or(part);
                if let Some(text) = markdown(value) {
                    self.say(request, &text, out);
                }
            }
            "inlineReference" => {
                let name = reference(part);
                self.say(request, &format!("`{name}`"), out);
            }
            "thinking" => {
                self.flush(out);
                let text = part.get("value").and_then(markdown).unwrap_or_default();
                if !text.trim().is_empty() {
                    self.put(request, Entry::new(What::Reasoning(text.into())), out);
                }
            }
            "toolInvocationSerialized" | "toolInvocation" => self.tool(request, part, out),
            "textEditGroup" | "notebookEditGroup" | "textEdit" | "codeblockUri" | "undoStop"
            | "workspaceEdit" | "multiDiffData" => {
                self.flush(out);
                let entry = blocks::kept(NoteKind::FileSnapshot, part, out);
                self.put(request, entry, out);
            }
            "confirmation" | "elicitation" | "elicitationSerialized" | "questionCarousel" => {
                self.flush(out);
                let entry = blocks::kept(NoteKind::Permission, part, out);
                self.put(request, entry, out);
            }
            "warning"
            | "progressMessage"
            | "progressTask"
            | "progressTaskSerialized"
            | "mcpServersStarting"
            | "prepareToolInvocation"
            | "command"
            | "reference"
            | "codeCitation"
            | "treeData"
            | "extensions"
            | "pullRequest"
            | "clearToPreviousToolInvocation"
            | "hook"
            | "systemNotification"
            | "disabledClaudeHooks" => {
                let entry = blocks::kept(NoteKind::Progress, part, out);
                self.put(request, entry, out);
            }
            other => {
                out.unknown_type("response", other);
                let entry = blocks::kept(NoteKind::UnknownRecord, part, out);
                self.put(request, entry, out);
            }
        }
    }

    /// Adds to the text that goes on.
    fn say(&mut self, request: usize, text: &str, out: &mut Out<'_>) {
        if self
            .text
            .as_ref()
            .is_some_and(|pending| pending.request != request)
        {
            self.flush(out);
        }
        let pending = self.text.get_or_insert_with(|| Pending {
            request,
            text: String::new(),
        });
        pending.text.push_str(text);
    }

    fn tool(&mut self, request: usize, part: Node<'_>, out: &mut Out<'_>) {
        self.flush(out);
        let id = part.text("toolCallId").unwrap_or_default();
        let specific = part.get("toolSpecificData");
        let details = part
            .get("resultDetails")
            .filter(|details| !details.is_null());
        let key = hash(id.as_bytes());
        let known = self
            .requests
            .get(request)
            .and_then(|r| r.calls.get(&key).copied());
        if known.is_none() || id.is_empty() {
            let mut attachments = Vec::new();
            // Arguments are not kept as such: there is what was shown of them.
            let given = details.and_then(|details| details.get("input"));
            let input = match (given, specific) {
                (Some(given), _) => Some(parts::value(given, &mut attachments, out)),
                (None, Some(specific)) => Some(blocks::without(
                    specific,
                    &["terminalCommandOutput", "terminalCommandState"],
                )),
                (None, None) => part
                    .get("invocationMessage")
                    .and_then(markdown)
                    .map(|text| Value::Text(text.into())),
            };
            let entry = Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: part.text("toolId").unwrap_or_default(),
                    id: id.clone(),
                    input,
                })
            };
            self.put(request, entry, out);
        }
        let complete = part.get("isComplete").and_then(|n| n.as_bool()) == Some(true);
        if complete && known != Some(true) {
            let entry = tool_result(id, part, specific, details, out);
            self.put(request, entry, out);
        }
        if let Some(request) = self.requests.get_mut(request) {
            request.calls.insert(key, complete || known == Some(true));
        }
    }

    /// The end of a request: how long it took, what it used, whether it failed.
    fn result(&mut self, request: usize, result: Node<'_>, out: &mut Out<'_>) {
        if result.kind() != Kind::Object {
            return;
        }
        self.flush(out);
        let error = result.path(&["errorDetails", "message"]).and_then(Text::of);
        let count = |keys: &[&str]| result.path(keys).and_then(|n| n.as_u64());
        let usage = Usage {
            input: count(&["usage", "promptTokens"]).or(count(&["metadata", "promptTokens"])),
            output: count(&["usage", "completionTokens"]).or(count(&["metadata", "outputTokens"])),
            ..Usage::default()
        };
        let duration = count(&["timings", "totalElapsed"]);
        let kind = if error.is_some() {
            NoteKind::Error
        } else {
            NoteKind::Turn
        };
        let kept = blocks::kept(kind, result, out);
        let What::Note { raw, .. } = kept.what else {
            return;
        };
        let entry = Entry {
            attachments: kept.attachments,
            duration_ms: duration,
            usage: (!usage.is_empty()).then_some(usage),
            ..Entry::new(What::Note {
                kind,
                text: error,
                raw,
            })
        };
        self.put(request, entry, out);
    }

    /// A change to the document: `k` is where, `v` is what.
    fn change(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("change", record, &["kind", "k", "v", "i"]);
        let kind = record.get("kind").and_then(|kind| kind.as_u64());
        let value = record.get("v");
        let path: Vec<Node<'_>> = record.get("k").into_iter().flat_map(Node::items).collect();
        let step = |at: usize| path.get(at).and_then(Node::as_str);
        let index = path
            .get(1)
            .and_then(Node::as_u64)
            .and_then(|index| usize::try_from(index).ok());
        match (kind, value) {
            (Some(0), Some(whole)) => {
                self.facts(whole);
                let requests = whole.get("requests");
                let mut any = false;
                for request in requests.into_iter().flat_map(Node::items) {
                    self.request(request, out);
                    any = true;
                }
                if !any {
                    out.push(Entry::keep(NoteKind::Session, record));
                }
            }
            (Some(1), Some(title)) if step(0).as_deref() == Some("customTitle") => {
                update(&mut self.session.title, title.as_str());
                match Text::of(title) {
                    Some(text) => out.push(Entry::note(NoteKind::Title, text)),
                    None => out.skip(Dropped::Empty),
                }
            }
            (Some(1 | 2), Some(value)) if step(0).as_deref() == Some("requests") => {
                let field = step(2);
                let place = ChangePath {
                    index,
                    field: field.as_deref(),
                    depth: path.len(),
                };
                self.request_change(kind == Some(2), &place, value, out);
            }
            // Where the cursor is, which mode is chosen and the like.
            (Some(1..=3), _) => out.skip(Dropped::KeepAlive),
            _ => {
                let kind = kind.map(|n| n.to_string()).unwrap_or_default();
                out.unknown_type("change", &kind);
            }
        }
    }

    /// A change to the requests.
    fn request_change(
        &mut self,
        adds: bool,
        to: &ChangePath<'_>,
        value: Node<'_>,
        out: &mut Out<'_>,
    ) {
        let held = self.text.is_some();
        match (to.field, to.index) {
            (None, None) => {
                // Those that are there already come again when the list is set.
                let from = if adds { 0 } else { self.requests.len() };
                for request in value.items().skip(from) {
                    self.request(request, out);
                }
            }
            (Some("response"), Some(index)) if to.depth == 3 => {
                for part in value.items() {
                    self.part(index, part, out);
                }
            }
            (Some("result"), Some(index)) if to.depth == 3 => self.result(index, value, out),
            (Some("modelId"), Some(index)) => {
                if let Some(request) = self.requests.get_mut(index) {
                    update(&mut request.model, value.as_str());
                }
            }
            (_, Some(_)) => {}
            _ => return,
        }
        // A text that goes on is given on when it is whole.
        out.skip(if self.text.is_some() || held {
            Dropped::StreamDelta
        } else {
            Dropped::KeepAlive
        });
    }
}

/// A text, or a text with the marks of the editor.
fn markdown(node: Node<'_>) -> Option<Cow<'_, str>> {
    node.as_str().or_else(|| node.text("value"))
}

/// What a link to a file or a symbol is called.
fn reference(part: Node<'_>) -> Cow<'_, str> {
    if let Some(name) = part.text("name").filter(|name| !name.is_empty()) {
        return name;
    }
    let place = part.get("inlineReference").unwrap_or(part);
    let place = place
        .get("uri")
        .or(place.path(&["location", "uri"]))
        .unwrap_or(place);
    let path = place
        .text("fsPath")
        .or(place.text("path"))
        .or(place.text("name"));
    let path = path.unwrap_or_default();
    match path.rfind(['/', '\\']) {
        Some(at) => Cow::Owned(path.get(at + 1..).unwrap_or_default().to_owned()),
        None => path,
    }
}

fn tool_result<'a>(
    id: Cow<'a, str>,
    part: Node<'a>,
    specific: Option<Node<'a>>,
    details: Option<Node<'a>>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let mut attachments = Vec::new();
    let terminal = specific.and_then(|specific| specific.get("terminalCommandOutput"));
    let printed = terminal.and_then(|terminal| terminal.get("text").and_then(Text::of));
    let output = match (printed, details) {
        (Some(text), _) => Some(Value::Text(text)),
        (None, Some(details)) => {
            let output = details.get("output").unwrap_or(details);
            Some(parts::value(output, &mut attachments, out))
        }
        (None, None) => part
            .get("pastTenseMessage")
            .and_then(markdown)
            .map(|text| Value::Text(text.into())),
    };
    let exit = specific.and_then(|specific| {
        specific
            .path(&["terminalCommandState", "exitCode"])?
            .as_i64()
    });
    let is_error = details
        .and_then(|details| details.get("isError")?.as_bool())
        .unwrap_or(false);
    // `isConfirmed` was a truth value and became `{"type":…}`, where 0 is that it was not allowed.
    let confirmed = part.get("isConfirmed");
    let denied = confirmed.is_some_and(|confirmed| {
        confirmed.as_bool() == Some(false)
            || confirmed.get("type").and_then(|kind| kind.as_u64()) == Some(0)
    });
    let status = if denied {
        Status::Denied
    } else if is_error || exit.is_some_and(|code| code != 0) {
        Status::Error
    } else {
        Status::Ok
    };
    let (output, error) = match (status, output) {
        (Status::Ok, output) => (output, None),
        (_, Some(Value::Text(text))) if !text.is_empty() => (None, Some(text)),
        (Status::Denied, output) => (output, Some(Text::from("not allowed"))),
        (_, output) => (output, Some(Text::from("failed"))),
    };
    let duration = specific.and_then(|specific| {
        specific
            .path(&["terminalCommandState", "duration"])?
            .as_u64()
    });
    Entry {
        status: Some(status),
        duration_ms: duration,
        attachments,
        ..Entry::new(What::Result {
            name: part.text("toolId").unwrap_or_default(),
            id,
            output,
            error,
        })
    }
}

impl Reader for Chat {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if out.in_record() {
            return self.change(record, out);
        }
        self.facts(record);
        learn(&mut self.session.title, || record.text("computedTitle"));
        for request in record.get("requests").into_iter().flat_map(Node::items) {
            out.within(request, |out, request| {
                self.request(request, out);
                self.flush(out);
                out.skip(Dropped::Empty);
            });
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }

    crate::state::keeps_session!();
}
