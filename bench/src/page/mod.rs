//! The web page, as a headless Chromium sees it, from `quipu serve` as a process.
//!
//! | module | what it measures |
//! |---|---|
//! | `paint` | how soon the overview and a long transcript are on the screen |
//! | `scroll` | tasks of the main thread and memory while a very long transcript is scrolled through |
//! | `search` | how soon results are on the screen after the last key |
//! | `weight` | what a browser that was never here fetches before any data |
//! | `idle` | requests of a page that nobody touches |
//!
//! All are measured on one made-up home (`logs`) whose server has answered before. Times are the browser's own, from the moment it
//! begins to open an address; a script that is in the page before all others notes them.

mod idle;
mod logs;
mod paint;
mod scroll;
mod search;
mod weight;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use quipu_browser::{Chromium, Tab};
use serde_json::{Value, json};

use crate::command;
use crate::serve::{Server, get, once};
use crate::setup::place;
use crate::table::{Goal, Table, now};

/// What is measured, and how much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where to work
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// The quipu binary
    #[arg(long, default_value = "target/release/quipu")]
    quipu: PathBuf,
    /// How often a page is opened, or words are typed
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Only the parts whose name holds this: paint, scroll, search, weight, idle
    #[arg(long, default_value = "")]
    only: String,
    /// How many events the transcript has that is opened
    #[arg(long, default_value_t = 50_000)]
    opened: usize,
    /// How many events the transcript has that is scrolled through
    #[arg(long, default_value_t = 100_000)]
    scrolled: usize,
    /// How many other sessions there are
    #[arg(long, default_value_t = 1_000)]
    sessions: usize,
    /// For how many seconds an idle page is watched
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Notes the moment a screen is ready, and tasks of the main thread that take long.
const PROBE: &str = "(() => {
  const probe = (globalThis.probe = { ready: null, tasks: [] });
  const tasks = (list) => probe.tasks.push(...list.getEntries().map((it) => it.duration));
  new PerformanceObserver(tasks).observe({ type: 'longtask', buffered: true });
  new MutationObserver(() => {
    if (document.querySelector('main')?.dataset.ready) probe.ready ??= performance.now();
  }).observe(document, { attributes: true, subtree: true, attributeFilter: ['data-ready'] });
})()";

/// What all parts use.
struct Bench<'b> {
    browser: Chromium,
    options: &'b Options,
    address: SocketAddr,
    /// The transcript that is opened, and the one that is scrolled through.
    opened: String,
    scrolled: String,
}

impl Bench<'_> {
    /// An empty tab, with the probe in every page it opens.
    fn tab(&self) -> Tab {
        let mut tab = self.browser.blank(&self.address.to_string());
        tab.look(1280, 900, false);
        let probe = json!({ "source": PROBE });
        tab.command("Page.addScriptToEvaluateOnNewDocument", &probe);
        tab.command("Network.enable", &json!({}));
        tab
    }

    /// Opens a screen, and waits until it is ready.
    fn open(&self, tab: &mut Tab, path: &str) {
        // What is ready may be the same address as before.
        tab.get("globalThis.probe = null");
        tab.go(&format!("http://{}{path}", self.address));
        tab.until("probe.ready !== null");
    }

    /// What the server answers.
    fn ask(&self, path: &str) -> Result<Value> {
        let (status, body, _) = once(self.address, &get(self.address, path, ""), "")?;
        ensure!(status == 200, "{path} was answered with {status}");
        Ok(serde_json::from_slice(&body)?)
    }

    /// How many events a transcript has.
    fn events(&self, id: &str) -> Result<u64> {
        let page = self.ask(&format!("/api/v1/transcripts/{id}/events?limit=1"))?;
        page["total"].as_u64().context("a page has no total")
    }
}

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let Some(browser) = Chromium::find() else {
        table.note(
            "skipped: there is no Chromium to measure the page with (apt-get install chromium)",
        );
        return Ok(());
    };
    let quipu = std::fs::canonicalize(&options.quipu)
        .with_context(|| format!("there is no quipu binary at {}", options.quipu.display()))?;
    let root = place(&options.directory, "page")?;
    let root = tempfile::Builder::new().prefix("page").tempdir_in(root)?;
    let (sessions, home) = (root.path().join("logs"), root.path().join("home"));
    now("page: making up sessions");
    let opened = logs::session(&sessions, 0, options.opened)?;
    let scrolled = logs::session(&sessions, 1, options.scrolled)?;
    for n in 0..options.sessions {
        logs::session(&sessions, n + 2, 40)?;
    }
    now("page: importing");
    let mut import = command::quipu(&quipu, &home, &sessions);
    import.arg("import");
    command::run(import)?;
    let mut serve = command::quipu(&quipu, &home, &sessions);
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::start(serve)?;
    server.ready("/readyz")?;
    let bench = Bench {
        browser,
        options,
        address: server.address,
        opened,
        scrolled,
    };
    let wanted = |part: &str| part.contains(options.only.as_str());
    if wanted("weight") {
        weight::measure(table, &bench)?;
    }
    if wanted("paint") {
        paint::measure(table, &bench)?;
    }
    if wanted("scroll") {
        scroll::measure(table, &bench)?;
    }
    if wanted("search") {
        search::measure(table, &bench)?;
    }
    if wanted("idle") {
        idle::measure(table, &bench);
    }
    Ok(())
}

/// A row for milliseconds that have a limit.
fn row_ms(table: &mut Table, what: &str, ms: f64, limit: f64, goal: Goal) {
    let (ours, most) = (format!("{ms:.0} ms"), format!("{limit:.0} ms"));
    table.row(what, &ours, &most, ms / limit, goal);
}

/// A figure that the page gives.
fn figure(value: &Value) -> Result<f64> {
    value
        .as_f64()
        .with_context(|| format!("{value} is no figure"))
}
