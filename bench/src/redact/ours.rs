//! What ours makes of logs.

use anyhow::Result;
use quipu_redact::raw::{self, Finding, RawOptions};
use quipu_redact::{Engine, Key, Kind};

use crate::cpu::cpu;

/// What became of an input.
pub(super) struct Redacted {
    pub(super) bytes: Vec<u8>,
    pub(super) findings: Vec<Finding>,
    /// Seconds of processor time.
    pub(super) cpu: f64,
}

/// As most inputs are redacted.
pub(super) fn redact(engine: &Engine, bytes: &[u8]) -> Result<Redacted> {
    redact_with(engine, bytes, true)
}

/// With or without what is removed because of the file that it is of.
pub(super) fn redact_with(engine: &Engine, bytes: &[u8], files: bool) -> Result<Redacted> {
    // The same every time, so that runs can be compared.
    let mut options = RawOptions::new(Key::from_bytes([7; 32]));
    options.files = files;
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    let mut findings = Vec::new();
    let began = cpu();
    raw::redact(
        engine,
        &options,
        &mut &bytes[..],
        &mut out,
        &mut |finding| findings.push(finding),
    )?;
    Ok(Redacted {
        bytes: out,
        findings,
        cpu: cpu() - began,
    })
}

/// What a finding is, as far as people are concerned.
pub(super) fn kind(engine: &Engine, finding: &Finding) -> Kind {
    finding.what.kind(engine)
}
