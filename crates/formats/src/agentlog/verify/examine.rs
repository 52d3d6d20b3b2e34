//! What a record shows by itself.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};

use quipu_model::json::{Kind as JsonKind, Node, RawStr, Tape};

use quipu_exchange::lines::{Limits, LineInfo};

use super::super::canon::{Canon, CanonError, CanonProblem, double};
use super::super::reader::{Fault, Item, Passed, parse_line, trim};
use super::super::record::{At, Field, NotARecord, Record};
use super::super::{ContentId, Kind, VERSION};
use super::batch::Batch;
use super::found::{Found, Path, write_key};
use super::look::Look;
use super::time::{self, Moment};
use super::{Rule, Severity, VerifyOptions, diagnose, excerpt, schema};

/// What the records after it need to know of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    pub(super) at: At,
    pub(super) kind: Option<Kind>,
    /// What it says its id is, where that is one.
    pub(super) id: Option<Named>,
    /// What its id is, where its payload has one.
    pub(super) true_id: Option<ContentId>,
    pub(super) parent: Sighted,
    pub(super) ts: Option<Moment>,
    pub(super) detail: Detail,
    /// How many tool uses it asks for.
    pub(super) uses: usize,
    /// How many lines that are no records are between it and the record before, in its batch.
    pub(super) bad: u64,
}

/// An id, and the hash that it is remembered by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    pub(super) id: ContentId,
    pub(super) key: u64,
}

/// A parent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sighted {
    /// Not there or no id, which was reported.
    Broken,
    Null,
    Id(Named),
}

/// What else of a payload the records after it need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    None,
    /// The hash of a `tool_call_id`.
    Call(u64),
    Chunk {
        index: Option<u64>,
        nanos: Option<u64>,
    },
    /// How long a blob is.
    Blob(u64),
}

/// What a batch showed.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) sights: Vec<Sight>,
    pub(super) uses: Vec<u64>,
    pub(super) found: Found,
    pub(super) passed: Passed,
    /// How many lines that are no records are behind its last record.
    pub(super) bad: u64,
}

impl Seen {
    pub(super) fn new(strict: bool) -> Self {
        Self {
            sights: Vec::new(),
            uses: Vec::new(),
            found: Found::new(strict),
            passed: Passed::default(),
            bad: 0,
        }
    }

    fn clear(&mut self) {
        self.sights.clear();
        self.uses.clear();
        self.passed = Passed::default();
        self.bad = 0;
    }
}

/// Looks at batches, one at a time.
#[derive(Debug)]
pub(super) struct Examiner {
    limits: Limits,
    hasher: RandomState,
    tape: Tape,
    canon: Canon,
}

impl Examiner {
    pub(super) fn new(options: &VerifyOptions, hasher: RandomState) -> Self {
        Self {
            limits: options.limits,
            hasher,
            tape: Tape::new(),
            canon: Canon::new(),
        }
    }

    /// Looks at every line of a batch.
    pub(super) fn examine(&mut self, batch: &Batch, seen: &mut Seen) {
        seen.clear();
        for (info, line) in batch.lines() {
            self.line(&info, line, seen);
        }
        self.tape.shrink();
    }

    fn line(&mut self, info: &LineInfo, line: &[u8], seen: &mut Seen) {
        let Some(bytes) = trim(line, info, &mut seen.passed) else {
            return;
        };
        match parse_line(bytes, info, &self.limits, &mut self.tape) {
            Item::Bad { at, fault, .. } => {
                bad(at, &fault, &mut seen.found);
                seen.bad += 1;
            }
            Item::Record(record) => {
                let before = seen.uses.len();
                let mut look = Look {
                    at: record.at,
                    found: &mut seen.found,
                    uses: &mut seen.uses,
                    hasher: &self.hasher,
                    detail: Detail::None,
                };
                let mut sight = envelope(&mut look, &record, &mut self.canon);
                sight.uses = seen.uses.len() - before;
                sight.bad = std::mem::take(&mut seen.bad);
                seen.sights.push(sight);
            }
        }
    }
}

