//! What was shown to the person, and what it means.

use std::borrow::Cow;

use quipu_model::json::{Node, Tape};
use quipu_model::{Json, NoteKind, Timestamp};

use super::classic::Task;
use super::wire::{self, REQUEST_FIELDS, SHOWN_FIELDS};
use crate::cost::Cost;
use crate::session::update;
use crate::{Dropped, Entry, Out, Text, Value, What, blocks, time};

impl Task {
    /// One thing that was shown.
    pub(super) fn shown(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        out.check("shown", row, SHOWN_FIELDS);
        let kind = row
            .text("say")
            .or(row.text("ask"))
            .or(row.text("type"))
            .unwrap_or_default();
        let at = time::field(row, "ts");
        let id = row.get("ts").map(|ts| ts.raw().get().to_owned());
        update(
            &mut self.model,
            row.path(&["modelInfo", "modelId"]).and_then(|n| n.as_str()),
        );
        update(
            &mut self.provider,
            row.path(&["modelInfo", "providerId"])
                .and_then(|n| n.as_str()),
        );
        if self.session.started_at.is_none() {
            self.session.started_at = at.map(Timestamp::as_millisecond);
        }
        let is_first = !std::mem::replace(&mut self.begun, true);
        let entry = match &*kind {
            "api_req_started" | "deleted_api_reqs" | "subagent_usage" => {
                self.request(&kind, row, at, out)
            }
            _ => match note_kind(&kind) {
                Some(note) => {
                    let condensed = row.path(&["contextCondense", "cost"]).and_then(Cost::of);
                    self.spend(condensed);
                    let text = row
                        .get("text")
                        .or(row.path(&["contextCondense", "summary"]))
                        .and_then(Text::of);
                    Entry::new(What::Note {
                        kind: note,
                        text,
                        raw: Some(blocks::without(row, &["text", "images"])),
                    })
                }
                None if !is_conversation(&kind) => {
                    out.unknown_type("shown", &kind);
                    blocks::kept(NoteKind::UnknownRecord, row, out)
                }
                // It stands in the conversation.
                None if self.has_history => return out.skip(Dropped::RepeatedChannel),
                None => match self.said(&kind, row, is_first, id.as_deref()) {
                    Some(entry) => entry,
                    None => return out.skip(Dropped::Empty),
                },
            },
        };
        let put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            entry.at = at;
            entry.native_id = id.clone().map(Cow::Owned);
            out.push(entry);
        };
        put(entry, out);
        if !self.has_history {
            for image in row.get("images").into_iter().flat_map(Node::items) {
                let entry = picture(image, out);
                put(entry, out);
            }
        }
    }

    fn spend(&mut self, cost: Option<Cost>) {
        if let Some(cost) = cost {
            self.cost.add(cost);
            self.session.vendor_cost = Some(self.cost.to_text());
        }
    }

    /// A request to a model, with its tokens as far as they are known.
    fn request<'a>(
        &mut self,
        kind: &str,
        row: Node<'a>,
        at: Option<Timestamp>,
        out: &mut Out<'_>,
    ) -> Entry<'a> {
        let note = if kind == "api_req_started" {
            NoteKind::ModelCall
        } else {
            NoteKind::Usage
        };
        let text = row.text("text").unwrap_or_default();
        let mut tape = Tape::new();
        let Ok(request) = tape.read(&text, 128) else {
            return blocks::kept(note, row, out);
        };
        out.check("request", request, REQUEST_FIELDS);
        let protocol = request.text("apiProtocol").or(row.text("apiProtocol"));
        let usage = wire::request_usage(
            request,
            at.map(Timestamp::as_millisecond),
            protocol.as_deref(),
            self.provider.as_deref(),
        );
        let cost = request.get("cost").and_then(Cost::of);
        self.spend(cost);
        let told = Cost::of_call(request.get("cost"), self.model.as_deref());
        // What was asked stands in the conversation.
        let raw = match blocks::without(request, &["request"]) {
            Value::Owned(json) => Some(json),
            other => Some(other.to_json()),
        };
        let failed = request
            .text("streamingFailedMessage")
            .map(Cow::into_owned)
            .map(Text::from);
        Entry {
            usage,
            cost: told.map(Cost::money),
            model: self.model.clone().map(Cow::Owned),
            ..Entry::new(What::Note {
                kind: note,
                text: failed,
                raw: raw.map(Value::Owned),
            })
        }
    }

    /// A part of the conversation, where it is only known from what was shown.
    fn said<'a>(
        &mut self,
        kind: &str,
        row: Node<'a>,
        is_first: bool,
        id: Option<&str>,
    ) -> Option<Entry<'a>> {
        let text = row.get("text").and_then(Text::of);
        let is_empty = text.as_ref().is_none_or(Text::is_empty);
        let id = || id.unwrap_or_default().to_owned();
        let model = self.model.clone().map(Cow::Owned);
        let what = match kind {
            "text" if is_first => What::User(text?),
            "task" | "user_feedback" | "user_feedback_diff" => What::User(text?),
            "reasoning" => What::Reasoning(
                row.get("reasoning")
                    .and_then(Text::of)
                    .filter(|text| !text.is_empty())
                    .or(text)?,
            ),
            "command" => {
                let call = id();
                self.command = Some(call.clone());
                What::Call {
                    name: "execute_command".into(),
                    id: call.into(),
                    input: text.map(Value::Text),
                }
            }
            "command_output" => {
                if is_empty {
                    return None;
                }
                match self.command.take() {
                    Some(call) => What::Result {
                        name: Cow::Borrowed(""),
                        id: call.into(),
                        output: text.map(Value::Text),
                        error: None,
                    },
                    // It comes in pieces.
                    None => return Some(Entry::note(NoteKind::Progress, text?)),
                }
            }
            "tool" | "use_mcp_server" | "browser_action_launch" | "browser_action" => {
                let read = text.as_ref()?.read();
                let json = Json::parse(&read).ok();
                let name = json.as_ref().and_then(|json| tool_name(json.get()));
                What::Call {
                    name: name.unwrap_or_else(|| kind.to_owned()).into(),
                    id: id().into(),
                    input: Some(match json {
                        Some(json) => Value::Owned(json),
                        None => Value::Text(text.clone()?),
                    }),
                }
            }
            _ if is_empty => return None,
            _ => What::Assistant(text?),
        };
        let is_model = matches!(
            what,
            What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
        );
        Some(Entry {
            model: model.filter(|_| is_model),
            ..Entry::new(what)
        })
    }
}

