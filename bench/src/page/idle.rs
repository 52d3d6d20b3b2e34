//! Requests of a page that nobody touches.

use std::time::Duration;

use super::Bench;
use crate::table::{Goal, Table, now};

/// How long a page may take to come to rest.
const SETTLE: Duration = Duration::from_secs(3);

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) {
    let lasting = Duration::from_secs(bench.options.seconds);
    let transcript = format!("/t/{}", bench.opened);
    for (name, path) in [("overview", "/"), ("transcript", &transcript)] {
        now(&format!(
            "idle: {name}, watching for {} s",
            lasting.as_secs()
        ));
        let mut tab = bench.tab();
        bench.open(&mut tab, path);
        std::thread::sleep(SETTLE);
        let opening = tab.sent();
        let streams = opening.iter().filter(|url| url.contains("/stream")).count();
        std::thread::sleep(lasting);
        let sent = tab.sent();
        table.row(
            &format!("requests of an idle {name} in {} s", lasting.as_secs()),
            &sent.len().to_string(),
            &format!("0 beside {streams} stream"),
            (sent.len() + streams.abs_diff(1)) as f64,
            Goal::AtMost(0.0),
        );
        if !sent.is_empty() {
            table.note(format!("An idle {name} asked for: {}", sent.join(", ")));
        }
    }
}
