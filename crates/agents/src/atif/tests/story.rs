//! Sessions for round trips: events as adapters give them, in which everything makes sense.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use quipu_model::{
    Annotations, Block, Body, Content, Event, Fidelity, Header, Json, Note, NoteKind, Notes, Place,
    RunId, SubagentId, Timestamp, ToolCall, ToolCallId, ToolResult, Usage,
};

/// What one call to a model does.
#[derive(Debug, Clone)]
struct Turn {
    prompt: Option<String>,
    system: Option<String>,
    thought: Option<String>,
    said: Option<String>,
    calls: Vec<(String, Json, Option<Json>)>,
    usage: [u32; 4],
    note: Option<(NoteKind, Option<String>)>,
    named: bool,
    subagent: bool,
}

fn text() -> BoxedStrategy<String> {
    let awkward = prop::sample::select(vec![
        "\0",
        "\n",
        "\"",
        "\\",
        "\u{2028}",
        "\u{202e}",
        "é",
        "\u{1f600}",
        "</script>",
        "{}",
        "a",
    ]);
    let some = vec(awkward, 1..6).prop_map(|parts| parts.concat());
    prop_oneof![some, "[a-z ]{1,12}x"].boxed()
}

fn json() -> BoxedStrategy<Json> {
    let fixed = prop::sample::select(vec![
        r#"{"command":"ls"}"#,
        "{}",
        "[1,2.50]",
        "7",
        "true",
        r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
        r#"[{"type":"text","text":"a","more":1}]"#,
        r#"{"_raw":1}"#,
        "123456789012345678901234567890",
    ]);
    let fixed = fixed.prop_map(|text| Json::parse(text).unwrap());
    prop_oneof![2 => fixed, 2 => text().prop_map(|text| Json::string(&text))].boxed()
}

fn turn() -> BoxedStrategy<Turn> {
    let kind = prop::sample::select(vec![
        NoteKind::Title,
        NoteKind::Compaction,
        NoteKind::Todo,
        NoteKind::UnknownRecord,
    ]);
    let said = (of(text()), of(text()), of(text()), of(text()));
    let calls = vec(("[a-z]{1,6}", json(), of(json())), 0..3);
    let rest = (
        any::<[u32; 4]>(),
        of((kind, of(text()))),
        any::<bool>(),
        any::<bool>(),
    );
    (said, calls, rest)
        .prop_map(
            |((prompt, system, thought, said), calls, (usage, note, named, subagent))| Turn {
                prompt,
                system,
                thought,
                said,
                calls,
                usage,
                note,
                named,
                subagent,
            },
        )
        .boxed()
}

fn block(content: Content) -> Vec<Block> {
    vec![Block {
        fidelity: Fidelity::AgentEmitted,
        content,
    }]
}

fn bodies(turn: Turn, n: usize) -> Vec<(Body, bool)> {
    let exchange = |body| (body, false);
    let agents = |body| (body, true);
    let mut found = Vec::new();
    if let Some(text) = turn.system {
        found.push((Body::SystemMessage(block(Content::Text(text))), false));
    }
    if let Some(text) = turn.prompt {
        found.push(exchange(Body::UserMessage(block(Content::Text(text)))));
    }
    if let Some(text) = turn.thought {
        found.push(agents(Body::AssistantMessage(block(Content::Thinking(
            text,
        )))));
    }
    if let Some(text) = turn.said {
        found.push(agents(Body::AssistantMessage(block(Content::Text(text)))));
    }
    let mut results = Vec::new();
    for (k, (name, input, output)) in turn.calls.into_iter().enumerate() {
        let call_id = ToolCallId::from(format!("call-{n}-{k}"));
        found.push(agents(Body::ToolCall(ToolCall {
            name: name.clone(),
            call_id: call_id.clone(),
            input: Some(input),
            fidelity: Fidelity::AgentEmitted,
        })));
        if let Some(output) = output {
            results.push(exchange(Body::ToolResult(ToolResult {
                name,
                call_id,
                input: None,
                output: Some(output),
                error: None,
                fidelity: Fidelity::AgentEmitted,
            })));
        }
    }
    found.extend(results.into_iter().rev());
    if let Some((kind, text)) = turn.note {
        let note = Note {
            kind,
            text,
            raw: None,
        };
        found.push((Body::Note(note), false));
    }
    found
}

