//! MCP over HTTP, with Quipu's own client.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio_util::sync::CancellationToken;

use crate::http::{HttpError, Request, Response};

/// The longest answer that is not a stream, and the longest event of one.
const MAX_JSON: usize = 16 << 20;

/// How much of an answer that is an error is said.
const MAX_SAID: usize = 1000;

type Headers = HashMap<HeaderName, HeaderValue>;
type Error = StreamableHttpError<HttpError>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Headers of a definition.
pub(super) fn headers(given: &BTreeMap<String, String>) -> Result<Headers, String> {
    let header = |(name, value): (&String, &String)| {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is not a name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of header {name} cannot be sent"))?;
        value.set_sensitive(true);
        Ok((key, value))
    };
    given.iter().map(header).collect()
}

/// The client.
#[derive(Debug, Clone)]
pub(super) struct Web {
    cancel: CancellationToken,
}

impl Web {
    pub(super) fn new(cancel: CancellationToken) -> Self {
        Self { cancel }
    }

    async fn send(
        &self,
        request: Request,
        session: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Response, Error> {
        let fill = || -> Result<Request, HttpError> {
            let mut request = request;
            let mut headers: Vec<_> = headers.iter().collect();
            headers.sort_by_key(|it| it.0.as_str());
            for (name, value) in headers {
                let value = String::from_utf8_lossy(value.as_bytes());
                request = request.header(name.as_str(), &value)?;
            }
            if let Some(token) = token {
                request = request.header("authorization", &format!("Bearer {token}"))?;
            }
            if let Some(session) = session {
                request = request.header(HEADER_SESSION_ID, session)?;
            }
            Ok(request)
        };
        let request = fill().map_err(Error::Client)?;
        let sent = request.send(&self.cancel).await;
        sent.map_err(Error::Client)
    }
}

impl StreamableHttpClient for Web {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let most = MAX_JSON;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, most)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = serde_json::to_vec(&message)?;
        let request = Request::new("POST", &uri)
            .and_then(|it| it.header("content-type", "application/json"))
            .and_then(|it| it.header("accept", "application/json, text/event-stream"))
            .map_err(Error::Client)?
            .body(body);
        let answer = self
            .send(request, session.as_deref(), token, headers)
            .await?;
        let expects_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        match answer.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            401 => {
                let challenge = answer.header("www-authenticate").unwrap_or("").to_owned();
                return Err(Error::AuthRequired(AuthRequiredError::new(challenge)));
            }
            404 if session.is_some() => return Err(Error::SessionExpired),
            status @ (429 | 500..) => {
                let after = answer.header("retry-after").map(str::to_owned);
                return Err(HttpStatusError::new(status, after).into());
            }
            200..300 => {}
            _ => return refused(&message, session.is_some(), answer).await,
        }
        let kind = answer.header("content-type").unwrap_or("").to_owned();
        let new_session = answer.header(HEADER_SESSION_ID).map(str::to_owned);
        if kind.starts_with("text/event-stream") {
            let events = events(answer, most);
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        let (body, more) = answer.read(MAX_JSON).await.map_err(Error::Client)?;
        if !expects_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if more {
            return Err(Error::UnexpectedServerResponse(
                format!("an answer of more than {MAX_JSON} bytes").into(),
            ));
        }
        if !kind.starts_with("application/json") {
            return Err(Error::UnexpectedContentType(Some(kind)));
        }
        let parsed: ServerJsonRpcMessage = serde_json::from_slice(&body)?;
        Ok(StreamableHttpPostResponse::Json(parsed, new_session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        let request = Request::new("DELETE", &uri).map_err(Error::Client)?;
        // The connection may be ended already: this is part of ending it.
        let client = Self::new(CancellationToken::new());
        let sent = client.send(request, Some(&session), token, headers).await?;
        match sent.status {
            405 | 200..300 => Ok(()),
            status => Err(Error::UnexpectedServerResponse(
                format!("ending the session was answered with {status}").into(),
            )),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        let most = MAX_JSON;
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Error> {
        let make = || -> Result<Request, HttpError> {
            let request = Request::new("GET", &uri)?.header("accept", "text/event-stream")?;
            match &last {
                Some(last) => request.header(HEADER_LAST_EVENT_ID, last),
                None => Ok(request),
            }
        };
        let request = make().map_err(Error::Client)?;
        let answer = self
            .send(request, session.as_deref(), token, headers)
            .await?;
        let kind = answer.header("content-type").unwrap_or("");
        match answer.status {
            404 if session.is_some() => Err(Error::SessionExpired),
            // Servers need not have such a stream.
            404 | 405 => Err(Error::ServerDoesNotSupportSse),
            200..300 if kind.starts_with("text/event-stream") => Ok(events(answer, most)),
            200..300 => Err(Error::UnexpectedContentType(Some(kind.to_owned()))),
            status => Err(HttpStatusError::new(status, None).into()),
        }
    }
}

/// An answer with a status that says that the client is wrong. An older server says so to the question that only
/// newer ones know; that is an answer to it.
async fn refused(
    message: &ClientJsonRpcMessage,
    in_session: bool,
    answer: Response,
) -> Result<StreamableHttpPostResponse, Error> {
    let status = answer.status;
    let (body, _) = answer.read(MAX_JSON).await.map_err(Error::Client)?;
    let said = String::from_utf8_lossy(&body[..body.len().min(MAX_SAID)]).into_owned();
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !in_session
        && status != 403
    {
        let parsed = serde_json::from_slice(&body);
        let error = match parsed {
            Ok(ServerJsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(format!("the server answered {status}: {said}"), None),
        };
        let id = Some(request.id.clone());
        let error = ServerJsonRpcMessage::error(error, id);
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    Err(Error::UnexpectedServerResponse(
        format!("the server answered {status}: {said}").into(),
    ))
}

/// The events of an answer. One that is too large ends them with an error.
fn events(answer: Response, most: usize) -> Events {
    let state = (Some(answer), Sizes::default());
    let pieces = futures_util::stream::unfold(state, move |(answer, mut sizes)| async move {
        let mut answer = answer?;
        let piece = match answer.piece().await {
            Ok(piece) => piece?,
            Err(error) => return Some((Err(error), (None, sizes))),
        };
        if sizes.largest(&piece) > most {
            let error = HttpError::Request(format!("an event of more than {most} bytes"));
            return Some((Err(error), (None, sizes)));
        }
        Some((Ok::<Bytes, HttpError>(piece), (Some(answer), sizes)))
    });
    SseStream::from_bytes_stream(Box::pin(pieces)).boxed()
}

/// How large the event is that is being read: blank lines are between events.
#[derive(Default)]
struct Sizes {
    size: usize,
    in_line: bool,
}

impl Sizes {
    /// The size of the largest event that was met so far in a piece.
    fn largest(&mut self, piece: &[u8]) -> usize {
        let mut largest = self.size;
        for &byte in piece {
            self.size += 1;
            match byte {
                b'\n' if !self.in_line => self.size = 0,
                b'\n' => self.in_line = false,
                b'\r' => {}
                _ => self.in_line = true,
            }
            largest = largest.max(self.size);
        }
        largest
    }
}
