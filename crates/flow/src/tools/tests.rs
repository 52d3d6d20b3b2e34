use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Router, Rules, ToolOutcome, ToolRecorder, ToolRequest, ToolSpec, Toolbox};

/// What a recorder was told, in order.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<(String, Value)>>);

impl Told {
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.all().into_iter().map(|it| it.0).collect()
    }

    fn tell(&self, name: impl Into<String>, what: Value) {
        self.0.lock().unwrap().push((name.into(), what));
    }
}

impl ToolRecorder for Told {
    fn call(&self, request: &ToolRequest) {
        self.tell(
            "call",
            json!({"id": request.call_id.as_str(), "input": request.input}),
        );
    }
    fn result(&self, request: &ToolRequest, outcome: &ToolOutcome, _: Duration) {
        self.tell(
            "result",
            json!({"id": request.call_id.as_str(), "output": outcome.output, "error": outcome.error}),
        );
    }
    fn harness(&self, category: &str, name: &str, attributes: Value) {
        self.tell(format!("{category}/{name}"), attributes);
    }
}

pub(crate) fn request(name: &str, input: Value) -> ToolRequest {
    ToolRequest {
        name: name.to_owned(),
        call_id: "call-1".into(),
        input,
    }
}

/// Tools that behave in every way.
struct Odd(&'static str);

impl Toolbox for Odd {
    fn tools(&self) -> Vec<ToolSpec> {
        let names = ["echo", "hang", "panic", "flood", "odd_schema", "echo-2"];
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: if name == "odd_schema" {
                json!({"type": 12})
            } else {
                json!({"type": "object", "properties": {"text": {"type": "string"}}})
            },
        };
        names.into_iter().map(tool).collect()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolRequest,
        _: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>> {
        Box::pin(async move {
            match request.name.as_str() {
                "hang" => std::future::pending().await,
                "panic" => panic!("as asked"),
                "flood" => ToolOutcome::done(json!(["é".repeat(5000)])),
                _ => ToolOutcome::done(json!({"from": self.0, "input": request.input})),
            }
        })
    }
}

fn router(rules: Rules) -> Router {
    Router::with_rules(vec![Arc::new(Odd("first")), Arc::new(Odd("second"))], rules)
}

async fn called(rules: Rules, name: &str, input: Value) -> (ToolOutcome, Told) {
    let told = Told::default();
    let router = router(rules);
    let never = CancellationToken::new();
    let outcome = router.call(request(name, input), &told, &never).await;
    (outcome, told)
}

#[tokio::test]
async fn a_call_and_its_result_are_recorded_with_the_models_id() {
    let (outcome, told) = called(Rules::default(), "echo", json!({"text": "hi"})).await;
    let output = json!({"from": "first", "input": {"text": "hi"}});
    assert_eq!(outcome, ToolOutcome::done(output.clone()));
    let call = json!({"id": "call-1", "input": {"text": "hi"}});
    let result = json!({"id": "call-1", "output": output, "error": null});
    assert_eq!(
        told.all(),
        [("call".to_owned(), call), ("result".to_owned(), result)]
    );
}

#[tokio::test]
async fn every_way_to_fail_is_a_result_and_a_harness_event() {
    let short = || Rules {
        timeout: Duration::from_millis(50),
        ..Rules::default()
    };
    let denied = || Rules {
        deny: vec!["ha*".to_owned()],
        ..Rules::default()
    };
    let narrow = || Rules {
        allow: Some(vec!["echo".to_owned()]),
        ..Rules::default()
    };
    let cases: [(Rules, &str, Value, &str, &str); 6] = [
        (
            short(),
            "ehco",
            json!({}),
            "tool_lifecycle/unknown_tool",
            "did you mean echo?",
        ),
        (denied(), "hang", json!({}), "guardrail/tool_denied", "ha*"),
        (
            narrow(),
            "hang",
            json!({}),
            "guardrail/tool_denied",
            "not on the list",
        ),
        (
            short(),
            "echo",
            json!({"text": 1}),
            "tool_lifecycle/invalid_input",
            "/text",
        ),
        (short(), "hang", json!({}), "tool_lifecycle/timeout", "50ms"),
        (
            short(),
            "panic",
            json!({}),
            "tool_lifecycle/panicked",
            "broke down",
        ),
    ];
    for (rules, name, input, event, part) in cases {
        let (outcome, told) = called(rules, name, input).await;
        let error = outcome.error.unwrap_or_default();
        assert!(error.contains(part), "{name}: {error}");
        assert_eq!(told.names(), ["call", event, "result"], "{name}");
        assert_eq!(told.all()[1].1["call_id"], "call-1");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_recorded() {
    let told = Told::default();
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let router = router(Rules::default());
    let (outcome, ()) = tokio::join!(
        router.call(request("hang", json!({})), &told, &cancel),
        async { cancel.cancel() },
    );
    assert_eq!(outcome.error.as_deref(), Some("cancelled"));
    assert_eq!(told.names(), ["call", "tool_lifecycle/cancelled", "result"]);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_has_a_result() {
    let told = Told::default();
    let never = CancellationToken::new();
    let router = router(Rules::default());
    let waiting = router.call(request("hang", json!({})), &told, &never);
    let waited = tokio::time::timeout(Duration::from_millis(20), waiting).await;
    waited.expect_err("it hangs");
    assert_eq!(told.names(), ["call", "tool_lifecycle/cancelled", "result"]);
}

#[tokio::test]
async fn output_over_the_cap_is_cut_with_a_note() {
    let rules = Rules {
        most_output: 999,
        ..Rules::default()
    };
    let (outcome, told) = called(rules, "flood", json!({})).await;
    let text = outcome.output.as_str().unwrap();
    assert!(text.len() < 1100 && text.ends_with("more bytes were left out]"));
    assert_eq!(
        told.names(),
        ["call", "tool_lifecycle/output_cut", "result"]
    );
    assert_eq!(told.all()[1].1["bytes"], 10_004);
}

#[tokio::test]
async fn a_schema_that_is_not_one_is_said_once_and_does_not_stop_the_tool() {
    let router = router(Rules::default());
    let never = CancellationToken::new();
    let told = Told::default();
    for _ in 0..2 {
        let call = request("odd_schema", json!({}));
        assert_eq!(router.call(call, &told, &never).await.error, None);
    }
    let said = told.names();
    let said = said.iter().filter(|it| *it == "tool_lifecycle/bad_schema");
    assert_eq!(said.count(), 1);
}

#[test]
fn models_are_told_of_the_tools_that_they_may_call_and_of_each_once() {
    let names = |allow: Option<&[&str]>, deny: &[&str]| -> Vec<String> {
        let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        let rules = Rules {
            allow: allow.map(list),
            deny: list(deny),
            ..Rules::default()
        };
        let tools = router(rules).tools();
        tools.into_iter().map(|it| it.name).collect()
    };
    assert_eq!(
        names(None, &[]),
        ["echo", "hang", "panic", "flood", "odd_schema", "echo-2"]
    );
    assert_eq!(names(Some(&["echo*", "hang"]), &["*-2"]), ["echo", "hang"]);
    assert_eq!(names(Some(&["*o*d*"]), &[]), ["flood", "odd_schema"]);
    assert!(names(Some(&[]), &[]).is_empty());
    assert!(names(None, &["*"]).is_empty());
}
