//! Whether the traces that are kept are still what they were.

use std::path::Path;

use quipu_store::traces::Traces;

/// What needs attention. With `all`, every file is read.
pub(super) fn attention(home: &Path, all: bool) -> Vec<String> {
    let told =
        |error: quipu_store::traces::TraceError| vec![format!("the traces that are kept: {error}")];
    let traces = match Traces::open_existing(home) {
        Ok(None) => return Vec::new(),
        Ok(Some(traces)) => traces,
        Err(error) => return told(error),
    };
    let problems = if all {
        match traces.check() {
            Ok(problems) => problems,
            Err(error) => return told(error),
        }
    } else {
        traces.problems().to_vec()
    };
    let line = |problem: quipu_store::traces::Problem| {
        format!("the trace {}: {}", problem.path.display(), problem.why)
    };
    problems.into_iter().map(line).collect()
}
