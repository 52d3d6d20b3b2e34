use std::path::Path;

use insta::assert_snapshot;
use quipu_model::Usage;

use super::{CONTEXT, Kimi, RECORDS, WIRE};
use crate::corpus::logs;
use crate::testkit::{Read, hostile, picks, read};
use crate::{Family as _, Pick};

const SESSION: &str = include_str!("../../fixtures/kimi/session.jsonl");

const PATH: &str = "sessions/wd_x/session_1/agents/main/wire.jsonl";

fn counts(usage: Usage) -> [u64; 4] {
    let Usage {
        input,
        cache_read,
        cache_write,
        output,
        ..
    } = usage;
    [input, cache_read, cache_write, output].map(Option::unwrap_or_default)
}

fn superseded(read: &Read) -> usize {
    let events = read.events.iter();
    events.filter(|e| e.annotations.flags.superseded).count()
}

#[test]
fn the_records_of_an_agent() {
    let read = read(SESSION.as_bytes(), PATH).unwrap();
    assert_eq!(read.dialect, RECORDS);
    assert_snapshot!(read.lines());
    assert_eq!(counts(read.usage()), [17, 100, 2, 7]);
    assert_eq!(
        counts(read.session.vendor_usage.unwrap().into()),
        counts(read.usage())
    );
    // From the prompt to what undid it.
    assert_eq!(superseded(&read), read.events.len() - 6);
}

#[test]
fn a_sub_agent_has_records_of_its_own() {
    let log = r#"{"type":"turn.prompt","input":[{"type":"text","text":"go"}],"origin":{"kind":"system_trigger","name":"subagent"},"time":1785612812819}
"#;
    let path = "sessions/wd_x/session_1/agents/agent-0/wire.jsonl";
    let read = read(log.as_bytes(), path).unwrap();
    assert_eq!(read.session.id.as_deref(), Some("session_1.agent-0"));
    assert_eq!(read.session.parent.as_deref(), Some("session_1"));
    assert_eq!(read.words(), ["message.user"]);
}

#[test]
fn images_are_kept_outside() {
    let log = r#"{"type":"turn.prompt","input":[{"type":"image_url","imageUrl":{"url":"data:image/png;base64,QUJD"}}],"origin":{"kind":"user"},"time":1785612812819}
"#;
    let read = read(log.as_bytes(), PATH).unwrap();
    assert_eq!(read.blobs, 1);
    assert!(!read.lines().contains("QUJD"));
}

const MESSAGES: &str = include_str!("../../fixtures/kimi-wire/session.jsonl");

#[test]
fn the_wire() {
    let read = read(MESSAGES.as_bytes(), "sessions/h/abc/wire.jsonl").unwrap();
    assert_eq!(read.dialect, WIRE);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.id.as_deref(), Some("abc"));
    assert_eq!(counts(read.usage()), [11, 7, 0, 5]);
}

const LINES: &str = include_str!("../../fixtures/kimi-context/session.jsonl");

#[test]
fn a_context() {
    let read = read(LINES.as_bytes(), "sessions/h/abc/context.jsonl").unwrap();
    assert_eq!(read.dialect, CONTEXT);
    assert_snapshot!(read.lines());
}

#[test]
fn broken_logs_do_no_harm() {
    hostile(&Kimi, RECORDS, SESSION);
    hostile(&Kimi, WIRE, MESSAGES);
    hostile(&Kimi, CONTEXT, LINES);
}

/// The books have every call; what is counted is the same.
#[test]
fn real_sessions_count_what_is_in_the_books() {
    for (name, bytes) in logs("kimi") {
        let Some(read) = read(&bytes, &name) else {
            continue;
        };
        if let Some(vendor) = read.session.vendor_usage {
            assert_eq!(counts(vendor.into()), counts(read.usage()), "{name}");
        }
        assert!(read.ledger.drift.is_empty(), "{name}");
    }
}

/// What is picked below a place: `(place, path, what it is)`.
#[test]
fn logs_are_picked_by_where_they_are() {
    picks(
        &Kimi,
        &[
            (".kimi/sessions", "h/s/wire.jsonl", Pick::Log),
            (".kimi/sessions", "h/s/context.jsonl", Pick::Keep),
            (".kimi/sessions", "h/s/state.json", Pick::Skip),
            (
                ".kimi-code/sessions",
                "wd_x/session_1/agents/agent-0/wire.jsonl",
                Pick::Log,
            ),
        ],
    );
}

#[test]
fn the_state_beside_a_log_has_its_title() {
    let session = Path::new("/k/wd_x/session_1");
    let log = session.join("agents/main/wire.jsonl");
    assert!(Kimi.sidecars(&log).contains(&session.join("state.json")));

    let origin = crate::Origin {
        path: &log,
        part: None,
    };
    let mut feed = crate::Feed::new(RECORDS.framing, Kimi.open(&RECORDS, &origin, None).unwrap());
    let mut events = crate::Collect::default();
    feed.push(SESSION.as_bytes(), &mut events);
    feed.sidecar(
        "state.json",
        br#"{"title":"Listing","workDir":"/other"}"#,
        &mut events,
    );
    assert_eq!(feed.session().title.as_deref(), Some("Listing"));
    assert_eq!(feed.session().cwd.as_deref(), Some("/code"));
}
