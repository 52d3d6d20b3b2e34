//! One receipt of each generation.

use quipu_model::Body;
use quipu_model::json::Tape;

use super::{Dir, lines};
use crate::flow::receipt::{Document, Generation, Receipt, ToolCalls, classify};

/// What all have.
const BASE: &str = r#""model":"claude-sonnet-4","step_id":"impl","flow_key":"build","run_id":"run-1","agent_key":"coder","started_at":"2025-12-09T14:30:22.000000+00:00Z","completed_at":"2025-12-09T14:30:26.800000+00:00Z","duration_ms":4800,"status":"succeeded","tokens":{"prompt":12500,"completion":3200,"total":15700}"#;

const GENERATIONS: &[(Generation, &str)] = &[
    (
        Generation::Documented,
        r#""engine":"claude-step","transcript_path":"llm/impl-coder-claude.jsonl""#,
    ),
    (
        Generation::Stub,
        r#""engine":"claude-step","mode":"stub","execution_mode":"legacy","provider":"anthropic","transcript_path":"llm/impl-coder-claude.jsonl","context_truncation":{"steps_included":1},"routing":{"loop_iteration":1,"max_iterations":3}"#,
    ),
    (
        Generation::StubLifecycle,
        r#""engine":"claude-step","mode":"stub","lifecycle_mode":true"#,
    ),
    (
        Generation::Cli,
        r#""engine":"claude-step","mode":"cli","provider":null,"transcript_path":"llm/impl-coder-claude.jsonl""#,
    ),
    (
        Generation::Gemini,
        r#""engine":"gemini-step","mode":"cli","provider":"gemini","transcript_path":"llm/impl-coder-gemini.jsonl""#,
    ),
    (
        Generation::SdkLegacy,
        r#""engine":"claude-step","mode":"sdk","transcript_path":"/srv/runs/run-1/build/llm/impl-coder-claude.jsonl","handoff_envelope_path":"handoff/impl.json","routing_signal":{"decision":"advance"}"#,
    ),
    (
        Generation::SdkSession,
        r#""engine":"claude-step","mode":"sdk","session_id":"s1","tool_calls":3,"phases":{"work":true},"telemetry":{"work":{"duration_ms":1}},"transcript_path":"llm/impl-coder-claude.jsonl""#,
    ),
    (
        Generation::Dev,
        r#""engine":"claude-step","mode":"sdk","git_sha":"abc","git_branch":"main","workspace_root":"/code","cost_usd":0.0421,"cumulative_run_usd":0.0421,"tool_calls_count":1,"tool_calls":[{"tool_name":"Bash","tool_input":{"command":"ls"},"success":true,"duration_ms":12,"source":"sdk","timestamp":"2025-12-09T14:30:23Z","tool_output":"a"}],"transcript_path":"llm/impl-coder-claude.jsonl""#,
    ),
];

fn of(text: &str) -> Receipt {
    let mut tape = Tape::new();
    match classify(tape.read(text, 64).unwrap()) {
        Document::Step(receipt) => *receipt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_generation_is_known_and_nothing_of_it_is_lost() {
    for (generation, more) in GENERATIONS {
        let text = format!("{{{BASE},{more}}}");
        let receipt = of(&text);
        assert_eq!(receipt.generation(), *generation, "{text}");
        assert_eq!(receipt.tokens.usage().unwrap().total(), 15700);
        let dir = Dir::new("run-1");
        dir.put("build/receipts/impl-coder.json", &text);
        let (run, events) = dir.read();
        let end = events
            .iter()
            .find(|event| matches!(&event.body, Body::StepCompleted(_)));
        let notes = &end.unwrap().annotations;
        assert_eq!(notes.duration_ms, Some(4800));
        assert_eq!(notes.model.as_deref(), Some("claude-sonnet-4"));
        assert_eq!(notes.flags.synthetic, text.contains("stub"), "{text}");
        assert_eq!(run.receipts.len(), 1);
        for (key, value) in &receipt.rest {
            let read = lines(&events);
            assert!(
                read.contains(key) && read.contains(value.get()),
                "{key} in {read}"
            );
        }
    }
}

#[test]
fn tools_of_a_receipt_are_read_where_no_transcript_has_them() {
    let (_, dev) = GENERATIONS.last().unwrap();
    let text = format!("{{{BASE},{dev}}}");
    assert!(matches!(of(&text).tool_calls, ToolCalls::List(list) if list.len() == 1));
    let dir = Dir::new("run-1");
    dir.put("build/receipts/impl-coder.json", text);
    let (run, events) = dir.read();
    assert_eq!(run.header.totals.tool_calls, 1);
    assert_eq!(run.header.environment.commit.as_deref(), Some("abc"));
    assert_eq!(run.header.totals.cost.unwrap().to_string(), "0.0421");
    let result = events.iter().find_map(|event| match &event.body {
        Body::ToolResult(result) => Some((result, &event.annotations)),
        _ => None,
    });
    let (result, notes) = result.unwrap();
    assert_eq!(
        (result.output.as_ref().unwrap().get(), notes.duration_ms),
        ("\"a\"", Some(12))
    );
}

#[test]
fn other_files_among_receipts_are_known_by_what_stands_in_them() {
    let prompt = r#"{"prompt_hash":"x","fragment_manifest":[],"compiler_version":"1","step_id":"impl","flow_id":"build"}"#;
    let mut tape = Tape::new();
    let found = classify(tape.read(prompt, 8).unwrap());
    assert!(matches!(found, Document::Prompt { step_id } if step_id.as_deref() == Some("impl")));
    // A receipt is one whatever its name.
    let dir = Dir::new("run-1");
    let (_, more) = GENERATIONS[0];
    dir.put("build/receipts/prompt_receipt_impl.json", prompt)
        .put(
            "build/receipts/prompt_receipt-coder.json",
            format!("{{{BASE},{more}}}"),
        )
        .put("build/receipts/notes.json", r#"{"hello":1}"#);
    let (run, _) = dir.read();
    assert_eq!(run.receipts.len(), 1);
    assert_eq!(run.steps[0].step, "impl");
}
