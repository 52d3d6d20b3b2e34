//! Whole runs as other programs leave them: loops whose iterations write over each other, a journal and nothing else,
//! and every shape of transcript, receipt and document.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use quipu_model::json::Tape;
use quipu_model::{Body, Event, NoteKind};

use super::{Dir, write};
use crate::flow::record::Record;
use crate::flow::{Files, FlowOptions, Rule, Run, Teller, read, verify, walk};
use quipu_exchange::lines::Limits;

const LOOP: &str = "stepwise-loop-claude";
const GEMINI: &str = "stepwise-gemini";
const SHAPES: &str = "run-20251209-143022-abc123";

fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/flow")).join(name)
}

fn events(name: &str) -> (Run, Vec<Event>) {
    let mut events = Vec::new();
    let run = read(&fixture(name), &mut |event| events.push(event)).unwrap();
    (run, events)
}

/// The places where steps began.
fn begun(events: &[Event]) -> Vec<(String, u64)> {
    let begins = |event: &&Event| matches!(&event.body, Body::StepStarted(_));
    let steps = events.iter().filter(begins);
    steps
        .map(|event| (event.place.path.clone(), event.place.iteration()))
        .collect()
}

fn notes<'e>(
    events: &'e [Event],
    file: &'e str,
) -> impl Iterator<Item = (&'e Event, NoteKind, &'e str)> {
    events.iter().filter_map(move |event| {
        let Body::Note(note) = &event.body else {
            return None;
        };
        let source = event.annotations.source.as_ref()?;
        (source.file == file).then_some((event, note.kind, note.text.as_deref().unwrap_or("")))
    })
}

#[test]
fn every_execution_that_the_journal_tells_of_is_a_step() {
    let (run, read) = events(LOOP);
    let steps = begun(&read);
    assert_eq!(steps.len(), 12);
    let of = |path: &str| -> Vec<u64> {
        let same = steps.iter().filter(|(own, _)| own == path);
        same.map(|(_, iteration)| *iteration).collect()
    };
    assert_eq!(of("signal.author_reqs"), [0, 1, 2]);
    assert_eq!(of("signal.critique_reqs"), [0, 1, 2]);
    assert_eq!(of("build.implement"), [0, 1]);
    assert_eq!(run.steps.len(), 12);
    // The files are those of the last iteration, and what the others said is gone.
    let with_files = |step: &&crate::flow::StepRun| step.transcript.is_some();
    let kept: Vec<(&str, u64)> = run
        .steps
        .iter()
        .filter(with_files)
        .map(|step| (step.step.as_str(), step.iteration))
        .collect();
    assert_eq!(
        kept,
        [
            ("normalize", 0),
            ("author_reqs", 2),
            ("critique_reqs", 2),
            ("load_context", 0),
            ("implement", 1),
            ("critique_code", 1)
        ]
    );
    let overwritten = run
        .issues
        .iter()
        .find(|issue| issue.rule == Rule::ExecutionOverwritten);
    let overwritten = overwritten.unwrap();
    assert_eq!(
        (overwritten.path.as_str(), overwritten.count),
        ("events.jsonl", 6)
    );
}

