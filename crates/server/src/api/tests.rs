//! The native interface over a socket, on a home with sessions of several kinds and a run.

#![expect(
    clippy::disallowed_methods,
    reason = "files of a test are nobody's secret"
)]

use std::path::Path;

use quipu_agents::Host;
use quipu_model::Timestamp;
use quipu_store::Store;
use quipu_store::import::{ImportOptions, Progress};
use serde_json::{Value, json};

use crate::testkit::Served;

/// What tells a session from others.
pub(super) struct Said<'s> {
    pub(super) id: &'s str,
    day: u32,
    cwd: &'s str,
    branch: &'s str,
    model: &'s str,
    asked: &'s str,
}

/// Three sessions, no two of which are alike in anything.
pub(super) const SAID: [Said<'static>; 3] = [
    Said {
        id: "11111111-1111-4111-8111-111111111111",
        day: 1,
        cwd: "/code/relay",
        branch: "main",
        model: "claude-sonnet-4-5-20250929",
        asked: "Find the flaky <script>alert(1)</script> test",
    },
    Said {
        id: "22222222-2222-4222-8222-222222222222",
        day: 2,
        cwd: "/code/relay/deep",
        branch: "feature/relay",
        model: "claude-opus-4-5-20251101",
        asked: "Why is the flaky build slow",
    },
    Said {
        id: "33333333-3333-4333-8333-333333333333",
        day: 3,
        cwd: "/code/other",
        branch: "fix",
        model: "claude-haiku-4-5-20251001",
        asked: "Rename the flaky thing",
    },
];

/// A session of Claude Code: two questions, a tool that fails, one that is not answered, a secret and a picture.
fn session(said: &Said<'_>) -> String {
    let Said {
        id,
        day,
        cwd,
        branch,
        model,
        asked,
    } = said;
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 0, "output_tokens": 20});
    let at = |second: u32| format!("2026-10-{day:02}T10:00:{second:02}.000Z");
    let line = |n: u32, kind: &str, message: Value| {
        json!({"type": kind, "uuid": format!("{id}-{n}"), "parentUuid": (n > 1).then(|| format!("{id}-{}", n - 1)),
            "sessionId": id, "timestamp": at(n), "cwd": cwd, "gitBranch": branch, "version": "2.1.0",
            "isSidechain": false, "userType": "external", "message": message})
        .to_string()
    };
    let answer = |n: u32, content: Value| {
        json!({"id": format!("msg_{id}_{n}"), "type": "message", "role": "assistant", "model": model,
            "content": content, "stop_reason": "tool_use", "usage": usage})
    };
    let lines = [
        line(1, "user", json!({"role": "user", "content": asked})),
        line(
            2,
            "assistant",
            answer(
                2,
                json!([{"type": "tool_use", "id": format!("toolu_{id}_1"), "name": "Bash", "input": {"command": "cargo test"}}]),
            ),
        ),
        line(
            3,
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{id}_1"), "content": "1 failed", "is_error": true}]}),
        ),
        line(
            4,
            "assistant",
            answer(
                4,
                json!([{"type": "text", "text": "The retry test fails once in ten runs."}]),
            ),
        ),
        line(
            5,
            "user",
            json!({"role": "user", "content": format!("use the key ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")}),
        ),
    ];
    lines.join("\n") + "\n"
}

/// Imports sessions, and records a run.
pub(super) fn fill(home: &Path) {
    let logs = home.join("logs/projects/-code-relay");
    std::fs::create_dir_all(&logs).unwrap();
    for said in &SAID {
        let path = logs.join(format!("{}.jsonl", said.id));
        std::fs::write(path, session(said)).unwrap();
    }
    let store = Store::open(home).unwrap();
    let options = ImportOptions {
        redact: None,
        now: "2026-11-01T00:00:00Z".parse::<Timestamp>().unwrap(),
        agents: Vec::new(),
        dry_run: false,
        threads: 1,
    };
    let host = Host::new(home.join("nobody"), |_| None);
    let report = store.import_paths(&host, &[home.join("logs")], &options, &Progress::default());
    let report = report.unwrap();
    assert_eq!(report.read, 3, "{report:?}");
}

const FIRST: &str = "11111111-1111-4111-8111-111111111111";

