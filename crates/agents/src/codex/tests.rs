mod calls;
mod hostile;
mod real;

use std::path::Path;

use insta::assert_snapshot;
use quipu_model::{Body, NoteKind, Status, Usage};

use super::{Codex, EXEC, ROLLOUT};
use crate::testkit::{Read, read, read_as};
use crate::{Dropped, Family as _, Host, Pick, Tokens};

/// Lines of a log.
fn log(lines: &[&str]) -> String {
    let mut log = lines.join("\n");
    log.push('\n');
    log
}

fn rollout(lines: &[&str]) -> Read {
    let log = log(lines);
    let read = read(log.as_bytes(), "rollout.jsonl").unwrap();
    assert_eq!(read.dialect, ROLLOUT);
    read
}

fn texts(read: &Read) -> Vec<String> {
    read.words()
        .into_iter()
        .zip(&read.events)
        .map(|(word, event)| {
            let mut line = Vec::new();
            quipu_exchange::encode_log(event, &mut line);
            let line = String::from_utf8(line).unwrap();
            let said = line
                .split_once(r#""text":""#)
                .map_or("", |(_, rest)| rest.split('"').next().unwrap_or_default());
            format!("{word} {said}")
        })
        .collect()
}

fn dropped(read: &Read, why: Dropped) -> u64 {
    read.ledger.dropped.get(&why).copied().unwrap_or(0)
}

fn buckets(usage: Usage) -> [Option<u64>; 5] {
    let Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h: _,
        output,
        reasoning,
    } = usage;
    [input, cache_read, cache_write, output, reasoning]
}

const SESSION: &[&str] = &[
    r#"{"timestamp":"2026-01-02T03:04:05.100Z","type":"session_meta","payload":{"id":"01980000-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code","originator":"codex-tui","cli_version":"0.147.0","source":"cli","history_mode":"legacy","git":{"commit_hash":"c0ffee","branch":"main","repository_url":"https://example.org/r.git"}}}"#,
    r#"{"timestamp":"2026-01-02T03:04:05.200Z","type":"event_msg","payload":{"type":"task_started","turn_id":"01980000-0001-7000-8000-000000000001","started_at":1767323045}}"#,
    r#"{"timestamp":"2026-01-02T03:04:05.300Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>none</permissions instructions>"}]}}"#,
    r##"{"timestamp":"2026-01-02T03:04:05.300Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md instructions for /code\n\nbe brief"},{"type":"input_text","text":"<environment_context>\n  <cwd>/code</cwd>\n</environment_context>"}]}}"##,
    r#"{"timestamp":"2026-01-02T03:04:05.300Z","type":"turn_context","payload":{"turn_id":"01980000-0001-7000-8000-000000000001","cwd":"/code","model":"gpt-x","effort":"high"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:05.400Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list \"the\" files"}]}}"#,
    r#"{"timestamp":"2026-01-02T03:04:05.400Z","type":"event_msg","payload":{"type":"user_message","message":"list \"the\" files","images":[]}}"#,
    r#"{"timestamp":"2026-01-02T03:04:06.000Z","type":"event_msg","payload":{"type":"agent_reasoning","text":"**Looking**"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:06.100Z","type":"event_msg","payload":{"type":"agent_message","message":"Listing them.","phase":"commentary"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:06.200Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":10,"reasoning_output_tokens":4,"total_tokens":110},"last_token_usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":10,"reasoning_output_tokens":4,"total_tokens":110},"model_context_window":1000},"rate_limits":null}}"#,
    r#"{"timestamp":"2026-01-02T03:04:06.300Z","type":"response_item","payload":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Looking**"}],"content":null,"encrypted_content":"gAAAAAbcdef"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:06.400Z","type":"response_item","payload":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Listing them."}]}}"#,
    r#"{"timestamp":"2026-01-02T03:04:06.500Z","type":"response_item","payload":{"type":"function_call","id":"fc_1","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_1"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:07.500Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"Chunk ID: 1a2b3c\nWall time: 0.2500 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nls: no"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"gAAAAAxyz"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.100Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n*** End Patch"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.200Z","type":"event_msg","payload":{"type":"patch_apply_end","call_id":"call_2","turn_id":"01980000-0001-7000-8000-000000000001","stdout":"","stderr":"","success":true,"changes":{"/code/a":{"type":"add","content":"x"}},"status":"completed"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.300Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_2","output":"{\"output\":\"Success.\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.300Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":250,"cached_input_tokens":160,"cache_write_input_tokens":20,"output_tokens":30,"reasoning_output_tokens":9,"total_tokens":280},"last_token_usage":{"input_tokens":150,"cached_input_tokens":100,"cache_write_input_tokens":20,"output_tokens":20,"reasoning_output_tokens":5,"total_tokens":170}},"rate_limits":{"primary":{"used_percent":1.0}}}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.400Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":250,"cached_input_tokens":160,"cache_write_input_tokens":20,"output_tokens":30,"reasoning_output_tokens":9,"total_tokens":280},"last_token_usage":{"input_tokens":150,"cached_input_tokens":100,"cache_write_input_tokens":20,"output_tokens":20,"reasoning_output_tokens":5,"total_tokens":170}},"rate_limits":{"primary":{"used_percent":2.0}}}}"#,
    r#"{"timestamp":"2026-01-02T03:04:08.500Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"01980000-0001-7000-8000-000000000001","last_agent_message":null,"duration_ms":3300}}"#,
    r#"{"timestamp":"2026-01-02T03:04:09.000Z","type":"wonder","payload":{"sparkle":1}}"#,
];

