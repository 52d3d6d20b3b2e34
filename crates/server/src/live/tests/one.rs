//! The stream of one transcript.

use std::io::Read as _;
use std::time::{Duration, Instant};

use super::kit::*;
use crate::testkit::Served;

fn path(id: &str) -> String {
    format!("/api/v1/transcripts/{id}/stream")
}

fn ids(frames: &[Frame]) -> Vec<u64> {
    let id = |frame: &Frame| frame.id.as_ref().unwrap().parse().unwrap();
    frames.iter().map(id).collect()
}

fn data(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(|frame| frame.data.clone()).collect()
}

#[test]
fn a_run_is_given_byte_for_byte_its_history_and_then_what_is_added() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    for n in 2..=600 {
        say(&recorder, &format!("event {n}, \"quoted\"\nand é"));
    }
    // Packing frames would hold them back.
    let packed = "Accept-Encoding: gzip, zstd\r\n";
    let mut client = Sse::open_with(served.address, &path(RUN), None, packed);
    assert_eq!(client.status, 200);
    assert!(
        client.head.contains("content-type: text/event-stream\r\n"),
        "{}",
        client.head
    );
    assert!(!client.head.contains("content-encoding"), "{}", client.head);
    let connected = client.expect("connected");
    assert_eq!(
        (&connected.id, connected.json()["from"].as_u64()),
        (&None, Some(1))
    );
    let mut frames = client.events(600);
    assert_eq!(frames[0].name, "run.started");
    for n in 601..=650 {
        say(&recorder, &format!("event {n}"));
        frames.extend(client.events(1));
    }
    assert_eq!(frames[649].name, "message.assistant");
    assert_eq!(data(&frames), lines(&file_of(served.home(), RUN)));
    assert_eq!(ids(&frames), (1..=650).collect::<Vec<_>>());
    // The end of the run is said, and does not count as an event.
    complete(&recorder);
    assert_eq!(client.expect("run.completed").id.as_deref(), Some("651"));
    assert_eq!(client.expect("ended").id, None);
    // So is it to somebody who comes later and has had all of it.
    let mut late = Sse::open(served.address, &path(RUN), Some("651"));
    late.expect("connected");
    late.expect("ended");
    let mut from = Sse::open(served.address, &(path(RUN) + "?from=649"), None);
    assert_eq!(ids(&from.events(3)), [649, 650, 651]);
    let mut now = Sse::open(served.address, &(path(RUN) + "?from=now"), None);
    assert_eq!(now.expect("connected").json()["from"], 652);
}

