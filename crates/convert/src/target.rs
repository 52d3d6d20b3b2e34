//! Writers by the names of their formats.

use std::io::{self, Write};

use quipu_formats::projection::{Beside, Projection};
use quipu_formats::{agentlog, exchange};
use quipu_model::Header;

use crate::{Format, Report, Source, SourceError, pump};

/// How formats are written, where there is a choice.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// For [`Format::Agentlog`].
    pub agentlog: agentlog::project::Options,
}

/// A writer for one session.
///
/// # Errors
///
/// Those of whatever is written to, and [`io::ErrorKind::Unsupported`] for tables, which sessions share.
pub fn writer<'w>(
    to: Format,
    header: &Header,
    options: &Options,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    match to {
        Format::Exchange => exchange::writer(header, &exchange::Options, out, beside),
        Format::Agentlog => agentlog::project::writer(header, &options.agentlog, out, beside),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Writes the session of a source in a format.
///
/// # Errors
///
/// What keeps the source from being read, or the target from being written: [`SourceError::Refused`].
pub fn write<'w>(
    source: &mut dyn Source,
    to: Format,
    options: &Options,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
) -> Result<Report, SourceError> {
    let header = source.header()?;
    let mut writer = writer(to, &header, options, out, beside).map_err(SourceError::Refused)?;
    let reading = pump(source, &mut *writer)?;
    let loss = writer.finish().map_err(SourceError::Refused)?;
    Ok(Report {
        source: source.path().to_owned(),
        from: source.format().to_owned(),
        to: to.as_str(),
        run_id: header.run_id.to_string(),
        reading,
        loss,
    })
}
