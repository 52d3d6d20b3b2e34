//! `quipu log`

mod graph;
mod summary;

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use anstyle::Style;
use quipu_api::trace::{LogEnd, LogRecord};
use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::record::Field;
use quipu_formats::agentlog::{Fault, Item, Kind, LIMITS, Reader, Record};
use quipu_store::traces::{TraceError, Traces};

use self::graph::{Drawn, Family, Painter};
use super::convert;
use crate::args::Log;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate;
use crate::redaction::masked;
use crate::terminal::{
    BOLD, CYAN, DIM, Drawing, GREEN, RED, YELLOW, columns, count, fit, out, say,
};
use crate::{json as documents, when};

/// How many digits of an id are shown.
const SHORT: usize = 12;

pub(crate) fn run(args: &Log, place: &locate::HomePlace) -> Result<Exit> {
    for kind in &args.kinds {
        if Kind::from_word(kind).is_none() {
            say(&format!("note: {kind:?} is not a known kind of record"));
        }
    }
    let (mut file, about) = open(&args.id, place)?;
    let refused = || io_error(format!("could not read {about}"));
    // Read twice: only the end of a file tells what nothing follows any more.
    let family = Family::read(&mut reader(&file)).map_err(refused())?;
    file.rewind().map_err(refused())?;
    let shown = if args.json || args.jsonl {
        write_json(args, &family, &mut reader(&file))
    } else {
        write_graph(args, &family, &mut reader(&file))
    }?;
    if shown.left_out > 0 && !args.json && !args.jsonl {
        say(&format!("{} more", count(shown.left_out, "record")));
    }
    if shown.bad > 0 {
        let error = anyhow::anyhow!("{} of {about} could not be read", count(shown.bad, "line"));
        return Err(CommandError::new(Exit::Data, error).hint("`quipu verify` tells more"));
    }
    Ok(Exit::Done)
}

fn reader(file: &File) -> Reader<&File> {
    // What is only looked at may be larger than what is taken in.
    let limits = Limits {
        max_total_bytes: u64::MAX,
        ..LIMITS
    };
    Reader::with_limits(file, limits)
}

/// The trace that is meant, and what it is called.
fn open(argument: &str, place: &locate::HomePlace) -> Result<(File, String)> {
    let path = Path::new(argument);
    let is_path = argument.contains('/') || path.extension().is_some_and(|it| it == "agentlog");
    if path.is_file() && (is_path || begins_as_trace(path)) && !is_other(path) {
        return open_file(path);
    }
    if is_path && !path.exists() {
        let error = anyhow::anyhow!("there is no file {argument}");
        return Err(CommandError::new(Exit::Data, error));
    }
    if let Some(path) = kept(argument, place)? {
        return open_file(&path);
    }
    let meant = place.meant(argument)?;
    let mut file = tempfile::tempfile()?;
    let mut writer = BufWriter::new(&mut file);
    convert::trace::project(meant, None, &mut writer)?;
    writer.flush()?;
    drop(writer);
    file.rewind()?;
    Ok((file, argument.to_owned()))
}

fn open_file(path: &Path) -> Result<(File, String)> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(io_error(format!("could not open {name}")))?;
    Ok((file, name))
}

