//! Traces that are kept.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use quipu_api::Time;
use quipu_api::trace::{KeptHow, KeptTrace, Trace};
use quipu_record::{Clock as _, SystemClock};
use quipu_store::blobs::{Blobs, beside};
use quipu_store::traces::{Checks, Filter, How, Kept, TraceError, TraceRow, Traces};

use super::blobs::BLOBS_ARE_LISTED;
use crate::args::{AtDirectory, Get, Keep, ListTraces};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::table::{Give, Table};
use crate::terminal::{DIM, YELLOW, bytes, clean, columns, count, out, say};
use crate::{json, when};

/// How many digits of an id are shown.
const SHORT_ID: usize = 12;

/// How many digits of a file's hash are shown where the id does not tell.
const SHORT_HASH: usize = 8;

impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        let exit = match &error {
            TraceError::NotATrace(_)
            | TraceError::WrongRoot { .. }
            | TraceError::TooLarge(_)
            | TraceError::NoTraces(_)
            | TraceError::None(_)
            | TraceError::Several { .. }
            | TraceError::NoBlob(_)
            | TraceError::SeveralBlobs { .. } => Exit::Data,
            _ => Exit::Environment,
        };
        let (details, hint) = match &error {
            TraceError::Several { names, .. } | TraceError::SeveralBlobs { names, .. } => {
                (names.clone(), Some("give more of the name"))
            }
            TraceError::NoBlob(_) => (Vec::new(), Some(BLOBS_ARE_LISTED)),
            TraceError::WrongRoot { .. } => (
                Vec::new(),
                Some("`quipu verify` tells more; --wrong-root keeps it as it is"),
            ),
            TraceError::TooLarge(_) => (Vec::new(), Some("--max-total allows more")),
            TraceError::None(_) => (
                Vec::new(),
                Some("`quipu agentlog list` shows what there is"),
            ),
            _ => (Vec::new(), None),
        };
        let error = Self::new(exit, error).details(details);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The traces that are meant; `None` where nothing is kept yet.
pub(super) fn open(at: &AtDirectory, place: &HomePlace) -> Result<Option<Traces>> {
    let traces = match &at.at {
        Some(directory) => {
            // The directory of a project is as good as what is in it.
            let inside = directory.join(".shadow");
            let is_inside = !directory.join("traces").is_dir() && inside.is_dir();
            Some(Traces::open_foreign(if is_inside {
                &inside
            } else {
                directory
            })?)
        }
        None => Traces::open_existing(&place.home()?)?,
    };
    for problem in traces.iter().flat_map(Traces::problems) {
        say(&format!(
            "{} could not be read: {}",
            problem.path.display(),
            problem.why
        ));
    }
    Ok(traces)
}

pub(super) fn keep(args: &Keep, place: &HomePlace) -> Result<Exit> {
    let traces = Traces::open(&place.home()?)?;
    let checks = Checks {
        limits: args.caps.limits(),
        wrong_root: args.wrong_root,
    };
    let mut documents = Vec::new();
    let mut worst: Option<CommandError> = None;
    let mut out = out();
    for file in &args.files {
        match keep_one(&traces, file, &checks) {
            Ok(kept) if args.json => documents.push(kept_document(file, &kept)),
            Ok(kept) => write_kept(&mut out, file, &kept)?,
            Err(error) => {
                // The others are kept all the same.
                if let Some(before) = worst.replace(error) {
                    before.report();
                }
            }
        }
    }
    if args.json {
        writeln!(out, "{}", json::document(&documents)?)?;
    }
    out.flush()?;
    drop(out);
    worst.map_or(Ok(Exit::Done), Err)
}

/// Keeps a trace, and the blobs that were written beside it.
fn keep_one(traces: &Traces, file: &Path, checks: &Checks) -> Result<Kept> {
    let about = |error: TraceError| CommandError::from(error).about(&file.display().to_string());
    if file == Path::new("-") {
        return traces.put(io::stdin().lock(), checks).map_err(about);
    }
    let source = File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let error = anyhow::anyhow!("there is no file {}", file.display());
            CommandError::new(Exit::Data, error)
        }
        _ => io_error(format!("could not read {}", file.display()))(error),
    })?;
    let kept = traces.put(source, checks).map_err(about)?;
    let blobs = Blobs::open(&beside(file))?;
    traces.take_blobs(&kept.survey, &blobs).map_err(about)?;
    Ok(kept)
}

fn word(how: How) -> &'static str {
    match how {
        How::New => "kept",
        How::Already => "already kept",
        How::AlreadyLonger => "already kept, and longer",
        How::Continued => "kept in place of its beginning",
        How::Beside => "kept beside another with the same root",
    }
}

