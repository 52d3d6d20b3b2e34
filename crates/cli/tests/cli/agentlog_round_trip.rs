//! Traces through the archive: imported, and exported as they were.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::env::TestEnv;

/// A trace with records of every kind, and of one that nobody knows, written as another program writes it.
fn every_kind(env: &TestEnv) -> String {
    let mut text = String::new();
    let (mut last, mut request) = (Value::Null, Value::Null);
    let chunk = |n: u64| json!({"chunk_index": n, "time_unix_nano": 1_776_765_602_000_000_000_u64 + n, "delta": {"text": n}});
    let all = [
        (
            "metadata",
            json!({"sdk": {"name": "shadow", "version": "3.2.5"}, "tags": {"env": "dev"}, "runtime": {"python": "3.11"}}),
        ),
        (
            "chat_request",
            json!({"model": "m", "messages": [{"role": "user", "content": "Where is it?"}], "params": {"temperature": 0.2}, "tools": []}),
        ),
        ("chunk", chunk(0)),
        ("chunk", chunk(1)),
        (
            "chat_response",
            json!({"model": "m", "content": [{"type": "tool_use", "id": "t1", "name": "lookup", "input": {"n": 7}}],
            "stop_reason": "max_tokens", "latency_ms": 12, "usage": {"input_tokens": 1, "output_tokens": 2}}),
        ),
        (
            "tool_call",
            json!({"tool_name": "lookup", "tool_call_id": "t1", "arguments": {"n": 7}}),
        ),
        (
            "tool_result",
            json!({"tool_call_id": "t1", "output": "depot", "is_error": false, "latency_ms": 40}),
        ),
        (
            "harness_event",
            json!({"category": "rate_limit", "name": "tokens.limit", "severity": "fatal", "attributes": {"n": 1}}),
        ),
        (
            "error",
            json!({"source": "tool", "code": "E17", "message": "no", "retriable": true}),
        ),
        (
            "blob_ref",
            json!({"mime": "image/png", "size_bytes": 12, "blob_id": format!("sha256:{}", "ab".repeat(32))}),
        ),
        ("telepathy", json!({"thought": 1.5})),
        (
            "metadata",
            json!({"sdk": {"name": "shadow", "version": "3.2.5"}, "tags": {"session": "2"}}),
        ),
        (
            "replay_summary",
            json!({"baseline_trace_id": format!("sha256:{}", "cd".repeat(32)), "backend_id": "mock",
            "input_count": 2, "output_count": 2, "error_count": 0, "duration_ms": 77}),
        ),
    ];
    for (n, (kind, payload)) in all.into_iter().enumerate() {
        let ran = env.run_with(&["agentlog", "id"], payload.to_string());
        let id = json!(ran.stdout.trim());
        let parent = if matches!(kind, "chunk" | "chat_response") {
            &request
        } else {
            &last
        };
        let line = format!(
            "{{\"version\": \"0.1\",\"id\":{id},\"kind\":\"{kind}\",\"ts\":\"2026-04-21T10:00:{n:02}.000Z\",\
             \"parent\":{parent},\"x\":{n},\"payload\":{payload}}}\n"
        );
        text.push_str(&line);
        if kind == "chat_request" {
            request = id.clone();
        }
        last = id;
    }
    text
}

/// Imports a trace into a home of its own and exports it again.
fn through_the_archive(trace: &[u8], name: &str) -> (Vec<u8>, TestEnv) {
    let env = TestEnv::new();
    let path = env.file(&format!("in/{name}"), trace);
    let ran = env.run(&["import", &path]);
    assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    // What is exported is what was kept, not what is still there.
    fs::remove_file(&path).unwrap();
    let below = env.path("out");
    let below_arg = below.to_str().unwrap();
    let ran = env.run(&["export", "--all", "--to", "agentlog", "-o", below_arg]);
    assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    let mut written = fs::read_dir(below).unwrap();
    let out = written.next().unwrap().unwrap().path();
    assert!(written.next().is_none(), "{name}");
    (fs::read(out).unwrap(), env)
}

fn is_same(was: &[u8], is: &[u8], name: &str) {
    assert!(was == is, "{name}: {}", String::from_utf8_lossy(is));
}

#[test]
fn a_trace_comes_out_of_the_archive_as_it_went_in() {
    let env = TestEnv::new();
    let trace = every_kind(&env);
    let (exported, env) = through_the_archive(trace.as_bytes(), "theirs.agentlog");
    is_same(trace.as_bytes(), &exported, "every kind");
    let file = env.file("theirs.agentlog", &trace);
    let ran = env.run(&["convert", &file, "--to", "agentlog", "-o", "-"]);
    is_same(trace.as_bytes(), ran.stdout.as_bytes(), "convert");
}