#[test]
fn a_session() {
    let read = rollout(SESSION);
    assert_snapshot!(read.lines());
    assert_eq!(
        buckets(read.usage()),
        [Some(70), Some(160), Some(20), Some(30), Some(9)]
    );
    assert_eq!(read.session.vendor_usage, Some(read.usage().into()));
    assert_eq!(dropped(&read, Dropped::RepeatedUsage), 1);
    assert_eq!(dropped(&read, Dropped::RepeatedChannel), 3);
    assert_eq!(read.session.branch.as_deref(), Some("main"));
    assert_eq!(read.session.commit.as_deref(), Some("c0ffee"));
    assert_eq!(read.session.started_at, Some(1_767_323_045_000));
}

#[test]
fn what_is_only_shown_is_not_lost() {
    let meta =
        r#"{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"s1"}}"#;
    let ask = r#"{"type":"event_msg","payload":{"type":"user_message","message":"hello"}}"#;
    let think = r#"{"type":"event_msg","payload":{"type":"agent_reasoning","text":"hm"}}"#;
    let reply = r#"{"type":"event_msg","payload":{"type":"agent_message","message":"hi"}}"#;
    let expected = [
        "note.session ",
        "message.user hello",
        "message.assistant ",
        "message.assistant hi",
    ];
    assert_eq!(texts(&rollout(&[meta, ask, think, reply])), expected);

    // With items for other things, texts wait for theirs, and keep their place when it never comes.
    let call = r#"{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}}"#;
    let read = rollout(&[meta, call, ask, think, reply, call]);
    let words = texts(&read);
    assert_eq!(words[2..5], expected[1..4]);
    assert_eq!(words[5], "tool.call ");
    let read = rollout(&[meta, call, ask, think, reply]);
    assert_eq!(texts(&read)[2..], expected[1..4]);
}

#[test]
fn what_is_shown_first_is_told_once() {
    let meta = r#"{"type":"session_meta","payload":{"id":"s1"}}"#;
    let env = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}"#;
    let ask_event = r#"{"type":"event_msg","payload":{"type":"user_message","message":"hello"}}"#;
    let ask = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}"#;
    let reply_event = r#"{"type":"event_msg","payload":{"type":"agent_message","message":"hi"}}"#;
    let reply = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}"#;
    let expected = ["message.user hello", "message.assistant hi"];
    for lines in [
        [meta, env, ask_event, ask, reply_event, reply],
        [meta, env, ask, ask_event, reply, reply_event],
        [meta, ask_event, env, ask, reply_event, reply],
    ] {
        let read = rollout(&lines);
        let said: Vec<String> = texts(&read)
            .into_iter()
            .filter(|line| !line.starts_with("note") && !line.starts_with("message.system"))
            .collect();
        assert_eq!(said, expected, "{lines:?}");
        assert_eq!(dropped(&read, Dropped::RepeatedChannel), 2);
    }
}

#[test]
fn texts_that_programs_put_there() {
    let line = |text: &str| {
        let text = serde_json::to_string(text).unwrap();
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}}}"#
        )
    };
    for text in [
        "# AGENTS.md instructions for /x\n",
        "<environment_context>\n",
        "<user_instructions>",
        "<permissions instructions>",
        "<skill>\n<name>x</name>",
        "<turn_aborted>",
        "<subagent_notification>{}",
        "<codex_internal_context source=\"goal\">",
        "<user_shell_command>",
    ] {
        let read = rollout(&[&line(text)]);
        assert_eq!(read.words(), ["message.system"], "{text}");
        assert!(read.events[0].annotations.flags.synthetic, "{text}");
    }
    for text in [
        "fix it",
        "<div>why is this red?</div>",
        "<Button_Bar>",
        "<a_b",
        "a <environment_context>",
        "< a_b >",
    ] {
        assert_eq!(rollout(&[&line(text)]).words(), ["message.user"], "{text}");
    }
}

