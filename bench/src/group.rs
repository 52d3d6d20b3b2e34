//! Group commit against a sync for each event.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use quipu_record::{Durability, Recorder};

use crate::sample::{LINE, draft, options, run_id};
use crate::table::{Goal, Table, median, per_second};

const PRODUCERS: usize = 32;
const LASTING: Duration = Duration::from_millis(700);

pub(crate) fn measure(table: &mut Table, dir: &Path, rounds: usize) -> Result<()> {
    let dir = tempfile::tempdir_in(dir)?;
    let (mut each, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let limit = sync_each(&dir.path().join(format!("each{round}")))?;
        let ours = grouped(&dir.path().join(format!("{round}.jsonl")), round)?;
        each.push(limit);
        ratios.push(ours / limit);
    }
    let (limit, ratio) = (median(each), median(ratios));
    let text = format!("fdatasync each {}", per_second(limit));
    let what = format!("durable events, {PRODUCERS} producers, group commit, disk");
    table.row(
        &what,
        &per_second(limit * ratio),
        &text,
        ratio,
        Goal::AtLeast(5.0),
    );
    Ok(())
}

/// All producers at once, for a while; gives events per second.
fn all_at_once(act: impl Fn() + Sync) -> f64 {
    let count = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| {
                while began.elapsed() < LASTING {
                    act();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    count.into_inner() as f64 / began.elapsed().as_secs_f64()
}

fn sync_each(path: &Path) -> Result<f64> {
    let line = [b'x'; LINE];
    let file = Mutex::new(
        OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?,
    );
    let rate = all_at_once(|| {
        let mut file = file.lock().expect("not poisoned");
        file.write_all(&line)
            .and_then(|()| file.sync_data())
            .expect("written");
    });
    Ok(rate)
}

/// Each producer waits until its event is on disk.
fn grouped(path: &Path, n: usize) -> Result<f64> {
    let recorder = Recorder::open(path, &run_id(n), options(Durability::default()))?;
    let draft = draft();
    let rate = all_at_once(|| {
        let seq = recorder.record(&draft).expect("recorded");
        recorder.wait_durable(seq).expect("durable");
    });
    recorder.close()?;
    Ok(rate)
}
