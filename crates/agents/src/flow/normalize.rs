//! What a line means.

use quipu_formats::flow::receipt::{self, Document, Receipt};
use quipu_formats::flow::shape::{Content, Data, Line, Shape, Statement, Transcript, Who};
use quipu_model::NoteKind;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::session::learn;
use crate::{Entry, Origin, Out, Reader, Session, Text, Tokens, Value, What};

/// Reads the transcript of one step.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Step {
    session: Session,
    lines: Transcript,
    model: Option<String>,
    /// What the transcript itself says that the step took.
    usage: Option<Tokens>,
    cost: Option<Cost>,
    stub: bool,
    /// Whether what it took was given.
    told: bool,
}

impl Step {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let mut above = origin.above();
        let stem = origin.stem().unwrap_or_default();
        let id = match (above.next(), above.next(), above.next()) {
            (Some("llm"), Some(flow), Some(run)) => format!("{run}/{flow}/{stem}"),
            _ => stem.to_owned(),
        };
        Self {
            session: Session {
                id: Some(id).filter(|id| !id.is_empty()),
                ..Session::default()
            },
            lines: Transcript::default(),
            model: None,
            usage: None,
            cost: None,
            stub: false,
            told: false,
        }
    }

    /// Gives what a line says.
    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let line = self.lines.read(record, out.position().line);
        self.stub |= line.shape.is_some_and(Shape::is_stub);
        if let Some(model) = &line.model {
            self.model = Some(model.to_string());
        }
        self.usage = line.usage.map(Tokens::from).or(self.usage);
        let cost = line.cost.map(|cost| Cost::from(cost.atto()));
        self.cost = cost.or(self.cost);
        let Line {
            shape,
            at,
            said,
            model,
            keep,
            ..
        } = line;
        if shape.is_none() {
            let kind = record
                .text("type")
                .or(record.text("role"))
                .unwrap_or_default();
            out.unknown_type("line", &kind);
        }
        let at = at.map(|time| time.at);
        for said in said {
            let mut entry = entry(said);
            entry.at = entry.at.or(at);
            entry.model.clone_from(&model);
            entry.synthetic = self.stub;
            out.push(entry);
        }
        if let Some(kind) = keep {
            out.push(Entry {
                at,
                ..Entry::keep(kind, record)
            });
        }
    }

    /// Gives what the step took, from its receipt where there is one.
    fn end(&mut self, receipt: Option<(&Receipt, Node<'_>)>, out: &mut Out<'_>) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let own = self.usage.map(Into::<quipu_model::Usage>::into);
        let told = receipt.and_then(|(receipt, _)| receipt.tokens.usage());
        // Receipts of streams leave out what was cached; the stream itself does not.
        let usage = match (told, own) {
            (Some(told), Some(own)) if own.total() > told.total() => Some(own),
            (told, own) => told.or(own),
        };
        if usage.is_none() && receipt.is_none() {
            return;
        }
        self.session.vendor_usage = usage.map(Into::into);
        let named = receipt.and_then(|(receipt, _)| receipt.model.as_deref());
        let model = self.model.as_deref().or(named);
        let when = receipt.and_then(|(receipt, _)| receipt.completed_at);
        let failed = receipt.is_some_and(|(receipt, _)| receipt.succeeded() == Some(false));
        let kind = if failed {
            NoteKind::Error
        } else {
            NoteKind::ModelCall
        };
        out.push(Entry {
            at: when.map(|time| time.at),
            model: model.map(Into::into),
            usage,
            duration_ms: receipt.and_then(|(receipt, _)| receipt.duration_ms),
            synthetic: self.stub,
            ..Entry::new(What::Note {
                kind,
                text: receipt
                    .and_then(|(receipt, _)| receipt.error.as_deref())
                    .map(Text::from),
                raw: receipt.map(|(_, document)| document.into()),
            })
        });
    }
}

fn entry(said: Statement<'_>) -> Entry<'_> {
    match said {
        Statement::Message { who, content, .. } => Entry::new(message(who, content)),
        Statement::Call { name, id, input } => Entry::new(What::Call {
            name,
            id,
            input: input.map(value),
        }),
        Statement::Result {
            name,
            id,
            output,
            error,
            status,
            at,
            duration_ms,
        } => Entry {
            at,
            duration_ms,
            status,
            ..Entry::new(What::Result {
                name,
                id,
                output: output.map(value),
                error: error.map(Text::from),
            })
        },
        Statement::Note { kind, text } => Entry::new(What::Note {
            kind,
            text: text.map(Text::from),
            raw: None,
        }),
    }
}

fn message(who: Who, content: Content<'_>) -> What<'_> {
    let text = match content {
        Content::Thinking(text) if who == Who::Assistant => return What::Reasoning(text.into()),
        Content::Text(text)
        | Content::Thinking(text)
        | Content::Command(text)
        | Content::Stream(text) => text,
        Content::ToolUse { name, id, input } => {
            return What::Call {
                name,
                id,
                input: input.map(value),
            };
        }
        Content::ToolResult { id, content } => {
            return What::Result {
                name: "".into(),
                id,
                output: content.map(value),
                error: None,
            };
        }
    };
    match who {
        Who::System => What::System(text.into()),
        Who::User => What::User(text.into()),
        Who::Assistant => What::Assistant(text.into()),
    }
}

fn value(data: Data<'_>) -> Value<'_> {
    match data {
        Data::Raw(raw) => Value::Raw(raw),
        Data::Text(text) => Value::Text(text.into()),
        Data::Made(json) => Value::Owned(json),
    }
}

impl Reader for Step {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.line(record, out);
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, out: &mut Out<'_>) {
        let Document::Step(receipt) = receipt::classify(document) else {
            return;
        };
        self.stub |= receipt.is_stub();
        let some = |text: &Option<String>| text.clone().map(Into::into);
        learn(&mut self.session.cwd, || some(&receipt.workspace_root));
        learn(&mut self.session.branch, || some(&receipt.git_branch));
        learn(&mut self.session.commit, || some(&receipt.git_sha));
        learn(&mut self.session.title, || {
            let (flow, step) = (receipt.flow_key.as_deref()?, receipt.step_id.as_deref()?);
            let agent = receipt.agent_key.as_deref()?;
            Some(format!("{flow}: {step} ({agent})").into())
        });
        let cost = receipt.cost_usd.map(|cost| cost.to_string());
        let own = self.cost.map(Cost::to_text);
        self.session.vendor_cost = cost.or(own);
        self.end(Some((&receipt, document)), out);
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        if self.session.vendor_cost.is_none() {
            self.session.vendor_cost = self.cost.map(Cost::to_text);
        }
        self.end(None, out);
    }

    crate::state::keeps_session!();
}
