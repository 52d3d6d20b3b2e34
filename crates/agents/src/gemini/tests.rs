use insta::assert_snapshot;
use quipu_model::{Body, NoteKind, Status, Usage};

use super::{ANSWER, ANTIGRAVITY, DOCUMENT, Gemini, JOURNAL, STREAM};
use crate::Pick;
use crate::corpus::logs;
use crate::testkit::{Read, hostile, picks, read, read_as};

const SESSION: &str = include_str!("../../fixtures/gemini/session.jsonl");

fn voided(read: &Read) -> Vec<u64> {
    let events = read.events.iter();
    events
        .filter(|event| event.annotations.flags.superseded)
        .map(|event| event.seq)
        .collect()
}

fn counts(usage: Usage) -> [u64; 5] {
    let Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h: _,
        output,
        reasoning,
    } = usage;
    [input, cache_read, cache_write, output, reasoning].map(Option::unwrap_or_default)
}

#[test]
fn a_journal_gives_each_thing_once() {
    let read = read(SESSION.as_bytes(), "chats/session-1.jsonl").unwrap();
    assert_eq!(read.dialect, JOURNAL);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.title.as_deref(), Some("Listing files"));
    // 100 - 40 + 2 and 120 - 100; 10 + 5 and 4.
    assert_eq!(counts(read.usage()), [82, 140, 0, 19, 5]);
}

#[test]
fn a_document_reads_as_its_journal() {
    let lines: Vec<serde_json::Value> = SESSION
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let document = serde_json::json!({
        "sessionId": "s1", "projectHash": "p1", "startTime": "2026-04-29T21:39:22.319Z",
        "messages": [lines[1], lines[2], lines[8], lines[9], lines[10]],
    });
    let document = read(document.to_string().as_bytes(), "session-1.json").unwrap();
    assert_eq!(document.dialect, DOCUMENT);
    let journal = read(SESSION.as_bytes(), "session-1.jsonl").unwrap();
    // In the journal the results of several calls come after all of them.
    let bodies = |read: &Read| -> Vec<String> {
        let events = read.events.iter().map(|event| &event.body);
        let mut bodies: Vec<String> = events
            .filter(|body| !matches!(body, Body::Note(note) if note.kind != NoteKind::Error))
            .map(|body| format!("{body:?}"))
            .collect();
        bodies.sort();
        bodies
    };
    assert_eq!(bodies(&document), bodies(&journal));
    assert_eq!(counts(document.usage()), counts(journal.usage()));
    assert_eq!(document.ledger.units, journal.ledger.units);
}

#[test]
fn a_call_and_its_result_are_two_events() {
    let read = read(SESSION.as_bytes(), "s.jsonl").unwrap();
    let results: Vec<_> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolResult(result) => Some((result.call_id.as_str(), event.annotations.status)),
            _ => None,
        })
        .collect();
    let expected = [("t1", Some(Status::Ok)), ("t2", Some(Status::Denied))];
    assert_eq!(results, expected);
}

