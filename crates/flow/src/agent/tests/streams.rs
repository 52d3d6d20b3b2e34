//! What agents print, as it is heard.

use std::path::Path;

use quipu_model::{Body, Fidelity, Money};

use super::{Fake, fixture};
use crate::agent::{AskFailure, SessionHandle};

#[tokio::test]
async fn claude_is_heard_event_by_event_and_its_last_record_is_the_answer() {
    let fake = Fake::printing(&fixture("claude-stream/stdout.jsonl"));
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.output, "It says one.");
    assert_eq!(answer.model.as_deref(), Some("claude-sonnet-4-5"));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input, usage.output), (Some(40), Some(25)));
    assert_eq!(answer.cost, Money::parse("0.001"));
    let session = answer.session.unwrap();
    assert_eq!(
        session.id.as_deref(),
        Some("0b7c1111-0000-4000-8000-000000000001")
    );
    assert_eq!(answer.exit_code, Some(0));
    assert!(!answer.simulated);
    assert_eq!(
        ear.lines(),
        [
            "note session",
            "thinking I should read it.",
            "text Reading.",
            "call Read toolu_01",
            "result Read toolu_01",
            "thinking ",
            "text It says one.",
            "note session",
        ]
    );
    let counted = ear.events.iter().filter_map(|(_, notes)| notes.usage);
    let input: u64 = counted.filter_map(|usage| usage.input).sum();
    assert_eq!(input, 40, "every call to the model is counted once");
    let calls = ear.events.iter().filter_map(|(body, _)| match body {
        Body::ToolCall(call) => Some(call.fidelity),
        _ => None,
    });
    assert_eq!(calls.collect::<Vec<_>>(), [Fidelity::AgentEmitted]);
}

#[tokio::test]
async fn the_tokens_of_a_codex_thread_that_goes_on_are_those_of_the_turn() {
    let fake = Fake::printing(&fixture("codex-exec/stdout.jsonl"));
    let first = fake.ask(&fake.request("codex")).await.0.unwrap();
    assert_eq!(first.usage.unwrap().output, Some(12));
    // The thread reports its sum so far, as Codex does.
    let more = br#"{"type":"thread.started","thread_id":"019b7a00-0000-7000-8000-000000000001"}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"More."}}
{"type":"turn.completed","usage":{"input_tokens":160,"cached_input_tokens":50,"output_tokens":20}}
"#;
    let fake = Fake::printing(more);
    let mut request = fake.request("codex");
    request.session = first.session;
    let (second, ear) = fake.ask(&request).await;
    let second = second.unwrap();
    let usage = second.usage.unwrap();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(50), Some(10), Some(8))
    );
    let noted = ear.events.iter().find_map(|(_, notes)| notes.usage);
    assert_eq!(noted, Some(usage), "the record says the same as the answer");
    let sum = second.session.unwrap().counted.unwrap();
    assert_eq!((sum.input, sum.output), (Some(110), Some(20)));
}

#[tokio::test]
async fn deltas_of_gemini_are_one_text_without_line_ends_between_them() {
    let stream = br#"{"type":"init","timestamp":"2026-01-15T10:00:00Z","session_id":"s1","model":"gemini-2.5-pro"}
{"type":"message","timestamp":"2026-01-15T10:00:01Z","role":"user","content":"What is in a.txt?"}
{"type":"message","timestamp":"2026-01-15T10:00:02Z","role":"assistant","content":"It ","delta":true}
{"type":"message","timestamp":"2026-01-15T10:00:02Z","role":"assistant","content":"says one.","delta":true}
{"type":"result","timestamp":"2026-01-15T10:00:03Z","status":"success","stats":{"total_tokens":15,"input_tokens":10,"output_tokens":5}}
"#;
    let fake = Fake::printing(stream);
    let (answer, ear) = fake.ask(&fake.request("gemini")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.output, "It says one.");
    assert_eq!(answer.session.unwrap().id.as_deref(), Some("s1"));
    assert_eq!(answer.model.as_deref(), Some("gemini-2.5-pro"));
    assert!(
        !ear.lines().contains(&"user".to_owned()),
        "the prompt that the agent repeats is not a second prompt"
    );
}

#[tokio::test]
async fn copilot_and_opencode_answer_with_their_own_sessions_tokens_and_cost() {
    let fake = Fake::printing(&fixture("copilot/stdout.jsonl"));
    let answer = fake.ask(&fake.request("github_copilot")).await.0.unwrap();
    assert_eq!(answer.output, "There is a.txt.");
    let session = answer.session.unwrap();
    assert_eq!(
        session.id.as_deref(),
        Some("6c0d3333-0000-4000-8000-000000000001")
    );
    assert_eq!(answer.usage.unwrap().output, Some(17));

    let fake = Fake::printing(&fixture("opencode-run/stdout.jsonl"));
    let answer = fake.ask(&fake.request("opencode")).await.0.unwrap();
    assert_eq!(answer.output, "It says one.");
    let session = answer.session.unwrap();
    assert_eq!(session.id.as_deref(), Some("ses_1111222233334444"));
    assert_eq!(answer.usage.unwrap().input, Some(110));
    assert_eq!(answer.cost, Money::parse("0.003"));
}

