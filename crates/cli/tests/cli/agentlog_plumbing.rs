//! `quipu agentlog parse|write|canon|id`: the format for programs in other languages.

use super::env::TestEnv;

const ID: &str = "sha256:93a23971a914e5eacbf0a8d25154cda309c3c1c72fbb9914d47c60f3cb681588";

fn trace() -> String {
    format!(
        "{{\"version\":\"0.1\",\"id\":\"{ID}\",\"kind\":\"metadata\",\"ts\":\"2026-04-24T10:00:00.000Z\",\
         \"parent\":null,\"payload\":{{\"hello\":\"world\"}}}}\n\
         {{\"version\":\"0.1\",\"id\":\"x\",\"kind\":\"not_known\",\"ts\":\"?\",\"payload\":{{\"f\":0.30000000000000004,\
         \"n\":18446744073709551615,\"s\":\"\\u00e9\\n\"}},\"more\":[1.0]}}\n"
    )
}

#[test]
fn a_trace_becomes_an_array_and_a_trace_again() {
    let env = TestEnv::new();
    let parsed = env.run_with(&["agentlog", "parse"], trace().as_bytes());
    assert_eq!((parsed.code, &*parsed.stderr), (0, ""));
    let records: serde_json::Value = serde_json::from_str(&parsed.stdout).unwrap();
    assert_eq!(records[1]["kind"], "not_known");
    // Nothing of a record is changed, not even how a number or a string is spelled.
    let written = env.run_with(&["agentlog", "write"], parsed.stdout.as_bytes());
    assert_eq!((written.code, &*written.stderr), (0, ""));
    assert_eq!(written.stdout, trace());

    let empty = env.run_with(&["agentlog", "parse"], b"");
    assert_eq!((&*empty.stdout, empty.code), ("[]\n", 0));
    let empty = env.run_with(&["agentlog", "write"], b"[]");
    assert_eq!((&*empty.stdout, empty.code), ("", 0));
}

#[test]
fn a_record_is_written_on_one_line_in_the_order_of_the_envelope() {
    let env = TestEnv::new();
    let pretty = br#"[ { "payload" : { "b" : "a \" b" , "a" : [ 1 , 2.0 ] } , "zzz": true,
        "kind":"metadata" , "id":"i", "meta": {},"ts":"t","version":"0.1" } ]"#;
    let written = env.run_with(&["agentlog", "write"], pretty);
    assert_eq!(
        written.stdout,
        "{\"version\":\"0.1\",\"id\":\"i\",\"kind\":\"metadata\",\"ts\":\"t\",\"meta\":{},\
         \"payload\":{\"b\":\"a \\\" b\",\"a\":[1,2.0]},\"zzz\":true}\n"
    );
}

#[test]
fn a_payload_has_a_canonical_form_and_an_id() {
    let env = TestEnv::new();
    let canon = env.run_with(
        &["agentlog", "canon"],
        "{ \"b\": 1e21, \"a\": \"e\u{301}\\u000a\" }\n".as_bytes(),
    );
    assert_eq!(
        canon.stdout,
        "{\"a\":\"é\\n\",\"b\":1000000000000000000000}"
    );
    assert_eq!((canon.code, &*canon.stderr), (0, ""));
    let id = env.run_with(&["agentlog", "id"], br#"{"hello":"world"}"#);
    assert_eq!((id.stdout, id.code), (format!("{ID}\n"), 0));
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_ends_with_3() {
    let env = TestEnv::new();
    let cases: [(&str, &[u8], &str); 12] = [
        ("parse", b"\n{\"a\":\n{}\n", "line 2: not JSON"),
        ("parse", b"\n[1]\n", "line 2: no record: not an object"),
        ("parse", b"\n{\"a\":\"\xff\"}\n", "line 2: not UTF-8"),
        ("parse", b"\n{\"id\":", "line 2: cut off"),
        (
            "write",
            b"[\n7]",
            "line 2, column 1: record 1: not an object",
        ),
        (
            "write",
            b"[{}]",
            "line 1, column 2: record 1: no record: `version` is no string",
        ),
        ("write", b"[\n,]", "line 2, column 1: expected a value"),
        (
            "parse",
            b"{\"not_a_record\": true}\n",
            "line 1: no record: `version`",
        ),
        ("write", b"{}", "not a list of records"),
        (
            "canon",
            b"{\n\"a\": NaN}",
            "line 2, column 6: expected a value",
        ),
        (
            "canon",
            b"{\n\"a\": 1e400}",
            "line 2, column 6: the number 1e400",
        ),
        (
            "id",
            b"{\"a\":\n\"\\ud800\"}",
            "line 2, column 1: half of a surrogate",
        ),
    ];
    for (command, input, expected) in cases {
        let ran = env.run_with(&["agentlog", command], input);
        assert_eq!(ran.code, 3, "{command} {ran:?}");
        assert!(ran.stderr.contains(expected), "{command}: {}", ran.stderr);
    }
}

#[test]
fn a_key_that_is_there_twice_is_warned_of() {
    let env = TestEnv::new();
    let ran = env.run_with(&["agentlog", "canon"], br#"{"a":1,"a":2}"#);
    assert_eq!((&*ran.stdout, ran.code), ("{\"a\":2}", 0));
    assert!(ran.stderr.contains("forbids"), "{}", ran.stderr);
}

#[test]
fn limits_can_be_set() {
    let env = TestEnv::new();
    let long = env.run_with(
        &["agentlog", "parse", "--max-line", "100"],
        trace().as_bytes(),
    );
    assert_eq!(long.code, 3);
    assert!(
        long.stderr.contains("line 1:") && long.stderr.contains("100 allowed"),
        "{long:?}"
    );
    let total = env.run_with(
        &["agentlog", "parse", "--max-total", "100"],
        trace().as_bytes(),
    );
    assert_eq!(total.code, 3);
    assert!(total.stderr.contains("--max-total"), "{total:?}");
    let deep = env.run_with(
        &["agentlog", "parse", "--max-depth", "2"],
        b"{\"payload\":{\"a\":{\"b\":1}}}\n",
    );
    assert_eq!(deep.code, 3);
    assert!(deep.stderr.contains("deeper than 2"), "{deep:?}");
}