fn write_kept(out: &mut impl io::Write, file: &Path, kept: &Kept) -> Result<()> {
    let path = file.display().to_string();
    // A name that is double-clicked has nothing right behind it.
    writeln!(out, "{}: {}  {}", clean(&path), word(kept.how), kept.name)?;
    let survey = &kept.survey;
    if survey.bad_lines > 0 {
        say(&format!(
            "{path}: {} no records",
            lines_are(survey.bad_lines)
        ));
    }
    if let Some(line) = survey.first_wrong {
        let records = count(survey.wrong_ids, "record");
        say(&format!(
            "{path}: the ids of {records} are not those of their payloads, the first on line {line}"
        ));
    }
    if let Some(why) = &kept.unindexed {
        say(&format!("{path}: kept, but not in the index yet: {why}"));
    }
    Ok(())
}

fn lines_are(n: u64) -> String {
    format!("{} {}", count(n, "line"), if n == 1 { "is" } else { "are" })
}

fn kept_document(file: &Path, kept: &Kept) -> KeptTrace {
    KeptTrace {
        file: json::path(file),
        id: kept.name.root.to_string(),
        name: kept.name.to_string(),
        sha256: kept.name.content.to_string(),
        path: json::path(&kept.path),
        how: match kept.how {
            How::New => KeptHow::New,
            How::Already => KeptHow::Already,
            How::AlreadyLonger => KeptHow::AlreadyLonger,
            How::Continued => KeptHow::Continued,
            How::Beside => KeptHow::Beside,
        },
        size: kept.size,
        records: kept.survey.records,
        bad_lines: kept.survey.bad_lines,
        wrong_ids: kept.survey.wrong_ids,
        first_wrong_line: kept.survey.first_wrong,
        unindexed: kept.unindexed.clone(),
    }
}

pub(super) fn list(args: &ListTraces, place: &HomePlace) -> Result<Exit> {
    let now = SystemClock.now();
    let tag = |text: &String| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.clone(), None),
    };
    let mut filter = Filter {
        tags: args.tags.iter().map(tag).collect(),
        session_tags: args.session_tags.clone(),
        kinds: args.kinds.clone(),
        models: args.models.clone(),
        tools: args.tools.clone(),
        since: when::millis(args.since.as_deref(), |text| when::point(text, now))?,
        until: when::millis(args.until.as_deref(), |text| when::end(text, now))?,
        // One more than is shown tells whether there are more.
        limit: (args.limit > 0).then_some(args.limit.saturating_add(1)),
        ..Filter::default()
    };
    let traces = open(&args.at, place)?;
    let mut rows = match &traces {
        Some(traces) => {
            let baseline = args.replays_of.as_deref();
            filter.replays_of = baseline.map(|id| baseline_id(traces, id)).transpose()?;
            traces.list(&filter)?
        }
        None => Vec::new(),
    };
    let limit = if args.limit > 0 {
        args.limit
    } else {
        usize::MAX
    };
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    let mut out = out();
    if args.jsonl {
        for row in &rows {
            writeln!(out, "{}", json::line(&document(row))?)?;
        }
    } else if args.json {
        let rows: Vec<Trace> = rows.iter().map(document).collect();
        writeln!(out, "{}", json::document(&rows)?)?;
    } else if !rows.is_empty() {
        write_rows(&mut out, &rows)?;
    }
    out.flush()?;
    drop(out);
    if args.json || args.jsonl {
        return Ok(Exit::Done);
    }
    if traces.is_none() {
        say("no traces are kept yet; `quipu agentlog keep FILE` keeps one");
    } else if rows.is_empty() {
        say("no trace that is kept is like that");
    }
    if is_cut {
        say(&format!("the first {limit}; --limit 0 shows all"));
    }
    Ok(Exit::Done)
}