#[test]
fn prompts_with_images() {
    let read = rollout(&[
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<image name=[Image #1]>"},{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="},{"type":"input_text","text":"</image>"},{"type":"input_text","text":"what is "},{"type":"input_text","text":"this?"}]}}"#,
        r#"{"type":"event_msg","payload":{"type":"user_message","message":"what is this?","images":["x"]}}"#,
        r#"{"type":"response_item","payload":{"type":"image_generation_call","id":"ig_1","status":"completed","revised_prompt":"a cat","result":"aGVsbG8="}}"#,
        r#"{"type":"event_msg","payload":{"type":"image_generation_end","call_id":"ig_1","status":"completed","revised_prompt":"a cat","result":"aGVsbG8="}}"#,
    ]);
    assert_eq!(
        read.words(),
        [
            "note.attachment",
            "message.user",
            "message.user",
            "tool.call",
            "tool.result"
        ]
    );
    assert_eq!(read.blobs, 2);
    assert_eq!(read.events[4].annotations.attachments.len(), 1);
    assert!(!read.lines().contains("aGVsbG8="));
    assert_eq!(dropped(&read, Dropped::RepeatedChannel), 2);
}

#[test]
fn totals_that_go_down() {
    let total = |input: u64, output: u64, last: &str| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"output_tokens":{output}}}{last}}}}}}}"#
        )
    };
    let last = |input: u64, output: u64| {
        format!(r#","last_token_usage":{{"input_tokens":{input},"output_tokens":{output}}}"#)
    };
    let lines = [
        total(10, 1, &last(10, 1)),
        total(30, 3, &last(20, 2)),
        // The context ran full.
        total(0, 0, &last(0, 0)),
        total(0, 0, &last(0, 0)),
        total(7, 1, &last(7, 1)),
        r#"{"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{}}}"#
            .to_owned(),
        // Back to an earlier state, and on from there.
        total(6, 1, &last(2, 1)),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let read = rollout(&lines);
    assert_eq!(buckets(read.usage()), [Some(39), None, None, Some(5), None]);
    assert_eq!(read.session.vendor_usage, Some(read.usage().into()));
    assert_eq!(dropped(&read, Dropped::RepeatedUsage), 1);
}

#[test]
fn tokens_that_are_told_by_response() {
    let tokens = r#"{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}"#;
    let twice = r#"{"input_tokens":20,"cached_input_tokens":8,"output_tokens":4}"#;
    let record = |response: &str, total: &str| {
        format!(
            r#"{{"type":"token_usage_record","payload":{{"response_id":"{response}","usage":{tokens},"thread_token_usage":{total}}}}}"#
        )
    };
    let count = |total: &str| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{total},"last_token_usage":{tokens}}}}}}}"#
        )
    };
    let lines = [
        record("r1", tokens),
        count(tokens),
        record("r2", twice),
        count(twice),
        record("r2", twice),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let read = rollout(&lines);
    assert_eq!(
        buckets(read.usage()),
        [Some(12), Some(8), None, Some(4), None]
    );
    assert_eq!(read.events[1].annotations.model_call.as_deref(), Some("r2"));
    assert_eq!(dropped(&read, Dropped::RepeatedUsage), 3);
}

const PARENT: &str = "01980000-0000-7000-8000-000000000001";
const CHILD: &str = "01980000-1000-7000-8000-000000000002";

fn turn(id: &str) -> [String; 3] {
    [
        format!(r#"{{"type":"event_msg","payload":{{"type":"task_started","turn_id":"{id}"}}}}"#),
        format!(r#"{{"type":"turn_context","payload":{{"turn_id":"{id}","model":"m"}}}}"#),
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{id}"}}]}}}}"#
        ),
    ]
}

fn total(input: u64) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"output_tokens":1}}}}}}}}"#
    )
}

