use insta::assert_snapshot;
use quipu_model::{Status, Usage};
use rusqlite::Connection;

use super::gather::Sessions;
use super::{EXPORT, Goose, LINES, ROWS};
use crate::testkit::{Read, read, read_as};
use crate::{Gather as _, Gathered};

const MESSAGES: [&str; 6] = [
    r#"{"id":"m1","role":"user","created":1767323045,"content":[{"type":"text","text":"list the files"}],"metadata":{"userVisible":true,"agentVisible":true}}"#,
    r#"{"id":"m2","role":"assistant","created":1767323046,"content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"redactedThinking","data":"x"},{"type":"text","text":"I look."},{"type":"toolRequest","id":"t1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}},{"type":"toolRequest","id":"t2","toolCall":{"status":"error","error":"bad arguments"}}],"metadata":{"userVisible":true,"agentVisible":true}}"#,
    r#"{"id":"m3","role":"user","created":1767323047,"content":[{"type":"toolResponse","id":"t1","toolResult":{"status":"success","value":[{"type":"text","text":"a","annotations":{"audience":["assistant"]}},{"type":"text","text":"a","annotations":{"audience":["user"]}}]}},{"type":"toolResponse","id":"t2","toolResult":{"status":"error","error":"-32602: bad arguments"}}],"metadata":{"userVisible":true,"agentVisible":true}}"#,
    r#"{"id":"m4","role":"user","created":1767323048,"content":[{"type":"text","text":"a summary for the model"}],"metadata":{"userVisible":false,"agentVisible":true}}"#,
    r#"{"id":"m5","role":"assistant","created":1767323049,"content":[{"type":"toolRequest","id":"t3","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"rm"}}}},{"type":"systemNotification","notificationType":"inlineMessage","msg":"compacting"},{"type":"wonder"}]}"#,
    r#"{"id":"m6","role":"user","created":1767323050,"content":[{"type":"toolResponse","id":"t3","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"The user has declined to run this tool. DO NOT attempt to call this tool again."}],"isError":false}}},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#,
];

const ABOUT: &str = r#"{"working_dir":"/code","description":"Files","message_count":6,"total_tokens":30,"input_tokens":20,"output_tokens":10,"accumulated_total_tokens":120,"accumulated_input_tokens":100,"accumulated_output_tokens":20}"#;

fn lines() -> String {
    let lines: Vec<&str> = [ABOUT].into_iter().chain(MESSAGES).collect();
    lines.join("\n") + "\n"
}

#[test]
fn a_file() {
    let read = read(lines().as_bytes(), "sessions/20260102_030405.jsonl").unwrap();
    assert_eq!(read.dialect, LINES);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.title.as_deref(), Some("Files"));
    assert_eq!(read.blobs, 1);
    let sum = Usage {
        input: Some(100),
        output: Some(20),
        ..Usage::default()
    };
    assert_eq!(read.usage(), sum);
    assert_eq!(read.session.vendor_usage.map(Into::into), Some(sum));
}

fn statuses(read: &Read) -> Vec<Status> {
    read.events
        .iter()
        .filter_map(|event| event.annotations.status)
        .collect()
}

#[test]
fn how_calls_ended() {
    let read = read(lines().as_bytes(), "x.jsonl").unwrap();
    assert_eq!(statuses(&read), [Status::Ok, Status::Error, Status::Denied]);
}

