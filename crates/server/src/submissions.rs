//! Submissions over sockets: `/v1/transcripts`, `/v1/uploads`. What they mean is in `quipu_submit`.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, RETRY_AFTER};
use parking_lot::Mutex;
use quipu_model::Timestamp;
use quipu_record::Clock;
use quipu_redact::{Engine, Kind, RuleSet};
use quipu_store::Store;
use quipu_store::import::{ImportError, Problem};
use quipu_submit::protocol::{Code, Receipt, Refusal, TranscriptId};
use quipu_submit::server::{self, Disk, RateLimit, Service, Taken};
use quipu_submit::{EngineScan, KeyStore};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::{Notify, Semaphore};

use crate::App;
use crate::keys::seconds;
use crate::listen::{Peer, is_late};
use crate::stream::file_body;

/// The clock of the server.
struct SharedClock(Arc<dyn Clock>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// How many submissions are taken at once.
const AT_ONCE: usize = 16;

/// How long a client waits before it tries a storage again that could not be opened.
const AGAIN_SECONDS: u64 = 5;

/// The service, made when somebody first asks for it: most homes are never submitted to. One that could not be made is tried
/// again with the next request.
#[derive(Debug)]
pub struct Submissions {
    service: Mutex<Option<Arc<Service<Disk, SharedClock>>>>,
    limits: Arc<RateLimit>,
    permits: Arc<Semaphore>,
    /// Something was taken that the store does not have yet.
    behind: Arc<Notify>,
}

impl Submissions {
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Self {
        let limits = RateLimit::new(Arc::clone(clock), RateLimit::KEYS, RateLimit::FAILURES);
        Self {
            service: Mutex::new(None),
            limits: Arc::new(limits),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            behind: Arc::default(),
        }
    }

    /// Limits on how often keys are used and guessed, which all of the server shares.
    pub(crate) fn limits(&self) -> &Arc<RateLimit> {
        &self.limits
    }

    fn service(&self, app: &App) -> io::Result<Arc<Service<Disk, SharedClock>>> {
        let mut made = self.service.lock();
        if let Some(service) = &*made {
            return Ok(Arc::clone(service));
        }
        let disk = Disk::open(&app.store().submissions())?;
        let rules = RuleSet::builtin();
        let engine = Engine::new(&rules, |rule| rule.kind == Kind::Secret);
        let scan = EngineScan::for_secrets(engine.map_err(io::Error::other)?);
        let keys = KeyStore::at(app.home().join("keys.jsonl"));
        let keys = keys.with_clock(Arc::clone(app.clock()));
        let taken = Follower {
            app: app.clone(),
            behind: Arc::clone(&self.behind),
        };
        let service = Service::new(
            disk,
            SharedClock(Arc::clone(app.clock())),
            Box::new(keys),
            Box::new(scan),
        );
        let service = service.with_gate(Box::new(Arc::clone(&self.limits)));
        let service = Arc::new(service.with_taken(Box::new(taken)));
        *made = Some(Arc::clone(&service));
        Ok(service)
    }
}

/// Puts what was taken into the store, where it is listed and searched.
#[derive(Debug)]
struct Follower {
    app: App,
    behind: Arc<Notify>,
}

impl Follower {
    /// Does something with a store of its own: the catalogue may have been made again since.
    fn with<T>(
        &self,
        act: impl FnOnce(&Store) -> Result<T, ImportError>,
    ) -> Result<T, ImportError> {
        act(&self.app.store().another()?)
    }

    /// It is done by [`catch_up`], which can wait for whoever imports.
    fn later(&self, error: &ImportError) {
        tracing::debug!(target: "quipu", why = %error, "what was submitted is imported later");
        self.behind.notify_one();
    }
}

impl Taken for Follower {
    fn kept(&self, receipt: &Receipt, _document: Option<&Path>) {
        let now = self.app.clock().now();
        let id = &receipt.transcript_id;
        match self.with(|store| store.receive_submission(id, now)) {
            Ok(report) if report.problems.is_empty() => {}
            Ok(report) => {
                say(&report.problems);
                self.behind.notify_one();
            }
            Err(error) => self.later(&error),
        }
        self.app.freshness().bump();
    }

    fn removed(&self, id: &TranscriptId) {
        let now = self.app.clock().now();
        match self.with(|store| store.forget_received(id, now)) {
            Ok(true) => {}
            // It may become known in this moment.
            Ok(false) => self.behind.notify_one(),
            Err(error) => self.later(&error),
        }
        self.app.freshness().bump();
    }
}

/// Says what is wrong with documents that were taken.
fn say(problems: &[Problem]) {
    for problem in problems {
        tracing::warn!(
            target: "quipu",
            path = %problem.path.display(),
            why = %problem.what,
            "what was submitted cannot be imported"
        );
    }
}

/// Catches up with what was taken while an import was at work, and before a crash. Ends with the server.
pub(crate) async fn catch_up(app: App) {
    const AGAIN: std::time::Duration = std::time::Duration::from_secs(2);
    loop {
        let now = app.clock().now();
        let done = app
            .work(move |store| Ok(store.follow_submissions(now)?))
            .await;
        match done {
            Ok(done) => {
                say(&done.problems);
                if done.unreadable > 0 {
                    let count = done.unreadable;
                    tracing::warn!(target: "quipu", count, "receipts of submissions cannot be read");
                }
                if done.received + done.forgotten > 0 {
                    app.freshness().bump();
                }
            }
            Err(error) => {
                tracing::debug!(target: "quipu", why = ?error, "submissions are caught up with later");
                tokio::select! {
                    () = app.ending().cancelled() => return,
                    () = tokio::time::sleep(AGAIN) => continue,
                }
            }
        }
        tokio::select! {
            () = app.ending().cancelled() => return,
            () = app.submissions().behind.notified() => {}
        }
    }
}

/// The addresses of the protocol.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/limits", any(handle))
        .route("/v1/keys/self", any(handle))
        .route("/v1/submitters", any(handle))
        .route("/v1/transcripts", any(handle))
        .route("/v1/transcripts/{id}", any(handle))
        .route("/v1/transcripts/{id}/document", any(handle))
        .route("/v1/uploads", any(handle))
        .route("/v1/uploads/{id}", any(handle))
        .route("/v1/{*rest}", any(handle))
}

