//! `quipu emit`

use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quipu_exchange::lines::{Limits, Lines};
use quipu_exchange::{Fault, Request, mend_surrogates, parse_draft};
use quipu_formats::agentlog::project::ProjectionOptions;
use quipu_model::RunId;
use quipu_record::{
    Durability as Asked, Journal, Masker, Recorder, RecorderOptions, Storage, TraceError,
    TraceOptions, TracePlace, TraceWriter, Traced,
};
use quipu_redact::Key;
use quipu_store::blobs::beside;

use super::convert::trace::keep_blob;
use super::repair;
use crate::args::{Durability, Emit};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::terminal::{count, say};
use crate::{locate, redaction};

/// How long events are gathered that share a sync, and after what pause they no longer are.
const GATHER: Duration = Duration::from_millis(20);
const QUIET: Duration = Duration::from_millis(2);

pub(crate) fn run(args: &Emit, place: &locate::HomePlace) -> Result<Exit> {
    let run_id = parse_id("--run", &args.run)?;
    let parent = args
        .parent
        .as_deref()
        .map(|id| parse_id("--parent", id))
        .transpose()?;
    let root = match &args.storage {
        Some(root) => root.clone(),
        None => place.home()?,
    };
    let storage = Storage::at(&root);
    let limits = Limits::default();
    // Opened before anything is read: a run that is taken is refused at once.
    let journal = Journal::open(&storage.path_of(&run_id), &run_id, limits)?;
    for line in repair::describe(journal.mended()) {
        say(&format!("note: {}: {line}", journal.path().display()));
    }
    let mut input = Input {
        lines: Lines::new(io::stdin().lock(), limits),
        limits,
        refused: 0,
        stamped: 0,
    };
    // The first event may say who called this run.
    let first = input.next()?;
    let known = journal.parent_run_id().cloned();
    // A run that has events has the parent they name.
    let from_first = || {
        first
            .as_ref()
            .filter(|_| journal.last_seq() == 0)?
            .parent_run_id
            .clone()
    };
    let parent = parent.or(known).or_else(from_first);
    let options = RecorderOptions {
        limits,
        durability: match args.durability {
            Durability::None => Asked::None,
            Durability::Group => Asked::default(),
            Durability::Each => Asked::Each,
        },
        masker: masker(args.mask, place)?,
        ..RecorderOptions::default()
    };
    let durability = options.durability;
    let recorder = Recorder::start(journal, parent, options)?;
    let trace = match &args.agentlog {
        Some(path) => Some(TraceWriter::follow(
            &recorder,
            trace_options(path.as_deref(), &root, durability),
        )?),
        None => None,
    };
    let recorded = record_all(&recorder, first, &mut input, args.durability);
    let closed = recorder.close();
    let traced = trace.map(TraceWriter::finish).transpose();
    if input.stamped > 0 {
        let lines = count(input.stamped, "line");
        say(&format!(
            "note: {lines} came with a seq, run_id, timestamp or check; those are the recorder's"
        ));
    }
    recorded?;
    closed?;
    if let Some(traced) = traced.map_err(|error| not_traced(error, &run_id))? {
        tell(&traced);
    }
    if input.refused > 0 {
        let error = anyhow::anyhow!(
            "refused {}; the rest is recorded",
            count(input.refused, "line")
        );
        return Err(CommandError::new(Exit::Data, error));
    }
    Ok(Exit::Done)
}

/// What masks secrets before anything is written, where that is asked for.
pub(crate) fn masker(asked: bool, place: &locate::HomePlace) -> Result<Option<Arc<Masker>>> {
    let Some((engine, profile)) = redaction::of_recording(asked, place)? else {
        return Ok(None);
    };
    let key = Key::random().map_err(|error| CommandError::new(Exit::Environment, error))?;
    Ok(Some(Arc::new(quipu_redact::session::masker(
        engine, &profile, &key,
    ))))
}

