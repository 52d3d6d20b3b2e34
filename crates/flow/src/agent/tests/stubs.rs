//! Replies that nobody gives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_model::{
    Block, Body, Content, Event, Fidelity, Json, Money, Place, Timestamp, ToolCall, ToolCallId,
    ToolResult,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Calls, Ear, ask};
use crate::agent::{AgentOptions, Agents, AskFailure, AskRequest, Script, Stub, ToolAccess};
use crate::tools::{Router, ToolOutcome, ToolRequest, ToolSpec, Toolbox};

fn agents(stub: Stub) -> Agents {
    Agents::new(AgentOptions {
        stub: Some(stub),
        ..AgentOptions::default()
    })
}

fn request(provider: &str, step: &str) -> AskRequest {
    let mut request = AskRequest::new(provider, "Do it.", "/nowhere");
    request.step = step.to_owned();
    request
}

fn scripted(name: &str, text: &str) -> Agents {
    let script = Script::parse(Path::new(name), text).unwrap();
    agents(Stub::Script(Arc::new(script)))
}

#[tokio::test]
async fn the_fixed_reply_is_the_documented_one_and_is_marked() {
    let agents = agents(Stub::Fixed);
    let (answer, ear) = ask(&agents, &request("claude", "impl-loop")).await;
    let answer = answer.unwrap();
    assert_eq!(
        answer.output,
        "[STUB] Completed step impl-loop. In production, this would contain the actual Claude response."
    );
    assert_eq!(answer.model.as_deref(), Some("claude-stub"));
    assert_eq!(answer.usage.unwrap().total(), 0);
    assert_eq!(answer.cost, Some(Money::ZERO));
    assert!(answer.simulated);
    assert_eq!(ear.events.len(), 1);
    assert!(ear.events[0].1.flags.synthetic);
    assert_eq!((ear.argv.len(), ear.simulated), (0, 1), "nothing was sent");

    for (provider, model) in [
        ("gemini", "gemini-stub"),
        ("codex", "codex-stub"),
        ("openai_compatible", "openai-stub"),
        ("cli", "cli-stub"),
    ] {
        let answer = ask(&agents, &request(provider, "s")).await.0.unwrap();
        assert_eq!(answer.model.as_deref(), Some(model));
        assert!(answer.output.starts_with("[STUB]"));
    }
}

#[tokio::test]
async fn a_fixed_reply_fits_the_schema_that_is_asked_for() {
    let schemas = [
        json!({"type": "object", "required": ["verdict", "score", "files"], "properties": {
            "verdict": {"enum": ["pass", "fail"]},
            "score": {"type": "integer", "minimum": 3, "maximum": 9},
            "files": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 12}},
            "note": {"type": "string"}
        }, "additionalProperties": false}),
        json!({"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 1}),
        json!({"$ref": "#/$defs/it", "$defs": {"it": {"type": "object", "required": ["at"],
            "properties": {"at": {"type": "string", "format": "date"}}}}}),
        json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
        json!({"allOf": [{"type": "object", "required": ["a"]}, {"required": ["b"],
            "properties": {"b": {"const": 7}}}]}),
        json!({"type": ["null", "string"]}),
        json!({"type": "number", "multipleOf": 5, "minimum": 7}),
        json!(true),
    ];
    let agents = agents(Stub::Fixed);
    for schema in schemas {
        let mut request = request("claude", "s");
        request.schema = Some(schema.clone());
        let answer = ask(&agents, &request).await.0.unwrap();
        let value: Value = serde_json::from_str(&answer.output).unwrap();
        jsonschema::validate(&schema, &value).unwrap();
        assert!(answer.simulated);
    }
    let mut request = request("claude", "s");
    request.schema = Some(json!({"type": "string", "pattern": "^[0-9]{4}$"}));
    let error = ask(&agents, &request).await.0.unwrap_err();
    assert!(error.to_string().contains("script"), "{error}");
}

const SCRIPT: &str = r"
replies:
  - step: build.plan
    thinking: Let me think.
    tools:
      - {name: Read, id: c1, input: {path: a.txt}, output: one}
    text: The plan.
    usage: {input: 100, output: 20}
    cost_usd: 0.25
    model: claude-test
  - step: build.plan
    fail: out of credit
  - text: Whatever.
    repeat: true
