//! What the tests of both writers share.

use std::io::Write;
use std::path::Path;

use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Event, Fidelity, Header, Json, Note, NoteKind,
    Notes, Origin, Place, RunId, Status, ToolCall, ToolResult, Usage,
};

use crate::loss::Loss;
use crate::projection::Projection;

type Blob = (Attachment, Vec<u8>);

/// Writes events.
pub(crate) fn write(
    events: &[Event],
    blobs: &[Blob],
    open: impl for<'w> FnOnce(Box<dyn Write + 'w>) -> Box<dyn Projection + 'w>,
) -> (Vec<u8>, Loss) {
    let mut bytes = Vec::new();
    let mut writer = open(Box::new(&mut bytes));
    for event in events {
        for attachment in &event.annotations.attachments {
            for (_, held) in blobs.iter().filter(|(it, _)| it == attachment) {
                writer.blob(attachment, held).unwrap();
            }
        }
        writer.event(event).unwrap();
    }
    let loss = writer.finish().unwrap();
    (bytes, loss)
}

/// The lines of a file.
pub(crate) fn lines(bytes: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(text.ends_with('\n'));
    let parse = |line: &str| value(line);
    text.lines().map(parse).collect()
}

/// A line as a value. What a tool was given may have numbers that have no place in one, and halves of characters.
fn value(line: &str) -> serde_json::Value {
    serde_json::from_str(
        &line
            .replace("1e400", "1")
            .replace("\\\\ud800", "?")
            .replace("\\ud800", "?"),
    )
    .unwrap_or_else(|why| panic!("{why}: {line}"))
}

/// Compares with a file beside the code, or writes it when `QUIPU_BLESS` is set.
pub(crate) fn golden(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
    if std::env::var_os("QUIPU_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(bytes).unwrap();
        return;
    }
    let expected = std::fs::read(&path).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(bytes), text(&expected), "{name}");
}

/// The log of a sub-agent, as read where it is not known that it is one.
pub(crate) fn of_subagent() -> (Header, Vec<Event>) {
    let (header, events, _) = sample();
    let text = |text: &str| {
        vec![Block {
            fidelity: Fidelity::AgentEmitted,
            content: Content::Text(text.to_owned()),
        }]
    };
    let user = |said: &str| Body::UserMessage(text(said));
    let agent = |said: &str| Body::AssistantMessage(text(said));
    let said = [
        (user("Look around."), "one"),
        (events[5].body.clone(), "one"),
        (agent("Below."), "two"),
        (events[6].body.clone(), "one"),
        (agent("Looked."), "one"),
    ];
    let all = said.into_iter().zip(events);
    let all = all.map(|((body, whose), event)| Event {
        body,
        annotations: Annotations::from(Notes {
            subagent_id: Some(whose.into()),
            ..Notes::default()
        }),
        ..event
    });
    (header, all.collect())
}

/// A small session with one of everything that is awkward.
pub(crate) fn sample() -> (Header, Vec<Event>, Vec<Blob>) {
    let run = RunId::new("run-1").unwrap();
    let mut header = Header::new(run.clone());
    header.title = Some("Mend the build".to_owned());
    header.origin = Some(Origin {
        agent: "opencode".to_owned(),
        agent_version: Some("1.4.0".to_owned()),
        adapter: Some("opencode".to_owned()),
        session_id: Some("ses_1".into()),
        path: Some("/home/ada/.local/share/opencode/opencode.db".to_owned()),
    });
    header.environment.cwd = Some("/code/mill".to_owned());
    header.environment.git_branch = Some("main".to_owned());
    header.environment.commit = Some("0123abc".to_owned());
    let picture = Attachment {
        mime: "image/png".to_owned(),
        bytes: 4,
        sha256: "ab".repeat(32),
    };
    let mut events: Vec<Event> = Vec::new();
    for (body, notes) in happened(&picture) {
        let seq = events.len() as u64 + 1;
        let second = 1_780_906_482 + i64::try_from(seq).unwrap();
        events.push(Event {
            seq,
            run_id: run.clone(),
            parent_run_id: None,
            timestamp: quipu_model::Timestamp::from_second(second).unwrap(),
            place: Place::run(),
            body,
            annotations: Annotations::from(notes),
        });
    }
    for event in &events {
        header.observe(event);
    }
    (header, events, vec![(picture, b"\x89PNG".to_vec())])
}

