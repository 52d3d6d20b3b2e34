//! What the server says, and what it keeps to itself.

use quipu_submit::keys::Scope;
use serde_json::Value;

use super::kit::{Document, GRACE, Server, key, spans};
use crate::cli::env::TestEnv;
use crate::cli::machine::{SESSION, furnish};

#[test]
fn the_log_is_json_names_requests_and_has_no_secret() {
    let env = TestEnv::new();
    furnish(&env);
    assert_eq!(env.run(&["import"]).code, 0);
    let mut server = Server::serve(&env, &["--log", "json", "--log-level", "debug"]);
    let token = server.token();
    let submit = key(&server.home, Scope::Submit);
    let admin = key(&server.home, Scope::Admin);
    let kind = ("Content-Type", "application/json");
    let label = format!("/api/v1/transcripts/{SESSION}/labels");
    let made = server.send(
        "POST",
        &label,
        &[("X-Quipu-Token", &token), kind],
        br#"{"label": "hush-hush"}"#,
    );
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(
        Document::new(&submit, "quiet words")
            .sent(&server, &submit)
            .status,
        201
    );
    let bearer = format!("Bearer {}", admin.expose());
    let read = server.send(
        "GET",
        "/api/v1/transcripts",
        &[("Authorization", &bearer)],
        b"",
    );
    assert_eq!(read.status, 200);
    // Where they do not belong.
    for (name, secret) in [
        ("token", &*token),
        ("key", &submit.expose()),
        ("access_token", &admin.expose()),
    ] {
        let path = format!("/api/v1/search?q=needle-in-hay&{name}={secret}");
        server.get(&path);
        server.get(&format!("/nowhere/{secret}"));
        server.get(&format!("/v1/transcripts/{secret}"));
        server.get(&format!("/api/v1/transcripts/{secret}"));
    }
    let wrong = server.send(
        "GET",
        "/metrics",
        &[("X-Quipu-Token", "guess-of-a-token")],
        b"",
    );
    assert_eq!(wrong.status, 401);
    let sent = server.send("POST", "/v1/traces", &[kind], &spans(7, "private words"));
    assert_eq!(sent.status, 200);
    server.running.signal(rustix::process::Signal::TERM);
    assert_eq!(server.running.ended_within(GRACE), Some(0));
    let (_, lines) = server.running.rest();
    assert!(lines.len() > 10, "every request is logged: {lines:#?}");
    for line in &lines {
        let parsed: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert!(parsed["level"].is_string(), "{line}");
    }
    let all = lines.join("\n");
    for secret in [
        token.as_str(),
        &submit.expose(),
        &admin.expose(),
        "guess-of-a-token",
        "quiet words",
        "private words",
        "needle-in-hay",
        "hush-hush",
    ] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    let request: Value = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["route"] == "/api/v1/transcripts")
        .expect("a request of the list");
    assert_eq!(
        (&request["method"], &request["status"]),
        (&"GET".into(), &200.into())
    );
    assert_eq!(request["who"], admin.id().to_string());
}

#[test]
fn keys_and_tokens_are_taken_from_headers_only() {
    let env = TestEnv::new();
    let server = Server::serve(&env, &["--require-keys"]);
    let admin = key(&server.home, Scope::Admin);
    let (key, token) = (admin.expose(), server.token());
    assert_eq!(server.get("/api/v1/transcripts").status, 401);
    for query in [
        format!("key={key}"),
        format!("token={token}"),
        format!("access_token={key}"),
        format!("x-quipu-token={token}"),
        format!("authorization=Bearer%20{key}"),
    ] {
        let status = server.get(&format!("/api/v1/transcripts?{query}")).status;
        assert_eq!(status, 401, "{query}");
        let status = server.get(&format!("/v1/transcripts?{query}")).status;
        assert_eq!(status, 401, "{query}");
    }
    for header in [
        ("Cookie", format!("token={token}; key={key}")),
        ("Authorization", format!("Basic {key}")),
        ("Proxy-Authorization", format!("Bearer {key}")),
    ] {
        let headers = [(header.0, header.1.as_str())];
        let answer = server.send("GET", "/api/v1/transcripts", &headers, b"");
        assert_eq!(answer.status, 401, "{header:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let bearer = format!("Bearer {key}");
    let answer = server.send(
        "GET",
        "/api/v1/transcripts",
        &[("Authorization", &bearer)],
        b"",
    );
    assert_eq!(answer.status, 200);
    server.end();
}
