use std::ffi::OsString;

use insta::assert_snapshot;

use super::{Acp, GROK, HISTORY, UPDATES};
use crate::testkit::{hostile, read};
use crate::{Collect, Family as _, Feed, Host, Origin, Pick};

const SESSION: &str = include_str!("../../fixtures/grok/session.jsonl");

const CHAT: &str = include_str!("../../fixtures/grok-chat/session.jsonl");

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "updates.jsonl").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(110), Some(30), Some(14), Some(4)),
        "the turns, each once"
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.3"));
    assert_eq!(read.session.title.as_deref(), Some("Listing"));
}

#[test]
fn the_history_alone() {
    let path = "/s/019f6000-0000-7000-8000-000000000002/chat_history.jsonl";
    let read = read(CHAT.as_bytes(), path).unwrap();
    assert_snapshot!(read.lines());
}

#[test]
fn a_capture_of_the_protocol() {
    let log = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/code","mcpServers":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"hello"}]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},"messageId":"m1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"again"},"messageId":"m2"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"oh"}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "log").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.session",
            "note.session",
            "message.user",
            "message.assistant",
            "message.assistant",
            "note.error"
        ]
    );
    assert_eq!(read.session.id.as_deref(), Some("s1"));
    assert_eq!(read.session.cwd.as_deref(), Some("/code"));
}

#[test]
fn updates_alone_and_in_other_envelopes() {
    let alone = concat!(
        r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"look"}}"#,
        "\n",
        r#"{"sessionUpdate":"tool_call","toolCallId":"r1","title":"Read file","status":"completed","rawInput":{"p":"a"},"_meta":{"toolName":"read"}}"#,
        "\n",
    );
    let wrapped = concat!(
        r#"{"id":10,"v":1,"type":"session_update","data":{"update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"look"}}}}"#,
        "\n",
        r#"{"id":20,"v":1,"type":"session_update","data":{"update":{"sessionUpdate":"tool_call","toolCallId":"r1","title":"Read file","status":"completed","rawInput":{"p":"a"},"_meta":{"toolName":"read"}}}}"#,
        "\n",
        r#"{"id":30,"v":1,"type":"permission_request","data":{"requestId":"p","sessionId":"s","title":"Allow?"}}"#,
        "\n",
    );
    let words = [
        "message.user",
        "tool.call",
        "tool.result",
        "note.permission",
    ];
    for (log, count) in [(alone, 3), (wrapped, 4)] {
        let read = read(log.as_bytes(), "log").unwrap();
        assert_eq!(read.dialect, UPDATES);
        assert_eq!(read.words(), words[..count]);
        assert!(read.ledger.drift.is_empty());
    }
}

#[test]
fn the_summary_says_more_of_the_session() {
    let origin = Origin {
        path: "updates.jsonl".as_ref(),
        part: None,
    };
    let reader = Acp.open(&UPDATES, &origin, None).unwrap();
    let mut feed = Feed::new(UPDATES.framing, reader);
    let mut events = Collect::default();
    feed.sidecar(
        "summary.json",
        br#"{"info":{"id":"g1","cwd":"/w"},"session_summary":"a","generated_title":"b","created_at":"2026-01-02T03:04:05Z","head_branch":"main","head_commit":"c0","git_remotes":["git@x:y.git"]}"#,
        &mut events,
    );
    let session = feed.session();
    assert_eq!(session.title.as_deref(), Some("b"));
    assert_eq!(session.cwd.as_deref(), Some("/w"));
    assert_eq!(session.repository.as_deref(), Some("git@x:y.git"));
    assert_eq!(session.started_at, Some(1_767_323_045_000));
}

#[test]
fn places() {
    let host = Host::new("/home/x", |name| {
        (name == "GROK_HOME").then(|| OsString::from("/grok"))
    });
    let places = Acp.places(&host);
    assert_eq!(places[0].root, std::path::Path::new("/grok/sessions"));
    let pick = |name: &str| (places[0].pick)(name.as_ref());
    assert_eq!(pick("%2Fw/u/updates.jsonl"), Pick::Log);
    assert_eq!(pick("%2Fw/u/chat_history.jsonl"), Pick::Keep);
    assert_eq!(pick("%2Fw/u/summary.json"), Pick::Skip);
}