#[test]
fn every_valid_vector_comes_out_of_the_archive_as_it_went_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/agentlog");
    let Ok(list) = fs::read_to_string(root.join("cases.json")) else {
        eprintln!("skipped: the vectors are not at {}", root.display());
        return;
    };
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let mut seen = 0;
    for case in list {
        let verdict = case["verdict"].as_str().unwrap();
        if !verdict.starts_with("accept") && !verdict.starts_with("tolerate") {
            continue;
        }
        let name = case["file"].as_str().unwrap();
        // Logs are read to 128 levels; what is deeper is not taken for a log.
        if name == "depth-130.agentlog" {
            continue;
        }
        let trace = fs::read(root.join("cases").join(name)).unwrap();
        let (exported, _) = through_the_archive(&trace, name);
        is_same(&trace, &exported, name);
        seen += 1;
    }
    assert!(seen > 5, "{seen} vectors");
}

#[test]
fn the_blobs_of_a_trace_go_with_it() {
    let env = TestEnv::new();
    // The SHA-256 of "x".
    let digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let blob = env.file(&format!("x.agentlog.blobs/2d/{}", &digest[2..]), "x");
    let trace = every_kind(&env).replace(&"ab".repeat(32), digest);
    let path = env.file("x.agentlog", trace);
    let out = env.path("y.agentlog");
    let ran = env.run(&[
        "convert",
        &path,
        "--to",
        "agentlog",
        "-o",
        out.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // The id of the record is not that of what was put into it, and nobody changes it unasked.
    assert!(ran.stderr.contains("1 id-mismatch"), "{}", ran.stderr);
    let copied = env.path(&format!("y.agentlog.blobs/2d/{}", &digest[2..]));
    assert_eq!(fs::read(copied).unwrap(), fs::read(blob).unwrap());
}

/// A redacted trace is made anew, and is as the check wants it.
#[test]
fn the_ids_of_a_redacted_trace_are_right() {
    let env = TestEnv::new();
    let trace = every_kind(&env).replace("Where is it?", "my key is AKIAIOSFODNN7EXAMPLQ");
    let path = env.file("theirs.agentlog", trace);
    let out = env.path("out.agentlog");
    let out = out.to_str().unwrap();
    let args = [
        "convert",
        &path,
        "--to",
        "agentlog",
        "--profile",
        "research",
        "-o",
        out,
    ];
    let ran = env.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(out).unwrap();
    assert!(!text.contains("AKIAIOSFODNN7EXAMPLQ"));
    let checked = env.run(&["verify", out]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
}

/// A file that holds nothing would be taken for a session.
#[test]
fn a_session_of_which_a_format_carries_nothing_is_no_file() {
    let env = TestEnv::new();
    // Notes alone, for which the format has no place.
    let line = |n: u32| {
        format!(
            "{{\"type\":\"file-history-snapshot\",\"messageId\":\"m{n}\",\"snapshot\":{{\"messageId\":\"m{n}\",\
             \"trackedFileBackups\":{{}},\"timestamp\":\"2026-05-01T10:00:0{n}.000Z\"}},\"isSnapshotUpdate\":false}}\n"
        )
    };
    let path = env.file(
        "5e551011-0000-4000-8000-000000000001.jsonl",
        line(1) + &line(2),
    );
    let out = env.path("out.jsonl");
    let args = [
        "convert",
        &path,
        "--to",
        "huggingface",
        "-o",
        out.to_str().unwrap(),
    ];
    let ran = env.run(&args);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("so nothing was written"),
        "{}",
        ran.stderr
    );
    assert!(!out.exists());
    let piped = env.run(&["convert", &path, "--to", "huggingface", "-o", "-"]);
    // What went into a pipe cannot be taken back: the line of the session.
    assert_eq!((piped.code, piped.stdout.lines().count()), (1, 1));
    // Beside others, it alone is left out.
    let (trace, below) = (env.file("t.agentlog", every_kind(&env)), env.path("below"));
    let below_arg = below.to_str().unwrap();
    let ran = env.run(&[
        "convert",
        &path,
        &trace,
        "--to",
        "huggingface",
        "-o",
        below_arg,
    ]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("1 session written"), "{}", ran.stderr);
    let written: Vec<PathBuf> = fs::read_dir(below)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(fs::metadata(&written[0]).unwrap().len() > 0);
}
