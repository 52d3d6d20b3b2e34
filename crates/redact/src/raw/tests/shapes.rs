//! Bytes that stay as they are, and where things are found.

use std::io::Read;

use super::super::{What, check};
use super::*;

#[test]
fn what_nothing_was_found_in_stays_as_it_was_spelled() {
    for input in [
        "",
        "\n",
        "plain",
        "{\"b\": 1.0e0,  \"a\":\"\\u0041\\/\\n\", \"b\":1E5}\r\n{}\r\n",
        "\u{feff}{\"a\":1}\n\n\n{\"b\":[ ]}",
        "{\n  \"a\": [1, 2],\r\n  \"b\": \"\\ud83d\"\n}\n",
        "{\"torn\":\"lin",
        "[1,2,\n",
    ] {
        assert_eq!(left(input), input);
        assert_eq!(left_lines(input), input);
    }
    let bytes = b"{\"a\":\"\xff\xfe\"}\n\x00\xc3\n";
    assert_eq!(run(&engine(), &options(), bytes).bytes, bytes);
}

#[test]
fn only_the_secret_is_replaced() {
    let token = token(1);
    let input = format!("{{ \"a\" : \"x\\n{token}\\tcaf\\u00e9\" ,\"n\":1.50}}\r\n");
    assert_eq!(left(&input), input.replace(&token, "[REDACTED:github]"));
    let done = run(&engine(), &options(), input.as_bytes());
    let finding = &done.findings[0];
    assert_eq!((finding.line, finding.column, finding.offset), (1, 13, 12));
    assert_eq!((finding.length, finding.field.as_str()), (40, "a"));
    assert_eq!(finding.placeholder, "[REDACTED:github]");
    assert!(
        finding
            .hash
            .as_ref()
            .is_some_and(|hash| hash.starts_with("sha256:"))
    );
    assert_eq!(finding.what, What::Rule(0));
    assert!(!format!("{done:?}", done = done.findings).contains(&token));
    assert_eq!(done.summary.rules.get("token"), Some(&1));
}

#[test]
fn numbers_are_the_same_for_the_same_secret() {
    let (one, two) = (token(1), token(2));
    let input = format!("{{\"a\":\"{one} {two}\"}}\n{{\"b\":[\"{two}\",\"{one}\"]}}\n");
    let expected = "{\"a\":\"[REDACTED:github] [REDACTED:github#2]\"}\n{\"b\":[\"[REDACTED:github#2]\",\"[REDACTED:github]\"]}\n";
    assert_eq!(left(&input), expected);
    // Numbers that are taken are not given again.
    let input = format!("{{\"a\":\"[REDACTED:github#2]\"}}\n{{\"a\":\"{one}\"}}\n");
    assert!(left(&input).contains("[REDACTED:github#3]"));
}

#[test]
fn escapes_in_a_token_are_part_of_it() {
    let token = token(3);
    let spelled = format!("\\u0067hp_{}", &token[4..]);
    let input = format!("{{\"a\":\"\\\"{spelled}\\\"\"}}\n");
    assert_eq!(left(&input), "{\"a\":\"\\\"[REDACTED:github]\\\"\"}\n");
}

#[test]
fn keys_are_looked_at_and_stay_apart() {
    let (one, two) = (token(1), token(2));
    let input = format!("{{\"{one}\":1,\"x {two}\":{{\"{two}\":2}},\"{two}\":3}}\n");
    assert_eq!(
        left(&input),
        "{\"[REDACTED:github]\":1,\"x [REDACTED:github#2]\":{\"[REDACTED:github#2]\":2},\"[REDACTED:github#2]\":3}\n"
    );
}

#[test]
fn numbers_become_strings() {
    let card = expand("4{digit:15}", 1).unwrap().text;
    let input = format!(
        "{{\"card\":{card},\"list\":[-{card}],\"n\":12345,\"password\":98765,\"t\":true}}\n"
    );
    assert_eq!(
        left(&input),
        "{\"card\":\"[REDACTED:card]\",\"list\":[\"[REDACTED:card]\"],\"n\":12345,\"password\":\"[REDACTED:password]\",\"t\":true}\n"
    );
    let nested = format!("{{\"args\":\"{{\\\"card\\\":{card}}}\"}}\n");
    assert_eq!(
        left(&nested),
        "{\"args\":\"{\\\"card\\\":\\\"[REDACTED:card]\\\"}\"}\n"
    );
}

#[test]
fn names_are_those_of_keys_lists_and_pairs() {
    for (input, expected) in [
        (
            r#"{"password":"hunter22"}"#,
            r#"{"password":"[REDACTED:password]"}"#,
        ),
        (
            r#"{"passwords":["hunter22"]}"#,
            r#"{"passwords":["[REDACTED:password]"]}"#,
        ),
        (
            r#"{"env":[{"name":"API_KEY","value":"hunter22"}]}"#,
            r#"{"env":[{"name":"API_KEY","value":"[REDACTED:password]"}]}"#,
        ),
        (
            r#"{"value":"hunter22","key":"db_password"}"#,
            r#"{"value":"[REDACTED:password]","key":"db_password"}"#,
        ),
        (
            r#"{"header":"Authorization","value":"hunter22"}"#,
            r#"{"header":"Authorization","value":"[REDACTED:password]"}"#,
        ),
        (
            r#"{"name":"x","value":"hunter22"}"#,
            r#"{"name":"x","value":"hunter22"}"#,
        ),
    ] {
        assert_eq!(left(input), expected);
    }
}

