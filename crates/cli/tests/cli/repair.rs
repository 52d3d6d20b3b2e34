use super::env::{TestEnv, line};

#[test]
fn sets_the_torn_end_aside_and_is_then_clean() {
    let env = TestEnv::new();
    let whole = line(1, "run.started", "", "null");
    let file = env.file("r.jsonl", format!("{whole}{{\"seq\":2,\"run"));
    let ran = env.run(&["repair", &file]);
    assert_eq!(
        ran.stdout,
        format!(
            "HOME/r.jsonl: cut 13 torn bytes off at byte {}; kept in HOME/r.jsonl.torn\n",
            whole.len()
        )
    );
    assert_eq!(ran.code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    assert_eq!(
        std::fs::read_to_string(env.path("r.jsonl.torn")).unwrap(),
        "{\"seq\":2,\"run\n"
    );
    assert_eq!(env.run(&["verify", &file]).code, 0);
    assert_eq!(
        env.run(&["repair", &file]).stdout,
        "HOME/r.jsonl: nothing to mend\n"
    );
}

#[test]
fn leaves_what_is_in_the_middle_alone() {
    let env = TestEnv::new();
    let text = format!("oops\n{}", line(1, "run.started", "", "null"));
    let file = env.file("r.jsonl", &text);
    let ran = env.run(&["repair", "--json", &file]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &document[0]["mended"]), (0, &false.into()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn does_not_touch_a_run_that_is_being_recorded() {
    let env = TestEnv::new();
    let mut emit = env.start(&["emit", "--run", "r"]);
    emit.send(r#"{"type":"run.started"}"#);
    assert_eq!(emit.line(), "1");
    let ran = env.run(&["repair", "r"]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.stderr.contains("another process is recording"),
        "{}",
        ran.stderr
    );
    assert_eq!(emit.finish(), 0);
}

/// A whole line that is longer than is read was written by somebody, and stays.
#[test]
fn a_whole_line_that_is_too_long_is_not_cut() {
    let env = TestEnv::new();
    let long = line(2, "step.started", "a", r#"{"name":"NAME","kind":"k"}"#)
        .replace("NAME", &"x".repeat(65 << 20));
    let text = line(1, "run.started", "", "null") + &long;
    let file = env.file("transcripts/r1.jsonl", &text);
    for command in [vec!["repair", &file], vec!["emit", "--run", "r1"]] {
        let ran = env.run_with(&command, r#"{"type":"run.started"}"#);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{command:?}");
        let said = format!(
            "line 2 (byte 120): {} bytes long, more than the 67108864 allowed; the file is left as it is",
            long.len() - 1
        );
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == text,
        "not a byte changed"
    );
    assert!(!env.path("transcripts/r1.jsonl.torn").exists());
}