/// The tool in what is shown of a call.
fn tool_name(json: &str) -> Option<String> {
    let mut tape = Tape::new();
    let node = tape.read(json, 128).ok()?;
    ["toolName", "tool", "type"]
        .iter()
        .find_map(|key| node.text(key))
        .map(Cow::into_owned)
}

/// An image that was shown, which is an address of the `data:` kind.
fn picture<'a>(image: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let url = image.as_str().unwrap_or_default();
    let found = crate::data_url(&url).and_then(|(mime, data)| out.detach(mime, data));
    match found {
        Some(attachment) => Entry {
            attachments: vec![attachment.clone()],
            ..Entry::note(NoteKind::Attachment, attachment.mime)
        },
        None => Entry::keep(NoteKind::Attachment, image),
    }
}

/// Whether what is shown is a part of the conversation with the model.
fn is_conversation(kind: &str) -> bool {
    matches!(
        kind,
        "text"
            | "task"
            | "reasoning"
            | "image"
            | "tool"
            | "command"
            | "command_output"
            | "completion_result"
            | "user_feedback"
            | "user_feedback_diff"
            | "followup"
            | "plan_mode_respond"
            | "act_mode_respond"
            | "new_task"
            | "new_task_started"
            | "use_mcp_server"
            | "mcp_server_request_started"
            | "mcp_server_response"
            | "mcp_notification"
            | "browser_action"
            | "browser_action_launch"
            | "browser_action_result"
            | "codebase_search_result"
            | "use_skill"
            | "use_subagents"
            | "subagent"
            | "subtask_result"
            | "report_bug"
    )
}

/// What something that is no part of the conversation is about.
fn note_kind(kind: &str) -> Option<NoteKind> {
    Some(match kind {
        "error"
        | "api_req_failed"
        | "diff_error"
        | "clineignore_error"
        | "rooignore_error"
        | "condense_context_error"
        | "mistake_limit_reached"
        | "error_retry"
        | "invalid_model"
        | "payment_required_prompt"
        | "shell_integration_warning"
        | "shell_integration_warning_with_suggestion"
        | "conditional_rules_applied" => NoteKind::Error,
        "api_req_retried" | "api_req_retry_delayed" | "api_req_rate_limit_wait" => NoteKind::Retry,
        "api_req_finished" | "api_req_deleted" => NoteKind::ModelCall,
        "checkpoint_created" | "checkpoint_saved" | "load_checkpoint" | "checkpoint_restore" => {
            NoteKind::FileSnapshot
        }
        "condense"
        | "condense_context"
        | "summarize_task"
        | "sliding_window_truncation"
        | "context_pruned" => NoteKind::Compaction,
        "resume_task" | "resume_completed_task" => NoteKind::Resume,
        "task_progress" | "user_edit_todos" => NoteKind::Todo,
        "hook_status" | "hook_output_stream" | "hook" => NoteKind::Hook,
        "auto_approval_max_req_reached" => NoteKind::Permission,
        "info"
        | "load_mcp_documentation"
        | "generate_explanation"
        | "too_many_tools_warning"
        | "tool_preparing"
        | "finishTask" => NoteKind::Session,
        _ => return None,
    })
}
