//! Whether the traces that are kept are still what they were.
//!
//! A trace only ever grows. The index knows how many records a file had when it was read last, and how many of their
//! ids were wrong; a file that has fewer records than before, or more wrong ids, was damaged. What the index knows of
//! such a file stays as it was, so that the damage is seen until it is mended.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::Result;
use super::index::Known;
use super::{Problem, Survey, Traces};
use crate::address::Digest;

/// What to do about a damaged trace.
const REMEDY: &str =
    "keep it again from a copy (`quipu agentlog keep FILE`), or move the file away";

impl Traces {
    /// Reads every file again and compares it with what was kept: also damage that left size and time as they were
    /// is found. What was found when the traces were opened is among it.
    ///
    /// # Errors
    ///
    /// When the index refuses.
    pub fn check(&self) -> Result<Vec<Problem>> {
        let mut problems = self.problems.clone();
        for row in self.index.known()? {
            let path = self.directory.join(&row.path);
            if problems.iter().any(|problem| problem.path == path) {
                continue;
            }
            let why = match digest(&path) {
                Ok(digest) if digest == row.sha256 => continue,
                Ok(_) => format!("its content is not what was kept; {REMEDY}"),
                Err(error) => format!("{error}; {REMEDY}"),
            };
            problems.push(Problem { path, why });
        }
        Ok(problems)
    }
}

/// What a file lost since it was read last.
pub(super) fn lost(was: &Known, is: &Survey) -> Option<String> {
    let (records, wrong) = (is.records, is.wrong_ids);
    if records < was.records {
        let was = was.records;
        return Some(format!("it had {was} records and has {records}; {REMEDY}"));
    }
    let more = wrong.checked_sub(was.wrong_ids).filter(|more| *more > 0)?;
    Some(format!(
        "{more} of its records were changed: their ids are not those of their payloads any more; {REMEDY}"
    ))
}

fn digest(path: &Path) -> io::Result<Digest> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut Hashing(&mut hash))?;
    Ok(Digest::from(<[u8; 32]>::from(hash.finalize())))
}

struct Hashing<'h>(&'h mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
