//! What each kind of payload holds, as tables, and the one pass that checks a payload against its table.
//!
//! Fields that a table does not name are left alone: the specification wants them passed over and kept.

use std::hash::BuildHasher as _;

use quipu_model::json::{Kind as JsonKind, Node};

use super::super::inline::is_mime;
use super::super::{ContentId, Kind};
use super::Rule;
use super::examine::Detail;
use super::found::Path;
use super::look::Look;
use super::parts;
use crate::shape::{Wanted, what};

/// What a field may hold.
pub(super) enum Shape {
    /// A value of this type.
    Is(Wanted),
    TextOrNull,
    /// A whole number from 0.
    Count,
    CountOrNull,
    /// One of these words; another breaks the rule.
    Word(Rule, &'static [&'static str]),
    /// The id of a record; this rule is broken by what is none.
    Id(Rule),
    IdOrNull(Rule),
    /// An object with these fields.
    Fields(&'static [Field]),
    /// A list of such.
    Each(&'static Self),
    /// A word that need not be there, and another type is only worth a note.
    Lax(Rule),
    /// More than a table says.
    Own(fn(&mut Look<'_>, &Path<'_>, Node<'_>)),
}

/// A field of an object.
pub(super) struct Field {
    name: &'static str,
    need: Need,
    shape: Shape,
}

enum Need {
    Must,
    May,
    /// That it is missing breaks this rule, which is no more than a note.
    Better(Rule),
}

const fn must(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        need: Need::Must,
        shape,
    }
}

const fn may(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        need: Need::May,
        shape,
    }
}

const fn better(name: &'static str, shape: Shape, rule: Rule) -> Field {
    Field {
        name,
        need: Need::Better(rule),
        shape,
    }
}

const CHAT_REQUEST: &[Field] = &[
    must("model", Shape::Is(Wanted::Text)),
    must("messages", Shape::Each(&Shape::Fields(MESSAGE))),
    must("params", Shape::Own(params)),
    may("tools", Shape::Each(&Shape::Fields(TOOL))),
    may("system_fingerprint", Shape::TextOrNull),
];

const MESSAGE: &[Field] = &[
    must(
        "role",
        Shape::Word(Rule::MessageRole, &["system", "user", "assistant", "tool"]),
    ),
    must("content", Shape::Own(parts::content)),
];

const TOOL: &[Field] = &[
    must("name", Shape::Is(Wanted::Text)),
    better("description", Shape::TextOrNull, Rule::ToolIncomplete),
    better(
        "input_schema",
        Shape::Is(Wanted::Object),
        Rule::ToolIncomplete,
    ),
];

const CHAT_RESPONSE: &[Field] = &[
    must("model", Shape::Is(Wanted::Text)),
    must("content", Shape::Own(parts::response)),
    must("stop_reason", Shape::Word(Rule::StopReason, STOP_REASONS)),
    must("usage", Shape::Fields(USAGE)),
    must("latency_ms", Shape::Count),
    may("stop_sequence", Shape::TextOrNull),
    may("stream_timings", Shape::Each(&Shape::Fields(TIMING))),
];

const STOP_REASONS: &[&str] = &[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "content_filter",
    "error",
];

const USAGE: &[Field] = &[
    may("input_tokens", Shape::Count),
    may("output_tokens", Shape::Count),
    may("thinking_tokens", Shape::Count),
    may("cache_read_input_tokens", Shape::Count),
    may("cache_creation_input_tokens", Shape::Count),
];

const TIMING: &[Field] = &[
    must("token_index", Shape::Count),
    must("ts_delta_ms", Shape::Is(Wanted::Number)),
];

const TOOL_CALL: &[Field] = &[
    must("tool_name", Shape::Is(Wanted::Text)),
    must("tool_call_id", Shape::Own(call_id)),
    must("arguments", Shape::Is(Wanted::Object)),
];

const TOOL_RESULT: &[Field] = &[
    must("tool_call_id", Shape::Own(call_id)),
    must("output", Shape::Is(Wanted::TextOrObject)),
    must("is_error", Shape::Is(Wanted::Bool)),
    must("latency_ms", Shape::Count),
];

const METADATA: &[Field] = &[
    must("sdk", Shape::Fields(SDK)),
    may("tags", Shape::Own(tags)),
    may("baseline_of", Shape::IdOrNull(Rule::FieldType)),
];

const SDK: &[Field] = &[
    must("name", Shape::Lax(Rule::SdkText)),
    must("version", Shape::Lax(Rule::SdkText)),
];

const ERROR: &[Field] = &[
    must("source", Shape::Word(Rule::ErrorSource, ERROR_SOURCES)),
    must("code", Shape::Is(Wanted::Text)),
    must("message", Shape::Is(Wanted::Text)),
    must("retriable", Shape::Is(Wanted::Bool)),
    may("upstream_status", Shape::CountOrNull),
];

pub(in crate::agentlog) const ERROR_SOURCES: &[&str] = &["sdk", "llm", "tool", "user"];

const REPLAY_SUMMARY: &[Field] = &[
    must("baseline_trace_id", Shape::Id(Rule::FieldType)),
    must("backend_id", Shape::Is(Wanted::Text)),
    must("input_count", Shape::Count),
    must("output_count", Shape::Count),
    must("error_count", Shape::Count),
    must("duration_ms", Shape::Count),
];

const CHUNK: &[Field] = &[
    must("chunk_index", Shape::Own(chunk_index)),
    must("time_unix_nano", Shape::Own(chunk_time)),
    must("delta", Shape::Is(Wanted::Object)),
    may("is_final", Shape::Is(Wanted::Bool)),
];

const HARNESS_EVENT: &[Field] = &[
    must("category", Shape::Word(Rule::HarnessCategory, CATEGORIES)),
    must("name", Shape::Own(name)),
    must(
        "severity",
        Shape::Word(
            Rule::HarnessSeverity,
            &["info", "warning", "error", "fatal"],
        ),
    ),
    may("attributes", Shape::Is(Wanted::Object)),
];

pub(in crate::agentlog) const CATEGORIES: &[&str] = &[
    "retry",
    "rate_limit",
    "model_switch",
    "context_trim",
    "cache",
    "guardrail",
    "budget",
    "stream_interrupt",
    "tool_lifecycle",
];

const BLOB_REF: &[Field] = &[
    must("mime", Shape::Own(mime)),
    must("size_bytes", Shape::Own(size)),
    must("blob_id", Shape::Id(Rule::BlobId)),
    may("uri", Shape::Is(Wanted::Text)),
    may("phash", Shape::Fields(PHASH)),
    may("embedding", Shape::Fields(EMBEDDING)),
];

const PHASH: &[Field] = &[
    must("algo", Shape::Is(Wanted::Text)),
    must("hex", Shape::Is(Wanted::Text)),
];

const EMBEDDING: &[Field] = &[
    must("model", Shape::Is(Wanted::Text)),
    must("dim", Shape::Count),
    must("vec", Shape::Each(&Shape::Is(Wanted::Number))),
];

/// What the payload of a record of this kind holds.
const fn table(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Metadata => METADATA,
        Kind::ChatRequest => CHAT_REQUEST,
        Kind::ChatResponse => CHAT_RESPONSE,
        Kind::ToolCall => TOOL_CALL,
        Kind::ToolResult => TOOL_RESULT,
        Kind::Error => ERROR,
        Kind::ReplaySummary => REPLAY_SUMMARY,
        Kind::Chunk => CHUNK,
        Kind::HarnessEvent => HARNESS_EVENT,
        Kind::BlobRef => BLOB_REF,
    }
}

