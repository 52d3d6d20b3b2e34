//! OTLP: `POST /v1/traces` and `POST /v1/logs`. What programs send is kept first and imported soon after.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use quipu_record::Clock;
use quipu_store::Store;
use quipu_store::import::{ImportOptions, Progress};
use quipu_store::receive::{Encoding, ReceiveError, Received, Receiver, Signal, refusal};
use tokio::sync::{Notify, Semaphore};

use crate::App;
use crate::access::MayIngest;
use crate::listen::is_late;

/// What takes spans and log records, and which files wait to be imported.
#[derive(Debug)]
pub struct Ingest {
    receiver: Receiver,
    waiting: Mutex<BTreeSet<PathBuf>>,
    grown: Notify,
    permits: Semaphore,
}

/// How many requests are held in memory at once, each with as many bytes as [`LONGEST`] twice. Others wait for a while.
const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);

impl Ingest {
    pub(crate) fn new(store: &Store, clock: &Arc<dyn Clock>) -> Self {
        Self {
            receiver: store.receiver(Arc::clone(clock)),
            waiting: Mutex::default(),
            grown: Notify::new(),
            permits: Semaphore::new(AT_ONCE),
        }
    }
}

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/logs", post(logs))
}

async fn traces(state: State<App>, may: MayIngest, request: Request) -> Response {
    take(state, may, Signal::Traces, request).await
}

async fn logs(state: State<App>, may: MayIngest, request: Request) -> Response {
    take(state, may, Signal::Logs, request).await
}

async fn take(State(app): State<App>, _: MayIngest, signal: Signal, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(CONTENT_TYPE);
    let kind = kind
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    // What cannot be read as OTLP is answered as JSON, which people can read.
    let encoding = Encoding::of(&kind).unwrap_or(Encoding::Json);
    match taken(app, signal, kind, &parts.headers, body).await {
        Ok(received) => answered(StatusCode::OK, received.content_type, received.body),
        Err(refused) => refused.answer(encoding),
    }
}

async fn taken(
    app: App,
    signal: Signal,
    kind: String,
    headers: &HeaderMap,
    body: Body,
) -> Result<Received, Refused> {
    let turn = tokio::time::timeout(PATIENCE, app.ingest().permits.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        let message = "too many programs send telemetry at once; try again in a moment";
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, message));
    };
    let body = collected(headers, body).await?;
    let inner = app.clone();
    // Not `App::read`: whoever sends waits until it is on disk, and that must not hold up who reads.
    let done =
        tokio::task::spawn_blocking(move || inner.ingest().receiver.receive(signal, &kind, &body));
    let mut received = done.await.map_err(|_| Refused::internal())??;
    let dropped = received.rejected + received.unknown_fields + received.mended;
    if dropped > 0 {
        // Whoever sends is told, but few programs say so.
        tracing::debug!(
            target: "quipu",
            rejected = received.rejected,
            unknown_fields = received.unknown_fields,
            mended = received.mended,
            "not all of what was sent is kept as it is"
        );
    }
    let paths = std::mem::take(&mut received.paths);
    if !paths.is_empty() {
        app.ingest().waiting.lock().extend(paths);
        app.ingest().grown.notify_one();
    }
    Ok(received)
}

/// Why nothing of a request is taken, to be told as OTLP/HTTP has it: a `google.rpc.Status` in the encoding of the request.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    message: Cow<'static, str>,
}

impl Refused {
    fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    fn too_large() -> Self {
        let message = format!("at most {LONGEST} bytes are accepted here");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    fn internal() -> Self {
        let message = "the server failed; its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    fn answer(&self, encoding: Encoding) -> Response {
        let body = refusal(encoding, self.status.as_u16(), &self.message);
        let mut response = answered(self.status, encoding.content_type(), body);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, soon);
        }
        response
    }
}

impl From<ReceiveError> for Refused {
    fn from(error: ReceiveError) -> Self {
        if let ReceiveError::NotKept { source, .. } = &error {
            tracing::error!(target: "quipu", why = %source, "what was sent is not kept");
        }
        let status = StatusCode::from_u16(error.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, error.message())
    }
}

