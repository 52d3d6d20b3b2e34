mod hostile;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use insta::assert_snapshot;
use quipu_model::json::{Node, Tape};
use quipu_model::{Body, Event, Status, Usage};
use rusqlite::Connection;

use super::{EVENTS, EXPORT, OpenCode, ROWS, RUN, SSE, gather::Sessions};
use crate::corpus::logs;
use crate::testkit::{Read, read, read_as};
use crate::{Gather as _, Gathered};

const EXPORT_TEXT: &str = r#"{
  "info": {"id":"ses_1","slug":"s","projectID":"p","directory":"/code","parentID":"ses_0","title":"Look around","version":"1.18.5","cost":0.25,
    "tokens":{"input":30,"output":20,"reasoning":5,"cache":{"read":100,"write":7}},
    "revert":{"messageID":"msg_4"},"time":{"created":1767323045000,"updated":1767323099000}},
  "messages": [
    {"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1767323045000},"agent":"build","model":{"providerID":"x","modelID":"m-1"}},
     "parts":[
      {"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"what is here?"},
      {"id":"prt_2","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"Called the Read tool","synthetic":true},
      {"id":"prt_3","sessionID":"ses_1","messageID":"msg_1","type":"file","mime":"image/png","filename":"a.png","url":"data:image/png;base64,iVBORw0KGgo="},
      {"id":"prt_4","sessionID":"ses_1","messageID":"msg_1","type":"agent","name":"plan"}]},
    {"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":"msg_1","modelID":"m-1","providerID":"x","mode":"build","agent":"build","path":{"cwd":"/code","root":"/"},"cost":0.1,
       "tokens":{"total":70,"input":10,"output":5,"reasoning":5,"cache":{"read":50,"write":0}},"finish":"tool-calls","time":{"created":1767323046000,"completed":1767323050000}},
     "parts":[
      {"id":"prt_5","sessionID":"ses_1","messageID":"msg_2","type":"step-start","snapshot":"abc"},
      {"id":"prt_6","sessionID":"ses_1","messageID":"msg_2","type":"reasoning","text":"","time":{"start":1767323046100,"end":1767323046200}},
      {"id":"prt_7","sessionID":"ses_1","messageID":"msg_2","type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"ls"},"output":"a","title":"ls","metadata":{"exit":0},"time":{"start":1767323046300,"end":1767323046900}}},
      {"id":"prt_8","sessionID":"ses_1","messageID":"msg_2","type":"tool","tool":"bash","callID":"c2","state":{"status":"completed","input":{"command":"false"},"output":"","title":"","metadata":{"exit":1},"time":{"start":1767323046300,"end":1767323046400}}},
      {"id":"prt_9","sessionID":"ses_1","messageID":"msg_2","type":"tool","tool":"edit","callID":"c3","state":{"status":"error","input":{},"error":"The user rejected permission to use this specific tool call.","time":{"start":1767323046500,"end":1767323046600}}},
      {"id":"prt_a","sessionID":"ses_1","messageID":"msg_2","type":"tool","tool":"bash","callID":"c4","state":{"status":"completed","input":{"command":"sleep 9"},"output":"<bash_metadata>\nbash tool terminated command after exceeding timeout 1000 ms","title":"","metadata":{"exit":143},"time":{"start":1767323046500,"end":1767323046600,"compacted":1767323060000}}},
      {"id":"prt_b","sessionID":"ses_1","messageID":"msg_2","type":"tool","tool":"task","callID":"c5","state":{"status":"running","input":{"prompt":"look"},"metadata":{"sessionId":"ses_2"},"time":{"start":1767323046700}}},
      {"id":"prt_c","sessionID":"ses_1","messageID":"msg_2","type":"patch","hash":"h","files":["a"]},
      {"id":"prt_d","sessionID":"ses_1","messageID":"msg_2","type":"step-finish","reason":"tool-calls","snapshot":"abd","tokens":{"total":70,"input":10,"output":5,"reasoning":5,"cache":{"read":50,"write":0}},"cost":0.1}]},
    {"info":{"id":"msg_3","sessionID":"ses_1","role":"assistant","parentID":"msg_1","modelID":"m-1","providerID":"x","mode":"compaction","agent":"compaction","summary":true,"path":{"cwd":"/code","root":"/"},"cost":0.15,
       "tokens":{"total":92,"input":20,"output":15,"reasoning":0,"cache":{"read":50,"write":7}},"finish":"stop","time":{"created":1767323051000,"completed":1767323052000}},
     "parts":[{"id":"prt_e","sessionID":"ses_1","messageID":"msg_3","type":"text","text":"We looked around.","time":{"start":1767323051500,"end":1767323051600}}]},
    {"info":{"id":"msg_4","sessionID":"ses_1","role":"user","time":{"created":1767323053000},"agent":"build","model":{"providerID":"x","modelID":"m-1"}},
     "parts":[{"id":"prt_f","sessionID":"ses_1","messageID":"msg_4","type":"text","text":"and then?"},
              {"id":"prt_g","sessionID":"ses_1","messageID":"msg_4","type":"compaction","auto":true}]},
    {"info":{"id":"msg_5","sessionID":"ses_1","role":"assistant","parentID":"msg_4","modelID":"m-1","providerID":"x","mode":"build","agent":"build","path":{"cwd":"/code","root":"/"},"cost":0,
       "tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"error":{"name":"MessageAbortedError","data":{"message":"Aborted"}},"time":{"created":1767323054000,"completed":1767323055000}},
     "parts":[{"id":"prt_h","sessionID":"ses_1","messageID":"msg_5","type":"wonder","sparkle":1}]}
  ]
}"#;

fn export() -> Read {
    let read = read(EXPORT_TEXT.as_bytes(), "export.json").unwrap();
    assert_eq!(read.dialect, EXPORT);
    read
}

#[test]
fn an_export() {
    let read = export();
    assert_snapshot!(read.lines());
    assert_eq!(read.blobs, 1);
    assert_eq!(read.session.title.as_deref(), Some("Look around"));
    assert_eq!(read.session.started_at, Some(1_767_323_045_000));
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.25"));
    let expected = Usage {
        input: Some(30),
        cache_read: Some(100),
        cache_write: Some(7),
        cache_write_1h: None,
        output: Some(25),
        reasoning: Some(5),
    };
    assert_eq!(read.usage(), expected);
    assert_eq!(read.session.vendor_usage.map(Into::into), Some(expected));
}

#[test]
fn what_was_gone_back_from_no_longer_counts() {
    let read = export();
    let superseded: Vec<String> = read
        .events
        .iter()
        .zip(read.words())
        .filter(|(event, _)| event.annotations.flags.superseded)
        .map(|(_, word)| word)
        .collect();
    assert_eq!(
        superseded,
        [
            "note.turn",
            "message.user",
            "note.compaction",
            "note.model_call",
            "note.error",
            "note.unknown_record"
        ]
    );
}

#[test]
fn how_calls_ended() {
    let read = export();
    let ends: Vec<Option<Status>> = read
        .events
        .iter()
        .filter(|event| event.body.type_word() == "tool.result")
        .map(|event| event.annotations.status)
        .collect();
    let expected = [Status::Ok, Status::Error, Status::Denied, Status::Timeout];
    assert_eq!(ends, expected.map(Some));
    let dangling = read.events.iter().filter(|e| e.annotations.flags.dangling);
    assert_eq!(dangling.count(), 1);
}

/// A database as `OpenCode` makes it.
fn schema() -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table project (id text primary key, worktree text, vcs text, time_updated integer);
             create table session (id text primary key, project_id text, parent_id text, slug text,
                directory text, title text, version text, cost real, tokens_input integer,
                tokens_output integer, tokens_reasoning integer, tokens_cache_read integer,
                tokens_cache_write integer, revert text, permission text,
                time_created integer, time_updated integer);
             create table message (id text primary key, session_id text, time_created integer,
                time_updated integer, data text);
             create table part (id text primary key, message_id text, session_id text,
                time_created integer, time_updated integer, data text);
             create table todo (session_id text, content text, status text, priority text,
                position integer, time_created integer, time_updated integer);
             create table session_message (id text primary key, session_id text, type text,
                seq integer, time_created integer, time_updated integer, data text);",
        )
        .unwrap();
    database
}

