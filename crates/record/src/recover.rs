//! What is at the end of a run's file, and how it is mended.
//!
//! A recorder writes whole lines, so a process that dies leaves at most one line cut off at the end;
//! a machine that dies may leave worse, such as blocks of zeros. Everything behind the last line that
//! is an event is the *tail*. It is never destroyed: its bytes are copied to a `.torn` file beside the
//! run, that copy is brought to disk, and only then is the file cut.
//!
//! A line that has its end and is longer or deeper than the limits allow was written whole: it is not a tail but
//! an error, and nothing is changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use quipu_exchange::lines::Limits;
use quipu_exchange::{Bad, Chain, Fault, Item, Reader};
use quipu_model::{Event, RunId};

use crate::Error;
use crate::history::entry_of;
use crate::index::{Entry, Mark};
use crate::medium::{DiskFile, Medium};

/// What a look at a file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survey {
    /// The last event's sequence number, which is also how many there are; 0 in an empty file.
    pub(crate) last_seq: u64,
    /// The run and parent, by the last event.
    pub(crate) identity: Option<(RunId, Option<RunId>)>,
    /// Where the last event's line ends.
    pub(crate) end: u64,
    /// How many bytes are behind that.
    pub(crate) tail: u64,
    /// Whether the last event only lacks its line end.
    pub(crate) lacks_newline: bool,
    /// What the checksums of the lines go on from.
    pub(crate) chain: Chain,
    /// The places of some events, where the lines are the events 1 to n.
    pub(crate) entries: Vec<Entry>,
}

/// What was mended when a run was opened or repaired.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mended {
    /// The last event lacked its line end, which was added.
    pub ended_line: bool,
    /// Bytes that were no event were set aside.
    pub set_aside: Option<SetAside>,
    /// Others could read or write the file, from this mode.
    pub made_private: Option<u32>,
}

/// Torn bytes, and where they went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where they stood in the run's file.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// The file they were copied to.
    pub path: PathBuf,
}

