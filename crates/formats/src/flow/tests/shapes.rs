//! One transcript of each shape, as its writer writes it.

use super::{Dir, golden, lines};
use crate::flow::shape::Shape;

const T1: &str = r##"{"timestamp": "2025-12-09T14:30:22.000000Z", "role": "system", "content": "You are the coder."}
{"timestamp": "2025-12-09T14:30:22.100000Z", "role": "user", "content": "Add a health check."}
{"timestamp": "2025-12-09T14:30:23.200000Z", "role": "assistant", "content": "I read the tests first."}
{"timestamp": "2025-12-09T14:30:23.300000Z", "role": "tool", "tool_name": "Read", "tool_input": {"file_path": "/code/t.md"}, "content": "# Tests\n"}
{"timestamp": "2025-12-09T14:30:24.500000Z", "role": "tool", "tool_name": "Bash", "tool_input": {"command": "pytest"}, "tool_output": "1 passed"}
{"timestamp": "2025-12-09T14:30:25.000000Z", "role": "tool", "tool_name": "Bash", "tool_input": {"command": "sleep 99"}}
"##;
const T2: &str = r#"{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "system", "content": "Executing step impl with agent coder"}
{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "user", "content": "Step role: Implement"}
{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "assistant", "content": "[STUB] Completed step impl. In production, this would contain the actual Claude response."}
"#;
const T3: &str = r#"{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "system", "content": "[STUB WORKER] Executing step impl with agent coder"}
{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "assistant", "content": "[STUB] Completed step impl. Work phase done."}
"#;
const T4: &str = r#"{"timestamp": "2025-12-09T10:20:43+00:00Z", "type": "message", "role": "assistant", "content": "Looking."}
{"timestamp": "2025-12-09T10:20:44+00:00Z", "type": "tool_use", "tool": "Read", "input": {"file_path": "/code/a"}}
{"timestamp": "2025-12-09T10:20:44+00:00Z", "type": "tool_use", "tool": "Read", "input": {"file_path": "/code/b"}}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "type": "tool_result", "tool": "Read", "success": true, "output": "A"}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "type": "tool_result", "tool": "Read", "success": false, "output": "no such file"}
{"timestamp": "2025-12-09T10:20:46+00:00Z", "type": "error", "error": "overloaded"}
{"timestamp": "2025-12-09T10:20:46+00:00Z", "type": "result", "usage": {"prompt": 10, "completion": 4, "total": 14}}
"#;
const T5: &str = r#"{"timestamp": "2025-12-09T10:20:43+00:00Z", "type": "SystemMessage", "content": "{'cwd': '/code'}"}
{"timestamp": "2025-12-09T10:20:44+00:00Z", "type": "AssistantMessage", "content": "[TextBlock(text=\"It's here.\"), ToolUseBlock(id='toolu_1', name='Read', input={'file_path': '/code/a', 'all': True})]", "model": "claude-sonnet-4", "parent_tool_use_id": null}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "type": "UserMessage", "content": "[ToolResultBlock(tool_use_id='toolu_1', content='A\\n', is_error=None)]"}
{"timestamp": "2025-12-09T10:20:46+00:00Z", "type": "AssistantMessage", "content": "[TextBlock(text='cut o"}
{"timestamp": "2025-12-09T10:20:47+00:00Z", "type": "result"}
"#;
const T6: &str = r#"{"timestamp": "2025-12-09T10:20:43+00:00Z", "phase": "work", "type": "assistant", "content": "Working."}
{"timestamp": "2025-12-09T10:20:44+00:00Z", "phase": "work", "type": "tool_use", "tool": "Bash"}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "phase": "work", "type": "tool_result", "tool": "Bash", "success": true}
{"timestamp": "2025-12-09T10:20:46+00:00Z", "phase": "work", "type": "tool_use", "tool": "Write", "blocked": true, "block_reason": "outside of the workspace"}
{"timestamp": "2025-12-09T10:20:47+00:00Z", "phase": "work", "type": "surprise", "content": "?"}
"#;
const T7: &str = r#"{"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/code", "model": "claude-opus-4", "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "assistant", "message": {"id": "m1", "role": "assistant", "model": "claude-opus-4", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Reading."}, {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/code/a"}}]}, "session_id": "s1", "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"}]}, "session_id": "s1", "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "result", "subtype": "success", "usage": {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 50}, "total_cost_usd": 0.0123, "num_turns": 2, "session_id": "s1", "timestamp": "2025-12-09T10:20:43+00:00Z"}
"#;
const T8: &str = r#"{"type": "init", "session_id": "g1", "model": "gemini-2.5-pro", "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "message", "role": "user", "content": "Do it.", "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "message", "role": "assistant", "content": "On ", "delta": true, "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "message", "role": "assistant", "content": "it.", "delta": true, "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "tool_use", "tool_name": "read_file", "tool_id": "r1", "parameters": {"path": "/code/a"}, "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "tool_result", "tool_id": "r1", "status": "error", "error": {"type": "x", "message": "no such file"}, "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "text", "message": "Loaded cached credentials.", "timestamp": "2025-12-09T10:20:43+00:00Z"}
{"type": "result", "status": "success", "stats": {"total_tokens": 30, "input_tokens": 20, "output_tokens": 10, "cached": 5, "duration_ms": 9}, "timestamp": "2025-12-09T10:20:43+00:00Z"}
"#;
const T9: &str = r#"{"timestamp": "2025-12-09T10:20:43Z", "role": "user", "content": "Go."}
{"timestamp": "2025-12-09T10:20:44Z", "type": "tool_use", "tool": "Bash", "input": {"command": "ls"}}
{"timestamp": "2025-12-09T10:20:45Z", "type": "tool_result", "tool": "Bash", "success": true, "output": "a\nb"}
{"timestamp": "2025-12-09T10:20:46Z", "role": "assistant", "content": "Two files."}
"#;

