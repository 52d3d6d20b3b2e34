//! Protobuf to OTLP/JSON: what other programs send, so that there is one reader for both encodings.
//!
//! Messages are described by tables: the number of a field, its name in JSON and how it is written. Nothing is lost on
//! the way: ids become hexadecimal digits, bytes base64, whole numbers of 64 bits strings, as the JSON mapping of OTLP
//! has them. Fields that no table has are passed over and counted.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quipu_model::{Json, hex};

use super::talk::boundary;

/// How deep values may nest. JSON nests three levels for each of them.
const DEEPEST: usize = 32;

/// Why bytes are not the message that they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They end in the middle of a field.
    #[error("the protobuf message ends in the middle of a field")]
    Cut,
    /// A field has a number or a type that protobuf does not have.
    #[error("the protobuf message has a field that is not written as protobuf writes fields")]
    Field,
    /// Values nest too deep.
    #[error("attribute values nest deeper than {DEEPEST} levels")]
    Deep,
    /// It would be too long as JSON.
    #[error("longer than {0} bytes")]
    Long(usize),
}

/// How a field is written, and what becomes of it.
#[derive(Clone, Copy)]
enum Kind {
    /// A text.
    Text,
    /// Bytes that are an id.
    Id,
    /// Bytes that are anything.
    Bytes,
    /// A whole number of 32 bits, or an enumeration.
    Number,
    /// A whole number of 64 bits, with a sign.
    Long,
    /// A fixed number of 64 bits.
    Nanos,
    /// A fixed number of 32 bits.
    Flags,
    /// Yes or no.
    Bool,
    /// A number with a fraction.
    Double,
    /// A message.
    Message(&'static Table),
}

/// One field of a message.
struct Field {
    number: u64,
    name: &'static str,
    kind: Kind,
    /// Whether there may be several.
    list: bool,
}

/// The fields of a message. Of a `choice` only one is meant, and it is there also when it is zero or empty.
struct Table {
    fields: &'static [Field],
    choice: bool,
}

const fn one(number: u64, name: &'static str, kind: Kind) -> Field {
    Field {
        number,
        name,
        kind,
        list: false,
    }
}

const fn many(number: u64, name: &'static str, kind: Kind) -> Field {
    Field {
        number,
        name,
        kind,
        list: true,
    }
}

const fn message(fields: &'static [Field]) -> Table {
    Table {
        fields,
        choice: false,
    }
}

static VALUE: Table = Table {
    choice: true,
    fields: &[
        one(1, "stringValue", Kind::Text),
        one(2, "boolValue", Kind::Bool),
        one(3, "intValue", Kind::Long),
        one(4, "doubleValue", Kind::Double),
        one(5, "arrayValue", Kind::Message(&ARRAY)),
        one(6, "kvlistValue", Kind::Message(&LIST)),
        one(7, "bytesValue", Kind::Bytes),
    ],
};
static ARRAY: Table = message(&[many(1, "values", Kind::Message(&VALUE))]);
static LIST: Table = message(&[many(1, "values", Kind::Message(&PAIR))]);
static PAIR: Table = message(&[
    one(1, "key", Kind::Text),
    one(2, "value", Kind::Message(&VALUE)),
]);
static ENTITY: Table = message(&[
    one(1, "schemaUrl", Kind::Text),
    one(2, "type", Kind::Text),
    many(3, "idKeys", Kind::Text),
    many(4, "descriptionKeys", Kind::Text),
]);
static RESOURCE: Table = message(&[
    many(1, "attributes", Kind::Message(&PAIR)),
    one(2, "droppedAttributesCount", Kind::Number),
    many(3, "entityRefs", Kind::Message(&ENTITY)),
]);
static SCOPE: Table = message(&[
    one(1, "name", Kind::Text),
    one(2, "version", Kind::Text),
    many(3, "attributes", Kind::Message(&PAIR)),
    one(4, "droppedAttributesCount", Kind::Number),
]);
static EVENT: Table = message(&[
    one(1, "timeUnixNano", Kind::Nanos),
    one(2, "name", Kind::Text),
    many(3, "attributes", Kind::Message(&PAIR)),
    one(4, "droppedAttributesCount", Kind::Number),
]);
static LINK: Table = message(&[
    one(1, "traceId", Kind::Id),
    one(2, "spanId", Kind::Id),
    one(3, "traceState", Kind::Text),
    many(4, "attributes", Kind::Message(&PAIR)),
    one(5, "droppedAttributesCount", Kind::Number),
    one(6, "flags", Kind::Flags),
]);
static STATUS: Table = message(&[one(2, "message", Kind::Text), one(3, "code", Kind::Number)]);
static SPAN: Table = message(&[
    one(1, "traceId", Kind::Id),
    one(2, "spanId", Kind::Id),
    one(3, "traceState", Kind::Text),
    one(4, "parentSpanId", Kind::Id),
    one(16, "flags", Kind::Flags),
    one(5, "name", Kind::Text),
    one(6, "kind", Kind::Number),
    one(7, "startTimeUnixNano", Kind::Nanos),
    one(8, "endTimeUnixNano", Kind::Nanos),
    many(9, "attributes", Kind::Message(&PAIR)),
    one(10, "droppedAttributesCount", Kind::Number),
    many(11, "events", Kind::Message(&EVENT)),
    one(12, "droppedEventsCount", Kind::Number),
    many(13, "links", Kind::Message(&LINK)),
    one(14, "droppedLinksCount", Kind::Number),
    one(15, "status", Kind::Message(&STATUS)),
]);
static LOG: Table = message(&[
    one(1, "timeUnixNano", Kind::Nanos),
    one(11, "observedTimeUnixNano", Kind::Nanos),
    one(2, "severityNumber", Kind::Number),
    one(3, "severityText", Kind::Text),
    one(12, "eventName", Kind::Text),
    one(5, "body", Kind::Message(&VALUE)),
    many(6, "attributes", Kind::Message(&PAIR)),
    one(7, "droppedAttributesCount", Kind::Number),
    one(8, "flags", Kind::Flags),
    one(9, "traceId", Kind::Id),
    one(10, "spanId", Kind::Id),
]);

/// What is passed over, or mended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Fields that no table has.
    pub(super) unknown: u64,
    /// Texts that are not UTF-8.
    pub(super) mended: u64,
}

