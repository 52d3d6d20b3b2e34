//! The program of a server that speaks on standard input and output.

use std::collections::{BTreeMap, VecDeque};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::IgnoredAny;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::process::{ProcessError, ProcessTree};

/// The longest message that a server may send.
const MAX_LINE: usize = 16 << 20;

/// How much of the end of standard error is kept.
const MAX_STDERR: usize = 4096;

/// How long a server has between being asked to end and being made to.
const GRACE: Duration = Duration::from_secs(2);

/// A server's program. It ends with the token that it was started with.
#[derive(Debug)]
pub(super) struct Child {
    shared: Arc<Shared>,
    ended: watch::Receiver<Option<String>>,
}

#[derive(Debug, Default)]
struct Shared {
    stderr: Mutex<VecDeque<u8>>,
    noise: Mutex<(u64, String)>,
    /// What it did that made Quipu end it.
    fault: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Child {
    /// Starts a program in a process group of its own, and gives what it says and where it listens.
    pub(super) fn start(
        argv: &[String],
        env: &BTreeMap<String, String>,
        end: &CancellationToken,
    ) -> Result<(Self, DuplexStream, ChildStdin), ProcessError> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(ProcessError::NotFound {
                program: "(no program)".to_owned(),
            });
        };
        let spawned = Command::new(program)
            .args(arguments)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|source| {
            let program = program.clone();
            if source.kind() == std::io::ErrorKind::NotFound {
                ProcessError::NotFound { program }
            } else {
                ProcessError::Start { program, source }
            }
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(ProcessError::Start {
                program: program.clone(),
                source: std::io::ErrorKind::BrokenPipe.into(),
            });
        };
        let shared = Arc::new(Shared::default());
        let (said, ended) = watch::channel(None);
        let (to, from) = tokio::io::duplex(64 << 10);
        tokio::spawn(messages(stdout, to, shared.clone(), end.clone()));
        tokio::spawn(errors(stderr, shared.clone()));
        tokio::spawn(watch_over(child, end.clone(), said));
        Ok((Self { shared, ended }, from, stdin))
    }

    /// Why a call failed, with how the program ended and what it wrote to standard error.
    pub(super) async fn explain(&self, why: &str) -> String {
        // A program that has closed its output is most often about to end.
        let mut ended = self.ended.clone();
        let waiting = ended.wait_for(Option::is_some);
        let ended = tokio::time::timeout(Duration::from_millis(500), waiting).await;
        let ended = ended.ok().and_then(|it| it.ok()?.clone());
        let fault = lock(&self.shared.fault).clone();
        let mut text = match (fault, ended) {
            (Some(fault), _) => fault,
            (None, Some(ended)) => ended,
            (None, None) => why.to_owned(),
        };
        let (lines, first) = lock(&self.shared.noise).clone();
        if lines > 0 {
            let noise =
                format!("; it printed {lines} lines that are not messages, the first {first:?}");
            text.push_str(&noise);
        }
        let stderr: Vec<u8> = lock(&self.shared.stderr).iter().copied().collect();
        let stderr = String::from_utf8_lossy(&stderr);
        if !stderr.trim().is_empty() {
            text.push_str("; it said: ");
            text.push_str(stderr.trim());
        }
        text
    }

    /// How many lines it printed that are not messages since this was last asked, and the beginning of the first.
    pub(super) fn noise(&self) -> Option<(u64, String)> {
        let (lines, first) = std::mem::take(&mut *lock(&self.shared.noise));
        (lines > 0).then_some((lines, first))
    }
}

/// Hands on what a program prints, line by line, as far as it is messages.
async fn messages(
    stdout: ChildStdout,
    mut to: DuplexStream,
    shared: Arc<Shared>,
    end: CancellationToken,
) {
    let mut stdout = BufReader::with_capacity(64 << 10, stdout);
    let mut line = Vec::new();
    loop {
        let piece = tokio::select! {
            () = end.cancelled() => return,
            piece = stdout.fill_buf() => piece,
        };
        let Ok(piece) = piece else { return };
        if piece.is_empty() {
            return;
        }
        let stop = piece.iter().position(|&b| b == b'\n');
        let used = stop.map_or(piece.len(), |at| at + 1);
        line.extend_from_slice(&piece[..used]);
        stdout.consume(used);
        if line.len() > MAX_LINE {
            let fault = format!("it printed a line of more than {MAX_LINE} bytes");
            *lock(&shared.fault) = Some(fault);
            end.cancel();
            return;
        }
        if stop.is_none() {
            continue;
        }
        let text = line.trim_ascii();
        let is_message = matches!(text.first(), Some(b'{' | b'['))
            && serde_json::from_slice::<IgnoredAny>(text).is_ok();
        if is_message {
            if to.write_all(&line).await.is_err() {
                return;
            }
        } else if !text.is_empty() {
            let mut noise = lock(&shared.noise);
            if noise.0 == 0 {
                let first = &text[..text.len().min(200)];
                noise.1 = String::from_utf8_lossy(first).into_owned();
            }
            noise.0 += 1;
        }
        line.clear();
        line.shrink_to(64 << 10);
    }
}

/// Keeps the end of what a program writes to standard error.
async fn errors(mut stderr: ChildStderr, shared: Arc<Shared>) {
    let mut buffer = vec![0; 8192];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = lock(&shared.stderr);
        kept.extend(&buffer[..n]);
        let over = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..over);
    }
}

/// Waits for the end of a program, or ends it with all that it started.
async fn watch_over(
    mut child: tokio::process::Child,
    end: CancellationToken,
    said: watch::Sender<Option<String>>,
) {
    let pid = child.id();
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        () = end.cancelled() => None,
    };
    if let Some(mut tree) = pid.map(ProcessTree::of) {
        if status.is_none() {
            tree.end(false);
            tokio::time::timeout(GRACE, child.wait()).await.ok();
        }
        tree.end(true);
    }
    if status.is_none() {
        child.wait().await.ok();
    }
    let ended = status.map_or("it was ended".to_owned(), describe);
    said.send(Some(ended)).ok();
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, signal) => format!("it ended by signal {}", signal.unwrap_or_default()),
    }
}