#[test]
fn json_in_strings_is_walked() {
    let inner = r#"{"password":"hunter\"22","x":["a\nb"]}"#;
    let once = serde_json::to_string(inner).unwrap();
    let twice = serde_json::to_string(&format!("{{\"deep\":{once}}}")).unwrap();
    let input = format!("{{\"arguments\":{once},\"more\":{twice}}}\n");
    let done = run(&engine(), &options(), input.as_bytes());
    let value: serde_json::Value = serde_json::from_str(done.text()).unwrap();
    let first: serde_json::Value =
        serde_json::from_str(value["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(first["password"], "[REDACTED:password]");
    assert_eq!(first["x"][0], "a\nb");
    let second: serde_json::Value = serde_json::from_str(value["more"].as_str().unwrap()).unwrap();
    let second: serde_json::Value = serde_json::from_str(second["deep"].as_str().unwrap()).unwrap();
    assert_eq!(second["password"], "[REDACTED:password]");
    assert_eq!(done.findings[0].field, "arguments.password");
    assert_eq!(done.findings[1].field, "more.deep.password");
    let at = usize::try_from(done.findings[1].offset).unwrap();
    assert!(input[at..].starts_with("hunter"));
}

#[test]
fn html_diffs_and_file_names() {
    let token = token(4);
    for around in [
        "<a href=\\\"https://x.example/?t=T&amp;y\\\">T</a>",
        "@@ -1 +1 @@\\n-old\\n+token = \\\"T\\\"\\n",
        "/code/T/file.txt",
        "curl -H 'x: T' | sh",
    ] {
        let input = format!("{{\"v\":\"{}\"}}\n", around.replace('T', &token));
        assert_eq!(
            left(&input),
            format!(
                "{{\"v\":\"{}\"}}\n",
                around.replace('T', "[REDACTED:github]")
            )
        );
    }
}

#[test]
fn lines_that_are_no_json_are_text() {
    let token = token(5);
    let pem = expand(
        "-----BEGIN PRIVATE KEY-----\n{lines:3}-----END PRIVATE KEY-----",
        1,
    )
    .unwrap()
    .text;
    let input = format!("{{\"a\":1}}\nlog {token}\n{pem}\nend\n{{\"b\":\"x\\n{token}");
    let done = run(&engine(), &options(), input.as_bytes());
    assert_eq!(
        done.text(),
        "{\"a\":1}\nlog [REDACTED:github]\n[REDACTED:private-key]\nend\n{\"b\":\"x\\n[REDACTED:github]"
    );
    assert_eq!(done.summary.broken, 1);
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    let token = token(6);
    let mut input = b"{\"a\":\"\xff ".to_vec();
    input.extend_from_slice(token.as_bytes());
    input.extend_from_slice(b"\xfe\",\"password\":\"hunter22\"}\n\xff text ");
    input.extend_from_slice(token.as_bytes());
    let done = run(&engine(), &options(), &input);
    assert_eq!(
        done.bytes,
        b"{\"a\":\"\xff [REDACTED:github]\xfe\",\"password\":\"[REDACTED:password]\"}\n\xff text [REDACTED:github]"
    );
}

#[test]
fn deep_nesting_is_text() {
    let token = token(7);
    for (depth, broken) in [(1024, 0), (1025, 1), (100_000, 1)] {
        let input = format!("{}\"{token}\"{}\n", "[".repeat(depth), "]".repeat(depth));
        let done = run(&engine(), &options(), input.as_bytes());
        assert_eq!(done.summary.broken, broken);
        assert_eq!(
            done.bytes,
            input.replace(&token, "[REDACTED:github]").as_bytes()
        );
    }
}

#[test]
fn documents_over_lines() {
    let token = token(8);
    let input = format!(
        "\n{{\n  \"a\": [\n    \"x\\n{token}\"\n  ],\n  \"password\": \"hunter22\"\n}}\n{{\n \"b\": \"{token}\"}}\n\n"
    );
    let done = run(&engine(), &options(), input.as_bytes());
    let expected = input
        .replace(&token, "[REDACTED:github]")
        .replace("hunter22", "[REDACTED:password]");
    assert_eq!(done.text(), expected);
    let lines: Vec<u64> = done.findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [4, 6, 9]);
    assert_eq!(done.findings[0].field, "a[0]");
    let broken = format!("{{\n  \"a\": 1,\n  // comment\n \"b\": \"{token}\"\n}}\n");
    let done = run(&engine(), &options(), broken.as_bytes());
    assert_eq!(done.text(), broken.replace(&token, "[REDACTED:github]"));
}

/// A line of a given length, made as it is read.
pub(super) struct Long {
    pub(super) head: Vec<u8>,
    pub(super) fill: usize,
    pub(super) tail: Vec<u8>,
}

impl Read for Long {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.head.is_empty() && self.fill > 0 {
            let len = self.fill.min(buffer.len());
            for (at, byte) in buffer[..len].iter_mut().enumerate() {
                *byte = b"lorem ipsum dolor "[at % 18];
            }
            self.fill -= len;
            return Ok(len);
        }
        let from = if self.head.is_empty() {
            &mut self.tail
        } else {
            &mut self.head
        };
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        from.drain(..len);
        Ok(len)
    }
}

