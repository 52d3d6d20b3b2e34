//! Reading what another program wants recorded.
//!
//! `docs/formats/exchange.md` describes it for people.

use quipu_model::json::Cursor;
use quipu_model::{Annotations, Draft, EventType, RunId};

use super::decode::{self, Annotated, annotate};
use super::scan::Envelope;
use super::{Fault, Warning};

/// A draft that came in as JSON, with the links that belong to the run rather than the event.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What to record.
    pub draft: Draft,
    /// The run that called this one, where the event says so.
    pub parent_run_id: Option<RunId>,
    /// Whether it named a sequence number, run or time of its own, which are the recorder's to give.
    pub stamped: bool,
}

fn words(all: &[EventType]) -> String {
    let words: Vec<&str> = all.iter().map(|word| word.as_str()).collect();
    words.join(", ")
}

/// Reads one JSON object as a draft. Strict: what cannot be recorded as it stands is refused, with
/// the reason.
///
/// The fields are those of an event (`type`, `path`, `iteration`, `payload`, `child_run_id`,
/// `parent_run_id` and the additive ones) less `seq`, `run_id` and `timestamp`.
///
/// # Errors
///
/// When the text is not JSON, or not an event inside the vocabulary.
pub fn parse_draft(text: &str, max_depth: usize) -> Result<Request, Fault> {
    let mut cursor = Cursor::new(text, max_depth);
    let envelope = Envelope::read(&mut cursor).and_then(|envelope| {
        cursor.end()?;
        Ok(envelope)
    });
    let envelope = envelope.map_err(|e| Fault::syntax(&e, max_depth))?;
    let field = |name, why: String| Fault::Field { name, why };
    let event_type = envelope
        .event_type
        .ok_or_else(|| field("type", "missing".to_owned()))?;
    let event_type = event_type
        .as_str()
        .ok_or_else(|| field("type", "not a string".to_owned()))?
        .parse::<EventType>()
        .map_err(|e| field("type", format!("{e}; types are {}", words(EventType::ALL))))?;
    let mut warnings = Vec::new();
    let body = decode::body(event_type, &envelope, &mut warnings)
        .map_err(|misfit| field("payload", misfit.0))?;
    let body = decode::carried(event_type, body, &envelope, &mut warnings);
    let place = decode::place(&envelope, &mut warnings)?;
    let mut annotations = Annotations::default();
    for (name, value) in &envelope.others {
        match annotate(&mut annotations, name, *value) {
            Annotated::Taken => {}
            Annotated::Unknown => warnings.push(Warning::UnknownField(name.to_string())),
            Annotated::Refused(name, why) => return Err(field(name, why)),
        }
    }
    // Any kind may be recorded; a path and an iteration need not be named.
    let is_fine = |warning: &Warning| {
        matches!(
            warning,
            Warning::OpenType(_) | Warning::MissingField("path" | "iteration")
        )
    };
    match warnings.iter().find(|warning| !is_fine(warning)) {
        Some(Warning::Annotation { name, why }) => Err(field(name, why.clone())),
        Some(warning) => Err(Fault::NotAnEvent(warning.to_string())),
        None => Ok(Request {
            draft: Draft {
                place,
                body,
                annotations,
            },
            parent_run_id: decode::parent_run_id(&envelope)?,
            stamped: [
                envelope.seq,
                envelope.run_id,
                envelope.timestamp,
                envelope.check,
            ]
            .iter()
            .any(Option::is_some),
        }),
    }
}
