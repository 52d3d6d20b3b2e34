//! Writing a run down as it happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Draft, Fidelity, HarnessEvent, Json, Money,
    Place, RunId, Severity, Step, StepEnd, ToolCall, ToolResult,
};
use quipu_record::{Masker, Recorder};
use quipu_store::blobs::Blobs;
use serde_json::{Value, json};

use super::state::StepState;
use super::text::first_bytes;
use super::{News, Observer, Stop};

/// Texts of messages and tools beyond this many bytes go to blobs.
const LONG: usize = 1 << 20;

/// Where a run is written down. Without a recorder, nothing is: the user said that the run goes on unrecorded.
pub(super) struct Chronicle {
    pub(super) recorder: Option<Arc<Recorder>>,
    pub(super) blobs: Option<Blobs>,
    /// What masks secrets. Blobs are not seen by the recorder, so they are masked here.
    pub(super) masker: Option<Arc<Masker>>,
    /// Told once when the run goes on without its record; `None` where it may not.
    pub(super) unrecorded: Option<Unrecorded>,
}

/// A run that goes on when it cannot be written down.
pub(super) struct Unrecorded {
    run_id: RunId,
    observer: Arc<dyn Observer>,
    has_begun: AtomicBool,
}

impl Unrecorded {
    pub(super) fn new(run_id: RunId, observer: Arc<dyn Observer>) -> Self {
        Self {
            run_id,
            observer,
            has_begun: AtomicBool::new(false),
        }
    }

    /// Says why nothing more is recorded, the first time.
    pub(super) fn begin(&self, why: &dyn std::error::Error) {
        if self.has_begun.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut text = format!("the run goes on unrecorded: {why}");
        let mut cause = why.source();
        while let Some(deeper) = cause {
            text = format!("{text}: {deeper}");
            cause = deeper.source();
        }
        let place = Place::run();
        let warning = News::Warning {
            place: &place,
            text: &text,
        };
        self.observer.tell(&self.run_id, warning);
    }
}

impl Chronicle {
    /// Records an event, and gives its number; 0 when nothing is recorded.
    pub(super) fn record(
        &self,
        place: &Place,
        body: Body,
        annotations: Annotations,
    ) -> Result<u64, Stop> {
        let Some(recorder) = self.recorder.as_ref().filter(|_| self.is_recorded()) else {
            return Ok(0);
        };
        let mut draft = Draft {
            place: place.clone(),
            body,
            annotations,
        };
        let shortened = self.shorten(&mut draft);
        let recorded = shortened.and_then(|()| recorder.record(&draft).map_err(Stop::recording));
        self.unless_unrecorded(recorded)
    }

    /// Whether events are still written down.
    pub(super) fn is_recorded(&self) -> bool {
        let unrecorded = self.unrecorded.as_ref();
        !unrecorded.is_some_and(|it| it.has_begun.load(Ordering::SeqCst))
    }

    /// A failure to write down ends the run, unless it may go on unrecorded. Half of the events would be worth less
    /// than those up to here: nothing more is written.
    pub(super) fn unless_unrecorded<T: Default>(&self, done: Result<T, Stop>) -> Result<T, Stop> {
        match (done, &self.unrecorded) {
            (Err(Stop::Broken(why)), Some(unrecorded)) => {
                unrecorded.begin(&why);
                Ok(T::default())
            }
            (done, _) => done,
        }
    }

    /// A text without the secrets that are masked.
    pub(super) fn masked(&self, text: &str) -> String {
        let Some(masker) = &self.masker else {
            return text.to_owned();
        };
        let block = Block::text(Fidelity::Router, text);
        let mut draft = Draft::new(Place::run(), Body::UserMessage(vec![block]));
        masker(&mut draft);
        let mut texts = draft.body.texts();
        texts.next().unwrap_or_default().to_owned()
    }

    /// A step begins. `input` is the hash of what it was given.
    pub(super) fn started(
        &self,
        place: &Place,
        step: Step,
        child: Option<RunId>,
        input: &str,
        discards: &[u64],
    ) -> Result<u64, Stop> {
        let mut extra = json!({ "input_sha256": input });
        if !discards.is_empty() {
            extra["discards"] = json!(discards);
        }
        let body = match child {
            Some(child_run_id) => Body::CallStarted { child_run_id, step },
            None => Body::StepStarted(step),
        };
        self.record(place, body, with_extra(&extra))
    }

    /// A step has ended.
    pub(super) fn completed(
        &self,
        place: &Place,
        step: Step,
        state: &StepState,
        end: &End,
    ) -> Result<u64, Stop> {
        let result = state
            .to_result(self.blobs.as_ref(), &|text| self.masked(text))
            .map(Some);
        let result = self.unless_unrecorded(result.map_err(Stop::storing))?;
        let Some((result, attachments)) = result else {
            return Ok(0);
        };
        let end_of_step = StepEnd {
            step,
            error: state.error.clone(),
            result: Some(result),
        };
        let body = match &end.child {
            Some(child_run_id) => Body::CallCompleted {
                child_run_id: child_run_id.clone(),
                end: end_of_step,
            },
            None => Body::StepCompleted(end_of_step),
        };
        let mut extra = serde_json::Map::new();
        if let Some(mark) = end.how.mark() {
            extra.insert(mark.to_owned(), true.into());
        }
        if !end.states.is_empty() {
            let states = end.states.iter().cloned();
            let states: serde_json::Map<_, _> =
                states.map(|(name, seq)| (name, seq.into())).collect();
            extra.insert("states".to_owned(), states.into());
        }
        if end.child_attempts > 0 {
            extra.insert("child_attempts".to_owned(), end.child_attempts.into());
        }
        let mut annotations = if extra.is_empty() {
            Annotations::default()
        } else {
            with_extra(&Value::Object(extra))
        };
        annotations.duration_ms = Some(millis(end.took));
        annotations.attachments = attachments;
        self.record(place, body, annotations)
    }

