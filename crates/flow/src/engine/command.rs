//! Commands: of steps, of hooks, and of checks.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_model::{Place, Severity};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::prepare::{Filler, PreparedCommand};
use super::run::Run;
use super::state::{StepState, StepStatus};
use super::step::{Doing, Done, cancelled};
use super::text::last_bytes;
use super::{News, Stop};
use crate::definition::Hook;
use crate::process::{self, Ended, Listener, Program};

/// How much of a program's output is kept. The rest is counted.
const KEPT: usize = 16 << 20;

/// A command that runs longer than this has its output in the transcript as it comes, so that it is there when the
/// process or the machine fails.
const LIVE_AFTER: Duration = Duration::from_secs(1);

/// How much of it is gathered into one event, and how much of it is in the transcript in all.
const LIVE_PIECE: usize = 16 << 10;
const LIVE_MOST: usize = 1 << 20;

/// Output of a program, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    pub(super) dropped: u64,
}

impl Kept {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.dropped += (bytes.len() - room) as u64;
    }

    /// The output as text. Bytes that are not UTF-8 are replaced.
    pub(super) fn text(self) -> String {
        match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

/// Listens to a command of a step.
struct Heard<'a> {
    run: &'a Run,
    place: &'a Place,
    out: Kept,
    err: Kept,
    began: Instant,
    /// Output that is not in the transcript yet, and how much of it is.
    live: Vec<u8>,
    lived: usize,
    /// Why it could not be recorded, and what ends the command then.
    failed: Option<Stop>,
    stopping: &'a CancellationToken,
}

impl Heard<'_> {
    fn record_live(&mut self, all: bool) {
        let ready = self.live.len() >= LIVE_PIECE || all;
        if !ready || self.live.is_empty() || self.began.elapsed() < LIVE_AFTER {
            return;
        }
        // A secret is not cut in two where it is masked: lines are whole.
        if self.run.chronicle.masker.is_some() {
            let Some(end) = self.live.iter().rposition(|byte| *byte == b'\n') else {
                return;
            };
            let text = String::from_utf8_lossy(&self.live[..=end]).into_owned();
            self.live.drain(..=end);
            self.lived += end + 1;
            return self.write_live(text);
        }
        // Whole characters only, where there are any.
        let whole = match std::str::from_utf8(&self.live) {
            Err(error) if error.valid_up_to() > 0 => error.valid_up_to(),
            _ => self.live.len(),
        };
        let text = String::from_utf8_lossy(&self.live[..whole]).into_owned();
        self.live.drain(..whole);
        self.lived += whole;
        self.write_live(text);
    }

    fn write_live(&mut self, text: String) {
        if let Err(stop) = self.run.chronicle.stream(self.place, text) {
            self.failed.get_or_insert(stop);
            self.stopping.cancel();
        }
    }
}

impl Listener for Heard<'_> {
    fn stdout(&mut self, bytes: &[u8]) {
        self.out.take(bytes);
        let place = self.place;
        self.run.tell(News::Printed {
            place,
            bytes,
            is_error: false,
        });
        let room = LIVE_MOST.saturating_sub(self.lived + self.live.len());
        self.live.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.record_live(true);
    }

    fn tick(&mut self) {
        self.record_live(true);
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.err.take(bytes);
        let place = self.place;
        self.run.tell(News::Printed {
            place,
            bytes,
            is_error: true,
        });
    }
}