fn database(ledger: bool) -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table schema_version (version integer primary key);
             create table sessions (id text primary key, name text, description text,
                session_type text, working_dir text, created_at timestamp, updated_at timestamp,
                extension_data text, accumulated_total_tokens integer,
                accumulated_input_tokens integer, accumulated_output_tokens integer,
                accumulated_cache_read_tokens integer, accumulated_cache_write_tokens integer,
                accumulated_cost real, provider_name text, model_config_json text,
                parent_session_id text);
             create table messages (id integer primary key autoincrement, message_id text,
                session_id text, role text, content_json text, created_timestamp integer,
                timestamp timestamp, tokens integer, metadata_json text);
             insert into sessions values ('20260102_2', '', 'Files', 'sub_agent', '/code',
                '2026-01-02 03:04:05', '2026-01-02 03:04:50', '{}', 220, 200, 20, 100, 0, 0.5, 'x',
                '{\"model_name\":\"m-1\"}', '20260102_1');
             insert into sessions (id, working_dir) values ('20260102_3', '/code');",
        )
        .unwrap();
    for message in MESSAGES {
        let mut tape = quipu_model::json::Tape::new();
        let node = tape.read(message, 64).unwrap();
        let raw = |key: &str| node.get(key).map(|n| n.raw().get().to_owned());
        database
            .execute(
                "insert into messages (message_id, session_id, role, content_json, created_timestamp, metadata_json)
                 values (?1, '20260102_2', ?2, ?3, ?4, ?5)",
                rusqlite::params![
                    node.text("id"),
                    node.text("role"),
                    raw("content"),
                    node.get("created").and_then(|n| n.as_i64()),
                    raw("metadata")
                ],
            )
            .unwrap();
    }
    if ledger {
        database
            .execute_batch(
                "create table usage_ledger (id integer primary key autoincrement, session_id text,
                    created_timestamp integer, model text, input_tokens integer,
                    output_tokens integer, total_tokens integer, cache_read_tokens integer,
                    cache_write_tokens integer, cost real);
                 insert into usage_ledger values
                    (1, '20260102_2', 1767323046, 'm-1', 120, 12, 132, 100, 0, 0.25),
                    (2, '20260102_2', 1767323049, 'm-2', 80, 8, 88, 0, 0, 0.25);",
            )
            .unwrap();
    }
    database
}

fn gathered(database: &Connection) -> Vec<u8> {
    let from = Gathered::Database(database);
    let parts = Sessions.parts(&from).unwrap();
    // One that nothing was said in is not there.
    assert_eq!(parts.len(), 1);
    let mut lines = Vec::new();
    Sessions.write(&from, &parts[0].id, &mut lines).unwrap();
    lines
}

#[test]
fn a_database() {
    let read = read(&gathered(&database(true)), "sessions.db").unwrap();
    assert_eq!(read.dialect, ROWS);
    assert_snapshot!(read.lines());
    let sum = Usage {
        input: Some(100),
        cache_read: Some(100),
        cache_write: Some(0),
        cache_write_1h: None,
        output: Some(20),
        reasoning: None,
    };
    assert_eq!(read.usage(), sum);
    assert_eq!(read.session.vendor_usage.map(Into::into), Some(sum));
    assert_eq!(read.session.parent.as_deref(), Some("20260102_1"));
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.5"));
}

#[test]
fn without_a_ledger_the_sum_counts() {
    let read = read(&gathered(&database(false)), "sessions.db").unwrap();
    assert_eq!(read.usage(), read.session.vendor_usage.unwrap().into());
}