#[test]
fn lists_are_paged_and_filtered() {
    let served = Served::with(fill, |_| {});
    let all = served.get("/api/v1/transcripts").json();
    assert_eq!(all["transcripts"].as_array().unwrap().len(), 3);
    assert_eq!(all["next"], Value::Null);
    assert_eq!(
        all["transcripts"][0]["run_id"],
        "33333333-3333-4333-8333-333333333333"
    );
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let page = served
            .get(&format!("/api/v1/transcripts?limit=1{cursor}"))
            .json();
        seen.push(
            page["transcripts"][0]["run_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        if let Some(next) = page["next"].as_str() {
            cursor = format!("&cursor={next}");
        } else {
            cursor.clear();
        }
    }
    assert!(
        cursor.is_empty() && seen[0] > seen[1] && seen[1] > seen[2],
        "{seen:?}"
    );
    // Which sessions come, by the days they are of.
    let days = |query: &str| {
        let list = served.get(&format!("/api/v1/transcripts?{query}")).json();
        let rows = list["transcripts"].as_array().unwrap().iter();
        let ids = rows.map(|row| row["run_id"].as_str().unwrap().to_owned());
        let days = ids.map(|id| SAID.iter().find(|said| said.id == id).unwrap().day);
        days.collect::<Vec<_>>()
    };
    assert_eq!(days("agent=claude"), [3, 2, 1]);
    assert_eq!(days("agent=codex"), [0; 0]);
    assert_eq!(days("agent=codex,claude-code"), [3, 2, 1]);
    assert_eq!(days("until=2026-10-01"), [1]);
    assert_eq!(days("since=2026-10-03"), [3]);
    assert_eq!(days("since=2026-10-02&until=2026-10-02"), [2]);
    assert_eq!(days("project=/code/relay"), [2, 1]);
    assert_eq!(days("project=other"), [3]);
    assert_eq!(days("project=/code/rel"), [0; 0]);
    assert_eq!(days("branch=main"), [1]);
    assert_eq!(days("branch=feature/relay"), [2]);
    assert_eq!(days("branch=feature"), [0; 0]);
    assert_eq!(days("model=opus"), [2]);
    assert_eq!(days("title=build"), [2]);
    assert_eq!(days("title=flaky&sort=oldest&all=true"), [1, 2, 3]);
    assert_eq!(days("project=/code/relay&model=sonnet"), [1]);
    assert_eq!(days("received=false"), [3, 2, 1]);
    assert_eq!(days("received=true"), [0; 0]);
    assert_eq!(days("submitter=anon_"), [0; 0]);
    let own = SAID[1].id;
    let label = json!({"label": "odd"});
    let labelled = served.as_owner("POST", &format!("/api/v1/transcripts/{own}/labels"), &label);
    assert_eq!(labelled.status, 201);
    assert_eq!(days("label=odd"), [2]);
    assert_eq!(days("label=even"), [0; 0]);
}

#[test]
fn wrong_parameters_are_named() {
    let served = Served::with(fill, |_| {});
    for (path, parameter) in [
        ("/api/v1/transcripts?limit=0", "limit"),
        ("/api/v1/transcripts?limit=1001", "limit"),
        ("/api/v1/transcripts?since=whenever", "since"),
        ("/api/v1/transcripts?cursor=zzz", "cursor"),
        (
            &format!("/api/v1/transcripts?submitter={}", "x".repeat(2000)),
            "submitter",
        ),
        (
            &format!("/api/v1/transcripts?label={}", "x".repeat(2000)),
            "label",
        ),
        ("/api/v1/search?q=", "q"),
        ("/api/v1/search?q=(", "q"),
        ("/api/v1/stats?by=colour", "by"),
        ("/api/v1/stats?zone=Mars/Olympus", "zone"),
        ("/api/v1/transcripts/last/export?format=pdf", "format"),
        (
            "/api/v1/transcripts/last/export?format=html&profile=nobody",
            "profile",
        ),
        ("/api/v1/blobs/..%2f..%2fetc%2fpasswd", "sha256"),
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert_eq!(answer.json()["parameter"], parameter, "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
    }
    for path in [
        "/api/v1/transcripts?agnet=x",
        "/api/v1/transcripts?limit=many",
        // Blocks are of all that was done in their time.
        "/api/v1/stats/blocks?model=opus",
        // An address that is no text.
        "/api/v1/transcripts/%ff",
        "/api/v1/transcripts/%ff/events",
        "/api/v1/transcripts/%ff/tree",
        "/api/v1/transcripts/%ff/cost",
        "/api/v1/transcripts/%ff/timeline",
        "/api/v1/transcripts/%ff/annotations",
        "/api/v1/transcripts/%ff/export?format=html",
        "/api/v1/blobs/%ff",
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, 400, "{path}");
        let kind = answer.header("content-type");
        assert_eq!(
            kind,
            Some("application/problem+json"),
            "{path}: {}",
            answer.text()
        );
    }
    for id in ["nothing", "%2e%2e", "..%2f..%2fetc", "*", "%00", "1"] {
        let status = served
            .get(&format!("/api/v1/transcripts/{id}/events"))
            .status;
        assert!(
            status == 404 || status == 400 || (id == "1" && status == 200),
            "{id}: {status}"
        );
    }
}

