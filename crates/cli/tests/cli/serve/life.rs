//! From the start of a server to its end.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::kit::{GRACE, Server};
use crate::cli::env::TestEnv;
use crate::cli::machine::{PROJECT, SESSION, furnish, user};

fn append(env: &TestEnv, text: &str) {
    let log = env.path(&format!("{PROJECT}/{SESSION}.jsonl"));
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_machine_without_sessions_serves_the_samples_and_says_so() {
    let env = TestEnv::new();
    let home = env.path("data");
    let args = [
        "--home",
        home.to_str().unwrap(),
        "up",
        "--listen",
        "127.0.0.1:0",
    ];
    let samples = env.path("data-samples");
    let server = Server::start(&env, &samples, &args);
    assert!(
        server.said[0].contains("These are samples that come with Quipu"),
        "{:?}",
        server.said
    );
    let status = server.json("/api/v1/status");
    assert_eq!(status["samples"], true, "{status}");
    assert_eq!(status["home"], samples.to_str().unwrap());
    let list = server.json("/api/v1/transcripts");
    assert!(list["transcripts"].as_array().unwrap().len() > 3, "{list}");
    assert!(
        !home.join("server.json").exists(),
        "the real one is not served"
    );
    let second = env.run(&args);
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert!(
        second
            .stdout
            .contains(&format!("already: http://{}", server.address)),
        "{}",
        second.stdout
    );
    server.end();
    assert!(!samples.join("server.json").exists());
}

/// The next address that it says it serves at.
fn serving_at(server: &Server) -> String {
    loop {
        let line = server.running.line();
        if let Some(address) = line.strip_prefix("Serving at http://") {
            return address.to_owned();
        }
    }
}

#[test]
fn samples_make_room_for_the_first_session() {
    let env = TestEnv::new();
    let home = env.path("data");
    let home = home.to_str().unwrap();
    let listen = ["--home", home, "up", "--listen", "127.0.0.1:0"];
    let mut server = Server::start(&env, &env.path("data-samples"), &listen);
    assert_eq!(server.json("/api/v1/status")["samples"], true);
    // Somebody looks at them meanwhile.
    let mut stream = server.connect();
    let host = server.address;
    write!(
        stream,
        "GET /api/v1/stream HTTP/1.1\r\nHost: {host}\r\n\r\n"
    )
    .unwrap();
    assert!(stream.read(&mut [0; 64]).unwrap() > 0);
    // What is sent would be lost among the samples.
    let kind = [("Content-Type", "application/json")];
    let sent = server.send(
        "POST",
        "/v1/traces",
        &kind,
        &super::kit::spans(1, "pelican"),
    );
    assert_eq!(
        (sent.status, &sent.json()["type"]),
        (503, &"samples".into())
    );
    assert_eq!(sent.header("retry-after"), Some("5"));
    let key = super::kit::key(&server.home, quipu_submit::keys::Scope::Submit);
    let document = super::kit::Document::new(&key, "albatross");
    assert_eq!(document.sent(&server, &key).status, 503);
    assert_eq!(document.fetched(&server, &key).status, 404);
    // Not even the home of the person was there.
    assert!(!env.path("person").exists());
    furnish(&env);
    assert_eq!(serving_at(&server), server.address.to_string());
    server.home = env.path("data");
    let status = server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    assert_eq!(status["samples"], false, "{status:#}");
    assert_eq!(status["home"], home);
    let list = server.json("/api/v1/transcripts").to_string();
    assert!(
        list.contains("Make it work") && !list.contains("relay"),
        "{list}"
    );
    assert!(!env.path("data-samples/server.json").exists());
    // It is watched like any other.
    append(&env, &user(SESSION, 30, "toucan in the log"));
    server.until("/api/v1/search?q=toucan", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() == 1)
    });
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.ended_within(GRACE), Some(0));
    let (_, said) = server.running.rest();
    // What was refused is in the log before it.
    let last = said.last().map(String::as_str);
    assert_eq!(last, Some("ending; once more to end at once"));
    assert!(!env.path("data/server.json").exists());
    // Whoever asks for samples gets samples.
    let demo = ["--home", home, "up", "--demo", "--listen", "127.0.0.1:0"];
    let server = Server::start(&env, &env.path("data-samples"), &demo);
    assert_eq!(server.json("/api/v1/status")["samples"], true);
    server.end();
}