/// Checks the payload of a record of this kind.
#[inline]
pub(super) fn check(look: &mut Look<'_>, kind: Kind, path: &Path<'_>, payload: Node<'_>) {
    fields(look, path, payload, table(kind));
    if kind == Kind::BlobRef {
        blob(look, path, payload);
    }
}

/// Checks one field of such a payload. A field that the table does not name may hold anything.
pub(super) fn field(look: &mut Look<'_>, kind: Kind, path: &Path<'_>, key: &str, value: Node<'_>) {
    if let Some(field) = table(kind).iter().find(|field| field.name == key) {
        shape(look, path, value, &field.shape);
    }
}

/// Checks an object against a table, in one pass.
pub(super) fn fields(
    look: &mut Look<'_>,
    path: &Path<'_>,
    object: Node<'_>,
    table: &'static [Field],
) {
    if !look.is(path, object, Wanted::Object) {
        return;
    }
    let mut seen = 0u32;
    for (key, value) in object.fields() {
        if let Some(n) = table.iter().position(|field| key.is(field.name)) {
            seen |= 1 << n;
            shape(look, &path.key(table[n].name), value, &table[n].shape);
        }
    }
    if seen.count_ones() as usize != table.len() {
        missing(look, path, table, seen);
    }
}

fn missing(look: &mut Look<'_>, path: &Path<'_>, table: &'static [Field], seen: u32) {
    for (n, field) in table.iter().enumerate() {
        if seen & (1 << n) == 0 {
            let rule = match field.need {
                Need::Must => Rule::FieldMissing,
                Need::Better(rule) => rule,
                Need::May => continue,
            };
            let name = field.name;
            look.find(rule, &path.key(name), format_args!("`{name}` is not there"));
        }
    }
}

