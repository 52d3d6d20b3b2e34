use std::path::Path;

use super::{Flow, RUN, TRANSCRIPT};
use crate::testkit::{hostile, read, read_as};
use crate::{Collect, Family as _, Feed, Gathered, Origin};

const T1: &str = r##"{"timestamp": "2025-12-09T14:30:22.100000Z", "role": "user", "content": "Add a health check."}
{"timestamp": "2025-12-09T14:30:23.200000Z", "role": "assistant", "content": "Reading.", "kind": "thinking"}
{"timestamp": "2025-12-09T14:30:23.300000Z", "role": "tool", "tool_name": "Read", "tool_input": {"file_path": "/code/t.md"}, "content": "# Tests\n"}
{"timestamp": "2025-12-09T14:30:24.500000Z", "role": "tool", "tool_name": "Bash", "tool_input": {"command": "x"}, "tool_output": "no", "output_is": "error", "error": "no", "completed_at": "2025-12-09T14:30:25.500000Z", "status": "denied"}
"##;
const T2: &str = r#"{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "system", "content": "Executing step impl with agent coder"}
{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "user", "content": "Step role: Implement"}
{"timestamp": "2025-12-09T10:20:43.245801+00:00Z", "role": "assistant", "content": "[STUB] Completed step impl. In production, this would contain the actual Claude response."}
"#;
const T4: &str = r#"{"timestamp": "2025-12-09T10:20:43+00:00Z", "type": "message", "role": "assistant", "content": "Looking."}
{"timestamp": "2025-12-09T10:20:44+00:00Z", "type": "tool_use", "tool": "Read", "input": {"file_path": "/code/a"}}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "type": "tool_result", "tool": "Read", "success": false, "output": "no such file"}
{"timestamp": "2025-12-09T10:20:46+00:00Z", "type": "result", "usage": {"prompt": 10, "completion": 4, "total": 14}}
"#;
const T5: &str = r#"{"timestamp": "2025-12-09T10:20:44+00:00Z", "type": "AssistantMessage", "content": "[TextBlock(text='It is here.'), ToolUseBlock(id='toolu_1', name='Read', input={'a': True})]", "model": "claude-sonnet-4", "parent_tool_use_id": null}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "type": "UserMessage", "content": "[ToolResultBlock(tool_use_id='toolu_1', content='A', is_error=None)]"}
"#;
const T6: &str = r#"{"timestamp": "2025-12-09T10:20:43+00:00Z", "phase": "work", "type": "assistant", "content": "Working."}
{"timestamp": "2025-12-09T10:20:45+00:00Z", "phase": "work", "type": "tool_use", "tool": "Bash", "success": true}
"#;
const T9: &str = r#"{"timestamp": "2025-12-09T10:20:43Z", "role": "user", "content": "Go."}
{"timestamp": "2025-12-09T10:20:44Z", "type": "tool_use", "tool": "Bash", "input": {"command": "ls"}}
{"timestamp": "2025-12-09T10:20:45Z", "type": "tool_result", "tool": "Bash", "success": true, "output": "a"}
"#;
const RECEIPT: &str = r#"{"engine":"claude-step","model":"claude-sonnet-4","step_id":"impl","flow_key":"build","run_id":"run-1","agent_key":"coder","started_at":"2025-12-09T14:30:22.000000Z","completed_at":"2025-12-09T14:30:26.800000Z","duration_ms":4800,"status":"succeeded","tokens":{"prompt":12500,"completion":3200,"total":15700,"cache_read":12000},"cost_usd":0.0421,"git_branch":"main","transcript_path":"llm/impl-coder-claude.jsonl"}"#;

const PATH: &str = "/code/runs/run-1/build/llm/impl-coder-claude.jsonl";

