use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use quipu_model::Place;
use quipu_record::{RecorderOptions, Storage};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Conversation, Matcher, Observer as _, Recording, Seen, Side, tee};

/// What was seen, in words; times are left out.
fn words(seen: &Seen<'_>) -> String {
    match seen {
        Seen::Call(call) => {
            let input = call.input.as_deref().unwrap_or("-");
            format!("call {} {} {input}", call.call_id, call.name)
        }
        Seen::Result {
            call,
            output,
            error,
            ..
        } => {
            let error = error.as_deref().unwrap_or("-");
            format!("result {} {output} {error}", call.call_id)
        }
        Seen::Cancelled { call, reason } => format!("cancelled {} {reason:?}", call.call_id),
        Seen::Unanswered(call) => format!("unanswered {}", call.call_id),
        Seen::About {
            from,
            method,
            is_answer,
            ..
        } => format!("about {} {method} {is_answer}", from.as_str()),
        Seen::Odd {
            from, why, bytes, ..
        } => format!("odd {} {bytes} {why}", from.as_str()),
        Seen::TooLong { from, bytes } => format!("too long {} {bytes}", from.as_str()),
    }
}

/// What is seen of lines that the two sides say in turn.
fn understood(lines: &[(Side, &str)]) -> Vec<String> {
    let mut conversation = Conversation::new(1000);
    let mut all = Vec::new();
    let mut see = |seen: &Seen<'_>| all.push(words(seen));
    for (side, line) in lines {
        conversation.push(*side, format!("{line}\n").as_bytes(), &mut see);
    }
    conversation.finish(&mut see);
    all
}

use Side::{Agent, Server};

#[test]
fn calls_are_matched_with_their_results_by_id() {
    let seen = understood(&[
        (
            Agent,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1.50}}}"#,
        ),
        (
            Agent,
            r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"b"}}"#,
        ),
        (
            Server,
            r#"{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#,
        ),
        (
            Server,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        ),
        (
            Agent,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"c","_meta":{"claudecode/toolUseId":"toolu_9"}}}"#,
        ),
        (
            Server,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool"}}"#,
        ),
    ]);
    assert_eq!(
        seen,
        [
            r#"call mcp-1 a {"x":1.50}"#,
            "call mcp-2 b -",
            r#"result mcp-2 {"content":[{"type":"text","text":"no"}],"isError":true} no"#,
            r#"result mcp-1 {"content":[]} -"#,
            "call toolu_9 c -",
            r#"result toolu_9 {"code":-32602,"message":"unknown tool"} unknown tool (-32602)"#,
        ]
    );
}

