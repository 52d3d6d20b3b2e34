use insta::assert_snapshot;

use crate::testkit::read;

const SESSION: &str = concat!(
    r#"{"type":"summary","summary":"Greeting","leafUuid":"u2"}"#,
    "\n",
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/work","gitBranch":"main","version":"2.1.200","isSidechain":false,"message":{"role":"user","content":"list the files"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s1","timestamp":"2026-01-02T03:04:06.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"","signature":"abc"}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":1}}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u3","parentUuid":"u2","sessionId":"s1","timestamp":"2026-01-02T03:04:07.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":42}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","timestamp":"2026-01-02T03:04:09.500Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a\nb"}]},"toolUseResult":{"stdout":"a\nb","interrupted":false}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","message":{"role":"user","content":"again"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u5","sessionId":"s1","timestamp":"2026-01-02T03:04:10.000Z","message":{"id":"m2","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}},"isApiErrorMessage":true}"#,
    "\n",
    r#"{"type":"user","uuid":"u6","sessionId":"s1","isMeta":true,"message":{"role":"user","content":"<system-reminder>x</system-reminder>"}}"#,
    "\n",
    r#"{"type":"wonder","uuid":"u7","sessionId":"s1","sparkle":1}"#,
    "\n",
);

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "s.jsonl").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(3), Some(10), Some(5), Some(42))
    );
}