#[test]
fn a_client_that_reconnects_anywhere_has_no_gap_and_nothing_twice() {
    let mut served = Served::empty();
    let home = served.home().to_owned();
    let writer = std::thread::spawn(move || {
        let recorder = record(&home, RUN);
        start(&recorder);
        for n in 2..=3000 {
            say(&recorder, &format!("event {n} {}", "x".repeat(n % 700)));
            if n % 7 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    while !file_of(served.home(), RUN).is_file() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (mut last, mut frames) = (None, Vec::new());
    // Any numbers will do, as long as they are the same each time.
    let mut random = 0x9e37_79b9_u32;
    for round in 0.. {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let count = (random >> 16) as usize % 150;
        if round % 20 == 10 {
            served = served.restarted();
        }
        let mut client = Sse::open(served.address, &path(RUN), last.as_deref());
        frames.extend(client.events(count.min(3000 - frames.len())));
        // What it has read counts, not what was on its way.
        last = frames.last().and_then(|frame: &Frame| frame.id.clone());
        if frames.len() == 3000 {
            break;
        }
    }
    writer.join().unwrap();
    assert_eq!(ids(&frames), (1..=3000).collect::<Vec<_>>());
    assert_eq!(data(&frames), lines(&file_of(served.home(), RUN)));
}

#[test]
fn an_imported_session_is_live_while_imports_add_to_it() {
    let served = Served::empty();
    let sessions = Sessions::new();
    sessions.add("s1", 1..700);
    sessions.import(served.home());
    let mut client = Sse::open(served.address, &path("s1"), None);
    let mut frames = client.events(699);
    for (from, to) in [(700, 701), (701, 1000), (1000, 1003)] {
        sessions.add("s1", from..to);
        sessions.import(served.home());
        frames.extend(client.events((to - from) as usize));
    }
    assert_eq!(ids(&frames), (1..=1002).collect::<Vec<_>>());
    assert_eq!(data(&frames), stored(served.home(), "s1"));
    assert_eq!(frames[0].name, "message.user");
    let last = client.last_id.clone();
    let served = served.restarted();
    let mut client = Sse::open(served.address, &path("s1"), last.as_deref());
    client.expect("connected");
    sessions.add("s1", 1003..1004);
    sessions.import(served.home());
    assert_eq!(ids(&client.events(1)), [1003]);
}

#[test]
fn a_log_that_is_written_anew_is_told_and_given_again() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    for n in 2..=5 {
        say(&recorder, &format!("event {n}"));
    }
    drop(recorder);
    let file = file_of(served.home(), RUN);
    let before = std::fs::read(&file).unwrap();
    let mut client = Sse::open(served.address, &path(RUN), None);
    client.expect("connected");
    assert_eq!(ids(&client.events(5)), [1, 2, 3, 4, 5]);
    let two = lines(&file)[..2].join("\n") + "\n";
    write(&file.with_extension("new"), two);
    std::fs::rename(file.with_extension("new"), &file).unwrap();
    let again = client.expect("again");
    assert_eq!(
        (again.id.as_deref(), again.json()["from"].as_u64()),
        (None, Some(1))
    );
    assert_eq!(ids(&client.events(2)), [1, 2]);
    // Somebody who has had more than there is now is told as well.
    let mut other = Sse::open(served.address, &path(RUN), Some("5"));
    other.expect("connected");
    other.expect("again");
    assert_eq!(ids(&other.events(2)), [1, 2]);
    std::fs::remove_file(&file).unwrap();
    client.expect("gone");
    write(&file, before);
    client.expect("again");
    assert_eq!(ids(&client.events(5)), [1, 2, 3, 4, 5]);
}

#[test]
fn a_line_that_is_not_an_event_is_said_without_an_id() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    drop(recorder);
    let file = file_of(served.home(), RUN);
    let line = lines(&file).remove(0);
    let more = format!(
        "{line}\nnot an event\n{}\n",
        line.replace("\"seq\":1", "\"seq\":2")
    );
    write(&file, more);
    let mut client = Sse::open(served.address, &path(RUN), None);
    client.expect("connected");
    client.expect("run.started");
    let bad = client.expect("bad");
    assert_eq!(
        (bad.id.as_deref(), bad.json()["line"].as_u64()),
        (None, Some(2))
    );
    assert_eq!(client.expect("run.started").id.as_deref(), Some("2"));
}

#[test]
fn a_client_that_does_not_read_is_told_what_it_missed() {
    let served = Served::empty();
    served.app.live().set_limits(|limits| {
        limits.ring = 256 << 10;
        limits.patience = Duration::from_millis(100);
    });
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let mut client = Sse::open(served.address, &path(RUN), None);
    assert_eq!(ids(&client.events(1)), [1]);
    // More than the system holds for a connection.
    let text = "x".repeat(8 << 10);
    for _ in 0..4000 {
        say(&recorder, &text);
    }
    let mut quick = Sse::open(served.address, &path(RUN), Some("3990"));
    quick.events(11);
    std::thread::sleep(Duration::from_millis(300));
    let mut expected = 2;
    let missed = loop {
        let frame = client.told();
        if frame.name == "missed" {
            break frame;
        }
        assert_eq!(frame.id, Some(expected.to_string()));
        expected += 1;
    };
    let (from, to) = (missed.json()["from"].as_u64(), missed.json()["to"].as_u64());
    assert_eq!((missed.id.as_deref(), from), (None, Some(expected)));
    // Then it goes on with what is new.
    let to = to.unwrap();
    say(&recorder, "news");
    let next: u64 = client.events(1)[0].id.as_ref().unwrap().parse().unwrap();
    assert_eq!(next, to + 1);
    assert!(served.app.metrics().missed.get() >= to + 1 - expected);
    let left = usize::try_from(4002 - next).unwrap();
    assert_eq!(client.events(left).len(), left);
}

#[test]
fn the_heart_beats_without_ids() {
    let served = Served::empty();
    served
        .app
        .live()
        .set_limits(|limits| limits.beat = Duration::from_millis(50));
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let mut client = Sse::open(served.address, &path(RUN), None);
    client.events(1);
    for _ in 0..3 {
        let beat = client.next().unwrap();
        assert_eq!((beat.id, beat.name.as_str()), (None, "heartbeat"));
    }
    assert_eq!(client.last_id.as_deref(), Some("1"));
}

#[test]
fn streams_end_when_the_server_does() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let mut one = Sse::open(served.address, &path(RUN), None);
    let mut all = Sse::open(served.address, "/api/v1/stream", None);
    one.events(1);
    all.expect("connected");
    let begun = Instant::now();
    drop(served);
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!((one.next(), all.next()), (None, None));
}

#[test]
fn too_many_streams_are_refused_politely_and_those_that_end_make_room() {
    let served = Served::with(|_| {}, |options| options.streams = 100);
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let open = || Sse::open(served.address, &path(RUN), None);
    let mut clients: Vec<Sse> = (0..100).map(|_| open()).collect();
    let mut refused = open();
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 5"), "{}", refused.head);
    assert!(refused.head.contains("application/problem+json"));
    let mut body = String::new();
    refused.reader.read_to_string(&mut body).unwrap();
    assert!(body.contains("all 100 live streams are in use"), "{body}");
    assert_eq!(served.get("/healthz").status, 200);
    for client in &mut clients {
        client.events(1);
    }
    assert_eq!(served.app.metrics().streams.get(), 100);
    clients.truncate(50);
    let until = Instant::now() + Duration::from_secs(10);
    while served.app.metrics().streams.get() > 50 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(open().status, 200);
}

#[test]
fn wrong_questions_are_answered() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let ask = |path: &str, last: Option<&str>| Sse::open(served.address, path, last).status;
    assert_eq!(ask(&path("nothing"), None), 404);
    assert_eq!(ask(&path("..%2f..%2fetc%2fpasswd"), None), 404);
    for query in [
        "?from=0",
        "?from=-1",
        "?from=x",
        "?form=1",
        "?from=99999999999999999999",
    ] {
        assert_eq!(ask(&(path(RUN) + query), None), 400, "{query}");
    }
    for last in ["x", "-1", "1.5", "99999999999999999999"] {
        assert_eq!(ask(&path(RUN), Some(last)), 400, "{last}");
    }
    assert_eq!(ask(&path(RUN), Some("0")), 200);
    for query in ["?from=1", "?from=x-1", "?events=maybe", "?what=1"] {
        assert_eq!(ask(&format!("/api/v1/stream{query}"), None), 400, "{query}");
    }
    assert_eq!(ask("/api/v1/stream?transcript=nothing", None), 404);
    assert_eq!(ask("/api/v1/stream", Some("7")), 400);
}
