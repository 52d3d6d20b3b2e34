//! Events as a stream.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{GEMINI, LOOP, Listener, SHAPES, Site, append, events, line, put};

#[test]
fn a_run_that_is_over_is_told_from_its_first_event_to_its_end() {
    let site = Site::new();
    let mut listener = Listener::new(&site.served, &format!("runs/{SHAPES}/events"), None);
    let frames = listener.all();
    let head = listener.head.to_lowercase();
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "x-accel-buffering: no",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert_eq!(
        (frames[0].event.as_str(), &frames[0].id),
        ("connected", &None)
    );
    assert_eq!(frames[0].data["run_id"], SHAPES);
    assert_eq!(frames[0].data["type"], "connected");
    let told = events(&frames);
    let first = told[0];
    assert_eq!(
        (first.event.as_str(), first.id.as_deref()),
        ("run_created", Some("1"))
    );
    assert_eq!(first.data["type"], "run_created");
    assert_eq!(first.data["runId"], SHAPES);
    assert_eq!(first.data["timestamp"], "2025-12-09T14:30:20+00:00");
    // The end is told once, has no id, and is the last.
    let ends: Vec<_> = frames
        .iter()
        .filter(|frame| frame.id.is_none() && frame.event.starts_with("run:"))
        .collect();
    assert_eq!(ends.len(), 1);
    let last = frames.last().unwrap();
    assert_eq!((last.event.as_str(), &last.id), ("run:completed", &None));
    assert_eq!(
        (&last.data["status"], &last.data["type"]),
        (&json!("succeeded"), &json!("run_completed"))
    );
    // The same events as in the list, under the same ids.
    let list = site.ok(&format!("runs/{SHAPES}/events"));
    let listed: Vec<&str> = list["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    let streamed: Vec<&str> = told
        .iter()
        .map(|frame| frame.id.as_deref().unwrap())
        .collect();
    assert_eq!(streamed, listed);
}

#[test]
fn events_without_numbers_are_known_by_their_lines_and_all_can_be_called_message() {
    let site = Site::new();
    let mut listener = Listener::new(
        &site.served,
        &format!("runs/{GEMINI}/events?compat=message"),
        None,
    );
    let frames = listener.all();
    let told = events(&frames);
    assert_eq!(told.len(), 23);
    assert!(told.iter().all(|frame| frame.event == "message"));
    assert_eq!(
        (told[4].id.as_deref(), &told[4].data["kind"]),
        (Some("5"), &json!("tool_end"))
    );
    assert_eq!(
        (&frames[0].event[..], &frames.last().unwrap().event[..]),
        ("connected", "run:completed")
    );
    assert_eq!(
        site.served
            .send(
                "GET",
                &format!("/api/runs/{GEMINI}/events?compat=x"),
                &[("accept", "text/event-stream")],
                b""
            )
            .status,
        400
    );
}

#[test]
fn a_client_goes_on_where_it_was_without_gap_or_double() {
    let site = Site::new();
    let path = format!("runs/{LOOP}/events");
    let all = Listener::new(&site.served, &path, None).all();
    let ids: Vec<String> = events(&all)
        .iter()
        .map(|frame| frame.id.clone().unwrap())
        .collect();
    for at in [0, 17, 50, 51] {
        let rest = Listener::new(&site.served, &path, Some(&ids[at])).all();
        let rest: Vec<String> = events(&rest)
            .iter()
            .map(|frame| frame.id.clone().unwrap())
            .collect();
        assert_eq!(rest, ids[at + 1..]);
    }
    let answer = site.served.send(
        "GET",
        &format!("/api/{path}"),
        &[("accept", "text/event-stream"), ("last-event-id", "x")],
        b"",
    );
    assert_eq!(answer.status, 400);
    let answer = site.served.send(
        "GET",
        "/api/runs/nope/events",
        &[("accept", "text/event-stream")],
        b"",
    );
    assert_eq!(
        (answer.status, &answer.json()["error"]),
        (404, &json!("Run 'nope' not found"))
    );
}

/// A run that goes on.
fn going_on() -> Site {
    Site::with(|swarm| {
        put(
            &swarm.join("runs/r/meta.json"),
            r#"{"id": "r", "status": "running"}"#,
        );
        put(
            &swarm.join("runs/r/events.jsonl"),
            line("run_started", json!({"seq": 1})),
        );
    })
}

#[test]
fn what_comes_is_told_as_it_comes_and_a_torn_line_when_it_is_whole() {
    let site = going_on();
    let journal = site.path("runs/r/events.jsonl");
    let mut listener = Listener::new(&site.served, "runs/r/events", None);
    listener.until("connected", |frames, _| events(frames).len() == 1);
    append(
        &journal,
        line(
            "step_start",
            json!({"seq": 2, "flow_key": "build", "step_id": "x"}),
        ),
    );
    let frames = listener.until("told of the step", |frames, _| events(frames).len() == 2);
    assert_eq!(events(&frames)[1].data["stepId"], "x");
    // Half a line: nothing is lost, and nothing is told yet.
    let next = line(
        "step_end",
        json!({"seq": 3, "flow_key": "build", "step_id": "x", "payload": {"text": "é".repeat(50_000)}}),
    );
    // Torn inside of a letter.
    let at = next.find('é').unwrap() + 1;
    let (half, rest) = next.as_bytes().split_at(at);
    append(&journal, half);
    listener.until("alive", |frames, _| {
        frames
            .iter()
            .filter(|frame| frame.event == "heartbeat")
            .count()
            >= 2
    });
    assert_eq!(events(&listener.frames()).len(), 2);
    append(&journal, rest);
    let frames = listener.until("told of the end", |frames, _| events(frames).len() == 3);
    assert_eq!(events(&frames)[2].id.as_deref(), Some("3"));
    let heartbeat = frames
        .iter()
        .find(|frame| frame.event == "heartbeat")
        .unwrap();
    assert_eq!(
        (&heartbeat.id, &heartbeat.data["status"]),
        (&None, &json!("running"))
    );
    assert_eq!(heartbeat.data["current_step"], "x");
    // One flow of several is not the end of the run; that its documents say so is.
    append(
        &journal,
        line("run_completed", json!({"seq": 4, "flow_key": "build"})),
    );
    listener.until("told of the flow", |frames, _| events(frames).len() == 4);
    assert!(!listener.has_ended);
    let meta = site.path("runs/r/meta.json");
    put(
        &meta.with_extension("new"),
        r#"{"id": "r", "status": "failed", "error": "no"}"#,
    );
    std::fs::rename(meta.with_extension("new"), &meta).unwrap();
    let frames = listener.all();
    let last = frames.last().unwrap();
    assert_eq!(
        (last.event.as_str(), &last.data["error"]),
        ("run:failed", &json!("no"))
    );
}

#[test]
fn a_client_that_comes_and_goes_at_random_misses_nothing() {
    let site = going_on();
    let journal = site.path("runs/r/events.jsonl");
    let writer = std::thread::spawn({
        let meta = site.path("runs/r/meta.json");
        move || {
            let mut file = std::fs::File::options()
                .append(true)
                .open(&journal)
                .unwrap();
            for seq in 2..=400 {
                let text = line("log", json!({"seq": seq, "payload": {"n": seq}}));
                // In two pieces, now and then.
                let (a, b) = text.split_at(if seq % 3 == 0 { 20 } else { 0 });
                file.write_all(a.as_bytes()).unwrap();
                if seq % 40 == 0 {
                    std::thread::sleep(Duration::from_millis(10));
                }
                file.write_all(b.as_bytes()).unwrap();
            }
            put(&meta, r#"{"id": "r", "status": "succeeded"}"#);
        }
    });
    let mut seen: Vec<u64> = Vec::new();
    for turn in 0..200 {
        let last = seen.last().map(ToString::to_string);
        let mut listener = Listener::new(&site.served, "runs/r/events", last.as_deref());
        let most = seen.len() + 1 + turn * 7 % 30;
        let before = seen.len();
        let frames = listener.until("further", |frames, has_ended| {
            has_ended || before + events(frames).len() >= most
        });
        seen.extend(
            events(&frames)
                .iter()
                .map(|frame| frame.id.as_ref().unwrap().parse::<u64>().unwrap()),
        );
        if frames
            .last()
            .is_some_and(|frame| frame.event == "run:completed")
        {
            break;
        }
    }
    writer.join().unwrap();
    assert_eq!(seen, (1..=400).collect::<Vec<u64>>());
}

#[test]
fn a_file_that_is_cut_short_is_said_and_read_anew() {
    let site = going_on();
    let mut listener = Listener::new(&site.served, "runs/r/events", None);
    listener.until("connected", |frames, _| events(frames).len() == 1);
    put(&site.path("runs/r/events.jsonl"), "");
    append(
        &site.path("runs/r/events.jsonl"),
        line("a", json!({"seq": 1})),
    );
    // It may be as long as before when it is looked at; what follows shows it.
    std::fs::rename(site.path("runs/r/events.jsonl"), site.path("runs/r/old")).unwrap();
    put(
        &site.path("runs/r/events.jsonl"),
        line("b", json!({"seq": 1})),
    );
    let frames = listener.until("told of the new file", |frames, _| {
        frames.iter().any(|frame| frame.event == "b")
    });
    let error = frames.iter().find(|frame| frame.event == "error").unwrap();
    assert_eq!(
        (&error.id, &error.data["error"]),
        (&None, &json!("stream_error"))
    );
}

#[test]
fn a_run_whose_events_come_later_is_waited_for() {
    let site = Site::with(|swarm| put(&swarm.join("runs/r/spec.json"), "{}"));
    let mut listener = Listener::new(&site.served, "runs/r/events", None);
    listener.until("connected", |frames, _| frames.len() == 1);
    let lines = line("run_created", json!({"payload": {"flows": ["a", "b"]}}))
        + &line("run_completed", json!({"flow_key": "a"}))
        + &line("run_completed", json!({"flow_key": "b"}));
    put(&site.path("runs/r/events.jsonl"), lines);
    // No document says that it is over: that both flows are completed does.
    let frames = listener.all();
    assert_eq!(events(&frames).len(), 3);
    assert_eq!(frames.last().unwrap().event, "run:completed");
}

#[test]
fn names_of_events_cannot_break_out_of_their_frame() {
    let site = Site::with(|swarm| {
        put(
            &swarm.join("runs/r/meta.json"),
            r#"{"id": "r", "status": "succeeded"}"#,
        );
        let text = line("a\nid: 7\ndata: {}\n\nevent: run:completed", json!({}))
            + &line("log", json!({"payload": {"text": "a\n\nb\r\n\u{2028}"}}));
        put(&swarm.join("runs/r/events.jsonl"), text);
    });
    let frames = Listener::new(&site.served, "runs/r/events", None).all();
    let told = events(&frames);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].id.as_deref(), Some("1"));
    assert_eq!(told[1].data["payload"]["text"], "a\n\nb\r\n\u{2028}");
}

