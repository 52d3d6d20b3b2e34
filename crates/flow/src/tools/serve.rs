//! The router as an MCP server, for agents that are programs of their own.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use quipu_model::ToolCallId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, RequestId, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, serve_server_with_ct};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{Router, ToolOutcome, ToolRecorder, ToolRequest, ToolSpec};

/// Why serving ended before the agent did.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve tools: {0}")]
pub struct ServeError(String);

/// Serves a router's tools until the agent closes its side or the token is cancelled. Both generations of the protocol
/// are spoken.
///
/// # Errors
///
/// When the agent does not speak MCP.
pub async fn serve(
    router: Router,
    recorder: Arc<dyn ToolRecorder>,
    stdin: impl AsyncRead + Send + Unpin + 'static,
    stdout: impl AsyncWrite + Send + Unpin + 'static,
    cancel: &CancellationToken,
) -> Result<(), ServeError> {
    // Ids of requests begin anew in every server; a run may have several.
    let mark = RandomState::new().hash_one(std::process::id());
    let server = Server {
        router,
        recorder,
        mark: format!("{:08x}", mark >> 32),
        cancel: cancel.clone(),
    };
    let running = serve_server_with_ct(server, (stdin, stdout), cancel.child_token()).await;
    let running = match running {
        Ok(running) => running,
        // An agent that ends before it has asked anything is not an error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(_) if cancel.is_cancelled() => return Ok(()),
        Err(error) => return Err(ServeError(error.to_string())),
    };
    running
        .waiting()
        .await
        .map_err(|error| ServeError(error.to_string()))?;
    Ok(())
}

struct Server {
    router: Router,
    recorder: Arc<dyn ToolRecorder>,
    mark: String,
    cancel: CancellationToken,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let us = Implementation::new("quipu", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(us)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.router.tools().into_iter().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = ToolRequest {
            name: params.name.into_owned(),
            call_id: self.call_id(&context),
            input: Value::Object(params.arguments.unwrap_or_default()),
        };
        let either = self.cancel.child_token();
        let calling = self.router.call(request, self.recorder.as_ref(), &either);
        tokio::pin!(calling);
        let outcome = tokio::select! {
            outcome = &mut calling => outcome,
            // The agent does not want the result any more; the router still records one.
            () = context.ct.cancelled() => {
                either.cancel();
                calling.await
            }
        };
        Ok(result(outcome).into())
    }
}

impl Server {
    /// The model's id of a call where the agent says it beside the call, else one of ours.
    fn call_id(&self, context: &RequestContext<RoleServer>) -> ToolCallId {
        let said = context.meta.0.0.iter().find_map(|(key, value)| {
            let key = key.rsplit('/').next().unwrap_or(key);
            let known = ["toolUseId", "tool_use_id", "toolCallId", "tool_call_id"];
            let value = value.as_str().filter(|it| !it.is_empty())?;
            known.contains(&key).then(|| value.to_owned())
        });
        let ours = || {
            let id = match &context.id {
                RequestId::Number(number) => number.to_string(),
                RequestId::String(text) => text.to_string(),
            };
            format!("mcp-{}-{id}", self.mark)
        };
        said.unwrap_or_else(ours).into()
    }
}

fn tool(spec: ToolSpec) -> Tool {
    let schema = match spec.input_schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    Tool::new(spec.name, spec.description, schema)
}

fn result(outcome: ToolOutcome) -> CallToolResult {
    let mut text = match &outcome.output {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let Some(error) = outcome.error else {
        return CallToolResult::success(vec![ContentBlock::text(text)]);
    };
    if !text.contains(&error) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&error);
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}
