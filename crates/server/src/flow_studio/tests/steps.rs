//! Transcripts and receipts of steps.

use quipu_formats::flow::stub::{self, Step};
use serde_json::{Value, json};

use super::{LOOP, SHAPES, Site, fixtures, has, put};

#[test]
fn a_transcript_is_wrapped_as_the_original_wraps_it() {
    let site = Site::new();
    let path = format!("runs/{LOOP}/flows/build/steps/implement/transcript");
    let got = site.ok(&path);
    has(
        &got,
        &[
            "run_id",
            "flow_key",
            "step_id",
            "engine",
            "messages",
            "transcript_file",
        ],
    );
    assert_eq!(
        (&got["run_id"], &got["flow_key"], &got["step_id"]),
        (&json!(LOOP), &json!("build"), &json!("implement"))
    );
    assert_eq!(got["engine"], "claude");
    let file = got["transcript_file"].as_str().unwrap();
    let text =
        std::fs::read_to_string(site.path(&format!("examples/{LOOP}/build/llm/{file}"))).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(got["messages"], json!(lines));
    let receipt = site.ok(&format!("runs/{LOOP}/flows/build/steps/implement/receipt"));
    has(
        &receipt,
        &["run_id", "flow_key", "step_id", "receipt", "receipt_file"],
    );
    let file = receipt["receipt_file"].as_str().unwrap();
    let text = std::fs::read(site.path(&format!("examples/{LOOP}/build/receipts/{file}"))).unwrap();
    assert_eq!(
        receipt["receipt"],
        serde_json::from_slice::<Value>(&text).unwrap()
    );
}

