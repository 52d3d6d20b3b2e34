//! What every request shares.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quipu_agents::Host;
use quipu_convert::source::Removal;
use quipu_model::Timestamp;
use quipu_prices::Prices;
use quipu_record::{Clock, SystemClock};
use quipu_redact::session::Decisions;
use quipu_redact::{Engine, Key, Profile, RuleSet};
use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::import::ImportError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::access::{HostNames, KeyHolder, Token};
use crate::answer::Cache;
use crate::api::Lines;
use crate::control::Control;
use crate::freshness::Freshness;
use crate::importer::Importer;
use crate::ingest::Ingest;
use crate::keys::HomeKeys;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::options::{Listen, Options};
use crate::problem::Problem;
use crate::submissions::Submissions;

/// Says what a key that is shown may do.
pub trait KeyCheck: fmt::Debug + Send + Sync {
    /// The holder of a key. `peer` is the address of a stranger, who may not guess forever.
    ///
    /// # Errors
    ///
    /// When it is not known, or was revoked, or must wait.
    fn check(&self, key: &str, peer: Option<IpAddr>) -> Result<KeyHolder, Problem>;

    /// The same, where it is known without reading a file.
    fn recall(&self, _key: &str, _peer: Option<IpAddr>) -> Option<Result<KeyHolder, Problem>> {
        None
    }
}

/// Knows what profiles remove.
pub trait Removals: fmt::Debug + Send + Sync {
    /// What a profile removes, by its name.
    ///
    /// # Errors
    ///
    /// When there is no such profile, or its rules are broken.
    fn by(&self, profile: &str) -> Result<Removal, Problem>;
}

/// The profiles that come with Quipu, with the key of whoever shares.
#[derive(Debug)]
pub struct BuiltinRemovals(pub Key);

impl Removals for BuiltinRemovals {
    fn by(&self, name: &str) -> Result<Removal, Problem> {
        let profile = Profile::builtin(name).ok_or_else(|| {
            Problem::bad_parameter("profile", format!("{name:?} is not a profile"))
                .hint(format!("profiles are {}", Profile::NAMES.join(", ")))
        })?;
        let engine = Engine::new(&RuleSet::builtin(), |rule| profile.wants(rule));
        Ok(Removal {
            engine: Arc::new(engine.map_err(|error| Problem::store(&error))?),
            profile,
            key: self.0.clone(),
            decisions: Decisions::default(),
            submitter: None,
        })
    }
}

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] ImportError),
    /// There are no random bytes for the token.
    #[error("the system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// What a server is made of that is not in its options.
#[derive(Debug)]
pub struct Parts {
    /// The home that is served.
    pub home: PathBuf,
    /// What calls cost.
    pub prices: Prices,
    /// Who may do what with a key; the keys of the home without one.
    pub keys: Option<Box<dyn KeyCheck>>,
    /// What profiles remove from an export.
    pub removals: Box<dyn Removals>,
    /// Where agents keep their logs.
    pub host: Host,
}

/// What every request shares. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    home: PathBuf,
    options: Options,
    names: HostNames,
    token: Token,
    keys: Box<dyn KeyCheck>,
    removals: Box<dyn Removals>,
    host: Host,
    importer: Importer,
    submissions: Submissions,
    ingest: Ingest,
    started_at: Timestamp,
    prices: Arc<Prices>,
    clock: Arc<dyn Clock>,
    /// One store for each reader at work, and which file of the catalogue it has open. Each has a connection of its own.
    readers: Mutex<Vec<(u64, Store)>>,
    /// How many of them there are at most.
    most_readers: usize,
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    store: Store,
    freshness: Freshness,
    cache: Cache,
    rows: Rows,
    lines: Lines,
    metrics: Metrics,
    live: Live,
    ending: CancellationToken,
    control: Control,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("home", &self.0.home)
            .finish_non_exhaustive()
    }
}

/// Which file the catalogue is.
fn catalogue_file(store: &Store) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let file = std::fs::metadata(store.home().join("index.sqlite"));
    file.map_or(0, |file| file.ino())
}

/// What the catalogue says of transcripts, and when that was looked up.
type Rows = Mutex<HashMap<String, (u64, Arc<TranscriptRow>)>>;

/// How many of them are kept.
const ROWS: usize = 1024;

/// How many requests may wait for a reader before others are told to come back.
const WAITING: usize = 1024;

/// How many requests that take long may run at once.
const SLOW: usize = 2;

/// How many downloads may be made while they are sent. Each waits for its client, who may take long.
pub(crate) const DOWNLOADS: usize = 8;

