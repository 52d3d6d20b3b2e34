//! Traces that others wrote, and sessions that become traces and sessions again.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use quipu_formats::agentlog::verify::{Rule, Severity, VerifyOptions as Checking, verify};
use quipu_formats::agentlog::{Canon, ContentId};
use quipu_formats::arbitrary;
use quipu_formats::loss::Loss;
use quipu_formats::projection::Nowhere;
use quipu_model::json::Tape;
use quipu_model::{Body, Content, Event, Header, NoteKind, Usage};
use serde_json::{Value, json};

use super::{Given, READING, convert, put, read, tell};
use crate::{Format, TargetOptions, open, pump, writer};

/// A trace as another program writes it.
struct Trace {
    text: String,
    last: Value,
    request: Value,
    seconds: u32,
}

impl Trace {
    fn new() -> Self {
        let mut trace = Self {
            text: String::new(),
            last: Value::Null,
            request: Value::Null,
            seconds: 0,
        };
        trace.add(
            "metadata",
            &json!({"sdk": {"name": "shadow", "version": "3.2.5"}, "tags": {"env": "dev"},
                "runtime": {"python": "3.11.9", "platform": "linux"}, "agent_card": {"name": "a"}}),
        );
        trace
    }

    fn add(&mut self, kind: &str, payload: &Value) {
        let parent = self.last.clone();
        self.under(&parent, kind, payload);
    }

    fn under(&mut self, parent: &Value, kind: &str, payload: &Value) {
        let payload = payload.to_string();
        let id = id_of(&payload);
        self.seconds += 1;
        let (minute, second) = (self.seconds / 60, self.seconds % 60);
        // Spaces and fields of its own, as another writer may have them.
        let line = format!(
            "{{\"version\": \"0.1\", \"id\": \"{id}\", \"kind\": \"{kind}\", \
             \"ts\": \"2026-04-21T10:{minute:02}:{second:02}.000Z\", \"parent\": {parent}, \
             \"meta\": {{\"x\": {second}}}, \"payload\": {payload}}}\n"
        );
        self.text.push_str(&line);
        self.last = json!(id.to_string());
        if kind == "chat_request" {
            self.request = self.last.clone();
        }
    }

    /// A trace with records of every kind, and of one that nobody knows.
    fn of_every_kind() -> Self {
        let mut trace = Self::new();
        let tools =
            json!([{"name": "lookup", "description": "d", "input_schema": {"type": "object"}}]);
        let asked = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"}]);
        trace.add(
            "chat_request",
            &json!({"model": "m-1", "messages": asked, "params": {"temperature": 0.2, "max_tokens": 64, "x": [1]},
                "tools": tools, "system_fingerprint": "fp"}),
        );
        let request = trace.request.clone();
        for n in 0..3_u64 {
            let chunk = json!({"chunk_index": n, "time_unix_nano": 1_776_765_602_000_000_000_u64 + n,
                "delta": {"text": n}, "is_final": n == 2});
            trace.under(&request, "chunk", &chunk);
        }
        let content = json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"n": 7}}]);
        trace.under(
            &request,
            "chat_response",
            &json!({"model": "m-1", "content": content, "stop_reason": "tool_use", "latency_ms": 1200,
                "stream_timings": [{"token_index": 0, "ts_delta_ms": 3}],
                "usage": {"input_tokens": 10, "output_tokens": 5, "thinking_tokens": 2}}),
        );
        trace.add(
            "tool_call",
            &json!({"tool_name": "lookup", "tool_call_id": "t1", "arguments": {"n": 7}}),
        );
        trace.add(
            "tool_result",
            &json!({"tool_call_id": "t1", "output": {"at": "depot"}, "is_error": false, "latency_ms": 40}),
        );
        for (category, severity) in HARNESS {
            trace.add(
                "harness_event",
                &json!({"category": category, "name": format!("{category}.happened"), "severity": severity,
                    "attributes": {"n": 1, "ratio": 0.1}}),
            );
        }
        for source in ["sdk", "llm", "tool", "user"] {
            trace.add(
                "error",
                &json!({"source": source, "code": format!("E-{source}"), "message": "failed",
                    "retriable": source == "llm", "upstream_status": 529}),
            );
        }
        trace.add(
            "blob_ref",
            &json!({"mime": "image/png", "size_bytes": 12, "blob_id": format!("sha256:{}", "ab".repeat(32)),
                "phash": {"algo": "dhash64", "hex": "0011223344556677"}}),
        );
        trace.add(
            "metadata",
            &json!({"sdk": {"name": "shadow", "version": "3.2.5"}, "tags": {"session": "2"}}),
        );
        for stop in STOPS {
            let asked = json!([{"role": "user", "content": format!("until {stop}")}]);
            let request =
                json!({"model": "m-1", "messages": asked, "params": {"stop": null, "seed": 1}});
            trace.add("chat_request", &request);
            let content = match stop {
                "tool_use" => json!([{"type": "tool_use", "id": "t9", "name": "n", "input": {}}]),
                _ => json!([{"type": "text", "text": format!("ended by {stop}")}]),
            };
            trace.add(
                "chat_response",
                &json!({"model": "m-1", "content": content, "stop_reason": stop, "latency_ms": 7, "usage": {}}),
            );
        }
        trace.add(
            "replay_summary",
            &json!({"baseline_trace_id": format!("sha256:{}", "cd".repeat(32)), "backend_id": "mock",
                "input_count": 2, "output_count": 2, "error_count": 0, "duration_ms": 77}),
        );
        trace
    }

    fn write(&self, directory: &Path) -> PathBuf {
        let path = directory.join("theirs.agentlog");
        put(&path, self.text.as_bytes());
        path
    }
}

