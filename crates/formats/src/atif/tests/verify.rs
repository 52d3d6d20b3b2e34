use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::verify::{Rule, verify};
use super::validator;

fn sound() -> Value {
    json!({
        "schema_version": "ATIF-v1.7", "session_id": "s", "trajectory_id": "t",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}}]},
            {"step_id": 2, "source": "agent", "timestamp": "2026-01-02T03:04:05Z", "message": "",
             "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}],
             "observation": {"results": [{"source_call_id": "c", "content": "x",
                "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}]},
             "metrics": {"prompt_tokens": 5, "cached_tokens": 1, "completion_tokens": 2}, "llm_call_count": 1},
        ],
        "final_metrics": {"total_prompt_tokens": 5, "total_steps": 2},
        "subagent_trajectories": [{"schema_version": "ATIF-v1.7", "trajectory_id": "sub",
            "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "system", "message": "hi"}]}],
    })
}

/// The sound document with one value put somewhere.
fn broken(at: &str, value: Value) -> String {
    let mut document = sound();
    let (parent, key) = at.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        parent => parent[key] = value,
    }
    document.to_string()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a case for each rule")]
fn each_rule_is_broken_by_something() {
    let sub = sound()["subagent_trajectories"][0].clone();
    let cases = [
        (Rule::MissingKey, "", "{}".to_owned()),
        (Rule::Syntax, "", "{".to_owned()),
        (
            Rule::UnknownKey,
            "steps/0/mood",
            broken("/steps/0/mood", json!(1)),
        ),
        (
            Rule::WrongType,
            "steps/1/tool_calls/0/arguments",
            broken("/steps/1/tool_calls/0/arguments", json!("ls")),
        ),
        (Rule::WrongType, "steps/0", broken("/steps/0", json!([]))),
        (
            Rule::Version,
            "schema_version",
            broken("/schema_version", json!("ATIF-v2.0")),
        ),
        (
            Rule::TooNew,
            "trajectory_id",
            broken("/schema_version", json!("ATIF-v1.6")),
        ),
        (Rule::NoSteps, "steps", broken("/steps", json!([]))),
        (
            Rule::StepOrder,
            "steps/1/step_id",
            broken("/steps/1/step_id", json!(3)),
        ),
        (
            Rule::Source,
            "steps/0/source",
            broken("/steps/0/source", json!("tool")),
        ),
        (
            Rule::AgentOnly,
            "steps/0/reasoning_content",
            broken("/steps/0/reasoning_content", json!("hm")),
        ),
        (
            Rule::NoModelCall,
            "steps/1/llm_call_count",
            broken("/steps/1/llm_call_count", json!(0)),
        ),
        (
            Rule::Time,
            "steps/1/timestamp",
            broken("/steps/1/timestamp", json!("yesterday")),
        ),
        (
            Rule::Observation,
            "steps/1/observation/results/0/source_call_id",
            broken(
                "/steps/1/observation/results/0/source_call_id",
                json!("nobody"),
            ),
        ),
        (
            Rule::DuplicateCall,
            "steps/1/tool_calls/1",
            broken(
                "/steps/1/tool_calls",
                json!([
            {"tool_call_id": "c", "function_name": "f", "arguments": {}},
            {"tool_call_id": "c", "function_name": "f", "arguments": {}}]),
            ),
        ),
        (
            Rule::Part,
            "steps/0/message/1",
            broken("/steps/0/message/1", json!({"type": "video"})),
        ),
        (
            Rule::MediaType,
            "steps/0/message/1/source/media_type",
            broken(
                "/steps/0/message/1/source/media_type",
                json!("image/svg+xml"),
            ),
        ),
        (
            Rule::Inline,
            "steps/0/message/1/source/path",
            broken(
                "/steps/0/message/1/source/path",
                json!("data:image/png;base64,AA=="),
            ),
        ),
        (
            Rule::Reference,
            "steps/1/observation/results/0/subagent_trajectory_ref/0/trajectory_id",
            broken("/subagent_trajectories", json!([])),
        ),
        (
            Rule::DuplicateTrajectory,
            "subagent_trajectories/1",
            broken("/subagent_trajectories", json!([sub, sub])),
        ),
        (
            Rule::Cached,
            "steps/1/metrics/cached_tokens",
            broken("/steps/1/metrics/cached_tokens", json!(6)),
        ),
        (
            Rule::Totals,
            "final_metrics/total_steps",
            broken("/final_metrics/total_steps", json!(9)),
        ),
        (
            Rule::DuplicateKey,
            "agent/name",
            sound()
                .to_string()
                .replace(r#""name":"a""#, r#""name":"a","name":"b""#),
        ),
    ];
    assert_eq!(verify(&sound().to_string()), []);
    let mut met = BTreeSet::new();
    for (rule, path, text) in cases {
        let found = verify(&text);
        let hit = found.iter().any(|it| it.rule == rule && it.path == path);
        assert!(hit, "{rule:?} at {path}: {found:?}");
        met.insert(rule);
    }
    assert_eq!(met.len(), Rule::ALL.len(), "every rule has a case");
}

#[test]
fn the_other_implementation_agrees_on_errors() {
    use super::super::verify::Severity;
    assert_eq!(
        validator::wrongs(&sound().to_string()),
        Vec::<String>::new()
    );
    for (at, value) in [
        ("/steps/0/mood", json!(1)),
        ("/steps/1/step_id", json!(3)),
        ("/steps/0/source", json!("tool")),
        ("/steps/0/metrics", json!({})),
        ("/steps/1/llm_call_count", json!(0)),
        ("/steps/1/tool_calls/0/arguments", json!([])),
        (
            "/steps/1/observation/results/0/source_call_id",
            json!("nobody"),
        ),
        ("/steps/1/observation/results/0/exit_code", json!(1)),
        ("/steps/0/message/1/source/media_type", json!("image/bmp")),
        ("/steps/0/message", json!(7)),
        ("/subagent_trajectories", json!([])),
        ("/agent/name", json!(null)),
    ] {
        let text = broken(at, value);
        assert!(!validator::wrongs(&text).is_empty(), "{at}");
        let found = verify(&text);
        assert!(
            found.iter().any(|it| it.severity == Severity::Error),
            "{at}: {found:?}"
        );
    }
}

#[test]
fn a_hostile_document_makes_no_long_list() {
    let steps: Vec<Value> = (0..5000)
        .map(|n| json!({"step_id": n * 2, "source": n}))
        .collect();
    let document = json!({"schema_version": "ATIF-v1.7", "agent": [], "steps": steps});
    assert!(verify(&document.to_string()).len() <= 100 * Rule::ALL.len());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(verify(&deep)[0].rule, Rule::Syntax);
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
}
