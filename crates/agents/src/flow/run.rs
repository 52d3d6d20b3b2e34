//! Reads the records of a run directory.

use std::borrow::Cow;

use quipu_formats::flow::record::Record;
use quipu_formats::flow::{Became, Teller, Told};
use quipu_model::json::Node;
use quipu_model::{Block, Body, Content, Json, Note, NoteKind, Timestamp, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

use crate::entry::InRun;
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What};

/// The agent of runs that this program recorded.
const RECORDED: &str = "quipu";

/// Reads a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    session: Session,
    /// What the run is called where it says nothing: the name of its directory.
    name: Option<String>,
    /// What was told so far, saved as JSON.
    #[serde(with = "as_json")]
    teller: Teller,
}

impl Run {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let name = origin.path.file_name().and_then(|name| name.to_str());
        Self {
            session: Session::default(),
            name: name.map(str::to_owned),
            teller: Teller::default(),
        }
    }

    /// Takes in what is known of the run before anything of it is told.
    fn learn(&mut self, record: &Record<'_>, out: &mut Out<'_>) {
        match record {
            Record::Run(facts) => {
                let session = &mut self.session;
                session.id = Some(facts.run_id.clone()).filter(|id| !id.is_empty());
                session.agent.clone_from(&facts.agent);
                // These files were made of a transcript. Where that is known as well, it is the better account.
                session.reconstructed = facts.agent.as_deref() == Some(RECORDED);
                session.version.clone_from(&facts.agent_version);
                session.title = facts.title.clone().or_else(|| self.name.clone());
                session.cwd.clone_from(&facts.cwd);
                session.branch.clone_from(&facts.branch);
                session.commit.clone_from(&facts.commit);
                session.parent.clone_from(&facts.parent_run_id);
                session.started_at = facts.started_at.map(Timestamp::as_millisecond);
            }
            Record::Begin(execution) => {
                // By this a copy of the directory is known to be one.
                let run = self.session.id.as_deref().unwrap_or_default();
                let (place, agent) = (execution.place(), &execution.agent);
                let at = execution.started_at.unwrap_or_default();
                let (path, iteration) = (&place.path, place.iteration());
                let step = &execution.step;
                let unit = match execution.path {
                    // Each execution of a recorded run is a step of its own.
                    Some(_) => format!("flow-run:{run}:{step}:{agent}:{at}"),
                    None => format!("flow-run:{run}:{path}:{iteration}:{agent}:{at}"),
                };
                out.ledger().unit(&unit);
            }
            _ => {}
        }
    }
}

impl Reader for Run {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let Some(read) = Record::decode(record) else {
            return;
        };
        self.learn(&read, out);
        let (_, malformed) = self.teller.journal_strays();
        let became = self.teller.take(read, &mut |told| out.push(entry(told)));
        match became {
            Became::Events => {}
            Became::Blank => out.skip(Dropped::Empty),
            Became::Piece => out.skip(Dropped::StreamDelta),
            Became::Known => out.skip(Dropped::RepeatedChannel),
            Became::Unknown => {
                let line = record.get("json");
                let of = |key: &str| line?.text(key);
                let kind = of("kind").or_else(|| of("event")).unwrap_or_default();
                out.unknown_type("journal", &kind);
            }
        }
        if self.teller.journal_strays().1 > malformed {
            out.unknown_type("journal", "(not an event)");
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.teller.finish(&mut |told| out.push(entry(told)));
    }

    crate::state::keeps_session!();
}

/// What is told, as an entry.
fn entry(told: Told) -> Entry<'static> {
    let Told {
        place,
        at,
        body,
        notes,
    } = told;
    let (what, body) = what(body);
    Entry {
        at,
        native_id: notes.native_id.map(Into::into),
        subagent: notes.subagent_id.map(Into::into),
        model: notes.model.map(Cow::Owned),
        usage: notes.usage,
        cost: notes.cost,
        duration_ms: notes.duration_ms,
        status: notes.status,
        as_told: true,
        synthetic: notes.flags.synthetic,
        in_run: Some(Box::new(InRun {
            place,
            body,
            source: notes.source,
        })),
        ..Entry::new(what)
    }
}

