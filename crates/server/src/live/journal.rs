//! Everything that becomes known, as frames: the catalogue puts down what was added to which transcript, and where.
//!
//! The `id` of a frame is a cursor: the generation of the catalogue, and a place in it. Both outlive the server. A catalogue that
//! was made again has another generation, and only some of the places are kept; whoever asks for others is told to look at
//! everything.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quipu_store::Store;
use quipu_store::catalogue::{Advance, AdvanceKind, Span, TranscriptRow};
use quipu_store::events::{EventFollower, FollowedLines};
use quipu_store::import::catalogue_path;
use serde::Serialize;

use super::frame::{self, Name};
use super::ring::{Chunk, ChunkBuilder, Subject};
use super::source::{BATCH, Looked, Step};
use crate::problem::Problem;

/// How many rows are read at a time.
const ROWS: usize = 256;

/// When to try again where another process writes to the catalogue.
const BUSY: Duration = Duration::from_millis(300);

/// A place on the stream of everything, as clients have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) generation: String,
    pub(crate) place: u64,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.generation, self.place)
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (generation, place) = text.split_once('-').ok_or(())?;
        let is_generation = (1..=32).contains(&generation.len())
            && generation.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_generation || place.is_empty() || !place.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(());
        }
        Ok(Self {
            generation: generation.to_owned(),
            place: place.parse().map_err(|_| ())?,
        })
    }
}

impl Cursor {
    /// Whether a client that has everything up to here can be told the rest.
    pub(crate) fn is_within(&self, span: &Span) -> bool {
        self.generation == span.generation
            && self.place <= span.last
            && self.place.saturating_add(1) >= span.first
    }
}

/// The catalogue, followed.
pub(crate) struct Journal {
    store: Store,
    /// Which file the catalogue is: one that was made again takes its place.
    file: Option<(u64, u64)>,
    generation: String,
    next: u64,
    events: bool,
    /// How long it took to bring the catalogue up to date, and when that was done.
    refreshed: Option<(Instant, Duration)>,
}

fn identity(path: &PathBuf) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let there = std::fs::metadata(path).ok()?;
    Some((there.dev(), there.ino()))
}

