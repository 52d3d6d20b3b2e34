//! How soon results are on the screen after the last key.

use anyhow::Result;
use quipu_browser::Tab;
use serde_json::json;

use super::{Bench, figure, logs, row_ms};
use crate::corpus::dice::Dice;
use crate::table::{Goal, Table, median, now};

/// The goal, in milliseconds.
const LIMIT: f64 = 100.0;

/// Notes when the last key was, and when what was found is on the screen.
const SEARCH: &str = "(() => {
  addEventListener('keydown', (event) => (probe.key = event.timeStamp), true);
  const shown = () => document.querySelector('.find-screen')?.dataset.shown;
  const look = () => {
    const asked = document.getElementById('ask').value.trim();
    if (shown() !== asked) return;
    const { key } = probe;
    requestAnimationFrame(() => setTimeout(() => (probe.found = [asked, performance.now() - key])));
  };
  new MutationObserver(look).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-shown'] });
})()";

/// The same in one transcript, where the number of matches says that it is done.
const WITHIN: &str = "(() => {
  const box = document.getElementById('find');
  const found = document.getElementById('found');
  addEventListener('keydown', (event) => (probe.key = event.timeStamp), true);
  const look = () => {
    const [asked, { key }] = [box.value.trim(), probe];
    if (found.textContent) requestAnimationFrame(() => setTimeout(() => (probe.found = [asked, performance.now() - key])));
  };
  new MutationObserver(look).observe(found, { childList: true, characterData: true, subtree: true });
})()";

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    let status = bench.ask("/api/v1/status")?;
    let mut tab = bench.tab();
    bench.open(&mut tab, "/search?q=parser");
    tab.get(SEARCH);
    let took = typed(&mut tab, bench, "ask")?;
    let most = took.iter().copied().fold(0.0, f64::max);
    row_ms(
        table,
        "search results after the last key",
        median(took),
        LIMIT,
        Goal::AtMost(1.0),
    );
    row_ms(
        table,
        "search results after the last key, the slowest",
        most,
        LIMIT,
        Goal::Free,
    );
    let events = bench.events(&bench.scrolled)?;
    bench.open(&mut tab, &format!("/t/{}", bench.scrolled));
    tab.get(WITHIN);
    let took = typed(&mut tab, bench, "find")?;
    row_ms(
        table,
        &format!("matches within {events} events"),
        median(took),
        LIMIT,
        Goal::Free,
    );
    let sessions = &status["transcripts"]["sessions"];
    table.note(format!("Search: two words, typed letter by letter without a pause, in {sessions} sessions; the time is from the last key until a frame with the results was drawn."));
    Ok(())
}

/// Types two words into a field again and again, and gives how long the results took.
fn typed(tab: &mut Tab, bench: &Bench<'_>, field: &str) -> Result<Vec<f64>> {
    let (mut dice, mut took, mut last) = (Dice::new(7), Vec::new(), String::new());
    for round in 0..=bench.options.rounds.max(1) {
        now(&format!("search: {field}, round {round}"));
        let words = loop {
            let words = format!("{} {}", dice.pick(&logs::WORDS), dice.pick(&logs::WORDS));
            if words != last {
                break words;
            }
        };
        tab.get(&format!(
            "(document.getElementById('{field}').select(), probe.found = null)"
        ));
        tab.write(&words);
        tab.until(&format!("probe.found?.[0] === {}", json!(words)));
        let found = tab.get("probe.found[1]");
        if round > 0 {
            took.push(figure(&found)?);
        }
        last = words;
    }
    Ok(took)
}
