//! Runs that Quipu recorded, beside those of other programs.

use std::path::Path;

use quipu_model::{
    Annotations, Block, Body, Event, Fidelity, Json, Place, RunId, Step, Timestamp, ToolCall,
    ToolResult,
};
use serde_json::{Value, json};

use super::{Listener, append, events, has, put};
use crate::testkit::Served;

const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

fn event(seq: u64, place: &Place, body: Body, extra: &str) -> Event {
    let mut annotations = Annotations::default();
    annotations.extra = Json::parse(extra).ok();
    Event {
        seq,
        run_id: RunId::new(RUN).unwrap(),
        parent_run_id: None,
        timestamp: Timestamp::from_second(1_750_000_000 + i64::try_from(seq).unwrap()).unwrap(),
        place: place.clone(),
        body,
        annotations,
    }
}

/// A workflow with one step of an agent and one of a command.
fn run() -> Vec<String> {
    let text = |text: &str| vec![Block::text(Fidelity::Router, text.to_owned())];
    let (work, check) = (Place::step("work"), Place::step("check"));
    let workflow = Step::new("review", "workflow");
    let (agent, command) = (Step::new("work", "agent"), Step::new("check", "command"));
    let asked = r#"{"provider": "claude", "role": "critic", "argv": ["claude"]}"#;
    let call = ToolCall {
        name: "Bash".to_owned(),
        call_id: "t1".into(),
        input: Json::parse(r#"{"command": "ls"}"#).ok(),
        fidelity: Fidelity::Router,
    };
    let result = ToolResult {
        name: "Bash".to_owned(),
        call_id: "t1".into(),
        input: None,
        output: Some(Json::string("a")),
        error: None,
        fidelity: Fidelity::Router,
    };
    let bodies = vec![
        (Place::run(), Body::RunStarted(Some(workflow.clone())), "{}"),
        (work.clone(), Body::StepStarted(agent.clone()), "{}"),
        (work.clone(), Body::UserMessage(text("look")), asked),
        (work.clone(), Body::ToolCall(call), "{}"),
        (work.clone(), Body::ToolResult(result), "{}"),
        (work.clone(), Body::AssistantMessage(text("fine")), "{}"),
        (
            work.clone(),
            Body::StepCompleted(agent.succeeded(None)),
            "{}",
        ),
        (check.clone(), Body::StepStarted(command.clone()), "{}"),
        (
            check.clone(),
            Body::StepCompleted(command.succeeded(None)),
            "{}",
        ),
        (
            Place::run(),
            Body::RunCompleted(Some(workflow.succeeded(None))),
            "{}",
        ),
    ];
    let events = (1..).zip(bodies).map(|(seq, (place, body, extra))| {
        let mut line = Vec::new();
        quipu_exchange::encode_log(&event(seq, &place, body, extra), &mut line);
        String::from_utf8(line).unwrap()
    });
    events.collect()
}

fn transcript(home: &Path) -> std::path::PathBuf {
    home.join("transcripts").join(format!("{RUN}.jsonl"))
}

fn served(lines: &[String]) -> Served {
    let text = lines.concat();
    Served::with(
        |home| put(&transcript(home), &text),
        |options| options.run_directories = vec![super::fixtures()],
    )
}

fn ok(served: &Served, path: &str) -> Value {
    let answer = served.get(&format!("/api/runs{path}"));
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

#[test]
fn a_recorded_run_is_listed_and_told_like_any_other() {
    let served = served(&run());
    let list = ok(&served, "");
    assert_eq!(list["total"], 4);
    let row = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["run_id"] == RUN)
        .unwrap()
        .clone();
    assert_eq!(
        (&row["run_type"], &row["status"]),
        (&json!("active"), &json!("succeeded"))
    );
    assert_eq!(
        (&row["title"], &row["backend"], &row["recorded"]),
        (&json!("review"), &json!("quipu"), &json!(true))
    );
    assert_eq!(row["started_at"], "2025-06-15T15:06:41+00:00");
    // Its step files were not written when it ran. They are made of its events.
    let summary = ok(&served, &format!("/{RUN}/summary"));
    let flow = &summary["flows"]["review"];
    assert_eq!(super::keys(&summary["flows"]), ["review"]);
    assert_eq!(
        (&flow["status"], &flow["steps"]["work"]["status"]),
        (&json!("done"), &json!("complete"))
    );
    assert_eq!(flow["steps"]["check"]["status"], "n/a");
    let wrapped = ok(
        &served,
        &format!("/{RUN}/flows/review/steps/work/transcript"),
    );
    assert_eq!(wrapped["engine"], "claude");
    let roles: Vec<&str> = wrapped["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "tool", "assistant"]);
    let list = ok(&served, &format!("/{RUN}/transcripts"));
    assert_eq!(
        (&list["total"], &list["transcripts"][0]["agent_key"]),
        (&json!(1), &json!("critic"))
    );
    let list = ok(&served, &format!("/{RUN}/receipts"));
    assert_eq!(
        (&list["total"], &list["receipts"][0]["transcript_present"]),
        (&json!(1), &json!(true))
    );
    let raw = served.get(&format!("/api/runs/{RUN}/receipt/review/work/critic"));
    assert_eq!((raw.status, &raw.json()["step_id"]), (200, &json!("work")));
    let timing = ok(&served, &format!("/{RUN}/timing"));
    assert_eq!(
        timing["timing"]["flows"]["review"]["steps"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let one = ok(&served, &format!("/{RUN}"));
    assert_eq!(one["flows"], json!(["review"]));
    let bar = ok(&served, &format!("/{RUN}/sdlc"));
    has(&bar["sdlc"][0], &["flow", "status", "title"]);
}

#[test]
fn step_files_that_are_kept_are_given_as_they_are() {
    let lines = run();
    let text = lines.concat();
    let served = Served::with(
        |home| {
            put(&transcript(home), &text);
            put(
                &home.join(format!("runs/{RUN}/review/llm/work-critic-claude.jsonl")),
                "{\"kept\": 1}\n",
            );
            put(
                &home.join("runs/alone/review/llm/work-critic-claude.jsonl"),
                "{}\n",
            );
        },
        |_| {},
    );
    let raw = served.get(&format!(
        "/api/runs/{RUN}/transcript/review/work/critic/claude"
    ));
    assert_eq!(raw.text(), "{\"kept\": 1}\n");
    assert_eq!(ok(&served, "")["total"], 2);
    assert_eq!(ok(&served, "/alone")["recorded"], false);
    // Its events are those of the transcript.
    assert_eq!(
        ok(&served, &format!("/{RUN}/events"))["events"]
            .as_array()
            .unwrap()
            .len(),
        10
    );
}

#[test]
fn exchange_events_have_the_kinds_of_flow_studio() {
    let lines = run();
    let served = served(&lines[..7]);
    let path = format!("runs/{RUN}/events");
    let mut listener = Listener::new(&served, &path, None);
    let frames = listener.until("told of the step", |frames, _| events(frames).len() == 7);
    let kinds: Vec<&str> = events(&frames)
        .iter()
        .map(|frame| frame.event.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "run_started",
            "step_start",
            "user_message",
            "tool_start",
            "tool_end",
            "assistant_message",
            "step_end"
        ]
    );
    let tool = &events(&frames)[3].data;
    assert_eq!(
        (&tool["payload"]["tool"], &tool["payload"]["tool_use_id"]),
        (&json!("Bash"), &json!("t1"))
    );
    assert_eq!(
        (&tool["flow_key"], &tool["step_id"], &tool["id"]),
        (&json!("review"), &json!("work"), &json!("4"))
    );
    // Another process goes on with it, in pieces.
    let (half, rest) = lines[7].split_at(30);
    append(&transcript(served.home()), half);
    append(&transcript(served.home()), format!("{rest}{}", lines[8]));
    listener.until("told of the command", |frames, _| events(frames).len() == 9);
    append(&transcript(served.home()), &lines[9]);
    let frames = listener.all();
    let ids: Vec<&str> = events(&frames)
        .iter()
        .map(|frame| frame.id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    let last = frames.last().unwrap();
    assert_eq!((last.event.as_str(), &last.id), ("run:completed", &None));
    let rest = Listener::new(&served, &path, Some("8")).all();
    assert_eq!(events(&rest).len(), 2);
}

#[test]
fn files_are_made_again_when_the_run_went_on() {
    let lines = run();
    let served = served(&lines[..1]);
    assert_eq!(ok(&served, &format!("/{RUN}/transcripts"))["total"], 0);
    assert_eq!(ok(&served, &format!("/{RUN}"))["status"], "running");
    append(&transcript(served.home()), lines[1..].concat());
    assert_eq!(ok(&served, &format!("/{RUN}/transcripts"))["total"], 1);
    assert_eq!(ok(&served, &format!("/{RUN}"))["status"], "succeeded");
}

/// A line of the run itself.
fn of_run(seq: u64, body: Body, extra: &str) -> String {
    let mut line = Vec::new();
    quipu_exchange::encode_log(&event(seq, &Place::run(), body, extra), &mut line);
    String::from_utf8(line).unwrap()
}

/// The end of a run as the engine writes it.
fn end(seq: u64, result: &str, error: Option<&str>) -> String {
    let workflow = Step::new("review", "workflow");
    let mut end = match error {
        Some(error) => workflow.failed(error),
        None => workflow.succeeded(None),
    };
    end.result = Json::parse(result).ok();
    of_run(seq, Body::RunCompleted(Some(end)), "{}")
}

/// The beginning of a run of a workflow.
fn begin(seq: u64) -> String {
    let workflow = Body::RunStarted(Some(Step::new("review", "workflow")));
    of_run(seq, workflow, r#"{"workflow_file": "/w/review.yaml"}"#)
}

fn is_paused(frame: &super::Frame) -> bool {
    frame.event == "heartbeat" && frame.data["status"] == "paused"
}

#[test]
fn a_run_that_waits_is_not_over() {
    let served = served(&[begin(1), end(2, r#"{"status": "paused"}"#, None)]);
    let row = ok(&served, &format!("/{RUN}"));
    assert_eq!(
        (&row["status"], &row["completed_at"], &row["error"]),
        (&json!("paused"), &Value::Null, &Value::Null)
    );
    let mut listener = Listener::new(&served, &format!("runs/{RUN}/events"), None);
    let frames = listener.until("paused", |frames, _| frames.iter().any(is_paused));
    assert_eq!(events(&frames)[1].data["payload"]["status"], "paused");
    assert!(!listener.has_ended);
    // It goes on, and ends.
    let rest = [begin(3), end(4, r#"{"status": "succeeded"}"#, None)];
    append(&transcript(served.home()), rest.concat());
    let frames = listener.all();
    assert_eq!(frames.last().unwrap().event, "run:completed");
    assert_eq!(ok(&served, &format!("/{RUN}"))["status"], "succeeded");
}

#[test]
fn a_run_that_was_cancelled_has_not_failed() {
    let cancelled = end(
        2,
        r#"{"status": "cancelled", "exit_code": 130}"#,
        Some("cancelled"),
    );
    let served = served(&[begin(1), cancelled]);
    let row = ok(&served, &format!("/{RUN}"));
    assert_eq!(
        (&row["status"], &row["completed_at"]),
        (&json!("canceled"), &json!("2025-06-15T15:06:42+00:00"))
    );
    let frames = Listener::new(&served, &format!("runs/{RUN}/events"), None).all();
    let last = frames.last().unwrap();
    assert_eq!(
        (last.event.as_str(), &last.data["status"]),
        ("run:canceled", &json!("canceled"))
    );
    assert_eq!(events(&frames)[1].data["payload"]["status"], "canceled");
}

#[test]
fn a_run_whose_process_died_is_over() {
    let served = served(&[begin(1)]);
    let file = std::fs::File::open(transcript(served.home())).unwrap();
    file.lock().unwrap();
    assert_eq!(ok(&served, &format!("/{RUN}"))["status"], "running");
    let mut listener = Listener::new(&served, &format!("runs/{RUN}/events"), None);
    listener.until("running", |frames, _| {
        let mut frames = frames.iter();
        frames.any(|frame| frame.event == "heartbeat" && frame.data["status"] == "running")
    });
    file.unlock().unwrap();
    let frames = listener.all();
    let last = frames.last().unwrap();
    assert_eq!(
        (last.event.as_str(), &last.data["status"]),
        ("run:stopped", &json!("stopped"))
    );
    assert!(last.data["stop_reason"].is_string(), "{}", last.data);
    let row = ok(&served, &format!("/{RUN}"));
    assert_eq!(
        (&row["status"], &row["completed_at"]),
        (&json!("stopped"), &Value::Null)
    );
    // The next execution says so first, and is running.
    file.lock().unwrap();
    append(
        &transcript(served.home()),
        end(2, r#"{"status": "interrupted"}"#, Some("interrupted")),
    );
    assert_eq!(ok(&served, &format!("/{RUN}"))["status"], "running");
}

#[test]
fn an_end_with_a_long_message_is_an_end() {
    let long = format!(
        r#"{{"status": "failed", "message": "{}"}}"#,
        "x".repeat(600 << 10)
    );
    let served = served(&[begin(1), end(2, &long, Some("no"))]);
    let row = ok(&served, &format!("/{RUN}"));
    assert_eq!(
        (&row["status"], &row["error"]),
        (&json!("failed"), &json!("no"))
    );
}
