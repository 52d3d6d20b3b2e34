use std::process::Command;

use super::env::{Ran, TestEnv, line};

const STARTED: &str =
    r#"{"type":"step.started","path":"a","payload":{"name":"a","kind":"command"}}"#;
const ENDED: &str =
    r#"{"type":"step.completed","path":"a","payload":{"name":"a","kind":"command"}}"#;

fn emit(env: &TestEnv, run: &str, lines: &[&str]) -> Ran {
    let storage = env.dir.path().to_str().unwrap();
    env.run_with(
        &["emit", "--run", run, "--storage", storage],
        lines.join("\n"),
    )
}

#[test]
fn acknowledges_each_event_once_it_is_recorded() {
    for durability in ["none", "group", "each"] {
        let env = TestEnv::new();
        let mut emit = env.start(&["emit", "--run", "r", "--durability", durability]);
        for seq in 1..=3 {
            emit.send(STARTED);
            assert_eq!(
                emit.line(),
                seq.to_string(),
                "{durability}: before the next is sent"
            );
            let text = std::fs::read_to_string(env.run_path("r")).unwrap();
            assert_eq!(text.lines().count(), seq, "{durability}");
        }
        assert_eq!(emit.finish(), 0);
    }
}

#[test]
fn many_events_share_a_sync_and_all_are_acknowledged() {
    let env = TestEnv::new();
    let ran = emit(&env, "r", &[STARTED; 5_000]);
    let expected: String = (1..=5_000).map(|seq| format!("{seq}\n")).collect();
    assert_eq!(
        (ran.code, ran.stdout == expected, ran.stderr.as_str()),
        (0, true, "")
    );
}

#[test]
fn a_bad_line_is_refused_with_its_number_and_the_rest_goes_on() {
    let env = TestEnv::new();
    let ran = emit(
        &env,
        "r",
        &[
            STARTED,
            "{",
            "[]",
            r#"{"type":"step.exploded","payload":null}"#,
            r#"{"type":"tool.result","payload":{"name":"a","kind":"command"}}"#,
            r#"{"type":"message.user","payload":{"role":"user","blocks":[{"type":"smell","fidelity":"router"}]}}"#,
            r#"{"type":"step.started","payload":{"name":"a","kind":"b"},"colour":"red"}"#,
            "",
            &format!(
                r#"{{"type":"tool.call","payload":{{"name":"a","call_id":"b","fidelity":"router","input":{}{}}}}}"#,
                "[".repeat(500),
                "]".repeat(500)
            ),
            ENDED,
        ],
    );
    assert_eq!(ran.stdout, "1\n2\n");
    assert_eq!(
        ran.stderr,
        "line 2: not a JSON object: the text ends too early (column 2)\n\
         line 3: not a JSON object: expected a value (column 1)\n\
         line 4: bad field \"type\": unknown event type: \"step.exploded\"; types are run.started, run.completed, \
         step.started, step.completed, step.call_workflow.started, step.call_workflow.completed, message.user, \
         message.assistant, tool.call, tool.result, message.system, model.call, chunk, harness, blob, error, note\n\
         line 5: bad field \"payload\": \"kind\" does not belong to a tool event\n\
         line 6: not an event: unknown block type \"smell\" in block 0\n\
         line 7: not an event: unknown field \"colour\"\n\
         line 9: nested deeper than 128 levels\n\
         error: refused 7 lines; the rest is recorded\n"
    );
    assert_eq!(ran.code, 3);
    assert_eq!(env.run(&["verify", "r"]).code, 0);
}

#[test]
fn a_run_is_continued_and_its_torn_end_set_aside() {
    let env = TestEnv::new();
    assert_eq!(emit(&env, "r", &[STARTED]).stdout, "1\n");
    let path = env.run_path("r");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"{\"seq\":2,\"run"].concat()).unwrap();
    let ran = emit(&env, "r", &[ENDED]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "2\n"));
    assert_eq!(
        ran.stderr,
        format!(
            "note: HOME/transcripts/r.jsonl: cut 13 torn bytes off at byte {}; \
             kept in HOME/transcripts/r.jsonl.torn\n",
            whole.len()
        )
    );
    assert_eq!(env.run(&["verify", "r"]).code, 0);
}

