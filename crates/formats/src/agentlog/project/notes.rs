//! Notes of agents as records, where the format has a place for them.
//!
//! The categories of harness events are a closed list. A note goes into one only where the word fits what
//! happened; the rest is counted and not carried. It stays in the archive.
//!
//! A note may keep a record of another trace. Then that is the record, and nothing is worked out anew.

use std::borrow::Cow;

use quipu_model::json::{Node, Tape};
use quipu_model::{Attachment, Note, NoteKind};

use super::settings::Settings;
use super::text::Object;
use crate::agentlog::{ContentId, Kind, LIMITS, verify};

/// What becomes of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is a record.
    Record(Kind, String),
    /// It is the record of another trace, with this payload.
    Kept(Kind, String),
    /// It says what requests are made with.
    Settings(Settings),
    /// It says why an answer ended, in the word of the provider.
    Ended(String),
    /// It belongs to a call to a model.
    Call,
    /// There is no place for it.
    Dropped,
}

/// What becomes of a note.
pub(super) fn fate(note: &Note) -> Fate {
    let mut tape = Tape::new();
    let raw = note
        .raw
        .as_ref()
        .and_then(|raw| tape.read(raw.get(), LIMITS.max_depth).ok());
    if let Some((kind, payload)) = raw.and_then(record) {
        return Fate::Kept(kind, payload.to_owned());
    }
    let said = note.text.as_deref();
    let word = raw.and_then(word);
    let word = word.as_deref().unwrap_or_default();
    let harness = |category: &str, severity: &str| {
        let attributes = Object::new().text_if("text", said);
        let attributes = match &note.raw {
            Some(raw) => attributes.raw("raw", raw.get()),
            None => attributes,
        };
        let payload = harness(category, note.kind.as_str(), severity, attributes);
        Fate::Record(Kind::HarnessEvent, payload)
    };
    match note.kind {
        NoteKind::Usage if is_rate_limit(word, raw) => harness("rate_limit", limit(raw)),
        NoteKind::Usage if BUDGETS.contains(&word) => harness("budget", "info"),
        NoteKind::Usage | NoteKind::ModelCall => Fate::Call,
        NoteKind::Error => Fate::Record(Kind::Error, error(said, raw)),
        NoteKind::Retry
            if Failure::of(said, raw).is_rate_limit() || word.contains("rate_limit") =>
        {
            harness("rate_limit", "warning")
        }
        NoteKind::Retry => harness("retry", "warning"),
        // After each of these the model sees less of what was said than before.
        NoteKind::Compaction | NoteKind::Rewind => harness("context_trim", "info"),
        NoteKind::ModelChange => harness("model_switch", "info"),
        NoteKind::Permission => harness("guardrail", "info"),
        NoteKind::Hook | NoteKind::Subagent => harness("tool_lifecycle", "info"),
        NoteKind::Turn if word == "turn_aborted" => harness("stream_interrupt", "warning"),
        // An answer ended before it was whole: by a limit of its length, or because nothing more came.
        NoteKind::Truncated => match said.filter(|said| is_length(said)) {
            Some(word) => Fate::Ended(word.to_owned()),
            None => harness("stream_interrupt", "warning"),
        },
        _ if word.contains("prompt_cache") => harness("cache", "info"),
        NoteKind::Context => Settings::of(note).map_or(Fate::Dropped, Fate::Settings),
        _ => Fate::Dropped,
    }
}

/// Notes of tokens that say how much may be spent.
const BUDGETS: &[&str] = &[
    "budget_usd",
    "session_limits_exhausted.completed",
    "session_limits_exhausted.requested",
    "token_usage",
    "total_tokens_reminder",
];

