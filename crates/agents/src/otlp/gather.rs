//! Conversations, taken out of a file that holds many.
//!
//! Spans are written when they end, so a file has children before their parents. Here the records of a conversation are
//! written one a line in the order in which they began, parents first.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use quipu_formats::otlp::request::{self, Standing};
use quipu_model::json::{Node, Tape};

use super::LINES;
use crate::{Dialect, Gather, GatherError, Gathered, Part, hash};

/// How long a line, or a document that is spread over lines, may be.
const LONGEST: u64 = 64 << 20;

/// How many conversations a file may have.
const MOST: usize = 100_000;

/// How much of a conversation is put in order. More of it is written in the order of the file.
const HELD: usize = 256 << 20;

/// What has neither a conversation nor a trace, and lines that cannot be read: whose they are is not known either.
const LOOSE: &str = "records without a trace";

/// Takes conversations out of files.
pub(super) struct Batches;

impl Gather for Batches {
    fn parts(&self, from: &Gathered<'_>) -> Result<Vec<Part>, GatherError> {
        let keys = Keys::of(path(from)?)?;
        let mut stamps: BTreeMap<String, u64> = BTreeMap::new();
        let mut too_many = false;
        each(path(from)?, &mut |found| {
            let (key, bytes) = match &found {
                Found::Record(it) => (keys.of_record(it.record), it.record.raw().get().as_bytes()),
                Found::Broken(line) => (LOOSE.to_owned(), *line),
            };
            if stamps.len() >= MOST && !stamps.contains_key(&key) {
                too_many = true;
                return Ok(());
            }
            let stamp = stamps.entry(key).or_default();
            // The order in which records are read does not matter.
            *stamp = stamp.wrapping_add(hash(bytes));
            Ok(())
        })?;
        if too_many {
            let why = format!("a file of more than {MOST} conversations is not read");
            return Err(GatherError::Unknown(why));
        }
        let parts = stamps.into_iter().map(|(id, stamp)| Part {
            id,
            stamp: format!("{stamp:016x}"),
        });
        Ok(parts.collect())
    }

    fn write(
        &self,
        from: &Gathered<'_>,
        part: &str,
        to: &mut dyn Write,
    ) -> Result<(), GatherError> {
        let keys = Keys::of(path(from)?)?;
        let mut held: Vec<(u64, u64, String)> = Vec::new();
        let (mut bytes, mut number) = (0, 0);
        let mut in_order = true;
        each(path(from)?, &mut |found| {
            let standing = match found {
                Found::Record(standing) => standing,
                // As it is: what reads the part counts it, and the archive keeps it.
                Found::Broken(line) if part == LOOSE => {
                    to.write_all(line)?;
                    to.write_all(b"\n")?;
                    return Ok(());
                }
                Found::Broken(_) => return Ok(()),
            };
            if keys.of_record(standing.record) != part {
                return Ok(());
            }
            let line = standing.line();
            if !in_order {
                return put(to, &line);
            }
            bytes += line.len();
            number += 1;
            let began = request::began(standing.signal, standing.record);
            held.push((began, number, line));
            if bytes > HELD {
                in_order = false;
                for (_, _, line) in std::mem::take(&mut held) {
                    put(to, &line)?;
                }
            }
            Ok(())
        })?;
        // Of those that began together the one that was written last is around the others: it ended last.
        held.sort_by_key(|(at, number, _)| (*at, std::cmp::Reverse(*number)));
        for (_, _, line) in held {
            put(to, &line)?;
        }
        Ok(())
    }

    fn dialect(&self) -> Dialect {
        LINES
    }

    /// Visual Studio writes such batches as well, and has a reader of its own.
    fn holds_file(&self, begin: &[u8]) -> bool {
        let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
        let mut bytes = begin.iter().copied().filter(|b| !b.is_ascii_whitespace());
        let first: Vec<u8> = bytes.by_ref().take(18).collect();
        let is_batch = [&b"{\"resourceSpans\":["[..], b"{\"resourceLogs\":["]
            .iter()
            .any(|start| first.starts_with(start));
        is_batch && memchr::memmem::find(begin, b"\"vs-copilot\"").is_none()
    }
}

