use super::env::{TestEnv, line};

#[test]
fn tells_what_is_wrong_where_and_what_to_do() {
    let env = TestEnv::new();
    let text = [
        &line(1, "run.started", "", "null"),
        "oops\n",
        &line(3, "step.completed", "a", r#"{"name":"a","kind":"b"}"#),
        &line(4, "run.paused", "", "null"),
        "{\"seq\":5,\"run",
    ]
    .concat();
    let ran = env.run(&["verify", &env.file("r.jsonl", &text)]);
    assert_eq!(
        ran.stdout,
        "HOME/r.jsonl: broken, 3 events
  error[bad-line] line 2 (byte 120): not a JSON object: expected a value (column 1)
  error[seq-gap] line 3 (byte 125), seq 3: seq 2 is missing
  warning[step-orphan] line 3 (byte 125), seq 3: step \"a\" ends but did not begin
  error[event-type] line 4 (byte 268), seq 4: unknown event type \"run.paused\"
  error[torn-tail] line 5 (byte 387): cut off: the file ends in the middle of this line
  seq-gap: events are missing from the file; look for them in a .torn file or a backup
  torn-tail: `quipu repair` sets the torn bytes aside
  bad-line: the line is left as it is; events around it are not affected
  event-type: written by something newer, or not a transcript
"
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
}

#[test]
fn json_holds_the_same() {
    let env = TestEnv::new();
    let good = env.file("r.jsonl", line(1, "run.started", "", "null"));
    let torn = env.file("sub/r.jsonl", line(1, "run.started", "", "null") + "{");
    let ran = env.run(&["verify", "--json", &good, &torn]);
    assert_eq!(ran.code, 1);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document[0]["clean"], true);
    assert_eq!(document[1]["clean"], false);
    assert_eq!(document[1]["findings"][0]["rule"], "torn-tail");
    assert_eq!(document[1]["findings"][0]["line"], 2);
    assert_eq!(document[1]["counts"]["torn-tail"], 1);
}

#[test]
fn what_cannot_be_read_is_not_clean() {
    let env = TestEnv::new();
    let ran = env.run(&["verify", env.dir.path().to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert_eq!(
        ran.stderr,
        "error: HOME is not a run: it has no flow with `llm` or `receipts`, and no meta.json, spec.json or events.jsonl\n"
    );
}

#[test]
fn one_that_is_missing_does_not_hide_the_others() {
    let env = TestEnv::new();
    let good = env.file("r.jsonl", line(1, "run.started", "", "null"));
    for command in ["verify", "repair"] {
        let ran = env.run(&[command, "--json", "nope", &good]);
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(
            document[0]["error"]
                .as_str()
                .unwrap()
                .starts_with("no session or run"),
            "{document}"
        );
        assert_eq!(document[1]["file"].as_str().unwrap(), "HOME/r.jsonl");
        assert_eq!(ran.code, 3);
    }
}

/// A child that is a pipe would keep whoever opens it waiting for ever.
#[test]
fn a_child_that_is_no_file_is_missing() {
    let env = TestEnv::new();
    let call = r#"{"seq":1,"run_id":"r","child_run_id":"kid","type":"step.call_workflow.started","path":"k","iteration":0,"timestamp":"2026-06-08T08:14:41Z","payload":{"name":"k","kind":"call_workflow"}}"#;
    let file = env.file("r.jsonl", format!("{call}\n"));
    let made = std::process::Command::new("mkfifo")
        .arg(env.path("kid.jsonl"))
        .status()
        .unwrap();
    assert!(made.success());
    assert!(
        env.run(&["verify", &file])
            .stdout
            .contains("run kid is not there yet")
    );
    assert!(
        env.run(&["tree", &file])
            .stdout
            .contains("run kid missing: no transcript")
    );
}

#[test]
fn a_bit_that_turned_after_the_recording_is_told() {
    let env = TestEnv::new();
    let events = "{\"type\":\"run.started\"}\n{\"type\":\"run.completed\"}\n";
    let ran = env.run_with(&["emit", "--run", "r"], events);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let path = env.run_path("r");
    let text = std::fs::read_to_string(&path).unwrap();
    // Still a time, still an event: only the checksum knows.
    let at = text.find("\"timestamp\":\"20").unwrap() + 15;
    let mut bytes = text.into_bytes();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let ran = env.run(&["verify", "r"]);
    assert_eq!(ran.code, 1);
    let said = "error[checksum] line 1 (byte 0), seq 1: the line is not as it was recorded: its checksum is another";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
}
