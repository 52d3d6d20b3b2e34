//! A reference client, and things to follow.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_agents::Host;
use quipu_model::{Block, Body, Draft, Fidelity, Place, RunId, Step};
use quipu_record::{Durability, Recorder, RecorderOptions, Storage};
use quipu_store::Store;
use quipu_store::import::{ImportOptions, Progress};
use serde_json::Value;

/// Something that a stream said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) data: String,
    /// Of which transcript the stream last said that events are.
    pub(super) about: Option<String>,
}

impl Frame {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("not JSON: {}", self.data))
    }
}

/// A client that reads frames as the standard says, and nothing else. It speaks HTTP/1.0, so that the body is what is between the
/// head and the end.
pub(super) struct Sse {
    pub(super) reader: BufReader<TcpStream>,
    pub(super) status: u16,
    pub(super) head: String,
    /// What a browser would send when it reconnects.
    pub(super) last_id: Option<String>,
    about: Option<String>,
}

impl Sse {
    pub(super) fn open(address: SocketAddr, path: &str, last_id: Option<&str>) -> Self {
        Self::open_with(address, path, last_id, "")
    }

    /// The same, with more lines in the head of the request.
    pub(super) fn open_with(
        address: SocketAddr,
        path: &str,
        last_id: Option<&str>,
        more: &str,
    ) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        let timeout = Some(Duration::from_secs(20));
        stream.set_read_timeout(timeout).unwrap();
        let last = last_id.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        write!(
            stream,
            "GET {path} HTTP/1.0\r\nHost: {address}\r\n{last}{more}\r\n"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "no head: {head}");
        }
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_lowercase(),
            reader,
            last_id: last_id.map(str::to_owned),
            about: None,
        }
    }

    /// What is said next; `None` when the stream is over.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let (mut id, mut name, mut data) = (None, "message".to_owned(), None::<String>);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches('\n');
            if line.is_empty() {
                if id.is_some() {
                    self.last_id.clone_from(&id);
                }
                if let Some(data) = data {
                    if name == "transcript" && id.is_none() {
                        self.about = Some(data.clone());
                    }
                    let about = self.about.clone();
                    return Some(Frame {
                        id,
                        name,
                        data,
                        about,
                    });
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => id = Some(value.to_owned()),
                "event" => value.clone_into(&mut name),
                "data" => match &mut data {
                    Some(data) => *data = format!("{data}\n{value}"),
                    None => data = Some(value.to_owned()),
                },
                "retry" => assert!(value.parse::<u32>().is_ok()),
                other => assert!(other.is_empty(), "an unknown field: {other}"),
            }
        }
    }

    /// The next frame that is not a heartbeat.
    pub(super) fn told(&mut self) -> Frame {
        loop {
            let frame = self.next().expect("the stream is over");
            if frame.name != "heartbeat" {
                return frame;
            }
        }
    }

    /// The next frame, which has this name.
    #[track_caller]
    pub(super) fn expect(&mut self, name: &str) -> Frame {
        let frame = self.told();
        assert_eq!(frame.name, name, "{frame:?}");
        frame
    }

    /// The next `count` events, those of the stream itself left out.
    pub(super) fn events(&mut self, count: usize) -> Vec<Frame> {
        let mut events = Vec::new();
        while events.len() < count {
            let frame = self.told();
            if frame.id.is_some() {
                events.push(frame);
            }
        }
        events
    }
}

pub(super) const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Records a run in a home.
pub(super) fn record(home: &Path, run: &str) -> Recorder {
    let run = RunId::new(run).unwrap();
    let options = RecorderOptions {
        durability: Durability::None,
        ..RecorderOptions::default()
    };
    Storage::at(home).record(&run, options).unwrap()
}

pub(super) fn say(recorder: &Recorder, text: &str) -> u64 {
    let blocks = vec![Block::text(Fidelity::AgentEmitted, text)];
    let draft = Draft::new(Place::step("work"), Body::AssistantMessage(blocks));
    recorder.record(&draft).unwrap()
}

pub(super) fn start(recorder: &Recorder) {
    let step = Step::new("nightly", "workflow");
    let draft = Draft::new(Place::run(), Body::RunStarted(Some(step)));
    recorder.record(&draft).unwrap();
}

pub(super) fn complete(recorder: &Recorder) {
    let draft = Draft::new(Place::run(), Body::RunCompleted(None));
    recorder.record(&draft).unwrap();
}

pub(super) fn file_of(home: &Path, run: &str) -> PathBuf {
    Storage::at(home).path_of(&RunId::new(run).unwrap())
}

/// Writes a file anew, in its place.
pub(super) fn write(path: &Path, contents: impl AsRef<[u8]>) {
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(contents.as_ref()).unwrap();
}

/// The lines of a file.
pub(super) fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Sessions of an agent, in a directory of their own.
pub(super) struct Sessions {
    directory: tempfile::TempDir,
}

impl Sessions {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    fn path(&self, session: &str) -> PathBuf {
        let projects = self.directory.path().join(".claude/projects/-code");
        std::fs::create_dir_all(&projects).unwrap();
        projects.join(format!("{session}.jsonl"))
    }

    /// The agent adds some prompts, from this one on.
    pub(super) fn add(&self, session: &str, prompts: std::ops::Range<u32>) {
        let path = self.path(session);
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        for n in prompts {
            let line = format!(
                r#"{{"type":"user","uuid":"{n:0>36}","sessionId":"{session}","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code","message":{{"role":"user","content":"prompt {n} of {session}"}}}}"#
            );
            text.extend([line.as_str(), "\n"]);
        }
        write(&path, text);
    }

    pub(super) fn import(&self, home: &Path) {
        let store = Store::open(home).unwrap();
        let host = Host::new(self.directory.path().to_owned(), |_| None);
        let options = ImportOptions {
            now: "2026-11-15T12:00:00Z".parse().unwrap(),
            agents: Vec::new(),
            dry_run: false,
            threads: 1,
            redact: None,
        };
        let report = store.import(&host, &options, &Progress::default()).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

/// The events of a transcript as lines, as the store gives them.
pub(super) fn stored(home: &Path, id: &str) -> Vec<String> {
    let store = Store::open(home).unwrap();
    let transcript = store.read(store.find(id).unwrap()).unwrap();
    let line = |event: &quipu_model::Event| {
        let mut line = Vec::new();
        quipu_exchange::encode_log(event, &mut line);
        String::from_utf8(line).unwrap().trim_end().to_owned()
    };
    transcript.events.iter().map(line).collect()
}
