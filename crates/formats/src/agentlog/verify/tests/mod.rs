//! Traces that are right, wrong, and large.

mod corpus;
mod edges;
mod rules;

use std::fmt::Write as _;

use quipu_model::json::Tape;

use super::*;
use crate::agentlog::{Canon, Form};

const ROOT: &str = r#"{"sdk":{"name":"quipu","version":"0.1.0"}}"#;
const REQUEST: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"params":{}}"#;
const RESPONSE: &str = r#"{"model":"m","content":[{"type":"text","text":"yo"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1},"latency_ms":5}"#;
const ASKS: &str = r#"{"model":"m","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}],"stop_reason":"tool_use","usage":{},"latency_ms":5}"#;
const CALL: &str = r#"{"tool_name":"ls","tool_call_id":"t1","arguments":{}}"#;
const RESULT: &str = r#"{"tool_call_id":"t1","output":"a b","is_error":false,"latency_ms":2}"#;
const SUMMARY: &str = r#"{"baseline_trace_id":"sha256:4444444444444444444444444444444444444444444444444444444444444444","backend_id":"mock","input_count":1,"output_count":1,"error_count":0,"duration_ms":7}"#;
const HARNESS: &str = r#"{"category":"retry","name":"retry.attempted","severity":"info"}"#;
const ERROR: &str = r#"{"source":"llm","code":"rate_limit","message":"later","retriable":true,"upstream_status":429}"#;
const BLOB_ID: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Writes traces, right or as wrong as wanted.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) text: String,
    ids: Vec<String>,
}

pub(crate) fn id_of(payload: &str) -> String {
    let mut tape = Tape::new();
    let node = tape.read(payload, 1024).unwrap();
    Canon::new().id(node).map_or_else(
        |_| "sha256:".to_owned() + &"a1".repeat(32),
        |id| id.to_string(),
    )
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self::default().add("metadata", ROOT)
    }

    /// A record under the one before it.
    pub(crate) fn add(self, kind: &str, payload: &str) -> Self {
        let parent = self
            .ids
            .last()
            .map_or("null".to_owned(), |id| format!("\"{id}\""));
        self.under(kind, payload, &parent)
    }

    /// A record under the nth before, from 0.
    pub(crate) fn add_to(self, nth: usize, kind: &str, payload: &str) -> Self {
        let parent = format!("\"{}\"", self.ids[nth]);
        self.under(kind, payload, &parent)
    }

    pub(crate) fn under(mut self, kind: &str, payload: &str, parent: &str) -> Self {
        let (id, n) = (id_of(payload), self.ids.len());
        let (minute, second) = (n / 60 % 60, n % 60);
        writeln!(
            self.text,
            r#"{{"version":"0.1","id":"{id}","kind":"{kind}","ts":"2026-04-24T10:{minute:02}:{second:02}.000Z","parent":{parent},"payload":{payload}}}"#
        )
        .unwrap();
        self.ids.push(id);
        self
    }

    /// The last record, with this in place of that.
    pub(crate) fn but(mut self, from: &str, to: &str) -> Self {
        let begin = self.text.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.split_off(begin);
        assert!(line.contains(from), "{from} is not in {line}");
        self.text.push_str(&line.replacen(from, to, 1));
        self
    }

    pub(crate) fn line(mut self, line: &str) -> Self {
        self.text.push_str(line);
        self
    }
}

fn check_with(bytes: &[u8], options: VerifyOptions) -> Report {
    let report = verify(bytes, &options).unwrap();
    for threads in [2, 5] {
        let again = verify(bytes, &VerifyOptions { threads, ..options }).unwrap();
        assert_eq!(report, again, "the same with {threads} threads");
    }
    report
}

fn check(bytes: &[u8]) -> Report {
    check_with(bytes, VerifyOptions::default())
}

fn permissive(bytes: &[u8]) -> Report {
    check_with(
        bytes,
        VerifyOptions {
            strict: false,
            ..VerifyOptions::default()
        },
    )
}

fn names(report: &Report) -> Vec<&'static str> {
    report.counts.keys().map(|rule| rule.name()).collect()
}

/// Everything there is, as it should be.
fn whole() -> Trace {
    let blob = format!(
        r#"{{"mime":"image/png","size_bytes":3,"blob_id":"{BLOB_ID}","uri":"agentlog-blob://local/{}","phash":{{"algo":"dhash64","hex":"0123456789abcdef"}},"embedding":{{"model":"e","dim":2,"vec":[0.5,1]}}}}"#,
        &BLOB_ID[7..]
    );
    Trace::new()
        .add("chat_request", REQUEST)
        .add(
            "chunk",
            r#"{"chunk_index":0,"time_unix_nano":1745552520123456789,"delta":{"text":"y"}}"#,
        )
        .add_to(
            1,
            "chunk",
            r#"{"chunk_index":1,"time_unix_nano":1745552520123456789,"delta":{},"is_final":true}"#,
        )
        .add_to(1, "chat_response", ASKS)
        .add("tool_call", CALL)
        .add("tool_result", RESULT)
        .add("harness_event", HARNESS)
        .add("error", ERROR)
        .add("blob_ref", &blob)
        .add(
            "metadata",
            r#"{"sdk":{"name":"quipu","version":"0.1.0"},"tags":{"n":"2"}}"#,
        )
        .add("chat_request", REQUEST)
        .add("chat_response", RESPONSE)
        .add("replay_summary", SUMMARY)
}

