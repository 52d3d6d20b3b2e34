//! A run directory.

use std::io::Write;
use std::path::{Path, PathBuf};

use quipu_formats::flow::verify::Severity;
use quipu_formats::flow::{self, FlowError};
use quipu_model::Header;

use super::{Account, Receiver, Source, SourceError};

/// A run directory: transcripts and receipts of workflow steps, as one session.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// The run in this directory.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    fn broken(&self, error: FlowError) -> SourceError {
        match error {
            FlowError::Io { path, source } => SourceError::Io { path, source },
            error => SourceError::Broken {
                path: self.path.clone(),
                why: error.to_string(),
            },
        }
    }
}

impl Source for RunDirectory {
    fn format(&self) -> &'static str {
        "flow"
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn copy(&self, _to: &mut dyn Write) -> Result<(), SourceError> {
        Err(SourceError::Broken {
            path: self.path.clone(),
            why: "a run directory is not a single file".to_owned(),
        })
    }

    fn header(&mut self) -> Result<Header, SourceError> {
        let run = flow::read(&self.path, &mut |_| {}).map_err(|error| self.broken(error))?;
        Ok(run.header)
    }

    fn read(&mut self, to: &mut dyn Receiver) -> Result<Account, SourceError> {
        let mut refused = None;
        let run = flow::read(&self.path, &mut |event| {
            if refused.is_none() {
                refused = to.event(event).err();
            }
        });
        if let Some(refused) = refused {
            return Err(SourceError::Refused(refused));
        }
        let run = run.map_err(|error| self.broken(error))?;
        let lines: u64 = run.steps.iter().map(|step| step.lines).sum();
        let journal = &run.journal;
        let told: u64 = journal.kinds.values().sum();
        let mut account = Account {
            records: lines + told + journal.malformed,
            ..Account::default()
        };
        if journal.foreign > 0 {
            let foreign = journal.foreign;
            let remark = format!("events.jsonl: {foreign} lines that another program wrote");
            account.remarks.push(remark);
        }
        let mut issues: Vec<_> = run.issues.iter().collect();
        issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));
        for issue in issues {
            let line = issue.line.map_or(String::new(), |line| format!(":{line}"));
            let told = format!("{}{line}: {}", issue.path, issue.message);
            // What is an error is never only remarked: what is made of the run would look sound.
            if issue.severity == Severity::Error {
                account.problems.push(told);
            } else {
                account.remarks.push(told);
            }
        }
        Ok(account)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write as _};

    use quipu_model::{Attachment, Event};

    use super::*;

    struct Nobody;

    impl Receiver for Nobody {
        fn blob(&mut self, _: &Attachment, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn event(&mut self, _: Event) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn errors_of_a_run_are_problems() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run-1");
        let receipts = run.join("build/receipts");
        std::fs::create_dir_all(&receipts).unwrap();
        let receipt = r#"{"engine": "claude-step", "model": "claude-stub", "step_id": "a", "flow_key": "build", "run_id": "run-1", "agent_key": "b", "started_at": "2025-12-09T14:30:22Z", "completed_at": "2025-12-09T14:30:22Z", "duration_ms": 0, "status": "succeeded", "tokens": {"prompt": 0, "completion": 0, "total": 0}, "transcript_path": "llm/a-b-claude.jsonl"}"#;
        let mut file = std::fs::File::create(receipts.join("a-b.json")).unwrap();
        file.write_all(receipt.as_bytes()).unwrap();
        let account = RunDirectory::new(&run).read(&mut Nobody).unwrap();
        assert_eq!(
            account.problems,
            ["build/receipts/a-b.json: there is no transcript (llm/a-b-claude.jsonl)"]
        );
        assert_eq!(
            account.remarks,
            ["build/receipts/a-b.json: a stub says that it succeeded"]
        );
        assert!(!account.is_whole());
    }
}
