//! Commands that ask a running server, and do without one.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::kit::Server;
use crate::cli::env::{Ran, TestEnv};
use crate::cli::machine::{PROJECT, SESSION, furnish, user};

/// Searches whose answer a server can give.
const ASKED: &[&[&str]] = &[
    &["search", "look"],
    &["search", "look", "--json"],
    &["search", "look", "--jsonl"],
    &["search", "work", "--limit", "1"],
    &["search", "toucan", "--limit", "200", "--json"],
    &["search", "will look", "--context", "3"],
    &["search", "will look", "--context", "3", "--json"],
    &["search", "toucan", "--sort", "newest"],
    &["search", "toucan", "--copies"],
    &["search", "toucan tool:bash OR \"rather long\"", "--json"],
    &["search", "ghp_1234567890abcdefABCDEF1234567890abcd"],
    &["search", "token"],
    &["search", "unheardof"],
    &["search", "unheardof", "--json"],
    &["search", "title:work"],
];

/// Those that are looked for here: the time zone and the prices are those of whoever asks, and the rest is not served.
const ALONE: &[&[&str]] = &[
    &["search", "look since:2020-01-01"],
    &["search", "look UNTIL:2030-01-01"],
    &["search", "cost:<1 look"],
    &["search", "look", "--sort", "cost"],
    &["search", "look", "--limit", "0"],
    &["search", "look", "--count"],
    &["search", "l[o]+k", "--regex"],
    &["search", "token", "--reveal"],
    &["search", "look", "--context", "11"],
    &["search", "look", "--no-server"],
    &["search", "agent:"],
];

/// A home with something to find: long texts, odd characters, copies, secrets, a run.
fn furnished() -> TestEnv {
    let env = TestEnv::new();
    furnish(&env);
    let long = format!(
        "{} a rather long toucan {}",
        "é ".repeat(900),
        "\u{1f99c} ".repeat(900)
    );
    let odd = "toucan\ttab\nline \u{202e}turned\u{1b}[31m";
    let secret = "the token is ghp_1234567890abcdefABCDEF1234567890abcd";
    for n in 0..4 {
        let session = SESSION.replace("11111111", &format!("2222222{n}"));
        let log = [
            user(&session, 0, "toucan"),
            user(&session, 1, &format!("{long} {n}")),
            user(&session, 2, odd),
            user(&session, 3, secret),
        ];
        env.file(&format!("{PROJECT}/{session}.jsonl"), log.concat());
    }
    let event = r#"{"type":"message.user","path":"review","payload":{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"look at the toucan"}]}}"#;
    assert_eq!(env.run_with(&["emit", "--run", "r1"], event).code, 0);
    assert_eq!(env.run(&["import"]).code, 0);
    env
}

