#![expect(
    clippy::disallowed_methods,
    reason = "files of a test are nobody's secret"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use quipu_agents::Host;
use quipu_convert::{Format, TargetOptions, write};
use quipu_formats::otlp::{Convention, protobuf};
use quipu_formats::projection::Nowhere;
use quipu_model::{Body, Timestamp};
use quipu_record::Clock;

use super::{Encoding, Limits, ReceiveError, Received, Receiver, Signal};
use crate::Store;
use crate::catalogue::{Filter, Order, TranscriptRow};
use crate::import::Progress;
use crate::import::tests::kit::options;
use crate::transcript::Transcript;

#[derive(Debug)]
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        "2026-11-18T12:00:00Z".parse().unwrap()
    }
}

const TRACE: &str = "5b8efff798038103d269b633813fc60c";

/// A span of a call to a model.
fn span(id: u64, conversation: Option<&str>, said: &str) -> String {
    let conversation = conversation.map_or_else(String::new, |name| {
        format!(
            r#",{{"key":"gen_ai.conversation.id","value":{{"stringValue":{}}}}}"#,
            serde_json::to_string(name).unwrap()
        )
    });
    let message =
        serde_json::json!([{"role":"assistant","parts":[{"type":"text","content":said}]}]);
    let message = serde_json::to_string(&message.to_string()).unwrap();
    format!(
        r#"{{"traceId":"{TRACE}","spanId":"{id:016x}","name":"chat m","kind":3,"startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":[{{"key":"gen_ai.operation.name","value":{{"stringValue":"chat"}}}},{{"key":"gen_ai.request.model","value":{{"stringValue":"m"}}}},{{"key":"gen_ai.usage.input_tokens","value":{{"intValue":"10"}}}},{{"key":"gen_ai.output.messages","value":{{"stringValue":{message}}}}}{conversation}]}}"#,
        1_780_906_480_000_000_000 + id,
        1_780_906_481_000_000_000 + id,
    )
}

fn batch(spans: &[String]) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},"scopeSpans":[{{"scope":{{"name":"test"}},"spans":[{}]}}]}}]}}"#,
        spans.join(",")
    )
}

struct Home {
    directory: tempfile::TempDir,
    store: Store,
    receiver: Receiver,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("quipu")).unwrap();
        Self {
            receiver: store.receiver(Arc::new(Noon)),
            store,
            directory,
        }
    }

    fn json(&self, body: &str) -> Received {
        self.receiver
            .receive(Signal::Traces, "application/json", body.as_bytes())
            .unwrap()
    }

    fn import(&self, paths: &[std::path::PathBuf]) -> Vec<TranscriptRow> {
        let report = self
            .store
            .import_received(paths, &options(), &Progress::default())
            .unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        self.rows()
    }

    fn rows(&self) -> Vec<TranscriptRow> {
        self.store
            .catalogue()
            .list(
                &Filter {
                    subagents: true,
                    ..Filter::default()
                },
                Order::default(),
                None,
            )
            .unwrap()
    }

    fn texts(&self, row: &TranscriptRow) -> Vec<String> {
        let transcript = self.store.read(row.clone()).unwrap();
        let said = transcript
            .events
            .iter()
            .filter(|event| matches!(event.body, Body::AssistantMessage(_)));
        said.flat_map(|event| event.body.texts())
            .map(str::to_owned)
            .collect()
    }
}

#[test]
fn what_is_received_becomes_transcripts_and_grows() {
    let home = Home::new();
    let received = home.json(&batch(&[
        span(1, Some("c/../1"), "one"),
        span(2, None, "two"),
    ]));
    assert_eq!((received.accepted, received.rejected), (2, 0));
    assert_eq!(received.body, b"{}");
    // Both are of one conversation, whose name is no path.
    assert_eq!(received.paths.len(), 1);
    let path = &received.paths[0];
    assert!(path.starts_with(home.directory.path().join("quipu/received/otlp/2026-11-18")));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    let rows = home.import(&received.paths);
    assert_eq!(rows.len(), 1);
    assert!(rows[0].native.starts_with("c-..-1-"), "{}", rows[0].native);
    assert_eq!(home.texts(&rows[0]), ["one", "two"]);

    // The next day, and sent twice: the file grows, and what came before is not counted again.
    let more = batch(&[span(2, None, "two"), span(3, Some("c/../1"), "three")]);
    assert_eq!(home.json(&more).paths, received.paths);
    assert_eq!(home.json(&more).paths, received.paths);
    let rows = home.import(&[]);
    assert_eq!(rows.len(), 1);
    assert_eq!(home.texts(&rows[0]), ["one", "two", "three"]);
    assert_eq!(rows[0].usage.input, Some(30));
}

