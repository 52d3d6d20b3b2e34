//! Who may do what, and what hostile requests get.

use serde_json::json;

use super::{Lab, put};
use crate::control::launch::beneath;

const NOTHING: &str = r#"
inputs:
  - {name: who, type: string, default: "nobody"}
states:
  initial: done
  done: {type: terminal, status: success}
"#;

#[test]
fn what_changes_something_needs_the_token_or_a_key() {
    let lab = Lab::new(&[("nothing", NOTHING)]);
    let id = lab.start(&json!({"workflow": "nothing"}));
    let body = json!({"workflow": "nothing"}).to_string();
    let json_only = [("content-type", "application/json")];
    let run = format!("/api/v1/executions/{id}");
    let mut paths = vec![
        "/api/v1/executions".to_owned(),
        "/api/v1/workflows/validate".to_owned(),
    ];
    for what in ["cancel", "approve", "deny", "answer", "resume"] {
        paths.push(format!("{run}/{what}"));
    }
    for path in &paths {
        let answer = lab.served.send("POST", path, &json_only, body.as_bytes());
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
        let reader = lab.ask("qk_reader", "POST", path, &json!({}));
        assert_eq!(reader.status, 403, "{path}: {}", reader.text());
        let token = lab.served.app.token().expose();
        let foreign = [
            ("content-type", "application/json"),
            ("x-quipu-token", token),
            ("origin", "https://evil.example"),
        ];
        let answer = lab.served.send("POST", path, &foreign, body.as_bytes());
        assert_eq!(answer.status, 403, "{path}: {}", answer.text());
    }
    for path in [
        "/api/v1/executions",
        "/api/v1/workflows",
        "/api/v1/workflows/nothing",
        &run,
    ] {
        assert_eq!(lab.served.get(path).status, 200, "{path}");
        let foreign = [("origin", "https://evil.example")];
        assert_eq!(
            lab.served.send("GET", path, &foreign, b"").status,
            403,
            "{path}"
        );
    }
    let strict = Lab::with(
        &[("nothing", NOTHING)],
        |_| {},
        |options| options.require_keys = true,
    );
    for path in [
        "/api/v1/executions",
        "/api/v1/workflows",
        "/api/v1/workflows/nothing",
        &run,
    ] {
        assert_eq!(strict.served.get(path).status, 401, "{path}");
    }
}

