//! What a line means.

use std::borrow::Cow;
use std::collections::HashSet;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status};
use serde::{Deserialize, Serialize};

use super::wire::{FIELDS, RESULT_FIELDS, USAGE_FIELDS, system_note, usage};
use crate::blocks::{self, Speaker};
use crate::common::Common;
use crate::gemini::parts;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Mended, Out, Reader, Session, Text, What, hash, time};

/// Reads a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Qwen {
    session: Session,
    /// Whether a person gave the session its title.
    named: bool,
    /// For each prompt: the line before it, and the number of its first event. A rewind goes back to
    /// before one of them.
    turns: Vec<(u64, u64)>,
    /// What was read, by what it says. Lines with the same id are the pieces of one record, unless they say
    /// the same.
    read: HashSet<u64>,
}

/// Whether a line is a further piece of a record that was begun before.
#[derive(Debug, Clone, Copy, Default)]
struct GoesOn(bool);

impl Qwen {
    fn learn(&mut self, record: Node<'_>) {
        let session = record.text("sessionId");
        if self.session.id.is_none()
            && let Some(session) = session.filter(|id| !id.is_empty())
        {
            let agent = record
                .text("agentId")
                .filter(|_| is_true(record, "isSidechain"));
            match agent {
                Some(agent) => {
                    self.session.id = Some(format!("{session}.agent-{agent}"));
                    self.session.parent = Some(session.into_owned());
                    learn(&mut self.session.title, || record.text("agentName"));
                }
                None => self.session.id = Some(session.into_owned()),
            }
        }
        update(&mut self.session.version, record.text("version"));
        learn(&mut self.session.cwd, || record.text("cwd"));
        learn(&mut self.session.branch, || record.text("gitBranch"));
        learn(&mut self.session.forked_from, || {
            record.path(&["forkedFrom", "sessionId"])?.as_str()
        });
    }

    /// The sub-agent that wrote a line, when the file is not its own.
    fn subagent<'a>(&self, record: Node<'a>) -> Option<Cow<'a, str>> {
        if self.session.parent.is_some() || !is_true(record, "isSidechain") {
            return None;
        }
        let agent = record.text("agentId").filter(|agent| !agent.is_empty());
        agent.or(Some(Cow::Borrowed("sidechain")))
    }

    fn user<'a>(&mut self, record: Node<'a>, common: &Common<'a, GoesOn>, out: &mut Out<'_>) {
        let subtype = record.text("subtype").unwrap_or_default();
        let provenance = record.text("provenance").unwrap_or_default();
        let injected = matches!(&*provenance, "goal_control" | "goal_runtime" | "system")
            || matches!(
                &*subtype,
                "notification" | "background_task_completed" | "cron" | "goal_runtime"
            );
        if !injected && common.subagent.is_none() && !common.own.0 {
            let before = common.parent.as_deref().unwrap_or_default();
            self.turns.push((hash(before.as_bytes()), out.next_seq()));
        }
        said(record, injected, common, out);
    }

    fn system<'a>(&mut self, record: Node<'a>, common: &Common<'a, GoesOn>, out: &mut Out<'_>) {
        let subtype = record.text("subtype").unwrap_or_default();
        let payload = record.get("systemPayload").unwrap_or(record);
        let kind = system_note(&subtype).unwrap_or_else(|| {
            out.unknown_type("system", &subtype);
            NoteKind::UnknownRecord
        });
        let mut text = None;
        let mut voids = None;
        match &*subtype {
            "ui_telemetry" => return telemetry(record, payload, common, out),
            // Said while the agent was at work.
            "mid_turn_user_message" if record.get("message").is_some() => {
                return said(record, false, common, out);
            }
            "notification" | "background_task_completed" | "cron" | "realtime_message"
                if record.get("message").is_some() =>
            {
                return said(record, true, common, out);
            }
            "custom_title" => {
                let by_hand = payload.get("titleSource").is_none_or(|by| !by.is("auto"));
                if by_hand || !self.named {
                    self.named |= by_hand;
                    update(&mut self.session.title, payload.text("customTitle"));
                }
                text = payload.get("customTitle").and_then(Text::of);
            }
            "parent_session" => {
                learn(&mut self.session.parent, || payload.text("parentSessionId"));
            }
            "session_model" => text = payload.get("modelId").and_then(Text::of),
            "slash_command" => text = payload.get("rawCommand").and_then(Text::of),
            "at_command" => text = payload.get("userText").and_then(Text::of),
            "rewind" => voids = self.rewind(common, out),
            _ => {}
        }
        let mut entry = blocks::kept(kind, record, out);
        if let What::Note { text: said, .. } = &mut entry.what {
            *said = text;
        }
        entry.voids = voids;
        common.put(entry, out);
    }

    /// A rewind follows the line that came before the prompt it goes back to.
    fn rewind(
        &mut self,
        common: &Common<'_, GoesOn>,
        out: &Out<'_>,
    ) -> Option<std::ops::Range<u64>> {
        let before = hash(common.parent.as_deref().unwrap_or_default().as_bytes());
        let at = self
            .turns
            .iter()
            .rposition(|(parent, _)| *parent == before)?;
        let (_, from) = self.turns.get(at).copied()?;
        self.turns.truncate(at);
        Some(from..out.next_seq())
    }
}

