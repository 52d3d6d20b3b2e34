//! The client, and what goes wrong on the way.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_record::SystemClock;
use quipu_redact::{Engine, RuleSet};

use super::*;
use crate::server::{Memory, Service};
use crate::testkit::{Fault, Host, fresh_id, transcript};
use crate::{Encoding, EngineScan, KeyStore};

struct Bench {
    host: Host,
    service: Arc<Service<Memory, SystemClock>>,
    key: SecretKey,
    _directory: tempfile::TempDir,
}

fn bench() -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::at(directory.path().join("keys.jsonl"));
    let (_, key) = store.create("test", &SystemClock).unwrap();
    let engine = Engine::new(&RuleSet::default(), |_| true).unwrap();
    let scan = Box::new(EngineScan::for_secrets(engine));
    let service = Arc::new(Service::new(
        Memory::default(),
        SystemClock,
        Box::new(store),
        scan,
    ));
    Bench {
        host: Host::start(Arc::clone(&service)).unwrap(),
        service,
        key,
        _directory: directory,
    }
}

impl Bench {
    fn client(&self, one_request: u64) -> Client {
        let options = ClientOptions {
            attempts: 3,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(20),
            timeout: Duration::from_secs(10),
            one_request,
            piece: 50_000,
            plain_http: false,
        };
        Client::new(&self.host.url(), self.key.clone(), options).unwrap()
    }

    fn packed(&self, lines: usize) -> (Packed, Vec<u8>) {
        let id = fresh_id().unwrap();
        let document = transcript(&id, &self.key.submitter(false), &"well\n".repeat(lines));
        let packed = Packed::new(id, &document[..], Encoding::Identity).unwrap();
        (packed, document)
    }
}

#[test]
fn a_cut_costs_a_piece_and_not_the_whole() {
    let bench = bench();
    let (mut packed, document) = bench.packed(30_000);
    // Begun, a piece, and the next is cut in its middle, twice.
    bench.host.fault(2, Fault::Cut(20_000));
    bench.host.fault(1, Fault::Cut(10_000));
    let mut sent = Vec::new();
    let receipt = bench
        .client(0)
        .submit(&mut packed, &mut |progress| sent.push(progress.sent));
    assert_eq!(receipt.unwrap().bytes, document.len() as u64);
    assert_eq!(
        bench.service.storage().document(packed.id()).unwrap(),
        document
    );
    assert_eq!(sent[..4], [0, 50_000, 70_000, 80_000], "{sent:?}");
    assert_eq!(*sent.last().unwrap(), packed.size());
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    let bench = bench();
    for (one_request, before) in [(u64::MAX, 0), (0, 1)] {
        let (mut packed, document) = bench.packed(10);
        bench.host.fault(before, Fault::LoseAnswer);
        let receipt = bench
            .client(one_request)
            .submit(&mut packed, &mut |_| {})
            .unwrap();
        assert!(receipt.duplicate, "it was taken the first time");
        assert_eq!(
            bench.service.storage().document(packed.id()).unwrap(),
            document
        );
    }
}

