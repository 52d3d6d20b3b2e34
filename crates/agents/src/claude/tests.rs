use insta::assert_snapshot;
use quipu_model::Status;

use crate::corpus::logs;
use crate::testkit::{Read, read, read_as};

const SESSION: &str = concat!(
    r#"{"type":"summary","summary":"Greeting","leafUuid":"u2"}"#,
    "\n",
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code","gitBranch":"main","version":"2.1.200","isSidechain":false,"message":{"role":"user","content":"list the files"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s1","timestamp":"2026-01-02T03:04:06.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"","signature":"abc"}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":1}}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u3","parentUuid":"u2","sessionId":"s1","timestamp":"2026-01-02T03:04:07.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":42}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","timestamp":"2026-01-02T03:04:09.500Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a\nb"}]},"toolUseResult":{"stdout":"a\nb","interrupted":false}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","message":{"role":"user","content":"again"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u5","sessionId":"s1","timestamp":"2026-01-02T03:04:10.000Z","message":{"id":"m2","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}},"isApiErrorMessage":true}"#,
    "\n",
    r#"{"type":"user","uuid":"u6","sessionId":"s1","isMeta":true,"message":{"role":"user","content":"<system-reminder>x</system-reminder>"}}"#,
    "\n",
    r#"{"type":"wonder","uuid":"u7","sessionId":"s1","sparkle":1}"#,
    "\n",
);

/// One line of a session, in brief.
fn line(kind: &str, uuid: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}","uuid":"{uuid}","sessionId":"s1",{rest}}}"#) + "\n"
}

fn said(uuid: &str, content: &str, rest: &str) -> String {
    let message = format!(r#""message":{{"role":"user","content":{content}}}{rest}"#);
    line("user", uuid, &message)
}

fn session(log: &str) -> Read {
    read(log.as_bytes(), "s1.jsonl").unwrap()
}

#[test]
fn a_session() {
    let read = session(SESSION);
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(3), Some(10), Some(5), Some(42)),
        "the largest of a call, once"
    );
}

#[test]
fn cut_at_every_byte_it_is_accounted_for() {
    for end in 0..SESSION.len() {
        // What no longer looks like a session is nobody's.
        let Some((family, dialect)) = crate::identify(SESSION.as_bytes(), true) else {
            panic!()
        };
        let read = read_as(family, dialect, &SESSION.as_bytes()[..end], "s1.jsonl");
        assert!(read.events.len() <= 9);
    }
}

