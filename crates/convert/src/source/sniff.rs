//! What a file is, by what is in it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use quipu_agents::{HEAD, Head, Known, Lies, Limits, NORMALIZED, is_credential};
use quipu_exchange::{Item, Reader};
use quipu_formats::flow;

use super::environment::machine;
use super::part::parts;
use super::{
    Document, Log, LogFile, Reading, RunDirectory, Source, SourceError, Transcript, unreadable,
};

/// What every `SQLite` database begins with.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// The sessions in a file. What it is is decided from its content.
///
/// # Errors
///
/// It cannot be read, or nothing knows what it is.
pub fn open(path: &Path, reading: &Reading) -> Result<Vec<Box<dyn Source>>, SourceError> {
    open_as(path, path, reading)
}

/// The sessions in a file that is known by another name than the one it is opened by.
///
/// # Errors
///
/// Those of [`open`].
pub fn open_as(
    path: &Path,
    name: &Path,
    reading: &Reading,
) -> Result<Vec<Box<dyn Source>>, SourceError> {
    let unknown = || SourceError::Unknown(name.to_owned());
    if is_credential(name) {
        return Err(unknown());
    }
    if path.is_dir() {
        let run = flow::run_around(path).unwrap_or_else(|| path.to_owned());
        return Ok(vec![Box::new(RunDirectory::new(&run))]);
    }
    // A file of a run stands for the whole of it.
    if path == name
        && let Some(run) = flow::run_of(path)
    {
        return Ok(vec![Box::new(RunDirectory::new(&run))]);
    }
    let head = head(path).map_err(unreadable(name))?;
    if head.starts_with(DATABASE) {
        return Err(SourceError::Many(name.to_owned()));
    }
    if let Some(family) = quipu_agents::holder(&head) {
        return parts(path, family, reading);
    }
    if is_exchange(&head) {
        return Ok(vec![Box::new(Transcript::new(path).named(name))]);
    }
    if is_page(&head) {
        let page = Document::page(path, reading.passphrase.as_deref())?;
        return Ok(vec![Box::new(page.named(name))]);
    }
    let found = identify(path, &head).map_err(unreadable(name))?;
    if found.is_some_and(|known| known.dialect.name == NORMALIZED) {
        // Read by its own reader, which loses nothing that the model has no place for.
        return Ok(vec![Box::new(Document::file(path).named(name))]);
    }
    if found.is_none()
        && path == name
        && let Some(run) = flow::run_around(path)
    {
        return Ok(vec![Box::new(RunDirectory::new(&run))]);
    }
    let known = found.ok_or_else(unknown)?;
    let dialect = (known.family, known.dialect);
    let mut log = Log::new(LogFile(path.to_owned()), name, dialect, &reading.prices);
    log.doubt = known.warning();
    Ok(vec![Box::new(log)])
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether it begins with an event of a transcript.
fn is_exchange(head: &[u8]) -> bool {
    matches!(Reader::new(head).next(), Ok(Some(Item::Event(_))))
}

/// Whether it is a page that Quipu wrote.
fn is_page(head: &[u8]) -> bool {
    let is_html = head.trim_ascii_start().starts_with(b"<");
    is_html && memchr::memmem::find(head, b"id=\"quipu-").is_some()
}

/// Whose log it is.
fn identify(path: &Path, head: &[u8]) -> io::Result<Option<Known>> {
    let whole = head.len() < HEAD;
    let found = whose(path, head, whole);
    // A document is only known by its whole.
    let size = path.metadata()?.len();
    if found.is_some() || whole || size > Limits::default().document as u64 {
        return Ok(found);
    }
    Ok(whose(path, &std::fs::read(path)?, true))
}

/// Whose log at this path begins with these bytes: by its content, and by its place on this machine where the content
/// leaves a doubt. `whole` is true where these are all bytes of the log.
pub fn whose(path: &Path, bytes: &[u8], whole: bool) -> Option<Known> {
    let host = machine();
    let lies = host.as_ref().and_then(|host| Lies::at(host, path));
    Head::look(bytes, whole, |head| quipu_agents::recognise(head, lies))
}
