//! A run directory as a stream of records, in the order in which the run is told.
//!
//! A run is a set of files. Whoever keeps one needs all of them in one piece, and whoever tells it needs their lines
//! in the order of the run: the journal is the thread, and what a step said stands where the journal says that the
//! step ended. [`walk`](super::walk) makes these records of a directory; [`Teller`](super::Teller) makes events of
//! them. [`Record::encode`] writes one as a line of JSON and [`Record::decode`] reads it back, so that a stream of
//! them can be kept. The bytes of every file are in it as they are, and [`Files`](super::Files) gives them back.
//!
//! A line that is a JSON object stands in its record as it is (`json`); every other line and every document is a
//! text (`text`), or base64 where its bytes are not UTF-8 (`base64`).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Json, Place, Step, Timestamp};
use serde::{Deserialize, Serialize};

use super::time;

/// The version of the records. A reader that meets a higher one reads what it knows.
const VERSION: u64 = 1;

/// The longest record that is written. What would be longer is left out and says so.
const LONGEST: usize = 63 << 20;

/// How deep a line may nest that stands in its record as it is.
const DEPTH: usize = 120;

/// One record of a run.
#[derive(Debug, Clone)]
pub enum Record<'a> {
    /// What is known of the run as a whole. The first record.
    Run(Box<RunFacts>),
    /// A file that is read as a whole.
    Document(Part<'a>),
    /// A line of a transcript or of the journal.
    Line(Part<'a>),
    /// A line or a file that is too long to be kept.
    Cut(Part<'a>),
    /// An execution of a step began.
    Begin(Box<Execution>),
    /// An execution of a step ended.
    End(Box<Execution>, Outcome),
    /// A file of the run that is not part of the transcript.
    Left {
        /// The file, relative to the run.
        file: Cow<'a, str>,
        /// How many bytes it has.
        size: u64,
    },
    /// The run ended.
    Done(Box<RunEnd>),
}

/// A file, or a line of one.
#[derive(Debug, Clone, Default)]
pub struct Part<'a> {
    /// The file, relative to the run.
    pub file: Cow<'a, str>,
    /// The execution whose transcript or receipt it is; otherwise it is about the run.
    pub of: Option<u64>,
    /// Where in the run it belongs, where that is known and no execution says.
    pub place: Option<Place>,
    /// The line, from 1.
    pub line: u64,
    /// Where the line begins in its file.
    pub offset: u64,
    /// How many bytes it has, its end not counted.
    pub size: u64,
    /// Whether a line end follows it.
    pub terminated: bool,
    /// Its bytes, without the line end.
    pub bytes: Cow<'a, [u8]>,
}

/// What is known of a run as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFacts {
    /// The run, as its files name it.
    pub run_id: String,
    /// What it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The program that ran it, where it is another than Flow Studio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The run that called this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    /// The session in the agent's own terms, where a receipt names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The directory that was worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When it began.
    #[serde(with = "at", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The workflow: its name and kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<(String, String)>,
    /// Whether every step only pretended.
    #[serde(skip_serializing_if = "is_false")]
    pub stub: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnd {
    /// When.
    #[serde(with = "at", skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Why it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The workflow: its name and kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<(String, String)>,
    /// What it produced, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// One execution of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Execution {
    /// Its number among the executions of the run, from 1.
    pub number: u64,
    /// The flow.
    pub flow: String,
    /// The step.
    pub step: String,
    /// The agent; empty where nothing names one.
    pub agent: String,
    /// The engine, as the name of the transcript says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Which iteration of the step, from 0.
    pub iteration: u64,
    /// What the step is called.
    pub name: String,
    /// What kind of step it is.
    pub kind: String,
    /// Whether step and agent are a guess.
    #[serde(skip_serializing_if = "is_false")]
    pub ambiguous: bool,
    /// Whether its receipt says that it only pretended.
    #[serde(skip_serializing_if = "is_false")]
    pub stub: bool,
    /// Its transcript, relative to the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// Its receipt, relative to the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// When it began.
    #[serde(with = "at", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Whether only the journal tells of it: its files are not there, because a later execution wrote over them.
    #[serde(skip_serializing_if = "is_false")]
    pub overwritten: bool,
    /// Where in a recorded run it was, where its receipt says so: the path of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The same: the passes through the loops around it, from 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<u64>,
    /// The same: which attempt it was, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
}

impl Execution {
    /// Where in the run it is.
    pub fn place(&self) -> Place {
        if let Some(path) = &self.path {
            return Place {
                path: path.clone(),
                iterations: self.iterations.clone(),
                attempt: self.attempt.unwrap_or(1),
            };
        }
        Place::flat(path_of(&self.flow, &self.step), self.iteration)
    }

    pub(super) fn workflow_step(&self) -> Step {
        Step::new(self.name.clone(), self.kind.clone())
    }
}

/// The path of a step in a run.
pub(super) fn path_of(flow: &str, step: &str) -> String {
    match flow {
        "" => step.to_owned(),
        flow => format!("{flow}.{step}"),
    }
}

/// How an execution ended, as the journal says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// When.
    #[serde(with = "at", skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Times as text, with all their digits.
mod at {
    use quipu_model::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => to.collect_str(at),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        // What is not a time is as good as not there.
        let text = String::deserialize(from)?;
        Ok(super::time::parse(&text).map(|time| time.at))
    }
}