/// A trace of the home, by its id or the beginning of it.
fn kept(argument: &str, place: &locate::HomePlace) -> Result<Option<PathBuf>> {
    let digits = argument.strip_prefix("sha256:").unwrap_or(argument);
    let names_one = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'~');
    if !names_one {
        return Ok(None);
    }
    let refused = |error| CommandError::new(Exit::Environment, anyhow::Error::new(error));
    let Some(traces) = Traces::open_existing(&place.home()?).map_err(refused)? else {
        return Ok(None);
    };
    match traces.find(argument) {
        Ok(row) => Ok(Some(traces.path(&row))),
        Err(TraceError::None(_)) => Ok(None),
        Err(TraceError::Several { argument, names }) => {
            let error = anyhow::anyhow!("{argument:?} is the beginning of several traces");
            Err(CommandError::new(Exit::Data, error)
                .details(names)
                .hint("give more of the id"))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Whether the first line of a file is a record.
fn begins_as_trace(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    matches!(Reader::new(file).next(), Ok(Some(Item::Record(record))) if record.id().is_some())
}

/// Whether a file is a transcript or an agent's log, whatever it is called.
fn is_other(path: &Path) -> bool {
    let named = path.extension().is_some_and(|it| it == "agentlog");
    !named && !begins_as_trace(path)
}

/// What was written.
#[derive(Default)]
struct Shown {
    bad: u64,
    left_out: u64,
}

impl Shown {
    fn complain(&mut self, line: u64, fault: &Fault) {
        const SAID: u64 = 20;
        self.bad += 1;
        if self.bad <= SAID {
            say(&format!("line {line}: {fault}"));
        }
    }
}

/// Hands over the records that are wanted.
fn each<R: Read>(
    args: &Log,
    reader: &mut Reader<R>,
    mut every: impl FnMut(u32, &Record<'_>, bool) -> io::Result<()>,
) -> Result<Shown> {
    let (mut shown, mut row, mut written) = (Shown::default(), 0_u32, 0);
    while let Some(item) = reader.next()? {
        let record = match item {
            Item::Record(record) => record,
            Item::Bad { at, fault, .. } => {
                shown.complain(at.line, &fault);
                continue;
            }
        };
        let kind = record.get(Field::Kind).and_then(|kind| kind.as_str());
        let kind = kind.unwrap_or_default();
        let is_wanted = args.kinds.is_empty() || args.kinds.iter().any(|it| *it == kind);
        let fits = args.limit == 0 || written < args.limit;
        shown.left_out += u64::from(is_wanted && !fits);
        written += u64::from(is_wanted && fits);
        every(row, &record, is_wanted && fits)?;
        row = row.saturating_add(1);
    }
    Ok(shown)
}

fn write_graph<R: Read>(args: &Log, family: &Family, reader: &mut Reader<R>) -> Result<Shown> {
    let mut out = out();
    let width = columns();
    let unicode = Drawing::for_locale().bar.starts_with('│');
    let mut painter = Painter::new(family, unicode);
    let shown = each(args, reader, |row, record, is_wanted| {
        let drawn = painter.row(row);
        if !is_wanted {
            return Ok(());
        }
        // Lines between records that are not shown would lead nowhere.
        let drawn = if args.kinds.is_empty() {
            Some(drawn)
        } else {
            None
        };
        line(
            &mut out,
            record,
            drawn.as_ref(),
            family.is_repeated(row),
            width,
        )
    })?;
    out.flush()?;
    Ok(shown)
}

fn line(
    out: &mut impl Write,
    record: &Record<'_>,
    drawn: Option<&Drawn>,
    again: bool,
    width: usize,
) -> io::Result<()> {
    let kind = record.get(Field::Kind).and_then(|kind| kind.as_str());
    let kind = fit(&masked(&kind.unwrap_or_default()), 20);
    let style = style(&kind);
    let graph = drawn.map_or("", |drawn| drawn.text.as_str());
    let gap = if graph.is_empty() { "" } else { " " };
    let time = record
        .ts()
        .map_or_else(|| when::UNDATED.to_owned(), when::local_time);
    let mark = if again { " (again)" } else { "" };
    let used = drawn.map_or(0, |drawn| drawn.width + 1)
        + SHORT
        + 1
        + kind.len().max(13)
        + 1
        + time.len()
        + 1;
    let room = width.saturating_sub(used + mark.len()).max(16);
    let said = fit(&summary::of(record).text, room);
    let id = short(record);
    writeln!(
        out,
        "{graph}{gap}{YELLOW}{id}{YELLOW:#} {style}{kind:<13}{style:#} {DIM}{time}{DIM:#} {said}{DIM}{mark}{DIM:#}"
    )
}

/// The beginning of a record's id; question marks where it has none.
fn short(record: &Record<'_>) -> String {
    match record.id() {
        Some(id) => id.hex()[..SHORT].to_owned(),
        None => "?".repeat(SHORT),
    }
}

fn style(kind: &str) -> Style {
    match Kind::from_word(kind) {
        Some(Kind::Metadata | Kind::ReplaySummary) => BOLD,
        Some(Kind::ChatRequest | Kind::ChatResponse) => CYAN,
        Some(Kind::ToolCall | Kind::ToolResult) => GREEN,
        Some(Kind::Error) => RED,
        _ => DIM,
    }
}

fn write_json<R: Read>(args: &Log, family: &Family, reader: &mut Reader<R>) -> Result<Shown> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut before = "";
    if args.json {
        write!(out, "{{\"records\":[")?;
    }
    let shown = each(args, reader, |row, record, is_wanted| {
        if !is_wanted {
            return Ok(());
        }
        let text = documents::line(&document(row, record, family))?;
        if args.json {
            write!(out, "{before}\n{text}")?;
            before = ",";
            return Ok(());
        }
        writeln!(out, "{text}")
    })?;
    if args.json {
        let about = documents::line(&LogEnd {
            bad_lines: shown.bad,
            left_out: shown.left_out,
        })?;
        writeln!(out, "\n],{}", &about[1..])?;
    }
    out.flush()?;
    Ok(shown)
}

fn document(row: u32, record: &Record<'_>, family: &Family) -> LogRecord {
    let text = |field| {
        let value = record.get(field).and_then(|value| value.as_str());
        value.map(|text| masked(&text))
    };
    let summary = summary::of(record);
    LogRecord {
        record: u64::from(row) + 1,
        line: record.at.line,
        id: text(Field::Id),
        kind: text(Field::Kind),
        ts: text(Field::Ts),
        parent: text(Field::Parent),
        parent_record: family.parent(row).map(|parent| u64::from(parent) + 1),
        repeated: family.is_repeated(row),
        summary: summary.text,
        model: summary.model,
        tool: summary.tool,
        stop_reason: summary.stop_reason,
        input_tokens: summary.input_tokens,
        output_tokens: summary.output_tokens,
    }
}
