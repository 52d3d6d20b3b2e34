//! Tools of MCP servers, over standard input and output or over HTTP.
//!
//! Both generations of the protocol are spoken: a server is first asked with the request that newer ones answer
//! (2026-07-28, no handshake); one that does not know it is greeted as before (2025-11-25). A server that ends, prints
//! something else than messages or a line without end gives error results that say so, with what it wrote to standard
//! error.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    Implementation, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Remark, ToolOutcome, ToolRequest, ToolSpec, Toolbox};
use crate::definition::McpServer;
use crate::process::ProcessError;

mod child;
mod web;

#[cfg(test)]
pub(crate) mod tests;

use child::Child;

/// How long a server has to begin and to say which tools it has.
const CONNECT: Duration = Duration::from_secs(30);

/// The most tools that a server may have.
const MAX_TOOLS: usize = 2000;

/// The longest name of a tool: what models take.
const MAX_NAME: usize = 64;

/// Why a server's tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The definition names neither a program nor an address, or both.
    #[error("MCP server {name}: give it a command or a url, not both")]
    Definition {
        /// Its name.
        name: String,
    },
    /// Its program cannot be started.
    #[error("MCP server {name}: {source}{}", reason(.source))]
    Start {
        /// Its name.
        name: String,
        /// Why.
        source: ProcessError,
    },
    /// It did not begin.
    #[error("MCP server {name}: {why}")]
    Connect {
        /// Its name.
        name: String,
        /// Why, with what it wrote to standard error.
        why: String,
    },
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

fn reason(error: &ProcessError) -> String {
    match error {
        ProcessError::Start { source, .. } => format!(": {source}"),
        ProcessError::NotFound { .. } | ProcessError::Directory { .. } => String::new(),
    }
}

/// Connects to a server and gives its tools, called `<server>_<tool>`. The server ends when the toolbox is dropped or
/// the token is cancelled.
///
/// # Errors
///
/// When it cannot be started or reached, or does not say in time which tools it has.
pub async fn connect(
    name: &str,
    server: &McpServer,
    cancel: &CancellationToken,
) -> Result<Arc<dyn Toolbox>, McpError> {
    let connection = Connection::open(name, server, cancel).await?;
    Ok(Arc::new(Tools::new(name, connection)))
}

/// A server that answers.
pub(crate) struct Connection {
    name: String,
    service: RunningService<RoleClient, ClientConfig>,
    tools: Vec<Tool>,
    child: Option<Child>,
    _end: DropGuard,
}

impl Connection {
    /// Connects to a server.
    pub(crate) async fn open(
        name: &str,
        server: &McpServer,
        cancel: &CancellationToken,
    ) -> Result<Self, McpError> {
        match (&server.url, server.command.is_empty()) {
            (None, false) => match Self::start(name, server, cancel, both()).await {
                // Some older servers end when they are asked something before they were greeted.
                Err(McpError::Connect { why: first, .. }) if !cancel.is_cancelled() => {
                    let again = ClientLifecycleMode::Initialize;
                    let again = Self::start(name, server, cancel, again).await;
                    again.map_err(|error| match error {
                        McpError::Connect { name, why } if why != first => McpError::Connect {
                            name,
                            why: format!("{first}; started again and greeted as older ones: {why}"),
                        },
                        error => error,
                    })
                }
                other => other,
            },
            (Some(url), true) => Self::reach(name, url, server, cancel).await,
            _ => Err(McpError::Definition {
                name: name.to_owned(),
            }),
        }
    }

    /// Starts a server's program.
    async fn start(
        name: &str,
        server: &McpServer,
        cancel: &CancellationToken,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, McpError> {
        let end = cancel.child_token();
        let guard = end.clone().drop_guard();
        let started = Child::start(&server.command, &server.env, &end);
        let (child, from, to) = started.map_err(|source| McpError::Start {
            name: name.to_owned(),
            source,
        })?;
        let service = serve_client_with_lifecycle_and_ct(us(), (from, to), lifecycle, end);
        let begun = begin(Box::pin(service), cancel).await;
        let (service, tools) = match begun {
            Ok(begun) => begun,
            Err(Failed::Cancelled) => return Err(McpError::Cancelled),
            Err(Failed::Why(why)) => {
                return Err(McpError::Connect {
                    name: name.to_owned(),
                    why: child.explain(&why).await,
                });
            }
        };
        Ok(Self {
            name: name.to_owned(),
            service,
            tools,
            child: Some(child),
            _end: guard,
        })
    }

    /// Reaches a server over HTTP.
    async fn reach(
        name: &str,
        url: &str,
        server: &McpServer,
        cancel: &CancellationToken,
    ) -> Result<Self, McpError> {
        let failed = |why: String| McpError::Connect {
            name: name.to_owned(),
            why,
        };
        let end = cancel.child_token();
        let guard = end.clone().drop_guard();
        let headers = web::headers(&server.headers).map_err(failed)?;
        let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
        let client = web::Web::new(end.clone());
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let service = serve_client_with_lifecycle_and_ct(us(), transport, both(), end);
        match begin(Box::pin(service), cancel).await {
            Ok((service, tools)) => Ok(Self {
                name: name.to_owned(),
                service,
                tools,
                child: None,
                _end: guard,
            }),
            Err(Failed::Cancelled) => Err(McpError::Cancelled),
            Err(Failed::Why(why)) => {
                let url = crate::http::shown(url);
                Err(failed(format!("{url}: {why}")))
            }
        }
    }

    /// Whether nothing can be asked any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_transport_closed()
    }

