//! There and back again.

use std::io::Write;

use proptest::prelude::*;
use quipu_formats::arbitrary;
use quipu_formats::projection::Nowhere;

use super::{bytes, convert, fixture, read};
use crate::{Format, Options, writer};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A transcript that goes through a format that carries everything comes back byte for byte.
    #[test]
    fn any_transcript_survives_a_lossless_format((header, events) in arbitrary::session()) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.jsonl");
        let out: Box<dyn Write> = Box::new(std::fs::File::create(&path).unwrap());
        let mut to = writer(Format::Exchange, &header, &Options::default(), out, Box::new(Nowhere)).unwrap();
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
fn conversation(events: &[quipu_model::Event<quipu_model::LogBody>]) -> Vec<String> {
    use quipu_model::{Body, LogBody};
    let mut said = Vec::new();
    for event in events {
        let LogBody::Exchange(body) = &event.body else {
            continue;
        };
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
