//! Pages of events from anywhere in a long transcript.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};

use super::http::get;
use super::load::{Load, Plan, Requests, once, run};
use super::{Bench, hello, logs};
use crate::corpus::dice::Dice;
use crate::table::{Goal, Table, median, now, per_second};

/// Events of a page.
const PAGE: usize = 200;

const CONNECTIONS: usize = 64;

/// The goal, in milliseconds.
const LATE: f64 = 20.0;

/// A transcript, and how many events it has.
struct Long {
    name: &'static str,
    id: String,
    events: usize,
    /// The length of a page.
    length: usize,
    loads: Vec<Load>,
}

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    now("events: making up transcripts");
    let root = bench.fresh("events")?;
    let (sessions, home) = (root.path().join("logs"), root.path().join("home"));
    // Some events of a session are made of more than one line, and the other way around; pages begin in what there is.
    let imported = logs::session(&sessions, 0, bench.events, 300)?;
    bench.import(&home, &sessions, None)?;
    let recorded = logs::run(&home, bench.events)?;
    // The catalogue knows of the run before the server starts.
    bench.list(&home, &sessions)?;
    let server = bench.serve(&home, &sessions)?;
    let mut all = Vec::new();
    for (name, id) in [("recorded run", recorded), ("imported session", imported)] {
        all.push(look(server.address, name, id)?);
    }
    let longest = all.iter().map(|long| long.length).max().unwrap_or(0);
    let hello = hello::start(longest)?;
    let mut bare = Vec::new();
    let lasting = bench.lasting(5);
    let plan = |address| Plan {
        address,
        connections: CONNECTIONS,
        lasting,
        status: 200,
    };
    for round in 0..=bench.rounds {
        now(&format!("events, round {round} of {}", bench.rounds));
        let request = get(hello.address, hello::PATH, "");
        let limit = run(plan(hello.address), &|connection| {
            super::load::in_turn(std::slice::from_ref(&request), connection)
        })?;
        if round > 0 {
            bare.push(limit);
        }
        for long in &mut all {
            let load = run(plan(server.address), &|connection| {
                pages(server.address, long, round * CONNECTIONS + connection)
            })?;
            if round > 0 {
                long.loads.push(load);
            }
        }
    }
    let middle = |loads: &[Load], figure: &dyn Fn(&Load) -> f64| {
        median(loads.iter().map(figure).collect::<Vec<f64>>())
    };
    for long in &all {
        let Long { name, events, .. } = long;
        let [p50, p99] = [50, 99].map(|percent| {
            let figure = move |load: &Load| load.took.percent(percent);
            (middle(&long.loads, &figure), middle(&bare, &figure))
        });
        table.row(
            &format!("page of {PAGE} of {events}, {name}, p50"),
            &format!("{:.2} ms", p50.0),
            &format!("bare axum {:.2} ms", p50.1),
            p50.0 / p50.1,
            Goal::Free,
        );
        table.row(
            &format!("page of {PAGE} of {events}, {name}, p99"),
            &format!("{:.2} ms", p99.0),
            &format!("{LATE:.0} ms"),
            p99.0 / LATE,
            Goal::AtMost(1.0),
        );
        table.row(
            &format!("pages a second, {name}"),
            &per_second(middle(&long.loads, &|load| load.rate)),
            &format!("bare axum {}", per_second(middle(&bare, &|load| load.rate))),
            middle(&long.loads, &|load| load.rate) / middle(&bare, &|load| load.rate),
            Goal::Free,
        );
    }
    let lengths = all
        .iter()
        .map(|long| format!("{} {} kB", long.name, long.length / 1000));
    table.note(format!(
        "Pages of events: {CONNECTIONS} connections, each asks for a page at a random place as soon as it has the last. A page is\nabout so long: {}. The bare axum sends as many bytes as the longest.",
        lengths.collect::<Vec<_>>().join(", ")
    ));
    Ok(())
}

fn address(id: &str, from: usize) -> String {
    format!("/api/v1/transcripts/{id}/events?from={from}&limit={PAGE}")
}

/// Asks for the first page, to know how many events there are.
fn look(server: SocketAddr, name: &'static str, id: String) -> Result<Long> {
    let request = get(server, &address(&id, 1), "");
    let (status, body, _) = once(server, &request, "")?;
    let said = String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned();
    ensure!(status == 200, "{name}: answered with {status}: {said}");
    let page: serde_json::Value = serde_json::from_slice(&body)?;
    let total = page["total"].as_u64().context("a page says the total")?;
    let events = usize::try_from(total)?;
    let got = page["events"].as_array().map_or(0, Vec::len);
    ensure!(
        events >= PAGE && got == PAGE,
        "{name}: {got} of {events} events"
    );
    Ok(Long {
        name,
        id,
        events,
        length: body.len(),
        loads: Vec::new(),
    })
}

/// Pages at random places.
fn pages(server: SocketAddr, long: &Long, seed: usize) -> Requests {
    let mut dice = Dice::new(seed as u64 + 1);
    let (id, most) = (long.id.clone(), long.events - PAGE + 1);
    Box::new(move |request| {
        let from = 1 + dice.below(most);
        request.extend_from_slice(&get(server, &address(&id, from), ""));
    })
}
