//! Recorded files, as others read them.

use std::process::Command;

use super::env::TestEnv;

const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";
const CHILD: &str = "550e8400-e29b-41d4-a716-446655440001";

/// A run with everything that the examples ask for.
fn record(env: &TestEnv) {
    let events = [
        r#"{"type":"run.started","payload":{"name":"nightly","kind":"workflow"}}"#,
        r#"{"type":"step.started","path":"review","payload":{"name":"review","kind":"agent"}}"#,
        r#"{"type":"message.user","path":"review","payload":{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"Review."}]}}"#,
        r#"{"type":"tool.call","path":"review","payload":{"name":"Read","call_id":"t1","input":{"path":"main.go"},"fidelity":"router"}}"#,
        r#"{"type":"tool.call","path":"review","payload":{"name":"Bash","call_id":"t2","input":{"command":"ls"},"fidelity":"agent_emitted"}}"#,
        r#"{"type":"tool.result","path":"review","payload":{"name":"Bash","call_id":"t2","output":"main.go\n","fidelity":"agent_emitted"}}"#,
        r#"{"type":"tool.result","path":"review","payload":{"name":"Read","call_id":"t1","output":["package main"],"fidelity":"router"}}"#,
        r#"{"type":"message.assistant","path":"review","payload":{"role":"assistant","blocks":[{"type":"thinking","fidelity":"agent_emitted","thinking":"Hm."},{"type":"text","fidelity":"agent_emitted","text":"Found 2\nissues."},{"type":"text","fidelity":"agent_emitted","text":"🧶"}]}}"#,
        r#"{"type":"step.completed","path":"review","payload":{"name":"review","kind":"agent"}}"#,
        r#"{"type":"step.started","path":"ship.build","iteration":1,"payload":{"name":"build","kind":"command"}}"#,
        r#"{"type":"step.completed","path":"ship.build","iteration":1,"payload":{"name":"build","kind":"command"}}"#,
        &format!(
            r#"{{"type":"step.call_workflow.started","path":"deploy","child_run_id":"{CHILD}","payload":{{"name":"deploy","kind":"call_workflow"}}}}"#
        ),
        r#"{"type":"run.completed"}"#,
    ];
    let storage = env.path("storage");
    let args = ["emit", "--run", RUN, "--storage", storage.to_str().unwrap()];
    let ran = env.run_with(&args, events.join("\n"));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

/// The examples of the specification, and what they give for the run above.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "jq '.' storage/transcripts/<run-id>.jsonl | jq -s 'length'",
        "13\n",
    ),
    (
        r#"jq -c -s '
  [.[] | select(.type == "tool.call" or .type == "tool.result")]
  | group_by(.payload.call_id)
  | map({
      call_id: .[0].payload.call_id,
      name: .[0].payload.name,
      input: (map(select(.type == "tool.call"))[0].payload.input),
      output: (map(select(.type == "tool.result"))[0].payload.output)
    })
' storage/transcripts/<run-id>.jsonl"#,
        concat!(
            r#"[{"call_id":"t1","name":"Read","input":{"path":"main.go"},"output":["package main"]},"#,
            r#"{"call_id":"t2","name":"Bash","input":{"command":"ls"},"output":"main.go\n"}]"#,
            "\n"
        ),
    ),
    (
        r#"jq -r 'select(.type == "message.assistant")
  | .payload.blocks[]
  | select(.type == "text")
  | .text' storage/transcripts/<run-id>.jsonl"#,
        "Found 2\nissues.\n🧶\n",
    ),
    (
        "jq -s '[.[].seq] | . == (sort)' storage/transcripts/<run-id>.jsonl",
        "true\n",
    ),
    (
        r#"jq -r 'select(.type == "step.started")
  | "\(.seq)\t\(.path)\t\(.payload.kind)\t\(.payload.name)"' \
  storage/transcripts/<run-id>.jsonl"#,
        "2\treview\tagent\treview\n10\tship.build\tcommand\tbuild\n",
    ),
    (
        r#"jq -r 'select(.type == "step.call_workflow.started") | .child_run_id' \
  storage/transcripts/<parent-run-id>.jsonl"#,
        "550e8400-e29b-41d4-a716-446655440001\n",
    ),
    (
        r#"jq -c -s '
  [.[] | select(.type == "tool.call")]
  | group_by(.payload.fidelity)
  | map({fidelity: .[0].payload.fidelity, count: length})
' storage/transcripts/<run-id>.jsonl"#,
        concat!(
            r#"[{"fidelity":"agent_emitted","count":1},{"fidelity":"router","count":1}]"#,
            "\n"
        ),
    ),
];