#[test]
fn a_trace_that_names_its_conversation_late_is_linked_to_it() {
    let home = Home::new();
    let first = home.json(&batch(&[span(1, None, "early")]));
    let then = home.json(&batch(&[span(2, Some("late"), "found")]));
    assert_eq!(then.paths.len(), 2);
    assert!(then.paths.contains(&first.paths[0]));
    let later = home.json(&batch(&[span(3, None, "later")]));
    assert_eq!(later.paths.len(), 1);
    assert_ne!(later.paths, first.paths);
    let rows = home.import(&[]);
    let of = |id: &str| rows.iter().find(|row| row.native == id);
    assert_eq!(of(TRACE).unwrap().parent.as_deref(), Some("late"));
    assert_eq!(home.texts(of(TRACE).unwrap()), ["early"]);
    assert_eq!(home.texts(of("late").unwrap()), ["found", "later"]);
}

/// A span that has nothing to do with models.
fn query(id: u64, trace: u64) -> String {
    format!(
        r#"{{"traceId":"{trace:032x}","spanId":"{id:016x}","name":"SELECT","startTimeUnixNano":"1780906480000000000","attributes":[{{"key":"db.system.name","value":{{"stringValue":"postgresql"}}}}]}}"#
    )
}

fn partial(received: &Received) -> (String, String) {
    let answer: serde_json::Value = serde_json::from_slice(&received.body).unwrap();
    let partial = &answer["partialSuccess"];
    let text = |key: &str| partial[key].as_str().unwrap_or_default().to_owned();
    (text("rejectedSpans"), text("errorMessage"))
}

#[test]
fn what_has_nothing_to_do_with_models_is_no_transcript() {
    let home = Home::new();
    let of_trace = |span: String, trace: u64| span.replace(TRACE, &format!("{trace:032x}"));
    // A trace of its own is rejected; what is in the trace of a call is not, in whichever order they come.
    let received = home.json(&batch(&[
        query(1, 1),
        query(2, 2),
        of_trace(span(3, None, "asked"), 2),
    ]));
    assert_eq!((received.accepted, received.rejected), (2, 1));
    let (rejected, why) = partial(&received);
    assert_eq!(rejected, "1");
    assert!(
        why.contains("span: neither it nor its trace so far is of a model"),
        "{why}"
    );
    // What is around a call ends after it, and comes after it.
    let received = home.json(&batch(&[query(4, 2), query(5, 3), query(6, 1)]));
    assert_eq!((received.accepted, received.rejected), (1, 2));
    let nothing = home.json(&batch(&[query(7, 4)]));
    assert_eq!((nothing.accepted, nothing.rejected), (0, 1));
    assert!(nothing.paths.is_empty());
    // Log records go by the same rule; those that stand in no trace by themselves alone.
    let log = |attribute: &str, trace: &str| {
        let body = format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"traceId":"{trace}","body":{{"stringValue":"x"}},"attributes":[{{"key":"{attribute}","value":{{"stringValue":"m"}}}}]}}]}}]}}]}}"#
        );
        let kind = "application/json";
        let received = home.receiver.receive(Signal::Logs, kind, body.as_bytes());
        received.unwrap().accepted
    };
    let known = format!("{:032x}", 2);
    let unknown = format!("{:032x}", 9);
    assert_eq!(log("gen_ai.request.model", ""), 1);
    assert_eq!(log("http.route", ""), 0);
    assert_eq!(log("http.route", &unknown), 0);
    assert_eq!(log("http.route", &known), 1);
    let rows = home.import(&[]);
    assert_eq!(rows.len(), 2, "the trace with a call, and the loose record");
}

