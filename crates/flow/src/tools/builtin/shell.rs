//! Bash: a command in the workspace.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Builtins, ToolOutcome, sandbox};
use crate::process::{self, Ended, Listener, ProcessError, Program};

/// How much of the beginning and of the end of the output is kept.
const KEPT: usize = 512 << 10;

#[derive(Deserialize)]
pub(super) struct Bash {
    command: String,
    cwd: Option<String>,
    timeout_seconds: Option<f64>,
}

impl Builtins {
    pub(super) async fn shell(&self, input: Bash, cancel: &CancellationToken) -> ToolOutcome {
        let dir = self
            .root
            .relative(input.cwd.as_deref().unwrap_or("."))
            .and_then(|cwd| self.root.real_directory(&cwd));
        let dir = match dir {
            Ok(dir) => dir,
            Err(error) => return ToolOutcome::failed(error.to_string()),
        };
        let shell = if Path::new("/bin/bash").exists() {
            "/bin/bash"
        } else {
            "/bin/sh"
        };
        let mut program = Program::new([shell, "-c", &input.command]);
        program.dir = Some(dir);
        let seconds = input.timeout_seconds.filter(|it| *it > 0.0);
        let most = self.options.longest_command;
        let asked = seconds.map(|it| Duration::try_from_secs_f64(it).unwrap_or(most));
        let timeout = asked.unwrap_or(self.options.command_timeout).min(most);
        program.timeout = Some(timeout);
        let (ended, heard) = match self.start(program, cancel).await {
            Ok(done) => done,
            Err(error) => return ToolOutcome::failed(error),
        };
        let why = match ended {
            Ended::Exited(0) => None,
            Ended::Exited(code) => Some(format!("exit code {code}")),
            Ended::Signalled(signal) => Some(format!("ended by signal {signal}")),
            Ended::TimedOut => Some(format!("ended after {timeout:?}: its time was up")),
            Ended::Cancelled => Some("cancelled".to_owned()),
        };
        let mut output = heard.text();
        if let Some(why) = &why {
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            for part in ["[", why, "]"] {
                output.push_str(part);
            }
        }
        ToolOutcome {
            output: output.into(),
            error: why,
        }
    }

    /// Runs a command on a thread of its own, which is confined before it starts the command.
    async fn start(
        &self,
        program: Program,
        cancel: &CancellationToken,
    ) -> Result<(Ended, Heard), String> {
        let writable = sandbox::writable(self.root.path(), &self.options.write);
        let (confine, ended) = (self.options.sandbox, cancel.child_token());
        let _end_with_this = ended.clone().drop_guard();
        let runtime = tokio::runtime::Handle::current();
        let (sender, done) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new().name("quipu-bash".to_owned());
        let started = thread.spawn(move || {
            let confined = if confine {
                sandbox::confine(&writable)
            } else {
                Err("it is turned off".to_owned())
            };
            let mut heard = Heard::default();
            let ended = runtime.block_on(process::run(&program, &mut heard, &ended));
            sender.send((confined, ended, heard)).ok();
        });
        started.map_err(|error| format!("cannot start a thread: {error}"))?;
        let done = done.await.map_err(|_| "the tool broke down".to_owned())?;
        let (confined, ended, heard) = done;
        if let Err(why) = confined {
            self.say_unconfined(&why);
        }
        let ended = ended.map_err(|error| match error {
            ProcessError::Start { program, source } => format!("cannot start {program}: {source}"),
            error @ (ProcessError::NotFound { .. } | ProcessError::Directory { .. }) => {
                error.to_string()
            }
        })?;
        Ok((ended, heard))
    }
}

/// Output as it came, of both kinds: the beginning and the end of it.
#[derive(Default)]
struct Heard {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Heard {
    fn take(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    fn text(&self) -> String {
        let mut all = self.head.clone();
        if self.left_out > 0 {
            let note = format!("\n[{} bytes were left out here]\n", self.left_out);
            all.extend_from_slice(note.as_bytes());
        }
        all.extend(&self.tail);
        String::from_utf8_lossy(&all).into_owned()
    }
}

impl Listener for Heard {
    fn stdout(&mut self, bytes: &[u8]) {
        self.take(bytes);
    }
    fn stderr(&mut self, bytes: &[u8]) {
        self.take(bytes);
    }
}