impl Journal {
    /// From what becomes known next on. What was recorded up to now is known then.
    pub(crate) fn begin(store: &Store, events: bool) -> Result<Self, Problem> {
        let path = catalogue_path(store.home());
        let file = identity(&path);
        let store = store.another()?;
        drop(store.try_refresh_runs()?);
        let span = store.catalogue().advances_span()?;
        Ok(Self {
            store,
            file,
            generation: span.generation,
            next: span.last + 1,
            events,
            refreshed: None,
        })
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn generation(&self) -> &str {
        &self.generation
    }

    pub(crate) fn look(&mut self) -> Result<Looked, Problem> {
        let mut looked = Looked::default();
        let now = identity(&catalogue_path(self.store.home()));
        if now != self.file && now.is_some() {
            self.store = self.store.another()?;
            self.file = now;
        }
        looked.again_in = self.refresh()?;
        let span = self.store.catalogue().advances_span()?;
        if span.generation != self.generation || span.last + 1 < self.next {
            self.generation = span.generation;
            self.next = span.last + 1;
            looked.steps.push(Step::Reset { next: self.next });
            return Ok(looked);
        }
        let chunks = page(&self.store, self.events, self.next, BATCH)?;
        if let Some(last) = chunks.last() {
            self.next = last.last() + 1;
        }
        looked.more = self.next <= span.last;
        looked.steps.extend(chunks.into_iter().map(Step::Frames));
        Ok(looked)
    }

    /// Brings what is known of recorded runs up to date, but not all the time: it costs more than looking. Gives when to look
    /// again.
    fn refresh(&mut self) -> Result<Option<Duration>, Problem> {
        if let Some((at, took)) = self.refreshed {
            let left = (4 * took).saturating_sub(at.elapsed());
            if !left.is_zero() {
                return Ok(Some(left));
            }
        }
        let begun = Instant::now();
        let done = self.store.try_refresh_runs()?;
        self.refreshed = Some((Instant::now(), begun.elapsed()));
        Ok(done.is_none().then_some(BUSY))
    }
}

/// Frames from a place on, about so many bytes of them.
pub(crate) fn page(
    store: &Store,
    events: bool,
    from: u64,
    most: usize,
) -> Result<Vec<Chunk>, Problem> {
    let generation = store.catalogue().advances_span()?.generation;
    let rows = store.catalogue().advances(from.saturating_sub(1), ROWS)?;
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    for row in rows {
        if bytes >= most {
            break;
        }
        let (made, name) = if events && row.kind != AdvanceKind::Gone && row.from <= row.to {
            let transcript = row
                .agent
                .as_ref()
                .and_then(|_| store.find(&row.address).ok());
            let name = name(&row, transcript.as_ref());
            let follower = transcript.and_then(|it| follow(store, &it, row.from));
            let made = events_of(follower, &generation, &row, most - bytes)?;
            (Some(made), Some(name))
        } else {
            (advance(&generation, &row), None)
        };
        let Some(made) = made else {
            break;
        };
        bytes += made.len();
        let is_whole = made.next() > row.last;
        let subject = Subject {
            address: row.address,
            agent: row.agent,
            cwd: row.cwd,
            name,
        };
        chunks.extend(made.finish(Some(Arc::new(subject))));
        if !is_whole {
            break;
        }
    }
    Ok(chunks)
}

#[derive(Serialize)]
struct Added<'a> {
    transcript: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

/// That something was added, and nothing of it.
fn advance(generation: &str, row: &Advance) -> Option<ChunkBuilder> {
    let is_gone = row.kind == AdvanceKind::Gone;
    let added = Added {
        transcript: &row.address,
        from: (!is_gone).then_some(row.from),
        to: (!is_gone).then_some(row.to),
        again: row.kind == AdvanceKind::Again,
    };
    let cursor = Cursor {
        generation: generation.to_owned(),
        place: row.last,
    };
    let data = serde_json::to_vec(&added).ok()?;
    let name = if is_gone { "gone" } else { "advance" };
    let mut chunk = ChunkBuilder::new(row.first);
    frame::event(cursor, name, &data, &mut chunk.bytes);
    chunk.end_frame(row.last);
    Some(chunk)
}

/// Says of which transcript the next events are. Their lines name the run alone.
fn name(row: &Advance, transcript: Option<&TranscriptRow>) -> Bytes {
    let run_id = transcript.map(|transcript| &transcript.run_id);
    let name = serde_json::json!({"transcript": row.address, "run_id": run_id});
    frame::notice("transcript", &name).into()
}

/// The events that were added.
fn events_of(
    mut follower: Option<EventFollower>,
    generation: &str,
    row: &Advance,
    most: usize,
) -> Result<ChunkBuilder, Problem> {
    let mut chunk = ChunkBuilder::new(row.first);
    if row.kind == AdvanceKind::Again {
        let again = serde_json::json!({"transcript": row.address, "from": row.from});
        chunk.bytes.append(&mut frame::notice("again", &again));
    }
    let mut cursor = Cursor {
        generation: generation.to_owned(),
        place: 0,
    };
    let mut next = row.from;
    while next <= row.to {
        let news = match &mut follower {
            Some(follower) => follower.try_next_lines()?,
            None => None,
        };
        match news {
            Some(FollowedLines::Lines(lines)) => {
                for (seq, line) in lines
                    .iter()
                    .filter(|(seq, _)| (row.from..=row.to).contains(seq))
                {
                    if chunk.is_full(line.len(), most) {
                        return Ok(chunk);
                    }
                    cursor.place = row.first + (seq - row.from);
                    frame::event(&cursor, Name::of(line).as_str(), line, &mut chunk.bytes);
                    chunk.end_frame(cursor.place);
                    next = seq + 1;
                }
            }
            Some(FollowedLines::Bad(_)) => {}
            Some(FollowedLines::Again { .. } | FollowedLines::Gone) | None => {
                // It was forgotten, or written anew, since. What is there now becomes known as well, behind this.
                let missed = serde_json::json!({
                    "transcript": row.address, "from": next, "to": row.to, "why": "not there any more",
                });
                chunk.bytes.append(&mut frame::notice("missed", &missed));
                chunk.end_frame(row.last);
                return Ok(chunk);
            }
        }
    }
    Ok(chunk)
}

fn follow(store: &Store, transcript: &TranscriptRow, from: u64) -> Option<EventFollower> {
    if transcript.recorded {
        return EventFollower::of_file(&transcript.path, from).ok();
    }
    store.follow(transcript, from).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back_and_others_refused() {
        let cursor = Cursor {
            generation: "0badcafe".to_owned(),
            place: 17,
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        for text in [
            "",
            "-",
            "17",
            "0badcafe-",
            "x-17",
            "0badcafe-+1",
            "0badcafe-17-1",
            "-17",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
        }
        let long = format!("{}-1", "a".repeat(33));
        assert_eq!(long.parse::<Cursor>(), Err(()));
        let span = |generation: &str, first, last| Span {
            generation: generation.to_owned(),
            first,
            last,
        };
        assert!(cursor.is_within(&span("0badcafe", 18, 20)));
        assert!(cursor.is_within(&span("0badcafe", 1, 17)));
        assert!(!cursor.is_within(&span("0badcafe", 19, 20)));
        assert!(!cursor.is_within(&span("0badcafe", 1, 16)));
        assert!(!cursor.is_within(&span("0badcaff", 1, 20)));
    }
}
