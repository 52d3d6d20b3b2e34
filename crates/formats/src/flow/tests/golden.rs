//! What is written, byte for byte.

use std::fmt::Write as _;

use quipu_model::{
    Annotations, Block, Body, Content, Event, Fidelity, Header, Json, Money, Notes, Origin, Place,
    RunId, Status, Step, Timestamp, ToolCall, ToolResult, Usage,
};

use super::{Dir, golden, lines, write};
use crate::flow::{FlowOptions, stub, verify};

fn text(said: &str) -> Vec<Block> {
    vec![Block::text(Fidelity::AgentEmitted, said)]
}

fn said(said: &str) -> Body {
    Body::AssistantMessage(text(said))
}

fn started(name: &str) -> Body {
    Body::StepStarted(Step::new(name, "agent"))
}

fn completed(end: quipu_model::StepEnd) -> Body {
    Body::StepCompleted(end)
}

/// A tool that fails.
fn tool() -> [Body; 2] {
    let call = ToolCall {
        name: "Bash".to_owned(),
        call_id: "t1".into(),
        input: Json::parse(r#"{"command": "cargo test"}"#).ok(),
        fidelity: Fidelity::AgentEmitted,
    };
    let result = ToolResult {
        name: "Bash".to_owned(),
        call_id: "t1".into(),
        input: None,
        output: None,
        error: Some("1 failed".to_owned()),
        fidelity: Fidelity::AgentEmitted,
    };
    [Body::ToolCall(call), Body::ToolResult(result)]
}

fn bodies() -> Vec<(Place, Body)> {
    let implement = |n| Place::flat("build.impl-loop", n);
    let ship = || Place::step("deploy.ship");
    let step = |name: &str| Step::new(name, "agent");
    let run = || Step::new("ship it", "workflow");
    let thinking = vec![Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::Thinking("A route first.".to_owned()),
    }];
    let asked = Body::UserMessage(text("Add a health check."));
    let [call, result] = tool();
    let made = Json::parse(r#"{"files":1}"#).ok();
    let run_started = Body::RunStarted(Some(run()));
    let run_completed = Body::RunCompleted(Some(run().succeeded(None)));
    vec![
        (Place::run(), run_started),
        (implement(0), started("impl-loop")),
        (
            implement(0),
            Body::SystemMessage(text("You are the coder.")),
        ),
        (implement(0), asked),
        (implement(0), Body::AssistantMessage(thinking)),
        (implement(0), call),
        (implement(0), result),
        (
            implement(0),
            completed(step("impl-loop").failed("tests fail")),
        ),
        (implement(1), started("impl-loop")),
        (implement(1), said("Fixed.")),
        (implement(1), completed(step("impl-loop").succeeded(made))),
        (ship(), started("ship")),
        (ship(), said("Shipped.")),
        (ship(), completed(step("ship").succeeded(None))),
        (Place::run(), run_completed),
    ]
}

fn notes(place: &Place, body: &Body) -> Notes {
    let mut notes = Notes::default();
    if !place.path.is_empty() {
        let of_build = place.path.starts_with("build");
        let agent = if of_build {
            "code-implementer"
        } else {
            "shipper"
        };
        notes.subagent_id = Some(agent.into());
    }
    match body {
        Body::StepCompleted(_) => {
            notes.model = Some("claude-sonnet-4-20250514".to_owned());
            notes.cost = Money::parse("0.0123");
            notes.usage = Some(Usage {
                input: Some(100),
                cache_read: Some(12_000),
                cache_write: Some(400),
                cache_write_1h: None,
                output: Some(3200),
                reasoning: Some(64),
            });
        }
        Body::ToolResult(_) => {
            notes.status = Some(Status::Error);
            notes.duration_ms = Some(250);
        }
        _ => {}
    }
    notes
}

/// A run of two steps, one of which took two iterations.
pub(in crate::flow) fn session() -> (Header, Vec<Event>) {
    let mut header = Header::new(RunId::new("run-20251209-143022-abc123").unwrap());
    header.title = Some("ship it".to_owned());
    header.origin = Some(Origin {
        agent: "claude-code".to_owned(),
        agent_version: Some("2.0.1".to_owned()),
        session_id: Some("s1".into()),
        ..Origin::default()
    });
    header.environment.cwd = Some("/code".to_owned());
    header.environment.git_branch = Some("main".to_owned());
    header.environment.commit = Some("0a1b2c".to_owned());
    let run_id = header.run_id.clone();
    let mut events = Vec::new();
    for (seq, (place, body)) in (1i64..).zip(bodies()) {
        let event = Event {
            seq: seq.unsigned_abs(),
            run_id: run_id.clone(),
            parent_run_id: None,
            timestamp: Timestamp::from_millisecond(1_765_290_622_000 + seq * 250).unwrap(),
            annotations: Annotations::from(notes(&place, &body)),
            place,
            body,
        };
        header.observe(&event);
        events.push(event);
    }
    (header, events)
}

#[test]
fn a_run_of_two_flows() {
    let (header, events) = session();
    let (files, loss, list) = write(&header, &events, &FlowOptions::default());
    let mut whole = String::new();
    let dir = Dir::new("run-20251209-143022-abc123");
    for (name, bytes) in &files {
        let text = std::str::from_utf8(bytes).unwrap();
        writeln!(whole, "== {name}\n{text}").unwrap();
        dir.put(name, bytes);
    }
    writeln!(whole, "== (the list)\n{list}== (the loss)\n{loss}").unwrap();
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
        &FlowOptions {
            engine: Some("claude".to_owned()),
            ..FlowOptions::default()
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
    // Beginning, three lines, what the receipt says, and the end.
    assert_eq!(in_step.count(), 6);
    assert_eq!(dir.broken(), [verify::Rule::StubSuccess]);
}

#[test]
fn the_page_shows_what_is_written() {
    let (header, events) = session();
    let (files, _, _) = write(&header, &events, &FlowOptions::default());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/flow.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let text = |name: &str| std::str::from_utf8(&files[name]).unwrap();
    assert!(docs.contains(text("build/receipts/impl-loop-code-implementer.json")));
    let first = text("build/llm/impl-loop-code-implementer-claude.i1.jsonl");
    assert!(docs.contains(first.lines().last().unwrap()));
}
