use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use super::{
    CHATGPT, CLAUDE_AI, CODEBUFF, Chat, GPTME, HERMES, MUSE, OPENHANDS, PART, POSIT, QWENPAW, VIBE,
};
use crate::corpus::fixtures;
use crate::testkit::{Read, hostile, read, read_as};
use crate::{Collect, Dialect, Family as _, Feed, Gather, Gathered, Host, Origin, Pick};

const VIBE_LOG: &str = include_str!("../../fixtures/vibe/session.jsonl");

const GPTME_LOG: &str = include_str!("../../fixtures/gptme/session.jsonl");

const HERMES_LOG: &str = include_str!("../../fixtures/hermes/session.json");

const POSIT_LOG: &str = include_str!("../../fixtures/posit-assistant/session.jsonl");

const QWENPAW_LOG: &str = include_str!("../../fixtures/qwenpaw/session.json");

const CODEBUFF_LOG: &str = include_str!("../../fixtures/codebuff/session.json");

const CHATGPT_LOG: &str = include_str!("../../fixtures/chatgpt-export/session.json");

const CLAUDE_AI_LOG: &str = include_str!("../../fixtures/claude-ai-export/session.json");

const OPENHANDS_LOG: &str = include_str!("../../fixtures/openhands/session.jsonl");

const MUSE_LOG: &str = include_str!("../../fixtures/muse/session.jsonl");

const LOGS: [(Dialect, &str); 10] = [
    (VIBE, VIBE_LOG),
    (GPTME, GPTME_LOG),
    (HERMES, HERMES_LOG),
    (POSIT, POSIT_LOG),
    (QWENPAW, QWENPAW_LOG),
    (CODEBUFF, CODEBUFF_LOG),
    (CHATGPT, CHATGPT_LOG),
    (CLAUDE_AI, CLAUDE_AI_LOG),
    (OPENHANDS, OPENHANDS_LOG),
    (MUSE, MUSE_LOG),
];

/// Every one of them, known by its content.
#[test]
fn every_kind() {
    for (dialect, log) in LOGS {
        let read = read(log.as_bytes(), "/d/named/conversation.jsonl").unwrap();
        assert_eq!(read.dialect, dialect);
        assert_eq!(read.ledger.orphans, 0, "{}", dialect.name);
        assert_snapshot!(dialect.name, read.lines());
    }
}

#[test]
fn anything_is_read() {
    for (dialect, log) in LOGS {
        hostile(&Chat, dialect, log);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file of a test, in a directory of its own"
)]
fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    fs::write(path, text)
}

/// A log with what lies beside it.
fn with_sidecar(dialect: Dialect, log: &[u8], beside: &[u8]) -> (crate::Session, Collect) {
    let origin = Origin {
        path: "log".as_ref(),
        part: None,
    };
    let mut feed = Feed::new(dialect.framing, Chat.open(&dialect, &origin, None).unwrap());
    let mut events = Collect::default();
    feed.push(log, &mut events);
    feed.finish(&mut events).unwrap();
    feed.sidecar("beside", beside, &mut events);
    events.mark(feed.ledger());
    (feed.session().clone(), events)
}

#[test]
fn tokens_of_vibe_are_beside_its_log() {
    let Some(root) = fixtures() else {
        return;
    };
    let folder = root.join("vibe");
    let log = fs::read(folder.join("av-vibe__session_basic__messages.jsonl")).unwrap();
    let meta = fs::read(folder.join("av-vibe__session_basic__meta.json")).unwrap();
    let (session, events) = with_sidecar(VIBE, &log, &meta);
    let mut sum = quipu_model::Usage::default();
    for usage in events
        .events
        .iter()
        .filter_map(|event| event.annotations.usage)
    {
        sum.add(&usage);
    }
    assert_eq!(
        session.vendor_usage.map(quipu_model::Usage::from),
        Some(sum)
    );
    assert_eq!(sum.total(), 150, "session_total_llm_tokens");
    assert_eq!(
        session.id.as_deref(),
        Some("abc123def-0000-0000-0000-000000000000")
    );
    assert_eq!(session.cwd.as_deref(), Some("/home/user/projects/myapp"));
    assert_eq!(session.branch.as_deref(), Some("main"));
}

#[test]
fn branches_of_posit_are_beside_its_log() {
    let tree = br#"{"root":{"id":"c1","title":"Sales","timestamp":1767323045000,"metadata":{"gitBranch":"main"}},"messages":[{"id":"x","isActive":true,"lmMessageIds":[0,1,2]},{"id":"y","isActive":false,"lmMessageIds":[3,99]}]}"#;
    let (session, events) = with_sidecar(POSIT, POSIT_LOG.as_bytes(), tree);
    assert_eq!(session.title.as_deref(), Some("Sales"));
    let gone: Vec<u64> = events
        .events
        .iter()
        .filter(|event| event.annotations.flags.superseded)
        .map(|event| event.seq)
        .collect();
    assert_eq!(gone, [6]);
}

