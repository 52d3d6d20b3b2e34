//! Checking `.agentlog` traces.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use quipu_api::verify::{CheckedTrace, PassedOver, TraceFinding};
use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::verify::{Finding, Report, Severity, VerifyOptions, verify};
use quipu_formats::agentlog::{Item, Reader};

use crate::error::{CommandError, Exit, Result, io_error};
use crate::json;
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, clean, count};

/// Where a trace comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Stdin,
    File(&'a Path),
}

/// The first record is looked for in so much of a file.
const LOOKED_AT: u64 = 1 << 20;

impl<'a> Source<'a> {
    /// The trace that an argument means, if it means one.
    pub(crate) fn of(argument: &'a str) -> Result<Option<Self>> {
        let path = Path::new(argument);
        if argument == "-" {
            return Ok(Some(Self::Stdin));
        }
        if path
            .extension()
            .is_some_and(|extension| extension == "agentlog")
        {
            if path.exists() {
                return Ok(Some(Self::File(path)));
            }
            let error = anyhow::anyhow!("there is no file {argument}");
            return Err(CommandError::new(Exit::Data, error));
        }
        let is_trace = path.is_file() && begins_as_trace(path);
        Ok(is_trace.then_some(Self::File(path)))
    }

    /// What it is called in messages.
    fn name(self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    pub(crate) fn open(self) -> Result<Box<dyn Read>> {
        Ok(match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File(path) => {
                let could_not = io_error(format!("could not read {}", self.name()));
                Box::new(File::open(path).map_err(could_not)?)
            }
        })
    }

    pub(crate) fn check(self, options: &VerifyOptions) -> Result<Report> {
        verify(self.open()?, options).map_err(|error| {
            if error.kind() == io::ErrorKind::FileTooLarge {
                return self.too_large(options.limits.max_total_bytes);
            }
            io_error(format!("could not read {}", self.name()))(error)
        })
    }

    pub(crate) fn too_large(self, limit: u64) -> CommandError {
        let error = anyhow::anyhow!("{} is larger than {limit} bytes", self.name());
        CommandError::new(Exit::Data, error).hint("--max-total allows more")
    }
}

/// Whether the first record of a file has an id as those of traces are.
fn begins_as_trace(path: &Path) -> bool {
    // Whoever reads it says why it cannot be read.
    let Ok(file) = File::open(path) else {
        return false;
    };
    let limits = Limits {
        max_line_bytes: usize::try_from(LOOKED_AT).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    let mut reader = Reader::with_limits(file.take(LOOKED_AT), limits);
    match reader.next() {
        Ok(Some(Item::Record(record))) => {
            let id = record.node().get("id");
            id.and_then(|id| id.as_raw_str())
                .is_some_and(|id| id.starts_with("sha256:"))
        }
        _ => false,
    }
}

/// As many threads as asked for; by itself, as many as there are processors.
pub(crate) fn threads(asked: Option<u16>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    asked.map_or_else(processors, usize::from)
}

/// What a check found, as a document.
pub(crate) fn document(file: &str, report: &Report) -> CheckedTrace {
    let counts = report.counts.iter().map(|(rule, n)| (rule.name(), *n));
    let kinds = report.kinds.iter().map(|(kind, n)| (kind.as_str(), *n));
    CheckedTrace {
        file: file.to_owned(),
        format: "agentlog".to_owned(),
        clean: report.is_clean(),
        strict: report.strict,
        root: report.root.map(|id| id.to_string()),
        records: report.records,
        bytes: report.bytes,
        kinds: json::counts(kinds),
        unknown_kinds: report.unknown_kinds,
        sessions: report.sessions,
        repeated_ids: report.repeated_ids,
        blobs: report.blobs,
        blob_bytes: u64::try_from(report.blob_bytes).unwrap_or(u64::MAX),
        passed_over: PassedOver {
            byte_order_mark: report.passed.bom,
            cr_lf: report.passed.cr_lf,
            blank_lines: report.passed.blank,
            unterminated: report.passed.unterminated,
        },
        dialects: report.dialects.clone(),
        counts: json::counts(counts),
        findings: report.findings.iter().map(finding).collect(),
    }
}

fn finding(finding: &Finding) -> TraceFinding {
    TraceFinding {
        rule: finding.rule.name().to_owned(),
        section: finding.rule.section().to_owned(),
        severity: finding.severity.to_string(),
        line: finding.at.map(|at| at.line),
        offset: finding.at.map(|at| at.offset),
        field: finding.field.clone(),
        message: finding.message.clone(),
        dialect: finding.dialect.clone(),
        hint: finding.rule.hint().to_owned(),
    }
}

/// What a check found, for people.
pub(crate) fn write(out: &mut impl Write, name: &str, report: &Report, quiet: bool) -> Result<()> {
    let verdict = match report.worst() {
        None | Some(Severity::Note) => format!("{GREEN}ok{GREEN:#}"),
        Some(Severity::Warning) => format!("{YELLOW}not clean{YELLOW:#}"),
        Some(Severity::Error) => format!("{RED}broken{RED:#}"),
    };
    let records = count(report.records, "record");
    let sessions = count(report.sessions, "session");
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {verdict}, {records}, {sessions}",
        clean(name)
    )?;
    write_findings(out, report, quiet)?;
    for (dialect, n) in &report.dialects {
        writeln!(
            out,
            "  {DIM}{} made by: {}{DIM:#}",
            count(*n, "wrong id"),
            clean(dialect)
        )?;
    }
    for rule in report.counts.keys() {
        if rule.severity(report.strict) > Severity::Note {
            writeln!(
                out,
                "  {DIM}{} ({}): {}{DIM:#}",
                rule.name(),
                rule.section(),
                rule.hint()
            )?;
        }
    }
    Ok(())
}

/// The findings, one a line.
pub(crate) fn write_findings(out: &mut impl Write, report: &Report, quiet: bool) -> Result<()> {
    let shown = |severity: Severity| !quiet || severity > Severity::Note;
    for finding in report
        .findings
        .iter()
        .filter(|finding| shown(finding.severity))
    {
        let severity = finding.severity;
        let style = match severity {
            Severity::Note => DIM,
            Severity::Warning => YELLOW,
            Severity::Error => RED,
        };
        let rule = finding.rule.name();
        write!(out, "  {style}{severity}[{rule}]{style:#}")?;
        if let Some(at) = finding.at {
            write!(out, " line {} (byte {})", at.line, at.offset)?;
            if let Some(field) = &finding.field {
                write!(out, ", {}", clean(field))?;
            }
            write!(out, ":")?;
        }
        writeln!(out, " {}", clean(&finding.message))?;
    }
    for (rule, &n) in &report.counts {
        let kept = report.findings.iter().filter(|f| f.rule == *rule).count() as u64;
        if n > kept && shown(rule.severity(report.strict)) {
            writeln!(out, "  … and {} more {}", n - kept, rule.name())?;
        }
    }
    Ok(())
}
