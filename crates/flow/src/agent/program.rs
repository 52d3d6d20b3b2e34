//! Asking an agent that is a program.

use std::path::Path;

use quipu_model::{Annotations, Severity};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::command::Invocation;
use super::listen::{Listening, harness};
use super::provider::Provider;
use super::{Answer, AskError, AskFailure, AskRequest, Hearer, Sent, SessionHandle};
use crate::process::{self, Ended, ProcessError, Program};

/// Starts the program and listens to it until it ends.
pub(super) async fn ask(
    invocation: Invocation,
    request: &AskRequest,
    hearer: &mut dyn Hearer,
    cancel: &CancellationToken,
) -> Result<Answer, AskError> {
    if !request.dir.is_dir() {
        let why = format!("the directory {} does not exist", request.dir.display());
        return Err(failed(AskFailure::Request(why)));
    }
    let name = invocation.argv.first().cloned().unwrap_or_default();
    hearer.sent(Sent::Program {
        argv: &invocation.argv,
        stdin: invocation.stdin.as_deref(),
    });
    let mut program = Program::new(&invocation.argv);
    program.dir = Some(request.dir.clone());
    for (key, value) in &invocation.env {
        program.env.insert(key.into(), value.into());
    }
    program.stdin = invocation.stdin.clone().map(String::into_bytes);
    program.timeout = request.timeout;
    if request.tools.is_some() && !invocation.offers_tools {
        let about = json!({"provider": request.provider});
        let event = harness("tool_lifecycle", "not_offered", Severity::Warning, &about);
        hearer.event(event, Annotations::default());
    }
    let mut listening = Listening::new(
        hearer,
        &invocation.stream,
        &invocation.prompt,
        request.session.as_ref(),
    );
    let ended = match process::run(&program, &mut listening, cancel).await {
        Ok(ended) => ended,
        Err(ProcessError::NotFound { program }) => {
            return Err(failed(AskFailure::Missing { program }));
        }
        Err(error @ (ProcessError::Start { .. } | ProcessError::Directory { .. })) => {
            return Err(failed(AskFailure::Request(with_cause(&error))));
        }
    };
    listening.finish();
    let interrupted = match ended {
        Ended::TimedOut => Some("timed_out"),
        Ended::Cancelled => Some("cancelled"),
        Ended::Signalled(_) => Some("killed"),
        Ended::Exited(0) => None,
        Ended::Exited(_) => Some("exited").filter(|_| !listening.account.is_done),
    };
    if let Some(interrupted) = interrupted {
        let about = json!({"exit_code": ended.code()});
        listening.harness("stream_interrupt", interrupted, Severity::Error, &about);
    }
    let failure = listening.account.failure();
    let stderr = listening.stderr_tail();
    let mut heard = listening.account.answer();
    heard.exit_code = Some(ended.code());
    heard.session = session(request, &heard, listening.account.session());
    let why = match (ended, failure) {
        (Ended::Exited(0), None) => return Ok(heard),
        (Ended::TimedOut, _) => AskFailure::TimedOut(request.timeout.unwrap_or_default()),
        (Ended::Cancelled, _) => AskFailure::Cancelled,
        (_, Some(why)) => AskFailure::Agent(why),
        (ended, None) => AskFailure::Exit {
            program: short(&name),
            code: ended.code(),
            stderr,
        },
    };
    Err(AskError {
        why,
        heard: Box::new(heard),
    })
}

/// The session as it can go on: by the agent's own id, or by what was said.
fn session(request: &AskRequest, heard: &Answer, id: Option<&str>) -> Option<SessionHandle> {
    let before = request.session.clone().unwrap_or_default();
    let mut session = SessionHandle {
        provider: request.provider.clone(),
        id: id.map(str::to_owned),
        messages: Vec::new(),
        system_prompt: request.system_prompt.clone().or(before.system_prompt),
        counted: before.counted,
    };
    if let Some(usage) = heard.usage {
        let mut sum = before
            .counted
            .map(quipu_model::Usage::from)
            .unwrap_or_default();
        sum.add(&usage);
        session.counted = Some(sum.into());
    }
    if session.id.is_some() && request.provider != Provider::Vibe.name() {
        return Some(session);
    }
    if !request.keep_session {
        return None;
    }
    // Vibe can go on with a session, but does not print which one it is.
    session.id = None;
    session.messages = before.messages;
    session
        .messages
        .push(json!({"role": "user", "content": request.prompt}));
    session
        .messages
        .push(json!({"role": "assistant", "content": heard.output}));
    Some(session)
}

/// The name of a program, without its directory.
fn short(program: &str) -> String {
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    name.unwrap_or(program).to_owned()
}

fn with_cause(error: &ProcessError) -> String {
    use std::error::Error as _;
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

pub(super) fn failed(why: AskFailure) -> AskError {
    AskError {
        why,
        heard: Box::default(),
    }
}