#[test]
fn samples_make_room_for_what_is_put_into_the_home() {
    let env = TestEnv::new();
    let home = env.path("data");
    let home = home.to_str().unwrap();
    let listen = ["--home", home, "up", "--listen", "127.0.0.1:0"];
    let server = Server::start(&env, &env.path("data-samples"), &listen);
    assert_eq!(server.json("/api/v1/status")["samples"], true);
    let log = env.file("elsewhere/log.jsonl", user(SESSION, 0, "quetzal"));
    assert_eq!(env.run(&["--home", home, "import", &log]).code, 0);
    assert_eq!(serving_at(&server), server.address.to_string());
    server.until("/api/v1/search?q=quetzal", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() == 1)
    });
    server.end();
}

#[test]
fn without_samples_an_empty_home_is_served() {
    let env = TestEnv::new();
    let server = Server::up(&env, &["--no-samples"]);
    let status = server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    assert_eq!(status["samples"], false);
    assert_eq!(status["transcripts"]["sessions"], 0);
    // The first agent of the machine is noticed, and so is the next.
    furnish(&env);
    server.until("/api/v1/search?q=work", |it| {
        it["hits"].as_array().is_some_and(|hits| !hits.is_empty())
    });
    env.file(
        "person/.codex/sessions/2026/11/11/rollout-2026-11-11T16-02-00-019a5c11-7a40-7c31-9d52-6f0e8b1c2a90.jsonl",
        include_str!(
            "../../../samples/codex/rollout-2026-11-11T16-02-00-019a5c11-7a40-7c31-9d52-6f0e8b1c2a90.jsonl"
        ),
    );
    server.until("/api/v1/transcripts", |it| {
        it.to_string().contains("019a5c11-7a40")
    });
    server.end();
}

#[test]
fn what_was_sent_to_another_home_is_not_imported() {
    let env = TestEnv::new();
    furnish(&env);
    // The home of the environment has telemetry that is not imported yet.
    let usual = Server::serve(&env, &[]);
    let kind = [("Content-Type", "application/json")];
    let sent = usual.send(
        "POST",
        "/v1/traces",
        &kind,
        &super::kit::spans(1, "pelican"),
    );
    assert_eq!(sent.status, 200, "{}", sent.text());
    usual.end();
    let other = env.path("other");
    let args = [
        "--home",
        other.to_str().unwrap(),
        "up",
        "--listen",
        "127.0.0.1:0",
    ];
    let server = Server::start(&env, &other, &args);
    let status = server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    assert_eq!(status["transcripts"]["sessions"], 2, "{status:#}");
    // Nor when more is sent there.
    let usual = Server::serve(&env, &[]);
    let sent = usual.send(
        "POST",
        "/v1/traces",
        &kind,
        &super::kit::spans(2, "pelican"),
    );
    assert_eq!(sent.status, 200, "{}", sent.text());
    append(&env, &user(SESSION, 30, "toucan in the log"));
    server.until("/api/v1/search?q=toucan", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() == 1)
    });
    let found = server.json("/api/v1/search?q=pelican");
    assert_eq!(found["hits"], serde_json::json!([]), "{found:#}");
    // What is sent to this one is.
    let sent = server.send(
        "POST",
        "/v1/traces",
        &kind,
        &super::kit::spans(3, "pelican"),
    );
    assert_eq!(sent.status, 200, "{}", sent.text());
    server.until("/api/v1/search?q=pelican", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() == 1)
    });
    server.end();
    usual.end();
}

#[test]
fn what_is_here_is_imported_watched_and_served_until_the_end() {
    let env = TestEnv::new();
    furnish(&env);
    let mut server = Server::up(&env, &[]);
    // It answers from the first moment on, with what there is.
    assert_eq!(server.get("/healthz").status, 200);
    let status = server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    assert_eq!(status["samples"], false);
    assert_eq!(status["transcripts"]["subagents"], 1, "{status:#}");
    let list = server.json("/api/v1/transcripts");
    assert!(list.to_string().contains("Make it work"), "{list}");
    // What a log gains, and a new log.
    append(&env, &user(SESSION, 30, "toucan in the log"));
    server.until("/api/v1/search?q=toucan", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() == 1)
    });
    let other = "22222222-2222-4333-8444-555555555555";
    env.file(
        &format!("{PROJECT}/{other}.jsonl"),
        user(other, 0, "quetzal"),
    );
    server.until("/api/v1/search?q=quetzal", |it| {
        it["hits"].as_array().is_some_and(|hits| !hits.is_empty())
    });
    while !server
        .running
        .line()
        .contains(&format!("{other}  +1 event"))
    {}
    // Whoever comes second is told, by `up` and by `serve`.
    for command in ["up", "serve"] {
        let ran = env.run(&[command]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command}");
        let url = format!("http://{}", server.address);
        assert!(ran.stdout.contains(&url), "{command}: {}", ran.stdout);
        assert!(!ran.stdout.contains(&server.token()), "{command}");
    }
    server.running.signal(Signal::INT);
    assert_eq!(server.running.ended_within(GRACE), Some(0));
    assert!(!env.path("server.json").exists());
    let (_, said) = server.running.rest();
    assert_eq!(said, ["ending; once more to end at once"]);
}