#[test]
fn a_fork_and_what_it_was_forked_from() {
    let meta = |id: &str, more: &str| {
        format!(r#"{{"type":"session_meta","payload":{{"id":"{id}"{more}}}}}"#)
    };
    let shared: Vec<String> = [
        turn("01980000-0001-7000-8000-000000000001").to_vec(),
        vec![total(100)],
        turn("01980000-0002-7000-8000-000000000001").to_vec(),
        vec![total(200)],
    ]
    .concat();
    let mut parent = vec![meta(PARENT, "")];
    parent.extend(shared.clone());
    let mut child = vec![
        meta(CHILD, &format!(r#","forked_from_id":"{PARENT}""#)),
        meta(PARENT, ""),
    ];
    child.extend(shared);
    child.extend(turn("01980000-1001-7000-8000-000000000002"));
    child.push(total(230));
    let lines = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        rollout(&lines)
    };
    let (parent, child) = (lines(&parent), lines(&child));
    assert_eq!(child.session.id.as_deref(), Some(CHILD));
    assert_eq!(child.session.forked_from.as_deref(), Some(PARENT));
    assert_eq!(child.session.parent, None);
    // The turns tell what is copied.
    assert_eq!(parent.ledger.units.len(), 2);
    assert_eq!(child.ledger.units[..2], parent.ledger.units[..]);
    assert_eq!(child.ledger.units.len(), 3);
    // Where the original is gone, nothing of it is lost.
    assert_eq!(parent.usage().input, Some(200));
    assert_eq!(child.usage().input, Some(230));
    assert_eq!(child.session.vendor_usage, Some(child.usage().into()));
    assert_snapshot!(child.lines());
}

#[test]
fn forks_without_turns() {
    let meta = r#"{"type":"session_meta","payload":{"id":"p"}}"#;
    let fork = r#"{"type":"session_meta","payload":{"id":"c","forked_from_id":"p"}}"#;
    let other = r#"{"type":"session_meta","payload":{"id":"q"}}"#;
    let context = r#"{"timestamp":"2026-01-02T03:04:05Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}"#;
    let stamped = r#"{"timestamp":"2026-01-03T03:04:05Z","type":"response_item","payload":{"type":"message","role":"user","phase":null,"content":[{"type":"input_text","text":"x"}]}}"#;
    let (one, two, three) = (total(1), total(2), total(3));
    let parent = rollout(&[meta, context, &one, &two]).ledger.units;
    let child = rollout(&[fork, stamped, &one, &three]).ledger.units;
    let copied = rollout(&[fork, meta, stamped, &one, &three]).ledger.units;
    let stranger = rollout(&[other, context, &one, &two]).ledger.units;
    assert_eq!(child[..2], parent[..2]);
    assert_ne!(child[2], parent[2]);
    assert_eq!(child, copied);
    assert!(stranger.iter().all(|unit| !parent.contains(unit)));
}

#[test]
fn sub_agents() {
    let read = rollout(&[
        r#"{"type":"session_meta","ordinal":0,"payload":{"id":"child","session_id":"root","parent_thread_id":"root","forked_from_id":"root","subagent_history_start_ordinal":4,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"root","depth":1,"agent_path":"/root/x","agent_nickname":"E"}}}}}"#,
        r#"{"type":"session_meta","ordinal":1,"payload":{"id":"root"}}"#,
        r#"{"type":"response_item","ordinal":2,"payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"of the parent"}]}}"#,
        r#"{"type":"event_msg","ordinal":3,"payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":5000,"output_tokens":1},"last_token_usage":{"input_tokens":70,"output_tokens":1}}}}"#,
        r#"{"type":"inter_agent_communication_metadata","ordinal":4,"payload":{"trigger_turn":true}}"#,
        r#"{"type":"response_item","ordinal":5,"payload":{"type":"agent_message","author":"/root","recipient":"/root/x","content":[{"type":"input_text","text":"Message Type: NEW_TASK"},{"type":"encrypted_content","encrypted_content":"gAAA"}]}}"#,
        r#"{"type":"event_msg","ordinal":6,"payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"output_tokens":2},"last_token_usage":{"input_tokens":30,"output_tokens":2}}}}"#,
        r#"{"type":"response_item","ordinal":7,"payload":{"type":"function_call","name":"spawn_agent","namespace":"collaboration","arguments":"{\"task_name\":\"y\"}","call_id":"call_s"}}"#,
        r#"{"type":"event_msg","ordinal":8,"payload":{"type":"sub_agent_activity","event_id":"call_s","agent_thread_id":"grandchild","agent_path":"/root/x/y","kind":"started"}}"#,
        r#"{"type":"response_item","ordinal":9,"payload":{"type":"function_call_output","call_id":"call_s","output":"{\"task_name\":\"/root/x/y\"}"}}"#,
        r#"{"type":"response_item","ordinal":10,"payload":{"type":"function_call","name":"spawn_agent","arguments":"{}","call_id":"call_t"}}"#,
        r#"{"type":"response_item","ordinal":11,"payload":{"type":"function_call_output","call_id":"call_t","output":"{\"agent_id\":\"other\",\"nickname\":\"F\"}"}}"#,
    ]);
    assert_eq!(read.session.id.as_deref(), Some("child"));
    assert_eq!(read.session.parent.as_deref(), Some("root"));
    assert_eq!(read.usage().input, Some(30));
    assert_eq!(read.session.vendor_usage, Some(read.usage().into()));
    let children: Vec<&str> = read
        .events
        .iter()
        .filter(|event| matches!(event.body, Body::ToolResult(_)))
        .filter_map(|event| event.annotations.child.as_ref())
        .map(quipu_model::RunId::as_str)
        .collect();
    assert_eq!(children, ["grandchild", "other"]);
    assert_snapshot!(read.lines());
}

#[test]
fn lines_that_are_numbered() {
    let read = rollout(&[
        r#"{"ordinal":0,"type":"session_meta","payload":{"id":"s","history_mode":"paginated"}}"#,
        r#"{"ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}}"#,
        r#"{"ordinal":2,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"UserMessage","id":"i1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}}"#,
        r#"{"ordinal":3,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"Reasoning","id":"i2","summary_text":["one","two"],"raw_content":[]}}}"#,
        r#"{"ordinal":4,"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"one"},{"type":"summary_text","text":"two"}],"encrypted_content":"gAA"}}"#,
        r#"{"ordinal":5,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"AgentMessage","id":"i3","content":[{"type":"Text","text":"hi"}]}}}"#,
        r#"{"ordinal":6,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}"#,
        r#"{"ordinal":7,"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"x\"}","call_id":"c1"}}"#,
        r#"{"ordinal":8,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"CommandExecution","id":"c1","command":["x"],"status":"failed","exit_code":1,"duration":{"secs":1,"nanos":500000000}}}}"#,
        r#"{"ordinal":9,"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"no"}}"#,
        r#"{"ordinal":10,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"Plan","id":"i4","text":"first this"}}}"#,
        r#"{"ordinal":11,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t","item":{"type":"Novelty","id":"i5"}}}"#,
    ]);
    assert_snapshot!(read.lines());
    let result = &read.events[7].annotations;
    assert_eq!(result.status, Some(Status::Error));
    assert_eq!(result.duration_ms, Some(1500));
}

#[test]
fn turns_that_were_rolled_back() {
    let ask = |text: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let back = |turns: u64| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":{turns}}}}}"#
        )
    };
    let lines = [
        ask("one"),
        ask("two"),
        ask("three"),
        back(2),
        ask("four"),
        back(1),
        back(0),
        back(u64::MAX),
        back(1),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let read = rollout(&lines);
    let superseded: Vec<u64> = read
        .events
        .iter()
        .filter(|event| event.annotations.flags.superseded)
        .map(|event| event.seq)
        .collect();
    assert_eq!(superseded, [1, 2, 3, 4, 5, 6, 7]);
    let read = rollout(&lines[..6]);
    let superseded: Vec<u64> = read
        .events
        .iter()
        .filter(|event| event.annotations.flags.superseded)
        .map(|event| event.seq)
        .collect();
    assert_eq!(superseded, [2, 3, 5]);
}

#[test]
fn compactions() {
    let read = rollout(&[
        r#"{"type":"compacted","payload":{"message":"so far","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}]}}"#,
        r#"{"type":"event_msg","payload":{"type":"context_compacted"}}"#,
        r#"{"type":"event_msg","payload":{"type":"context_compacted"}}"#,
        r#"{"type":"response_item","payload":{"type":"compaction","encrypted_content":"gAA"}}"#,
    ]);
    assert_eq!(
        read.words(),
        ["note.compaction", "note.compaction", "note.compaction"]
    );
    assert_eq!(dropped(&read, Dropped::RepeatedChannel), 1);
}

#[test]
fn the_first_generation() {
    let read = rollout(&[
        r#"{"id":"v0","timestamp":"2025-07-01T10:00:00.000Z","instructions":null,"git":{"branch":"main"}}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"hello"}]}"#,
        r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":null}"#,
        r#"{"type":"function_call","id":null,"name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"a\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.5}}"}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","id":null,"role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#,
    ]);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.branch.as_deref(), Some("main"));
    // Before there was a format.
    let read = rollout(&[
        r#"{"timestamp":"2025-05-01T10:00:00Z","role":"user","content":"hello","model":"m"}"#,
        r#"{"timestamp":"2025-05-01T10:00:01Z","type":"tool_call","function":{"name":"git"},"arguments":"status"}"#,
        r#"{"timestamp":"2025-05-01T10:00:02Z","type":"tool_result","name":"git","result":"clean"}"#,
        r#"{"timestamp":"2025-05-01T10:00:03Z","role":"assistant","content":"hi"}"#,
        r#"{"timestamp":"2025-05-01T10:00:04Z","type":"error","text":"oh"}"#,
    ]);
    assert_eq!(
        read.words(),
        [
            "message.user",
            "tool.call",
            "tool.result",
            "message.assistant",
            "note.error"
        ]
    );
    assert_eq!(read.ledger.orphans, 0);
}