fn answered(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The longest body, as it is sent and as it is unpacked.
const LONGEST: usize = 64 << 20;

/// The whole body, unpacked. Both lengths are limited: a small body must not become a large one.
async fn collected(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Refused> {
    let packed = Limited::new(body, LONGEST).collect().await;
    let packed = packed.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            Refused::too_large()
        } else if is_late(&*error) {
            Refused::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")
        } else {
            Refused::new(StatusCode::BAD_REQUEST, "the body ended before it should")
        }
    })?;
    let packed = packed.to_bytes();
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map(|value| value.to_str().unwrap_or("?"));
    let unpack = match encoding.map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "identity") => return Ok(packed.to_vec()),
        Some("gzip") => unpacked_gzip,
        Some("zstd") => unpacked_zstd,
        Some(other) => {
            // It may be as long as a head.
            let other: String = other.chars().take(40).collect();
            return Err(Refused::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("Content-Encoding {other:?} is neither gzip nor zstd nor identity"),
            ));
        }
    };
    let done = tokio::task::spawn_blocking(move || unpack(&packed));
    done.await.map_err(|_| Refused::internal())?
}

fn broken() -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, "the body does not unpack")
}

fn unpacked_gzip(packed: &[u8]) -> Result<Vec<u8>, Refused> {
    within(flate2::read::MultiGzDecoder::new(packed))
}

fn unpacked_zstd(packed: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut decoder = zstd::Decoder::new(packed).map_err(|_| broken())?;
    // A window of 8 MiB, as submissions have it.
    decoder.window_log_max(23).map_err(|_| broken())?;
    within(decoder)
}

fn within(from: impl std::io::Read) -> Result<Vec<u8>, Refused> {
    use std::io::Read as _;
    let mut all = Vec::new();
    from.take(LONGEST as u64 + 1)
        .read_to_end(&mut all)
        .map_err(|_| broken())?;
    if all.len() > LONGEST {
        return Err(Refused::too_large());
    }
    Ok(all)
}

/// How long files may grow before they are imported, so that many small requests are one import.
const QUIET: Duration = Duration::from_millis(300);

