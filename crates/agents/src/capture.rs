//! What recorded exchanges with a model's interface have in common, whichever interface it is.
//!
//! A capture is the body of a request, the body of a response, a stream of events, or pairs of requests
//! and responses. The families that read them share what is here; what the bodies mean is theirs.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node, Tape};
use quipu_model::{Attachment, Json, NoteKind};
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::history::{Prefix, Turn};
use crate::{Dropped, Entry, Out, Text, Value, What, hash};

/// The deepest nesting of JSON that stands inside a string.
const DEPTH: usize = 128;

/// A request and its response, when a record is a pair of them.
pub(crate) struct Pair<'a> {
    pub(crate) request: Option<Node<'a>>,
    pub(crate) response: Option<Node<'a>>,
}

impl<'a> Pair<'a> {
    pub(crate) fn of(record: Node<'a>) -> Option<Self> {
        let part = |key: &str| {
            let part = record.get(key).filter(|part| !part.is_null())?;
            Some(part.get("body").unwrap_or(part))
        };
        let pair = Self {
            request: part("request"),
            response: part("response"),
        };
        let any = pair.request.is_some() || pair.response.is_some();
        (any && record.get("type").is_none()).then_some(pair)
    }
}

/// An interface as it goes over the wire: requests, and responses whole or in chunks.
pub(crate) trait Wire {
    /// Reads one payload. When nothing comes of it, says why.
    fn payload(&mut self, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped>;

    /// The response is over.
    fn close(&mut self, out: &mut Out<'_>);

    /// Whether a response ends with the pair it stands in.
    fn ends_with(_pair: &Pair<'_>, _record: Node<'_>) -> bool {
        true
    }
}

/// Reads one record: a payload, or a request and what was answered.
pub(crate) fn one<W: Wire>(wire: &mut W, record: Node<'_>, out: &mut Out<'_>) {
    let mut nothing = None;
    match Pair::of(record) {
        Some(pair) => {
            if let Some(request) = pair.request {
                nothing = wire.payload(request, out);
            }
            if let Some(response) = pair.response {
                payloads(response, |payload| {
                    nothing = wire.payload(payload, out).or(nothing);
                });
                if W::ends_with(&pair, record) {
                    wire.close(out);
                }
            }
        }
        None => nothing = wire.payload(record, out),
    }
    skip(nothing, out);
}

/// Hands over each payload of a recorded response: the body itself, the items of a list of chunks, or
/// what stands in a text, be it server-sent events or a body.
pub(crate) fn payloads(response: Node<'_>, mut take: impl FnMut(Node<'_>)) {
    match response.kind() {
        Kind::List => response.items().for_each(take),
        Kind::String => {
            let text = response.as_str().unwrap_or_default();
            let mut tape = Tape::new();
            if let Ok(node) = tape.read(&text, DEPTH) {
                return take(node);
            }
            for line in text.lines() {
                if let Some(data) = line.strip_prefix("data:")
                    && let Ok(node) = tape.read(data, DEPTH)
                {
                    take(node);
                }
            }
        }
        _ => take(response),
    }
}

/// Reads a record that is at hand, or else the records of a document.
pub(crate) fn records(
    record: Node<'_>,
    out: &mut Out<'_>,
    mut read: impl FnMut(Node<'_>, &mut Out<'_>),
) {
    if out.in_record() {
        read(record, out);
    } else if record.kind() == Kind::List {
        for item in record.items() {
            out.within(item, |out, item| read(item, out));
        }
    } else {
        out.within(record, |out, record| read(record, out));
    }
}

/// What was asked so far, so that only what is new is taken from the next request.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Requests {
    prefix: Prefix,
    system: Option<u64>,
    settings: Option<u64>,
}

impl Requests {
    /// The index of the first message that is new.
    pub(crate) fn advance(&mut self, messages: Node<'_>) -> usize {
        let history: Vec<Turn> = messages.items().map(Turn::of).collect();
        self.prefix.advance(&history)
    }

    /// A response was read.
    pub(crate) fn answered(&mut self) {
        self.prefix.answered();
    }

    /// Whether a system prompt is another than that of the last request.
    pub(crate) fn is_new_system(&mut self, system: Node<'_>) -> bool {
        let hash = hash(system.raw().get().as_bytes());
        self.system.replace(hash) != Some(hash)
    }

    /// The settings of a request, tools among them, when they changed.
    pub(crate) fn settings(&mut self, request: Node<'_>, other: &[&str], out: &mut Out<'_>) {
        let settings = object(
            request
                .fields()
                .filter(|(key, value)| !value.is_null() && !other.iter().any(|o| key.is(o)))
                .map(|(key, value)| (key.raw().get(), value.raw().get())),
        );
        let Some(settings) = settings else {
            return;
        };
        let hash = hash(settings.get().as_bytes());
        if self.settings.replace(hash) != Some(hash) {
            out.push(Entry {
                model: request.text("model"),
                ..Entry::new(What::Note {
                    kind: NoteKind::Context,
                    text: None,
                    raw: Some(Value::Owned(settings)),
                })
            });
        }
    }
}

