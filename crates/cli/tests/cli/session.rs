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

== 2026-11-02 ==

● claude-code 10:01:00
  I will look.

== 2026-11-01 ==

● claude-code 10:02:00
  → Bash  ls -l  ok, 1 min 0 s
      a.rs
      b.rs
      c.rs
      … 2 more lines
  → Bash  false  failed, 1 min 0 s
      Exit code 1
  → Edit  a.rs  +1 -1  ok, 1 min 0 s
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
    assert_eq!(
        said,
        [
            "  ∴ It is broken.",
            "",
            "== 2026-11-02 ==",
            "",
            "● claude-code 10:01:00",
            "  I will look."
        ]
    );
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
        &["prune", "--agent", "claude-code"],
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

#[test]
fn sessions_are_not_runs() {
    let env = TestEnv::new();
    furnish(&env);
    json(&env, &["import", "--json"]);
    for command in ["verify", "repair"] {
        let ran = env.run(&[command, "1111"]);
        assert_eq!(ran.code, 3);
        let said = format!("{SESSION} is an imported session, not a recorded run");
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`quipu show 11111111`"),
            "{}",
            ran.stderr
        );
    }
}

/// A line of a Codex session.
fn codex(second: u32, kind: &str, payload: &serde_json::Value) -> String {
    let at = format!("2026-11-11T16:02:{second:02}Z");
    serde_json::json!({"timestamp": at, "type": kind, "payload": payload}).to_string() + "\n"
}

#[test]
fn codex_reads_as_a_conversation_too() {
    let env = TestEnv::new();
    let id = "019a5c11-7a40-7c31-9d52-6f0e8b1c2a90";
    let message = |role: &str, text: &str| serde_json::json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
    let call = |id: &str, name: &str, arguments: &serde_json::Value| serde_json::json!({"type": "function_call", "name": name, "call_id": id, "arguments": arguments.to_string()});
    let output = |id: &str, text: &str| {
        let text = serde_json::json!({"output": text, "metadata": {"exit_code": 0, "duration_seconds": 0.0}});
        serde_json::json!({"type": "function_call_output", "call_id": id, "output": text.to_string()})
    };
    let reasoning =
        serde_json::json!({"type": "reasoning", "summary": [], "encrypted_content": "x"});
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-old\n+new\n*** End Patch";
    let shell = serde_json::json!({"command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{patch}\nEOF")]});
    let plan = serde_json::json!({"plan": [{"step": "Look", "status": "completed"}, {"step": "Do", "status": "pending"}]});
    let item = |second: u32, payload: &serde_json::Value| codex(second, "response_item", payload);
    let log = [
        codex(0, "session_meta", &serde_json::json!({"id": id, "timestamp": "2026-11-11T16:02:00Z", "cwd": "/w/demo", "originator": "codex-tui", "cli_version": "0.145.0", "source": "cli"})),
        item(1, &message("developer", "Do this.\nDo that.\nAnd that.")),
        item(1, &message("user", "<environment_context>\n  <cwd>/w/demo</cwd>\n</environment_context>")),
        item(2, &message("user", "Fix it")),
        item(3, &reasoning),
        item(4, &call("c1", "update_plan", &plan)),
        item(4, &output("c1", "Plan updated")),
        item(5, &reasoning),
        item(6, &call("c2", "shell", &shell)),
        item(6, &output("c2", "Success.")),
        item(7, &reasoning),
        item(8, &call("c3", "shell", &serde_json::json!({"command": ["bash", "-lc", "ls"]}))),
        item(8, &output("c3", "a.rs\n")),
    ]
    .concat();
    let file = env.file(&format!("rollout-2026-11-11T16-02-00-{id}.jsonl"), log);
    let ran = env.run(&["show", &file]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said: Vec<&str> = ran
        .stdout
        .lines()
        .skip_while(|line| !line.is_empty())
        .collect();
    assert_eq!(
        said.join("\n"),
        "
❯ context 16:02:01
  … 6 lines of instructions

❯ user 16:02:02
  Fix it

● codex 16:02:03
  ∴ reasoning, withheld
  → update_plan  1 of 2 done  ok
      [x] Look
      [ ] Do
  → shell  a.rs  +1 -1  ok
      *** Update File: a.rs
      @@
      - old
      + new
  → shell  ls  ok
      a.rs"
    );
}

#[test]
fn changes_of_the_model_are_told_in_words() {
    let env = TestEnv::new();
    let fallback = user(SESSION, 2, "x").replace(
        r#""type":"user""#,
        r#""type":"system","subtype":"model_refusal_fallback","originalModel":"claude-test-1","fallbackModel":"claude-test-2""#,
    );
    let long = "/w/demo/".to_owned() + &"deep/".repeat(30) + "name.rs";
    let edit = serde_json::json!({"file_path": long, "old_string": "\tone", "new_string": "\ttwo"});
    let log = user(SESSION, 0, "hello")
        + &assistant(SESSION, 1, &text("hi"))
        + &fallback
        + &assistant(SESSION, 3, &call("t1", "Edit", &edit));
    let ran = env.run(&["show", &env.file("some.jsonl", log)]);
    assert!(
        ran.stdout
            .contains("  -- model: claude-test-1 → claude-test-2\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("/deep/name.rs  +1 -1  no result\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("      -     one\n      +     two\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_result_that_comes_much_later_is_shown_with_its_call() {
    const EVENTS: usize = 3000;
    let env = TestEnv::new();
    let input = |of: &str| serde_json::json!({ "command": of });
    let mut log = user(SESSION, 0, "Make it work");
    log += &assistant(SESSION, 1, &call("late", "Bash", &input("sleep 9")));
    log += &assistant(SESSION, 2, &call("never", "Bash", &input("hang")));
    for n in 0..EVENTS {
        log += &assistant(SESSION, 3 + n % 50, &text(&format!("word {n}")));
    }
    log += &result(SESSION, 54, "late", "slept", "");
    log += &assistant(SESSION, 55, &call("soon", "Bash", &input("true")));
    log += &result(SESSION, 56, "soon", "at once", "");
    env.file(&format!("{PROJECT}/{SESSION}.jsonl"), log);
    json(&env, &["import", "--json"]);
    let shown = env.run(&["show", "1111"]).stdout;
    let begins: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.contains("sleep 9"))
        .collect();
    assert!(
        begins[0].starts_with("  → Bash  sleep 9  ok"),
        "{}",
        begins[0]
    );
    assert_eq!(begins[1], "      slept");
    assert_eq!(begins[2], "  → Bash  hang  no result");
    assert_eq!(begins[3], "  word 0");
    let ends: Vec<&str> = begins.iter().rev().take(3).rev().copied().collect();
    assert_eq!(ends[0], format!("  word {}", EVENTS - 1));
    assert!(ends[1].starts_with("  → Bash  true  ok"), "{}", ends[1]);
    assert_eq!(ends[2], "      at once");

    // The file read in place is shown alike.
    let path = env.path(&format!("{PROJECT}/{SESSION}.jsonl"));
    let in_place = env.run(&["show", path.to_str().expect("UTF-8")]).stdout;
    let conversation = |shown: &str| -> Vec<String> {
        let lines = shown.lines().skip_while(|line| !line.starts_with('❯'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(conversation(&in_place), conversation(&shown));
}
