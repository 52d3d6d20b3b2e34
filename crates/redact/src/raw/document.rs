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
    let mut tape = Tape::new();
    let mut mended = Vec::new();
    while !source.bytes().is_empty() {
        let bytes = source.bytes();
        let mark = if bytes.starts_with(MARK) {
            MARK.len()
        } else {
            0
        };
        let begin = mark + blank(&bytes[mark..]);
        let value = text_of(&bytes[begin..], &mut mended);
        let Ok((_, end)) = tape.read_first(value, MAX_DEPTH) else {
            break;
        };
        let end = begin + end;
        let end = end + blank(&bytes[end..]);
        let analysis = scanner.record(&bytes[..end], Some(begin), &tainted);
        for (id, exposes) in &analysis.taints {
            tainted.add(*id, *exposes);
        }
        streams.push(scanner, sink, &bytes[..end], analysis, source.place)?;
        source.pass(end);
    }
    streams.finish(scanner, sink)?;
    if source.bytes().is_empty() {
        return Ok(());
    }
    sink.summary.broken += 1;
    text(source, scanner, sink, Until::End, true)
}

fn blank(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}
