//! Each endpoint in the shape of the original, and correct where the original is not.

use serde_json::{Value, json};

use super::{GEMINI, LOOP, SHAPES, Site, has, keys, line, put};

fn ids(list: &Value) -> Vec<&str> {
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| run["run_id"].as_str().unwrap()).collect()
}

#[test]
fn runs_are_listed_examples_first_then_the_newest() {
    let site = Site::new();
    let list = site.ok("runs");
    assert_eq!(ids(&list), [LOOP, SHAPES, GEMINI]);
    assert_eq!(
        keys(&list),
        ["has_more", "limit", "offset", "runs", "total"]
    );
    assert_eq!(
        (&list["total"], &list["limit"], &list["offset"]),
        (&json!(3), &json!(100), &json!(0))
    );
    assert_eq!(list["has_more"], false);
    let [example, run, gemini] = list["runs"].as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    assert_eq!(
        (&example["run_type"], &run["run_type"]),
        (&json!("example"), &json!("active"))
    );
    assert!(
        run["path"]
            .as_str()
            .unwrap()
            .ends_with(&format!("swarm/runs/{SHAPES}"))
    );
    assert_eq!(
        (&run["title"], &run["tags"]),
        (&json!("Health endpoint"), &json!(["pinned"]))
    );
    assert_eq!(run["description"], Value::Null);
    // What the original strips.
    assert_eq!(run["status"], "succeeded");
    assert_eq!(run["created_at"], "2025-12-09T14:30:20+00:00");
    assert_eq!(example["backend"], "claude-step-orchestrator");
    assert_eq!(example["is_exemplar"], false);
    assert_eq!(
        (&example["simulated"], &example["cost_usd"]),
        (&json!(true), &json!(0.0))
    );
    // A backend that is not known is left out: clients take it for a text.
    assert!(gemini.get("backend").is_none());
}

#[test]
fn pages_are_clamped_and_what_is_not_a_number_is_refused_as_fastapi_does() {
    let site = Site::new();
    for (query, limit, offset, count, more) in [
        ("limit=1", 1, 0, 1, true),
        ("limit=0", 1, 0, 1, true),
        ("limit=-5&offset=-1", 1, 0, 1, true),
        ("limit=99999", 500, 0, 3, false),
        ("limit=1&limit=2&offset=1", 2, 1, 2, false),
        ("limit=2.0", 2, 0, 2, true),
        ("offset=99999999999999999999", 100, i64::MAX, 0, false),
    ] {
        let list = site.ok(&format!("runs?{query}"));
        assert_eq!(
            (&list["limit"], &list["offset"]),
            (&json!(limit), &json!(offset)),
            "{query}"
        );
        assert_eq!(
            (ids(&list).len(), &list["has_more"]),
            (count, &json!(more)),
            "{query}"
        );
    }
    for (query, name, input) in [
        ("limit=abc", "limit", "abc"),
        ("offset=1.5", "offset", "1.5"),
        ("limit=", "limit", ""),
    ] {
        let refused = site.refused(&format!("runs?{query}"), 422);
        assert_eq!(
            refused,
            json!({"detail": [{
                "type": "int_parsing",
                "loc": ["query", name],
                "msg": "Input should be a valid integer, unable to parse string as an integer",
                "input": input,
            }]})
        );
    }
}

#[test]
fn one_run_is_there_though_the_original_only_documents_it() {
    let site = Site::new();
    let run = site.ok(&format!("runs/{SHAPES}"));
    has(
        &run,
        &[
            "run_id", "run_type", "path", "status", "tokens", "cost_usd", "flows", "meta",
        ],
    );
    assert_eq!(run["flows"], json!(["build", "deploy", "gate"]));
    let refused = site.refused("runs/nope", 404);
    assert_eq!(refused["error"], "Run 'nope' not found");
}