#[test]
fn a_rewind_takes_back_a_message_and_what_follows() {
    let log = r#"{"sessionId":"s","projectHash":"p","startTime":"2026-04-29T21:39:22.319Z"}
{"id":"u1","type":"user","content":"one"}
{"id":"g1","type":"gemini","content":"first","tokens":{"input":5,"output":1,"cached":0}}
{"id":"u2","type":"user","content":"two"}
{"id":"g2","type":"gemini","content":"second","tokens":{"input":7,"output":2,"cached":0}}
{"$rewindTo":"u2"}
{"id":"u3","type":"user","content":"three"}
"#;
    let seen = read(log.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(voided(&seen), [4, 5]);
    // What was used was used.
    assert_eq!(counts(seen.usage()), [12, 0, 0, 3, 0]);

    let unknown = format!("{log}{}", "{\"$rewindTo\":\"nobody\"}\n");
    let seen = read(unknown.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(voided(&seen), [2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_checkpoint_takes_the_place_of_everything() {
    let log = r#"{"sessionId":"s","projectHash":"p","startTime":"2026-04-29T21:39:22.319Z"}
{"id":"u1","type":"user","content":"one"}
{"id":"g1","type":"gemini","content":"first","tokens":{"input":5,"output":1,"cached":0}}
{"$set":{"messages":[{"id":"u1","type":"user","content":"one"},{"id":"g1","type":"gemini","content":"first","tokens":{"input":5,"output":1,"cached":0}}]}}
{"$set":{"messages":[{"id":"k1","type":"user","content":"a summary"},{"id":"g1","type":"gemini","content":"first","tokens":{"input":5,"output":1,"cached":0}}]}}
"#;
    let read = read(log.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "message.assistant",
            "note.compaction",
            "message.user",
            "message.assistant"
        ]
    );
    assert_eq!(voided(&read), [2, 3]);
    assert_eq!(counts(read.usage()), [5, 0, 0, 1, 0]);
}

#[test]
fn a_result_that_changes_takes_the_place_of_what_it_was() {
    let line = |output: &str| {
        format!(
            r#"{{"id":"g1","type":"gemini","content":"","toolCalls":[{{"id":"t1","name":"ls","args":{{}},"status":"success","result":[{{"functionResponse":{{"id":"t1","response":{{"output":"{output}"}}}}}}]}}]}}"#
        )
    };
    let log = format!("{}\n{}\n", line("long"), line("[masked]"));
    let read = read(log.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(read.words(), ["tool.call", "tool.result", "tool.result"]);
    assert_eq!(voided(&read), [2]);
}

#[test]
fn a_sub_agent_has_a_file_of_its_own() {
    let log = r#"{"sessionId":"child","projectHash":"p","startTime":"2026-04-29T21:39:22.319Z","kind":"subagent"}
"#;
    let read = read(log.as_bytes(), "tmp/slot/chats/parent/child.jsonl").unwrap();
    assert_eq!(read.session.id.as_deref(), Some("child"));
    assert_eq!(read.session.parent.as_deref(), Some("parent"));
}

#[test]
fn images_are_kept_outside() {
    let data = "QUJD".repeat(400);
    let log = format!(
        r#"{{"id":"u1","type":"user","content":[{{"text":"look"}},{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}]}}
{{"id":"g1","type":"gemini","content":"","toolCalls":[{{"id":"t1","name":"read","args":{{}},"status":"success","result":[{{"functionResponse":{{"id":"t1","response":{{"output":"done"}}}}}},{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}]}}]}}
"#
    );
    let read = read(log.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(read.blobs, 2);
    assert!(!read.lines().contains("QUJDQUJD"));
}

const EVENTS: &str = include_str!("../../fixtures/gemini-stream/session.jsonl");

#[test]
fn a_stream() {
    let read = read(EVENTS.as_bytes(), "out.jsonl").unwrap();
    assert_eq!(read.dialect, STREAM);
    assert_snapshot!(read.lines());
    assert_eq!(counts(read.usage()), [70, 30, 0, 60, 10]);
    let vendor = read.session.vendor_usage.unwrap();
    assert_eq!(counts(vendor.into()), counts(read.usage()));
}

#[test]
fn an_answer_that_was_cut_off_is_given_on() {
    let cut: Vec<&str> = EVENTS.lines().take(3).collect();
    let read = read(cut.join("\n").as_bytes(), "out.jsonl").unwrap();
    let words = read.words();
    assert_eq!(words.last().map(String::as_str), Some("message.assistant"));
}

const OBJECT: &str = include_str!("../../fixtures/gemini-answer/session.json");

#[test]
fn an_answer() {
    let read = read(OBJECT.as_bytes(), "out.json").unwrap();
    assert_eq!(read.dialect, ANSWER);
    assert_snapshot!(read.lines());
    assert_eq!(counts(read.usage()), [73, 30, 0, 25, 5]);
}

const STEPS: &str = include_str!("../../fixtures/antigravity/session.jsonl");

#[test]
fn a_transcript() {
    let path = "brain/abc/.system_generated/logs/transcript.jsonl";
    let read = read(STEPS.as_bytes(), path).unwrap();
    assert_eq!(read.dialect, ANTIGRAVITY);
    assert_snapshot!(read.lines());
    assert_eq!(read.ledger.orphans, 1);
}

#[test]
fn broken_logs_do_no_harm() {
    let short: Vec<&str> = SESSION
        .lines()
        .skip(7)
        .take(1)
        .chain([
            "{\"$rewindTo\":\"g1\"}",
            "{\"$set\":{\"messages\":[{\"id\":\"x\",\"type\":\"user\",\"content\":\"y\"}]}}",
        ])
        .collect();
    hostile(&Gemini, JOURNAL, &short.join("\n"));
    hostile(&Gemini, STREAM, EVENTS);
    hostile(&Gemini, ANTIGRAVITY, STEPS);
    hostile(&Gemini, ANSWER, OBJECT);
    hostile(
        &Gemini,
        DOCUMENT,
        r#"{"sessionId":"s","messages":[{"id":"a","type":"gemini","content":[{"text":"x"}],"tokens":{"input":1}}],"history":[{"role":"user","parts":[{"text":"x"}]}]}"#,
    );
}

/// The vendor sums each call; what is counted is the same.
#[test]
fn real_sessions_count_what_the_vendor_counted() {
    for (name, bytes) in logs("gemini") {
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(&bytes) else {
            continue;
        };
        let messages = document["messages"].as_array().into_iter().flatten();
        let total: u64 = messages.filter_map(|m| m["tokens"]["total"].as_u64()).sum();
        let read = read_as(&Gemini, DOCUMENT, &bytes, &name);
        assert_eq!(read.usage().total(), total, "{name}");
        if !name.contains("drift") {
            assert!(read.ledger.drift.is_empty(), "{name}");
        }
    }
}

/// What is picked below a place: `(place, path, what it is)`.
#[test]
fn logs_are_picked_by_where_they_are() {
    picks(
        &Gemini,
        &[
            (".gemini/tmp", "slot/chats/session-1.jsonl", Pick::Log),
            (".gemini/tmp", "slot/chats/session-1.json", Pick::Log),
            (".gemini/tmp", "slot/chats/parent/child.jsonl", Pick::Log),
            (".gemini/tmp", "slot/logs.json", Pick::Skip),
            (".qwen/tmp", "slot/chats/session-1.json", Pick::Log),
            (
                ".gemini/antigravity/brain",
                "id/.system_generated/logs/transcript.jsonl",
                Pick::Log,
            ),
            (".gemini/antigravity/brain", "id/notes.md", Pick::Skip),
        ],
    );
}

/// A document may be longer than what is looked at.
#[test]
fn a_long_document_is_known_by_its_beginning() {
    let message =
        r#"{"id":"u","timestamp":"2026-04-29T21:39:33.155Z","type":"user","content":"x"}"#;
    let messages = vec![message; 50].join(",\n");
    let log = format!(
        "{{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n  \"messages\": [\n    {{\n      \"id\": \"a\"\n    }}, {messages}]\n}}"
    );
    let (_, dialect) = crate::identify(&log.as_bytes()[..200], false).unwrap();
    assert_eq!(dialect, DOCUMENT);
}
