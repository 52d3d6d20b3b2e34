use insta::assert_snapshot;
use quipu_model::Status;
use rusqlite::Connection;

use super::gather::Conversations;
use super::{Cursor, ROWS, STREAM, TEXT, TRANSCRIPT};
use crate::corpus::logs;
use crate::testkit::{Read, read, read_as};
use crate::{Gather as _, Gathered};

const LINES: &str = include_str!("../../fixtures/cursor/session.jsonl");

#[test]
fn a_transcript() {
    let path = "p/agent-transcripts/parent/subagents/child.jsonl";
    let read = read(LINES.as_bytes(), path).unwrap();
    assert_eq!(read.dialect, TRANSCRIPT);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.id.as_deref(), Some("child"));
    assert_eq!(read.session.parent.as_deref(), Some("parent"));
}

const TRANSCRIPT_TEXT: &str = "\
user:
<user_query>
Deploy the thing.
[Tool call] is not one
</user_query>

A:
I begin.
[Tool call] Shell
  command: npm run deploy
  description: Deploy
    at once

[Tool result] Shell
  done
  well

That went well.
[Thinking] All is fine.
assistant:
[Thinking]
  Really?
[Tool call] Read
  path=a.txt
Finished.
user:
thanks
";

#[test]
fn a_transcript_that_is_text() {
    let read = read(TRANSCRIPT_TEXT.as_bytes(), "p/agent-transcripts/abc.txt").unwrap();
    assert_eq!(read.dialect, TEXT);
    assert_snapshot!(read.lines());
}

#[test]
fn other_texts_are_left_alone() {
    for text in [
        "user: hello\n",
        "hello\nuser:\nassistant:\n",
        "",
        "user:\n",
        "# user:\n\nassistant:\n",
    ] {
        let found = crate::identify(text.as_bytes(), true);
        assert!(
            found.is_none_or(|(family, _)| family.name() != "cursor"),
            "{text}"
        );
    }
}

const STREAM_LINES: &str = include_str!("../../fixtures/cursor-stream/session.jsonl");

fn statuses(read: &Read) -> Vec<Status> {
    read.events
        .iter()
        .filter_map(|event| event.annotations.status)
        .collect()
}

#[test]
fn a_stream() {
    let read = read(STREAM_LINES.as_bytes(), "x.jsonl").unwrap();
    assert_eq!(read.dialect, STREAM);
    assert_snapshot!(read.lines());
    assert_eq!(statuses(&read), [Status::Denied, Status::Error]);
    assert_eq!(read.usage(), read.session.vendor_usage.unwrap().into());
}

#[test]
fn a_stream_that_breaks_off() {
    let cut: Vec<&str> = STREAM_LINES.split_inclusive('\n').take(7).collect();
    let cut = cut.concat();
    let read = read(cut.as_bytes(), "x.jsonl").unwrap();
    let words = [
        "note.session",
        "message.user",
        "message.assistant",
        "message.assistant",
    ];
    assert_eq!(read.words(), words);
}

