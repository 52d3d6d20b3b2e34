//! Who looks at which batch.
//!
//! The caller's thread reads and puts what was seen in order, both of which cost little; the others look at
//! batches. There are never more batches than a few for each of them, whatever the file is.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use super::VerifyOptions;
use super::batch::{Batch, Cutter};
use super::examine::{Examiner, Seen};
use super::sequence::Sequence;

/// A batch on its way, with its number.
#[derive(Debug)]
struct Work {
    number: u64,
    batch: Batch,
    seen: Seen,
}

/// All of it in this thread.
pub(super) fn alone<R: Read>(
    cutter: &mut Cutter<R>,
    options: &VerifyOptions,
    sequence: &mut Sequence,
) -> io::Result<()> {
    let mut examiner = Examiner::new(options, sequence.hasher());
    let mut batch = Batch::default();
    let mut seen = Seen::new(options.strict);
    while cutter.fill(&mut batch)? {
        examiner.examine(&batch, &mut seen);
        sequence.take(&batch, &mut seen);
    }
    Ok(())
}

/// More threads than that are not started, however many are asked for.
const MOST_THREADS: usize = 1024;

/// With as many threads as asked for, beside this one. They are started as there are batches for them.
pub(super) fn together<R: Read>(
    cutter: &mut Cutter<R>,
    options: &VerifyOptions,
    sequence: &mut Sequence,
) -> io::Result<()> {
    // One to look at and one to go on with, for each; and one that is read into meanwhile.
    let mut threads = options.threads.min(MOST_THREADS);
    let most = threads * 2;
    let (give, work) = sync_channel::<Work>(most);
    let (done, results) = sync_channel::<Option<Work>>(most + threads);
    let work = Mutex::new(work);
    let hasher = sequence.hasher();
    std::thread::scope(|scope| {
        let start = || {
            let (work, done) = (&work, done.clone());
            let examiner = Examiner::new(options, hasher.clone());
            std::thread::Builder::new()
                .spawn_scoped(scope, move || examine(examiner, work, &done))
                .is_ok()
        };
        // Where there can be no other, this one does it.
        if !start() {
            return alone(cutter, options, sequence);
        }
        let mut started = 1;
        // Gone when this ends in any way, which is what the threads end by.
        let give = give;
        let mut order = Order {
            sequence,
            results,
            early: BTreeMap::new(),
            free: Vec::new(),
            next: 0,
        };
        let mut given = 0;
        loop {
            // Whoever looks at a batch does not wait for us: both ways have room for all there are.
            while given - order.next >= most as u64 {
                order.receive();
            }
            let mut item = order.free.pop().unwrap_or_else(|| Work {
                number: 0,
                batch: Batch::default(),
                seen: Seen::new(options.strict),
            });
            if !cutter.fill(&mut item.batch)? {
                break;
            }
            item.number = given;
            given += 1;
            if started < threads && (started as u64) < given - order.next {
                if start() {
                    started += 1;
                } else {
                    // Those that there are go on.
                    threads = started;
                }
            }
            give.send(item)
                .expect("they go on until there is no more to give");
        }
        while order.next < given {
            order.receive();
        }
        Ok(())
    })
}

/// Says that a thread is lost with the batch it had; nobody would wait for it in vain.
struct Alarm<'d>(&'d SyncSender<Option<Work>>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send(None).ok();
        }
    }
}

fn examine(mut examiner: Examiner, work: &Mutex<Receiver<Work>>, done: &SyncSender<Option<Work>>) {
    let alarm = Alarm(done);
    loop {
        // The lock is held while waiting: whoever has it is the one that is woken.
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut item) = next else { return };
        examiner.examine(&item.batch, &mut item.seen);
        if alarm.0.send(Some(item)).is_err() {
            return;
        }
    }
}

/// Puts what comes back in order.
struct Order<'s> {
    sequence: &'s mut Sequence,
    results: Receiver<Option<Work>>,
    /// Those that came before their turn.
    early: BTreeMap<u64, Work>,
    /// Those that are done with, to be used again.
    free: Vec<Work>,
    next: u64,
}

impl Order<'_> {
    fn receive(&mut self) {
        let item = self.results.recv().ok().flatten();
        let item = item.expect("a thread gives back what it took, unless it is lost");
        self.early.insert(item.number, item);
        while let Some(mut item) = self.early.remove(&self.next) {
            self.sequence.take(&item.batch, &mut item.seen);
            self.free.push(item);
            self.next += 1;
        }
    }
}
