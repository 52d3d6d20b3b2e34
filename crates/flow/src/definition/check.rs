//! What is wrong with a workflow beyond its syntax.

use super::places::Places;
use super::{Diagnostic, Workflow};

/// Checks a workflow.
pub fn check(_workflow: &Workflow, _places: &Places) -> Vec<Diagnostic> {
    Vec::new()
}
