use super::{Exchange, RUN};
use crate::testkit::{hostile, read};

/// As awf writes it, without run events and with messages filed under the workflow's name.
const LOG: &str = r#"{"seq":1,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"step.started","path":"ask","iteration":0,"timestamp":"2026-06-08T10:14:42.1+02:00","payload":{"name":"ask","kind":"agent"}}
{"seq":2,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"message.user","path":"flow","iteration":0,"timestamp":"2026-06-08T10:14:43+02:00","payload":{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"a \u003cb\u003e"}]}}
{"seq":3,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"tool.call","path":"","iteration":0,"timestamp":"2026-06-08T10:14:44+02:00","payload":{"name":"Bash","call_id":"c1","input":{"command":"ls"},"output":null,"fidelity":"router"}}
{"seq":4,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"tool.result","path":"","iteration":0,"timestamp":"2026-06-08T10:14:45+02:00","payload":{"name":"Bash","call_id":"c1","input":{"command":"ls"},"output":{"Content":[],"IsError":false},"error":"late","fidelity":"router"}}
{"seq":5,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"message.assistant","path":"flow","iteration":0,"timestamp":"2026-06-08T10:14:46+02:00","payload":{"role":"assistant","blocks":[{"type":"thinking","fidelity":"agent_emitted","thinking":"hm"},{"type":"text","fidelity":"agent_emitted","text":"done"}]},"model":"m","usage":{"input":3,"output":4},"model_call":"r1"}
{"seq":6,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","child_run_id":"ffff","type":"step.call_workflow.completed","path":"deploy","iteration":0,"timestamp":"2026-06-08T10:14:47+02:00","payload":{"name":"deploy","kind":"call_workflow","error":"exit 1"}}
{"seq":7,"run_id":"be302d2f","parent_run_id":"0a1b2c3d","type":"step.paused","path":"ask","iteration":0,"timestamp":"2026-06-08T10:14:48+02:00","payload":{"why":"lunch"}}
"#;

#[test]
fn a_run_of_another_engine() {
    let read = read(LOG.as_bytes(), "flow__be302d2f.jsonl").unwrap();
    assert_eq!(read.dialect.name, "exchange");
    assert_eq!(read.session.id.as_deref(), Some("be302d2f"));
    assert_eq!(read.session.parent.as_deref(), Some("0a1b2c3d"));
    let words: Vec<&str> = read.events.iter().map(|it| it.body.type_word()).collect();
    assert_eq!(
        words,
        [
            "note",
            "message.user",
            "tool.call",
            "tool.result",
            "message.assistant",
            "message.assistant",
            "note",
            "note"
        ]
    );
    let child = read.events[6].annotations.child.as_ref();
    assert_eq!(child.map(quipu_model::RunId::as_str), Some("ffff"));
    let usage = read.events[4].annotations.usage.unwrap();
    assert_eq!((usage.input, usage.output), (Some(3), Some(4)));
    assert_eq!(read.ledger.records, 7);
    assert!(read.error.is_none());
    let quipu_model::Body::Note(note) = &read.events[6].body else {
        panic!()
    };
    assert_eq!(
        note.text.as_deref(),
        Some("step.call_workflow.completed: deploy: exit 1")
    );
    assert!(
        note.raw
            .as_ref()
            .unwrap()
            .get()
            .contains("\"path\":\"deploy\"")
    );
}

/// A step's command is a user message, because it is what was put in. It is not what somebody asked.
#[test]
fn a_command_of_a_step_is_not_a_question_of_a_person() {
    let line = |seq: u64, blocks: &str| {
        format!(
            r#"{{"seq":{seq},"run_id":"r1","type":"message.user","path":"s","iteration":0,"timestamp":"2026-06-08T10:14:43Z","payload":{{"role":"user","blocks":[{blocks}]}}}}"#
        ) + "\n"
    };
    let command = r#"{"type":"command","fidelity":"router","command":"make"}"#;
    let text = r#"{"type":"text","fidelity":"router","text":"Look."}"#;
    let log = line(1, command) + &line(2, text) + &line(3, &format!("{text},{command}"));
    let read = read(log.as_bytes(), "r1.jsonl").unwrap();
    let asked: Vec<bool> = read
        .events
        .iter()
        .map(|event| !event.annotations.flags.synthetic)
        .collect();
    assert_eq!(asked, [false, true, true, false]);
}

#[test]
fn broken_lines() {
    hostile(&Exchange, RUN, LOG);
}

#[test]
fn other_lines_with_a_number_are_not_runs() {
    for other in [
        r#"{"seq":1,"type":"x"}"#,
        r#"{"seq":"1","run_id":"r","type":"x","timestamp":"t","payload":null}"#,
        r#"{"run_id":"r","type":"x","timestamp":"t","payload":null}"#,
    ] {
        let found = crate::identify(other.as_bytes(), true);
        assert!(found.is_none_or(|(family, _)| family.name() != "exchange"));
    }
}

#[test]
fn a_tool_call_that_the_agent_and_the_router_tell_of_counts_once() {
    let line = |seq: u64, rest: &str| {
        format!(
            r#"{{"seq":{seq},"run_id":"r","path":"ask","iteration":0,"timestamp":"2026-06-08T10:14:44Z",{rest}}}"#
        )
    };
    let log = [
        line(1, r#""type":"message.assistant","payload":{"role":"assistant","blocks":[{"type":"tool_use","fidelity":"agent_emitted","tool_name":"mcp__quipu__Read","tool_id":"t1","tool_input":{"path":"a"}}]}"#),
        line(2, r#""type":"tool.call","payload":{"name":"Read","call_id":"t1","input":{"path":"a"},"output":null,"fidelity":"router"}"#),
        line(3, r#""type":"tool.result","payload":{"name":"Read","call_id":"t1","input":{"path":"a"},"output":"x","fidelity":"router"}"#),
        line(4, r#""type":"message.user","payload":{"role":"user","blocks":[{"type":"tool_result","fidelity":"agent_emitted","tool_id":"t1","tool_content":"x"}]}"#),
        // Some agents count anew: the same id later is another call.
        line(5, r#""type":"tool.call","payload":{"name":"Read","call_id":"t1","input":{"path":"b"},"output":null,"fidelity":"router"}"#),
        line(6, r#""type":"tool.result","payload":{"name":"Read","call_id":"t1","input":{"path":"b"},"output":"y","fidelity":"router"}"#),
    ]
    .join("\n");
    let read = read(log.as_bytes(), "r.jsonl").unwrap();
    let words: Vec<&str> = read.events.iter().map(|it| it.body.type_word()).collect();
    assert_eq!(
        words,
        [
            "tool.call",
            "note",
            "tool.result",
            "note",
            "tool.call",
            "tool.result"
        ]
    );
}
