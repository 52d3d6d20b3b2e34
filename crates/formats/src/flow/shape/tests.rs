use proptest::prelude::*;
use quipu_model::json::Tape;

use super::*;

fn shape(line: &str, before: Option<Shape>) -> Option<Shape> {
    let mut tape = Tape::new();
    classify(tape.read(line, 32).unwrap(), before)
}

#[test]
fn a_line_is_known_by_what_stands_in_it() {
    for (line, expected) in [
        (r#"{"role":"user","content":"x"}"#, Some(Shape::Documented)),
        (
            r#"{"role":"tool","tool_name":"Read"}"#,
            Some(Shape::Documented),
        ),
        (
            r#"{"role":"assistant","content":"[STUB] x"}"#,
            Some(Shape::Stub),
        ),
        (
            r#"{"role":"system","content":"[STUB WORKER] x"}"#,
            Some(Shape::StubWorker),
        ),
        (
            r#"{"type":"tool_use","tool":"Read"}"#,
            Some(Shape::SdkLegacy),
        ),
        (r#"{"type":"ResultMessage"}"#, Some(Shape::SdkClasses)),
        (
            r#"{"type":"tool_use","phase":"work"}"#,
            Some(Shape::SdkSession),
        ),
        (
            r#"{"type":"assistant","message":{"content":[]}}"#,
            Some(Shape::ClaudeCli),
        ),
        (
            r#"{"type":"tool_use","tool_name":"x","tool_id":"1"}"#,
            Some(Shape::GeminiCli),
        ),
        (r#"{"role":"user","content":[1]}"#, None),
        (r#"{"role":"robot","content":"x"}"#, None),
        (r#"{"type":"surprise"}"#, None),
        ("{}", None),
        ("[]", None),
    ] {
        assert_eq!(shape(line, None), expected, "{line}");
    }
}

#[test]
fn or_by_the_line_before_it() {
    let tool = r#"{"type":"tool_use","tool":"Read","input":{}}"#;
    assert_eq!(shape(tool, Some(Shape::Documented)), Some(Shape::Contract));
    assert_eq!(shape(tool, Some(Shape::SdkLegacy)), Some(Shape::SdkLegacy));
    let result = r#"{"type":"result"}"#;
    for (before, expected) in [
        (None, Shape::SdkLegacy),
        (Some(Shape::SdkClasses), Shape::SdkClasses),
        (Some(Shape::GeminiCli), Shape::GeminiCli),
        (Some(Shape::ClaudeCli), Shape::ClaudeCli),
    ] {
        assert_eq!(shape(result, before), Some(expected));
    }
}

proptest! {
    #[test]
    fn any_line_is_read_without_harm(
        fields in proptest::collection::vec((
            prop::sample::select(vec!["role", "type", "content", "tool", "tool_name", "phase", "message", "success", "kind", "input_is", "completed_at"]),
            prop::sample::select(vec!["null", "1", "\"tool\"", "\"user\"", "\"tool_use\"", "\"tool_result\"", "\"result\"", "\"AssistantMessage\"", "\"[TextBlock(text='x')]\"", "[]", "{\"content\":[{\"type\":\"text\"}]}", "true"]),
        ), 0..6)
    ) {
        let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let line = format!("{{{}}}", fields.join(","));
        let mut tape = Tape::new();
        let mut transcript = Transcript::default();
        for number in 1..3 {
            let node = tape.read(&line, 32).unwrap();
            let read = transcript.read(node, number);
            // What is not understood is kept; a line is never nothing.
            prop_assert!(read.shape.is_some() || read.keep.is_some());
        }
    }
}
