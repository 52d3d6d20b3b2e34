//! Inputs that are made to be slow.

use anyhow::Result;
use quipu_redact::Engine;
use serde_json::json;

use super::ours;
use crate::corpus::dice::Dice;
use crate::table::{Goal, Table, median, now};

/// How slow an input may be, in MB/s.
const SLOWEST: f64 = 30.0;

/// How long the one long line is.
const LONG: usize = 100_000_000;

/// A name, and an input of about so many bytes.
type Input = (&'static str, Box<dyn Fn(usize) -> Vec<u8>>);

/// A line of JSON with one text, which is a piece over and over.
fn repeated(name: &'static str, piece: &'static str) -> Input {
    let make = move |bytes: usize| line(&piece.repeat(bytes / piece.len() + 1));
    (name, Box::new(make))
}

fn line(text: &str) -> Vec<u8> {
    let mut line = json!({"type": "user", "message": {"content": text}})
        .to_string()
        .into_bytes();
    line.push(b'\n');
    line
}

fn inputs(engine: &Engine) -> Vec<Input> {
    let words: Vec<String> = engine
        .rules()
        .rules
        .iter()
        .flat_map(|rule| rule.keywords.clone())
        .collect();
    let (spaced, joined) = (words.join(" "), words.concat());
    vec![
        repeated("eyJ over and over", "eyJ"),
        repeated("eyJ- over and over", "eyJ-"),
        repeated("eyJhbGci. over and over", "eyJhbGciOiJIUzI1NiJ9."),
        repeated("-----BEGIN over and over", "-----BEGIN "),
        repeated("keys that never end", "-----BEGIN RSA PRIVATE KEY-----\n"),
        repeated("://a: over and over", "://a:"),
        repeated("a.a.a@ over and over", "a.a.a@"),
        repeated("a. over and over", "a."),
        repeated("AB12CDEF over and over", "AB12CDEF"),
        repeated("AKIA over and over", "AKIA"),
        repeated("ghp_ over and over", "ghp_"),
        repeated("sk- over and over", "sk-"),
        repeated("password= over and over", "password="),
        repeated("password: and spaces", "password:          "),
        repeated("Bearer over and over", "Bearer "),
        repeated("\"password\":\" over and over", "\"password\":\""),
        repeated("quotes", "\""),
        repeated("backslashes", "\\"),
        repeated("line ends", "\n"),
        repeated("1:2: over and over", "1:2:"),
        repeated("1.1. over and over", "1.1."),
        repeated("digits", "4"),
        repeated("digits in groups", "4111 "),
        repeated("+1 (4 over and over", "+1 (4"),
        repeated("paths", "/home/a"),
        repeated("zero-width characters", "a\u{200b}"),
        repeated("control characters", "\u{1}"),
        (
            "every keyword in a row",
            Box::new(move |bytes| line(&spaced.repeat(bytes / spaced.len().max(1) + 1))),
        ),
        (
            "every keyword, joined",
            Box::new(move |bytes| line(&joined.repeat(bytes / joined.len().max(1) + 1))),
        ),
        (
            "one base64",
            Box::new(|bytes| line(&Dice::new(1).opaque(bytes))),
        ),
        ("deep JSON, a line", Box::new(deep_line)),
        ("deep JSON, many lines", Box::new(deep_lines)),
        (
            "raw bytes of \"password\":\"",
            Box::new(|bytes| b"\"password\":\"".repeat(bytes / 12)),
        ),
        ("many keys", Box::new(many_keys)),
        ("no UTF-8", Box::new(|bytes| vec![0xff; bytes])),
    ]
}

fn deep_line(bytes: usize) -> Vec<u8> {
    let half = bytes / 2;
    [b"[".repeat(half), b"]".repeat(half), b"\n".to_vec()].concat()
}

fn deep_lines(bytes: usize) -> Vec<u8> {
    let one = [
        b"{\"a\":".repeat(100),
        b"1".to_vec(),
        b"}".repeat(100),
        b"\n".to_vec(),
    ]
    .concat();
    one.repeat(bytes / one.len() + 1)
}

fn many_keys(bytes: usize) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let mut number = 0;
    while out.len() < bytes {
        out.extend_from_slice(format!("\"token{number}\":{number},").as_bytes());
        number += 1;
    }
    out.pop();
    out.extend_from_slice(b"}\n");
    out
}

/// One line that is as long as a corpus, of ordinary text.
fn long_line() -> Vec<u8> {
    let text = crate::corpus::more(2_000_000, 3);
    line(&text.repeat(LONG / text.len() + 1))
}

/// Each beside the speed on ordinary logs.
pub(super) fn measure(table: &mut Table, engine: &Engine, bytes: usize, normal: f64) -> Result<()> {
    let mut all = inputs(engine);
    all.push(("one line of 100 MB", Box::new(|_| long_line())));
    for (name, make) in all {
        now(&format!("hostile input: {name}"));
        let input = make(bytes);
        // A long input is measured once: it is long enough.
        let rounds = if input.len() > 10 * bytes { 1 } else { 3 };
        let mut speeds = Vec::new();
        for _ in 0..rounds {
            speeds.push(input.len() as f64 / 1e6 / ours::redact(engine, &input)?.cpu.max(1e-9));
        }
        let speed = median(speeds);
        table.row(
            &format!("hostile: {name}, MB/s"),
            &format!("{speed:.0} MB/s"),
            &format!("{normal:.0} MB/s usually"),
            speed,
            Goal::AtLeast(SLOWEST),
        );
    }
    Ok(())
}