#[test]
fn usage_of_posit_is_disjoint() {
    let Some(root) = fixtures() else {
        return;
    };
    for (name, total) in [
        ("11111111__lm-messages.jsonl", 401),
        ("22222222__lm-messages.jsonl", 55),
    ] {
        let folder = fs::read_dir(root.join("posit-assistant")).unwrap();
        let path = folder
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_str().is_some_and(|path| path.ends_with(name)));
        let read = read(&fs::read(path.unwrap()).unwrap(), "log").unwrap();
        assert_eq!(read.usage().total(), total, "the sum of totalTokens");
    }
}

fn gathered(from: &Gathered<'_>) -> Vec<(String, Read)> {
    let gather = Chat.gather().unwrap();
    let parts = gather.parts(from).unwrap();
    parts
        .into_iter()
        .map(|part| {
            let mut log = Vec::new();
            gather.write(from, &part.id, &mut log).unwrap();
            (part.id, read_as(&Chat, PART, &log, "part"))
        })
        .collect()
}

#[test]
fn exports_hold_many_conversations() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("conversations.json");
    write(&file, format!("[{CHATGPT_LOG},\n{CLAUDE_AI_LOG}]")).unwrap();
    let gather: &dyn Gather = Chat.gather().unwrap();
    assert!(gather.holds(folder.path()));
    for from in [Gathered::File(&file), Gathered::Tree(folder.path())] {
        let read = gathered(&from);
        let ids: Vec<&str> = read.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["conv1", "u1"]);
        for (id, read) in &read {
            assert_eq!(read.session.id.as_ref(), Some(id));
            assert!(read.events.len() > 2);
        }
    }
    write(&file, "[1,{\"id\":7},").unwrap();
    assert!(gather.parts(&Gathered::File(&file)).is_err());
    assert!(!gather.holds(folder.path()));
}

#[test]
fn events_of_openhands_are_files() {
    let folder = tempfile::tempdir().unwrap();
    let conversation = folder.path().join("conv-9");
    fs::create_dir_all(conversation.join("events")).unwrap();
    write(
        conversation.join("base_state.json"),
        "{\"id\":\"conv-9\",\n\"agent\":{\"llm\":{\"model\":\"m\",\"api_key\":\"secret\"}},\"workspace\":{\"working_dir\":\"/w\"}}",
    )
    .unwrap();
    for (index, line) in OPENHANDS_LOG.lines().enumerate() {
        let name = format!("events/event-{index:05}-x.json");
        write(conversation.join(name), line.replace(',', ",\n ")).unwrap();
    }
    assert!(Chat.gather().unwrap().holds(&conversation));
    let from = Gathered::Tree(&conversation);
    let mut log = Vec::new();
    Chat.gather()
        .unwrap()
        .write(&from, "conv-9", &mut log)
        .unwrap();
    assert!(!String::from_utf8(log).unwrap().contains("secret"));
    let (_, read) = gathered(&from).remove(0);
    assert_eq!(read.session.id.as_deref(), Some("conv-9"));
    assert_eq!(read.session.cwd.as_deref(), Some("/w"));
    assert_eq!(read.ledger.records, 9);
    let call = &read.events[5];
    assert_eq!(call.annotations.model.as_deref(), Some("m"));
}

#[test]
fn hermes_keeps_a_database() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table sessions (id text, model text, title text, started_at real, input_tokens integer, output_tokens integer, cache_read_tokens integer, cache_write_tokens integer, reasoning_tokens integer, parent_session_id text);
             create table messages (id integer primary key, session_id text, role text, content text, tool_call_id text, tool_calls text, tool_name text, timestamp real, finish_reason text, reasoning text);
             insert into sessions values ('h1','m','Files',1767323045.5,10,5,2,0,1,null), ('h2','m',null,1767323045.5,0,0,0,0,0,'h1');
             insert into messages values (1,'h1','user','go',null,null,null,1767323046.25,null,null);
             insert into messages values (2,'h1','assistant','I look',null,'[{\"id\":\"c\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]',null,1767323047,'tool_calls','hm');
             insert into messages values (3,'h1','tool','a b','c',null,'ls',1767323048,null,null);",
        )
        .unwrap();
    let read = gathered(&Gathered::Database(&database));
    assert_eq!(read.len(), 2);
    let (_, first) = &read[0];
    assert_eq!(
        first.words(),
        [
            "note.session",
            "message.user",
            "message.assistant",
            "message.assistant",
            "tool.call",
            "tool.result"
        ]
    );
    let vendor = first.session.vendor_usage.map(quipu_model::Usage::from);
    assert_eq!(vendor, Some(first.usage()));
    assert_eq!(read[1].1.session.parent.as_deref(), Some("h1"));
    let other = rusqlite::Connection::open_in_memory().unwrap();
    let gather = Chat.gather().unwrap();
    assert!(gather.parts(&Gathered::Database(&other)).is_err());
}

