//! Notes of agents as records, where the format has a place for them.
//!
//! The categories of harness events are a closed list. A note goes into one only where the word fits what
//! happened; the rest is counted and not carried. It stays in the archive.

use quipu_model::json::{Node, Tape};
use quipu_model::{Note, NoteKind};

use super::text::Object;
use crate::agentlog::{Kind, LIMITS};

/// What becomes of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is a record.
    Record(Kind, String),
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
    let said = note.text.as_deref();
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
        NoteKind::Usage | NoteKind::ModelCall => Fate::Call,
        NoteKind::Error => Fate::Record(Kind::Error, error(said, raw)),
        NoteKind::Retry if Failure::of(said, raw).is_rate_limit() => {
            harness("rate_limit", "warning")
        }
        NoteKind::Retry => harness("retry", "warning"),
        // After each of these the model sees less of what was said than before.
        NoteKind::Compaction | NoteKind::Rewind => harness("context_trim", "info"),
        NoteKind::ModelChange => harness("model_switch", "info"),
        NoteKind::Permission => harness("guardrail", "info"),
        NoteKind::Hook | NoteKind::Subagent => harness("tool_lifecycle", "info"),
        _ => Fate::Dropped,
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
    Object::new()
        .text("source", if failure.is_upstream() { "llm" } else { "sdk" })
        .text("code", failure.code.as_deref().unwrap_or("unknown"))
        .text("message", &failure.message)
        .flag("retriable", failure.is_retriable())
        .number_if("upstream_status", failure.status)
        .end()
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
            r#"{"source":"llm","code":"overloaded_error","message":"busy","retriable":true,"upstream_status":529}"#
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

    #[test]
    fn every_kind_has_a_fate() {
        let dropped: Vec<&str> = NoteKind::ALL
            .iter()
            .filter(|kind| fate(&note(**kind, None, None)) == Fate::Dropped)
            .map(|kind| kind.as_str())
            .collect();
        assert_eq!(dropped.len(), 16, "{dropped:?}");
    }
}
