//! The files of a run out of its records, byte for byte.

use std::collections::HashSet;
use std::io;

use super::record::{Part, Record};
use super::run::JOURNAL;

/// What became of the files of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Originals {
    /// Files that were given.
    pub files: Vec<String>,
    /// Files of the run that are not part of its transcript.
    pub left: Vec<String>,
    /// Files of which a part was too long to be kept. They are not given.
    pub cut: Vec<String>,
    /// Names that lead out of a directory. They are not given.
    pub refused: Vec<String>,
}

/// Takes the records of a run, and gives the files that they are of. One file is held at a time, and the journal.
pub struct Files<'f> {
    put: &'f mut dyn FnMut(&str, &[u8]) -> io::Result<bool>,
    /// The journal, whose lines stand among all others.
    journal: Option<Vec<u8>>,
    open: Option<(String, Vec<u8>)>,
    /// Files that are done with: given, or not to be given.
    known: HashSet<String>,
    done: Originals,
}

impl std::fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl<'f> Files<'f> {
    /// Files go to `put`, by their name relative to the run; `false` when there is no place for them.
    pub fn new(put: &'f mut dyn FnMut(&str, &[u8]) -> io::Result<bool>) -> Self {
        Self {
            put,
            journal: None,
            open: None,
            known: HashSet::new(),
            done: Originals::default(),
        }
    }

    /// Takes a record.
    ///
    /// # Errors
    ///
    /// Those of whoever takes the files.
    pub fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        match record {
            Record::Document(part) => {
                self.close()?;
                self.give(&part.file, &part.bytes)
            }
            Record::Line(part) if part.file == JOURNAL => {
                append(self.journal.get_or_insert_default(), &part);
                Ok(())
            }
            Record::Line(part) => {
                if self
                    .open
                    .as_ref()
                    .is_none_or(|(file, _)| *file != part.file)
                {
                    self.close()?;
                }
                let (_, bytes) = self
                    .open
                    .get_or_insert_with(|| (part.file.clone().into_owned(), Vec::new()));
                append(bytes, &part);
                Ok(())
            }
            Record::Cut(part) => {
                let file = part.file.into_owned();
                if self.known.insert(file.clone()) {
                    self.done.cut.push(file);
                }
                Ok(())
            }
            Record::Left { file, .. } => {
                self.done.left.push(file.into_owned());
                Ok(())
            }
            Record::End(execution, _) => {
                self.close()?;
                // A transcript that is empty has no line to be known by.
                match execution.transcript {
                    Some(file) if !self.known.contains(&file) => self.give(&file, &[]),
                    _ => Ok(()),
                }
            }
            Record::Run(_) | Record::Begin(_) | Record::Done(_) => self.close(),
        }
    }

    /// Gives what is left, and says what became of all files.
    ///
    /// # Errors
    ///
    /// Those of whoever takes the files.
    pub fn finish(mut self) -> io::Result<Originals> {
        self.close()?;
        if let Some(journal) = self.journal.take() {
            self.give(JOURNAL, &journal)?;
        }
        Ok(self.done)
    }

    fn close(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((file, bytes)) => self.give(&file, &bytes),
            None => Ok(()),
        }
    }

    fn give(&mut self, file: &str, bytes: &[u8]) -> io::Result<()> {
        // One that was cut, or is given already, is not given.
        if !self.known.insert(file.to_owned()) {
            return Ok(());
        }
        if !is_safe(file) || !(self.put)(file, bytes)? {
            self.done.refused.push(file.to_owned());
            return Ok(());
        }
        self.done.files.push(file.to_owned());
        Ok(())
    }
}

/// Whether a name stays in the directory that it is written to.
fn is_safe(name: &str) -> bool {
    let fits = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.len() <= 1024 && !name.contains(['\\', '\0']) && name.split('/').all(fits)
}

fn append(to: &mut Vec<u8>, part: &Part<'_>) {
    to.extend_from_slice(&part.bytes);
    if part.terminated {
        to.push(b'\n');
    }
}
