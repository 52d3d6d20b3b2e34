//! What a source states is what comes out: costs, the agent, images, and how much there is of it.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_model::{Body, Money, NoteKind};
use serde_json::Value;

use super::{convert, fixture, read};
use crate::Format;

fn written(home: &Path, name: &str, text: &str) -> PathBuf {
    let path = home.join(name);
    let mut file = fs::File::create(&path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    path
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn dollars(text: &str) -> Option<Money> {
    let sum = Money::parse(text);
    assert!(sum.is_some(), "{text}");
    sum
}

/// One step of each kind: with a stated cost and a known model, with one and an unknown model, with none.
fn trajectory(steps: &str) -> String {
    format!(
        r#"{{"schema_version":"ATIF-v1.7","session_id":"s-1","agent":{{"name":"terminus","version":"2.0","model_name":"claude-sonnet-4-5"}},"steps":[{steps}]}}"#
    )
}

#[test]
fn a_cost_that_is_stated_is_not_worked_out() {
    let home = tempfile::tempdir().unwrap();
    let steps = r#"{"step_id":1,"source":"user","message":"hi"},
        {"step_id":2,"source":"agent","message":"a","metrics":{"prompt_tokens":10,"completion_tokens":5,"cost_usd":99.5}},
        {"step_id":3,"source":"agent","model_name":"nobody-knows-it","message":"b","metrics":{"prompt_tokens":10,"cost_usd":0.25}},
        {"step_id":4,"source":"agent","message":"c","metrics":{"cost_usd":0.125}}"#;
    let path = written(home.path(), "t.json", &trajectory(steps));
    let (header, given) = read(&path);
    assert_eq!(header.totals.cost, dollars("99.875"));
    let costs: Vec<_> = given
        .events
        .iter()
        .filter_map(|event| event.annotations.cost)
        .collect();
    assert_eq!(
        costs,
        ["99.5", "0.25", "0.125"].map(|it| Money::parse(it).unwrap())
    );
    // And on the way through other formats.
    for format in [Format::Normalized, Format::Atif] {
        let (between, _) = convert(&path, format, &home.path().join(format.as_str()));
        assert_eq!(read(&between).0.totals.cost, dollars("99.875"), "{format}");
    }
    // Where nothing is stated, the price list speaks.
    let steps =
        r#"{"step_id":1,"source":"agent","message":"a","metrics":{"prompt_tokens":1000000}}"#;
    let path = written(home.path(), "u.json", &trajectory(steps));
    assert!(
        read(&path)
            .0
            .totals
            .cost
            .is_some_and(|cost| cost > Money::ZERO)
    );
}

#[test]
fn a_stated_cost_that_is_repeated_is_counted_once() {
    let home = tempfile::tempdir().unwrap();
    let line = |uuid: u32, text: &str, output: u32| {
        format!(
            r#"{{"type":"assistant","uuid":"00000000-0000-4000-8000-00000000000{uuid}","sessionId":"s","timestamp":"2026-01-02T03:04:0{uuid}Z","version":"1.0.0","costUSD":0.5,"message":{{"id":"msg_1","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":10,"output_tokens":{output}}}}}}}"#
        )
    };
    let text = [line(1, "a", 3), line(2, "b", 5), line(3, "c", 5)].join("\n");
    let path = written(home.path(), "s.jsonl", &(text + "\n"));
    let (header, given) = read(&path);
    assert_eq!(header.totals.cost, dollars("0.5"));
    let costs: Vec<_> = given.events.iter().map(|it| it.annotations.cost).collect();
    // More tokens of a call whose cost is told cost nothing more.
    assert_eq!(costs, [dollars("0.5"), Some(Money::ZERO), None]);
}

#[test]
fn the_agent_is_called_what_it_was() {
    let home = tempfile::tempdir().unwrap();
    let agent = |path: &Path| {
        let origin = read(path).0.origin.unwrap();
        (origin.agent, origin.agent_version)
    };
    let was = agent(&fixture("claude.jsonl"));
    assert_eq!(was.0, "claude-code");
    let (atif, _) = convert(&fixture("claude.jsonl"), Format::Atif, home.path());
    assert_eq!(agent(&atif), was);
    let (back, _) = convert(&atif, Format::Normalized, &home.path().join("back"));
    assert_eq!(agent(&back), was);
    let (hub, _) = convert(
        &fixture("claude.jsonl"),
        Format::HuggingFace,
        &home.path().join("hub"),
    );
    assert_eq!(agent(&hub).0, "claude-code");
    let foreign = written(home.path(), "t.json", &trajectory(""));
    assert_eq!(
        agent(&foreign),
        ("terminus".to_owned(), Some("2.0".to_owned()))
    );
}

#[test]
fn copied_context_and_images_stay_what_they_are() {
    let home = tempfile::tempdir().unwrap();
    let image = r#"{"type":"image","source":{"media_type":"image/png","path":"images/a.png"}}"#;
    let steps = format!(
        r#"{{"step_id":1,"source":"user","is_copied_context":true,"message":[{{"type":"text","text":"look"}},{image},{{"type":"text","text":"here"}}]}},
        {{"step_id":2,"source":"agent","is_copied_context":true,"message":"old","tool_calls":[{{"tool_call_id":"c0","function_name":"f","arguments":{{}}}}],"observation":{{"results":[{{"source_call_id":"c0","content":"x"}}]}},"metrics":{{"prompt_tokens":7}}}},
        {{"step_id":3,"source":"agent","message":"new","tool_calls":[{{"tool_call_id":"c1","function_name":"f","arguments":{{}}}}],"observation":{{"results":[{{"source_call_id":"c1","content":[{{"type":"text","text":"see"}},{image}]}}]}}}}"#
    );
    let mut path = written(home.path(), "t.json", &trajectory(&steps));
    let mut counts = Vec::new();
    for pass in 0..3 {
        let (next, report) = convert(&path, Format::Atif, &home.path().join(pass.to_string()));
        path = next;
        let document = document(&path);
        let steps = document["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 3, "{document}");
        let copied: Vec<bool> = steps
            .iter()
            .map(|step| step["is_copied_context"].as_bool() == Some(true))
            .collect();
        assert_eq!(copied, [true, true, false]);
        let image: Value = serde_json::from_str(image).unwrap();
        let said = &steps[0]["message"];
        assert_eq!(
            (&said[0]["text"], &said[1], &said[2]["text"]),
            (&"look".into(), &image, &"here".into())
        );
        let seen = &steps[2]["observation"]["results"][0]["content"];
        assert_eq!((&seen[0]["text"], &seen[1]), (&"see".into(), &image));
        assert_eq!(report.loss.dropped["attachment bytes"].count, 2);
        assert!(quipu_formats::atif::verify(&document.to_string()).is_empty());
        counts.push(read(&path).1.events.len());
    }
    assert_eq!(counts[0], counts[2]);
}

#[test]
fn an_image_in_a_prompt_is_a_part_of_it() {
    let home = tempfile::tempdir().unwrap();
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}"#;
    for (name, blocks) in [
        (
            "before",
            format!(r#"{image},{{"type":"text","text":"what is this?"}}"#),
        ),
        (
            "after",
            format!(r#"{{"type":"text","text":"what is this?"}},{image}"#),
        ),
    ] {
        let line = format!(
            r#"{{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","sessionId":"s","timestamp":"2026-01-02T03:04:05Z","version":"2.0.0","message":{{"role":"user","content":[{blocks}]}}}}"#
        );
        let path = written(home.path(), &format!("{name}.jsonl"), &(line + "\n"));
        let (path, report) = convert(&path, Format::Atif, &home.path().join(name));
        let first = document(&path);
        let steps = first["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 1, "{first}");
        let parts = steps[0]["message"].as_array().unwrap();
        let at = parts
            .iter()
            .position(|part| part["type"] == "image")
            .unwrap();
        assert_eq!((at, parts.len()), (usize::from(name == "after"), 2));
        let file = parts[at]["source"]["path"].as_str().unwrap();
        assert_eq!(
            fs::read(path.parent().unwrap().join(file)).unwrap(),
            b"hello"
        );
        assert!(!report.loss.dropped.contains_key("attachment bytes"));
        // Read and written again it is still there, by its path.
        let (again, _) = convert(
            &path,
            Format::Atif,
            &home.path().join(format!("{name}-again")),
        );
        assert_eq!(
            document(&again)["steps"][0]["message"],
            first["steps"][0]["message"]
        );
        let notes = read(&again).1.events;
        let notes = notes.iter().filter(
            |event| matches!(&event.body, Body::Note(note) if note.kind == NoteKind::Attachment),
        );
        let notes: Vec<_> = notes.collect();
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].annotations.attachments[0].bytes, 5);
    }
}

#[test]
fn a_session_does_not_grow_on_the_way() {
    let home = tempfile::tempdir().unwrap();
    let (mut path, _) = convert(
        &fixture("claude.jsonl"),
        Format::Atif,
        &home.path().join("0"),
    );
    let first = read(&path).1.events.len();
    for pass in 1..4 {
        let place = home.path().join(pass.to_string());
        let (document, _) = convert(&path, Format::Normalized, &place.join("a"));
        assert_eq!(read(&document).1.events.len(), first, "pass {pass}");
        (path, _) = convert(&document, Format::Atif, &place.join("b"));
        assert_eq!(read(&path).1.events.len(), first, "pass {pass}");
    }
    assert_eq!(first, read(&fixture("claude.jsonl")).1.events.len());
}
