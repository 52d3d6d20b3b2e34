//! Documents to submit.

use quipu_formats::normalized::Submitter;
use quipu_model::hex;
use serde_json::json;

use crate::TranscriptId;

/// An id that no transcript has.
///
/// # Errors
///
/// The system gives no random bytes.
pub fn fresh_id() -> std::io::Result<TranscriptId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    let hex = hex::encode(&bytes);
    let id = format!(
        "{}-{}-4{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..]
    );
    TranscriptId::parse(&id).map_err(std::io::Error::other)
}

/// A valid transcript: a message, a call, and a result that is a text.
pub fn transcript(id: &TranscriptId, submitter: &Submitter, output: &str) -> Vec<u8> {
    let event = |seq: u64, kind: &str, role: &str| {
        json!({
            "id": format!("ev_{seq:03}"),
            "seq": seq,
            "timestamp": "2026-06-22T10:00:03Z",
            "type": kind,
            "role": role,
        })
    };
    let mut message = event(1, "user_message", "user");
    message["text"] = json!("Run the tests, please.");
    let mut call = event(2, "tool_call", "assistant");
    call["tool"] = json!({"name": "Bash", "callId": "call_1", "input": {"command": "cargo test"}});
    let mut result = event(3, "tool_result", "tool");
    result["tool"] = json!({"name": "Bash", "callId": "call_1", "output": output, "status": "ok"});
    let document = json!({
        "schemaVersion": "0.1.0",
        "transcriptId": id,
        "source": {"agent": "claude-code", "adapter": "claude-code", "adapterVersion": "0.1.0"},
        "session": {"startedAt": "2026-06-22T10:00:00Z", "endedAt": "2026-06-22T10:42:00Z"},
        "submitter": {
            "keyId": submitter.key_id,
            "pseudonym": submitter.pseudonym,
            "identityLinked": submitter.identity_linked.unwrap_or_default(),
        },
        "privacy": {"profile": "research", "redactionApplied": true, "anonymizationApplied": true},
        "metrics": {"eventCount": 3},
        "events": [message, call, result],
    });
    document.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_valid() {
        let id = fresh_id().unwrap();
        assert_ne!(id, fresh_id().unwrap());
        let document = transcript(&id, &Submitter::nobody(), "ok");
        let report = quipu_formats::normalized::verify(&document[..]).unwrap();
        assert!(report.is_valid(), "{report:?}");
        assert_eq!(report.events, 3);
    }
}
