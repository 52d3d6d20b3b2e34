//! `quipu convert`

mod secrets;
pub(crate) mod trace;
mod work;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_convert::source::{Redacted, Removal};
use quipu_convert::{Reading, Source, SourceError};
use quipu_prices::Prices;

pub(super) use work::{Sessions, Work};

use crate::args::{Convert, Target};
use crate::config::Config;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::redaction;

pub(crate) fn run(args: &Convert, place: &HomePlace) -> Result<Exit> {
    let reading = reading(&args.target, place)?;
    let mut failed = None;
    let mut sources = Vec::new();
    // What comes through a pipe is there as long as the command runs.
    let mut piped = Vec::new();
    for input in &args.inputs {
        let opened = if is_piped(input) {
            spool(input).and_then(|spooled| {
                let opened = quipu_convert::open_as(&spooled.path(), input, &reading);
                piped.push(spooled);
                opened.map_err(refused)
            })
        } else {
            open(input, &reading)
        };
        match opened {
            Ok(mut opened) => sources.append(&mut opened),
            Err(error) => super::keep_first(&mut failed, error),
        }
    }
    if sources.is_empty()
        && let Some(error) = failed
    {
        return Err(error);
    }
    let sessions = Sessions::of(sources.len().max(args.inputs.len()));
    let sources = redacted(sources, &args.target, place)?;
    Work::new(&args.target, place, sessions, (None, &reading))?.all(sources, failed)
}

/// The same sessions without what a profile removes, where one is named.
pub(super) fn redacted(
    sources: Vec<Box<dyn Source>>,
    target: &Target,
    place: &HomePlace,
) -> Result<Vec<Box<dyn Source>>> {
    let Some(removal) = redaction::Removal::if_named(&target.rules, place)? else {
        return Ok(sources);
    };
    let removal = Removal {
        engine: removal.engine,
        profile: removal.profile,
        key: redaction::identity(place)?,
        decisions: redaction::names(),
        submitter: None,
    };
    let redact = |source| Box::new(Redacted::new(source, removal.clone())) as Box<dyn Source>;
    Ok(sources.into_iter().map(redact).collect())
}

/// How sources are read: prices as a person has set them, and the passphrase of pages.
pub(super) fn reading(target: &Target, place: &HomePlace) -> Result<Reading> {
    let config = Config::load(&place.home()?)?;
    let passphrase = target.passphrase_file.as_deref().map(passphrase);
    Ok(Reading {
        prices: Arc::new(Prices::builtin().with_overrides(&config.prices)),
        passphrase: passphrase.transpose()?,
    })
}

/// The first line of a file.
fn passphrase(path: &Path) -> Result<String> {
    let about = format!("could not read {}", path.display());
    let text = std::fs::read_to_string(path).map_err(io_error(about))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => {
            let error = format!("the first line of {} is empty", path.display());
            Err(CommandError::usage(error))
        }
    }
}

/// The sessions in a file.
pub(super) fn open(path: &Path, reading: &Reading) -> Result<Vec<Box<dyn Source>>> {
    quipu_convert::open(path, reading).map_err(refused)
}

/// An error of a source as a user meets it.
pub(super) fn refused(error: SourceError) -> CommandError {
    let (exit, hint) = match &error {
        SourceError::Io { .. } | SourceError::Refused(_) => (Exit::Environment, None),
        SourceError::Unknown(_) => (
            Exit::Data,
            Some("`quipu convert --help` says which formats are known"),
        ),
        SourceError::Many(_) => (
            Exit::Data,
            Some("`quipu import` it, then `quipu export` the sessions in it"),
        ),
        SourceError::Empty(_) | SourceError::Broken { .. } => (Exit::Data, None),
    };
    let error = match error {
        // Who reads from us may go away; that is found by its kind.
        SourceError::Refused(error) => CommandError::new(exit, error),
        error => CommandError::new(exit, error),
    };
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether it can be read only once: standard input, a pipe, what a shell puts in the place of a file.
fn is_piped(input: &Path) -> bool {
    let there = std::fs::metadata(input);
    input == Path::new("-") || there.is_ok_and(|it| !it.is_file() && !it.is_dir())
}

/// What comes through a pipe, as a file that can be read more than once. It has no name, so nothing is left of
/// it however the command ends.
struct Spooled(std::fs::File);

impl Spooled {
    fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

fn spool(input: &Path) -> Result<Spooled> {
    let about = format!("could not read {}", input.display());
    let mut file = tempfile::tempfile()?;
    let copied = if input == Path::new("-") {
        io::copy(&mut io::stdin().lock(), &mut file)
    } else {
        std::fs::File::open(input).and_then(|mut from| io::copy(&mut from, &mut file))
    };
    copied.map_err(io_error(about))?;
    Ok(Spooled(file))
}
