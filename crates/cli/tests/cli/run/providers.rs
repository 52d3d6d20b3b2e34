//! One question to every provider.

use serde_json::{Value, json};

use super::{Project, serve};

const WORKFLOW: &str = r#"
name: same
inputs: [{name: who, type: string, required: true}]
states:
  initial: ask
  ask:
    type: agent
    provider: "{{.inputs.who}}"
    prompt: What is in a.txt?
    mcp_proxy: {enable: true}
    on_success: done
  done: {type: terminal, status: success, message: "{{.states.ask.Output}}"}
"#;

/// What the agents print: each says that it looks, reads a file, and answers.
#[expect(clippy::too_many_lines, reason = "a stream for each agent")]
fn streams() -> Vec<(&'static str, &'static str, Vec<Value>)> {
    let claude = |content: Value, id: &str| {
        json!({"type": "assistant", "session_id": "s1", "message": {"id": id, "role": "assistant",
            "model": "claude-sonnet-4-5", "content": content, "usage": {"input_tokens": 3, "output_tokens": 1}}})
    };
    let gemini = |text: &str| json!({"type": "message", "role": "assistant", "content": text, "delta": true});
    let codex = |id: &str, text: &str| json!({"type": "item.completed", "item": {"id": id, "type": "agent_message", "text": text}});
    let listing = |state: &str, output: &str| {
        json!({"id": "i1", "type": "command_execution", "command": "cat a.txt", "aggregated_output": output, "status": state,
            "exit_code": if state == "completed" { json!(0) } else { Value::Null }})
    };
    let copilot = |kind: &str, data: Value| {
        let id = format!("{kind} {}", data["messageId"]);
        json!({"type": kind, "data": data, "id": id, "timestamp": "2026-01-02T03:04:05.000Z"})
    };
    let opencode = |kind: &str, part: Value| {
        let mut part = part;
        part["sessionID"] = "ses_1".into();
        part["messageID"] = "m1".into();
        json!({"type": kind, "timestamp": 1_767_323_045_000_u64, "sessionID": "ses_1", "part": part})
    };
    vec![
        (
            "claude",
            "claude",
            vec![
                json!({"type": "system", "subtype": "init", "session_id": "s1", "model": "claude-sonnet-4-5", "tools": []}),
                claude(
                    json!([{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t1", "name": "NotebookRead", "input": {"path": "a.txt"}}]),
                    "m1",
                ),
                json!({"type": "user", "session_id": "s1", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "one"}]}}),
                claude(json!([{"type": "text", "text": "It says one."}]), "m2"),
                json!({"type": "result", "subtype": "success", "is_error": false, "result": "It says one.", "session_id": "s1", "usage": {"input_tokens": 6, "output_tokens": 2}}),
            ],
        ),
        (
            "codex",
            "codex",
            vec![
                json!({"type": "thread.started", "thread_id": "t1"}),
                json!({"type": "turn.started"}),
                codex("i0", "Let me look."),
                json!({"type": "item.started", "item": listing("in_progress", "")}),
                json!({"type": "item.completed", "item": listing("completed", "one")}),
                codex("i2", "It says one."),
                json!({"type": "turn.completed", "usage": {"input_tokens": 6, "cached_input_tokens": 0, "output_tokens": 2}}),
            ],
        ),
        (
            "gemini",
            "gemini",
            vec![
                json!({"type": "init", "session_id": "s1", "model": "gemini-2.5-pro"}),
                gemini("Let me "),
                gemini("look."),
                json!({"type": "tool_use", "tool_name": "read_file", "tool_id": "t1", "parameters": {"path": "a.txt"}}),
                json!({"type": "tool_result", "tool_id": "t1", "status": "success", "output": "one"}),
                gemini("It says one."),
                json!({"type": "result", "status": "success", "stats": {"input_tokens": 6, "output_tokens": 2}}),
            ],
        ),
        (
            "github_copilot",
            "copilot",
            vec![
                copilot(
                    "assistant.message",
                    json!({"messageId": "m1", "content": "Let me look.", "outputTokens": 1,
                "toolRequests": [{"toolCallId": "c1", "name": "view", "arguments": {"path": "a.txt"}, "type": "function"}]}),
                ),
                copilot(
                    "tool.execution_start",
                    json!({"toolCallId": "c1", "toolName": "view", "arguments": {"path": "a.txt"}}),
                ),
                copilot(
                    "tool.execution_complete",
                    json!({"toolCallId": "c1", "success": true, "result": {"content": "one"}}),
                ),
                copilot(
                    "assistant.message",
                    json!({"messageId": "m2", "content": "It says one.", "toolRequests": [], "outputTokens": 1}),
                ),
                json!({"type": "result", "sessionId": "s1", "exitCode": 0, "usage": {"premiumRequests": 1}}),
            ],
        ),
        (
            "opencode",
            "opencode",
            vec![
                opencode("step_start", json!({"id": "p1", "type": "step-start"})),
                opencode(
                    "text",
                    json!({"id": "p2", "type": "text", "text": "Let me look."}),
                ),
                opencode(
                    "tool_use",
                    json!({"id": "p3", "type": "tool", "callID": "c1", "tool": "read",
                "state": {"status": "completed", "input": {"filePath": "a.txt"}, "output": "one", "title": "a.txt", "metadata": {}}}),
                ),
                opencode(
                    "text",
                    json!({"id": "p5", "type": "text", "text": "It says one."}),
                ),
                opencode(
                    "step_finish",
                    json!({"id": "p6", "type": "step-finish", "reason": "stop", "cost": 0,
                "tokens": {"input": 6, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}}),
                ),
            ],
        ),
    ]
}

