//! Many clients, and slow ones.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use quipu_record::SystemClock;
use quipu_submit::KeyStore;
use quipu_submit::keys::{NewKey, Scope, Scopes};

use crate::testkit::{Answer, Served};

const SHORT: Duration = Duration::from_millis(400);

/// A server that has patience neither with many clients nor with slow ones.
fn impatient(connections: usize) -> Served {
    Served::with(
        |_| {},
        |options| {
            options.connections = connections;
            options.head_timeout = SHORT;
            options.body_timeout = SHORT;
            options.write_timeout = SHORT;
            options.grace = SHORT;
        },
    )
}

/// What comes until the server closes.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    drop(stream.read_to_end(&mut all));
    all
}

/// An answer on a connection that stays open.
fn asked(stream: &mut TcpStream, host: &str) -> String {
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let mut piece = [0; 1024];
    while !all.ends_with(b"ok\n") {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0, "closed: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&piece[..n]);
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn a_head_that_comes_byte_by_byte_is_cut_off() {
    let served = impatient(64);
    let mut stream = served.connect();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nX-Slow: ",
        served.address
    );
    let begun = Instant::now();
    let mut cut = false;
    for byte in head.bytes().chain(std::iter::repeat(b'x')).take(400) {
        if stream.write_all(&[byte]).is_err() {
            cut = true;
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(cut, "still taken after {:?}", begun.elapsed());
    assert!(begun.elapsed() < SHORT * 6, "{:?}", begun.elapsed());
    // So is one who says nothing at all, and one who asked once and stays.
    let mut silent = served.connect();
    let mut idle = served.connect();
    asked(&mut idle, &served.address.to_string());
    let begun = Instant::now();
    assert!(!rest(&mut silent).starts_with(b"HTTP/1.1 200"));
    assert_eq!(rest(&mut idle), b"");
    assert!(begun.elapsed() < SHORT * 6, "{:?}", begun.elapsed());
}

#[test]
fn a_body_that_stops_is_given_up() {
    let served = impatient(64);
    let keys = KeyStore::at(served.home().join("keys.jsonl"));
    let new = NewKey {
        scopes: Scopes::new([Scope::Submit]),
        ..NewKey::default()
    };
    let key = keys.make(new, &SystemClock).unwrap().1;
    let id = quipu_submit::testkit::fresh_id().unwrap();
    let put = format!(
        "PUT /v1/transcripts/{id} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Transcript-Sha256: {}\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{\"half\":",
        served.address,
        key.expose(),
        "0".repeat(64),
    );
    let traces = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\
         Connection: close\r\n\r\n{{",
        served.address
    );
    let label = format!(
        "POST /api/v1/transcripts/x/labels HTTP/1.1\r\nHost: {}\r\nX-Quipu-Token: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\nConnection: close\r\n\r\n{{",
        served.address,
        served.app.token().expose()
    );
    for request in [put, traces, label] {
        let begun = Instant::now();
        let answer = served.raw(request.as_bytes());
        assert!(
            (400..500).contains(&answer.status),
            "{} {}",
            answer.status,
            answer.text()
        );
        assert!(
            begun.elapsed() < SHORT * 6,
            "{request}: {:?}",
            begun.elapsed()
        );
    }
    assert_eq!(served.get("/api/v1/transcripts").status, 200);
}

#[test]
fn more_clients_than_allowed_are_refused_and_others_go_on() {
    const MOST: usize = 8;
    let patience = SHORT * 5;
    let served = Served::with(
        |_| {},
        |options| {
            options.connections = MOST;
            options.head_timeout = patience;
        },
    );
    let host = served.address.to_string();
    let mut kept = served.connect();
    asked(&mut kept, &host);
    let mut slow: Vec<TcpStream> = (1..MOST).map(|_| served.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /").unwrap();
    }
    // One who was there before is served, while others are told when to come back.
    for _ in 0..5 {
        let answer: Answer = served.get("/healthz");
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("retry-after"), Some("5"));
        assert_eq!(answer.json()["type"], "busy");
        assert!(asked(&mut kept, &host).starts_with("HTTP/1.1 200"));
    }
    // The slow ones go, and there is room again.
    let begun = Instant::now();
    while served.get("/healthz").status != 200 {
        assert!(begun.elapsed() < patience * 4);
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = served.get("/metrics").text();
    assert!(
        refused.contains("quipu_connections_refused_total "),
        "{refused}"
    );
}

#[test]
fn thousands_of_slow_clients_do_not_stop_the_server() {
    // As many as the limit on open files of this process allows; both ends are in it.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let files = usize::try_from(limit.current.unwrap_or(20_000)).unwrap();
    let clients = (files / 2).saturating_sub(200).min(2_000);
    let served = Served::with(
        |_| {},
        |options| {
            options.connections = clients / 4;
            // Longer than it takes to connect them all.
            options.head_timeout = Duration::from_secs(60);
        },
    );
    let mut all = Vec::new();
    for _ in 0..clients {
        let mut stream = served.connect();
        drop(stream.write_all(b"GET /"));
        all.push(stream);
    }
    let begun = Instant::now();
    let mut refused = 0;
    for stream in all.iter_mut().rev().take(50) {
        refused += usize::from(rest(stream).starts_with(b"HTTP/1.1 503"));
    }
    assert_eq!(refused, 50, "{clients} clients");
    // As soon as some go, others are served.
    drop(all);
    while served.get("/readyz").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_answer_that_nobody_reads_is_given_up() {
    let bytes = vec![7; 32 << 20];
    let digest = quipu_model::hex::encode(&<sha2::Sha256 as sha2::Digest>::digest(&bytes));
    let served = impatient(256);
    let id = digest.parse().unwrap();
    let path = served.app.store().blobs().path(&id);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&bytes).unwrap();
    // More than there are threads to read files for.
    let mut all = Vec::new();
    for _ in 0..100 {
        let mut stream = served.connect();
        let host = served.address;
        write!(
            stream,
            "GET /api/v1/blobs/{digest} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        )
        .unwrap();
        all.push(stream);
    }
    std::thread::sleep(SHORT / 2);
    let begun = Instant::now();
    assert_eq!(served.get("/api/v1/transcripts").status, 200);
    assert!(begun.elapsed() < SHORT * 10, "{:?}", begun.elapsed());
    // One who reads slowly, and goes on, gets everything.
    let mut slow = served.connect();
    write!(
        slow,
        "GET /api/v1/blobs/{digest} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        served.address
    )
    .unwrap();
    let (mut total, mut piece) = (0, vec![0; 4 << 20]);
    loop {
        let n = slow.read(&mut piece).unwrap();
        if n == 0 {
            break;
        }
        total += n;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(total > bytes.len(), "{total}");
    // Those who did not read were cut off meanwhile.
    std::thread::sleep(SHORT * 3);
    for stream in &mut all {
        assert!(rest(stream).len() < bytes.len());
    }
}
