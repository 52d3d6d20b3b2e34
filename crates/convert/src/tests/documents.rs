//! What went out comes back, and what we write is what was published.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_formats::projection::Nowhere;
use quipu_redact::session::Decisions;
use quipu_redact::{Engine, Key, Profile, RuleSet};
use serde_json::Value;

use super::published::violations;
use super::{READING, bytes, convert, fixture, tell};
use crate::source::{Redacted, Removal};
use crate::{Format, Source, TargetOptions, open, write};

/// A document of somebody else's: their order, their spaces, fields that we do not know, and what they removed.
const TRANSCRIPT: &str = r#"{ "transcriptId": "9f1c2d3e-0000-4000-8000-000000000001",
  "schemaVersion": "0.1.0", "later": [1.0, 2e3],
  "source": {"agent": "claude-code", "agentVersion": null, "adapter": "theirs", "adapterVersion": "7", "host": "x"},
  "session": {"startedAt": "2026-06-22T12:00:00+02:00", "endedAt": "2026-06-22T10:00:09.000Z", "capturedAt": "2026-06-22T10:43:11Z",
    "environment": {"os": "darwin", "shell": "zsh", "cwd": "<anonymized>", "repo": {"name": "<anonymized>", "remote": null, "commit": "a1b2c3d"}}},
  "submitter": {"keyId": "key_2a9f", "pseudonym": "anon_7c41", "identityLinked": true},
  "privacy": {"profile": "research", "redactionApplied": true, "anonymizationApplied": true, "rulesApplied": ["aws"], "redactionCount": 1,
    "contentPolicy": {"includeFileContents": false, "toolOutput": "truncated"}, "commitment": {"algorithm": "quipu-tree-1", "root": "00ff", "leaves": 3}},
  "metrics": {"eventCount": 3, "messageCount": 9, "toolCallCount": 1, "durationMs": 9000, "tokens": {"input": 12, "output": 3}},
  "events": [
    {"id": "one", "seq": 4, "timestamp": "2026-06-22T10:00:00.000Z", "type": "tool_call", "role": "assistant", "text": "Running </script> them",
     "tool": {"name": "Bash", "callId": "call_88", "input": {"command": "npm test"}}},
    {"id": "two", "seq": 5, "timestamp": "2026-06-22T10:00:06Z", "type": "tool_result", "role": "tool",
     "tool": {"name": "Bash", "callId": "call_88", "output": {"got": ["[REDACTED:aws]"]}, "status": "odd", "durationMs": 4200.0},
     "redactions": [{"field": "tool.output.got[0]", "ruleId": "aws", "type": "secret", "placeholder": "[REDACTED:aws]"}]},
    {"id": "three", "seq": 6, "timestamp": "2026-06-22T10:00:09Z", "type": "applause", "role": "crowd", "clap": 3}
  ] }
"#;

/// A trajectory with what only ATIF has a place for, and money in more digits than anybody counts.
const TRAJECTORY: &str = r#"{"schema_version": "ATIF-v1.6", "session_id": "s-1", "notes": "kept",
 "agent": {"name": "terminus", "version": "2.0", "model_name": "m", "tool_definitions": [{"type": "function", "function": {"name": "f"}}]},
 "steps": [{"step_id": 1, "source": "user", "message": "go"},
  {"step_id": 2, "source": "agent", "message": "on it", "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}],
   "observation": {"results": [{"source_call_id": "c", "content": "x", "subagent_trajectory_ref": [{"session_id": "sub", "trajectory_path": "sub.json"}]}]},
   "metrics": {"prompt_tokens": 3, "completion_tokens": 2, "cost_usd": 0.044284250000000002123456789, "prompt_token_ids": [1, 2, 3], "completion_token_ids": [4, 5], "logprobs": [-0.1, -0.25]}}],
 "final_metrics": {"total_cost_usd": 0.044284250000000002123456789, "total_steps": 2}}
"#;

fn file(home: &Path, name: &str, text: &str) -> PathBuf {
    let path = home.join(name);
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path
}

