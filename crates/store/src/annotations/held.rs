//! What all lines of the journal come to.

use std::collections::{BTreeMap, BTreeSet};

use quipu_api::Time;
use quipu_api::annotations::{Annotations as Document, Label, LabelCount, PersonNote};

use super::check::MOST_ANNOTATIONS;
use super::journal::Stamp;
use super::line::{Act, Line};
use super::{AnnotationError, Result, Target};

/// What was read of the journal.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The file as it was when it was last looked at.
    pub(super) stamp: Option<Stamp>,
    /// How much of it was read: whole lines.
    pub(super) read_to: u64,
    /// Lines that could not be read.
    pub(super) bad: u64,
    of: BTreeMap<String, On>,
}

/// The annotations of a transcript.
#[derive(Debug, Default)]
struct On {
    labels: BTreeMap<(Option<u64>, String), Label>,
    /// In the order in which they were written.
    notes: Vec<PersonNote>,
}

impl On {
    fn len(&self) -> usize {
        self.labels.len() + self.notes.len()
    }
}

impl Held {
    /// Takes in a line. What it changes or removes may not be there: then somebody else was faster.
    pub(super) fn take(&mut self, line: Line) {
        let on = self.of.entry(line.transcript).or_default();
        let (by, at) = (line.by, Time(line.at));
        match line.act {
            Act::LabelAdd { label } => {
                if on.len() >= MOST_ANNOTATIONS {
                    self.bad += 1;
                    return;
                }
                let put = Label {
                    id: line.id,
                    label: label.clone(),
                    seq: line.seq,
                    by,
                    at,
                };
                on.labels.entry((line.seq, label)).or_insert(put);
            }
            Act::LabelRemove { label } => {
                on.labels.remove(&(line.seq, label));
            }
            Act::NoteAdd { text } => {
                if on.len() >= MOST_ANNOTATIONS {
                    self.bad += 1;
                    return;
                }
                on.notes.push(PersonNote {
                    id: line.id,
                    text,
                    seq: line.seq,
                    by,
                    at,
                    edited_by: None,
                    edited_at: None,
                });
            }
            Act::NoteEdit { note, text } => {
                if let Some(known) = on.notes.iter_mut().find(|it| it.id == note) {
                    known.text = text;
                    (known.edited_by, known.edited_at) = (Some(by), Some(at));
                }
            }
            Act::NoteDelete { note } => on.notes.retain(|it| it.id != note),
        }
    }

    pub(super) fn has_room(&self, transcript: &str) -> Result<()> {
        let there = self.of.get(transcript).map_or(0, On::len);
        if there < MOST_ANNOTATIONS {
            return Ok(());
        }
        Err(AnnotationError::TooMany)
    }

    pub(super) fn label(&self, on: Target<'_>, label: &str) -> Option<Label> {
        let labels = &self.of.get(on.transcript)?.labels;
        labels.get(&(on.seq, label.to_owned())).cloned()
    }

    pub(super) fn note(&self, transcript: &str, id: &str) -> Result<PersonNote> {
        let notes = self.of.get(transcript).map(|on| &on.notes);
        let found = notes.into_iter().flatten().find(|note| note.id == id);
        found.cloned().ok_or_else(|| AnnotationError::NoNote {
            id: id.chars().take(64).collect(),
        })
    }

    pub(super) fn document(&self, transcript: &str) -> Document {
        let on = self.of.get(transcript);
        let labels = on.into_iter().flat_map(|on| on.labels.values());
        let notes = on.into_iter().flat_map(|on| &on.notes);
        let mut notes: Vec<PersonNote> = notes.cloned().collect();
        notes.sort_by_key(|note| note.seq);
        Document {
            transcript: transcript.to_owned(),
            labels: labels.cloned().collect(),
            notes,
        }
    }

    pub(super) fn labels_of<'a>(
        &self,
        transcripts: impl Iterator<Item = &'a str>,
    ) -> BTreeMap<&'a str, Vec<String>> {
        let labels = |on: &On| -> BTreeSet<String> {
            let all = on.labels.keys();
            all.map(|(_, label)| label.clone()).collect()
        };
        let all = transcripts.filter_map(|transcript| {
            let labels = labels(self.of.get(transcript)?);
            (!labels.is_empty()).then(|| (transcript, labels.into_iter().collect()))
        });
        all.collect()
    }

    pub(super) fn labels(&self) -> Vec<LabelCount> {
        let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for on in self.of.values() {
            let mut here: BTreeMap<&str, u64> = BTreeMap::new();
            for (seq, label) in on.labels.keys() {
                *here.entry(label).or_default() += u64::from(seq.is_some());
            }
            for (label, events) in here {
                let count = counts.entry(label).or_default();
                (count.0, count.1) = (count.0 + 1, count.1 + events);
            }
        }
        let count = |(label, (transcripts, events)): (&str, (u64, u64))| LabelCount {
            label: label.to_owned(),
            transcripts,
            events,
        };
        counts.into_iter().map(count).collect()
    }

    pub(super) fn labelled(&self, label: &str) -> BTreeSet<String> {
        let has = |on: &On| on.labels.keys().any(|(_, it)| it == label);
        let of = self.of.iter().filter(|(_, on)| has(on));
        of.map(|(transcript, _)| transcript.clone()).collect()
    }
}
