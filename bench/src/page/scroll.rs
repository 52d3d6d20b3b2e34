//! Tasks of the main thread and memory while a very long transcript is scrolled through.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quipu_browser::Tab;
use serde_json::json;

use super::{Bench, figure, row_ms};
use crate::table::{Goal, Table, now};

/// Pixels from one frame to the next: more than two screens, as with the scroll bar.
const STEP: u32 = 2_000;
/// Frames between two looks from outside.
const FRAMES: u32 = 600;
/// Milliseconds that a task may take.
const TASK: f64 = 50.0;
/// MiB that the tab may hold.
const MEMORY: f64 = 250.0;

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    let events = bench.events(&bench.scrolled)?;
    let mut tab = bench.tab();
    now("scroll: opening");
    bench.open(&mut tab, &format!("/t/{}", bench.scrolled));
    let opening = longest(&mut tab)?;
    let before = memory(&mut tab)?;
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
        now(&format!("scroll: {:.0} %", figure(&seen[4])? * 100.0));
        if seen[0] == json!(true) {
            break;
        }
    }
    // The end is drawn as well.
    tab.until("document.querySelector('.chunk:last-of-type .ev')");
    let last = tab.get("document.querySelector('main .end').textContent");
    ensure!(last.is_string(), "the end of the transcript is not there");
    let (tasks, most) = longest(&mut tab)?;
    let held = memory(&mut tab)?;
    let nodes = figure(&tab.get("document.getElementsByTagName('*').length"))?;
    tab.command("HeapProfiler.collectGarbage", &json!({}));
    std::thread::sleep(Duration::from_secs(1));
    let heap = figure(&tab.get("performance.memory.usedJSHeapSize"))? / 1048576.0;
    row_ms(
        table,
        &format!("longest task while scrolling {events} events"),
        most,
        TASK,
        Goal::AtMost(1.0),
    );
    table.row(
        "memory of the tab after that",
        &format!("{held:.0} MiB"),
        &format!("{MEMORY:.0} MiB"),
        held / MEMORY,
        Goal::AtMost(1.0),
    );
    table.note(format!(
        "Scrolling: {frames:.0} frames of {STEP} px each; {tasks} tasks over {TASK:.0} ms. In the middle of the screen nothing was drawn yet in {:.1} % of frames.\n\
         While opening it, {} tasks over {TASK:.0} ms, the longest {:.0} ms.\n\
         Memory is what the process that draws the tab has for itself (RssAnon and VmSwap, as the browser's task manager counts it), \
         without collecting garbage before: {before:.0} MiB once opened, {held:.0} MiB at the end. Of that, {heap:.0} MiB are objects of scripts \
         after collecting garbage; the document has {nodes:.0} elements.",
        100.0 * blank / f64::max(looked, 1.0),
        opening.0,
        opening.1,
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