#[test]
fn a_transcript_has_its_header_events_cost_and_tree() {
    let served = Served::with(fill, |_| {});
    let answer = served.get(&format!("/api/v1/transcripts/{FIRST}"));
    let one = answer.json();
    assert_eq!(one["transcript"]["run_id"], FIRST);
    assert_eq!(one["spent"]["calls"], 2);
    assert!(one["spent"]["usd"].is_string());
    assert_eq!(
        (&one["live"], &one["lineage"]["parent"]),
        (&json!(false), &Value::Null)
    );
    let tag = answer.header("etag").unwrap();
    let again = served.send(
        "GET",
        &format!("/api/v1/transcripts/{FIRST}"),
        &[("If-None-Match", tag)],
        b"",
    );
    assert_eq!((again.status, again.body.len()), (304, 0));
    // By its id for good as well.
    let id = one["transcript"]["id"].as_str().unwrap();
    assert_eq!(
        served.get(&format!("/api/v1/transcripts/{id}")).json()["transcript"]["run_id"],
        FIRST
    );

    let events = served
        .get(&format!("/api/v1/transcripts/{FIRST}/events"))
        .json();
    let total = events["total"].as_u64().unwrap();
    assert_eq!(events["events"].as_array().unwrap().len() as u64, total);
    assert_eq!(
        (&events["more"], &events["next"]),
        (&json!(false), &json!(total + 1))
    );
    let tools = served
        .get(&format!("/api/v1/transcripts/{FIRST}/events?type=tool"))
        .json();
    let types: Vec<&str> = tools["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["tool.call", "tool.result"]);
    let some = |query: &str| {
        let page = served
            .get(&format!("/api/v1/transcripts/{FIRST}/events?{query}"))
            .json();
        page["events"].as_array().unwrap().len()
    };
    assert_eq!(some("tool=bash&type=tool.call"), 1);
    assert_eq!(some("role=user"), 2);
    assert_eq!(some("text=ONCE%20in%20ten"), 1);
    assert_eq!(some("from=2&limit=1"), 1);
    let trimmed = served
        .get(&format!(
            "/api/v1/transcripts/{FIRST}/events?limit=1&fields=seq,type"
        ))
        .json();
    assert_eq!(trimmed["events"][0].as_object().unwrap().len(), 2);
    let cut = served
        .get(&format!(
            "/api/v1/transcripts/{FIRST}/events?role=user&limit=1&cut=4"
        ))
        .text();
    assert!(cut.contains("Find…") && !cut.contains("flaky"), "{cut}");

    let cost = served
        .get(&format!("/api/v1/transcripts/{FIRST}/cost"))
        .json();
    assert_eq!(cost["spent"]["usd"], one["spent"]["usd"]);
    assert_eq!(cost["calls"].as_array().unwrap().len(), 2);
    let tree = served
        .get(&format!("/api/v1/transcripts/{FIRST}/tree"))
        .json();
    assert_eq!(tree["session"]["sessions"][0]["depth"], 0);
}

#[test]
fn search_hides_secrets_and_figures_add_up() {
    let served = Served::with(fill, |_| {});
    let found = served.get("/api/v1/search?q=flaky");
    let hits = found.json();
    assert_eq!(hits["hits"].as_array().unwrap().len(), 3);
    let secret = served.get("/api/v1/search?q=%22use%20the%20key%22").text();
    assert!(
        secret.contains("use the key") && !secret.contains("ghp_a1B2"),
        "{secret}"
    );
    let stats = served.get("/api/v1/stats?by=agent").json();
    assert_eq!(stats["total"]["spent"]["calls"], 6);
    assert_eq!(served.get("/api/v1/waste").status, 200);
    let status = served.get("/api/v1/status").json();
    assert_eq!(status["transcripts"]["sessions"], 3);
    assert_eq!(status["import"]["doing"], "nothing");
    assert_eq!(served.get("/api/v1/doctor").json()["sessions"], 3);
}

#[test]
fn every_format_is_exported_as_a_download_and_profiles_remove_secrets() {
    let served = Served::with(fill, |_| {});
    let formats = served.get("/api/v1/formats").json();
    for format in formats.as_array().unwrap() {
        let name = format["name"].as_str().unwrap();
        let answer = served.get(&format!("/api/v1/transcripts/{FIRST}/export?format={name}"));
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let disposition = answer.header("content-disposition").unwrap();
        assert!(
            disposition.starts_with("attachment"),
            "{name}: {disposition}"
        );
        assert!(!answer.body.is_empty(), "{name}");
        let report = served.get(&format!(
            "/api/v1/transcripts/{FIRST}/export/report?format={name}"
        ));
        assert_eq!(report.json()["to"], name);
    }
    let plain = served
        .get(&format!(
            "/api/v1/transcripts/{FIRST}/export?format=normalized"
        ))
        .text();
    assert!(plain.contains("ghp_a1B2"));
    let removed = served.get(&format!(
        "/api/v1/transcripts/{FIRST}/export?format=normalized&profile=team"
    ));
    assert!(removed.status == 200 && !removed.text().contains("ghp_a1B2"));
    let preview = served.get(&format!(
        "/api/v1/transcripts/{FIRST}/redaction?profile=team"
    ));
    assert!(preview.json()["removed"].as_u64().unwrap() > 0);
    assert!(!preview.text().contains("ghp_a1B2"));
}

#[test]
fn a_link_to_an_event_holds_while_the_log_grows_and_answers_are_fresh() {
    let served = Served::with(fill, |_| {});
    let link = format!("/api/v1/transcripts/{FIRST}/events?from=2&limit=1");
    let before = served.get(&link).json();
    let log = served
        .home()
        .join(format!("logs/projects/-code-relay/{FIRST}.jsonl"));
    let mut text = std::fs::read_to_string(&log).unwrap();
    let more = session(&SAID[0])
        .replace(&format!("{FIRST}-"), &format!("{FIRST}-x"))
        .replace("msg_", "msx_")
        .replace("toolu_", "toolx_");
    text.push_str(&more);
    std::fs::write(&log, text).unwrap();
    let options = ImportOptions {
        redact: None,
        now: "2026-11-02T00:00:00Z".parse::<Timestamp>().unwrap(),
        agents: Vec::new(),
        dry_run: false,
        threads: 1,
    };
    let host = Host::new(served.home().join("nobody"), |_| None);
    // As another process would.
    let store = Store::open(served.home()).unwrap();
    store
        .import_paths(&host, &[log], &options, &Progress::default())
        .unwrap();
    let after = served.get(&link).json();
    assert_eq!(before["events"], after["events"]);
    // The system says that something changed a moment later.
    let grown = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let now = served.get(&link).json();
        now["total"].as_u64() > before["total"].as_u64()
    });
    assert!(grown, "the answer is not fresh");
}