    /// The program around the models did or met something.
    pub(super) fn harness(
        &self,
        place: &Place,
        category: &str,
        name: &str,
        severity: Severity,
        attributes: &Value,
    ) -> Result<u64, Stop> {
        let event = HarnessEvent {
            category: category.to_owned(),
            name: name.to_owned(),
            severity: Some(severity),
            attributes: Json::of(attributes).ok(),
        };
        self.record(place, Body::Harness(event), Annotations::default())
    }

    /// The command that a step runs.
    pub(super) fn command(&self, place: &Place, command: &str) -> Result<u64, Stop> {
        let block = Block {
            fidelity: Fidelity::Router,
            content: Content::Command(command.to_owned()),
        };
        self.record(
            place,
            Body::UserMessage(vec![block]),
            Annotations::default(),
        )
    }

    /// Output of a command that still runs.
    pub(super) fn stream(&self, place: &Place, text: String) -> Result<u64, Stop> {
        let block = Block {
            fidelity: Fidelity::Router,
            content: Content::Stream(text),
        };
        self.record(
            place,
            Body::AssistantMessage(vec![block]),
            Annotations::default(),
        )
    }

    /// Moves long texts to blobs, so that no line of a transcript becomes too long to be read.
    fn shorten(&self, draft: &mut Draft) -> Result<(), Stop> {
        let mut attachments = Vec::new();
        let mut keep = |text: &str| -> Result<Option<String>, Stop> {
            let (true, Some(blobs)) = (text.len() > LONG, &self.blobs) else {
                return Ok(None);
            };
            let whole = self.masked(text);
            let id = blobs.put(whole.as_bytes()).map_err(Stop::storing)?;
            attachments.push(Attachment {
                mime: "text/plain".to_owned(),
                bytes: whole.len() as u64,
                sha256: id.digest().to_string(),
            });
            let start = first_bytes(text, LONG);
            Ok(Some(format!(
                "{start}… ({} bytes; the whole text is a blob)",
                text.len()
            )))
        };
        match &mut draft.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                for block in blocks {
                    match &mut block.content {
                        Content::Text(text)
                        | Content::Thinking(text)
                        | Content::Command(text)
                        | Content::Stream(text) => {
                            if let Some(short) = keep(text)? {
                                *text = short;
                            }
                        }
                        Content::ToolUse { input: json, .. }
                        | Content::ToolResult { content: json, .. } => {
                            shorten_json(json, &mut keep)?;
                        }
                        Content::Unknown(_) => {}
                    }
                }
            }
            Body::ToolCall(ToolCall { input, .. }) => shorten_json(input, &mut keep)?,
            Body::ToolResult(ToolResult { input, output, .. }) => {
                shorten_json(input, &mut keep)?;
                shorten_json(output, &mut keep)?;
            }
            _ => {}
        }
        if !attachments.is_empty() {
            draft.annotations.attachments.append(&mut attachments);
        }
        Ok(())
    }
}

fn shorten_json(
    json: &mut Option<Json>,
    keep: &mut dyn FnMut(&str) -> Result<Option<String>, Stop>,
) -> Result<(), Stop> {
    if let Some(short) = json.as_ref().map_or(Ok(None), |json| keep(json.get()))? {
        *json = Some(Json::string(&short));
    }
    Ok(())
}

/// What is known when a step has ended, beside its state.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) child: Option<RunId>,
    pub(super) took: Duration,
    pub(super) how: HowEnded,
    /// What the steps inside of it left behind: their names, and the events that say it.
    pub(super) states: Vec<(String, u64)>,
    /// The highest number of an attempt at a step inside this one.
    pub(super) child_attempts: u64,
}

/// How a step came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum HowEnded {
    /// By itself.
    #[default]
    ByItself,
    /// It failed and is tried again.
    Retrying,
    /// It failed, and the run goes on as after a success.
    Handled,
    /// It was cut off: cancelled, paused, out of money.
    Stopped,
    /// The process ended before the step did: the next execution says so.
    Interrupted,
}

impl HowEnded {
    /// The word for it in the transcript.
    fn mark(self) -> Option<&'static str> {
        match self {
            Self::ByItself => None,
            Self::Retrying => Some("retrying"),
            Self::Handled => Some("handled"),
            Self::Stopped => Some("stopped"),
            Self::Interrupted => Some("interrupted"),
        }
    }
}

pub(super) fn with_extra(extra: &Value) -> Annotations {
    let mut annotations = Annotations::default();
    annotations.extra = Json::of(extra).ok();
    annotations
}

pub(super) fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// A sum of dollars as a number of JSON would be too inexact; a text is not.
pub(super) fn dollars(money: Money) -> String {
    money.to_string()
}
