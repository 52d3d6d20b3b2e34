//! Labels and notes of people on transcripts and on single events.
//!
//! ```text
//! <home>/annotations.jsonl     one line for each thing that was done: a label put or taken away, a note written,
//!                              changed or deleted
//! ```
//!
//! What people write is kept beside transcripts and never inside them. It refers to them by their address, which holds
//! for good. The journal is an original: nothing else has what is in it, so making the catalogue again leaves it alone,
//! and so does forgetting a transcript, unless [`Annotations::forget`] is asked for.
//!
//! | module | what it owns |
//! |---|---|
//! | `line` | what a line of the journal says |
//! | `journal` | the file: appending under a lock, reading what was added |
//! | `held` | what all lines come to |
//! | `check` | what may be a label, a note, a name |

mod check;
mod held;
mod journal;
mod line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use quipu_api::annotations::{Annotations as Document, Label, LabelCount, PersonNote};

use held::Held;
use journal::{Journal, Locked};
use line::{Act, Line};

pub use check::{LONGEST_LABEL, LONGEST_NAME, LONGEST_NOTE, MOST_ANNOTATIONS};
pub use journal::LONGEST_JOURNAL;

/// Why an annotation could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum AnnotationError {
    /// It is not a label.
    #[error(
        "a label is 1 to {LONGEST_LABEL} letters, digits and `-_.:/+` of ASCII, and begins with a letter or a digit"
    )]
    Label,
    /// It is not a note.
    #[error(
        "a note is 1 to {LONGEST_NOTE} bytes of text without control characters other than newlines and tabs"
    )]
    Note,
    /// It is not the name of a person.
    #[error(
        "the name of whoever writes an annotation is 1 to {LONGEST_NAME} characters on one line"
    )]
    Name,
    /// It is not the id of a transcript.
    #[error("annotations need the permanent id of a transcript, such as 0a1b2c3d-0123456789abcdef")]
    Transcript,
    /// Events are numbered from 1.
    #[error("events are numbered from 1")]
    Seq,
    /// The label is not there.
    #[error("the label {label} is not there")]
    NoLabel {
        /// The label.
        label: String,
    },
    /// The note is not there.
    #[error("this transcript has no note {id:?}")]
    NoNote {
        /// Its id.
        id: String,
    },
    /// There are too many already.
    #[error("a transcript has at most {MOST_ANNOTATIONS} labels and notes; remove some first")]
    TooMany,
    /// The journal is too long.
    #[error("{path} has reached {LONGEST_JOURNAL} bytes; nothing more is added to it", path = .0.display())]
    Full(PathBuf),
    /// The journal cannot be read or written.
    #[error("cannot use {path}: {source}", path = .path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What happens here can fail in one way.
pub type Result<T, E = AnnotationError> = std::result::Result<T, E>;

/// What an annotation is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'t> {
    /// The address of the transcript.
    pub transcript: &'t str,
    /// The event; `None` for the transcript as a whole.
    pub seq: Option<u64>,
}

/// Who annotates, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who<'w> {
    /// The name of the person.
    pub by: &'w str,
    /// What time it is.
    pub now: Timestamp,
}

/// The labels and notes of a home. Cheap to clone; clones share what was read.
#[derive(Debug, Clone)]
pub struct Annotations {
    journal: Journal,
    held: Arc<Mutex<Held>>,
}

impl Annotations {
    /// Those of this home. Nothing is read yet.
    pub fn of_home(home: &Path) -> Self {
        Self {
            journal: Journal::new(home),
            held: Arc::default(),
        }
    }

    /// What all lines come to, as they are now.
    fn look<T>(&self, read: impl FnOnce(&Held) -> T) -> Result<T> {
        let mut held = self.held.lock();
        self.journal.catch_up(&mut held)?;
        Ok(read(&held))
    }

    /// Adds a line, if what is there allows it. `decide` gives what to do, or `None` when it is done already.
    fn act<T>(
        &self,
        on: Target<'_>,
        who: Who<'_>,
        decide: impl FnOnce(&Held) -> Result<Option<Act>>,
        give: impl FnOnce(&Held, Option<&Line>) -> Result<T>,
    ) -> Result<T> {
        check::target(on)?;
        check::name(who.by)?;
        let mut held = self.held.lock();
        let mut locked: Locked = self.journal.lock()?;
        self.journal.catch_up(&mut held)?;
        let Some(act) = decide(&held)? else {
            return give(&held, None);
        };
        let line = Line {
            v: line::VERSION,
            id: journal::new_id()?,
            at: who.now.to_string(),
            by: who.by.to_owned(),
            transcript: on.transcript.to_owned(),
            seq: on.seq,
            act,
        };
        locked.append(&line)?;
        drop(locked);
        self.journal.catch_up(&mut held)?;
        give(&held, Some(&line))
    }

