//! What `codex exec --json` writes to standard output.
//!
//! Items begin, change and are completed. There are no times, no model and no prompt. The stream of the
//! first generation is read as well: the events of a rollout, each as the `msg` of an object.
//!
//! At the end of a turn the tokens of the whole thread are told, so what a turn took is what it adds to the
//! turn before. Running totals never fall. Where any count is lower than it was at the end of the turn
//! before, the stream is not one of running totals after all, and from there on each turn counts as it is.
//! A thread that was resumed begins with what was taken before, in another stream: the first turn of a
//! stream counts as it is, because nothing in the stream tells that it was resumed. Several streams of one
//! thread in one file are read as one.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_model::json::Node;
use quipu_model::{Json, NoteKind, Status, Usage};
use serde::{Deserialize, Serialize};

use super::meter::{self, Meter};
use super::{items, results, wire};
use crate::session::{learn, update};
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, capture};

/// Reads a stream.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Exec {
    session: Session,
    thread: Option<String>,
    model: Option<String>,
    /// Calls that have begun.
    open: HashMap<u64, u32>,
    meter: Meter,
    /// Whether turns tell their own tokens, and not those of all turns.
    by_turn: bool,
}

/// How far an item is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Started,
    Updated,
    Completed,
}

impl Exec {
    fn event(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        let known: &[&str] = match &*kind {
            "thread.started" => {
                let thread = record.text("thread_id");
                learn(&mut self.session.id, || thread.clone());
                if thread.as_deref() != self.thread.as_deref() {
                    self.meter.reset();
                    self.by_turn = false;
                }
                update(&mut self.thread, thread);
                self.open.clear();
                out.push(Entry::keep(NoteKind::Session, record));
                &["type", "thread_id"]
            }
            "turn.started" => {
                out.push(Entry::keep(NoteKind::Turn, record));
                &["type"]
            }
            "turn.completed" => {
                let told = record.get("usage").and_then(meter::usage);
                self.by_turn |= told.is_some_and(|told| self.meter.falls(&told));
                let (total, turn) = if self.by_turn {
                    (None, told)
                } else {
                    (told, None)
                };
                self.count(NoteKind::Turn, total, turn, record, out);
                if let Some(usage) = record.get("usage") {
                    out.check("tokens", usage, wire::TOKENS);
                }
                &["type", "usage"]
            }
            "turn.failed" => {
                let message = record.path(&["error", "message"]).and_then(Text::of);
                out.push(error(message, record));
                &["type", "error"]
            }
            "error" => {
                out.push(error(record.get("message").and_then(Text::of), record));
                &["type", "message"]
            }
            "item.started" | "item.updated" | "item.completed" => {
                let stage = match &*kind {
                    "item.started" => Stage::Started,
                    "item.updated" => Stage::Updated,
                    _ => Stage::Completed,
                };
                if let Some(item) = record.get("item") {
                    self.item(stage, item, record, out);
                }
                &["type", "item"]
            }
            _ => {
                out.unknown_type("", &kind);
                return out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
        };
        out.check(&kind, record, known);
    }

    /// Counts what a total adds.
    fn count(
        &mut self,
        kind: NoteKind,
        total: Option<Usage>,
        call: Option<Usage>,
        record: Node<'_>,
        out: &mut Out<'_>,
    ) {
        let added = total.and_then(|total| self.meter.take(total, call)).or(
            // A call without a total.
            call.filter(|_| total.is_none()),
        );
        let added = added.filter(|added| added.total() > 0);
        if let Some(added) = &added {
            let mut sum = self
                .session
                .vendor_usage
                .map(Usage::from)
                .unwrap_or_default();
            sum.add(added);
            self.session.vendor_usage = Some(sum.into());
        }
        out.push(Entry {
            usage: added,
            model: self.model.as_deref().map(Cow::Borrowed),
            ..Entry::keep(kind, record)
        });
    }

    fn item(&mut self, stage: Stage, item: Node<'_>, record: Node<'_>, out: &mut Out<'_>) {
        let kind = item
            .text("type")
            .or(item.text("item_type"))
            .unwrap_or_default();
        let id = item.text("id").unwrap_or_default();
        let text = |key: &str| item.get(key).and_then(Text::of);
        let said = match &*kind {
            "agent_message" | "assistant_message" => text("text").map(What::Assistant),
            "reasoning" => text("text").map(What::Reasoning),
            "todo_list" => {
                return out.push(Entry {
                    native_id: Some(id),
                    ..Entry::keep(NoteKind::Todo, record)
                });
            }
            "error" => {
                return out.push(Entry {
                    native_id: Some(id),
                    ..error(text("message"), record)
                });
            }
            "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call"
            | "web_search" | "function_call" | "custom_tool_call" => {
                return self.tool(stage, &kind, id, item, out);
            }
            "function_call_output" | "custom_tool_call_output" => return output(id, item, out),
            _ => {
                out.unknown_type("item", &kind);
                return out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
        };
        // A message is whole when it is completed.
        if stage != Stage::Completed {
            return out.skip(Dropped::StreamDelta);
        }
        if let Some(what) = said {
            let mut entry = Entry {
                native_id: Some(id),
                model: self.model.as_deref().map(Cow::Borrowed),
                ..Entry::new(what)
            };
            let mapped = &["id", "type", "item_type", "text"];
            entry.extra.rest("item", item, mapped);
            out.push(entry);
        }
        out.check(
            "message_item",
            item,
            &[
                "id",
                "type",
                "item_type",
                "text",
                "phase",
                "memory_citation",
            ],
        );
    }

    fn tool<'a>(
        &mut self,
        stage: Stage,
        kind: &str,
        id: Cow<'a, str>,
        item: Node<'a>,
        out: &mut Out<'_>,
    ) {
        out.check(kind, item, TOOL);
        if stage == Stage::Updated {
            return out.skip(Dropped::StreamDelta);
        }
        let is_function = matches!(kind, "function_call" | "custom_tool_call");
        // The answer to a function is an item of its own, and names the call by this.
        let id = match item.text("call_id") {
            Some(call) if is_function && !call.is_empty() => call,
            _ => id,
        };
        let name = tool_name(kind, item);
        let given = |key: &str| item.get(key).filter(|given| !given.is_null());
        let child = item
            .get("receiver_thread_ids")
            .filter(|_| name == "spawn_agent")
            .and_then(|ids| ids.items().next()?.as_str());
        let key = crate::hash(id.as_bytes());
        let mut attachments = Vec::new();
        let begun = if stage == Stage::Started {
            let begun = self.open.entry(key).or_default();
            *begun = begun.saturating_add(1);
            false
        } else {
            let begun = self.open.get_mut(&key).filter(|begun| **begun > 0);
            begun.map(|begun| *begun -= 1).is_some()
        };
        if !begun {
            let input = match kind {
                "mcp_tool_call" => item
                    .get("arguments")
                    .filter(|arguments| !arguments.is_null())
                    .map(|arguments| out.value(arguments, &mut attachments)),
                _ => match (item.get("command"), given("arguments").or(given("input"))) {
                    (None, Some(input)) => Some(items::arguments(input, &mut attachments, out)),
                    _ => object(item, INPUTS),
                },
            };
            let mut entry = Entry {
                native_id: Some(id.clone()),
                child: child.clone(),
                attachments: std::mem::take(&mut attachments),
                ..Entry::new(What::Call {
                    name: name.clone(),
                    id: id.clone(),
                    input,
                })
            };
            if stage == Stage::Started {
                entry.extra.rest_of_two("item", item, [CALL_MAPPED, INPUTS]);
            }
            out.push(entry);
        }
        let answers = ["output", "result", "error"];
        let is_answered = !is_function || answers.iter().any(|key| given(key).is_some());
        if stage == Stage::Started || !is_answered {
            return;
        }
        let ending = results::of_event(item);
        let failed = !matches!(ending.status(), None | Some(Status::Ok));
        let mut output = given("aggregated_output")
            .or(given("result"))
            .or(given("output"))
            .or(given("agents_states"));
        let why = failed.then(|| failure(item, &mut output));
        let output = output.map(|output| out.value(output, &mut attachments));
        // What it does with the web is known at its end.
        let searched = kind == "web_search" && item.get("action").is_none_or(capture::is_search);
        let mut entry = Entry {
            native_id: Some(id.clone()),
            searches: searched.then_some(1),
            status: ending.status(),
            child,
            attachments,
            ..Entry::new(What::Result {
                name,
                id,
                output,
                error: why,
            })
        };
        entry.extra.rest("item", item, RESULT_MAPPED);
        out.push(entry);
    }

    /// An event of the stream of the first generation.
    fn message(&mut self, record: Node<'_>, message: Node<'_>, out: &mut Out<'_>) {
        let kind = message.text("type").unwrap_or_default();
        let text = |key: &str| message.get(key).and_then(Text::of);
        let call = message.text("call_id").unwrap_or_default();
        let what = match &*kind {
            "agent_message" => text("message").map(What::Assistant),
            "agent_reasoning" | "agent_reasoning_raw_content" => text("text").map(What::Reasoning),
            "user_message" => text("message").map(What::User),
            "exec_command_begin"
            | "patch_apply_begin"
            | "mcp_tool_call_begin"
            | "web_search_begin" => {
                let (name, input) = match &*kind {
                    "exec_command_begin" => ("exec_command".into(), object(message, INPUTS)),
                    "patch_apply_begin" => ("apply_patch".into(), object(message, INPUTS)),
                    "web_search_begin" => ("web_search".into(), object(message, INPUTS)),
                    _ => {
                        let invocation = message.get("invocation").unwrap_or(message);
                        let part = |key: &str| invocation.text(key).unwrap_or_default();
                        let name = format!("mcp__{}__{}", part("server"), part("tool"));
                        (
                            Cow::Owned(name),
                            invocation.get("arguments").map(Into::into),
                        )
                    }
                };
                Some(What::Call {
                    name,
                    id: call,
                    input,
                })
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" | "web_search_end" => {
                return end(message, call, out);
            }
            "token_count" => {
                let info = message.get("info").unwrap_or(message);
                let total = info.get("total_token_usage").unwrap_or(info);
                let last = info.get("last_token_usage").and_then(meter::usage);
                return self.count(NoteKind::Usage, meter::usage(total), last, record, out);
            }
            "session_configured" => {
                learn(&mut self.session.id, || message.text("session_id"));
                update(&mut self.model, message.text("model"));
                return out.push(Entry::keep(NoteKind::Session, record));
            }
            kind if wire::is_delta(kind) => return out.skip(Dropped::StreamDelta),
            kind => {
                let about = wire::event(kind).map(|(about, _)| about);
                if about.is_none() {
                    out.unknown_type("msg", kind);
                }
                return out.push(Entry::new(What::Note {
                    kind: about.unwrap_or(NoteKind::UnknownRecord),
                    text: text("message"),
                    raw: Some(record.into()),
                }));
            }
        };
        let Some(what) = what else {
            return;
        };
        let model = match what {
            What::User(_) => None,
            _ => self.model.as_deref().map(Cow::Borrowed),
        };
        out.push(Entry {
            model,
            ..Entry::new(what)
        });
    }
}

/// The answer to a function, where it is an item of its own.
fn output<'a>(id: Cow<'a, str>, item: Node<'a>, out: &mut Out<'_>) {
    const FIELDS: &[&str] = &["id", "type", "item_type", "call_id", "output", "status"];
    out.check("function_call_output", item, FIELDS);
    let call = item.text("call_id").unwrap_or_else(|| id.clone());
    let mut attachments = Vec::new();
    let given = item.get("output").filter(|given| !given.is_null());
    let output = given.map(|given| out.value(given, &mut attachments));
    out.push(Entry {
        native_id: Some(id),
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: call,
            output,
            error: None,
        })
    });
}