/// An object without some of its fields.
fn without(node: Node<'_>, fields: &[&str]) -> String {
    crate::blocks::without(node, fields)
        .to_json()
        .get()
        .to_owned()
}

/// Puts an export into a database, as the importer of `OpenCode` would.
fn fill(database: &Connection, document: Node<'_>) -> String {
    let info = document.get("info").unwrap();
    let text = |key: &str| info.text(key).map(String::from);
    let number = |keys: &[&str]| info.path(keys).and_then(|n| n.as_i64()).unwrap_or(0);
    let id = text("id").unwrap();
    database
        .execute(
            "insert into project values (?1, '/', 'git', 7) on conflict do nothing",
            [text("projectID")],
        )
        .unwrap();
    database
        .execute(
            "insert into session values (?1, ?2, ?3, 'slug', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, null, ?14, ?15)",
            rusqlite::params![
                id,
                text("projectID"),
                text("parentID"),
                text("directory"),
                text("title"),
                text("version"),
                info.get("cost").and_then(|n| n.as_f64()),
                number(&["tokens", "input"]),
                number(&["tokens", "output"]),
                number(&["tokens", "reasoning"]),
                number(&["tokens", "cache", "read"]),
                number(&["tokens", "cache", "write"]),
                info.get("revert").map(|revert| revert.raw().get().to_owned()),
                number(&["time", "created"]),
                number(&["time", "updated"]),
            ],
        )
        .unwrap();
    for item in document.get("messages").unwrap().items() {
        let info = item.get("info").unwrap();
        let message = info.text("id").unwrap();
        let created = info
            .path(&["time", "created"])
            .and_then(|n| n.as_i64())
            .unwrap();
        let data = without(info, &["id", "sessionID"]);
        database
            .execute(
                "insert into message values (?1, ?2, ?3, ?3, ?4)",
                rusqlite::params![&*message, id, created, data],
            )
            .unwrap();
        for part in item.get("parts").unwrap().items() {
            let data = without(part, &["id", "sessionID", "messageID"]);
            database
                .execute(
                    "insert into part values (?1, ?2, ?3, ?4, ?4, ?5)",
                    rusqlite::params![part.text("id").unwrap(), &*message, id, created, data],
                )
                .unwrap();
        }
    }
    id
}