#[test]
fn pages_of_a_long_run_are_the_same_however_they_are_read() {
    use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId};
    use quipu_record::{RecorderOptions, Storage};
    let record = |home: &Path, from: u64, to: u64| {
        let run = RunId::new("long-run").unwrap();
        let options = RecorderOptions::default();
        let recorder = Storage::at(home).record(&run, options).unwrap();
        for n in from..=to {
            let text = Block::text(Fidelity::Router, format!("event {n}, \"quoted\""));
            let body = Body::UserMessage(vec![text]);
            recorder.record(&Draft::new(Place::run(), body)).unwrap();
        }
        recorder.close().unwrap();
    };
    let served = Served::with(|home| record(home, 1, 700), |_| {});
    let check = |total: u64| {
        for (from, limit) in [
            (1, 200),
            (1, 1000),
            (250, 10),
            (256, 1),
            (257, 300),
            (512, 1),
            (690, 50),
            (700, 5),
            (701, 5),
            (900, 5),
        ] {
            let path = format!("/api/v1/transcripts/long-run/events?from={from}&limit={limit}");
            let again = format!("{path}&cut=100000");
            let (kept, read) = (served.get(&path).json(), served.get(&again).json());
            assert_eq!(kept, read, "{path}");
            assert_eq!(kept["total"], total);
            // And from memory.
            assert_eq!(served.get(&path).json(), kept, "{path}");
        }
    };
    check(700);
    record(served.home(), 701, 800);
    let fresh = (0..300).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        served
            .get("/api/v1/transcripts/long-run/events?from=701")
            .json()["total"]
            == 800
    });
    assert!(fresh, "what was recorded since is not there");
    check(800);
}

