//! Files and directories of the formats that others define: by the rules of each.

use std::fs::File;
use std::io::{Read as _, Write};
use std::path::Path;

use quipu_agents::HEAD;
use quipu_api::verify::{CheckedOther, OtherFinding};
use quipu_exchange::verify::Severity;
use quipu_exchange::{Item, Reader};
use quipu_formats::{atif, flow, normalized};

use super::shared;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, clean};

/// The longest trajectory that is checked: it is held as a whole.
const LONGEST: u64 = 1 << 30;

/// What is wrong with a file of another format.
pub(crate) struct Checked {
    pub(super) what: &'static str,
    pub(super) size: String,
    pub(super) findings: Vec<Finding>,
}

pub(super) struct Finding {
    pub(super) rule: &'static str,
    pub(super) severity: Severity,
    pub(super) file: Option<String>,
    pub(super) line: Option<u64>,
    pub(super) seq: Option<u64>,
    pub(super) path: Option<String>,
    pub(super) count: u64,
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

impl Checked {
    /// Checks what is at this path; `None` when it is of no such format.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>> {
        if path.is_dir() {
            let run = flow::run_around(path).unwrap_or_else(|| path.to_owned());
            return run_directory(&run).map(Some);
        }
        if !path.is_file() {
            return Ok(None);
        }
        // A file of a run stands for the whole of it.
        if let Some(run) = flow::run_of(path) {
            return run_directory(&run).map(Some);
        }
        let about = || io_error(format!("could not read {}", path.display()));
        let mut head = Vec::new();
        let file = File::open(path).map_err(about())?;
        file.take(HEAD as u64)
            .read_to_end(&mut head)
            .map_err(about())?;
        let is_page = head.trim_ascii_start().starts_with(b"<");
        let dialect = quipu_agents::identify(&head, head.len() < HEAD);
        let name = dialect.map_or("", |(_, dialect)| dialect.name);
        let file = || File::open(path).map_err(about());
        match name {
            _ if is_page => {
                let page = || file().map(normalized::embedded);
                shared::with_receipts(transcript(normalized::verify(page()?), path), page()?, path)
            }
            "normalized" => {
                shared::with_receipts(transcript(normalized::verify(file()?), path), file()?, path)
            }
            "atif" => trajectory(path),
            _ => Ok(None),
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        worst.is_none_or(|worst| worst == Severity::Note)
    }

    pub(crate) fn document(&self, name: &str) -> CheckedOther {
        let findings = self.findings.iter().map(|finding| OtherFinding {
            rule: finding.rule.to_owned(),
            severity: finding.severity.to_string(),
            file: finding.file.clone(),
            line: finding.line,
            seq: finding.seq,
            path: finding.path.clone(),
            count: finding.count,
            message: finding.message.clone(),
            hint: finding.hint.map(str::to_owned),
        });
        CheckedOther {
            file: name.to_owned(),
            format: self.what.to_owned(),
            clean: self.is_clean(),
            findings: findings.collect(),
        }
    }

    pub(crate) fn write(&self, out: &mut impl Write, name: &str, quiet: bool) -> Result<()> {
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        let verdict = match worst {
            None | Some(Severity::Note) => format!("{GREEN}ok{GREEN:#}"),
            Some(Severity::Warning) => format!("{YELLOW}not clean{YELLOW:#}"),
            Some(Severity::Error) => format!("{RED}broken{RED:#}"),
        };
        let (what, size) = (self.what, &self.size);
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}: {verdict}, {what}, {size}",
            clean(name)
        )?;
        let mut hinted = Vec::new();
        for finding in &self.findings {
            if quiet && finding.severity == Severity::Note {
                continue;
            }
            let style = match finding.severity {
                Severity::Note => DIM,
                Severity::Warning => YELLOW,
                Severity::Error => RED,
            };
            let line = match (finding.line, finding.seq) {
                (Some(line), _) => Some(format!("line {line}")),
                (None, Some(seq)) => Some(format!("seq {seq}")),
                (None, None) => None,
            };
            let file = finding.file.as_deref().map(|file| clean(file).into_owned());
            let path = finding.path.as_deref().map(|path| clean(path).into_owned());
            let place: Vec<String> = [file, line, path].into_iter().flatten().collect();
            let place = place.join(" ");
            let times = match finding.count {
                0 | 1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            let (severity, rule) = (finding.severity, finding.rule);
            let message = clean(&finding.message);
            writeln!(
                out,
                "  {style}{severity}[{rule}]{style:#} {place}: {message}{times}"
            )?;
            if let Some(hint) = finding.hint
                && finding.severity > Severity::Note
                && !hinted.contains(&(rule, hint))
            {
                hinted.push((rule, hint));
            }
        }
        for (rule, hint) in hinted {
            writeln!(out, "  {DIM}{rule}: {hint}{DIM:#}")?;
        }
        Ok(())
    }
}

