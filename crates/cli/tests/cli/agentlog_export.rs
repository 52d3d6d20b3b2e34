//! Sessions and runs as traces: exported, written live, and shown.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use quipu_formats::agentlog::verify::{VerifyOptions, verify};
use serde_json::Value;

use super::env::TestEnv;

/// A small session: two calls to a model, one of them with two tools; a retry; what has no place.
fn log() -> String {
    let line = |kind: &str, uuid: u32, second: u32, rest: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"u{uuid}\",\"sessionId\":\"5e551011-0000-4000-8000-000000000001\",\
             \"cwd\":\"/home/ada/relay\",\"gitBranch\":\"main\",\"version\":\"2.1.0\",\
             \"timestamp\":\"2026-05-01T10:00:{second:02}.000Z\",{rest}}}\n"
        )
    };
    let said = |id: &str, usage: u32, block: &str| {
        format!(
            "\"message\":{{\"id\":\"{id}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-7\",\
             \"content\":[{block}],\"usage\":{{\"input_tokens\":5,\"output_tokens\":{usage}}}}}"
        )
    };
    let gave = |id: &str, text: &str| {
        format!(
            "\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\
             \"content\":\"{text}\"}}]}}"
        )
    };
    let uses = |id: &str, command: &str| {
        format!(
            "{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"Bash\",\"input\":{{\"command\":\"{command}\"}}}}"
        )
    };
    [
        line(
            "user",
            1,
            1,
            "\"message\":{\"role\":\"user\",\"content\":\"why does it retry?\"}",
        ),
        line(
            "assistant",
            2,
            3,
            &said(
                "m1",
                4,
                "{\"type\":\"text\",\"text\":\"I look.\\u001b[31m\"}",
            ),
        ),
        line("assistant", 3, 4, &said("m1", 4, &uses("t1", "ls"))),
        line("assistant", 4, 4, &said("m1", 9, &uses("t2", "pwd"))),
        line("user", 5, 5, &gave("t1", "a b")),
        line("user", 6, 6, &gave("t2", "/home/ada/relay")),
        line(
            "assistant",
            7,
            8,
            &said("m2", 7, "{\"type\":\"text\",\"text\":\"Because.\"}"),
        ),
        line("file-history-snapshot", 8, 9, "\"snapshot\":{}"),
    ]
    .concat()
}

