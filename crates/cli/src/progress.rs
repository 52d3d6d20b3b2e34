//! A progress bar on a terminal, and nothing elsewhere.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quipu_store::import::Progress;

/// What is done sooner than this needs no bar.
const PATIENCE: Duration = Duration::from_millis(300);
/// How fast it goes is told from then on.
const SETTLED: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(100);

/// Does something that tells how far it is, with a bar where there is someone to see it.
pub(crate) fn with_bar<T>(work: impl FnOnce(&Progress) -> T) -> T {
    with_bar_of(&Progress::default(), work)
}

/// The same, for somebody else to see as well.
pub(crate) fn with_bar_of<T>(progress: &Progress, work: impl FnOnce(&Progress) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work(progress);
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let drawer = scope.spawn(|| draw(progress, &ended));
        // Also when the work panics; the scope waits for the drawer.
        let _end = End(&ended, drawer.thread().clone());
        work(progress)
    })
}

struct End<'e>(&'e AtomicBool, std::thread::Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

fn draw(progress: &Progress, ended: &AtomicBool) {
    let begun = Instant::now();
    let (mut bar, mut rated) = (None, false);
    while !ended.load(Ordering::Acquire) {
        if begun.elapsed() >= PATIENCE && progress.files.load(Ordering::Relaxed) > 0 {
            let bar: &mut ProgressBar = bar.get_or_insert_with(new_bar);
            // A rate of the first moments is no rate.
            if !rated && begun.elapsed() >= SETTLED {
                rated = true;
                bar.set_style(with_rate());
            }
            let bytes = progress.bytes.load(Ordering::Relaxed);
            bar.set_length(bytes);
            bar.set_position(progress.bytes_done.load(Ordering::Relaxed).min(bytes));
            bar.set_message(format!(
                "{}/{} logs",
                progress.files_done.load(Ordering::Relaxed),
                progress.files.load(Ordering::Relaxed)
            ));
            bar.tick();
        }
        std::thread::park_timeout(EVERY);
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn new_bar() -> ProgressBar {
    ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10)).with_style(
        style("{wide_bar} {decimal_bytes}/{decimal_total_bytes}, {msg}"),
    )
}

fn with_rate() -> ProgressStyle {
    style(
        "{wide_bar} {decimal_bytes}/{decimal_total_bytes}, {msg}, {decimal_bytes_per_sec}, {eta} left",
    )
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
