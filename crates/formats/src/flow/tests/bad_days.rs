//! Directories that are broken, and such as are meant to do harm.

use quipu_model::{Body, NoteKind};

use super::{Dir, lines, write};
use crate::flow::{FlowError, FlowOptions, Rule, read, read_with};
use quipu_exchange::lines::Limits;

const TRANSCRIPT: &str = "build/llm/impl-loop-code-implementer-claude.jsonl";
const RECEIPT: &str = "build/receipts/impl-loop-code-implementer.json";

fn good() -> Dir {
    let (header, events) = super::golden::session();
    let (files, _, _) = write(&header, &events, &FlowOptions::default());
    let dir = Dir::new(header.run_id.as_str());
    for (name, bytes) in &files {
        dir.put(name, bytes);
    }
    dir
}

#[test]
fn a_receipt_without_its_transcript_is_still_a_step() {
    let dir = good();
    dir.remove(TRANSCRIPT);
    let (run, events) = dir.read();
    let issue = &run.issues[0];
    assert_eq!(
        (issue.rule, issue.path.as_str()),
        (Rule::TranscriptMissing, RECEIPT)
    );
    let step = run.steps.iter().find(|step| step.iteration == 1).unwrap();
    assert_eq!((step.transcript.as_deref(), step.lines), (None, 0));
    // Tokens and result are those of the receipt.
    assert!(lines(&events).contains(r#"{"files":1}"#));
    assert_eq!(run.header.totals.usage.output, Some(9600));
}

#[test]
fn nothing_outside_of_the_run_is_opened() {
    for path in [
        "../../secret.jsonl",
        "/etc/hostname",
        "llm/../../../secret.jsonl",
        "../../nothing.jsonl",
    ] {
        let dir = good();
        std::fs::create_dir_all(dir.outside()).unwrap();
        dir.put(
            "../secret.jsonl",
            r#"{"timestamp": "2025-12-09T14:30:24Z", "role": "user", "content": "SECRET"}"#,
        );
        dir.remove(TRANSCRIPT);
        dir.edit(RECEIPT, "llm/impl-loop-code-implementer-claude.jsonl", path);
        let (run, events) = dir.read();
        assert!(
            run.issues
                .iter()
                .any(|issue| issue.rule == Rule::PathEscapes),
            "{path}"
        );
        assert!(!lines(&events).contains("SECRET"), "{path}");
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_are_not_followed() {
    use std::os::unix::fs::symlink;
    let dir = good();
    dir.put(
        "../secret.jsonl",
        r#"{"timestamp": "2025-12-09T14:30:24Z", "role": "user", "content": "SECRET"}"#,
    );
    dir.put(
        "../elsewhere/llm/x-y-claude.jsonl",
        r#"{"timestamp": "2025-12-09T14:30:24Z", "role": "user", "content": "SECRET"}"#,
    );
    dir.put("../meta.json", r#"{"id": "SECRET"}"#);
    dir.remove(TRANSCRIPT).remove("meta.json");
    symlink(
        dir.outside().join("secret.jsonl"),
        dir.path().join(TRANSCRIPT),
    )
    .unwrap();
    symlink(dir.outside().join("elsewhere"), dir.path().join("linked")).unwrap();
    symlink(
        dir.outside().join("meta.json"),
        dir.path().join("meta.json"),
    )
    .unwrap();
    symlink("/", dir.path().join("root")).unwrap();
    let (run, events) = dir.read();
    assert!(!lines(&events).contains("SECRET"));
    let escaped: Vec<_> = run
        .issues
        .iter()
        .filter(|issue| issue.rule == Rule::PathEscapes)
        .map(|issue| issue.path.as_str())
        .collect();
    assert!(
        escaped.contains(&TRANSCRIPT) && escaped.contains(&"linked"),
        "{escaped:?}"
    );
    // A link to another file of the run is one of its files.
    let inside = good();
    let real = inside.path().join("build/kept.jsonl");
    std::fs::rename(inside.path().join(TRANSCRIPT), &real).unwrap();
    symlink(&real, inside.path().join(TRANSCRIPT)).unwrap();
    assert!(lines(&inside.read().1).contains("Fixed."));
}

#[test]
fn a_path_that_is_absolute_is_followed_inside_only() {
    let dir = good();
    let path = dir.path().join(TRANSCRIPT);
    dir.edit(
        RECEIPT,
        "llm/impl-loop-code-implementer-claude.jsonl",
        path.to_str().unwrap(),
    );
    let (run, events) = dir.read();
    assert_eq!(
        run.issues
            .iter()
            .map(|issue| issue.rule)
            .collect::<Vec<_>>(),
        [Rule::PathAbsolute]
    );
    assert!(lines(&events).contains("Fixed."));
    // Of another machine: the file is found by its name.
    let moved = good();
    moved.edit(RECEIPT, "llm/impl-loop", "/srv/runs/r/build/llm/impl-loop");
    let (run, events) = moved.read();
    assert_eq!(
        run.issues
            .iter()
            .map(|issue| issue.rule)
            .collect::<Vec<_>>(),
        [Rule::PathEscapes]
    );
    assert!(lines(&events).contains("Fixed."));
}

#[test]
fn lines_without_end_are_passed_over() {
    let dir = good();
    let long = format!(
        "{{\"timestamp\": \"2025-12-09T14:30:24Z\", \"role\": \"user\", \"content\": \"{}\"}}\n",
        "x".repeat(9000)
    );
    let text = dir.text(TRANSCRIPT);
    dir.put(TRANSCRIPT, format!("{long}{text}"));
    let limits = Limits {
        max_line_bytes: 1000,
        ..Limits::default()
    };
    let mut events = Vec::new();
    let run = read_with(&dir.path(), &limits, &mut |event| events.push(event)).unwrap();
    assert!(
        run.issues
            .iter()
            .any(|issue| issue.rule == Rule::LineTooLong && issue.line == Some(1))
    );
    assert!(lines(&events).contains("Fixed."));
    assert!(
        events
            .iter()
            .all(|event| lines(std::slice::from_ref(event)).len() < 2000)
    );
}

#[test]
fn a_torn_line_is_kept_and_told_of() {
    let dir = good();
    let text = dir.text(TRANSCRIPT);
    dir.put(TRANSCRIPT, format!("{text}{{\"timestamp\": \"2025-12"));
    let (run, events) = dir.read();
    assert!(
        run.issues
            .iter()
            .any(|issue| issue.rule == Rule::TornTail && issue.line == Some(2))
    );
    let kept = events.iter().find_map(|event| match &event.body {
        Body::Note(note) if note.kind == NoteKind::MalformedLine => note.raw.clone(),
        _ => None,
    });
    assert_eq!(kept.unwrap().as_str().unwrap(), "{\"timestamp\": \"2025-12");
}

#[test]
fn what_is_no_run_is_refused() {
    let dir = Dir::new("empty");
    let refused = read(&dir.path(), &mut |_| {});
    assert!(matches!(refused, Err(FlowError::NotARun(_))));
    let missing = read(&dir.path().join("nowhere"), &mut |_| {});
    assert!(matches!(missing, Err(FlowError::Io { .. })));
    // One that only says so is one.
    dir.put("meta.json", r#"{"id": "run-x", "status": "running", "title": "T", "started_at": "2025-12-09T14:30:24+00:00Z"}"#);
    let (run, events) = dir.read();
    assert_eq!((run.run_id.as_str(), events.len()), ("run-x", 1));
    assert_eq!(run.header.title.as_deref(), Some("T"));
}

#[test]
fn ids_that_could_leave_a_directory_are_made_safe() {
    let dir = good();
    for name in [
        RECEIPT,
        "build/receipts/impl-loop-code-implementer.i1.json",
        "deploy/receipts/ship-shipper.json",
    ] {
        dir.edit(name, "run-20251209-143022-abc123", "../../etc");
    }
    let (run, _) = dir.read();
    assert_eq!(run.run_id, "../../etc");
    assert!(!run.header.run_id.as_str().contains('/'));
    assert_eq!(run.header.origin.unwrap().session_id.as_deref(), Some("s1"));
}

#[test]
fn steps_come_in_the_order_in_which_they_began() {
    let dir = Dir::new("run-1");
    let line =
        |time: &str| format!(r#"{{"timestamp": "{time}", "role": "user", "content": "hi"}}"#);
    dir.put("build/llm/a-x-claude.jsonl", line("2025-12-09T14:30:24Z"))
        .put("build/llm/b-x-claude.jsonl", line("2025-12-09T14:30:22Z"))
        .put("plan/llm/c-x-claude.jsonl", r#"{"role": "user", "content": "hi"}"#)
        .put("plan/llm/d-x-claude.jsonl", r#"{"role": "user", "content": "hi"}"#)
        .put("events.jsonl", concat!(
            r#"{"seq":1,"run_id":"run-1","ts":"2025-12-09T14:30:20+00:00Z","kind":"run_started","payload":{}}"#, "\n",
            r#"{"seq":2,"run_id":"run-1","ts":"2025-12-09T14:30:21+00:00Z","kind":"step_start","flow_key":"plan","step_id":"d","payload":{}}"#, "\n",
            r#"{"seq":3,"run_id":"run-1","ts":"2025-12-09T14:30:23+00:00Z","kind":"step_end","flow_key":"plan","step_id":"d","payload":{"status":"failed","duration_ms":7,"error":"no"}}"#, "\n",
            r#"{"seq":4,"run_id":"run-1","ts":"2025-12-09T14:30:29+00:00Z","kind":"run_completed","payload":{}}"#, "\n",
        ));
    let (run, events) = dir.read();
    let order: Vec<&str> = run.steps.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(order, ["d", "b", "a", "c"]);
    assert_eq!(run.journal.kinds["step_start"], 1);
    let read = lines(&events);
    assert!(read.contains(r#""error":"no""#), "{read}");
    assert_eq!(
        run.header.ended_at.unwrap().to_string(),
        "2025-12-09T14:30:29Z"
    );
}

#[test]
fn iterations_of_other_writers_are_counted_on() {
    let dir = Dir::new("run-1");
    let line = |said: &str| {
        format!(r#"{{"timestamp": "2025-12-09T14:30:24Z", "role": "user", "content": "{said}"}}"#)
    };
    dir.put("build/llm/a-x-claude.jsonl", line("third"))
        .put("build/llm/a-x-claude.i1.jsonl", line("first"))
        .put("build/llm/a-x-claude.i2.jsonl", line("second"));
    let (run, events) = dir.read();
    let iterations: Vec<u64> = run.steps.iter().map(|step| step.iteration).collect();
    assert_eq!(iterations, [0, 1, 2]);
    let read = lines(&events);
    let at = |word: &str| read.find(word).unwrap();
    assert!(at("first") < at("second") && at("second") < at("third"));
}
