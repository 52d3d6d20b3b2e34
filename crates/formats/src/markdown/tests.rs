//! Goldens, and what holds for any session.

use proptest::prelude::*;
use quipu_model::{Event, Header};

use super::{MarkdownOptions, writer};
use crate::html::tests::{fixture, golden};
use crate::loss::Loss;
use crate::projection::Nowhere;

fn written(header: &Header, events: &[Event], options: &MarkdownOptions) -> (String, Loss) {
    let mut out = Vec::new();
    let mut writer = writer(header, options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    let loss = writer.finish().unwrap();
    (String::from_utf8(out).unwrap(), loss)
}

#[test]
fn a_session_is_the_same_as_ever() {
    let (header, events) = fixture::session();
    let (text, loss) = written(&header, &events, &MarkdownOptions::default());
    golden::check("src/markdown/golden/session.md", text.as_bytes());
    assert_eq!((loss.carried, loss.events), (47, 47));
    let lost: Vec<_> = loss.dropped.keys().map(AsRef::as_ref).collect();
    assert_eq!(lost, ["attachment bytes", "model_call"]);
    let without = MarkdownOptions {
        front_matter: false,
        ..MarkdownOptions::default()
    };
    let (plain, _) = written(&header, &events, &without);
    assert!(plain.starts_with("# Departures an hour off after the clock change\n"));
    assert!(plain.contains("\n- agent: claude-code\n"));
}

#[test]
fn front_matter_is_harmless_where_it_is_taken_for_text() {
    let title =
        "<img src=x onerror=alert(1)> [a](https://e.vil) ![b](https://e.vil/p) `c` &lt; \"d\" \\";
    let (mut header, _) = fixture::session();
    header.title = Some(title.to_owned());
    header.environment.git_branch = Some("<b>`[x]: y".to_owned());
    let (text, _) = written(&header, &[], &MarkdownOptions::default());
    let (_, rest) = text.split_once("---\n").unwrap();
    let (front, _) = rest.split_once("---\n").unwrap();
    assert!(
        !front.contains(['<', '>', '&', '[', ']', '!', '`']),
        "{front}"
    );
    // What is said is the same still.
    let value = |name: &str| -> String {
        let line = front.lines().find_map(|line| line.strip_prefix(name));
        serde_json::from_str(line.unwrap()).unwrap()
    };
    assert_eq!(value("title: "), title);
    assert_eq!(value("branch: "), "<b>`[x]: y");
}

/// The lines of a file that a viewer takes as Markdown of ours: neither quoted nor fenced.
fn ours(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(mark) if line == mark => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None if line.starts_with('>') => {}
            None => lines.push(line),
        }
    }
    assert!(fence.is_none(), "every fence is closed");
    lines
}

/// A text without the tags that we write.
fn without_ours(text: &str) -> String {
    let mut text = text.to_owned();
    for name in ["details", "summary", "sub", "pre", "code"] {
        for tag in [format!("<{name}>"), format!("</{name}>")] {
            text = text.replace(&tag, "");
        }
    }
    text
}

/// A session in which everything that is said, called and given back is this.
fn saying(mut header: Header, mut events: Vec<Event>, text: &str) -> (Header, Vec<Event>) {
    use quipu_model::{Body, Content, Json};
    header.title = Some(text.to_owned());
    header.environment.cwd = Some(text.to_owned());
    for event in &mut events {
        match &mut event.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                for block in blocks {
                    match &mut block.content {
                        Content::Text(said)
                        | Content::Thinking(said)
                        | Content::Command(said)
                        | Content::Stream(said) => text.clone_into(said),
                        Content::ToolUse { name, input, .. } => {
                            text.clone_into(name);
                            *input = Some(Json::string(text));
                        }
                        Content::ToolResult { content, .. } => *content = Some(Json::string(text)),
                        Content::Unknown(json) => *json = Json::string(text),
                    }
                }
            }
            Body::ToolCall(call) => {
                text.clone_into(&mut call.name);
                call.input = Some(Json::string(text));
            }
            Body::ToolResult(result) => {
                result.output = Some(Json::string(text));
                result.error = Some(text.to_owned());
            }
            Body::Note(note) => note.text = Some(text.to_owned()),
            Body::Error(failure) => text.clone_into(&mut failure.message),
            Body::Chunk(chunk) => text.clone_into(&mut chunk.text),
            Body::Harness(event) => {
                text.clone_into(&mut event.category);
                text.clone_into(&mut event.name);
                event.attributes = Some(Json::string(text));
            }
            Body::ModelCall(call) => {
                call.params = Some(Json::string(text));
                call.error = Some(text.to_owned());
            }
            _ => {}
        }
    }
    (header, events)
}

proptest! {
    #[test]
    fn nothing_that_is_said_leaves_its_block((header, events) in crate::arbitrary::session()) {
        let (text, loss) = written(&header, &events, &MarkdownOptions::default());
        prop_assert_eq!(loss.carried, loss.events);
        let ours = ours(&text);
        let folds = ours.iter().filter(|line| **line == "<details>").count();
        prop_assert_eq!(ours.iter().filter(|line| **line == "</details>").count(), folds);
        let heads = ours.iter().filter(|line| line.starts_with("## ") || line.starts_with("### ")).count();
        prop_assert_eq!(folds + heads, events.len());
        for line in ours {
            // Of tags there are ours alone.
            let is_code = line.contains("`` ");
            prop_assert!(is_code || !without_ours(line).contains('<'), "{}", line);
        }
    }

    /// Viewers do not agree on what is code, so no tag of a session is in the file, wherever it was said.
    #[test]
    fn of_tags_there_are_ours_alone_wherever_a_session_says_one(
        (header, events) in crate::arbitrary::session(),
        lead in "[\\\\`~>#\\-! \\n\\[\\]()&*_]{0,6}",
        tail in "[\\\\`~>#\\-! \\n\\[\\]()&*_]{0,6}",
        tag in prop::sample::select(vec!["<script>alert(1)</script>", "<img src=x onerror=y>", "</details>", "<!-- x", "<?php", "<a\nb>"]),
    ) {
        let hostile = format!("{lead}{tag}{tail}");
        let (header, events) = saying(header, events, &hostile);
        let (text, _) = written(&header, &events, &MarkdownOptions::default());
        let rest = without_ours(&text);
        prop_assert!(!super::prose::has_tags(&rest), "{}", text);
    }
}