#[test]
fn a_second_process_is_refused_at_once() {
    let env = TestEnv::new();
    let mut first = env.start(&["emit", "--run", "r"]);
    first.send(STARTED);
    assert_eq!(first.line(), "1");
    let second = env.start(&["emit", "--run", "r"]);
    assert_eq!(
        second
            .error_line()
            .replace(env.dir.path().to_str().unwrap(), "HOME"),
        "error: another process is recording to HOME/transcripts/r.jsonl"
    );
    assert_eq!(second.finish(), 4);
    first.send(ENDED);
    assert_eq!(first.line(), "2");
    assert_eq!(first.finish(), 0);
    assert_eq!(emit(&env, "r", &[STARTED]).stdout, "3\n");
}

#[test]
fn run_ids_that_lead_elsewhere_are_refused() {
    let env = TestEnv::new();
    for id in ["../evil", "a/b", "", ".hidden", "-x", "a\\b", "C:x"] {
        let ran = env.run(&["emit", &format!("--run={id}")]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{id:?}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr
                .starts_with(&format!("error: --run {id:?}: a run id ")),
            "{}",
            ran.stderr
        );
    }
    assert!(!env.path("transcripts").exists());
}

#[test]
fn a_linked_run_file_is_refused() {
    let env = TestEnv::new();
    let target = env.file("precious", "keep");
    std::fs::create_dir(env.path("transcripts")).unwrap();
    std::os::unix::fs::symlink(&target, env.run_path("r")).unwrap();
    let ran = emit(&env, "r", &[STARTED]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.stderr.contains("is not a regular file"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_to_string(target).unwrap(), "keep");
}

#[test]
fn the_first_event_may_name_the_parent() {
    let env = TestEnv::new();
    let with =
        |parent: &str| STARTED.replacen('{', &format!("{{\"parent_run_id\":\"{parent}\","), 1);
    let ran = emit(&env, "c", &[&with("p"), ENDED, &with("q")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "1\n2\n"));
    assert!(
        ran.stderr.contains("line 3: bad field \"parent_run_id\""),
        "{}",
        ran.stderr
    );
    let text = std::fs::read_to_string(env.run_path("c")).unwrap();
    assert_eq!(
        text.matches("\"parent_run_id\":\"p\"").count(),
        2,
        "on every event"
    );
    let ran = emit(&env, "c", &[ENDED]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "3\n"),
        "and when it is continued"
    );
}

