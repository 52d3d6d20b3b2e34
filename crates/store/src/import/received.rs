//! Transcripts that others submitted: read like any log, and marked with who they came from.
//!
//! `<home>/submissions` has their documents and receipts (`quipu_submit::server::Disk`); nothing here writes to it. What is
//! known of them follows: a document that came is imported, one that was deleted is forgotten, with all that was made of it.
//! Whose it is stands in the receipt, so that a catalogue that is made again knows it as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quipu_agents::{FAMILIES, Family, NORMALIZED};
use quipu_model::Timestamp;
use quipu_submit::TranscriptId;
use quipu_submit::protocol::Listed;
use quipu_submit::server::{Disk, Held};

use super::find::{self, Candidate, Found, Search};
use super::plan::Job;
use super::report::{Problem, Report};
use super::{ImportError, ImportOptions, Progress, Store, refused};
use crate::catalogue::{Filter, Order, Received, ReceivedFrom, TranscriptRow};
use crate::hide::Hide;

/// Where submissions are, below a home.
const SUBMISSIONS: &str = "submissions";
/// How long is waited while another process imports.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often is looked whether it is done.
const PAUSE: Duration = Duration::from_millis(20);
/// How many submissions are looked at, and imported, at a time.
const BATCH: usize = 500;

/// What was done so that what is known follows what was submitted.
#[derive(Debug, Default)]
pub struct Followed {
    /// Transcripts that were not known and are now.
    pub received: u64,
    /// Transcripts that were deleted, and are forgotten now.
    pub forgotten: u64,
    /// Transcripts whose receipts cannot be read.
    pub unreadable: u64,
    /// What went wrong with single documents.
    pub problems: Vec<Problem>,
}

/// Who a log came from; `None` when it is not the document of a submission. A home that was moved still knows its own.
pub(super) fn sender(home: &Path, path: &Path) -> Option<ReceivedFrom> {
    let id = Disk::id_of_document(path)?;
    let (pseudonym, key_id) = match Disk::held_below(&home.join(SUBMISSIONS), &id) {
        Ok(Some(Held::There(listed))) => (listed.receipt.pseudonym, Some(listed.receipt.key_id)),
        Ok(Some(Held::Gone(deletion))) => (deletion.pseudonym, Some(deletion.key_id)),
        // It is another's all the same.
        Ok(None) | Err(_) => (String::new(), None),
    };
    Some(ReceivedFrom { pseudonym, key_id })
}

impl Store {
    /// Where submissions are kept: what `quipu_submit::server::Disk` opens.
    pub fn submissions(&self) -> PathBuf {
        self.home.join(SUBMISSIONS)
    }

