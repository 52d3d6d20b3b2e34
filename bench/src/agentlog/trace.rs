//! Traces to measure with, made up, the same for the same seed.
//!
//! Both kinds are of sessions in which a model is asked, calls tools and is asked again. In a `mixed` one each
//! request carries all that was said before, a long instruction and the tools, as they do when an agent is
//! recorded; in a `small` one records are short, so that what is done once for each of them counts. Keys are
//! written in the order in which programs write them, which is not the canonical one, and about one word in
//! eight is not ASCII.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use jiff::Timestamp;
use quipu_formats::agentlog::{ContentId, Draft, Kind, Writer};
use quipu_model::Json;

use super::payload::{
    Answer, Arguments, Call, Content, Failure, Message, Meta, Metadata, Output, Params, Part,
    Property, Reply, Request, Row, Runtime, Schema, Sdk, Spent, Tags, Tool,
};
use crate::corpus::dice::Dice;

/// Changes with what is written, so that an older trace is not taken for this one.
const EDITION: u32 = 1;

/// The first moment, in milliseconds since 1970: the beginning of 2026.
const BEGINNING: i64 = 1_767_225_600_000;

/// What the records of a trace are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Long requests with everything that was said before
    Mixed,
    /// Short records
    Small,
}

const WORDS: [&str; 64] = [
    "a",
    "the",
    "this",
    "we",
    "it",
    "is",
    "was",
    "not",
    "for",
    "with",
    "from",
    "then",
    "order",
    "parcel",
    "invoice",
    "refund",
    "customer",
    "answer",
    "branch",
    "commit",
    "build",
    "failed",
    "passed",
    "test",
    "value",
    "field",
    "index",
    "server",
    "client",
    "request",
    "timeout",
    "retry",
    "latency",
    "queue",
    "worker",
    "schema",
    "column",
    "table",
    "row",
    "query",
    "cursor",
    "buffer",
    "parser",
    "token",
    "stream",
    "merge",
    "review",
    "deploy",
    "release",
    "config",
    "module",
    "import",
    "export",
    "return",
    "string",
    "number",
    "garçon",
    "Łódź",
    "größer",
    "señal",
    "привет",
    "東京",
    "データ",
    "👍",
];
/// What stands behind a word now and then.
const MARKS: [&str; 8] = [
    ".",
    ",",
    "\n",
    ".\n\n",
    " \"as it was\"",
    " C:\\temp\\x",
    "\t|",
    ":",
];
const MODELS: [&str; 3] = ["large-4-7", "small-4-5", "other-5.3"];
/// Tools, and what they take.
const TOOLS: [(&str, &[(&str, &str)]); 4] = [
    ("find_files", &[("query", "string"), ("limit", "integer")]),
    ("look_up_order", &[("order_id", "string")]),
    (
        "refund_order",
        &[("order_id", "string"), ("amount", "number")],
    ),
    ("run_query", &[("query", "string"), ("timeout_s", "number")]),
];