#[test]
fn what_is_passed_over_or_mended_is_said() {
    let home = Home::new();
    let body = batch(&[span(1, None, "one")]);
    let more = body.replacen('{', r#"{"resourceProfiles":[1],"#, 1);
    let received = home.json(&more);
    assert_eq!((received.accepted, received.rejected), (1, 0));
    let (rejected, why) = partial(&received);
    assert_eq!(rejected, "0");
    assert_eq!(
        why,
        "1 field that OTLP does not have, or has once, was passed over"
    );
    let binary = protobuf(body.as_bytes()).unwrap();
    let at = binary.windows(4).position(|it| it == b"shop").unwrap();
    let mut broken = binary;
    broken[at..at + 2].copy_from_slice(&[0xff, 0xfe]);
    broken.extend([0x98, 0x06, 1, 0x98, 0x06, 1]);
    let received = home
        .receiver
        .receive(Signal::Traces, "application/x-protobuf", &broken)
        .unwrap();
    assert_eq!((received.unknown_fields, received.mended), (2, 1));
    let said = String::from_utf8_lossy(&received.body).into_owned();
    assert!(said.contains("2 fields that OTLP does not have"), "{said}");
    assert!(
        said.contains("1 text that is not UTF-8 was mended"),
        "{said}"
    );
}

/// The file that links a trace to its conversation, as far as it is there.
fn links(home: &Home, trace: &str) -> Option<usize> {
    let file = home.directory.path().join("quipu/received/otlp/2026-11-18");
    let text = fs::read_to_string(file.join(format!("t-{trace}.jsonl"))).ok()?;
    Some(text.matches("quipuReceived").count())
}

#[test]
fn a_conversation_that_could_not_be_kept_is_news_the_next_time() {
    let home = Home::new();
    home.json(&batch(&[span(1, None, "early")]));
    let named = batch(&[span(2, Some("late"), "found")]);
    // Something is in the way of its file.
    let day = home.directory.path().join("quipu/received/otlp/2026-11-18");
    let way = day.join(format!("c-{}.jsonl", super::hashed("late")));
    fs::create_dir(&way).unwrap();
    let refused = home
        .receiver
        .receive(Signal::Traces, "application/json", named.as_bytes());
    assert_eq!(refused.unwrap_err().status(), 503);
    assert_eq!(links(&home, TRACE), Some(0));
    // The trace counts as before, and has no conversation yet.
    assert_eq!(home.json(&batch(&[span(3, None, "more")])).paths.len(), 1);
    fs::remove_dir(&way).unwrap();
    assert_eq!(home.json(&named).paths.len(), 2);
    assert_eq!(links(&home, TRACE), Some(1));
    assert_eq!(home.json(&named).paths.len(), 1);
}

#[test]
fn a_trace_and_its_conversation_that_come_at_once_are_linked() {
    let home = Home::new();
    let barrier = std::sync::Barrier::new(2);
    let of = |trace: u64, id: u64, name: Option<&str>| {
        let trace = format!("{trace:032x}");
        batch(&[span(id, name, "x").replace(TRACE, &trace)])
    };
    std::thread::scope(|scope| {
        for (id, name) in [(1, None), (2, Some("all"))] {
            let (home, barrier, of) = (&home, &barrier, &of);
            scope.spawn(move || {
                for trace in 1..=200 {
                    let body = of(trace, id, name);
                    barrier.wait();
                    home.json(&body);
                }
            });
        }
    });
    for trace in 1..=200_u64 {
        let trace = format!("{trace:032x}");
        // Either the conversation was known first, or the file of the trace says which it is.
        assert!(matches!(links(&home, &trace), None | Some(1)), "{trace}");
    }
}

#[test]
fn protobuf_and_json_become_the_same_lines() {
    let body = batch(&[span(1, Some("c"), "one"), span(2, None, "two")]);
    let (json, binary) = (Home::new(), Home::new());
    let of_json = json.json(&body);
    let of_binary = binary
        .receiver
        .receive(
            Signal::Traces,
            "application/x-protobuf",
            &protobuf(body.as_bytes()).unwrap(),
        )
        .unwrap();
    assert_eq!(of_binary.unknown_fields, 0);
    assert_eq!(
        (of_binary.body.len(), of_binary.content_type),
        (0, "application/x-protobuf")
    );
    let value = |path: &std::path::Path| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (json, mut binary) = (value(&of_json.paths[0]), value(&of_binary.paths[0]));
    // The encoder writes a status, which is there even when it says nothing.
    for line in &mut binary {
        let at = "/resourceSpans/0/scopeSpans/0/spans/0";
        line.pointer_mut(at)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove("status");
    }
    assert_eq!(json, binary);
}

#[test]
fn what_is_wrong_with_some_is_said_and_the_rest_is_kept() {
    let home = Home::new();
    let bad = span(1, None, "x").replace(TRACE, "../../etc");
    let received = home.json(&batch(&[bad, span(2, None, "kept")]));
    assert_eq!((received.accepted, received.rejected), (1, 1));
    let answer: serde_json::Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], "1");
    let why = answer["partialSuccess"]["errorMessage"].as_str().unwrap();
    assert!(why.contains("traceId"), "{why}");
}