#[inline]
fn shape(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>, shape: &'static Shape) {
    let is = value.kind();
    match shape {
        Shape::TextOrNull | Shape::CountOrNull | Shape::IdOrNull(_) if is == JsonKind::Null => {}
        Shape::Is(wanted) => {
            look.is(path, value, *wanted);
        }
        Shape::TextOrNull => {
            look.is(path, value, Wanted::Text);
        }
        Shape::Count | Shape::CountOrNull => {
            count(look, path, value);
        }
        Shape::Word(rule, words) => word(look, path, value, *rule, words),
        Shape::Id(rule) | Shape::IdOrNull(rule) => id(look, path, value, *rule),
        Shape::Fields(table) => fields(look, path, value, table),
        Shape::Each(each) => {
            if !look.is(path, value, Wanted::List) {
                return;
            }
            for (n, item) in value.items().enumerate() {
                self::shape(look, &path.index(n), item, each);
            }
        }
        Shape::Lax(rule) => {
            if is != JsonKind::String {
                look.find(*rule, path, format_args!("{} is not a string", what(value)));
            }
        }
        Shape::Own(check) => check(look, path, value),
    }
}

/// A whole number from 0. `5.0` is one: its canonical form is `5`.
pub(super) fn count(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) -> Option<u64> {
    if value.kind() != JsonKind::Number {
        look.mistyped(path, value, Wanted::Count.as_str());
        return None;
    }
    value.as_u64().or_else(|| odd_count(look, path, value))
}

#[cold]
fn odd_count(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.is_finite())?;
    let whole = whole(number);
    if whole.is_none() {
        let text = super::excerpt(value.raw().get());
        look.find(
            Rule::FieldRange,
            path,
            format_args!("{text} is no whole number from 0"),
        );
    }
    whole
}

/// A double that is a whole number from 0.
fn whole(number: f64) -> Option<u64> {
    if number < 0.0 || number.fract() != 0.0 {
        return None;
    }
    // Beyond 64 bits it is still a count, only not one that anything is compared to.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole, not negative, and stops at the largest"
    )]
    Some(number as u64)
}

fn word(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>, rule: Rule, words: &[&str]) {
    let Some(text) = value.as_raw_str() else {
        look.mistyped(path, value, "a string");
        return;
    };
    if !words.iter().any(|word| text.is(word)) {
        let text = super::excerpt(text.raw().get());
        look.find(
            rule,
            path,
            format_args!("{text} is none of {}", words.join(", ")),
        );
    }
}

fn id(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>, rule: Rule) {
    let Some(text) = value.as_str() else {
        look.mistyped(path, value, "the id of a record");
        return;
    };
    if let Err(error) = text.parse::<ContentId>() {
        let text = super::excerpt(value.raw().get());
        look.find(rule, path, format_args!("{text} is {error}"));
    }
}

fn name(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    match value.as_raw_str() {
        None => look.mistyped(path, value, "a string"),
        Some(text) if text.is("") => {
            look.find(Rule::FieldRange, path, format_args!("it is empty"));
        }
        Some(_) => {}
    }
}

fn params(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    if !look.is(path, value, Wanted::Object) {
        return;
    }
    for (key, value) in value.fields() {
        let Some(key) = key.plain() else { continue };
        let number = || value.as_f64();
        let is = value.kind();
        let (good, wanted) = match key {
            _ if is == JsonKind::Null => continue,
            "temperature" => (
                number().is_some_and(|n| (0.0..=2.0).contains(&n)),
                "from 0 to 2",
            ),
            "top_p" => (
                number().is_some_and(|n| (0.0..=1.0).contains(&n)),
                "from 0 to 1",
            ),
            "max_tokens" => (
                number().is_some_and(|n| n >= 1.0 && n.fract() == 0.0),
                "a whole number above 0",
            ),
            "stop" => (is == JsonKind::List, "a list or null"),
            _ => continue,
        };
        if !good {
            let text = super::excerpt(value.raw().get());
            let path = path.key(key);
            look.find(
                Rule::ParamsRange,
                &path,
                format_args!("{text} is not {wanted}"),
            );
        }
    }
}

