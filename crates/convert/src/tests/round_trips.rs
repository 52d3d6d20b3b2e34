//! There and back again.

use std::io::Write;

use proptest::prelude::*;
use quipu_formats::arbitrary;
use quipu_formats::projection::Nowhere;

use super::{bytes, convert, fixture, read};
use crate::{Format, TargetOptions, writer};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A transcript that goes through a format that carries everything comes back byte for byte.
    #[test]
    fn any_transcript_survives_a_lossless_format((header, events) in arbitrary::session()) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.jsonl");
        let out: Box<dyn Write> = Box::new(std::fs::File::create(&path).unwrap());
        let mut to = writer(Format::Exchange, &header, &TargetOptions::default(), out, Box::new(Nowhere)).unwrap();
        for event in &events {
            to.event(event).unwrap();
        }
        let carried = to.finish().unwrap().carried;
        prop_assume!(carried > 0);
        for by in [Format::Normalized, Format::Html] {
            let (between, _) = convert(&path, by, &home.path().join(by.as_str()));
            let back = bytes(&between, Format::Exchange);
            let was = std::fs::read(&path).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&back), String::from_utf8_lossy(&was));
        }
    }
}

/// What is written twice is the same.
#[test]
fn a_second_conversion_is_the_same() {
    for &format in Format::ALL {
        if format.shape() != crate::Shape::File {
            continue;
        }
        let first = bytes(&fixture("claude.jsonl"), format);
        assert!(!first.is_empty(), "{format}");
        assert!(first == bytes(&fixture("claude.jsonl"), format), "{format}");
    }
}

/// What carries everything gives back what it was made of.
#[test]
fn lossless_formats_read_back_as_they_were() {
    let home = tempfile::tempdir().unwrap();
    let (header, given) = read(&fixture("claude.jsonl"));
    for format in [Format::Normalized, Format::Html] {
        let (path, report) = convert(
            &fixture("claude.jsonl"),
            format,
            &home.path().join(format.as_str()),
        );
        assert_eq!(report.loss.carried, report.loss.events, "{format}");
        let (header_read, read) = read(&path);
        assert_eq!(header_read, header, "{format}");
        assert_eq!(read.events, given.events, "{format}");
    }
}

/// There and back by way of a format that carries everything: the same bytes.
#[test]
fn by_way_of_a_lossless_format_is_as_if_nothing_had_been() {
    let home = tempfile::tempdir().unwrap();
    for &from in Format::ALL {
        if !READ_BACK.contains(&from) {
            continue;
        }
        let place = home.path().join(from.as_str());
        let (direct, _) = convert(&fixture("claude.jsonl"), from, &place);
        // The bytes of pictures are in a page, and not in a document.
        let has_pictures = [
            Format::Html,
            Format::Atif,
            Format::ClaudeCode,
            Format::Codex,
        ];
        for by in [Format::Normalized, Format::Html] {
            if by == Format::Normalized && has_pictures.contains(&from) {
                continue;
            }
            let place = place.join(by.as_str());
            let (between, _) = convert(&fixture("claude.jsonl"), by, &place.join("a"));
            let (back, _) = convert(&between, from, &place.join("b"));
            if from.shape() == crate::Shape::File {
                let (direct, back) = (
                    std::fs::read(&direct).unwrap(),
                    std::fs::read(&back).unwrap(),
                );
                assert!(direct == back, "{from} by way of {by}");
            }
        }
    }
}

/// The formats that are read as well as written.
pub(super) const READ_BACK: &[Format] = &[
    Format::Normalized,
    Format::Exchange,
    Format::Agentlog,
    Format::Html,
    Format::Atif,
    Format::HuggingFace,
    Format::ClaudeCode,
    Format::Codex,
    Format::Flow,
];