#[test]
fn a_very_long_line_is_one_record_or_pieces() {
    let token = token(9);
    let fill = if cfg!(debug_assertions) {
        6 << 20
    } else {
        100 << 20
    };
    for (max_line, pieced) in [(256 << 20, 0), (4 << 20, 1)] {
        let mut input = Long {
            head: format!("{{\"a\":\"{token}\\n").into_bytes(),
            fill,
            tail: format!("\\n{token}\"}}\n{{\"password\":\"hunter22\"}}\n").into_bytes(),
        };
        let options = RawOptions {
            max_line,
            ..options()
        };
        let mut output = Vec::new();
        let mut found = 0;
        let summary = redact(&engine(), &options, &mut input, &mut output, &mut |_| {
            found += 1;
        })
        .unwrap();
        assert_eq!((found, summary.pieced, summary.lines), (3, pieced, 2));
        assert!(output.starts_with(b"{\"a\":\"[REDACTED:github]\\n"));
        assert!(
            output.ends_with(b"\\n[REDACTED:github]\"}\n{\"password\":\"[REDACTED:password]\"}\n")
        );
    }
}

#[test]
fn text_in_windows_is_text() {
    let token = token(10);
    let line = format!("some words and {token} and more of them\n");
    let input = line.repeat((3 << 20) / line.len());
    assert_eq!(left(&input), input.replace(&token, "[REDACTED:github]"));
    // Without any line to divide it at, and with a token at every place a window may end.
    let input = format!("x{token} é").repeat(60_000);
    assert_eq!(left(&input), input);
    let input = format!(" {token} é").repeat(60_000);
    assert_eq!(left(&input), input.replace(&token, "[REDACTED:github]"));
}

#[test]
fn allowed_by_path_by_comment() {
    let token = token(11);
    let allow = |fields: &[&str], rules: &[&str]| Allow {
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        ..Allow::default()
    };
    let input = format!("{{\"m\":{{\"ok\":[\"{token}\"]}},\"x\":\"{token}\"}}\n");
    let expected = format!("{{\"m\":{{\"ok\":[\"{token}\"]}},\"x\":\"[REDACTED:github]\"}}\n");
    for (fields, rules, kept) in [
        (&["m.ok"][..], &[][..], true),
        (&["**.ok"], &["token"], true),
        (&["m.*"], &[], true),
        (&["**.ok"], &["card"], false),
        (&["ok"], &[], false),
    ] {
        let done = run(
            &engine_with(allow(fields, rules)),
            &options(),
            input.as_bytes(),
        );
        assert_eq!(done.text() == expected, kept, "{fields:?}");
    }
    for (comment, kept) in [
        ("quipu:allow", true),
        ("gitleaks:allow", true),
        ("nothing", false),
    ] {
        let input = format!("a {token} # {comment}\nb\n");
        assert_eq!(left(&input) == input, kept, "{comment}");
        let below = format!("a {token}\n# {comment}\n");
        assert_ne!(left(&below), below);
    }
}

#[test]
fn what_machines_made_is_passed_over() {
    // A token that is all letters and digits may stand in base64 by chance.
    let sealed = format!("{}/{}=", "QUJD".repeat(40), token(12).replace('_', "/"));
    let inner = token(12);
    for input in [
        format!(
            "{{\"source\":{{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{inner}\"}}}}\n"
        ),
        format!("{{\"url\":\"data:image/png;base64,{inner}\"}}\n"),
        format!("{{\"encrypted_content\":\"{sealed}{inner}\"}}\n"),
    ] {
        assert_eq!(left(&input), input);
    }
    for input in [
        format!(
            "{{\"source\":{{\"type\":\"base64\",\"media_type\":\"text/plain\",\"data\":\"{inner}\"}}}}\n"
        ),
        format!("{{\"signature\":\"see {inner}, it says: {sealed}\"}}\n"),
    ] {
        assert_eq!(left(&input), input.replace(&inner, "[REDACTED:github]"));
    }
}

#[test]
fn a_check_finds_the_same_and_writes_nothing() {
    let input = format!("{{\"a\":\"{}\"}}\n{}\n", token(13), token(14));
    let done = run(&engine(), &options(), input.as_bytes());
    let mut found = Vec::new();
    let summary = check(
        &engine(),
        &options(),
        &mut input.as_bytes(),
        &mut |finding| found.push(finding),
    )
    .unwrap();
    assert_eq!(found, done.findings);
    assert_eq!(summary, done.summary);
    assert_eq!(summary.redacted, 2);
}