#[test]
fn both_directions_batches_and_cancelled_calls_are_followed() {
    let seen = understood(&[
        (
            Agent,
            r#"[{"id":1,"method":"tools/call","params":{"name":"a"}},{"id":2,"method":"tools/call","params":{"name":"b"}}]"#,
        ),
        (
            Server,
            r#"{"id":1,"method":"tools/call","params":{"name":"agents-own"}}"#,
        ),
        (
            Agent,
            r#"{"method":"notifications/cancelled","params":{"requestId":2,"reason":"enough"}}"#,
        ),
        (Agent, r#"{"id":1,"result":{"from":"the agent"}}"#),
        (Server, r#"[{"id":1,"result":{}}]"#),
        (
            Server,
            r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#,
        ),
    ]);
    assert_eq!(
        seen,
        [
            "call mcp-1 a -",
            "call mcp-2 b -",
            "call mcp-3 agents-own -",
            "cancelled mcp-2 Some(\"enough\")",
            r#"result mcp-3 {"from":"the agent"} -"#,
            "result mcp-1 {} -",
            "unanswered mcp-2",
        ]
    );
}

#[test]
fn who_the_two_are_is_seen_and_other_messages_are_not() {
    let seen = understood(&[
        (Agent, r#"{"id":0,"method":"initialize","params":{}}"#),
        (
            Server,
            r#"{"id":0,"result":{"protocolVersion":"2025-11-25"}}"#,
        ),
        (Agent, r#"{"method":"notifications/initialized"}"#),
        (Agent, r#"{"id":1,"method":"ping"}"#),
        (Server, r#"{"id":1,"result":{}}"#),
        (Agent, r#"{"id":2,"method":"tools/list"}"#),
        (Server, r#"{"id":2,"error":{"code":-1,"message":"m"}}"#),
    ]);
    assert_eq!(
        seen,
        [
            "about agent initialize false",
            "about server initialize true",
            "about agent tools/list false",
            "about server tools/list true",
        ]
    );
}

#[test]
fn lines_that_are_not_messages_or_too_long_are_counted_and_what_follows_is_understood() {
    let long = format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(2000));
    let name = "n".repeat(1100);
    let seen = understood(&[
        (Server, "Listening on stdio"),
        (Server, "Content-Length: 5\r"),
        (Server, ""),
        (Server, "{\"id\":1,\"id\":2,\"result\":{}}"),
        (Server, "[1]"),
        (Server, "[1"),
        (Server, "{}"),
        (Agent, r#"{"id":1,"method":"tools/call","params":{}}"#),
        (
            Agent,
            r#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#,
        ),
        (Server, &long),
        (
            Agent,
            &format!(r#"{{"id":2,"method":"tools/call","params":{{"name":"{name}"}}}}"#),
        ),
        (
            Agent,
            r#"{"id":3,"method":"tools/call","params":{"name":"b"}}"#,
        ),
        (Server, r#"{"id":3,"result":1}"#),
    ]);
    assert_eq!(
        seen,
        [
            "odd server 18 it is not a JSON-RPC message",
            "odd server 17 it is not a JSON-RPC message",
            "odd server 27 it is not a JSON-RPC message",
            "odd server 1 it is not a JSON-RPC message",
            "odd server 2 it is not JSON",
            "odd server 2 it is not a JSON-RPC message",
            "odd agent 42 it calls a tool without a name or id that can be kept",
            "call mcp-1 a -",
            "too long server 2020",
            "too long agent 1151",
            "call mcp-2 b -",
            "result mcp-2 1 -",
            "unanswered mcp-1",
        ]
    );
}

#[test]
fn names_and_ids_that_are_too_long_to_keep_are_not_waited_for() {
    let long = "n".repeat(1100);
    let mut conversation = Conversation::default();
    let mut all = Vec::new();
    for message in [
        json!({"id": 2, "method": "tools/call", "params": {"name": long}}),
        json!({"id": long, "method": "tools/call", "params": {"name": "a"}}),
        json!({"id": long, "method": "tools/list"}),
    ] {
        let line = format!("{message}\n");
        conversation.push(Agent, line.as_bytes(), &mut |seen| all.push(words(seen)));
    }
    conversation.finish(&mut |seen| all.push(words(seen)));
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all.iter().all(|it| it.contains("that can be kept")),
        "{all:?}"
    );
}

proptest! {
    /// What is understood does not depend on the pieces in which bytes come.
    #[test]
    fn pieces_do_not_change_what_is_understood(
        text in prop::collection::vec(
            prop_oneof![
                Just(b"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}\n".to_vec()),
                Just(b"{\"id\":2,\"method\":\"initialize\"}\r\n".to_vec()),
                Just(b"[{\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\\u00e9\"}}]\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..40),
                Just(vec![b'x'; 130]),
                Just(b"\n".to_vec()),
            ],
            0..20,
        ),
        cuts in prop::collection::vec(1_usize..50, 1..20),
    ) {
        let bytes: Vec<u8> = text.concat();
        let run = |pieces: &[&[u8]]| {
            let mut conversation = Conversation::new(100);
            let mut all = Vec::new();
            for piece in pieces {
                conversation.push(Agent, piece, &mut |seen| all.push(words(seen)));
            }
            conversation.finish(&mut |seen| all.push(words(seen)));
            all
        };
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at(rest.len().min(*cut));
            pieces.push(piece);
            rest = more;
        }
        prop_assert_eq!(run(&[&bytes]), run(&pieces));
    }
}

fn sh(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script].map(OsString::from).to_vec()
}

/// What an agent gets that says something in pieces, and the exit code.
async fn said(argv: &[OsString], pieces: &[&[u8]]) -> (Vec<u8>, i32, Vec<String>) {
    let (ours, theirs) = tokio::io::duplex(100);
    let (hear, say) = tokio::io::split(theirs);
    let (from, to) = tokio::io::split(ours);
    let mut seen = Vec::new();
    let mut observer = |it: &Seen<'_>| seen.push(words(it));
    let agent = async {
        let (mut hear, mut say) = (hear, say);
        let speaking = async {
            for piece in pieces {
                // A server may end before it has read all of it.
                if say.write_all(piece).await.is_err() {
                    break;
                }
            }
            say.shutdown().await.ok();
        };
        let mut heard = Vec::new();
        let hearing = hear.read_to_end(&mut heard);
        let ((), read) = tokio::join!(speaking, hearing);
        read.unwrap();
        heard
    };
    let (code, heard) = tokio::join!(tee(argv, from, to, &mut observer), agent);
    (heard, code.unwrap(), seen)
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any bytes in any pieces come out the same on the other side, in both directions.
    #[test]
    fn bytes_pass_untouched(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..3000), 0..12),
    ) {
        let parts: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let (heard, code, _) = runtime().block_on(said(&["cat".into()], &parts));
        prop_assert_eq!(code, 0);
        prop_assert_eq!(heard, pieces.concat());
    }
}

#[tokio::test]
async fn megabytes_without_a_line_end_pass() {
    let piece = vec![b'x'; 1 << 20];
    let pieces: Vec<&[u8]> = (0..20).map(|_| &piece[..]).collect();
    let (heard, code, seen) = said(&["cat".into()], &pieces).await;
    assert_eq!((heard.len(), code), (20 << 20, 0));
    assert_eq!(
        seen,
        ["too long agent 20971520", "too long server 20971520"]
    );
}

#[tokio::test]
async fn a_server_can_answer_after_the_agent_has_said_all() {
    let (heard, code, _) = said(&sh("cat > /dev/null; echo done; exit 7"), &[b"a\n", b"b"]).await;
    assert_eq!((&heard[..], code), (&b"done\n"[..], 7));
}

#[tokio::test]
async fn exit_codes_and_signals_of_the_server_are_passed_on() {
    assert_eq!(said(&sh("exit 3"), &[b"x"]).await.1, 3);
    assert_eq!(said(&sh("kill -9 $$"), &[]).await.1, 128 + 9);
    let error = tee(
        &["no-such-server".into()],
        tokio::io::empty(),
        tokio::io::sink(),
        &mut |_: &Seen<'_>| {},
    )
    .await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("no-such-server was not found")
    );
    tee(
        &[],
        tokio::io::empty(),
        tokio::io::sink(),
        &mut |_: &Seen<'_>| {},
    )
    .await
    .unwrap_err();
}

#[tokio::test]
async fn a_side_that_does_not_read_holds_up_the_other() {
    let (mut hear, to) = tokio::io::duplex(1000);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("written");
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 100000 /dev/zero; echo $i > {}; done",
        file.display()
    );
    let argv = sh(&script);
    let mut observer = |_: &Seen<'_>| {};
    let reading = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let written: u32 =
            std::fs::read_to_string(&file).map_or(0, |it| it.trim().parse().unwrap_or(0));
        assert!(
            written < 5,
            "{written} of 10 pieces were taken though nobody reads"
        );
        let mut all = Vec::new();
        hear.read_to_end(&mut all).await.unwrap();
        all.len()
    };
    let teeing = tee(&argv, tokio::io::empty(), to, &mut observer);
    let (code, read) = tokio::join!(teeing, reading);
    assert_eq!((code.unwrap(), read), (0, 1_000_000));
}

#[tokio::test]
async fn a_server_ends_when_the_agent_does_not_read_any_more() {
    let (hear, to) = tokio::io::duplex(1000);
    drop(hear);
    let began = Instant::now();
    let (_keep, from) = tokio::io::duplex(10);
    let argv = sh("trap '' TERM; while :; do echo x; done");
    let mut observer = |_: &Seen<'_>| {};
    let code = tee(&argv, from, to, &mut observer).await.unwrap();
    assert_ne!(code, 0);
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_request_to_end_reaches_the_server_and_its_last_words_the_agent() {
    let (mut hear, to) = tokio::io::duplex(1000);
    let (_keep, from) = tokio::io::duplex(10);
    let argv = sh("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done");
    let mut observer = |_: &Seen<'_>| {};
    let agent = async {
        let mut heard = [0; 3];
        hear.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"up\n");
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::TERM).unwrap();
        let mut rest = Vec::new();
        hear.read_to_end(&mut rest).await.unwrap();
        rest
    };
    let (code, rest) = tokio::join!(tee(&argv, from, to, &mut observer), agent);
    assert_eq!((code.unwrap(), &rest[..]), (5, &b"bye\n"[..]));
}

#[tokio::test]
async fn a_tee_that_is_dropped_ends_the_server_and_what_it_started() {
    let (mut hear, to) = tokio::io::duplex(1000);
    let (_keep, from) = tokio::io::duplex(10);
    let argv = sh("sleep 66 & echo $!; wait");
    let mut observer = |_: &Seen<'_>| {};
    let pid = {
        let teeing = tee(&argv, from, to, &mut observer);
        let reading = async {
            let mut heard = Vec::new();
            while !heard.ends_with(b"\n") {
                heard.push(hear.read_u8().await.unwrap());
            }
            String::from_utf8(heard).unwrap().trim().to_owned()
        };
        tokio::select! {
            _ = teeing => panic!("the server waits"),
            pid = reading => pid,
        }
    };
    let began = Instant::now();
    loop {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        if state.map_or(true, |it| it.contains(") Z ")) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Where the program of the next test puts the id of its server.
const PID_FILE: &str = "QUIPU_TEST_PID_FILE";

#[tokio::test]
#[ignore = "the program that the next test starts and kills"]
async fn a_tee_to_be_killed() {
    let script = format!("echo $$ > \"${PID_FILE}\"; exec cat");
    let mut observer = |_: &Seen<'_>| {};
    let from = tokio::fs::File::open("/dev/stdin").await.unwrap();
    tee(&sh(&script), from, tokio::io::sink(), &mut observer)
        .await
        .unwrap();
}

#[test]
fn a_server_ends_when_the_tee_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let mut tee = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mcp::tests::a_tee_to_be_killed", "--ignored"])
        .env(PID_FILE, &file)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let wait = || {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    };
    let pid = loop {
        let pid = std::fs::read_to_string(&file).unwrap_or_default();
        if pid.ends_with('\n') {
            break pid.trim().to_owned();
        }
        wait();
    };
    tee.kill().unwrap();
    tee.wait().unwrap();
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| !it.contains(") Z "))
    {
        wait();
    }
}

#[tokio::test]
async fn what_passes_is_recorded_as_events_of_a_run() {
    let server = r#"while IFS= read -r line; do case $line in
        *crash*) exit 4;;
        *tools/call*) echo noise; echo '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}';;
    esac; done"#;
    let root = tempfile::tempdir().unwrap();
    let storage = Storage::at(root.path());
    let run = quipu_model::RunId::new("run-1").unwrap();
    let recorder = Arc::new(storage.record(&run, RecorderOptions::default()).unwrap());
    let mut recording = Recording::new(recorder.clone(), Place::step("ask.tools"));
    let (ours, theirs) = tokio::io::duplex(1000);
    let (from, to) = tokio::io::split(ours);
    let (mut hear, mut say) = tokio::io::split(theirs);
    let call = |id: u32, name: &str| {
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {"n": 1}}})
        )
    };
    let agent = async {
        say.write_all(call(1, "echo").as_bytes()).await.unwrap();
        let mut lines = 0;
        while lines < 2 {
            lines += u32::from(hear.read_u8().await.unwrap() == b'\n');
        }
        say.write_all(call(2, "crash").as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        hear.read_to_end(&mut rest).await.unwrap();
    };
    let argv = sh(server);
    let (code, ()) = tokio::join!(tee(&argv, from, to, &mut recording), agent);
    assert_eq!(code.unwrap(), 4);
    assert!(recording.error().is_none());
    recorder.close().unwrap();
    let path = storage.path_of(&run);
    assert!(
        storage
            .verify(&path, RecorderOptions::default().limits)
            .unwrap()
            .is_clean()
    );
    let text = std::fs::read_to_string(path).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let kinds: Vec<_> = events
        .iter()
        .map(|it| it["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds.iter().filter(|it| *it == "tool.call").count(),
        2,
        "{kinds:?}"
    );
    let result = events
        .iter()
        .find(|it| it["type"] == "tool.result")
        .unwrap();
    assert_eq!(result["path"], "ask.tools");
    assert_eq!(result["payload"]["call_id"], "mcp-1");
    assert_eq!(result["payload"]["fidelity"], "router");
    assert_eq!(result["payload"]["output"]["content"][0]["text"], "hi");
    assert!(
        text.contains("odd_line") && text.contains("unanswered"),
        "{text}"
    );
}

#[test]
fn a_recorder_that_fails_does_not_stop_the_conversation() {
    let root = tempfile::tempdir().unwrap();
    let storage = Storage::at(root.path());
    let run = quipu_model::RunId::new("run-1").unwrap();
    let recorder = Arc::new(storage.record(&run, RecorderOptions::default()).unwrap());
    recorder.close().unwrap();
    let mut recording = Recording::new(recorder, Place::run());
    for _ in 0..3 {
        recording.seen(&Seen::TooLong {
            from: Agent,
            bytes: 1,
        });
    }
    assert_eq!(recording.error().map(|it| it.1), Some(3));
}

#[test]
fn calls_that_are_seen_twice_are_matched_in_either_order() {
    let mut matcher = Matcher::new();
    let input = json!({"path": "a", "n": 1});
    let same = json!({"n": 1.0, "path": "a"});
    assert_eq!(matcher.seen("read_file", &input), None);
    assert_eq!(
        matcher.reported("mcp__files__read_file", &same, "t1".into()),
        Some(1)
    );
    assert_eq!(
        matcher.reported("files.read_file", &same, "t2".into()),
        None
    );
    assert_eq!(
        matcher.reported("files.read_file", &same, "t3".into()),
        None
    );
    let ids: Vec<_> = (0..3).map(|_| matcher.seen("read_file", &input)).collect();
    assert_eq!(ids, [Some("t2".into()), Some("t3".into()), None]);
    assert_eq!((matcher.matched(), matcher.unmatched()), (3, (0, 1)));
}

#[test]
fn calls_that_differ_are_not_matched() {
    let mut matcher = Matcher::new();
    matcher.reported("mcp__files__read", &json!({"a": 1}), "t".into());
    assert_eq!(matcher.seen("read", &json!({"a": 2})), None);
    assert_eq!(matcher.seen("read", &json!({"a": "1"})), None);
    assert_eq!(matcher.seen("ead", &json!({"a": 1})), None);
    assert_eq!(matcher.seen("write", &json!({"a": 1})), None);
    matcher.reported("thread", &json!({"a": 3}), "t2".into());
    assert_eq!(matcher.seen("read", &json!({"a": 3})), None);
    matcher.reported("srv_do_it_", &Value::Null, "t3".into());
    assert_eq!(matcher.seen("do it!", &json!({})), Some("t3".into()));
}

#[test]
fn a_matcher_does_not_grow_without_end() {
    let mut matcher = Matcher::new();
    for n in 0..30_000 {
        matcher.seen("t", &json!({ "n": n }));
        matcher.reported("x", &json!({ "n": n }), "t".into());
    }
    assert_eq!(matcher.unmatched(), (10_000, 10_000));
    assert_eq!(
        matcher.reported("t", &json!({"n": 29_999}), "y".into()),
        Some(30_000)
    );
    assert_eq!(matcher.reported("t", &json!({"n": 0}), "z".into()), None);
}