#[test]
fn a_stream() {
    let read = read(
        log(&[
            r#"{"type":"thread.started","thread_id":"t1"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"hm"}}"#,
            r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
            r#"{"type":"item.updated","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"rm","aggregated_output":"","exit_code":null,"status":"declined"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"failed"}}"#,
            r#"{"type":"item.started","item":{"id":"item_4","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"q":1},"result":null,"error":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_4","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"q":1},"result":{"content":[],"structured_content":{"n":1}},"error":null,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_5","type":"collab_tool_call","tool":"spawn_agent","sender_thread_id":"t1","receiver_thread_ids":["t2"],"prompt":"look","agents_states":{},"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_6","type":"web_search","query":"q"}}"#,
            r#"{"type":"item.started","item":{"id":"item_7","type":"todo_list","items":[{"text":"x","completed":false}]}}"#,
            r#"{"type":"item.completed","item":{"id":"item_8","type":"agent_message","text":"done"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_9","item_type":"assistant_message","text":"as it was called before"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":5}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":150,"cached_input_tokens":60,"output_tokens":9}}"#,
            r#"{"type":"turn.failed","error":{"message":"no"}}"#,
            r#"{"type":"error","message":"gone"}"#,
        ])
        .as_bytes(),
        "x",
    )
    .unwrap();
    assert_eq!(read.dialect, EXEC);
    assert_snapshot!(read.lines());
    assert_eq!(
        buckets(read.usage()),
        [Some(90), Some(60), None, Some(9), None]
    );
    assert_eq!(read.session.vendor_usage, Some(read.usage().into()));
    assert!(read.ledger.drift.is_empty());
}