    /// Imports transcripts that were submitted, so that they are listed, searched and shown. One that is known already stays
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`ImportError::Busy`], at once, while another import is at work: [`Store::follow_submissions`] does it later. What is
    /// wrong with a document is in the report.
    pub fn receive_submissions(
        &self,
        received: &[Listed],
        now: Timestamp,
    ) -> Result<Report, ImportError> {
        let root = self.submissions_root()?;
        let mut search = Search::default();
        for listed in received {
            let path = Disk::document_below(&root, &listed.receipt.transcript_id);
            match fs::metadata(&path) {
                Ok(metadata) => search.found.push(Candidate {
                    stamp: find::stamp(&metadata),
                    path,
                    found: Found::Log,
                    place: place(listed.agent.as_deref()),
                }),
                // It was deleted meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => search.problems.push(Problem::refused(&path, &error)),
            }
        }
        self.receive(&search, now)
    }

    /// Imports one transcript that was submitted. See [`Store::receive_submissions`].
    ///
    /// # Errors
    ///
    /// As there; a document that cannot be imported is an error as well.
    pub fn receive_submission(
        &self,
        id: &TranscriptId,
        now: Timestamp,
    ) -> Result<Report, ImportError> {
        let root = self.submissions_root()?;
        match Disk::held_below(&root, id).map_err(refused(root))? {
            Some(Held::There(listed)) => self.receive_submissions(&[*listed], now),
            _ => Ok(Report::default()),
        }
    }

    /// Forgets a transcript that was deleted, and everything that was made of it: what the archive kept, its events, what
    /// can be searched. Says whether it was known.
    ///
    /// # Errors
    ///
    /// [`ImportError::Busy`], at once, while an import is at work: [`Store::follow_submissions`] does it later.
    pub fn forget_received(&self, id: &TranscriptId, now: Timestamp) -> Result<bool, ImportError> {
        // An import that is at work may be about to make it known.
        drop(self.lock()?);
        let rows = self.rows_of(id)?;
        if rows.is_empty() {
            return Ok(false);
        }
        let holdings = self.holdings(rows)?;
        self.prune(&holdings, now)?;
        Ok(true)
    }

    /// Brings what is known up to date with what was submitted and deleted, also by other processes and before a crash. Waits
    /// a while for an import that is at work.
    ///
    /// # Errors
    ///
    /// When submissions cannot be read, what is known cannot be written, or an import takes long.
    pub fn follow_submissions(&self, now: Timestamp) -> Result<Followed, ImportError> {
        let mut done = Followed::default();
        if !self.submissions().is_dir() {
            return Ok(done);
        }
        let root = self.submissions_root()?;
        // An import that is at work may be about to make something known that was deleted.
        drop(patiently(|| self.lock())?);
        let mut known: BTreeMap<TranscriptId, TranscriptRow> = BTreeMap::new();
        for row in self.received_rows()? {
            if let Some(id) = Disk::id_of_document(&self.log_path(&row)?) {
                known.insert(id, row);
            }
        }
        let mut after = None;
        loop {
            let scanned =
                Disk::scan_below(&root, after.as_ref(), BATCH).map_err(refused(root.clone()))?;
            done.unreadable += scanned.unreadable;
            let mut new = scanned.found;
            new.retain(|listed| known.remove(&listed.receipt.transcript_id).is_none());
            if !new.is_empty() {
                let report = patiently(|| self.receive_submissions(&new, now))?;
                done.received += report.read;
                done.problems.extend(report.problems);
            }
            if scanned.is_end || scanned.last.is_none() {
                break;
            }
            after = scanned.last;
        }
        // What is left is not there any more. Only what was deleted is forgotten: what is missing may be lost.
        let mut gone = Vec::new();
        for (id, row) in known {
            let held = Disk::held_below(&root, &id).map_err(refused(root.clone()))?;
            if matches!(held, Some(Held::Gone(_))) {
                gone.push(row);
            }
        }
        if !gone.is_empty() {
            done.forgotten = gone.len() as u64;
            let holdings = self.holdings(gone)?;
            patiently(|| self.prune(&holdings, now))?;
        }
        Ok(done)
    }

    /// Everything that others submitted, also copies and sub-agents.
    fn received_rows(&self) -> Result<Vec<TranscriptRow>, ImportError> {
        let theirs = Filter {
            subagents: true,
            duplicates: true,
            received: Received::Only,
            ..Filter::default()
        };
        Ok(self.catalogue.list(&theirs, Order::Oldest, None)?)
    }

    /// What is known of a submission.
    fn rows_of(&self, id: &TranscriptId) -> Result<Vec<TranscriptRow>, ImportError> {
        let mut path = Disk::document_below(&self.submissions_root()?, id);
        // As the catalogue has it.
        Hide::new(self.guard()?).address(&mut path, &mut None);
        let mut rows = self.catalogue.transcripts_at(&path)?;
        if rows.is_empty() {
            // The home may have been elsewhere when it came.
            for row in self.received_rows()? {
                if Disk::id_of_document(&self.log_path(&row)?).as_ref() == Some(id) {
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    /// By its one name: logs are known by their paths.
    fn submissions_root(&self) -> Result<PathBuf, ImportError> {
        let root = self.submissions();
        match fs::canonicalize(&root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(root),
            found => found.map_err(refused(root)),
        }
    }

    fn receive(&self, search: &Search, now: Timestamp) -> Result<Report, ImportError> {
        let options = ImportOptions {
            // Kept as it was accepted, whatever is removed from one's own logs.
            redact: None,
            now,
            agents: Vec::new(),
            dry_run: false,
            threads: 1,
        };
        let progress = Progress::default();
        if self.pending().exists() || self.catalogue.run_ids()?.is_empty() {
            // What is kept may not have been read yet.
            let mut all = Search::default();
            all.found.clone_from(&search.found);
            all.problems.clone_from(&search.problems);
            return self.import_found(all, &options, &progress);
        }
        let _lock = self.lock()?;
        let mut report = Report::of_search(search);
        self.prepare_index(&mut report)?;
        let mut jobs = Vec::new();
        for candidate in &search.found {
            let sources = self.catalogue.sources_at(&candidate.path)?;
            if !sources.iter().any(|row| row.unchanged(&candidate.stamp)) {
                jobs.push(Job::Found(candidate.clone()));
            }
        }
        self.work(jobs, &options, &progress, &mut report)?;
        for (_, problem) in std::mem::take(&mut report.damaged) {
            report.problem(problem);
        }
        self.catalogue.seal()?;
        self.hide(&mut report)?;
        Ok(report)
    }
}

/// A transcript says whose it is; it is listed under that agent where it is one that is known.
fn place(agent: Option<&str>) -> Option<(&'static str, &'static dyn Family)> {
    let family = FAMILIES
        .iter()
        .find(|family| family.dialects().iter().any(|it| it.name == NORMALIZED))?;
    let mut brands = FAMILIES
        .iter()
        .flat_map(|family| family.dialects())
        .map(|dialect| dialect.brand);
    let brand = brands.find(|brand| Some(*brand) == agent)?;
    Some((brand, *family))
}

/// Waits a while for whoever else imports.
fn patiently<T>(mut act: impl FnMut() -> Result<T, ImportError>) -> Result<T, ImportError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match act() {
            Err(ImportError::Busy(_)) if Instant::now() < until => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}
