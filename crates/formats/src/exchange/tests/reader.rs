//! What the reader makes of files that are not as they should be.

use std::borrow::Cow;
use std::io;

use quipu_model::{AnyBlock, AnyBody, Block, Body, Content, Fidelity, Json, Role, Shape};

use super::{event, known, line, read_one, run, step};
use crate::exchange::{Item, Reader, Warning};
use crate::lines::Limits;

/// All of an input: `line:offset seq type [warnings]` or `line:offset bad: why`.
fn read_with(input: &[u8], limits: Limits) -> Vec<String> {
    let mut reader = Reader::with_limits(input, limits);
    let mut seen = Vec::new();
    while let Some(item) = reader.next_decoded().unwrap() {
        seen.push(match item {
            Ok(decoded) => {
                let warnings: Vec<String> =
                    decoded.warnings.iter().map(ToString::to_string).collect();
                let warnings = match warnings.join("; ") {
                    none if none.is_empty() => none,
                    some => format!(" [{some}]"),
                };
                let (at, event) = (decoded.at, &decoded.event);
                let word = event.body.type_word();
                format!("{}:{} {} {word}{warnings}", at.line, at.offset, event.seq)
            }
            Err(bad) => format!("{}:{} bad: {}", bad.at.line, bad.at.offset, bad.fault),
        });
    }
    assert_eq!(reader.position(), input.len() as u64, "all of it was read");
    seen
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, expected: &[&str]) {
    assert_eq!(read_with(input.as_ref(), Limits::default()), expected);
}

/// As in the descriptions below: the length of `run(1)`, which all single-digit events share.
const LEN: usize = 119;

#[test]
fn the_offsets_below_are_right() {
    assert_eq!(run(1).len(), LEN);
}

#[test]
fn files_as_they_should_be() {
    check("", &[]);
    check(
        format!("{}\n{}\n", run(1), run(2)),
        &["1:0 1 run.started", "2:120 2 run.started"],
    );
}

#[test]
fn line_forms() {
    let (a, b) = (run(1), run(2));
    check(
        format!("\n \t\n{a}\n\n\r\n{b}\n\n"),
        &["3:4 1 run.started", "6:127 2 run.started"],
    );
    check(
        format!("{a}\r\n{b}\r\n"),
        &[
            "1:0 1 run.started [the line ends in CR LF]",
            "2:121 2 run.started [the line ends in CR LF]",
        ],
    );
    check(
        format!("\u{feff}{a}\n{b}\n"),
        &[
            "1:3 1 run.started [the file begins with a byte order mark]",
            "2:123 2 run.started",
        ],
    );
    check("\u{feff}\n", &[]);
    check(
        format!("{a}\n\u{feff}{b}\n"),
        &[
            "1:0 1 run.started",
            "2:120 bad: cut off: the next event follows on the same line",
            "2:123 2 run.started [more than one object on the line]",
        ],
    );
    check(format!("  {a}  \n"), &["1:2 1 run.started"]);
}

#[test]
fn blank_lines_are_counted() {
    let text = format!("\n{}\n  \n\n", run(1));
    let mut reader = Reader::new(text.as_bytes());
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.blank_lines(), 3);
    assert_eq!(reader.line().number, 4);
}

#[test]
fn shared_lines() {
    let shared = "[more than one object on the line]";
    for (space, second) in [("", "1:119"), (" ", "1:120"), ("\t \t", "1:122")] {
        check(
            format!("{}{space}{}\n{}\n", run(1), run(2), run(3)),
            &[
                &format!("1:0 1 run.started {shared}"),
                &format!("{second} 2 run.started {shared}"),
                &format!("2:{} 3 run.started", 2 * LEN + space.len() + 1),
            ],
        );
    }
    check(
        format!("{}]\n{}\n", run(1), run(2)),
        &[
            &format!("1:0 1 run.started {shared}"),
            "1:119 bad: not a JSON object: expected a value (column 1)",
            "2:121 2 run.started",
        ],
    );
}

