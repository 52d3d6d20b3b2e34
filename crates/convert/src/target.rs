//! Writers by the names of their formats.

use std::io::{self, Write};

use quipu_formats::loss::Loss;
#[cfg(feature = "parquet")]
use quipu_formats::parquet::Tables;
use quipu_formats::projection::{Beside, Projection};
use quipu_formats::{
    agentlog, atif, claude, codex, exchange, flow, html, markdown, normalized, otlp, sts, text,
};
#[cfg(feature = "parquet")]
use quipu_model::Event;
use quipu_model::Header;

use crate::{Account, Format, Report, Source, SourceError, original, pump};

/// How formats are written, where there is a choice.
#[derive(Debug, Clone, Default)]
pub struct TargetOptions {
    /// For [`Format::Agentlog`].
    pub agentlog: agentlog::project::ProjectionOptions,
    /// For [`Format::Normalized`]. What a source says of itself as a document goes before.
    pub normalized: normalized::NormalizedOptions,
    /// For [`Format::Html`].
    pub html: html::HtmlOptions,
    /// For [`Format::Markdown`].
    pub markdown: markdown::MarkdownOptions,
    /// For [`Format::Text`].
    pub text: text::TextOptions,
    /// For [`Format::Atif`].
    pub atif: atif::AtifOptions,
    /// For [`Format::Otlp`].
    pub otlp: otlp::OtlpOptions,
    /// For [`Format::HuggingFace`].
    pub sts: sts::StsOptions,
    /// For [`Format::ClaudeCode`].
    pub claude: claude::ClaudeOptions,
    /// For [`Format::Codex`].
    pub codex: codex::CodexOptions,
    /// For [`Format::Flow`].
    pub flow: flow::FlowOptions,
    /// For [`Format::Parquet`].
    #[cfg(feature = "parquet")]
    pub parquet: quipu_formats::parquet::ParquetOptions,
}

impl TargetOptions {
    /// Whether nothing is asked for that the format does not have by itself.
    pub(crate) fn is_plain(&self, to: Format) -> bool {
        match to {
            Format::Normalized => self.normalized == normalized::NormalizedOptions::default(),
            Format::Html => self.html.is_plain(),
            Format::Atif => self.atif == atif::AtifOptions::default(),
            _ => false,
        }
    }

    /// Whether something was removed from the session, and is said to be.
    fn is_shared(&self) -> bool {
        let privacy = self.normalized.privacy.as_ref();
        privacy.is_some_and(|privacy| *privacy != normalized::Privacy::local())
    }

    /// The same, for a session that was a document before.
    fn of(&self, document: &normalized::NormalizedOptions) -> Self {
        let mut own = self.clone();
        own.normalized = document.clone();
        own.html.transcript = document.clone();
        let nobody = normalized::Submitter::nobody();
        let local = normalized::Privacy::local();
        let shared = atif::Shared {
            submitter: document.submitter.clone().filter(|it| *it != nobody),
            privacy: document.privacy.clone().filter(|it| *it != local),
        };
        own.atif.shared = Some(shared).filter(|it| *it != atif::Shared::default());
        own
    }
}

/// How it is counted that a format does not say what was removed from a session, nor prove it.
const PRIVACY: &str = "privacy";

/// Whether a format says what was removed from a session.
const fn carries_receipts(to: Format) -> bool {
    matches!(to, Format::Normalized | Format::Html | Format::Atif)
}

/// A writer for one session.
///
/// # Errors
///
/// Those of whatever is written to, and [`io::ErrorKind::Unsupported`] for tables, which sessions share.
pub fn writer<'w>(
    to: Format,
    header: &Header,
    options: &TargetOptions,
    out: Box<dyn Write + 'w>,
    beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    match to {
        Format::Exchange => exchange::writer(header, &exchange::ExchangeOptions, out, beside),
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
    options: &TargetOptions,
    mut out: Box<dyn Write + 'w>,
    mut beside: Box<dyn Beside + 'w>,
) -> Result<Report, SourceError> {
    let header = source.header()?;
    if let Some(report) = original::give_back(source, to, options, &header, &mut out, &mut *beside)?
    {
        return Ok(report);
    }
    write_with(source, to, &header, options, |options| {
        writer(to, &header, options, out, beside)
    })
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
        &TargetOptions::default(),
        |_| Ok(Box::new(Rows(tables))),
    )
}

/// A session in tables that others share.
#[cfg(feature = "parquet")]
struct Rows<'t, E: Write + Send, C: Write + Send>(&'t mut Tables<E, C>);

#[cfg(feature = "parquet")]
impl<E: Write + Send, C: Write + Send> Projection for Rows<'_, E, C> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.event(event)
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        self.0.end()
    }
}

pub(crate) fn report(
    source: &dyn Source,
    to: Format,
    header: &Header,
    reading: Account,
    loss: Loss,
) -> Report {
    Report {
        source: source.path().to_owned(),
        from: source.format().to_owned(),
        to: to.as_str(),
        run_id: header.run_id.to_string(),
        reading,
        secrets: None,
        loss,
    }
}

fn write_with<'w>(
    source: &mut dyn Source,
    to: Format,
    header: &Header,
    options: &TargetOptions,
    writer: impl FnOnce(&TargetOptions) -> io::Result<Box<dyn Projection + 'w>>,
) -> Result<Report, SourceError> {
    let own = if let Some(document) = source.document() {
        options.of(document)
    } else {
        let mut document = options.normalized.clone();
        document.captured_at = document.captured_at.or(source.captured_at());
        options.of(&document)
    };
    let options = &own;
    let mut writer = writer(options).map_err(SourceError::Refused)?;
    let (reading, left) = pump(source, &mut *writer)?;
    let mut loss = writer.finish().map_err(SourceError::Refused)?;
    loss.add(&left);
    if options.is_shared() && !carries_receipts(to) {
        loss.dropped(PRIVACY, 0);
    }
    Ok(report(source, to, header, reading, loss))
}