#[test]
fn what_is_missing_is_named() {
    let site = Site::with(|swarm| put(&swarm.join("runs/r/build/notes.md"), "x"));
    for part in ["transcript", "receipt"] {
        let gone = site.refused(&format!("runs/nope/flows/build/steps/x/{part}"), 404);
        assert_eq!(gone["error"], "Run 'nope' not found");
        let error = format!("No {part}s available for this step");
        for flow in ["build", "nope"] {
            let gone = site.refused(&format!("runs/r/flows/{flow}/steps/x/{part}"), 404);
            assert_eq!(gone["error"], error);
        }
        let gone = site.refused(&format!("runs/{LOOP}/flows/build/steps/x/{part}"), 404);
        assert_eq!(gone["error"], format!("No {part} found for step 'x'"));
        assert_eq!(gone["available_files"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn malformed_lines_are_counted_not_hidden() {
    let site = Site::with(|swarm| {
        let text = "{\"role\": \"user\", \"content\": \"a\", \"n\": 1.50}\nnot JSON\n\n{\"type\": \"tool_use\"}\n{\"torn";
        put(&swarm.join("runs/r/build/llm/x-y-claude.jsonl"), text);
    });
    let answer = site.get("runs/r/flows/build/steps/x/transcript");
    let got = answer.json();
    assert_eq!(
        (
            got["messages"].as_array().unwrap().len(),
            &got["malformed_lines"]
        ),
        (2, &json!(2))
    );
    // As it was written.
    assert!(answer.text().contains("1.50"));
}

fn stub(swarm: &std::path::Path, run: &str, flow: &str, step: &str, agent: &str) {
    let files = stub::files(&Step {
        run_id: run,
        flow_key: flow,
        step_id: step,
        agent_key: agent,
        role: "test",
        started_at: "2025-12-09T10:00:00Z".parse().unwrap(),
    });
    for file in files {
        put(&swarm.join("runs").join(run).join(&file.name), &file.bytes);
    }
}

#[test]
fn names_with_hyphens_are_told_apart_by_their_receipts() {
    let site = Site::with(|swarm| {
        stub(swarm, "r", "build", "impl-loop", "code-implementer");
        stub(swarm, "r", "build", "impl", "loop-critic");
        // Without a receipt nothing tells; any way of reading the name will do.
        put(&swarm.join("runs/r/gate/llm/a-b-c-claude.jsonl"), "{}\n");
    });
    let got = site.ok("runs/r/flows/build/steps/impl-loop/transcript");
    assert_eq!(
        got["transcript_file"],
        "impl-loop-code-implementer-claude.jsonl"
    );
    assert_eq!(
        (&got["ambiguous"], &got["other_files"]),
        (&json!(false), &json!([]))
    );
    let got = site.ok("runs/r/flows/build/steps/impl/transcript");
    assert_eq!(got["transcript_file"], "impl-loop-critic-claude.jsonl");
    for step in ["a", "a-b"] {
        let got = site.ok(&format!("runs/r/flows/gate/steps/{step}/transcript"));
        assert_eq!(
            (&got["transcript_file"], &got["ambiguous"]),
            (&json!("a-b-c-claude.jsonl"), &json!(true))
        );
    }
    site.refused("runs/r/flows/gate/steps/b/transcript", 404);
    for (step, agent) in [("a", "b-c"), ("a-b", "c")] {
        let raw = site.get(&format!("runs/r/transcript/gate/{step}/{agent}/claude"));
        assert_eq!((raw.status, raw.text()), (200, "{}\n".to_owned()), "{step}");
    }
    // A part of an agent's name is not the agent.
    for (step, agent) in [("a", "b"), ("a", "c"), ("a-b", "b-c")] {
        let raw = site.get(&format!("runs/r/transcript/gate/{step}/{agent}/claude"));
        assert_eq!(raw.status, 404, "{step} {agent}");
    }
}

#[test]
fn several_agents_and_iterations_have_an_order() {
    let site = Site::with(|swarm| {
        for (file, text) in [
            ("x-b-claude.jsonl", "1"),
            ("x-a-gemini.jsonl", "2"),
            ("x-a-claude.i1.jsonl", "3"),
            ("x-a-claude.jsonl", "4"),
            ("x-a-claude.i2.jsonl", "5"),
        ] {
            put(
                &swarm.join("runs/r/build/llm").join(file),
                format!("{text}\n"),
            );
        }
    });
    let got = site.ok("runs/r/flows/build/steps/x/transcript");
    assert_eq!(
        (&got["transcript_file"], &got["messages"]),
        (&json!("x-a-claude.jsonl"), &json!([4]))
    );
    assert_eq!(got["other_files"].as_array().unwrap().len(), 4);
    let of = |query: &str| {
        site.ok(&format!("runs/r/flows/build/steps/x/transcript?{query}"))["messages"][0].clone()
    };
    assert_eq!(of("agent=b"), 1);
    assert_eq!(of("engine=gemini"), 2);
    assert_eq!(of("iteration=1"), 3);
    // The number of the latest is in the list, and not in its name.
    let list = site.ok("runs/r/transcripts");
    let rows = list["transcripts"].as_array().unwrap();
    let latest = rows
        .iter()
        .find(|row| row["path"] == "build/llm/x-a-claude.jsonl")
        .unwrap()["iteration"]
        .clone();
    let path = format!("runs/r/flows/build/steps/x/transcript?agent=a&iteration={latest}");
    assert_eq!(site.ok(&path)["iteration"], latest);
    let raw = |path: &str| site.get(&format!("runs/r/transcript/build/{path}")).text();
    assert_eq!(raw("x/a/claude"), "4\n");
    assert_eq!(raw("x/a/claude?iteration=2"), "5\n");
    assert_eq!(raw("x/a/claude-step"), "4\n");
    assert_eq!(site.get("runs/r/transcript/build/x/a/codex").status, 404);
    let list = site.ok("runs/r/transcripts");
    let mut paths: Vec<&str> = list["transcripts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    assert_eq!(paths.len(), 5);
    assert!(paths.contains(&"build/llm/x-a-claude.i2.jsonl"));
}

#[test]
fn files_are_given_as_the_seed_reads_them() {
    let site = Site::new();
    let answer = site.get(&format!(
        "runs/{SHAPES}/transcript/build/impl-loop/code-implementer/claude"
    ));
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/x-ndjson"))
    );
    let file = fixtures()
        .join(SHAPES)
        .join("build/llm/impl-loop-code-implementer-claude.jsonl");
    assert_eq!(answer.body, std::fs::read(file).unwrap());
    let tag = answer.header("etag").unwrap();
    let again = site.served.send(
        "GET",
        &format!("/api/runs/{SHAPES}/transcript/build/impl-loop/code-implementer/claude"),
        &[("if-none-match", tag)],
        b"",
    );
    assert_eq!((again.status, again.body.len()), (304, 0));
    let answer = site.get(&format!(
        "runs/{SHAPES}/receipt/build/impl-loop/code-implementer"
    ));
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json"))
    );
    let file = fixtures()
        .join(SHAPES)
        .join("build/receipts/impl-loop-code-implementer.json");
    assert_eq!(answer.body, std::fs::read(file).unwrap());
    let gone = site.refused(
        &format!("runs/{SHAPES}/receipt/build/impl-loop/nobody"),
        404,
    );
    has(&gone, &["error", "available_files"]);
}

#[test]
fn a_large_transcript_is_streamed_whole() {
    let row = format!(
        "{{\"role\": \"user\", \"content\": \"{}\"}}\n",
        "x".repeat(1000)
    );
    let text = row.repeat(5000);
    let site = Site::with(|swarm| put(&swarm.join("runs/r/build/llm/x-y-claude.jsonl"), &text));
    let answer = site.get("runs/r/transcript/build/x/y/claude");
    assert_eq!(
        answer.header("content-length"),
        Some(text.len().to_string().as_str())
    );
    assert!(answer.body == text.as_bytes());
}

#[test]
fn the_lists_that_the_seed_promises_are_there() {
    let site = Site::new();
    let list = site.ok(&format!("runs/{SHAPES}/transcripts"));
    has(&list, &["run_id", "transcripts", "total"]);
    let rows = list["transcripts"].as_array().unwrap();
    assert_eq!(
        (rows.len() as u64, rows.len()),
        (list["total"].as_u64().unwrap(), 9)
    );
    for row in rows {
        has(
            row,
            &[
                "flow_key",
                "step_id",
                "agent_key",
                "engine",
                "iteration",
                "path",
                "size_bytes",
                "message_count",
                "tool_call_count",
                "first_ts",
                "last_ts",
                "stub",
                "receipt_path",
                "issues",
            ],
        );
    }
    let row = rows
        .iter()
        .find(|row| row["step_id"] == "impl-loop")
        .unwrap();
    assert_eq!(
        row["path"],
        "build/llm/impl-loop-code-implementer-claude.jsonl"
    );
    assert_eq!(
        row["receipt_path"],
        "build/receipts/impl-loop-code-implementer.json"
    );
    assert!(
        row["message_count"].as_u64() > Some(0) && row["tool_call_count"].as_u64() > Some(0),
        "{row}"
    );
    assert!(row["first_ts"].as_str().unwrap() <= row["last_ts"].as_str().unwrap());
    let without = rows
        .iter()
        .find(|row| row["receipt_path"].is_null())
        .unwrap();
    assert_eq!(without["issues"][0]["rule"], "receipt-missing");

    let list = site.ok(&format!("runs/{SHAPES}/receipts"));
    has(&list, &["run_id", "receipts", "totals", "total"]);
    has(
        &list["totals"],
        &["prompt", "completion", "total", "duration_ms", "cost_usd"],
    );
    let rows = list["receipts"].as_array().unwrap();
    // The receipt of a prompt is not one of a step.
    assert!(
        rows.iter()
            .all(|row| !row["path"].as_str().unwrap().contains("prompt_receipt"))
    );
    for row in rows {
        has(
            row,
            &[
                "engine",
                "model",
                "step_id",
                "agent_key",
                "path",
                "transcript_present",
                "issues",
                "cost_usd",
            ],
        );
        assert_eq!(row["transcript_present"], true);
    }
    site.refused("runs/nope/transcripts", 404);
    site.refused("runs/nope/receipts", 404);
}

fn receipt(step: &str, model: &str, tokens: (u64, u64)) -> String {
    json!({
        "engine": "claude-step", "model": model, "step_id": step, "flow_key": "build", "run_id": "r",
        "agent_key": "a", "started_at": "2025-12-09T10:00:00Z", "completed_at": "2025-12-09T10:00:01Z",
        "duration_ms": 1000, "status": "succeeded",
        "tokens": {"prompt": tokens.0, "completion": tokens.1, "total": tokens.0 + tokens.1},
        "transcript_path": format!("llm/{step}-a-claude.jsonl"),
    })
    .to_string()
}

#[test]
fn cost_is_worked_out_and_unknown_where_a_model_is() {
    let site = Site::with(|swarm| {
        let put = |run: &str, step: &str, text: String| {
            put(
                &swarm.join(format!("runs/{run}/build/receipts/{step}-a.json")),
                text,
            );
        };
        put(
            "r",
            "x",
            receipt("x", "claude-sonnet-4-20250514", (1_000_000, 1000)),
        );
        put("r", "y", receipt("y", "claude-stub", (0, 0)));
        put(
            "s",
            "x",
            receipt("x", "claude-sonnet-4-20250514", (1000, 1000)),
        );
        put("s", "y", receipt("y", "my-own-model", (10, 20)));
    });
    let list = site.ok("runs/r/receipts");
    // 3 dollars a million in, or more for long prompts; 15 out. A stub costs nothing.
    let cost = list["totals"]["cost_usd"].as_f64().unwrap();
    assert!((3.0..7.0).contains(&cost), "{cost}");
    assert_eq!(list["totals"]["simulated"], 1);
    assert_eq!(
        (&list["totals"]["total"], &list["totals"]["duration_ms"]),
        (&json!(1_001_000), &json!(2000))
    );
    let list = site.ok("runs/s/receipts");
    assert_eq!(
        (&list["totals"]["cost_usd"], &list["totals"]["unpriced"]),
        (&Value::Null, &json!(["my-own-model"]))
    );
    assert!((list["totals"]["known_cost_usd"].as_f64().unwrap() - 0.018).abs() < 1e-9);
    assert_eq!(list["totals"]["prompt"], 1010);
    let runs = site.ok("runs");
    let row = |id: &str| {
        let rows = runs["runs"].as_array().unwrap();
        rows.iter().find(|row| row["run_id"] == id).unwrap().clone()
    };
    assert_eq!(
        (&row("s")["cost_usd"], &row("s")["tokens"]["total"]),
        (&Value::Null, &json!(2030))
    );
    assert_eq!(row("r")["cost_usd"].as_f64(), Some(cost));
    // A receipt that changes is noticed.
    put(
        &site.path("runs/s/build/receipts/y-a.json"),
        receipt("y", "claude-sonnet-4-20250514", (1000, 0)),
    );
    let row = site.ok("runs/s");
    assert!(row["cost_usd"].as_f64().is_some(), "{row}");
}
