//! The format for programs in other languages: standard input to standard output.

use std::io::{self, Read as _, Write as _};

use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::record::{At, Field, Record};
use quipu_formats::agentlog::{Canon, CanonError, CanonProblem, Item, LIMITS, Reader};
use quipu_model::json::{Cursor, Kind, Node, SyntaxError, Tape};

use crate::error::{CommandError, Exit, Result, io_error};
use crate::terminal::{out, say};

/// A trace to an array of its records, each as it stands on its line.
pub(crate) fn parse(limits: Limits) -> Result<Exit> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut reader = Reader::with_limits(io::stdin().lock(), limits);
    let mut first = true;
    loop {
        let item = reader.next();
        match item.map_err(|error| too_large(error, limits))? {
            None => break,
            Some(Item::Bad { at, fault, .. }) => {
                let error = anyhow::anyhow!("line {}: {fault}", at.line);
                return Err(CommandError::new(Exit::Data, error));
            }
            Some(Item::Record(record)) => {
                envelope(&record).map_err(|why| data(format!("line {}: {why}", record.at.line)))?;
                out.write_all(if first { b"[" } else { b",\n" })?;
                out.write_all(record.text().as_bytes())?;
                first = false;
            }
        }
    }
    out.write_all(if first { b"[]\n" } else { b"]\n" })?;
    out.flush()?;
    Ok(Exit::Done)
}

fn too_large(error: io::Error, limits: Limits) -> CommandError {
    if error.kind() == io::ErrorKind::FileTooLarge {
        let error = anyhow::anyhow!("the trace is larger than {} bytes", limits.max_total_bytes);
        return CommandError::new(Exit::Data, error).hint("--max-total allows more");
    }
    io_error("could not read standard input")(error)
}

/// Whether a record has what other programs need to read it at all. What the fields hold is not judged, and a
/// missing parent is taken for none, as the reference implementation does.
fn envelope(record: &Record<'_>) -> std::result::Result<(), String> {
    for field in [Field::Version, Field::Id, Field::Kind, Field::Ts] {
        let value = record.get(field);
        if value.is_none_or(|value| value.kind() != Kind::String) {
            return Err(format!("no record: `{}` is no string", field.as_str()));
        }
    }
    match record.payload() {
        Some(_) => Ok(()),
        None => Err("no record: `payload` is not there".to_owned()),
    }
}

