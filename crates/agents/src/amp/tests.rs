use insta::assert_snapshot;

use crate::testkit::{hostile, read};

const THREAD: &str = r#"{
  "v": 7, "id": "T-1", "title": "Listing", "created": 1767323045000, "agentMode": "medium",
  "env": {"initial": {"trees": [{"uri": "file:///tmp/a%20b", "displayName": "a b"}], "platform": {"clientVersion": "0.0.1"}}},
  "messages": [
    {"role": "user", "messageId": 1, "protocolMessageID": "M-1", "content": [{"type": "text", "text": "list"}, {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "aGVsbG8="}}], "meta": {"sentAt": 1767323046000}},
    {"role": "assistant", "messageId": 2, "protocolMessageID": "M-2", "content": [{"type": "thinking", "thinking": "", "signature": "x", "provider": "openai", "openAIReasoning": {"id": "r", "encryptedContent": "x"}}, {"type": "tool_use", "id": "TU-1", "name": "shell_command", "input": {"command": "ls"}, "complete": true, "startTime": 1767323047000}], "state": {"type": "complete", "stopReason": "tool_use"}, "usage": {"model": "gpt-5", "inputTokens": 0, "outputTokens": 5, "cacheCreationInputTokens": 11, "cacheReadInputTokens": 3, "totalInputTokens": 14, "maxInputTokens": 100, "timestamp": "2026-01-02T03:04:07.000Z"}},
    {"role": "user", "messageId": 3, "protocolMessageID": "M-3", "content": [{"type": "tool_result", "toolUseID": "TU-1", "run": {"status": "done", "result": {"output": "no", "exitCode": 2}}}]},
    {"role": "assistant", "messageId": 4, "protocolMessageID": "M-4", "content": [{"type": "text", "text": "done"}, {"type": "tool_use", "id": "TU-2", "name": "x", "input": {}}], "usage": {"model": "claude-x", "inputTokens": 1, "outputTokens": 2, "cacheCreationInputTokens": 4, "cacheReadInputTokens": null}},
    {"role": "user", "messageId": 5, "content": [{"type": "tool_result", "toolUseID": "TU-2", "run": {"status": "rejected-by-user"}}]}
  ]
}"#;

#[test]
fn a_thread() {
    let read = read(THREAD.as_bytes(), "T-1.json").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(12), Some(3), Some(4), Some(7))
    );
    assert_eq!(read.session.cwd.as_deref(), Some("/tmp/a b"));
    assert_eq!(read.blobs, 1);
}

#[test]
fn broken_documents() {
    hostile(&super::Amp, super::THREAD, THREAD);
}