impl<'a> Record<'a> {
    /// Writes the record as a line, with its end.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let before = to.len();
        match self {
            Self::Run(facts) => {
                let head = format!(r#"{{"flow_run":{VERSION},"run":"#);
                object(to, &head, &**facts);
                to.extend_from_slice(b"}");
            }
            Self::Begin(execution) => {
                object(to, r#"{"begin":"#, &**execution);
                to.extend_from_slice(b"}");
            }
            Self::End(execution, outcome) => {
                object(to, r#"{"end":"#, &**execution);
                object(to, r#","outcome":"#, outcome);
                to.extend_from_slice(b"}");
            }
            Self::Done(end) => {
                object(to, r#"{"done":"#, &**end);
                to.extend_from_slice(b"}");
            }
            Self::Left { file, size } => {
                object(to, r#"{"left":"#, &**file);
                object(to, r#","size":"#, size);
                to.extend_from_slice(b"}");
            }
            Self::Document(part) => part.encode("document", to),
            Self::Line(part) => part.encode("line", to),
            Self::Cut(part) => part.encode("cut", to),
        }
        if let Self::Document(part) | Self::Line(part) = self
            && to.len() - before > LONGEST
        {
            to.truncate(before);
            let cut = Part {
                bytes: Cow::Borrowed(&[]),
                ..part.clone()
            };
            cut.encode("cut", to);
        }
        to.push(b'\n');
    }

    /// Reads a record; `None` when it is not one.
    pub fn decode(node: Node<'a>) -> Option<Self> {
        let part = |what: &str| {
            node.get(what)
                .and_then(|file| file.as_str())
                .map(|file| Part::decode(file, node))
        };
        if let Some(part) = part("line") {
            return Some(Self::Line(part));
        }
        if let Some(part) = part("document") {
            return Some(Self::Document(part));
        }
        if let Some(part) = part("cut") {
            return Some(Self::Cut(part));
        }
        if node.get("flow_run").is_some() {
            return read(node.get("run")?).map(Box::new).map(Self::Run);
        }
        if let Some(begin) = node.get("begin") {
            return read(begin).map(Box::new).map(Self::Begin);
        }
        if let Some(end) = node.get("end") {
            let outcome = node.get("outcome").and_then(read).unwrap_or_default();
            return Some(Self::End(Box::new(read(end)?), outcome));
        }
        if let Some(done) = node.get("done") {
            return read(done).map(Box::new).map(Self::Done);
        }
        let file = node.get("left")?.as_str()?;
        let size = node.get("size").and_then(|size| size.as_u64());
        Some(Self::Left {
            file,
            size: size.unwrap_or(0),
        })
    }

    /// Whether a stream that begins with this record is one of runs.
    pub fn begins(node: Node<'_>) -> bool {
        node.get("flow_run").is_some_and(|v| v.as_u64().is_some())
            && node
                .get("run")
                .is_some_and(|run| run.kind() == Kind::Object)
    }
}

fn object(to: &mut Vec<u8>, head: &str, value: &(impl Serialize + ?Sized)) {
    to.extend_from_slice(head.as_bytes());
    // Writing to memory does not fail.
    _ = serde_json::to_writer(to, value);
}

fn read<T: serde::de::DeserializeOwned>(node: Node<'_>) -> Option<T> {
    serde_json::from_str(node.raw().get()).ok()
}

impl<'a> Part<'a> {
    fn encode(&self, what: &str, to: &mut Vec<u8>) {
        to.extend_from_slice(b"{\"");
        to.extend_from_slice(what.as_bytes());
        object(to, "\":", &*self.file);
        for (key, number) in [
            ("of", self.of),
            ("n", Some(self.line).filter(|line| *line > 0)),
            ("at", Some(self.offset).filter(|offset| *offset > 0)),
        ] {
            if let Some(number) = number {
                object(to, &format!(r#","{key}":"#), &number);
            }
        }
        if let Some(place) = &self.place {
            object(to, r#","path":"#, &place.path);
            object(to, r#","iteration":"#, &place.iteration());
        }
        if what == "line" && !self.terminated {
            to.extend_from_slice(br#","open":true"#);
        }
        if what == "cut" {
            object(to, r#","size":"#, &self.size);
        } else {
            self.content(what, to);
        }
        to.push(b'}');
    }

    fn content(&self, what: &str, to: &mut Vec<u8>) {
        match simdutf8::basic::from_utf8(&self.bytes) {
            Ok(text) if what == "line" && stands(text) => {
                to.extend_from_slice(br#","json":"#);
                to.extend_from_slice(text.as_bytes());
            }
            Ok(text) => object(to, r#","text":"#, text),
            Err(_) => object(to, r#","base64":"#, &STANDARD.encode(&self.bytes)),
        }
    }

    fn decode(file: Cow<'a, str>, node: Node<'a>) -> Self {
        let number = |key: &str| node.get(key).and_then(|n| n.as_u64());
        let bytes = if let Some(json) = node.get("json") {
            Cow::Borrowed(json.raw().get().as_bytes())
        } else if let Some(text) = node.text("text") {
            match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }
        } else {
            let coded = node.text("base64").unwrap_or_default();
            Cow::Owned(STANDARD.decode(coded.as_bytes()).unwrap_or_default())
        };
        let place = node
            .text("path")
            .map(|path| Place::flat(path.into_owned(), number("iteration").unwrap_or(0)));
        Self {
            file,
            of: number("of"),
            place,
            line: number("n").unwrap_or(0),
            offset: number("at").unwrap_or(0),
            size: number("size").unwrap_or(bytes.len() as u64),
            terminated: node.get("open").is_none(),
            bytes,
        }
    }

    /// Its text. Bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Whether a line can stand in its record as it is, and come back as it was.
fn stands(text: &str) -> bool {
    let is_object = text.starts_with('{') && text.ends_with('}') && !text.contains(['\r', '\n']);
    is_object && Tape::new().read(text, DEPTH).is_ok()
}

/// A value of a document, as text that can be kept.
pub(super) fn result(json: Option<&Json>) -> Option<String> {
    json.map(|json| json.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(record: &Record<'_>) -> String {
        let mut line = Vec::new();
        record.encode(&mut line);
        let text = String::from_utf8(line).unwrap();
        assert_eq!(text.lines().count(), 1);
        let mut tape = Tape::new();
        let node = tape.read(text.trim_end(), 128).unwrap();
        format!("{:?}", Record::decode(node).unwrap())
    }

    #[test]
    fn records_come_back_as_they_were() {
        let part = |bytes: &'static [u8], terminated| Part {
            file: Cow::Borrowed("build/llm/a-b-\"c\".jsonl"),
            of: Some(3),
            place: Some(Place::flat("build.a", 2)),
            line: 7,
            offset: 90,
            size: bytes.len() as u64,
            terminated,
            bytes: Cow::Borrowed(bytes),
        };
        for bytes in [
            &b"{\"a\": [1,  2]}"[..],
            b"{\"a\": 1, \"a\": 2}",
            b" {\"a\": 1}",
            b"{\"a\": 1}\r",
            b"\xef\xbb\xbf{}",
            b"{\"a\": \xff}",
            b"{torn",
            b"",
            b"[1]",
        ] {
            for terminated in [true, false] {
                let record = Record::Line(part(bytes, terminated));
                assert_eq!(back(&record), format!("{record:?}"));
            }
            let record = Record::Document(part(bytes, true));
            assert_eq!(back(&record), format!("{record:?}"));
        }
        let execution = Execution {
            number: 4,
            flow: "build".to_owned(),
            step: "impl".to_owned(),
            iteration: 2,
            started_at: Some("2025-12-09T14:30:22.123456789Z".parse().unwrap()),
            ..Execution::default()
        };
        let outcome = Outcome {
            error: Some("no".to_owned()),
            ..Outcome::default()
        };
        for record in [
            Record::Begin(Box::new(execution.clone())),
            Record::End(Box::new(execution), outcome),
            Record::Run(Box::default()),
            Record::Done(Box::default()),
            Record::Left {
                file: Cow::Borrowed("plan/adr.md"),
                size: 12,
            },
        ] {
            assert_eq!(back(&record), format!("{record:?}"));
        }
    }
}
