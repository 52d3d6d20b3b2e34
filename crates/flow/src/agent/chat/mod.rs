//! `openai_compatible`: asking a server that speaks the Chat Completions protocol.
//!
//! There is no agent at the other end, only a model: Quipu calls the tools that it asks for, and sends what they give
//! back, until it answers.

use quipu_model::{
    Annotations, Block, Body, Content, Fidelity, Json, Severity, ToolCall, ToolCallId,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::listen::harness;
use super::program::failed;
use super::{Answer, AskError, AskFailure, AskRequest, Hearer, Sent, SessionHandle};
use crate::http::shown;
use crate::tools::{Router, ToolOutcome, ToolRecorder, ToolRequest};

mod assemble;
mod events;
mod exchange;
mod settings;

use assemble::{Call, Turn};
use exchange::{Came, Line};
use settings::Settings;

pub(super) use settings::OPTIONS;

/// Whether the options fit.
pub(super) fn check(request: &AskRequest) -> Result<(), String> {
    settings::check(request).map(|_| ())
}

/// Asks the model, and calls the tools it asks for, until it answers.
pub(super) async fn ask(
    request: &AskRequest,
    hearer: &mut dyn Hearer,
    tools: &dyn ToolRecorder,
    cancel: &CancellationToken,
) -> Result<Answer, AskError> {
    let settings = Settings::read(request).map_err(|why| failed(AskFailure::Request(why)))?;
    let now = tokio::time::Instant::now();
    let line = Line {
        settings: &settings,
        deadline: request.timeout.map(|most| (now + most, most)),
        cancel,
    };
    let mut asking = Asking {
        request,
        messages: messages(request),
        heard: Answer::default(),
        tools,
        cancel,
    };
    match asking.rounds(&line, hearer).await {
        Ok(()) => {
            asking.heard.session = asking.session();
            Ok(asking.heard)
        }
        Err(why) => Err(AskError {
            why,
            heard: Box::new(asking.heard),
        }),
    }
}

/// The conversation so far, with the question.
fn messages(request: &AskRequest) -> Vec<Value> {
    let before = request.session.as_ref();
    let mut messages = before
        .map(|session| session.messages.clone())
        .unwrap_or_default();
    if let Some(system) = &request.system_prompt {
        let system = json!({"role": "system", "content": system});
        match messages.first_mut() {
            Some(first) if first["role"] == "system" => *first = system,
            _ => messages.insert(0, system),
        }
    }
    messages.push(json!({"role": "user", "content": request.prompt}));
    messages
}

/// A question on its way to its answer.
struct Asking<'a> {
    request: &'a AskRequest,
    messages: Vec<Value>,
    heard: Answer,
    tools: &'a dyn ToolRecorder,
    cancel: &'a CancellationToken,
}

