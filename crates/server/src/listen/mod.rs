//! Sockets: taking connections, serving them, and ending all of it.

mod body;
#[cfg(target_os = "linux")]
mod diag;
mod outlet;
mod patience;
mod peer;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse as _;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;

pub(crate) use self::body::is_late;
use crate::App;
use crate::options::Listen;
use crate::problem::Problem;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Whoever can open the socket's file.
    Unix,
    /// A program on this machine, of the same user.
    Loopback(SocketAddr),
    /// Somebody else.
    Remote(SocketAddr),
}

impl Peer {
    /// Whether it is on this machine.
    pub fn is_local(self) -> bool {
        !matches!(self, Self::Remote(_))
    }

    /// The address of somebody who is not on this machine. A proxy on this machine speaks for many, so that one of them who
    /// guesses keys must not lock out the others.
    pub fn stranger(self) -> Option<IpAddr> {
        match self {
            Self::Unix | Self::Loopback(_) => None,
            Self::Remote(address) => Some(address.ip()),
        }
    }
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// An address cannot be used.
    #[error("cannot listen on {at}: {source}")]
    Bind {
        /// The address.
        at: String,
        /// Why.
        source: io::Error,
    },
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// Another process serves on this socket.
    #[error("another server listens on {}", .0.display())]
    InUse(PathBuf),
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// Sockets that were opened, and are not served yet.
pub struct Bound {
    sockets: Vec<Socket>,
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound")
            .field("at", &self.urls())
            .finish_non_exhaustive()
    }
}

/// How many ports are tried.
const PORTS: u16 = 16;

impl Bound {
    /// Opens the sockets that the options name.
    ///
    /// # Errors
    ///
    /// When one of them cannot be opened, or a certificate cannot be used.
    pub async fn open(app: &App) -> Result<Self, ListenError> {
        let tls = app.options().tls.as_ref().map(tls::acceptor).transpose()?;
        let mut sockets = Vec::new();
        for listen in &app.options().listen {
            sockets.push(match listen {
                Listen::Tcp { address, or_next } => Socket::Tcp(tcp(*address, *or_next).await?),
                Listen::Unix(path) => Socket::Unix(unix(path)?, path.clone()),
            });
        }
        Ok(Self { sockets, tls })
    }

    /// Where it listens, for people and clients.
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let tcp = self.sockets.iter().filter_map(|socket| match socket {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            Socket::Unix(..) => None,
        });
        tcp.map(|address| format!("{scheme}://{address}")).collect()
    }

    /// The Unix sockets.
    pub fn paths(&self) -> Vec<PathBuf> {
        let unix = self.sockets.iter().filter_map(|socket| match socket {
            Socket::Unix(_, path) => Some(path.clone()),
            Socket::Tcp(_) => None,
        });
        unix.collect()
    }

    /// Serves until the app ends, then gives requests some time to end, too.
    pub async fn serve(self, app: App, router: Router) -> Listening {
        let shared = Arc::new(Shared {
            router,
            permits: Arc::new(Semaphore::new(app.options().connections)),
            tls: self.tls,
            app,
        });
        // What others hand over reaches the catalogue without them waiting for it.
        tokio::spawn(crate::submissions::catch_up(shared.app.clone()));
        tokio::spawn(crate::ingest::import(shared.app.clone()));
        let mut tasks = Vec::new();
        let mut paths = Vec::new();
        for socket in self.sockets {
            let shared = Arc::clone(&shared);
            tasks.push(match socket {
                Socket::Tcp(listener) => tokio::spawn(shared.take_tcp(listener)),
                Socket::Unix(listener, path) => {
                    paths.push(path);
                    tokio::spawn(shared.take_unix(listener))
                }
            });
        }
        for task in tasks {
            // A listener that failed was said in the log.
            drop(task.await);
        }
        for path in paths {
            drop(std::fs::remove_file(path));
        }
        let (app, grace) = (shared.app.clone(), shared.app.options().grace);
        let runs = crate::control::finish(&app, grace);
        // Every connection has one; when all are back, everybody was answered.
        let all = u32::try_from(app.options().connections).unwrap_or(u32::MAX);
        let requests = tokio::time::timeout(grace, shared.permits.acquire_many(all));
        match tokio::join!(requests, runs).0 {
            Ok(_) => Listening::Ended,
            Err(_) => Listening::Cut,
        }
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// Every request was answered.
    Ended,
    /// Some took too long, and were cut off.
    Cut,
}

