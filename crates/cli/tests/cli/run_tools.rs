//! Tools of a workflow, through the program: an agent of its own process calls them by MCP.

use super::env::TestEnv;

/// An agent that calls two tools of the server it is pointed at, and says so in its stream.
const AGENT: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do case "$1" in --mcp-config) config=$2; shift;; esac; shift; done
text=$(tr -d '\n' < "$config")
command=$(printf '%s' "$text" | sed 's/.*"command" *: *"\([^"]*\)".*/\1/')
arguments=$(printf '%s' "$text" | sed 's/.*"args" *: *\[\([^]]*\)\].*/\1/' | tr -d '"' | tr ',' ' ')
echo '{"type":"system","subtype":"init","session_id":"s1","model":"claude-sonnet-4-5"}'
echo '{"type":"assistant","session_id":"s1","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"mcp__quipu__Read","input":{"path":"hello.txt"}}],"usage":{"input_tokens":30,"output_tokens":5}}}'
sleep 0.3
{ echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"fake","version":"1"}}}'
  echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Read","arguments":{"path":"hello.txt"}}}'
  sleep 0.5
  echo '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"Read","arguments":{"path":"../secret.txt"}}}'
  sleep 0.5; } | $command $arguments > answers.jsonl
echo '{"type":"user","session_id":"s1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"hi there"}]}}'
echo '{"type":"result","subtype":"success","result":"It says hi.","session_id":"s1"}'
"#;

const WORKFLOW: &str = r#"
name: tools
states:
  initial: ask
  ask:
    type: agent
    provider: claude
    prompt: "Read hello.txt"
    mcp_proxy: {enable: true}
    on_success: done
  done: {type: terminal, status: success, message: "{{.states.ask.Output}}"}
"#;

#[test]
fn an_agent_reaches_the_tools_of_its_run_and_each_call_counts_once() {
    let env = TestEnv::new();
    let agent = env.file("bin/claude", AGENT);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&agent, mode).unwrap();
    env.file("root/hello.txt", "hi there\n");
    env.file("secret.txt", "secret\n");
    env.file("root/tools.yaml", WORKFLOW);
    let bin = env.path("bin");
    let output = env
        .command(&["run", "tools.yaml"])
        .current_dir(env.path("root"))
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"It says hi.\n");
    let answers = std::fs::read_to_string(env.path("root/answers.jsonl")).unwrap();
    assert!(
        answers.contains("hi there") && answers.contains("leads out of"),
        "{answers}"
    );
    assert!(!answers.contains("secret\\n"), "{answers}");

    let stats = env.run(&["stats", "--by", "tool", "--json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats["total"]["did"]["tool_calls"], 2, "{stats:#}");
    let list = env.run(&["list", "--jsonl"]);
    let row: serde_json::Value = serde_json::from_str(list.stdout.lines().next().unwrap()).unwrap();
    let id = row["run_id"].as_str().unwrap().to_owned();
    let events = env.run(&["show", &id, "--jsonl"]);
    let calls: Vec<serde_json::Value> = events
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &serde_json::Value| event["type"] == "tool.call")
        .collect();
    let seen: Vec<(&str, &str, &str)> = calls
        .iter()
        .map(|call| {
            let text = |key: &str| call["payload"][key].as_str().unwrap();
            (text("name"), text("call_id"), text("fidelity"))
        })
        .collect();
    assert_eq!(
        seen[0],
        ("Read", "toolu_1", "router"),
        "the router has the model's own id"
    );
    assert_eq!((seen.len(), seen[1].0, seen[1].2), (2, "Read", "router"));
    assert!(calls.iter().all(|call| call["path"] == "ask"));
    let verified = env.run(&["verify", &id]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

#[test]
fn a_server_behind_the_proxy_answers_as_it_does_without_and_is_recorded() {
    let env = TestEnv::new();
    let server = env.file(
        "server.sh",
        "read first\nprintf '%s\\n' '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"pong\"}]}}'\nprintf 'odd \\000 bytes'\nexit 7\n",
    );
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ping\",\"arguments\":{\"n\":1}}}\n";
    let ran = env.run_with(
        &["mcp-proxy", "--run", "tee-1", "--", "/bin/sh", &server],
        call,
    );
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(
        ran.stdout.ends_with("odd \0 bytes") && ran.stdout.contains("pong"),
        "{ran:?}"
    );
    let events = env.run(&["show", "tee-1", "--jsonl"]);
    let types: Vec<String> = events
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        types.contains(&"tool.call".to_owned()) && types.contains(&"tool.result".to_owned()),
        "{types:?}"
    );
    assert_eq!(
        (types[0].as_str(), types.last().unwrap().as_str()),
        ("run.started", "run.completed")
    );
}