#[test]
fn refusals_say_what_to_mend() {
    let home = Home::new();
    let refused = |kind: &str, body: &[u8]| {
        let error = home.receiver.receive(Signal::Logs, kind, body).unwrap_err();
        let (content_type, body) = error.answer();
        (
            error.status(),
            content_type,
            String::from_utf8_lossy(&body).into_owned(),
        )
    };
    assert_eq!(refused("text/plain", b"").0, 415);
    let (status, _, body) = refused("application/json; charset=utf-8", b"{\"resourceLogs\":1}");
    assert_eq!(status, 400);
    assert!(body.contains("resourceLogs must be a list"), "{body}");
    let (status, kind, _) = refused("application/x-protobuf", b"\x0a\xff\xff");
    assert_eq!((status, kind), (400, "application/x-protobuf"));
    let deep = "[".repeat(100_000);
    assert_eq!(refused("application/json", deep.as_bytes()).0, 400);
    let small = Limits {
        body: 10,
        ..Limits::default()
    };
    let receiver = Receiver::new(home.directory.path(), Arc::new(Noon)).with_limits(small);
    let error = receiver.receive(Signal::Traces, "application/json", &[b' '; 11]);
    assert_eq!(error.unwrap_err().status(), 413);
}

#[test]
fn a_line_that_was_cut_off_does_not_spoil_the_next() {
    let home = Home::new();
    let received = home.json(&batch(&[span(1, None, "one")]));
    let path = &received.paths[0];
    let text = fs::read(path).unwrap();
    fs::write(path, [&text[..], &text[..100]].concat()).unwrap();
    home.json(&batch(&[span(2, None, "two")]));
    let rows = home.import(&[]);
    assert_eq!(home.texts(&rows[0]), ["one", "two"]);
}

#[test]
fn many_at_once_are_all_kept() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let home = &home;
            scope.spawn(move || {
                for n in 0..8 {
                    let id = thread * 8 + n + 1;
                    home.json(&batch(&[span(id, Some("all"), &format!("said {id}"))]));
                }
            });
        }
    });
    let rows = home.import(&[]);
    assert_eq!(rows.len(), 1);
    let mut texts = home.texts(&rows[0]);
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 64);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_that_can_be_tried_again() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("received"), "in the way").unwrap();
    let receiver = Receiver::new(home.path(), Arc::new(Noon));
    let body = batch(&[span(1, None, "one")]);
    let error = receiver
        .receive(Signal::Traces, "application/json", body.as_bytes())
        .unwrap_err();
    assert!(matches!(
        error,
        ReceiveError::NotKept {
            encoding: Encoding::Json,
            ..
        }
    ));
    assert_eq!(error.status(), 503);
    let (_, body) = error.answer();
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["code"], 14);
    assert!(!String::from_utf8_lossy(&body).contains(home.path().to_str().unwrap()));
}

