//! The audit file: one line when a run begins and one when it ends, apart from transcripts.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::{Map, Value};

use super::context::RunFacts;
use super::mask::without;
use super::run::MASKED;
use super::text::first_bytes;
use super::{EngineError, EngineOptions, RunStatus};

/// No line is longer.
const LINE: usize = 4096;

/// Inputs whose names begin so are not written.
const SECRET: [&str; 4] = ["SECRET_", "API_KEY", "PASSWORD", "TOKEN"];

const VERSION: u32 = 1;

/// Whether an input is a secret, by its name.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|prefix| name.starts_with(prefix))
}

/// The audit file.
pub(super) struct Audit {
    path: PathBuf,
    file: File,
    /// Who runs this program.
    user: String,
    secrets: Vec<String>,
    goes_on: bool,
}

/// How a run ended.
pub(super) struct AuditEnd {
    pub(super) status: RunStatus,
    pub(super) exit_code: u8,
    pub(super) took: Duration,
    pub(super) error: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'a str,
    execution_id: &'a str,
    timestamp: String,
    user: &'a str,
    workflow_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    schema_version: u32,
}

impl Audit {
    /// Opens the audit file; `None` when none is wanted, or when the run goes on without what cannot be written.
    pub(super) fn open(
        options: &EngineOptions,
        secrets: &[String],
    ) -> Result<Option<Self>, EngineError> {
        let Some(path) = options.audit.as_deref() else {
            return Ok(None);
        };
        match Self::at(path, &options.user, secrets) {
            Ok(audit) => Ok(Some(Self {
                goes_on: options.go_on_unrecorded,
                ..audit
            })),
            Err(_) if options.go_on_unrecorded => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens an audit file.
    pub(super) fn at(path: &Path, user: &str, secrets: &[String]) -> Result<Self, EngineError> {
        let file = Self::open_file(path).map_err(|source| EngineError::Audit {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            user: user.to_owned(),
            secrets: secrets.to_vec(),
            goes_on: false,
        })
    }

    fn open_file(path: &Path) -> std::io::Result<File> {
        if let Some(directory) = path.parent() {
            quipu_files::create_directory(directory)?;
        }
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)
    }

    /// A run begins.
    pub(super) fn started(&self, facts: &RunFacts) -> Result<(), EngineError> {
        let inputs: Map<String, Value> = facts
            .inputs
            .iter()
            .map(|(name, value)| {
                let shown = if is_secret(name) {
                    MASKED.into()
                } else {
                    value.clone()
                };
                (name.clone(), shown)
            })
            .collect();
        let mut line = line("workflow.started", facts, &self.user);
        line.inputs = Some(inputs).filter(|inputs| !inputs.is_empty());
        self.append(line)
    }

    /// A run has ended.
    pub(super) fn completed(&self, facts: &RunFacts, end: &AuditEnd) -> Result<(), EngineError> {
        let mut line = line("workflow.completed", facts, &self.user);
        line.status = Some(match end.status {
            RunStatus::Succeeded => "success",
            RunStatus::Failed => "failure",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Paused => "paused",
        });
        line.exit_code = Some(end.exit_code);
        line.duration_ms = Some(super::chronicle::millis(end.took));
        let error = end.error.as_deref();
        line.error = error.map(|error| without(&self.secrets, error));
        self.append(line)
    }

    fn append(&self, line: Line<'_>) -> Result<(), EngineError> {
        let text = short(line);
        match (&self.file).write_all(text.as_bytes()) {
            Err(source) if !self.goes_on => Err(EngineError::Audit {
                path: self.path.clone(),
                source,
            }),
            _ => Ok(()),
        }
    }
}

fn line<'a>(event: &'a str, facts: &'a RunFacts, user: &'a str) -> Line<'a> {
    let now = facts.clock.now().to_zoned(TimeZone::UTC);
    Line {
        event,
        execution_id: facts.run_id.as_str(),
        timestamp: now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        user,
        workflow_name: &facts.name,
        inputs: None,
        inputs_truncated: None,
        status: None,
        exit_code: None,
        duration_ms: None,
        error: None,
        schema_version: VERSION,
    }
}

/// The line with its end, at most [`LINE`] bytes long: the longest input gives way first, then the error.
fn short(mut line: Line<'_>) -> String {
    loop {
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        if text.len() <= LINE {
            return text;
        }
        let longest = line.inputs.as_mut().and_then(|inputs| {
            let longest = inputs
                .iter()
                .max_by_key(|(_, value)| value.to_string().len())
                .filter(|(_, value)| value.to_string().len() > "\"…\"".len())
                .map(|(name, _)| name.clone())?;
            inputs.get_mut(&longest)
        });
        if let Some(value) = longest {
            *value = "…".into();
            line.inputs_truncated = Some(true);
        } else if let Some(error) = line.error.as_mut().filter(|error| error.len() > 1) {
            let half = first_bytes(error, error.len() / 2).len();
            error.truncate(half);
        } else if line.inputs.take().is_some() {
            // So many inputs that even their names do not fit.
            line.inputs_truncated = Some(true);
        } else {
            return text;
        }
    }
}
