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
use super::ring::{Found, Subject};
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

impl Client {
    /// A client that begins there. `name` is the transcript, on the stream of one.
    pub(crate) fn new(
        subscription: Subscription,
        begin: Begin,
        name: Option<&str>,
        wanted: Option<Wanted>,
    ) -> Self {
        let changed = subscription.hub.subscribe();
        let mut client = Self {
            changed,
            wanted: wanted.map(Box::new),
            next: 1,
            queue: VecDeque::new(),
            caught_up: None,
            rewritten: 0,
            resets: 0,
            beats: 0,
            knows_gone: false,
            ended_at: 0,
            subscription,
        };
        client.begin(begin, name);
        client
    }

    fn begin(&mut self, begin: Begin, name: Option<&str>) {
        let hub = Arc::clone(&self.subscription.hub);
        let state = hub.state();
        (self.rewritten, self.resets) = (state.rewritten, state.resets);
        self.beats = state.beats;
        let end = state.ring.next();
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
            self.changed.borrow_and_update();
            match self.look() {
                Look::Say => {}
                Look::End => return None,
                Look::Wait => self.changed.changed().await.ok()?,
                Look::Page => {
                    if !self.page().await? {
                        self.changed.changed().await.ok()?;
                    }
                }
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
                for (bytes, subject) in frames {
                    if !bytes.is_empty() && wants(self.wanted.as_deref(), subject.as_deref()) {
                        self.queue.push_back(bytes);
                    }
                }
                self.next = next;
                return Look::Say;
            }
            Found::Nothing => {
                self.caught_up = Some(Instant::now());
                if state.is_ended && self.ended_at != self.next {
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

    /// Reads a page by itself; gives whether there was one, and `None` when that fails.
    async fn page(&mut self) -> Option<bool> {
        let Subscription { app, hub, .. } = &self.subscription;
        let (source, from) = (hub.source.clone(), self.next);
        let most = app.live().page();
        let pages = app.read(move |store| source.page(store, from, most)).await;
        // The client reconnects, and begins behind the last that it had.
        let chunks = pages.ok()?;
        let is_everything = matches!(hub.source, Source::Everything { .. });
        let is_some = !chunks.is_empty();
        for chunk in chunks {
            if is_everything && chunk.first() > self.next {
                self.queue.push_back(reload().into());
            }
            self.next = chunk.last() + 1;
            if wants(self.wanted.as_deref(), chunk.subject.as_deref()) {
                self.queue.push_back(chunk.into_bytes());
            }
        }
        self.queue.retain(|bytes| !bytes.is_empty());
        Some(is_some)
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