#[test]
fn the_first_stream() {
    let read = read(
        log(&[
            r#"{"model":"m","provider":"openai","workdir":"/code","sandbox":"read-only"}"#,
            r#"{"prompt":"list the files"}"#,
            r#"{"id":"0","msg":{"type":"session_configured","session_id":"s1","model":"m"}}"#,
            r#"{"id":"0","msg":{"type":"task_started"}}"#,
            r#"{"id":"0","msg":{"type":"agent_reasoning_section_break"}}"#,
            r#"{"id":"0","msg":{"type":"agent_reasoning","text":"hm"}}"#,
            r#"{"id":"0","msg":{"type":"exec_command_begin","call_id":"c1","command":["ls"],"cwd":"/code","parsed_cmd":[]}}"#,
            r#"{"id":"0","msg":{"type":"exec_command_output_delta","call_id":"c1","chunk":"YQ=="}}"#,
            r#"{"id":"0","msg":{"type":"exec_command_end","call_id":"c1","stdout":"a\n","stderr":"","exit_code":0,"duration":{"secs":0,"nanos":5000000}}}"#,
            r#"{"id":"0","msg":{"type":"mcp_tool_call_begin","call_id":"c2","invocation":{"server":"s","tool":"t","arguments":{"q":1}}}}"#,
            r#"{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"c2","invocation":{"server":"s","tool":"t","arguments":{"q":1}},"duration":{"secs":1,"nanos":0},"result":{"Err":"refused"}}}"#,
            r#"{"id":"0","msg":{"type":"token_count","input_tokens":10,"cached_input_tokens":4,"output_tokens":2,"total_tokens":12}}"#,
            r#"{"id":"0","msg":{"type":"agent_message","message":"a"}}"#,
            r#"{"id":"0","msg":{"type":"task_complete","last_agent_message":"a"}}"#,
        ])
        .as_bytes(),
        "x",
    )
    .unwrap();
    assert_eq!(read.dialect, EXEC);
    assert_snapshot!(read.lines());
    assert!(read.ledger.drift.is_empty());
}

