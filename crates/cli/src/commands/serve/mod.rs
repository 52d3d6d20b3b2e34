//! `quipu serve`, and the server of `quipu up`.

mod log;
pub(super) mod service;
mod settings;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_record::{Clock as _, SystemClock};
use quipu_server::place::{Claim, ClaimError, Place};
use quipu_server::{App, Bound, ListenError, Listening, router};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::emit;
use crate::args::{LogForm, LogLevel, Serve};
use crate::config::Config;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::HomePlace;
use crate::terminal::{BOLD, out, say};

pub(crate) fn run(args: &Serve, place: &HomePlace) -> Result<Exit> {
    let home = place.home()?;
    let Some(server) = Server::start(args, &home, &Manner::default())? else {
        return Ok(Exit::Done);
    };
    server.greet(&mut out())?;
    server.wait()
}

/// How the server is used.
#[derive(Debug, Default)]
pub(super) struct Manner {
    /// The home holds the samples.
    pub(super) samples: bool,
    /// Less is logged: something else speaks to the person.
    pub(super) quiet: bool,
}

/// A server that was started.
pub(super) struct Server {
    pub(super) app: App,
    runtime: Runtime,
    serving: JoinHandle<Listening>,
    urls: Vec<String>,
    sockets: Vec<PathBuf>,
    /// Whether a person or a service manager asked it to end.
    asked: Arc<AtomicBool>,
    _claim: Claim,
}