#[cold]
fn bad(at: At, fault: &Fault, found: &mut Found) {
    let rule = match fault {
        Fault::Torn => Rule::TornTail,
        Fault::Utf8(_) => Rule::NotUtf8,
        Fault::Syntax(_) => Rule::NotJson,
        Fault::NotARecord(NotARecord::NotAnObject) => Rule::NotARecord,
        Fault::NotARecord(NotARecord::Twice(field)) => {
            let message = format_args!("field `{}` is there twice", field.as_str());
            found.add(Rule::DuplicateKey, Some(at), Some(&field.as_str()), message);
            return;
        }
        Fault::TooDeep(_) => Rule::TooDeep,
        Fault::TooManyValues => Rule::TooManyValues,
        Fault::TooLong { .. } => Rule::LineTooLong,
    };
    found.add(rule, Some(at), None, format_args!("{fault}"));
}

const PAYLOAD: Path<'static> = Path::root("payload");

fn envelope(look: &mut Look<'_>, record: &Record<'_>, canon: &mut Canon) -> Sight {
    let known = Field::ALL
        .iter()
        .filter(|field| record.get(**field).is_some())
        .count();
    if record.node().fields().count() > known {
        extra(look, record);
    }
    version(look, record);
    let kind = kind(look, record);
    let true_id = payload(look, record, kind, canon);
    let id = id(look, record, true_id);
    let ts = ts(look, record);
    let parent = parent(look, record);
    meta(look, record);
    Sight {
        at: record.at,
        kind,
        id,
        true_id,
        parent,
        ts,
        detail: look.detail,
        uses: 0,
        bad: 0,
    }
}

/// The text of a field of the envelope, which has to be there and a string.
#[inline]
fn text<'a>(
    look: &mut Look<'_>,
    record: &Record<'a>,
    field: Field,
) -> Option<std::borrow::Cow<'a, str>> {
    let name = field.as_str();
    let Some(node) = record.get(field) else {
        look.find(
            Rule::FieldMissing,
            &Path::root(name),
            format_args!("`{name}` is not there"),
        );
        return None;
    };
    if node.kind() == JsonKind::String && is_text(node) {
        return node.as_str();
    }
    no_text(look, &Path::root(name), node, "a string");
    None
}

/// A value is not the text that it should be.
#[cold]
fn no_text(look: &mut Look<'_>, path: &Path<'_>, node: Node<'_>, wanted: &str) {
    if node.kind() == JsonKind::String {
        let message = CanonProblem::LoneSurrogate;
        look.find(Rule::LoneSurrogate, path, format_args!("{message}"));
    } else {
        look.mistyped(path, node, wanted);
    }
}

#[cold]
fn extra(look: &mut Look<'_>, record: &Record<'_>) {
    for (key, value) in record.extra() {
        let name = key.to_text_lossy();
        let name = excerpt(&name);
        look.find(
            Rule::ExtraField,
            &Path::root(&name),
            format_args!("the envelope has no `{name}`"),
        );
        if key.to_text().is_none() {
            let message = CanonProblem::LoneSurrogate;
            look.find(
                Rule::LoneSurrogate,
                &Path::root(&name),
                format_args!("{message}"),
            );
        }
        unreadable(look, &name, value);
    }
}

fn version(look: &mut Look<'_>, record: &Record<'_>) {
    let Some(text) = text(look, record, Field::Version) else {
        return;
    };
    if text == VERSION {
        return;
    }
    let path = Path::root("version");
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let shown = excerpt(&text);
    if !text.split('.').all(is_number) || !text.contains('.') {
        look.find(
            Rule::VersionForm,
            &path,
            format_args!("{shown:?} is no version"),
        );
    } else if text.split('.').next() == VERSION.split('.').next() {
        let message = format_args!("{shown:?} adds to {VERSION}");
        look.find(Rule::VersionNewer, &path, message);
    } else {
        look.find(
            Rule::VersionUnknown,
            &path,
            format_args!("{shown:?} is not {VERSION}"),
        );
    }
}