#[test]
fn each_shape_is_known_by_its_content() {
    for (log, words) in [
        (
            T1,
            "message.user message.assistant tool.call tool.result tool.call tool.result",
        ),
        (T2, "message.system message.user message.assistant"),
        (
            T4,
            "message.assistant tool.call tool.result note.turn note.model_call",
        ),
        (
            T5,
            "message.assistant tool.call note.context tool.result note.context",
        ),
        (T6, "message.assistant tool.call tool.result"),
        (T9, "message.user tool.call tool.result"),
    ] {
        let read = read(log.as_bytes(), PATH).unwrap();
        assert_eq!(read.dialect.name, "flow", "{log}");
        assert_eq!(read.words().join(" "), words, "{log}");
        assert_eq!(
            read.session.id.as_deref(),
            Some("run-1/build/impl-coder-claude")
        );
        assert!(read.error.is_none());
        assert_eq!(read.ledger.orphans, 0, "{log}");
    }
}

#[test]
fn other_logs_stay_with_their_families() {
    let stream = r#"{"type":"system","subtype":"init","session_id":"s1","cwd":"/code","model":"claude-opus-4","timestamp":"2025-12-09T10:20:43+00:00Z"}
{"type":"assistant","message":{"id":"m1","role":"assistant","model":"claude-opus-4","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":1,"output_tokens":1}},"session_id":"s1","timestamp":"2025-12-09T10:20:43+00:00Z"}
"#;
    let gemini = r#"{"type":"init","session_id":"g1","model":"gemini-2.5-pro","timestamp":"2025-12-09T10:20:43+00:00Z"}
{"type":"message","role":"user","content":"Do it.","timestamp":"2025-12-09T10:20:43+00:00Z"}
"#;
    let gptme = r#"{"role":"user","content":"hi","timestamp":"2025-12-09T10:20:43.123456"}
{"role":"assistant","content":"hello","timestamp":"2025-12-09T10:20:43.123456"}
"#;
    for (log, dialect) in [
        (stream, "claude-stream"),
        (gemini, "gemini-stream"),
        (gptme, "gptme"),
    ] {
        let (_, found) = crate::identify(log.as_bytes(), true).unwrap();
        assert_eq!(found.name, dialect);
    }
    for log in [
        "{}\n",
        "[]\n",
        "",
        "{\"timestamp\": \"2025-12-09T10:20:43Z\"}\n",
        "{\"role\": \"user\", \"content\": \"x\"}\n",
    ] {
        let found = crate::identify(log.as_bytes(), true);
        assert!(
            found.is_none_or(|(_, dialect)| dialect.name != "flow"),
            "{log}"
        );
    }
}

#[test]
fn the_receipt_says_what_the_step_took() {
    let log = Path::new(PATH);
    let beside = Flow.sidecars(log);
    assert_eq!(
        beside,
        [Path::new("/code/runs/run-1/build/receipts/impl-coder.json")]
    );
    let second = Flow.sidecars("/r/build/llm/impl-coder-claude.i2.jsonl".as_ref());
    assert_eq!(second, [Path::new("/r/build/receipts/impl-coder.i2.json")]);
    assert!(
        Flow.sidecars("/r/build/other/a-b-c.jsonl".as_ref())
            .is_empty()
    );
    let origin = Origin {
        path: log,
        part: None,
    };
    let mut feed = Feed::new(
        TRANSCRIPT.framing,
        Flow.open(&TRANSCRIPT, &origin, None).unwrap(),
    );
    let mut sink = Collect::default();
    feed.push(T1.as_bytes(), &mut sink);
    feed.sidecar("impl-coder.json", RECEIPT.as_bytes(), &mut sink);
    feed.finish(&mut sink).unwrap();
    let last = sink.events.last().unwrap();
    let usage = last.annotations.usage.unwrap();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(500), Some(12_000), Some(3200))
    );
    assert_eq!(last.annotations.model.as_deref(), Some("claude-sonnet-4"));
    let session = feed.session();
    assert_eq!(session.vendor_cost.as_deref(), Some("0.0421"));
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(session.title.as_deref(), Some("build: impl (coder)"));
}