/// How a server ended, and the threads it ran on: as long as they live, a signal still ends the process.
pub(super) struct Ended {
    /// Whether a person or a service manager asked for it.
    pub(super) asked: bool,
    runtime: Option<Runtime>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        // Threads at work are not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Server {
    /// Starts to serve a home; says where the server is and gives `None` when one serves it already.
    pub(super) fn start(args: &Serve, home: &Path, manner: &Manner) -> Result<Option<Self>> {
        let claim = match Claim::new(home) {
            Ok(claim) => claim,
            Err(ClaimError::Taken(there)) => {
                already(there)?;
                return Ok(None);
            }
            Err(error) => return Err(CommandError::new(Exit::Environment, error)),
        };
        let usual = if manner.quiet {
            LogLevel::Warn
        } else {
            LogLevel::Info
        };
        log::start(args.log, args.log_level.unwrap_or(usual));
        raise_limits();
        let config = Config::load(home)?;
        let mut options = settings::options(args, manner)?;
        options.budgets = config.budgets.clone();
        options.zone = Some(config.zone(None)?);
        let parts = settings::parts(home, &config)?;
        let app = App::new(parts, options)
            .map_err(|error| CommandError::new(Exit::Environment, error))?;
        if let Some(masker) = emit::masker(false, &HomePlace::new(Some(home.to_owned())))? {
            quipu_server::control::mask_with(&app, masker);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // Requests wait for the archive on other threads; these only move bytes.
            .worker_threads(2)
            .max_blocking_threads(64)
            .thread_keep_alive(std::time::Duration::from_secs(5))
            .enable_all()
            .build()
            .map_err(io_error("cannot start threads"))?;
        let bound = runtime.block_on(Bound::open(&app)).map_err(|error| {
            let hint = match &error {
                ListenError::Tls(_) => {
                    "--tls-cert and --tls-key name a certificate and its key, in PEM"
                }
                ListenError::Bind { .. } | ListenError::InUse(_) => {
                    "--listen names another address, such as 127.0.0.1:0 for any free port"
                }
            };
            CommandError::new(Exit::Environment, error).hint(hint)
        })?;
        let (urls, sockets) = (bound.urls(), bound.paths());
        claim
            .announce(&Place {
                pid: std::process::id(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at: SystemClock.now().to_string(),
                urls: urls.clone(),
                sockets: sockets.clone(),
                token: app.token().expose().to_owned(),
            })
            .map_err(|error| CommandError::new(Exit::Environment, error))?;
        let routes = router(&app);
        let serving = runtime.spawn(bound.serve(app.clone(), routes));
        let asked = Arc::new(AtomicBool::new(false));
        runtime.spawn(interrupted(app.clone(), Arc::clone(&asked), args.log));
        Ok(Some(Self {
            app,
            runtime,
            serving,
            urls,
            sockets,
            asked,
            _claim: claim,
        }))
    }

    /// Says where it is.
    pub(super) fn greet(&self, out: &mut impl std::io::Write) -> Result<()> {
        for url in &self.urls {
            writeln!(out, "Serving at {BOLD}{url}{BOLD:#}")?;
        }
        for socket in &self.sockets {
            writeln!(out, "Serving at {BOLD}{}{BOLD:#}", socket.display())?;
        }
        writeln!(out, "Ctrl-C ends it.")?;
        Ok(out.flush()?)
    }

    /// Where it is, as `--listen` takes it.
    pub(super) fn addresses(&self) -> Vec<String> {
        let urls = self.urls.iter().map(|url| {
            let address = url.rsplit_once('/').map_or(url.as_str(), |it| it.1);
            address.to_owned()
        });
        let sockets = self.sockets.iter().map(|path| path.display().to_string());
        urls.chain(sockets).collect()
    }

    /// Whether somebody asked it to end.
    pub(super) fn is_ending(&self) -> bool {
        self.app.ending().is_cancelled()
    }

    /// Waits until somebody ends it.
    pub(super) fn wait(self) -> Result<Exit> {
        self.ended().map(|_| Exit::Done)
    }

    /// Waits until it ended, whoever ended it. The home and the addresses are free then.
    pub(super) fn ended(self) -> Result<Ended> {
        let served = self.runtime.block_on(self.serving);
        self.app.importer().stop();
        let ended = Ended {
            asked: self.asked.load(Ordering::Acquire),
            runtime: Some(self.runtime),
        };
        match served {
            Ok(Listening::Ended | Listening::Cut) => Ok(ended),
            Err(error) => Err(CommandError::new(Exit::Environment, error)),
        }
    }
}

/// Says where the server is that was there before.
fn already(there: Option<Box<Place>>) -> Result<()> {
    let mut out = out();
    let Some(there) = there else {
        // It is starting, and has not said yet.
        writeln!(out, "Quipu serves this home already, and is just starting.")?;
        return Ok(out.flush()?);
    };
    let sockets = there.sockets.iter().map(|path| path.display().to_string());
    let places: Vec<String> = there.urls.into_iter().chain(sockets).collect();
    writeln!(
        out,
        "Quipu serves this home already: {BOLD}{}{BOLD:#} (process {}, since {}).",
        places.join(", "),
        there.pid,
        there.started_at
    )?;
    Ok(out.flush()?)
}

/// As many files as the system allows: each connection is one.
fn raise_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_err() {
        tracing::warn!(target: "quipu", limit = ?limit.current, "the limit on open files stays as it is");
    }
}

/// Ends the server at the first request to end, and at once at the second.
async fn interrupted(app: App, asked: Arc<AtomicBool>, log: LogForm) {
    use tokio::signal::unix::{SignalKind, signal};
    // Where programs read the log, every line of it is for them.
    let say = |what: &str| match log {
        LogForm::Text => say(what),
        LogForm::Json => tracing::info!(target: "quipu", "{what}"),
    };
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let mut signals = Vec::new();
    for kind in kinds {
        match signal(kind) {
            Ok(signal) => signals.push(signal),
            Err(_) => return,
        }
    }
    let [interrupt, terminate, hangup] = signals.as_mut_slice() else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        if app.ending().is_cancelled() {
            say("ended at once");
            #[expect(
                clippy::exit,
                reason = "the user asked twice; nothing is left to wait for"
            )]
            std::process::exit(130);
        }
        say("ending; once more to end at once");
        asked.store(true, Ordering::Release);
        app.importer().stop();
        app.ending().cancel();
    }
}
