//! Session files of Claude Code, for its resume to open.
//!
//! A session is a file of JSON lines. Each line names the one before it, and the last line of the file is
//! where a resumed session goes on: Claude Code walks back from there, and sends what it passes to the model.
//! So a line that nothing leads to is kept and never sent. That is where everything goes that the provider would
//! refuse, or that no longer counts: reasoning without its signature; results of calls that are not there; what was
//! taken back; instructions of another agent's.
//!
//! What a converted session holds, and what becomes of what, is in `docs/formats/claude-code.md`.

mod chain;
mod session;
mod tools;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::PathBuf;

use quipu_model::Header;
use unicode_normalization::UnicodeNormalization as _;

use crate::handover;
use crate::handover::own::OwnLine;
use crate::loss::Field;
use crate::projection::{Beside, Projection};

/// The version of Claude Code whose files are written.
pub const VERSION: &str = "2.1.197";

/// How long the name of a project's directory is at most, before its hash.
const LONGEST_PROJECT: usize = 200;

/// How a session is written.
#[derive(Debug, Clone, Default)]
pub struct ClaudeOptions {
    /// The id of the session that is written. Without one, it follows from the run. What is no UUID becomes one.
    pub session_id: Option<String>,
    /// The directory in which it is resumed, when that is not the one it took place in.
    pub cwd: Option<String>,
    /// The directory in which it is resumed, when nobody knows where it took place.
    pub cwd_if_unknown: Option<String>,
    /// Whether the model is told what another agent's program told its model. By default it is kept, and not sent:
    /// it speaks of tools and limits that are not there.
    pub instructions: bool,
}

/// What such a file has a place for.
pub const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageCache1h,
    Field::UsageReasoning,
    Field::Cost,
    Field::ModelCall,
    Field::StopReason,
    Field::Status,
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

/// Writes a session as a file of Claude Code's.
///
/// # Errors
///
/// Those of whatever is written to.
pub fn writer<'w>(
    header: &Header,
    options: &ClaudeOptions,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let session = session::Session::begin(header, options, out)?;
    Ok(Box::new(OwnLine::new(header, Box::new(session))))
}

/// The id of the session that is written.
pub fn session_id(header: &Header, options: &ClaudeOptions) -> String {
    handover::session_id("claude-code", header, options.session_id.as_deref())
}

/// The name of the file: Claude Code finds a session by it.
pub fn file_name(header: &Header, options: &ClaudeOptions) -> String {
    format!("{}.jsonl", session_id(header, options))
}

/// Where the file belongs, below `~/.claude`: each directory in which it runs has one of its own.
pub fn place(header: &Header, options: &ClaudeOptions) -> PathBuf {
    PathBuf::from("projects")
        .join(project(cwd(header, options)))
        .join(file_name(header, options))
}

/// The command that goes on with the session, once the file is in its [`place`]. Where the name of its directory cannot be
/// shown as it is, the command is to be given there.
pub fn resume_hint(header: &Header, options: &ClaudeOptions) -> String {
    let command = format!("claude --resume {}", session_id(header, options));
    handover::resume(cwd(header, options), &command)
}

fn cwd<'a>(header: &'a Header, options: &'a ClaudeOptions) -> &'a str {
    let given = options.cwd.as_deref();
    given
        .or(header.environment.cwd.as_deref())
        .or(options.cwd_if_unknown.as_deref())
        .unwrap_or("/")
}

/// The name of a project's directory: its path, with a dash for everything but letters and digits.
fn project(cwd: &str) -> String {
    let mut name = String::with_capacity(cwd.len());
    for c in cwd.nfc() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else {
            // Counted as JavaScript does.
            name.extend(std::iter::repeat_n('-', c.len_utf16()));
        }
    }
    if name.len() > LONGEST_PROJECT {
        name.truncate(LONGEST_PROJECT);
        name.push('-');
        name.push_str(&handover::short(&["project", cwd]));
    }
    name
}
