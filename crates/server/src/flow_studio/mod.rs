//! Flow Studio's HTTP interface, `/api/runs…`: for clients and pages that know no other.
//!
//! ```text
//!  --runs DIR ────────────┐                 ┌─ rows       /api/runs, one run, examples to learn from
//!  <home>/runs ───────────┼─► runs ─► folder┼─ summary    what is there and what is missing, compared
//!  <home>/transcripts ─┬──┘    ▲            ├─ timing     when it happened
//!                      └► made ┘            ├─ steps      transcripts and receipts
//!                                           └─ events, stream   what happened, and what happens now
//! ```
//!
//! Shapes are those of the original, with more fields; `docs/flow-studio.md` has the table, and what is answered otherwise
//! because the original is wrong.
//!
//! | module | what it owns |
//! |---|---|
//! | `runs` | which runs there are |
//! | `folder` | the files of a run, read without leaving its directory |
//! | `made` | files of recorded runs that have none |
//! | `brief`, `facts` | what is known of a run from its documents, and from its receipts |
//! | `record`, `own` | events of run directories and of recorded runs, as one kind of record |
//! | `params`, `fault` | what requests say, and errors in the shapes of the original |
//! | `watch` | the system says when a file changed |

mod brief;
mod catalog;
mod events;
mod exemplars;
mod facts;
mod fault;
mod folder;
mod lists;
mod made;
mod own;
mod params;
mod record;
mod rows;
mod runs;
mod steps;
mod stream;
mod summary;
#[cfg(test)]
mod tests;
mod timing;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::routing::{get, post};
use axum::{Extension, Router};
use http::StatusCode;
use parking_lot::Mutex;
use quipu_prices::Prices;
use tokio::sync::Semaphore;

use self::brief::{Brief, Look};
use self::exemplars::Exemplars;
use self::facts::Facts;
use self::fault::Fault;
use self::folder::Folder;
use self::made::Made;
use self::runs::{Places, Run};
use self::watch::Watch;
use crate::App;
use crate::control::is_locked;

/// How many runs are remembered.
const REMEMBERED: usize = 20_000;

/// What all requests share.
pub(super) struct Studio {
    places: Places,
    prices: Arc<Prices>,
    made: Made,
    exemplars: Exemplars,
    watch: Watch,
    streams: Arc<Semaphore>,
    briefs: Mutex<HashMap<PathBuf, (Look, Arc<Brief>)>>,
    facts: Mutex<HashMap<PathBuf, (u64, Arc<Facts>)>>,
    known: Mutex<Option<(Instant, Arc<facts::Shape>)>>,
}

impl Studio {
    fn new(app: &App) -> Self {
        let options = app.options();
        Self {
            places: Places::new(app.home(), &options.run_directories),
            prices: Arc::clone(app.prices()),
            made: Made::default(),
            exemplars: Exemplars::new(app.home()),
            watch: Watch::default(),
            streams: Arc::new(Semaphore::new(options.streams)),
            briefs: Mutex::default(),
            facts: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The run with this id.
    fn find(&self, id: &str) -> Result<Run, Fault> {
        self.places.find(id).ok_or_else(|| Fault::no_run(id))
    }

    /// The directory of a run. One of our own that has none gets its files made.
    fn folder(&self, run: &Run) -> Result<Folder, Fault> {
        let opened = match (&run.directory, &run.transcript) {
            (Some(directory), _) => Folder::open(directory),
            (None, Some(transcript)) => {
                let made = self.made.of(&run.id, transcript);
                let made = made.map_err(|error| Fault::unreadable("run", error))?;
                Folder::open(&made.path).map(|folder| folder.holding(made))
            }
            (None, None) => None,
        };
        opened.ok_or_else(|| Fault::no_run(&run.id))
    }

    /// What is known of a run as a whole.
    fn brief(&self, run: &Run) -> Arc<Brief> {
        let brief = self.said(run);
        let open = run.transcript.as_deref().filter(|_| brief.is_open());
        let Some(transcript) = open.filter(|transcript| !is_locked(transcript)) else {
            return brief;
        };
        // It may have ended between the two looks.
        let brief = self.said(run);
        if brief.is_left(transcript) {
            return Arc::new(brief.lost());
        }
        brief
    }

    /// What its documents say.
    fn said(&self, run: &Run) -> Arc<Brief> {
        let look = Look::of(run);
        if let Some((of, brief)) = self.briefs.lock().get(run.path())
            && *of == look
        {
            return Arc::clone(brief);
        }
        let brief = Arc::new(Brief::of(run));
        let mut briefs = self.briefs.lock();
        if briefs.len() >= REMEMBERED {
            briefs.clear();
        }
        briefs.insert(run.path().to_owned(), (look, Arc::clone(&brief)));
        brief
    }

    /// What the files of a run say together.
    fn facts(&self, folder: &Folder, run: &Run) -> Arc<Facts> {
        let look = folder.look();
        if let Some((of, facts)) = self.facts.lock().get(run.path())
            && *of == look
        {
            return Arc::clone(facts);
        }
        let facts = Arc::new(Facts::of(folder, &self.prices));
        let mut all = self.facts.lock();
        if all.len() >= REMEMBERED / 4 {
            all.clear();
        }
        all.insert(run.path().to_owned(), (look, Arc::clone(&facts)));
        facts
    }
}

/// The routes. What is not one of them is answered as `FastAPI` would.
pub(super) fn routes(app: &App) -> Router<App> {
    let step = "/{id}/flows/{flow}/steps/{step}";
    let runs = Router::new()
        .route("/", get(rows::list))
        .route("/compare", get(summary::compare))
        .route("/exemplars", get(rows::exemplars))
        .route("/{id}", get(rows::one))
        .route("/{id}/exemplar", post(rows::set_exemplar))
        .route("/{id}/cancel", post(rows::cancel))
        .route("/{id}/summary", get(summary::run))
        .route("/{id}/sdlc", get(summary::sdlc))
        .route("/{id}/events", get(events::events))
        .route("/{id}/timeline", get(timing::timeline))
        .route("/{id}/timing", get(timing::run))
        .route("/{id}/wisdom/summary", get(steps::wisdom))
        .route("/{id}/flows/{flow}", get(summary::flow))
        .route("/{id}/flows/{flow}/timing", get(timing::flow))
        .route(step, get(summary::step))
        .route(&format!("{step}/transcript"), get(steps::transcript))
        .route(&format!("{step}/receipt"), get(steps::receipt))
        .route("/{id}/transcripts", get(lists::transcripts))
        .route("/{id}/receipts", get(lists::receipts))
        .route(
            "/{id}/transcript/{flow}/{step}/{agent}/{engine}",
            get(steps::raw_transcript),
        )
        .route(
            "/{id}/receipt/{flow}/{step}/{agent}",
            get(steps::raw_receipt),
        )
        .fallback(nowhere)
        .method_not_allowed_fallback(not_allowed);
    Router::new()
        .nest("/api/runs", runs)
        .route("/api/run", post(rows::start))
        .route("/api/backends", get(rows::backends))
        .route("/api/health", get(catalog::health))
        .route("/api/flows", get(catalog::flows))
        .route("/api/flows/{flow}", get(catalog::flow))
        .route("/api/graph/{flow}", get(catalog::graph))
        .layer(Extension(Arc::new(Studio::new(app))))
}

async fn nowhere() -> Fault {
    Fault::no_route()
}

async fn not_allowed() -> Fault {
    Fault::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
}