impl Asking<'_> {
    async fn rounds(&mut self, line: &Line<'_>, hearer: &mut dyn Hearer) -> Result<(), AskFailure> {
        let access = self.request.tools.as_ref();
        let router = access.map(|access| access.router.clone());
        for round in 0..=line.settings.rounds {
            let body = self.body(line.settings, router.as_ref());
            if round == 0 {
                hearer.sent(Sent::Request {
                    url: &shown(&line.settings.url),
                    body: &body,
                });
            }
            let Came { mut turn, failure } = line.exchange(&body, hearer).await;
            for (index, call) in turn.calls.iter_mut().enumerate() {
                if call.id.is_empty() {
                    call.id = format!("call_{}_{}", round + 1, index + 1);
                }
            }
            self.take_in(&turn, hearer);
            if let Some(why) = failure {
                broke_off(&turn, &why, hearer);
                return Err(why);
            }
            let Some(router) = router.as_ref().filter(|_| !turn.calls.is_empty()) else {
                dangling(&turn, "no_tools", hearer);
                self.messages.push(turn.message());
                return Ok(());
            };
            if round == line.settings.rounds {
                dangling(&turn, "no_result", hearer);
                let about = json!({"rounds": line.settings.rounds});
                let event = harness("budget", "max_rounds", Severity::Error, &about);
                hearer.event(event, Annotations::default());
                break;
            }
            self.messages.push(turn.message());
            for call in &turn.calls {
                let outcome = self.call(router, call).await;
                let message =
                    json!({"role": "tool", "tool_call_id": call.id, "content": told(&outcome)});
                self.messages.push(message);
                if self.cancel.is_cancelled() {
                    return Err(AskFailure::Cancelled);
                }
            }
        }
        Err(AskFailure::Agent(format!(
            "the model still calls tools after {} rounds; raise options.max_rounds",
            line.settings.rounds
        )))
    }

    /// The body of the next request.
    fn body(&self, settings: &Settings, router: Option<&Router>) -> Value {
        let mut body =
            json!({"model": settings.model, "messages": self.messages, "stream": settings.stream});
        if settings.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        for (key, value) in &settings.params {
            body[key] = value.clone();
        }
        let tools = router.map(Router::tools).unwrap_or_default();
        if !tools.is_empty() {
            let tool = |tool: crate::tools::ToolSpec| {
                json!({"type": "function", "function": {"name": tool.name,
                    "description": tool.description, "parameters": tool.input_schema}})
            };
            body["tools"] = tools.into_iter().map(tool).collect();
        }
        body
    }

    /// Takes in what the model said, and hands it on.
    fn take_in(&mut self, turn: &Turn, hearer: &mut dyn Hearer) {
        if let Some(usage) = &turn.usage {
            self.heard.usage.get_or_insert_default().add(usage);
        }
        if turn.model.is_some() {
            self.heard.model.clone_from(&turn.model);
        }
        if turn.has_begun() {
            self.heard.output.clone_from(&turn.text);
        }
        let said = [
            (!turn.thinking.is_empty()).then(|| Content::Thinking(turn.thinking.clone())),
            (!turn.text.is_empty()).then(|| Content::Text(turn.text.clone())),
        ];
        for content in said.into_iter().flatten() {
            let block = Block {
                fidelity: Fidelity::AgentEmitted,
                content,
            };
            let mut notes = exchange::about(turn);
            notes.stop_reason.clone_from(&turn.stop_reason);
            hearer.event(Body::AssistantMessage(vec![block]), notes);
        }
    }

    /// Calls a tool by the router, which records it.
    async fn call(&self, router: &Router, call: &Call) -> ToolOutcome {
        let request = |input| ToolRequest {
            name: call.name.clone(),
            call_id: ToolCallId::from(call.id.clone()),
            input,
        };
        match call.input() {
            Ok(input) => router.call(request(input), self.tools, self.cancel).await,
            Err(error) => {
                // No tool can be called with these; the model is told, and the record shows what it wrote.
                let request = request(json!(call.arguments));
                let outcome = ToolOutcome {
                    output: Value::Null,
                    error: Some(error),
                };
                self.tools.call(&request);
                self.tools
                    .result(&request, &outcome, std::time::Duration::ZERO);
                outcome
            }
        }
    }

    fn session(&self) -> Option<SessionHandle> {
        self.request.keep_session.then(|| SessionHandle {
            provider: self.request.provider.clone(),
            messages: self.messages.clone(),
            system_prompt: self.request.system_prompt.clone(),
            ..SessionHandle::default()
        })
    }
}

/// Says that an answer is not whole.
fn broke_off(turn: &Turn, why: &AskFailure, hearer: &mut dyn Hearer) {
    dangling(turn, "no_result", hearer);
    let name = match why {
        AskFailure::TimedOut(_) => "timed_out",
        AskFailure::Cancelled => "cancelled",
        _ if turn.has_begun() => "broken_off",
        _ => return,
    };
    let about = json!({"said_bytes": turn.length()});
    let event = harness("stream_interrupt", name, Severity::Error, &about);
    hearer.event(event, exchange::about(turn));
}

/// Calls that the model asked for and nobody makes.
fn dangling(turn: &Turn, name: &str, hearer: &mut dyn Hearer) {
    for call in &turn.calls {
        let input = call.input().unwrap_or_else(|_| json!(call.arguments));
        let body = Body::ToolCall(ToolCall {
            name: call.name.clone(),
            call_id: ToolCallId::from(call.id.clone()),
            input: Json::of(&input).ok(),
            fidelity: Fidelity::AgentEmitted,
        });
        let mut notes = exchange::about(turn);
        notes.flags.dangling = true;
        hearer.event(body, notes);
        let about = json!({"call_id": call.id, "tool": call.name});
        let event = harness("tool_lifecycle", name, Severity::Warning, &about);
        hearer.event(event, Annotations::default());
    }
}

/// What the model is told of a tool call.
fn told(outcome: &ToolOutcome) -> String {
    let output = match &outcome.output {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match &outcome.error {
        None => output,
        Some(error) if output.is_empty() || output == *error => format!("Error: {error}"),
        Some(error) => format!("Error: {error}\n{output}"),
    }
}