#[test]
fn where_rollouts_are() {
    let home = Host::new("/home/a", |_| None);
    let places = Codex.places(&home);
    let roots: Vec<(&str, &str)> = places
        .iter()
        .map(|place| (place.brand, place.root.to_str().unwrap()))
        .collect();
    assert_eq!(
        roots,
        [
            ("codex", "/home/a/.codex/sessions"),
            ("codex", "/home/a/.codex/archived_sessions"),
            ("traex", "/home/a/.trae/cli/sessions"),
        ]
    );
    let set = Host::new("/home/a", |name| {
        (name == "CODEX_HOME").then(|| "/c".into())
    });
    assert_eq!(Codex.places(&set)[0].root, Path::new("/c/sessions"));
    let pick = places[0].pick;
    let name = "2026/01/02/rollout-2026-01-02T03-04-05-01980000-0000-7000-8000-000000000001.jsonl";
    assert_eq!(pick(Path::new(name)), Pick::Log);
    assert_eq!(pick(Path::new(&format!("{name}.zst"))), Pick::Log);
    for other in [
        format!("{name}.zst.compress.12.1.tmp"),
        "auth.json".to_owned(),
        "2026".to_owned(),
    ] {
        assert_eq!(pick(Path::new(&other)), Pick::Skip, "{other}");
    }
    // A file that does not say whose it is is named for its session.
    for ending in ["jsonl", "jsonl.zst"] {
        let name = format!("rollout-2026-01-02T03-04-05-{PARENT}.{ending}");
        let line = r#"{"type":"event_msg","payload":{"type":"agent_message","message":"x"}}"#;
        let read = read_as(&Codex, ROLLOUT, line.as_bytes(), &name);
        assert_eq!(read.session.id.as_deref(), Some(PARENT));
    }
    assert_eq!(
        Codex.resume("codex", "s1"),
        Some(vec![
            "codex".to_owned(),
            "resume".to_owned(),
            "s1".to_owned()
        ])
    );
    assert_eq!(Codex.resume("traex", "s1"), None);
}

#[test]
fn what_is_no_rollout() {
    for log in [
        r#"{"type":"message","role":"user","content":"x"}"#,
        r#"{"type":"session_meta"}"#,
        r#"{"type":"turn.started"}"#,
        r#"{"id":"1","msg":{"type":"hello"}}"#,
        r#"{"role":"user","content":"x"}"#,
        r#"{"id":"x","timestamp":"2026-01-01T00:00:00Z","role":"user"}"#,
        "[]",
        "",
    ] {
        let found = crate::Head::look(log.as_bytes(), true, |head| Codex.sniff(head));
        assert_eq!(found, None, "{log}");
    }
}

#[test]
fn notes_say_what_they_are_about() {
    let read = rollout(&[
        r#"{"type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"Files"}}"#,
        r#"{"type":"event_msg","payload":{"type":"error","message":"no network"}}"#,
        r#"{"type":"turn_context","payload":{"model":"a"}}"#,
        r#"{"type":"turn_context","payload":{"model":"a"}}"#,
        r#"{"type":"turn_context","payload":{"model":"b"}}"#,
        r#"{"type":"event_msg","payload":{"type":"web_search_end","call_id":"ws_1","query":"q","action":{}}}"#,
        r#"{"type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}}"#,
        r#"{"type":"event_msg","payload":{"type":"agent_message_delta","delta":"x"}}"#,
        r#"{"type":"event_msg","payload":{"type":"never_heard_of"}}"#,
    ]);
    let kind = |kind: NoteKind| format!("note.{kind}");
    assert_eq!(
        read.words(),
        [
            kind(NoteKind::Title),
            kind(NoteKind::Error),
            kind(NoteKind::Context),
            kind(NoteKind::Context),
            kind(NoteKind::ModelChange),
            kind(NoteKind::Progress),
            "tool.call".to_owned(),
            "tool.result".to_owned(),
            kind(NoteKind::UnknownRecord),
        ]
    );
    assert_eq!(read.session.title.as_deref(), Some("Files"));
    assert_eq!(read.ledger.orphans, 0);
    assert_eq!(dropped(&read, Dropped::StreamDelta), 1);
    let unknown: Vec<&str> = read
        .ledger
        .drift
        .unknown
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(unknown, ["type:event_msg.never_heard_of"]);
}

