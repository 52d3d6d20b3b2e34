use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Builtin, InputType, OperationContext, OperationError, Operations as _, inputs_of, names,
};
use crate::http::tests::{answer, server};

struct Place {
    dir: tempfile::TempDir,
    builtin: Builtin,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("root")).unwrap();
        std::fs::create_dir_all(dir.path().join("bin")).unwrap();
        put(&dir.path().join("secret"), "secret");
        symlink("../secret", dir.path().join("root/link")).unwrap();
        Self {
            dir,
            builtin: Builtin::default(),
        }
    }

    /// A place where a program is found that prints its arguments to `argv`, one a line, and then runs a script.
    fn with(program: &str, script: &str) -> Self {
        let mut place = Self::new();
        let file = place.dir.path().join("bin").join(program);
        let argv = place.dir.path().join("argv");
        let argv = argv.display();
        put(
            &file,
            &format!(
                "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\n' \"$a\"; done >> {argv}\n{script}\n"
            ),
        );
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let bin = place.dir.path().join("bin");
        place.builtin.path = Some(format!("{}:/usr/bin:/bin", bin.display()).into());
        place
    }

    fn argv(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("argv")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn context(&self) -> OperationContext {
        OperationContext {
            root: self.dir.path().join("root"),
        }
    }

    async fn run(&self, name: &str, inputs: Value) -> Result<Map<String, Value>, OperationError> {
        let Value::Object(inputs) = inputs else {
            panic!("inputs are an object")
        };
        let never = CancellationToken::new();
        let done = self
            .builtin
            .run(name, &inputs, &self.context(), &never)
            .await;
        done.map(|it| it.response)
    }

    async fn response(&self, name: &str, inputs: Value) -> Value {
        Value::Object(self.run(name, inputs).await.unwrap())
    }

    async fn error(&self, name: &str, inputs: Value) -> String {
        self.run(name, inputs).await.unwrap_err().to_string()
    }
}

fn put(path: &Path, text: &str) {
    std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), text.as_bytes()).unwrap();
}