/// The end of a call, in the stream of the first generation.
fn end<'a>(message: Node<'a>, call: Cow<'a, str>, out: &mut Out<'_>) {
    let ending = results::of_event(message);
    let failed = !matches!(ending.status(), None | Some(Status::Ok));
    let text = |key: &str| {
        message
            .get(key)
            .and_then(Text::of)
            .filter(|text| !text.is_empty())
    };
    let told = text("aggregated_output").or_else(|| text("stdout"));
    let mut attachments = Vec::new();
    let result = message
        .get("result")
        .map(|result| result.get("Ok").unwrap_or(result))
        .filter(|result| result.get("Err").is_none())
        .map(|result| out.value(result, &mut attachments));
    let error = failed.then(|| {
        let refused = message.path(&["result", "Err"]).and_then(Text::of);
        refused
            .or_else(|| text("stderr"))
            .or_else(|| told.clone())
            .unwrap_or(Text::from("failed"))
    });
    out.push(Entry {
        status: ending.status(),
        duration_ms: ending.duration_ms,
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: call,
            output: result.or(told.map(Value::Text)),
            error,
        })
    });
}

/// The fields of the items that are calls.
const TOOL: &[&str] = &[
    "id",
    "type",
    "item_type",
    "status",
    "command",
    "aggregated_output",
    "exit_code",
    "changes",
    "server",
    "tool",
    "arguments",
    "result",
    "error",
    "sender_thread_id",
    "receiver_thread_ids",
    "prompt",
    "agents_states",
    "model",
    "reasoning_effort",
    "query",
    "action",
    "name",
    "call_id",
    "input",
    "output",
];

