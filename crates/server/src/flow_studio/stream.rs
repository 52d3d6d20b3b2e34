//! The events of a run as a stream: what is there, then what comes.
//!
//! Frames of events have an id to go on from (`Last-Event-ID`); frames that the server makes up (`connected`, `heartbeat`, the
//! end) have none. The client pulls: a slow one reads the file later, and nothing is kept for it. A line without its end is
//! waited for. While nothing happens nothing is read: the system says when the file changed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use quipu_model::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Studio;
use super::brief::is_over;
use super::events::{LINE, open};
use super::fault::{Answered, Fault};
use super::own::INTERRUPTED;
use super::params::{Params, Reading};
use super::record::{Id, Reader, Record, iso};
use super::runs::Run;
use super::watch::Watched;
use crate::App;

/// How often a client hears that the stream is still there.
const HEARTBEAT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 15_000 });

/// How often a file is looked at where the system does not notify.
const LOOK: Duration = Duration::from_secs(2);

/// How much of a file is read at once. What a client is sent at once is made of that.
const PIECE: usize = 64 << 10;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /api/runs/{id}/events` with `Accept: text/event-stream`
pub(super) async fn stream(
    ask: Reading,
    id: &str,
    params: &Params,
    headers: &HeaderMap,
) -> Answered {
    let given = headers
        .get(LAST_EVENT_ID)
        .map(|id| id.to_str().unwrap_or("?"));
    let given = given
        .or(params.text("last_event_id"))
        .filter(|id| !id.is_empty());
    let after = given.map(str::parse::<Id>).transpose();
    let after = after.map_err(|_| {
        Fault::bad("Last-Event-ID is not the id of an event of this stream")
            .hint("leave it out to begin with the first event")
    })?;
    let named = match params.text("compat") {
        None => true,
        Some("message") => false,
        Some(_) => return Err(Fault::bad("compat can only be message")),
    };
    let Ok(permit) = Arc::clone(&ask.studio.streams).try_acquire_owned() else {
        return Err(
            Fault::new(StatusCode::SERVICE_UNAVAILABLE, "Too many live streams")
                .hint("try again in a moment"),
        );
    };
    let asked = id.to_owned();
    let begun = ask.read(move |studio, _| {
        let run = studio.find(&asked)?;
        let directory = match &run.transcript {
            Some(transcript) => transcript.parent(),
            None => run.directory.as_deref(),
        };
        // Watched before anything is read, so that nothing is missed between the two.
        let watched = directory.and_then(|directory| studio.watch.directory(directory));
        let tail = Tail::new(run, after, named);
        Ok((tail, watched))
    });
    let (tail, watched) = begun.await?;
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ask.app.metrics().streams.inc();
    let live = Live {
        _counted: Counted(ask.app.clone(), permit),
        app: ask.app,
        studio: ask.studio,
        watched,
        heartbeat,
        tail: Some(tail),
        is_done: false,
    };
    let frames = stream::unfold(live, |mut live| async move {
        let frame = live.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(frame)), live))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let to = response.headers_mut();
    to.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    to.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    to.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(response)
}

/// A stream that counts.
struct Counted(
    App,
    #[expect(dead_code, reason = "held")] OwnedSemaphorePermit,
);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics().streams.dec();
    }
}

/// A stream that somebody listens to.
struct Live {
    app: App,
    studio: Arc<Studio>,
    watched: Option<Watched>,
    heartbeat: Interval,
    /// `None` while it is being read.
    tail: Option<Tail>,
    is_done: bool,
    _counted: Counted,
}

impl Live {
    /// What the client is sent next; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if self.is_done || self.app.ending().is_cancelled() {
                return None;
            }
            if let Some(watched) = &mut self.watched {
                // What changes from here on is looked at again.
                watched.changed.mark_unchanged();
            }
            let (mut tail, studio) = (self.tail.take()?, Arc::clone(&self.studio));
            let now = self.app.clock().now();
            let read = tokio::task::spawn_blocking(move || {
                let frames = tail.read(&studio, now);
                (tail, frames)
            });
            let (tail, (frames, is_done)) = read.await.ok()?;
            self.is_done = is_done;
            let heartbeat = || tail.heartbeat(self.app.clock().now());
            if !frames.is_empty() {
                self.tail = Some(tail);
                return Some(frames);
            }
            let (ending, watched) = (self.app.ending().clone(), &mut self.watched);
            let changed = async {
                match watched {
                    Some(watched) => {
                        if watched.changed.changed().await.is_err() {
                            std::future::pending::<()>().await;
                        }
                    }
                    None => tokio::time::sleep(LOOK).await,
                }
            };
            let frame = tokio::select! {
                () = ending.cancelled() => return None,
                () = changed => None,
                _ = self.heartbeat.tick() => Some(heartbeat()),
            };
            self.tail = Some(tail);
            if frame.is_some() {
                return frame;
            }
        }
    }
}

/// What becomes of the rest of the line that is being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Rest {
    /// It is kept until the line is whole.
    #[default]
    Kept,
    /// It is passed over: the line is too long.
    Passed,
    /// Nothing: the line was taken before its end came.
    Nothing,
}

/// The file of a run's events, as far as it was read.
struct Tail {
    run: Run,
    file: Option<File>,
    reader: Reader,
    offset: u64,
    /// The beginning of a line whose end is still to come.
    partial: Vec<u8>,
    rest: Rest,
    /// Events up to this one are known to the client.
    after: Option<Id>,
    /// Whether frames have the names of their events; otherwise all are called `message`.
    named: bool,
    is_connected: bool,
    /// Frames that are ready.
    ready: VecDeque<String>,
    told: Told,
}

/// What the events say of how the run goes.
#[derive(Debug, Default)]
struct Told {
    flows: usize,
    completed: usize,
    step: Option<String>,
    /// How the run ended, if the last event of the run itself says that it did.
    end: Option<String>,
    /// How it is otherwise, if an event says so: a run of ours may wait.
    state: Option<String>,
    error: Option<String>,
    at: Option<String>,
}

impl Told {
    fn take(&mut self, record: &Record, is_own: bool) {
        let kind = record.kind.as_str();
        self.step = record.step.clone().or(self.step.take());
        match kind {
            "run_created" => {
                let flows = record.payload.get("flows").and_then(Value::as_array);
                self.flows = flows.map_or(0, Vec::len);
            }
            "run_completed" | "run_end" => self.completed += 1,
            _ => {}
        }
        let ended = match kind {
            // A run of several flows is completed several times.
            "run_completed" | "run_end" if is_own || self.completed >= self.flows.max(1) => {
                Some(record.said("status").unwrap_or("succeeded"))
            }
            "run_failed" => Some("failed"),
            "run_cancelled" | "run_canceled" => Some("canceled"),
            "run_stopped" => Some("stopped"),
            // What is said behind the end of a run of ours means that it goes on.
            _ if is_own || kind == "run_started" || kind == "run_start" => None,
            _ => return,
        };
        self.state = ended.map(str::to_owned);
        self.end = self.state.clone().filter(|end| !is_own || is_over(end));
        self.error = record.said("error").map(str::to_owned);
        self.at = record.time();
    }
}

impl Tail {
    fn new(run: Run, after: Option<Id>, named: bool) -> Self {
        let reader = match run.transcript {
            Some(_) => Reader::recorded(&run.id),
            None => Reader::journal(&run.id),
        };
        Self {
            run,
            file: None,
            reader,
            offset: 0,
            partial: Vec::new(),
            rest: Rest::default(),
            after,
            named,
            is_connected: false,
            ready: VecDeque::new(),
            told: Told::default(),
        }
    }

    /// Frames of what is new, and whether they are the last. Reads until there is something to send, or nothing is left.
    fn read(&mut self, studio: &Studio, now: Timestamp) -> (String, bool) {
        if !self.is_connected {
            self.is_connected = true;
            let data = json!({
                "run_id": self.run.id, "message": "Connected to the events of the run",
            });
            let frame = made_up("connected", data, now);
            self.ready.push_back(format!("retry: 3000\n{frame}"));
        }
        let mut is_done = false;
        while self.ready.is_empty() {
            if self.read_piece() || self.take_whole(false) {
                continue;
            }
            // Its documents say that it is over: what was written before they did is read first.
            let Some(end) = self.end(studio, now) else {
                break;
            };
            if !self.read_piece() && !self.take_whole(true) {
                self.ready.push_back(end);
                is_done = true;
            }
        }
        let mut frames = String::new();
        for frame in self.ready.drain(..) {
            frames.push_str(&frame);
        }
        (frames, is_done)
    }

    /// Reads a piece of the file; `false` when nothing is new.
    fn read_piece(&mut self) -> bool {
        if self.file.is_none() {
            self.file = open(&self.run).map(|(file, _)| file);
        }
        let Some(file) = &self.file else {
            return false;
        };
        let length = file.metadata().map_or(0, |there| there.len());
        if length < self.offset {
            return self.restart("The events were cut short and are read from their beginning");
        }
        let mut piece = vec![0; PIECE];
        let read = file.read_at(&mut piece, self.offset).unwrap_or(0);
        if read == 0 {
            return self.is_replaced()
                && self.restart("The events were replaced and are read from their beginning");
        }
        self.offset += read as u64;
        self.split(&piece[..read]);
        true
    }

    /// Whether another file has taken the place of this one.
    fn is_replaced(&self) -> bool {
        let identity = |file: &File| file.metadata().ok().map(|it| (it.dev(), it.ino()));
        let there = open(&self.run).and_then(|(file, _)| identity(&file));
        there.is_some() && there != self.file.as_ref().and_then(identity)
    }

    fn restart(&mut self, why: &str) -> bool {
        let Self { run, named, .. } = self;
        let fresh = Self::new(run.clone(), None, *named);
        let ready = std::mem::take(&mut self.ready);
        *self = Self {
            is_connected: true,
            ready,
            ..fresh
        };
        let data = json!({ "error": "stream_error", "message": why, "type": "error" });
        self.ready
            .push_back(format!("event: error\ndata: {data}\n\n"));
        true
    }

    /// Takes a last line that is whole but for its end, which some writers leave out; `false` when there is none. Our own
    /// recorder writes it with the line, and may take a line back that has none.
    fn take_whole(&mut self, is_end: bool) -> bool {
        let may = is_end || self.run.transcript.is_none();
        let line = self.partial.trim_ascii_end();
        if !may || self.rest != Rest::Kept || !line.ends_with(b"}") {
            return false;
        }
        if serde_json::from_slice::<&RawValue>(line).is_err() {
            return false;
        }
        let line = std::mem::take(&mut self.partial);
        self.rest = Rest::Nothing;
        if let Some(record) = self.reader.take(&line) {
            self.take(&record);
        }
        true
    }

    fn split(&mut self, mut piece: &[u8]) {
        while let Some(at) = piece.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&piece[..at], &piece[at + 1..]);
            piece = rest;
            match std::mem::take(&mut self.rest) {
                Rest::Kept => {}
                Rest::Passed => {
                    self.reader.skip();
                    continue;
                }
                Rest::Nothing => continue,
            }
            let read = if self.partial.is_empty() {
                self.reader.take(line)
            } else {
                self.partial.extend_from_slice(line);
                let whole = std::mem::take(&mut self.partial);
                self.reader.take(&whole)
            };
            if let Some(record) = read {
                self.take(&record);
            }
        }
        if self.rest != Rest::Kept {
            return;
        }
        if self.partial.len() + piece.len() > LINE {
            self.partial = Vec::new();
            self.rest = Rest::Passed;
        } else {
            self.partial.extend_from_slice(piece);
        }
    }

    fn take(&mut self, record: &Record) {
        self.told.take(record, self.run.transcript.is_some());
        if self.after.is_some_and(|after| record.id <= after) {
            return;
        }
        let plain = |c: char| if c.is_control() { '_' } else { c };
        let name: String = if self.named {
            record.kind.chars().map(plain).collect()
        } else {
            "message".to_owned()
        };
        let mut frame = format!("id: {}\nevent: {name}\n", record.id);
        // Writing to a text does not fail; the line ends of what is said are escaped.
        _ = write!(frame, "data: {}\n\n", record.streamed());
        self.ready.push_back(frame);
    }

    /// The frame that ends the stream, if the run is over.
    fn end(&self, studio: &Studio, now: Timestamp) -> Option<String> {
        let brief = studio.brief(&self.run);
        let is_own = self.run.transcript.is_some();
        let said = brief.status.as_deref().filter(|status| is_over(status));
        // One program never writes that a run is over, so that only its meta.json is believed when it says that it is not.
        let told = self.told.end.as_deref();
        let told = told.filter(|_| is_own || !brief.is_said());
        let status = said.or(told)?;
        let word = match status {
            "failed" => "failed",
            "canceled" | "cancelled" => "canceled",
            "stopped" => "stopped",
            _ => "completed",
        };
        let at = brief.completed.map(iso).or_else(|| self.told.at.clone());
        let stopped = at.clone().filter(|_| word == "stopped");
        let error = brief.error.clone().or_else(|| self.told.error.clone());
        let data = json!({
            "run_id": self.run.id,
            "status": status,
            "completed_at": at,
            "stopped_at": stopped,
            "error": error,
            "stop_reason": brief.error.as_deref().filter(|_| is_own && word == "stopped"),
        });
        let frame = made_up(&format!("run:{word}"), data, now);
        // A client that connects again is told the same; it need not hurry.
        Some(format!("retry: 60000\n{frame}"))
    }

    fn heartbeat(&self, now: Timestamp) -> String {
        let said = self.told.end.as_ref().or(self.told.state.as_ref());
        let said = said.filter(|said| *said != INTERRUPTED);
        let status = said.map_or("running", String::as_str);
        let data = json!({
            "run_id": self.run.id, "status": status, "current_step": self.told.step,
        });
        made_up("heartbeat", data, now)
    }
}

/// A frame that no event is behind. It has no id.
fn made_up(name: &str, mut data: Value, now: Timestamp) -> String {
    if let Value::Object(fields) = &mut data {
        fields.insert("type".to_owned(), name.replace(':', "_").into());
        fields.insert("timestamp".to_owned(), iso(now).into());
    }
    format!("event: {name}\ndata: {data}\n\n")
}
