mod kept;
mod property;

use std::io;

use quipu_model::json::Tape;
use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Event, Fidelity, Flags, Json, Note, NoteKind,
    Notes, Place, RunId, Step, Timestamp, ToolCall, ToolResult, Unknown, Usage,
};
use serde_json::Value;

use super::{Facts, Made, ProjectionOptions, Projector, Sink};
use crate::agentlog::verify::{VerifyOptions, verify};
use crate::loss::Loss;

/// Keeps everything.
#[derive(Default)]
struct Kept {
    file: Vec<u8>,
    seqs: Vec<u64>,
    blobs: Vec<(Attachment, Vec<u8>)>,
}

impl Sink for Kept {
    fn record(&mut self, made: &Made<'_>) -> io::Result<()> {
        self.file.extend_from_slice(made.line);
        self.seqs.push(made.seq);
        Ok(())
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.blobs.push((attachment.clone(), bytes.to_vec()));
        Ok(())
    }
}

impl Kept {
    fn records(&self) -> Vec<Value> {
        let lines = self
            .file
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// The kinds, each with the line of its parent.
    fn shape(&self) -> String {
        let records = self.records();
        let mut shape = Vec::new();
        for (n, record) in records.iter().enumerate() {
            let parent = records[..n]
                .iter()
                .rposition(|other| other["id"] == record["parent"]);
            let parent = parent.map_or("-".to_owned(), |n| n.to_string());
            shape.push(format!("{}<{parent}", record["kind"].as_str().unwrap()));
        }
        shape.join(" ")
    }

    /// Whether the trace is as the strict check wants it.
    fn check(&self) {
        let report = verify(&self.file[..], &VerifyOptions::default()).unwrap();
        let text = String::from_utf8_lossy(&self.file);
        assert!(report.is_clean(), "{:#?}\n{text}", report.findings);
    }
}

fn run() -> RunId {
    RunId::new("r1").unwrap()
}

fn facts() -> Facts {
    Facts {
        agent: Some("claude-code".to_owned()),
        title: Some("Mend the relay".to_owned()),
        cwd: Some("/home/ada/relay".to_owned()),
        ..Facts::recorded(run())
    }
}

fn event(seq: u64, millis: i64, body: Body, notes: Notes) -> Event {
    Event {
        seq,
        run_id: run(),
        parent_run_id: None,
        timestamp: Timestamp::from_millisecond(1_780_000_000_000 + millis).unwrap(),
        place: Place::run(),
        body,
        annotations: Annotations::from(notes),
    }
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::text(Fidelity::AgentEmitted, text)]
}

fn user(said: &str) -> Body {
    Body::UserMessage(text(said))
}

fn says(said: &str) -> Body {
    Body::AssistantMessage(text(said))
}

fn calls(id: &str, input: &str) -> Body {
    Body::ToolCall(ToolCall {
        name: "bash".to_owned(),
        call_id: id.into(),
        input: Some(Json::parse(input).unwrap()),
        fidelity: Fidelity::AgentEmitted,
    })
}

fn gives(id: &str, output: &str) -> Body {
    Body::ToolResult(ToolResult {
        name: "bash".to_owned(),
        call_id: id.into(),
        input: None,
        output: Some(Json::parse(output).unwrap()),
        error: None,
        fidelity: Fidelity::AgentEmitted,
    })
}

fn note(kind: NoteKind, text: &str) -> Body {
    Body::Note(Note {
        kind,
        text: Some(text.to_owned()),
        raw: None,
    })
}

fn of_call(call: &str) -> Notes {
    Notes {
        model: Some("m".to_owned()),
        model_call: Some(call.into()),
        ..Notes::default()
    }
}

fn project(bodies: Vec<(Body, Notes)>, options: ProjectionOptions) -> (Kept, Loss) {
    let mut kept = Kept::default();
    let mut projector = Projector::new(facts(), options);
    for (n, (body, notes)) in bodies.into_iter().enumerate() {
        let seq = n as u64 + 1;
        let event = event(seq, i64::try_from(seq).unwrap() * 100, body, notes);
        projector.event(&event, &mut kept).unwrap();
    }
    let loss = projector.finish(&mut kept).unwrap();
    kept.check();
    (kept, loss)
}