fn records(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn kinds(text: &str) -> Vec<String> {
    let kind = |record: &Value| record["kind"].as_str().unwrap().to_owned();
    records(text).iter().map(kind).collect()
}

/// Whether a trace is as the strict check wants it.
fn check(bytes: &[u8]) -> Result<(), String> {
    let report = verify(bytes, &VerifyOptions::default()).map_err(|error| error.to_string())?;
    if report.is_clean() {
        return Ok(());
    }
    Err(format!("{:#?}", report.findings))
}

#[test]
fn a_session_becomes_a_trace_that_verifies() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let log = env.file("s.jsonl", log());
    let (out, report) = (env.path("s.agentlog"), env.path("loss.json"));
    let (out, report) = (out.to_str().unwrap(), report.to_str().unwrap());
    let args = [
        "export", &log, "--to", "agentlog", "-o", out, "--report", report,
    ];
    let ran = env.run(&args);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(
        ran.stderr
            .starts_with("7 of 8 events carried\nnot carried: 1 note:file_snapshot\n"),
        "{}",
        ran.stderr
    );
    let text = fs::read_to_string(out).unwrap();
    check(text.as_bytes()).unwrap();
    assert_eq!(
        kinds(&text),
        [
            "metadata",
            "chat_request",
            "chat_response",
            "tool_call",
            "tool_call",
            "tool_result",
            "tool_result",
            "chat_request",
            "chat_response"
        ]
    );
    let trace = records(&text);
    assert_eq!(trace[0]["payload"]["imported_from"]["agent"], "claude-code");
    assert_eq!(trace[2]["payload"]["usage"]["output_tokens"], 9);
    assert_eq!(trace[5]["parent"], trace[3]["id"]);
    assert_eq!(trace[6]["parent"], trace[4]["id"]);
    assert_eq!(
        fs::metadata(out).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let loss: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(loss["dropped"]["note:file_snapshot"]["count"], 1);
    assert_eq!(loss["carried"], 7);

    // A file that is there is not written over, and what is written again is the same.
    let ran = env.run(&args[..6]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("--force"), "{}", ran.stderr);
    let ran = env.run(&["export", &log, "--to", "agentlog", "--strict"]);
    assert_eq!(
        (ran.code, ran.stdout),
        (1, text.replace(env.dir.path().to_str().unwrap(), "HOME"))
    );
    let ran = env.run(&["verify", out]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_trace_that_is_kept_is_found_by_its_id_and_shown_as_a_graph() {
    let env = TestEnv::new();
    let log = env.file("s.jsonl", log());
    let kept = env.run(&["export", &log, "--to", "agentlog", "--keep"]);
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let shown = env.run(&["log", &kept.stdout[..9]]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let graph: Vec<&str> = shown
        .stdout
        .lines()
        .map(|line| {
            line.split_once(|c: char| c.is_ascii_hexdigit())
                .unwrap()
                .0
                .trim_end()
        })
        .collect();
    assert_eq!(graph, ["●", "●", "●", "├─●", "● │", "│ ●", "●", "●", "●"]);
    assert!(
        shown
            .stdout
            .contains("claude-code, /home/ada/relay: why does it retry?"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.contains("I look.␛[31m [Bash] [Bash]"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains('\u{1b}'));

    // The same from the log itself, without keeping anything.
    let again = env.run(&["log", &log]);
    assert_eq!(again.stdout, shown.stdout);
    let ran = env.run(&[
        "log",
        &log,
        "--jsonl",
        "--kind",
        "tool_call",
        "--limit",
        "1",
    ]);
    let call: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (call["tool"].as_str(), call["parent_record"].as_u64()),
        (Some("Bash"), Some(3))
    );
    let ran = env.run(&["log", &log, "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["records"].as_array().unwrap().len(), 9);
    assert_eq!(document["bad_lines"], 0);
}

#[test]
fn a_trace_with_a_torn_end_is_shown_as_far_as_it_goes() {
    let env = TestEnv::new();
    let log = env.file("s.jsonl", log());
    let trace = env.run(&["export", &log, "--to", "agentlog"]).stdout;
    let cut = env.file("cut.agentlog", &trace[..trace.len() - 40]);
    let ran = env.run(&["log", &cut]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (3, 8));
    assert!(ran.stderr.contains("line 9: cut off"), "{}", ran.stderr);
    let ran = env.run(&["log", "no-such.agentlog"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("there is no file"), "{}", ran.stderr);
}

/// The event after `n` others: turns of a prompt, an answer, a call and its result, some of them long.
fn event(n: u64) -> String {
    let (turn, long) = (n / 5, if n % 50 == 11 { 120_000 } else { 30 });
    let text = "x é ".repeat(long / 4);
    let call = format!("\"model\":\"m\",\"model_call\":\"c{turn}\"");
    let blocks = |role: &str, text: &str| {
        format!(
            "{{\"role\":\"{role}\",\"blocks\":[{{\"type\":\"text\",\"fidelity\":\"router\",\"text\":\"{text} {n}\"}}]}}"
        )
    };
    let tool = |output: &str| {
        format!(
            "{{\"name\":\"bash\",\"call_id\":\"t{turn}\",\"input\":{{\"n\":{turn}}},\"output\":{output},\"fidelity\":\"router\"}}"
        )
    };
    let (kind, payload, more) = match n % 5 {
        0 => (
            "step.started",
            "{\"name\":\"talk\",\"kind\":\"agent\"}".to_owned(),
            String::new(),
        ),
        1 => ("message.user", blocks("user", &text), String::new()),
        2 => (
            "message.assistant",
            blocks("assistant", "so"),
            format!(",{call}"),
        ),
        3 => ("tool.call", tool("null"), format!(",{call}")),
        _ => ("tool.result", tool("\"done\""), String::new()),
    };
    format!(
        "{{\"type\":\"{kind}\",\"path\":\"talk\",\"iteration\":0,\"payload\":{payload}{more}}}\n"
    )
}

/// How many lines there are.
fn line_count(lines: &[u8]) -> u64 {
    lines.split_inclusive(|byte| *byte == b'\n').count() as u64
}

fn whole_lines(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_default();
    let end = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    bytes[..end].to_vec()
}

fn traces(env: &TestEnv) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for fan in fs::read_dir(env.path("traces")).into_iter().flatten() {
        for file in fs::read_dir(fan.unwrap().path()).into_iter().flatten() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|it| it == "agentlog") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_run_is_traced_while_it_is_recorded() {
    let env = TestEnv::new();
    let mut emit = env.start(&["emit", "--run", "r1", "--agentlog", "--durability", "none"]);
    for n in 0..13 {
        emit.send(event(n).trim_end());
        emit.line();
    }
    // The first turn is over, so its answer is there before the run is closed.
    let mut seen = Vec::new();
    for _ in 0..200 {
        seen = traces(&env)
            .first()
            .map(|path| whole_lines(path))
            .unwrap_or_default();
        if seen.windows(11).any(|window| window == b"tool_result") {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    check(&seen).unwrap();
    assert_eq!(emit.finish(), 0);
    let path = traces(&env).pop().unwrap();
    let trace = fs::read(&path).unwrap();
    assert!(trace.starts_with(&seen) && trace.len() > seen.len());
    let exported = env.run(&["export", "r1", "--to", "agentlog"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    assert_eq!(exported.stdout.as_bytes(), trace);
    let other = env.path("here.agentlog");
    let flag = format!("--agentlog={}", other.display());
    let ran = env.run(&["emit", "--run", "r1", &flag]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        fs::read(other).unwrap(),
        trace,
        "a run that is there is traced from its beginning"
    );
}

#[test]
fn killed_at_random_instants_a_trace_is_a_valid_prefix_and_goes_on() {
    let env = TestEnv::new();
    let run = env.run_path("r1");
    let mut random = u64::from(std::process::id()) | 1;
    let (mut torn, mut grown) = (0, 0);
    for round in 0..20_u64 {
        let recorded = line_count(&whole_lines(&run));
        let before = traces(&env)
            .first()
            .map_or(0, |path| whole_lines(path).len());
        let mut emit = env
            .command(&["emit", "--run", "r1", "--agentlog", "--durability", "none"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = emit.stdin.take().unwrap();
        let feed = std::thread::spawn(move || {
            for n in recorded..recorded + 60 {
                if stdin.write_all(event(n).as_bytes()).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            // Not closed before the end, or the run would be.
            stdin
        });
        for step in [13, 7, 17] {
            random ^= if step == 7 {
                random >> step
            } else {
                random << step
            };
        }
        // Some are killed while the trace is made again, the others while it grows.
        let patience = if round % 4 == 0 { 0 } else { 400 };
        for _ in 0..patience {
            let now = traces(&env)
                .first()
                .map_or(0, |path| whole_lines(path).len());
            if now > before {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_micros(random % 60_000));
        emit.kill().unwrap();
        emit.wait().unwrap();
        drop(feed.join().unwrap());
        if let Some(path) = traces(&env).first() {
            let whole = whole_lines(path);
            if !whole.is_empty() {
                check(&whole).unwrap_or_else(|wrong| panic!("round {round}: {wrong}"));
            }
            torn += usize::from(fs::metadata(path).unwrap().len() > whole.len() as u64);
            grown += usize::from(whole.len() > before);
        }
    }
    let recorded = line_count(&whole_lines(&run));
    let rest: String = (recorded..recorded + 7).map(event).collect();
    let ran = env.run_with(&["emit", "--run", "r1", "--agentlog"], rest);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let path = traces(&env);
    let [path] = &path[..] else {
        panic!("one trace: {path:?}")
    };
    let trace = fs::read(path).unwrap();
    check(&trace).unwrap();
    let exported = env.run(&["export", "r1", "--to", "agentlog"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    assert!(
        exported.stdout.as_bytes() == trace,
        "it is not what one export makes"
    );
    assert!(grown > 5, "the test must have something to test: {grown}");
    eprintln!(
        "{} events, {torn} torn tails, grown in {grown} rounds",
        recorded + 7
    );
}

/// Real logs, read in place; they are no part of the project.
#[test]
fn traces_of_real_logs_verify() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("QUIPU_FIXTURES").map(PathBuf::from);
    let root = given.unwrap_or_else(|| workspace.join("../shared/fixtures"));
    if !root.is_dir() {
        eprintln!("skipped: no logs at {}", root.display());
        return;
    }
    let env = TestEnv::new();
    let mut made = 0;
    for family in ["claude", "codex", "gemini", "opencode", "copilot", "cline"] {
        let mut logs: Vec<PathBuf> = fs::read_dir(root.join(family))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.metadata().is_ok_and(|it| it.len() < 200_000))
            .collect();
        logs.sort();
        for path in logs.iter().take(6) {
            let ran = env.run(&["export", path.to_str().unwrap(), "--to", "agentlog"]);
            if ran.code != 0 || ran.stdout.is_empty() {
                continue;
            }
            check(ran.stdout.as_bytes())
                .unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
            made += 1;
        }
    }
    assert!(made > 10, "{made}");
}

/// What all sessions came to.
fn spent(env: &TestEnv) -> (u64, u64) {
    let ran = env.run(&["stats", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let stats: Value = serde_json::from_str(&ran.stdout).unwrap();
    let total = &stats["total"]["spent"];
    let calls = total["calls"].as_u64().unwrap();
    (calls, total["tokens"]["output"].as_u64().unwrap())
}

#[test]
fn a_trace_counts_once_however_often_it_is_there() {
    let env = TestEnv::new();
    let log = env.file("logs/5e551011-0000-4000-8000-000000000001.jsonl", log());
    let trace = env.path("a.agentlog");
    let trace = trace.to_str().unwrap();
    let made = env.run(&["export", &log, "--to", "agentlog", "-o", trace]);
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(env.run(&["import", trace]).code, 0);
    let once = spent(&env);
    assert_eq!(once, (2, 16));
    // The same bytes elsewhere, and with a blank line before them.
    let bytes = fs::read(trace).unwrap();
    let copy = env.file("b.agentlog", &bytes);
    let spaced = env.file("c.agentlog", [&b"\n"[..], &bytes].concat());
    assert_eq!(env.run(&["import", &copy, &spaced]).code, 0);
    assert_eq!(spent(&env), once);
    // The log it was made of.
    assert_eq!(env.run(&["import", &log]).code, 0);
    assert_eq!(spent(&env), once);
}

#[test]
fn what_is_exported_is_not_written_over() {
    let env = TestEnv::new();
    let source = env.file("logs/5e551011-0000-4000-8000-000000000001.jsonl", log());
    let export = |more: &[&str]| {
        env.run(&[&["export", &source, "--to", "agentlog", "--force"], more].concat())
    };
    for more in [
        &["-o", &source][..],
        &["-o", "trace.agentlog", "--report", &source],
    ] {
        let ran = export(more);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert_eq!(fs::read_to_string(&source).unwrap(), log());
    }
    let same = env.path("same");
    let same = same.to_str().unwrap();
    assert_eq!(export(&["-o", same, "--report", same]).code, 2);
    // What is written over is private afterwards, and nothing half-written is left beside it.
    let there = env.file("out/there.agentlog", "x");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&there, mode).unwrap();
    assert_eq!(
        env.run(&["export", &source, "--to", "agentlog", "-o", &there])
            .code,
        4
    );
    assert_eq!(fs::read_to_string(&there).unwrap(), "x");
    assert_eq!(export(&["-o", &there]).code, 0);
    let metadata = fs::metadata(&there).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(env.path("out")).unwrap().count(), 1);
}

#[test]
fn showing_a_run_as_a_trace_keeps_no_trace() {
    let env = TestEnv::new();
    let long = "x".repeat(17 << 20);
    let event = format!(
        "{{\"type\":\"message.user\",\"path\":\"\",\"iteration\":0,\"payload\":{{\"role\":\"user\",\
         \"blocks\":[{{\"type\":\"text\",\"text\":\"{long}\",\"fidelity\":\"agent_emitted\"}}]}}}}\n"
    );
    assert_eq!(env.run_with(&["emit", "--run", "r1"], event).code, 0);
    let shown = env.run(&["log", "r1"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    // What is known of the run is brought up to date, and nothing else.
    for kept in ["blobs", "traces", "archive", "events"] {
        assert!(!env.path(kept).exists(), "{kept}");
    }
}
