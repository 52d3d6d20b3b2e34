//! Requests repeat the conversation, and calls stand in several places: all is told once.

use quipu_model::Status;
use serde_json::{Value, json};

use super::{Log, answer, assistant, talk, text, user};

#[test]
fn what_is_repeated_is_said_once() {
    let mut log = Log::new();
    let system = json!({"role": "system", "content": "Be brief."});
    log.ask(&json!([system, user("continue")]));
    log.answer(&text("one "));
    // With the reply as another interface writes it, and a prompt that is worded as the first.
    log.ask(&json!([
        system,
        user("continue"),
        assistant("one"),
        user("continue")
    ]));
    // Tried again.
    log.ask(&json!([
        system,
        user("continue"),
        assistant("one"),
        user("continue")
    ]));
    log.answer(&text("two"));
    // A window over the newest, then a history whose middle was cut out.
    log.ask(&json!([assistant("two"), user("and?")]));
    log.answer(&text("three"));
    log.ask(&json!([
        system,
        user("In short: …"),
        assistant("two"),
        user("and?"),
        assistant("three"),
        user("so?")
    ]));
    let read = log.read();
    let expected = [
        "system: Be brief.",
        "user: continue",
        "assistant: one ",
        "user: continue",
        "assistant: two",
        "user: and?",
        "assistant: three",
        "user: In short: …",
        "user: so?",
    ];
    assert_eq!(talk(&read), expected);
    assert_eq!(read.ledger.dropped[&crate::Dropped::RepeatedChannel], 1);
}

#[test]
fn conversations_may_take_turns() {
    let mut log = Log::new();
    let main = json!({"role": "system", "content": "You lead."});
    let other = json!({"role": "system", "content": "You help."});
    let a = log.ask(&json!([main, user("a1")]));
    let b = log.ask(&json!([other, user("b1")]));
    log.under(&a, "chat_response", &answer(&text("ra")));
    log.under(&b, "chat_response", &answer(&text("rb")));
    log.ask(&json!([main, user("a1"), assistant("ra"), user("a2")]));
    log.ask(&json!([other, user("b1"), assistant("rb"), user("b2")]));
    let expected = [
        "system: You lead.",
        "user: a1",
        "system: You help.",
        "user: b1",
        "assistant: ra",
        "assistant: rb",
        "user: a2",
        "user: b2",
    ];
    assert_eq!(talk(&log.read()), expected);
    // A reply that is not the one that came is news, and so is all of a new session.
    let mut log = Log::new();
    log.ask(&json!([user("a")]));
    log.answer(&text("b"));
    log.ask(&json!([user("a"), assistant("edited"), user("c")]));
    log.add(
        "metadata",
        &json!({"sdk": {"name": "shadow", "version": "1"}}),
    );
    log.ask(&json!([user("a")]));
    let expected = [
        "user: a",
        "assistant: b",
        "assistant: edited",
        "user: c",
        "user: a",
    ];
    assert_eq!(talk(&log.read()), expected);
}

#[test]
fn equal_answers_are_calls_of_their_own() {
    let mut log = Log::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        log.ask(&json!([user("pick a number")]));
        ids.push(log.answer(&text("4")));
    }
    assert_eq!(ids[0], ids[2]);
    let read = log.read();
    let expected = [
        "user: pick a number",
        "assistant: 4",
        "assistant: 4",
        "assistant: 4",
    ];
    assert_eq!(talk(&read), expected);
    assert_eq!(read.usage().total(), 36);
    let calls: std::collections::HashSet<_> = read
        .events
        .iter()
        .filter_map(|event| event.annotations.model_call.clone())
        .collect();
    assert_eq!(calls.len(), 3);
    // Also where the line end between two of them is lost.
    let last = log.text.lines().next_back().unwrap().to_owned();
    log.text.truncate(log.text.len() - 1);
    log.text.push_str(&last);
    assert_eq!(log.read().usage().total(), 48);
}

#[test]
fn a_tool_call_is_told_once() {
    let mut log = Log::new();
    let call = |id: &str, n: u32| json!({"type": "tool_use", "id": id, "name": "f", "input": {"n": n, "m": 0}});
    let made = |id: &str, n: u32| json!({"tool_name": "f", "tool_call_id": id, "arguments": {"m": 0, "n": n}});
    let given = |id: &str, output: Value| json!({"tool_call_id": id, "output": output, "is_error": false, "latency_ms": 1});
    log.ask(&json!([user("go")]));
    let both = json!([call("c1", 1), call("c2", 2)]);
    log.answer(&both);
    log.add("tool_call", &made("c1", 1));
    log.add("tool_result", &given("c1", json!("one")));
    // Not as it was asked for; its result is only in the next request.
    log.add("tool_call", &made("c2", 3));
    let results = json!([
        {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": true},
    ]);
    log.ask(&json!([user("go"), {"role": "assistant", "content": both}, {"role": "user", "content": results}]));
    // An id that is used again is another call, and one that nobody asked for is one, too.
    log.answer(&json!([call("c1", 9)]));
    log.add("tool_result", &given("c1", json!({"nine": 9})));
    log.add("tool_call", &made("c3", 1));
    log.add(
        "tool_result",
        &json!({"tool_call_id": "c3", "output": "broken", "is_error": true, "latency_ms": 8}),
    );
    let read = log.read();
    let expected = [
        "user: go",
        "call c1",
        "call c2",
        "result c1 \"one\"",
        "result c2 no",
        "call c1",
        "result c1 {\"nine\":9}",
        "call c3",
        "result c3 broken",
    ];
    assert_eq!(talk(&read), expected);
    let last = &read.events.last().unwrap().annotations;
    assert_eq!(
        (last.status, last.duration_ms),
        (Some(Status::Error), Some(8))
    );
    let notes: Vec<_> = read
        .words()
        .into_iter()
        .filter(|word| word == "note.progress")
        .collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(read.ledger.orphans, 0);
}

#[test]
fn other_interfaces_write_their_calls_otherwise() {
    let mut log = Log::new();
    // A trace that begins in the middle of a conversation.
    let history = json!([
        user("hi"),
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "k1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
        {"role": "tool", "tool_call_id": "k1", "content": "ok"},
    ]);
    log.ask(&history);
    log.answer(&json!([{"type": "tool_use", "id": "k2", "name": "g", "input": {}}]));
    log.add(
        "tool_call",
        &json!({"tool_name": "g", "tool_call_id": "k2", "arguments": {}}),
    );
    let mut longer = history.as_array().unwrap().clone();
    longer.push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "k2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}));
    longer.push(json!({"role": "tool", "tool_call_id": "k2", "content": "done"}));
    log.ask(&json!(longer));
    log.answer(&text("finished"));
    let expected = [
        "user: hi",
        "call k1",
        "result k1 \"ok\"",
        "call k2",
        "result k2 \"done\"",
        "assistant: finished",
    ];
    assert_eq!(talk(&log.read()), expected);
}