/// A trace of about so many bytes, made once and kept in the directory.
pub(crate) fn get(directory: &Path, profile: Profile, bytes: u64, seed: u64) -> Result<PathBuf> {
    let name = format!("{profile:?}").to_lowercase();
    let path = directory.join(format!("{EDITION}-{name}-{bytes}-{seed}.agentlog"));
    if path.is_file() {
        return Ok(path);
    }
    crate::table::now("making up a trace");
    // Whole or not at all.
    let unfinished = path.with_extension("unfinished");
    let file = File::create(&unfinished).with_context(|| unfinished.display().to_string())?;
    let mut pen = Pen::new(profile, seed, BufWriter::with_capacity(1 << 20, file));
    while pen.written < bytes {
        pen.session()?;
    }
    pen.out.into_inner().flush()?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// As much of a trace as is whole records in its first `bytes` bytes: a trace as well.
pub(crate) fn beginning(trace: &Path, bytes: u64, directory: &Path) -> Result<PathBuf> {
    let path = directory.join("beginning.agentlog");
    let mut to = BufWriter::new(File::create(&path)?);
    let mut from = BufReader::new(File::open(trace)?);
    // A line at a time: what this process holds is counted as held by those it starts.
    let (mut line, mut written) = (Vec::new(), 0);
    while from.read_until(b'\n', &mut line)? > 0 && written + line.len() as u64 <= bytes {
        to.write_all(&line)?;
        written += line.len() as u64;
        line.clear();
    }
    ensure!(written > 0, "there is no record shorter than {bytes} bytes");
    to.flush()?;
    Ok(path)
}

/// What a trace is written with.
struct Pen<W> {
    profile: Profile,
    dice: Dice,
    out: Writer<W>,
    written: u64,
    now: i64,
    sessions: u64,
    trace_id: String,
    instruction: String,
    tools: Vec<Tool>,
    previous: Option<ContentId>,
}

impl<W: Write> Pen<W> {
    fn new(profile: Profile, seed: u64, out: W) -> Self {
        let mut pen = Self {
            profile,
            dice: Dice::new(seed),
            out: Writer::new(out),
            written: 0,
            now: BEGINNING,
            sessions: 0,
            trace_id: String::new(),
            instruction: "Be brief.".to_owned(),
            tools: Vec::new(),
            previous: None,
        };
        pen.trace_id = format!("{:016x}{:016x}", pen.dice.next(), pen.dice.next());
        if profile == Profile::Mixed {
            pen.instruction = pen.prose(180);
        }
        for (name, properties) in TOOLS {
            let properties = properties.iter().map(|&(name, kind)| {
                let description = pen.words(8);
                (name, Property { kind, description })
            });
            let input_schema = Schema(properties.collect());
            let description = pen.words(25);
            pen.tools.push(Tool {
                name,
                description,
                input_schema,
            });
        }
        pen
    }

    /// Adds a record some milliseconds after the last.
    fn put(
        &mut self,
        kind: Kind,
        parent: Option<ContentId>,
        payload: &impl serde::Serialize,
    ) -> Result<ContentId> {
        self.put_json(kind, parent, &Json::of(payload)?)
    }

    fn put_json(
        &mut self,
        kind: Kind,
        parent: Option<ContentId>,
        payload: &Json,
    ) -> Result<ContentId> {
        let meta = Json::of(&Meta {
            session_tag: format!("s{}", self.sessions),
            trace_id: &self.trace_id,
        })?;
        let ts = Timestamp::from_millisecond(self.now)?;
        let mut draft = Draft::new(kind, ts, parent, payload);
        if matches!(kind, Kind::Metadata | Kind::ChatRequest) {
            draft = draft.with_meta(&meta);
        }
        let id = self.out.append(&draft)?;
        // The rest of the envelope is about this long; it need not be exact.
        self.written += payload.get().len() as u64 + 270;
        self.previous = Some(id);
        Ok(id)
    }

    /// One session: a marker, then some turns.
    fn session(&mut self) -> Result<()> {
        self.sessions += 1;
        self.pass(400);
        let metadata = Metadata {
            sdk: Sdk {
                name: "bench",
                version: "1.0.0",
            },
            runtime: Runtime {
                python: "3.11.9",
                platform: "linux-x86_64",
            },
            tags: Tags {
                env: "prod",
                session: format!("s{:06}", self.sessions),
            },
        };
        self.put(Kind::Metadata, self.previous, &metadata)?;
        let words = match self.profile {
            Profile::Mixed => 15 + self.dice.below(105),
            Profile::Small => 8,
        };
        let mut messages = vec![
            Message {
                role: "system",
                content: Content::Text(self.instruction.clone()),
            },
            Message {
                role: "user",
                content: Content::Text(self.prose(words)),
            },
        ];
        for _ in 0..2 + self.dice.below(8) {
            self.turn(&mut messages)?;
        }
        Ok(())
    }

    /// The model is asked, answers, and perhaps calls a tool.
    fn turn(&mut self, messages: &mut Vec<Message>) -> Result<()> {
        self.pass(50);
        let model = self.dice.pick(&MODELS);
        let mixed = self.profile == Profile::Mixed;
        let from = if mixed { 0 } else { messages.len() - 2 };
        let request = Request {
            model,
            messages: &messages[from..],
            params: Params {
                temperature: [0.0, 0.2, 0.7, 1.0][self.dice.below(4)],
                top_p: 1.0,
                max_tokens: [256, 1024, 4096][self.dice.below(3)],
            },
            tools: mixed.then_some(&self.tools[..]),
        };
        // As text, because it borrows the tools.
        let request = Json::of(&request)?;
        let asked = self.put_json(Kind::ChatRequest, self.previous, &request)?;
        if self.dice.chance(3) {
            let failure = Failure::rate_limit(1 + self.dice.below(60));
            self.put(Kind::Error, Some(asked), &failure)?;
            return Ok(());
        }
        let latency = self.pass(6_000);
        let call = self.dice.chance(70).then(|| self.call());
        let words = if mixed { 10 + self.dice.below(240) } else { 6 };
        let mut content = vec![Part::Text {
            text: self.prose(words),
        }];
        if let Some(call) = &call {
            content.push(Part::ToolUse {
                id: call.tool_call_id.clone(),
                name: call.tool_name,
                input: call.arguments.clone(),
            });
        }
        let reply = Reply {
            model,
            content: &content,
            stop_reason: if call.is_some() {
                "tool_use"
            } else {
                "end_turn"
            },
            stop_sequence: None,
            usage: Spent::of(50 + self.dice.below(9_000), 5 + self.dice.below(900)),
            latency_ms: latency,
        };
        self.put(Kind::ChatResponse, Some(asked), &reply)?;
        messages.push(Message {
            role: "assistant",
            content: Content::Parts(content),
        });
        let content = match call {
            Some(call) => Content::Parts(vec![self.answer(&call)?]),
            None => Content::Text(self.prose(12)),
        };
        messages.push(Message {
            role: "user",
            content,
        });
        Ok(())
    }

    fn call(&mut self) -> Call {
        Call {
            tool_name: TOOLS[self.dice.below(TOOLS.len())].0,
            tool_call_id: format!("call_{:016x}", self.dice.next()),
            arguments: Arguments {
                query: self.words(3),
                order_id: (10_000 + self.dice.below(89_999)).to_string(),
                amount: self.dice.below(90_000) as f64 / 100.0,
            },
        }
    }

    /// The tool is called and gives back.
    fn answer(&mut self, call: &Call) -> Result<Part> {
        self.pass(3);
        let called = self.put(Kind::ToolCall, self.previous, call)?;
        let latency_ms = self.pass(900);
        let mixed = self.profile == Profile::Mixed;
        let output = if self.dice.chance(60) {
            let words = if mixed { 20 + self.dice.below(580) } else { 10 };
            Output::Text(self.prose(words))
        } else {
            let rows = if mixed { 1 + self.dice.below(29) } else { 2 };
            Output::Rows {
                rows: (0..rows).map(|id| self.row(id)).collect(),
                total: self.dice.below(1_000_000),
            }
        };
        let content = match &output {
            Output::Text(text) => text.clone(),
            rows @ Output::Rows { .. } => serde_json::to_string(rows)?,
        };
        let tool_use_id = call.tool_call_id.clone();
        let answer = Answer {
            tool_call_id: &call.tool_call_id,
            output,
            is_error: false,
            latency_ms,
        };
        self.put(Kind::ToolResult, Some(called), &answer)?;
        Ok(Part::ToolResult {
            tool_use_id,
            content,
        })
    }

    fn row(&mut self, id: usize) -> Row {
        Row {
            id,
            name: self.words(2),
            score: self.dice.below(10_000) as f64 / 10_000.0,
            ok: self.dice.chance(50),
        }
    }

    /// Time passes; says how much.
    fn pass(&mut self, most: usize) -> i64 {
        let ms = i64::try_from(1 + self.dice.below(most)).unwrap_or(1);
        self.now += ms;
        ms
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.dice.pick(&WORDS)).collect();
        words.join(" ")
    }

    /// Words with marks between them.
    fn prose(&mut self, count: usize) -> String {
        let mut text = String::new();
        for n in 0..count {
            if n > 0 {
                text.push(' ');
            }
            text.push_str(self.dice.pick(&WORDS));
            if n % 17 == 12 {
                text.push_str(self.dice.pick(&MARKS));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_formats::agentlog::{Item, Reader};

    #[test]
    fn every_id_is_right_and_the_same_seed_says_the_same() {
        let directory = tempfile::tempdir().unwrap();
        for profile in [Profile::Mixed, Profile::Small] {
            let path = get(directory.path(), profile, 300_000, 7).unwrap();
            let text = fs::read(&path).unwrap();
            let difference = text.len().abs_diff(300_000);
            assert!(difference < 150_000, "{} bytes", text.len());
            let mut reader = Reader::new(&text[..]);
            let (mut records, mut last) = (0, None);
            while let Some(item) = reader.next().unwrap() {
                let Item::Record(record) = item else {
                    panic!("{item:?}")
                };
                assert_eq!(record.id().unwrap(), record.content_id().unwrap());
                let ts = record.ts().unwrap();
                assert!(last.replace(ts).is_none_or(|last| last <= ts));
                records += 1;
            }
            assert!(records > 30, "{records}");
            fs::remove_file(&path).unwrap();
            let again = get(directory.path(), profile, 300_000, 7).unwrap();
            assert_eq!(fs::read(again).unwrap(), text);
        }
    }

    #[test]
    fn the_beginning_of_a_trace_ends_with_a_record() {
        let directory = tempfile::tempdir().unwrap();
        let whole = get(directory.path(), Profile::Small, 100_000, 1).unwrap();
        let part = fs::read(beginning(&whole, 25_000, directory.path()).unwrap()).unwrap();
        assert!(part.len() <= 25_000 && part.len() > 20_000 && part.ends_with(b"}\n"));
        assert!(fs::read(whole).unwrap().starts_with(&part));
    }
}
