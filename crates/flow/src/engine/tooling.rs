//! The tools of an agent step: what the router offers, how a CLI agent reaches it, and its calls on the record.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_model::{
    Annotations, Block, Body, Content, Fidelity, Json, Place, Severity, ToolCall, ToolCallId,
    ToolResult,
};
use serde_json::Value;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::Stop;
use super::chronicle::millis;
use super::command::chain;
use super::run::Run;
use super::step::Doing;
use crate::agent::ToolAccess;
use crate::definition::{Action, McpProxy, McpServer};
use crate::template::{self, Variables};
use crate::tools::builtin::{self, Builtins};
use crate::tools::{Router, ToolOutcome, ToolRecorder, ToolRequest, Toolbox};
use crate::tools::{mcp, serve};

/// Records the tool calls of a step.
///
/// A call may be seen twice: by the router, and in the stream of the agent. The router takes the id that the stream has
/// named for the same tool and the same input, so that both are one call.
pub(super) struct StepTools {
    run: Arc<Run>,
    place: Place,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    /// What the agent's stream named and the router has not seen.
    reported: Vec<Named>,
    /// The ids under which the router's calls are recorded.
    recorded: Vec<(ToolCallId, ToolCallId)>,
    /// The names of the tools that the router serves.
    served: Vec<String>,
    /// The first thing that went wrong while recording: a router has no way to say so.
    failed: Option<Stop>,
}

struct Named {
    name: String,
    input: Value,
    id: ToolCallId,
}

