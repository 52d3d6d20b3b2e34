//! One request and its answer.

use std::time::{Duration, Instant};

use quipu_model::{Annotations, Body, Chunk, Fidelity, Json, ModelCall, ModelCallId, Severity};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::assemble::{self, Turn};
use super::events::Events;
use super::settings::Settings;
use crate::agent::listen::harness;
use crate::agent::{AskFailure, Hearer};
use crate::http::{HttpError, Request, Response, shown};

/// The longest answer.
const LONGEST: usize = 10_000_000;

/// How much of an answer that is an error is read.
const LONGEST_ERROR: usize = 64 << 10;

/// The longest wait before a request is tried again, whatever the server asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What one request came to: the answer, whole or in part, and why it is not whole.
pub(super) struct Came {
    pub(super) turn: Turn,
    pub(super) failure: Option<AskFailure>,
}

/// Sends requests to one server.
pub(super) struct Line<'a> {
    pub(super) settings: &'a Settings,
    pub(super) deadline: Option<(tokio::time::Instant, Duration)>,
    pub(super) cancel: &'a CancellationToken,
}

impl Line<'_> {
    /// Sends a request, again where that may help, and records each as a call to the model.
    pub(super) async fn exchange(&self, body: &Value, hearer: &mut dyn Hearer) -> Came {
        let mut tried = 0;
        loop {
            let began = Instant::now();
            let mut first = None;
            let (came, asked) = self.once(body, hearer, began, &mut first).await;
            self.record(&came, began, first, hearer);
            let again = match &came.failure {
                Some(AskFailure::Server {
                    status,
                    message,
                    retryable: true,
                }) => {
                    let is_limit = *status == 429;
                    let category = if is_limit { "rate_limit" } else { "retry" };
                    Some((category, json!({"status": status, "message": message})))
                }
                // Once an answer has begun, what was paid for would be paid for again.
                Some(AskFailure::Connection(why)) if !came.turn.has_begun() => {
                    Some(("retry", json!({"message": why})))
                }
                _ => None,
            };
            let Some((category, mut about)) = again.filter(|_| tried < self.settings.retries)
            else {
                return came;
            };
            let wait = Duration::from_millis(500 << tried.min(10));
            let wait = asked.unwrap_or(wait).min(LONGEST_WAIT);
            tried += 1;
            about["attempt"] = json!(tried);
            about["wait_ms"] = json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            let event = harness(category, "try_again", Severity::Warning, &about);
            hearer.event(event, Annotations::default());
            if let Some(failure) = self.wait(wait).await {
                return Came {
                    turn: Turn::default(),
                    failure: Some(failure),
                };
            }
        }
    }

    /// Waits; why nothing comes after it, where nothing does.
    async fn wait(&self, wait: Duration) -> Option<AskFailure> {
        let until = tokio::time::Instant::now() + wait;
        let late = self.deadline.filter(|(deadline, _)| *deadline < until);
        let until = late.map_or(until, |(deadline, _)| deadline);
        tokio::select! {
            () = self.cancel.cancelled() => Some(AskFailure::Cancelled),
            () = tokio::time::sleep_until(until) => late.map(|(_, most)| AskFailure::TimedOut(most)),
        }
    }

    async fn once(
        &self,
        body: &Value,
        hearer: &mut dyn Hearer,
        began: Instant,
        first: &mut Option<Duration>,
    ) -> (Came, Option<Duration>) {
        let mut turn = Turn::default();
        let mut asked = None;
        let result = async {
            let response = self.send(body).await?;
            if !(200..300).contains(&response.status) {
                asked = retry_after(&response);
                return Err(self.refused(response).await);
            }
            self.read(response, &mut turn, hearer, began, first).await
        };
        let failure = result.await.err();
        (Came { turn, failure }, asked)
    }

    async fn send(&self, body: &Value) -> Result<Response, AskFailure> {
        let refused = |error: HttpError| AskFailure::Request(error.to_string());
        let mut request = Request::new("POST", &self.settings.url)
            .and_then(|request| request.header("content-type", "application/json"))
            .map_err(refused)?;
        if let Some(key) = &self.settings.key {
            let value = format!("Bearer {key}");
            request = request.header("authorization", &value).map_err(refused)?;
        }
        let now = tokio::time::Instant::now();
        let left = self
            .deadline
            .map(|(deadline, _)| deadline.saturating_duration_since(now));
        let request = request.body(body.to_string()).timeout(left);
        let sent = request.send(self.cancel).await;
        sent.map_err(|error| self.broken(error))
    }

    /// What an answer with an error status says.
    async fn refused(&self, response: Response) -> AskFailure {
        let status = response.status;
        let (body, _) = match response.read(LONGEST_ERROR).await {
            Ok(read) => read,
            Err(error @ (HttpError::Cancelled | HttpError::TimedOut(_))) => {
                return self.broken(error);
            }
            Err(_) => (Vec::new(), false),
        };
        let said = match serde_json::from_slice::<Value>(&body) {
            Ok(answer) => assemble::message(&answer),
            Err(_) => String::from_utf8_lossy(&body).into_owned(),
        };
        AskFailure::Server {
            status,
            message: self.clean(&said),
            retryable: status == 429 || (500..600).contains(&status),
        }
    }

    /// What a server says, for a message: one line, not long, and without the key.
    fn clean(&self, said: &str) -> String {
        let said = match &self.settings.key {
            Some(key) => said.replace(key.as_str(), "***"),
            None => said.to_owned(),
        };
        let plain = said.chars().map(|c| if c.is_control() { ' ' } else { c });
        let plain: String = plain.take(300).collect();
        plain.trim().to_owned()
    }

    fn broken(&self, error: HttpError) -> AskFailure {
        match error {
            HttpError::Cancelled => AskFailure::Cancelled,
            HttpError::TimedOut(most) => {
                AskFailure::TimedOut(self.deadline.map_or(most, |(_, most)| most))
            }
            error @ (HttpError::Address { .. } | HttpError::Request(_)) => {
                AskFailure::Request(error.to_string())
            }
            error => AskFailure::Connection(error.to_string()),
        }
    }

    async fn read(
        &self,
        mut response: Response,
        turn: &mut Turn,
        hearer: &mut dyn Hearer,
        began: Instant,
        first: &mut Option<Duration>,
    ) -> Result<(), AskFailure> {
        let kind = response.header("content-type").unwrap_or_default();
        if !kind.contains("event-stream") {
            let (body, more) = response
                .read(LONGEST)
                .await
                .map_err(|error| self.broken(error))?;
            if more {
                return Err(too_long());
            }
            let answer: Value = serde_json::from_slice(&body).map_err(|error| {
                AskFailure::Connection(format!("the answer is not JSON: {error}"))
            })?;
            let text = turn.take(&answer);
            hearer.text(&text);
            return self.whole(turn, true);
        }
        let mut chunks = Chunks {
            is_recorded: self.settings.record_chunks,
            held: None,
            next: 0,
        };
        let mut events = Events::default();
        let mut is_done = false;
        let ended = loop {
            let piece = match response.piece().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break Ok(()),
                Err(error) => break Err(self.broken(error)),
            };
            let mut take = |data: &str| {
                is_done |= take_event(data, turn, hearer, &mut chunks);
            };
            events.push(&piece, &mut take);
            if first.is_none() && turn.has_begun() {
                *first = Some(began.elapsed());
            }
            if events.is_too_long() || turn.length() > LONGEST {
                break Err(too_long());
            }
            if is_done {
                break Ok(());
            }
        };
        if ended.is_ok() {
            events.finish(&mut |data| is_done |= take_event(data, turn, hearer, &mut chunks));
        }
        chunks.last(turn, hearer);
        ended?;
        self.whole(turn, is_done)
    }

    /// Whether an answer is whole.
    fn whole(&self, turn: &Turn, is_done: bool) -> Result<(), AskFailure> {
        if let Some(error) = &turn.error {
            return Err(AskFailure::Agent(self.clean(error)));
        }
        if is_done || turn.stop_reason.is_some() {
            return Ok(());
        }
        Err(AskFailure::Connection(format!(
            "{}: the answer broke off before its end",
            shown(&self.settings.url)
        )))
    }

    /// The call to the model, with all that is known of it.
    fn record(
        &self,
        came: &Came,
        began: Instant,
        first: Option<Duration>,
        hearer: &mut dyn Hearer,
    ) {
        let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        let mut notes = about(&came.turn);
        let model = || self.settings.model.clone();
        notes.model.get_or_insert_with(model);
        notes.usage = came.turn.usage;
        notes.duration_ms = Some(millis(began.elapsed()));
        notes.stop_reason.clone_from(&came.turn.stop_reason);
        let call = ModelCall {
            provider: Some("openai_compatible".to_owned()),
            params: Json::of(&self.settings.params).ok(),
            first_token_ms: first.map(millis),
            error: came.failure.as_ref().map(ToString::to_string),
            ..ModelCall::default()
        };
        hearer.event(Body::ModelCall(call), notes);
    }
}

