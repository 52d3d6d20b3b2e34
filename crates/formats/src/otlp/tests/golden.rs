//! Whole files, compared byte for byte.

use std::path::PathBuf;

use quipu_model::{
    Attachment, Block, Body, Content, Fidelity, Flags, Money, Note, NoteKind, Notes, Source,
    Status, Usage,
};

use super::{Session, assistant, block, call, of_call, result, user};
use crate::otlp::{Convention, OtlpOptions};

pub(crate) fn session() -> Session {
    let mut session = Session::new();
    session.header.title = Some("Fix the parser".to_owned());
    session.header.environment.cwd = Some("/code/parser".to_owned());
    session.header.environment.git_branch = Some("main".to_owned());
    let system = Body::SystemMessage(vec![block("You are careful.")]);
    session.add(system, Notes::default());
    let asked = Notes {
        native_id: Some("u-1".into()),
        attachments: vec![Attachment {
            mime: "image/png".to_owned(),
            bytes: 12,
            sha256: "ab".repeat(32),
        }],
        source: Some(Source {
            file: "/home/ada/log.jsonl".to_owned(),
            offset: 120,
            line: 2,
        }),
        ..Notes::default()
    };
    session.add(user("Why does it fail?\nSee \"a.rs\"."), asked);
    let thinking = Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::Thinking("Let me look.".to_owned()),
    };
    let answer = Notes {
        usage: Some(Usage {
            input: Some(12),
            cache_read: Some(3_000),
            cache_write: Some(40),
            cache_write_1h: Some(40),
            output: Some(90),
            reasoning: Some(30),
        }),
        cost: Money::parse("0.0123"),
        ..of_call("claude-opus-4-5", "msg_1")
    };
    session.add(assistant(vec![thinking, block("I will read it.")]), answer);
    session.add(
        call("t1", "Read", r#"{"path":"/code/parser/a.rs"}"#),
        of_call("claude-opus-4-5", "msg_1"),
    );
    session.add(
        call("t2", "Bash", r#"{"command":"cargo test"}"#),
        of_call("claude-opus-4-5", "msg_1"),
    );
    session.add(
        result("t1", "Read", Some(r#""fn main() {}\n""#), None),
        Notes::default(),
    );
    let late = Notes {
        status: Some(Status::Timeout),
        duration_ms: Some(120_000),
        ..Notes::default()
    };
    session.add(
        result("t2", "Bash", None, Some("timed out after 120 s")),
        late,
    );
    let compacted = Body::Note(Note {
        kind: NoteKind::Compaction,
        text: Some("What was said so far.".to_owned()),
        raw: None,
    });
    let undated = Notes {
        flags: Flags {
            undated: true,
            ..Flags::default()
        },
        ..Notes::default()
    };
    session.add(compacted, undated);
    let sub = Notes {
        subagent_id: Some("scout".into()),
        ..of_call("llama-3", "r9")
    };
    session.add(assistant(vec![block("Found it.")]), sub);
    session.add(
        assistant(vec![block("Line 3 is wrong.")]),
        of_call("claude-opus-4-5", "msg_2"),
    );
    session.user("Thanks!");
    session
}

fn check(name: &str, options: &OtlpOptions) {
    let (out, loss) = session().write(options);
    compare(&format!("otlp/tests/golden/{name}.jsonl"), &out);
    let loss = format!("{loss}\n");
    compare(
        &format!("otlp/tests/golden/{name}.loss.txt"),
        loss.as_bytes(),
    );
}

#[test]
fn protobuf() {
    let options = OtlpOptions {
        convention: Convention::OpenInference,
        content: true,
        ..OtlpOptions::default()
    };
    let (out, _) = session().write(&options);
    let made = crate::otlp::protobuf(&out).unwrap();
    // As hexadecimal, so that the file is one of text.
    let mut hex = Vec::new();
    for line in made.chunks(64) {
        quipu_model::hex::write(line, &mut hex);
        hex.push(b'\n');
    }
    compare("otlp/tests/golden/open-inference-content.pb.hex", &hex);
}

/// Compares what was made with what is kept in a file.
pub(crate) fn compare(file: &str, made: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(file);
    if std::env::var_os("QUIPU_BLESS").is_some() {
        let mut file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, made).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    let (made, kept) = (
        String::from_utf8_lossy(made),
        String::from_utf8_lossy(&kept),
    );
    assert_eq!(made, kept, "{}", path.display());
}

#[test]
fn gen_ai() {
    check("gen-ai", &OtlpOptions::default());
}

#[test]
fn gen_ai_with_content() {
    let options = OtlpOptions {
        content: true,
        ..OtlpOptions::default()
    };
    check("gen-ai-content", &options);
}

#[test]
fn open_inference() {
    let options = OtlpOptions {
        convention: Convention::OpenInference,
        ..OtlpOptions::default()
    };
    check("open-inference", &options);
}

#[test]
fn open_inference_with_content() {
    let options = OtlpOptions {
        convention: Convention::OpenInference,
        content: true,
        ..OtlpOptions::default()
    };
    check("open-inference-content", &options);
}
