//! What is wrong with a workflow file, or looks wrong, and where.

use std::path::PathBuf;

use super::At;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The workflow does not run.
    Error,
    /// It runs, but perhaps not as it is meant.
    Warning,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file.
    pub file: PathBuf,
    /// The place in it.
    pub at: At,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// A word for programs, e.g. `unknown-key`.
    pub code: &'static str,
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.at.line > 0 {
            write!(f, "{}:{}:", self.at.line, self.at.column)?;
        }
        write!(f, " {}: {}", self.severity, one_line(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", one_line(hint)),
            None => Ok(()),
        }
    }
}

/// A text of a file as part of a message: control characters could move the cursor or forge lines.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// All findings of a file, in the order of the file. At least one is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl std::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, diagnostic) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Collects findings of one file.
#[derive(Debug)]
pub(crate) struct Findings {
    file: PathBuf,
    pub(crate) found: Vec<Diagnostic>,
}

impl Findings {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self {
            file,
            found: Vec::new(),
        }
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: At,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.add(Severity::Error, code, at, message.into(), hint.into());
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        at: At,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.add(Severity::Warning, code, at, message.into(), hint.into());
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        at: At,
        message: String,
        hint: Option<String>,
    ) {
        self.found.push(Diagnostic {
            severity,
            file: self.file.clone(),
            at,
            message,
            hint,
            code,
        });
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.found
            .iter()
            .any(|found| found.severity == Severity::Error)
    }

    /// All of them, in the order of the file, each once.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.found
            .sort_by(|a, b| (a.at, a.severity, &a.message).cmp(&(b.at, b.severity, &b.message)));
        self.found.dedup();
        self.found
    }
}
