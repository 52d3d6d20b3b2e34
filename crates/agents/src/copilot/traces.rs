//! The traces of Visual Studio: spans of OpenTelemetry, a batch a line.
//!
//! A span is written when it ends. What was said is in them only where that was asked for; tools are there
//! with what they took and gave.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use crate::gemini::parts;
use crate::session::{learn, update};
use crate::{Entry, Origin, Out, Reader, Session, Text, Value, What, capture, time};

/// Reads the traces.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Traces {
    session: Session,
}

impl Traces {
    /// A conversation may go on in another file, and a file may hold several: the file is the session.
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: origin.stem().map(str::to_owned),
                ..Session::default()
            },
        }
    }
}

/// The value of an attribute, whichever type it has.
fn attribute<'a>(attributes: Option<Node<'a>>, key: &str) -> Option<Node<'a>> {
    let mut items = attributes.into_iter().flat_map(Node::items);
    let found = items.find(|item| item.get("key").is_some_and(|name| name.is(key)))?;
    let (_, value) = found.get("value")?.fields().next()?;
    Some(value)
}

/// A number, which may be written as a text.
fn number(node: Node<'_>) -> Option<u64> {
    node.as_u64().or_else(|| node.as_str()?.parse().ok())
}

/// The first of the reasons why a call ended.
fn finished(reasons: Option<Node<'_>>) -> Option<Cow<'_, str>> {
    let first = reasons?.get("values")?.items().next()?;
    first.text("stringValue")
}

/// A time in nanoseconds, which is written as a text.
fn moment(span: Node<'_>, key: &str) -> Option<Timestamp> {
    let count = number(span.get(key)?)?;
    time::from_count(i64::try_from(count).ok()?)
}

/// What a span says of all entries it becomes.
fn common<'a>(span: Node<'a>, entry: Entry<'a>) -> Entry<'a> {
    Entry {
        at: moment(span, "startTimeUnixNano"),
        native_id: span.text("spanId"),
        parent_id: span.text("parentSpanId").filter(|id| !id.is_empty()),
        ..entry
    }
}

fn span(span: Node<'_>, out: &mut Out<'_>) {
    let attributes = span.get("attributes");
    let field = |key: &str| attribute(attributes, key);
    let text = |key: &str| field(key).and_then(|node| node.as_str());
    let (from, to) = (
        moment(span, "startTimeUnixNano"),
        moment(span, "endTimeUnixNano"),
    );
    let duration_ms = from.zip(to).and_then(|(from, to)| {
        u64::try_from(to.as_millisecond().checked_sub(from.as_millisecond())?).ok()
    });
    let id = span.text("spanId");
    let operation = text("gen_ai.operation.name").unwrap_or_default();
    let model = text("gen_ai.response.model").or(text("gen_ai.request.model"));
    match &*operation {
        "execute_tool" => {
            let call = text("gen_ai.tool.call.id")
                .or(id.clone())
                .unwrap_or_default();
            let name = text("gen_ai.tool.name").unwrap_or_default();
            let mut attachments = Vec::new();
            let input = field("gen_ai.tool.call.arguments").map(|input| match Text::of(input) {
                Some(said) => capture::arguments(said, out, &mut attachments),
                None => out.value(input, &mut attachments),
            });
            let asked = Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: name.clone(),
                    id: call.clone(),
                    input,
                })
            };
            out.push(common(span, asked));
            let mut attachments = Vec::new();
            let output = field("gen_ai.tool.call.result")
                .map(|output| parts::value(output, &mut attachments, out));
            // 2 is an error, as the protocol counts them.
            let failed = span.path(&["status", "code"]).and_then(number) == Some(2)
                || field("error.type").is_some();
            let why = span.path(&["status", "message"]).and_then(Text::of);
            let (output, why) = match output {
                Some(Value::Text(said)) if failed && why.is_none() => (None, Some(said)),
                output => (output, why.filter(|_| failed)),
            };
            let error = why.or(failed.then_some(Text::Plain(Cow::Borrowed("failed"))));
            let gave = Entry {
                duration_ms,
                attachments,
                status: Some(if failed { Status::Error } else { Status::Ok }),
                ..Entry::new(What::Result {
                    name,
                    id: call,
                    output,
                    error,
                })
            };
            out.push(Entry {
                at: to,
                ..common(span, gave)
            });
        }
        "invoke_agent" | "chat" | "text_completion" | "generate_content" => {
            let count = |key: &str| field(key).and_then(number);
            let read = count("gen_ai.usage.cache_read.input_tokens");
            let write = count("gen_ai.usage.cache_creation.input_tokens");
            let usage = Usage {
                input: count("gen_ai.usage.input_tokens").map(|input| {
                    input
                        .saturating_sub(read.unwrap_or(0))
                        .saturating_sub(write.unwrap_or(0))
                }),
                cache_read: read,
                cache_write: write,
                cache_write_1h: None,
                output: count("gen_ai.usage.output_tokens"),
                reasoning: count("gen_ai.usage.reasoning.output_tokens"),
            };
            // What an agent used is what its calls used.
            let is_call = operation != "invoke_agent";
            let kind = if is_call {
                NoteKind::ModelCall
            } else {
                NoteKind::Turn
            };
            let entry = Entry {
                duration_ms,
                model,
                model_call: id.filter(|_| is_call),
                stop_reason: finished(field("gen_ai.response.finish_reasons")),
                usage: Some(usage).filter(|usage| is_call && !usage.is_empty()),
                ..crate::blocks::kept(kind, span, out)
            };
            out.push(common(span, entry));
        }
        other => {
            out.unknown_type("span", other);
            out.push(common(span, Entry::keep(NoteKind::UnknownRecord, span)));
        }
    }
}

impl Reader for Traces {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("traces", record, &["resourceSpans"]);
        for resource in record
            .get("resourceSpans")
            .into_iter()
            .flat_map(Node::items)
        {
            let attributes = resource.path(&["resource", "attributes"]);
            let version = attribute(attributes, "service.version");
            update(&mut self.session.version, version.and_then(|v| v.as_str()));
            let scopes = resource.get("scopeSpans").into_iter().flat_map(Node::items);
            for one in scopes
                .filter_map(|scope| scope.get("spans"))
                .flat_map(Node::items)
            {
                learn(&mut self.session.cwd, || {
                    attribute(one.get("attributes"), "copilot_chat.workspace.path")?.as_str()
                });
                span(one, out);
            }
        }
    }

    crate::state::keeps_session!();
}