/// How the trace beside the run is written.
pub(crate) fn trace_options(path: Option<&Path>, root: &Path, durability: Asked) -> TraceOptions {
    // What a trace refers to is where the trace is: in a directory of traces, what nothing there refers to is
    // collected.
    let (place, blobs) = match path {
        Some(path) => (TracePlace::File(path.to_owned()), beside(path)),
        None => (
            TracePlace::Directory(root.join("traces")),
            root.join("blobs"),
        ),
    };
    TraceOptions {
        place,
        projection: ProjectionOptions::default(),
        durability,
        blobs: Box::new(move |_, bytes| keep_blob(&blobs, bytes)),
    }
}

/// The run is recorded, its trace is not whole.
pub(crate) fn not_traced(error: TraceError, run: &RunId) -> CommandError {
    let exit = match &error {
        TraceError::Damaged { .. } | TraceError::Differs { .. } | TraceError::Event(_) => {
            Exit::Data
        }
        TraceError::File(_) | TraceError::Io(_) => Exit::Environment,
    };
    let hint = format!("the run is recorded; `quipu export {run} --to agentlog` makes its trace");
    CommandError::new(exit, error).hint(hint)
}

/// Says where the trace is, and what was mended.
pub(crate) fn tell(traced: &Traced) {
    let Some(path) = &traced.path else { return };
    if let Some(aside) = &traced.set_aside {
        let bytes = count(aside.bytes, "torn byte");
        say(&format!(
            "note: {}: {bytes} set aside in {}",
            path.display(),
            aside.path.display()
        ));
    }
    let records = count(traced.found + traced.added, "record");
    say(&format!("note: {}: a trace of {records}", path.display()));
}

pub(crate) fn parse_id(flag: &str, id: &str) -> Result<RunId> {
    RunId::new(id).map_err(|error| CommandError::usage(format!("{flag} {id:?}: {error}")))
}

/// Records what comes in, acknowledging each event once it is as durable as asked.
fn record_all(
    recorder: &Recorder,
    first: Option<Request>,
    input: &mut Input<'_>,
    durability: Durability,
) -> Result<()> {
    if durability != Durability::Group {
        // When `record` returns, the event is as durable as asked.
        let acknowledge = Acknowledge::default();
        return record_each(recorder, first, input, |seq| acknowledge.write(seq..=seq));
    }
    // A thread of its own waits for the disk, so that many events share a sync.
    let (tell, told) = sync_channel::<()>(1);
    let mut done = recorder.last_seq();
    let (recorded, failed) = (&AtomicU64::new(done), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let acknowledged = scope.spawn(move || -> Result<()> {
            let acknowledge = Acknowledge::default();
            let mut open = true;
            while open {
                open = told.recv().is_ok();
                let upto = if open {
                    gathered(recorded)
                } else {
                    recorded.load(Ordering::SeqCst)
                };
                if upto > done {
                    recorder
                        .wait_durable(upto)
                        .map_err(CommandError::from)
                        .and_then(|()| acknowledge.write(done + 1..=upto))
                        .inspect_err(|_| failed.store(true, Ordering::SeqCst))?;
                    done = upto;
                }
            }
            Ok(())
        });
        let result = record_each(recorder, first, input, |seq| {
            recorded.store(seq, Ordering::SeqCst);
            // A message that waits already will do for this event as well.
            tell.try_send(()).ok();
            if failed.load(Ordering::SeqCst) {
                return Err(io::Error::other("could not sync").into());
            }
            Ok(())
        });
        drop(tell);
        // What went wrong on disk is the cause; say that.
        acknowledged.join().expect("it does not panic").and(result)
    })
}

/// The last event to be brought to disk at once: those that follow closely share the sync. Who waits for an acknowledgement
/// before the next event is not held up for long.
fn gathered(recorded: &AtomicU64) -> u64 {
    let began = Instant::now();
    let mut upto = recorded.load(Ordering::SeqCst);
    loop {
        std::thread::sleep(QUIET);
        let last = upto;
        upto = recorded.load(Ordering::SeqCst);
        if upto == last || began.elapsed() >= GATHER {
            return upto;
        }
    }
}

