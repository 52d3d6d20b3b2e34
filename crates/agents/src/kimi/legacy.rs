//! What a message on the wire of Kimi CLI means.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use quipu_model::json::{Node, Tape};
use quipu_model::{NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::discover::named;
use super::wire::{Side, part, parts, result, usage};
use crate::session::update;
use crate::{Dropped, Entry, Origin, Out, Reader, Session, What, capture, hash, time};

/// How deep sub-agents are looked into.
const NESTING: usize = 8;

/// How many approvals may be waiting for an answer.
const WAITING: usize = 256;

/// Reads the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wire {
    session: Session,
    /// A call whose arguments have not all come yet.
    call: Option<Call>,
    /// Approvals that were asked for, and the calls they are for.
    asked: BTreeMap<u64, u64>,
    /// Calls that were not allowed and have no result yet.
    denied: BTreeSet<u64>,
    /// Messages without an id of their own are counted, so that each call to a model has one.
    steps: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    subagent: Option<String>,
    /// In microseconds since 1970.
    at: Option<i64>,
}

impl Wire {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: named(origin).0,
                ..Session::default()
            },
            call: None,
            asked: BTreeMap::new(),
            denied: BTreeSet::new(),
            steps: 0,
        }
    }

    /// Gives on the call that has come so far.
    fn flush(&mut self, out: &mut Out<'_>) {
        let Some(call) = self.call.take() else {
            return;
        };
        let mut attachments = Vec::new();
        let input = capture::arguments(call.arguments.into(), out, &mut attachments);
        out.push(Entry {
            at: call.at.and_then(|at| Timestamp::from_microsecond(at).ok()),
            subagent: call.subagent.map(Cow::Owned),
            attachments,
            ..Entry::new(What::Call {
                name: Cow::Owned(call.name),
                id: Cow::Owned(call.id),
                input: Some(input),
            })
        });
    }

    fn message(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let mut message = record.get("message").unwrap_or(record);
        let mut subagent = None;
        // The events of a sub-agent come in an envelope.
        for _ in 0..NESTING {
            let payload = message.get("payload").unwrap_or(message);
            if !message
                .get("type")
                .is_some_and(|kind| kind.is("SubagentEvent"))
            {
                break;
            }
            let Some(event) = payload.get("event") else {
                break;
            };
            subagent = ["agent_id", "parent_tool_call_id", "task_tool_call_id"]
                .iter()
                .find_map(|key| payload.text(key))
                .or(subagent);
            message = event;
        }
        let kind = message.text("type").unwrap_or_default();
        let payload = message.get("payload").unwrap_or(message);
        let at = time::field(record, "timestamp");
        if kind == "ToolCallPart" {
            if let (Some(call), Some(more)) = (&mut self.call, payload.text("arguments_part")) {
                call.arguments.push_str(&more);
            }
            return out.skip(Dropped::StreamDelta);
        }
        self.flush(out);
        let put = |entry: Entry<'_>, out: &mut Out<'_>| {
            out.push(Entry {
                at,
                subagent: subagent.clone(),
                ..entry
            });
        };
        let note = match &*kind {
            "TurnBegin" | "SteerInput" => {
                if let Some(input) = payload.get("user_input") {
                    for item in parts(input) {
                        put(read_part(item, Side::Prompt, out), out);
                    }
                }
                return out.skip(Dropped::Empty);
            }
            "ContentPart" => return put(read_part(payload, Side::Model, out), out),
            "ToolCall" | "ToolCallRequest" => {
                return self.call(payload, subagent.as_deref(), record, out);
            }
            "ToolResult" => {
                let id = payload.text("tool_call_id").unwrap_or_default();
                let denied = self.denied.remove(&hash(id.as_bytes()));
                let gave = payload.get("return_value").or(payload.get("result"));
                return put(result(id, gave.unwrap_or(payload), denied, out), out);
            }
            "StatusUpdate" => return self.status(record, payload, put, out),
            "ApprovalRequest" => {
                if let (Some(id), Some(call)) = (payload.text("id"), payload.text("tool_call_id")) {
                    if self.asked.len() >= WAITING {
                        self.asked.pop_first();
                    }
                    self.asked
                        .insert(hash(id.as_bytes()), hash(call.as_bytes()));
                }
                NoteKind::Permission
            }
            "ApprovalResponse" | "ApprovalRequestResolved" => {
                let id = payload.text("request_id").unwrap_or_default();
                let call = self.asked.remove(&hash(id.as_bytes()));
                let refused = payload.get("response").is_some_and(|r| r.is("reject"));
                if let Some(call) = call.filter(|_| refused) {
                    self.denied.insert(call);
                }
                NoteKind::Permission
            }
            "QuestionRequest" | "QuestionResponse" => NoteKind::Permission,
            "TurnEnd" | "StepBegin" | "StepInterrupted" => NoteKind::Turn,
            "CompactionBegin" | "CompactionEnd" => NoteKind::Compaction,
            "HookTriggered" | "HookResolved" => NoteKind::Hook,
            "MCPLoadingBegin" | "MCPLoadingEnd" | "Notification" => NoteKind::Progress,
            "PlanDisplay" => NoteKind::Todo,
            "metadata" => NoteKind::Session,
            other => {
                out.unknown_type("wire", other);
                NoteKind::UnknownRecord
            }
        };
        put(Entry::keep(note, record), out);
    }

    /// A call. Its arguments may still be coming.
    fn call(
        &mut self,
        payload: Node<'_>,
        subagent: Option<&str>,
        record: Node<'_>,
        out: &mut Out<'_>,
    ) {
        let function = payload.get("function").unwrap_or(payload);
        let arguments = function.text("arguments").unwrap_or_default();
        let whole = Tape::new().read(&arguments, 128).is_ok();
        self.call = Some(Call {
            id: payload.text("id").unwrap_or_default().into_owned(),
            name: function.text("name").unwrap_or_default().into_owned(),
            arguments: arguments.into_owned(),
            subagent: subagent.map(str::to_owned),
            at: time::field(record, "timestamp").map(Timestamp::as_microsecond),
        });
        if whole {
            self.flush(out);
        } else {
            out.skip(Dropped::StreamDelta);
        }
    }

    fn status<'a>(
        &mut self,
        record: Node<'a>,
        payload: Node<'a>,
        put: impl Fn(Entry<'a>, &mut Out<'_>),
        out: &mut Out<'_>,
    ) {
        let counts = payload.get("token_usage").and_then(usage);
        if counts.is_none()
            && payload
                .get("mcp_status")
                .is_none_or(|status| status.is_null())
        {
            return out.skip(Dropped::KeepAlive);
        }
        self.steps += 1;
        let id = payload.text("message_id").filter(|id| !id.is_empty());
        let call = id.unwrap_or_else(|| Cow::Owned(format!("step-{}", self.steps)));
        let entry = Entry {
            usage: counts,
            model_call: counts.is_some().then_some(call),
            ..Entry::keep(NoteKind::Usage, record)
        };
        put(entry, out);
    }
}

fn read_part<'a>(item: Node<'a>, side: Side, out: &mut Out<'_>) -> Entry<'a> {
    part(item, side, out).unwrap_or_else(|| {
        let kind = item.text("type").unwrap_or_default();
        out.unknown_type("part", &kind);
        Entry::keep(NoteKind::UnknownRecord, item)
    })
}

impl Reader for Wire {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.message(record, out);
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        let title = document.text("custom_title").or(document.text("title"));
        update(&mut self.session.title, title);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }

    crate::state::keeps_session!();
}
