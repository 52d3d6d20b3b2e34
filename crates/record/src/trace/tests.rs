//! Traces of runs on real files.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic and write plain files"
)]

use std::fs;
use std::path::Path;

use quipu_formats::agentlog::verify::{VerifyOptions, verify};
use quipu_model::{
    Annotations, Block, Body, Draft, Fidelity, Json, Notes, Place, RunId, Step, ToolCall,
    ToolResult,
};

use super::*;
use crate::{RecorderOptions, Storage, torn_path};

fn run() -> RunId {
    RunId::new("r").unwrap()
}

fn say(text: &str) -> Vec<Block> {
    vec![Block::text(Fidelity::AgentEmitted, text)]
}

/// A run in which every kind of event is met, some of one call.
fn drafts() -> Vec<Draft> {
    let mut drafts = vec![Body::RunStarted(Some(Step::new("nightly", "workflow")))];
    for n in 0..4 {
        let call_id = quipu_model::ToolCallId::from(format!("t{n}"));
        drafts.push(Body::UserMessage(say(&format!("go {n}"))));
        drafts.push(Body::AssistantMessage(say("I look. é")));
        drafts.push(Body::ToolCall(ToolCall {
            name: "bash".to_owned(),
            call_id: call_id.clone(),
            input: Some(Json::parse(r#"{"command":"ls"}"#).unwrap()),
            fidelity: Fidelity::Router,
        }));
        drafts.push(Body::ToolResult(ToolResult {
            name: "bash".to_owned(),
            call_id,
            input: None,
            output: Some(Json::string("a\nb")),
            error: None,
            fidelity: Fidelity::Router,
        }));
        drafts.push(Body::AssistantMessage(say("Done.")));
    }
    let annotated = |n: usize| Notes {
        model: Some("m".to_owned()),
        model_call: Some(format!("c{}", n / 6).into()),
        ..Notes::default()
    };
    let drafts = drafts.into_iter().enumerate();
    drafts
        .map(|(n, body)| Draft {
            annotations: match body {
                Body::AssistantMessage(_) | Body::ToolCall(_) => Annotations::from(annotated(n)),
                _ => Annotations::default(),
            },
            ..Draft::new(Place::step("review"), body)
        })
        .collect()
}

fn options(place: TracePlace) -> TraceOptions {
    TraceOptions {
        place,
        projection: ProjectionOptions::default(),
        durability: Durability::None,
        blobs: Box::new(|_, _| Ok(())),
    }
}

/// Records events with the trace beside.
fn record(root: &Path, drafts: &[Draft], place: TracePlace) -> Result<Traced, TraceError> {
    let durability = Durability::None;
    let recorder = Storage::at(root)
        .record(
            &run(),
            RecorderOptions {
                durability,
                ..RecorderOptions::default()
            },
        )
        .unwrap();
    let writer = TraceWriter::follow(&recorder, options(place)).unwrap();
    for draft in drafts {
        recorder.record(draft).unwrap();
    }
    recorder.close().unwrap();
    writer.finish()
}

fn check(path: &Path) {
    let report = verify(fs::File::open(path).unwrap(), &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

#[test]
fn a_trace_is_named_by_its_root_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let traces = root.path().join("traces");
    let traced = record(
        root.path(),
        &drafts(),
        TracePlace::Directory(traces.clone()),
    )
    .unwrap();
    let path = traced.path.unwrap();
    check(&path);
    let text = fs::read_to_string(&path).unwrap();
    let first: String = text.chars().skip_while(|c| *c != ':').collect();
    let hex = &first[first.find("sha256:").unwrap() + 7..][..64];
    assert_eq!(
        path,
        traces
            .join(&hex[..2])
            .join(format!("{}.agentlog", &hex[2..]))
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(text.lines().count() as u64, traced.added);
    assert_eq!((traced.loss.events, traced.loss.carried), (21, 21));
}

#[test]
fn cut_off_at_any_byte_it_is_continued_to_the_same_trace() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.agentlog");
    let place = || TracePlace::File(path.clone());
    record(root.path(), &drafts(), place()).unwrap();
    let whole = fs::read(&path).unwrap();
    // Every byte around the end of the last records, and some of all the others.
    let tail = whole.len().saturating_sub(90);
    for cut in (0..tail).step_by(331).chain(tail..=whole.len()) {
        fs::write(&path, &whole[..cut]).unwrap();
        fs::remove_file(torn_path(&path)).ok();
        let traced = record(root.path(), &[], place()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
        let torn = cut
            - whole[..cut]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
        let aside = traced.set_aside.map_or(0, |aside| aside.bytes);
        assert_eq!(aside, torn as u64, "cut at {cut}");
        if torn > 0 {
            let kept = fs::read(torn_path(&path)).unwrap();
            assert_eq!(&kept[..torn], &whole[cut - torn..cut]);
        }
    }
}

#[test]
fn a_run_that_was_closed_and_goes_on_has_a_trace_that_goes_on() {
    let all = drafts();
    for first in 1..all.len() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x.agentlog");
        let place = || TracePlace::File(path.clone());
        record(root.path(), &all[..first], place()).unwrap();
        let before = fs::read(&path).unwrap();
        record(root.path(), &all[first..], place()).unwrap();
        let after = fs::read(&path).unwrap();
        assert!(after.starts_with(&before), "closed after {first}");
        check(&path);
        let again = record(root.path(), &[], place()).unwrap();
        assert_eq!(again.added, 0, "closed after {first}");
        assert_eq!(fs::read(&path).unwrap(), after);
    }
}

#[test]
fn a_file_of_something_else_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.agentlog");
    let place = || TracePlace::File(path.clone());
    record(root.path(), &drafts(), place()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let other = text.replacen("\"command\":\"ls\"", "\"command\":\"rm\"", 1);
    let mut lines: Vec<&str> = other.lines().collect();
    lines.swap(2, 3);
    for (wrong, line) in [
        (lines.join("\n") + "\n", 3),
        (text.replacen('{', "[", 2), 1),
    ] {
        fs::write(&path, &wrong).unwrap();
        match record(root.path(), &[], place()) {
            Err(TraceError::Differs { line: at, .. } | TraceError::Damaged { line: at, .. }) => {
                assert_eq!(at, line);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), wrong);
    }
}

#[test]
fn what_is_no_trace_is_not_touched() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.agentlog");
    let place = || TracePlace::File(path.clone());
    record(root.path(), &drafts(), place()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let first = text.lines().next().unwrap();
    let other = first.replacen("sha256:", "sha256:0", 1);
    let strange = text.replacen("\"command\":\"ls\"", "\"command\":\"rm\"", 1);
    let (begin, _) = strange.split_at(strange.len() - 30);
    let swapped: Vec<&str> = begin.lines().rev().collect();
    for (wrong, line) in [
        // Somebody's diary, in several shapes.
        ("dear diary\n".to_owned(), 1),
        ("dear diary\ntoday".to_owned(), 1),
        ("dear diary".to_owned(), 1),
        ("\n\n".to_owned(), 1),
        (" ".to_owned(), 1),
        ("{}\n".to_owned(), 1),
        (other, 1),
        // Behind records of ours.
        (
            format!("{text}dear diary\n"),
            text.lines().count() as u64 + 1,
        ),
        (format!("{first}\ndear diary\ntoday"), 2),
        (format!("{first}\n\n"), 2),
        // Another trace, with an end that is cut off.
        (swapped.join("\n"), 1),
        // More than the run makes.
        (format!("{text}{first}\n"), text.lines().count() as u64 + 1),
        (
            format!("{text}{first}\n{{"),
            text.lines().count() as u64 + 1,
        ),
    ] {
        fs::write(&path, &wrong).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        match record(root.path(), &[], place()) {
            Err(TraceError::Differs { line: at, .. } | TraceError::Damaged { line: at, .. }) => {
                assert_eq!(at, line, "{wrong}");
            }
            other => panic!("{wrong}: {other:?}"),
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), wrong);
        assert!(!torn_path(&path).exists(), "{wrong}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{wrong}");
    }
}

#[test]
fn a_torn_end_is_set_aside_when_nothing_follows() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.agentlog");
    let place = || TracePlace::File(path.clone());
    record(root.path(), &drafts(), place()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{{\"ver")).unwrap();
    let traced = record(root.path(), &[], place()).unwrap();
    assert_eq!(traced.set_aside.unwrap().bytes, 5);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_trace_whose_file_was_replaced_is_not_said_to_be_written() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.agentlog");
    let durability = Durability::Each;
    let options = |place| TraceOptions {
        durability,
        ..options(place)
    };
    let recorder = Storage::at(root.path())
        .record(&run(), RecorderOptions::default())
        .unwrap();
    let writer = TraceWriter::follow(&recorder, options(TracePlace::File(path.clone()))).unwrap();
    let drafts = drafts();
    recorder.record(&drafts[0]).unwrap();
    while fs::metadata(&path).map_or(0, |it| it.len()) == 0 {
        std::thread::yield_now();
    }
    fs::rename(&path, root.path().join("elsewhere")).unwrap();
    fs::write(&path, "").unwrap();
    for draft in &drafts[1..] {
        recorder.record(draft).unwrap();
    }
    recorder.close().unwrap();
    let failed = writer.finish();
    assert!(
        matches!(&failed, Err(TraceError::File(Error::Replaced(at))) if *at == path),
        "{failed:?}"
    );
}

#[test]
fn a_trace_that_cannot_be_written_does_not_stop_the_recorder() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("directory.agentlog");
    fs::create_dir(&path).unwrap();
    let failed = record(root.path(), &drafts(), TracePlace::File(path));
    assert!(
        matches!(failed, Err(TraceError::File(Error::NotAFile(_)))),
        "{failed:?}"
    );
    let storage = Storage::at(root.path());
    let report = storage
        .verify(&storage.path_of(&run()), Limits::default())
        .unwrap();
    assert_eq!(report.events, 21);
}
