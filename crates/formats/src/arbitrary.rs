//! Events of every kind, for property tests. Boxed, because as one type they overflow the stack.
//!
//! What the format says is the same as nothing is not made: an error that is an empty text, and a
//! `null` where a tool's input or output may be missing (see [`quipu_exchange::LOSSES`]).

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use quipu_model::{
    Annotations, Attachment, Block, Body, Chunk, Content, Environment, Event, Failure, Fidelity,
    Flags, HarnessEvent, Header, Json, ModelCall, Money, Note, NoteKind, Notes, Origin, Place,
    RunId, Severity, Source, Status, Step, StepEnd, StepKind, Timestamp, ToolCall, ToolResult,
    Unknown, Usage,
};

/// Text with what is awkward in JSON, in Go's JSON and in lines.
pub fn text() -> BoxedStrategy<String> {
    let awkward = prop::sample::select(vec![
        "\0",
        "\n",
        "\r",
        "\t",
        "\u{8}",
        "\u{c}",
        "\u{1f}",
        "\u{7f}",
        "\"",
        "\\",
        "/",
        "<",
        ">",
        "&",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{fffd}",
        "é",
        "\u{1f600}",
        "{\"seq\":1}",
        "a",
    ]);
    prop_oneof![
        3 => vec(awkward, 0..6).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
        2 => "[a-z]{0,8}",
    ]
    .boxed()
}

fn full_text() -> BoxedStrategy<String> {
    text().prop_map(|text| text + "x").boxed()
}

fn run_id() -> BoxedStrategy<RunId> {
    "[A-Za-z0-9_][A-Za-z0-9._-]{0,40}"
        .prop_map(|id| RunId::new(&id).expect("made of permitted characters"))
        .boxed()
}

fn json() -> BoxedStrategy<Json> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.0",
            "1e400",
            "123456789012345678901234567890",
            "\"\\ud800\"",
            "\"\\u0041\"",
            "{}",
            "[]",
            "{ \"b\" : 1 , \"a\" : 2 , \"a\" : 3 }",
        ])
        .prop_map(ToOwned::to_owned),
        text().prop_map(|text| Json::string(&text).get().to_owned()),
    ];
    let tree = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            vec((text(), inner), 0..4).prop_map(|fields| {
                let fields: Vec<String> = fields
                    .into_iter()
                    .map(|(key, value)| format!("{}:{value}", Json::string(&key).get()))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    });
    tree.prop_map(|text| Json::parse(&text).expect("made as JSON"))
        .boxed()
}

fn not_null() -> BoxedStrategy<Json> {
    json()
        .prop_filter("null is none", |json| !json.is_null())
        .boxed()
}

fn fidelity() -> BoxedStrategy<Fidelity> {
    prop::sample::select(Fidelity::ALL).boxed()
}

fn step() -> BoxedStrategy<Step> {
    let kind = prop_oneof![
        text().prop_map(StepKind::from),
        prop::sample::select(StepKind::NAMED)
    ];
    (text(), kind)
        .prop_map(|(name, kind)| Step { name, kind })
        .boxed()
}

fn step_end() -> BoxedStrategy<StepEnd> {
    (step(), of(full_text()), of(json()))
        .prop_map(|(step, error, result)| StepEnd {
            step,
            error,
            result,
        })
        .boxed()
}

fn block() -> BoxedStrategy<Block> {
    let content = prop_oneof![
        text().prop_map(Content::Text),
        text().prop_map(Content::Thinking),
        text().prop_map(Content::Command),
        text().prop_map(Content::Stream),
        (text(), text(), of(json())).prop_map(|(name, id, input)| Content::ToolUse {
            name,
            id: id.into(),
            input
        }),
        (text(), of(json())).prop_map(|(id, content)| Content::ToolResult {
            id: id.into(),
            content
        }),
    ];
    (fidelity(), content)
        .prop_map(|(fidelity, content)| Block { fidelity, content })
        .boxed()
}

fn tool() -> BoxedStrategy<ToolResult> {
    let fields = (
        text(),
        text(),
        of(not_null()),
        of(not_null()),
        of(full_text()),
        fidelity(),
    );
    fields
        .prop_map(
            |(name, call_id, input, output, error, fidelity)| ToolResult {
                name,
                call_id: call_id.into(),
                input,
                output,
                error,
                fidelity,
            },
        )
        .boxed()
}