/// What happened, and its body where that says more.
fn what(body: Body) -> (What<'static>, Option<Body>) {
    let said = match &body {
        Body::UserMessage(blocks) => message(blocks, What::User),
        Body::AssistantMessage(blocks) => message(blocks, What::Assistant),
        Body::SystemMessage(blocks) => message(blocks, What::System),
        _ => None,
    };
    if let Some((what, is_whole)) = said {
        return (what, (!is_whole).then_some(body));
    }
    match body {
        Body::ToolCall(ToolCall {
            name,
            call_id,
            input,
            ..
        }) => {
            let what = What::Call {
                name: name.into(),
                id: call_id.into(),
                input: input.map(Value::Owned),
            };
            (what, None)
        }
        Body::ToolResult(ToolResult {
            name,
            call_id,
            output,
            error,
            ..
        }) => {
            let what = What::Result {
                name: name.into(),
                id: call_id.into(),
                output: output.map(Value::Owned),
                error: error.map(Text::from),
            };
            (what, None)
        }
        Body::Note(Note { kind, text, raw }) => {
            let what = What::Note {
                kind,
                text: text.map(Text::from),
                raw: raw.map(Value::Owned),
            };
            (what, None)
        }
        // A step or the run began or ended.
        body => {
            let (kind, text) = mark(&body);
            let what = What::Note {
                kind,
                text: Some(text.into()),
                raw: None,
            };
            (what, Some(body))
        }
    }
}

/// A message of one block, and whether its text is all of it.
fn message(
    blocks: &[Block],
    said: fn(Text<'static>) -> What<'static>,
) -> Option<(What<'static>, bool)> {
    let [block] = blocks else {
        return None;
    };
    let text = |text: &String| Text::from(text.clone());
    Some(match &block.content {
        Content::Text(said_text) => (said(text(said_text)), true),
        Content::Thinking(thought) => {
            let what = said(Text::EMPTY);
            match what {
                What::Assistant(_) => (What::Reasoning(text(thought)), true),
                _ => (said(text(thought)), false),
            }
        }
        Content::Command(said_text) | Content::Stream(said_text) => (said(text(said_text)), false),
        Content::ToolUse { name, id, input } => {
            let what = What::Call {
                name: name.clone().into(),
                id: id.clone().into(),
                input: input.clone().map(Value::Owned),
            };
            (what, false)
        }
        Content::ToolResult { id, content } => {
            let output = content.clone().filter(|json: &Json| !json.is_null());
            let what = What::Result {
                name: Cow::Borrowed(""),
                id: id.clone().into(),
                output: output.map(Value::Owned),
                error: None,
            };
            (what, false)
        }
        Content::Unknown(json) => (said(Text::from(json.get().to_owned())), false),
    })
}

/// What a beginning or an end says to a person.
fn mark(body: &Body) -> (NoteKind, String) {
    let word = body.type_word();
    let (kind, name, error) = match body {
        Body::StepStarted(step) => (NoteKind::Turn, Some(&step.name), None),
        Body::StepCompleted(end) => (NoteKind::Turn, Some(&end.step.name), end.error.as_ref()),
        Body::RunStarted(step) => (NoteKind::Session, step.as_ref().map(|it| &it.name), None),
        Body::RunCompleted(end) => {
            let error = end.as_ref().and_then(|end| end.error.as_ref());
            (NoteKind::Session, None, error)
        }
        _ => (NoteKind::Session, None, None),
    };
    let kind = if error.is_some() {
        NoteKind::Error
    } else {
        kind
    };
    let mut text = word.to_owned();
    for more in [name, error].into_iter().flatten() {
        text.push_str(": ");
        text.push_str(more);
    }
    (kind, text)
}

/// The state of a teller, as a text of JSON: it leaves out what is not set, and what this is kept in cannot.
mod as_json {
    use quipu_formats::flow::Teller;
    use serde::{Deserialize as _, Deserializer, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(teller: &Teller, to: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(teller).map_err(ser::Error::custom)?;
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Teller, D::Error> {
        let text = String::deserialize(from)?;
        serde_json::from_str(&text).map_err(de::Error::custom)
    }
}
