//! Each rule, broken.

use serde_json::{Value, json};

use crate::normalized::{Report, Rule, Severity, verify};

fn document() -> Value {
    json!({
        "schemaVersion": "0.1.0",
        "transcriptId": "9f1c2d3e-0000-4000-8000-000000000001",
        "source": {"agent": "codex"},
        "session": {"startedAt": "2026-06-22T10:00:00Z", "endedAt": "2026-06-22T10:00:02Z"},
        "submitter": null,
        "privacy": null,
        "metrics": {"eventCount": 3, "messageCount": 1, "toolCallCount": 1, "durationMs": 2000},
        "events": [
            {"id": "ev_001", "seq": 1, "timestamp": "2026-06-22T10:00:00Z", "type": "user_message", "role": "user", "text": "[REDACTED:aws] x",
             "redactions": [{"field": "text", "ruleId": "aws", "type": "secret", "placeholder": "[REDACTED:aws]"}]},
            {"id": "ev_002", "seq": 2, "timestamp": "2026-06-22T10:00:01Z", "type": "tool_call", "role": "assistant", "tool": {"name": "Bash", "callId": "c", "input": {"a": "[R]"}}},
            {"id": "ev_003", "seq": 3, "timestamp": "2026-06-22T10:00:02Z", "type": "tool_result", "role": "tool", "tool": {"name": "Bash", "callId": "c", "status": "ok"}},
        ],
    })
}

fn check(text: &str) -> Report {
    verify(text.as_bytes()).unwrap()
}

/// The rules that are broken by a change at a place, and where.
fn broken(change: impl FnOnce(&mut Value)) -> Vec<(Rule, String)> {
    let mut document = document();
    change(&mut document);
    // Sections in the order that is published, whatever order the map has.
    let order = [
        "schemaVersion",
        "transcriptId",
        "source",
        "session",
        "submitter",
        "privacy",
        "metrics",
    ];
    let fields = document.as_object().unwrap();
    let mut text = String::from("{");
    let rest = fields
        .keys()
        .map(String::as_str)
        .filter(|key| !order.contains(key));
    for key in order
        .into_iter()
        .filter(|key| fields.contains_key(*key))
        .chain(rest)
    {
        let comma = if text.len() > 1 { "," } else { "" };
        text.extend([comma, "\"", key, "\":", &fields[key].to_string()]);
    }
    text.push('}');
    let report = check(&text);
    let paths = report.findings.iter();
    paths
        .map(|finding| (finding.rule, finding.path.clone()))
        .collect()
}

#[test]
fn a_good_document_has_no_findings() {
    assert_eq!(broken(|_| {}), []);
}

#[test]
fn every_rule_is_found_where_it_is_broken() {
    // The rule, where it is found, what is changed, and to what.
    let redaction = json!([{"field": "tool.output", "ruleId": "r", "placeholder": "[R]"}]);
    let half = json!({"profile": "x", "redactionApplied": true});
    for (rule, path, place, value) in [
        (
            Rule::Version,
            "schemaVersion",
            "/schemaVersion",
            json!("0.2.0"),
        ),
        (
            Rule::Schema,
            "events[2].tool.status",
            "/events/2/tool/status",
            json!("odd"),
        ),
        (Rule::Schema, "events[0].seq", "/events/0/seq", json!(1.5)),
        (
            Rule::Schema,
            "metrics.eventCount",
            "/metrics/eventCount",
            json!("3"),
        ),
        (
            Rule::Schema,
            "events[1]",
            "/events/1",
            json!({"type": "tool_call"}),
        ),
        (Rule::Schema, "privacy", "/privacy", half),
        (
            Rule::Timestamp,
            "events[1].timestamp",
            "/events/1/timestamp",
            json!("later"),
        ),
        (
            Rule::Timestamp,
            "session.endedAt",
            "/session/endedAt",
            json!("now"),
        ),
        (Rule::SeqOrder, "events[1].seq", "/events/1/seq", json!(1)),
        (
            Rule::IdTwice,
            "events[2].id",
            "/events/2/id",
            json!("ev_001"),
        ),
        (
            Rule::ResultWithoutCall,
            "tool.callId",
            "/events/2/tool/callId",
            json!("d"),
        ),
        (
            Rule::CallWithoutResult,
            "tool.callId",
            "/events/2/tool/callId",
            json!("d"),
        ),
        (
            Rule::Metrics,
            "metrics.toolCallCount",
            "/metrics/toolCallCount",
            json!(2),
        ),
        (
            Rule::Metrics,
            "metrics.tokens.input",
            "/events/0/usage",
            json!({"input": 4}),
        ),
        (
            Rule::Placeholder,
            "events[0].redactions[0]",
            "/events/0/text",
            json!("AKIA"),
        ),
        (
            Rule::Placeholder,
            "events[1].redactions[0]",
            "/events/1/redactions",
            redaction,
        ),
    ] {
        let found = broken(|document| {
            document["metrics"]["tokens"] = json!({"input": 5});
            document["events"][0]["usage"] = json!({"input": 5});
            document["events"][1]["redactions"] = json!([]);
            *document.pointer_mut(place).unwrap() = value.clone();
        });
        let expected = (rule, path.to_owned());
        assert!(found.contains(&expected), "{rule:?} at {path}: {found:?}");
    }
}