const HARNESS: [(&str, &str); 9] = [
    ("retry", "warning"),
    ("rate_limit", "fatal"),
    ("model_switch", "info"),
    ("context_trim", "info"),
    ("cache", "info"),
    ("guardrail", "error"),
    ("budget", "warning"),
    ("stream_interrupt", "error"),
    ("tool_lifecycle", "info"),
];

const STOPS: [&str; 6] = [
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "content_filter",
    "error",
];

fn id_of(payload: &str) -> ContentId {
    let mut tape = Tape::new();
    Canon::new().id(tape.read(payload, 64).unwrap()).unwrap()
}

/// Whether a trace is as the check wants it. When chunks came is what their recorder says, in whatever order.
fn check(trace: &[u8]) {
    let report = verify(trace, &Checking::default()).unwrap();
    let text = String::from_utf8_lossy(trace);
    let faults = report.counts.keys();
    let mut faults =
        faults.filter(|rule| rule.severity(true) != Severity::Note && **rule != Rule::ChunkTime);
    assert_eq!(faults.next(), None, "{:#?}\n{text}", report.findings);
}

fn records(trace: &[u8]) -> Vec<Value> {
    let lines = trace.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// A session as a trace that is made of its events, whatever it was before.
fn made_anew(header: &Header, events: &[Event]) -> (Vec<u8>, Loss) {
    let mut bytes = Vec::new();
    let out: Box<dyn Write> = Box::new(&mut bytes);
    let mut to = writer(
        Format::Agentlog,
        header,
        &TargetOptions::default(),
        out,
        Box::new(Nowhere),
    )
    .unwrap();
    for event in events {
        to.event(event).unwrap();
    }
    let loss = to.finish().unwrap();
    (bytes, loss)
}

#[test]
fn a_trace_that_somebody_else_wrote_stays_that_trace() {
    let home = tempfile::tempdir().unwrap();
    let mut trace = Trace::of_every_kind();
    check(trace.text.as_bytes());
    // What a newer version may have, a line that is not a record, and one that was cut off.
    trace.add("telepathy", &json!({"thought": 1.50}));
    for more in [
        "",
        "\r\nnot a record\n\n",
        "{\"version\":\"0.1\",\"id\":\"sha2",
    ] {
        trace.text.push_str(more);
        let theirs = trace.write(home.path());
        let (ours, report) = convert(&theirs, Format::Agentlog, &home.path().join("ours"));
        assert!(
            fs::read(&theirs).unwrap() == fs::read(ours).unwrap(),
            "{more:?}"
        );
        assert!(report.is_complete());
        assert_eq!(
            (report.loss.carried, report.loss.events > 0),
            (report.loss.events, true)
        );
        assert_eq!(
            report.reading.remarks.is_empty(),
            more.is_empty(),
            "{more:?}"
        );
    }
}

#[test]
fn every_valid_vector_stays_as_it_is() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/agentlog");
    let Ok(list) = fs::read_to_string(cases.join("cases.json")) else {
        tell(format_args!(
            "skipped: the vectors are not at {}",
            cases.display()
        ));
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let mut seen = 0;
    for case in list {
        let verdict = case["verdict"].as_str().unwrap();
        if !verdict.starts_with("accept") && !verdict.starts_with("tolerate") {
            continue;
        }
        let theirs = cases.join("cases").join(case["file"].as_str().unwrap());
        // Logs are read to 128 levels; what is deeper is not taken for a log.
        if theirs.ends_with("depth-130.agentlog") {
            assert!(open(&theirs, &READING).is_err());
            continue;
        }
        let (ours, _) = convert(
            &theirs,
            Format::Agentlog,
            &home.path().join(seen.to_string()),
        );
        assert!(
            fs::read(&theirs).unwrap() == fs::read(ours).unwrap(),
            "{case}"
        );
        seen += 1;
    }
    assert!(seen > 5, "{seen} vectors");
}

/// What is redacted is made anew of events. Then records that events keep whole are those records again.
#[test]
fn a_trace_that_is_made_anew_says_what_it_said() {
    let home = tempfile::tempdir().unwrap();
    let trace = Trace::of_every_kind();
    let theirs = trace.write(home.path());
    let mut source = open(&theirs, &READING).unwrap().remove(0);
    let header = source.header().unwrap();
    let mut bytes = Vec::new();
    let out: Box<dyn Write> = Box::new(&mut bytes);
    let mut to = writer(
        Format::Agentlog,
        &header,
        &TargetOptions::default(),
        out,
        Box::new(Nowhere),
    )
    .unwrap();
    pump(&mut *source, &mut *to).unwrap();
    let loss = to.finish().unwrap();
    check(&bytes);
    assert_eq!(loss.carried, loss.events, "{loss}");
    let (was, is) = (records(trace.text.as_bytes()), records(&bytes));
    let of = |records: &[Value], kind: &str| -> Vec<Value> {
        let of_kind = records.iter().filter(|record| record["kind"] == kind);
        of_kind.map(|record| record["payload"].clone()).collect()
    };
    for kind in [
        "chunk",
        "tool_call",
        "tool_result",
        "harness_event",
        "error",
        "blob_ref",
        "replay_summary",
    ] {
        let (mut was, is) = (of(&was, kind), of(&is, kind));
        if kind == "tool_call" {
            // That a tool was called which a model asked for is written down, though the trace did not.
            was.push(json!({"tool_name": "n", "tool_call_id": "t9", "arguments": {}}));
        }
        assert_eq!(was, is, "{kind}");
    }
    let fields = |records: &[Value], kind: &str, keys: &[&str]| -> Vec<Value> {
        let pick = |payload: &Value| keys.iter().map(|key| payload[key].clone()).collect();
        of(records, kind).iter().map(pick).collect()
    };
    let keys = ["model", "params", "tools", "system_fingerprint"];
    assert_eq!(
        fields(&was, "chat_request", &keys),
        fields(&is, "chat_request", &keys)
    );
    let keys = [
        "model",
        "content",
        "stop_reason",
        "latency_ms",
        "usage",
        "stream_timings",
    ];
    assert_eq!(
        fields(&was, "chat_response", &keys),
        fields(&is, "chat_response", &keys)
    );
    let root = &is[0]["payload"];
    assert_eq!(root["runtime"], was[0]["payload"]["runtime"]);
    assert_eq!(root["imported_from"]["metadata"], was[0]["payload"]);
    assert_eq!(of(&is, "metadata")[1..], of(&was, "metadata")[1..]);
}

/// Why an answer ended and how long it took are the same after any number of ways through a trace, and what is not
/// known stays that.
#[test]
fn what_is_known_of_an_answer_stays_known_and_nothing_is_added() {
    let home = tempfile::tempdir().unwrap();
    let (header, given) = read(&Trace::of_every_kind().write(home.path()));
    let stops = |events: &[Event]| -> Vec<(Option<String>, Option<u64>)> {
        let of = |event: &Event| {
            let notes = &event.annotations;
            let is_answer = matches!(&event.body, Body::AssistantMessage(_) | Body::ToolCall(_));
            (is_answer && notes.stop_reason.is_some())
                .then(|| (notes.stop_reason.clone(), notes.duration_ms))
        };
        events.iter().filter_map(of).collect()
    };
    let known = stops(&given.events);
    assert_eq!(known.len(), 7, "{known:?}");
    let mut unknown = given.events.clone();
    for event in &mut unknown {
        event.annotations.stop_reason = None;
        event.annotations.duration_ms = None;
    }
    unknown.retain(|event| !matches!(event.body, Body::Note(_)));
    for (events, expected) in [(given.events, known), (unknown, Vec::new())] {
        let (bytes, _) = made_anew(&header, &events);
        let path = home.path().join("again.agentlog");
        put(&path, &bytes);
        let (_, again) = read(&path);
        assert_eq!(stops(&again.events), expected);
        if expected.is_empty() {
            // That of a result is worked out from the times when it is read.
            let is_answer = |event: &&Event| matches!(&event.body, Body::AssistantMessage(_));
            let mut answers = again.events.iter().filter(is_answer);
            assert!(answers.all(|event| event.annotations.duration_ms.is_none()));
        }
    }
}

/// What a session says, by sort.
#[derive(Debug, Default, PartialEq)]
struct Told {
    texts: BTreeMap<String, u64>,
    calls: Vec<(String, String)>,
    results: Vec<String>,
    usage: Usage,
}

fn told(events: &[Event]) -> Told {
    let mut told = Told::default();
    let say = |told: &mut Told, blocks: &[quipu_model::Block]| {
        for block in blocks {
            match &block.content {
                Content::Text(text) | Content::Thinking(text) | Content::Command(text) => {
                    *told.texts.entry(text.trim().to_owned()).or_default() += 1;
                }
                Content::ToolUse { name, id, .. } => {
                    told.calls.push((id.to_string(), name.clone()));
                }
                Content::ToolResult { id, .. } => told.results.push(id.to_string()),
                // Chunks are records, and notes of their own.
                Content::Stream(_) | Content::Unknown(_) => {}
            }
        }
    };
    for event in events {
        match &event.body {
            Body::SystemMessage(blocks)
            | Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks) => {
                say(&mut told, blocks);
            }
            Body::ToolCall(call) => {
                told.calls
                    .push((call.call_id.to_string(), call.name.clone()));
            }
            Body::ToolResult(result) => {
                told.results.push(result.call_id.to_string());
            }
            _ => {}
        }
        if let Some(usage) = &event.annotations.usage {
            told.usage.add(usage);
        }
    }
    told
}