fn gathered(from: &Gathered<'_>, id: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    Sessions.write(from, id, &mut lines).unwrap();
    lines
}

/// The events of the conversation, without where they stood.
fn conversation(read: &Read) -> Vec<Event> {
    let talk = read
        .events
        .iter()
        .filter(|event| !matches!(event.body, Body::Note(_)));
    talk.cloned()
        .enumerate()
        .map(|(index, mut event)| {
            event.seq = index as u64;
            event.annotations.source = None;
            event
        })
        .collect()
}

fn assert_same(one: &Read, other: &Read, name: &str) {
    assert_eq!(conversation(one), conversation(other), "{name}");
    assert_eq!(one.session, other.session, "{name}");
    assert_eq!(one.usage(), other.usage(), "{name}");
}

#[test]
fn rows_read_as_the_export_does() {
    let mut all = logs("opencode");
    all.retain(|(name, _)| name.starts_with("export-"));
    all.push(("own".to_owned(), EXPORT_TEXT.as_bytes().to_vec()));
    for (name, bytes) in all {
        let document = read(&bytes, &name).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut tape = Tape::new();
        let database = schema();
        let id = fill(&database, tape.read(&text, 128).unwrap());
        let from = Gathered::Database(&database);
        let lines = gathered(&from, &id);
        let rows = read(&lines, &name).unwrap();
        assert_eq!(rows.dialect, ROWS, "{name}");
        let unknown = &rows.ledger.drift.unknown;
        assert!(unknown.is_empty() || name == "own", "{name}: {unknown:?}");
        assert_same(&document, &rows, &name);
    }
}

#[test]
fn a_session_that_grows_keeps_its_beginning() {
    let mut tape = Tape::new();
    let database = schema();
    let id = fill(&database, tape.read(EXPORT_TEXT, 128).unwrap());
    let from = Gathered::Database(&database);
    let parts = Sessions.parts(&from).unwrap();
    assert_eq!(parts.len(), 1);
    let before = gathered(&from, &id);
    database
        .execute_batch(
            "insert into message values ('msg_6', 'ses_1', 1767323090000, 1767323090000,
                '{\"role\":\"user\",\"time\":{\"created\":1767323090000}}');
             update session set time_updated = 1767323090000, title = 'Other', tokens_input = 99;",
        )
        .unwrap();
    let after = gathered(&from, &id);
    assert_ne!(Sessions.parts(&from).unwrap()[0].stamp, parts[0].stamp);
    let same = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let last = before.iter().rposition(|b| *b == b'\n').unwrap();
    let last_line = before[..last].iter().rposition(|b| *b == b'\n').unwrap();
    assert!(same > last_line, "only the last row is another");
    assert_snapshot!(String::from_utf8(before).unwrap().lines().next().unwrap());
}

#[test]
fn an_empty_session_is_none() {
    let database = schema();
    database
        .execute_batch(
            "insert into session (id, version, time_created) values ('ses_9', '1.0.0', 1)",
        )
        .unwrap();
    assert_eq!(Sessions.parts(&Gathered::Database(&database)).unwrap(), []);
}