/// How long a request waits for its turn at most.
const PATIENCE: Duration = Duration::from_secs(20);

impl App {
    /// Opens what the server needs. Nothing listens yet.
    ///
    /// # Errors
    ///
    /// When the store cannot be opened.
    pub fn new(parts: Parts, options: Options) -> Result<Self, StartError> {
        Self::with_clock(parts, options, Arc::new(SystemClock))
    }

    /// As [`App::new`], with another clock.
    ///
    /// # Errors
    ///
    /// As of [`App::new`].
    pub fn with_clock(
        parts: Parts,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let Parts {
            home,
            prices,
            keys,
            removals,
            host,
        } = parts;
        let store = Store::open(&home)?;
        let count = std::thread::available_parallelism().map_or(2, usize::from);
        let count = count.clamp(2, 8);
        let file = catalogue_file(&store);
        let readers = (0..count).map(|_| Ok((file, store.another()?)));
        let readers = readers.collect::<Result<Vec<_>, ImportError>>()?;
        let beyond = options.listen.iter().any(|listen| match listen {
            Listen::Tcp { address, .. } => !address.ip().is_loopback(),
            Listen::Unix(_) => false,
        });
        let freshness = Freshness::new(&home);
        let submissions = Submissions::new(&clock);
        let keys = keys.unwrap_or_else(|| {
            let limits = Arc::clone(submissions.limits());
            Box::new(HomeKeys::new(&home, Arc::clone(&clock), limits))
        });
        Ok(Self(Arc::new(Inner {
            names: HostNames::new(&options.host_names, beyond),
            token: Token::random()?,
            keys,
            ingest: Ingest::new(&store, &clock),
            submissions,
            removals,
            host,
            importer: Importer::default(),
            started_at: clock.now(),
            prices: Arc::new(prices),
            clock,
            readers: Mutex::new(readers),
            most_readers: count,
            quick: Arc::new(Semaphore::new(count)),
            slow: Arc::new(Semaphore::new(SLOW)),
            downloads: Arc::new(Semaphore::new(DOWNLOADS)),
            store,
            freshness,
            cache: Cache::new(options.cache_bytes),
            rows: Rows::default(),
            lines: Lines::default(),
            metrics: Metrics::new(),
            live: Live::new(options.streams),
            ending: CancellationToken::new(),
            control: Control::new(options.runs),
            home,
            options,
        })))
    }

    /// The home that is served.
    pub fn home(&self) -> &Path {
        &self.0.home
    }

    /// What the server allows.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The names that the server goes by.
    pub fn names(&self) -> &HostNames {
        &self.0.names
    }

    /// The token of this start.
    pub fn token(&self) -> &Token {
        &self.0.token
    }

    /// Who may do what with a key.
    pub fn keys(&self) -> &dyn KeyCheck {
        &*self.0.keys
    }

    /// What profiles remove.
    pub fn removals(&self) -> &dyn Removals {
        &*self.0.removals
    }

    /// Where agents keep their logs.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// What the import does.
    pub fn importer(&self) -> &Importer {
        &self.0.importer
    }

    /// What others submit.
    pub(crate) fn submissions(&self) -> &Submissions {
        &self.0.submissions
    }

    /// What other programs send.
    pub(crate) fn ingest(&self) -> &Ingest {
        &self.0.ingest
    }

    /// When the server started.
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    /// What calls cost.
    pub fn prices(&self) -> &Arc<Prices> {
        &self.0.prices
    }

    /// What time it is.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// Whether something changed since.
    pub fn freshness(&self) -> &Freshness {
        &self.0.freshness
    }

    /// What was answered.
    pub(crate) fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// Events as lines.
    pub(crate) fn lines(&self) -> &Lines {
        &self.0.lines
    }

    /// What the catalogue says of a transcript, if it was looked up and nothing changed since.
    pub(crate) fn row(&self, id: &str) -> Option<Arc<TranscriptRow>> {
        let number = self.0.freshness.number();
        let rows = self.0.rows.lock();
        let (of, row) = rows.get(id)?;
        (*of == number).then(|| Arc::clone(row))
    }

    /// What the catalogue says of a transcript.
    ///
    /// # Errors
    ///
    /// When there is no such transcript, or several are meant.
    pub(crate) fn row_of(&self, store: &Store, id: &str) -> Result<Arc<TranscriptRow>, Problem> {
        if let Some(row) = self.row(id) {
            return Ok(row);
        }
        // Before it is looked up: what changes meanwhile is looked up again.
        let number = self.0.freshness.number();
        let row = Arc::new(crate::api::find(store, id)?);
        let mut rows = self.0.rows.lock();
        if rows.len() >= ROWS {
            rows.clear();
        }
        rows.insert(id.to_owned(), (number, Arc::clone(&row)));
        Ok(row)
    }