";

#[tokio::test]
async fn a_script_replies_by_step_and_in_order() {
    let agents = scripted("replies.yaml", SCRIPT);
    let (answer, ear) = ask(&agents, &request("claude", "build.plan")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.output, "The plan.");
    assert_eq!(answer.model.as_deref(), Some("claude-test"));
    assert_eq!(answer.usage.unwrap().input, Some(100));
    assert_eq!(answer.cost, Money::parse("0.25"));
    assert!(answer.simulated);
    assert_eq!(
        ear.lines(),
        [
            "thinking Let me think.",
            "call Read c1",
            "result Read c1",
            "text The plan."
        ]
    );
    assert!(ear.events.iter().all(|(_, notes)| notes.flags.synthetic));

    let error = ask(&agents, &request("claude", "build.plan")).await.0;
    let error = error.unwrap_err();
    assert!(matches!(&error.why, AskFailure::Agent(why) if why == "out of credit"));
    for step in ["build.plan", "other"] {
        let answer = ask(&agents, &request("claude", step)).await.0.unwrap();
        assert_eq!(answer.output, "Whatever.");
    }
}

#[tokio::test]
async fn a_script_that_is_used_up_says_so() {
    let agents = scripted("replies.jsonl", "{\"step\":\"a\",\"text\":\"one\"}\n\n");
    assert!(ask(&agents, &request("claude", "a")).await.0.is_ok());
    let error = ask(&agents, &request("claude", "a")).await.0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the script has no reply left for step \"a\"; it had 1"
    );
}

#[tokio::test]
async fn a_script_may_be_a_list_and_its_tokens_have_no_price_unless_it_says() {
    let agents = scripted(
        "replies.yaml",
        "# ours\n- {text: one, usage: {input: 5, output: 1}}\n- {text: two}\n",
    );
    let first = ask(&agents, &request("claude", "a")).await.0.unwrap();
    assert_eq!((&*first.output, first.cost), ("one", None));
    let second = ask(&agents, &request("claude", "a")).await.0.unwrap();
    assert_eq!((&*second.output, second.cost), ("two", Some(Money::ZERO)));
}

#[test]
fn a_script_that_does_not_read_is_blamed_by_its_line() {
    let wrong = |name: &str, text: &str| Script::parse(Path::new(name), text).unwrap_err();
    let error = wrong("r.jsonl", "{\"text\":\"a\"}\n{\"txt\":\"b\"}\n");
    assert_eq!(error.line, Some(2));
    assert!(error.to_string().starts_with("r.jsonl line 2: "), "{error}");
    let error = wrong("r.yaml", "replies:\n  - text: a\n    after_ms: 3\n");
    assert!(error.to_string().contains("after_ms"), "{error}");
    assert!(error.line.is_some(), "{error}");
    let error = wrong("r.jsonl", "{\"text\":\"a\",\"cost_usd\":\"much\"}");
    assert!(error.to_string().contains("much"), "{error}");
}

#[tokio::test]
async fn a_slow_reply_is_cut_off_by_its_timeout_and_by_cancelling() {
    let agents = scripted(
        "r.yaml",
        "replies: [{text: late, delay_ms: 60000, repeat: true}]",
    );
    let mut asked = request("claude", "a");
    asked.timeout = Some(Duration::from_millis(20));
    let error = ask(&agents, &asked).await.0.unwrap_err();
    assert!(matches!(error.why, AskFailure::TimedOut(_)), "{error}");
    assert!(error.heard.simulated);

    let cancel = CancellationToken::new();
    let mut ear = Ear::default();
    let (asked, calls) = (request("claude", "a"), Calls::default());
    let asking = agents.ask(&asked, &mut ear, &calls, &cancel);
    let (answer, ()) = tokio::join!(asking, async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    });
    assert!(matches!(answer.unwrap_err().why, AskFailure::Cancelled));
}

/// A toolbox with one tool.
struct Shout;

impl Toolbox for Shout {
    fn tools(&self) -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "shout".to_owned(),
            description: "Says it louder.".to_owned(),
            input_schema: json!({"type": "object"}),
        }]
    }
    fn call<'a>(
        &'a self,
        request: &'a ToolRequest,
        _: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>> {
        Box::pin(async move {
            ToolOutcome {
                output: json!(
                    request.input["say"]
                        .as_str()
                        .unwrap_or_default()
                        .to_uppercase()
                ),
                error: None,
            }
        })
    }
}