#[tokio::test]
async fn vibe_is_heard_by_lines_by_a_list_and_by_text() {
    let lines = fixture("vibe/tools.jsonl");
    let list = format!(
        "[\n{}\n]\n",
        String::from_utf8(lines.clone())
            .unwrap()
            .trim()
            .replace('\n', ",\n")
    );
    let expected = [
        "text Let me look.",
        "call read_file call_1",
        "result read_file call_1",
        "thinking Short.",
        "text It says one.",
    ];
    for stream in [lines, list.into_bytes()] {
        let fake = Fake::printing(&stream);
        let (answer, ear) = fake.ask(&fake.request("mistral_vibe")).await;
        assert_eq!(answer.unwrap().output, "It says one.");
        let mut heard = ear.lines();
        heard.retain(|line| line != "message.system");
        assert_eq!(heard, expected);
    }
    let fake = Fake::printing(b"It says\none.\n");
    let (answer, ear) = fake.ask(&fake.request("mistral_vibe")).await;
    assert_eq!(answer.unwrap().output, "It says\none.");
    assert_eq!(ear.lines(), ["text It says\none."]);
}

#[tokio::test]
async fn a_vibe_session_goes_on_by_what_was_said() {
    let fake = Fake::printing(b"It says one.\n");
    let mut request = fake.request("mistral_vibe");
    request.keep_session = true;
    request.system_prompt = Some("Be short.".to_owned());
    let (first, ear) = fake.ask(&request).await;
    assert_eq!(ear.argv[2], "Be short.\n\nWhat is in a.txt?");
    request.session = first.unwrap().session;
    request.prompt = "And in b.txt?".to_owned();
    let (_, ear) = fake.ask(&request).await;
    let prompt = &ear.argv[2];
    assert!(prompt.starts_with("Be short.\n\n"), "{prompt}");
    assert!(prompt.contains("User: What is in a.txt?"), "{prompt}");
    assert!(prompt.contains("Assistant: It says one."), "{prompt}");
    assert!(prompt.ends_with("User: And in b.txt?"), "{prompt}");
}

