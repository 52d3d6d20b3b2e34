//! The router: the one place through which every tool call goes that Quipu makes itself.
//!
//! Tools come from Quipu (files and shell, confined to the workflow's root), from MCP servers and from plugins. The
//! router finds the tool, checks that it may be called, calls it with a limit on its time, and hands a tool call and a
//! tool result to the [`ToolRecorder`] with the model's own call id. Unknown tools, denials and timeouts are recorded
//! like any other result.

use quipu_model::ToolCallId;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub mod builtin;
pub mod mcp;
mod router;
pub mod serve;

#[cfg(test)]
pub(crate) mod tests;

pub use router::{Router, Rules};
pub(crate) use router::{head, misfits};

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

impl ToolOutcome {
    /// A call that succeeded.
    pub fn done(output: impl Into<Value>) -> Self {
        Self {
            output: output.into(),
            error: None,
        }
    }

    /// A call that failed and gave nothing.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            output: Value::Null,
            error: Some(why.into()),
        }
    }
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

/// Something that a toolbox has to say beside the results of its calls: a harness event.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// The category, e.g. `guardrail`.
    pub category: &'static str,
    /// What happened.
    pub name: &'static str,
    /// What else is known of it.
    pub attributes: Value,
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
    /// What it has to say since it was last asked. The router asks after every call.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}