#[test]
fn a_journal_alone_tells_of_its_steps() {
    let (run, read) = events(GEMINI);
    assert_eq!(begun(&read).len(), 4);
    assert_eq!(run.receipts.len(), 0);
    let ends: Vec<Option<String>> = read
        .iter()
        .filter_map(|event| match &event.body {
            Body::StepCompleted(end) => Some(end.error.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [None, None, Some("quota exceeded".to_owned()), None]);
    assert!(read.iter().all(|event| event.annotations.usage.is_none()));
}

#[test]
fn every_line_of_a_journal_is_a_note_where_it_belongs() {
    for (name, lines) in [(LOOP, 52), (GEMINI, 23), (SHAPES, 24)] {
        let (_, read) = events(name);
        // A blank line says nothing.
        let blank = u64::from(name == SHAPES);
        let count = notes(&read, "events.jsonl").count() as u64;
        assert_eq!(count, lines + u64::from(name == SHAPES) - blank, "{name}");
    }
    let (_, read) = events(LOOP);
    let (event, kind, text) = notes(&read, "events.jsonl")
        .find(|(_, _, text)| text.contains("max_iterations_reached"))
        .unwrap();
    assert_eq!(kind, NoteKind::Context);
    assert_eq!(
        text,
        "route: critique_reqs → the end: max_iterations_reached"
    );
    assert_eq!(event.place.path, "signal.critique_reqs");
    assert_eq!(event.place.iteration(), 2);
    // What is told of a step stands between its beginning and its end.
    let seq = |wanted: fn(&Body) -> bool| {
        let same = |event: &&Event| {
            event.place.path == "signal.author_reqs" && event.place.iteration() == 2
        };
        read.iter()
            .filter(same)
            .find(|event| wanted(&event.body))
            .unwrap()
            .seq
    };
    let start = seq(|body| matches!(body, Body::StepStarted(_)));
    let said = seq(|body| matches!(body, Body::UserMessage(_)));
    let end = seq(|body| matches!(body, Body::StepCompleted(_)));
    assert!(start < said && said < end);
}

#[test]
fn lines_of_other_programs_and_broken_ones_are_counted() {
    let (run, read) = events(SHAPES);
    assert_eq!((run.journal.foreign, run.journal.malformed), (2, 2));
    let kinds: Vec<NoteKind> = notes(&read, "events.jsonl")
        .map(|(_, kind, _)| kind)
        .collect();
    let count = |kind| kinds.iter().filter(|own| **own == kind).count();
    assert_eq!(count(NoteKind::MalformedLine), 2);
    // Two of another program, and one of a kind that nobody knows.
    assert_eq!(count(NoteKind::UnknownRecord), 3);
}

#[test]
fn every_shape_and_document_of_a_run_is_in_it() {
    let (run, read) = events(SHAPES);
    assert_eq!(begun(&read).len(), 9);
    let shapes: Vec<&str> = run
        .steps
        .iter()
        .flat_map(|step| step.shapes.iter().map(|shape| shape.as_str()))
        .collect();
    for shape in ["T1", "T3", "T4", "T5", "T6", "T7", "T8", "T9"] {
        assert!(shapes.contains(&shape), "{shape} in {shapes:?}");
    }
    let (event, _, text) = notes(&read, "build/handoff/sdk.json").next().unwrap();
    assert_eq!(text, "handoff: Two files listed, nothing to mend.");
    assert_eq!(event.place.path, "build.sdk");
    for file in [
        "build/handoff/sdk.draft.json",
        "build/routing/candidates_step_sdk.json",
        "build/nav/sdk-brief.json",
        "build/forensics/file_changes_sdk.json",
        "deploy/receipts/prompt_receipt_ship.json",
        "run_state.json",
        "meta.json",
        "spec.json",
    ] {
        assert_eq!(notes(&read, file).count(), 1, "{file}");
    }
    let left = read.iter().find_map(|event| match &event.body {
        Body::Note(note) => note
            .raw
            .as_ref()
            .filter(|raw| raw.get().contains("\"files\":[{")),
        _ => None,
    });
    assert!(left.unwrap().get().contains("build/impl_changes.md"));
}

/// The bytes of each file, out of records that were kept.
fn restored(run: &Path) -> (BTreeMap<String, Vec<u8>>, crate::flow::Originals) {
    let mut kept = Vec::new();
    walk(run, &Limits::default(), &|_| false, &mut |record| {
        record.encode(&mut kept);
        Ok(())
    })
    .unwrap();
    let mut files = BTreeMap::new();
    let mut put = |name: &str, bytes: &[u8]| {
        assert!(
            files.insert(name.to_owned(), bytes.to_vec()).is_none(),
            "{name} twice"
        );
        Ok(true)
    };
    let mut to = Files::new(&mut put);
    for line in kept.split(|byte| *byte == b'\n') {
        let mut tape = Tape::new();
        if let Ok(node) = tape.read(std::str::from_utf8(line).unwrap(), 136) {
            to.take(Record::decode(node).unwrap()).unwrap();
        }
    }
    let done = to.finish().unwrap();
    (files, done)
}

#[test]
fn the_files_of_a_run_come_back_byte_for_byte() {
    for name in [LOOP, GEMINI, SHAPES] {
        let run = fixture(name);
        let (files, done) = restored(&run);
        let mut open = vec![run.clone()];
        let mut missing = Vec::new();
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|it| it.unwrap().path()),
                );
                continue;
            }
            let rel = path.strip_prefix(&run).unwrap().to_str().unwrap();
            match files.get(rel) {
                Some(bytes) => assert_eq!(*bytes, std::fs::read(&path).unwrap(), "{rel}"),
                None => missing.push(rel.to_owned()),
            }
        }
        assert_eq!(missing, done.left, "{name}");
        assert_eq!((done.cut.len(), done.refused.len()), (0, 0));
    }
}

#[test]
fn odd_files_come_back_byte_for_byte() {
    let dir = Dir::new("run-1");
    let line = r#"{"timestamp": "2025-12-09T14:30:24Z", "role": "user", "content": "hi"}"#;
    let mut odd = format!("\u{feff}{line}\r\n\n  {line}  \n{{broken\n").into_bytes();
    odd.extend_from_slice(b"\xff\xfe\n{\"timestamp\": \"2025-");
    dir.put("build/llm/a-x-claude.jsonl", &odd)
        .put("build/llm/empty-x-claude.jsonl", "")
        .put("build/receipts/broken-x.json", b"{\"step_id\": \xff")
        .put(
            "build/receipts/a-x.json",
            "\u{feff}{\"engine\": \"claude-step\",\r\n \"status\": \"succeeded\"}\r\n",
        )
        .put("events.jsonl", "\n\nnot JSON");
    let (files, done) = restored(&dir.path());
    for name in &done.files {
        assert_eq!(
            files[name],
            std::fs::read(dir.path().join(name)).unwrap(),
            "{name}"
        );
    }
    assert_eq!(done.files.len(), 5, "{done:?}");
}

