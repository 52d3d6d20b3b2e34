//! What is written from a run never looks better than the run.

use super::{Dir, lines, write};
use crate::flow::{FlowOptions, Rule};
use crate::loss::Loss;

const TRANSCRIPT: &str = "build/llm/impl-coder-claude.jsonl";
const RECEIPT: &str = "build/receipts/impl-coder.json";

fn dir(status: &str, prompt: i64) -> Dir {
    let dir = Dir::new("run-1");
    dir.put(
        TRANSCRIPT,
        "{\"timestamp\": \"2025-12-09T14:30:22.100000Z\", \"role\": \"user\", \"content\": \"Go.\"}\n",
    );
    dir.put(
        RECEIPT,
        format!(
            r#"{{"engine": "claude-step", "model": "claude-sonnet-4", "step_id": "impl", "flow_key": "build", "run_id": "run-1", "agent_key": "coder", "started_at": "2025-12-09T14:30:22.000000Z", "completed_at": "2025-12-09T14:30:23.000000Z", "duration_ms": 1000, "status": "{status}", "tokens": {{"prompt": {prompt}, "completion": 5, "total": 15}}, "transcript_path": "llm/impl-coder-claude.jsonl"}}"#
        ),
    );
    dir
}

/// The run, written again.
fn again(dir: &Dir) -> (Dir, Loss) {
    let (run, events) = dir.read();
    let (files, loss, list) = write(&run.header, &events, &FlowOptions::default());
    let made = Dir::new("run-1");
    for (name, bytes) in &files {
        made.put(name, bytes);
    }
    let names: Vec<&str> = list.lines().collect();
    assert_eq!(names.len(), files.len());
    (made, loss)
}

#[test]
fn a_status_that_is_not_known_is_no_success() {
    for (word, written) in [
        ("skipped", "failed"),
        ("canceled", "failed"),
        ("completed", "succeeded"),
    ] {
        let (made, loss) = again(&dir(word, 10));
        let receipt = made.text(RECEIPT);
        assert!(
            receipt.contains(&format!("\"status\": \"{written}\"")),
            "{receipt}"
        );
        assert!(
            receipt.contains(&format!("\"native_status\": \"{word}\"")),
            "{receipt}"
        );
        assert_eq!(loss.inferred["status"].count, 1);
        assert_eq!(made.broken(), []);
        // It is not said to have failed, and says the same when it is written once more.
        let (_, events) = made.read();
        assert!(!lines(&events).contains(r#""error":"failed""#));
        let (twice, _) = again(&made);
        assert_eq!(twice.text(RECEIPT), receipt);
    }
    for word in ["succeeded", "failed"] {
        let (made, loss) = again(&dir(word, 10));
        let receipt = made.text(RECEIPT);
        assert!(receipt.contains(&format!("\"status\": \"{word}\"")));
        assert!(!receipt.contains("native_status"));
        assert!(!loss.inferred.contains_key("status"));
    }
}

#[test]
fn counts_below_zero_are_counted() {
    let (_, loss) = again(&dir("succeeded", -1));
    assert_eq!(loss.dropped["tokens"].count, 1);
    let (_, loss) = again(&dir("succeeded", 10));
    assert!(!loss.dropped.contains_key("tokens"));
}

#[test]
fn a_transcript_that_is_missing_stays_missing() {
    let dir = dir("succeeded", 10);
    dir.remove(TRANSCRIPT);
    assert_eq!(dir.broken(), [Rule::TranscriptMissing]);
    let (made, loss) = again(&dir);
    assert_eq!(loss.dropped["transcript"].count, 1);
    assert!(!made.path().join(TRANSCRIPT).exists());
    let receipt = made.text(RECEIPT);
    assert!(receipt.contains("\"transcript_path\": \"llm/impl-coder-claude.jsonl\""));
    assert!(!receipt.contains("transcript_sha256"));
    assert_eq!(made.broken(), [Rule::TranscriptMissing]);
    let (twice, _) = again(&made);
    assert_eq!(twice.text(RECEIPT), receipt);
}

#[test]
fn an_empty_transcript_is_there() {
    let dir = dir("succeeded", 10);
    dir.put(TRANSCRIPT, "");
    let (made, loss) = again(&dir);
    assert!(made.path().join(TRANSCRIPT).exists());
    assert!(!loss.dropped.contains_key("transcript"));
    assert_eq!(made.broken(), []);
}

#[test]
fn a_run_that_was_canceled_did_not_succeed() {
    let dir = dir("succeeded", 10);
    dir.put(
        "meta.json",
        r#"{"id": "run-1", "status": "canceled", "started_at": "2025-12-09T14:30:22Z", "completed_at": "2025-12-09T14:30:24Z"}"#,
    );
    let (made, _) = again(&dir);
    let meta = made.text("meta.json");
    assert!(meta.contains("\"status\": \"failed\""), "{meta}");
    assert!(meta.contains("\"error\": \"canceled\""), "{meta}");
}

#[test]
fn a_directory_among_the_receipts_is_said() {
    let dir = dir("succeeded", 10);
    std::fs::create_dir(dir.path().join("build/receipts/x.json")).unwrap();
    assert_eq!(dir.broken(), [Rule::ReceiptUnreadable]);
}