fn record_each(
    recorder: &Recorder,
    first: Option<Request>,
    input: &mut Input<'_>,
    mut recorded: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut next = first;
    while let Some(request) = next {
        let (line, parent) = (input.line_number(), recorder.parent_run_id());
        if request.parent_run_id.is_some() && request.parent_run_id.as_ref() != parent {
            let why = "every event of a run has the parent of the first".to_owned();
            input.refuse(
                line,
                &Fault::Field {
                    name: "parent_run_id",
                    why,
                },
            );
        } else {
            match recorder.record(&request.draft) {
                Ok(seq) => recorded(seq)?,
                Err(quipu_record::Error::TooLarge { len, limit }) => {
                    input.refuse(
                        line,
                        &Fault::TooLong {
                            len: len as u64,
                            limit,
                        },
                    );
                }
                Err(error) => {
                    let error = CommandError::from(error);
                    return Err(
                        error.hint(format!("line {line} and those after it are not recorded"))
                    );
                }
            }
        }
        next = input.next()?;
    }
    Ok(())
}

/// Writes sequence numbers to stdout.
#[derive(Default)]
struct Acknowledge {
    gone: Mutex<bool>,
}

impl Acknowledge {
    fn write(&self, seqs: std::ops::RangeInclusive<u64>) -> Result<()> {
        let mut gone = self.gone.lock().expect("nothing panics with it held");
        if *gone {
            return Ok(());
        }
        let mut out = BufWriter::new(io::stdout().lock());
        let written = seqs.into_iter().try_for_each(|seq| writeln!(out, "{seq}"));
        match written.and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            // Nobody listens, but the events are still to be recorded.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                *gone = true;
                Ok(())
            }
            Err(e) => Err(io_error(
                "could not write acknowledgements to standard output",
            )(e)),
        }
    }
}

/// Requests from stdin; refuses what is none.
struct Input<'a> {
    lines: Lines<io::StdinLock<'a>>,
    limits: Limits,
    refused: u64,
    stamped: u64,
}

impl Input<'_> {
    fn line_number(&self) -> u64 {
        self.lines.number()
    }

    fn refuse(&mut self, line: u64, fault: &Fault) {
        self.refused += 1;
        say(&format!("line {line}: {fault}"));
    }

    fn next(&mut self) -> Result<Option<Request>> {
        loop {
            let next = self.lines.advance();
            let Some(info) = next.map_err(io_error("could not read standard input"))? else {
                return Ok(None);
            };
            let mut bytes = self.lines.current();
            if info.offset == 0 {
                bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            }
            if info.too_long {
                let limit = self.limits.max_line_bytes;
                self.refuse(
                    info.number,
                    &Fault::TooLong {
                        len: info.len,
                        limit,
                    },
                );
                continue;
            }
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            // Agents put out what they like; what is not text is replaced rather than refused.
            let mut text = String::from_utf8_lossy(bytes);
            if matches!(text, std::borrow::Cow::Owned(_)) {
                say(&format!(
                    "note: line {}: invalid UTF-8, replaced by U+FFFD",
                    info.number
                ));
            }
            let nuls = text.bytes().filter(|b| *b == 0).count();
            let (len, limit) = (text.len() + 5 * nuls, self.limits.max_line_bytes);
            if len > limit {
                self.refuse(
                    info.number,
                    &Fault::TooLong {
                        len: len as u64,
                        limit,
                    },
                );
                continue;
            }
            if nuls > 0 {
                say(&format!(
                    "note: line {}: raw NUL bytes, recorded as \\u0000",
                    info.number
                ));
                text = text.replace('\0', "\\u0000").into();
            }
            if let Some(mended) = mend_surrogates(&text) {
                say(&format!(
                    "warning: line {}: half of a surrogate pair, recorded as U+FFFD",
                    info.number
                ));
                text = mended.into();
            }
            match parse_draft(&text, self.limits.max_depth) {
                Ok(request) => {
                    self.stamped += u64::from(request.stamped);
                    return Ok(Some(request));
                }
                Err(fault) => self.refuse(info.number, &fault),
            }
        }
    }
}