#[test]
fn places() {
    let host = Host::new("/home/x", |_| None);
    let places = Chat.places(&host);
    let pick = |brand: &str, name: &str| {
        let place = places.iter().find(|place| place.brand == brand).unwrap();
        (place.pick)(Path::new(name))
    };
    assert_eq!(pick("vibe", "s/messages.jsonl"), Pick::Log);
    assert_eq!(pick("vibe", "s/meta.json"), Pick::Skip);
    assert_eq!(pick("openhands", "conv"), Pick::Gather);
    assert_eq!(pick("openhands", "conv/base_state.json"), Pick::Skip);
    assert_eq!(pick("gptme", "2026/conversation.jsonl"), Pick::Log);
    assert_eq!(pick("codebuff", "p/chats/t/chat-messages.json"), Pick::Log);
    assert_eq!(pick("posit-assistant", "w/c/lm-messages.jsonl"), Pick::Log);
}

#[test]
fn events_that_are_not_whole_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let conversation = folder.path();
    fs::create_dir_all(conversation.join("events")).unwrap();
    let (base, event) = ("base_state.json", "events/event-00000-x.json");
    write(
        conversation.join(base),
        r#"{"id":"c","agent":{"llm":{"api_key":"secret""#,
    )
    .unwrap();
    write(conversation.join(event), r#"{"id":"e","kind":"Mess"#).unwrap();
    let from = Gathered::Tree(conversation);
    let (_, read) = gathered(&from).remove(0);
    assert_eq!(read.words(), ["note.malformed_line"]);
    assert!(read.lines().contains("Mess"));
    assert!(!read.lines().contains("secret"));
    assert!(read.ledger.drift.is_empty());
    let gather = Chat.gather().unwrap();
    let stamp = gather.parts(&from).unwrap().remove(0).stamp;
    let file = fs::File::options()
        .append(true)
        .open(conversation.join(event))
        .unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(9_000_000_000))
        .unwrap();
    assert_ne!(gather.parts(&from).unwrap().remove(0).stamp, stamp);
}

/// One row that is not as the others are does not keep the others from being read.
#[test]
fn rows_of_any_kind() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database
        .execute_batch(
            "create table sessions (id text, model text, started_at real);
             create table messages (id, session_id text, role text, content text);
             insert into sessions values ('h1','m',1), (x'ff00','m','x'), (null,'m',1), ('h3',7,x'ff');
             insert into messages values ('first','h1','user','go'), (x'ff',x'ff00','user','and you'),
                (3,'h3',x'ff','hello');",
        )
        .unwrap();
    let read = gathered(&Gathered::Database(&database));
    let ids: Vec<&str> = read.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["h1", "h3", "x'ff00'"]);
    assert!(read.iter().all(|(_, read)| read.ledger.records == 2));
}

/// Each stream numbers its records itself.
#[test]
fn records_of_different_streams_are_no_copies() {
    let log = |stream: &str| {
        let (id, stream) = ("record-0000000000000001", format!("\"id\":\"{stream}\""));
        let line = MUSE_LOG.lines().next().unwrap();
        line.replace("\"id\":\"e1\"", &format!("\"id\":\"{id}\""))
            .replace("\"id\":\"s1\"", &stream)
    };
    let units = |log: &str| read(log.as_bytes(), "x").unwrap().ledger.units;
    assert_eq!(units(&log("a")).len(), 1);
    assert_ne!(units(&log("a")), units(&log("b")));
    assert_eq!(units(&format!("{}\n{}", log("a"), log("a"))).len(), 1);
}

/// What other agents write looks much the same.
#[test]
fn gptme_is_told_from_others() {
    let name = |log: &str| crate::identify(log.as_bytes(), true).map(|(_, dialect)| dialect.name);
    let plain = r#"{"role":"user","content":"hi","timestamp":"2026-01-02T03:04:05.000001"}"#;
    assert_eq!(name(plain), Some("gptme"));
    for other in [
        r#"{"timestamp":"2025-09-10T12:00:00Z","role":"user","content":"hi","model":"m"}"#,
        r#"{"timestamp":"2025-09-10T12:00:00Z","role":"user","content":"hi"}"#,
        r#"{"timestamp":"2025-09-10T12:00:00.1","role":"user","content":"hi","model":"m"}"#,
    ] {
        assert_ne!(name(other), Some("gptme"), "{other}");
    }
    for (file, log) in crate::corpus::logs("codex") {
        if !file.contains("session_branch") && !file.contains("session_toolcall") {
            continue;
        }
        for end in 0..=log.len() {
            for whole in [false, true] {
                let found = crate::identify(&log[..end], whole);
                let family = found.map(|(family, _)| family.name());
                assert!(
                    matches!(family, None | Some("codex")),
                    "{file} {end} {family:?}"
                );
            }
        }
    }
}