/// Kinds of notes that a trace has no place for.
fn is_counted(loss: &Loss, kind: NoteKind) -> bool {
    loss.dropped.contains_key(&*format!("note:{kind}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Session to trace to session: what was said, called and given back is there again, or was counted.
    #[test]
    fn a_session_survives_a_trace_or_its_losses_are_counted((header, events) in arbitrary::session()) {
        prop_assume!(!events.is_empty());
        let (bytes, loss) = made_anew(&header, &events);
        check(&bytes);
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("made.agentlog");
        put(&path, &bytes);
        let (_, Given { events: again, .. }) = read(&path);
        let (was, is) = (told(&events), told(&again));
        for text in was.texts.keys().filter(|text| !text.is_empty()) {
            prop_assert!(is.texts.contains_key(text), "{:?} is lost: {}", text, loss);
        }
        for (id, name) in was.calls.iter().filter(|(id, _)| !id.is_empty()) {
            prop_assert!(is.calls.iter().any(|it| it.0 == *id), "call {:?} {:?} is lost: {}", id, name, loss);
        }
        for id in was.results.iter().filter(|id| !id.is_empty()) {
            prop_assert!(is.results.contains(id), "result {:?} is lost: {}", id, loss);
        }
        let is_usual = |usage: &Usage| {
            let Usage { input, cache_read, cache_write, cache_write_1h, output, reasoning } = *usage;
            // A reader takes more tokens than a call can have for unknown.
            let most = [input, cache_read, cache_write, cache_write_1h, output].into_iter().flatten().max();
            reasoning.unwrap_or(0) <= output.unwrap_or(0) && most.unwrap_or(0) <= 1_000_000_000
        };
        let all_usual = events.iter().filter_map(|event| event.annotations.usage.as_ref()).all(is_usual);
        if all_usual && !loss.dropped.contains_key("usage of a call that is not there") {
            prop_assert_eq!(is.usage.output.unwrap_or(0), was.usage.output.unwrap_or(0));
            prop_assert_eq!(is.usage.input.unwrap_or(0), was.usage.input.unwrap_or(0));
        }
        for event in &events {
            let Body::Note(note) = &event.body else { continue };
            if note.text.is_none() && note.raw.is_none() {
                continue;
            }
            let is_same = |other: &Event| match &other.body {
                Body::Note(other) => {
                    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
                    other.kind == note.kind && text(&other.text) == text(&note.text)
                }
                _ => false,
            };
            let is_call = matches!(note.kind, NoteKind::Usage | NoteKind::ModelCall | NoteKind::Truncated | NoteKind::Context);
            prop_assert!(
                is_call || is_counted(&loss, note.kind) || again.iter().any(is_same),
                "{:?} is lost: {}", note, loss
            );
        }
    }
}

/// A way to damage a file.
#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Word(prop::sample::Index, &'static str, &'static str),
}

impl Damage {
    fn any() -> BoxedStrategy<Self> {
        let at = any::<prop::sample::Index>;
        let words = vec![
            ("\"payload\": {", "\"payload\": [{"),
            ("\"info\"", "null"),
            ("\"name\":\"", "\"name\":\"\\ud800"),
            ("\"latency_ms\":", "\"latency_ms\":-1e400"),
            ("\"params\":{", "\"params\":[{"),
            ("\"type\":\"text\"", "\"type\":\"image\""),
            ("\"kind\": \"chunk\"", "\"kind\": \"chat_response\""),
            ("\"kind\": \"tool_call\"", "\"kind\": \"error\""),
            ("\"chunk_index\":0", "\"chunk_index\":7"),
            ("shadow", "quipu"),
            (
                "\"x\": ",
                "\"quipu\": {\"ts\":\"x\",\"status\":[],\"latency\":7}, \"x\": ",
            ),
            ("sha256:", "sha257:"),
            ("\"t1\"", "\"\""),
            ("\"messages\":[", "\"messages\":[null,{\"role\":7},"),
        ];
        prop_oneof![
            (at(), any::<u8>()).prop_map(|(at, byte)| Self::Flip(at, byte)),
            at().prop_map(Self::Cut),
            (at(), 1..200_usize).prop_map(|(at, n)| Self::Remove(at, n)),
            (at(), at()).prop_map(|(from, to)| Self::Repeat(from, to)),
            (at(), at()).prop_map(|(a, b)| Self::Swap(a, b)),
            (at(), prop::sample::select(words))
                .prop_map(|(at, (from, to))| Self::Word(at, from, to)),
        ]
        .boxed()
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let len = bytes.len();
        let mut lines: Vec<Vec<u8>> = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        match self {
            Self::Flip(at, byte) => bytes[at.index(len)] ^= byte,
            Self::Cut(at) => bytes.truncate(at.index(len).max(len / 2)),
            Self::Remove(at, n) => {
                let from = at.index(len);
                bytes.drain(from..(from + n).min(len));
            }
            Self::Repeat(from, to) => {
                let line = lines[from.index(lines.len())].clone();
                lines.insert(to.index(lines.len()), line);
                *bytes = lines.concat();
            }
            Self::Swap(a, b) => {
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
                *bytes = lines.concat();
            }
            Self::Word(at, from, to) => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let places: Vec<usize> = text.match_indices(from).map(|it| it.0).collect();
                if let Some(place) = (!places.is_empty()).then(|| places[at.index(places.len())]) {
                    let changed = [&text[..place], to, &text[place + from.len()..]].concat();
                    *bytes = changed.into_bytes();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// However a trace is damaged: it stays as it is when it is copied, every line of it is accounted for, and what
    /// is made anew of its events has no fault that the damaged trace does not have.
    #[test]
    fn a_damaged_trace_is_copied_accounted_for_and_made_anew(damages in prop::collection::vec(Damage::any(), 1..4)) {
        let mut bytes = Trace::of_every_kind().text.into_bytes();
        for damage in &damages {
            damage.apply(&mut bytes);
        }
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("damaged.agentlog");
        put(&path, &bytes);
        let Ok(mut sources) = open(&path, &READING) else { return Ok(()); };
        let mut source = sources.remove(0);
        prop_assume!(source.format() == "agentlog");
        let header = source.header().unwrap();
        let mut given = Given::default();
        let account = source.read(&mut given).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| line.iter().any(|byte| !byte.is_ascii_whitespace() && *byte != 0)).count();
        prop_assert!(account.records >= lines as u64, "{} records of {} lines", account.records, lines);
        let mut copied = Vec::new();
        let out: Box<dyn Write> = Box::new(&mut copied);
        let report = crate::write(&mut *source, Format::Agentlog, &TargetOptions::default(), out, Box::new(Nowhere)).unwrap();
        prop_assert_eq!(report.loss.carried, report.loss.events);
        prop_assert!(copied == bytes, "the copy is another");
        let (anew, loss) = made_anew(&header, &given.events);
        check(&anew);
        prop_assert!(loss.carried <= loss.events);
    }
}
