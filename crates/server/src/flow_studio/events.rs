//! `GET /api/runs/{id}/events`: what happened, as a list or as a stream.

use std::fs::File;
use std::path::Path;

use axum::response::Response;
use http::HeaderMap;
use http::header::ACCEPT;
use quipu_exchange::lines::{Limits, Lines};
use serde_json::{Value, json};

use super::fault::{Answered, Fault};
use super::folder::Folder;
use super::params::{Ids, Params, Reading};
use super::record::{Id, Reader, Record};
use super::runs::Run;
use super::stream;
use crate::answer::json as answer;

/// How many events one list has at most, and how many bytes of what they say.
const MOST: usize = 50_000;
const BYTES: u64 = 64 << 20;

/// The longest line.
pub(super) const LINE: usize = 8 << 20;

/// The journal of a run directory.
pub(super) const JOURNAL: &str = "events.jsonl";

/// The file with the events of a run, and how to read it.
pub(super) fn open(run: &Run) -> Option<(File, Reader)> {
    if let Some(path) = &run.transcript {
        let file = File::open(path).ok()?;
        return Some((file, Reader::recorded(&run.id)));
    }
    let folder = Folder::open(run.directory.as_deref()?)?;
    let file = folder.file(Path::new(JOURNAL))?;
    Some((file, Reader::journal(&run.id)))
}

/// What reading events found beside them.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Lines that are not events.
    malformed: u64,
    /// Whether there are more.
    cut: bool,
}

/// Gives the events of a run behind one, until `take` has enough. One that has no file of them has none.
pub(super) fn each(
    run: &Run,
    after: Option<Id>,
    take: &mut dyn FnMut(Record) -> bool,
) -> Result<Found, Fault> {
    let Some((file, mut reader)) = open(run) else {
        return Ok(Found::default());
    };
    let limits = Limits {
        max_line_bytes: LINE,
        ..Limits::default()
    };
    let mut lines = Lines::new(file, limits);
    let mut cut = false;
    let fault = |error: std::io::Error| Fault::unreadable("events", error);
    while let Some(info) = lines.advance().map_err(fault)? {
        if info.too_long {
            reader.skip();
            continue;
        }
        let before = reader.malformed;
        let read = reader.take(lines.current());
        if !info.terminated && read.is_none() {
            // The rest of the line is still to come.
            reader.malformed = before;
        }
        let is_wanted = |record: &Record| after.is_none_or(|after| record.id > after);
        if let Some(record) = read.filter(is_wanted)
            && !take(record)
        {
            cut = true;
            break;
        }
    }
    Ok(Found {
        malformed: reader.malformed,
        cut,
    })
}

/// Whether a client asks for a stream.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut kinds = accepts.flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

/// `GET /api/runs/{id}/events`
pub(super) async fn events(ask: Reading, ids: Ids, params: Params, headers: HeaderMap) -> Answered {
    if wants_stream(&headers) {
        return stream::stream(ask, &ids.id, &params, &headers).await;
    }
    list(ask, ids, &params, &headers).await
}

async fn list(
    ask: Reading,
    ids: Ids,
    params: &Params,
    headers: &HeaderMap,
) -> Result<Response, Fault> {
    let after = params.text("after").map(str::parse::<Id>).transpose();
    let after = after.map_err(|_| Fault::bad("after is not the id of an event"))?;
    let limit = params
        .integer("limit")?
        .and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(MOST).clamp(1, MOST);
    let answered = ask.work(move |studio, _| {
        // An unknown run has no events: clients of the original rely on it.
        let Some(run) = studio.places.find(&ids.id) else {
            return Ok(json!({ "run_id": ids.id, "events": [] }));
        };
        let mut events: Vec<Value> = Vec::new();
        let mut last = None;
        let mut size = 0_u64;
        let found = each(&run, after, &mut |record| {
            if events.len() == limit || size > BYTES {
                return false;
            }
            last = Some(record.id);
            let event = record.listed();
            size += record.payload.to_string().len() as u64;
            events.push(event);
            true
        })?;
        let mut answer = json!({ "run_id": ids.id, "events": events });
        if let Value::Object(fields) = &mut answer {
            fields.insert("malformed_lines".to_owned(), found.malformed.into());
            fields.insert("has_more".to_owned(), found.cut.into());
            let next = last.filter(|_| found.cut).map(|last| last.to_string());
            fields.insert("next_after".to_owned(), next.into());
        }
        Ok(answer)
    });
    Ok(answer(&answered.await?, headers)?)
}
