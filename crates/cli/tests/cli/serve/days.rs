//! Bad days: restarts, kills, full disks, locks.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use quipu_submit::keys::Scope;

use super::kit::{Answer, Document, GRACE, Server, exchange, key, noise, request, spans};
use crate::cli::env::TestEnv;
use crate::cli::machine::{PROJECT, SESSION, furnish, user};

#[test]
fn a_restart_under_load_gives_whole_answers_only() {
    let env = TestEnv::new();
    furnish(&env);
    assert_eq!(env.run(&["import"]).code, 0);
    let mut server = Server::serve(&env, &[]);
    let address = server.address;
    let listen = address.to_string();
    let expected = server.json("/api/v1/transcripts");
    let ended = AtomicBool::new(false);
    let (whole, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let Ok(stream) = TcpStream::connect(address) else {
                        missed.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(10));
                        continue;
                    };
                    stream
                        .set_read_timeout(Some(Duration::from_secs(20)))
                        .unwrap();
                    let bytes = request("GET", "/api/v1/transcripts", &listen, &[], b"");
                    let bytes = exchange(stream, &bytes);
                    if bytes.is_empty() {
                        missed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let answer = Answer::parse(&bytes);
                    let answer = answer.unwrap_or_else(|| {
                        panic!("cut off: {:?}", String::from_utf8_lossy(&bytes))
                    });
                    assert_eq!((answer.status, answer.json()), (200, expected.clone()));
                    whole.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(250));
            server.running.signal(rustix::process::Signal::TERM);
            assert_eq!(server.running.ended_within(GRACE), Some(0));
            server = Server::start(&env, env.dir.path(), &["serve", "--listen", &listen]);
        }
        std::thread::sleep(Duration::from_millis(250));
        ended.store(true, Ordering::Relaxed);
    });
    eprintln!("{whole:?} whole answers, {missed:?} without one");
    assert!(whole.into_inner() > 20);
    server.end();
}

#[test]
fn what_was_accepted_is_there_after_a_kill() {
    const ROUNDS: usize = 4;
    let env = TestEnv::new();
    let mut server = Server::serve(&env, &[]);
    let keys: Vec<_> = (0..3).map(|_| key(&server.home, Scope::Submit)).collect();
    let accepted: Mutex<Vec<(usize, Document)>> = Mutex::default();
    for round in 0..ROUNDS {
        let address = server.address;
        std::thread::scope(|scope| {
            for (n, key) in keys.iter().enumerate() {
                let accepted = &accepted;
                scope.spawn(move || {
                    // Until the server is gone; fewer than the limit on how often a key is used.
                    for i in 0..100 {
                        let words =
                            format!("albatross {round} {n} {i} {}", noise(i * 997 % 60_000));
                        let document = Document::new(key, &words);
                        let Ok(stream) = TcpStream::connect(address) else {
                            return;
                        };
                        stream
                            .set_read_timeout(Some(Duration::from_secs(20)))
                            .unwrap();
                        let bytes = document.put(key, &address.to_string(), None);
                        match Answer::parse(&exchange(stream, &bytes)) {
                            Some(answer) if answer.status == 201 => {
                                accepted.lock().unwrap().push((n, document));
                            }
                            Some(answer) if answer.status == 429 => return,
                            Some(answer) => panic!("{} {}", answer.status, answer.text()),
                            None => return,
                        }
                    }
                });
            }
            // In the middle of things, however slow the machine is.
            let before = accepted.lock().unwrap().len();
            let begun = std::time::Instant::now();
            while accepted.lock().unwrap().len() < before + 3 {
                assert!(begun.elapsed() < Duration::from_secs(20));
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(37 * round as u64));
            server.running.child.kill().unwrap();
        });
        server.running.child.wait().unwrap();
        server = Server::serve(&env, &[]);
    }
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.len() > ROUNDS, "{}", accepted.len());
    let reader = key(&server.home, Scope::Read);
    for (n, document) in accepted.iter().step_by(accepted.len().div_ceil(60)) {
        let answer = document.fetched(&server, &reader);
        let answer = if answer.status == 429 {
            document.fetched(&server, &keys[*n])
        } else {
            answer
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body == document.bytes, "other bytes");
    }
    // All of them, once the server has caught up.
    let count = accepted.len();
    server.until("/api/v1/status", |it| {
        it["transcripts"]["sessions"].as_u64().unwrap() >= count as u64
    });
    let wanted: BTreeSet<String> = accepted.iter().map(|(_, it)| it.id.to_string()).collect();
    let (mut listed, mut cursor) = (String::new(), String::new());
    for _ in 0..100 {
        let page = server.json(&format!("/api/v1/transcripts?limit=100{cursor}"));
        listed.push_str(&page.to_string());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    for id in &wanted {
        assert!(listed.contains(id), "{id} is not listed");
    }
    eprintln!("{count} accepted in {ROUNDS} rounds, all there");
    server.end();
}