fn state() -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table ItemTable (key text unique on conflict replace, value blob);
             create table cursorDiskKV (key text unique on conflict replace, value blob);",
        )
        .unwrap();
    let put = |table: &str, key: &str, value: &str| {
        let query = format!("insert into {table} values (?1, ?2)");
        database
            .execute(&query, rusqlite::params![key, value.as_bytes()])
            .unwrap();
    };
    let disk = |key: &str, value: &str| put("cursorDiskKV", key, value);
    disk(
        "composerData:c1",
        r#"{"_v":10,"composerId":"c1","name":"Look","createdAt":1767323045000,"lastUpdatedAt":1767323050000,"createdOnBranch":"main","workspaceIdentifier":{"uri":{"fsPath":"/code"}},
            "fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b3","type":2},{"bubbleId":"b2","type":2},{"bubbleId":"b4","type":2},{"bubbleId":"b5","type":2},{"bubbleId":"gone","type":2}],"subComposerIds":["c9"]}"#,
    );
    disk(
        "composerData:empty",
        r#"{"composerId":"empty","fullConversationHeadersOnly":[]}"#,
    );
    disk(
        "composerData:old",
        r#"{"composerId":"old","conversation":[{"type":1,"bubbleId":"o1","text":"hi"},{"type":2,"bubbleId":"o2","text":"hello"}]}"#,
    );
    disk(
        "bubbleId:c1:b1",
        r#"{"_v":3,"type":1,"bubbleId":"b1","text":"what is here?","createdAt":"2026-01-02T03:04:05.000Z"}"#,
    );
    disk(
        "bubbleId:c1:b2",
        r#"{"_v":3,"type":2,"bubbleId":"b2","text":"","capabilityType":15,"createdAt":"2026-01-02T03:04:07.000Z","modelInfo":{"modelName":"m-1"},"toolFormerData":{"name":"read_file_v2","toolCallId":"t1","status":"completed","params":"{\"path\":\"a\"}","result":"{\"contents\":\"x\"}"}}"#,
    );
    disk(
        "bubbleId:c1:b3",
        r#"{"_v":3,"type":2,"bubbleId":"b3","text":"","capabilityType":30,"createdAt":"2026-01-02T03:04:06.000Z","thinking":{"text":"I think","signature":"s"},"thinkingDurationMs":12,"allThinkingBlocks":[{"text":"I think"}]}"#,
    );
    disk(
        "bubbleId:c1:b4",
        r#"{"_v":3,"type":2,"bubbleId":"b4","text":"","capabilityType":15,"createdAt":"2026-01-02T03:04:08.000Z","toolFormerData":{"name":"run_terminal_command_v2","toolCallId":"t2","status":"cancelled","userDecision":"rejected","rawArgs":"{\"command\":\"rm\"}","result":null}}"#,
    );
    disk(
        "bubbleId:c1:b5",
        r#"{"_v":3,"type":2,"bubbleId":"b5","text":"A file.","createdAt":"2026-01-02T03:04:09.000Z","tokenCount":{"inputTokens":100,"outputTokens":7},"modelInfo":{"modelName":"m-1"},"sparkle":1}"#,
    );
    disk(
        "bubbleId:c1:b6",
        r#"{"_v":3,"type":2,"bubbleId":"b6","text":"","capabilityType":22,"createdAt":"2026-01-02T03:04:10.000Z"}"#,
    );
    disk(
        "bubbleId:c1:b7",
        r#"{"_v":3,"type":2,"bubbleId":"b7","text":"","createdAt":"2026-01-02T03:04:10.000Z"}"#,
    );
    put(
        "ItemTable",
        super::wire::OLD_KEY,
        r#"{"tabs":[{"tabId":"tab1","chatTitle":"Old","lastSendTime":1,"bubbles":[{"type":"user","id":"x1","text":"old question"},{"type":"ai","id":"x2","rawText":"old answer","modelType":"gpt-4"}]},{"tabId":"tab2","bubbles":[]}]}"#,
    );
    database
}

fn gathered(database: &Connection, id: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    Conversations
        .write(&Gathered::Database(database), id, &mut lines)
        .unwrap();
    lines
}

#[test]
fn the_database_of_the_editor() {
    let database = state();
    let from = Gathered::Database(&database);
    let parts = Conversations.parts(&from).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["c1", "old", "tab1"]);
    let log = read(&gathered(&database, "c1"), "state.vscdb").unwrap();
    assert_eq!(log.dialect, ROWS);
    assert_snapshot!(log.lines());
    assert_eq!(statuses(&log), [Status::Ok, Status::Denied]);
    for id in ["old", "tab1"] {
        let log = read(&gathered(&database, id), "state.vscdb").unwrap();
        assert_eq!(log.session.id.as_deref(), Some(id));
        assert_eq!(
            log.words(),
            ["note.session", "message.user", "message.assistant"]
        );
    }
    assert!(Conversations.write(&from, "none", &mut Vec::new()).is_err());
    let stamp = parts[0].stamp.clone();
    database
        .execute_batch(
            "insert into cursorDiskKV values ('bubbleId:c1:b9', '{\"type\":1,\"text\":\"more\"}')",
        )
        .unwrap();
    assert_ne!(Conversations.parts(&from).unwrap()[0].stamp, stamp);
}

