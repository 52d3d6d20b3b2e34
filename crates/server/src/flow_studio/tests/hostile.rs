//! Ids that mean harm: nothing outside of a run's directory is ever read.

use super::{LOOP, SHAPES, Site, has, put};

const SECRET: &str = "not for you";

/// Texts in the place of an id, as they are sent.
const IDS: &[&str] = &[
    "..",
    "%2e%2e",
    "%2E%2E%2F%2E%2E",
    "..%2f..%2fsecret",
    "%2e%2e%2fsecret",
    ".",
    "%2e",
    "*",
    "%2A",
    "%3f",
    "%5b%61%2dz%5d",
    "%7b%7d",
    "%00",
    "a%00b",
    "%2fetc%2fpasswd",
    "%5c..%5c",
    "%ff",
    "%c0%ae%c0%ae",
    "~",
    "%0a",
    "%0d%0aX:%20y",
    ".git",
    "_corrupt",
    "%20",
    "con",
    "%25%32%65%25%32%65",
];

#[test]
fn no_id_leads_out_of_a_run() {
    let site = Site::with(|swarm| {
        put(&swarm.join("secret/build/llm/x-y-claude.jsonl"), SECRET);
        put(
            &swarm.join("secret/events.jsonl"),
            format!("{{\"kind\": \"{SECRET}\"}}\n"),
        );
        put(&swarm.join("llm/x-y-claude.jsonl"), SECRET);
        put(&swarm.join("runs/llm/x-y-claude.jsonl"), SECRET);
        put(
            &swarm.join("runs/_corrupt/build/llm/x-y-claude.jsonl"),
            SECRET,
        );
    });
    let long = "x".repeat(2000);
    let ids = IDS.iter().copied().chain([long.as_str()]);
    for id in ids {
        for path in [
            format!("runs/{id}"),
            format!("runs/{id}/summary"),
            format!("runs/{id}/timeline"),
            format!("runs/{id}/transcripts"),
            format!("runs/{id}/receipts"),
            format!("runs/{id}/events"),
            format!("runs/{id}/flows/build/steps/x/transcript"),
            format!("runs/{id}/transcript/build/x/y/claude"),
            format!("runs/{SHAPES}/flows/{id}"),
            format!("runs/{SHAPES}/flows/{id}/steps/x/transcript"),
            format!("runs/{SHAPES}/flows/build/steps/{id}"),
            format!("runs/{SHAPES}/flows/build/steps/{id}/transcript"),
            format!("runs/{SHAPES}/flows/build/steps/{id}/receipt"),
            format!("runs/{SHAPES}/transcript/{id}/x/y/claude"),
            format!("runs/{SHAPES}/transcript/build/{id}/y/claude"),
            format!("runs/{SHAPES}/transcript/build/impl-loop/{id}/claude"),
            format!("runs/{SHAPES}/transcript/build/impl-loop/code-implementer/{id}"),
            format!("runs/{SHAPES}/receipt/build/{id}/y"),
            format!("runs/{SHAPES}/receipt/build/impl-loop/{id}"),
            format!("runs/compare?run_a={id}&run_b={SHAPES}&flow=build"),
            format!("runs/compare?run_a={LOOP}&run_b={SHAPES}&flow={id}"),
        ] {
            let answer = site.get(&path);
            let said = answer.text();
            assert!(!said.contains(SECRET), "{path}: {said}");
            let is_events = path.ends_with("/events");
            // An unknown run has no events.
            let is_empty = is_events
                && answer.status == 200
                && answer.json()["events"] == serde_json::json!([]);
            assert!(
                matches!(answer.status, 400 | 404) || is_empty,
                "{path}: {} {said}",
                answer.status
            );
            assert_eq!(
                answer.header("content-type"),
                Some("application/json"),
                "{path}"
            );
            let body = answer.json();
            assert!(
                is_empty || body.get("error").is_some() || body.get("detail").is_some(),
                "{path}: {said}"
            );
        }
    }
}

#[test]
fn two_dots_are_refused_in_the_words_of_the_original() {
    let site = Site::new();
    for path in [
        "runs/invalid..id/summary",
        "runs/valid/flows/invalid..flow",
        "runs/valid/flows/valid/steps/invalid..step/transcript",
        "runs/compare?run_a=..&run_b=valid&flow=valid",
        "runs/compare?run_a=valid&run_b=..&flow=valid",
        "runs/compare?run_a=valid&run_b=valid&flow=..",
    ] {
        let refused = site.refused(path, 400);
        assert!(
            refused["error"]
                .as_str()
                .unwrap()
                .contains("Traversal sequences"),
            "{path}"
        );
    }
}

