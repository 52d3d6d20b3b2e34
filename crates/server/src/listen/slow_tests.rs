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
    // Each was counted.
    let metrics = served.get("/metrics").text();
    let counted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("quipu_connections_refused_total "));
    let counted: u64 = counted.unwrap().parse().unwrap();
    assert!(counted >= 5, "{counted}");
    assert_eq!(counted, served.app.metrics().refused.get());
}

/// As many open files as the system lets this process have.
fn raise_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, most).unwrap();
    limit
        .maximum
        .map_or(usize::MAX, |most| usize::try_from(most).unwrap())
}

/// Set in the process that has the slow clients: where the server is, and how many there are and may be.
const SLOW: &str = "QUIPU_TEST_SLOW_CLIENTS";

/// Not a test of its own: the clients of the next one, who have a process of their own, since both ends of all of them are more
/// files than one may have.
#[test]
fn slow_clients_of_another_process() {
    let Ok(told) = std::env::var(SLOW) else {
        return;
    };
    let told: Vec<&str> = told.split(' ').collect();
    let [address, clients, allowed] = told[..] else {
        panic!("{told:?}");
    };
    let (clients, allowed): (usize, usize) = (clients.parse().unwrap(), allowed.parse().unwrap());
    assert!(raise_limit() > clients + 100);
    let mut all = Vec::new();
    for _ in 0..clients {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        drop(stream.write_all(b"GET /"));
        all.push(stream);
    }
    // All who came too late were told so, whenever they came.
    let late = &mut all[allowed..];
    let last = late.len() - 1;
    for n in (0..late.len()).step_by(97).chain([last]) {
        let told = String::from_utf8(rest(&mut late[n])).unwrap();
        assert!(told.starts_with("HTTP/1.1 503"), "{n}: {told:?}");
        assert!(told.contains("\r\nRetry-After: 5\r\n"), "{n}: {told:?}");
    }
    // The others are waited for.
    for stream in all[..allowed - 100].iter_mut().step_by(97) {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(read, Err(std::io::ErrorKind::WouldBlock));
    }
}

#[test]
fn ten_thousand_slow_clients_are_refused_politely_and_others_go_on() {
    let clients = 10_000.min(raise_limit().saturating_sub(500));
    let allowed = clients / 5 * 2;
    let served = Served::with(
        |_| {},
        |options| {
            options.connections = allowed;
            // Longer than it takes to connect them all.
            options.head_timeout = Duration::from_secs(120);
        },
    );
    let host = served.address.to_string();
    let mut kept = served.connect();
    asked(&mut kept, &host);
    let name = "listen::slow_tests::slow_clients_of_another_process";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(SLOW, format!("{host} {clients} {allowed}"))
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let (mut answered, mut longest) = (0, Duration::ZERO);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let asking = Instant::now();
        assert!(asked(&mut kept, &host).starts_with("HTTP/1.1 200"));
        answered += 1;
        longest = longest.max(asking.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    };
    // How many were tried is to be seen where the system allows fewer.
    let said = format!(
        "{clients} slow clients in {:?}; {} refused; meanwhile {answered} answers to another, each within {longest:?}\n",
        begun.elapsed(),
        served.app.metrics().refused.get()
    );
    std::io::stderr().write_all(said.as_bytes()).unwrap();
    assert!(status.success());
    let late = u64::try_from(clients - allowed).unwrap();
    assert!(served.app.metrics().refused.get() >= late);
    // As soon as they go, others are served.
    let begun = Instant::now();
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
