//! What subscribers cost the writer, and what they lose.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quipu_record::{Durability, Recorder, Subscription};

use crate::sample::{draft, options, run_id};
use crate::table::{Goal, Table, median, per_second};

const SUBSCRIBERS: usize = 1000;
const EVENTS: usize = 200_000;

pub(crate) fn measure(table: &mut Table, dir: &Path, rounds: usize) -> Result<()> {
    let dir = tempfile::tempdir_in(dir)?;
    let mut n = 0;
    let mut fresh = || {
        n += 1;
        let path = dir.path().join(format!("{n}.jsonl"));
        Recorder::open(&path, &run_id(n), options(Durability::None))
    };
    let (mut alone, mut crowded, mut stalled) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let limit = beside_an_idle_thread(&fresh()?);
        let recorder = fresh()?;
        let crowd = served(&recorder, || write_rate(&recorder, EVENTS, None));
        let recorder = fresh()?;
        let stalling = recorder.subscribe();
        let with_stalled = beside_an_idle_thread(&recorder);
        let stats = stalling.stats();
        ensure!(
            stats.missed == EVENTS as u64 - 256,
            "a stalled subscriber misses all but 256"
        );
        if round > 0 {
            alone.push(limit);
            crowded.push(crowd / limit);
            stalled.push(with_stalled / limit);
        }
    }
    let limit = median(alone);
    let text = format!("no subscribers {}", per_second(limit));
    let ratio = median(crowded);
    let what = format!("writer with {SUBSCRIBERS} subscribers on one executor");
    table.row(
        &what,
        &per_second(limit * ratio),
        &text,
        ratio,
        Goal::AtLeast(0.80),
    );
    let ratio = median(stalled);
    let what = "writer with a stalled subscriber";
    table.row(
        what,
        &per_second(limit * ratio),
        &text,
        ratio,
        Goal::AtLeast(0.98),
    );

    for (rate, goal) in [(10_000, Goal::AtMost(0.0)), (30_000, Goal::Free)] {
        for threads in [false, true] {
            let (mut lost, mut reached, mut delivered) = (Vec::new(), Vec::new(), Vec::new());
            // A machine that stands still for 25 ms makes any buffer of 256 overflow at 10,000/s.
            for _ in 0..rounds.min(3) {
                let recorder = fresh()?;
                let events = rate * 3;
                let paced = || write_rate(&recorder, events, Some(rate));
                reached.push(if threads {
                    threaded(&recorder, paced)
                } else {
                    served(&recorder, paced)
                });
                let stats = recorder.stats();
                delivered.push(stats.delivered as f64);
                lost.push(stats.missed as f64 / (SUBSCRIBERS * events) as f64);
            }
            let how = if threads {
                "a thread each"
            } else {
                "one executor"
            };
            let what = format!("lost by {SUBSCRIBERS} subscribers at {rate}/s, {how}");
            let delivered = format!("{:.1} M", median(delivered) / 1e6);
            let text = format!("writer {}", per_second(median(reached)));
            table.row(&what, &delivered, &text, median(lost), goal);
        }
    }
    Ok(())
}

/// Writes events, at a pace if one is given; gives events per second.
fn write_rate(recorder: &Recorder, events: usize, pace: Option<usize>) -> f64 {
    let draft = draft();
    let began = Instant::now();
    for n in 0..events {
        if let Some(rate) = pace {
            let due = began + Duration::from_secs_f64(n as f64 / rate as f64);
            let early = due.saturating_duration_since(Instant::now());
            if early > Duration::from_micros(100) {
                std::thread::sleep(early);
            }
        }
        recorder.record(&draft).expect("recorded");
    }
    events as f64 / began.elapsed().as_secs_f64()
}

/// The writer's rate in a process with a second thread that does nothing. Files are dearer in a process
/// with several threads, whether or not they subscribe to anything.
fn beside_an_idle_thread(recorder: &Recorder) -> f64 {
    let (done, wait) = std::sync::mpsc::sync_channel::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || wait.recv().is_ok());
        let rate = write_rate(recorder, EVENTS, None);
        drop(done);
        rate
    })
}

/// Runs `act` while one thread serves all subscribers, as a server's executor would. Copies nothing,
/// but looks at every line.
fn served(recorder: &Recorder, act: impl FnOnce() -> f64) -> f64 {
    let mut subscribers: Vec<Subscription> =
        (0..SUBSCRIBERS).map(|_| recorder.subscribe()).collect();
    let bytes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let executor = scope.spawn(|| {
            let flag = Arc::new(Flag {
                woken: AtomicBool::new(true),
                thread: std::thread::current(),
            });
            let waker = Waker::from(flag.clone());
            let mut context = Context::from_waker(&waker);
            let mut open = subscribers.len();
            while open > 0 {
                while !flag.woken.swap(false, Ordering::SeqCst) {
                    std::thread::park();
                }
                open = 0;
                for subscriber in &mut subscribers {
                    loop {
                        match subscriber.poll_batch(&mut context) {
                            Poll::Ready(Some(Ok(batch))) => {
                                let seen: usize = batch.lines().map(|(_, line)| line.len()).sum();
                                bytes.fetch_add(seen as u64, Ordering::Relaxed);
                            }
                            Poll::Ready(Some(Err(_missed))) => {}
                            Poll::Ready(None) => break,
                            Poll::Pending => {
                                open += 1;
                                break;
                            }
                        }
                    }
                }
            }
        });
        let rate = act();
        recorder.close().expect("closed");
        executor.join().expect("the executor ends");
        rate
    })
}

struct Flag {
    woken: AtomicBool,
    thread: std::thread::Thread,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

/// Runs `act` while each subscriber waits in a thread of its own.
fn threaded(recorder: &Recorder, act: impl FnOnce() -> f64) -> f64 {
    let subscribers: Vec<Subscription> = (0..SUBSCRIBERS).map(|_| recorder.subscribe()).collect();
    std::thread::scope(|scope| {
        for mut subscriber in subscribers {
            let build = std::thread::Builder::new().stack_size(64 * 1024);
            let serve = move || while subscriber.recv_batch().is_some() {};
            build.spawn_scoped(scope, serve).expect("a thread");
        }
        let rate = act();
        recorder.close().expect("closed");
        rate
    })
}
