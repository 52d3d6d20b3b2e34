//! `OpenHands`: a directory of events, one a file, here one a line.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::common::Common;
use crate::openai_chat::message;
use crate::session::learn;
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What, capture, time};

/// Reads the events of a conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OpenHands {
    session: Session,
    model: Option<String>,
}

impl OpenHands {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: origin.part.map(str::to_owned),
                ..Session::default()
            },
            model: None,
        }
    }

    pub(super) fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if let Some(state) = record.get("base_state") {
            return self.base(record, state, out);
        }
        // An event that is not whole; see `gather`.
        if let Some(file) = record.get("file") {
            return out.push(Entry::keep(NoteKind::MalformedLine, file));
        }
        out.check("event", record, wire::OPENHANDS);
        let id = capture::id(record, "id");
        if let Some(id) = &id
            && !out.unit(id)
        {
            return;
        }
        let call = capture::id(record, "llm_response_id");
        let common: Common<'_> = Common {
            id,
            at: time::field(record, "timestamp"),
            model: self
                .model
                .as_deref()
                .filter(|_| call.is_some())
                .map(Cow::Borrowed),
            call,
            ..Common::default()
        };
        let source = record.text("source").unwrap_or_default();
        let kind = record.text("kind").unwrap_or_default();
        let put = &mut |entry: Entry<'_>, out: &mut Out<'_>| common.put(entry, out);
        match &*kind {
            "MessageEvent" => {
                let content = record.path(&["llm_message", "content"]);
                // What the environment says is on the user's side and is no person's.
                let who = match &*source {
                    "agent" => What::Assistant,
                    "user" => What::User,
                    _ => What::System,
                };
                let synthetic = !matches!(&*source, "agent" | "user");
                if let Some(message) = record.get("llm_message") {
                    thoughts(message, put, out);
                }
                message::parts(content, who, out, &mut |mut entry, out| {
                    entry.synthetic = synthetic;
                    put(entry, out);
                });
                out.skip(Dropped::Empty);
            }
            "ActionEvent" => {
                thoughts(record, put, out);
                message::parts(record.get("thought"), What::Assistant, out, put);
                put(action(record, out), out);
            }
            "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation" => {
                put(observation(&kind, record, out), out);
            }
            "SystemPromptEvent" => {
                let text = record.get("system_prompt").and_then(|prompt| {
                    Text::of(prompt).or_else(|| prompt.get("text").and_then(Text::of))
                });
                match text {
                    Some(text) => put(Entry::new(What::System(text)), out),
                    None => put(Entry::keep(NoteKind::Context, record), out),
                }
            }
            "Condensation" | "CondensationRequest" | "CondensationSummaryEvent" => {
                let entry = Entry::new(What::Note {
                    kind: NoteKind::Compaction,
                    text: record.get("summary").and_then(Text::of),
                    raw: Some(record.into()),
                });
                put(entry, out);
            }
            "ConversationErrorEvent" | "ServerErrorEvent" => {
                put(Entry::keep(NoteKind::Error, record), out);
            }
            "ConversationStateUpdateEvent" | "PauseEvent" | "InterruptEvent" => {
                put(Entry::keep(NoteKind::Session, record), out);
            }
            "HookExecutionEvent" => put(Entry::keep(NoteKind::Hook, record), out),
            "LLMCompletionLogEvent" | "TokenEvent" => {
                put(Entry::keep(NoteKind::ModelCall, record), out);
            }
            _ => {
                out.unknown_type("event", &kind);
                put(Entry::keep(NoteKind::UnknownRecord, record), out);
            }
        }
    }

    /// The settings of the conversation, with the sum of its tokens.
    fn base(&mut self, record: Node<'_>, state: Node<'_>, out: &mut Out<'_>) {
        let inner = |path: &[&str]| state.path(path).and_then(|node| node.as_str());
        learn(&mut self.session.id, || inner(&["id"]));
        learn(&mut self.session.cwd, || {
            inner(&["workspace", "working_dir"])
        });
        learn(&mut self.model, || inner(&["agent", "llm", "model"]));
        out.push(Entry::keep(NoteKind::Session, record));
    }
}

/// The reasoning of an event.
fn thoughts(event: Node<'_>, put: &mut dyn FnMut(Entry<'_>, &mut Out<'_>), out: &mut Out<'_>) {
    let said = event.get("reasoning_content").and_then(Text::of);
    if let Some(text) = said.filter(|text| !text.is_empty()) {
        return put(Entry::new(What::Reasoning(text)), out);
    }
    for block in event
        .get("thinking_blocks")
        .into_iter()
        .flat_map(Node::items)
    {
        let text = block
            .get("thinking")
            .and_then(Text::of)
            .unwrap_or(Text::EMPTY);
        let entry = Entry {
            opaque: text.is_empty(),
            ..Entry::new(What::Reasoning(text))
        };
        put(entry, out);
    }
}

fn action<'a>(record: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let id = capture::id(record, "tool_call_id").or_else(|| capture::id(record, "id"));
    // As the model wrote it, and otherwise as it was understood.
    let call = record.get("tool_call").filter(|call| !call.is_null());
    if let Some(call) = call.and_then(|call| call.get("function").or(Some(call)))
        && call.get("arguments").is_some()
    {
        return message::call(call, id.unwrap_or_default(), out);
    }
    let mut attachments = Vec::new();
    let action = record.get("action").filter(|action| !action.is_null());
    let input = action.map(|action| out.value(action, &mut attachments));
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: record.text("tool_name").unwrap_or_default(),
            id: id.unwrap_or_default(),
            input,
        })
    }
}

fn observation<'a>(kind: &str, record: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let id = capture::id(record, "tool_call_id").or_else(|| capture::id(record, "action_id"));
    let observed = record.get("observation");
    let content = observed
        .and_then(|observed| observed.get("content"))
        .or(observed);
    let mut entry = message::result(id, record.text("tool_name"), content, out);
    let flag =
        |key: &str| observed.and_then(|o| o.get(key)).and_then(|n| n.as_bool()) == Some(true);
    let code = observed
        .and_then(|o| o.get("exit_code"))
        .and_then(|n| n.as_i64());
    let why = ["rejection_reason", "error"]
        .iter()
        .find_map(|key| record.get(key).and_then(Text::of));
    let status = match kind {
        "UserRejectObservation" => Status::Denied,
        "AgentErrorEvent" => Status::Error,
        _ if flag("timeout") => Status::Timeout,
        _ if flag("is_error") || code.is_some_and(|code| code != 0 && code != -1) => Status::Error,
        _ => Status::Ok,
    };
    entry.status = Some(status);
    if status != Status::Ok
        && let What::Result { error, .. } = &mut entry.what
    {
        let exit = code.map(|code| Text::from(format!("exit code {code}")));
        *error = why.or(exit).or(Some(Text::from("failed")));
    }
    entry
}

impl Reader for OpenHands {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        capture::records(record, out, |record, out| self.line(record, out));
    }

    crate::state::keeps_session!();
}