#[test]
fn a_document_that_somebody_wrote_comes_back_as_they_wrote_it() {
    let home = tempfile::tempdir().unwrap();
    for (name, text, format) in [
        ("shared.json", TRANSCRIPT, Format::Normalized),
        ("trajectory.json", TRAJECTORY, Format::Atif),
    ] {
        let path = file(home.path(), name, text);
        assert_eq!(
            String::from_utf8(bytes(&path, format)).unwrap(),
            text,
            "{name}"
        );
        let (_, report) = convert(&path, format, &home.path().join("again"));
        assert!(report.is_complete(), "{name}: {:?}", report.loss);
    }
    // By way of a page, and as a page.
    let path = file(home.path(), "shared.json", TRANSCRIPT);
    let (page, report) = convert(&path, Format::Html, home.path());
    assert!(report.is_complete(), "{:?}", report.loss);
    assert!(
        !fs::read_to_string(&page)
            .unwrap()
            .contains("</script> them")
    );
    let back = String::from_utf8(bytes(&page, Format::Normalized)).unwrap();
    assert_eq!(back, TRANSCRIPT);
    assert_eq!(bytes(&page, Format::Html), fs::read(&page).unwrap());
}

/// One that cannot be read wholly is not handed on as if it could.
#[test]
fn a_document_that_is_broken_is_not_given_back() {
    let home = tempfile::tempdir().unwrap();
    let mut text = TRAJECTORY.as_bytes().to_vec();
    let at = TRAJECTORY.find("on it").unwrap();
    text[at] = 0xff;
    let path = home.path().join("t.json");
    fs::File::create(&path).unwrap().write_all(&text).unwrap();
    let (written, report) = convert(&path, Format::Atif, &home.path().join("again"));
    assert!(!report.is_complete());
    let written = fs::read_to_string(written).unwrap();
    assert!(written.contains("\u{fffd}n it"), "{written}");
}

/// What an agent says with its call is a message where calls say nothing.
#[test]
fn what_is_said_with_a_call_is_in_formats_in_which_calls_say_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = file(home.path(), "shared.json", TRANSCRIPT);
    for format in [Format::Text, Format::HuggingFace, Format::Exchange] {
        let text = String::from_utf8(bytes(&path, format)).unwrap();
        assert!(text.contains("Running </script> them"), "{format}: {text}");
    }
}

/// A session without what a profile removes.
fn shared(path: &Path, profile: &str, home: &Path) -> PathBuf {
    let profile = Profile::builtin(profile).unwrap();
    let engine = Engine::new(&RuleSet::builtin(), |rule| profile.wants(rule)).unwrap();
    let removal = Removal {
        engine: Arc::new(engine),
        profile,
        key: Key::from_bytes([7; 32]),
        decisions: Decisions::default(),
        submitter: None,
    };
    let source = open(path, &READING).unwrap().remove(0);
    let mut source: Box<dyn Source> = Box::new(Redacted::new(source, removal));
    let to = home.join("shared.json");
    let out = Box::new(fs::File::create(&to).unwrap());
    let options = TargetOptions::default();
    write(
        &mut *source,
        Format::Normalized,
        &options,
        out,
        Box::new(Nowhere),
    )
    .unwrap();
    to
}

#[test]
fn what_was_removed_and_the_proof_of_it_stay_with_the_document() {
    let home = tempfile::tempdir().unwrap();
    let path = shared(&fixture("claude.jsonl"), "research", home.path());
    let was = fs::read(&path).unwrap();
    let check = |document: &[u8], by: &str| {
        let report = quipu_redact::receipt::verify(document).unwrap();
        assert!(report.problems.is_empty(), "{by}: {:?}", report.problems);
    };
    check(&was, "at first");
    let document: Value = serde_json::from_slice(&was).unwrap();
    assert_eq!(document["privacy"]["profile"], "research");
    assert_eq!(document["privacy"]["redactionApplied"], true);
    let (page, _) = convert(&path, Format::Html, &home.path().join("page"));
    let back = bytes(&page, Format::Normalized);
    check(&back, "by way of a page");
    assert!(back == was);
    assert!(bytes(&path, Format::Normalized) == was);
}