/// The id of a trace of which replays are asked for. It need not be kept itself.
fn baseline_id(traces: &Traces, argument: &str) -> Result<String> {
    if argument
        .parse::<quipu_formats::agentlog::ContentId>()
        .is_ok()
    {
        return Ok(argument.to_owned());
    }
    match traces.find(argument) {
        Ok(row) => Ok(row.id),
        // Which of those with the same root does not matter here: replays name the root.
        Err(TraceError::Several { argument, names }) => {
            let roots = names.iter().filter_map(|name| name.split('~').next());
            let roots: std::collections::BTreeSet<&str> = roots.collect();
            match roots.first() {
                Some(root) if roots.len() == 1 => Ok(format!("sha256:{root}")),
                _ => Err(TraceError::Several { argument, names }.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// The id as it is shown: enough of it, and what tells it from others with the same.
pub(super) fn short(row: &TraceRow) -> String {
    let id = &row.hex()[..SHORT_ID];
    if row.same_id > 1 {
        return format!("{id}~{}", &row.sha256[..SHORT_HASH]);
    }
    id.to_owned()
}

fn write_rows(out: &mut impl io::Write, rows: &[TraceRow]) -> Result<()> {
    let header = ["ID", "WHEN", ">RECORDS", ">SIZE", "MODELS", "TAGS", ""];
    let mut table = Table::new(&header);
    table.cut(4, 24);
    for row in rows {
        let at = when::of_millis(row.created_at).map(when::local);
        let names = |names: &std::collections::BTreeMap<String, u64>| {
            names.keys().cloned().collect::<Vec<_>>().join(", ")
        };
        let tags = row.tags.iter().map(|(key, value)| format!("{key}={value}"));
        let sessions = row.session_tags.iter().map(|tag| format!("session:{tag}"));
        let tags: Vec<String> = tags.chain(sessions).collect();
        table.styled([
            (short(row), anstyle::Style::new()),
            (at.unwrap_or_default(), DIM),
            (row.records.to_string(), anstyle::Style::new()),
            (bytes(row.size), anstyle::Style::new()),
            (names(&row.models), anstyle::Style::new()),
            (tags.join(" "), anstyle::Style::new()),
            (marks(row), YELLOW),
        ]);
    }
    let giving = [Give::Shrink(4, 12), Give::Drop(3)];
    table.write_giving(out, columns(), Some(5), &giving)?;
    Ok(())
}

/// What is to be known of a trace before it is relied upon.
fn marks(row: &TraceRow) -> String {
    let mut marks = Vec::new();
    if row.same_id > 1 {
        marks.push(format!("{} with this root", row.same_id));
    }
    if !row.replay_of.is_empty() {
        marks.push("replay".to_owned());
    }
    if row.wrong_ids > 0 {
        marks.push(count(row.wrong_ids, "wrong id"));
    } else if !row.is_rooted {
        marks.push("not its root".to_owned());
    }
    if row.bad_lines > 0 {
        marks.push(count(row.bad_lines, "bad line"));
    }
    marks.join(", ")
}

fn document(row: &TraceRow) -> Trace {
    let at = |millis: i64| when::of_millis(millis).map(|at| Time::of(format_args!("{at:.3}")));
    Trace {
        id: row.id.clone(),
        name: row.name(),
        sha256: row.sha256.clone(),
        same_id: row.same_id,
        path: row.path.clone(),
        size: row.size,
        records: row.records,
        bad_lines: row.bad_lines,
        wrong_ids: row.wrong_ids,
        first_wrong_line: row.first_wrong,
        is_rooted: row.is_rooted,
        created_at: at(row.created_at),
        first_ts: row.first_ts.and_then(at),
        last_ts: row.last_ts.and_then(at),
        session_tag: row.session_tag.clone(),
        session_tags: row.session_tags.clone(),
        trace_ids: row.trace_ids.clone(),
        tags: row.tags.clone(),
        kinds: row.kinds.clone(),
        models: row.models.clone(),
        tools: row.tools.clone(),
        replay_of: row.replay_of.clone(),
        left_out: row.left_out,
    }
}

pub(super) fn get(args: &Get, place: &HomePlace) -> Result<Exit> {
    let traces = open(&args.at, place)?;
    let traces = traces.ok_or_else(|| TraceError::None(args.id.clone()))?;
    let row = traces.find(&args.id)?;
    let path = traces.path(&row);
    give(traces.open_file(&row)?, &path, args.output.as_ref())
}

/// Writes bytes as they are, to a file of its own or to standard output.
pub(super) fn give(mut from: impl Read, path: &Path, to: Option<&PathBuf>) -> Result<Exit> {
    let failed = || format!("could not write {}", path.display());
    let Some(to) = to else {
        let mut out = io::stdout().lock();
        io::copy(&mut from, &mut out)?;
        out.flush()?;
        return Ok(Exit::Done);
    };
    let mut options = quipu_files::options();
    let refused = io_error(format!("could not create {}", to.display()));
    let opened = options.write(true).create_new(true).open(to);
    let mut file = opened.map_err(refused)?;
    let written = io::copy(&mut from, &mut file).and_then(|_| file.sync_all());
    if written.is_err() {
        // Half of it would look like all of it. The first error is the one to tell.
        drop(std::fs::remove_file(to));
    }
    written.map_err(io_error(failed()))?;
    Ok(Exit::Done)
}
