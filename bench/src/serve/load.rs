//! Requests from many connections at once, each as soon as the last is answered.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::histogram::Histogram;
use super::http::Connection;
use super::processors;

/// How long the last answers are waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes the next request of a connection into an empty buffer.
pub(super) type Requests = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// What is asked, by how many, for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) address: SocketAddr,
    pub(super) connections: usize,
    pub(super) lasting: Duration,
    /// The status that every answer has to have.
    pub(super) status: u16,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Requests a second.
    pub(super) rate: f64,
    pub(super) took: Histogram,
}

/// A runtime on this thread.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("start a runtime")
}

/// Asks until the time is over. `requests` gives each connection what it asks.
///
/// Half of the processors ask, so that the server has the others.
pub(super) fn run(plan: Plan, requests: &(dyn Fn(usize) -> Requests + Sync)) -> Result<Load> {
    let threads = (processors() / 2).clamp(1, plan.connections.max(1));
    let began = Instant::now();
    let parts: Vec<Result<Histogram>> = std::thread::scope(|scope| {
        let asking = |thread: usize| {
            let own = (thread..plan.connections).step_by(threads);
            let own: Vec<Requests> = own.map(requests).collect();
            scope.spawn(move || {
                let end = began + plan.lasting;
                runtime()?.block_on(all(plan, own, end))
            })
        };
        let asking: Vec<_> = (0..threads).map(asking).collect();
        asking
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .map_err(|_| anyhow::anyhow!("a thread of the load panicked"))?
            })
            .collect()
    });
    let mut load = Load::default();
    for part in parts {
        load.took.add(&part?);
    }
    ensure!(load.took.count() > 0, "no request was answered in time");
    load.rate = load.took.count() as f64 / began.elapsed().as_secs_f64();
    Ok(load)
}

/// All connections of a thread.
async fn all(plan: Plan, own: Vec<Requests>, end: Instant) -> Result<Histogram> {
    let mut tasks = tokio::task::JoinSet::new();
    for requests in own {
        tasks.spawn(one(plan, requests, end));
    }
    let mut took = Histogram::default();
    let wait = async {
        while let Some(ended) = tasks.join_next().await {
            took.add(&ended??);
        }
        anyhow::Ok(())
    };
    let patience = plan.lasting + PATIENCE;
    let ended = tokio::time::timeout(patience, wait).await;
    ended.context("a request is not answered")??;
    Ok(took)
}

async fn one(plan: Plan, mut requests: Requests, end: Instant) -> Result<Histogram> {
    let mut connection = Connection::open(plan.address).await?;
    let (mut took, mut request) = (Histogram::default(), Vec::new());
    loop {
        request.clear();
        requests(&mut request);
        let began = Instant::now();
        if began >= end {
            return Ok(took);
        }
        let status = connection.ask(&request).await?;
        took.record(began.elapsed());
        ensure!(
            status == plan.status,
            "{} was answered with {status}: {}",
            String::from_utf8_lossy(&request)
                .lines()
                .next()
                .unwrap_or_default(),
            String::from_utf8_lossy(&connection.body()[..connection.body().len().min(500)])
        );
    }
}

/// The same requests over and over, each connection from another place in the list.
pub(super) fn in_turn(all: &[Vec<u8>], connection: usize) -> Requests {
    let all = all.to_vec();
    let mut next = connection * 7;
    Box::new(move |request| {
        request.extend_from_slice(&all[next % all.len()]);
        next += 1;
    })
}

/// Asks once, and gives the status, the body and what `header` says.
pub(crate) fn once(
    address: SocketAddr,
    request: &[u8],
    header: &str,
) -> Result<(u16, Vec<u8>, Option<String>)> {
    runtime()?.block_on(async {
        let mut connection = Connection::open(address).await?;
        let asked = tokio::time::timeout(PATIENCE, connection.ask(request)).await;
        let status = asked.context("a request is not answered")??;
        Ok((
            status,
            connection.body().to_vec(),
            connection.header(header),
        ))
    })
}