/// A field of a message, as it stands in the bytes.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) number: u64,
    value: Wire<'a>,
}

#[derive(Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

impl<'a> Raw<'a> {
    /// The bytes of a message, a text or bytes.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self.value {
            Wire::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Goes through the fields of a message.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn varint(&mut self) -> Result<u64, Unreadable> {
        let mut number = 0_u64;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Unreadable::Cut)?;
            self.0 = rest;
            // The tenth byte has room for one bit.
            if shift == 63 && *byte > 1 {
                return Err(Unreadable::Field);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Unreadable::Field)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Unreadable::Cut)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn field(&mut self) -> Result<Raw<'a>, Unreadable> {
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 || number > 0x1fff_ffff {
            return Err(Unreadable::Field);
        }
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(self.take()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Unreadable::Cut)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Unreadable::Cut)?;
                self.0 = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(self.take()?),
            // Groups are as old as they are rare, and OTLP has none.
            _ => return Err(Unreadable::Field),
        };
        Ok(Raw { number, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Raw<'a>, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// What messages are unpacked to, and how much that may be. Only what is written takes memory: fields are gone through
/// again rather than held.
struct Out<'o> {
    json: String,
    limit: usize,
    passed: &'o mut Passed,
}

impl Out<'_> {
    /// Whether it still fits.
    fn fits(&self) -> Result<(), Unreadable> {
        if self.json.len() > self.limit {
            return Err(Unreadable::Long(self.limit));
        }
        Ok(())
    }

    /// A text in quotes. One byte may become six, so it is written piece by piece.
    fn text(&mut self, text: &str) -> Result<(), Unreadable> {
        const PIECE: usize = 64 << 10;
        self.json.push('"');
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(boundary(rest, PIECE));
            let quoted = Json::string(piece);
            self.json.push_str(&quoted.get()[1..quoted.get().len() - 1]);
            self.fits()?;
            rest = behind;
        }
        self.json.push('"');
        Ok(())
    }
}

/// A resource as JSON of at most so many bytes.
pub(super) fn resource(
    bytes: &[u8],
    limit: usize,
    passed: &mut Passed,
) -> Result<String, Unreadable> {
    json(&RESOURCE, bytes, limit, passed)
}

/// A scope as JSON of at most so many bytes.
pub(super) fn scope(bytes: &[u8], limit: usize, passed: &mut Passed) -> Result<String, Unreadable> {
    json(&SCOPE, bytes, limit, passed)
}

/// A span as JSON of at most so many bytes.
pub(super) fn span(bytes: &[u8], limit: usize, passed: &mut Passed) -> Result<String, Unreadable> {
    json(&SPAN, bytes, limit, passed)
}

/// A log record as JSON of at most so many bytes.
pub(super) fn log(bytes: &[u8], limit: usize, passed: &mut Passed) -> Result<String, Unreadable> {
    json(&LOG, bytes, limit, passed)
}

/// A text.
pub(super) fn text<'a>(bytes: &'a [u8], passed: &mut Passed) -> Cow<'a, str> {
    let text = String::from_utf8_lossy(bytes);
    passed.mended += u64::from(matches!(text, Cow::Owned(_)));
    text
}

fn json(
    table: &Table,
    bytes: &[u8],
    limit: usize,
    passed: &mut Passed,
) -> Result<String, Unreadable> {
    // JSON is longer, but for fields that nobody knows.
    if bytes.len() > limit {
        return Err(Unreadable::Long(limit));
    }
    let mut out = Out {
        json: String::with_capacity(bytes.len().saturating_mul(2).min(limit)),
        limit,
        passed,
    };
    write(table, bytes, 0, &mut out)?;
    Ok(out.json)
}

