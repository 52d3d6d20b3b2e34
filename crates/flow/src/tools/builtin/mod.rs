//! Quipu's own tools: Read, Write, Edit, Bash, Glob and Grep, confined to a root.
//!
//! Files are reached through [`Root`], which no path leads out of. Glob and Grep do not follow symbolic links. A
//! command can read what the user can read; on Linux kernels that have landlock it can write only beneath the root,
//! in the directory for temporary files, to existing devices, and in the directories of [`Options::write`]. Where
//! landlock is not available a harness event says so.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Remark, ToolOutcome, ToolRequest, ToolSpec, Toolbox};
use crate::beneath::{PathError, Root};

mod files;
mod find;
mod sandbox;
mod shell;

#[cfg(test)]
mod tests;

/// The most bytes that are read or written at once.
const MAX_FILE: u64 = 5 << 20;

/// What differs between users of the tools.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directories beside the root that commands may write to.
    pub write: Vec<PathBuf>,
    /// Whether commands are kept from writing elsewhere, where the kernel can do that.
    pub sandbox: bool,
    /// How long a command may take that sets no time itself.
    pub command_timeout: Duration,
    /// The longest time that a command may ask for: less than the router gives a call, so that what a command said
    /// until then is not lost.
    pub longest_command: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            write: Vec::new(),
            sandbox: true,
            command_timeout: Duration::from_secs(120),
            longest_command: Duration::from_secs(590),
        }
    }
}

/// Quipu's own tools.
#[derive(Debug)]
pub struct Builtins {
    root: Arc<Root>,
    options: Options,
    said: AtomicBool,
    remarks: Mutex<Vec<Remark>>,
}

impl Builtins {
    /// The tools, confined to a directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be opened.
    pub fn new(root: &Path, options: Options) -> Result<Self, PathError> {
        Ok(Self::over(Root::open(root)?, options))
    }

    fn over(root: Root, options: Options) -> Self {
        Self {
            root: Arc::new(root),
            options,
            said: AtomicBool::new(false),
            remarks: Mutex::new(Vec::new()),
        }
    }

    async fn run(&self, request: &ToolRequest, cancel: &CancellationToken) -> ToolOutcome {
        let done = match request.name.as_str() {
            "Read" => self.aside(request, cancel, files::read).await,
            "Write" => self.aside(request, cancel, files::write).await,
            "Edit" => self.aside(request, cancel, files::edit).await,
            "Glob" => self.aside(request, cancel, find::glob).await,
            "Grep" => self.aside(request, cancel, find::grep).await,
            "Bash" => match input(request) {
                Ok(input) => return self.shell(input, cancel).await,
                Err(error) => Err(error),
            },
            other => Err(format!("there is no tool {other:?}")),
        };
        match done {
            Ok(output) => ToolOutcome::done(output),
            Err(why) => ToolOutcome::failed(why),
        }
    }

    /// Does work that blocks on a thread for that, and ends it when nobody waits any more.
    async fn aside<I: DeserializeOwned + Send + 'static>(
        &self,
        request: &ToolRequest,
        cancel: &CancellationToken,
        work: fn(&Root, &I, &CancellationToken) -> Result<String, String>,
    ) -> Result<String, String> {
        let input: I = input(request)?;
        let root = self.root.clone();
        let ended = cancel.child_token();
        let _end_with_this = ended.clone().drop_guard();
        let done = tokio::task::spawn_blocking(move || work(&root, &input, &ended)).await;
        done.unwrap_or_else(|_| Err("the tool broke down".to_owned()))
    }

    /// Says once that commands are not kept from writing elsewhere.
    fn say_unconfined(&self, why: &str) {
        if self.said.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.push(Remark {
            category: "guardrail",
            name: "sandbox_unavailable",
            attributes: json!({"tool": "Bash", "why": why}),
        });
    }
}

impl Toolbox for Builtins {
    fn tools(&self) -> Vec<ToolSpec> {
        specs()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolRequest,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>> {
        Box::pin(self.run(request, cancel))
    }

    fn remarks(&self) -> Vec<Remark> {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut remarks)
    }
}

fn input<I: DeserializeOwned>(request: &ToolRequest) -> Result<I, String> {
    I::deserialize(&request.input).map_err(|error| format!("the input does not fit: {error}"))
}

fn specs() -> Vec<ToolSpec> {
    let string = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "minimum": 0, "description": about});
    let yes_no = |about: &str| json!({"type": "boolean", "description": about});
    let tool = |name: &str, about: &str, required: &[&str], properties: Value| ToolSpec {
        name: name.to_owned(),
        description: about.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    };
    let path = string("A path from the root of the workspace, or an absolute one inside it.");
    vec![
        tool(
            "Read",
            "Reads a text file. At most 5 MiB are given at once; go on with offset.",
            &["path"],
            json!({
                "path": path,
                "offset": number("The line to begin at, from 1."),
                "limit": number("How many lines to read."),
            }),
        ),
        tool(
            "Write",
            "Writes a file: a new one, or in place of what is there. At most 5 MiB.",
            &["path", "content"],
            json!({"path": path, "content": string("All that the file is to hold.")}),
        ),
        tool(
            "Edit",
            "Replaces a text in a file. The text must occur exactly once, unless replace_all is true.",
            &["path", "old", "new"],
            json!({
                "path": path,
                "old": string("The text as it is in the file, with its white space."),
                "new": string("The text in its place."),
                "replace_all": yes_no("Whether every occurrence is replaced."),
            }),
        ),
        tool(
            "Bash",
            "Runs a shell command in the workspace and gives its output and exit code.",
            &["command"],
            json!({
                "command": string("The command."),
                "cwd": string("The directory it runs in."),
                "timeout_seconds": json!({
                    "type": "number", "exclusiveMinimum": 0,
                    "description": "How long it may take.",
                }),
            }),
        ),
        tool(
            "Glob",
            "Lists files whose path fits a pattern such as **/*.rs or src/*.{c,h}.",
            &["pattern"],
            json!({
                "pattern": string("The pattern."),
                "cwd": string("The directory it begins at."),
            }),
        ),
        tool(
            "Grep",
            "Finds lines of text files that a regular expression matches.",
            &["pattern"],
            json!({
                "pattern": string("The regular expression."),
                "path": string("The file or directory to look in."),
                "glob": string("Only files whose path fits this pattern."),
                "output_mode": json!({
                    "type": "string",
                    "enum": ["content", "files_with_matches", "count"],
                    "description": "Lines (the default), names of files, or lines counted for each file.",
                }),
                "case_insensitive": yes_no("Whether upper and lower case are the same."),
            }),
        ),
    ]
}