#[test]
fn blobs_are_given_whole_or_in_ranges() {
    let served = Served::empty();
    let id = served
        .app
        .store()
        .blobs()
        .put(b"<html>0123456789</html>")
        .unwrap();
    let path = format!("/api/v1/blobs/{}", id.digest());
    let whole = served.get(&path);
    assert_eq!(
        (whole.status, whole.body.as_slice()),
        (200, b"<html>0123456789</html>".as_slice())
    );
    assert_eq!(
        whole.header("content-type"),
        Some("application/octet-stream")
    );
    assert!(
        whole
            .header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    let part = served.send("GET", &path, &[("Range", "bytes=6-8")], b"");
    assert_eq!((part.status, part.text().as_str()), (206, "012"));
    assert_eq!(part.header("content-range"), Some("bytes 6-8/23"));
    assert_eq!(
        served
            .send("GET", &path, &[("Range", "bytes=99-")], b"")
            .status,
        416
    );
    let missing = format!("/api/v1/blobs/{}", "0".repeat(64));
    assert_eq!(served.get(&missing).status, 404);
}

#[test]
fn analyses_and_windows_are_served() {
    let served = Served::with(fill, |_| {});
    let of = |what: &str| served.get(&format!("/api/v1/transcripts/{FIRST}/{what}"));
    let timeline = of("timeline");
    assert_eq!(timeline.status, 200, "{}", timeline.text());
    assert!(
        timeline.json()["spans"]
            .as_array()
            .unwrap()
            .iter()
            .any(|span| span["name"] == "Bash")
    );
    assert_eq!(of("timeline?limit=0").status, 400);
    let context = of("context").json();
    assert_eq!(context["turns"].as_array().unwrap().len(), 2, "{context}");
    let tools = of("tools").json();
    assert_eq!(
        (&tools["tools"][0]["tool"], &tools["tools"][0]["failures"]),
        (&json!("Bash"), &json!(1)),
        "{tools}"
    );
    let over = served.get("/api/v1/tools").json();
    assert_eq!(over["tools"][0]["calls"], 3, "{over}");
    let blocks = |query: &str| {
        let blocks = served.get(&format!("/api/v1/stats/blocks?{query}")).json();
        blocks["blocks"].as_array().unwrap().len()
    };
    assert_eq!(blocks(""), 3);
    assert_eq!(blocks("project=/code/relay"), 2);
    assert_eq!(blocks("project=/nowhere"), 0);
    assert_eq!(blocks("branch=main"), 1);
    assert_eq!(blocks("since=2026-10-03"), 1);
}

#[test]
fn people_label_and_annotate_with_the_token_only() {
    let served = Served::with(fill, |_| {});
    let path = |what: &str| format!("/api/v1/transcripts/{FIRST}/{what}");
    let label = json!({"label": "review", "seq": 2});
    let plain = served.send(
        "POST",
        &path("labels"),
        &[("Content-Type", "application/json")],
        label.to_string().as_bytes(),
    );
    assert_eq!(plain.status, 401, "{}", plain.text());
    let form = served.send(
        "POST",
        &path("labels"),
        &[("X-Quipu-Token", served.app.token().expose())],
        b"label=x",
    );
    assert_eq!(form.status, 415);
    assert_eq!(served.as_owner("POST", &path("labels"), &label).status, 201);
    assert_eq!(
        served
            .as_owner("POST", &path("labels"), &json!({"label": "sh\u{1b}[31m"}))
            .status,
        400
    );
    assert_eq!(
        served
            .as_owner("POST", &path("labels"), &json!({"label": "x", "seq": 99}))
            .status,
        400
    );
    assert_eq!(
        served
            .as_owner("POST", &path("labels"), &json!({"label": "x", "colour": 1}))
            .status,
        400
    );
    let note = served
        .as_owner("POST", &path("notes"), &json!({"text": "look <b>here</b>"}))
        .json();
    let id = note["id"].as_str().unwrap();
    let one = served.get(&format!("/api/v1/transcripts/{FIRST}")).json();
    assert_eq!(
        (&one["labels"], &one["notes"]),
        (&json!(["review"]), &json!(1))
    );
    let listed = served.get("/api/v1/transcripts?label=review").json();
    assert_eq!(listed["transcripts"].as_array().unwrap().len(), 1);
    let edited = served.as_owner(
        "PUT",
        &path(&format!("notes/{id}")),
        &json!({"text": "done"}),
    );
    assert_eq!(edited.json()["text"], "done");
    assert_eq!(
        served
            .as_owner("DELETE", &path(&format!("notes/{id}")), &json!({}))
            .status,
        204
    );
    assert_eq!(
        served
            .as_owner("DELETE", &path(&format!("notes/{id}")), &json!({}))
            .status,
        404
    );
    assert_eq!(
        served.as_owner("DELETE", &path("labels"), &label).status,
        204
    );
    assert_eq!(served.get("/api/v1/labels").json(), json!([]));
}

#[test]
fn every_route_needs_a_caller_who_may() {
    let served = Served::with(|_| {}, |options| options.require_keys = true);
    let document = crate::openapi();
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let address = path
            .replace("{sha256}", &"0".repeat(64))
            .replace(['{', '}'], "");
        for (method, operation) in item.as_object().unwrap() {
            let is_open =
                ["/", "/api/v1/me", "/healthz", "/readyz", "/v1/limits"].contains(&path.as_str());
            let says_open = operation["security"] == json!([{}]);
            assert_eq!(is_open, says_open, "{method} {path}");
            if !is_open {
                let method = method.to_uppercase();
                let status = served.send(&method, &address, &[], b"").status;
                assert_eq!(status, 401, "{method} {path}");
                asked += 1;
            }
        }
    }
    assert!(asked > 60, "{asked}");
}

#[test]
fn events_are_numbered_from_one() {
    let served = Served::with(fill, |_| {});
    for path in ["events", "timeline", "context"] {
        let path = format!("/api/v1/transcripts/last/{path}");
        assert_eq!(served.get(&format!("{path}?from=1")).status, 200);
        for from in ["0", "9007199254740992", "18446744073709551615"] {
            // Twice: what the first one leaves behind must not trap the second.
            for _ in 0..2 {
                let answer = served.get(&format!("{path}?from={from}"));
                assert_eq!(answer.status, 400, "{path} {from}");
                assert_eq!(answer.json()["parameter"], "from");
            }
        }
        let last = served.get(&format!("{path}?from=9007199254740991"));
        assert_eq!(last.status, 200, "{path}: {}", last.text());
    }
}

