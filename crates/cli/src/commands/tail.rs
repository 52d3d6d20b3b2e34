//! `quipu tail`
//!
//! Follows the file of a run by its path ([`quipu_record::LogFollower`]). Woken by the file system; looks once a second
//! where that is silent, as on network mounts. Sessions of agents are followed by what is kept of them.

mod session;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use notify::Watcher as _;
use quipu_exchange::lines::Limits;
use quipu_exchange::{Fault, Found, Item, Position, Reader};
use quipu_record::{LogFollower, News, RunLog};

use super::render::Renderer;
use crate::args::Tail;
use crate::error::{CommandError, Exit, Result};
use crate::terminal::{out, say};
use crate::{json, locate};

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Tail, place: &locate::HomePlace) -> Result<Exit> {
    if let Some((store, row)) = session::find(&args.run, place)? {
        return session::run(args, place, &store, row);
    }
    let path = place.transcript(&args.run)?;
    // It may be a file of another engine's, beside which nothing is written.
    let log = RunLog::open_read_only(&path)?;
    let mut printer = Printer::new(args);
    // Watching begins before reading, so that nothing falls in between.
    let changes = args.follow.then(|| Changes::of(&path));
    let from = match args.from {
        Some(from) => {
            printer.from = from;
            start_of(&log, from)?
        }
        // By their place in the file, not their number: another writer may have begun to count anew.
        None => log.len()?.saturating_sub(args.events) + 1,
    };
    let follower = log.follow(from)?;
    let Some(changes) = changes else {
        print_all(&mut follower.to_the_last_byte(), &mut printer, &path)?;
        return match printer.bad {
            0 => Ok(Exit::Done),
            n => Err(CommandError::bad_lines(n, &path)),
        };
    };
    let mut follower = follower;
    loop {
        print_all(&mut follower, &mut printer, &path)?;
        changes.wait();
    }
}

/// Where to begin to read for the event with this number. A file of another engine's may number its events otherwise; that is
/// read from its start.
fn start_of(log: &RunLog, seq: u64) -> Result<u64> {
    let page = log.page(seq, 1)?;
    let first = page.events.first();
    let is_there = first.is_some_and(|it| it.decoded.event.seq == it.number);
    Ok(if is_there { seq } else { 1 })
}

/// Prints what is there.
fn print_all(follower: &mut LogFollower, printer: &mut Printer, path: &Path) -> Result<()> {
    while let Some(news) = follower.try_next()? {
        let what = match news {
            News::Events { batch, mut at } => {
                for (_, line) in batch.lines() {
                    printer.line(line, at)?;
                    at.line += 1;
                    at.offset += line.len() as u64;
                }
                continue;
            }
            News::Bad(bad) => {
                printer.bad(bad.at, &bad.fault)?;
                continue;
            }
            News::Gone => "is gone; waiting for it",
            News::Replaced => "is a new file; reading it from its start",
            News::Cut => "was cut short; reading it from its start",
        };
        printer.flush()?;
        printer.from = 0;
        say(&format!("note: {} {what}", path.display()));
    }
    printer.flush()
}

/// Tells when something in the directory of a file has changed.
struct Changes {
    _watcher: Option<notify::RecommendedWatcher>,
    changed: Receiver<()>,
}

impl Changes {
    fn of(path: &Path) -> Self {
        let (tell, changed) = sync_channel(1);
        // One waiting message is as good as many.
        let keep = tell.clone();
        let watcher = notify::recommended_watcher(move |_| {
            tell.try_send(()).ok();
        });
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new("."));
        let watcher = watcher.and_then(|mut watcher| {
            watcher.watch(directory, notify::RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        if let Err(error) = &watcher {
            say(&format!(
                "note: cannot watch {}: {error}; looking once a second",
                directory.display()
            ));
            // Keeps the channel open, so that waiting takes its time.
            std::mem::forget(keep);
        }
        Self {
            _watcher: watcher.ok(),
            changed,
        }
    }

    fn wait(&self) {
        match self.changed.recv_timeout(LOOK_EVERY) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

struct Printer {
    out: Box<dyn Write>,
    renderer: Renderer,
    jsonl: bool,
    from: u64,
    bad: u64,
}

impl Printer {
    fn new(args: &Tail) -> Self {
        Self {
            // Even a colour filter would change some lines.
            out: if args.output.jsonl {
                Box::new(BufWriter::new(io::stdout().lock()))
            } else {
                Box::new(out())
            },
            renderer: Renderer { full: args.full },
            jsonl: args.output.jsonl,
            from: 0,
            bad: 0,
        }
    }

    /// Prints the event on a line.
    fn line(&mut self, line: &[u8], at: Position) -> Result<()> {
        let mut reader = Reader::resuming(line, Limits::default(), at.offset, at.line - 1);
        match reader.next()? {
            Some(Item::Event(found)) => self.event(&found),
            Some(Item::Bad(bad)) => self.bad(bad.at, &bad.fault),
            None => Ok(()),
        }
    }

    fn event(&mut self, found: &Found<'_>) -> Result<()> {
        if found.scan.seq < self.from {
            return Ok(());
        }
        // From here on everything, whatever its number.
        self.from = 0;
        if self.jsonl {
            self.out.write_all(json::escape(found.text).as_bytes())?;
            self.out.write_all(b"\n")?;
            return Ok(());
        }
        match found.decode() {
            Ok(decoded) => Ok(self.renderer.event(&mut self.out, &decoded.event)?),
            Err(fault) => self.bad(found.at, &fault),
        }
    }

    fn bad(&mut self, at: Position, fault: &Fault) -> Result<()> {
        self.bad += 1;
        self.out.flush()?;
        say(&format!("{at}: {fault}"));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}