    /// Puts a label on a transcript or an event. One that is there already stays as it is.
    ///
    /// # Errors
    ///
    /// When it is not a label, when there are too many, or when the journal cannot be written.
    pub fn add_label(&self, on: Target<'_>, label: &str, who: Who<'_>) -> Result<Label> {
        check::label(label)?;
        let add = |held: &Held| {
            if held.label(on, label).is_some() {
                return Ok(None);
            }
            held.has_room(on.transcript)?;
            let label = label.to_owned();
            Ok(Some(Act::LabelAdd { label }))
        };
        let missing = || AnnotationError::NoLabel {
            label: label.to_owned(),
        };
        self.act(on, who, add, |held, _| {
            held.label(on, label).ok_or_else(missing)
        })
    }

    /// Takes a label away.
    ///
    /// # Errors
    ///
    /// When it is not there, or the journal cannot be written.
    pub fn remove_label(&self, on: Target<'_>, label: &str, who: Who<'_>) -> Result<()> {
        check::label(label)?;
        let remove = |held: &Held| {
            let label = label.to_owned();
            match held.label(on, &label) {
                Some(_) => Ok(Some(Act::LabelRemove { label })),
                None => Err(AnnotationError::NoLabel { label }),
            }
        };
        self.act(on, who, remove, |_, _| Ok(()))
    }

    /// Writes a note on a transcript or an event.
    ///
    /// # Errors
    ///
    /// When it is not a note, when there are too many, or when the journal cannot be written.
    pub fn add_note(&self, on: Target<'_>, text: &str, who: Who<'_>) -> Result<PersonNote> {
        check::note(text)?;
        let add = |held: &Held| {
            held.has_room(on.transcript)?;
            let text = text.to_owned();
            Ok(Some(Act::NoteAdd { text }))
        };
        self.act(on, who, add, |held, line| {
            let id = line.map_or("", |line| &line.id);
            held.note(on.transcript, id)
        })
    }

    /// Changes what a note says.
    ///
    /// # Errors
    ///
    /// When it is not there, when the text is not a note, or when the journal cannot be written.
    pub fn edit_note(
        &self,
        transcript: &str,
        id: &str,
        text: &str,
        who: Who<'_>,
    ) -> Result<PersonNote> {
        check::note(text)?;
        let on = Target {
            transcript,
            seq: None,
        };
        let edit = |held: &Held| {
            held.note(transcript, id)?;
            let (note, text) = (id.to_owned(), text.to_owned());
            Ok(Some(Act::NoteEdit { note, text }))
        };
        self.act(on, who, edit, |held, _| held.note(transcript, id))
    }

    /// Deletes a note. What it said is still in the journal.
    ///
    /// # Errors
    ///
    /// When it is not there, or the journal cannot be written.
    pub fn delete_note(&self, transcript: &str, id: &str, who: Who<'_>) -> Result<()> {
        let on = Target {
            transcript,
            seq: None,
        };
        let delete = |held: &Held| {
            held.note(transcript, id)?;
            let note = id.to_owned();
            Ok(Some(Act::NoteDelete { note }))
        };
        self.act(on, who, delete, |_, _| Ok(()))
    }

    /// The labels and notes of a transcript.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn list(&self, transcript: &str) -> Result<Document> {
        self.look(|held| held.document(transcript))
    }

    /// All labels, with how often each is there, sorted.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn labels(&self) -> Result<Vec<LabelCount>> {
        self.look(Held::labels)
    }

    /// The addresses of the transcripts that have a label, on themselves or on any of their events.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn labelled(&self, label: &str) -> Result<BTreeSet<String>> {
        self.look(|held| held.labelled(label))
    }

    /// The labels of each of these transcripts that has any, on itself or on any of its events, sorted.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn labels_of<'a>(
        &self,
        transcripts: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeMap<&'a str, Vec<String>>> {
        self.look(|held| held.labels_of(transcripts))
    }

    /// How many lines of the journal could not be read. They stay where they are.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn unread_lines(&self) -> Result<u64> {
        self.look(|held| held.bad)
    }

    /// Removes every line about these transcripts, what was deleted or changed included. This is the only thing that
    /// rewrites the journal. All other lines stay as they are, those that cannot be read as well. Gives how many lines
    /// were removed.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read or written.
    pub fn forget(&self, transcripts: &BTreeSet<String>) -> Result<u64> {
        let mut held = self.held.lock();
        let removed = self.journal.without(transcripts)?;
        *held = Held::default();
        Ok(removed)
    }
}
