//! Calls of tools, and how they ended.

use super::*;

#[test]
fn how_calls_ended() {
    let ok = Some(Status::Ok);
    let error = Some(Status::Error);
    let cases = [
        (
            "Exit code: 0\nWall time: 1.5 seconds\nOutput:\nx",
            ok,
            Some(1500),
        ),
        (
            "Exit code: 1\nWall time: 0 seconds\nOutput:\nx",
            error,
            Some(0),
        ),
        (
            "Chunk ID: a\nWall time: 0.05 seconds\nProcess exited with code 0\nOutput:\n",
            ok,
            Some(50),
        ),
        (
            "Chunk ID: a\nWall time: 1 seconds\nProcess running with session ID 3\nOutput:\nExit code: 1",
            ok,
            Some(1000),
        ),
        (
            "Exit code: 124\nWall time: 10 seconds\nOutput:\ncommand timed out after 10000 milliseconds\n",
            Some(Status::Timeout),
            Some(10_000),
        ),
        (
            "Script completed\nWall time 0.3 seconds\nOutput:\n",
            ok,
            Some(300),
        ),
        (
            "Script failed\nWall time 0.3 seconds\nOutput:\n",
            error,
            Some(300),
        ),
        ("patch rejected by user", Some(Status::Denied), None),
        ("exec command rejected by user", Some(Status::Denied), None),
        (
            "exec_command failed for `x`: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }",
            Some(Status::Denied),
            None,
        ),
        (
            "failed in sandbox MacosSeatbelt with execution error: …",
            error,
            None,
        ),
        ("aborted by user after 29.7s", error, None),
        (
            r#"{"output":"a \"exit_code\":1","metadata":{"exit_code":0,"duration_seconds":2.0}}"#,
            ok,
            Some(2000),
        ),
        (
            r#"{"output":"","metadata":{"exit_code":127,"duration_seconds":0.0}}"#,
            error,
            Some(0),
        ),
        (
            r#"{"message":"x","timed_out":true}"#,
            Some(Status::Timeout),
            None,
        ),
        ("Plan updated", ok, None),
        ("", ok, None),
    ];
    for (output, status, duration) in cases {
        let output = serde_json::to_string(output).unwrap();
        for output in [
            output.clone(),
            format!(r#"[{{"type":"input_text","text":{output}}}]"#),
            format!(
                r#"[{{"type":"input_text","text":{output}}},{{"type":"input_text","text":"more"}}]"#
            ),
        ] {
            let line = format!(
                r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{output}}}}}"#
            );
            let read = rollout(&[&line]);
            let notes = &read.events[0].annotations;
            assert_eq!(notes.status, status, "{output}");
            assert_eq!(notes.duration_ms, duration, "{output}");
            let Body::ToolResult(result) = &read.events[0].body else {
                panic!("{output}");
            };
            assert_eq!(result.error.is_some(), status != ok, "{output}");
        }
    }
}

#[test]
fn what_tools_are_called_with() {
    let input = |arguments: &str| {
        let line = format!(
            r#"{{"type":"response_item","payload":{{"type":"function_call","name":"f","call_id":"c","arguments":{arguments}}}}}"#
        );
        let read = rollout(&[&line]);
        let Body::ToolCall(call) = &read.events[0].body else {
            panic!("{arguments}");
        };
        assert!(!read.lines().contains("aGVsbG8"));
        call.input
            .as_ref()
            .map(|json| json.get().to_owned())
            .unwrap_or_default()
    };
    assert_eq!(input(r#""{\"a\":[1]}""#), r#"{"a":[1]}"#);
    assert_eq!(input(r#""[1]""#), "[1]");
    assert_eq!(input(r#""{\"a\":""#), r#""{\"a\":""#);
    assert_eq!(input(r#""status""#), r#""status""#);
    assert_eq!(input(r#"{"a":1}"#), r#"{"a":1}"#);
    let image = "aGVsbG8".repeat(300);
    let taken = input(&format!(
        r#""{{\"image\":\"data:image/png;base64,{image}\"}}""#
    ));
    assert!(taken.contains(crate::BLOB_SCHEME), "{taken}");
}

#[test]
fn a_failed_result_shows_what_was_said_and_not_what_it_is_wrapped_in() {
    let output = |inner: &str| {
        format!(
            r#"{{"timestamp":"2026-01-02T03:04:08.300Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":"{inner}"}}}}"#
        )
    };
    let shown = |inner: &str| {
        let output = output(inner);
        let read = rollout(&[SESSION[0], &output]);
        let result = read.events.iter().find_map(|event| match &event.body {
            Body::ToolResult(result) => Some(result.clone()),
            _ => None,
        });
        let result = result.unwrap();
        let output = result.output.map(|output| output.get().to_owned());
        (output, result.error)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        shown(
            r#"{\"output\":\"no such file\\n\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}"#
        ),
        (None, text("exit code 2\nno such file\n"))
    );
    assert_eq!(
        shown(r#"{\"output\":\"\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"#),
        (None, text("exit code 1"))
    );
    assert_eq!(
        shown(r#"{\"output\":\"fine\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"#),
        (text(r#""fine""#), None)
    );
    // What says more than that stays as it is.
    let more = r#"{\"output\":\"fine\",\"metadata\":{\"exit_code\":0,\"cost\":1}}"#;
    assert!(shown(more).0.unwrap().contains("cost"));
}