pub(super) const ALL: &[(&str, &[Shape], &str)] = &[
    ("T1", &[Shape::Documented], T1),
    ("T2", &[Shape::Documented, Shape::Stub], T2),
    ("T3", &[Shape::StubWorker], T3),
    ("T4", &[Shape::SdkLegacy], T4),
    ("T5", &[Shape::SdkClasses], T5),
    ("T6", &[Shape::SdkSession], T6),
    ("T7", &[Shape::ClaudeCli], T7),
    ("T8", &[Shape::GeminiCli], T8),
    ("T9", &[Shape::Documented, Shape::Contract], T9),
];

#[test]
fn each_shape_is_known_and_reads_the_same_as_ever() {
    for (name, shapes, text) in ALL {
        let dir = Dir::new("run-1");
        dir.put("build/llm/impl-coder-claude.jsonl", text);
        let (run, events) = dir.read();
        assert_eq!(run.steps[0].shapes, *shapes, "{name}");
        let step = &run.steps[0];
        assert_eq!((step.step.as_str(), step.agent.as_str()), ("impl", "coder"));
        golden(&format!("{name}.jsonl"), &lines(&events));
        // The short name is the one in the table.
        assert!(shapes.iter().any(|shape| shape.as_str() == *name), "{name}");
    }
}

#[test]
fn usage_and_cost_are_counted_once() {
    let dir = Dir::new("run-1");
    dir.put("build/llm/impl-coder-claude.jsonl", T7);
    // A receipt of the command leaves out what was cached, and the cost.
    let receipt = r#"{"engine":"claude-step","mode":"cli","model":"claude-sonnet-4-20250514","step_id":"impl","flow_key":"build","run_id":"run-1","agent_key":"coder","started_at":"2025-12-09T10:20:40+00:00Z","completed_at":"2025-12-09T10:20:43+00:00Z","duration_ms":3000,"status":"succeeded","tokens":{"prompt":10,"completion":50,"total":60},"transcript_path":"llm/impl-coder-claude.jsonl"}"#;
    dir.put("build/receipts/impl-coder.json", receipt);
    let (run, events) = dir.read();
    let usage = run.header.totals.usage;
    assert_eq!(usage.total(), 3260);
    assert_eq!((usage.input, usage.cache_read), (Some(10), Some(3000)));
    assert_eq!(run.header.totals.cost.unwrap().to_string(), "0.0123");
    let told = events
        .iter()
        .filter(|event| event.annotations.usage.is_some());
    assert_eq!(told.count(), 1);
    // The stream says which model it was; the receipt of this writer always says the same one.
    assert_eq!(run.header.totals.models, ["claude-opus-4"]);
}

#[test]
fn outputs_that_were_cut_say_so() {
    let dir = Dir::new("run-1");
    let output = "x".repeat(500);
    let line = format!(
        r#"{{"timestamp": "2025-12-09T10:20:45Z", "type": "tool_result", "tool": "Read", "success": true, "output": "{output}"}}"#
    );
    dir.put("build/llm/impl-coder-claude.jsonl", line);
    let (_, events) = dir.read();
    assert!(lines(&events).contains(r#""kind":"truncated""#));
}