#[test]
fn stamps_are_the_recorder_s() {
    let env = TestEnv::new();
    let ran = emit(
        &env,
        "r",
        &[line(7, "run.started", "", "null").trim(), ENDED],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1\n2\n"));
    assert_eq!(
        ran.stderr,
        "note: 1 line came with a seq, run_id, timestamp or check; those are the recorder's\n"
    );
}

#[test]
fn nul_and_invalid_utf_8_are_recorded() {
    let env = TestEnv::new();
    let mut input = br#"{"type":"step.started","path":"a","payload":{"name":"x"#.to_vec();
    input.extend(b"\0\xff");
    input.extend(br#"","kind":"k"}}"#);
    let ran = env.run_with(&["emit", "--run", "r"], input);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1\n"));
    assert!(
        ran.stderr.contains("invalid UTF-8") && ran.stderr.contains("NUL"),
        "{}",
        ran.stderr
    );
    let text = std::fs::read_to_string(env.run_path("r")).unwrap();
    assert!(text.contains("x\\u0000\u{fffd}"), "{text}");
}

/// A stream that was cut between the two halves of an emoji.
#[test]
fn half_of_a_surrogate_pair_is_recorded_as_a_replacement() {
    let env = TestEnv::new();
    let said = |text: &str| {
        format!(
            r#"{{"type":"message.assistant","path":"a","payload":{{"role":"assistant","blocks":[{{"type":"text","fidelity":"router","text":"{text}"}}]}}}}"#
        )
    };
    let call = r#"{"type":"tool.call","payload":{"name":"Say","call_id":"c","input":{"text":"\ude00"},"fidelity":"router"}}"#;
    let lines = [said(r"\ud83d\ude00"), said(r"ha\ud83d"), call.to_owned()];
    let ran = env.run_with(&["emit", "--run", "r"], lines.join("\n"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1\n2\n3\n"));
    assert_eq!(
        ran.stderr,
        "warning: line 2: half of a surrogate pair, recorded as U+FFFD\n\
         warning: line 3: half of a surrogate pair, recorded as U+FFFD\n"
    );
    let text = std::fs::read_to_string(env.run_path("r")).unwrap();
    let values: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let block = |n: usize| &values[n]["payload"]["blocks"][0]["text"];
    assert_eq!((block(0), block(1)), (&"😀".into(), &"ha\u{fffd}".into()));
    assert_eq!(values[2]["payload"]["input"]["text"], "\u{fffd}");
}

/// A tool that printed events, and a process that died right behind one of them.
#[test]
fn a_run_is_continued_behind_a_torn_line_that_ends_in_an_event() {
    let env = TestEnv::new();
    let inner = line(2, "run.started", "", "null");
    let gave = format!(
        r#"{{"type":"tool.result","payload":{{"name":"Bash","call_id":"c","output":{{"events":[{0},{0}]}},"fidelity":"router"}}}}"#,
        inner.trim()
    );
    assert_eq!(emit(&env, "r", &[STARTED, &gave]).code, 0);
    let path = env.run_path("r");
    let whole = std::fs::read_to_string(&path).unwrap();
    let ends = whole
        .match_indices(inner.trim())
        .map(|(at, it)| at + it.len());
    for cut in ends.collect::<Vec<_>>() {
        for repaired in [false, true] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            if repaired {
                let ran = env.run(&["repair", "r"]);
                assert_eq!(ran.code, 0, "{}", ran.stderr);
                assert!(ran.stdout.contains("torn bytes off"), "{}", ran.stdout);
            }
            let ran = emit(&env, "r", &[ENDED]);
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (0, "2\n"),
                "{}",
                ran.stderr
            );
            let verified = env.run(&["verify", "r"]);
            assert_eq!(verified.code, 0, "{}", verified.stdout);
        }
    }
}

#[test]
fn recording_goes_on_when_nobody_reads_the_acknowledgements() {
    let env = TestEnv::new();
    let mut emit = env.command(&["emit", "--run", "r"]);
    let mut child = emit
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..100 {
        std::io::Write::write_all(&mut stdin, format!("{STARTED}\n").as_bytes()).unwrap();
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(
        std::fs::read_to_string(env.run_path("r"))
            .unwrap()
            .lines()
            .count(),
        100
    );
}

/// A disk that is full after 8 KiB, by way of the limit on the size of a file.
#[test]
fn a_full_disk_ends_it_and_leaves_whole_lines() {
    let env = TestEnv::new();
    let input = env.file("input", [STARTED; 1_000].join("\n"));
    let script = r#"ulimit -f 16; exec "$0" emit --run r < "$1""#;
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_quipu"), &input])
        .env_clear()
        .env("QUIPU_HOME", env.dir.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("could not write to"), "{stderr}");
    assert!(
        stderr.contains("and those after it are not recorded"),
        "{stderr}"
    );
    let text = std::fs::read_to_string(env.run_path("r")).unwrap();
    assert!(text.ends_with("}\n"), "no fragment is left");
    let acknowledged = String::from_utf8_lossy(&output.stdout).lines().count();
    assert_eq!(text.lines().count(), acknowledged);
    assert!(acknowledged > 10);
    assert_eq!(env.run(&["verify", "r"]).code, 0);
    assert_eq!(
        emit(&env, "r", &[ENDED]).stdout,
        format!("{}\n", acknowledged + 1)
    );
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let env = TestEnv::new();
    let ran = env.run_with(&["emit", "--run", "r", "--storage", "/dev/null/x"], STARTED);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
    assert!(
        ran.stderr
            .starts_with("error: could not create directory /dev/null/x/transcripts: ")
    );
}

#[test]
fn a_first_line_that_names_another_parent_is_refused_alone() {
    let env = TestEnv::new();
    assert_eq!(emit(&env, "r", &[STARTED]).code, 0);
    let other = ENDED.replacen('{', r#"{"parent_run_id":"p","#, 1);
    let ran = emit(&env, "r", &[&other, ENDED]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "2\n"));
    assert!(
        ran.stderr
            .starts_with("line 1: bad field \"parent_run_id\""),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let env = TestEnv::new();
    assert_eq!(
        emit(&env, "r", &[&format!("\u{feff}{STARTED}")]).stdout,
        "1\n"
    );
}

#[test]
fn acknowledgements_that_cannot_be_written_end_it() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full");
        return;
    }
    for durability in ["none", "group", "each"] {
        let env = TestEnv::new();
        let input = env.file("input", [STARTED; 3].join("\n"));
        let output = env
            .command(&["emit", "--run", "r", "--durability", durability])
            .stdin(std::fs::File::open(input).unwrap())
            .stdout(
                std::fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/full")
                    .unwrap(),
            )
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{durability}: {stderr}");
        assert!(
            stderr.contains("could not write acknowledgements"),
            "{durability}: {stderr}"
        );
        assert_eq!(env.run(&["verify", "r"]).code, 0);
    }
}

#[test]
fn every_kind_of_event_is_recorded_and_shown_by_its_own_word() {
    let env = TestEnv::new();
    let kinds = [
        r#"{"type":"message.system","payload":{"role":"system","blocks":[{"type":"text","fidelity":"router","text":"Be brief."}]}}"#,
        r#"{"type":"model.call","payload":{"provider":"anthropic"},"model":"m-1","attempt":2}"#,
        r#"{"type":"chunk","payload":{"index":0,"text":"Fou","fidelity":"router"}}"#,
        r#"{"type":"harness","payload":{"category":"retry","name":"backoff"}}"#,
        r#"{"type":"blob","payload":{"mime":"image/png","bytes":512,"sha256":"9f86"}}"#,
        r#"{"type":"error","payload":{"message":"Try again later."}}"#,
        r#"{"type":"note","payload":{"kind":"title","text":"Review"}}"#,
    ];
    let lines: Vec<&str> = [STARTED].into_iter().chain(kinds).chain([ENDED]).collect();
    let ran = emit(&env, "r", &lines);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let checked = env.run(&["verify", "r"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    // In the file, every line is of one of the ten types.
    let file = std::fs::read_to_string(env.run_path("r")).unwrap();
    for line in file.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = line["type"].as_str().unwrap();
        let known = [
            "step.started",
            "step.completed",
            "message.user",
            "message.assistant",
        ];
        assert!(known.contains(&word), "{line}");
    }
    let shown = env.run(&["show", "r", "--events"]).stdout;
    for word in [
        "message.system",
        "model.call",
        "chunk",
        "harness",
        "blob",
        "error",
        "note",
    ] {
        assert!(shown.contains(&format!("  {word}")), "{word}: {shown}");
        let one = env.run(&["show", "r", "--jsonl", "--type", word]).stdout;
        assert_eq!(one.lines().count(), 1, "{word}: {one}");
    }
    // And Quipu knows every field that it wrote.
    let drift = env.run(&["doctor", "--drift", "--json"]).stdout;
    let drift: serde_json::Value = serde_json::from_str(&drift).unwrap();
    assert_eq!(drift["drift"], serde_json::json!([]), "{drift:#}");
}
