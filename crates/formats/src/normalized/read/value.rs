//! Small values: words, ids, counts, sums.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, Money, RunId, Source, Usage};

use crate::normalized::{Commitment, Redaction};

/// Puts a value that could be read where it goes. Whether it could.
pub(super) fn set<T>(to: &mut impl Slot<T>, value: Option<T>) -> bool {
    let read = value.is_some();
    if let Some(value) = value {
        to.put(value);
    }
    read
}

/// Where something goes that was read.
pub(super) trait Slot<T> {
    fn put(&mut self, value: T);
}

impl<T> Slot<T> for Option<T> {
    fn put(&mut self, value: T) {
        *self = Some(value);
    }
}

impl Slot<Self> for String {
    fn put(&mut self, value: Self) {
        *self = value;
    }
}

pub(super) fn set_text<T>(to: &mut Option<T>, node: Node<'_>) -> bool
where
    T: for<'a> From<Cow<'a, str>>,
{
    set(to, node.as_str().map(T::from))
}

pub(super) fn set_mark(to: &mut bool, node: Node<'_>) -> bool {
    *to = node.as_bool() == Some(true);
    node.kind() == Kind::Bool
}

pub(super) fn of_kind(node: Node<'_>, kind: Kind) -> Option<Node<'_>> {
    Some(node).filter(|node| node.kind() == kind)
}

pub(super) fn word<T>(node: Node<'_>, look_up: fn(&str) -> Option<T>) -> Option<T> {
    look_up(&node.as_str()?)
}

pub(super) fn run_id(node: Node<'_>) -> Option<RunId> {
    RunId::new(&node.as_str()?).ok()
}

/// An exact sum of dollars.
pub(super) fn money(node: Node<'_>) -> Option<Money> {
    of_kind(node, Kind::Number).and_then(|node| Money::parse(node.raw().get()))
}

/// The bucket of tokens of this name.
pub(super) fn bucket<'u>(usage: &'u mut Usage, key: &str) -> Option<&'u mut Option<u64>> {
    Some(match key {
        "input" => &mut usage.input,
        "output" => &mut usage.output,
        "cacheRead" => &mut usage.cache_read,
        "cacheWrite" => &mut usage.cache_write,
        "cacheWrite1h" => &mut usage.cache_write_1h,
        "reasoning" => &mut usage.reasoning,
        _ => return None,
    })
}

/// Token counts; `None` when there is anything else.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let mut usage = Usage::default();
    for (key, value) in of_kind(node, Kind::Object)?.fields() {
        *bucket(&mut usage, &key.to_text_lossy())? = Some(value.as_u64()?);
    }
    Some(usage)
}

/// Where something was read. It is the document's own log where no file is named.
pub(super) fn source(node: Node<'_>, log: Option<&str>) -> Option<Source> {
    let fields = of_kind(node, Kind::Object)?.fields().count();
    let file = node.get("file");
    let is_all = fields == 2 + usize::from(file.is_some());
    is_all.then_some(Source {
        file: match file {
            Some(file) => file.as_str()?.into_owned(),
            None => log?.to_owned(),
        },
        offset: node.get("offset")?.as_u64()?,
        line: node.get("line")?.as_u64()?,
    })
}

pub(super) fn attachments(node: Node<'_>) -> Option<Vec<Attachment>> {
    of_kind(node, Kind::List)?
        .items()
        .map(|node| {
            let attachment = Attachment {
                mime: node.text("mime")?.into_owned(),
                bytes: node.get("bytes")?.as_u64()?,
                sha256: node.text("sha256")?.into_owned(),
            };
            (node.fields().count() == 3).then_some(attachment)
        })
        .collect()
}

pub(super) fn redactions(node: Node<'_>) -> Option<Vec<Redaction>> {
    of_kind(node, Kind::List)?.items().map(redaction).collect()
}

/// What was removed; `None` when there is anything in it that is not known.
fn redaction(node: Node<'_>) -> Option<Redaction> {
    let text = |key: &str| node.text(key).map(Cow::into_owned);
    let count = |key: &str| match node.get(key) {
        Some(count) => count.as_u64().map(Some),
        None => Some(None),
    };
    let commitment = match node.get("commitment") {
        Some(commitment) => Some(commitment.as_str()?.into_owned()),
        None => None,
    };
    let redaction = Redaction {
        field: text("field")?,
        rule_id: text("ruleId")?,
        kind: text("type")?,
        placeholder: text("placeholder")?,
        start: count("start")?,
        end: count("end")?,
        commitment,
    };
    let beside = [
        redaction.start.is_some(),
        redaction.end.is_some(),
        redaction.commitment.is_some(),
    ];
    let known = 4 + beside.into_iter().filter(|there| *there).count();
    (node.fields().count() == known).then_some(redaction)
}

/// A hash tree; `None` when there is anything in it that is not known.
pub(super) fn commitment(node: Node<'_>) -> Option<Commitment> {
    let commitment = Commitment {
        algorithm: node.text("algorithm")?.into_owned(),
        root: node.text("root")?.into_owned(),
        leaves: node.get("leaves")?.as_u64()?,
    };
    (node.fields().count() == 3).then_some(commitment)
}

/// Counts by name.
pub(super) fn counts(node: Node<'_>) -> Option<Vec<(String, u64)>> {
    of_kind(node, Kind::Object)?
        .fields()
        .map(|(key, count)| Some((key.to_text()?.into_owned(), count.as_u64()?)))
        .collect()
}
