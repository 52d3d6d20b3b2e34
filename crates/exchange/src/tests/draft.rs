//! What may be recorded and what may not.

use quipu_model::{Annotations, Body, Place, RunId};

use super::{run, step};
use crate::lines::Limits;
use crate::{Request, parse_draft};

fn parse(text: &str) -> Result<Request, String> {
    parse_draft(text, Limits::MAX_DEPTH).map_err(|fault| fault.to_string())
}

#[test]
fn drafts_that_are_taken() {
    let request = parse(
        r#" {"type":"step.call_workflow.started","path":"a.b","iteration":2,"child_run_id":"c1",
            "parent_run_id":"p1","payload":{"name":"a","kind":"call_workflow"},"model":"m"} "#,
    )
    .unwrap();
    assert_eq!(request.parent_run_id, RunId::new("p1").ok());
    assert!(!request.stamped);
    assert_eq!(request.draft.place, Place::flat("a.b", 2));
    assert_eq!(request.draft.annotations.model.as_deref(), Some("m"));
    let child_run_id = RunId::new("c1").unwrap();
    let step = step("call_workflow");
    assert_eq!(request.draft.body, Body::CallStarted { child_run_id, step });

    let least = parse(r#"{"type":"run.started"}"#).unwrap();
    assert_eq!(least.draft.body, Body::RunStarted(None));
    assert_eq!(
        (least.draft.place, least.parent_run_id),
        (Place::run(), None)
    );
    assert_eq!(least.draft.annotations, Annotations::default());
    assert!(
        parse(&run(1)).unwrap().stamped,
        "a whole event is a draft with stamps"
    );
}

#[test]
fn drafts_that_are_refused() {
    let text = r#"{"type":"text","fidelity":"router"}"#;
    for (draft, why) in [
        ("", "not a JSON object: the text ends too early (column 1)"),
        ("7", "not a JSON object: expected a value (column 1)"),
        (
            r#"{"type":"run.started"} {}"#,
            "not a JSON object: something follows the value (column 24)",
        ),
        ("{}", r#"bad field "type": missing"#),
        (r#"{"type":null}"#, r#"bad field "type": not a string"#),
        (
            r#"{"type":"run.paused"}"#,
            concat!(
                r#"bad field "type": unknown event type: "run.paused"; types are run.started, run.completed, "#,
                "step.started, step.completed, step.call_workflow.started, step.call_workflow.completed, ",
                "message.user, message.assistant, tool.call, tool.result, message.system, model.call, ",
                "chunk, harness, blob, error, note"
            ),
        ),
        (
            r#"{"type":"step.started"}"#,
            r#"bad field "payload": it is missing"#,
        ),
        (
            r#"{"type":"step.call_workflow.started","payload":{"name":"a","kind":"b"}}"#,
            r#"bad field "payload": child_run_id is missing"#,
        ),
        (
            r#"{"type":"run.started","path":7}"#,
            r#"bad field "path": not a string"#,
        ),
        (
            r#"{"type":"run.started","iteration":-1}"#,
            r#"bad field "iteration": not a whole number that is zero or greater"#,
        ),
        (
            r#"{"type":"run.started","parent_run_id":".."}"#,
            r#"bad field "parent_run_id": a run id cannot begin with '.'"#,
        ),
        (
            r#"{"type":"run.started","colour":1}"#,
            r#"not an event: unknown field "colour""#,
        ),
        (
            r#"{"type":"run.started","payload":{"name":"a","kind":"b","x":1}}"#,
            r#"not an event: unknown field "payload.x""#,
        ),
        (
            r#"{"type":"run.started","flags":["x"]}"#,
            r#"bad field "flags": unknown flag "x""#,
        ),
        (
            &format!(
                r#"{{"type":"message.user","payload":{{"role":"user","blocks":[{text},{{}}]}}}}"#
            ),
            r#"not an event: unknown block type "" in block 1"#,
        ),
        (
            &format!(r#"{{"type":"run.started","x":{}"#, "[".repeat(200)),
            "nested deeper than 128 levels",
        ),
    ] {
        assert_eq!(parse(draft).unwrap_err(), why, "{draft}");
    }
}
