//! A live run with many subscribers: what they lose, how late it is, what it costs.

use std::time::Duration;

use anyhow::Result;
use quipu_model::RunId;

use super::Bench;
use super::crowd::Crowd;
use super::writer::{Writer, Wrote};
use crate::sample::run_id;
use crate::table::{Goal, Table, median, now, per_second};

/// How long events may take to arrive after the last was recorded.
const PATIENCE: Duration = Duration::from_secs(20);

/// Events of a writer that writes as fast as it can.
const BURST: u64 = 100_000;

/// The goals: milliseconds, MiB, and how much of its speed the writer keeps.
const LATE: f64 = 50.0;
const MEMORY: f64 = 64.0;
const KEPT: f64 = 0.90;

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    let root = bench.fresh("sse")?;
    let home = root.path().join("home");
    let server = bench.serve(&home, root.path())?;
    let (count, rate) = (bench.subscribers, bench.rate);
    let events = rate * bench.lasting(10).as_secs();
    let path = |run: &RunId| format!("/api/v1/transcripts/{}/stream?from=1", run.as_str());
    let mut runs = (1..).map(run_id);
    let mut fresh = || runs.next().unwrap_or_else(|| run_id(0));

    now("sse: a writer without subscribers");
    let alone = Writer::start(&home, &fresh(), events, rate)?.write()?;
    now(&format!("sse: {count} subscribers"));
    let run = fresh();
    let writer = Writer::start(&home, &run, events, rate)?;
    // The first event begins the run.
    let crowd = Crowd::gather(server.address, &path(&run), count, events + 1)?;
    let before = server.cpu()?;
    let crowded = writer.write()?;
    let seen = crowd.finish(PATIENCE)?;
    let (cpu, peak) = (server.cpu()? - before, server.peak()?);
    let expected = (events + 1) * count as u64;
    table.row(
        &format!("lost by {count} subscribers at {rate} events a second"),
        &format!("{}", seen.lost),
        &format!("of {:.2} M", expected as f64 / 1e6),
        seen.lost as f64,
        Goal::AtMost(0.0),
    );
    let late = seen.took.percent(99);
    table.row(
        "from recording an event to a subscriber that has read it, p99",
        &format!("{late:.1} ms"),
        &format!("{LATE:.0} ms"),
        late / LATE,
        Goal::AtMost(1.0),
    );
    table.row(
        &format!("peak memory of the server with {count} subscribers"),
        &format!("{peak:.1} MiB"),
        &format!("{MEMORY:.0} MiB"),
        peak / MEMORY,
        Goal::AtMost(1.0),
    );
    let speed = |wrote: &Wrote, events: u64| events as f64 / wrote.seconds;
    table.row(
        &format!("writer at {rate} a second with {count} subscribers"),
        &per_second(speed(&crowded, events)),
        &format!("none {}", per_second(speed(&alone, events))),
        speed(&crowded, events) / speed(&alone, events),
        Goal::AtLeast(KEPT),
    );
    table.row(
        "a call to record an event then, half within",
        &format!("{:.1} us", crowded.call * 1e3),
        &format!("none {:.1} us", alone.call * 1e3),
        crowded.call / alone.call,
        Goal::Free,
    );
    table.note(format!(
        "Live stream: {} events were read by {count} subscribers, {} twice, {} notices of events that were missed; half within {:.1} ms,\nthe latest after {:.0} ms. The server took {:.2} s of processor time for {:.1} s of events.",
        seen.received,
        seen.twice,
        seen.told,
        seen.took.percent(50),
        seen.took.most(),
        cpu,
        crowded.seconds
    ));

    // As fast as it can, the writer outruns what a thousand connections can carry, and shares the processors with all of
    // them. What subscribers cost it is then told by its own processor time.
    let (mut costs, mut kept, mut walls) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.rounds.clamp(1, 3) {
        now(&format!(
            "sse: a writer as fast as it can, round {}",
            round + 1
        ));
        let alone = Writer::start(&home, &fresh(), BURST, 0)?.write()?;
        let run = fresh();
        let writer = Writer::start(&home, &run, BURST, 0)?;
        let crowd = Crowd::gather(server.address, &path(&run), count, u64::MAX)?;
        let crowded = writer.write()?;
        crowd.finish(Duration::ZERO)?;
        costs.push((crowded.cpu, alone.cpu));
        kept.push(alone.cpu / crowded.cpu);
        walls.push(alone.seconds / crowded.seconds);
    }
    let each = |seconds: f64| format!("{:.2} us", seconds * 1e6 / BURST as f64);
    let middle = |figure: fn(&(f64, f64)) -> f64| median(costs.iter().map(figure).collect());
    table.row(
        &format!("writer's processor time for an event, {count} subscribers"),
        &each(middle(|it| it.0)),
        &format!("none {}", each(middle(|it| it.1))),
        median(kept),
        Goal::AtLeast(KEPT),
    );
    table.row(
        "the same by wall time, processors shared with all of them",
        "",
        "none",
        median(walls),
        Goal::Free,
    );
    Ok(())
}