#[test]
fn unknown_routes_are_answered_as_fastapi_does() {
    let site = Site::new();
    for path in [
        "runs/a/b/c",
        "runs/x/nothing",
        "runs/x/flows",
        "runs/x/transcript/a/b",
    ] {
        assert_eq!(
            site.refused(path, 404),
            json!({"detail": "Not Found"}),
            "{path}"
        );
    }
    let answer = site.served.send("DELETE", "/api/runs", &[], b"");
    assert_eq!(
        (answer.status, answer.json()),
        (405, json!({"detail": "Method Not Allowed"}))
    );
    // The native interface keeps its own errors.
    let other = site.served.get("/api/v1/nowhere");
    assert_eq!(
        other.header("content-type"),
        Some("application/problem+json")
    );
}

#[test]
fn a_summary_says_what_is_there_and_what_is_missing() {
    let site = Site::with(|swarm| {
        let run = swarm.join(format!("runs/{SHAPES}"));
        std::fs::remove_file(run.join("build/receipts/sdk-tester.json")).unwrap();
    });
    let summary = site.ok(&format!("runs/{SHAPES}/summary"));
    has(
        &summary,
        &[
            "run_id",
            "run_type",
            "path",
            "flows",
            "status",
            "created_at",
        ],
    );
    let flows = &summary["flows"];
    for flow in [
        "signal", "plan", "build", "review", "gate", "deploy", "wisdom",
    ] {
        let flow = &flows[flow];
        has(
            flow,
            &[
                "flow_key",
                "status",
                "title",
                "decision_artifact",
                "decision_present",
                "steps",
            ],
        );
    }
    assert_eq!(
        (&flows["signal"]["status"], &flows["signal"]["title"]),
        (&json!("not_started"), &json!("Signal"))
    );
    assert_eq!(flows["gate"]["status"], "done");
    let steps = &flows["build"]["steps"];
    for step in steps.as_object().unwrap().values() {
        has(
            step,
            &[
                "status",
                "required_present",
                "required_total",
                "optional_present",
                "optional_total",
                "artifacts",
                "note",
            ],
        );
    }
    assert_eq!(steps["session"]["status"], "complete");
    let partial = &steps["sdk"];
    assert_eq!(
        (
            &partial["status"],
            &partial["required_present"],
            &partial["required_total"]
        ),
        (&json!("partial"), &json!(1), &json!(2))
    );
    let missing =
        json!({"path": "receipts/sdk-tester.json", "status": "missing", "required": true});
    assert!(
        partial["artifacts"].as_array().unwrap().contains(&missing),
        "{partial}"
    );
    // The same by itself.
    assert_eq!(
        site.ok(&format!("runs/{SHAPES}/flows/build")),
        flows["build"]
    );
    let step = site.ok(&format!("runs/{SHAPES}/flows/build/steps/sdk"));
    assert_eq!(
        (&step["status"], &step["step_id"]),
        (&json!("partial"), &json!("sdk"))
    );
    let refused = site.refused(&format!("runs/{SHAPES}/flows/nope"), 404);
    assert!(
        refused["available_flows"]
            .as_array()
            .unwrap()
            .contains(&json!("build"))
    );
    let refused = site.refused(&format!("runs/{SHAPES}/flows/build/steps/nope"), 404);
    assert_eq!(refused["error"], "Step 'nope' not found in flow 'build'");
    // The original says 200 and run_type "unknown".
    assert_eq!(
        site.refused("runs/nope/summary", 404)["error"],
        "Run 'nope' not found"
    );
}

