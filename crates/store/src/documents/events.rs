//! The events of a transcript, as a normalized transcript has them.

use quipu_formats::exchange::{Changes, into_log};
use quipu_formats::normalized::{self, Beyond};
use quipu_model::{Event, Header, Origin};

use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::import::ImportError;

/// Writes events of a transcript as they stand in its normalized transcript, a few at a time.
#[derive(Debug)]
pub struct Normalized {
    /// What a document says once, its events do not repeat.
    header: Header,
    recorded: bool,
}

impl Normalized {
    /// What it takes for this transcript. At most one of its events is read.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read.
    pub fn of(store: &Store, row: &TranscriptRow) -> Result<Self, ImportError> {
        let log = store.kept().open(row, &(1..=1))?;
        let run_id = quipu_agents::run_id(&row.run_id);
        let header = if row.recorded {
            let first = log.events(1..=1)?.pop();
            match first {
                Some(event) => Header {
                    parent_run_id: event.parent_run_id,
                    ..Header::new(event.run_id)
                },
                None => Header::new(run_id),
            }
        } else {
            let parent = log.about()?.session.parent;
            Header {
                parent_run_id: parent.as_deref().map(quipu_agents::run_id),
                origin: Some(Origin {
                    agent: row.agent.clone(),
                    agent_version: None,
                    adapter: None,
                    session_id: None,
                    path: Some(row.path.to_string_lossy().into_owned()),
                }),
                ..Header::new(run_id)
            }
        };
        Ok(Self {
            header,
            recorded: row.recorded,
        })
    }

    /// Writes an event, without a line's end.
    pub fn write(&self, event: Event, out: &mut Vec<u8>) {
        let event = if self.recorded {
            into_log(event, &mut Changes::default())
        } else {
            event
        };
        normalized::encode(&self.header, &event, &Beyond::default(), out);
    }
}
