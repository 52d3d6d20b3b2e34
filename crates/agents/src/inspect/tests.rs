use std::io::Write as _;

use quipu_model::{Body, NoteKind};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::Gathered;
use crate::testkit::{hostile, read, read_as};

const EVAL: &str = r#"{"eval_id":"ev1","task":"sums","model":"openai/gpt-x","dataset":{"samples":2},"created":"2026-06-08T08:00:00+00:00","packages":{"inspect_ai":"0.3.200"},"revision":{"origin":"https://example.com/sums.git","commit":"abc"}}"#;

/// A sample whose events say it all: pooled messages, a text that stands outside, a tool that failed, a score.
const SAMPLE_TEXT: &str = concat!(
    r#"{"id":"a/b","epoch":1,"input":"what is 1+2?","target":"3","uuid":"smp1","started_at":"2026-06-08T08:00:01+00:00","completed_at":"2026-06-08T08:00:09+00:00","#,
    r#""messages":[{"id":"m0","role":"system","content":"be brief"},{"id":"m1","role":"user","content":"attachment://h1"},"#,
    r#"{"id":"m2","role":"assistant","content":[{"type":"reasoning","reasoning":"sum"},{"type":"text","text":"adding"}],"tool_calls":[{"id":"c1","function":"add","arguments":{"x":1,"y":2}}]},"#,
    r#"{"id":"m3","role":"tool","tool_call_id":"c1","function":"add","content":"3"},{"id":"m4","role":"assistant","content":"3"},{"id":"m5","role":"user","content":"thanks"}],"#,
    r#""events_data":{"messages":[{"id":"m0","role":"system","content":"be brief"},{"id":"m1","role":"user","content":"attachment://h1"},{"id":"m2","role":"assistant","content":"adding"},{"id":"m3","role":"tool","tool_call_id":"c1","content":"3"}]},"#,
    r#""attachments":{"h1":"what is 1+2, at length?"},"scores":{"match":{"value":"C"}},"model_usage":{"openai/gpt-x":{"input_tokens":30,"output_tokens":11}},"#,
    r#""events":[{"event":"span_begin","uuid":"e0","timestamp":"2026-06-08T08:00:01+00:00","name":"solvers","type":"solvers"},"#,
    r#"{"event":"sample_init","uuid":"e1","timestamp":"2026-06-08T08:00:01+00:00","sample":{"input":"what is 1+2?"},"state":{"messages":[]}},"#,
    r#"{"event":"model","uuid":"e2","timestamp":"2026-06-08T08:00:02+00:00","completed":"2026-06-08T08:00:03+00:00","working_time":0.75,"model":"openai/gpt-x","input":[],"input_refs":[[0,2]],"output":{"choices":[{"message":{"id":"m2","role":"assistant","content":[{"type":"reasoning","reasoning":"sum"},{"type":"text","text":"adding"}],"tool_calls":[{"id":"c1","function":"add","arguments":{"x":1,"y":2}}]}}],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15,"input_tokens_cache_read":3,"reasoning_tokens":2,"total_cost":0.0001}}},"#,
    r#"{"event":"tool","uuid":"e3","timestamp":"2026-06-08T08:00:04+00:00","completed":"2026-06-08T08:00:05+00:00","id":"c1","function":"add","arguments":{"x":1,"y":2},"result":"3","message_id":"m3"},"#,
    r#"{"event":"tool","uuid":"e4","timestamp":"2026-06-08T08:00:05+00:00","id":"c2","function":"wait","arguments":{},"result":"","error":{"type":"timeout","message":"too slow"}},"#,
    r#"{"event":"state","uuid":"e5","timestamp":"2026-06-08T08:00:05+00:00","changes":[{"op":"add","path":"/messages/2","value":{}}]},"#,
    r#"{"event":"model","uuid":"e6","timestamp":"2026-06-08T08:00:06+00:00","model":"openai/gpt-x","input_refs":[[0,2],[2,4]],"output":{"choices":[{"message":{"id":"m4","role":"assistant","content":"3"}}],"usage":{"input_tokens":20,"output_tokens":6,"total_cost":0.0002}}},"#,
    r#"{"event":"score","uuid":"e7","timestamp":"2026-06-08T08:00:08+00:00","scorer":"match","score":{"value":"C"}},"#,
    r#"{"event":"novel","uuid":"e8","timestamp":"2026-06-08T08:00:08+00:00"}]}"#,
);

/// A sample of which only the messages are there.
const PLAIN: &str = r#"{"id":2,"epoch":1,"input":"again","messages":[{"role":"user","content":"again"},{"role":"assistant","content":"no","model":"gpt-x"}],"events":[],"model_usage":{"gpt-x":{"input_tokens":7,"output_tokens":1}},"scores":{"match":{"value":0}},"error":{"message":"it broke"}}"#;