#[test]
fn names_and_directories_lead_nowhere_else() {
    let lab = Lab::new(&[("nothing", NOTHING)]);
    put(
        &lab.work.path().join("loose.yaml"),
        &format!("name: loose\n{NOTHING}"),
    );
    let outside = tempfile::tempdir().unwrap();
    put(
        &outside.path().join(".quipu/workflows/evil.yaml"),
        &format!("name: evil\n{NOTHING}"),
    );
    let evil = outside.path().join(".quipu/workflows/evil.yaml");
    let absolute = evil.to_str().unwrap();
    let long = "a/".repeat(100_000);
    for name in [
        "",
        ".",
        "..",
        "../nothing",
        "./loose.yaml",
        "loose.yaml",
        "loose",
        absolute,
        "/etc/passwd",
        "nothing\0",
        "nothing\0.yaml",
        "%2e%2e%2fnothing",
        "..\\nothing",
        "nothing.yaml",
        "*",
        "no*",
        "[n]othing",
        &long,
    ] {
        let answer = lab.post("/api/v1/executions", &json!({"workflow": name}));
        assert_eq!(answer.status, 404, "{name:.40}: {}", answer.text());
        assert!(answer.body.len() < 1000, "{}", answer.text());
    }
    for path in [
        "..%2fnothing",
        "%2e%2e",
        "%2Fetc%2Fpasswd",
        "nothing%00",
        "loose.yaml",
    ] {
        let answer = lab.served.get(&format!("/api/v1/workflows/{path}"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
}

#[test]
fn runs_stay_beneath_the_work_directory() {
    let lab = Lab::new(&[("nothing", NOTHING)]);
    put(&lab.work.path().join("loose.yaml"), "");
    let outside = tempfile::tempdir().unwrap();
    put(
        &outside.path().join(".quipu/workflows/evil.yaml"),
        &format!("name: evil\n{NOTHING}"),
    );
    std::os::unix::fs::symlink(outside.path(), lab.work.path().join("link")).unwrap();
    let out = outside.path().to_str().unwrap();
    for root in [
        "..",
        "/",
        "/etc",
        out,
        "link",
        "sub/../..",
        "missing",
        "x\0y",
        "loose.yaml",
        &"d/".repeat(5000),
    ] {
        for workflow in ["evil", "nothing"] {
            let answer = lab.post(
                "/api/v1/executions",
                &json!({"workflow": workflow, "root": root}),
            );
            assert_eq!(answer.status, 400, "{root:.40}: {}", answer.text());
            assert_eq!(answer.json()["parameter"], "root");
        }
    }
    put(
        &lab.work.path().join("sub/.quipu/workflows/below.yaml"),
        &format!("name: below\n{NOTHING}"),
    );
    let below = lab.start(&json!({"workflow": "below", "root": "sub"}));
    let run = lab.until_is(&below, "succeeded");
    assert!(run["root"].as_str().unwrap().ends_with("/sub"), "{run}");
    for id in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%00",
        "a%20b",
        &"a".repeat(500),
    ] {
        for what in ["", "/cancel", "/resume"] {
            let path = format!("/api/v1/executions/{id}{what}");
            let method = if what.is_empty() { "GET" } else { "POST" };
            let answer = lab.ask("", method, &path, &json!({}));
            assert!(
                matches!(answer.status, 400 | 404),
                "{path}: {}",
                answer.text()
            );
        }
    }
    assert_eq!(
        lab.ask("", "GET", "/api/v1/executions/not-there", &json!({}))
            .status,
        404
    );
}

#[test]
fn a_directory_is_beneath_another_after_links_are_followed() {
    let work = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(work.path().join("a/b")).unwrap();
    std::os::unix::fs::symlink(work.path().join("a"), work.path().join("inside")).unwrap();
    let real = std::fs::canonicalize(work.path()).unwrap();
    assert_eq!(beneath(work.path(), None).unwrap(), real);
    assert_eq!(beneath(work.path(), Some(".")).unwrap(), real);
    assert_eq!(
        beneath(work.path(), Some("inside/b")).unwrap(),
        real.join("a/b")
    );
    assert_eq!(
        beneath(work.path(), Some("a/../a")).unwrap(),
        real.join("a")
    );
    let beside = format!("{}x", real.display());
    std::fs::create_dir_all(&beside).unwrap();
    assert!(beneath(work.path(), Some(&beside)).is_err());
    std::fs::remove_dir(&beside).unwrap();
}

#[test]
fn bodies_are_bounded_and_say_what_is_wrong() {
    let lab = Lab::new(&[("nothing", NOTHING)]);
    let token = lab.served.app.token().expose();
    let send = |kind: &str, body: &[u8]| {
        let headers = [("x-quipu-token", token), ("content-type", kind)];
        lab.served
            .send("POST", "/api/v1/executions", &headers, body)
    };
    let huge = json!({"workflow": "nothing", "inputs": {"who": "x".repeat(1 << 20)}}).to_string();
    assert_eq!(send("application/json", huge.as_bytes()).status, 413);
    assert_eq!(
        send("text/plain", b"{\"workflow\": \"nothing\"}").status,
        415
    );
    for (body, said) in [
        (&b"{"[..], "EOF"),
        (b"[]", "the body"),
        (b"{}", "workflow"),
        (b"{\"workflow\": 1}", "expected a string"),
        (
            b"{\"workflow\": \"nothing\", \"input\": {}}",
            "unknown field `input`, expected one of",
        ),
        (
            b"{\"workflow\": \"nothing\", \"budget_usd\": -1}",
            "budget_usd",
        ),
        (
            b"{\"workflow\": \"nothing\", \"inputs\": {\"who\": [1]}}",
            "inputs.who",
        ),
        (
            b"{\"workflow\": \"nothing\", \"inputs\": {\"who\": \"a\\u0000b\"}}",
            "NUL",
        ),
        (
            b"{\"workflow\": \"nothing\", \"inputs\": {\"LD_PRELOAD\": \"/tmp/x.so\"}}",
            "does not declare",
        ),
        (b"\xff\xfe", "the body"),
    ] {
        let answer = send("application/json; charset=utf-8", body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(said), "{said}: {}", answer.text());
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
    }
    let id = lab.start(&json!({"workflow": "nothing"}));
    let odd = lab.act("", &id, "cancel", &json!({"force": true}));
    assert_eq!(odd.status, 400, "{}", odd.text());
}

#[test]
fn the_document_has_every_route_of_run_control() {
    let document = serde_json::to_value(crate::openapi()).unwrap();
    for (path, method) in [
        ("/api/v1/workflows", "get"),
        ("/api/v1/workflows/{name}", "get"),
        ("/api/v1/workflows/validate", "post"),
        ("/api/v1/executions", "get"),
        ("/api/v1/executions", "post"),
        ("/api/v1/executions/{id}", "get"),
        ("/api/v1/executions/{id}/cancel", "post"),
        ("/api/v1/executions/{id}/approve", "post"),
        ("/api/v1/executions/{id}/deny", "post"),
        ("/api/v1/executions/{id}/answer", "post"),
        ("/api/v1/executions/{id}/resume", "post"),
    ] {
        assert!(
            document["paths"][path][method].is_object(),
            "{method} {path}"
        );
    }
    assert!(document["components"]["schemas"]["Execution"].is_object());
    assert!(document["components"]["schemas"]["StartBody"].is_object());
}
