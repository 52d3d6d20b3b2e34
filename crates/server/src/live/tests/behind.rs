//! Clients that have read ahead of those who follow for all, and clients that are behind.

use std::time::{Duration, Instant};

use quipu_store::Store;

use super::kit::*;
use crate::live::{HELD, LOOKS, Live, PIECE, pieces};
use crate::testkit::Served;

fn path() -> String {
    format!("/api/v1/transcripts/{RUN}/stream")
}

/// Whether nothing but heartbeats comes for a while.
fn is_silent(client: &mut Sse) -> bool {
    let stream = client.reader.get_ref();
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let told = loop {
        match client.next() {
            Some(frame) if frame.name == "heartbeat" => {}
            told => break told,
        }
    };
    let stream = client.reader.get_ref();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    told.is_none()
}

#[test]
fn a_client_that_is_ahead_of_the_others_gets_nothing_twice() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let mut one = Sse::open(served.address, &path(), None);
    let mut all = Sse::open(served.address, "/api/v1/stream", None);
    assert_eq!(one.events(1).len(), 1);
    all.expect("connected");
    // Whoever follows for all of them is held up.
    let looks = u32::try_from(LOOKS).unwrap();
    let live: &Live = served.app.live();
    let begun = Instant::now();
    let held = loop {
        match live.looks.try_acquire_many(looks) {
            Ok(held) => break held,
            Err(_) => assert!(begun.elapsed() < Duration::from_secs(10)),
        }
    };
    for n in 2..=50 {
        say(&recorder, &format!("event {n}"));
    }
    let store = Store::open(served.home()).unwrap();
    store.refresh_runs().unwrap();
    let span = store.catalogue().advances_span().unwrap();
    let cursor = format!("{}-{}", span.generation, span.last);
    let mut again = Sse::open(served.address, &path(), Some("50"));
    assert_eq!(again.expect("connected").json()["from"], 51);
    let mut from = Sse::open(served.address, &(path() + "?from=51"), None);
    assert_eq!(from.expect("connected").json()["from"], 51);
    let mut everything = Sse::open(served.address, "/api/v1/stream", Some(&cursor));
    let connected = everything.expect("connected").json();
    assert_eq!(connected["cursor"], cursor.as_str());
    for client in [&mut again, &mut from, &mut everything] {
        assert!(is_silent(client));
    }
    drop(held);
    say(&recorder, "event 51");
    for client in [&mut again, &mut from] {
        assert_eq!(client.told().id.as_deref(), Some("51"));
    }
    assert_eq!(everything.expect("transcript").id, None);
    assert_eq!(everything.told().json()["seq"], 51);
    // Those who were there have all of it.
    assert_eq!(one.events(50).last().unwrap().id.as_deref(), Some("51"));
    assert_eq!(all.events(50).last().unwrap().json()["seq"], 51);
}

#[test]
fn clients_that_are_behind_wait_while_others_hold_all_the_room() {
    let served = Served::empty();
    let live = served.app.live();
    live.set_limits(|limits| limits.patience = Duration::from_millis(100));
    let recorder = record(served.home(), RUN);
    start(&recorder);
    for n in 2..=300 {
        say(&recorder, &format!("event {n}"));
    }
    // A line that is longer than a page.
    let long = "x".repeat(600 << 10);
    say(&recorder, &long);
    say(&recorder, "the last");
    let line = lines(&file_of(served.home(), RUN)).swap_remove(300);
    assert!(line.len() > 600 << 10, "it is kept elsewhere: {line}");
    let all = u32::try_from(HELD / PIECE).unwrap();
    let hold = |pieces: u32| {
        let held = std::sync::Arc::clone(&live.held);
        held.try_acquire_many_owned(pieces).unwrap()
    };
    let held = hold(all);
    let mut client = Sse::open(served.address, &path(), None);
    client.expect("connected");
    assert!(is_silent(&mut client), "there is no room");
    drop(held);
    assert_eq!(client.events(302).pop().unwrap().json()["seq"], 302);
    // There is room for a page, and not for the line.
    let held = hold(all - pieces(256 << 10));
    let mut client = Sse::open(served.address, &path(), Some("299"));
    client.expect("connected");
    assert_eq!(client.events(1)[0].id.as_deref(), Some("300"));
    assert!(is_silent(&mut client), "there is no room for the line");
    drop(held);
    let rest = client.events(2);
    assert_eq!(rest[0].data, line);
    // What was sent is not held any more.
    let begun = Instant::now();
    while live.held.available_permits() < HELD / PIECE {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
}