/// What the exchange format has a type for.
fn exchange_body() -> BoxedStrategy<Body> {
    prop_oneof![
        of(step()).prop_map(Body::RunStarted),
        of(step_end()).prop_map(Body::RunCompleted),
        step().prop_map(Body::StepStarted),
        step_end().prop_map(Body::StepCompleted),
        (run_id(), step())
            .prop_map(|(child_run_id, step)| Body::CallStarted { child_run_id, step }),
        (run_id(), step_end())
            .prop_map(|(child_run_id, end)| Body::CallCompleted { child_run_id, end }),
        vec(block(), 0..4).prop_map(Body::UserMessage),
        vec(block(), 0..4).prop_map(Body::AssistantMessage),
        tool().prop_map(|tool| Body::ToolCall(ToolCall {
            name: tool.name,
            call_id: tool.call_id,
            input: tool.input,
            fidelity: tool.fidelity,
        })),
        tool().prop_map(Body::ToolResult),
    ]
    .boxed()
}

fn attachment() -> BoxedStrategy<Attachment> {
    ("[a-z]{2,5}/[a-z]{2,5}", any::<u64>(), "[0-9a-f]{64}")
        .prop_map(|(mime, bytes, sha256)| Attachment {
            mime,
            bytes,
            sha256,
        })
        .boxed()
}

/// The kinds that the exchange format has no type for.
/// The kinds that the exchange format has no type for.
pub fn other_kind() -> BoxedStrategy<Body> {
    let call = (
        (of(text()), of(json())),
        (of(attachment()), of(attachment())),
        (of(any::<u64>()), of(text())),
    );
    let call = call.prop_map(
        |((provider, params), (request, response), (first_token_ms, error))| {
            Body::ModelCall(ModelCall {
                provider,
                params,
                request,
                response,
                first_token_ms,
                error,
            })
        },
    );
    let chunk = (
        (any::<u64>(), text(), of(json())),
        (of(timestamp()), any::<bool>(), fidelity()),
    );
    let chunk = chunk.prop_map(|((index, text, delta), (arrived_at, is_last, fidelity))| {
        Body::Chunk(Chunk {
            index,
            text,
            delta,
            arrived_at,
            is_last,
            fidelity,
        })
    });
    let harness = (
        text(),
        text(),
        of(prop::sample::select(Severity::ALL)),
        of(json()),
    );
    let harness = harness.prop_map(|(category, name, severity, attributes)| {
        Body::Harness(HarnessEvent {
            category,
            name,
            severity,
            attributes,
        })
    });
    let failure = (of(text()), of(text()), text(), of(any::<bool>()));
    let failure = failure.prop_map(|(source, code, message, retryable)| {
        Body::Error(Failure {
            source,
            code,
            message,
            retryable,
        })
    });
    let kind = prop::sample::select(NoteKind::ALL);
    let note =
        (kind, of(text()), of(json())).prop_map(|(kind, text, raw)| Note { kind, text, raw });
    prop_oneof![
        1 => vec(block(), 0..3).prop_map(Body::SystemMessage),
        2 => note.prop_map(Body::Note),
        1 => call,
        1 => chunk,
        1 => harness,
        1 => attachment().prop_map(Body::Blob),
        1 => failure,
    ]
    .boxed()
}

/// What was read and not understood: an event of another type, and a message with a block of another type.
pub fn unknown() -> BoxedStrategy<Body> {
    let event = ("[a-z]{1,5}\\.[a-z]{1,5}x", of(text()), json()).prop_map(
        |(event_type, child_run_id, payload)| {
            Body::Unknown(Unknown {
                event_type,
                child_run_id,
                payload,
            })
        },
    );
    let odd = json().prop_map(|json| {
        let block = format!(r#"{{"type":"odd","value":{}}}"#, json.get());
        Block::unknown(Json::parse(&block).unwrap_or(json))
    });
    let message = vec(prop_oneof![block(), odd], 1..3);
    let message = (0..3, message).prop_map(|(role, blocks)| match role {
        0 => Body::UserMessage(blocks),
        1 => Body::AssistantMessage(blocks),
        _ => Body::SystemMessage(blocks),
    });
    prop_oneof![event, message].boxed()
}

fn place() -> BoxedStrategy<Place> {
    let number = || prop_oneof![Just(0), any::<u64>()];
    prop_oneof![
        3 => (text(), number()).prop_map(|(path, iteration)| Place::flat(path, iteration)),
        1 => (text(), vec(number(), 0..4), 1..u64::MAX).prop_map(|(path, iterations, attempt)| {
            Place {
                path,
                iterations,
                attempt,
            }
        }),
    ]
    .boxed()
}

fn annotations() -> BoxedStrategy<Annotations> {
    let count = || of(any::<u64>());
    let usage = (count(), count(), count(), count(), count(), count()).prop_map(
        |(input, cache_read, cache_write, cache_write_1h, output, reasoning)| Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning,
        },
    );
    let cost = any::<i64>().prop_map(|atto| Money::from_atto(i128::from(atto)));
    let source = (text(), any::<u64>(), any::<u64>()).prop_map(|(file, offset, line)| Source {
        file,
        offset,
        line,
    });
    let flags =
        any::<[bool; 5]>().prop_map(|[opaque, synthetic, superseded, undated, dangling]| Flags {
            undated,
            dangling,
            opaque,
            synthetic,
            superseded,
        });
    let texts = (of(text()), of(text()), of(text()), of(text()));
    (texts, (of(usage), of(cost)), count(), of(source), flags)
        .prop_map(
            |(
                (native_id, parent_id, subagent_id, model),
                (usage, cost),
                duration_ms,
                source,
                flags,
            )| {
                Annotations::from(Notes {
                    native_id: native_id.map(Into::into),
                    parent_id: parent_id.map(Into::into),
                    subagent_id: subagent_id.map(Into::into),
                    model,
                    usage,
                    cost,
                    duration_ms,
                    source,
                    flags,
                    model_call: None,
                    stop_reason: None,
                    extra: None,
                    status: None,
                    child: None,
                    attachments: Vec::new(),
                })
            },
        )
        .boxed()
}