#[test]
fn a_session_that_grows_keeps_its_beginning() {
    let database = database(true);
    let before = gathered(&database);
    let stamp = |database: &Connection| {
        let parts = Sessions.parts(&Gathered::Database(database)).unwrap();
        parts[0].stamp.clone()
    };
    let old = stamp(&database);
    database
        .execute_batch(
            "insert into messages (session_id, role, content_json, created_timestamp)
                values ('20260102_2', 'user', '[{\"type\":\"text\",\"text\":\"more\"}]', 1767323060);
             update sessions set name = 'Other', accumulated_input_tokens = 300 where id = '20260102_2';",
        )
        .unwrap();
    assert_ne!(stamp(&database), old);
    let after = gathered(&database);
    let same = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let last = before[..before.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap();
    assert!(same > last);
}

#[test]
fn an_export() {
    let about = &ABOUT[1..ABOUT.len() - 1];
    let text = format!(
        "{{\n\"id\":\"20260102_2\",{about},\"conversation\":[{}]}}",
        MESSAGES.join(",\n")
    );
    let document = read(text.as_bytes(), "export.json").unwrap();
    assert_eq!(document.dialect, EXPORT);
    assert_eq!(document.session.id.as_deref(), Some("20260102_2"));
    let file = read(lines().as_bytes(), "20260102_2.jsonl").unwrap();
    assert_eq!(document.words(), file.words());
    assert_eq!(document.usage(), file.usage());
}

#[test]
fn cached_tokens_inside_and_beside_the_input() {
    use quipu_model::json::Tape;
    for (text, input) in [
        (
            r#"{"input_tokens":100,"output_tokens":1,"total_tokens":101,"cache_read_tokens":60}"#,
            40,
        ),
        (
            r#"{"input_tokens":100,"output_tokens":1,"total_tokens":161,"cache_read_tokens":60}"#,
            100,
        ),
        (
            r#"{"input_tokens":10,"output_tokens":1,"cache_read_tokens":60}"#,
            10,
        ),
    ] {
        let mut tape = Tape::new();
        let usage = super::wire::usage(tape.read(text, 8).unwrap(), "").unwrap();
        assert_eq!(usage.input, Some(input), "{text}");
    }
}

#[test]
fn anything_may_stand_anywhere() {
    let mut hostile: Vec<String> = Vec::new();
    for key in [
        "role",
        "content",
        "created",
        "id",
        "metadata",
        "working_dir",
        "table",
        "row",
        "type",
        "toolCall",
        "toolResult",
        "text",
        "conversation",
        "model_config_json",
        "input_tokens",
    ] {
        for value in [
            "null",
            "-7",
            "1e999",
            "\"x\"",
            "[]",
            "{}",
            "[{\"type\":[]}]",
            "18446744073709551616",
        ] {
            hostile.push(format!("{{\"role\":\"user\",\"{key}\":{value}}}\n"));
            hostile.push(format!("{{\"role\":\"user\",\"content\":[{{\"type\":\"toolResponse\",\"{key}\":{value}}},{{\"type\":\"toolRequest\",\"{key}\":{value}}}]}}\n"));
            for table in ["sessions", "messages", "usage_ledger"] {
                hostile.push(format!(
                    "{{\"table\":\"{table}\",\"row\":{{\"{key}\":{value},\"content_json\":{value}}}}}\n"
                ));
            }
        }
    }
    let hostile = hostile.concat();
    for dialect in [ROWS, LINES] {
        read_as(&Goose, dialect, hostile.as_bytes(), "x");
    }
    for line in hostile.lines() {
        read_as(&Goose, EXPORT, line.as_bytes(), "x");
    }
    let all = lines();
    for end in 0..all.len() {
        read_as(&Goose, LINES, &all.as_bytes()[..end], "x");
    }
}

#[test]
fn a_database_that_is_another() {
    let database = Connection::open_in_memory().unwrap();
    let from = Gathered::Database(&database);
    assert!(Sessions.parts(&from).is_err());
    assert!(Sessions.parts(&Gathered::Tree("/".as_ref())).is_err());
}

/// One row that is not as the others are does not keep the others from being read.
#[test]
fn rows_of_any_kind() {
    let database = database(true);
    database
        .execute_batch(
            "insert into sessions (id, updated_at) values (x'ff00', x'ff'), (null, 'x');
             insert into messages (session_id, role, content_json, created_timestamp)
                values (x'ff00', x'ff', '[{\"type\":\"text\",\"text\":\"hi\"}]', 'x'), (null, 1, 2, 3);
             update sessions set updated_at = 7 where id = '20260102_2';
             update messages set created_timestamp = 'x', role = x'ff' where id = 1;
             update usage_ledger set created_timestamp = x'ff' where id = 1;",
        )
        .unwrap();
    let from = Gathered::Database(&database);
    let parts = Sessions.parts(&from).unwrap();
    let mut ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["20260102_2", "x'ff00'"]);
    for (id, records) in [("20260102_2", MESSAGES.len() as u64 + 4), ("x'ff00'", 3)] {
        let mut lines = Vec::new();
        Sessions.write(&from, id, &mut lines).unwrap();
        let read = crate::testkit::read_as(&super::Goose, ROWS, &lines, "x");
        assert_eq!(read.ledger.records, records, "{id}");
    }
}
