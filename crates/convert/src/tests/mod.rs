//! Tests of conversions as a whole: from files to files.

mod documents;
mod durations;
mod leaks;
mod matrix;
mod published;
mod review;
mod round_trips;
mod sources;
mod stated;
mod traces;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use quipu_formats::projection::{Beside, Nowhere};
use quipu_model::{Attachment, Event, Header};

use crate::output::Folder;
use crate::source::Receiver;
use crate::{Format, Reading, Report, Shape, TargetOptions, open, write};

/// Tells whoever runs the tests what was left out, and why.
pub(crate) fn tell(what: std::fmt::Arguments<'_>) {
    writeln!(io::stderr(), "{what}").unwrap();
}

fn put(path: &Path, bytes: &[u8]) {
    fs::File::create(path).unwrap().write_all(bytes).unwrap();
}

static READING: LazyLock<Reading> = LazyLock::new(Reading::default);

/// The session that all others are made of.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// Everything that a source gives.
#[derive(Debug, Default, PartialEq)]
struct Given {
    events: Vec<Event>,
    blobs: Vec<(Attachment, usize)>,
}

impl Receiver for Given {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        self.blobs.push((attachment.clone(), bytes.len()));
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        self.events.push(event);
        Ok(())
    }
}

fn read(path: &Path) -> (Header, Given) {
    let mut sources = open(path, &READING).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sources.len(), 1, "{}", path.display());
    let header = sources[0].header().unwrap();
    let mut given = Given::default();
    sources[0].read(&mut given).unwrap();
    (header, given)
}

/// Converts a file into a directory, and says what was written.
fn convert(from: &Path, to: Format, directory: &Path) -> (PathBuf, Report) {
    let mut sources = open(from, &READING).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sources.len(), 1, "{}", from.display());
    let path = directory.join(format!("session{}", to.ending()));
    fs::create_dir_all(directory).unwrap();
    let mut file = tempfile::NamedTempFile::new_in(directory).unwrap();
    let out: Box<dyn Write> = Box::new(file.as_file_mut());
    let beside: Box<dyn Beside> = match to.shape() {
        Shape::Directory => Box::new(Folder::new(&path)),
        _ => Box::new(Folder::sharing(directory)),
    };
    let report = write(&mut *sources[0], to, &TargetOptions::default(), out, beside)
        .unwrap_or_else(|error| panic!("{} to {to}: {error}", from.display()));
    if to.shape() == Shape::File {
        file.persist(&path).unwrap();
    }
    (path, report)
}

/// Converts into memory.
fn bytes(from: &Path, to: Format) -> Vec<u8> {
    let mut sources = open(from, &READING).unwrap();
    let mut bytes = Vec::new();
    let out: Box<dyn Write> = Box::new(&mut bytes);
    write(
        &mut *sources[0],
        to,
        &TargetOptions::default(),
        out,
        Box::new(Nowhere),
    )
    .unwrap();
    bytes
}
