//! The directory of a run, which nothing leads out of.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::File;
use crate::flow::FlowError;
use crate::flow::verify::{Findings, Rule};

/// A run directory.
#[derive(Debug)]
pub(in crate::flow) struct Root {
    /// As it was given.
    path: PathBuf,
    /// Without links.
    real: PathBuf,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::flow) enum Resolved {
    /// To a file of the run.
    Inside(PathBuf),
    /// Nowhere, but not out of the run.
    Missing,
    /// Out of the run.
    Outside,
}

impl Root {
    pub(super) fn open(dir: &Path) -> Result<Self, FlowError> {
        let real = fs::canonicalize(dir).map_err(FlowError::io(dir))?;
        if !real.is_dir() {
            return Err(FlowError::NotARun(dir.to_owned()));
        }
        Ok(Self {
            path: dir.to_owned(),
            real,
        })
    }

    pub(in crate::flow) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the directory.
    pub(in crate::flow) fn name(&self) -> Option<String> {
        let name = self.real.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// A file of the run.
    pub(in crate::flow) fn file(&self, path: PathBuf) -> File {
        let below = path
            .strip_prefix(&self.path)
            .or_else(|_| path.strip_prefix(&self.real));
        let parts = below.unwrap_or(&path).components();
        let parts: Vec<_> = parts
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        File {
            rel: parts.join("/"),
            path,
        }
    }

    /// What is in a directory, by name. Links that lead out of the run are left out and told of; a directory
    /// that is not there is empty.
    pub(super) fn list(
        &self,
        dir: &Path,
        left: &mut usize,
        findings: &mut Findings,
    ) -> Result<Vec<PathBuf>, FlowError> {
        let Ok(real) = fs::canonicalize(dir) else {
            return Ok(Vec::new());
        };
        if !real.starts_with(&self.real) || !real.is_dir() {
            self.escapes(dir, findings);
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).map_err(FlowError::io(dir))? {
            let entry = entry.map_err(FlowError::io(dir))?;
            *left = left.checked_sub(1).ok_or_else(|| FlowError::TooMany {
                path: self.path.clone(),
            })?;
            let path = entry.path();
            let is_link = entry
                .file_type()
                .map_err(FlowError::io(&path))?
                .is_symlink();
            if is_link && !self.holds(&path) {
                self.escapes(&path, findings);
                continue;
            }
            found.push(path);
        }
        found.sort();
        Ok(found)
    }

    fn escapes(&self, path: &Path, findings: &mut Findings) {
        let file = self.file(path.to_owned());
        findings.add(Rule::PathEscapes, &file.rel, None, || {
            "a link that leads out of the run, or nowhere".to_owned()
        });
    }

    /// Whether a path, links followed, is inside.
    fn holds(&self, path: &Path) -> bool {
        fs::canonicalize(path).is_ok_and(|real| real.starts_with(&self.real))
    }

    /// Where a path that stands in a file leads, from a directory of the run.
    pub(super) fn resolve(&self, base: &Path, text: &str) -> Resolved {
        let path = Path::new(text);
        let joined = base.join(path);
        if let Ok(real) = fs::canonicalize(&joined) {
            let inside = real.starts_with(&self.real);
            return match inside {
                true if real.is_file() => Resolved::Inside(real),
                true => Resolved::Missing,
                false => Resolved::Outside,
            };
        }
        // Nothing is there; where it would be is seen from its parts.
        let base = fs::canonicalize(base).unwrap_or_else(|_| self.real.clone());
        let mut at = if path.is_absolute() {
            PathBuf::new()
        } else {
            base
        };
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    at.pop();
                }
                Component::CurDir => {}
                other => at.push(other),
            }
        }
        if at.starts_with(&self.real) {
            Resolved::Missing
        } else {
            Resolved::Outside
        }
    }
}