fn tags(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    if !look.is(path, value, Wanted::Object) {
        return;
    }
    for (key, value) in value.fields() {
        look.is(&path.key(&key.to_text_lossy()), value, Wanted::Text);
    }
}

fn call_id(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    match value.as_raw_str() {
        None => look.mistyped(path, value, "a string"),
        Some(text) => look.detail = Detail::Call(look.hash(text)),
    }
}

fn chunk_index(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    let index = count(look, path, value);
    let nanos = match look.detail {
        Detail::Chunk { nanos, .. } => nanos,
        _ => None,
    };
    look.detail = Detail::Chunk { index, nanos };
}

fn chunk_time(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    let nanos = count(look, path, value);
    let index = match look.detail {
        Detail::Chunk { index, .. } => index,
        _ => None,
    };
    look.detail = Detail::Chunk { index, nanos };
}

fn size(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    look.detail = Detail::Blob(count(look, path, value).unwrap_or(0));
}

fn mime(look: &mut Look<'_>, path: &Path<'_>, value: Node<'_>) {
    let Some(text) = value.as_str() else {
        look.mistyped(path, value, "a string");
        return;
    };
    let good = is_mime(&text);
    if !good {
        let text = super::excerpt(value.raw().get());
        look.find(Rule::Mime, path, format_args!("{text} is no media type"));
    }
}

/// What a table cannot say: fields of a blob that have to do with each other.
fn blob(look: &mut Look<'_>, path: &Path<'_>, payload: Node<'_>) {
    const SCHEME: &str = "agentlog-blob://";
    if let Some(uri) = payload.text("uri") {
        let at = path.key("uri");
        match uri.strip_prefix(SCHEME) {
            None => look.find(
                Rule::BlobElsewhere,
                &at,
                format_args!("{:?} is no {SCHEME} address", super::excerpt(&uri)),
            ),
            Some(rest) => {
                let (store, hash) = rest.rsplit_once('/').unwrap_or_default();
                let id: Option<ContentId> = format!("sha256:{hash}").parse().ok();
                let said = payload.text("blob_id");
                let said: Option<ContentId> = said.and_then(|text| text.parse().ok());
                if store.is_empty() || id.is_none() || (said.is_some() && id != said) {
                    let uri = super::excerpt(&uri);
                    look.find(
                        Rule::BlobUri,
                        &at,
                        format_args!("{uri:?} is not the address of blob_id"),
                    );
                }
            }
        }
    }
    if let Some(phash) = payload.get("phash")
        && let (Some(algo), Some(hex)) = (phash.text("algo"), phash.text("hex"))
    {
        let at = path.key("phash");
        if algo != "dhash64" {
            let algo = super::excerpt(&algo);
            look.find(
                Rule::PhashAlgo,
                &at.key("algo"),
                format_args!("{algo:?} is not dhash64"),
            );
        } else if hex.len() != 16 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            let hex = super::excerpt(&hex);
            look.find(
                Rule::Phash,
                &at.key("hex"),
                format_args!("{hex:?} are not 16 hexadecimal digits"),
            );
        }
    }
    if let Some(embedding) = payload.get("embedding")
        && let (Some(dim), Some(vec)) = (embedding.get("dim"), embedding.get("vec"))
        && let Some(says) = dim.as_u64().or_else(|| dim.as_f64().and_then(whole))
    {
        let len = vec.items().count() as u64;
        if len != says {
            let dim = super::excerpt(dim.raw().get());
            let at = path.key("embedding");
            look.find(
                Rule::EmbeddingDim,
                &at.key("dim"),
                format_args!("{dim}, but vec has {len} numbers"),
            );
        }
    }
}

impl Look<'_> {
    /// The hash of a string, as it reads.
    pub(super) fn hash(&self, text: quipu_model::json::RawStr<'_>) -> u64 {
        match text.plain() {
            Some(text) => self.hasher.hash_one(text),
            None => self.hasher.hash_one(&*text.to_text_lossy()),
        }
    }
}