/// A sub-agent whose turn seems to have begun hours before itself, without a word on what it inherited.
#[test]
fn times_do_not_tell_what_is_inherited() {
    let counts = r#"{"input_tokens":4200,"cached_input_tokens":3600,"output_tokens":180,"reasoning_output_tokens":64,"total_tokens":4380}"#;
    let tokens = format!(
        r#"{{"timestamp":"2026-08-01T18:07:14.100Z","type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{counts},"total_token_usage":{counts}}}}}}}"#
    );
    let read = rollout(&[
        r#"{"timestamp":"2026-08-01T18:07:04.550Z","type":"session_meta","payload":{"id":"01980000-0000-7000-8000-000000000002","timestamp":"2026-08-01T18:07:03.636Z","cwd":"/code","originator":"codex-tui","cli_version":"0.200.19","source":{"subagent":{"thread_spawn":{"parent_thread_id":"01980000-0000-7000-8000-000000000001","depth":1,"agent_role":"explorer"}}},"thread_source":"subagent"}}"#,
        r#"{"timestamp":"2026-08-01T18:07:04.560Z","type":"event_msg","payload":{"type":"task_started","turn_id":"turn-1","started_at":1785561000000}}"#,
        r#"{"timestamp":"2026-08-01T18:07:04.570Z","type":"turn_context","payload":{"turn_id":"turn-1","cwd":"/code","model":"gpt-x"}}"#,
        &tokens,
    ]);
    assert_eq!(read.usage().total(), 4380);
    assert_eq!(
        read.session.parent.as_deref(),
        Some("01980000-0000-7000-8000-000000000001")
    );
}

/// Only searches are paid for; opening a page that was found is not.
#[test]
fn searches_of_the_web_are_counted() {
    let action = |n: u32, action: &str| {
        format!(
            r#"{{"timestamp":"2026-01-02T03:04:08.300Z","type":"response_item","payload":{{"type":"web_search_call","id":"ws_{n}","status":"completed","action":{action}}}}}"#
        )
    };
    let lines = [
        action(1, r#"{"type":"search","query":"a","queries":["a","b"]}"#),
        action(2, r#"{"type":"open_page","url":"https://example.com"}"#),
        action(
            3,
            r#"{"type":"find_in_page","url":"https://example.com","pattern":"x"}"#,
        ),
        action(4, r#"{"type":"search","query":"c"}"#),
    ];
    let context = r#"{"timestamp":"2026-01-02T03:04:05.300Z","type":"turn_context","payload":{"turn_id":"t","cwd":"/code","model":"gpt-x"}}"#;
    let mut all = vec![SESSION[0], context];
    all.extend(lines.iter().map(String::as_str));
    let read = rollout(&all);
    let searches: Vec<(&str, u64, u64)> = read
        .summary
        .spend
        .iter()
        .map(|(key, spend)| (key.model.as_str(), spend.calls, spend.searches))
        .collect();
    assert_eq!(searches, [("gpt-x", 0, 2)]);
}

#[test]
fn tokens_of_a_stream_with_several_turns() {
    let turn = |input: u64, cached: u64, output: u64| {
        format!(
            r#"{{"type":"turn.completed","usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output}}}}}"#
        )
    };
    let sum = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let read = read(log(&lines).as_bytes(), "x").unwrap();
        assert_eq!(read.dialect, EXEC);
        assert_eq!(read.session.vendor_usage, Some(read.usage().into()));
        read.usage().total()
    };
    let thread = |id: &str| format!(r#"{{"type":"thread.started","thread_id":"{id}"}}"#);
    let (one, two) = (thread("t1"), thread("t2"));
    // Running totals, over streams of the same thread.
    let totals = [one.clone(), turn(100, 40, 5), one.clone(), turn(150, 60, 9)];
    assert_eq!(sum(&totals), 159);
    // Nothing was added.
    assert_eq!(sum(&[one.clone(), turn(100, 40, 5), turn(100, 40, 5)]), 105);
    // Another thread.
    assert_eq!(
        sum(&[one.clone(), turn(100, 40, 5), two, turn(150, 60, 9)]),
        264
    );
    // One count falls, so these are no totals, and neither is what comes after.
    let turns = [one, turn(100, 40, 5), turn(120, 100, 9), turn(150, 120, 9)];
    assert_eq!(sum(&turns), 105 + 129 + 159);
}
