//! What is easily said too much of, too little of, or about the wrong line.

use super::*;

#[test]
fn fields_are_cut_however_long_keys_are() {
    let key = "k".repeat(100_000);
    let long = format!("\"{}\"", "A".repeat(6000));
    let content = format!(
        r#"[{{"type":"image","{key}":{{"{key}":[{}]}}}}]"#,
        [long.as_str(); 100].join(",")
    );
    let payload = REQUEST.replace("\"hi\"", &content);
    let mut tags = String::new();
    for n in 0..200 {
        write!(tags, r#"{{"{n}é{key}":"#).unwrap();
    }
    let tags = format!("{tags}1e999{}", "}".repeat(200));
    let trace = Trace::new()
        .add("chat_request", &payload)
        .add("dream", &tags);
    let limits = Limits {
        max_line_bytes: 64 << 20,
        ..LIMITS
    };
    let options = VerifyOptions {
        limits,
        ..VerifyOptions::default()
    };
    let report = verify(trace.text.as_bytes(), &options).unwrap();
    assert_eq!(report.counts[&Rule::InlineBase64], 100);
    assert_eq!(report.counts[&Rule::NumberRange], 1);
    for finding in &report.findings {
        let field = finding.field.as_deref().unwrap_or_default();
        assert!(field.chars().count() <= 401, "{field}");
        assert!(finding.message.len() < 500);
    }
    let field = |rule| {
        let finding = report.findings.iter().find(|f| f.rule == rule).unwrap();
        finding.field.clone().unwrap()
    };
    let cut = "k".repeat(80);
    assert_eq!(
        field(Rule::InlineBase64),
        format!("payload.messages[0].content[0][\"{cut}…\"][\"{cut}…\"][0]")
    );
    let deep = field(Rule::NumberRange);
    assert!(
        deep.starts_with("payload[\"0ékk") && deep.ends_with('…'),
        "{deep}"
    );
}

#[test]
fn what_other_programs_do_not_read_is_found_outside_of_payloads() {
    let digits = format!("\"meta\":{{\"n\":1{}}}", "0".repeat(309));
    for (field, rule, at) in [
        (
            r#""meta":{"a":["\ud800"]}"#,
            Rule::LoneSurrogate,
            "meta.a[0]",
        ),
        (
            r#""meta":{"a":{"\udc00":1}}"#,
            Rule::LoneSurrogate,
            "meta.a",
        ),
        (r#""meta":{"a":1,"b":-1e400}"#, Rule::NumberRange, "meta.b"),
        (&digits, Rule::NumberRange, "meta.n"),
        (r#""x":[{"y":"\ud83d"}]"#, Rule::LoneSurrogate, "x[0].y"),
        (r#""x":1E999"#, Rule::NumberRange, "x"),
        (r#""\ud800":1"#, Rule::LoneSurrogate, "\u{fffd}"),
    ] {
        let trace = Trace::new().but("\"payload\"", &format!("{field},\"payload\""));
        let report = check(trace.text.as_bytes());
        let found: Vec<_> = report
            .findings
            .iter()
            .filter(|f| f.severity > Severity::Note)
            .map(|f| (f.rule, f.field.as_deref().unwrap()))
            .collect();
        assert_eq!(found, [(rule, at)], "{field}");
    }
    let good =
        r#""meta":{"a":"\ud83d\ude00\n","b":1e308,"c":123456789012345678901234567890,"d":1e-999}"#;
    let trace = Trace::new().but("\"payload\"", &format!("{good},\"payload\""));
    assert_eq!(check(trace.text.as_bytes()).findings, []);
}

#[test]
fn times_that_are_not_as_they_should_be_are_told_from_those_that_are_only_less_exact() {
    let rules = |ts: &str| {
        let trace = Trace::new().but("2026-04-24T10:00:00.000Z", ts);
        names(&check(trace.text.as_bytes()))
    };
    assert_eq!(rules("20260424T100000Z"), ["ts-form"]);
    assert_eq!(rules("2026-04-24T10:00Z"), ["ts-form"]);
    assert_eq!(rules("2026-04-24t10:00:00.000Z"), ["ts-form"]);
    assert_eq!(rules("2026-04-24T10:00:00.1234567890Z"), ["ts-precision"]);
    assert!(rules("2016-12-31T23:59:60.000Z").is_empty());
}

#[test]
fn the_first_record_behind_lines_that_cannot_be_read_may_be_a_root() {
    let bad = || Trace::default().line("oops\n{\n");
    let trace = bad().add("metadata", ROOT).add("error", ERROR);
    let report = check(trace.text.as_bytes());
    assert_eq!(names(&report), ["not-json"]);
    assert_eq!(report.root.unwrap().to_string(), id_of(ROOT));
    // It has no parent, and still is no root.
    let trace = bad().add("error", ERROR);
    assert_eq!(
        names(&check(trace.text.as_bytes())),
        ["not-json", "root-kind"]
    );
    // A second root is one, whatever is before it.
    let trace = Trace::new().line("oops\n").under("metadata", ROOT, "null");
    assert_eq!(
        names(&check(trace.text.as_bytes())),
        ["not-json", "parent-null"]
    );
}

#[test]
fn a_line_that_cannot_be_read_may_be_one_parent_and_no_more() {
    let lost = format!("\"{}\"", id_of(REQUEST));
    let other = format!("\"{}\"", id_of(RESPONSE));
    let trace = Trace::new()
        .under("chat_response", RESPONSE, &other)
        .line("oops\n")
        .under("chat_response", ASKS, &lost)
        .under("error", ERROR, &lost)
        .under("harness_event", HARNESS, &format!("\"{}\"", id_of("{}")));
    let report = check(trace.text.as_bytes());
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|f| (f.at.unwrap().line, f.rule.name()))
        .collect();
    let expected = [
        (2, "parent-self"),
        (3, "not-json"),
        (4, "parent-unread"),
        (5, "parent-unread"),
        (6, "parent-unknown"),
    ];
    assert_eq!(found, expected);
    assert!(
        report.findings[2].message.ends_with("may have it"),
        "{report:#?}"
    );
}

#[test]
fn a_last_line_that_is_whole_is_called_what_it_is() {
    let trace = Trace::new().line("[1,2]");
    let report = check(trace.text.as_bytes());
    assert_eq!(names(&report), ["not-a-record", "unterminated"]);
}

#[test]
fn any_number_of_threads_can_be_asked_for() {
    let report = check(whole().text.as_bytes());
    let options = VerifyOptions {
        threads: usize::MAX,
        ..VerifyOptions::default()
    };
    assert_eq!(verify(whole().text.as_bytes(), &options).unwrap(), report);
}
