//! The end of an agent's session, and what the agent adds to it.
//!
//! Events are read from what is kept. Whoever imports the log makes more of them: `quipu import --watch` or `quipu up` in
//! another process, or this one, which imports the log again when it has changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_exchange::encode_log;
use quipu_model::Event;
use quipu_record::{Clock as _, Storage, SystemClock};
use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::events::{EventFollower, Followed};
use quipu_store::import::{ImportError, ImportOptions};

use super::Printer;
use crate::args::Tail;
use crate::commands::import::report_problems;
use crate::error::{Exit, Result};
use crate::locate::{HomePlace, Resolved};
use crate::terminal::say;
use crate::{json, redaction};

/// How often the log of the agent is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The session that an argument means; `None` when it is a recorded run, or not known.
pub(super) fn find(argument: &str, place: &HomePlace) -> Result<Option<(Store, TranscriptRow)>> {
    // Where it is also the beginning of a session, a run is meant.
    if Storage::at(&place.home()?).find_by_prefix(argument).is_ok() {
        return Ok(None);
    }
    match place.meant(argument) {
        Ok(Resolved::Session(found)) => Ok(Some(*found)),
        Ok(Resolved::Log(path)) => {
            let Some(store) = place.store()? else {
                return Ok(None);
            };
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            let mut rows = store.transcripts_at(&path)?;
            Ok(rows.pop().map(|row| (store, row)))
        }
        // Whoever looks for a run says what is wrong.
        _ => Ok(None),
    }
}

pub(super) fn run(
    args: &Tail,
    place: &HomePlace,
    store: &Store,
    row: TranscriptRow,
) -> Result<Exit> {
    let mut printer = Printer::new(args);
    let mut live = Live::new(place, store, row)?;
    if args.follow {
        live.catch_up()?;
    }
    let len = store.page(&live.row, 1, 0)?.len;
    let from = match args.from {
        Some(from) => from.max(1),
        None => len.saturating_sub(args.events) + 1,
    };
    let mut follower = store.follow(&live.row, from)?;
    if !args.follow {
        while let Some(news) = follower.try_next()? {
            printer.followed(&news)?;
        }
        printer.flush()?;
        return Ok(Exit::Done);
    }
    loop {
        print_all(&mut follower, &mut printer)?;
        if !live.catch_up()?
            && let Some(news) = follower.recv_timeout(LOOK_EVERY)?
        {
            printer.followed(&news)?;
        }
    }
}

fn print_all(follower: &mut EventFollower, printer: &mut Printer) -> Result<()> {
    while let Some(news) = follower.try_next()? {
        printer.followed(&news)?;
    }
    printer.flush()
}

/// The log of an agent, which may go on.
struct Live<'s> {
    store: &'s Store,
    row: TranscriptRow,
    /// The log.
    path: PathBuf,
    host: quipu_agents::Host,
    options: ImportOptions,
    /// What the log looked like when it was last imported.
    seen: Option<Look>,
}

/// How long a log and what is written beside it are, and when they were written to.
type Look = Vec<(u64, Option<std::time::SystemTime>)>;

impl<'s> Live<'s> {
    fn new(place: &HomePlace, store: &'s Store, row: TranscriptRow) -> Result<Self> {
        Ok(Self {
            path: store.log_path(&row)?,
            store,
            row,
            host: HomePlace::host_of(store.home())?,
            options: ImportOptions {
                now: SystemClock.now(),
                agents: Vec::new(),
                dry_run: false,
                threads: 0,
                redact: redaction::of_import(None, place)?,
            },
            seen: None,
        })
    }

    /// Imports the log if it has changed since, and says whether it did.
    fn catch_up(&mut self) -> Result<bool> {
        let now = look(&self.path);
        if now.is_none() || now == self.seen {
            return Ok(false);
        }
        self.options.now = SystemClock.now();
        match self.store.catch_up(&self.row, &self.host, &self.options) {
            Ok(report) => {
                report_problems(&report.problems);
                self.seen = now;
                Ok(report.read > 0)
            }
            // Whoever is at work may be past this log already, so it is looked at again.
            Err(ImportError::Busy(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a log looks like now; `None` where there is none.
fn look(path: &Path) -> Option<Look> {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-wal");
    let of = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    };
    let log = of(path)?;
    Some(
        [Some(log), of(&PathBuf::from(journal))]
            .into_iter()
            .flatten()
            .collect(),
    )
}

impl Printer {
    fn followed(&mut self, news: &Followed) -> Result<()> {
        let note = match news {
            Followed::Events(events) => {
                let mut events = events.iter();
                return events.try_for_each(|event| self.kept(event));
            }
            Followed::Bad(bad) => return self.bad(bad.at, &bad.fault),
            Followed::Again { from } => {
                format!(
                    "note: the log reads otherwise from event {from} on; it follows as it is now"
                )
            }
            Followed::Gone => "note: nothing of it is kept any more; waiting for it".to_owned(),
        };
        self.flush()?;
        say(&note);
        Ok(())
    }

    /// Prints an event that is kept.
    fn kept(&mut self, event: &Event) -> Result<()> {
        if !self.jsonl {
            return Ok(self.renderer.event(&mut self.out, event)?);
        }
        let mut line = Vec::new();
        encode_log(event, &mut line);
        let text = String::from_utf8_lossy(&line);
        self.out
            .write_all(json::escape(text.trim_end()).as_bytes())?;
        self.out.write_all(b"\n")?;
        Ok(())
    }
}