/// The conversation itself survives every format that can be read: who said what, what was called with what,
/// and what came of it.
#[test]
fn every_format_that_is_read_keeps_the_conversation() {
    let home = tempfile::tempdir().unwrap();
    let (_, given) = read(&fixture("claude.jsonl"));
    let was = conversation(&given.events);
    // Codex has no place for what goes on inside of a sub-agent; that is counted.
    let mut own = given.events.clone();
    own.retain(|event| event.annotations.subagent_id.is_none());
    let own = conversation(&own);
    for &format in READ_BACK {
        let (path, _) = convert(
            &fixture("claude.jsonl"),
            format,
            &home.path().join(format.as_str()),
        );
        let (_, read) = read(&path);
        let is = conversation(&read.events);
        let expected = if format == Format::Codex { &own } else { &was };
        for said in expected {
            assert!(is.contains(said), "{format} lost {said:?}");
        }
    }
}

/// What was said and done, apart from how it was written down.
fn conversation(events: &[quipu_model::Event]) -> Vec<String> {
    use quipu_model::Body;
    let mut said = Vec::new();
    for event in events {
        let body = &event.body;
        match body {
            Body::UserMessage(_) => said.extend(body.texts().map(|text| format!("user {text}"))),
            Body::AssistantMessage(_) => {
                said.extend(body.texts().map(|text| format!("agent {text}")));
            }
            Body::ToolCall(call) => said.push(format!("call {} {}", call.call_id, call.name)),
            Body::ToolResult(result) => said.push(format!("result {}", result.call_id)),
            _ => {}
        }
    }
    said
}

/// A transcript of run `r` with these types and payloads.
fn transcript(home: &std::path::Path, events: &[(&str, String)]) -> std::path::PathBuf {
    let path = home.join("run.jsonl");
    let mut text = String::new();
    for (at, (event_type, payload)) in events.iter().enumerate() {
        use std::fmt::Write as _;
        let seq = at + 1;
        writeln!(
            text,
            r#"{{"seq":{seq},"run_id":"r","type":"{event_type}","path":"a","iteration":0,"timestamp":"2026-06-08T08:14:{:02}Z","payload":{payload}}}"#,
            seq % 60
        )
        .unwrap();
    }
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path
}