fn kind(look: &mut Look<'_>, record: &Record<'_>) -> Option<Kind> {
    let text = text(look, record, Field::Kind)?;
    let kind = Kind::from_word(&text);
    if kind.is_none() {
        let text = excerpt(&text);
        look.find(
            Rule::UnknownKind,
            &Path::root("kind"),
            format_args!("{text:?} is not known"),
        );
    }
    kind
}

fn id(look: &mut Look<'_>, record: &Record<'_>, true_id: Option<ContentId>) -> Option<Named> {
    let text = text(look, record, Field::Id)?;
    match text.parse() {
        Ok(id) => Some(named(look, id)),
        Err(error) => {
            let why = diagnose::malformed(&text, true_id);
            let text = excerpt(&text);
            look.find(
                Rule::IdForm,
                &Path::root("id"),
                format_args!("{text:?} is {error}{why}"),
            );
            None
        }
    }
}

#[inline]
fn named(look: &Look<'_>, id: ContentId) -> Named {
    let key = look.hasher.hash_one(id.0);
    Named { id, key }
}

fn ts(look: &mut Look<'_>, record: &Record<'_>) -> Option<Moment> {
    let text = text(look, record, Field::Ts)?;
    let path = Path::root("ts");
    match time::read(&text) {
        time::Read::Exact(moment) => Some(moment),
        time::Read::Loose(moment) => {
            let text = excerpt(&text);
            look.find(
                Rule::TsPrecision,
                &path,
                format_args!("{text:?} is not to the millisecond"),
            );
            Some(moment)
        }
        time::Read::Not => {
            let text = excerpt(&text);
            look.find(
                Rule::TsForm,
                &path,
                format_args!("{text:?} is not RFC 3339 in UTC, with `T` and `Z`"),
            );
            None
        }
    }
}

fn parent(look: &mut Look<'_>, record: &Record<'_>) -> Sighted {
    let path = Path::root("parent");
    let Some(node) = record.get(Field::Parent) else {
        look.find(
            Rule::FieldMissing,
            &path,
            format_args!("`parent` is not there"),
        );
        return Sighted::Broken;
    };
    if node.is_null() {
        return Sighted::Null;
    }
    let Some(text) = node.as_str().filter(|_| is_text(node)) else {
        no_text(look, &path, node, "an id or null");
        return Sighted::Broken;
    };
    if let Ok(id) = text.parse() {
        return Sighted::Id(named(look, id));
    }
    let text = excerpt(&text);
    look.find(Rule::ParentForm, &path, format_args!("{text:?} is no id"));
    Sighted::Broken
}

fn meta(look: &mut Look<'_>, record: &Record<'_>) {
    let Some(meta) = record.get(Field::Meta) else {
        return;
    };
    unreadable(look, "meta", meta);
    let path = Path::root("meta");
    if meta.kind() != JsonKind::Object {
        look.mistyped(&path, meta, "an object");
        return;
    }
    for (key, value) in meta.fields() {
        let (key, good) = match key.plain() {
            Some("redacted") => ("redacted", value.as_bool() == Some(true)),
            Some("trace_id") => (
                "trace_id",
                value.as_str().is_some_and(|text| is_trace_id(&text)),
            ),
            _ => continue,
        };
        if !good {
            let value = excerpt(value.raw().get());
            look.find(Rule::MetaKey, &path.key(key), format_args!("{value}"));
        }
    }
}

fn is_trace_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Finds what other programs do not read, in a value that is not hashed: they refuse the whole file for it. Of
/// each value the first is found, as in a payload.
fn unreadable(look: &mut Look<'_>, name: &str, value: Node<'_>) {
    // Over the tape as it lies: keys are on it as well, and nesting costs nothing.
    for place in value.place()..value.place_behind() {
        let inner = value.go_to(place);
        let what = match inner.kind() {
            JsonKind::Number if !is_double(inner.raw().get()) => {
                CanonProblem::NumberRange(excerpt(inner.raw().get()).into_owned())
            }
            JsonKind::String if !is_text(inner) => CanonProblem::LoneSurrogate,
            _ => continue,
        };
        let offset = inner.offset();
        uncanonical(look, name, value, &CanonError { what, offset });
        return;
    }
}