/// Whether an address is of the protocol, which has keys and refusals of its own.
pub(crate) fn is_submission(path: &str) -> bool {
    path.starts_with("/v1/") && path != "/v1/traces" && path != "/v1/logs"
}

async fn handle(State(app): State<App>, peer: Peer, request: Request) -> Response {
    let submissions = app.submissions();
    let address = peer.stranger();
    if let Some(wait) = address.and_then(|peer| submissions.limits.may_try(peer).err()) {
        let message = "too many wrong keys came from this address";
        return refused(Code::TooManyRequests, message, Some(seconds(wait)));
    }
    let Ok(permit) = Arc::clone(&submissions.permits).try_acquire_owned() else {
        let message = "too many submissions at once";
        return refused(Code::TooManyRequests, message, Some(1));
    };
    let (parts, body) = request.into_parts();
    let (reader, pump) = reading(body);
    let pump = tokio::spawn(pump);
    let inner = app.clone();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let service = inner.submissions().service(&inner)?;
        let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
        let headers = parts.headers.iter();
        let headers: Vec<(String, String)> = headers
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)))
            .collect();
        let path = parts.uri.path_and_query();
        let path = path.map_or("/", http::uri::PathAndQuery::as_str);
        let mut reader = reader;
        Ok::<_, io::Error>(service.handle(server::Request {
            method: parts.method.as_str(),
            path,
            headers: &headers,
            body: &mut reader,
        }))
    });
    let answer = done.await;
    pump.abort();
    match answer {
        Ok(Ok(answer)) => {
            if answer.status == 401
                && let Some(peer) = address
            {
                submissions.limits.failed(peer);
            }
            sent(answer)
        }
        Ok(Err(why)) => {
            tracing::error!(target: "quipu", why = %why, "submissions cannot be kept");
            unopened(&why)
        }
        Err(_) => refused(Code::Internal, "the server failed; nothing was kept", None),
    }
}

/// The storage could not be opened. It is tried again with the next request.
fn unopened(why: &io::Error) -> Response {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    if matches!(why.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
        let message = "the server has no room left; nothing was kept";
        return refused(Code::InsufficientStorage, message, None);
    }
    let message = "the server cannot use its storage just now; nothing was kept";
    refused(Code::Unavailable, message, Some(AGAIN_SECONDS))
}

fn refused(code: Code, message: &str, wait: Option<u64>) -> Response {
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, axum::Json(Refusal::new(code, message))).into_response();
    if let Some(wait) = wait {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    response
}

fn sent(answer: server::Response) -> Response {
    let length = answer.body.len();
    let body = match answer.body {
        server::Body::Bytes(bytes) => Body::from(bytes),
        server::Body::File {
            mut file,
            from,
            length,
        } => {
            if io::Seek::seek(&mut file, io::SeekFrom::Start(from)).is_err() {
                return refused(Code::Internal, "the document cannot be read", None);
            }
            file_body(file, length)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    // The length of a 304 would be that of the document, not of this answer.
    if !matches!(answer.status, 204 | 304) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    response
}

/// A body as a reader for another thread, and what fills it.
fn reading(body: Body) -> (BodyReader, impl Future<Output = ()> + Send) {
    let (to, from) = channel::<io::Result<Bytes>>(4);
    let pump = async move {
        let mut pieces = body.into_data_stream();
        loop {
            let piece = match pieces.next().await {
                None => return,
                Some(Ok(piece)) => Ok(piece),
                Some(Err(error)) if is_late(&error) => Err(io::ErrorKind::TimedOut.into()),
                Some(Err(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
            };
            let failed = piece.is_err();
            if to.send(piece).await.is_err() || failed {
                return;
            }
        }
    };
    let reader = BodyReader {
        from,
        held: Bytes::new(),
    };
    (reader, pump)
}

struct BodyReader {
    from: Receiver<io::Result<Bytes>>,
    held: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.held.is_empty() {
            match self.from.blocking_recv() {
                None => return Ok(0),
                Some(piece) => self.held = piece?,
            }
        }
        let n = buffer.len().min(self.held.len());
        buffer[..n].copy_from_slice(&self.held.split_to(n));
        Ok(n)
    }
}

#[cfg(test)]
mod tests;