/// A session of an agent, and the same after it was exported as OTLP and imported from the file.
fn there_and_back(log: &str, convention: Convention) -> (Transcript, Transcript) {
    let directory = tempfile::tempdir().unwrap();
    let first = Store::open(&directory.path().join("first")).unwrap();
    let host = Host::new(directory.path().join("nobody"), |_| None);
    let file = directory.path().join("session.jsonl");
    fs::write(&file, log).unwrap();
    let import = |store: &Store, file: &std::path::Path| {
        let paths = [file.to_owned()];
        let report = store
            .import_paths(&host, &paths, &options(), &Progress::default())
            .unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let filter = Filter::default();
        let rows = store
            .catalogue()
            .list(&filter, Order::default(), None)
            .unwrap();
        assert_eq!(rows.len(), 1);
        rows.into_iter().next().unwrap()
    };
    let row = import(&first, &file);
    let prices = Arc::new(quipu_prices::Prices::builtin().clone());
    let mut source = first.export(&row, &prices).unwrap();
    let mut options = TargetOptions::default();
    options.otlp.content = true;
    options.otlp.convention = convention;
    let exported = directory.path().join("exported.jsonl");
    let out = Box::new(fs::File::create(&exported).unwrap());
    write(&mut *source, Format::Otlp, &options, out, Box::new(Nowhere)).unwrap();
    let second = Store::open(&directory.path().join("second")).unwrap();
    let back = import(&second, &exported);
    (first.read(row).unwrap(), second.read(back).unwrap())
}

/// What an export carries of an event, as far as it is compared.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Carried {
    said: String,
    at: Timestamp,
    model: Option<String>,
    status: Option<quipu_model::Status>,
    duration_ms: Option<u64>,
    subagent: Option<String>,
    place: String,
}

fn carried(transcript: &Transcript) -> Vec<Carried> {
    let events = transcript.events.iter().filter_map(|event| {
        let said = match &event.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                let blocks: Vec<_> = blocks.iter().map(|block| &block.content).collect();
                format!("{blocks:?}")
            }
            Body::ToolCall(call) => format!("{:?} {} {:?}", call.call_id, call.name, call.input),
            Body::ToolResult(result) => format!(
                "{:?} {} {:?} {:?}",
                result.call_id, result.name, result.output, result.error
            ),
            _ => return None,
        };
        let notes = &event.annotations;
        // What has no time of its own has that of what stands before it.
        let is_dated = !notes.flags.undated;
        Some(Carried {
            said: format!("{} {said}", event.body.type_word()),
            at: if is_dated {
                event.timestamp
            } else {
                Timestamp::UNIX_EPOCH
            },
            model: notes.model.clone(),
            status: notes.status,
            duration_ms: notes.duration_ms,
            subagent: notes.subagent_id.as_ref().map(ToString::to_string),
            place: format!("{:?}", event.place),
        })
    });
    events.collect()
}

/// Who saw what was said. The engine sees more than an agent tells; of what it saw only agents' words come back as such.
fn fidelity(transcript: &Transcript) -> Vec<String> {
    let messages = transcript
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => Some(blocks),
            _ => None,
        });
    let blocks = messages.flatten();
    blocks
        .map(|block| format!("{:?}", block.fidelity))
        .collect()
}

/// What is told once a call: why the answer ended, and what it cost. Events of a call stand together.
fn told_once(transcript: &Transcript) -> (Vec<String>, Vec<String>) {
    let of = |told: fn(&quipu_model::Event) -> Option<String>| {
        let mut all: Vec<String> = Vec::new();
        let mut last: Option<(String, String)> = None;
        for event in &transcript.events {
            let Some(told) = told(event) else { continue };
            let call = event.annotations.model_call.as_ref();
            let this = (call.map(ToString::to_string).unwrap_or_default(), told);
            if last.as_ref() != Some(&this) || this.0.is_empty() {
                all.push(this.1.clone());
            }
            last = Some(this);
        }
        all
    };
    (
        of(|event| event.annotations.stop_reason.clone()),
        of(|event| Some(event.annotations.cost.as_ref()?.to_string())),
    )
}