#[test]
fn sections_that_are_missing_twice_or_cut_off_are_found() {
    let found = broken(|document| {
        document.as_object_mut().unwrap().remove("privacy");
    });
    assert_eq!(found, [(Rule::SectionMissing, "privacy".to_owned())]);
    let text = document().to_string();
    let twice = text.replacen(
        '{',
        "{\"source\":{\"agent\":\"x\"},\"source\":{\"agent\":\"y\"},\"events\":[{}],",
        1,
    );
    for (rule, text) in [
        (Rule::Document, &text[..text.len() - 3]),
        (Rule::Document, "[]"),
        (Rule::NotJson, "{\"events\":[{\"id\":tru}]}"),
        (Rule::SectionTwice, &twice),
        (Rule::SectionLate, &twice),
    ] {
        let report = check(text);
        assert!(
            report.counts.contains_key(&rule),
            "{rule:?}: {:?}",
            report.findings
        );
    }
}

#[test]
fn a_part_that_is_too_long_is_a_finding() {
    let long = crate::normalized::MAX_PART + 10;
    let start = "{\"schemaVersion\":\"0.1.0\",\"events\":[\"".as_bytes();
    let text = std::io::Read::take(std::io::repeat(b'x'), long as u64);
    let input = std::io::Read::chain(std::io::Read::chain(start, text), &b"\"]}"[..]);
    let report = verify(input).unwrap();
    assert_eq!(report.counts[&Rule::TooLong], 1);
}

/// What is wrong in a call that is marked, or nested in a redacted value, is not wrong.
#[test]
fn marks_and_nested_fields_are_understood() {
    let fine = broken(|d| {
        d["events"][1]["dangling"] = json!(true);
        d["events"][1]["redactions"] = json!([
            {"field": "tool.input", "ruleId": "r", "placeholder": "[R]"},
            {"field": "tool.input.a", "ruleId": "r", "placeholder": "[R]"}]);
        d["events"][2] = json!({"id": "ev_003", "seq": 3, "timestamp": "2026-06-22T10:00:02Z", "type": "applause", "role": "user", "clap": 1});
        d["anything"] = json!({"else": 1});
    });
    assert_eq!(fine, []);
}

/// Receipts with places: in a text, in a name, in a section; and as many as the document says.
#[test]
fn placeholders_stand_at_their_places() {
    let receipt = |field: &str, start: u64, end: u64| {
        json!({"field": field, "ruleId": "r", "type": "secret", "placeholder": "[R]",
               "start": start, "end": end, "commitment": "ab"})
    };
    let with = |receipts: Value, of_header: Value, count: u64| {
        broken(|d| {
            d["events"][0]["text"] = json!("é[R] and [R]");
            d["events"][0]["redactions"] = receipts;
            d["events"][1]["tool"]["input"] = json!({"[R]": 1, "a": "[R]"});
            d["session"]["environment"] = json!({"cwd": "[R]"});
            d["privacy"] = json!({
                "profile": "x", "redactionApplied": true, "anonymizationApplied": true, "redactionCount": count,
                "redactions": of_header, "commitment": {"algorithm": "a", "root": "r", "leaves": 1}});
        })
    };
    let cwd = || json!([receipt("session.environment.cwd", 0, 3)]);
    let both = json!([receipt("text", 1, 4), receipt("text", 9, 12)]);
    assert_eq!(with(both, cwd(), 3), []);
    for (wrong, at) in [
        (json!([receipt("text", 0, 3)]), 0),
        (json!([receipt("text", 1, 5)]), 0),
        (json!([receipt("text", 1, 4), receipt("text", 1, 4)]), 1),
        (json!([receipt("text", 9, 99)]), 0),
        (json!([receipt("nothing", 0, 3)]), 0),
    ] {
        let count = wrong.as_array().unwrap().len() as u64 + 1;
        let expected = (Rule::Placeholder, format!("events[0].redactions[{at}]"));
        assert_eq!(with(wrong, cwd(), count), [expected]);
    }
    let elsewhere = json!([receipt("session.environment.cwd", 1, 4)]);
    let expected = (Rule::Placeholder, "privacy.redactions[0]".to_owned());
    assert_eq!(with(json!([]), elsewhere, 1), [expected]);
    let expected = (Rule::RedactionCount, "privacy.redactionCount".to_owned());
    assert_eq!(with(json!([]), cwd(), 2), [expected]);
}

/// Many receipts in one long list take as long as it is, not as long as both together.
#[test]
fn many_receipts_are_found_in_one_walk() {
    let n = 40_000;
    let receipts: Vec<Value> = (0..n)
        .map(|index| json!({"field": format!("tool.input[{index}]"), "ruleId": "r", "placeholder": "[R]", "start": 0, "end": 3}))
        .collect();
    let found = broken(|d| {
        d["events"][1]["tool"]["input"] = vec!["[R]"; n].into();
        d["events"][1]["redactions"] = receipts.into();
    });
    assert_eq!(found, []);
}

#[test]
fn findings_are_capped_and_counted() {
    let events: Vec<Value> = (0..500).map(|_| json!({"seq": 1})).collect();
    let text = json!({"schemaVersion": "0.1.0", "events": events}).to_string();
    let report = check(&text);
    assert_eq!(report.events, 500);
    assert_eq!(report.counts[&Rule::SeqOrder], 499);
    let kept = report
        .findings
        .iter()
        .filter(|finding| finding.rule == Rule::SeqOrder);
    assert_eq!(kept.count(), 100);
    assert!(!report.is_valid());
    let last = report
        .findings
        .iter()
        .find(|f| f.rule == Rule::SeqOrder)
        .unwrap();
    assert_eq!(
        (last.seq, last.line, last.severity),
        (Some(1), Some(1), Severity::Error)
    );
}

#[test]
fn every_rule_has_a_name_and_a_hint() {
    let names: std::collections::BTreeSet<&str> =
        Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    assert!(Rule::ALL.iter().all(|rule| rule.hint().is_some()));
}