/// A session, with or without sub-agents.
pub(crate) fn session(subagents: bool) -> BoxedStrategy<(Header, Vec<Event>)> {
    vec(turn(), 0..6)
        .prop_map(move |turns| {
            let mut header = Header::new(RunId::new("run-1").unwrap());
            let mut events: Vec<Event> = Vec::new();
            for (n, turn) in turns.into_iter().enumerate() {
                let [input, cached, written, output] =
                    turn.usage.map(|count| Some(u64::from(count)));
                let mut usage = Some(Usage {
                    input,
                    cache_read: cached,
                    cache_write: written,
                    cache_write_1h: None,
                    output,
                    reasoning: None,
                });
                let call = turn.named.then(|| format!("model-call-{n}").into());
                let subagent =
                    (subagents && turn.subagent).then(|| format!("agent-{}", n % 2).into());
                for (body, is_agents) in bodies(turn, n) {
                    let mut notes = Notes {
                        subagent_id: subagent.clone(),
                        ..Notes::default()
                    };
                    if is_agents {
                        notes.model = Some("model".to_owned());
                        notes.model_call.clone_from(&call);
                        notes.usage = usage.take();
                    }
                    let seq = events.len() as u64 + 1;
                    let event = Event {
                        seq,
                        run_id: header.run_id.clone(),
                        parent_run_id: None,
                        timestamp: Timestamp::from_second(1_767_323_045).unwrap(),
                        place: Place::run(),
                        body,
                        annotations: Annotations::from(notes),
                    };
                    header.observe(&event);
                    events.push(event);
                }
            }
            (header, events)
        })
        .boxed()
}

/// What was said, by whom, in order: each sub-agent by itself.
pub(crate) fn said(events: &[Event]) -> Vec<(Option<SubagentId>, &'static str, String)> {
    let mut found = Vec::new();
    for event in events {
        let (Body::UserMessage(blocks)
        | Body::AssistantMessage(blocks)
        | Body::SystemMessage(blocks)) = &event.body
        else {
            continue;
        };
        for block in blocks {
            let (kind, text) = match &block.content {
                Content::Text(text) => (
                    event
                        .body
                        .event_type()
                        .map_or("", quipu_model::EventType::as_str),
                    text,
                ),
                Content::Thinking(text) => ("thinking", text),
                _ => continue,
            };
            found.push((event.annotations.subagent_id.clone(), kind, text.clone()));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// A call or a result: type, call, tool, arguments or output.
pub(crate) type Done = (&'static str, ToolCallId, String, Option<String>);

/// The calls and results.
pub(crate) fn done(events: &[Event]) -> Vec<Done> {
    let mut found: Vec<_> = events
        .iter()
        .filter_map(|event| {
            let word = event
                .body
                .event_type()
                .map_or("", quipu_model::EventType::as_str);
            let json = |json: &Option<Json>| json.as_ref().map(|json| json.get().to_owned());
            match &event.body {
                Body::ToolCall(call) => Some((
                    word,
                    call.call_id.clone(),
                    call.name.clone(),
                    json(&call.input),
                )),
                Body::ToolResult(result) => Some((
                    word,
                    result.call_id.clone(),
                    result.name.clone(),
                    json(&result.output),
                )),
                _ => None,
            }
        })
        .collect();
    found.sort();
    found
}

/// The notes of these kinds.
pub(crate) fn noted(events: &[Event]) -> Vec<(&'static str, Option<String>)> {
    let kinds = [
        NoteKind::Title,
        NoteKind::Compaction,
        NoteKind::Todo,
        NoteKind::UnknownRecord,
    ];
    let notes = events.iter().filter_map(|event| match &event.body {
        Body::Note(note) if kinds.contains(&note.kind) => {
            Some((note.kind.as_str(), note.text.clone()))
        }
        _ => None,
    });
    let mut notes: Vec<_> = notes.collect();
    notes.sort();
    notes
}

/// The tokens of all events.
pub(crate) fn usage(events: &[Event]) -> Usage {
    let mut sum = Usage::default();
    for usage in events.iter().filter_map(|event| event.annotations.usage) {
        sum.add(&usage);
    }
    sum
}