#[test]
fn anything_is_read() {
    hostile(&Acp, GROK, SESSION);
    hostile(&Acp, HISTORY, CHAT);
}

/// Both sides of a connection, as a recorder between them writes it.
#[test]
fn both_directions_are_read() {
    let said = [
        (
            1,
            r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/code","mcpServers":[]}}"#,
        ),
        (2, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1"}}"#),
        (
            3,
            r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"mend it"}]}}"#,
        ),
        (
            4,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"plan","entries":[{"content":"look","status":"pending","priority":"low"}]}}}"#,
        ),
        (
            5,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit a.rs","kind":"edit","status":"pending","rawInput":{"path":"a.rs"}}}}"#,
        ),
        (
            6,
            r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[]}}"#,
        ),
        (
            7,
            r#"{"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#,
        ),
        (
            8,
            r#"{"jsonrpc":"2.0","id":10,"method":"fs/write_text_file","params":{"sessionId":"s1","path":"/code/a.rs","content":"x"}}"#,
        ),
        (
            9,
            r#"{"jsonrpc":"2.0","id":11,"method":"terminal/create","params":{"sessionId":"s1","command":"ls"}}"#,
        ),
        (
            10,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"diff","path":"/code/a.rs","oldText":"y","newText":"x"},{"type":"terminal","terminalId":"term1"}]}}}"#,
        ),
        (
            11,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}}"#,
        ),
        (
            12,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","used":53000,"size":200000,"cost":{"amount":0.045,"currency":"USD"}}}}"#,
        ),
        (
            13,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"novelty"}}}"#,
        ),
        (
            14,
            r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#,
        ),
    ];
    let bare: Vec<&str> = said.iter().map(|(_, message)| *message).collect();
    let bare = bare.join("\n");
    let kept: Vec<String> = said
        .iter()
        .map(|(second, message)| {
            format!(r#"{{"ts":"2026-06-08T08:00:{second:02}Z","dir":"out","msg":{message}}}"#)
        })
        .collect();
    let kept = kept.join("\n");
    let expected = [
        "note.session",
        "note.session",
        "message.user",
        "note.todo",
        "tool.call",
        "note.permission",
        "note.session",
        "note.context",
        "note.context",
        "tool.result",
        "message.assistant",
        "note.usage",
        "note.unknown_record",
        "note.turn",
    ];
    for log in [bare, kept.clone()] {
        let read = read(log.as_bytes(), "acp.jsonl").unwrap();
        assert_eq!(read.dialect.name, "acp");
        assert_eq!(read.words(), expected);
        assert_eq!(read.session.id.as_deref(), Some("s1"));
        assert_eq!(read.session.cwd.as_deref(), Some("/code"));
        assert_eq!(read.session.vendor_cost.as_deref(), Some("0.045"));
        let unknown: Vec<&String> = read.ledger.drift.unknown.keys().collect();
        assert_eq!(unknown, ["type:update.novelty"]);
    }
    let read = read(kept.as_bytes(), "acp.jsonl").unwrap();
    assert!(
        read.events
            .iter()
            .all(|event| !event.annotations.flags.undated)
    );
}

/// Agents that number their calls anew use an id again while the call before it is open.
#[test]
fn calls_that_share_an_id_keep_their_names_and_arguments() {
    let update = |update: &str| {
        format!(
            r#"{{"timestamp":1767323040,"method":"session/update","params":{{"sessionId":"g1","update":{update}}}}}"#
        ) + "\n"
    };
    let log = [
        r#"{"sessionUpdate":"tool_call","toolCallId":"call_0","title":"read","rawInput":{"path":"a"}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"call_0","title":"list","rawInput":{"path":"b"}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_0","rawInput":{"path":"c"}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_0","status":"completed"}"#,
    ]
    .map(update)
    .concat();
    let read = read(log.as_bytes(), "updates.jsonl").unwrap();
    let lines = read.lines();
    for said in [r#"{"path":"a"}"#, r#"{"path":"b"}"#, r#"{"path":"c"}"#] {
        assert!(lines.contains(said), "{lines}");
    }
    let words = ["tool.call", "tool.call", "note.progress", "tool.result"];
    assert_eq!(read.words(), words);
}