/// Blocks of every kind in a system message are in what was written, or what was written says that they are not.
#[test]
fn system_messages_of_every_kind_survive_or_are_counted() {
    use quipu_model::Body;
    let home = tempfile::tempdir().unwrap();
    let said = r#"{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"go on"}]}"#;
    let answered = r#"{"role":"assistant","blocks":[{"type":"text","fidelity":"agent_emitted","text":"done"}]}"#;
    for (kind, fields) in [
        ("text", r#""text":"Be brief.""#),
        ("thinking", r#""thinking":"Why?""#),
        (
            "tool_use",
            r#""tool_name":"Read","tool_id":"t1","tool_input":{"path":"a.rs"}"#,
        ),
        (
            "tool_result",
            r#""tool_id":"t1","tool_content":["fn main() {}"]"#,
        ),
        ("command", r#""command":"ls -l""#),
        ("stream", r#""chunk":"half""#),
    ] {
        let block = format!(r#"{{"type":"{kind}","fidelity":"router",{fields}}}"#);
        let path = transcript(
            home.path(),
            &[
                ("message.user", said.to_owned()),
                (
                    "message.system",
                    format!(r#"{{"role":"system","blocks":[{block}]}}"#),
                ),
                ("message.assistant", answered.to_owned()),
            ],
        );
        let (_, given) = read(&path);
        let Body::SystemMessage(blocks) = &given.events[1].body else {
            panic!("{kind}: {:?}", given.events[1])
        };
        let mut line = Vec::new();
        quipu_exchange::encode_log(&given.events[1], &mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(line.contains(&block), "{kind}: {blocks:?}");
        for &format in READ_BACK {
            let place = home.path().join(kind).join(format.as_str());
            let (written, report) = convert(&path, format, &place);
            let told = report
                .loss
                .dropped
                .keys()
                .chain(report.loss.wrapped.keys())
                .any(|what| what.contains("system") || what.contains(kind));
            let (_, back) = read(&written);
            // Who saw it is a field of its own, counted where a format has no place for it.
            let contents = |blocks: &[quipu_model::Block]| -> Vec<_> {
                blocks.iter().map(|block| block.content.clone()).collect()
            };
            let survives = back.events.iter().any(|event| match &event.body {
                Body::SystemMessage(read) => contents(read) == contents(blocks),
                _ => false,
            });
            assert!(
                survives || told,
                "{kind} by way of {format}: {}",
                report.loss
            );
            if matches!(format, Format::Normalized | Format::Html) {
                assert_eq!(back.events, given.events, "{kind} by way of {format}");
            }
        }
    }
}

/// What a reading leaves out of a transcript is in the report, and makes it incomplete.
#[test]
fn what_a_transcript_says_beyond_the_format_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let path = transcript(
        home.path(),
        &[
            (
                "message.assistant",
                r#"{"role":"assistant","mood":1,"blocks":[{"type":"text","fidelity":"","text":"hi","x":1}]}"#.to_owned(),
            ),
            (
                "message.critic",
                r#"{"role":"assistant","blocks":[{"type":"image","data":"…"}]}"#.to_owned(),
            ),
            (
                "message.user",
                r#"[{"type":"text","fidelity":"router","text":"bare"}]"#.to_owned(),
            ),
        ],
    );
    let (written, report) = convert(&path, Format::Exchange, &home.path().join("out"));
    let count = |of: &[&str]| of.iter().map(|name| ((*name).to_owned(), 1)).collect();
    assert_eq!(
        report.reading.unkept,
        count(&["payload.mood", "payload.blocks[].x"])
    );
    assert_eq!(
        report.reading.read_as,
        count(&[
            r#"fidelity "" as agent_emitted"#,
            r#"block "image" as text"#,
            r#"type "message.critic" as message.assistant"#
        ])
    );
    assert!(!report.is_complete());
    let (_, back) = read(&written);
    let said = conversation(&back.events);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.contains(&"user bare".to_owned()), "{said:?}");
}

/// Files that awf wrote, there and back: every value as it was, but for what docs/formats/exchange.md lists.
#[test]
fn transcripts_of_another_engine_come_back_with_the_same_values() {
    let fixtures =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/awf-run");
    let Ok(entries) = std::fs::read_dir(fixtures) else {
        skipped();
        return;
    };
    let values = |text: &[u8]| -> Vec<serde_json::Value> {
        let text = std::str::from_utf8(text).unwrap();
        text.lines()
            .zip(1..)
            .map(|(line, seq)| {
                let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
                // The moment, whatever the zone it was written in.
                let at = value["timestamp"].as_str().unwrap();
                let at: quipu_model::Timestamp = at.parse().unwrap();
                value["timestamp"] = at.to_string().into();
                assert!(value["seq"].is_u64());
                value["seq"] = seq.into();
                value
            })
            .collect()
    };
    let home = tempfile::tempdir().unwrap();
    let mut files = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "jsonl") {
            continue;
        }
        files += 1;
        let was = std::fs::read(&path).unwrap();
        let (written, report) = convert(&path, Format::Exchange, &home.path().join("direct"));
        assert!(
            report.loss.dropped.is_empty(),
            "{}: {:?}",
            path.display(),
            report.loss
        );
        assert!(report.reading.is_whole(), "{}", path.display());
        let back = std::fs::read(&written).unwrap();
        assert_eq!(values(&back), values(&was), "{}", path.display());
        let (between, _) = convert(&path, Format::Normalized, &home.path().join("between"));
        let back = bytes(&between, Format::Exchange);
        assert_eq!(values(&back), values(&was), "{}", path.display());
    }
    assert!(files >= 50, "{files}");
}

#[expect(
    clippy::print_stderr,
    reason = "a skipped test must not look like one that ran"
)]
fn skipped() {
    eprintln!("SKIPPED: the awf-run fixtures are not beside this repository");
}
