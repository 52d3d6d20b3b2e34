//! The stream of everything.

use std::collections::BTreeMap;

use quipu_store::Store;

use super::kit::*;
use crate::testkit::Served;

const OTHER: &str = "660e8400-e29b-41d4-a716-446655440000";

/// The events that a client has had, by transcript.
#[derive(Default)]
struct Had(BTreeMap<String, Vec<String>>);

impl Had {
    /// Takes an event, which has to be the next of its transcript.
    fn take(&mut self, frame: &Frame) {
        let line = frame.json();
        let about: serde_json::Value = serde_json::from_str(frame.about.as_ref().unwrap()).unwrap();
        let transcript = about["transcript"].as_str().unwrap();
        let of = self.0.entry(transcript.to_owned()).or_default();
        assert_eq!(line["seq"].as_u64(), Some(of.len() as u64 + 1), "{frame:?}");
        assert_eq!(
            (&line["type"], &line["run_id"]),
            (&frame.name.as_str().into(), &about["run_id"])
        );
        // The line is as it is.
        of.push(frame.data.clone());
    }
}

fn address(served: &Served, id: &str) -> String {
    Store::open(served.home())
        .unwrap()
        .find(id)
        .unwrap()
        .address
}

#[test]
fn runs_and_sessions_of_other_processes_arrive_without_gap_across_reconnects_and_restarts() {
    let mut served = Served::empty();
    let sessions = Sessions::new();
    let mut client = Sse::open(served.address, "/api/v1/stream", None);
    let connected = client.expect("connected").json();
    let mut last = connected["cursor"].as_str().unwrap().to_owned();
    let (one, two) = (record(served.home(), RUN), record(served.home(), OTHER));
    let mut had = Had::default();
    let mut total = 0;
    for round in 0..8_u32 {
        let mut client = Sse::open(served.address, "/api/v1/stream", Some(&last));
        for n in 0..40 {
            say(&one, &format!("round {round}, event {n}"));
            if n % 3 == 0 {
                say(&two, "another");
            }
        }
        total += 40 + 14;
        if round % 2 == 0 {
            sessions.add("s1", round * 10..(round + 1) * 10);
            sessions.import(served.home());
            total += 10;
        }
        // It goes before it has all.
        let left = if round == 7 { 0 } else { 25 };
        let now: usize = had.0.values().map(Vec::len).sum();
        for frame in client.events(total - now - left) {
            had.take(&frame);
            last = frame.id.unwrap();
        }
        drop(client);
        if round % 3 == 2 {
            served = served.restarted();
        }
    }
    assert_eq!(
        had.0[&address(&served, RUN)],
        lines(&file_of(served.home(), RUN))
    );
    assert_eq!(
        had.0[&address(&served, OTHER)],
        lines(&file_of(served.home(), OTHER))
    );
    let session = address(&served, "s1");
    assert_eq!(had.0[&session], stored(served.home(), &session));
    // There is nothing else.
    let mut client = Sse::open(served.address, "/api/v1/stream", Some(&last));
    client.expect("connected");
    say(&one, "the last");
    assert!(client.events(1)[0].data.contains("the last"));
}

#[test]
fn a_page_is_told_only_what_was_added_to_which_transcript() {
    let served = Served::empty();
    let sessions = Sessions::new();
    let url = "/api/v1/stream?events=false";
    let mut client = Sse::open(served.address, url, None);
    client.expect("connected");
    sessions.add("s1", 0..7);
    sessions.import(served.home());
    let advance = client.expect("advance");
    let session = address(&served, "s1");
    let expected = serde_json::json!({"transcript": session, "from": 1, "to": 7});
    assert_eq!(advance.json(), expected);
    sessions.add("s1", 7..9);
    sessions.import(served.home());
    let expected = serde_json::json!({"transcript": session, "from": 8, "to": 9});
    assert_eq!(client.expect("advance").json(), expected);
    // Somebody who had the first is told the rest, whatever was put together meanwhile.
    let mut other = Sse::open(served.address, url, advance.id.as_deref());
    other.expect("connected");
    assert_eq!(other.expect("advance").json(), expected);
    // In the middle of it, event by event.
    let cursor = advance.id.unwrap();
    let (generation, place) = cursor.split_once('-').unwrap();
    let middle = format!("{generation}-{}", place.parse::<u64>().unwrap() + 1);
    let mut third = Sse::open(served.address, "/api/v1/stream", Some(&middle));
    third.expect("connected");
    assert_eq!(third.events(1)[0].json()["seq"], 9);
    let store = Store::open(served.home()).unwrap();
    let row = store.find("s1").unwrap();
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    store
        .prune(&store.holdings(vec![row]).unwrap(), now)
        .unwrap();
    served.app.freshness().bump();
    assert_eq!(
        client.expect("gone").json(),
        serde_json::json!({"transcript": session})
    );
}