/// One question to five agents: each says something, reads a file, and answers.
#[tokio::test]
async fn five_agents_that_do_the_same_are_recorded_as_the_same_blocks_in_the_same_order() {
    let streams: [(&str, &str); 5] = [
        (
            "claude",
            r#"{"type":"system","subtype":"init","session_id":"0b7c1111-0000-4000-8000-000000000001","cwd":"/w","model":"claude-sonnet-4-5","tools":[]}
{"type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-4-5","role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"a.txt"}}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"0b7c1111-0000-4000-8000-000000000001"}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"one"}]},"parent_tool_use_id":null,"session_id":"0b7c1111-0000-4000-8000-000000000001"}
{"type":"assistant","message":{"id":"msg_2","model":"claude-sonnet-4-5","role":"assistant","content":[{"type":"text","text":"It says one."}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"0b7c1111-0000-4000-8000-000000000001"}
{"type":"result","subtype":"success","is_error":false,"result":"It says one.","session_id":"0b7c1111-0000-4000-8000-000000000001","usage":{"input_tokens":6,"output_tokens":2}}
"#,
        ),
        (
            "codex",
            r#"{"type":"thread.started","thread_id":"t1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Let me look."}}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"cat a.txt","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"cat a.txt","aggregated_output":"one","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"It says one."}}
{"type":"turn.completed","usage":{"input_tokens":6,"cached_input_tokens":0,"output_tokens":2}}
"#,
        ),
        (
            "gemini",
            r#"{"type":"init","timestamp":"2026-01-15T10:00:00Z","session_id":"s1","model":"gemini-2.5-pro"}
{"type":"message","timestamp":"2026-01-15T10:00:01Z","role":"user","content":"What is in a.txt?"}
{"type":"message","timestamp":"2026-01-15T10:00:02Z","role":"assistant","content":"Let me ","delta":true}
{"type":"message","timestamp":"2026-01-15T10:00:02Z","role":"assistant","content":"look.","delta":true}
{"type":"tool_use","timestamp":"2026-01-15T10:00:03Z","tool_name":"read_file","tool_id":"t1","parameters":{"path":"a.txt"}}
{"type":"tool_result","timestamp":"2026-01-15T10:00:04Z","tool_id":"t1","status":"success","output":"one"}
{"type":"message","timestamp":"2026-01-15T10:00:05Z","role":"assistant","content":"It says one.","delta":true}
{"type":"result","timestamp":"2026-01-15T10:00:06Z","status":"success","stats":{"total_tokens":8,"input_tokens":6,"output_tokens":2}}
"#,
        ),
        (
            "github_copilot",
            r#"{"type":"user.message","data":{"content":"What is in a.txt?","attachments":[]},"id":"e1","timestamp":"2026-01-02T03:04:05.000Z","parentId":null}
{"type":"assistant.message","data":{"messageId":"m1","content":"Let me look.","toolRequests":[{"toolCallId":"c1","name":"view","arguments":{"path":"a.txt"},"type":"function"}],"outputTokens":1},"id":"e2","timestamp":"2026-01-02T03:04:06.000Z","parentId":"e1"}
{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"view","arguments":{"path":"a.txt"}},"id":"e3","timestamp":"2026-01-02T03:04:06.100Z","parentId":"e2"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"one"}},"id":"e4","timestamp":"2026-01-02T03:04:06.200Z","parentId":"e3"}
{"type":"assistant.message","data":{"messageId":"m2","content":"It says one.","toolRequests":[],"outputTokens":1},"id":"e5","timestamp":"2026-01-02T03:04:07.000Z","parentId":"e4"}
{"type":"result","timestamp":"2026-01-02T03:04:07.100Z","sessionId":"6c0d3333-0000-4000-8000-000000000001","exitCode":0,"usage":{"premiumRequests":1}}
"#,
        ),
        (
            "opencode",
            r#"{"type":"step_start","timestamp":1767323045000,"sessionID":"ses_1","part":{"id":"p1","sessionID":"ses_1","messageID":"m1","type":"step-start"}}
{"type":"text","timestamp":1767323045000,"sessionID":"ses_1","part":{"id":"p2","sessionID":"ses_1","messageID":"m1","type":"text","text":"Let me look.","time":{"start":1767323045000,"end":1767323045000}}}
{"type":"tool_use","timestamp":1767323046000,"sessionID":"ses_1","part":{"id":"p3","sessionID":"ses_1","messageID":"m1","type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"filePath":"a.txt"},"output":"one","title":"a.txt","metadata":{},"time":{"start":1767323045500,"end":1767323045900}}}}
{"type":"step_finish","timestamp":1767323047000,"sessionID":"ses_1","part":{"id":"p4","sessionID":"ses_1","messageID":"m1","type":"step-finish","reason":"tool-calls","cost":0,"tokens":{"input":3,"output":1,"reasoning":0,"cache":{"read":0,"write":0}}}}
{"type":"text","timestamp":1767323048000,"sessionID":"ses_1","part":{"id":"p5","sessionID":"ses_1","messageID":"m2","type":"text","text":"It says one.","time":{"start":1767323047500,"end":1767323048000}}}
{"type":"step_finish","timestamp":1767323049000,"sessionID":"ses_1","part":{"id":"p6","sessionID":"ses_1","messageID":"m2","type":"step-finish","reason":"stop","cost":0,"tokens":{"input":3,"output":1,"reasoning":0,"cache":{"read":0,"write":0}}}}
"#,
        ),
    ];
    for (provider, stream) in streams {
        let fake = Fake::printing(stream.as_bytes());
        let (answer, ear) = fake.ask(&fake.request(provider)).await;
        let answer = answer.unwrap();
        assert!(answer.output.ends_with("It says one."), "{provider}");
        assert_eq!(
            ear.blocks(),
            ["text", "tool_use", "tool_result", "text"],
            "{provider}"
        );
        assert!(!ear.lines().contains(&"user".to_owned()), "{provider}");
        assert_eq!(answer.usage.unwrap().output, Some(2), "{provider}");
        // The extras: where a session begins and ends, turns, steps, sums of tokens.
        let extras = ["note session", "note turn", "note progress", "note usage"];
        for line in ear.lines() {
            let is_block = ["text", "call", "result"]
                .iter()
                .any(|it| line.starts_with(it));
            assert!(is_block || extras.contains(&&*line), "{provider}: {line}");
        }
    }
}

#[tokio::test]
async fn what_an_agent_calls_an_error_is_a_failure_with_its_words() {
    let failures: [(&str, &str, &str); 6] = [
        (
            "claude",
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low","session_id":"s"}"#,
            "Credit balance is too low",
        ),
        (
            "claude",
            r#"{"type":"result","subtype":"error_max_turns","is_error":false,"session_id":"s","num_turns":3}"#,
            "error_max_turns",
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"usage limit reached"}}"#,
            "usage limit reached",
        ),
        (
            "gemini",
            r#"{"type":"result","timestamp":"2026-01-15T10:00:06Z","status":"error","error":{"type":"x","message":"no quota"},"stats":{}}"#,
            "no quota",
        ),
        (
            "opencode",
            r#"{"type":"error","timestamp":1767323046000,"sessionID":"s1","error":{"name":"APIError","data":{"message":"no"}}}"#,
            "no",
        ),
        (
            "github_copilot",
            r#"{"type":"result","timestamp":"2026-01-02T03:04:07.100Z","sessionId":"s","exitCode":1,"usage":{}}"#,
            "exit code 1",
        ),
    ];
    for (provider, stream, words) in failures {
        let fake = Fake::printing(format!("{stream}\n").as_bytes());
        let (answer, _) = fake.ask(&fake.request(provider)).await;
        let error = answer.unwrap_err();
        let AskFailure::Agent(said) = &error.why else {
            panic!("{provider}: {error:?}");
        };
        assert!(said.contains(words), "{provider}: {said}");
    }
}