    /// The tools as the server names them.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Calls a tool by the server's own name of it. An error is one of the server or of the way to it, not of the
    /// tool.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, String> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        // A call that is dropped is cancelled at the server.
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err("cancelled".to_owned()),
            done = Box::pin(self.service.call_tool(params)) => done,
        };
        let why = match done {
            Ok(result) => return Ok(result),
            Err(ServiceError::McpError(error)) => {
                return Err(format!("{} ({})", error.message, error.code.0));
            }
            Err(error) => error.to_string(),
        };
        let why = match &self.child {
            Some(child) => child.explain(&why).await,
            None => why,
        };
        Err(format!("MCP server {}: {why}", self.name))
    }
}

/// The service and tools, where the server begins in time.
async fn begin(
    service: impl Future<
        Output = Result<RunningService<RoleClient, ClientConfig>, ClientInitializeError>,
    >,
    cancel: &CancellationToken,
) -> Result<(RunningService<RoleClient, ClientConfig>, Vec<Tool>), Failed> {
    let beginning = async {
        let service = service.await.map_err(|e| Failed::Why(said(&e)))?;
        let tools = Box::pin(service.list_all_tools()).await;
        let mut tools = tools.map_err(|e| Failed::Why(said(&e)))?;
        tools.truncate(MAX_TOOLS);
        Ok((service, tools))
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failed::Cancelled),
        done = tokio::time::timeout(CONNECT, beginning) => done.unwrap_or_else(|_| {
            Err(Failed::Why(format!("it did not answer within {CONNECT:?}")))
        }),
    }
}

enum Failed {
    Cancelled,
    Why(String),
}

/// An error with its causes, each once.
fn said(error: &dyn std::error::Error) -> String {
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !all.contains(&text) {
            all.push_str(": ");
            all.push_str(&text);
        }
        cause = next.source();
    }
    super::head(&all, 2000).to_owned()
}

/// Both generations of the protocol, the newer first.
fn both() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

/// What servers are told of Quipu.
fn us() -> ClientConfig {
    let us = Implementation::new("quipu", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us)
}

/// Tools of a server under names of Quipu's.
struct Tools {
    connection: Connection,
    /// The server's name of each tool, and how models are told of it.
    tools: Vec<(String, ToolSpec)>,
}

impl Tools {
    /// The tools of a server, called `<prefix>_<tool>`.
    fn new(prefix: &str, connection: Connection) -> Self {
        let mut taken = HashSet::new();
        let tools = connection.tools().iter();
        let tools = tools.map(|tool| (tool.name.to_string(), spec(prefix, tool, &mut taken)));
        let tools = tools.collect();
        Self { connection, tools }
    }
}

/// How models are told of a tool of a server.
pub(crate) fn spec(prefix: &str, tool: &Tool, taken: &mut HashSet<String>) -> ToolSpec {
    ToolSpec {
        name: unique(prefix, &tool.name, taken),
        description: tool.description.as_deref().unwrap_or("").to_owned(),
        input_schema: Value::Object(tool.input_schema.as_ref().clone()),
    }
}

/// A name that models take and no other tool has.
fn unique(prefix: &str, tool: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let mut name: String = format!("{prefix}_{tool}").chars().map(plain).collect();
    name.truncate(MAX_NAME);
    let mut result = name.clone();
    let mut n = 2;
    while !taken.insert(result.clone()) {
        let end = format!("_{n}");
        result = format!("{}{end}", &name[..name.len().min(MAX_NAME - end.len())]);
        n += 1;
    }
    result
}

impl Toolbox for Tools {
    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|it| it.1.clone()).collect()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolRequest,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>> {
        Box::pin(async move {
            let tool = self.tools.iter().find(|it| it.1.name == request.name);
            let Some((tool, _)) = tool else {
                return ToolOutcome::failed(format!("there is no tool {:?}", request.name));
            };
            let Some(arguments) = arguments(&request.input) else {
                return ToolOutcome::failed("the input is not an object");
            };
            match self.connection.call(tool, arguments, cancel).await {
                Ok(result) => outcome(result),
                Err(why) => ToolOutcome::failed(why),
            }
        })
    }

    fn remarks(&self) -> Vec<Remark> {
        let child = self.connection.child.as_ref();
        let noise = child.and_then(Child::noise);
        let noise = noise.map(|(lines, sample)| Remark {
            category: "tool_lifecycle",
            name: "server_noise",
            attributes: json!({
                "server": self.connection.name, "lines": lines, "first": sample,
            }),
        });
        noise.into_iter().collect()
    }
}

/// The input of a call as arguments.
pub(crate) fn arguments(input: &Value) -> Option<Map<String, Value>> {
    match input {
        Value::Object(arguments) => Some(arguments.clone()),
        Value::Null => Some(Map::new()),
        _ => None,
    }
}

/// What a model is given of a result: the text where it is only text, else all of it.
pub(crate) fn outcome(result: CallToolResult) -> ToolOutcome {
    let is_error = result.is_error.unwrap_or(false);
    let text = text_of(&result);
    let output = if let (Some(text), None) = (&text, &result.structured_content) {
        Value::String(text.clone())
    } else {
        let mut all = Map::new();
        let content = serde_json::to_value(&result.content).unwrap_or(Value::Null);
        all.insert("content".to_owned(), content);
        if let Some(structured) = result.structured_content {
            all.insert("structuredContent".to_owned(), structured);
        }
        Value::Object(all)
    };
    let why = || text.filter(|it| !it.is_empty());
    let error = is_error.then(|| why().unwrap_or("the tool failed".to_owned()));
    ToolOutcome { output, error }
}

/// The text of a result, where it has nothing else.
pub(crate) fn text_of(result: &CallToolResult) -> Option<String> {
    let parts: Option<Vec<&str>> = result
        .content
        .iter()
        .map(|part| match part {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    parts.map(|it| it.join("\n"))
}
