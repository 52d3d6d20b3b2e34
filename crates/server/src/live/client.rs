//! One client of a stream: what it has, and what it is told next.
//!
//! A client is asked for more only when its connection has room for it, so what waits for it is a place and not a queue. It reads
//! frames that all clients share. One that wants what is not shared any more reads pages of its own; but if it has been behind for
//! long, it is told what it missed, and goes on with what is new.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quipu_store::facade::Project;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::frame;
use super::hub::Hub;
use super::journal::Cursor;
use super::ring::{Chunk, Found, Subject};
use super::source::Source;
use crate::App;

/// A client, counted for as long as it is there.
pub(crate) struct Subscription {
    pub(crate) app: App,
    pub(crate) hub: Arc<Hub>,
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.app.metrics().streams.dec();
        self.app.live().leave(&self.hub);
    }
}

/// Which transcripts a client wants to hear of.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Agents, by the beginning of their names.
    pub(crate) agent: Option<String>,
    /// Directories.
    pub(crate) project: Option<Project>,
    /// One transcript, by its address.
    pub(crate) transcript: Option<String>,
}

impl Wanted {
    fn has(&self, subject: &Subject) -> bool {
        let transcript = self.transcript.as_ref();
        if transcript.is_some_and(|address| *address != subject.address) {
            return false;
        }
        let Some(agent) = &subject.agent else {
            // Nothing else is known of what is gone.
            return self.agent.is_none() && self.project.is_none() || transcript.is_some();
        };
        let is_by = |wanted: &String| agent.starts_with(wanted.as_str());
        let is_in = |project: &Project| subject.cwd.as_ref().is_some_and(|cwd| project.has(cwd));
        self.agent.as_ref().is_none_or(is_by) && self.project.as_ref().is_none_or(is_in)
    }
}

/// Where a client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With what comes from now on.
    Now,
    /// With this place, as far as there is one.
    At(u64),
    /// Behind this place, which it has had.
    Behind(u64),
    /// It has had something that means nothing any more.
    Lost,
}

/// One client.
pub(crate) struct Client {
    subscription: Subscription,
    changed: watch::Receiver<()>,
    wanted: Option<Box<Wanted>>,
    /// The next place that it wants.
    next: u64,
    /// What is to be said next.
    queue: VecDeque<Bytes>,
    /// The room that pages of its own take, until it has been sent them.
    held: Option<OwnedSemaphorePermit>,
    /// Of which transcript the last event was, on the stream of everything.
    about: Option<Arc<Subject>>,
    /// When it last had everything; `None` before it first has.
    caught_up: Option<Instant>,
    rewritten: u64,
    resets: u64,
    beats: u64,
    knows_gone: bool,
    /// Behind which place it was told that the run has ended.
    ended_at: u64,
}

enum Look {
    /// There is something to say.
    Say,
    /// There is nothing to say.
    Wait,
    /// It has to read a page.
    Page,
    End,
}

/// What came of reading a page.
enum Paged {
    Some,
    /// There was nothing.
    None,
    /// Others who are behind hold so much that there was no room.
    NoRoom,
}

impl Client {
    /// A client that begins there. `name` is the transcript, on the stream of one. `end` is the place behind the last that there
    /// is, where that is known; whoever follows for all of them may not be there yet.
    pub(crate) fn new(
        subscription: Subscription,
        begin: Begin,
        end: u64,
        name: Option<&str>,
        wanted: Option<Wanted>,
    ) -> Self {
        let changed = subscription.hub.subscribe();
        let mut client = Self {
            changed,
            wanted: wanted.map(Box::new),
            next: 1,
            queue: VecDeque::new(),
            held: None,
            about: None,
            caught_up: None,
            rewritten: 0,
            resets: 0,
            beats: 0,
            knows_gone: false,
            ended_at: 0,
            subscription,
        };
        client.begin(begin, end, name);
        client
    }

    fn begin(&mut self, begin: Begin, end: u64, name: Option<&str>) {
        let hub = Arc::clone(&self.subscription.hub);
        let state = hub.state();
        (self.rewritten, self.resets) = (state.rewritten, state.resets);
        self.beats = state.beats;
        let end = state.ring.next().max(end);
        let mut notice = None;
        self.next = match begin {
            Begin::Now => end,
            Begin::At(place) => place.clamp(1, end),
            Begin::Behind(place) if place < end => place + 1,
            // Its log was written anew, and is shorter now.
            Begin::Behind(_) if name.is_some() => {
                notice = Some(frame::notice("again", &json!({"from": 1})));
                1
            }
            Begin::Behind(_) | Begin::Lost => {
                notice = Some(reload());
                end
            }
        };
        let connected = if let Some(name) = name {
            frame::connected(&json!({
                "transcript": name, "from": self.next, "last": end - 1,
            }))
        } else {
            let cursor = |place: u64| Cursor {
                generation: state.generation.clone(),
                place,
            };
            frame::connected(&json!({
                "cursor": cursor(self.next - 1).to_string(), "last": cursor(end - 1).to_string(),
            }))
        };
        self.queue.push_back(connected.into());
        self.queue.extend(notice.map(Bytes::from));
    }

