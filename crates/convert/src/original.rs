//! Sources that are in the format that is asked for already.
//!
//! What somebody wrote in a format is given back in that format as they wrote it: a transcript with what was removed
//! from it and the proofs of that, a trace whose records are known by their hashes, a run directory file by file. It
//! is read all the same, for the account.

use std::io::{self, Write};
use std::thread;

use quipu_formats::agentlog::verify;
use quipu_formats::html;
use quipu_formats::loss::Loss;
use quipu_formats::projection::{Beside, Nowhere, Projection};
use quipu_model::{Event, Header};

use crate::target::{report, writer};
use crate::{Account, Format, Report, Source, SourceError, TargetOptions, pump};

/// Gives a source back as it was written, where it is in that format and nothing is to be changed; `None` where it has
/// to be written anew.
pub(crate) fn give_back<'w>(
    source: &mut dyn Source,
    to: Format,
    options: &TargetOptions,
    header: &Header,
    out: &mut (dyn Write + 'w),
    beside: &mut (dyn Beside + 'w),
) -> Result<Option<Report>, SourceError> {
    if source.is_redacted() {
        return Ok(None);
    }
    match to {
        Format::Agentlog if source.format() == to.as_str() => {
            let reading = trace(source, out)?;
            out.flush().map_err(SourceError::Refused)?;
            Ok(Some(report(source, to, header, reading, all(header))))
        }
        Format::Flow if source.has_originals() => {
            run_directory(source, header, out, beside).map(Some)
        }
        _ => {
            let is_document = source.original(to).is_some()
                || to == Format::Html && source.original(Format::Normalized).is_some();
            if is_document && options.is_plain(to) {
                document(source, to, header, out)
            } else {
                Ok(None)
            }
        }
    }
}

/// Every event was carried.
fn all(header: &Header) -> Loss {
    Loss {
        events: header.totals.events,
        carried: header.totals.events,
        ..Loss::default()
    }
}

/// Writes the bytes that a source is read from, as they are.
///
/// # Errors
///
/// Those of [`crate::write()`].
pub fn copy<'w>(
    source: &mut dyn Source,
    to: Format,
    mut out: Box<dyn Write + 'w>,
) -> Result<Report, SourceError> {
    let header = source.header()?;
    source.copy(&mut out)?;
    out.flush().map_err(SourceError::Refused)?;
    Ok(report(
        source,
        to,
        &header,
        Account::default(),
        all(&header),
    ))
}

/// Gives a document back as somebody wrote it, and a page of a document around the very document: what was removed from
/// it, and the proofs of that, are then what they were. It is read all the same, for the account. One that cannot be read
/// wholly is not given back, but written anew from what can be read.
fn document<'w>(
    source: &mut dyn Source,
    to: Format,
    header: &Header,
    out: &mut (dyn Write + 'w),
) -> Result<Option<Report>, SourceError> {
    let nowhere = Box::new(io::sink());
    let counted = writer(
        to,
        header,
        &TargetOptions::default(),
        nowhere,
        Box::new(Nowhere),
    );
    let mut counted = counted.map_err(SourceError::Refused)?;
    let (reading, _) = pump(source, &mut *counted)?;
    if !reading.is_whole() {
        return Ok(None);
    }
    let mut loss = counted.finish().map_err(SourceError::Refused)?;
    // A document is what it was. But the pictures of a trajectory are in files beside it, which are not read.
    loss.dropped
        .retain(|what, _| to == Format::Atif && what == "attachment bytes");
    loss.wrapped.clear();
    loss.inferred.clear();
    let unreadable = crate::source::unreadable(source.path());
    if let Some(original) = source.original(to) {
        pass(original.map_err(unreadable)?, out)?;
    } else if let Some(transcript) = source.original(Format::Normalized) {
        let mut page = html::Around::begin(header, &mut *out).map_err(SourceError::Refused)?;
        pass(transcript.map_err(unreadable)?, &mut page)?;
        page.end().map_err(SourceError::Refused)?;
    } else {
        return Ok(None);
    }
    out.flush().map_err(SourceError::Refused)?;
    Ok(Some(report(source, to, header, reading, loss)))
}

fn pass(mut from: impl io::Read, to: &mut dyn Write) -> Result<(), SourceError> {
    io::copy(&mut from, to)
        .map(drop)
        .map_err(SourceError::Refused)
}

/// Copies a trace, and checks it on the way: it stays as it is, but whoever gets it should know.
fn trace(source: &dyn Source, out: &mut dyn Write) -> Result<Account, SourceError> {
    let (reader, writer) = io::pipe().map_err(SourceError::Refused)?;
    let (copied, checked) = thread::scope(|scope| {
        let mut checks = verify::VerifyOptions {
            strict: false,
            ..verify::VerifyOptions::default()
        };
        checks.limits.max_total_bytes = u64::MAX;
        let checking = scope.spawn(move || verify::verify(reader, &checks));
        let mut both = Both(out, Some(writer));
        let copied = source.copy(&mut both);
        drop(both);
        match checking.join() {
            Ok(checked) => (copied, checked),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    copied?;
    let checked = checked.map_err(SourceError::Refused)?;
    let mut account = Account {
        records: checked.records,
        ..Account::default()
    };
    if !checked.is_clean() {
        let is_fault =
            |(rule, _): &(&verify::Rule, _)| rule.severity(false) != verify::Severity::Note;
        let faults = checked.counts.iter().filter(is_fault);
        let faults: Vec<String> = faults
            .map(|(rule, n)| format!("{n} {}", rule.name()))
            .collect();
        account.remarks.push(format!(
            "copied as it is, though not as the format wants it: {}; `quipu verify` tells more",
            faults.join(", ")
        ));
    }
    Ok(account)
}

/// Writes to two places. The second may go away.
struct Both<'w>(&'w mut dyn Write, Option<io::PipeWriter>);

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        if let Some(pipe) = &mut self.1
            && pipe.write_all(&bytes[..written]).is_err()
        {
            self.1 = None;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes a run directory that is kept as it was, file by file.
fn run_directory<'w>(
    source: &mut dyn Source,
    header: &Header,
    out: &mut (dyn Write + 'w),
    beside: &mut (dyn Beside + 'w),
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
    Ok(report(source, Format::Flow, header, reading, loss))
}

/// Counts events that are carried by what they were read from.
#[derive(Default)]
struct Counted(Loss);

impl Projection for Counted {
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        self.0.events += 1;
        self.0.carried += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Loss> {
        Ok(self.0)
    }
}