#[test]
fn a_server_that_fails_is_asked_again_and_not_for_ever() {
    let bench = bench();
    let (mut packed, _) = bench.packed(10);
    bench.host.fault(0, Fault::Fail(503));
    bench.host.fault(0, Fault::Fail(500));
    assert!(
        !bench
            .client(u64::MAX)
            .submit(&mut packed, &mut |_| {})
            .unwrap()
            .duplicate
    );
    assert_eq!(bench.host.requests(), 3);
    for one_request in [0, u64::MAX] {
        let (mut packed, _) = bench.packed(10);
        for _ in 0..3 {
            bench.host.fault(0, Fault::Fail(502));
        }
        let error = bench
            .client(one_request)
            .submit(&mut packed, &mut |_| {})
            .unwrap_err();
        assert!(
            matches!(
                error,
                ClientError::Busy {
                    status: 502,
                    attempts: 3,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn a_page_is_no_answer_and_a_redirect_is_not_followed() {
    let bench = bench();
    let (mut packed, _) = bench.packed(10);
    bench.host.fault(0, Fault::Fail(200));
    let error = bench
        .client(u64::MAX)
        .submit(&mut packed, &mut |_| {})
        .unwrap_err();
    assert!(
        matches!(error, ClientError::Stranger { status: 200, .. }),
        "{error}"
    );
    bench.host.fault(0, Fault::Fail(307));
    let error = bench
        .client(u64::MAX)
        .submit(&mut packed, &mut |_| {})
        .unwrap_err();
    assert!(
        matches!(error, ClientError::Redirected { status: 307, .. }),
        "{error}"
    );
}

#[test]
fn the_key_is_in_no_error() {
    // Nobody listens where a server was a moment ago.
    let (key, url) = {
        let bench = bench();
        (bench.key.clone(), bench.host.url())
    };
    let options = ClientOptions {
        attempts: 2,
        first_wait: Duration::from_millis(1),
        ..ClientOptions::default()
    };
    let client = Client::new(&url, key.clone(), options).unwrap();
    let error = client.limits().unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    let text = key.expose();
    let echoed = client.hide(&format!("no {text} nor {}\u{1b}[31m", &text[16..]));
    assert_eq!(echoed, "no … nor … [31m");
    let shown = format!("{client:?} {error} {error:?} {echoed}");
    assert!(!shown.contains(&text[16..]), "{shown}");
}

/// A server that says the same to each kind of request, and counts them.
fn parrot(begun: &'static str, appended: &'static str) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length, mut first) = (String::new(), 0, String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if first.is_empty() {
                    first.clone_from(&line);
                }
                if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let (status, body) = if first.starts_with("POST") {
                ("200 OK", begun)
            } else {
                (appended, "")
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    (url, asked)
}

#[test]
fn a_server_that_never_ends_an_upload_is_not_asked_for_ever() {
    let bench = bench();
    for begun in [
        r#"{"uploadId":"u1","offset":0,"size":1}"#,
        // Nothing is left to send, and still it does not say that it has it.
        r#"{"uploadId":"u1","offset":60,"size":1}"#,
    ] {
        let (url, asked) = parrot(begun, "204 No Content");
        let options = ClientOptions {
            attempts: 3,
            first_wait: Duration::from_millis(1),
            one_request: 0,
            piece: 50_000,
            ..ClientOptions::default()
        };
        let client = Client::new(&url, bench.key.clone(), options).unwrap();
        let (mut packed, _) = bench.packed(30_000);
        let error = client.submit(&mut packed, &mut |_| {}).unwrap_err();
        assert!(
            matches!(error, ClientError::Stranger { status: 204, .. }),
            "{error}"
        );
        let pieces = packed.size().div_ceil(50_000) + 1;
        let asked = asked.load(Ordering::Relaxed);
        assert!(asked <= 3 * (pieces + 1), "{asked} requests");
    }
}

#[test]
fn the_name_of_an_upload_leads_nowhere_else() {
    let bench = bench();
    for begun in [
        r#"{"uploadId":"../../admin?x=","offset":0,"size":1}"#,
        r#"{"uploadId":"a/b","offset":0,"size":1}"#,
        r#"{"uploadId":"..","offset":0,"size":1}"#,
        r#"{"uploadId":"","offset":0,"size":1}"#,
        r#"{"uploadId":"a b\r\nx-evil: 1","offset":0,"size":1}"#,
        r#"{"uploadId":"%2e%2e","offset":0,"size":1}"#,
    ] {
        let (url, asked) = parrot(begun, "204 No Content");
        let options = ClientOptions {
            one_request: 0,
            ..ClientOptions::default()
        };
        let client = Client::new(&url, bench.key.clone(), options).unwrap();
        let (mut packed, _) = bench.packed(10);
        let error = client.submit(&mut packed, &mut |_| {}).unwrap_err();
        assert!(
            matches!(error, ClientError::Stranger { .. }),
            "{begun}: {error}"
        );
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{begun}");
    }
    let long = "a".repeat(201);
    assert!(!is_segment(&long) && is_segment(&long[1..]) && is_segment("0a-._~Z"));
}