/// An object made of keys and values as they are written; `None` when there are none.
pub(crate) fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Json> {
    let mut made = String::from("{");
    for (key, value) in fields {
        if made.len() > 1 {
            made.push(',');
        }
        made.push_str(key);
        made.push(':');
        made.push_str(value);
    }
    made.push('}');
    (made.len() > 2).then(|| Json::parse(&made).ok()).flatten()
}

/// The fields of these objects that are among `keys` and say something, as one object.
pub(crate) fn pick(from: &[Option<Node<'_>>], keys: &[&str]) -> Option<Json> {
    object(
        from.iter()
            .flatten()
            .flat_map(|node| node.fields())
            .filter(|(key, value)| !value.is_null() && keys.iter().any(|k| key.is(k)))
            .map(|(key, value)| (key.raw().get(), value.raw().get())),
    )
}

/// An object with some of its fields replaced, or added.
pub(crate) fn replaced(node: Node<'_>, with: &[(&str, Json)]) -> String {
    let mut made = String::from("{");
    let mut put = |key: &str, value: &str| {
        if made.len() > 1 {
            made.push(',');
        }
        made.push_str(key);
        made.push(':');
        made.push_str(value);
    };
    for (key, value) in node.fields() {
        let new = with.iter().find(|(name, _)| key.is(name));
        put(
            key.raw().get(),
            new.map_or(value.raw().get(), |(_, json)| json.get()),
        );
    }
    for (name, json) in with {
        if node.get(name).is_none() {
            put(Json::string(name).get(), json.get());
        }
    }
    made.push('}');
    made
}

/// Arguments that stand in a string: structured where they are an object or a list, nothing where there
/// are none, and otherwise the string, such as one that was cut off.
pub(crate) fn arguments<'a>(
    text: Text<'a>,
    out: &mut Out<'_>,
    attachments: &mut Vec<Attachment>,
) -> Value<'a> {
    let structured = {
        let read = text.read();
        let mut tape = Tape::new();
        if read.trim().is_empty() {
            Some(empty())
        } else {
            match tape.read(&read, DEPTH) {
                Ok(node) if matches!(node.kind(), Kind::Object | Kind::List) => {
                    Some(out.value(node, attachments).to_json())
                }
                _ => None,
            }
        }
    };
    structured.map_or(Value::Text(text), Value::Owned)
}

/// `{}`
pub(crate) fn empty() -> Json {
    Json::parse("{}").unwrap_or_else(|_| Json::null())
}

/// An error of an interface: `{"error":{"message":…}}`, or the message alone.
pub(crate) fn error(record: Node<'_>) -> Entry<'_> {
    let said = record.get("error").unwrap_or(record);
    let text = Text::of(said).or_else(|| said.get("message").and_then(Text::of));
    Entry::new(What::Note {
        kind: NoteKind::Error,
        text,
        raw: Some(record.into()),
    })
}

/// The end of a call to a model: what it cost, and why it ended.
pub(crate) fn ended<'a>(
    kind: NoteKind,
    why: Option<impl Into<Text<'a>>>,
    more: Option<Json>,
) -> Entry<'a> {
    Entry::new(What::Note {
        kind,
        text: why.map(Into::into),
        raw: more.map(Value::Owned),
    })
}

/// Skips the record at hand if nothing came of it and a reason is known.
pub(crate) fn skip(why: Option<Dropped>, out: &mut Out<'_>) {
    if let Some(why) = why {
        out.skip(why);
    }
}

/// An id, unless it is empty.
pub(crate) fn id<'a>(node: Node<'a>, key: &str) -> Option<Cow<'a, str>> {
    node.text(key).filter(|id| !id.is_empty())
}

/// A sum of money that is counted in units of 1e-10 dollars.
pub(crate) fn ticks(node: Node<'_>) -> Option<Cost> {
    Cost::parse(&format!("{}e-10", node.as_u64()?))
}

/// Whether what a provider does with the web is a search. Only these are paid for; opening a page it found is not.
pub(crate) fn is_search(action: Node<'_>) -> bool {
    action.get("type").is_none_or(|kind| kind.is("search"))
}

#[cfg(test)]
mod tests {
    use quipu_model::json::Tape;

    use crate::cost::Cost;

    #[test]
    fn dollars_are_exact() {
        for (ticks, dollars) in [
            ("0", Some("0")),
            ("1", Some("0.0000000001")),
            ("2842748000", Some("0.2842748")),
            ("10000000000", Some("1")),
            ("123000000000", Some("12.3")),
            ("1.5", None),
            ("\"1\"", None),
        ] {
            let mut tape = Tape::new();
            let cost = super::ticks(tape.read(ticks, 8).unwrap());
            assert_eq!(cost.map(Cost::to_text).as_deref(), dollars);
        }
    }
}