/// Refuses what is no recording at all: calling it a broken one would have somebody repair it.
pub(crate) fn refuse_what_is_no_recording(path: &Path) -> Result<()> {
    let mut head = Vec::new();
    let about = || io_error(format!("could not read {}", path.display()));
    let file = File::open(path).map_err(about())?;
    file.take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(about())?;
    let begin = head.trim_ascii_start();
    let is_event = matches!(Reader::new(&head[..]).next(), Ok(Some(Item::Event(_))));
    if is_event || begin.is_empty() || begin.starts_with(b"{\"seq\"") {
        return Ok(());
    }
    let found = quipu_agents::identify(&head, head.len() < HEAD);
    let what = match found {
        Some((_, dialect)) => format!("a log of {}", dialect.brand),
        None if memchr::memmem::find(begin, b"\"schemaVersion\"").is_some() => {
            "a transcript of a version that is not known".to_owned()
        }
        None if quipu_agents::holder(&head).is_some() => "an archive of logs".to_owned(),
        None if begin.starts_with(b"<") => "a page".to_owned(),
        None => return Ok(()),
    };
    let error = anyhow::anyhow!("{} is {what}, and no recording", path.display());
    let hint = "`quipu convert --to normalized` and `quipu import` account for what is in it";
    Err(CommandError::new(Exit::Data, error).hint(hint))
}

fn run_directory(path: &Path) -> Result<Checked> {
    let report = flow::verify(path).map_err(|error| {
        let exit = match error {
            flow::FlowError::Io { .. } => Exit::Environment,
            _ => Exit::Data,
        };
        CommandError::new(exit, error)
    })?;
    let findings = report.findings.into_iter().map(|finding| Finding {
        rule: finding.rule.name(),
        severity: finding.severity,
        file: Some(finding.path),
        line: finding.line,
        seq: None,
        path: None,
        count: finding.count,
        message: finding.message,
        hint: finding.rule.hint(),
    });
    Ok(Checked {
        what: "run directory",
        size: format!(
            "{} transcripts, {} receipts",
            report.transcripts, report.receipts
        ),
        findings: findings.collect(),
    })
}

fn transcript(
    report: Result<normalized::Report, normalized::NormalizedError>,
    path: &Path,
) -> Result<Option<Checked>> {
    let about = format!("could not read {}", path.display());
    let report = report
        .map_err(|error| CommandError::new(Exit::Data, anyhow::Error::new(error).context(about)))?;
    let findings = report.findings.into_iter().map(|finding| Finding {
        rule: finding.rule.name(),
        severity: finding.severity,
        file: None,
        line: finding.line,
        seq: finding.seq,
        path: Some(finding.path),
        count: 1,
        message: finding.message,
        hint: finding.rule.hint(),
    });
    Ok(Some(Checked {
        what: "normalized transcript",
        size: format!("{} events", report.events),
        findings: findings.collect(),
    }))
}

fn trajectory(path: &Path) -> Result<Option<Checked>> {
    let about = || io_error(format!("could not read {}", path.display()));
    let size = path.metadata().map_err(about())?.len();
    if size > LONGEST {
        let error = anyhow::anyhow!("{} is longer than 1 GiB", path.display());
        return Err(CommandError::new(Exit::Data, error));
    }
    let bytes = std::fs::read(path).map_err(about())?;
    let text = String::from_utf8_lossy(&bytes);
    let findings = atif::verify(&text).into_iter().map(|finding| Finding {
        rule: finding.rule.name(),
        severity: finding.severity,
        file: None,
        line: None,
        seq: None,
        path: Some(finding.path),
        count: 1,
        message: finding.message,
        hint: None,
    });
    Ok(Some(Checked {
        what: "ATIF",
        size: crate::terminal::bytes(size),
        findings: findings.collect(),
    }))
}
