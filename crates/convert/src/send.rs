//! Sends traces to where someone wants them: OTLP over HTTP.
//!
//! A batch is a line that [`quipu_formats::otlp`] wrote. It is posted as it is, or as protobuf to endpoints that
//! take no JSON (Phoenix is one). An endpoint that is busy is asked again, a few times and not for long.
//!
//! Nothing is sent but to the address that was named: redirects are not followed. What opens a door (header
//! values, the user and the query of the address) is in no error, no message and no debug output, even where the endpoint
//! repeats it.

mod endpoint;
mod response;
mod secrets;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use quipu_formats::loss::Loss;
use quipu_formats::otlp::{NotARequest, protobuf};
use quipu_http::{Answer, Patience};
use ureq::http::{HeaderName, HeaderValue};

use self::endpoint::Endpoint;
use self::secrets::Secrets;

/// How much of an answer is read.
const MAX_ANSWER: u64 = 64 << 10;

/// How a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// As it is.
    #[default]
    Json,
    /// For endpoints that take nothing else.
    Protobuf,
}

/// How a sender behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendOptions {
    /// How batches are written.
    pub encoding: Encoding,
    /// How often a batch is sent at most.
    pub attempts: u32,
    /// How long is waited before the second attempt, unless the endpoint says; twice as long each time.
    pub first_wait: Duration,
    /// The longest wait, whatever the endpoint says.
    pub longest_wait: Duration,
    /// How long an attempt may take.
    pub timeout: Duration,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            encoding: Encoding::Json,
            attempts: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
        }
    }
}

/// That a batch was taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accepted {
    /// How many of its spans were not.
    pub rejected_spans: u64,
    /// Why, or what else the endpoint has to say.
    pub message: Option<String>,
    /// How often it was sent.
    pub attempts: u32,
}

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The address is none that can be sent to.
    #[error("cannot send to this address: {0}")]
    Endpoint(&'static str),
    /// A header has a name or a value that cannot be sent.
    #[error("cannot send the header {0:?}")]
    Header(String),
    /// The batch is no request.
    #[error("cannot send what is no OTLP request")]
    Batch(#[from] NotARequest),
    /// The endpoint does not answer.
    #[error("{endpoint} cannot be reached: {reason}")]
    Unreachable {
        /// Where it was sent to.
        endpoint: String,
        /// What went wrong.
        reason: String,
    },
    /// The endpoint sends elsewhere, which is not followed.
    #[error(
        "{endpoint} redirects ({status}), which is not followed: name the address that it should go to"
    )]
    Redirected {
        /// Where it was sent to.
        endpoint: String,
        /// The status of the answer.
        status: u16,
    },
    /// The endpoint is no endpoint: it answers as if all were well, with a page for people.
    #[error(
        "{endpoint} answers with a page ({status}), so it takes no traces there: name the address that does"
    )]
    Page {
        /// Where it was sent to.
        endpoint: String,
        /// The status of the answer.
        status: u16,
    },
    /// The endpoint refuses it.
    #[error("{endpoint} refuses it: {status}{}", told(.message.as_ref()))]
    Refused {
        /// Where it was sent to.
        endpoint: String,
        /// The status of the answer.
        status: u16,
        /// What the endpoint says.
        message: Option<String>,
    },
    /// The endpoint is busy, and was still after the last attempt.
    #[error("{endpoint} is busy ({status}) after {attempts} attempts")]
    Busy {
        /// Where it was sent to.
        endpoint: String,
        /// The status of the last answer.
        status: u16,
        /// How often it was sent.
        attempts: u32,
    },
}

fn told(message: Option<&String>) -> String {
    message.map_or_else(String::new, |message| format!(", {message}"))
}

/// Sends batches to one endpoint, over one connection as long as that lasts.
pub struct Sender {
    agent: ureq::Agent,
    endpoint: Endpoint,
    headers: Vec<(HeaderName, HeaderValue)>,
    secrets: Secrets,
    options: SendOptions,
}

