//! Each rule is broken once, by a run that breaks no other before.

use super::*;
use crate::flow::FlowOptions;
use crate::flow::tests::{Dir, golden_session, write};

const TRANSCRIPT: &str = "build/llm/impl-loop-code-implementer-claude.jsonl";
const RECEIPT: &str = "build/receipts/impl-loop-code-implementer.json";
const FIRST: &str = "build/receipts/impl-loop-code-implementer.i1.json";

fn good() -> Dir {
    let (header, events) = golden_session();
    let (files, _, _) = write(&header, &events, &FlowOptions::default());
    let dir = Dir::new(header.run_id.as_str());
    for (name, bytes) in &files {
        dir.put(name, bytes);
    }
    dir
}

/// What breaks a rule, and which others it cannot help breaking.
type Case = (Rule, fn(&Dir), &'static [Rule]);

fn swap(dir: &Dir, from: &str, to: &str) {
    dir.edit(RECEIPT, from, to);
}

fn line(dir: &Dir, text: &str) {
    let whole = dir.text(TRANSCRIPT);
    dir.put(TRANSCRIPT, format!("{text}\n{whole}"));
}

fn events(dir: &Dir, seqs: &[&str]) {
    let lines: Vec<String> = seqs
        .iter()
        .map(|seq| {
            format!(
                "{{\"seq\":{seq},\"kind\":\"log\",\"ts\":\"2025-12-09T14:30:22Z\"}}
"
            )
        })
        .collect();
    dir.put("events.jsonl", lines.concat());
}

const HASH: &[Rule] = &[Rule::HashMismatch];

const CASES: &[Case] = &[
    (
        Rule::ReceiptUnreadable,
        |d| {
            d.put(RECEIPT, "{");
        },
        &[Rule::ReceiptMissing],
    ),
    (
        Rule::ReceiptUnknown,
        |d| {
            d.put("build/receipts/x.json", "{}");
        },
        &[],
    ),
    (
        Rule::FieldMissing,
        |d| swap(d, "\"model\": \"claude-sonnet-4-20250514\",", ""),
        &[],
    ),
    (
        Rule::FieldType,
        |d| swap(d, "\"status\": \"succeeded\"", "\"status\": 1"),
        &[],
    ),
    (
        Rule::TimeMalformed,
        |d| swap(d, "750000Z", "750000+00:00Z"),
        &[],
    ),
    (
        Rule::TimeUnreadable,
        |d| swap(d, "\"started_at\": \"2025", "\"started_at\": \"soon, 2025"),
        &[],
    ),
    (
        Rule::StatusUnknown,
        |d| swap(d, "succeeded", "VERIFIED"),
        &[],
    ),
    (
        Rule::TokensInvalid,
        |d| swap(d, "\"cache_read\": 12000", "\"cache_read\": -1.5"),
        &[],
    ),
    (
        Rule::TokensSum,
        |d| swap(d, "\"total\": 15700", "\"total\": 15701"),
        &[],
    ),
    (
        Rule::DurationMismatch,
        |d| swap(d, "\"duration_ms\": 500", "\"duration_ms\": 0"),
        &[],
    ),
    (
        Rule::TranscriptMissing,
        |d| {
            d.remove(TRANSCRIPT);
        },
        &[],
    ),
    (
        Rule::ReceiptMissing,
        |d| {
            d.remove("deploy/receipts/ship-shipper.json");
        },
        &[],
    ),
    (
        Rule::TranscriptNewer,
        |d| {
            line(
                d,
                r#"{"timestamp": "2026-01-01T00:00:00Z", "role": "user", "content": "late"}"#,
            );
        },
        &[Rule::HashMismatch],
    ),
    (
        Rule::HashMismatch,
        |d| {
            d.edit(TRANSCRIPT, "Fixed", "Fixes");
        },
        &[],
    ),
    (
        Rule::PathAbsolute,
        |d| {
            let path = d.path().join(TRANSCRIPT);
            swap(
                d,
                "llm/impl-loop-code-implementer-claude.jsonl",
                path.to_str().unwrap(),
            );
        },
        &[],
    ),
    (
        Rule::PathEscapes,
        |d| swap(d, "llm/impl-loop", "../../impl-loop"),
        &[],
    ),
    (
        Rule::NameMismatch,
        |d| {
            swap(
                d,
                "\"step_id\": \"impl-loop\"",
                "\"step_id\": \"normalize\"",
            );
        },
        &[],
    ),
    (
        Rule::NameAmbiguous,
        |d| {
            d.put("plan/llm/a-b-c-claude.jsonl", "");
        },
        &[Rule::ReceiptMissing],
    ),
    (
        Rule::FlowMismatch,
        |d| swap(d, "\"flow_key\": \"build\"", "\"flow_key\": \"gate\""),
        &[],
    ),
    (
        Rule::IterationDuplicate,
        |d| swap(d, "\"iteration\": 2", "\"iteration\": 1"),
        &[],
    ),
    (
        Rule::DirectoryName,
        |d| {
            for name in [
                "meta.json",
                RECEIPT,
                FIRST,
                "deploy/receipts/ship-shipper.json",
            ] {
                d.edit(name, "abc123", "xyz789");
            }
        },
        &[],
    ),
    (Rule::RunIdMismatch, |d| swap(d, "abc123", "xyz789"), &[]),
    (
        Rule::StubSuccess,
        |d| swap(d, "claude-sonnet-4-20250514", "claude-stub"),
        &[],
    ),
    (
        Rule::CostOrder,
        |d| {
            swap(
                d,
                "\"cumulative_run_usd\": 0.0246",
                "\"cumulative_run_usd\": 0.01",
            );
        },
        &[],
    ),
    (
        Rule::LineShape,
        |d| line(d, r#"{"timestamp": "2025-12-09T14:30:22Z", "surprise": 1}"#),
        HASH,
    ),
    (Rule::LineNotJson, |d| line(d, "hello"), HASH),
    (Rule::LineTooLong, |d| line(d, &"x".repeat(5000)), HASH),
    (
        Rule::TornTail,
        |d| {
            let text = d.text(TRANSCRIPT);
            d.put(TRANSCRIPT, format!("{text}{{\"ti"));
        },
        HASH,
    ),
    (
        Rule::DocumentUnreadable,
        |d| {
            d.put("spec.json", "[]");
        },
        &[],
    ),
    (
        Rule::EventUnreadable,
        |d| {
            d.put("events.jsonl", "x\n");
        },
        &[],
    ),
    (Rule::EventDuplicate, |d| events(d, &["1", "2", "2"]), &[]),
    (Rule::EventGap, |d| events(d, &["1", "3"]), &[]),
    (
        Rule::ExecutionOverwritten,
        |d| {
            let line = |kind: &str| {
                format!(
                    r#"{{"kind":"{kind}","ts":"2025-12-09T14:30:22Z","flow_key":"deploy","step_id":"ship"}}"#
                )
            };
            let twice = ["step_start", "step_end", "step_start", "step_end"];
            d.put("events.jsonl", twice.map(line).join("\n"));
        },
        &[],
    ),
];

fn check(dir: &Dir) -> Report {
    let limits = Limits {
        max_line_bytes: 4000,
        ..Limits::default()
    };
    verify_with(&dir.path(), &limits).unwrap()
}

#[test]
fn every_rule_can_be_broken() {
    assert!(check(&good()).is_clean());
    for rule in Rule::ALL {
        let cases = CASES.iter().filter(|(broken, ..)| broken == rule);
        assert_eq!(cases.count(), 1, "{} is broken by no test", rule.name());
    }
    for (rule, harm, others) in CASES {
        let dir = good();
        harm(&dir);
        let report = check(&dir);
        let mut broken: Vec<Rule> = report.findings.iter().map(|finding| finding.rule).collect();
        broken.sort_unstable();
        broken.dedup();
        let mut expected = others.to_vec();
        expected.push(*rule);
        expected.sort_unstable();
        assert_eq!(broken, expected, "{}: {:?}", rule.name(), report.findings);
        assert_eq!(
            report.is_clean(),
            expected
                .iter()
                .all(|rule| rule.severity() == Severity::Note)
        );
    }
}

#[test]
fn findings_are_for_machines_too() {
    let dir = good();
    line(&dir, "hello");
    line(&dir, "hello");
    let report = check(&dir);
    let found = serde_json::to_value(&report.findings[1]).unwrap();
    assert_eq!(
        found,
        serde_json::json!({
            "rule": "line-not-json",
            "severity": "error",
            "file": TRANSCRIPT,
            "line": 1,
            "count": 2,
            "message": report.findings[1].message,
        })
    );
}

#[cfg(unix)]
#[test]
fn a_transcript_that_was_changed_later_is_newer() {
    let dir = good();
    let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000);
    let file = std::fs::File::options()
        .write(true)
        .open(dir.path().join(TRANSCRIPT))
        .unwrap();
    file.set_modified(later).unwrap();
    assert_eq!(dir.broken(), [Rule::TranscriptNewer]);
}

/// The table of the page is the table of the code.
#[test]
fn the_page_has_every_rule() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/flow.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let rows: Vec<String> = Rule::ALL
        .iter()
        .map(|rule| {
            let (name, severity) = (rule.name(), rule.severity());
            format!(
                "| `{name}` | {severity} | {} | {} |",
                rule.meaning(),
                rule.hint().unwrap_or_default()
            )
        })
        .collect();
    for row in &rows {
        assert!(docs.contains(row), "docs/formats/flow.md has no row {row}");
    }
    let listed = docs.lines().filter(|line| {
        [" | error | ", " | warning | ", " | note | "]
            .iter()
            .any(|word| line.contains(word))
    });
    assert_eq!(
        listed.count(),
        rows.len(),
        "the page has rules that are none"
    );
}