    /// Figures of the server itself.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The live streams.
    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    /// Cancelled when the server ends.
    pub fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }

    /// The runs of this process.
    pub(crate) fn control(&self) -> &Control {
        &self.0.control
    }

    /// The store to write with. Requests read with [`App::read`].
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Reads from the store, off the threads that serve sockets. As many at once as there are processors; others wait
    /// for their turn, and when too many wait, they are told to come back. Whoever asked may be gone before it is done:
    /// it is done all the same, and takes its turn until then.
    ///
    /// # Errors
    ///
    /// What `work` says, or that the server is busy.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.turn(&self.0.quick).await?;
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let now = catalogue_file(&app.0.store);
            let reader = app.0.readers.lock().pop();
            let store = match reader {
                Some((file, store)) if file == now => store,
                // `import --rebuild` puts another file in the place of the catalogue.
                _ => app.0.store.another()?,
            };
            let done = work(&store);
            let mut readers = app.0.readers.lock();
            if readers.len() < app.0.most_readers {
                readers.push((now, store));
            }
            done
        });
        done.await.map_err(|_| Problem::internal())?
    }

    /// Does work that may take seconds: exports, checks, searches by pattern. It does not hold up [`App::read`].
    ///
    /// # Errors
    ///
    /// What `work` says, or that the server is busy.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.turn(&self.0.slow).await?;
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&app.0.store.another()?)
        });
        done.await.map_err(|_| Problem::internal())?
    }

    /// Waits for a turn to read, and has what was recorded meanwhile be known then.
    /// Makes something that is sent while it is made, and so takes as long as its client does. It holds up neither
    /// [`App::read`] nor [`App::work`].
    ///
    /// # Errors
    ///
    /// What `work` says, or that there are too many downloads already.
    pub async fn download<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = Arc::clone(&self.0.downloads).try_acquire_owned();
        let turn = turn.map_err(|_| Problem::busy("too many downloads are under way"))?;
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&app.0.store.another()?)
        });
        done.await.map_err(|_| Problem::internal())?
    }

    async fn turn(&self, of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
        crate::runs::refresh(self).await;
        if let Ok(permit) = Arc::clone(of).try_acquire_owned() {
            return Ok(permit);
        }
        let Some(_waiting) = self.0.metrics.wait(WAITING) else {
            return Err(Problem::busy("too many requests wait for the archive"));
        };
        match tokio::time::timeout(PATIENCE, Arc::clone(of).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Problem::busy("the archive is busy")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use crate::testkit::Served;

    use super::*;

    /// Asks for more than can be done at once, and goes away each time.
    fn gone_clients(slow: bool) -> (usize, usize) {
        let served = Served::empty();
        let app = served.app.clone();
        let most = if slow { SLOW } else { app.0.most_readers };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (at_once, highest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let ended = Arc::new(Mutex::new(ended));
        runtime.block_on(async {
            for _ in 0..most + 3 {
                let (at_once, highest) = (Arc::clone(&at_once), Arc::clone(&highest));
                let ended = Arc::clone(&ended);
                let job = move |_: &Store| {
                    let now = at_once.fetch_add(1, Ordering::SeqCst) + 1;
                    highest.fetch_max(now, Ordering::SeqCst);
                    ended.lock().recv().ok();
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                };
                let app = app.clone();
                let asked = async move {
                    if slow {
                        app.work(job).await
                    } else {
                        app.read(job).await
                    }
                };
                // The client disconnects: its future is dropped, and what it began goes on.
                drop(tokio::time::timeout(Duration::from_millis(60), asked).await);
            }
        });
        drop(end);
        drop(runtime);
        (highest.load(Ordering::SeqCst), most)
    }

    #[test]
    fn clients_that_go_away_do_not_lift_the_limits() {
        for slow in [false, true] {
            let (highest, most) = gone_clients(slow);
            assert_eq!(highest, most, "slow: {slow}");
        }
    }

    #[test]
    fn readers_do_not_pile_up() {
        let served = Served::empty();
        let app = served.app.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let inner = app.clone();
        let done = runtime.block_on(app.read(move |_| {
            let another = inner.store().another()?;
            inner.0.readers.lock().push((0, another));
            Ok(())
        }));
        done.unwrap();
        assert_eq!(app.0.readers.lock().len(), app.0.most_readers);
    }
}
