//! Runs that begin and grow while the server is there, as pages and searches show them.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::kit::*;
use crate::testkit::Served;

/// Set in the process that records.
const HOME: &str = "QUIPU_TEST_RECORDS_IN";

/// Asks again until the answer is so.
#[track_caller]
fn until(served: &Served, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let answer = served.get(path).json();
        if is_so(&answer) {
            return answer;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{path}: {answer}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn events_of(list: &Value, run: &str) -> Option<u64> {
    let all = list["transcripts"].as_array().unwrap();
    let found = all.iter().find(|one| one["run_id"] == run)?;
    found["events"].as_u64()
}

/// Not a test of its own: the other process of the next one.
#[test]
fn records_in_another_process() {
    let Some(home) = std::env::var_os(HOME) else {
        return;
    };
    let recorder = record(home.as_ref(), RUN);
    start(&recorder);
    say(&recorder, "a marmot in the meadow");
}

#[test]
fn a_run_that_begins_later_elsewhere_is_listed_counted_and_found_and_grows() {
    let served = Served::empty();
    let list = "/api/v1/transcripts";
    let header = format!("/api/v1/transcripts/{RUN}");
    let stats = "/api/v1/stats?by=session";
    let search = "/api/v1/search?q=marmot";
    assert_eq!(
        served.get(list).json()["transcripts"],
        serde_json::json!([])
    );
    assert!(!served.get(search).text().contains(RUN));
    assert!(!served.get(stats).text().contains(RUN));
    let name = "live::tests::listed::records_in_another_process";
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", name]).env(HOME, served.home());
    assert!(other.output().unwrap().status.success());
    // Nobody asks for it by its name before it is listed.
    until(&served, list, |list| events_of(list, RUN) == Some(2));
    until(&served, search, |found| {
        let hits = found["hits"].as_array();
        hits.is_some_and(|hits| hits.len() == 1)
    });
    until(&served, stats, |stats| {
        stats["rows"]
            .as_array()
            .is_some_and(|rows| rows.iter().any(|row| row["session"] == RUN))
    });
    assert_eq!(served.get(&header).json()["transcript"]["events"], 2);
    // What is known of it does not stay as it was when it was first asked for.
    let recorder = record(served.home(), RUN);
    for n in 3..=12 {
        say(&recorder, &format!("marmot {n}"));
        until(&served, &header, |one| one["transcript"]["events"] == n);
    }
    until(&served, list, |list| events_of(list, RUN) == Some(12));
    until(&served, search, |found| {
        found["hits"]
            .as_array()
            .is_some_and(|hits| hits.len() == 11)
    });
}

#[test]
fn while_nothing_is_recorded_nothing_is_read() {
    let served = Served::empty();
    let recorder = record(served.home(), RUN);
    start(&recorder);
    until(&served, "/api/v1/transcripts", |list| {
        events_of(list, RUN) == Some(1)
    });
    let freshness = served.app.freshness();
    let mut before = freshness.number();
    let begun = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(300));
        // What is due is read when somebody asks.
        assert_eq!(served.get("/api/v1/transcripts").status, 200);
        let now = freshness.number();
        if now == before {
            break;
        }
        before = now;
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it does not rest"
        );
    }
    // Neither do questions wake it.
    for path in ["/api/v1/transcripts", "/api/v1/stats", "/api/v1/search?q=x"] {
        assert_eq!(served.get(path).status, 200);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(freshness.number(), before);
}
