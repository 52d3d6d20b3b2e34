//! From the start of a run to its end, and on from there.

use std::sync::Arc;

use quipu_model::RunId;
use quipu_record::{Storage, SystemClock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Lab, put, within};
use crate::control::runs::{About, Run, Runs};
use crate::testkit::Served;

const GREET: &str = r#"
inputs:
  - {name: who, type: string, required: true}
  - {name: times, type: integer, default: 1}
states:
  initial: hello
  hello: {type: command, command: "printf 'hello %s' \"$who\"", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.hello.Output}}"}
"#;

#[test]
fn a_run_is_started_and_followed_to_its_end() {
    let lab = Lab::new(&[("greet", GREET)]);
    let id = lab.start(&json!({"workflow": "greet", "inputs": {"who": "ada", "times": 2}}));
    let run = lab.until_is(&id, "succeeded");
    assert_eq!(run["outcome"]["message"], "hello ada");
    assert_eq!(run["outcome"]["exit_code"], 0);
    assert_eq!(run["inputs"], json!({"who": "ada", "times": "2"}));
    assert_eq!(
        run["links"]["transcript"],
        format!("/api/v1/transcripts/{id}")
    );
    assert_eq!(run["here"], true);
    assert!(
        run["ended_at"].is_string() && run["pause"].is_null(),
        "{run}"
    );
    let events = lab.transcript(&id);
    assert!(
        events
            .lines()
            .last()
            .unwrap()
            .contains("\"status\":\"succeeded\"")
    );
    let list = lab.served.get("/api/v1/executions").json();
    assert_eq!(list["items"][0]["id"], *id);
    assert_eq!(list["items"][0]["status"], "succeeded");
    // What this server knows and what the transcript says is the same.
    let path = Storage::at(lab.served.home()).path_of(&RunId::new(&id).unwrap());
    let other = Served::with(
        |home| {
            put(
                &home.join("transcripts").join(path.file_name().unwrap()),
                &events,
            );
        },
        |_| {},
    );
    let there = other.get(&format!("/api/v1/executions/{id}")).json();
    for field in [
        "id",
        "workflow",
        "workflow_file",
        "status",
        "started_by",
        "inputs",
        "outcome",
        "root",
    ] {
        assert_eq!(there[field], run[field], "{field}");
    }
    assert_eq!(there["here"], false);
}

#[test]
fn agents_answer_as_the_request_says() {
    let steps = r#"
states:
  initial: ask
  ask: {type: agent, provider: claude, prompt: "Say something", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.ask.Output}}"}
"#;
    let lab = Lab::new(&[("ask", steps)]);
    let stub = json!([{"step": "ask", "text": "as you wish"}]);
    let id = lab.start(&json!({"workflow": "ask", "stub": stub}));
    let run = lab.until_is(&id, "succeeded");
    assert_eq!(run["outcome"]["message"], "as you wish");
    let wrong = lab.post(
        "/api/v1/executions",
        &json!({"workflow": "ask", "stub": [{"tekst": "x"}]}),
    );
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    assert!(wrong.text().contains("tekst"), "{}", wrong.text());
}

const FLAKY: &str = r#"
states:
  initial: first
  first: {type: command, command: "echo ran >> first.txt", on_success: second}
  second: {type: command, command: "test -e ready", on_success: done}
  done: {type: terminal, status: success, message: "well"}
"#;