#[test]
fn a_call_whose_results_come_in_between_is_one_response() {
    let usage = |output| {
        Some(Usage {
            input: Some(3),
            output: Some(output),
            ..Usage::default()
        })
    };
    let (kept, loss) = project(
        vec![
            (user("list it"), Notes::default()),
            (
                says("I look."),
                Notes {
                    usage: usage(5),
                    ..of_call("c1")
                },
            ),
            (calls("t1", r#"{"command":"ls"}"#), of_call("c1")),
            (
                gives("t1", "\"a b\""),
                Notes {
                    duration_ms: Some(7),
                    ..Notes::default()
                },
            ),
            (
                calls("t2", r#"{"command":"pwd"}"#),
                Notes {
                    usage: usage(2),
                    ..of_call("c1")
                },
            ),
            (gives("t2", r#"{"code":0}"#), Notes::default()),
            (says("Done."), of_call("c2")),
        ],
        ProjectionOptions::default(),
    );
    assert_eq!(
        kept.shape(),
        "metadata<- chat_request<0 chat_response<1 tool_call<2 tool_result<3 tool_call<2 tool_result<5 \
         chat_request<6 chat_response<7"
    );
    let records = kept.records();
    let response = &records[2]["payload"];
    assert_eq!(response["content"].as_array().unwrap().len(), 3);
    assert_eq!(response["stop_reason"], "tool_use");
    assert_eq!(response["usage"]["input_tokens"], 6);
    assert_eq!(response["usage"]["output_tokens"], 7);
    assert_eq!(response["latency_ms"], 200);
    assert_eq!(records[4]["payload"]["latency_ms"], 7);
    assert_eq!(records[6]["payload"]["latency_ms"], 100);
    let messages = records[7]["payload"]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "user"]);
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "t1");
    assert_eq!(messages[3]["content"][0]["content"], r#"{"code":0}"#);
    assert_eq!(records[8]["payload"]["stop_reason"], "end_turn");
    assert_eq!(records[0]["payload"]["tags"]["run"], "r1");
    assert_eq!(records[0]["meta"]["trace_id"].as_str().unwrap().len(), 32);
    assert_eq!((loss.events, loss.carried), (7, 7));
    assert_eq!(
        loss.inferred["chat_response.stop_reason, from the content"].count,
        2
    );
}

#[test]
fn an_answer_ends_for_the_reason_that_the_log_gives() {
    for (word, calls_tool, stop, is_kept) in [
        ("max_tokens", false, "max_tokens", false),
        ("end_turn", false, "end_turn", false),
        ("length", false, "max_tokens", true),
        ("STOP", false, "end_turn", true),
        ("STOP", true, "tool_use", true),
        ("refusal", false, "content_filter", true),
    ] {
        let ended = Notes {
            stop_reason: Some(word.to_owned()),
            ..of_call("c1")
        };
        let mut told = vec![(user("go"), Notes::default())];
        if calls_tool {
            told.push((calls("t1", "{}"), of_call("c1")));
        }
        told.push((says("Well."), ended));
        let (kept, loss) = project(told, ProjectionOptions::default());
        let records = kept.records();
        let response = records
            .iter()
            .find(|record| record["kind"] == "chat_response")
            .unwrap();
        assert_eq!(response["payload"]["stop_reason"], stop, "{word}");
        let native = &response["meta"]["quipu"]["stop_reason"];
        assert_eq!(native.as_str(), is_kept.then_some(word));
        assert!(
            loss.inferred
                .keys()
                .all(|what| !what.contains("stop_reason"))
        );
    }
    // A word that has no place in the closed list is kept beside it, and what stands there is counted.
    let ended = Notes {
        stop_reason: Some("pause_turn".to_owned()),
        ..of_call("c1")
    };
    let told = vec![(user("go"), Notes::default()), (says("Well."), ended)];
    let (kept, loss) = project(told, ProjectionOptions::default());
    assert_eq!(
        kept.records()[2]["meta"]["quipu"]["stop_reason"],
        "pause_turn"
    );
    assert_eq!(
        loss.inferred["chat_response.stop_reason, from the content"].count,
        1
    );
}

#[test]
fn without_names_of_calls_a_result_ends_the_answer_and_tokens_go_where_they_are_told() {
    let tokens = |n| Notes {
        usage: Some(Usage {
            output: Some(n),
            ..Usage::default()
        }),
        ..Notes::default()
    };
    let (kept, loss) = project(
        vec![
            (user("go"), Notes::default()),
            (note(NoteKind::Usage, "tokens"), tokens(11)),
            (says("First."), Notes::default()),
            (calls("t1", "[1]"), Notes::default()),
            (note(NoteKind::Context, "cwd"), Notes::default()),
            (gives("t1", "[1,2]"), Notes::default()),
            (says("Second."), Notes::default()),
            (note(NoteKind::Usage, "tokens"), tokens(12)),
        ],
        ProjectionOptions::default(),
    );
    assert_eq!(
        kept.shape(),
        "metadata<- chat_request<0 chat_response<1 tool_call<2 tool_result<3 chat_request<4 \
         chat_response<5"
    );
    let records = kept.records();
    assert_eq!(records[2]["payload"]["usage"]["output_tokens"], 11);
    assert_eq!(records[6]["payload"]["usage"]["output_tokens"], 12);
    assert_eq!(records[3]["payload"]["arguments"]["input"][0], 1);
    assert_eq!(records[4]["payload"]["output"], "[1,2]");
    assert_eq!(records[2]["payload"]["model"], "unknown");
    assert_eq!((loss.events, loss.carried), (8, 7));
    assert_eq!(loss.dropped["note:context"].first_seq, 5);
    assert!(!loss.is_complete());
}

#[test]
fn a_recorded_run_keeps_its_steps_and_a_call_that_two_channels_report_is_one() {
    let used = Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::ToolUse {
            name: "bash".to_owned(),
            id: "t1".into(),
            input: Some(Json::parse(r#"{"command":"ls"}"#).unwrap()),
        },
    };
    let back = Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::ToolResult {
            id: "t1".into(),
            content: Some(Json::string("a b")),
        },
    };
    let called = calls("t1", r#"{"command":"ls"}"#);
    let gave = gives("t1", "\"a b\"");
    let foreign = Unknown {
        event_type: "step.exploded".to_owned(),
        child_run_id: None,
        payload: Json::parse(r#"{"why":1}"#).unwrap(),
    };
    let bodies = [
        Body::RunStarted(Some(Step::new("nightly", "workflow"))),
        Body::StepStarted(Step::new("review", "agent")),
        Body::UserMessage(text("go")),
        Body::AssistantMessage(vec![
            used,
            Block::unknown(Json::parse(r#"{"type":"odd"}"#).unwrap()),
        ]),
        called,
        gave,
        Body::UserMessage(vec![back]),
        Body::Unknown(foreign),
        Body::StepCompleted(Step::new("review", "agent").failed("no")),
    ];
    let mut kept = Kept::default();
    let mut projector = Projector::new(Facts::recorded(run()), ProjectionOptions::default());
    for (n, body) in bodies.into_iter().enumerate() {
        let seq = n as u64 + 1;
        projector
            .event(&event(seq, 0, body, Notes::default()), &mut kept)
            .unwrap();
    }
    let loss = projector.finish(&mut kept).unwrap();
    kept.check();
    assert_eq!(
        kept.shape(),
        "metadata<- harness_event<0 harness_event<0 chat_request<0 chat_response<3 tool_call<4 \
         tool_result<5 harness_event<6 harness_event<6"
    );
    let records = kept.records();
    assert_eq!(records[0]["payload"]["tags"]["title"], "nightly");
    assert_eq!(records[1]["payload"]["name"], "run.started");
    assert_eq!(records[2]["payload"]["attributes"]["kind"], "agent");
    assert_eq!(
        records[4]["payload"]["content"].as_array().unwrap().len(),
        2
    );
    assert_eq!(records[7]["payload"]["name"], "step.exploded");
    assert_eq!(records[8]["payload"]["severity"], "error");
    assert_eq!((loss.carried, loss.is_complete()), (9, true));
}

#[test]
fn notes_have_their_places() {
    let image = Attachment {
        mime: "image/png".to_owned(),
        bytes: 9,
        sha256: "ab".repeat(32),
    };
    let with_image = Notes {
        attachments: vec![image],
        ..Notes::default()
    };
    let (kept, loss) = project(
        vec![
            (user("look"), with_image),
            (note(NoteKind::Retry, "again"), Notes::default()),
            (says("Yes."), of_call("c1")),
            (note(NoteKind::Compaction, "shorter"), Notes::default()),
            (note(NoteKind::Error, "API Error: gone"), Notes::default()),
            (note(NoteKind::Todo, "milk"), Notes::default()),
            (user("and now?"), Notes::default()),
        ],
        ProjectionOptions::default(),
    );
    assert_eq!(
        kept.shape(),
        "metadata<- blob_ref<0 harness_event<0 chat_request<0 chat_response<3 harness_event<4 error<4 \
         chat_request<4"
    );
    let records = kept.records();
    let part = &records[3]["payload"]["messages"][0]["content"][1];
    assert_eq!(part["source"]["uri"], records[1]["payload"]["uri"]);
    assert_eq!(records[5]["payload"]["category"], "context_trim");
    assert_eq!(records[6]["payload"]["source"], "llm");
    // What was said before the compaction is not asked again, and what was never answered is there.
    assert_eq!(
        records[7]["payload"]["messages"].as_array().unwrap().len(),
        1
    );
    assert_eq!(records[7]["meta"]["quipu"]["omitted"], 2);
    assert_eq!(records[7]["meta"]["quipu"]["unanswered"], true);
    assert_eq!((loss.events, loss.carried), (7, 6));
    assert_eq!(loss.dropped.keys().collect::<Vec<_>>(), ["note:todo"]);
}

#[test]
fn times_do_not_run_backwards_and_the_real_ones_are_kept() {
    let mut kept = Kept::default();
    let mut projector = Projector::new(facts(), ProjectionOptions::default());
    let undated = Notes {
        flags: Flags {
            undated: true,
            ..Flags::default()
        },
        ..Notes::default()
    };
    for (n, (millis, body, notes)) in [
        (500, user("go"), Notes::default()),
        (900, calls("t1", "{}"), Notes::default()),
        (400, gives("t1", "\"x\""), Notes::default()),
        (0, note(NoteKind::Hook, "h"), undated),
        (901, says("ok"), Notes::default()),
    ]
    .into_iter()
    .enumerate()
    {
        projector
            .event(&event(n as u64 + 1, millis, body, notes), &mut kept)
            .unwrap();
    }
    let loss = projector.finish(&mut kept).unwrap();
    kept.check();
    let records = kept.records();
    assert_eq!(records[4]["kind"], "tool_result");
    assert_eq!(records[4]["ts"], records[3]["ts"]);
    let real = records[4]["meta"]["quipu"]["ts"].as_str().unwrap();
    assert!(real.contains(".400"), "{real}");
    assert_eq!(
        records[5]["meta"]["quipu"].get("ts"),
        None,
        "there is no real one"
    );
    assert_eq!(
        loss.inferred["ts of the record before, for an event that is earlier"].count,
        1
    );
}

#[test]
fn sub_agents_talk_among_themselves_and_what_was_taken_back_is_marked() {
    let sub = |call: &str| Notes {
        subagent_id: Some("s".into()),
        ..of_call(call)
    };
    let taken = Notes {
        flags: Flags {
            superseded: true,
            ..Flags::default()
        },
        ..Notes::default()
    };
    let (kept, _) = project(
        vec![
            (user("go"), Notes::default()),
            (user("wrong"), taken.clone()),
            (
                says("Wrong."),
                Notes {
                    flags: taken.flags,
                    ..of_call("c0")
                },
            ),
            (user("right"), Notes::default()),
            (calls("t1", "{}"), of_call("c1")),
            (
                user("do"),
                Notes {
                    model: None,
                    model_call: None,
                    ..sub("")
                },
            ),
            (calls("t2", "{}"), sub("s1")),
            (gives("t2", "\"2\""), sub("s1")),
            (says("Sub."), sub("s2")),
            (gives("t1", "\"1\""), Notes::default()),
            (says("Main."), of_call("c2")),
        ],
        ProjectionOptions::default(),
    );
    let records = kept.records();
    let last = records
        .iter()
        .rfind(|record| {
            record["kind"] == "chat_request" && record["meta"]["quipu"].get("subagent").is_none()
        })
        .unwrap();
    let asked = last["payload"]["messages"].to_string();
    assert!(
        !asked.contains("wrong") && !asked.contains("Sub."),
        "{asked}"
    );
    assert!(
        asked.contains("right") && asked.contains("\"go\""),
        "{asked}"
    );
    let marked = records
        .iter()
        .filter(|record| record["meta"]["quipu"]["superseded"] == true);
    assert_eq!(marked.count(), 2);
    let subs = records
        .iter()
        .filter(|record| record["meta"]["quipu"]["subagent"] == "s");
    assert_eq!(subs.count(), 6);
}

#[test]
fn a_long_session_does_not_grow_with_its_square() {
    let turns = 300;
    let mut bodies = Vec::new();
    for n in 0..turns {
        bodies.push((
            user(&format!("{n} {}", "x".repeat(1_000))),
            Notes::default(),
        ));
        bodies.push((says(&"y".repeat(1_000)), of_call(&format!("c{n}"))));
    }
    let options = ProjectionOptions {
        max_request_bytes: 8_000,
        ..ProjectionOptions::default()
    };
    let (kept, loss) = project(bodies, options);
    assert!(kept.file.len() < 4_500 * turns, "{}", kept.file.len());
    let records = kept.records();
    let last = records
        .iter()
        .rfind(|record| record["kind"] == "chat_request")
        .unwrap();
    assert_eq!(last["meta"]["quipu"]["messages"], "new");
    assert_eq!(last["meta"]["quipu"]["omitted"], 2 * turns - 3);
    assert_eq!(last["payload"]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(loss.carried, 2 * turns as u64);
}

#[test]
fn what_cannot_be_written_as_it_is_is_mended_or_moved_out_and_counted() {
    let huge = Json::string(&"é".repeat(9 << 20));
    let (kept, loss) = project(
        vec![
            (
                calls("t1", r#"{"a":1,"a":"\ud800","n":1e400}"#),
                Notes::default(),
            ),
            (gives("t1", huge.get()), Notes::default()),
            (says("Large."), Notes::default()),
        ],
        ProjectionOptions::default(),
    );
    let records = kept.records();
    assert_eq!(records[2]["meta"]["quipu"]["mended"], true);
    assert_eq!(records[3]["payload"]["arguments"]["n"], "1e400");
    let moved = records
        .iter()
        .filter(|record| record["meta"]["quipu"]["moved_out"] == true);
    assert_eq!(moved.count(), 2, "the result, and the request that has it");
    assert_eq!(kept.blobs[0].1.len(), 18 << 20);
    let references = records.iter().filter(|record| record["kind"] == "blob_ref");
    assert_eq!(references.count(), kept.blobs.len());
    assert!(loss.is_complete() && !loss.wrapped.is_empty());
}

#[test]
fn a_made_up_meta_is_one_value() {
    let (kept, _) = project(
        vec![(user("\u{1}\"x\""), Notes::default())],
        ProjectionOptions::default(),
    );
    let mut tape = Tape::new();
    for line in String::from_utf8(kept.file).unwrap().lines() {
        tape.read(line, 64).unwrap();
    }
    assert_eq!(kept.seqs, [0, 1]);
}

#[test]
fn a_file_that_is_written_inline_is_moved_out() {
    let data = "iVBO".repeat(2000);
    let output = format!(
        r#"{{"content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]}}"#
    );
    let (kept, loss) = project(
        vec![
            (user("look"), Notes::default()),
            (calls("t1", "{}"), of_call("c1")),
            (gives("t1", &output), Notes::default()),
        ],
        ProjectionOptions::default(),
    );
    assert_eq!(
        kept.shape(),
        "metadata<- chat_request<0 chat_response<1 tool_call<2 blob_ref<3 tool_result<3"
    );
    let records = kept.records();
    let source = &records[5]["payload"]["output"]["content"][0]["source"];
    assert_eq!(source["type"], "blob");
    assert_eq!(source["uri"], records[4]["payload"]["uri"]);
    assert_eq!(records[4]["payload"]["mime"], "image/png");
    let [(attachment, bytes)] = &kept.blobs[..] else {
        panic!("one blob");
    };
    assert_eq!((attachment.bytes, bytes.len()), (6000, 6000));
    assert_eq!(
        loss.wrapped["files that were written inline, as a blob"].count,
        1
    );
}