#[test]
fn figures_take_only_their_own_parameters() {
    let served = Served::empty();
    for path in ["stats?by=agent", "waste?worst=3"] {
        assert_eq!(served.get(&format!("/api/v1/{path}")).status, 200, "{path}");
    }
    for path in ["stats?worst=3", "waste?by=agent"] {
        let answer = served.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 400, "{path}");
    }
}

#[test]
fn another_method_is_refused_with_those_that_are_possible() {
    let served = Served::empty();
    let answer = served.as_owner("PUT", "/api/v1/transcripts", &json!({}));
    assert_eq!(answer.status, 405);
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    assert_eq!(answer.json()["type"], "method_not_allowed");
}

/// Events as an exported document has them.
fn exported(served: &Served, id: &str) -> Vec<String> {
    let path = format!("/api/v1/transcripts/{id}/export?format=normalized");
    let text = served.get(&path).text();
    // Each event is a line.
    let events = text.split_once("\"events\":[\n").unwrap().1;
    let events = events.strip_suffix("\n]}\n").unwrap();
    events.split(",\n").map(str::to_owned).collect()
}

#[test]
fn events_are_given_as_the_exported_document_has_them() {
    use quipu_model::{Block, Body, Draft, Fidelity, Json, Place, RunId, ToolCall, ToolResult};
    use quipu_record::{RecorderOptions, Storage};
    let served = Served::with(
        |home| {
            fill(home);
            let run = RunId::new("a-run").unwrap();
            let recorder = Storage::at(home)
                .record(&run, RecorderOptions::default())
                .unwrap();
            let text = |text: &str| vec![Block::text(Fidelity::Router, text)];
            let bodies = [
                Body::RunStarted(None),
                Body::UserMessage(text("say \"hello\" <b>")),
                Body::AssistantMessage(vec![
                    Block::text(Fidelity::AgentEmitted, "one"),
                    Block::text(Fidelity::Router, "two"),
                ]),
                Body::ToolCall(ToolCall {
                    name: "bash".to_owned(),
                    call_id: "c1".into(),
                    input: Some(Json::parse(r#"{"command":"ls"}"#).unwrap()),
                    fidelity: Fidelity::AgentEmitted,
                }),
                Body::ToolResult(ToolResult {
                    name: "bash".to_owned(),
                    call_id: "c1".into(),
                    input: None,
                    output: Some(Json::parse(r#""a b""#).unwrap()),
                    error: None,
                    fidelity: Fidelity::AgentEmitted,
                }),
            ];
            for body in bodies {
                recorder.record(&Draft::new(Place::run(), body)).unwrap();
            }
            recorder.close().unwrap();
        },
        |_| {},
    );
    for id in [FIRST, "a-run"] {
        let exported = exported(&served, id);
        assert!(exported.len() > 4, "{exported:?}");
        let page = |query: &str| {
            let path = format!("/api/v1/transcripts/{id}/events?form=normalized{query}");
            let answer = served.get(&path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            answer.text()
        };
        // Byte for byte, in one page and in many.
        let whole = page("");
        assert!(
            whole.contains(&format!("\"events\":[{}]", exported.join(","))),
            "{whole}\n{exported:?}"
        );
        for (n, event) in (1..).zip(&exported) {
            let one = page(&format!("&from={n}&limit=1"));
            assert!(
                one.contains(&format!("\"events\":[{event}],\"next\":{}", n + 1)),
                "{one}\n{event}"
            );
        }
        let plain = served
            .get(&format!("/api/v1/transcripts/{id}/events"))
            .json();
        let whole: Value = serde_json::from_str(&whole).unwrap();
        for field in ["transcript", "next", "more", "total", "bad_lines"] {
            assert_eq!(whole[field], plain[field], "{field}");
        }
        // Filters mean the same, and what is asked of each event applies to its own fields.
        let tools: Value = serde_json::from_str(&page("&type=tool&fields=seq,tool&cut=3")).unwrap();
        let tools = tools["events"].as_array().unwrap();
        assert_eq!(tools.len(), 2);
        assert_eq!(tools[0].as_object().unwrap().len(), 2);
        assert_eq!(
            tools[0]["tool"]["name"].as_str().unwrap().to_lowercase(),
            "bas…"
        );
    }
    // What a price makes of it is there, as in the document.
    let priced = served
        .get(&format!(
            "/api/v1/transcripts/{FIRST}/events?form=normalized&role=assistant"
        ))
        .text();
    assert!(priced.contains("\"costUsd\":"), "{priced}");
    let path = format!("/api/v1/transcripts/{FIRST}/events?form=verse");
    assert_eq!(served.get(&path).status, 400);
}

#[test]
fn pages_of_long_events_are_short() {
    use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId};
    use quipu_record::{RecorderOptions, Storage};
    const LONG: usize = 3 << 20;
    let served = Served::with(
        |home| {
            let run = RunId::new("long-events").unwrap();
            let recorder = Storage::at(home)
                .record(&run, RecorderOptions::default())
                .unwrap();
            for n in 0..300 {
                let text = if n % 64 < 4 {
                    "x".repeat(LONG)
                } else {
                    "short".to_owned()
                };
                let body = Body::UserMessage(vec![Block::text(Fidelity::Router, text)]);
                recorder.record(&Draft::new(Place::run(), body)).unwrap();
            }
            recorder.close().unwrap();
        },
        |_| {},
    );
    for query in ["", "&cut=100000000", "&role=user", "&form=normalized"] {
        let (mut next, mut seen) = (1, Vec::new());
        for _ in 0..40 {
            let path =
                format!("/api/v1/transcripts/long-events/events?from={next}&limit=1000{query}");
            let answer = served.get(&path);
            assert!(
                answer.body.len() < (8 << 20) + LONG + (1 << 20),
                "{}",
                answer.body.len()
            );
            let page = answer.json();
            let seqs = page["events"].as_array().unwrap().iter();
            seen.extend(seqs.map(|event| event["seq"].as_u64().unwrap()));
            next = page["next"].as_u64().unwrap();
            if page["more"] == false {
                break;
            }
        }
        assert_eq!(seen, (1..=300).collect::<Vec<u64>>(), "{query}");
    }
    // From the middle of events that are long.
    let page = served
        .get("/api/v1/transcripts/long-events/events?from=67&limit=3")
        .json();
    let seqs = page["events"].as_array().unwrap().iter();
    let seqs: Vec<u64> = seqs.map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [67, 68, 69]);
}

#[test]
fn what_others_submitted_is_listed_and_counted_only_where_that_is_asked_for() {
    use quipu_submit::KeyStore;
    use quipu_submit::keys::{NewKey, Scope, Scopes};
    use quipu_submit::testkit::{fresh_id, transcript};
    use sha2::{Digest as _, Sha256};
    let served = Served::with(fill, |_| {});
    let new = NewKey {
        scopes: Scopes::new([Scope::Submit]),
        ..NewKey::default()
    };
    let keys = KeyStore::at(served.home().join("keys.jsonl"));
    let key = keys.make(new, &quipu_record::SystemClock).unwrap().1;
    let id = fresh_id().unwrap();
    let document = transcript(&id, &key.submitter(false), "all of it passed");
    let put = served.send(
        "PUT",
        &format!("/v1/transcripts/{id}"),
        &[
            ("Authorization", &format!("Bearer {}", key.expose())),
            ("Content-Type", "application/json"),
            (
                "Transcript-Sha256",
                &quipu_model::hex::encode(&Sha256::digest(&document)),
            ),
        ],
        &document,
    );
    assert_eq!(put.status, 201, "{}", put.text());
    let list = |query: &str| {
        let list = served
            .get(&format!("/api/v1/transcripts?all=true&{query}"))
            .json();
        list["transcripts"].as_array().unwrap().len()
    };
    let come = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        list("") == 4
    });
    assert!(come, "what was submitted is not listed");
    let whose = key.pseudonym();
    assert_eq!(list("received=true"), 1);
    assert_eq!(list(&format!("submitter={}", &whose[..9])), 1);
    assert_eq!(list("submitter=anon_nobody"), 0);
    let number = |path: &str, pointer: &str| {
        let document = served.get(path).json();
        document
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or(0)
    };
    // Of the figures, those of one's own sessions are the same as before.
    let calls = "/total/did/tool_calls";
    assert_eq!(number("/api/v1/stats?by=agent", calls), 3);
    assert_eq!(number("/api/v1/stats?by=agent&received=true", calls), 4);
    assert_eq!(number("/api/v1/tools", "/transcripts"), 3);
    assert_eq!(served.get("/api/v1/waste?received=true").status, 200);
    let blocks = |query: &str| {
        let blocks = served.get(&format!("/api/v1/stats/blocks?{query}")).json();
        blocks["blocks"].as_array().unwrap().len()
    };
    assert_eq!(blocks(""), 3);
    assert_eq!(blocks("received=true"), 4);
    assert_eq!(number("/api/v1/tools?received=true", "/transcripts"), 4);
}

#[test]
fn days_are_those_of_the_zone_that_is_asked_for() {
    let served = Served::with(fill, |_| {});
    // The first session is at ten in the morning, UTC: late in the evening of that day in one place, and early in another.
    let calls = |zone: &str, day: &str| {
        let path = format!("/api/v1/stats?by=day&zone={zone}&since={day}&until={day}");
        served.get(&path).json()["total"]["spent"]["calls"].as_u64()
    };
    assert_eq!(calls("UTC", "2026-10-01"), Some(2));
    assert_eq!(calls("Pacific/Kiritimati", "2026-10-02"), Some(2));
    assert_eq!(calls("Pacific/Kiritimati", "2026-10-01"), Some(0));
    assert_eq!(calls("Pacific/Niue", "2026-09-30"), Some(2));
}

#[test]
fn a_run_is_live_for_as_long_as_somebody_writes_it() {
    use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId};
    use quipu_record::{RecorderOptions, Storage};
    let served = Served::with(
        |home| {
            let run = RunId::new("a-run").unwrap();
            let storage = Storage::at(home);
            let recorder = storage.record(&run, RecorderOptions::default()).unwrap();
            let text = Block::text(Fidelity::Router, "hello");
            let body = Body::UserMessage(vec![text]);
            recorder.record(&Draft::new(Place::run(), body)).unwrap();
            recorder.close().unwrap();
        },
        |_| {},
    );
    let live = || served.get("/api/v1/transcripts/a-run").json()["live"].clone();
    assert_eq!(live(), false);
    let path = served.home().join("transcripts/a-run.jsonl");
    let file = std::fs::File::open(&path).unwrap();
    file.lock().unwrap();
    // A change, so that what was said before is asked again.
    std::fs::write(served.home().join("transcripts/other.txt"), b"x").unwrap();
    let begun = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        live() == true
    });
    assert!(begun, "a run that is written is not live");
    // Letting go changes no file.
    drop(file);
    assert_eq!(live(), false);
}