/// An array of records to a trace.
pub(crate) fn write() -> Result<Exit> {
    let text = input()?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut tape, mut line, mut n) = (Tape::new(), Vec::new(), 0);
    let mut array = Cursor::new(&text, LIMITS.max_depth);
    if array.peek() != Some(b'[') {
        return Err(data("line 1: not a list of records"));
    }
    // A record at a time: there may be many.
    let done = array.list(|array| {
        n += 1;
        let value = array.value()?;
        let begin = array.offset() - value.get().len();
        let record = tape
            .read(value.get(), LIMITS.max_depth)
            .map_err(|error| error.to_string())
            .and_then(|node| Record::read(node, At::default()).map_err(|error| error.to_string()))
            .and_then(|record| envelope(&record).map(|()| record))
            .map_err(|why| at_line(&text, begin, &format!("record {n}: {why}")))?;
        line.clear();
        write_line(&record, &mut line);
        out.write_all(&line).map_err(CommandError::from)?;
        Ok(())
    });
    match done.and_then(|()| Ok(array.end()?)) {
        Ok(()) => {}
        Err(Wrong::Syntax(error)) => return Err(syntax(&text, &error)),
        Err(Wrong::Record(error)) => return Err(error),
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What can be wrong with an array of records: the array, or one of them.
enum Wrong {
    Syntax(SyntaxError),
    Record(CommandError),
}

impl From<SyntaxError> for Wrong {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl From<CommandError> for Wrong {
    fn from(error: CommandError) -> Self {
        Self::Record(error)
    }
}

/// A record as a line: the envelope in its order, then what the envelope does not have.
fn write_line(record: &Record<'_>, out: &mut Vec<u8>) {
    let mut first = true;
    let mut field = |key: &str, value: Node<'_>| {
        out.push(if first { b'{' } else { b',' });
        first = false;
        out.extend_from_slice(key.as_bytes());
        out.push(b':');
        compact(value.raw().get(), out);
    };
    for name in Field::ALL {
        if let Some(value) = record.get(name) {
            field(&format!("\"{}\"", name.as_str()), value);
        }
    }
    for (key, value) in record.extra() {
        field(key.raw().get(), value);
    }
    out.extend_from_slice(if first { b"{}\n" } else { b"}\n" });
}

/// Leaves out the white space between tokens. Tokens stay as they are, so that no id changes.
fn compact(json: &str, out: &mut Vec<u8>) {
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json.as_bytes() {
        if !in_string && byte.is_ascii_whitespace() {
            continue;
        }
        out.push(byte);
        in_string ^= byte == b'"' && !escaped;
        escaped = in_string && byte == b'\\' && !escaped;
    }
}

/// A value to its canonical form.
pub(crate) fn canon() -> Result<Exit> {
    let text = input()?;
    let mut tape = Tape::new();
    let value = value(&text, &mut tape)?;
    let mut bytes = Vec::new();
    by_canon(&text, |canon| {
        bytes.clear();
        canon.write(value, &mut bytes)
    })?;
    let mut out = io::stdout().lock();
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(Exit::Done)
}

/// A payload to its id.
pub(crate) fn id() -> Result<Exit> {
    let text = input()?;
    let mut tape = Tape::new();
    let value = value(&text, &mut tape)?;
    let id = by_canon(&text, |canon| canon.id(value))?;
    let mut out = out();
    writeln!(out, "{id}")?;
    out.flush()?;
    Ok(Exit::Done)
}

/// Does as the reference implementation does with keys that are there twice, and says so.
fn by_canon<T>(
    text: &str,
    mut make: impl FnMut(&mut Canon) -> std::result::Result<T, CanonError>,
) -> Result<T> {
    let error = |error: &CanonError| at_line(text, error.offset, &error.what.to_string());
    match make(&mut Canon::new()) {
        Ok(made) => return Ok(made),
        Err(twice) if matches!(twice.what, CanonProblem::DuplicateKey(_)) => {
            let why = error(&twice);
            say(&format!(
                "warning: {why}, which the format forbids; the last counts"
            ));
        }
        Err(other) => return Err(error(&other)),
    }
    make(&mut Canon::lenient()).map_err(|found| error(&found))
}

fn input() -> Result<String> {
    let mut bytes = Vec::new();
    let limit = LIMITS.max_total_bytes;
    io::stdin()
        .lock()
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(io_error("could not read standard input"))?;
    if bytes.len() as u64 > limit {
        return Err(data(format!("more than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let (line, column) = place(&error.as_bytes()[..valid]);
        data(format!("line {line}, column {column}: not UTF-8"))
    })
}

fn value<'a>(text: &'a str, tape: &'a mut Tape) -> Result<Node<'a>> {
    tape.read(text, LIMITS.max_depth)
        .map_err(|error| syntax(text, &error))
}

fn syntax(text: &str, error: &SyntaxError) -> CommandError {
    at_line(text, error.offset, &error.what.to_string())
}

fn data(what: impl Into<String>) -> CommandError {
    CommandError::new(Exit::Data, anyhow::Error::msg(what.into()))
}

fn at_line(text: &str, offset: usize, what: &str) -> CommandError {
    let (line, column) = place(&text.as_bytes()[..offset.min(text.len())]);
    data(format!("line {line}, column {column}: {what}"))
}

/// The line and the column, in bytes, of what comes behind these bytes.
fn place(before: &[u8]) -> (usize, usize) {
    let line = before.split(|byte| *byte == b'\n').count();
    let begin = before.iter().rposition(|byte| *byte == b'\n');
    (line, before.len() - begin.map_or(0, |begin| begin + 1) + 1)
}
