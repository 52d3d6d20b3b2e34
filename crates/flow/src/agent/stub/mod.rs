//! Replies that nobody gives: for trying a workflow without agents, and for tests.
//!
//! Every reply is marked: [`Answer::simulated`] is set, and its events have the flag `synthetic`.

use std::sync::Arc;
use std::time::Duration;

use quipu_model::{
    Annotations, Block, Body, Content, Fidelity, Json, Money, ToolCall, ToolCallId, ToolResult,
    Usage,
};
use tokio_util::sync::CancellationToken;

use super::program::failed;
use super::provider::Provider;
use super::{Answer, AskError, AskFailure, AskRequest, Hearer, Sent, SessionHandle};
use crate::tools::{ToolRecorder, ToolRequest};

mod fit;
mod script;

pub use script::{Reply, ReplyTool, Script, ScriptError};

/// Where replies come from, when nobody is asked.
#[derive(Debug, Clone)]
pub enum Stub {
    /// The same reply to every question, marked `[STUB]`; a value that fits, where a schema is asked for.
    Fixed,
    /// Replies from a file.
    Script(Arc<Script>),
    /// Replies from a transcript.
    Transcript(Arc<Script>),
}

/// Replies to a question.
pub(super) async fn ask(
    stub: &Stub,
    provider: Provider,
    request: &AskRequest,
    hearer: &mut dyn Hearer,
    tools: &dyn ToolRecorder,
    cancel: &CancellationToken,
) -> Result<Answer, AskError> {
    let refused = |why| failed(AskFailure::Request(why));
    let reply = match stub {
        Stub::Fixed => fixed(provider, request).map_err(refused)?,
        Stub::Script(script) | Stub::Transcript(script) => {
            script.next(&request.step).map_err(refused)?
        }
    };
    give(&reply, provider, request, hearer, tools, cancel).await
}

/// The reply that is always the same.
fn fixed(provider: Provider, request: &AskRequest) -> Result<Reply, String> {
    let text = match &request.schema {
        None => format!(
            "[STUB] Completed step {}. In production, this would contain the actual {} response.",
            request.step,
            provider.title()
        ),
        Some(schema) => fit::value(schema)?.to_string(),
    };
    Ok(Reply {
        text,
        ..Reply::default()
    })
}

async fn give(
    reply: &Reply,
    provider: Provider,
    request: &AskRequest,
    hearer: &mut dyn Hearer,
    tools: &dyn ToolRecorder,
    cancel: &CancellationToken,
) -> Result<Answer, AskError> {
    hearer.sent(Sent::Simulated);
    let model = reply.model.clone();
    let model = model.unwrap_or_else(|| format!("{}-stub", provider.engine()));
    let mut heard = Answer {
        model: Some(model.clone()),
        usage: Some(reply.usage.unwrap_or(NO_TOKENS)),
        // What tokens cost that a script names is for whoever asks to work out.
        cost: reply.cost.or(reply.usage.is_none().then_some(Money::ZERO)),
        session: Some(session(request)),
        simulated: true,
        ..Answer::default()
    };
    let delay = Duration::from_millis(reply.delay_ms);
    let stopped = wait(delay, request.timeout, cancel).await;
    let mut marks = Annotations::default();
    marks.flags.synthetic = true;
    marks.model = Some(model);
    let block = |content| {
        vec![Block {
            fidelity: Fidelity::AgentEmitted,
            content,
        }]
    };
    if let Some(thinking) = &reply.thinking {
        let body = Body::AssistantMessage(block(Content::Thinking(thinking.clone())));
        hearer.event(body, marks.clone());
    }
    if stopped.is_none() {
        for (index, tool) in reply.tools.iter().enumerate() {
            call(tool, index, request, hearer, tools, &marks, cancel).await;
        }
    }
    if let Some(why) = stopped {
        return Err(AskError {
            why,
            heard: Box::new(heard),
        });
    }
    marks.usage = heard.usage;
    marks.cost = heard.cost;
    if !reply.text.is_empty() || reply.fail.is_none() {
        let body = Body::AssistantMessage(block(Content::Text(reply.text.clone())));
        hearer.event(body, marks);
        hearer.text(&reply.text);
    }
    heard.output.clone_from(&reply.text);
    match &reply.fail {
        None => Ok(heard),
        Some(why) => {
            heard.exit_code = reply.exit_code;
            let why = match reply.exit_code {
                None => AskFailure::Agent(why.clone()),
                Some(code) => AskFailure::Exit {
                    program: provider.program().unwrap_or(provider.name()).to_owned(),
                    code,
                    stderr: why.clone(),
                },
            };
            Err(AskError {
                why,
                heard: Box::new(heard),
            })
        }
    }
}

const NO_TOKENS: Usage = Usage {
    input: Some(0),
    cache_read: Some(0),
    cache_write: Some(0),
    cache_write_1h: None,
    output: Some(0),
    reasoning: None,
};

/// Waits as long as the reply takes; why it does not come, where it does not.
async fn wait(
    delay: Duration,
    timeout: Option<Duration>,
    cancel: &CancellationToken,
) -> Option<AskFailure> {
    if delay.is_zero() {
        return None;
    }
    let until = timeout.filter(|most| *most < delay);
    tokio::select! {
        () = cancel.cancelled() => Some(AskFailure::Cancelled),
        () = tokio::time::sleep(until.unwrap_or(delay)) => until.map(AskFailure::TimedOut),
    }
}

/// A session that goes on: the id says that nobody is at the other end.
fn session(request: &AskRequest) -> SessionHandle {
    let before = request.session.clone();
    before.unwrap_or_else(|| SessionHandle {
        provider: request.provider.clone(),
        id: Some(format!("stub-{}", request.step)),
        ..SessionHandle::default()
    })
}

/// Calls a tool: by the router where the reply has no result of it and a router is there, else as the reply says.
async fn call(
    tool: &ReplyTool,
    index: usize,
    request: &AskRequest,
    hearer: &mut dyn Hearer,
    tools: &dyn ToolRecorder,
    marks: &Annotations,
    cancel: &CancellationToken,
) {
    let id = tool.id.clone();
    let id = id.unwrap_or_else(|| format!("stub-{}-{}", request.step, index + 1));
    let call_id = ToolCallId::from(id);
    if !tool.has_result()
        && let Some(access) = &request.tools
    {
        let request = ToolRequest {
            name: tool.name.clone(),
            call_id,
            input: tool.input.clone(),
        };
        access.router.call(request, tools, cancel).await;
        return;
    }
    let body = Body::ToolCall(ToolCall {
        name: tool.name.clone(),
        call_id: call_id.clone(),
        input: Json::of(&tool.input).ok(),
        fidelity: Fidelity::AgentEmitted,
    });
    hearer.event(body, marks.clone());
    if tool.has_result() {
        let body = Body::ToolResult(ToolResult {
            name: tool.name.clone(),
            call_id,
            input: None,
            output: tool
                .output
                .as_ref()
                .and_then(|output| Json::of(output).ok()),
            error: tool.error.clone(),
            fidelity: Fidelity::AgentEmitted,
        });
        hearer.event(body, marks.clone());
    }
}