    /// What to write next; `None` when it is over.
    pub(crate) async fn advance(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.queue.pop_front() {
                return Some(bytes);
            }
            // It is asked for more when it has been sent what it had.
            self.held = None;
            self.changed.borrow_and_update();
            match self.look() {
                Look::Say => {}
                Look::End => return None,
                Look::Wait => self.changed.changed().await.ok()?,
                Look::Page => match self.page().await? {
                    Paged::Some | Paged::NoRoom => {}
                    Paged::None => self.changed.changed().await.ok()?,
                },
            }
        }
    }

    /// Looks at what there is.
    fn look(&mut self) -> Look {
        let Subscription { app, hub, .. } = &self.subscription;
        let hub = Arc::clone(hub);
        let state = hub.state();
        if app.ending().is_cancelled() || state.failed.is_some() {
            return Look::End;
        }
        if state.beats != self.beats {
            self.beats = state.beats;
            self.queue.push_back(Bytes::from_static(frame::HEARTBEAT));
        }
        if state.resets != self.resets {
            self.resets = state.resets;
            self.next = state.ring.next();
            self.queue.push_back(reload().into());
        }
        if let Some(from) = state.again(self.rewritten) {
            self.rewritten = state.rewritten;
            if from < self.next {
                let again = frame::notice("again", &json!({"from": from}));
                self.queue.push_back(again.into());
                self.next = from;
                // All of it is to be read again, which may take a while.
                self.caught_up = None;
                self.ended_at = 0;
            }
        }
        if state.is_gone != self.knows_gone {
            self.knows_gone = state.is_gone;
            if state.is_gone {
                self.queue
                    .push_back(frame::notice("gone", &json!({})).into());
            }
        }
        match state.ring.read(self.next) {
            Found::Frames(frames, next) => {
                self.next = next;
                for (bytes, subject) in frames {
                    self.say(bytes, subject);
                }
                return Look::Say;
            }
            Found::Nothing => {
                self.caught_up = Some(Instant::now());
                let is_at_end = self.next == state.ring.next();
                if state.is_ended && is_at_end && self.ended_at != self.next {
                    self.ended_at = self.next;
                    let ended = frame::notice("ended", &json!({"last": self.next - 1}));
                    self.queue.push_back(ended.into());
                }
            }
            Found::Behind => {
                let patience = app.live().limits().patience;
                let is_slow = self.caught_up.is_some_and(|at| at.elapsed() >= patience);
                if !is_slow {
                    return if self.queue.is_empty() {
                        Look::Page
                    } else {
                        Look::Say
                    };
                }
                let to = state.ring.next() - 1;
                app.metrics().missed.inc_by(to + 1 - self.next);
                let missed = match hub.source {
                    Source::Everything { .. } => {
                        let cursor = |place| Cursor {
                            generation: state.generation.clone(),
                            place,
                        };
                        let (from, to) = (cursor(self.next).to_string(), cursor(to).to_string());
                        frame::notice("missed", &json!({"from": from, "to": to}))
                    }
                    _ => frame::notice("missed", &json!({"from": self.next, "to": to})),
                };
                self.queue.push_back(missed.into());
                self.next = to + 1;
                self.caught_up = Some(Instant::now());
            }
        }
        if self.queue.is_empty() {
            Look::Wait
        } else {
            Look::Say
        }
    }

    /// Says this, unless the client does not want it.
    fn say(&mut self, bytes: Bytes, subject: Option<Arc<Subject>>) {
        if bytes.is_empty() || !wants(self.wanted.as_deref(), subject.as_deref()) {
            return;
        }
        if let Some(subject) = subject
            && let Some(name) = &subject.name
        {
            let about = self.about.as_ref();
            if about.is_none_or(|about| about.address != subject.address) {
                self.queue.push_back(name.clone());
                self.about = Some(subject);
            }
        }
        self.queue.push_back(bytes);
    }

    /// Reads a page by itself; `None` when that fails.
    async fn page(&mut self) -> Option<Paged> {
        let Subscription { app, hub, .. } = &self.subscription;
        let (source, from) = (hub.source.clone(), self.next);
        let most = app.live().page();
        let patience = app.live().limits().patience;
        let mut room = most;
        let (chunks, held) = loop {
            let held = tokio::select! {
                () = app.ending().cancelled() => return None,
                held = tokio::time::timeout(patience, app.live().hold(room)) => held,
            };
            let Ok(Some(mut held)) = held else {
                return Some(Paged::NoRoom);
            };
            let source = source.clone();
            let pages = app.read(move |store| source.page(store, from, most)).await;
            // The client reconnects, and begins behind the last that it had.
            let chunks = pages.ok()?;
            let size = chunks.iter().map(Chunk::size).sum();
            if size <= room || app.live().hold_more(&mut held, size - room) {
                break (chunks, held);
            }
            // A long line. It is given up, and read again when there is room for all of it.
            room = size;
        };
        let is_everything = matches!(hub.source, Source::Everything { .. });
        let paged = if chunks.is_empty() {
            Paged::None
        } else {
            Paged::Some
        };
        self.held = Some(held);
        for chunk in chunks {
            if is_everything && chunk.first() > self.next {
                self.queue.push_back(reload().into());
            }
            self.next = chunk.last() + 1;
            let subject = chunk.subject.clone();
            self.say(chunk.into_bytes(), subject);
        }
        Some(paged)
    }
}

fn wants(wanted: Option<&Wanted>, subject: Option<&Subject>) -> bool {
    match (wanted, subject) {
        (Some(wanted), Some(subject)) => wanted.has(subject),
        _ => true,
    }
}

/// Says that what the client knows may be out of date.
fn reload() -> Vec<u8> {
    let why = "what happened since then is not known any more";
    frame::notice("missed", &json!({"reload": true, "why": why}))
}