pub(super) fn shouting() -> ToolAccess {
    ToolAccess {
        router: Router::new(vec![Arc::new(Shout)]),
        server: vec!["quipu".to_owned(), "mcp-serve".to_owned()],
        intercept_builtins: true,
    }
}

#[tokio::test]
async fn a_scripted_tool_without_a_result_is_really_called() {
    let agents = scripted(
        "r.yaml",
        "replies: [{text: done, tools: [{name: shout, id: c9, input: {say: hi}}]}]",
    );
    let mut asked = request("claude", "a");
    asked.tools = Some(shouting());
    let (mut ear, calls) = (Ear::default(), Calls::default());
    let never = CancellationToken::new();
    let answer = agents.ask(&asked, &mut ear, &calls, &never).await.unwrap();
    assert_eq!(answer.output, "done");
    let calls = calls.0.into_inner().unwrap();
    assert_eq!(calls, ["call shout c9", "result shout \"HI\""]);
    assert_eq!(ear.lines(), ["text done"]);
}

fn event(path: &str, body: Body) -> Event {
    Event {
        seq: 1,
        run_id: quipu_agents::run_id("r"),
        parent_run_id: None,
        timestamp: Timestamp::UNIX_EPOCH,
        place: Place::step(path),
        body,
        annotations: quipu_model::Annotations::default(),
    }
}

fn said(text: &str) -> Vec<Block> {
    vec![Block::text(Fidelity::AgentEmitted, text)]
}

#[tokio::test]
async fn a_transcript_replies_as_its_agents_did_step_by_step() {
    let call = |fidelity| {
        Body::ToolCall(ToolCall {
            name: "Read".to_owned(),
            call_id: ToolCallId::from("c1".to_owned()),
            input: Some(Json::parse(r#"{"path":"a"}"#).unwrap()),
            fidelity,
        })
    };
    let result = Body::ToolResult(ToolResult {
        name: "Read".to_owned(),
        call_id: ToolCallId::from("c1".to_owned()),
        input: None,
        output: None,
        error: Some("no such file".to_owned()),
        fidelity: Fidelity::Router,
    });
    let thought = Content::Thinking("Hm.".to_owned());
    let events = [
        event("a", Body::UserMessage(said("look"))),
        event("b", Body::UserMessage(said("look as well"))),
        event(
            "a",
            Body::AssistantMessage(vec![Block {
                fidelity: Fidelity::AgentEmitted,
                content: thought,
            }]),
        ),
        event("a", call(Fidelity::AgentEmitted)),
        event("b", Body::AssistantMessage(said("B here."))),
        event("a", call(Fidelity::Router)),
        event("a", result),
        event("a", Body::AssistantMessage(said("First."))),
        event("a", Body::UserMessage(said("try again"))),
        event("a", Body::AssistantMessage(said("Second."))),
    ];
    let script = Script::from_events(events);
    assert_eq!(script.len(), 3);
    let agents = agents(Stub::Transcript(Arc::new(script)));
    let (first, ear) = ask(&agents, &request("claude", "a")).await;
    assert_eq!(first.unwrap().output, "First.");
    assert_eq!(
        ear.lines(),
        [
            "thinking Hm.",
            "call Read c1",
            "result Read c1",
            "text First."
        ],
        "a call that two channels report is one"
    );
    let second = ask(&agents, &request("claude", "a")).await.0.unwrap();
    assert_eq!(
        (&*second.output, second.usage.unwrap().total()),
        ("Second.", 0)
    );
    assert_eq!(
        ask(&agents, &request("claude", "b"))
            .await
            .0
            .unwrap()
            .output,
        "B here."
    );

    // A session of an agent has no steps: its replies are for any.
    let events = [
        event("", Body::UserMessage(said("hello"))),
        event("", Body::AssistantMessage(said("Hi."))),
    ];
    let script = Arc::new(Script::from_events(events));
    let agents = super::stubs::agents(Stub::Transcript(script));
    assert_eq!(
        ask(&agents, &request("gemini", "x"))
            .await
            .0
            .unwrap()
            .output,
        "Hi."
    );
}
