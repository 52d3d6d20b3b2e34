//! Workflows through the binary: a project to run them in, agents that are shell scripts, and what is left behind.

mod examples;
mod kill;
mod look;
mod promises;
mod providers;
mod tutorial;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::env::{Ran, TestEnv};

/// How long a command may take before the test gives up.
const MOST: Duration = Duration::from_secs(60);

/// An empty home, a directory to run workflows in, and fake agents on the `PATH`.
pub(super) struct Project {
    pub(super) env: TestEnv,
    root: PathBuf,
}

/// The root of the repository.
pub(super) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// What an agent really printed, where the corpus is there; else what the repository has.
fn stream(recorded: &str, kept: &str) -> Vec<u8> {
    let path = repository().join("../shared/fixtures").join(recorded);
    std::fs::read(&path).unwrap_or_else(|_| {
        eprintln!("skipped the recorded stream {recorded}: ../shared/fixtures is not there; the repository's own is used");
        std::fs::read(repository().join("crates/agents/fixtures").join(kept)).unwrap()
    })
}

/// What Claude Code prints when it answers with this.
pub(super) fn claude_says(text: &str) -> String {
    let session = "0b7c1111-0000-4000-8000-000000000001";
    let content = serde_json::json!([{ "type": "text", "text": text }]);
    let lines = [
        serde_json::json!({"type": "system", "subtype": "init", "session_id": session, "model": "claude-sonnet-4-5", "tools": []}),
        serde_json::json!({"type": "assistant", "session_id": session, "message": {"id": "msg_1", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": content, "usage": {"input_tokens": 1000, "output_tokens": 200}}}),
        serde_json::json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": session,
            "total_cost_usd": 0.006, "usage": {"input_tokens": 1000, "output_tokens": 200}}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

impl Project {
    /// A project with nothing in it, and no agents.
    pub(super) fn empty() -> Self {
        let env = TestEnv::new();
        let root = env.path("project");
        for dir in [&root, &env.path("bin"), &env.path("person")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_quipu"), env.path("bin/quipu")).unwrap();
        Self { env, root }
    }

    /// A copy of the examples, and an agent of every kind.
    pub(super) fn examples() -> Self {
        let mut project = Self::empty();
        let copy = project.env.path("examples");
        let done = Command::new("cp")
            .args(["-R", "-p"])
            .arg(repository().join("examples"))
            .arg(&copy)
            .status()
            .unwrap();
        assert!(done.success());
        project.root = copy.join("workflows");
        project.agents();
        project
    }

    /// Puts a fake of every agent on the `PATH`: they print what real ones have printed.
    pub(super) fn agents(&self) {
        let claude = stream(
            "claude-stream/rust-code-agent-sdks--subagent_sessions__general_purpose_compute.jsonl",
            "claude-stream/stdout.jsonl",
        );
        let half = claude_says("I begin.")
            .lines()
            .take(2)
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        self.agent(
            "claude",
            &[
                (
                    "How risky",
                    &claude_says(r#"{"risk": "low", "why": "There are more apples."}"#),
                    0,
                ),
                (
                    "Which fruits",
                    &claude_says("```json\n{\"fruits\": [\"apple\", \"pear\"]}\n```"),
                    0,
                ),
                ("Which label", &claude_says(r#"{"label": "bug"}"#), 0),
                ("Fail, please", &half, 1),
            ],
            &claude,
        );
        for (name, recorded, kept) in [
            (
                "codex",
                "codex-exec/rust-claude-codes--captures__multi_command.jsonl",
                "codex-exec/stdout.jsonl",
            ),
            (
                "gemini",
                "gemini-stream/untether--fixtures__gemini_stream_success.jsonl",
                "gemini-stream/stdout.jsonl",
            ),
            (
                "copilot",
                "copilot/agentviz--fixtures__test-copilot.jsonl",
                "copilot/stdout.jsonl",
            ),
            (
                "opencode",
                "opencode/takopi--fixtures__opencode_stream_success.jsonl",
                "opencode-run/stdout.jsonl",
            ),
        ] {
            self.agent(name, &[], &stream(recorded, kept));
        }
        let vibe =
            std::fs::read(repository().join("crates/agents/fixtures/vibe/session.jsonl")).unwrap();
        self.agent("vibe", &[], &vibe);
        let issue =
            r#"{"number": 7, "title": "Apples are missing", "body": "All six.", "state": "OPEN"}"#;
        self.agent("gh", &[("issue edit", "", 0)], issue.as_bytes());
    }

    /// An agent on the `PATH` that prints the first of these whose words are among its arguments, and what it prints
    /// otherwise.
    pub(super) fn agent(&self, name: &str, cases: &[(&str, &str, i32)], otherwise: &[u8]) {
        let mut script = String::from("#!/bin/sh\ncase \"$*\" in\n");
        let mut number = 0;
        let mut keep = |text: &[u8]| {
            number += 1;
            self.env.file(&format!("bin/{name}.{number}"), text)
        };
        for (words, text, code) in cases {
            let file = keep(text.as_bytes());
            script.push_str(&["  *'", words, "'*) cat '", &file, "'; exit "].concat());
            script.push_str(&[&code.to_string(), " ;;\n"].concat());
        }
        script.push_str(&["  *) cat '", &keep(otherwise), "' ;;\nesac\n"].concat());
        self.program(name, &script);
    }

    /// A program on the `PATH`.
    pub(super) fn program(&self, name: &str, script: &str) {
        let path = self.env.file(&format!("bin/{name}"), script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }

    pub(super) fn file(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A command in the project, by the arguments of `quipu`.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.env.command(args);
        self.here(&mut command);
        command
    }

    /// A line for the shell, in which `quipu` is this program.
    pub(super) fn shell(&self, line: &str) -> Ran {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", line])
            .env_clear()
            .env("QUIPU_HOME", self.env.dir.path())
            .env("HOME", self.env.path("person"))
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8");
        self.here(&mut command);
        self.ended(command)
    }

    fn here(&self, command: &mut Command) {
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin",
            self.env.path("bin").display()
        );
        command
            .current_dir(&self.root)
            .env("PATH", path)
            .stdin(Stdio::null());
    }

    /// Runs `quipu` to its end.
    pub(super) fn quipu(&self, args: &[&str]) -> Ran {
        self.ended(self.command(args))
    }

    fn ended(&self, mut command: Command) -> Ran {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let read = |mut from: Box<dyn std::io::Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).unwrap();
                String::from_utf8(bytes).unwrap()
            })
        };
        let stdout = read(Box::new(child.stdout.take().unwrap()));
        let stderr = read(Box::new(child.stderr.take().unwrap()));
        let code = wait(&mut child);
        let home = self.env.dir.path().to_str().unwrap();
        Ran {
            stdout: stdout.join().unwrap().replace(home, "HOME"),
            stderr: stderr.join().unwrap().replace(home, "HOME"),
            code,
        }
    }

    /// All transcripts of the home.
    pub(super) fn transcripts(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.env.path("transcripts")) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        paths.sort();
        paths
    }

    /// The transcript of the only run that nobody called.
    pub(super) fn only_run(&self) -> (String, Vec<Value>) {
        let mut roots = self.transcripts().into_iter().filter_map(|path| {
            let events = events_of(&std::fs::read_to_string(&path).unwrap());
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_root = events
                .first()
                .is_some_and(|event| event["parent_run_id"].is_null());
            is_root.then_some((id, events))
        });
        let first = roots.next().expect("a run");
        assert!(roots.next().is_none(), "one run");
        first
    }

    /// `quipu verify` finds nothing in any transcript.
    pub(super) fn verified(&self, what: &str) {
        let paths = self.transcripts();
        let mut args = vec!["verify"];
        args.extend(paths.iter().map(|path| path.to_str().unwrap()));
        let ran = self.quipu(&args);
        assert_eq!(ran.code, 0, "{what}: {}{}", ran.stdout, ran.stderr);
    }
}

/// Waits for a process, but not for ever.
pub(super) fn wait(child: &mut Child) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or_default());
        }
        if began.elapsed() > MOST {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("no end within {MOST:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something is so.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < MOST, "{what} within {MOST:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn events_of(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A server that answers requests with what `answer` makes of the first line and the body, until the test ends.
pub(super) fn serve(
    answer: impl Fn(&str, &str) -> (&'static str, String) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim_end().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let (kind, text) = answer(first.trim_end(), &String::from_utf8(body).unwrap());
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                text.len()
            );
            stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(text.as_bytes()))
                .ok();
        }
    });
    address
}