#[test]
fn the_database_of_the_command_line() {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch("create table blobs (id text primary key, data blob); create table meta (key text primary key, value text);")
        .unwrap();
    let mut root = Vec::new();
    let messages: [&[u8]; 6] = [
        br#"{"role":"system","content":"You are an agent."}"#,
        br#"{"role":"user","content":[{"type":"text","text":"<user_info>x</user_info>\n<user_query>\nlist\n</user_query>"}]}"#,
        br#"{"id":"1","role":"assistant","content":[{"type":"redacted-reasoning","data":"x"},{"type":"reasoning","text":"so"},{"type":"text","text":"I look."},{"type":"tool-call","toolCallId":"t1","toolName":"Shell","args":{"command":"ls"}}]}"#,
        br#"{"id":"t1","role":"tool","content":[{"type":"tool-result","toolCallId":"t1","toolName":"Shell","result":"a"}]}"#,
        b"\x0a\x02hi",
        br#"{"role":"assistant","content":[{"type":"wonder"}]}"#,
    ];
    for (index, message) in messages.iter().enumerate() {
        let mut id = [0_u8; 32];
        id[0] = u8::try_from(index + 1).unwrap();
        let name = quipu_model::hex::encode(&id);
        database
            .execute(
                "insert into blobs values (?1, ?2)",
                rusqlite::params![name, message],
            )
            .unwrap();
        root.extend_from_slice(&[0x0a, 32]);
        root.extend_from_slice(&id);
    }
    // Other fields of the root: a number, a text, and one that is cut off.
    root.extend_from_slice(&[0x10, 0x96, 0x01, 0x4a, 0x02, b'/', b'w', 0x0a, 0xff]);
    let name = "ff".repeat(32);
    database
        .execute(
            "insert into blobs values (?1, ?2)",
            rusqlite::params![name, root],
        )
        .unwrap();
    let meta = format!(
        r#"{{"agentId":"a1","latestRootBlobId":"{name}","name":"List","createdAt":1767323045000}}"#
    );
    let hex = quipu_model::hex::encode(meta.as_bytes());
    database
        .execute("insert into meta values ('0', ?1)", [hex])
        .unwrap();
    let parts = Conversations.parts(&Gathered::Database(&database)).unwrap();
    assert_eq!(parts.len(), 1);
    let log = read(&gathered(&database, "a1"), "store.db").unwrap();
    assert_eq!(log.dialect, ROWS);
    assert_eq!(log.blobs, 1);
    assert_snapshot!(log.lines());
}

#[test]
fn real_transcripts() {
    for (name, bytes) in logs("cursor") {
        let log = read(&bytes, &name).unwrap();
        assert_eq!(log.dialect, TRANSCRIPT, "{name}");
        assert!(log.ledger.drift.unknown.is_empty(), "{name}");
        assert_eq!(log.ledger.orphans, 0, "{name}");
    }
}

