//! One module per command.

pub(crate) mod agentlog;
pub(crate) mod annotate;
pub(crate) mod convert;
pub(crate) mod doctor;
pub(crate) mod emit;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod prune;
pub(crate) mod redact;
pub(crate) mod render;
pub(crate) mod repair;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod scan;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod share;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod tree;
pub(crate) mod up;
pub(crate) mod verify;
pub(crate) mod watch;

use quipu_api::verify::Failed;

use crate::error::CommandError;

/// Of several things that went wrong, the first is what the command ends with; the others are reported
/// here.
pub(crate) fn keep_first(failed: &mut Option<CommandError>, error: CommandError) {
    match failed {
        None => *failed = Some(error),
        Some(_) => error.report(),
    }
}

/// That a file could not be read, as a document.
pub(crate) fn failed(file: &str, error: &CommandError) -> Failed {
    Failed {
        file: file.to_owned(),
        error: error.to_string(),
    }
}
