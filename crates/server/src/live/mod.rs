//! Live streams: what happens, as it happens, as server-sent events.
//!
//! ```text
//!  file of a run ─┐                ┌─ ring of frames ─┬─ client: the next place it wants
//!  kept events ───┼─► hub, one for ┤   made once      ├─ client
//!  catalogue ─────┘   each stream  └─ what became of ─┴─ client … reads pages by itself where it is behind the ring
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `routes` | the two endpoints: what is asked for |
//! | `source` | what a stream is made of, turned into frames |
//! | `journal` | the source of the stream of everything, and its cursors |
//! | `hub` | following a source once for all clients |
//! | `ring` | the last frames |
//! | `client` | what a client has, and is told next |
//! | `frame` | how all of it is written |
//! | `watch` | which files have changed |
//!
//! A client costs its connection and a few hundred bytes: what it is written is shared, and made only when its connection has
//! room. Nothing wakes while nothing happens, but for the heartbeat, which is one timer for all.

mod client;
mod frame;
mod hub;
mod journal;
mod ring;
mod routes;
mod source;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER};
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch as channel};

use crate::App;
use crate::problem::Problem;
use client::Subscription;
use hub::Hub;
pub(crate) use routes::routes;
use source::Source;
use watch::Files;

/// What streams keep to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How many bytes of frames a stream keeps at most.
    pub(crate) ring: usize,
    /// For how long a client may be behind what is kept before it is told that it missed something.
    pub(crate) patience: Duration,
    /// How often everybody is told that the server is there.
    pub(crate) beat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ring: 2 << 20,
            patience: Duration::from_secs(10),
            beat: Duration::from_secs(15),
        }
    }
}

/// How many streams look for news at the same time.
const LOOKS: usize = 8;

/// What pages of all clients that are behind may take together, and what one may take at least and at most.
const PAGES: usize = 16 << 20;
const PAGE: std::ops::RangeInclusive<usize> = (16 << 10)..=(128 << 10);

/// What all pages may take with the long lines that are in some of them: a page has one line at least, which may have 64 MiB.
/// Counted in pieces of this size.
const HELD: usize = 128 << 20;
const PIECE: usize = 1 << 10;

/// The live streams of a server.
pub(crate) struct Live {
    hubs: Mutex<Hubs>,
    permits: Arc<Semaphore>,
    most: usize,
    files: Arc<Files>,
    beats: channel::Sender<()>,
    looks: Semaphore,
    held: Arc<Semaphore>,
    limits: Mutex<Limits>,
}

#[derive(Default)]
struct Hubs {
    by_key: HashMap<String, Arc<Hub>, FxBuildHasher>,
    /// Whether the heart beats.
    beats: bool,
}

impl Live {
    /// No streams yet, and never more than so many clients.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            hubs: Mutex::default(),
            permits: Arc::new(Semaphore::new(most)),
            most,
            files: Arc::default(),
            beats: channel::Sender::new(()),
            looks: Semaphore::new(LOOKS),
            held: Arc::new(Semaphore::new(HELD / PIECE)),
            limits: Mutex::default(),
        }
    }

    /// One client more, unless there are too many.
    fn join(&self, app: &App, source: Source) -> Result<Subscription, Problem> {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            let why = format!("all {} live streams are in use", self.most);
            return Err(Problem::busy(why)
                .hint("close a stream that is not needed, or try again in a few seconds")
                .header(RETRY_AFTER, HeaderValue::from_static("5")));
        };
        let mut hubs = self.hubs.lock();
        let known = hubs.by_key.get(&source.key()).cloned();
        let hub = known.unwrap_or_else(|| {
            let hub = Arc::new(Hub::new(source));
            hubs.by_key.insert(hub.source.key(), Arc::clone(&hub));
            tokio::spawn(Arc::clone(&hub).run(app.clone()));
            hub
        });
        hub.clients.fetch_add(1, Ordering::Relaxed);
        if !std::mem::replace(&mut hubs.beats, true) {
            tokio::spawn(beat(app.clone()));
        }
        drop(hubs);
        app.metrics().streams.inc();
        Ok(Subscription {
            app: app.clone(),
            hub,
            _permit: permit,
        })
    }

    /// A client left.
    fn leave(&self, hub: &Arc<Hub>) {
        let mut hubs = self.hubs.lock();
        // Nobody joins meanwhile, since that needs the lock.
        if hub.clients.fetch_sub(1, Ordering::Relaxed) == 1 {
            hub.closed.cancel();
            hubs.remove(hub);
        }
    }

    /// Has the next client begin another hub.
    fn forget(&self, hub: &Arc<Hub>) {
        self.hubs.lock().remove(hub);
    }

    fn hubs(&self) -> usize {
        self.hubs.lock().by_key.len()
    }

    fn files(&self) -> &Arc<Files> {
        &self.files
    }

    fn beats(&self) -> channel::Receiver<()> {
        self.beats.subscribe()
    }

    fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    #[cfg(test)]
    fn set_limits(&self, set: impl FnOnce(&mut Limits)) {
        set(&mut self.limits.lock());
    }

    /// How many bytes a client that is behind reads at a time.
    fn page(&self) -> usize {
        let clients = self.most - self.permits.available_permits().min(self.most);
        (PAGES / clients.max(1)).clamp(*PAGE.start(), *PAGE.end())
    }

    /// Waits until clients that are behind may hold so many bytes more.
    async fn hold(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.held)
            .acquire_many_owned(pieces(bytes))
            .await
            .ok()
    }

    /// Lets a client hold so many bytes more, if there is room for them now.
    fn hold_more(&self, held: &mut OwnedSemaphorePermit, bytes: usize) -> bool {
        let more = Arc::clone(&self.held).try_acquire_many_owned(pieces(bytes));
        more.map(|more| held.merge(more)).is_ok()
    }

    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.looks.acquire().await.ok()
    }
}

/// How many pieces so many bytes are. What is larger than everything has all of it.
fn pieces(bytes: usize) -> u32 {
    let pieces = bytes.div_ceil(PIECE).min(HELD / PIECE);
    u32::try_from(pieces).unwrap_or(u32::MAX)
}

impl Hubs {
    fn remove(&mut self, hub: &Arc<Hub>) {
        let key = hub.source.key();
        if self.by_key.get(&key).is_some_and(|it| Arc::ptr_eq(it, hub)) {
            self.by_key.remove(&key);
        }
    }
}

/// Ticks for all streams, for as long as there are any.
async fn beat(app: App) {
    loop {
        let every = app.live().limits().beat;
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = app.ending().cancelled() => return,
        }
        {
            let mut hubs = app.live().hubs.lock();
            if hubs.by_key.is_empty() {
                hubs.beats = false;
                return;
            }
        }
        app.live().beats.send_replace(());
    }
}
