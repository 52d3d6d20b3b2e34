//! What tools give back is a string, as published, and what it was all the same.

use quipu_model::{Body, Event, Header, Json, Place, RunId, Timestamp, ToolResult};
use serde_json::{Value, json};

use super::round_trip::{read_all, write};
use crate::normalized::NormalizedOptions;

fn result(output: Option<&str>, error: Option<&str>, call_id: &str) -> Event {
    Event {
        seq: 7,
        run_id: RunId::new("run-1").unwrap(),
        parent_run_id: None,
        timestamp: Timestamp::UNIX_EPOCH,
        place: Place::run(),
        body: Body::ToolResult(ToolResult {
            name: "Bash".to_owned(),
            call_id: call_id.into(),
            input: None,
            output: output.map(|json| Json::parse(json).unwrap()),
            error: error.map(str::to_owned),
            fidelity: quipu_model::Fidelity::AgentEmitted,
        }),
        annotations: quipu_model::Annotations::default(),
    }
}

#[test]
fn every_output_is_a_string_and_comes_back_as_it_was() {
    let header = Header::new(RunId::new("run-1").unwrap());
    for (output, error, written) in [
        (Some(r#""a\n""#), None, json!({"output": "a\n"})),
        (
            Some(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#),
            None,
            json!({"output": "a\nb", "outputValue": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        ),
        (
            Some(r#"{"n": 1.0}"#),
            None,
            json!({"output": "{\"n\": 1.0}", "outputValue": {"n": 1.0}}),
        ),
        (Some("7"), None, json!({"output": "7", "outputValue": 7})),
        (None, Some("no"), json!({"output": "no", "error": "no"})),
        (
            Some(r#""so far""#),
            Some("no"),
            json!({"output": "so far", "error": "no"}),
        ),
        (
            Some(r#""no""#),
            Some("no"),
            json!({"output": "no", "outputValue": "no", "error": "no"}),
        ),
        (None, None, json!({})),
    ] {
        for id in ["c1", ""] {
            let event = result(output, error, id);
            let (bytes, _) = write(
                &header,
                &NormalizedOptions::default(),
                std::slice::from_ref(&event),
            );
            let (_, back) = read_all(&bytes);
            assert_eq!(back[0].0, event, "{output:?} {error:?}");
            assert!(back[0].1.is_empty(), "{:?}", back[0].1);
            let document: Value = serde_json::from_slice(&bytes).unwrap();
            let mut tool = document["events"][0]["tool"].as_object().unwrap().clone();
            let status = if error.is_some() { "error" } else { "ok" };
            assert_eq!(tool.remove("status").unwrap(), status);
            tool.remove("nativeStatus");
            assert_eq!(tool.remove("name").unwrap(), "Bash");
            let expected = if id.is_empty() { "call_7" } else { id };
            assert_eq!(tool.remove("callId").unwrap(), expected);
            assert_eq!(tool.remove("callIdKnown").is_some(), id.is_empty());
            assert_eq!(Value::Object(tool), written);
        }
    }
}

/// Documents of before have what is no text in `output`, and what was removed from it is named by that.
#[test]
fn an_output_that_is_no_string_is_read_all_the_same() {
    let document = r#"{"schemaVersion":"0.1.0","transcriptId":"t","source":{"agent":"a","path":"/log"},"events":[
{"id":"ev_001","seq":1,"timestamp":"2026-06-22T10:00:00Z","type":"tool_result","role":"tool","tool":{"name":"f","callId":"c","output":{"a":["[X]"]},"status":"ok"},
"redactions":[{"field":"tool.output.a[0]","ruleId":"r","type":"secret","placeholder":"[X]"},{"field":"source.file","ruleId":"environment-path","type":"path","placeholder":"/log"}],"source":{"file":"/log","offset":1,"line":1}}]}"#;
    let (read, events) = read_all(document.as_bytes());
    assert!(read.unread.is_empty(), "{:?}", read.unread);
    let (event, beyond) = &events[0];
    let Body::ToolResult(result) = &event.body else {
        panic!()
    };
    assert_eq!(result.output.as_ref().unwrap().get(), r#"{"a":["[X]"]}"#);
    let fields: Vec<&str> = beyond
        .redactions
        .iter()
        .map(|it| it.field.as_str())
        .collect();
    assert_eq!(fields, ["tool.outputValue.a[0]"]);
    assert_eq!(event.annotations.source.as_ref().unwrap().file, "/log");
}
