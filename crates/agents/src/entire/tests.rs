use quipu_model::json::Tape;

use super::{Entire, TRANSCRIPT};
use crate::testkit::{hostile, read};
use crate::{Collect, Family as _, Feed, Origin};

const LOG: &str = include_str!("../../fixtures/entire/session.jsonl");

#[test]
fn results_come_behind_their_calls() {
    let read = read(LOG.as_bytes(), "transcript.jsonl").unwrap();
    assert_eq!(read.dialect.brand, "copilot-cli");
    assert_eq!(
        read.words(),
        [
            "message.user",
            "message.assistant",
            "tool.call",
            "tool.result",
            "tool.call",
            "tool.result",
            "note.attachment",
            "message.assistant",
            "note.unknown_record",
        ]
    );
    // Once for each message, however many blocks it has.
    let usage = read.usage();
    assert_eq!((usage.input, usage.output), (Some(30), Some(12)));
}

#[test]
fn the_checkpoint_says_whose_session_it_is() {
    let origin = Origin {
        path: "transcript.jsonl".as_ref(),
        part: None,
    };
    let reader = Entire.open(&TRANSCRIPT, &origin, None).unwrap();
    let mut feed = Feed::new(TRANSCRIPT.framing, reader);
    let mut sink = Collect::default();
    feed.push(LOG.as_bytes(), &mut sink);
    let metadata = br#"{"session_id":"s-1","agent":"Copilot CLI","branch":"main"}"#;
    feed.sidecar("metadata.json", metadata, &mut sink);
    feed.finish(&mut sink).unwrap();
    let session = feed.session();
    assert_eq!(session.id.as_deref(), Some("s-1"));
    assert_eq!(session.branch.as_deref(), Some("main"));
}

#[test]
fn anything_may_stand_in_a_line() {
    assert!(LOG.lines().all(|line| Tape::new().read(line, 64).is_ok()));
    hostile(&Entire, TRANSCRIPT, LOG);
}
