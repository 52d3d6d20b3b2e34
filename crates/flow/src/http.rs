//! Requests to servers: for operations, tool servers and agents behind HTTP.
//!
//! Nothing is sent but to the address that was named: redirects are not followed. The body of an answer is read in
//! pieces as they come, so that a long or endless one needs no memory. Time limits and cancellation end a request
//! wherever it is.

use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[cfg(test)]
pub(crate) mod tests;

type Plain = Client<HttpConnector, Full<Bytes>>;
type Secure = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be sent to.
    #[error("{url} is not an address that can be sent to: {why}")]
    Address {
        /// The address, without credentials.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The method or a header cannot be sent. Values are not named: they may be secret.
    #[error("{0}")]
    Request(String),
    /// The system has no certificates to check servers by.
    #[error("cannot check certificates: {0}")]
    Certificates(String),
    /// The server could not be reached, or broke off.
    #[error("{url}: {why}")]
    Connection {
        /// The address, without credentials and query.
        url: String,
        /// Why.
        why: String,
    },
    /// The answer did not come in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// A request.
#[derive(Clone)]
pub struct Request {
    method: Method,
    uri: Uri,
    shown: String,
    headers: HeaderMap,
    body: Bytes,
    timeout: Option<Duration>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers and body may hold secrets.
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.shown)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// A request with a method, such as `GET`, to an address.
    ///
    /// # Errors
    ///
    /// When the method is not a word or the address not one of `http://` or `https://` with a host.
    pub fn new(method: &str, url: &str) -> Result<Self, HttpError> {
        let shown = shown(url);
        let bad = |why| HttpError::Address {
            url: shown.clone(),
            why,
        };
        let uri: Uri = url.trim().parse().map_err(|_| bad("not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(bad("it must begin with http:// or https://"));
        }
        let authority = uri.authority().map_or("", |it| it.as_str());
        if authority.contains('@') {
            return Err(bad("put credentials into a header, not into the address"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(bad("it names no host"));
        }
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| HttpError::Request(format!("{method:?} is not an HTTP method")))?;
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static("quipu"));
        Ok(Self {
            method,
            uri,
            shown,
            headers,
            body: Bytes::new(),
            timeout: None,
        })
    }

    /// Sets a header; one of the same name is replaced.
    ///
    /// # Errors
    ///
    /// When its name or value cannot be sent.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, HttpError> {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| HttpError::Request(format!("{name:?} is not a name of a header")))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            HttpError::Request(format!(
                "the value of header {name} has a line break or another character that cannot be sent"
            ))
        })?;
        value.set_sensitive(true);
        self.headers.insert(key, value);
        Ok(self)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Limits the time until the whole answer is there.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends it and waits for the head of the answer.
    ///
    /// # Errors
    ///
    /// When there is no answer. An answer with an error status is an answer.
    pub async fn send(self, cancel: &CancellationToken) -> Result<Response, HttpError> {
        let limit = Limit {
            deadline: self.timeout.map(|most| (Instant::now() + most, most)),
            cancel: cancel.clone(),
        };
        let (secure, shown) = (self.uri.scheme_str() == Some("https"), self.shown);
        let mut request = hyper::Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        let sending = async {
            if secure {
                let client = secure_client()?;
                client
                    .request(request)
                    .await
                    .map_err(|e| broken(&shown, &e))
            } else {
                let answer = PLAIN.request(request).await;
                answer.map_err(|e| broken(&shown, &e))
            }
        };
        let (head, body) = limit.keep(sending).await??.into_parts();
        Ok(Response {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            url: shown,
            limit,
        })
    }
}

static PLAIN: LazyLock<Plain> =
    LazyLock::new(|| Client::builder(TokioExecutor::new()).build(HttpConnector::new()));

/// The client for `https`. The system's certificates are read when the first such request is made.
fn secure_client() -> Result<&'static Secure, HttpError> {
    static CLIENT: OnceLock<Result<Secure, String>> = OnceLock::new();
    let made = CLIENT.get_or_init(|| {
        let builder = HttpsConnectorBuilder::new().with_native_roots();
        let connector = builder.map_err(|e| e.to_string())?;
        let connector = connector.https_or_http().enable_http1().build();
        Ok(Client::builder(TokioExecutor::new()).build(connector))
    });
    made.as_ref()
        .map_err(|why| HttpError::Certificates(why.clone()))
}

/// An answer whose head is there; its body is read in pieces.
#[derive(Debug)]
pub struct Response {
    /// The status, such as 200.
    pub status: u16,
    headers: HeaderMap,
    body: Incoming,
    url: String,
    limit: Limit,
}

impl Response {
    /// The value of a header, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All headers in alphabetical order of their names, each with its values joined by `, `.
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::with_capacity(self.headers.keys_len());
        for name in self.headers.keys() {
            let values = self.headers.get_all(name).iter();
            let values: Vec<_> = values
                .map(|v| String::from_utf8_lossy(v.as_bytes()))
                .collect();
            all.push((name.as_str().to_owned(), values.join(", ")));
        }
        all.sort();
        all
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// When the server breaks off, the time is up or the request is cancelled.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let Some(frame) = self.limit.keep(self.body.frame()).await? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| HttpError::Connection {
                url: self.url.clone(),
                why: reasons(&error),
            })?;
            // Trailers are not part of the body.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// The body, up to `most` bytes of it, and whether there was more.
    ///
    /// # Errors
    ///
    /// As [`piece`](Self::piece).
    pub async fn read(mut self, most: usize) -> Result<(Vec<u8>, bool), HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            let room = most - body.len();
            if piece.len() > room {
                body.extend_from_slice(&piece[..room]);
                return Ok((body, true));
            }
            body.extend_from_slice(&piece);
        }
        Ok((body, false))
    }
}

/// What can end a request.
#[derive(Debug)]
struct Limit {
    deadline: Option<(Instant, Duration)>,
    cancel: CancellationToken,
}

impl Limit {
    async fn keep<T>(&self, work: impl Future<Output = T>) -> Result<T, HttpError> {
        let time_up = async {
            match self.deadline {
                Some((deadline, most)) => {
                    tokio::time::sleep_until(deadline).await;
                    most
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(HttpError::Cancelled),
            done = work => Ok(done),
            most = time_up => Err(HttpError::TimedOut(most)),
        }
    }
}

fn broken(url: &str, error: &ClientError) -> HttpError {
    HttpError::Connection {
        url: url.to_owned(),
        why: reasons(error),
    }
}

/// An error with its causes: the outermost alone says only "client error".
fn reasons(error: &dyn std::error::Error) -> String {
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !all.ends_with(&text) {
            all.push_str(": ");
            all.push_str(&text);
        }
        cause = next.source();
    }
    all
}

/// An address without credentials and query, which may hold keys.
pub fn shown(url: &str) -> String {
    let url = url.trim();
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    format!("{scheme}://{host}{path}")
}
