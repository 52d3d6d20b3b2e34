//! `show` and `tree` of what other agents wrote.

use super::env::TestEnv;
use super::machine::{PROJECT, SESSION, assistant, call, furnish, json, result, text, user};

#[test]
fn a_session_reads_as_a_conversation() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let ran = env.run(&["show", "1111"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout,
        format!(
            "Make it work
claude-code 2.1.200 · /w/demo · main
2026-11-01 10:00, 24 h 1 min · 1 prompt · 5 tool calls · 1 sub-agent · 1 failed · 1 denied
claude-test-1 · tokens: 80 in, 800 from cache, 40 out
session {SESSION}
HOME/{PROJECT}/{SESSION}.jsonl

❯ user 10:00:00
  Make it work

● claude-code claude-test-1 10:01:00
  ∴ It is broken.
  I will look.
  → Bash  ls -l  ok, 1 min 0 s
      a.rs
      b.rs
      c.rs
      … 2 more lines
  → Bash  false  failed, 1 min 0 s
      Exit code 1
  → Edit  /w/demo/a.rs  +1 -1  ok, 1 min 0 s
        one
      - two
      + 2
  → Bash  rm -rf /  denied, 1 min 0 s
      The user doesn't want to proceed with this tool use.
  → Task  Look around  no result
  Done.
"
        )
    );
    let full = env.run(&["show", "1111", "--full"]);
    assert!(full.stdout.contains("      e.rs\n"), "{}", full.stdout);
    let some = env.run(&[
        "show",
        "1111",
        "--type",
        "message.assistant",
        "--from",
        "2",
        "--to",
        "3",
    ]);
    let said: Vec<&str> = some.stdout.lines().skip(8).collect();
    assert_eq!(said, ["  ∴ It is broken.", "  I will look."]);
}

#[test]
fn programs_get_lines_and_documents() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let lines = env.run(&["show", SESSION, "--jsonl"]);
    let events: Vec<serde_json::Value> = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (n, event) in events.iter().enumerate() {
        assert_eq!(
            (&event["seq"], &event["run_id"]),
            (&(n + 1).into(), &SESSION.into())
        );
    }
    assert_eq!(events[0]["type"], "message.user");
    let document = json(&env, &["show", SESSION, "--json"]);
    assert_eq!(document["events"].as_array().unwrap(), &events);
    assert_eq!(
        (&document["session"]["run_id"], &document["problem"]),
        (&SESSION.into(), &().into())
    );
    let some = env.run(&["show", SESSION, "--jsonl", "--type", "tool.call"]);
    assert_eq!(some.stdout.lines().count(), 5);
    // What was written reads as a transcript.
    let again = env.run(&["show", &env.file("again.jsonl", lines.stdout)]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let each = env.run(&["show", SESSION, "--events"]);
    assert_eq!(
        each.stdout.matches("  tool.call  ").count(),
        5,
        "{}",
        each.stdout
    );
}

#[test]
fn a_log_is_shown_without_being_kept() {
    let env = TestEnv::new();
    let log = env.file(
        "some.jsonl",
        user(SESSION, 0, "hello") + &assistant(SESSION, 1, &text("hi")),
    );
    let home = env.path("nothing");
    let home = home.to_str().unwrap();
    let ran = env.run(&["--home", home, "show", &log]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.contains("❯ user 10:00:00\n  hello\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains(&format!("session {SESSION}")),
        "{}",
        ran.stdout
    );
    let ran = env.run(&["--home", home, "show", &log, "--jsonl"]);
    assert_eq!(ran.stdout.lines().count(), 2);
    assert!(!env.path("nothing").exists());
    let ran = env.run(&["tree", &log]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("is not imported"), "{}", ran.stderr);
}

#[test]
fn nothing_of_a_log_reaches_the_terminal_as_an_escape() {
    let env = TestEnv::new();
    let bad = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}txt";
    let mut log = user(SESSION, 0, &format!("{bad} title"))
        + &assistant(SESSION, 1, &text(bad))
        + &assistant(
            SESSION,
            2,
            &call("t1", "Bash", &serde_json::json!({ "command": bad })),
        )
        + &result(SESSION, 3, "t1", bad, "")
        + &assistant(
            SESSION,
            4,
            &call(
                "t2",
                "Edit",
                &serde_json::json!({"file_path": bad, "old_string": "a", "new_string": bad}),
            ),
        );
    log = log
        .replace("\"version\":\"2.1.200\"", "\"version\":\"\\u001b[31m2\"")
        .replace("/w/demo", "/w/\\u001b[31mdemo");
    log.push_str(r#"{"type":"ai-title","aiTitle":"\u001b[5m blink","sessionId":"s"}"#);
    log.push('\n');
    log.push_str(r#"{"type":"\u001b[5m","sessionId":"s","uuid":"u"}"#);
    let file = env.file(&format!("{PROJECT}/{SESSION}.jsonl"), log);
    assert_eq!(env.run(&["import"]).code, 0);
    for args in [
        &["show", SESSION][..],
        &["show", SESSION, "--full"],
        &["show", SESSION, "--events"],
        &["show", &file],
        &["list"],
        &["tree", SESSION],
        &["doctor"],
        &["doctor", "--drift"],
        &["prune", "--agent", "claude"],
        &["resume", SESSION],
        &["import", "--rebuild"],
        &["up", "--once"],
        &[],
    ] {
        let ran = env.run(args);
        let all = ran.stdout + &ran.stderr;
        for escape in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(!all.contains(escape), "{args:?}: {all:?}");
        }
        assert_eq!(ran.code, 0, "{args:?}: {all}");
    }
}

#[test]
fn the_tree_has_the_sub_agents() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    let ran = env.run(&["tree", "1111"]);
    assert_eq!(
        ran.stdout,
        format!(
            "session {SESSION} claude-code Make it work 24 h 1 min (13 events) [3 messages, 5 tool calls, 1 failed] 1 denied 1 without a result
└─ session {SESSION}.agent-a1 claude-code Look around 1 min 0 s (2 events) [2 messages]
"
        )
    );
    let document = json(&env, &["tree", "1111", "--json"]);
    assert_eq!(document["sessions"][1]["depth"], 1);
    let plain = env
        .command(&["tree", "1111"])
        .env("LANG", "C")
        .output()
        .unwrap();
    assert!(plain.stdout.is_ascii());
    let plain = env
        .command(&["show", "1111"])
        .env("LANG", "C")
        .output()
        .unwrap();
    assert!(
        plain.stdout.is_ascii(),
        "{}",
        String::from_utf8_lossy(&plain.stdout)
    );
}
