//! What is wrong with a workflow beyond its syntax: steps that do not exist or that no run reaches, ways that never
//! end, names that nothing defines, files that are missing.

use super::diagnostic::Findings;
use super::places::Places;
use super::ways::Ways;
use super::{Diagnostic, Workflow};

mod calls;
mod steps;
mod variables;
mod way;

#[cfg(test)]
mod tests;

pub use variables::{CONTEXT_FIELDS, ERROR_FIELDS, LOOP_FIELDS, STATE_FIELDS, WORKFLOW_FIELDS};

/// Checks a workflow: all that is wrong, in the order of the file.
pub fn check(workflow: &Workflow, places: &Places) -> Vec<Diagnostic> {
    let mut findings = Findings::new(workflow.file.clone());
    let ways = Ways::new(workflow);
    way::check(workflow, &ways, &mut findings);
    steps::check(workflow, places, &mut findings);
    variables::check(workflow, &ways, &mut findings);
    calls::check(workflow, places, &mut findings);
    findings.sorted()
}