#[test]
fn stubs_are_marked() {
    let read = read_as(&Flow, TRANSCRIPT, T2.as_bytes(), PATH);
    let last = read.events.last().unwrap();
    assert!(last.annotations.flags.synthetic);
    assert_eq!(read.usage(), quipu_model::Usage::default());
}

#[test]
fn broken_logs_do_no_harm() {
    for log in [T1, T4, T5, T6, T9] {
        hostile(&Flow, TRANSCRIPT, log);
    }
}

/// The records of a run that others wrote.
fn gathered(name: &str) -> Vec<u8> {
    let run = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../formats/fixtures/flow"
    ))
    .join(name);
    let gather = Flow.gather().unwrap();
    assert!(gather.holds(&run), "{name}");
    let from = Gathered::Tree(&run);
    let parts = gather.parts(&from).unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts, gather.parts(&from).unwrap());
    let mut bytes = Vec::new();
    gather.write(&from, &parts[0].id, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_run_is_one_session_however_it_is_cut() {
    for (name, id, steps) in [
        ("stepwise-loop-claude", "run-20251209-102043-k4loop", 12),
        ("stepwise-gemini", "run-20251209-103000-q7gemi", 4),
        (
            "run-20251209-143022-abc123",
            "run-20251209-143022-abc123",
            9,
        ),
    ] {
        let bytes = gathered(name);
        let read = read_as(&Flow, RUN, &bytes, &format!("/runs/{name}"));
        assert_eq!(crate::identify(&bytes, true).unwrap().1, RUN);
        assert_eq!(read.session.id.as_deref(), Some(id));
        let begun = read
            .events
            .iter()
            .filter(|event| event.body.type_word() == "step.started");
        assert_eq!(begun.count(), steps, "{name}");
        // Where a note of the journal stands is a file below that of the log, which has no name here.
        let in_journal = |event: &quipu_model::Event| {
            let source = event.annotations.source.as_ref();
            source.is_some_and(|source| source.file == "/events.jsonl")
        };
        assert!(read.events.iter().any(in_journal), "{name}");
    }
}

#[test]
fn a_run_says_the_same_as_its_directory() {
    let name = "run-20251209-143022-abc123";
    let read = read_as(&Flow, RUN, &gathered(name), name);
    let run = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../formats/fixtures/flow"
    ));
    let mut there = Vec::new();
    quipu_formats::flow::read(&run.join(name), &mut |event| there.push(event)).unwrap();
    assert_eq!(read.events.len(), there.len());
    for (kept, told) in read.events.iter().zip(&there) {
        assert_eq!((kept.seq, &kept.place), (told.seq, &told.place));
        assert_eq!(kept.body, told.body);
        assert_eq!(kept.annotations.usage, told.annotations.usage);
        assert_eq!(kept.annotations.model, told.annotations.model);
        assert_eq!(
            kept.annotations.flags.synthetic,
            told.annotations.flags.synthetic
        );
    }
}

#[test]
fn strays_in_a_journal_are_counted() {
    let read = read_as(&Flow, RUN, &gathered("run-20251209-143022-abc123"), "run");
    let count = |word: &str| {
        let drift = read.ledger.drift.unknown.iter();
        let same = drift.filter(|(name, _)| name.contains(word));
        same.map(|(_, seen)| seen.count).sum::<u64>()
    };
    assert_eq!(count("not an event"), 2);
    assert_eq!(count("run:paused"), 1);
    assert_eq!(count("run:resumed"), 1);
    assert_eq!(count("teleported"), 1);
}

#[test]
fn broken_records_of_runs_do_no_harm() {
    let bytes = gathered("stepwise-loop-claude");
    let text = String::from_utf8(bytes).unwrap();
    let some: Vec<&str> = text.lines().skip(2).take(9).collect();
    let first = text.lines().next().unwrap();
    hostile(&Flow, RUN, &format!("{first}\n{}\n", some.join("\n")));
}
