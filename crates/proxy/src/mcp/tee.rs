//! The bytes between an agent and a server.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::{Conversation, Observer, Side};

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// How long a server has to end by itself after the agent is gone, and again after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TeeError {
    /// No program was named.
    #[error("name the server's program")]
    NoProgram,
    /// It was not found.
    #[error("{program} was not found; install it or put it on the PATH")]
    NotFound {
        /// Its name.
        program: String,
    },
    /// The system refused.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Starts a server and passes bytes between it and an agent until the server has ended. Gives the server's exit code:
/// 128 and the number of a signal that ended it.
///
/// Bytes are passed on as soon as they come; a side that does not read holds up the other, as a pipe between them
/// would. When the agent sends no more, the server's input is closed, and its output is passed on to its end. When the
/// agent does not read any more, the server is ended. Signals that ask this process to end go to the server and all
/// processes of its group, from then on to the end of this process. Standard error of the server is that of this
/// process.
///
/// The observer is shown everything before the other side has it, so that a call is known before its result.
///
/// # Errors
///
/// When the server could not be started.
pub async fn tee(
    argv: &[OsString],
    stdin: impl AsyncRead + Unpin,
    stdout: impl AsyncWrite + Unpin,
    observer: &mut dyn Observer,
) -> Result<i32, TeeError> {
    let mut server = Server::start(argv)?;
    let (Some(to_server), Some(from_server)) =
        (server.child.stdin.take(), server.child.stdout.take())
    else {
        return Ok(server.wait().await);
    };
    let shared = Mutex::new((Conversation::default(), observer));
    let watch = |side: Side, bytes: Option<&[u8]>| {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (conversation, observer) = &mut *shared;
        let mut see = |seen: &super::Seen<'_>| observer.seen(seen);
        match bytes {
            Some(bytes) => conversation.push(side, bytes, &mut see),
            None => conversation.end_of(side, &mut see),
        }
    };
    let group = server.group;
    {
        let mut up = Box::pin(pass(stdin, to_server, |bytes| watch(Side::Agent, bytes)));
        let down = pass(from_server, stdout, |bytes| watch(Side::Server, bytes));
        let signals = forward(group);
        tokio::pin!(down, signals);
        let mut sending = true;
        let passed = loop {
            tokio::select! {
                _ = &mut up, if sending => sending = false,
                passed = &mut down => break passed,
                () = &mut signals => {}
            }
        };
        if passed == Passed::NobodyReads {
            // The server's input is closed first: most servers end by that.
            drop(up);
            server.leave().await;
        } else {
            // The server has closed its output; it may still read, and be asked to end.
            tokio::select! {
                () = server.ended() => {}
                () = async {
                    if sending {
                        up.await;
                    }
                    signals.await;
                } => {}
            }
        }
    }
    let code = server.wait().await;
    let mut shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (conversation, observer) = (&mut shared.0, &mut shared.1);
    conversation.finish(&mut |seen| observer.seen(seen));
    Ok(code)
}

/// How passing bytes on ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passed {
    /// There were no more.
    End,
    /// They cannot be handed on.
    NobodyReads,
}

/// Passes bytes on until there are no more, then closes the other end.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut see: impl FnMut(Option<&[u8]>),
) -> Passed {
    let mut buffer = vec![0; PIECE];
    let ended = loop {
        let n = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => break Passed::End,
            Ok(n) => n,
        };
        see(Some(&buffer[..n]));
        let written = to.write_all(&buffer[..n]).await;
        if written.is_err() || to.flush().await.is_err() {
            break Passed::NobodyReads;
        }
    };
    see(None);
    to.shutdown().await.ok();
    ended
}

/// Hands signals that ask this process to end to the server's group. Never ends.
async fn forward(group: Option<Pid>) {
    let kinds = [
        (SignalKind::terminate(), Signal::TERM),
        (SignalKind::interrupt(), Signal::INT),
        (SignalKind::hangup(), Signal::HUP),
        (SignalKind::quit(), Signal::QUIT),
    ];
    let mut listening = tokio::task::JoinSet::new();
    for (kind, number) in kinds {
        // Where signals cannot be listened for, they end this process, and its pipes with it.
        if let Ok(mut signals) = signal(kind) {
            listening.spawn(async move {
                while signals.recv().await.is_some() {
                    if let Some(group) = group {
                        kill_process_group(group, number).ok();
                    }
                }
            });
        }
    }
    std::future::pending::<()>().await;
    drop(listening);
}

/// A server's program, in a process group of its own. Dropping it ends the group.
struct Server {
    child: Child,
    group: Option<Pid>,
    status: Option<ExitStatus>,
}

impl Server {
    fn start(argv: &[OsString]) -> Result<Self, TeeError> {
        let (program, arguments) = argv.split_first().ok_or(TeeError::NoProgram)?;
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let child = started.map_err(|source| {
            let program = program.to_string_lossy().into_owned();
            if source.kind() == std::io::ErrorKind::NotFound {
                TeeError::NotFound { program }
            } else {
                TeeError::Start { program, source }
            }
        })?;
        let id = child.id().and_then(|it| i32::try_from(it).ok());
        Ok(Self {
            child,
            group: id.and_then(Pid::from_raw),
            status: None,
        })
    }

    async fn ended(&mut self) {
        self.status = self.child.wait().await.ok();
    }

    /// Gives the server time to end by itself, then asks it to, then makes it.
    async fn leave(&mut self) {
        for number in [Signal::TERM, Signal::KILL] {
            if tokio::time::timeout(GRACE, self.ended()).await.is_ok() {
                return;
            }
            if let Some(group) = self.group {
                kill_process_group(group, number).ok();
            }
        }
    }

    /// The exit code, when it has ended.
    async fn wait(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        if self.status.is_none() {
            self.ended().await;
        }
        let Some(status) = self.status else { return -1 };
        match (status.code(), status.signal()) {
            (Some(code), _) => code,
            (None, signal) => 128 + signal.unwrap_or_default(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What a server leaves behind when it ends by itself is its own affair.
        if self.status.is_none()
            && let Some(group) = self.group
        {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}