fn timestamp() -> BoxedStrategy<Timestamp> {
    let nanos = Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond();
    let near = 0..4_000_000_000_000_000_000i128;
    prop_oneof![nanos.boxed(), near.boxed()]
        .prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("within range"))
        .boxed()
}

/// Any event.
pub fn event() -> BoxedStrategy<Event> {
    let annotations = prop_oneof![Just(Annotations::default()), annotations()];
    (
        any::<u64>(),
        run_id(),
        of(run_id()),
        timestamp(),
        place(),
        body(),
        annotations,
    )
        .prop_map(
            |(seq, run_id, parent_run_id, timestamp, place, body, annotations)| Event {
                seq,
                run_id,
                parent_run_id,
                timestamp,
                place,
                body,
                annotations,
            },
        )
        .boxed()
}

/// Any kind that a file of the exchange format can hold.
fn body() -> BoxedStrategy<Body> {
    prop_oneof![3 => exchange_body(), 2 => other_kind()].boxed()
}

fn log_annotations() -> BoxedStrategy<Annotations> {
    let status = prop::sample::select(Status::ALL);
    let extra = vec(json(), 0..3).prop_map(|values| {
        let fields = values.iter().enumerate();
        let fields: Vec<String> = fields
            .map(|(n, value)| format!(r#""field{n}":{}"#, value.get()))
            .collect();
        Json::parse(&format!("{{{}}}", fields.join(","))).expect("fields of JSON are JSON")
    });
    let more = (
        of(text()),
        of(status),
        of(run_id()),
        vec(attachment(), 0..2),
    );
    (annotations(), more, of(text()), of(extra))
        .prop_map(
            |(mut annotations, (model_call, status, child, attachments), stop_reason, extra)| {
                annotations.model_call = model_call.map(Into::into);
                annotations.stop_reason = stop_reason;
                annotations.extra = extra;
                annotations.status = status;
                annotations.child = child;
                annotations.attachments = attachments;
                annotations
            },
        )
        .boxed()
}

/// A session: what is known of it as a whole, and its events. They have the same run, and dense numbers
/// from 1; of the rest, nothing need make sense.
pub fn session() -> BoxedStrategy<(Header, Vec<Event>)> {
    let annotations = prop_oneof![Just(Annotations::default()), log_annotations()];
    let event = (timestamp(), place(), body(), annotations);
    (header(), vec(event, 0..12))
        .prop_map(|(mut header, events)| {
            let (run_id, parent) = (header.run_id.clone(), header.parent_run_id.clone());
            let events: Vec<Event> = (1..)
                .zip(events)
                .map(|(seq, (timestamp, place, body, annotations))| Event {
                    seq,
                    run_id: run_id.clone(),
                    parent_run_id: parent.clone(),
                    timestamp,
                    place,
                    body,
                    annotations,
                })
                .collect();
            for event in &events {
                header.observe(event);
            }
            (header, events)
        })
        .boxed()
}

fn header() -> BoxedStrategy<Header> {
    let some = || of(full_text());
    let origin = (full_text(), some(), some(), some(), some()).prop_map(
        |(agent, agent_version, adapter, session_id, path)| Origin {
            agent,
            agent_version,
            adapter,
            session_id: session_id.map(Into::into),
            path,
        },
    );
    let environment = (some(), some(), some(), some(), some(), some()).prop_map(
        |(cwd, git_branch, repository, commit, os, shell)| Environment {
            cwd,
            git_branch,
            repository,
            commit,
            os,
            shell,
        },
    );
    let links = (run_id(), of(run_id()), some(), some(), some());
    (links, of(origin), environment)
        .prop_map(
            |((run_id, parent_run_id, parent_call, forked_from, title), origin, environment)| {
                Header {
                    parent_run_id,
                    parent_call: parent_call.map(Into::into),
                    forked_from: forked_from.map(Into::into),
                    title,
                    origin,
                    environment,
                    ..Header::new(run_id)
                }
            },
        )
        .boxed()
}
