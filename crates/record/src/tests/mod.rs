//! The recorder on real files and on files that fail.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::default_trait_access,
    clippy::format_push_string,
    reason = "tests may panic and write plain files"
)]

mod faults;
mod golden;
mod live;
mod log;
mod recording;
mod recovery;
mod storage;

use std::path::{Path, PathBuf};

use quipu_exchange::Reader;
use quipu_exchange::lines::Limits;
use quipu_model::{Block, Body, Draft, Event, Fidelity, Place, RunId};
use tempfile::TempDir;

use crate::{Durability, Recorder, RecorderOptions, Storage};

pub(crate) fn run_id(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

pub(crate) fn said(text: &str) -> Draft {
    let block = Block::text(Fidelity::AgentEmitted, text);
    Draft::new(Place::step("talk"), Body::AssistantMessage(vec![block]))
}

/// What a message said.
pub(crate) fn text_of(event: &Event) -> String {
    event.body.texts().collect()
}

/// A storage in a directory of its own.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    pub(crate) storage: Storage,
}

impl Site {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::at(dir.path());
        Self { dir, storage }
    }

    pub(crate) fn record(&self, id: &str) -> Recorder {
        let options = RecorderOptions {
            durability: Durability::None,
            ..RecorderOptions::default()
        };
        self.storage.record(&run_id(id), options).unwrap()
    }

    pub(crate) fn path(&self, id: &str) -> PathBuf {
        self.storage.path_of(&run_id(id))
    }
}

/// The events of a file, none of which is odd.
pub(crate) fn events(path: &Path) -> Vec<Event> {
    let mut reader = Reader::with_limits(std::fs::File::open(path).unwrap(), Limits::default());
    let mut events = Vec::new();
    while let Some(item) = reader.next_decoded().unwrap() {
        let decoded = item.unwrap();
        assert_eq!(decoded.warnings, []);
        events.push(decoded.event);
    }
    events
}

/// Checks that the file has the events 1 to n, and gives what they said.
pub(crate) fn dense(path: &Path) -> Vec<String> {
    let events = events(path);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event.seq, n as u64 + 1);
    }
    events.iter().map(text_of).collect()
}
