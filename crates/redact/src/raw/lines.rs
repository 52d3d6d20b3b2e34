//! Records a line each.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::render::{RecordStart, Sink, advance};
use super::scan::{Analysis, Scanner};
use super::source::{CHUNK, Source};
use super::stream::Streams;
use super::taint::Tainted;
use super::text::{Until, text};

/// Lines that are no JSON are looked at together, as far as this.
const LONGEST_TEXT: usize = 64 << 10;

/// What a thread takes at once.
const SHARE: usize = 64 << 10;

/// One record: a line of JSON, or lines of text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    /// With the end of the line.
    range: Range<usize>,
    /// Where in it JSON begins.
    json: Option<usize>,
}

/// Goes over an input line by line.
pub(super) fn lines(
    source: &mut Source<'_>,
    scanners: &mut [Scanner<'_>],
    sink: &mut Sink<'_>,
    max_line: usize,
) -> io::Result<()> {
    let mut tainted = Tainted::default();
    let mut streams = Streams::default();
    let batch = if scanners.len() > 1 {
        CHUNK * scanners.len()
    } else {
        1
    };
    // The end of the first line was looked for up to here.
    let mut looked = 0;
    loop {
        if !source.ended() {
            source.fill()?;
            source.fill_to(batch)?;
        }
        let bytes = source.bytes();
        let whole = if source.ended() {
            Some(bytes.len())
        } else {
            memchr::memrchr(b'\n', &bytes[looked..]).map(|at| looked + at + 1)
        };
        let Some(whole) = whole else {
            looked = bytes.len();
            if looked > max_line {
                streams.finish(&mut scanners[0], sink)?;
                sink.summary.pieced += 1;
                text(source, &mut scanners[0], sink, Until::Line, true)?;
                looked = 0;
            }
            continue;
        };
        let mut units = units(&bytes[..whole]);
        let mut end = whole;
        // Text that goes on in what is not read yet is looked at with it.
        if !source.ended()
            && let Some(last) = units.last()
            && last.json.is_none()
            && last.range.len() < LONGEST_TEXT / 2
        {
            end = last.range.start;
            units.pop();
        }
        let mut ahead = analyse(scanners, &bytes[..end], &units).into_iter();
        let mut place = source.place;
        for unit in units {
            let record = &bytes[unit.range.clone()];
            // What earlier records tell was not known where it was looked at ahead of them.
            let analysis = ahead
                .next()
                .filter(|ahead| ahead.refs.iter().all(|id| tainted.get(*id).is_none()))
                .unwrap_or_else(|| scanners[0].record(record, unit.json, &tainted));
            for (id, exposes) in &analysis.taints {
                tainted.add(*id, *exposes);
            }
            sink.summary.broken += u64::from(analysis.broken);
            streams.push(&mut scanners[0], sink, record, analysis, place)?;
            match unit.json {
                Some(_) => pass_line(&mut place, record),
                None => advance(&mut place, record),
            }
        }
        source.pass_to(end, place);
        looked = 0;
        if source.ended() {
            return streams.finish(&mut scanners[0], sink);
        }
    }
}

/// Passes one line.
fn pass_line(place: &mut RecordStart, line: &[u8]) {
    place.offset += line.len() as u64;
    place.column += line.len() as u64;
    if line.ends_with(b"\n") {
        place.line += 1;
        place.column = 0;
    }
}

/// Looks at records ahead, on as many threads as there are scanners; at none where one thread may as well take them in turn.
fn analyse(scanners: &mut [Scanner<'_>], bytes: &[u8], units: &[Unit]) -> Vec<Analysis> {
    if scanners.len() == 1 || bytes.len() < 2 * SHARE {
        return Vec::new();
    }
    let none = Tainted::default();
    let one = |scanner: &mut Scanner<'_>, unit: &Unit| {
        scanner.record(&bytes[unit.range.clone()], unit.json, &none)
    };
    let shares = shares(units);
    let next = AtomicUsize::new(0);
    let work = |scanner: &mut Scanner<'_>| {
        let mut done = Vec::new();
        while let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
            let all = units[share.clone()]
                .iter()
                .map(|unit| one(scanner, unit))
                .collect();
            done.push((share.start, all));
        }
        done
    };
    let mut done: Vec<(usize, Vec<Analysis>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = scanners
            .iter_mut()
            .map(|scanner| scope.spawn(|| work(scanner)))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    done.sort_by_key(|(start, _)| *start);
    done.into_iter().flat_map(|(_, all)| all).collect()
}

/// Runs of records of about the same length.
fn shares(units: &[Unit]) -> Vec<Range<usize>> {
    let mut shares = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, unit) in units.iter().enumerate() {
        bytes += unit.range.len();
        if bytes >= SHARE {
            shares.push(from..at + 1);
            (from, bytes) = (at + 1, 0);
        }
    }
    if from < units.len() {
        shares.push(from..units.len());
    }
    shares
}

/// Divides lines into records.
fn units(bytes: &[u8]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut from = 0;
    while from < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |at| from + at + 1);
        let json = json_at(&bytes[from..end]);
        match units.last_mut() {
            Some(last)
                if json.is_none() && last.json.is_none() && last.range.len() < LONGEST_TEXT =>
            {
                last.range.end = end;
            }
            _ => units.push(Unit {
                range: from..end,
                json,
            }),
        }
        from = end;
    }
    units
}

/// Where JSON begins in a line that looks like it: behind a byte order mark, or behind `data:` in a stream of events.
pub(super) fn json_at(line: &[u8]) -> Option<usize> {
    let space = |from: usize| {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        from + line[from..].iter().take_while(blank).count()
    };
    let mut at = if line.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    at = space(at);
    if line[at..].starts_with(b"data:") {
        at = space(at + 5);
    }
    let rest = line[at..].trim_ascii_end();
    let json = match rest {
        [b'{' | b'[', ..] | [b'"', .., b'"'] => true,
        [b'-' | b'0'..=b'9', ..] => {
            let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
            rest.len() < 64 && rest.iter().all(part)
        }
        _ => false,
    };
    json.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_are_one_record() {
        let all = units(b"{\"a\":1}\nx\n\ny\n[1]\r\nlast");
        let ranges: Vec<_> = all
            .iter()
            .map(|unit| (unit.range.clone(), unit.json))
            .collect();
        assert_eq!(
            ranges,
            [
                (0..8, Some(0)),
                (8..13, None),
                (13..18, Some(0)),
                (18..22, None)
            ]
        );
    }

    #[test]
    fn what_looks_like_json() {
        for (line, at) in [
            ("{", Some(0)),
            ("  [1]", Some(2)),
            ("\u{feff}{}", Some(3)),
            ("data: {}", Some(6)),
            ("\"text\"\n", Some(0)),
            ("4111\r\n", Some(0)),
            ("2026-01-01 x", None),
            ("\"text", None),
            ("", None),
            ("event: x", None),
        ] {
            assert_eq!(json_at(line.as_bytes()), at, "{line}");
        }
    }
}