#[tokio::test]
async fn an_error_that_the_agent_overcame_is_not_a_failure() {
    let stream = br#"{"type":"thread.started","thread_id":"t1"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Here."}}
{"type":"turn.completed","usage":{"input_tokens":6,"cached_input_tokens":0,"output_tokens":2}}
"#;
    let fake = Fake::printing(stream);
    let (answer, ear) = fake.ask(&fake.request("codex")).await;
    assert_eq!(answer.unwrap().output, "Here.");
    assert!(
        ear.lines()
            .contains(&"error Reconnecting... 1/5".to_owned())
    );
}

#[tokio::test]
async fn denials_rate_limits_and_retries_are_harness_events() {
    let stream = br#"{"type":"system","subtype":"init","session_id":"s1","cwd":"/w","model":"m","tools":[]}
{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning"},"uuid":"u","session_id":"s1"}
{"type":"system","subtype":"api_retry","attempt":1,"session_id":"s1","uuid":"u2"}
{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1","permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"rm"}}]}
"#;
    let fake = Fake::printing(stream);
    let (answer, ear) = fake.ask(&fake.request("claude")).await;
    assert_eq!(answer.unwrap().output, "ok");
    for (category, name) in [
        ("rate_limit", "rate_limit_event"),
        ("retry", "api_retry"),
        ("guardrail", "permission_denied"),
    ] {
        assert!(ear.met(category, name), "{category}: {:?}", ear.lines());
    }
}

#[tokio::test]
async fn a_cli_of_any_kind_is_heard_by_the_stream_it_is_said_to_print() {
    let fake = Fake::printing(&fixture("claude-stream/stdout.jsonl"));
    let mut request = fake.request("cli");
    let options =
        serde_json::json!({"argv": ["agent", "--ask", "{{prompt}}"], "stream": "claude-stream"});
    request.options = options.as_object().unwrap().clone();
    let (answer, ear) = fake.ask(&request).await;
    assert_eq!(answer.unwrap().output, "It says one.");
    assert_eq!(ear.argv[1..], ["--ask", "What is in a.txt?"]);
    assert_eq!(ear.blocks().len(), 6);
}

#[tokio::test]
async fn sessions_of_another_provider_cannot_go_on() {
    let fake = Fake::printing(b"");
    let mut request = fake.request("claude");
    request.session = Some(SessionHandle {
        provider: "codex".to_owned(),
        id: Some("t1".to_owned()),
        ..SessionHandle::default()
    });
    let error = fake.ask(&request).await.0.unwrap_err();
    assert!(matches!(error.why, AskFailure::Request(_)), "{error}");
}

/// Streams that agents really printed.
#[tokio::test]
async fn recorded_streams_are_heard_without_losing_a_record() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let mut heard = 0;
    for (dir, provider) in [
        ("claude-stream", "claude"),
        ("codex-exec", "codex"),
        ("gemini-stream", "gemini"),
    ] {
        let Ok(files) = std::fs::read_dir(shared.join(dir)) else {
            continue;
        };
        for file in files.flatten() {
            let path = file.path();
            if path.extension().is_none_or(|ending| ending != "jsonl") {
                continue;
            }
            let stream = std::fs::read(&path).unwrap();
            let fake = Fake::printing(&stream);
            let (answer, ear) = fake.ask(&fake.request(provider)).await;
            let broken = ear
                .lines()
                .iter()
                .filter(|line| *line == "note malformed_line")
                .count();
            assert_eq!(broken, 0, "{}", path.display());
            assert!(!ear.events.is_empty(), "{}", path.display());
            if let Ok(answer) = answer {
                let has_text = ear.blocks().contains(&"text");
                assert_eq!(!answer.output.is_empty(), has_text, "{}", path.display());
            }
            heard += 1;
        }
    }
    if heard == 0 {
        use std::io::Write as _;
        let said = "skipped: the corpus of recorded streams (../shared/fixtures) is not there\n";
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
}
