//! `quipu tail`
//!
//! Follows a file by its path: what is appended, a file that is cut short and written anew, and one that
//! is moved away and replaced. Woken by the file system; looks once a second where that is silent, as on
//! network mounts.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use notify::Watcher as _;
use quipu_formats::exchange::{Bad, Found, Item, Reader};
use quipu_formats::lines::Limits;

use super::render::Renderer;
use crate::args::Tail;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::terminal::{out, say};
use crate::{json, locate};

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Tail, place: &locate::Place) -> Result<Exit> {
    let path = place.transcript(&args.run)?;
    let mut follow = Follow::open(&path)?;
    let mut printer = Printer::new(args);
    // Watching begins before reading, so that nothing falls in between.
    let changes = args.follow.then(|| Changes::of(&path));
    match args.from {
        Some(from) => printer.from = from,
        None => follow.skip_to_last(args.events)?,
    }
    follow.read(&mut printer)?;
    let Some(changes) = changes else {
        return match printer.bad {
            0 => Ok(Exit::Done),
            n => Err(CommandError::bad_lines(n, &path)),
        };
    };
    loop {
        changes.wait();
        follow.catch_up(&mut printer)?;
    }
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

/// A file that is followed by its path.
struct Follow {
    path: PathBuf,
    file: Option<File>,
    identity: (u64, u64),
    /// What was read so far.
    offset: u64,
    lines: u64,
}

impl Follow {
    fn open(path: &Path) -> Result<Self> {
        let file =
            File::open(path).map_err(io_error(format!("could not open {}", path.display())))?;
        let identity = identity(&file.metadata()?);
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            identity,
            offset: 0,
            lines: 0,
        })
    }

    /// Moves to the last `n` events. By their place in the file, not their number: another writer may
    /// have begun to count anew.
    fn skip_to_last(&mut self, n: u64) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(0))?;
        let keep = usize::try_from(n).unwrap_or(usize::MAX);
        let mut last = VecDeque::new();
        let mut end = (0, 0);
        let mut reader = Reader::new(&*file);
        while let Some(item) = reader.next()? {
            let is_event = matches!(item, Item::Event(_));
            let line = *reader.line();
            if is_event {
                last.push_back((line.offset, line.number - 1));
                if last.len() > keep {
                    last.pop_front();
                }
            }
            if line.terminated {
                end = (reader.position(), line.number);
            }
        }
        (self.offset, self.lines) = last.front().copied().unwrap_or(end);
        Ok(())
    }

    /// Reads whole lines to the end of the file.
    fn read(&mut self, printer: &mut Printer) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = Reader::resuming(&*file, Limits::default(), self.offset, self.lines);
        while let Some(item) = reader.next()? {
            if printer.follow && item.is_unterminated() {
                // The rest of the line is still to come; it is read again then.
                break;
            }
            match item {
                Item::Event(found) => printer.event(&found)?,
                Item::Bad(bad) => printer.bad(&bad)?,
            }
            let line = reader.line();
            self.offset = line.offset + line.len + u64::from(line.terminated);
            self.lines = line.number;
        }
        printer.flush()?;
        Ok(())
    }

    /// Reads what is new, whatever became of the file.
    fn catch_up(&mut self, printer: &mut Printer) -> Result<()> {
        let there = match std::fs::metadata(&self.path) {
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => {
                return Err(io_error(format!(
                    "could not look at {}",
                    self.path.display()
                ))(e));
            }
        };
        let other = |there: &Metadata| identity(there) != self.identity;
        let replaced = self.file.is_none() || there.as_ref().is_none_or(other);
        // To the end of the old file first: something may have been written before it was moved.
        self.read_or_restart(printer)?;
        if !replaced {
            return Ok(());
        }
        if self.file.take().is_some() && there.is_none() {
            say(&format!(
                "note: {} is gone; waiting for it",
                self.path.display()
            ));
        }
        match File::open(&self.path) {
            Ok(file) => {
                self.identity = identity(&file.metadata()?);
                say(&format!(
                    "note: {} is a new file; reading it from its start",
                    self.path.display()
                ));
                self.restart(file, printer)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io_error(format!("could not open {}", self.path.display()))(
                e,
            )),
        }
    }

    fn read_or_restart(&mut self, printer: &mut Printer) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let len = file.metadata()?.len();
        if len < self.offset {
            say(&format!(
                "note: {} was cut short; reading it from its start",
                self.path.display()
            ));
            let file = file.try_clone()?;
            return self.restart(file, printer);
        }
        if len == self.offset {
            return Ok(());
        }
        self.read(printer)
    }

    fn restart(&mut self, file: File, printer: &mut Printer) -> Result<()> {
        self.file = Some(file);
        self.offset = 0;
        self.lines = 0;
        printer.from = 0;
        self.read(printer)
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

struct Printer {
    out: Box<dyn Write>,
    renderer: Renderer,
    jsonl: bool,
    follow: bool,
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
            follow: args.follow,
            from: 0,
            bad: 0,
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
            Err(fault) => self.bad(&Bad {
                at: found.at,
                bytes: found.text.as_bytes(),
                fault,
                terminated: true,
            }),
        }
    }

    fn bad(&mut self, bad: &Bad<'_>) -> Result<()> {
        self.bad += 1;
        self.out.flush()?;
        say(&format!("{}: {}", bad.at, bad.fault));
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write plain files")]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Screen {
        fn lines(&self) -> usize {
            let bytes = self.0.lock().unwrap();
            memchr::memchr_iter(b'\n', &bytes).count()
        }
    }

    fn started(seq: u64) -> String {
        format!(
            concat!(
                r#"{{"seq":{},"run_id":"r","type":"run.started","path":"","iteration":0,"#,
                r#""timestamp":"2026-06-08T08:14:42Z","payload":null}}"#,
                "\n"
            ),
            seq
        )
    }

    /// Wherever a line is cut off when it is looked at, nothing is printed before its end is there.
    #[test]
    fn half_a_line_is_not_an_event() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        let screen = Screen::default();
        let mut printer = Printer {
            out: Box::new(screen.clone()),
            renderer: Renderer { full: false },
            jsonl: true,
            follow: true,
            from: 0,
            bad: 0,
        };
        std::fs::write(&path, started(1)).unwrap();
        let mut follow = Follow::open(&path).unwrap();
        follow.read(&mut printer).unwrap();
        assert_eq!(screen.lines(), 1);
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        for byte in started(2).bytes() {
            assert_eq!(screen.lines(), 1);
            file.write_all(&[byte]).unwrap();
            follow.catch_up(&mut printer).unwrap();
        }
        assert_eq!((screen.lines(), printer.bad), (2, 0));
    }
}
