use std::fs::{self, OpenOptions};
use std::io::Write as _;

use super::env::{Running, TestEnv, line};

fn started(seq: u64) -> String {
    line(seq, "run.started", "", "null")
}

fn append(path: &str, text: &str) {
    OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn next_seq(tail: &Running) -> u64 {
    let line = tail.line();
    line["{\"seq\":".len()..]
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn shows_the_end() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", (1..=30).map(started).collect::<String>());
    let seqs = |args: &[&str]| {
        let ran = env.run(&[&["tail", "--jsonl", &file], args].concat());
        assert_eq!(ran.code, 0);
        let all = ran.stdout.lines().count();
        (
            all,
            ran.stdout.lines().next().map(|line| line[..9].to_owned()),
        )
    };
    assert_eq!(seqs(&[]), (10, Some("{\"seq\":21".to_owned())));
    assert_eq!(seqs(&["-n", "2"]), (2, Some("{\"seq\":29".to_owned())));
    assert_eq!(seqs(&["-n", "0"]), (0, None));
    assert_eq!(seqs(&["--from", "25"]), (6, Some("{\"seq\":25".to_owned())));
    let human = env.run(&["tail", "-n", "1", &file]);
    assert_eq!(human.stdout, "    30 08:14:40.500  run.started       \n");
}

#[test]
fn follows_what_is_appended_and_waits_for_whole_lines() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", (1..=5).map(started).collect::<String>());
    let tail = env.start(&["tail", "-f", "--jsonl", "--from", "4", &file]);
    assert_eq!((next_seq(&tail), next_seq(&tail)), (4, 5));
    let six = started(6);
    append(&file, &six[..40]);
    append(&file, &six[40..]);
    assert_eq!(
        next_seq(&tail),
        6,
        "whenever it looked, half a line is not an event"
    );
    append(&file, &(started(7) + &started(8)));
    assert_eq!((next_seq(&tail), next_seq(&tail)), (7, 8));
}

#[test]
fn survives_truncation() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", (1..=5).map(started).collect::<String>());
    let tail = env.start(&["tail", "-f", "--jsonl", "-n", "1", &file]);
    assert_eq!(next_seq(&tail), 5);
    fs::write(&file, started(1)).unwrap();
    assert!(
        tail.error_line()
            .contains("was cut short; reading it from its start")
    );
    assert_eq!(next_seq(&tail), 1);
    append(&file, &started(2));
    assert_eq!(next_seq(&tail), 2);
}

#[test]
fn survives_rotation() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", (1..=5).map(started).collect::<String>());
    let tail = env.start(&["tail", "-f", "--jsonl", "-n", "1", &file]);
    assert_eq!(next_seq(&tail), 5);
    fs::rename(&file, env.path("r.old")).unwrap();
    assert!(tail.error_line().contains("is gone; waiting for it"));
    fs::write(&file, started(1)).unwrap();
    assert!(
        tail.error_line()
            .contains("is a new file; reading it from its start")
    );
    assert_eq!(next_seq(&tail), 1);
    append(&file, &started(2));
    assert_eq!(next_seq(&tail), 2);
}

#[test]
fn follows_a_recording_live() {
    let env = TestEnv::new();
    let mut emit = env.start(&["emit", "--run", "r"]);
    emit.send(r#"{"type":"run.started"}"#);
    assert_eq!(emit.line(), "1");
    let tail = env.start(&["tail", "-f", "--from", "1", "r"]);
    assert!(tail.line().contains("run.started"));
    emit.send(r#"{"type":"run.completed"}"#);
    assert!(tail.line().contains("run.completed"));
    assert_eq!(emit.finish(), 0);
}

#[test]
fn the_last_events_are_those_at_the_end_whatever_their_number() {
    let env = TestEnv::new();
    let restarted = (1..=30).chain(1..=5).map(started).collect::<String>();
    let file = env.file("r.jsonl", restarted);
    let ran = env.run(&["tail", "--jsonl", "-n", "6", &file]);
    let seqs: Vec<_> = ran
        .stdout
        .lines()
        .map(|line| line[7..].split(',').next().unwrap())
        .collect();
    assert_eq!(seqs, ["30", "1", "2", "3", "4", "5"]);
}

#[test]
fn nothing_to_begin_with_still_follows() {
    let env = TestEnv::new();
    let file = env.file("r.jsonl", started(1));
    let tail = env.start(&["tail", "-f", "--jsonl", "-n", "0", &file]);
    // When it has begun to follow cannot be seen from outside. What comes first is never what was there before.
    let mut seq = 1;
    let first = loop {
        seq += 1;
        assert!(seq < 1_000, "it does not follow");
        append(&file, &started(seq));
        if let Some(line) = tail.line_soon() {
            break line;
        }
    };
    assert!(!first.starts_with("{\"seq\":1,"), "{first}");
}

#[test]
fn lines_are_given_as_they_are_but_for_escapes() {
    let env = TestEnv::new();
    let odd = line(1, "run.started", "a\u{7f}b\u{9b}c", "null");
    let file = env.file("r.jsonl", &odd);
    let escaped = odd
        .replace('\u{7f}', "\\u007f")
        .replace('\u{9b}', "\\u009b");
    for command in ["tail", "show"] {
        assert_eq!(env.run(&[command, "--jsonl", &file]).stdout, escaped);
    }
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(read(&escaped), read(&odd));
}
