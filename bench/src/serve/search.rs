//! Search over HTTP, with snippets, from one connection: on its own, and while another process imports.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::Bench;
use super::histogram::Histogram;
use super::http::{Connection, escaped, get};
use super::load::runtime;
use crate::command;
use crate::corpus;
use crate::search::queries::{self, Class};
use crate::search::texts::Texts;
use crate::search::{count_events, ourselves};
use crate::setup::Setup;
use crate::table::{Goal, Table, now};

/// How many events are asked for.
const LIMIT: usize = 20;

/// What comes first, as the interface calls it.
const ORDERS: [&str; 2] = ["relevance", "newest"];

/// The goals, in milliseconds.
const HALF: f64 = 10.0;
const LATE: f64 = 35.0;
const IMPORTING: f64 = 100.0;

/// Queries of a kind in an order, and how long they took.
struct Measured {
    class: &'static str,
    order: &'static str,
    requests: Vec<Vec<u8>>,
    took: Histogram,
}

pub(super) fn measure(table: &mut Table, bench: &Bench<'_>, setup: &Setup) -> Result<()> {
    let corpus = setup.corpus()?;
    let root = bench.fresh("search")?;
    let (home, texts) = (root.path().join("home"), root.path().join("texts"));
    now("search: importing");
    bench.import(&home, &corpus.home, None)?;
    now("search: choosing queries");
    command::run(ourselves("texts", &corpus.home, &texts)?)?;
    let events = count_events(&texts)?;
    let classes = queries::classes(&Texts::open(&texts)?)?;
    let server = bench.serve(&home, &corpus.home)?;
    let mut all = Vec::new();
    for order in ORDERS {
        for Class { name, queries } in &classes {
            let request = |query: String| {
                let query = escaped(&query);
                let path = format!("/api/v1/search?q={query}&sort={order}&limit={LIMIT}");
                get(server.address, &path, "")
            };
            all.push(Measured {
                class: name,
                order,
                requests: queries.iter().map(|it| request(it.query())).collect(),
                took: Histogram::default(),
            });
        }
    }
    // Queries of each kind are asked for so long at most, once to warm up and once for the figures.
    let patience = bench.lasting(30);
    for measured in &mut all {
        now(&format!("search, {}: {}", measured.order, measured.class));
        ask_all(server.address, &measured.requests, patience)?;
        measured.took = ask_all(server.address, &measured.requests, patience)?;
    }
    alone(table, &all, events);

    now("search: making up more logs");
    let more = root.path().join("more");
    corpus::write(&more, setup.bytes() / 4, 2)?;
    now("search: searching while another process imports");
    let requests: Vec<&Vec<u8>> = all.iter().flat_map(|it| &it.requests).collect();
    let importing = AtomicBool::new(true);
    let (took, import) = std::thread::scope(|scope| {
        let import = scope.spawn(|| {
            let began = Instant::now();
            let imported = bench.import(&home, &corpus.home, Some(&more));
            importing.store(false, Ordering::SeqCst);
            imported.map(|()| began.elapsed())
        });
        let took = while_importing(server.address, &requests, &importing);
        (took, import.join())
    });
    let import = import.map_err(|_| anyhow::anyhow!("the import panicked"))??;
    let took = took?;
    ensure!(
        took.count() > 0,
        "the import was over before the first answer"
    );
    let late = took.percent(99);
    table.row(
        "search over HTTP while another process imports, p99",
        &format!("{late:.2} ms"),
        &format!("{IMPORTING:.0} ms"),
        late / IMPORTING,
        Goal::AtMost(1.0),
    );
    table.note(format!(
        "While importing: {} searches in {:.1} s, p50 {:.2} ms, the longest {:.2} ms; peak memory of the server {:.0} MiB.",
        took.count(),
        import.as_secs_f64(),
        took.percent(50),
        took.most(),
        server.peak()?
    ));
    Ok(())
}

/// Asks each once, as long as there is time.
fn ask_all(address: SocketAddr, requests: &[Vec<u8>], patience: Duration) -> Result<Histogram> {
    let began = Instant::now();
    runtime()?.block_on(async {
        let (mut took, mut connection) = (Histogram::default(), Connection::open(address).await?);
        for request in requests {
            if began.elapsed() > patience {
                break;
            }
            ask(&mut connection, request, &mut took).await?;
        }
        Ok(took)
    })
}

/// Asks in a mixed order until the import is over.
fn while_importing(
    address: SocketAddr,
    requests: &[&Vec<u8>],
    importing: &AtomicBool,
) -> Result<Histogram> {
    // No common divisor with how many there are, so that each is asked once before any is asked twice.
    const STEP: usize = 1_009;
    runtime()?.block_on(async {
        let (mut took, mut connection) = (Histogram::default(), Connection::open(address).await?);
        let mut next = 0;
        while importing.load(Ordering::SeqCst) {
            ask(&mut connection, requests[next % requests.len()], &mut took).await?;
            next += STEP;
        }
        Ok(took)
    })
}

async fn ask(connection: &mut Connection, request: &[u8], took: &mut Histogram) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let began = Instant::now();
    let status = tokio::time::timeout(PATIENCE, connection.ask(request)).await;
    let status = status.context("a search is not answered")??;
    took.record(began.elapsed());
    ensure!(
        status == 200,
        "{} was answered with {status}: {}",
        String::from_utf8_lossy(request)
            .lines()
            .next()
            .unwrap_or_default(),
        String::from_utf8_lossy(&connection.body()[..connection.body().len().min(500)])
    );
    Ok(())
}

fn alone(table: &mut Table, all: &[Measured], events: u64) {
    for order in ORDERS {
        let mut took = Histogram::default();
        for measured in all.iter().filter(|it| it.order == order) {
            took.add(&measured.took);
        }
        for (name, percent, goal) in [("p50", 50, HALF), ("p99", 99, LATE)] {
            let figure = took.percent(percent);
            table.row(
                &format!("search over HTTP, {order}, {name} of {}", took.count()),
                &format!("{figure:.2} ms"),
                &format!("{goal:.0} ms, {:.2} M events", events as f64 / 1e6),
                figure / goal,
                Goal::AtMost(1.0),
            );
        }
    }
    let mut note = format!(
        "Search over HTTP, milliseconds, p50/p99, the first {LIMIT} events with snippets, one connection, warm.\n{:<22} {:>20} {:>20}",
        "query", ORDERS[0], ORDERS[1]
    );
    let (first, second) = all.split_at(all.len() / 2);
    for (a, b) in first.iter().zip(second) {
        let show = |it: &Measured| {
            let asked = it.took.count();
            let part = if asked == it.requests.len() as u64 {
                String::new()
            } else {
                format!("[{asked}] ")
            };
            format!(
                "{part}{:.2} / {:.2}",
                it.took.percent(50),
                it.took.percent(99)
            )
        };
        let line = format!("\n{:<22} {:>20} {:>20}", a.class, show(a), show(b));
        note.push_str(&line);
    }
    table.note(note);
}
