//! One file per rule.

use std::collections::BTreeSet;

use super::{line, run};
use crate::Reader;
use crate::verify::{Finding, Report, Rule, Severity, verify};

fn report(input: impl AsRef<[u8]>) -> Report {
    verify(&mut Reader::new(input.as_ref())).unwrap()
}

fn start(seq: u64) -> String {
    line(seq, "step.started", r#"{"name":"a","kind":"k"}"#)
}

fn end(seq: u64) -> String {
    line(seq, "step.completed", r#"{"name":"a","kind":"k"}"#)
}

fn tool(seq: u64, event_type: &str) -> String {
    line(
        seq,
        event_type,
        r#"{"name":"Bash","call_id":"c1","fidelity":"router"}"#,
    )
}

fn call(seq: u64, which: &str, child: &str) -> String {
    line(
        seq,
        &format!("step.call_workflow.{which}"),
        r#"{"name":"a","kind":"call_workflow"}"#,
    )
    .replace(
        "\"type\"",
        &format!("\"child_run_id\":\"{child}\",\"type\""),
    )
}

fn file(lines: &[String]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

fn render(finding: &Finding) -> String {
    let at = finding.at.map_or("-".to_owned(), |at| at.to_string());
    let seq = finding.seq.map_or("-".to_owned(), |seq| seq.to_string());
    format!(
        "{} {at} seq {seq}: {}",
        finding.rule.name(),
        finding.message
    )
}

#[test]
fn a_clean_file() {
    let report = report(file(&[
        run(1),
        start(2),
        tool(3, "tool.call"),
        tool(4, "tool.result"),
        end(5),
        call(6, "started", "c"),
        call(7, "completed", "c"),
    ]));
    assert_eq!(report.findings, []);
    assert_eq!((report.worst(), report.is_clean()), (None, true));
    assert_eq!((report.events, report.last_seq), (7, 7));
    assert_eq!(report.run_id.unwrap().as_str(), "r1");
    assert_eq!(report.parent_run_id, None);
    let [child] = &report.children[..] else {
        panic!()
    };
    assert_eq!(
        (child.run_id.as_str(), child.seq, child.completed),
        ("c", 6, true)
    );
    let empty = verify(&mut Reader::new(&b""[..])).unwrap();
    assert_eq!(empty, Report::default());
}

#[test]
fn a_call_that_failed_is_not_complete() {
    let failed = call(2, "completed", "c").replace("\"kind\"", "\"error\":\"x\",\"kind\"");
    let report = report(file(&[call(1, "started", "c"), failed]));
    assert!(
        !report.children[0].completed,
        "the child may never have begun"
    );
    assert!(report.is_clean());
}

/// Each rule that a file can break by itself, and a file that breaks it and no other.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn broken_files() -> Vec<(&'static str, Vec<u8>)> {
    let text = |finding, text: String| (finding, text.into_bytes());
    let two = |second: String| file(&[run(1), second]);
    let block = r#"{"role":"user","blocks":[{"type":"video"}]}"#;
    vec![
        text(
            "seq-gap line 2 (byte 120) seq 3: seq 2 is missing",
            two(run(3)),
        ),
        text(
            "seq-gap line 2 (byte 120) seq 9: seq 2 to 8 are missing",
            two(run(9)),
        ),
        text(
            "seq-order line 2 (byte 120) seq 1: seq 1 comes after 1",
            two(run(1)),
        ),
        text(
            "torn-tail line 2 (byte 120) seq -: cut off: the file ends in the middle of this line",
            file(&[run(1)]) + &run(2)[..50],
        ),
        text(
            "unterminated line 1 (byte 0) seq 1: no line end after the last event",
            run(1),
        ),
        text(
            "bad-line line 2 (byte 120) seq -: not a JSON object: expected a value (column 1)",
            two("oops".to_owned()),
        ),
        text(
            "event-type line 2 (byte 120) seq 2: unknown event type \"new\"",
            two(line(2, "new", "null")),
        ),
        text(
            "block-type line 2 (byte 120) seq 2: unknown block type \"video\" in block 0",
            two(line(2, "message.user", block)),
        ),
        text(
            "payload-shape line 2 (byte 120) seq 2: block 0 does not fit its type: it is not an object",
            two(line(2, "message.user", r#"{"role":"user","blocks":[1]}"#)),
        ),
        text(
            "payload-shape line 2 (byte 120) seq 2: the payload does not fit run.started: it is not an object",
            two(line(2, "run.started", "7")),
        ),
        text(
            "run-id line 2 (byte 120) seq 2: names run r2",
            two(run(2).replace("r1", "r2")),
        ),
        text(
            "parent-run-id line 2 (byte 120) seq 2: names parent p",
            two(run(2).replace("\"type\"", "\"parent_run_id\":\"p\",\"type\"")),
        ),
        text(
            "parent-run-id line 2 (byte 140) seq 2: names no parent",
            two(run(2)).replacen("\"type\"", "\"parent_run_id\":\"p\",\"type\"", 1),
        ),
        text(
            "missing-field line 2 (byte 120) seq 2: missing field \"path\"",
            two(run(2).replace("\"path\":\"a\",", "")),
        ),
        text(
            "annotation line 2 (byte 120) seq 2: field \"flags\" is not understood: unknown flag \"x\"",
            two(run(2).replace("\"type\"", "\"flags\":[\"x\"],\"type\"")),
        ),
        (
            "utf-8 line 1 (byte 0) seq 1: invalid UTF-8, replaced by U+FFFD",
            file(&[run(1).replace("\"a\"", "\"?\"")])
                .into_bytes()
                .into_iter()
                .map(|b| if b == b'?' { 0xff } else { b })
                .collect(),
        ),
        text(
            "raw-nul line 2 (byte 120) seq 2: raw NUL bytes, read as \\u0000",
            two(run(2).replace("\"a\"", "\"\0\"")),
        ),
        text(
            "line-form line 1 (byte 0) seq 1: the line ends in CR LF",
            run(1) + "\r\n",
        ),
        text(
            "line-form line 1 (byte 3) seq 1: the file begins with a byte order mark",
            format!("\u{feff}{}\n", run(1)),
        ),
        text(
            "blank-line - seq -: 2 blank lines",
            format!("\n{}\n\n", run(1)),
        ),
        text(
            "tool-orphan line 1 (byte 0) seq 1: no call \"c1\" waits for a result",
            file(&[tool(1, "tool.result")]),
        ),
        text(
            "step-orphan line 1 (byte 0) seq 1: step \"a\" ends but did not begin",
            file(&[end(1)]),
        ),
        text(
            "tool-dangling - seq 1: call \"c1\" of Bash has no result",
            file(&[tool(1, "tool.call")]),
        ),
        text(
            "step-open - seq 1: step \"a\" has not ended",
            file(&[start(1)]),
        ),
        text(
            "unknown-field line 2 (byte 120) seq 2: unknown field \"x\"",
            two(run(2).replace("\"type\"", "\"x\":1,\"type\"")),
        ),
        text(
            "time-backwards line 2 (byte 120) seq 2: 2026-06-08T08:14:41Z is before the event before it",
            two(run(2).replace(":42Z", ":41Z")),
        ),
    ]
}

#[test]
fn each_rule_is_found_where_it_is_broken() {
    for (expected, input) in broken_files() {
        let report = report(&input);
        let found: Vec<String> = report.findings.iter().map(render).collect();
        assert_eq!(found, [expected]);
        let rule = report.findings[0].rule;
        assert_eq!(report.worst(), Some(rule.severity()));
        assert_eq!(report.is_clean(), rule.severity() == Severity::Note);
        assert_eq!(report.bytes, input.len() as u64);
    }
}

#[test]
fn rules_that_come_together() {
    let found = |input: &str| -> Vec<&str> {
        report(input)
            .findings
            .iter()
            .map(|f| f.rule.name())
            .collect()
    };
    let glued = format!("{}{}\n", &run(1)[..50], run(1));
    assert_eq!(found(&glued), ["glued-line", "shared-line"]);
    let shared = format!("{}{}\n", run(1), run(2));
    assert_eq!(found(&shared), ["shared-line", "shared-line"]);
    let repeat = file(&[tool(1, "tool.call"), tool(2, "tool.call")]);
    assert_eq!(found(&repeat), ["tool-repeat", "tool-dangling"]);
    let zero = file(&[run(0)]);
    assert_eq!(found(&zero), ["seq-order"]);
    // What is open is told in the order it began.
    let open = file(&[start(1), tool(2, "tool.call"), start(3)]);
    assert_eq!(found(&open), ["step-open", "tool-dangling", "step-open"]);
}

#[test]
fn every_rule_is_tested_or_needs_a_directory() {
    let tested: BTreeSet<&str> = broken_files()
        .iter()
        .filter_map(|(finding, _)| finding.split(' ').next())
        .chain([
            "glued-line",
            "shared-line",
            "tool-repeat",
            "pairing-capped",
            "checksum",
        ])
        .collect();
    let elsewhere = [
        "file-name",
        "child-missing",
        "link-broken",
        "permissions",
        "child-pending",
        "parent-absent",
    ];
    for rule in Rule::ALL {
        let name = rule.name();
        assert_ne!(tested.contains(name), elsewhere.contains(&name), "{name}");
    }
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len(), "names are unique");
    assert!(
        Rule::TornTail
            .hint()
            .is_some_and(|hint| hint.contains("repair"))
    );
    assert_eq!(Rule::SharedLine.hint(), None);
    let severities = [Severity::Note, Severity::Warning, Severity::Error];
    assert!(severities.is_sorted());
    assert_eq!(
        severities.map(|s| s.to_string()),
        ["note", "warning", "error"]
    );
}

#[test]
fn findings_are_capped_and_counted() {
    let lines: Vec<String> = (0..250).map(|_| "oops".to_owned()).collect();
    let mut report = report(file(&[lines, vec![run(1), run(1)]].concat()));
    assert_eq!(report.counts[&Rule::BadLine], 250);
    assert_eq!(report.counts[&Rule::SeqOrder], 1);
    assert_eq!(report.findings.len(), 101);
    report.add(Finding {
        rule: Rule::BadLine,
        at: None,
        seq: None,
        message: String::new(),
    });
    assert_eq!(
        (report.counts[&Rule::BadLine], report.findings.len()),
        (251, 101)
    );
}

#[test]
fn what_waits_is_capped() {
    let calls = (1..=1001).map(|n| tool(n, "tool.call").replace("c1", &format!("c{n}")));
    let steps = (1002..=2002).map(start);
    // The ends of what was not kept are not called orphans.
    let last = tool(2003, "tool.result").replace("c1", "c1001");
    let ends = (2004..=3004).map(end);
    let lines: Vec<String> = calls.chain(steps).chain([last]).chain(ends).collect();
    let report = report(file(&lines));
    let counts: Vec<(&str, u64)> = report.counts.iter().map(|(r, n)| (r.name(), *n)).collect();
    assert_eq!(counts, [("tool-dangling", 1000), ("pairing-capped", 1)]);
}

#[test]
fn an_open_step_is_counted_once_per_beginning() {
    let report = report(file(&[start(1), start(2), end(3), end(4), end(5)]));
    let found: Vec<String> = report.findings.iter().map(render).collect();
    assert_eq!(
        found,
        ["step-orphan line 5 (byte 564) seq 5: step \"a\" ends but did not begin"]
    );
}

#[test]
fn the_page_about_the_format_has_every_rule() {
    let page = include_str!("../../../../docs/formats/exchange.md");
    for rule in Rule::ALL {
        let row = format!("| `{}` | {} | ", rule.name(), rule.severity());
        let found = page.lines().find(|line| line.starts_with(&row));
        let found = found.unwrap_or_else(|| panic!("no row {row}"));
        assert!(
            found.contains(rule.hint().unwrap_or_default()),
            "{}: {found}",
            rule.name()
        );
    }
}