#[test]
fn exports_of_ours_come_back() {
    for (name, log) in [
        (
            "claude",
            include_str!("../../../agents/fixtures/claude/session.jsonl"),
        ),
        (
            "codex",
            include_str!("../../../agents/fixtures/codex/session.jsonl"),
        ),
        // A run of a workflow, as it was recorded.
        (
            "run",
            include_str!("../../../agents/fixtures/exchange/run.jsonl"),
        ),
    ] {
        for convention in [Convention::GenAi, Convention::OpenInference] {
            let what = format!("{name}, {convention:?}");
            let (first, back) = there_and_back(log, convention);
            let (mut one, mut other) = (carried(&first), carried(&back));
            assert!(!one.is_empty(), "{what}");
            similar(&one, &other, &what);
            if name == "run" {
                // The engine names no calls to models, so a call lasts from the prompt to the answer. What is said in it
                // stands together, before what began while it lasted; times tell the order.
                one.sort_by_key(|it| it.at);
                other.sort_by_key(|it| it.at);
                steps(&back, &what);
            } else {
                assert_eq!(fidelity(&first), fidelity(&back), "{what}");
            }
            assert_eq!(one, other, "{what}");
            assert_eq!(told_once(&first), told_once(&back), "{what}");
            assert_eq!(first.row.usage, back.row.usage, "{what}");
            assert_eq!(first.row.vendor_cost, back.row.vendor_cost, "{what}");
            assert_eq!(first.session.id, back.session.id, "{what}");
            assert_eq!(first.row.title, back.row.title, "{what}");
            assert_eq!(first.session.cwd, back.session.cwd, "{what}");
            assert!(back.session.reconstructed, "{what}");
        }
    }
}

/// Steps come back as notes that keep their span: what they are called, how they ended, and where they are.
fn steps(back: &Transcript, what: &str) {
    let step = back.events.iter().find_map(|event| match &event.body {
        Body::Note(note) if note.text.as_deref() == Some("invoke_workflow ask") => {
            Some((event, note))
        }
        _ => None,
    });
    let (event, note) = step.unwrap_or_else(|| panic!("{what}: no step"));
    let raw = note.raw.as_ref().unwrap().get();
    let result = ["quipu.result", "output.value"];
    assert!(result.iter().any(|key| raw.contains(key)), "{what}: {raw}");
    assert!(raw.contains("step.completed"), "{what}: {raw}");
    assert_eq!(event.annotations.duration_ms, None, "{what}");
    assert_eq!(format!("{}", event.timestamp), "2026-01-02T03:04:05.1Z");
}

fn similar<T: PartialEq + std::fmt::Debug>(one: &[T], other: &[T], what: &str) {
    let lost: Vec<&T> = one.iter().filter(|it| !other.contains(it)).collect();
    let new: Vec<&T> = other.iter().filter(|it| !one.contains(it)).collect();
    assert!(
        lost.is_empty() && new.is_empty(),
        "{what}\nlost: {lost:#?}\nnew: {new:#?}"
    );
    assert_eq!(one.len(), other.len(), "{what}");
}

/// Requests that the SDK for Python sent (`opentelemetry-sdk` 1.45, its exporter for OTLP over HTTP).
#[test]
fn what_the_sdk_for_python_sends_is_read() {
    let home = Home::new();
    for (signal, sent) in [
        (
            Signal::Traces,
            include_str!("sent/python-sdk-1.45-traces.pb.hex"),
        ),
        (
            Signal::Logs,
            include_str!("sent/python-sdk-1.45-logs.pb.hex"),
        ),
    ] {
        let body = quipu_model::hex::decode(sent.split_whitespace().collect::<String>()).unwrap();
        let kind = "application/x-protobuf";
        let received = home.receiver.receive(signal, kind, &body).unwrap();
        assert_eq!((received.rejected, received.unknown_fields), (0, 0));
        assert_eq!(received.paths.len(), 1);
    }
    let rows = home.import(&[]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].native, "sdk-conv-1");
    let usage = rows[0].usage;
    assert_eq!((usage.input, usage.output), (Some(21), Some(5)));
    let transcript = home.store.read(rows[0].clone()).unwrap();
    let words: Vec<&str> = transcript
        .events
        .iter()
        .map(|event| event.body.type_word())
        .filter(|word| *word != "note")
        .collect();
    assert_eq!(
        words,
        [
            "message.user",
            "model.call",
            "message.assistant",
            "tool.call",
            "tool.result",
            "message.user",
        ]
    );
    let texts: Vec<&str> = transcript
        .events
        .iter()
        .flat_map(|event| event.body.texts())
        .collect();
    assert_eq!(texts, ["grüße", "hallo", "from a log"]);
}