#[test]
fn a_database_that_is_another() {
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch("create table t (x)").unwrap();
    let from = Gathered::Database(&database);
    assert!(Sessions.parts(&from).is_err());
    assert!(Sessions.write(&from, "x", &mut Vec::new()).is_err());
}

#[test]
fn messages_of_the_second_kind() {
    let database = schema();
    database
        .execute_batch(
            r#"insert into session (id, directory, title, version, time_created, time_updated)
                values ('ses_3', '/code', 'Second', '1.18.5', 1767323045000, 1767323045000);
             insert into todo values ('ses_3', 'rest', 'pending', 'low', 0, 1, 1);
             insert into session_message values
               ('m2', 'ses_3', 'assistant', 2, 1767323046000, 1767323046000, '{"agent":"build","model":{"id":"m-1","providerID":"x"},"tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":3,"write":0}},"finish":"stop","time":{"created":1767323046000,"completed":1767323049000},"content":[{"type":"reasoning","id":"r1","text":""},{"type":"text","id":"t1","text":"hello"},{"type":"tool","id":"c1","name":"bash","state":{"status":"completed","input":{"command":"ls"},"content":[{"type":"text","text":"a"}],"structured":{}},"time":{"created":1767323047000,"ran":1767323047100,"completed":1767323047200}},{"type":"tool","id":"c2","name":"edit","state":{"status":"error","input":{},"content":[],"structured":{},"error":{"type":"unknown","message":"no such file"}},"time":{"created":1767323047000}}]}'),
               ('m1', 'ses_3', 'user', 1, 1767323045000, 1767323045000, '{"text":"hi","files":[{"uri":"data:text/plain;base64,aGk=","mime":"text/plain","name":"n"}],"time":{"created":1767323045000}}'),
               ('m3', 'ses_3', 'shell', 3, 1767323050000, 1767323050000, '{"callID":"s1","command":"pwd","output":"/code","time":{"created":1767323050000,"completed":1767323050500}}'),
               ('m4', 'ses_3', 'compaction', 4, 1767323051000, 1767323051000, '{"reason":"auto","summary":"short","recent":"","time":{"created":1767323051000}}'),
               ('m5', 'ses_3', 'model-switched', 5, 1767323051000, 1767323051000, '{"model":{"id":"m-2","providerID":"x"},"time":{"created":1767323051000}}'),
               ('m6', 'ses_3', 'synthetic', 6, 1767323051000, 1767323051000, '{"sessionID":"ses_3","text":"note","time":{"created":1767323051000}}'),
               ('m7', 'ses_3', 'news', 7, 1767323051000, 1767323051000, '{"time":{"created":1767323051000}}');"#,
        )
        .unwrap();
    let from = Gathered::Database(&database);
    assert_eq!(Sessions.parts(&from).unwrap().len(), 1);
    let read = read(&gathered(&from, "ses_3"), "opencode.db").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!((usage.output, usage.reasoning), (Some(7), Some(2)));
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// Puts an export into a tree of small files, spread over lines as `OpenCode` wrote them.
fn plant(root: &Path, document: Node<'_>) {
    let pretty = |node: Node<'_>| node.raw().get().replacen('{', "{\n  ", 1);
    let info = document.get("info").unwrap();
    let session = info.text("id").unwrap();
    let name = format!("session/p/{session}.json");
    put(&root.join(name), &pretty(info));
    for item in document.get("messages").unwrap().items() {
        let info = item.get("info").unwrap();
        let message = info.text("id").unwrap();
        put(
            &root.join(format!("message/{session}/{message}.json")),
            &pretty(info),
        );
        for part in item.get("parts").unwrap().items() {
            let id = part.text("id").unwrap();
            put(
                &root.join(format!("part/{message}/{id}.json")),
                &pretty(part),
            );
        }
    }
}

#[test]
fn the_tree_reads_as_the_export_does() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    assert!(!Sessions.holds(root));
    let mut tape = Tape::new();
    plant(root, tape.read(EXPORT_TEXT, 128).unwrap());
    put(&root.join("session/p/broken.json"), "{");
    put(&root.join("session/p/up.json"), r#"{"id":"../../etc"}"#);
    assert!(Sessions.holds(root));
    let from = Gathered::Tree(root);
    let parts = Sessions.parts(&from).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["ses_1", "broken", "up"]);
    for (id, text) in [("broken", "{"), ("up", "../../etc")] {
        let read = read_as(&OpenCode, ROWS, &gathered(&from, id), "storage");
        assert_eq!(read.words(), ["note.malformed_line"], "{id}");
        assert!(read.lines().contains(text), "{id}");
    }
    assert!(Sessions.write(&from, "../../etc", &mut Vec::new()).is_err());
    let lines = gathered(&from, &parts[0].id);
    let tree = read(&lines, "storage").unwrap();
    assert_eq!(tree.dialect, ROWS);
    assert_same(&export(), &tree, "tree");
    put(
        &root.join("message/ses_1/msg_9.json"),
        r#"{"id":"msg_9","role":"user"}"#,
    );
    assert_ne!(Sessions.parts(&from).unwrap()[0].stamp, parts[0].stamp);
}

#[test]
fn lone_documents() {
    for (text, words) in [
        (
            r#"{"id":"s","version":"1.0.0","projectID":"p","directory":"/w","title":"t","time":{"created":1,"updated":2}}"#,
            vec!["note.session"],
        ),
        (
            r#"{"id":"m","sessionID":"s","role":"assistant","agent":"build","time":{"created":1767323045000},"tokens":{"input":1,"output":2}}"#,
            vec!["note.model_call"],
        ),
        (
            r#"{"id":"p","sessionID":"s","messageID":"m","type":"reasoning","text":"hm","time":{"start":1767323045000}}"#,
            vec!["message.assistant"],
        ),
        (
            r#"{"id":"p","type":"text","text":"Found it.","time":{"start":1767323045000}}"#,
            vec!["message.assistant"],
        ),
        (
            r#"{"name":"NotFoundError","data":{"message":"gone"}}"#,
            vec!["note.error"],
        ),
        (
            "{\n\"id\":\"evt\",\"type\":\"session.error\",\"properties\":{\"sessionID\":\"s\",\"error\":{\"name\":\"E\"}}}",
            vec!["note.error"],
        ),
        (
            r#"[{"info":{"id":"m","sessionID":"s","role":"user","agent":"build","time":{"created":1767323045000}},"parts":[{"id":"p","type":"text","text":"hi"}]}]"#,
            vec!["note.turn", "message.user"],
        ),
    ] {
        let read = read(text.as_bytes(), "x.json").unwrap();
        assert_eq!(read.dialect, EXPORT, "{text}");
        assert_eq!(read.words(), words, "{text}");
    }
}

/// An event of the server.
fn event(kind: &str, properties: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"properties\":{properties}}}\n")
}

