//! What records beside the conversation mean for the question: how it ended, and what the agent met on the way.

use quipu_model::{Body, Failure, Json, Note, NoteKind, Severity};
use serde_json::{Value, json};

use super::harness;

/// How an agent says that it ended.
pub(super) enum Verdict {
    /// Well, with this answer where the record has it.
    Done(Option<String>),
    /// Badly.
    Failed(String),
}

/// What a note says.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) verdict: Option<Verdict>,
    pub(super) model: Option<String>,
    /// Refusals that the record lists.
    pub(super) denials: Vec<Body>,
    /// What the note is instead of a note.
    pub(super) instead: Option<Body>,
}

/// What a note says; `None` when it says nothing of the kind.
pub(super) fn of(note: &Note) -> Option<Heard> {
    let raw = note.raw.as_ref();
    let record: Value = raw.and_then(|raw| serde_json::from_str(raw.get()).ok())?;
    let mut heard = Heard {
        instead: instead(note, &record),
        ..Heard::default()
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match record["type"].as_str()? {
        "system" if record["subtype"] == "init" => heard.model = text(&record["model"]),
        "init" => heard.model = text(&record["model"]).filter(|model| model != "auto"),
        "result" => {
            heard.verdict = Some(result(&record));
            let denials = record["permission_denials"].as_array();
            let denials = denials.map(Vec::as_slice).unwrap_or_default();
            heard.denials = denials
                .iter()
                .map(|denial| harness("guardrail", "permission_denied", Severity::Warning, denial))
                .collect();
        }
        "turn.completed" => heard.verdict = Some(Verdict::Done(None)),
        "turn.failed" | "session.error" | "error" => {
            let is_warning = record["severity"] == "warning";
            if !is_warning {
                let why = note.text.clone().or_else(|| message(&record));
                let why = why.unwrap_or_else(|| "no reason given".to_owned());
                heard.verdict = Some(Verdict::Failed(why));
            }
        }
        _ => {}
    }
    Some(heard)
}

/// The record that a stream ends with, of Claude Code, Gemini CLI or Copilot CLI.
fn result(record: &Value) -> Verdict {
    let subtype = record["subtype"].as_str().unwrap_or_default();
    let status = record["status"].as_str();
    let code = record["exitCode"].as_i64().unwrap_or(0);
    let answer = record["result"].as_str().map(str::to_owned);
    let is_error = record["is_error"] == json!(true)
        || subtype.starts_with("error")
        || status.is_some_and(|status| status != "success")
        || code != 0;
    if is_error {
        let errors = record["errors"].as_array().map(|errors| {
            let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
            errors.join("; ")
        });
        let said = answer.filter(|answer| !answer.is_empty());
        let said = said.or(errors).filter(|said| !said.is_empty());
        let said = said.or_else(|| message(record)).unwrap_or_else(|| {
            let word = Some(subtype).filter(|word| !word.is_empty()).or(status);
            word.map_or_else(|| format!("exit code {code}"), str::to_owned)
        });
        return Verdict::Failed(said);
    }
    let structured = &record["structured_output"];
    match answer {
        Some(answer) if !answer.is_empty() || structured.is_null() => Verdict::Done(Some(answer)),
        _ if !structured.is_null() => Verdict::Done(Some(structured.to_string())),
        answer => Verdict::Done(answer),
    }
}

/// What a record says went wrong.
fn message(record: &Value) -> Option<String> {
    let places = [
        &record["error"]["message"],
        &record["error"]["data"]["message"],
        &record["data"]["message"],
        &record["message"],
        &record["error"],
    ];
    let said = places.into_iter().find_map(Value::as_str);
    said.map(str::to_owned)
}

/// What the program around the model did or met is a harness event, and what went wrong an error.
fn instead(note: &Note, record: &Value) -> Option<Body> {
    let word = record["subtype"].as_str().or(record["type"].as_str());
    let name = word.unwrap_or("reported");
    let event = |category, severity| Some(harness(category, name, severity, record));
    if record["type"] == "rate_limit_event" {
        let allowed = record["rate_limit_info"]["status"] == "allowed";
        let severity = if allowed {
            Severity::Info
        } else {
            Severity::Warning
        };
        return event("rate_limit", severity);
    }
    match note.kind {
        NoteKind::Retry => event("retry", Severity::Warning),
        NoteKind::ModelChange => event("model_switch", Severity::Info),
        NoteKind::Compaction => event("context_trim", Severity::Info),
        NoteKind::Permission => event("guardrail", Severity::Info),
        NoteKind::Error if record["severity"] != "warning" => {
            let code = record["error"]["name"]
                .as_str()
                .or(record["error"]["code"].as_str());
            Some(Body::Error(Failure {
                source: Some("llm".to_owned()),
                code: code.map(str::to_owned),
                message: note.text.clone().or_else(|| message(record))?,
                retryable: None,
            }))
        }
        _ => None,
    }
}

/// The record that an error was read from, as fields of the event.
pub(super) fn extra(note: &Note) -> Option<Json> {
    note.raw.clone().filter(|raw| raw.get().starts_with('{'))
}
