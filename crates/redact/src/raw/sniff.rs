//! What an input is, by how it begins.

use std::io;

use quipu_model::json::Tape;

use super::Shape;
use super::lines::json_at;
use super::scan::{MAX_DEPTH, text_of};
use super::source::Source;

/// How much is looked at.
const HEAD: usize = 64 << 10;

/// Finds out what an input is.
pub(super) fn shape(source: &mut Source<'_>) -> io::Result<Shape> {
    source.fill_to(HEAD)?;
    let bytes = source.bytes();
    let head = &bytes[..bytes.len().min(HEAD)];
    Ok(of(head, head.len() == bytes.len() && source.ended()))
}

fn of(head: &[u8], whole: bool) -> Shape {
    let mut tape = Tape::new();
    let mut mended = Vec::new();
    let mut reads = |line: &[u8]| {
        let Some(at) = json_at(line) else {
            return false;
        };
        let container = matches!(line[at], b'{' | b'[');
        container
            && tape
                .read(text_of(&line[at..], &mut mended), MAX_DEPTH)
                .is_ok()
    };
    let mut lines = head
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    let Some(first) = lines.next() else {
        return Shape::Text;
    };
    let cut = !whole && !first.ends_with(b"\n");
    let begins = json_at(first).is_some_and(|at| matches!(first[at], b'{' | b'['));
    if reads(first) || begins && cut {
        return Shape::Jsonl;
    }
    // Pretty-printed, one would think, unless a line below is a record of its own: the first may be torn.
    let record = |line: &[u8]| line.starts_with(b"{\"");
    if begins {
        // What is torn does not end where a writer of documents ends a line.
        let broken_off = !first.trim_ascii_end().ends_with(b"[")
            && !first.trim_ascii_end().ends_with(b"{")
            && !first.trim_ascii_end().ends_with(b",");
        let torn = broken_off && record(first) && lines.any(|line| record(line) && reads(line));
        return if torn { Shape::Jsonl } else { Shape::Json };
    }
    if lines.any(reads) {
        Shape::Jsonl
    } else {
        Shape::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        for (head, shape) in [
            ("", Shape::Text),
            ("plain text\n", Shape::Text),
            ("{\"a\":1}\n{\"b\":2}\n", Shape::Jsonl),
            ("\u{feff}{\"a\":1}\n", Shape::Jsonl),
            ("\n{\"a\":1}", Shape::Jsonl),
            ("{\n  \"a\": 1\n}\n", Shape::Json),
            ("[\n{\"a\":1}\n]", Shape::Json),
            (
                "{\"v\":1,\"events\":[\n{\"a\":1},\n{\"b\":2}\n]}",
                Shape::Json,
            ),
            ("{\"torn\n{\"b\":2}\n", Shape::Jsonl),
            ("event: x\ndata: {\"b\":2}\n", Shape::Jsonl),
            ("log line\n{\"b\":2}\n", Shape::Jsonl),
            ("[INFO] text\n", Shape::Json),
        ] {
            assert_eq!(of(head.as_bytes(), true), shape, "{head}");
        }
        assert_eq!(of(b"{\"a\":\"long", false), Shape::Jsonl);
    }
}