#[test]
fn links_that_lead_out_of_a_run_are_not_followed() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("x-y-claude.jsonl");
    put(
        &secret,
        format!("{{\"kind\": \"{SECRET}\", \"role\": \"user\", \"content\": \"{SECRET}\"}}\n"),
    );
    put(
        &outside.path().join("meta.json"),
        format!("{{\"id\": \"r\", \"title\": \"{SECRET}\", \"status\": \"running\"}}"),
    );
    put(
        &outside.path().join("run/build/llm/x-y-claude.jsonl"),
        SECRET,
    );
    let site = Site::with(|swarm| {
        let run = swarm.join("runs/r");
        put(&run.join("build/llm/own-y-claude.jsonl"), "{}\n");
        put(&run.join("build/receipts/z-y.json"), "{}");
        symlink(&secret, run.join("build/llm/x-y-claude.jsonl")).unwrap();
        symlink(&secret, run.join("build/receipts/x-y.json")).unwrap();
        symlink(&secret, run.join("events.jsonl")).unwrap();
        symlink(outside.path().join("meta.json"), run.join("meta.json")).unwrap();
        symlink(outside.path(), run.join("gate")).unwrap();
        std::fs::create_dir_all(run.join("plan")).unwrap();
        symlink(outside.path(), run.join("plan/llm")).unwrap();
        std::fs::create_dir_all(run.join("wisdom")).unwrap();
        symlink(&secret, run.join("wisdom/wisdom_summary.json")).unwrap();
        symlink(outside.path().join("run"), swarm.join("runs/linked")).unwrap();
        // A link that stays inside is fine.
        symlink(
            "own-y-claude.jsonl",
            run.join("build/llm/inside-y-claude.jsonl"),
        )
        .unwrap();
        // Opening a pipe would wait for ever.
        #[cfg(target_os = "linux")]
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            run.join("build/llm/pipe-y-claude.jsonl"),
            rustix::fs::Mode::RWXU,
        )
        .unwrap();
    });
    for path in [
        "runs",
        "runs/r",
        "runs/r/summary",
        "runs/r/events",
        "runs/r/timeline",
        "runs/r/transcripts",
        "runs/r/receipts",
        "runs/r/flows/build/steps/x/transcript",
        "runs/r/flows/build/steps/x/receipt",
        "runs/r/flows/build/steps/pipe/transcript",
        "runs/r/transcript/build/x/y/claude",
        "runs/r/transcript/gate/x/y/claude",
        "runs/r/transcript/plan/x/y/claude",
        "runs/r/receipt/build/x/y",
        "runs/r/wisdom/summary",
        "runs/linked",
        "runs/linked/transcript/build/x/y/claude",
        "runs/exemplars",
        "flows",
        "health",
    ] {
        let said = site.get(path).text();
        assert!(!said.contains(SECRET), "{path}: {said}");
    }
    assert_eq!(site.get("runs/linked").status, 404);
    let raw = site.get("runs/r/transcript/build/inside/y/claude");
    assert_eq!((raw.status, raw.text()), (200, "{}\n".to_owned()));
}

#[test]
fn nobody_reads_without_a_key_where_keys_are_needed() {
    let directories = vec![super::fixtures()];
    let served = crate::testkit::Served::with(
        |_| {},
        |options| {
            options.run_directories = directories;
            options.require_keys = true;
        },
    );
    for path in [
        "runs",
        &format!("runs/{SHAPES}"),
        &format!("runs/{SHAPES}/summary"),
        &format!("runs/{SHAPES}/sdlc"),
        &format!("runs/{SHAPES}/events"),
        &format!("runs/{SHAPES}/timeline"),
        &format!("runs/{SHAPES}/timing"),
        &format!("runs/{SHAPES}/flows/build"),
        &format!("runs/{SHAPES}/flows/build/timing"),
        &format!("runs/{SHAPES}/flows/build/steps/sdk"),
        &format!("runs/{SHAPES}/flows/build/steps/sdk/transcript"),
        &format!("runs/{SHAPES}/flows/build/steps/sdk/receipt"),
        &format!("runs/{SHAPES}/transcripts"),
        &format!("runs/{SHAPES}/receipts"),
        &format!("runs/{SHAPES}/transcript/build/sdk/tester/claude"),
        &format!("runs/{SHAPES}/receipt/build/sdk/tester"),
        &format!("runs/{SHAPES}/wisdom/summary"),
        "runs/compare",
        "runs/exemplars",
        "backends",
        "health",
        "flows",
        "flows/build",
        "graph/build",
    ] {
        let answer = served.get(&format!("/api/{path}"));
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        has(&answer.json(), &["error", "hint"]);
    }
    for path in [
        "run",
        &format!("runs/{SHAPES}/exemplar"),
        &format!("runs/{SHAPES}/cancel"),
    ] {
        assert_eq!(
            served
                .send("POST", &format!("/api/{path}"), &[], b"")
                .status,
            401,
            "{path}"
        );
    }
}