#[test]
fn the_catalogue_of_artifacts_beside_the_runs_is_believed() {
    let catalogue = json!({"flows": {"signal": {
        "title": "Flow 1 - Signal",
        "decision_artifact": "problem_statement.md",
        "steps": {
            "normalize": {"required": ["issue.md", "brief.md"], "optional": ["links.json"]},
            "author_bdd": {"required": [], "optional": [], "note": "at the root"},
            "escape": {"required": ["../../../../etc/passwd"], "optional": []},
        },
    }}});
    let site = Site::with(|swarm| {
        put(
            &swarm.join("meta/artifact_catalog.json"),
            catalogue.to_string(),
        );
        put(&swarm.join(format!("examples/{LOOP}/signal/issue.md")), "x");
    });
    let flow = site.ok(&format!("runs/{LOOP}/flows/signal"));
    assert_eq!(
        (&flow["title"], &flow["status"]),
        (&json!("Flow 1 - Signal"), &json!("in_progress"))
    );
    assert_eq!(
        (&flow["decision_artifact"], &flow["decision_present"]),
        (&json!("problem_statement.md"), &json!(false))
    );
    let step = &flow["steps"]["normalize"];
    assert_eq!(step["status"], "partial");
    assert_eq!(
        (&step["required_present"], &step["required_total"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        (
            &flow["steps"]["author_bdd"]["status"],
            &flow["steps"]["author_bdd"]["note"]
        ),
        (&json!("n/a"), &json!("at the root"))
    );
    assert_eq!(flow["steps"]["escape"]["required_total"], 0);
    put(
        &site.path(&format!("examples/{LOOP}/signal/problem_statement.md")),
        "x",
    );
    let flow = site.ok(&format!("runs/{LOOP}/flows/signal"));
    assert_eq!(
        (&flow["status"], &flow["decision_present"]),
        (&json!("done"), &json!(true))
    );
}

#[test]
fn the_bar_of_flows_is_there_where_the_original_fails() {
    let site = Site::new();
    let bar = site.ok(&format!("runs/{LOOP}/sdlc"));
    assert_eq!(bar["run_id"], LOOP);
    let flows: Vec<(&str, &str)> = bar["sdlc"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| {
            (
                flow["flow"].as_str().unwrap(),
                flow["status"].as_str().unwrap(),
            )
        })
        .collect();
    let not = "not_started";
    assert_eq!(
        flows,
        [
            ("signal", "done"),
            ("plan", not),
            ("build", "done"),
            ("review", not),
            ("gate", not),
            ("deploy", not),
            ("wisdom", not)
        ]
    );
    has(&bar["sdlc"][0], &["flow", "status", "title"]);
}

#[test]
fn two_runs_are_compared() {
    let site = Site::with(|swarm| {
        let other = swarm.join("runs/other");
        super::copy(&super::fixtures().join(SHAPES), &other);
        std::fs::remove_file(other.join("build/receipts/sdk-tester.json")).unwrap();
        std::fs::remove_file(other.join("build/llm/session-coder-claude.jsonl")).unwrap();
        std::fs::remove_file(other.join("build/receipts/session-coder.json")).unwrap();
        std::fs::remove_file(other.join("events.jsonl")).unwrap();
    });
    let compared = site.ok(&format!(
        "runs/compare?run_a={SHAPES}&run_b=other&flow=build"
    ));
    assert_eq!(
        keys(&compared),
        ["flow", "flow_status", "run_a", "run_b", "steps", "summary"]
    );
    let steps = compared["steps"].as_array().unwrap();
    let change = |id: &str| {
        let step = steps.iter().find(|step| step["step_id"] == id).unwrap();
        has(
            &step["run_a"],
            &["status", "required_present", "required_total"],
        );
        step["change"].as_str().unwrap().to_owned()
    };
    assert_eq!(change("sdk"), "regressed");
    assert_eq!(change("session"), "regressed");
    assert_eq!(change("impl-loop"), "unchanged");
    assert_eq!(compared["summary"]["regressed"], 2);
    let back = site.ok(&format!(
        "runs/compare?run_b={SHAPES}&run_a=other&flow=build"
    ));
    assert_eq!(back["summary"]["improved"], 2);
    for query in ["", "?run_a=a&run_b=b", "?run1=a&run2=b"] {
        let refused = site.refused(&format!("runs/compare{query}"), 400);
        assert_eq!(
            refused["error"],
            "Missing required parameters: run_a, run_b, flow"
        );
    }
    site.refused(
        &format!("runs/compare?run_a={SHAPES}&run_b=nope&flow=build"),
        404,
    );
    site.refused(
        &format!("runs/compare?run_a={SHAPES}&run_b=other&flow=nope"),
        404,
    );
}

#[test]
fn marks_are_kept_beside_the_runs() {
    let site = Site::new();
    assert_eq!(site.ok("runs/exemplars"), json!({"runs": []}));
    let path = format!("/api/runs/{LOOP}/exemplar");
    // It changes something, so it needs the token.
    let answer = site.served.send("POST", &path, &[], b"");
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (401, Some("application/json"))
    );
    assert!(answer.json()["error"].as_str().unwrap().contains("token"));
    let before = std::fs::metadata(site.path(&format!("examples/{LOOP}"))).unwrap();
    let answer = site.served.as_owner("POST", &path, &json!({}));
    // Also for examples, which the original refuses.
    assert_eq!(
        (answer.status, answer.json()),
        (
            200,
            json!({"status": "updated", "run_id": LOOP, "is_exemplar": true})
        )
    );
    let marked = site.ok("runs/exemplars");
    let [run] = marked["runs"].as_array().unwrap().as_slice() else {
        panic!("{marked}");
    };
    has(run, &["id", "status", "spec", "tags", "is_exemplar"]);
    assert_eq!(
        (&run["is_exemplar"], &run["run_id"]),
        (&json!(true), &json!(LOOP))
    );
    assert_eq!(site.ok("runs")["runs"][0]["is_exemplar"], true);
    let answer = site
        .served
        .as_owner("POST", &format!("{path}?is_exemplar=false"), &json!({}));
    assert_eq!(answer.json()["is_exemplar"], false);
    assert_eq!(ids(&site.ok("runs/exemplars")), Vec::<&str>::new());
    let after = std::fs::metadata(site.path(&format!("examples/{LOOP}"))).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    let meta = std::fs::read_to_string(site.path(&format!("examples/{LOOP}/meta.json"))).unwrap();
    assert!(meta.contains(r#""is_exemplar": false"#));
    let answer = site
        .served
        .as_owner("POST", &format!("{path}?is_exemplar=perhaps"), &json!({}));
    assert_eq!(
        (answer.status, &answer.json()["detail"][0]["type"]),
        (422, &json!("bool_parsing"))
    );
    let answer = site
        .served
        .as_owner("POST", "/api/runs/nope/exemplar", &json!({}));
    assert_eq!(
        (answer.status, answer.json()),
        (404, json!({"error": "Run not found", "run_id": "nope"}))
    );
    let marks = site.served.home().join("flow-studio/exemplars.json");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(marks).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn runs_are_neither_started_nor_stopped_here() {
    let site = Site::new();
    let answer = site
        .served
        .as_owner("POST", "/api/run", &json!({"flows": ["build"]}));
    assert_eq!(answer.status, 400);
    assert_eq!(
        (&answer.json()["run_id"], &answer.json()["status"]),
        (&Value::Null, &json!("error"))
    );
    for id in [LOOP, "nope"] {
        let answer = site
            .served
            .as_owner("POST", &format!("/api/runs/{id}/cancel"), &json!({}));
        let said = json!({"error": "Run not found or already completed", "run_id": id});
        assert_eq!((answer.status, answer.json()), (404, said));
    }
}

#[test]
fn timelines_are_told_from_events_and_receipts() {
    let site = Site::new();
    let timeline = site.ok(&format!("runs/{LOOP}/timeline"));
    let events = timeline["events"].as_array().unwrap();
    for event in events {
        has(
            event,
            &["timestamp", "flow", "step", "status", "duration_ms", "note"],
        );
    }
    // Twelve executions, each with a beginning and an end.
    assert_eq!(events.len(), 24);
    let times: Vec<&str> = events
        .iter()
        .map(|event| event["timestamp"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted());
    assert_eq!(
        (&events[0]["status"], &events[0]["step"]),
        (&json!("started"), &json!("normalize"))
    );
    let timing = site.ok(&format!("runs/{LOOP}/timing"));
    assert_eq!(
        (&timing["run_id"], &timing["message"]),
        (&json!(LOOP), &Value::Null)
    );
    has(
        &timing["timing"],
        &[
            "run_id",
            "started_at",
            "ended_at",
            "total_duration_seconds",
            "flows",
        ],
    );
    let signal = &timing["timing"]["flows"]["signal"];
    has(
        signal,
        &[
            "flow_key",
            "started_at",
            "ended_at",
            "duration_seconds",
            "steps",
        ],
    );
    assert_eq!(signal["steps"].as_array().unwrap().len(), 7);
    has(
        &signal["steps"][0],
        &["step_id", "started_at", "ended_at", "duration_seconds"],
    );
    let flow = site.ok(&format!("runs/{LOOP}/flows/signal/timing"));
    assert_eq!(
        (&flow["flow_key"], &flow["timing"]),
        (&json!("signal"), signal)
    );
    let none = site.ok(&format!("runs/{LOOP}/flows/deploy/timing"));
    assert_eq!(
        (&none["timing"], &none["message"]),
        (&Value::Null, &json!("No timing data available"))
    );
    // Without a journal, receipts tell.
    let site = Site::with(|swarm| {
        std::fs::remove_file(swarm.join(format!("examples/{LOOP}/events.jsonl"))).unwrap();
        put(&swarm.join("runs/empty/spec.json"), "{}");
    });
    let timeline = site.ok(&format!("runs/{LOOP}/timeline"));
    assert_eq!(timeline["events"].as_array().unwrap().len(), 12);
    assert_eq!(site.ok("runs/empty/timeline")["events"], json!([]));
    assert_eq!(site.ok("runs/empty/timing")["timing"], Value::Null);
}

#[test]
fn the_history_of_the_last_flow_is_believed_in_both_forms() {
    let site = Site::with(|swarm| {
        put(&swarm.join("runs/a/wisdom/flow_history.json"), json!({"events": [
            {"ts": "2025-12-09T10:00:00+00:00Z", "flow": "build", "step": "x", "status": "started"},
            {"ts": "2025-12-09T10:01:00+00:00Z", "flow": "build", "step": "x", "status": "failed", "duration_ms": 60000},
        ]}).to_string());
        put(&swarm.join("runs/b/wisdom/flow_history.json"), json!({"execution_timeline": [
            {"flow": "gate", "start_time": "2025-12-09T10:00:00Z", "end_time": "2025-12-09T10:30:00Z", "duration_minutes": 30, "decision": "MERGE"},
        ]}).to_string());
        put(
            &swarm.join("runs/b/wisdom/wisdom_summary.json"),
            r#"{"run_id": "b", "n": 1.0}"#,
        );
        put(
            &swarm.join("runs/c/wisdom/run_timing.json"),
            r#"{"run_id": "c", "flows": {"build": {"flow_key": "build"}}}"#,
        );
    });
    let timeline = site.ok("runs/a/timeline");
    assert_eq!(
        timeline["events"][1],
        json!({
            "timestamp": "2025-12-09T10:01:00+00:00", "flow": "build", "step": "x", "status": "failed",
            "duration_ms": 60000, "note": null,
        })
    );
    let timeline = site.ok("runs/b/timeline");
    assert_eq!(
        timeline["events"][1],
        json!({
            "timestamp": "2025-12-09T10:30:00+00:00", "flow": "gate", "step": null, "status": "completed",
            "duration_ms": 1_800_000.0, "note": "MERGE",
        })
    );
    assert_eq!(
        site.ok("runs/b/timing")["timing"]["flows"]["gate"]["duration_seconds"],
        1800.0
    );
    assert_eq!(
        site.ok("runs/c/flows/build/timing")["timing"]["flow_key"],
        "build"
    );
    // Passed on byte for byte.
    assert_eq!(
        site.get("runs/b/wisdom/summary").text(),
        r#"{"run_id": "b", "n": 1.0}"#
    );
    let refused = site.refused("runs/a/wisdom/summary", 404);
    assert_eq!(refused["error"], "No wisdom summary available for this run");
    has(&refused, &["hint"]);
}

#[test]
fn health_flows_graphs_and_backends_tell_what_is_known() {
    let site = Site::new();
    let health = site.ok("health");
    has(
        &health,
        &[
            "status",
            "version",
            "timestamp",
            "flows",
            "agents",
            "selftest_status",
            "capabilities",
        ],
    );
    assert_eq!(health["status"], "ok");
    assert!(health["flows"].is_u64() && health["agents"].as_u64() > Some(3));
    let flows = site.ok("flows");
    for flow in flows["flows"].as_array().unwrap() {
        assert_eq!(keys(flow), ["description", "key", "step_count", "title"]);
        let key = flow["key"].as_str().unwrap();
        let graph = site.ok(&format!("graph/{key}"));
        let ids: Vec<&Value> = graph["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| &node["data"]["id"])
            .collect();
        for edge in graph["edges"].as_array().unwrap() {
            assert!(
                ids.contains(&&edge["data"]["source"]) && ids.contains(&&edge["data"]["target"])
            );
        }
        let detail = site.ok(&format!("flows/{key}"));
        assert_eq!(
            detail["steps"].as_array().unwrap().len() as u64,
            flow["step_count"]
        );
    }
    assert_eq!(flows["flows"][0]["key"], "signal");
    let refused = site.refused("graph/nope", 404);
    has(&refused, &["error", "available_flows", "hint"]);
    let backends = site.ok("backends");
    let ids: Vec<&str> = backends["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["quipu", "claude-step-orchestrator"]);
    has(
        &backends["backends"][0],
        &[
            "label",
            "supports_streaming",
            "supports_events",
            "supports_cancel",
            "supports_replay",
        ],
    );
}

#[test]
fn events_are_listed_for_examples_too() {
    let site = Site::with(|swarm| {
        let lines = [
            line("run_started", json!({})),
            "{torn\n".to_owned(),
            line("log", json!({"ts": "yesterday"})),
        ];
        put(
            &swarm.join("runs/r/events.jsonl"),
            lines.concat() + r#"{"kind": "half"#,
        );
    });
    let events = site.ok(&format!("runs/{LOOP}/events"));
    assert_eq!(
        (
            &events["run_id"],
            events["events"].as_array().unwrap().len()
        ),
        (&json!(LOOP), 52)
    );
    let first = &events["events"][0];
    has(
        first,
        &[
            "run_id",
            "ts",
            "kind",
            "flow_key",
            "step_id",
            "agent_key",
            "payload",
        ],
    );
    // As the file names it, not as the directory.
    assert_eq!(first["run_id"], "run-20251209-102043-k4loop");
    assert_eq!(first["ts"], "2025-12-09T10:20:44.245801+00:00");
    // Unknown runs have none, as clients of the original expect.
    assert_eq!(
        site.ok("runs/fake-run-id/events"),
        json!({"run_id": "fake-run-id", "events": []})
    );
    let odd = site.ok("runs/r/events");
    assert_eq!(
        (
            odd["events"].as_array().unwrap().len(),
            &odd["malformed_lines"]
        ),
        (2, &json!(1))
    );
    assert_eq!(odd["events"][1]["ts"], "yesterday");
    // Page by page.
    let (mut after, mut seen) = (String::new(), 0);
    for _ in 0..20 {
        let page = site.ok(&format!("runs/{LOOP}/events?limit=10{after}"));
        seen += page["events"].as_array().unwrap().len();
        let Some(next) = page["next_after"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(seen, 52);
    site.refused(&format!("runs/{LOOP}/events?after=x"), 400);
}