/// What a record calls itself, the most exact of several words.
fn word(raw: Node<'_>) -> Option<Cow<'_, str>> {
    let inner = ["payload", "attachment"]
        .iter()
        .find_map(|key| raw.get(key)?.text("type"));
    let own = || {
        ["say", "subtype", "type"]
            .iter()
            .find_map(|key| raw.text(key))
    };
    inner.or_else(own)
}

/// Whether a note of tokens says how near a limit is.
fn is_rate_limit(word: &str, raw: Option<Node<'_>>) -> bool {
    let limits = || raw?.path(&["payload", "rate_limits"]);
    word == "rate_limit_event" || limits().is_some_and(|limits| !limits.is_null())
}

/// How bad it is that a limit is near.
fn limit(raw: Option<Node<'_>>) -> &'static str {
    let status = raw.and_then(|raw| raw.path(&["rate_limit_info", "status"]));
    let status = status
        .and_then(|status| status.as_str())
        .unwrap_or_default();
    match &*status {
        "rejected" => "error",
        "allowed_warning" => "warning",
        _ => "info",
    }
}

/// Whether this is the word for an answer that grew too long.
fn is_length(word: &str) -> bool {
    [
        "max_tokens",
        "length",
        "max_output_tokens",
        "model_context_window_exceeded",
    ]
    .iter()
    .any(|known| word.eq_ignore_ascii_case(known))
}

/// The kind and the payload of a record, where this is one. What `verify` would not take is not.
fn record(raw: Node<'_>) -> Option<(Kind, &str)> {
    raw.get("version")?.as_raw_str()?;
    raw.get("ts")?.as_raw_str()?;
    raw.text("id")?.parse::<ContentId>().ok()?;
    let kind = Kind::from_word(&raw.text("kind")?)?;
    let payload = raw.get("payload")?;
    let carried = !matches!(
        kind,
        Kind::ChatRequest | Kind::ChatResponse | Kind::ToolResult
    );
    (carried && verify::is_payload(kind, payload)).then(|| (kind, payload.raw().get()))
}

/// Whether a note keeps the very record that refers to an attachment.
pub(super) fn tells_of(note: &Note, attachment: &Attachment) -> bool {
    match fate(note) {
        Fate::Kept(Kind::BlobRef, payload) => payload.contains(&attachment.sha256),
        _ => false,
    }
}

/// The payload of a harness event.
pub(super) fn harness(category: &str, name: &str, severity: &str, attributes: Object) -> String {
    let event = Object::new()
        .text("category", category)
        .text("name", name)
        .text("severity", severity);
    if attributes.is_empty() {
        return event.end();
    }
    event.raw("attributes", &attributes.end()).end()
}

/// What a record of a failure says, wherever it says it.
struct Failure {
    message: String,
    code: Option<String>,
    status: Option<u64>,
}

impl Failure {
    fn of(said: Option<&str>, raw: Option<Node<'_>>) -> Self {
        let places = [
            &[][..],
            &["error"],
            &["payload"],
            &["error", "error"],
            &["cause"],
        ];
        let look = |keys: &[&str]| {
            let found = |path: &&[&str]| keys.iter().find_map(|key| raw?.path(path)?.get(key));
            places.iter().find_map(found)
        };
        let text = |node: Option<Node<'_>>| node.and_then(|it| it.as_str()).map(String::from);
        let status = look(&["status", "statusCode", "status_code", "upstream_status"]);
        Self {
            message: said
                .map(str::to_owned)
                .or_else(|| text(look(&["message", "errorMessage", "content"])))
                .unwrap_or_default(),
            code: text(look(&["code"]))
                .or_else(|| text(raw.and_then(|it| it.path(&["error", "type"])))),
            status: status.and_then(|it| it.as_u64()),
        }
    }

    fn is_rate_limit(&self) -> bool {
        let code = self.code.as_deref().unwrap_or_default();
        self.status == Some(429) || code.contains("rate_limit")
    }

    /// Whether the failure is one of a service, by its status or its name.
    fn is_upstream(&self) -> bool {
        self.status.is_some() || self.message.starts_with("API Error") || self.is_rate_limit()
    }

    fn is_retriable(&self) -> bool {
        let overloaded = self
            .code
            .as_deref()
            .is_some_and(|code| code.contains("overloaded"));
        let again = |status| matches!(status, 408 | 409 | 429) || (500..600).contains(&status);
        self.is_rate_limit() || overloaded || self.status.is_some_and(again)
    }
}

fn error(said: Option<&str>, raw: Option<Node<'_>>) -> String {
    let failure = Failure::of(said, raw);
    let error = Object::new()
        .text("source", if failure.is_upstream() { "llm" } else { "sdk" })
        .text("code", failure.code.as_deref().unwrap_or("unknown"))
        .text("message", &failure.message)
        .flag("retriable", failure.is_retriable())
        .number_if("upstream_status", failure.status);
    // What else the log says of it.
    match raw {
        Some(raw) => error.raw("raw", raw.raw().get()).end(),
        None => error.end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_model::Json;

    fn note(kind: NoteKind, text: Option<&str>, raw: Option<&str>) -> Note {
        Note {
            kind,
            text: text.map(str::to_owned),
            raw: raw.map(|raw| Json::parse(raw).unwrap()),
        }
    }

    #[test]
    fn failures_say_what_they_say() {
        let raw = r#"{"error":{"status":529,"type":"overloaded_error","message":"busy"}}"#;
        let Fate::Record(Kind::Error, payload) = fate(&note(NoteKind::Error, None, Some(raw)))
        else {
            panic!("an error");
        };
        assert_eq!(
            payload,
            format!(
                r#"{{"source":"llm","code":"overloaded_error","message":"busy","retriable":true,"upstream_status":529,"raw":{raw}}}"#
            )
        );
        let plain = fate(&note(NoteKind::Error, Some("no such file"), None));
        let expected =
            r#"{"source":"sdk","code":"unknown","message":"no such file","retriable":false}"#;
        assert_eq!(plain, Fate::Record(Kind::Error, expected.to_owned()));
    }

    #[test]
    fn a_retry_after_a_limit_is_a_limit() {
        for (raw, category) in [
            (r#"{"status":429}"#, "rate_limit"),
            (r#"{"status":500}"#, "retry"),
        ] {
            let Fate::Record(_, payload) = fate(&note(NoteKind::Retry, None, Some(raw))) else {
                panic!("a record");
            };
            assert!(
                payload.contains(&format!("\"category\":\"{category}\"")),
                "{payload}"
            );
        }
    }

    /// Each category of the closed list is written for something that a log says.
    #[test]
    fn every_category_is_written() {
        for (kind, text, raw, category, severity) in [
            (
                NoteKind::Retry,
                None,
                r#"{"status":500}"#,
                "retry",
                "warning",
            ),
            (
                NoteKind::Retry,
                None,
                r#"{"type":"say","say":"api_req_rate_limit_wait"}"#,
                "rate_limit",
                "warning",
            ),
            (
                NoteKind::Retry,
                None,
                r#"{"say":"api_req_rate_limit_wait"}"#,
                "rate_limit",
                "warning",
            ),
            (
                NoteKind::Usage,
                None,
                r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}"#,
                "rate_limit",
                "error",
            ),
            (
                NoteKind::Usage,
                None,
                r#"{"type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{}}}}"#,
                "rate_limit",
                "info",
            ),
            (NoteKind::ModelChange, None, "{}", "model_switch", "info"),
            (NoteKind::Compaction, None, "{}", "context_trim", "info"),
            (
                NoteKind::Progress,
                None,
                r#"{"type":"prompt_cache_break"}"#,
                "cache",
                "info",
            ),
            (NoteKind::Permission, None, "{}", "guardrail", "info"),
            (
                NoteKind::Usage,
                None,
                r#"{"type":"attachment","attachment":{"type":"budget_usd"}}"#,
                "budget",
                "info",
            ),
            (
                NoteKind::Turn,
                None,
                r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#,
                "stream_interrupt",
                "warning",
            ),
            (
                NoteKind::Truncated,
                None,
                "{}",
                "stream_interrupt",
                "warning",
            ),
            (NoteKind::Hook, None, "{}", "tool_lifecycle", "info"),
        ] {
            let Fate::Record(Kind::HarnessEvent, payload) = fate(&note(kind, text, Some(raw)))
            else {
                panic!("{kind} {raw}");
            };
            let begin =
                format!(r#"{{"category":"{category}","name":"{kind}","severity":"{severity}""#);
            assert!(payload.starts_with(&begin), "{payload}");
        }
    }

    /// What another trace says is said again as it was, if it is as the format wants it.
    #[test]
    fn a_record_of_another_trace_stays_what_it_is() {
        let record = |kind: &str, payload: &str| {
            let id = format!("sha256:{}", "a".repeat(64));
            format!(
                r#"{{"version":"0.1","id":"{id}","kind":"{kind}","ts":"2026-04-24T10:00:00.000Z","parent":null,"payload":{payload}}}"#
            )
        };
        let limit = r#"{"category":"rate_limit","name":"tokens.limit","severity":"fatal","attributes":{"n":1.50}}"#;
        let kept = fate(&note(
            NoteKind::Retry,
            Some("tokens.limit"),
            Some(&record("harness_event", limit)),
        ));
        assert_eq!(kept, Fate::Kept(Kind::HarnessEvent, limit.to_owned()));
        let error = r#"{"source":"tool","code":"E17","message":"no","retriable":true}"#;
        let kept = fate(&note(
            NoteKind::Error,
            Some("no"),
            Some(&record("error", error)),
        ));
        assert_eq!(kept, Fate::Kept(Kind::Error, error.to_owned()));
        // What the check would not take is put into a shape that it takes.
        let odd = r#"{"category":"weather","name":"rain","severity":"info"}"#;
        let odd = fate(&note(
            NoteKind::Retry,
            None,
            Some(&record("harness_event", odd)),
        ));
        assert!(
            matches!(odd, Fate::Record(Kind::HarnessEvent, _)),
            "{odd:?}"
        );
    }

    #[test]
    fn every_kind_has_a_fate() {
        let dropped: Vec<&str> = NoteKind::ALL
            .iter()
            .filter(|kind| fate(&note(**kind, None, None)) == Fate::Dropped)
            .map(|kind| kind.as_str())
            .collect();
        assert_eq!(dropped.len(), 15, "{dropped:?}");
    }
}
