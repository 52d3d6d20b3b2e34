//! `quipu verify`

pub(crate) mod other;
mod shared;
pub(crate) mod trace;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use quipu_api::verify as api;
use quipu_exchange::lines::Limits;
use quipu_exchange::verify::{Report, Severity};
use quipu_record::Storage;

use crate::args::Verify;
use crate::error::{Exit, Result, io_error};
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, clean, count, out};
use crate::{json, locate};

pub(crate) fn run(args: &Verify, place: &locate::HomePlace) -> Result<Exit> {
    let mut out = out();
    let mut documents = Vec::new();
    let (mut clean, mut failed) = (true, None);
    for run in &args.runs {
        let checked = match check(run, args, place) {
            Ok(checked) => checked,
            Err(error) => {
                // The others are still worth checking.
                documents.push(api::Checked::Failed(super::failed(run, &error)));
                super::keep_first(&mut failed, error);
                continue;
            }
        };
        match checked {
            Checked::Trace(report) => {
                clean &= report.is_clean();
                if args.json {
                    documents.push(api::Checked::Trace(Box::new(trace::document(run, &report))));
                } else {
                    trace::write(&mut out, run, &report, args.quiet)?;
                }
            }
            Checked::Other(report) => {
                clean &= report.is_clean();
                if args.json {
                    documents.push(api::Checked::Other(report.document(run)));
                } else {
                    report.write(&mut out, run, args.quiet)?;
                }
            }
            Checked::Transcript(path, report) => {
                clean &= report.is_clean();
                if args.json {
                    let report = json::report(&json::path(&path), &report);
                    documents.push(api::Checked::Transcript(Box::new(report)));
                } else {
                    write_report(&mut out, &path, &report, args.quiet)?;
                }
            }
        }
    }
    if args.json {
        writeln!(out, "{}", json::document(&documents)?)?;
    }
    out.flush()?;
    match failed {
        Some(error) => Err(error),
        None if clean => Ok(Exit::Done),
        None => Ok(Exit::Found),
    }
}

enum Checked {
    Trace(Box<quipu_formats::agentlog::verify::Report>),
    Other(other::Checked),
    Transcript(PathBuf, Report),
}

fn check(run: &str, args: &Verify, place: &locate::HomePlace) -> Result<Checked> {
    if let Some(original) = &args.against {
        return shared::against(run, original, place).map(Checked::Other);
    }
    if let Some(source) = trace::Source::of(run)? {
        let options = quipu_formats::agentlog::verify::VerifyOptions {
            limits: args.caps.limits(),
            strict: !args.permissive,
            threads: trace::threads(args.threads),
        };
        return Ok(Checked::Trace(Box::new(source.check(&options)?)));
    }
    if let Some(checked) = other::Checked::of(Path::new(run))? {
        return Ok(Checked::Other(checked));
    }
    let path = place.transcript(run)?;
    other::refuse_what_is_no_recording(&path)?;
    let report = Storage::around(&path)
        .verify(&path, Limits::default())
        .map_err(io_error(format!("could not read {}", path.display())))?;
    Ok(Checked::Transcript(path, report))
}

fn write_report(
    out: &mut impl std::io::Write,
    path: &Path,
    report: &Report,
    quiet: bool,
) -> Result<()> {
    let verdict = match report.worst() {
        None | Some(Severity::Note) => format!("{GREEN}ok{GREEN:#}"),
        Some(Severity::Warning) => format!("{YELLOW}not clean{YELLOW:#}"),
        Some(Severity::Error) => format!("{RED}broken{RED:#}"),
    };
    let name = path.display().to_string();
    let events = count(report.events, "event");
    writeln!(out, "{BOLD}{}{BOLD:#}: {verdict}, {events}", clean(&name))?;
    for finding in &report.findings {
        let severity = finding.rule.severity();
        if quiet && severity == Severity::Note {
            continue;
        }
        let style = match severity {
            Severity::Note => DIM,
            Severity::Warning => YELLOW,
            Severity::Error => RED,
        };
        let place = match (finding.at, finding.seq) {
            (Some(at), Some(seq)) => format!(" {at}, seq {seq}:"),
            (Some(at), None) => format!(" {at}:"),
            (None, Some(seq)) => format!(" seq {seq}:"),
            (None, None) => String::new(),
        };
        let rule = finding.rule.name();
        let message = clean(&finding.message);
        writeln!(out, "  {style}{severity}[{rule}]{style:#}{place} {message}")?;
    }
    for (rule, &n) in &report.counts {
        let kept = report.findings.iter().filter(|f| f.rule == *rule).count() as u64;
        if n > kept {
            writeln!(out, "  … and {} more {}", n - kept, rule.name())?;
        }
    }
    let mut hinted: Vec<_> = report
        .counts
        .keys()
        .filter(|rule| rule.severity() > Severity::Note)
        .filter_map(|rule| rule.hint().map(|hint| (rule.name(), hint)))
        .collect();
    hinted.dedup();
    for (rule, hint) in hinted {
        writeln!(out, "  {DIM}{rule}: {hint}{DIM:#}")?;
    }
    Ok(())
}