/// A server with a model that reads a file when it is asked, and answers when it has its content.
fn model() -> String {
    let chunk = |delta: Value, finish: Option<&str>| {
        let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    serve(move |_, body| {
        let body: Value = serde_json::from_str(body).unwrap();
        let has_result = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["role"] == "tool");
        let said = if has_result {
            [
                chunk(json!({"content": "It says one."}), None),
                chunk(json!({}), Some("stop")),
            ]
            .concat()
        } else {
            let call = json!({"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "Read", "arguments": "{\"path\":\"a.txt\"}"}});
            let called = json!({"content": "Let me look.", "tool_calls": [call]});
            [chunk(called, None), chunk(json!({}), Some("tool_calls"))].concat()
        };
        let usage = "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
        (
            "text/event-stream",
            format!("{said}{usage}data: [DONE]\n\n"),
        )
    })
}

/// The blocks of a step in order; calls and results that are events of their own are blocks as well.
fn blocks(events: &[Value]) -> Vec<String> {
    let mut blocks = Vec::new();
    for event in events.iter().filter(|event| event["path"] == "ask") {
        let kind = event["type"].as_str().unwrap();
        if !event["as"].is_null() {
            continue;
        }
        match kind {
            "message.user" | "message.assistant" => {
                let all = event["payload"]["blocks"].as_array().unwrap();
                blocks.extend(
                    all.iter()
                        .map(|block| format!("{kind} {}", block["type"].as_str().unwrap())),
                );
            }
            "tool.call" | "tool.result" => blocks.push(kind.to_owned()),
            _ => {}
        }
    }
    blocks
}

/// What a provider may have beyond the blocks that all have, by the kind of the event: where a session, a turn or a step
/// of it begins and ends and sums of tokens (notes), the call to the model where Quipu makes it, how the agent was
/// started.
const EXTRAS: &[&str] = &[
    "note",
    "model.call",
    "harness",
    "step.started",
    "step.completed",
];

#[test]
fn one_workflow_through_every_provider_gives_the_same_blocks_in_the_same_order() {
    let address = model();
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    let mut ask = |provider: &'static str, project: &Project| {
        project.file("same.yaml", WORKFLOW);
        project.file("a.txt", "one");
        let args = ["run", "same.yaml", "-i", &format!("who={provider}")];
        let mut command = project.command(&args);
        command
            .env("OPENAI_BASE_URL", format!("{address}/v1"))
            .env("OPENAI_MODEL", "m1")
            .env("OPENAI_API_KEY", "not-a-key");
        let ran = project.ended(command);
        assert_eq!(ran.code, 0, "{provider}: {}", ran.stderr);
        assert!(
            ran.stdout.ends_with("It says one.\n"),
            "{provider}: {}",
            ran.stdout
        );
        let (_, events) = project.only_run();
        all.push((provider, blocks(&events)));
        for event in events.iter().filter(|event| event["path"] == "ask") {
            let kind = event["as"].as_str().or(event["type"].as_str()).unwrap();
            let is_block = kind.starts_with("message.") || kind.starts_with("tool.");
            assert!(is_block || EXTRAS.contains(&kind), "{provider}: {event}");
        }
        project.verified(provider);
    };
    for (provider, program, lines) in streams() {
        let project = Project::empty();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        project.agent(program, &[], text.as_bytes());
        ask(provider, &project);
    }
    ask("openai_compatible", &Project::empty());
    let expected = [
        "message.user text",
        "message.assistant text",
        "tool.call",
        "tool.result",
        "message.assistant text",
    ];
    for (provider, blocks) in &all {
        assert_eq!(blocks, &expected, "{provider}");
    }
}
