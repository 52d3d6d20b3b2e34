//! Running a program to its end.

use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Ended, Listener, ProcessError, ProcessTree, Program};

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// How often a listener is told that time has passed.
const TICK: std::time::Duration = std::time::Duration::from_millis(500);

/// How long output is still read after the program has ended: its children may hold the pipes open for ever.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Runs a program to its end, hands its output on as it comes, and leaves no process of it behind when it is
/// cancelled or its time is up.
///
/// # Errors
///
/// When it could not be started. A program that fails is not an error: [`Ended`] says how it ended.
pub async fn run(
    program: &Program,
    listener: &mut dyn Listener,
    cancel: &CancellationToken,
) -> Result<Ended, ProcessError> {
    let mark = mark();
    let mut child = start(program, &mark).await?;
    let pid = child.id();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feeding = async {
        if let (Some(mut stdin), Some(bytes)) = (stdin, &program.stdin) {
            // A program may end, or close its input, before it has read all of it.
            stdin.write_all(bytes).await.ok();
        }
    };
    let deadline = program.timeout.map(|most| Instant::now() + most);
    let mut watched = Watched {
        child,
        status: None,
        cut: None,
    };
    {
        let ending = watched.wait(pid, deadline, program.grace, &mark, cancel);
        let reading = read_both(stdout, stderr, listener);
        tokio::pin!(feeding, ending, reading);
        let (mut fed, mut read, mut ended) = (false, false, false);
        while !ended {
            tokio::select! {
                () = &mut feeding, if !fed => fed = true,
                () = &mut reading, if !read => read = true,
                () = &mut ending => ended = true,
            }
        }
        if !read {
            timeout_at(Instant::now() + DRAIN, reading).await.ok();
        }
    }
    Ok(watched.ended())
}

/// A mark that everything a program starts carries in its environment, so that it is found wherever it went.
fn mark() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

async fn start(program: &Program, mark: &str) -> Result<Child, ProcessError> {
    let Some((name, arguments)) = program.argv.split_first() else {
        return Err(ProcessError::NotFound {
            program: "(no program)".to_owned(),
        });
    };
    let mut command = Command::new(name);
    command
        .args(arguments)
        .envs(&program.env)
        .env(super::tree::MARK, mark)
        .stdin(if program.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .process_group(0);
    if let Some(dir) = &program.dir {
        command.current_dir(dir);
    }
    let mut tries = 0;
    loop {
        let source = match command.spawn() {
            Ok(child) => return Ok(child),
            Err(source) => source,
        };
        // Another thread started a program while a script was written: that program has the file open for a moment.
        if source.kind() == std::io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES {
            tries += 1;
            sleep(BUSY_PAUSE).await;
            continue;
        }
        let is_missing = source.kind() == std::io::ErrorKind::NotFound;
        // A directory that is not there gives the same error as a program that is not there.
        let is_dir = program.dir.as_ref().is_none_or(|dir| dir.is_dir());
        return Err(match (&program.dir, is_dir) {
            (Some(dir), false) => ProcessError::Directory { dir: dir.clone() },
            _ if is_missing => ProcessError::NotFound {
                program: name.to_string_lossy().into_owned(),
            },
            _ => ProcessError::Start {
                program: name.to_string_lossy().into_owned(),
                source,
            },
        });
    }
}

/// How often, and after what pause, a file that is busy is tried again.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// How often, and after what pause, it is looked whether what was killed is gone.
const GONE_LOOKS: u32 = 100;
const GONE_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// A program on its way to its end.
struct Watched {
    child: Child,
    status: Option<ExitStatus>,
    cut: Option<Ended>,
}

impl Watched {
    async fn wait(
        &mut self,
        pid: Option<u32>,
        deadline: Option<Instant>,
        grace: std::time::Duration,
        mark: &str,
        cancel: &CancellationToken,
    ) {
        let time_up = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            status = self.child.wait() => {
                self.status = status.ok();
                return;
            }
            () = cancel.cancelled() => self.cut = Some(Ended::Cancelled),
            () = time_up => self.cut = Some(Ended::TimedOut),
        }
        if let Some(pid) = pid {
            let mut tree = ProcessTree::of(pid).marked(mark);
            tree.end(false);
            tokio::select! {
                _ = self.child.wait() => {}
                () = sleep(grace) => {}
            }
            // What is left of the group, or has left it, ends now, also when the program itself has ended.
            tree.end(true);
            self.child.wait().await.ok();
            // A killed process is there for a moment longer. Whoever cancels is told of the end when it is true.
            for _ in 0..GONE_LOOKS {
                if tree.is_gone() {
                    break;
                }
                sleep(GONE_PAUSE).await;
            }
        }
        self.child.wait().await.ok();
    }

    fn ended(self) -> Ended {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(cut) = self.cut {
            return cut;
        }
        let Some(status) = self.status else {
            return Ended::Exited(-1);
        };
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Exited(code),
            (None, signal) => Ended::Signalled(signal.unwrap_or_default()),
        }
    }
}

async fn read_both(
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
    listener: &mut dyn Listener,
) {
    let (mut out, mut err) = (stdout, stderr);
    let (mut out_buffer, mut err_buffer) = (vec![0; PIECE], vec![0; PIECE]);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while out.is_some() || err.is_some() {
        tokio::select! {
            _ = ticks.tick() => listener.tick(),
            read = read_some(&mut out, &mut out_buffer), if out.is_some() => match read {
                Some(n) => listener.stdout(&out_buffer[..n]),
                None => out = None,
            },
            read = read_some(&mut err, &mut err_buffer), if err.is_some() => match read {
                Some(n) => listener.stderr(&err_buffer[..n]),
                None => err = None,
            },
        }
    }
}

/// The next bytes; `None` at the end.
async fn read_some(from: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> Option<usize> {
    let read = from.as_mut()?.read(buffer).await.ok()?;
    (read > 0).then_some(read)
}