/// Which call an event belongs to.
pub(super) fn about(turn: &Turn) -> Annotations {
    let mut notes = Annotations::default();
    notes.model.clone_from(&turn.model);
    notes.model_call = turn.id.clone().map(ModelCallId::from);
    notes
}

/// Takes in an event of the stream; whether it says that the stream is over.
fn take_event(data: &str, turn: &mut Turn, hearer: &mut dyn Hearer, chunks: &mut Chunks) -> bool {
    if data.trim() == "[DONE]" {
        return true;
    }
    let Ok(chunk) = serde_json::from_str::<Value>(data) else {
        let body = Body::Note(quipu_model::Note {
            kind: quipu_model::NoteKind::MalformedLine,
            text: Some("a chunk is not JSON".to_owned()),
            raw: Some(Json::string(data)),
        });
        hearer.event(body, Annotations::default());
        return false;
    };
    let text = turn.take(&chunk);
    if !text.is_empty() {
        hearer.text(&text);
    }
    chunks.take(text, &chunk, turn, hearer);
    false
}

/// Chunks on their way to the record. Each is held until the next one comes: only then it is not the last.
struct Chunks {
    is_recorded: bool,
    held: Option<Chunk>,
    next: u64,
}

impl Chunks {
    fn take(&mut self, text: String, delta: &Value, turn: &Turn, hearer: &mut dyn Hearer) {
        if !self.is_recorded {
            return;
        }
        let chunk = Chunk {
            index: self.next,
            text,
            delta: Json::of(delta).ok(),
            arrived_at: None,
            is_last: false,
            fidelity: Fidelity::AgentEmitted,
        };
        self.next += 1;
        if let Some(before) = self.held.replace(chunk) {
            hearer.event(Body::Chunk(before), about(turn));
        }
    }

    fn last(&mut self, turn: &Turn, hearer: &mut dyn Hearer) {
        if let Some(mut chunk) = self.held.take() {
            chunk.is_last = true;
            hearer.event(Body::Chunk(chunk), about(turn));
        }
    }
}

fn too_long() -> AskFailure {
    AskFailure::Connection(format!("the answer is longer than {LONGEST} bytes"))
}

/// How long the server asks to wait.
fn retry_after(response: &Response) -> Option<Duration> {
    let number = |name: &str| {
        response
            .header(name)
            .and_then(|it| it.trim().parse::<f64>().ok())
    };
    let seconds = number("retry-after-ms")
        .map(|it| it / 1000.0)
        .or_else(|| number("retry-after"));
    seconds.and_then(|it| Duration::try_from_secs_f64(it).ok())
}
