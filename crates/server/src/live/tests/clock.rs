//! A clock that jumps while the server runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quipu_model::Timestamp;
use quipu_record::{Clock, SystemClock};
use quipu_submit::KeyStore;
use quipu_submit::keys::SecretKey;
use quipu_submit::testkit::{fresh_id, transcript};
use sha2::{Digest as _, Sha256};

use super::kit::*;
use crate::testkit::{Answer, Served};

const DAY: i64 = 24 * 60 * 60;

/// The system's clock, so many seconds ahead.
#[derive(Debug, Default)]
struct Jumping(AtomicI64);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let ahead = jiff::SignedDuration::from_secs(self.0.load(Ordering::SeqCst));
        SystemClock.now().checked_add(ahead).unwrap()
    }
}

fn submitted(
    served: &Served,
    key: &SecretKey,
    method: &str,
    path: &str,
    at: Option<usize>,
    body: &[u8],
) -> Answer {
    let bearer = format!("Bearer {}", key.expose());
    let at = at.map(|at| at.to_string());
    let mut headers = vec![
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    headers.extend(at.as_deref().map(|at| ("Upload-Offset", at)));
    served.send(method, path, &headers, body)
}

/// Begins an upload, and sends the first half of it.
fn half(served: &Served, key: &SecretKey) -> (String, Vec<u8>) {
    let id = fresh_id().unwrap();
    let body = transcript(&id, &key.submitter(false), "half of it");
    let digest = quipu_model::hex::encode(&Sha256::digest(&body));
    let new = serde_json::json!({
        "transcriptId": id, "sha256": digest, "size": body.len(), "encoding": "identity",
    });
    let begun = submitted(
        served,
        key,
        "POST",
        "/v1/uploads",
        None,
        new.to_string().as_bytes(),
    );
    assert_eq!(begun.status, 201, "{}", begun.text());
    let path = format!("/v1/uploads/{}", begun.json()["uploadId"].as_str().unwrap());
    let sent = submitted(
        served,
        key,
        "PATCH",
        &path,
        Some(0),
        &body[..body.len() / 2],
    );
    assert_eq!(sent.status, 204, "{}", sent.text());
    (path, body)
}

fn other_half(served: &Served, key: &SecretKey, path: &str, body: &[u8]) -> u16 {
    let at = body.len() / 2;
    submitted(served, key, "PATCH", path, Some(at), &body[at..]).status
}

#[test]
fn streams_heartbeats_and_cursors_survive_a_clock_that_jumps() {
    let clock = Arc::new(Jumping::default());
    let served = Served::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let live = served.app.live();
    live.set_limits(|limits| limits.beat = Duration::from_millis(50));
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let path = format!("/api/v1/transcripts/{RUN}/stream");
    let mut one = Sse::open(served.address, &path, None);
    let mut all = Sse::open(served.address, "/api/v1/stream", None);
    one.events(1);
    all.expect("connected");
    let mut seq = 1;
    for ahead in [DAY, -DAY, 2 * DAY, 0] {
        clock.0.store(ahead, Ordering::SeqCst);
        for _ in 0..3 {
            seq = say(&recorder, &format!("a quokka, {ahead} s ahead"));
            assert_eq!(one.events(1)[0].id, Some(seq.to_string()));
            assert_eq!(all.events(1)[0].json()["seq"], seq);
        }
        for client in [&mut one, &mut all] {
            let beat = loop {
                let frame = client.next().unwrap();
                if frame.name == "heartbeat" {
                    break frame;
                }
            };
            assert_eq!(beat.id, None);
        }
        // Both go on where they were.
        let (last_one, last_all) = (one.last_id.take(), all.last_id.take());
        one = Sse::open(served.address, &path, last_one.as_deref());
        all = Sse::open(served.address, "/api/v1/stream", last_all.as_deref());
        let connected = one.expect("connected").json();
        assert_eq!(connected["from"], seq + 1);
        assert_eq!(
            all.expect("connected").json()["cursor"].as_str(),
            last_all.as_deref()
        );
        assert_eq!(served.get("/api/v1/transcripts").status, 200);
        assert_eq!(served.get("/api/v1/search?q=quokka").status, 200);
    }
    assert_eq!(seq, 13);
    let begun = std::time::Instant::now();
    while served.get("/api/v1/search?q=quokka&limit=200").json()["hits"]
        .as_array()
        .unwrap()
        .len()
        < 12
    {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn uploads_survive_a_clock_that_jumps() {
    let clock = Arc::new(Jumping::default());
    let served = Served::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let keys = KeyStore::at(served.home().join("keys.jsonl"));
    let key = keys.create("", &SystemClock).unwrap().1;
    for ahead in [-DAY, DAY] {
        clock.0.store(0, Ordering::SeqCst);
        let (path, body) = half(&served, &key);
        clock.0.store(ahead, Ordering::SeqCst);
        assert_eq!(other_half(&served, &key, &path, &body), 201, "{ahead}");
    }
    // One that was begun while the clock was ahead is not older than others when it is back.
    let (path, body) = half(&served, &key);
    clock.0.store(-DAY, Ordering::SeqCst);
    let (other, other_body) = half(&served, &key);
    assert_eq!(other_half(&served, &key, &path, &body), 201);
    assert_eq!(other_half(&served, &key, &other, &other_body), 201);
    // One that nobody went on with for more than a day is given up when the next is begun, whose client sends it all.
    let (path, body) = half(&served, &key);
    clock.0.store(DAY, Ordering::SeqCst);
    let (other, other_body) = half(&served, &key);
    assert_eq!(other_half(&served, &key, &path, &body), 404);
    assert_eq!(other_half(&served, &key, &other, &other_body), 201);
}