#[test]
fn a_log_that_grew_before_the_watch_began_is_imported() {
    let env = TestEnv::new();
    furnish(&env);
    // The import and the first look at the logs are over soon; whatever is written meanwhile must not be missed, whenever
    // that is.
    let server = Server::up(&env, &[]);
    for n in 0..20 {
        append(&env, &user(SESSION, 30 + n, &format!("toucan{n}")));
        std::thread::sleep(Duration::from_millis(10 * n as u64 % 30));
    }
    server.until("/api/v1/search?q=toucan19", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() == 1)
    });
    server.end();
}

#[test]
fn live_streams_and_idle_connections_do_not_hold_up_the_end() {
    let env = TestEnv::new();
    furnish(&env);
    let mut server = Server::up(&env, &[]);
    server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    let host = server.address;
    let mut stream = server.connect();
    write!(
        stream,
        "GET /api/v1/stream HTTP/1.1\r\nHost: {host}\r\n\r\n"
    )
    .unwrap();
    let mut head = [0; 64];
    assert!(stream.read(&mut head).unwrap() > 0);
    assert!(
        head.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    let mut idle = server.connect();
    write!(idle, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    assert!(idle.read(&mut head).unwrap() > 0);
    // Nor does somebody who is half through a head.
    let mut half = server.connect();
    half.write_all(b"GET /heal").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.ended_within(GRACE), Some(0));
    eprintln!("ended after {:?}", begun.elapsed());
    assert!(!env.path("server.json").exists());
    drop((stream, idle, half));
}

#[test]
fn whoever_asks_twice_does_not_wait() {
    let env = TestEnv::new();
    let mut server = Server::serve(&env, &[]);
    let key = super::kit::key(&server.home, quipu_submit::keys::Scope::Submit);
    let document = super::kit::Document::new(&key, "never whole");
    let bytes = document.put(&key, &server.address.to_string(), None);
    // A submission that does not end keeps the server until its grace time is over.
    let mut stream = server.connect();
    stream.write_all(&bytes[..bytes.len() - 10]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.running.signal(Signal::INT);
    let line = server.running.error_line();
    assert!(line.contains("once more"), "{line}");
    let begun = Instant::now();
    server.running.signal(Signal::INT);
    assert_eq!(server.running.ended_within(GRACE), Some(130));
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    drop(stream);
}

#[test]
fn what_a_killed_server_leaves_is_not_in_the_way() {
    let env = TestEnv::new();
    let socket = env.path("run/quipu.sock");
    let more = ["--listen", socket.to_str().unwrap()];
    let mut server = Server::serve(&env, &more);
    let token = server.token();
    server.running.child.kill().unwrap();
    server.running.child.wait().unwrap();
    assert!(env.path("server.json").exists() && socket.exists());
    let server = Server::serve(&env, &more);
    assert_eq!(server.get("/readyz").status, 200);
    assert_ne!(server.token(), token, "each start has its own");
    server.end();
    assert!(!socket.exists());
}

#[test]
fn it_can_be_ended_in_the_middle_of_the_first_import() {
    let env = TestEnv::new();
    furnish(&env);
    let lines: String = (0..4000)
        .map(|n| user(SESSION, n, &super::kit::noise(1000)))
        .collect();
    for n in 10..20 {
        let session = SESSION.replace("11111111", &format!("111111{n}"));
        let log = format!("{PROJECT}/{session}.jsonl");
        env.file(&log, lines.replace(SESSION, &session));
    }
    let mut server = Server::up(&env, &[]);
    assert_eq!(
        server.json("/api/v1/status")["import"]["doing"],
        "importing"
    );
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.ended_within(GRACE), Some(0));
    // And the rest is imported at the next start.
    let server = Server::up(&env, &[]);
    let status = server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    // They say the same, so most of them count as copies.
    let count = |what: &str| status["transcripts"][what].as_u64().unwrap();
    assert_eq!(count("sessions") + count("copies"), 12, "{status:#}");
    server.end();
}
