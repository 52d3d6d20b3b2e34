//! JSON over any number of lines.

use std::io;

use quipu_model::json::Tape;

use super::render::Sink;
use super::scan::{MAX_DEPTH, Scanner, text_of};
use super::source::Source;
use super::stream::Streams;
use super::taint::Tainted;
use super::text::{Until, text};

/// A byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Goes over an input that is one JSON value, or several one after the other.
pub(super) fn document(
    source: &mut Source<'_>,
    scanner: &mut Scanner<'_>,
    sink: &mut Sink<'_>,
    max_line: usize,
) -> io::Result<()> {
    source.fill_to(max_line.saturating_add(1))?;
    if !source.ended() {
        sink.summary.pieced += 1;
        return text(source, scanner, sink, Until::End, true);
    }
    let mut streams = Streams::default();
    let mut tainted = Tainted::default();
    for Value { begin, len } in values(source.bytes()) {
        let record = &source.bytes()[..len];
        let analysis = scanner.record(record, Some(begin), &tainted);
        for (id, exposes) in &analysis.taints {
            tainted.add(*id, *exposes);
        }
        streams.push(scanner, sink, record, analysis, source.place)?;
        source.pass(len);
    }
    streams.finish(scanner, sink)?;
    if source.bytes().is_empty() {
        return Ok(());
    }
    sink.summary.broken += 1;
    text(source, scanner, sink, Until::End, true)
}

/// One JSON value, with the white space around it.
struct Value {
    /// Where the value itself begins.
    begin: usize,
    len: usize,
}

/// The values that an input begins with. Bytes that are no UTF-8 are looked for once, not for each of them.
fn values(bytes: &[u8]) -> Vec<Value> {
    let mut mended = Vec::new();
    let text = text_of(bytes, &mut mended);
    let mut tape = Tape::new();
    let mut values = Vec::new();
    let mut at = 0;
    let mut begin = if bytes.starts_with(MARK) {
        MARK.len()
    } else {
        0
    };
    begin += blank(&bytes[begin..]);
    while let Ok((_, len)) = tape.read_first(&text[begin..], MAX_DEPTH) {
        let end = begin + len;
        let end = end + blank(&bytes[end..]);
        values.push(Value {
            begin: begin - at,
            len: end - at,
        });
        (at, begin) = (end, end);
    }
    values
}

fn blank(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}
