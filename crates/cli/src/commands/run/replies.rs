//! Replies of agents that nobody asks.

use std::path::Path;
use std::sync::Arc;

use quipu_flow::agent::{Script, Stub};
use quipu_model::Event;
use quipu_record::RunLog;

use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::{HomePlace, Resolved};

/// How many events are read at once.
pub(super) const PAGE: usize = 1024;

/// Where replies come from: nowhere, a file of replies, or the assistant's side of a transcript.
pub(super) fn stub(from: Option<&str>, place: &HomePlace) -> Result<Stub> {
    let Some(from) = from else {
        return Ok(Stub::Fixed);
    };
    let path = Path::new(from);
    if path.is_file() && is_script(path) {
        let text =
            std::fs::read_to_string(path).map_err(io_error(format!("cannot read {from}")))?;
        let script =
            Script::parse(path, &text).map_err(|error| CommandError::new(Exit::Data, error))?;
        return Ok(Stub::Script(Arc::new(script)));
    }
    let events = match place.meant(from)? {
        Resolved::Run(path) => of_run(&path)?,
        Resolved::Session(found) => {
            let (store, row) = *found;
            let batches = store.batches(&row, &(1..=u64::MAX))?;
            let mut events = Vec::new();
            for batch in batches {
                events.extend(batch?);
            }
            events
        }
        Resolved::Log(path) => {
            let error = anyhow::anyhow!("{} is not imported", path.display());
            return Err(CommandError::new(Exit::Data, error)
                .hint("`quipu import` it first, then give the session's id"));
        }
    };
    Ok(Stub::Transcript(Arc::new(Script::from_events(events))))
}

/// Whether a file holds replies: files of transcripts are looked up as such.
fn is_script(path: &Path) -> bool {
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    if matches!(ending, "yaml" | "yml" | "json") {
        return true;
    }
    let start = std::fs::read_to_string(path).unwrap_or_default();
    let first = start.lines().next().unwrap_or_default();
    !first.contains("\"run_id\"")
}

fn of_run(path: &Path) -> Result<Vec<Event>> {
    let log = RunLog::open_read_only(path)?;
    let mut events = Vec::new();
    let mut from = Some(1);
    while let Some(seq) = from {
        let page = log.page(seq, PAGE)?;
        events.extend(page.events.into_iter().map(|event| event.decoded.event));
        from = page.next;
    }
    Ok(events)
}