fn put(to: &mut dyn Write, line: &str) -> Result<(), GatherError> {
    to.write_all(line.as_bytes())?;
    to.write_all(b"\n")?;
    Ok(())
}

fn path<'a>(from: &Gathered<'a>) -> Result<&'a Path, GatherError> {
    match from {
        Gathered::File(path) => Ok(path),
        Gathered::Database(_) | Gathered::Tree(_) => Err(GatherError::Unknown(
            "batches of spans are in a file".to_owned(),
        )),
    }
}

/// Which conversation the spans of a trace are of that do not say so themselves.
struct Keys(HashMap<String, Option<String>>);

impl Keys {
    fn of(path: &Path) -> Result<Self, GatherError> {
        let mut keys: HashMap<String, Option<String>> = HashMap::new();
        each(path, &mut |found| {
            let Found::Record(Standing { record, .. }) = found else {
                return Ok(());
            };
            if let Some(trace) = trace_of(record)
                && let Some(conversation) = request::conversation(record)
            {
                let known = keys
                    .entry(trace)
                    .or_insert_with(|| Some(conversation.clone().into_owned()));
                // A trace of several conversations does not say which.
                if known.as_deref().is_some_and(|known| known != conversation) {
                    *known = None;
                }
            }
            Ok(())
        })?;
        Ok(Self(keys))
    }

    fn of_record(&self, record: Node<'_>) -> String {
        if let Some(conversation) = request::conversation(record) {
            return conversation.into_owned();
        }
        let Some(trace) = trace_of(record) else {
            return LOOSE.to_owned();
        };
        let of_trace = self.0.get(&trace).cloned().flatten();
        of_trace.unwrap_or(trace)
    }
}

/// The trace, even where its id is not written as it should be.
fn trace_of(record: Node<'_>) -> Option<String> {
    let told = || record.text("traceId").filter(|id| !id.is_empty());
    request::trace(record).or_else(|| told().map(std::borrow::Cow::into_owned))
}

/// What stands in a file.
enum Found<'f> {
    /// A span or a log record.
    Record(Standing<'f>),
    /// A line that is not JSON, without its end.
    Broken(&'f [u8]),
}

/// Takes what is found, one at a time.
type Take<'t> = &'t mut dyn FnMut(Found<'_>) -> Result<(), GatherError>;

/// Goes through the records of a file: a batch a line, or one that is spread over lines. A last line without an end is
/// being written, and not told.
fn each(path: &Path, take: Take<'_>) -> Result<(), GatherError> {
    let mut lines = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut line, mut tape, mut is_first) = (Vec::new(), Tape::new(), true);
    loop {
        line.clear();
        let read = (&mut lines).take(LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let is_whole = line.last() == Some(&b'\n');
        if read as u64 == LONGEST && !is_whole {
            let why = format!("a line of more than {LONGEST} bytes is not read");
            return Err(GatherError::Unknown(why));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            continue;
        }
        if let Ok(node) = tape.read(text, 128) {
            records(node, take)?;
        } else {
            // A document that is spread over lines is not a line. Else it is a line that was cut, as when files are
            // rotated, and those behind it are read.
            if is_first && document(&mut lines, &line, take)? {
                return Ok(());
            }
            if is_whole {
                take(Found::Broken(line.trim_ascii_end()))?;
            }
        }
        is_first = false;
        tape.shrink();
    }
}

/// Reads the rest of a file as one document, if it is one. Else it is left where it was.
fn document(
    lines: &mut BufReader<File>,
    first: &[u8],
    take: Take<'_>,
) -> Result<bool, GatherError> {
    let behind = lines.stream_position()?;
    let mut all = first.to_vec();
    lines.take(LONGEST).read_to_end(&mut all)?;
    let text = String::from_utf8_lossy(&all);
    let mut tape = Tape::new();
    if let Ok(node) = tape.read(text.trim_start_matches('\u{feff}'), 128) {
        records(node, take)?;
        return Ok(true);
    }
    lines.seek(SeekFrom::Start(behind))?;
    Ok(false)
}

fn records(node: Node<'_>, take: Take<'_>) -> Result<(), GatherError> {
    let mut result = Ok(());
    request::each(node, |standing| {
        if result.is_ok() {
            result = take(Found::Record(standing));
        }
    });
    result
}
