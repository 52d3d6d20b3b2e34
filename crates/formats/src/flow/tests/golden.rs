//! What is written, byte for byte.

use quipu_model::{
    Annotations, Block, Body, Content, Event, Fidelity, Header, Json, LogBody, Money, Notes,
    Origin, Place, RunId, Status, Step, Timestamp, ToolCall, ToolResult, Usage,
};

use super::{Dir, golden, lines, write};
use crate::flow::{Options, stub, verify};

fn text(said: &str) -> Vec<Block> {
    vec![Block::text(Fidelity::AgentEmitted, said)]
}

/// A run of two steps, one of which took two iterations.
pub(in crate::flow) fn session() -> (Header, Vec<Event<LogBody>>) {
    let json = |text: &str| Some(Json::parse(text).unwrap());
    let run = Place::run;
    let implement = |n| Place::step("build.impl-loop").iteration(n);
    let ship = || Place::step("deploy.ship");
    let step = |name: &str| Step::new(name, "agent");
    let call = || {
        Body::ToolCall(ToolCall {
            name: "Bash".to_owned(),
            call_id: "t1".to_owned(),
            input: json(r#"{"command": "cargo test"}"#),
            fidelity: Fidelity::AgentEmitted,
        })
    };
    let result = Body::ToolResult(ToolResult {
        name: "Bash".to_owned(),
        call_id: "t1".to_owned(),
        input: None,
        output: None,
        error: Some("1 failed".to_owned()),
        fidelity: Fidelity::AgentEmitted,
    });
    let thinking = vec![Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::Thinking("A route first.".to_owned()),
    }];
    let bodies: Vec<(Place, LogBody)> = vec![
        (
            run(),
            LogBody::Exchange(Body::RunStarted(Some(Step::new("ship it", "workflow")))),
        ),
        (
            implement(0),
            LogBody::Exchange(Body::StepStarted(step("impl-loop"))),
        ),
        (implement(0), LogBody::System(text("You are the coder."))),
        (
            implement(0),
            LogBody::Exchange(Body::UserMessage(text("Add a health check."))),
        ),
        (
            implement(0),
            LogBody::Exchange(Body::AssistantMessage(thinking)),
        ),
        (implement(0), LogBody::Exchange(call())),
        (implement(0), LogBody::Exchange(result)),
        (
            implement(0),
            LogBody::Exchange(Body::StepCompleted(step("impl-loop").failed("tests fail"))),
        ),
        (
            implement(1),
            LogBody::Exchange(Body::StepStarted(step("impl-loop"))),
        ),
        (
            implement(1),
            LogBody::Exchange(Body::AssistantMessage(text("Fixed."))),
        ),
        (
            implement(1),
            LogBody::Exchange(Body::StepCompleted(
                step("impl-loop").succeeded(json(r#"{"files":1}"#)),
            )),
        ),
        (ship(), LogBody::Exchange(Body::StepStarted(step("ship")))),
        (
            ship(),
            LogBody::Exchange(Body::AssistantMessage(text("Shipped."))),
        ),
        (
            ship(),
            LogBody::Exchange(Body::StepCompleted(step("ship").succeeded(None))),
        ),
        (
            run(),
            LogBody::Exchange(Body::RunCompleted(Some(
                Step::new("ship it", "workflow").succeeded(None),
            ))),
        ),
    ];
    let mut header = Header::new(RunId::new("run-20251209-143022-abc123").unwrap());
    header.title = Some("ship it".to_owned());
    header.origin = Some(Origin {
        agent: "claude-code".to_owned(),
        agent_version: Some("2.0.1".to_owned()),
        session_id: Some("s1".to_owned()),
        ..Origin::default()
    });
    header.environment.cwd = Some("/code".to_owned());
    header.environment.git_branch = Some("main".to_owned());
    header.environment.commit = Some("0a1b2c".to_owned());
    let run_id = header.run_id.clone();
    let events: Vec<_> = (1u64..)
        .zip(bodies)
        .map(|(seq, (place, body))| {
            let mut notes = Notes::default();
            let ends = matches!(&body, LogBody::Exchange(Body::StepCompleted(_)));
            if !place.path.is_empty() {
                let agent = if place.path.starts_with("build") {
                    "code-implementer"
                } else {
                    "shipper"
                };
                notes.subagent_id = Some(agent.to_owned());
            }
            if ends {
                notes.model = Some("claude-sonnet-4-20250514".to_owned());
                notes.usage = Some(Usage {
                    input: Some(100),
                    cache_read: Some(12_000),
                    cache_write: Some(400),
                    cache_write_1h: None,
                    output: Some(3200),
                    reasoning: Some(64),
                });
                notes.cost = Money::parse("0.0123");
            }
            if matches!(&body, LogBody::Exchange(Body::ToolResult(_))) {
                notes.status = Some(Status::Error);
                notes.duration_ms = Some(250);
            }
            Event {
                seq,
                run_id: run_id.clone(),
                parent_run_id: None,
                timestamp: Timestamp::from_millisecond(
                    1_765_290_622_000 + i64::try_from(seq).unwrap() * 250,
                )
                .unwrap(),
                place,
                body,
                annotations: Annotations::from(notes),
            }
        })
        .collect();
    for event in &events {
        header.observe_log(event);
    }
    (header, events)
}

#[test]
fn a_run_of_two_flows() {
    let (header, events) = session();
    let (files, loss, list) = write(&header, &events, &Options::default());
    let mut whole = String::new();
    let dir = Dir::new("run-20251209-143022-abc123");
    for (name, bytes) in &files {
        whole.push_str(&format!(
            "== {name}\n{}\n",
            std::str::from_utf8(bytes).unwrap()
        ));
        dir.put(name, bytes);
    }
    whole.push_str(&format!("== (the list)\n{list}== (the loss)\n{loss}\n"));
    golden("run.txt", &whole);
    let report = verify(&dir.path()).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(
        (report.receipts, report.transcripts, report.lines),
        (3, 3, 6)
    );
    let (run, read) = dir.read();
    golden("run.read.jsonl", &lines(&read));
    assert_eq!(run.header.title, header.title);
    assert_eq!(run.header.totals.usage, header.totals.usage);
    assert_eq!(run.header.totals.cost, header.totals.cost);
    assert_eq!(run.header.environment, header.environment);
    let iterations: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.step.as_str(), step.iteration))
        .collect();
    assert_eq!(
        iterations,
        [("impl-loop", 0), ("impl-loop", 1), ("ship", 0)]
    );
    let (again, _, _) = write(
        &run.header,
        &read,
        &Options {
            engine: Some("claude".to_owned()),
            ..Options::default()
        },
    );
    assert_eq!(files, again, "what was read is written as it was");
}

