//! Many clients of one run, while it is recorded.

use std::time::{Duration, Instant};

use super::kit::*;
use crate::testkit::Served;

#[test]
fn many_clients_of_one_run_miss_nothing() {
    const CLIENTS: usize = 200;
    const EVENTS: usize = 600;
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let path = format!("/api/v1/transcripts/{RUN}/stream");
    let threads: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = Sse::open(served.address, &path, None);
            client.expect("connected");
            std::thread::spawn(move || {
                let frames = client.events(EVENTS);
                frames
                    .into_iter()
                    .map(|frame| frame.data)
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let begun = Instant::now();
    for n in 2..=EVENTS {
        say(&recorder, &format!("event {n}"));
        let due = Duration::from_millis(5 * n as u64);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    let expected = lines(&file_of(served.home(), RUN));
    for thread in threads {
        assert!(
            thread.join().unwrap() == expected,
            "a client had other events"
        );
    }
    assert_eq!(served.app.metrics().missed.get(), 0);
}