/// What a format has no place for is counted, so that nobody takes a copy for the proof of itself.
#[test]
fn formats_that_do_not_say_what_was_removed_report_that_it_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let path = shared(&fixture("claude.jsonl"), "research", home.path());
    for &format in Format::ALL {
        if format.shape() == crate::Shape::Tables {
            continue;
        }
        let place = home.path().join(format.as_str());
        let (_, report) = convert(&path, format, &place);
        let lost = |what: &str| report.loss.dropped.contains_key(what);
        let (privacy, receipts) = match format {
            Format::Normalized | Format::Html => (false, false),
            Format::Atif => (false, true),
            _ => (true, true),
        };
        assert_eq!(
            (lost("privacy"), lost("redactions")),
            (privacy, receipts),
            "{format}: {:?}",
            report.loss.dropped
        );
    }
}

/// Every log there is, in this project and beside it.
#[test]
fn every_transcript_we_write_is_as_published() {
    let home = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    files(&fixture(""), &mut paths);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let beside = std::env::var_os("QUIPU_FIXTURES").map_or(beside, PathBuf::from);
    if beside.is_dir() {
        files(&beside, &mut paths);
    } else {
        tell(format_args!(
            "only our own: no logs at {}",
            beside.display()
        ));
    }
    let (mut documents, mut odd) = (0, Vec::new());
    let mut check = |name: String, document: &[u8]| {
        documents += 1;
        let document = serde_json::from_slice(document).unwrap();
        for what in violations(&document) {
            odd.push(format!("{name}: {what}"));
        }
    };
    for path in &paths {
        // Skip databases and files that are not logs.
        let Ok(sources) = open(path, &READING) else {
            continue;
        };
        for mut source in sources {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if source.original(Format::Normalized).is_some() {
                continue;
            }
            let mut document = Vec::new();
            let out: Box<dyn Write> = Box::new(&mut document);
            let nowhere = Box::new(Nowhere);
            let options = TargetOptions::default();
            match write(&mut *source, Format::Normalized, &options, out, nowhere) {
                Ok(_) => check(name, &document),
                Err(error) => tell(format_args!("{}: {error}", path.display())),
            }
        }
    }
    for profile in ["team", "research", "public", "structure-only"] {
        for name in ["claude.jsonl", "inspect.json", "acp.jsonl"] {
            let path = shared(&fixture(name), profile, home.path());
            check(format!("{name} for {profile}"), &fs::read(path).unwrap());
        }
    }
    tell(format_args!("{documents} documents"));
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    for it in &odd {
        let kind = it.split_once(": ").map_or("", |(_, what)| what);
        *kinds.entry(kind).or_default() += 1;
    }
    assert!(
        odd.is_empty(),
        "of {documents} {kinds:#?}\n{}",
        odd[..odd.len().min(80)].join("\n")
    );
}

/// Whoever reads strictly notices.
#[test]
fn what_is_not_as_published_is_noticed() {
    let good: Value =
        serde_json::from_slice(&bytes(&fixture("claude.jsonl"), Format::Normalized)).unwrap();
    assert_eq!(violations(&good), Vec::<String>::new());
    let events = good["events"].as_array().unwrap();
    let result = events
        .iter()
        .position(|event| event["type"] == "tool_result")
        .unwrap();
    let of_result = |field: &str| format!("/events/{result}/{field}");
    for (pointer, bad) in [
        ("/schemaVersion".to_owned(), Value::from("0.2.0")),
        ("/transcriptId".to_owned(), "t".into()),
        ("/source/adapter".to_owned(), Value::Null),
        ("/session/capturedAt".to_owned(), Value::Null),
        ("/session/environment/cwd".to_owned(), Value::Null),
        ("/submitter".to_owned(), Value::Null),
        ("/privacy/redactionCount".to_owned(), 1.into()),
        ("/privacy/rulesApplied".to_owned(), vec!["aws"].into()),
        ("/metrics/messageCount".to_owned(), 0.into()),
        ("/metrics/durationMs".to_owned(), 1.into()),
        (
            "/metrics/tokens".to_owned(),
            Value::Object(serde_json::Map::new()),
        ),
        (of_result("role"), "user".into()),
        (of_result("seq"), 0.into()),
        (of_result("id"), "ev_001".into()),
        (of_result("timestamp"), "yesterday".into()),
        (of_result("tool/callId"), "".into()),
        (of_result("tool/output"), vec!["a"].into()),
        (of_result("tool/status"), "success".into()),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(&pointer).expect(&pointer) = bad;
        assert_eq!(violations(&document).len().min(1), 1, "{pointer}");
    }
}

pub(super) fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).unwrap();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}
