//! Writers by the names of their formats.

use std::io::{self, Write};

use quipu_formats::projection::{Beside, Projection};
use quipu_formats::{agentlog, exchange, normalized, otlp};
use quipu_model::Header;

use crate::{Format, Report, Source, SourceError, pump};

/// How formats are written, where there is a choice.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// For [`Format::Agentlog`].
    pub agentlog: agentlog::project::Options,
    /// For [`Format::Normalized`]. What a source says of itself as a document goes before.
    pub normalized: normalized::Options,
    /// For [`Format::Otlp`].
    pub otlp: otlp::Options,
}

impl Options {
    /// The same, for a session that was a document before.
    fn of(&self, document: &normalized::Options) -> Self {
        Self {
            normalized: document.clone(),
            ..self.clone()
        }
    }
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
        Format::Normalized => normalized::writer(header, &options.normalized, out, beside),
        Format::Otlp => otlp::writer(header, &options.otlp, out, beside),
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
    let own = source.document().map(|document| options.of(document));
    let options = own.as_ref().unwrap_or(options);
    let mut writer = writer(to, &header, options, out, beside).map_err(SourceError::Refused)?;
    let (reading, left) = pump(source, &mut *writer)?;
    let mut loss = writer.finish().map_err(SourceError::Refused)?;
    loss.add(&left);
    Ok(Report {
        source: source.path().to_owned(),
        from: source.format().to_owned(),
        to: to.as_str(),
        run_id: header.run_id.to_string(),
        reading,
        loss,
    })
}