#[test]
fn a_failed_run_goes_on_where_it_failed() {
    let lab = Lab::new(&[("flaky", FLAKY)]);
    let id = lab.start(&json!({"workflow": "flaky"}));
    let run = lab.until_is(&id, "failed");
    assert!(
        run["outcome"]["error"].as_str().unwrap().contains("second"),
        "{run}"
    );
    put(&lab.work.path().join("ready"), "");
    let answer = lab.act("", &id, "resume", &json!({}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    lab.until_is(&id, "succeeded");
    assert_eq!(lab.read("first.txt"), "ran\n");
    // What has succeeded is done, unless a step is named.
    let again = lab.act("", &id, "resume", &json!({}));
    assert_eq!(again.status, 409, "{}", again.text());
    let run = lab.see(&id);
    assert_eq!(
        run["status"], "succeeded",
        "what was refused leaves the run as it was"
    );
    let again = lab.act("", &id, "resume", &json!({"from": "first"}));
    assert_eq!(again.status, 202, "{}", again.text());
    assert!(within(|| lab.read("first.txt") == "ran\nran\n"));
    lab.until_is(&id, "succeeded");
}

#[test]
fn a_run_whose_process_was_killed_is_lost_and_goes_on() {
    let lab = Lab::new(&[("flaky", FLAKY)]);
    put(&lab.work.path().join("ready"), "");
    let id = lab.start(&json!({"workflow": "flaky"}));
    lab.until_is(&id, "succeeded");
    // As a kill in the middle of the second step leaves it: a line that is torn, and no end.
    let events = lab.transcript(&id);
    let lines: Vec<&str> = events.split_inclusive('\n').collect();
    let at = lines
        .iter()
        .position(|line| line.contains("step.started") && line.contains("second"));
    let (whole, torn) = (lines[..=at.unwrap()].concat(), lines[at.unwrap() + 1]);
    let path = Storage::at(lab.served.home()).path_of(&RunId::new(&id).unwrap());
    put(&path, &format!("{whole}{}", &torn[..torn.len() / 2]));
    let run = lab.see(&id);
    assert_eq!(
        (&run["status"], &run["here"]),
        (&json!("lost"), &json!(false)),
        "{run}"
    );
    assert!(
        run["outcome"].is_null() && run["ended_at"].is_null(),
        "{run}"
    );
    let list = lab.served.get("/api/v1/executions?status=lost").json();
    assert_eq!(list["items"][0]["id"], *id);
    let answer = lab.act("", &id, "resume", &json!({}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    lab.until_is(&id, "succeeded");
    assert_eq!(
        lab.read("first.txt"),
        "ran\n",
        "the first step answered from the transcript"
    );
}

#[test]
fn a_retry_with_the_same_key_finds_the_run() {
    let lab = Lab::new(&[("greet", GREET)]);
    let token = lab.served.app.token().expose();
    let start = |served: &Served, token: &str, key: &str, who: &str| {
        let headers = [
            ("x-quipu-token", token),
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        let body = json!({"workflow": "greet", "inputs": {"who": who}}).to_string();
        served.send("POST", "/api/v1/executions", &headers, body.as_bytes())
    };
    let first = start(&lab.served, token, "order 1", "ada");
    assert_eq!(first.status, 202, "{}", first.text());
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        start(&lab.served, token, "order 1", "ada").json()["id"],
        *id
    );
    assert_ne!(
        start(&lab.served, token, "order 2", "ada").json()["id"],
        *id
    );
    let other = start(&lab.served, token, "order 1", "bob");
    assert_eq!(other.status, 409, "{}", other.text());
    assert_eq!(start(&lab.served, token, "", "ada").status, 400);
    lab.until_is(&id, "succeeded");
    // Another server finds it, too: the one that started it may have been killed.
    let events = lab.transcript(&id);
    let work = lab.work.path().to_owned();
    let again = Served::with(
        |home| put(&home.join(format!("transcripts/{id}.jsonl")), &events),
        |options| options.work_directory = work,
    );
    let token = again.app.token().expose();
    let found = start(&again, token, "order 1", "ada");
    assert_eq!(
        (found.status, found.json()["id"].as_str()),
        (202, Some(&*id))
    );
    assert_eq!(found.json()["status"], "succeeded");
    assert_eq!(start(&again, token, "order 1", "bob").status, 409);
}

#[test]
fn requests_that_come_at_once_with_one_key_start_one_run() {
    let steps = r#"
states:
  initial: count
  count: {type: command, command: "echo ran >> count.txt", on_success: done}
  done: {type: terminal, status: success}
"#;
    let lab = Lab::new(&[("count", steps)]);
    let body = json!({"workflow": "count"}).to_string();
    let ids: Vec<Value> = std::thread::scope(|scope| {
        let ask = || {
            let headers = [
                ("x-quipu-token", lab.served.app.token().expose()),
                ("content-type", "application/json"),
                ("idempotency-key", "once"),
            ];
            let answer = lab
                .served
                .send("POST", "/api/v1/executions", &headers, body.as_bytes());
            assert_eq!(answer.status, 202, "{}", answer.text());
            answer.json()["id"].clone()
        };
        let asking: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    lab.until_is(ids[0].as_str().unwrap(), "succeeded");
    assert_eq!(lab.read("count.txt"), "ran\n");
}

#[test]
fn lists_come_in_pages() {
    let lab = Lab::new(&[("greet", GREET)]);
    let mut started: Vec<String> = Vec::new();
    for who in ["a", "b", "c", "d", "e"] {
        let id = lab.start(&json!({"workflow": "greet", "inputs": {"who": who}}));
        lab.until_is(&id, "succeeded");
        started.push(id);
    }
    started.reverse();
    let mut seen = Vec::new();
    let mut path = "/api/v1/executions?limit=2".to_owned();
    for _ in 0..3 {
        let page = lab.served.get(&path).json();
        let items = page["items"].as_array().unwrap();
        seen.extend(
            items
                .iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/executions?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, started);
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "cursor=x",
        "cursor=2026_..",
        "status=odd",
        "what=1",
    ] {
        let answer = lab.served.get(&format!("/api/v1/executions?{query}"));
        assert_eq!(answer.status, 400, "{query}: {}", answer.text());
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .contains("problem+json")
        );
    }
}

#[test]
fn workflows_are_listed_described_and_checked() {
    let pack = r"
name: deep
states:
  initial: done
  done: {type: terminal, status: success}
";
    let lab = Lab::new(&[("greet", GREET), ("broken", "states: {initial: nowhere}\n")]);
    put(
        &lab.work
            .path()
            .join(".quipu/workflow-packs/tools/workflows/deep.yaml"),
        pack,
    );
    let rows = lab.served.get("/api/v1/workflows").json();
    let names: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    for name in ["broken", "greet", "tools/deep"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let about = lab.served.get("/api/v1/workflows/greet").json();
    assert_eq!(about["inputs"][0]["name"], "who");
    assert_eq!(about["inputs"][1]["default"], "1");
    assert_eq!(
        about["steps"][0],
        json!({"name": "hello", "kind": "command", "description": null})
    );
    assert!(
        about["mermaid"].as_str().unwrap().contains("hello"),
        "{about}"
    );
    assert_eq!(lab.served.get("/api/v1/workflows/tools%2Fdeep").status, 200);
    let about = lab.served.get("/api/v1/workflows/broken").json();
    assert_eq!(about["findings"][0]["severity"], "error", "{about}");
    put(
        &lab.work.path().join(".quipu/workflows/torn.yaml"),
        "name: [",
    );
    assert_eq!(lab.served.get("/api/v1/workflows/torn").status, 422);
    let check = |body: Value| lab.post("/api/v1/workflows/validate", &body);
    assert_eq!(check(json!({"workflow": "greet"})).json()["valid"], true);
    let broken = check(json!({"workflow": "broken"})).json();
    assert_eq!(
        (&broken["valid"], &broken["findings"][0]["severity"]),
        (&json!(false), &json!("error"))
    );
    let text =
        check(json!({"text": "name: x\nstates:\n  initial: a\n  a: {type: terminall}\n"})).json();
    assert_eq!(
        (&text["valid"], &text["findings"][0]["line"]),
        (&json!(false), &json!(4)),
        "{text}"
    );
    assert_eq!(check(json!({})).status, 400);
    let start = lab.post("/api/v1/executions", &json!({"workflow": "broken"}));
    assert_eq!(
        (start.status, start.json()["type"].as_str()),
        (422, Some("workflow_invalid"))
    );
}

#[test]
fn a_panic_in_a_run_ends_that_run_and_nothing_else() {
    let lab = Lab::new(&[("greet", GREET)]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let runs = Runs::new(1);
        let about = About {
            workflow: "w".to_owned(),
            file: "w.yaml".into(),
            root: ".".into(),
            inputs: Vec::new(),
            secrets: quipu_flow::engine::Secrets::default(),
            starter: "ada".to_owned(),
            started_at: quipu_record::Clock::now(&SystemClock),
            spent: (quipu_model::Money::ZERO, 0),
            stub: None,
        };
        let id = RunId::new("r").unwrap();
        let clock = Arc::new(SystemClock);
        let run = Run::new(id, about, "r.jsonl".into(), clock, CancellationToken::new());
        let permit = runs.permit().unwrap();
        assert!(runs.permit().is_err());
        let work = async { panic!("a defect") };
        Runs::spawn(lab.served.app.clone(), Arc::clone(&run), permit, work);
        run.ended().await;
        drop(runs.permit().unwrap());
    });
    let id = lab.start(&json!({"workflow": "greet", "inputs": {"who": "ada"}}));
    lab.until_is(&id, "succeeded");
}

#[test]
fn runs_of_earlier_starts_are_listed() {
    let quick = r"
states:
  initial: done
  done: {type: terminal, status: success}
";
    let lab = Lab::new(&[("quick", quick)]);
    let ids: Vec<String> = (0..3)
        .map(|_| {
            let id = lab.start(&json!({"workflow": "quick"}));
            lab.until_is(&id, "succeeded");
            id
        })
        .collect();
    let Lab { served, work } = lab;
    let lab = Lab {
        served: served.restarted(),
        work,
    };
    let mut found = Vec::new();
    let mut path = "/api/v1/executions?limit=2".to_owned();
    loop {
        let page = lab.served.get(&path).json();
        for row in page["items"].as_array().unwrap() {
            assert_eq!(
                (&row["status"], &row["here"]),
                (&json!("succeeded"), &json!(false))
            );
            assert!(row["ended_at"].is_string(), "{row}");
            found.push(row["id"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/api/v1/executions?limit=2&cursor={next}");
    }
    found.reverse();
    assert_eq!(found, ids, "the newest first");
    let failed = lab.served.get("/api/v1/executions?status=failed").json();
    assert_eq!(failed["items"], json!([]));
}