fn log() -> String {
    format!(
        r#"{{"version":2,"status":"success","eval":{EVAL},"plan":{{"name":"plan"}},"samples":[{SAMPLE_TEXT},{PLAIN}]}}"#
    )
}

#[test]
fn a_log_is_read_sample_by_sample() {
    let read = read(log().as_bytes(), "log.json").unwrap();
    assert_eq!(read.dialect, LOG);
    insta::assert_snapshot!("log", read.lines());
    assert_eq!(read.session.id.as_deref(), Some("ev1"));
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.0003"));
    let usage = read.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(37), Some(3), Some(12))
    );
}

#[test]
fn nothing_is_told_twice() {
    let read = read(log().as_bytes(), "log.json").unwrap();
    let mut ids: Vec<&str> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            quipu_model::Body::ToolResult(result) => Some(&*result.call_id),
            _ => None,
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["c1", "c2"]);
    let prompts = read
        .words()
        .iter()
        .filter(|word| *word == "message.user")
        .count();
    // Of the first sample the question and the thanks, of the second the question.
    assert_eq!(prompts, 3);
    let unknown: Vec<&String> = read.ledger.drift.unknown.keys().collect();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}

#[test]
fn a_broken_log_does_no_harm() {
    let log = format!(
        r#"{{"version":2,"status":"error","eval":{EVAL},"error":{{"message":"x"}},"samples":[{PLAIN}]}}"#
    );
    hostile(&Inspect, LOG, &log);
}

fn archive(sample: &str, method: CompressionMethod) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut zip = ZipWriter::new(file.reopen().unwrap());
    let options = SimpleFileOptions::default().compression_method(method);
    let header = format!("{{\"version\":2,\n\"eval\":{EVAL}}}");
    for (name, text) in [
        ("_journal/start.json", header.as_str()),
        ("samples/a/b_epoch_1.json", sample),
        ("samples/../../../2_epoch_1.json", PLAIN),
        ("header.json", &header),
    ] {
        zip.start_file(name, options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    file
}

#[test]
fn each_sample_of_an_archive_is_a_session() {
    for method in [
        CompressionMethod::Deflated,
        CompressionMethod::Zstd,
        CompressionMethod::Stored,
    ] {
        let file = archive(SAMPLE_TEXT, method);
        let from = Gathered::File(file.path());
        let gather = Inspect.gather().unwrap();
        let parts = gather.parts(&from).unwrap();
        let ids: Vec<&str> = parts.iter().map(|part| &*part.id).collect();
        assert_eq!(ids, ["../../../2_epoch_1", "a/b_epoch_1"]);
        let mut bytes = Vec::new();
        gather.write(&from, "a/b_epoch_1", &mut bytes).unwrap();
        let read = read(&bytes, "smp1.jsonl").unwrap();
        assert_eq!(read.dialect, SAMPLE);
        assert_eq!(read.session.id.as_deref(), Some("smp1"));
        assert_eq!(read.session.title.as_deref(), Some("sums"));
        assert!(
            read.events
                .iter()
                .all(|event| event.annotations.subagent_id.is_none())
        );
        let whole = crate::testkit::read(log().as_bytes(), "log.json").unwrap();
        let said = |read: &crate::testkit::Read| {
            let is_said = |word: &String| !word.starts_with("note");
            read.words().into_iter().filter(is_said).collect::<Vec<_>>()
        };
        assert!(said(&whole).starts_with(&said(&read)));
        assert!(gather.write(&from, "nothing", &mut Vec::new()).is_err());
    }
}

#[test]
fn what_is_no_archive_says_so() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"PK\x03\x04 and no more").unwrap();
    let from = Gathered::File(file.path());
    assert!(Inspect.gather().unwrap().parts(&from).is_err());
}

#[test]
fn a_sample_without_events_has_what_its_messages_say() {
    let lines =
        format!("{{\"inspect_log\":{{\"eval\":{EVAL}}}}}\n{{\"inspect_sample\":{PLAIN}}}\n");
    let read = read_as(&Inspect, SAMPLE, lines.as_bytes(), "x.jsonl");
    assert_eq!(read.session.id.as_deref(), Some("ev1_2_epoch_1"));
    let kinds: Vec<NoteKind> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Note(note) => Some(note.kind),
            _ => None,
        })
        .collect();
    assert_eq!(
        kinds,
        [
            NoteKind::Session,
            NoteKind::Session,
            NoteKind::Usage,
            NoteKind::Session,
            NoteKind::Error
        ]
    );
    assert_eq!(read.usage().total(), 8);
}
