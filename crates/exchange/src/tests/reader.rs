//! What the reader makes of files that are not as they should be.

use std::io;

use quipu_model::Body;

use super::{event, known, line, read_one, run};
use crate::lines::Limits;
use crate::{Item, Reader};

/// All of an input: `line:offset seq type [warnings]` or `line:offset bad: why`.
pub(super) fn read_with(input: &[u8], limits: Limits) -> Vec<String> {
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
pub(super) fn check(input: impl AsRef<[u8]>, expected: &[&str]) {
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

/// Tools print events. Wherever a line that holds some is cut off, none of them is taken for an event of the file.
#[test]
fn an_event_inside_a_line_that_is_cut_off_anywhere_is_not_an_event() {
    let (other, next) = (run(9).replace("r1", "r2"), run(3));
    for payload in [
        format!(r#"{{"output":{{"events":[{other},{next},{next}]}}}}"#),
        format!(r#"{{"output":{next}}}"#),
        format!(r#"{{"a":"\"[","output":[[{{"b":{next}}},{next}]]}}"#),
    ] {
        let whole = line(2, "tool.result", &payload);
        for cut in 1..whole.len() {
            check(
                format!("{}\n{}", run(1), &whole[..cut]),
                &[
                    "1:0 1 run.started",
                    "2:120 bad: cut off: the file ends in the middle of this line",
                ],
            );
            // The next event was written right behind it, by a writer that did not look.
            let glued = format!("{}\n{}{}\n", run(1), &whole[..cut], run(4));
            let read = read_with(glued.as_bytes(), Limits::default());
            assert_eq!(read.len(), 3, "cut at {cut}: {read:#?}");
            assert!(
                read[2].contains(" 4 run.started "),
                "cut at {cut}: {read:#?}"
            );
        }
    }
}

#[test]
fn an_event_of_another_run_behind_a_torn_one_is_not_salvaged() {
    let torn = &run(2)[..40];
    for (other, found) in [
        (run(3), 3),
        (run(1), 3),
        (run(3).replace("r1", "r2"), 2),
        (run(5).replace("r1", "r2"), 2),
    ] {
        let input = format!("{}\n{torn}{other}\n", run(1));
        let read = read_with(input.as_bytes(), Limits::default());
        assert_eq!(read.len(), found, "{read:#?}");
    }
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

#[test]
fn items_at_the_end_may_go_on_later() {
    for (input, unterminated) in [
        (run(1) + "\n", false),
        (run(1), true),
        (run(1)[..50].to_owned(), true),
        ("oops\n".to_owned(), false),
    ] {
        let mut reader = Reader::new(input.as_bytes());
        let item = reader.next().unwrap().unwrap();
        assert_eq!(item.is_unterminated(), unterminated, "{input}");
    }
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
    assert_eq!(decoded.event.body, event(Body::RunStarted(None)).body);
    let broken = run(1).replace("r1", "r 1");
    let mut reader = Reader::new(broken.as_bytes());
    let Some(Item::Event(found)) = reader.next().unwrap() else {
        panic!()
    };
    assert!(found.decode().is_err());
}