async fn tcp(address: SocketAddr, or_next: bool) -> Result<TcpListener, ListenError> {
    let mut tried = 0;
    loop {
        let mut at = address;
        if address.port() != 0 {
            at.set_port(address.port().saturating_add(tried));
        }
        match TcpListener::bind(at).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && or_next && tried < PORTS => {
                tried += 1;
            }
            Err(source) => {
                let at = at.to_string();
                return Err(ListenError::Bind { at, source });
            }
        }
    }
}

fn unix(path: &Path) -> Result<UnixListener, ListenError> {
    let fault = |source| ListenError::Bind {
        at: path.display().to_string(),
        source,
    };
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(ListenError::InUse(path.to_owned()));
    }
    // What a server left that was killed.
    match std::fs::symlink_metadata(path) {
        Ok(there) if std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => {
            std::fs::remove_file(path).map_err(fault)?;
        }
        _ => {}
    }
    if let Some(directory) = path.parent() {
        quipu_files::create_directory(directory).map_err(fault)?;
    }
    // Nobody else can open it in the moment before its permissions are set, also in a directory that everybody uses.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound.map_err(fault)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(fault)?;
    Ok(listener)
}

struct Shared {
    app: App,
    router: Router,
    permits: Arc<Semaphore>,
    tls: Option<tokio_rustls::TlsAcceptor>,
}

/// How long the acceptor rests when the system has no more file descriptors.
const REST: Duration = Duration::from_millis(50);

/// How many that connected before the server ended, and were not taken yet, are taken; and when there are no more of them.
const LATE: usize = 1024;
const DRAINED: Duration = Duration::from_millis(10);

/// How long somebody who is connected and has not said anything yet is listened to when the server ends. What they asked may be
/// on its way.
const HEARING: Duration = Duration::from_millis(100);

