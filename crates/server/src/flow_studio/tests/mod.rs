//! The interface as clients see it, through sockets. `docs/flow-studio.md` has a row for each endpoint.

mod conformance;
mod events;
mod hostile;
mod own;
mod steps;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::testkit::{Answer, Served};

/// Run directories of the formats' tests.
pub(super) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/fixtures/flow")
}

pub(super) const SHAPES: &str = "run-20251209-143022-abc123";
pub(super) const LOOP: &str = "stepwise-loop-claude";
pub(super) const GEMINI: &str = "stepwise-gemini";

/// A checkout of Flow Studio with runs and examples, and a server for it.
pub(super) struct Site {
    pub(super) folder: tempfile::TempDir,
    pub(super) served: Served,
}

pub(super) fn put(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(bytes.as_ref()).unwrap();
}

pub(super) fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = std::fs::File::options().append(true).open(path).unwrap();
    file.write_all(text.as_ref()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

impl Site {
    /// One example and two runs.
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(fill: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let swarm = folder.path().join("swarm");
        copy(&fixtures().join(LOOP), &swarm.join("examples").join(LOOP));
        for run in [SHAPES, GEMINI] {
            copy(&fixtures().join(run), &swarm.join("runs").join(run));
        }
        fill(&swarm);
        let directories = vec![swarm.join("runs"), swarm.join("examples")];
        let served = Served::with(|_| {}, |options| options.run_directories = directories);
        Self { folder, served }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("swarm").join(path)
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.served.get(&format!("/api/{path}"))
    }

    #[track_caller]
    pub(super) fn ok(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.json()
    }

    /// The body of a refusal.
    #[track_caller]
    pub(super) fn refused(&self, path: &str, status: u16) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.json()
    }
}

/// The names of the fields of an object, sorted.
pub(super) fn keys(value: &Value) -> Vec<&str> {
    let fields = value.as_object().unwrap().keys();
    let mut keys: Vec<&str> = fields.map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Whether an object has all of these fields.
#[track_caller]
pub(super) fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no {field}: {value}");
    }
}

/// A client of a stream.
pub(super) struct Listener {
    stream: TcpStream,
    raw: Vec<u8>,
    text: String,
    pub(super) head: String,
    pub(super) has_ended: bool,
}

/// A frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) id: Option<String>,
    pub(super) event: String,
    pub(super) data: Value,
}

impl Listener {
    pub(super) fn new(served: &Served, path: &str, last: Option<&str>) -> Self {
        let mut stream = served.connect();
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        let head = format!(
            "GET /api/{path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{last}\r\n",
            served.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        Self {
            stream,
            raw: Vec::new(),
            text: String::new(),
            head: String::new(),
            has_ended: false,
        }
    }

    /// Reads what is there.
    fn pump(&mut self) {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => self.has_ended = true,
            Ok(read) => self.raw.extend_from_slice(&piece[..read]),
            Err(_) => {}
        }
        if self.head.is_empty() {
            let Some(end) = self.raw.windows(4).position(|four| four == b"\r\n\r\n") else {
                return;
            };
            let rest = self.raw.split_off(end + 4);
            self.head = String::from_utf8(std::mem::replace(&mut self.raw, rest)).unwrap();
        }
        while let Some(end) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let length = std::str::from_utf8(&self.raw[..end]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap();
            if self.raw.len() < end + 2 + length + 2 {
                return;
            }
            let chunk = &self.raw[end + 2..end + 2 + length];
            self.text.push_str(std::str::from_utf8(chunk).unwrap());
            self.raw.drain(..end + 4 + length);
            if length == 0 {
                self.has_ended = true;
                return;
            }
        }
    }

    /// The frames so far.
    pub(super) fn frames(&self) -> Vec<Frame> {
        let whole = self.text.rfind("\n\n").map_or("", |end| &self.text[..end]);
        let frames = whole.split("\n\n").filter(|frame| !frame.is_empty());
        frames
            .map(|frame| {
                let field = |name: &str| {
                    let mut lines = frame.lines();
                    lines
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                Frame {
                    id: field("id: "),
                    event: field("event: ").unwrap(),
                    data: serde_json::from_str(&field("data: ").unwrap()).unwrap(),
                }
            })
            .collect()
    }

    /// Reads until the frames are as they should be, or it takes too long.
    #[track_caller]
    pub(super) fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&[Frame], bool) -> bool,
    ) -> Vec<Frame> {
        let begun = Instant::now();
        loop {
            let frames = self.frames();
            if is_so(&frames, self.has_ended) {
                return frames;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "not {what}: {} {:?}",
                self.head,
                frames
            );
            self.pump();
        }
    }

    /// Reads until the server closes.
    #[track_caller]
    pub(super) fn all(&mut self) -> Vec<Frame> {
        self.until("at its end", |_, has_ended| has_ended)
    }
}

/// The frames that events are behind.
pub(super) fn events(frames: &[Frame]) -> Vec<&Frame> {
    frames.iter().filter(|frame| frame.id.is_some()).collect()
}

/// A line of a journal.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it is written where it is used"
)]
pub(super) fn line(kind: &str, more: Value) -> String {
    let mut line = json!({
        "run_id": "r", "ts": "2025-12-09T10:00:00.5+00:00Z", "kind": kind,
        "flow_key": null, "step_id": null, "agent_key": null, "payload": {},
    });
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    format!("{line}\n")
}
