use super::env::{TestEnv, line};

fn sample() -> String {
    let blocks = r#"{"role":"assistant","blocks":[{"type":"thinking","fidelity":"agent_emitted","thinking":"hm"},{"type":"text","fidelity":"agent_emitted","text":"one\ntwo \u001b[31mred\u001b]0;title\u0007"},{"type":"smell","strength":3}]}"#;
    [
        line(1, "run.started", "", r#"{"name":"nightly","kind":"workflow"}"#),
        line(2, "message.assistant", "review", blocks),
        line(3, "tool.call", "review", r#"{"name":"Bash","call_id":"c1","input":{"command":"ls"},"output":null,"fidelity":"router"}"#),
        line(4, "tool.result", "review", r#"{"name":"Bash","call_id":"c1","input":null,"output":"a\nb","error":"exit 1","fidelity":"router"}"#),
        line(5, "run.paused", "", r#"{"why":"lunch"}"#),
        line(6, "run.completed", "", "null"),
    ]
    .concat()
}

#[test]
fn shows_every_kind_of_event_and_lets_no_escape_through() {
    let env = TestEnv::new();
    let ran = env.run(&["show", &env.file("r.jsonl", sample())]);
    assert_eq!(
        ran.stdout,
        "run r  2026-06-08
     1 08:14:41.500  run.started         nightly workflow
     2 08:14:42.500  message.assistant   review
             thinking hm
                 text one
                      two ␛[31mred␛]0;title␇
         unknown block {\"type\":\"smell\",\"strength\":3}
     3 08:14:43.500  tool.call           review  Bash c1
                   in {\"command\":\"ls\"}
     4 08:14:44.500  tool.result         review  Bash c1
                  out a
                      b
                error exit 1
     5 08:14:45.500  run.paused        
              payload {\"why\":\"lunch\"}
     6 08:14:46.500  run.completed     
6 events, 5.0 s
"
    );
    assert_eq!(
        ran.stderr,
        "line 2 (byte 152), seq 2: unknown block type \"smell\" in block 2\n\
         line 5 (byte 926), seq 5: unknown event type \"run.paused\"\n"
    );
    assert_eq!(ran.code, 0, "unknown is not an error");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", sample());
    assert!(!env.run(&["show", &file]).stdout.contains('\x1b'));
    assert!(
        env.run(&["show", &file, "--color", "always"])
            .stdout
            .contains("\x1b[")
    );
}

#[test]
fn jsonl_is_what_is_in_the_file() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", sample());
    assert_eq!(env.run(&["show", "--jsonl", &file]).stdout, sample());
    let some = env.run(&[
        "show",
        "--jsonl",
        &file,
        "--from",
        "3",
        "--to",
        "5",
        "--type",
        "tool.result",
    ]);
    assert_eq!(
        some.stdout,
        sample().lines().nth(3).unwrap().to_owned() + "\n"
    );
}

#[test]
fn json_is_one_document() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", sample() + "oops\n");
    let ran = env.run(&["show", "--json", &file]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["events"].as_array().unwrap().len(), 6);
    assert_eq!(document["bad_lines"][0]["line"], 7);
    assert_eq!(ran.code, 3);
    let empty = env.run(&["show", "--json", &env.file("empty.jsonl", "")]);
    let document: serde_json::Value = serde_json::from_str(&empty.stdout).unwrap();
    assert_eq!(document["events"].as_array().unwrap().len(), 0);
}

#[test]
fn a_bad_line_is_named_and_the_rest_shown() {
    let env = TestEnv::new();
    let text =
        line(1, "run.started", "", "null") + "oops\n" + &line(2, "run.completed", "", "null");
    let ran = env.run(&["show", &env.file("r.jsonl", text)]);
    assert_eq!(ran.stdout.lines().count(), 4);
    assert_eq!(
        ran.stderr,
        "line 2 (byte 120): not a JSON object: expected a value (column 1)\n\
         error: 1 line of HOME/r.jsonl could not be read\n\
         hint: `quipu verify` tells more, `quipu repair` mends a torn end\n"
    );
    assert_eq!(ran.code, 3);
}

#[test]
fn runs_are_found_by_the_beginning_of_their_id() {
    let env = TestEnv::new();
    for id in ["abc1", "abd2"] {
        env.file(
            &format!("transcripts/{id}.jsonl"),
            line(1, "run.started", "", "null").replace("\"r\"", &format!("\"{id}\"")),
        );
    }
    assert_eq!(env.run(&["show", "abc"]).code, 0);
    let ran = env.run(&["show", "ab"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            3,
            "error: \"ab\" is the beginning of several sessions or runs
  ID    WHEN              AGENT  TITLE
  abc1  2026-06-08 08:14  quipu
  abd2  2026-06-08 08:14  quipu
hint: give more of the id
"
        )
    );
    let ran = env.run(&["show", "nope"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            3,
            "error: no session or run begins with \"nope\"\n\
             hint: `quipu list --all` shows what there is\n"
        )
    );
    let ran = env.run(&["show", "dir/nope.jsonl"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (3, "error: there is no file dir/nope.jsonl\n")
    );
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let env = TestEnv::new();
    let ran = env.run(&["show", &env.file("r.jsonl", "")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert_eq!(ran.stderr, "HOME/r.jsonl has no events\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let env = TestEnv::new();
    let text: String = (1..20_000)
        .map(|seq| line(seq, "run.started", "", "null"))
        .collect();
    let file = env.file("r.jsonl", text);
    for flag in ["--full", "--jsonl"] {
        let mut child = env
            .command(&["show", flag, &file])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..])
        );
    }
}

#[test]
fn usage_errors_end_with_2() {
    let env = TestEnv::new();
    for args in [
        &["show"][..],
        &["frobnicate"],
        &["show", "x", "--from", "y"],
        &["--json", "list"],
        &["import", "--agent", "nobody"],
        &["import", "--watch", "--dry-run"],
        &["list", "--since", "soon"],
        &["list", "--sort", "colour"],
        &["prune"],
        &["prune", "--older-than", "yesterday"],
        &["prune", "--larger-than", "huge"],
    ] {
        assert_eq!(env.run(args).code, 2, "{args:?}");
    }
    assert_eq!(env.run(&["--version"]).code, 0);
}

#[test]
fn what_is_wrong_with_many_lines_is_counted() {
    let env = TestEnv::new();
    let file = env.file(
        "r.jsonl",
        line(1, "run.started", "", "null") + &"x\n".repeat(5_000),
    );
    let ran = env.run(&["show", "--json", &file]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["bad_line_count"], 5_000);
    assert_eq!(document["bad_lines"].as_array().unwrap().len(), 100);
    assert_eq!((ran.code, ran.stderr.lines().count()), (3, 103));
}

#[test]
fn a_directory_does_not_hide_a_run() {
    let env = TestEnv::new();
    env.file("transcripts/a1.jsonl", line(1, "run.started", "", "null"));
    std::fs::create_dir(env.path("a1")).unwrap();
    let output = env
        .command(&["show", "a1"])
        .current_dir(env.dir.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let ran = env.run(&["show", env.dir.path().to_str().unwrap()]);
    assert_eq!(ran.code, 3);
    let told = "error: HOME is a directory, and not a run\n";
    assert!(ran.stderr.starts_with(told), "{}", ran.stderr);
}

#[test]
fn an_empty_home_variable_is_as_good_as_none() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", line(1, "run.started", "", "null"));
    let output = env
        .command(&["show", &file])
        .env("QUIPU_HOME", "")
        .output()
        .unwrap();
    assert!(output.status.success());
}

#[test]
fn what_is_no_log_is_said_once() {
    let env = TestEnv::new();
    let file = env.file("words", "one\ntwo\n".repeat(200));
    for args in [
        &["show", &file][..],
        &["show", &file, "--json"],
        &["tree", &file],
    ] {
        let ran = env.run(args);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (
                3,
                "",
                "error: HOME/words is no transcript, nor a log of an agent that is known\n"
            ),
            "{args:?}"
        );
    }
}

#[test]
fn another_day_is_said() {
    let env = TestEnv::new();
    let next = line(2, "run.completed", "", "null").replace("2026-06-08", "2026-06-09");
    let file = env.file("r.jsonl", line(1, "run.started", "", "null") + &next);
    let ran = env.run(&["show", &file]);
    assert!(
        ran.stdout
            .contains("\n== 2026-06-09 ==\n     2 08:14:42.500"),
        "{}",
        ran.stdout
    );
}

/// A log whose content does not say whose it is, which lies where an agent keeps its logs.
#[test]
fn a_log_that_was_never_imported_is_known_by_its_place() {
    let env = TestEnv::new();
    let log = "{\"role\":\"user\",\"content\":\"where is the map?\",\"x\":1}\n";
    let elsewhere = env.file("messages.jsonl", log);
    assert_eq!(env.run(&["show", &elsewhere]).code, 3);
    let path = &env.file("person/.vibe/logs/session/s1/messages.jsonl", log);
    let shown = env.run(&["show", path]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("where is the map?"),
        "{}",
        shown.stdout
    );
    let converted = env.run(&["convert", path, "--to", "markdown", "-o", "-"]);
    assert!(
        converted.stdout.contains("where is the map?"),
        "{}",
        converted.stderr
    );
    for ran in [shown, converted] {
        assert!(
            ran.stderr.contains("because vibe keeps its logs there"),
            "{}",
            ran.stderr
        );
    }
}
