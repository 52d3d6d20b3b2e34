//! Text of any length, in pieces that overlap.

use std::io;

use super::join::floor;
use super::render::Sink;
use super::scan::{Analysis, Scanner};
use super::source::Source;

/// How much is looked at together.
const WINDOW: usize = 1 << 20;

/// What is longer than this and lies across the end of a window may be missed.
const OVERLAP: usize = 64 << 10;

/// How much of what was written is looked at once more, for what a finding depends on.
const BEHIND: usize = 4 << 10;

/// Where the text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// With the input.
    End,
    /// With the line.
    Line,
}

/// Looks at the text that follows. What was found in it is written as it goes, so that no more than a window is held.
/// `json` says that it should be JSON, and cannot be read as such.
pub(super) fn text(
    source: &mut Source<'_>,
    scanner: &mut Scanner<'_>,
    sink: &mut Sink<'_>,
    until: Until,
    json: bool,
) -> io::Result<()> {
    let mut behind: Vec<u8> = Vec::new();
    // The end of the line was looked for up to here.
    let mut looked = 0;
    loop {
        let end = loop {
            let bytes = source.bytes();
            let line = match until {
                Until::Line => memchr::memchr(b'\n', &bytes[looked..]).map(|at| looked + at + 1),
                Until::End => None,
            };
            looked = bytes.len();
            if line.is_some() || source.ended() {
                break Some(line.unwrap_or(bytes.len()));
            }
            if bytes.len() >= WINDOW {
                break None;
            }
            source.fill()?;
        };
        let window = &source.bytes()[..end.unwrap_or_else(|| source.bytes().len())];
        let mut text = Vec::with_capacity(behind.len() + window.len());
        text.extend_from_slice(&behind);
        text.extend_from_slice(window);
        let analysis = scanner.plain(&text, json);
        let (cut, analysis) = divide(&text, behind.len(), end.is_some(), analysis);
        sink.record(&text[behind.len()..cut], &analysis, source.place)?;
        let passed = cut - behind.len();
        source.pass(passed);
        looked = looked.saturating_sub(passed);
        if end.is_some() {
            return Ok(());
        }
        text.truncate(cut);
        behind = text.split_off(cut.saturating_sub(BEHIND));
    }
}

/// What of a window is written, and what is found in that.
fn divide(text: &[u8], behind: usize, last: bool, analysis: Analysis) -> (usize, Analysis) {
    let mut cut = text.len();
    if !last {
        cut = cut.saturating_sub(OVERLAP).max(behind);
        cut = match memchr::memrchr(b'\n', &text[behind..cut]) {
            Some(line) => behind + line + 1,
            // In the middle of a line, but not of a character.
            None => match std::str::from_utf8(text) {
                Ok(text) => floor(text, cut).max(behind),
                Err(_) => cut,
            },
        };
    }
    let mut edits = Vec::new();
    for mut edit in analysis.edits {
        if edit.raw.end <= behind || edit.raw.start >= cut {
            continue;
        }
        edit.raw.start = edit.raw.start.max(behind);
        cut = cut.max(edit.raw.end);
        edit.raw = edit.raw.start - behind..edit.raw.end - behind;
        edits.push(edit);
    }
    (cut, Analysis { edits, ..analysis })
}