/// How often a server was asked to search.
fn searches(server: &Server) -> u64 {
    let metrics = server.send(
        "GET",
        "/metrics",
        &[("X-Quipu-Token", &server.token())],
        b"",
    );
    let metrics = metrics.text();
    let lines = metrics.lines();
    let of_search = lines.filter(|it| it.contains(r#"requests_total{route="/api/v1/search""#));
    of_search
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

#[test]
fn a_search_says_the_same_with_and_without_a_server() {
    let env = furnished();
    let alone: Vec<Ran> = ASKED
        .iter()
        .chain(ALONE)
        .map(|args| env.run(args))
        .collect();
    assert!(alone[0].stdout.contains("quipu show"), "{:?}", alone[0]);
    let socket = env.path("run/q.sock");
    for listen in [
        &["--listen", "127.0.0.1:0"][..],
        &["--listen", socket.to_str().unwrap(), "--require-keys"],
    ] {
        let args = [&["serve", "--listen", "127.0.0.1:0"][..], listen].concat();
        let server = Server::start(&env, env.dir.path(), &args);
        for (n, args) in ASKED.iter().chain(ALONE).enumerate() {
            let before = searches(&server);
            assert_eq!(env.run(args), alone[n], "{args:?}");
            let was_asked = u64::from(n < ASKED.len());
            assert_eq!(searches(&server) - before, was_asked, "{args:?}");
        }
        server.end();
    }
}

#[test]
fn what_was_just_imported_is_found() {
    let env = furnished();
    let server = Server::serve(&env, &[]);
    for n in 0..10 {
        let word = format!("quetzal{n}");
        let before = env.run(&["search", &word]);
        assert_eq!(before.stdout, "");
        let log = env.file(
            &format!(
                "{PROJECT}/{}.jsonl",
                SESSION.replace("11111111", &format!("3333333{n}"))
            ),
            user(
                &SESSION.replace("11111111", &format!("3333333{n}")),
                0,
                &word,
            ),
        );
        assert_eq!(env.run(&["import", &log]).code, 0);
        let found = env.run(&["search", &word]);
        assert!(found.stdout.contains("quipu show 3333333"), "{found:?}");
        // What a run recorded, as well.
        let said = format!("pelican{n}");
        let event = format!(
            r#"{{"type":"message.user","path":"review","payload":{{"role":"user","blocks":[{{"type":"text","fidelity":"router","text":"{said}"}}]}}}}"#
        );
        assert_eq!(env.run_with(&["emit", "--run", "r2"], event).code, 0);
        let found = env.run(&["search", &said]);
        assert!(found.stdout.contains("quipu show r2"), "{found:?}");
    }
    assert_eq!(searches(&server), 30);
    server.end();
}

#[test]
fn a_server_that_was_killed_is_not_missed() {
    let env = furnished();
    let alone = env.run(&["search", "look"]);
    let mut server = Server::serve(&env, &[]);
    server.running.child.kill().unwrap();
    server.running.child.wait().unwrap();
    assert!(env.path("server.json").exists());
    assert_eq!(env.run(&["search", "look"]), alone);
}

/// A program that is not the server, in its place: it holds the lock, and `server.json` leads to it.
struct Impostor {
    listener: TcpListener,
    _lock: std::fs::File,
}

impl Impostor {
    fn new(env: &TestEnv, version: &str) -> Self {
        let lock = std::fs::File::create(env.path("server.lock")).unwrap();
        lock.try_lock().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let place = serde_json::json!({
            "pid": 1, "version": version, "started_at": "2026-01-01T00:00:00Z",
            "urls": [format!("http://{}", listener.local_addr().unwrap())],
            "sockets": [env.path("gone.sock")], "token": "t",
        });
        env.file("server.json", place.to_string());
        Self {
            listener,
            _lock: lock,
        }
    }

    fn is_asked(&self) -> bool {
        self.listener.accept().is_ok()
    }
}

#[test]
fn another_version_is_not_asked_and_nobody_is_who_must_not() {
    let env = furnished();
    let alone = env.run(&["search", "look"]);
    let other = Impostor::new(&env, "0.0.0-other");
    assert_eq!(env.run(&["search", "look"]), alone);
    assert!(!other.is_asked());
    drop(other);
    let same = Impostor::new(&env, env!("CARGO_PKG_VERSION"));
    for (value, is_asked) in [("1", false), ("true", false), ("0", true), ("", true)] {
        let mut command = env.command(&["search", "look"]);
        let output = command.env("QUIPU_NO_SERVER", value).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), alone.stdout);
        assert_eq!(same.is_asked(), is_asked, "{value:?}");
    }
    assert_eq!(env.run(&["search", "look", "--no-server"]), alone);
    assert!(!same.is_asked());
}

#[test]
fn a_bad_answer_or_none_is_passed_over() {
    let env = furnished();
    let alone = env.run(&["search", "look", "--json"]);
    let same = Impostor::new(&env, env!("CARGO_PKG_VERSION"));
    // It takes the connection and says nothing.
    let begun = Instant::now();
    assert_eq!(env.run(&["search", "look", "--json"]), alone);
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(same.is_asked());
    same.listener.set_nonblocking(false).unwrap();
    let cut = r#"{"hits":[],"more":false,"not_in"#;
    let wrong = r#"{"hits":[{}],"more":false,"not_indexed":0}"#;
    let with = |status: &str, body: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let answers = [
        String::new(),
        "SSH-2.0-OpenSSH_9.6\r\n".to_owned(),
        with("401 Unauthorized", "{}", 2),
        with("503 Service Unavailable", "{}", 2),
        with("200 OK", cut, cut.len() + 10),
        with("200 OK", cut, cut.len()),
        with("200 OK", wrong, wrong.len()),
    ];
    for answer in answers {
        std::thread::scope(|scope| {
            let listener = &same.listener;
            let said = answer.clone();
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                stream.write_all(said.as_bytes()).unwrap();
            });
            assert_eq!(env.run(&["search", "look", "--json"]), alone, "{answer:?}");
        });
    }
    // Nobody is there at all.
    drop(same.listener);
    assert_eq!(env.run(&["search", "look", "--json"]), alone);
}
