//! Agents that are shell scripts, and what is heard of them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use quipu_model::{Annotations, Body, Content};
use tokio_util::sync::CancellationToken;

use super::{AgentOptions, Agents, Answer, AskError, AskRequest, Hearer, Sent};
use crate::tools::{ToolOutcome, ToolRecorder, ToolRequest};

mod argv;
mod bad_days;
mod chat;
mod check;
mod streams;
mod stubs;

/// Keeps what it hears.
#[derive(Default)]
pub(super) struct Ear {
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<String>,
    pub(super) bodies: Vec<serde_json::Value>,
    pub(super) events: Vec<(Body, Annotations)>,
    pub(super) text: String,
    pub(super) errors: Vec<u8>,
    pub(super) blobs: usize,
    pub(super) simulated: usize,
}

impl Hearer for Ear {
    fn sent(&mut self, sent: Sent<'_>) {
        match sent {
            Sent::Program { argv, stdin } => {
                self.argv = argv.to_vec();
                self.stdin = stdin.map(str::to_owned);
            }
            Sent::Request { body, .. } => self.bodies.push(body.clone()),
            Sent::Simulated => self.simulated += 1,
        }
    }
    fn event(&mut self, body: Body, annotations: Annotations) {
        self.events.push((body, annotations));
    }
    fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }
    fn stderr(&mut self, bytes: &[u8]) {
        self.errors.extend_from_slice(bytes);
    }
    fn blob(&mut self, _: &quipu_model::Attachment, _: &[u8]) {
        self.blobs += 1;
    }
}

impl Ear {
    /// The events, a short line each.
    pub(super) fn lines(&self) -> Vec<String> {
        self.events.iter().map(|(body, _)| line(body)).collect()
    }

    /// What belongs to the conversation, by block types.
    pub(super) fn blocks(&self) -> Vec<&'static str> {
        let of = |body: &Body| match body {
            Body::AssistantMessage(blocks) => blocks
                .iter()
                .filter_map(|block| block.block_type().map(quipu_model::BlockType::as_str))
                .collect(),
            Body::ToolCall(_) => vec!["tool_use"],
            Body::ToolResult(_) => vec!["tool_result"],
            _ => Vec::new(),
        };
        self.events.iter().flat_map(|(body, _)| of(body)).collect()
    }

    /// Whether a harness event of this category and name was heard.
    pub(super) fn met(&self, category: &str, name: &str) -> bool {
        self.events.iter().any(|(body, _)| {
            matches!(body, Body::Harness(event) if event.category == category && event.name == name)
        })
    }
}

fn line(body: &Body) -> String {
    match body {
        Body::AssistantMessage(blocks) => blocks
            .iter()
            .map(|block| match &block.content {
                Content::Text(text) => format!("text {text}"),
                Content::Thinking(text) => format!("thinking {text}"),
                other => format!("{other:?}"),
            })
            .collect::<Vec<_>>()
            .join(" | "),
        Body::UserMessage(_) => "user".to_owned(),
        Body::ToolCall(call) => format!("call {} {}", call.name, call.call_id),
        Body::ToolResult(result) => format!("result {} {}", result.name, result.call_id),
        Body::Note(note) => format!("note {}", note.kind),
        Body::Harness(event) => format!("harness {}.{}", event.category, event.name),
        Body::ModelCall(call) => format!("model {}", call.error.as_deref().unwrap_or("ok")),
        Body::Error(error) => format!("error {}", error.message),
        other => other.type_word().to_owned(),
    }
}

/// Keeps which tools were called.
#[derive(Default)]
pub(super) struct Calls(pub(super) Mutex<Vec<String>>);

impl ToolRecorder for Calls {
    fn call(&self, request: &ToolRequest) {
        let said = format!("call {} {}", request.name, request.call_id);
        self.0.lock().unwrap().push(said);
    }
    fn result(&self, request: &ToolRequest, outcome: &ToolOutcome, _: Duration) {
        let said = format!("result {} {}", request.name, outcome.output);
        self.0.lock().unwrap().push(said);
    }
    fn harness(&self, category: &str, name: &str, _: serde_json::Value) {
        self.0.lock().unwrap().push(format!("{category}.{name}"));
    }
}

/// A directory with a program in it that is a shell script.
pub(super) struct Fake {
    pub(super) dir: tempfile::TempDir,
    program: PathBuf,
}

impl Fake {
    pub(super) fn new(script: &str) -> Self {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        let mut file = std::fs::File::create(&program).unwrap();
        write!(file, "#!/bin/sh\n{script}\n").unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(0o700))
            .unwrap();
        Self { dir, program }
    }

    /// A program that prints a stream, whatever it is asked.
    pub(super) fn printing(stream: &[u8]) -> Self {
        use std::io::Write as _;
        let fake = Self::new("exec cat \"$(dirname \"$0\")/stream\"");
        let mut file = std::fs::File::create(fake.dir.path().join("stream")).unwrap();
        file.write_all(stream).unwrap();
        fake
    }

    pub(super) fn request(&self, provider: &str) -> AskRequest {
        let mut request = AskRequest::new(provider, "What is in a.txt?", self.dir.path());
        request.step = "look".to_owned();
        request
    }

    pub(super) fn agents(&self, provider: &str) -> Agents {
        let mut options = AgentOptions::default();
        options
            .programs
            .insert(provider.to_owned(), self.program.clone());
        Agents::new(options)
    }

    pub(super) async fn ask(&self, request: &AskRequest) -> (Result<Answer, AskError>, Ear) {
        ask(&self.agents(&request.provider), request).await
    }
}

pub(super) async fn ask(agents: &Agents, request: &AskRequest) -> (Result<Answer, AskError>, Ear) {
    let mut ear = Ear::default();
    let never = CancellationToken::new();
    let answer = agents
        .ask(request, &mut ear, &Calls::default(), &never)
        .await;
    (answer, ear)
}

/// A stream that the tests of quipu-agents have.
pub(super) fn fixture(path: &str) -> Vec<u8> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(here.join("../agents/fixtures").join(path)).unwrap()
}
