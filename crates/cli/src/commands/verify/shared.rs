//! Shared transcripts: their receipts, and the original.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use quipu_convert::Reading;
use quipu_convert::source::Receiver;
use quipu_exchange::verify::Severity;
use quipu_formats::normalized::{self, Beyond};
use quipu_model::{Attachment, Event};
use quipu_redact::receipt::{self, Against, Report, What};

use super::other::{Checked, Finding};
use crate::commands::convert::refused;
use crate::commands::export;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::redaction;
use crate::terminal::count;

/// Also checks the receipts of a transcript, where it has any.
pub(super) fn with_receipts(
    checked: Result<Option<Checked>>,
    copy: impl Read,
    path: &Path,
) -> Result<Option<Checked>> {
    let Some(mut checked) = checked? else {
        return Ok(None);
    };
    let about = format!("could not read {}", path.display());
    let report = receipt::verify(copy).map_err(io_error(about))?;
    // Most transcripts are of nobody who shared them, and commit to nothing. One that says that something was removed
    // has to, or whoever changed it would not be found out.
    let commits = !report
        .problems
        .iter()
        .any(|it| it.what == What::NoCommitment);
    if commits || report.is_shared {
        checked.size = format!("{}, {}", checked.size, count(report.spans, "redaction"));
        checked.add(&report);
    }
    Ok(Some(checked))
}

impl Checked {
    /// Adds what is wrong with receipts.
    fn add(&mut self, report: &Report) {
        let more = report.count.saturating_sub(report.problems.len() as u64);
        for problem in &report.problems {
            self.findings.push(Finding {
                rule: "receipt",
                severity: Severity::Error,
                file: None,
                line: None,
                seq: problem.seq,
                path: (!problem.field.is_empty()).then(|| problem.field.clone()),
                count: 1,
                message: problem.what.to_string(),
                hint: Some("docs/receipts.md says what is checked, and what it proves"),
            });
        }
        if more > 0
            && let Some(last) = self.findings.last_mut()
        {
            last.count += more;
        }
    }
}

/// Holds a shared copy against the session it was made of.
pub(super) fn against(copy: &str, original: &str, place: &HomePlace) -> Result<Checked> {
    let path = Path::new(copy);
    let about = || io_error(format!("could not read {copy}"));
    let mut file = File::open(path).map_err(about())?;
    let mut head = [0; 512];
    let read = file.read(&mut head).map_err(about())?;
    let is_page = head[..read].trim_ascii_start().starts_with(b"<");
    let file = File::open(path).map_err(about())?;
    let copy: Box<dyn Read> = if is_page {
        Box::new(normalized::embedded(file))
    } else {
        Box::new(io::BufReader::with_capacity(1 << 17, file))
    };
    let mut sources = export::of(place.meant(original)?, &Reading::default())?;
    let [source] = &mut sources[..] else {
        let error = anyhow::anyhow!("{original} holds several sessions");
        return Err(CommandError::new(Exit::Data, error).hint("name one by its id"));
    };
    let header = source.header().map_err(refused)?;
    let options = source.document().cloned().unwrap_or_default();
    let key = redaction::existing_identity(place)?;
    let against = Against::new(copy, &header, &options, key.as_ref()).map_err(about())?;
    let mut receiver = Holding(against);
    source.read(&mut receiver).map_err(refused)?;
    let report = receiver.0.finish().map_err(about())?;
    let opened = match key {
        Some(_) => format!("{} of them proved", report.opened),
        None => "none proved, without the key of whoever shared it".to_owned(),
    };
    let mut checked = Checked {
        what: "held against the original",
        size: format!(
            "{}, {}, {opened}",
            count(report.events, "event"),
            count(report.spans, "redaction")
        ),
        findings: Vec::new(),
    };
    checked.add(&report);
    Ok(checked)
}

/// Gives the events of the original to whatever compares them.
struct Holding<R>(Against<R>);

impl<R: Read> Receiver for Holding<R> {
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        self.0.event(&event, &Beyond::default())
    }

    fn event_and_more(&mut self, event: Event, more: Beyond) -> io::Result<()> {
        self.0.event(&event, &more)
    }
}