/// What a tool is called.
fn tool_name<'a>(kind: &str, item: Node<'a>) -> Cow<'a, str> {
    match kind {
        "mcp_tool_call" => Cow::Owned(format!(
            "mcp__{}__{}",
            item.text("server").unwrap_or_default(),
            item.text("tool").unwrap_or_default()
        )),
        "collab_tool_call" => item.text("tool").unwrap_or_default(),
        _ if item.get("name").is_some() => item.text("name").unwrap_or_default(),
        kind => Cow::Owned(kind.to_owned()),
    }
}

/// Why a call failed: what it says, else what it gave back, else how it ended.
fn failure<'a>(item: Node<'a>, output: &mut Option<Node<'a>>) -> Text<'a> {
    let said = item
        .get("error")
        .map(|error| error.get("message").unwrap_or(error))
        .and_then(Text::of);
    let said = said.or_else(|| {
        let told = output.and_then(Text::of)?;
        *output = None;
        Some(told).filter(|text| !text.is_empty())
    });
    let code = item.get("exit_code").and_then(|n| n.as_i64());
    said.unwrap_or_else(|| {
        Text::from(match code {
            Some(code) => format!("exit code {code}"),
            None => item
                .text("status")
                .map_or_else(|| "failed".to_owned(), Cow::into_owned),
        })
    })
}