fn is_true(record: Node<'_>, key: &str) -> bool {
    record.get(key).and_then(|n| n.as_bool()) == Some(true)
}

/// What a line says, whenever it was written.
fn said_by(id: &str, record: Node<'_>) -> u64 {
    const SAYING: [&str; 7] = [
        "type",
        "subtype",
        "model",
        "message",
        "usageMetadata",
        "toolCallResult",
        "systemPayload",
    ];
    SAYING.iter().fold(hash(id.as_bytes()), |sum, key| {
        let value = record
            .get(key)
            .map_or(0, |value| hash(value.raw().get().as_bytes()));
        sum.rotate_left(7) ^ value
    })
}

/// The parts of a message on the user's side.
fn said<'a>(record: Node<'a>, injected: bool, common: &Common<'a, GoesOn>, out: &mut Out<'_>) {
    let Some(message) = record.get("message") else {
        return;
    };
    for part in message.get("parts").into_iter().flat_map(Node::items) {
        let entry = match parts::entry(part, Speaker::User, out) {
            Some(Entry {
                what: What::User(text),
                ..
            }) if injected || is_injected(&text) => Entry {
                synthetic: true,
                ..Entry::new(What::System(text))
            },
            Some(entry) => entry,
            None => unknown_part(part, out),
        };
        common.put(entry, out);
    }
    out.skip(Dropped::Empty);
}

fn is_injected(text: &Text<'_>) -> bool {
    const MARKS: [&str; 5] = [
        "<system-reminder>",
        "<task-notification>",
        "<hook_context>",
        "<user-prompt-submit-hook>",
        "This is the Qwen Code. We are setting up the context for our chat.",
    ];
    MARKS.iter().any(|mark| text.starts_with(mark))
}

fn unknown_part<'a>(part: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let key = part.fields().next().map(|(key, _)| key.to_text_lossy());
    out.unknown_type("part", &key.unwrap_or_default());
    Entry::keep(NoteKind::UnknownRecord, part)
}

fn assistant<'a>(record: Node<'a>, common: &Common<'a, GoesOn>, out: &mut Out<'_>) {
    let mut counts = record.get("usageMetadata").and_then(|node| {
        out.check("usage", node, USAGE_FIELDS);
        usage(node)
    });
    let model = record.text("model");
    let parts = record.path(&["message", "parts"]);
    let mut put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
        entry.model.clone_from(&model);
        entry.model_call.clone_from(&common.id);
        entry.usage = counts.take();
        common.put(entry, out);
    };
    let mut any = false;
    for part in parts.into_iter().flat_map(Node::items) {
        let entry =
            parts::entry(part, Speaker::Assistant, out).unwrap_or_else(|| unknown_part(part, out));
        put(entry, out);
        any = true;
    }
    if !any {
        put(Entry::keep(NoteKind::ModelCall, record), out);
    }
}

