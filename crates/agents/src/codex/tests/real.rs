//! Logs that Codex wrote, held to what can be told without the reader.

use super::*;
use crate::corpus;

/// The last running total of a rollout, taken from its text without the reader, as long as it never
/// goes down and nothing is inherited.
fn last_total(log: &str) -> Option<Tokens> {
    let mut last: Option<[u64; 5]> = None;
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        let total = &line["payload"]["info"]["total_token_usage"];
        if !total.is_object() {
            continue;
        }
        let n = |key: &str| total[key].as_u64().unwrap_or(0);
        let now = [
            n("input_tokens"),
            n("cached_input_tokens"),
            n("cache_write_input_tokens"),
            n("output_tokens"),
            n("reasoning_output_tokens"),
        ];
        if last.is_some_and(|last| last.iter().zip(now).any(|(last, now)| now < *last)) {
            return None;
        }
        last = Some(now);
    }
    let [prompt, read, write, output, reasoning] = last?;
    Some(Tokens {
        input: Some(prompt - read - write),
        cache_read: Some(read),
        cache_write: Some(write),
        cache_write_1h: None,
        output: Some(output),
        reasoning: Some(reasoning),
    })
}

#[test]
fn sums_are_what_the_vendor_says() {
    let Some(root) = corpus::fixtures() else {
        return;
    };
    let known = |tokens: Tokens| {
        [
            tokens.input,
            tokens.cache_read,
            tokens.cache_write,
            tokens.output,
            tokens.reasoning,
        ]
        .map(|n| n.unwrap_or(0))
    };
    let (mut compared, mut streams) = (0, 0);
    for folder in ["codex", "traex", "codex-exec"] {
        let mut paths = Vec::new();
        corpus::files(&root.join(folder), &mut paths);
        for path in paths {
            let log = std::fs::read_to_string(&path).unwrap();
            let read = read(log.as_bytes(), path.to_str().unwrap()).unwrap();
            let Some(vendor) = read.session.vendor_usage else {
                assert_eq!(read.usage().total(), 0, "{}", path.display());
                continue;
            };
            assert_eq!(
                known(read.usage().into()),
                known(vendor),
                "{}",
                path.display()
            );
            streams += usize::from(read.dialect == EXEC);
            if let Some(last) = last_total(&log) {
                assert_eq!(known(vendor), known(last), "{}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared >= 16, "{compared}");
    assert!(streams >= 5, "{streams}");
}

/// A fork and what it was forked from, as they were once found.
#[test]
fn forks_share_what_was_copied() {
    let Some(root) = corpus::fixtures() else {
        return;
    };
    let units = |name: &str| {
        let path = root.join("codex").join(name);
        let log = std::fs::read(&path).ok()?;
        Some(read(&log, path.to_str()?)?.ledger.units)
    };
    let base = "CodexBar--CostUsage__Issue2037__";
    let parent = units(&format!(
        "{base}archived-fork-33ce-3869__codex-home__archived_sessions__parent.jsonl"
    ));
    let child = units(&format!(
        "{base}archived-fork-33ce-3869__codex-home__archived_sessions__child.jsonl"
    ));
    let (Some(parent), Some(child)) = (parent, child) else {
        return;
    };
    let shared = parent
        .iter()
        .zip(&child)
        .take_while(|(a, b)| a == b)
        .count();
    assert_eq!(shared, parent.len());
    assert!(child.len() > shared);
}

/// Whatever is told on two channels is told once.
#[test]
fn real_rollouts_are_told_once() {
    let mut compared = 0;
    for (name, bytes) in corpus::logs("codex") {
        if !name.contains("rollout-") {
            continue;
        }
        let log = String::from_utf8(bytes).unwrap();
        let mut expected = [0_usize; 5];
        for line in log.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let (payload, kind) = (&line["payload"], &line["type"]);
            let index = match (kind.as_str(), payload["type"].as_str()) {
                (Some("event_msg"), Some("user_message")) => 0,
                (Some("response_item"), Some("message")) if payload["role"] == "assistant" => 1,
                (Some("response_item"), Some("reasoning")) => 2,
                (Some("response_item"), Some(kind)) if kind.ends_with("_call") => 3,
                (Some("response_item"), Some(kind)) if kind.ends_with("_output") => 4,
                _ => continue,
            };
            expected[index] += 1;
        }
        let read = read(log.as_bytes(), &name).unwrap();
        let mut found = [0_usize; 5];
        for event in &read.events {
            let index = match &event.body {
                Body::UserMessage(_) => 0,
                Body::AssistantMessage(blocks) => match blocks[0].content {
                    quipu_model::Content::Thinking(_) => 2,
                    _ => 1,
                },
                Body::ToolCall(_) => 3,
                Body::ToolResult(_) => 4,
                _ => continue,
            };
            found[index] += 1;
        }
        // Reasoning that was shown before a turn was aborted has no item.
        assert!(
            found[2] >= expected[2] && found[2] <= expected[2] + 4,
            "{name}"
        );
        found[2] = expected[2];
        // Searches have no item for what they gave back.
        let searches = log
            .matches(r#""payload":{"type":"web_search_call""#)
            .count();
        expected[4] += searches;
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    if corpus::fixtures().is_some() {
        assert!(compared >= 10, "{compared}");
    }
}