#[test]
fn streams_end_with_their_clients_and_with_the_server() {
    let site = going_on();
    let mut listeners: Vec<Listener> = (0..20)
        .map(|_| Listener::new(&site.served, "runs/r/events", None))
        .collect();
    for listener in &mut listeners {
        listener.until("connected", |frames, _| events(frames).len() == 1);
    }
    assert_eq!(site.served.app.metrics().streams.get(), 20);
    let (gone, kept) = listeners.split_at_mut(10);
    for listener in gone {
        listener.stream.shutdown(std::net::Shutdown::Both).unwrap();
    }
    let begun = Instant::now();
    while site.served.app.metrics().streams.get() != 10 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
    site.served.app.ending().cancel();
    for listener in kept {
        listener.all();
    }
    while site.served.app.metrics().streams.get() != 0 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn too_many_streams_are_refused_politely() {
    let served = crate::testkit::Served::with(
        |_| {},
        |options| {
            options.run_directories = vec![super::fixtures()];
            options.streams = 0;
        },
    );
    let path = format!("/api/runs/{LOOP}/events");
    let answer = served.send("GET", &path, &[("accept", "text/event-stream")], b"");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["error"], "Too many live streams");
}

#[test]
fn a_last_line_without_its_end_is_told_once() {
    let site = Site::with(|swarm| {
        let text = line("run_started", json!({})) + line("log", json!({})).trim_end();
        put(&swarm.join("runs/r/events.jsonl"), text);
    });
    let mut listener = Listener::new(&site.served, "runs/r/events", None);
    listener.until("told of both", |frames, _| events(frames).len() == 2);
    let rest = format!("\n{}", line("run_completed", json!({})).trim_end());
    append(&site.path("runs/r/events.jsonl"), rest);
    let frames = listener.all();
    let ids: Vec<&str> = events(&frames)
        .iter()
        .map(|frame| frame.id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(frames.last().unwrap().event, "run:completed");
}

#[test]
fn a_state_that_stays_pending_does_not_keep_a_run_from_ending() {
    let site = Site::with(|swarm| {
        let text = line("run_started", json!({})) + &line("run_completed", json!({}));
        put(&swarm.join("runs/r/events.jsonl"), text);
        put(
            &swarm.join("runs/r/run_state.json"),
            r#"{"status": "pending"}"#,
        );
    });
    let frames = Listener::new(&site.served, "runs/r/events", None).all();
    assert_eq!(frames.last().unwrap().event, "run:completed");
}
