//! The router: the one place through which every tool call goes that Quipu makes itself.
//!
//! Tools come from Quipu (files and shell, confined to the workflow's root), from MCP servers and from plugins. The
//! router finds the tool, checks that it may be called, calls it with a limit on its time, and hands a tool call and a
//! tool result to the [`ToolRecorder`] with the model's own call id. Unknown tools, denials and timeouts are recorded
//! like any other result.

use std::sync::Arc;

use quipu_model::ToolCallId;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A tool as models are told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name, unique in a router.
    pub name: String,
    /// What it does.
    pub description: String,
    /// A JSON Schema of its input.
    pub input_schema: Value,
}

/// A tool call.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The tool.
    pub name: String,
    /// The id that the model gave the call; a new one where it gave none.
    pub call_id: ToolCallId,
    /// The arguments.
    pub input: Value,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What the model is given.
    pub output: Value,
    /// Why it failed, as the model is told.
    pub error: Option<String>,
}

/// Takes tool calls and results on their way to the transcript.
pub trait ToolRecorder: Send + Sync {
    /// A call begins.
    fn call(&self, request: &ToolRequest);
    /// A call has ended.
    fn result(&self, request: &ToolRequest, outcome: &ToolOutcome, took: std::time::Duration);
    /// A call was refused, timed out or named an unknown tool: a harness event of this category and name.
    fn harness(&self, category: &str, name: &str, attributes: Value);
}

/// Something that can do what a tool does.
pub trait Toolbox: Send + Sync {
    /// The tools it has.
    fn tools(&self) -> Vec<ToolSpec>;
    /// Calls one of them.
    fn call<'a>(
        &'a self,
        request: &'a ToolRequest,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;
}

/// The router. Cheap to clone.
#[derive(Clone, Default)]
pub struct Router {
    boxes: Arc<Vec<Arc<dyn Toolbox>>>,
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router")
            .field("boxes", &self.boxes.len())
            .finish()
    }
}

impl Router {
    /// A router over these, in the order in which names are looked up.
    pub fn new(boxes: Vec<Arc<dyn Toolbox>>) -> Self {
        Self {
            boxes: Arc::new(boxes),
        }
    }
}