#[test]
fn last_lines() {
    let torn = "cut off: the file ends in the middle of this line";
    check(
        run(1),
        &["1:0 1 run.started [no line end after the last event]"],
    );
    for cut in 1..LEN {
        check(
            format!("{}\n{}", run(1), &run(2)[..cut]),
            &["1:0 1 run.started", &format!("2:120 bad: {torn}")],
        );
    }
    // Cut off inside a character.
    let text = line(2, "step.started", r#"{"name":"é","kind":""}"#);
    let inside = text.find('é').unwrap() + 1;
    check(&text.as_bytes()[..inside], &[&format!("1:0 bad: {torn}")]);
}

#[test]
fn a_bad_line_does_not_stop_the_reader() {
    for (bad, why) in [
        ("not json", "not a JSON object: expected a value (column 1)"),
        ("null", "not a JSON object: expected a value (column 1)"),
        ("[]", "not a JSON object: expected a value (column 1)"),
        (
            "{\"seq\":1",
            "not a JSON object: the text ends too early (column 9)",
        ),
        (
            "{\"seq\":1,}",
            "not a JSON object: expected a key (column 10)",
        ),
        ("{}", r#"bad field "seq": missing"#),
        ("{\"seq\":1}", r#"bad field "type": missing"#),
        ("\u{b}", "not a JSON object: expected a value (column 1)"),
    ] {
        check(
            format!("{}\n{bad}\n{}\n", run(1), run(2)),
            &[
                "1:0 1 run.started",
                &format!("2:120 bad: {why}"),
                &format!("3:{} 2 run.started", LEN + 1 + bad.len() + 1),
            ],
        );
    }
}

#[test]
fn bad_lines_are_handed_over() {
    let torn = &run(2)[..40];
    let input = format!("oops\n{}{}\n{torn}{}\n", run(1), "tail", run(3));
    let mut reader = Reader::new(input.as_bytes());
    let mut bad = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Bad(item) = item {
            bad.push(String::from_utf8(item.bytes.to_vec()).unwrap());
        }
    }
    assert_eq!(bad, ["oops", "tail", torn]);

    let mut reader = Reader::new(&b"\xff\xfeoops\n"[..]);
    let Some(Item::Bad(bad)) = reader.next().unwrap() else {
        panic!()
    };
    assert_eq!(bad.bytes, b"\xff\xfeoops", "as they are");
}

#[test]
fn an_event_behind_a_torn_one_is_found() {
    let glued = "bad: cut off: the next event follows on the same line";
    let shared = "[more than one object on the line]";
    for cut in [1, 7, 8, 20, 60, LEN - 1] {
        check(
            format!("{}{}\n{}\n", &run(1)[..cut], run(2), run(3)),
            &[
                &format!("1:0 {glued}"),
                &format!("1:{cut} 2 run.started {shared}"),
                &format!("2:{} 3 run.started", cut + LEN + 1),
            ],
        );
    }
    // Torn twice, and cut off in the end.
    check(
        format!(
            "{}{}{}{}",
            &run(1)[..30],
            &run(2)[..30],
            run(3),
            &run(4)[..30]
        ),
        &[
            &format!("1:0 {glued}"),
            &format!("1:60 3 run.started {shared}"),
            "1:179 bad: cut off: the file ends in the middle of this line",
        ],
    );
}

#[test]
fn an_event_inside_a_torn_value_is_not_an_event() {
    let inner = run(9);
    let torn = line(
        1,
        "tool.call",
        &format!(r#"{{"input":[{inner},{inner}],"out"#),
    );
    check(
        format!("{}\n{}\n", &torn[..torn.len() - 1], run(2)),
        &[
            "1:0 bad: not a JSON object: the text ends too early (column 368)",
            "2:368 2 run.started",
        ],
    );
}

#[test]
fn raw_nul_bytes() {
    let nul = "[raw NUL bytes, read as \\u0000]";
    let said = line(1, "step.started", "{\"name\":\"a\0b\",\"kind\":\"\0\"}");
    check(format!("{said}\n"), &[&format!("1:0 1 step.started {nul}")]);
    let read = read_one(&said);
    let Body::StepStarted(step) = known(&read) else {
        panic!()
    };
    assert_eq!((step.name.as_str(), step.kind.as_str()), ("a\0b", "\0"));

    let zeros = "\0".repeat(512);
    check(
        format!("{zeros}\n{}\n", run(1)),
        &["1:0 bad: nothing but NUL bytes", "2:513 1 run.started"],
    );
    check(
        format!("{}\n{zeros}", run(1)),
        &["1:0 1 run.started", "2:120 bad: nothing but NUL bytes"],
    );
    check(format!("{zeros}\r\n"), &["1:0 bad: nothing but NUL bytes"]);
    check(
        format!("{zeros}{}\n", run(1)),
        &[&format!("1:0 1 run.started {nul}")],
    );
    check(
        format!("{}{zeros}\n", run(1)),
        &[&format!("1:0 1 run.started {nul}")],
    );
    check(
        format!("{}\0{}\n", run(1), run(2)),
        &[
            "1:0 1 run.started [raw NUL bytes, read as \\u0000; more than one object on the line]",
            "1:119 bad: cut off: the next event follows on the same line",
            "1:125 2 run.started [raw NUL bytes, read as \\u0000; more than one object on the line]",
        ],
    );
}

#[test]
fn invalid_utf_8() {
    let mut input = line(1, "step.started", r#"{"name":"a?b","kind":""}"#).into_bytes();
    let at = input.iter().position(|&b| b == b'?').unwrap();
    input[at] = 0xff;
    input.push(b'\n');
    check(
        &input,
        &["1:0 1 step.started [invalid UTF-8, replaced by U+FFFD]"],
    );
    let mut reader = Reader::new(&input[..]);
    let read = reader.next_decoded().unwrap().unwrap().unwrap();
    assert!(matches!(known(&read), Body::StepStarted(step) if step.name == "a\u{fffd}b"));
    check(
        b"\xff\n",
        &["1:0 bad: not a JSON object: expected a value (column 1)"],
    );
}

#[test]
fn lines_that_are_too_long() {
    let limits = Limits {
        max_line_bytes: LEN,
        ..Limits::default()
    };
    let long = run(10);
    let input = format!("{}\n{long}\n{}\n", run(1), run(2));
    assert_eq!(
        read_with(input.as_bytes(), limits),
        [
            "1:0 1 run.started",
            "2:120 bad: 120 bytes long, more than the 119 allowed",
            "3:241 2 run.started",
        ]
    );
}

#[test]
fn the_total_is_capped() {
    let limits = Limits {
        max_total_bytes: 200,
        ..Limits::default()
    };
    let input = format!("{}\n{}\n", run(1), run(2));
    let mut reader = Reader::with_limits(input.as_bytes(), limits);
    let error = reader.next_decoded().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "the input is larger than 200 bytes");
}

#[test]
fn deep_values() {
    let deep = line(1, "tool.call", &"[".repeat(100_000));
    check(
        format!("{deep}\n{}\n", run(2)),
        &[
            "1:0 bad: nested deeper than 128 levels",
            "2:100114 2 run.started",
        ],
    );
    check(
        format!("{}\n", "{\"a\":".repeat(100_000)),
        &["1:0 bad: nested deeper than 128 levels"],
    );
    let deepest = "[".repeat(127) + &"]".repeat(127);
    check(
        line(1, "new.type", &deepest) + "\n",
        &[r#"1:0 1 new.type [unknown event type "new.type"]"#],
    );
}

#[test]
fn reading_goes_on_in_the_middle_of_a_file() {
    let text = format!("\u{feff}{}", run(2));
    let mut reader = Reader::resuming(text.as_bytes(), Limits::default(), 1000, 8);
    let bad = reader.next_decoded().unwrap().unwrap().unwrap_err();
    assert_eq!(
        bad.at.to_string(),
        "line 9 (byte 1000)",
        "a mark is one at the start only"
    );
    let read = reader.next_decoded().unwrap().unwrap().unwrap();
    assert_eq!(read.at.to_string(), "line 9 (byte 1003)");
}

#[test]
fn a_source_that_fails() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    assert_eq!(
        Reader::new(Broken).next().unwrap_err().to_string(),
        "unplugged"
    );
}

/// Replaces a part of a line, once.
fn with(from: &str, to: &str) -> String {
    let line = line(1, "step.started", r#"{"name":"a","kind":"agent"}"#);
    assert_eq!(line.matches(from).count(), 1, "{from}");
    line.replace(from, to) + "\n"
}

#[test]
fn fields_of_the_envelope() {
    let whole = "not a whole number that is zero or greater";
    for (from, to, why) in [
        (r#""seq":1,"#, "", r#""seq": missing"#),
        (r#""seq":1"#, r#""seq":"1""#, &format!(r#""seq": {whole}"#)),
        (r#""seq":1"#, r#""seq":-1"#, &format!(r#""seq": {whole}"#)),
        (r#""seq":1"#, r#""seq":1.0"#, &format!(r#""seq": {whole}"#)),
        (
            r#""seq":1"#,
            r#""seq":18446744073709551616"#,
            &format!(r#""seq": {whole}"#),
        ),
        (r#""seq":1"#, r#""seq":null"#, &format!(r#""seq": {whole}"#)),
        (r#""type":"step.started","#, "", r#""type": missing"#),
        (
            r#""type":"step.started""#,
            r#""type":7"#,
            r#""type": not a string"#,
        ),
        (r#""run_id":"r1","#, "", r#""run_id": missing"#),
        (
            r#""run_id":"r1""#,
            r#""run_id":null"#,
            r#""run_id": missing"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":"""#,
            r#""run_id": a run id cannot be empty"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":1"#,
            r#""run_id": not a string"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":"../x""#,
            r#""run_id": a run id cannot begin with '.'"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":"r1","parent_run_id":"a b""#,
            r#""parent_run_id": a run id holds letters, digits, '.', '_' and '-' only, not ' '"#,
        ),
        (
            r#""timestamp":"2026-06-08T08:14:42Z","#,
            "",
            r#""timestamp": missing"#,
        ),
        (
            r#""2026-06-08T08:14:42Z""#,
            r#""yesterday""#,
            r#""timestamp": not an RFC 3339 time: "yesterday""#,
        ),
        (
            "T08:14:42Z",
            "T08:14:42",
            r#""timestamp": not an RFC 3339 time: "2026-06-08T08:14:42""#,
        ),
        (
            r#""2026-06-08T08:14:42Z""#,
            "1780906482",
            r#""timestamp": not a string"#,
        ),
        (r#""path":"a""#, r#""path":null"#, r#""path": not a string"#),
        (
            r#""path":"a""#,
            r#""path":"\ud800""#,
            r#""path": not a string"#,
        ),
        (
            r#""iteration":0"#,
            r#""iteration":-1"#,
            &format!(r#""iteration": {whole}"#),
        ),
    ] {
        check(with(from, to), &[&format!("1:0 bad: bad field {why}")]);
    }
}

#[test]
fn fields_that_may_be_missing_or_new() {
    for (from, to, said) in [
        (r#""path":"a","#, "", r#" [missing field "path"]"#),
        (r#""iteration":0,"#, "", r#" [missing field "iteration"]"#),
        (
            r#""seq":1"#,
            r#""seq":18,"colour":"red""#,
            r#" [unknown field "colour"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"Seq":2"#,
            r#" [unknown field "Seq"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"\ud800":2"#,
            " [unknown field \"\u{fffd}\"]",
        ),
        (
            r#""kind":"agent""#,
            r#""kind":"agent","x":{}"#,
            r#" [unknown field "payload.x"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"model":7"#,
            r#" [field "model" is not understood: invalid type: integer `7`, expected a string at line 1 column 1]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"flags":["shiny"]"#,
            r#" [field "flags" is not understood: unknown flag "shiny"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"parent_run_id":"","child_run_id":"""#,
            "",
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"parent_run_id":null,"child_run_id":null"#,
            "",
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"model":null,"duration_ms":null"#,
            "",
        ),
    ] {
        let read = read_with(with(from, to).as_bytes(), Limits::default());
        let seq = if to.contains("18") { 18 } else { 1 };
        assert_eq!(read, [format!("1:0 {seq} step.started{said}")], "{to}");
    }
    for annotation in [
        r#""usage":{"tokens":1}"#,
        r#""usage":{"input":-1}"#,
        r#""usage":null"#,
        r#""source":{"file":"x"}"#,
        r#""duration_ms":1.5"#,
        r#""native_id":[]"#,
    ] {
        let read = read_one(&with(r#""seq":1"#, &format!(r#""seq":1,{annotation}"#)));
        assert!(
            matches!(&read.warnings[..], [Warning::Annotation { .. }]),
            "{annotation}"
        );
        assert!(read.event.annotations.is_empty());
    }
}

#[test]
fn the_last_of_repeated_keys_wins() {
    let read = read_one(&with(
        r#""seq":1"#,
        r#""seq":4,"seq":1,"type":"x","path":"y""#,
    ));
    assert_eq!((read.event.seq, read.event.place.path.as_str()), (1, "a"));
    let read = read_one(&with(
        r#""kind":"agent""#,
        r#""kind":"agent","kind":"while""#,
    ));
    assert!(matches!(known(&read), Body::StepStarted(step) if step.kind == "while"));
    let twice = line(1, "new", "{}").replace("\"payload\"", "\"payload\":[1],\"payload\"");
    let AnyBody::Foreign(foreign) = read_one(&twice).event.body else {
        panic!()
    };
    assert_eq!(foreign.payload.get(), "{}");
}

#[test]
fn unknown_types_are_handed_over_intact() {
    for payload in [
        "null",
        "[ 1, 2 ]",
        r#"{ "b":12345678901234567890123, "a":1.0, "a":"\u0041\ud800" }"#,
        r#"{"role":null}"#,
        "\"text\"",
    ] {
        let line =
            line(3, "step.paused", payload).replace("\"type\"", "\"child_run_id\":\"c\",\"type\"");
        let read = read_one(&line);
        assert_eq!(
            read.warnings[0].to_string(),
            r#"unknown event type "step.paused""#
        );
        assert_eq!(read.event.body.event_type(), None);
        assert_eq!(read.event.body.type_word(), "step.paused");
        let AnyBody::Foreign(foreign) = read.event.clone().into_known().unwrap_err().body else {
            panic!()
        };
        assert_eq!(foreign.payload.get(), payload, "to the byte");
        assert_eq!(foreign.child_run_id.as_deref(), Some("c"));
    }
    let missing = line(1, "new", "0").replace(",\"payload\":0", "");
    let AnyBody::Foreign(foreign) = read_one(&missing).event.body else {
        panic!()
    };
    assert_eq!(
        (foreign.payload, foreign.shape),
        (Json::null(), Shape::Null)
    );
}

#[test]
fn payloads_are_told_by_their_shape() {
    for (payload, shape) in [
        ("null", Shape::Null),
        ("[]", Shape::Blocks),
        (r#"[{"type":"text"}]"#, Shape::Blocks),
        (r#"{"role":"user"}"#, Shape::Message),
        (r#"{"kind":1,"call_id":2,"role":null}"#, Shape::Message),
        (r#"{"kind":1,"call_id":null}"#, Shape::Tool),
        (r#"{"kind":null}"#, Shape::Step),
        (r#"{"Kind":"x"}"#, Shape::Other),
        (r#"{"x":{"role":"user"}}"#, Shape::Other),
        ("{}", Shape::Other),
        ("\"role\"", Shape::Other),
        ("7", Shape::Other),
    ] {
        for event_type in ["new", "run.started"] {
            let line = line(1, event_type, payload);
            let mut reader = Reader::new(line.as_bytes());
            let Some(Item::Event(found)) = reader.next().unwrap() else {
                panic!()
            };
            assert_eq!(found.scan.shape(), shape, "{payload}");
            assert_eq!(found.scan.run_id(), Some(Cow::Borrowed("r1")));
            let decoded = found.decode().unwrap();
            if let AnyBody::Foreign(foreign) = decoded.event.body {
                assert_eq!(foreign.shape, shape, "{payload}");
            }
        }
    }
}

#[test]
fn payloads_that_do_not_fit() {
    for (event_type, payload, why) in [
        ("step.started", "null", "it is not an object"),
        ("step.started", "[]", "it is not an object"),
        ("step.started", "{}", r#""name" is missing"#),
        ("step.started", r#"{"name":"a"}"#, r#""kind" is missing"#),
        (
            "step.started",
            r#"{"name":1,"kind":"a"}"#,
            r#""name" is not a string"#,
        ),
        (
            "step.started",
            r#"{"name":"a","kind":"b","result":1}"#,
            r#""result" does not belong to the start of a step"#,
        ),
        (
            "step.completed",
            r#"{"name":"a","kind":"b","call_id":"c"}"#,
            r#""call_id" does not belong to a step"#,
        ),
        (
            "step.completed",
            r#"{"name":"a","kind":"b","blocks":[]}"#,
            r#""blocks" does not belong to a step"#,
        ),
        (
            "step.completed",
            r#"{"name":"a","kind":"b","error":{}}"#,
            r#""error" is not a string"#,
        ),
        (
            "run.completed",
            r#"{"role":"user"}"#,
            r#""role" does not belong to a step"#,
        ),
        (
            "step.call_workflow.started",
            r#"{"name":"a","kind":"b"}"#,
            "child_run_id is missing",
        ),
        ("message.user", r#"{"blocks":[]}"#, r#""role" is missing"#),
        (
            "message.user",
            r#"{"role":"assistant","blocks":[]}"#,
            r#"the role is "assistant""#,
        ),
        (
            "message.user",
            r#"{"role":"user"}"#,
            r#""blocks" is missing"#,
        ),
        (
            "message.user",
            r#"{"role":"user","blocks":{}}"#,
            r#""blocks" is not a list"#,
        ),
        (
            "message.assistant",
            r#"{"role":"assistant","blocks":[],"name":"x"}"#,
            r#""name" does not belong to a message"#,
        ),
        ("tool.call", r#"{"name":"a"}"#, r#""call_id" is missing"#),
        (
            "tool.call",
            r#"{"name":"a","call_id":"c","output":1,"fidelity":"router"}"#,
            r#""output" does not belong to tool.call"#,
        ),
        (
            "tool.result",
            r#"{"name":"a","call_id":"c"}"#,
            r#""fidelity" is missing"#,
        ),
        (
            "tool.result",
            r#"{"name":"a","call_id":"c","fidelity":"Router"}"#,
            r#"unknown fidelity: "Router""#,
        ),
        (
            "tool.result",
            r#"{"name":"a","call_id":"c","fidelity":"router","blocks":7}"#,
            r#""blocks" does not belong to a tool event"#,
        ),
    ] {
        let read = read_one(&line(1, event_type, payload));
        assert_eq!(read.warnings.len(), 1);
        let expected = format!("the payload does not fit {event_type}: {why}");
        assert_eq!(read.warnings[0].to_string(), expected);
        let AnyBody::Foreign(foreign) = &read.event.body else {
            panic!()
        };
        assert_eq!(
            (foreign.event_type.as_str(), foreign.payload.get()),
            (event_type, payload)
        );
        assert_eq!(read.event.body.type_word(), event_type);
    }
    // Without a payload at all, and with a link that is none of its business.
    let missing = line(1, "step.started", "0").replace(",\"payload\":0", "");
    let said = read_one(&missing).warnings[0].to_string();
    assert_eq!(said, "the payload does not fit step.started: it is missing");
    for (child, why) in [
        ("c", "child_run_id belongs to call_workflow events only"),
        (
            "/",
            r#"bad field "child_run_id": a run id holds letters, digits, '.', '_' and '-' only, not '/'"#,
        ),
    ] {
        let to = format!(r#""seq":1,"child_run_id":"{child}""#);
        let said = read_one(&with(r#""seq":1"#, &to)).warnings[0].to_string();
        assert_eq!(
            said,
            format!("the payload does not fit step.started: {why}")
        );
    }
}

#[test]
fn what_means_nothing_is_nothing() {
    for (event_type, payload, expected) in [
        (
            "step.completed",
            r#"{"name":"a","kind":"k","error":"","role":null,"blocks":null}"#,
            Body::StepCompleted(step("k").succeeded(None)),
        ),
        (
            "step.completed",
            r#"{"name":"a","kind":"k","error":null,"result":null}"#,
            Body::StepCompleted(step("k").succeeded(Some(Json::null()))),
        ),
        (
            "message.user",
            r#"{"role":"user","blocks":null}"#,
            Body::UserMessage(Vec::new()),
        ),
        (
            "message.user",
            r#"{"role":"user","blocks":[{"type":"text","fidelity":"router","text":null,"chunk":null}]}"#,
            Body::UserMessage(vec![Block::text(Fidelity::Router, "")]),
        ),
    ] {
        let read = read_one(&(line(1, event_type, payload)));
        assert_eq!(known(&read), &expected);
        assert_eq!(read.warnings, []);
    }
}

#[test]
fn a_chunk_may_stand_in_either_field() {
    let stream = |fields: &str| {
        let block = format!(r#"{{"type":"stream","fidelity":"router",{fields}}}"#);
        read_one(
            &(line(
                1,
                "message.user",
                &format!(r#"{{"role":"user","blocks":[{block}]}}"#),
            ) + "\n"),
        )
    };
    for fields in [
        r#""text":"x""#,
        r#""chunk":"x""#,
        r#""text":"x","chunk":"x""#,
        r#""text":"","chunk":"x""#,
    ] {
        let content = Content::Stream("x".to_owned());
        let fidelity = Fidelity::Router;
        let expected = Body::UserMessage(vec![Block { fidelity, content }]);
        assert_eq!(known(&stream(fields)), &expected, "{fields}");
    }
    let read = stream(r#""text":"x","chunk":"y""#);
    let said = r#"block 0 does not fit its type: "text" and "chunk" differ"#;
    assert_eq!(read.warnings[0].to_string(), said);
}

#[test]
fn unknown_blocks_do_not_hide_the_others() {
    let text = r#"{"type":"text","fidelity":"router","text":"x"}"#;
    for (odd, why) in [
        (
            r#"{"type":"video", "url":1.0}"#,
            r#"unknown block type "video" in block 1"#,
        ),
        ("{}", r#"unknown block type "" in block 1"#),
        (r#"{"type":7}"#, r#"unknown block type "" in block 1"#),
        (
            "\"text\"",
            "block 1 does not fit its type: it is not an object",
        ),
        (
            r#"{"type":"text"}"#,
            r#"block 1 does not fit its type: "fidelity" is missing"#,
        ),
        (
            r#"{"type":"text","fidelity":"","text":"x"}"#,
            r#"block 1 does not fit its type: unknown fidelity: """#,
        ),
        (
            r#"{"type":"text","fidelity":"router","text":7}"#,
            r#"block 1 does not fit its type: "text" is not a string"#,
        ),
        (
            r#"{"type":"text","fidelity":"router","text":"\udead"}"#,
            r#"block 1 does not fit its type: "text" is not a string"#,
        ),
        (
            r#"{"type":"text","fidelity":"router","command":"ls"}"#,
            r#"block 1 does not fit its type: "command" does not belong to a text block"#,
        ),
    ] {
        let payload = format!(r#"{{"role":"assistant","blocks":[{text},{odd},{text}]}}"#);
        let read = read_one(&line(1, "message.assistant", &payload));
        assert_eq!(read.warnings.len(), 1);
        assert_eq!(read.warnings[0].to_string(), why);
        assert_eq!(read.event.body.type_word(), "message.assistant");
        let AnyBody::Message { role, blocks } = read.event.body else {
            panic!()
        };
        assert_eq!(role, Role::Assistant);
        let known = AnyBlock::Known(Block::text(Fidelity::Router, "x"));
        let odd = AnyBlock::Unknown(Json::parse(odd).unwrap());
        assert_eq!(blocks, [known.clone(), odd, known]);
    }
    let more = r#"{"type":"text","fidelity":"router","text":"x","signature":"y"}"#;
    let payload = format!(r#"{{"role":"user","blocks":[{more}]}}"#);
    let read = read_one(&line(1, "message.user", &payload));
    assert_eq!(
        read.warnings,
        [Warning::UnknownField(
            "payload.blocks[0].signature".to_owned()
        )]
    );
    let user = format!(r#"{{"role":"user","blocks":[{text},7]}}"#);
    let read = read_one(&line(1, "message.user", &user));
    assert_eq!(read.event.body.type_word(), "message.user");
}

#[test]
fn values_are_kept_to_the_byte() {
    let input = r#"{ "n":123456789012345678901234567890, "f":1.0, "s":"\u0041\/\ud800", "n":-0 }"#;
    let payload = format!(r#"{{"name":"a","call_id":"c","input":{input},"fidelity":"router"}}"#);
    let read = read_one(&line(1, "tool.call", &payload));
    let Body::ToolCall(call) = known(&read) else {
        panic!()
    };
    assert_eq!(call.input.as_ref().unwrap().get(), input);
}

#[test]
fn an_item_gives_the_text_of_its_event() {
    let input = format!("  {} \n", run(5));
    let mut reader = Reader::new(input.as_bytes());
    let Some(Item::Event(found)) = reader.next().unwrap() else {
        panic!()
    };
    assert_eq!(found.text, run(5));
    assert_eq!(
        (found.scan.seq, &*found.scan.event_type),
        (5, "run.started")
    );
    let decoded = found.decode().unwrap();
    assert_eq!(
        decoded.event.body,
        AnyBody::Known(event(Body::RunStarted(None)).body)
    );
    let broken = run(1).replace("r1", "r 1");
    let mut reader = Reader::new(broken.as_bytes());
    let Some(Item::Event(found)) = reader.next().unwrap() else {
        panic!()
    };
    assert!(found.decode().is_err());
}