fn tool_result<'a>(record: Node<'a>, common: &Common<'a, GoesOn>, out: &mut Out<'_>) {
    let known = record.get("toolCallResult");
    if let Some(known) = known {
        out.check("toolCallResult", known, RESULT_FIELDS);
    }
    let field = |key: &str| known.and_then(|known| known.text(key)).unwrap_or_default();
    let (state, kind) = (field("status"), field("errorType"));
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    let status = match &*state {
        "cancelled" => Some(Status::Denied),
        _ if is(&["denied", "cancel", "permission"]) => Some(Status::Denied),
        _ if is(&["timeout", "timed_out"]) => Some(Status::Timeout),
        "error" => Some(Status::Error),
        "success" => Some(Status::Ok),
        _ => None,
    };
    let mut any = false;
    for part in record
        .path(&["message", "parts"])
        .into_iter()
        .flat_map(Node::items)
    {
        let mut entry = match parts::entry(part, Speaker::User, out) {
            Some(Entry {
                what: What::User(text),
                ..
            }) => Entry {
                synthetic: true,
                ..Entry::new(What::System(text))
            },
            Some(entry) => entry,
            None => unknown_part(part, out),
        };
        if let What::Result { output, error, .. } = &mut entry.what {
            entry.status = status;
            if matches!(
                status,
                Some(Status::Denied | Status::Error | Status::Timeout)
            ) && error.is_none()
            {
                *error = Some(match output.take() {
                    Some(crate::Value::Text(text)) => text,
                    _ => Text::from(state.clone()),
                });
            } else if error.is_some() && status == Some(Status::Ok) {
                entry.status = Some(Status::Error);
            }
            entry.duration_ms = known.and_then(|known| known.get("durationMs")?.as_u64());
        }
        common.put(entry, out);
        any = true;
    }
    let Some(known) = known.filter(|_| !any) else {
        return out.skip(Dropped::Empty);
    };
    if common.own.0 {
        // The result itself was there before.
        return common.put(blocks::kept(NoteKind::Progress, record, out), out);
    }
    // Only what was shown to the person is there.
    let mut attachments = Vec::new();
    let shown = known.get("resultDisplay").filter(|shown| !shown.is_null());
    let output = shown.map(|shown| parts::value(shown, &mut attachments, out));
    let failed = matches!(
        status,
        Some(Status::Denied | Status::Error | Status::Timeout)
    );
    let entry = Entry {
        status,
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: known.text("callId").unwrap_or_default(),
            output,
            error: failed.then(|| Text::from(state)),
        })
    };
    common.put(entry, out);
}

/// What was measured of a call to the model, or to a tool. Their own lines say it, too.
fn telemetry<'a>(
    record: Node<'a>,
    payload: Node<'a>,
    common: &Common<'a, GoesOn>,
    out: &mut Out<'_>,
) {
    let event = payload.get("uiEvent").unwrap_or(payload);
    let name = event.text("event.name").unwrap_or_default();
    match &*name {
        "qwen-code.api_response" => out.skip(Dropped::RepeatedUsage),
        "qwen-code.tool_call" => out.skip(Dropped::RepeatedChannel),
        "qwen-code.api_error" => {
            let text = ["error", "error_message", "error.message"]
                .iter()
                .find_map(|key| event.get(key).and_then(Text::of));
            let entry = Entry::new(What::Note {
                kind: NoteKind::Error,
                text,
                raw: Some(record.into()),
            });
            common.put(entry, out);
        }
        other => {
            out.unknown_type("ui_telemetry", other);
            common.put(Entry::keep(NoteKind::Usage, record), out);
        }
    }
}

impl Reader for Qwen {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let uuid = record.text("uuid");
        let goes_on = uuid.as_deref().is_some_and(|id| !out.ledger().unit(id));
        if let Some(id) = &uuid
            && !self.read.insert(said_by(id, record))
        {
            return out.skip(Dropped::DuplicateRecord);
        }
        if let Some(id) = uuid.as_deref().filter(|_| goes_on) {
            out.ledger().goes_on(id);
        }
        out.check("line", record, FIELDS);
        self.learn(record);
        let at = time::field(record, "timestamp");
        if at.is_none() && record.get("timestamp").is_some_and(|at| !at.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let common = Common {
            at,
            id: uuid,
            parent: record.text("parentUuid"),
            subagent: self.subagent(record),
            own: GoesOn(goes_on),
            ..Common::default()
        };
        let kind = record.text("type").unwrap_or_default();
        match &*kind {
            "user" => self.user(record, &common, out),
            "assistant" => assistant(record, &common, out),
            "tool_result" => tool_result(record, &common, out),
            "system" => self.system(record, &common, out),
            other => out.unknown_type("", other),
        }
    }

    crate::state::keeps_session!();
}