#[test]
fn the_examples_of_the_specification_work_on_a_recorded_file() {
    if Command::new("jq").arg("--version").output().is_err() {
        #[expect(
            clippy::print_stderr,
            reason = "a skipped test must not look like one that ran"
        )]
        {
            eprintln!("SKIPPED: jq is not installed");
        }
        return;
    }
    let env = TestEnv::new();
    record(&env);
    for (example, expected) in EXAMPLES {
        let script = example
            .replace("<run-id>", RUN)
            .replace("<parent-run-id>", RUN);
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(env.dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            *expected,
            "{script}"
        );
    }
}

#[test]
fn a_recorded_file_goes_by_way_of_a_conversion_with_all_its_values() {
    let env = TestEnv::new();
    record(&env);
    let file = env.path(&format!("storage/transcripts/{RUN}.jsonl"));
    let ran = env.run(&["convert", file.to_str().unwrap(), "--to", "exchange"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let values = |text: &str| -> Vec<serde_json::Value> {
        text.lines()
            .map(|line| {
                let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
                value.as_object_mut().unwrap().remove("check");
                value
            })
            .collect()
    };
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert_eq!(values(&ran.stdout), values(&recorded));
}

/// What another engine wrote, kept in the archive and given out again, is what it was.
#[test]
fn an_imported_run_is_exported_with_all_its_values() {
    let env = TestEnv::new();
    let lines = [
        r#"{"seq":1,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"step.started","path":"ask","iteration":0,"timestamp":"2026-06-08T10:14:42.1+02:00","payload":{"name":"ask","kind":"agent"}}"#,
        r#"{"seq":2,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"message.user","path":"flow","iteration":0,"timestamp":"2026-06-08T10:14:43+02:00","payload":{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"a \u003cb\u003e"}]}}"#,
        r#"{"seq":3,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"tool.call","path":"","iteration":0,"timestamp":"2026-06-08T10:14:44+02:00","payload":{"name":"Bash","call_id":"c1","input":{"command":"ls"},"output":null,"fidelity":"router"}}"#,
        r#"{"seq":4,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"message.assistant","path":"flow","iteration":0,"timestamp":"2026-06-08T10:14:46+02:00","payload":{"role":"assistant","blocks":[{"type":"thinking","fidelity":"agent_emitted","thinking":"hm"},{"type":"text","fidelity":"agent_emitted","text":"done"}]}}"#,
        r#"{"seq":5,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","child_run_id":"ffff","type":"step.call_workflow.completed","path":"loop:1/deploy","iteration":1,"timestamp":"2026-06-08T10:14:47+02:00","payload":{"name":"deploy","kind":"call_workflow","error":"exit 1","result":false}}"#,
    ];
    let file = env.file("elsewhere/flow__be302d2f.jsonl", lines.join("\n") + "\n");
    let ran = env.run(&["import", &file]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::fs::remove_file(&file).unwrap();
    let ran = env.run(&["export", "be302d2f", "--to", "exchange"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let values = |lines: &mut dyn Iterator<Item = &str>| -> Vec<serde_json::Value> {
        lines
            .map(|line| {
                let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
                let at: quipu_model::Timestamp =
                    value["timestamp"].as_str().unwrap().parse().unwrap();
                value["timestamp"] = at.to_string().into();
                value
            })
            .collect()
    };
    assert_eq!(
        values(&mut ran.stdout.lines()),
        values(&mut lines.into_iter())
    );
}