/// Whether a number is within a double. Most are too short to be beyond.
#[inline]
fn is_double(token: &str) -> bool {
    // What is beyond a double takes 309 digits, or an exponent of three.
    let is_short = token.len() < "1e309".len();
    let has_exponent = || token.bytes().any(|b| matches!(b, b'e' | b'E'));
    is_short || (token.len() < 309 && !has_exponent()) || double(token).is_some()
}

/// Whether a string is text. Those that have no character by its number are.
#[inline]
fn is_text(string: Node<'_>) -> bool {
    let is = |raw: RawStr<'_>| {
        raw.plain().is_some() || !raw.raw().get().contains("\\u") || raw.to_text().is_some()
    };
    string.as_raw_str().is_none_or(is)
}

/// Whether the payload of a record of this kind is as the strict check wants it, as far as that can be said of one
/// record alone.
pub(in crate::agentlog) fn is_payload(kind: Kind, payload: Node<'_>) -> bool {
    is_faultless(|look| {
        if payload.kind() == JsonKind::Object {
            schema::check(look, kind, &PAYLOAD, payload);
        } else {
            look.mistyped(&PAYLOAD, payload, "an object");
        }
    })
}

/// Whether one field of such a payload is.
pub(in crate::agentlog) fn is_field(kind: Kind, key: &str, value: Node<'_>) -> bool {
    is_faultless(|look| schema::field(look, kind, &PAYLOAD.key(key), key, value))
}

fn is_faultless(check: impl FnOnce(&mut Look<'_>)) -> bool {
    let mut found = Found::new(true);
    check(&mut Look {
        at: At::default(),
        found: &mut found,
        uses: &mut Vec::new(),
        hasher: &RandomState::new(),
        detail: Detail::None,
    });
    found.kept.iter().all(|it| it.severity == Severity::Note)
}

/// Checks a payload, and gives its id where it has one.
fn payload(
    look: &mut Look<'_>,
    record: &Record<'_>,
    kind: Option<Kind>,
    canon: &mut Canon,
) -> Option<ContentId> {
    let Some(payload) = record.payload() else {
        look.find(
            Rule::FieldMissing,
            &PAYLOAD,
            format_args!("`payload` is not there"),
        );
        return None;
    };
    if payload.kind() != JsonKind::Object {
        look.mistyped(&PAYLOAD, payload, "an object");
    } else if let Some(kind) = kind {
        schema::check(look, kind, &PAYLOAD, payload);
    }
    match canon.id(payload) {
        Ok(id) => Some(id),
        Err(error) => {
            uncanonical(look, Field::Payload.as_str(), payload, &error);
            None
        }
    }
}

#[cold]
fn uncanonical(look: &mut Look<'_>, name: &str, value: Node<'_>, error: &CanonError) {
    let rule = match error.what {
        CanonProblem::DuplicateKey(_) => Rule::DuplicateKey,
        CanonProblem::LoneSurrogate => Rule::LoneSurrogate,
        CanonProblem::NumberRange(_) => Rule::NumberRange,
    };
    let path = path_to(name, value, error.offset);
    let message = error.what.to_string();
    let message = excerpt(&message);
    look.found
        .add(rule, Some(look.at), Some(&path), format_args!("{message}"));
}

/// The path of the innermost value that is at this place of a value with this name.
fn path_to(name: &str, value: Node<'_>, offset: usize) -> String {
    let mut path = name.to_owned();
    let mut node = value;
    let holds = |node: &Node<'_>| {
        let begin = node.offset();
        (begin..begin + node.raw().get().len()).contains(&offset)
    };
    loop {
        if let Some((key, value)) = node.fields().find(|(_, value)| holds(value)) {
            // A string takes everything.
            write_key(&mut path, &key.to_text_lossy()).ok();
            node = value;
        } else if let Some((n, value)) = node.items().enumerate().find(|(_, value)| holds(value)) {
            write!(path, "[{n}]").ok();
            node = value;
        } else {
            return path;
        }
    }
}
