//! The header of a transcript, from memory, beside a bare axum and agentsview.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::http::get;
use super::load::{Plan, in_turn, once, run};
use super::process::Server;
use super::{Bench, hello, logs};
use crate::command;
use crate::peers;
use crate::table::{Goal, Table, median, now, per_second};

/// Sessions that are asked for in turn.
const SESSIONS: usize = 200;
/// Messages of each, and their length.
const MESSAGES: usize = 40;
const BYTES: usize = 200;

const CONNECTIONS: usize = 64;

/// A server, and what it is asked.
struct Asked<'s> {
    server: &'s Server,
    requests: Vec<Vec<u8>>,
    status: u16,
    /// Requests a second, and processor time of the server for one in microseconds, by round.
    rates: Vec<f64>,
    costs: Vec<f64>,
}

impl<'s> Asked<'s> {
    fn new(server: &'s Server, requests: Vec<Vec<u8>>, status: u16) -> Self {
        Self {
            server,
            requests,
            status,
            rates: Vec::new(),
            costs: Vec::new(),
        }
    }

    fn round(&mut self, lasting: Duration, counts: bool) -> Result<()> {
        let plan = Plan {
            address: self.server.address,
            connections: CONNECTIONS,
            lasting,
            status: self.status,
        };
        let before = self.server.cpu()?;
        let load = run(plan, &|connection| in_turn(&self.requests, connection))?;
        let cpu = self.server.cpu()? - before;
        if counts {
            self.rates.push(load.rate);
            self.costs.push(cpu * 1e6 / load.took.count() as f64);
        }
        Ok(())
    }

    fn rate(&self) -> String {
        per_second(median(self.rates.clone()))
    }

    fn cost(&self) -> String {
        format!("{:.1} us", median(self.costs.clone()))
    }
}

/// The median of how much of another's figures ours are, round by round.
fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(a, b)| a / b).collect())
}

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>) -> Result<()> {
    now("header: making up sessions");
    let root = bench.fresh("header")?;
    let (sessions, home) = (root.path().join("logs"), root.path().join("home"));
    let ids: Vec<String> = (0..SESSIONS)
        .map(|n| logs::session(&sessions, n, MESSAGES, BYTES))
        .collect::<Result<_>>()?;
    bench.import(&home, &sessions, None)?;
    let server = bench.serve(&home, &sessions)?;
    let path = |id: &String| format!("/api/v1/transcripts/{id}");
    let headers = ids.iter().map(|id| get(server.address, &path(id), ""));
    let headers: Vec<Vec<u8>> = headers.collect();
    let (mut known, mut length) = (Vec::new(), 0);
    for (id, request) in ids.iter().zip(&headers) {
        let (status, body, etag) = once(server.address, request, "etag")?;
        ensure!(status == 200, "a header was answered with {status}");
        let etag = etag.context("a header has no ETag")?;
        known.push(get(
            server.address,
            &path(id),
            &format!("If-None-Match: {etag}\r\n"),
        ));
        length = body.len();
    }
    let hello = hello::start(length)?;
    let theirs = if let Some(program) = bench.agentsview {
        Some(agentsview(program, &sessions, root.path())?)
    } else {
        table.note("skipped: no agentsview to compare headers with (pip install agentsview; --agentsview PATH)");
        None
    };
    let mut bare = Asked::new(&hello, vec![get(hello.address, hello::PATH, "")], 200);
    let mut ours = Asked::new(&server, headers, 200);
    let mut again = Asked::new(&server, known, 304);
    let mut peer = theirs.as_ref().map(|theirs| {
        let path = |id: &String| format!("/api/v1/sessions/{id}");
        let requests = ids.iter().map(|id| get(theirs.address, &path(id), ""));
        Asked::new(theirs, requests.collect(), 200)
    });
    let lasting = bench.lasting(2);
    for round in 0..=bench.rounds {
        now(&format!("header, round {round} of {}", bench.rounds));
        // The first warms everything up, and is not counted.
        let counts = round > 0;
        for asked in [&mut bare, &mut ours, &mut again]
            .into_iter()
            .chain(&mut peer)
        {
            asked.round(lasting, counts)?;
        }
    }
    let limit = format!("bare axum {}", bare.rate());
    for (what, asked) in [
        ("header, requests a second", &ours),
        (
            "header that the client has (304), requests a second",
            &again,
        ),
    ] {
        let ratio = ratio(&asked.rates, &bare.rates);
        table.row(what, &asked.rate(), &limit, ratio, Goal::AtLeast(0.80));
    }
    if let Some(peer) = &peer {
        table.row(
            "header, requests a second, times agentsview's",
            &ours.rate(),
            &format!("agentsview {}", peer.rate()),
            ratio(&ours.rates, &peer.rates),
            Goal::AtLeast(4.0),
        );
    }
    table.row(
        "header, processor time of the server",
        &ours.cost(),
        &format!("bare axum {}", bare.cost()),
        ratio(&ours.costs, &bare.costs),
        Goal::Free,
    );
    Ok(())
}

/// The server of agentsview, with the same sessions taken in.
fn agentsview(program: &Path, sessions: &Path, root: &Path) -> Result<Server> {
    let data = root.join("agentsview");
    command::run(peers::sync(program, sessions, &data)).context("agentsview sync")?;
    let server = Server::start(peers::serve(program, sessions, &data))?;
    server.ready("/api/v1/sessions?limit=1")?;
    Ok(server)
}