#[test]
fn filters_leave_out_the_rest() {
    let served = Served::empty();
    let sessions = Sessions::new();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    sessions.add("s1", 0..1);
    sessions.import(served.home());
    let open = |query: &str| {
        let mut client = Sse::open(served.address, &format!("/api/v1/stream?{query}"), None);
        client.expect("connected");
        client
    };
    let mut agent = open("agent=claude");
    let mut project = open("project=code");
    let mut run = open(&format!("transcript={RUN}"));
    let mut elsewhere = open("events=false&project=elsewhere");
    for n in 1..4 {
        sessions.add("s1", n..n + 1);
        sessions.import(served.home());
        say(&recorder, "something");
    }
    for client in [&mut agent, &mut project] {
        let frames = client.events(3);
        assert!(
            frames.iter().all(|frame| frame.name == "message.user"),
            "{frames:?}"
        );
    }
    let frames = run.events(3);
    assert!(frames.iter().all(|frame| frame.name == "message.assistant"));
    served.app.ending().cancel();
    assert_eq!(elsewhere.next(), None);
}

#[test]
fn a_cursor_that_means_nothing_any_more_is_told_to_reload() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    let mut client = Sse::open(served.address, "/api/v1/stream", None);
    client.expect("connected");
    say(&recorder, "one");
    let cursor = client.events(1).remove(0).id.unwrap();
    let (generation, place) = cursor.split_once('-').unwrap();
    let later = format!("{generation}-{}", place.parse::<u64>().unwrap() + 1000);
    for other in [format!("0badcafe-{place}"), later] {
        let mut client = Sse::open(served.address, "/api/v1/stream", Some(&other));
        client.expect("connected");
        let missed = client.expect("missed");
        assert_eq!(
            (missed.id.as_deref(), &missed.json()["reload"]),
            (None, &true.into())
        );
        say(&recorder, "more");
        assert_eq!(client.events(1)[0].name, "message.assistant");
    }
    // Rows that were pruned.
    let path = quipu_store::import::catalogue_path(served.home());
    let catalogue = quipu_store::catalogue::SqliteCatalogue::open(&path).unwrap();
    catalogue
        .execute("update advance set first = first + 5000, last = last + 5000")
        .unwrap();
    let mut client = Sse::open(served.address, "/api/v1/stream", Some(&cursor));
    client.expect("connected");
    assert_eq!(client.expect("missed").json()["reload"], true);
}

#[test]
fn a_catalogue_that_is_made_again_is_told() {
    let served = Served::empty();
    let sessions = Sessions::new();
    sessions.add("s1", 0..3);
    sessions.import(served.home());
    let mut client = Sse::open(served.address, "/api/v1/stream?events=false", None);
    client.expect("connected");
    let host = quipu_agents::Host::new(served.home().to_owned(), |_| None);
    let options = quipu_store::import::ImportOptions {
        now: "2026-11-15T12:00:00Z".parse().unwrap(),
        agents: Vec::new(),
        dry_run: false,
        threads: 1,
        redact: None,
    };
    let progress = quipu_store::import::Progress::default();
    Store::rebuild(served.home(), &host, &options, &progress).unwrap();
    assert_eq!(client.expect("missed").json()["reload"], true);
    sessions.add("s1", 3..4);
    sessions.import(served.home());
    let told = client.expect("advance").json();
    assert_eq!(
        (told["from"].as_u64(), told["to"].as_u64()),
        (Some(4), Some(4))
    );
}
