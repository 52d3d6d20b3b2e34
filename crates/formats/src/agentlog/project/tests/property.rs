//! Whatever a log says.

use proptest::prelude::*;
use quipu_model::{Block, Body, Content, Fidelity, Flags, NoteKind, Notes, Usage};

use super::{Kept, calls, event, facts, gives, note, project, says, text, user};
use crate::agentlog::project::{ProjectionOptions, Projector};

/// What a log might say next.
fn any_body() -> impl Strategy<Value = (Body, Notes)> {
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("c")];
    let value = prop_oneof![
        Just("{}"),
        Just("\"x\""),
        Just("[1]"),
        Just("null"),
        Just(r#"{"a":1,"a":2}"#),
        Just(r#""\ud800""#),
        Just("1e400"),
        Just("0.1"),
    ];
    let body = prop_oneof![
        Just(user("u")),
        Just(says("a")),
        Just(Body::SystemMessage(text("s"))),
        (id.clone(), value.clone()).prop_map(|(id, value)| calls(id, value)),
        (id.clone(), value).prop_map(|(id, value)| gives(id, value)),
        prop::sample::select(NoteKind::ALL).prop_map(|kind| note(kind, "n")),
        Just(Body::RunCompleted(None)),
        id.clone().prop_map(|id| Body::AssistantMessage(vec![
            Block {
                fidelity: Fidelity::AgentEmitted,
                content: Content::ToolUse {
                    name: String::new(),
                    id: id.into(),
                    input: None
                },
            },
            Block {
                fidelity: Fidelity::AgentEmitted,
                content: Content::Stream("{\"d\":1}".to_owned()),
            },
        ])),
        id.prop_map(|id| Body::UserMessage(vec![Block {
            fidelity: Fidelity::AgentEmitted,
            content: Content::ToolResult {
                id: id.into(),
                content: None
            },
        }])),
    ];
    let notes = (
        prop::option::of(prop::sample::select(vec!["c1", "c2"])),
        prop::option::weighted(0.2, prop::sample::select(vec!["s1", "s2"])),
        prop::option::of(0..9_u64),
        any::<[bool; 2]>(),
    );
    let notes = notes.prop_map(|(call, sub, tokens, [superseded, undated])| Notes {
        model_call: call.map(Into::into),
        subagent_id: sub.map(Into::into),
        usage: tokens.map(|n| Usage {
            output: Some(n),
            ..Usage::default()
        }),
        flags: Flags {
            superseded,
            undated,
            ..Flags::default()
        },
        ..Notes::default()
    });
    (body, notes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_a_log_says_the_trace_is_valid_and_nothing_is_uncounted(
        bodies in prop::collection::vec((any_body(), -50..200_i64), 1..40),
        flush in prop::option::of(0..40_usize),
    ) {
        let mut kept = Kept::default();
        let mut projector = Projector::new(facts(), ProjectionOptions { max_request_bytes: 600, max_held_bytes: 200 });
        let (mut at, mut told) = (0, 0);
        for (n, ((body, notes), later)) in bodies.iter().cloned().enumerate() {
            at += later;
            told += notes.usage.map_or(0, |usage| usage.output.unwrap_or(0));
            projector.event(&event(n as u64 + 1, at, body, notes), &mut kept).unwrap();
            if flush == Some(n) {
                projector.flush(&mut kept).unwrap();
            }
        }
        let loss = projector.finish(&mut kept).unwrap();
        kept.check();
        prop_assert_eq!(loss.events, bodies.len() as u64);
        let dropped: u64 = loss.dropped.iter().filter(|(what, _)| what.starts_with("note:"))
            .map(|(_, tally)| tally.count).sum();
        // Of a note that tells of tokens, those may be all that is carried.
        prop_assert!(loss.carried + dropped >= loss.events);
        prop_assert!(loss.carried <= loss.events && dropped <= loss.events);
        let records = kept.records();
        let written: u64 = records.iter()
            .filter_map(|record| record["payload"]["usage"]["output_tokens"].as_u64()).sum();
        if !loss.dropped.contains_key("usage of a call that is not there") {
            prop_assert_eq!(written, told, "every token once");
        }
    }

    #[test]
    fn made_again_it_is_the_same(bodies in prop::collection::vec(any_body(), 1..20)) {
        let (first, _) = project(bodies.clone(), ProjectionOptions::default());
        let (second, _) = project(bodies, ProjectionOptions::default());
        prop_assert_eq!(first.file, second.file);
    }
}
