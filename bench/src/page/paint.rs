//! How soon the overview and a long transcript are on the screen.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{Bench, figure, row_ms};
use crate::table::{Goal, Table, median, now};

/// The goals, in milliseconds.
const OVERVIEW: f64 = 300.0;
const TRANSCRIPT: f64 = 500.0;

/// Milliseconds until anything is on the screen, and until what was asked for is.
#[derive(Default)]
struct Times {
    first: Vec<f64>,
    ready: Vec<f64>,
}

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    let transcript = format!("/t/{}", bench.opened);
    let events = bench.events(&bench.opened)?;
    screen(table, bench, "overview", "/", OVERVIEW)?;
    let name = format!("transcript of {events} events");
    screen(table, bench, &name, &transcript, TRANSCRIPT)
}

fn screen(table: &mut Table, bench: &Bench<'_>, name: &str, path: &str, limit: f64) -> Result<()> {
    let mut tab = bench.tab();
    let (mut new, mut known) = (Times::default(), Times::default());
    for round in 0..=bench.options.rounds.max(1) {
        now(&format!("paint: {name}, round {round}"));
        for is_new in [true, false] {
            if is_new {
                tab.command("Network.clearBrowserCache", &json!({}));
            }
            bench.open(&mut tab, path);
            tab.until("performance.getEntriesByName('first-contentful-paint').length > 0");
            let seen = tab.get("[performance.getEntriesByName('first-contentful-paint')[0].startTime, probe.ready]");
            // The first round warms browser and server up, and is not counted.
            if round > 0 {
                let times = if is_new { &mut new } else { &mut known };
                times.first.push(figure(&seen[0])?);
                times.ready.push(figure(&seen[1])?);
            }
        }
    }
    let most = new.ready.iter().copied().reduce(f64::max);
    let most = most.context("no round")?;
    row_ms(
        table,
        &format!("{name}, first paint"),
        median(new.first),
        limit,
        Goal::AtMost(1.0),
    );
    row_ms(
        table,
        &format!("{name}, ready"),
        median(new.ready),
        limit,
        Goal::AtMost(1.0),
    );
    row_ms(
        table,
        &format!("{name}, ready, the slowest"),
        most,
        limit,
        Goal::Free,
    );
    row_ms(
        table,
        &format!("{name}, ready, files known to the browser"),
        median(known.ready),
        limit,
        Goal::Free,
    );
    Ok(())
}
