//! Documents of any length, in bounded memory; and how fast that is.

use std::io;
use std::time::Instant;

use quipu_model::{
    Annotations, Block, Body, Event, Fidelity, Header, Json, LogBody, Notes, Place, RunId, Source,
    Status, ToolCall, ToolResult, Usage,
};

use crate::normalized::{Beyond, Options, Writer, read, verify};

/// A document of at least so many bytes that is nowhere as a whole.
struct Long {
    head: Vec<u8>,
    item: Vec<u8>,
    left: usize,
    tail: &'static [u8],
    /// What is given out now, and how much of it was.
    now: Vec<u8>,
    at: usize,
    state: u8,
}

impl Long {
    fn new(bytes: usize) -> Self {
        let text = "The quick brown fox \\\"jumps\\\" over {lazy} [dogs].\\n".repeat(40);
        let item = format!(
            "{{\"id\":\"x\",\"type\":\"assistant_message\",\"timestamp\":\"2026-06-22T10:00:03Z\",\"text\":\"{text}\"}}"
        );
        Self {
            head: b"{\"schemaVersion\":\"0.1.0\",\"source\":{\"agent\":\"a\"},\"events\":["
                .to_vec(),
            left: bytes / item.len() + 1,
            item: item.into_bytes(),
            tail: b"]}",
            now: Vec::new(),
            at: 0,
            state: 0,
        }
    }

    fn more(&mut self) -> bool {
        self.at = 0;
        self.now.clear();
        match self.state {
            0 => {
                self.now.extend_from_slice(&self.head);
                self.now.extend_from_slice(&self.item);
                self.state = 1;
            }
            1 if self.left > 1 => {
                self.left -= 1;
                self.now.push(b',');
                self.now.extend_from_slice(&self.item);
            }
            1 => {
                self.now.extend_from_slice(self.tail);
                self.state = 2;
            }
            _ => return false,
        }
        true
    }
}

impl io::Read for Long {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut given = 0;
        while given < to.len() {
            if self.at == self.now.len() && !self.more() {
                break;
            }
            let n = (to.len() - given).min(self.now.len() - self.at);
            to[given..given + n].copy_from_slice(&self.now[self.at..self.at + n]);
            self.at += n;
            given += n;
        }
        Ok(given)
    }
}

#[test]
fn a_document_of_half_a_gigabyte_is_held_event_by_event() {
    let bytes: usize = if cfg!(debug_assertions) {
        120 << 20
    } else {
        500 << 20
    };
    let (mut events, mut texts) = (0_u64, 0_usize);
    let read = read(Long::new(bytes), &mut |event| {
        events += 1;
        if let LogBody::Exchange(body) = &event.body {
            texts += body.texts().map(str::len).sum::<usize>();
        }
    })
    .unwrap();
    assert_eq!(read.events, events);
    assert!(texts > bytes / 2);
    assert!(read.held < 64 * 1024, "{} bytes were held", read.held);
}

fn typical() -> (Header, Vec<Event<LogBody>>) {
    let run_id = RunId::new("r1").unwrap();
    let mut header = Header::new(run_id.clone());
    let fidelity = Fidelity::AgentEmitted;
    let output = "test result: ok. 12 passed; 0 failed\n    at \"src/lib.rs\":42\n".repeat(30);
    let events: Vec<Event<LogBody>> = (1..=30_000_u64)
        .map(|seq| {
            let body = match seq % 3 {
                0 => Body::AssistantMessage(vec![Block::text(
                    fidelity,
                    "I will look at the tests next.\n".repeat(12),
                )]),
                1 => Body::ToolCall(ToolCall {
                    name: "Bash".to_owned(),
                    call_id: format!("toolu_{seq}"),
                    input: Some(
                        Json::parse(
                            r#"{"command":"cargo test --workspace","description":"Run the tests"}"#,
                        )
                        .unwrap(),
                    ),
                    fidelity,
                }),
                _ => Body::ToolResult(ToolResult {
                    name: "Bash".to_owned(),
                    call_id: format!("toolu_{}", seq - 1),
                    input: None,
                    output: Some(Json::string(&output)),
                    error: None,
                    fidelity,
                }),
            };
            let event = Event {
                seq,
                run_id: run_id.clone(),
                parent_run_id: None,
                timestamp: "2026-06-22T10:00:03.123Z".parse().unwrap(),
                place: Place::run(),
                body: LogBody::Exchange(body),
                annotations: Annotations::from(Notes {
                    native_id: Some(format!("0b1c2d3e-{seq:012}")),
                    model: Some("claude-opus-4".to_owned()),
                    usage: Some(Usage {
                        input: Some(12),
                        output: Some(34),
                        ..Usage::default()
                    }),
                    status: (seq % 3 == 2).then_some(Status::Ok),
                    source: Some(Source {
                        file: "/home/ada/.claude/s.jsonl".to_owned(),
                        offset: seq * 1000,
                        line: seq,
                    }),
                    ..Notes::default()
                }),
            };
            header.observe_log(&event);
            event
        })
        .collect();
    (header, events)
}

/// `cargo test --release -p quipu-formats -- --ignored how_fast`
#[test]
#[ignore = "a measurement, to be looked at in a release build"]
fn how_fast() {
    let (header, events) = typical();
    let mut report = String::new();
    for _ in 0..3 {
        let start = Instant::now();
        let mut writer =
            Writer::new(&header, &Options::default(), Vec::with_capacity(64 << 20)).unwrap();
        for event in &events {
            writer.write(event, &Beyond::default()).unwrap();
        }
        let document = writer.end().unwrap().1;
        let wrote = start.elapsed();
        let start = Instant::now();
        let mut n = 0;
        read(&document[..], &mut |_| n += 1).unwrap();
        let took = start.elapsed();
        let start = Instant::now();
        assert!(verify(&document[..]).unwrap().is_valid());
        let checked = start.elapsed();
        assert_eq!(n, events.len());
        let bytes = u32::try_from(document.len()).unwrap();
        let rate = |time: std::time::Duration| f64::from(bytes) / 1e6 / time.as_secs_f64();
        report = format!(
            "{} MB: written {:.0}, read {:.0}, verified {:.0} MB/s",
            document.len() / 1_000_000,
            rate(wrote),
            rate(took),
            rate(checked)
        );
    }
    panic!("{report}");
}