/// The example of the document, to the letter.
#[test]
fn a_stub_is_as_documented() {
    let step = stub::Step {
        run_id: "run-20251209-143022-abc123",
        flow_key: "build",
        step_id: "impl-loop",
        agent_key: "code-implementer",
        role: "Implement code changes...",
        started_at: "2025-12-09T14:30:22Z".parse().unwrap(),
    };
    let [transcript, receipt] = stub::files(&step);
    assert_eq!(
        transcript.name,
        "build/llm/impl-loop-code-implementer-claude.jsonl"
    );
    assert_eq!(
        receipt.name,
        "build/receipts/impl-loop-code-implementer.json"
    );
    let expected = r#"{"timestamp": "2025-12-09T14:30:22.000000Z", "role": "system", "content": "Executing step impl-loop with agent code-implementer"}
{"timestamp": "2025-12-09T14:30:22.000000Z", "role": "user", "content": "Step role: Implement code changes..."}
{"timestamp": "2025-12-09T14:30:22.100000Z", "role": "assistant", "content": "[STUB] Completed step impl-loop. In production, this would contain the actual Claude response."}
"#;
    assert_eq!(std::str::from_utf8(&transcript.bytes).unwrap(), expected);
    let expected = r#"{
  "engine": "claude-step",
  "model": "claude-stub",
  "step_id": "impl-loop",
  "flow_key": "build",
  "run_id": "run-20251209-143022-abc123",
  "agent_key": "code-implementer",
  "started_at": "2025-12-09T14:30:22.000000Z",
  "completed_at": "2025-12-09T14:30:22.100000Z",
  "duration_ms": 100,
  "status": "succeeded",
  "tokens": {
    "prompt": 0,
    "completion": 0,
    "total": 0
  },
  "transcript_path": "llm/impl-loop-code-implementer-claude.jsonl"
}"#;
    assert_eq!(std::str::from_utf8(&receipt.bytes).unwrap(), expected);
    let dir = Dir::new("run-20251209-143022-abc123");
    dir.put(&transcript.name, &transcript.bytes)
        .put(&receipt.name, &receipt.bytes);
    let (run, events) = dir.read();
    assert!(run.steps[0].stub);
    let in_step = events.iter().filter(|event| !event.place.path.is_empty());
    assert!(
        in_step
            .clone()
            .all(|event| event.annotations.flags.synthetic)
    );
    assert_eq!(in_step.count(), 5);
    assert_eq!(dir.broken(), [verify::Rule::StubSuccess]);
}