#[test]
fn bodies_that_are_too_long_and_journals_that_are_full_are_problems() {
    use quipu_store::annotations::AnnotationError;
    let served = Served::with(fill, |_| {});
    let path = format!("/api/v1/transcripts/{FIRST}/notes");
    let long = json!({"text": "x".repeat(3 << 20)});
    let answer = served.as_owner("POST", &path, &long);
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let full = AnnotationError::Full("journal".into());
    assert_eq!(crate::problem::Problem::from(full).status(), 507);
}

#[test]
fn a_blob_that_is_packed_has_a_weak_tag() {
    let served = Served::empty();
    let text = "a text that is long enough to be packed; ".repeat(100);
    let id = served.app.store().blobs().put(text.as_bytes()).unwrap();
    let path = format!("/api/v1/blobs/{}", id.digest());
    let packed = served.send("GET", &path, &[("Accept-Encoding", "gzip")], b"");
    assert_eq!(packed.status, 200);
    let tag = packed.header("etag").unwrap();
    assert!(tag.starts_with("W/"), "{tag}");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let again = served.send("GET", &path, &[("If-None-Match", tag)], b"");
    assert_eq!(again.status, 304);
}

#[test]
fn exports_are_packed_to_their_end() {
    let served = Served::with(fill, |_| {});
    let path = format!("/api/v1/transcripts/{FIRST}/export?format=normalized");
    let packed = served.send("GET", &path, &[("Accept-Encoding", "gzip")], b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    // What is packed ends with how long it was.
    let length = packed.body.last_chunk::<4>().unwrap();
    let whole = served.get(&path).body.len();
    assert_eq!(u32::from_le_bytes(*length) as usize, whole);
}

#[test]
fn clients_that_read_slowly_hold_up_nobody_but_downloads() {
    use crate::app::DOWNLOADS;
    use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId};
    use quipu_record::{RecorderOptions, Storage};
    use std::io::{Read as _, Write as _};
    let served = Served::with(
        |home| {
            let run = RunId::new("large").unwrap();
            let storage = Storage::at(home);
            let recorder = storage.record(&run, RecorderOptions::default()).unwrap();
            for _ in 0..24 {
                let text = Block::text(Fidelity::Router, "x".repeat(1 << 20));
                let body = Body::UserMessage(vec![text]);
                recorder.record(&Draft::new(Place::run(), body)).unwrap();
            }
            recorder.close().unwrap();
        },
        |_| {},
    );
    let export = "/api/v1/transcripts/large/export?format=normalized";
    let mut slow = Vec::new();
    for _ in 0..DOWNLOADS {
        let mut stream = served.connect();
        let host = served.address;
        write!(stream, "GET {export} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut head = [0; 15];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        slow.push(stream);
    }
    // They have begun, and nobody reads on. What takes long is done all the same.
    let begun = std::time::Instant::now();
    assert_eq!(served.get("/api/v1/doctor").status, 200);
    assert_eq!(served.get("/api/v1/transcripts/large/timeline").status, 200);
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    let refused = served.get(export);
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    // Whoever goes away makes room.
    slow.pop();
    let room = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        served.get(export).status == 200
    });
    assert!(room, "a client that is gone still has its place");
}
