//! Tasks of the main thread and memory while a very long transcript is scrolled through.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quipu_browser::Tab;
use serde_json::json;

use super::{Bench, figure, row_ms};
use crate::table::{Goal, Table, now};

/// Pixels from one frame to the next: a screen, so that nothing is left out.
const STEP: u32 = 900;
/// Frames between two looks from outside.
const FRAMES: u32 = 600;
/// Milliseconds that a task may take.
const TASK: f64 = 50.0;
/// MiB that the tab may hold.
const MEMORY: f64 = 250.0;
/// How long the tab rests before its memory is looked at, so that the browser may collect garbage by itself.
const REST: Duration = Duration::from_secs(30);

/// A page that does nothing but count for a few milliseconds in each frame. What takes long there is the machine.
const EMPTY: &str = "new Promise((done) => {
  let left = 900;
  const step = () => {
    const end = performance.now() + 6;
    while (performance.now() < end);
    left -= 1;
    if (left > 0) requestAnimationFrame(step);
    else setTimeout(() => done(true), 100);
  };
  step();
})";

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    let events = bench.events(&bench.scrolled)?;
    let mut tab = bench.tab();
    now("scroll: an empty page");
    tab.go("data:text/html,<!doctype html><p>empty");
    tab.until("globalThis.probe && document.querySelector('p')");
    tab.get(EMPTY);
    let empty = longest(&mut tab)?;
    now("scroll: opening");
    bench.open(&mut tab, &format!("/t/{}", bench.scrolled));
    let opening = longest(&mut tab)?;
    let before = memory(&mut tab)?;
    let mut most_held = before;
    let (mut frames, mut looked, mut blank) = (0.0, 0.0, 0.0);
    loop {
        let seen = tab.get(&format!(
            "new Promise((done) => {{
               let [frames, looked, blank] = [0, 0, 0];
               const root = document.scrollingElement;
               const step = () => {{
                 scrollBy({{ top: {STEP}, behavior: 'instant' }});
                 frames += 1;
                 if (frames % 10 === 0) {{
                   looked += 1;
                   if (!document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest('.ev')) blank += 1;
                 }}
                 const isEnd = innerHeight + scrollY >= root.scrollHeight - 2;
                 if (isEnd || frames >= {FRAMES}) done([isEnd, frames, looked, blank, scrollY / root.scrollHeight]);
                 else requestAnimationFrame(step);
               }};
               requestAnimationFrame(step);
             }})"
        ));
        frames += figure(&seen[1])?;
        looked += figure(&seen[2])?;
        blank += figure(&seen[3])?;
        most_held = most_held.max(memory(&mut tab)?);
        now(&format!("scroll: {:.0} %", figure(&seen[4])? * 100.0));
        if seen[0] == json!(true) {
            break;
        }
    }
    // The end is drawn as well.
    tab.until("document.querySelector('.group:last-of-type > .chunk:last-of-type .ev')");
    let last = tab.get("document.querySelector('main .end').textContent");
    ensure!(last.is_string(), "the end of the transcript is not there");
    let (tasks, most) = longest(&mut tab)?;
    now("scroll: resting");
    std::thread::sleep(REST);
    let held = memory(&mut tab)?;
    let nodes = figure(&tab.get("document.getElementsByTagName('*').length"))?;
    tab.command("HeapProfiler.collectGarbage", &json!({}));
    std::thread::sleep(Duration::from_secs(1));
    let heap = figure(&tab.get("performance.memory.usedJSHeapSize"))? / 1_048_576.0;
    row_ms(
        table,
        &format!("longest task while scrolling {events} events"),
        most,
        TASK,
        Goal::AtMost(1.0),
    );
    row_ms(
        table,
        "longest task of a page that does nothing",
        empty.1,
        TASK,
        Goal::Free,
    );
    table.row(
        "memory of the tab after that and some rest",
        &format!("{held:.0} MiB"),
        &format!("{MEMORY:.0} MiB"),
        held / MEMORY,
        Goal::AtMost(1.0),
    );
    let blank = 100.0 * blank / f64::max(looked, 1.0);
    table.note(format!(
        "Scrolling: {frames:.0} frames of {STEP} px each, {tasks} tasks over {TASK:.0} ms. In the middle of the screen nothing was \
         drawn yet in {blank:.1} % of frames. While opening it, {} tasks over {TASK:.0} ms, the longest {:.0} ms. A page that only \
         counts for 6 ms in each of 900 frames had {} such tasks: what it has comes from what else the machine does.\n\
         Memory is what the process that draws the tab has for itself (RssAnon and VmSwap, as the browser's task manager counts \
         it): {before:.0} MiB once opened, at most {most_held:.0} MiB while scrolling, {held:.0} MiB after {} s without a touch. \
         After collecting garbage, {heap:.0} MiB are objects of scripts; the document has {nodes:.0} elements.",
        opening.0,
        opening.1,
        empty.0,
        REST.as_secs(),
    ));
    Ok(())
}

/// How many tasks took longer than they may since the last time, and the longest.
fn longest(tab: &mut Tab) -> Result<(usize, f64)> {
    let tasks = tab.get("probe.tasks.splice(0)");
    let tasks = tasks.as_array().context("no list of tasks")?;
    let tasks: Vec<f64> = tasks.iter().map(figure).collect::<Result<_>>()?;
    let most = tasks.iter().copied().fold(0.0, f64::max);
    Ok((tasks.len(), most))
}

/// What the process that draws the tab has for itself, in MiB.
fn memory(tab: &mut Tab) -> Result<f64> {
    let mut most: f64 = 0.0;
    for process in tab.renderers() {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let figure = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let held = figure("RssAnon:").context("RssAnon is not told")?;
        most = most.max((held + figure("VmSwap:").unwrap_or(0.0)) / 1024.0);
    }
    Ok(most)
}
