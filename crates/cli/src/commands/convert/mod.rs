//! `quipu convert`

pub(crate) mod trace;
mod work;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use quipu_convert::{Reading, Source, SourceError};
use quipu_prices::Prices;

pub(super) use work::{Sessions, Work};

use crate::args::{Convert, Target};
use crate::config::Config;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::Place;

pub(crate) fn run(args: &Convert, place: &Place) -> Result<Exit> {
    let reading = reading(&args.target, place)?;
    let mut failed = None;
    let mut sources = Vec::new();
    let mut piped = None;
    for input in &args.inputs {
        let opened = if input == Path::new("-") {
            let spooled = spool()?;
            let opened = open(spooled.path(), &reading);
            piped = Some(spooled);
            opened
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
    let done = Work::new(
        &args.target,
        place,
        Sessions::of(sources.len().max(args.inputs.len())),
        (None, &reading),
    )?
    .all(sources, failed);
    drop(piped);
    done
}

/// How sources are read: prices as a person has set them, and the passphrase of pages.
pub(super) fn reading(target: &Target, place: &Place) -> Result<Reading> {
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

/// Standard input, as a file that can be read more than once.
fn spool() -> Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("stdin-").tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.flush()?;
    Ok(file)
}