#[test]
fn anything_may_stand_anywhere() {
    let mut hostile: Vec<String> = Vec::new();
    for key in [
        "role",
        "message",
        "content",
        "type",
        "subtype",
        "tool_call",
        "text",
        "key",
        "value",
        "id",
        "data",
        "toolFormerData",
        "thinking",
        "images",
        "bubbles",
        "conversation",
        "tokenCount",
        "$base64",
        "allThinkingBlocks",
        "errorDetails",
        "usage",
        "createdAt",
    ] {
        for value in [
            "null",
            "-7",
            "1e999",
            "\"x\"",
            "[]",
            "{}",
            "[{\"type\":[]}]",
            "[\"\\ud800\"]",
        ] {
            hostile.push(format!("{{\"role\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"{key}\":{value}}}]}},\"{key}\":{value}}}\n"));
            for kind in [
                "assistant",
                "thinking",
                "tool_call",
                "result",
                "system",
                "user",
            ] {
                hostile.push(format!("{{\"type\":\"{kind}\",\"subtype\":\"completed\",\"session_id\":\"s\",\"tool_call\":{{\"xToolCall\":{value}}},\"{key}\":{value}}}\n"));
            }
            for table in ["cursorDiskKV", "ItemTable", "blobs", "meta"] {
                for name in ["bubbleId:a:b", "bubbleId:", "composerData:a", "x"] {
                    hostile.push(format!("{{\"table\":\"{table}\",\"row\":{{\"key\":\"{name}\",\"value\":{{\"role\":\"user\",\"{key}\":{value}}}}}}}\n"));
                }
                hostile.push(format!(
                    "{{\"table\":\"{table}\",\"row\":{{\"{key}\":{value}}}}}\n"
                ));
            }
        }
    }
    let hostile = hostile.concat();
    for dialect in [ROWS, STREAM, TRANSCRIPT, TEXT] {
        read_as(&Cursor, dialect, hostile.as_bytes(), "x");
    }
    for (dialect, log) in [
        (TRANSCRIPT, LINES),
        (STREAM, STREAM_LINES),
        (TEXT, TRANSCRIPT_TEXT),
    ] {
        for end in (0..log.len()).filter(|end| log.is_char_boundary(*end)) {
            read_as(&Cursor, dialect, &log.as_bytes()[..end], "x");
        }
    }
    let broken = Connection::open_in_memory().unwrap();
    broken
        .execute_batch("create table cursorDiskKV (key text, value blob); insert into cursorDiskKV values ('composerData:x', x'ff'), ('composerData:y', null), ('composerData:z', 7);")
        .unwrap();
    let parts = Conversations.parts(&Gathered::Database(&broken)).unwrap();
    assert_eq!(parts.len(), 1);
    let log = read_as(&Cursor, ROWS, &gathered(&broken, "x"), "x");
    assert_eq!(log.words(), ["note.session"]);
}

/// Bubbles whose conversation is gone, or is no JSON.
#[test]
fn bubbles_without_a_conversation() {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            r#"create table cursorDiskKV (key text unique on conflict replace, value blob);
             insert into cursorDiskKV values
                ('composerData:torn', '{"name":"T'),
                ('bubbleId:torn:b1', '{"type":1,"bubbleId":"b1","text":"one"}'),
                ('bubbleId:lone:b2', '{"type":1,"bubbleId":"b2","text":"two"}'),
                ('bubbleId:lone:b1', '{"type":2,"bubbleId":"b1","text":"three"}'),
                ('composerData:gone', null),
                ('bubbleId:gone:b1', '{"type":2,"bubbleId":"b1","text":"four"}'),
                ('bubbleId:odd', '{}'),
                ('bubbleId:' || cast(x'ff' as text) || ':b', '{}');"#,
        )
        .unwrap();
    let parts = Conversations.parts(&Gathered::Database(&database)).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["gone", "torn", "lone"]);
    let read = |id: &str| read_as(&Cursor, ROWS, &gathered(&database, id), "x");
    assert_eq!(read("torn").words(), ["message.user", "note.session"]);
    assert!(read("torn").lines().contains(r#"{\"name\":\"T"#));
    let lone = read("lone");
    assert_eq!(lone.words(), ["message.user", "message.assistant"]);
    assert_eq!(lone.session.id.as_deref(), Some("lone"));
    assert_eq!(read("gone").words(), ["message.assistant"]);
}

/// An edit need not change how long a value is.
#[test]
fn an_edit_in_place_changes_the_stamp() {
    let database = state();
    let stamp = |id: &str| {
        let parts = Conversations.parts(&Gathered::Database(&database)).unwrap();
        let part = parts.into_iter().find(|part| part.id == id);
        part.unwrap().stamp
    };
    let (c1, old, tab1) = (stamp("c1"), stamp("old"), stamp("tab1"));
    database
        .execute_batch(
            "update cursorDiskKV set value = replace(value, '2026-01-02', '2026-01-03')
                where key = 'bubbleId:c1:b7';
             update ItemTable set value = replace(value, 'old answer', 'new answer');",
        )
        .unwrap();
    assert_ne!(stamp("c1"), c1);
    assert_eq!(stamp("old"), old);
    assert_ne!(stamp("tab1"), tab1);
}