impl Shared {
    async fn take_tcp(self: Arc<Self>, listener: TcpListener) {
        let own = listener.local_addr().ok();
        loop {
            let taken = tokio::select! {
                () = self.app.ending().cancelled() => break,
                taken = listener.accept() => taken,
            };
            match taken {
                Ok((stream, address)) => self.tcp_connection(stream, address, own),
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
        for _ in 0..LATE {
            let taken = tokio::time::timeout(DRAINED, listener.accept()).await;
            let Ok(Ok((stream, address))) = taken else {
                return;
            };
            self.tcp_connection(stream, address, own);
        }
    }

    fn tcp_connection(
        self: &Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        own: Option<SocketAddr>,
    ) {
        // An answer is small; waiting for more of it gains nothing.
        drop(stream.set_nodelay(true));
        let Some(permit) = self.permit() else {
            refuse(stream, TOO_MANY);
            return;
        };
        let shared = Arc::clone(self);
        let local = stream.local_addr().ok().or(own);
        let any_user = self.app.options().any_local_user;
        let patience = self.app.options().head_timeout;
        let ending = self.app.ending().clone();
        let tls = self.tls.clone();
        // Finding out who it is reads a list that is as long as there are connections. Others can connect meanwhile.
        tokio::spawn(async move {
            let peer = if address.ip().to_canonical().is_loopback() {
                if !any_user && !peer::is_same_user(address, local).await {
                    refuse(stream, OTHER_USER);
                    return;
                }
                Peer::Loopback(address)
            } else {
                Peer::Remote(address)
            };
            let Some(tls) = tls else {
                hold(shared.connection(stream, peer), permit).await;
                return;
            };
            // Whoever is still greeting when the server ends was promised nothing.
            let greeted = tokio::select! {
                () = ending.cancelled() => return,
                greeted = tokio::time::timeout(patience, tls.accept(stream)) => greeted,
            };
            if let Ok(Ok(stream)) = greeted {
                hold(shared.connection(stream, peer), permit).await;
            }
        });
    }

    async fn take_unix(self: Arc<Self>, listener: UnixListener) {
        loop {
            let taken = tokio::select! {
                () = self.app.ending().cancelled() => break,
                taken = listener.accept() => taken,
            };
            match taken {
                Ok((stream, _)) => self.unix_connection(stream),
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
        for _ in 0..LATE {
            let taken = tokio::time::timeout(DRAINED, listener.accept()).await;
            let Ok(Ok((stream, _))) = taken else {
                return;
            };
            self.unix_connection(stream);
        }
    }

    fn unix_connection(&self, stream: UnixStream) {
        match self.permit() {
            Some(permit) => {
                tokio::spawn(hold(self.connection(stream, Peer::Unix), permit));
            }
            None => refuse(stream, TOO_MANY),
        }
    }

    fn permit(&self) -> Option<Held> {
        let metrics = self.app.metrics();
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            metrics.connections.inc();
            return Some(Held {
                app: self.app.clone(),
                _permit: permit,
            });
        }
        metrics.refused.inc();
        None
    }

    fn connection<I>(&self, stream: I, peer: Peer) -> impl Future<Output = ()> + Send + use<I>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let patience = self.app.options().body_timeout;
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(|body| Body::new(body::Patient::new(body, patience)));
            request.extensions_mut().insert(peer);
            let router = router.clone();
            async move { Ok::<_, Infallible>(answer(router, request).await) }
        });
        let stream = outlet::Outlet::new(stream, self.app.options().write_timeout);
        let mut server = http1::Builder::new();
        server
            .timer(TokioTimer::new())
            .header_read_timeout(self.app.options().head_timeout)
            .max_headers(64)
            .max_buf_size(64 << 10)
            .half_close(false);
        let heard = stream.heard();
        let connection = server.serve_connection(TokioIo::new(stream), service);
        let ending = self.app.ending().clone();
        async move {
            let mut connection = std::pin::pin!(connection);
            // A connection that fails is its client's affair.
            tokio::select! {
                _ = connection.as_mut() => return,
                () = ending.cancelled() => {}
            }
            if !heard.load(Ordering::Relaxed) {
                tokio::select! {
                    _ = connection.as_mut() => return,
                    () = tokio::time::sleep(HEARING) => {}
                }
            }
            // What was asked is answered, and nothing after it.
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

/// An answer, whatever happens.
async fn answer(router: Router, request: Request<Body>) -> axum::response::Response {
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A connection that counts.
struct Held {
    app: App,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.app.metrics().connections.dec();
    }
}

async fn hold(connection: impl Future<Output = ()>, held: Held) {
    connection.await;
    drop(held);
}

const TOO_MANY: &str = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n\
    Content-Type: application/problem+json\r\nContent-Length: 98\r\n\r\n\
    {\"type\":\"busy\",\"status\":503,\"title\":\"Busy\",\"detail\":\"too many connections; try again in a moment\"}";

const OTHER_USER: &str = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\
    Content-Type: application/problem+json\r\nContent-Length: 115\r\n\r\n\
    {\"type\":\"forbidden\",\"status\":403,\"title\":\"Not allowed\",\"detail\":\"only the user who started this server may use it\"}";

/// Says why, and closes. Not for long: whoever does not listen is not waited for.
fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, why: &'static str) {
    const PATIENCE: Duration = Duration::from_millis(500);
    tokio::spawn(async move {
        let say = async {
            stream.write_all(why.as_bytes()).await?;
            stream.shutdown().await?;
            // Closing with something unread would take back what was said.
            let mut rest = [0; 4096];
            while stream.read(&mut rest).await? > 0 {}
            std::io::Result::Ok(())
        };
        // They were told, or they did not want to know.
        drop(tokio::time::timeout(PATIENCE, say).await);
    });
}

/// What is asked for and is not there.
pub(crate) async fn nowhere() -> axum::response::Response {
    Problem::not_found("there is nothing at this address")
        .hint("/api/v1/openapi.json lists what there is")
        .into_response()
}

/// The address is right, but not the method. `Allow` says which methods are.
pub(crate) async fn not_allowed(method: http::Method) -> axum::response::Response {
    Problem::new(
        http::StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "Another method is needed",
    )
    .detail(format!("{method} is not possible at this address"))
    .hint("the header Allow says which methods are")
    .into_response()
}

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod slow_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_how_long_they_are() {
        for refusal in [TOO_MANY, OTHER_USER] {
            let (head, body) = refusal.split_once("\r\n\r\n").unwrap();
            let length = head.split("Content-Length: ").nth(1).unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), body.len());
            serde_json::from_str::<serde_json::Value>(body).unwrap();
        }
    }
}