#[expect(clippy::too_many_lines, reason = "one line per event")]
fn happened(picture: &Attachment) -> Vec<(Body, Notes)> {
    let fidelity = Fidelity::AgentEmitted;
    let block = |content| vec![Block { fidelity, content }];
    let user = |text: &str| Body::UserMessage(block(Content::Text(text.to_owned())));
    let agent = |content| Body::AssistantMessage(block(content));
    let text = |text: &str| Content::Text(text.to_owned());
    let system = |text: &str| Body::SystemMessage(block(Content::Text(text.to_owned())));
    let call = |name: &str, id: &str, input: &str| {
        Body::ToolCall(ToolCall {
            name: name.to_owned(),
            call_id: id.into(),
            input: Some(Json::parse(input).unwrap()),
            fidelity,
        })
    };
    let result = |id: &str, output: Option<&str>, error: Option<&str>| {
        Body::ToolResult(ToolResult {
            name: String::new(),
            call_id: id.into(),
            input: None,
            output: output.map(|output| Json::parse(output).unwrap()),
            error: error.map(str::to_owned),
            fidelity,
        })
    };
    let note = |kind, text: Option<&str>| {
        Body::Note(Note {
            kind,
            text: text.map(str::to_owned),
            raw: None,
        })
    };
    let none = Notes::default;
    let model = || Notes {
        model: Some("gpt-x".to_owned()),
        ..Notes::default()
    };
    let called = |input, output| Notes {
        model_call: Some("call-1".into()),
        usage: Some(Usage {
            input: Some(input),
            cache_read: Some(100),
            output: Some(output),
            reasoning: Some(2),
            ..Usage::default()
        }),
        ..model()
    };
    let mut void = none();
    void.flags.superseded = true;
    let mut dangling = model();
    dangling.flags.dangling = true;
    let sub = Notes {
        subagent_id: Some("worker".into()),
        ..model()
    };
    let denied = Notes {
        status: Some(Status::Denied),
        ..none()
    };
    let shown = Notes {
        attachments: vec![picture.clone()],
        ..none()
    };
    vec![
        (system("You are in a sandbox."), none()),
        (user("Mend the build, \"please\"\n"), none()),
        (note(NoteKind::Attachment, Some("image/png")), shown),
        (
            agent(Content::Thinking("Let me see.".to_owned())),
            called(10, 5),
        ),
        (
            agent(text("I look.")),
            Notes {
                model_call: Some("call-1".into()),
                ..model()
            },
        ),
        (
            call("shell", "1", r#"{"command":["ls"]}"#),
            Notes {
                model_call: Some("call-1".into()),
                ..model()
            },
        ),
        (result("1", Some(r#""a.txt""#), None), none()),
        (call("mcp.docs/read", "1", r#""*** Begin Patch""#), model()),
        (result("1", None, Some("not allowed")), denied),
        (user("Not that."), void.clone()),
        (agent(text("Never mind.")), void),
        (agent(text("I am the worker.")), sub),
        (call("wait", "w 1", "{}"), dangling),
        (result("nowhere", Some(r#"{"code":7}"#), None), none()),
        (note(NoteKind::Usage, None), called(7, 3)),
        (user("Go on."), none()),
        (
            note(NoteKind::Compaction, Some("The build was looked at.")),
            none(),
        ),
        (agent(text("Done.")), model()),
        (note(NoteKind::Todo, Some("nothing left")), none()),
    ]
}
