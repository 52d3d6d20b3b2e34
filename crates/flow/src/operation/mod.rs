//! Operations: what Quipu can do by itself in a step, without a shell.
//!
//! [`Builtin`] has Quipu's own; plugins have others. Inputs are checked by name and type before anything is done, and
//! everything that is wrong is said at once.

use std::path::PathBuf;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

mod builtin;
mod files;
mod github;
mod inputs;
mod json;
mod web;

#[cfg(test)]
mod tests;

pub use builtin::{Builtin, inputs_of, names};
pub(crate) use inputs::like;
pub use inputs::{InputSpec, InputType};

/// Where an operation runs.
#[derive(Debug, Clone)]
pub struct OperationContext {
    /// The directory that paths begin at and may not lead out of.
    pub root: PathBuf,
}

/// What came of an operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationOutput {
    /// What it gives back: `states.<step>.Response`.
    pub response: Map<String, Value>,
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// There is none of this name.
    #[error("{name} is not an operation{}", .like.as_ref().map(|l| format!("; did you mean {l}?")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// A name that is much like it.
        like: Option<String>,
    },
    /// Its inputs do not fit.
    #[error("{0}")]
    Inputs(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Something that has operations: Quipu itself, or a plugin.
pub trait Operations: Send + Sync {
    /// The names of its operations.
    fn names(&self) -> Vec<String>;
    /// Runs one of them.
    fn run<'a>(
        &'a self,
        name: &'a str,
        inputs: &'a Map<String, Value>,
        context: &'a OperationContext,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<OperationOutput, OperationError>> + Send + 'a>>;
}
