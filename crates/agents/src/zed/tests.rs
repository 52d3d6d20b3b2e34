use rusqlite::Connection;

use super::{ROWS, Zed};
use crate::testkit::{Read, hostile, read_as};
use crate::{Family as _, Gathered, Head, rows};

const THREAD: &str = r#"{"title":"Find the port","version":"0.3.0","updated_at":"2026-02-27T12:00:00Z",
"messages":[
 {"User":{"id":"3f0c0000-0000-4000-8000-000000000001","content":[{"Text":"Where is the port set?"},
  {"Mention":{"uri":{"File":{"abs_path":"/code/main.rs"}},"content":"fn main() {}"}}]}},
 {"Agent":{"content":[{"Thinking":{"text":"I should look.","signature":"s"}},{"Text":"Let me look."},
  {"ToolUse":{"id":"t1","name":"grep","raw_input":"{}","input":{"regex":"PORT"},"is_input_complete":true}}],
  "tool_results":{"t1":{"tool_use_id":"t1","tool_name":"grep","is_error":false,"content":{"Text":"main.rs:3"},"output":null}}}},
 "Resume",
 {"Agent":{"content":[{"Text":"In main.rs."}],"tool_results":{}}}
],
"cumulative_token_usage":{"input_tokens":40,"output_tokens":9,"cache_read_input_tokens":5},
"model":{"provider":"anthropic","model":"claude-sonnet-4-5"}}"#;

const OLD: &str = r#"{"version":"0.2.0","summary":"An old one","updated_at":"2025-06-01T08:00:00Z","messages":[
 {"id":0,"role":"user","segments":[{"type":"text","text":"hello"}],"tool_uses":[],"tool_results":[],"context":""},
 {"id":1,"role":"assistant","segments":[{"type":"text","text":"hi"}],"tool_uses":[{"id":"a","name":"now","input":{}}],"tool_results":[],"context":""},
 {"id":2,"role":"user","segments":[],"tool_uses":[],"tool_results":[{"tool_use_id":"a","is_error":true,"content":"no clock"}],"context":""}]}"#;

fn database() -> Connection {
    let database = Connection::open_in_memory().unwrap();
    let table = "create table threads (id text primary key, parent_id text, folder_paths text,
        folder_paths_order text, summary text not null, updated_at text not null,
        data_type text not null, data blob not null);";
    database.execute_batch(table).unwrap();
    let insert = "insert into threads values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let packed = zstd::encode_all(THREAD.as_bytes(), 3).unwrap();
    let at = "2026-02-27T12:00:00Z";
    let none = rusqlite::types::Null;
    let folders = "/code/api\n/code/web";
    database
        .execute(
            insert,
            (
                "t-new",
                none,
                folders,
                "1,0",
                "Find the port",
                at,
                "zstd",
                packed,
            ),
        )
        .unwrap();
    let plain = OLD.as_bytes();
    database
        .execute(
            insert,
            (
                "t-old",
                "t-new",
                "/old",
                none,
                "An old one",
                at,
                "json",
                plain,
            ),
        )
        .unwrap();
    database
}

fn gathered(part: &str) -> (String, Read) {
    let database = database();
    let from = Gathered::Database(&database);
    let mut lines = Vec::new();
    let gather = Zed.gather().unwrap();
    gather.write(&from, part, &mut lines).unwrap();
    let read = read_as(&Zed, ROWS, &lines, "threads.db");
    (String::from_utf8(lines).unwrap(), read)
}

#[test]
fn the_database_is_known_by_its_table() {
    let database = database();
    let tables = rows::tables(&database).unwrap();
    let found = Head::of_database(&tables, |head| Zed.sniff(head));
    assert_eq!(found.map(|found| found.dialect), Some(ROWS));
    let more = ["threads".to_owned(), "messages".to_owned()];
    assert!(Head::of_database(&more, |head| Zed.sniff(head)).is_none());
    let parts = Zed.gather().unwrap();
    let parts = parts.parts(&Gathered::Database(&database)).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["t-new", "t-old"]);
}

#[test]
fn a_thread_reads_message_by_message() {
    let (lines, read) = gathered("t-new");
    let found = crate::identify(lines.as_bytes(), true);
    assert_eq!(found.map(|(_, dialect)| dialect), Some(ROWS));
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "note.context",
            "message.assistant",
            "message.assistant",
            "tool.call",
            "tool.result",
            "note.resume",
            "message.assistant",
            "note.session",
            "note.session",
        ]
    );
    let session = &read.session;
    assert_eq!(session.id.as_deref(), Some("t-new"));
    assert_eq!(session.cwd.as_deref(), Some("/code/web"));
    assert_eq!(session.title.as_deref(), Some("Find the port"));
    let usage = read.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(40), Some(5), Some(9))
    );
    assert!(read.ledger.drift.is_empty(), "{:?}", read.ledger.drift);
}

#[test]
fn a_thread_as_it_was_before_reads_as_well() {
    let (_, read) = gathered("t-old");
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "message.assistant",
            "tool.call",
            "tool.result",
            "note.session",
            "note.session",
        ]
    );
    assert_eq!(read.session.parent.as_deref(), Some("t-new"));
    assert!(read.ledger.drift.is_empty(), "{:?}", read.ledger.drift);
}

#[test]
fn a_thread_that_cannot_be_unpacked_is_said_so() {
    let database = database();
    database
        .execute("update threads set data = x'00', data_type = 'zstd'", [])
        .unwrap();
    let mut lines = Vec::new();
    let from = Gathered::Database(&database);
    assert!(
        Zed.gather()
            .unwrap()
            .write(&from, "t-new", &mut lines)
            .is_err()
    );
    database
        .execute("update threads set data_type = 'lz5'", [])
        .unwrap();
    let error = Zed.gather().unwrap().write(&from, "t-new", &mut lines);
    assert!(error.unwrap_err().to_string().contains("lz5"));
}

#[test]
fn anything_may_stand_in_a_line() {
    for part in ["t-new", "t-old"] {
        let (lines, _) = gathered(part);
        hostile(&Zed, ROWS, &lines);
    }
}