/// Imports what was kept, also what is left of an earlier start. Ends with the server.
pub(crate) async fn import(app: App) {
    const AGAIN: Duration = Duration::from_secs(2);
    // A home that nothing was ever sent to is left alone: whoever imports is not kept waiting.
    let mut all = app.home().join("received").is_dir();
    loop {
        let paths: Vec<PathBuf> = std::mem::take(&mut *app.ingest().waiting.lock())
            .into_iter()
            .collect();
        if all || !paths.is_empty() {
            let named = if all { Vec::new() } else { paths.clone() };
            let options = ImportOptions {
                redact: None,
                now: app.clock().now(),
                agents: Vec::new(),
                dry_run: false,
                threads: 1,
            };
            let done = app
                .work(move |store| {
                    Ok(store.import_received(&named, &options, &Progress::default())?)
                })
                .await;
            if let Err(problem) = done {
                tracing::debug!(target: "quipu", why = %problem, "what was received is imported later");
                app.ingest().waiting.lock().extend(paths);
                tokio::select! {
                    () = app.ending().cancelled() => return,
                    () = tokio::time::sleep(AGAIN) => continue,
                }
            }
            all = false;
            app.freshness().bump();
        }
        tokio::select! {
            () = app.ending().cancelled() => return,
            () = app.ingest().grown.notified() => tokio::time::sleep(QUIET).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testkit::Served;

    fn spans() -> Vec<u8> {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let body = json!({"resourceSpans": [{"resource": {"attributes": [text("service.name", "shop-bot")]}, "scopeSpans": [{"scope": {"name": "t"}, "spans": [{
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat gpt-4o", "kind": 3,
            "startTimeUnixNano": "1760000000000000000", "endTimeUnixNano": "1760000001000000000",
            "attributes": [text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", "gpt-4o"),
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
                {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "3"}},
                text("gen_ai.input.messages", "[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"where is my zeppelin\"}]}]"),
                text("gen_ai.output.messages", "[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"in the hangar\"}]}]")]
        }]}]}]});
        body.to_string().into_bytes()
    }

    #[test]
    fn spans_become_a_transcript_that_is_found() {
        let served = Served::empty();
        let kind = ("Content-Type", "application/json");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packed, &spans()).unwrap();
        let packed = packed.finish().unwrap();
        let answer = served.send(
            "POST",
            "/v1/traces",
            &[kind, ("Content-Encoding", "gzip")],
            &packed,
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        let found = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let answer = served.get("/api/v1/search?q=zeppelin");
            answer.status == 200 && !answer.json()["hits"].as_array().unwrap().is_empty()
        });
        assert!(found, "{}", served.get("/api/v1/transcripts").text());
        let list = served.get("/api/v1/transcripts").json();
        assert_eq!(list["transcripts"][0]["usage"]["output"], 3);
    }

    /// Spans of a program that also asks a database, in two requests.
    #[test]
    fn what_is_of_no_model_is_counted_and_is_no_transcript() {
        let served = Served::empty();
        let kind = ("Content-Type", "application/json");
        let web = String::from_utf8(spans())
            .unwrap()
            .replace("gen_ai.", "http.")
            .replace("0af7", "1af7");
        let answer = served.send("POST", "/v1/traces", &[kind], web.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let partial = &answer.json()["partialSuccess"];
        assert_eq!(partial["rejectedSpans"], "1");
        let why = partial["errorMessage"].as_str().unwrap();
        assert!(why.contains("is of a model"), "{why}");
        let received = served.home().join("received");
        assert!(!received.exists(), "{}", received.display());
    }

    #[test]
    fn refusals_are_what_otlp_has_for_them() {
        let served = Served::empty();
        for (kind, is_json) in [
            ("application/json", true),
            ("application/x-protobuf", false),
            ("text/plain", true),
        ] {
            let sends = |encoding: &str, body: &[u8]| {
                let headers = [("Content-Type", kind), ("Content-Encoding", encoding)];
                served.send("POST", "/v1/logs", &headers, body)
            };
            let bomb = zstd::encode_all(std::io::repeat(b' ').take_some(80 << 20), 1).unwrap();
            for (status, code, answer) in [
                (415, 3_u8, sends("br", b"{}")),
                (400, 3, sends("gzip", b"not gzip")),
                (413, 8, sends("zstd", &bomb)),
            ] {
                assert_eq!(answer.status, status, "{kind}");
                let content = answer.header("content-type").unwrap_or_default();
                if is_json {
                    assert_eq!(content, "application/json");
                    assert_eq!(answer.json()["code"], code);
                    assert!(answer.json()["message"].is_string());
                } else {
                    assert_eq!(content, "application/x-protobuf");
                    assert_eq!(answer.body[..3], [0x08, code, 0x12]);
                }
            }
        }
    }

    #[test]
    fn who_has_to_wait_is_told_for_how_long() {
        let refused = super::Refused::new(http::StatusCode::SERVICE_UNAVAILABLE, "busy");
        let answer = refused.answer(super::Encoding::Protobuf);
        assert_eq!(answer.headers()["retry-after"], "1");
        assert_eq!(answer.headers()["content-type"], "application/x-protobuf");
    }

    #[test]
    fn what_is_too_large_or_broken_is_refused() {
        let served = Served::empty();
        let kind = ("Content-Type", "application/json");
        let send = |headers: &[(&str, &str)], body: &[u8]| {
            served.send("POST", "/v1/traces", headers, body).status
        };
        assert_eq!(send(&[kind], b"{"), 400);
        assert_eq!(send(&[("Content-Type", "text/plain")], b"{}"), 415);
        assert_eq!(send(&[kind, ("Content-Encoding", "br")], b"{}"), 415);
        assert_eq!(
            send(&[kind, ("Content-Encoding", "gzip")], b"not gzip"),
            400
        );
        // A bomb: a kilobyte that becomes more than is accepted.
        let bomb = zstd::encode_all(std::io::repeat(b' ').take_some(80 << 20), 19).unwrap();
        assert!(bomb.len() < 64 << 10);
        assert_eq!(send(&[kind, ("Content-Encoding", "zstd")], &bomb), 413);
        assert_eq!(
            send(&[kind, ("Origin", "http://evil.example")], &spans()),
            403
        );
    }

    trait TakeSome {
        fn take_some(self, n: u64) -> impl std::io::Read;
    }

    impl<R: std::io::Read> TakeSome for R {
        fn take_some(self, n: u64) -> impl std::io::Read {
            std::io::Read::take(self, n)
        }
    }
}
