use insta::assert_snapshot;

use super::{CHAT, CONVERSATION, Kiro, ROWS, SESSION};
use crate::testkit::{hostile, read};
use crate::{Collect, Family as _, Feed, Gathered, Origin};

const LINES: &str = include_str!("../../fixtures/kiro/session.jsonl");

const EVENTS: &str = concat!(
    r#"{"id":"1","timestamp":1767323045000,"payload":{"type":"user","content":"list"}}"#,
    "\n",
    r#"{"id":"2","timestamp":1767323046000,"payload":{"type":"tool_call","toolName":"shell","toolCallId":"t1","args":{"command":"ls"}}}"#,
    "\n",
    r#"{"id":"3","timestamp":1767323047000,"payload":{"type":"tool_result","toolCallId":"t1","content":"a"}}"#,
    "\n",
    r#"{"id":"4","timestamp":1767323048000,"payload":{"type":"assistant","content":"one","reasoningModelId":"m"}}"#,
    "\n",
);

#[test]
fn sessions_of_both_forms() {
    let old = read(LINES.as_bytes(), "cli/s1.jsonl").unwrap();
    assert_snapshot!("older", old.lines());
    let new = read(EVENTS.as_bytes(), "s2/messages.jsonl").unwrap();
    assert_snapshot!("newer", new.lines());
    assert_eq!(new.session.id.as_deref(), Some("s2"));
}

#[test]
fn what_lies_beside_a_session() {
    let origin = Origin {
        path: "cli/file.jsonl".as_ref(),
        part: None,
    };
    let reader = Kiro.open(&SESSION, &origin, None).unwrap();
    let mut feed = Feed::new(SESSION.framing, reader);
    let mut sink = Collect::default();
    feed.push(LINES.as_bytes(), &mut sink);
    let beside = br#"{"session_id":"s1","cwd":"/code","title":"Listing","created_at":"2026-01-02T03:04:05Z"}"#;
    feed.sidecar("file.json", beside, &mut sink);
    let session = feed.session();
    assert_eq!(session.id.as_deref(), Some("s1"));
    assert_eq!(session.cwd.as_deref(), Some("/code"));
    assert_eq!(session.started_at, Some(1_767_323_045_000));
}

const WHOLE: &str = include_str!("../../fixtures/kiro-conversation/session.json");

#[test]
fn a_conversation() {
    let read = read(WHOLE.as_bytes(), "c1.json").unwrap();
    assert_eq!(read.dialect, CONVERSATION);
    assert_snapshot!(read.lines());
}

/// Out of the database a conversation reads as it does alone.
#[test]
fn a_conversation_out_of_the_database() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table conversations_v2 (key text, conversation_id text, value text, created_at integer, updated_at integer)",
        )
        .unwrap();
    for (key, value, at) in [("/old", "{}", 1), ("/code", WHOLE, 1_767_323_045_000_i64)] {
        database
            .execute(
                "insert into conversations_v2 values (?1, 'c1', ?2, ?3, ?3)",
                (key, value, at),
            )
            .unwrap();
    }
    let gather = Kiro.gather().unwrap();
    let from = Gathered::Database(&database);
    let parts = gather.parts(&from).unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].stamp, "1767323045000");
    let mut lines = Vec::new();
    gather.write(&from, "c1", &mut lines).unwrap();
    assert!(gather.write(&from, "c2", &mut Vec::new()).is_err());
    let rows = read(&lines, "c1").unwrap();
    assert_eq!(rows.dialect, ROWS);
    assert_eq!(rows.session.cwd.as_deref(), Some("/code"));
    let whole = read(WHOLE.as_bytes(), "c1.json").unwrap();
    assert_eq!(rows.words(), whole.words());
    let text = String::from_utf8(lines).unwrap();
    hostile(&Kiro, ROWS, &text);
}

const EXECUTION: &str = include_str!("../../fixtures/kiro-chat/session.json");

#[test]
fn an_execution() {
    let read = read(EXECUTION.as_bytes(), "x.chat").unwrap();
    assert_eq!(read.dialect, CHAT);
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.system",
            "message.user",
            "message.assistant",
            "message.system"
        ]
    );
}

#[test]
fn broken_logs() {
    hostile(&Kiro, SESSION, LINES);
    hostile(&Kiro, SESSION, EVENTS);
    hostile(&Kiro, CONVERSATION, WHOLE);
    hostile(&Kiro, CHAT, EXECUTION);
}

/// One row that is not as the others are does not keep the others from being read.
#[test]
fn rows_of_any_kind() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table conversations_v2 (key text, conversation_id text, value text, created_at integer, updated_at integer);
             insert into conversations_v2 values
                ('/code', 'c1', '{\"history\":[]}', 1, 1),
                (x'ff', x'ff00', x'7b7d', 'x', 'x'),
                (null, 'c3', '{torn', null, null),
                ('/code', null, '{}', 1, 1);",
        )
        .unwrap();
    let gather = Kiro.gather().unwrap();
    let from = Gathered::Database(&database);
    let parts = gather.parts(&from).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["c1", "c3", "x'ff00'"]);
    let written = |id: &str| {
        let mut lines = Vec::new();
        gather.write(&from, id, &mut lines).unwrap();
        crate::testkit::read_as(&Kiro, ROWS, &lines, "x")
    };
    assert_eq!(written("c1").words(), ["note.session"]);
    assert_eq!(written("x'ff00'").words(), ["note.session"]);
    let torn = written("c3");
    assert_eq!(torn.words(), ["note.session", "note.malformed_line"]);
    assert!(torn.lines().contains("{torn"));
}
