//! Writers by the names of their formats.

use std::io::{self, Write};

use quipu_formats::loss::Loss;
#[cfg(feature = "parquet")]
use quipu_formats::parquet::Tables;
use quipu_formats::projection::{Beside, Projection};
use quipu_formats::{
    agentlog, atif, claude, codex, exchange, flow, html, markdown, normalized, otlp, sts, text,
};
use quipu_model::{Event, Header, LogBody};

use crate::{Format, Report, Source, SourceError, pump};

/// How formats are written, where there is a choice.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// For [`Format::Agentlog`].
    pub agentlog: agentlog::project::Options,
    /// For [`Format::Normalized`]. What a source says of itself as a document goes before.
    pub normalized: normalized::Options,
    /// For [`Format::Html`].
    pub html: html::Options,
    /// For [`Format::Markdown`].
    pub markdown: markdown::Options,
    /// For [`Format::Text`].
    pub text: text::Options,
    /// For [`Format::Atif`].
    pub atif: atif::Options,
    /// For [`Format::Otlp`].
    pub otlp: otlp::Options,
    /// For [`Format::HuggingFace`].
    pub sts: sts::Options,
    /// For [`Format::ClaudeCode`].
    pub claude: claude::Options,
    /// For [`Format::Codex`].
    pub codex: codex::Options,
    /// For [`Format::Flow`].
    pub flow: flow::Options,
    /// For [`Format::Parquet`].
    #[cfg(feature = "parquet")]
    pub parquet: quipu_formats::parquet::Options,
}

impl Options {
    /// The same, for a session that was a document before.
    fn of(&self, document: &normalized::Options) -> Self {
        let mut own = self.clone();
        own.normalized = document.clone();
        own.html.transcript = document.clone();
        own
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
        Format::Html => html::writer(header, &options.html, out, beside),
        Format::Markdown => markdown::writer(header, &options.markdown, out, beside),
        Format::Text => text::writer(header, &options.text, out, beside),
        Format::Atif => atif::writer(header, &options.atif, out, beside),
        Format::Otlp => otlp::writer(header, &options.otlp, out, beside),
        Format::HuggingFace => sts::writer(header, &options.sts, out, beside),
        Format::ClaudeCode => claude::writer(header, &options.claude, out, beside),
        Format::Codex => codex::writer(header, &options.codex, out, beside),
        Format::Flow => flow::writer(header, &options.flow, out, beside),
        Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
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
    if to == Format::Flow && source.has_originals() && !source.is_redacted() {
        return originals(source, &header, out, beside);
    }
    write_with(source, to, &header, options, |options| {
        writer(to, &header, options, out, beside)
    })
}

/// Writes a run directory that is kept as it was, file by file.
fn originals(
    source: &mut dyn Source,
    header: &Header,
    mut out: Box<dyn Write + '_>,
    mut beside: Box<dyn Beside + '_>,
) -> Result<Report, SourceError> {
    let mut counted = Counted::default();
    let (reading, left) = pump(source, &mut counted)?;
    let mut loss = counted.0;
    loss.add(&left);
    let mut files = source.originals(&mut |name, bytes| beside.put(name, bytes))?;
    for (what, names) in [
        ("files that are not part of the transcript", &files.left),
        ("files with lines that are too long", &files.cut),
        ("files", &files.refused),
    ] {
        for _ in names {
            loss.dropped(what, 0);
        }
    }
    files.files.sort();
    for file in &files.files {
        writeln!(out, "{file}").map_err(SourceError::Refused)?;
    }
    out.flush().map_err(SourceError::Refused)?;
    Ok(Report {
        source: source.path().to_owned(),
        from: source.format().to_owned(),
        to: Format::Flow.as_str(),
        run_id: header.run_id.to_string(),
        reading,
        loss,
    })
}

/// Counts events that are carried by what they were read from.
#[derive(Default)]
struct Counted(Loss);

impl Projection for Counted {
    fn event(&mut self, _event: &Event<LogBody>) -> io::Result<()> {
        self.0.events += 1;
        self.0.carried += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        Ok(self.0)
    }
}

/// Adds the session of a source to tables.
///
/// # Errors
///
/// Those of [`write()`].
#[cfg(feature = "parquet")]
pub fn add<E: Write + Send, C: Write + Send>(
    source: &mut dyn Source,
    tables: &mut Tables<E, C>,
) -> Result<Report, SourceError> {
    let header = source.header()?;
    tables.begin(&header);
    write_with(
        source,
        Format::Parquet,
        &header,
        &Options::default(),
        |_| Ok(Box::new(Rows(tables))),
    )
}

/// A session in tables that others share.
#[cfg(feature = "parquet")]
struct Rows<'t, E: Write + Send, C: Write + Send>(&'t mut Tables<E, C>);

#[cfg(feature = "parquet")]
impl<E: Write + Send, C: Write + Send> Projection for Rows<'_, E, C> {
    fn event(&mut self, event: &Event<LogBody>) -> io::Result<()> {
        self.0.event(event)
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        self.0.end()
    }
}

fn write_with<'w>(
    source: &mut dyn Source,
    to: Format,
    header: &Header,
    options: &Options,
    writer: impl FnOnce(&Options) -> io::Result<Box<dyn Projection + 'w>>,
) -> Result<Report, SourceError> {
    let own = source.document().map(|document| options.of(document));
    let options = own.as_ref().unwrap_or(options);
    let mut writer = writer(options).map_err(SourceError::Refused)?;
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
