//! Rollouts of Codex, for its resume to open.
//!
//! A rollout is a file of JSON lines of two kinds that say the same: `response_item`, which is sent to the model
//! when the session goes on, and `event_msg`, which is shown. Reasoning is only shown, since the provider takes it back
//! only as it encrypted it. What was taken back stands there, followed by the word that so many turns are void.
//!
//! What a converted session holds, and what becomes of what, is in `docs/formats/codex.md`.

mod lines;
mod rollout;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use quipu_model::{Header, Timestamp};

use crate::handover;
use crate::handover::own::OwnLine;
use crate::loss::Field;
use crate::projection::{Beside, Projection};

/// The version of Codex whose files are written.
pub const VERSION: &str = "0.166.0";

/// How a session is written.
#[derive(Debug, Clone, Default)]
pub struct CodexOptions {
    /// The id of the session that is written. Without one, it follows from the run. What is no UUID becomes one.
    pub session_id: Option<String>,
    /// The directory in which it is resumed, when that is not the one it took place in.
    pub cwd: Option<String>,
    /// The directory in which it is resumed, when nobody knows where it took place.
    pub cwd_if_unknown: Option<String>,
    /// The provider that goes on with it, by its name in the settings of Codex. Without one, that of the settings does;
    /// one that is not in the settings keeps the session from being opened.
    pub model_provider: Option<String>,
    /// Whether the model is told what another agent's program told its model. By default it is not:
    /// it speaks of tools and limits that are not there.
    pub instructions: bool,
}

/// What such a file has a place for.
pub const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageReasoning,
    Field::Attachments,
    Field::Synthetic,
    Field::Superseded,
    Field::Dangling,
    Field::Title,
    Field::ParentCall,
    Field::ForkedFrom,
    Field::Children,
    Field::Agent,
    Field::AgentVersion,
    Field::SessionId,
    Field::Cwd,
    Field::Branch,
    Field::Repository,
    Field::Commit,
    Field::Os,
    Field::Shell,
];

/// Writes a session as a rollout of Codex's.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &CodexOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let rollout = rollout::Rollout::begin(header, options, out)?;
    Ok(Box::new(OwnLine::new(header, Box::new(rollout))))
}

/// The id of the session that is written.
pub fn session_id(header: &Header, options: &CodexOptions) -> String {
    handover::session_id("codex", header, options.session_id.as_deref())
}

/// The name of the file. Codex reads the session's id and its time from it.
pub fn file_name(header: &Header, options: &CodexOptions) -> String {
    let time = began(header).strftime("%Y-%m-%dT%H-%M-%S");
    format!("rollout-{time}-{}.jsonl", session_id(header, options))
}

/// Where the file belongs, below `~/.codex`: each day has a directory of its own.
pub fn place(header: &Header, options: &CodexOptions) -> PathBuf {
    let day = began(header).strftime("%Y/%m/%d").to_string();
    PathBuf::from("sessions")
        .join(day)
        .join(file_name(header, options))
}

/// The command that goes on with the session, once the file is in its [`place`]. Where the name of its directory cannot be
/// shown as it is, the command is to be given there.
pub fn resume_hint(header: &Header, options: &CodexOptions) -> String {
    let command = format!("codex resume {}", session_id(header, options));
    handover::resume(cwd(header, options), &command)
}

fn cwd<'a>(header: &'a Header, options: &'a CodexOptions) -> &'a str {
    let given = options.cwd.as_deref();
    given
        .or(header.environment.cwd.as_deref())
        .or(options.cwd_if_unknown.as_deref())
        .unwrap_or("/")
}

/// When the session began. A time before 1970 has no place in a name.
fn began(header: &Header) -> Timestamp {
    header
        .started_at
        .unwrap_or_default()
        .max(Timestamp::UNIX_EPOCH)
}