#[test]
fn what_is_right_is_clean() {
    let report = check(whole().text.as_bytes());
    assert_eq!(report.findings, []);
    assert_eq!(
        (report.records, report.sessions, report.repeated_ids),
        (14, 2, 1)
    );
    assert_eq!((report.blobs, report.blob_bytes), (1, 3));
    assert_eq!(report.kinds[&Kind::ChatRequest], 2);
    assert_eq!(report.kinds.len(), Kind::ALL.len());
    assert_eq!(report.root.unwrap().to_string(), id_of(ROOT));
    assert_eq!(report.bytes, whole().text.len() as u64);
}

#[test]
fn limits_are_to_the_byte() {
    let line = Trace::new().text;
    let with = |max_line_bytes| {
        let limits = Limits {
            max_line_bytes,
            ..LIMITS
        };
        check_with(
            line.as_bytes(),
            VerifyOptions {
                limits,
                ..VerifyOptions::default()
            },
        )
    };
    assert!(with(line.len()).is_clean());
    let report = with(line.len() - 1);
    assert_eq!(names(&report), ["empty-trace", "line-too-long"]);
    // One that is far too long is passed over, and what follows is read.
    let text = Trace::new().text + &"x".repeat(100_000) + "\n" + &Trace::new().text;
    let limits = Limits {
        max_line_bytes: 1000,
        ..LIMITS
    };
    let report = check_with(
        text.as_bytes(),
        VerifyOptions {
            limits,
            ..VerifyOptions::default()
        },
    );
    assert_eq!(names(&report), ["line-too-long", "parent-null"]);
    let lines: Vec<_> = report.findings.iter().map(|f| f.at.unwrap().line).collect();
    assert_eq!(lines, [2, 3]);
    assert_eq!(
        report.findings[1].at.unwrap().offset,
        text.len() as u64 - line.len() as u64
    );
    assert!(
        report.findings[0].message.contains("100001 bytes"),
        "{report:#?}"
    );
    let total = Limits {
        max_total_bytes: line.len() as u64,
        ..LIMITS
    };
    for threads in [1, 3] {
        let options = VerifyOptions {
            limits: total,
            threads,
            ..VerifyOptions::default()
        };
        assert!(verify(line.as_bytes(), &options).is_ok());
        let more = line.repeat(2);
        let error = verify(more.as_bytes(), &options).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}

#[test]
fn what_is_passed_over_is_said_and_is_no_fault() {
    let text = format!(
        "\u{feff}\n{}",
        Trace::new().add("error", ERROR).text.replace('\n', "\r\n")
    );
    let report = check(text.as_bytes());
    assert!(report.is_clean());
    assert_eq!(names(&report), ["byte-order-mark", "cr-lf", "blank-line"]);
    assert_eq!(
        (report.passed.bom, report.passed.cr_lf, report.passed.blank),
        (true, 2, 1)
    );
}

#[test]
fn a_parent_is_the_nearest_before_it() {
    // The same payload as an error and as something that is no error, and then a child of each.
    let same = r#"{"tool_name":"ls","tool_call_id":"t1","arguments":{}}"#;
    let trace = Trace::new()
        .add("chat_request", REQUEST)
        .add("chat_response", ASKS)
        .add("tool_call", same)
        .add("tool_result", RESULT)
        .add("dream", same)
        .add("tool_result", RESULT);
    let report = check(trace.text.as_bytes());
    assert_eq!(names(&report), ["unknown-kind", "result-parent"]);
    assert_eq!(report.findings[1].at.unwrap().line, 7);
    assert_eq!(report.repeated_ids, 2);
}

#[test]
fn a_parent_that_comes_later_is_told_from_one_that_never_does() {
    let trace = Trace::new()
        .under(
            "chat_response",
            RESPONSE,
            &format!("\"{}\"", id_of(REQUEST)),
        )
        .add_to(0, "chat_request", REQUEST);
    let report = check(trace.text.as_bytes());
    let message = &report.findings[0].message;
    assert!(
        message.ends_with("; it comes later, on line 3"),
        "{message}"
    );
}

#[test]
fn a_bad_line_hides_no_other_and_is_not_held_against_them() {
    let trace = Trace::new()
        .line("oops\n")
        .add("metadata", r#"{"sdk":{"name":"a","version":"b"}}"#);
    assert_eq!(names(&check(trace.text.as_bytes())), ["not-json"]);
}

#[test]
fn an_id_in_another_dialect_is_told() {
    let payload = r#"{"sdk":{"name":"a\nb","version":"1"},"x":1e21}"#;
    let mut tape = Tape::new();
    let node = tape.read(payload, 100).unwrap();
    for form in Form::others() {
        let Some(id) = form.id(node).map(|id| id.to_string()) else {
            continue;
        };
        let own = id_of(payload);
        if id == own {
            continue;
        }
        let trace = Trace::default().add("metadata", payload).but(&own, &id);
        let report = check(trace.text.as_bytes());
        assert_eq!(names(&report), ["id-mismatch"]);
        let dialect = report.findings[0].dialect.clone().unwrap();
        assert_eq!(
            Form::of(node, id.parse().unwrap()).unwrap().to_string(),
            dialect
        );
        assert_eq!(report.dialects[&dialect], 1);
        assert!(report.findings[0].message.contains(&dialect));
    }
}

#[test]
fn other_ways_to_a_wrong_id_are_told() {
    let own = id_of(ROOT);
    let dialect = |trace: Trace| {
        check(trace.text.as_bytes()).findings[0]
            .dialect
            .clone()
            .unwrap()
    };
    let fake = "sha256:".to_owned() + &"ab".repeat(32);
    assert!(dialect(Trace::new().but(&own, &fake)).contains("placeholder"));
    let spaced = ROOT.replace(':', ": ");
    let hash = |text: &str| {
        use sha2::Digest as _;
        ContentId(sha2::Sha256::digest(text).into()).to_string()
    };
    let trace = Trace::default()
        .add("metadata", &spaced)
        .but(&own, &hash(&spaced));
    assert!(dialect(trace).contains("as it stands"));
    let line = Trace::new().text;
    let rest = line.replace(&format!("\"id\":\"{own}\","), "");
    let trace = Trace::new().but(&own, &id_of(rest.trim_end()));
    assert!(dialect(trace).contains("without its id"));
    let message = |from: &str, to: &str| {
        check(Trace::new().but(from, to).text.as_bytes()).findings[0]
            .message
            .clone()
    };
    let upper = own.to_uppercase().replace("SHA256", "sha256");
    assert!(message(&own, &upper).ends_with("uppercase; apart from that it is the payload's"));
    assert!(message("sha256:", "").ends_with("missing; apart from that it is the payload's"));
}

#[test]
fn findings_and_diagnoses_are_capped_and_counted() {
    let mut trace = Trace::new();
    for n in 0..300 {
        trace = trace
            .add("error", &ERROR.replace("429", &n.to_string()))
            .but("later", "never");
    }
    let report = check(trace.text.as_bytes());
    assert_eq!(report.counts[&Rule::IdMismatch], 300);
    let kept = report
        .findings
        .iter()
        .filter(|f| f.rule == Rule::IdMismatch)
        .count();
    assert_eq!(kept, 100);
    assert_eq!(report.counts[&Rule::DiagnosisCapped], 1);
}

#[test]
fn what_waits_is_capped_and_that_is_said() {
    let use_of = |n: u32| format!(r#"{{"type":"tool_use","id":"t{n}","name":"x","input":{{}}}}"#);
    let uses: Vec<String> = (0..1100).map(use_of).collect();
    let asks = RESPONSE.replace(r#"{"type":"text","text":"yo"}"#, &uses.join(","));
    let trace = Trace::new()
        .add("chat_request", REQUEST)
        .add("chat_response", &asks)
        .add("tool_call", &CALL.replace("t1", "t1099"));
    assert_eq!(names(&check(trace.text.as_bytes())), ["pairing-capped"]);
}

/// Gives a few bytes at a time.
struct Drip<'a>(&'a [u8]);
impl Read for Drip<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(buf.len()).min(7);
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn many_batches_are_as_one() {
    let mut trace = whole();
    for _ in 0..200 {
        trace = trace
            .add("chat_request", REQUEST)
            .add("chat_response", RESPONSE);
    }
    let report = check(trace.text.as_bytes());
    assert_eq!(report.findings, []);
    assert_eq!(report.records, 414);
    // Read a byte at a time, it is the same.
    let dripped = verify(Drip(trace.text.as_bytes()), &VerifyOptions::default()).unwrap();
    assert_eq!(dripped, report);
}

#[test]
fn a_line_that_is_too_long_counts_as_the_reader_counts_it() {
    let limits = Limits {
        max_line_bytes: 300,
        ..LIMITS
    };
    let long = format!("\u{feff}{}\r\n{}\r\n", "x".repeat(400), " ".repeat(400));
    let mut reader = crate::agentlog::Reader::with_limits(long.as_bytes(), limits);
    while reader.next().unwrap().is_some() {}
    let options = VerifyOptions {
        limits,
        ..VerifyOptions::default()
    };
    let report = verify(long.as_bytes(), &options).unwrap();
    assert_eq!(report.passed, reader.passed());
    assert_eq!(report.counts[&Rule::LineTooLong], 2);
}