/// Names of headers, never their values.
impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Sender")
            .field("endpoint", &self.endpoint.shown())
            .field("headers", &names)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Sender {
    /// A sender to an address. `/v1/traces` is added to one that has no path.
    ///
    /// # Errors
    ///
    /// When the address or a header cannot be used.
    pub fn new(
        endpoint: &str,
        headers: &[(String, String)],
        options: SendOptions,
    ) -> Result<Self, SendError> {
        let endpoint = Endpoint::parse(endpoint)?;
        let mut secrets = endpoint.secrets();
        let mut all = Vec::new();
        for (name, value) in headers {
            let wrong = || SendError::Header(name.clone());
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            all.push((name, value));
        }
        all.extend(endpoint.authorization());
        for value in all.iter().filter_map(|(_, value)| value.to_str().ok()) {
            secrets.add(value);
        }
        let agent = quipu_http::agent(endpoint.uri(), options.timeout);
        Ok(Self {
            agent,
            endpoint,
            headers: all,
            secrets,
            options,
        })
    }

    /// Sends a batch, and again while the endpoint is busy.
    ///
    /// # Errors
    ///
    /// When it was not taken.
    pub fn post(&self, batch: &[u8]) -> Result<Accepted, SendError> {
        match self.options.encoding {
            Encoding::Json => self.send(batch.trim_ascii_end(), "application/json"),
            Encoding::Protobuf => self.send(&protobuf(batch)?, "application/x-protobuf"),
        }
    }

    fn send(&self, body: &[u8], kind: &str) -> Result<Accepted, SendError> {
        let endpoint = || self.endpoint.shown().to_owned();
        let SendOptions {
            attempts,
            first_wait,
            longest_wait,
            ..
        } = self.options;
        let mut patience = Patience::new(attempts, first_wait, longest_wait);
        loop {
            let attempts = patience.attempts();
            let answer = self.once(body, kind)?;
            let status = answer.status;
            if answer.is_success() && response::is_page(&answer) {
                let endpoint = endpoint();
                return Err(SendError::Page { endpoint, status });
            }
            if answer.is_success() {
                return Ok(Accepted {
                    attempts,
                    ..response::accepted(&answer, &self.secrets)
                });
            }
            if answer.is_redirect() {
                let endpoint = endpoint();
                return Err(SendError::Redirected { endpoint, status });
            }
            if !is_busy(status) {
                return Err(SendError::Refused {
                    endpoint: endpoint(),
                    status,
                    message: response::complaint(&answer, &self.secrets),
                });
            }
            if !patience.wait(answer.retry_after) {
                return Err(SendError::Busy {
                    endpoint: endpoint(),
                    status,
                    attempts,
                });
            }
        }
    }

    fn once(&self, body: &[u8], kind: &str) -> Result<Answer, SendError> {
        let mut request = self.agent.post(self.endpoint.uri().clone());
        request = request.header("content-type", kind).header("accept", kind);
        for (name, value) in &self.headers {
            request = request.header(name.clone(), value.clone());
        }
        let response = request.send(body);
        response
            .map(|response| Answer::read(response, MAX_ANSWER))
            .map_err(|error| SendError::Unreachable {
                endpoint: self.endpoint.shown().to_owned(),
                reason: self.secrets.hide(&error.to_string()),
            })
    }
}

/// Whether it is worth to try again.
fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// Sends one batch.
///
/// # Errors
///
/// When it was not taken.
pub fn post(
    endpoint: &str,
    batch: &[u8],
    headers: &[(String, String)],
) -> Result<Accepted, SendError> {
    Sender::new(endpoint, headers, SendOptions::default())?.post(batch)
}

/// Sends each line that is written to it: what a writer of traces writes to.
#[derive(Debug)]
pub struct Lines<'s> {
    sender: &'s Sender,
    line: Vec<u8>,
    sent: &'s mut Sent,
}

/// What became of the lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sent {
    /// How many batches were taken.
    pub batches: u64,
    /// How many spans of them were not.
    pub rejected_spans: u64,
    /// What the endpoint said last.
    pub message: Option<String>,
}

/// How spans are counted that the endpoint did not take.
pub const REJECTED: &str = "spans that the endpoint rejected";

impl Sent {
    /// Counts the spans that were rejected as lost. Which events they were of, the endpoint does not say.
    pub fn count(&self, loss: &mut Loss) {
        if self.rejected_spans > 0 {
            loss.dropped(REJECTED, 0);
            if let Some(tally) = loss.dropped.get_mut(REJECTED) {
                tally.count = tally.count.saturating_add(self.rejected_spans - 1);
            }
        }
    }
}

impl<'s> Lines<'s> {
    /// Sends lines, and keeps account of what became of them.
    pub fn new(sender: &'s Sender, sent: &'s mut Sent) -> Self {
        let line = Vec::new();
        Self { sender, line, sent }
    }

    fn post(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let accepted = self.sender.post(&line).map_err(io::Error::other)?;
        self.sent.batches += 1;
        let rejected = &mut self.sent.rejected_spans;
        *rejected = rejected.saturating_add(accepted.rejected_spans);
        if accepted.message.is_some() {
            self.sent.message = accepted.message;
        }
        Ok(())
    }
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.post()?;
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    /// Sends what has no line end yet.
    fn flush(&mut self) -> io::Result<()> {
        self.post()
    }
}
