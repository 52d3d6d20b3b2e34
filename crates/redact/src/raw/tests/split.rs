//! Secrets in pieces: over blocks of a message, and over records of a stream.

use std::fmt::Write as _;

use super::*;

/// Cuts a text into pieces of so many bytes.
fn cut(text: &str, len: usize) -> Vec<&str> {
    text.as_bytes()
        .chunks(len)
        .map(|piece| std::str::from_utf8(piece).unwrap())
        .collect()
}

/// What the pieces under a path say together.
fn said(output: &str, path: &str) -> String {
    let values = output.lines().filter_map(|line| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(value.pointer(path)?.as_str()?.to_owned())
    });
    values.collect()
}

#[test]
fn blocks_of_one_message() {
    let token = token(1);
    let input = format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":\"a\\n{}\"}},{{\"type\":\"text\",\"text\":\"{}\"}},{{\"type\":\"text\",\"text\":\"{} z\"}}]}}\n",
        &token[..9],
        &token[9..20],
        &token[20..]
    );
    assert_eq!(
        left(&input),
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\\n[REDACTED:github]\"},{\"type\":\"text\",\"text\":\"\"},{\"type\":\"text\",\"text\":\" z\"}]}\n"
    );
    // Not over what lies between.
    let apart = format!(
        "{{\"content\":[{{\"text\":\"{}\"}},{{\"image\":1}},{{\"text\":\"{}\"}}]}}\n",
        &token[..9],
        &token[9..]
    );
    assert_eq!(left(&apart), apart);
}

#[test]
fn lines_of_a_notebook() {
    let pem = expand(
        "-----BEGIN PRIVATE KEY-----\n{lines:2}\n-----END PRIVATE KEY-----\n",
        1,
    )
    .unwrap()
    .text;
    let source: Vec<&str> = pem.split_inclusive('\n').collect();
    let input = serde_json::json!({"cells": [{"source": source}]}).to_string();
    let output = left(&input);
    assert_eq!(
        output,
        "{\"cells\":[{\"source\":[\"[REDACTED:private-key]\",\"\",\"\",\"\\n\"]}]}"
    );
}

#[test]
fn pieces_of_every_stream_shape() {
    type Shape = (&'static str, &'static str);
    let token = token(2);
    let text = format!("The token is {token}, keep it.");
    let clean = "The token is [REDACTED:github], keep it.";
    let shapes: [Shape; 7] = [
        (
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"T"}}"#,
            "/delta/text",
        ),
        (
            r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"T"}}]}"#,
            "/choices/0/delta/content",
        ),
        (
            r#"{"type":"content_block_delta","index":1,"delta":{"partial_json":"T"}}"#,
            "/delta/partial_json",
        ),
        (
            r#"{"type":"response.output_text.delta","item_id":"m1","delta":"T"}"#,
            "/delta",
        ),
        (
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"T"}}"#,
            "/content/text",
        ),
        (
            r#"{"kind":"chunk","payload":{"delta":"T"}}"#,
            "/payload/delta",
        ),
        (
            r#"data: {"candidates":[{"content":{"parts":[{"text":"T"}]}}]}"#,
            "/candidates/0/content/parts/0/text",
        ),
    ];
    for (shape, path) in shapes {
        for len in [1, 3, 7, 30] {
            let lines: Vec<String> = cut(&text, len)
                .into_iter()
                .map(|piece| shape.replace('T', piece))
                .collect();
            // A `T` of the text itself is no placeholder of the shape.
            let lines: Vec<String> = lines.into_iter().map(|line| format!("{line}\n")).collect();
            let input = lines.concat();
            if said(&input, path) != text {
                continue;
            }
            let done = run(&engine(), &options(), input.as_bytes());
            assert_eq!(said(done.text(), path), clean, "{shape} {len}");
            assert_eq!(done.findings.len(), 1);
            assert_eq!(done.text().lines().count(), input.lines().count());
        }
    }
}

#[test]
fn streams_that_lie_between_each_other() {
    let (one, two) = (token(3), token(4));
    let mut input = String::new();
    for (left, right) in cut(&one, 5).into_iter().zip(cut(&two, 5)) {
        for (index, piece) in [left, right].into_iter().enumerate() {
            writeln!(
                input,
                "{{\"type\":\"d_delta\",\"index\":{index},\"delta\":{{\"text\":\"{piece}\"}}}}\nping\n"
            )
            .unwrap();
        }
    }
    let output = left_lines(&input);
    assert_eq!(
        said(&output, "/delta/text"),
        "[REDACTED:github][REDACTED:github#2]"
    );
    assert_eq!(output.lines().count(), input.lines().count());
}

#[test]
fn a_long_stream_is_not_held_for_ever() {
    // A token at every place of a window, and more records than are held.
    let mut input = String::new();
    let mut expected = String::new();
    for round in 0..120 {
        let token = token(100 + round);
        let text = format!(
            "{} {token} ",
            "x".repeat(usize::try_from(round % 7).unwrap())
        );
        for piece in cut(&text, 4) {
            writeln!(input, "{{\"delta\":{{\"text\":\"{piece}\"}}}}").unwrap();
        }
        let number = if round == 0 {
            String::new()
        } else {
            format!("#{}", round + 1)
        };
        expected.push_str(&text.replace(&token, &format!("[REDACTED:github{number}]")));
    }
    let output = left(&input);
    assert_eq!(said(&output, "/delta/text"), expected);
}

#[test]
fn other_records_keep_their_place() {
    let token = token(5);
    let input = format!(
        "{{\"delta\":{{\"text\":\"{}\"}}}}\n{}{{\"delta\":{{\"text\":\"{}\"}}}}\n",
        &token[..12],
        "{\"other\":1}\n".repeat(40),
        &token[12..]
    );
    // Too far apart: nothing is held for that long, and nothing is moved.
    assert_eq!(left(&input), input);
}
