//! What fills windows.

use quipu_api::context::{ContextTurns, ResetKind};

use super::kit::*;
use crate::Store;
use crate::analysis::Window;
use crate::catalogue::TranscriptRow;

fn all(store: &Store, row: &TranscriptRow) -> ContextTurns {
    store.context(row, &Window::default()).unwrap()
}

fn conversation() -> Session {
    let mut session = Session::default();
    session
        .user(0, "12345")
        .answer(1_000, "A", &text("abc"), (10, 90, 20))
        .answer(
            1_000,
            "A",
            &tool("t1", "Read", r#"{"path":"x"}"#),
            (10, 90, 20),
        )
        .result(2_000, "t1", "0123456789", false)
        .answer(3_000, "B", &text("done"), (30, 100, 7))
        .user(4_000, "next")
        .answer(5_000, "C", &text("!"), (5, 20, 1));
    session
}

#[test]
fn each_call_has_its_tokens_and_what_was_added_before_it() {
    let (_machine, store, row) = conversation().import();
    let context = all(&store, &row);
    assert_eq!((context.turns_total, context.turns.len()), (3, 3));
    let [a, b, c] = &context.turns[..] else {
        unreachable!()
    };
    assert_eq!(
        (a.seq_from, a.seq_to, a.call_id.as_deref()),
        (2, 3, Some("A"))
    );
    assert_eq!(a.model.as_deref(), Some("m-1"));
    // Told on two lines, counted once.
    assert_eq!((a.prompt_tokens, a.window_tokens), (Some(100), Some(120)));
    assert_eq!(a.grown_tokens, None);
    assert_eq!((a.added.user_bytes, a.added.assistant_bytes), (5, 0));
    assert_eq!(b.grown_tokens, Some(10));
    assert_eq!((b.added.user_bytes, b.added.assistant_bytes), (0, 3));
    assert_eq!(b.added.tool_call_bytes, 12);
    assert_eq!(b.added.tool_results.len(), 1);
    let read = &b.added.tool_results[0];
    // The quotes of the text are bytes as well.
    assert_eq!(
        (read.tool.as_str(), read.results, read.bytes),
        ("Read", 1, 12)
    );
    assert_eq!(
        b.limit_tokens, None,
        "nothing says how large the window can be"
    );
    assert_eq!((c.added.user_bytes, c.added.assistant_bytes), (4, 4));
    // From 130 to 25 tokens, and no event says why.
    assert_eq!(context.resets_total, 1);
    let reset = &context.resets[0];
    assert_eq!((reset.kind, reset.seq), (ResetKind::Shrunk, 7));
    assert_eq!(
        (reset.before_tokens, reset.after_tokens),
        (Some(130), Some(25))
    );
    let fullest = context.fullest.unwrap();
    assert_eq!((fullest.seq, fullest.window_tokens), (5, 137));
    assert_eq!(context.unstated, 0);
}

#[test]
fn a_compaction_has_what_was_there_before_and_after() {
    let mut session = Session::default();
    session
        .user(0, "12345")
        .answer(1_000, "A", &text("abc"), (10, 900, 20))
        .other(
            2_000,
            "system",
            r#""subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":950}"#,
        )
        .other(
            2_000,
            "user",
            r#""isCompactSummary":true,"message":{"role":"user","content":"what was said"}"#,
        )
        .answer(3_000, "B", &text("done"), (30, 0, 7));
    let (_machine, store, row) = session.import();
    let context = all(&store, &row);
    assert_eq!(
        context.compactions_total, 1,
        "two records tell of one compaction"
    );
    let it = &context.compactions[0];
    assert_eq!((it.seq_from, it.seq_to), (3, 4));
    assert_eq!(it.stated_before_tokens, Some(950));
    assert_eq!((it.before_tokens, it.after_tokens), (Some(930), Some(30)));
    assert_eq!(it.summary_bytes, Some(22));
    assert_eq!(
        context.resets_total, 0,
        "the compaction says why the prompt is shorter"
    );
}

#[test]
fn pages_have_all_calls_once() {
    let (_machine, store, row) = conversation().import();
    let whole = all(&store, &row);
    for limit in 1..=4 {
        let (mut turns, mut from) = (Vec::new(), 1);
        for _ in 0..10 {
            let page = store.context(&row, &Window { from, limit }).unwrap();
            assert_eq!(page.turns_total, 3);
            turns.extend(page.turns);
            let Some(next) = page.next else {
                break;
            };
            from = next;
        }
        assert_eq!(turns, whole.turns, "{limit}");
    }
}

#[test]
fn a_log_that_states_its_window_is_believed() {
    let machine = Machine::new();
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-01-02T03:04:06.200Z","type":"{kind}","payload":{payload}}}"#)
            + "\n"
    };
    let usage = r#"{"input_tokens":100,"cached_input_tokens":60,"output_tokens":10,"reasoning_output_tokens":4,"total_tokens":110}"#;
    let log = line(
        "session_meta",
        r#"{"id":"5973b6c0-94b8-487b-a530-2aeb6098ae0e","timestamp":"2026-01-02T03:04:05Z","cwd":"/code","originator":"codex_cli_rs","cli_version":"0.40.0"}"#,
    ) + &line("turn_context", r#"{"cwd":"/code","model":"gpt-5"}"#)
        + &line(
            "response_item",
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#,
        )
        + &line(
            "response_item",
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
        )
        + &line(
            "event_msg",
            &format!(
                r#"{{"type":"token_count","info":{{"total_token_usage":{usage},"last_token_usage":{usage},"model_context_window":1000}}}}"#
            ),
        );
    write(
        &machine.home(".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl"),
        log,
    );
    let store = machine.store();
    machine.import(&store);
    let row = rows(&store).remove(0);
    let context = all(&store, &row);
    assert_eq!(context.turns.len(), 1, "{context:#?}");
    let turn = &context.turns[0];
    assert_eq!(
        (turn.prompt_tokens, turn.window_tokens),
        (Some(100), Some(110))
    );
    let tokens = turn.tokens.as_ref().unwrap();
    assert_eq!((tokens.input, tokens.cache_read), (Some(40), Some(60)));
    assert_eq!((tokens.output, tokens.reasoning), (Some(10), Some(4)));
    assert_eq!(turn.limit_tokens, Some(1_000));
}
