//! Whole documents, byte for byte. `QUIPU_BLESS=1` writes them anew.

use std::path::Path;

use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Environment, Event, Fidelity, Flags, Header,
    Json, Money, Note, NoteKind, Notes, Origin, Place, RunId, Source, Status, Step, ToolCall,
    ToolResult, Usage,
};

use super::round_trip::{read_all, rewrite, write};
use crate::normalized::{NormalizedOptions, verify};

fn event(header: &Header, seq: u64, body: Body, notes: Notes) -> Event {
    Event {
        seq,
        run_id: header.run_id.clone(),
        parent_run_id: None,
        timestamp: format!("2026-06-22T10:00:{seq:02}Z").parse().unwrap(),
        place: Place::run(),
        body,
        annotations: Annotations::from(notes),
    }
}

/// A session with something of everything.
#[expect(clippy::too_many_lines, reason = "one example of everything")]
fn session() -> (Header, Vec<Event>) {
    let fidelity = Fidelity::AgentEmitted;
    let text = |text: &str| vec![Block::text(fidelity, text)];
    let json = |text: &str| Some(Json::parse(text).unwrap());
    let mut header = Header::new(RunId::new("3f0e2a1c-run").unwrap());
    header.origin = Some(Origin {
        agent: "claude-code".to_owned(),
        agent_version: Some("2.1.0".to_owned()),
        adapter: Some("claude".to_owned()),
        session_id: Some("3f0e2a1c".into()),
        path: Some("/home/ada/.claude/projects/code/3f0e2a1c.jsonl".to_owned()),
    });
    header.environment = Environment {
        cwd: Some("/code/app".to_owned()),
        git_branch: Some("main".to_owned()),
        repository: Some("https://example.com/ada/app.git".to_owned()),
        commit: Some("a1b2c3d".to_owned()),
        os: Some("linux".to_owned()),
        shell: Some("zsh".to_owned()),
    };
    let model = |call: &str| Notes {
        model: Some("claude-opus-4".to_owned()),
        model_call: Some(call.into()),
        ..Notes::default()
    };
    let bodies = [
        (
            Body::Note(Note {
                kind: NoteKind::Title,
                text: Some("Mend the tests".to_owned()),
                raw: json(r#"{"type":"summary"}"#),
            }),
            Notes::default(),
        ),
        (
            Body::SystemMessage(text("You are careful.")),
            Notes {
                flags: Flags {
                    synthetic: true,
                    ..Flags::default()
                },
                ..Notes::default()
            },
        ),
        (
            Body::UserMessage(text("run the tests")),
            Notes {
                native_id: Some("u1".into()),
                source: Some(Source {
                    file: "3f0e2a1c.jsonl".to_owned(),
                    offset: 120,
                    line: 3,
                }),
                attachments: vec![Attachment {
                    mime: "image/png".to_owned(),
                    bytes: 67,
                    sha256: "ab".repeat(32),
                }],
                ..Notes::default()
            },
        ),
        (
            Body::AssistantMessage(vec![Block {
                fidelity,
                content: Content::Thinking("npm, then".to_owned()),
            }]),
            Notes {
                usage: Some(Usage {
                    input: Some(12),
                    cache_read: Some(900),
                    output: Some(40),
                    ..Usage::default()
                }),
                cost: Money::parse("0.001215"),
                ..model("msg_1")
            },
        ),
        (
            Body::ToolCall(ToolCall {
                name: "Bash".to_owned(),
                call_id: "call_88".into(),
                input: json(r#"{"command": "npm test", "n": 1.0}"#),
                fidelity,
            }),
            model("msg_1"),
        ),
        (
            Body::ToolResult(ToolResult {
                name: "Bash".to_owned(),
                call_id: "call_88".into(),
                input: None,
                output: json(r#""1 failed\n""#),
                error: Some("exit 1".to_owned()),
                fidelity,
            }),
            Notes {
                duration_ms: Some(4200),
                ..Notes::default()
            },
        ),
        (
            Body::ToolCall(ToolCall {
                name: "Task".to_owned(),
                call_id: "call_89".into(),
                input: None,
                fidelity: Fidelity::Router,
            }),
            Notes {
                child: RunId::new("child-1").ok(),
                subagent_id: Some("a7".into()),
                ..Notes::default()
            },
        ),
        (
            Body::ToolResult(ToolResult {
                name: "Task".to_owned(),
                call_id: "call_89".into(),
                input: None,
                output: json(r#"{"rows":[1,2]}"#),
                error: None,
                fidelity: Fidelity::Router,
            }),
            Notes {
                status: Some(Status::Denied),
                ..Notes::default()
            },
        ),
        (
            Body::AssistantMessage(vec![
                Block::text(fidelity, "One fails."),
                Block {
                    fidelity,
                    content: Content::ToolUse {
                        name: "Read".to_owned(),
                        id: "call_90".into(),
                        input: json("{}"),
                    },
                },
                Block {
                    fidelity,
                    content: Content::Command("git diff".to_owned()),
                },
            ]),
            Notes {
                flags: Flags {
                    superseded: true,
                    undated: true,
                    ..Flags::default()
                },
                ..Notes::default()
            },
        ),
        (
            Body::StepStarted(Step::new("build", "command")),
            Notes::default(),
        ),
        (
            Body::StepCompleted(Step::new("build", "command").succeeded(Some(Json::from(true)))),
            Notes::default(),
        ),
    ];
    let mut events: Vec<Event> = (1..)
        .zip(bodies)
        .map(|(seq, (body, notes))| event(&header, seq, body, notes))
        .collect();
    events[9].place = Place::flat("ship.build", 2);
    for event in &events {
        header.observe(event);
    }
    header.title = Some("Mend the tests".to_owned());
    (header, events)
}

/// The version of the program is in the document, and no reason to write it anew.
fn compare(name: &str, bytes: &[u8]) {
    let own = format!("\"adapterVersion\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let text = text.replace(&own, "\"adapterVersion\":\"VERSION\"");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/normalized/tests/golden")
        .join(name);
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let mut file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{}", path.display());
}

#[test]
fn a_session_with_everything() {
    let (header, events) = session();
    let (bytes, loss) = write(&header, &NormalizedOptions::default(), &events);
    compare("transcript-0.1.0.json", &bytes);
    assert_eq!(loss.dropped.len(), 1, "{loss}");
    let (read, back) = read_all(&bytes);
    assert_eq!(read.header, header);
    let back: Vec<_> = back.into_iter().map(|(event, _)| event).collect();
    assert_eq!(back, events);
    assert_eq!(rewrite(&bytes).0, bytes);
    let report = verify(&bytes[..]).unwrap();
    assert_eq!(report.findings, []);
}

/// What was written once reads for ever.
#[test]
fn the_golden_document_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/normalized/tests/golden/transcript-0.1.0.json");
    let (read, events) = read_all(&std::fs::read(path).unwrap());
    assert_eq!((read.events, events.len()), (11, 11));
    assert_eq!(read.beyond, 0);
    assert!(read.mismatches.is_empty());
}
