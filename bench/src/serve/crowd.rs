//! Many subscribers of one live stream, on a few threads.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem::{self, Finder};
use quipu_record::{Clock as _, SystemClock};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use super::histogram::Histogram;
use super::http::{Chunks, Connection, Length, get};
use super::load::runtime;
use super::processors;
use super::writer::MARK;

/// How long all of them may take to connect.
const CONNECT: Duration = Duration::from_secs(120);

/// How long the server may take to answer one of them.
const GREET: Duration = Duration::from_secs(20);

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// What subscribers saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// From recording to reading.
    pub(super) took: Histogram,
    pub(super) received: u64,
    /// Events that were left out, or did not come.
    pub(super) lost: u64,
    pub(super) twice: u64,
    /// How often a subscriber was told that it missed something.
    pub(super) told: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.took.add(&other.took);
        self.received += other.received;
        self.lost += other.lost;
        self.twice += other.twice;
        self.told += other.told;
    }
}

/// Subscribers that are connected.
pub(super) struct Crowd {
    threads: Vec<JoinHandle<Result<Seen>>>,
    stop: watch::Sender<bool>,
}

impl Crowd {
    /// Connects so many subscribers, and waits until the server has greeted each. They read up to the event `last`.
    pub(super) fn gather(address: SocketAddr, path: &str, count: usize, last: u64) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let greeted = Arc::new(AtomicUsize::new(0));
        let threads = (processors() / 2).clamp(1, count.max(1));
        let request = get(address, path, "Accept: text/event-stream\r\n");
        let spawn = |thread: usize| {
            let own = (thread..count).step_by(threads).len();
            let (request, greeted) = (request.clone(), Arc::clone(&greeted));
            let stopped = stopped.clone();
            std::thread::spawn(move || {
                let local = LocalSet::new();
                let all = all(address, request, own, last, greeted, stopped);
                local.block_on(&runtime()?, all)
            })
        };
        let crowd = Self {
            threads: (0..threads).map(spawn).collect(),
            stop,
        };
        let began = Instant::now();
        while greeted.load(Ordering::SeqCst) < count {
            let ended = crowd.threads.iter().any(JoinHandle::is_finished);
            if ended || began.elapsed() > CONNECT {
                let there = greeted.load(Ordering::SeqCst);
                crowd.finish(Duration::ZERO)?;
                bail!("only {there} of {count} subscribers connected");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(crowd)
    }

    /// Waits for what is still to come, but not for longer than this, and ends the subscriptions.
    pub(super) fn finish(self, patience: Duration) -> Result<Seen> {
        let began = Instant::now();
        while began.elapsed() < patience && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Those that have ended do not listen any more.
        self.stop.send_replace(true);
        let mut seen = Seen::default();
        for thread in self.threads {
            let part = thread.join();
            seen.add(&part.map_err(|_| anyhow::anyhow!("a subscriber panicked"))??);
        }
        Ok(seen)
    }
}

/// What the subscribers of a thread share.
struct Shared {
    seen: Seen,
    piece: Vec<u8>,
    mark: Finder<'static>,
    end: Finder<'static>,
}

/// The subscribers of a thread.
async fn all(
    address: SocketAddr,
    request: Vec<u8>,
    count: usize,
    last: u64,
    greeted: Arc<AtomicUsize>,
    mut stopped: watch::Receiver<bool>,
) -> Result<Seen> {
    let shared = Rc::new(RefCell::new(Shared {
        seen: Seen::default(),
        piece: vec![0; PIECE],
        mark: Finder::new(MARK),
        end: Finder::new(b"\n\n"),
    }));
    let places: Rc<RefCell<Vec<u64>>> = Rc::new(RefCell::new(vec![1; count]));
    let mut tasks = JoinSet::new();
    for n in 0..count {
        let mut connection = Connection::open(address).await?;
        connection.send(&request).await?;
        let head = tokio::time::timeout(GREET, connection.head()).await;
        let head = head.context("a subscriber is not answered")??;
        ensure!(
            (head.status, head.body) == (200, Length::Chunks),
            "a subscriber was answered with {}",
            head.status
        );
        let (shared, places) = (Rc::clone(&shared), Rc::clone(&places));
        let greeted = Arc::clone(&greeted);
        tasks
            .spawn_local(async move { one(connection, n, last, &shared, &places, &greeted).await });
    }
    let ended = async {
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = ended => ended?,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    drop(tasks);
    let mut seen = std::mem::take(&mut shared.borrow_mut().seen);
    if last < u64::MAX {
        let missing = places
            .borrow()
            .iter()
            .map(|next| (last + 1).saturating_sub(*next))
            .sum::<u64>();
        seen.lost += missing;
    }
    Ok(seen)
}

/// One subscriber, until it has seen the last event.
async fn one(
    connection: Connection,
    n: usize,
    last: u64,
    shared: &RefCell<Shared>,
    places: &RefCell<Vec<u64>>,
    greeted: &AtomicUsize,
) -> Result<()> {
    let (mut chunks, mut text) = (Chunks::default(), Vec::new());
    chunks.push(connection.begun(), &mut text)?;
    let stream = connection.into_stream();
    let (mut next, mut is_greeted) = (1, false);
    loop {
        if !text.is_empty() {
            let mut shared = shared.borrow_mut();
            let used = shared.frames(&text, &mut next)?;
            text.drain(..used);
            places.borrow_mut()[n] = next;
            if used > 0 && !is_greeted {
                is_greeted = true;
                greeted.fetch_add(1, Ordering::SeqCst);
            }
        }
        if next > last {
            return Ok(());
        }
        stream.readable().await?;
        let mut shared = shared.borrow_mut();
        match stream.try_read(&mut shared.piece) {
            Ok(0) => bail!("the server ended a stream at event {next}"),
            Ok(read) => {
                let ended = chunks.push(&shared.piece[..read], &mut text)?;
                ensure!(!ended, "the server ended a stream at event {next}");
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Shared {
    /// Looks at all whole frames, and gives how long they are.
    fn frames(&mut self, text: &[u8], next: &mut u64) -> Result<usize> {
        let now = SystemClock.now().as_nanosecond();
        let mut used = 0;
        while let Some(end) = self.end.find(&text[used..]) {
            let frame = &text[used..used + end];
            used += end + 2;
            let Some(rest) = frame.strip_prefix(b"id: ") else {
                let is_missed = memmem::find(frame, b"event: missed").is_some();
                self.seen.told += u64::from(is_missed);
                continue;
            };
            let id = digits(rest).context("an id is not a number")?;
            self.seen.received += 1;
            if id < *next {
                self.seen.twice += 1;
                continue;
            }
            self.seen.lost += id - *next;
            *next = id + 1;
            let Some(at) = self.mark.find(rest) else {
                continue;
            };
            let recorded = digits(&rest[at + MARK.len()..]).context("an event has no moment")?;
            let took = u64::try_from(now - i128::from(recorded)).unwrap_or(0);
            self.seen.took.record(Duration::from_nanos(took));
        }
        Ok(used)
    }
}

/// The number at the beginning of a text.
fn digits(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let text = &text[..end.unwrap_or(text.len())];
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_lost() {
        let mut shared = Shared {
            seen: Seen::default(),
            piece: Vec::new(),
            mark: Finder::new(MARK),
            end: Finder::new(b"\n\n"),
        };
        let text = b"event: connected\ndata: {}\n\nid: 1\nevent: a\ndata: {}\n\nid: 2\nevent: a\ndata: {\"o\":\"t=1000 x\"}\n\nid: 5\nevent: a\ndata: {}\n\nevent: missed\ndata: {}\n\nid: 5\ndata: {}\n\nid: 6\nda";
        let mut next = 1;
        let used = shared.frames(text, &mut next).unwrap();
        assert_eq!(&text[used..], b"id: 6\nda");
        let Seen {
            took,
            received,
            lost,
            twice,
            told,
        } = shared.seen;
        assert_eq!((received, lost, twice, told, next), (4, 2, 1, 1, 6));
        assert_eq!(took.count(), 1);
    }
}