impl Doing<'_> {
    /// Runs a command step.
    pub(super) async fn command(&self, command: &PreparedCommand) -> Result<Done, Stop> {
        let run = self.run;
        run.chronicle.command(self.place, &command.command)?;
        let script;
        let mut program = if command.is_script {
            match executable(&command.command) {
                Ok(path) => script = path,
                Err(error) => {
                    return Ok(
                        StepState::failed(format!("cannot write the script: {error}")).into(),
                    );
                }
            }
            Program::new([script.as_os_str()])
        } else {
            Program::shell(&command.command)
        };
        program.dir = Some(command.dir.clone());
        for (name, value) in &command.env {
            program.env.insert(name.into(), value.into());
        }
        let stopping = self.cancel.child_token();
        let mut heard = Heard {
            run,
            place: self.place,
            out: Kept::default(),
            err: Kept::default(),
            began: Instant::now(),
            live: Vec::new(),
            lived: 0,
            failed: None,
            stopping: &stopping,
        };
        let ended = process::run(&program, &mut heard, &stopping).await;
        let Heard {
            out, err, failed, ..
        } = heard;
        if let Some(stop) = failed {
            return Err(stop);
        }
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return Ok(StepState::failed(chain(&error)).into()),
        };
        for (name, kept) in [("stdout", &out), ("stderr", &err)] {
            if kept.dropped > 0 {
                let text = format!("{name} is longer than {KEPT} bytes; the rest is not kept");
                let attributes = json!({ "stream": name, "kept": KEPT, "dropped": kept.dropped });
                run.warn(
                    self.place,
                    "context_trim",
                    "output_truncated",
                    &text,
                    &attributes,
                )?;
            }
        }
        let mut state = match ended {
            Ended::Cancelled => cancelled("cancelled"),
            _ => StepState::default(),
        };
        state.output = out.text();
        state.stderr = err.text();
        state.exit_code = Some(ended.code());
        match ended {
            Ended::Exited(0) | Ended::Cancelled => {}
            Ended::Exited(code) => {
                let said = state.stderr.trim();
                let error = match said {
                    "" => format!("exit code {code}"),
                    said => format!("exit code {code}: {}", last_bytes(said, 2000)),
                };
                state.error = Some(error);
            }
            Ended::Signalled(signal) => state.error = Some(format!("ended by signal {signal}")),
            Ended::TimedOut => state.error = Some("no end within its time".to_owned()),
        }
        if state.error.is_some() && state.status == StepStatus::Completed {
            state.status = StepStatus::Failed;
        }
        Ok(state.into())
    }
}

impl Run {
    /// Runs one hook.
    pub(super) async fn hook(
        self: &Arc<Self>,
        context: &Context,
        place: &Place,
        hook: &Hook,
        cancel: &CancellationToken,
    ) -> Result<(), String> {
        let filler = Filler { run: self, context };
        match hook {
            Hook::Log(text) => {
                let text = filler.text(text)?;
                self.tell(News::Log { place, text: &text });
                let attributes = json!({ "text": text });
                let noted = self.note(place, "tool_lifecycle", "hook_log", &attributes);
                noted.map_err(|_| "it cannot be recorded".to_owned())
            }
            Hook::Command(command) => {
                let command = filler.text(command)?;
                let ran = self.shell(&command, None, cancel).await?;
                let attributes = json!({
                    "command": command, "exit_code": ran.code, "output": last_bytes(&ran.output, 4000),
                });
                let severity = if ran.code == 0 {
                    Severity::Info
                } else {
                    Severity::Warning
                };
                self.chronicle
                    .harness(
                        place,
                        "tool_lifecycle",
                        "hook_command",
                        severity,
                        &attributes,
                    )
                    .map_err(|_| "it cannot be recorded".to_owned())?;
                match ran.code {
                    0 => Ok(()),
                    code => Err(format!("{command}: exit code {code}")),
                }
            }
        }
    }

    /// Runs a command beside the steps, and gives its exit code with its output and errors as one text.
    pub(super) async fn shell(
        &self,
        command: &str,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Ran, String> {
        #[derive(Default)]
        struct Both(Kept);
        impl Listener for Both {
            fn stdout(&mut self, bytes: &[u8]) {
                self.0.take(bytes);
            }
            fn stderr(&mut self, bytes: &[u8]) {
                self.0.take(bytes);
            }
        }
        let mut program = Program::shell(command);
        program.dir = Some(self.options.root.clone());
        program.timeout = timeout;
        let mut both = Both::default();
        let ended = process::run(&program, &mut both, cancel)
            .await
            .map_err(|error| chain(&error))?;
        Ok(Ran {
            code: ended.code(),
            output: both.0.text(),
        })
    }
}

/// What came of a command beside the steps.
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) output: String,
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// A script as a file that can be executed; it is removed when the path is dropped.
fn executable(script: &str) -> std::io::Result<tempfile::TempPath> {
    let mut file = tempfile::Builder::new()
        .prefix("quipu-script-")
        .tempfile()?;
    file.write_all(script.as_bytes())?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o700))?;
    Ok(file.into_temp_path())
}