#[tokio::test]
async fn what_is_wrong_with_inputs_is_said_at_once_with_suggestions() {
    let place = Place::new();
    let error = place
        .error(
            "http.request",
            json!({"methd": "GET", "timeout": "soon", "headers": 1}),
        )
        .await;
    for part in [
        "did you mean \"method\"?",
        "timeout must be a duration",
        "headers must be an object",
        "url is missing",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = place.error("http.requst", json!({})).await;
    assert!(error.contains("did you mean http.request?"), "{error}");
}

#[test]
fn every_operation_says_what_it_takes() {
    let all = names();
    assert!(all.is_sorted());
    assert_eq!(all.len(), Builtin::default().names().len());
    for name in all {
        let inputs = inputs_of(name).unwrap();
        assert!(inputs.iter().any(|it| it.required), "{name}");
    }
    assert_eq!(inputs_of("no.such"), None);
    let url = inputs_of("http.request").unwrap()[0];
    assert_eq!((url.name, url.kind), ("url", InputType::Text));
}

#[tokio::test]
async fn http_request_sends_what_it_is_given_and_says_nothing_of_it() {
    let mut server = server(vec![answer("404 Not Found", "x-r: 1\r\n", "gone")]).await;
    let place = Place::new();
    let inputs = json!({
        "method": "put", "url": format!("{}/x", server.url), "timeout": "5s",
        "headers": "{\"Authorization\": \"Bearer token-1\"}", "body": {"a": 1},
    });
    let response = place.run("http.request", inputs).await.unwrap();
    let seen = server.seen.recv().await.unwrap();
    assert!(seen.starts_with("PUT /x HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer token-1\r\n"), "{seen}");
    assert!(
        seen.contains("content-type: application/json\r\n"),
        "{seen}"
    );
    assert!(seen.ends_with("\r\n\r\n{\"a\":1}"), "{seen}");
    assert_eq!(response["status_code"], 404);
    assert_eq!(response["body"], "gone");
    assert_eq!(response["headers"]["x-r"], "1");
    assert_eq!(response["body_truncated"], false);
    assert!(!Value::Object(response).to_string().contains("token-1"));
}

#[tokio::test]
async fn a_status_that_is_to_be_tried_again_is_a_failure() {
    let server = server(vec![answer("503 Busy", "", "")]).await;
    let place = Place::new();
    let inputs = json!({"url": server.url, "retryable_status_codes": [429, "503"]});
    let error = place.error("http.request", inputs).await;
    assert!(error.contains("503"), "{error}");
    let inputs = json!({"url": server.url, "retryable_status_codes": "429,abc"});
    let error = place.error("http.request", inputs).await;
    assert!(error.contains("\"abc\" is not a status"), "{error}");
}

#[tokio::test]
async fn a_body_over_the_cap_is_cut_and_a_slow_server_times_out() {
    let body = "x".repeat((5 << 20) + 1);
    let server = server(vec![answer("200 OK", "", &body), None]).await;
    let place = Place::new();
    let response = place
        .response("http.request", json!({"url": server.url}))
        .await;
    assert_eq!(response["body_truncated"], true);
    assert_eq!(response["body"].as_str().unwrap().len(), 5 << 20);
    let inputs = json!({"url": server.url, "timeout": "100ms"});
    let error = place.error("http.request", inputs).await;
    assert!(error.contains("100ms"), "{error}");
}

#[tokio::test]
async fn cancelling_ends_an_operation() {
    let mut server = server(vec![None]).await;
    let place = Place::with("gh", "echo started; sleep 63");
    let cancel = CancellationToken::new();
    let context = place.context();
    let Value::Object(web) = json!({"url": server.url}) else {
        unreachable!()
    };
    let Value::Object(issue) = json!({"number": 1}) else {
        unreachable!()
    };
    let (first, second, ()) = tokio::join!(
        place.builtin.run("http.request", &web, &context, &cancel),
        place
            .builtin
            .run("github.get_issue", &issue, &context, &cancel),
        async {
            server.seen.recv().await.unwrap();
            while !place.dir.path().join("argv").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        },
    );
    assert!(matches!(first, Err(OperationError::Cancelled)));
    assert!(matches!(second, Err(OperationError::Cancelled)));
}

#[tokio::test]
async fn notifications_go_to_the_webhook_or_the_desktop() {
    let mut server = server(vec![
        answer("204 No Content", "", ""),
        answer("500 No", "", "why"),
    ])
    .await;
    let place = Place::with("notify-send", "exit 0");
    let webhook = json!({
        "backend": "webhook", "message": "done \"now\"", "title": "T", "priority": "high",
        "webhook_url": format!("{}/hook?key=k", server.url),
    });
    let response = place.response("notify.send", webhook.clone()).await;
    assert_eq!(response["status_code"], 204);
    let seen = server.seen.recv().await.unwrap();
    let body: Value = serde_json::from_str(seen.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        body,
        json!({"title": "T", "message": "done \"now\"", "priority": "high"})
    );
    let error = place.error("notify.send", webhook).await;
    assert!(error.contains("500") && error.contains("why"), "{error}");
    if cfg!(target_os = "linux") {
        let inputs = json!({"backend": "desktop", "message": "--help; rm"});
        place.response("notify.send", inputs).await;
        let argv = ["--urgency", "normal", "--", "Quipu", "--help; rm"];
        assert_eq!(place.argv(), argv);
    }
    for (inputs, part) in [
        (json!({"backend": "pigeon", "message": "m"}), "pigeon"),
        (json!({"backend": "webhook", "message": "m"}), "webhook_url"),
        (
            json!({"backend": "desktop", "message": "m", "priority": "x"}),
            "priority",
        ),
    ] {
        let error = place.error("notify.send", inputs).await;
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn files_are_read_and_written_beneath_the_root() {
    let place = Place::new();
    let run = async |name: &str, inputs: Value| place.response(name, inputs).await;
    run("file.write", json!({"path": "d/f", "content": "one"})).await;
    run("file.append", json!({"path": "d/f", "content": " two"})).await;
    let read = run("file.read", json!({"path": "d/f"})).await;
    assert_eq!(read, json!({"content": "one two", "size": 7}));
    run("file.copy", json!({"from": "d/f", "to": "e/g"})).await;
    let there = run("file.exists", json!({"path": "e/g"})).await;
    assert_eq!(
        (&there["exists"], &there["is_file"]),
        (&json!(true), &json!(true))
    );
    let deleted = run("file.delete", json!({"path": "e/g"})).await;
    assert_eq!(deleted["deleted"], true);
    let there = run("file.exists", json!({"path": "e/g"})).await;
    assert_eq!(there["exists"], false);
    let again = json!({"path": "e/g", "missing_ok": "true"});
    assert_eq!(run("file.delete", again).await["deleted"], false);
    place.error("file.delete", json!({"path": "e/g"})).await;
}

#[tokio::test]
async fn no_file_operation_leads_out_of_the_root() {
    let place = Place::new();
    put(&place.dir.path().join("root/mine"), "mine");
    let secret = place.dir.path().join("secret");
    for path in [
        "../secret",
        "link",
        "d/../../secret",
        secret.to_str().unwrap(),
        "/etc/passwd",
    ] {
        place.error("file.read", json!({"path": path})).await;
        place
            .error("file.write", json!({"path": path, "content": "x"}))
            .await;
        place
            .error("file.append", json!({"path": path, "content": "x"}))
            .await;
        place
            .error("file.copy", json!({"from": path, "to": "mine"}))
            .await;
        place
            .error("file.copy", json!({"from": "mine", "to": path}))
            .await;
        if path != "link" {
            place.error("file.delete", json!({"path": path})).await;
        }
        if path != "d/../../secret" {
            place.error("file.exists", json!({"path": path})).await;
        }
    }
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
}

#[tokio::test]
async fn json_values_are_read_changed_and_merged() {
    let place = Place::new();
    let run = async |name: &str, inputs: Value| place.response(name, inputs).await["value"].clone();
    let text = r#"{"items": [{"name": "a"}, {"name": "b"}], "n": 12345678901234567890}"#;
    let parsed = run("json.parse", json!({"text": text})).await;
    assert_eq!(parsed["n"], 12_345_678_901_234_567_890_u64);
    for path in ["/items/1/name", "items.1.name", "items[1].name"] {
        let get = json!({"value": text, "path": path});
        assert_eq!(run("json.get", get).await, "b", "{path}");
    }
    let none = json!({"value": parsed, "path": "items.9.name", "default": "d"});
    let none = place.response("json.get", none).await;
    assert_eq!(none, json!({"value": "d", "found": false}));
    let set = json!({"value": {"a": [1]}, "path": "a.1.b.c", "to": 2});
    assert_eq!(
        run("json.set", set).await,
        json!({"a": [1, {"b": {"c": 2}}]})
    );
    let merge =
        json!({"values": [{"a": {"x": 1, "y": [1]}}, "{\"a\": {\"y\": [2]}, \"b\": null}"]});
    assert_eq!(
        run("json.merge", merge).await,
        json!({"a": {"x": 1, "y": [2]}, "b": null})
    );
    place.error("json.parse", json!({"text": "{"})).await;
    let deep = "[".repeat(100_000);
    place.error("json.parse", json!({"text": deep})).await;
    let path = vec!["a"; 1000].join(".");
    place
        .error("json.set", json!({"value": {}, "path": path, "to": 1}))
        .await;
}

#[tokio::test]
async fn github_operations_call_gh_with_arguments_that_nothing_can_break_out_of() {
    let issue =
        r#"printf '%s' '{"number": 7, "title": "t", "comments": [{"body": "a"}, {"body": "b"}]}'"#;
    let place = Place::with("gh", issue);
    let inputs = json!({"number": "7", "repo": "o/r"});
    let response = place.response("github.get_issue", inputs).await;
    assert_eq!(response["title"], "t");
    assert_eq!(place.argv()[..3], ["issue", "view", "7"]);
    assert_eq!(place.argv().last().unwrap(), "--repo=o/r");
    let inputs = json!({"number": 7, "limit": 1});
    let response = place.response("github.list_comments", inputs).await;
    assert_eq!(response, json!({"comments": [{"body": "a"}], "count": 1}));

    let place = Place::with("gh", "echo Creating; echo https://github.com/o/r/issues/12");
    let inputs = json!({"title": "--web", "body": "$(rm -rf /)", "labels": "a, b"});
    let response = place.response("github.create_issue", inputs).await;
    let url = "https://github.com/o/r/issues/12";
    assert_eq!(response, json!({"url": url, "number": 12}));
    let argv = [
        "issue",
        "create",
        "--title=--web",
        "--body=$(rm -rf /)",
        "--label=a",
        "--label=b",
    ];
    assert_eq!(place.argv(), argv);
    for inputs in [
        json!({"number": 1, "repo": "--help"}),
        json!({"number": 1, "repo": "o/r/x/y"}),
        json!({"number": -1}),
        json!({"number": "1; ls"}),
    ] {
        let done = place.run("github.get_pr", inputs).await;
        assert!(matches!(done, Err(OperationError::Inputs(_))));
    }
}

#[tokio::test]
async fn a_gh_that_is_missing_or_fails_is_named() {
    let mut place = Place::new();
    place.builtin.path = Some(place.dir.path().join("bin").into());
    let error = place.error("github.get_issue", json!({"number": 1})).await;
    assert!(error.contains("gh was not found"), "{error}");
    let place = Place::with("gh", "echo 'not logged in' >&2; exit 4");
    let error = place.error("github.get_issue", json!({"number": 1})).await;
    assert!(error.contains("exit code 4: not logged in"), "{error}");
    let place = Place::with("gh", "echo no json");
    let error = place.error("github.get_issue", json!({"number": 1})).await;
    assert!(error.contains("JSON"), "{error}");
}

#[tokio::test]
async fn a_batch_does_each_operation_and_keeps_their_order() {
    let script = "case $3 in 2) exit 1;; *) printf '{\"number\": %s}' $3;; esac";
    let place = Place::with("gh", script);
    let operations = json!([
        {"operation": "get_issue", "inputs": {"number": 1}},
        {"name": "github.get_pr", "inputs": {"number": 2}},
        {"operation": "get_issue", "inputs": {"number": 3}},
    ]);
    let inputs = json!({"operations": operations, "strategy": "best_effort", "max_concurrent": 2});
    let response = place.response("github.batch", inputs).await;
    assert_eq!(
        (&response["succeeded"], &response["failed"]),
        (&json!(2), &json!(1))
    );
    let good: Vec<_> = response["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["success"].as_bool().unwrap())
        .collect();
    assert_eq!(good, [true, false, true]);
    let error = place
        .error("github.batch", json!({"operations": operations}))
        .await;
    assert!(error.contains("operations[1]"), "{error}");
    let nested = json!({"operations": [{"operation": "batch"}]});
    let error = place.error("github.batch", nested).await;
    assert!(error.contains("itself a batch"), "{error}");
}