#[test]
fn what_a_teller_holds_can_be_saved_anywhere() {
    let mut lines = Vec::new();
    walk(
        &fixture(SHAPES),
        &Limits::default(),
        &|_| false,
        &mut |record| {
            let mut line = Vec::new();
            record.encode(&mut line);
            lines.push(String::from_utf8(line).unwrap());
            Ok(())
        },
    )
    .unwrap();
    let tell = |save: bool| {
        let mut teller = Teller::default();
        let mut told = Vec::new();
        for line in &lines {
            let mut tape = Tape::new();
            let record = Record::decode(tape.read(line.trim_end(), 136).unwrap()).unwrap();
            teller.take(record, &mut |it| told.push(format!("{it:?}")));
            if save {
                let text = serde_json::to_string(&teller).unwrap();
                teller = serde_json::from_str(&text).unwrap();
            }
        }
        teller.finish(&mut |it| told.push(format!("{it:?}")));
        told
    };
    assert_eq!(tell(false), tell(true));
}

#[test]
fn what_a_receipt_says_is_written_again() {
    let (run, read) = events(SHAPES);
    let (files, loss, _) = write(&run.header, &read, &FlowOptions::default());
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    for name in files.keys().filter(|name| name.contains("/receipts/")) {
        // One of them names a session of its engine; the run is not one.
        let says = text(name).contains("\"session_id\"");
        assert_eq!(says, name.contains("session-coder"), "{name}");
    }
    let gemini = text("gate/receipts/stream-reviewer.json");
    for said in [
        r#""engine": "gemini-step""#,
        r#""mode": "cli""#,
        r#""provider": "gemini""#,
    ] {
        assert!(gemini.contains(said), "{gemini}");
    }
    assert!(files.contains_key("gate/llm/stream-reviewer-gemini.jsonl"));
    let stub = text("deploy/receipts/decide-deploy-decider.json");
    for said in [
        r#""mode": "stub""#,
        r#""lifecycle_mode": true"#,
        r#""model": "claude-stub""#,
    ] {
        assert!(stub.contains(said), "{stub}");
    }
    let session = text("build/receipts/session-coder.json");
    for said in [
        r#""execution_mode": "session""#,
        r#""telemetry": {"#,
        r#""context_truncation": {"#,
    ] {
        assert!(session.contains(said), "{session}");
    }
    let documented = text("build/llm/impl-loop-code-implementer-claude.jsonl");
    let file = documented
        .lines()
        .find(|line| line.contains("\"Read\""))
        .unwrap();
    assert!(
        file.contains(r##""content": "# Test summary\n3 tests""##),
        "{file}"
    );
    assert!(!file.contains("tool_output"), "{file}");
    // An engine is guessed only where nothing told it: the step without a receipt.
    assert_eq!(loss.inferred["engine"].count, 1);
    assert!(!loss.inferred.contains_key("flow_key"));
}

#[test]
fn a_journal_is_written_again_and_nothing_is_made_up_for_what_only_it_tells() {
    for name in [LOOP, GEMINI] {
        let (run, read) = events(name);
        let (files, _, _) = write(&run.header, &read, &FlowOptions::default());
        let journal = std::fs::read(fixture(name).join("events.jsonl")).unwrap();
        assert!(files["events.jsonl"] == journal, "{name}");
        let receipts = files
            .keys()
            .filter(|name| name.contains("/receipts/"))
            .count();
        assert_eq!(receipts, run.receipts.len(), "{name}");
        let made = Dir::new(&run.run_id);
        for (name, bytes) in &files {
            made.put(name, bytes);
        }
        let (_, again) = made.read();
        assert_eq!(begun(&again), begun(&read), "{name}");
    }
}

#[test]
fn a_run_of_another_program_is_verified_as_it_is() {
    let report = verify(&fixture(LOOP)).unwrap();
    assert_eq!((report.transcripts, report.receipts), (6, 6));
    let rules: Vec<Rule> = report.findings.iter().map(|finding| finding.rule).collect();
    for rule in [Rule::TimeMalformed, Rule::DirectoryName, Rule::StubSuccess] {
        assert!(rules.contains(&rule), "{rule:?} in {rules:?}");
    }
}

#[test]
fn a_huge_journal_is_not_held() {
    let dir = Dir::new("run-1");
    let mut journal = String::new();
    for n in 0..20_000 {
        let step = format!(r#""flow_key": "build", "step_id": "s{}""#, n % 7);
        let kind = ["step_start", "log", "step_end"][n % 3];
        writeln!(
            journal,
            "{{\"run_id\": \"run-1\", \"ts\": \"2025-12-09T14:30:22Z\", \"kind\": \"{kind}\", {step}, \"payload\": {{}}}}"
        )
        .unwrap();
    }
    dir.put("events.jsonl", &journal);
    let (mut records, mut longest) = (0, 0);
    walk(&dir.path(), &Limits::default(), &|_| false, &mut |record| {
        let mut line = Vec::new();
        record.encode(&mut line);
        records += 1;
        longest = longest.max(line.len());
        Ok(())
    })
    .unwrap();
    assert!(records > 20_000 && longest < 4096, "{records} {longest}");
}