fn told() -> String {
    let part = |part: &str| event("message.part.updated", &format!("{{\"part\":{part}}}"));
    let message = |info: &str| event("message.updated", &format!("{{\"info\":{info}}}"));
    let delta = |text: &str| {
        event(
            "message.part.delta",
            &format!(
                r#"{{"sessionID":"s1","messageID":"m2","partID":"p2","field":"text","delta":"{text}"}}"#
            ),
        )
    };
    let session = r#"{"info":{"id":"s1","version":"1.18.5","directory":"/w","title":"New session - 2026","time":{"created":1767323045000,"updated":1767323045000}}}"#;
    let titled = session.replace("New session - 2026", "Greeting");
    let user = r#"{"id":"m1","sessionID":"s1","role":"user","time":{"created":1767323045000},"agent":"build"}"#;
    let open = r#"{"id":"m2","sessionID":"s1","role":"assistant","modelID":"m-1","time":{"created":1767323046000},"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}"#;
    let done = r#"{"id":"m2","sessionID":"s1","role":"assistant","modelID":"m-1","time":{"created":1767323046000,"completed":1767323048000},"tokens":{"total":15,"input":10,"output":3,"reasoning":2,"cache":{"read":0,"write":0}}}"#;
    let tool = |state: &str| {
        part(&format!(
            r#"{{"id":"p3","sessionID":"s1","messageID":"m2","type":"tool","tool":"bash","callID":"c1","state":{state}}}"#
        ))
    };
    let finish = r#"{"id":"p4","sessionID":"s1","messageID":"m2","type":"step-finish","reason":"stop","tokens":{"total":15,"input":10,"output":3,"reasoning":2,"cache":{"read":0,"write":0}},"cost":0}"#;
    [
        event("server.connected", "{}"),
        event("session.created", session),
        message(user),
        part(r#"{"id":"p1","sessionID":"s1","messageID":"m1","type":"text","text":"hi"}"#),
        event("session.updated", &titled),
        event("session.updated", &titled),
        event("session.status", r#"{"sessionID":"s1","status":{"type":"busy"}}"#),
        message(open),
        part(r#"{"id":"p2","sessionID":"s1","messageID":"m2","type":"text","text":"","time":{"start":1767323046500}}"#),
        delta("hel"),
        delta("lo"),
        tool(r#"{"status":"pending","input":{}}"#),
        tool(r#"{"status":"running","input":{"command":"ls"},"time":{"start":1767323046600}}"#),
        part(r#"{"id":"p2","sessionID":"s1","messageID":"m2","type":"text","text":"hello","time":{"start":1767323046500,"end":1767323046900}}"#),
        tool(r#"{"status":"completed","input":{"command":"ls"},"output":"a","title":"ls","metadata":{},"time":{"start":1767323046600,"end":1767323047000}}"#),
        tool(r#"{"status":"completed","input":{"command":"ls"},"output":"a","title":"ls","metadata":{},"time":{"start":1767323046600,"end":1767323047000}}"#),
        part(finish),
        message(done),
        message(done),
        // Another session, of a sub-agent.
        event("session.created", r#"{"info":{"id":"s2","parentID":"s1","version":"1.18.5","directory":"/w","title":"t","time":{"created":1,"updated":1}}}"#),
        message(r#"{"id":"m9","sessionID":"s2","role":"user","time":{"created":1767323047000},"agent":"build"}"#),
        part(r#"{"id":"p9","sessionID":"s2","messageID":"m9","type":"text","text":"look"}"#),
        event("permission.asked", r#"{"id":"x","sessionID":"s1","permission":"bash"}"#),
        event("wonder.happened", r#"{"sessionID":"s1"}"#),
        // The log ends in the middle of a message.
        message(&open.replace("m2", "m3")),
        part(r#"{"id":"p5","sessionID":"s1","messageID":"m3","type":"reasoning","text":"so","time":{"start":1767323049000}}"#),
        event("message.part.delta", r#"{"sessionID":"s1","messageID":"m3","partID":"p5","field":"text","delta":" far"}"#),
        event("message.part.delta", r#"{"sessionID":"s1","messageID":"m3","partID":"p6","field":"text","delta":"lost its beginning"}"#),
        event("session.idle", r#"{"sessionID":"s1"}"#),
    ]
    .concat()
}

#[test]
fn events_come_to_what_was_told_last() {
    let told = told();
    let read = read(told.as_bytes(), "events.jsonl").unwrap();
    assert_eq!(read.dialect, EVENTS);
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (usage.input, usage.output, usage.reasoning),
        (Some(10), Some(5), Some(2))
    );
}

#[test]
fn events_as_the_server_sends_them() {
    let lines = told();
    let sent = format!("data: {}\n\n", lines.trim_end().replace('\n', "\n\ndata: "));
    let sent = read(sent.as_bytes(), "events.txt").unwrap();
    assert_eq!(sent.dialect, SSE);
    let lines = read(lines.as_bytes(), "events.jsonl").unwrap();
    assert_eq!(sent.words(), lines.words());
    // In a recorder's envelope.
    let text = told();
    let wrapped: Vec<String> = text
        .lines()
        .map(|line| format!("{{\"timestamp\":1767323045001,\"event\":{line}}}\n"))
        .collect();
    let wrapped = wrapped.concat();
    let wrapped = read(wrapped.as_bytes(), "events.jsonl").unwrap();
    assert_eq!(wrapped.dialect, EVENTS);
    assert_eq!(wrapped.words(), lines.words());
}

#[test]
fn the_output_of_run() {
    let line = |kind: &str, part: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"timestamp\":1767323045000,\"sessionID\":\"s1\",\"part\":{part}}}\n"
        )
    };
    let finish = |id: &str, of: &str, output: u64| {
        line(
            "step_finish",
            &format!(
                r#"{{"id":"{id}","sessionID":"s1","messageID":"{of}","type":"step-finish","reason":"stop","tokens":{{"input":10,"output":{output},"reasoning":0,"cache":{{"read":0,"write":0}}}},"cost":0}}"#
            ),
        )
    };
    let log = [
        line("step_start", r#"{"id":"p1","sessionID":"s1","messageID":"m1","type":"step-start"}"#),
        line("tool_use", r#"{"id":"p2","sessionID":"s1","messageID":"m1","type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"ls"},"output":"a","title":"ls","metadata":{"exit":0},"time":{"start":1767323044000,"end":1767323045000}}}"#),
        finish("p3", "m1", 4),
        // An old version with two steps in one message.
        finish("p4", "m1", 6),
        line("text", r#"{"id":"p5","sessionID":"s1","messageID":"m2","type":"text","text":"done","time":{"start":1767323045000,"end":1767323045000}}"#),
        finish("p6", "m2", 1),
        r#"{"type":"error","timestamp":1767323046000,"sessionID":"s1","error":{"name":"APIError","data":{"message":"no"}}}"#.to_owned() + "\n",
    ]
    .concat();
    let read = read(log.as_bytes(), "run.jsonl").unwrap();
    assert_eq!(read.dialect, RUN);
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!((usage.input, usage.output), (Some(30), Some(11)));
}

#[test]
fn sums_are_those_of_the_vendor() {
    let mut seen = 0;
    for (name, bytes) in logs("opencode") {
        let log = read(&bytes, &name).unwrap();
        if name.starts_with("as-") {
            continue;
        }
        let drift = &log.ledger.drift;
        assert!(drift.is_empty(), "{name}: {drift:?}");
        let Some(vendor) = log.session.vendor_usage else {
            continue;
        };
        seen += 1;
        assert_eq!(log.usage(), vendor.into(), "{name}");
        // The session has sums of its own. It adds what it calls output and reasoning, and cuts off
        // an output that is less than the reasoning in it, so there it may have more.
        let text = String::from_utf8(bytes).unwrap();
        let mut tape = Tape::new();
        let Ok(document) = tape.read(&text, 128) else {
            continue;
        };
        let own = |keys: &[&str]| document.get("info")?.get("tokens")?.path(keys)?.as_u64();
        if let (Some(input), Some(output)) = (own(&["input"]), own(&["output"])) {
            let (read, write) = (own(&["cache", "read"]), own(&["cache", "write"]));
            let usage = log.usage();
            assert_eq!(
                (usage.input, usage.cache_read),
                (Some(input), read),
                "{name}"
            );
            assert_eq!(usage.cache_write, write, "{name}");
            let more = (output + own(&["reasoning"]).unwrap_or(0)) - usage.output.unwrap();
            assert!(more <= 95, "{name}: {more}");
        }
    }
    assert!(seen == 0 || seen >= 18, "{seen}");
}

#[test]
fn copies_are_told_by_their_title() {
    let copy = EXPORT_TEXT.replace("Look around", "Look around (fork #2)");
    let read = read(copy.as_bytes(), "x.json").unwrap();
    assert_eq!(read.session.forked_from.as_deref(), Some("ses_0"));
    assert_eq!(read.session.parent, None);
}

/// Nothing of a tree that is not whole is left out.
#[test]
fn a_tree_that_is_not_whole() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let message = |id: &str, at: u64| {
        format!(r#"{{"id":"{id}","sessionID":"s","role":"user","time":{{"created":{at}}}}}"#)
    };
    let text = r#"{"id":"prt_1","type":"text","text":"hi"}"#;
    for (path, text) in [
        // A session with torn files.
        (
            "session/p/ses_a.json",
            r#"{"id":"ses_a","directory":"/w","version":"1"}"#,
        ),
        (
            "session/q/ses_a.json",
            r#"{"id":"ses_a","directory":"/other"}"#,
        ),
        ("message/ses_a/msg_1.json", "{\"id\":\"msg_1\",\"ro"),
        ("part/msg_1/prt_1.json", text),
        (
            "message/ses_a/msg_2.json",
            &message("msg_2", 1_767_323_045_000),
        ),
        ("part/msg_2/prt_2.json", ""),
        ("part/msg_2/prt_3.json", "[1]"),
        ("message/ses_a/msg_3.json", r#"{"role":"user"}"#),
        // One whose own file is torn.
        ("session/p/ses_b.json", "{\"id\":\"ses_b\""),
        (
            "message/ses_b/msg_4.json",
            &message("msg_4", 1_767_323_045_000),
        ),
        // One whose own file is gone.
        (
            "message/ses_c/msg_5.json",
            &message("msg_5", 1_767_323_045_000),
        ),
        ("part/msg_5/prt_5.json", text),
        // Parts whose message is gone.
        ("part/msg_6/prt_6.json", text),
        ("part/msg_6/prt_7.json", "{"),
        // A file beside all sessions.
        ("part/prt_8.json", "{}"),
        // A session in which nothing was said, and one under the name of another.
        ("session/p/ses_d.json", r#"{"id":"ses_d"}"#),
        ("session/p/other.json", r#"{"id":"ses_a","title":"copy"}"#),
    ] {
        put(&root.join(path), text);
    }
    let from = Gathered::Tree(root);
    let parts = Sessions.parts(&from).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    let expected = ["ses_a", "other", "ses_b", "ses_c", "msg_6", "stray files"];
    assert_eq!(ids, expected);
    let read = |id: &str| {
        let lines = gathered(&from, id);
        let origin = crate::Origin {
            path: Path::new("storage"),
            part: Some(id),
        };
        let reader = crate::Family::open(&OpenCode, &ROWS, &origin, None).unwrap();
        assert_eq!(reader.session().id.as_deref(), Some(id));
        let read = read_as(&OpenCode, ROWS, &lines, "storage");
        assert_eq!(crate::identify(&lines, true).unwrap().1, ROWS);
        read
    };
    let a = read("ses_a");
    assert_snapshot!(a.lines());
    for (id, words) in [
        ("other", vec!["note.malformed_line"]),
        ("ses_b", vec!["note.turn", "note.malformed_line"]),
        ("ses_c", vec!["note.turn", "message.user"]),
        ("msg_6", vec!["message.user", "note.malformed_line"]),
        ("stray files", vec!["note.malformed_line"]),
    ] {
        assert_eq!(read(id).words(), words, "{id}");
    }
}

fn records(from: &Gathered<'_>, id: &str) -> u64 {
    read_as(&OpenCode, ROWS, &gathered(from, id), "db")
        .ledger
        .records
}

/// Parts are changed in place. Only those of new sessions are looked at.
#[test]
fn parts_that_change_in_place_change_the_stamp() {
    let mut tape = Tape::new();
    let database = schema();
    fill(&database, tape.read(EXPORT_TEXT, 128).unwrap());
    let from = Gathered::Database(&database);
    let stamp = || {
        let parts = Sessions.parts(&from).unwrap();
        let part = parts.into_iter().find(|part| part.id == "ses_1");
        part.unwrap().stamp
    };
    let change = |sql: &str| database.execute_batch(sql).unwrap();
    let first = stamp();
    change("update part set time_updated = time_updated + 1 where id = 'prt_7'");
    let second = stamp();
    assert_ne!(first, second);
    change("update part set data = data || ' ' where id = 'prt_7'");
    let third = stamp();
    assert_ne!(second, third);
    // As many sessions that are newer by more than a week.
    for id in 0..50 {
        let at = 1_767_323_099_000_i64 + 8 * 24 * 60 * 60 * 1000;
        change(&format!(
            "insert into session (id, time_created, time_updated) values ('new_{id}', {at}, {at});
             insert into message values ('new_{id}', 'new_{id}', {at}, {at}, '{{}}')"
        ));
    }
    let old = stamp();
    assert!(first.starts_with(&old));
    change("update part set data = data || ' ' where id = 'prt_7'");
    assert_eq!(stamp(), old);
}

#[test]
fn what_a_free_model_costs_is_told_and_zero_of_others_is_not() {
    let export = |model: &str, cost: &str| {
        format!(
            r#"{{"info":{{"id":"ses_1","version":"1.18.5","projectID":"p","directory":"/code","title":"t","time":{{"created":1767323045000,"updated":1767323046000}}}},"messages":[{{"info":{{"id":"msg_1","sessionID":"ses_1","role":"assistant","parentID":"msg_0","modelID":"{model}","providerID":"opencode","mode":"build","agent":"build","path":{{"cwd":"/code","root":"/code"}},"cost":{cost},"tokens":{{"total":15,"input":10,"output":5,"reasoning":0,"cache":{{"read":0,"write":0}}}},"time":{{"created":1767323045500,"completed":1767323046000}}}},"parts":[{{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"step-finish","reason":"stop","tokens":{{"total":15,"input":10,"output":5,"reasoning":0,"cache":{{"read":0,"write":0}}}},"cost":{cost}}}]}}]}}"#
        )
    };
    for (model, cost, told) in [
        ("mimo-v2.5-free", "0", Some("0")),
        ("claude-opus-4.6", "0", None),
        ("claude-opus-4.6", "0.25", Some("0.25")),
    ] {
        let read = read(export(model, cost).as_bytes(), "export.json").unwrap();
        let rows: Vec<_> = read.summary.spend.iter().collect();
        assert_eq!(rows.len(), 1, "{model}");
        let (key, spend) = rows[0];
        let said = key.told.then(|| spend.told().to_string());
        assert_eq!(said.as_deref(), told, "{model} {cost}");
        assert_eq!(spend.calls, 1);
    }
}