#[test]
fn values_of_the_wrong_kind_are_no_reason_to_stop() {
    let values = [
        "null",
        "1",
        "-1e400",
        "true",
        r#""x""#,
        "[]",
        "{}",
        "[[[]]]",
        r#"{"type":1}"#,
    ];
    for key in [
        "type",
        "uuid",
        "sessionId",
        "timestamp",
        "message",
        "cwd",
        "version",
        "toolUseResult",
        "requestId",
        "attachment",
        "data",
        "isSidechain",
        "agentId",
        "toolDenialKind",
    ] {
        for value in values {
            let log = SESSION.to_owned()
                + &format!(r#"{{"type":"user","sessionId":"s1","{key}":{value}}}"#)
                + "\n"
                + &format!(
                    r#"{{"type":"assistant","uuid":"x","sessionId":"s1","message":{{"{key}":{value},"content":{value},"usage":{value}}}}}"#
                )
                + "\n"
                + &format!(
                    r#"{{"type":"user","uuid":"y","sessionId":"s1","message":{{"content":[{{"type":"tool_result","{key}":{value},"content":{value}}}]}}}}"#
                )
                + "\n";
            assert!(session(&log).events.len() >= 8, "{key} {value}");
        }
    }
}

#[test]
fn what_is_on_the_users_side_is_not_always_a_persons() {
    let log = said("u1", r#""a real prompt""#, "")
        + &said("u2", r#""<command-name>/clear</command-name>""#, "")
        + &said(
            "u3",
            r#"[{"type":"text","text":"<ide_opened_file>x</ide_opened_file>\nfix it"}]"#,
            "",
        )
        + &said(
            "u4",
            r#""This session is being continued""#,
            r#","isCompactSummary":true"#,
        )
        + &said("u5", r#""[Request interrupted by user]""#, "")
        + &line(
            "attachment",
            "u6",
            r#""attachment":{"type":"queued_command","prompt":"and this"}"#,
        )
        + &line(
            "system",
            "u7",
            r#""subtype":"compact_boundary","content":"Conversation compacted""#,
        );
    assert_eq!(
        session(&log).words(),
        [
            "message.user",
            "message.system",
            "message.user",
            "note.compaction",
            "message.system",
            "message.user",
            "note.compaction"
        ]
    );
}

#[test]
fn how_a_tool_call_ended() {
    let result = |uuid: &str, text: &str, rest: &str| {
        let content = format!(
            r#"[{{"type":"tool_result","tool_use_id":"t{uuid}","is_error":true,"content":"{text}"}}]"#
        );
        said(uuid, &content, rest)
    };
    let log = result("1", "boom", "")
        + &result(
            "2",
            "The user doesn't want to proceed with this tool use. x",
            "",
        )
        + &result("3", "no", r#","toolDenialKind":"user-rejected""#)
        + &result("4", "Command timed out after 2m", "")
        + &said(
            "5",
            r#"[{"type":"tool_result","tool_use_id":"t5","content":"fine"}]"#,
            "",
        );
    let read = session(&log);
    let statuses: Vec<Option<Status>> = read.events.iter().map(|e| e.annotations.status).collect();
    let expected = [
        Status::Error,
        Status::Denied,
        Status::Denied,
        Status::Timeout,
        Status::Ok,
    ];
    assert_eq!(statuses, expected.map(Some));
    assert_eq!(read.ledger.orphans, 5);
}

#[test]
fn calls_without_a_result_stay_and_are_marked() {
    let call = r#""message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}"#;
    let read = session(&line("assistant", "u1", call));
    assert!(read.events[0].annotations.flags.dangling);
}

#[test]
fn images_are_taken_out() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}"#;
    let big = "QUJD".repeat(1000);
    let result = format!(
        r#"[{image},{{"type":"tool_result","tool_use_id":"t1","content":[{{"type":"text","text":"see"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{big}"}}}}]}}]"#
    );
    let read = session(&said("u1", &result, ""));
    assert_eq!(read.blobs, 2);
    assert_eq!(read.events[0].annotations.attachments[0].bytes, 5);
    let text = read.lines();
    assert!(
        !text.contains("QUJDQUJD") && text.contains("agentlog-blob://"),
        "{text}"
    );
}

#[test]
fn sub_agents_are_told_apart() {
    let side = r#","isSidechain":true,"agentId":"a1""#;
    let own = read(said("u1", r#""go""#, side).as_bytes(), "agent-a1.jsonl").unwrap();
    assert_eq!(own.session.id.as_deref(), Some("s1.agent-a1"));
    assert_eq!(own.session.parent.as_deref(), Some("s1"));
    let log = said("u1", r#""go""#, "") + &said("u2", r#""inline""#, r#","isSidechain":true"#);
    let inline = session(&log);
    assert_eq!(inline.session.parent, None);
    let whose = |n: usize| inline.events[n].annotations.subagent_id.as_deref();
    assert_eq!((whose(0), whose(1)), (None, Some("sidechain")));
    let task = said(
        "u3",
        r#"[{"type":"tool_result","tool_use_id":"t1","content":"done"}]"#,
        r#","toolUseResult":{"agentId":"a1","totalDurationMs":1500}"#,
    );
    let read = session(&task);
    let notes = &read.events[0].annotations;
    assert_eq!(notes.child.as_ref().unwrap().as_str(), "s1.agent-a1");
    assert_eq!(notes.duration_ms, Some(1500));
}

#[test]
fn a_resumed_session_says_where_it_came_from() {
    let stem = "00000000-0000-4000-8000-000000000001";
    let log = said("u1", r#""go""#, "");
    let read = read(log.as_bytes(), &format!("{stem}.jsonl")).unwrap();
    assert_eq!(read.session.id.as_deref(), Some(stem));
    assert_eq!(read.session.forked_from.as_deref(), Some("s1"));
}

#[test]
fn titles_are_ranked() {
    let title = |kind: &str, key: &str, text: &str| {
        format!(r#"{{"type":"{kind}","{key}":"{text}","sessionId":"s1","leafUuid":"x"}}"#) + "\n"
    };
    let log = title("custom-title", "customTitle", "by hand")
        + &title("ai-title", "aiTitle", "by a model")
        + &title("summary", "summary", "in short");
    assert_eq!(session(&log).session.title.as_deref(), Some("by hand"));
}

#[test]
fn a_stream_comes_to_what_its_result_says() {
    let log = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","model":"m","claude_code_version":"2.1.178","tools":[]}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m1","model":"m","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s","uuid":"a"}"#,
        "\n",
        r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","uuid":"b"}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"hi","session_id":"s","total_cost_usd":0.0123,"usage":{"input_tokens":3,"output_tokens":20},"modelUsage":{"m":{}},"uuid":"c"}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "out.jsonl").unwrap();
    assert_eq!(read.dialect.name, "claude-stream");
    assert_eq!(
        (read.usage().input, read.usage().output),
        (Some(3), Some(20))
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.0123"));
    assert_eq!(read.ledger.dropped.values().sum::<u64>(), 1);
}

#[test]
fn real_streams_come_to_what_their_results_say() {
    for (name, bytes) in logs("claude-stream") {
        let Some(read) = read(&bytes, &name) else {
            continue;
        };
        if let Some(vendor) = read.session.vendor_usage {
            let (ours, theirs) = (read.usage(), quipu_model::Usage::from(vendor));
            assert_eq!(ours.total(), theirs.total(), "{name}");
        }
    }
}

/// The rule of the reference, checked another way: per call, the largest output of any of its lines.
#[test]
fn real_sessions_count_each_call_once() {
    for (name, bytes) in logs("claude") {
        let Some(read) = read(&bytes, &name) else {
            continue;
        };
        if read.dialect.name != "claude" {
            continue;
        }
        let mut calls = std::collections::BTreeMap::<String, u64>::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            let stream = serde_json::Deserializer::from_str(line).into_iter::<serde_json::Value>();
            for record in stream.map_while(Result::ok) {
                let message = &record["message"];
                let made_up = message["model"] == "<synthetic>"
                    || record["isApiErrorMessage"] == serde_json::Value::Bool(true);
                let told = &record["data"]["message"]["message"];
                if record["type"] == "progress" && !told["usage"].is_null() {
                    let call = calls
                        .entry(told["id"].as_str().unwrap().to_owned())
                        .or_default();
                    *call = (*call).max(told["usage"]["output_tokens"].as_u64().unwrap_or(0));
                }
                let parts = message["usage"]["iterations"].as_array();
                let parts = parts.map(Vec::as_slice).unwrap_or_default();
                let is_fallback = parts.iter().any(|it| it["type"] == "fallback_message");
                let own = if is_fallback {
                    "fallback_message"
                } else {
                    "message"
                };
                for (at, part) in parts.iter().enumerate() {
                    if part["type"].is_string() && part["type"] != own {
                        let key = format!("{} {at}", message["id"]);
                        calls.insert(key, part["output_tokens"].as_u64().unwrap_or(0));
                    }
                }
                if record["type"] == "assistant" && !made_up {
                    // Without an id, every line is a call of its own.
                    let own = message["id"].is_null().then_some(calls.len());
                    let id = message["id"].as_str().unwrap_or_default();
                    let request = record["requestId"].as_str().unwrap_or_default();
                    let request = if id.starts_with("msg_") { "" } else { request };
                    let rest = match (request, own) {
                        ("", None) => String::new(),
                        (request, own) => format!(":{request}:{own:?}"),
                    };
                    let key = format!("{id}{rest}");
                    let output = message["usage"]["output_tokens"].as_u64().unwrap_or(0);
                    let call = calls.entry(key).or_default();
                    *call = (*call).max(output);
                }
            }
        }
        let expected: u64 = calls.values().sum();
        assert_eq!(read.usage().output.unwrap_or(0), expected, "{name}");
    }
}

#[test]
fn a_log_that_grew_is_an_extension_of_what_it_was() {
    let mut snapshots: Vec<(String, Vec<u8>)> = logs("claude")
        .into_iter()
        .filter(|(name, _)| name.contains("snapshots-"))
        .collect();
    snapshots.sort_by_key(|(_, bytes)| bytes.len());
    for pair in snapshots.windows(2) {
        let (short, long) = (session_of(&pair[0]), session_of(&pair[1]));
        assert!(long.events.starts_with(&short.events));
    }
}

fn session_of((name, bytes): &(String, Vec<u8>)) -> Read {
    read(bytes, name).unwrap()
}

#[test]
fn a_prompt_that_was_pasted_is_kept() {
    let log = r#"{"display":"look at [Pasted text #1]","pastedContents":{"1":{"id":1,"type":"text","content":"the text"}},"timestamp":1767323045000,"project":"/code","sessionId":"s9"}"#;
    let read = read(log.as_bytes(), "history.jsonl").unwrap();
    assert_eq!(read.dialect.name, "claude-history");
    assert!(read.session.reconstructed);
    assert_eq!(read.events[1].body.type_word(), "message.user");
    assert_eq!(read.events.len(), 2);
}

/// A reply with one text, and what its message has beside it.
fn reply(uuid: &str, text: &str, rest: &str) -> String {
    let message = format!(
        r#""message":{{"id":"msg_{uuid}","role":"assistant","model":"claude-x","content":[{{"type":"text","text":"{text}"}}],{rest}}}"#
    );
    line("assistant", uuid, &message)
}

#[test]
fn a_record_that_comes_again_is_dropped_if_it_says_the_same_and_read_if_it_says_more() {
    let uuid = "00000000-0000-4000-8000-00000000000a";
    let message = |content: &str, output: u64| {
        let message = format!(
            r#""parentUuid":"p{output}","message":{{"id":"msg_1","role":"assistant","model":"m","content":[{content}],"usage":{{"input_tokens":5,"output_tokens":{output}}}}}"#
        );
        line("assistant", uuid, &message)
    };
    let text = r#"{"type":"text","text":"I look."}"#;
    let call = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{}}"#;
    let first = message(text, 2);
    let read = session(&(first.clone() + &message(text, 2)));
    assert_eq!(read.words(), ["message.assistant"]);
    assert_eq!(read.ledger.dropped.values().sum::<u64>(), 1);
    // More tokens of the same answer.
    let read = session(&(first.clone() + &message(text, 9)));
    assert_eq!(read.words(), ["message.assistant", "note.usage"]);
    assert_eq!(read.usage().output, Some(9));
    // More of the answer, alone or with what was there.
    for more in [call.to_owned(), format!("{text},{call}")] {
        let read = session(&(first.clone() + &message(&more, 9)));
        assert_eq!(read.words(), ["message.assistant", "tool.call"], "{more}");
        assert_eq!(read.usage().output, Some(9));
        assert!(read.ledger.dropped.is_empty());
    }
}

#[test]
fn history_that_is_appended_again_is_counted_once() {
    let uuid = |n: u64| format!("00000000-0000-4000-8000-{n:012}");
    let turn = |n: u64, parent: &str, session: &str| {
        let (ask, answer) = (uuid(2 * n), uuid(2 * n + 1));
        format!(
            r#"{{"type":"user","uuid":"{ask}","parentUuid":"{parent}","sessionId":"{session}","timestamp":"2026-01-02T03:04:05.000Z","message":{{"role":"user","content":"question {n}"}}}}
{{"type":"assistant","uuid":"{answer}","parentUuid":"{ask}","sessionId":"{session}","timestamp":"2026-01-02T03:04:06.000Z","message":{{"id":"msg_{n}","role":"assistant","model":"m","content":[{{"type":"text","text":"answer {n}"}}],"usage":{{"input_tokens":10,"output_tokens":1}}}}}}
"#
        )
    };
    let once: String = (0..100).map(|n| turn(n, "x", "s1")).collect();
    let compaction = line(
        "system",
        "c1",
        r#""subtype":"compact_boundary","content":"x""#,
    );
    let mut log = once.clone();
    for round in 0..5 {
        log += &compaction.replace("c1", &format!("c{round}"));
        // The order of parents changes, and the session may be named anew; what was said does not.
        log += &(0..100)
            .map(|n| turn(n, &format!("p{round}"), "s2"))
            .collect::<String>();
    }
    let (once, often) = (session(&once), session(&log));
    assert_eq!(often.usage(), once.usage());
    assert_eq!(often.events.len(), once.events.len() + 5);
    assert_eq!(often.ledger.dropped.values().sum::<u64>(), 5 * 200);
    // Also under new ids, calls are counted once.
    let anew = log.replace("00000000-0000-4000-8000-", "00000000-0000-4000-9000-");
    let again = session(&(log + &anew));
    assert_eq!(again.usage(), once.usage());
}

#[test]
fn calls_within_a_call_are_counted_with_their_own_model() {
    let usage = |parts: &str| {
        format!(
            r#""usage":{{"input_tokens":4,"output_tokens":971,"cache_read_input_tokens":7,"iterations":[{parts}]}}"#
        )
    };
    let part = |kind: &str, input: u64, output: u64, model: &str| {
        format!(r#"{{"input_tokens":{input},"output_tokens":{output},"type":"{kind}"{model}}}"#)
    };
    let other = r#","model":"claude-y""#;
    let advisor = [
        part("message", 2, 301, ""),
        part("advisor_message", 67_421, 2_546, other),
        part("message", 2, 670, ""),
    ];
    let log = reply("a", "one", &usage(&advisor.join(",")))
        + &reply("a2", "two", &usage(&advisor.join(","))).replace("msg_a2", "msg_a");
    let read = session(&log);
    let spent: Vec<(Option<&str>, Option<u64>)> = read
        .events
        .iter()
        .filter_map(|event| {
            let notes = &event.annotations;
            Some((notes.model.as_deref(), notes.usage?.output))
        })
        .collect();
    let expected = [
        (Some("claude-y"), Some(2_546)),
        (Some("claude-x"), Some(971)),
    ];
    assert_eq!(spent, expected, "once, however many lines tell of it");
    assert_eq!(read.usage().input, Some(67_425));
    // Of a compaction, the model is that of the message; a model that was refused is one beside the answer's.
    let compaction = [
        part("compaction", 60_385, 522, ""),
        part("message", 4, 971, ""),
    ];
    let read = session(&reply("b", "x", &usage(&compaction.join(","))));
    assert_eq!(read.usage().input, Some(60_389));
    assert!(
        read.events
            .iter()
            .all(|e| e.annotations.model.as_deref() == Some("claude-x"))
    );
    let refused = [
        part("message", 2, 2, other),
        part("fallback_message", 4, 971, r#","model":"claude-x""#),
    ];
    let read = session(&reply("c", "x", &usage(&refused.join(","))));
    assert_eq!(
        (read.usage().input, read.usage().output),
        (Some(6), Some(973))
    );
    assert_eq!(
        read.events[0].annotations.model.as_deref(),
        Some("claude-y")
    );
}

#[test]
fn a_summary_is_the_title_of_the_session_that_its_leaf_is_in() {
    let summary = |text: &str, leaf: &str| {
        format!(r#"{{"type":"summary","summary":"{text}","leafUuid":"{leaf}"}}"#)
            + "
"
    };
    let ask = said("u1", r#""go""#, "") + &said("u2", r#""on""#, "");
    let title = |log: &str| session(log).session.title;
    assert_eq!(title(&(summary("elsewhere", "u9") + &ask)), None);
    let (mine, again) = (summary("mine", "u2"), summary("again", "u1"));
    assert_eq!(title(&(mine.clone() + &ask)).as_deref(), Some("mine"));
    assert_eq!(title(&(ask.clone() + &mine)).as_deref(), Some("mine"));
    let both = mine + &again + &summary("elsewhere", "u9") + &ask;
    assert_eq!(
        title(&both).as_deref(),
        Some("again"),
        "the last that is told"
    );
}

#[test]
fn a_stream_with_sub_agents_comes_to_what_its_result_says_of_each_model() {
    let reply = |id: &str, model: &str, parent: &str, output: u64| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"{model}","role":"assistant","content":[{{"type":"text","text":"hi"}}],"usage":{{"input_tokens":3,"output_tokens":{output}}}}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"{id}"}}
"#
        )
    };
    let result = |uuid: &str, main: u64, sums: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"hi","session_id":"s","total_cost_usd":0.5,"usage":{{"input_tokens":3,"output_tokens":{main}}},"modelUsage":{{{sums}}},"uuid":"{uuid}"}}
"#
        )
    };
    let sums = |model: &str, input: u64, output: u64| {
        format!(
            r#""{model}":{{"inputTokens":{input},"outputTokens":{output},"webSearchRequests":0}}"#
        )
    };
    let init = r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","model":"big","claude_code_version":"2.1.178","tools":[]}"#;
    let first = format!("{init}\n")
        + &reply("m1", "big", "null", 1)
        + &reply("m2", "small", "\"t1\"", 2)
        + &result(
            "r1",
            20,
            &[sums("big[1m]", 3, 20), sums("small", 9, 600)].join(","),
        );
    let spent = |log: &str| {
        let read = read(log.as_bytes(), "out.jsonl").unwrap();
        let mut spent = std::collections::BTreeMap::<String, u64>::new();
        for event in &read.events {
            if let Some(usage) = event.annotations.usage {
                let model = event.annotations.model.clone().unwrap_or_default();
                let model = model.trim_end_matches("[1m]").to_owned();
                *spent.entry(model).or_default() += usage.output.unwrap_or(0);
            }
        }
        assert_eq!(
            read.usage().total(),
            quipu_model::Usage::from(read.session.vendor_usage.unwrap()).total()
        );
        spent.into_iter().collect::<Vec<_>>()
    };
    let of = |big: u64, small: u64| vec![("big".to_owned(), big), ("small".to_owned(), small)];
    assert_eq!(spent(&first), of(20, 600));
    // The sums of a later result are of all that went before.
    let second = first.clone()
        + &reply("m3", "big", "null", 4)
        + &result(
            "r2",
            10,
            &[sums("big[1m]", 6, 30), sums("small", 9, 600)].join(","),
        );
    assert_eq!(spent(&second), of(30, 600));
}

#[test]
fn calls_of_a_sub_agent_that_only_progress_tells_of_are_counted_once() {
    let progress = |uuid: &str, output: u64| {
        let data = format!(
            r#""data":{{"type":"agent_progress","agentId":"a1","message":{{"type":"assistant","uuid":"inner-{uuid}","message":{{"id":"msg_0000000000000001","model":"small","role":"assistant","content":[],"usage":{{"input_tokens":7,"output_tokens":{output}}}}}}}}},"parentToolUseID":"t1""#
        );
        line("progress", uuid, &data)
    };
    let log = said("u1", r#""go""#, "") + &progress("p1", 1) + &progress("p2", 12);
    let parent = session(&log);
    assert_eq!(
        (parent.usage().input, parent.usage().output),
        (Some(7), Some(12))
    );
    let notes = &parent.events[1].annotations;
    assert_eq!(notes.model.as_deref(), Some("small"));
    assert_eq!(notes.subagent_id.as_deref(), Some("a1"));
    // The sub-agent's own log, where there is one, tells of the same call under the same identity.
    let own = r#""isSidechain":true,"agentId":"a1","message":{"id":"msg_0000000000000001","model":"small","role":"assistant","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":7,"output_tokens":12}}"#;
    let own = read(
        line("assistant", "inner-p1", own).as_bytes(),
        "agent-a1.jsonl",
    )
    .unwrap();
    assert!(
        parent
            .ledger
            .units
            .iter()
            .any(|unit| own.ledger.units.contains(unit))
    );
}

#[test]
fn fields_without_a_place_of_their_own_are_kept_with_the_event() {
    let big = "QUJD".repeat(1000);
    let log = line(
        "assistant",
        "u1",
        r#""requestId":"req_1","effort":"high","userType":"external","message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"so","signature":"c2ln"},{"type":"tool_use","id":"t1","name":"Edit","input":{},"caller":{"type":"direct"}}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2,"service_tier":"priority","server_tool_use":{"web_search_requests":3}}}"#,
    ) + &said(
        "u2",
        r#"[{"type":"tool_result","tool_use_id":"t1","content":"done"}]"#,
        r#","toolUseResult":{"filePath":"/a","originalFile":"old","structuredPatch":[{"lines":["-old"]}],"stdout":"done"}"#,
    ) + &said(
        "u3",
        r#"[{"type":"tool_result","tool_use_id":"t2","content":"seen"}]"#,
        &format!(
            r#","toolUseResult":{{"type":"image","file":{{"base64":"{big}","type":"image/png"}}}}"#
        ),
    ) + &line(
        "assistant",
        "u4",
        r#""message":{"id":"msg_4","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"stop_reason":"stop_sequence"},"isApiErrorMessage":true,"error":"rate_limit""#,
    );
    let read = session(&log);
    let extra = |n: usize| -> serde_json::Value {
        let notes = &read.events[n].annotations;
        serde_json::from_str(notes.extra.as_ref().unwrap().get()).unwrap()
    };
    assert_eq!(
        extra(0),
        serde_json::json!({
            "block": {"signature": "c2ln"},
            "requestId": "req_1", "effort": "high", "userType": "external",
            "usage": {"service_tier": "priority", "server_tool_use": {"web_search_requests": 3}},
        })
    );
    assert_eq!(
        read.events[0].annotations.stop_reason.as_deref(),
        Some("max_tokens")
    );
    assert_eq!(
        extra(1),
        serde_json::json!({"block": {"caller": {"type": "direct"}}})
    );
    assert_eq!(
        extra(2),
        serde_json::json!({"toolUseResult": {
            "filePath": "/a", "originalFile": "old", "structuredPatch": [{"lines": ["-old"]}],
        }}),
        "what the result says already is not said again"
    );
    let image = extra(3)["toolUseResult"]["file"]["base64"].clone();
    assert!(image.as_str().unwrap().starts_with("agentlog-blob://"));
    assert_eq!(read.blobs, 1);
    let error = extra(4);
    assert_eq!(error["error"], "rate_limit");
    assert_eq!(error["message"]["stop_reason"], "stop_sequence");
    assert_eq!(
        read.events[4].annotations.stop_reason, None,
        "no model said so"
    );
}