/// Fields of a call that begins which have a place of their own, beside [`INPUTS`].
const CALL_MAPPED: &[&str] = &[
    "id",
    "type",
    "item_type",
    "server",
    "tool",
    "arguments",
    "name",
    "call_id",
    "input",
];

/// Fields of a call that has ended which have a place of their own.
const RESULT_MAPPED: &[&str] = &[
    "id",
    "type",
    "item_type",
    "server",
    "tool",
    "name",
    "call_id",
    "output",
    "aggregated_output",
    "result",
    "agents_states",
    "error",
];

/// Those of them that a call is called with.
const INPUTS: &[&str] = &[
    "command",
    "cwd",
    "changes",
    "prompt",
    "receiver_thread_ids",
    "model",
    "reasoning_effort",
    "query",
    "action",
];

/// Some fields of an object, as an object.
fn object<'a>(node: Node<'_>, keys: &[&str]) -> Option<Value<'a>> {
    let mut made = String::new();
    for (key, value) in node.fields() {
        if keys.iter().any(|wanted| key.is(wanted)) && !value.is_null() {
            made.push(if made.is_empty() { '{' } else { ',' });
            made.push_str(key.raw().get());
            made.push(':');
            made.push_str(value.raw().get());
        }
    }
    made.push('}');
    Json::parse(&made).ok().map(Value::Owned)
}

fn error<'a>(text: Option<Text<'a>>, record: Node<'a>) -> Entry<'a> {
    Entry::new(What::Note {
        kind: NoteKind::Error,
        text,
        raw: Some(record.into()),
    })
}

impl Reader for Exec {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if let Some(message) = record.get("msg") {
            return self.message(record, message, out);
        }
        if record.get("type").is_some() {
            return self.event(record, out);
        }
        // The stream of the first generation begins with its settings and the prompt.
        if let Some(prompt) = record.get("prompt").and_then(Text::of) {
            return out.push(Entry::new(What::User(prompt)));
        }
        learn(&mut self.session.cwd, || {
            record.text("workdir").or(record.text("cwd"))
        });
        update(&mut self.model, record.text("model"));
        out.push(Entry::keep(NoteKind::Session, record));
    }

    crate::state::keeps_session!();
}