impl StepTools {
    pub(super) fn new(run: &Arc<Run>, place: &Place) -> Self {
        Self {
            run: Arc::clone(run),
            place: place.clone(),
            calls: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What went wrong while recording.
    pub(super) fn failed(&self) -> Option<Stop> {
        self.lock().failed.take()
    }

    fn keep(&self, recorded: Result<u64, Stop>) {
        if let Err(stop) = recorded {
            self.lock().failed.get_or_insert(stop);
        }
    }

    /// The names of the tools that the router serves to the agent.
    pub(super) fn serves(&self, names: Vec<String>) {
        self.lock().served = names;
    }

    fn is_served(&self, name: &str) -> bool {
        self.lock()
            .served
            .iter()
            .any(|served| is_tool(name, served))
    }

    /// What the agent's stream says of a call that the router makes is part of what was said: the call itself is the
    /// router's to record, and counts once.
    pub(super) fn as_said(&self, body: Body) -> Body {
        match body {
            Body::ToolCall(call)
                if call.fidelity == Fidelity::AgentEmitted && self.is_served(&call.name) =>
            {
                let content = Content::ToolUse {
                    name: call.name,
                    id: call.call_id,
                    input: call.input,
                };
                Body::AssistantMessage(vec![Block {
                    fidelity: Fidelity::AgentEmitted,
                    content,
                }])
            }
            Body::ToolResult(result)
                if result.fidelity == Fidelity::AgentEmitted && self.is_served(&result.name) =>
            {
                let content = Content::ToolResult {
                    id: result.call_id,
                    content: result.output,
                };
                Body::UserMessage(vec![Block {
                    fidelity: Fidelity::AgentEmitted,
                    content,
                }])
            }
            body => body,
        }
    }

    /// Records calls of served tools that the agent said it made and that the router has not seen.
    pub(super) fn record_unseen(&self) -> Result<(), Stop> {
        let unseen = std::mem::take(&mut self.lock().reported);
        for named in unseen
            .into_iter()
            .filter(|named| self.is_served(&named.name))
        {
            let call = ToolCall {
                name: named.name,
                call_id: named.id,
                input: Json::of(&named.input).ok(),
                fidelity: Fidelity::AgentEmitted,
            };
            let mut annotations = Annotations::default();
            annotations.flags.dangling = true;
            self.run
                .chronicle
                .record(&self.place, Body::ToolCall(call), annotations)?;
        }
        Ok(())
    }

    /// Takes what the agent's stream says of tool calls.
    pub(super) fn hear(&self, body: &Body) {
        match body {
            Body::AssistantMessage(blocks) => {
                for Block { content, .. } in blocks {
                    if let Content::ToolUse { name, id, input } = content {
                        self.report(name, id, input.as_ref());
                    }
                }
            }
            Body::ToolCall(call) if call.fidelity == Fidelity::AgentEmitted => {
                self.report(&call.name, &call.call_id, call.input.as_ref());
            }
            _ => {}
        }
    }

    fn report(&self, name: &str, id: &ToolCallId, input: Option<&Json>) {
        let mut calls = self.lock();
        if id.is_empty() || calls.reported.iter().any(|known| known.id == *id) {
            return;
        }
        calls.reported.push(Named {
            name: name.to_owned(),
            input: input
                .and_then(|input| serde_json::from_str(input.get()).ok())
                .unwrap_or_default(),
            id: id.clone(),
        });
    }

    /// The id under which a call of the router is recorded.
    fn id_of(&self, request: &ToolRequest) -> ToolCallId {
        let mut calls = self.lock();
        if let Some((_, id)) = calls
            .recorded
            .iter()
            .find(|(own, _)| *own == request.call_id)
        {
            return id.clone();
        }
        let named = calls
            .reported
            .iter()
            .position(|named| is_tool(&named.name, &request.name) && named.input == request.input);
        let id = match named {
            Some(at) => calls.reported.remove(at).id,
            None => request.call_id.clone(),
        };
        calls.recorded.push((request.call_id.clone(), id.clone()));
        id
    }
}

/// The name that agents know the server of these tools by.
const SERVER: &str = "quipu";

/// Whether an agent's name for a tool is that of one of ours: agents put the server's name before it.
fn is_tool(named: &str, ours: &str) -> bool {
    let before = named.strip_suffix(ours);
    before.is_some_and(|before| {
        let server = before.trim_end_matches(['_', '.', '/', '-', ':']);
        before.is_empty() || server == SERVER || server.strip_prefix("mcp__") == Some(SERVER)
    })
}

impl ToolRecorder for StepTools {
    fn call(&self, request: &ToolRequest) {
        let call = ToolCall {
            name: request.name.clone(),
            call_id: self.id_of(request),
            input: Json::of(&request.input).ok(),
            fidelity: Fidelity::Router,
        };
        let body = Body::ToolCall(call);
        self.keep(
            self.run
                .chronicle
                .record(&self.place, body, Annotations::default()),
        );
    }

    fn result(&self, request: &ToolRequest, outcome: &ToolOutcome, took: Duration) {
        let result = ToolResult {
            name: request.name.clone(),
            call_id: self.id_of(request),
            input: Json::of(&request.input).ok(),
            output: Json::of(&outcome.output).ok(),
            error: outcome.error.clone(),
            fidelity: Fidelity::Router,
        };
        self.lock()
            .recorded
            .retain(|(own, _)| *own != request.call_id);
        let mut annotations = Annotations::default();
        annotations.duration_ms = Some(millis(took));
        let body = Body::ToolResult(result);
        self.keep(self.run.chronicle.record(&self.place, body, annotations));
    }

    fn harness(&self, category: &str, name: &str, attributes: Value) {
        let chronicle = &self.run.chronicle;
        self.keep(chronicle.harness(&self.place, category, name, Severity::Warning, &attributes));
    }
}

/// The tools of a step while it runs. When it is dropped, servers of it end.
pub(super) struct Offer {
    pub(super) access: ToolAccess,
    /// The socket's directory.
    _directory: tempfile::TempDir,
    _servers: tokio_util::sync::DropGuard,
}

impl Doing<'_> {
    /// Opens the tools that the step gives its agent; `None` when it gives none.
    pub(super) async fn offer(
        &self,
        values: &dyn Variables2,
        tools: &Arc<StepTools>,
    ) -> Result<Option<Offer>, String> {
        let Action::Agent(agent) = &self.step.action else {
            return Ok(None);
        };
        let Some(proxy) = agent.mcp_proxy.as_ref().filter(|proxy| proxy.enable) else {
            return Ok(None);
        };
        let cancel = self.cancel.child_token();
        let guard = cancel.clone().drop_guard();
        let router = Router::new(Box::pin(self.boxes(values, proxy, &cancel)).await?);
        let directory = tempfile::Builder::new()
            .prefix("quipu-tools-")
            .tempdir()
            .map_err(|error| format!("cannot make a directory for the tools: {error}"))?;
        let socket = directory.path().join("tools.sock");
        let mut server = Vec::new();
        if let Some(connector) = &self.run.options.connector {
            let listener = UnixListener::bind(&socket)
                .map_err(|error| format!("cannot open {}: {error}", socket.display()))?;
            tokio::spawn(answer(listener, router.clone(), Arc::clone(tools), cancel));
            server.clone_from(connector);
            server.push(socket.display().to_string());
        }
        Ok(Some(Offer {
            access: ToolAccess {
                router,
                server,
                intercept_builtins: proxy.intercept_builtins,
            },
            _directory: directory,
            _servers: guard,
        }))
    }

    async fn boxes(
        &self,
        values: &dyn Variables2,
        proxy: &McpProxy,
        cancel: &CancellationToken,
    ) -> Result<Vec<Arc<dyn Toolbox>>, String> {
        let mut boxes: Vec<Arc<dyn Toolbox>> = Vec::new();
        if proxy.intercept_builtins {
            let builtins = Builtins::new(&self.run.options.root, builtin::Options::default())
                .map_err(|error| chain(&error))?;
            boxes.push(Arc::new(builtins));
        }
        for (plugin, expose) in &proxy.plugin_tools {
            let toolbox = self.run.plugins.toolbox(plugin, expose);
            boxes.push(toolbox.map_err(|error| error.to_string())?);
        }
        for name in &proxy.servers {
            let Some(server) = self.run.workflow.mcp_servers.get(name) else {
                return Err(format!("{name} is not one of the workflow's mcp_servers"));
            };
            let server = filled(server, values).map_err(|error| error.to_string())?;
            let toolbox = Box::pin(mcp::connect(name, &server, cancel)).await;
            boxes.push(toolbox.map_err(|error| error.to_string())?);
        }
        Ok(boxes)
    }
}

/// Values that can be handed to a task.
pub(super) trait Variables2: Variables + Sync {}
impl<T: Variables + Sync> Variables2 for T {}

/// A server with its texts filled in.
fn filled(
    server: &McpServer,
    values: &dyn Variables2,
) -> Result<McpServer, template::TemplateError> {
    let fill =
        |text: &String| template::render(&crate::definition::Text::new(text.clone()), values);
    Ok(McpServer {
        command: server.command.iter().map(fill).collect::<Result<_, _>>()?,
        env: server
            .env
            .iter()
            .map(|(name, value)| Ok((name.clone(), fill(value)?)))
            .collect::<Result<_, _>>()?,
        url: server.url.as_ref().map(fill).transpose()?,
        headers: server
            .headers
            .iter()
            .map(|(name, value)| Ok((name.clone(), fill(value)?)))
            .collect::<Result<_, _>>()?,
    })
}

/// Serves the router to every agent that connects.
async fn answer(
    listener: UnixListener,
    router: Router,
    tools: Arc<StepTools>,
    cancel: CancellationToken,
) {
    loop {
        let connection = tokio::select! {
            () = cancel.cancelled() => return,
            connection = listener.accept() => connection,
        };
        let Ok((stream, _)) = connection else {
            return;
        };
        let (router, tools, cancel) = (router.clone(), Arc::clone(&tools), cancel.clone());
        tokio::spawn(async move {
            let (input, output) = stream.into_split();
            // An agent that goes away is not an error.
            serve::serve(router, tools, input, output, &cancel)
                .await
                .ok();
        });
    }
}

impl Run {
    /// A file that a step names. `sort` is the directory that such files are in: `prompts`, `scripts`.
    pub(super) fn file(&self, sort: &str, name: &str) -> PathBuf {
        let workflow = &self.workflow;
        let places = &self.options.places;
        places.file(
            sort,
            Path::new(name),
            &workflow.file,
            workflow.pack.as_deref(),
        )
    }
}
