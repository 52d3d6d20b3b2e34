//! A place of its own for each test, and commands in it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

/// An empty home.
pub(crate) struct TestEnv {
    pub(crate) dir: TempDir,
}

/// What a command did. Look at it.
#[must_use = "check what the command wrote and how it ended"]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(dir.path(), mode).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The file of a run in this home.
    pub(crate) fn run_path(&self, id: &str) -> PathBuf {
        self.dir
            .path()
            .join("transcripts")
            .join(format!("{id}.jsonl"))
    }

    /// Writes a file; gives its path as an argument.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command
            .args(args)
            .env_clear()
            .env("QUIPU_HOME", self.dir.path())
            .env("HOME", self.path("person"))
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, "")
    }

    /// Runs a command with this on its standard input.
    pub(crate) fn run_with(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = stdin.as_ref().to_vec();
        let feed = std::thread::spawn(move || drop(input.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        feed.join().unwrap();
        self.ran(&output)
    }

    /// With the test's own paths taken out.
    fn ran(&self, output: &Output) -> Ran {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
            text.replace(self.dir.path().to_str().unwrap(), "HOME")
        };
        Ran {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Starts a command that goes on.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Self::started(&mut self.command(args))
    }

    /// Starts another program that goes on, in the same place.
    pub(crate) fn start_as(&self, program: &str, args: &[&str]) -> Running {
        let quipu = self.command(&[]);
        let mut command = Command::new(program);
        command.args(args).env_clear();
        for (name, value) in quipu.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        Self::started(&mut command)
    }

    fn started(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        let stdin = child.stdin.take();
        Running {
            child,
            stdin,
            stdout,
            stderr,
        }
    }
}

/// A command that is still going.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "bounded by what the test makes it write"
    )]
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            if line.is_err() || send.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receive
}

impl Running {
    /// The next line of its output. Waits, but not for ever.
    pub(crate) fn line(&self) -> String {
        self.stdout
            .recv_timeout(Duration::from_secs(20))
            .expect("a line within 20 s")
    }

    pub(crate) fn error_line(&self) -> String {
        self.stderr
            .recv_timeout(Duration::from_secs(20))
            .expect("a line within 20 s")
    }

    /// The next line of its output, if one comes soon.
    pub(crate) fn line_soon(&self) -> Option<String> {
        self.stdout.recv_timeout(Duration::from_millis(20)).ok()
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .unwrap();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// What it ended with: its exit code, or none when a signal ended it. It has this long to end.
    pub(crate) fn ended_within(&mut self, patience: Duration) -> Option<i32> {
        let begun = std::time::Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < patience, "still there after {patience:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What is left of its output and of its standard error, after it ended.
    pub(crate) fn rest(&self) -> (Vec<String>, Vec<String>) {
        (self.stdout.iter().collect(), self.stderr.iter().collect())
    }

    /// Ends its input and waits for it.
    pub(crate) fn finish(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A line of a transcript of run `r`, at a fixed time.
pub(crate) fn line(seq: u64, event_type: &str, path: &str, payload: &str) -> String {
    format!(
        "{{\"seq\":{seq},\"run_id\":\"r\",\"type\":\"{event_type}\",\"path\":\"{path}\",\
         \"iteration\":0,\"timestamp\":\"2026-06-08T08:14:4{}.5Z\",\"payload\":{payload}}}\n",
        seq % 10
    )
}