/// The most fields that a table has.
const FIELDS: usize = 16;

fn write(table: &Table, bytes: &[u8], depth: usize, out: &mut Out<'_>) -> Result<(), Unreadable> {
    // A value in a list is two messages further down.
    if depth > DEEPEST * 2 {
        return Err(Unreadable::Deep);
    }
    debug_assert!(table.fields.len() <= FIELDS);
    // Of several the last is meant.
    let mut last: [Option<Raw<'_>>; FIELDS] = [None; FIELDS];
    let mut chosen = None;
    for field in Fields::new(bytes) {
        let field = field?;
        let mut known = table.fields.iter().zip(&mut last).enumerate();
        let Some((at, (known, last))) = known.find(|(_, (it, _))| it.number == field.number) else {
            out.passed.unknown += 1;
            continue;
        };
        let before = last.replace(field);
        if table.choice {
            out.passed.unknown += u64::from(chosen.replace(at).is_some());
        } else if !known.list {
            out.passed.unknown += u64::from(before.is_some());
        }
    }
    out.json.push('{');
    let mut is_first = true;
    for (at, (known, last)) in table.fields.iter().zip(last).enumerate() {
        let Some(last) = last.filter(|_| !table.choice || chosen == Some(at)) else {
            continue;
        };
        if !known.list {
            if !table.choice && is_zero(last, known.kind) {
                continue;
            }
            name(known.name, &mut is_first, &mut out.json);
            put(known.kind, last, depth, out)?;
            continue;
        }
        name(known.name, &mut is_first, &mut out.json);
        out.json.push('[');
        let mut comma = "";
        for field in Fields::new(bytes) {
            let field = field?;
            if field.number == known.number {
                out.json.push_str(comma);
                put(known.kind, field, depth, out)?;
                comma = ",";
            }
        }
        out.json.push(']');
    }
    out.json.push('}');
    out.fits()
}

fn name(name: &str, is_first: &mut bool, out: &mut String) {
    if !std::mem::replace(is_first, false) {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
}

/// Whether a field says what its absence says. A message that is there is never that.
fn is_zero(raw: Raw<'_>, kind: Kind) -> bool {
    match raw.value {
        Wire::Varint(number) => number == 0,
        Wire::Fixed64(bytes) => bytes == [0; 8],
        Wire::Fixed32(bytes) => bytes == [0; 4],
        Wire::Bytes(bytes) => bytes.is_empty() && !matches!(kind, Kind::Message(_)),
    }
}

fn put(kind: Kind, raw: Raw<'_>, depth: usize, to: &mut Out<'_>) -> Result<(), Unreadable> {
    let out = &mut to.json;
    // Writing to a text does not fail.
    match (kind, raw.value) {
        (Kind::Text, Wire::Bytes(bytes)) => {
            let text = text(bytes, to.passed);
            return to.text(&text);
        }
        (Kind::Id, Wire::Bytes(bytes)) => {
            write!(out, "\"{}\"", hex::encode(bytes)).ok();
        }
        (Kind::Bytes, Wire::Bytes(bytes)) => {
            write!(out, "\"{}\"", STANDARD.encode(bytes)).ok();
        }
        (Kind::Number, Wire::Varint(number)) => {
            // Numbers of 32 bits that are less than zero are written with 64.
            #[expect(clippy::cast_possible_truncation, reason = "as protobuf reads them")]
            let number = number as u32;
            write!(out, "{}", number.cast_signed()).ok();
        }
        (Kind::Long, Wire::Varint(number)) => {
            write!(out, "\"{}\"", number.cast_signed()).ok();
        }
        (Kind::Nanos, Wire::Fixed64(bytes)) => {
            write!(out, "\"{}\"", u64::from_le_bytes(bytes)).ok();
        }
        (Kind::Flags, Wire::Fixed32(bytes)) => {
            write!(out, "{}", u32::from_le_bytes(bytes)).ok();
        }
        (Kind::Bool, Wire::Varint(number)) => {
            out.push_str(if number == 0 { "false" } else { "true" });
        }
        (Kind::Double, Wire::Fixed64(bytes)) => double(f64::from_le_bytes(bytes), out),
        (Kind::Message(table), Wire::Bytes(bytes)) => {
            return write(table, bytes, depth + 1, to);
        }
        _ => return Err(Unreadable::Field),
    }
    to.fits()
}

/// A number with a fraction. What JSON has no number for is a word, as the mapping has it.
fn double(number: f64, out: &mut String) {
    if number.is_nan() {
        out.push_str("\"NaN\"");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 {
            "\"Infinity\""
        } else {
            "\"-Infinity\""
        });
    } else {
        match serde_json::Number::from_f64(number) {
            Some(number) => {
                write!(out, "{number}").ok();
            }
            None => out.push_str("null"),
        }
    }
}
