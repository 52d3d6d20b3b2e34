//! Mending `.agentlog` traces: a new file, or what could be in one.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use quipu_api::repair::{self, MendedTrace};
use quipu_formats::agentlog::Fault;
use quipu_formats::agentlog::repair::{Change, RepairError, RepairOptions, Report, repair};
use quipu_formats::agentlog::verify::{self, verify};
use tempfile::NamedTempFile;

use super::super::verify::trace as check;
use crate::args::Repair;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::json;
use crate::terminal::{clean, count};

/// What came of a trace.
pub(crate) struct Outcome {
    report: Report,
    /// The new file, and what is left in it. `None` when it was only said what could be done.
    written: Option<(String, verify::Report)>,
}

pub(crate) fn mend(source: check::Source<'_>, args: &Repair) -> Result<Outcome> {
    let limits = args.caps.limits();
    let Some(output) = &args.output else {
        let all = RepairOptions {
            limits,
            ..RepairOptions::ALL
        };
        let report = repair(source.open()?, io::sink(), &all);
        let report = report.map_err(|error| refused(error, source))?;
        return Ok(Outcome {
            report,
            written: None,
        });
    };
    let options = RepairOptions {
        limits,
        rehash: args.rehash,
        relink: args.relink,
        drop_torn: args.drop_torn,
    };
    let could_not = || io_error(format!("could not write {}", output.display()));
    if output.symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let directory = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Private to its owner, as everything that is written; gone when anything fails.
    let temporary = NamedTempFile::new_in(directory).map_err(could_not())?;
    let mut writer = BufWriter::with_capacity(1 << 16, temporary.as_file());
    let report = repair(source.open()?, &mut writer, &options).map_err(|error| match error {
        RepairError::Write(error) => could_not()(error),
        other => refused(other, source),
    })?;
    drop(writer);
    temporary.as_file().sync_all().map_err(could_not())?;
    let again = temporary.reopen().map_err(could_not())?;
    let left = verify(
        again,
        &verify::VerifyOptions {
            limits: quipu_exchange::lines::Limits {
                // New ids may be longer than old ones; what was written is ours to read.
                max_total_bytes: u64::MAX,
                ..limits
            },
            strict: true,
            threads: check::threads(None),
        },
    );
    let left = left.map_err(could_not())?;
    temporary
        .persist_noclobber(output)
        .map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(output),
            _ => could_not()(error.error),
        })?;
    // The name is part of the file: on disk once the directory is.
    std::fs::File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(could_not())?;
    Ok(Outcome {
        report,
        written: Some((output.display().to_string(), left)),
    })
}

fn exists(output: &Path) -> CommandError {
    let error = anyhow::anyhow!("{} is there already", output.display());
    CommandError::new(Exit::Environment, error).hint("nothing is overwritten; give another name")
}

fn refused(error: RepairError, source: check::Source<'_>) -> CommandError {
    match error {
        RepairError::TooLarge(limit) => source.too_large(limit),
        RepairError::Line { ref fault, .. } => {
            let hint = match fault {
                Fault::Torn => "--drop-torn leaves it out",
                Fault::TooDeep(_) => "--max-depth allows deeper ones",
                Fault::TooLong { .. } => "--max-line allows longer ones",
                _ => "a line that is no record cannot be mended; `quipu verify` tells more",
            };
            CommandError::new(Exit::Data, error).hint(hint)
        }
        RepairError::Read(_) | RepairError::Write(_) => CommandError::new(Exit::Environment, error),
    }
}

impl Outcome {
    /// Whether there is more to do.
    pub(crate) fn exit(&self) -> Exit {
        let done = match &self.written {
            Some((_, left)) => left.is_clean(),
            None => self.report.counts.is_empty(),
        };
        if done { Exit::Done } else { Exit::Found }
    }

    /// As a document.
    pub(crate) fn document(&self, file: &str) -> MendedTrace {
        let counts = self.report.counts.iter();
        let written = self.written.as_ref();
        MendedTrace {
            file: file.to_owned(),
            format: "agentlog".to_owned(),
            written: written.map(|(path, _)| path.clone()),
            records: self.report.records,
            counts: json::counts(counts.map(|(sort, n)| (sort.name(), *n))),
            changes: self.report.changes.iter().map(change).collect(),
            left: written.map(|(path, left)| check::document(path, left)),
        }
    }

    /// For people.
    pub(crate) fn write(&self, out: &mut impl Write, file: &str) -> Result<()> {
        let report = &self.report;
        let changes = report.counts.values().sum::<u64>();
        let file = clean(file);
        match &self.written {
            None if changes == 0 => writeln!(out, "{file}: nothing to mend")?,
            None => writeln!(out, "{file}: {} could be made", count(changes, "change"))?,
            Some((path, _)) => {
                let records = count(report.records, "record");
                let changes = count(changes, "change");
                writeln!(
                    out,
                    "{file}: {records} with {changes} written to {}",
                    clean(path)
                )?;
            }
        }
        for change in &report.changes {
            writeln!(out, "  line {}: {}", change.line, clean(&describe(change)))?;
        }
        for (sort, &n) in &report.counts {
            let kept = report
                .changes
                .iter()
                .filter(|change| change.sort == *sort)
                .count() as u64;
            if n > kept {
                writeln!(out, "  … and {} more {}", n - kept, sort.name())?;
            }
        }
        match &self.written {
            Some((_, left)) if left.is_clean() => writeln!(out, "  nothing is left to mend")?,
            Some((_, left)) => {
                writeln!(out, "  what is left:")?;
                check::write_findings(out, left, true)?;
            }
            None if changes > 0 => {
                writeln!(
                    out,
                    "  --rehash, --relink and --drop-torn with -o FILE write a mended copy"
                )?;
            }
            None => {}
        }
        Ok(())
    }
}

fn change(change: &Change) -> repair::Change {
    repair::Change {
        line: change.line,
        change: change.sort.name().to_owned(),
        field: change.field.to_owned(),
        from: change.from.clone(),
        to: change.to.clone(),
    }
}

fn describe(change: &Change) -> String {
    let sort = change.sort.name();
    let from = change.from.as_deref().unwrap_or("nothing");
    match &change.to {
        Some(to) => format!("{sort} {}: {from} to {to}", change.field),
        None => format!("{sort}: {from}"),
    }
}
