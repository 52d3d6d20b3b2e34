//! The stream as it is written, held to a file: nothing of its shape changes by accident.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quipu_exchange::lines::Limits;
use quipu_exchange::{Reader, parse_draft};
use quipu_model::{
    Attachment, Block, BlockType, Body, Chunk, Content, Draft, EventType, Failure, Fidelity, Flags,
    HarnessEvent, Json, ModelCall, Money, Note, NoteKind, Place, Severity, Source, Status, Step,
    Timestamp, ToolCall, ToolResult, Usage,
};

use super::{Site, events, run_id};
use crate::{Clock, Durability, RecorderOptions};

const GOLDEN: &str = include_str!("golden/every-event.jsonl");

/// A second later each time.
struct Ticking(std::sync::atomic::AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let n = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Timestamp::new(1_780_906_482 + n, 123_000_000).unwrap()
    }
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn blocks(fidelity: Fidelity) -> Vec<Block> {
    let contents = [
        Content::Text("Found 2 <issues> & a \u{1f9f6}.".to_owned()),
        Content::Thinking("First I should…".to_owned()),
        Content::ToolUse {
            name: "Read".to_owned(),
            id: "toolu_01".into(),
            input: Some(json(r#"{"path":"main.go"}"#)),
        },
        Content::ToolResult {
            id: "toolu_01".into(),
            content: Some(json(r#""package main\n""#)),
        },
        Content::Command("go test ./...".to_owned()),
        Content::Stream("Fou".to_owned()),
    ];
    contents
        .into_iter()
        .map(|content| Block { fidelity, content })
        .collect()
}

/// Every type of event and block, and every additive field.
fn every_draft() -> Vec<Draft> {
    let workflow = || Step::new("nightly", "workflow");
    let review = || Step::new("review", "agent");
    let call = || Step::new("deploy", "call_workflow");
    let at = |body| Draft::new(Place::step("review"), body);
    let mut annotated = at(Body::AssistantMessage(blocks(Fidelity::AgentEmitted)));
    let notes = &mut *annotated.annotations;
    notes.native_id = Some("msg_01".into());
    notes.parent_id = Some("msg_00".into());
    notes.subagent_id = Some("critic".into());
    notes.model = Some("claude-sonnet-4-5".to_owned());
    notes.usage = Some(Usage {
        input: Some(10),
        cache_read: Some(2_000),
        cache_write: Some(30),
        cache_write_1h: Some(4),
        output: Some(500),
        reasoning: Some(6),
    });
    notes.cost = Money::parse("0.0125");
    notes.model_call = Some("req_01".into());
    notes.duration_ms = Some(1_234);
    notes.status = Some(Status::Ok);
    notes.child = Some(run_id("sub-1"));
    notes.attachments = vec![Attachment {
        mime: "image/png".to_owned(),
        bytes: 3,
        sha256: "0".repeat(64),
    }];
    notes.source = Some(Source {
        file: "session.jsonl".to_owned(),
        offset: 120,
        line: 2,
    });
    notes.flags = Flags {
        opaque: true,
        synthetic: true,
        superseded: true,
        undated: true,
        dangling: true,
    };
    vec![
        Draft::new(Place::run(), Body::RunStarted(Some(workflow()))),
        Draft::new(Place::run(), Body::RunStarted(None)),
        at(Body::StepStarted(review())),
        at(Body::UserMessage(blocks(Fidelity::Router))),
        annotated,
        at(Body::ToolCall(ToolCall {
            name: "Read".to_owned(),
            call_id: "toolu_01".into(),
            input: Some(json(r#"{"path":"main.go","n":12345678901234567890}"#)),
            fidelity: Fidelity::Router,
        })),
        at(Body::ToolResult(ToolResult {
            name: "Read".to_owned(),
            call_id: "toolu_01".into(),
            input: Some(json(r#"{"path":"main.go"}"#)),
            output: Some(json(
                r#"{"Content":[{"Type":"text","Text":"package main\n"}]}"#,
            )),
            error: None,
            fidelity: Fidelity::Router,
        })),
        at(Body::ToolResult(ToolResult {
            name: "Bash".to_owned(),
            call_id: "toolu_02".into(),
            input: None,
            output: None,
            error: Some("denied".to_owned()),
            fidelity: Fidelity::AgentEmitted,
        })),
        at(Body::StepCompleted(review().succeeded(Some(json("false"))))),
        Draft::new(
            Place::flat("ship.deploy", 2),
            Body::CallStarted {
                child_run_id: run_id("child-1"),
                step: call(),
            },
        ),
        Draft::new(
            Place::flat("ship.deploy", 2),
            Body::CallCompleted {
                child_run_id: run_id("child-1"),
                end: call().failed("exit 1"),
            },
        ),
        Draft::new(
            Place::run(),
            Body::RunCompleted(Some(workflow().failed("deploy: exit 1"))),
        ),
        Draft::new(Place::run(), Body::RunCompleted(None)),
    ]
    .into_iter()
    .chain(other_kinds())
    .collect()
}

/// The kinds that lines of other types carry.
fn other_kinds() -> Vec<Draft> {
    let json = |text| Json::parse(text).unwrap();
    let blob = |mime: &str| Attachment {
        mime: mime.to_owned(),
        bytes: 512,
        sha256: "a".repeat(64),
    };
    let place = || {
        Place::step("review")
            .in_iteration(0)
            .in_iteration(3)
            .at_attempt(2)
    };
    let mut call = Draft::new(
        place(),
        Body::ModelCall(ModelCall {
            provider: Some("anthropic".to_owned()),
            params: Some(json(r#"{"temperature":0.2}"#)),
            request: Some(blob("application/json")),
            response: Some(blob("text/event-stream")),
            first_token_ms: Some(310),
            error: None,
        }),
    );
    call.annotations.model = Some("claude-sonnet-4-5".to_owned());
    let said = vec![Block::text(Fidelity::Router, "You review code.")];
    let bodies = [
        Body::SystemMessage(said),
        Body::Chunk(Chunk {
            index: 0,
            text: "Fou".to_owned(),
            delta: Some(json(r#"{"type":"text_delta","text":"Fou"}"#)),
            arrived_at: Some("2026-06-08T08:14:42.000000001Z".parse().unwrap()),
            is_last: true,
            fidelity: Fidelity::AgentEmitted,
        }),
        Body::Harness(HarnessEvent {
            category: "retry".to_owned(),
            name: "backoff".to_owned(),
            severity: Some(Severity::Warning),
            attributes: Some(json(r#"{"after_ms":500}"#)),
        }),
        Body::Blob(blob("image/png")),
        Body::Error(Failure {
            source: Some("llm".to_owned()),
            code: Some("overloaded".to_owned()),
            message: "Try again later.".to_owned(),
            retryable: Some(true),
        }),
        Body::Note(Note {
            kind: NoteKind::Title,
            text: Some("Review main.go".to_owned()),
            raw: Some(json(r#"{"type":"summary"}"#)),
        }),
    ];
    let rest = bodies.map(|body| Draft::new(place(), body));
    [call].into_iter().chain(rest).collect()
}

#[test]
fn the_stream_is_as_it_was() {
    let site = Site::new();
    let options = RecorderOptions {
        durability: Durability::None,
        clock: Arc::new(Ticking(0.into())),
        ..RecorderOptions::default()
    };
    let drafts = every_draft();
    let parent = site.storage.record(&run_id("parent-1"), options).unwrap();
    let recorder = parent.child(&run_id("golden-1")).unwrap();
    for draft in &drafts {
        recorder.record(draft).unwrap();
    }
    drop(recorder);
    let written = std::fs::read_to_string(site.path("golden-1")).unwrap();
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let place = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        std::fs::write(place.join("src/tests/golden/every-event.jsonl"), &written).unwrap();
    }
    assert_eq!(
        written, GOLDEN,
        "the canonical stream has another shape; if that is meant, QUIPU_BLESS=1 writes the file anew"
    );
    let read: Vec<Draft> = events(&site.path("golden-1"))
        .into_iter()
        .map(|event| Draft {
            place: event.place,
            body: event.body,
            annotations: event.annotations,
        })
        .collect();
    assert_eq!(read, drafts, "what was recorded reads back");
    let report = site
        .storage
        .verify(&site.path("golden-1"), Limits::default())
        .unwrap();
    assert!(!report.counts.keys().any(|rule| rule.name() == "checksum"));
}

#[test]
fn the_file_has_every_word_of_the_vocabulary() {
    let (mut types, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for draft in every_draft() {
        types.extend(draft.body.event_type());
        if let Body::UserMessage(blocks) | Body::AssistantMessage(blocks) = &draft.body {
            kinds.extend(blocks.iter().filter_map(Block::block_type));
        }
    }
    assert_eq!(types, EventType::ALL.iter().copied().collect());
    assert_eq!(kinds, BlockType::ALL.iter().copied().collect());
}

/// The fenced blocks of a language in the page about the format.
fn examples(language: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/formats/exchange.md");
    let mut inside = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(word) => inside = !inside && word == language,
            None if inside => lines.push(line.to_owned()),
            None => {}
        }
    }
    lines
}

#[test]
fn the_page_about_the_format_shows_events_as_they_are() {
    let page = include_str!("../../../../docs/formats/exchange.md");
    assert!(page.lines().count() >= 100, "the page is the documentation");
    let lines = examples("jsonl");
    let mut types = BTreeSet::new();
    for line in &lines {
        let mut reader = Reader::new(line.as_bytes());
        let decoded = reader.next_decoded().unwrap().unwrap();
        let decoded = decoded.unwrap_or_else(|bad| panic!("{}: {line}", bad.fault));
        // An example stands alone: its end is the end of the block.
        let odd = decoded
            .warnings
            .iter()
            .filter(|it| **it != quipu_exchange::Warning::Unterminated);
        assert_eq!(odd.count(), 0, "{line}");
        types.insert(
            decoded
                .event
                .body
                .event_type()
                .unwrap_or_else(|| panic!("{line}")),
        );
    }
    assert_eq!(types, EventType::ALL.iter().copied().collect());
    let drafts = examples("emit");
    assert!(drafts.len() >= 5);
    for draft in &drafts {
        parse_draft(draft, Limits::MAX_DEPTH).unwrap_or_else(|fault| panic!("{fault}: {draft}"));
    }
    for word in EventType::ALL.iter().map(|it| it.as_str()) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
    for word in BlockType::ALL.iter().map(|it| it.as_str()) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}