impl Mended {
    /// Whether there was anything to mend.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a file to its end. Does not change it.
///
/// # Errors
///
/// When the file cannot be read; with `dense`, also when its lines are not the events 1 to n in
/// order, as a recorder leaves them.
pub(crate) fn survey(
    medium: &dyn Medium,
    path: &Path,
    limits: Limits,
    dense: bool,
) -> Result<Survey, Error> {
    let mut reader = Reader::with_limits(Source { medium, offset: 0 }, limits);
    let mut survey = Survey {
        last_seq: 0,
        identity: None,
        end: 0,
        tail: 0,
        lacks_newline: false,
        chain: Chain::default(),
        entries: Vec::new(),
    };
    let mut noted = Mark::START;
    let mut last = String::new();
    // Where the last event itself ends, and the line it is on.
    let (mut event_end, mut event_line) = (0, 0);
    let (mut bad, mut recognised) = (0u64, true);
    // A whole line that is beyond a limit: an event, for all that can be told.
    let mut beyond = None;
    while let Some(item) = reader.next().map_err(Error::io("read", path))? {
        let found = match item {
            Item::Event(found) => found,
            Item::Bad(part) => {
                bad += 1;
                if beyond.is_none() && is_beyond_limits(&part) {
                    beyond = Some((part.at, part.fault.clone()));
                }
                recognised &= part.bytes.starts_with(b"{") || part.fault == Fault::Zeros;
                if part.at.line == event_line {
                    // Torn bytes right behind the last event; only they are the tail.
                    survey.end = event_end;
                    survey.lacks_newline = true;
                }
                continue;
            }
        };
        let (seq, line) = (found.scan.seq, found.at.line);
        if dense && beyond.is_some() {
            break;
        }
        if dense && ((seq, line) != (survey.last_seq + 1, survey.last_seq + 1) || bad > 0) {
            let why = format!(
                "line {line} should be event {line}, but is event {seq} after event {} and {bad} bad \
                 lines (`quipu verify` shows all that is wrong)",
                survey.last_seq
            );
            return Err(Error::NotDense {
                path: path.to_owned(),
                why,
            });
        }
        // Only the last event is needed, and only that is decoded.
        last.clear();
        last.push_str(found.text);
        // In a line that was mended, places are not those of the file.
        event_line = if found.is_mended() { 0 } else { line };
        event_end = found.at.offset + found.text.len() as u64;
        let mark = Mark {
            event: seq,
            line,
            offset: reader.line().offset,
        };
        if dense && noted.is_far_from(&mark) {
            let entry = entry_of(medium, mark).map_err(Error::io("read", path))?;
            survey.entries.push(entry);
            noted = mark;
        }
        survey.last_seq = seq;
        survey.lacks_newline = !reader.line().terminated;
        survey.end = reader.position();
        bad = 0;
        beyond = None;
    }
    if let Some((at, fault)) = beyond {
        return Err(Error::BeyondLimits {
            path: path.to_owned(),
            at,
            fault,
        });
    }
    survey.tail = reader.position() - survey.end;
    if last.is_empty() && survey.tail > 0 && (bad > 1 || !recognised) {
        return Err(Error::NotATranscript(path.to_owned()));
    }
    if dense && !last.is_empty() {
        let event = decode(&last, limits).map_err(|fault| Error::Tail {
            path: path.to_owned(),
            fault,
        })?;
        survey.identity = Some((event.run_id, event.parent_run_id));
        survey.chain = Chain::after(last.as_bytes());
    }
    Ok(survey)
}

/// Whether bytes may be an event that only the limits keep from being read. Such a line is not torn, and its number is
/// taken.
fn is_beyond_limits(part: &Bad<'_>) -> bool {
    match part.fault {
        Fault::TooLong { .. } => part.terminated,
        Fault::TooDeep { .. } => {
            let limits = Limits {
                max_depth: usize::MAX,
                max_line_bytes: usize::MAX,
                max_total_bytes: u64::MAX,
            };
            match Reader::with_limits(part.bytes, limits).next() {
                Ok(Some(Item::Event(_))) => true,
                Ok(Some(Item::Bad(still))) => {
                    part.terminated && matches!(still.fault, Fault::TooDeep { .. })
                }
                Ok(None) | Err(_) => false,
            }
        }
        _ => false,
    }
}

fn decode(text: &str, limits: Limits) -> Result<Event, Fault> {
    match Reader::with_limits(text.as_bytes(), limits).next_decoded() {
        Ok(Some(Ok(decoded))) => Ok(decoded.event),
        Ok(Some(Err(bad))) => Err(bad.fault),
        Ok(None) | Err(_) => unreachable!("the text of an event was just read"),
    }
}

/// Mends the tail that a survey found.
pub(crate) fn mend(file: &DiskFile, path: &Path, survey: &mut Survey) -> Result<Mended, Error> {
    let mut mended = Mended {
        made_private: make_private(file.file(), path)?,
        ..Mended::default()
    };
    if survey.tail > 0 {
        mended.set_aside = Some(set_aside(file, path, survey.end, survey.tail)?);
        file.truncate(survey.end)
            .map_err(Error::io("cut the torn tail off", path))?;
        survey.tail = 0;
    }
    if survey.lacks_newline {
        file.append(b"\n")
            .map_err(Error::io("end the last line of", path))?;
        survey.end += 1;
        survey.lacks_newline = false;
        mended.ended_line = true;
    }
    if mended.ended_line || mended.set_aside.is_some() {
        file.sync().map_err(Error::io("sync", path))?;
    }
    Ok(mended)
}

/// Takes away the permissions of others; gives the mode that was there.
pub(crate) fn make_private(file: &File, path: &Path) -> Result<Option<u32>, Error> {
    let metadata = file.metadata().map_err(Error::io("look at", path))?;
    if !metadata.is_file() {
        return Err(Error::NotAFile(path.to_owned()));
    }
    let mut permissions = metadata.permissions();
    let mode = permissions.mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(None);
    }
    permissions.set_mode(0o600);
    file.set_permissions(permissions)
        .map_err(Error::io("make private", path))?;
    Ok(Some(mode))
}

/// Brings the names in the directory of a file to disk.
pub(crate) fn sync_directory_of(path: &Path) -> Result<(), Error> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(Error::io("sync directory", directory))
}

/// Where the torn bytes of a run's file go.
pub fn torn_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    name.into()
}

/// Copies `bytes` bytes at `offset` to the `.torn` file and brings them to disk.
pub(crate) fn set_aside(
    file: &DiskFile,
    path: &Path,
    offset: u64,
    bytes: u64,
) -> Result<SetAside, Error> {
    let torn = torn_path(path);
    let mut to = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(&torn)
        .map_err(Error::io("open", &torn))?;
    make_private(&to, &torn)?;
    let mut from = Source {
        medium: file,
        offset,
    }
    .take(bytes);
    let copied = io::copy(&mut from, &mut to)
        // A fragment has no line end of its own; the next one should start on a line.
        .and_then(|copied| to.write_all(b"\n").map(|()| copied))
        .and_then(|copied| to.sync_all().map(|()| copied))
        .map_err(Error::io("copy torn bytes to", &torn))?;
    if copied != bytes {
        let expected = offset + bytes;
        return Err(Error::Changed {
            path: path.to_owned(),
            expected,
            found: offset + copied,
        });
    }
    // The copy is only safe once its name is; then the original may be cut.
    sync_directory_of(&torn)?;
    Ok(SetAside {
        offset,
        bytes,
        path: torn,
    })
}

/// Reads a medium from an offset.
pub(crate) struct Source<'a> {
    pub(crate) medium: &'a dyn Medium,
    pub(crate) offset: u64,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.medium.read_at(buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}