#[test]
fn a_submission_that_a_kill_cut_short_is_not_there_and_can_be_sent_again() {
    let env = TestEnv::new();
    let mut server = Server::serve(&env, &[]);
    let key = key(&server.home, Scope::Submit);
    let document = Document::new(&key, &format!("albatross {}", noise(200_000)));
    let bytes = document.put(&key, &server.address.to_string(), None);
    let mut stream = server.connect();
    stream.write_all(&bytes[..bytes.len() / 2]).unwrap();
    // An answer to somebody else says that the server is past the first half, or could be.
    assert_eq!(server.get("/readyz").status, 200);
    server.running.child.kill().unwrap();
    server.running.child.wait().unwrap();
    drop(stream);
    let server = Server::serve(&env, &[]);
    assert_eq!(document.fetched(&server, &key).status, 404);
    assert_eq!(document.sent(&server, &key).status, 201);
    assert!(document.fetched(&server, &key).body == document.bytes);
    server.end();
    let ran = env.run(&["doctor", "--check"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn telemetry_that_was_accepted_is_there_after_a_kill() {
    let env = TestEnv::new();
    let kind = [("Content-Type", "application/json")];
    for n in 1..=3 {
        let mut server = Server::serve(&env, &[]);
        let sent = server.send(
            "POST",
            "/v1/traces",
            &kind,
            &spans(n, &format!("toucan {n}")),
        );
        // Before the import could have begun.
        server.running.child.kill().unwrap();
        server.running.child.wait().unwrap();
        assert_eq!(sent.status, 200, "{}", sent.text());
    }
    let server = Server::up(&env, &[]);
    let list = server.until("/api/v1/transcripts", |it| {
        it["transcripts"].as_array().is_some_and(|it| it.len() == 3)
    });
    for n in 1..=3 {
        assert!(
            list.to_string().contains(&format!("toucan {n}")),
            "{list:#}"
        );
    }
    server.end();
}

/// Waits until something that a session says is found.
fn until_found(server: &Server, word: &str) {
    server.until(&format!("/api/v1/search?q={word}"), |it| {
        it["hits"].as_array().is_some_and(|hits| !hits.is_empty())
    });
}

fn append(env: &TestEnv, n: usize, text: &str) {
    let log = env.path(&format!("{PROJECT}/{SESSION}.jsonl"));
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(user(SESSION, n, text).as_bytes()).unwrap();
}

#[test]
fn an_import_that_fails_is_done_again() {
    let env = TestEnv::new();
    furnish(&env);
    let server = Server::up(&env, &[]);
    server.until("/api/v1/status", |it| it["import"]["doing"] == "watching");
    // A lock that cannot be opened is an error that passes, as a full disk is.
    let lock = env.path("import.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    append(&env, 30, "toucan in the log");
    let status = server.until("/api/v1/status", |it| !it["import"]["error"].is_null());
    assert_eq!(status["import"]["doing"], "watching", "{status:#}");
    let line = server.running.error_line();
    assert!(
        line.starts_with("error: ") && line.contains("import.lock"),
        "{line}"
    );
    std::fs::remove_dir(&lock).unwrap();
    until_found(&server, "toucan");
    let line = server.running.error_line();
    assert_eq!(line, "new sessions are imported again");
    append(&env, 31, "quetzal in the log");
    until_found(&server, "quetzal");
    assert!(server.json("/api/v1/status")["import"]["error"].is_null());
    server.end();
}

#[test]
fn a_first_import_that_fails_is_done_again() {
    let env = TestEnv::new();
    furnish(&env);
    let lock = env.path("import.lock");
    std::fs::create_dir(&lock).unwrap();
    let server = Server::up(&env, &[]);
    let status = server.until("/api/v1/status", |it| !it["import"]["error"].is_null());
    assert_eq!(status["import"]["doing"], "watching", "{status:#}");
    std::fs::remove_dir(&lock).unwrap();
    server.until("/api/v1/transcripts", |it| {
        it.to_string().contains("Make it work")
    });
    server.end();
}

#[test]
fn nobody_has_to_read_what_it_says() {
    let env = TestEnv::new();
    furnish(&env);
    let mut command = env.command(&["up", "--listen", "127.0.0.1:0"]);
    let command = command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut address = None;
    // To the last line of the first import.
    loop {
        let line = lines.next().unwrap().unwrap();
        if let Some(at) = line.strip_prefix("Serving at http://") {
            address = Some(at.parse::<std::net::SocketAddr>().unwrap());
        }
        if line.contains("quipu show") {
            break;
        }
    }
    drop(lines);
    let get = |path: &str| {
        let address = address.unwrap();
        let bytes = request("GET", path, &address.to_string(), &[], b"");
        let stream = TcpStream::connect(address).unwrap();
        Answer::parse(&exchange(stream, &bytes)).unwrap().text()
    };
    for (n, word) in ["toucan", "quetzal", "pelican"].into_iter().enumerate() {
        append(&env, 30 + n, word);
        let begun = std::time::Instant::now();
        while !get(&format!("/api/v1/search?q={word}")).contains(SESSION) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{word}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts a server that cannot write files longer than this.
fn with_small_files(env: &TestEnv, kib: u32) -> Server {
    let program = env!("CARGO_BIN_EXE_quipu");
    // Whoever ignores the signal gets an error instead, as with a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f {kib}; exec {program} serve --listen 127.0.0.1:0 --log-level error"
    );
    let running = env.start_as("/bin/bash", &["-c", &script]);
    Server::of(running, env.dir.path())
}

#[test]
fn a_full_disk_refuses_and_leaves_what_is_there() {
    let env = TestEnv::new();
    let server = with_small_files(&env, 1024);
    let key = key(&server.home, Scope::Submit);
    let small = Document::new(&key, "a small albatross");
    assert_eq!(small.sent(&server, &key).status, 201);
    let kind = [("Content-Type", "application/json")];
    let sent = server.send("POST", "/v1/traces", &kind, &spans(1, "a small toucan"));
    assert_eq!(sent.status, 200, "{}", sent.text());
    let noise = noise(3 << 20);
    let large = Document::new(&key, &noise);
    let answer = large.sent(&server, &key);
    assert!(answer.status >= 500, "{} {}", answer.status, answer.text());
    assert!(
        !answer.text().contains(env.dir.path().to_str().unwrap()),
        "{}",
        answer.text()
    );
    let answer = server.send("POST", "/v1/traces", &kind, &spans(2, &noise));
    assert!(answer.status >= 500, "{} {}", answer.status, answer.text());
    assert!(
        !answer.text().contains(env.dir.path().to_str().unwrap()),
        "{}",
        answer.text()
    );
    // What is there is there, and what fits is still taken.
    assert_eq!(small.fetched(&server, &key).body, small.bytes);
    assert_eq!(large.fetched(&server, &key).status, 404);
    let another = Document::new(&key, "another albatross");
    assert_eq!(another.sent(&server, &key).status, 201);
    let sent = server.send("POST", "/v1/traces", &kind, &spans(3, "another toucan"));
    assert_eq!(sent.status, 200, "{}", sent.text());
    server.end();
    // With room again, everything that was accepted is there, and what was refused can be sent again.
    let server = Server::serve(&env, &[]);
    assert_eq!(large.sent(&server, &key).status, 201);
    for document in [&small, &large, &another] {
        assert!(document.fetched(&server, &key).body == document.bytes);
    }
    server.until("/api/v1/search?q=toucan", |it| {
        it["hits"].as_array().is_some_and(|hits| hits.len() >= 2)
    });
    server.end();
    let ran = env.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_store_that_others_write_to_is_still_read() {
    let env = TestEnv::new();
    furnish(&env);
    assert_eq!(env.run(&["import"]).code, 0);
    let server = Server::serve(&env, &[]);
    let key = key(&server.home, Scope::Submit);
    let import = std::fs::File::open(env.path("import.lock")).unwrap();
    // The server catches up with what was handed over when it starts.
    let begun = std::time::Instant::now();
    while import.try_lock().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(10));
    }
    let path = env.path("index.sqlite");
    let catalogue = quipu_store::catalogue::SqliteCatalogue::open(&path).unwrap();
    catalogue.execute("begin immediate").unwrap();
    let begun = std::time::Instant::now();
    for path in [
        "/readyz",
        "/api/v1/transcripts",
        "/api/v1/search?q=work",
        "/api/v1/status",
        "/api/v1/stats",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    // What is handed over is kept, and shows up once the others are done.
    let document = Document::new(&key, "patient albatross");
    std::thread::scope(|scope| {
        let stream = server.connect();
        let bytes = document.put(&key, &server.address.to_string(), None);
        let sent = scope.spawn(move || Answer::parse(&exchange(stream, &bytes)).unwrap());
        let reads = server.get("/api/v1/transcripts");
        assert_eq!(reads.status, 200);
        std::thread::sleep(Duration::from_millis(300));
        catalogue.execute("rollback").unwrap();
        assert_eq!(sent.join().unwrap().status, 201);
    });
    assert_eq!(document.fetched(&server, &key).body, document.bytes);
    drop(import);
    server.until("/api/v1/search?q=albatross", |it| {
        it["hits"].as_array().is_some_and(|hits| !hits.is_empty())
    });
    server.end();
}

#[test]
fn two_homes_are_served_side_by_side_and_one_home_once() {
    let env = TestEnv::new();
    let other = env.path("other");
    let other = other.to_str().unwrap();
    // Both want the usual port; each gets one.
    let first = Server::start(&env, env.dir.path(), &["serve"]);
    let second = Server::start(&env, &env.path("other"), &["--home", other, "serve"]);
    assert_ne!(first.address, second.address);
    assert_eq!(first.get("/readyz").status, 200);
    assert_eq!(second.get("/readyz").status, 200);
    // The token of one is nothing to the other.
    let token = first.token();
    let answer = second.send(
        "GET",
        "/api/v1/transcripts",
        &[("X-Quipu-Token", &token)],
        b"",
    );
    assert_eq!(answer.status, 401);
    // Many at once for one home: one serves, and all others say so.
    let third = env.path("third");
    let third = third.to_str().unwrap();
    let args = ["--home", third, "serve", "--listen", "127.0.0.1:0"];
    let all: Vec<_> = (0..6).map(|_| env.start(&args)).collect();
    let lines: Vec<String> = all.iter().map(super::super::env::Running::line).collect();
    let serving = lines
        .iter()
        .filter(|it| it.starts_with("Serving at"))
        .count();
    assert_eq!(serving, 1, "{lines:#?}");
    for line in lines.iter().filter(|it| !it.starts_with("Serving at")) {
        assert!(line.starts_with("Quipu serves this home already"), "{line}");
    }
}

#[test]
fn a_client_that_goes_away_is_forgotten() {
    let env = TestEnv::new();
    furnish(&env);
    assert_eq!(env.run(&["import"]).code, 0);
    let server = Server::serve(&env, &[]);
    for n in 0..200 {
        let mut stream = server.connect();
        let path = if n % 2 == 0 {
            "/api/v1/stream"
        } else {
            "/api/v1/stats"
        };
        let bytes = request("GET", path, &server.address.to_string(), &[], b"");
        stream.write_all(&bytes[..bytes.len() - n % 3]).unwrap();
    }
    let begun = std::time::Instant::now();
    loop {
        let metrics = server.get("/metrics").text();
        let open = |name: &str| {
            let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        };
        if open("quipu_connections ") == 1 && open("quipu_streams ") == 0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.end();
}
